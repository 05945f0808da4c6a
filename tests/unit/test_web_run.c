/* SPDX-License-Identifier: Apache-2.0 */
/* A single run: badges, command lines; foreign JSON made strict; which columns split. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "web/api.h"
#include "answers.h"

#define COUNT(table) (sizeof(table) / sizeof(*(table)))

/* A row of the members of a JSON object; "inf" is a number. */
static struct row row_of(const char *json, struct arena *a)
{
	struct json_value *v = NULL;
	struct row r = { .id = 1 };

	assert_int_equal(json_parse(a, str_of(json), &v, NULL), 0);
	r.n = v->count;
	r.cell = arena_alloc(a, (r.n + 1) * sizeof(*r.cell));
	for (size_t i = 0; i < r.n; i++) {
		const struct json_value *m = &v->item[i];
		struct value *out = &r.cell[i].value;

		r.cell[i].column = v->key[i];
		*out = (struct value){ .kind = VALUE_NULL };
		if (m->kind == JSON_STRING && str_is(m->text, "inf"))
			*out = (struct value){ .kind = VALUE_NUMBER, .number = INFINITY };
		else if (m->kind == JSON_STRING)
			*out = (struct value){ .kind = VALUE_TEXT, .text = m->text };
		else if (m->kind == JSON_INT || m->kind == JSON_REAL)
			*out = (struct value){ .kind = VALUE_NUMBER, .number = json_real(m, 0) };
		else if (m->kind == JSON_TRUE || m->kind == JSON_FALSE)
			*out = (struct value){ .kind = VALUE_BOOL,
					       .is_true = m->kind == JSON_TRUE };
	}
	return r;
}

#define GOOD "\"server.model\": \"m\", \"hardware.gpu\": \"H100\", \"completed\": 1000, \"failed\": 0"

static const struct {
	const char *cells, *document;
	unsigned flags;
	const char *badges;
} judged[] = {
	{ "{" GOOD "}", "{}", 0, "good:fine" },
	{ "{" GOOD "}", "{\"config\": {}, \"schema_version\": 1}", 0, "good:fine" },
	{ "{" GOOD "}", "{\"config\": {}}", 0, "warn:no_schema_version" },
	{ "{" GOOD "}", "{}", INDEX_EXCLUDED | INDEX_SUPERSEDED, "warn:excluded warn:superseded" },
	{ "{" GOOD "}", "{}", INDEX_ARCHIVED, "warn:archived" },
	{ "{" GOOD ", \"verdict\": \"VALID\"}", "{}", 0, "good:fine" },
	{ "{" GOOD ", \"verdict\": \"DEGRADED\"}", "{}", 0, "warn:verdict" },
	{ "{" GOOD ", \"verdict\": \"INVALID\"}", "{}", 0, "bad:verdict" },
	{ "{" GOOD ", \"status\": \"completed\", \"profiled\": false}", "{}", 0, "good:fine" },
	{ "{" GOOD ", \"status\": \"failed\", \"profiled\": true}", "{}", 0,
	  "bad:status warn:profiled" },
	{ "{\"server.model\": \"m\", \"environment.x\": 1, \"completed\": 99, \"failed\": 1}", "{}", 0,
	  "warn:failed warn:few_requests" },
	{ "{\"server.model\": \"m\", \"environment.x\": 1, \"completed\": 99, \"failed\": 0, "
	  "\"mode\": \"latency\"}", "{}", 0, "warn:few_requests" },
	{ "{\"server.model\": \"m\", \"environment.x\": 1, \"completed\": 99, \"failed\": 0, "
	  "\"mode\": \"throughput\"}", "{}", 0, "good:fine" },
	{ "{\"server.model\": \"m\", \"environment.x\": 1, \"completed\": 100, \"failed\": 6}", "{}", 0,
	  "bad:failed" },
	{ "{\"server.model\": \"m\", \"environment.x\": 1, \"failed\": 6}", "{}", 0, "bad:failed" },
	{ "{\"server.model\": \"m\", \"environment.x\": 1, \"completed\": 500, "
	  "\"benchmark.num_prompts\": 1000}", "{}", 0, "warn:uncounted" },
	{ "{\"server.model\": \"m\", \"environment.x\": 1, \"completed\": 500, "
	  "\"benchmark.num_prompts\": 500}", "{}", 0, "good:fine" },
	{ "{}", "{}", 0, "warn:no_environment warn:no_model" },
	{ "{\"completed\": null, \"verdict\": 3}", "{}", 0, "warn:no_environment warn:no_model" },
};

