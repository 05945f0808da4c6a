/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve_points.h - several runs of one `bench serve` line, as upstream's Rust client has
 * them: one for each value of --sweep-max-concurrency or --sweep-request-rate, and a table
 * at the end (serve spec 10). Files that a run writes under a name of their own get the value into
 * that name. Whole experiments are `bench sweep serve`.
 */
#pragma once
#include "bench/options/serve_opts.h"
#include "cmd/console/cli.h"

bool serve_points_are_wanted(const struct serve_opts *o);
/*
 * cli and o as cli_begin gave them for argv. Ends cli; the first status that is not 0 is
 * returned. A point that fails does not keep the others from being measured, one that is
 * interrupted or called wrongly does.
 */
int serve_points(struct cli *cli, const struct serve_opts *o, int argc, char **argv);
