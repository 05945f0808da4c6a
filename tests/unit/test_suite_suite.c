/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_suite_suite.c - the experiments of a configuration, their names and their order; what is
 * kept; imported tests and searches after them; commands as texts; times of a plan.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/file.h"
#include "core/base/str.h"
#include "core/json/write.h"
#include "experiment/suite/import.h"
#include "experiment/suite/suite.h"
#include "experiment/suite/suite_internal.h"
/* Plans repeat themselves: the beginnings say it. */
#define ANSWER_HEAD_BYTES 2000
#define ANSWERS_MAX 32
#include "answers.h"
#include "scratch.h"

#define ROWS(x) (sizeof(x) / sizeof(*(x)))
#define SIM "server: {command: sim, model: sim}\nbenchmark: {tokenizer: sim}\n"

struct made {
	struct arena arena;
	struct config c;
	struct suite s;
	struct config_findings f;
	struct buf text;
	int rc;
};

static void make_as(struct made *m, const char *text, const char *set, const struct suite_opts *o)
{
	static const struct config_know nothing;
	const char *const sets[] = { set };
	struct err e;

	*m = (struct made){ 0 };
	if (config_parse(str_of(text), "suite.yaml", sets, set != NULL, &m->arena, &m->c, &e) < 0)
		fail_msg("%s: %s", text, e.text);
	m->rc = suite_expand(&m->c, &nothing, o, &m->s, &m->f);
}

/* Its plan as a text and as JSON. */
static void check_plan(const struct suite *s, const struct suite_opts *o)
{
	struct buf text = { 0 }, json = { 0 };

	suite_plan_text(s, o, &text);
	suite_plan_json(s, o, &json);
	answers_release(&text);
	answers_release(&json);
}

static void make(struct made *m, const char *text)
{
	static const struct suite_opts o = { .output = "out/r.json" };

	make_as(m, text, NULL, &o);
	if (m->rc < 0)
		fail_msg("%s: %s", text, m->f.errors.data);
	check_plan(&m->s, &o);
}

static void drop(struct made *m)
{
	suite_release(&m->s);
	config_findings_release(&m->f);
	buf_release(&m->text);
	arena_release(&m->arena);
}

/* Labels in the order of running, with blanks between. */
static const char *order(struct made *m)
{
	buf_reset(&m->text);
	for (size_t i = 0; i < m->s.n; i++)
		buf_printf(&m->text, "%s%s", i ? " " : "", m->s.member[m->s.order[i]].label);
	return m->text.data;
}

