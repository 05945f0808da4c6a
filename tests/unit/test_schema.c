/* SPDX-License-Identifier: Apache-2.0 */
/* The generated table: complete rows, unique keys, and keys as results spell them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/schema/schema.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static void rows_are_complete(void **state)
{
	(void)state;
	assert_true(schema_field_count > 100);
	for (size_t i = 0; i < schema_field_count; i++) {
		const struct schema_field *f = &schema_fields[i];

		assert_true(*f->key && *f->type && *f->group && *f->since);
		assert_non_null(f->unit);
		assert_non_null(f->when);
		if (strlen(f->definition) < 8 || f->definition[strlen(f->definition) - 1] != '.')
			fail_msg("%s: no definition", f->key);
		if (strstr(f->key, "_ms") && strcmp(f->unit, "ms") != 0)
			fail_msg("%s: unit %s", f->key, f->unit);
		if (strstr(f->key, "_ns") && strcmp(f->unit, "ns") != 0)
			fail_msg("%s: unit %s", f->key, f->unit);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(f->key, schema_fields[k].key);
	}
}

static void every_row_finds_itself(void **state)
{
	(void)state;
	for (size_t i = 0; i < schema_field_count; i++)
		assert_ptr_equal(schema_field_find(schema_fields[i].key), &schema_fields[i]);
}

static void finds(void **state)
{
	static const struct {
		const char *key, *row, *unit;
		enum schema_better better;
	} row[] = {
		{ "request_throughput", "request_throughput", "requests/s", SCHEMA_HIGHER },
		{ "duration", "duration", "s", SCHEMA_LOWER },
		{ "burstiness", "burstiness", "", SCHEMA_NONE },
		{ "mean_ttft_ms", "mean_<metric>_ms", "ms", SCHEMA_LOWER },
		{ "median_e2el_including_client_queue_ms", "median_<metric>_ms", "ms", SCHEMA_LOWER },
		{ "std_client_queue_time_ms", "std_<metric>_ms", "ms", SCHEMA_LOWER },
		{ "p99_ttft_ms", "p<p>_<metric>_ms", "ms", SCHEMA_LOWER },
		{ "p99.9_itl_ms", "p<p>_<metric>_ms", "ms", SCHEMA_LOWER },
		{ "p0_e2el_ms", "p<p>_<metric>_ms", "ms", SCHEMA_LOWER },
		{ "probe_p99_e2el_ms", "probe_p99_e2el_ms", "ms", SCHEMA_LOWER },
		{ "profllm", "profllm", "", SCHEMA_NONE },
		{ "profllm.skew_ms", "profllm.skew_ms", "ms", SCHEMA_LOWER },
		{ "profllm.skew_ms.p99", "profllm.<spread>.<stat>", "ms", SCHEMA_LOWER },
		{ "profllm.send_lag_ms.n", "profllm.<spread>.n", "", SCHEMA_NONE },
		{ "profllm.reasons[12].code", "profllm.reasons[].code", "", SCHEMA_NONE },
		{ "profllm.failures[0].examples[3].text", "profllm.failures[].examples[].text", "",
		  SCHEMA_NONE },
		{ "profllm.provenance.engine_commit", "profllm.provenance.engine_commit", "",
		  SCHEMA_NONE },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		const struct schema_field *f = schema_field_find(row[i].key);

		if (!f)
			fail_msg("%s: not found", row[i].key);
		assert_string_equal(f->key, row[i].row);
		assert_string_equal(f->unit, row[i].unit);
		assert_int_equal(f->better, row[i].better);
	}
}

static void refuses(void **state)
{
	static const char *const key[] = {
		"", "durations", "duratio", "p_ttft_ms", "p99._ttft_ms", "p.9_ttft_ms", "p99_ttft",
		"p99_ttft_ms ", "p99_other_ms", "mean__ms", "pp99_ttft_ms", "profllm.",
		"profllm.skew_ms.p50.x", "profllm.duration_ms.p99", "profllm.reasons.code",
		"profllm.reasons[x].code", "profllm.reasons[1.code",
	};
	(void)state;
	for (size_t i = 0; i < COUNT(key); i++)
		if (schema_field_find(key[i]))
			fail_msg("%s: found as %s", key[i], schema_field_find(key[i])->key);
}

static void names_are_unique(void **state)
{
	(void)state;
	for (size_t i = 0; i < schema_name_count; i++) {
		assert_true(*schema_names[i].definition);
		for (size_t k = 0; k < i; k++)
			assert_false(strcmp(schema_names[i].place, schema_names[k].place) == 0 &&
				     strcmp(schema_names[i].name, schema_names[k].name) == 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_complete),
		cmocka_unit_test(every_row_finds_itself),
		cmocka_unit_test(finds),
		cmocka_unit_test(refuses),
		cmocka_unit_test(names_are_unique),
	};

	return cmocka_run_group_tests_name("schema", tests, NULL, NULL);
}
