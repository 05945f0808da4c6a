/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_talk.c - see sweep_talk.h. */
#include "cmd/verbs/sweep_talk.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

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

/* "about 6 min left": as exact as an estimate from other points can be. */
static void put_left(double s)
{
	char time[FMT_F64_BYTES];

	if (!isnan(s))
		fprintf(stderr, ", about %s left", fmt_rough_time(time, s));
}

static void on_progress(void *self, const struct sweep_progress *now)
{
	(void)self;
	if (now->points)
		fprintf(stderr, "point %u of %u, ", now->point, now->points);
	else
		fprintf(stderr, "point %u, ", now->point);
	if (now->run)
		fprintf(stderr, "run %u of %u", now->run, now->runs);
	else
		fprintf(stderr, "warm-up");
	put_left(now->left_s);
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

int sweep_talk(int argc, char **argv, const struct opt_set *set, sweep_verb *verb)
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
