/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote.c - see remote.h: requests to other servers, on the server's own loop.
 *
 * Does not use load/ or fetch/: a simulator that shares the client's code cannot check it, and
 * libcurl would need its own loop.
 */
#include "sim/serving/remote.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/random.h>

#include "client/http/url.h"
#include "core/base/clock.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/json/write.h"
#include "sim/serving/serving.h"

/* "http://HOST:PORT", or "lm://HOST:PORT" as cache servers are named. option: for errors. */
static int peer_parse(struct peer *p, const char *option, const char *url, struct err *e)
{
	struct sock_addr addr[SOCK_ADDRS_MAX];
	struct str text = str_of(url);
	struct buf whole = { 0 };
	struct url u;
	int rc = -1;

	if (str_starts(text, STR("lm://")))
		buf_printf(&whole, "http://%s", url + 5);
	else
		buf_add_str(&whole, text);
	if (url_parse(buf_str(&whole), &u, e) < 0) {
		err_wrap(e, "%s", option);
	} else if (u.is_tls || u.is_unix || (u.path.n && !str_is(u.path, "/"))) {
		err_set(e, ERR_USAGE, "%s: expected http://HOST:PORT, got %.200s", option, url);
	} else if (sock_resolve(u.host, u.port, addr, e) < 0) {
		err_wrap(e, "%s", option);
	} else {
		p->addr = addr[0];
		snprintf(p->authority, sizeof(p->authority), strchr(u.host, ':') ? "[%s]:%u" : "%s:%u",
			 u.host, u.port);
		rc = 0;
	}
	buf_release(&whole);
	return rc;
}

/* Head of a request of ours; more: further header lines with their CRLF, or "". */
static void call_write_head(struct buf *out, struct str method, struct str target,
			    const struct peer *to, size_t body_bytes, const char *more)
{
	buf_printf(out, "%.*s %.*s HTTP/1.1\r\nHost: %s\r\n", (int)method.n, method.p,
		   (int)target.n, target.p, to->authority);
	if (body_bytes || !str_is(method, "GET"))
		buf_printf(out, "Content-Length: %zu\r\n", body_bytes);
	buf_printf(out, "%sConnection: close\r\n\r\n", more);
}

static void shut(struct remote_call *c)
{
	if (!c->is_active)
		return;
	c->is_active = false;
	loop_timer_cancel(c->loop, &c->deadline);
	if (c->watch.fd >= 0) {
		loop_unwatch(c->loop, &c->watch);
		sock_close(c->watch.fd);
	}
	buf_release(&c->in);
	buf_release(&c->out);
}

/* Ends a call without calling its hooks. Accepts an idle one; frees its memory. */
static void call_cancel(struct remote_call *c)
{
	shut(c);
}

static void end(struct remote_call *c, const char *failure)
{
	shut(c);
	c->done(c, failure);
}

/* False: it has ended. */
static bool take(struct remote_call *c, struct str *in)
{
	struct str part;
	struct err e = { 0 };

	for (;;) {
		switch (http_response_next(&c->response, in, &part, &e)) {
		case HTTP_NEED:
			return true;
		case HTTP_HEAD:
			c->status = c->response.status;
			if (c->head)
				c->head(c, part);
			break;
		case HTTP_BODY:
			if (c->body)
				c->body(c, part);
			break;
		case HTTP_END:
			end(c, NULL);
			return false;
		case HTTP_BAD:
			end(c, e.text);
			return false;
		}
		if (!c->is_active) /* cancelled by a hook */
			return false;
	}
}

static void on_input(struct remote_call *c)
{
	char bytes[READ_BYTES];
	int64_t stamp = 0;
	ssize_t n = sock_recv(c->watch.fd, bytes, sizeof(bytes), &stamp);
	struct str in;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		bool is_whole = n == 0 && c->status && http_response_eof(&c->response, NULL) == 0;

		end(c, is_whole ? NULL : "the connection ended early");
		return;
	}
	c->stamp_ns = stamp ? stamp : clock_real_ns();
	buf_add(&c->in, bytes, (size_t)n);
	in = buf_str(&c->in);
	if (take(c, &in))
		buf_cut(&c->in, c->in.len - in.n);
}

