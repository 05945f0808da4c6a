/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_multi_turn.c - `profllm bench multi-turn`: a run of bench serve whose requests are turns of
 * conversations (serve/multi_turn.h), with the lines and files of vLLM's script in addition.
 */
#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "bench/serve/multi_turn.h"
#include "cmd/console/cli.h"
#include "cmd/verbs/cmd.h"
#include "cmd/verbs/serve_once.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/mem.h"

/* ---- options of bench serve that mean the same here ---- */

static struct str option_name(const char *word)
{
	struct str name = str_of(word);

	while (name.n && *name.p == '-')
		name = (struct str){ name.p + 1, name.n - 1 };
	name = str_cut(&(struct str){ name.p, name.n }, '=');
	return str_cut(&(struct str){ name.p, name.n }, '.');
}

static int passed_words(const void *self, char *const *argv, bool is_whole, struct err *e)
{
	struct str typed = option_name(argv[0]);

	return multi_turn_passes(typed) ? opt_foreign_set_words(self, argv, is_whole, e) : 0;
}

static const struct opt_foreign of_serve = {
	.self = &serve_opt_set, .words = passed_words,
};

/* ---- files ---- */

static int save(const char *option, const char *path, const struct buf *text, struct err *e)
{
	if (!path)
		return 0;
	if (text->is_over)
		return err_set(e, ERR_LIMIT, "%s: the file exceeds the limit of 1 GiB", option);
	return file_write_atomic(path, buf_str(text), e) < 0 ? err_wrap(e, "%s", option) : 0;
}

static int save_workbook(const struct multi_turn *m, const struct multi_turn_report *r,
			 struct err *e)
{
	time_t now = (time_t)(clock_real_ns() / 1000000000);
	struct buf book = { 0 };
	char name[96], date[32];
	struct tm local;
	int rc;

	if (!m->o->excel_output)
		return 0;
	localtime_r(&now, &local);
	strftime(date, sizeof(date), "%d-%m-%Y_%H-%M-%S", &local);
	snprintf(name, sizeof(name), "statistics_%u_clients__%s.xlsx", m->order.clients, date);
	rc = multi_turn_workbook(r, &book, e);
	if (rc == 0)
		rc = save("--excel-output", name, &book, e);
	if (rc == 0)
		printf("Spreadsheet: %s\n", name);
	buf_release(&book);
	return rc;
}

/* ---- the run ---- */

struct verb {
	struct multi_turn_opts opts;
	struct multi_turn m;
	uint32_t wrong;
};

static void show(const struct multi_turn *m, const struct point *p,
		 const struct multi_turn_outcome *o)
{
	struct buf text = { 0 };

	if (m->o->print_content)
		multi_turn_contents(m, p, &text);
	multi_turn_terminal(&o->report, &text);
	multi_turn_summary(m, o, &text);
	cli_out_buf(&text);
}

/* As serve_outcome: the report has been printed, and the record still exists. */
static int on_measured(void *self, const struct point *p, struct err *e)
{
	struct verb *v = self;
	const struct multi_turn_opts *o = &v->opts;
	struct multi_turn_outcome out;
	struct buf stats = { 0 }, said = { 0 };
	int rc = multi_turn_score(&v->m, p, isatty(STDOUT_FILENO), &out, e);

	v->wrong = out.wrong;
	if (rc == 0) {
		show(&v->m, p, &out);
		if (o->stats_json_output)
			multi_turn_json(&out.report, &stats);
		if (o->output_file)
			multi_turn_conversations(&v->m, p, &said);
		rc = save("--stats-json-output", o->stats_json_output, &stats, e);
		rc = rc < 0 ? rc : save("--output-file", o->output_file, &said, e);
		rc = rc < 0 ? rc : save_workbook(&v->m, &out.report, e);
	}
	buf_release(&stats);
	buf_release(&said);
	multi_turn_outcome_release(&out);
	return rc;
}

static int take_options(struct verb *v, struct cli *cli, struct serve_opts *serve, struct err *e)
{
	return multi_turn_over_serve(&v->m, serve, &cli->result, &cli->arena, e);
}

static int check(struct verb *v, struct cli *cli)
{
	struct multi_turn_opts *o = &v->opts;

	o->verify_output |= o->stop_on_mismatch;
	if (multi_turn_opts_check(o, &cli->arena, &v->m, &cli->err) < 0 ||
	    (o->output_file && target_make("--output-file", o->output_file, &cli->err) < 0) ||
	    (o->stats_json_output &&
	     target_make("--stats-json-output", o->stats_json_output, &cli->err) < 0))
		return -1;
	return 0;
}

/* Parses the remaining words as options of bench serve. */
static int serve(struct verb *v, struct opt_rest *rest)
{
	struct serve_outcome outcome = { .measured = on_measured, .self = v };
	struct opt_set set = serve_opt_set;
	struct serve_opts opts;
	struct cli cli;
	int status;

	set.command = multi_turn_opt_set.command;
	status = cli_begin(&cli, &set, (int)rest->n, rest->v, &opts);
	if (status != CLI_CONTINUE)
		return status;
	if (take_options(v, &cli, &opts, &cli.err) < 0)
		return cli_end(&cli);
	status = serve_once(&cli, &opts, &outcome);
	buf_release(&outcome.result);
	return status == 0 && v->wrong ? 1 : status;
}

/* The parser treats --verify-output=stop as a separate flag. */
static void split_flag(int argc, char **argv)
{
	static char stop[] = "--verify-output-stop";

	for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--verify-output=stop") == 0 ||
		    strcmp(argv[i], "--verify_output=stop") == 0)
			argv[i] = stop;
}

int cmd_bench_multi_turn(int argc, char **argv)
{
	struct verb v = { .wrong = 0 };
	struct opt_set set = multi_turn_opt_set;
	struct cli cli;
	int status;

	set.foreign = &of_serve;
	split_flag(argc, argv);
	status = cli_begin(&cli, &set, argc, argv, &v.opts);
	if (status != CLI_CONTINUE)
		return status;
	cli_flush_notes(&cli);
	pthread_mutex_init(&v.m.lock, NULL);
	if (check(&v, &cli) == 0)
		status = serve(&v, &cli.result.rest);
	pthread_mutex_destroy(&v.m.lock);
	multi_turn_release(&v.m);
	if (cli.err.code)
		return cli_end(&cli);
	cli_end(&cli);
	return status;
}
