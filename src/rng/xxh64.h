/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xxh64.h - the XXH64 hash of some bytes: the same number on every machine and in every version.
 *
 * What is drawn for a name (a block of a trace) is seeded with it, so it is part of what a run
 * sends. Not for keys of attackers. Constants and steps are those of the published specification
 * of the algorithm.
 */
#pragma once
#include <stdint.h>

#include "base/str.h"

uint64_t xxh64(struct str bytes, uint64_t seed);
