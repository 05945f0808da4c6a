/* SPDX-License-Identifier: Apache-2.0 */
/* test_report_derived.c - throughput per GPU, user, kilowatt and money of records of every kind. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/base/mem.h"
#include "core/json/write.h"
#include "out/report/derived.h"

#define RATES "\"output_throughput\": 1000, \"total_token_throughput\": 4000, \"median_tpot_ms\": 8"
#define PER_GPU(n, output, total) "\"gpu_count\": " n ", \"output_throughput_per_gpu\": " output ", " \
	"\"total_token_throughput_per_gpu\": " total ", "

static const struct { const char *record; double count, price; const char *derived; } rows[] = {
	{ "{" RATES "}", NAN, NAN, "{\"output_throughput_per_user\": 125.0}" },
	{ "{" RATES "}", 4, NAN, "{" PER_GPU("4", "250.0", "1000.0") "\"output_throughput_per_user\": 125.0}" },
	{ "{" RATES "}", 4, 1.8, "{" PER_GPU("4", "250.0", "1000.0") "\"output_throughput_per_user\": 125.0, "
	  "\"gpu_price_per_hour\": 1.8, \"cost_per_million_output_tokens\": 2.0, "
	  "\"cost_per_million_tokens\": 0.5}" },
	{ "{" RATES "}", NAN, 1.8, "{\"output_throughput_per_user\": 125.0, \"gpu_price_per_hour\": 1.8}" },
	{ "{" RATES ", \"num_gpus\": 2, \"tp\": 8}", NAN, NAN,
	  "{" PER_GPU("2", "500.0", "2000.0") "\"output_throughput_per_user\": 125.0}" },
	{ "{" RATES ", \"num_gpus\": 2}", 5, NAN,
	  "{" PER_GPU("5", "200.0", "800.0") "\"output_throughput_per_user\": 125.0}" },
	{ "{" RATES ", \"tensor_parallel_size\": 2, \"pp\": 5}", NAN, NAN,
	  "{" PER_GPU("10", "100.0", "400.0") "\"output_throughput_per_user\": 125.0}" },
	{ "{\"output_throughput\": 1000, \"data-parallel-size\": 4, \"tp\": 0}", NAN, NAN,
	  "{\"gpu_count\": 4, \"output_throughput_per_gpu\": 250.0}" },
	/* What the record derived itself, with a better price. */
	{ "{" RATES ", \"profllm\": {\"derived\": {\"gpu_count\": 4, \"gpu_price_per_hour\": 9, "
	  "\"output_tokens_per_s_per_kw\": 2500}}}", NAN, 1.8,
	  "{" PER_GPU("4", "250.0", "1000.0") "\"output_throughput_per_user\": 125.0, "
	  "\"output_tokens_per_s_per_kw\": 2500.0, \"gpu_price_per_hour\": 1.8, "
	  "\"cost_per_million_output_tokens\": 2.0, \"cost_per_million_tokens\": 0.5}" },
	{ "{\"derived\": {\"gpu_count\": 4, \"gpu_price_per_hour\": 9}}", NAN, NAN,
	  "{\"gpu_count\": 4, \"gpu_price_per_hour\": 9.0}" },
	{ "{\"profllm\": {\"system\": {\"tokens_per_s_per_w\": 3}, \"derived\": "
	  "{\"output_tokens_per_s_per_kw\": 2500}}}", NAN, NAN, "{\"output_tokens_per_s_per_kw\": 3000.0}" },
	{ "{\"system\": {\"tokens_per_s_per_w\": 3}, \"x\": 1}", NAN, NAN,
	  "{\"output_tokens_per_s_per_kw\": 3000.0}" },
	/* Nothing: the record as it is. */
	{ "{\"output_throughput\": 0, \"median_tpot_ms\": -1}", NAN, NAN, NULL }, { "{}", 0, -1, NULL },
};

static void records(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct derived_gpus told = { rows[i].count, rows[i].price };
		struct json_value *record = NULL;
		const struct json_value *out, *derived;
		struct arena a = { 0 };
		struct buf text = { 0 };
		struct json_writer w = json_writer(&text);

		assert_int_equal(json_parse(&a, str_of(rows[i].record), &record, NULL), 0);
		out = derived_record(record, &told, &a);
		derived = json_get(out, "derived");
		if ((out == record) != !rows[i].derived)
			fail_msg("%s: %s", rows[i].record, derived ? "derived" : "nothing");
		if (rows[i].derived) {
			json_put_value(&w, derived);
			assert_string_equal(text.data, rows[i].derived);
		}
		/* Everything else is still there. */
		assert_int_equal(out->count, record->count + (rows[i].derived && !json_get(record, "derived")));
		for (size_t k = 0; k < record->count; k++)
			if (!str_is(record->key[k], "derived"))
				assert_ptr_equal(json_get(out, record->key[k].p)->raw.p,
						 record->item[k].raw.p);
		buf_release(&text);
		arena_release(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(records) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
