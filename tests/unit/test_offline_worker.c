/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_offline_worker.c - what an engine's program is asked, word by word, and what becomes of
 * its answers. The program is Perl; it writes every question to a file, a line each.
 *
 * What it may do wrong: test_worker.c and tests/cli/worker-faults.t.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/offline/offline.h"
#include "bench/offline/offline_internal.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/json/read.h"
#include "core/json/write.h"
#include "host/proc/keeper.h"

static const char script[] =
	"use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);\n"
	"open(my $s, '+<&=', 3); binmode $s; open(my $log, '>>', $ENV{ASKED}); $log->autoflush(1);\n"
	"sub now { int(clock_gettime(CLOCK_MONOTONIC) * 1e9) }\n"
	"sub put { my $t = shift; $t = pack('N', length $t) . $t;\n"
	"  while (length $t) { substr($t, 0, syswrite($s, $t)) = '' } }\n"
	"sub take { my ($n, $t) = (shift, ''); while (length $t < $n) {\n"
	"  sysread($s, $t, $n - length $t, length $t) or exit 0 } $t }\n"
	"put('{\"type\":\"hello\",\"protocol\":1,\"engine\":\"test\",\"version\":\"0.32.0\",'\n"
	"  . '\"features\":[\"chat\",\"beam\",\"lora\",\"render\",\"mm_stats\"]}');\n"
	"my $n = 0;\n"
	"while (1) {\n"
	"  $_ = take(unpack 'N', take(4)); print $log \"$_\\n\";\n"
	"  my ($id, $type) = /^\\{\"id\":(\\d+),\"type\":\"(\\w+)\"/; my $rest = ''; my $began = now();\n"
	"  my $clocks = sub { qq(,\"began_ns\":$began,\"ended_ns\":) . now() };\n"
	"  if ($type eq 'load') { $rest = $clocks->() . ',\"compilation_s\":1.5,\"phases\":'\n"
	"    . '[{\"name\":\"weights\",\"s\":0.25},{\"name\":\"graphs\",\"s\":null}]' }\n"
	"  if ($type eq 'describe') { $rest = ',\"max_model_len\":2048,\"device\":\"H100 \\u00fc\",'\n"
	"    . '\"is_pooling\":true,\"kv\":{\"blocks\":7}' }\n"
	"  if ($type eq 'put') { $n = 0 if /\"is_first\":true/; $n += () = /\"prompt\":/g;\n"
	"    $rest = qq(,\"n\":$n) }\n"
	"  if ($type eq 'generate') { $rest = $clocks->() . ',\"prompt_tokens\":[1,2,3],'\n"
	"    . '\"output_tokens\":[4,5,6],\"finished\":[1,0,true],\"e2el_s\":[0.5,null,1]' }\n"
	"  $rest = $clocks->() if $type eq 'beam';\n"
	"  $rest = ',\"text\":\"<user>\\nhi\"' if $type eq 'render';\n"
	"  $rest = ',\"requests\":{\"a\":{\"get_mm_hashes_secs\":0.5}}' if $type eq 'mm_stats';\n"
	"  put(qq({\"id\":$id,\"type\":\"ok\"$rest})); exit 0 if $type eq 'shutdown' }\n";

static char folder[64];

struct rig {
	struct offline *o;
	struct offline_opts opts;
	struct offline_start how;
	struct err e;
	struct arena arena;
	struct json_value **asked; /* every question so far */
	size_t n;
};

static char *path_of(const char *name)
{
	return file_join(folder, name);
}

static void begin(struct rig *r, char *const *argv)
{
	char *asked = path_of("asked"), *worker = path_of("worker.pl");

	unlink(asked);
	setenv("ASKED", asked, 1);
	r->opts = (struct offline_opts){ OFFLINE_DEFAULTS };
	r->opts.worker_cmd = arena_printf(&r->arena, "perl '%s'", worker);
	r->how.opts = &r->opts;
	r->how.engine_argv = argv;
	r->how.backend = r->how.backend ? r->how.backend : "worker";
	if (offline_start(&r->how, &r->o, &r->e) < 0)
		fail_msg("%s", r->e.text);
	free(asked);
	free(worker);
}

