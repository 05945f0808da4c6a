/* SPDX-License-Identifier: Apache-2.0 */
/* test_sweep_sla.c - limits read, shown and judged; windows at the boundary. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "bench/sweep/search.h"
#include "bench/sweep/sla.h"
#include "bench/sweep/slo.h"
#include "search_systems.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* text NULL: refused with an error that contains want. */
static const struct read_row { const char *file, *text, *want; enum err_code code; } read_rows[] = {
	{ "[{\"p99_e2el_ms\": \"<=500\"}]", "p99_e2el_ms<=500.00", NULL, ERR_NONE },
	{ "[{\"p99_ttft_ms\": \"<200\", \"request_throughput\": \">=1.5\"}]",
	  "p99_ttft_ms<200.00, request_throughput>=1.50", NULL, ERR_NONE },
	{ "[{\"profllm.connect_ms.p99\": \">0\"}]", "profllm.connect_ms.p99>0.00", NULL, ERR_NONE },
	{ "[{\"p95_itl_ms\": \"<= 1e2\"}]", "p95_itl_ms<=100.00", NULL, ERR_NONE },
	{ "[{\"p99_ttft_ms\": \"==5\"}]", NULL, "--sla-params: the limit of 'p99_ttft_ms' is ==5; "
	  "expected a text with <=, >=, < or > before the number: \"<=200\"", ERR_USAGE },
	{ "[{\"p99_ttft_ms\": 150}]", NULL, "'p99_ttft_ms' is 150; expected a text with <=, >=, < or > "
	  "before the number: \"<=150\"", ERR_USAGE },
	{ "[{\"p99_ttft_ms\": \"<=fast\"}]", NULL, "'fast', a number is expected", ERR_USAGE },
	{ "[{\"p99_ttft_ms\": \"<=nan\"}]", NULL, "'nan', a number is expected", ERR_USAGE },
	{ "[{\"p99_tttf_ms\": \"<=5\"}]", NULL, "no key 'p99_tttf_ms'", ERR_USAGE },
	{ "[{\"request_throughpt\": \">5\"}]", NULL, "did you mean 'request_throughput'?", ERR_USAGE },
	{ "[{\"model_id\": \"<=5\"}]", NULL, "'model_id' is not a number", ERR_USAGE },
	{ "{\"p99_ttft_ms\": \"<=5\"}", NULL, "should be a list of dictionaries", ERR_USAGE },
	{ "[]", NULL, "the list is empty", ERR_USAGE },
	{ "[[1]]", NULL, "element 0 must be an object", ERR_USAGE },
	{ "[{\"p99_ttft_ms\": \"<=5\"}, {}]", NULL, "element 1 must be an object", ERR_USAGE },
	{ "[{", NULL, "", ERR_PARSE },
};

static void test_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(read_rows); i++) {
		const struct read_row *row = &read_rows[i];
		struct arena a = { 0 };
		struct buf text = { 0 };
		struct err e = { 0 };
		struct slas slas;
		int rc = sla_parse(str_of(row->file), true, &a, &slas, &e);

		if (row->text && rc == 0)
			sla_text(&slas.item[0], ", ", &text);
		if (row->text ? rc < 0 || strcmp(text.data, row->text) != 0 :
				rc == 0 || e.code != row->code || !strstr(e.text, row->want))
			fail_msg("%s: %s%s", row->file, text.data ? text.data : "", e.text);
		buf_release(&text);
		arena_release(&a);
	}
}

