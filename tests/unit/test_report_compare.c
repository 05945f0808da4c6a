/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_report_compare.c - verdicts on made-up pairs, points and parameters, sessions, gates,
 * guards, scaling, tables of texts.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/file.h"
#include "report/compare.h"
#include "report/grid.h"
#include "scratch.h"

static const struct compare_opts usual = { .alpha = 0.05, .level = 0.95, .min_effect = -1 };

/* ---- how often verdicts are right ---- */

#define TRIALS 600

static double uniform(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return ((double)(*state >> 11) + 0.5) * 0x1p-53;
}

static double normal(uint64_t *state)
{
	double u = uniform(state);

	return sqrt(-2 * log(u)) * cos(2 * M_PI * uniform(state));
}

/* 2 % within a server session, 1.5 % between sessions, a session for each run. */
static void draw(uint64_t *state, double base, size_t n, double *out)
{
	for (size_t i = 0; i < n; i++)
		out[i] = base * exp(0.015 * normal(state) + 0.02 * normal(state));
}

static unsigned count(enum compare_verdict v, size_t n, double change)
{
	static const struct compare_metric metric = { "output_throughput", "tokens/s",
						      SCHEMA_HIGHER, 0.03 };
	uint64_t state = 1;
	unsigned found = 0;

	for (int i = 0; i < TRIALS; i++) {
		double a[10], b[10];
		struct compare_cell cell;

		draw(&state, 1000, n, a);
		draw(&state, 1000 * (1 + change), n, b);
		compare_values(&usual, &metric, a, n, b, n, &cell);
		found += cell.verdict == v;
	}
	return found;
}

/*
 * Bounds that a rate of 5 %, or of 70 %, passes with a chance below one in 10,000: four standard
 * deviations of the binomial distribution.
 */
static void rates(void **state)
{
	double slack = 4 * sqrt(TRIALS * 0.05 * 0.95), slack70 = 4 * sqrt(TRIALS * 0.7 * 0.3);

	(void)state;
	assert_true(count(COMPARE_REGRESSION, 5, 0) + count(COMPARE_IMPROVEMENT, 5, 0) <
		    TRIALS * 0.05 + slack);
	assert_true(count(COMPARE_IMPROVEMENT, 5, 0.05) > TRIALS * 0.7 - slack70);
	assert_true(count(COMPARE_REGRESSION, 5, -0.05) > TRIALS * 0.7 - slack70);
	assert_int_equal(count(COMPARE_NOT_ENOUGH, 3, 0.05), TRIALS);
	assert_int_equal(count(COMPARE_NOT_ENOUGH, 3, 0), TRIALS);
	assert_int_equal(count(COMPARE_NOT_ENOUGH, 4, 0.05), 0);
}

static void verdicts(void **state)
{
	double low[] = { 100, 101, 99, 100, 100.5 }, high[] = { 110, 111, 109, 110, 110.5 };
	double close[] = { 102, 103, 101, 102, 102.5 }, zero[] = { 0, 0, 0, 0, 0 };
	struct compare_metric m = { "x", "", SCHEMA_LOWER, 0.03 };
	struct compare_cell cell;

	(void)state;
	compare_values(&usual, &m, low, 5, high, 5, &cell);
	assert_int_equal(cell.verdict, COMPARE_REGRESSION);
	assert_true(fabs(cell.delta - 0.1) < 1e-12);
	assert_true(cell.interval.low > 0.08 && cell.interval.high < 0.12);
	m.better = SCHEMA_HIGHER;
	compare_values(&usual, &m, low, 5, high, 5, &cell);
	assert_int_equal(cell.verdict, COMPARE_IMPROVEMENT);
	m.better = SCHEMA_NONE;
	compare_values(&usual, &m, low, 5, high, 5, &cell);
	assert_int_equal(cell.verdict, COMPARE_CHANGED);
	/* Certain, but smaller than what is worth naming. */
	m.better = SCHEMA_LOWER;
	compare_values(&usual, &m, low, 5, close, 5, &cell);
	assert_true(cell.p < 0.05);
	assert_int_equal(cell.verdict, COMPARE_NO_EVIDENCE);
	/* No share of 0, but a change all the same. */
	compare_values(&usual, &m, zero, 5, low, 5, &cell);
	assert_true(isnan(cell.delta));
	assert_int_equal(cell.verdict, COMPARE_REGRESSION);
	compare_values(&usual, &m, zero, 5, zero, 5, &cell);
	assert_int_equal(cell.verdict, COMPARE_NO_EVIDENCE);
	compare_values(&usual, &m, low, 0, low, 5, &cell);
	assert_int_equal(cell.verdict, COMPARE_MISSING);
}

/* ---- files ---- */

struct made { struct arena a; };

