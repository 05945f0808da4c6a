/* SPDX-License-Identifier: Apache-2.0 */
/* test_analyse_trends.c - trends over runs built by hand. */
#include "analyse_rig.h"

#define DAY 86400.0

/* Three runs of a commit: values v (1 - a), v, v (1 + a). Two commits never have one name. */
static void put_commit(struct rig *r, const char *gpu, int commit, double v, double a)
{
	for (int i = 0; i < 3; i++) {
		rig_text(r, "run_id", arena_printf(&r->arena, "%s-%d-%d", gpu, commit, i));
		rig_text(r, "hardware.gpu", gpu);
		rig_text(r, "server.model", "m");
		rig_text(r, "provenance.engine_commit", arena_printf(&r->arena, "c%06d", commit));
		rig_number(r, "timestamp", 1e9 + commit * DAY + i);
		rig_number(r, "output_throughput", v * (1 + a * (i - 1)));
		rig_number(r, "median_ttft_ms", 1000 / v);
		rig_number(r, "completed", 100);
		rig_number(r, "failed", 0);
		rig_run(r, 0);
	}
}

/* Its interval, who shares it, the noise about both levels, the axes that would do. */
static void about_a_step(const struct json_value *v)
{
	assert_true(rig_real(v, "series/0/changes/0/interval/0") < -0.2 &&
		    rig_real(v, "series/0/changes/0/interval/0") > -0.203);
	assert_true(rig_real(v, "series/0/changes/0/interval/1") > -0.2 &&
		    rig_real(v, "series/0/changes/0/interval/1") < -0.197);
	rig_near(v, "series/0/changes/0/also_in", 1); /* the other series changed elsewhere */
	rig_near(v, "series/0/changes/0/also_of", 2);
	/* Noise of 0.2 % about each level: a band of twice that. */
	assert_int_equal(rig_count(v, "series/0/levels"), 2);
	rig_near(v, "series/0/levels/0/to", 18);
	rig_near(v, "series/0/levels/1/from", 18);
	assert_true(fabs(rig_real(v, "series/0/levels/1/value") - 80) < 0.1);
	assert_true(fabs(rig_real(v, "series/0/levels/1/high") - 80 * 1.004) < 0.1);
	assert_true(fabs(rig_real(v, "series/0/levels/1/low") - 80 * 0.996) < 0.1);
	assert_int_equal(rig_count(v, "axes"), 2);
	rig_same(v, "axes/0/axis", "commit");
	rig_near(v, "axes/0/runs", 180);
	rig_near(v, "axes/0/places", 30);
	rig_same(v, "axes/1/axis", "day");
}

