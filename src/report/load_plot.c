/* SPDX-License-Identifier: Apache-2.0 */
/* load_plot.c - see load_plot.h. */
#include "report/load_plot.h"

#include <assert.h>

#include "report/plot.h"

#define SPANS 60 /* bars of each panel */

/* Value i of the n that go into a panel. */
typedef double value_fn(const struct load_plot *p, size_t i);

static double due(const struct load_plot *p, size_t i)
{
	return p->due_s[i];
}

static double interval(const struct load_plot *p, size_t i)
{
	return p->due_s[i + 1] - p->due_s[i];
}

/* Counts of equal spans from 0 to the largest value; all in one span when that is 0. */
static double count(const struct load_plot *p, value_fn *value, size_t n, size_t in_span[SPANS])
{
	double most = 0;

	memset(in_span, 0, SPANS * sizeof(*in_span));
	for (size_t i = 0; i < n; i++)
		most = value(p, i) > most ? value(p, i) : most;
	for (size_t i = 0; i < n; i++) {
		size_t at = most > 0 ? (size_t)(value(p, i) / most * SPANS) : 0;

		in_span[at < SPANS ? at : SPANS - 1]++;
	}
	return most / SPANS;
}

void load_plot_data(const struct load_plot *p, struct buf *out)
{
	size_t in_span[SPANS], sum = 0;
	double width;

	assert(p->n > 0);
	width = count(p, due, p->n, in_span);
	buf_printf(out, "# time_s due due_so_far; %zu requests, spans of %.9g s\n", p->n, width);
	for (size_t i = 0; i < SPANS; i++) {
		sum += in_span[i];
		buf_printf(out, "%.9g %zu %zu\n", ((double)i + 0.5) * width, in_span[i], sum);
	}
	width = count(p, interval, p->n - 1, in_span);
	buf_printf(out, "\n\n# interval_s intervals; spans of %.9g s\n", width);
	for (size_t i = 0; i < SPANS; i++)
		buf_printf(out, "%.9g %zu\n", ((double)i + 0.5) * width, in_span[i]);
}

void load_plot_script(const struct load_plot *p, struct buf *out)
{
	bool is_svg = str_ends(str_of(p->picture), STR(".svg"));

	buf_printf(out, "# gnuplot: load pattern\nset terminal %s\nset output ",
		   is_svg ? "svg size 1000,700 dynamic" : "pngcairo size 1000,700");
	plot_add_quoted(out, p->picture);
	buf_add_text(out, "\ndata = ");
	plot_add_quoted(out, p->data);
	buf_add_text(out, "\nset multiplot layout 2,1 title ");
	plot_add_quoted(out, p->title);
	buf_add_text(out, " noenhanced\n"
		     "set style fill solid 0.7\n"
		     "set grid\n"
		     "set key top left\n"
		     "set yrange [0:*]\n"
		     "set y2range [0:*]\n"
		     "set xlabel 'Time (s)'\n"
		     "set ylabel 'Requests due per span'\n"
		     "set y2label 'Requests due so far'\n"
		     "set ytics nomirror\n"
		     "set y2tics\n"
		     "plot data index 0 using 1:2 with boxes lc rgb '#4682b4' title 'due per span', \\\n"
		     "     data index 0 using 1:3 axes x1y2 with lines lw 2 lc rgb '#ff7f50' "
		     "title 'due so far'\n"
		     "unset y2label\n"
		     "unset y2tics\n"
		     "set xlabel 'Interval between two requests (s)'\n"
		     "set ylabel 'Intervals'\n"
		     "plot data index 1 using 1:2 with boxes lc rgb '#3cb371' notitle\n"
		     "unset multiplot\n");
}
