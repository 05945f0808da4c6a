/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/offline_find.h - which program drives the engine of a backend. Private to run/.
 *
 * --worker-cmd is that program. Otherwise it is this executable (sim), or a file that comes with
 * us, started by itself (llama) or by an interpreter that has the engine's package.
 *
 * Such files are looked for in $PROFLLM_WORKERS, else in "workers" beside our executable, else in
 * "../libexec/profllm/workers" from there. Python is --python, $PROFLLM_PYTHON, that of
 * $VIRTUAL_ENV, the one that `vllm` of PATH is started with, or python3 of PATH.
 */
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "run/offline.h"

struct offline_program {
	char **argv;         /* ended by NULL; in the arena, with its words */
	const char *python;  /* the interpreter; NULL: none is needed */
	bool is_wrapped;     /* Nsight Systems stands before it */
};

/* ERR_USAGE: no such program, file or interpreter; the sentence says where it was sought. */
int offline_find(const struct offline_start *how, struct arena *a, struct offline_program *out,
		 struct err *e);

/* The interpreter that a script's first line names, if it is a Python; else "". */
struct str offline_interpreter(struct str script);