static void steps(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 30; i++) {
		double wave = i % 2 ? 1.002 : 0.998;

		put_commit(&r, "H100", i, (i < 18 ? 100 : 80) * wave, 0.01);
		put_commit(&r, "B200", i, (i < 10 ? 200 : 240) * wave, 0.01);
	}
	/* Not on the axis, or no number: counted, not drawn. */
	rig_text(&r, "hardware.gpu", "H100");
	rig_number(&r, "timestamp", 1e9);
	rig_number(&r, "output_throughput", 1);
	rig_run(&r, 0);
	rig_text(&r, "hardware.gpu", "H100");
	rig_text(&r, "provenance.engine_commit", "c000001");
	rig_number(&r, "timestamp", 1e9);
	rig_number(&r, "output_throughput", INFINITY);
	rig_run(&r, 0);
	/* An excluded run takes no part. */
	rig_text(&r, "hardware.gpu", "H100");
	rig_text(&r, "provenance.engine_commit", "c000001");
	rig_number(&r, "timestamp", 1e9);
	rig_number(&r, "output_throughput", 5);
	rig_run(&r, INDEX_EXCLUDED);

	v = rig_ask(&r, analyse_trends, "{\"metric\": \"output_throughput\"}");
	rig_same(v, "axis", "commit");
	rig_same(v, "better", "higher");
	assert_int_equal(rig_count(v, "series"), 2);
	rig_near(v, "left_out", 2);
	rig_same(v, "series/0/name", "H100");
	assert_false(str_eq(rig_at(v, "series/0/id")->text, rig_at(v, "series/1/id")->text));
	rig_same(v, "series/0/key/hardware.gpu", "H100");
	assert_int_equal(rig_count(v, "series/0/points"), 30);
	rig_same(v, "series/0/points/4/commit", "c000004");
	rig_near(v, "series/0/points/4/at", 1e9 + 4 * DAY);
	rig_near(v, "series/0/points/4/n", 3);
	rig_near(v, "series/0/points/4/value", 99.8 * cbrt(0.99 * 1.01));
	rig_near(v, "series/0/points/4/low", 99.8 * 0.99);
	rig_near(v, "series/0/points/4/high", 99.8 * 1.01);
	assert_int_equal(rig_count(v, "series/0/points/4/ids"), 3);
	assert_int_equal(rig_count(v, "series/0/changes"), 1);
	rig_near(v, "series/0/changes/0/index", 18);
	rig_same(v, "series/0/changes/0/commit", "c000018");
	rig_near(v, "series/0/changes/0/effect", -0.2);
	rig_same(v, "series/0/changes/0/verdict", "worse");
	about_a_step(v);
	assert_false(json_bool(rig_at(v, "series/0/changes/0/is_marked"), true));
	assert_int_equal(rig_count(v, "series/1/changes"), 1);
	rig_near(v, "series/1/changes/0/index", 10);
	rig_same(v, "series/1/changes/0/verdict", "better");

	/* The same as a filter, without series, by day. */
	v = rig_ask(&r, analyse_trends, "{\"metric\": \"output_throughput\", \"axis\": \"day\", "
		    "\"series\": [], \"filter\": {\"column\": \"hardware.gpu\", \"in\": [\"B200\"]}}");
	assert_int_equal(rig_count(v, "series"), 1);
	rig_same(v, "series/0/name", "all runs");
	rig_near(v, "series/0/changes/0/before", 200 * cbrt(0.99 * 1.01));
	rig_near(v, "left_out", 0);
	/* Run by run. */
	v = rig_ask(&r, analyse_trends, "{\"metric\": \"output_throughput\", \"axis\": \"time\", "
		    "\"filter\": {\"column\": \"hardware.gpu\", \"in\": [\"B200\"]}}");
	assert_int_equal(rig_count(v, "series/0/points"), 90);
	rig_end(&r);
}

/* SERIES in the text is replaced by the id. */
static void set_marks(struct rig *r, const char *id, const char *text)
{
	struct buf all = { 0 };
	struct err e = { 0 };
	const char *at;

	for (; (at = strstr(text, "SERIES")); text = at + strlen("SERIES"))
		buf_printf(&all, "%.*s%s", (int)(at - text), text, id);
	buf_add_text(&all, text);
	if (json_parse(&r->arena, arena_str(&r->arena, buf_str(&all)), &r->marks, &e) < 0)
		fail_msg("%s", e.text);
	buf_release(&all);
}

static bool is_marked(const struct json_value *v)
{
	return json_bool(rig_at(v, "series/0/changes/0/is_marked"), true);
}

