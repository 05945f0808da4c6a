/* SPDX-License-Identifier: Apache-2.0 */
/* whole_text.c - see whole_text.h. */
#include "client/endpoint/whole_text.h"

static struct str without_end(struct str text)
{
	for (;;) {
		if (str_ends(text, STR("\xef\xbf\xbd")))
			text.n -= 3;
		else if (text.n >= 6 && str_eq_nocase((struct str){ text.p + text.n - 6, 6 },
						      STR("\\ufffd")))
			text.n -= 6;
		else
			return text;
	}
}

struct str whole_text_new(struct str text, size_t *seen, bool is_last)
{
	struct str fresh;

	if (!is_last)
		text = without_end(text);
	if (text.n <= *seen)
		return (struct str){ text.p, 0 };
	fresh = (struct str){ text.p + *seen, text.n - *seen };
	*seen = text.n;
	return fresh;
}

/* Bytes of the character at p: an escape (a surrogate pair is one), or UTF-8. */
static size_t char_bytes(const char *p, size_t left)
{
	size_t n = 1;

	if (*p == '\\') {
		if (left < 6 || p[1] != 'u')
			return left < 2 ? left : 2;
		/* d800..dbff: the second half follows as an escape of its own. */
		if ((p[2] == 'd' || p[2] == 'D') && strchr("89abAB", p[3]) && left >= 12 &&
		    p[6] == '\\')
			return 12;
		return 6;
	}
	while (n < left && ((unsigned char)p[n] & 0xc0) == 0x80)
		n++;
	return n;
}

size_t whole_text_prompt(struct str text, struct str prompt)
{
	size_t at = 0;

	for (size_t i = 0; i < prompt.n && at < text.n; i++)
		if (((unsigned char)prompt.p[i] & 0xc0) != 0x80)
			at += char_bytes(text.p + at, text.n - at);
	return at;
}
