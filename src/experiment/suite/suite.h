/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suite.h - one configuration as the experiments it describes, and all of them run.
 *
 * A configuration without matrix, experiments, import and repeat is a suite of one: its document is
 * the file of --output itself, its logs and records are in the folder next to it ("r.json": "r.d").
 * Otherwise every member has a document of its own in that folder, NAME.json or NAME-rN.json, and
 * the file of --output holds all of them, in the order of the configuration:
 *
 *   {"schema_version", "suite", "plan": {...}, "experiments": [documents], "lacking": [names]}
 *
 * A member's document is written whole when the member has ended, with any outcome; the suite's is
 * made of those files. So a suite that was ended at any moment resumes from its files: --resume
 * keeps members that are completed and have the same configuration (struct experiment's hash, the
 * document's config.configured_hash), and runs the rest.
 *
 * Members are (experiments and imported tests, or one) x (matrix, or one) x repeats. A member of
 * the list is named by itself, one of the matrix by what differs ("max_num_seqs=4-request_rate=2":
 * the last word of each path, the whole path when two end alike), both joined by "-".
 */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/serve/point.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "experiment/config/config.h"
#include "experiment/config/experiment.h"

/*
 * When servers are started: for every member; when the previous member had other ones (server,
 * servers, resources, profiling) or they died; once, which needs all members to have the same ones;
 * or, the default, like ON_CHANGE and for every repeat, because repeats on one server are one
 * sample.
 */
enum suite_restart {
	SUITE_RESTART_ALWAYS, SUITE_RESTART_ON_CHANGE, SUITE_RESTART_NEVER, SUITE_RESTART_ON_REPEAT,
};
const char *suite_restart_name(enum suite_restart how); /* "always", ... */

/* Options of the command line. */
struct suite_opts {
	const char *output;        /* --output FILE; NULL: the configuration's */
	/* Patterns (* ?), one of which a name must match; ends NULL. NULL: all. */
	const char *const *only;
	bool is_resumed;           /* --resume */
	unsigned jobs;             /* --jobs; 0: the configuration's */
	/* --scheduler, --hosts: NULL: the configuration's; --scheduler-args, after its args. */
	const char *scheduler, *hosts;
	const struct opt_list *scheduler_args; /* may be NULL */
	bool is_detached;          /* --no-wait: Slurm's jobs are submitted and not waited for */
	/*
	 * --member I/N@HASH[:STEM]: this process runs one member of a suite for another process of
	 * ours, as the I-th of N repeats; the configuration is that member's, merged. HASH: the
	 * parent's hash of it, which a machine with other GPUs would compute differently; STEM:
	 * where the files of an imported test go. NULL: none.
	 */
	const char *member;
	/* Words that follow those of `profllm run` in the commands of children; ends NULL. */
	char *const *child_words;
};

/*
 * Where members run: one after another here, or as processes of this machine (jobs), as tasks of
 * Slurm's job arrays (suite_slurm.c), as processes of hosts that ssh reaches (suite_jobs.c).
 */
enum suite_scheduler { SUITE_LOCAL, SUITE_SLURM, SUITE_SSH };

/* A search for the best of the suite's experiments; see suite_search.h. */
struct suite_search;
/* An imported test of upstream; see import.h. NULL in other members. */
struct import_test;

struct suite_member {
	struct experiment x;
	const struct json_value *config;   /* merged: of this member alone */
	const char *label;                 /* "NAME", "NAME-r2" */
	const char *path, *folder;         /* of its document; of its logs, records, traces */
	const struct import_test *test;
	bool is_chosen;                    /* by --only */
};

struct suite {
	const char *name;                  /* of the suite; NULL: none */
	struct suite_member *member;       /* as configured, the repeats of one after another */
	size_t n;
	size_t *order;                     /* n places of member, as they are run */
	bool is_single;                    /* the document is the member's; only SUITE_LOCAL */
	enum suite_scheduler where;
	struct experiment_scheduler scheduler;
	struct config_host *host;          /* SUITE_SSH */
	size_t n_hosts;
	enum suite_restart restart;
	bool stop_on_error, is_shuffled;
	uint64_t seed;                     /* of the order, when shuffled */
	unsigned jobs;                     /* at once; SUITE_SLURM: 0 is as many as Slurm likes */
	/*
	 * Set for a suite with search.best, else NULL: the members it expands to are the
	 * candidates. Members are those of the first round, and suite_run adds those of later ones.
	 */
	struct suite_search *search;
	const char *output, *folder;       /* the file, and the folder next to it */
	const struct config *config;
	const struct config_know *know;
	struct arena arena;                /* everything above */
};

/*
 * Merges, types and judges every member before anything is started. -1: f has errors; the suite is
 * released then, unless it is a suite of one whose experiment is invalid: it keeps what could be
 * read, for a failed document (is_single, member[0].x).
 */
int suite_expand(const struct config *config, const struct config_know *know,
		 const struct suite_opts *o, struct suite *out, struct config_findings *f);
void suite_release(struct suite *s);
/* ERR_USAGE when --only chose none of them; suite_run checks it, too. */
int suite_check_only(const struct suite *s, struct err *e);

/*
 * Finds GPUs named by chosen members that are missing, not allowed or split, before anything is
 * moved or started. -1: f has an error.
 */
int suite_check_gpus(const struct suite *s, struct config_findings *f);

/* Whether every member is a process of its own, here or elsewhere, with its own servers. */
bool suite_has_children(const struct suite *s);
/*
 * Whether the configuration or the option says that members run on other machines, whose GPUs and
 * programs differ from this one's. Called before values are typed.
 */
bool suite_is_elsewhere(const struct config *c, const char *scheduler);

/* Whether a server of one can be used for the other. */
bool suite_same_servers(const struct experiment *a, const struct experiment *b);
/*
 * Whether the servers of a are kept for b, which is run next. Unless the configuration says so,
 * servers whose caches cannot be emptied are not: b would be measured on the prompts of a.
 */
bool suite_keeps_servers(const struct suite *s, const struct suite_member *a,
			 const struct suite_member *b);

/* ---- before anything is run ---- */

/* Results of suite_check; zeroed before, suite_checked_release in any case. */
struct suite_checked {
	const struct suite_member *member; /* the member that `early` was prepared for; NULL:
					    * none */
	struct point_early early;          /* the first one's: they are made once */
	const char *category;              /* of the refusal, as in a document */
	bool is_world;                     /* nothing but the world is wrong: the network is away */
	bool is_cancelled;
};

/*
 * Checks, once for each different command and benchmark of the members that would be run, what a
 * configuration alone does not show: that servers' programs exist, and experiment_prepare. Results
 * are findings with their place. -1: f has errors, or is_cancelled. is_planned: missing programs
 * and network failures are notes, as they may be there on another machine or tomorrow.
 */
int suite_check(const struct suite *s, const struct suite_opts *o, bool is_planned,
		const struct experiment_hooks *hooks, struct suite_checked *out,
		struct config_findings *f);
void suite_checked_release(struct suite_checked *c);

/* ---- running ---- */

struct suite_now {
	const struct suite_member *member; /* that begins, or has ended */
	size_t at, n;                      /* from 1, of those that are run in this sitting */
	bool has_ended;
	enum outcome_status status;        /* has_ended */
	const char *reason;                /* has_ended and not completed; or NULL */
	double took_s;                     /* has_ended */
	double left_s;                     /* by those that have ended; NAN: not known */
};

struct suite_hooks {
	void *self;
	struct experiment_hooks run;       /* of members that run in this process */
	struct suite_checked *checked;     /* of suite_check for this suite: is used up; or NULL */
	void (*member)(void *self, const struct suite_now *now); /* NULL: none */
	/* A line of a member that runs as a child; is_err: it was on stderr. */
	void (*child)(void *self, const struct suite_member *m, const char *text, bool is_err);
};

struct suite_tally {
	size_t completed, partial, failed, kept, left; /* kept: by --resume; left: not run */
	size_t doubtful;                   /* completed, but the verdict is not VALID */
	bool is_interrupted, is_detached;  /* is_detached: the rest continues without us */
	struct outcome *single;            /* of the member that was run last here; NULL: none */
	struct outcome outcome;            /* what single points to */
};
void suite_tally_release(struct suite_tally *t);

/*
 * Runs chosen members that are not kept, and writes every document. 0 also when members failed: see
 * the tally. -1: a document could not be written (ERR_IO), or nothing matches --only.
 */
int suite_run(struct suite *s, const struct suite_opts *o, const struct suite_hooks *hooks,
	      struct suite_tally *out, struct err *e);
/* After a search: the last member of the best experiment; NULL: there is none. */
const struct suite_member *suite_found(const struct suite *s);

/*
 * Writes the document of an experiment that was refused before it ran: x may have only a name. A
 * result at path is kept and no document is written (*is_kept), so that a mistake does not destroy
 * earlier measurements.
 */
int suite_write_refused(const struct experiment *x, const char *path, const char *category,
			const char *reason, bool *is_kept, struct err *e);

/*
 * Whether the document at path is one of x that is completed, of a configuration that measures the
 * same.
 */
bool suite_is_done(const struct suite_member *m);

/*
 * What a suite would do, without doing it: --dry-run.
 *
 * For every member that would run, in the order of running: each server's environment and command
 * (words quoted for a shell, secrets as '***'), the benchmark as the equivalent `vllm bench`
 * command, what it needs, and the estimated time with its basis: the same member's earlier
 * document, else server starts in earlier documents and the load's own schedule. GPUs are only
 * chosen when they are taken; ports are the first of their range, others when those are in use.
 *
 * Nothing is started, taken or written.
 */
/* A text for people. */
void suite_plan_text(const struct suite *s, const struct suite_opts *o, struct buf *out);
/*
 * The same as one JSON object: {"suite", "output", "jobs", "restart", "shuffle_seed", "total_s",
 * "n_run", "n_unknown", "n_starts" (of servers), "experiments": [{"name", "mode", "document",
 * "is_kept", "servers_of" (the member whose servers are reused, or null), "gpus", "n_gpus", "ports",
 * "servers": [{"name", "role", "url", "command", "environment"}], "benchmark", "profiling", "time":
 * {"start_s", "load_s", "total_s", "basis"}}]}, with a newline at its end. Kept ones are those that
 * --resume would not run.
 */
void suite_plan_json(const struct suite *s, const struct suite_opts *o, struct buf *out);

/* how long members may take; used in plan.c only. */
struct plan_time {
	double start_s;          /* of the servers; NAN: not known; 0: none is started for it */
	double load_s;           /* NAN: as fast as the server can */
	double total_s;          /* NAN: not known */
	char basis[160];         /* what it is made of */
};

struct plan_times;

/* Seconds that load takes by its own schedule; NAN: it has none. */
double plan_load_s(const struct experiment *x);

/*
 * The end of a suite: a line for each member with the parameters that differ, throughput, TTFT,
 * TPOT and verdict; the same with more columns as a CSV file; what to do next.
 */
struct suite_table {
	struct buf text; /* lines for a terminal: the table, the best member, what was left out */
	struct buf csv;
	struct buf next; /* one line: what fits the outcome */
};

/* The change since earlier runs: a column, and sentences below the table. Borrowed. */
struct suite_against {
	const char *title;       /* NULL: no column */
	const char *const *cell; /* one for each member; NULL: empty */
	struct str text;         /* whole lines */
};

/*
 * Made from the members' documents. A parameter is a value of the configuration that differs
 * between members; the terminal leaves out those that every member's name contains already.
 */
void suite_table(const struct suite *s, const struct suite_tally *tally,
		 const struct suite_against *against, struct suite_table *out);
void suite_table_release(struct suite_table *t);
/* "a/r.csv" for "a/r.json". NULL: the output cannot have a file next to it. Caller frees. */
char *suite_csv_path(const struct suite *s);
