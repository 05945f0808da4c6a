/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_plot.c - `profllm bench sweep plot` and `plot_pareto`: figures of finished sweeps; `profllm
 * bench plot`: a figure of any results.
 *
 * The sweep verbs print upstream's lines, followed by ours. Script and data are kept next to each
 * figure.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/options/gpu_price.h"
#include "bench/sweep/gnuplot.h"
#include "cmd/console/cli.h"
#include "cmd/console/plots.h"
#include "cmd/verbs/cmd.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/json/python.h"
#include "core/schema/schema.h"
#include "host/engine/args.h"
#include "out/figure/plots.h"
#include "out/report/derived.h"
#include "results/read/files.h"
#include "results/read/kind.h"
#include "results/read/read.h"

static bool is_reported(const struct frame *records, const char *gpu_count_var)
{
	static const char *const keys[] = {
		"num_gpus", "gpu_count", "tensor_parallel_size", "tp", "pipeline_parallel_size", "pp",
		"data_parallel_size", "dp",
	};

	if (*gpu_count_var && frame_has_column(records, str_of(gpu_count_var)))
		return true;
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		char dashed[32];

		snprintf(dashed, sizeof(dashed), "%s", keys[i]);
		for (char *c = dashed; *c; c++)
			*c = *c == '_' ? '-' : *c;
		if (frame_has_column(records, str_of(keys[i])) ||
		    frame_has_column(records, str_of(dashed)))
			return true;
	}
	return false;
}

static int64_t gpus_of(const struct json_value *start, struct arena *a)
{
	const struct json_value *command = json_get(start, "command");
	char **argv;

	if (!command || command->kind != JSON_ARRAY)
		return 1;
	argv = arena_alloc(a, (command->count + 1) * sizeof(*argv));
	for (size_t i = 0; i < command->count; i++)
		argv[i] = arena_text(a, json_text(&command->item[i], STR("")));
	return engine_argv_gpus(argv);
}

/*
 * Warns when servers.json of the experiment's folder names a server of several GPUs and no record
 * has a number that plot_pareto would count by: every server is then counted as one GPU, as
 * upstream does. gpu_count_var: the column that the user named; may be "".
 */