static void names(void **state)
{
	static const struct { const char *more, *want; } row[] = {
		{ "name: one", "one" },
		{ "name: one\nrepeat: 2", "one-r1 one-r2" },
		{ "matrix: {server.max_num_seqs: [4, 8], benchmark.request_rate: [2, inf]}",
		  "max_num_seqs=4-request_rate=2 max_num_seqs=4-request_rate=inf "
		  "max_num_seqs=8-request_rate=2 max_num_seqs=8-request_rate=inf" },
		{ "matrix: {server.seed: [1], benchmark.seed: [2]}", "server.seed=1-benchmark.seed=2" },
		{ "matrix: {server.enforce_eager: [true, false]}",
		  "enforce_eager=true enforce_eager=false" },
		{ "matrix: {server.speculative_config: [{method: mtp}, null]}",
		  "speculative_config={\"method\":\"mtp\"} speculative_config=null" },
		{ "matrix: [{server.seed: [1, 2]}, {benchmark.seed: [3]}]", "seed=1 seed=2 seed=3" },
		/* Nested keys, and those of one section alone. */
		{ "matrix: {server: {max-num-seqs: [4, 8], compilation_config: {mode: [3]}}, "
		  "num_prompts: [1]}", "max_num_seqs=4-mode=3-num_prompts=1 max_num_seqs=8-mode=3-"
				       "num_prompts=1" },
		{ "matrix: {max_num_seqs: [4, 8], server: {block-size: [16, 32]}}\n"
		  "matrix_exclude: [{max_num_seqs: 4, server.block-size: 16}]",
		  "max_num_seqs=4-block_size=32 max_num_seqs=8-block_size=16 "
		  "max_num_seqs=8-block_size=32" },
		{ "matrix: {speculative_config.method: [mtp, eagle], extra_body: {top_k: [1]}}",
		  "method=mtp-top_k=1 method=eagle-top_k=1" },
		{ "matrix: {profile: [latency, throughput]}", "profile=latency profile=throughput" },
		/* A reference has a name by what it leads to. */
		{ "matrix: {server.max_num_seqs: [4, 8], benchmark.max_concurrency: "
		  "[\"${server.max_num_seqs}\"]}", "max_num_seqs=4-max_concurrency=4 "
		  "max_num_seqs=8-max_concurrency=8" },
		{ "experiments: [{name: a}, {name: b}]", "a b" },
		{ "experiments: [{name: a}, {name: b}]\nmatrix: {server.seed: [1, 2]}\nrepeat: 2",
		  "a-seed=1-r1 b-seed=1-r1 a-seed=2-r1 b-seed=2-r1 "
		  "a-seed=1-r2 b-seed=1-r2 a-seed=2-r2 b-seed=2-r2" },
		{ "matrix: {server.seed: [1, 2], benchmark.seed: [1, 2]}\n"
		  "matrix_exclude: [{server.seed: 1, benchmark.seed: 2}, {server.seed: 2, "
		  "benchmark.seed: 1}]", "server.seed=1-benchmark.seed=1 server.seed=2-benchmark.seed=2" },
	};

	(void)state;
	for (size_t i = 0; i < ROWS(row); i++) {
		struct buf text = { 0 };
		struct made m;

		buf_printf(&text, "%s%s", SIM, row[i].more);
		make(&m, text.data);
		assert_string_equal(order(&m), row[i].want);
		drop(&m);
		buf_release(&text);
	}
}

/* The document of one is the output itself; others lie in its folder under safe names. */
static void files(void **state)
{
	struct made m;

	(void)state;
	make(&m, SIM "name: one\nmatrix: null\nexperiments: null\nimport: null");
	assert_true(m.s.is_single);
	assert_string_equal(m.s.member[0].path, "out/r.json");
	assert_string_equal(m.s.member[0].x.output.folder, "out/r.d");
	drop(&m);
	make(&m, SIM "experiments: [{name: ../a/b}]\nrepeat: 2");
	assert_false(m.s.is_single);
	assert_string_equal(m.s.output, "out/r.json");
	assert_string_equal(m.s.member[1].path, "out/r.d/___a_b-r2.json");
	assert_string_equal(m.s.member[1].folder, "out/r.d/___a_b-r2");
	assert_int_equal(m.s.member[1].x.repeat, 2);
	assert_int_equal(m.s.member[1].x.repeats, 2);
	assert_true(m.s.member[0].x.hash == m.s.member[1].x.hash);
	drop(&m);
	make(&m, SIM "output: {folder: logs, path: p.json}\nmatrix: {server.seed: [1]}");
	assert_string_equal(m.s.member[0].path, "logs/seed=1.json");
	drop(&m);
}

static void values(void **state)
{
	static const struct suite_opts o = { .output = "r.json" };
	struct made m;

	(void)state;
	make(&m, SIM "experiments: [{name: a, server: {seed: 5}}, {name: b}]\nsuite: s");
	assert_int_equal(json_int(json_get(m.s.member[0].x.server[0].values, "seed"), 0), 5);
	assert_string_equal(m.s.member[1].x.suite, "s");
	assert_false(suite_same_servers(&m.s.member[0].x, &m.s.member[1].x));
	drop(&m);
	make_as(&m, SIM "experiments: [{name: a, server: {seed: 5}}, {name: b}]", "server.seed=7", &o);
	assert_int_equal(m.rc, 0); /* --set takes precedence over the list */
	for (int i = 0; i < 2; i++)
		assert_int_equal(json_int(json_get(m.s.member[i].x.server[0].values, "seed"), 0), 7);
	assert_true(suite_same_servers(&m.s.member[0].x, &m.s.member[1].x));
	drop(&m);
	make_as(&m, SIM "matrix: {server.seed: [1, 2]}", "server.seed=7", &o);
	assert_int_equal(json_int(json_get(m.s.member[1].x.server[0].values, "seed"), 0), 2);
	drop(&m);
}

