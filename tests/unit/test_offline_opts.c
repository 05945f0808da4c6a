/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_offline_opts.c - command lines of the offline verbs: what the engine gets, what its
 * arguments come to, what is said and what is refused; --config FILE.yaml.
 */
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

#include "bench/offline/offline.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define ARGS_MAX 12

struct verb_opts {
	struct offline_opts common;
	int64_t input_len;
	enum opt_tri tri;
};
static const struct opt rows[] = {
	OPT(struct verb_opts, input_len, "input-len", .help = "tokens"),
	OPT(struct verb_opts, tri, "self-timed", .help = "tri"),
	OFFLINE_ROWS(offline_backends, 0),
};
static const struct verb_opts defaults = { { OFFLINE_DEFAULTS }, .input_len = 32 };
static const struct opt_set verb_set = {
	.command = "bench made-up", .summary = "made up", .row = rows, .n = COUNT(rows),
	.defaults = &defaults, .bytes = sizeof(defaults), .foreign = &offline_engine_args,
	.takes_prefixes = true,
};

/* ---- the simulator's options, which cmd/ adds to the engine's ---- */

struct sim_opts { int64_t ttft_ms; };
static const struct opt sim_rows[] = {
	OPT(struct sim_opts, ttft_ms, "ttft-ms", .help = "time"),
};
static const struct sim_opts sim_defaults;
static const struct opt_set sim_set = {
	.command = "sim", .row = sim_rows, .n = COUNT(sim_rows), .defaults = &sim_defaults,
	.bytes = sizeof(sim_defaults),
};

static const struct offline_fix fixes[] = {
	{ "lengths", 1, "the lengths that were given" }, { "counts", 4, "what was counted" },
	{ "sets", 0, NULL }, { NULL, 0, NULL },
};
static const struct offline_fix compats[] = { { "sets", 2, "all sets are one" }, { NULL, 0, NULL } };

struct rig {
	struct arena arena;
	struct verb_opts o;
	struct opt_result result;
	struct offline_engine engine;
	struct buf notes;
	struct err e;
};

static char forced_word[] = "--no-enable-prefix-caching";
static char *forced[] = { forced_word, NULL };
static const struct offline_verb verb = {
	.name = "made-up", .fixes = fixes, .compats = compats, .forced = forced,
};

static int judge(struct rig *r, const char *const *arg)
{
	static struct opt_foreign with_sim, sims;
	struct opt_set set = verb_set;
	char **argv;
	int argc = 0;

	*r = (struct rig){ 0 };
	argv = arena_alloc(&r->arena, (ARGS_MAX + 1) * sizeof(*argv));
	for (; argc < ARGS_MAX && arg[argc]; argc++)
		argv[argc] = arena_text(&r->arena, str_of(arg[argc]));
	sims = (struct opt_foreign){ .self = &sim_set, .words = opt_foreign_set_words };
	with_sim = offline_engine_args;
	with_sim.next = &sims;
	set.foreign = &with_sim;
	if (offline_config(&set, &argc, &argv, &r->arena, &r->e) < 0 ||
	    opt_parse(&set, argc, argv, &r->o, &r->result, &r->arena, &r->e) < 0)
		return -1;
	return offline_opts_check(&set, &r->result, &verb, &r->o.common, &r->engine, &r->arena,
				  &r->notes, &r->e);
}

static void release(struct rig *r)
{
	opt_result_release(&r->result);
	buf_release(&r->notes);
	arena_release(&r->arena);
}

struct line {
	const char *arg[ARGS_MAX];
	const char *argv;     /* what the engine gets, joined; NULL: any */
	const char *error;    /* the whole sentence */
	const char *note;     /* a part of the notes; "": none at all */
	int code;
};

#define GETS(words, ...) { .arg = { __VA_ARGS__ }, .argv = (words), .note = "" }
#define NOTED(words, n, ...) { .arg = { __VA_ARGS__ }, .argv = (words), .note = (n) }
#define REFUSED(sentence, ...) \
	{ .arg = { __VA_ARGS__ }, .error = (sentence), .code = ERR_USAGE }

