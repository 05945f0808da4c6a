/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The load generator in a simulated world: the driver, the native transport, the HTTP reader and
 * the record as they are, on a clock, a network and servers of our own (fake_kernel.h,
 * fake_server.h). One number, the seed, decides everything: a run that fails prints its seed, and
 * that seed fails again.
 *
 *   SEED=1000 RUNS=500 build/unit/load_simulated    runs with the seeds 1000 to 1499
 *
 * What must hold in each run: every request ends once, and counts balance; nothing is sent before
 * it is due, or late while a place under the limit is free; the limit holds at the server and in
 * the record; no connection serves two requests at a time, or one after its end; each row of the
 * record, with its stamps, gaps, text and reason, is what its request met; and nothing is left
 * open.
 *
 * threads: yes
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

#include "client/load/load.h"
#include "core/base/mem.h"
#include "fake_server.h"

#define RUNS_IN_SUITE 150
/* So long after it could something happens at the latest, hiccups apart, */
#define LATE_NS 2000000
#define BUSY_NS 2000       /* and so much later for each request of the run */
#define IDLE_NS 100000000  /* the driver's longest sleep */
#define NO_END_S 120       /* of real time for one run */

static uint64_t seed_of_run;
static uint64_t n_requests, n_events, n_retried, n_by_fail[FAIL_COUNT];

static void say_seed(void)
{
	char text[120];
	int n = snprintf(text, sizeof(text), "# seed %llu: SEED=%llu RUNS=1 repeats it\n",
			 (unsigned long long)seed_of_run, (unsigned long long)seed_of_run);

	(void)!syscall(SYS_write, 2, text, (size_t)n);
}

static _Noreturn void violated(const char *format, ...)
{
	char text[400];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "# violated: %s\n", text);
	say_seed();
	_exit(1);
}

static void on_signal(int number)
{
	say_seed();
	signal(number, SIG_DFL);
	raise(number);
}

/* ---- an API that says as little as the others need ---- */

static int decode(const struct endpoint *self, struct str data, struct decoded *out,
		  struct err *e)
{
	(void)self;
	if (str_starts(data, STR("!")))
		return err_set(e, ERR_PARSE, "not an event");
	out->text = data;
	out->bits = str_is(data, "[DONE]") ? DECODED_DONE
		    : str_starts(data, STR("E")) ? DECODED_ERROR : DECODED_TOKEN | DECODED_ANSWER;
	return 0;
}

static const char *finish(const struct request_row *row)
{
	return row->flags & ROW_SAW_DONE ? NULL : "the end is missing";
}

static const struct endpoint api = {
	.name = "simulated", .suffix = "", .api_name = "simulated", .default_path = "/",
	.is_streaming = true, .decode = decode, .finish = finish,
};

/* ---- one run: what the seed decides ---- */

enum mode { MODE_ROOTS, MODE_CHAINS, MODE_CLIENTS };

/* What an entry follows, and who sends it. */
struct follow {
	uint32_t after, client; /* NO_ENTRY: none */
	double gap_s;
	uint32_t ends;          /* calls of the hook, or of pick */
};

struct run {
	enum mode mode;
	uint32_t n, n_roots, n_clients, given; /* given: entries that clients have picked */
	unsigned n_urls;
	bool has_hook, is_cut_off; /* cut off: it may end before the plan does */
	bool keeps_text;
	double gap_s;
	struct follow *follow;     /* per entry */
	struct load_opts opts;
	struct plan plan;
	struct prepared prepared;
	struct record record;
	struct load_progress progress;
	struct load_stats stats;
};

static const char *const urls[4][3] = {
	{ "" }, { "http://site0:8000", "http://site0:8001", "http://site0:8002" },
	{ "http://site1:8000", "http://site1:8001", "http://site1:8002" },
	{ "http://site2:8000", "http://site2:8001", "http://site2:8002" },
};

