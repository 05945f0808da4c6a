/* SPDX-License-Identifier: Apache-2.0 */
/* test_base_zip.c - packed streams come back the same, in pieces of a known size; Base64. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "core/base/codec.h"
#include "core/base/str.h"

struct pieces {
	struct buf all;
	size_t last, n;
};

static void keep(void *self, struct str piece)
{
	struct pieces *p = self;

	if (p->n)
		assert_int_equal(p->last, ZIP_PIECE_BYTES);
	p->last = piece.n;
	p->n++;
	buf_add_str(&p->all, piece);
}

static void round_trip(size_t n, unsigned step)
{
	struct pieces packed = { 0 };
	struct zip *z = zip_begin(1, keep, &packed);
	char *text = malloc(n + 1), *back = malloc(n + 1);
	uint32_t seed = 1;
	size_t got = 0;

	for (size_t i = 0; i < n; i++) {
		seed = seed * 1664525 + 1013904223;
		text[i] = (char)(seed >> 24);
	}
	for (size_t i = 0; i < n; i += step)
		zip_add(z, (struct str){ text + i, n - i < step ? n - i : step });
	zip_end(z);
	assert_int_equal(zip_unpack(buf_str(&packed.all), back, n + 1, &got), ZIP_DONE);
	assert_int_equal(got, n);
	assert_memory_equal(back, text, n);
	if (n > 1) {
		assert_int_equal(zip_unpack(buf_str(&packed.all), back, n / 2, &got),
				 ZIP_TOO_SMALL);
		packed.all.data[packed.all.len / 2] ^= 0x55;
		assert_int_equal(zip_unpack(buf_str(&packed.all), back, n + 1, &got), ZIP_DAMAGED);
	}
	free(text);
	free(back);
	buf_release(&packed.all);
}

static void streams(void **state)
{
	(void)state;
	round_trip(0, 1);
	round_trip(1, 1);
	round_trip(1000, 7);
	round_trip(500000, 65536);
	round_trip(300000, 299999);
}

static void gzip_text(void **state)
{
	/* printf abc | gzip -n, twice in a row */
	static const unsigned char member[] = {
		0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x4b, 0x4c, 0x4a, 6, 0, 0xc2, 0x41, 0x24,
		0x35, 3, 0, 0, 0,
	};
	char two[2 * sizeof(member)], room[6];
	size_t got = 0;

	(void)state;
	memcpy(two, member, sizeof(member));
	memcpy(two + sizeof(member), member, sizeof(member));
	assert_int_equal(zip_unpack((struct str){ two, sizeof(two) }, room, sizeof(room), &got),
			 ZIP_DONE);
	assert_int_equal(got, 6);
	assert_memory_equal(room, "abcabc", 6);
	assert_int_equal(zip_unpack(str_of("plain"), room, sizeof(room), &got), ZIP_DAMAGED);
}

/* bytes NULL: it is refused, and what was there before stays. */
static void base64(void **state)
{
	static const struct { const char *text, *bytes; } rows[] = {
		{ "", "" }, { "QQ==", "A" }, { "QUI=", "AB" }, { "QUJD", "ABC" }, { "QUJDRA==", "ABCD" },
		{ "+/+/", "\xfb\xff\xbf" }, { "Q", NULL }, { "QQ", NULL }, { "QQ=", NULL }, { "Q===", NULL },
		{ "A===", NULL }, { "====", NULL }, { "QQ=A", NULL }, { "=QQQ", NULL }, { "QR==", NULL },
		{ "QUJ=", NULL }, { "QU-J", NULL }, { "QU J", NULL }, { "QQ==QQ==", NULL }, { "QUJDQQ=", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct buf out = { 0 }, back = { 0 };
		bool is_good;

		buf_add_text(&out, "then");
		is_good = base64_decode(str_of(rows[i].text), &out);
		if (is_good != (rows[i].bytes != NULL) || strncmp(out.data, "then", 4) != 0 ||
		    strcmp(out.data + 4, is_good ? rows[i].bytes : "") != 0)
			fail_msg("'%s' is '%s'", rows[i].text, out.data);
		if (is_good) {
			base64_encode((struct str){ out.data + 4, out.len - 4 }, &back);
			buf_add_text(&back, "");
			assert_string_equal(back.data, rows[i].text);
		}
		buf_release(&back);
		buf_release(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams),
		cmocka_unit_test(gzip_text), cmocka_unit_test(base64),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
