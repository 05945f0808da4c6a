/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_words.c - what the program says of itself: help, topics, completion, mistyped
 * commands; arguments of engines; the file that `init` writes, also by questions on a terminal.
 */
#include "verb.h"

static void help(void **state)
{
	static const struct verb_case cases[] = {
		{ .line = "--version" }, { .line = "version" }, { .line = "-V" },
		{ "", .status = 2, .mask = VERB_NO_ERR },
		{ .line = "--help" }, { .line = "help errors" },
		{ .line = "help send_lag" }, { .line = "--help=send-lag" }, { .line = "bench serve --help=send_lag" },
		{ "help gpu memory", .status = 2 }, { "help send_lgg", .status = 2 }, { "--help=", .status = 2 },
		{ "bench", .status = 2 }, { "bench sweep", .status = 2 }, { .line = "bench --help" },
		{ .line = "bench sweep -h" }, { .line = "help store" }, { .line = "help bench sweep" },
		{ "benc serve", .status = 2 }, { "bench srve", .status = 2 }, { "sweepplot", .status = 2 },
		{ "plot", .status = 2 }, { "xyzzy", .status = 2 }, { "--xyzzy", .status = 2 },
		{ "bench xyzzy", .status = 2 }, { .line = "benchmark_serving.py --help=burstiness" },
		{ "bench_serve --xyzzy", .status = 2 }, { .line = "bench serve --help=usage" },
		{ .line = "store archive --help=json" },
		{ .line = "store retain --help=all" }, { .line = "bench serve --help=xyzzy" },
		{ "completion", .status = 2 },
		{ "completion fish", .status = 2 }, { .line = "store retain --show-config" },
		{ "store retain --archive-day 3", .status = 2 }, { "store retain --archive-days x", .status = 2 },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

static void arguments(void **state)
{
#define OWN " --args-file own.json"
	static const struct verb_case cases[] = {
		{ .line = "args list prefix hash" }, { .line = "args list --version 0.11 guided" },
		{ .line = "args list --all guided" }, { .line = "args list --version 0.13 guided-decoding" },
		{ .line = "args list --group loraconfig" },
		{ .line = "args list gpu-memory --json --version 0.11" }, { .line = "args list xyzzy" },
		{ "args list --group LoraConfg", .status = 2 }, { "args list --version new", .status = 2 },
		{ "args list --args-file none.json", .status = 2 }, { .line = "args list warp" OWN },
		{ .line = "args show tensor_parallel_size tp" }, { .line = "args show gpu-memory-utilization" },
		{ .line = "args show --json gpu-memory-utilization --version 0.11" },
		{ .line = "args show guided_decoding_backend disable_cascade_attn compilation_config" },
		{ .line = "args show warp_drive" OWN }, { .line = "args show warp_drive --json" OWN },
		{ "args show tensor_paralel_size", .status = 2 }, { "args show seed --version new", .status = 2 },
		{ "args show", .status = 2 }, { "args show seed --args-file bad.json", .status = 2 },
		{ .line = "args import --from help.txt --dry-run" },
		{ "args import --from help.txt --output imported.json", .mask = VERB_NO_OUT, .files = "imported.json" },
		{ .line = "args show warp_factor --args-file imported.json" },
		{ "args import --from - --dry-run", .status = 1, .input = "  --warp\n" },
		{ "args import --from none.txt", .status = 1 }, { "args import --from own.json", .status = 1 },
		{ "args import --command ' '", .status = 2 }, { "args import --command './server other'", .status = 1 },
		{ "args import --command /nowhere/vllm", .status = 1 },
		{ "args import", .status = 1, .env = "PATH=/nowhere" },
		{ "args import --command './server serve'", .mask = VERB_NO_OUT, .env = "XDG_CONFIG_HOME=$DIR/config" },
		{ .line = "args show warp_mode", .env = "XDG_CONFIG_HOME=$DIR/config" },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

static void experiments(void **state)
{
#define SIM " --server sim --goal run"
#define ALONE "PATH=/nowhere"
	static const char *const varies[] = { "yaml-language-server: $schema=", NULL };
	static const struct verb_case cases[] = {
		{ "init run.yaml" SIM, .files = "run.yaml", .varies = varies },
		{ "init - --server sim --goal curve", .varies = varies },
		{ "init - --server sim --goal capacity", .varies = varies },
		{ "init - --server 'vllm serve' --model m --goal compare", .varies = varies },
		{ "init - --server http://127.0.0.1:8000 --goal nightly", .varies = varies },
		{ "init odd.yaml --server 'sh -c \"echo ${HOME} # x\"' --model true --goal run",
		  .files = "odd.yaml", .varies = varies },
		{ "init 'a name.yaml'" SIM, .varies = varies },
		{ "init run.yaml --server sim --goal curve", .status = 2 }, { .line = "init run.yaml --force" SIM },
		{ "init folder" SIM, .status = 2 }, { "init a.json" SIM, .status = 2 },
		{ "init ''" SIM, .status = 2 }, { "init 'a\nb.yaml'" SIM, .status = 2 },
		{ "init a.yaml --goal run", .status = 2 }, { "init a.yaml --server sim", .status = 2 },
		{ "init a.yaml --server 'vllm serve' --goal run", .status = 2 },
		{ "init a.yaml --server 'vllm serve' --model '' --goal run", .status = 2 },
		{ "init a.yaml --server '' --goal run --model m", .status = 2 },
		{ "init a.yaml --server localhost:8000 --model m --goal run", .status = 2 },
		{ "init a.yaml --server http://h:1 --goal compare", .status = 2 },
		{ "init a.yaml --server \"vllm 'serve\" --model m --goal run", .status = 2 },
		{ "init a.yaml --server ftp://h --goal run", .status = 2, .files = "a.yaml" },
		{ "init a.yaml --server sim --goal race", .status = 2 },
		{ "init no/such/a.yaml" SIM, .status = 1 },
		{ "init asked.yaml", .mask = VERB_TERMINAL, .input = "\n\n3\n", .files = "asked.yaml", .varies =
		  varies, .env = ALONE },
		{ "init asked2.yaml", .mask = VERB_TERMINAL, .input = "http://127.0.0.1:9\n\nrace\n6\ncurve\n",
		  .env = ALONE },
		{ "init asked3.yaml --server sim --model m", 2, .mask = VERB_TERMINAL, .input = "0\nx\n11\nrun\n",
		  .files = "asked3.yaml" },
		{ "init asked4.yaml --goal run", 2, .mask = VERB_TERMINAL, .input = "vllm serve\n\004", .files =
		  "asked4.yaml", .env = ALONE },
		{ "init asked5.yaml", 2, .mask = VERB_TERMINAL, .input = "\004", .env = "PATH=/nowhere:." },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

static void put(const char *path, const char *text, mode_t mode)
{
	struct err e;

	if (file_write_atomic(path, str_of(text), &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(chmod(path, mode), 0);
}

static int setup(void **state)
{
	struct buf text = { 0 };
	char from[4224];
	struct err e;

	if (verb_setup(state) < 0)
		return -1;
	verb_let("DIR", dir);
	snprintf(from, sizeof(from), "%s/tests/fuzz/corpus/engine_help/help", verb_root);
	if (file_read(from, SIZE_MAX, &text, &e) < 0 ||
	    file_write_atomic("help.txt", buf_str(&text), &e) < 0)
		return -1;
	buf_release(&text);
	mkdir("folder", 0755);
	put("own.json", "{\"arguments\": [{\"name\": \"warp-drive\", \"kind\": \"flag\"}]}", 0644);
	put("bad.json", "{\"arguments\": [{\"name\": \"warp-drive\", \"kind\": \"engine\"}]}", 0644);
	put("server", "#!/bin/sh\n[ \"$1\" = serve ] && [ \"$2\" = --help=all ] && exec cat help.txt\nexit 3\n",
	    0755);
	put("vllm", "#!/bin/sh\nexit 3\n", 0755);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(help),
		cmocka_unit_test(arguments),
		cmocka_unit_test(experiments),
	};

	if (argc > 1)
		return profllm_main(argc, argv);
	return cmocka_run_group_tests(tests, setup, verb_teardown);
}
