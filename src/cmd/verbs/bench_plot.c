/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_plot.c - `profllm bench sweep plot` and `plot_pareto`: figures of what sweeps left behind.
 *
 * Lines on the terminal are upstream's; what ours adds follows them. Script and data stay beside
 * each figure.
 */
#include "bench/sweep/gnuplot.h"
#include "cmd/console/cli.h"
#include "cmd/console/plots.h"
#include "cmd/verbs/cmd.h"
#include "cmd/verbs/plot_gpus.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/json/python.h"
#include "out/figure/plots.h"

struct plot_opts {
	struct opt_list dir;
	const char *fig_dir, *fig_by, *row_by, *col_by, *curve_by, *filter_by, *bin_by;
	const char *var_x, *var_y;
	const char *scale_x, *scale_y, *fig_name, *format;
	bool no_error_bars, dry_run;
	double fig_height;
	int64_t fig_dpi;
	struct plot_look look;
};

#define DIRECTORY "EXPERIMENT_DIR"
#define FORMAT_HELP "Comma list of png, svg, pdf, terminal (drawn as text); script and data are " \
	"always written."
#define P(member, name, ...) OPT(struct plot_opts, member, name, __VA_ARGS__)
#define WHAT "What is drawn"
#define HOW "How"

static const struct opt plot_rows[] = {
	P(dir, DIRECTORY, .flags = OPT_POSITIONAL | OPT_MANY,
	  .help = "Folder with results of sweeps: every summary.json below it."),
	P(var_x, "var-x", .group = WHAT, .arg = "KEY", .help = "Variable of the x axis."),
	P(var_y, "var-y", .group = WHAT, .arg = "KEY", .help = "Variable of the y axis."),
	P(fig_by, "fig-by", .group = WHAT, .arg = "KEYS",
	  .help = "Comma list: a figure for each combination of these variables."),
	P(row_by, "row-by", .group = WHAT, .arg = "KEYS",
	  .help = "Comma list: a row of panels for each combination."),
	P(col_by, "col-by", .group = WHAT, .arg = "KEYS",
	  .help = "Comma list: a column of panels for each combination."),
	P(curve_by, "curve-by", .group = WHAT, .arg = "KEYS",
	  .help = "Comma list: a curve for each combination; the first three variables are told by "
		  "colour, dash and width, more become one."),
	P(filter_by, "filter-by", .group = WHAT, .arg = "TESTS",
	  .help = "Comma list of tests that a result must pass, such as "
		  "max_concurrency<1000,backend==vllm; operators ==, !=, <=, >=, <, >."),
	P(bin_by, "bin-by", .group = WHAT, .arg = "BINS",
	  .help = "Comma list of bins, such as request_throughput%1: values become the lower end of "
		  "their bin."),
	P(no_error_bars, "no-error-bars", .group = WHAT,
	  .help = "No bands of the standard deviation where several runs have the same x."),
	P(scale_x, "scale-x", .group = HOW, .choices = figure_scale_names,
	  .help = "Scale of the x axis."),
	P(scale_y, "scale-y", .group = HOW, .choices = figure_scale_names,
	  .help = "Scale of the y axis."),
	P(fig_dir, "fig-dir", .group = HOW, .arg = "DIR",
	  .help = "Where figures go, seen from the experiment's folder."),
	P(fig_name, "fig-name", .group = HOW, .arg = "NAME",
	  .help = "Begins the names of the files; values of --fig-by follow."),
	P(fig_height, "fig-height", .group = HOW, .arg = "INCHES", .min = 1, .max = 50,
	  .help = "Height of each panel in inches."),
	P(fig_dpi, "fig-dpi", .group = HOW, .arg = "DPI", .min = 20, .max = 1200,
	  .help = "Dots per inch of a PNG."),
	PLOT_LOOK_ROWS(struct plot_opts, HOW, OPT_OURS),
	P(format, "format", .group = HOW, .flags = OPT_OURS, .arg = "LIST", .help = FORMAT_HELP),
	P(dry_run, "dry-run", .group = HOW, .help = "Tells what would be drawn, and draws nothing."),
};
static const struct plot_opts plot_defaults = {
	.fig_dir = "", .fig_by = "", .row_by = "", .col_by = "", .filter_by = "", .bin_by = "",
	.var_x = "total_token_throughput", .var_y = "median_ttft_ms", .fig_name = "FIGURE",
	.format = "png", .fig_height = 6.4, .fig_dpi = 300,
};
const struct opt_set cmd_bench_sweep_plot_set = {
	.command = "bench sweep plot",
	.summary = "Draws curves from the results of sweeps.",
	.usage = "EXPERIMENT_DIR [options]",
	.epilog = "Examples:\n"
		  "  profllm bench sweep plot results/20260101_120000 --curve-by max_num_seqs\n"
		  "  profllm bench sweep plot results --var-x max_concurrency --var-y p99_ttft_ms \\\n"
		  "      --col-by max_num_batched_tokens --scale-x log --format png,svg",
	OPT_SET_OF(plot_rows, plot_defaults),
	.takes_prefixes = true,
};

