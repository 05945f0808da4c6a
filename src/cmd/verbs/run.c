/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - `profllm run`: experiments from one file, with one document for each: checks before a
 * run, the run, conditions of `require`, documents to a dashboard, the exit status.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/console/cli.h"
#include "cmd/verbs/cmd.h"
#include "cmd/verbs/run_verb.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/redact.h"
#include "experiment/config/document.h"
#include "experiment/suite/suite.h"
#include "experiment/suite/upload.h"
#include "results/read/document.h"
#include "results/read/read.h"
#include "results/store/trace_files.h"

#define EXIT_STRICT 3

#define R(member, flag, ...) OPT(struct run_opts, member, flag, __VA_ARGS__)
#define CONFIG "Configuration"
#define WHAT "What is done"
#define WHERE "Where it runs"
#define SHOWN "What is shown"

static const char *const schedulers[] = { "local", "slurm", "ssh", NULL };
static const char *const forms[] = { "auto", "bar", "lines", "none", NULL };

static const struct opt rows[] = {
	R(config, "config", .group = CONFIG, .arg = "FILE",
	  .words = "file -f -c",
	  .help = "the experiment as YAML or JSON; - reads stdin"),
	R(output, "output", .group = CONFIG, .arg = "FILE",
	  .words = "out -o",
	  .help = "the document; logs, records and traces go into a folder next to it, FILE with .d "
		  "in place of its ending"),
	R(set, "set", .group = CONFIG, .arg = "KEY=VALUE", .flags = OPT_MANY | OPT_EACH,
	  .help = "change a value of the configuration: server.port=8001, benchmark.num_prompts=10; "
		  "may be repeated"),
	R(matrix, "matrix", .group = CONFIG, .arg = "KEY=V1,V2", .flags = OPT_MANY | OPT_EACH,
	  .letter = 'm',
	  .help = "run it with each of these values, as a matrix in the file: max_num_seqs=8,64; with "
		  "several such options every combination"),
	R(args_file, "args-file", .group = CONFIG, .arg = "FILE",
	  .help = "further arguments of the server, as args import writes them; default: the user's"),
	R(only, "only", .group = WHAT, .arg = "PATTERN", .flags = OPT_MANY | OPT_EACH,
	  .help = "of a suite, run only members whose name matches (* and ?)"),
	R(is_resumed, "resume", .group = WHAT,
	  .help = "skip members that already have a completed document of the same configuration"),
	R(jobs, "jobs", .group = WHAT, .arg = "N", .min = 1, .max = 256,
	  .words = "parallel -j",
	  .help = "members of a suite that run at once, as GPUs and ports allow"),
	R(dry_run, "dry-run", .group = WHAT,
	  .words = "-n",
	  .help = "print the plan (commands, GPUs, ports, duration) and exit"),
	R(plan, "plan", .group = WHAT, .arg = "FILE",
	  .help = "write the plan as JSON to FILE (- for stdout), from the configuration alone: "
		  "tokenizer and dataset are not read"),
	R(check, "check", .group = WHAT,
	  .help = "preflight check: run a short load and discard its results"),
	R(strict, "strict", .group = WHAT, .help = "exit 3 when a verdict is not VALID"),
	GATE_ROWS(struct run_opts, gate, WHAT, 0),
	R(upload, "upload", .group = WHAT, .arg = "URL",
	  .words = "server url",
	  .help = "send documents and the profiler's traces of their runs to a dashboard "
		  "(http://host:8080, unix:PATH); what cannot be sent waits in a spool folder"),
	R(dashboard, "dashboard", .group = WHAT, .arg = "URL", .flags = OPT_SECRET,
	  .words = "report live server url",
	  .help = "report progress and live curves to a dashboard while it runs, and the document at "
		  "the end; the URL as profllm dashboard prints it"),
	R(compare_with, "compare-with", .group = WHAT, .arg = "WHERE",
	  .words = "previous baseline before",
	  .help = "report what has changed since the newest earlier run of the same configuration: "
		  "previous looks in the dashboard of --upload or --dashboard, else in the store; "
		  "or name a store or dashboard, as sqlite:PATH or http://host:8080"),
	R(no_upload_traces, "no-upload-traces", .group = WHAT, .help = "send documents without "
	"traces"),
	R(token_file, "token-file", .group = WHAT, .arg = "FILE",
	  .help = "the token for --upload is its first line; a dashboard of this user on this "
		  "machine needs none"),
	R(upload_spool, "upload-spool", .group = WHAT,
	  .help = "send documents that wait in the spool folder, and run nothing; with --upload, "
	  "send them all to that URL"),
	R(scheduler, "scheduler", .group = WHERE, .arg = "NAME", .choices = schedulers,
	  .words = "cluster sbatch",
	  .help = "run every experiment as a task of a Slurm job array (slurm), or on hosts "
		  "reached by ssh; the folder of --output must be shared with them; default: "
		  "local, this machine"),
	R(hosts, "hosts", .group = WHERE, .arg = "FILE",
	  .words = "hostfile machinefile",
	  .help = "hosts of --scheduler ssh, one on each line; slots=N after it for N experiments at once"),
	R(scheduler_args, "scheduler-args", .group = WHERE, .arg = "WORD", .flags = OPT_MANY | OPT_EACH,
	  .words = "partition account",
	  .help = "further arguments for sbatch or ssh: --scheduler-args=--partition=gpu; may be "
		  "repeated"),
	R(is_detached, "no-wait", .group = WHERE,
	  .help = "with --scheduler slurm, submit the jobs and exit; the same command with --resume "
		  "collects the results"),
	R(show_log, "show-log", .group = SHOWN, .help = "copy the servers' output to stderr as it "
	"arrives"),
	R(live, "live", .group = SHOWN, .words = "tui watch",
	  .help = "full-screen view while load runs, like bench serve --live; needs a terminal"),
	R(progress, "progress", .group = SHOWN, .arg = "FORM", .choices = forms,
	  .help = "progress on stderr; auto is a bar on a terminal and lines elsewhere"),
	R(is_quiet, "quiet", .group = SHOWN, .letter = 'q', .words = "silent",
	  .help = "print only warnings and the outcome: the summary of a run, the table of a suite"),
	R(events, "events", .group = SHOWN, .arg = "FILE",
	  .help = "write progress, and once a second figures of the load and the machine, as JSON "
		  "lines for other programs"),
	R(print_config, "print-config", .group = SHOWN,
	  .help = "print the merged configuration with all defaults, and run nothing"),
	R(print_schema, "print-schema", .group = SHOWN, .help = "print the JSON Schema of documents"),
	R(print_keys, "print-keys", .group = SHOWN,
	  .help = "print the keys a configuration may have, as a page of Markdown"),
	R(print_config_schema, "print-config-schema", .group = SHOWN,
	  .help = "print the JSON Schema of configurations, with which editors complete and check "
		  "them"),
	R(member, "member", .flags = OPT_HIDDEN, .help = "run one member of a suite for another run"),
	R(ends_with_stdin, "until-stdin-ends", .flags = OPT_HIDDEN,
	  .help = "stop as with Ctrl-C when standard input ends"),
	R(is_bounded, "bounded", .flags = OPT_HIDDEN,
	  .help = "the configuration was sent to a dashboard, which allows it what follows"),
	R(include_dir, "include-dir", .flags = OPT_HIDDEN | OPT_EACH, .arg = "DIR",
	  .help = "files below it may be included"),
	R(may_read, "may-read", .flags = OPT_HIDDEN | OPT_EACH, .arg = "NAME",
	  .help = "a variable that ${NAME} may refer to"),
	R(may_start, "may-start", .flags = OPT_HIDDEN | OPT_EACH, .arg = "COMMAND",
	  .help = "a command that may be started; none: any"),
};