/* What a request says of limits on its latency; text: of each slow, open or within. */
static void test_requests(void **state)
{
	static const struct { struct slo_request r; const char *want; double tpot_s; } rows[] = {
		{ { .end_s = 2, .ttft_s = .1, .e2el_s = .3, .tokens = 11 }, "---", .02 },
		{ { .end_s = 2, .ttft_s = .1, .e2el_s = .3, .tokens = 2 }, "-S-", .2 },
		{ { .end_s = 2, .ttft_s = .3, .e2el_s = 1.2, .tokens = 11 }, "SSS", .09 },
		{ { .end_s = 2, .ttft_s = .1, .e2el_s = .15, .tokens = 1 }, "-o-", NAN },
		{ { .end_s = INFINITY, .ttft_s = .1, .age_s = .9 }, "-oo", NAN },
		{ { .end_s = INFINITY, .ttft_s = NAN, .age_s = .1 }, "ooo", NAN },
		{ { .end_s = INFINITY, .ttft_s = NAN, .age_s = .3 }, "Soo", NAN },
		{ { .end_s = INFINITY, .ttft_s = .1, .age_s = 1.1 }, "-oS", NAN },
		{ { .end_s = 2, .ttft_s = .1, .e2el_s = .3, .tokens = 11, .is_failed = true }, "---", NAN },
	};
	struct arena a = { 0 };
	struct err e = { 0 };
	struct slo slo;

	(void)state;
	assert_int_equal(slo_parse("--slo", "p99_ttft_ms<200,p90_tpot_ms<=50,p50_e2el_ms<1000", &a, &slo,
				   &e), 0);
	assert_int_equal(slo.n, 3);
	assert_false(slo_has_mean(&slo));
	for (size_t i = 0; i < COUNT(rows); i++) {
		double value[CAPACITY_LIMITS_MAX + 1];
		struct level_request out;
		char got[4] = "";

		slo_mark(&slo, &rows[i].r, value, &out);
		for (size_t j = 0; j < 3; j++)
			got[j] = out.slow >> j & 1 ? 'S' : out.open >> j & 1 ? 'o' : '-';
		assert_int_equal(out.slow & out.open, 0);
		if (strcmp(got, rows[i].want) != 0)
			fail_msg("request %zu: %s", i, got);
		if (isnan(rows[i].tpot_s) != isnan(value[1]) ||
		    fabs(value[1] - rows[i].tpot_s) > 1e-12)
			fail_msg("request %zu: %g", i, value[1]);
	}
	arena_release(&a);
}

static void test_unchecked(void **state)
{
	struct arena a = { 0 };
	struct slas slas;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(sla_parse(STR("[{\"of_another_tool\": \"<=5\"}, {\"b\": \">1\"}]"), false, &a,
				   &slas, &e), 0);
	assert_int_equal(slas.n, 2);
	arena_release(&a);
}

static const struct judge_row {
	struct sla_limit limit;
	double actual, margin, gap;
	bool holds;
	const char *text;
} judge_rows[] = {
	{ { "k", SLA_LE, 500, false }, 123.451, -376.549, -1.39876378, true, "k = 123.45<=500.00 | PASSED" },
	{ { "k", SLA_LE, 500, false }, 500, 0, 0, true, "k = 500.00<=500.00 | PASSED" },
	{ { "k", SLA_LE, 500, false }, 1000, 500, 0.69314718, false, "k = 1000.00<=500.00 | FAILED" },
	{ { "k", SLA_LT, 500, false }, 500, 1e-8, 0, false, "k = 500.00<500.00 | FAILED" },
	{ { "k", SLA_LT, 500, false }, 250, -249.99999999, -0.69314718, true, "k = 250.00<500.00 | PASSED" },
	{ { "k", SLA_GE, 10, false }, 20, -10, -0.69314718, true, "k = 20.00>=10.00 | PASSED" },
	{ { "k", SLA_GE, 10, false }, 5, 5, 0.69314718, false, "k = 5.00>=10.00 | FAILED" },
	{ { "k", SLA_GT, 10, false }, 10, 1e-8, 0, false, "k = 10.00>10.00 | FAILED" },
	{ { "k", SLA_LE, 0, false }, 0, 0, 0, true, "k = 0.00<=0.00 | PASSED" },
	{ { "k", SLA_LE, 0, false }, 3, 3, 3, false, "k = 3.00<=0.00 | FAILED" },
	{ { "k", SLA_GE, -5, false }, 5, -10, -2, true, "k = 5.00>=-5.00 | PASSED" },
	{ { "k", SLA_LE, 1e-9, false }, 1e9, 1e9, 12, false, "k = 1000000000.00<=0.00 | FAILED" },
};

