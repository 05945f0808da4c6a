/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_analyse.c - whatever body an analysis is asked with, it answers in valid JSON or refuses.
 *
 * The first byte chooses the analysis, the rest is the body. The runs hold what makes numbers
 * awkward: infinities, zeros, negatives, equal values, nulls, texts where numbers are elsewhere.
 */
#include <math.h>
#include <stdint.h>

#include "check.h"
#include "results/analyse/analyse.h"

#define RUNS 60

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static analyse_fn *const analyses[] = {
	analyse_compare, analyse_trends, analyse_regression, analyse_impact, analyse_scaling,
	analyse_capacity, analyse_resources, analyse_pareto, analyse_distribution, analyse_parallel,
};

static struct value number(double v)
{
	return (struct value){ .kind = VALUE_NUMBER, .number = v };
}

static struct value text(const char *v)
{
	return (struct value){ .kind = VALUE_TEXT, .text = str_of(v) };
}

static void add_run(struct index *x, int i)
{
	static const char *const gpu[] = { "A", "B", "" }, *const commit[] = { "c1", "c2", "c3", "c4" };
	struct cell cell[] = {
		{ STR("run_id"), text(i % 2 ? "odd" : "even") },
		{ STR("timestamp"), number(i / 2) },
		{ STR("hardware.gpu"), text(gpu[i % 3]) },
		{ STR("provenance.engine_commit"), text(commit[i / 15]) },
		{ STR("server.tensor_parallel_size"), number(1 << i % 4) },
		{ STR("benchmark.request_rate"), i % 5 ? number(i % 5) : number(INFINITY) },
		{ STR("request_throughput"), number(i < 40 ? 10 + i % 7 : 5 + i % 3) },
		{ STR("median_ttft_ms"), i % 11 ? number(i % 13 - 3) : text("none") },
		{ STR("p99_ttft_ms"), i % 9 ? number((i % 4 ? 1e99 : 1e308) * (i % 2 ? 1 : -1)) : number(0) },
		{ STR("failed"), number(i % 6 ? 0 : 3) },
		{ STR("completed"), i % 8 ? number(7) : (struct value){ .kind = VALUE_NULL } },
		{ STR("status"), text(i % 12 == 5 ? "failed" : "completed") },
		{ STR("verdict"), text(i % 10 == 4 ? "INVALID" : "VALID") },
		{ STR("trust.invalid"), i % 20 == 4 ? text(",ttft,,x") : number(1) },
		{ STR("server.on"), { .kind = VALUE_BOOL, .is_true = i % 2 } },
		{ STR("suite"), text(i % 4 ? "s" : "t") },
	};
	struct row row = { i + 1, cell, sizeof(cell) / sizeof(*cell) - (size_t)(i % 3) };

	CHECK(index_add(x, &row, i == 7 ? INDEX_EXCLUDED : 0, NULL) == 0);
}

static struct index_view *runs(void)
{
	static struct index_view *view;
	static struct index *x;

	if (!view) {
		x = index_make();
		for (int i = 0; i < RUNS; i++)
			add_run(x, i);
		view = index_view(x);
	}
	return view;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = { 0 };
	struct buf out = { 0 };
	struct json_writer w = json_writer(&out);
	struct json_value *body, *again;
	struct err e = { 0 };

	if (size < 2 ||
	    json_parse(&a, (struct str){ (const char *)data + 1, size - 1 }, &body, NULL) < 0 ||
	    body->kind != JSON_OBJECT) {
		arena_release(&a);
		return 0;
	}
	struct analyse_request r = { runs(), body, &a, json_get(body, "marks") };

	json_begin_object(&w);
	if (analyses[*data % (sizeof(analyses) / sizeof(*analyses))](&r, &w, &e) == 0) {
		json_end_object(&w);
		CHECK(json_parse(&a, buf_str(&out), &again, NULL) == 0);
		CHECK(!memmem(out.data, out.len, "NaN", 3) || memmem(data, size, "NaN", 3));
		CHECK(!memmem(out.data, out.len, "Infinity", 8) || memmem(data, size, "Infinity", 8));
	} else {
		CHECK(e.code != ERR_NONE && e.text[0]);
	}
	buf_release(&out);
	arena_release(&a);
	return 0;
}
