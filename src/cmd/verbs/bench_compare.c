/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_compare.c - `profllm bench compare`: compares results, folders or sweeps.
 *
 * Two views: changes with verdicts (compare/compare.h), and the tables of upstream's dashboard
 * script (compare/compare.h) with --tables or for files named benchmark_results.json.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmd/console/cli.h"
#include "cmd/verbs/cmd.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "out/compare/compare.h"
#include "out/compare/markdown.h"

struct compare_args {
	struct opt_list files;
	const char *metrics, *metric, *ignore, *by;
	bool all, across_models, assume_independent, include_invalid;
	double alpha, min_effect;
	const char *format, *output;
	bool scaling;
	const char *scaling_metric;
	struct gate_opts gate;
	bool fail_if_any, allow_failures;
	bool tables, debug;
	enum opt_tri plot;
	const char *xaxis, *latency, *csv_out_dir, *excel_out, *html_out_dir;
	double ttft_max_ms, tpot_max_ms, ttft_slack_pct, tpot_slack_pct;
};

#define ROW(member, name, ...) OPT(struct compare_args, member, name, __VA_ARGS__)
#define WHAT "What is compared"
#define OUTPUT "Output"
#define GATES "Gates"
#define TABLES "vLLM's tables"

static const char *const formats[] = { "text", "markdown", "json", "html", "csv", NULL };

static const struct opt rows[] = {
	ROW(files, "FILE", .flags = OPT_POSITIONAL,
	    .help = "results, folders of results or of sweeps; the first is the baseline"),
	ROW(metrics, "metrics", .group = WHAT, .arg = "NAMES",
	    .help = "comma list of result keys, instead of the default ones"),
	ROW(metric, "metric", .group = WHAT, .arg = "NAME",
	    .help = "primary metric, judged without adjustment for the others; default: the first of "
		    "--metrics"),
	ROW(all, "all", .group = WHAT, .help = "compare every metric that has a better direction"),
	ROW(ignore, "ignore", .group = WHAT, .arg = "NAMES",
	    .help = "comma list of parameters to ignore when configurations are matched"),
	ROW(by, "by", .group = WHAT, .arg = "NAME",
	    .help = "split the results by the values of this parameter (experiment, model, "
		    "max_num_seqs ...) and compare these; the first is the baseline"),
	ROW(across_models, "across-models", .group = WHAT,
	    .help = "compare results of different models"),
	ROW(assume_independent, "assume-independent", .group = WHAT,
	    .help = "count every run as a server session of its own"),
	ROW(include_invalid, "include-invalid", .group = WHAT,
	    .help = "include metrics that are INVALID in a run"),
	ROW(alpha, "alpha", .group = WHAT, .min = 1e-6, .max = 0.49,
	    .help = "accepted share of false findings; intervals are 1 - alpha"),
	ROW(min_effect, "min-effect", .group = WHAT, .arg = "PERCENT", .min = -1, .max = 1000,
	    .help = "smallest change to report, above 0; -1: 3, and 5 for p99 and beyond"),
	ROW(format, "format", .group = OUTPUT, .choices = formats,
	    .words = "json html csv markdown",
	    .help = "format of the comparison; default: by the suffix of --output, else text"),
	ROW(output, "output", .group = OUTPUT, .arg = "FILE",
	    .words = "out -o",
	    .help = "write to this file instead of standard output"),
	ROW(scaling, "scaling", .group = OUTPUT,
	    .help = "report speed-up and efficiency per GPU relative to the smallest size "
	    "instead"),
	ROW(scaling_metric, "scaling-metric", .group = OUTPUT, .arg = "NAME",
	    .help = "rate that --scaling uses"),
	ROW(gate.fail_if, "fail-if", .group = GATES, .arg = "CONDITION", .flags = OPT_MANY,
	    .words = "threshold thresholds gate",
	    .help = "exit with 3 when this condition holds with statistical evidence: "
		    "'p99_ttft_ms>+5%' limits a change, 'p99_ttft_ms>500' a value; may be "
		    "repeated; with one operand each of its runs is judged separately, by values "
		    "only"),
	ROW(fail_if_any, "fail-if-any", .group = GATES,
	    .help = "judge conditions by medians alone, without statistical evidence"),
	GATE_ROWS(struct compare_args, gate, GATES, 0),
	ROW(allow_failures, "allow-failures", .group = GATES,
	    .help = "do not fail the gate when more requests failed than in the baseline"),
	ROW(tables, "tables", .group = TABLES,
	    .help = "print the tables of vLLM's dashboard: ratios and valid max concurrency"),
	ROW(debug, "debug", .group = TABLES, .help = "add the test names of each file"),
	ROW(plot, "plot", .group = TABLES, .help = "include charts in the pages (default)"),
	ROW(xaxis, "xaxis", .group = TABLES, .letter = 'x', .arg = "COLUMN",
	    .help = "column for the x axis of the charts and for the rows of the summary"),
	ROW(latency, "latency", .group = TABLES, .letter = 'l', .arg = "p99|median",
	    .help = "statistic of TTFT and TPOT; any text that contains 'median' means the "
	    "median"),
	ROW(ttft_max_ms, "ttft-max-ms", .group = TABLES, .help = "limit of TTFT"),
	ROW(tpot_max_ms, "tpot-max-ms", .group = TABLES, .help = "limit of TPOT"),
	ROW(ttft_slack_pct, "ttft-slack-pct", .group = TABLES,
	    .help = "percent above its limit at which TTFT still passes"),
	ROW(tpot_slack_pct, "tpot-slack-pct", .group = TABLES,
	    .help = "percent above its limit at which TPOT still passes"),
	ROW(csv_out_dir, "csv-out-dir", .group = TABLES, .arg = "DIR",
	    .help = "folder to write every table to as CSV"),
	ROW(excel_out, "excel-out", .group = TABLES, .arg = "FILE",
	    .help = "refused: no spreadsheet is written. --csv-out-dir writes the same tables"),
	ROW(html_out_dir, "html-out-dir", .group = TABLES, .arg = "DIR", .flags = OPT_OURS,
	    .help = "folder for perf_comparison.html and its parts; default: the current folder"),
};
static const struct compare_args defaults = {
	.alpha = MATCHED_ALPHA, .min_effect = -1, .scaling_metric = "output_throughput",
	.xaxis = "# of max concurrency.", .latency = "p99", .ttft_max_ms = 3000, .tpot_max_ms = 100,
	.ttft_slack_pct = 5, .tpot_slack_pct = 5, .csv_out_dir = "", .html_out_dir = "",
};

