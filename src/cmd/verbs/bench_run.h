/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_run.h - `bench serve` as a step of another verb (sweeps), in this process: no
 * start-up, and Ctrl-C reaches it by the same flag.
 */
#pragma once
#include <stdbool.h>

#include "core/base/err.h"

/* Whether argv (ended by NULL) is `vllm bench serve ...` or `profllm bench serve ...`. */
bool bench_run_knows(char *const *argv);
/*
 * Runs it and returns its exit status (130: interrupted); e is what it ended with. Unless
 * is_shown, what it prints on stdout goes nowhere.
 */
int bench_run(char *const *argv, bool is_shown, struct err *e);
