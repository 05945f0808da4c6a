/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_report_blocks.c - blocks of a report that few runs have, each as rows and as members of the
 * result: how load was made, the error budget, intervals, the settled part, attempted requests; and
 * the names of result files.
 */
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define ANSWERS_MAX 100
#include "core/base/file.h"
#include "core/base/mem.h"
#include "out/report/report_internal.h"
#include "answers.h"
#include "scratch.h"

#define COUNT(x) (sizeof(x) / sizeof(*(x)))
#define S 1000000000ll

/* ---- load ---- */

static const struct report_load no_load = { .reuse = { .ideal = -1 }, .ideal_hit_rate = -1,
					    .prefix_exact = -1 };

static void check_load(struct report_load l, const struct metrics *m)
{
	struct report_facts facts = { .dataset = "timed_trace", .load = l };
	const struct report r = { .facts = &facts, .metrics = m };
	struct buf out = { 0 };
	struct json_writer w;

	report_load_rows(&r, &out);
	buf_add_char(&out, '\n');
	w = json_writer(&out);
	json_begin_object(&w);
	report_load_json(&r, &w);
	json_end_object(&w);
	answers_release(&out);
}

static void load(void **state)
{
	struct metrics_url url[] = { { 10, 9, 1, 12.345 }, { 5, 0, 5, 0 } };
	struct metrics none = { 0 }, some = { .given_up = 3, .url = url, .n_urls = 2 };
	struct report_load l = no_load;

	(void)state;
	check_load(l, &none);
	l.aborted = "too many failures", l.time_limit_s = 60, l.used_up_s = 59.5;
	l.prompt_salt = "run", l.runs = STR("[1, 2]");
	l.urls = "http://a:1\nhttp://b:2\nhttp://c:3";
	check_load(l, &some);
	some.opts.is_pooling = true;
	l = no_load;
	l.urls = "http://a:1";
	l.prompt_salt = "fresh", l.prompt_salt_key = "7";
	l.is_profile_asked = true;
	l.reuse = (struct report_reuse){ .order = "block", .copies = 4, .repeated = 30, .ideal = 0.75 };
	check_load(l, &some);
	l.is_profiled = true;
	l.reuse = (struct report_reuse){ .pass = "same", .pass_requests = 12, .ideal = 0 };
	check_load(l, &none);
	l.reuse.ideal = -1;
	check_load(l, &none);
	/* A trace that is sent again. */
	l = no_load;
	l.is_replay = true, l.speedup = 2;
	none.client.schedule = (struct metrics_schedule){ 5, 10, 12.5, 0.25 };
	check_load(l, &none);
	l.trace_format = "mooncake", l.ideal_hit_rate = 0, l.prefix_exact = 0.995;
	none.client.schedule = (struct metrics_schedule){ 1, 0, 10, 0 };
	check_load(l, &none);
	none.client.schedule = (struct metrics_schedule){ 1, 10, 0, 0 };
	check_load(l, &none);
}

/* ---- budget ---- */

static void budget(void **state)
{
	static const double age_s[] = { -5, 0, 119.4, 120, 7199, 7200, 90000 };
	struct report_facts facts = { .budget = {
		.level = { .streams = 1, .events_per_s = 50.25, .requests = 20, .events = 33 },
		.rounds = 4, .ttft = { 0.5, 0.75, 0.25, 1 }, .itl = { 0.125, 0.25, 0.0625, 0.5 },
		.e2el = { -0.5, 1.5, -1, 2 }, .send = 0.1, .kernel = 0.2, .late = 0.3,
		.signs = { 0.01, 0.02, 0.03 }, .at_ns = 1000 * S } };
	struct record record = { .stop_ns = 0 };
	const struct report r = { .facts = &facts, .record = &record };
	struct buf out = { 0 };
	struct json_writer w;

	(void)state;
	for (size_t i = 0; i < COUNT(age_s); i++) {
		record.stop_ns = 1000 * S + (int64_t)(age_s[i] * 1e9);
		facts.budget.is_kept = i > 1;
		facts.budget.level.streams = 1 + (uint32_t)i;
		report_budget_rows(&r, &out);
		w = json_writer(&out);
		json_begin_object(&w);
		report_put_budget(&w, &r);
		json_end_object(&w);
		answers_release(&out);
		out = (struct buf){ 0 };
	}
	facts.budget.rounds = 0;
	report_budget_rows(&r, &out);
	assert_int_equal(out.len, 0);
	w = json_writer(&out);
	json_begin_object(&w);
	report_put_budget(&w, &r);
	json_end_object(&w);
	assert_string_equal(out.data, "{\"error_budget\": null}");
	buf_release(&out);
}

