/* SPDX-License-Identifier: Apache-2.0 */
/* bench_sweep.c - `profllm bench sweep serve` and `startup`. */
#include <string.h>

#include "cmd/console/cli.h"
#include "cmd/verbs/cmd.h"
#include "cmd/verbs/sweep_talk.h"

int cmd_bench_sweep_serve(int argc, char **argv)
{
	return sweep_talk(argc, argv, &sweep_serve_opt_set, sweep_serve);
}

int cmd_bench_sweep_startup(int argc, char **argv)
{
	return sweep_talk(argc, argv, &sweep_startup_opt_set, sweep_startup);
}