static void test_judge(void **state)
{
	const struct sla_limit never = { "k", SLA_GE, INFINITY, false };

	(void)state;
	assert_float_equal(sla_gap(&never, 0), 12, 0);
	assert_float_equal(sla_gap(&never, 5), 12, 0);
	assert_float_equal(sla_gap(&never, INFINITY), 0, 0);
	for (size_t i = 0; i < COUNT(judge_rows); i++) {
		const struct judge_row *row = &judge_rows[i];
		struct buf text = { 0 };

		sla_verdict_text(&row->limit, row->actual, &text);
		assert_string_equal(text.data, row->text);
		if (fabs(sla_margin(&row->limit, row->actual) - row->margin) > 1e-6 ||
		    fabs(sla_gap(&row->limit, row->actual) - row->gap) > 1e-6 ||
		    sla_holds(&row->limit, row->actual) != row->holds)
			fail_msg("row %zu: margin %.9g, gap %.9g", i,
				 sla_margin(&row->limit, row->actual),
				 sla_gap(&row->limit, row->actual));
		buf_release(&text);
	}
	assert_true(sla_gap(&judge_rows[0].limit, NAN) > 1);
	assert_false(sla_holds(&judge_rows[0].limit, NAN));
}

static void test_value(void **state)
{
	struct arena a = { 0 };
	struct json_value *record;
	struct err e = { 0 };
	double v;

	(void)state;
	assert_int_equal(json_parse(&a, STR("{\"p99_ttft_ms\": 3, \"profllm\": {\"x\": {\"p99\": 1.5}},"
					    " \"model_id\": \"m\"}"), &record, &e), 0);
	assert_int_equal(sla_value(&(struct sla_limit){ .key = "p99_ttft_ms" }, record, &v, &e), 0);
	assert_true(v == 3);
	assert_int_equal(sla_value(&(struct sla_limit){ .key = "profllm.x.p99" }, record, &v, &e), 0);
	assert_true(v == 1.5);
	assert_int_equal(sla_value(&(struct sla_limit){ .key = "model_id" }, record, &v, &e), -1);
	assert_int_equal(sla_value(&(struct sla_limit){ .key = "p95_ttft_ms" }, record, &v, &e), -1);
	assert_int_equal(e.code, ERR_RUN);
	assert_non_null(strstr(e.text, "'p95_ttft_ms'"));
	arena_release(&a);
}

static struct json_value *parsed(const char *text, struct arena *a)
{
	struct json_value *v = NULL;
	struct err e = { 0 };

	assert_int_equal(json_parse(a, str_of(text), &v, &e), 0);
	return v;
}

static const struct share_row { const char *record; double share; } share_rows[] = {
	{ "{\"completed\": 4, \"failed\": 36}", 0.9 },
	{ "{\"completed\": 40, \"failed\": 0}", 0 },
	{ "{\"completed\": 30, \"num_prompts\": 40}", 0.25 },
	{ "{\"completed\": 30}", 0 },
	{ "{\"completed\": 0, \"failed\": 0}", 0 },
};

static void test_failures(void **state)
{
	struct arena a = { 0 };
	const struct sla_limit one = { "p99_ttft_ms", SLA_LE, 200, false };
	const struct sla all = sla_with_failures(&(struct sla){ &one, 1 }, 1, &a);
	const struct sla_limit *l = &all.limit[1];
	struct buf text = { 0 };
	struct err e;
	double v;

	(void)state;
	assert_int_equal(all.n, 2);
	for (size_t i = 0; i < COUNT(share_rows); i++) {
		assert_int_equal(sla_value(l, parsed(share_rows[i].record, &a), &v, &e), 0);
		assert_float_equal(v, share_rows[i].share, 1e-12);
	}
	sla_text(&all, ", ", &text);
	assert_string_equal(text.data, "p99_ttft_ms<=200.00, failed<=1.00 %");
	buf_reset(&text);
	sla_verdict_text(l, 0.9, &text);
	assert_string_equal(text.data, "failed = 90.00 %<=1.00 % | FAILED");
	/* None failed: as far as can be, so that another limit says how far the level is. */
	assert_float_equal(sla_gap(l, 0), -12, 0);
	assert_float_equal(sla_gap(l, 0.01), 0, 1e-12);
	assert_float_equal(sla_gap(l, 0.9), 4.49980967, 1e-6);
	buf_release(&text);
	arena_release(&a);
}

