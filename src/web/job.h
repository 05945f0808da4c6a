/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.h - jobs: uploads of many files, and experiments that are started from the dashboard.
 * Private to web/.
 *
 * A job of the kind "run" has a folder of its own: config.yaml, result.json with its result.d, and
 * log.txt, which holds all that `profllm run` prints. The program runs below a keeper
 * (proc/keeper.h), so that its servers end with it and it ends with us. One thread starts those
 * that wait, at most web_opts.launches at once; when one has ended its document and traces are
 * added to the store. A job that was running when we ended is reported as failed at the next start.
 */
#pragma once
#include "web/route.h"

struct launch;

/* The job the request's path names; 404 else. */
int job_find(const struct web_request *r, struct web_answer *a, struct job *out, struct err *e);
/* Members of an open object: all but the files. */
void job_put(struct json_writer *j, const struct job *job);
/* "counts", by enum put_outcome. */
void job_put_counts(struct json_writer *j, const size_t n_outcome[PUT_OUTCOMES]);
/*
 * "files": all of them, or, with seen, those that are done and were not before: seen has a flag for
 * each file and is brought up to date.
 */
void job_put_files(struct json_writer *j, const struct job *job, bool *seen);
bool job_is_over(const struct job *job);

/* ---- launch.c ---- */

#define LAUNCH_EVENTS "events.jsonl"
#define LAUNCH_LOG "log.txt"

int launch_open(struct web *w, struct err *e);
/* Ends running jobs; waiting ones wait for the next start. */
void launch_stop(struct web *w);
void launch_close(struct web *w);
/*
 * Makes a new job with its folder and configuration, on disk, which then waits; its name is the
 * configuration's or "". by: the name of the token; empty: none names its user.
 */
int launch_add(struct launch *l, struct str config, struct str name, struct str by,
	       char id[static 17], struct err *e);
int launch_cancel(struct web *w, const struct job *job, struct str by, struct err *e);
/* Folder of a job of any state; NULL: it is not below our folder. Caller frees. */
char *launch_folder(const struct web *w, const struct job *job);
/*
 * Runs `profllm run` with these words and input: its exit status, or -1 with e and the answer's
 * status. It is ended when it takes too long or the client goes away. launch_ask_once: one at a
 * time for each user, LAUNCH_CHECKS_MAX for all of them, else 429.
 */
int launch_ask(const struct web_request *r, struct web_answer *a, char *const *more,
	       struct str input, struct buf *out, struct buf *errors, struct err *e);
int launch_ask_once(const struct web_request *r, struct web_answer *a, char *const *more,
		    struct str input, struct buf *out, struct buf *errors, struct err *e);
