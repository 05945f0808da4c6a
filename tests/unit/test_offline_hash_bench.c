/* SPDX-License-Identifier: Apache-2.0 */
/* What bench hash and bench prefix-block-hash draw and print; numbers are CPython's random's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bench/offline/hash_bench.h"
#include "core/base/mem.h"
#include "answers.h"

/* Case K1 of the conversations specification, and the rest of both lists. */
static void draws_are_upstreams(void **state)
{
	static const uint8_t bytes[] = { 0xa3, 0x1c, 0x06, 0xbd, 0x46, 0x3e, 0x39, 0x23 };
	static const int64_t ints[] = { 231149, 471030, 617890, 291705 };
	static const uint32_t ids[] = { 27670, 12623, 24836, 29171, 13781, 1326, 8484, 31636 };
	struct hash_payload p;
	uint32_t drawn[8];

	(void)state;
	hash_draw(42, &p);
	assert_memory_equal(p.bytes, bytes, sizeof(bytes));
	assert_memory_equal(p.ints, ints, sizeof(ints));
	assert_int_equal(p.bytes[31], 0x6b);
	assert_int_equal(p.ints[31], 562276);
	hash_draw_ids(0, 32000, 8, drawn);
	assert_memory_equal(drawn, ids, sizeof(ids));
}

static void assert_lines(const struct hash_time *t, size_t n, const char *want)
{
	struct buf out = { 0 };

	hash_lines(t, n, &out);
	assert_string_equal(out.data, want);
	answers_release(&out);
}

static void lines_are_upstreams(void **state)
{
	static const struct hash_time all[] = {
		{ "SHA256 (pickle)", 1.5e-6, 0.25e-6 }, { "xxHash (pickle)", 100e-6, 0 },
		{ "built-in hash()", 0.5e-6, 0.125e-6 },
	};
	static const double times[] = { 0.25, 0.125, 0.375 };
	struct buf out = { 0 };

	(void)state;
	assert_lines(all, 3, "\nResults:\n"
		     "  SHA256 (pickle) :     1.50 ±   0.25 μs\n"
		     "  xxHash (pickle) :   100.00 ±   0.00 μs\n"
		     "  built-in hash() :     0.50 ±   0.12 μs\n"
		     "\n============================================================\n"
		     "SUMMARY (relative to built-in hash())\n"
		     "============================================================\n"
		     "• SHA256 (pickle) is 3.0x slower than built-in hash()\n"
		     "• xxHash (pickle) is 200.0x slower than built-in hash()\n");
	assert_lines(all, 1, "\nResults:\n  SHA256 (pickle) :     1.50 ±   0.25 μs\n"
		     "\nBuilt-in hash() result missing; cannot compute speed ratios.\n");
	block_hash_line("sha256_cbor", times, 3, 320000, &out);
	assert_string_equal(out.data, "sha256_cbor    avg: 0.250000s  best: 0.125000s  "
			    "throughput: 2.56M tokens/s\n");
	answers_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(draws_are_upstreams),
		cmocka_unit_test(lines_are_upstreams),
	};

	return cmocka_run_group_tests_name("run_hash_bench", tests, NULL, NULL);
}