static void put(struct made *m, const char *path, const char *text)
{
	char *whole = arena_printf(&m->a, "%s/%s", dir, path);
	char *slash = strrchr(whole, '/');
	struct err e = { 0 };

	*slash = '\0';
	assert_int_equal(file_mkdirs(whole, &e), 0);
	*slash = '/';
	assert_int_equal(file_write_atomic(whole, str_of(text), &e), 0);
}

/* A result with a throughput and the members in more ("" or ", ..."). */
static const char *result(struct made *m, double throughput, const char *more)
{
	return arena_printf(&m->a, "{\"model_id\": \"m\", \"request_rate\": \"inf\", \"completed\": 100, "
			    "\"failed\": 0, \"total_output_tokens\": 1000, "
			    "\"request_throughput\": %.6f, \"output_throughput\": %.6f%s}",
			    throughput / 10, throughput, more);
}

static void put_runs(struct made *m, const char *folder, const double *v, size_t n,
		     const char *more)
{
	for (size_t i = 0; i < n; i++)
		put(m, arena_printf(&m->a, "%s/%zu.json", folder, i), result(m, v[i], more));
}

static int build(struct made *m, struct comparison *c, const struct compare_opts *o, const char *x,
		 const char *y, struct err *e)
{
	const char *path[] = { arena_printf(&m->a, "%s/%s", dir, x),
			       arena_printf(&m->a, "%s/%s", dir, y) };

	return compare_build(c, o, path, 2, &m->a, e);
}

static const double five[] = { 1000, 1010, 990, 1005, 995 };
static const double less[] = { 900, 909, 891, 904, 896 };

static size_t metric_at(const struct comparison *c, const char *key)
{
	for (size_t i = 0; i < c->n_metrics; i++)
		if (strcmp(c->metric[i].key, key) == 0)
			return i;
	fail_msg("no metric %s", key);
	return 0;
}

static void points(void **state)
{
	struct made m = { 0 };
	struct comparison c;
	struct err e = { 0 };

	(void)state;
	for (int level = 16; level >= 4; level /= 2) {
		const char *more = arena_printf(&m.a, ", \"max_concurrency\": %d", level);
		const char *b = arena_printf(&m.a, "%s, \"max-num-seqs\": 64, \"seed\": 1", more);

		for (size_t i = 0; i < 5; i++) {
			put(&m, arena_printf(&m.a, "pa/l%d_%zu.json", level, i), result(&m, five[i], more));
			put(&m, arena_printf(&m.a, "pb/l%d_%zu.json", level, i), result(&m, less[i], b));
		}
	}
	assert_int_equal(build(&m, &c, &usual, "pa", "pb", &e), 0);
	assert_int_equal(c.n_points, 3);
	assert_string_equal(c.point[0].name, "max_concurrency=4");
	assert_string_equal(c.point[2].name, "max_concurrency=16");
	for (size_t p = 0; p < c.n_points; p++) {
		const struct compare_cell *cell =
			compare_cell(&c, p, metric_at(&c, "output_throughput"), 1);

		assert_int_equal(cell->n_runs, 5);
		assert_int_equal(cell->verdict, COMPARE_REGRESSION);
	}
	for (size_t p = 0; p < c.n_params; p++)
		if (strcmp(c.param[p].key, "max_num_seqs") == 0)
			assert_int_equal(c.param[p].kind, COMPARE_BETWEEN);
		else if (strcmp(c.param[p].key, "model_id") == 0)
			assert_int_equal(c.param[p].kind, COMPARE_SAME);
	compare_release(&c);
	arena_release(&m.a);
}

/* Every summary.json is one session unless servers.json tells more. */
static void sessions(void **state)
{
	struct made m = { 0 };
	struct compare_opts each = usual;
	struct comparison c;
	struct err e = { 0 };
	struct buf a = { 0 }, b = { 0 }, starts = { 0 };

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		const char *more = arena_printf(&m.a, ", \"run_number\": %zu, \"profllm\": "
						"{\"start_ns\": %lld}", i,
						(long long)(1767225601 + 2 * i) * 1000000000);

		buf_printf(&a, "%s%s", i ? ", " : "[", result(&m, five[i], more));
		buf_printf(&b, "%s%s", i ? ", " : "[", result(&m, less[i], more));
		buf_printf(&starts, "%s{\"started\": \"2026-01-01T00:00:%02zuZ\"}", i ? ", " : "[", 2 * i);
	}
	buf_add_text(&a, "]");
	buf_add_text(&b, "]");
	buf_add_text(&starts, "]");
	put(&m, "sa/SERVE--x=1/summary.json", a.data);
	put(&m, "sb/SERVE--x=1/summary.json", b.data);
	assert_int_equal(build(&m, &c, &usual, "sa", "sb", &e), 0);
	assert_int_equal(compare_cell(&c, 0, 0, 1)->n_runs, 5);
	assert_int_equal(compare_cell(&c, 0, 0, 1)->n, 1);
	assert_int_equal(compare_cell(&c, 0, 0, 1)->verdict, COMPARE_NOT_ENOUGH);
	assert_non_null(strstr(c.notes.data, "--restart run"));
	compare_release(&c);

	each.is_each_run = true;
	assert_int_equal(build(&m, &c, &each, "sa", "sb", &e), 0);
	assert_int_equal(compare_cell(&c, 0, 0, 1)->n, 5);
	assert_int_equal(compare_cell(&c, 0, 0, 1)->verdict, COMPARE_REGRESSION);
	compare_release(&c);

	put(&m, "sa/servers.json", starts.data);
	put(&m, "sb/servers.json", starts.data);
	assert_int_equal(build(&m, &c, &usual, "sa", "sb", &e), 0);
	assert_int_equal(compare_cell(&c, 0, 0, 1)->n, 5);
	assert_int_equal(compare_cell(&c, 0, 0, 1)->verdict, COMPARE_REGRESSION);
	assert_null(c.notes.data ? strstr(c.notes.data, "--restart run") : NULL);
	compare_release(&c);
	buf_release(&a);
	buf_release(&b);
	buf_release(&starts);
	arena_release(&m.a);
}

