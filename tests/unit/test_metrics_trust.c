/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict: one case per rule, on both sides of its limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "client/metrics/trust.h"

/* Reasons that this machine may be the cause of end with the verb that looks for it. */
#define SEE_DOCTOR " profllm doctor looks for the cause."
#define DOCTOR_MENDS " profllm doctor shows the command."

#define HELD(share, slots, mean_ms) HELD_BY(share, slots, mean_ms, "--max-concurrency")
#define HELD_BY(share, slots, mean_ms, cap)                                                       \
	share " % of the requests waited in the client for one of " slots " slots of "        \
	cap ", " mean_ms " ms on average over all, which TTFT and E2EL leave out: "  \
	"requests planned over 100.000 s were sent over 106.000 s. The load was not the planned " \
	"one; a higher " cap " shows whether the server sustains that."
#define AT_ONCE(share)                                                                    \
	"In " share " % of the answers all tokens came at one instant: TTFT is the time of the "   \
	"whole answer there, TPOT is 0, and ITL is not known. They were not streamed, or "         \
	"something before the client collected them."
#define THREE_ANSWERS                                                                     \
	"Each request asks for 3 answers, which the server writes at the same time: TPOT and ITL " \
	"are the times between tokens of any of them, and up to 3 times longer for one."
#define TAIL(in_flight, limit, lower, enough)                                             \
	"On average " in_flight " requests were in flight, not the 8 of --max-concurrency "       \
	"(limit " limit "), because slots are empty at the end of a run: throughput is up to "    \
	lower " % lower than in a long run at 8. Give it more requests for each slot "            \
	"(--num-prompts " enough ")."

/* A run of 1,000 requests with nothing against it. */
static struct metrics good(void)
{
	struct metrics m = { .completed = 1000, .opts = { .is_rate_finite = true } };

	m.block[BLOCK_ITL].median_ms = 10;
	m.block[BLOCK_TTFT].median_ms = 100;
	m.block[BLOCK_TPOT].median_ms = 10;
	m.block[BLOCK_E2EL].median_ms = m.block[BLOCK_E2EL].mean_ms = 1000;
	m.duration_s = 100;
	m.client.skew = (struct metrics_spread){ .n = 1, .p99_ms = 0.05 };
	m.client.send_lag = (struct metrics_spread){ .n = 1, .p99_ms = 0.05 };
	m.client.mean_interarrival_s = 0.1;
	m.client.n_events = m.client.n_events_with_text = 100000;
	m.client.n_usage = 1000;
	return m;
}

struct run { struct metrics m; struct trust_facts f; };

