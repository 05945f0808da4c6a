/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_serve.c - `profllm bench serve`: one run, or those that --sweep-max-concurrency or
 * --sweep-request-rate ask for; and the same within another verb (verbs/bench_run.h).
 */
#include "cmd/verbs/bench_run.h"

#include <fcntl.h>
#include <unistd.h>

#include "bench/options/serve_opts.h"
#include "cmd/verbs/cmd.h"
#include "cmd/verbs/serve_find.h"
#include "cmd/verbs/serve_once.h"
#include "cmd/verbs/serve_points.h"
#include "core/base/mem.h"
#include "out/compare/compare.h"

static int list_switches(const struct serve_switch *row)
{
	for (; row->name; row++)
		printf("%-17s %s\n", row->name, row->help);
	return 1;
}

static int list_fixes(const struct serve_opts *o)
{
	if (o->compat && strcmp(o->compat, "help") == 0)
		return list_switches(serve_compats);
	for (size_t i = 0; i < o->fix.n; i++)
		if (strcmp(o->fix.v[i], "help") == 0)
			return list_switches(serve_fixes);
	return 0;
}

static int list_patterns(const struct serve_opts *o)
{
	if (!o->load_pattern || strcmp(o->load_pattern, "help") != 0)
		return 0;
	for (const struct load_pattern *p = load_patterns; p->name; p++) {
		printf("%-10s %s:", p->name, p->help);
		for (const struct preset *set = p->set; set->option; set++)
			printf(" --%s %s", set->option, set->value);
		putchar('\n');
	}
	return 1;
}

/* --compare A B, as upstream's Rust client has it. */
static int compare(struct cli *cli, const struct serve_opts *o)
{
	struct buf text = { 0 };

	if (o->compare.n != 2)
		err_set(&cli->err, ERR_USAGE, "--compare: expected two result files, got %zu",
			o->compare.n);
	else if (compare_two(o->compare.v[0], o->compare.v[1], &text, &cli->err) == 0)
		cli_out(buf_str(&text));
	buf_release(&text);
	return cli_end(cli);
}

static int serve(int argc, char **argv, struct err *e)
{
	struct serve_opts opts;
	struct cli cli;
	int status = cli_begin(&cli, &serve_opt_set, argc, argv, &opts);

	if (status != CLI_CONTINUE)
		goto done;
	if (list_fixes(&opts) || list_patterns(&opts))
		status = cli_end(&cli);
	else if (opts.compare.is_set)
		status = compare(&cli, &opts);
	else if (serve_find_is_wanted(&opts))
		status = serve_find(&cli, &opts, argc, argv);
	else if (serve_points_are_wanted(&opts))
		status = serve_points(&cli, &opts, argc, argv);
	else
		status = serve_once(&cli, &opts, NULL);
done:
	*e = cli.err;
	return status;
}

int cmd_bench_serve(int argc, char **argv)
{
	struct err e;

	return serve(argc, argv, &e);
}

/* ---- within another verb ---- */

static bool is_called(const char *word, const char *name)
{
	const char *slash = strrchr(word, '/');

	return strcmp(slash ? slash + 1 : word, name) == 0;
}

bool bench_run_knows(char *const *argv)
{
	return argv[0] && (is_called(argv[0], "vllm") || is_called(argv[0], "profllm")) &&
	       argv[1] && strcmp(argv[1], "bench") == 0 && argv[2] && strcmp(argv[2], "serve") == 0;
}

int bench_run(char *const *argv, bool is_shown, struct err *e)
{
	int kept = -1, nowhere = -1, argc = 0, status;
	char **copy;

	while (argv[3 + argc])
		argc++;
	copy = mem_grow(NULL, (size_t)argc + 1, sizeof(*copy));
	memcpy(copy, argv + 3, ((size_t)argc + 1) * sizeof(*copy));
	fflush(stdout);
	if (!is_shown) {
		kept = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
		nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	}
	if (kept >= 0 && nowhere >= 0)
		dup2(nowhere, STDOUT_FILENO);
	status = serve(argc, copy, e);
	fflush(stdout);
	if (kept >= 0 && nowhere >= 0)
		dup2(kept, STDOUT_FILENO);
	if (kept >= 0)
		close(kept);
	if (nowhere >= 0)
		close(nowhere);
	free(copy);
	return status;
}
