/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_offline.c - see offline_talk.h: the verbs that measure an engine without a server. What
 * differs between them is in the struct offline_verb of each.
 */
#include "cmd/verbs/offline_talk.h"
#include "core/base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/offline/hash_bench.h"
#include "bench/offline/latency.h"
#include "bench/offline/mm_processor.h"
#include "bench/offline/offline.h"
#include "bench/offline/prefix_bench.h"
#include "bench/offline/startup.h"
#include "bench/offline/throughput.h"
#include "cmd/console/progress.h"
#include "cmd/console/cli.h"
#include "cmd/verbs/cmd.h"
#include "core/base/clock.h"

#define BAR_EVERY_NS 100000000
#define LINE_EVERY_NS 5000000000

/* ---- progress ---- */

static void clear(struct offline_talk *t)
{
	if (t->is_drawn)
		fputs("\r\033[K", stderr);
	t->is_drawn = false;
}

/* " 3/10 [00:01<00:02,  2.50it/s]": one a second or faster, else seconds for each. */
static void add_counts(struct buf *out, uint64_t done, uint64_t total, double elapsed)
{
	double rate = elapsed > 0 ? (double)done / elapsed : 0;

	buf_printf(out, " %" PRIu64 "/%" PRIu64 " [", done, total);
	progress_add_clock(out, elapsed);
	if (rate <= 0) {
		buf_add_text(out, "<?, ?it/s]");
		return;
	}
	buf_add_char(out, '<');
	progress_add_clock(out, (double)(total - done) / rate);
	if (rate < 1)
		buf_printf(out, ", %5.2fs/it]", 1 / rate);
	else
		buf_printf(out, ", %5.2fit/s]", rate);
}

/* Uses eighths of a cell if the terminal can show them. */
static void add_bar(const struct offline_talk *t, uint64_t done, uint64_t total, unsigned width,
		    struct buf *out)
{
	static const char *const eighths[] = { " ", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
	unsigned parts = t->is_utf8 ? 8 : 1;
	unsigned filled = (unsigned)((double)done / (double)total * width * parts);

	for (unsigned i = 0; i < width; i++) {
		unsigned here = filled > i * parts ? filled - i * parts : 0;

		if (here >= parts)
			buf_add_text(out, t->is_utf8 ? "█" : "#");
		else
			buf_add_text(out, eighths[here]);
	}
}

/* total 0: unknown. */
static void draw(struct offline_talk *t, uint64_t done, uint64_t total, double elapsed)
{
	double percent = total ? (double)done * 100 / (double)total : 0;
	struct buf counts = { 0 }, line = { 0 };
	unsigned columns = cli_columns(40, 120, 80), taken;

	if (!total) {
		progress_add_clock(&counts, elapsed);
		fprintf(stderr, t->is_bar ? "\r%s [%s]\033[K" : "%s [%s]\n", t->what, counts.data);
	} else if (!t->is_bar) {
		add_counts(&counts, done, total, elapsed);
		fprintf(stderr, "%s: %3.0f%%%s\n", t->what, percent, counts.data);
	} else {
		add_counts(&counts, done, total, elapsed);
		buf_printf(&line, "%s: %3.0f%%|", t->what, percent);
		taken = (unsigned)(line.len + counts.len) + 2;
		add_bar(t, done, total, columns > taken + 4 ? columns - taken : 4, &line);
		fprintf(stderr, "\r%s|%s\033[K%s", line.data, counts.data, done >= total ? "\n" : "");
	}
	t->is_drawn = t->is_bar && (!total || done < total);
	fflush(stderr);
	buf_release(&counts);
	buf_release(&line);
}

static void on_progress(void *self, const char *what, uint64_t done, uint64_t total)
{
	struct offline_talk *t = self;
	int64_t now = clock_mono_ns(), every = t->is_bar ? BAR_EVERY_NS : LINE_EVERY_NS;
	bool is_end = total && done >= total;
	double elapsed;

	if (t->is_off)
		return;
	if (strncmp(what, t->what, sizeof(t->what) - 1) != 0 || (t->is_ended && !is_end)) {
		clear(t);
		snprintf(t->what, sizeof(t->what), "%s", what);
		t->began_ns = now;
		t->drawn_ns = t->is_bar ? now - every : now;
		t->is_ended = false;
	}
	if (t->is_ended || (!is_end && now - t->drawn_ns < every))
		return;
	t->drawn_ns = now;
	t->is_ended = is_end;
	elapsed = (double)(now - t->began_ns) / 1e9;
	draw(t, done > total ? total : done, total, elapsed);
}

static void on_line(void *self, const char *text)
{
	clear(self);
	printf("%s\n", text);
	fflush(stdout);
}

static void on_warn(void *self, const char *text)
{
	clear(self);
	cli_warn(text);
}

/* ---- gates ---- */

static void on_result(void *self, struct str json)
{
	struct offline_talk *t = self;

	if (gates_judge_json(&t->gates, json, "", &t->ungated) < 0)
		cli_warn(t->ungated.text);
}

/* 0, GATE_EXIT, or 1: a file could not be written. */
static int end_gates(struct offline_talk *t)
{
	struct gates *g = &t->gates;
	struct err *e = &t->cli.err, unsaved = { 0 };
	int rc;

	if (!g->n || t->opts->dry_run || e->code == ERR_USAGE)
		return 0;
	clear(t);
	if (!g->log.n)
		gate_judge_none(g->gate, g->n, e->code ? e->text : "nothing was measured", "", &g->log);
	rc = gates_end(g, t->set.command, &unsaved);
	if (rc < 0 && e->code)
		cli_warn(unsaved.text);
	else if (rc < 0)
		*e = unsaved;
	return rc < 0 ? 1 : rc;
}

/* ---- beginning and end ---- */

static bool is_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
	const char *value = NULL;

