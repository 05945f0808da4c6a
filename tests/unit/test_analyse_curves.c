/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_analyse_curves.c - what the performance chart concludes: which color leads where, what is
 * left out, which workload is shown, and what becomes color, configuration and label.
 */
#include "analyse_rig.h"

/* One run; 0 and NULL: no value. */
struct made {
	const char *workload, *gpu;
	double tp, load, user, gpu_rate;
	const char *invalid, *verdict;
};

static int64_t make(struct rig *r, struct made m)
{
	rig_text(r, "workload", m.workload ? m.workload : "Llama-8B");
	if (m.gpu)
		rig_text(r, "gpu_model", m.gpu);
	if (m.tp > 0)
		rig_number(r, "server.tensor_parallel_size", m.tp);
	rig_number(r, "load", m.load);
	rig_text(r, "load_kind", "concurrency");
	rig_number(r, "timestamp", (double)(1000 + r->next));
	rig_number(r, "tokens_per_s_per_user", m.user);
	if (m.gpu_rate > 0)
		rig_number(r, "tokens_per_s_per_gpu", m.gpu_rate);
	rig_number(r, "output_throughput", m.gpu_rate > 0 ? m.gpu_rate * (m.tp > 0 ? m.tp : 1) : m.load);
	if (m.invalid)
		rig_text(r, "trust.invalid", m.invalid);
	if (m.verdict)
		rig_text(r, "verdict", m.verdict);
	return rig_run(r, 0);
}

/* b200 is best at every load, and of both GPUs TP1 has more throughput, TP4 is faster. */
static void grid(struct rig *r)
{
	static const double load[] = { 1, 8, 64 };

	for (size_t i = 0; i < 3; i++)
		for (int tp = 1; tp <= 4; tp += 3) { /* max_num_seqs follows from the GPU */
			double user = (300 - 80 * (double)i) * (tp > 1 ? 1.5 : 1);
			double rate = (200 + 500 * (double)i) * (tp > 1 ? 0.5 : 1);

			rig_number(r, "server.max_num_seqs", 1024);
			make(r, (struct made){ .gpu = "b200", .tp = tp, .load = load[i], .user = user,
					       .gpu_rate = rate });
			make(r, (struct made){ .gpu = "h100", .tp = tp, .load = load[i], .user = user / 2,
					       .gpu_rate = rate / 2 });
		}
}

/* The point of a line with a load; fails when there is none. */
static const struct json_value *point_at(const struct json_value *v, const char *color,
					 const char *line, double load)
{
	const struct json_value *lines = json_get(v, "lines");

	for (size_t i = 0; i < lines->count; i++) {
		const struct json_value *one = &lines->item[i], *points = json_get(one, "points");

		if (!str_is(json_text(json_get(one, "color"), STR("")), color) ||
		    !str_is(json_text(json_get(one, "name"), STR("")), line))
			continue;
		for (size_t k = 0; k < points->count; k++)
			if (fabs(rig_real(&points->item[k], "load") - load) < 1e-9)
				return &points->item[k];
	}
	fail_msg("no point of %s, %s at %g", color, line, load);
	return NULL;
}

static bool is_true(const struct json_value *v, const char *path)
{
	return json_bool(rig_at(v, path), false);
}