static void member_of_another(void **state)
{
	static const struct suite_opts second = { .output = "d/a.json", .member = "2/3:d/up/a" };
	static const struct suite_opts wrong = { .output = "d/a.json", .member = "4/3" };
	struct made m;

	(void)state;
	make_as(&m, SIM "name: a", NULL, &second);
	assert_int_equal(m.rc, 0);
	assert_true(m.s.is_single);
	assert_int_equal(m.s.n, 1);
	assert_string_equal(m.s.member[0].label, "a");
	assert_int_equal(m.s.member[0].x.repeat, 2);
	assert_int_equal(m.s.member[0].x.repeats, 3);
	drop(&m);
	make_as(&m, SIM "name: a", NULL, &wrong);
	assert_int_equal(m.rc, -1);
	assert_non_null(strstr(m.f.errors.data, "expected I/N@HASH, got '4/3'"));
	drop(&m);
}

/* ---- the order ---- */

static void shuffled(void **state)
{
	static const char text[] = SIM "matrix: {server.seed: [1, 2, 3, 4, 5, 6]}\nrepeat: 3\nshuffle: ";
	char *first = NULL;

	(void)state;
	for (int seed = 0; seed < 20; seed++) {
		struct buf whole = { 0 };
		bool seen[18] = { false };
		struct made m;

		buf_printf(&whole, "%s%d", text, seed);
		make(&m, whole.data);
		for (size_t i = 0; i < 18; i++) {
			size_t at = m.s.order[i];

			assert_false(seen[at]);
			seen[at] = true;
			assert_int_equal(m.s.member[at].x.repeat, i / 6 + 1);
		}
		assert_int_equal(m.s.seed, seed);
		if (seed == 0)
			first = strdup(order(&m));
		else
			assert_string_not_equal(order(&m), first);
		drop(&m);
		buf_release(&whole);
	}
	free(first);
}

/* Members with the same servers follow each other, in every round. */
static void put_together(void **state)
{
	static const char text[] = SIM "matrix: {benchmark.seed: [1, 2, 3], server.seed: [1, 2]}\n"
				       "repeat: 2\nrestart: on-change\n";
	const char *const more[] = { "", "shuffle: 5" };

	(void)state;
	for (size_t k = 0; k < ROWS(more); k++) {
		struct buf whole = { 0 };
		size_t changes = 0;
		struct made m;

		buf_printf(&whole, "%s%s", text, more[k]);
		make(&m, whole.data);
		for (size_t i = 1; i < m.s.n; i++)
			changes += !suite_same_servers(&m.s.member[m.s.order[i - 1]].x,
						       &m.s.member[m.s.order[i]].x);
		assert_in_range(changes, 2, 3); /* two rounds of two servers */
		drop(&m);
		buf_release(&whole);
	}
}

/* How often servers are started, by the order of running. */
static size_t starts(const struct made *m)
{
	size_t n = m->s.n > 0;

	for (size_t i = 1; i < m->s.n; i++)
		n += !suite_keeps_servers(&m->s, &m->s.member[m->s.order[i - 1]],
					  &m->s.member[m->s.order[i]]);
	return n;
}

