/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker/fault.h - in which category a worker's end or error falls. Pure. Private to worker/.
 */
#pragma once
#include "base/str.h"
#include "proc/oom.h"
#include "worker/worker.h"

/* Of an error frame's word: "memory", ...; what is not known is WORKER_FAULT_OTHER. */
enum worker_fault fault_of_category(struct str category);
/*
 * Of a program that ended without an answer: by its log, else by its exit status. reason: the line
 * of the log that says so, or empty. is_start: it had not said a word, so what it could not find
 * may be itself.
 */
enum worker_fault fault_of_end(struct str log, bool is_start, bool has_code, int code,
			       const struct oom_counter *oom, struct str *reason);
/* ERR_USAGE for what the user can mend on the command line. */
enum err_code fault_code(enum worker_fault fault);