/* Sends what the kernel accepts. False: the call has ended. */
static bool on_output(struct remote_call *c)
{
	ssize_t n;

	if (!c->is_connected) {
		int error = sock_connect_result(c->watch.fd);

		if (error) {
			end(c, strerror(error));
			return false;
		}
		c->is_connected = true;
	}
	if (!c->sent_ns)
		c->sent_ns = clock_real_ns();
	n = sock_send(c->watch.fd, buf_str(&c->out));
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		end(c, strerror(errno));
		return false;
	}
	if (n > 0)
		buf_cut(&c->out, (size_t)n);
	if (c->out.len == 0)
		loop_rewatch(c->loop, &c->watch, EPOLLIN);
	return true;
}

static void on_ready(struct watch *w, uint32_t events)
{
	struct remote_call *c =
		(struct remote_call *)((char *)w - offsetof(struct remote_call, watch));

	if (events & (EPOLLOUT | EPOLLERR) && c->out.len && !on_output(c))
		return;
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		on_input(c);
}

static void on_deadline(struct timer *t)
{
	struct remote_call *c =
		(struct remote_call *)((char *)t - offsetof(struct remote_call, deadline));

	end(c, c->failure[0] ? c->failure : "no answer in time");
}

/* request: head and body, copied. Set the hooks before; none is called before it returns. */
static void call_begin(struct remote_call *c, struct loop *l, const struct peer *to,
		       struct str request, int64_t timeout_ns)
{
	struct err e = { 0 };

	assert(!c->is_active && c->done);
	c->loop = l;
	c->response = (struct http_response){ 0 };
	c->sent_ns = c->stamp_ns = 0;
	c->status = 0;
	c->is_active = true;
	c->is_connected = false;
	c->in = c->out = (struct buf){ 0 };
	c->deadline = (struct timer){ .on_time = on_deadline };
	c->watch = (struct watch){ .events = EPOLLIN | EPOLLOUT, .on_ready = on_ready };
	c->watch.fd = sock_connect(&to->addr, true, &e);
	if (c->watch.fd >= 0 && loop_watch(l, &c->watch, &e) < 0) {
		sock_close(c->watch.fd);
		c->watch.fd = -1;
	}
	/* Reported from the loop like any other end. */
	snprintf(c->failure, sizeof(c->failure), "%.120s", c->watch.fd < 0 ? e.text : "");
	buf_add_str(&c->out, request);
	loop_timer_set(l, &c->deadline, clock_mono_ns() + (c->watch.fd < 0 ? 0 : timeout_ns));
}

#define PREFILLED "___prefill_addr_" /* in the id of a request that a prefill server has seen */
#define NAME_DIGITS 16
#define CACHE_TIMEOUT_NS 5000000000

/* A transfer to the cache server; its outcome is ignored. */
struct kv_put {
	struct kv *kv;
	struct kv_put *next;
	struct remote_call call;
};

int kv_init(struct kv *k, const struct kv_opts *o, struct err *e)
{
	*k = (struct kv){ .opts = o, .token_ns = o->us_per_token * 1e3 };
	if (o->host_tokens > 0)
		prefix_init(&k->host, (size_t)o->host_tokens);
	k->is_on = !o->is_cache_server &&
		   (o->role == KV_CONSUMER || o->role == KV_BOTH || o->is_decode_bench ||
		    o->host_tokens > 0 || o->cache_url);
	return o->cache_url ? peer_parse(&k->cache, "--kv-cache-url", o->cache_url, e) : 0;
}