static void make_servers(void)
{
	world.rtt_ns = spread(2000, 2000000);
	world.think_ns = spread(1000, 5000000);
	world.segment_gap_ns = spread(200, 1000000);
	world.idle_ns = one_in(2) ? world.think_ns : spread(1000, 20000000);
	world.idle_one_in = one_in(3) ? 0 : 2 + below(30);
	world.refuse_one_in = one_in(3) ? 8 + below(60) : 0;
	world.drop_one_in = one_in(4) ? 20 + below(100) : 0;
	world.is_loopback = one_in(4);
	world.is_408 = world.idle_one_in && one_in(6);
	if (world.is_408) {
		world.idle_one_in = 2;
		world.idle_ns = world.think_ns / 4 + 1000;
	}
	world.n_addr = one_in(4) ? 2 + below(2) : 1;
	scripts_make();
}

static void make_kernel(void)
{
	kernel.hiccup_one_in = one_in(3) ? 500 + below(20000) : 0;
	kernel.hiccup_ns = spread(100000, 4000000);
	kernel.interrupt_one_in = one_in(3) ? 50 + below(1000) : 0;
	kernel.short_read_one_in = one_in(2) ? 4 + below(100) : 0;
	kernel.refuse_socket_one_in = one_in(8) ? 50 : 0;
	kernel.is_without_pwait2 = one_in(12);
	kernel.has_inq = !one_in(5);
}

static void make_opts(struct run *r)
{
	static const uint32_t caps[] = { 1, 2, 3, 8, 16, 32, 64, 128 };
	struct load_opts *o = &r->opts;

	*o = (struct load_opts){ .transport = &transport_native, .endpoint = &api, .threads = 1,
				 .phase = PHASE_MAIN };
	o->max_concurrency = one_in(4) ? 0 : caps[below(8)];
	if (r->mode == MODE_ROOTS && r->gap_s == 0 && o->max_concurrency == 0)
		r->n = r->n < 1500 ? r->n : 1500;
	o->net = (struct transport_opts){
		.base_url = urls[world.n_addr], .n_endpoints = r->n_urls, .is_stamped = !one_in(8),
		.connect_timeout_ns = 30000000 * (int64_t)world.n_addr + spread(1000000, 100000000),
		.request_timeout_ns = 4 * (world.rtt_ns + world.think_ns) +
				      spread(1000000, 1000000000),
		.connections_max = one_in(4) ? 1 + below(8) : 0,
		.warm_connections = one_in(4) && !world.refuse_one_in && !world.drop_one_in
				    ? 1 + below(4) : 0,
	};
	if (o->net.warm_connections)
		kernel.refuse_socket_one_in = 0;
	o->is_user_stamps = world.is_user_stamps = world.n_addr == 1 && one_in(8);
	o->is_least_loaded = r->n_urls > 1 && one_in(3);
	r->has_hook = one_in(2);
	o->is_chain_dropped = one_in(2);
	o->max_sessions = r->mode == MODE_CHAINS && one_in(3) ? 1u << below(7) : 0;
	o->retries = r->has_hook && r->mode == MODE_ROOTS && one_in(3) ? 1 + below(2) : 0;
	if (one_in(5))
		o->give_up_ns = spread(world.rtt_ns, world.rtt_ns * 2 + world.think_ns);
	if (one_in(10))
		kernel.cancel_ns = FAKE_MONO_NS + spread(1000000, 2000000000);
	if (one_in(10))
		o->deadline_ns = spread(1000000, 2000000000);
	if (one_in(10))
		o->admission_ns = spread(1000000, 2000000000);
	if (one_in(12))
		o->failures_max = 1 + below(50);
	r->is_cut_off = kernel.cancel_ns || o->deadline_ns || o->admission_ns || o->failures_max;
	world.cap = o->max_concurrency;
}