/* ---- what the numbers of one run prove ---- */

static void bounds(void **state)
{
	static const double percentile[] = { 90, 99.9 };
	struct percentile ttft[] = {
		{ .low = 0.0123, .high = 0.01584, .n = 100, .phi = 1.9, .correlation = 0.5,
		  .needed = 6 },
		{ .low = 0.02, .high = INFINITY, .n = 100, .phi = 1, .needed = 40, .marks = 1 | 4 },
		{ .low = -INFINITY, .high = INFINITY, .n = 100, .phi = 1.5, .needed = 4000,
		  .marks = 4 },
	}, e2el[] = {
		{ .low = -INFINITY, .high = 0.5, .n = 8, .phi = 2, .needed = 9 },
		{ .n = 0, .phi = 99 },
		{ .low = 0.1, .high = 0.2, .n = 90, .phi = 2.5, .needed = 9,
		  .marks = PERCENTILE_CLUMPED },
	};
	struct metrics m = { .opts = { .percentile = percentile, .n_percentiles = 2 } };
	struct buf out = { 0 };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct json_writer w;

		if (i > 0)
			m.block[BLOCK_TTFT].bounds = ttft;
		if (i > 1)
			m.block[BLOCK_E2EL].bounds = e2el;
		report_bounds_rows(&m, &out);
		buf_add_char(&out, '\n');
		w = json_writer(&out);
		json_begin_object(&w);
		report_bounds_json(&m, &w);
		json_end_object(&w);
		answers_release(&out);
		out = (struct buf){ 0 };
	}
}

static void check_settled(const struct metrics_settled *s)
{
	const struct metrics m = { .settled = *s };
	struct buf out = { 0 };
	struct json_writer w;

	report_settled_rows(&m, &out);
	buf_add_char(&out, '\n');
	w = json_writer(&out);
	json_begin_object(&w);
	report_settled_json(&m, &w);
	json_end_object(&w);
	answers_release(&out);
}

static void settled(void **state)
{
	struct metrics_settled s = { 0 };

	(void)state;
	check_settled(&s);
	s = (struct metrics_settled){ .is_reported = true, .left_out_start = 3,
				      .left_out_end = 2, .n = 95, .start_s = 0.5, .end_s = 9.75 };
	for (int k = 0; k < METRICS_SETTLED_COUNT; k++)
		s.mean[k] = (struct settled_mean){ SETTLED_SHORT, 10 + k, NAN, NAN, 95, 20.5,
						   (size_t)(50 + k % 4) };
	check_settled(&s);
	s.mean[METRICS_SETTLED_ITL].state = SETTLED_DRIFTING;
	s.mean[METRICS_SETTLED_TPOT].state = SETTLED_UNKNOWN;
	check_settled(&s);
	s.mean[METRICS_SETTLED_TTFT] = (struct settled_mean){ SETTLED_KNOWN, 10.25, 9.5, 11, 95,
							      60, 50 };
	s.mean[METRICS_SETTLED_ITL].state = SETTLED_SHORT;
	check_settled(&s);
	s.is_burst = true;
	check_settled(&s);
}

static void check_attempted(const struct metrics *m)
{
	struct buf out = { 0 };
	struct json_writer w;

	report_attempted_rows(m, &out);
	buf_add_char(&out, '\n');
	w = json_writer(&out);
	json_begin_object(&w);
	report_attempted_json(m, &w);
	json_end_object(&w);
	answers_release(&out);
}