static void server_starts(void **state)
{
	static const char matrix[] = "matrix: {benchmark.seed: [1, 2, 3], server.seed: [1, 2]}\n";
	static const char other[] = "server: {command: [my-server]}\n"
				    "benchmark: {model: m, tokenizer: sim}\n";
	const struct { const char *text, *more; size_t want; } row[] = {
		{ SIM, matrix, 2 }, { SIM, "repeat: 3\n", 3 },
		{ SIM, "restart: on-repeat\nrepeat: 3\n", 3 },
		{ SIM, "restart: on-change\nrepeat: 3\n", 1 },
		{ SIM, "restart: never\nrepeat: 3\n", 1 },
		{ SIM, "matrix: {benchmark.seed: [1, 2]}\nrepeat: 3\n", 3 },
		{ SIM, "matrix: {benchmark.seed: [1, 2]}\nrepeat: 3\nrestart: always\n", 6 },
		{ SIM, "matrix: {benchmark.seed: [1, 2]}\nrepeat: 3\njobs: 2\n", 6 },
		{ SIM, "matrix: {profiling.delay_s: [1, 2]}\n", 2 },
		{ SIM, "matrix: {resources.wait_s: [1, 2]}\n", 2 },
		/* There is no known way to empty its caches. */
		{ other, "matrix: {benchmark.seed: [1, 2]}\n", 2 },
		{ other, "matrix: {benchmark.seed: [1, 2]}\nrestart: on-change\n", 1 },
	};

	(void)state;
	for (size_t i = 0; i < ROWS(row); i++) {
		struct buf text = { 0 };
		struct made m;

		buf_printf(&text, "%s%s", row[i].text, row[i].more);
		make(&m, text.data);
		if (starts(&m) != row[i].want)
			fail_msg("%s: %zu starts", text.data, starts(&m));
		drop(&m);
		buf_release(&text);
	}
}

/* Fewer starts are no reason to give up a random order. */
static void shuffled_servers(void **state)
{
	static const char text[] = SIM "matrix: {benchmark.seed: [1, 2, 3], server.seed: [1, 2]}\n"
				       "shuffle: 3\n";
	struct buf whole = { 0 };
	struct made plain, always;

	(void)state;
	buf_printf(&whole, "%srestart: always\n", text);
	make(&always, whole.data);
	make(&plain, text);
	assert_int_equal(plain.s.restart, SUITE_RESTART_ON_REPEAT);
	for (size_t i = 0; i < plain.s.n; i++)
		assert_int_equal(plain.s.order[i], always.s.order[i]);
	drop(&plain);
	drop(&always);
	buf_release(&whole);
}

static void only(void **state)
{
	static const char *const patterns[] = { "*=4", "max_num_seqs=1-r2", NULL };
	static const struct suite_opts o = { .output = "r.json", .only = patterns };
	struct made m;

	(void)state;
	make_as(&m, SIM "matrix: {server.max_num_seqs: [1, 4]}\nrepeat: 2", NULL, &o);
	assert_int_equal(m.rc, 0);
	assert_false(m.s.member[0].is_chosen);
	assert_true(m.s.member[1].is_chosen);
	assert_true(m.s.member[2].is_chosen && m.s.member[3].is_chosen);
	drop(&m);
}

/* ---- what is kept ---- */

static void done(void **state)
{
	char *path = file_join(dir, "kept.json");
	struct suite_member m = { .path = path, .x = { .hash = 0xabcd } };
	static const struct { const char *text; bool want; } row[] = {
		{ "{\"status\": \"completed\", \"config\": {\"configured_hash\": \"000000000000abcd\"}}", true },
		{ "{\"status\": \"partial\", \"config\": {\"configured_hash\": \"000000000000abcd\"}}", false },
		{ "{\"status\": \"failed\", \"config\": {\"configured_hash\": \"000000000000abcd\"}}", false },
		{ "{\"status\": \"completed\", \"config\": {\"configured_hash\": \"000000000000abce\"}}", false },
		{ "{\"status\": \"completed\"}", false }, { "{\"status\": \"compl", false },
		{ "[]", false }, { "", false },
	};

	(void)state;
	assert_false(suite_is_done(&m));
	for (size_t i = 0; i < ROWS(row); i++) {
		assert_int_equal(file_write_atomic(path, str_of(row[i].text), NULL), 0);
		if (suite_is_done(&m) != row[i].want)
			fail_msg("%s", row[i].text);
	}
	free(path);
}

