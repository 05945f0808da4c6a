/* SPDX-License-Identifier: Apache-2.0 */
/* What servers say of themselves, probes, and cached prompt tokens, from records by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <math.h>

#include "client/metrics/metrics.h"
#include "client/record/series.h"
#include "record_sample.h"

#define T0 SAMPLE_START_NS
#define MS 1000000ll
#define A "url=\"http://a\""
#define B "url=\"http://b\""

/* The run lasts from T0 to T0 + 10 s; servers are read at -1 s, then each second, then at 11 s. */
static void empty(struct record *r, uint32_t rows)
{
	struct err e;

	assert_int_equal(record_init(r, rows, 1, 0, false, false, &e), 0);
	record_add_rows(r, rows);
	r->start_ns = T0;
	r->stop_ns = T0 + 10000 * MS;
}

/* Points at the seconds given; the time of the last reading is 11 s. */
static void points(struct record *r, const char *name, const char *labels, const double *v,
		   const int *second, size_t n)
{
	struct record_series *s = record_series_add(r, name, "", labels);

	for (size_t i = 0; i < n; i++)
		record_series_point(s, T0 + second[i] * 1000 * MS, v[i]);
}

/* Before and after. */
static void counter(struct record *r, const char *name, const char *labels, double from, double to)
{
	points(r, name, labels, (const double[]){ from, to }, (const int[]){ -1, 11 }, 2);
}

static void scraped(struct record *r, const char *labels)
{
	points(r, SERIES_SCRAPE, labels, (const double[]){ 0.1, 0.1, 0.1 },
	       (const int[]){ -1, 5, 11 }, 3);
}

static struct metrics score(const struct record *r)
{
	static const double p99 = 99;
	struct metrics_opts o = { .percentile = &p99, .n_percentiles = 1, .has_tokenizer = true };
	struct metrics m;

	metrics_score(&m, r, &o);
	return m;
}

