/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_opt.c - command lines against the values or the one sentence they give.
 *
 * One made-up set holds every kind of row. Each case is a command line; what it
 * sets is compared as the JSON of the changed option, errors word for word.
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
#include <cmocka.h>

#include "core/json/read.h"
#include "core/opt/opt.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define ARGS_MAX 12

struct sample_opts {
	bool save;
	bool skip_chat_template;
	int64_t num_prompts, port, threads;
	double request_rate, ratio, scale;
	const char *label, *backend, *bucket, *file;
	struct opt_int cap;
	struct opt_real temperature;
	enum opt_tri self_timed;
	struct opt_list header, goodput, rest, fix;
	struct opt_json extra_body, limits;
	bool profile;
	double probe_rate;
};

static const char *const backends[] = { "vllm", "openai", "openai-chat", NULL };
static const struct opt_meant backends_meant[] = { { "vllm-rerank", "use openai" }, { NULL, NULL } };
static const char *const fixes[] = { "peak", "help", NULL };

static int check_even(const struct opt *o, const void *field, struct err *e)
{
	if (*(const int64_t *)field % 2 == 0)
		return 0;
	return err_set(e, ERR_USAGE, "--%s: must be even", o->name);
}

static const struct opt rows[] = {
	OPT(struct sample_opts, num_prompts, "num-prompts", .help = "how many", .group = "Load"),
	OPT(struct sample_opts, save, "save-result", .help = "write it", .group = "Output"),
	OPT(struct sample_opts, port, "port", .help = "port", .group = "Server", .min = 1,
	    .max = 65535, .letter = 'p'),
	OPT(struct sample_opts, request_rate, "request-rate", .help = "rate", .group = "Load",
	    .words = "rate req -r"),
	OPT(struct sample_opts, ratio, "ratio", .help = "ratio", .group = "Load", .min = 0,
	    .max = INFINITY, .flags = OPT_MIN_EXCLUSIVE),
	OPT(struct sample_opts, scale, "scale", .help = "scale", .flags = OPT_WHOLE),
	OPT(struct sample_opts, label, "label", .help = "name of the run", .group = "Output"),
	OPT(struct sample_opts, backend, "backend", .help = "which API", .group = "Server",
	    .choices = backends, .meant = backends_meant),
	OPT(struct sample_opts, bucket, "bucket", .help = "buckets", .flags = OPT_LITERAL),
	OPT(struct sample_opts, cap, "max-concurrency", .help = "cap", .group = "Load"),
	OPT(struct sample_opts, temperature, "temperature", .help = "heat"),
	OPT(struct sample_opts, self_timed, "self-timed", .help = "own times", .group = "Load"),
	OPT(struct sample_opts, header, "header", .help = "headers", .arg = "KEY=VALUE",
	    .flags = OPT_SECRET, .group = "Server"),
	OPT(struct sample_opts, goodput, "goodput", .help = "limits", .flags = OPT_MANY),
	OPT(struct sample_opts, extra_body, "extra-body", .help = "body", .arg = "JSON"),
	OPT(struct sample_opts, limits, "limits", .help = "limits as JSON"),
	OPT(struct sample_opts, skip_chat_template, "skip-chat-template", .help = "bare text"),
	OPT(struct sample_opts, profile, "profile", .help = "profiler", .flags = OPT_LATER,
	    .note = "a later version starts it"),
	OPT(struct sample_opts, probe_rate, "probe-rate", .help = "probes", .flags = OPT_LATER),
	OPT(struct sample_opts, threads, "threads", .help = "loops", .flags = OPT_OURS,
	    .check = check_even),
	OPT(struct sample_opts, fix, "fix", .help = "fixes", .flags = OPT_OURS, .choices = fixes),
	OPT(struct sample_opts, backend, "endpoint-type", .help = "old", .flags = OPT_HIDDEN,
	    .alias_of = "backend", .note = "both still work"),
	OPT(struct sample_opts, skip_chat_template, "custom-skip-chat-template", .help = "old",
	    .flags = OPT_HIDDEN, .alias_of = "skip-chat-template"),
	OPT(struct sample_opts, file, "FILE", .help = "what to read", .flags = OPT_POSITIONAL),
	OPT(struct sample_opts, rest, "REST", .help = "more of it", .flags = OPT_POSITIONAL),
};