const struct opt_set cmd_bench_compare_set = {
	.command = "bench compare",
	.summary = "Compares results, folders of results or sweeps with a baseline.",
	.usage = "[BASELINE] FILE... [options]",
	.epilog = "Examples:\n"
		  "  profllm bench compare before/ after/\n"
		  "  profllm bench compare main.json branch.json --format markdown\n"
		  "  profllm bench compare base/ new/ --fail-if 'p99_ttft_ms>+5%'\n"
		  "  profllm bench compare new.json --fail-if 'p99_ttft_ms>200'\n"
		  "  profllm bench compare suite.json --by experiment\n"
		  "  profllm bench compare -f a/benchmark_results.json -f b/benchmark_results.json",
	OPT_SET_OF(rows, defaults),
};

/* ---- -f A -f B, --fail-if X --fail-if Y ---- */

/* "--name=value", "--name value" or "-l value": the value, *i moved onto its last word. */
static char *value_of(int argc, char **argv, int *i, const char *name, const char *letter)
{
	size_t n = strlen(name);

	if (strncmp(argv[*i], name, n) == 0 && argv[*i][n] == '=')
		return argv[*i] + n + 1;
	if ((strcmp(argv[*i], name) == 0 || strcmp(argv[*i], letter) == 0) && *i + 1 < argc)
		return argv[++*i];
	return NULL;
}

/*
 * The same command with files first and all conditions in one list, because the parser
 * keeps the last of what is repeated.
 */
static int gather(int argc, char **argv, char ***out)
{
	static char fail_if[] = "--fail-if";
	char **file = mem_array((size_t)argc + 1, sizeof(char *));
	char **rest = mem_array((size_t)argc + 1, sizeof(char *));
	char **gate = mem_array((size_t)argc + 1, sizeof(char *));
	char **all = mem_array((size_t)argc + 2, sizeof(char *));
	int files = 0, rests = 0, gates = 0, n = 0;

	for (int i = 0; i < argc; i++) {
		char *v = value_of(argc, argv, &i, "--file", "-f");

		if (v) {
			file[files++] = v;
			continue;
		}
		v = value_of(argc, argv, &i, "--fail-if", "--fail_if");
		if (v)
			gate[gates++] = v;
		else
			rest[rests++] = argv[i];
	}
	for (int i = 0; i < files; i++)
		all[n++] = file[i];
	for (int i = 0; i < rests; i++)
		all[n++] = rest[i];
	if (gates)
		all[n++] = fail_if;
	for (int i = 0; i < gates; i++)
		all[n++] = gate[i];
	free(file);
	free(rest);
	free(gate);
	*out = all;
	return n;
}

