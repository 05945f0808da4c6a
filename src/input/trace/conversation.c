/* SPDX-License-Identifier: Apache-2.0 */
/* conversation.c - see conversation.h: form (a), and conversations as sessions. */
#include "input/trace/conversation.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "client/plan/workload.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "input/data/build.h"
#include "input/table/table.h"
#include "input/token/tokenizer.h"

/* ---- conversations ---- */

#define ID_BYTES_MAX 1024 /* it is sent in a header */

static const char *const names[] = { "system", "user", "assistant" };

static const char *speaker_name(enum speaker role)
{
	assert((size_t)role < sizeof(names) / sizeof(*names));
	return names[role];
}

void conversation_put_message(struct json_writer *w, const struct message *m)
{
	json_begin_object(w);
	json_member_text(w, "role", speaker_name(m->role));
	json_key(w, "content");
	if (m->parts.n)
		json_put_raw(w, m->parts);
	else
		json_put_str(w, m->text);
	json_end_object(w);
}

/* ---- making ---- */

static bool is_full(size_t n)
{
	return n >= 256 ? (n & (n - 1)) == 0 : n == 0;
}

static void *grow(void *items, size_t n, size_t size)
{
	return is_full(n) ? mem_grow(items, n ? 2 * n : 256, size) : items;
}

struct conversation *conversations_add(struct conversations *c, struct str id)
{
	c->v = grow(c->v, c->n, sizeof(*c->v));
	c->v[c->n] = (struct conversation){ .id = id, .first = c->n_messages };
	return &c->v[c->n++];
}

struct message *conversations_add_message(struct conversations *c, enum speaker role)
{
	assert(c->n);
	c->message = grow(c->message, c->n_messages, sizeof(*c->message));
	c->message[c->n_messages] = (struct message){ .role = role };
	c->v[c->n - 1].n++;
	return &c->message[c->n_messages++];
}

void conversations_release(struct conversations *c)
{
	free(c->v);
	free(c->message);
	arena_release(&c->arena);
	*c = (struct conversations){ 0 };
}

/* ---- form (a) ---- */

struct conversation_reader {
	const struct conversations_opts *o;
	struct conversations *out;
	struct map ids;
	struct buf text, parts;
	struct arena scratch; /* of one item */
};

static int read_role(struct json_slice v, bool is_first, enum speaker before, enum speaker *role,
		     struct err *e)
{
	for (*role = SPEAKER_SYSTEM; *role <= SPEAKER_ASSISTANT; (*role)++)
		if (v.kind == JSON_STRING && str_is(v.raw, speaker_name(*role)))
			break;
	if (*role > SPEAKER_ASSISTANT)
		return err_set(e, ERR_RUN, "unknown role %.*s; there are system, user and assistant",
			       (int)(v.raw.n < 60 ? v.raw.n : 60), v.raw.p);
	if (*role == SPEAKER_SYSTEM && !is_first)
		return err_set(e, ERR_RUN, "a system message must be the first one");
	if (*role == SPEAKER_ASSISTANT && (is_first || before == SPEAKER_SYSTEM))
		return err_set(e, ERR_RUN, "the assistant cannot speak before the user");
	if (*role == before && !is_first)
		return err_set(e, ERR_RUN, "two messages of the %s in a row; user and assistant must take "
			       "turns", speaker_name(*role));
	return 0;
}

/* A list of content parts, each an object with a type; the texts of text parts are its text. */
static int read_parts(struct conversation_reader *r, struct json_slice list, struct err *e)
{
	struct json_writer w = json_writer(&r->parts);
	struct json_iter it = json_iter(list);
	struct json_slice part, type, text;
	struct json_value *tree;

	while (json_each(&it, NULL, &part) == 1) {
		if (!json_member(part, "type", &type) || type.kind != JSON_STRING)
			return err_set(e, ERR_RUN, "\"content\" is a list that has an element without a "
				       "\"type\"");
		if (!str_is(type.raw, "text"))
			continue;
		if (!json_member(part, "text", &text) || text.kind != JSON_STRING)
			return err_set(e, ERR_RUN, "\"content\" has a text part without a \"text\"");
		json_unescape(&r->text, text.raw);
	}
	if (json_parse(&r->scratch, list.raw, &tree, e) < 0)
		return -1;
	if (!tree->count)
		return err_set(e, ERR_RUN, "\"content\" is an empty list");
	json_put_value(&w, tree);
	return 0;
}

