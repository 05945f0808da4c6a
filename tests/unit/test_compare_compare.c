/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_compare_compare.c - files as sides: what is concluded from them, which parameters define
 * sides and configurations, sessions, INVALID metrics, gates, scaling, tables of texts.
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

#include "core/base/file.h"
#include "out/compare/compare.h"
#include "out/report/grid.h"
#include "answers.h"
#include "scratch.h"

static const struct compare_opts usual = { .alpha = 0.05, .min_effect = -1 };
/* The loose files of these tests came from servers of their own. */
static const struct compare_opts each = { .alpha = 0.05, .min_effect = -1, .is_each_run = true };

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
static const char *result_of(struct made *m, double throughput, int failed, int tokens,
			     const char *more)
{
	return arena_printf(&m->a, "{\"model_id\": \"m\", \"request_rate\": \"inf\", "
			    "\"completed\": %d, \"failed\": %d, \"total_output_tokens\": %d, "
			    "\"request_throughput\": %.6f, \"output_throughput\": %.6f%s}",
			    100 - failed, failed, tokens * (100 - failed), throughput / 10,
			    throughput, more);
}

static const char *result(struct made *m, double throughput, const char *more)
{
	return result_of(m, throughput, 0, 10, more);
}

static void put_runs(struct made *m, const char *folder, const double *v, size_t n,
		     const char *more)
{
	for (size_t i = 0; i < n; i++)
		put(m, arena_printf(&m->a, "%s/%zu.json", folder, i), result(m, v[i], more));
}

/* What is shown of a comparison in each form. */
static void check_shown(const struct bench_comparison *c)
{
	struct buf text = { 0 }, markdown = { 0 }, csv = { 0 }, json = { 0 };

	compare_text(c, false, &text);
	compare_markdown(c, &markdown);
	compare_csv(c, &csv);
	compare_json(c, &json);
	answers_release(&text);
	answers_release(&markdown);
	answers_release(&csv);
	answers_release(&json);
}

static int build(struct made *m, struct bench_comparison *c, const struct compare_opts *o,
		 const char *x, const char *y, struct err *e)
{
	const char *path[] = { arena_printf(&m->a, "%s/%s", dir, x),
			       arena_printf(&m->a, "%s/%s", dir, y) };

	if (compare_load(c, o, path, 2, &m->a, e) < 0 || compare_judge(c, e) < 0)
		return -1;
	check_shown(c);
	return 0;
}

static const double five[] = { 1000, 1010, 990, 1005, 995 };
static const double less[] = { 900, 909, 891, 904, 896 };

static const struct matched_row *row_of(const struct bench_comparison *c, const char *key)
{
	for (size_t i = 0; i < c->n_metrics; i++)
		if (strcmp(c->metric[i].name, key) == 0)
			return &c->out.pair[0].row[i];
	fail_msg("no metric %s", key);
	return NULL;
}

static const struct matched_row *throughput(const struct bench_comparison *c)
{
	assert_null(compare_refusal(c));
	return row_of(c, "output_throughput");
}

static const char *remarks(struct made *m, const struct bench_comparison *c)
{
	return compare_remarks(c, &c->out.pair[0], &m->a);
}

/* ---- many configurations ---- */

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

/* 12 servers of 8 loads, one run each; the configurations differ by factors, runs by 1 %. */
static void put_grid(struct made *m, const char *folder, double change, uint64_t seed)
{
	for (int i = 0; i < 96; i++) {
		const char *more = arena_printf(&m->a, ", \"max_concurrency\": %d, "
						"\"tensor_parallel_size\": %d, \"version\": \"%s\"",
						1 << i % 8, 1 + i / 8, folder);

		put(m, arena_printf(&m->a, "%s/%02d.json", folder, i),
		    result(m, 200.0 * (1 + i % 8) * (1 + i / 8) * (1 + change) *
				      exp(0.01 * normal(&seed)), more));
	}
}

