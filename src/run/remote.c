/* SPDX-License-Identifier: Apache-2.0 */
/* remote.c - see remote.h. */
#include "run/remote.h"

#include "base/mem.h"
#include "fetch/fetch.h"
#include "http/url.h"
#include "json/read.h"
#include "json/write.h"

#define ALIGN_PARALLEL 64  /* requests in flight, as upstream */
#define COMPARE_PROMPTS 16 /* measured prompts of datasets that are not rewritten */

static void say(const struct run_hooks *h, const char *text)
{
	if (h->line)
		h->line(h->self, text);
}

/* libcurl takes a Unix socket as http://localhost plus an option. */
int remote_target_init(struct remote_target *t, const struct remote *r, const char *path,
		       struct err *e)
{
	struct url url;
	size_t n = 0;
	const char *key_header = r->key_header ? r->key_header : "Authorization";
	bool is_keyed = true;

	*t = (struct remote_target){ .opts = { .is_insecure = r->is_insecure, .ca_file = r->ca_file,
					 .cert_file = r->cert_file, .key_file = r->key_file,
					 .proxy = r->proxy, .is_http2 = r->is_http2,
					 .cancel = r->cancel,
					 .timeout_ms = REMOTE_TIMEOUT_MS } };
	if (r->timeout_ms && r->timeout_ms < REMOTE_TIMEOUT_MS)
		t->opts.timeout_ms = r->timeout_ms;
	if (url_parse(str_of(r->base_url), &url, e) < 0)
		return -1;
	if (url.is_unix) {
		buf_add_text(&t->socket, url.socket);
		buf_printf(&t->url, "http://localhost%.*s%s", (int)url.path.n, url.path.p, path);
		t->opts.unix_socket = t->socket.data;
	} else {
		buf_printf(&t->url, "%s%s", r->base_url, path);
	}
	t->header = mem_array(r->n_headers + 2, sizeof(*t->header));
	for (size_t i = 0; i < r->n_headers; i++) {
		struct buf line = { 0 };

		buf_printf(&line, "%s: %s", r->header[i].key, r->header[i].value);
		t->header[n++] = buf_take(&line);
		is_keyed &= !str_eq_nocase(str_of(r->header[i].key), str_of(key_header));
	}
	if (is_keyed && r->api_key) {
		struct buf line = { 0 };

		buf_printf(&line, "%s: %s%s", key_header, r->key_header ? "" : "Bearer ",
			   r->api_key);
		t->header[n++] = buf_take(&line);
	}
	t->opts.header = t->header;
	return 0;
}

void remote_target_release(struct remote_target *t)
{
	for (size_t i = 0; t->header && t->header[i]; i++)
		free((char *)(uintptr_t)t->header[i]);
	free(t->header);
	buf_release(&t->url);
	buf_release(&t->socket);
}

/* ---- model discovery ---- */

static int first_model(const char *base_url, struct str body, char **name, char **root,
		       struct err *e)
{
	struct arena arena = { 0 };
	struct json_value *doc, *data;
	struct str id, root_text;
	int rc = -1;

	if (json_parse(&arena, body, &doc, e) < 0)
		goto done;
	data = json_get(doc, "data");
	if (!data || data->kind != JSON_ARRAY || data->count == 0) {
		err_set(e, ERR_RUN, "No models found on the server at %s. Make sure the server is "
			"running and has models loaded.", base_url);
		goto done;
	}
	id = json_text(json_get(&data->item[0], "id"), STR(""));
	if (id.n == 0) {
		err_set(e, ERR_PARSE, "the first model has no \"id\"");
		goto done;
	}
	root_text = json_text(json_get(&data->item[0], "root"), id);
	*name = mem_copy(id.p, id.n);
	*root = mem_copy(root_text.p, root_text.n);
	rc = 0;
done:
	arena_release(&arena);
	return rc;
}

