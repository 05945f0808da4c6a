/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_sweep.c - `profllm bench sweep serve`, `startup`, `serve_workload` and `serve_sla`:
 * options of the searches, signals, lines and progress on the terminal, benchmarks inside this
 * program, the exit status.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/sweep/sweep.h"
#include "cmd/console/cli.h"
#include "cmd/verbs/cmd.h"
#include "core/base/str.h"

static void on_line(void *self, const char *text)
{
	(void)self;
	cli_line(text);
}

static void on_warn(void *self, const char *text)
{
	(void)self;
	cli_warn(text);
}

static void on_progress(void *self, const struct sweep_progress *now)
{
	char time[FMT_F64_BYTES];

	(void)self;
	if (now->points)
		fprintf(stderr, "point %u of %u, ", now->point, now->points);
	else
		fprintf(stderr, "point %u, ", now->point);
	if (now->run)
		fprintf(stderr, "run %u of %u", now->run, now->runs);
	else
		fprintf(stderr, "warm-up");
	/* As exact as an estimate from other points can be. */
	if (!isnan(now->left_s))
		fprintf(stderr, ", about %s left", fmt_rough_time(time, now->left_s));
	fputc('\n', stderr);
}

static bool on_knows(void *self, char *const *argv)
{
	(void)self;
	return bench_run_knows(argv);
}

static int on_bench(void *self, char *const *argv, bool is_shown, struct err *e)
{
	(void)self;
	return bench_run(argv, is_shown, e);
}

/* A verb of sweep/sweep.h: the exit status, or -1 with e. */
typedef int sweep_verb(const struct sweep_opts *o, const struct sweep_hooks *hooks,
		       struct err *e);

/* Parses argv by the set, checks it, and runs the verb. The exit status. */
static int bench(int argc, char **argv, const struct opt_set *set, sweep_verb *verb)
{
	const struct sweep_hooks hooks = {
		.line = on_line, .warn = on_warn, .knows = on_knows, .bench = on_bench,
		.progress = isatty(STDERR_FILENO) ? on_progress : NULL,
		.cancel = cli_is_interrupted(),
	};
	struct sweep_opts opts;
	struct cli cli;
	int status = cli_begin(&cli, set, argc, argv, &opts), rc = -1;

	if (status != CLI_CONTINUE)
		return status;
	if (sweep_opts_check(set, &opts, &cli.err) == 0) {
		cli_flush_notes(&cli);
		cli_catch_signals();
		rc = verb(&opts, &hooks, &cli.err);
	}
	status = cli_end(&cli);
	return rc >= 0 ? rc : status;
}

#define GROUP_WORKLOAD "Workload"
#define GROUP_SLA "SLA"
#define GROUP_SLA_OURS "SLA, continued"

static const char *const variables[] = { "request_rate", "max_concurrency", NULL };
static const char *const sla_variables[] = {
	"request_rate", "max_concurrency", "max_sessions", NULL,
};

static const char *const workload_groups[] = {
	SWEEP_GROUP, GROUP_WORKLOAD, SWEEP_GROUP_OURS, NULL,
};
static const struct sweep_opts workload_defaults = { SWEEP_DEFAULTS };
static const struct opt workload_rows[] = {
	SWEEP_ROWS_SERVE, SWEEP_ROWS_FOLDER, SWEEP_ROWS_WARMUP, SWEEP_ROWS_MODE,
	OPT(struct sweep_opts, workload_var, "workload-var", .choices = variables,
	    .group = GROUP_WORKLOAD, .help = "what is varied"),
	OPT(struct sweep_opts, workload_iters, "workload-iters", .arg = "N",
	    .group = GROUP_WORKLOAD, .help = "number of levels, including the two at the ends"),
	OPT(struct sweep_opts, workload_serial_unthrottled, "workload-serial-unthrottled",
	    .flags = OPT_OURS, .group = SWEEP_GROUP_OURS,
	    .help = "do not also limit the level with one request at a time to one request per "
	    "second"),
	SWEEP_ROWS_OURS,
};

static const struct opt_set workload_set = {
	.command = "bench sweep serve_workload",
	.summary = "Measures a server at loads between one request at a time and all at once.",
	.epilog = "Example:\n"
		  "  profllm bench sweep serve_workload --serve-cmd 'vllm serve MODEL' \\\n"
		  "      --bench-cmd 'vllm bench serve --model MODEL --num-prompts 200' \\\n"
		  "      --workload-var max_concurrency --workload-iters 6",
	.row = workload_rows, .n = sizeof(workload_rows) / sizeof(*workload_rows),
	.defaults = &workload_defaults, .bytes = sizeof(workload_defaults),
	.groups = workload_groups,
	.takes_prefixes = true,
};

