/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server's command line, one argument a line: every token is walked once, judging and reading
 * it ends, and a command differs from itself in nothing.
 */
#include "check.h"
#include "host/engine/args.h"

#define ARGS_MAX 12

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct str rest = { (const char *)data, n };
	char *argv[ARGS_MAX + 3] = { "vllm", "serve" };
	char *const *at;
	struct arena a = { 0 };
	struct buf notes = { 0 };
	struct engine_token t;
	struct engine_optimization o;
	size_t n_args = 2, walked = 0;

	if (n > 4096)
		return 0;
	while (rest.n && n_args < ARGS_MAX + 2)
		argv[n_args++] = arena_text(&a, str_cut(&rest, '\n'));
	argv[n_args] = NULL;

	at = engine_argv_begin(argv);
	CHECK(at);
	while (engine_argv_next(&at, &t)) {
		CHECK(t.n >= 1);
		walked += t.n;
		if (t.arg)
			engine_argv_text(argv, t.arg->name, &a);
	}
	CHECK(!*at);
	CHECK(walked <= n_args - 2);
	CHECK(engine_argv_check(argv, 0, false, &notes, NULL) == 0);
	CHECK(engine_argv_check(argv, 32, true, &notes, NULL) <= 0);
	CHECK(engine_argv_gpus(argv) >= 1);
	for (unsigned version = 11; version < 14; version++)
		engine_argv_optimization(argv, version, &o);
	CHECK(engine_argv_diff(argv, argv, &notes) == 0);
	arena_release(&a);
	buf_release(&notes);
	return 0;
}