/* ---- commands ---- */

static void quoting(void **state)
{
	static const char *const word[] = {
		"plain", "", " ", "it's", "''", "a\"b", "a\\b", "$HOME", "`x`", "*", "~", "#", "a\nb",
		"--x=y z", "{\"a\": 1}", "\xc3\xa9", "a;b|c&d", "!", "[a]", "%", "x=1,y",
	};
	struct arena a = { 0 };

	(void)state;
	for (size_t i = 0; i < ROWS(word); i++) {
		struct buf text = { 0 };
		struct err e;
		char **back;
		size_t n;

		words_quote(&text, str_of(word[i]));
		buf_add_text(&text, " end");
		if (words_split(buf_str(&text), &a, &back, &n, &e) < 0)
			fail_msg("%s: %s", text.data, e.text);
		assert_int_equal(n, 2);
		assert_string_equal(back[0], word[i]);
		buf_release(&text);
	}
	arena_release(&a);
}

static void secrets(void **state)
{
	static const struct { const char *line, *want; } row[] = {
		{ "vllm serve m --port 1", "vllm serve m --port 1" },
		{ "vllm serve m --api-key abc --port 1", "vllm serve m --api-key '***' --port 1" },
		{ "vllm serve m --api-key abc def --port 1", "vllm serve m --api-key '***' '***' --port 1" },
		{ "vllm serve m --api-key=abc", "vllm serve m '--api-key=***'" },
		{ "x --hf-token abc", "x --hf-token '***'" },
		{ "x --tokenizer abc", "x --tokenizer abc" },
	};
	char *env[] = { "A=b c", "HF_TOKEN=hf_x", NULL };
	struct buf out = { 0 };
	struct arena a = { 0 };
	struct err e;

	(void)state;
	for (size_t i = 0; i < ROWS(row); i++) {
		char **argv;

		assert_int_equal(words_split(str_of(row[i].line), &a, &argv, NULL, &e), 0);
		buf_reset(&out);
		shell_words(&out, argv);
		assert_string_equal(out.data, row[i].want);
	}
	buf_reset(&out);
	shell_env(&out, env);
	assert_string_equal(out.data, "A='b c' HF_TOKEN='***'");
	answers_release(&out);
	arena_release(&a);
}

static void benchmark_command(void **state)
{
	static const struct { const char *given, *want; } row[] = {
		{ "{tokenizer: sim}", "vllm bench serve --base-url http://h:1 --tokenizer sim" },
		{ "{tokenizer: sim, request_rate: inf, ignore_eos: true, num_prompts: 3}",
		  "vllm bench serve --base-url http://h:1 --num-prompts 3 --tokenizer sim --request-rate inf "
		  "--ignore-eos" },
		{ "{tokenizer: sim, metadata: [a=b, 'c=d e'], header: [X-Y=z]}",
		  "vllm bench serve --base-url http://h:1 --header '***' --tokenizer sim --metadata a=b "
		  "'c=d e'" },
		{ "{mode: latency, batch_size: 2}", "vllm bench latency --backend=sim --batch-size=2 --model "
		  "sim" },
	};

	(void)state;
	for (size_t i = 0; i < ROWS(row); i++) {
		struct buf text = { 0 }, out = { 0 };
		struct made m;

		buf_printf(&text, "server: {command: sim, model: sim}\nbenchmark: %s", row[i].given);
		make(&m, text.data);
		shell_benchmark(&out, &m.s.member[0].x, "http://h:1");
		assert_string_equal(out.data, row[i].want);
		drop(&m);
		buf_release(&text);
		answers_release(&out);
	}
}

/* ---- times ---- */