static const struct sample_opts defaults = {
	.num_prompts = 1000, .port = 8000, .request_rate = INFINITY, .ratio = 0.5, .scale = 1,
	.threads = 2, .backend = "openai", .bucket = "{(1, 2): 0.5}",
	.limits = { "{\"image\": 255, \"video\": 1}" },
};

static const struct opt_set set = {
	.command = "bench sample", .summary = "a made-up command", .row = rows, .n = COUNT(rows),
	.defaults = &defaults, .bytes = sizeof(defaults),
	.namespace_head = "bench_type='sample', ", .epilog = "Examples:\n  profllm bench sample",
	.takes_prefixes = true,
};

struct line {
	const char *arg[ARGS_MAX];
	const char *key, *want;  /* option (with "_") and its JSON after parsing */
	const char *error;       /* the whole sentence */
	const char *note;        /* a line of the notes */
};

#define GIVES(k, w, ...) { .arg = { __VA_ARGS__ }, .key = (k), .want = (w) }
#define NOTED(k, w, n, ...) { .arg = { __VA_ARGS__ }, .key = (k), .want = (w), .note = (n) }
#define REFUSED(sentence, ...) { .arg = { __VA_ARGS__ }, .error = (sentence) }

static int parse_line(const char *const *arg, struct sample_opts *o, struct opt_result *r,
		      struct arena *a, struct err *e)
{
	char *argv[ARGS_MAX + 1] = { 0 };
	int argc = 0;

	for (; argc < ARGS_MAX && arg[argc]; argc++)
		argv[argc] = strdup(arg[argc]);
	int rc = opt_parse(&set, argc, argv, o, r, a, e);

	/* Values may point into argv, so a copy in the arena takes its place first. */
	for (size_t i = 0; i < o->header.n; i++)
		o->header.v[i] = arena_text(a, str_of(o->header.v[i]));
	for (size_t i = 0; i < o->goodput.n; i++)
		o->goodput.v[i] = arena_text(a, str_of(o->goodput.v[i]));
	for (size_t i = 0; i < o->rest.n; i++)
		o->rest.v[i] = arena_text(a, str_of(o->rest.v[i]));
	for (size_t i = 0; i < o->fix.n; i++)
		o->fix.v[i] = arena_text(a, str_of(o->fix.v[i]));
	for (int i = 0; i < argc; i++)
		free(argv[i]);
	return rc;
}

static void assert_value(const struct sample_opts *o, const char *key, const char *want)
{
	struct buf json = { 0 };
	struct json_scan scan;
	struct json_slice all, value;
	struct err e = { 0 };

	opt_json(&set, o, &json);
	scan = (struct json_scan){ buf_str(&json), 0 };
	assert_int_equal(json_next(&scan, &all, &e), 0);
	if (!json_member(all, key, &value))
		fail_msg("no %s in %s", key, json.data);
	/* A string's raw lies between its quotes. */
	if (value.kind == JSON_STRING) {
		value.raw.p--;
		value.raw.n += 2;
	}
	if (!str_is(value.raw, want))
		fail_msg("%s is %.*s, not %s", key, (int)value.raw.n, value.raw.p, want);
	buf_release(&json);
}

static void run_lines(const struct line *line, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct sample_opts o;
		struct opt_result r = { 0 };
		struct arena a = { 0 };
		struct err e = { 0 };
		int rc = parse_line(line[i].arg, &o, &r, &a, &e);

		if (line[i].error) {
			assert_int_equal(rc, -1);
			assert_string_equal(e.text, line[i].error);
			assert_int_equal(e.code, ERR_USAGE);
		} else {
			if (rc != 0)
				fail_msg("%s ...: %s", line[i].arg[0], e.text);
			assert_value(&o, line[i].key, line[i].want);
		}
		if (line[i].note)
			assert_non_null(strstr(r.notes.data ? r.notes.data : "", line[i].note));
		else if (!line[i].error)
			assert_int_equal(r.notes.len, 0);
		opt_result_release(&r);
		arena_release(&a);
	}
}

