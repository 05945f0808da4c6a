/* SPDX-License-Identifier: Apache-2.0 */
/* plots.c - see plots.h. */
#include "cmd/console/plots.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "bench/sweep/gnuplot.h"
#include "cmd/console/cli.h"
#include "out/page/plot.h"

static int check_one(const char *option, const char *result_path, const char *suffix, struct err *e)
{
	char *path = plot_path(result_path, suffix);
	int rc = target_check(option, path, e);

	free(path);
	return rc;
}

int plots_check(const struct plots *p, const char *result_path, struct err *e)
{
	static const char *const dataset[] = { PLOT_DATASET_PNG, PLOT_DATASET_SCRIPT,
					       PLOT_DATASET_PAGE };

	if ((p->is_timeline || p->is_turns) && !plot_has_pages())
		return err_set(e, ERR_RUN, "%s: this build has no pages: it was made with WEB=0",
			       p->is_timeline ? "--plot-timeline" : "--plot-turns");
	if (p->is_dataset_stats && !plot_has_pages() && !gnuplot_exists())
		return err_set(e, ERR_RUN, "--plot-dataset-stats: this build has no pages (WEB=0), and "
			       "gnuplot is not installed");
	if (p->is_timeline && check_one("--plot-timeline", result_path, PLOT_TIMELINE, e) < 0)
		return -1;
	if (p->is_turns && check_one("--plot-turns", result_path, PLOT_TURNS, e) < 0)
		return -1;
	for (size_t i = 0; p->is_dataset_stats && i < sizeof(dataset) / sizeof(*dataset); i++)
		if (check_one("--plot-dataset-stats", result_path, dataset[i], e) < 0)
			return -1;
	return 0;
}

/* Prints upstream's words for the outcome of a plot. */
static void tell(enum plot_outcome outcome, const char *saved, const char *path, const char *needs,
		 const char *empty, const char *what, const struct err *e)
{
	struct buf text = { 0 };

	switch (outcome) {
	case PLOT_WRITTEN:
		buf_printf(&text, "%s saved to: %s\n", saved, path);
		cli_out(buf_str(&text));
		break;
	case PLOT_EMPTY:
		buf_printf(&text, "%s\n", empty);
		cli_out(buf_str(&text));
		break;
	case PLOT_NOT_DETAILED:
		buf_printf(&text, "%s Ensure the benchmark completed successfully.", needs);
		cli_warn(text.data);
		break;
	case PLOT_FAILED:
		buf_printf(&text, "Failed to generate %s plot: %s", what, e->text);
		cli_warn(text.data);
		break;
	}
	buf_release(&text);
}

static void draw_timeline(const struct plots *p, const struct report *r, const char *result_path)
{
	char *path = plot_path(result_path, PLOT_TIMELINE);
	struct err e = { 0 };

	tell(plot_timeline(r, p->timeline_ms, path, &e), "Timeline plot", path,
	     "Timeline plot requires detailed metrics.", "No timeline data to plot", "timeline", &e);
	free(path);
}

#define NEEDS_LENGTHS "Dataset statistics plot requires input and output length data."
#define NO_LENGTHS "No data available for dataset statistics plot"

static void draw_png(const struct report *r, const char *result_path)
{
	char *script = plot_path(result_path, PLOT_DATASET_SCRIPT);
	char *png = plot_path(result_path, PLOT_DATASET_PNG);
	struct err e = { 0 };
	enum plot_outcome outcome = plot_dataset_script(r, script, png, &e);

	if (outcome == PLOT_WRITTEN)
		outcome = gnuplot_draw(script, &e) == 0 ? PLOT_WRITTEN : PLOT_FAILED;
	if (outcome == PLOT_FAILED)
		unlink(png); /* half a picture, or an earlier result's */
	tell(outcome, "Dataset statistics plot", png, NEEDS_LENGTHS, NO_LENGTHS, "dataset statistics",
	     &e);
	free(script);
	free(png);
}

