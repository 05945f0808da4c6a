/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_opt_text.c - what the rows print: help, namespace, --show-config, JSON,
 * completion scripts (the bash one is run by bash).
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
#include <unistd.h>
#include <cmocka.h>

#include "core/json/read.h"
#include "core/opt/opt.h"
#include "answers.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct text_opts {
	bool save, later;
	int64_t port, threads;
	double rate, scale;
	const char *label, *backend, *bucket, *file, *dir;
	struct opt_int cap;
	struct opt_real temperature;
	enum opt_tri self_timed;
	struct opt_list header, goodput;
	struct opt_json extra_body;
};

static const char *const backends[] = { "vllm", "openai", NULL };

static const struct opt rows[] = {
	OPT(struct text_opts, save, "save-result", .help = "write the result", .group = "Output"),
	OPT(struct text_opts, port, "port", .help = "TCP port", .group = "Server", .min = 1,
	    .max = 65535, .letter = 'p'),
	OPT(struct text_opts, rate, "request-rate", .arg = "REQ/S", .group = "Load", .min = 0,
	    .max = INFINITY, .flags = OPT_MIN_EXCLUSIVE,
	    .help = "mean arrival rate of a stream of requests that goes on and on until the text "
		    "needs a second line"),
	OPT(struct text_opts, scale, "scale", .help = "factor", .flags = OPT_WHOLE),
	OPT(struct text_opts, label, "label", .help = "name", .group = "Output"),
	OPT(struct text_opts, backend, "backend", .help = "which API", .group = "Server",
	    .choices = backends),
	OPT(struct text_opts, bucket, "bucket", .help = "buckets", .flags = OPT_LITERAL),
	OPT(struct text_opts, cap, "max-concurrency", .help = "cap", .group = "Load"),
	OPT(struct text_opts, temperature, "temperature", .help = "heat"),
	OPT(struct text_opts, self_timed, "self-timed", .help = "own times", .group = "Load"),
	OPT(struct text_opts, header, "header", .help = "headers", .arg = "KEY=VALUE",
	    .flags = OPT_SECRET, .group = "Server"),
	OPT(struct text_opts, goodput, "goodput", .help = "limits", .flags = OPT_MANY,
	    .arg = "NAME:MS"),
	OPT(struct text_opts, extra_body, "extra-body", .help = "body", .arg = "JSON"),
	OPT(struct text_opts, later, "profile", .help = "profiler", .flags = OPT_LATER,
	    .note = "issue's words", .group = "Load"),
	OPT(struct text_opts, threads, "threads", .help = "it's [loops]: many", .flags = OPT_OURS,
	    .group = "Load"),
	OPT(struct text_opts, backend, "endpoint-type", .help = "old", .flags = OPT_HIDDEN,
	    .alias_of = "backend"),
	OPT(struct text_opts, dir, "result-dir", .help = "where", .arg = "DIR"),
	OPT(struct text_opts, file, "FILE", .help = "what to read", .flags = OPT_POSITIONAL),
};

static const struct text_opts defaults = {
	.port = 8000, .rate = INFINITY, .scale = 1, .threads = 1, .backend = "openai",
	.bucket = "{(1, 2): 0.5}",
};

static const char *const groups[] = { "Server", "Nothing", "Load", NULL };

static const struct opt_set set = {
	.command = "bench text", .summary = "A made-up command.", .row = rows, .n = COUNT(rows),
	.defaults = &defaults, .bytes = sizeof(defaults), .namespace_head = "bench_type='text', ",
	.epilog = "Examples:\n  profllm bench text", .groups = groups,
};
static const char *const shells[] = { "bash", "zsh", NULL };
static const struct opt other_rows[] = {
	OPT(struct text_opts, port, "port", .help = "TCP port"),
	OPT(struct text_opts, label, "SHELL", .help = "which shell", .choices = shells,
	    .flags = OPT_POSITIONAL | OPT_MANY),
};
static const struct opt_set other = {
	.command = "sim", .summary = "Another.", .row = other_rows, .n = 2,
	.defaults = &defaults, .bytes = sizeof(defaults),
};

static void assert_text(const struct buf *got, const char *want)
{
	if (strcmp(got->data ? got->data : "", want) != 0)
		fail_msg("got:\n%s\nwant:\n%s", got->data, want);
}

static void test_help_groups(void **state)
{
	struct buf out = { 0 };

	opt_help(&set, "", 80, &out);
	assert_text(&out, "Usage: profllm bench text [options] [FILE]\n"
		    "\n"
		    "A made-up command.\n"
		    "\n"
		    "Groups of options:\n"
		    "  Server                    3 options\n"
		    "  Load                      5 options\n"
		    "  Output                    2 options\n"
		    "  Options                   6 options\n"
		    "  Arguments                 1 option\n"
		    "  General                   2 options\n"
		    "\n"
		    "--help=GROUP shows one group, --help=all everything, --help=WORD the options\n"
		    "about WORD, --help=json the same for programs.\n"
		    "\n"
		    "Examples:\n"
		    "  profllm bench text\n");
	answers_release(&out);
	(void)state;
}

