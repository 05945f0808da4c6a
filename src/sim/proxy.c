/* SPDX-License-Identifier: Apache-2.0 */
/* proxy.c - see proxy.h. */
#include "sim/proxy.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/mem.h"
#include "json/write.h"
#include "sim/call.h"
#include "sim/server.h"

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
	struct call call;
	enum leg leg;
	struct buf body;         /* what goes to the decode server, as it came */
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
	bool is_told;            /* has its line in the truth file */
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

/* What changes a server's state concerns all of them. */
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

/* The body with max_tokens 1. What is no JSON object goes on as it is: the server refuses it. */
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

/* Headers that the servers behind need: who asks, what it is. */
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

	if (!s->truth.sink.path || !f->is_told)
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

static struct forward *of(struct call *c)
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

static void on_prefill_body(struct call *c, struct str part)
{
	struct forward *f = of(c);

	if (c->status != 200 && f->refusal.len < HTTP_ERROR_BODY_MAX)
		buf_add_str(&f->refusal, part);
}

static void on_first(struct call *c, struct str head)
{
	(void)head;
	of(c)->truth[of(c)->leg].first_ns = c->stamp_ns;
}

static void on_prefill_done(struct call *c, const char *failure)
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

static void on_decode_head(struct call *c, struct str head)
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

static void on_decode_body(struct call *c, struct str part)
{
	struct forward *f = of(c);

	buf_reset(&f->request);
	http_write_chunk(&f->request, part);
	f->send_ns = mem_grow(f->send_ns, f->sends + 1, sizeof(*f->send_ns));
	f->send_ns[f->sends++] = clock_real_ns();
	conn_write(f->conn, buf_str(&f->request));
}

static void on_decode_done(struct call *c, const char *failure)
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

	c->forward = f;
	c->sim->stream_count++;
	c->sim->arrivals++;
	f->conn = c;
	f->recv_ns = c->recv_ns;
	f->is_told = is_generation(path);
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
