/* SPDX-License-Identifier: Apache-2.0 */
/*
 * normalize_form.c - normal forms; the one file that includes utf8proc.
 *
 * Nearly all text is in its form already. A stretch that is not begins with the
 * last starter in front of it and ends before a character that begins anew, a
 * starter the form never changes; only stretches go through the library.
 * Characters younger than the reference's tables never do (token/unicode_norm.h).
 */
#include "token/normalize_step.h"

#include <assert.h>
#include <utf8proc.h>

#include "base/mem.h"
#include "base/str.h"
#include "token/unicode_norm.h"

/* Both are bits of unicode_norm(). */
struct form {
	unsigned changes;
	unsigned decomposes;
	utf8proc_option_t options;
};

static const struct form forms[] = {
	[NORMALIZE_NFC] = { UNICODE_NFC, UNICODE_NFD, UTF8PROC_STABLE | UTF8PROC_COMPOSE },
	[NORMALIZE_NFD] = { UNICODE_NFD, UNICODE_NFD, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE },
	[NORMALIZE_NFKC] = { UNICODE_NFKC, UNICODE_NFKD,
		UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT },
	[NORMALIZE_NFKD] = { UNICODE_NFKD, UNICODE_NFKD,
		UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT },
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
		size_t skipped = normalize_skip_ascii(text, at);

		if (skipped > at) {
			last = skipped - 1;
			rank = 0;
		}
		at = skipped;
		if (at >= text.n)
			return false;
		norm = unicode_norm(normalize_char(text.p + at, &n));
		if ((norm & changes) || (norm & UNICODE_RANK && (norm & UNICODE_RANK) < rank))
			break;
		rank = norm & UNICODE_RANK;
		if (norm & UNICODE_ALIEN)
			last = at + n; /* nothing behind it has to do with it */
		else if (rank == 0)
			last = at;
	}
	*start = last;
	for (at += n; at < text.n; at += n) {
		norm = unicode_norm(normalize_char(text.p + at, &n));
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
static size_t decompose(const struct form *f, struct form_cache *cache, uint32_t cp, int32_t *to)
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
	n = (size_t)utf8proc_decompose_char((int32_t)cp, to, DECOMPOSED_MAX, f->options,
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
static size_t decompose_stretch(const struct form *f, struct normalize_work *w, struct str s)
{
	size_t n = 0, marks = 0, length;

	if (!w->cache)
		w->cache = mem_alloc(sizeof *w->cache);
	for (size_t at = 0; at < s.n; at += length) {
		uint32_t cp = normalize_char(s.p + at, &length);
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
static void add_form(const struct form *f, struct normalize_work *w, struct str s, struct buf *out)
{
	size_t n = decompose_stretch(f, w, s);
	char *to;

	if (f->options & UTF8PROC_COMPOSE)
		n = (size_t)utf8proc_normalize_utf32(w->code, (utf8proc_ssize_t)n, f->options);
	if (buf_reserve(out, 4 * n))
		return;
	to = out->data + out->len;
	for (size_t i = 0; i < n; i++)
		to += utf8_encode((uint32_t)w->code[i], to);
	*to = 0;
	out->len = (size_t)(to - out->data);
}

struct str normalize_form(enum normalize_kind form, struct normalize_work *w, struct str text,
	struct buf *out)
{
	const struct form *f = forms + form;
	size_t done = 0, start, end;

	if (!next_stretch(f->changes, text, 0, &start, &end))
		return text;
	buf_reset(out);
	do {
		buf_add(out, text.p + done, start - done);
		add_form(f, w, (struct str){ text.p + start, end - start }, out);
		done = end;
	} while (next_stretch(f->changes, text, done, &start, &end));
	buf_add(out, text.p + done, text.n - done);
	return buf_str(out);
}