static void badges(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(judged); i++) {
		struct arena a = { 0 };
		struct buf text = { 0 }, got = { 0 };
		struct json_writer w = json_writer(&text);
		struct row r = row_of(judged[i].cells, &a);
		struct json_value *document = NULL, *list = NULL;

		assert_int_equal(json_parse(&a, str_of(judged[i].document), &document, NULL), 0);
		run_put_badges(&w, &r, judged[i].flags, document);
		assert_int_equal(json_parse(&a, buf_str(&text), &list, NULL), 0);
		for (size_t k = 0; k < list->count; k++)
			buf_printf(&got, "%s%s:%s", k ? " " : "",
				   json_get(&list->item[k], "level")->text.p,
				   json_get(&list->item[k], "code")->text.p);
		print_message("# %s\n", judged[i].cells);
		assert_string_equal(got.data, judged[i].badges);
		answers_release(&got);
		buf_release(&text);
		arena_release(&a);
	}
}

static const struct { const char *cells, *document, *lines; } repeated[] = {
	{ "{\"server.model\": \"m/x\", \"server.tensor_parallel_size\": 4, \"server.dtype\": \"auto\","
	  " \"server.enable_prefix_caching\": false, \"server.max_model_len\": null,"
	  " \"server.served_model_name\": \"[\\\"a b\\\", \\\"c\\\"]\", \"server.unheard_of\": 1,"
	  " \"benchmark.request_rate\": \"inf\", \"benchmark.num_prompts\": 1000,"
	  " \"benchmark.ignore_eos\": true, \"benchmark.no_stream\": false,"
	  " \"benchmark.dataset_path\": \"it's here.json\", \"benchmark.max_concurrency\": null}", "{}",
	  "vllm serve m/x --tensor-parallel-size 4 --no-enable-prefix-caching "
	  "--served-model-name 'a b' c\n"
	  "profllm bench serve --model m/x --ignore-eos "
	  "--dataset-path 'it'\\''s here.json'\n" },
	{ "{\"mode\": \"latency\", \"server.model\": \"m\", \"server.compilation_config.level\": 3,"
	  " \"benchmark.batch_size\": 8}", "{\"config\": {\"given\": null}}",
	  "profllm bench latency --model m --compilation-config.level 3 --batch-size 8\n" },
	{ "{\"server.model\": \"m\"}", "{\"config\": {\"given\": {\"server\": {\"model\": \"m\"}}}}",
	  "profllm run --config - --output results.json <<'EOF'\n"
	  "{\n  \"server\": {\n    \"model\": \"m\"\n  }\n}\nEOF\n" },
	{ "{}", "{}", "profllm bench serve\n" },
	{ "{\"server.model\": \"m\", \"benchmark.threads\": 9}",
	  "{\"profllm\": {\"options\": {\"model\": \"m\", \"seed\": 0, \"dataset_name\": \"random\","
	  " \"random_input_len\": 8, \"sonnet_input_len\": 9, \"random_mm_x\": 1, \"n\": null,"
	  " \"goodput\": [\"ttft:100\", \"itl:5\"], \"extra_body\": {\"a b\": [1, true]},"
	  " \"ignore_eos\": true, \"no_stream\": false, \"request_rate\": \"inf\"}}}",
	  "profllm bench serve --model m --seed 0 "
	  "--random-input-len 8 --goodput ttft:100 itl:5 --extra-body '{\"a b\": [1, true]}' "
	  "--ignore-eos\n" },
	{ "{\"server.model\": \"m\", \"environment.server.version\": \"0.13.0\"}",
	  "{\"profllm\": {\"options\": {\"host\": \"127.0.0.1\", \"port\": 46369, \"threads\": 1,"
	  " \"burstiness\": 1.0, \"num_prompts\": 60, \"result_filename\": \"old.json\"}}}",
	  "vllm serve m\nprofllm bench serve --model m --num-prompts 60\n" },
	{ "{\"server.model\": \"m\"}",
	  "{\"profllm\": {\"options\": {\"host\": \"gpu7\", \"port\": 8000}}}",
	  "profllm bench serve --model m --host gpu7 --port 8000\n" },
	/* Neither a port of the kernel's choice and its host nor the result's place is shown. */
	{ "{\"server.model\": \"m\", \"benchmark.host\": \"gpu7\", \"benchmark.port\": 32768,"
	  " \"benchmark.result_dir\": \"old\", \"benchmark.output_json\": \"old.json\","
	  " \"benchmark.model\": \"m\", \"benchmark.self_timed\": false}", "{}",
	  "profllm bench serve --model m\n" },
	{ "{\"server.model\": \"m\", \"benchmark.host\": \"gpu7\", \"benchmark.port\": 32767,"
	  " \"benchmark.dataset_name\": \"timed_trace\", \"benchmark.self_timed\": false}", "{}",
	  "profllm bench serve --model m --host gpu7 --port 32767 --dataset-name timed_trace "
	  "--no-self-timed\n" },
	/* A result of vLLM, which names none of its options. */
	{ "{\"mode\": \"latency\", \"server.model\": \"m\", \"avg_latency\": 1}", "{}",
	  "profllm bench latency --model m\n"
	  "# Add the lengths and the engine's arguments, which the result does not name\n" },
	{ "{\"mode\": \"throughput\"}", "{}", "profllm bench throughput\n"
	  "# Add the model, the lengths and the engine's arguments, which the result does not name\n" },
};