void kv_release(struct kv *k)
{
	while (k->puts) {
		struct kv_put *p = k->puts;

		k->puts = p->next;
		call_cancel(&p->call);
		free(p);
	}
	prefix_release(&k->host);
	*k = (struct kv){ 0 };
}

bool kv_wants_names(const struct kv *k)
{
	return k->is_on && (k->host.cap > 0 || k->opts->cache_url);
}

/* ---- bringing ---- */

static void on_brought(struct timer *t)
{
	struct conn *c = (struct conn *)((char *)t - offsetof(struct conn, stream.kv.timer));
	struct kv_wait *w = &c->stream.kv;

	w->is_waiting = false;
	if (c->stream.row && w->brought > w->local) {
		c->stream.row->transferred_tokens = w->brought - w->local;
		c->stream.row->transfer_ns = clock_mono_ns() - w->asked_ns;
	}
	stream_admit(c);
}

/* This many of its tokens need no computing; transfers those that its engine lacks. */
static void bring(struct conn *c, uint32_t tokens)
{
	struct kv *k = &c->sim->kv;
	struct kv_wait *w = &c->stream.kv;
	int64_t now = clock_mono_ns(), from = k->link_free_ns > now ? k->link_free_ns : now;
	double moved;

	w->brought = tokens;
	k->hits += tokens > w->local ? tokens - w->local : 0;
	if (tokens <= w->local) {
		w->is_waiting = false;
		stream_admit(c);
		return;
	}
	for (uint32_t i = 0; i < c->stream.choices; i++)
		c->stream.choice[i].seq.brought = tokens;
	moved = k->opts->is_decode_bench ? 0 : k->token_ns * (double)(tokens - w->local);
	k->link_free_ns = from + (int64_t)moved;
	w->timer.on_time = on_brought;
	loop_timer_set(c->sim->loop, &w->timer, k->link_free_ns);
}

/* A prompt's last token is always computed: the first one of the answer comes from it. */
static uint32_t most(const struct conn *c)
{
	return c->stream.form.prompt_tokens - 1;
}

static bool is_prefilled_elsewhere(const struct conn *c)
{
	enum kv_role role = c->sim->kv.opts->role;
	struct str head = buf_str(&c->head), id = http_head_value(head, "x-request-id");

	if (role != KV_CONSUMER && role != KV_BOTH)
		return false;
	/* A proxy tells the prefill server the destination of the result. */
	return id.n && memmem(id.p, id.n, PREFILLED, sizeof(PREFILLED) - 1) &&
	       !http_head_value(head, "x-kv-target").n;
}

static void on_cache_body(struct remote_call *call, struct str part)
{
	struct conn *c = (struct conn *)((char *)call - offsetof(struct conn, stream.kv.call));

	struct kv_wait *w = &c->stream.kv;
	size_t room = sizeof(w->answer) - w->answered, n = part.n < room ? part.n : room;

	memcpy(w->answer + w->answered, part.p, n);
	w->answered += n;
}

static void on_cache_done(struct remote_call *call, const char *failure)
{
	struct conn *c = (struct conn *)((char *)call - offsetof(struct conn, stream.kv.call));
	struct kv_wait *w = &c->stream.kv;
	struct str answer = str_trim((struct str){ w->answer, w->answered });
	uint64_t blocks = 0, tokens = w->brought;

	/* A cache that does not answer counts as empty. */
	if (!failure && call->status == 200 && str_to_u64(answer, &blocks) &&
	    blocks <= c->stream.choice->hold.n && blocks * PREFIX_BLOCK_TOKENS > tokens)
		tokens = blocks * PREFIX_BLOCK_TOKENS;
	bring(c, tokens < most(c) ? (uint32_t)tokens : most(c));
}

static void add_names(const struct prefix_pins *h, struct buf *out)
{
	for (size_t i = 0; i < h->n; i++)
		buf_printf(out, "%016" PRIx64 "\n", h->hash[i]);
}

static void cache_request(struct sim *s, const char *path, const struct prefix_pins *h,
			  struct buf *out)
{
	struct buf names = { 0 };