/* A mark is of one metric, one series and one place; by the series' name nothing is found. */
static void marks(void **state)
{
	struct json_value *v;
	const char *id;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 20; i++)
		put_commit(&r, "H100", i, (i < 8 ? 100 : 80) * (i % 2 ? 1.002 : 0.998), 0.01);
	v = rig_ask(&r, analyse_trends, "{\"metric\": \"output_throughput\"}");
	id = arena_text(&r.arena, rig_at(v, "series/0/id")->text);
	set_marks(&r, id, "[{\"id\": 3, \"series\": \"other\", \"metric\": \"output_throughput\", \"at\": "
		  "\"c000008\", \"kind\": \"seen\"}, {\"id\": 4, \"series\": \"SERIES\", "
		  "\"metric\": \"output_throughput\", \"at\": \"c000008\", \"kind\": \"expected\", "
		  "\"text\": \"new kernel\", \"who\": \"ann\"}]");
	v = rig_ask(&r, analyse_trends, "{\"metric\": \"output_throughput\"}");
	assert_true(is_marked(v));
	rig_near(v, "series/0/changes/0/mark/id", 4);
	rig_same(v, "series/0/changes/0/mark/text", "new kernel");
	/* another metric that changed at the same place */
	v = rig_ask(&r, analyse_trends, "{\"metric\": \"median_ttft_ms\"}");
	rig_near(v, "series/0/changes/0/index", 8);
	assert_false(is_marked(v));
	assert_int_equal(rig_at(v, "series/0/changes/0/mark")->kind, JSON_NULL);
	/* by time in place of the commit */
	set_marks(&r, id, "[{\"id\": 5, \"series\": \"SERIES\", \"metric\": \"output_throughput\", "
		  "\"at\": \"1000691200\"}]");
	v = rig_ask(&r, analyse_trends, "{\"metric\": \"output_throughput\"}");
	rig_near(v, "series/0/changes/0/mark/id", 5);
	/* of before marks named a metric: it is shown, and judges nothing */
	set_marks(&r, id, "[{\"id\": 6, \"series\": \"SERIES\", \"metric\": null, "
		  "\"at\": \"c000008\"}]");
	v = rig_ask(&r, analyse_trends, "{\"metric\": \"output_throughput\"}");
	rig_near(v, "series/0/changes/0/mark/id", 6);
	assert_false(is_marked(v));
	set_marks(&r, id, "[{\"id\": 7, \"series\": \"m\", \"metric\": \"output_throughput\", "
		  "\"at\": \"c000008\"}]");
	v = rig_ask(&r, analyse_trends, "{\"metric\": \"output_throughput\"}");
	rig_same(v, "series/0/name", "m");
	assert_int_equal(rig_at(v, "series/0/changes/0/mark")->kind, JSON_NULL);
	rig_end(&r);
}

/* ---- runs that do not count ---- */

struct day { double rate, wait, completed, failed; const char *status, *verdict, *invalid; };

static void put_day(struct rig *r, struct day d)
{
	rig_text(r, "server.model", "m");
	rig_number(r, "timestamp", 1e9 + (double)r->next * DAY);
	rig_number(r, "request_throughput", d.rate);
	rig_number(r, "p99_ttft_ms", d.wait);
	rig_number(r, "completed", d.completed);
	rig_number(r, "failed", d.failed);
	if (d.status)
		rig_text(r, "status", d.status);
	if (d.verdict)
		rig_text(r, "verdict", d.verdict);
	if (d.invalid)
		rig_text(r, "trust.invalid", d.invalid);
	rig_run(r, 0);
}

static const double wave[] = { 0.99, 1, 1.01, 0.995, 1.005 };

/* A server that stopped answering is no improvement, also where older versions stored its zeros. */
static void failed_runs(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 10; i++)
		put_day(&r, (struct day){ 20 * wave[i % 5], 20 * wave[i % 5], 100, 0, "completed",
					  NULL, NULL });
	for (int i = 0; i < 6; i++)
		put_day(&r, (struct day){ 0, 0, 0, 100, i % 2 ? "failed" : NULL, NULL, NULL });
	v = rig_ask(&r, analyse_trends, "{\"metric\": \"p99_ttft_ms\"}");
	assert_int_equal(rig_count(v, "series/0/points"), 10);
	assert_int_equal(rig_count(v, "series/0/changes"), 0);
	rig_near(v, "left_out", 6);
	rig_same(v, "trust/0/column", "p99_ttft_ms");
	rig_near(v, "trust/0/failed", 6);
	assert_true(rig_has_note(v, "6 runs failed and are left out"));
	/* how many failed is what they measured */
	v = rig_ask(&r, analyse_trends, "{\"metric\": \"failed\"}");
	assert_int_equal(rig_count(v, "series/0/points"), 16);
	/* all of it: a change, but no gain */
	v = rig_ask(&r, analyse_trends, "{\"metric\": \"p99_ttft_ms\", \"include_invalid\": true}");
	assert_int_equal(rig_count(v, "series/0/points"), 16);
	rig_near(v, "series/0/changes/0/after", 0);
	rig_same(v, "series/0/changes/0/verdict", "changed");
	assert_non_null(strstr(rig_at(v, "series/0/changes/0/guard")->text.p, "failed requests: 0.00 %"));
	assert_int_equal(rig_count(v, "trust"), 0);
	rig_refused(&r, analyse_trends, "{\"metric\": \"a\", \"include_invalid\": 1}",
		    "/include_invalid");
	rig_end(&r);
}