static void one_leads_everywhere(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	grid(&r);
	v = rig_ask(&r, analyse_curves, "{}");
	rig_same(v, "sentence", "b200 leads at every speed per user.");
	rig_same(v, "workload", "Llama-8B");
	rig_same(v, "x/column", "tokens_per_s_per_user");
	rig_same(v, "y/column", "tokens_per_s_per_gpu");
	rig_same(v, "color", "gpu_model");
	rig_same(v, "configuration/0", "server.tensor_parallel_size");
	assert_int_equal(rig_count(v, "configuration"), 1);
	rig_same(v, "load", "load");
	/* The best first, whatever the alphabet. */
	rig_same(v, "colors/0/key", "b200");
	rig_near(v, "colors/0/points", 6);
	assert_int_equal(rig_count(v, "lines"), 4);
	rig_same(point_at(v, "b200", "TP1", 64), "label", "TP1 c64");
	assert_true(is_true(point_at(v, "b200", "TP1", 64), "is_best"));
	assert_true(is_true(point_at(v, "h100", "TP1", 64), "is_frontier"));
	assert_false(is_true(point_at(v, "h100", "TP1", 64), "is_best"));
	rig_same(point_at(v, "h100", "TP1", 64), "label", "TP1 c64");
	assert_false(is_true(point_at(v, "b200", "TP4", 64), "is_frontier") &&
		     is_true(point_at(v, "b200", "TP4", 8), "is_frontier") &&
		     is_true(point_at(v, "b200", "TP1", 1), "is_frontier"));
	/* A quarter of 225, the speed that the slower GPU reaches: 50. */
	rig_near(v, "at", 50);
	rig_near(v, "reading/0/y", 1200);
	rig_near(v, "reading/1/y", 600);
	v = rig_ask(&r, analyse_curves, "{\"at\": 230}");
	rig_near(v, "at", 230);
	rig_near(v, "reading/0/y", 350);
	rig_near(v, "reading/1/y", NAN);
	/* The calculator: between measured points of the frontier, and nowhere else. */
	assert_true(rig_real(v, "reading/0/between") >= 350 && rig_real(v, "reading/0/between") < 1200);
	rig_near(v, "reading/1/between", NAN);
	/* A filter neither recolors nor reorders. */
	v = rig_ask(&r, analyse_curves, "{\"color\": \"gpu_model\", \"filter\": {\"column\": "
		    "\"gpu_model\", \"in\": [\"h100\"]}}");
	rig_same(v, "colors/1/key", "h100");
	rig_near(v, "colors/0/points", 0);
	rig_near(v, "colors/1/points", 6);
	rig_end(&r);
}

/* What has null for a color has the one of what has nothing, not the one of all other texts. */
static void colors_of_null(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 24; i++) {
		char text[24];

		snprintf(text, sizeof(text), "type%d", i);
		if (i < 12)
			rig_text(&r, "server.dtype", text);
		else if (i % 2 == 0)
			rig_put(&r, "server.dtype", (struct value){ .kind = VALUE_NULL });
		make(&r, (struct made){ .gpu = "h100", .load = 1 << i % 12 / 2, .user = 90 - i, .gpu_rate = 100 + i });
	}
	v = rig_ask(&r, analyse_curves, "{\"color\": \"server.dtype\"}");
	assert_int_equal(rig_count(v, "colors"), 8);
	rig_same(v, "colors/6/key", "dtype not set");
	rig_near(v, "colors/6/points", 6);
	rig_same(v, "colors/7/key", "other (6)");
	rig_near(v, "colors/7/points", 6);
	rig_end(&r);
}

static void crossing(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	make(&r, (struct made){ .gpu = "b200", .load = 1, .user = 400, .gpu_rate = 100 });
	make(&r, (struct made){ .gpu = "b200", .load = 8, .user = 200, .gpu_rate = 500 });
	make(&r, (struct made){ .gpu = "b200", .load = 64, .user = 38, .gpu_rate = 1000 });
	make(&r, (struct made){ .gpu = "h200", .load = 1, .user = 300, .gpu_rate = 80 });
	make(&r, (struct made){ .gpu = "h200", .load = 8, .user = 120, .gpu_rate = 900 });
	make(&r, (struct made){ .gpu = "h200", .load = 64, .user = 40, .gpu_rate = 2000 });
	v = rig_ask(&r, analyse_curves, "{}");
	rig_same(v, "sentence", "b200 leads above 120 tokens/s/user, h200 below.");
	rig_near(v, "at", 50); /* 1-2-5, no larger than a quarter of 300 */
	rig_near(v, "reading/0/y", 900);
	rig_same(v, "reading/0/color", "h200");
	rig_near(v, "reading/1/y", 500);
	/* In the middle both are within 2 % of each other. */
	make(&r, (struct made){ .gpu = "h200", .load = 16, .user = 200, .gpu_rate = 505 });
	v = rig_ask(&r, analyse_curves, "{}");
	rig_same(v, "sentence", "b200 leads above 200 tokens/s/user, h200 and b200 are level from 120 "
		 "to 200, and h200 leads below.");
	/* They take turns. */
	make(&r, (struct made){ .gpu = "b200", .load = 32, .user = 100, .gpu_rate = 1500 });
	make(&r, (struct made){ .gpu = "h200", .load = 2, .user = 390, .gpu_rate = 300 });
	v = rig_ask(&r, analyse_curves, "{}");
	rig_same(v, "sentence", "h200 leads at 4 of 6 measured values of tokens/s/user, b200 at 2.");
	rig_end(&r);
}

