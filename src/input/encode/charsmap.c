/* SPDX-License-Identifier: Apache-2.0 */
/*
 * charsmap.c - sentencepiece's character maps and how it prepares a text.
 *
 * All bounds are checked once: a node's children are in one block of 256 units, so a trie whose
 * blocks all exist needs no check during a walk.
 */
#include "input/encode/normalize.h"

#include <assert.h>
#include <stdlib.h>

#include "core/base/codec.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/read.h"
#include "input/encode/vocab.h"

/* ---- Character maps ---- */

#define BLOCK 256
#define VALUE_BIT (1u << 31)

struct charsmap {
	uint32_t *unit; /* whole blocks */
	size_t units;
	char *pool; /* ends with a NUL */
	size_t pool_bytes;
	/* The ASCII byte ends a key, or is followed by another ASCII byte in one. */
	bool is_active[128];
};

static bool ends_key(uint32_t unit)
{
	return unit >> 8 & 1;
}

static uint32_t children(uint32_t unit)
{
	return unit >> 10 << ((unit & 1u << 9) >> 6);
}

/* One step of a walk; at is where the children of the node begin. False: no such child. */
static inline bool step(const struct charsmap *c, uint32_t *at, uint8_t byte, uint32_t *unit)
{
	uint32_t to = *at ^ byte;

	*unit = c->unit[to];
	*at = to ^ children(*unit);
	return (*unit & (VALUE_BIT | 0xff)) == byte;
}

/* Every unit that a walk can reach leads to whole blocks, and to replacements. */
static int check(const struct charsmap *c, struct err *e)
{
	for (size_t i = 0; i < c->units; i++) {
		uint32_t unit = c->unit[i];
		size_t base = i ^ children(unit);

		if (unit & VALUE_BIT && i > 0)
			continue; /* no walk steps onto a value, but each begins with unit 0 */
		if (base >= c->units)
			return err_set(e, ERR_PARSE, "character map: entry %zu of its trie refers "
				"to entry %zu, but there are only %zu", i, base, c->units);
		if (!ends_key(unit))
			continue;
		base = c->unit[base] & ~VALUE_BIT;
		if (base >= c->pool_bytes || (c->pool[base] & 0xc0) == 0x80)
			return err_set(e, ERR_PARSE, "character map: there is no replacement at "
				"byte %zu of %zu", base, c->pool_bytes);
	}
	return 0;
}

static void find_active(struct charsmap *c)
{
	uint32_t root = children(c->unit[0]), unit;

	for (uint32_t byte = 0; byte < 128; byte++) {
		uint32_t at = root, next;

		if (!step(c, &at, (uint8_t)byte, &unit))
			continue;
		c->is_active[byte] = ends_key(unit);
		for (uint32_t second = 0; second < 128; second++) {
			next = at;
			if (step(c, &next, (uint8_t)second, &unit))
				c->is_active[byte] = true;
		}
	}
}

struct charsmap *charsmap_new(struct str bytes, struct err *e)
{
	const uint8_t *p = (const uint8_t *)bytes.p;
	uint32_t trie_bytes = 0;
	struct charsmap *c;
	struct str pool;

	for (size_t i = 0; i < 4 && i < bytes.n; i++)
		trie_bytes |= (uint32_t)p[i] << 8 * i;
	if (bytes.n < 4 || trie_bytes < 4 || trie_bytes % 4 || trie_bytes > bytes.n - 4) {
		err_set(e, ERR_PARSE, "character map of %zu bytes cannot contain a trie of %u "
				      "bytes",
			bytes.n, trie_bytes);
		return NULL;
	}
	pool = (struct str){ bytes.p + 4 + trie_bytes, bytes.n - 4 - trie_bytes };
	if (!utf8_is_valid(pool)) {
		err_set(e, ERR_PARSE, "character map's replacements are not valid UTF-8");
		return NULL;
	}
	c = mem_alloc(sizeof *c);
	c->units = (trie_bytes / 4 + BLOCK - 1) / BLOCK * BLOCK;
	c->unit = mem_array(c->units, sizeof *c->unit);
	for (size_t i = 0; i < trie_bytes; i++)
		c->unit[i / 4] |= (uint32_t)p[4 + i] << 8 * (i % 4);
	c->pool_bytes = pool.n;
	c->pool = mem_copy(pool.p, pool.n);
	if (check(c, e)) {
		charsmap_free(c);
		return NULL;
	}
	find_active(c);
	return c;
}

