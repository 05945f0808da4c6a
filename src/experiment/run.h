/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experiment/run.h - what others than the runner itself want of its parts. The life of an
 * experiment is experiment_run (experiment.h).
 */
#pragma once
#include "experiment/experiment.h"

/*
 * The outcome of one that never began: its configuration is wrong, or where its results should go
 * cannot be written. Texts are copied.
 */
void experiment_refused(const char *category, const char *reason, struct outcome *out);
