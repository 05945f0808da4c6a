/* SPDX-License-Identifier: Apache-2.0 */
/* prepare.c - see prepare.h. */
#include "bench/serve/prepare.h"

#include <assert.h>
#include <pthread.h>

#include "client/http/head.h"
#include "client/http/url.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/json/read.h"

static bool is_users(const struct prepare_opts *o, const char *name)
{
	for (size_t i = 0; i < o->n_headers; i++)
		if (str_eq_nocase(str_of(o->header[i].key), str_of(name)))
			return true;
	return false;
}

/* Whether --header or the API's own headers set it. */
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

/* Whether our own request id replaces this header. */
static bool is_id(const struct prepare_opts *o, const char *name)
{
	return !o->is_without_ids && str_eq_nocase(str_of(name), STR("x-request-id"));
}

/* Adds the headers that the API requires, unless --header sets them. */
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

/*
 * Appends the id of entry i's session: the workload's, with a number where a plan longer than the
 * workload sends sessions again. Nothing for an entry without one.
 */
static void prepare_session_id(const struct plan *plan, uint32_t i, const struct workload *w,
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

/* Adds the headers by which a router keeps a session on one server. */
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

static int omit(const struct prepare_opts *o, struct encoded *made, struct err *e)
{
	struct buf body = { 0 };
	int rc = body_omit(buf_str(&made->body), o->omit, o->n_omit, &body, e);

	buf_release(&made->body);
	made->body = body;
	return rc;
}

/* ---- headers of one request ---- */

struct own_headers {
	struct arena arena;
	struct json_value *object; /* NULL: none */
};

static struct str own_value(const struct own_headers *h, struct str name)
{
	for (size_t i = 0; h->object && i < h->object->count; i++)
		if (str_eq_nocase(h->object->key[i], name))
			return json_text(&h->object->item[i], STR(""));
	return (struct str){ 0 };
}

/* Adds the head that all requests to a URL share, without the lines that this one sets itself. */
static int add_head(const struct prepare_opts *o, struct str head, const struct own_headers *h,
		    struct buf *out, struct err *e)
{
	size_t room = out->len;

	while (head.n) {
		struct str line = str_cut(&head, '\n'), rest = line, name = str_cut(&rest, ':');
		bool is_replaced = rest.n && own_value(h, name).p;

		if (is_replaced && o->is_rehosted)
			return err_set(e, ERR_USAGE, "the header %.*s of a request takes the place of one that "
				       "all requests have, which --balance least-loaded does not allow",
				       (int)name.n, name.p);
		if (is_replaced)
			continue;
		buf_add_str(out, line);
		buf_add_char(out, '\n');
	}
	if (o->is_rehosted)
		out->len = room;
	return 0;
}

static void add_own(const struct own_headers *h, struct buf *out)
{
	for (size_t i = 0; h->object && i < h->object->count; i++) {
		struct str name = h->object->key[i], value = json_text(&h->object->item[i], STR(""));

		buf_printf(out, "%.*s: ", (int)name.n, name.p);
		buf_add_str(out, value);
		buf_add_text(out, "\r\n");
	}
}

/* Writes the lines before the body's own. */
static int write_lines(const struct prepare_opts *o, const struct str *head,
		       const struct plan_entry *entry, const struct own_headers *own,
		       struct buf *out, struct err *e)
{
	for (size_t n = o->is_rehosted ? head_room(o, head) : 0; n; n--)
		buf_add_char(out, ' ');
	if (own->object) {
		if (add_head(o, head[entry->endpoint], own, out, e) < 0)
			return -1;
		add_own(own, out);
	} else if (!o->is_rehosted) {
		buf_add_str(out, head[entry->endpoint]);
	}
	return 0;
}

/* Every byte of entry i's request; head is shared, scratch the caller's. Thread-safe. */
static int prepare_request(const struct prepare_opts *o, const struct str *head,
			   const struct plan *plan, uint32_t i, const struct workload *w,
			   struct encoded *scratch, struct buf *out, struct err *e)
{
	const struct plan_entry *entry = &plan->entry[i];
	struct encode_opts encode = o->encode;
	struct sample sent = w->v[entry->sample];
	struct buf id = { 0 }, salted = { 0 }, messages = { 0 };
	struct own_headers own = { 0 };
	uint32_t first = i;
	int rc = sent.headers.n ? json_parse(&own.arena, sent.headers, &own.object, e) : 0;

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
	if (rc == 0)
		rc = write_lines(o, head, entry, &own, out, e);
	if (rc == 0)
		rc = o->endpoint->encode(o->endpoint, &encode, &sent, scratch, e);
	if (rc == 0 && o->n_omit)
		rc = omit(o, scratch, e);
	if (!own_value(&own, STR("Content-Type")).p)
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
	arena_release(&own.arena);
	return rc;
}

/* Whether another process sends it. */
static bool is_skipped(const struct prepare_opts *o, const struct plan *plan, uint32_t i)
{
	return o->elsewhere && o->elsewhere[plan_root(plan, i)];
}

/*
 * ---- look-ahead: slot i % LOOKAHEAD_SLOTS holds entry i from when it is made until it is taken;
 * the lock guards the slots' states only. ----
 */

#define LOOKAHEAD_SLOTS 1024

enum slot_state { SLOT_FREE, SLOT_READY, SLOT_FAILED };

struct look_slot {
	enum slot_state state;
	uint32_t entry;
	struct buf request;
};

struct lookahead {
	struct prepare_opts opts;
	const struct str *head;
	const struct plan *plan;
	const struct workload *w;
	struct look_slot slot[LOOKAHEAD_SLOTS];
	struct err err;
	bool is_stopped;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
};

/* Waits until entry i's slot is free; false when there is nothing left to do. */
static bool wait_free(struct lookahead *l, struct look_slot *s)
{
	bool is_stopped;

	pthread_mutex_lock(&l->lock);
	while (s->state != SLOT_FREE && !l->is_stopped)
		pthread_cond_wait(&l->changed, &l->lock);
	is_stopped = l->is_stopped;
	pthread_mutex_unlock(&l->lock);
	return !is_stopped;
}

static void publish(struct lookahead *l, struct look_slot *s, uint32_t entry, enum slot_state state)
{
	pthread_mutex_lock(&l->lock);
	s->entry = entry;
	s->state = state;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
}

static void *make_all(void *self)
{
	struct lookahead *l = self;
	struct encoded scratch = { 0 };
	size_t read = 0; /* since texts were last forgotten */

	for (uint32_t i = 0; i < l->plan->n; i++) {
		struct look_slot *s = &l->slot[i % LOOKAHEAD_SLOTS];
		struct err e = { 0 };
		enum slot_state state = SLOT_READY;

		if (is_skipped(&l->opts, l->plan, i))
			continue;
		if (!wait_free(l, s))
			break;
		if (prepare_request(&l->opts, l->head, l->plan, i, l->w, &scratch, &s->request,
				    &e) < 0) {
			if (!l->err.code) /* said once: others may be reading it */
				l->err = e;
			state = SLOT_FAILED;
		}
		read += s->request.len;
		publish(l, s, i, state); /* from here on the slot is the taker's */
		if (read > WORKLOAD_FORGET_BYTES) {
			workload_forget(l->w);
			read = 0;
		}
	}
	buf_release(&scratch.body);
	return NULL;
}

static struct lookahead *lookahead_new(const struct prepare_opts *o, const struct str *head,
				const struct plan *plan, const struct workload *w,
				struct err *e)
{
	struct lookahead *l = mem_alloc(sizeof(*l));

	l->opts = *o;
	l->head = head;
	l->plan = plan;
	l->w = w;
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->changed, NULL);
	if (pthread_create(&l->thread, NULL, make_all, l) == 0)
		return l;
	err_set(e, ERR_LIMIT, "cannot start the thread that prepares requests");
	free(l);
	return NULL;
}