struct pareto_opts {
	struct opt_list dir;
	const char *user_count_var, *gpu_count_var, *label_by, *format;
	bool dry_run, strict, average_runs;
	struct plot_look look;
};

#define R(member, name, ...) OPT(struct pareto_opts, member, name, __VA_ARGS__)
static const struct opt pareto_rows[] = {
	R(dir, DIRECTORY, .flags = OPT_POSITIONAL | OPT_MANY,
	  .help = "Folder with results of sweeps: every summary.json below it."),
	R(user_count_var, "user-count-var", .arg = "KEY",
	  .help = "Variable with the number of users; without a value request_rate, then the observed "
		  "peak max_concurrent_requests."),
	R(gpu_count_var, "gpu-count-var", .arg = "KEY",
	  .help = "Variable with the number of GPUs; else num_gpus or gpu_count, else tensor x "
		  "pipeline x data parallel size."),
	R(label_by, "label-by", .arg = "KEYS", .help = "Comma list of what is written beside points of "
	  "the frontier."),
	R(strict, "strict", .flags = OPT_OURS,
	  .help = "Leaves points out of the frontier that another one equals in one measure and "
		  "beats in the other."),
	R(average_runs, "average-runs", .flags = OPT_OURS,
	  .help = "One point for all runs of the same parameters, their mean."),
	PLOT_LOOK_ROWS(struct pareto_opts, NULL, OPT_OURS),
	R(format, "format", .flags = OPT_OURS, .arg = "LIST", .help = FORMAT_HELP),
	R(dry_run, "dry-run", .help = "Tells what would be drawn, and draws nothing."),
};
static const struct pareto_opts pareto_defaults = {
	.user_count_var = "max_concurrency", .label_by = "max_concurrency,gpu_count", .format = "png",
};
const struct opt_set cmd_bench_sweep_pareto_set = {
	.command = "bench sweep plot_pareto",
	.summary = "Draws tokens/s per user against tokens/s per GPU, and their Pareto frontier.",
	.usage = "EXPERIMENT_DIR [options]",
	.epilog = "Examples:\n"
		  "  profllm bench sweep plot_pareto results/20260101_120000\n"
		  "  profllm bench sweep plot_pareto results --average-runs --label-by max_concurrency,tp",
	OPT_SET_OF(pareto_rows, pareto_defaults),
	.takes_prefixes = true,
};

/* ---- names ---- */

/*
 * As pathlib joins and shows paths: no "." in them, no slash twice, an absolute name stands alone.
 */
static char *python_path(const char *dir, const char *name)
{
	char *joined = file_join(dir, name);
	struct str rest = str_of(joined);
	struct buf out = { 0 };

	if (rest.n && *rest.p == '/')
		buf_add_char(&out, '/');
	while (rest.n) {
		struct str part = str_cut(&rest, '/');

		if (part.n == 0 || str_is(part, "."))
			continue;
		if (out.len && out.data[out.len - 1] != '/')
			buf_add_char(&out, '/');
		buf_add_str(&out, part);
	}
	if (out.len == 0)
		buf_add_char(&out, '.');
	free(joined);
	return buf_take(&out);
}

