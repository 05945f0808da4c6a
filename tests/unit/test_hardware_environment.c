/* SPDX-License-Identifier: Apache-2.0 */
/* test_hardware_environment.c - interpreters found and asked, versions, provenance. */
/* threads: yes */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "core/base/file.h"
#include "host/hardware/hardware.h"
#include "scratch.h"

static const char *put(const char *name, const char *text)
{
	static char path[8][128];
	static size_t at;
	char *out = path[at++ % 8];
	struct err e = { 0 };

	snprintf(out, sizeof(path[0]), "%s/%s", dir, name);
	assert_int_equal(file_write_atomic(out, str_of(text), &e), 0);
	assert_int_equal(chmod(out, 0755), 0);
	return out;
}

static void test_find(void **state)
{
	static const struct { const char *head, *python; } rows[] = {
		{ "#!/opt/venv/bin/python3 -s\nimport vllm\n", "/opt/venv/bin/python3" },
		{ "#!/usr/bin/env python3.12\n", "python3.12" },
		{ "#! /opt/python\n", "/opt/python" },
		{ "#!/bin/sh\n'''exec' \"/a b/python\" \"$0\" \"$@\"\n' '''\n", "/a b/python" },
		{ "#!/bin/sh\n'''exec' /long/python3 \"$0\"\n", "/long/python3" },
		{ "#!/bin/sh\nexec python3 -m vllm\n", NULL },
		{ "#!/bin/bash\n", NULL }, { "#!", NULL }, { "", NULL }, { "\177ELF", NULL },
		{ "#!/usr/bin/env", NULL }, { "#!/bin/sh\n'''exec' \"", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char *script = strdup(put("server", rows[i].head));
		char *plain[] = { script, (char *)"serve", NULL };
		char *wrapped[] = { (char *)"env", (char *)"A=1", script, NULL };
		struct arena a = { 0 };
		const char *found = interpreter_find(plain, &a);

		if (!found != !rows[i].python || (found && strcmp(found, rows[i].python) != 0))
			fail_msg("row %zu: got %s", i, found ? found : "none");
		found = interpreter_find(wrapped, &a);
		assert_true(!found == !rows[i].python);
		arena_release(&a);
		free(script);
	}
}

static void test_find_words(void **state)
{
	char *python[] = { (char *)"/x/python3", (char *)"-m", (char *)"vllm", NULL };
	char *docker[] = { (char *)"docker", (char *)"run", (char *)"python3", NULL };
	char *none[] = { NULL };
	struct arena a = { 0 };

	(void)state;
	assert_string_equal(interpreter_find(python, &a), "/x/python3");
	assert_null(interpreter_find(docker, &a));
	assert_null(interpreter_find(none, &a));
	assert_null(interpreter_find(NULL, &a));
	arena_release(&a);
}

static struct json_value *look(const struct environment_opts *o, struct arena *a, struct buf *text)
{
	struct json_value *v;

	buf_reset(text);
	environment_json(o, text);
	assert_int_equal(json_parse(a, buf_str(text), &v, NULL), 0);
	return v;
}

static void test_environment(void **state)
{
	const char *python = put("python-of-tests",
		"#!/bin/sh\necho noise\necho '{\"version\": \"3.9.1\", \"packages\": "
		"{\"vllm\": \"0.11.0\", \"torch\": \"2.8.0+cu128\"}}'\n");
	char *command[] = { (char *)python, NULL };
	char *env[] = { (char *)"VLLM_USE_V1=1", (char *)"HF_TOKEN=hf_abc", (char *)"A=b",
			(char *)"NCCL_DEBUG=WARN", NULL };
	struct environment_opts o = { .command = command, .env = env, .server_kind = "vllm",
				      .server_version = "0.11.0", .deadline_s = 10 };
	struct buf text = { 0 };
	struct arena a = { 0 };
	const struct json_value *v;

	(void)state;
	setenv("NCCL_DEBUG", "INFO", 1);
	setenv("OMP_NUM_THREADS", "4", 1);
	v = look(&o, &a, &text);
	assert_string_equal(json_get(json_get(v, "python"), "version")->text.p, "3.9.1");
	assert_string_equal(json_get(json_get(json_get(v, "python"), "packages"), "vllm")->text.p,
			    "0.11.0");
	assert_string_equal(json_get(v, "cuda")->text.p, "12.8");
	assert_true(*json_get(v, "profllm")->text.p);
	assert_non_null(strstr(json_get(v, "build")->text.p, __VERSION__));
	assert_string_equal(json_get(json_get(v, "server"), "kind")->text.p, "vllm");
	assert_string_equal(json_get(json_get(v, "server"), "version")->text.p, "0.11.0");
	v = json_get(v, "variables");
	assert_string_equal(json_get(v, "VLLM_USE_V1")->text.p, "1");
	assert_string_equal(json_get(v, "HF_TOKEN")->text.p, "***");
	assert_string_equal(json_get(v, "NCCL_DEBUG")->text.p, "WARN");
	assert_string_equal(json_get(v, "OMP_NUM_THREADS")->text.p, "4");
	assert_null(json_get(v, "A"));
	assert_null(json_get(v, "PATH"));
	o.deadline_s = 0;
	assert_int_equal(json_get(look(&o, &a, &text), "python")->kind, JSON_NULL);
	arena_release(&a);
	buf_release(&text);
}

/* Interpreters that lie, fail or hang. */
static void test_bad_python(void **state)
{
	static const char *const texts[] = {
		"#!/bin/sh\nexit 1\n", "#!/bin/sh\necho '{'\n", "#!/bin/sh\necho '[1]'\n",
		"#!/bin/sh\necho '{\"version\": 3, \"packages\": {\"vllm\": 1}}'\n",
		"#!/bin/sh\necho '{\"version\": \"3\"}'\n", "#!/bin/sh\nsleep 60\n", "#!/nowhere\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		char *command[] = { (char *)put("python-bad", texts[i]), NULL };
		struct interpreter py = { 0 };

		interpreter_ask(command, 1, &py);
		assert_false(py.is_known);
		interpreter_release(&py);
	}
}

static const char *variable[16][2];

static const char *get(const char *name)
{
	for (size_t i = 0; variable[i][0]; i++)
		if (strcmp(variable[i][0], name) == 0)
			return variable[i][1];
	return NULL;
}

static void test_provenance(void **state)
{
	static const struct {
		const char *given, *version, *name, *value; /* a variable */
		const char *key, *want;
	} rows[] = {
		{ "{}", "0.11.1.dev12+gabcdef0", NULL, NULL, "engine_commit", "abcdef0" },
		{ "{}", "0.11.1.dev12+gabcdef01.d20250101", NULL, NULL, "engine_commit", "abcdef01" },
		{ "{}", "0.11.1.dev1+cu129.gabcdef01", NULL, NULL, "engine_commit", "abcdef01" },
		{ "{}", "0.11.0", NULL, NULL, "engine_commit", NULL },
		{ "{}", "0.11.0+cu129", NULL, NULL, "engine_commit", NULL },
		{ "{}", "0.11.0+gpu", NULL, NULL, "engine_commit", NULL },
		{ "{}", NULL, NULL, NULL, "engine_commit", NULL },
		{ "{}", "1+gabcdef0", "PROFLLM_ENGINE_COMMIT", "1234567", "engine_commit", "1234567" },
		{ "{\"engine_commit\": \"mine\"}", "1+gabcdef0", "PROFLLM_ENGINE_COMMIT", "x",
		  "engine_commit", "mine" },
		{ "{\"pr\": 12}", NULL, NULL, NULL, "pr", "12" },
		{ "{}", NULL, "GITHUB_REF", "refs/pull/34/merge", "pr", "34" },
		{ "{}", NULL, "GITHUB_REF", "refs/heads/main", "pr", NULL },
		{ "{}", NULL, "BUILDKITE_PULL_REQUEST", "false", "pr", NULL },
		{ "{}", NULL, "BUILDKITE_PULL_REQUEST", "56", "pr", "56" },
		{ "{}", NULL, "CI_PIPELINE_ID", "9", "build", "9" },
		{ "{}", NULL, "GITHUB_EVENT_NAME", "schedule", "trigger", "schedule" },
		{ "{}", NULL, "GITHUB_REF_NAME", "main", "branch", "main" },
		{ "{\"owner\": \"team\"}", NULL, NULL, NULL, "owner", "team" },
		{ "[1]", NULL, NULL, NULL, "branch", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct buf text = { 0 };
		struct arena a = { 0 };
		struct json_value *given, *v;
		const char *got;

		variable[0][0] = rows[i].name;
		variable[0][1] = rows[i].value;
		assert_int_equal(json_parse(&a, str_of(rows[i].given), &given, NULL), 0);
		provenance_json(given, rows[i].version, get, &text);
		assert_int_equal(json_parse(&a, buf_str(&text), &v, NULL), 0);
		got = json_text(json_get(v, rows[i].key), (struct str){ NULL, 0 }).p;
		if (!got != !rows[i].want || (got && strcmp(got, rows[i].want) != 0))
			fail_msg("row %zu: got %s", i, got ? got : "null");
		arena_release(&a);
		buf_release(&text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find),	    cmocka_unit_test(test_find_words),
		cmocka_unit_test(test_environment), cmocka_unit_test(test_bad_python),
		cmocka_unit_test(test_provenance),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
