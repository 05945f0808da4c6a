/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_opts.c - see sweep.h. */
#include "bench/sweep/sweep.h"

#include <string.h>

#include "core/base/limits.h"

const char *const sweep_restarts[] = { "never", "point", "run", NULL };
const char *const sla_searches[] = { "capacity", "bisect", "interpolate", NULL };

enum sweep_restart sweep_opts_restart(const struct sweep_opts *o)
{
	enum sweep_restart how = SWEEP_RESTART_NEVER;

	while (strcmp(sweep_restarts[how], o->restart) != 0)
		how++;
	return how;
}

static const char *const groups[] = { SWEEP_GROUP, SWEEP_GROUP_OURS, NULL };

static const struct sweep_opts serve_defaults = { SWEEP_DEFAULTS };
static const struct opt serve_rows[] = {
	SWEEP_ROWS_SERVE, SWEEP_ROWS_FOLDER, SWEEP_ROWS_WARMUP, SWEEP_ROWS_MODE, SWEEP_ROWS_ORDER,
	SWEEP_ROWS_OURS,
};

const struct opt_set sweep_serve_opt_set = {
	.command = "bench sweep serve",
	.summary = "Measures a server under every combination of its options and the client's.",
	.epilog = "Examples:\n"
		  "  profllm bench sweep serve --serve-cmd 'vllm serve MODEL' \\\n"
		  "      --bench-cmd 'vllm bench serve --model MODEL --num-prompts 200' \\\n"
		  "      --serve-params serve.json --bench-params bench.json -e first\n"
		  "  profllm bench sweep serve ... --resume first",
	.row = serve_rows, .n = sizeof(serve_rows) / sizeof(*serve_rows),
	.defaults = &serve_defaults, .bytes = sizeof(serve_defaults), .groups = groups,
	.takes_prefixes = true,
};

static const struct sweep_opts startup_defaults = { SWEEP_DEFAULTS_BUT_RUNS, .num_runs = 1 };
static const struct opt startup_rows[] = {
	OPT(struct sweep_opts, startup_cmd, "startup-cmd", .arg = "COMMAND", .group = SWEEP_GROUP,
	    .help = "what measures a start"),
	OPT(struct sweep_opts, serve_params, "serve-params", .arg = "FILE", .group = SWEEP_GROUP,
	    .help = "combinations of server options, as JSON; options that the command does not "
		    "have are dropped"),
	OPT(struct sweep_opts, startup_params, "startup-params", .arg = "FILE",
	    .group = SWEEP_GROUP, .help = "combinations of the command's options, as JSON; each is "
					  "run with each combination of server options"),
	OPT(struct sweep_opts, strict_params, "strict-params", .group = SWEEP_GROUP,
	    .help = "an option that the command does not have is an error"),
	SWEEP_ROWS_FOLDER,
	OPT(struct sweep_opts, show_stdout, "show-stdout", .group = SWEEP_GROUP,
	    .help = "show the command's output"),
	SWEEP_ROWS_MODE,
	OPT(struct sweep_opts, stop_on_error, "stop-on-error", .flags = OPT_OURS,
	    .group = SWEEP_GROUP_OURS, .help = "stop at the first failure"),
};

const struct opt_set sweep_startup_opt_set = {
	.command = "bench sweep startup",
	.summary = "Measures how long a server takes to start under every combination of options.",
	.epilog = "Example:\n"
		  "  profllm bench sweep startup --startup-cmd 'vllm bench startup --model MODEL' \\\n"
		  "      --serve-params serve.json",
	.row = startup_rows, .n = sizeof(startup_rows) / sizeof(*startup_rows),
	.defaults = &startup_defaults, .bytes = sizeof(startup_defaults), .groups = groups,
	.takes_prefixes = true,
};

static bool has_row(const struct opt_set *set, const char *name)
{
	for (size_t i = 0; i < set->n; i++)
		if (strcmp(set->row[i].name, name) == 0)
			return true;
	return false;
}

static int check_required(const struct opt_set *set, const struct sweep_opts *o, struct err *e)
{
	bool lacks_serve = has_row(set, "serve-cmd") && !o->serve_cmd && !o->base_url;
	bool lacks_bench = has_row(set, "bench-cmd") && !o->bench_cmd;

	if (!lacks_serve && !lacks_bench)
		return 0;
	return err_set(e, ERR_USAGE, "the following arguments are required: %s%s%s",
		       lacks_serve ? "--serve-cmd" : "", lacks_serve && lacks_bench ? ", " : "",
		       lacks_bench ? "--bench-cmd" : "");
}

static int check_resume(struct sweep_opts *o, struct err *e)
{
	if (o->resume.n == 0)
		return 0;
	if (o->resume.n > 1)
		return err_set(e, ERR_USAGE, "--resume: one experiment's name at most, got %zu",
			       o->resume.n);
	if (o->experiment_name && strcmp(o->experiment_name, o->resume.v[0]) != 0)
		return err_set(e, ERR_USAGE, "--resume %s names another experiment than "
			       "--experiment-name %s", o->resume.v[0], o->experiment_name);
	o->experiment_name = o->resume.v[0];
	return 0;
}

int sweep_opts_check(const struct opt_set *set, struct sweep_opts *o, struct err *e)
{
	if (check_required(set, o, e) < 0 || check_resume(o, e) < 0)
		return -1;
	if (o->base_url && (o->serve_cmd || o->serve_params))
		return err_set(e, ERR_USAGE, "--base-url names a server that runs already; remove %s, "
			       "which is about one that is started",
			       o->serve_cmd ? "--serve-cmd" : "--serve-params");
	if (o->num_runs < 1)
		return err_set(e, ERR_USAGE, "--num-runs: expected at least 1, got %lld",
			       (long long)o->num_runs);
	if (o->num_runs > SWEEP_RUNS_MAX)
		return err_set(e, ERR_USAGE, "--num-runs %lld is more than the %u of SWEEP_RUNS_MAX",
			       (long long)o->num_runs, SWEEP_RUNS_MAX);
	if (o->warmup_num_prompts < 0)
		return err_set(e, ERR_USAGE, "--warmup-num-prompts: expected at least 0, got %lld",
			       (long long)o->warmup_num_prompts);
	if (o->stop_on_error && o->continue_on_error)
		return err_set(e, ERR_USAGE, "--stop-on-error and --continue-on-error exclude each "
			       "other");
	return 0;
}
