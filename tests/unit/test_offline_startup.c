/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a cold start takes away and gives back; the numbers of --compat v0.11; what vLLM's log
 * tells of a start; the command of a server that is started for a batch.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/offline/caches.h"
#include "bench/offline/offline_internal.h"
#include "bench/offline/startup.h"
#include "bench/server/engine_report.h"
#include "core/base/file.h"

static char *scratch(void)
{
	char *path = strdup("/tmp/test-startup-XXXXXX");

	assert_non_null(mkdtemp(path));
	return path;
}

static void put_file(const char *folder, const char *name, size_t n)
{
	char *path = file_join(folder, name), *bytes = calloc(1, n);
	struct err e = { 0 };

	assert_int_equal(file_write_atomic(path, (struct str){ bytes, n }, &e), 0);
	free(bytes);
	free(path);
}

/* ---- caches ---- */

static void caches_are_new_and_go_with_all_that_is_in_them(void **state)
{
	struct caches one = { 0 }, two = { 0 };
	struct err e = { 0 };
	char *folder = scratch(), *deep;

	(void)state;
	setenv("TMPDIR", folder, 1);
	assert_int_equal(caches_new(&one, &e), 0);
	assert_int_equal(caches_new(&two, &e), 0);
	assert_string_not_equal(one.vllm, two.vllm);
	assert_non_null(strstr(one.vllm, "/vllm_startup_bench_cold_"));
	assert_true(strncmp(one.env[0], "VLLM_CACHE_ROOT=", 16) == 0);
	assert_string_equal(one.env[0] + 16, one.vllm);
	assert_true(strncmp(one.env[1], "TORCHINDUCTOR_CACHE_DIR=", 24) == 0);
	assert_true(strncmp(one.env[2], "TRITON_CACHE_DIR=", 17) == 0);
	assert_true(strncmp(one.env[2] + 17, one.inductor, strlen(one.inductor)) == 0);
	assert_null(one.env[3]);
	deep = file_join(one.vllm, "torch_compile_cache/a/rank_0");
	assert_int_equal(file_mkdirs(deep, &e), 0);
	put_file(deep, "code.py", 10);
	assert_int_equal(chmod(deep, 0500), 0);
	free(deep);
	assert_int_equal(caches_remove(&one, &e), 0);
	assert_int_equal(caches_remove(&two, &e), 0);
	unsetenv("TMPDIR");
	assert_int_equal(rmdir(folder), 0); /* nothing is left in it */
	free(folder);
}

static void a_link_goes_and_what_it_points_to_stays(void **state)
{
	struct caches c = { 0 };
	struct err e = { 0 };
	char *kept = scratch(), *link;

	(void)state;
	put_file(kept, "weights", 10);
	assert_int_equal(caches_new(&c, &e), 0);
	link = file_join(c.inductor, "model");
	assert_int_equal(symlink(kept, link), 0);
	free(link);
	assert_int_equal(caches_remove(&c, &e), 0);
	link = file_join(kept, "weights");
	assert_true(file_exists(link));
	unlink(link);
	rmdir(kept);
	free(link);
	free(kept);
}

static void folders_that_cannot_be_made_are_an_error(void **state)
{
	struct caches c;
	struct err e = { 0 };

	(void)state;
	setenv("TMPDIR", "/nowhere/at/all", 1);
	assert_int_equal(caches_new(&c, &e), -1);
	unsetenv("TMPDIR");
	assert_int_equal(e.code, ERR_IO);
	assert_non_null(strstr(e.text, "/nowhere/at/all/vllm_startup_bench_cold_"));
}

/* ---- the page cache ---- */