static void draw_dataset(const struct report *r, const char *result_path)
{
	char *path = plot_path(result_path, PLOT_DATASET_PAGE);
	bool has_gnuplot = gnuplot_exists();
	struct err e = { 0 };

	if (has_gnuplot)
		draw_png(r, result_path);
	else if (plot_has_pages())
		cli_warn("gnuplot is not installed, so --plot-dataset-stats draws its page alone");
	/* draw_png has already reported a problem that also concerns the page. */
	if (plot_has_pages() && !(has_gnuplot && r->metrics->opts.is_pooling))
		tell(plot_dataset_page(r, path, &e), "Dataset statistics page", path, NEEDS_LENGTHS,
		     NO_LENGTHS, "dataset statistics", &e);
	free(path);
}

static void draw_turns(const struct report *r, const char *result_path)
{
	char *path = plot_path(result_path, PLOT_TURNS);
	struct err e = { 0 };

	if (r->metrics->sessions.n)
		tell(plot_turns(r, path, &e), "Turns plot", path, "", "", "turns", &e);
	else
		cli_warn("--plot-turns: the run has no conversations, so nothing is drawn");
	free(path);
}

void plots_draw(const struct plots *p, const struct report *r, const char *result_path)
{
	if (p->is_timeline)
		draw_timeline(p, r, result_path);
	if (p->is_dataset_stats)
		draw_dataset(r, result_path);
	if (p->is_turns)
		draw_turns(r, result_path);
}

#define COLUMNS_MIN 40u
#define COLUMNS_DEFAULT 80u
#define COLUMNS_MAX 160u

/* One column less than the terminal has, for the line end. */
static unsigned chart_columns(void)
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
	report_charts_script(r, chart_columns(), &script);
	if (script.len && !script.is_over)
		drawn = run_gnuplot(buf_str(&script), is_asked);
	buf_release(&script);
	return drawn;
}

/* In the order of enum figure_style. */
const char *const plot_styles[] = { "line-points", "line", "points", "steps", NULL };

static int read_limits(const char *option, const char *text, enum figure_scale scale,
		       struct figure_limits *out, struct err *e)
{
	struct str rest = str_of(text), low = str_cut(&rest, ':');
	bool is_good;

	if (!text)
		return 0;
	*out = (struct figure_limits){ NAN, NAN };
	is_good = strchr(text, ':') && (!low.n || str_to_f64(str_trim(low), &out->low)) &&
		  (!rest.n || str_to_f64(str_trim(rest), &out->high)) && (low.n || rest.n) &&
		  !isinf(out->low) && !isinf(out->high);
	if (!is_good)
		return err_set(e, ERR_USAGE, "%s: expected LOW:HIGH, such as 0:200 or :200, got '%.60s'",
			       option, text);
	if (out->low >= out->high)
		return err_set(e, ERR_USAGE, "%s: the first number must be below the second, got "
			       "'%.60s'", option, text);
	if (scale == FIGURE_LOG && (out->low <= 0 || out->high <= 0))
		return err_set(e, ERR_USAGE, "%s: numbers on a logarithmic axis must be above 0, got "
			       "'%.60s'", option, text);
	return 0;
}

int plot_look_apply(const struct plot_look *look, struct figure *f, struct err *e)
{
	if (read_limits("--xlim", look->xlim, f->x_scale, &f->x_limits, e) < 0 ||
	    read_limits("--ylim", look->ylim, f->y_scale, &f->y_limits, e) < 0)
		return -1;
	f->title = look->title ? look->title : f->title;
	f->x_label = look->xlabel ? look->xlabel : f->x_label;
	f->y_label = look->ylabel ? look->ylabel : f->y_label;
	if (look->width > 0)
		f->panel_width_in = look->width;
	if (look->height > 0)
		f->panel_height_in = look->height;
	for (unsigned i = 0; look->style && plot_styles[i]; i++)
		if (strcmp(look->style, plot_styles[i]) == 0)
			f->style = (enum figure_style)i;
	return 0;
}
