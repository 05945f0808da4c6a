/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_decide_compare.c - comparisons of matched configurations against values worked out by hand.
 *
 * Student's t with 2 degrees of freedom has a closed form: two-sided p = 1 - t / sqrt(t^2 + 2), and
 * quantiles 4.302653 (97.5 %) and 2.919986 (95 %).
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "decide/compare.h"
#include "json/read.h"
#include "stats/compare.h"

#define RUNS_MAX 256
#define METRICS_MAX 8
#define T975 4.30265272974946
#define T95 2.91998558035373

/* Runs as a test adds them, and what came out. */
struct rig {
	struct matched_run run[RUNS_MAX];
	double value[RUNS_MAX][METRICS_MAX];
	unsigned char state[RUNS_MAX][METRICS_MAX];
	struct matched_metric metric[METRICS_MAX];
	struct matched_spec spec;
	struct matched out;
	struct arena a;
};

static const char *const names[] = { "old", "new", "newest" };

static struct rig *rig_new(void)
{
	struct rig *r = calloc(1, sizeof(*r));

	r->metric[0] = matched_metric_of("output_throughput", "tokens/s", 1);
	r->spec = (struct matched_spec){ .run = r->run, .metric = r->metric, .n_metrics = 1,
					 .side = names, .n_sides = 2, .primary = 0, .alpha = 0.05 };
	return r;
}

static struct matched_run *add(struct rig *r, size_t side, const char *config, const char *session,
			       double value)
{
	size_t i = r->spec.n_runs++;

	assert_true(i < RUNS_MAX);
	r->value[i][0] = value;
	r->run[i] = (struct matched_run){
		.side = side, .config = config, .session = session, .value = r->value[i],
		.state = r->state[i],
		.work = { NAN, NAN, NAN, NAN, NAN, NAN } };
	return &r->run[i];
}

static const struct matched_row *compare(struct rig *r)
{
	matched_compare(&r->spec, &r->a, &r->out);
	return &r->out.pair[0].row[0];
}

static void rig_free(struct rig *r)
{
	arena_release(&r->a);
	free(r);
}

static const char *text(struct rig *r, const char *stem, size_t i)
{
	return arena_printf(&r->a, "%s%zu", stem, i);
}

static void near(double got, double want, double off)
{
	if (!(fabs(got - want) <= off))
		fail_msg("%.17g, expected %.17g", got, want);
}

/* n configurations, one run a side, each with a server of its own; d[i] is the logarithm's change. */
static void add_pairs(struct rig *r, const double *d, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		double base = 100 * exp((double)i);

		add(r, 0, text(r, "config ", i), text(r, "a", i), base);
		add(r, 1, text(r, "config ", i), text(r, "b", i), base * exp(d[i]));
	}
}

/* ---- estimates and intervals ---- */

static void by_clusters(void **state)
{
	static const double d[] = { 0.02, 0.01, 0.03 };
	struct rig *r = rig_new();
	const struct matched_row *row;
	double se = 0.01 / sqrt(3);

	(void)state;
	add_pairs(r, d, 3);
	row = compare(r);
	assert_int_equal(r->out.pair[0].refusal, MATCHED_ACCEPTED);
	assert_int_equal(row->is.rule, MATCHED_BY_CLUSTERS);
	near(row->is.ratio, exp(0.02), 1e-12);
	near(row->is.value[0], 100 * exp(1), 1e-9); /* geometric mean of the baseline */
	near(row->is.value[1] / row->is.value[0], row->is.ratio, 1e-12);
	near(log(row->is.interval.low), 0.02 - T975 * se, 1e-9);
	near(log(row->is.interval.high), 0.02 + T975 * se, 1e-9);
	near(log(row->is.narrow.low), 0.02 - T95 * se, 1e-9);
	near(row->is.p, 1 - 2 * sqrt(3) / sqrt(14), 1e-9);
	near(row->is.df, 2, 0);
	near(row->is.scatter, 0.01, 1e-12);
	near(row->spread, 0.01, 1e-12);
	near(row->q, row->is.p, 0);
	assert_int_equal(row->up, 3);
	assert_int_equal(row->down, 0);
	near(row->p_sign, 0.25, 1e-12);
	assert_true(isnan(row->p_ranks));
	assert_int_equal(row->verdict, MATCHED_NOT_ENOUGH);
	assert_int_equal(row->why, MATCHED_WHY_WIDE);
	assert_true(row->need.clusters > 3 && row->need.sessions >= 2);
	/* The worst change first. */
	assert_string_equal(row->config[0].name, "config 1");
	assert_string_equal(row->config[2].name, "config 2");
	near(row->config[2].is.ratio, exp(0.03), 1e-12);
	near(row->config[2].session[1][0], 100 * exp(2.03), 1e-9);
	assert_true(isnan(row->config[0].is.p));
	rig_free(r);
}