static const struct run_opts defaults = { .progress = "auto" };
static const char *const groups[] = { CONFIG, WHAT, WHERE, SHOWN, NULL };

const struct opt_set cmd_run_set = {
	.command = "run",
	.summary = "Runs experiments from one file: reserves GPUs and ports, starts servers, runs "
		   "the load, monitors the machine and writes one document for each.",
	.epilog = "Examples:\n"
		  "  profllm run --config experiment.yaml --output results.json\n"
		  "  profllm run --config suite.yaml --output results.json --only '*tp=2*' --resume\n"
		  "  profllm run --config suite.yaml --output results.json --scheduler slurm\n"
		  "  profllm run --config experiment.yaml --set server.command=sim --dry-run",
	OPT_SET_OF(rows, defaults), .groups = groups, .stray = "config",
};

/* ---- before anything is run ---- */

static const char *const *list_of(const struct opt_list *list, struct arena *a)
{
	const char **out = arena_alloc(a, (list->n + 1) * sizeof(*out));

	if (list->n)
		memcpy(out, list->v, list->n * sizeof(*out));
	return list->is_set ? out : NULL;
}

static void show_notes(struct command_run *c)
{
	struct str rest = buf_str(&c->findings.notes);

	while (rest.n) {
		struct str line = str_cut(&rest, '\n');
		char *text = arena_text(&c->arena, line);

		if (line.n)
			cli_warn(text);
	}
	buf_reset(&c->findings.notes);
}