static void reproduce(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(repeated); i++) {
		struct arena a = { 0 };
		struct buf text = { 0 }, got = { 0 };
		struct json_writer w = json_writer(&text);
		struct row r = row_of(repeated[i].cells, &a);
		struct json_value *document = NULL, *list = NULL;

		assert_int_equal(json_parse(&a, str_of(repeated[i].document), &document, NULL), 0);
		run_put_reproduce(&w, &r, document, &a);
		assert_int_equal(json_parse(&a, buf_str(&text), &list, NULL), 0);
		for (size_t k = 0; k < list->count; k++)
			buf_printf(&got, "%s\n", list->item[k].text.p);
		assert_string_equal(got.data, repeated[i].lines);
		answers_release(&got);
		buf_release(&text);
		arena_release(&a);
	}
}

static const struct { const char *in, *out; } foreign[] = {
	{ "{\"a\": 1}", "{\"a\": 1}" },
	{ "NaN", "null" },
	{ "[NaN,Infinity, -Infinity]", "[null,\"inf\", \"-inf\"]" },
	{ "{\"NaN\": \"Infinity\", \"b\\\"NaN\": NaN}", "{\"NaN\": \"Infinity\", \"b\\\"NaN\": null}" },
	{ "\"\\\\\"", "\"\\\\\"" },
	{ "[-1, \"-Infinity\"]", "[-1, \"-Infinity\"]" },
};

static void strict(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(foreign); i++) {
		struct buf text = { 0 };
		struct json_writer w = json_writer(&text);

		json_put_foreign(&w, str_of(foreign[i].in));
		assert_string_equal(text.data, foreign[i].out);
		buf_release(&text);
	}
}