static void load(struct rig *r)
{
	struct offline_loaded loaded;

	assert_int_equal(offline_load(r->o, &loaded, &r->e), 0);
}

/* The k-th question from the end, 0 the last. */
static struct json_value *asked(struct rig *r, size_t k)
{
	char *path = path_of("asked");
	struct buf text = { 0 };
	struct str rest;

	assert_int_equal(file_read(path, 1u << 28, &text, &r->e), 0);
	rest = arena_str(&r->arena, buf_str(&text));
	r->asked = mem_grow(r->asked, 64, sizeof(*r->asked));
	for (r->n = 0; rest.n && r->n < 64; r->n++)
		assert_int_equal(json_parse(&r->arena, str_cut(&rest, '\n'), &r->asked[r->n],
					    &r->e), 0);
	buf_release(&text);
	free(path);
	assert_true(k < r->n);
	return r->asked[r->n - 1 - k];
}

static void expect(const struct json_value *v, const char *key, const char *text)
{
	struct buf out = { 0 };
	struct json_writer w = json_writer(&out);

	v = json_get(v, key);
	if (!v)
		fail_msg("there is no %s", key);
	w.is_compact = true;
	json_put_value(&w, v);
	if (strcmp(out.data, text) != 0)
		fail_msg("%s is %s, not %s", key, out.data, text);
	buf_release(&out);
}

static void end(struct rig *r)
{
	assert_int_equal(offline_stop(r->o, &r->e), 0);
	expect(asked(r, 0), "type", "\"shutdown\"");
	arena_release(&r->arena);
	free(r->asked);
}

static void loading(void **state)
{
	char *argv[] = { (char[]){ "--model" }, (char[]){ "a \"b\"" }, NULL };
	struct rig r = { .how = { .backend = "vllm" } };
	const struct offline_about *about;
	struct offline_loaded loaded;

	(void)state;
	r.how.is_compiled = true;
	begin(&r, argv);
	about = offline_about(r.o);
	assert_string_equal(about->engine, "test");
	assert_string_equal(about->version, "0.32.0");
	assert_true(about->has_chat && about->has_beam && about->has_lora && about->has_render);
	assert_false(about->has_encode || about->has_async || about->has_prequeue ||
		     about->has_profile);
	assert_int_equal(offline_load(r.o, &loaded, &r.e), 0);
	expect(asked(&r, 1), "args", "[\"--model\",\"a \\\"b\\\"\"]");
	expect(asked(&r, 1), "backend", "\"vllm\"");
	expect(asked(&r, 1), "async", "false");
	expect(asked(&r, 1), "compile", "true");
	expect(asked(&r, 0), "type", "\"describe\"");
	assert_true(loaded.spawn_s > 0 && loaded.load_s >= 0 && loaded.ready_s >= loaded.spawn_s);
	assert_true(loaded.compilation_s == 1.5 && isnan(loaded.encoder_compilation_s));
	assert_int_equal(loaded.n_phases, 2);
	assert_string_equal(loaded.phase[0].name, "weights");
	assert_true(loaded.phase[0].s == 0.25 && isnan(loaded.phase[1].s));
	assert_int_equal(about->max_model_len, 2048);
	assert_string_equal(about->device, "H100 \xc3\xbc");
	assert_true(about->is_pooling);
	assert_true(str_is(about->json, "{\"max_model_len\": 2048, \"device\": \"H100 \\u00fc\", "
			   "\"is_pooling\": true, \"kv\": {\"blocks\":7}}"));
	end(&r);
}

static void no_such_ability(void **state)
{
	static const struct { struct offline_run run; const char *text; } cases[] = {
		{ { .method = OFFLINE_ENCODE }, "test cannot encode" },
		{ { .method = OFFLINE_GENERATE, .is_profiled = true },
		  "test cannot profile itself (--profile)" },
		{ { .method = OFFLINE_GENERATE, .is_prequeued = true },
		  "test cannot take all requests before it begins (--prequeue-requests)" },
	};
	char *argv[] = { NULL };
	struct rig r = { 0 };
	struct workload w = { 0 };
	struct offline_outcome out;

	(void)state;
	workload_add(&w);
	begin(&r, argv);
	load(&r);
	assert_int_equal(offline_put(r.o, &(struct offline_batch){ .w = &w, .n = 1 }, &r.e), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(offline_run(r.o, &cases[i].run, &out, &r.e), -1);
		assert_int_equal(r.e.code, ERR_RUN);
		assert_string_equal(r.e.text, cases[i].text);
	}
	end(&r);
	workload_release(&w);
}