static int read_content(struct conversation_reader *r, struct json_slice v, struct err *e)
{
	buf_reset(&r->text);
	buf_reset(&r->parts);
	if (v.kind == JSON_ARRAY)
		return read_parts(r, v, e);
	if (v.kind == JSON_STRING) {
		json_unescape(&r->text, v.raw);
		return 0;
	}
	return err_set(e, ERR_RUN, "\"content\" must be a text or a list of parts, got %.*s",
		       (int)(v.raw.n < 60 ? v.raw.n : 60), v.raw.p);
}

static int read_message(struct conversation_reader *r, struct json_slice object, bool is_first,
			enum speaker before, struct err *e)
{
	struct json_iter it = json_iter(object);
	struct json_slice v, role_text, content;
	struct message *m;
	enum speaker role;
	struct str key;

	if (object.kind != JSON_OBJECT || !json_member(object, "role", &role_text) ||
	    !json_member(object, "content", &content))
		return err_set(e, ERR_RUN, "expected an object with \"role\" and \"content\"");
	while (json_each(&it, &key, &v) == 1)
		if (!str_is(key, "role") && !str_is(key, "content"))
			return err_set(e, ERR_RUN, "unknown key \"%.*s\"; a message has \"role\" and "
				       "\"content\"", (int)(key.n < 60 ? key.n : 60), key.p);
	if (read_role(role_text, is_first, before, &role, e) < 0 || read_content(r, content, e) < 0)
		return -1;
	m = conversations_add_message(r->out, role);
	m->text = arena_str(&r->out->arena, buf_str(&r->text));
	m->parts = arena_str(&r->out->arena, buf_str(&r->parts));
	return 0;
}

static int read_id(struct conversation_reader *r, struct json_slice item, struct str *id,
		   struct err *e)
{
	struct json_slice v;

	buf_reset(&r->text);
	if (!json_member(item, "id", &v) || (v.kind != JSON_STRING && v.kind != JSON_INT))
		return err_set(e, ERR_RUN, "\"id\" must be a text or an integer");
	if (v.kind == JSON_STRING)
		json_unescape(&r->text, v.raw);
	else
		buf_add_str(&r->text, v.raw);
	if (r->text.len > ID_BYTES_MAX)
		return err_set(e, ERR_RUN, "\"id\" has more than %d bytes", ID_BYTES_MAX);
	for (size_t i = 0; i < r->text.len; i++)
		if ((unsigned char)r->text.data[i] < ' ' || r->text.data[i] == 0x7f)
			return err_set(e, ERR_RUN, "\"id\" has a control character, which headers "
						   "cannot contain");
	*id = arena_str(&r->out->arena, buf_str(&r->text));
	if (map_get(&r->ids, *id, NULL))
		return err_set(e, ERR_RUN, "\"id\": '%.*s' is also the id of an earlier conversation",
			       (int)(id->n < 100 ? id->n : 100), id->p);
	map_put(&r->ids, *id, 1);
	return 0;
}

static int read_item(struct conversation_reader *r, struct json_slice item, struct err *e)
{
	struct json_slice list, v;
	struct json_iter it;
	struct str id;
	size_t k = 0;

	if (read_id(r, item, &id, e) < 0)
		return -1;
	if (json_member(item, "conversations", &list) && !json_member(item, "messages", &v))
		return err_set(e, ERR_RUN, "this is a ShareGPT file; convert it to conversations "
			       "with profllm dataset convert-sharegpt");
	if (!json_member(item, "messages", &list) || list.kind != JSON_ARRAY)
		return err_set(e, ERR_RUN, "\"messages\" must be a list");
	conversations_add(r->out, id);
	it = json_iter(list);
	for (; json_each(&it, NULL, &v) == 1; k++) {
		enum speaker before = SPEAKER_SYSTEM;

		if (k)
			before = r->out->message[r->out->n_messages - 1].role;
		if (read_message(r, v, k == 0, before, e) < 0)
			return err_wrap(e, "conversation '%.*s': messages[%zu]",
					(int)(id.n < 100 ? id.n : 100), id.p, k);
	}
	if (k == 0)
		return err_set(e, ERR_RUN, "conversation '%.*s' has no messages",
			       (int)(id.n < 100 ? id.n : 100), id.p);
	if (k == 1 && r->out->message[r->out->n_messages - 1].role == SPEAKER_SYSTEM)
		return err_set(e, ERR_RUN, "conversation '%.*s' has no message of the user",
			       (int)(id.n < 100 ? id.n : 100), id.p);
	return 0;
}

