/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data/prefix.h - what the prompts of a run have in common with earlier ones: what a
 * prefix cache that was empty at the start can have held for them.
 */
#pragma once
#include <stddef.h>

#include "base/str.h"
#include "plan/workload.h"

/* What of a sample the server sees first: its messages, or its prompt. */
struct str prefix_text(const struct sample *s);

/*
 * share[i]: the longest prefix that text i has in common with a text before it, in bytes
 * of its own (0: nothing, 1: all of it). In n log n comparisons.
 */
void prefix_shared(const struct str *text, size_t n, double *share);