/* One configuration with two sessions a side; repeats within a session weigh nothing more. */
static void by_sessions(void **state)
{
	struct rig *r = rig_new();
	const struct matched_row *row;
	double t = 0.05 / sqrt(2e-4);

	(void)state;
	add(r, 0, "c", "a1", 100);
	add(r, 0, "c", "a2", 100 * exp(0.01));
	add(r, 0, "c", "a2", 100 * exp(0.02));
	add(r, 0, "c", "a2", 100 * exp(0.03));
	add(r, 1, "c", "b2", 100 * exp(0.07));
	add(r, 1, "c", "b1", 100 * exp(0.05));
	row = compare(r);
	assert_int_equal(row->is.rule, MATCHED_BY_SESSIONS);
	near(row->is.ratio, exp(0.05), 1e-12);
	near(row->is.df, 2, 0);
	near(row->is.p, 1 - t / sqrt(t * t + 2), 1e-9);
	near(log(row->is.interval.low), 0.05 - T975 * sqrt(2e-4), 1e-9);
	assert_int_equal(row->runs[0], 4);
	assert_int_equal(row->sessions[0], 2);
	near(row->config[0].is.p, row->is.p, 1e-12);
	assert_true(isnan(row->p_differ)); /* one configuration differs from none */
	rig_free(r);
}

/* n configurations with sessions of their own: s^2 sum(1/nA + 1/nB) / n^2. */
static void by_sessions_pooled(void **state)
{
	struct rig *r = rig_new();
	const struct matched_row *row;
	/* squares around their means: 2e-4 (two a side), 0, 0.0006 (three), 2e-4 */
	double s2 = (2e-4 + 0 + 6e-4 + 2e-4) / 5, se = sqrt(s2 * (0.5 + 0.5 + 1 / 3.0 + 0.5) / 4);
	double d1 = 0.04, d2 = 0.02, v1 = s2, v2 = s2 * (1 / 3.0 + 0.5), q;

	(void)state;
	add(r, 0, "one", "1", 10);
	add(r, 0, "one", "2", 10 * exp(0.02));
	add(r, 1, "one", "3", 10 * exp(0.05));
	add(r, 1, "one", "4", 10 * exp(0.05));
	add(r, 0, "two", "5", 20 * exp(-0.01));
	add(r, 0, "two", "6", 20 * exp(-0.01));
	add(r, 0, "two", "7", 20 * exp(0.02));
	add(r, 1, "two", "8", 20 * exp(0.01));
	add(r, 1, "two", "9", 20 * exp(0.03));
	row = compare(r);
	assert_int_equal(row->is.rule, MATCHED_BY_SESSIONS);
	near(row->is.df, 5, 0);
	near(row->is.scatter, sqrt(s2), 1e-12);
	near(log(row->is.ratio), 0.03, 1e-12);
	near(log(row->is.interval.high) - 0.03, student_quantile(0.975, 5) * se, 1e-9);
	q = (d1 - d2) * (d1 - d2) / (v1 + v2); /* Cochran's Q of two */
	near(row->p_differ, 2 * student_cdf(-sqrt(q), 5), 1e-9);
	rig_free(r);
}

/* Two loads of one server, restarted twice a side: two sessions a side, not four. */
static void shared_sessions(void **state)
{
	static const double e[2][2] = { { 0, 0.02 }, { 0, 0.04 } };
	struct rig *r = rig_new();
	const struct matched_row *row;

	(void)state;
	for (size_t side = 0; side < 2; side++)
		for (size_t load = 0; load < 2; load++)
			for (size_t s = 0; s < 2; s++) {
				struct matched_run *run =
					add(r, side, text(r, "rate=", load),
					    text(r, side ? "b" : "a", s),
					    exp(e[load][s] + (double)load + 0.05 * (double)side));

				run->load = run->config;
			}
	row = compare(r);
	assert_int_equal(row->is.rule, MATCHED_BY_SESSIONS);
	assert_int_equal(row->is.configs, 2);
	assert_int_equal(row->is.clusters, 1);
	/* Residuals of sessions: -0.015 and +0.015 on both sides. */
	near(row->is.scatter, sqrt(9e-4 / 2), 1e-12);
	near(row->is.df, 2, 0);
	near(log(row->is.interval.high) - 0.05, T975 * sqrt(4.5e-4), 1e-9);
	near(log(row->is.ratio), 0.05, 1e-12);
	assert_int_equal(row->n_loads, 2);
	assert_string_equal(row->load[1].name, "rate=1");
	near(log(row->load[1].is.interval.high) - 0.05, T975 * sqrt(8e-4), 1e-9);
	rig_free(r);
}

