/* SPDX-License-Identifier: Apache-2.0 */
/* What prompts have in common with earlier ones, against looking at every pair. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "input/data/repeat.h"

static size_t common(struct str a, struct str b)
{
	size_t i = 0;

	while (i < a.n && i < b.n && a.p[i] == b.p[i])
		i++;
	return i;
}

static void same_as_pairs(const struct str *text, size_t n)
{
	double share[64];

	prefix_shared(text, n, share);
	for (size_t i = 0; i < n; i++) {
		size_t most = 0;

		for (size_t k = 0; k < i; k++)
			if (common(text[i], text[k]) > most)
				most = common(text[i], text[k]);
		assert_true(share[i] == (text[i].n ? (double)most / (double)text[i].n : 0));
	}
}

static void test_by_hand(void **state)
{
	const struct str text[] = { STR("abcd"), STR("abxx"), STR("abcd"), STR(""), STR("zz"),
				    STR("abcdefgh"), STR("abcdef") };
	static const double want[] = { 0, 0.5, 1, 0, 0, 0.5, 1 };
	double share[7];

	(void)state;
	prefix_shared(text, 7, share);
	for (int i = 0; i < 7; i++)
		assert_true(share[i] == want[i]);
	same_as_pairs(text, 7);
	prefix_shared(text, 0, share);
	prefix_shared(text, 1, share);
	assert_true(share[0] == 0);
}

/* Few letters and short texts: many ties; a long stem: the words that are compared in strides. */
static void test_pairs(void **state)
{
	static char bytes[64][400];
	uint32_t seed = 7;

	(void)state;
	for (size_t round = 0; round < 200; round++) {
		struct str text[64];
		size_t n = 1 + round % 64, stem = round % 3 ? 0 : 150;

		for (size_t i = 0; i < n; i++) {
			size_t length;

			seed = seed * 1664525 + 1013904223;
			length = stem + (seed >> 24) % 12;
			memset(bytes[i], 'a', stem);
			for (size_t k = stem; k < length; k++) {
				seed = seed * 1664525 + 1013904223;
				bytes[i][k] = (char)('a' + (seed >> 28) % 3);
			}
			text[i] = (struct str){ bytes[i], length };
		}
		same_as_pairs(text, n);
	}
}

static void test_text(void **state)
{
	struct sample s = { .prompt = STR("p") };

	(void)state;
	assert_true(str_is(prefix_text(&s), "p"));
	s.messages = STR("[m]");
	assert_true(str_is(prefix_text(&s), "[m]"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_hand),
		cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_text),
	};

	return cmocka_run_group_tests_name("data_prefix", tests, NULL, NULL);
}
