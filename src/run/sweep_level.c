/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_level.c - see sweep.h: the runs of one folder. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "run/salt.h"
#include "run/sweep_parts.h"

#define WARMUP (-1) /* its run number */

struct level_runs {
	struct sweep *s;
	const struct json_value *serve, *bench;
	const char *folder;
	bool has_run;  /* since the level began */
	unsigned runs;
};

/* The file of a run, or (ending ".failure") of its failure. */
static char *run_path(const struct level_runs *l, int number, const char *ending)
{
	struct sweep *s = l->s;

	return sweep_path(s, l->folder, number == WARMUP ?
			  arena_printf(&s->arena, "warmup%s.json", ending) :
			  arena_printf(&s->arena, "run=%d%s.json", number, ending));
}

static unsigned lacking(const struct level_runs *l)
{
	unsigned n = 0;

	for (unsigned i = 0; i < l->runs; i++)
		n += !sweep_record_is_whole(run_path(l, (int)i, ""));
	return n;
}

unsigned sweep_runs_lacking(struct sweep *s, const char *folder)
{
	const struct level_runs l = { .s = s, .folder = folder, .runs = (unsigned)s->o->num_runs };

	return lacking(&l);
}

/*
 * Whether runs would find each other's prompts in the server's cache, and our own benchmark may
 * send others: nobody knows what an --after-bench-cmd does with the cache.
 */
static bool keeps_caches(struct sweep *s, char *const *argv)
{
	if (!s->after_cmd || s->o->exec_bench || sweep_opts_restart(s->o) == SWEEP_RESTART_RUN ||
	    !s->hooks->knows || !s->hooks->knows(s->hooks->self, argv))
		return false;
	for (; *argv; argv++) {
		struct str word = str_of(*argv);

		if (str_is(str_cut(&word, '='), "--prompt-salt") ||
		    str_is(str_of(*argv), "--reset-prefix-cache"))
			return false;
	}
	return true;
}

/* The bench command with its overrides and what makes it save where we look. */
static char **command(const struct level_runs *l, const struct json_value *bench, const char *path)
{
	struct sweep *s = l->s;
	char **base = params_apply(bench, s->bench_cmd, &s->arena), **argv;
	char *more[] = { (char *)"--percentile-metrics", (char *)"ttft,tpot,itl,e2el",
			 (char *)"--save-result", (char *)"--result-dir", (char *)l->folder,
			 (char *)"--result-filename", strrchr(path, '/') ?
			 strrchr(path, '/') + 1 : (char *)path, NULL };
	char *fresh[] = { (char *)"--prompt-salt", (char *)salt_kind_name(SALT_FRESH) };
	size_t n = 0;

	while (base[n])
		n++;
	argv = arena_alloc(&s->arena, n * sizeof(*argv) + sizeof(fresh) + sizeof(more));
	memcpy(argv, base, n * sizeof(*argv));
	if (keeps_caches(s, base)) {
		memcpy(argv + n, fresh, sizeof(fresh));
		n += sizeof(fresh) / sizeof(*fresh);
	}
	memcpy(argv + n, more, sizeof(more));
	return argv;
}

static void show_progress(const struct level_runs *l, int number)
{
	struct sweep *s = l->s;

	s->progress.run = (unsigned)(number + 1);
	s->progress.runs = l->runs;
	s->progress.left_s = s->n_runs && s->runs_left ? s->run_s / s->n_runs * s->runs_left : NAN;
	if (s->hooks->progress)
		s->hooks->progress(s->hooks->self, &s->progress);
}

/* What is left of a run that failed must not pass for a result. */
static int failed(const struct level_runs *l, const struct sweep_run *run, const char *type,
		  const struct err *why, const struct err *said, struct err *e)
{
	const struct sweep_failure f = { .type = type, .text = why->text, .why = said->text,
					 .serve = l->serve, .bench = run->second,
					 .run = run->number };
	struct err ignored = { 0 };
	int rc;

	unlink(run->path);
	rc = sweep_fail(l->s, run_path(l, run->number, ".failure"), &f, e);
	if (rc == 0)
		sweep_server_after(l->s, run->number == WARMUP, &ignored);
	return rc;
}

/* A run whose report nobody sees must not hide what it thinks of itself. */
static void warn_verdict(const struct level_runs *l, const struct sweep_run *run,
			 const struct json_value *record)
{
	const struct json_value *ours = json_get(record, "profllm");
	const struct json_value *reasons = json_get(ours, "reasons");
	struct str verdict = json_text(json_get(ours, "verdict"), STR("VALID"));
	struct str why = STR("");

	if (l->s->o->show_stdout || str_is(verdict, "VALID"))
		return;
	if (reasons && reasons->kind == JSON_ARRAY && reasons->count)
		why = json_text(json_get(&reasons->item[0], "text"), STR(""));
	sweep_warn(l->s, "%s is %.*s: %.*s", run->path, (int)verdict.n, verdict.p, (int)why.n, why.p);
}