	for (size_t i = 0; (!value || !*value) && i < sizeof(names) / sizeof(*names); i++)
		value = getenv(names[i]);
	return value && (strstr(value, "UTF-8") || strstr(value, "utf8"));
}

static void begin_progress(struct offline_talk *t)
{
	const char *form = t->opts->progress;

	t->is_off = strcmp(form, "none") == 0;
	t->is_bar = strcmp(form, "bar") == 0 ||
		(strcmp(form, "auto") == 0 && isatty(STDERR_FILENO));
	t->is_utf8 = is_utf8();
	t->hooks = (struct offline_hooks){
		.self = t, .line = on_line, .warn = on_warn, .progress = on_progress,
		.result = on_result, .cancel = cli_is_interrupted(),
	};
}

/* The simulator's own options come after the engine's arguments. */
static void with_simulator(struct offline_talk *t, const struct opt_set *set)
{
	t->set = *set;
	if (!set->foreign)
		return;
	t->foreign[0] = *set->foreign;
	t->foreign[0].next = &t->foreign[1];
	t->foreign[1] = (struct opt_foreign){
		.self = cmd_sim_options(), .words = opt_foreign_set_words,
	};
	t->set.foreign = &t->foreign[0];
}

static int end(struct offline_talk *t)
{
	int status;

	clear(t);
	status = cli_end(&t->cli);
	arena_release(&t->arena);
	return status;
}

/* An empty file name means none, as in vLLM. */
static void drop_empty(const char **path)
{
	if (*path && !**path)
		*path = NULL;
}

int offline_begin(struct offline_talk *t, const struct opt_set *set,
		  const struct offline_verb *verb, int argc, char **argv, void *values)
{
	struct offline_opts *o = values;
	struct buf list = { 0 };
	struct err e = { 0 };
	int status;

	*t = (struct offline_talk){ .opts = o };
	with_simulator(t, set);
	if (offline_config(&t->set, &argc, &argv, &t->arena, &e) < 0) {
		t->cli = (struct cli){ .set = &t->set, .err = e };
		return end(t);
	}
	status = cli_begin(&t->cli, &t->set, argc, argv, values);
	if (status != CLI_CONTINUE) {
		arena_release(&t->arena);
		return status;
	}
	if (offline_list_names(o, verb, &list)) {
		cli_out(buf_str(&list));
		buf_release(&list);
		return end(t);
	}
	if (offline_opts_check(&t->set, &t->cli.result, verb, o, &t->engine, &t->cli.arena,
			       &t->cli.result.notes, &t->cli.err) < 0)
		return end(t);
	cli_flush_notes(&t->cli);
	drop_empty(&o->output_json);
	begin_progress(t);
	cli_catch_signals();
	return CLI_CONTINUE;
}

void offline_notes(struct offline_talk *t)
{
	if (t->cli.result.notes.len)
		clear(t);
	cli_flush_notes(&t->cli);
}

void offline_show_plan(struct offline_talk *t)
{
	const struct offline_engine *engine = &t->engine;
	struct buf out = { 0 };

	buf_printf(&out, "Backend: %s%s\n", t->opts->backend, engine->is_async ? ", asynchronous" :
		   "");
	if (t->opts->base_url)
		buf_printf(&out, "Server: %s\n", t->opts->base_url);
	else if (strcmp(t->opts->backend, "http") == 0)
		buf_printf(&out, "Server command: %s\n", t->opts->server_cmd ? t->opts->server_cmd :
			   "vllm serve");
	if (t->opts->worker_cmd)
		buf_printf(&out, "Worker command: %s\n", t->opts->worker_cmd);
	buf_printf(&out, "Model: %s\nEngine arguments: %s\n", engine->model,
		   *engine->shown ? engine->shown : "(none)");
	for (size_t i = 0; engine->env[i]; i++)
		buf_printf(&out, "Environment: %s\n", engine->env[i]);
	cli_out(buf_str(&out));
	buf_release(&out);
}

