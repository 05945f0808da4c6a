/* SPDX-License-Identifier: Apache-2.0 */
/* gnuplot.c - see gnuplot.h. */
#include "bench/sweep/gnuplot.h"

#include "core/base/file.h"
#include "core/base/mem.h"
#include "host/proc/tool.h"
#include "out/page/plot.h"
#include "out/report/report.h"

#define PROGRAM "gnuplot"
#define SECONDS 120
#define SAID_BYTES 500 /* of its complaints in a message */
#define COLUMNS_DEFAULT 100u

static const struct { const char *name; enum gnuplot_format bit; } formats_known[] = {
	{ "png", GNUPLOT_PNG }, { "svg", GNUPLOT_SVG }, { "pdf", GNUPLOT_PDF },
	{ "terminal", GNUPLOT_TERMINAL },
};
#define FORMATS (sizeof(formats_known) / sizeof(*formats_known))

bool gnuplot_exists(void)
{
	return tool_exists(PROGRAM);
}

int gnuplot_formats(const char *option, const char *list, unsigned *formats, struct err *e)
{
	struct str rest = str_of(list);

	*formats = 0;
	do {
		struct str name = str_trim(str_cut(&rest, ','));
		size_t i = 0;

		while (i < FORMATS && !str_is(name, formats_known[i].name))
			i++;
		if (i == FORMATS)
			return err_set(e, ERR_USAGE, "%s: '%.*s' is not png, svg, pdf or terminal", option,
				       (int)name.n, name.p ? name.p : "");
		*formats |= formats_known[i].bit;
	} while (rest.n);
	return 0;
}

static int check(int status, const struct buf *said, struct err *e)
{
	struct str text = str_trim(buf_str(said));

	if (status <= 0)
		return status;
	return err_set(e, ERR_RUN, "gnuplot ended with %d: %.*s", status,
		       (int)(text.n < SAID_BYTES ? text.n : SAID_BYTES), text.p ? text.p : "");
}

int gnuplot_draw(const char *script_path, struct err *e)
{
	const char *const argv[] = { PROGRAM, script_path, NULL };
	struct buf said = { 0 };
	int rc = check(tool_run(argv, STR(""), SECONDS, &said, NULL, e), &said, e);

	buf_release(&said);
	return rc;
}

int gnuplot_draw_text(struct str script, struct buf *out, struct err *e)
{
	/* Without the user's own settings, which may be for another terminal. */
	static const char *const argv[] = { PROGRAM, "-d", NULL };
	struct buf said = { 0 };
	int rc = check(tool_run(argv, script, SECONDS, out, &said, e), &said, e);

	buf_release(&said);
	return rc;
}

/* ---- figures ---- */

/* Writes STEM.SUFFIX, one of the files next to the picture. */
static int write_beside(const char *stem, const char *suffix, const struct buf *text, struct err *e)
{
	struct buf path = { 0 };
	int rc;

	buf_printf(&path, "%s.%s", stem, suffix);
	rc = text->is_over ? err_set(e, ERR_LIMIT, "%s: more than BUF_BYTES_MAX", path.data) :
	     file_write_atomic(path.data, buf_str(text), e);
	buf_release(&path);
	return rc;
}

/* In the folder of the script, so that script, table and picture can be moved together. */
static int draw_in(const char *dir, const char *name, const char *format, unsigned columns,
		   struct buf *screen, struct err *e)
{
	struct buf settings = { 0 }, script = { 0 }, said = { 0 }, drawn = { 0 };
	int rc;

	buf_add_text(&settings, "cd ");
	plot_add_quoted(&settings, dir);
	buf_printf(&settings, "; format='%s'; columns=%u", format, columns);
	buf_printf(&script, "./%s.gp", name);
	rc = check(tool_run((const char *const[]){ PROGRAM, "-d", "-e", settings.data, script.data,
						   NULL }, STR(""), SECONDS, &drawn, &said, e), &said, e);
	if (rc == 0)
		report_charts_trim(buf_str(&drawn), screen);
	buf_release(&settings);
	buf_release(&script);
	buf_release(&said);
	buf_release(&drawn);
	return rc;
}

static int draw_all(const char *stem, unsigned formats, unsigned columns, struct buf *screen,
		    struct err *e)
{
	const char *slash = strrchr(stem, '/');
	char *dir = slash == stem ? mem_text("/") : slash ? mem_copy(stem, (size_t)(slash - stem)) :
		    mem_text(".");
	const char *name = slash ? slash + 1 : stem;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < FORMATS; i++)
		if (formats & formats_known[i].bit)
			rc = draw_in(dir, name, formats_known[i].name, columns, screen, e);
	free(dir);
	return rc < 0 ? err_wrap(e, "%s.gp", stem) : 0;
}

int gnuplot_figure(const struct figure *f, const char *stem, unsigned formats, unsigned columns,
		   struct buf *screen, struct err *e)
{
	const char *slash = strrchr(stem, '/');
	struct buf data = { 0 }, script = { 0 };
	int rc = -1;

	figure_data(f, &data);
	figure_script(f, slash ? slash + 1 : stem, &script);
	if (write_beside(stem, "dat", &data, e) == 0 && write_beside(stem, "gp", &script, e) == 0)
		rc = gnuplot_exists() ?
		     draw_all(stem, formats, columns ? columns : COLUMNS_DEFAULT, screen, e) :
		     err_set(e, ERR_RUN, "gnuplot is not installed, so there is no picture; it would draw "
			     "%s.gp, which was written with its data", stem);
	buf_release(&data);
	buf_release(&script);
	return rc;
}

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
