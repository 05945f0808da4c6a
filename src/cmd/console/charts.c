/* SPDX-License-Identifier: Apache-2.0 */
/* charts.c - see charts.h. */
#include "cmd/console/charts.h"

#include <unistd.h>

#include "bench/sweep/gnuplot.h"
#include "cmd/console/cli.h"

#define COLUMNS_MIN 40u
#define COLUMNS_DEFAULT 80u
#define COLUMNS_MAX 160u

/* Beside the last column of a terminal there is room for its line's end. */
static unsigned columns(void)
{
	return cli_columns(COLUMNS_MIN, COLUMNS_MAX + 1, COLUMNS_DEFAULT + 1) - 1;
}

static char *run_gnuplot(struct str script, bool is_asked)
{
	struct buf drawn = { 0 }, out = { 0 };

	if (gnuplot_draw_text(script, &drawn, NULL) == 0)
		report_charts_trim(buf_str(&drawn), &out);
	else if (is_asked)
		cli_warn("--charts: gnuplot failed");
	buf_release(&drawn);
	if (out.len)
		return buf_take(&out);
	buf_release(&out);
	return NULL;
}

char *charts_draw(const struct serve_opts *o, const struct report *r)
{
	bool is_asked = strcmp(o->charts, "always") == 0;
	struct buf script = { 0 };
	char *drawn = NULL;

	if (!is_asked && (strcmp(o->charts, "never") == 0 || !isatty(STDOUT_FILENO)))
		return NULL;
	if (!gnuplot_exists()) {
		if (is_asked)
			cli_warn("--charts always: gnuplot is not installed");
		return NULL;
	}
	report_charts_script(r, columns(), &script);
	if (script.len && !script.is_over)
		drawn = run_gnuplot(buf_str(&script), is_asked);
	buf_release(&script);
	return drawn;
}
