/* SPDX-License-Identifier: Apache-2.0 */
/* plots.c - see plots.h. */
#include "cmd/console/plots.h"

#include "bench/sweep/gnuplot.h"
#include "cmd/console/cli.h"
#include "cmd/console/target.h"
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

/* Upstream's words for what became of a plot. */
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
	/* What is the matter was told once. */
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
