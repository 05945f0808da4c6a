/* SPDX-License-Identifier: Apache-2.0 */
/* kv.c - see kv.h. */
#include "sim/kv.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sim/server.h"

#define PREFILLED "___prefill_addr_" /* in the id of a request that a prefill server has seen */
#define NAME_DIGITS 16
#define CACHE_TIMEOUT_NS 5000000000

/* What is on its way to the cache server; nobody waits for it. */
struct kv_put {
	struct kv *kv;
	struct kv_put *next;
	struct call call;
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

/* So many of its tokens need no work; those that the engine has not itself go over the link. */
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
	/* A proxy tells the one that prefills where the result is to go. */
	return id.n && memmem(id.p, id.n, PREFILLED, sizeof(PREFILLED) - 1) &&
	       !http_head_value(head, "x-kv-target").n;
}

static void on_cache_body(struct call *call, struct str part)
{
	struct conn *c = (struct conn *)((char *)call - offsetof(struct conn, stream.kv.call));

	struct kv_wait *w = &c->stream.kv;
	size_t room = sizeof(w->answer) - w->answered, n = part.n < room ? part.n : room;

	memcpy(w->answer + w->answered, part.p, n);
	w->answered += n;
}

static void on_cache_done(struct call *call, const char *failure)
{
	struct conn *c = (struct conn *)((char *)call - offsetof(struct conn, stream.kv.call));
	struct kv_wait *w = &c->stream.kv;
	struct str answer = str_trim((struct str){ w->answer, w->answered });
	uint64_t blocks = 0, tokens = w->brought;

	/* A cache that does not answer is one that knows nothing. */
	if (!failure && call->status == 200 && str_to_u64(answer, &blocks) &&
	    blocks <= c->stream.choice->hold.n && blocks * PREFIX_BLOCK_TOKENS > tokens)
		tokens = blocks * PREFIX_BLOCK_TOKENS;
	bring(c, tokens < most(c) ? (uint32_t)tokens : most(c));
}

static void add_names(const struct prefix_hold *h, struct buf *out)
{
	for (size_t i = 0; i < h->n; i++)
		buf_printf(out, "%016" PRIx64 "\n", h->hash[i]);
}

static void cache_request(struct sim *s, const char *path, const struct prefix_hold *h,
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
	struct stream *t = &c->stream;
	struct kv *k = &c->sim->kv;
	const struct choice *x = t->choice;
	const struct prefix_cache *own = &x->lane->prefix;
	bool is_named = x->seq.hold || kv_wants_names(k);
	size_t held;

	t->kv = (struct kv_wait){ .asked_ns = clock_mono_ns(), .is_waiting = true };
	if (x->seq.hold)
		t->kv.local = prefix_look(own, x->seq.hold, &held);
	k->queries += t->form.prompt_tokens;
	if (k->opts->is_decode_bench || is_prefilled_elsewhere(c)) {
		bring(c, most(c));
		return;
	}
	t->kv.brought = t->kv.local;
	if (is_named && k->host.cap) {
		uint32_t known = prefix_look(&k->host, &x->hold, &held);

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

static void on_put(struct call *call, const char *failure)
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
	struct stream *t = &c->stream;
	const struct prefix_hold *h = &t->choice->hold;
	struct kv *k = &c->sim->kv;

	if (t->kv.is_kept || !kv_wants_names(k) || h->n == 0)
		return;
	t->kv.is_kept = true;
	prefix_keep(&k->host, h->hash, h->n);
	/* What came from there need not go back. */
	if (k->opts->cache_url && h->n * PREFIX_BLOCK_TOKENS > t->kv.brought)
		put_to_cache(c);
}

/* ---- a cache server's paths ---- */

/* Names in the order they stand; false: something else. The caller frees. */
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
	struct prefix_hold names = { 0 };
	char text[32];
	size_t held, known;
	int n;

	if (names_read(body, &names.hash, &names.n)) {
		known = prefix_look(&k->host, &names, &held) / PREFIX_BLOCK_TOKENS;
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
		prefix_keep(&c->sim->kv.host, hash, n);
		route_answer(c, 200, NULL, (struct str){ 0 });
	} else {
		route_error(c, 400, NULL, "expected names of blocks, 16 hexadecimal digits a line");
	}
	free(hash);
}