int offline_end(struct offline_talk *t)
{
	int gate = end_gates(t), status = end(t);

	return status ? status : gate;
}

/* ---- verbs ---- */

/* --fail-if is checked against an example result of these options. */
static int read_gates(struct offline_talk *t, struct offline_job *job, struct err *e)
{
	struct json_value *like;
	struct buf example = { 0 };
	int rc;

	if (!job->verb->example)
		return 0;
	job->verb->example(job->opts, &example);
	rc = json_parse(&t->cli.arena, buf_str(&example), &like, e);
	buf_release(&example);
	if (rc < 0 || gates_begin(&t->gates, &job->opts->gate, &t->cli.arena, e) < 0)
		return -1;
	for (size_t i = 0; i < t->gates.n; i++)
		if (gate_check_like(&t->gates.gate[i], like, t->set.command, e) < 0)
			return err_wrap(e, "--fail-if");
	return 0;
}

static int run(struct offline_talk *t, struct offline_job *job, struct err *e)
{
	const struct offline_opts *o = job->opts;
	struct buf plan = { 0 };

	if ((job->verb->check && job->verb->check(job, e) < 0) || read_gates(t, job, e) < 0)
		return -1;
	offline_notes(t);
	if (o->dump_workload && target_check("--dump-workload", o->dump_workload, e) < 0)
		return -1;
	if (o->dry_run)
		offline_show_plan(t);
	else if (o->output_json && target_check("--output-json", o->output_json, e) < 0)
		return -1;
	if (!o->dry_run || !job->verb->plan)
		return job->verb->run(job, e);
	job->verb->plan(job, &plan);
	cli_out(buf_str(&plan));
	buf_release(&plan);
	return 0;
}

static int bench(const struct offline_verb *verb, int argc, char **argv)
{
	struct offline_opts *opts = mem_alloc(verb->set->bytes);
	struct offline_talk t;
	int status = offline_begin(&t, verb->set, verb, argc, argv, opts);

	if (status == CLI_CONTINUE) {
		struct offline_job job = {
			.verb = verb, .opts = opts, .given = &t.cli.result, .engine = &t.engine,
			.hooks = t.hooks, .notes = &t.cli.result.notes,
		};

		run(&t, &job, &t.cli.err);
		status = offline_end(&t);
	}
	free(opts);
	return status;
}

int cmd_bench_latency(int argc, char **argv)
{
	return bench(&latency_verb, argc, argv);
}

int cmd_bench_throughput(int argc, char **argv)
{
	return bench(&throughput_verb, argc, argv);
}

int cmd_bench_startup(int argc, char **argv)
{
	return bench(&startup_verb, argc, argv);
}

int cmd_bench_mm_processor(int argc, char **argv)
{
	return bench(&mm_processor_verb, argc, argv);
}

int cmd_bench_prefix_caching(int argc, char **argv)
{
	return bench(&prefix_caching_verb, argc, argv);
}

int cmd_bench_long_document_qa(int argc, char **argv)
{
	return bench(&long_document_verb, argc, argv);
}

/* ---- hashes: a program with vLLM, but no engine ---- */

static int bench_hashes(const struct opt_set *set,
			int (*run_it)(const struct hash_opts *o, const struct offline_hooks *hooks,
				      struct err *e), int argc, char **argv)
{
	struct offline_talk t = { .is_off = true };
	struct hash_opts opts;
	const struct offline_hooks hooks = { .self = &t, .line = on_line, .warn = on_warn,
					     .cancel = cli_is_interrupted() };
	int status = cli_begin(&t.cli, set, argc, argv, &opts);

	if (status != CLI_CONTINUE)
		return status;
	cli_flush_notes(&t.cli);
	drop_empty(&opts.common.output_json);
	cli_catch_signals();
	if (!opts.common.output_json ||
	    target_check("--output-json", opts.common.output_json, &t.cli.err) == 0)
		run_it(&opts, &hooks, &t.cli.err);
	return end(&t);
}

int cmd_bench_hash(int argc, char **argv)
{
	return bench_hashes(&hash_opt_set, hash_run, argc, argv);
}

int cmd_bench_prefix_block_hash(int argc, char **argv)
{
	return bench_hashes(&block_hash_opt_set, block_hash_run, argc, argv);
}
