/* SPDX-License-Identifier: Apache-2.0 */
/*
 * normalize.c - the steps of a normalizer; the one file that calls utf8proc.
 *
 * Nearly all text is in its normal form already. A stretch that is not begins with the last starter
 * before it and ends before a starter that the form never changes; only stretches go through the
 * library, without characters that are newer than the reference's tables (encode/chars.h).
 */
#include "input/encode/normalize.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/types.h>

#include "core/base/library.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "input/encode/chars.h"

/*
 * Each step returns its text, or a part of it, when it has nothing else to change; else it resets
 * out, writes there and returns that. Past out's limit, out->is_over is set and the result is
 * worthless.
 */

/*
 * The functions in use of utf8proc (version 2), which is loaded with the first text that needs it.
 */
enum { STABLE = 1 << 1, COMPAT = 1 << 2, COMPOSE = 1 << 3, DECOMPOSE = 1 << 4 };
ssize_t utf8proc_decompose_char(int32_t cp, int32_t *to, ssize_t n, int options, int *boundary);
ssize_t utf8proc_normalize_utf32(int32_t *code, ssize_t n, int options);
#define UTF8PROC_CALLS(X) X(utf8proc_decompose_char) X(utf8proc_normalize_utf32)
LIBRARY(lib, UTF8PROC_CALLS, "libutf8proc.so.2", "libutf8proc2");

#define HIGH_BITS 0x8080808080808080u

/* The offset of the next non-ASCII byte. */
static inline size_t skip_ascii(struct str text, size_t at)
{
	uint64_t word;

	for (; text.n - at >= 8; at += 8) {
		memcpy(&word, text.p + at, 8);
		if (word & HIGH_BITS)
			break;
	}
	while (at < text.n && (uint8_t)text.p[at] < 0x80)
		at++;
	return at;
}

/* ---- Normal forms ---- */

/* Both are bits of unicode_norm(). */
struct normal_form {
	unsigned changes;
	unsigned decomposes;
	int options;
};

static const struct normal_form forms[] = {
	[NORMALIZE_NFC] = { UNICODE_NFC, UNICODE_NFD, STABLE | COMPOSE },
	[NORMALIZE_NFD] = { UNICODE_NFD, UNICODE_NFD, STABLE | DECOMPOSE },
	[NORMALIZE_NFKC] = { UNICODE_NFKC, UNICODE_NFKD, STABLE | COMPOSE | COMPAT },
	[NORMALIZE_NFKD] = { UNICODE_NFKD, UNICODE_NFKD, STABLE | DECOMPOSE | COMPAT },
};

/* A code point with the rank of its class above it. */
#define RANK_SHIFT 21
#define CODE_MASK ((1 << RANK_SHIFT) - 1)
#define RANKS 64

/* Longer than any decomposition: the longest has 18 code points. */
#define DECOMPOSED_MAX 32

/* Decompositions seen before: of up to three code points, the rest 0. */
#define CACHE_SLOTS 512
struct form_cache {
	struct slot {
		uint32_t key; /* the code point and the form's options; 0: free */
		int32_t code[3];
	} slot[CACHE_SLOTS];
};

/* Where the next stretch begins and ends; false when there is none. */
static bool next_stretch(unsigned changes, struct str text, size_t from, size_t *start, size_t *end)
{
	size_t at = from, last = from, n;
	unsigned norm, rank = 0;

	for (;; at += n) {
		size_t skipped = skip_ascii(text, at);

		if (skipped > at) {
			last = skipped - 1;
			rank = 0;
		}
		at = skipped;
		if (at >= text.n)
			return false;
		norm = unicode_norm(utf8_next(text.p + at, &n));
		if ((norm & changes) || (norm & UNICODE_RANK && (norm & UNICODE_RANK) < rank))
			break;
		rank = norm & UNICODE_RANK;
		if (norm & UNICODE_ALIEN)
			last = at + n; /* nothing after it affects it */
		else if (rank == 0)
			last = at;
	}
	*start = last;
	for (at += n; at < text.n; at += n) {
		norm = unicode_norm(utf8_next(text.p + at, &n));
		if (!(norm & (changes | UNICODE_RANK)))
			break;
	}
	*end = at;
	return true;
}

