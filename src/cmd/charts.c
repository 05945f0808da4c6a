/* SPDX-License-Identifier: Apache-2.0 */
/* charts.c - see charts.h. */
#include "cmd/charts.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "cmd/cli.h"
#include "proc/tool.h"

#define GNUPLOT_SECONDS 20
#define COLUMNS_DEFAULT 80u
#define COLUMNS_MAX 160u

static unsigned columns(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col < 40)
		return COLUMNS_DEFAULT;
	return size.ws_col < COLUMNS_MAX ? size.ws_col - 1u : COLUMNS_MAX;
}

static char *run_gnuplot(struct str script, bool is_asked)
{
	/* Without the user's own settings: they may be for another terminal. */
	static const char *const argv[] = { "gnuplot", "-d", NULL };
	struct buf drawn = { 0 }, errors = { 0 }, out = { 0 };
	struct err e = { 0 };
	int status = tool_run(argv, script, GNUPLOT_SECONDS, &drawn, &errors, &e);

	if (status == 0)
		report_charts_trim(buf_str(&drawn), &out);
	else if (is_asked)
		cli_warn(status < 0 ? e.text : "--charts: gnuplot failed");
	buf_release(&drawn);
	buf_release(&errors);
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
	if (!tool_exists("gnuplot")) {
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