/* One session lacks a load: the weights of sessions and the expected squares are its own. */
static void unbalanced_sessions(void **state)
{
	static const double one[] = { 0.03, 0, 0 };
	struct rig *r = rig_new();
	const struct matched_row *row;
	double s2 = 2.25e-4 / 2.75;

	(void)state;
	for (size_t s = 0; s < 3; s++)
		add(r, 0, "one", text(r, "a", s), exp(one[s]));
	for (size_t s = 0; s < 2; s++) {
		add(r, 0, "two", text(r, "a", s), exp(1));
		add(r, 1, "one", text(r, "b", s), exp(0.05));
		add(r, 1, "two", text(r, "b", s), exp(1.05));
	}
	row = compare(r);
	assert_int_equal(row->is.clusters, 1);
	near(log(row->is.ratio), (0.04 + 0.05) / 2, 1e-12);
	near(row->is.df, 3, 0);
	near(row->is.scatter, sqrt(s2), 1e-12);
	/* Weights 5/12, 5/12, 1/6 and 1/2, 1/2: their squares add up to 0.875. */
	near(log(row->is.interval.high) - 0.045, student_quantile(0.975, 3) * sqrt(s2 * 0.875), 1e-9);
	rig_free(r);
}

/* Loads that share a server are one sample: 3 servers of 4 loads give 2 degrees of freedom. */
static void clusters(void **state)
{
	static const double server[] = { 0.01, 0.02, 0.03 };
	static const double load[] = { -0.004, 0.004, -0.002, 0.002 };
	struct rig *r = rig_new();
	const struct matched_row *row;

	(void)state;
	for (size_t i = 0; i < 12; i++) {
		const char *config = text(r, "point ", i);

		add(r, 0, config, text(r, "a", i / 4), 50);
		add(r, 1, config, text(r, "b", i / 4), 50 * exp(server[i / 4] + load[i % 4]));
	}
	row = compare(r);
	assert_int_equal(row->is.rule, MATCHED_BY_CLUSTERS);
	assert_int_equal(row->is.clusters, 3);
	near(row->is.df, 2, 0);
	near(log(row->is.ratio), 0.02, 1e-12);
	near(log(row->is.interval.low), 0.02 - T975 * 0.01 / sqrt(3), 1e-9);
	assert_int_equal(row->up, 12);
	assert_int_equal(row->clusters_up, 3);
	near(row->p_sign, 0.25, 1e-12);
	rig_free(r);
}

/* A session on one side alone links configurations, too. */
static void linked_by_one_side(void **state)
{
	struct rig *r = rig_new();
	const struct matched_row *row;

	(void)state;
	for (size_t i = 0; i < 6; i++) {
		add(r, 0, text(r, "c", i), "the only server", 10);
		add(r, 1, text(r, "c", i), text(r, "b", i), 10.1 + 0.01 * (double)i);
	}
	row = compare(r);
	assert_int_equal(row->is.clusters, 1);
	assert_int_equal(row->is.rule, MATCHED_BY_NOTHING);
	assert_true(isnan(row->is.interval.low) && isnan(row->is.p));
	assert_int_equal(row->verdict, MATCHED_NOT_ENOUGH);
	assert_int_equal(row->why, MATCHED_WHY_DESIGN);
	rig_free(r);
}

/* ---- verdicts ---- */

/* Eight pairs whose logarithms are mean -+ sd, so that the standard error is sd / sqrt(7). */
static const struct matched_row *eight(struct rig *r, double mean, double sd)
{
	double d[8];

	for (size_t i = 0; i < 8; i++)
		d[i] = mean + (i % 2 ? sd : -sd);
	r->spec.n_runs = 0;
	add_pairs(r, d, 8);
	return compare(r);
}

static void verdicts(void **state)
{
	static const struct {
		double mean, sd;
		int better;
		enum matched_verdict verdict;
		bool is_beyond_d;
		const char *words;
	} rows[] = {
		{ 0.05, 0.03, 1, MATCHED_BETTER, false, "better" },
		{ 0.05, 0.03, -1, MATCHED_WORSE, false, "worse" },
		{ -0.05, 0.03, 1, MATCHED_WORSE, false, "worse" },
		{ -0.05, 0.03, -1, MATCHED_BETTER, false, "better" },
		{ 0.05, 0.005, 1, MATCHED_BETTER, true, "better by at least 3 %" },
		{ -0.05, 0.005, 1, MATCHED_WORSE, true, "worse by at least 3 %" },
		{ 0.01, 0.005, 1, MATCHED_BETTER_SMALL, false, "better, but by less than 3 %" },
		{ 0.01, 0.005, -1, MATCHED_WORSE_SMALL, false, "worse, but by less than 3 %" },
		{ 0.05, 0.005, 0, MATCHED_CHANGED, true, "changed by at least 3 %" },
		{ 0.01, 0.005, 0, MATCHED_CHANGED_SMALL, false, "changed, but by less than 3 %" },
		{ 0.001, 0.005, 1, MATCHED_NO_CHANGE, false, "no change above 3 %" },
		{ 0.01, 0.1, 1, MATCHED_NOT_ENOUGH, false, "not enough data" },
	};
	struct rig *r = rig_new();

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct matched_row *row;

		r->metric[0].better = rows[i].better;
		row = eight(r, rows[i].mean, rows[i].sd);
		assert_int_equal(row->verdict, rows[i].verdict);
		assert_int_equal(row->is_beyond_d, rows[i].is_beyond_d);
		assert_string_equal(matched_verdict_words(row, &r->a), rows[i].words);
	}
	rig_free(r);
}