/* Faster, but every other run failed: no gain. */
static void failed_beside(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 20; i++) {
		put_day(&r, (struct day){ 20, (i < 10 ? 20 : 10) * wave[i % 5], 100, 0, "completed",
					  NULL, NULL });
		if (i >= 10)
			put_day(&r, (struct day){ 0, 0, 0, 100, "failed", NULL, NULL });
	}
	v = rig_ask(&r, analyse_trends, "{\"metric\": \"p99_ttft_ms\"}");
	rig_near(v, "series/0/changes/0/effect", -0.5);
	rig_same(v, "series/0/changes/0/verdict", "changed");
	assert_non_null(strstr(rig_at(v, "series/0/changes/0/guard")->text.p,
			       "failed requests: 0.00 % against 50.00 %"));
	rig_end(&r);
}

/* Doubt belongs to a metric. */
static void invalid_metrics(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 12; i++)
		put_day(&r, (struct day){ 20, i == 3 ? 1 : 20 + i, 100, 0, "completed",
					  i == 3 || i == 5 ? "INVALID" : i == 4 ? "DEGRADED" : "VALID",
					  i == 3 ? "itl,ttft" : i == 5 ? NULL : "" });
	v = rig_ask(&r, analyse_trends, "{\"metric\": \"p99_ttft_ms\"}");
	assert_int_equal(rig_count(v, "series/0/points"), 10);
	rig_near(v, "trust/0/invalid", 2);
	rig_near(v, "trust/0/degraded", 1);
	assert_true(json_bool(rig_at(v, "trust/0/would_lead"), false));
	assert_true(rig_has_note(v, "p99_ttft_ms is INVALID in 2 runs, left out here; one of them "
				    "would have led"));
	assert_true(rig_has_note(v, "p99_ttft_ms is DEGRADED in 1 of the runs shown"));
	/* the other one judged itself without a list, so that it counts for nothing */
	v = rig_ask(&r, analyse_trends, "{\"metric\": \"request_throughput\"}");
	assert_int_equal(rig_count(v, "series/0/points"), 11);
	rig_near(v, "trust/0/invalid", 1);
	assert_false(json_bool(rig_at(v, "trust/0/would_lead"), true));
	v = rig_ask(&r, analyse_trends, "{\"metric\": \"p99_ttft_ms\", \"include_invalid\": true}");
	assert_int_equal(rig_count(v, "series/0/points"), 12);
	rig_end(&r);
}