static void test_spec(void **state)
{
	static const struct {
		double drafts, draft_tokens, accepted, first, second;
		bool is_reported;
		double rate, length;
		size_t positions;
	} cases[] = {
		{ 100, 400, 150, 90, 60, true, 37.5, 2.5, 2 },
		{ 0, 400, 150, 90, 60, true, 37.5, 0, 0 },   /* no length, no positions */
		{ 100, 0, 0, 0, 0, false, 0, 0, 0 },
		{ 100, -5, 10, 0, 0, false, 0, 0, 0 },       /* the server was restarted */
		{ 3, 9, 0, 0, 0, true, 0, 1, 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct record r = { 0 };
		struct metrics m;

		empty(&r, 0);
		scraped(&r, A);
		counter(&r, "spec_drafts", A, 7, 7 + cases[i].drafts);
		counter(&r, "spec_draft_tokens", A, 10, 10 + cases[i].draft_tokens);
		counter(&r, "spec_accepted_tokens", A, 5, 5 + cases[i].accepted);
		counter(&r, SERIES_POSITION, A ",position=\"10\"", 3, 3 + cases[i].second);
		counter(&r, SERIES_POSITION, A ",position=\"2\"", 3, 3 + cases[i].first);
		m = score(&r);
		assert_int_equal(m.spec.is_reported, cases[i].is_reported);
		assert_true(m.spec.acceptance_rate == cases[i].rate);
		assert_true(m.spec.acceptance_length == cases[i].length);
		assert_int_equal(m.spec.n_positions, cases[i].positions);
		if (cases[i].is_reported)
			assert_true(m.spec.drafts == cases[i].drafts &&
				    m.spec.draft_tokens == cases[i].draft_tokens &&
				    m.spec.accepted_tokens == cases[i].accepted);
		if (cases[i].positions)
			assert_true(m.spec.position_rate[0] == cases[i].first / cases[i].drafts &&
				    m.spec.position_rate[1] == cases[i].second / cases[i].drafts);
		metrics_release(&m);
		record_release(&r);
	}
}

/* What no server can have counted is no undefined cast. */
static void test_spec_beyond_integers(void **state)
{
	struct record r = { 0 };
	struct metrics m;

	(void)state;
	empty(&r, 0);
	scraped(&r, A);
	counter(&r, "spec_drafts", A, 0, 1e300);
	counter(&r, "spec_draft_tokens", A, 0, 2e300);
	counter(&r, "spec_accepted_tokens", A, 0, 1e300);
	m = score(&r);
	assert_true(m.spec.is_reported);
	assert_true(m.spec.drafts == INT64_MAX && m.spec.draft_tokens == INT64_MAX);
	assert_true(m.spec.accepted_tokens == INT64_MAX);
	assert_true(m.spec.acceptance_length == 2);
	metrics_release(&m);
	record_release(&r);
}

/* Both readings must have it; a position may be new, or be there no more. */
static void test_spec_ends(void **state)
{
	struct record r = { 0 };
	struct metrics m;

	(void)state;
	empty(&r, 0);
	scraped(&r, A);
	points(&r, "spec_drafts", A, (const double[]){ 1, 11 }, (const int[]){ -1, 11 }, 2);
	points(&r, "spec_draft_tokens", A, (const double[]){ 1, 11 }, (const int[]){ 5, 11 }, 2);
	m = score(&r);
	assert_false(m.spec.is_reported);
	metrics_release(&m);
	r.series[2]->point[0].at_ns = T0 - 1000 * MS;
	points(&r, SERIES_POSITION, A ",position=\"0\"", (const double[]){ 4 }, (const int[]){ 11 }, 1);
	points(&r, SERIES_POSITION, A ",position=\"1\"", (const double[]){ 4 }, (const int[]){ -1 }, 1);
	m = score(&r);
	assert_true(m.spec.is_reported && m.spec.drafts == 10);
	assert_int_equal(m.spec.n_positions, 2);
	assert_true(m.spec.position_rate[0] == 0.4 && m.spec.position_rate[1] == 0);
	metrics_release(&m);
	/* The server answered while load ran, but no more after it. */
	for (size_t i = 0; i < r.n_series; i++)
		r.series[i]->point[r.series[i]->n - 1].at_ns = T0 + 9000 * MS;
	m = score(&r);
	assert_false(m.spec.is_reported);
	metrics_release(&m);
	record_release(&r);
}

static void test_diffusion(void **state)
{
	struct record r = { 0 };
	struct metrics m;

	(void)state;
	empty(&r, 0);
	scraped(&r, A);
	counter(&r, "diffusion_steps", A, 100, 180);      /* 80 steps */
	counter(&r, "diffusion_positions", A, 0, 2560);   /* 32 positions each */
	counter(&r, "diffusion_committed", A, 50, 370);   /* 320 tokens: 10 canvases */
	m = score(&r);
	assert_true(m.diffusion.is_reported);
	assert_true(m.diffusion.committed_throughput == 32);
	assert_true(m.diffusion.denoising_steps == 70);
	assert_true(m.diffusion.steps_per_canvas == 7);
	assert_true(m.diffusion.committed_per_step == 320.0 / 70);
	assert_true(m.diffusion.committed_tokens == 320 && m.diffusion.canvas_positions == 2560);
	metrics_release(&m);
	r.series[3]->point[1].value = 50 + 80 * 32; /* every step commits: a division by 0 */
	m = score(&r);
	assert_true(m.diffusion.is_reported && m.diffusion.denoising_steps == 0);
	assert_true(m.diffusion.committed_per_step == 0 && m.diffusion.steps_per_canvas == 0);
	metrics_release(&m);
	r.series[2]->point[1].value = 0; /* a division by 0, too */
	m = score(&r);
	assert_false(m.diffusion.is_reported);
	metrics_release(&m);
	record_release(&r);
}

static void test_servers(void **state)
{
	static const int seconds[] = { -1, 1, 2, 3, 11 };
	struct record r = { 0 };
	struct metrics m;

	(void)state;
	empty(&r, 0);
	scraped(&r, A);
	scraped(&r, B);
	points(&r, "running", A, (const double[]){ 0, 4, 8, 6, 0 }, seconds, 5);
	points(&r, "running", B, (const double[]){ 0, 2, 1, 3, 0 }, seconds, 5);
	points(&r, "kv_usage", A, (const double[]){ 0, 0.5 }, seconds, 2);
	counter(&r, "prefix_queries", A, 1000, 3000);
	counter(&r, "prefix_queries", B, 0, 500);
	counter(&r, "prefix_hits", A, 100, 600);
	counter(&r, "preemptions", B, 3, 7);
	points(&r, SERIES_SCRAPE_FAILED, B, (const double[]){ 1, 1 }, seconds, 2);
	record_note_add(&r, T0, NOTE_SERVER_METRICS, "http://c/metrics: HTTP status 404");
	m = score(&r);
	assert_int_equal(m.n_servers, 2);
	assert_true(str_is(m.server[0].url, "http://a") && str_is(m.server[1].url, "http://b"));
	assert_int_equal(m.servers.scrapes, 6);
	assert_int_equal(m.servers.failed_scrapes, 2);
	assert_int_equal(m.servers.running.n, 6); /* before and after are idle, and not counted */
	assert_true(m.servers.running.min == 1 && m.servers.running.max == 8);
	assert_true(m.servers.running.mean == 4 && m.servers.running.last == 3);
	assert_true(m.server[0].running.mean == 6 && m.server[0].running.last == 6);
	assert_true(m.servers.kv_usage.n == 1 && m.servers.kv_usage.max == 0.5);
	assert_int_equal(m.servers.waiting.n, 0);
	assert_true(m.servers.prefix_queries.value == 2500 && m.servers.prefix_hits.value == 500);
	assert_true(m.server[1].prefix_queries.value == 500);
	assert_false(m.server[1].prefix_hits.is_reported);
	assert_true(m.servers.preemptions.is_reported && m.servers.preemptions.value == 4);
	assert_false(m.servers.prompt_tokens.is_reported);
	assert_true(str_is(m.server_note, "http://c/metrics: HTTP status 404"));
	metrics_release(&m);
	record_release(&r);
}

/*
 * A server that restarts while load runs, or a balancer with two servers: whatever the last reading
 * is, its counters are unknown, and so are totals with them.
 */
static void test_restarted(void **state)
{
	static const int seconds[] = { -1, 3, 6, 11 };
	static const struct { double start[4], counted[4]; bool is_restarted; } cases[] = {
		{ { 5, 5, 5, 5 }, { 100, 200, 300, 400 }, false },
		{ { 5, 6, 5, 5 }, { 100, 200, 300, 400 }, false },  /* a clock that is steered */
		{ { 5, 5, 5, 5 }, { 1000000, 0, 80, 160 }, true },
		{ { 5, 5, 5, 5 }, { 100, 200, 50, 400 }, true },    /* further than it was */
		{ { 5, 5, 90, 90 }, { 100, 200, 300, 400 }, true }, /* no drop to be seen */
		{ { 5, 90, 5, 90 }, { 100, 200, 300, 400 }, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		bool is = cases[i].is_restarted;
		struct record r = { 0 };
		struct metrics m;

		empty(&r, 0);
		scraped(&r, B);
		scraped(&r, A);
		counter(&r, "prefix_queries", B, 0, 1000);
		points(&r, "process_start", A, cases[i].start, seconds, 4);
		points(&r, "preemptions", A, cases[i].counted, seconds, 4);
		counter(&r, "prefix_queries", A, 0, 500);
		counter(&r, "spec_drafts", A, 0, 10);
		counter(&r, "spec_draft_tokens", A, 0, 40);
		counter(&r, "spec_accepted_tokens", A, 0, 20);
		m = score(&r);
		assert_int_equal(m.n_servers, 2);
		assert_true(str_is(m.server[0].url, "http://b") && !m.server[0].is_restarted);
		assert_true(m.server[0].prefix_queries.is_reported);
		if (m.server[1].is_restarted != is || m.servers.is_restarted != is ||
		    m.server[1].preemptions.is_reported == is ||
		    m.server[1].prefix_queries.is_reported == is || m.spec.is_reported == is ||
		    m.servers.prefix_queries.is_reported == is)
			fail_msg("case %zu", i);
		assert_true(m.servers.preemptions.value == (is ? 0 : 300));
		assert_true(m.servers.prefix_queries.value == (is ? 0 : 1500));
		metrics_release(&m);
		record_release(&r);
	}
}

/* Series that were thinned: the readings are those that were made. */
static void test_readings(void **state)
{
	struct record r = { 0 };
	struct metrics m;

	(void)state;
	empty(&r, 0);
	scraped(&r, A);
	scraped(&r, B);
	points(&r, SERIES_READINGS, B, (const double[]){ 200000 }, (const int[]){ 11 }, 1);
	m = score(&r);
	assert_int_equal(m.server[0].scrapes, 3);
	assert_int_equal(m.server[1].scrapes, 200000);
	assert_int_equal(m.servers.scrapes, 200003);
	metrics_release(&m);
	record_release(&r);
}

/* Two hosts that load one server read the same counters: they count once. */
static void test_hosts(void **state)
{
	struct record r = { 0 };
	struct metrics m;

	(void)state;
	empty(&r, 0);
	scraped(&r, A);
	counter(&r, "prompt_tokens", A, 0, 500);
	scraped(&r, A);
	counter(&r, "prompt_tokens", A, 0, 501);
	m = score(&r);
	assert_int_equal(m.n_servers, 1);
	assert_true(m.servers.prompt_tokens.value == 500);
	assert_int_equal(m.servers.scrapes, 3);
	metrics_release(&m);
	record_release(&r);
}

static void test_probe(void **state)
{
	static const int64_t latency_ms[] = { 30, 10, 20, 400 };
	struct record r = { 0 };
	struct metrics m;

	(void)state;
	empty(&r, 6);
	for (int i = 0; i < 6; i++) {
		struct request_row *row = &r.row[i];

		row->phase = PHASE_PROBE;
		row->sent_ns = T0;
		row->state = i < 4 ? REQ_DONE : i == 4 ? REQ_FAILED : REQ_CANCELLED;
		row->first_event_ns = row->last_event_ns = T0 + (i < 4 ? latency_ms[i] * MS : 0);
	}
	m = score(&r);
	assert_int_equal(m.n, 0); /* probes are no part of the load */
	assert_int_equal(m.probe.completed, 4);
	assert_int_equal(m.probe.failed, 1);
	assert_true(m.probe.median_ms == 25);
	assert_true(fabs(m.probe.p99_ms - 388.9) < 1e-9);
	assert_true(m.probe.max_ms == 400);
	metrics_release(&m);
	record_release(&r);
}

static void test_cached(void **state)
{
	struct record r = { 0 };
	struct metrics m;

	(void)state;
	empty(&r, 3);
	for (int i = 0; i < 3; i++) {
		r.row[i].state = i < 2 ? REQ_DONE : REQ_FAILED;
		r.row[i].sent_ns = T0;
		r.row[i].first_event_ns = r.row[i].last_event_ns = T0 + MS;
		r.row[i].prompt_tokens = 100;
		r.row[i].cached_tokens = 48;
	}
	m = score(&r);
	assert_int_equal(m.total_cached, 96); /* successes, as total_input */
	assert_true(m.input_throughput == 20);
	metrics_release(&m);
	record_release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spec),
		cmocka_unit_test(test_spec_beyond_integers),
		cmocka_unit_test(test_spec_ends),
		cmocka_unit_test(test_diffusion),
		cmocka_unit_test(test_servers),
		cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_restarted),
		cmocka_unit_test(test_readings),
		cmocka_unit_test(test_probe),
		cmocka_unit_test(test_cached),
	};

	return cmocka_run_group_tests_name("metrics_engine", tests, NULL, NULL);
}