void charsmap_free(struct charsmap *c)
{
	if (!c)
		return;
	free(c->unit);
	free(c->pool);
	free(c);
}

static inline size_t look_up(const struct charsmap *c, struct str text, struct str *to,
	bool is_longest)
{
	uint32_t at = children(c->unit[0]), found = 0, unit;
	size_t length = 0;

	text.n = text.n < CHARSMAP_KEY_BYTES_MAX ? text.n : CHARSMAP_KEY_BYTES_MAX;
	for (size_t i = 0; i < text.n && step(c, &at, (uint8_t)text.p[i], &unit); i++) {
		if (!ends_key(unit))
			continue;
		found = at;
		length = i + 1;
		if (!is_longest)
			break;
	}
	if (length > 0)
		*to = str_of(c->pool + (c->unit[found] & ~VALUE_BIT));
	return length;
}

size_t charsmap_longest(const struct charsmap *c, struct str text, struct str *to)
{
	return look_up(c, text, to, true);
}

size_t charsmap_shortest(const struct charsmap *c, struct str text, struct str *to)
{
	return look_up(c, text, to, false);
}

size_t charsmap_skip(const struct charsmap *c, struct str text, size_t at)
{
	assert(at <= text.n);
	for (; at < text.n; at++) {
		uint8_t byte = (uint8_t)text.p[at];

		if (byte >= 0x80 || c->is_active[byte] ||
			(at + 1 < text.n && (uint8_t)text.p[at + 1] >= 0x80))
			break;
	}
	return at;
}

/* ---- What sentencepiece does ---- */

#define BLANK "\xe2\x96\x81" /* U+2581 */

struct spm_normalizer {
	struct charsmap *map; /* NULL: none */
	struct trie symbols;
	bool has_symbols, has_prefix, is_trimmed;
};

static int read_map(struct spm_normalizer *s, const struct json_value *v, struct err *e)
{
	struct str text = json_text(json_get(v, "precompiled_charsmap"), STR(""));
	struct buf bytes = { 0 };

	if (text.n == 0)
		return 0;
	if (base64_decode(text, &bytes))
		s->map = charsmap_new(buf_str(&bytes), e);
	else
		err_set(e, ERR_PARSE, "has a SentencePiece normalizer whose "
			"\"precompiled_charsmap\" is not base64");
	buf_release(&bytes);
	return s->map ? 0 : -1;
}

static int read_symbols(struct spm_normalizer *s, const struct json_value *v, struct err *e)
{
	const struct json_value *list = json_get(v, "symbols");
	size_t count = list && list->kind == JSON_ARRAY ? list->count : 0;
	struct trie_key *key = mem_array(count, sizeof *key);
	int rc = 0;

	for (size_t i = 0; i < count && rc == 0; i++) {
		key[i] = (struct trie_key){ json_text(list->item + i, STR("")), (uint32_t)i };
		if (key[i].bytes.n == 0)
			rc = err_set(e, ERR_PARSE, "has a SentencePiece normalizer whose symbol "
				"number %zu is not a text", i);
	}
	if (rc == 0 && count > 0) {
		trie_build(&s->symbols, key, count);
		s->has_symbols = true;
	}
	free(key);
	return rc;
}

struct spm_normalizer *spm_normalizer_new(const struct json_value *v, struct err *e)
{
	struct spm_normalizer *s = mem_alloc(sizeof *s);