/* Latency on the x axis: less is better, and words turn with it. */
static void latency_axis(void **state)
{
	static const double rate[] = { 50, 100, 400, 300 };
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 4; i++) {
		rig_number(&r, "median_ttft_ms", i < 2 ? 10 : 40);
		make(&r, (struct made){ .gpu = i % 2 ? "b200" : "h200", .load = i < 2 ? 1 : 8, .user = 9,
					.gpu_rate = rate[i] });
	}
	v = rig_ask(&r, analyse_curves, "{\"x\": \"median_ttft_ms\"}");
	rig_same(v, "sentence", "b200 leads below 40 ms, h200 above.");
	rig_near(v, "at", 50); /* four times 10, rounded up */
	rig_near(v, "reading/0/y", 400);
	rig_end(&r);
}

static void invalid_would_lead(void **state)
{
	const struct json_value *p;
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	grid(&r);
	make(&r, (struct made){ .gpu = "h100", .tp = 8, .load = 64, .user = 900, .gpu_rate = 9000,
				.invalid = "tpot" });
	/* INVALID in something that is on no axis: it counts. */
	make(&r, (struct made){ .gpu = "h100", .tp = 8, .load = 1, .user = 10, .gpu_rate = 10,
				.invalid = "itl", .verdict = "INVALID" });
	/* INVALID, and no better than others. */
	make(&r, (struct made){ .gpu = "h100", .tp = 8, .load = 8, .user = 5, .gpu_rate = 5,
				.verdict = "INVALID" });
	v = rig_ask(&r, analyse_curves, "{}");
	rig_near(v, "left_out/invalid", 2);
	assert_true(is_true(v, "left_out/would_lead"));
	rig_same(v, "sentence", "b200 leads at every speed per user. 2 INVALID runs are left out, and at "
		 "least one would lead.");
	rig_near(point_at(v, "h100", "TP8", 1), "x", 10);
	v = rig_ask(&r, analyse_curves, "{\"include_invalid\": true}");
	/* As crosses: on no frontier, and in no conclusion. */
	rig_same(v, "sentence", "b200 leads at every speed per user. 2 INVALID runs are drawn as crosses, "
		 "and at least one would lead.");
	p = point_at(v, "h100", "TP8", 64);
	rig_near(p, "y", 9000);
	assert_true(is_true(p, "is_invalid"));
	assert_false(is_true(p, "is_frontier") || is_true(p, "is_best"));
	assert_true(is_true(point_at(v, "h100", "TP8", 8), "is_invalid"));
	assert_false(is_true(point_at(v, "h100", "TP8", 1), "is_invalid"));
	rig_near(v, "left_out/invalid", 2);
	rig_near(v, "total", 15);
	v = rig_ask(&r, analyse_curves, "{\"filter\": {\"not\": {\"column\": \"load\", \"in\": [64]}}}");
	rig_near(v, "left_out/invalid", 1);
	assert_false(is_true(v, "left_out/would_lead"));
	rig_same(v, "sentence", "b200 leads at every speed per user.");
	rig_end(&r);
}

