/* SPDX-License-Identifier: Apache-2.0 */
/* lines.c - see lines.h. */
#include "report/lines.h"

#define WIDTH 50

/* Centred between fill characters; the odd one goes on the right. */
void line_heading(struct buf *out, char fill, const char *text)
{
	size_t n = strlen(text), left = n < WIDTH ? (WIDTH - n) / 2 : 0;

	for (size_t i = 0; i < left; i++)
		buf_add_char(out, fill);
	buf_add_text(out, text);
	for (size_t i = left + n; i < WIDTH; i++)
		buf_add_char(out, fill);
	buf_add_char(out, '\n');
}

void line_text(struct buf *out, const char *label, const char *value)
{
	buf_printf(out, "%-40s %-10s\n", label, value);
}

void line_int(struct buf *out, const char *label, int64_t v)
{
	buf_printf(out, "%-40s %-10lld\n", label, (long long)v);
}

void line_real(struct buf *out, const char *label, double v)
{
	char text[400]; /* the longest double has 309 digits before the point */

	snprintf(text, sizeof(text), "%.2f", v);
	line_text(out, label, text);
}

/* Text from a server: control characters, which a terminal would obey, are shown as '?'. */
void line_add_safe(struct buf *out, struct str text)
{
	for (size_t i = 0; i < text.n; i++) {
		unsigned char c = (unsigned char)text.p[i];

		buf_add_char(out, (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f
			     ? '?' : (char)c);
	}
}

void line_spread(struct buf *out, const char *label, const struct metrics_spread *s)
{
	char text[80];

	if (s->n == 0)
		return;
	snprintf(text, sizeof(text), "%.3f / %.3f / %.3f", s->p50_ms, s->p99_ms, s->max_ms);
	line_text(out, label, text);
}

/* A percentage, or "-" when there was nothing to look at. */
void line_share(struct buf *out, const char *label, uint64_t part, uint64_t whole)
{
	if (whole)
		line_real(out, label, 100.0 * (double)part / (double)whole);
	else
		line_text(out, label, "-");
}