static void schedule(void **state)
{
	static const struct { const char *given; double want; } row[] = {
		{ "{tokenizer: sim, num_prompts: 100, request_rate: 4}", 25 },
		{ "{tokenizer: sim, num_prompts: 90, request_rate: inf, ramp_up_strategy: linear, "
		  "ramp_up_start_rps: 1, ramp_up_end_rps: 5}", 30 },
		{ "{tokenizer: sim, num_prompts: 100}", NAN },
		{ "{tokenizer: sim, num_prompts: 100, duration: 30}", 30 },
		{ "{mode: latency, batch_size: 2}", NAN },
	};

	(void)state;
	for (size_t i = 0; i < ROWS(row); i++) {
		struct buf text = { 0 };
		struct made m;
		double s;

		buf_printf(&text, "server: {command: sim, model: sim}\nbenchmark: %s", row[i].given);
		make(&m, text.data);
		s = plan_load_s(&m.s.member[0].x);
		assert_true(isnan(row[i].want) ? isnan(s) : fabs(s - row[i].want) < 1e-9);
		drop(&m);
		buf_release(&text);
	}
}

/* ---- imported tests ---- */

static void imported(void **state)
{
	static const struct { const char *tests, *name, *want; } row[] = {
		{ "[{\"test_name\": \"serving_a\", \"qps_list\": [4], \"max_concurrency_list\": [2], "
		  "\"server_parameters\": {\"model\": \"m\", \"max-num-seqs\": \"8\", \"enforce_eager\": \"\", "
		  "\"gpu_memory_utilization\": \"0.5\", \"no_enable_prefix_caching\": \"\", "
		  "\"compilation_config\": \"{\\\"mode\\\": 3}\", \"brand_new\": 3}, "
		  "\"client_parameters\": {\"model\": \"m\", \"num_prompts\": \"20\", \"endpoint-type\": "
		  "\"openai\"}, \"server_environment_variables\": {\"X\": 1}}]",
		  "serving_a_qps_4_concurrency_2",
		  "{\"server\":{\"model\":\"m\",\"max_num_seqs\":8,\"enforce_eager\":true,"
		  "\"gpu_memory_utilization\":0.5,\"enable_prefix_caching\":false,"
		  "\"compilation_config\":{\"mode\":3},\"extra_args\":[\"--brand-new\",\"3\"],"
		  "\"env\":{\"X\":\"1\"}},\"benchmark\":{\"mode\":\"serve\",\"model\":\"m\","
		  "\"num_prompts\":20,\"backend\":\"openai\",\"request_rate\":4,\"max_concurrency\":2,"
		  "\"metadata\":[\"tensor_parallel_size=1\"]}}" },
		{ "[{\"test_name\": \"serving_b\", \"qps_list\": [\"inf\"], \"server_parameters\": {\"model\": "
		  "\"m\", \"tensor_parallel_size\": 2}, \"client_parameters\": {\"model\": \"m\", "
		  "\"num_prompts\": 7}}]", "serving_b_qps_inf_concurrency_7",
		  "{\"server\":{\"model\":\"m\",\"tensor_parallel_size\":2},\"benchmark\":{\"mode\":\"serve\","
		  "\"model\":\"m\",\"num_prompts\":7,\"request_rate\":\"inf\",\"max_concurrency\":7,"
		  "\"metadata\":[\"tensor_parallel_size=2\"]}}" },
		{ "[{\"test_name\": \"latency_c\", \"parameters\": {\"model\": \"m\", \"num-iters\": \"3\", "
		  "\"tensor_parallel_size\": 1}}]", "latency_c",
		  "{\"server\":{\"model\":\"m\",\"tensor_parallel_size\":1},\"benchmark\":{\"mode\":"
		  "\"latency\",\"num_iters\":3}}" },
	};
	static const struct import_opts o = IMPORT_DEFAULTS;

	(void)state;
	for (size_t i = 0; i < ROWS(row); i++) {
		struct import_list list = { 0 };
		struct buf text = { 0 };
		struct json_writer w = json_writer(&text);
		struct made m;

		make(&m, "server: {command: x}\nbenchmark: {tokenizer: sim}");
		if (import_parse(&m.c, str_of(row[i].tests), "t.json", &o, &m.arena, &list, &m.f) < 0)
			fail_msg("%s", m.f.errors.data);
		assert_int_equal(list.n, 1);
		assert_string_equal(list.v[0].name, row[i].name);
		w.is_compact = true;
		json_put_value(&w, list.v[0].over);
		assert_string_equal(text.data, row[i].want);
		drop(&m);
		buf_release(&text);
	}
}

