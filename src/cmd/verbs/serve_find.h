/* SPDX-License-Identifier: Apache-2.0 */
/* serve_find.h - `bench serve --find-max-rate` and `--find-max-concurrency`. */
#pragma once
#include "bench/options/serve_opts.h"
#include "cmd/console/cli.h"

bool serve_find_is_wanted(const struct serve_opts *o);
/*
 * cli and o come from cli_begin with serve_opt_set and these words. Ends cli, whose err stays;
 * returns the exit status: 0 with a capacity, 1 without one, 130 interrupted.
 */
int serve_find(struct cli *cli, const struct serve_opts *o, int argc, char **argv);