static void grid_of_configurations(void **state)
{
	struct made m = { 0 };
	struct bench_comparison c;
	struct err e = { 0 };

	(void)state;
	put_grid(&m, "old", 0, 1);
	put_grid(&m, "faster", 0.075, 2);
	put_grid(&m, "alike", 0, 3);
	assert_int_equal(build(&m, &c, &usual, "old", "faster", &e), 0);
	assert_int_equal(c.out.pair[0].n_configs, 96);
	assert_int_equal(throughput(&c)->verdict, MATCHED_BETTER);
	assert_int_equal(throughput(&c)->up, 96);
	assert_true(throughput(&c)->is.interval.low < 1.075 &&
		    throughput(&c)->is.interval.high > 1.075);
	assert_int_equal(throughput(&c)->n_loads, 8);
	compare_release(&c);
	assert_int_equal(build(&m, &c, &usual, "faster", "old", &e), 0);
	assert_int_equal(throughput(&c)->verdict, MATCHED_WORSE);
	compare_release(&c);
	assert_int_equal(build(&m, &c, &usual, "old", "alike", &e), 0);
	assert_int_equal(throughput(&c)->verdict, MATCHED_NO_CHANGE);
	compare_release(&c);
	arena_release(&m.a);
}

/* ---- parameters ---- */

static enum compare_param_kind kind_of(const struct bench_comparison *c, const char *key)
{
	for (size_t p = 0; p < c->n_params; p++)
		if (strcmp(c->param[p].key, key) == 0)
			return c->param[p].kind;
	fail_msg("no parameter %s", key);
	return COMPARE_SAME;
}

static void parameters(void **state)
{
	struct made m = { 0 };
	struct bench_comparison c;
	struct err e = { 0 };

	(void)state;
	for (int level = 16; level >= 4; level /= 2) {
		const char *more = arena_printf(&m.a, ", \"max_concurrency\": %d", level);
		const char *b = arena_printf(&m.a, "%s, \"max-num-seqs\": 64, \"block_size\": 8, \"seed\": 1",
					     more);

		for (size_t i = 0; i < 2; i++) {
			put(&m, arena_printf(&m.a, "pa/l%d_%zu.json", level, i), result(&m, five[i], more));
			put(&m, arena_printf(&m.a, "pb/l%d_%zu.json", level, i), result(&m, less[i], b));
		}
	}
	put(&m, "pb/more.json", result(&m, 1000, ", \"max_concurrency\": 1, \"max-num-seqs\": 64, "
				       "\"block_size\": 8"));
	assert_int_equal(build(&m, &c, &each, "pa", "pb", &e), 0);
	assert_int_equal(kind_of(&c, "max_num_seqs"), COMPARE_BETWEEN);
	assert_int_equal(kind_of(&c, "max_concurrency"), COMPARE_WITHIN);
	assert_int_equal(kind_of(&c, "model_id"), COMPARE_SAME);
	assert_int_equal(c.out.pair[0].n_configs, 3);
	assert_string_equal(c.out.pair[0].config[0], "max_concurrency=16");
	assert_int_equal(c.out.pair[0].n_alone[1], 1);
	assert_string_equal(c.out.pair[0].alone[1][0].config, "max_concurrency=1");
	assert_int_equal(throughput(&c)->verdict, MATCHED_WORSE);
	/* The code is not to blame for what was configured otherwise. */
	assert_non_null(strstr(remarks(&m, &c), "2 parameters (max_num_seqs, block_size)"));
	compare_release(&c);
	arena_release(&m.a);
}

/* The work is never what defines a side, unless that was asked for. */
static void workload(void **state)
{
	struct made m = { 0 };
	struct compare_opts ignoring = each;
	struct bench_comparison c;
	struct err e = { 0 };

	(void)state;
	put_runs(&m, "w/a", five, 5, ", \"max_concurrency\": 8");
	put_runs(&m, "w/b", less, 5, ", \"max_concurrency\": 16");
	put_runs(&m, "wc", less, 5, "");
	assert_int_equal(build(&m, &c, &each, "w/a", "w/b", &e), 0);
	assert_int_equal(c.out.pair[0].refusal, MATCHED_REFUSED_UNMATCHED);
	assert_non_null(strstr(compare_refusal(&c), "max_concurrency (8 against 16); --ignore "
			       "max_concurrency compares"));
	compare_release(&c);
	ignoring.ignore = "max_concurrency";
	assert_int_equal(build(&m, &c, &ignoring, "w/a", "w/b", &e), 0);
	assert_int_equal(throughput(&c)->verdict, MATCHED_WORSE);
	compare_release(&c);
	/* What a result does not say cannot speak against a match. */
	assert_int_equal(build(&m, &c, &each, "w/a", "wc", &e), 0);
	assert_int_equal(throughput(&c)->verdict, MATCHED_WORSE);
	compare_release(&c);
	ignoring = each;
	ignoring.by = "max_concurrency";
	assert_int_equal(build(&m, &c, &ignoring, "w/a", "w/b", &e), 0);
	assert_int_equal(throughput(&c)->verdict, MATCHED_WORSE);
	compare_release(&c);
	arena_release(&m.a);
}