static void make_plan(struct run *r)
{
	uint32_t give_up_one_in = 2 + below(200);
	double at_s = 0;

	r->plan = (struct plan){ .n = r->n, .n_roots = r->n_roots };
	r->plan.entry = mem_array(r->n, sizeof(*r->plan.entry));
	r->follow = mem_array(r->n, sizeof(*r->follow));
	for (uint32_t i = 0; i < r->n; i++) {
		struct plan_entry *e = &r->plan.entry[i];

		*e = (struct plan_entry){ .after = PLAN_NONE, .history = PLAN_NONE,
					  .session = PLAN_NONE, .lora = PLAN_NO_LORA };
		e->endpoint = (uint16_t)below(r->n_urls);
		if (r->mode == MODE_CHAINS)
			e->session = i % r->n_roots;
		r->follow[i].after = r->follow[i].client = NO_ENTRY;
		if (r->opts.give_up_ns && one_in(give_up_one_in))
			e->flags |= PLAN_GIVES_UP;
		if (i < r->n_roots) {
			if (one_in(3))
				at_s += r->gap_s * (double)below(600) / 100;
			e->due_s = at_s;
			world.due_s[i] = at_s;
			continue;
		}
		world.due_s[i] = 0;
		if (r->mode == MODE_CLIENTS)
			continue;
		r->follow[i].after = e->after = i - r->n_roots;
		r->follow[i].gap_s = e->due_s = r->gap_s * (double)below(200) / 100;
	}
}

static void make_run(struct run *r, uint64_t seed)
{
	static const double gaps_s[] = { 0, 0, 1e-6, 5e-6, 2e-5, 1e-4, 1e-3 };

	*r = (struct run){ 0 };
	kernel_reset(seed);
	world.reading = NULL;
	world.active = 0;
	world.n_stale = world.n_reads = world.n_unstamped = world.n_unconnected = 0;
	world.n_found = 0;
	world.is_opening = true;
	r->mode = below(10) < 6 ? MODE_ROOTS : below(2) ? MODE_CHAINS : MODE_CLIENTS;
	r->n = one_in(16) ? ENTRIES_MAX : one_in(8) ? 1 + below(20) : 400 + below(3000);
	r->gap_s = gaps_s[below(7)];
	r->n_urls = one_in(4) ? 2 + below(2) : 1;
	r->keeps_text = !one_in(8);
	make_servers();
	make_kernel();
	make_opts(r);
	world.late_ns = LATE_NS + r->n * BUSY_NS;
	if (kernel.hiccup_one_in)
		world.late_ns += 20 * kernel.hiccup_ns;
	r->n_roots = r->mode == MODE_ROOTS ? r->n : r->mode == MODE_CHAINS ? (r->n + 7) / 8 : 0;
	r->n_clients = r->mode == MODE_CLIENTS ? 1 + below(64) : 0;
	world.n = r->n;
	memset(world.truth, 0, r->n * sizeof(*world.truth));
	make_plan(r);
}

/* ---- what a row must be ---- */

#define MUST(entry, what, got, wanted)                                                    \
	do {                                                                              \
		long long got_ = (long long)(got), wanted_ = (long long)(wanted);         \
		if (got_ != wanted_) {                                                    \
			tell_of(entry);                                                   \
			violated("request %u: %s is %lld, expected %lld", entry, what, got_, \
				 wanted_);                                                \
		}                                                                         \
	} while (0)

/* Why it must have failed. A client that ended by itself has a reason of its own. */
static void check_reason(const struct run *r, uint32_t i, const struct truth *t,
			 const struct request_row *row)
{
	static const uint8_t by_outcome[] = { [BAD] = FAIL_PROTOCOL, [CUT] = FAIL_TRUNCATED,
					      [RESET] = FAIL_RESET };
	bool may_cancel = r->is_cut_off || r->opts.give_up_ns;
	bool is_sent = t->is_sent && !t->is_ended; /* this time */

	if (is_sent && t->first_fail) {
		MUST(i, "reason", row->fail, t->first_fail);
	} else if (is_sent && t->outcome == COMPLETE) {
		MUST(i, "reason", row->fail, t->is_done ? FAIL_NONE
		     : t->n_tokens ? FAIL_TRUNCATED : FAIL_EMPTY);
	} else if (is_sent && t->outcome != OPEN && t->outcome != STALE) {
		MUST(i, "reason", row->fail, by_outcome[t->outcome]);
	} else if (row->fail == FAIL_TIMEOUT) {
		MUST(i, "timed out, and was being answered", t->outcome == OPEN && is_sent, true);
		if (row->end_ns - t->last_sent_ns < r->opts.net.request_timeout_ns - world.late_ns)
			violated("request %u: timed out after %lld ns", i,
				 (long long)(row->end_ns - t->last_sent_ns));
	} else if (row->fail == FAIL_CONNECT) {
		MUST(i, "not connected, and sent", is_sent && t->outcome != STALE, false);
	} else {
		MUST(i, "reason", row->fail, FAIL_CANCELLED);
		MUST(i, "may be cancelled", may_cancel, true);
	}
}

