/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_token_scan.c - scanners against the regex library: the same words, for texts
 * put together from whatever an alternative of some expression may turn on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/base/mem.h"
#include "core/base/str.h"
#include "input/encode/chars.h"
#include "input/encode/pretok.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define TEXTS 100000

/* Code points by the company they keep: every class, line ends, short forms, borders of ranges. */
static const uint32_t alphabet[] = {
	'a', 'b', 's', 't', 'r', 'e', 'v', 'm', 'l', 'd', 'S', 'T', 'R', 'E', 'V', 'L', 'A', 'Z',
	'z', '\'', '\'', '\'', ' ', ' ', ' ', ' ', '\n', '\n', '\r', '\t', 0xb, 0xc, '0', '1', '9',
	'/', '.', '-', '$', '~', '!', '`', '{', '@', '[', 0, 1, 0x1f, 0x7f,
	0x80, 0x85, 0xa0, 0xad, 0xaa, 0xb2, 0xbd, 0xc9, 0xe9, 0x17f, 0x1c5, 0x2b0, 0x301, 0x345,
	0x378, 0x3a3, 0x3c2, 0x5d0, 0x661, 0x627, 0x64b, 0xe01, 0x1680, 0x180e, 0x1c89, 0x1c8a,
	0x2000, 0x200b, 0x200d, 0x2019, 0x2028, 0x202f, 0x205f, 0x2060, 0x20ac, 0x20dd, 0x212a,
	0x2163, 0x2e80, 0x3000, 0x3005, 0x3007, 0x303f, 0x3040, 0x3042, 0x3097, 0x3099, 0x309b,
	0x309f, 0x30a0, 0x30a2, 0x30fb, 0x30fc, 0x30ff, 0x3100, 0x3105, 0x4dff, 0x4e00, 0x4e2d,
	0x9fa5, 0x9fa6, 0xac00, 0xd7ff, 0xe000, 0xfeff, 0xff21, 0xff41, 0xff10, 0xffff, 0x10400,
	0x105c0, 0x10d40, 0x16fe2, 0x16fe3, 0x16ff0, 0x1d7ce, 0x1f600, 0x20000, 0x10ffff,
};

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state >> 11;
}

/* A few of the alphabet at a time, so that runs and returns happen. */
static struct str generate(uint64_t *state, char out[256])
{
	size_t n = 0, length = 1 + next(state) % 24, kinds = 1 + next(state) % 6;
	uint32_t pick[6];

	for (size_t i = 0; i < kinds; i++) {
		uint64_t r = next(state);

		pick[i] = alphabet[r % (r & 1 << 20 ? 48 : COUNT(alphabet))];
	}
	for (size_t i = 0; i < length; i++)
		n += utf8_encode(pick[next(state) % kinds], out + n);
	return (struct str){ out, n };
}

struct words {
	struct str word[256];
	size_t count;
};

static void take(void *ctx, const struct str *word, size_t count)
{
	struct words *w = ctx;

	for (size_t i = 0; i < count; i++)
		w->word[w->count++] = word[i];
}

static struct pretok by_library(const struct scanner *s)
{
	struct pretok p = { 0 };
	struct err e = { 0 };

	for (size_t i = 0; i < SCAN_PATTERNS_MAX && s->pattern[i]; i++) {
		p.stage[i].kind = PRETOK_REGEX;
		p.stage[i].behavior = PRETOK_ISOLATED;
		p.stage[i].regex = regex_new(str_of(s->pattern[i]), &e);
		if (!p.stage[i].regex)
			fail_msg("%s: %s", s->name, e.text);
		p.count++;
	}
	return p;
}

static void check(const struct scanner *s, const struct words *want, struct str text, size_t room)
{
	struct scan scan = scan_begin(s, text);
	struct words got = { 0 };
	size_t n;

	while ((n = scan_next(&scan, got.word + got.count, room)) > 0)
		got.count += n;
	for (size_t i = 0; i < want->count; i++)
		if (i >= got.count || got.word[i].p != want->word[i].p ||
			got.word[i].n != want->word[i].n)
			fail_msg("%s, word %zu of \"%.*s\": %zu bytes instead of %zu", s->name, i,
				(int)text.n, text.p, i < got.count ? got.word[i].n : 0,
				want->word[i].n);
	assert_int_equal(got.count, want->count);
}

static void test_same_words(void **state)
{
	(void)state;
	for (size_t i = 0; i < scan_count; i++) {
		struct pretok p = by_library(scan_scanners + i);
		struct pretok_work work = { 0 };
		uint64_t random = 0x9e3779b97f4a7c15;

		for (size_t n = 0; n < TEXTS; n++) {
			char bytes[256];
			struct str text = generate(&random, bytes);
			struct words want = { 0 };

			assert_int_equal(pretok_run(&p, &work, text, true, take, &want), 0);
			check(scan_scanners + i, &want, text, n % 3 ? COUNT(want.word) : 1);
		}
		pretok_work_release(&work);
		pretok_release(&p);
	}
}