/* ---- output ---- */

static const char *format_of(const struct compare_args *o)
{
	static const struct { const char *suffix, *format; } known[] = {
		{ ".md", "markdown" }, { ".json", "json" }, { ".html", "html" }, { ".csv", "csv" },
	};

	for (size_t i = 0; !o->format && o->output && i < sizeof(known) / sizeof(*known); i++)
		if (str_ends(str_of(o->output), str_of(known[i].suffix)))
			return known[i].format;
	return o->format ? o->format : "text";
}

static int deliver(const struct compare_args *o, struct buf *text, struct err *e)
{
	if (text->is_over)
		return err_set(e, ERR_LIMIT, "the comparison is larger than a buffer may be");
	if (o->output)
		return file_write_atomic(o->output, buf_str(text), e);
	if (text->len)
		cli_out(buf_str(text));
	return 0;
}

static int show(const struct compare_args *o, const struct bench_comparison *c, struct err *e)
{
	const char *format = format_of(o);
	bool is_coloured = !o->output && isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
	struct buf text = { 0 };
	int rc;

	if (o->scaling) {
		if (compare_scaling(c, o->scaling_metric, strcmp(format, "markdown") == 0, &text) == 0)
			cli_warn("--scaling: no two sizes differ in nothing but their number of GPUs");
	} else if (strcmp(format, "markdown") == 0) {
		compare_markdown(c, &text);
	} else if (strcmp(format, "json") == 0) {
		compare_json(c, &text);
	} else if (strcmp(format, "html") == 0) {
		compare_html(c, &text);
	} else if (strcmp(format, "csv") == 0) {
		compare_csv(c, &text);
	} else {
		compare_text(c, is_coloured, &text);
	}
	rc = deliver(o, &text, e);
	buf_release(&text);
	return rc;
}

/* ---- the two views ---- */

/* One operand: nothing is compared, its runs are judged. Returns the exit status; -1 with e. */
static int judge_runs(const struct compare_args *o, struct gates *g, struct err *e)
{
	struct buf notes = { 0 };
	int rc;

	if (o->format || o->output || o->fail_if_any)
		return err_set(e, ERR_USAGE, "--%s: %s has nothing to be compared with; name a baseline "
			       "before it", o->format ? "format" : o->output ? "output" : "fail-if-any",
			       o->files.v[0]);
	rc = compare_gate_runs(o->files.v[0], g->gate, g->n, &g->log, &notes, e);
	if (notes.len)
		fputs(notes.data, stderr);
	buf_release(&notes);
	return rc < 0 ? -1 : gates_end(g, "bench compare", e);
}

/*
 * Without gates, sides that cannot be compared are a mistake; a gate reports that it cannot judge.
 */
static int judge(struct bench_comparison *c, size_t gates, struct err *e)
{
	const char *why;

	if (compare_judge(c, e) < 0)
		return -1;
	why = compare_refusal(c);
	return why && !gates ? err_set(e, ERR_USAGE, "%s", why) : 0;
}

/* The exit status; -1 with e. */
static int changes(const struct compare_args *o, struct gates *g, struct cli *cli)
{
	const char **also = arena_alloc(&cli->arena, (g->n + 1) * sizeof(*also));
	struct compare_opts opts = {
		.alpha = o->alpha, .metrics = o->metrics, .primary = o->metric, .is_all = o->all,
		.min_effect = o->min_effect < 0 ? -1 : o->min_effect / 100, .ignore = o->ignore,
		.is_any_model = o->across_models || o->by, .by = o->by,
		.is_each_run = o->assume_independent, .is_invalid_counted = o->include_invalid,
		.also = also, .n_also = g->n,
	};
	struct bench_comparison c = { 0 };
	int rc;

	if (o->min_effect <= 0 && o->min_effect > -1)
		return err_set(&cli->err, ERR_USAGE, "--min-effect %g: must be greater than 0 (per cent), "
			       "or -1 for the usual ones", o->min_effect);
	for (size_t i = 0; i < g->n; i++)
		also[i] = g->gate[i].key;
	rc = compare_load(&c, &opts, o->files.v, o->files.n, &cli->arena, &cli->err);
	if (rc == 0 && (!o->scaling || g->n))
		rc = judge(&c, g->n, &cli->err);
	if (rc == 0)
		rc = show(o, &c, &cli->err);
	if (rc == 0 && g->n) {
		for (size_t i = 0; i < g->n; i++)
			compare_gate_check(&c, &g->gate[i], o->fail_if_any, &g->log);
		if (!o->allow_failures)
			compare_gate_failures(&c, &g->log);
		rc = gates_end(g, "bench compare", &cli->err);
	}
	compare_release(&c);
	return rc;
}

