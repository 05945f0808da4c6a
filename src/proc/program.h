/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc/program.h - where the program profllm lies, for those that start it again: keepers, the
 * simulator as a server, the members of a suite that run at once.
 *
 * In the program itself that is this process's own file. In a library it is not: the process
 * belongs to somebody else, and the program is looked for as $PROFLLM_PROGRAM, then beside the
 * library, in ../bin and ../../bin from there (libraries lie in lib/ or lib/TRIPLET/), then in
 * PATH. Whether this code lies in a library is asked of the dynamic linker; there is no state.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"

/*
 * As the first word of a command that the user gives, PROGRAM_WORD means this very program,
 * whatever PATH has: proc/keeper.h and proc/tool.h start program_exec's in its place.
 */
#define PROGRAM_WORD "profllm"

/*
 * Replaces out by its path. -1 with one sentence: only in a library. What is given to exec may
 * be program_exec's, which also works after the file has been replaced.
 */
int program_path(struct buf *out, struct err *e);
int program_exec(struct buf *out, struct err *e);