/* D of a p99 is 5 %: what is a change of a median is none of a tail. */
static void least_changes(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	assert_int_equal(eight(r, 0.03, 0.02)->verdict, MATCHED_BETTER);
	r->metric[0] = matched_metric_of("p99_ttft_ms", "ms", -1);
	near(r->metric[0].effect_min, 0.05, 0);
	assert_int_equal(eight(r, 0.03, 0.02)->verdict, MATCHED_WORSE_SMALL);
	rig_free(r);
}

/* Wilcoxon's test as a check: one outlier hides what seven of eight say, and the reverse. */
static void outliers(void **state)
{
	static const double one[] = { 0.001, -0.002, 0.003, -0.004, 0.005, -0.006, 0.007, 0.2 };
	struct rig *r = rig_new();
	const struct matched_row *row;

	(void)state;
	row = eight(r, 0.02, 0.005);
	near(row->p_ranks, 2 / 256.0, 1e-12);
	assert_false(row->do_ranks_disagree);
	r->spec.n_runs = 0;
	add_pairs(r, one, 8);
	row = compare(r);
	assert_true(row->p_ranks > 0.05 && row->is.p > 0.05);
	rig_free(r);
}

static void one_repeat(void **state)
{
	struct rig *r = rig_new();
	const struct matched_row *row;

	(void)state;
	add(r, 0, "c", "a", 100);
	add(r, 1, "c", "b", 90);
	row = compare(r);
	assert_int_equal(row->verdict, MATCHED_NOT_ENOUGH);
	assert_int_equal(row->why, MATCHED_WHY_DESIGN);
	near(row->is.ratio, 0.9, 1e-12);
	assert_true(isnan(row->is.interval.low));
	assert_int_equal(row->need.from, MATCHED_SUPPOSED);
	assert_int_equal(row->need.sessions,
			 compare_repeats_needed(MATCHED_SCATTER_USUAL, 0.03, 0.05, 0.8));
	/* Repeats in one session change no verdict; what they say of scatter is a least value. */
	add(r, 0, "c", "a", 102);
	add(r, 1, "c", "b", 91);
	row = compare(r);
	assert_int_equal(row->verdict, MATCHED_NOT_ENOUGH);
	assert_int_equal(row->need.from, MATCHED_FROM_RUNS);
	assert_non_null(strstr(matched_sentence(&r->out, &r->out.pair[0], row, &r->a), "at least"));
	rig_free(r);
}

/* As many sessions as are asked for would do: the same scatter with so many gives a verdict. */
static void needed_would_do(void **state)
{
	struct rig *r = rig_new();
	const struct matched_row *row;
	size_t need;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		add(r, 0, "c", text(r, "a", i), 100 * exp(i ? 0.02 : -0.02));
		add(r, 1, "c", text(r, "b", i), 100 * exp(0.03 + (i ? 0.02 : -0.02)));
	}
	row = compare(r);
	assert_int_equal(row->why, MATCHED_WHY_WIDE);
	need = row->need.sessions;
	assert_int_equal(need, compare_repeats_needed(sqrt(8e-4), 0.03, 0.05, 0.8));
	r->spec.n_runs = 0;
	for (size_t i = 0; i < need; i++) { /* the same standard deviation, divided by n - 1 */
		double e = sqrt(8e-4 * (double)(need - 1) / (double)need) * (i % 2 ? 1 : -1);

		add(r, 0, "c", text(r, "a", i), 100 * exp(e));
		add(r, 1, "c", text(r, "b", i), 100 * exp(0.03 + e));
	}
	assert_int_equal(compare(r)->verdict, MATCHED_BETTER);
	rig_free(r);
}

/* Where enough for D is there already, the number that settles the present estimate is given. */
static void needed_to_settle(void **state)
{
	struct rig *r = rig_new();
	const struct matched_row *row;
	double d[24];

	(void)state;
	for (size_t i = 0; i < 24; i++)
		d[i] = 0.017 + (i % 2 ? 0.044 : -0.044);
	add_pairs(r, d, 24);
	row = compare(r);
	assert_int_equal(row->why, MATCHED_WHY_WIDE);
	assert_true(row->need.clusters > 24 && row->need.clusters < 60);
	rig_free(r);
}

/* ---- several metrics and sides ---- */