int remote_discover_model(const struct remote *r, const struct run_hooks *hooks, char **name,
			  char **root, struct err *e)
{
	struct fetch_reply reply = { 0 };
	struct buf line = { 0 };
	struct remote_target t;
	struct err why = { 0 };
	int rc = -1;

	say(hooks, "Model not specified, fetching first model from server...");
	if (remote_target_init(&t, r, "/v1/models", e) < 0)
		goto done;
	if (fetch(t.url.data, NULL, &t.opts, &reply, &why) == 0 && reply.status / 100 != 2)
		err_set(&why, ERR_NET, "HTTP status %ld", reply.status);
	if (why.code == ERR_NONE)
		rc = first_model(r->base_url, buf_str(&reply.body), name, root, &why);
	if (why.code == ERR_RUN || why.code == ERR_CANCELLED) {
		*e = why;
	} else if (rc < 0) {
		err_set(e, ERR_RUN, "Failed to fetch models from server at %s. Check that:\n"
			"1. The server is running\n2. The server URL is correct\nError: %s",
			t.url.data, why.text);
	} else {
		buf_printf(&line, "First model name: %s, first model id: %s", *name, *root);
		say(hooks, line.data);
	}
done:
	fetch_reply_release(&reply);
	remote_target_release(&t);
	buf_release(&line);
	return rc;
}

/* ---- alignment ---- */

struct align {
	const char *model;
	struct workload *w;
	struct buf body;
	struct str *text;       /* detokenize: ids to send, per pending sample */
	uint32_t *pending;      /* samples that are too long */
	size_t n_pending;
	struct remote_alignment *out;
	const struct run_hooks *hooks;
	size_t done, total;
	bool is_special; /* count special tokens too, as the dataset did */
};

static struct str tokenize_body(void *self, size_t i)
{
	struct align *a = self;
	struct json_writer w;

	buf_reset(&a->body);
	w = json_writer(&a->body);
	json_begin_object(&w);
	json_member_text(&w, "model", a->model);
	json_member_str(&w, "prompt", a->w->v[i].prompt);
	json_member_bool(&w, "add_special_tokens", a->is_special);
	json_end_object(&w);
	return buf_str(&a->body);
}

/* The "tokens" array of an answer and its length; false when there is none. */
static bool read_tokens(const struct fetch_reply *reply, struct json_slice *tokens, size_t *n)
{
	struct json_scan scan;
	struct json_slice all, item;
	struct json_iter it;
	struct str key;

	if (!reply || reply->status != 200)
		return false;
	scan = (struct json_scan){ buf_str(&reply->body), 0 };
	if (json_next(&scan, &all, NULL) < 0 || !json_member(all, "tokens", tokens) ||
	    tokens->kind != JSON_ARRAY)
		return false;
	it = json_iter(*tokens);
	for (*n = 0; json_each(&it, &key, &item) == 1; (*n)++)
		;
	return true;
}

static void tokenized(void *self, size_t i, const struct fetch_reply *reply)
{
	struct align *a = self;
	struct sample *s = &a->w->v[i];
	struct json_slice tokens, item;
	struct json_iter it;
	struct str key;
	struct buf ids = { 0 };
	size_t n;

	a->done++;
	if (a->hooks->progress)
		a->hooks->progress(a->hooks->self, STAGE_ALIGN, a->done, a->total, NULL);
	if (!read_tokens(reply, &tokens, &n))
		return;
	a->out->checked++;
	if (n != s->prompt_len)
		a->out->disagreeing++;
	if (!a->pending || n <= s->prompt_len)
		return;
	buf_add_char(&ids, '[');
	it = json_iter(tokens);
	for (size_t k = 0; k < s->prompt_len && json_each(&it, &key, &item) == 1; k++) {
		if (k)
			buf_add_text(&ids, ", ");
		buf_add_str(&ids, item.raw);
	}
	buf_add_char(&ids, ']');
	a->text[a->n_pending] = (struct str){ ids.data, ids.len };
	a->pending[a->n_pending++] = (uint32_t)i;
}

static struct str detokenize_body(void *self, size_t i)
{
	struct align *a = self;

	buf_reset(&a->body);
	buf_add_text(&a->body, "{\"model\": ");
	json_quote(&a->body, str_of(a->model), false);
	buf_add_text(&a->body, ", \"tokens\": ");
	buf_add_str(&a->body, a->text[i]);
	buf_add_char(&a->body, '}');
	return buf_str(&a->body);
}

