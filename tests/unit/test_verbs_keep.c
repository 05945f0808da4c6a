/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_keep.c - what a store says of values that it cannot keep in columns, and what limits
 * of age and size leave of the traces.
 *
 * threads: yes
 */
#include "verb.h"

#define S " --store sqlite:s.db"
#define RUN(day, completed) \
	"{\"date\": \"202601" day "-000000\", \"backend\": \"vllm\", \"model_id\": \"m\", \"num_prompts\": 6, " \
	"\"duration\": 2.5, \"completed\": " completed ", \"failed\": 0, \"request_throughput\": 2}\n"

static void kept(void **state)
{
	static const char *const varies[] = { "http://127.0.0.1:", NULL };
	static const struct verb_case cases[] = {
		{ .line = "ingest one.jsonl two.jsonl" S }, { .line = "ingest odd.jsonl" S },
		{ .line = "ingest odd.jsonl again.jsonl --store sqlite:t.db --json" },
		{ .line = "ingest odd.jsonl again.jsonl --store sqlite:u.db" },
		{ .line = "ingest --trace t.json --run 1" S },
		{ .line = "store retain --trace-gb 1" S }, { .line = "store retain --trace-gb 0.00000005" S },
		{ .line = "store retain --trace-gb 0.000000001" S },
		{ .line = "store retain --archive-days 1" S }, { .line = "store retain --remove-days 1" S },
		{ .line = "export --columns timestamp,failed" S },
		{ .line = "dashboard --no-auth --listen 127.0.0.1:0 --port-file none/p --store sqlite:d.db",
		  .status = 1, .varies = varies },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

static void put(const char *path, const char *text)
{
	struct err e;

	if (file_write_atomic(path, str_of(text), &e) < 0)
		fail_msg("%s", e.text);
}

static int setup(void **state)
{
	if (verb_setup(state) < 0)
		return -1;
	put("one.jsonl", RUN("01", "6"));
	put("two.jsonl", RUN("02", "6") RUN("03", "6"));
	put("odd.jsonl", RUN("04", "-6") RUN("05", "-6") RUN("06", "\"none\""));
	put("again.jsonl", RUN("07", "-6") RUN("08", "-6"));
	put("t.json", "{\"traceEvents\": []}\n");
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(kept) };

	if (argc > 1)
		return profllm_main(argc, argv);
	return cmocka_run_group_tests(tests, setup, verb_teardown);
}