static int compare(const struct compare_args *o, struct cli *cli)
{
	struct gates g;
	int rc;

	if (gates_begin(&g, &o->gate, &cli->arena, &cli->err) < 0)
		return -1;
	if (o->files.n > 1 || o->scaling || o->by)
		return changes(o, &g, cli);
	rc = g.n ? judge_runs(o, &g, &cli->err) :
	     err_set(&cli->err, ERR_USAGE, "a baseline and at least one other result are needed; "
		     "%zu given (--by NAME splits one, --fail-if CONDITION judges one)", o->files.n);
	return rc;
}

static int tables(const struct compare_args *o, struct cli *cli)
{
	struct tables_opts opts = {
		.xaxis = o->xaxis, .latency = o->latency, .ttft_max_ms = o->ttft_max_ms,
		.tpot_max_ms = o->tpot_max_ms, .ttft_slack_pct = o->ttft_slack_pct,
		.tpot_slack_pct = o->tpot_slack_pct, .is_debug = o->debug,
		.is_plotted = o->plot != OPT_TRI_NO, .csv_dir = o->csv_out_dir,
		.html_dir = o->html_out_dir,
	};
	struct buf text = { 0 };
	int rc;

	if (o->gate.fail_if.n)
		return err_set(&cli->err, ERR_USAGE, "--fail-if judges changes and has no meaning with "
			       "--tables");
	rc = tables_compare(&opts, o->files.v, o->files.n, &cli->arena, &text, &cli->err);
	if (text.len)
		cli_out_buf(&text);
	return rc;
}

static int run(struct cli *cli, void *values)
{
	const struct compare_args *o = values;
	bool is_tables = o->tables;

	for (size_t i = 0; i < o->files.n; i++)
		is_tables |= str_ends(str_of(o->files.v[i]), STR("benchmark_results.json"));
	if (o->excel_out)
		return err_set(&cli->err, ERR_USAGE, "--excel-out %s: spreadsheets are not written; use "
			       "--csv-out-dir DIR, which writes the same tables as CSV", o->excel_out);
	if (o->files.n == 0)
		return err_set(&cli->err, ERR_USAGE, "no result is named; a baseline and others are "
			       "expected");
	return is_tables && !o->scaling ? tables(o, cli) : compare(o, cli);
}

int cmd_bench_compare(int argc, char **argv)
{
	char **all;
	int n = gather(argc, argv, &all), status = cli_run(&cmd_bench_compare_set, run, n, all);

	free(all);
	return status;
}

/* ---- bench markdown ---- */

struct markdown_args { const char *result; };

static const struct opt markdown_rows[] = {
	OPT(struct markdown_args, result, "result", .letter = 'r', .arg = "DIR",
	    .help = "folder of results; benchmark_results.md and .json are written into it"),
};
static const struct markdown_args markdown_defaults = { .result = "results" };

const struct opt_set cmd_bench_markdown_set = {
	.command = "bench markdown",
	.summary = "Writes the tables of a folder of results: Markdown for people, JSON to compare.",
	.epilog = "Examples:\n"
		  "  profllm bench markdown -r results\n"
		  "  profllm bench compare -f a/benchmark_results.json -f b/benchmark_results.json",
	OPT_SET_OF(markdown_rows, markdown_defaults),
};

int cmd_bench_markdown(struct cli *cli, void *values)
{
	struct markdown_args *o = values;
	struct buf lines = { 0 };

	markdown_report(o->result, &lines, &cli->err);
	if (lines.len)
		cli_out_buf(&lines);
	return 0;
}
