/* SPDX-License-Identifier: Apache-2.0 */
/* plot.c - names and limits of the plots; see plot.h. */
#include "report/plot.h"

#include "report/html.h"

char *plot_path(const char *result_path, const char *suffix)
{
	const char *slash = strrchr(result_path, '/');
	const char *name = slash ? slash + 1 : result_path, *dot = strrchr(name, '.');
	struct buf path = { 0 };

	/* A name that begins or ends with its only dot has no suffix. */
	buf_add(&path, result_path, dot && dot != name && dot[1] ? (size_t)(dot - result_path)
								 : strlen(result_path));
	buf_add_text(&path, suffix);
	return buf_take(&path);
}

void plot_add_quoted(struct buf *out, const char *text)
{
	buf_add_char(out, '\'');
	for (; *text; text++) {
		if (*text == '\'')
			buf_add_char(out, '\'');
		buf_add_char(out, *text);
	}
	buf_add_char(out, '\'');
}

bool plot_has_pages(void)
{
	return html_assets->name != NULL;
}

int plot_thresholds(const char *text, double out_ms[2], struct err *e)
{
	struct str rest = str_of(text);
	double value = 0;
	size_t n = 0;

	for (bool is_more = true; is_more; n++) {
		struct str part = rest;
		const char *comma = rest.n ? memchr(rest.p, ',', rest.n) : NULL;

		is_more = comma != NULL;
		if (comma)
			part = str_cut(&rest, ',');
		part = str_trim(part);
		if (!str_to_f64(part, &value))
			n = 2; /* one too many */
		else if (n < 2)
			out_ms[n] = value;
	}
	if (n != 2 || !(out_ms[0] < out_ms[1]))
		return err_set(e, ERR_USAGE, "--timeline-itl-thresholds: expected two numbers of "
			       "milliseconds, the smaller one first, got '%.100s'", text);
	return 0;
}
