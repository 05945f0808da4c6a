/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_token_sentencepiece.c - .model files: ids and texts as sentencepiece's own tools
 * give them, special tokens as the model hubs have them, and one sentence for every
 * way such a file can be wrong.
 *
 * The two models were trained on this project's README.md and ARCHITECTURE.md
 * (spm_train, 300 and 500 pieces; unigram.model with a small character map of its own).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <unistd.h>

#include "core/base/file.h"
#include "input/token/tokenizer.h"
#include "scratch.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define UNIGRAM "tests/unit/token/unigram.model"
#define BPE "tests/unit/token/bpe.model"
#define NIHONGO "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e"
#define BLANK "\xe2\x96\x81"


static struct tokenizer *load(const char *path)
{
	struct err e;
	struct tokenizer *t = tokenizer_load(path, NULL, &e);

	if (!t)
		fail_msg("%s", e.text);
	return t;
}

static void add_ids(struct buf *out, const struct ids *ids)
{
	buf_reset(out);
	buf_add_text(out, "");
	for (size_t i = 0; i < ids->count; i++)
		buf_printf(out, "%s%u", i ? " " : "", ids->id[i]);
}

struct text_row {
	const char *model, *text, *ids, *back; /* back: decoded, special tokens kept */
};

static void check_row(const struct tokenizer *t, const struct text_row *row, bool add_special)
{
	struct buf spelled = { 0 }, back = { 0 };
	struct ids ids = { 0 };

	assert_int_equal(tokenizer_encode(t, str_of(row->text), add_special, &ids), 0);
	add_ids(&spelled, &ids);
	assert_string_equal(spelled.data, row->ids);
	buf_add_text(&back, "");
	assert_int_equal(tokenizer_decode(t, ids.id, ids.count, false, &back), 0);
	assert_string_equal(back.data, row->back);
	buf_release(&spelled);
	buf_release(&back);
	ids_release(&ids);
}