static void guards(void **state)
{
	struct made m = { 0 };
	struct comparison c;
	struct err e = { 0 };

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		const char *text = result(&m, less[i], ""), *failed = strstr(text, "\"failed\": 0");

		put(&m, arena_printf(&m.a, "ga/%zu.json", i), text);
		put(&m, arena_printf(&m.a, "gb/%zu.json", i),
		    arena_printf(&m.a, "%.*s\"failed\": 9%s", (int)(failed - text), text, failed + 11) );
	}
	assert_int_equal(build(&m, &c, &usual, "ga", "gb", &e), 0);
	assert_int_equal(compare_cell(&c, 0, 0, 1)->verdict, COMPARE_NO_EVIDENCE);
	assert_non_null(strstr(c.notes.data, "failed requests rose from 0.0 % to 8.3 %"));
	compare_release(&c);
	for (size_t i = 0; i < 5; i++) {
		const char *text = result(&m, five[i], ", \"profllm\": {\"verdict\": \"INVALID\"}");
		const char *failed = strstr(text, "\"failed\": 0");

		put(&m, arena_printf(&m.a, "gb/%zu.json", i),
		    arena_printf(&m.a, "%.*s\"failed\": 9%s", (int)(failed - text), text, failed + 11));
	}
	assert_int_equal(build(&m, &c, &usual, "ga", "gb", &e), 0);
	assert_int_equal(compare_cell(&c, 0, 0, 1)->verdict, COMPARE_VOID);
	assert_non_null(strstr(c.notes.data, "gb: 5 of 5 runs judged themselves INVALID: 0.json, 1.json"));
	compare_release(&c);
	arena_release(&m.a);
}

/* ---- gates ---- */

static void gates(void **state)
{
	static const struct {
		const char *text;
		bool is_any;
		enum gate_outcome want;
	} rows[] = {
		{ "output_throughput<-5%", false, GATE_FAILED },
		{ "output_throughput<-15%", false, GATE_PASSED },
		{ "output_throughput>+5%", false, GATE_PASSED },
		{ "output_throughput<950", false, GATE_FAILED },
		{ "output_throughput<901", false, GATE_PASSED }, /* within the interval */
		{ "output_throughput<901", true, GATE_FAILED },
		{ "output_throughput>=950", false, GATE_PASSED },
	};
	struct made m = { 0 };
	struct comparison c;
	struct err e = { 0 };
	struct gate_log log = { .a = &m.a };

	(void)state;
	put_runs(&m, "fa", five, 5, "");
	put_runs(&m, "fb", less, 5, "");
	put_runs(&m, "fc", less, 3, "");
	assert_int_equal(build(&m, &c, &usual, "fa", "fb", &e), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct gate g;

		log.n = 0;
		assert_int_equal(gate_parse(&g, str_of(rows[i].text), &m.a, &e), 0);
		compare_gate_check(&c, &g, rows[i].is_any, &log);
		assert_int_equal(log.n, 1);
		assert_int_equal(log.item[0].outcome, rows[i].want);
	}
	compare_release(&c);
	assert_int_equal(build(&m, &c, &usual, "fa", "fc", &e), 0);
	for (size_t i = 0; i < 2; i++) {
		struct gate g;

		log.n = 0;
		assert_int_equal(gate_parse(&g, STR("output_throughput<-5%"), &m.a, &e), 0);
		compare_gate_check(&c, &g, i == 1, &log);
		assert_int_equal(log.item[0].outcome, i ? GATE_FAILED : GATE_UNJUDGED);
		assert_non_null(strstr(log.item[0].text, i ? "fell by 10 % (limit 5 %)"
							   : "not enough data"));
	}
	compare_release(&c);
	arena_release(&m.a);
}

