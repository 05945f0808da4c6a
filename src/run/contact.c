/* SPDX-License-Identifier: Apache-2.0 */
/* contact.c - see contact.h. */
#include "run/contact.h"

#include <string.h>

#include "http/url.h"
#include "json/read.h"
#include "json/write.h"

#define CONTACT_TIMEOUT_MS 10000 /* a server that is busy for longer is left to the requests */
#define OTHER_SCHEME_TIMEOUT_MS 2000 /* only a hint: the first attempt has failed already */
#define MODELS_NAMED 5           /* of those the server has */
#define WORDS_MAX 400            /* bytes of a server's message that are quoted */

static int ask(const struct remote *r, const char *path, const struct str *body, int64_t timeout_ms,
	       struct fetch_reply *reply, struct err *why)
{
	struct remote_target t;
	int rc = remote_target_init(&t, r, path, why);

	*reply = (struct fetch_reply){ 0 };
	if (timeout_ms < t.opts.timeout_ms)
		t.opts.timeout_ms = timeout_ms;
	if (rc == 0)
		rc = fetch(t.url.data, body, &t.opts, reply, why);
	remote_target_release(&t);
	return rc;
}

/* The status of an answer; 0: there was none. */
static long status_of(const struct remote *r, const char *path, const struct str *body,
		      int64_t timeout_ms)
{
	struct fetch_reply reply;
	struct err ignored;
	long status = ask(r, path, body, timeout_ms, &reply, &ignored) == 0 ? reply.status : 0;

	fetch_reply_release(&reply);
	return status;
}

/* ---- no answer ---- */

/* Whether the same host and port answer when spoken to by the other scheme, which url gets. */
static bool is_other_scheme(const struct remote *r, struct buf *url)
{
	bool is_tls = strncmp(r->base_url, "https:", 6) == 0;
	struct remote other = *r;

	if (!is_tls && strncmp(r->base_url, "http:", 5) != 0)
		return false;
	buf_printf(url, "%s%s", is_tls ? "http:" : "https:", strchr(r->base_url, ':') + 1);
	other.base_url = url->data;
	other.is_insecure = true;
	other.is_http2 = false;
	return status_of(&other, "/v1/models", NULL, OTHER_SCHEME_TIMEOUT_MS) != 0;
}

/* Without a user name and a password, which messages must not show. */
static const char *host_of(const char *url)
{
	const char *at = strrchr(url, '@'), *host = strstr(url, "://");

	return at ? at + 1 : host ? host + 3 : url;
}

static int refused_by_proxy(const struct remote *r, long status, struct err *e)
{
	if (status == 407)
		return err_set(e, ERR_NET, "the proxy %s refuses the user name or password (407): check "
			       "--proxy", host_of(r->proxy));
	return err_set(e, ERR_NET, "the proxy %s makes no connection to %s: it answers %ld",
		       host_of(r->proxy), r->base_url, status);
}

static int unreachable(const struct remote *r, const struct fetch_reply *reply,
		       const struct err *why, struct err *e)
{
	bool is_proxied = r->proxy && *r->proxy;
	const char *where = is_proxied ? host_of(r->proxy) : r->base_url;
	const char *what = is_proxied ? "the proxy " : "";
	struct buf url = { 0 };
	int rc = 0;

	switch (reply->fault) {
	case FETCH_FAULT_NAME:
		rc = err_set(e, ERR_NET, "cannot connect to %s%s: its name cannot be resolved. Is the "
			     "URL right?", what, where);
		break;
	case FETCH_FAULT_CONNECT:
		rc = err_set(e, ERR_NET, "cannot connect to %s%s: %s. Is %s running?", what, where,
			     reply->error ? strerror(reply->error) : "no connection",
			     is_proxied ? "it" : "the server");
		break;
	case FETCH_FAULT_PROXY:
		rc = refused_by_proxy(r, reply->status, e);
		break;
	case FETCH_FAULT_TLS:
		if (is_other_scheme(r, &url))
			rc = err_set(e, ERR_NET, "the server at %s does not speak TLS on this port; use "
				     "%s", r->base_url, url.data);
		else
			rc = err_set(e, ERR_NET, "TLS: %s", why->text);
		break;
	case FETCH_FAULT_BROKEN:
		if (is_other_scheme(r, &url))
			rc = err_set(e, ERR_NET, "the server at %s speaks TLS on this port; use %s",
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

/* Only the list of models may need a key: the path of the requests is asked as well. */
static int check_key(const struct contact *c, long status, struct err *e)
{
	struct buf text = { 0 };
	int rc = 0;

	if (is_key_status(status_of(&c->remote, c->path, NULL, CONTACT_TIMEOUT_MS))) {
		add_key(c, status, &text);
		rc = err_set(e, ERR_NET, "%s", text.data);
	}
	buf_release(&text);
	return rc;
}

/* The base URL ends with what the path begins with: "http://host/v1" and "/v1/completions". */
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
		rc = err_set(e, ERR_NET, "POST %s%s: 404; did you mean --base-url %s (the endpoint %s is "
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
 * Many servers take any name, or more than they list: adapters, aliases. /tokenize, which reads
 * no prompt into a cache, decides: it knows a listed model and does not know ours.
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
		rc = err_set(e, ERR_NET, "the server at %s has no model \"%s\"; it serves: %s",
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

	if (ask(r, "/v1/models", NULL, CONTACT_TIMEOUT_MS, &reply, &why) < 0) {
		if (why.code == ERR_NET)
			rc = unreachable(r, &reply, &why, e);
	} else if (reply.status == 407 && r->proxy && *r->proxy) {
		rc = refused_by_proxy(r, 407, e);
	} else if (is_key_status(reply.status)) {
		rc = check_key(c, reply.status, e);
	} else if (reply.status == 404) {
		rc = check_path(c, e);
	} else if (reply.status == 400 && is_other_scheme(r, &url)) { /* nginx, Go */
		rc = err_set(e, ERR_NET, "the server at %s speaks TLS on this port; use %s",
			     r->base_url, url.data);
	} else if (reply.status == 200) {
		rc = check_model(c, buf_str(&reply.body), e);
	}
	fetch_reply_release(&reply);
	buf_release(&url);
	return rc;
}

/* ---- requests that were refused ---- */

/* The sentence in an error's body: {"error": {"message"}}, {"message"}, {"detail"}, or the body. */
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
		buf_printf(out, "; check --base-url, --endpoint and --model (POST %s%s)",
			   c->remote.base_url, c->path);
	}
}
