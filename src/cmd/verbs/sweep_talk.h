/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep_talk.h - what the sweep verbs that run something have in common: options, signals,
 * lines and progress on the terminal, benchmarks inside this program, the exit status.
 */
#pragma once
#include "bench/sweep/sweep.h"

/* A verb of run/: the exit status, or -1 with e. */
typedef int sweep_verb(const struct sweep_opts *o, const struct sweep_hooks *hooks,
		       struct err *e);

/* Parses argv by the set, checks it, and runs the verb. The exit status. */
int sweep_talk(int argc, char **argv, const struct opt_set *set, sweep_verb *verb);