	add_names(h, &names);
	call_write_head(out, STR("POST"), str_of(path), &s->kv.cache, names.len,
			"Content-Type: text/plain\r\n");
	buf_add_str(out, buf_str(&names));
	buf_release(&names);
}

static void ask_cache(struct conn *c)
{
	struct kv_wait *w = &c->stream.kv;
	struct buf request = { 0 };

	w->call.body = on_cache_body;
	w->call.done = on_cache_done;
	cache_request(c->sim, "/kv/look", &c->stream.choice->hold, &request);
	call_begin(&w->call, c->sim->loop, &c->sim->kv.cache, buf_str(&request), CACHE_TIMEOUT_NS);
	buf_release(&request);
}

void kv_begin(struct conn *c)
{
	struct sim_stream *t = &c->stream;
	struct kv *k = &c->sim->kv;
	const struct sim_choice *x = t->choice;
	const struct prefix_cache *own = &x->lane->prefix;
	bool is_named = x->seq.hold || kv_wants_names(k);
	size_t held;

	t->kv = (struct kv_wait){ .asked_ns = clock_mono_ns(), .is_waiting = true };
	if (x->seq.hold)
		t->kv.local = prefix_match(own, x->seq.hold, &held);
	k->queries += t->form.prompt_tokens;
	if (k->opts->is_decode_bench || is_prefilled_elsewhere(c)) {
		bring(c, most(c));
		return;
	}
	t->kv.brought = t->kv.local;
	if (is_named && k->host.cap) {
		uint32_t known = prefix_match(&k->host, &x->hold, &held);

		t->kv.brought = known > t->kv.brought ? known : t->kv.brought;
	}
	if (t->kv.brought > most(c))
		t->kv.brought = most(c);
	if (k->opts->cache_url && is_named && x->hold.n * PREFIX_BLOCK_TOKENS > t->kv.brought)
		ask_cache(c);
	else
		bring(c, t->kv.brought);
}

void kv_cancel(struct conn *c)
{
	struct kv_wait *w = &c->stream.kv;

	if (!w->is_waiting)
		return;
	w->is_waiting = false;
	loop_timer_cancel(c->sim->loop, &w->timer);
	call_cancel(&w->call);
}

/* ---- keeping ---- */

static void on_put(struct remote_call *call, const char *failure)
{
	struct kv_put *p = (struct kv_put *)((char *)call - offsetof(struct kv_put, call)), **at;

	(void)failure;
	for (at = &p->kv->puts; *at != p; at = &(*at)->next)
		;
	*at = p->next;
	free(p);
}

static void put_to_cache(struct conn *c)
{
	struct kv *k = &c->sim->kv;
	struct kv_put *p = mem_alloc(sizeof(*p));
	struct buf request = { 0 };

	p->kv = k;
	p->next = k->puts;
	k->puts = p;
	p->call.done = on_put;
	cache_request(c->sim, "/kv/keep", &c->stream.choice->hold, &request);
	call_begin(&p->call, c->sim->loop, &k->cache, buf_str(&request), CACHE_TIMEOUT_NS);
	buf_release(&request);
}

void kv_keep(struct conn *c)
{
	struct sim_stream *t = &c->stream;
	const struct prefix_pins *h = &t->choice->hold;
	struct kv *k = &c->sim->kv;

	if (t->kv.is_kept || !kv_wants_names(k) || h->n == 0)
		return;
	t->kv.is_kept = true;
	prefix_insert(&k->host, h->hash, h->n);
	/* Blocks that came from the cache server are not sent back. */
	if (k->opts->cache_url && h->n * PREFIX_BLOCK_TOKENS > t->kv.brought)
		put_to_cache(c);
}

/* ---- a cache server's paths ---- */