static void test_names(void **state)
{
	static const struct line lines[] = {
		GIVES("num_prompts", "5", "--num-prompts", "5"),
		GIVES("num_prompts", "5", "--num_prompts", "5"),
		GIVES("num_prompts", "5", "--num_prompts=5"),
		NOTED("num_prompts", "5", "--num-p is read as --num-prompts\n", "--num-p", "5"),
		NOTED("num_prompts", "5", "--num_p is read as --num-prompts\n", "--num_p=5"),
		GIVES("label", "\"a_b\"", "--label", "a_b"),
		GIVES("label", "\"a_b=c_d\"", "--label=a_b=c_d"),
		GIVES("label", "\"\"", "--label", ""),
		GIVES("label", "\"\"", "--label="),
		GIVES("self_timed", "true", "--self-timed"),
		GIVES("self_timed", "false", "--no-self-timed"),
		NOTED("self_timed", "false", "--no-self is read as --no-self-timed\n", "--no-self"),
		GIVES("self_timed", "false", "--no_self_timed"),
		GIVES("save_result", "true", "--save-result"),
		NOTED("save_result", "true", "--save is read as --save-result\n", "--save"),
		/* "--ratio" exactly, though "--r" alone could be two options. */
		GIVES("ratio", "2.0", "--ratio", "2"),
		/* Our names are written whole: --t is --temperature and never --threads. */
		NOTED("temperature", "0.0", "--t is read as --temperature\n", "--t", "0"),
		REFUSED("unknown option --thr; did you mean --threads?", "--thr", "4"),
		REFUSED("unknown option --custom-skip", "--custom-skip"),
		/* By words that other tools use, which are never taken as beginnings either. */
		REFUSED("unknown option --rate; did you mean --request-rate?", "--rate", "4"),
		REFUSED("unknown option --req; did you mean --request-rate?", "--req", "4"),
		REFUSED("unknown option -r; did you mean --request-rate?", "-r", "4"),
		REFUSED("unknown option -r4; did you mean --request-rate?", "-r4"),
		GIVES("port", "80", "-p", "80"),
		GIVES("port", "80", "-p80"),
		GIVES("port", "80", "-p=80"),
		NOTED("backend", "\"vllm\"",
		      "--endpoint-type is an old spelling of --backend; both still work\n",
		      "--endpoint-type", "vllm"),
		NOTED("skip_chat_template", "true",
		      "--custom-skip-chat-template is an old spelling of --skip-chat-template\n",
		      "--custom-skip-chat-template"),
		REFUSED("ambiguous option --r: it could be --request-rate, --ratio", "--r", "1"),
		REFUSED("ambiguous option --pro: it could be --profile, --probe-rate", "--pro=1"),
		REFUSED("unknown option --num-promts; did you mean --num-prompts?",
		      "--num-promts", "3"),
		REFUSED("unknown option --zzz", "--zzz=3"),
		REFUSED("unknown option -x", "-x"),
		NOTED("num_prompts", "6",
		      "--num-prompts is given more than once; the last one counts\n",
		      "--num-prompts", "5", "--num-prompts", "6"),
	};
	run_lines(lines, COUNT(lines));
	(void)state;
}

/* An abbreviation is noted once; a verb of our own takes none. */
static void test_abbreviations(void **state)
{
	char *twice[] = { strdup("--num-p"), strdup("5"), strdup("--num-p"), strdup("6") };
	struct opt_set ours = set;
	struct sample_opts o;
	struct opt_result r = { 0 };
	struct arena a = { 0 };
	struct err e = { 0 };
	const char *first;

	assert_int_equal(opt_parse(&set, 4, twice, &o, &r, &a, &e), 0);
	first = strstr(r.notes.data, "--num-p is read as --num-prompts\n");
	assert_non_null(first);
	assert_null(strstr(strchr(first, 10), "is read as"));
	opt_result_release(&r);
	ours.takes_prefixes = false;
	assert_int_equal(opt_parse(&ours, 4, twice, &o, &r, &a, &e), -1);
	assert_string_equal(e.text, "unknown option --num-p; did you mean --num-prompts?");
	opt_result_release(&r);
	arena_release(&a);
	for (size_t i = 0; i < COUNT(twice); i++)
		free(twice[i]);
	(void)state;
}