static void nothing(struct run *r) { (void)r; }
static void failed_1(struct run *r) { r->m.completed = 990; r->m.failed = 10; }
static void failed_2(struct run *r) { r->m.completed = 980; r->m.failed = 20; }
static void failed_60(struct run *r) { r->m.completed = 400; r->m.failed = 600; }
static void failed_all(struct run *r) { r->m.completed = 0; r->m.failed = 1000; }
static void all_given_up(struct run *r) { r->m.completed = 0; r->m.given_up = 5; }
static void none_ran(struct run *r) { r->m.completed = 0; r->m.cancelled = 5; }
/* Kernel stamps: a note only. */
static void skew_at(struct run *r) { r->m.client.skew.p99_ms = 1; }
static void skew_over(struct run *r) { r->m.client.skew.p99_ms = 1.01; }
static void skew_saturated(struct run *r) { r->m.client.skew.p99_ms = 4294.967295; }
/* User stamps: by what they add to each metric. */
static void shift_at(struct run *r)
{
	r->m.opts.is_user_stamps = true;
	r->m.client.skew.p99_ms = 5;
	r->m.client.shift = (struct metrics_shift){ 1000, .ttft_p99_ms = 10, .e2el_p99_ms = 100,
						    .itl_p99_ms = 1, .tpot_p99_ms = 1 };
}
static void shift_itl(struct run *r) { shift_at(r); r->m.client.shift.itl_p99_ms = 1.01; }
static void shift_all(struct run *r)
{
	r->m.opts.is_user_stamps = true;
	r->m.client.skew.p99_ms = 120;
	r->m.client.shift = (struct metrics_shift){ 1000, 101, 101, 101, 101 };
}
static void skew_small(struct run *r)
{
	r->m.client.skew.p99_ms = 0.1;
	r->m.block[BLOCK_ITL].median_ms = 0.01;
}
static void skew_e2el(struct run *r)
{
	r->m.client.skew.p99_ms = 50;
	r->m.block[BLOCK_ITL].median_ms = 0;
}
static void skew_e2el_over(struct run *r) { skew_e2el(r); r->m.client.skew.p99_ms = 101; }
static void lag_at(struct run *r) { r->m.client.send_lag.p99_ms = 10; }
static void lag_over(struct run *r) { r->m.client.send_lag.p99_ms = 10.1; }
static void lag_floor(struct run *r)
{
	r->m.client.send_lag.p99_ms = 1;
	r->m.client.mean_interarrival_s = 0.0001;
}
static void lag_inf(struct run *r)
{
	r->m.opts.is_rate_finite = false;
	r->m.client.send_lag.p99_ms = 100;
}
static void lag_inf_over(struct run *r) { lag_inf(r); r->m.client.send_lag.p99_ms = 101; }
/* Slots wait for each request: the rates lose what the client added on average. */
static void lag_capped(struct run *r)
{
	r->m.opts.max_concurrency = 8;
	r->m.client.send_lag = (struct metrics_spread){ .n = 1, .mean_ms = 50, .p99_ms = 10 };
}
static void lag_capped_over(struct run *r)
{
	lag_capped(r);
	r->m.client.send_lag.mean_ms = 60;
}
/* A closed loop: 500 begin at once, some of them late, and that counts by what it cost. */
static void lag_closed(struct run *r)
{
	r->m.opts.is_rate_finite = false;
	r->m.opts.max_concurrency = 500;
	r->m.client.mean_interarrival_s = 0;
	r->m.client.send_lag = (struct metrics_spread){ .n = 1000, .mean_ms = 52, .p99_ms = 900 };
}
static void lag_closed_over(struct run *r)
{
	lag_closed(r);
	r->m.client.send_lag.mean_ms = 53;
}
/* No slot is used twice: all should begin at one instant. */
static void lag_burst(struct run *r)
{
	lag_closed(r);
	r->m.opts.max_concurrency = 1000;
}
/* Without a rate, but with a schedule: a ramp, a trace. */
static void lag_ramp(struct run *r)
{
	lag_closed(r);
	r->m.client.mean_interarrival_s = 0.1;
}
static void lag_long(struct run *r)
{
	r->m.client.send_lag.p99_ms = 5100;
	r->m.client.mean_interarrival_s = 60;
}
static void stall_at(struct run *r)
{
	r->m.client.write = (struct metrics_spread){ .n = 1, .p99_ms = 10 };
}
static void stall_over(struct run *r) { stall_at(r); r->m.client.write.p99_ms = 10.1; }
static void stall_small(struct run *r)
{
	stall_over(r);
	r->m.client.write.p99_ms = 0.1;
	r->m.block[BLOCK_TTFT].median_ms = 0.5;
}
static void shared(struct run *r, uint64_t n)
{
	r->m.client.n_shared = r->m.client.n_shared_late = n;
}
static void shared_at(struct run *r) { shared(r, 400); }
static void shared_over(struct run *r) { shared(r, 401); }
static void shared_much(struct run *r) { shared(r, 5001); }
static void first_at(struct run *r)
{
	r->m.client.first_late.p99_ms = 10;
	r->m.client.tpot_late.p99_ms = 1;
}
/* No kernel stamps: whether reads were late is not known. */
static void shared_unknown(struct run *r) { shared_over(r); r->m.client.skew.n = 0; }
static void first_over(struct run *r) { r->m.client.first_late.p99_ms = 10.1; }
/* Short answers after a long prefill: TTFT is right and TPOT is not. */
static void first_tpot(struct run *r) { first_at(r); r->m.client.tpot_late.p99_ms = 1.01; }
static void first_unknown(struct run *r) { first_over(r); r->m.client.skew.n = 0; }
static void first_both(struct run *r) { first_over(r); r->m.client.tpot_late.p99_ms = 2; }
static void untapped(struct run *r) { r->f.no_tap = "it needs CAP_X"; }
static void bundled(struct run *r) { shared_at(r); r->m.client.n_shared = 50000; }
/* 1,000 requests arrive; so many are answered, and so many were in flight when it began. */
static void queue(struct run *r, uint32_t answered, uint32_t before)
{
	r->m.client.queue = (struct metrics_queue){
		.is_known = true, .arrived = 1000, .answered = answered,
		.in_flight_before = before, .in_flight_after = before + 1000 - answered,
		.offered_rps = 10, .carried_rps = answered / 100.0,
	};
}
static void queue_at(struct run *r) { queue(r, 950, 5); }
static void queue_over(struct run *r) { queue(r, 940, 5); }
/* 65 wait for an answer, and the client sends no more than so many at once. */
static void queue_held(struct run *r)
{
	queue_over(r);
	r->m.opts.max_concurrency = 64;
	r->m.block[BLOCK_TTFT].mean_ms = 100;
	r->m.client.schedule.planned_span_s = 100;
	r->m.client.schedule.sent_span_s = 106;
	r->m.client.held = (struct metrics_held){ 1000, 9, 0.2 };
}
/* Requests with a plan that wait for a slot, in a run too short to compare rates. */
static void held_at(struct run *r)
{
	queue_held(r);
	r->m.client.queue = (struct metrics_queue){ 0 };
	r->m.client.held.mean_ms = 10;
}
static void held_ttft(struct run *r) { held_at(r); r->m.client.held.mean_ms = 10.1; }
static void held_both(struct run *r) { held_at(r); r->m.client.held.mean_ms = 101; }
static void held_sessions(struct run *r)
{
	held_ttft(r);
	r->m.opts.max_concurrency = 0;
	r->m.opts.max_sessions = 16;
}
static void held_pooling(struct run *r)
{
	held_both(r);
	r->m.block[BLOCK_TTFT].mean_ms = 0;
	r->m.opts.is_pooling = true;
}
static void held_small(struct run *r)
{
	held_at(r);
	r->m.block[BLOCK_TTFT].mean_ms = 1;
	r->m.client.held.mean_ms = 1;
}
/* A closed loop of 8 with so many requests and so many of them in flight. */
static void slots(struct run *r, uint32_t requests, double in_flight)
{
	r->m.opts.is_rate_finite = false;
	r->m.opts.max_concurrency = 8;
	r->m.client.mean_interarrival_s = 0;
	r->m.client.send_lag = (struct metrics_spread){ .n = requests };
	r->m.client.slots = (struct metrics_slots){ true, requests, in_flight };
}
static void slots_few(struct run *r) { slots(r, 5, 5); }
static void slots_one(struct run *r) { slots(r, 1, 1); }
static void slots_nearly(struct run *r) { slots(r, 7, 6.9); }
static void slots_burst(struct run *r) { slots(r, 8, 7.2); }
static void slots_tail(struct run *r) { slots(r, 9, 5.4); }
static void slots_tail_at(struct run *r) { slots(r, 23, 6.4); }
static void slots_short(struct run *r) { slots(r, 24, 6.3); }
static void slots_long(struct run *r) { slots(r, 100, 3.9); }
static void slots_full(struct run *r) { slots(r, 40, 7.3); }
static void slots_late(struct run *r)
{
	slots_tail(r);
	r->m.client.send_lag.mean_ms = 100;
}
static void slots_sessions(struct run *r)
{
	slots(r, 5, 0);
	r->m.sessions.n = 5;
}
static void slots_sessions_all(struct run *r)
{
	slots(r, 8, 0);
	r->m.sessions.n = 8;
}
static void queue_free(struct run *r) { queue_over(r); r->m.opts.max_concurrency = 65; }
static void queue_late(struct run *r) { queue_over(r); r->m.client.send_lag.p99_ms = 5100; }
static void queue_noise(struct run *r) { queue(r, 940, 200); }
static void growth(struct run *r, double last_ms, double p)
{
	queue(r, 1000, 5);
	r->m.client.queue.knows_growth = true;
	r->m.client.queue.ttft_first_ms = 20;
	r->m.client.queue.ttft_last_ms = last_ms;
	r->m.client.queue.growth_p = p;
}
static void growth_at(struct run *r) { growth(r, 30, 1e-9); }
static void growth_over(struct run *r) { growth(r, 31, 1e-9); }
static void growth_chance(struct run *r) { growth(r, 31, 0.002); }
static void growth_unknown(struct run *r)
{
	growth_over(r);
	r->m.client.queue.knows_growth = false;
}
static void usage_at(struct run *r) { r->m.client.n_usage_differs = 10; }
static void usage_over(struct run *r) { r->m.client.n_usage_differs = 11; }
static void usage_over_fixed(struct run *r) { usage_over(r); r->m.opts.is_peak_in_tokens = true; }
/* 1,000 answers of 11 tokens each; their gaps. */
static void gaps(struct run *r, size_t n)
{
	r->m.client.best_output = 11000;
	r->m.block[BLOCK_ITL].n = n;
}
static void gaps_at(struct run *r) { gaps(r, 11000); }
static void gaps_more(struct run *r) { gaps(r, 11001); }
static void gaps_alone(struct run *r) { gaps(r, 10); r->m.client.best_output = 1000; }
static void gaps_fewer(struct run *r) { gaps(r, 2000); }
/* So many of 1,000 were cancelled after they were sent, five before. */
static void cut(struct run *r, uint32_t n)
{
	r->m.completed = 1000 - n;
	r->m.cancelled = n + 5;
	r->m.attempted.unsent = 5;
}
static void answers_one(struct run *r) { r->f.answers = 1; }
static void answers_three(struct run *r) { r->f.answers = 3; }
static void cut_at(struct run *r) { cut(r, 50); }
static void cut_over(struct run *r) { cut(r, 51); }
static void cut_interrupted(struct run *r) { cut_over(r); r->f.is_interrupted = true; }
static void full(struct run *r) { r->m.client.is_full = true; }
/* Usage says 40 % of the prompt tokens were cached; so much of it the run explains. */
static void cached(struct run *r, double explained)
{
	r->m.total_input = 100000;
	r->m.total_cached = 40000;
	r->f.knows_explained = true;
	r->f.cached_explained = explained;
}
static void cached_at(struct run *r) { cached(r, 0.31); }
static void cached_over(struct run *r) { cached(r, 0.295); }
static void cached_shared(struct run *r) { cached(r, 0.9); }
static void cached_unknown(struct run *r) { cached(r, 0); r->f.knows_explained = false; }
static void hits(struct run *r)
{
	cached(r, 0.05);
	r->m.total_cached = 0; /* the answers do not say: /metrics do */
	r->m.servers.prefix_queries = (struct metrics_growth){ true, 1000 };
	r->m.servers.prefix_hits = (struct metrics_growth){ true, 500 };
}
static void hits_three(struct run *r) { hits(r); r->f.answers = 3; }
static void hits_none(struct run *r) { hits(r); r->m.servers.prefix_hits.value = 100; }
static void hits_preempted(struct run *r)
{
	hits(r);
	r->m.servers.preemptions = (struct metrics_growth){ true, 1 };
}
/* Of ten constrained answers: correct ones, free text, JSON that the schema forbids. */
static void constrained(struct run *r, uint32_t correct, uint32_t parse, uint32_t schema)
{
	r->f.told_by = "structured_outputs";
	r->m.correctness = (struct metrics_correctness){
		.n = 10, .constrained = 10, .constrained_scored = correct + parse + schema,
		.constrained_correct = correct,
	};
	r->m.correctness.wrong[WRONG_PARSE] = parse;
	r->m.correctness.wrong[WRONG_SCHEMA] = schema;
}
static void free_text(struct run *r) { constrained(r, 2, 8, 0); }
static void free_text_old(struct run *r) { constrained(r, 0, 10, 0); r->f.told_by = "guided_json"; }
static void free_text_some(struct run *r) { constrained(r, 3, 7, 0); }
static void free_text_few(struct run *r) { constrained(r, 0, 4, 0); }
static void free_text_not(struct run *r) { constrained(r, 0, 9, 1); }
static void free_text_untold(struct run *r) { free_text(r); r->f.told_by = NULL; }
static void unstamped(struct run *r)
{
	r->f.is_kernel_stamped = true;
	r->f.reads = 1000;
	r->f.reads_without_stamp = 11;
}
static void unstamped_at(struct run *r) { unstamped(r); r->f.reads_without_stamp = 10; }
static void unstamped_user(struct run *r) { unstamped(r); r->m.opts.is_user_stamps = true; }
static void step(struct run *r) { r->f.clock_step_ns = -1000001; }
static void step_at(struct run *r) { r->f.clock_step_ns = 1000000; }
static void step_large(struct run *r) { r->f.clock_step_ns = 101000000; }
static void step_share_at(struct run *r)
{
	r->m.duration_s = 10;
	r->f.clock_step_ns = 100000000;
}
static void step_share_over(struct run *r) { step_share_at(r); r->f.clock_step_ns++; }
static void step_huge(struct run *r) { r->f.clock_step_ns = 3600000000000; }
static void cpu_at(struct run *r) { r->f.cpu_share_max = 0.80; }
static void cpu_over(struct run *r) { r->f.cpu_share_max = 0.81; }
static void cpu_much(struct run *r) { r->f.cpu_share_max = 0.96; }
/* So many of 1,000 answers came in one piece. */
static void at_once_few(struct run *r) { r->m.client.n_at_once = 10; }
static void at_once_four(struct run *r) { r->m.client.n_at_once = 4; r->m.completed = 20; }
static void at_once_all(struct run *r) { r->m.client.n_at_once = r->m.completed = 4; }
static void at_once_some(struct run *r) { r->m.client.n_at_once = 11; }
static void at_once_many(struct run *r) { r->m.client.n_at_once = 101; }
/* So many of 1,000 answers begin with a role; TTFT is 10 ms, the first content comes then. */
static void role(struct run *r, uint32_t n, double content_ms)
{
	r->m.block[BLOCK_TTFT].mean_ms = 10;
	r->m.client.n_role_first = n;
	r->m.client.ttft_content.mean_ms = content_ms;
}
static void role_few(struct run *r) { role(r, 10, 100); }
static void role_near(struct run *r) { role(r, 11, 15); }
static void role_far(struct run *r) { role(r, 1000, 15.1); }
/* 1,000 tokens are reported each way. */
static void counts(struct run *r, int64_t best_input, int64_t best_output)
{
	r->m.total_input = r->m.total_output = 1000;
	r->m.client.best_input = best_input;
	r->m.client.best_output = best_output;
}
static void ignored_alike(struct run *r)
{
	counts(r, 1000, 1010);
	r->m.client.n_usage_ignored = 1000;
}
static void ignored_few(struct run *r)
{
	counts(r, 1000, 1100);
	r->m.client.n_usage_ignored = 10;
}
static void ignored_some(struct run *r)
{
	counts(r, 1050, 1000);
	r->m.client.n_usage_ignored = 11;
}
static void ignored_all(struct run *r)
{
	counts(r, 1000, 16000);
	r->m.client.n_usage_ignored = 1000;
}
static void refused(struct run *r) { r->m.client.n_usage_refused = 1; }
static void short_count(struct run *r) { counts(r, 1000, 2000); r->m.client.n_count_short = 500; }
static void short_alike(struct run *r) { counts(r, 1000, 1010); r->m.client.n_count_short = 500; }
static void length_at(struct run *r) { r->m.client.n_longer_than_asked = 10; }
static void length_over(struct run *r) { length_at(r); r->m.client.n_shorter_than_asked = 1; }
static void early(struct run *r) { r->m.client.n_sent_early = 1; }
static void restarted(struct run *r) { r->m.servers.is_restarted = true; }
/* Of 1,000 requests the first so many are slow. */
static void start(struct run *r, uint32_t first, double ttft_first_ms, double mean_ms, double p)
{
	r->m.client.start = (struct metrics_start){
		.is_known = true, .n = 1000, .first = first, .p = p, .ttft_first_ms = ttft_first_ms,
		.ttft_rest_ms = 100, .mean_ms = mean_ms, .mean_rest_ms = 100,
	};
}
static void start_at(struct run *r) { start(r, 10, 900, 105, 1e-9); }
static void start_mean(struct run *r) { start(r, 8, 900, 105.1, 1e-9); }
static void start_cached(struct run *r) { start_mean(r); cached(r, 0.9); }
static void start_share(struct run *r) { start(r, 16, 151, 101, 1e-9); }
static void start_alike(struct run *r) { start(r, 16, 150, 101, 1e-9); }
static void start_chance(struct run *r) { start(r, 16, 900, 200, 0.0011); }
static void start_unknown(struct run *r) { start_mean(r); r->m.client.start.is_known = false; }
static void start_crowd(struct run *r) { start_mean(r); r->m.opts.is_rate_finite = false; }
static void outage(struct run *r)
{
	r->m.client.outage = (struct metrics_outage){ 7, 12.5, 3.25 };
}
static void outage_ours(struct run *r) { outage(r); r->f.no_ports = 3; }
static void outage_counted(struct run *r) { outage(r); restarted(r); }
static const double percentiles[] = { 50, 99, 99.9 };
static struct percentile open_bounds[4] = {
	{ .n = 1000, .needed = 6 }, /* of the median, which comes first */
	{ .n = 1000, .needed = 6 },
	{ .n = 1000, .needed = 1200, .marks = PERCENTILE_FEW | PERCENTILE_OPEN },
	{ .n = 1000, .needed = 3688, .marks = PERCENTILE_FEW | PERCENTILE_OPEN },
};
static void few(struct run *r)
{
	r->m.opts.percentile = percentiles;
	r->m.opts.n_percentiles = 3;
	r->m.block[BLOCK_TTFT].bounds = open_bounds;
}
static void few_not(struct run *r) { few(r); r->m.opts.n_percentiles = 1; }
static void wait_at(struct run *r) { r->f.wait_share_max = 0.10; }
static void wait_over(struct run *r) { r->f.wait_share_max = 0.11; }
static void throttled_at(struct run *r) { r->f.throttled_share = 0.01; }
static void throttled_over(struct run *r) { r->f.throttled_share = 0.35; }
static void ports(struct run *r) { r->f.no_ports = 3; r->f.ports = 28232; }
static void ports_at(struct run *r) { r->f.connections_most = 80; r->f.ports = 100; }
static void ports_over(struct run *r) { ports_at(r); r->f.connections_most = 81; }
static void files(struct run *r) { r->f.no_descriptors = 3; r->f.descriptors = 1024; }
static void files_at(struct run *r) { r->f.connections_most = 80; r->f.descriptors = 100; }
static void files_over(struct run *r) { files_at(r); r->f.connections_most = 81; }
static void resent_at(struct run *r) { r->f.resent = 10; }
static void resent_over(struct run *r) { r->f.resent = 11; }
static void early_at(struct run *r) { r->f.out_of_order = 400; }
static void early_over(struct run *r) { r->f.out_of_order = 401; }
static void connects(struct run *r, size_t n, double p99_ms)
{
	r->m.client.connect = (struct metrics_spread){ .n = n, .p99_ms = p99_ms };
}
static void connect_at(struct run *r) { connects(r, 1000, 10); }
static void connect_few(struct run *r) { connects(r, 10, 11); }
static void connect_over(struct run *r) { connects(r, 11, 11); }
static void connect_pooling(struct run *r)
{
	connects(r, 11, 11);
	r->m.opts.is_pooling = true;
	r->m.block[BLOCK_TTFT].median_ms = 0;
	r->m.block[BLOCK_E2EL].median_ms = 20;
}
static void resolve_at(struct run *r) { r->f.resolve_ns = 500000000; }
static void resolve_over(struct run *r) { r->f.resolve_ns = 500100000; }
static void interrupted(struct run *r) { r->f.is_interrupted = true; }
static void broken_off(struct run *r) { r->f.is_broken_off = true; }
static void lost_process(struct run *r) { r->f.lost = 25; }