/* ---- sessions ---- */

/* Every summary.json is one session unless servers.json tells more. */
static void sessions(void **state)
{
	struct made m = { 0 };
	struct bench_comparison c;
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
	assert_int_equal(throughput(&c)->runs[0], 5);
	assert_int_equal(throughput(&c)->sessions[0], 1);
	assert_int_equal(throughput(&c)->verdict, MATCHED_NOT_ENOUGH);
	assert_non_null(strstr(remarks(&m, &c), "count once (5 runs, 1 session)"));
	compare_release(&c);

	assert_int_equal(build(&m, &c, &each, "sa", "sb", &e), 0);
	assert_int_equal(throughput(&c)->sessions[0], 5);
	assert_int_equal(throughput(&c)->verdict, MATCHED_WORSE);
	compare_release(&c);

	put(&m, "sa/servers.json", starts.data);
	put(&m, "sb/servers.json", starts.data);
	assert_int_equal(build(&m, &c, &usual, "sa", "sb", &e), 0);
	assert_int_equal(throughput(&c)->sessions[0], 5);
	assert_int_equal(throughput(&c)->verdict, MATCHED_WORSE);
	compare_release(&c);
	buf_release(&a);
	buf_release(&b);
	buf_release(&starts);
	arena_release(&m.a);
}

/* ---- documents of nightly runs ---- */

/* A commit's run; from commit 8 on the server is configured otherwise, and slower. */
static void put_document(struct made *m, const char *folder, int commit, int run, uint64_t *seed)
{
	bool is_late = commit >= 8;
	double v = (is_late ? 600 : 1000) * exp(0.005 * normal(seed));

	put(m, arena_printf(&m->a, "%s/%02d_%d.json", folder, commit, run),
	    arena_printf(&m->a, "{\"schema_version\": 1, \"run_id\": \"exp_%d_%d\", \"status\": "
			 "\"completed\", \"config\": {\"name\": \"nightly\", \"server\": {\"model\": \"m\", "
			 "\"max_num_seqs\": %d, \"kv_cache_dtype\": \"%s\"}, \"benchmark\": "
			 "{\"request_rate\": 8}}, \"results\": {\"completed_requests\": 100, "
			 "\"failed_requests\": 0, \"output_throughput\": %.6f}, \"provenance\": "
			 "{\"engine_commit\": \"c%d\"}}", commit, run, is_late ? 16 : 256,
			 is_late ? "auto" : "fp8", v, commit));
}