static int32_t with_rank(uint32_t cp, unsigned norm)
{
	return (int32_t)(cp | (norm & UNICODE_RANK) >> 8 << RANK_SHIFT);
}

/* Writes at most DECOMPOSED_MAX codes; returns how many. */
static size_t decompose(const struct normal_form *f, struct form_cache *cache, uint32_t cp,
			int32_t *to)
{
	uint32_t key = cp | (uint32_t)f->options << RANK_SHIFT;
	struct slot *slot = cache->slot + (cp ^ cp >> 9) % CACHE_SLOTS;
	int boundary = 0;
	size_t n = 0;

	if (slot->key == key) {
		do
			to[n] = slot->code[n];
		while (++n < 3 && slot->code[n]);
		return n;
	}
	n = (size_t)lib.utf8proc_decompose_char((int32_t)cp, to, DECOMPOSED_MAX, f->options,
						&boundary);
	assert(n > 0 && n <= DECOMPOSED_MAX);
	for (size_t i = 0; i < n; i++)
		to[i] = with_rank((uint32_t)to[i], unicode_norm((uint32_t)to[i]));
	if (n <= 3) {
		*slot = (struct slot){ .key = key };
		memcpy(slot->code, to, n * sizeof *to);
	}
	return n;
}

/* Sorts marks by rank; those of one rank stay in order. scratch has room for n. */
static void sort_marks(int32_t *code, size_t n, int32_t *scratch)
{
	size_t filled = 0;

	if (n <= 32) {
		for (size_t i = 1; i < n; i++) {
			int32_t one = code[i];
			size_t at = i;

			for (; at > 0 && code[at - 1] >> RANK_SHIFT > one >> RANK_SHIFT; at--)
				code[at] = code[at - 1];
			code[at] = one;
		}
		return;
	}
	for (int rank = 1; rank < RANKS; rank++)
		for (size_t i = 0; i < n; i++)
			if (code[i] >> RANK_SHIFT == rank)
				scratch[filled++] = code[i];
	assert(filled == n);
	memcpy(code, scratch, n * sizeof *code);
}

/* The stretch as decomposed code points in canonical order in w->code; their number. */
static size_t decompose_stretch(const struct normal_form *f, struct normalize_work *w, struct str s)
{
	size_t n = 0, marks = 0, length;

	if (!w->cache)
		w->cache = mem_alloc(sizeof *w->cache);
	for (size_t at = 0; at < s.n; at += length) {
		uint32_t cp = utf8_next(s.p + at, &length);
		unsigned norm = unicode_norm(cp);

		if (w->code_cap < 2 * n + DECOMPOSED_MAX) {
			w->code_cap = 4 * n + 2 * DECOMPOSED_MAX;
			w->code = mem_grow(w->code, w->code_cap, sizeof *w->code);
		}
		if (norm & f->decomposes)
			n += decompose(f, w->cache, cp, w->code + n);
		else
			w->code[n++] = with_rank(cp, norm);
	}
	for (size_t i = 0; i <= n; i++) {
		if (i < n && w->code[i] >> RANK_SHIFT) {
			marks++;
			continue;
		}
		if (marks > 1)
			sort_marks(w->code + i - marks, marks, w->code + n);
		marks = 0;
	}
	for (size_t i = 0; i < n; i++)
		w->code[i] &= CODE_MASK;
	return n;
}

/* Appends the normal form of one stretch. */
static void add_form(const struct normal_form *f, struct normalize_work *w, struct str s,
		     struct buf *out)
{
	size_t n = decompose_stretch(f, w, s);
	char *to;

	if (f->options & COMPOSE)
		n = (size_t)lib.utf8proc_normalize_utf32(w->code, (ssize_t)n, f->options);
	if (buf_reserve(out, 4 * n))
		return;
	to = out->data + out->len;
	for (size_t i = 0; i < n; i++)
		to += utf8_encode((uint32_t)w->code[i], to);
	*to = 0;
	out->len = (size_t)(to - out->data);
}