static void detokenized(void *self, size_t i, const struct fetch_reply *reply)
{
	struct align *a = self;
	struct json_scan scan;
	struct json_slice all, prompt;
	struct buf text = { 0 };

	if (!reply || reply->status != 200)
		return;
	scan = (struct json_scan){ buf_str(&reply->body), 0 };
	if (json_next(&scan, &all, NULL) < 0 || !json_member(all, "prompt", &prompt) ||
	    prompt.kind != JSON_STRING)
		return;
	json_unescape(&text, prompt.raw);
	a->w->v[a->pending[i]].prompt = arena_str(&a->w->arena, buf_str(&text));
	a->out->rewritten++;
	buf_release(&text);
}

/* How many tokens the server sees in the first prompt; -1 when it does not say. */
static int64_t ask_first(struct align *a, const struct remote_target *tokenize, struct err *why)
{
	struct str body = tokenize_body(a, 0);
	struct fetch_reply reply = { 0 };
	struct json_slice tokens;
	int64_t count = -1;
	size_t n;

	if (fetch(tokenize->url.data, &body, &tokenize->opts, &reply, why) == 0 &&
	    read_tokens(&reply, &tokens, &n))
		count = (int64_t)n;
	/* llama.cpp's /tokenize wants "content" and finds nothing in our question. */
	if (count == 0 && a->is_special)
		count = -1;
	fetch_reply_release(&reply);
	return count;
}

static void rewrite(struct align *a, const struct remote_target *tokenize,
		    const struct remote_target *detokenize)
{
	struct fetch_many many = { .n = a->w->n, .parallel = ALIGN_PARALLEL, .self = a,
				   .body = tokenize_body, .done = tokenized };
	struct err ignored;

	a->total = a->w->n;
	a->pending = mem_array(a->w->n, sizeof(*a->pending));
	a->text = mem_array(a->w->n, sizeof(*a->text));
	fetch_many(tokenize->url.data, &many, &tokenize->opts, &ignored);
	many = (struct fetch_many){ .n = a->n_pending, .parallel = ALIGN_PARALLEL, .self = a,
				    .body = detokenize_body, .done = detokenized };
	fetch_many(detokenize->url.data, &many, &detokenize->opts, &ignored);
	for (size_t i = 0; i < a->n_pending; i++)
		free((char *)(uintptr_t)a->text[i].p);
	free(a->pending);
	free(a->text);
}

static void compare(struct align *a, const struct remote_target *tokenize)
{
	struct fetch_many many = { .n = a->w->n < COMPARE_PROMPTS ? a->w->n : COMPARE_PROMPTS,
				   .parallel = ALIGN_PARALLEL, .self = a, .body = tokenize_body,
				   .done = tokenized };
	struct err ignored;

	a->total = many.n;
	fetch_many(tokenize->url.data, &many, &tokenize->opts, &ignored);
}

void remote_align(const struct remote *r, const char *model, bool is_rewriting,
		  struct workload *w, const struct run_hooks *hooks, struct remote_alignment *out)
{
	struct align a = { .model = model, .w = w, .hooks = hooks, .out = out,
			   .is_special = !is_rewriting };
	struct remote_target tokenize = { 0 }, detokenize = { 0 };
	struct buf line = { 0 };
	struct err why = { 0 };
	int64_t first;

	*out = (struct remote_alignment){ 0 };
	if (w->n == 0 || w->v[0].kind != PROMPT_TEXT || w->v[0].messages.n ||
	    remote_target_init(&tokenize, r, "/tokenize", NULL) < 0 ||
	    remote_target_init(&detokenize, r, "/detokenize", NULL) < 0)
		goto done;
	first = ask_first(&a, &tokenize, &why);
	out->is_available = first >= 0;
	if (why.code == ERR_LIMIT && hooks->warn)
		hooks->warn(hooks->self, why.text);
	if (first < 0) {
		if (is_rewriting && !(r->cancel && atomic_load(r->cancel)))
			say(hooks, "WARNING: /tokenize unavailable, skipping alignment.");
	} else if (!is_rewriting) {
		compare(&a, &tokenize);
	} else if (first != (int64_t)w->v[0].prompt_len) {
		buf_printf(&line, "WARNING: tokenizer mismatch (server=%lld, expected=%u), "
			   "re-aligning prompts.", (long long)first, w->v[0].prompt_len);
		say(hooks, line.data);
		rewrite(&a, &tokenize, &detokenize);
	} else {
		out->checked = 1;
	}
done:
	remote_target_release(&tokenize);
	remote_target_release(&detokenize);
	buf_release(&line);
	buf_release(&a.body);
}
