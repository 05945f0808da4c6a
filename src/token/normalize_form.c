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
#include "base/utf8.h"
#include "token/unicode_norm.h"

struct form {
	unsigned changes; /* the bit of unicode_norm() */
	utf8proc_option_t options;
};

static const struct form forms[] = {
	[NORMALIZE_NFC] = { UNICODE_NFC, UTF8PROC_STABLE | UTF8PROC_COMPOSE },
	[NORMALIZE_NFD] = { UNICODE_NFD, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE },
	[NORMALIZE_NFKC] = { UNICODE_NFKC,
		UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT },
	[NORMALIZE_NFKD] = { UNICODE_NFKD,
		UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT },
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

/* Appends the normal form of one stretch. */
static void add_form(utf8proc_option_t options, struct normalize_work *w, struct str s,
	struct buf *out)
{
	const uint8_t *bytes = (const uint8_t *)s.p;
	utf8proc_ssize_t count = (utf8proc_ssize_t)s.n, n;

	for (;;) {
		n = utf8proc_decompose(bytes, count, w->code, (utf8proc_ssize_t)w->code_cap,
			options);
		assert(n >= 0); /* the text is valid UTF-8 */
		if ((size_t)n <= w->code_cap)
			break;
		w->code_cap = (size_t)n * 2;
		w->code = mem_grow(w->code, w->code_cap, sizeof *w->code);
	}
	n = utf8proc_normalize_utf32(w->code, n, options);
	assert(n >= 0);
	for (utf8proc_ssize_t i = 0; i < n; i++) {
		char text[4];

		buf_add(out, text, utf8_encode((uint32_t)w->code[i], text));
	}
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
		add_form(f->options, w, (struct str){ text.p + start, end - start }, out);
		done = end;
	} while (next_stretch(f->changes, text, done, &start, &end));
	buf_add(out, text.p + done, text.n - done);
	return buf_str(out);
}