static int read_list(const char *path, const struct conversations_opts *o,
		     struct conversations *out, struct err *e)
{
	static const char *const columns[] = { "id", "messages", "conversations", NULL };
	const struct table_opts opts = {
		.columns = columns, .cancel = o->cancel,
		.ending = file_is_stream(path) ? ".json" : NULL,
	};
	struct conversation_reader r = { .o = o, .out = out };
	struct table *t = table_open(path, &opts, e);
	struct buf where = { 0 };
	int rc = t ? 0 : -1;

	for (size_t i = 0; rc == 0 && i < table_rows(t); i++) {
		struct json_slice item;

		rc = table_row(t, i, &item, e);
		if (rc == 0 && read_item(&r, item, e) < 0) {
			buf_reset(&where);
			table_where(t, i, &where);
			rc = err_wrap(e, "%s", where.data);
		}
		arena_release(&r.scratch);
	}
	if (rc == 0 && !out->n)
		rc = err_set(e, ERR_RUN, "%s: the file has no conversations", path);
	table_close(t);
	map_release(&r.ids);
	buf_release(&where);
	buf_release(&r.text);
	buf_release(&r.parts);
	return rc;
}

/* ---- either form ---- */

int conversations_count(struct conversations *c, const struct tokenizer *t, unsigned threads,
			struct err *e)
{
	struct str *text = mem_array(c->n_messages, sizeof(*text));
	size_t *count = mem_array(c->n_messages, sizeof(*count));
	int rc;

	assert(t);
	for (size_t i = 0; i < c->n_messages; i++)
		text[i] = c->message[i].text;
	rc = tokenizer_count_batch(t, text, c->n_messages, false, threads, count, e);
	for (size_t i = 0; rc == 0 && i < c->n_messages; i++)
		c->message[i].tokens = (uint32_t)count[i];
	free(text);
	free(count);
	return rc;
}

/* Whether the file is one JSON object and no list in it: form (b), or not a form at all. */
static bool is_generator(struct str text, struct json_slice *object)
{
	struct json_scan scan = { text, 0 };
	struct json_slice v;

	if (str_starts(text, STR("\xef\xbb\xbf")))
		scan.at = 3;
	while (scan.at < text.n && memchr(" \t\r\n", text.p[scan.at], 4))
		scan.at++;
	if (scan.at == text.n || text.p[scan.at] != '{' || json_next(&scan, object, NULL) < 0)
		return false;
	return json_at_end(&scan) && !json_member(*object, "messages", &v);
}

static int read_generator(const char *path, struct str text, struct json_slice object,
			  const struct conversations_opts *o, struct conversations *out,
			  struct err *e)
{
	const struct json_file file = { .path = path, .text = text };
	struct json_slice v;

	if (!json_member(object, "filetype", &v))
		return err_set(e, ERR_RUN, "%s: an object without \"filetype\"; expected a list of "
			       "conversations, or \"filetype\": \"generate_conversations\"", path);
	if (v.kind != JSON_STRING || !str_is(v.raw, "generate_conversations"))
		return json_file_refuse(&file, v.raw.p, "filetype", e,
					"expected \"generate_conversations\", got %.*s",
					(int)(v.raw.n < 80 ? v.raw.n : 80), v.raw.p);
	return conversations_generate(&file, object, o, out, e);
}

int conversations_read(const char *path, const struct conversations_opts *o,
		       struct conversations *out, struct err *e)
{
	struct json_slice object;
	struct str text;
	int rc;

	assert(!out->n);
	if (file_map(path, &text, e) < 0)
		return -1;
	if (is_generator(text, &object))
		rc = read_generator(path, text, object, o, out, e);
	else
		rc = read_list(path, o, out, e);
	file_unmap(text);
	return rc == 0 && o->tokenizer ? conversations_count(out, o->tokenizer, o->threads, e) : rc;
}