/* Runs the command and takes up what it saved. *record stays NULL when that failed. */
static int execute(struct level_runs *l, const struct sweep_run *run, char *const *argv,
		   const struct json_value **record, struct err *e)
{
	struct sweep *s = l->s;
	struct err why = { 0 }, said = { 0 }, died = { 0 };
	int rc;

	unlink(run->path);
	if (file_mkdirs(l->folder, e) < 0)
		return -1;
	rc = sweep_command(s, argv, &said, &why);
	if (why.code == ERR_CANCELLED) {
		unlink(run->path);
		*e = why;
		return -1;
	}
	if (rc == 0)
		*record = sweep_record_merge(s, run, &why);
	if (sweep_server_survived(s, !*record || json_int(json_get(*record, "failed"), 0) > 0,
				  &died) < 0) {
		*record = NULL;
		return failed(l, run, "RuntimeError", &died, &said, e);
	}
	if (!*record)
		return failed(l, run, rc > 0 ? "CalledProcessError" : "OSError", &why,
			      &said, e);
	unlink(run_path(l, run->number, ".failure"));
	warn_verdict(l, run, *record);
	if (sweep_server_after(s, run->number == WARMUP, &why) == 0)
		return 0;
	if (why.code == ERR_CANCELLED) {
		*e = why;
		return -1;
	}
	/* What was measured is good; the next run gets a server of its own. */
	return sweep_fail(s, run_path(l, run->number, ".failure"),
			  &(struct sweep_failure){ .type = "RuntimeError", .text = why.text,
			  .serve = l->serve, .bench = run->second, .run = run->number }, e);
}

static void show_begin(struct sweep *s, const struct sweep_run *run, char *const *argv)
{
	sweep_line(s, "[BEGIN BENCHMARK]");
	sweep_line(s, "Benchmark overrides: %s", sweep_comb_text(s, run->second));
	sweep_line(s, "Run Number: %d", run->number);
	sweep_line(s, "Benchmark command: %s", sweep_argv_text(s, argv));
	sweep_line(s, "Output file: %s", run->path);
}

/* One run: its record if it is there or could be made. */
static int one(struct level_runs *l, const struct json_value *bench, int number,
	       const struct json_value **record, struct err *e)
{
	struct sweep *s = l->s;
	const struct sweep_run run = { l->serve, bench, number, run_path(l, number, "") };
	char **argv = command(l, bench, run.path);
	int64_t began_ns = clock_mono_ns();
	int rc;

	*record = sweep_record_read(s, &run);
	if (!*record && !s->o->dry_run) {
		if (sweep_is_cancelled(s))
			return sweep_cancelled(e);
		if (sweep_server_ready(s, l->serve, !l->has_run, e) < 0)
			return -1;
		if (s->is_server_failed)
			return 0;
		show_progress(l, number);
	}
	show_begin(s, &run, argv);
	if (*record) {
		sweep_line(s, "Found existing results.");
		sweep_line(s, "[SKIPPED BENCHMARK]");
		return 0;
	}
	if (!s->o->dry_run) {
		l->has_run = true;
		rc = execute(l, &run, argv, record, e);
		s->run_s += (double)(clock_mono_ns() - began_ns) * 1e-9;
		s->n_runs += number != WARMUP;
		s->runs_left -= number != WARMUP && s->runs_left > 0;
		if (rc < 0 || !*record)
			return rc;
	}
	sweep_line(s, "[END BENCHMARK]");
	return 0;
}

/* summary.json also has the runs that are there and were not asked for: from the next one on. */
static int summary(const struct level_runs *l, const struct json_value *bench,
		   const struct sweep_records *used, unsigned next, struct err *e)
{
	struct sweep_records all = { 0 };

	for (size_t i = 0; i < used->n; i++)
		sweep_records_add(l->s, &all, used->v[i]);
	for (unsigned i = next; i < l->runs; i++) {
		const struct sweep_run run = { l->serve, bench, (int)i, run_path(l, (int)i, "") };
		const struct json_value *record = sweep_record_read(l->s, &run);

		if (record)
			sweep_records_add(l->s, &all, record);
	}
	return sweep_record_summary(l->s, l->folder, &all, e);
}

int sweep_level_until(struct sweep *s, const struct json_value *serve,
		      const struct json_value *bench, const char *folder,
		      sweep_enough *is_enough, void *self, struct sweep_records *out,
		      struct err *e)
{
	struct level_runs l = { .s = s, .serve = serve, .bench = bench, .folder = folder,
			   .runs = (unsigned)s->o->num_runs };
	const struct json_value *record;
	int64_t warmup = s->o->warmup_num_prompts;
	unsigned i = 0;

	*out = (struct sweep_records){ 0 };
	s->is_server_failed = false;
	if (s->o->resume.is_set && !s->o->dry_run)
		sweep_record_sweep_out(s, folder);
	if (warmup > 0 && (s->o->dry_run || lacking(&l) || file_exists(run_path(&l, WARMUP, ""))) &&
	    one(&l, params_with_int(bench, "num_prompts", warmup, &s->arena), WARMUP, &record,
		e) < 0)
		return -1;
	for (; i < l.runs && !(is_enough && out->n && is_enough(self, out)); i++) {
		if (one(&l, bench, (int)i, &record, e) < 0)
			return -1;
		if (record)
			sweep_records_add(s, out, record);
	}
	if (s->o->dry_run) {
		*out = (struct sweep_records){ 0 };
		return 0;
	}
	if (out->n)
		return summary(&l, bench, out, i, e);
	if (!s->is_server_failed)
		sweep_line(s, "[NO SUCCESSFUL MEASURED RUNS] leaving combination retryable");
	return 0;
}

int sweep_level(struct sweep *s, const struct json_value *serve, const struct json_value *bench,
		const char *folder, struct sweep_records *out, struct err *e)
{
	return sweep_level_until(s, serve, bench, folder, NULL, NULL, out, e);
}
