/* SPDX-License-Identifier: Apache-2.0 */
/* test_decide_compare.c - estimates, intervals and verdicts against values worked out by hand. */
#include "matched_rig.h"

#include "core/stats/significance.h"

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
	near(log(row->is.interval.high) - 0.045, student_quantile(0.975, 3) * sqrt(s2 * 0.875),
	     1e-9);
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
	static const struct { const char *name; double d; } rows[] = {
		{ "p99_ttft_ms", 0.05 }, { "p99.9_itl_ms", 0.05 }, { "percentiles.99", 0.05 },
		{ "p95_ttft_ms", 0.03 }, { "power_w", 0.03 }, { "output_throughput", 0.03 },
	};
	struct rig *r = rig_new();

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		near(matched_metric_of(rows[i].name, NULL, 1).effect_min, rows[i].d, 0);
	assert_int_equal(eight(r, 0.03, 0.02)->verdict, MATCHED_BETTER);
	r->metric[0] = matched_metric_of("p99_ttft_ms", "ms", -1);
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

/* The fewest sessions a side that show 3 % with a power of 0.8, by trying one after another. */
static size_t fewest(double sd)
{
	for (size_t n = 2;; n++) {
		double df = 2.0 * (double)n - 2;

		if ((student_quantile(0.975, df) + student_quantile(0.8, df)) * sd *
		    sqrt(2 / (double)n) <= log1p(0.03))
			return n;
	}
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
			 fewest(MATCHED_SCATTER_USUAL));
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
	assert_int_equal(need, fewest(sqrt(8e-4)));
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
		cmocka_unit_test(mixed_by_load),
	};

	return cmocka_run_group_tests_name("decide_compare", tests, NULL, NULL);
}
