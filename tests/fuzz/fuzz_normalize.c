/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_normalize.c - normalizers and character maps.
 *
 * The first byte chooses. Below 'M', a stage of a fixed list, and the rest is text: the result is
 * valid UTF-8, and a normal form of it is itself. 'M' and above: the second byte is the length of a
 * text, which is followed by a map.
 */
#include <stdlib.h>

#include "check.h"
#include "core/base/str.h"
#include "input/encode/model.h"
#include "input/token/reader.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const stages[] = {
	"{\"type\":\"NFC\"}", "{\"type\":\"NFD\"}", "{\"type\":\"NFKC\"}", "{\"type\":\"NFKD\"}",
	"{\"type\":\"Lowercase\"}", "{\"type\":\"StripAccents\"}", "{\"type\":\"Nmt\"}",
	"{\"type\":\"ByteLevel\"}",
	"{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":true}",
	"{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":true,"
	"\"strip_accents\":null,\"lowercase\":true}",
	"{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"_\"},"
	"{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\xe2\x96\x81\"},"
	"{\"type\":\"Replace\",\"pattern\":{\"String\":\"ab\"},\"content\":\"\"}]}",
	"{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"a*|\\\\s\"},\"content\":\"-\"}",
};
#define FORMS 4

static struct str make_valid(struct str text, struct buf *out)
{
	utf8_add_lossy(out, text);
	return out->data ? buf_str(out) : STR("");
}

static void check_stage(size_t which, struct str bytes)
{
	static struct model model[COUNT(stages)];
	static struct normalize_work work, again;
	struct buf text = { 0 };
	struct str once, twice;

	if (model[which].normalizer.count == 0)
		CHECK(stages_load(&model[which], &(struct stage_texts){
			.normalizer = str_of(stages[which]) }, NULL) == 0);
	once = normalize(&model[which].normalizer, &work, make_valid(bytes, &text));
	CHECK(!work.failure && (once.n == 0 || utf8_is_valid(once)));
	if (which < FORMS) {
		twice = normalize(&model[which].normalizer, &again, once);
		CHECK(str_eq(once, twice));
	}
	buf_release(&text);
}

static void check_map(struct str bytes)
{
	size_t n = (uint8_t)bytes.p[0] < bytes.n ? (uint8_t)bytes.p[0] : bytes.n - 1;
	struct charsmap *map;
	struct buf text = { 0 }, out = { 0 };
	struct err e = { 0 };
	struct str valid, to;
	size_t length;

	map = charsmap_new((struct str){ bytes.p + 1 + n, bytes.n - 1 - n }, &e);
	CHECK(map || e.text[0]);
	if (map) {
		valid = make_valid((struct str){ bytes.p + 1, n }, &text);
		for (size_t at = 0; at < valid.n; at++) {
			length = charsmap_longest(map, (struct str){ valid.p + at,
				valid.n - at }, &to);
			CHECK(length <= valid.n - at);
			CHECK(length == 0 || utf8_is_valid(to) || to.n == 0);
		}
		to = normalize_map(map, valid, &out);
		CHECK(to.n == 0 || utf8_is_valid(to));
	}
	charsmap_free(map);
	buf_release(&text);
	buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = { (const char *)data + 1, size - 1 };

	if (size < 2)
		return 0;
	if (data[0] < 'M')
		check_stage(data[0] % COUNT(stages), rest);
	else
		check_map(rest);
	return 0;
}
