/* SPDX-License-Identifier: Apache-2.0 */
/* run/dump.h - a workload and its plan for people (--dry-run) and programs (--dump-workload). */
#pragma once
#include "base/str.h"
#include "plan/plan.h"
#include "plan/workload.h"

/*
 * JSON lines in plan order: index, request_id, due_s (the shortest form that
 * reads back equal), prompt, prompt_len, output_len; then messages, media,
 * overrides (members of its own body, its priority among them), headers, constraint, expected
 * and lora (index) where a sample has them. id_prefix as in prepare_request_id.
 */
void dump_workload(const struct workload *w, const struct plan *plan, const char *id_prefix,
		   struct buf *out);

/* A short table: requests, tokens, lengths and arrivals. */
void dump_summary(const struct workload *w, const struct plan *plan, struct buf *out);