/* Every column of a metric is spoiled with it, and none of another one. */
static void which_columns(void **state)
{
	static const struct { const char *invalid, *column; bool counts; } rows[] = {
		{ "ttft", "p99_ttft_ms", false }, { "ttft", "p99.9_ttft_ms", false },
		{ "ttft", "mean_ttft_ms", false }, { "ttft", "p99_ttft_answer_ms", false },
		{ "ttft", "steady_state.p99.9_ttft_ms", false }, { "ttft", "p99_tpot_ms", true },
		{ "ttft", "probe_p99_ttft_ms", true }, { "itl,e2el", "p99_e2el_ms", false },
		{ "e2el", "p99_e2el_from_due_ms", false },
		{ "output_throughput", "output_throughput", false },
		{ "output_throughput", "max_output_tokens_per_s", false },
		{ "output_throughput", "counted_output_throughput", true },
		{ "output_throughput", "total_token_throughput", true },
		{ "request_throughput", "request_throughput", false },
		{ "request_throughput", "request_goodput", true },
		{ "request_goodput", "request_goodput", false },
		{ "ttft", "tags.ttft", true }, { "", "p99_ttft_ms", true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct json_value *v;
		struct rig r;

		rig_begin(&r);
		rig_number(&r, rows[i].column, 7);
		rig_text(&r, "verdict", "INVALID");
		rig_text(&r, "trust.invalid", rows[i].invalid);
		rig_run(&r, 0);
		v = rig_ask(&r, analyse_distribution, arena_printf(&r.arena, "{\"metric\": \"%s\"}",
								   rows[i].column));
		if ((rig_count(v, "groups") == 1) != rows[i].counts)
			fail_msg("%s of a run with INVALID %s", rows[i].column, rows[i].invalid);
		rig_end(&r);
	}
}

/* Seconds that grow are worse; none, one and equal runs give an answer and no change. */
static void corners(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	v = rig_ask(&r, analyse_trends, "{\"metric\": \"median_ttft_ms\"}");
	assert_int_equal(rig_count(v, "series"), 0);
	rig_near(v, "left_out", 0);
	for (int i = 0; i < 12; i++) {
		rig_number(&r, "timestamp", 1e9 + i);
		rig_number(&r, "median_ttft_ms", i < 6 ? 10 : 20);
		rig_number(&r, "same", 7);
		rig_text(&r, "server.model", "m");
		rig_text(&r, "mode", "serve");
		rig_text(&r, "measured_lengths", "about 512 in, 128 out");
		rig_number(&r, "completed", 100);
		rig_number(&r, "total_input_tokens", 50040);
		rig_number(&r, "total_output_tokens", 12960);
		rig_run(&r, 0);
		if (!i) {
			v = rig_ask(&r, analyse_trends, "{\"metric\": \"median_ttft_ms\"}");
			assert_int_equal(rig_count(v, "series/0/points"), 1);
			assert_int_equal(rig_count(v, "series/0/changes"), 0);
		}
	}
	v = rig_ask(&r, analyse_trends, "{\"metric\": \"median_ttft_ms\"}");
	rig_same(v, "axis", "time");
	rig_near(v, "series/0/changes/0/effect", 1);
	rig_same(v, "series/0/changes/0/verdict", "worse");
	assert_non_null(strstr(rig_at(v, "series/0/changes/0/command")->text.p,
			       " --model m --random-input-len 500 --random-output-len 130"));
	v = rig_ask(&r, analyse_trends, "{\"metric\": \"same\", \"effect\": 0}");
	assert_int_equal(rig_count(v, "series/0/changes"), 0);
	rig_refused(&r, analyse_trends, "{}", "/metric");
	rig_refused(&r, analyse_trends, "{\"metric\": 3}", "/metric");
	rig_refused(&r, analyse_trends, "{\"metric\": \"server.model\"}", "/metric");
	rig_refused(&r, analyse_trends, "{\"metric\": \"a\", \"axis\": \"x\"}", "/axis");
	rig_refused(&r, analyse_trends, "{\"metric\": \"a\", \"level\": 2}", "/level");
	rig_refused(&r, analyse_trends, "{\"metric\": \"a\", \"window\": 3}", "/window");
	rig_refused(&r, analyse_trends, "{\"metric\": \"a\", \"effect\": \"x\"}", "/effect");
	rig_refused(&r, analyse_trends, "{\"metric\": \"a\", \"series\": [\"b\", 1]}", "/series/1");
	rig_refused(&r, analyse_trends, "{\"metric\": \"a\", \"series\": {}}", "/series");
	rig_end(&r);
}

/* ---- what is accused ---- */

struct night {
	int night;
	double v;
	double max_num_seqs, cost_us;  /* 0: not given */
	const char *kernel, *version, *commit;
	const char *verdict;
};

/* A run with 1 % of scatter, as far as its night says. */
static void put_night(struct rig *r, struct night n)
{
	rig_text(r, "mode", "serve");
	rig_text(r, "server.model", "m");
	rig_text(r, "environment.server.kind", "vllm");
	rig_number(r, "timestamp", 1e9 + n.night * DAY);
	rig_number(r, "server.port", 8000 + n.night);
	rig_number(r, "benchmark.seed", n.night);
	rig_number(r, "benchmark.random_input_len", 512);
	rig_number(r, "output_throughput", n.v * exp(0.01 * rig_normal(r)));
	if (n.max_num_seqs > 0)
		rig_number(r, "server.max_num_seqs", n.max_num_seqs);
	if (n.cost_us > 0)
		rig_number(r, "server.decode_base_us", n.cost_us);
	if (n.kernel)
		rig_text(r, "hardware.os.kernel", n.kernel);
	if (n.version)
		rig_text(r, "environment.server.version", n.version);
	if (n.commit)
		rig_text(r, "provenance.engine_commit", n.commit);
	if (n.verdict)
		rig_text(r, "verdict", n.verdict);
	rig_run(r, 0);
}

#define ASK "{\"metric\": \"output_throughput\"}"

static const char *text_at(const struct json_value *v, const char *path)
{
	const struct json_value *at = rig_at(v, path);

	if (!at || at->kind != JSON_STRING)
		fail_msg("%s is not text", path);
	return at->text.p;
}

/* A configuration that changed begins a series, and no commit is accused of its step. */
static void configured(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 40; i++)
		put_night(&r, (struct night){ .night = i, .v = i < 20 ? 100 : 40,
				.max_num_seqs = i < 20 ? 256 : 16,
				.commit = arena_printf(&r.arena, "c%06d", i) });
	v = rig_ask(&r, analyse_trends, ASK);
	assert_int_equal(rig_count(v, "series"), 2);
	for (int i = 0; i < 2; i++)
		assert_int_equal(rig_count(v, arena_printf(&r.arena, "series/%d/changes", i)), 0);
	assert_int_equal(rig_at(v, "series/0/begins")->kind, JSON_NULL);
	assert_string_equal(text_at(v, "series/1/begins/text"), "a new series begins at commit "
			    "c000020: server.max_num_seqs 256 -> 16");
	assert_true(fabs(rig_real(v, "series/1/begins/effect") + 0.6) < 0.02);
	assert_non_null(strstr(text_at(v, "reason"), "nothing changed by 3 % or more (p < "
			       "0.00001) in "));
	rig_end(&r);
}

