/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_clients.c - bench serve by way of libcurl, a load that is judged by limits, a search
 * that cannot find anything; servers as `doctor` sees them.
 *
 * threads: yes
 */
#include <dlfcn.h>

#include "serve_rig.h"
#include "fake_gpus.h"

#define CURL SERVE SMALL " --transport curl "

static void by_libcurl(void **state)
{
	static const struct verb_case cases[] = {
		{ CURL "--output-json c.json --save-detailed", F, .files = "c.json +6:asked" },
		{ CURL "--backend openai-chat --endpoint /v1/chat/completions --output-json d.json",
		  F, .files = "d.json +6:asked" },
		{ BROKEN SMALL " --transport curl", SILENT },
		{ CURL "--http-version 2 --output-json g.json", SILENT, .status = 1 },
		{ .line = "bench serve --base-url http://127.0.0.1:9 --model sim --tokenizer sim " QUICK
			  " " SMALL " --transport curl",
		  .status = 1 },
		{ CURL "--source-addresses 127.0.0.1", .status = 2 },
		{ SERVE SMALL " --transport native --http-version 2", .status = 2 },
		{ SERVE SMALL " --transport native --proxy socks5://127.0.0.1:9", .status = 2 },
		{ SERVE SMALL " --proxy socks5://127.0.0.1:9 --max-errors 1", SILENT, .status = 1 },
		{ SERVE SMALL " --proxy http://127.0.0.1:9 --max-errors 1", SILENT, .status = 1 },
		{ CURL "--request-timeout 0.001 --random-output-len 400 --output-json h.json",
		  SILENT, .status = 1 },
		{ SERVE
		  "--transport curl --random-input-len 5 --random-output-len 3 --num-warmups 1 --num-prompts 9 "
		  "--max-concurrency 4",
		  SILENT },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

static void limits(void **state)
{
	static const char *const varies[] = { "Without load: ", "Spent: ", "-WARNING: ", "This load ", "  p99_",
					      "  p50_", "  mean_", "  failed requests", "requests/s", "Result", NULL };
	static const struct verb_case cases[] = {
		{ SERVE "--random-input-len 6 --random-output-len 3 --find-max-concurrency --slo p90_ttft_ms<0.001 "
		  "--level-seconds 0.2 --budget 3", .status = 1, .varies = varies },
		{ SERVE "--find-max-rate --slo p90_ttft_ms<9 --max-concurrency 3", .status = 2 },
		{ SERVE "--find-max-rate --slo p90_ttft_ms<9 --duration 3", .status = 2 },
		{ SERVE "--find-max-rate --slo p90_ttft<9", .status = 2 },
		{ SERVE "--find-max-rate --slo p90_ttft_ms<9 --find-max-concurrency", .status = 2 },
		{ "bench serve --base-url http://127.0.0.1:9 --model sim --tokenizer sim " QUICK
		  " --find-max-rate --slo p90_ttft_ms<9", .status = 1 },
		{ BROKEN "--random-input-len 6 --random-output-len 3 --find-max-concurrency --slo p90_ttft_ms<9 "
		  "--backend openai-embeddings --endpoint /v1/embeddings", .status = 2 },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

/* A process that mpirun started, here alone: Open MPI is tests/fake/mpi.c. */
static void by_mpirun(void **state)
{
#define MPIRUN .env = "OMPI_COMM_WORLD_SIZE=2"
	static const struct verb_case cases[] = {
		{ SERVE SMALL " --output-json m.json --prompt-salt run:abc",
		  .mask = VERB_TIMES | VERB_FLAT | VERB_NO_ERR, .varies = verb_serve_varies, MPIRUN,
		  .files = "+6:asked" },
		{ .line = SERVE SMALL " --find-max-rate --slo p90_ttft_ms<9", .status = 2, MPIRUN },
		{ .line = SERVE "--find-max-concurrency --slo p90_ttft_ms<9", .status = 2, MPIRUN },
		{ .line = SERVE SMALL " --sweep-max-concurrency 1,2", .status = 2, MPIRUN },
		{ .line = "bench multi-turn -m sim --tokenizer sim -u http://127.0.0.1:$S -i conversations.json",
		  .status = 2,
		  MPIRUN },
		{ .line = SERVE SMALL " --prompt-salt none:x", .status = 2, MPIRUN },
		{ .line = SERVE SMALL " --output-json /proc/none/m.json", .status = 1, MPIRUN },
		{ .line = SERVE SMALL " --burstiness -1", .status = 2, MPIRUN },
		{ .line = SERVE SMALL " --dashboard http://127.0.0.1:9", .status = 2, MPIRUN },
		{ .line = "bench serve --base-url http://127.0.0.1:9 --model sim --tokenizer sim " QUICK
			  " " SMALL,
		  .status = 1,
		  MPIRUN },
		{ .line = SERVE SMALL,
		  .status = 1,
		  .env = "OMPI_COMM_WORLD_SIZE=2 FAKE_MPI_FAILS=1" },
	};
	void *library = dlopen(fake_library("libfake-mpi.so"), RTLD_NOW | RTLD_GLOBAL);
	void (*be)(int rank, int size);

	(void)state;
	assert_non_null(library);
	*(void **)&be = dlsym(library, "fake_mpi_be");
	be(0, 1);
	verb_check_all(cases, COUNT(cases));
}

/* ---- doctor ---- */

/* The rows about servers; numbers are masked. */
static void visit(const char *words, const char *env)
{
	struct buf line = { 0 }, text = { 0 }, got = { 0 };
	struct arena a = { 0 };
	struct json_value *v, *rows;
	char out[64], err[64];
	struct err e;

	buf_printf(&line, "doctor --json %s", words);
	snprintf(out, sizeof(out), "%s/.out", dir);
	snprintf(err, sizeof(err), "%s/.err", dir);
	buf_printf(&got, "status %d\n", verb_end(verb_begin(line.data, env, out, err)));
	assert_int_equal(file_read(out, SIZE_MAX, &text, &e), 0);
	assert_int_equal(json_parse(&a, buf_str(&text), &v, &e), 0);
	rows = json_get(v, "rows");
	for (size_t i = 0; rows && i < rows->count; i++) {
		static const char *const key[] = { "name", "about", "verdict", "value", "why", "command" };

		if (!strstr(json_text(json_get(&rows->item[i], "about"), STR("")).p, "://"))
			continue;
		for (size_t k = 0; k < COUNT(key); k++) {
			struct str said = json_text(json_get(&rows->item[i], key[k]), STR("-"));

			buf_printf(&got, "%s%.*s", k ? " | " : "", (int)said.n, said.p);
		}
		buf_add_char(&got, '\n');
	}
	buf_add_char(&got, '\0');
	got.len--;
	verb_mask_times(&got);
	verb_answer(line.data, &got);
	buf_release(&line);
	buf_release(&text);
	arena_release(&a);
}

static void servers(void **state)
{
	static const struct verb_case cases[] = {
		{ "doctor localhost:8000", .status = 2 }, { "doctor ftp://h", .status = 2 },
		{ "doctor --strict http://127.0.0.1:9", .status = 3, .mask = VERB_NO_OUT },
	};

	(void)state;
	visit("http://127.0.0.1:$S", "OPENAI_API_KEY=");
	visit("http://127.0.0.1:$L http://127.0.0.1:9", "OPENAI_API_KEY=");
	visit("http://127.0.0.1:$L/v1", "OPENAI_API_KEY=sesame");
	visit("https://127.0.0.1:$S", "OPENAI_API_KEY=");
	visit("http://127.0.0.1:$B/none", "OPENAI_API_KEY=");
	verb_check_all(cases, COUNT(cases));
}

static int setup(void **state)
{
	if (serve_setup(state) < 0)
		return -1;
	verb_sim("L", "--api-key sesame");
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_libcurl),
		cmocka_unit_test(limits),
		cmocka_unit_test(by_mpirun),
		cmocka_unit_test(servers),
	};

	if (argc > 1)
		return profllm_main(argc, argv);
	return cmocka_run_group_tests(tests, setup, verb_teardown);
}