static struct str normalize_form(enum normalize_kind form, struct normalize_work *w,
	struct str text, struct buf *out)
{
	const struct normal_form *f = forms + form;
	size_t done = 0, start, end;
	struct err none = { 0 };

	if (!next_stretch(f->changes, text, 0, &start, &end))
		return text;
	buf_reset(out);
	if (library_open(&lib_library, &none) < 0) {
		w->failure = NORMALIZE_NO_LIBRARY;
		return text;
	}
	do {
		buf_add(out, text.p + done, start - done);
		add_form(f, w, (struct str){ text.p + start, end - start }, out);
		done = end;
	} while (next_stretch(f->changes, text, done, &start, &end));
	buf_add(out, text.p + done, text.n - done);
	return buf_str(out);
}

/* ---- One character at a time ---- */

/*
 * Characters that stay as they are are copied in spans; ASCII is passed over
 * eight bytes at a time.
 */

#define ONES 0x0101010101010101u

/* The longest text that one character becomes: an ideograph between two spaces. */
#define CHANGED_MAX 6

static bool is_hidden(uint32_t cp)
{
	if (cp >= 0x2070 && cp < 0xe000)
		return false; /* most of Asia */
	return bsearch(&cp, unicode_hidden, unicode_hidden_count, sizeof *unicode_hidden,
		unicode_by_range) != NULL;
}

static bool is_han(uint32_t cp)
{
	return (cp >= 0x4e00 && cp <= 0x9fff) || (cp >= 0x3400 && cp <= 0x4dbf) ||
		(cp >= 0xf900 && cp <= 0xfaff) || (cp >= 0x20000 && cp <= 0x2a6df) ||
		(cp >= 0x2a700 && cp <= 0x2b81f) || (cp >= 0x2b920 && cp <= 0x2ceaf) ||
		(cp >= 0x2f800 && cp <= 0x2fa1f);
}

/* The lower case of one code point (not U+0130), which may be cp itself. */
static uint32_t lower(uint32_t cp)
{
	const struct unicode_lower *run;

	if ((cp >= 0x560 && cp < 0x10a0) || (cp >= 0x2d00 && cp < 0xa640) || cp >= 0x1e922)
		return cp;
	run = bsearch(&cp, unicode_lower, unicode_lower_count, sizeof *run, unicode_by_range);
	if (!run || (cp - run->first) % run->step)
		return cp;
	return (uint32_t)((int32_t)cp + run->distance);
}

/* What is dropped and what is a space for sentencepiece's "nmt" rules. */
static bool is_nmt_dropped(uint32_t cp)
{
	return (cp >= 0x01 && cp <= 0x08) || cp == 0x0b || (cp >= 0x0e && cp <= 0x1f) ||
		cp == 0x7f || cp == 0x8f || cp == 0x9f;
}

static bool is_nmt_space(uint32_t cp)
{
	return cp == 0x09 || cp == 0x0a || cp == 0x0c || cp == 0x0d || cp == 0x1680 ||
		(cp >= 0x200b && cp <= 0x200f) || cp == 0x2028 || cp == 0x2029 || cp == 0x2581 ||
		cp == 0xfeff || cp == 0xfffd;
}