/* What has its time: answers, connections, those that give up, the end of the run. */
static void check_times(const struct run *r, uint32_t i, const struct truth *t,
			const struct request_row *row)
{
	const struct load_opts *o = &r->opts;
	int64_t start_ns = r->record.start_ns, since_ns = row->end_ns - row->connect_ns;
	bool is_sent = t->is_sent && !t->is_ended;
	bool gives_up = r->plan.entry[i].flags & PLAN_GIVES_UP && is_sent && !o->is_user_stamps;

	if (is_sent && t->outcome == OPEN &&
	    row->end_ns - t->last_sent_ns > o->net.request_timeout_ns + world.late_ns)
		violated("request %u: ended %lld ns after it was sent", i,
			 (long long)(row->end_ns - t->last_sent_ns));
	if (gives_up && row->end_ns - t->sent_ns > o->give_up_ns + world.late_ns)
		violated("request %u: was not given up", i);
	if (row->flags & ROW_GIVEN_UP &&
	    (!gives_up || row->end_ns - t->sent_ns < o->give_up_ns) && !o->is_user_stamps)
		violated("request %u: given up too early", i);
	if (row->fail == FAIL_CONNECT) {
		MUST(i, "servers may refuse", world.refuse_one_in || world.drop_one_in ||
		     kernel.refuse_socket_one_in, true);
		if (since_ns > o->net.connect_timeout_ns + (int64_t)world.n_addr * world.late_ns)
			violated("request %u: connected for %lld ns", i, (long long)since_ns);
		if (!world.refuse_one_in && !kernel.refuse_socket_one_in &&
		    since_ns < o->net.connect_timeout_ns - (int64_t)world.n_addr * world.late_ns)
			violated("request %u: connected for %lld ns alone", i, (long long)since_ns);
	}
	if (o->admission_ns && row->admitted_ns > start_ns + o->admission_ns + 1000 +
	    (kernel.hiccup_one_in ? kernel.hiccup_ns : 0))
		violated("request %u: admitted when the time was over", i);
	if (o->deadline_ns && row->end_ns > start_ns + o->deadline_ns + IDLE_NS + world.late_ns)
		violated("request %u: ends after the deadline", i);
	if (kernel.cancel_ns &&
	    row->end_ns > kernel.cancel_ns + FAKE_REAL_NS + IDLE_NS + world.late_ns)
		violated("request %u: ends after the run was cancelled", i);
}

static void check_events(const struct run *r, uint32_t i, const struct truth *t,
			 const struct request_row *row)
{
	int64_t gap[SCRIPT_EVENTS], skew[SCRIPT_EVENTS], last = t->sent_ns;
	bool has_skew = r->record.shard[0].keeps_skew;

	MUST(i, "number of events", row->n_events, t->n_tokens);
	MUST(i, "number of events with an answer", row->n_answer, t->n_tokens);
	MUST(i, "number of events with a shared stamp", row->n_shared, t->n_shared);
	if (!t->n_tokens)
		return;
	record_gaps(&r->record, row, gap);
	if (has_skew)
		record_skews(&r->record, row, skew);
	for (uint32_t k = 0; k < t->n_tokens; k++) {
		const struct seen *e = &t->seen[k];

		MUST(i, "gap", gap[k], e->at_ns - last);
		if (has_skew)
			MUST(i, "lag", skew[k], e->kernel_ns ? e->user_ns - e->kernel_ns : 0);
		last = e->at_ns;
	}
	MUST(i, "first event", row->first_event_ns, t->seen[0].at_ns);
	MUST(i, "last event", row->last_event_ns, last);
	MUST(i, "first event, user clock", row->user_first_event_ns, t->seen[0].user_ns);
	MUST(i, "last event, user clock", row->user_last_event_ns,
	     t->seen[t->n_tokens - 1].user_ns);
}