/*
 * A failed document has the reason, too: a suite's members are not known then, a single one's is.
 */
static void write_refused(struct command_run *c, const char *category, const char *reason)
{
	struct experiment none = { .name = c->o.config, .output = { .path = c->o.output } };
	bool is_single = c->has_suite && c->suite.is_single;
	const struct experiment *x = is_single ? &c->suite.member[0].x : &none;
	const char *path = c->has_suite ? c->suite.output : c->o.output;
	bool is_kept = false;
	struct err e = { 0 };

	if (!path || !*path || c->o.dry_run || c->o.plan || c->o.check || c->o.print_config)
		return;
	if (suite_write_refused(x, path, category, reason, &is_kept, &e) < 0)
		cli_warn(e.text);
	if (is_kept)
		cli_warn(arena_printf(&c->arena, "%s holds an earlier result and stays as it is; "
				      "this failure has no document", path));
}

static void say_finding(struct str line)
{
	struct buf room = { 0 };

	line = redact(line, &room);
	fprintf(stderr, "profllm run: %.*s\n", (int)line.n, line.p);
	buf_release(&room);
}

/* All but the last finding are printed here; the last one is the error that ends the program. */
static int refuse(struct command_run *c, const char *category, enum err_code code)
{
	struct str rest = buf_str(&c->findings.errors), line = { 0 };
	const char *all = arena_text(&c->arena, str_trim(rest));

	write_refused(c, category, all);
	while (rest.n) {
		line = str_cut(&rest, '\n');
		if (rest.n)
			say_finding(line);
	}
	if (c->findings.n_errors > EXPERIMENT_FINDINGS_MAX)
		fprintf(stderr, "profllm run: %zu more\n",
			c->findings.n_errors - EXPERIMENT_FINDINGS_MAX);
	return err_set(&c->cli->err, code, "%.*s", (int)line.n, line.n ? line.p : "");
}

/*
 * Checks all members before anything is started; 0, an exit status, or -1. A member of another
 * process's suite has been checked there.
 */
static int look_ahead(struct command_run *c, bool is_planned)
{
	struct suite_hooks hooks = run_talk_hooks(&c->talk, -1);
	int rc;

	if (c->o.member)
		return 0;
	rc = suite_check(&c->suite, &c->asked, is_planned, &hooks.run, &c->checked, &c->findings);
	run_talk_clear(&c->talk);
	show_notes(c);
	if (rc < 0 && c->checked.is_cancelled) {
		if (c->suite.is_single)
			write_refused(c, "interrupted", "stopped by a signal in the stage config");
		return RUN_EXIT_INTERRUPTED;
	}
	if (rc < 0)
		return refuse(c, c->checked.category, c->checked.is_world ? ERR_NET : ERR_USAGE);
	return 0;
}

