/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pretok.c - the stages.
 *
 * A stage is a way to find the next match, while the handling of matches and of the text between
 * them is the same for all; or it writes a text of its own; or it is a scanner.
 */
#include "input/encode/pretok.h"

#include <assert.h>

#include "core/base/str.h"
#include "input/encode/chars.h"

#define BUFFER_BYTES_MIN (64u << 10) /* so that short pieces share a batch */

/*
 * The text with bytes spelled as characters, which later stages cut, up to the last word found, and
 * its bytes.
 */
struct spelled {
	const char *at, *byte;
};

struct pretok_walk {
	const struct pretok *p;
	struct pretok_work *work;
	void (*take)(void *ctx, const struct str *word, size_t count);
	void *ctx;
	struct str word[PRETOK_BATCH]; /* count of them waiting */
	size_t count;
	bool is_spelled;
	struct spelled spelled;
};

struct pretok_piece {
	struct str text;
	bool is_start; /* of the whole input */
};

/* Spans of one stage waiting to be joined with their neighbours. */
struct pretok_cut {
	struct pretok_walk *walk;
	size_t stage;
	struct pretok_piece piece;
	size_t start, end; /* the span that is still open */
	bool is_open, was_match;
};

static int run(struct pretok_walk *w, size_t stage, struct pretok_piece piece);

void pretok_release(struct pretok *p)
{
	for (size_t i = 0; i < p->count; i++)
		regex_free(p->stage[i].regex);
	*p = (struct pretok){ 0 };
}

void pretok_work_init(struct pretok_work *w, size_t bytes_max)
{
	*w = (struct pretok_work){ 0 };
	for (size_t i = 0; i < TOKEN_STAGES_MAX; i++)
		w->text[i].limit = bytes_max;
}

void pretok_work_release(struct pretok_work *w)
{
	regex_work_free(w->regex);
	for (size_t i = 0; i < TOKEN_STAGES_MAX; i++)
		buf_release(w->text + i);
	*w = (struct pretok_work){ 0 };
}

/* ---- handing words over ---- */

static void hand_over(struct pretok_walk *w)
{
	if (w->count > 0)
		w->take(w->ctx, w->word, w->count);
	w->count = 0;
}

/* The bytes of a spelled word; words come in order. */
static struct str unspell(struct spelled *s, struct str word)
{
	struct str bytes = { NULL, 0 };

	for (; s->at < word.p; s->at++)
		s->byte += ((uint8_t)*s->at & 0xc0) != 0x80;
	bytes.p = s->byte;
	for (; s->at < word.p + word.n; s->at++)
		s->byte += ((uint8_t)*s->at & 0xc0) != 0x80;
	bytes.n = (size_t)(s->byte - bytes.p);
	return bytes;
}

static void add_word(struct pretok_walk *w, struct str word)
{
	w->word[w->count++] = w->is_spelled ? unspell(&w->spelled, word) : word;
	if (w->count == PRETOK_BATCH)
		hand_over(w);
}

/* ---- handling spans ---- */

static int pass_on(const struct pretok_cut *c, size_t start, size_t end)
{
	return run(c->walk, c->stage + 1, (struct pretok_piece){
		{ c->piece.text.p + start, end - start }, c->piece.is_start && start == 0 });
}

static int flush(struct pretok_cut *c)
{
	bool was_open = c->is_open;

	c->is_open = false;
	return was_open ? pass_on(c, c->start, c->end) : 0;
}

/* Handles one span of the piece: a match of the stage's pattern or the text between two. */
static int add_span(struct pretok_cut *c, size_t start, size_t end, bool is_match)
{
	const struct pretok_stage *s = c->walk->p->stage + c->stage;
	bool joins = false;

	is_match ^= s->is_inverted;
	switch (s->behavior) {
	case PRETOK_ISOLATED:
		return pass_on(c, start, end);
	case PRETOK_REMOVED:
		return is_match ? 0 : pass_on(c, start, end);
	case PRETOK_CONTIGUOUS:
		joins = is_match == c->was_match;
		break;
	case PRETOK_MERGED_WITH_PREVIOUS:
		joins = is_match && !c->was_match;
		break;
	case PRETOK_MERGED_WITH_NEXT:
		joins = !is_match && c->was_match;
		break;
	}
	joins = joins && c->is_open;
	if (!joins && flush(c))
		return -1;
	if (!joins)
		c->start = start;
	c->end = end;
	c->is_open = true;
	c->was_match = is_match;
	return 0;
}

/* ---- finding matches ---- */

static size_t char_length(const char *p, size_t n)
{
	size_t i = 1;

	while (i < n && ((uint8_t)p[i] & 0xc0) == 0x80)
		i++;
	return i;
}

static uint32_t char_at(struct str text, size_t at, size_t *n)
{
	return utf8_decode((struct str){ text.p + at, text.n - at }, n);
}