static const struct { double number; const char *out; } numbers[] = {
	{ 0, "0" }, { -0.0, "-0.0" }, { 5, "5" }, { -5, "-5" }, { 0.1, "0.1" }, { 1e300, "1e+300" },
	{ 9007199254740991, "9007199254740991" }, { INFINITY, "\"inf\"" }, { -INFINITY, "\"-inf\"" },
	{ NAN, "null" },
};

static void spells_numbers(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(numbers); i++) {
		struct buf text = { 0 };
		struct json_writer w = json_writer(&text);

		value_put_number(&w, numbers[i].number);
		assert_string_equal(text.data, numbers[i].out);
		buf_release(&text);
	}
}

static void entropy(void **state)
{
	const size_t even[] = { 5, 5, 5, 5 }, one[] = { 0, 7, 0 }, uneven[] = { 3, 1 };

	(void)state;
	assert_true(filters_entropy(even, 4) == 2);
	assert_true(filters_entropy(one, 3) == 0);
	assert_true(filters_entropy(NULL, 0) == 0);
	assert_true(fabs(filters_entropy(uneven, 2) - 0.8112781244591328) < 1e-12);
}

/* An index of n runs: even, uneven and no differences, a name each, a measurement. */
static struct index *make_index(size_t n)
{
	struct index *x = index_make();
	struct err e = { 0 };

	for (size_t i = 0; i < n; i++) {
		char name[32];
		struct cell cell[] = {
			{ STR("tags.same"), { .kind = VALUE_NUMBER, .number = 1 } },
			{ STR("tags.uneven"), { .kind = VALUE_NUMBER, .number = i % 50 == 0 } },
			{ STR("run_id"), { .kind = VALUE_TEXT } },
			{ STR("median_ttft_ms"), { .kind = VALUE_NUMBER, .number = (double)i } },
			{ STR("tags.even"), { .kind = VALUE_NUMBER, .number = (double)(i % 4) } },
		};
		struct row r = { .id = (int64_t)i + 1, .cell = cell, .n = COUNT(cell) };

		snprintf(name, sizeof(name), "run-%zu", i);
		cell[2].value.text = str_of(name);
		assert_int_equal(index_add(x, &r, 0, &e), 0);
	}
	return x;
}

/* The columns chosen, each followed by a space. */
static void choose(size_t runs, struct buf *out)
{
	struct index *x = make_index(runs);
	struct index_view *v = index_view(x);
	struct query q = { .facet_values_max = 20, .histogram_bins = 24 };
	struct arena a = { 0 };
	struct err e = { 0 };

	assert_int_equal(filters_auto_facets(v, &q, &a, &e), 0);
	for (size_t i = 0; i < q.n_facets; i++)
		buf_printf(out, "%.*s ", (int)q.facet[i].n, q.facet[i].p);
	index_view_release(v);
	index_free(x);
	arena_release(&a);
}

static void splitting_columns_first(void **state)
{
	struct buf few = { 0 };

	(void)state;
	choose(200, &few);
	assert_true(str_starts(buf_str(&few), STR("tags.even tags.uneven ")));
	assert_null(strstr(few.data, "tags.same"));
	buf_release(&few);
}

/* Beyond what is counted exactly, parameters alone are looked at, in the newest runs. */
static void splitting_columns_of_many(void **state)
{
	struct buf many = { 0 };

	(void)state;
	choose(FILTERS_EXACT_CELLS_MAX / 2 + 1, &many);
	assert_true(str_starts(buf_str(&many), STR("tags.even tags.uneven ")));
	assert_null(strstr(many.data, "tags.same"));
	buf_release(&many);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(badges),
		cmocka_unit_test(reproduce),
		cmocka_unit_test(strict),
		cmocka_unit_test(spells_numbers),
		cmocka_unit_test(entropy),
		cmocka_unit_test(splitting_columns_first),
		cmocka_unit_test(splitting_columns_of_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