static void test_numbers(void **state)
{
	static const struct line lines[] = {
		GIVES("num_prompts", "1000", "--num-prompts", "1_000"),
		GIVES("num_prompts", "7", "--num-prompts", " 7 "),
		GIVES("num_prompts", "7", "--num-prompts", "+7"),
		GIVES("num_prompts", "7", "--num-prompts", "007"),
		GIVES("num_prompts", "-5", "--num-prompts", "-5"),
		GIVES("num_prompts", "9223372036854775807", "--num-prompts", "9223372036854775807"),
		GIVES("request_rate", "\"inf\"", "--request-rate", "inf"),
		GIVES("request_rate", "\"inf\"", "--request-rate", "Infinity"),
		GIVES("request_rate", "\"-inf\"", "--request-rate=-inf"),
		GIVES("request_rate", "null", "--request-rate", "nan"),
		GIVES("request_rate", "10.5", "--request-rate", "1_0.5"),
		GIVES("request_rate", "1000.0", "--request-rate", "1e3"),
		GIVES("request_rate", "0.5", "--request-rate", ".5"),
		GIVES("request_rate", "5.0", "--request-rate", "5."),
		GIVES("request_rate", "-5.0", "--request-rate", "-5"),
		GIVES("temperature", "-0.5", "--temperature=-0.5"),
		GIVES("max_concurrency", "3", "--max-concurrency", "3"),
		REFUSED("--num-prompts: expected an integer, got '5.0'", "--num-prompts", "5.0"),
		REFUSED("--num-prompts: expected an integer, got 'five'", "--num-prompts", "five"),
		REFUSED("--num-prompts: expected an integer, got ''", "--num-prompts="),
		REFUSED("--num-prompts: expected an integer, got '_5'", "--num-prompts", "_5"),
		REFUSED("--num-prompts: expected an integer, got '5__0'", "--num-prompts", "5__0"),
		REFUSED("--num-prompts: expected an integer, got '0x10'", "--num-prompts", "0x10"),
		REFUSED("--num-prompts: expected an integer, got '9223372036854775808'",
		      "--num-prompts", "9223372036854775808"),
		REFUSED("--max-concurrency: expected an integer, got 'x'",
		      "--max-concurrency", "x"),
		REFUSED("--request-rate: expected a number, got 'fast'", "--request-rate", "fast"),
		REFUSED("--request-rate: expected a number, got '0x1p3'",
		      "--request-rate", "0x1p3"),
		REFUSED("--port: expected an integer from 1 to 65535, got '0'", "--port", "0"),
		REFUSED("--port: expected an integer from 1 to 65535, got '65536'",
		      "--port", "65536"),
		REFUSED("--ratio: expected a number above 0, got '0'", "--ratio", "0"),
		REFUSED("--ratio: expected a number above 0, got 'nan'", "--ratio", "nan"),
		GIVES("ratio", "\"inf\"", "--ratio", "inf"),
		REFUSED("--threads: must be even", "--threads", "3"),
	};
	run_lines(lines, COUNT(lines));
	(void)state;
}