static void check(const struct line *l)
{
	struct buf joined = { 0 };
	struct rig r;
	int rc = judge(&r, l->arg);

	if (l->error) {
		assert_int_equal(rc, -1);
		assert_string_equal(r.e.text, l->error);
		assert_int_equal(r.e.code, l->code);
		release(&r);
		return;
	}
	if (rc < 0)
		print_error("%s\n", r.e.text);
	assert_int_equal(rc, 0);
	buf_add_text(&joined, "");
	for (char *const *at = r.engine.argv; *at; at++)
		buf_printf(&joined, "%s%s", joined.len ? " " : "", *at);
	if (l->argv)
		assert_string_equal(joined.data, l->argv);
	if (*l->note && (!r.notes.len || !strstr(r.notes.data, l->note)))
		print_error("'%s' is not in: %s\n", l->note, r.notes.len ? r.notes.data : "");
	assert_true(*l->note ? r.notes.len && strstr(r.notes.data, l->note) : r.notes.len == 0);
	buf_release(&joined);
	release(&r);
}

#define NPC "--no-enable-prefix-caching"

static void test_words(void **state)
{
	static const struct line lines[] = {
		GETS(NPC, "--input-len", "8"),
		GETS(NPC " --model m -tp 2 -O3", "--model", "m", "-tp", "2", "-O3"),
		GETS(NPC " --enable-prefix-caching", "--enable-prefix-caching"),
		GETS(NPC " --compilation-config.mode 3 -cc.cudagraph_mode NONE",
		     "--compilation-config.mode", "3", "-cc.cudagraph_mode", "NONE"),
		GETS(NPC " --max-model-len 32k", "--max-model-len", "32k"),
		/* Beginnings become whole; those of the server's names do not count. */
		NOTED(NPC " --tensor-parallel-size 2 --no-enable-chunked-prefill",
		      "--tensor is read as --tensor-parallel-size\n--no-enable-chunk is read as "
		      "--no-enable-chunked-prefill\n", "--tensor", "2", "--no-enable-chunk"),
		GETS(NPC " --no-enforce-eager", "--no-enforce-eager"),
		NOTED(NPC " --speculative-config.model m --load-format=dummy",
		      "--load-f is read as --load-format\n", "--speculative-c.model", "m",
		      "--load-f=dummy"),
		GETS("--model sim " NPC " --ttft-ms 20", "--backend", "sim", "--ttft-ms", "20"),
		GETS(NPC " --model m", "--backend", "sim", "--model", "m"),
		GETS(NPC " --model=m", "--backend", "sim", "--model=m"),
		NOTED(NPC " --brand-new-engine-flag 3", "--brand-new-engine-flag: no option of "
		      "profllm bench made-up and no argument of vLLM that is known here; passed on "
		      "unchanged", "--brand-new-engine-flag", "3"),
		NOTED(NPC " --max-model-len ten", "engine arguments: --max-model-len: expected an "
		      "integer of at least -1 (4096, 4k, 4K) or auto, got 'ten'; passed on unchanged",
		      "--max-model-len", "ten"),
		NOTED(NPC, "--disable-frontend-multiprocessing has no effect",
		      "--disable-frontend-multiprocessing"),
		NOTED(NPC, "--show-log has no effect with --base-url: the server is not started here\n",
		      "--base-url", "http://x", "--show-log"),
		NOTED(NPC, "--python has no effect with --backend llama", "--backend", "llama",
		      "--python", "p"),
	};

	(void)state;
	for (size_t i = 0; i < COUNT(lines); i++)
		check(&lines[i]);
}

