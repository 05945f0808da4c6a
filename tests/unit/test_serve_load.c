/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options about how load is made: rules, plans that follow from them, several runs; over
 * the null transport.
 *
 * threads: yes
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bench/serve/point.h"
#include "bench/serve/repeat.h"
#include "core/json/read.h"

struct run {
	struct serve_opts opts;
	struct serve_derived derived;
	struct opt_result result;
	struct arena arena;
	struct run_hooks hooks;
	struct point point;
	struct repeat runs;
	struct err e;
	int rc;
};

static void on_measured(void *self, struct point *p)
{
	struct run *r = self;
	struct repeat_run *one = repeat_add(&r->runs);

	score_point(&r->opts, &r->derived, p, &one->scored);
	repeat_take(one, p);
}

static void run_init(struct run *r, const char *arguments)
{
	char *argv[64], *word, *rest;
	int argc = 0;

	memset(r, 0, sizeof(*r));
	rest = arena_printf(&r->arena, "--model null --tokenizer sim --random-input-len 4 %s",
			    arguments);
	while ((word = strsep(&rest, " ")))
		argv[argc++] = word;
	assert_int_equal(opt_parse(&serve_opt_set, argc, argv, &r->opts, &r->result, &r->arena,
				   &r->e), 0);
	serve_opts_fill(&r->opts, &r->arena);
	r->rc = serve_opts_check(&r->opts, &r->result, &r->arena, &r->derived, &r->e);
	r->hooks = (struct run_hooks){ .self = r, .transport = &transport_null };
}

static void run_start(struct run *r)
{
	assert_int_equal(r->rc, 0);
	r->rc = run_point(&r->opts, &r->derived, &r->hooks, &r->point, &r->e);
}

static void run_release(struct run *r)
{
	repeat_release(&r->runs);
	point_release(&r->point);
	opt_result_release(&r->result);
	arena_release(&r->arena);
}