/* Whether a step changes a character; if so, the *n bytes it becomes. */
static inline bool change(enum normalize_kind kind, uint32_t cp, char to[CHANGED_MAX], size_t *n)
{
	bool is_dropped = false, is_space = false;
	uint32_t small;

	*n = 0;
	switch (kind) {
	case NORMALIZE_LOWER_OTHERS:
		if (cp == 0x130) {
			*n = 3;
			memcpy(to, "i\xcc\x87", *n);
			return true;
		}
		small = lower(cp);
		if (small != cp)
			*n = utf8_encode(small, to);
		return small != cp;
	case NORMALIZE_SPACE_HAN:
		if (!is_han(cp))
			return false;
		to[0] = ' ';
		*n = 1 + utf8_encode(cp, to + 1);
		to[(*n)++] = ' ';
		return true;
	case NORMALIZE_STRIP_MARKS:
		return unicode_norm(cp) & UNICODE_MARK;
	case NORMALIZE_STRIP_NONSPACING:
		return unicode_norm(cp) & UNICODE_NONSPACING;
	case NORMALIZE_CLEAN:
		is_dropped = is_hidden(cp);
		is_space = chars_is_space(cp) && cp != ' ';
		break;
	case NORMALIZE_NMT:
		is_dropped = is_nmt_dropped(cp);
		is_space = is_nmt_space(cp);
		break;
	default:
		assert(!"a step of single characters");
	}
	if (is_space && !is_dropped)
		to[(*n)++] = ' ';
	return is_dropped || is_space;
}

/* Skips ASCII without control characters. */
static size_t skip_printed(struct str text, size_t at)
{
	uint64_t word;

	for (; text.n - at >= 8; at += 8) {
		memcpy(&word, text.p + at, 8);
		/* A byte is high, below 0x20 or, with one added, high. */
		if ((word | (word - 0x20 * ONES) | (word + ONES)) & HIGH_BITS)
			break;
	}
	while (at < text.n && (uint8_t)text.p[at] >= 0x20 && (uint8_t)text.p[at] < 0x7f)
		at++;
	return at;
}

static inline struct str each_char(enum normalize_kind kind, struct str text, struct buf *out)
{
	bool has_controls = kind == NORMALIZE_CLEAN || kind == NORMALIZE_NMT;
	size_t done = 0, at = 0, n, changed;
	char *end = NULL, to[CHANGED_MAX];

	for (;; at += n) {
		at = has_controls ? skip_printed(text, at) : skip_ascii(text, at);
		if (at >= text.n)
			break;
		if (!change(kind, utf8_next(text.p + at, &n), to, &changed))
			continue;
		if (!end) {
			buf_reset(out);
			if (buf_reserve(out, text.n * 2)) /* none becomes more than twice as long */
				return text;
			end = out->data;
		}
		memcpy(end, text.p + done, at - done);
		end += at - done;
		memcpy(end, to, changed);
		end += changed;
		done = at + n;
	}
	if (!end)
		return text;
	memcpy(end, text.p + done, text.n - done);
	end += text.n - done;
	*end = 0;
	out->len = (size_t)(end - out->data);
	return buf_str(out);
}

/* The bits 0x20 of the bytes that are A to Z. */
static uint64_t upper_bits(uint64_t word)
{
	uint64_t seven = word & ~HIGH_BITS;
	uint64_t from_a = seven + (0x80 - 'A') * ONES, after_z = seven + (0x7f - 'Z') * ONES;

	return (~word & HIGH_BITS & (from_a ^ after_z)) >> 2;
}

static struct str lower_ascii(struct str text, struct buf *out)
{
	uint64_t word;
	char *to;

	buf_reset(out);
	if (buf_reserve(out, text.n + 8))
		return text;
	to = out->data;
	for (size_t at = 0; at < text.n; at += 8) {
		size_t n = text.n - at < 8 ? text.n - at : 8;

		word = 0;
		memcpy(&word, text.p + at, n);
		word |= upper_bits(word);
		memcpy(to + at, &word, 8);
	}
	to[text.n] = 0;
	out->len = text.n;
	return buf_str(out);
}

static struct str spell_bytes(struct str text, struct buf *out)
{
	buf_reset(out);
	chars_spell(text, out);
	return buf_str(out);
}