/* Metadata are texts, also numbers. */
static void metadata(void **state)
{
	static const char *const tp[] = { "1", "8" };
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (size_t i = 0; i < 4; i++) {
		rig_text(&r, "tags.tp", tp[i % 2]);
		make(&r, (struct made){ .gpu = i < 2 ? "b200" : "h200", .load = 8, .user = 100,
					.gpu_rate = 500 });
	}
	v = rig_ask(&r, analyse_curves, "{}");
	assert_int_equal(rig_count(v, "lines"), 4);
	rig_same(v, "lines/1/name", "TP8");
	rig_end(&r);
	/* Some that look like a number are none. */
	rig_begin(&r);
	for (size_t i = 0; i < 2; i++) {
		rig_text(&r, "server.flavor", i ? "12345678901" : "91e3");
		make(&r, (struct made){ .gpu = "b200", .load = 8, .user = 100, .gpu_rate = 500 });
	}
	v = rig_ask(&r, analyse_curves, "{}");
	rig_same(v, "colors/0/key", "flavor 12345678901");
	rig_same(v, "colors/1/key", "flavor 91e3");
	rig_end(&r);
}

/* A point over runs with different tags says so, unless each has its own; a leader is DEGRADED. */
static void tags(void **state)
{
	static const char *const tag[][4] = {
		{ "base", "base", "new", "new" }, { "1", "2", "3", "4" }, { "base", "base", "base", "base" },
	};
	struct json_value *v;
	struct rig r;

	(void)state;
	for (size_t k = 0; k < sizeof(tag) / sizeof(*tag); k++) {
		rig_begin(&r);
		for (size_t i = 0; i < 4; i++) {
			rig_text(&r, "tags.variant", tag[k][i]);
			make(&r, (struct made){ .gpu = "b200", .load = 8, .user = 100, .gpu_rate = 500,
						.verdict = "DEGRADED" });
		}
		v = rig_ask(&r, analyse_curves, "{}");
		assert_non_null(strstr(rig_at(v, "sentence")->text.p, " It is DEGRADED."));
		if (k)
			assert_int_equal(rig_count(v, "notes"), 1);
		else
			rig_same(v, "notes/1", "points are medians over runs that differ in tags.variant: "
				 "color by it, or filter by one value");
		if (!k) {
			v = rig_ask(&r, analyse_overview, "{}");
			assert_non_null(strstr(rig_at(v, "sentence")->text.p, "differ in tags.variant: filter"));
			v = rig_ask(&r, analyse_curves, "{\"color\": \"tags.variant\"}");
			assert_int_equal(rig_count(v, "notes"), 1);
		}
		rig_end(&r);
	}
}

/* So do loads, sizes and commits; a choice of the tag, or of one value, is not joined. */
static void tags_elsewhere(void **state)
{
	static const struct { analyse_fn *ask; const char *body, *key, *note; } rows[] = {
		{ analyse_capacity, "\"rate\": 10, \"slo\": [{\"column\": \"p99_ttft_ms\", \"max\": 100}]",
		  "configuration", "loads are medians over runs that differ in tags.variant: add it to "
		  "the configuration columns, or filter by one value" },
		{ analyse_scaling, "\"metric\": \"output_throughput\", \"by\": \"server.tensor_parallel_size\"",
		  "series", "points are medians over runs that differ in tags.variant: add it to the "
		  "series, or filter by one value" },
		{ analyse_trends, "\"metric\": \"output_throughput\", \"axis\": \"commit\"", "series",
		  "points are means over runs that differ in tags.variant: add it to the series, or "
		  "filter by one value" },
	};
	static const char base[] = ", \"filter\": {\"column\": \"tags.variant\", \"in\": [\"base\"]}";
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 8; i++) {
		rig_text(&r, "tags.variant", i % 4 < 2 ? "base" : "new");
		rig_text(&r, "tags.night", arena_printf(&r.arena, "%d", i)); /* a number of repeats */
		rig_text(&r, "provenance.engine_commit", "c000001");
		rig_number(&r, "timestamp", 1e9 + i);
		rig_number(&r, "server.tensor_parallel_size", i < 4 ? 1 : 2);
		rig_number(&r, "benchmark.max_concurrency", 8);
		rig_number(&r, "request_throughput", 10 + i);
		rig_number(&r, "output_throughput", 100 + i);
		rig_number(&r, "p99_ttft_ms", 50);
		rig_number(&r, "completed", 100);
		rig_run(&r, 0);
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *body[] = {
			arena_printf(&r.arena, "{%s}", rows[i].body),
			arena_printf(&r.arena, "{%s%s}", rows[i].body, base),
			arena_printf(&r.arena, "{%s, \"%s\": [\"tags.variant\"]}", rows[i].body, rows[i].key),
		};

		for (size_t k = 0; k < 3; k++)
			if (rig_has_note(rig_ask(&r, rows[i].ask, body[k]), rows[i].note) != !k)
				fail_msg("%s", body[k]);
	}
	rig_end(&r);
}