static void no_asynchronous_engine(void **state)
{
	char *argv[] = { NULL };
	struct rig r = { .how = { .is_async = true } };
	struct offline_loaded loaded;

	(void)state;
	begin(&r, argv);
	assert_int_equal(offline_load(r.o, &loaded, &r.e), -1);
	assert_string_equal(r.e.text, "the worker has no asynchronous engine");
	end(&r);
}

/* ---- requests ---- */

static void requests(void **state)
{
	static const uint32_t order[] = { 2, 0, 1, 3 };
	static const int32_t lora[] = { 0, 2, 0, 0 };
	char *argv[] = { NULL };
	struct rig r = { 0 };
	struct workload w = { 0 };
	struct json_value *list;
	struct sample *x;

	(void)state;
	x = workload_add(&w);
	x->prompt = STR("say \"hi\"\n\xc3\xbc\x01");
	x->prompt_len = 5;
	x->output_len = 16;
	x = workload_add(&w);
	x->kind = PROMPT_JSON;
	x->prompt = STR("[1, 2, 3]");
	x->prompt_len = 3;
	x->output_len = -1;
	x = workload_add(&w);
	x->messages = STR("[{\"role\": \"user\", \"content\": \"a\"}]");
	x->media = STR("[{\"type\": \"image_url\"}]");
	x = workload_add(&w);
	x->kind = PROMPT_JSON;
	x->prompt = STR("[{\"role\": \"user\", \"content\": \"b\"}]");
	begin(&r, argv);
	load(&r);
	assert_int_equal(offline_put(r.o, &(struct offline_batch){ .w = &w, .index = order, .n = 4,
				     .lora = lora, .lora_path = "/a/b" }, &r.e), 0);
	expect(asked(&r, 0), "is_first", "true");
	list = json_get(asked(&r, 0), "requests");
	assert_int_equal(list->count, 4);
	expect(&list->item[0], "prompt", "\"\"");
	expect(&list->item[0], "messages", "[{\"role\":\"user\",\"content\":\"a\"}]");
	expect(&list->item[0], "media", "[{\"type\":\"image_url\"}]");
	assert_null(json_get(&list->item[0], "lora"));
	expect(&list->item[1], "prompt", "\"say \\\"hi\\\"\\n\\u00fc\\u0001\"");
	expect(&list->item[1], "prompt_len", "5");
	expect(&list->item[1], "output_len", "16");
	expect(&list->item[1], "lora", "{\"name\":\"lora2\",\"id\":2,\"path\":\"/a/b\"}");
	assert_null(json_get(&list->item[1], "messages"));
	expect(&list->item[2], "prompt", "[1,2,3]");
	expect(&list->item[2], "output_len", "null");
	expect(&list->item[3], "prompt", "\"\"");
	expect(&list->item[3], "messages", "[{\"role\":\"user\",\"content\":\"b\"}]");
	end(&r);
	workload_release(&w);
}

/* 20 MiB of prompts go in pieces, which are one batch. */
static void many_requests(void **state)
{
	char *argv[] = { NULL }, *text = mem_alloc(1 << 20);
	struct rig r = { 0 };
	struct workload w = { 0 };

	(void)state;
	memset(text, 'x', 1 << 20);
	for (int i = 0; i < 20; i++)
		workload_add(&w)->prompt = (struct str){ text, 1 << 20 };
	begin(&r, argv);
	load(&r);
	assert_int_equal(offline_put(r.o, &(struct offline_batch){ .w = &w, .n = 20 }, &r.e), 0);
	expect(asked(&r, 0), "is_first", "false");
	expect(asked(&r, 1), "is_first", "false");
	expect(asked(&r, 2), "is_first", "true");
	expect(asked(&r, 3), "type", "\"describe\"");
	assert_int_equal(json_get(asked(&r, 0), "requests")->count +
			 json_get(asked(&r, 1), "requests")->count +
			 json_get(asked(&r, 2), "requests")->count, 20);
	end(&r);
	workload_release(&w);
	free(text);
}