/* 36 documents: what was configured is matched or shown as what differs. */
static void documents(void **state)
{
	struct made m = { 0 };
	struct bench_comparison c;
	struct err e = { 0 };
	uint64_t seed = 5;

	(void)state;
	for (int commit = 0; commit < 12; commit++)
		for (int run = 0; run < 3; run++) {
			put_document(&m, commit < 8 ? "da" : "db", commit, run, &seed);
			put_document(&m, commit < 10 ? "dc" : "dd", commit, run, &seed);
		}
	assert_int_equal(build(&m, &c, &usual, "da", "db", &e), 0);
	assert_int_equal(throughput(&c)->verdict, MATCHED_WORSE);
	assert_int_equal(throughput(&c)->sessions[0], 8);
	assert_int_equal(throughput(&c)->sessions[1], 4);
	assert_int_equal(kind_of(&c, "max_num_seqs"), COMPARE_BETWEEN);
	assert_non_null(strstr(remarks(&m, &c), "(max_num_seqs, kv_cache_dtype)"));
	compare_release(&c);
	assert_int_equal(build(&m, &c, &usual, "dc", "dd", &e), 0);
	assert_int_equal(throughput(&c)->verdict, MATCHED_NO_CHANGE);
	assert_int_equal(c.out.pair[0].n_alone[0], 1);
	assert_int_equal(c.out.pair[0].alone[0][0].runs, 24);
	compare_release(&c);
	/* The same runs under another name, and with one of them. */
	assert_int_equal(build(&m, &c, &usual, "da", "da", &e), 0);
	assert_int_equal(c.out.pair[0].refusal, MATCHED_REFUSED_SAME);
	compare_release(&c);
	assert_int_equal(build(&m, &c, &usual, "da", "da/00_0.json", &e), 0);
	assert_int_equal(c.out.pair[0].refusal, MATCHED_REFUSED_SAME);
	compare_release(&c);
	arena_release(&m.a);
}

/* ---- what speaks against an answer ---- */

static void other_work(void **state)
{
	struct made m = { 0 };
	struct bench_comparison c;
	struct err e = { 0 };

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		put(&m, arena_printf(&m.a, "ga/%zu.json", i), result(&m, less[i], ""));
		put(&m, arena_printf(&m.a, "gb/%zu.json", i), result_of(&m, five[i], 9, 10, ""));
		put(&m, arena_printf(&m.a, "gc/%zu.json", i), result_of(&m, five[i], 0, 5, ""));
	}
	for (int i = 0; i < 4; i++) {
		const char *other = i < 2 ? "gb" : "gc";

		assert_int_equal(build(&m, &c, &each, i % 2 ? other : "ga", i % 2 ? "ga" : other, &e), 0);
		assert_int_equal(throughput(&c)->verdict, MATCHED_NOT_COMPARABLE);
		assert_true(isnan(throughput(&c)->is.p) && isnan(throughput(&c)->is.interval.low));
		assert_non_null(strstr(remarks(&m, &c), i < 2 ? "failed requests: " :
				       "output tokens per request"));
		compare_release(&c);
	}
	arena_release(&m.a);
}

/* INVALID belongs to a metric; a result that says it of itself alone says it of all. */
static void invalid(void **state)
{
	struct made m = { 0 };
	struct compare_opts all = each;
	struct bench_comparison c;
	struct err e = { 0 };

	(void)state;
	put_runs(&m, "ia", five, 5, ", \"median_itl_ms\": 5");
	put_runs(&m, "ib", less, 5, ", \"median_itl_ms\": 9, \"profllm\": {\"verdict\": \"INVALID\", "
		 "\"verdicts\": {\"itl\": \"INVALID\", \"output_throughput\": \"DEGRADED\"}}");
	put_runs(&m, "ic", less, 5, ", \"profllm\": {\"verdict\": \"INVALID\"}");
	assert_int_equal(build(&m, &c, &each, "ia", "ib", &e), 0);
	assert_int_equal(throughput(&c)->verdict, MATCHED_WORSE);
	assert_int_equal(throughput(&c)->degraded[1], 5);
	assert_int_equal(row_of(&c, "median_itl_ms")->why, MATCHED_WHY_INVALID);
	compare_release(&c);
	all.is_invalid_counted = true;
	assert_int_equal(build(&m, &c, &all, "ia", "ib", &e), 0);
	assert_int_equal(row_of(&c, "median_itl_ms")->verdict, MATCHED_WORSE);
	compare_release(&c);
	assert_int_equal(build(&m, &c, &each, "ia", "ic", &e), 0);
	assert_int_equal(c.out.pair[0].refusal, MATCHED_REFUSED_INVALID);
	assert_non_null(strstr(compare_refusal(&c), "INVALID"));
	compare_release(&c);
	arena_release(&m.a);
}

