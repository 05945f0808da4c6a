/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plot.h - the plots of a run: its timeline, its lengths (serve spec 7) and its conversations by
 * turn.
 *
 * Writes files; draws nothing itself. The pages are the front end's (web/) with the run's data
 * inside; they open without a server and send nothing. The picture of the lengths is gnuplot's,
 * from a script that stays next to it to be restyled.
 *
 * The pages only format; the numbers are computed here or in metrics/. The data formats of the
 * pages are in timeline.c and plot.c, and read by web/src.
 */
#pragma once
#include <stdbool.h>

#include "core/base/err.h"
#include "out/report/report.h"

/* A result's path with its last suffix replaced, as Python's with_suffix. Caller frees. */
char *plot_path(const char *result_path, const char *suffix);
#define PLOT_TIMELINE ".timeline.html"
#define PLOT_TURNS ".turns.html"
#define PLOT_DATASET_PAGE ".dataset_stats.html"
#define PLOT_DATASET_PNG ".dataset_stats.png"
#define PLOT_DATASET_SCRIPT ".dataset_stats.gp"

/* A text quoted for gnuplot: in single quotes, in which only '' is special. */
void plot_add_quoted(struct buf *out, const char *text);

/* False in a build with WEB=0. */
bool plot_has_pages(void);

/* "A,B" in milliseconds; on failure upstream's message without the name of the option. */
int plot_thresholds(const char *text, double out_ms[2], struct err *e);

enum plot_outcome { PLOT_WRITTEN, PLOT_NOT_DETAILED, PLOT_EMPTY, PLOT_FAILED };

/*
 * PLOT_NOT_DETAILED: no generation requests; PLOT_EMPTY: none was sent; PLOT_FAILED: e.
 * threshold_ms: of ITL; 0 0: twice and four times the run's median.
 */
enum plot_outcome plot_timeline(const struct report *r, const double threshold_ms[2],
				const char *path, struct err *e);
/* TTFT, context and cached tokens by turn. PLOT_NOT_DETAILED: no conversations. */
enum plot_outcome plot_turns(const struct report *r, const char *path, struct err *e);
/* The four panels as a page, or as a script that makes gnuplot write png. */
enum plot_outcome plot_dataset_page(const struct report *r, const char *path, struct err *e);
enum plot_outcome plot_dataset_script(const struct report *r, const char *path, const char *png,
				      struct err *e);

/*
 * When requests are due, drawn by gnuplot: arrivals over time and a histogram of the intervals
 * between them. Data and script are kept next to the picture, so that it can be drawn again in
 * another way.
 */
struct load_plot {
	const double *due_s;   /* ascending, seconds from the start */
	size_t n;              /* at least 1 */
	const char *title;
	const char *data, *picture; /* files named in the script */
};

/*
 * Two tables, two blank lines between them. First: middle of a span of time (s), requests due
 * in it, requests due by its end. Second: middle of a span of intervals (s), their number.
 */
void load_plot_data(const struct load_plot *p, struct buf *out);
/* A gnuplot script that draws them as a PNG, or as an SVG by the picture's suffix. */
void load_plot_script(const struct load_plot *p, struct buf *out);
