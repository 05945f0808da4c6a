/* SPDX-License-Identifier: Apache-2.0 */
/* plot.c - see plot.h. */
#include "out/page/plot.h"

#include <assert.h>
#include <errno.h>

#include "core/base/file.h"
#include "out/page/html.h"
#include "out/page/lengths.h"

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

#define BARS_MAX 2000
#define BLUE "#0f4dd6"
#define ORANGE "#da7931"
#define TEAL "#0ca38d"
#define KEY_ROOM 1.2 /* times the highest bar: the key is above it */

static const char *const colour[LENGTHS_PANELS] = { BLUE, ORANGE, TEAL };

static void add_hist_data(struct buf *out, const struct metrics *m, enum lengths_panel panel)
{
	struct lengths_hist h;
	char middle[FMT_F64_BYTES], width[FMT_F64_BYTES];

	lengths_count(m, panel, &h);
	buf_printf(out, "# %s: middle, width, requests\n$hist%d << END\n", lengths_words[panel].label,
		   (int)panel);
	if (h.min == h.max) /* one bar, as wide as a token */
		buf_printf(out, "%lld 1 %u\n", (long long)h.min, m->n);
	for (int k = 0; h.min < h.max && k < LENGTHS_BINS; k++)
		buf_printf(out, "%s %s %u\n", fmt_f64(middle, (h.edge[k] + h.edge[k + 1]) / 2),
			   fmt_f64(width, h.edge[k + 1] - h.edge[k]), h.count[k]);
	buf_add_text(out, "END\n");
}

/* Gives the height of the highest bar. */
static int64_t add_bar_data(struct buf *out, const struct metrics *m)
{
	uint32_t step = m->n / BARS_MAX + 1;
	int64_t most = 1;

	buf_printf(out, "# request, width, prompt tokens, output tokens\n$requests << END\n");
	for (uint32_t i = 0; i < m->n; i += step) {
		int64_t prompt = 0, output = 0;
		uint32_t k;

		for (k = i; k < m->n && k < i + step; k++) {
			prompt = m->input_len[k] > prompt ? m->input_len[k] : prompt;
			output = m->output_len[k] > output ? m->output_len[k] : output;
		}
		most = prompt + output > most ? prompt + output : most;
		buf_printf(out, "%.1f %u %lld %lld\n", (double)(i + k - 1) / 2, k - i,
			   (long long)prompt, (long long)output);
	}
	buf_add_text(out, "END\n");
	return most;
}

/* A round number of tokens between marks, about six of them; never less than one token. */
static int64_t token_step(double span)
{
	static const int64_t part[] = { 1, 2, 5 };
	int64_t power = 1;

	for (size_t i = 0;; i++) {
		if ((double)(part[i % 3] * power) * 6 >= span)
			return part[i % 3] * power;
		power *= i % 3 == 2 ? 10 : 1;
	}
}

static void add_hist_plot(struct buf *out, const struct metrics *m, enum lengths_panel panel)
{
	struct lengths_hist h;
	double from, to;
	uint32_t most = 0;
	bool is_one;

	lengths_count(m, panel, &h);
	for (int k = 0; k < LENGTHS_BINS; k++)
		most = h.count[k] > most ? h.count[k] : most;
	is_one = h.min == h.max;
	from = is_one ? (double)h.min - 2 : h.edge[0];
	to = is_one ? (double)h.max + 2 : h.edge[LENGTHS_BINS];
	buf_printf(out, "set title '%s'\nset xlabel '%s'\nset ylabel 'Frequency'\n",
		   lengths_words[panel].title, lengths_words[panel].label);
	buf_printf(out, "set xrange [%.3f:%.3f]\nset yrange [0:%.3f]\n", from - (to - from) * 0.05,
		   to + (to - from) * 0.05, most * 1.05);
	buf_printf(out, "set xtics %lld\nset ytics %lld\n", (long long)token_step(to - from),
		   (long long)token_step(most));
	buf_printf(out, "plot $hist%d using 1:3:2 with boxes fillcolor rgb '%s'\n", (int)panel,
		   colour[panel]);
}

static void add_bar_plot(struct buf *out, uint32_t n, int64_t most)
{
	buf_printf(out, "set xrange [%.1f:%.1f]\nset yrange [0:%.1f]\nset xtics %lld\nset ytics %lld\n",
		   -0.5 - n * 0.03, n - 0.5 + n * 0.03, (double)most * KEY_ROOM,
		   (long long)token_step(n), (long long)token_step((double)most));
	buf_add_text(out, "set title 'Tokens per Request (Stacked)'\nset xlabel 'Request ID'\n"
			  "set ylabel 'Tokens'\nset key top right horizontal\nset style fill solid 0.7 noborder\n"
			  "unset grid\nset grid ytics linecolor rgb '#4DB0B0B0' linetype 1\n"
			  "plot $requests using 1:($3+$4):2 with boxes fillcolor rgb '" ORANGE "' "
			  "title 'Output Tokens', \\\n"
			  "  $requests using 1:3:2 with boxes fillcolor rgb 'white' fillstyle solid 1 "
			  "notitle, \\\n"
			  "  $requests using 1:3:2 with boxes fillcolor rgb '" BLUE "' "
			  "title 'Prompt Tokens'\n");
}

enum plot_outcome plot_dataset_script(const struct report *r, const char *path, const char *png,
				      struct err *e)
{
	const struct metrics *m = r->metrics;
	struct buf out = { 0 };
	int64_t most;
	int rc;

	if (m->opts.is_pooling || m->n == 0)
		return PLOT_NOT_DETAILED;
	buf_add_text(&out, "# Lengths of the requests of a run; gnuplot draws them with this.\n"
			   "set terminal pngcairo size 2100,1500 fontscale 1.8 linewidth 1.5\nset output ");
	plot_add_quoted(&out, png);
	buf_add_char(&out, '\n');
	for (enum lengths_panel panel = 0; panel < LENGTHS_PANELS; panel++)
		add_hist_data(&out, m, panel);
	most = add_bar_data(&out, m);
	buf_add_text(&out, "set multiplot layout 2,2\nset key off\n"
			   "set style fill solid 0.7 border rgb 'black'\nset tics out nomirror\n"
			   "set grid linecolor rgb '#4DB0B0B0' linetype 1\n");
	for (enum lengths_panel panel = 0; panel < LENGTHS_PANELS; panel++)
		add_hist_plot(&out, m, panel);
	add_bar_plot(&out, m->n, most);
	buf_add_text(&out, "unset multiplot\n");
	rc = file_write_atomic(path, buf_str(&out), e);
	buf_release(&out);
	return rc < 0 ? PLOT_FAILED : PLOT_WRITTEN;
}

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
		     "plot data index 0 using 1:2 with boxes lc rgb '#0f4dd6' title 'due per span', \\\n"
		     "     data index 0 using 1:3 axes x1y2 with lines lw 2 lc rgb '#da7931' "
		     "title 'due so far'\n"
		     "unset y2label\n"
		     "unset y2tics\n"
		     "set xlabel 'Interval between two requests (s)'\n"
		     "set ylabel 'Intervals'\n"
		     "plot data index 1 using 1:2 with boxes lc rgb '#0ca38d' notitle\n"
		     "unset multiplot\n");
}
