/* SPDX-License-Identifier: Apache-2.0 */
/* test_config_search.c - the metric by which a search finds the best experiment, and its side. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "experiment/config/config.h"

static void best(void **state)
{
	static const struct { const char *text, *key; bool is_highest; const char *why; } row[] = {
		{ "output_throughput", "output_throughput", true, NULL },
		{ "p99_ttft_ms", "p99_ttft_ms", false, NULL },
		{ "output_throughput lowest", "output_throughput", false, NULL },
		{ "p99_ttft_ms  highest ", "p99_ttft_ms", true, NULL },
		{ "total_output_tokens highest", "total_output_tokens", true, NULL },
		{ "total_output_tokens lowest", "total_output_tokens", false, NULL },
		{ "total_output_tokens", NULL, false, "'total_output_tokens': say what is better: "
		  "\"total_output_tokens highest\" or \"total_output_tokens lowest\"" },
		{ "output_throughput high", NULL, false, "'output_throughput high': expected highest or "
		  "lowest after the metric, got 'high'" },
		{ "output_throughput highest lowest", NULL, false, "'output_throughput highest lowest': expected "
		  "highest or lowest after the metric, got 'highest lowest'" },
		{ "output_throughput 0123456789012345678901234567890123456789ab", NULL, false,
		  "'output_throughput 0123456789012345678901234567890123456789ab': expected highest or lowest "
		  "after the metric, got '0123456789012345678901234567890123456789'" },
		{ "output_thruput", NULL, false, "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct arena a = { 0 };
		struct err e = { 0 };
		bool is_highest = false;
		const char *key;
		int rc = config_best_metric(row[i].text, &a, &key, &is_highest, &e);

		assert_int_equal(rc, row[i].why ? -1 : 0);
		if (row[i].why && *row[i].why)
			assert_string_equal(e.text, row[i].why);
		if (!row[i].why) {
			assert_string_equal(key, row[i].key);
			assert_int_equal(is_highest, row[i].is_highest);
		}
		arena_release(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(best) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
