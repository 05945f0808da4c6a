/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experiment/plan.h - what a suite would do, without doing it: --dry-run.
 *
 * For every member in the order of running: each server's environment and command as it would be
 * started (words quoted for a shell, secrets as '***', the GPUs and ports that are only known once
 * they are taken as $GPUS and $PORT), the benchmark as the `vllm bench` command that would do the
 * same, what it needs, and how long it may take with what that is based on: the same member's
 * earlier document, else starts of earlier documents in the folder and the load's own schedule.
 * Pure but for reading those documents.
 */
#pragma once
#include "base/buf.h"
#include "experiment/suite.h"

enum plan_basis { PLAN_UNKNOWN, PLAN_EARLIER, PLAN_SCHEDULE };

struct plan_time {
	enum plan_basis basis;
	double start_s;       /* of the servers; NAN: not known */
	double load_s;        /* NAN: as fast as the server can */
	double total_s;       /* NAN: not known */
};

/* Of one member, when all that is known is x and what lies in its suite's folder. */
struct plan_time suite_plan_time(const struct suite *s, const struct suite_member *m);

/* A text for people, with a newline at its end. */
void suite_plan_text(const struct suite *s, const struct suite_opts *o, struct buf *out);
/* The same as one JSON object. */
void suite_plan_json(const struct suite *s, const struct suite_opts *o, struct buf *out);