/* ---- as sessions ---- */

struct turning {
	const struct conversations *c;
	const struct conversation_turns *t;
	struct workload *w;
	struct session_build build;
	struct buf json;
};

static int64_t answer_len(const struct turning *x, const struct conversation *v, size_t k)
{
	const struct message *answer = &x->c->message[v->first + k + 1];

	if (k + 1 >= v->n)
		return x->t->tail_output_len > 0 ? x->t->tail_output_len : -1;
	if (x->t->output_len > 0)
		return x->t->output_len;
	return answer->tokens ? answer->tokens : 1;
}

/*
 * Which of a conversation's messages begin turns that are sent, as flags; how many. A turn that
 * is too long ends it, or, without history, is left out.
 */
static size_t choose_turns(const struct turning *x, const struct conversation *v, bool *is_sent)
{
	const struct message *m = &x->c->message[v->first];
	size_t system = m->role == SPEAKER_SYSTEM, n = 0;
	int64_t before = system ? m->tokens : 0;

	memset(is_sent, 0, v->n * sizeof(*is_sent));
	for (size_t k = system; k < v->n; k += 2) {
		int64_t own = before + m[k].tokens, output = answer_len(x, v, k);

		if (x->t->messages_max && k - system >= x->t->messages_max)
			break;
		own += output > 0 ? output : 0;
		is_sent[k] = !x->t->tokens_max || own <= x->t->tokens_max;
		n += is_sent[k];
		if (x->t->is_without_history)
			continue;
		if (!is_sent[k])
			break;
		before = own;
	}
	return n;
}

static int put_messages(struct turning *x, const struct message *system,
			const struct message *user, struct sample *s, struct err *e)
{
	struct json_writer w = json_writer(&x->json);

	buf_reset(&x->json);
	json_begin_array(&w);
	if (system)
		conversation_put_message(&w, system);
	conversation_put_message(&w, user);
	json_end_array(&w);
	s->messages = buf_str(&x->json);
	return workload_keep(x->w, &s->messages, e);
}

/* The turn that message k of v begins; tokens: of all messages up to it. */
static int add_turn(struct turning *x, const struct conversation *v, size_t k, int64_t tokens,
		    struct err *e)
{
	const struct message *m = &x->c->message[v->first];
	const struct session *session = &x->build.session[x->build.n_sessions - 1];
	uint32_t number = session->n, before = (uint32_t)x->build.n_turns - 1;
	bool has_system = m->role == SPEAKER_SYSTEM && (!number || x->t->is_without_history);
	bool has_history = number && !x->t->is_without_history;
	struct sample *s = workload_add(x->w);
	struct turn *turn;

	s->output_len = answer_len(x, v, k);
	s->prompt_len = tokens > UINT32_MAX ? UINT32_MAX : (uint32_t)tokens;
	s->expected = k + 1 < v->n ? m[k + 1].text : STR("");
	if (x->t->request_id_prefix && x->t->is_named_by_turn)
		s->request_id = str_of(arena_printf(&x->w->arena, "%s%.*s-turn%u",
						    x->t->request_id_prefix, (int)session->id.n,
						    session->id.p, number));
	else if (x->t->request_id_prefix)
		s->request_id = str_of(arena_printf(&x->w->arena, "%s%zu", x->t->request_id_prefix,
						    x->w->n - 1));
	if (workload_keep(x->w, &s->expected, e) < 0 ||
	    put_messages(x, has_system ? m : NULL, &m[k], s, e) < 0)
		return -1;
	turn = session_add_turn(&x->build, has_history ? before : TURN_NONE);
	turn->number = (uint16_t)number;
	if (number) {
		turn->gap_s = x->t->gap_s;
		turn->gap_kind = x->t->gap_s > 0 ? TURN_THINKS : TURN_NO_GAP;
		session_wait_for(&x->build, before);
	}
	return 0;
}

/* copy: how often it occurred before. 1: it is left out. */
static int add_session(struct turning *x, const struct conversation *v, uint32_t copy,
		       struct err *e)
{
	const struct message *m = &x->c->message[v->first];
	bool *is_sent = mem_array(v->n, sizeof(*is_sent));
	size_t n = choose_turns(x, v, is_sent);
	struct arena *a = &x->w->arena;
	int64_t tokens = 0;
	int rc = 0;

