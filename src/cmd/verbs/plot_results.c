/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plot_results.c - `profllm bench plot`: a figure of results of any kind: files, folders, suites'
 * documents, sweeps, a store. Script and data stay next to the figure.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/options/gpu_price.h"
#include "bench/sweep/gnuplot.h"
#include "cmd/console/cli.h"
#include "cmd/console/plots.h"
#include "cmd/verbs/cmd.h"
#include "core/base/file.h"
#include "out/figure/plots.h"
#include "out/report/derived.h"

struct plot_results_opts {
	struct opt_list result;
	const char *store, *kind, *x, *y, *by, *output, *format;
	const char *xscale, *yscale, *gpus, *gpu_price;
	struct opt_json filter;
	bool include_invalid;
	int64_t dpi;
	struct plot_look look;
};

#define R(member, name, ...) OPT(struct plot_results_opts, member, name, __VA_ARGS__)
#define WHAT "What is drawn"
#define HOW "How"

static const struct kind { const char *name, *x, *y; bool has_frontier; } known[] = {
	{ "latency", "output_throughput", "p99_ttft_ms", false },
	{ "pareto", "output_throughput", "p99_ttft_ms", true },
	{ "per-gpu", "output_throughput_per_user", "output_throughput_per_gpu", true },
};
static const char *const kinds[] = { "latency", "pareto", "per-gpu", NULL };

static const struct opt rows[] = {
	R(result, "RESULT", .flags = OPT_POSITIONAL,
	  .help = "result of a benchmark, document of an experiment or a suite, folder of results or "
		  "of sweeps"),
	R(store, "store", .group = WHAT, .arg = "URL", .words = "db database",
	  .help = "the runs of a store: sqlite:PATH or postgresql://..."),
	R(filter, "filter", .group = WHAT, .arg = "JSON",
	  .help = "with --store: only runs that it holds for, as in profllm export"),
	R(kind, "kind", .group = WHAT, .choices = kinds,
	  .help = "latency over throughput, a curve for each configuration and a point for each load; "
		  "the results that no other one beats in both; or tokens/s/user against tokens/s/GPU "
		  "with those"),
	R(x, "x", .group = WHAT, .arg = "METRIC", .words = "var-x",
	  .help = "metric of the x axis; default: by --kind, output_throughput"),
	R(y, "y", .group = WHAT, .arg = "METRIC", .words = "var-y",
	  .help = "metric of the y axis; default: by --kind, p99_ttft_ms"),
	R(by, "by", .group = WHAT, .arg = "KEYS", .words = "curve-by",
	  .help = "comma list: a curve for each combination of these; default: every parameter that "
		  "differs"),
	GPU_PRICE_ROWS(struct plot_results_opts, WHAT, 0),
	R(include_invalid, "include-invalid", .group = WHAT,
	  .help = "also draw runs in which one of the two metrics is INVALID"),
	R(xscale, "xscale", .group = HOW, .choices = figure_scale_names, .help = "scale of the x axis"),
	R(yscale, "yscale", .group = HOW, .choices = figure_scale_names, .help = "scale of the y axis"),
	PLOT_LOOK_ROWS(struct plot_results_opts, HOW, 0),
	R(dpi, "dpi", .group = HOW, .arg = "DPI", .min = 20, .max = 1200,
	  .help = "dots per inch of a PNG"),
	R(format, "format", .group = HOW, .arg = "LIST",
	  .help = "comma list of png, svg, pdf, terminal (drawn as text); script and data are always "
		  "written"),
	R(output, "output", .group = HOW, .arg = "FILE", .words = "out -o",
	  .help = "the figure's path, with or without ending; default: next to the first result, "
		  "NAME-KIND"),
};
static const struct plot_results_opts defaults = { .kind = "latency", .format = "png", .dpi = 150 };
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
	OPT_SET_OF(rows, defaults), .groups = groups,
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
			     o->filter.text ? " that --filter holds for" : "");
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

/* What follows from the GPUs, with what the command line says of them. */
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

/* Without a picture's ending; next to the first result unless --output says otherwise. */
static const char *stem_of(const struct plot_results_opts *o, struct arena *a)
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
	if (t->n_degraded)
		buf_printf(&text, "%zu of the results that are drawn are DEGRADED", t->n_degraded);
	if (text.len)
		cli_warn(text.data);
	buf_release(&text);
}

static int draw(const struct plot_results_opts *o, struct figure *f, unsigned formats,
		struct arena *a, struct err *e)
{
	const char *stem = stem_of(o, a), *slash = strrchr(stem, '/');
	struct buf screen = { 0 };
	int rc = 0;

	if (slash)
		rc = file_mkdirs(arena_printf(a, "%.*s", (int)(slash - stem) + 1, stem), e);
	if (rc == 0)
		rc = gnuplot_figure(f, stem, formats, cli_columns(40, 160, 100), &screen, e);
	if (screen.len)
		cli_out(buf_str(&screen));
	if (rc == 0)
		printf("Figure: %s%s\n", stem, formats & GNUPLOT_PNG ? ".png" : formats & GNUPLOT_SVG ?
		       ".svg" : formats & GNUPLOT_PDF ? ".pdf" : ".gp");
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
	    plot_look_apply(&o->look, &figure, e) < 0 || draw(o, &figure, formats, a, e) < 0)
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