static void test_values(void **state)
{
	static const struct line lines[] = {
		REFUSED("--label: expected one argument", "--label"),
		REFUSED("--label: expected one argument", "--label", "--save-result"),
		REFUSED("--label: expected one argument", "--label", "--nothing-known"),
		REFUSED("--label: expected one argument", "--label", "--"),
		REFUSED("--label: expected one argument; a value that " "starts with a dash is "
		      "written --label=-x",
		      "--label", "-x"),
		REFUSED("--temperature: expected one argument; " "a value that starts with a dash "
		      "is written --temperature=-0.5",
		      "--temperature", "-0.5"),
		REFUSED("--request-rate: expected one argument; " "a value that starts with a "
		      "dash is written --request-rate=-1e3",
		      "--request-rate", "-1e3"),
		GIVES("label", "\"-\"", "--label", "-"),
		GIVES("label", "\"-a label\"", "--label", "-a label"),
		GIVES("label", "\"-7\"", "--label", "-7"),
		GIVES("label", "\"--save-result\"", "--label=--save-result"),
		REFUSED("--save-result: takes no value, got 'yes'", "--save-result=yes"),
		REFUSED("--no-self-timed: takes no value, got '1'", "--no-self-timed=1"),
		GIVES("backend", "\"openai-chat\"", "--backend", "openai-chat"),
		REFUSED("--backend: expected one of vllm, openai, " "openai-chat, got 'opnai'; "
		      "did you mean openai?",
		      "--backend", "opnai"),
		REFUSED("--backend: expected one of vllm, openai, openai-chat, got 'tgi'",
		      "--backend", "tgi"),
		REFUSED("--backend: expected one of vllm, openai, openai-chat, got 'vllm-rerank'; "
			"use openai",
		      "--backend", "vllm-rerank"),
		REFUSED("--profile: not in this version; a later version starts it", "--profile"),
		GIVES("probe_rate", "0.0", "--probe-rate", "0"),
		REFUSED("--probe-rate: not in this version", "--probe-rate", "0.5"),
		GIVES("FILE", "\"in.json\"", "in.json"),
		GIVES("REST", "[\"b\", \"c\"]", "a", "b", "c"),
		GIVES("REST", "[\"b\"]", "--save-result", "a", "--port", "9", "b"),
		GIVES("REST", "[\"-x\"]", "--", "--port", "-x"),
		GIVES("FILE", "\"--port\"", "--", "--port"),
	};
	run_lines(lines, COUNT(lines));
	(void)state;
}

static void test_lists(void **state)
{
	static const struct line lines[] = {
		GIVES("goodput", "[\"ttft:1\", \"tpot:2\"]",
		      "--goodput", "ttft:1", "tpot:2", "--save-result"),
		GIVES("goodput", "[\"ttft:1\"]", "--goodput=ttft:1"),
		NOTED("goodput", "[\"b\"]",
		      "--goodput is given more than once; the last one counts\n",
		      "--goodput", "a", "--goodput", "b"),
		GIVES("goodput", "[\"-5\"]", "--goodput", "-5"),
		GIVES("goodput", "[\"a\"]", "--goodput", "a", "--", "b"),
		REFUSED("--goodput: expected at least one argument", "--goodput"),
		REFUSED("--goodput: expected at least one argument", "--goodput", "--save-result"),
		GIVES("header", "\"***\"", "--header"),
		GIVES("header", "\"***\"", "--header", "a=b"),
		GIVES("fix", "[\"peak\"]", "--fix", "peak"),
		REFUSED("--fix: expected one of peak, help, got 'all'", "--fix", "peak", "all"),
	};
	run_lines(lines, COUNT(lines));
	(void)state;
}