static void every_file_of_a_model_is_taken_out(void **state)
{
	struct cached_pages p;
	struct err e = { 0 };
	char *folder = scratch(), *path;

	(void)state;
	put_file(folder, "model.safetensors", 1 << 20);
	put_file(folder, "config.json", 100);
	assert_int_equal(pages_drop(folder, &p, &e), 0);
	assert_int_equal(p.files, 2);
	/* A file system in memory keeps them, and says so. */
	assert_true(p.dropped + p.left >= 0 && p.dropped + p.left <= (1 << 20) + 100);
	path = file_join(folder, "config.json");
	assert_int_equal(pages_drop(path, &p, &e), 0);
	assert_int_equal(p.files, 1);
	unlink(path);
	free(path);
	path = file_join(folder, "model.safetensors");
	unlink(path);
	free(path);
	assert_int_equal(pages_drop(folder, &p, &e), -1);
	assert_non_null(strstr(e.text, "holds no file"));
	rmdir(folder);
	free(folder);
}

static void a_model_that_is_nowhere_is_an_error(void **state)
{
	struct cached_pages p;
	struct err e = { 0 };

	(void)state;
	setenv("HF_HUB_CACHE", "/nowhere", 1);
	assert_int_equal(pages_drop("org/of-no-model", &p, &e), -1);
	unsetenv("HF_HUB_CACHE");
	assert_non_null(strstr(e.text, "--drop-page-cache: org/of-no-model"));
}

/* ---- options ---- */

