/* SPDX-License-Identifier: Apache-2.0 */
/* run/explained.h - what a prefix cache may have held for reasons of the run itself. */
#pragma once
#include "metrics/trust.h"
#include "run/point.h"

/*
 * Fills facts->knows_explained and cached_explained when anything in the record says
 * that prompt tokens were cached; comparing all prompts is not free.
 */
void run_explain_cache(const struct point *p, bool is_chat, struct trust_facts *facts);