/* Names in the order of the lines; false: malformed. The caller frees. */
static bool names_read(struct str body, uint64_t **out, size_t *n)
{
	*out = mem_array(body.n / (NAME_DIGITS + 1) + 1, sizeof(**out));
	for (*n = 0; body.n; ++*n) {
		struct str line = str_cut(&body, '\n');
		uint64_t name = 0;

		for (size_t i = 0; i < line.n; i++) {
			int digit = str_hex(line.p[i]);

			if (digit < 0)
				return false;
			name = name << 4 | (unsigned)digit;
		}
		if (line.n != NAME_DIGITS)
			return false;
		(*out)[*n] = name;
	}
	return true;
}

void kv_serve_look(struct conn *c, struct str body)
{
	struct kv *k = &c->sim->kv;
	struct prefix_pins names = { 0 };
	char text[32];
	size_t held, known;
	int n;

	if (names_read(body, &names.hash, &names.n)) {
		known = prefix_match(&k->host, &names, &held) / PREFIX_BLOCK_TOKENS;
		k->queries += names.n * PREFIX_BLOCK_TOKENS;
		k->hits += known * PREFIX_BLOCK_TOKENS;
		n = snprintf(text, sizeof(text), "%zu\n", known);
		route_answer(c, 200, "text/plain", (struct str){ text, (size_t)n });
	} else {
		route_error(c, 400, NULL, "expected names of blocks, 16 hexadecimal digits a line");
	}
	free(names.hash);
}

void kv_serve_keep(struct conn *c, struct str body)
{
	uint64_t *hash;
	size_t n;

	if (names_read(body, &hash, &n)) {
		prefix_insert(&c->sim->kv.host, hash, n);
		route_answer(c, 200, NULL, (struct str){ 0 });
	} else {
		route_error(c, 400, NULL, "expected names of blocks, 16 hexadecimal digits a line");
	}
	free(hash);
}

struct peers {
	struct peer *peer;
	size_t n, next;
};

struct proxy {
	const struct proxy_opts *opts;
	struct peers prefill, decode, backend;
	uint64_t seed, count; /* of the ids */
};

enum leg { LEG_PREFILL, LEG_DECODE, LEGS };

struct leg_truth {
	const struct peer *peer; /* NULL: not gone to */
	int64_t sent_ns, first_ns, end_ns;
	unsigned status;
};

struct forward {
	struct conn *conn;
	struct remote_call call;
	enum leg leg;
	struct buf body;         /* original body, for the decode server */
	struct buf request;      /* being built */
	struct buf refusal;      /* of the prefill server */
	char id[REQUEST_ID_MAX + 1];
	const struct peer *peer[LEGS];
	struct leg_truth truth[LEGS];
	int64_t recv_ns, end_ns;
	int64_t *send_ns;
	size_t sends;
	unsigned status;
	bool is_head_sent;
	bool is_reported;            /* has its line in the truth file */
};

/* ---- set up ---- */

static int peers_read(struct peers *p, const char *option, const char *const *url, size_t n,
		      struct err *e)
{
	p->peer = mem_array(n ? n : 1, sizeof(*p->peer));
	for (p->n = 0; p->n < n; p->n++)
		if (peer_parse(&p->peer[p->n], option, url[p->n], e) < 0)
			return -1;
	return 0;
}

struct proxy *proxy_new(const struct proxy_opts *o, struct err *e)
{
	struct proxy *p = mem_alloc(sizeof(*p));

	p->opts = o;
	if (getrandom(&p->seed, sizeof(p->seed), 0) < 0)
		p->seed = (uint64_t)clock_real_ns();
	if (!o->prefills != !o->decodes || (o->backends > 0) == (o->decodes > 0)) {
		err_set(e, ERR_USAGE, "--role proxy: expected --prefill-url and --decode-url, or "
			"--backend-url");
	} else if (peers_read(&p->prefill, "--prefill-url", o->prefill, o->prefills, e) == 0 &&
		   peers_read(&p->decode, "--decode-url", o->decode, o->decodes, e) == 0 &&
		   peers_read(&p->backend, "--backend-url", o->backend, o->backends, e) == 0) {
		return p;
	}
	proxy_free(p);
	return NULL;
}