static void repeats(void **state)
{
	const struct json_value *p;
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 3; i++) {
		make(&r, (struct made){ .gpu = "b200", .load = 8, .user = 100 + i, .gpu_rate = 500 + 9 * i });
		make(&r, (struct made){ .gpu = "h200", .load = 8, .user = 80, .gpu_rate = 300 });
	}
	v = rig_ask(&r, analyse_curves, "{}");
	assert_int_equal(rig_count(v, "lines"), 2);
	p = point_at(v, "b200", "b200", 8);
	assert_int_equal(rig_count(p, "ids"), 3);
	rig_near(p, "x", 101);
	rig_near(p, "x_min", 100);
	rig_near(p, "x_max", 102);
	rig_near(p, "y", 509);
	rig_near(p, "y_min", 500);
	rig_near(p, "y_max", 518);
	rig_near(v, "total", 2);
	rig_end(&r);
}

/* What repeats do not tell apart is level, as on Overview; a clear lead elsewhere remains. */
static void noise(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = -1; i <= 1; i++) {
		make(&r, (struct made){ .gpu = "a", .load = 8, .user = 100, .gpu_rate = 500 + 90 * i });
		make(&r, (struct made){ .gpu = "b", .load = 8, .user = 100, .gpu_rate = 540 + 90 * i });
	}
	v = rig_ask(&r, analyse_curves, "{}");
	rig_same(v, "sentence", "b and a are level at every speed per user.");
	for (int i = -1; i <= 1; i++) {
		make(&r, (struct made){ .gpu = "a", .load = 1, .user = 200, .gpu_rate = 50 + i });
		make(&r, (struct made){ .gpu = "b", .load = 1, .user = 200, .gpu_rate = 54 + i });
	}
	v = rig_ask(&r, analyse_curves, "{}");
	rig_same(v, "sentence", "b leads above 100 tokens/s/user, b and a are level below.");
	rig_end(&r);
	/* Four ranges are too many to say. */
	rig_begin(&r);
	for (int i = -1; i <= 1; i++) {
		make(&r, (struct made){ .gpu = "a", .load = 1, .user = 124, .gpu_rate = 100 + 10 * i });
		make(&r, (struct made){ .gpu = "b", .load = 1, .user = 150, .gpu_rate = 105 + 10 * i });
		make(&r, (struct made){ .gpu = "a", .load = 8, .user = 100, .gpu_rate = 750 + 90 * i });
		make(&r, (struct made){ .gpu = "b", .load = 8, .user = 106, .gpu_rate = 720 + 90 * i });
	}
	v = rig_ask(&r, analyse_curves, "{}");
	rig_same(v, "sentence", "b leads or is level at every speed per user.");
	rig_end(&r);
	/* Neither leads where its points are a per cent to the right of the other's. */
	rig_begin(&r);
	for (int k = 0; k < 4; k++) {
		double user = 200 - 45 * k, gpu_rate = 50 + 300 * k, more = k % 2 ? 1.008 : 0.992;

		make(&r, (struct made){ .gpu = "a", .load = 1 << k, .user = user, .gpu_rate = gpu_rate });
		make(&r, (struct made){ .gpu = "b", .load = 1 << k, .user = user * more,
					.gpu_rate = gpu_rate / more });
	}
	v = rig_ask(&r, analyse_curves, "{}");
	rig_same(v, "sentence", "a and b are level at every speed per user.");
	rig_end(&r);
}

