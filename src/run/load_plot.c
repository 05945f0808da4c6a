/* SPDX-License-Identifier: Apache-2.0 */
/* load_plot.c - see load_plot.h. */
#include "run/load_plot.h"

#include "base/mem.h"
#include "report/load_plot.h"
#include "report/plot.h"
#include "report/report.h"
#include "run/gnuplot.h"

static void add_title(const struct serve_opts *o, const struct plan *plan, struct buf *out)
{
	double last = plan->entry[plan->n_roots - 1].due_s;

	buf_printf(out, "Load pattern%s%s: %u requests", o->load_pattern ? " " : "",
		   o->load_pattern ? o->load_pattern : "", plan->n_roots);
	if (last > 0)
		buf_printf(out, " in %.1f s, %.2f a second", last, (double)plan->n_roots / last);
	else
		buf_add_text(out, ", all at once");
}

static int draw(const char *script, const char *picture, struct buf *line, struct buf *note)
{
	struct err e = { 0 };

	if (!gnuplot_exists())
		buf_printf(note, "--plot-load-pattern: gnuplot is not installed; it would draw %s",
			   script);
	else if (gnuplot_draw(script, &e) == 0)
		buf_printf(line, "Load pattern plot saved to: %s", picture);
	else
		buf_printf(note, "--plot-load-pattern: gnuplot %s: %.200s", script, e.text);
	return 0;
}

int run_plot_load(const struct serve_opts *o, const struct point *p, const char *result_path,
		  struct buf *line, struct buf *note, struct err *e)
{
	struct buf title = { 0 }, data = { 0 }, script = { 0 };
	char *stem = plot_path(result_path, "");
	double *due_s = mem_array(p->plan.n_roots, sizeof(*due_s));
	struct arena a = { 0 };
	struct load_plot plot = { .due_s = due_s, .n = p->plan.n_roots };
	const char *script_path;
	int rc = -1;

	for (uint32_t i = 0; i < p->plan.n_roots; i++)
		due_s[i] = p->plan.entry[i].due_s;
	add_title(o, &p->plan, &title);
	plot.title = title.data;
	plot.data = arena_printf(&a, "%s.load_pattern.dat", stem);
	plot.picture = arena_printf(&a, "%s.load_pattern.png", stem);
	script_path = arena_printf(&a, "%s.load_pattern.gp", stem);
	load_plot_data(&plot, &data);
	load_plot_script(&plot, &script);
	if (report_save(plot.data, buf_str(&data), false, e) == 0 &&
	    report_save(script_path, buf_str(&script), false, e) == 0)
		rc = draw(script_path, plot.picture, line, note);
	else
		err_wrap(e, "--plot-load-pattern");
	free(due_s);
	free(stem);
	buf_release(&title);
	buf_release(&data);
	buf_release(&script);
	arena_release(&a);
	return rc;
}