void proxy_free(struct proxy *p)
{
	if (!p)
		return;
	free(p->prefill.peer);
	free(p->decode.peer);
	free(p->backend.peer);
	free(p);
}

static const struct peer *peer_next(struct peers *p)
{
	return p->n ? &p->peer[p->next++ % p->n] : NULL;
}

/* ---- what is forwarded ---- */

static bool is_generation(struct str path)
{
	return str_is(path, "/v1/completions") || str_is(path, "/v1/chat/completions");
}

/* Requests that change a server's state go to all servers. */
static bool is_control(struct str path)
{
	static const char *const paths[] = {
		"/start_profile", "/stop_profile", "/reset_prefix_cache", "/reset_mm_cache",
		"/reset_encoder_cache", "/sleep", "/wake_up",
	};

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		if (str_is(path, paths[i]))
			return true;
	return false;
}

/* The body with max_tokens 1. Passes on what is not a JSON object: the server refuses it. */
static void add_prefill_body(struct str body, struct buf *out)
{
	struct arena a = { 0 };
	struct json_value *v, one = { .kind = JSON_INT, .integer = 1, .raw = STR("1") };
	struct json_writer w = json_writer(out);

	if (json_parse(&a, body, &v, NULL) < 0 || v->kind != JSON_OBJECT) {
		buf_add_str(out, body);
		arena_release(&a);
		return;
	}
	w.is_raw_utf8 = true;
	json_begin_object(&w);
	for (size_t i = 0; i < v->count; i++) {
		bool is_limit = str_is(v->key[i], "max_tokens") ||
				str_is(v->key[i], "max_completion_tokens");

		json_key_str(&w, v->key[i]);
		json_put_value(&w, is_limit ? &one : &v->item[i]);
	}
	if (!json_get(v, "max_tokens"))
		json_member_int(&w, "max_tokens", 1);
	json_end_object(&w);
	arena_release(&a);
}

static void add_line(struct buf *out, const char *name, struct str value)
{
	if (value.n)
		buf_printf(out, "%s: %.*s\r\n", name, (int)value.n, value.p);
}

/* Headers that the backend servers need: authorization, content type. */
static void add_headers(const struct forward *f, struct buf *out)
{
	struct proxy *p = f->conn->sim->proxy;
	struct str head = buf_str(&f->conn->head);
	struct str given = http_head_value(head, "authorization");
	const char *key = getenv("OPENAI_API_KEY");

	add_line(out, "Content-Type", http_head_value(head, "content-type"));
	add_line(out, "Authorization", given);
	if (!given.n && key && *key)
		buf_printf(out, "Authorization: Bearer %s\r\n", key);
	add_line(out, "X-Request-Id", str_of(f->id));
	if (f->peer[LEG_PREFILL] && f->leg == LEG_PREFILL)
		buf_printf(out, "X-KV-Target: %s:%u\r\n", p->opts->kv_host, p->opts->decode_kv_port);
}

static void split_id(const struct proxy *p, uint64_t number, char id[REQUEST_ID_MAX + 1])
{
	snprintf(id, REQUEST_ID_MAX + 1, "___prefill_addr_%.80s:%u___decode_addr_%.80s:%u_%016" PRIx64
		 "%016" PRIx64, p->opts->kv_host, p->opts->prefill_kv_port, p->opts->kv_host,
		 p->opts->decode_kv_port, words_mix(p->seed ^ number),
		 words_mix(~p->seed + number));
}

/* ---- the end ---- */