/* A limit on the requests at once, and a sweep over rates below it: as many points as rates. */
static void rates(void **state)
{
	static const double rate[] = { 2, 8, 32 };
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (size_t i = 0; i < 3; i++) {
		rig_number(&r, "benchmark.request_rate", rate[i]);
		make(&r, (struct made){ .gpu = "a", .load = 64, .user = 100 - rate[i], .gpu_rate = 10 * rate[i] });
	}
	v = rig_ask(&r, analyse_curves, "{}");
	rig_near(v, "total", 3);
	rig_near(v, "lines/2/points/0/y", 320);
	rig_same(v, "lines/2/points/0/label", "32/s c64");
	rig_near(v, "reading/0/low", 68);
	rig_near(v, "reading/0/high", 98);
	/* with a second concurrency both tell points apart */
	for (size_t i = 0; i < 3; i++) {
		rig_number(&r, "benchmark.request_rate", rate[i]);
		make(&r, (struct made){ .gpu = "a", .load = 8, .user = 90 - rate[i], .gpu_rate = 5 * rate[i] });
	}
	v = rig_ask(&r, analyse_curves, "{}");
	rig_near(v, "total", 6);
	rig_same(v, "configuration/0", "benchmark.request_rate");
	/* an infinite rate is none: repeats stay one point */
	rig_end(&r);
	rig_begin(&r);
	for (size_t i = 0; i < 4; i++) {
		if (i % 2)
			rig_number(&r, "benchmark.request_rate", INFINITY);
		make(&r, (struct made){ .gpu = "a", .load = i < 2 ? 8 : 64, .user = 90, .gpu_rate = 5 });
	}
	v = rig_ask(&r, analyse_curves, "{}");
	rig_near(v, "total", 2);
	rig_end(&r);
}

/* Of several commits each point shows the newest one. */
static void newest(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int commit = 0; commit < 10; commit++)
		for (int k = 0; k < 4; k++) {
			char name[16];

			snprintf(name, sizeof(name), "c%d", commit);
			rig_text(&r, "provenance.engine_commit", name);
			make(&r, (struct made){ .gpu = k % 2 ? "b200" : "h200", .load = k < 2 ? 1 : 8,
						.user = 100 - k, .gpu_rate = 100 + commit });
		}
	v = rig_ask(&r, analyse_curves, "{}");
	rig_same(v, "color", "gpu_model");
	rig_near(v, "total", 4);
	rig_near(v, "lines/0/points/0/y", 109);
	assert_int_equal(rig_count(v, "lines/0/points/0/ids"), 1);
	assert_true(rig_has_note(v, "Each point shows its newest version; 36 runs of older versions"));
	rig_end(&r);
}

/* Not the one with the most runs: the one with the most configurations that have a result. */
static void default_workload(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 30; i++)
		make(&r, (struct made){ .workload = "history", .gpu = "h100", .tp = 1, .load = 8,
					.user = 50, .gpu_rate = 700 + i });
	for (int i = 0; i < 6; i++)
		make(&r, (struct made){ .workload = "grid", .gpu = i % 2 ? "h100" : "b200", .load = 8,
					.tp = 1 + i / 2, .user = 50 + i, .gpu_rate = 100 });
	/* Nor the one with the most commits. */
	for (int i = 0; i < 20; i++) {
		char name[16];

		snprintf(name, sizeof(name), "c%d", i);
		rig_text(&r, "provenance.engine_commit", name);
		make(&r, (struct made){ .workload = "commits", .gpu = "h100", .tp = 1, .load = 8,
					.user = 50, .gpu_rate = 700 });
	}
	v = rig_ask(&r, analyse_curves, "{}");
	rig_near(v, "workloads/1/configurations", 1);
	rig_same(v, "workload", "grid");
	rig_same(v, "workloads/0/key", "grid");
	rig_near(v, "workloads/0/runs", 6);
	rig_near(v, "workloads/0/configurations", 6);
	rig_same(v, "workloads/1/key", "commits");
	rig_same(v, "workloads/2/key", "history");
	rig_near(v, "workloads/2/runs", 30);
	rig_near(v, "workloads/2/configurations", 1);
	rig_near(v, "total", 6);
	v = rig_ask(&r, analyse_curves, "{\"workload\": \"history\"}");
	rig_same(v, "workload", "history");
	rig_near(v, "total", 1);
	assert_int_equal(rig_count(v, "lines/0/points/0/ids"), 30);
	v = rig_ask(&r, analyse_curves, "{\"workload\": \"no such\"}");
	rig_same(v, "sentence", "No run matches.");
	assert_int_equal(rig_count(v, "lines"), 0);
	rig_end(&r);
}