static void primary(void **state)
{
	struct made m = { 0 };
	struct compare_opts named = each;
	struct bench_comparison c;
	struct err e = { 0 };

	(void)state;
	put_runs(&m, "ya", five, 5, "");
	put_runs(&m, "yb", less, 5, "");
	assert_int_equal(build(&m, &c, &each, "ya", "yb", &e), 0);
	assert_false(row_of(&c, "output_throughput")->is_primary);
	compare_release(&c);
	named.primary = "output_throughput";
	assert_int_equal(build(&m, &c, &named, "ya", "yb", &e), 0);
	assert_true(row_of(&c, "output_throughput")->is_primary);
	assert_false(row_of(&c, "request_throughput")->is_primary);
	compare_release(&c);
	named = each;
	named.metrics = "output_throughput,request_throughput";
	assert_int_equal(build(&m, &c, &named, "ya", "yb", &e), 0);
	assert_true(row_of(&c, "output_throughput")->is_primary);
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
	struct bench_comparison c;
	struct err e = { 0 };
	struct gate_log log = { .a = &m.a };

	(void)state;
	put_runs(&m, "fa", five, 5, "");
	put_runs(&m, "fb", less, 5, "");
	assert_int_equal(build(&m, &c, &each, "fa", "fb", &e), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct gate g;

		log.n = 0;
		assert_int_equal(gate_parse(&g, str_of(rows[i].text), &m.a, &e), 0);
		compare_gate_check(&c, &g, rows[i].is_any, &log);
		assert_int_equal(log.n, 1);
		assert_int_equal(log.item[0].outcome, rows[i].want);
	}
	compare_release(&c);
	assert_int_equal(build(&m, &c, &usual, "fa", "fb", &e), 0);
	for (size_t i = 0; i < 2; i++) {
		struct gate g;

		log.n = 0;
		assert_int_equal(gate_parse(&g, STR("output_throughput<-5%"), &m.a, &e), 0);
		compare_gate_check(&c, &g, i == 1, &log);
		assert_int_equal(log.item[0].outcome, i ? GATE_FAILED : GATE_UNJUDGED);
		assert_non_null(strstr(log.item[0].text, i ? "fell by 10 % (limit 5 %)"
							   : "1 and 1 server sessions"));
	}
	compare_release(&c);
	arena_release(&m.a);
}

/* More failed requests than before are a condition of their own, whatever the others say. */
static void failed_requests(void **state)
{
	static const struct { int before, now; const char *want; } rows[] = {
		{ 0, 0, NULL }, { 3, 0, NULL }, { 3, 3, NULL }, { 2, 2, NULL },
		{ 0, 1, "failed requests rose from 0.0 % to 1.0 %" },
		{ 2, 7, "failed requests rose from 2.0 % to 7.0 %" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct made m = { 0 };
		const char *folder[] = { arena_printf(&m.a, "f%zua", i), arena_printf(&m.a, "f%zub", i) };
		struct gate_log log = { .a = &m.a };
		struct bench_comparison c;
		struct err e = { 0 };

		for (int k = 0; k < 6; k++)
			put(&m, arena_printf(&m.a, "%s/%d.json", folder[k % 2], k),
			    result_of(&m, 1000 + k, k % 2 ? rows[i].now : rows[i].before, 10, ""));
		assert_int_equal(build(&m, &c, &each, folder[0], folder[1], &e), 0);
		compare_gate_failures(&c, &log);
		assert_int_equal(log.n, rows[i].want != NULL);
		if (rows[i].want) {
			assert_int_equal(log.item[0].outcome, GATE_FAILED);
			assert_string_equal(log.item[0].text, rows[i].want);
		}
		compare_release(&c);
		arena_release(&m.a);
	}
}

/* ---- scaling, two results, mistakes ---- */

static void scaling(void **state)
{
	struct made m = { 0 };
	struct bench_comparison c;
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
	struct bench_comparison c;
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
		cmocka_unit_test(grid_of_configurations),
		cmocka_unit_test(parameters),
		cmocka_unit_test(workload),
		cmocka_unit_test(sessions),
		cmocka_unit_test(documents),
		cmocka_unit_test(other_work),
		cmocka_unit_test(invalid),
		cmocka_unit_test(primary),
		cmocka_unit_test(gates), cmocka_unit_test(failed_requests),
		cmocka_unit_test(scaling),
		cmocka_unit_test(mistakes),
		cmocka_unit_test(grids),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
