/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_internal.h - what the files of a sweep share. Not for others; see sweep/sweep.h. */
#pragma once
#include <stdarg.h>

#include "bench/server/server.h"
#include "bench/sweep/search.h"
#include "bench/sweep/sla.h"
#include "bench/sweep/sweep.h"
#include "core/base/str.h"
#include "core/json/write.h"

/* A line for stdout; sweep_warn: for stderr. */
__attribute__((format(printf, 2, 3)))
void sweep_line(struct sweep *s, const char *fmt, ...);
void sweep_lines(struct sweep *s, struct str text); /* each line of a text */
__attribute__((format(printf, 2, 3)))
void sweep_warn(struct sweep *s, const char *fmt, ...);

int sweep_cancelled(struct err *e); /* fills e and returns -1 */

/* Python's repr() of a command and of a combination, in the arena. */
char *sweep_argv_text(struct sweep *s, char *const *argv);
char *sweep_comb_text(struct sweep *s, const struct json_value *comb);
/* "%s" of a combination's name, or `otherwise` when it has none. In the arena. */
char *sweep_name(struct sweep *s, const struct json_value *comb, const char *otherwise);
char *sweep_path(struct sweep *s, const char *folder, const char *file); /* in the arena */

void sweep_records_add(struct sweep *s, struct sweep_records *r, const struct json_value *record);

/*
 * Before the first file is written: makes the experiment's folder and locks it until sweep_release
 * or the end of the process. -1 when another sweep has it.
 */
int sweep_enter(struct sweep *s, struct err *e);

/* The content of a failure file. */
struct sweep_failure {
	const char *type, *text;      /* as Python's exception has them */
	const char *why;              /* ours: what the benchmark or the log said; or NULL */
	const struct json_value *serve, *bench; /* bench NULL: a server's failure */
	int run;
};
/* Writes it and prints upstream's two lines; counts it. -1: --stop-on-error, or no room. */
int sweep_fail(struct sweep *s, const char *path, const struct sweep_failure *f, struct err *e);

/* A tree as json.dump(indent=4) writes it, over path. */
int sweep_save(const char *path, const struct json_value *tree, struct err *e);

/*
 * Runs a command to its end. 0; 1: it failed, e has the words of Python's subprocess; -1: it could
 * not be started, or ERR_CANCELLED. With said it is a benchmark, run within this program if
 * possible; said is then its error, already shown to the user.
 */
int sweep_command(struct sweep *s, char *const *argv, struct err *said, struct err *e);
/* The records as an array, in the arena. */
struct json_value *sweep_list(struct sweep *s, const struct sweep_records *records);

/* ---- the server (sweep_server.c) ---- */

/* Makes the server ready for a run; is_first: of its level. As sweep_server_begin. */
int sweep_server_ready(struct sweep *s, const struct json_value *serve, bool is_first,
		       struct err *e);
/*
 * -1 with e when it died meanwhile; it is ended then. is_suspect: requests failed, so wait a moment
 * for its process to end, as connections break before that.
 */
int sweep_server_survived(struct sweep *s, bool is_suspect, struct err *e);
/*
 * After a run: --after-bench-cmd, or empties its caches, unless this was its last run. A server
 * whose caches cannot be emptied is ended.
 */
int sweep_server_after(struct sweep *s, bool is_warmup, struct err *e);
/* Refuses, before anything is run, a server whose caches cannot be emptied. */
int sweep_server_check(struct sweep *s, struct err *e);
/* Reads servers.json of earlier processes; -1 with e: they ran another benchmark. */
int sweep_server_remember(struct sweep *s, struct err *e);

/* ---- what the searches share ---- */

/*
 * The value of the variable that runs (at least one) reached by themselves: the mean of their
 * throughput, or the load in flight by Little's law. ERR_RUN when a record lacks the numbers.
 */
int sweep_estimate_mean(const char *variable, const struct sweep_records *runs, double *out,
			struct err *e);
/*
 * Starts a server for the combination before the first of its levels, as upstream does, if that
 * level's first run is missing.
 */
int sweep_begin_for(struct sweep *s, const struct json_value *serve, const char *folder,
		    struct err *e);

/* One search of `bench sweep serve_sla`, for its files only. */

struct hunt_level {
	int64_t level;
	double *mean; /* of each limit's key over the runs */
};

struct hunt {
	struct sweep *s;
	const struct json_value *serve, *bench;
	const struct sla *asked;      /* as the user wrote it: names files */
	struct sla sla;               /* and the limit on failures, the last one */
	const char *variable;
	enum search_kind kind;        /* where it is one of upstream's */
	char *folder;                 /* of the pair; contains its levels */
	struct search search;
	struct sweep_records records; /* of all levels, in the order of asking */
	struct hunt_level level[SEARCH_LEVELS_MAX];
	size_t n_levels;
	bool has_range, has_sessions; /* the runs' requests belong to conversations */
	unsigned runs_before;
	double requests;              /* of the run at infinite load, failed ones too */
	/* The server's KV cache; NAN: not reported. */
	double kv_tokens, kv_requests, kv_request_tokens;
	struct sweep_records *outcomes; /* the elements of capacity.json so far */
};

/* The unit of a level, for people. */
const char *hunt_unit(const struct hunt *h);
/* Fills value[run * limits + limit]; ERR_RUN when a result lacks a key. */
int hunt_values(struct hunt *h, const struct sweep_records *runs, double *value, struct err *e);
/* Reads the cache's size from servers.json, in requests as long as this run's. */
void hunt_read_capacity(struct hunt *h, const struct json_value *record);
/* Adds the outcome to capacity.json. */
int hunt_report(struct hunt *h, const struct search_outcome *o, struct err *e);
/* The path of the search's own file. */
char *hunt_path(struct hunt *h, const char *ending);
/* --hover: measures windows at the boundary, for the requested time. */
int hunt_hover(struct hunt *h, double capacity, struct err *e);
/* The whole search by the capacity procedure. -1: the sweep must end. */
int hunt_capacity(struct hunt *h, struct err *e);
