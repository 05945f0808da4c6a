/* SPDX-License-Identifier: Apache-2.0 */
/*
 * normalize_map.c - a character map over grapheme clusters.
 *
 * As the reference has it: a cluster of less than six bytes that begins with any
 * key becomes, as a whole, what the shortest such key stands for. Otherwise each
 * of its characters is looked up alone. Clusters are those of UAX #29.
 */
#include "token/normalize_step.h"

#include "token/unicode_norm.h"

#define CLUSTER_BYTES_MAX 5 /* of a cluster that is looked up as a whole */
#define HANGUL_FIRST 0xac00u
#define HANGUL_LAST 0xd7a3u
#define HANGUL_TRAILS 28u

static enum unicode_break break_class(uint32_t cp)
{
	size_t low = 0, high = unicode_break_count;

	if (cp - 0x20 < 0x5f || (cp >= 0x3400 && cp <= 0x9fff))
		return BREAK_OTHER;
	if (cp >= HANGUL_FIRST && cp <= HANGUL_LAST)
		return (cp - HANGUL_FIRST) % HANGUL_TRAILS ? BREAK_LVT : BREAK_LV;
	while (high - low > 1) {
		size_t mid = (low + high) / 2;

		if (unicode_break[mid] / 32 <= cp)
			low = mid;
		else
			high = mid;
	}
	return unicode_break[low] % 32;
}

/* What the characters of a cluster so far say about the next. */
struct cluster {
	enum unicode_break last;
	bool is_after_pictograph; /* which only extenders follow, of them one joiner at last */
	bool is_after_consonant;  /* which only extenders and linkers follow */
	bool is_linked;           /* with a linker among them */
	bool is_half_flag;        /* an odd number of regional indicators */
};

static bool is_extender(enum unicode_break class)
{
	return class == BREAK_EXTEND || class == BREAK_LINKER || class == BREAK_JOINER ||
		class == BREAK_NON_JOINER;
}

static bool is_control(enum unicode_break class)
{
	return class == BREAK_CONTROL || class == BREAK_CR || class == BREAK_LF;
}

static bool joins(const struct cluster *c, enum unicode_break next)
{
	enum unicode_break last = c->last;

	if (is_control(last) || is_control(next))
		return last == BREAK_CR && next == BREAK_LF;
	if (is_extender(next) || next == BREAK_SPACING || last == BREAK_PREPEND)
		return true;
	switch (next) {
	case BREAK_L:
	case BREAK_LV:
	case BREAK_LVT:
		return last == BREAK_L;
	case BREAK_V:
		return last == BREAK_L || last == BREAK_V || last == BREAK_LV;
	case BREAK_T:
		return last == BREAK_V || last == BREAK_LV || last == BREAK_T || last == BREAK_LVT;
	case BREAK_PICTOGRAPH:
		return last == BREAK_JOINER && c->is_after_pictograph;
	case BREAK_CONSONANT:
		return c->is_linked;
	case BREAK_REGIONAL:
		return last == BREAK_REGIONAL && c->is_half_flag;
	default:
		return false;
	}
}

static void extend(struct cluster *c, enum unicode_break next)
{
	bool is_extended = is_extender(next);
	bool is_conjunct = is_extended && next != BREAK_NON_JOINER && c->is_after_consonant;

	c->is_after_pictograph = next == BREAK_PICTOGRAPH ||
		(is_extended && c->is_after_pictograph && c->last != BREAK_JOINER);
	c->is_linked = is_conjunct && (c->is_linked || next == BREAK_LINKER);
	c->is_after_consonant = next == BREAK_CONSONANT || is_conjunct;
	c->is_half_flag = next == BREAK_REGIONAL && !c->is_half_flag;
	c->last = next;
}

static enum unicode_break class_at(struct str text, size_t at, size_t *n)
{
	return break_class(normalize_char(text.p + at, n));
}

/* The end of the cluster at at; *class is of its first character, then of the next cluster's. */
static size_t cluster_end(struct str text, size_t at, enum unicode_break *class)
{
	struct cluster c = { 0 };
	size_t n;

	normalize_char(text.p + at, &n);
	extend(&c, *class);
	for (at += n; at < text.n; at += n) {
		*class = class_at(text, at, &n);
		if (!joins(&c, *class))
			break;
		extend(&c, *class);
	}
	return at;
}

struct output {
	struct str text;
	struct buf *out;
	size_t done; /* what of text is settled */
};

/* False when the map has nothing for these bytes; they are not settled then. */
static bool replace(struct output *o, const struct charsmap *map, size_t at, size_t n)
{
	struct str to;

	if (!charsmap_shortest(map, (struct str){ o->text.p + at, n }, &to))
		return false;
	if (o->done == 0)
		buf_reset(o->out);
	buf_add(o->out, o->text.p + o->done, at - o->done);
	buf_add_str(o->out, to);
	o->done = at + n;
	return true;
}

struct str normalize_map(const struct charsmap *map, struct str text, struct buf *out)
{
	struct output o = { .text = text, .out = out };
	enum unicode_break class = BREAK_OTHER; /* of the character at at */
	size_t at = 0, n;

	for (;;) {
		size_t skipped = charsmap_skip(map, text, at), end;

		if (skipped >= text.n)
			break;
		if (at == 0 || skipped > at)
			class = class_at(text, skipped, &n);
		at = skipped;
		end = cluster_end(text, at, &class);
		if (end - at <= CLUSTER_BYTES_MAX && replace(&o, map, at, end - at))
			at = end;
		for (; at < end; at += n) {
			normalize_char(text.p + at, &n);
			replace(&o, map, at, n);
		}
	}
	if (o.done == 0)
		return text;
	buf_add(out, text.p + o.done, text.n - o.done);
	return buf_str(out);
}
