/* SPDX-License-Identifier: Apache-2.0 */
/* chat.c - see chat.h. */
#include "run/chat.h"

#include "json/read.h"
#include "token/remote.h"

static int ask_server(const struct remote *server, const char *model,
		      const struct tokenizer *tokenizer, struct str kwargs, struct arena *a,
		      struct chat_wrap *out, struct err *e)
{
	struct remote_target target;
	int rc = remote_target_init(&target, server, "", e);

	if (rc == 0) {
		struct token_server s = { target.url.data, model, target.opts };

		rc = chat_from_server(&s, tokenizer, kwargs, a, out, e);
	}
	remote_target_release(&target);
	return rc;
}

static int unknown(const struct tokenizer *tokenizer, bool has_kwargs, bool is_chat,
		   const struct err *why, struct err *e)
{
	const char *bare = is_chat ? "the chat endpoint puts them through it" : "they go bare";

	return err_set(e, ERR_RUN, "the chat template of %s is not %s, and the server does not help "
		       "(%s): say what stands around a user message with --chat-prefix and "
		       "--chat-suffix, or send prompts as they are with --skip-chat-template (%s)",
		       tokenizer_name(tokenizer), has_kwargs ? "known with --chat-template-kwargs"
							    : "a known one", why->text, bare);
}

int run_chat_find(const struct serve_opts *o, const struct serve_derived *d,
		  const struct tokenizer *tokenizer, const struct remote *server,
		  const char *model, struct arena *a, struct chat_wrap *out, struct err *e)
{
	const struct str kwargs = str_of(o->chat_template_kwargs.text);
	const char *path = tokenizer ? tokenizer_path(tokenizer) : NULL;
	struct err why = { 0 };
	int rc;

	*out = d->chat;
	if (out->source == CHAT_FLAGS || !tokenizer ||
	    !(tokenizer_remote(tokenizer) || tokenizer_has_chat_template(tokenizer)))
		return 0;
	rc = path && !kwargs.n ? chat_from_files(path, a, out, e) : 0;
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	if (!server)
		err_set(&why, ERR_RUN, "it is not asked when nothing is sent");
	else if (ask_server(server, model, tokenizer, kwargs, a, out, &why) == 0)
		return 0;
	if (why.code == ERR_CANCELLED)
		return err_set(e, ERR_CANCELLED, "%s", why.text);
	return unknown(tokenizer, kwargs.n > 0, d->is_chat, &why, e);
}

void run_chat_notes(const struct chat_wrap *w, bool is_chat, const struct tokenizer *tokenizer,
		    struct buf *out)
{
	if (w->source == CHAT_NONE)
		return;
	if (is_chat)
		buf_add_text(out, "prompts are put through the chat template twice, here and by the "
			     "chat endpoint, as upstream does; --skip-chat-template leaves it to the "
			     "server");
	else if (tokenizer && chat_doubles_bos(w, tokenizer))
		buf_add_text(out, "prompts begin with the BOS token of the chat template and get "
			     "another from the tokenizer, as upstream; both are counted");
}

/* ---- whole messages ---- */

/* The text of a message with that role and plain text; false: it is another. */
static bool plain_text(const struct json_value *message, const char *role, struct str *out)
{
	const struct json_value *content = json_get(message, "content");

	if (!str_is(json_text(json_get(message, "role"), STR("")), role) || !content ||
	    content->kind != JSON_STRING)
		return false;
	*out = content->text;
	return true;
}

/* Whether the wrap alone says what becomes of the messages; text is appended then. */
static bool render_known(const struct chat_wrap *w, struct str messages, struct arena *a,
			 struct buf *text)
{
	struct str system, user;
	struct json_value *v;

	if (w->source == CHAT_NONE || json_parse(a, messages, &v, NULL) < 0 ||
	    v->kind != JSON_ARRAY)
		return false;
	if (v->count == 1 && plain_text(v->item, "user", &user)) {
		chat_apply(w, user, text);
		return true;
	}
	if (!w->has_system || v->count != 2 || !plain_text(v->item, "system", &system) ||
	    !plain_text(v->item + 1, "user", &user))
		return false;
	chat_apply_system(w, system, user, text);
	return true;
}

static int render_by_server(const struct run_renderer *r, struct str messages, struct str tools,
			    struct buf *text, struct err *e)
{
	struct remote_target target;
	struct ids ids = { 0 };
	int rc = remote_target_init(&target, r->server, "", e);

	if (rc == 0) {
		struct token_server s = { target.url.data, r->model, target.opts };

		rc = token_server_render_messages(&s, messages, tools, r->kwargs, &ids, e);
	}
	if (rc == 0 && tokenizer_decode(r->tokenizer, ids.id, ids.count, false, text) < 0)
		rc = err_set(e, ERR_LIMIT, "a rendered conversation is too long");
	ids_release(&ids);
	remote_target_release(&target);
	return rc;
}

int run_render(void *self, struct str messages, struct str tools, struct buf *text, struct err *e)
{
	const struct run_renderer *r = self;
	struct arena scratch = { 0 };
	bool is_done = !tools.n && !r->kwargs.n && render_known(r->wrap, messages, &scratch, text);

	arena_release(&scratch);
	if (is_done)
		return 0;
	if (r->by)
		return r->by(r->by_self, messages, tools, text, e);
	if (r->server)
		return render_by_server(r, messages, tools, text, e);
	return err_set(e, ERR_RUN, "the chat template of %s is not known for such messages, and the "
		       "server is not asked when nothing is sent", tokenizer_name(r->tokenizer));
}
