/* SPDX-License-Identifier: Apache-2.0 */
/* suite_internal.h - what the files of suite share; for no others. */
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

/*
 * Keys of suites taken out of c's tree, and every combination merged. -1: f has errors.
 */
int suite_parts(const struct config *c, const struct config_know *know, struct arena *a,
		struct suite_parts *out, struct config_findings *f);

/* benchmark.mode of a tree, before it is typed; serve where it is none. */
enum experiment_mode suite_mode_of(const struct json_value *tree);

/*
 * What a failure of this category comes of, as a text: whoever has the same fails likewise. False:
 * it may be the member's own, or of this moment.
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
	bool is_detached;                 /* what is left goes on without us */
	int64_t written_ns;               /* when the suite's document was, and what that took */
	int64_t write_took_ns;
};

void suite_say_begin(struct suite_sitting *t, const struct suite_member *m, size_t at);
/* One member in this process, as the at-th; is_kept: its servers are left in site. */
int suite_run_one(struct suite_sitting *t, const struct suite_member *m, size_t at,
		  struct experiment_site *site, bool is_kept, struct err *e);
/* Counts a member whose document is at its path, and rewrites the suite's. took_s: NAN unknown. */
int suite_ended(struct suite_sitting *t, const struct suite_member *m, double took_s,
		struct err *e);
/* A document for a member that another machine has left without one; as an interrupted run. */
int suite_write_lost(const struct suite_member *m, const char *category, const char *reason,
		     struct err *e);
/* "FOLDER/upstream/LABEL": where the files for upstream's tables go. Caller frees. */
char *suite_imported_stem(const struct suite *s, const struct suite_member *m);
bool suite_is_cancelled(const struct suite_sitting *t);
/* Whether it would fail as one before it did; it is counted, and is not to be run then. */
bool suite_is_futile(struct suite_sitting *t, const struct suite_member *m);
/* jobs > 1, or SUITE_SSH: every member of due as a child. */
int suite_jobs_run(struct suite_sitting *t, struct err *e);
/* where SUITE_SLURM: every member of due as a task of a job array. */
int suite_slurm_run(struct suite_sitting *t, struct err *e);
/*
 * Those of due whose tasks of an earlier run are still waiting or running: t->is_adopted. -1: Slurm
 * does not answer, or some are there and must not be taken (no --resume, another configuration).
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
 * Those as files for a machine that has the same folders: STEM.yaml and STEM.sh, for their owner
 * alone. more: further words, ended by NULL, or NULL.
 */
int suite_child_files(const struct suite_sitting *t, const struct suite_member *m,
		      const char *stem, const char *const *more, struct err *e);
void suite_child_forget(const char *stem); /* removes them */
/* "FOLDER/scheduler", for files of members that run elsewhere, made. NULL with e. Caller frees. */
char *suite_scheduler_folder(const struct suite *s, struct err *e);

/* How long a child may take to stop its servers and write its document, in seconds. */
double suite_grace_s(const struct experiment *x);

/* ---- searches beyond imported lists of concurrency ---- */

/* Whether the member at that place of due is the last of its test and rate, and wants a search. */
bool suite_adapt_is_due(const struct suite_sitting *t, size_t at);
/* The search of m's test and rate, by the results there are. Leaves servers in site. */
int suite_adapt(struct suite_sitting *t, const struct suite_member *m,
		struct experiment_site *site, struct err *e);
/* Those of tests of which nothing had to be run, or that children have run. */
int suite_adapt_rest(struct suite_sitting *t, struct experiment_site *site, struct err *e);

/* What the parent looks at in a document. */
struct suite_document {
	enum outcome_status status;
	char reason[512], category[32];   /* "" when completed */
	char hash[17];
	double duration_s, startup_s;     /* NAN: not there; startup_s: of the slowest server */
	bool is_valid;                    /* the verdict, where there is one */
	bool has_hash;
	bool is_cut;                      /* its run has not ended: it was killed, or goes on */
};
/* The document at m's path, however it ended; false: none, or of another configuration. */
bool suite_document_of(const struct suite_member *m, struct suite_document *out);

/*
 * Upstream's search for the largest concurrency within limits, from a list of
 * levels that were run anyway (sweep spec 8.2). Pure: whoever uses it runs what adapt_next says.
 *
 * The list gives the last level that passes and the first failure behind it; failures before any
 * pass are ignored. With both, whole numbers in between are bisected until they are neighbours. If
 * all pass, the search goes on beyond the largest, first by the list's last gap, each time by twice
 * as much, up to a maximum, and bisects after the first failure. It ends early when its probes
 * are used up or a result does not say whether it passes. When nothing passes there is no search.
 *
 * Limits are held as they are, without slack. search.h searches better; this one is for results
 * that are compared with upstream's.
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
 * By p99 TTFT and TPOT of a result, or what else of them it has, and by its share of failed
 * requests, with the rules of sweep/sla.h.
 */
enum adapt_verdict adapt_judge(const struct json_value *result, const struct import_opts *o);

/* points: sorted, no level twice. */
void adapt_begin(struct adapt *a, const struct import_opts *o, const struct adapt_point *points,
		 size_t n);
/* What is to be run next; 0: the search is over. */
int64_t adapt_next(const struct adapt *a);
/* What came of it. is_new: it was run for this and used up a probe. */
void adapt_take(struct adapt *a, int64_t concurrency, enum adapt_verdict verdict, bool is_new);