static const struct {
	void (*set)(struct run *r);
	enum trust_verdict want;
	const char *code, *text; /* NULL: no reason at all */
	const char *spoils;      /* NULL: a note */
} cases[] = {
	{ nothing, TRUST_VALID, NULL, NULL, NULL },
	{ failed_1, TRUST_VALID, NULL, NULL, NULL },
	{ failed_2, TRUST_DEGRADED, "failures", "2.0 % of the requests failed (limit 1 %).",
	  "every metric" },
	{ failed_60, TRUST_INVALID, "failures", "60.0 % of the requests failed (limit 50 %).",
	  "every metric" },
	{ failed_all, TRUST_INVALID, "no_success",
	  "No request succeeded (1000 failed, 0 cancelled).",
	  "every metric" },
	{ all_given_up, TRUST_INVALID, "no_success", "No request succeeded (0 failed, 5 cancelled).",
	  "every metric" },
	{ none_ran, TRUST_INVALID, "no_success", "No request succeeded (0 failed, 5 cancelled).",
	  "every metric" },
	{ skew_at, TRUST_VALID, NULL, NULL, NULL },
	{ skew_over, TRUST_VALID, "skew",
	  "The client read events 1.010 ms (p99) after they arrived. The times are the kernel's "
	  "arrival stamps, which this does not change.", NULL },
	{ skew_saturated, TRUST_VALID, "skew",
	  "The client read events more than 4.29 s (p99) after they arrived. The times are the "
	  "kernel's arrival stamps, which this does not change.", NULL },
	{ skew_small, TRUST_VALID, NULL, NULL, NULL },
	{ skew_e2el, TRUST_VALID, NULL, NULL, NULL },
	{ skew_e2el_over, TRUST_VALID, "skew",
	  "The client read events 101.000 ms (p99) after they arrived. The times are the kernel's "
	  "arrival stamps, which this does not change.", NULL },
	{ shift_at, TRUST_VALID, NULL, NULL, NULL },
	{ shift_itl, TRUST_DEGRADED, "skew",
	  "The client read events 5.000 ms (p99) after they arrived, and --timestamps user counts "
	  "that as the server's time: ITL is wrong by up to 1.010 ms (p99), TTFT by 10.000 ms." SEE_DOCTOR,
	  "ITL" },
	{ shift_all, TRUST_DEGRADED, "skew",
	  "The client read events 120.000 ms (p99) after they arrived, and --timestamps user counts "
	  "that as the server's time: ITL is wrong by up to 101.000 ms (p99), TTFT by 101.000 ms." SEE_DOCTOR,
	  "TTFT, TPOT, ITL, E2EL, goodput" },
	{ lag_at, TRUST_VALID, NULL, NULL, NULL },
	{ lag_over, TRUST_DEGRADED, "send_lag",
	  "The client sent requests 10.100 ms (p99) later than possible (limit "
	  "10.000 ms), which cost 0.0 % of the duration (limit 5 %)." SEE_DOCTOR,
	  "TTFT, E2EL, goodput" },
	{ lag_floor, TRUST_VALID, NULL, NULL, NULL },
	{ lag_inf, TRUST_VALID, NULL, NULL, NULL },
	{ lag_inf_over, TRUST_DEGRADED, "send_lag",
	  "The client sent requests 101.000 ms (p99) later than possible (limit "
	  "100.000 ms), which cost 0.1 % of the duration (limit 5 %)." SEE_DOCTOR,
	  "TTFT, E2EL, goodput" },
	{ lag_closed, TRUST_VALID, NULL, NULL, NULL },
	{ lag_closed_over, TRUST_DEGRADED, "send_lag",
	  "The client sent requests 53.000 ms (mean) later than possible, which cost 5.03 % "
	  "of the time of the 500 slots of --max-concurrency (limit 5 %): fewer requests were in "
	  "flight than requested, and throughput or latencies are too low, by up to that share."
	  SEE_DOCTOR, "TTFT, E2EL, goodput, throughput" },
	{ lag_burst, TRUST_DEGRADED, "send_lag",
	  "The client sent requests 900.000 ms (p99) later than possible (limit "
	  "100.000 ms), which cost 4.9 % of the duration (limit 5 %)." SEE_DOCTOR,
	  "TTFT, E2EL, goodput" },
	{ lag_ramp, TRUST_DEGRADED, "send_lag",
	  "The client sent requests 900.000 ms (p99) later than possible (limit "
	  "100.000 ms), which cost 4.9 % of the duration (limit 5 %)." SEE_DOCTOR,
	  "TTFT, E2EL, goodput" },
	{ lag_capped, TRUST_VALID, NULL, NULL, NULL },
	{ lag_capped_over, TRUST_DEGRADED, "send_lag",
	  "The client sent requests 10.000 ms (p99) later than possible (limit "
	  "10.000 ms), which cost 5.7 % of the duration (limit 5 %)." SEE_DOCTOR, "throughput" },
	{ lag_long, TRUST_DEGRADED, "send_lag",
	  "The client sent requests 5100.000 ms (p99) later than possible (limit "
	  "6000.000 ms), which cost 5.1 % of the duration (limit 5 %)." SEE_DOCTOR, "throughput" },
	{ stall_at, TRUST_VALID, NULL, NULL, NULL },
	{ stall_over, TRUST_DEGRADED, "send_stall",
	  "Writing a request took 10.100 ms (p99; limit 10 % of the median TTFT of 100.000 ms), "
	  "which TTFT and E2EL include: the client was interrupted." SEE_DOCTOR, "TTFT, E2EL, goodput" },
	{ stall_small, TRUST_VALID, NULL, NULL, NULL },
	{ shared_at, TRUST_VALID, NULL, NULL, NULL },
	{ shared_over, TRUST_DEGRADED, "shared_reads",
	  "0.401 % of the events were read late, together with an earlier one, and share its arrival "
	  "stamp (limit 0.4 %): ITL is distorted." SEE_DOCTOR,
	  "ITL" },
	{ shared_unknown, TRUST_DEGRADED, "shared_reads",
	  "0.401 % of the events were read together with an earlier one, late or because they were sent "
	  "so, and share its arrival stamp (limit 0.4 %): ITL is distorted." SEE_DOCTOR, "ITL" },
	{ first_unknown, TRUST_DEGRADED, "shared_first",
	  "First tokens were read together with later ones and have their arrival stamp: TTFT is about "
	  "10.100 ms (p99) too long and TPOT 0.000 ms too short if the client was late (limit 10 % of the "
	  "median).", "TTFT, goodput" },
	{ shared_much, TRUST_INVALID, "shared_reads",
	  "5.001 % of the events were read late, together with an earlier one, and share its arrival "
	  "stamp (limit 5.0 %): ITL is not usable." SEE_DOCTOR,
	  "ITL" },
	{ first_at, TRUST_VALID, NULL, NULL, NULL },
	{ first_over, TRUST_DEGRADED, "shared_first",
	  "First tokens were read late, together with later ones, and have their arrival stamp: "
	  "TTFT is about 10.100 ms (p99) too long and TPOT 0.000 ms too short (limit 10 % of the "
	  "median).", "TTFT, goodput" },
	{ first_tpot, TRUST_DEGRADED, "shared_first",
	  "First tokens were read late, together with later ones, and have their arrival stamp: "
	  "TTFT is about 10.000 ms (p99) too long and TPOT 1.010 ms too short (limit 10 % of the "
	  "median).", "TPOT, goodput" },
	{ first_both, TRUST_DEGRADED, "shared_first",
	  "First tokens were read late, together with later ones, and have their arrival stamp: "
	  "TTFT is about 10.100 ms (p99) too long and TPOT 2.000 ms too short (limit 10 % of the "
	  "median).", "TTFT, TPOT, goodput" },
	{ untapped, TRUST_VALID, NULL, NULL, NULL },
	{ bundled, TRUST_VALID, "shared_reads",
	  "50.0 % of the events arrived together with an earlier one although the client read "
	  "promptly: the server or the network sends them together, and ITL shows it.", NULL },
	{ queue_at, TRUST_VALID, NULL, NULL, NULL },
	{ queue_over, TRUST_DEGRADED, "rate_not_carried",
	  "Requests arrived at 10.00/s and were answered at 9.40/s: the server cannot sustain this "
	  "rate, 65 were unanswered when the last one arrived, and the latencies depend on how long "
	  "the run was.", "TTFT, E2EL, goodput" },
	{ queue_held, TRUST_DEGRADED, "rate_not_carried", HELD("20", "64", "9.000"),
	  "TTFT, E2EL, goodput" },
	{ held_at, TRUST_VALID, NULL, NULL, NULL },
	{ held_ttft, TRUST_DEGRADED, "rate_not_carried", HELD("20", "64", "10.100"), "TTFT, goodput" },
	{ held_sessions, TRUST_DEGRADED, "rate_not_carried",
	  HELD_BY("20", "16", "10.100", "--max-sessions"), "TTFT, goodput" },
	{ held_both, TRUST_DEGRADED, "rate_not_carried", HELD("20", "64", "101.000"),
	  "TTFT, E2EL, goodput" },
	{ held_pooling, TRUST_DEGRADED, "rate_not_carried", HELD("20", "64", "101.000"), "E2EL" },
	{ held_small, TRUST_VALID, NULL, NULL, NULL },
	{ slots_few, TRUST_DEGRADED, "slots_empty",
	  "The run has 5 requests for the 8 slots of --max-concurrency: 5.0 were in flight on average "
	  "(limit 6.4). This is not the load of 8 at once; --num-prompts 80 or more is.",
	  "every metric" },
	{ slots_one, TRUST_DEGRADED, "slots_empty",
	  "The run has 1 request for the 8 slots of --max-concurrency: 1.0 were in flight on average "
	  "(limit 6.4). This is not the load of 8 at once; --num-prompts 80 or more is.",
	  "every metric" },
	{ slots_nearly, TRUST_VALID, "slots_empty",
	  "The run has 7 requests for the 8 slots of --max-concurrency: 6.9 were in flight on average "
	  "(limit 6.4). This is not the load of 8 at once; --num-prompts 80 or more is.", NULL },
	{ slots_burst, TRUST_VALID, NULL, NULL, NULL },
	{ slots_tail, TRUST_DEGRADED, "slots_empty", TAIL("5.4", "6.4", "32", "80"), "every metric" },
	{ slots_tail_at, TRUST_VALID, "slots_empty", TAIL("6.4", "6.4", "20", "80"), NULL },
	{ slots_short, TRUST_VALID, "slots_empty", TAIL("6.3", "4.0", "21", "80"), NULL },
	{ slots_long, TRUST_DEGRADED, "slots_empty", TAIL("3.9", "4.0", "51", "200"), "every metric" },
	{ slots_full, TRUST_VALID, NULL, NULL, NULL },
	{ slots_late, TRUST_DEGRADED, "send_lag",
	  "The client sent requests 100.000 ms (mean) later than possible, which cost 9.1 % of the "
	  "time of the 8 slots of --max-concurrency (limit 5 %): fewer requests were in flight than "
	  "requested, and throughput or latencies are too low, by up to that share." SEE_DOCTOR,
	  "TTFT, E2EL, goodput, throughput" },
	{ slots_sessions, TRUST_DEGRADED, "slots_empty",
	  "The run has 5 conversations, so at most that many of the 8 slots of --max-concurrency were "
	  "in use: this is not the load of 8 requests at once. Give it more conversations, or lower "
	  "--max-concurrency.", "every metric" },
	{ slots_sessions_all, TRUST_VALID, NULL, NULL, NULL },
	{ queue_free, TRUST_DEGRADED, "rate_not_carried",
	  "Requests arrived at 10.00/s and were answered at 9.40/s: the server cannot sustain this "
	  "rate, 65 were unanswered when the last one arrived, and the latencies depend on how long "
	  "the run was.", "TTFT, E2EL, goodput" },
	{ queue_late, TRUST_DEGRADED, "send_lag",
	  "The client sent requests 5100.000 ms (p99) later than possible (limit 10.000 "
	  "ms), which cost 5.1 % of the duration (limit 5 %). profllm doctor looks for the cause.",
	  "TTFT, E2EL, goodput, throughput" },
	{ queue_noise, TRUST_VALID, NULL, NULL, NULL },
	{ growth_at, TRUST_VALID, NULL, NULL, NULL },
	{ growth_over, TRUST_DEGRADED, "queue_growing",
	  "The median TTFT grew from 20.000 ms in the first third of the run to 31.000 ms in the "
	  "last: the queue was still growing, and a longer run would be slower.",
	  "TTFT, E2EL, goodput" },
	{ growth_chance, TRUST_VALID, NULL, NULL, NULL },
	{ growth_unknown, TRUST_VALID, NULL, NULL, NULL },
	{ usage_at, TRUST_VALID, NULL, NULL, NULL },
	{ usage_over, TRUST_DEGRADED, "usage",
	  "In 1.1 % of the requests the server's token count is not the number of token events "
	  "(limit 1 %): ITL is then per event, not per token, as is the peak output throughput.",
	  "ITL" },
	{ usage_over_fixed, TRUST_DEGRADED, "usage",
	  "In 1.1 % of the requests the server's token count is not the number of token events "
	  "(limit 1 %): ITL is then per event, not per token.",
	  "ITL" },
	{ gaps_at, TRUST_VALID, NULL, NULL, NULL },
	{ gaps_more, TRUST_DEGRADED, "usage",
	  "ITL has 11001 gaps for 10000 tokens after the first ones (limit: 10 % apart): it is per "
	  "event, not per token, as is the peak output throughput. Events without a token make it too "
	  "short; --compat role-chunk leaves out those that have only a role.", "ITL" },
	{ gaps_alone, TRUST_DEGRADED, "usage",
	  "ITL has 10 gaps for 0 tokens after the first ones (limit: 10 % apart): it is per event, not "
	  "per token, as is the peak output throughput. Events without a token make it too short; "
	  "--compat role-chunk leaves out those that have only a role.", "ITL" },
	{ gaps_fewer, TRUST_DEGRADED, "usage",
	  "ITL has 2000 gaps for 10000 tokens after the first ones (limit: 10 % apart): it is per "
	  "event, not per token, as is the peak output throughput.", "ITL" },
	{ answers_one, TRUST_VALID, NULL, NULL, NULL },
	{ answers_three, TRUST_DEGRADED, "several_answers", THREE_ANSWERS, "TPOT, ITL, goodput" },
	/* Two of three answers find their prompt in the cache, by /metrics. */
	{ hits_three, TRUST_DEGRADED, "several_answers", THREE_ANSWERS, "TPOT, ITL, goodput" },
	{ cut_at, TRUST_VALID, NULL, NULL, NULL },
	{ cut_over, TRUST_DEGRADED, "cancelled",
	  "5.1 % of the requests were cancelled while they ran (limit 5 %): throughput leaves out "
	  "what they were sent, and E2EL is that of the others, whose answers are shorter.",
	  "E2EL, goodput, throughput" },
	{ cut_interrupted, TRUST_DEGRADED, "interrupted",
	  "The run was interrupted: the numbers cover what had finished by then.", "every metric" },
	{ cached_at, TRUST_VALID, NULL, NULL, NULL },
	{ cached_over, TRUST_DEGRADED, "prefix_cache",
	  "The server had 40.0 % of the prompt tokens cached; this run's own prompts explain 29.5 % "
	  "(limit: 10 % more). Its prefix cache was warm: use --prompt-salt run or "
	  "--reset-prefix-cache.",
	  "TTFT, E2EL, goodput, throughput" },
	{ cached_shared, TRUST_VALID, NULL, NULL, NULL },
	{ cached_unknown, TRUST_VALID, NULL, NULL, NULL },
	{ hits, TRUST_DEGRADED, "prefix_cache",
	  "The server had 50.0 % of the prompt tokens cached; this run's own prompts explain 5.0 % "
	  "(limit: 10 % more). Its prefix cache was warm: use --prompt-salt run or "
	  "--reset-prefix-cache.",
	  "TTFT, E2EL, goodput, throughput" },
	{ hits_none, TRUST_VALID, NULL, NULL, NULL },
	{ hits_preempted, TRUST_VALID, NULL, NULL, NULL },
	{ free_text, TRUST_VALID, "constraints_ignored",
	  "8 of 10 constrained answers are free text. The server seems to ignore "
	  "\"structured_outputs\", the key that it was sent; --constraint-form guided sends "
	  "guided_json and its like, as vLLM before 0.11 has them.", NULL },
	{ free_text_old, TRUST_VALID, "constraints_ignored",
	  "10 of 10 constrained answers are free text. The server seems to ignore \"guided_json\", "
	  "the key that it was sent; --constraint-form structured_outputs sends that key of vLLM "
	  "since 0.11.", NULL },
	{ free_text_some, TRUST_VALID, NULL, NULL, NULL },
	{ free_text_few, TRUST_VALID, NULL, NULL, NULL },
	{ free_text_not, TRUST_VALID, NULL, NULL, NULL },
	{ free_text_untold, TRUST_VALID, NULL, NULL, NULL },
	{ full, TRUST_INVALID, "record_full",
	  "The record reached its limit: later token events are not in it.",
	  "every metric" },
	{ unstamped, TRUST_DEGRADED, "unstamped",
	  "1.1 % of the reads had no kernel stamp and took the user-space clock (limit 1 %)." SEE_DOCTOR,
	  "ITL" },
	{ unstamped_at, TRUST_VALID, NULL, NULL, NULL },
	{ unstamped_user, TRUST_VALID, NULL, NULL, NULL },
	{ step, TRUST_DEGRADED, "clock_step",
	  "The system clock moved by -1.000 ms against the monotonic one during the run (limit 1 "
	  "ms)." SEE_DOCTOR, "TTFT, TPOT, ITL, E2EL, goodput" },
	{ step_at, TRUST_VALID, NULL, NULL, NULL },
	{ step_large, TRUST_INVALID, "clock_step",
	  "The system clock moved by 101.000 ms against the monotonic one during the run (limit 1 "
	  "ms)." SEE_DOCTOR, "TTFT, TPOT, ITL, E2EL, goodput" },
	{ step_share_at, TRUST_DEGRADED, "clock_step",
	  "The system clock moved by 100.000 ms against the monotonic one during the run (limit 1 "
	  "ms)." SEE_DOCTOR, "TTFT, TPOT, ITL, E2EL, goodput" },
	{ step_share_over, TRUST_INVALID, "clock_step",
	  "The system clock moved by 100.000 ms against the monotonic one during the run (limit 1 "
	  "ms)." SEE_DOCTOR, "every metric" },
	{ step_huge, TRUST_INVALID, "clock_step",
	  "The system clock moved by 3600000.000 ms against the monotonic one during the run (limit "
	  "1 ms)." SEE_DOCTOR, "every metric" },
	{ cpu_at, TRUST_VALID, NULL, NULL, NULL },
	{ cpu_over, TRUST_VALID, "client_cpu",
	  "The client's busiest loop used 81 % of a CPU; above 95 % the run is INVALID. --threads "
	  "adds loops.", NULL },
	{ cpu_much, TRUST_INVALID, "client_cpu",
	  "The client's busiest loop used 96 % of a CPU (limit 95 %): it may be the bottleneck.",
	  "every metric" },
	{ at_once_few, TRUST_VALID, NULL, NULL, NULL },
	{ at_once_four, TRUST_VALID, NULL, NULL, NULL },
	{ at_once_all, TRUST_INVALID, "answer_at_once", AT_ONCE("100.0"), "TTFT, TPOT, ITL, goodput" },
	{ at_once_some, TRUST_DEGRADED, "answer_at_once", AT_ONCE("1.1"), "TTFT, TPOT, ITL, goodput" },
	{ at_once_many, TRUST_INVALID, "answer_at_once", AT_ONCE("10.1"), "TTFT, TPOT, ITL, goodput" },
	{ role_few, TRUST_VALID, NULL, NULL, NULL },
	{ role_near, TRUST_DEGRADED, "role_event",
	  "The first event of 1.1 % of the answers has only a role, and TTFT ends with it (mean "
	  "10.000 ms). The first content came after 15.000 ms; --compat role-chunk measures that.",
	  "TTFT, TPOT, ITL, goodput" },
	{ role_far, TRUST_INVALID, "role_event",
	  "The first event of 100.0 % of the answers has only a role, and TTFT ends with it (mean "
	  "10.000 ms). The first content came after 15.100 ms; --compat role-chunk measures that.",
	  "TTFT, TPOT, ITL, goodput" },
	{ ignored_alike, TRUST_VALID, NULL, NULL, NULL },
	{ ignored_few, TRUST_VALID, NULL, NULL, NULL },
	{ ignored_some, TRUST_DEGRADED, "usage_ignored",
	  "The server sends its token counts in an event with choices, where vllm does not look: "
	  "1000 output and 1000 input tokens are reported, it says 1000 and 1050; --fix usage takes "
	  "those.", "TPOT, goodput, input throughput, output throughput" },
	{ ignored_all, TRUST_INVALID, "usage_ignored",
	  "The server sends its token counts in an event with choices, where vllm does not look: "
	  "1000 output and 1000 input tokens are reported, it says 16000 and 1000; --fix usage takes "
	  "those.", "TPOT, goodput, input throughput, output throughput" },
	{ refused, TRUST_DEGRADED, "usage_refused",
	  "The server sent impossible token counts with 0.1 % of the answers: below zero, or more than "
	  "16 times what was asked for (output) or sent (prompt). They are not used; those tokens are "
	  "counted as if the server had sent no count.",
	  "TPOT, goodput, input throughput, output throughput" },
	{ short_count, TRUST_INVALID, "token_count",
	  "Only the answer's text is counted, and 50.0 % of the answers have more events than that "
	  "has tokens (reasoning, tool calls): 1000 output tokens are reported, at least 2000 were "
	  "sent; --fix all-text counts all.", "TPOT, goodput, output throughput" },
	{ short_alike, TRUST_VALID, NULL, NULL, NULL },
	{ length_at, TRUST_VALID, NULL, NULL, NULL },
	{ length_over, TRUST_DEGRADED, "answer_length",
	  "1.0 % of the answers are longer than asked for and 0.1 % shorter: the server does not "
	  "follow the length in the request, which --extra-body can set under the name that it "
	  "reads.", "E2EL, goodput, request throughput, output throughput" },
	{ early, TRUST_INVALID, "sent_early",
	  "1 request was sent before the planned time: the load is not the requested one. "
	  "Please report this as a bug.", "every metric" },
	{ restarted, TRUST_DEGRADED, "server_restarted",
	  "The counters of the server's /metrics began again during the run: it was restarted, or "
	  "several servers answer at one address.", "every metric" },
	{ start_at, TRUST_VALID, NULL, NULL, NULL },
	{ start_mean, TRUST_DEGRADED, "slow_start",
	  "The first 8 requests had a median TTFT of 900.000 ms, the others of 100.000 ms: the server "
	  "was cold, and the mean TTFT is 5.1 % longer for it. --num-warmups 8 sends such requests "
	  "before the measurement.", "TTFT, E2EL, goodput" },
	{ start_cached, TRUST_DEGRADED, "slow_start",
	  "The first 8 requests had a median TTFT of 900.000 ms, the others of 100.000 ms: the server "
	  "or its prefix cache was cold, and the mean TTFT is 5.1 % longer for it. --num-warmups 8 "
	  "sends such requests before the measurement.", "TTFT, E2EL, goodput" },
	{ start_share, TRUST_DEGRADED, "slow_start",
	  "The first 16 requests had a median TTFT of 151.000 ms, the others of 100.000 ms: the server "
	  "was cold, and the mean TTFT is 1.0 % longer for it. --num-warmups 16 sends such requests "
	  "before the measurement.", "TTFT, E2EL, goodput" },
	{ start_alike, TRUST_VALID, NULL, NULL, NULL },
	{ start_chance, TRUST_VALID, NULL, NULL, NULL },
	{ start_unknown, TRUST_VALID, NULL, NULL, NULL },
	{ start_crowd, TRUST_VALID, "slow_start",
	  "The first 8 requests had a median TTFT of 900.000 ms, the others of 100.000 ms: the server "
	  "was cold, or it had to start all of them at once, and the mean TTFT is 5.1 % longer for it. "
	  "--num-warmups 8 sends such requests before the measurement.", NULL },
	{ outage, TRUST_DEGRADED, "server_restarted",
	  "From 12.500 s on the server took no connections for 3.250 s, in which 7 requests failed, and "
	  "then answered again: it was restarted. Measure again once it is up.", "every metric" },
	{ outage_ours, TRUST_DEGRADED, "no_local_port",
	  "3 connections could not be opened because this machine had no local port left: these "
	  "failures are not the server's. Widen net.ipv4.ip_local_port_range, add --source-addresses, "
	  "or lower --max-concurrency. profllm doctor shows the command.", "every metric" },
	{ outage_counted, TRUST_DEGRADED, "server_restarted",
	  "The counters of the server's /metrics began again during the run: it was restarted, or "
	  "several servers answer at one address.", "every metric" },
	{ few, TRUST_VALID, "few_requests",
	  "p99.9 of 1000 requests has no upper bound: too few of them lie beyond it, and another run "
	  "would give another value. From 3688 requests on it has one (--num-prompts).", NULL },
	{ few_not, TRUST_VALID, NULL, NULL, NULL },
	{ wait_at, TRUST_VALID, NULL, NULL, NULL },
	{ wait_over, TRUST_VALID, "client_wait",
	  "A loop of the client was ready to run and waited for a processor for 11 % of the run (limit "
	  "10 %): other programs use its core. Give it a core of its own." SEE_DOCTOR, NULL },
	{ throttled_at, TRUST_VALID, NULL, NULL, NULL },
	{ throttled_over, TRUST_VALID, "client_throttled",
	  "A CPU quota stopped the client for 35 % of the run (limit 1 %): raise the quota of its "
	  "container or control group." DOCTOR_MENDS, NULL },
	{ ports, TRUST_DEGRADED, "no_local_port",
	  "3 connections could not be opened because this machine had no local port left: these "
	  "failures are not the server's. Widen net.ipv4.ip_local_port_range, add "
	  "--source-addresses, or lower --max-concurrency." DOCTOR_MENDS, "every metric" },
	{ ports_at, TRUST_VALID, NULL, NULL, NULL },
	{ ports_over, TRUST_VALID, "no_local_port",
	  "81 connections were open at once, and this machine has 100 local ports (limit 80 % of "
	  "them): with more, connecting fails." DOCTOR_MENDS, NULL },
	{ files, TRUST_DEGRADED, "no_descriptor",
	  "3 connections could not be opened because the program may have no more than 1024 open "
	  "files: these failures are not the server's. Raise the limit with ulimit -n." DOCTOR_MENDS,
	  "every metric" },
	{ files_at, TRUST_VALID, NULL, NULL, NULL },
	{ files_over, TRUST_VALID, "no_descriptor",
	  "81 connections were open at once, and the program may have 100 open files (limit 80 % of "
	  "them): with more, connecting fails. ulimit -n raises it." DOCTOR_MENDS, NULL },
	{ resent_at, TRUST_VALID, NULL, NULL, NULL },
	{ resent_over, TRUST_DEGRADED, "packet_loss",
	  "The network lost segments: for 1.1 % of the requests the client sent one again (limit 1 %), "
	  "and 0.0 % of the events arrived before an earlier segment (limit 0.4 %). The latencies "
	  "contain the time to repair that; repair the network, or measure from a machine next to the "
	  "server.", "TTFT, E2EL, goodput" },
	{ early_at, TRUST_VALID, NULL, NULL, NULL },
	{ early_over, TRUST_DEGRADED, "packet_loss",
	  "The network lost segments: for 0.0 % of the requests the client sent one again (limit 1 %), "
	  "and 0.4 % of the events arrived before an earlier segment (limit 0.4 %). The latencies "
	  "contain the time to repair that; repair the network, or measure from a machine next to the "
	  "server.", "TTFT, TPOT, ITL, E2EL, goodput" },
	{ connect_at, TRUST_VALID, NULL, NULL, NULL },
	{ connect_few, TRUST_VALID, NULL, NULL, NULL },
	{ connect_over, TRUST_VALID, "slow_connect",
	  "Opening a connection took 11.000 ms (p99), against a median TTFT of 100.000 ms. TTFT and "
	  "E2EL begin when the request is written; users wait for both. --warm-connections opens "
	  "connections before the measurement.", NULL },
	{ connect_pooling, TRUST_VALID, "slow_connect",
	  "Opening a connection took 11.000 ms (p99), against a median E2EL of 20.000 ms. E2EL begins "
	  "when the request is written; users wait for both. --warm-connections opens connections "
	  "before the measurement.", NULL },
	{ resolve_at, TRUST_VALID, NULL, NULL, NULL },
	{ resolve_over, TRUST_VALID, "slow_dns",
	  "Looking up the server's name took 500.100 ms (limit 500 ms). No number contains that, "
	  "because names are looked up before the clock starts; clients that look them up for each "
	  "connection would wait for it.", NULL },
	{ interrupted, TRUST_DEGRADED, "interrupted",
	  "The run was interrupted: the numbers cover what had finished by then.",
	  "every metric" },
	{ broken_off, TRUST_DEGRADED, "broken_off",
	  "The record file breaks off: requests that had not been written are missing.",
	  "every metric" },
	{ lost_process, TRUST_INVALID, "lost_process",
	  "25 requests are missing: a process that mpirun had started was lost. "
	  "The load was not the requested one.", "every metric" },
};