/* How many of two tests are left with so many devices; the rest is noted. */
static void devices(void **state)
{
	static const char tests[] =
		"[{\"test_name\": \"latency_a\", \"parameters\": {\"model\": \"m\"}},"
		"{\"test_name\": \"latency_b\", \"parameters\": {\"model\": \"m\", "
		"\"tensor_parallel_size\": 2, \"pipeline_parallel_size\": 2}}]";
	static const struct { unsigned devices; size_t want; } row[] = {
		{ 0, 2 }, { 1, 1 }, { 3, 1 }, { 4, 2 }, { 8, 2 },
	};

	(void)state;
	for (size_t i = 0; i < ROWS(row); i++) {
		struct import_opts o = IMPORT_DEFAULTS;
		struct import_list list = { 0 };
		struct made m;

		o.devices = row[i].devices;
		make(&m, SIM);
		assert_int_equal(import_parse(&m.c, str_of(tests), "t.json", &o, &m.arena, &list,
					      &m.f), 0);
		assert_int_equal(list.n, row[i].want);
		assert_int_equal(m.f.n_notes, 2 - row[i].want);
		drop(&m);
	}
}

/* A system that passes up to a level; at the level "unknown" a run tells nothing. */
static void searches(void **state)
{
	static const struct {
		int64_t list[6];       /* ends with 0 */
		int64_t passes, probes, most, unknown;
		const char *asked;
		int64_t want_pass, want_fail;
	} row[] = {
		{ { 1, 2, 4 }, 3, 8, 1024, 0, "3", 3, 4 },
		{ { 4, 8, 16 }, 11, 8, 1024, 0, "12 10 11", 11, 12 },
		{ { 4, 8, 16 }, 11, 2, 1024, 0, "12 10", 10, 12 },
		{ { 4, 8, 16 }, 40, 8, 1024, 0, "24 40 72 56 48 44 42 41", 40, 41 },
		{ { 4, 8, 16 }, 40, 0, 1024, 0, "", 16, 0 },
		{ { 4, 8, 16 }, 5000, 8, 100, 0, "24 40 72 100", 100, 0 },
		{ { 4, 8 }, 3, 8, 1024, 0, "", 0, 0 },
		{ { 5 }, 12, 8, 1024, 0, "10 20 15 12 13", 12, 13 },
		{ { 4, 8, 16 }, 11, 8, 1024, 10, "12 10", 8, 12 },
		{ { 7 }, 7, 8, 7, 0, "", 7, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ROWS(row); i++) {
		struct import_opts o = IMPORT_DEFAULTS;
		struct adapt_point points[6];
		struct buf asked = { 0 };
		struct adapt a;
		size_t n = 0;

		o.adaptive_max_probes = row[i].probes;
		o.adaptive_max_concurrency = row[i].most;
		for (; row[i].list[n]; n++)
			points[n] = (struct adapt_point){ row[i].list[n],
				row[i].list[n] <= row[i].passes ? ADAPT_PASS : ADAPT_FAIL };
		adapt_begin(&a, &o, points, n);
		for (int64_t at; (at = adapt_next(&a)) != 0;) {
			buf_printf(&asked, "%s%lld", asked.len ? " " : "", (long long)at);
			adapt_take(&a, at, at == row[i].unknown ? ADAPT_UNKNOWN
				   : at <= row[i].passes ? ADAPT_PASS : ADAPT_FAIL, true);
		}
		assert_string_equal(asked.len ? asked.data : "", row[i].asked);
		assert_int_equal(a.last_pass, row[i].want_pass);
		assert_int_equal(a.first_fail, row[i].want_fail);
		buf_release(&asked);
	}
}

/* A failure before any pass is ignored; the first one after a pass ends the list. */
static void static_lists(void **state)
{
	static const struct adapt_point points[] = {
		{ 1, ADAPT_FAIL }, { 2, ADAPT_PASS }, { 4, ADAPT_UNKNOWN }, { 8, ADAPT_FAIL },
		{ 16, ADAPT_PASS },
	};
	static const struct import_opts o = IMPORT_DEFAULTS;
	struct adapt a;

	(void)state;
	adapt_begin(&a, &o, points, 5);
	assert_int_equal(a.static_last_pass, 2);
	assert_int_equal(a.static_first_fail, 8);
	assert_int_equal(adapt_next(&a), 5);
}

static void verdicts(void **state)
{
	static const struct { const char *text; enum adapt_verdict want; } row[] = {
		{ "{\"p99_ttft_ms\": 1, \"p99_tpot_ms\": 1, \"completed\": 99, \"failed\": 1}", ADAPT_PASS },
		{ "{\"p99_ttft_ms\": 1, \"p99_tpot_ms\": 1, \"completed\": 9, \"failed\": 1}", ADAPT_FAIL },
		{ "{\"p99_ttft_ms\": 1, \"p99_tpot_ms\": 1, \"completed\": 1, \"failed\": 9, \"profllm\": "
		  "{\"reasons\": [{\"level\": \"INVALID\", \"code\": \"failures\"}]}}", ADAPT_FAIL },
		{ "{\"p99_ttft_ms\": 1, \"p99_tpot_ms\": 1, \"completed\": 9, \"failed\": 0, \"profllm\": "
		  "{\"reasons\": [{\"level\": \"INVALID\", \"code\": \"client_cpu\"}]}}", ADAPT_UNKNOWN },
		{ "{\"p99_ttft_ms\": 3000, \"p99_tpot_ms\": 100}", ADAPT_PASS },
		{ "{\"p99_ttft_ms\": 3000.1, \"p99_tpot_ms\": 1}", ADAPT_FAIL },
		{ "{\"p99_ttft_ms\": 1, \"p99_tpot_ms\": 100.5}", ADAPT_FAIL },
		{ "{\"p99_ttft_ms\": 1}", ADAPT_UNKNOWN }, { "{\"p99_tpot_ms\": 1}", ADAPT_UNKNOWN },
		{ "{\"mean_ttft_ms\": 1, \"mean_itl_ms\": 101}", ADAPT_FAIL },
		{ "{\"p99_ttft_ms\": null, \"mean_ttft_ms\": 1, \"p99_itl_ms\": 1}", ADAPT_PASS },
		{ "{\"metrics\": {\"ttft_ms\": {\"p99\": 1}, \"tpot\": {\"p99\": 2}}}", ADAPT_PASS },
		{ "{\"p99_ttft_ms\": \"1\", \"p99_tpot_ms\": 1}", ADAPT_UNKNOWN },
		{ "[]", ADAPT_UNKNOWN },
	};
	static const struct import_opts o = IMPORT_DEFAULTS;
	struct arena a = { 0 };

	(void)state;
	for (size_t i = 0; i < ROWS(row); i++) {
		struct json_value *v;
		struct err e;

		assert_int_equal(json_parse(&a, str_of(row[i].text), &v, &e), 0);
		if (adapt_judge(v, &o) != row[i].want)
			fail_msg("%s", row[i].text);
	}
	arena_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names), cmocka_unit_test(files), cmocka_unit_test(values),
		cmocka_unit_test(member_of_another), cmocka_unit_test(shuffled),
		cmocka_unit_test(put_together), cmocka_unit_test(server_starts),
		cmocka_unit_test(shuffled_servers), cmocka_unit_test(only), cmocka_unit_test(done),
		cmocka_unit_test(quoting), cmocka_unit_test(secrets),
		cmocka_unit_test(benchmark_command), cmocka_unit_test(schedule),
		cmocka_unit_test(imported), cmocka_unit_test(devices),
		cmocka_unit_test(searches), cmocka_unit_test(static_lists),
		cmocka_unit_test(verdicts),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