static void test_help_topics(void **state)
{
	static const struct { const char *topic, *want; } cases[] = {
		{ "server", "\nServer:\n"
		  "  -p, --port PORT           TCP port (from 1 to 65535; default: 8000)\n"
		  "  --backend BACKEND         which API (choices: vllm, openai; default: openai)\n"
		  "  --header [KEY=VALUE ...]  headers\n" },
		{ "load", "\nLoad:\n"
		  "  --request-rate REQ/S      mean arrival rate of a stream of requests "
		  "that goes\n"
		  "                            on and on until the text needs a second line "
		  "(above\n"
		  "                            0; default: inf)\n"
		  "  --max-concurrency MAX_CONCURRENCY\n"
		  "                            cap\n"
		  "  --self-timed, --no-self-timed\n"
		  "                            own times\n"
		  "  --profile                 profiler (not in this version: issue's words)\n"
		  "  --threads THREADS         it's [loops]: many (default: 1; ProfLLM only)\n" },
		{ "--extra_body", "\nOptions matching 'extra_body':\n"
		  "  --extra-body JSON, --extra-body.KEY VALUE\n"
		  "                            body\n" },
		{ "goodp", "\nOptions matching 'goodp':\n"
		  "  --goodput NAME:MS [NAME:MS ...]\n"
		  "                            limits\n" },
		{ "help", "\nOptions matching 'help':\n"
		  "  -h, --help[=TOPIC]        show the groups of options; =all, =GROUP, =WORD or\n"
		  "                            =json shows more\n" },
		{ "gumen", "\nArguments:\n"
		  "  FILE                      what to read\n" },
		{ "zebra", "No group or option matches 'zebra'; --help lists the groups, "
		  "--help=all every option.\n" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct buf out = { 0 };

		opt_help(&set, cases[i].topic, 80, &out);
		assert_text(&out, cases[i].want);
		answers_release(&out);
	}
	(void)state;
}

/* Every shown row is in "all", wrapped to the width; hidden ones are not. */
static void test_help_all(void **state)
{
	static const unsigned widths[] = { 20, 48, 80, 100, 500 };

	for (size_t i = 0; i < COUNT(widths); i++) {
		struct buf out = { 0 };
		struct str text;

		opt_help(&set, "all", widths[i], &out);
		for (size_t j = 0; j < COUNT(rows); j++) {
			bool is_hidden = rows[j].flags & OPT_HIDDEN;

			assert_true(*rows[j].help);
			assert_int_equal(!strstr(out.data, rows[j].name), is_hidden);
		}
		text = buf_str(&out);
		while (text.n) {
			struct str line = str_cut(&text, '\n');

			if (!memmem(line.p, line.n, "--", 2))
				assert_true(line.n <= (widths[i] < 48 ? 48 : widths[i]));
		}
		answers_release(&out);
	}
	(void)state;
}

static void test_help_json(void **state)
{
	struct buf out = { 0 };
	struct arena a = { 0 };
	struct err e = { 0 };
	struct json_value *v, *options;

	opt_help(&set, "json", 80, &out);
	assert_int_equal(json_parse(&a, buf_str(&out), &v, &e), 0);
	assert_true(str_is(json_text(json_get(v, "command"), STR("")), "bench text"));
	options = json_get(v, "options");
	assert_int_equal(options->count, COUNT(rows) - 1 + 2);
	for (size_t i = 0; i < options->count; i++) {
		const struct json_value *o = &options->item[i];
		struct str name = json_text(json_get(o, "name"), STR(""));

		assert_true(json_text(json_get(o, "help"), STR("")).n > 0);
		assert_non_null(json_get(o, "kind"));
		assert_non_null(json_get(o, "default"));
		if (str_is(name, "port")) {
			assert_true(json_real(json_get(o, "min"), 0) == 1);
			assert_true(json_real(json_get(o, "max"), 0) == 65535);
			assert_int_equal(json_int(json_get(o, "default"), 0), 8000);
			assert_true(str_is(json_get(o, "spellings")->item[0].text, "-p"));
		}
		if (str_is(name, "request-rate"))
			assert_null(json_get(o, "max"));
		if (str_is(name, "backend"))
			assert_int_equal(json_get(o, "choices")->count, 2);
		if (str_is(name, "self-timed"))
			assert_true(str_is(json_get(o, "spellings")->item[1].text,
					   "--no-self-timed"));
		if (str_is(name, "profile"))
			assert_true(str_is(json_get(o, "flags")->item[0].text, "later"));
	}
	arena_release(&a);
	answers_release(&out);
	(void)state;
}

static void test_namespace(void **state)
{
	const char *goodput[] = { "ttft:1", "it's" };
	const char *header[] = { "key=secret" };
	struct text_opts o = defaults;
	struct buf out = { 0 };

	opt_namespace(&set, &o, &out);
	assert_text(&out, "Namespace(bench_type='text', save_result=False, port=8000, "
		    "request_rate=inf, scale=1, label=None, backend='openai', "
		    "bucket={(1, 2): 0.5}, max_concurrency=None, temperature=None, "
		    "self_timed=None, header=None, goodput=None, extra_body=None, profile=False, "
		    "result_dir=None, FILE=None)");
	buf_reset(&out);
	o.save = true;
	o.rate = 10;
	o.scale = 2;
	o.label = "a'b\"c\\\n\x01\xc2\xa0\xc3\xa9\xff";
	o.cap = (struct opt_int){ true, 64 };
	o.temperature = (struct opt_real){ true, 0 };
	o.self_timed = OPT_TRI_NO;
	o.header = (struct opt_list){ header, 1, true };
	o.goodput = (struct opt_list){ goodput, 2, true };
	o.extra_body.text = "{\"a\": [1, 2.50, true, null, \"x'y\"], \"b\": {}}";
	opt_namespace(&set, &o, &out);
	assert_text(&out, "Namespace(bench_type='text', save_result=True, port=8000, "
		    "request_rate=10.0, scale=2.0, "
		    "label='a\\'b\"c\\\\\\n\\x01\\xa0\xc3\xa9\\udcff', backend='openai', "
		    "bucket={(1, 2): 0.5}, max_concurrency=64, temperature=0.0, "
		    "self_timed=False, header='***', goodput=['ttft:1', \"it's\"], "
		    "extra_body={'a': [1, 2.5, True, None, \"x'y\"], 'b': {}}, profile=False, "
		    "result_dir=None, FILE=None)");
	answers_release(&out);
	(void)state;
}

static void test_config(void **state)
{
	const char *header[] = { "key=secret" };
	struct text_opts o = defaults;
	struct opt_result r = { 0 };
	struct buf out = { 0 };

	o.header = (struct opt_list){ header, 1, true };
	o.port = 9000;
	o.threads = 4;
	r.given[0] = 1u << 1;
	opt_show_config(&set, &o, &r, &out);
	assert_non_null(strstr(out.data, "\nport = 9000             "));
	assert_non_null(strstr(out.data, "= 9000                                     # given\n"));
	assert_non_null(strstr(out.data, "= 4                                     # derived\n"));
	assert_non_null(strstr(out.data, "label = null                                    # de"));
	assert_null(strstr(out.data, "secret"));
	assert_null(strstr(out.data, "endpoint-type"));
	buf_reset(&out);
	opt_json(&set, &o, &out);
	assert_text(&out, "{\"save_result\": false, \"port\": 9000, \"request_rate\": \"inf\", "
		    "\"scale\": 1.0, \"label\": null, \"backend\": \"openai\", "
		    "\"bucket\": \"{(1, 2): 0.5}\", \"max_concurrency\": null, "
		    "\"temperature\": null, \"self_timed\": null, \"header\": \"***\", "
		    "\"goodput\": null, \"extra_body\": null, \"profile\": false, \"threads\": 4, "
		    "\"result_dir\": null, \"FILE\": null}");
	answers_release(&out);
	(void)state;
}

/* Secrets in values of options that need not have any; opt_json_hidden has these alone, whole. */
static void test_secrets_in_values(void **state)
{
	struct text_opts o = defaults;
	struct opt_result r = { 0 };
	struct buf json = { 0 }, line = { 0 }, hidden = { 0 }, shown = { 0 };

	o.label = "http://me:pw7@host/";
	o.dir = "serve --api-key pw7 --port 1";
	o.extra_body.text = "{\"api_key\": \"pw7\"}";
	opt_json(&set, &o, &json);
	opt_namespace(&set, &o, &line);
	opt_show_config(&set, &o, &r, &shown);
	opt_json_hidden(&set, &o, &hidden);
	assert_null(strstr(json.data, "pw7"));
	assert_non_null(strstr(json.data, "\"label\": \"http://me:***@host/\""));
	assert_non_null(strstr(json.data, "\"result_dir\": \"serve --api-key *** --port 1\""));
	assert_non_null(strstr(json.data, "\"extra_body\": {\"api_key\": \"***\"}"));
	assert_null(strstr(line.data, "pw7"));
	assert_non_null(strstr(line.data, "label='http://me:***@host/'"));
	assert_null(strstr(shown.data, "pw7"));
	assert_true(str_is(buf_str(&hidden), "{\"label\": \"http://me:pw7@host/\"}"
			   "{\"extra_body\": {\"api_key\": \"pw7\"}}"
			   "{\"result_dir\": \"serve --api-key pw7 --port 1\"}"));
	buf_release(&json);
	buf_release(&line);
	buf_release(&hidden);
	buf_release(&shown);
	(void)state;
}

/* ---- completion ---- */

static void write_script(char path[static 32])
{
	const struct opt_set *sets[] = { &set, &other };
	struct buf out = { 0 };
	struct err e = { 0 };
	int fd;

	memcpy(path, "/tmp/profllm_completion_XXXXXX", 31);
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(opt_completion(sets, 2, "profllm", "bash", &out, &e), 0);
	assert_int_equal(write(fd, out.data, out.len), (ssize_t)out.len);
	close(fd);
	answers_release(&out);
}

/* What bash would offer for the words (the last one being typed), joined by blanks. */
static void complete(const char *script, const char *words, char *got, size_t cap)
{
	char command[512];
	FILE *pipe;
	size_t n;

	snprintf(command, sizeof(command),
		 "cd /; bash --norc -c 'source %s; COMP_WORDS=(%s); "
		 "COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _profllm; echo -n ${COMPREPLY[*]}'",
		 script, words);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	n = fread(got, 1, cap - 1, pipe);
	got[n] = 0;
	assert_int_equal(pclose(pipe), 0);
}

static void test_bash(void **state)
{
	static const struct { const char *words, *want; } cases[] = {
		{ "profllm \"\"", "bench sim" },
		{ "profllm b", "bench" },
		{ "profllm bench \"\"", "text" },
		{ "profllm bench text --ba", "--backend" },
		{ "profllm bench text --backend \"\"", "openai vllm" },
		{ "profllm bench text --backend v", "vllm" },
		{ "profllm bench text --backend =", "openai vllm" },
		{ "profllm bench text --backend = o", "openai" },
		{ "profllm bench text --no", "--no-self-timed" },
		{ "profllm bench text --label \"\"", "" }, /* any text: nothing to offer */
		{ "profllm bench text --result_dir /usr/bi", "/usr/bin" },
		{ "profllm bench text --pro", "" }, /* later: not offered */
		{ "profllm bench text /usr/bi", "/usr/bin" },
		{ "profllm sim --po", "--port" },
		{ "profllm sim --ba", "" },
		{ "profllm sim \"\"", "bash zsh" },
		{ "profllm bench nothing --ba", "" },
	};
	char path[32], got[512];

	write_script(path);
	for (size_t i = 0; i < COUNT(cases); i++) {
		complete(path, cases[i].words, got, sizeof(got));
		if (strcmp(got, cases[i].want) != 0)
			fail_msg("%s: got '%s', want '%s'", cases[i].words, got, cases[i].want);
	}
	unlink(path);
	(void)state;
}

static void test_zsh(void **state)
{
	const struct opt_set *sets[] = { &set, &other };
	struct buf out = { 0 };
	struct err e = { 0 };

	assert_int_equal(opt_completion(sets, 2, "profllm", "zsh", &out, &e), 0);
	assert_non_null(strstr(out.data, "#compdef profllm\n"));
	assert_non_null(strstr(out.data, "'--backend=[which API]:BACKEND:(vllm openai)' \\\n"));
	assert_non_null(strstr(out.data,
			       "'--threads=[it'\\''s \\[loops\\]: many]:THREADS: ' \\\n"));
	assert_non_null(strstr(out.data, "'--result-dir=[where]:DIR:_files -/' \\\n"));
	assert_non_null(strstr(out.data, "'*--goodput=[limits]:NAME\\:MS: ' \\\n"));
	assert_non_null(strstr(out.data, "'--no-self-timed[own times]' \\\n"));
	assert_non_null(strstr(out.data, "':FILE:_files' \\\n"));
	assert_null(strstr(out.data, "--profile"));
	answers_release(&out);
	assert_int_equal(opt_completion(sets, 2, "profllm", "fish", &out, &e), -1);
	assert_string_equal(e.text, "shell: expected bash or zsh, got 'fish'");
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_help_groups), cmocka_unit_test(test_help_topics),
		cmocka_unit_test(test_help_all), cmocka_unit_test(test_help_json),
		cmocka_unit_test(test_namespace), cmocka_unit_test(test_config),
		cmocka_unit_test(test_secrets_in_values),
		cmocka_unit_test(test_bash), cmocka_unit_test(test_zsh),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
