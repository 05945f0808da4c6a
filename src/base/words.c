/* SPDX-License-Identifier: Apache-2.0 */
/* words.c - see words.h. */
#include "base/words.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"

struct list { char **v; size_t n, cap; };

static void add(struct list *l, char *word)
{
	if (l->n + 1 >= l->cap) { /* room for the NULL too */
		l->cap = l->cap ? l->cap * 2 : 16;
		l->v = mem_grow(l->v, l->cap, sizeof(*l->v));
	}
	l->v[l->n++] = word;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* The inside of quotes; p stands behind the opening one. Returns where it closes; NULL: why. */
static const char *quoted(const char *p, const char *end, char quote, struct buf *word,
			  const char **why)
{
	*why = "No closing quotation";
	for (; p < end && *p != quote; p++) {
		if (quote == '"' && *p == '\\') {
			if (p + 1 == end) {
				*why = "No escaped character";
				return NULL;
			}
			p += p[1] == '\\' || p[1] == '"';
		}
		buf_add_char(word, *p);
	}
	return p < end ? p : NULL;
}

/* One word; p stands on its first character. Returns what is behind it; NULL: why is set. */
static const char *next(const char *p, const char *end, struct buf *word, const char **why)
{
	for (; p < end && !is_blank(*p); p++) {
		if (*p == '\'' || *p == '"') {
			p = quoted(p + 1, end, *p, word, why);
			if (!p)
				return NULL;
			continue;
		}
		if (*p == '\\' && ++p == end) {
			*why = "No escaped character";
			return NULL;
		}
		buf_add_char(word, *p);
	}
	return p;
}

int words_split(struct str text, struct arena *a, char ***argv, size_t *n, struct err *e)
{
	const char *p = text.p, *end = text.p + text.n, *why = NULL;
	struct list words = { 0 };
	struct buf word = { 0 };

	if (!text.n)
		p = end = "";
	if (text.n && memchr(text.p, 0, text.n))
		return err_set(e, ERR_USAGE, "a zero byte cannot stand in a command");
	for (;;) {
		while (p < end && is_blank(*p))
			p++;
		if (p == end)
			break;
		buf_reset(&word);
		p = next(p, end, &word, &why);
		if (!p)
			break;
		add(&words, arena_text(a, buf_str(&word)));
	}
	*argv = arena_alloc(a, (words.n + 1) * sizeof(**argv));
	if (words.n)
		memcpy(*argv, words.v, words.n * sizeof(**argv));
	if (n)
		*n = words.n;
	buf_release(&word);
	free(words.v);
	return p ? 0 : err_set(e, ERR_USAGE, "%s", why);
}
