/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spm_normalize.c - see spm_normalize.h.
 */
#include "token/spm_normalize.h"

#include <stdlib.h>

#include "base/codec.h"
#include "base/mem.h"
#include "token/charsmap.h"
#include "token/trie.h"

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
				"number %zu is no text", i);
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

/* Where a run of characters ends that stay as they are; the search goes no further. */
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

/* What stands in front of text: how many bytes it has, and what it becomes. */
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

/* Blanks in front of a part go when *is_after_blank says so. */
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