static void check_text(const struct run *r, uint32_t i, const struct truth *t,
		       const struct request_row *row)
{
	static struct buf text;
	const struct script *sc = t->script;
	const char *at;

	buf_reset(&text);
	record_text_of(&r->record, row, &text);
	at = text.data;
	for (uint32_t k = 0; k < t->n_tokens; k++) {
		const struct script_event *e = &sc->event[t->seen[k].event];
		uint32_t number = 0;

		if (at + e->text_n > text.data + text.len)
			violated("request %u: its text ends early", i);
		for (unsigned d = 0; d < SCRIPT_SLOTS; d++)
			number |= (uint32_t)str_hex(at[d]) << (4 * d);
		MUST(i, "the number in its text", number, (i + t->seen[k].event * 7u) & 0xffff);
		if (memcmp(at + SCRIPT_SLOTS, sc->text + e->text_at + SCRIPT_SLOTS,
			   e->text_n - SCRIPT_SLOTS) != 0)
			violated("request %u: event %u has another text", i, k);
		at += e->text_n;
	}
	MUST(i, "bytes of text", text.len, at - text.data);
}

/* A row whose request has ended, but for its state. */
static void check_row(const struct run *r, uint32_t i, const struct request_row *row)
{
	const struct truth *t = &world.truth[i];

	world.n_unconnected += row->fail == FAIL_CONNECT;
	if (t->is_wild)
		return;
	check_reason(r, i, t, row);
	check_times(r, i, t, row);
	MUST(i, "times it was written", row->attempts, t->n_sends < 255 ? t->n_sends : 255);
	MUST(i, "is due before its admission", row->due_ns <= row->admitted_ns, true);
	if (!t->is_sent || t->is_ended) { /* never, or not this time */
		MUST(i, "instant of sending", row->sent_ns, 0);
		return;
	}
	MUST(i, "instant of sending", row->sent_ns, t->sent_ns);
	MUST(i, "the URL's port", 8000 + row->endpoint, t->port);
	if (!r->opts.is_least_loaded)
		MUST(i, "the URL", row->endpoint, r->plan.entry[i].endpoint);
	MUST(i, "is admitted before it is sent", row->admitted_ns <= row->sent_ns, true);
	check_events(r, i, t, row);
	if (t->outcome == STALE)
		return; /* no connection was had for it again */
	MUST(i, "instant at which all was sent", row->sent_all_ns, t->sent_all_ns);
	MUST(i, "status", row->status, t->has_first_byte ? t->script->status : 0);
	MUST(i, "first byte", row->first_byte_ns, t->first_byte_ns);
	MUST(i, "bytes of the answer", row->answer_bytes, t->bytes);
	MUST(i, "end of the answer is seen", (row->flags & ROW_SAW_DONE) != 0, t->is_done);
	MUST(i, "a new connection", (row->flags & ROW_NEW_CONNECTION) != 0, t->is_new);
	if (t->is_new && world.n_addr > 1) {
		MUST(i, "connects before it is connected", row->connect_ns < row->connected_ns,
		     true);
	} else {
		MUST(i, "instant of connecting", row->connect_ns, t->connect_ns);
		MUST(i, "instant of being connected", row->connected_ns, t->connected_ns);
	}
	if (t->outcome != OPEN && t->outcome != BAD)
		MUST(i, "end", row->end_ns, t->end_ns);
	else
		MUST(i, "ends after its last event", row->end_ns >= row->last_event_ns, true);
	if (r->keeps_text && t->n_tokens)
		check_text(r, i, t, row);
}

/* ---- what the driver calls ---- */