static void adjusted(void **state)
{
	struct rig *r = rig_new();
	double d[8];

	(void)state;
	r->spec.n_metrics = METRICS_MAX;
	for (size_t m = 1; m < METRICS_MAX; m++)
		r->metric[m] = matched_metric_of("output_throughput", "tokens/s", 1);
	for (size_t i = 0; i < 8; i++)
		d[i] = 0.02 + (i % 2 ? 0.022 : -0.022); /* p = 0.0473, and 90 % beyond 3 % */
	add_pairs(r, d, 8);
	for (size_t i = 0; i < r->spec.n_runs; i++)
		for (size_t m = 1; m < METRICS_MAX; m++) /* no change in the others */
			r->value[i][m] = m == 1 ? r->value[i][0] :
				100 * exp((i % 2 ? 0.01 : 0) * (i % 4 > 1 ? 1.1 : -1));
	compare(r);
	assert_int_equal(r->out.pair[0].row[0].verdict, MATCHED_BETTER);
	near(r->out.pair[0].row[0].q, r->out.pair[0].row[0].is.p, 0);
	assert_int_equal(r->out.pair[0].row[1].verdict, MATCHED_NOT_ENOUGH);
	assert_int_equal(r->out.pair[0].row[1].why, MATCHED_WHY_CHANCE);
	near(r->out.pair[0].row[1].q, 7 * r->out.pair[0].row[1].is.p, 1e-12);
	rig_free(r);
}

/* Three sides: each further one against the first; the primary metric's two are adjusted. */
static void three_sides(void **state)
{
	struct rig *r = rig_new();
	double d[8];

	(void)state;
	for (size_t i = 0; i < 8; i++)
		d[i] = 0.05 + (i % 2 ? 0.01 : -0.01);
	add_pairs(r, d, 8);
	for (size_t i = 0; i < 8; i++)
		add(r, 2, text(r, "config ", i), text(r, "c", i), 100 * exp((double)i));
	add(r, 2, "alone", "c9", 7);
	r->spec.n_sides = 3;
	compare(r);
	assert_int_equal(r->out.n_pairs, 2);
	assert_int_equal(r->out.pair[0].row[0].verdict, MATCHED_BETTER);
	assert_int_equal(r->out.pair[1].row[0].verdict, MATCHED_NO_CHANGE);
	assert_int_equal(r->out.pair[0].n_alone[1], 0);
	assert_int_equal(r->out.pair[1].n_alone[1], 1);
	near(r->out.pair[0].row[0].q, 2 * r->out.pair[0].row[0].is.p, 1e-12);
	rig_free(r);
}

/* ---- effects that differ ---- */

static void mixed(void **state)
{
	struct rig *r = rig_new();
	const struct matched_row *row;

	(void)state;
	for (size_t i = 0; i < 4; i++)
		for (size_t s = 0; s < 3; s++) {
			double e = 0.002 * ((double)s - 1);

			add(r, 0, text(r, "c", i), text(r, "a", 10 * i + s), 100 * exp(e));
			add(r, 1, text(r, "c", i), text(r, "b", 10 * i + s),
			    100 * exp(e + (i % 2 ? 0.06 : -0.06)));
		}
	row = compare(r);
	assert_int_equal(row->verdict, MATCHED_MIXED);
	assert_true(row->do_effects_differ && row->p_differ < 1e-6);
	assert_int_equal(row->evident_up, 2);
	assert_int_equal(row->evident_down, 2);
	assert_non_null(strstr(matched_sentence(&r->out, &r->out.pair[0], row, &r->a),
			       "from -5.8 % to +6.2 %"));
	rig_free(r);
}

/* Faster at a low load, slower at a high one: no configuration has repeats, but each load has. */
static void mixed_by_load(void **state)
{
	struct rig *r = rig_new();
	const struct matched_row *row;

	(void)state;
	for (size_t server = 0; server < 5; server++)
		for (size_t load = 0; load < 2; load++) {
			const char *config = text(r, load ? "high " : "low ", server);
			double e = 0.003 * ((double)server - 2);

			add(r, 0, config, text(r, "a", server), 100)->load = load ? "high" : "low";
			add(r, 1, config, text(r, "b", server), 100 * exp(e + (load ? -0.05 : 0.05)))
				->load = load ? "high" : "low";
		}
	row = compare(r);
	assert_int_equal(row->verdict, MATCHED_MIXED);
	assert_int_equal(row->n_loads, 2);
	assert_int_equal(row->load[0].evident, 1);
	assert_int_equal(row->load[1].evident, -1);
	near(log(row->load[0].is.ratio), 0.05, 1e-12);
	rig_free(r);
}

/* ---- what is left out ---- */

static void unmatched(void **state)
{
	static const double d[] = { 0.01, 0.02, 0.03 };
	struct rig *r = rig_new();
	const struct matched_pair *pair = &r->out.pair[0];

	(void)state;
	add(r, 0, "first only", "x", 1e6);
	add_pairs(r, d, 3);
	add(r, 1, "second only", "y", 1e-6);
	add(r, 1, "second only", "y", 1e-6);
	compare(r);
	pair = &r->out.pair[0];
	assert_int_equal(pair->n_configs, 3);
	assert_int_equal(pair->n_alone[0], 1);
	assert_string_equal(pair->alone[0][0].config, "first only");
	assert_int_equal(pair->n_alone[1], 1);
	assert_int_equal(pair->alone[1][0].runs, 2);
	near(log(pair->row[0].is.ratio), 0.02, 1e-12);
	assert_non_null(strstr(matched_notes(&r->out, pair, &r->a),
			       "1 configuration of new without a counterpart in old: second only"));
	rig_free(r);
}