/* --set and -m as the words that config_read takes. */
static const char *const *changes(struct command_run *c, size_t *n)
{
	const struct opt_list *set = &c->o.set, *matrix = &c->o.matrix;
	const char **words = arena_alloc(&c->arena, (set->n + matrix->n + 1) * sizeof(*words));

	*n = 0;
	for (size_t i = 0; i < set->n; i++)
		words[(*n)++] = set->v[i];
	for (size_t i = 0; i < matrix->n; i++)
		words[(*n)++] = arena_printf(&c->arena, CONFIG_AXIS "%s", matrix->v[i]);
	return words;
}

static int read_config(struct command_run *c)
{
	struct err *e = &c->cli->err;
	const char *const *words;
	size_t n_words;

	if (!c->o.config)
		return err_set(e, ERR_USAGE, "--config is missing: the file of an experiment");
	c->know.sim = cmd_sim_options();
	if (args_file_load(c->o.args_file, &c->arena, &c->extra, e) < 0)
		return c->o.args_file ? err_wrap(e, "--args-file") : -1;
	c->know.extra = &c->extra;
	c->asked = (struct suite_opts){
		.output = c->o.output, .only = list_of(&c->o.only, &c->arena),
		.is_resumed = c->o.is_resumed, .jobs = c->o.jobs.is_set ? (unsigned)c->o.jobs.v : 0,
		.member = c->o.member, .scheduler = c->o.scheduler, .hosts = c->o.hosts,
		.scheduler_args = &c->o.scheduler_args, .is_detached = c->o.is_detached,
	};
	c->bounds = (struct config_bounds){
		.folders = c->o.include_dir.v, .n_folders = c->o.include_dir.n,
		.variables = c->o.may_read.v, .n_variables = c->o.may_read.n,
		.commands = c->o.may_start.v, .n_commands = c->o.may_start.n,
	};
	words = changes(c, &n_words);
	if (config_read_within(c->o.is_bounded ? &c->bounds : NULL, c->o.config, words, n_words,
			       &c->arena, &c->config, e) < 0) {
		write_refused(c, "bad configuration", e->text);
		return -1;
	}
	/* This machine's GPUs say nothing about other machines'. */
	if (!suite_is_elsewhere(&c->config, c->o.scheduler))
		config_know_gpus(&c->know);
	if (suite_expand(&c->config, &c->know, &c->asked, &c->suite, &c->findings) < 0) {
		c->has_suite = c->suite.n > 0;
		return refuse(c, "bad configuration", ERR_USAGE);
	}
	c->has_suite = true;
	show_notes(c);
	if (c->suite.where == SUITE_LOCAL && suite_check_gpus(&c->suite, &c->findings) < 0)
		return refuse(c, "bad configuration", ERR_USAGE);
	return suite_check_only(&c->suite, e);
}

static int check_output(struct command_run *c, struct err *e)
{
	const char *path = c->suite.output;

	if (!path || !*path)
		return err_set(e, ERR_USAGE, "--output: expected a file for the document");
	return target_make("--output", path, e);
}

/* ---- `require`: documents are judged, so members that ran as children count ---- */

static int run_gate_check(struct command_run *c, struct gates *g, struct err *e)
{
	size_t n = 0;

	for (size_t i = 0; i < c->suite.n; i++)
		if (c->suite.member[i].is_chosen)
			n += c->suite.member[i].x.n_require;
	if (c->suite.search) /* of the one that is found */
		n = c->suite.member[0].x.n_require;
	return gates_begin_with(g, &c->o.gate, NULL, n, "add require: [CONDITION] to the configuration",
				&c->arena, e);
}

