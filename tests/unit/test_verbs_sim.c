/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_sim.c - what the simulator makes of the arguments of an engine: the figures of the
 * hardware that it would be, which arguments it names as without effect, and what a worker says.
 */
#include "verb.h"

#define EXPLAIN "sim meta-llama/Llama-3.1-8B-Instruct --explain --gpu l4-24gb --max-model-len 8192 "

static void explained(void **state)
{
	static const struct verb_case cases[] = {
		{ .line = EXPLAIN }, { .line = EXPLAIN "-O0" },
		{ .line = EXPLAIN "--enforce-eager" }, { .line = EXPLAIN "-O0 --no-enforce-eager" },
		{ .line = EXPLAIN "--num-gpu-blocks-override 77", .status = 1 },
		{ .line = EXPLAIN "--num-gpu-blocks-override 600" },
		{ .line = EXPLAIN "--num-gpu-blocks-override 1 --block-size 32", .status = 1 },
		{ .line = EXPLAIN "--kv-cache-memory-bytes 1000000000 --kv-cache-dtype fp8 --max-num-seqs 7" },
		{ .line = EXPLAIN "--dtype float16 --quantization awq -tp 2 -pp 2 -dp 2"
		  " --load-format dummy --swap-space 3" },
		{ .line = EXPLAIN "--no-async-scheduling --no-enable-chunked-prefill", .status = 1 },
		{ .line = EXPLAIN "--no-async-scheduling --no-enable-chunked-prefill --max-num-batched-tokens 8192" },
		{ .line = EXPLAIN "--gpu-memory-utilization 0.5", .status = 1 },
		{ .line = "sim --explain" }, { .line = "sim --explain --gpu l4-24gb", .status = 1 },

		{ .line = EXPLAIN "--no-such-argument", .status = 2 },
		{ .line = EXPLAIN "--tensor-paralel-size 2", .status = 2 },
	};

	(void)state;
#ifdef __SANITIZE_THREAD__
	print_message("# one thread, and ten million steps of an engine\n");
	skip();
#endif
	verb_check_all(cases, COUNT(cases));
}

/* ---- as a worker ---- */

static void take(int fd, char *to, size_t n)
{
	while (n) {
		ssize_t got = read(fd, to, n);

		assert_true(got > 0);
		to += got;
		n -= (size_t)got;
	}
}

/* Sends a question, if there is one, and takes the frame that answers it. */
static void talk(int fd, const char *question, struct buf *answer)
{
	uint32_t n = htonl((uint32_t)(question ? strlen(question) : 0));

	if (question) {
		assert_int_equal(write(fd, &n, sizeof(n)), sizeof(n));
		assert_int_equal(write(fd, question, strlen(question)), strlen(question));
	}
	take(fd, (char *)&n, sizeof(n));
	buf_reset(answer);
	assert_int_equal(buf_reserve(answer, ntohl(n)), 0);
	take(fd, answer->data, ntohl(n));
	answer->data[answer->len = ntohl(n)] = '\0';
}

/* What a worker makes of an engine's arguments, as it describes itself. */
static void worker(void **state)
{
#define LOAD(args) "{\"id\": 1, \"type\": \"load\", \"args\": [\"--model\", \"sim\"" args "]}"
#define TORCH ", \"--profiler-config.profiler\", \"torch\""
#define INTO(folder) ", \"--profiler-config.torch_profiler_dir\", \"" folder "\""
	static const struct { const char *load, *env, *described, *profile; } row[] = {
		{ LOAD(""), "", "\"profile_to\": \"\", \"profile_dir\": \"\"", "Profiling is not enabled" },
		{ LOAD(", \"--profiler-config.profiler\", \"cuda\""), "", "\"profile_to\": \"\"",
		  "Profiling is not enabled" },
		{ LOAD(TORCH INTO("t")), "", "\"profile_to\": \"torch\", \"profile_dir\": \"t\"", "\"ok\"" },
		{ LOAD(""), "VLLM_TORCH_PROFILER_DIR=e", "\"profile_to\": \"torch\", \"profile_dir\": \"e\"",
		  "\"ok\"" },
		{ LOAD(TORCH INTO("t")), "VLLM_TORCH_PROFILER_DIR=e", "\"profile_dir\": \"t\"", "\"ok\"" },
		{ LOAD(", \"--runner\", \"pooling\""), "", "\"is_pooling\": true", "not enabled" },
		{ LOAD(""), "", "\"is_pooling\": false", "not enabled" },
	};
	struct buf answer = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		char env[200];
		int fd[2];
		pid_t pid;

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
		snprintf(env, sizeof(env), "PROFLLM_WORKER_FD=%d %s", fd[1], row[i].env);
		pid = verb_begin("sim --engine-worker --startup-scale 0", env, "worker.out", "worker.err");
		close(fd[1]);
		talk(fd[0], NULL, &answer);
		assert_non_null(strstr(answer.data, "\"hello\""));
		talk(fd[0], row[i].load, &answer);
		if (!strstr(answer.data, "\"ok\""))
			fail_msg("row %zu: %s", i, answer.data);
		talk(fd[0], "{\"id\": 2, \"type\": \"describe\"}", &answer);
		if (!strstr(answer.data, row[i].described))
			fail_msg("row %zu: %s", i, answer.data);
		talk(fd[0], "{\"id\": 3, \"type\": \"profile_start\"}", &answer);
		if (!strstr(answer.data, row[i].profile))
			fail_msg("row %zu: %s", i, answer.data);
		shutdown(fd[0], SHUT_WR);
		assert_int_equal(verb_end(pid), 0);
		close(fd[0]);
	}
	buf_release(&answer);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(explained), cmocka_unit_test(worker) };

	if (argc > 1)
		return profllm_main(argc, argv);
	return cmocka_run_group_tests(tests, verb_setup, verb_teardown);
}