static int on_ended(void *self, uint32_t entry, const struct request_row *row, struct str head,
		    struct str calls, struct err *e)
{
	struct run *r = self;
	struct truth *t = &world.truth[entry];

	(void)e;
	if (++r->follow[entry].ends > r->opts.retries + 1)
		violated("request %u: has ended %u times", entry, r->follow[entry].ends);
	check_row(r, entry, row);
	MUST(entry, "bytes of tool calls", calls.n, 0);
	if (!t->is_wild && t->is_sent && !t->is_ended && t->has_first_byte &&
	    (head.n != (size_t)t->script->head_end - t->script->head_at ||
	     memcmp(head.p, t->script->bytes + t->script->head_at, head.n) != 0))
		violated("request %u: another head", entry);
	t->is_ended = true;
	return 0;
}

static uint32_t pick(void *self, uint32_t client, uint32_t ended, const struct request_row *row,
		     double *gap_s)
{
	struct run *r = self;
	uint32_t next = r->given < r->n ? r->given++ : PLAN_NONE;

	if (row && !r->has_hook) {
		check_row(r, ended, row);
		r->follow[ended].ends++;
	}
	if (row)
		MUST(ended, "its client", client, r->follow[ended].client);
	*gap_s = one_in(3) ? r->gap_s : 0;
	if (next != PLAN_NONE)
		r->follow[next] = (struct follow){ .after = row ? ended : NO_ENTRY,
						   .client = client, .gap_s = *gap_s };
	return next;
}

static int64_t start_at(void *self)
{
	(void)self;
	world.is_opening = false;
	frozen_ns = kernel.now_ns;
	world.start_mono_ns = kernel.now_ns + 1 + (int64_t)below(3000000);
	return world.start_mono_ns;
}

/* ---- what must hold over a whole run ---- */

static void heap_put_end(int64_t *heap, uint32_t n, int64_t end_ns)
{
	uint32_t at = n;

	for (; at && heap[(at - 1) / 2] > end_ns; at = (at - 1) / 2)
		heap[at] = heap[(at - 1) / 2];
	heap[at] = end_ns;
}

static void heap_drop_end(int64_t *heap, uint32_t n)
{
	int64_t last = heap[n - 1];
	uint32_t at = 0, child;

	while ((child = 2 * at + 1) < n - 1) {
		if (child + 1 < n - 1 && heap[child + 1] < heap[child])
			child++;
		if (heap[child] >= last)
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = last;
}

/*
 * Roots are admitted in order, never more than the limit at a time, and as soon as they are due
 * and there is a place. An end counts from its stamp, which is before its place is free.
 */
static void check_admission(const struct run *r)
{
	static int64_t end[ENTRIES_MAX];
	int64_t before = 0;
	uint32_t n = 0, cap = r->opts.max_concurrency;

	for (uint32_t i = 0; i < r->n_roots && r->record.row[i].admitted_ns; i++) {
		const struct request_row *row = &r->record.row[i];
		int64_t could = row->due_ns > before ? row->due_ns : before;

		MUST(i, "order of admission", row->admitted_ns >= before, true);
		if (cap && n == cap) {
			could = end[0] > could ? end[0] : could;
			MUST(i, "is within the limit", end[0] <= row->admitted_ns, true);
			heap_drop_end(end, n--);
		}
		heap_put_end(end, n++, row->end_ns);
		if (row->admitted_ns - could > world.late_ns)
			violated("request %u: admitted %lld ns after it was due and had a place", i,
				 (long long)(row->admitted_ns - could));
		before = row->admitted_ns;
	}
}

/* Sessions are open from their root's admission to their last end, max_sessions at a time. */
static void check_sessions(const struct run *r)
{
	static int64_t end[ENTRIES_MAX];
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->n_roots; i++) {
		int64_t last = 0;

		for (uint32_t k = i; k < r->n; k += r->n_roots)
			if (r->record.row[k].end_ns > last)
				last = r->record.row[k].end_ns;
		if (n == r->opts.max_sessions) {
			MUST(i, "is within the limit of sessions",
			     end[0] <= r->record.row[i].admitted_ns, true);
			heap_drop_end(end, n--);
		}
		heap_put_end(end, n++, last);
	}
}