static int find_literal(const struct pretok_stage *s, struct str text, size_t from, size_t *start,
	size_t *end)
{
	const char *p = memmem(text.p + from, text.n - from, s->text.p, s->text.n);

	if (!p)
		return 0;
	*start = (size_t)(p - text.p);
	*end = *start + s->text.n;
	return 1;
}

static int find_chars(const struct pretok_stage *s, struct str text, size_t from, size_t *start,
	size_t *end)
{
	size_t n;

	for (size_t at = from; at < text.n; at += n) {
		uint8_t byte = (uint8_t)text.p[at];

		n = 1;
		if (byte < 128 ? !(s->ascii[byte / 64] >> byte % 64 & 1) :
			!s->chars(char_at(text, at, &n)))
			continue;
		*start = at;
		*end = at + n;
		return 1;
	}
	return 0;
}

/* 0 for white space, 1 for a word character, 2 for any other. */
static int word_kind(struct str text, size_t at, size_t *n)
{
	uint32_t cp = char_at(text, at, n);

	return chars_is_word(cp) ? 1 : chars_is_space(cp) ? 0 : 2;
}

static int find_words(struct str text, size_t from, size_t *start, size_t *end)
{
	size_t at = from, n;
	int kind = 0;

	while (at < text.n && (kind = word_kind(text, at, &n)) == 0)
		at += n;
	*start = at;
	while (at < text.n && word_kind(text, at, &n) == kind)
		at += n;
	*end = at;
	return *start < text.n;
}

static int find_length(const struct pretok_stage *s, struct str text, size_t from, size_t *start,
	size_t *end)
{
	size_t at = from;

	for (size_t i = 0; i < s->length && at < text.n; i++)
		at += char_length(text.p + at, text.n - at);
	*start = from;
	*end = at;
	return from < text.n;
}

/* The next match from *from on: 1, 0 at the end, -1. */
static int find(const struct pretok_walk *w, const struct pretok_stage *s, struct str text,
		size_t from, size_t *start, size_t *end)
{
	switch (s->kind) {
	case PRETOK_REGEX:
		return regex_find(s->regex, w->work->regex, text, from, start, end);
	case PRETOK_LITERAL:
		return find_literal(s, text, from, start, end);
	case PRETOK_CHARS:
		return find_chars(s, text, from, start, end);
	case PRETOK_WORDS:
		return find_words(text, from, start, end);
	default:
		return find_length(s, text, from, start, end);
	}
}

/*
 * Goes through matches like the reference: an empty one counts, unless it touches the end of the
 * match before; then the search continues one character later.
 */
static int split(struct pretok_walk *w, size_t stage, struct pretok_piece piece)
{
	const struct pretok_stage *s = w->p->stage + stage;
	struct pretok_cut cut = { .walk = w, .stage = stage, .piece = piece };
	struct str text = piece.text;
	size_t from = 0, done = 0, start, end;
	bool is_first = true;
	int found;

	if (s->kind == PRETOK_REGEX) {
		text = chars_stand_in(text, w->work->text + stage);
		if (!w->work->regex) {
			w->work->regex = regex_work_new();
			regex_work_begin(w->work->regex, w->work->text_bytes);
		}
	}
	while (from <= text.n && (found = find(w, s, text, from, &start, &end)) != 0) {
		if (found < 0)
			return -1;
		if (start == end && !is_first && end == done) {
			from += from < text.n ? char_length(text.p + from, text.n - from) : 1;
			continue;
		}
		if (start > done && add_span(&cut, done, start, false))
			return -1;
		if (add_span(&cut, start, end, true))
			return -1;
		from = done = end;
		is_first = false;
	}
	if (done < text.n && add_span(&cut, done, text.n, false))
		return -1;
	return flush(&cut);
}

static int scan(struct pretok_walk *w, size_t stage, struct pretok_piece piece)
{
	struct scan scan = scan_begin(w->p->stage[stage].scanner, piece.text);
	struct str word[PRETOK_BATCH / 4];
	size_t n;

	if (stage + 1 == w->p->count && !w->is_spelled) {
		while ((n = scan_next(&scan, w->word + w->count, PRETOK_BATCH - w->count)) > 0) {
			w->count += n;
			if (w->count == PRETOK_BATCH)
				hand_over(w);
		}
		return 0;
	}
	while ((n = scan_next(&scan, word, PRETOK_BATCH / 4)) > 0) {
		for (size_t i = 0; i < n; i++) {
			bool is_start = piece.is_start && word[i].p == piece.text.p;

			if (run(w, stage + 1, (struct pretok_piece){ word[i], is_start }))
				return -1;
		}
	}
	return 0;
}

/* ---- stages that write ---- */

/*
 * The stage's buffer with room for n bytes. Words handed out may be in it, so it is emptied only
 * after those are taken.
 */
static struct buf *room(struct pretok_walk *w, size_t stage, size_t n)
{
	struct buf *b = w->work->text + stage;

