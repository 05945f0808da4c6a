/* SPDX-License-Identifier: Apache-2.0 */
/* suite_internal.h - shared by the files of suite only. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/mem.h"
#include "core/json/read.h"
#include "experiment/config/config.h"
#include "experiment/suite/import.h"
#include "experiment/suite/suite.h"

/* One configuration as text values: a member before it is typed, repeats not counted. */
struct suite_part {
	const char *name;                 /* NULL: the configuration's own */
	const struct json_value *tree;
	const struct import_test *test;
	bool has_own_benchmark;           /* of another mode than the configuration's */
};
struct suite_parts {
	struct suite_part *v;
	size_t n, cap;
	bool is_list;                     /* made of matrix, experiments or import */
};

/* Takes the keys of suites out of c's tree, and merges every combination. -1: f has errors. */
int suite_parts(const struct config *c, const struct config_know *know, struct arena *a,
		struct suite_parts *out, struct config_findings *f);

/* benchmark.mode of a tree, before values are typed; serve where it has none. */
enum experiment_mode suite_mode_of(const struct json_value *tree);

/*
 * The cause of a failure of this category, as a text: other members with the same text would fail,
 * too. False: it may be the member's own, or temporary.
 */
bool suite_cause(const struct experiment *x, const char *category, struct buf *out);

/* ---- running: suite_run.c, suite_jobs.c and suite_slurm.c ---- */

struct suite_slurm;

struct suite_sitting {
	const struct suite *s;
	const struct suite_opts *o;
	const struct suite_hooks *hooks;
	struct suite_tally *tally;
	size_t *due;                      /* places of member, in order */
	size_t n_due, n_ended;
	double began_s, took_s;           /* took_s: of all that have ended */
	struct suite_member **probe;      /* of searches, as well as those of the suite */
	size_t n_probe;                   /* all that belong to it; n_probes: run in this sitting */
	size_t n_probes;
	struct arena arena;               /* of probes */
	struct suite_failed {             /* a failure that others would repeat */
		const char *label, *reason;
		size_t n;                 /* of those that were not run for it */
	} *cause;
	size_t n_causes;
	struct map causes;                /* suite_cause: place of cause */
	struct suite_slurm *slurm;        /* of suite_slurm.c alone */
	bool *is_adopted;                 /* of each of due: it runs already; NULL: none does */
	size_t n_running;                 /* the most that Slurm ran at the same time; 0: none */
	bool is_detached;                 /* the rest continues without us */
	int64_t written_ns;               /* when the suite's document was, and what that took */
	int64_t write_took_ns;
};

void suite_say_begin(struct suite_sitting *t, const struct suite_member *m, size_t at);
/* Runs one member in this process, as the at-th; is_kept: its servers are left in site. */
int suite_run_one(struct suite_sitting *t, const struct suite_member *m, size_t at,
		  struct experiment_site *site, bool is_kept, struct err *e);
/* Counts a member whose document is at its path, and rewrites the suite's. took_s: NAN unknown. */
int suite_ended(struct suite_sitting *t, const struct suite_member *m, double took_s,
		struct err *e);
/*
 * Writes a document for a member that another machine has left without one, as for an interrupted
 * run.
 */
int suite_write_lost(const struct suite_member *m, const char *category, const char *reason,
		     struct err *e);
/* "FOLDER/upstream/LABEL": where the files for upstream's tables go. Caller frees. */
char *suite_imported_stem(const struct suite *s, const struct suite_member *m);
bool suite_is_cancelled(const struct suite_sitting *t);
/* Whether it would fail like an earlier member; then it is counted, and must not be run. */
bool suite_is_futile(struct suite_sitting *t, const struct suite_member *m);
/* jobs > 1, or SUITE_SSH: runs every member of due as a child. */
int suite_jobs_run(struct suite_sitting *t, struct err *e);
/* SUITE_SLURM: runs every member of due as a task of a job array. */
int suite_slurm_run(struct suite_sitting *t, struct err *e);
/*
 * Finds the members of due whose tasks of an earlier run still wait or run: t->is_adopted. -1:
 * Slurm does not answer, or there are some that must not be taken (no --resume, another
 * configuration).
 */