static void test_texts(void **state)
{
	static const struct text_row row[] = {
		{ UNIGRAM, "Hello world, the tokens of a benchmark.",
			"7 121 9 26 26 21 7 37 64 26 27 12 19 222 8 52 18 7 114 282 10",
			"Hello world, the tokens of a benchmark." },
		{ UNIGRAM, "  two  blanks\t\tand\xe3\x80\x80more  ",
			"7 11 37 21 7 51 26 46 85 8 30 226 38", "two blanks and more" },
		{ UNIGRAM, "A\xcc\x88 \xef\xac\x81 a\xcc\x88\xc2\xbd\xc2\xbdx\x7fy",
			"18 0 67 25 7 0 7 94 14 124 7 94 14 124 7 98 40",
			"a<unk> fi <unk> 1/2 1/2 xy" },
		{ UNIGRAM, "<sep>foofofoo<se", "7 4 5 6 5 0 8 9", "<sep>foofofoo<unk>se" },
		{ UNIGRAM, BLANK "literal " BLANK BLANK " blanks",
			"7 7 26 63 36 82 7 7 7 7 51 26 46 85 8", "literal    blanks" },
		{ UNIGRAM, NIHONGO " " NIHONGO " the", "7 0 7 0 19", "<unk> <unk> the" },
		{ UNIGRAM, "   ", "", "" },
		{ UNIGRAM, "\x7f", "", "" },
		{ UNIGRAM, "", "", "" },
		{ UNIGRAM, " <sep> foo ", "7 4 7 5", "<sep> foo" },
		{ UNIGRAM, "a   b    c", "18 7 51 7 22", "a b c" },
		{ UNIGRAM, "the the  the", "19 19 19", "the the the" },
		{ BPE, "Hello world, the tokens of a benchmark.",
			"450 80 451 461 329 279 312 461 460 469 276 327 366 453 337 265 285 431 "
			"464 332 479 467", "Hello world, the tokens of a benchmark." },
		{ BPE, "  two  blanks\t\tand\xe3\x80\x80more  ",
			"7 264 470 457 7 474 395 479 453 17 17 454 281 235 136 136 388 267 7",
			"  two  blanks\t\tand\xe3\x80\x80more  " },
		{ BPE, "A\xcc\x88 \xef\xac\x81 a\xcc\x88\xc2\xbd\xc2\xbdx\x7fy",
			"351 212 144 450 247 180 137 265 212 144 202 197 202 197 485 135 476",
			"A\xcc\x88 \xef\xac\x81 a\xcc\x88\xc2\xbd\xc2\xbdx\x7fy" },
		{ BPE, "<sep>foofofoo<se", "450 4 5 6 5 68 350", "<sep>foofofoo<se" },
		{ BPE, BLANK "literal " BLANK BLANK " blanks",
			"7 461 275 266 308 7 7 474 395 479 453", " literal    blanks" },
		{ BPE, NIHONGO " " NIHONGO " the", "450 238 159 173 238 164 180 240 178 166 450 "
			"238 159 173 238 164 180 240 178 166 276", NIHONGO " " NIHONGO " the" },
		{ BPE, "   ", "7 7", "   " },
		{ BPE, "", "", "" },
		{ BPE, " <sep> foo ", "7 4 450 5 450", " <sep> foo " },
		{ BPE, "a   b    c", "265 7 285 7 7 462", "a   b    c" },
		{ BPE, "the the  the", "276 276 7 452 271", "the the  the" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct tokenizer *t = load(row[i].model);

		check_row(t, row + i, false);
		tokenizer_free(t);
	}
}

/* Control pieces in text, bos in front, and each part between them with a blank of its own. */
static void test_special(void **state)
{
	static const struct text_row row[] = {
		{ UNIGRAM, "the<ctl>the", "1 19 3 19", "<s> the<ctl> the" },
		{ UNIGRAM, "<s></s><unk>", "1 1 2 0", "<s><s></s><unk>" },
		{ BPE, "the</s>the", "1 276 2 276", "<s> the</s> the" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct tokenizer *t = load(row[i].model);

		check_row(t, row + i, true);
		assert_int_equal(tokenizer_special_per_sequence(t), 1);
		assert_true(tokenizer_is_special(t, 0));
		assert_true(tokenizer_is_special(t, 2));
		assert_false(tokenizer_is_special(t, 4)); /* <sep>, its maker's own symbol */
		tokenizer_free(t);
	}
}

/* ---- files that are wrong ---- */

static char *write_model(struct str bytes)
{
	char *path = file_join(dir, "x.model");
	struct err e;

	if (file_write_atomic(path, bytes, &e))
		fail_msg("%s", e.text);
	return path;
}

#define BYTES(literal) { literal, sizeof literal - 1 }

static void test_errors(void **state)
{
	static const struct {
		struct str bytes;
		const char *want;
	} row[] = {
		{ BYTES(""), "has no pieces" },
		{ BYTES("\x0a\x05\x0a\x01" "a"), "5 bytes should follow at byte 1" },
		{ BYTES("\x0a\x03\x0a\x02" "a"), "2 bytes should follow at byte 3" },
		{ BYTES("\x0a"), "a field breaks off at byte 1" },
		{ BYTES("\x15\0\0"), "a field breaks off at byte 1" },
		{ BYTES("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
			"the number at byte 0 does not end" },
		{ BYTES("\x0f"), "a field of unknown kind 7 before byte 1" },
		{ BYTES("\x02\x00"), "no field begins at byte 0" },
		{ BYTES("\x0c"), "a group ends at byte 0" },
		{ BYTES("\x0b\x08\x01"), "a field breaks off at byte 3" },
		{ BYTES("\x0a\x02\x0a\0"), "has a piece (number 0) that is not text" },
		{ BYTES("\x0a\x00"), "has a piece (number 0) that is not text" },
		{ BYTES("\x0a\x03\x0a\x01\xff"), "has a piece (number 0) that is not text" },
		{ BYTES("\x0a\x03\x0a\x01\0"), "has a piece (number 0) that is not text" },
		{ BYTES("\x0a\x08\x0a\x01" "a\x15\0\0\xc0\x7f"), "with the score nan" },
		{ BYTES("\x0a\x08\x0a\x01" "a\x15\xff\xff\x7f\xff"), "with the score -3.4" },
		{ BYTES("\x0a\x05\x0a\x01" "a\x18\x07"), "of unknown type 7" },
		{ BYTES("\x0a\x03\x0a\x01" "a"), "has 0 pieces for unknown text" },
		{ BYTES("\x0a\x05\x0a\x01" "a\x18\x02\x0a\x05\x0a\x01" "b\x18\x02"),
			"has 2 pieces for unknown text" },
		{ BYTES("\x0a\x05\x0a\x01" "a\x18\x02"), "has no normal pieces" },
		{ BYTES("\x0a\x05\x0a\x01" "u\x18\x02\x0a\x05\x0a\x01" "b\x18\x06"),
			"has 1 pieces for bytes; expected none" },
		{ BYTES("\x0a\x05\x0a\x01" "u\x18\x02\x12\x03\x98\x02\x01"),
			"has 0 pieces for bytes; expected 256" },
		{ BYTES("\x0a\x05\x0a\x01" "u\x18\x02\x12\x02\x18\x03"), "model type 3" },
		{ BYTES("\x0a\x05\x0a\x01" "u\x18\x02\x12\x03\xc0\x01\x01"),
			"treat_whitespace_as_suffix" },
		{ BYTES("\x0a\x05\x0a\x01" "u\x18\x02\x1a\x02\x28\0"), "escape_whitespaces" },
		{ BYTES("\x0a\x05\x0a\x01" "u\x18\x02\x2a\x03\x12\x01x"), "denormalizer_spec" },
		{ BYTES("\x0a\x05\x0a\x01" "u\x18\x02\x1a\x03\x12\x01x"), "character map of 1" },
		{ BYTES("\x0a\x05\x0a\x01" "u\x18\x02\x0a\x03\x0a\x01" "a\x0a\x03\x0a\x01" "a"),
			"ids 1 and 2 are the same token" },
		{ BYTES("\x0a\x05\x0a\x01" "u\x18\x02\x0a\x05\x0a\x01" "a\x18\x05\x12\x02\x18\x02"),
			"unused pieces (number 1)" },
		{ BYTES("\x0a\x05\x0a\x01" "u\x18\x02\x0a\x04\x0a\x02" "ab\x12\x02\x18\x02"),
			"piece number 1 of characters that are not pieces" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		char *path = write_model(row[i].bytes);
		struct err e = { 0 };
		struct tokenizer *t = tokenizer_load(path, NULL, &e);

		assert_null(t);
		if (!strstr(e.text, row[i].want) || strncmp(e.text, path, strlen(path)) != 0)
			fail_msg("row %zu: \"%s\", not \"%s\"", i, e.text, row[i].want);
		free(path);
	}
}

/* Fields and groups that are not known, and a file without its usual name. */
static void test_unknown_fields(void **state)
{
	static const char model[] = "\x0a\x03\x0a\x01" "a\x0a\x08\x0a\x01" "u\x18\x02\xf8\x3f\x01"
		"\xfd\x3f" "1234\xf3\x3f\x08\x01\x0b\x0c\xf4\x3f\xf9\x3f" "12345678";
	char *path = file_join(dir, "model-without-a-name");
	struct tokenizer *t;
	const struct text_row row = { .text = "aa a", .ids = "1 0 0 1 0", .back = "uaaua" };
	struct err e;

	(void)state;
	assert_int_equal(file_write_atomic(path, (struct str){ model, sizeof model - 1 }, &e), 0);
	t = load(path);
	check_row(t, &row, false);
	assert_int_equal(tokenizer_special_per_sequence(t), 0);
	tokenizer_free(t);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_special),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_unknown_fields),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