	w->work->has_grown = n > w->work->bytes_left;
	if (w->work->has_grown)
		return NULL;
	w->work->bytes_left -= n;
	if (b->cap > n && b->len < b->cap - n)
		return b;
	hand_over(w);
	buf_reset(b);
	w->work->has_grown = buf_reserve(b, n < BUFFER_BYTES_MIN ? BUFFER_BYTES_MIN : n + 1) < 0;
	return w->work->has_grown ? NULL : b;
}

static int prefix(struct pretok_walk *w, size_t stage, struct pretok_piece piece)
{
	struct buf *b;
	size_t before;

	if (piece.text.p[0] == ' ')
		return run(w, stage + 1, piece);
	b = room(w, stage, piece.text.n + 1);
	if (!b)
		return -1;
	before = b->len;
	buf_add_char(b, ' ');
	buf_add_str(b, piece.text);
	piece.text = (struct str){ b->data + before, b->len - before };
	return run(w, stage + 1, piece);
}

static int metaspace(struct pretok_walk *w, size_t stage, struct pretok_piece piece)
{
	const struct pretok_stage *s = w->p->stage + stage;
	struct str text = piece.text;
	size_t spaces = 1, before, n;
	struct buf *b;

	for (size_t i = 0; i < text.n; i++)
		spaces += text.p[i] == ' ';
	b = room(w, stage, text.n + spaces * s->text.n);
	if (!b)
		return -1;
	before = b->len;
	if ((s->prepend == PRETOK_ALWAYS || (s->prepend == PRETOK_FIRST && piece.is_start)) &&
		text.p[0] != ' ' && !str_starts(text, s->text))
		buf_add_str(b, s->text);
	for (const char *end = text.p + text.n; text.p < end; text.p += n) {
		const char *space = memchr(text.p, ' ', (size_t)(end - text.p));

		n = (size_t)((space ? space : end) - text.p);
		buf_add(b, text.p, n);
		if (space)
			buf_add_str(b, s->text), n++;
	}
	piece.text = (struct str){ b->data + before, b->len - before };
	return run(w, stage + 1, piece);
}

static int spell(struct pretok_walk *w, size_t stage, struct pretok_piece piece)
{
	struct buf *b = room(w, stage, 2 * piece.text.n);
	struct str text;

	if (!b)
		return -1;
	text.p = b->data + b->len;
	chars_spell(piece.text, b);
	text.n = (size_t)(b->data + b->len - text.p);
	w->spelled = (struct spelled){ text.p, piece.text.p };
	w->is_spelled = true;
	piece.text = text;
	return run(w, stage + 1, piece);
}

/* ---- all of them ---- */

static int run(struct pretok_walk *w, size_t stage, struct pretok_piece piece)
{
	if (piece.text.n == 0)
		return 0;
	if (stage == w->p->count) {
		add_word(w, piece.text);
		return 0;
	}
	switch (w->p->stage[stage].kind) {
	case PRETOK_SCAN:
		return scan(w, stage, piece);
	case PRETOK_PREFIX:
		return prefix(w, stage, piece);
	case PRETOK_METASPACE:
		return metaspace(w, stage, piece);
	case PRETOK_SPELL:
		return spell(w, stage, piece);
	default:
		return split(w, stage, piece);
	}
}

void pretok_begin(struct pretok_work *w, size_t text_bytes)
{
	w->bytes_left = TOKEN_GROWTH_MAX * text_bytes + TOKEN_GROWTH_FREE_BYTES;
	w->text_bytes = text_bytes;
	w->has_begun = true;
	if (w->regex)
		regex_work_begin(w->regex, text_bytes);
}

int pretok_explain(const struct pretok_work *w, struct err *e)
{
	if (w->has_grown)
		return err_set(e, ERR_LIMIT, "the pre_tokenizer's stages make more than %zu bytes "
			"of a text of %zu; the limit is %d times the text (TOKEN_GROWTH_MAX)",
			TOKEN_GROWTH_MAX * w->text_bytes + TOKEN_GROWTH_FREE_BYTES, w->text_bytes,
			TOKEN_GROWTH_MAX);
	return err_set(e, ERR_LIMIT, "a regular expression of the pre_tokenizer needs more CPU "
		"time or memory than is allowed on a text of %zu bytes", w->text_bytes);
}

int pretok_run(const struct pretok *p, struct pretok_work *work, struct str text, bool is_start,
	void (*take)(void *ctx, const struct str *word, size_t count), void *ctx)
{
	bool is_whole = !work->has_begun;
	struct pretok_walk w;

	if (is_whole)
		pretok_begin(work, text.n);
	work->has_begun = !is_whole;
	work->has_grown = false;
	w.p = p;
	w.work = work;
	w.take = take;
	w.ctx = ctx;
	w.count = 0;
	w.is_spelled = false;
	if (run(&w, 0, (struct pretok_piece){ text, is_start }))
		return -1;
	hand_over(&w);
	return 0;
}
