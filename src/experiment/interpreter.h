/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experiment/interpreter.h - the Python that a server's command runs in, and its packages.
 *
 * Found by words, as the kernel would find it: the first word behind `env`, NAME=VALUE, `numactl`
 * and their like that is a Python itself, or a script whose first line names one. It is asked
 * for versions of a fixed list of packages by its own metadata; none of them is imported.
 */
#pragma once
#include <stdbool.h>

#include "base/mem.h"
#include "json/read.h"

struct interpreter {
	bool is_known;                     /* it has answered */
	const char *version;               /* "3.12.4" */
	const struct json_value *packages; /* an object: name -> version */
	struct arena arena;
};

/* The interpreter of a command, in the arena; NULL: none is found. */
const char *interpreter_find(char *const *command, struct arena *a);

/* is_known stays false when there is none or it says nothing in time. */
void interpreter_ask(char *const *command, double deadline_s, struct interpreter *out);
void interpreter_release(struct interpreter *p);