static void judge_member(struct gates *g, const struct suite_member *m, const char *where)
{
	const struct experiment *x = &m->x;
	const struct json_value *row = NULL;
	struct err e = { 0 };
	const struct json_value *v = result_json(m->path, FRAME_FILE_BYTES_MAX, g->log.a, &e);
	struct str reason;

	if (v) {
		row = document_row(v, g->log.a);
		reason = json_text(json_get(json_get(v, "error"), "reason"), STR("it was not measured"));
		err_set(&e, ERR_RUN, "%.*s", (int)reason.n, reason.p);
	}
	if (row)
		gate_judge(x->require, x->n_require, row, where, &g->log);
	else
		gate_judge_none(x->require, x->n_require, e.text, where, &g->log);
}

/* Checks every chosen member's document by its conditions: 0, GATE_EXIT, or -1 with e. */
static int run_gate(struct command_run *c, struct gates *g, struct err *e)
{
	const struct suite *s = &c->suite;
	const struct suite_member *found = s->search ? suite_found(s) : NULL;

	if (found && found->x.n_require)
		judge_member(g, found, found->label);
	for (size_t i = 0; !s->search && i < s->n; i++)
		if (s->member[i].is_chosen && s->member[i].x.n_require)
			judge_member(g, &s->member[i], s->is_single ? "" : s->member[i].label);
	return gates_end(g, "profllm run", e);
}

/* ---- documents, and the traces they name, to a dashboard ---- */

void named_traces(struct str document, const char *place, const char *folder, struct arena *a,
		  struct upload_opts *o, struct str *note)
{
	struct trace_files files;
	struct upload_trace *trace;

	trace_files_find(document, place, folder, a, &files);
	trace = arena_alloc(a, (files.n + 1) * sizeof(*trace));
	for (size_t i = 0; i < files.n; i++)
		trace[i] = (struct upload_trace){ files.file[i].path, files.file[i].bytes,
						  files.file[i].changed_ns };
	o->trace = trace;
	o->n_traces = files.n;
	*note = files.note;
}

struct upload_opts run_upload_opts(struct command_run *c, const struct suite_member *m)
{
	const struct json_value *told = json_get(m ? json_get(m->config, "output") : NULL, "upload");
	const struct suite_hooks hooks = run_talk_hooks(&c->talk, -1);
	struct upload_opts o = { .url = c->o.upload, .token_file = c->o.token_file,
				 .cancel = hooks.run.cancel, .self = &c->talk,
				 .line = hooks.run.line, .warn = hooks.run.warn };
	struct str url = json_text(json_get(told, "url"), (struct str){ 0 });
	struct str token = json_text(json_get(told, "token_file"), (struct str){ 0 });

	if (!o.url && url.n)
		o.url = arena_text(&c->arena, url);
	if (!o.token_file && token.n)
		o.token_file = arena_text(&c->arena, token);
	return o;
}

/* Checks, before anything is run, that the target and the token are known. */
static int run_upload_check(struct command_run *c, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < c->suite.n; i++) {
		struct upload_opts o = run_upload_opts(c, &c->suite.member[i]);

		if (o.url && c->suite.member[i].is_chosen)
			rc = upload_check(&o, e);
	}
	return rc;
}

/* Finds the member's traces, below its document or in a folder of its own. */
static void find_traces(struct command_run *c, const struct suite_member *m, struct str document,
			struct arena *a, struct upload_opts *o)
{
	struct str note;

	if (c->o.no_upload_traces)
		return;
	named_traces(document, m->path, m->x.output.folder, a, o, &note);
	if (note.n)
		cli_warn(arena_printf(a, "%s: %.*s", m->label, (int)note.n, note.p));
}

/* *is_sent: it has arrived, so spooled documents may be tried, too. */
static int upload_one(struct command_run *c, const struct suite_member *m, bool *is_sent,
		      struct err *e)
{
	struct upload_opts o = run_upload_opts(c, m);
	struct arena a = { 0 };
	struct buf text = { 0 };
	int rc;