static void test_json(void **state)
{
	static const struct line lines[] = {
		GIVES("extra_body", "{\"a\": {\"b\": 3}}", "--extra-body", "{\"a\":{\"b\":3}}"),
		GIVES("extra_body", "{\"a\": {\"b\": 3}}", "--extra-body.a.b", "3"),
		GIVES("extra_body", "{\"a_b\": 3}", "--extra_body.a_b=3"),
		NOTED("extra_body", "{\"a\": \"x\"}", "--extra is read as --extra-body\n",
		      "--extra.a=x"),
		GIVES("extra_body", "{\"a\": {\"b\": 3, \"c\": \"x\"}}",
		      "--extra-body.a.b", "3", "--extra-body.a.c", "x"),
		GIVES("extra_body", "{\"a\": {\"x\": 1, \"y\": 2}}",
		      "--extra-body.a", "{\"x\": 1}", "--extra-body.a.y", "2"),
		GIVES("extra_body", "{\"a\": 1000, \"b\": 1024, \"c\": 25600, \"d\": \"1.5K\", "
		      "\"e\": 2199023255552}",
		      "--extra-body.a", "1k", "--extra-body.b", "1K", "--extra-body.c", "25.6k",
		      "--extra-body.d", "1.5K", "--extra-body.e=2T"),
		GIVES("extra_body", "{\"a\": 7, \"b\": 10, \"c\": \"k\", \"d\": \"1kk\"}",
		      "--extra-body.a", "007", "--extra-body.b", "1_0", "--extra-body.c=k",
		      "--extra-body.d=1kk"),
		GIVES("extra_body", "{\"a\": true, \"b\": null, \"c\": -0.5}",
		      "--extra-body.a", "true", "--extra-body.b=null", "--extra-body.c", "-0.5"),
		GIVES("extra_body", "{\"a\": [\"x\", \"y\", \"z\"]}",
		      "--extra-body.a+", "x,y", "--extra-body.a+=z"),
		NOTED("extra_body", "{\"a\": 2}",
		      "--extra-body.a is given more than once; the last one counts\n",
		      "--extra-body.a=1", "--extra-body.a=2"),
		NOTED("extra_body", "{\"y\": 2}", "--extra-body as one JSON text is ignored",
		      "--extra-body", "{\"x\": 1}", "--extra-body.y", "2"),
		REFUSED(NULL, "--extra-body", "{'a': 1}"),
		REFUSED("--extra-body.a: expected one argument", "--extra-body.a"),
		REFUSED("--label.a: --label is not a JSON value, so it has no keys", "--label.a", "x"),
		REFUSED("unknown option --nope.a", "--nope.a", "x"),
		REFUSED("unknown option -0.5", "-0.5"),
	};
	struct sample_opts o;
	struct opt_result r = { 0 };
	struct arena a = { 0 };
	struct err e = { 0 };

	for (size_t i = 0; i < COUNT(lines); i++)
		if (lines[i].want || lines[i].error)
			run_lines(&lines[i], 1);
	assert_int_equal(parse_line(lines[12].arg, &o, &r, &a, &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
	assert_memory_equal(e.text, "--extra-body: expected JSON, got '{'a': 1}': ", 44);
	opt_result_release(&r);
	arena_release(&a);
	(void)state;
}

static void test_json_depth(void **state)
{
	struct sample_opts o;
	struct opt_result r = { 0 };
	struct arena a = { 0 };
	struct err e = { 0 };
	char deep[300] = "--extra-body";
	const char *arg[] = { deep, NULL };

	for (size_t i = 0; i < 100; i++)
		memcpy(deep + strlen("--extra-body") + 2 * i, ".a", 3);
	memcpy(deep + strlen(deep), "=1", 3);
	assert_int_equal(parse_line(arg, &o, &r, &a, &e), -1);
	assert_string_equal(e.text, "--extra-body: more than 32 nested keys");
	opt_result_release(&r);
	arena_release(&a);
	(void)state;
}

static void test_builtin(void **state)
{
	static const struct {
		const char *arg[4];
		bool is_help, is_show;
		const char *topic;
	} cases[] = {
		{ { "--help" }, true, false, "" },
		{ { "-h" }, true, false, "" },
		{ { "--help=all", "--nonsense" }, true, false, "all" },
		{ { "--help=Load" }, true, false, "Load" },
		{ { "--port", "5", "--help" }, true, false, "" },
		{ { "--show-config", "--port", "5" }, false, true, NULL },
		{ { "--show_config" }, false, true, NULL },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct sample_opts o;
		struct opt_result r = { 0 };
		struct arena a = { 0 };
		struct err e = { 0 };

		assert_int_equal(parse_line(cases[i].arg, &o, &r, &a, &e), 0);
		assert_int_equal(r.is_help, cases[i].is_help);
		assert_int_equal(r.is_show_config, cases[i].is_show);
		if (cases[i].topic)
			assert_string_equal(r.help_topic, cases[i].topic);
		opt_result_release(&r);
		arena_release(&a);
	}
	(void)state;
}

static void test_given(void **state)
{
	const char *const arg[] = { "--endpoint-type=vllm", "--extra-body.a=1", "in", NULL };
	struct sample_opts o;
	struct opt_result r = { 0 };
	struct arena a = { 0 };
	struct err e = { 0 };

	assert_int_equal(parse_line(arg, &o, &r, &a, &e), 0);
	assert_true(opt_given(&set, &r, "backend"));
	assert_true(opt_given(&set, &r, "endpoint-type"));
	assert_true(opt_given(&set, &r, "extra_body"));
	assert_true(opt_given(&set, &r, "FILE"));
	assert_false(opt_given(&set, &r, "port"));
	opt_result_release(&r);
	arena_release(&a);
	(void)state;
}

#define SETS(n, v, k, w) { .name = (n), .value = (v), .key = (k), .want = (w) }

static void test_assign(void **state)
{
	static const struct { const char *name, *value, *key, *want, *error; } cases[] = {
		SETS("num_prompts", "12", "num_prompts", "12"),
		SETS("num-prompts", "12", "num_prompts", "12"),
		SETS("save_result", "yes", "save_result", "true"),
		SETS("save_result", "False", "save_result", "false"),
		SETS("self_timed", "off", "self_timed", "false"),
		SETS("self_timed", "null", "self_timed", "null"),
		SETS("temperature", "-0.5", "temperature", "-0.5"),
		SETS("temperature", "", "temperature", "null"),
		SETS("goodput", "ttft:1", "goodput", "[\"ttft:1\"]"),
		SETS("goodput", "[\"ttft:1\", \"e2el:2\"]", "goodput", "[\"ttft:1\", \"e2el:2\"]"),
		SETS("goodput", "[1, true]", "goodput", "[\"1\", \"true\"]"),
		SETS("extra_body", "{\"a\":1}", "extra_body", "{\"a\": 1}"),
		SETS("extra_body.b", "2", "extra_body", "{\"b\": 2}"),
		SETS("limits.image", "3", "limits", "{\"image\": 3, \"video\": 1}"),
		SETS("label", "none", "label", "null"),
		{ .name = "backend", .value = "none",
		  .error = "--backend: expected one of vllm, openai, openai-chat, got 'none'" },
		SETS("endpoint_type", "vllm", "backend", "\"vllm\""),
		{ .name = "save_result", .value = "maybe",
		  .error = "save-result: expected true or false, got 'maybe'" },
		{ .name = "num_promts", .value = "1",
		  .error = "unknown option 'num_promts'; did you mean 'num-prompts'?" },
		{ .name = "label.x", .value = "1",
		  .error = "label: is not a JSON value, so it has no key 'x'" },
		{ .name = "goodput", .value = "[]",
		  .error = "goodput: expected at least one element" },
		{ .name = "profile", .value = "on",
		  .error = "--profile: not in this version; a later version starts it" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct sample_opts o = defaults;
		struct arena a = { 0 };
		struct err e = { 0 };
		int rc = opt_assign(&set, &o, cases[i].name, str_of(cases[i].value), &a, &e);

		if (cases[i].error) {
			assert_int_equal(rc, -1);
			assert_string_equal(e.text, cases[i].error);
		} else {
			if (rc < 0)
				fail_msg("%s=%s: %s", cases[i].name, cases[i].value, e.text);
			assert_value(&o, cases[i].key, cases[i].want);
		}
		arena_release(&a);
	}
	(void)state;
}

static void test_given_later(void **state)
{
	struct sample_opts o = defaults;
	struct opt_result r = { 0 };
	struct arena a = { 0 };
	struct err e = { 0 };

	assert_int_equal(opt_give(&set, &o, &r, "num-promts", STR("7"), &a, &e), -1);
	assert_false(opt_given(&set, &r, "num-prompts"));
	assert_int_equal(opt_give(&set, &o, &r, "num_prompts", STR("7"), &a, &e), 0);
	assert_true(opt_given(&set, &r, "num-prompts"));
	assert_int_equal(o.num_prompts, 7);
	/* As a key of an experiment. */
	assert_false(opt_given(&set, &r, "extra-body"));
	assert_int_equal(opt_give(&set, &o, &r, "extra_body.top_k", STR("7"), &a, &e), 0);
	assert_true(opt_given(&set, &r, "extra-body"));
	arena_release(&a);
	(void)state;
}

static void test_missing_positional(void **state)
{
	static const struct opt needed[] = {
		OPT(struct sample_opts, file, "FILE", .help = "what to read",
		    .flags = OPT_POSITIONAL | OPT_MANY),
	};
	static const struct opt_set one = { .command = "score", .summary = "s", .row = needed,
		.n = 1, .defaults = &defaults, .bytes = sizeof(defaults) };
	struct sample_opts o;
	struct opt_result r = { 0 };
	struct arena a = { 0 };
	struct err e = { 0 };
	char two[] = "two";
	char *argv[] = { two, two };

	assert_int_equal(opt_parse(&one, 0, NULL, &o, &r, &a, &e), -1);
	assert_string_equal(e.text, "FILE is missing: what to read");
	assert_int_equal(opt_parse(&one, 1, argv, &o, &r, &a, &e), 0);
	assert_int_equal(opt_parse(&one, 2, argv, &o, &r, &a, &e), -1);
	assert_string_equal(e.text, "unexpected argument 'two'");
	arena_release(&a);
	(void)state;
}

static void test_nearest(void **state)
{
	static const char *const names[] = { "seed", "request-rate", "num-prompts", "host" };
	static const struct { const char *name, *want; } cases[] = {
		{ "sed", "seed" }, { "seeds", "seed" }, { "esed", "seed" },
		{ "request_rat", "request-rate" }, { "num-promtps", "num-prompts" },
		{ "hots", "host" }, { "xyz", NULL }, { "", NULL }, { "zebra", NULL },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *got = opt_nearest(str_of(cases[i].name), names, COUNT(names));

		if (!cases[i].want)
			assert_null(got);
		else
			assert_string_equal(got ? got : "(none)", cases[i].want);
	}
	(void)state;
}

/* Every repeat of such a list adds to it; the order is that of the words. */
static void test_each(void **state)
{
	struct each_opts { struct opt_list set; } o, none = { { 0 } };
	const struct opt row[] = {
		OPT(struct each_opts, set, "set", .help = "a value", .flags = OPT_EACH | OPT_MANY),
	};
	const struct opt_set each = { .command = "each", .row = row, .n = 1, .defaults = &none,
				      .bytes = sizeof(none) };
	char *argv[] = { (char[]){ "--set" }, (char[]){ "a=1" }, (char[]){ "b=2" },
			 (char[]){ "--set=c=3" }, (char[]){ "--set" }, (char[]){ "d=4" }, NULL };
	struct opt_result r = { 0 };
	struct arena a = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(opt_parse(&each, 6, argv, &o, &r, &a, &e), 0);
	assert_int_equal(o.set.n, 4);
	assert_string_equal(o.set.v[0], "a=1");
	assert_string_equal(o.set.v[1], "b=2");
	assert_string_equal(o.set.v[2], "c=3");
	assert_string_equal(o.set.v[3], "d=4");
	assert_int_equal(r.notes.len, 0);
	opt_result_release(&r);
	argv[5] = NULL;
	assert_int_equal(opt_parse(&each, 5, argv, &o, &r, &a, &e), -1);
	assert_string_equal(e.text, "--set: expected at least one argument");
	opt_result_release(&r);
	arena_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names), cmocka_unit_test(test_abbreviations),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_values), cmocka_unit_test(test_lists),
		cmocka_unit_test(test_each),
		cmocka_unit_test(test_json), cmocka_unit_test(test_json_depth),
		cmocka_unit_test(test_builtin), cmocka_unit_test(test_given),
		cmocka_unit_test(test_assign), cmocka_unit_test(test_given_later),
		cmocka_unit_test(test_missing_positional),
		cmocka_unit_test(test_nearest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