/* What follows another one: not before its gap is over, soon after, or not at all. */
static void check_chain(const struct run *r, uint32_t i)
{
	const struct request_row *row = &r->record.row[i], *before;
	const struct follow *f = &r->follow[i];
	int64_t due_ns;

	if (row->admitted_ns || r->mode == MODE_CHAINS)
		MUST(i, "what it follows", row->parent,
		     f->after == NO_ENTRY ? RECORD_NONE : f->after);
	if (f->after == NO_ENTRY)
		return;
	before = &r->record.row[f->after];
	if (r->opts.is_chain_dropped && r->mode == MODE_CHAINS && !r->is_cut_off)
		MUST(i, "is dropped", (row->flags & ROW_DROPPED) != 0, before->state != REQ_DONE);
	if (!row->admitted_ns)
		return;
	due_ns = before->end_ns + (int64_t)(f->gap_s * 1e9);
	MUST(i, "what it waits for has ended", before->end_ns != 0, true);
	if (row->due_ns < due_ns)
		violated("request %u: due before its gap is over", i);
	if (row->due_ns > due_ns + world.late_ns)
		violated("request %u: due long after its gap is over", i);
}

/* Without a limit everything begins when it is due. */
static void check_lateness(const struct run *r, uint32_t i)
{
	const struct request_row *row = &r->record.row[i];

	if (!r->opts.max_concurrency && !r->opts.max_sessions &&
	    row->admitted_ns - row->due_ns > world.late_ns)
		violated("request %u: admitted %lld ns after it was due", i,
			 (long long)(row->admitted_ns - row->due_ns));
}

/* again: those whose next attempt was never made. */
static void check_counts(const struct run *r, uint32_t admitted, uint32_t failed, uint32_t again)
{
	struct load_totals sum = load_progress_total(&r->progress);
	const struct transport_stats *net = &r->stats.net;
	uint64_t tokens = 0;

	MUST(0, "requests that count as admitted", sum.admitted, admitted + again);
	MUST(0, "requests that count as done", sum.done, admitted);
	MUST(0, "requests that count as failed", sum.failed, failed);
	for (uint32_t i = 0; i < r->n; i++)
		tokens += r->record.row[i].n_events;
	if (!r->opts.retries)
		MUST(0, "token events", sum.tokens, tokens);
	MUST(0, "requests under way at the server", world.active, 0);
	MUST(0, "requests written again", net->retries, world.n_stale);
	MUST(0, "idle connections found ended", net->stale_closed, world.n_found);
	MUST(0, "reads", net->reads, world.n_reads);
	MUST(0, "reads without a stamp", net->reads_without_stamp, world.n_unstamped);
	if (world.n_addr == 1 && !kernel.refuse_socket_one_in)
		MUST(0, "connections opened", net->connects, kernel.n_opened);
	if (world.n_addr == 1 && !kernel.refuse_socket_one_in && kernel.n_opened)
		MUST(0, "connections at a time", net->connections_most, kernel.n_open_most);
	MUST(0, "requests without a connection", net->connect_failures, world.n_unconnected);
	MUST(0, "descriptors that are open", kernel.n_open, 0);
	for (uint32_t i = 1; i < FAKE_SOCKS && i < 2 + kernel.n_open_most; i++)
		MUST(i, "kind of an open descriptor", kernel.sock[i].kind, FAKE_FREE);
	MUST(0, "a shard that is full", r->record.shard[0].is_full, false);
}

