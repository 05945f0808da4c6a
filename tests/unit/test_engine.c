/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of engine arguments, command lines as vLLM's own parser reads them
 * (engine_golden.h), findings by version, what a command comes to.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>

#include "core/base/redact.h"
#include "core/json/read.h"
#include "core/json/write.h"
#include "engine_golden.h"
#include "host/engine/args.h"

#define ARGS_MAX 32

/* Cuts at blanks; text must stay. */
static void split(char *text, char *argv[ARGS_MAX])
{
	size_t n = 0;

	while (*text) {
		size_t len = strcspn(text, " ");
		bool is_last = !text[len];

		assert_true(n + 1 < ARGS_MAX);
		text[len] = 0;
		if (len)
			argv[n++] = text;
		text += len + !is_last;
	}
	argv[n] = NULL;
}

struct line {
	char text[512];
	char *argv[ARGS_MAX];
};

static char *const *line_of(struct line *l, const char *before, const char *args)
{
	snprintf(l->text, sizeof(l->text), "%s%s", before, args);
	split(l->text, l->argv);
	return l->argv;
}

static char *const *serve(struct line *l, const char *args)
{
	return line_of(l, "vllm serve ", args);
}

/* ---- the table ---- */

static void test_table(void **state)
{
	size_t n_old = 0, n_gone = 0;

	(void)state;
	assert_true(engine_arg_count > 330);
	for (size_t i = 0; i < engine_arg_count; i++) {
		const struct engine_arg *arg = &engine_args[i];

		assert_ptr_equal(engine_arg_find(str_of(arg->name)), arg);
		assert_true(strlen(arg->about) > 4);
		assert_true(arg->min <= arg->max);
		/* What is hidden goes by names alone. */
		assert_int_equal((arg->flags & ENGINE_SECRET) != 0,
				 redact_is_secret(str_of(arg->name)));
		n_old += !arg->since;
		n_gone += arg->until != 0;
		if (arg->initial && arg->kind != ENGINE_FLAG && arg->kind != ENGINE_SWITCH)
			assert_int_equal(engine_arg_check(arg, str_of(arg->initial), NULL), 0);
		for (const struct engine_earlier *was = arg->earlier; was && was->until; was++)
			assert_true(was->until >= engine_version_oldest &&
				    was->until < (arg->until ? arg->until : engine_version_newest));
	}
	assert_true(n_old > 180);
	assert_true(n_gone > 25);
	assert_null(engine_arg_find(STR("tensor-parallel")));
	assert_null(engine_arg_find(STR("")));
	assert_non_null(engine_arg_find(STR("max_num_seqs")));
}

