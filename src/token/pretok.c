/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pretok.c - the stages.
 *
 * A piece is a span of two texts of equal length: the one words are made of, and
 * the one regular expressions look at, where characters newer than the regex
 * library have stand-ins (token/chars.h).
 */
#include "token/pretok.h"

#include <assert.h>

#include "token/chars.h"

struct walk {
	const struct pretok *p;
	struct pretok_work *work;
	void (*take)(void *ctx, const struct str *word, size_t count);
	void *ctx;
	struct str *word; /* PRETOK_BATCH, count of them waiting */
	size_t *count;
};

struct piece {
	struct str text;
	const char *match; /* text.n bytes */
};

/* Spans of one stage waiting to be joined with their neighbours. */
struct cut {
	const struct walk *walk;
	size_t stage;
	struct piece piece;
	size_t start, end; /* the span that is still open */
	bool is_open, was_match;
};

static int run(const struct walk *w, size_t stage, struct piece piece);

static void hand_over(const struct walk *w)
{
	if (*w->count > 0)
		w->take(w->ctx, w->word, *w->count);
	*w->count = 0;
}

void pretok_release(struct pretok *p)
{
	for (size_t i = 0; i < p->count; i++)
		regex_free(p->stage[i].regex);
	*p = (struct pretok){ 0 };
}

static int pass_on(const struct cut *c, size_t start, size_t end)
{
	return run(c->walk, c->stage + 1, (struct piece){
		{ c->piece.text.p + start, end - start }, c->piece.match + start });
}

static int flush(struct cut *c)
{
	bool was_open = c->is_open;

	c->is_open = false;
	return was_open ? pass_on(c, c->start, c->end) : 0;
}

/* One span of the piece, a match of the stage's pattern or the text between two. */
static int add_span(struct cut *c, size_t start, size_t end, bool is_match)
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

/* The next match from *from on: 1, 0 at the end, -1. */
static int find(const struct walk *w, const struct pretok_stage *s, struct str text, size_t from,
	size_t *start, size_t *end)
{
	const char *p;

	if (s->kind == PRETOK_REGEX)
		return regex_find(s->regex, w->work->regex, text, from, start, end);
	p = memmem(text.p + from, text.n - from, s->literal.p, s->literal.n);
	if (!p)
		return 0;
	*start = (size_t)(p - text.p);
	*end = *start + s->literal.n;
	return 1;
}

static size_t char_length(const char *p, size_t n)
{
	size_t i = 1;

	while (i < n && ((uint8_t)p[i] & 0xc0) == 0x80)
		i++;
	return i;
}

/*
 * As the reference walks matches: an empty one counts, unless it touches the end
 * of the match before; then the search goes on one character later.
 */
static int split(const struct walk *w, size_t stage, struct piece piece)
{
	const struct pretok_stage *s = w->p->stage + stage;
	struct cut cut = { .walk = w, .stage = stage, .piece = piece };
	struct str match = { piece.match, piece.text.n };
	struct str text = s->kind == PRETOK_REGEX ? match : piece.text;
	size_t from = 0, done = 0, start, end;
	bool is_first = true;
	int found;

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

static int prefix(const struct walk *w, size_t stage, struct piece piece)
{
	struct buf *text = &w->work->prefixed[stage], *match = &w->work->prefixed_match[stage];

	if (piece.text.p[0] == ' ')
		return run(w, stage + 1, piece);
	hand_over(w); /* words may still stand in the buffer */
	buf_reset(text);
	buf_add_char(text, ' ');
	buf_add_str(text, piece.text);
	buf_reset(match);
	buf_add_char(match, ' ');
	buf_add(match, piece.match, piece.text.n);
	return run(w, stage + 1, (struct piece){ buf_str(text), match->data });
}

static int run(const struct walk *w, size_t stage, struct piece piece)
{
	if (piece.text.n == 0)
		return 0;
	if (stage == w->p->count) {
		w->word[(*w->count)++] = piece.text;
		if (*w->count == PRETOK_BATCH)
			hand_over(w);
		return 0;
	}
	if (w->p->stage[stage].kind == PRETOK_PREFIX)
		return prefix(w, stage, piece);
	return split(w, stage, piece);
}

int pretok_run(const struct pretok *p, struct pretok_work *work, struct str text,
	void (*take)(void *ctx, const struct str *word, size_t count), void *ctx)
{
	struct str word[PRETOK_BATCH];
	size_t count = 0;
	struct walk w = { p, work, take, ctx, word, &count };
	struct piece piece = { text, text.p };
	bool has_regex = false;

	for (size_t i = 0; i < p->count; i++)
		has_regex |= p->stage[i].kind == PRETOK_REGEX;
	if (has_regex)
		piece.match = chars_stand_in(text, &work->stand_in).p;
	if (run(&w, 0, piece))
		return -1;
	hand_over(&w);
	return 0;
}