	if (!o.url || !file_exists(m->path))
		return 0;
	rc = file_read(m->path, BUF_BYTES_MAX, &text, e);
	if (rc == 0) {
		find_traces(c, m, buf_str(&text), &a, &o);
		rc = upload_document(&o, buf_str(&text), m->label, e);
	}
	*is_sent |= rc == UPLOAD_SENT;
	buf_release(&text);
	arena_release(&a);
	return rc < 0 ? -1 : 0;
}

/* Uploads every existing document, if asked for. */
static int run_upload(struct command_run *c, struct err *e)
{
	struct err one = { 0 };
	struct upload_opts waiting = run_upload_opts(c, NULL);
	bool is_sent = false;

	for (size_t i = 0; i < c->suite.n; i++) {
		if (!c->suite.member[i].is_chosen ||
		    upload_one(c, &c->suite.member[i], &is_sent, &one) == 0)
			continue;
		if (e->code)
			cli_warn(one.text);
		else
			*e = one;
	}
	if (is_sent)
		upload_spool(&waiting, NULL, NULL);
	return e->code ? -1 : 0;
}

/* --upload-spool. */
static int run_send_spool(struct command_run *c, struct err *e)
{
	struct upload_opts o = run_upload_opts(c, NULL);
	size_t left = 0;
	int sent;

	o.is_moved = o.url != NULL;
	if (o.is_moved && upload_check(&o, e) < 0)
		return -1;
	sent = upload_spool(&o, &left, e);

	if (sent < 0)
		return -1;
	printf("%d sent, %zu waiting\n", sent, left);
	return left ? RUN_EXIT_FAILED : 0;
}

/* ---- running ---- */

static void say_reason(const char *reason)
{
	struct buf room = { 0 };
	struct str shown = redact(str_of(reason), &room);

	printf("%s%.*s\n", reason ? ": " : "", (int)shown.n, shown.n ? shown.p : "");
	buf_release(&room);
}

/* The table of a suite, its CSV, and what to do next. */
static void say_table(const struct suite *s, const struct suite_tally *t,
		      const struct suite_against *against, bool is_written)
{
	char *path = suite_csv_path(s);
	struct suite_table table;
	struct err e = { 0 };

	suite_table(s, t, against, &table);
	cli_out(buf_str(&table.text));
	if (is_written)
		printf("Document: %s\nLogs and records: %s\n", s->output, s->folder);
	else
		printf("Each experiment's document, logs and records: %s\n", s->folder);
	if (path && file_write_atomic(path, buf_str(&table.csv), &e) == 0)
		printf("Table: %s\n", path);
	else if (path)
		cli_warn(e.text);
	if (is_written)
		cli_out(buf_str(&table.next));
	suite_table_release(&table);
	free(path);
}

/* is_written: the document is; it is not when the disk is full, say. */
static void say_end(struct command_run *c, const struct suite_tally *t, bool is_written)
{
	const struct suite *s = &c->suite;
	struct suite_against against = { 0 };
	const struct outcome *o = t->single;

	if (s->is_single && o) {
		printf("Status: %s", outcome_status_name(o->status));
		/* The reason of a failure is the error that ends the program. */
		if (o->status == OUTCOME_FAILED)
			printf(" in the stage %s\n", outcome_stage_name(o->stage));
		else
			say_reason(o->reason);
	} else {
		printf("Suite: %zu completed, %zu partial, %zu failed", t->completed, t->partial,
		       t->failed);
		if (t->kept)
			printf(", %zu kept", t->kept);
		printf(t->left ? ", %zu not run\n" : "\n", t->left);
	}
	if (!t->is_interrupted && is_written)
		run_earlier(c, &against);
	if (s->is_single) {
		cli_out(against.text);
		printf("Document: %s\nLogs and records: %s\n", s->output, s->folder);
		if (!o || o->status != OUTCOME_FAILED)
			printf("Next: profllm bench compare EARLIER.json %s\n", s->output);
	} else {
		say_table(s, t, &against, is_written);
	}
	fflush(stdout);
}

