/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset_script.c - the lengths of a run as a gnuplot script with its data inside.
 *
 * 14 x 10 inches at 150 dots, two by two panels; gnuplot's own colours of these names are
 * others than those of the web, so colours are numbers. Of more requests than the
 * last panel has dots, each bar stands for several: their greatest prompt and answer.
 */
#include "report/plot.h"

#include <errno.h>

#include "base/file.h"
#include "report/lengths.h"

#define BARS_MAX 2000
#define STEELBLUE "#4682B4"
#define CORAL "#FF7F50"
#define MEDIUMSEAGREEN "#3CB371"

static const char *const colour[LENGTHS_PANELS] = { STEELBLUE, CORAL, MEDIUMSEAGREEN };

static void add_hist_data(struct buf *out, const struct metrics *m, enum lengths_panel panel)
{
	struct lengths_hist h;
	char middle[FMT_F64_BYTES], width[FMT_F64_BYTES];

	lengths_count(m, panel, &h);
	buf_printf(out, "# %s: middle, width, requests\n$hist%d << END\n", lengths_words[panel].label,
		   (int)panel);
	for (int k = 0; k < LENGTHS_BINS; k++)
		buf_printf(out, "%s %s %u\n", fmt_f64(middle, (h.edge[k] + h.edge[k + 1]) / 2),
			   fmt_f64(width, h.edge[k + 1] - h.edge[k]), h.count[k]);
	buf_add_text(out, "END\n");
}

static void add_bar_data(struct buf *out, const struct metrics *m)
{
	uint32_t step = m->n / BARS_MAX + 1;

	buf_printf(out, "# request, width, prompt tokens, output tokens\n$requests << END\n");
	for (uint32_t i = 0; i < m->n; i += step) {
		int64_t prompt = 0, output = 0;
		uint32_t k;

		for (k = i; k < m->n && k < i + step; k++) {
			prompt = m->input_len[k] > prompt ? m->input_len[k] : prompt;
			output = m->output_len[k] > output ? m->output_len[k] : output;
		}
		buf_printf(out, "%.1f %u %lld %lld\n", (double)(i + k - 1) / 2, k - i,
			   (long long)prompt, (long long)output);
	}
	buf_add_text(out, "END\n");
}

static void add_hist_plot(struct buf *out, const struct metrics *m, enum lengths_panel panel)
{
	struct lengths_hist h;
	double from, to;
	uint32_t most = 0;

	lengths_count(m, panel, &h);
	for (int k = 0; k < LENGTHS_BINS; k++)
		most = h.count[k] > most ? h.count[k] : most;
	from = h.edge[0];
	to = h.edge[LENGTHS_BINS];
	buf_printf(out, "set title '%s'\nset xlabel '%s'\nset ylabel 'Frequency'\n",
		   lengths_words[panel].title, lengths_words[panel].label);
	buf_printf(out, "set xrange [%.3f:%.3f]\nset yrange [0:%.3f]\n", from - (to - from) * 0.05,
		   to + (to - from) * 0.05, most * 1.05);
	buf_printf(out, "plot $hist%d using 1:3:2 with boxes fillcolor rgb '%s'\n", (int)panel,
		   colour[panel]);
}

static void add_bar_plot(struct buf *out, uint32_t n)
{
	buf_printf(out, "set xrange [%.1f:%.1f]\nset yrange [0:*]\n", -0.5 - n * 0.03, n - 0.5 + n * 0.03);
	buf_add_text(out, "set title 'Tokens per Request (Stacked)'\nset xlabel 'Request ID'\n"
			  "set ylabel 'Tokens'\nset key top right opaque invert\nset style fill solid 0.7 noborder\n"
			  "unset grid\nset grid ytics linecolor rgb '#4DB0B0B0' linetype 1\n"
			  "plot $requests using 1:($3+$4):2 with boxes fillcolor rgb '" CORAL "' "
			  "title 'Output Tokens', \\\n"
			  "  $requests using 1:3:2 with boxes fillcolor rgb 'white' fillstyle solid 1 "
			  "notitle, \\\n"
			  "  $requests using 1:3:2 with boxes fillcolor rgb '" STEELBLUE "' "
			  "title 'Prompt Tokens'\n");
}

enum plot_outcome plot_dataset_script(const struct report *r, const char *path, const char *png,
				      struct err *e)
{
	const struct metrics *m = r->metrics;
	struct buf out = { 0 };
	int rc;

	if (m->opts.is_pooling || m->n == 0)
		return PLOT_NOT_DETAILED;
	buf_add_text(&out, "# Lengths of the requests of a run; gnuplot draws them with this.\n"
			   "set terminal pngcairo size 2100,1500 fontscale 1.8 linewidth 1.5\nset output ");
	plot_add_quoted(&out, png);
	buf_add_char(&out, '\n');
	for (enum lengths_panel panel = 0; panel < LENGTHS_PANELS; panel++)
		add_hist_data(&out, m, panel);
	add_bar_data(&out, m);
	buf_add_text(&out, "set multiplot layout 2,2\nset key off\n"
			   "set style fill solid 0.7 border rgb 'black'\nset tics out nomirror\n"
			   "set grid linecolor rgb '#4DB0B0B0' linetype 1\n");
	for (enum lengths_panel panel = 0; panel < LENGTHS_PANELS; panel++)
		add_hist_plot(&out, m, panel);
	add_bar_plot(&out, m->n);
	buf_add_text(&out, "unset multiplot\n");
	rc = file_write_atomic(path, buf_str(&out), e);
	buf_release(&out);
	return rc < 0 ? PLOT_FAILED : PLOT_WRITTEN;
}