	if (n < x->t->turns_min || n == 0) {
		free(is_sent);
		return 1;
	}
	if (x->w->n + n > REQUESTS_MAX)
		rc = err_set(e, ERR_LIMIT, "the conversations have more than %u turns", REQUESTS_MAX);
	session_begin(&x->build, copy ? str_of(arena_printf(a, "%.*s#%u", (int)v->id.n, v->id.p,
							    copy + 1)) : arena_str(a, v->id));
	for (size_t k = 0; rc == 0 && k < v->n; k++) {
		if (x->t->is_without_history && m[k].role == SPEAKER_USER)
			tokens = m->role == SPEAKER_SYSTEM ? m->tokens : 0;
		if (m[k].role == SPEAKER_ASSISTANT)
			tokens += answer_len(x, v, k - 1);
		else
			tokens += m[k].tokens;
		if (is_sent[k])
			rc = add_turn(x, v, k, tokens, e);
	}
	free(is_sent);
	return rc;
}

int64_t conversations_to_workload(const struct conversations *c, const size_t *which, size_t n,
				  const struct conversation_turns *t, struct workload *w,
				  struct err *e)
{
	struct turning x = { .c = c, .t = t, .w = w };
	uint32_t *copies = mem_array(c->n, sizeof(*copies));
	int64_t left_out = 0;
	int rc = 0;

	assert(w->n == 0 && (which || n == c->n));
	for (size_t i = 0; rc >= 0 && i < n; i++) {
		size_t one = which ? which[i] : i;

		assert(one < c->n);
		rc = add_session(&x, &c->v[one], copies[one]++, e);
		left_out += rc > 0;
	}
	if (rc >= 0)
		session_finish(&x.build, w);
	session_build_release(&x.build);
	buf_release(&x.json);
	free(copies);
	return rc < 0 ? -1 : left_out;
}

/* ---- the dataset ---- */

/*
 * Whole conversations as sessions: each message of the user is a request, and the server's earlier
 * answers are its history.
 *
 * --num-prompts is the number of conversations: those of the file in its order, then, unless
 * --no-oversample is given, copies of uniformly chosen ones under ids of their own.
 */

static int check(const struct dataset_opts *o, const struct dataset_env *env, struct err *e)
{
	(void)o;
	return dataset_check_chat(env, "conversations", e);
}

static int build(const struct dataset_opts *o, const struct dataset_env *env,
		 struct compat_rng *rng, struct workload *w, struct err *e)
{
	const struct conversations_opts reading = {
		.tokenizer = env->tokenizer, .np = &rng->np, .threads = env->threads,
		.cancel = env->cancel,
	};
	const int64_t output_len = o->conversations_output_len.is_set ?
				   o->conversations_output_len.v : 0;
	const struct conversation_turns turns = {
		.output_len = output_len, .tail_output_len = output_len,
		.tokens_max = o->max_model_len.is_set ? o->max_model_len.v : 0,
		.request_id_prefix = env->request_id_prefix,
	};
	struct conversations c = { 0 };
	size_t *which = NULL, n;
	int64_t left_out = -1;

	if (env->num_prompts > REQUESTS_MAX)
		return err_set(e, ERR_USAGE, "--num-prompts %" PRId64 " is more than the limit of %u",
			       env->num_prompts, REQUESTS_MAX);
	if (conversations_read(o->path, &reading, &c, e) == 0) {
		which = dataset_choose(o, env, rng, c.n, &n);
		left_out = conversations_to_workload(&c, which, n, &turns, w, e);
	}
	if (left_out > 0)
		dataset_note(w, "%" PRId64 " conversation%s skipped: the first message and its answer "
			     "have more than --max-model-len %" PRId64 " tokens", left_out,
			     left_out == 1 ? " was" : "s were", o->max_model_len.v);
	free(which);
	conversations_release(&c);
	return left_out < 0 ? -1 : 0;
}

static const char *const options[] = { "conversations-output-len", "no-oversample", NULL };

const struct dataset dataset_conversations = {
	.name = "conversations", .options = options,
	.summary = "whole conversations, with the server's answers as history",
	.needs_path = true, .takes_all = true, .is_whole = true, .check = check, .build = build,
};
