/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim.c - `profllm sim`: one server, SIGINT and SIGTERM. Its parts are in sim_cli.h.
 *
 * Bad options exit with 2, what the world refuses (a taken port, an unwritable file) and a
 * model that does not fit with 1, a stop by signal with 0.
 */
#include <inttypes.h>
#include <signal.h>
#include <unistd.h>

#include "cmd/verbs/cmd.h"
#include "cmd/verbs/sim_cli.h"
#include "core/base/str.h"
#include "host/proc/tree.h"
#include "sim/model/hardware.h"

#define STRAY_SECONDS 600

/* What the signal handler stops; one server per process. */
static struct sim *_Atomic serving;
static volatile sig_atomic_t is_stop_wanted;

static void on_signal(int signal)
{
	struct sim *s = serving;

	(void)signal;
	is_stop_wanted = 1;
	if (s)
		sim_stop(s);
}

static void signals_catch(bool is_term_ignored)
{
	struct sigaction act = { .sa_handler = on_signal };

	sigaction(SIGINT, &act, NULL);
	if (is_term_ignored)
		signal(SIGTERM, SIG_IGN);
	else
		sigaction(SIGTERM, &act, NULL);
}

static void summary_print(const struct sim *s)
{
	struct sim_summary m = sim_summary(s);
	char p50[FMT_F64_BYTES], p99[FMT_F64_BYTES], max[FMT_F64_BYTES];

	fprintf(stderr, "profllm sim: %" PRIu64 " requests, %" PRIu64 " events, %" PRIu64 " tokens",
		m.requests, m.events, m.tokens);
	if (sim_is_oracle(s))
		fprintf(stderr, "; sent after due: p50 %s, p99 %s, max %s",
			fmt_duration(p50, m.late_p50_ns), fmt_duration(p99, m.late_p99_ns),
			fmt_duration(max, m.late_max_ns));
	fputc('\n', stderr);
}

static bool is_stopped(void)
{
	return is_stop_wanted;
}

static int serve(const struct sim_cli *cli, const struct sim_setup *setup, struct err *e)
{
	const struct sim_opts *opts = &setup->sim;
	struct sim *s;
	int rc;

	/* Before signals are caught, so that they end it. */
	if (cli->is_daemon_forked && stray_leave(STRAY_SECONDS, e) < 0)
		return -1;
	/* Before the port file exists, so that whoever waits for it may stop us at once. */
	signals_catch(cli->is_term_ignored);
	rc = sim_start(cli, setup, is_stopped, e);
	if (rc)
		return rc > 0 ? 0 : -1;
	s = sim_new(opts, e);
	if (!s)
		return -1;
	serving = s;
	if (is_stop_wanted)
		sim_stop(s);
	fprintf(stderr, "profllm sim: serving model %s on %s (%s)\n",
		opts->served_count ? opts->served[0] : opts->model, sim_url(s),
		sim_is_oracle(s) ? "oracle" : "engine");
	sim_start_done(cli, setup);
	rc = sim_run(s, e);
	serving = NULL; /* a signal that comes twice, as timeout(1) sends it, changes nothing */
	summary_print(s);
	sim_free(s);
	return rc;
}

static int explain(const struct sim_setup *setup)
{
	struct buf out = { 0 };

	hardware_explain(&setup->hw, &out);
	cli_out(buf_str(&out));
	buf_release(&out);
	return 0;
}

int cmd_sim(int argc, char **argv)
{
	struct sim_setup setup = { 0 };
	struct sim_args args = { 0 };
	struct sim_cli options;
	struct arena arena = { 0 };
	struct err e = { 0 };
	struct cli cli;
	int status;

	(void)argc;
	if (sim_args_fit(cmd_sim_options(), argv, &args, &arena, &e) < 0) {
		fprintf(stderr, "profllm sim: %s\n", e.text);
		status = err_exit_status(&e);
		goto done;
	}
	status = cli_begin(&cli, cmd_sim_options(), args.argc, args.argv, &options);
	if (status != CLI_CONTINUE)
		goto done;
	buf_add_str(&cli.result.notes, buf_str(&args.notes));
	if (options.is_worker) {
		sim_worker(&options, argv, &cli.err);
	} else if (options.account || options.worker_fault) {
		err_set(&cli.err, ERR_USAGE, "%s is about a worker: --engine-worker is missing",
			options.account ? "--account" : "--worker-fault");
	} else if (sim_setup(&options, &cli, &args, &setup, &cli.err) == 0) {
		buf_add_str(&cli.result.notes, buf_str(&setup.notes));
		cli_flush_notes(&cli);
		if (options.is_explained)
			explain(&setup);
		else
			serve(&options, &setup, &cli.err);
	}
	status = cli_end(&cli);
done:
	buf_release(&setup.notes);
	buf_release(&args.notes);
	arena_release(&arena);
	return status;
}