static void strip(struct str *s, char c)
{
	while (s->n && *s->p == c)
		s->p++, s->n--;
	while (s->n && s->p[s->n - 1] == c)
		s->n--;
}

/* NAME-k=v-k=v.png without what a file's name must not hold (sweep spec 7.4). */
static char *figure_name(const char *name, const struct frame_keys *keys,
			 const struct frame_group *g, const char *suffix)
{
	struct buf raw = { 0 }, safe = { 0 }, out = { 0 };
	struct str s;

	buf_add_text(&raw, name);
	for (size_t k = 0; k < keys->n; k++)
		buf_printf(&raw, "-%.*s=%.*s", (int)keys->name[k].n, keys->name[k].p, (int)g->text[k].n,
			   g->text[k].n ? g->text[k].p : "");
	buf_add_text(&raw, suffix);
	for (size_t i = 0; i < raw.len; i++) {
		bool is_up = raw.data[i] == '.' && raw.data[i + 1] == '.';

		buf_add_text(&safe, is_up ? "__" : raw.data[i] == '/' ? "_" : "");
		if (!is_up && raw.data[i] != '/')
			buf_add_char(&safe, raw.data[i]);
		i += is_up;
	}
	s = buf_str(&safe);
	strip(&s, '\'');
	strip(&s, '"');
	buf_add_str(&out, s);
	buf_release(&raw);
	buf_release(&safe);
	return buf_take(&out);
}

/* The path without .png: what script, data and pictures share. Caller frees. */
static char *stem_of(const char *path)
{
	struct str s = str_of(path);

	return mem_copy(path, s.n - (str_ends(s, STR(".png")) ? strlen(".png") : 0));
}

/* The suffix of the file that is told of. */
static const char *first_suffix(unsigned formats)
{
	return formats & GNUPLOT_PNG ? ".png" : formats & GNUPLOT_SVG ? ".svg" :
	       formats & GNUPLOT_PDF ? ".pdf" : ".gp";
}

/* ---- both verbs ---- */

struct job {
	struct frame all;
	char *fig_dir;
	unsigned formats;
};

static int open_job(struct job *job, const struct opt_list *dir, const char *fig_dir,
		    const char *format, struct arena *a, struct err *e)
{
	if (dir->n != 1)
		return err_set(e, ERR_USAGE, "%s: one folder is expected, not %zu", DIRECTORY, dir->n);
	if (gnuplot_formats("--format", format, &job->formats, e) < 0)
		return -1;
	if (!file_exists(dir->v[0]))
		return err_set(e, ERR_RUN, "No parameter sweep results under %s", dir->v[0]);
	if (frame_read_sweep(&job->all, dir->v[0], a, e) < 0)
		return -1;
	job->fig_dir = python_path(dir->v[0], fig_dir);
	return file_mkdirs(job->fig_dir, e);
}

static void say(struct buf *line)
{
	buf_add_char(line, '\n');
	cli_out(buf_str(line));
	buf_release(line);
}

static void say_text(const char *text)
{
	struct buf line = { 0 };

	buf_add_text(&line, text);
	say(&line);
}

static void say_group(const struct frame_keys *keys, const struct frame_group *g)
{
	struct buf line = { 0 };

	say_text("[BEGIN FIGURE]");
	buf_add_text(&line, "Group: {");
	for (size_t k = 0; k < keys->n; k++) {
		if (k)
			buf_add_text(&line, ", ");
		json_repr_str(&line, keys->name[k]);
		buf_add_text(&line, ": ");
		json_repr_str(&line, g->text[k]);
	}
	buf_add_char(&line, '}');
	say(&line);
}

static void say_output(const char *stem, unsigned formats)
{
	struct buf line = { 0 };

	buf_printf(&line, "Output file: %s%s", stem, first_suffix(formats));
	say(&line);
}