/* Writing down a default, or measuring elsewhere, continues the same series. */
static void same_series(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 20; i++) {
		if (i >= 10) {
			rig_number(&r, "server.tensor_parallel_size", 1);
			rig_number(&r, "benchmark.burstiness", 1);
			rig_put(&r, "benchmark.insecure", (struct value){ .kind = VALUE_BOOL });
		}
		rig_text(&r, "benchmark.dataset_path", i < 10 ? "/a/chats.json" : "/b/chats.json");
		put_night(&r, (struct night){ .night = i, .v = 100, .version = "0.12.0" });
	}
	v = rig_ask(&r, analyse_trends, ASK);
	assert_int_equal(rig_count(v, "series"), 1);
	rig_same(v, "axis", "day");
	rig_end(&r);
	/* The defaults of an unknown version are not known, so TP 1 is another configuration. */
	rig_begin(&r);
	for (int i = 0; i < 20; i++) {
		if (i >= 10)
			rig_number(&r, "server.tensor_parallel_size", 1);
		put_night(&r, (struct night){ .night = i, .v = i < 10 ? 100 : 50 });
	}
	v = rig_ask(&r, analyse_trends, ASK);
	assert_int_equal(rig_count(v, "series"), 2);
	for (int i = 0; i < 2; i++)
		assert_int_equal(rig_count(v, arena_printf(&r.arena, "series/%d/changes", i)), 0);
	rig_end(&r);
	/* Where it is known, TP 2 is another one and TP 1 is not. */
	rig_begin(&r);
	for (int i = 0; i < 30; i++) {
		if (i >= 10)
			rig_number(&r, "server.tensor_parallel_size", i < 20 ? 1 : 2);
		put_night(&r, (struct night){ .night = i, .v = i < 20 ? 100 : 150, .version = "0.12.0" });
	}
	v = rig_ask(&r, analyse_trends, ASK);
	assert_int_equal(rig_count(v, "series"), 2);
	assert_int_equal(rig_count(v, "series/0/points") * rig_count(v, "series/1/points"), 20 * 10);
	rig_end(&r);
}