/* Prints a member's failure in its own words, if nothing else has. */
static int status_of(struct command_run *c, const struct suite_tally *t, struct err *e)
{
	const struct outcome *o = c->suite.is_single ? t->single : NULL;

	if (t->is_interrupted)
		return RUN_EXIT_INTERRUPTED;
	if (o && o->status == OUTCOME_FAILED)
		return err_set(e, o->stage == AT_CONFIG ? ERR_USAGE : ERR_RUN, "%s: %s",
			       outcome_stage_name(o->stage), o->reason);
	/* Failed experiments are excluded, and the search went on with the others. */
	if (c->suite.search && !suite_found(&c->suite))
		return err_set(e, ERR_RUN, "the search found no experiment that can be the answer");
	if (t->failed && !c->suite.search)
		return err_set(e, ERR_RUN, "%zu of %zu experiments failed", t->failed,
			       t->failed + t->completed + t->partial + t->kept + t->left);
	return c->o.strict && t->doubtful ? EXIT_STRICT : 0;
}

/* How the runs ended takes precedence over their results. */
static int with_gate(struct command_run *c, struct gates *g, int status, struct err *e)
{
	struct err own = { 0 };
	int rc = run_gate(c, g, &own);

	if (rc < 0 && status < 0)
		cli_warn(own.text);
	else if (rc < 0)
		*e = own;
	return status || rc == 0 ? status : rc;
}

static char *const *child_words(struct command_run *c)
{
	char **words = arena_alloc(&c->arena, 10 * sizeof(*words));
	size_t n = 0;

	words[n++] = arena_text(&c->arena, STR("--progress"));
	words[n++] = arena_text(&c->arena, STR("none"));
	if (c->o.is_quiet)
		words[n++] = arena_text(&c->arena, STR("--quiet"));
	if (c->o.show_log)
		words[n++] = arena_text(&c->arena, STR("--show-log"));
	if (c->o.args_file) {
		words[n++] = arena_text(&c->arena, STR("--args-file"));
		words[n++] = arena_text(&c->arena, str_of(c->o.args_file));
	}
	if (c->o.dashboard) {
		words[n++] = arena_text(&c->arena, STR("--dashboard"));
		words[n++] = arena_text(&c->arena, str_of(c->o.dashboard));
	}
	/* It gets the configuration merged and checked here, and reads nothing more. */
	if (c->o.is_bounded)
		words[n++] = arena_text(&c->arena, STR("--bounded"));
	return words;
}

/* Not for a suite whose members run at once: each of them is a process, which reports. */
static bool reports_itself(const struct command_run *c)
{
	return !suite_has_children(&c->suite);
}

/* The screen is for one run, and nothing else writes to it. */
static int check_live(const struct command_run *c, struct err *e)
{
	if (c->o.live && suite_has_children(&c->suite))
		return err_set(e, ERR_USAGE, "--live shows one run at a time, but this suite runs "
			       "several experiments at once; use --jobs 1 or --dashboard");
	if (c->o.live && c->o.show_log)
		return err_set(e, ERR_USAGE, "--live and --show-log both write to the terminal; use one "
			       "of them");
	return 0;
}