static struct str normalize_chars(enum normalize_kind kind, struct str text, struct buf *out)
{
	switch (kind) {
	case NORMALIZE_LOWER_ASCII:
		return lower_ascii(text, out);
	case NORMALIZE_SPELL_BYTES:
		return spell_bytes(text, out);
	case NORMALIZE_LOWER_OTHERS:
		return each_char(NORMALIZE_LOWER_OTHERS, text, out);
	case NORMALIZE_STRIP_MARKS:
		return each_char(NORMALIZE_STRIP_MARKS, text, out);
	case NORMALIZE_STRIP_NONSPACING:
		return each_char(NORMALIZE_STRIP_NONSPACING, text, out);
	case NORMALIZE_SPACE_HAN:
		return each_char(NORMALIZE_SPACE_HAN, text, out);
	default:
		return each_char(kind, text, out);
	}
}

/* ---- A character map over grapheme clusters ---- */

/*
 * Like the reference: a cluster of less than six bytes that begins with any key is replaced as a
 * whole by the shortest such key's replacement. Otherwise each of its characters is looked up
 * alone. Clusters are those of UAX #29.
 */

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
	return break_class(utf8_next(text.p + at, n));
}

/* The end of the cluster at at; *class is of its first character, then of the next cluster's. */
static size_t cluster_end(struct str text, size_t at, enum unicode_break *class)
{
	struct cluster c = { 0 };
	size_t n;

	utf8_next(text.p + at, &n);
	extend(&c, *class);
	for (at += n; at < text.n; at += n) {
		*class = class_at(text, at, &n);
		if (!joins(&c, *class))
			break;
		extend(&c, *class);
	}
	return at;
}

struct normal_output {
	struct str text;
	struct buf *out;
	size_t done; /* what of text is settled */
};

/* False when the map has no entry for these bytes, which are then still to be handled. */
static bool replace_cluster(struct normal_output *o, const struct charsmap *map, size_t at,
			    size_t n)
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
	struct normal_output o = { .text = text, .out = out };
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
		if (end - at <= CLUSTER_BYTES_MAX && replace_cluster(&o, map, at, end - at))
			at = end;
		for (; at < end; at += n) {
			utf8_next(text.p + at, &n);
			replace_cluster(&o, map, at, n);
		}
	}
	if (o.done == 0)
		return text;
	buf_add(out, text.p + o.done, text.n - o.done);
	return buf_str(out);
}

/* ---- Steps in a row ---- */

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

/* A replacement of up to this size is copied for every byte, needed or not. */
#define SHORT 4

/* Replaces one byte by a few, without a branch that depends on the text. */
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
	const char *found = str_find(text, literal);

	if (!found)
		return text;
	if (literal.n == 1 && s->content.n > 0 && s->content.n <= SHORT)
		return replace_byte(literal.p[0], s->content, text, (size_t)(found - text.p), out);
	buf_reset(out);
	for (; found && !out->is_over; found = str_find(rest, literal)) {
		size_t n = (size_t)(found - rest.p);

		buf_add(out, rest.p, n);
		buf_add_str(out, s->content);
		rest = (struct str){ found + literal.n, rest.n - n - literal.n };
	}
	buf_add_str(out, rest);
	return buf_str(out);
}

/*
 * An empty match directly after a match does not count; the search continues one character later.
 * Matching runs on the text with substitutes.
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
				utf8_next(text.p + from, &n);
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

	assert(w->failure != NORMALIZE_DONE);
	if (w->failure == NORMALIZE_NO_LIBRARY)
		return library_open(&lib_library, e) < 0 ?
			       err_wrap(e, "the tokenizer's normalizer (%s)", type) :
			       err_set(e, ERR_RUN, "the library utf8proc could not be loaded the "
						   "first time; try again");
	if (w->failure == NORMALIZE_GAVE_UP)
		return err_set(e, ERR_LIMIT, "the regular expression of normalizer step %zu (%s) "
			"needs more CPU time or memory than is allowed on a text of %zu bytes",
			w->failed_step + 1, type, w->text_bytes);
	return err_set(e, ERR_LIMIT, "normalizer step %zu (%s) makes more than %zu bytes of a text "
		"of %zu; the limit is %d times the text (TOKEN_GROWTH_MAX)", w->failed_step + 1,
		type, normalize_growth(w->text_bytes), w->text_bytes, TOKEN_GROWTH_MAX);
}
