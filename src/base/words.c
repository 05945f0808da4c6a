/* SPDX-License-Identifier: Apache-2.0 */
/* words.c - see words.h. */
#include "base/words.h"

#include <string.h>

#include "base/buf.h"

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
	struct words words = { .arena = a };
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
		words_add(&words, arena_text(a, buf_str(&word)));
	}
	*argv = words.v ? words.v : arena_alloc(a, sizeof(**argv));
	if (n)
		*n = words.n;
	buf_release(&word);
	return p ? 0 : err_set(e, ERR_USAGE, "%s", why);
}

void words_add(struct words *w, char *word)
{
	char **more;

	if (w->n + 1 >= w->room) {
		w->room = w->room ? 2 * w->room : 16;
		more = arena_alloc(w->arena, w->room * sizeof(*more));
		if (w->n)
			memcpy(more, w->v, w->n * sizeof(*more));
		w->v = more;
	}
	w->v[w->n++] = word;
	w->v[w->n] = NULL;
}

void words_quote(struct buf *out, struct str word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "@%+=:,./-_";
	bool is_plain = word.n > 0;

	for (size_t i = 0; i < word.n; i++)
		is_plain = is_plain && word.p[i] && strchr(plain, word.p[i]);
	if (is_plain) {
		buf_add_str(out, word);
		return;
	}
	buf_add_char(out, '\'');
	for (size_t i = 0; i < word.n; i++)
		if (word.p[i] == '\'')
			buf_add_text(out, "'\\''");
		else if (word.p[i])
			buf_add_char(out, word.p[i]);
	buf_add_char(out, '\'');
}