static void no_gpu_count(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	make(&r, (struct made){ .gpu = "b200", .load = 10, .user = 100 });
	make(&r, (struct made){ .gpu = "h200", .load = 40, .user = 50 });
	v = rig_ask(&r, analyse_curves, "{}");
	rig_same(v, "y/column", "output_throughput");
	rig_same(v, "x/column", "tokens_per_s_per_user");
	rig_same(v, "sentence", "b200 leads above 50 tokens/s/user, h200 below.");
	v = rig_ask(&r, analyse_curves, "{\"y\": \"tokens_per_s_per_gpu\"}");
	rig_same(v, "y/column", "tokens_per_s_per_gpu");
	rig_same(v, "sentence", "No run has both metrics.");
	rig_near(v, "left_out/missing", 2);
	rig_end(&r);
}

static void few_runs(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	v = rig_ask(&r, analyse_curves, "{}");
	rig_same(v, "sentence", "No run matches.");
	assert_int_equal(rig_count(v, "lines"), 0);
	assert_int_equal(rig_count(v, "workloads"), 0);
	rig_near(v, "at", NAN);
	make(&r, (struct made){ .gpu = "b200", .load = 8, .user = 328.25, .gpu_rate = 3725 });
	v = rig_ask(&r, analyse_curves, "{}");
	rig_same(v, "sentence", "One configuration is measured: 3,725 tokens/s/GPU at 328.2 tokens/s/user "
		 "(c8).");
	assert_int_equal(rig_count(v, "colors"), 1);
	assert_null(json_get(v, "color")->text.p);
	assert_true(is_true(v, "lines/0/points/0/is_best"));
	/* One color only: what differs is the load alone. */
	make(&r, (struct made){ .gpu = "b200", .load = 1, .user = 600, .gpu_rate = 500 });
	v = rig_ask(&r, analyse_curves, "{}");
	rig_same(v, "sentence", "Best: 3,725 tokens/s/GPU with c8; 600 tokens/s/user with c1.");
	assert_int_equal(rig_count(v, "lines"), 1);
	assert_int_equal(rig_count(v, "lines/0/points"), 2);
	rig_end(&r);
}

/* A stray value in one of many runs splits nothing; columns that split alike are one. */
static void what_differs(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 40; i++) {
		rig_text(&r, "server.dtype", i == 7 ? "half" : "auto");
		rig_number(&r, "server.max_num_seqs", i % 2 ? 64 : 128);
		rig_number(&r, "server.max_num_batched_tokens", i % 2 ? 2048 : 4096);
		make(&r, (struct made){ .load = 1 + i / 2, .user = 100 - i, .gpu_rate = 10 + i });
	}
	v = rig_ask(&r, analyse_curves, "{}");
	assert_int_equal(rig_count(v, "configuration"), 0);
	assert_int_equal(rig_count(v, "colors"), 2);
	rig_same(v, "colors/0/key", "batched tokens 2048");
	assert_int_equal(rig_count(v, "lines"), 2);
	/* No color: the configuration has it. */
	v = rig_ask(&r, analyse_curves, "{\"color\": null}");
	assert_int_equal(rig_count(v, "colors"), 1);
	assert_int_equal(rig_count(v, "configuration"), 1);
	assert_int_equal(rig_count(v, "lines"), 2);
	rig_end(&r);
}

/* More than eight texts: the seven with the most runs have a color of their own. */
static void many_colors(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 66; i++) {
		int which = (int)(sqrt(8 * i + 1) - 1) / 2; /* 0, 1 1, 2 2 2 ... 10 eleven times */
		char name[16];

		snprintf(name, sizeof(name), "q%02d", which);
		rig_text(&r, "server.quantization", name);
		make(&r, (struct made){ .load = 8, .user = 10 + which, .gpu_rate = 100 - which });
	}
	v = rig_ask(&r, analyse_curves, "{}");
	assert_int_equal(rig_count(v, "colors"), 8);
	rig_same(v, "colors/0/key", "q04");
	rig_same(v, "colors/6/key", "q10");
	rig_same(v, "colors/7/key", "other (4)");
	rig_near(v, "colors/7/points", 4);
	rig_end(&r);
}

