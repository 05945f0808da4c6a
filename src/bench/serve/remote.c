/* SPDX-License-Identifier: Apache-2.0 */
/* remote.c - requests to a server outside the measurement; see remote.h. */
#include "bench/serve/remote.h"

#include <string.h>

#include "client/http/url.h"
#include "core/base/mem.h"
#include "core/json/read.h"
#include "core/json/write.h"
#include "input/fetch/fetch.h"

#define ALIGN_PARALLEL 64  /* requests in flight, as upstream */
#define COMPARE_PROMPTS 16 /* measured prompts of datasets that are not rewritten */

static void say(const struct run_hooks *h, const char *text)
{
	if (h->line)
		h->line(h->self, text);
}

static char *header_line(const char *key, const char *scheme, const char *value)
{
	struct buf line = { 0 };

	buf_printf(&line, "%s: %s%s", key, scheme, value);
	return buf_take(&line);
}

/* libcurl takes a Unix socket as http://localhost plus an option. */
int remote_target_init(struct remote_target *t, const struct remote *r, const char *path,
		       struct err *e)
{
	struct url url;
	size_t n = 0;
	const char *key_header = r->key_header ? r->key_header : "Authorization";
	bool is_keyed = true;

	*t = (struct remote_target){ .opts = r->fetch };
	if (!t->opts.timeout_ms || t->opts.timeout_ms > REMOTE_TIMEOUT_MS)
		t->opts.timeout_ms = REMOTE_TIMEOUT_MS;
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
		t->header[n++] = header_line(r->header[i].key, "", r->header[i].value);
		is_keyed &= !str_eq_nocase(str_of(r->header[i].key), str_of(key_header));
	}
	if (is_keyed && r->api_key)
		t->header[n++] = header_line(key_header, r->key_header ? "" : "Bearer ", r->api_key);
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