static void invalid_and_missing(void **state)
{
	static const double d[] = { 0.01, 0.02, 0.03 };
	struct rig *r = rig_new();
	const struct matched_row *row;
	size_t last;

	(void)state;
	add_pairs(r, d, 3);
	add(r, 1, "config 0", "bad", 1e9);
	r->state[r->spec.n_runs - 1][0] = MATCHED_INVALID;
	add(r, 0, "config 1", "none", NAN);
	add(r, 0, "config 1", "endless", INFINITY);
	r->state[0][0] = MATCHED_DEGRADED;
	row = compare(r);
	near(log(row->is.ratio), 0.02, 1e-12);
	assert_int_equal(row->invalid[1], 1);
	assert_int_equal(row->missing[0], 2);
	assert_int_equal(row->degraded[0], 1);
	r->spec.is_invalid_counted = true;
	row = compare(r);
	assert_int_equal(row->invalid[1], 0);
	assert_true(row->is.ratio > 2);
	/* One whole configuration without a value on one side. */
	r->spec.is_invalid_counted = false;
	last = r->spec.n_runs;
	add(r, 0, "config 9", "a9", 5);
	add(r, 1, "config 9", "b9", NAN);
	row = compare(r);
	assert_int_equal(row->unpaired, 1);
	assert_int_equal(row->is.configs, 3);
	r->spec.n_runs = last;
	/* Nothing but INVALID on a side. */
	for (size_t i = 0; i < r->spec.n_runs; i++)
		r->state[i][0] = r->run[i].side ? MATCHED_INVALID : MATCHED_COUNTS;
	row = compare(r);
	assert_int_equal(r->out.pair[0].refusal, MATCHED_REFUSED_INVALID);
	assert_non_null(strstr(r->out.pair[0].reason, "of new"));
	assert_true(isnan(row->is.ratio));
	assert_int_equal(row->why, MATCHED_WHY_INVALID);
	rig_free(r);
}

static void zero_and_negative(void **state)
{
	static const double d[] = { 0.01, 0.02, 0.03 };
	struct rig *r = rig_new();
	const struct matched_row *row;

	(void)state;
	add_pairs(r, d, 3);
	add(r, 0, "stuck", "a9", 50);
	add(r, 1, "stuck", "b9", 0);
	row = compare(r);
	assert_int_equal(row->verdict, MATCHED_NOT_COMPARABLE);
	assert_int_equal(row->why, MATCHED_WHY_NOT_POSITIVE);
	assert_true(isnan(row->is.p) && isnan(row->is.interval.high));
	assert_string_equal(row->config[3].name, "stuck"); /* at the end, with its means */
	near(row->config[3].is.value[0], 50, 0);
	near(row->config[3].is.value[1], 0, 0);
	assert_true(isnan(row->config[3].is.ratio));
	/* 0 on both sides is no change. */
	r->value[r->spec.n_runs - 2][0] = 0;
	row = compare(r);
	assert_int_equal(row->why, MATCHED_WHY_WIDE);
	near(log(row->is.ratio), 0.015, 1e-12);
	for (size_t i = 0; i < r->spec.n_runs; i++)
		r->value[i][0] = 0;
	row = compare(r);
	assert_int_equal(row->verdict, MATCHED_NO_CHANGE);
	near(row->is.value[1], 0, 0);
	for (size_t i = 0; i < r->spec.n_runs; i++)
		r->value[i][0] = -1 - (double)i;
	row = compare(r);
	assert_int_equal(row->why, MATCHED_WHY_NOT_POSITIVE);
	assert_true(isnan(row->is.ratio));
	rig_free(r);
}

/* Deterministic figures have no scatter: equal is no change, and a difference is sure. */
static void no_scatter(void **state)
{
	struct rig *r = rig_new();
	const struct matched_row *row;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		const char *config = text(r, "c", i);
		/* Sums in another order round otherwise. */
		static const double x[] = { 0.1, 0.7, 0.3 };

		for (size_t k = 0; k < 3; k++) {
			add(r, 0, config, text(r, "a", i), x[k]);
			add(r, 1, config, text(r, "b", i), x[2 - k]);
		}
	}
	row = compare(r);
	assert_int_equal(row->verdict, MATCHED_NO_CHANGE);
	assert_int_equal(row->equal, 3);
	near(row->is.p, 1, 0);
	for (size_t i = 0; i < r->spec.n_runs; i++)
		r->value[i][0] = r->run[i].side ? 11 : 10;
	row = compare(r);
	assert_int_equal(row->verdict, MATCHED_BETTER);
	assert_true(row->is_beyond_d);
	near(row->is.interval.low, 1.1, 1e-12);
	rig_free(r);
}

/* ---- refusals and guards ---- */

