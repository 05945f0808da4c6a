/* SPDX-License-Identifier: Apache-2.0 */
/*
 * normalize.c - the steps in turn, and those that look at more than one character.
 */
#include "token/normalize.h"

#include <stdlib.h>

#include "token/chars.h"
#include "token/normalize_step.h"

static struct str prepend(struct str content, struct str text, struct buf *out)
{
	if (text.n == 0)
		return text;
	buf_reset(out);
	buf_add_str(out, content);
	buf_add_str(out, text);
	return buf_str(out);
}

static struct str strip(const struct normalize_step *s, struct str text)
{
	size_t n = s->from_left ? chars_space_front(text) : 0;

	text.p += n;
	text.n -= n;
	text.n -= s->from_right ? chars_space_back(text) : 0;
	return text;
}

/* A replacement of this size is copied, needed or not, for every byte that stays. */
#define SHORT 4

/* One byte by a few: no branch depends on the text. */
static struct str replace_byte(char byte, struct str content, struct str text, size_t first,
	struct buf *out)
{
	char short_content[SHORT] = { 0 };
	size_t at = first;
	char *to;

	buf_reset(out);
	if (buf_reserve(out, first + (text.n - first) * SHORT))
		return text;
	memcpy(short_content, content.p, content.n);
	memcpy(out->data, text.p, first);
	to = out->data + first;
	for (; at + SHORT <= text.n; at++) {
		bool is_byte = text.p[at] == byte;

		memcpy(to, is_byte ? short_content : text.p + at, SHORT);
		to += is_byte ? content.n : 1;
	}
	for (; at < text.n; at++) {
		bool is_byte = text.p[at] == byte;

		memcpy(to, is_byte ? content.p : text.p + at, is_byte ? content.n : 1);
		to += is_byte ? content.n : 1;
	}
	*to = 0;
	out->len = (size_t)(to - out->data);
	return buf_str(out);
}

static struct str replace(const struct normalize_step *s, struct str text, struct buf *out)
{
	struct str literal = s->literal, rest = text;
	const char *found = text.n ? memmem(text.p, text.n, literal.p, literal.n) : NULL;

	if (!found)
		return text;
	if (literal.n == 1 && s->content.n > 0 && s->content.n <= SHORT)
		return replace_byte(literal.p[0], s->content, text, (size_t)(found - text.p), out);
	buf_reset(out);
	for (; found && !out->is_over; found = memmem(rest.p, rest.n, literal.p, literal.n)) {
		size_t n = (size_t)(found - rest.p);

		buf_add(out, rest.p, n);
		buf_add_str(out, s->content);
		rest = (struct str){ found + literal.n, rest.n - n - literal.n };
	}
	buf_add_str(out, rest);
	return buf_str(out);
}

/*
 * An empty match right behind a match does not count; the search goes on one
 * character later. Matching runs on the text with stand-ins.
 */
static struct str replace_regex(const struct normalize_step *s, struct normalize_work *w,
	struct str text, struct buf *out)
{
	size_t from = 0, done = 0, start, end, n;
	bool has_match = false;
	struct str match;
	int rc = 0;

	if (text.n == 0)
		return text;
	match = chars_stand_in(text, &w->stand_in);
	while (from <= text.n && !out->is_over) {
		rc = regex_find(s->regex, w->regex, match, from, &start, &end);
		if (rc <= 0)
			break;
		if (has_match && start == end && end == done) {
			n = 1;
			if (from < text.n)
				normalize_char(text.p + from, &n);
			from += n;
			continue;
		}
		if (!has_match)
			buf_reset(out);
		has_match = true;
		buf_add(out, text.p + done, start - done);
		buf_add_str(out, s->content);
		done = from = end;
	}
	if (rc < 0)
		w->failure = NORMALIZE_GAVE_UP;
	if (!has_match)
		return text;
	buf_add(out, text.p + done, text.n - done);
	return buf_str(out);
}

static struct str run(const struct normalize_step *s, struct normalize_work *w, struct str text,
	struct buf *out)
{
	switch (s->kind) {
	case NORMALIZE_NFC:
	case NORMALIZE_NFD:
	case NORMALIZE_NFKC:
	case NORMALIZE_NFKD:
		return normalize_form(s->kind, w, text, out);
	case NORMALIZE_PREPEND:
		return prepend(s->content, text, out);
	case NORMALIZE_REPLACE:
		return replace(s, text, out);
	case NORMALIZE_REPLACE_REGEX:
		return replace_regex(s, w, text, out);
	case NORMALIZE_STRIP:
		return strip(s, text);
	case NORMALIZE_MAP:
		return normalize_map(s->map, text, out);
	case NORMALIZE_SENTENCEPIECE:
		return spm_normalize(s->spm, text, out);
	default:
		return normalize_chars(s->kind, text, out);
	}
}

