/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict: one case per rule, on both sides of its limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "metrics/trust.h"

/* A run of 1,000 requests with nothing against it. */
static struct metrics good(void)
{
	struct metrics m = { .completed = 1000, .opts = { .is_rate_finite = true } };

	m.block[BLOCK_ITL].median_ms = 10;
	m.block[BLOCK_E2EL].median_ms = 1000;
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
static void none_ran(struct run *r) { r->m.completed = 0; r->m.cancelled = 5; }
static void skew_at(struct run *r) { r->m.client.skew.p99_ms = 1; }
static void skew_over(struct run *r) { r->m.client.skew.p99_ms = 1.01; }
static void skew_saturated(struct run *r) { r->m.client.skew.p99_ms = 4294.967294; }
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
static void shared_at(struct run *r) { r->m.client.n_shared = 100; }
static void shared_over(struct run *r) { r->m.client.n_shared = 101; }
static void shared_much(struct run *r) { r->m.client.n_shared = 5001; }
static void usage_at(struct run *r) { r->m.client.n_usage_differs = 10; }
static void usage_over(struct run *r) { r->m.client.n_usage_differs = 11; }
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
static void hits_none(struct run *r) { hits(r); r->m.servers.prefix_hits.value = 100; }
static void hits_preempted(struct run *r)
{
	hits(r);
	r->m.servers.preemptions = (struct metrics_growth){ true, 1 };
}
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
static void cpu_at(struct run *r) { r->f.cpu_share_max = 0.80; }
static void cpu_over(struct run *r) { r->f.cpu_share_max = 0.81; }
static void cpu_much(struct run *r) { r->f.cpu_share_max = 0.96; }
static void interrupted(struct run *r) { r->f.is_interrupted = true; }
static void broken_off(struct run *r) { r->f.is_broken_off = true; }

static const struct {
	void (*set)(struct run *r);
	enum trust_verdict want;
	const char *code, *text; /* NULL: no reason at all */
} cases[] = {
	{ nothing, TRUST_VALID, NULL, NULL },
	{ failed_1, TRUST_VALID, NULL, NULL },
	{ failed_2, TRUST_DEGRADED, "failures", "2.0 % of the requests failed (limit 1 %)." },
	{ failed_60, TRUST_INVALID, "failures", "60.0 % of the requests failed (limit 50 %)." },
	{ failed_all, TRUST_INVALID, "no_success",
	  "No request succeeded (1000 failed, 0 cancelled)." },
	{ none_ran, TRUST_INVALID, "no_success", "No request succeeded (0 failed, 5 cancelled)." },
	{ skew_at, TRUST_VALID, NULL, NULL },
	{ skew_saturated, TRUST_DEGRADED, "skew",
	  "The client read events more than 4.29 s (p99) after the kernel had them: more than 10 % of "
	  "the median ITL of 10.000 ms." },
	{ skew_over, TRUST_DEGRADED, "skew",
	  "The client read events 1.010 ms (p99) after the kernel had them: more than 10 % of the "
	  "median ITL of 10.000 ms." },
	{ skew_small, TRUST_VALID, NULL, NULL },
	{ skew_e2el, TRUST_VALID, NULL, NULL },
	{ skew_e2el_over, TRUST_DEGRADED, "skew",
	  "The client read events 101.000 ms (p99) after the kernel had them: more than 10 % of the "
	  "median E2EL of 1000.000 ms." },
	{ lag_at, TRUST_VALID, NULL, NULL },
	{ lag_over, TRUST_DEGRADED, "send_lag",
	  "Requests left 10.100 ms (p99) later than they could have (limit 10.000 ms)." },
	{ lag_floor, TRUST_VALID, NULL, NULL },
	{ lag_inf, TRUST_VALID, NULL, NULL },
	{ lag_inf_over, TRUST_DEGRADED, "send_lag",
	  "Requests left 101.000 ms (p99) later than they could have (limit 100.000 ms)." },
	{ shared_at, TRUST_VALID, NULL, NULL },
	{ shared_over, TRUST_DEGRADED, "shared_reads",
	  "0.10 % of the events came in one read with an earlier one and share its stamp (limit 0.1 "
	  "%): ITL is smeared." },
	{ shared_much, TRUST_INVALID, "shared_reads",
	  "5.00 % of the events came in one read with an earlier one and share its stamp (limit 5.0 "
	  "%): ITL is not usable." },
	{ usage_at, TRUST_VALID, NULL, NULL },
	{ usage_over, TRUST_DEGRADED, "usage",
	  "In 1.1 % of the requests the server's token count is not the number of token events "
	  "(limit 1 %): ITL is then per event, not per token." },
	{ cached_at, TRUST_VALID, NULL, NULL },
	{ cached_over, TRUST_DEGRADED, "prefix_cache",
	  "The server had 40.0 % of the prompt tokens cached; this run's own prompts explain 29.5 % "
	  "(limit: 10 % more). Its prefix cache was warm: use --prompt-salt or "
	  "--reset-prefix-cache." },
	{ cached_shared, TRUST_VALID, NULL, NULL },
	{ cached_unknown, TRUST_VALID, NULL, NULL },
	{ hits, TRUST_DEGRADED, "prefix_cache",
	  "The server had 50.0 % of the prompt tokens cached; this run's own prompts explain 5.0 % "
	  "(limit: 10 % more). Its prefix cache was warm: use --prompt-salt or "
	  "--reset-prefix-cache." },
	{ hits_none, TRUST_VALID, NULL, NULL },
	{ hits_preempted, TRUST_VALID, NULL, NULL },
	{ full, TRUST_DEGRADED, "record_full",
	  "The record reached its limit: later token events are not in it." },
	{ unstamped, TRUST_DEGRADED, "unstamped",
	  "1.1 % of the reads had no kernel stamp and took the user-space clock (limit 1 %)." },
	{ unstamped_at, TRUST_VALID, NULL, NULL },
	{ unstamped_user, TRUST_VALID, NULL, NULL },
	{ step, TRUST_DEGRADED, "clock_step",
	  "The system clock moved by -1.000 ms against the monotonic one during the run (limit 1 "
	  "ms)." },
	{ step_at, TRUST_VALID, NULL, NULL },
	{ cpu_at, TRUST_VALID, NULL, NULL },
	{ cpu_over, TRUST_DEGRADED, "client_cpu",
	  "The client's busiest loop used 81 % of a CPU (limit 80 %)." },
	{ cpu_much, TRUST_INVALID, "client_cpu",
	  "The client's busiest loop used 96 % of a CPU (limit 95 %)." },
	{ interrupted, TRUST_DEGRADED, "interrupted",
	  "The run was interrupted: the numbers cover what had finished by then." },
	{ broken_off, TRUST_DEGRADED, "broken_off",
	  "The record file breaks off: requests that had not been written are missing." },
};

static void test_rules(void **state)
{
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
	}
}

/* Everything at once fits, and the worst reason decides. */
static void test_all_at_once(void **state)
{
	struct run r = { .m = good() };
	struct trust t;

	(void)state;
	failed_2(&r);
	skew_over(&r);
	lag_over(&r);
	shared_much(&r);
	usage_over(&r);
	cached_over(&r);
	full(&r);
	unstamped(&r);
	step(&r);
	cpu_over(&r);
	interrupted(&r);
	broken_off(&r);
	trust_judge(&t, &r.m, &r.f);
	assert_int_equal(t.verdict, TRUST_INVALID);
	assert_int_equal(t.n_reasons, 12);
	assert_true(t.n_reasons <= TRUST_REASONS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules), cmocka_unit_test(test_all_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
