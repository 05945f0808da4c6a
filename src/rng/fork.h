/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork.h - independent generators named by what they are for.
 *
 * Features that upstream does not have draw from a fork of the run's seed, so
 * that switching one on never changes the draws of another, nor the prompts and
 * arrival times that must equal upstream's (rng/compat.h). The same seed and
 * purpose give the same stream in every version of the program: a purpose is
 * part of the file formats that quote a seed, so never rename one.
 */
#pragma once
#include <stdint.h>

#include "rng/pcg64.h"

struct pcg64 rng_fork(uint64_t seed, const char *purpose);