/* ---- scaling, two results, mistakes ---- */

static void scaling(void **state)
{
	struct made m = { 0 };
	struct comparison c;
	struct err e = { 0 };
	struct buf out = { 0 };
	const double fast[] = { 3200 };

	(void)state;
	put(&m, "t/one.json", result(&m, 1000, ", \"tensor_parallel_size\": 1"));
	put(&m, "t/eight.json", result(&m, fast[0], ", \"tp_size\": 4, \"pipeline_parallel_size\": 2"));
	assert_int_equal(build(&m, &c, &usual, "t/one.json", "t/eight.json", &e), 0);
	assert_int_equal(compare_scaling(&c, "output_throughput", false, &out), 2);
	assert_non_null(strstr(out.data, "3.200"));
	assert_non_null(strstr(out.data, "40.0%"));
	buf_reset(&out);
	compare_release(&c);
	assert_int_equal(compare_two(arena_printf(&m.a, "%s/t/one.json", dir),
				     arena_printf(&m.a, "%s/t/eight.json", dir), &out, &e), 0);
	assert_non_null(strstr(out.data, "+220.0%"));
	buf_release(&out);
	arena_release(&m.a);
}

static void mistakes(void **state)
{
	struct made m = { 0 };
	struct compare_opts named = usual;
	struct comparison c;
	struct err e = { 0 };

	(void)state;
	put(&m, "m/good.json", result(&m, 1000, ""));
	put(&m, "m/other.json", "{\"model_id\": \"n\", \"request_throughput\": 1}");
	put(&m, "m/none.json", "{\"a\": 1}");
	put(&m, "m/broken.json", "{\"a\": ");
	put(&m, "m/empty/x.txt", "");
	assert_int_equal(build(&m, &c, &usual, "m/good.json", "m/absent.json", &e), -1);
	assert_non_null(strstr(e.text, "absent.json does not exist"));
	compare_release(&c);
	assert_int_equal(build(&m, &c, &usual, "m/good.json", "m/none.json", &e), -1);
	assert_non_null(strstr(e.text, "holds no result"));
	compare_release(&c);
	assert_int_equal(build(&m, &c, &usual, "m/good.json", "m/empty", &e), -1);
	assert_non_null(strstr(e.text, "holds no result"));
	compare_release(&c);
	assert_int_equal(build(&m, &c, &usual, "m/good.json", "m/broken.json", &e), -1);
	assert_int_equal(e.code, ERR_PARSE);
	compare_release(&c);
	assert_int_equal(build(&m, &c, &usual, "m/good.json", "m/other.json", &e), -1);
	assert_non_null(strstr(e.text, "--across-models"));
	compare_release(&c);
	named.metrics = "nonsense";
	assert_int_equal(build(&m, &c, &named, "m/good.json", "m/good.json", &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
	compare_release(&c);
	arena_release(&m.a);
}

/* ---- tables of texts ---- */

static void grids(void **state)
{
	static const char *const cell[] = { "name", "n", "x|y", "é", "12", "1.5", "bb", "", "10.25" };
	struct arena a = { 0 };
	struct buf out = { 0 };
	struct grid g;

	(void)state;
	grid_begin(&g, &a);
	for (size_t i = 0; i < sizeof(cell) / sizeof(*cell); i++) {
		grid_add(&g, cell[i]);
		if (i == 2)
			grid_end_heads(&g);
	}
	assert_int_equal(grid_rows(&g), 2);
	grid_text(&g, false, &out);
	assert_string_equal(out.data, "name   n    x|y\né     12    1.5\nbb        10.25\n");
	buf_reset(&out);
	grid_markdown(&g, &out);
	assert_string_equal(out.data, "| name   |   n |   x\\|y |\n"
				      "|:-------|----:|-------:|\n"
				      "| é      |  12 |   1.5  |\n"
				      "| bb     |     |  10.25 |\n");
	buf_reset(&out);
	grid_csv(&g, &out);
	assert_string_equal(out.data, "name,n,x|y\né,12,1.5\nbb,,10.25\n");
	buf_reset(&out);
	html_escape(&out, "<a href=\"x\">&</a>");
	assert_string_equal(out.data, "&lt;a href=&quot;x&quot;&gt;&amp;&lt;/a&gt;");
	buf_release(&out);
	arena_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rates), cmocka_unit_test(verdicts),
		cmocka_unit_test(points),
		cmocka_unit_test(sessions),
		cmocka_unit_test(guards),
		cmocka_unit_test(gates),
		cmocka_unit_test(scaling),
		cmocka_unit_test(mistakes),
		cmocka_unit_test(grids),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
