/* SPDX-License-Identifier: Apache-2.0 */
/* plot_gpus.h - GPUs that a sweep's servers took and its records do not tell. */
#pragma once
#include "results/read/frame.h"

/*
 * Warns when servers.json of the experiment's folder names a server of several GPUs and no
 * record has a number that plot_pareto would count by: every server is then taken for one
 * GPU, as upstream takes it. gpu_count_var: what the user named; may be "".
 */
void plot_gpus_warn(const char *folder, const struct frame *records, const char *gpu_count_var);
