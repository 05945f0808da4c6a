/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experiment/plan.h - what a suite would do, without doing it: --dry-run.
 *
 * For every member that would run, in the order of running: each server's environment and command
 * as they would be started (words quoted for a shell, secrets as '***'), the benchmark as the `vllm
 * bench` command that does the same by hand, what it needs, and how long it may take, with what
 * that is based on: the same member's earlier document, else starts that earlier documents tell of
 * and the load's own schedule. Which GPUs it will be is only known when they are taken; ports are
 * the first of their range, others when those are in use.
 *
 * Nothing is started, taken or written.
 */
#pragma once
#include "base/str.h"
#include "experiment/suite.h"

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