static void refusals(void **state)
{
	struct rig *r = rig_new();
	const char *id[] = { "r1", "r2" };

	(void)state;
	add(r, 0, "c", "a", 1);
	compare(r);
	assert_int_equal(r->out.pair[0].refusal, MATCHED_REFUSED_EMPTY);
	assert_string_equal(r->out.pair[0].reason, "new has no run");
	add(r, 1, "d", "b", 1);
	compare(r);
	assert_int_equal(r->out.pair[0].refusal, MATCHED_REFUSED_UNMATCHED);
	assert_int_equal(r->out.pair[0].n_alone[0], 1);
	assert_int_equal(r->out.pair[0].n_alone[1], 1);
	r->spec.n_runs = 0;
	for (size_t i = 0; i < 4; i++)
		add(r, i / 2, text(r, "c", i % 2), "a", 1)->id = id[i % 2];
	compare(r);
	assert_int_equal(r->out.pair[0].refusal, MATCHED_REFUSED_SAME);
	assert_string_equal(r->out.pair[0].reason, "old and new are the same runs");
	add(r, 0, "c0", "other", 2);
	compare(r);
	assert_int_equal(r->out.pair[0].refusal, MATCHED_REFUSED_SAME);
	assert_string_equal(r->out.pair[0].reason, "every run of new is also a run of old");
	add(r, 1, "c0", "another", 2);
	compare(r);
	assert_int_equal(r->out.pair[0].refusal, MATCHED_ACCEPTED);
	assert_int_equal(r->out.pair[0].shared, 2);
	assert_int_equal(r->out.pair[0].runs[0], 1);
	assert_int_equal(r->out.pair[0].row[0].runs[0], 1);
	rig_free(r);
}

/* Both a gain and a loss are void where other work was done, requests failed or limits broke. */
static void guards(void **state)
{
	static const struct {
		struct matched_work a, b;
		const char *part;
	} rows[] = {
		{ { 0, 1000, NAN, NAN, NAN, NAN }, { 2, 998, NAN, NAN, NAN, NAN },
		  "failed requests: 0.00 % against 0.20 %" },
		{ { 0, 100, 1000, 1200, NAN, NAN }, { 0, 100, 1000, 1820, NAN, NAN },
		  "different work: 12.0 against 18.2 output tokens per request" },
		{ { 0, 100, 1000, 1200, NAN, NAN }, { 0, 100, 1100, 1200, NAN, NAN },
		  "different work: 10.0 against 11.0 input tokens per request" },
	};
	struct rig *r = rig_new();

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		for (int way = -1; way <= 1; way += 2)
			for (unsigned from = 0; from < 2; from++) {
				const struct matched_row *row;

				eight(r, 0.1 * way, 0.01);
				for (size_t k = 0; k < r->spec.n_runs; k++)
					r->run[k].work = r->run[k].side == from ? rows[i].a : rows[i].b;
				row = compare(r);
				assert_int_equal(row->verdict, MATCHED_NOT_COMPARABLE);
				assert_int_equal(row->why, MATCHED_WHY_GUARD);
				assert_true(isnan(row->is.p) && isnan(row->is.interval.low));
				assert_true(isfinite(row->is.ratio));
				if (!from)
					assert_non_null(strstr(row->reason, rows[i].part));
				/* What the guard is about is no reason against itself. */
				r->metric[0].guards &= ~(1u << i);
				assert_int_not_equal(compare(r)->verdict, MATCHED_NOT_COMPARABLE);
				r->metric[0].guards = MATCHED_GUARD_ALL;
			}
	rig_free(r);
}

/* A gain while goodput falls is none, a loss while it rises neither; both up or down is an answer. */
static void goodput(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	for (int way = -1; way <= 1; way += 2)
		for (unsigned from = 0; from < 2; from++) {
			bool is_against = way > 0 ? from == 0 : from == 1;
			const struct matched_row *row;

			eight(r, 0.1 * way, 0.01);
			for (size_t k = 0; k < r->spec.n_runs; k++) {
				r->run[k].work.throughput = 10;
				r->run[k].work.goodput = r->run[k].side == from ? 9 : 8;
			}
			row = compare(r);
			assert_int_equal(row->verdict == MATCHED_NOT_COMPARABLE, is_against);
			assert_int_equal(isnan(row->is.p), is_against);
			if (is_against && !from)
				assert_non_null(strstr(row->reason, "90.0 % against 80.0 %"));
			r->metric[0].guards &= ~(unsigned)MATCHED_GUARD_GOOD;
			assert_int_not_equal(compare(r)->verdict, MATCHED_NOT_COMPARABLE);
			r->metric[0].guards = MATCHED_GUARD_ALL;
		}
	assert_int_equal(matched_metric_of("request_goodput", "", 1).guards & MATCHED_GUARD_GOOD, 0);
	rig_free(r);
}