#define REASON(level, code) \
	"\"profllm\": {\"reasons\": [{\"level\": \"" level "\", \"code\": \"" code "\", " \
	"\"text\": \"Why.\"}]}"
#define SPOILS(code, metrics) "\"profllm\": {\"reasons\": [{\"level\": \"INVALID\", \"code\": \"" code \
	"\", \"spoils\": [" metrics "], \"text\": \"Why.\"}]}"

static const struct measured_row {
	const char *record, *key;
	double percent_max;
	bool is_measured;
} measured_rows[] = {
	{ "{\"completed\": 9}", "p99_ttft_ms", 1, true }, /* upstream's */
	{ "{" REASON("DEGRADED", "client_cpu") "}", "p99_ttft_ms", 1, true },
	{ "{" REASON("INVALID", "client_cpu") "}", "p99_ttft_ms", 1, false },
	{ "{" SPOILS("shared_reads", "\"itl\"") "}", "p99_ttft_ms", 1, true },
	{ "{" SPOILS("shared_reads", "\"itl\"") "}", "p99_itl_ms", 1, false },
	{ "{" SPOILS("usage_ignored", "\"tpot\", \"output_throughput\"") "}", "output_throughput", 1,
	  false },
	/* Failed beyond the limit: that is known. Not beyond it: nothing else is. */
	{ "{\"completed\": 4, \"failed\": 36, " REASON("INVALID", "failures") "}", "p99_ttft_ms", 1,
	  true },
	{ "{\"completed\": 4, \"failed\": 36, " REASON("INVALID", "failures") "}", "p99_ttft_ms", 95,
	  false },
	{ "{\"completed\": 0, \"failed\": 0, " REASON("INVALID", "no_success") "}", "p99_ttft_ms", 1,
	  false },
};

static void test_measured(void **state)
{
	struct arena a = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(measured_rows); i++) {
		const struct measured_row *row = &measured_rows[i];
		const struct sla_limit one = { row->key, SLA_LE, 200, false };
		const struct sla all = sla_with_failures(&(struct sla){ &one, 1 },
							 row->percent_max, &a);
		struct str why = { 0 };

		if (sla_is_measured(parsed(row->record, &a), &all, &why) != row->is_measured)
			fail_msg("row %zu: %s", i, row->record);
		assert_int_equal(why.n, row->is_measured ? 0 : 4);
	}
	arena_release(&a);
}

/* The mean level of the later windows is near the capacity, also when that has moved. */
static void test_hover(void **state)
{
	const struct sla_limit limit = { "p99_ttft_ms", SLA_LE, 100, false };

	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		struct system s = { .how = SYSTEM_SQUARE, .base = 50, .scale = 40 + 20 * i,
				    .noise = 0.02, .seed = i };
		struct hover h;
		double sum = 0;

		hover_init(&h, s.scale, 65536);
		for (unsigned k = 0; k < 120; k++) {
			double capacity = k < 60 ? s.scale : 0.7 * s.scale;
			struct system now = s;
			double v;

			now.scale = capacity;
			v = system_run(&now, hover_level(&h), k);
			hover_tell(&h, sla_gap(&limit, v), sla_holds(&limit, v));
			sum += (k % 60 >= 30 ? h.capacity / capacity : 0) / 60;
		}
		if (fabs(sum - 1) > 0.05)
			fail_msg("system %u: %.3f of its capacity", i, sum);
	}
}

static void test_hover_moves(void **state)
{
	struct hover h;

	(void)state;
	hover_init(&h, 10, 12);
	hover_tell(&h, -0.5, true);
	assert_true(h.capacity > 10);
	hover_tell(&h, -5, true);
	hover_tell(&h, -5, true);
	assert_int_equal(hover_level(&h), 12);
	for (int i = 0; i < 100; i++)
		hover_tell(&h, 5, false);
	assert_int_equal(hover_level(&h), 1);
	hover_init(&h, 10, 100);
	hover_tell(&h, 0, false); /* a strict limit met exactly */
	assert_true(h.capacity < 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_requests), cmocka_unit_test(test_unchecked),
		cmocka_unit_test(test_judge),
		cmocka_unit_test(test_value),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_measured),
		cmocka_unit_test(test_hover),
		cmocka_unit_test(test_hover_moves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