static void rules(void **state)
{
	static const struct { const char *arguments, *error, *note; } row[] = {
		{ "--duration 5", "--duration needs --request-rate", NULL },
		{ "--duration 5 --num-prompts 9", NULL, NULL },
		{ "--duration 5 --max-concurrency 2 --grace-period 0", NULL, NULL },
		{ "--grace-period 3", NULL, "--grace-period has no effect without --duration" },
		{ "--base-urls http://a http://b --base-url http://c",
		  "--base-urls and --base-url are mutually exclusive", NULL },
		{ "--base-urls http://a nonsense://b", "--base-urls", NULL },
		{ "--base-urls nonsense://a http://b", "--base-urls: scheme", NULL },
		{ "--base-urls http://a https://b --insecure", NULL, NULL },
		{ "--base-urls http://a http://b --insecure", NULL, "--insecure has no effect" },
		{ "--base-urls http://a https://b --cacert /nowhere", "--cacert: cannot read", NULL },
		{ "--base-urls http://a http://b --port 80", NULL, "--host and --port have no effect" },
		{ "--balance random", NULL, "--balance has no effect" },
		{ "--base-urls http://a http://b --balance random", NULL, NULL },
		{ "--request-cancellation-delay 1", NULL,
		  "--request-cancellation-delay has no effect" },
		{ "--request-cancellation-rate 5 --request-cancellation-delay 1", NULL, NULL },
		{ "--profile-duration 2", NULL, "--profile-duration has no effect" },
		{ "--profile-batch-threshold 2 --profile-duration 2", NULL, NULL },
		{ "--profile-batch-threshold 2 --profile", NULL, "--profile has no effect" },
		{ "--probe-request-rate=-1", NULL, "--probe-request-rate -1 has no effect" },
		{ "--probe-request-rate 0", NULL, NULL },
		{ "--live --disable-tqdm", NULL, "--live has no effect" },
		{ "--compat v0.11 --metrics-url http://a/", NULL, "--metrics-url has no effect" },
		{ "--compat v0.11 --metrics-interval 2", NULL, "--metrics-interval has no effect" },
		{ "--timeline-itl-thresholds 1,2", NULL, "--timeline-itl-thresholds has no effect" },
		{ "--plot-timeline --timeline-itl-thresholds 1,2", NULL, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		const char *notes;
		struct run r;

		run_init(&r, row[i].arguments);
		notes = r.result.notes.len ? r.result.notes.data : "";
		assert_int_equal(r.rc, row[i].error ? -1 : 0);
		if (row[i].error)
			assert_non_null(strstr(r.e.text, row[i].error));
		if (row[i].note)
			assert_non_null(strstr(notes, row[i].note));
		else if (!row[i].error)
			assert_null(strstr(notes, "has no effect"));
		run_release(&r);
	}
}

/* As many requests as rate and time need, prompts again from the first, a ramp over all of it. */
static void a_duration_makes_the_plan(void **state)
{
	static const struct { const char *arguments; uint32_t n; double last_s; } row[] = {
		{ "--duration 10 --request-rate 7", 70, 10 },
		{ "--duration 300 --request-rate 10", 3000, 300 },
		{ "--duration 10 --request-rate 7 --num-prompts 20", 20, 20 / 7.0 },
		{ "--duration 0.01 --request-rate 7", 1, 0 },
		{ "--duration 2 --max-concurrency 8", 1600, 0 },
		{ "--duration 2 --max-concurrency 8 --num-prompts 5", 5, 0 },
		{ "--duration 1000000 --max-concurrency 8", 1 << 20, 0 },
		{ "--duration 10 --ramp-up-strategy linear --ramp-up-start-rps 10 --ramp-up-end-rps 10 "
		  "--burstiness inf", 100, 10 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		const struct plan *plan;
		struct run r;

		run_init(&r, row[i].arguments);
		r.opts.dry_run = true;
		run_start(&r);
		assert_int_equal(r.rc, 0);
		plan = &r.point.plan;
		assert_int_equal(plan->n, row[i].n);
		for (uint32_t k = 0; k < plan->n; k++)
			assert_int_equal(plan->entry[k].sample, k % r.point.workload.n);
		if (row[i].last_s > 0)
			assert_true(plan->entry[plan->n - 1].due_s > row[i].last_s - 1e-9 &&
				    plan->entry[plan->n - 1].due_s < row[i].last_s + 1e-9);
		run_release(&r);
	}
}

/* A linear ramp takes the time that was asked for, whatever its slope. */
static void a_ramp_takes_the_duration(void **state)
{
	static const char *const how[] = { "linear", "exponential" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		const struct plan *plan;
		char arguments[200];
		struct run r;

		snprintf(arguments, sizeof(arguments), "--duration 60 --ramp-up-strategy %s "
			 "--ramp-up-start-rps 1 --ramp-up-end-rps 40 --burstiness inf", how[i]);
		run_init(&r, arguments);
		r.opts.dry_run = true;
		run_start(&r);
		assert_int_equal(r.rc, 0);
		plan = &r.point.plan;
		assert_true(plan->entry[plan->n - 1].due_s > 58 &&
			    plan->entry[plan->n - 1].due_s < 62);
		run_release(&r);
	}
}

/* Marks and URLs come from forks of the seed: they change neither prompts nor times. */
static void draws_do_not_disturb_each_other(void **state)
{
	static const char *const more[] = {
		"", " --request-cancellation-rate 25",
		" --base-urls http://a http://b http://c --balance random",
	};
	uint32_t marked = 0, at[3] = { 0 };
	struct run r[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		char arguments[200];

		snprintf(arguments, sizeof(arguments), "--num-prompts 400 --request-rate 9%s", more[i]);
		run_init(&r[i], arguments);
		r[i].opts.dry_run = true;
		run_start(&r[i]);
		assert_int_equal(r[i].rc, 0);
		for (uint32_t k = 0; k < 400; k++) {
			const struct plan_entry *entry = &r[i].point.plan.entry[k];

			assert_true(entry->due_s == r[0].point.plan.entry[k].due_s);
			assert_true(str_eq(r[i].point.workload.v[k].prompt,
					   r[0].point.workload.v[k].prompt));
			marked += (entry->flags & PLAN_GIVES_UP) != 0;
			at[entry->endpoint] += i == 2;
		}
	}
	assert_in_range(marked, 70, 130);
	for (int k = 0; k < 3; k++)
		assert_in_range(at[k], 100, 170);
	for (int i = 0; i < 3; i++)
		run_release(&r[i]);
}

/* Every run has its own record; the median's is found, and all values are reported. */
static void runs_are_kept(void **state)
{
	const struct repeat_run *median;
	struct buf json = { 0 }, table = { 0 };
	struct json_value *v;
	unsigned below = 0;
	struct run r;

	(void)state;
	run_init(&r, "--num-prompts 30 --max-concurrency 3 --num-runs 5 --num-warmups 2 "
		     "--probe-request-rate 1000");
	r.hooks.measured = on_measured;
	run_start(&r);
	assert_int_equal(r.rc, 0);
	assert_int_equal(r.runs.n, 5);
	median = repeat_median(&r.runs);
	for (unsigned i = 0; i < 5; i++) {
		const struct repeat_run *one = r.runs.run[i];

		assert_int_equal(one->scored.metrics.completed, 30);
		assert_true(one->record.start_ns > (i ? r.runs.run[i - 1]->record.start_ns : 0));
		assert_ptr_equal(one->scored.report.record, &one->record);
		assert_true(one->scored.metrics.probe.completed > 0);
		below += one->scored.metrics.total_token_throughput <
			 median->scored.metrics.total_token_throughput;
	}
	assert_int_equal(below, 2);
	repeat_json(&r.runs, &json);
	repeat_table(&r.runs, &table);
	assert_int_equal(json_parse(&r.arena, buf_str(&json), &v, &r.e), 0);
	assert_int_equal(json_int(json_get(v, "count"), 0), 5);
	for (unsigned i = 0; i < 5; i++)
		if (r.runs.run[i] == median)
			assert_int_equal(json_int(json_get(v, "saved"), 0), i + 1);
	v = &json_get(v, "metrics")->item[1];
	assert_string_equal(json_text(json_get(v, "name"), STR("")).p, "completed");
	assert_true(json_real(json_get(v, "mean"), 0) == 30 && json_real(json_get(v, "sd"), 1) == 0);
	assert_int_equal(json_get(v, "values")->count, 5);
	assert_non_null(strstr(table.data, "All 5 runs"));
	assert_non_null(strstr(table.data, "\ntotal_token_throughput "));
	buf_release(&json);
	buf_release(&table);
	run_release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules),
		cmocka_unit_test(a_duration_makes_the_plan),
		cmocka_unit_test(a_ramp_takes_the_duration),
		cmocka_unit_test(draws_do_not_disturb_each_other),
		cmocka_unit_test(runs_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