static int draw(const struct figure *f, const char *stem, unsigned formats, struct err *e)
{
	struct buf screen = { 0 };
	size_t left_out = figure_left_out(f);
	int rc = gnuplot_figure(f, stem, formats, cli_columns(40, 160, 100), &screen, e);

	if (screen.len)
		cli_out(buf_str(&screen));
	if (left_out) {
		struct buf text = { 0 };

		buf_printf(&text, "%s: %zu of its points are not drawn: not finite, or not on an axis "
			   "of this scale", stem, left_out);
		cli_warn(text.data);
		buf_release(&text);
	}
	buf_release(&screen);
	return rc;
}

/* ---- plot ---- */

static int read_plot(const struct plot_opts *o, struct sweep_plot *p, struct frame_keys *fig_by,
		     struct arena *a, struct err *e)
{
	*fig_by = frame_keys(o->fig_by, a);
	*p = (struct sweep_plot){
		.row_by = frame_keys(o->row_by, a), .col_by = frame_keys(o->col_by, a),
		.curve_by = frame_keys(o->curve_by, a), .var_x = o->var_x, .var_y = o->var_y,
		.has_errors = !o->no_error_bars, .height_in = o->fig_height,
		.dpi = (unsigned)o->fig_dpi,
	};
	if (figure_scale_parse(&p->scale_x, o->scale_x, e) < 0 ||
	    figure_scale_parse(&p->scale_y, o->scale_y, e) < 0)
		return -1;
	return frame_parse_filters(&p->filter_by, o->filter_by, a, e) < 0 ? -1 :
	       frame_parse_bins(&p->bin_by, o->bin_by, a, e);
}

static const char *group_title(const struct frame_keys *keys, const struct frame_group *g,
			       struct arena *a)
{
	const char *title = NULL;

	for (size_t k = 0; k < keys->n; k++)
		title = arena_printf(a, "%s%s%.*s=%.*s", k ? title : "", k ? ", " : "",
				     (int)keys->name[k].n, keys->name[k].p, (int)g->text[k].n,
				     g->text[k].n ? g->text[k].p : "");
	return title;
}

static void say_no_data(const struct frame_filters *filters)
{
	struct buf line = { 0 };

	buf_add_text(&line, "No data to plot. Filters: ");
	frame_filters_text(filters, &line);
	say(&line);
}

/* In a folder that exists, under a name that is told before. */
static int plot_group(const struct plot_opts *o, const struct job *job, struct sweep_plot *p,
		      const struct frame_keys *fig_by, const struct frame_group *g,
		      struct arena *a, struct err *e)
{
	char *name = figure_name(o->fig_name, fig_by, g, ".png");
	char *path = python_path(job->fig_dir, name), *stem = stem_of(path);
	struct buf line = { 0 };
	struct figure figure;
	size_t rows, cols;
	int rc = sweep_plot_grid(&g->frame, p, &rows, &cols, a, e);

	if (rc == 0) {
		say_group(fig_by, g);
		buf_printf(&line, "Grid: %zu rows x %zu cols", rows, cols);
		say(&line);
		say_output(stem, job->formats);
	}
	if (rc == 0 && !o->dry_run) {
		p->title = group_title(fig_by, g, a);
		rc = sweep_plot_figure(&g->frame, p, &figure, a, e);
		if (rc > 0 && plot_look_apply(&o->look, &figure, e) < 0)
			rc = -1;
		if (rc > 0)
			rc = draw(&figure, stem, job->formats, e);
		else if (rc == 0)
			say_no_data(&p->filter_by);
	}
	if (rc == 0)
		say_text("[END FIGURE]");
	free(name);
	free(path);
	free(stem);
	return rc;
}

static int plot_all(const struct plot_opts *o, struct arena *a, struct err *e)
{
	struct job job = { 0 };
	struct sweep_plot plot;
	struct frame_keys fig_by;
	struct frame_groups groups;
	int rc = read_plot(o, &plot, &fig_by, a, e);

	if (rc == 0)
		rc = open_job(&job, &o->dir, o->fig_dir, o->format, a, e);
	if (rc == 0)
		rc = frame_group_by(&job.all, &fig_by, &groups, a, e);
	for (size_t i = 0; rc == 0 && i < groups.n; i++)
		rc = plot_group(o, &job, &plot, &fig_by, &groups.item[i], a, e);
	free(job.fig_dir);
	return rc;
}