static void check_run(struct run *r)
{
	uint32_t admitted = 0, failed = 0, again = 0;

	for (uint32_t i = 0; i < r->n; i++) {
		const struct request_row *row = &r->record.row[i];
		bool is_cancelled = row->state == REQ_CANCELLED;

		if (!row->admitted_ns) {
			bool waits = r->opts.retries && r->follow[i].ends;

			again += waits;
			check_chain(r, i);
			MUST(i, "may be left out", r->is_cut_off || r->mode == MODE_CLIENTS ||
			     row->flags & ROW_DROPPED, true);
			MUST(i, "is left out, and sent", world.truth[i].is_sent && !waits, false);
			MUST(i, "state", is_cancelled ||
			     (row->state == REQ_UNSENT && !row->attempts), true);
			continue;
		}
		admitted++;
		failed += row->state == REQ_FAILED;
		if (r->has_hook || r->mode == MODE_CLIENTS)
			MUST(i, "has ended", r->follow[i].ends > 0, true);
		else
			check_row(r, i, row);
		MUST(i, "state", row->state, is_cancelled ? REQ_CANCELLED
		     : row->fail ? REQ_FAILED : REQ_DONE);
		if (is_cancelled && !world.truth[i].is_wild && !(row->fail == FAIL_CANCELLED))
			MUST(i, "reason of a cancelled one", row->fail, world.truth[i].first_fail);
		check_chain(r, i);
		check_lateness(r, i);
		n_by_fail[row->fail]++;
		n_events += row->n_events;
	}
	n_requests += admitted;
	n_retried += world.n_stale;
	check_counts(r, admitted, failed, again);
	if (r->mode == MODE_ROOTS && !r->opts.retries)
		check_admission(r);
	if (r->opts.max_sessions && !r->is_cut_off)
		check_sessions(r);
}

/* ---- runs ---- */

static void simulate(uint64_t seed)
{
	static struct run r;
	struct err e = { 0 };

	seed_of_run = seed;
	alarm(NO_END_S);
	make_run(&r, seed);
	r.prepared = (struct prepared){ .n = r.n, .build_self = &r,
					.ended = r.has_hook ? on_ended : NULL };
	r.prepared.request = mem_array(r.n, sizeof(*r.prepared.request));
	for (uint32_t i = 0; i < r.n; i++)
		r.prepared.request[i] = request_of(i);
	if (r.n_clients) {
		r.opts.n_clients = r.n_clients;
		r.opts.pick = pick;
		r.opts.pick_self = &r;
	}
	r.opts.start_at = start_at;
	if (record_init(&r.record, r.n, 1, r.n, one_in(2), r.keeps_text, &e) < 0)
		violated("%s", e.text);
	record_add_rows(&r.record, r.n);
	if (load_run(&r.opts, &r.plan, &r.prepared, &r.record, 0, &r.progress, &r.stats,
		     &kernel.cancel, &e) < 0)
		violated("the run did not start: %s", e.text);
	frozen_ns = 0;
	check_run(&r);
	record_release(&r.record);
	free(r.prepared.request);
	free(r.plan.entry);
	free(r.follow);
	alarm(0);
}

static void worlds_hold_no_surprise(void **state)
{
	const char *first = getenv("SEED"), *count = getenv("RUNS");
	uint64_t from = first ? strtoull(first, NULL, 10) : 1;
	uint64_t runs = count ? strtoull(count, NULL, 10) : RUNS_IN_SUITE;

	(void)state;
	for (uint64_t i = 0; i < runs; i++)
		simulate(from + i);
	print_message("# %llu runs, %llu requests, %llu token events, %llu written again\n",
		      (unsigned long long)runs, (unsigned long long)n_requests,
		      (unsigned long long)n_events, (unsigned long long)n_retried);
	for (int i = 0; i < FAIL_COUNT; i++)
		print_message("#   %-14s %llu\n", fail_name((enum fail_category)i),
			      (unsigned long long)n_by_fail[i]);
}

int main(void)
{
	static const int fatal[] = { SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGALRM };
	const struct CMUnitTest tests[] = { cmocka_unit_test(worlds_hold_no_surprise) };

	for (uint32_t i = 0; i < ENTRIES_MAX; i++) {
		struct str all = request_of(i);
		char *to = (char *)(uintptr_t)all.p;

		memset(to, 'x', all.n);
		memcpy(to, "POST / HTTP/1.1\r\n\r\n", 19);
	}
	for (size_t i = 0; i < sizeof(fatal) / sizeof(*fatal); i++)
		signal(fatal[i], on_signal);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