static void prices(void **state)
{
	static const char body[] = "{\"y\": \"usd_per_m_output\", \"prices\": {\"b200\": 3.6, "
				   "\"h100\": 1.8}}";
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 2; i++) {
		rig_number(&r, "gpus_used", 2);
		make(&r, (struct made){ .gpu = i ? "b200" : "h100", .tp = 2, .load = 8, .user = 50,
					.gpu_rate = i ? 1000 : 400 });
	}
	v = rig_ask(&r, analyse_curves, body);
	/* 3.6 x 2 x 1e6 / (3600 x 2000), and 1.8 x 2 x 1e6 / (3600 x 800). */
	rig_near(point_at(v, "b200", "b200", 8), "y", 1);
	rig_near(point_at(v, "h100", "h100", 8), "y", 1.25);
	rig_same(v, "sentence", "b200 leads at every speed per user.");
	v = rig_ask(&r, analyse_curves, "{\"y\": \"usd_per_m_output\"}");
	rig_same(v, "sentence", "No run has both metrics.");
	assert_int_equal(rig_count(v, "unpriced"), 2);
	/* Those that the server keeps, unless the request has its own. */
	r.prices = "{\"b200\": 3.6}";
	v = rig_ask(&r, analyse_curves, "{\"y\": \"usd_per_m_output\"}");
	rig_near(point_at(v, "b200", "b200", 8), "y", 1);
	assert_int_equal(rig_count(v, "unpriced"), 1);
	rig_same(v, "unpriced/0", "h100");
	v = rig_ask(&r, analyse_curves, body);
	assert_int_equal(rig_count(v, "unpriced"), 0);
	rig_refused(&r, analyse_curves, "{\"prices\": {\"b200\": -1}, \"y\": \"usd_per_m_output\"}",
		    "/prices/b200");
	rig_refused(&r, analyse_curves, "{\"x\": 1}", "/x");
	rig_refused(&r, analyse_curves, "{\"workload\": 1}", "/workload");
	rig_refused(&r, analyse_curves, "{\"color\": 1}", "/color");
	rig_refused(&r, analyse_curves, "{\"at\": \"a\"}", "/at");
	rig_end(&r);
}

/* Tokens/s per kW by the power of boards, where none was measured. */
static void board_power(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 2; i++) {
		rig_number(&r, "gpus_used", 2);
		if (i)
			rig_number(&r, "tokens_per_s_per_kw", 900);
		make(&r, (struct made){ .gpu = i ? "b200" : "h100", .tp = 2, .load = 8, .user = 50,
					.gpu_rate = 700 });
	}
	r.watts = "{\"b200\": 1000, \"h100\": 700}";
	v = rig_ask(&r, analyse_curves, "{\"y\": \"tokens_per_s_per_kw\"}");
	/* 1000 x 1400 / (2 x 700); the measured one stays. */
	rig_near(point_at(v, "h100", "h100", 8), "y", 1000);
	rig_near(point_at(v, "b200", "b200", 8), "y", 900);
	rig_same(v, "notes/0",
		 "power was not measured in 1 of the runs: that of the boards is assumed there");
	rig_end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(board_power),
		cmocka_unit_test(one_leads_everywhere), cmocka_unit_test(crossing),
		cmocka_unit_test(latency_axis), cmocka_unit_test(invalid_would_lead),
		cmocka_unit_test(metadata), cmocka_unit_test(tags), cmocka_unit_test(repeats),
		cmocka_unit_test(noise),
		cmocka_unit_test(rates), cmocka_unit_test(newest),
		cmocka_unit_test(default_workload), cmocka_unit_test(no_gpu_count),
		cmocka_unit_test(few_runs), cmocka_unit_test(what_differs),
		cmocka_unit_test(many_colors), cmocka_unit_test(prices),
		cmocka_unit_test(colors_of_null), cmocka_unit_test(tags_elsewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
