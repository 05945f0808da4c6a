/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_trends.c - `profllm trends`: whether it says that a metric changed, by its exit status
 * too, what it refuses by the name of the option, and what becomes of its message to a webhook.
 */
#include "verb.h"

#define T "trends --store sqlite:s.db --metric request_throughput "
#define NEWS T "--last 5 "
#define HIDDEN "http://127.0.0.1:1/hidden"

static void trends(void **state)
{
	static const char *const varies[] = { "Failed to connect ", NULL };
	static const struct verb_case cases[] = {
		{ "ingest s.jsonl few.jsonl --store sqlite:s.db", .mask = VERB_NO_OUT },
		{ .line = T }, { .line = T "--last 2" }, { .line = T "--last 3", .status = 3 },
		{ .line = NEWS, .status = 3 }, { .line = NEWS "--worse" },
		{ .line = NEWS "--min-effect 80", .status = 3 }, { .line = NEWS "--min-effect 120" },
		{ .line = NEWS "--axis day", .status = 3 },
		{ .line = NEWS "--axis time --series server.model", .status = 3 },
		{ .line = NEWS "--series server.model,benchmark.request_rate", .status = 3 },
		{ .line = NEWS "--metric output_throughput --metric mean_ttft_ms", .status = 3 },
		{ .line = T "--metric mean_tpot_ms", .status = 3 },
		{ .line = T "--filter.column server.model --filter.in '[\"few\"]'", .status = 3 },
		{ .line = T "--filter.column server.model --filter.in '[\"few\"]' --allow-unjudged" },
		{ .line = T "--series zzz", .status = 2 }, { .line = T "--series server.model,zzz", .status = 2 },
		{ .line = T "--filter {", .status = 2 }, { .line = T "--filter 3", .status = 2 },
		{ .line = T "--filter '{\"column\": \"zzz\", \"in\": [1]}'", .status = 2 },
		{ .line = T "--filter '{\"and\": [{\"column\": \"zzz\", \"in\": [1]}]}'", .status = 2 },
		{ .line = T "--filter '{\"and\": [{\"column\": \"a:b/c\", \"in\": [1]}]}'", .status = 2 },
		{ .line = T "--filter '{\"a:b\": [1]}'", .status = 2 }, { .line = T "--metric zzz", .status = 2 },
		{ .line = T "--axis year", .status = 2 }, { .line = "trends --store sqlite:s.db", .status = 2 },
		{ .line = NEWS "--webhook ftp://h", .status = 2 },
		{ .line = NEWS "--webhook " HIDDEN, .status = 1, .varies = varies },
		{ .line = NEWS "--webhook http://127.0.0.1:$S/nowhere", .status = 1 },
		{ .line = NEWS "--worse --webhook " HIDDEN },
		{ .line = "trends --store sqlite:none.db --metric failed", .status = 2 },
		{ "ingest fails.jsonl --store sqlite:f.db", .mask = VERB_NO_OUT },
		{ .line = "trends --store sqlite:f.db --metric request_throughput --last 5", .status = 3 },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

/* n runs on as many days, of which the last ones are twice as fast and fail so many requests. */
static void put_runs(const char *path, const char *model, unsigned n, unsigned before,
		     unsigned failed)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	for (unsigned i = 0; i < n; i++)
		fprintf(f, "{\"date\": \"202601%02u-000000\", \"backend\": \"vllm\", \"model_id\": \"%s\", "
			"\"num_prompts\": 6, \"request_rate\": 2, \"duration\": 2.5, \"completed\": 6, "
			"\"failed\": %u, \"request_throughput\": %u.%u, \"output_throughput\": 8, "
			"\"mean_ttft_ms\": %u.5}\n", i + 1, model, i < before ? 0 : failed,
			i < before ? 10 : 20, i % 3, 90 + i % 3);
	fclose(f);
}

static int setup(void **state)
{
	if (verb_setup(state) < 0)
		return -1;
	put_runs("s.jsonl", "m", 16, 11, 0);
	put_runs("few.jsonl", "few", 3, 3, 0);
	put_runs("fails.jsonl", "fails", 16, 11, 1);
	verb_sim("S", "");
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(trends) };

	if (argc > 1)
		return profllm_main(argc, argv);
	return cmocka_run_group_tests(tests, setup, verb_teardown);
}