static void plot_gpus_warn(const char *folder, const struct frame *records,
			   const char *gpu_count_var)
{
	char *path = file_join(folder, RESULT_SERVERS);
	const struct json_value *starts = NULL;
	struct arena a = { 0 };
	struct buf text = { 0 };
	int64_t most = 1;

	if (!is_reported(records, gpu_count_var) && file_exists(path))
		starts = result_json(path, FRAME_FILE_BYTES_MAX, &a, NULL);
	if (starts && starts->kind == JSON_ARRAY)
		for (size_t i = 0; i < starts->count; i++) {
			int64_t gpus = gpus_of(&starts->item[i], &a);

			most = gpus > most ? gpus : most;
		}
	if (most > 1) {
		buf_printf(&text, "%s names a server of %" PRId64 " GPUs, but the results do not, so each is "
			   "counted as one: sweep tensor_parallel_size by --serve-params, or give the "
			   "benchmark --metadata num_gpus=%" PRId64, path, most, most);
		cli_warn(text.data);
	}
	buf_release(&text);
	arena_release(&a);
	free(path);
}

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
	  .help = "folder with results of sweeps: every summary.json below it"),
	P(var_x, "var-x", .group = WHAT, .arg = "KEY", .help = "variable of the x axis"),
	P(var_y, "var-y", .group = WHAT, .arg = "KEY", .help = "variable of the y axis"),
	P(fig_by, "fig-by", .group = WHAT, .arg = "KEYS",
	  .help = "comma list: a figure for each combination of these variables"),
	P(row_by, "row-by", .group = WHAT, .arg = "KEYS",
	  .help = "comma list: a row of panels for each combination"),
	P(col_by, "col-by", .group = WHAT, .arg = "KEYS",
	  .help = "comma list: a column of panels for each combination"),
	P(curve_by, "curve-by", .group = WHAT, .arg = "KEYS",
	  .help = "comma list: a curve for each combination; the first three variables are shown by "
		  "color, dash and width; further ones are combined"),
	P(filter_by, "filter-by", .group = WHAT, .arg = "TESTS",
	  .help = "comma list of tests that a result must pass, such as "
		  "max_concurrency<1000,backend==vllm; operators ==, !=, <=, >=, <, >"),
	P(bin_by, "bin-by", .group = WHAT, .arg = "BINS",
	  .help = "comma list of bins, such as request_throughput%1: values become the lower end of "
		  "their bin"),
	P(no_error_bars, "no-error-bars", .group = WHAT,
	  .help = "draw no bands of the standard deviation where several runs have the same x"),
	P(scale_x, "scale-x", .group = HOW, .choices = figure_scale_names,
	  .help = "scale of the x axis"),
	P(scale_y, "scale-y", .group = HOW, .choices = figure_scale_names,
	  .help = "scale of the y axis"),
	P(fig_dir, "fig-dir", .group = HOW, .arg = "DIR",
	  .help = "folder for the figures, relative to the experiment's folder"),
	P(fig_name, "fig-name", .group = HOW, .arg = "NAME",
	  .help = "prefix of the file names; values of --fig-by follow"),
	P(fig_height, "fig-height", .group = HOW, .arg = "INCHES", .min = 1, .max = 50,
	  .help = "height of each panel in inches"),
	P(fig_dpi, "fig-dpi", .group = HOW, .arg = "DPI", .min = 20, .max = 1200,
	  .help = "dots per inch of a PNG"),
	PLOT_LOOK_ROWS(struct plot_opts, HOW, OPT_OURS),
	P(format, "format", .group = HOW, .flags = OPT_OURS, .arg = "LIST", .help = FORMAT_HELP),
	P(dry_run, "dry-run", .group = HOW, .help = "print what would be drawn, and draw nothing"),
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
	  .help = "folder with results of sweeps: every summary.json below it"),
	R(user_count_var, "user-count-var", .arg = "KEY",
	  .help = "variable with the number of users; without a value request_rate, then the observed "
		  "peak max_concurrent_requests"),
	R(gpu_count_var, "gpu-count-var", .arg = "KEY",
	  .help = "variable with the number of GPUs; else num_gpus or gpu_count, else tensor x "
		  "pipeline x data parallel size"),
	R(label_by, "label-by", .arg = "KEYS", .help = "comma list of variables to label points of "
	  "the frontier with; default: their load"),
	R(strict, "strict", .flags = OPT_OURS,
	  .help = "leave out points of the frontier that another point equals in one measure and "
		  "exceeds in the other"),
	R(average_runs, "average-runs", .flags = OPT_OURS,
	  .help = "one point for all runs of the same parameters, their mean"),
	PLOT_LOOK_ROWS(struct pareto_opts, NULL, OPT_OURS),
	R(format, "format", .flags = OPT_OURS, .arg = "LIST", .help = FORMAT_HELP),
	R(dry_run, "dry-run", .help = "print what would be drawn, and draw nothing"),
};
static const struct pareto_opts pareto_defaults = {
	.user_count_var = "max_concurrency", .format = "png",
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
 * Joins and prints paths as pathlib does: no "." in them, no double slash; an absolute name
 * replaces the folder.
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

/* NAME-k=v-k=v.png without characters that are invalid in a file name (sweep spec 7.4). */
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

/* The path without .png, shared by script, data and pictures. Caller frees. */
static char *stem_of(const char *path)
{
	struct str s = str_of(path);

	return mem_copy(path, s.n - (str_ends(s, STR(".png")) ? strlen(".png") : 0));
}

/* The suffix of the file that is reported. */
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
		return err_set(e, ERR_USAGE, "%s does not exist; expected the folder of a sweep",
			       dir->v[0]);
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

/* Draws one figure into an existing folder, under the name already printed. */
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

static void warn_degraded(size_t n, size_t all)
{
	struct buf text = { 0 };

	if (!n)
		return;
	buf_printf(&text, "%zu of the %zu results that are drawn %s DEGRADED", n, all,
		   n == 1 ? "is" : "are");
	cli_warn(text.data);
	buf_release(&text);
}

/* Whether a drawn variable is measured and DEGRADED in the run; parameters have no verdict. */
static bool is_degraded(const struct json_value *run, const char *var)
{
	const struct schema_field *f = schema_field_find(var);

	return f && strcmp(f->group, "setup") != 0 &&
	       result_verdict(run, str_of(var)) == RESULT_DEGRADED;
}

static void warn_verdicts(const struct frame *f, const struct sweep_plot *p)
{
	struct buf text = { 0 };
	size_t n = 0, degraded = 0;

	for (size_t i = 0; i < f->n; i++) {
		enum result_verdict x = result_verdict(f->row[i], str_of(p->var_x));
		enum result_verdict y = result_verdict(f->row[i], str_of(p->var_y));

		n += x == RESULT_INVALID || y == RESULT_INVALID;
		degraded += is_degraded(f->row[i], p->var_x) || is_degraded(f->row[i], p->var_y);
	}
	warn_degraded(degraded, f->n);
	if (n) {
		buf_printf(&text, "%s or %s is INVALID in %zu of the %zu results; --filter-by "
			   "profllm.verdict!=INVALID leaves them out", p->var_x, p->var_y, n, f->n);
		cli_warn(text.data);
	}
	buf_release(&text);
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
		warn_verdicts(&job.all, &plot);
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

/* Prints, after upstream's lines, which number of users the points are made with. */
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
		.label_by = frame_keys(o->label_by ? o->label_by : "", a), .is_averaged = o->average_runs,
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
	if (rc == 0 && p.n_invalid) {
		buf_printf(&line, "%zu of %zu results, in which output_throughput is INVALID, are left out",
			   p.n_invalid, job.all.n);
		cli_warn(line.data);
		buf_reset(&line);
	}
	if (rc == 0)
		warn_degraded(p.n_degraded, p.n_by[SWEEP_USERS_ASKED] + p.n_by[SWEEP_USERS_RATE] +
				       p.n_by[SWEEP_USERS_PEAK]);
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

/* ---- bench plot: results of any kind, files, folders, suites' documents, sweeps, a store ---- */

struct plot_results_opts {
	struct opt_list result;
	const char *store, *kind, *x, *y, *by, *output, *format;
	const char *xscale, *yscale, *gpus, *gpu_price;
	struct opt_json filter;
	bool include_invalid;
	int64_t dpi;
	struct plot_look look;
};

#define P_RESULT(member, name, ...) OPT(struct plot_results_opts, member, name, __VA_ARGS__)

static const struct kind { const char *name, *x, *y; bool has_frontier; } known[] = {
	{ "latency", "output_throughput", "p99_ttft_ms", false },
	{ "pareto", "output_throughput", "p99_ttft_ms", true },
	{ "per-gpu", "output_throughput_per_user", "output_throughput_per_gpu", true },
};
static const char *const kinds[] = { "latency", "pareto", "per-gpu", NULL };

static const struct opt result_rows[] = {
	P_RESULT(result, "RESULT", .flags = OPT_POSITIONAL,
	  .help = "result of a benchmark, document of an experiment or a suite, folder of results or "
		  "of sweeps"),
	P_RESULT(store, "store", .group = WHAT, .arg = "URL", .words = "db database",
	  .help = "the runs of a store: sqlite:PATH or postgresql://..."),
	P_RESULT(filter, "filter", .group = WHAT, .arg = "JSON",
	  .help = "with --store: draw only runs that match this filter, as in profllm export"),
	P_RESULT(kind, "kind", .group = WHAT, .choices = kinds,
	  .help = "curve: latency over throughput, a curve for each configuration and a point for "
		  "each load; pareto: only the results that no other result exceeds in both; "
		  "per-gpu: tokens/s/user against tokens/s/GPU with that frontier"),
	P_RESULT(x, "x", .group = WHAT, .arg = "METRIC", .words = "var-x",
	  .help = "metric of the x axis; default: by --kind, output_throughput"),
	P_RESULT(y, "y", .group = WHAT, .arg = "METRIC", .words = "var-y",
	  .help = "metric of the y axis; default: by --kind, p99_ttft_ms"),
	P_RESULT(by, "by", .group = WHAT, .arg = "KEYS", .words = "curve-by",
	  .help = "comma list: a curve for each combination of these; default: every parameter that "
		  "differs"),
	GPU_PRICE_ROWS(struct plot_results_opts, WHAT, 0),
	P_RESULT(include_invalid, "include-invalid", .group = WHAT,
	  .help = "also draw runs in which one of the two metrics is INVALID"),
	P_RESULT(xscale, "xscale", .group = HOW, .choices = figure_scale_names, .help = "scale of the x axis"),
	P_RESULT(yscale, "yscale", .group = HOW, .choices = figure_scale_names, .help = "scale of the y axis"),
	PLOT_LOOK_ROWS(struct plot_results_opts, HOW, 0),
	P_RESULT(dpi, "dpi", .group = HOW, .arg = "DPI", .min = 20, .max = 1200,
	  .help = "dots per inch of a PNG"),
	P_RESULT(format, "format", .group = HOW, .arg = "LIST",
	  .help = "comma list of png, svg, pdf, terminal (drawn as text); script and data are always "
		  "written"),
	P_RESULT(output, "output", .group = HOW, .arg = "FILE", .words = "out -o",
	  .help = "the figure's path, with or without ending; default: next to the first result, "
		  "NAME-KIND"),
};
static const struct plot_results_opts result_defaults = { .kind = "latency", .format = "png", .dpi = 150 };
static const char *const groups[] = { WHAT, HOW, NULL };

const struct opt_set cmd_bench_plot_set = {
	.command = "bench plot",
	.summary = "Draws results of any kind: latency over throughput, or the Pareto frontier.",
	.usage = "RESULT... [options]",
	.epilog = "Examples:\n"
		  "  profllm bench plot results.json\n"
		  "  profllm bench plot curve/ --y p99_tpot_ms --title 'One GPU' --ylim 0:50 --format svg\n"
		  "  profllm bench plot a.json b.json --kind pareto --by max_num_seqs\n"
		  "  profllm bench plot --store sqlite:runs.db --kind per-gpu --by server.model",
	OPT_SET_OF(result_rows, result_defaults), .groups = groups,
};

static int read_store(const struct plot_results_opts *o, struct frame *f, struct arena *a,
		      struct err *e)
{
	struct buf text = { 0 };
	int rc = export_jsonl(o->store, o->filter.text, &text, a, e);

	if (rc == 0)
		rc = frame_read_lines(f, arena_str(a, buf_str(&text)), o->store, a, e);
	if (rc == 0 && !f->n)
		rc = err_set(e, ERR_RUN, "--store: %s has no run%s", o->store,
			     o->filter.text ? " that matches --filter" : "");
	buf_release(&text);
	return rc;
}

static int read_all(const struct plot_results_opts *o, struct frame *f, struct arena *a,
		    struct err *e)
{
	if (o->filter.text && !o->store)
		return err_set(e, ERR_USAGE, "--filter: it chooses runs of a store and needs --store");
	if (!o->result.n && !o->store)
		return err_set(e, ERR_USAGE, "RESULT: expected a result, a folder or --store");
	if (o->store && read_store(o, f, a, e) < 0)
		return -1;
	for (size_t i = 0; i < o->result.n; i++)
		if (frame_read_results(f, o->result.v[i], a, e) < 0)
			return -1;
	return 0;
}

/* Adds columns derived from the number of GPUs, which the command line may set. */
static int add_derived(const struct plot_results_opts *o, struct frame *f, struct arena *a,
		       struct err *e)
{
	struct derived_gpus told = { 0 };
	uint32_t count;

	if (gpu_price_read(o->gpus, o->gpu_price, &count, &told.price_per_hour, e) < 0)
		return -1;
	told.count = count;
	for (size_t i = 0; i < f->n; i++)
		f->row[i] = derived_record(f->row[i], &told, a);
	return 0;
}

/* The path without a picture's suffix; next to the first result unless --output is given. */
static const char *result_stem(const struct plot_results_opts *o, struct arena *a)
{
	static const char *const ending[] = { ".png", ".svg", ".pdf", ".gp" };
	const char *first = o->result.n ? o->result.v[0] : NULL;
	struct str s = str_of(o->output);

	for (size_t i = 0; o->output && i < sizeof(ending) / sizeof(*ending); i++)
		if (str_ends(s, str_of(ending[i])))
			return arena_text(a, (struct str){ s.p, s.n - strlen(ending[i]) });
	if (o->output)
		return o->output;
	if (!first)
		return arena_printf(a, "plot-%s", o->kind);
	if (file_is_dir(first))
		return arena_printf(a, "%s/plot-%s", first, o->kind);
	s = str_of(first);
	if (str_ends(s, STR(".json")))
		s.n -= strlen(".json");
	return arena_printf(a, "%.*s-%s", (int)s.n, s.p, o->kind);
}

static void say_left_out(const struct result_plot_told *t, const struct result_plot *p)
{
	struct buf text = { 0 };

	if (t->n_incomplete)
		buf_printf(&text, "%zu of %zu results have no %s or no %s and are left out", t->n_incomplete,
			   t->n, p->var_x, p->var_y);
	if (text.len)
		cli_warn(text.data);
	buf_reset(&text);
	if (t->n_invalid && !p->has_invalid)
		buf_printf(&text, "%zu of %zu results, in which %s or %s is INVALID, are left out; "
			   "--include-invalid draws them", t->n_invalid, t->n, p->var_x, p->var_y);
	else if (t->n_invalid)
		buf_printf(&text, "%zu of %zu results that are drawn are INVALID", t->n_invalid, t->n);
	if (text.len)
		cli_warn(text.data);
	buf_reset(&text);
	buf_release(&text);
	warn_degraded(t->n_degraded, t->n - t->n_incomplete - (p->has_invalid ? 0 : t->n_invalid));
}

static int draw_result(const struct plot_results_opts *o, struct figure *f, unsigned formats,
		struct arena *a, struct err *e)
{
	const char *stem = result_stem(o, a), *slash = strrchr(stem, '/');
	struct buf screen = { 0 };
	int rc = 0;

	if (slash)
		rc = file_mkdirs(arena_printf(a, "%.*s", (int)(slash - stem) + 1, stem), e);
	if (rc == 0)
		rc = gnuplot_figure(f, stem, formats, cli_columns(40, 160, 100), &screen, e);
	if (screen.len)
		cli_out(buf_str(&screen));
	if (rc == 0)
		printf("Figure: %s%s\n", stem, first_suffix(formats));
	buf_release(&screen);
	return rc;
}

static int plot(const struct plot_results_opts *o, struct arena *a, struct err *e)
{
	const struct kind *kind = known;
	struct result_plot_told told;
	struct frame frame = { 0 };
	struct result_plot p;
	struct figure figure;
	unsigned formats;
	int rc;

	while (strcmp(kind->name, o->kind) != 0)
		kind++; /* its row refused other names */
	p = (struct result_plot){
		.var_x = o->x ? o->x : kind->x, .var_y = o->y ? o->y : kind->y,
		.has_frontier = kind->has_frontier, .has_invalid = o->include_invalid,
		.is_chosen = o->by != NULL,
		.curve_by = frame_keys(o->by, a),
	};
	if (gnuplot_formats("--format", o->format, &formats, e) < 0 ||
	    read_all(o, &frame, a, e) < 0 || add_derived(o, &frame, a, e) < 0)
		return -1;
	rc = result_plot_figure(&frame, &p, &figure, &told, a, e);
	if (rc < 0)
		return -1;
	say_left_out(&told, &p);
	if (rc == 0)
		return err_set(e, ERR_RUN, "nothing is left to be drawn of %zu results", told.n);
	figure.dpi = (unsigned)o->dpi;
	if (figure_scale_parse(&figure.x_scale, o->xscale, e) < 0 ||
	    figure_scale_parse(&figure.y_scale, o->yscale, e) < 0 ||
	    plot_look_apply(&o->look, &figure, e) < 0 || draw_result(o, &figure, formats, a, e) < 0)
		return -1;
	printf("Points: %zu, of %zu results", told.n_points,
	       told.n - told.n_incomplete - (p.has_invalid ? 0 : told.n_invalid));
	if (p.has_frontier)
		printf("; on the Pareto frontier: %zu", told.n_frontier);
	putchar('\n');
	return 0;
}

int cmd_bench_plot(struct cli *cli, void *values)
{
	struct plot_results_opts *o = values;

	return plot(o, &cli->arena, &cli->err);
}