static const char *const sla_groups[] = {
	SWEEP_GROUP, GROUP_SLA, GROUP_SLA_OURS, SWEEP_GROUP_OURS, NULL,
};
static const struct sweep_opts sla_defaults = { SWEEP_DEFAULTS, .sla_max = 65536 };
static const struct opt sla_rows[] = {
	SWEEP_ROWS_SERVE, SWEEP_ROWS_FOLDER, SWEEP_ROWS_WARMUP, SWEEP_ROWS_MODE,
	OPT(struct sweep_opts, sla_params, "sla-params", .arg = "FILE", .group = GROUP_SLA,
	    .help = "limits (required): JSON, as a file or as text; a list of objects such as "
		    "{\"p99_ttft_ms\": \"<=200\"}, whose limits must hold together; one search for "
		    "each object"),
	OPT(struct sweep_opts, sla_variable, "sla-variable", .choices = sla_variables,
	    .group = GROUP_SLA, .help = "what is varied; for conversations, request_rate is how "
		    "many begin per second, and max_sessions how many are open at once"),
	OPT(struct sweep_opts, sla_search, "sla-search", .choices = sla_searches,
	    .flags = OPT_OURS, .group = GROUP_SLA_OURS,
	    .help = "how the largest level is found: capacity (the default) counts slow requests "
		    "at loads around it and gives an interval; bisect and interpolate are vLLM's "
		    "methods; interpolate is the default for conversations and other limits"),
	OPT(struct sweep_opts, base_url, "base-url", .arg = "URL", .flags = OPT_OURS,
	    .group = GROUP_SLA_OURS, .help = "search on the running server at this URL and start "
	    "none"),
	FIND_ROWS(struct sweep_opts, GROUP_SLA_OURS),
	OPT(struct sweep_opts, sla_max, "sla-max", .arg = "N", .min = 2, .max = 1e9,
	    .flags = OPT_OURS, .group = GROUP_SLA_OURS,
	    .help = "the level that represents infinite load; it is measured first"),
	OPT(struct sweep_opts, sla_tolerance, "sla-tolerance", .arg = "SHARE", .min = 0, .max = 0.5,
	    .flags = OPT_OURS, .group = GROUP_SLA_OURS,
	    .help = "bisect and interpolate: end the search when the bounds are this close, as a "
		    "share of the level; 0: exact"),
	OPT(struct sweep_opts, sla_max_failed, "sla-max-failed", .arg = "PERCENT", .min = 0,
	    .max = 100, .flags = OPT_OURS, .group = GROUP_SLA_OURS,
	    .help = "a level at which more of the requests fail does not pass, whatever its limits"),
	OPT(struct sweep_opts, hover, "hover", .arg = "SECONDS", .min = 0, .max = 1e8,
	    .flags = OPT_OURS, .group = GROUP_SLA_OURS,
	    .help = "stay at the boundary for this long and print the capacity after each window, "
		    "as a JSON line on stdout and in hover.jsonl"),
	OPT(struct sweep_opts, hover_window, "hover-window", .arg = "SECONDS", .min = 0,
	    .max = 1e6, .flags = OPT_OURS | OPT_MIN_EXCLUSIVE, .group = GROUP_SLA_OURS,
	    .help = "length of a window"),
	SWEEP_ROWS_OURS,
};

static const struct opt_set sla_set = {
	.command = "bench sweep serve_sla",
	.summary = "Finds the largest load at which a server keeps its limits.",
	.epilog = "Example:\n"
		  "  profllm bench sweep serve_sla --serve-cmd 'vllm serve MODEL' \\\n"
		  "      --bench-cmd 'vllm bench serve --model MODEL --num-prompts 200' \\\n"
		  "      --sla-params sla.json --sla-variable max_concurrency",
	.row = sla_rows, .n = sizeof(sla_rows) / sizeof(*sla_rows),
	.defaults = &sla_defaults, .bytes = sizeof(sla_defaults), .groups = sla_groups,
	.takes_prefixes = true,
};

const struct opt_set *cmd_bench_sweep_workload_options(void)
{
	return &workload_set;
}

const struct opt_set *cmd_bench_sweep_sla_options(void)
{
	return &sla_set;
}

int cmd_bench_sweep_workload(int argc, char **argv)
{
	return bench(argc, argv, &workload_set, sweep_workload);
}

int cmd_bench_sweep_sla(int argc, char **argv)
{
	return bench(argc, argv, &sla_set, sweep_sla);
}

/* Like the former script: with limits it searched, without it swept. */
int cmd_bench_sweep_multi(int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		if (str_starts(str_of(argv[i]), STR("--sla-params")) ||
		    str_starts(str_of(argv[i]), STR("--sla_params")))
			return cmd_bench_sweep_sla(argc, argv);
	return bench(argc, argv, &sweep_serve_opt_set, sweep_serve);
}

int cmd_bench_sweep_serve(int argc, char **argv)
{
	return bench(argc, argv, &sweep_serve_opt_set, sweep_serve);
}

int cmd_bench_sweep_startup(int argc, char **argv)
{
	return bench(argc, argv, &sweep_startup_opt_set, sweep_startup);
}