static void leg_write(struct json_writer *w, const char *key, const struct leg_truth *t)
{
	json_key(w, key);
	if (!t->peer) {
		json_put_null(w);
		return;
	}
	json_begin_object(w);
	json_member_text(w, "url", t->peer->authority);
	json_member_int(w, "sent_ns", t->sent_ns);
	json_member_int(w, "first_ns", t->first_ns);
	json_member_int(w, "end_ns", t->end_ns);
	json_member_int(w, "status", t->status);
	json_end_object(w);
}

static void truth_write(const struct forward *f)
{
	struct sim *s = f->conn->sim;
	struct json_writer w = json_writer(&s->truth.sink.lines);
	struct str own = http_head_value(buf_str(&f->conn->head), "x-request-id");

	if (!s->truth.sink.path || !f->is_reported)
		return;
	json_begin_object(&w);
	json_key(&w, "request_id");
	if (own.n)
		json_put_str(&w, own);
	else
		json_put_null(&w);
	json_member_text(&w, "forwarded_id", f->id[0] ? f->id : NULL);
	json_member_int(&w, "recv_ns", f->recv_ns);
	leg_write(&w, "prefill", &f->truth[LEG_PREFILL]);
	leg_write(&w, "decode", &f->truth[LEG_DECODE]);
	json_member_array(&w, "send_ns");
	for (size_t i = 0; i < f->sends; i++)
		json_put_int(&w, f->send_ns[i]);
	json_end_array(&w);
	json_key(&w, "end_ns");
	if (f->end_ns)
		json_put_int(&w, f->end_ns);
	else
		json_put_null(&w);
	json_member_int(&w, "status", f->status);
	json_end_object(&w);
	buf_add_char(&s->truth.sink.lines, '\n');
	sim_flush_soon(s);
}

static void forward_free(struct conn *c)
{
	struct forward *f = c->forward;

	call_cancel(&f->call);
	buf_release(&f->body);
	buf_release(&f->request);
	buf_release(&f->refusal);
	free(f->send_ns);
	free(f);
	c->forward = NULL;
	c->sim->stream_count--;
}

void proxy_abort(struct conn *c)
{
	if (!c->forward)
		return;
	truth_write(c->forward);
	forward_free(c);
}

/* The answer is out, or cannot be any more. */
static void forward_over(struct forward *f)
{
	struct conn *c = f->conn;

	truth_write(f);
	forward_free(c);
	conn_settle(c);
}

static void forward_fail(struct forward *f, unsigned status, const char *what, const char *why)
{
	struct err e = { 0 };

	/* Half an answer cannot become an error any more: its end is missing. */
	if (f->is_head_sent) {
		conn_drop(f->conn);
	} else {
		err_set(&e, ERR_RUN, "%s: %s", what, why);
		f->status = status;
		f->end_ns = clock_real_ns();
		route_error(f->conn, status, NULL, e.text);
	}
	forward_over(f);
}

/* ---- what comes back ---- */

static struct forward *of(struct remote_call *c)
{
	return (struct forward *)((char *)c - offsetof(struct forward, call));
}

static void leg_note(struct forward *f)
{
	struct leg_truth *t = &f->truth[f->leg];

	t->sent_ns = f->call.sent_ns;
	t->status = f->call.status;
	t->end_ns = f->call.stamp_ns;
}

static void leg_begin(struct forward *f, struct str body);

static void on_prefill_body(struct remote_call *c, struct str part)
{
	struct forward *f = of(c);

	if (c->status != 200 && f->refusal.len < HTTP_ERROR_BODY_MAX)
		buf_add_str(&f->refusal, part);
}

static void on_first(struct remote_call *c, struct str head)
{
	(void)head;
	of(c)->truth[of(c)->leg].first_ns = c->stamp_ns;
}

static void on_prefill_done(struct remote_call *c, const char *failure)
{
	struct forward *f = of(c);

	leg_note(f);
	if (failure) {
		forward_fail(f, c->status ? 500 : 503, "the prefill server does not answer", failure);
	} else if (c->status != 200) {
		forward_fail(f, 500, "the prefill server refused", f->refusal.len ? f->refusal.data : "");
	} else {
		f->leg = LEG_DECODE;
		leg_begin(f, buf_str(&f->body));
	}
}

