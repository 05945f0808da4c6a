/* SPDX-License-Identifier: Apache-2.0 */
/* prepare.c - see prepare.h. */
#include "run/prepare.h"

#include "base/limits.h"
#include "base/mem.h"
#include "http/head.h"
#include "http/url.h"
#include "run/lookahead.h"

static bool is_users(const struct prepare_opts *o, const char *name)
{
	for (size_t i = 0; i < o->n_headers; i++)
		if (str_eq_nocase(str_of(o->header[i].key), str_of(name)))
			return true;
	return false;
}

/* By --header, or by the API's own headers. */
static bool is_overridden(const struct prepare_opts *o, const char *name)
{
	for (size_t i = 0; i < o->endpoint->n_headers; i++)
		if (str_eq_nocase(str_of(o->endpoint->header[i].name), str_of(name)))
			return true;
	return is_users(o, name);
}

static void add_default(const struct prepare_opts *o, struct buf *b, const char *name,
			const char *value)
{
	if (!is_overridden(o, name))
		buf_printf(b, "%s: %s\r\n", name, value);
}

/* Ours takes its place where requests have one. */
static bool is_id(const struct prepare_opts *o, const char *name)
{
	return !o->is_without_ids && str_eq_nocase(str_of(name), STR("x-request-id"));
}

/* Headers that the API asks for; --header wins. */
static void add_api_headers(const struct prepare_opts *o, struct buf *b)
{
	for (size_t i = 0; i < o->endpoint->n_headers; i++) {
		const struct endpoint_header *h = &o->endpoint->header[i];

		if (!is_users(o, h->name) && !is_id(o, h->name))
			buf_printf(b, "%s: %s\r\n", h->name, h->value);
	}
}

static int add_user_headers(const struct prepare_opts *o, struct buf *b, struct err *e)
{
	for (size_t i = 0; i < o->n_headers; i++) {
		const struct serve_pair *h = &o->header[i];

		if (http_head_is_framing(str_of(h->key)))
			return err_set(e, ERR_USAGE, "--header %s: this header is set by profllm itself",
				       h->key);
		if (*h->key == 0 || strpbrk(h->key, ": \t\r\n") || strpbrk(h->value, "\r\n"))
			return err_set(e, ERR_USAGE, "--header %s: not a valid header name or value",
				       h->key);
		if (!is_id(o, h->key))
			buf_printf(b, "%s: %s\r\n", h->key, h->value);
	}
	return 0;
}

static int write_head(const struct prepare_opts *o, unsigned i, struct buf *b, struct err *e)
{
	struct buf agent = { 0 }, bearer = { 0 }, target = { 0 };
	struct url url;
	int rc;

	if (url_parse(str_of(o->base_url[i]), &url, e) < 0)
		return -1;
	if (o->api_key && strpbrk(o->api_key, "\r\n"))
		return err_set(e, ERR_RUN, "the API key in the environment holds a line break");
	buf_add_str(&target, url.path);
	buf_add_text(&target, o->path);
	buf_add_text(b, "POST ");
	/* A plain request through a proxy names the whole URL (RFC 9112, 3.2.2). */
	if (o->proxy[i] && !url.is_tls)
		buf_printf(b, "%s%s", o->base_url[i], o->path);
	else
		url_add_target(b, buf_str(&target));
	buf_release(&target);
	buf_add_text(b, " HTTP/1.1\r\n");
	if (!is_overridden(o, "Host")) {
		buf_add_text(b, "Host: ");
		url_add_host(b, &url);
		buf_add_text(b, "\r\n");
	}
	buf_printf(&agent, "profllm/%s", o->version);
	add_default(o, b, "User-Agent", agent.data);
	add_default(o, b, "Accept", "*/*");
	add_default(o, b, "Accept-Encoding", "identity");
	if (o->api_key && o->key_header) {
		add_default(o, b, o->key_header, o->api_key);
	} else if (o->api_key) {
		buf_printf(&bearer, "Bearer %s", o->api_key);
		add_default(o, b, "Authorization", bearer.data);
	}
	add_api_headers(o, b);
	rc = add_user_headers(o, b, e);
	buf_release(&agent);
	buf_release(&bearer);
	return rc;
}

/* A plan longer than its workload sends samples, or sessions, again. */
static bool is_repeated(const struct plan *plan, uint32_t i, const struct workload *w)
{
	uint32_t session = plan->entry[i].session;

	if (w->sessions && session != PLAN_NONE)
		return session >= w->sessions->n_sessions;
	return i >= w->n;
}