static void test_versions(void **state)
{
	static const struct {
		const char *text;
		unsigned version;
	} cases[] = {
		{ "0.11", 11000 }, { "0.11.2", 11003 }, { "v0.12.0rc1", 12001 },
		{ "0.13.0+cu129", 13001 }, { "1.2", 1002000 }, { "0.12.x", 12000 },
		{ "0.18.2rc1.dev73+gdb7a17ecc", 18003 }, { "", 0 }, { "main", 0 },
		{ "12", 0 }, { "0.", 0 }, { "v", 0 }, { "99999.1", 0 }, { "0.99999", 0 },
		{ "0.11.99999", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(engine_version(cases[i].text), cases[i].version);
	assert_int_equal(engine_version(NULL), 0);
	assert_int_equal(engine_version_newest, 32999);
}

/* Which release's defaults hold; why: there is none that is known. */
static void test_releases(void **state)
{
	static const struct {
		const char *text;
		unsigned version;
		const char *why;
	} cases[] = {
		{ "0.11.0", 11001, NULL }, { "v0.32.0", 32001, NULL }, { "0.13", 13000, NULL },
		{ "0.13.0+cu129", 13001, NULL }, { "0.14.0.post1", 14001, NULL },
		{ "0.12.0.1", 12001, NULL }, { "0.12.0rc1", 0, "development version" },
		{ "0.18.2rc1.dev73+gdb7a17ecc", 0, "development version" },
		{ "0.12.dev5", 0, "development version" }, { "0.10.2", 0, "older than the table" },
		{ "0.1.dev1+gabc", 0, "development version" }, { "0.33.0", 0, "newer than the table" },
		{ "profllm-sim", 0, "not a version of vLLM" }, { "", 0, "not reported" },
		{ NULL, 0, "not reported" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const char *why = "?";

		assert_int_equal(engine_version_release(cases[i].text, &why), cases[i].version);
		if (!cases[i].why)
			assert_null(why);
		else
			assert_string_equal(why, cases[i].why);
	}
}

static void test_initial(void **state)
{
	static const struct { const char *name, *version, *initial; } cases[] = {
		{ "gpu-memory-utilization", "0.11.0", "0.9" },
		{ "gpu-memory-utilization", "0.19.1", "0.9" },
		{ "gpu-memory-utilization", "0.20.0", "0.92" },
		{ "gpu-memory-utilization", "0.32.0", "0.92" },
		{ "gpu-memory-utilization", "0.33.0", NULL }, { "gpu-memory-utilization", NULL, "0.92" },
		{ "disable-cascade-attn", "0.17.0", "false" }, { "disable-cascade-attn", "0.18.0", "true" },
		{ "disable-cascade-attn", "0.31.0", "true" }, { "disable-cascade-attn", "0.32.0", NULL },
		/* Within a minor version. */
		{ "scheduler-cls", "0.11.0", "vllm.core.scheduler.Scheduler" },
		{ "scheduler-cls", "0.11.1", NULL }, { "ignore-patterns", "0.11.0", NULL },
		{ "ignore-patterns", "0.11.1", "original/**/*" },
		{ "seed", "0.11.2", NULL }, { "seed", "0.12.0", "0" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct engine_arg *arg = engine_arg_find(str_of(cases[i].name));
		const char *got = engine_arg_initial(arg, engine_version(cases[i].version));

		if (!got != !cases[i].initial || (got && strcmp(got, cases[i].initial) != 0))
			fail_msg("%s of %s: got %s", cases[i].name, cases[i].version, got);
	}
}

/* ---- against vLLM's parser ---- */

/* The value in effect as vLLM's parser gives it. */
static void check_value(char *const *argv, const char *name, const char *json)
{
	const struct engine_arg *arg = engine_arg_find(str_of(name));
	struct arena a = { 0 };
	const char *text = engine_argv_text(argv, name, &a);
	struct json_value *v;
	double real;

	assert_non_null(arg);
	assert_int_equal(json_parse(&a, str_of(json), &v, NULL), 0);
	if (v->kind == JSON_NULL) {
		assert_null(text);
	} else if (v->kind == JSON_INT && arg->flags & ENGINE_AUTO && v->integer < 0) {
		assert_true(str_eq_nocase(str_of(text), STR("auto")) || strcmp(text, "-1") == 0);
	} else if (v->kind == JSON_INT) {
		assert_int_equal(engine_argv_int(argv, name, -99), v->integer);
	} else if (v->kind == JSON_REAL) {
		assert_true(str_to_f64(str_of(text), &real));
		assert_true(real == v->real);
	} else if (v->kind == JSON_TRUE || v->kind == JSON_FALSE) {
		assert_string_equal(text, json);
	} else if (v->kind == JSON_STRING) {
		assert_string_equal(text, v->text.p);
	} else if (arg->kind == ENGINE_LIST) {
		for (size_t i = 0; i < v->count; i++)
			assert_non_null(strstr(text, v->item[i].text.p));
	} else {
		struct buf mine = { 0 }, theirs = { 0 };
		struct json_writer w = json_writer(&theirs);
		struct json_value *whole;

		json_put_value(&w, v);
		assert_int_equal(json_parse(&a, str_of(text), &whole, NULL), 0);
		w = json_writer(&mine);
		json_put_value(&w, whole);
		assert_string_equal(mine.data, theirs.data);
		buf_release(&mine);
		buf_release(&theirs);
	}
	arena_release(&a);
}

static void test_golden(void **state)
{
	size_t n = sizeof(engine_golden) / sizeof(*engine_golden);

	(void)state;
	assert_true(n > 100);
	for (size_t i = 0; i < n; i++) {
		struct buf notes = { 0 };
		struct err e = { 0 };
		struct line l;
		char *const *argv = serve(&l, engine_golden[i].args);
		bool is_taken = engine_argv_check(argv, engine_version("0.32"), true, &notes, &e) == 0;

		if (is_taken != engine_golden[i].is_taken)
			fail_msg("%s: %s", engine_golden[i].args, is_taken ? "taken" : e.text);
		assert_int_equal(notes.len, 0);
		assert_int_equal(engine_argv_check(argv, engine_version("0.32"), false, &notes, &e), 0);
		assert_int_equal(notes.len > 0, !engine_golden[i].is_taken);
		if (*engine_golden[i].name)
			check_value(argv, engine_golden[i].name, engine_golden[i].json);
		buf_release(&notes);
	}
}

/* ---- findings ---- */

static void test_findings(void **state)
{
	static const struct {
		const char *args;
		unsigned minor; /* of vLLM 0 */
		const char *says; /* part of the sentence; NULL: nothing is found */
	} cases[] = {
		{ "m --max-num-seq 3", 32, NULL }, /* a beginning */
		{ "m --max-num-sqs 3", 32, "--max-num-sqs: no argument of vLLM 0.11 to 0.32; did you "
		  "mean --max-num-seqs?" },
		{ "m --zzzzzzzzzzzzzzzz", 32, "0.32; passed on" },
		{ "m --max-num-seqs 0", 32, "--max-num-seqs: expected an integer of at least 1, got '0'" },
		{ "m --max-num-seqs", 32, "--max-num-seqs: expected a value" },
		{ "m --gpu-memory-utilization 0", 32, "expected a number above 0 and at most 1, got '0'" },
		{ "m --gpu-memory-utilization 1.0", 32, NULL },
		{ "m --gpu-memory-utilization 90", 32, "got '90'" },
		{ "m --gpu-memory-utilization nan", 32, "got 'nan'" },
		{ "m --watermark 1", 32, "from 0 to below 1, got '1'" },
		{ "m --max-model-len -2", 32, "of at least -1 (4096, 4k, 4K) or auto, got '-2'" },
		{ "m --dtype half --dtype fp4", 32, "--dtype: expected one of auto, bfloat16" },
		{ "m --port 70000", 32, "from 0 to 65535" },
		{ "m --swap-space 4", 11, NULL },
		{ "m --swap-space 4", 0, NULL },
		{ "m --swap-space 4", 17, NULL },
		{ "m --swap-space 4", 18, "--swap-space: not in vLLM 0.18; it is there up to 0.17" },
		{ "m --swap-space -1", 17, "of at least 0, got '-1'" },
		{ "m --performance-mode throughput", 11, "not in vLLM 0.11; it is there from 0.17" },
		{ "m --performance-mode throughput", 32, NULL },
		{ "m --performance-mode fast", 0, "one of balanced, interactivity, throughput" },
		{ "m --guided-decoding-backend xgrammar", 11, NULL },
		{ "m --guided-decoding-backend xgrammar", 12, "up to 0.11" },
		{ "m -O3", 11, NULL }, { "m -O3", 32, NULL }, { "m -O3", 0, NULL },
		{ "m -O4", 32, "--optimization-level: expected one of 0, 1, 2, 3" },
		{ "m -O", 32, "expected a value" },
		{ "m -O.mode=3", 11, NULL }, { "m -O.mode=3", 12, NULL },
		{ "m -O.mode=3", 13, "-O with keys of --compilation-config: not in vLLM 0.13; write -cc" },
		{ "m -O {\"level\":3}", 11, NULL },
		{ "m -O {\"level\":3}", 12, "write -cc" },
		{ "m --optimization-level 3", 11, "it is there from 0.12" },
		{ "m --max-num 3", 32, "--max-num: the beginning of several" },
		{ "m --enable-lora 1", 32, "'1': not an option; only the model may be given without one" },
		{ "m --enable-lora=1", 32, "--enable-lora: expected no value, got '1'" },
		{ "m --port.x 1", 32, "--port: has no keys, got '.x'" },
		{ "m --compilation-config.mode", 32, "--compilation-config: expected a value" },
		{ "m --structured-outputs-config {", 32, "expected JSON, got '{'" },
		{ "m two", 32, "'two': not an option" },
		{ "m --bogus-option x --port 1", 32, "--bogus-option: no argument of vLLM" },
		{ "m --runner reward", 32, "one of auto, draft, generate, pooling" },
		{ "m --convert reward", 0, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct buf notes = { 0 };
		struct line l;
		struct err e = { 0 };
		char *const *argv = serve(&l, cases[i].args);
		unsigned version = cases[i].minor * 1000;
		int rc = engine_argv_check(argv, version, true, &notes, &e);

		assert_int_equal(engine_argv_check(argv, version, false, &notes, NULL), 0);
		if (!cases[i].says && notes.len)
			fail_msg("%s: %s", cases[i].args, notes.data);
		if (cases[i].says && (!notes.len || !strstr(notes.data, cases[i].says)))
			fail_msg("%s: %s", cases[i].args, notes.len ? notes.data : "nothing");
		assert_int_equal(rc, cases[i].says ? -1 : 0);
		if (rc < 0)
			assert_int_equal(e.code, ERR_USAGE);
		buf_release(&notes);
	}
}

/* With a server's reported version: only what that version lacks. */
static void test_told_version(void **state)
{
	struct buf notes = { 0 };
	struct line l;

	(void)state;
	serve(&l, "m --swap-space 4 --bogus --max-num-seqs 0 --performance-mode throughput");
	engine_argv_check_version(l.argv, 0, &notes);
	assert_int_equal(notes.len, 0);
	engine_argv_check_version(l.argv, engine_version("0.32"), &notes);
	assert_string_equal(notes.data, "server command: --swap-space: not in vLLM 0.32; it is there "
			    "up to 0.17\n");
	buf_reset(&notes);
	engine_argv_check_version(l.argv, engine_version("0.16"), &notes);
	assert_string_equal(notes.data, "server command: --performance-mode: not in vLLM 0.16; it is "
			    "there from 0.17\n");
	buf_reset(&notes);
	line_of(&l, "", "profllm sim --swap-space 4");
	engine_argv_check_version(l.argv, engine_version("0.32"), &notes);
	assert_int_equal(notes.len, 0);
	buf_release(&notes);
}

/* Which commands start vLLM, and where its own arguments begin. */
static void test_begin(void **state)
{
	static const struct {
		const char *line, *first; /* NULL: no vLLM; "": vLLM without arguments */
	} cases[] = {
		{ "vllm serve m --port 1", "m" }, { "/opt/venv/bin/vllm serve m", "m" },
		{ "numactl -N 0 vllm serve m", "m" }, { "env A=1 vllm serve", "" },
		{ "python -m vllm.entrypoints.openai.api_server --model m", "--model" },
		{ "python3 -m vllm.entrypoints.cli.main serve m", "m" },
		{ "docker run --gpus all vllm/vllm-openai:v0.12.0 --model m", "--model" },
		{ "vllm bench serve", NULL }, { "profllm sim --port 0", NULL }, { "./start.sh serve", NULL },
		{ "python -m sglang.launch_server --tp 2", NULL }, { "vllm", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct line l;
		char *const *at = engine_argv_begin(line_of(&l, "", cases[i].line));

		assert_int_equal(at != NULL, cases[i].first != NULL);
		if (at)
			assert_string_equal(*at ? *at : "", cases[i].first);
	}
}

/* A command that starts no vLLM is read with the same names, and not judged. */
static void test_others(void **state)
{
	struct buf notes = { 0 };
	struct arena a = { 0 };
	struct line l;
	char *const *argv = line_of(&l, "", "profllm sim --max-num-seqs 8 --itl-ms 5 --bogus");
	char *none[] = { NULL };

	(void)state;
	assert_int_equal(engine_argv_check(argv, engine_version("0.32"), true, &notes, NULL), 0);
	assert_int_equal(notes.len, 0);
	assert_int_equal(engine_argv_int(argv, "max-num-seqs", 0), 8);
	assert_int_equal(engine_argv_int(argv, "max-num-batched-tokens", 7), 7);
	assert_int_equal(engine_argv_int(none, "max-num-seqs", 5), 5);
	assert_null(engine_argv_text(argv, "no-such-name", &a));
	arena_release(&a);
	buf_release(&notes);
}

static void test_effect(void **state)
{
	static const struct {
		const char *args, *name, *text;
	} cases[] = {
		{ "m", "model", "m" }, { "--model x", "model", "x" }, { "--port 1 m", "model", "m" },
		{ "", "model", "Qwen/Qwen3-0.6B" },
		{ "m", "tensor-parallel-size", "1" }, { "m", "max-num-seqs", NULL },
		{ "m", "enforce-eager", "false" }, { "m", "enable-prefix-caching", NULL },
		{ "m --no-enable-prefix-caching", "enable-prefix-caching", "false" },
		{ "m --speculative-config {\"method\":\"ngram\",\"a\":{\"b\":2}}",
		  "speculative-config.method", "ngram" },
		{ "m --speculative-config {\"method\":\"ngram\",\"a\":{\"b\":2}}",
		  "speculative-config.a.b", "2" },
		{ "m --speculative-config.a.b 3", "speculative-config.a", "{\"b\": 3}" },
		{ "m --speculative-config.a.b 3", "speculative-config.c", NULL },
		{ "m --compilation-config {", "compilation-config.mode", NULL },
		{ "m --kv-cache-memory-bytes None", "kv-cache-memory-bytes", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct arena a = { 0 };
		struct line l;
		const char *text = engine_argv_text(serve(&l, cases[i].args), cases[i].name, &a);

		if (!text || !cases[i].text)
			assert_true(text == cases[i].text);
		else
			assert_string_equal(text, cases[i].text);
		arena_release(&a);
	}
}

static void test_gpus(void **state)
{
	static const struct {
		const char *args;
		int64_t n;
	} cases[] = {
		{ "m", 1 }, { "m -tp 4", 4 }, { "m -tp 4 -pp 2", 8 }, { "m -tp=2 -dp 3 -pp 2", 12 },
		{ "m -tp 2 -pcp 2", 4 }, { "m -tp 0", 1 }, { "m -tp x", 1 },
		{ "m -tp 9223372036854775807 -pp 2", INT64_MAX },
	};
	struct line l;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(engine_argv_gpus(serve(&l, cases[i].args)), cases[i].n);
}

static void test_optimization(void **state)
{
	static const struct {
		const char *args;
		unsigned minor; /* of vLLM 0 */
		int level, mode;
		const char *level_by, *mode_by;
	} cases[] = {
		{ "m", 0, 2, 3, "", "" },
		{ "m -O3", 32, 3, 3, "-O", "" },
		{ "m -O0", 12, 0, 0, "-O", "" },
		{ "m -O 1", 13, 1, 3, "-O", "" },
		{ "m --optimization-level O0", 32, 0, 0, "--optimization-level", "" },
		{ "m -O1 -cc.mode=0", 32, 1, 0, "-O", "--compilation-config" },
		{ "m -cc.mode VLLM_COMPILE -O0", 32, 0, 3, "-O", "--compilation-config" },
		{ "m --compilation-config {\"mode\":2}", 32, 2, 2, "", "--compilation-config" },
		{ "m -O.mode=1", 12, 2, 1, "", "--compilation-config" },
		{ "m -O2 --enforce-eager", 32, 2, 0, "-O", "--enforce-eager" },
		{ "m -O2 --enforce-eager --no-enforce-eager", 32, 2, 3, "-O", "" },
		{ "m", 11, -1, 3, "", "" },
		{ "m -O0", 11, -1, 0, "", "-O" },
		{ "m -O 2", 11, -1, 2, "", "-O" },
		{ "m -O.level=1", 11, -1, 1, "", "--compilation-config" },
		{ "m --compilation-config {\"level\":0}", 11, -1, 0, "", "--compilation-config" },
		{ "m --compilation-config 1", 11, -1, 1, "", "--compilation-config" },
		{ "m -O3 --enforce-eager", 11, -1, 0, "", "--enforce-eager" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct engine_optimization o;
		struct line l;

		engine_argv_optimization(serve(&l, cases[i].args), cases[i].minor * 1000, &o);
		if (o.level != cases[i].level || o.mode != cases[i].mode)
			fail_msg("%s (%u): %d %d", cases[i].args, cases[i].minor, o.level, o.mode);
		assert_string_equal(o.level_by, cases[i].level_by);
		assert_string_equal(o.mode_by, cases[i].mode_by);
	}
}

static void test_diff(void **state)
{
	static const struct {
		const char *a, *b;
		size_t n;
		const char *says;
	} cases[] = {
		{ "m -tp 2", "m --tensor-parallel-size=2", 0, "" },
		{ "m", "m -tp 1", 0, "" }, /* the default, written out */
		{ "m -tp 2", "m", 1, "tensor-parallel-size: 2 -> (default 1)\n" },
		{ "m", "m --max-num-seqs 8", 1, "max-num-seqs: (not given) -> 8\n" },
		{ "m", "n", 1, "model: m -> n\n" },
		{ "m --api-key a", "m --api-key b", 1, "api-key: *** -> ***\n" },
		{ "m --bogus 1", "m --bogus 2", 1, "--bogus: 1 -> 2\n" },
		{ "m --bogus", "m --port 9", 2,
		  "port: (default 8000) -> 9\n--bogus: true -> (not given)\n" },
		{ "m", "m --bogus 2", 1, "--bogus: (not given) -> 2\n" },
		{ "m -cc.mode=3", "m -cc {\"mode\":0}", 1,
		  "compilation-config: {\"mode\": 3} -> {\"mode\":0}\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct buf out = { 0 };
		struct line a, b;

		serve(&a, cases[i].a);
		serve(&b, cases[i].b);
		assert_int_equal(engine_argv_diff(a.argv, b.argv, &out), cases[i].n);
		assert_string_equal(out.len ? out.data : "", cases[i].says);
		buf_release(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table), cmocka_unit_test(test_versions),
		cmocka_unit_test(test_releases), cmocka_unit_test(test_initial),
		cmocka_unit_test(test_golden), cmocka_unit_test(test_findings),
		cmocka_unit_test(test_told_version), cmocka_unit_test(test_begin),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_effect), cmocka_unit_test(test_gpus),
		cmocka_unit_test(test_optimization), cmocka_unit_test(test_diff),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