int cmd_bench_sweep_plot(struct cli *cli, void *values)
{
	struct plot_opts *o = values;

	return plot_all(o, &cli->arena, &cli->err);
}

/* ---- plot_pareto ---- */

/* After upstream's lines: which number of users the points are made with. */
static void say_users(const struct sweep_pareto *p, const struct pareto_opts *o)
{
	const char *const name[SWEEP_USERS_KINDS] = {
		o->user_count_var, "request_rate", "max_concurrent_requests (the observed peak)",
	};
	struct buf line = { 0 };

	for (size_t i = 0; i < SWEEP_USERS_KINDS; i++)
		if (p->n_by[i])
			buf_printf(&line, "%s%s (%zu %s)", line.len ? ", " : "Users: ", name[i], p->n_by[i],
				   p->n_by[i] == 1 ? "run" : "runs");
	say(&line);
}

static int save_csv(const struct sweep_pareto *p, const char *stem, struct err *e)
{
	struct buf csv = { 0 }, path = { 0 };
	int rc;

	sweep_pareto_csv(p, &csv);
	buf_printf(&path, "%s.csv", stem);
	rc = file_write_atomic(path.data, buf_str(&csv), e);
	buf_release(&csv);
	buf_release(&path);
	return rc;
}

static int draw_pareto(const struct pareto_opts *o, const struct sweep_pareto *p,
		       const struct sweep_pareto_opts *how, const char *stem, unsigned formats,
		       struct arena *a, struct err *e)
{
	struct frame_group group = { 0 };
	struct frame_keys none = { 0 };
	size_t usable = sweep_pareto_usable(p);
	struct buf line = { 0 };
	struct figure figure;

	say_group(&none, &group);
	say_output(stem, formats);
	if (!o->dry_run && usable == 0)
		say_text("No data points available after filtering; skipping.");
	if (!o->dry_run && usable) {
		sweep_pareto_figure(p, how, &figure, a);
		if (plot_look_apply(&o->look, &figure, e) < 0 || save_csv(p, stem, e) < 0 ||
		    draw(&figure, stem, formats, e) < 0)
			return -1;
		buf_printf(&line, "Plotted %zu points; Pareto frontier size: %zu.", usable,
			   p->n_frontier);
		say(&line);
	}
	say_text("[END FIGURE]");
	if (!o->dry_run && usable)
		say_users(p, o);
	return 0;
}

static int pareto_all(const struct pareto_opts *o, struct arena *a, struct err *e)
{
	struct sweep_pareto_opts how = {
		.user_count_var = o->user_count_var, .gpu_count_var = o->gpu_count_var,
		.label_by = frame_keys(o->label_by, a), .is_averaged = o->average_runs,
		.rule = o->strict ? PARETO_STRICT : PARETO_WEAK,
	};
	struct job job = { 0 };
	struct sweep_pareto p;
	struct buf line = { 0 };
	char *stem = NULL;
	int rc = open_job(&job, &o->dir, "pareto", o->format, a, e);

	if (rc == 0) {
		plot_gpus_warn(o->dir.v[0], &job.all, o->gpu_count_var ? o->gpu_count_var : "");
		rc = sweep_pareto(&p, &job.all, &how, a, e);
	}
	if (rc == 0 && p.n_skipped) {
		buf_printf(&line, "Skipped %zu runs without a user count (`max_concurrency` or "
			   "`max_concurrent_requests`).", p.n_skipped);
		say(&line);
	}
	if (rc == 0 && p.points.n == 0)
		rc = err_set(e, ERR_RUN, "No data points with both throughput and user count available to "
			     "plot Pareto frontier.");
	if (rc == 0) {
		stem = python_path(job.fig_dir, "PARETO");
		rc = draw_pareto(o, &p, &how, stem, job.formats, a, e);
	}
	free(stem);
	free(job.fig_dir);
	return rc;
}

int cmd_bench_sweep_pareto(struct cli *cli, void *values)
{
	struct pareto_opts *o = values;

	return pareto_all(o, &cli->arena, &cli->err);
}