static void attempted(void **state)
{
	static const double percentile[] = { 99 };
	struct metrics_attempted_percentile ttft[] = { { 50, 41.2, 41.2 }, { 99, 41.2, 55.1 } };
	struct metrics_attempted_percentile e2el[] = { { 50, 90, 90 }, { 99, 120, INFINITY } };
	struct metrics m = { .opts = { .percentile = percentile, .n_percentiles = 1,
				       .has_tokenizer = true } };

	(void)state;
	m.attempted = (struct metrics_attempted){
		.n = 10, .succeeded = 10, .good_share = 0.5,
		.ttft = { 10, 0, ttft }, .e2el = { 10, 0, e2el } };
	check_attempted(&m);
	m.attempted = (struct metrics_attempted){ .n = 10, .failed = 10, .good_share = 0 };
	check_attempted(&m);
	m.attempted = (struct metrics_attempted){
		.n = 10, .succeeded = 7, .failed = 2, .cancelled = 1, .unsent = 4, .with_tpot = 6,
		.with_itl = 5, .good_share = 0.625,
		.ttft = { 8, 2, ttft }, .e2el = { 7, 3, e2el } };
	check_attempted(&m);
	m.opts.has_tokenizer = false;
	m.attempted.good_share = NAN;
	check_attempted(&m);
}

/* ---- files ---- */

static void put(const char *folder, const char *name)
{
	char *path = file_join(folder, name);
	struct err e = { 0 };

	assert_int_equal(file_write_atomic(path, STR("x"), &e), 0);
	free(path);
}

/* A name is taken by the file, by what is named after it, and by those who have reserved it. */
static void claims(void **state)
{
	static const char *const want[] = {
		"label-2.5qps-concurrency8-m-20260101-000000.json",
		"label-2.5qps-concurrency8-m-20260101-000000-2.json",
		"label-2.5qps-concurrency8-m-20260101-000000-4.json",
		"label-2.5qps-concurrency8-m-20260101-000000-6.json",
	};
	const struct report_facts f = { .date = "20260101-000000", .backend = "b", .label = "label",
					.model_id = "org/m", .request_rate = 2.5, .max_concurrency = 8 };
	const struct report_facts ramp = { .date = "20260101-000000", .backend = "b", .ramp_strategy = "linear",
					   .ramp_start_rps = 1, .ramp_end_rps = 9 };
	char *folder = file_join(dir, "claims/below"), *path;
	struct err e = { 0 };

	(void)state;
	path = report_path(&ramp, folder, NULL);
	assert_string_equal(strrchr(path, '/') + 1, "b-ramp-up-linear-1qps-9qps--20260101-000000.json");
	free(path);
	for (size_t i = 0; i < COUNT(want); i++) {
		path = report_claim(&f, folder, &e);
		if (!path)
			fail_msg("%s", e.text);
		assert_string_equal(strrchr(path, '/') + 1, want[i]);
		assert_true(file_exists(path));
		free(path);
		if (i == 1) {
			put(folder, "label-2.5qps-concurrency8-m-20260101-000000-3.timeline.html");
			put(folder, "label-2.5qps-concurrency8-m-20260101-000000-40.json");
		}
		if (i == 2)
			put(folder, "label-2.5qps-concurrency8-m-20260101-000000-5.json");
	}
	/* What was reserved and has followers is given back. */
	path = file_join(folder, "label-2.5qps-concurrency8-m-20260101-000000-3.json");
	assert_false(file_exists(path));
	free(path);
	assert_null(report_claim(&f, "/dev/null/folder", &e));
	answers_check(e.text, strlen(e.text));
	assert_null(report_claim(&f, "/proc/self", &e));
	answers_check(e.text, strlen(e.text));
	assert_int_equal(report_save("/proc/self/none", STR("{}"), true, &e), -1);
	answers_check(e.text, strlen(e.text));
	assert_int_equal(report_save("/dev/full", STR("{}"), true, &e), -1);
	answers_check(e.text, strlen(e.text));
	free(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(load), cmocka_unit_test(budget), cmocka_unit_test(bounds),
		cmocka_unit_test(settled), cmocka_unit_test(attempted), cmocka_unit_test(claims),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
