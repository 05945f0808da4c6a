/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web/launch.h - experiments that are started from the dashboard. Private to web/.
 *
 * A job of the kind "run" has a folder of its own: config.yaml, result.json with its result.d, and
 * log.txt, which holds all that `profllm run` prints. The program runs below a keeper
 * (proc/keeper.h), so that its servers end with it and it ends with us. One thread starts those
 * that wait, at most web_opts.launches at once; when one has ended its document and traces are
 * taken into the store. A job that was running when we ended is told as failed at the next start.
 */
#pragma once
#include "web/job.h"

int launch_open(struct web *w, struct err *e);
/* Ends what runs; jobs that wait go on waiting for the next start. */
void launch_stop(struct web *w);
void launch_close(struct web *w);

int launch_cancel(struct web *w, const struct job *job, struct err *e);
int launch_log(const struct web_request *r, const struct job *job, struct web_answer *a,
	       struct err *e);
void launch_events(const struct web_request *r, const struct job *job, struct web_answer *a);