/* The simulator's costs are its code: a change of them is found, not set apart. */
static void code_under_test(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 20; i++)
		put_night(&r, (struct night){ .night = i, .v = i < 12 ? 100 : 80,
				.cost_us = i < 12 ? 6000 : 7500,
				.commit = arena_printf(&r.arena, "c%06d", i) });
	v = rig_ask(&r, analyse_trends, ASK);
	assert_int_equal(rig_count(v, "series"), 1);
	rig_near(v, "series/0/changes/0/index", 12);
	rig_same(v, "series/0/changes/0/commit", "c000012");
	rig_same(v, "series/0/changes/0/also/0/column", "server.decode_base_us");
	rig_end(&r);
}

/* What was built for each night has a name in a tag; a tag of both sides is no cause. */
static void tagged_builds(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 20; i++) {
		rig_text(&r, "tags.build", arena_printf(&r.arena, "b%d", i / 2));
		rig_text(&r, "tags.shift", i % 2 ? "late" : "early");
		put_night(&r, (struct night){ .night = i, .v = i < 12 ? 100 : 80 });
	}
	v = rig_ask(&r, analyse_trends, ASK);
	rig_near(v, "series/0/changes/0/index", 12);
	assert_int_equal(rig_count(v, "series/0/changes/0/also"), 1);
	rig_same(v, "series/0/changes/0/also/0/column", "tags.build");
	rig_same(v, "series/0/changes/0/also/0/before", "b5");
	rig_same(v, "series/0/changes/0/also/0/after", "b6");
	rig_end(&r);
}

/* Lengths and GPUs that only metadata or the measurement knows are series of their own. */
static void metadata(void **state)
{
	static const struct { const char *lengths, *gpus; } one[] = {
		{ "about 512 in, 128 out", "1" }, { "about 4096 in, 128 out", "1" },
		{ "about 512 in, 128 out", "8" },
	};
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 36; i++) {
		rig_text(&r, "measured_lengths", one[i % 3].lengths);
		rig_text(&r, "tags.num_gpus", one[i % 3].gpus);
		rig_number(&r, "timestamp", 1e9 + i * DAY);
		rig_number(&r, "output_throughput", i % 3 * 100 + 100 + i % 2);
		rig_run(&r, 0);
	}
	v = rig_ask(&r, analyse_trends, ASK);
	assert_int_equal(rig_count(v, "series"), 3);
	rig_same(v, "series/0/name", "about 512 in, 128 out, num_gpus=1");
	rig_end(&r);
}

/* A step of 10 % at a commit is found and named, after what else changed there. */
static void named(void **state)
{
	struct json_value *v;
	const char *text;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 60; i++)
		put_night(&r, (struct night){ .night = i, .v = i < 40 ? 100 : 90,
				.kernel = i < 40 ? "6.1" : "6.2",
				.commit = arena_printf(&r.arena, "c%06d", i) });
	v = rig_ask(&r, analyse_trends, ASK);
	assert_int_equal(rig_count(v, "series/0/changes"), 1);
	rig_near(v, "series/0/changes/0/index", 40);
	rig_same(v, "series/0/changes/0/commit_before", "c000039");
	text = text_at(v, "series/0/changes/0/text");
	assert_non_null(strstr(text, "output_throughput fell by "));
	assert_non_null(strstr(text, "at commit c000040; changed there: hardware.os.kernel 6.1 -> 6.2, "
			       "commit c000039 -> c000040"));
	assert_string_equal(text_at(v, "series/0/changes/0/command"), "profllm bench ab --base-url "
			    "URL_OF_c000039 --base-url URL_OF_c000040 --metric output_throughput "
			    "--model m --random-input-len 512");
	/* both sides of the point, not its own runs */
	assert_int_equal(rig_count(v, "series/0/changes/0/before_ids"), 40);
	assert_int_equal(rig_count(v, "series/0/changes/0/after_ids"), 20);
	assert_true(rig_real(v, "series/0/changes/0/before_ids/0") <= 40);
	assert_true(rig_real(v, "series/0/changes/0/after_ids/0") > 40);
	/* news of the last 30 nights, not of the last ten */
	v = rig_ask(&r, analyse_trends, "{\"metric\": \"output_throughput\", \"news\": 20}");
	assert_true(json_bool(rig_at(v, "series/0/changes/0/is_new"), false));
	v = rig_ask(&r, analyse_trends, "{\"metric\": \"output_throughput\", \"news\": 10}");
	assert_false(json_bool(rig_at(v, "series/0/changes/0/is_new"), true));
	rig_end(&r);
}

