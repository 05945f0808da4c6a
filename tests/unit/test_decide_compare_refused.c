/* SPDX-License-Identifier: Apache-2.0 */
/* test_decide_compare_refused.c - what is left out of a comparison, refused, and how it is said. */
#include "matched_rig.h"

#include "core/json/read.h"

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
		{ { 0, 1000, NAN, NAN, NAN, NAN }, { 20, 980, NAN, NAN, NAN, NAN },
		  "failed requests: 0.00 % against 2.00 %" },
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
					r->run[k].work = r->run[k].side == from ? rows[i].a
										: rows[i].b;
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

/* What is shown next to the reason is of configurations that both sides have. */
static void shown_anyhow(void **state)
{
	struct rig *r = rig_new();
	const struct matched_row *row;

	(void)state;
	eight(r, 0.1, 0.01);
	for (size_t k = 0; k < r->spec.n_runs; k++)
		r->run[k].work = (struct matched_work){ r->run[k].side ? 20 : 0, 980, NAN, NAN,
							NAN, NAN };
	add(r, 0, "half", "a9", 5);
	add(r, 1, "half", "b9", NAN);
	row = compare(r);
	assert_int_equal(row->why, MATCHED_WHY_GUARD);
	assert_int_equal(row->is.configs, 8);
	near(log(row->is.ratio), 0.1, 1e-12);
	rig_free(r);
}

/* A gain while goodput falls is none, nor a loss while it rises; both one way is an answer. */
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

/* How far shares of failed requests may be apart depends on how few requests a figure rests on. */
static void failed_max(void **state)
{
	static const struct { const char *metric; double points; } rows[] = {
		{ "output_throughput", 1 }, { "median_ttft_ms", 1 }, { "p50_itl_ms", 1 },
		{ "p90_ttft_ms", 1 }, { "p95_e2el_ms", 0.5 }, { "p99_ttft_ms", 0.1 },
		{ "steady_state.p99_ttft_ms", 0.1 }, { "steady_state.median_ttft_ms", 1 },
		{ "trust.skew_ms.p99", 0.1 }, { "p99.9_itl_ms", 0.1 }, { "percentiles.95", 0.5 },
		{ "mean_ttft_ms", 0.1 }, { "std_itl_ms", 0.1 }, { "steady_state.mean_tpot_ms", 0.1 },
		{ "usd_per_m_output", 1 }, { "peak_concurrent_requests", 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		near(matched_metric_of(rows[i].metric, "", 1).failed_max, rows[i].points / 100, 1e-12);
}

/*
 * 5 of 1,000 requests more fail, in both directions: 10 % higher throughput is still an answer, P99
 * is not, and the text gives both shares. 20 more void both.
 */
static void few_failed(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	r->metric[1] = matched_metric_of("p99_ttft_ms", "ms", -1);
	r->spec.n_metrics = 2;
	for (unsigned from = 0; from < 2; from++) {
		double d[8] = { 0.1, 0.11, 0.1, 0.11, 0.1, 0.11, 0.1, 0.11 };
		const char *notes;

		r->spec.n_runs = 0;
		add_pairs(r, d, 8);
		for (size_t i = 0; i < r->spec.n_runs; i++) {
			r->value[i][1] = r->value[i][0];
			r->run[i].work.failed = r->run[i].side == from ? 6 : 1;
			r->run[i].work.completed = 1000 - r->run[i].work.failed;
		}
		assert_int_equal(compare(r)->verdict, MATCHED_BETTER);
		assert_int_equal(r->out.pair[0].row[0].apart, 0);
		assert_int_equal(r->out.pair[0].row[1].verdict, MATCHED_NOT_COMPARABLE);
		assert_non_null(strstr(r->out.pair[0].row[1].reason, "in 8 of 8 configurations"));
		assert_int_equal(r->out.pair[0].failed_differs, 8);
		notes = matched_notes(&r->out, &r->out.pair[0], &r->a);
		assert_non_null(strstr(notes, from ?
				       "0.10 % of the requests of old failed and 0.60 % of those of new"
				     : "0.60 % of the requests of old failed and 0.10 % of those of new"));
		assert_null(strstr(notes, "not comparable"));
		for (size_t i = 0; i < r->spec.n_runs; i++)
			r->run[i].work.failed = r->run[i].side == from ? 21 : 1;
		assert_int_equal(compare(r)->verdict, MATCHED_NOT_COMPARABLE);
		assert_non_null(strstr(matched_notes(&r->out, &r->out.pair[0], &r->a),
				       "8 of 8 configurations not comparable"));
		for (size_t i = 0; i < r->spec.n_runs; i++)
			r->run[i].work.failed = 1;
		assert_int_equal(compare(r)->verdict, MATCHED_BETTER);
		assert_null(strstr(matched_notes(&r->out, &r->out.pair[0], &r->a), "failed"));
	}
	rig_free(r);
}

/* A side all of whose requests failed has no values, but it is not short of data. */
static void all_failed(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	for (unsigned side = 0; side < 2; side++) {
		double d[4] = { 0 };

		r->spec.n_runs = 0;
		add_pairs(r, d, 4);
		for (size_t i = 0; i < r->spec.n_runs; i++)
			if (r->run[i].side == side) {
				r->value[i][0] = NAN;
				r->run[i].work = (struct matched_work){ .failed = 100 };
			}
		assert_int_equal(compare(r)->verdict, MATCHED_NOT_COMPARABLE);
		assert_string_equal(r->out.pair[0].row[0].reason, side ? "every request of new failed"
								       : "every request of old failed");
		for (size_t i = 0; i < r->spec.n_runs; i++)
			r->run[i].work.completed = 1;
		assert_int_equal(compare(r)->verdict, MATCHED_NOT_ENOUGH);
	}
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
			       "new: it is not recorded which of 8 runs shared a server"));
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
	assert_int_equal(json_get(v, "notes")->count, 1); /* of one run alone nothing is said */
	buf_release(&out);
	rig_free(r);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(unmatched), cmocka_unit_test(invalid_and_missing),
		cmocka_unit_test(zero_and_negative), cmocka_unit_test(no_scatter),
		cmocka_unit_test(refusals), cmocka_unit_test(guards),
		cmocka_unit_test(shown_anyhow),
		cmocka_unit_test(goodput), cmocka_unit_test(failed_max),
		cmocka_unit_test(few_failed), cmocka_unit_test(all_failed),
		cmocka_unit_test(guards_of_some),
		cmocka_unit_test(words), cmocka_unit_test(json),
	};

	return cmocka_run_group_tests_name("decide_compare_refused", tests, NULL, NULL);
}