void prepare_request_id(const char *prefix, const struct plan *plan, uint32_t i,
			const struct workload *w, struct buf *out)
{
	const struct sample *s = &w->v[plan->entry[i].sample];

	if (s->request_id.n && is_repeated(plan, i, w))
		buf_printf(out, "%s%u", prefix, i);
	else
		buf_add_str(out, s->request_id);
}

void prepare_session_id(const struct plan *plan, uint32_t i, const struct workload *w,
			struct buf *out)
{
	const struct sessions *s = w->sessions;
	uint32_t session = plan->entry[i].session;

	if (!s || session == PLAN_NONE)
		return;
	buf_add_str(out, s->session[session % s->n_sessions].id);
	if (session >= s->n_sessions)
		buf_printf(out, "-%u", session / (uint32_t)s->n_sessions);
}

/* Headers by which a router keeps a session together. */
static void add_session_headers(const struct prepare_opts *o, const struct plan *plan, uint32_t i,
				const struct workload *w, struct buf *out)
{
	struct buf id = { 0 };
	struct str token = { 0 };

	if (o->history && o->token_header)
		token = history_token(o->history, i);
	if (o->session_header)
		prepare_session_id(plan, i, w, &id);
	if (id.len && !is_users(o, o->session_header))
		buf_printf(out, "%s: %s\r\n", o->session_header, id.data);
	if (token.n)
		buf_printf(out, "%s: %.*s\r\n", o->token_header, (int)token.n, token.p);
	buf_release(&id);
}

static size_t head_room(const struct prepare_opts *o, const struct str *head)
{
	size_t room = 0;

	for (unsigned i = 0; i < o->n_urls; i++)
		room = head[i].n > room ? head[i].n : room;
	return room;
}

static void add_room(struct buf *out, size_t n)
{
	while (n--)
		buf_add_char(out, ' ');
}

static int omit(const struct prepare_opts *o, struct encoded *made, struct err *e)
{
	struct buf body = { 0 };
	int rc = body_omit(buf_str(&made->body), o->omit, o->n_omit, &body, e);

	buf_release(&made->body);
	made->body = body;
	return rc;
}

int prepare_request(const struct prepare_opts *o, const struct str *head, const struct plan *plan,
		    uint32_t i, const struct workload *w, struct encoded *scratch, struct buf *out,
		    struct err *e)
{
	const struct plan_entry *entry = &plan->entry[i];
	struct encode_opts encode = o->encode;
	struct sample sent = w->v[entry->sample];
	struct buf id = { 0 }, salted = { 0 }, messages = { 0 };
	uint32_t first = i;
	int rc;

	if (!o->is_without_ids)
		prepare_request_id(o->request_id_prefix, plan, i, w, &id);
	sent.request_id = buf_str(&id);
	if (o->history && entry->history != PLAN_NONE) {
		history_messages(o->history, i, &messages);
		sent.messages = buf_str(&messages);
	}
	while (plan->entry[first].history != PLAN_NONE)
		first = plan->entry[first].history; /* whose salt the conversation begins with */
	if (o->salt && (is_repeated(plan, i, w) || o->salt_round))
		salt_again(o->salt, plan->entry[first].sample, o->salt_round, first, &sent,
			   &salted);
	if (o->lora && entry->lora != PLAN_NO_LORA)
		encode.model = str_of(o->lora[entry->lora]);
	buf_reset(&scratch->body);
	buf_reset(out);
	if (o->is_rehosted)
		add_room(out, head_room(o, head));
	else
		buf_add_str(out, head[entry->endpoint]);
	rc = o->endpoint->encode(o->endpoint, &encode, &sent, scratch, e);
	if (rc == 0 && o->n_omit)
		rc = omit(o, scratch, e);
	add_default(o, out, "Content-Type", *scratch->content_type ? scratch->content_type
								    : "application/json");
	if (sent.request_id.n)
		buf_printf(out, "x-request-id: %.*s\r\n", (int)sent.request_id.n, sent.request_id.p);
	add_session_headers(o, plan, i, w, out);
	buf_printf(out, "Content-Length: %zu\r\n\r\n", scratch->body.len);
	buf_add_str(out, buf_str(&scratch->body));
	buf_release(&id);
	buf_release(&salted);
	buf_release(&messages);
	return rc;
}

/* ---- requests that are made when they are due ---- */

struct on_demand {
	struct prepare_opts opts;
	const struct str *head;
	const struct plan *plan;
	const struct workload *w;
};

static int make_now(void *self, uint32_t entry, struct buf *request, struct err *e)
{
	struct on_demand *d = self;
	struct encoded scratch = { 0 };
	int rc = prepare_request(&d->opts, d->head, d->plan, entry, d->w, &scratch, request, e);

	buf_release(&scratch.body);
	return rc;
}