/* ---- runs ---- */

static void a_run(void **state)
{
	char *argv[] = { NULL };
	struct rig r = { 0 };
	struct workload w = { 0 };
	struct offline_outcome out;
	const struct offline_run run = {
		.method = OFFLINE_GENERATE, .n = 2, .temperature = 0.5, .top_p = 0.9,
		.ignore_eos = true, .id_prefix = "test", .batch_max = 7, .progress = "Processed prompts",
	};

	(void)state;
	for (int i = 0; i < 3; i++)
		workload_add(&w);
	begin(&r, argv);
	load(&r);
	assert_int_equal(offline_put(r.o, &(struct offline_batch){ .w = &w, .n = 3 }, &r.e), 0);
	assert_int_equal(offline_run(r.o, &run, &out, &r.e), 0);
	expect(asked(&r, 0), "n", "2");
	expect(asked(&r, 0), "temperature", "0.5");
	expect(asked(&r, 0), "top_p", "0.9");
	expect(asked(&r, 0), "ignore_eos", "true");
	expect(asked(&r, 0), "detokenize", "false");
	expect(asked(&r, 0), "profile", "false");
	expect(asked(&r, 0), "prequeue", "false");
	expect(asked(&r, 0), "id_prefix", "\"test\"");
	expect(asked(&r, 0), "batch_max", "7");
	expect(asked(&r, 0), "is_progress", "true");
	assert_true(out.has_counts && out.n == 3 && out.finished == 2);
	assert_int_equal(out.prompt_tokens, 6);
	assert_int_equal(out.output_tokens, 15);
	assert_true(out.is_finished[0] && !out.is_finished[1] && out.is_finished[2]);
	assert_true(out.e2el_s[0] == 0.5 && isnan(out.e2el_s[1]) && out.e2el_s[2] == 1);
	assert_true(out.elapsed_s >= 0 && out.outside_s >= 0 && out.ended_ns >= out.began_ns);
	offline_outcome_release(&out);
	/* The same batch again, by another method that tells no counts. */
	assert_int_equal(offline_run(r.o, &(struct offline_run){ .method = OFFLINE_BEAM, .n = 4 },
				     &out, &r.e), 0);
	expect(asked(&r, 0), "type", "\"beam\"");
	expect(asked(&r, 0), "is_progress", "false");
	assert_true(!out.has_counts && !out.prompt && !out.e2el_s && out.finished == 3);
	offline_outcome_release(&out);
	end(&r);
	workload_release(&w);
}

static void rendering(void **state)
{
	char *argv[] = { (char[]){ "--model=m" }, NULL };
	struct rig r = { 0 };
	struct buf text = { 0 };

	(void)state;
	begin(&r, argv);
	assert_int_equal(offline_render(r.o, STR("[{\"role\":\"user\"}]"), (struct str){ 0 }, &text, &r.e),
			 0);
	assert_string_equal(text.data, "<user>\nhi");
	expect(asked(&r, 0), "messages", "[{\"role\":\"user\"}]");
	expect(asked(&r, 0), "tools", "null");
	expect(asked(&r, 0), "args", "[\"--model=m\"]");
	load(&r);
	assert_int_equal(offline_render(r.o, STR("[]"), STR("[{}]"), &text, &r.e), 0);
	expect(asked(&r, 0), "tools", "[{}]");
	assert_null(json_get(asked(&r, 0), "args"));
	buf_reset(&text);
	assert_int_equal(offline_mm_stats(r.o, &text, &r.e), 0);
	assert_string_equal(text.data, "{\"a\":{\"get_mm_hashes_secs\":0.5}}");
	buf_release(&text);
	end(&r);
}

static void a_cancelled_start(void **state)
{
	char *argv[] = { NULL };
	atomic_bool cancel = true;
	struct rig r = { .how = { .hooks.cancel = &cancel, .backend = "worker" } };

	(void)state;
	r.opts = (struct offline_opts){ OFFLINE_DEFAULTS };
	r.how.opts = &r.opts;
	r.how.engine_argv = argv;
	assert_int_equal(offline_start(&r.how, &r.o, &r.e), -1);
	assert_int_equal(r.e.code, ERR_CANCELLED);
}