/* Nights that are INVALID change nothing. */
static void invalid_nights(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 40; i++)
		put_night(&r, (struct night){ .night = i, .v = i >= 20 && i < 26 ? 50 : 100,
				.verdict = i >= 20 && i < 26 ? "INVALID" : "VALID" });
	v = rig_ask(&r, analyse_trends, ASK);
	assert_int_equal(rig_count(v, "series/0/points"), 34);
	assert_int_equal(rig_count(v, "series/0/changes"), 0);
	rig_near(v, "trust/0/invalid", 6);
	rig_end(&r);
	rig_begin(&r);
	for (int i = 0; i < 9; i++)
		put_night(&r, (struct night){ .night = i, .v = 100, .verdict = "INVALID" });
	v = rig_ask(&r, analyse_trends, ASK);
	assert_string_equal(text_at(v, "reason"), "no run counts for output_throughput: 0 failed, in 9 "
			    "it is INVALID, and 0 have none");
	assert_false(json_bool(rig_at(v, "is_judged"), true));
	rig_end(&r);
}

/* Versions in the order of their numbers, where most nights have their own; else days. */
static void axes(void **state)
{
	static const char *const version[] = {
		"0.10.0", "0.9.2", "0.11.0rc1", "0.11.0", "0.9.10", "0.12.0.dev3+gabc", "0.12.0",
	};
	static const char *const want[] = {
		"0.9.2", "0.9.10", "0.10.0", "0.11.0rc1", "0.11.0", "0.12.0.dev3+gabc", "0.12.0",
	};
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 7; i++)
		put_night(&r, (struct night){ .night = i, .v = 100, .version = version[i] });
	v = rig_ask(&r, analyse_trends, ASK);
	rig_same(v, "axis", "version");
	assert_non_null(strstr(text_at(v, "order"), "in the order of version numbers"));
	for (int i = 0; i < 7; i++)
		rig_same(v, arena_printf(&r.arena, "series/0/points/%d/version", i), want[i]);
	for (int i = 7; i < 60; i++)
		put_night(&r, (struct night){ .night = i, .v = 100, .version = "0.12.0" });
	v = rig_ask(&r, analyse_trends, ASK);
	rig_same(v, "axis", "day");
	assert_int_equal(rig_count(v, "series/0/points"), 60);
	v = rig_ask(&r, analyse_trends, "{\"metric\": \"output_throughput\", \"axis\": \"commit\"}");
	assert_non_null(strstr(text_at(v, "reason"), "axis day needs no commit"));
	rig_end(&r);
	rig_begin(&r);
	for (int i = 0; i < 4; i++)
		put_night(&r, (struct night){ .night = i, .v = 100 });
	v = rig_ask(&r, analyse_trends, ASK);
	assert_string_equal(text_at(v, "reason"), "there are too few points to judge: 4 in the longest "
			    "series, and a change needs 6, 3 on each side");
	rig_end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps), cmocka_unit_test(marks), cmocka_unit_test(failed_runs),
		cmocka_unit_test(failed_beside), cmocka_unit_test(invalid_metrics),
		cmocka_unit_test(which_columns), cmocka_unit_test(corners),
		cmocka_unit_test(configured), cmocka_unit_test(same_series),
		cmocka_unit_test(code_under_test), cmocka_unit_test(named),
		cmocka_unit_test(tagged_builds),
		cmocka_unit_test(metadata),
		cmocka_unit_test(invalid_nights), cmocka_unit_test(axes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