static void lookahead_free(void *look_ahead)
{
	struct lookahead *l = look_ahead;

	if (!l)
		return;
	pthread_mutex_lock(&l->lock);
	l->is_stopped = true;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
	pthread_join(l->thread, NULL);
	for (size_t i = 0; i < LOOKAHEAD_SLOTS; i++)
		buf_release(&l->slot[i].request);
	pthread_mutex_destroy(&l->lock);
	pthread_cond_destroy(&l->changed);
	free(l);
}

static int lookahead_take(void *self, uint32_t entry, struct buf *request, struct err *e)
{
	struct lookahead *l = self;
	struct look_slot *s = &l->slot[entry % LOOKAHEAD_SLOTS];
	int rc = 0;

	assert(entry < l->plan->n);

	pthread_mutex_lock(&l->lock);
	while (s->state == SLOT_FREE || s->entry != entry)
		pthread_cond_wait(&l->changed, &l->lock);
	if (s->state == SLOT_FAILED) {
		*e = l->err;
		rc = -1;
	}
	pthread_mutex_unlock(&l->lock);
	/* Still ours until published as free: no other thread takes this entry. */
	buf_add_str(request, buf_str(&s->request));
	publish(l, s, entry, SLOT_FREE);
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

/* Whether a request can only be made after the requests that it depends on have ended. */
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
		if ((o->history && needs_answers(o, &plan->entry[i])) || is_skipped(o, plan, i))
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