int suite_slurm_adopt(struct suite_sitting *t, struct err *e);
void suite_slurm_free(struct suite_slurm *s); /* accepts NULL */

/* ---- what a member that is a process of its own is given: suite_child.c ---- */

/* The merged configuration; "$" is doubled, because texts are filled in when they are read. */
int suite_child_config(const struct suite *s, const struct suite_member *m, struct buf *out,
		       struct err *e);
/* `program run --member ...`, ended by NULL, in a. */
char **suite_child_words(const struct suite_sitting *t, const struct suite_member *m,
			 const char *program, const char *config, struct arena *a);
#define SUITE_NO_FOLDER 253 /* exit status of the script where this folder is not there */
/*
 * The same as files for a machine that has the same folders: STEM.yaml and STEM.sh, readable by
 * their owner alone. more: further words, ended by NULL, or NULL.
 */
int suite_child_files(const struct suite_sitting *t, const struct suite_member *m,
		      const char *stem, const char *const *more, struct err *e);
void suite_child_forget(const char *stem); /* removes them */
/* "FOLDER/scheduler", for files of members that run elsewhere, made. NULL with e. Caller frees. */
char *suite_scheduler_folder(const struct suite *s, struct err *e);

/* How long a child may take to stop its servers and write its document, in seconds. */
double suite_grace_s(const struct experiment *x);

/* ---- searches beyond imported lists of concurrency ---- */

/* Whether the member at that place of due is the last of its test and rate, and needs a search. */
bool suite_adapt_is_due(const struct suite_sitting *t, size_t at);
/* The search for m's test and rate, based on the results so far. Leaves servers in site. */
int suite_adapt(struct suite_sitting *t, const struct suite_member *m,
		struct experiment_site *site, struct err *e);
/* The same for tests of which nothing had to be run, or that children have run. */
int suite_adapt_rest(struct suite_sitting *t, struct experiment_site *site, struct err *e);

/* The parts of a document that the parent reads. */
struct suite_document {
	enum outcome_status status;
	char reason[512], category[32];   /* "" when completed */
	char hash[17];
	double duration_s, startup_s;     /* NAN: not there; startup_s: of the slowest server */
	bool is_valid;                    /* the verdict, where there is one */
	bool has_hash;
	bool is_cut;                      /* its run has not ended: killed, or still running */
};
/* The document at m's path, however it ended; false: none, or of another configuration. */
bool suite_document_of(const struct suite_member *m, struct suite_document *out);

/*
 * Upstream's search for the largest concurrency within limits, from a list of levels that were run
 * anyway (sweep spec 8.2). Pure: the caller runs the levels that adapt_next returns.
 *
 * The list gives the last level that passes and the first failure after it; failures before any
 * pass are ignored. With both, whole numbers in between are bisected until they are neighbors. If
 * all pass, the search continues beyond the largest, first by the list's last gap, each time by
 * twice as much, up to a maximum, and bisects after the first failure. It ends early when its
 * probes are used up or a result has no verdict. When nothing passes there is no search.
 *
 * Limits apply exactly, without slack. search.h searches better; this one is for results that are
 * compared with upstream's.
 */
enum adapt_verdict { ADAPT_PASS, ADAPT_FAIL, ADAPT_UNKNOWN };

struct adapt_point {
	int64_t concurrency;
	enum adapt_verdict verdict;
};

struct adapt {
	const struct import_opts *o;
	/* 0: none */
	int64_t static_last_pass, static_first_fail, last_pass, first_fail;
	int64_t largest, step, probes;
	bool is_ended;
};

/*
 * Judges by p99 TTFT and TPOT of a result, or what it has of them, and by its share of failed
 * requests, with the rules of sweep/sla.h.
 */
enum adapt_verdict adapt_judge(const struct json_value *result, const struct import_opts *o);

/* points: sorted, no level twice. */
void adapt_begin(struct adapt *a, const struct import_opts *o, const struct adapt_point *points,
		 size_t n);
/* The next level to run; 0: the search is over. */
int64_t adapt_next(const struct adapt *a);
/* Records a level's result. is_new: it was run for the search and used up a probe. */
void adapt_take(struct adapt *a, int64_t concurrency, enum adapt_verdict verdict, bool is_new);