void normalizer_release(struct normalizer *n)
{
	for (size_t i = 0; i < n->count; i++) {
		regex_free(n->step[i].regex);
		charsmap_free(n->step[i].map);
		spm_normalizer_free(n->step[i].spm);
	}
	*n = (struct normalizer){ 0 };
}

void normalize_work_release(struct normalize_work *w)
{
	for (size_t i = 0; i < 2; i++)
		buf_release(&w->text[i]);
	buf_release(&w->stand_in);
	regex_work_free(w->regex);
	free(w->code);
	free(w->cache);
	w->regex = NULL;
	w->code = NULL;
	w->code_cap = 0;
	w->cache = NULL;
}

size_t normalize_growth(size_t text_bytes)
{
	size_t grown = TOKEN_GROWTH_MAX * text_bytes;

	if (grown > TOKEN_GROWN_BYTES_MAX)
		grown = TOKEN_GROWN_BYTES_MAX > 4 * text_bytes ? TOKEN_GROWN_BYTES_MAX :
			4 * text_bytes;
	return grown + TOKEN_GROWTH_FREE_BYTES;
}

static bool has_regex(const struct normalizer *n)
{
	for (size_t i = 0; i < n->count; i++)
		if (n->step[i].regex)
			return true;
	return false;
}

void normalize_begin(struct normalize_work *w, size_t text_bytes)
{
	w->bytes_max = normalize_growth(text_bytes);
	w->bytes_left = TOKEN_GROWTH_MAX * text_bytes + TOKEN_GROWTH_FREE_BYTES;
	w->text_bytes = text_bytes;
	if (w->regex)
		regex_work_begin(w->regex, text_bytes);
}

/* One step; its text. */
static struct str run_within(const struct normalize_step *s, struct normalize_work *w,
	struct str text, struct buf *out)
{
	size_t limit = w->bytes_max < w->bytes_left ? w->bytes_max : w->bytes_left;

	buf_reset(out);
	out->limit = limit ? limit : 1;
	text = run(s, w, text, out);
	if (out->is_over)
		w->failure = NORMALIZE_GREW;
	else
		w->bytes_left -= out->len;
	return text;
}

struct str normalize(const struct normalizer *n, struct normalize_work *w, struct str text)
{
	bool is_whole = !w->bytes_max;
	size_t next = 0;

	w->failure = NORMALIZE_DONE;
	if (!w->regex && has_regex(n)) {
		w->regex = regex_work_new();
		regex_work_begin(w->regex, w->text_bytes);
	}
	if (is_whole)
		normalize_begin(w, text.n);
	for (size_t i = 0; i < n->count && !w->failure; i++) {
		struct buf *out = &w->text[next];

		text = run_within(n->step + i, w, text, out);
		w->failed_step = i;
		if (text.p == out->data)
			next ^= 1;
	}
	if (is_whole)
		w->bytes_max = 0;
	return w->failure ? (struct str){ "", 0 } : text;
}

int normalize_explain(const struct normalizer *n, const struct normalize_work *w, struct err *e)
{
	static const char *const name[] = {
		[NORMALIZE_NFC] = "NFC", [NORMALIZE_NFD] = "NFD", [NORMALIZE_NFKC] = "NFKC",
		[NORMALIZE_NFKD] = "NFKD", [NORMALIZE_PREPEND] = "Prepend",
		[NORMALIZE_REPLACE] = "Replace", [NORMALIZE_REPLACE_REGEX] = "Replace",
		[NORMALIZE_STRIP] = "Strip", [NORMALIZE_LOWER_ASCII] = "Lowercase",
		[NORMALIZE_LOWER_OTHERS] = "Lowercase", [NORMALIZE_STRIP_MARKS] = "StripAccents",
		[NORMALIZE_STRIP_NONSPACING] = "BertNormalizer",
		[NORMALIZE_CLEAN] = "BertNormalizer", [NORMALIZE_SPACE_HAN] = "BertNormalizer",
		[NORMALIZE_NMT] = "Nmt", [NORMALIZE_SPELL_BYTES] = "ByteLevel",
		[NORMALIZE_MAP] = "Precompiled", [NORMALIZE_SENTENCEPIECE] = "SentencePiece",
	};
	const char *type = name[n->step[w->failed_step].kind];

	if (w->failure == NORMALIZE_GAVE_UP)
		return err_set(e, ERR_LIMIT, "the regular expression of normalizer step %zu (%s) "
			"needs more CPU time or memory than is allowed on a text of %zu bytes",
			w->failed_step + 1, type, w->text_bytes);
	return err_set(e, ERR_LIMIT, "normalizer step %zu (%s) makes more than %zu bytes of a text "
		"of %zu; the limit is %d times the text (TOKEN_GROWTH_MAX)", w->failed_step + 1,
		type, normalize_growth(w->text_bytes), w->text_bytes, TOKEN_GROWTH_MAX);
}
