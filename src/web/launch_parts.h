/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web/launch_parts.h - what the files of launching share:
 *
 *   launch.c        the threads that run experiments
 *   launch_job.c    a job's folder, its detail, what an earlier process left
 *   launch_start.c  what `profllm run` is started with, and asking it
 *   launch_ask.c    the routes below /api/launch
 *   launch_events.c log, progress and telemetry of a job as they come
 */
#pragma once
#include <pthread.h>
#include <stdatomic.h>

#include "web/launch.h"
#include "web/state.h"

#define LAUNCH_CONFIG "config.yaml"
#define LAUNCH_RESULT "result.json"
#define LAUNCH_EVENTS "events.jsonl"
#define LAUNCH_LOG "log.txt"
#define LAUNCH_CHECKS_MAX 2 /* at once, of different users; half of the workers stay free */

/* A job that waits or runs. Texts are its own. */
struct started {
	struct started *next;
	char id[17];
	char *name, *folder;
	char *status, *reason;     /* of the document: "completed"; why not; NULL: not known */
	char *run_ids;             /* a JSON list; NULL: none */
	bool has_code;
	int code;                  /* exit status, or minus the signal */
	atomic_bool is_cancelled;
};

struct launch {
	struct web *web;
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct started *waiting, *running;
	pthread_t runner[WEB_LAUNCHES_MAX], cleaner;
	unsigned n_runners, n_over;
	bool has_cleaner;
	atomic_bool is_ending, is_hurried;
	char *const *envp, *const *bounds;       /* of launch_start.c; end with NULL */
	struct str checking[LAUNCH_CHECKS_MAX];  /* whose configurations are; p NULL: none */
};

void launch_add(struct launch *l, struct started *s);
void launch_drop(struct started *s);

/* ---- launch_start.c ---- */

/* Environment and bounds of whatever is started, by the server's options. */
void launch_settle(struct launch *l);
/* "PROGRAM run MORE... BOUNDS...", in the arena; ends with NULL. */
int launch_words(const struct launch *l, char *const *more, struct arena *a, char *const **out,
		 struct err *e);
/*
 * `profllm run` with these words and input, to its end: its exit status, or -1 with e and the
 * answer's status. It is ended when it takes too long or the client goes away. launch_ask_once:
 * one at a time for each user, LAUNCH_CHECKS_MAX for all of them, else 429.
 */
int launch_ask(const struct web_request *r, struct web_answer *a, char *const *more,
	       struct str input, struct buf *out, struct buf *errors, struct err *e);
int launch_ask_once(const struct web_request *r, struct web_answer *a, char *const *more,
		    struct str input, struct buf *out, struct buf *errors, struct err *e);

/* ---- launch_job.c ---- */

/* The job's detail as JSON. */
void launch_detail(const struct started *s, struct buf *out);
/* status and reason from a document of `profllm run`. */
void launch_read_status(struct started *s, struct str document);
/* The last bytes of a file; false: it cannot be read. */
bool launch_read_end(const char *path, size_t bytes, struct buf *out);
/* Jobs that waited wait again; those that ran are told as failed. */
int launch_resume(struct launch *l, struct err *e);
/* A new job with its folder and configuration, on disk; its name is the configuration's or "". */
int launch_make(struct launch *l, struct str config, struct str name, struct started **out,
		struct err *e);
/* Folder of a job of any state; NULL: it is not below our folder. Caller frees. */
char *launch_folder(const struct web *w, const struct job *job);