/* Of twenty configurations one does other work: it is set apart; three void the comparison. */
static void guards_of_some(void **state)
{
	struct rig *r = rig_new();
	const struct matched_row *row;
	double d[20];

	(void)state;
	for (size_t i = 0; i < 20; i++)
		d[i] = 0.05 + (i % 2 ? 0.01 : -0.01);
	d[0] = 3;
	add_pairs(r, d, 20);
	for (size_t i = 0; i < 40; i++)
		r->run[i].work = (struct matched_work){ .completed = 10, .output_tokens = 100,
							.input_tokens = NAN, .goodput = NAN };
	r->run[1].work.output_tokens = 110;
	row = compare(r);
	assert_int_equal(row->verdict, MATCHED_BETTER);
	assert_int_equal(row->apart, 1);
	assert_int_equal(row->is.configs, 19);
	assert_string_equal(row->config[19].name, "config 0");
	assert_non_null(row->config[19].apart);
	assert_non_null(strstr(matched_notes(&r->out, &r->out.pair[0], &r->a),
			       "1 of 20 configurations not comparable: config 0 (different work"));
	r->run[3].work.output_tokens = r->run[5].work.output_tokens = 110;
	row = compare(r);
	assert_int_equal(row->verdict, MATCHED_NOT_COMPARABLE);
	assert_int_equal(row->is.configs, 17);
	r->spec.is_comparable_only = true;
	row = compare(r);
	assert_int_equal(row->verdict, MATCHED_BETTER);
	assert_int_equal(row->is.configs, 17);
	rig_free(r);
}

/* ---- words and JSON ---- */

static void words(void **state)
{
	struct rig *r = rig_new();
	const struct matched_row *row = eight(r, 0.05, 0.005);

	(void)state;
	assert_string_equal(matched_sentence(&r->out, &r->out.pair[0], row, &r->a),
			    "output_throughput: better by at least 3 %, +5.1 % (95 % interval "
			    "+4.7 % to +5.6 %; higher in 8 of 8 configurations)");
	for (size_t i = 0; i < r->spec.n_runs; i++)
		r->run[i].session = NULL;
	compare(r);
	assert_int_equal(r->out.pair[0].sessions_unknown[0], 8);
	assert_non_null(strstr(matched_notes(&r->out, &r->out.pair[0], &r->a),
			       "new: nothing tells which of 8 runs shared a server"));
	rig_free(r);
}

static void json(void **state)
{
	static const double d[] = { 0.01, 0.02, 0.03 };
	struct rig *r = rig_new();
	struct buf out = { 0 };
	struct json_writer w = json_writer(&out);
	struct json_value *v;
	const struct json_value *metric, *one;
	struct err e = { 0 };

	(void)state;
	add_pairs(r, d, 3);
	add(r, 0, "alone", NULL, 1);
	compare(r);
	json_begin_object(&w);
	matched_put(&w, &r->out, &r->out.pair[0], &r->a);
	json_end_object(&w);
	assert_int_equal(json_parse_strict(&r->a, buf_str(&out), &v, &e), 0);
	assert_int_equal(json_get(v, "refused")->kind, JSON_NULL);
	assert_int_equal(json_get(v, "only_baseline")->count, 1);
	metric = &json_get(v, "metrics")->item[0];
	assert_true(str_is(json_get(metric, "verdict")->text, "not_enough_data"));
	near(json_get(metric, "interval")->item[1].real, exp(0.02 + T975 * 0.01 / sqrt(3)) - 1, 1e-9);
	assert_int_equal(json_get(metric, "configurations")->count, 3);
	one = &json_get(metric, "configurations")->item[0];
	assert_int_equal(json_get(one, "interval")->kind, JSON_NULL);
	near(json_get(one, "effect")->real, exp(0.01) - 1, 1e-12);
	assert_int_equal(json_get(v, "notes")->count, 2);
	buf_release(&out);
	rig_free(r);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_clusters), cmocka_unit_test(by_sessions),
		cmocka_unit_test(by_sessions_pooled), cmocka_unit_test(shared_sessions),
		cmocka_unit_test(unbalanced_sessions), cmocka_unit_test(clusters),
		cmocka_unit_test(linked_by_one_side), cmocka_unit_test(verdicts),
		cmocka_unit_test(least_changes), cmocka_unit_test(outliers),
		cmocka_unit_test(one_repeat), cmocka_unit_test(needed_would_do),
		cmocka_unit_test(needed_to_settle), cmocka_unit_test(adjusted),
		cmocka_unit_test(three_sides), cmocka_unit_test(mixed),
		cmocka_unit_test(mixed_by_load), cmocka_unit_test(unmatched),
		cmocka_unit_test(invalid_and_missing), cmocka_unit_test(zero_and_negative),
		cmocka_unit_test(no_scatter), cmocka_unit_test(refusals), cmocka_unit_test(guards), cmocka_unit_test(goodput),
		cmocka_unit_test(guards_of_some), cmocka_unit_test(words), cmocka_unit_test(json),
	};

	return cmocka_run_group_tests_name("decide_compare", tests, NULL, NULL);
}