static void on_decode_head(struct remote_call *c, struct str head)
{
	struct forward *f = of(c);
	struct str type = http_head_value(head, "content-type");
	char text[128];

	on_first(c, head);
	snprintf(text, sizeof(text), "%.*s", (int)type.n, type.n ? type.p : "");
	buf_reset(&f->request);
	http_write_head(&f->request, c->status, type.n ? text : NULL, HTTP_LENGTH_CHUNKED,
			route_extra(f->conn));
	conn_write(f->conn, buf_str(&f->request));
	f->status = c->status;
	f->is_head_sent = true;
}

static void on_decode_body(struct remote_call *c, struct str part)
{
	struct forward *f = of(c);

	buf_reset(&f->request);
	http_write_chunk(&f->request, part);
	f->send_ns = mem_grow(f->send_ns, f->sends + 1, sizeof(*f->send_ns));
	f->send_ns[f->sends++] = clock_real_ns();
	conn_write(f->conn, buf_str(&f->request));
}

static void on_decode_done(struct remote_call *c, const char *failure)
{
	struct forward *f = of(c);

	leg_note(f);
	if (failure) {
		forward_fail(f, c->status ? 500 : 503, "the server does not answer", failure);
		return;
	}
	buf_reset(&f->request);
	http_write_last_chunk(&f->request);
	f->end_ns = clock_real_ns();
	conn_write(f->conn, buf_str(&f->request));
	forward_over(f);
}

/* ---- the way there ---- */

static void leg_begin(struct forward *f, struct str body)
{
	const struct peer *peer = f->peer[f->leg];
	struct sim *s = f->conn->sim;
	struct buf lines = { 0 };

	f->truth[f->leg].peer = peer;
	f->call.head = f->leg == LEG_PREFILL ? on_first : on_decode_head;
	f->call.body = f->leg == LEG_PREFILL ? on_prefill_body : on_decode_body;
	f->call.done = f->leg == LEG_PREFILL ? on_prefill_done : on_decode_done;
	add_headers(f, &lines);
	buf_reset(&f->request);
	call_write_head(&f->request, f->conn->request.method, f->conn->request.target, peer, body.n,
			lines.len ? lines.data : "");
	buf_add_str(&f->request, body);
	buf_release(&lines);
	call_begin(&f->call, s->loop, peer, buf_str(&f->request),
		   (int64_t)(s->proxy->opts->timeout_s * 1e9));
}

void proxy_serve(struct conn *c, struct str path, struct str body)
{
	struct proxy *p = c->sim->proxy;
	bool is_split = p->decode.n > 0, is_both = is_generation(path) || is_control(path);
	struct str own = http_head_value(buf_str(&c->head), "x-request-id");
	struct forward *f = mem_alloc(sizeof(*f));
	struct buf first = { 0 };

	assert(!c->forward);
	c->forward = f;
	c->sim->stream_count++;
	c->sim->arrivals++;
	f->conn = c;
	f->recv_ns = c->recv_ns;
	f->is_reported = is_generation(path);
	f->peer[LEG_DECODE] = peer_next(is_split ? &p->decode : &p->backend);
	f->leg = is_split && is_both ? LEG_PREFILL : LEG_DECODE;
	if (f->leg == LEG_PREFILL)
		f->peer[LEG_PREFILL] = peer_next(&p->prefill);
	if (is_split && is_generation(path))
		split_id(p, p->count++, f->id);
	else if (own.n && own.n <= REQUEST_ID_MAX)
		memcpy(f->id, own.p, own.n);
	buf_add_str(&f->body, body);
	if (is_split && is_generation(path)) {
		add_prefill_body(body, &first);
		leg_begin(f, buf_str(&first));
	} else {
		leg_begin(f, buf_str(&f->body));
	}
	buf_release(&first);
}