/* Texts longer than what is skipped at once, at every distance from their end. */
static void test_long_runs(void **state)
{
	static const char *const part[] = { "az", "A", "zZ", " ", "!", "\n", "7", "\xc3\xa9",
		"\xe4\xb8\xad", "\xe3\x81\x82", "\xcc\x81" };

	(void)state;
	for (size_t i = 0; i < scan_count; i++) {
		struct pretok p = by_library(scan_scanners + i);
		struct pretok_work work = { 0 };

		for (size_t n = 0; n < COUNT(part) * COUNT(part) * 70; n++) {
			const char *front = part[n % COUNT(part)];
			const char *back = part[n / COUNT(part) % COUNT(part)];
			struct buf text = { 0 };
			struct words want = { 0 };

			for (size_t k = n / COUNT(part) / COUNT(part); k > 0; k--)
				buf_add_text(&text, front);
			buf_add_text(&text, back);
			assert_int_equal(pretok_run(&p, &work, buf_str(&text), true, take,
				&want), 0);
			check(scan_scanners + i, &want, buf_str(&text), COUNT(want.word));
			buf_release(&text);
		}
		pretok_work_release(&work);
		pretok_release(&p);
	}
}

static void test_find(void **state)
{
	struct str gpt2 = str_of(scan_scanners[0].pattern[0]);
	struct str digits = STR("\\p{N}{1,3}"), other = STR("\\w+");
	size_t used;

	(void)state;
	for (size_t i = 0; i < scan_count; i++) {
		struct str pattern[SCAN_PATTERNS_MAX + 1];
		size_t n = 0;

		while (n < SCAN_PATTERNS_MAX && scan_scanners[i].pattern[n]) {
			pattern[n] = str_of(scan_scanners[i].pattern[n]);
			n++;
		}
		pattern[n] = gpt2;
		assert_ptr_equal(scan_find(pattern, n + 1, &used), scan_scanners + i);
		assert_int_equal(used, n);
		assert_null(n > 1 ? scan_find(pattern, n - 1, &used) : NULL);
	}
	assert_null(scan_find(&digits, 1, &used));
	assert_null(scan_find(&other, 1, &used));
	gpt2.n--;
	assert_null(scan_find(&gpt2, 1, &used));
}

static void test_line_ends_as_written(void **state)
{
	struct str pattern = STR("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?"
		"[^\\s\\p{L}\\p{N}]+[\r\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+");
	const struct scanner *s;
	size_t used;

	(void)state;
	s = scan_find(&pattern, 1, &used);
	assert_non_null(s);
	assert_string_equal(s->name, "Qwen");
}

/* What the table says of borders and of characters younger than the regex library. */
static void test_classes(void **state)
{
	static const struct {
		uint32_t cp;
		unsigned want;
	} row[] = {
		{ 0, CLASS_OTHER }, { '\t', CLASS_SPACE }, { '\n', CLASS_NEWLINE },
		{ '\r', CLASS_NEWLINE }, { 'A', CLASS_LU }, { 'z', CLASS_LL },
		{ '0', CLASS_NUMBER }, { '$', CLASS_SYMBOL }, { '_', CLASS_PUNCTUATION },
		{ 0x85, CLASS_SPACE }, { 0x180e, CLASS_OTHER }, { 0x1c5, CLASS_LT },
		{ 0x2b0, CLASS_LM }, { 0x301, CLASS_MARK }, { 0x378, CLASS_OTHER },
		{ 0x1c89, CLASS_LU }, { 0x3005, CLASS_HAN + CLASS_LM },
		{ 0x3007, CLASS_HAN + CLASS_NUMBER }, { 0x2e80, CLASS_HAN + CLASS_SYMBOL },
		{ 0x4e00, CLASS_HAN + CLASS_LO }, { 0x16ff0, CLASS_HAN + CLASS_MARK },
		{ 0x16fe2, CLASS_HAN + CLASS_PUNCTUATION }, { 0xac00, CLASS_LO },
		{ 0xe000, CLASS_OTHER }, { 0x16d70, CLASS_NUMBER }, { 0x10ffff, CLASS_OTHER },
	};
	const struct classes *c = classes_get();

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		uint8_t bytes[4];
		unsigned n = 1;

		assert_int_equal(classes_of(c, row[i].cp), row[i].want);
		utf8_encode(row[i].cp, (char *)bytes);
		if (row[i].cp < 0x80)
			assert_int_equal(c->byte[bytes[0]], row[i].want);
		else
			assert_int_equal(classes_of_long(c, bytes, &n), row[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_words),
		cmocka_unit_test(test_long_runs),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_line_ends_as_written),
		cmocka_unit_test(test_classes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