int remote_ask(const struct remote *r, const char *path, const struct str *body,
	       int64_t timeout_ms, struct fetch_reply *reply, struct err *e)
{
	struct remote_target t;
	int rc = remote_target_init(&t, r, path, e);

	*reply = (struct fetch_reply){ 0 };
	if (timeout_ms && timeout_ms < t.opts.timeout_ms)
		t.opts.timeout_ms = timeout_ms;
	if (rc == 0)
		rc = fetch(t.url.data, body, &t.opts, reply, e);
	remote_target_release(&t);
	return rc;
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
	struct fetch_reply reply;
	struct buf line = { 0 };
	struct err why = { 0 };
	int rc = -1;

	say(hooks, "Model not specified, fetching first model from server...");
	if (remote_ask(r, "/v1/models", NULL, 0, &reply, &why) == 0 && reply.status / 100 != 2)
		err_set(&why, ERR_NET, "HTTP status %ld", reply.status);
	if (why.code == ERR_NONE)
		rc = first_model(r->base_url, buf_str(&reply.body), name, root, &why);
	if (why.code == ERR_RUN || why.code == ERR_CANCELLED || why.code == ERR_USAGE) {
		*e = why; /* the server's models, or an invalid URL */
	} else if (rc < 0) {
		err_set(e, ERR_RUN, "Failed to fetch models from server at %s/v1/models. Check that:\n"
			"1. The server is running\n2. The server URL is correct\nError: %s",
			r->base_url, why.text);
	} else {
		buf_printf(&line, "First model name: %s, first model id: %s", *name, *root);
		say(hooks, line.data);
	}
	fetch_reply_release(&reply);
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

/* The number of tokens that the server counts in the first prompt; -1 when it does not say. */
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
	/* llama.cpp's /tokenize expects "content" and ignores our question. */
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
		if (is_rewriting && !(r->fetch.cancel && atomic_load(r->fetch.cancel)))
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

/* ---- first contact: no answer ---- */

#define CONTACT_TIMEOUT_MS 10000 /* a server that is busy for longer is left to the requests */
#define OTHER_SCHEME_TIMEOUT_MS 2000 /* only a hint: the first attempt has failed already */
#define MODELS_NAMED 5           /* of those the server has */
#define WORDS_MAX 400            /* bytes of a server's message that are quoted */

/* The status of an answer; 0: there was none. */
static long status_of(const struct remote *r, const char *path, const struct str *body,
		      int64_t timeout_ms)
{
	struct fetch_reply reply;
	long status = remote_ask(r, path, body, timeout_ms, &reply, NULL) == 0 ? reply.status : 0;

	fetch_reply_release(&reply);
	return status;
}

/* ---- no answer ---- */

/* Whether the same host and port answer with the other scheme; url is set to that. */
static bool is_other_scheme(const struct remote *r, struct buf *url)
{
	bool is_tls = strncmp(r->base_url, "https:", 6) == 0;
	struct remote other = *r;

	if (!is_tls && strncmp(r->base_url, "http:", 5) != 0)
		return false;
	buf_printf(url, "%s%s", is_tls ? "http:" : "https:", strchr(r->base_url, ':') + 1);
	other.base_url = url->data;
	other.fetch.is_insecure = true;
	other.fetch.is_http2 = false;
	return status_of(&other, "/v1/models", NULL, OTHER_SCHEME_TIMEOUT_MS) != 0;
}

/* The URL without user name and password, which messages must not show. */
static const char *host_of(const char *url)
{
	const char *at = strrchr(url, '@'), *host = strstr(url, "://");

	return at ? at + 1 : host ? host + 3 : url;
}

static int refused_by_proxy(const struct remote *r, long status, struct err *e)
{
	if (status == 407)
		return err_set(e, ERR_PROXY_REFUSED, "the proxy %s refuses the user name or password (407): check "
			       "--proxy", host_of(r->fetch.proxy));
	return err_set(e, ERR_PROXY_REFUSED, "the proxy %s makes no connection to %s: it answers %ld",
		       host_of(r->fetch.proxy), r->base_url, status);
}

static int unreachable(const struct remote *r, const struct fetch_reply *reply,
		       const struct err *why, struct err *e)
{
	bool is_proxied = r->fetch.proxy && *r->fetch.proxy;
	const char *where = is_proxied ? host_of(r->fetch.proxy) : r->base_url;
	const char *what = is_proxied ? "the proxy " : "";
	struct buf url = { 0 };
	int rc = 0;

	switch (reply->fault) {
	case FETCH_FAULT_NAME:
		rc = err_set(e, ERR_HOST_UNKNOWN, "cannot connect to %s%s: its name cannot be resolved. Is the "
			     "URL right?", what, where);
		break;
	case FETCH_FAULT_CONNECT:
		rc = err_set(e, ERR_SERVER_UNREACHABLE, "cannot connect to %s%s: %s. Is %s running?", what, where,
			     reply->error ? strerror(reply->error) : "no connection",
			     is_proxied ? "it" : "the server");
		break;
	case FETCH_FAULT_PROXY:
		rc = refused_by_proxy(r, reply->status, e);
		break;
	case FETCH_FAULT_TLS:
		if (is_other_scheme(r, &url))
			rc = err_set(e, ERR_TLS_SCHEME, "the server at %s does not speak TLS on this port; use "
				     "%s", r->base_url, url.data);
		else
			rc = err_set(e, err_again(why), "TLS: %s", why->text);
		break;
	case FETCH_FAULT_BROKEN:
		if (is_other_scheme(r, &url))
			rc = err_set(e, ERR_TLS_SCHEME, "the server at %s speaks TLS on this port; use %s",
				     r->base_url, url.data);
		break;
	case FETCH_FAULT_OTHER:
		break;
	}
	buf_release(&url);
	return rc;
}

/* ---- an answer ---- */

static bool has_key(const struct remote *r)
{
	const char *name = r->key_header ? r->key_header : "Authorization";

	for (size_t i = 0; i < r->n_headers; i++)
		if (str_eq_nocase(str_of(r->header[i].key), str_of(name)))
			return true;
	return r->api_key != NULL;
}

/* "the server at URL requires a key (401): set ...": for status 401 or 403. */
static void add_key(const struct contact *c, long status, struct buf *out)
{
	const char *variable = c->key_variable ? c->key_variable : "OPENAI_API_KEY";

	if (has_key(&c->remote))
		buf_printf(out, "the server at %s refuses the key (%ld): check %s or --header "
			   "'Authorization=Bearer ...'", c->remote.base_url, status, variable);
	else
		buf_printf(out, "the server at %s %s (%ld): set %s or pass --header "
			   "'Authorization=Bearer ...'", c->remote.base_url,
			   status == 401 ? "requires a key" : "refuses access", status, variable);
}

static bool is_key_status(long status)
{
	return status == 401 || status == 403;
}

/* A key may be required only for the list of models: the path of the requests is asked as well. */
static int check_key(const struct contact *c, long status, struct err *e)
{
	struct buf text = { 0 };
	int rc = 0;

	if (is_key_status(status_of(&c->remote, c->path, NULL, CONTACT_TIMEOUT_MS))) {
		add_key(c, status, &text);
		rc = err_set(e, ERR_KEY_REFUSED, "%s", text.data);
	}
	buf_release(&text);
	return rc;
}

/* Detects a base URL that ends with the path's beginning: "http://host/v1", "/v1/completions". */
static int check_path(const struct contact *c, struct err *e)
{
	const char *base = c->remote.base_url, *slash = strchr(c->path + 1, '/');
	size_t n = strlen(base), part = slash ? (size_t)(slash - c->path) : 0;
	struct remote shorter = c->remote;
	struct buf url = { 0 };
	long status;
	int rc = 0;

	while (n && base[n - 1] == '/')
		n--;
	if (part < 2 || n <= part || strncmp(base + n - part, c->path, part) != 0)
		return 0;
	buf_add(&url, base, n - part);
	shorter.base_url = url.data;
	status = status_of(&shorter, "/v1/models", NULL, CONTACT_TIMEOUT_MS);
	if (status / 100 == 2 || is_key_status(status))
		rc = err_set(e, ERR_PATH_UNKNOWN, "POST %s%s: 404; did you mean --base-url %s (the endpoint %s is "
			     "added)?", base, c->path, url.data, c->path);
	buf_release(&url);
	return rc;
}

static long tokenize(const struct remote *r, struct str model)
{
	struct buf body = { 0 };
	struct json_writer w = json_writer(&body);
	struct str text;
	long status;

	json_begin_object(&w);
	json_member_str(&w, "model", model);
	json_member_text(&w, "prompt", "a");
	json_end_object(&w);
	text = buf_str(&body);
	status = status_of(r, "/tokenize", &text, CONTACT_TIMEOUT_MS);
	buf_release(&body);
	return status;
}

/*
 * Many servers accept any name, or more than they list: adapters, aliases. /tokenize, which puts no
 * prompt into a cache, decides: it accepts a listed model and not ours.
 */
static int check_model(const struct contact *c, struct str body, struct err *e)
{
	struct arena arena = { 0 };
	struct json_value *doc, *data;
	struct buf names = { 0 };
	struct str first = { 0 };
	int rc = 0;

	if (!c->model || json_parse(&arena, body, &doc, NULL) < 0)
		goto done;
	data = json_get(doc, "data");
	if (!data || data->kind != JSON_ARRAY || data->count == 0)
		goto done;
	for (size_t i = 0; i < data->count; i++) {
		struct str id = json_text(json_get(&data->item[i], "id"), STR(""));

		if (id.n == 0 || str_is(id, c->model))
			goto done;
		if (i == 0)
			first = id;
		if (i < MODELS_NAMED)
			buf_printf(&names, "%s%.*s", i ? ", " : "", (int)id.n, id.p);
		else if (i == MODELS_NAMED)
			buf_add_text(&names, ", ...");
	}
	if (tokenize(&c->remote, str_of(c->model)) == 404 && tokenize(&c->remote, first) == 200)
		rc = err_set(e, ERR_MODEL_UNKNOWN, "the server at %s has no model \"%s\"; it serves: %s",
			     c->remote.base_url, c->model, names.data);
done:
	arena_release(&arena);
	buf_release(&names);
	return rc;
}

int contact_check(const struct contact *c, struct err *e)
{
	const struct remote *r = &c->remote;
	struct fetch_reply reply;
	struct buf url = { 0 };
	struct err why = { 0 };
	int rc = 0;

	if (remote_ask(r, "/v1/models", NULL, CONTACT_TIMEOUT_MS, &reply, &why) < 0) {
		if (why.code == ERR_NET)
			rc = unreachable(r, &reply, &why, e);
	} else if (reply.status == 407 && r->fetch.proxy && *r->fetch.proxy) {
		rc = refused_by_proxy(r, 407, e);
	} else if (is_key_status(reply.status)) {
		rc = check_key(c, reply.status, e);
	} else if (reply.status == 404) {
		rc = check_path(c, e);
	} else if (reply.status == 400 && is_other_scheme(r, &url)) { /* nginx, Go */
		rc = err_set(e, ERR_TLS_SCHEME, "the server at %s speaks TLS on this port; use %s",
			     r->base_url, url.data);
	} else if (reply.status == 200) {
		rc = check_model(c, buf_str(&reply.body), e);
	}
	fetch_reply_release(&reply);
	buf_release(&url);
	return rc;
}

/* ---- requests that were refused ---- */

/* The message in an error's body: {"error": {"message"}}, {"message"}, {"detail"}, or the body. */
static void add_words(struct str body, struct buf *out)
{
	static const char *const names[] = { "message", "detail", "error" };
	struct arena arena = { 0 };
	struct json_value *doc, *inner;
	struct str words = { 0 };
	size_t n = out->len;

	if (json_parse(&arena, body, &doc, NULL) == 0) {
		inner = json_get(doc, "error");
		if (inner && inner->kind == JSON_OBJECT)
			doc = inner;
		for (size_t i = 0; words.n == 0 && i < sizeof(names) / sizeof(*names); i++)
			words = json_text(json_get(doc, names[i]), STR(""));
	}
	words = str_trim(words.n ? words : body);
	if (words.n && words.p[words.n - 1] == '.')
		words.n--;
	if (words.n) {
		buf_add_text(out, ": ");
		buf_add(out, words.p, words.n < WORDS_MAX ? words.n : WORDS_MAX);
		if (words.n > WORDS_MAX)
			buf_add_text(out, "...");
	}
	for (; n < out->len; n++)
		if ((unsigned char)out->data[n] < 0x20 || out->data[n] == 0x7f)
			out->data[n] = ' ';
	arena_release(&arena);
}

void contact_add_failure(const struct contact *c, const struct request_row *row,
			 struct str error, struct buf *out)
{
	struct str reason = str_cut(&error, '\n');

	if (row->fail == FAIL_STATUS)
		buf_printf(out, "%u ", row->status);
	buf_add_str(out, reason);
	add_words(error, out);
	if (row->fail != FAIL_STATUS)
		return;
	if (is_key_status(row->status)) {
		buf_add_text(out, "; ");
		add_key(c, row->status, out);
	} else if (row->status == 404) {
		buf_printf(out, "; check --base-url, --endpoint and %s (POST %s%s)",
			   c->has_adapters ? "the names of --lora-modules" : "--model",
			   c->remote.base_url, c->path);
	}
}