static void first_lines(void **state)
{
	static const struct { const char *script, *python; } cases[] = {
		{ "#!/opt/venv/bin/python3.11\nimport sys\n", "/opt/venv/bin/python3.11" },
		{ "#!/usr/bin/python -sE\n", "/usr/bin/python" },
		{ "#!/usr/bin/env python3\n", "python3" },
		{ "#! /usr/bin/python3", "/usr/bin/python3" },
		{ "#!/bin/sh\n'''exec' /a/python \"$0\"\n", "" },
		{ "#!/usr/bin/env bash\n", "" }, { "import sys\n", "" }, { "", "" }, { "#!", "" },
		{ "\x7f" "ELF", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_true(str_is(offline_interpreter(str_of(cases[i].script)), cases[i].python));
}

/* ---- which program ---- */

/* @ is the folder, # is this program. */
static const char *in_place(struct arena *a, const char *text)
{
	struct buf out = { 0 };
	char self[512] = "";

	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	for (; text && *text; text++)
		if (*text == '@' || *text == '#')
			buf_add_text(&out, *text == '@' ? folder : self);
		else
			buf_add_char(&out, *text);
	text = text ? arena_text(a, buf_str(&out)) : NULL;
	buf_release(&out);
	return text;
}

static void put_in_place(const char *name, const char *text)
{
	char *path = path_of(name), *slash = strrchr(path, '/');

	*slash = '\0';
	assert_int_equal(file_mkdirs(path, NULL), 0);
	*slash = '/';
	assert_int_equal(file_write_atomic_mode(path, str_of(text), 0755, NULL), 0);
	free(path);
}

struct program_row {
	const char *backend, *path, *workers, *given_python, *env_python, *venv, *worker_cmd;
	const char *nsight; /* NULL: not asked for */
	char *const *engine;
	const char *argv, *python, *error;
};

static void check_program(const struct program_row *row)
{
	struct arena a = { 0 };
	char *path = strdup(getenv("PATH"));
	struct offline_opts opts = { OFFLINE_DEFAULTS };
	const struct offline_start how = { .opts = &opts, .backend = row->backend,
					   .engine_argv = row->engine };
	const struct { const char *name, *value; } env[] = {
		{ "PATH", row->path }, { "PROFLLM_WORKERS", row->workers },
		{ "PROFLLM_PYTHON", row->env_python }, { "VIRTUAL_ENV", row->venv },
	};
	const char *nsight = row->nsight;
	struct offline_program found;
	struct buf got = { 0 };
	struct err e = { 0 };
	int rc;

	for (size_t k = 0; k < sizeof(env) / sizeof(*env); k++)
		if (!env[k].value)
			unsetenv(env[k].name);
		else
			setenv(env[k].name, in_place(&a, env[k].value), 1);
	opts.worker_cmd = row->worker_cmd;
	opts.python = row->given_python;
	if (nsight)
		opts.nsight = (struct opt_list){ .v = &nsight, .n = 1, .is_set = true };
	rc = offline_find(&how, &a, &found, &e);
	setenv("PATH", path, 1);
	free(path);
	assert_int_equal(rc, row->error ? -1 : 0);
	if (row->error) {
		assert_int_equal(e.code, ERR_USAGE);
		assert_true(str_starts(str_of(e.text), str_of(in_place(&a, row->error))));
	} else {
		for (char **word = found.argv; *word; word++)
			buf_printf(&got, "%s%s", got.len ? " " : "", *word);
		assert_string_equal(got.data, in_place(&a, row->argv));
		assert_int_equal(found.is_wrapped, row->nsight != NULL);
		if (row->python)
			assert_string_equal(found.python, in_place(&a, row->python));
		else
			assert_null(found.python);
	}
	buf_release(&got);
	arena_release(&a);
}

static void programs(void **state)
{
#define NSYS "nsys profile --trace-fork-before-exec=true --cuda-graph-trace=node"
	static char cuda[] = "cuda", torch[] = "torch", profiler[] = "--profiler-config.profiler";
	static char *const by_cuda[] = { profiler, cuda, NULL };
	static char *const by_torch[] = { profiler, torch, NULL };
	static char *const none[] = { NULL };
	static const struct program_row row[] = {
		{ "sim", "@/none", .argv = "# sim --engine-worker" },
		{ "other", "@/none", .worker_cmd = "run 'a b' -c", .argv = "run a b -c" },
		{ "other", "@/none", .worker_cmd = " ", .error = "--worker-cmd is empty" },
		{ "other", "@/none", .worker_cmd = "a 'b", .error = "--worker-cmd: " },
		{ "other", "@/none", .error = "--backend other needs --worker-cmd, the program that "
		  "drives the engine" },
		{ "llama", "@/none", .workers = "@/w", .argv = "@/w/llama_worker" },
		{ "vllm", "@/none", .workers = "@/w", .given_python = "py1", .env_python = "py2",
		  .argv = "py1 @/w/vllm_worker.py", .python = "py1" },
		{ "vllm-chat", "@/none", .workers = "@/w", .env_python = "py2", .venv = "@/venv",
		  .argv = "py2 @/w/vllm_worker.py", .python = "py2" },
		{ "hf", "@/script", .workers = "@/w", .env_python = "", .venv = "@/venv",
		  .argv = "@/venv/bin/python3 @/w/hf_worker.py", .python = "@/venv/bin/python3" },
		{ "hash", "@/script:@/python", .workers = "@/w", .venv = "@/none",
		  .argv = "/opt/bin/python3.12 @/w/hash_worker.py", .python = "/opt/bin/python3.12" },
		{ "hash", "@/shell:@/python", .workers = "@/w", .argv = "python3 @/w/hash_worker.py",
		  .python = "python3" },
		{ "vllm", "@/python", .workers = "@/w", .argv = "python3 @/w/vllm_worker.py", .python = "python3" },
		{ "vllm", "@/shell", .workers = "@/w", .error = "backend vllm needs Python, and python3 is not in "
		  "PATH; --python or PROFLLM_PYTHON may name one" },
		{ "llama", "@/none", .workers = "@/none", .error = "PROFLLM_WORKERS names no folder with "
		  "llama_worker: @/none" },
		{ "llama", "@/none", .error = "the worker llama_worker is neither " },
		{ "sim", "@/none", .nsight = "", .engine = none, .error = "--nsight: nsys (Nsight Systems) is not in "
		  "PATH" },
		{ "sim", "@/nsys", .nsight = "", .engine = none, .argv = NSYS " # sim --engine-worker" },
		{ "sim", "@/nsys", .nsight = "out", .engine = by_torch, .argv = NSYS " -o out # sim --engine-worker" },
		{ "other", "@/nsys", .nsight = "out", .engine = by_cuda, .worker_cmd = "w", .argv = NSYS
		  " --capture-range=cudaProfilerApi --capture-range-end=repeat -o out w" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++)
		check_program(&row[i]);
}

static int set_up(void **state)
{
	char *path;
	int rc;

	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/offline-worker-%d", (int)getpid());
	setenv("XDG_RUNTIME_DIR", folder, 1);
	if (file_mkdirs(folder, NULL) < 0)
		return -1;
	path = path_of("worker.pl");
	rc = file_write_atomic(path, str_of(script), NULL);
	put_in_place("w/llama_worker", "");
	put_in_place("w/vllm_worker.py", "");
	put_in_place("w/hf_worker.py", "");
	put_in_place("w/hash_worker.py", "");
	put_in_place("venv/bin/python3", "");
	put_in_place("python/python3", "");
	put_in_place("script/vllm", "#!/opt/bin/python3.12\nimport vllm\n");
	put_in_place("shell/vllm", "#!/bin/sh\n");
	put_in_place("nsys/nsys", "");
	free(path);
	return rc;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loading),
		cmocka_unit_test(no_such_ability),
		cmocka_unit_test(no_asynchronous_engine),
		cmocka_unit_test(requests),
		cmocka_unit_test(many_requests),
		cmocka_unit_test(a_run),
		cmocka_unit_test(rendering),
		cmocka_unit_test(a_cancelled_start),
		cmocka_unit_test(first_lines),
		cmocka_unit_test(programs),
	};

	if (argc > 1 && strcmp(argv[1], KEEPER_WORD) == 0)
		return keeper_main();
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