static int note_ended(void *self, uint32_t entry, const struct request_row *row, struct str head,
		      struct str calls, struct err *e)
{
	struct on_demand *d = self;

	return history_ended(d->opts.history, entry, row, head, calls, e);
}

static void make_on_demand(const struct prepare_opts *o, const struct str *head,
			   const struct plan *plan, const struct workload *w,
			   struct prepared *out)
{
	struct on_demand *d = mem_alloc(sizeof(*d));

	*d = (struct on_demand){ *o, head, plan, w };
	out->build_self = d;
	out->build = make_now;
	out->build_free = free;
	out->ended = note_ended;
}

/* Whether a request can only be made when what it waits for has ended. */
static bool needs_answers(const struct prepare_opts *o, const struct plan_entry *entry)
{
	return entry->history != PLAN_NONE || (o->token_header && plan_before(entry) != PLAN_NONE);
}

static uint64_t text_bytes(const struct plan *plan, const struct workload *w)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < plan->n; i++) {
		const struct sample *s = &w->v[plan->entry[i].sample];

		bytes += s->prompt.n + s->messages.n + s->media.n + s->file.n;
	}
	return bytes;
}

int prepare(const struct prepare_opts *o, const struct plan *plan, const struct workload *w,
	    struct prepared *out, struct err *e)
{
	struct encoded scratch = { 0 };
	struct buf text = { 0 };
	struct str *head;
	bool is_large = text_bytes(plan, w) > (o->bytes_max ? o->bytes_max : PREPARED_BYTES_MAX);
	int rc = 0;

	*out = (struct prepared){ .n = plan->n };
	head = arena_alloc(&out->arena, o->n_urls * sizeof(*head));
	out->request = mem_array(plan->n, sizeof(*out->request));
	for (unsigned i = 0; rc == 0 && i < o->n_urls; i++) {
		buf_reset(&text);
		rc = write_head(o, i, &text, e);
		head[i] = arena_str(&out->arena, buf_str(&text));
	}
	if (rc == 0 && o->is_rehosted) {
		out->head = head;
		out->head_room = head_room(o, head);
	}
	if (rc == 0 && o->history) {
		make_on_demand(o, head, plan, w, out);
	} else if (rc == 0 && is_large) {
		out->build_self = lookahead_new(o, head, plan, w, e);
		out->build = lookahead_take;
		out->build_free = lookahead_free;
		rc = out->build_self ? 0 : -1;
	}
	for (uint32_t i = 0; rc == 0 && !is_large && i < plan->n; i++) {
		if (o->history && needs_answers(o, &plan->entry[i]))
			continue;
		rc = prepare_request(o, head, plan, i, w, &scratch, &text, e);
		if (rc == 0)
			out->request[i] = arena_str(&out->arena, buf_str(&text));
	}
	buf_release(&scratch.body);
	buf_release(&text);
	arena_seal(&out->arena); /* while load runs nothing is allocated here */
	if (rc < 0)
		prepared_release(out);
	return rc;
}

void prepared_release(struct prepared *p)
{
	if (p->build_free)
		p->build_free(p->build_self);
	free(p->request);
	arena_release(&p->arena);
	*p = (struct prepared){ 0 };
}

static const char *environment(const char *upper, const char *lower)
{
	const char *v = lower ? getenv(lower) : NULL;

	if (!v || !*v)
		v = getenv(upper);
	return v && *v ? v : NULL;
}

const char *prepare_api_key(const struct endpoint *ep, const struct point_env *env,
			    bool is_given, const char **header)
{
	const char *own = NULL;

	if (ep->key_variable && !is_given)
		own = environment(ep->key_variable, NULL);
	*header = own ? ep->key_header : NULL;
	return own ? own : env->api_key;
}

void point_env_read(struct point_env *env)
{
	*env = (struct point_env){
		.api_key = environment("OPENAI_API_KEY", NULL),
		.http_proxy = environment("HTTP_PROXY", "http_proxy"),
		.https_proxy = environment("HTTPS_PROXY", "https_proxy"),
		.all_proxy = environment("ALL_PROXY", "all_proxy"),
		.no_proxy = environment("NO_PROXY", "no_proxy"),
	};
}

const char *prepare_proxy(const struct point_env *env, const char *text)
{
	const char *proxy;
	struct url url;

	if (url_parse(str_of(text), &url, NULL) < 0 || url.is_unix)
		return NULL;
	proxy = url.is_tls ? env->https_proxy : env->http_proxy;
	if (!proxy)
		proxy = env->all_proxy;
	if (!proxy || (env->no_proxy && url_is_proxy_exempt(&url, str_of(env->no_proxy))))
		return NULL;
	return proxy;
}