/* Of another client's traffic no reason names these options of bench serve. */
static void test_rules(void **state)
{
	static const char *const ours[] = { "--compat", "--fix", "--extra-body", "--num-w", "-prompts).", "--warm" };
	char spoils[TRUST_SPOILS_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct run r = { .m = good() };
		struct trust t;

		cases[i].set(&r);
		trust_judge(&t, &r.m, &r.f);
		assert_string_equal(trust_name(t.verdict), trust_name(cases[i].want));
		assert_int_equal(t.n_reasons, cases[i].code ? 1 : 0);
		if (!cases[i].code)
			continue;
		assert_string_equal(t.reason[0].code, cases[i].code);
		assert_string_equal(t.reason[0].text, cases[i].text);
		assert_int_equal(t.reason[0].level, cases[i].want);
		assert_string_equal(trust_spoils_text(t.reason[0].spoils, spoils),
				    cases[i].spoils ? cases[i].spoils : "");
		for (int k = 0; k < TRUST_METRIC_COUNT; k++)
			assert_int_equal(t.metric[k], t.reason[0].spoils & TRUST_BIT(k)
					 ? cases[i].want : TRUST_VALID);
		r.f.is_capture = true;
		trust_judge(&t, &r.m, &r.f);
		for (size_t k = 0; k < sizeof(ours) / sizeof(*ours); k++)
			assert_null(strstr(t.reason[0].text, ours[k]));
	}
}