static void numbers_of_old_stand_where_none_were_given(void **state)
{
	static const struct {
		bool is_v011;
		const char *given, *value;
		int64_t cold, warmup, warm;
	} row[] = {
		{ false, NULL, NULL, 3, 1, 3 },
		{ true, NULL, NULL, 5, 3, 5 },
		{ true, "--num-iters-warmup", "0", 5, 0, 5 },
		{ false, "--num-iters-cold", "9", 9, 1, 3 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		const struct offline_engine engine = { .is_v011 = row[i].is_v011 };
		char *argv[3] = { (char *)(uintptr_t)row[i].given,
				  (char *)(uintptr_t)row[i].value, NULL };
		struct opt_result result = { 0 };
		struct startup_opts o;
		struct buf notes = { 0 };
		struct offline_job job = { .opts = &o.common, .given = &result, .engine = &engine,
					   .notes = &notes };
		struct arena a = { 0 };
		struct err e = { 0 };

		assert_int_equal(opt_parse(&startup_opt_set, row[i].given ? 2 : 0, argv, &o,
					   &result, &a, &e), 0);
		assert_int_equal(startup_verb.check(&job, &e), 0);
		buf_release(&notes);
		assert_int_equal(o.num_iters_cold, row[i].cold);
		assert_int_equal(o.num_iters_warmup, row[i].warmup);
		assert_int_equal(o.num_iters_warm, row[i].warm);
		opt_result_release(&result);
		arena_release(&a);
	}
}

/* ---- vLLM's log ---- */

static void the_log_tells_of_phases(void **state)
{
	static const char log[] =
		"INFO 11-02 10:00:00 [loader.py:1] Loading weights took 1.25 seconds\n"
		"(Worker_TP1) INFO [loader.py:1] Loading weights took 3.50 seconds\n"
		"INFO [runner.py:9] Model loading took 14.99 GiB memory and 4.250000 seconds\n"
		"INFO [backends.py:1] Dynamo bytecode transform time: 0.75 s\n"
		"INFO [monitor.py:1] torch.compile took 12.5 s in total\n"
		"INFO [monitor.py:1] Initial profiling/warmup run took 2.00 s\n"
		"INFO [runner.py:2] Graph capturing finished in 7 secs, took 0.50 GiB\n"
		"INFO [core.py:1] init engine (profile, create kv cache, warmup model) took 21.5 s "
		"(compilation: 12.50 s)\n";
	static const struct { const char *name; double s; } expected[] = {
		{ "load weights", 3.5 }, { "load model", 4.25 }, { "trace the model", 0.75 },
		{ "compile", 12.5 }, { "first run", 2 }, { "capture graphs", 7 },
		{ "profile, KV cache, warm-up", 21.5 },
	};
	struct engine_phase phase[ENGINE_LOG_PHASES];

	(void)state;
	assert_int_equal(engine_log_phases(str_of(log), phase), 7);
	for (size_t i = 0; i < 7; i++) {
		assert_string_equal(phase[i].name, expected[i].name);
		assert_float_equal(phase[i].s, expected[i].s, 1e-9);
	}
	assert_float_equal(engine_log_compilation_s(str_of(log)), 12.5, 1e-9);
}

static void lines_that_only_look_alike_tell_nothing(void **state)
{
	static const char *const lines[] = {
		"", "\n\n", "Loading weights took forever seconds\n", "Loading weights took 1.5",
		"Model loading took 3 GiB memory and\n", "torch.compile took 5 minutes in total\n",
		"init engine (profile) took . s\n", "Encoder graph capturing finished in 3 secs\n",
		"Loading weights took\n 3.5 seconds\n",
	};
	struct engine_phase phase[ENGINE_LOG_PHASES];

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		assert_int_equal(engine_log_phases(str_of(lines[i]), phase), 0);
}

/* ---- the command of a server ---- */

/* The words joined by blanks; the chosen port is replaced by PORT. */
static char *command(const char *server_cmd, const char *const *engine_argv)
{
	struct offline_opts o = { .server_cmd = server_cmd };
	struct http h = { .opts = &o };
	struct buf out = { 0 };
	struct err e = { 0 };

	assert_int_equal(http_words(&h, (char *const *)(uintptr_t)engine_argv, &e), 0);
	for (size_t i = 0; h.argv[i]; i++) {
		bool is_chosen = i && strcmp(h.argv[i - 1], "--port") == 0 && !h.argv[i + 1];

		buf_printf(&out, "%s%s", i ? " " : "", is_chosen ? "PORT" : h.argv[i]);
	}
	arena_release(&h.arena);
	return buf_take(&out);
}

static void the_engines_arguments_follow_the_servers_command(void **state)
{
	static const char *const model[] = { "--model", "m", "--dtype", "half", "--model=n", NULL };
	static const char *const none[] = { NULL }, *const with_port[] = { "--port", "9", NULL };
	static const struct {
		const char *server_cmd;
		const char *const *engine_argv;
		const char *expected;
	} row[] = {
		{ NULL, model, "vllm serve n --dtype half --host 127.0.0.1 --port PORT" },
		{ NULL, none, "vllm serve --host 127.0.0.1 --port PORT" },
		{ "vllm serve m2", model, "vllm serve m2 --dtype half --host 127.0.0.1 --port PORT" },
		{ "env A=1 vllm serve --host 0.0.0.0 --port 7", model,
		  "env A=1 vllm serve n --host 0.0.0.0 --port 7 --dtype half" },
		{ "vllm serve m", with_port, "vllm serve m --port PORT" }, /* the user's own 9 */
		{ "python -m vllm.entrypoints.openai.api_server", model,
		  "python -m vllm.entrypoints.openai.api_server --model m --dtype half --model=n "
		  "--host 127.0.0.1 --port PORT" },
		{ "profllm sim", none, "profllm sim --host 127.0.0.1 --port PORT" },
		{ "other-server --listen 3", none, "other-server --listen 3" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		char *text = command(row[i].server_cmd, row[i].engine_argv);

		assert_string_equal(text, row[i].expected);
		free(text);
	}
}

static void an_empty_command_is_the_users_mistake(void **state)
{
	struct offline_opts o = { .server_cmd = " " };
	struct http h = { .opts = &o };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(http_words(&h, NULL, &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
	assert_non_null(strstr(e.text, "--server-cmd"));
	arena_release(&h.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(caches_are_new_and_go_with_all_that_is_in_them),
		cmocka_unit_test(a_link_goes_and_what_it_points_to_stays),
		cmocka_unit_test(folders_that_cannot_be_made_are_an_error),
		cmocka_unit_test(every_file_of_a_model_is_taken_out),
		cmocka_unit_test(a_model_that_is_nowhere_is_an_error),
		cmocka_unit_test(numbers_of_old_stand_where_none_were_given),
		cmocka_unit_test(the_log_tells_of_phases),
		cmocka_unit_test(lines_that_only_look_alike_tell_nothing),
		cmocka_unit_test(the_engines_arguments_follow_the_servers_command),
		cmocka_unit_test(an_empty_command_is_the_users_mistake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