static void test_refused(void **state)
{
	static const struct line lines[] = {
		REFUSED("--port: an argument of vLLM's HTTP server, which this command does not start",
			"--port", "80"),
		REFUSED("--enable-log-requests: an argument of vLLM's HTTP server, which this command "
			"does not start", "--enable-log-requests"),
		REFUSED("unknown option --max-modellen; did you mean --max-model-len?",
			"--max-modellen", "3"),
		REFUSED("--ttft-ms: an option of the simulator, for --backend sim; got --backend vllm",
			"--ttft-ms", "20"),
		REFUSED("--strange-engine-word: no option of profllm bench made-up and no argument of "
			"vLLM", "--strange-engine-word", "--strict-args"),
		REFUSED("engine arguments: --max-model-len: expected an integer of at least -1 (4096, "
			"4k, 4K) or auto, got 'ten'", "--strict-args", "--max-model-len", "ten"),
		REFUSED("--fix: unknown name 'all'; --fix help lists the names", "--fix", "all"),
		REFUSED("--compat: unknown name 'v0.9'; --compat help lists the names", "--compat",
			"v0.11,v0.9"),
		REFUSED("--backend worker: needs --worker-cmd, the program that drives the engine",
			"--backend", "worker"),
		REFUSED("--base-url: for --backend http, got --backend vllm", "--backend", "vllm",
			"--base-url", "http://x"),
		REFUSED("--server-cmd and --base-url exclude each other: a server is started, or one "
			"that runs already is asked", "--backend", "http", "--base-url", "http://x",
			"--server-cmd", "vllm serve"),
		REFUSED("--nsight: one report file at most, got 2", "--nsight", "a", "b"),
		REFUSED("unexpected argument 'model'", "model"),
		REFUSED("--max: the beginning of several arguments of vLLM's; write it whole", "--max",
			"2"),
		{ .arg = { "--backend", "mii" }, .code = ERR_RUN,
		  .error = "Unknown backend: mii (DeepSpeed-MII is no longer maintained; vLLM accepts "
			   "its name and ends with the same words)" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(lines); i++)
		check(&lines[i]);
}

static void test_values(void **state)
{
	static const char *const args[] = {
		"--backend", "vllm-async", "--model", "m", "--seed=7", "-tp", "2", "-dp", "3",
		"--enable-lora", "--max-loras=4", NULL,
	};
	static const char *const more[] = {
		"--tokenizer", "t", "-q", "fp8", "--fix", "lengths", "counts", "sets", "--compat",
		"v0.11,sets",
		"--nsight", "--trust-remote-code", NULL,
	};
	static const char *const none[] = { NULL };
	struct rig r;

	(void)state;
	assert_int_equal(judge(&r, args), 0);
	assert_true(r.engine.is_async && r.engine.is_model_given && r.engine.is_seed_given);
	assert_string_equal(r.o.common.backend, "vllm");
	assert_string_equal(r.engine.worker, "vllm");
	assert_string_equal(r.engine.model, "m");
	assert_string_equal(r.engine.tokenizer, "m");
	assert_int_equal(r.engine.seed, 7);
	assert_int_equal(r.engine.tensor_parallel, 2);
	assert_int_equal(r.engine.data_parallel, 3);
	assert_int_equal(r.engine.pipeline_parallel, 1);
	assert_true(r.engine.has_lora);
	assert_int_equal(r.engine.max_loras, 4);
	assert_null(r.engine.env[0]);
	assert_string_equal(offline_engine_text(&r.engine, "enable-prefix-caching", &r.arena), "false");
	release(&r);
	assert_int_equal(judge(&r, more), 0);
	assert_false(r.engine.is_model_given);
	assert_string_equal(r.engine.model, "Qwen/Qwen3-0.6B");
	assert_string_equal(r.engine.tokenizer, "t");
	assert_string_equal(r.engine.quantization, "fp8");
	assert_int_equal(r.engine.fixes, 5);
	assert_int_equal(r.engine.compat, 2);
	assert_true(r.engine.is_v011 && r.engine.trusts_remote_code);
	assert_string_equal(r.engine.env[0], "VLLM_WORKER_MULTIPROC_METHOD=spawn");
	release(&r);
	assert_int_equal(judge(&r, none), 0);
	assert_null(r.engine.quantization);
	assert_null(r.engine.executor_backend);
	assert_int_equal(r.engine.seed, 0);
	assert_false(r.engine.is_seed_given || r.engine.has_lora || r.engine.is_async);
	release(&r);
}

static void test_secrets(void **state)
{
	static const char *const apart[] = { "--hf-token", "hush", "--model", "a b", NULL };
	static const char *const joined[] = { "--hf-token=hush", "--dtype", "auto", NULL };
	static const char *const bare[] = { "--hf-token", "--model", "m", NULL };
	struct rig r;

	(void)state;
	assert_int_equal(judge(&r, apart), 0);
	assert_string_equal(r.engine.shown, NPC " --hf-token '***' --model 'a b'");
	assert_string_equal(r.engine.argv[2], "hush");
	assert_string_equal(r.engine.shown_argv[2], "***");
	release(&r);
	assert_int_equal(judge(&r, joined), 0);
	assert_string_equal(r.engine.shown_argv[1], "--hf-token=***");
	release(&r);
	assert_int_equal(judge(&r, bare), 0);
	assert_string_equal(r.engine.shown, NPC " --hf-token --model m");
	release(&r);
}

static void keep_text(void *self, const char *text)
{
	buf_add_text(self, text);
}

static int judge_version(struct rig *r, const char *engine, const char *version)
{
	const struct offline_about about = { .engine = engine, .version = version };
	const struct offline_hooks hooks = { .self = &r->notes, .warn = keep_text };

	return offline_judge(&r->o.common, &r->engine, &about, &hooks, &r->e);
}

static void test_version(void **state)
{
	static const char *const args[] = { "--kda-prefill-backend", "auto", NULL };
	static const char *const strict[] = {
		"--kda-prefill-backend", "auto", "--strict-args", NULL,
	};
	static const char want[] = "engine arguments: --kda-prefill-backend: not in vLLM 0.12.1; it is "
				   "there from 0.27";
	struct rig r;

	(void)state;
	assert_int_equal(judge(&r, args), 0);
	assert_int_equal(judge_version(&r, "vllm", "0.32.0"), 0);
	assert_int_equal(judge_version(&r, "vllm", ""), 0);
	assert_int_equal(judge_version(&r, "sim", "0.12.0"), 0);
	assert_int_equal(r.notes.len, 0);
	assert_int_equal(judge_version(&r, "vllm", "0.12.1"), 0);
	assert_string_equal(r.notes.data, want);
	release(&r);
	assert_int_equal(judge(&r, strict), 0);
	assert_int_equal(judge_version(&r, "vllm", "0.12.1"), -1);
	assert_int_equal(r.e.code, ERR_USAGE);
	assert_string_equal(r.e.text, want);
	release(&r);
}

static void test_fix_list(void **state)
{
	static const char *const list[] = { "help" };
	struct offline_opts o = {
		.fix = { .v = (const char **)list, .n = 1, .is_set = true }, .compat = "",
	};
	struct buf out = { 0 };

	(void)state;
	assert_true(offline_list_names(&o, &verb, &out));
	assert_non_null(strstr(out.data, "counts           what was counted\n"));
	assert_null(strstr(out.data, "sets")); /* it has become the default */
	buf_reset(&out);
	o.fix.n = 0;
	o.compat = "help";
	assert_true(offline_list_names(&o, &verb, &out));
	assert_string_equal(out.data, "v0.11            the defaults of that release\n"
			    "sets             all sets are one\n");
	o.compat = "";
	assert_false(offline_list_names(&o, &verb, &out));
	buf_release(&out);
}

/* ---- --config ---- */

static char folder[] = "/tmp/profllm-config-XXXXXX";

static const char *config(const char *name, const char *text)
{
	static char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	return path;
}

static void check_config(const char *text, const char *want)
{
	char *argv[] = { "--first", "--config", (char *)config("c.yaml", text), "--last", NULL };
	char **args = argv;
	int argc = 4;
	struct arena a = { 0 };
	struct err e = { 0 };
	struct buf out = { 0 };

	if (offline_config(&verb_set, &argc, &args, &a, &e) < 0)
		print_error("%s\n", e.text);
	assert_int_equal(e.code, ERR_NONE);
	for (int i = 0; i < argc; i++)
		buf_printf(&out, "%s%s", i ? "|" : "", args[i]);
	assert_string_equal(out.data, want);
	assert_null(args[argc]);
	buf_release(&out);
	arena_release(&a);
}

static void test_config(void **state)
{
	(void)state;
	check_config("model: facebook/opt-125m\ntensor-parallel-size: 4\n",
		     "--model|facebook/opt-125m|--tensor-parallel-size|4|--first|--last");
	check_config("enforce_eager: yes\nenable_prefix_caching: false\nload_test: off\n"
		     "self_timed: no\n",
		     "--enforce_eager|--no-enable_prefix_caching|--no-self_timed|--first|--last");
	check_config("cudagraph-capture-sizes: [1, 2, 4]\nallowed-media-domains: []\n",
		     "--cudagraph-capture-sizes|1|2|4|--first|--last");
	check_config("compilation-config:\n  mode: 3\n  pass_config: {fuse: true}\n",
		     "--compilation-config|{\"mode\": 3, \"pass_config\": {\"fuse\": true}}"
		     "|--first|--last");
	check_config("gpu_memory_utilization: 0.50\nseed: ~\nname: -x\n",
		     "--gpu_memory_utilization|0.5|--seed|None|--name=-x|--first|--last");
	check_config("{}", "--first|--last");
}

static void refuse_config(const char *const *words, enum err_code code, const char *part)
{
	char *argv[5] = { 0 };
	char **args = argv;
	int argc = 0;
	struct arena a = { 0 };
	struct err e = { 0 };

	for (; words[argc]; argc++)
		argv[argc] = (char *)words[argc];
	assert_int_equal(offline_config(&verb_set, &argc, &args, &a, &e), -1);
	assert_int_equal(e.code, code);
	if (!strstr(e.text, part))
		print_error("%s\n", e.text);
	assert_non_null(strstr(e.text, part));
	arena_release(&a);
}

static void test_config_refused(void **state)
{
	const char *bare[] = { "--config", NULL }, *json[] = { "--config=x.json", NULL };
	const char *twice[] = { "--config=a.yaml", "--config", "b.yaml", NULL };
	const char *none[] = { "--config", "/nowhere/c.yaml", NULL };
	const char *list[] = { "--config", NULL, NULL };

	(void)state;
	refuse_config(bare, ERR_USAGE, "expected the name of a YAML file");
	refuse_config(json, ERR_USAGE, "expected a .yaml or .yml file, got 'x.json'");
	refuse_config(twice, ERR_USAGE, "one file at most");
	refuse_config(none, ERR_IO, "/nowhere/c.yaml");
	list[1] = config("list.yml", "- a\n");
	refuse_config(list, ERR_PARSE, "expected names of options");
	list[1] = config("bad.yml", "a: [1\n");
	refuse_config(list, ERR_PARSE, "line ");
}

/* Typed options take precedence over the file. */
static void test_config_order(void **state)
{
	const char *path = config("o.yaml", "input-len: 64\nseed: 3\nbackend: vllm-chat\n");
	const char *const args[] = { "--seed", "5", "--config", path, NULL };
	struct rig r;

	(void)state;
	assert_int_equal(judge(&r, args), 0);
	assert_int_equal(r.o.input_len, 64);
	assert_int_equal(r.engine.seed, 5);
	assert_string_equal(r.engine.worker, "vllm-chat");
	assert_int_equal(r.result.notes.len, 0);
	/* The file's own is not even there. */
	assert_int_equal(r.result.rest.n, 2);
	release(&r);
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	static const char *const names[] = { "c.yaml", "o.yaml", "list.yml", "bad.yml" };
	char path[128];

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		unlink(path);
	}
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_values), cmocka_unit_test(test_secrets),
		cmocka_unit_test(test_version), cmocka_unit_test(test_fix_list),
		cmocka_unit_test(test_config), cmocka_unit_test(test_config_refused),
		cmocka_unit_test(test_config_order),
	};

	return cmocka_run_group_tests_name("run_offline_opts", tests, make_folder, remove_folder);
}