	s->has_prefix = json_bool(json_get(v, "add_dummy_prefix"), true);
	s->is_trimmed = json_bool(json_get(v, "remove_extra_whitespaces"), true);
	if (read_map(s, v, e) == 0 && read_symbols(s, v, e) == 0)
		return s;
	spm_normalizer_free(s);
	return NULL;
}

void spm_normalizer_free(struct spm_normalizer *s)
{
	if (!s)
		return;
	charsmap_free(s->map);
	trie_release(&s->symbols);
	free(s);
}

static size_t char_bytes(uint8_t lead)
{
	return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/* The end of a run of unchanged characters, at most as far as the search needs. */
static size_t plain_end(const struct spm_normalizer *s, struct str text, size_t at)
{
	if (s->map)
		return s->has_symbols ? at : charsmap_skip(s->map, text, at);
	if (!s->has_symbols)
		return text.n;
	while (at < text.n && !s->symbols.root[(uint8_t)text.p[at]])
		at++;
	return at;
}

/* The next part of text: its length in bytes, and its replacement. */
static size_t next_part(const struct spm_normalizer *s, struct str text, struct str *to)
{
	size_t n = 0;

	if (s->has_symbols && trie_longest(&s->symbols, text, &n) != TRIE_NONE) {
		*to = (struct str){ text.p, n };
		return n;
	}
	if (s->map)
		n = charsmap_longest(s->map, text, to);
	if (n > 0)
		return n;
	if (((uint8_t)*text.p & 0xc0) == 0x80) { /* a key of the map was a part of a character */
		*to = STR("\xef\xbf\xbd");
		return 1;
	}
	*to = (struct str){ text.p, char_bytes((uint8_t)*text.p) };
	return to->n;
}

static void add_escaped(struct buf *out, struct str part)
{
	while (part.n > 0) {
		const char *blank = memchr(part.p, ' ', part.n);
		size_t n = blank ? (size_t)(blank - part.p) : part.n;

		buf_add(out, part.p, n);
		if (!blank)
			return;
		buf_add_text(out, BLANK);
		part = (struct str){ part.p + n + 1, part.n - n - 1 };
	}
}

/* Appends a part without its leading blanks if *is_after_blank. */
static void add_part(const struct spm_normalizer *s, struct str part, bool *is_after_blank,
	struct buf *out)
{
	while (*is_after_blank && part.n > 0 && *part.p == ' ')
		part = (struct str){ part.p + 1, part.n - 1 };
	if (part.n == 0)
		return;
	*is_after_blank = s->is_trimmed && part.p[part.n - 1] == ' ';
	add_escaped(out, part);
}

/* A run in parts of their own: each ends with its first blank. */
static void add_run(const struct spm_normalizer *s, struct str run, bool *is_after_blank,
	struct buf *out)
{
	while (run.n > 0) {
		const char *blank = memchr(run.p, ' ', run.n);
		size_t n = blank ? (size_t)(blank - run.p) + 1 : run.n;

		add_part(s, (struct str){ run.p, n }, is_after_blank, out);
		run = (struct str){ run.p + n, run.n - n };
	}
}

struct str spm_normalize(const struct spm_normalizer *s, struct str text, struct buf *out)
{
	bool is_after_blank = s->is_trimmed;
	size_t end;

	buf_reset(out);
	if (s->has_prefix && text.n > 0)
		buf_add_text(out, BLANK);
	for (size_t at = 0; at < text.n; at = end) {
		struct str part;

		end = plain_end(s, text, at);
		if (end > at) {
			add_run(s, (struct str){ text.p + at, end - at }, &is_after_blank, out);
			continue;
		}
		end = at + next_part(s, (struct str){ text.p + at, text.n - at }, &part);
		add_part(s, part, &is_after_blank, out);
	}
	while (s->is_trimmed && str_ends(buf_str(out), STR(BLANK)))
		out->len -= strlen(BLANK);
	return buf_str(out);
}
