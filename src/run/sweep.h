/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/sweep.h - an experiment under way: combinations in, records out (sweep spec 7.3, 7.4).
 *
 * The unit is a level: one folder below the experiment's with run=0.json ... run=N-1.json, a
 * warmup.json if asked for, and summary.json, the list of its run records. A level that has all
 * its runs is only read; what it lacks is run. So an experiment that was interrupted at any
 * moment goes on from its files and ends with the same ones: a run's file appears whole or not
 * at all, and one that cannot be read, or that tells it was cut short, is run again.
 *
 * At most one server runs at a time, for one combination of server options: it is started when
 * the first level needs a run, kept while the levels have the same combination (unless
 * --restart says otherwise), and started again when it died. servers.json in the experiment's
 * folder lists every start: command, version, capacity, seconds until ready, log, how it ended.
 *
 * What fails is recorded (run=N.failure.json, SERVE-NAME-failure.json) and counted in n_failed; the
 * experiment goes on unless --stop-on-error. Terminal lines are upstream's.
 *
 * Use: sweep_begin; for each level sweep_level and sweep_add; sweep_server_end; sweep_finish;
 * sweep_release always. sweep_serve does all of that for `bench sweep serve`.
 */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "run/params.h"
#include "run/sweep_opts.h"

struct sweep_progress {
	unsigned point, points; /* from 1; points 0: not known */
	unsigned run, runs;     /* from 1; 0: the warm-up */
	double left_s;          /* until the end, from the runs so far; NAN: not known */
};

/* How a sweep talks to whoever started it, on its thread. cancel, line and warn are required. */
struct sweep_hooks {
	void *self;
	void (*line)(void *self, const char *text); /* for stdout, without a newline at the end */
	void (*warn)(void *self, const char *text);
	void (*progress)(void *self, const struct sweep_progress *now); /* NULL: none */
	/*
	 * A benchmark inside this program: knows says whether it can; bench gives its exit status
	 * (-1 with e: none). NULL: every command is started.
	 */
	bool (*knows)(void *self, char *const *argv);
	int (*bench)(void *self, char *const *argv, bool is_shown, struct err *e);
	const atomic_bool *cancel;
};

/* Run records: JSON objects as they stand in summary.json. */
struct sweep_records {
	const struct json_value **v;
	size_t n, cap;
};

struct sweep_link { const char *serve, *bench; };

struct server;
struct sweep_start; /* sweep_server.c's */
struct sweep {
	const struct sweep_opts *o;
	const struct sweep_hooks *hooks;
	struct arena arena;               /* everything below */
	char **serve_cmd, **bench_cmd, **after_cmd; /* after_cmd NULL: caches are reset */
	struct params serve, bench;
	struct sweep_link *link;
	size_t n_links;
	char *folder;                     /* the experiment's */
	int lock;                         /* 1 + the folder's descriptor; 0: not entered */
	struct sweep_records records;     /* of all levels so far, for summary.csv */
	unsigned n_failed;                /* runs and servers */
	struct sweep_progress progress;   /* point and points are the verb's to fill */
	double run_s;                     /* seconds of all runs made so far, caches reset */
	unsigned n_runs;                  /* how many */
	unsigned runs_left;               /* still to be made; the verb's to fill */
	/* the server; sweep_server.c's */
	struct server *server;            /* NULL: none runs */
	const struct json_value *serving; /* its combination; NULL: no [BEGIN SERVER] is open */
	bool is_server_failed;            /* none could be started for what was asked last */
	struct sweep_start *first_start, *start; /* of this sitting; start: the last one */
	const struct json_value *earlier; /* what servers.json held; NULL: nothing */
};

/*
 * Reads the parameter files, splits the commands and settles the folder: it must exist with
 * --resume and must not without. Nothing is written yet. ERR_RUN with upstream's sentences.
 */
int sweep_begin(struct sweep *s, const struct sweep_opts *o, const struct sweep_hooks *hooks,
		struct err *e);
/* Whether --link-vars allow the pair. */
bool sweep_is_linked(const struct sweep *s, const struct json_value *serve,
		     const struct json_value *bench);
/*
 * The folder of a level (see params_folder; extra may be NULL), in the arena. An experiment that
 * has it in serve_multi's spelling goes on there.
 */
char *sweep_folder(struct sweep *s, const struct json_value *serve, const struct json_value *bench,
		   const char *const *extra);
/* How many of this level's runs are not there yet. */
unsigned sweep_runs_lacking(struct sweep *s, const char *folder);

/*
 * A server for this combination, started unless it runs already; one of another combination is
 * ended first. Prints [BEGIN SERVER] and what follows. Dry-run: only prints. 0 also when it could
 * not be started: is_server_failed is set, the failure recorded. -1: the sweep must end.
 */
int sweep_server_begin(struct sweep *s, const struct json_value *serve, struct err *e);
int sweep_server_end(struct sweep *s, struct err *e); /* nothing when none was begun */

/*
 * One level: reads the runs that are there and makes the others with bench put on the benchmark's
 * command. A server is begun only if a run is lacking, unless the verb has begun one. out gets its
 * records (fewer than --num-runs when some failed, none in a dry run), as they stand in
 * summary.json. -1: the sweep must end (cancelled, --stop-on-error, no room); what was measured
 * stays.
 */
int sweep_level(struct sweep *s, const struct json_value *serve, const struct json_value *bench,
		const char *folder, struct sweep_records *out, struct err *e);
/*
 * Like it, but ends as soon as is_enough, asked after each run, says yes to the records so far: a
 * search may stop early. summary.json has whatever runs are there.
 */
typedef bool sweep_enough(void *self, const struct sweep_records *so_far);
int sweep_level_until(struct sweep *s, const struct json_value *serve,
		      const struct json_value *bench, const char *folder,
		      sweep_enough *is_enough, void *self, struct sweep_records *out,
		      struct err *e);
void sweep_add(struct sweep *s, const struct sweep_records *level);

/*
 * Ends the server, writes summary.csv (not in a dry run) and prints upstream's last line. rc is
 * what the levels gave: after -1 the error gets upstream's sentence about --resume. Returns the
 * exit status: 1 when something failed, -1 with e.
 */
int sweep_finish(struct sweep *s, int rc, struct err *e);
void sweep_release(struct sweep *s);

/* `bench sweep serve`, from begin to finish. The exit status, or -1 with e. */
int sweep_serve(const struct sweep_opts *o, const struct sweep_hooks *hooks, struct err *e);
/* `bench sweep startup`: no server, a command that measures starting one (sweep spec 7.7). */
int sweep_startup(const struct sweep_opts *o, const struct sweep_hooks *hooks, struct err *e);
