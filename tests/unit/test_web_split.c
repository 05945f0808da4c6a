/* SPDX-License-Identifier: Apache-2.0 */
/* In which columns runs differ, which columns are one, which a table shows, and what is common. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "core/json/write.h"
#include "web/api.h"

#define CELLS_MAX 20

static struct rig {
	struct index *index;
	struct index_view *view;
	struct arena a;
	struct columns_split split;
	struct query query;
	struct cell cell[CELLS_MAX];
	size_t n;
	int64_t id;
} rig;

static void begin(void)
{
	rig = (struct rig){ .index = index_make() };
}

static void number(const char *column, double v)
{
	rig.cell[rig.n++] = (struct cell){ str_of(column), { .kind = VALUE_NUMBER, .number = v } };
}

static void text(const char *column, const char *v)
{
	rig.cell[rig.n] = (struct cell){ str_of(column), { .kind = VALUE_TEXT } };
	rig.cell[rig.n++].value.text = str_of(v);
}

static void run(void)
{
	const struct row row = { .id = ++rig.id, .cell = rig.cell, .n = rig.n };
	struct err e;

	assert_int_equal(index_add(rig.index, &row, 0, &e), 0);
	rig.n = 0;
}

static void split(void)
{
	rig.view = index_view(rig.index);
	columns_split_make(rig.view, &rig.query, &rig.a, &rig.split);
}

static void end(void)
{
	index_view_release(rig.view);
	index_free(rig.index);
	arena_release(&rig.a);
}

static const struct column_split *column(const char *name)
{
	const struct column_split *c = columns_split_find(&rig.split, str_of(name));

	assert_non_null(c);
	return c;
}

static void expect_columns(const char *names)
{
	struct buf line = { 0 };
	struct err e;

	assert_int_equal(filters_usual_columns(rig.view, &rig.split, &rig.a, &rig.query, &e), 0);
	for (size_t i = 0; i < rig.query.n_columns; i++) {
		buf_add_text(&line, i ? " " : "");
		buf_add_str(&line, rig.query.column[i]);
	}
	buf_add_char(&line, 0);
	assert_string_equal(line.data, names);
	buf_release(&line);
}

static void expect_constants(const char *json)
{
	struct buf out = { 0 };
	struct json_writer w = json_writer(&out);
	struct err e;

	json_begin_object(&w);
	assert_int_equal(filters_put_constants(&w, rig.view, &rig.query, &rig.split, &rig.a, &e),
			 0);
	json_end_object(&w);
	buf_add_char(&out, 0);
	assert_string_equal(out.data, json);
	buf_release(&out);
}

/* One stray run of 200 is none; two in a hundred are needed, and at least two. */
static void strays(void **state)
{
	static const struct { size_t rows, other; bool differs; } rows[] = {
		{ 200, 3, false }, { 200, 4, true }, { 20, 1, false }, { 20, 2, true },
		{ 2, 1, true }, { 3, 1, true }, { 5, 1, false }, { 3, 0, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		begin();
		for (size_t k = 0; k < rows[i].rows; k++) {
			number("server.a", k < rows[i].other ? 2 : 1);
			if (k >= rows[i].other)
				number("server.missing", 7);
			run();
		}
		split();
		print_message("# %zu of %zu\n", rows[i].other, rows[i].rows);
		assert_int_equal(column("server.a")->differs, rows[i].differs);
		assert_int_equal(column("server.missing")->differs, rows[i].differs);
		assert_int_equal(column("server.a")->is_constant, rows[i].other == 0);
		end();
	}
}

/* A grid of 2 GPUs x 3 loads, twice; other columns repeat what these say. */
static void grid(void)
{
	for (int i = 0; i < 12; i++) {
		bool is_big = i % 2;

		text("name", i % 2 ? "x" : "y");
		text("server.gpu", is_big ? "B200" : "H100");
		text("gpu_model", is_big ? "b200" : "h100");
		number("server.max_num_batched_tokens", is_big ? 8192 : 2048);
		number("server.max_num_seqs", is_big && i > 5 ? 512 : 256);
		number("benchmark.max_concurrency", 1 << i / 2 % 3);
		number("load", 1 << i / 2 % 3);
		number("benchmark.seed", i);
		text("workload", "m \u00b7 random 8 in");
		text("server.model", "org/m");
		number("server.tensor_parallel_size", 1);
		number("server.pipeline_parallel_size", 1);
		text("server.dtype", "auto");
		number("median_ttft_ms", 10 + i);
		number("output_throughput", 100 + i);
		number("failed", 0);
		text("verdict", "VALID");
		number("timestamp", i);
		run();
	}
}

static void same(void **state)
{
	(void)state;
	begin();
	grid();
	split();
	assert_int_equal(column("gpu_model")->same_as.n, 0);
	assert_true(str_is(column("server.gpu")->same_as, "gpu_model"));
	assert_true(str_is(column("server.max_num_batched_tokens")->same_as, "gpu_model"));
	assert_true(str_is(column("load")->same_as, "benchmark.max_concurrency"));
	assert_int_equal(column("server.max_num_seqs")->same_as.n, 0);
	assert_int_equal(column("server.model")->same_as.n, 0); /* constants are not the same */
	assert_null(columns_split_find(&rig.split, STR("median_ttft_ms")));
	assert_null(columns_split_find(&rig.split, STR("verdict")));
	end();
}

static void shown(void **state)
{
	const struct filter one = { .kind = FILTER_RANGE, .column = STR("benchmark.seed"),
				    .min = 0, .max = 5 };

	(void)state;
	begin();
	grid();
	split();
	expect_columns("name gpu_model benchmark.max_concurrency server.max_num_seqs "
		       "output_throughput median_ttft_ms verdict timestamp");
	expect_constants("{\"constants\": [{\"column\": \"workload\", \"label\": \"Workload\", "
			 "\"value\": \"m \\u00b7 random 8 in\"}, {\"column\": "
			 "\"server.tensor_parallel_size\", \"label\": \"tensor_parallel_size\", "
			 "\"value\": 1}], \"constants_total\": 5}");
	index_view_release(rig.view);
	/* Of the first six runs max_num_seqs is the same. */
	rig.query = (struct query){ .filter = &one };
	split();
	expect_columns("name gpu_model benchmark.max_concurrency output_throughput median_ttft_ms "
		       "verdict timestamp");
	end();
}

/* Four at most, the load among them; what follows from those before has no column. */
static void at_most_four(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 256; i++) {
		char commit[16];

		snprintf(commit, sizeof(commit), "c%d", i % 4);
		text("gpu_model", i & 4 ? "a" : "b");
		text("provenance.engine_commit", commit);
		text("server.quantization", i & 8 ? "fp8" : "none");
		number("server.tensor_parallel_size", i & 16 ? 2 : 1);
		number("benchmark.max_concurrency", i & 32 ? 8 : 1);
		number("server.decode_base_us", i % 4 > 1 ? 7 : 6);
		number("tokens_per_s_per_gpu", i + 1);
		number("output_throughput", i + 1);
		number("failed", i == 9);
		run();
	}
	split();
	assert_true(column("server.decode_base_us")->differs);
	expect_columns("gpu_model provenance.engine_commit server.quantization "
		       "benchmark.max_concurrency tokens_per_s_per_gpu failed");
	end();
}

/* Runs without a server: the time of a batch. */
static void offline(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 10; i++) {
		number("avg_latency", 1 + i);
		number("server.tensor_parallel_size", 1 << i % 3);
		if (i == 0)
			text("gpu_model", "h100");
		run();
	}
	split();
	assert_false(column("gpu_model")->differs); /* one stray */
	expect_columns("server.tensor_parallel_size avg_latency");
	expect_constants("{\"constants\": [], \"constants_total\": 0}");
	end();
	begin();
	split();
	expect_columns("");
	expect_constants("{\"constants\": [], \"constants_total\": 0}");
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strays), cmocka_unit_test(same), cmocka_unit_test(shown),
		cmocka_unit_test(at_most_four), cmocka_unit_test(offline),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("web_split", tests, NULL, NULL);
}