/* Answers may be longer than asked for; where usage is not the events either, it may lie. */
static void test_lying_usage(void **state)
{
	struct run r = { .m = good() };
	struct trust t;

	(void)state;
	r.m.client.n_longer_than_asked = 1000;
	r.m.client.n_usage_differs = 10;
	trust_judge(&t, &r.m, &r.f);
	assert_int_equal(t.metric[TRUST_TPOT], TRUST_VALID);
	assert_int_equal(t.metric[TRUST_OUTPUT], TRUST_DEGRADED);
	r.m.client.n_usage_differs = 1000;
	trust_judge(&t, &r.m, &r.f);
	assert_int_equal(t.metric[TRUST_TPOT], TRUST_DEGRADED);
	assert_int_equal(t.metric[TRUST_OUTPUT], TRUST_DEGRADED);
}

/* Everything at once fits: the worst first, notes last, each metric with its own verdict. */
static void test_all_at_once(void **state)
{
	struct run r = { .m = good() };
	struct trust t;

	(void)state;
	failed_2(&r);
	skew_over(&r);
	lag_over(&r);
	stall_over(&r);
	shared_much(&r);
	queue_over(&r);
	usage_over(&r);
	cached_over(&r);
	unstamped(&r);
	step(&r);
	cpu_over(&r);
	interrupted(&r);
	broken_off(&r);
	trust_judge(&t, &r.m, &r.f);
	assert_int_equal(t.verdict, TRUST_INVALID);
	assert_int_equal(t.n_reasons, 13);
	assert_true(t.n_reasons <= TRUST_REASONS_MAX);
	assert_string_equal(t.reason[0].code, "shared_reads");
	assert_string_equal(t.reason[1].code, "failures");
	assert_string_equal(t.reason[2].code, "rate_not_carried");
	assert_string_equal(t.reason[3].code, "send_lag");
	assert_string_equal(t.reason[11].code, "skew");
	assert_string_equal(t.reason[12].code, "client_cpu");
	assert_int_equal(t.metric[TRUST_ITL], TRUST_INVALID);
	assert_int_equal(t.metric[TRUST_OUTPUT], TRUST_DEGRADED);
}

/* Where stamps of segments would have helped, a note says how to get them. */
static void test_untapped(void **state)
{
	void (*const set[])(struct run *) = { shared_over, first_over };

	(void)state;
	for (size_t i = 0; i < sizeof(set) / sizeof(*set); i++) {
		struct run r = { .m = good() };
		struct trust t;

		untapped(&r);
		set[i](&r);
		trust_judge(&t, &r.m, &r.f);
		assert_int_equal(t.n_reasons, 2);
		assert_string_equal(t.reason[1].code, "segments");
		assert_int_equal(t.reason[1].level, TRUST_VALID);
		assert_string_equal(t.reason[1].text, "Events that are read late can each have their own "
				    "arrival stamp: it needs CAP_X.");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_untapped), cmocka_unit_test(test_rules),
		cmocka_unit_test(test_all_at_once), cmocka_unit_test(test_lying_usage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