static int run(struct command_run *c, struct err *e)
{
	struct suite_hooks hooks;
	struct suite_tally tally = { 0 };
	struct err unsent = { 0 };
	struct run_events *events;
	struct run_report *report;
	struct gates gates;
	bool has_run;
	int status = -1;

	if (check_live(c, e) < 0 || check_output(c, e) < 0 || run_upload_check(c, e) < 0 ||
	    run_gate_check(c, &gates, e) < 0)
		return -1;
	status = look_ahead(c, c->suite.where != SUITE_LOCAL);
	if (status != 0)
		return status;
	if (c->o.live)
		c->talk.live = live_new(c->talk.head);
	hooks = run_talk_hooks(&c->talk, c->o.show_log ? STDERR_FILENO : -1);
	if (run_report_begin(c->o.dashboard, reports_itself(c), &c->suite, &hooks, &report,
			     e) < 0)
		return -1;
	if (run_events_begin(c->o.events, &hooks, &events, e) < 0) {
		run_report_end(report);
		return -1;
	}
	hooks.checked = &c->checked;
	status = -1;
	c->talk.is_single = c->suite.is_single;
	c->asked.child_words = child_words(c);
	has_run = suite_run(&c->suite, &c->asked, &hooks, &tally, e) == 0;
	run_events_end(events);
	run_report_end(report);
	live_leave(c->talk.live);
	if (has_run && tally.is_detached && !tally.is_interrupted) {
		suite_tally_release(&tally);
		return 0;
	}
	if (has_run) {
		run_talk_clear(&c->talk);
		if (!c->o.member)
			say_end(c, &tally, true);
		status = status_of(c, &tally, e);
		status = c->o.member ? status : with_gate(c, &gates, status, e);
	} else if (!c->o.member && !c->suite.is_single && tally.completed + tally.partial) {
		run_talk_clear(&c->talk);
		say_end(c, &tally, false);
	}
	run_talk_clear(&c->talk);
	/*
	 * The file of a member that has not run may be another run's; for members the parent
	 * uploads.
	 */
	if (has_run && !c->o.member && !tally.is_interrupted && run_upload(c, &unsent) < 0) {
		if (e->code)
			cli_warn(unsent.text);
		else
			*e = unsent;
	}
	suite_tally_release(&tally);
	return status;
}

static void *follow_main(void *arg)
{
	char bytes[256];
	ssize_t n;

	do
		n = read(STDIN_FILENO, bytes, sizeof(bytes));
	while (n > 0 || (n < 0 && errno == EINTR));
	kill(getpid(), SIGTERM);
	return arg;
}

/* On another host a member ends when its connection to the parent does. */
static void follow_stdin(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, follow_main, NULL) == 0)
		pthread_detach(thread);
}

static int act(struct command_run *c, struct err *e)
{
	int status;

	if (c->o.print_schema) {
		cli_out(document_schema());
		return 0;
	}
	if (c->o.print_keys || c->o.print_config_schema) {
		struct buf page = { 0 };

		if (c->o.print_keys)
			config_keys_page(&page);
		else
			config_schema(cmd_sim_options(), &page);
		cli_out_buf(&page);
		return 0;
	}
	run_talk_init(&c->talk, c->o.progress, c->o.is_quiet);
	if (c->o.upload_spool) {
		cli_catch_signals();
		return run_send_spool(c, e);
	}
	/* Until it is read there is nothing to clean up: a signal ends the program. */
	if (read_config(c) < 0)
		return -1;
	if (c->o.print_config) {
		run_print_config(c);
		return 0;
	}
	cli_catch_signals();
	if (c->o.ends_with_stdin)
		follow_stdin();
	if (c->o.dry_run) {
		status = look_ahead(c, true);
		if (status != 0)
			return status;
	}
	if (c->o.dry_run || c->o.plan)
		return run_plan(c, e);
	return c->o.check ? run_check(c) : run(c, e);
}

int cmd_run(struct cli *cli, void *values)
{
	struct command_run *c = mem_alloc(sizeof(*c));
	int rc;

	c->cli = cli;
	c->o = *(struct run_opts *)values;
	rc = act(c, &cli->err);
	live_free(c->talk.live);
	suite_checked_release(&c->checked);
	if (c->has_suite)
		suite_release(&c->suite);
	config_findings_release(&c->findings);
	arena_release(&c->arena);
	free(c);
	return rc;
}
