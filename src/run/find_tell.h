/* SPDX-License-Identifier: Apache-2.0 */
/* run/find_tell.h - what a search for the largest load (run/find.h) says: lines, JSON, a figure. */
#pragma once
#include "base/buf.h"
#include "json/write.h"
#include "run/find.h"

/* A sentence about the step that has just ended; empty: nothing to say. */
void find_tell_step(const struct find *f, struct buf *out);
/* What the precision will still cost; empty while that is unknown. */
void find_tell_cost(const struct find *f, struct buf *out);
/* The answer, some lines with a newline each, also of a search that was interrupted. */
void find_tell_answer(const struct find *f, struct buf *out);
/*
 * Whether there is a capacity: a load with an interval. Otherwise the answer says why there is
 * none.
 */
bool find_has_answer(const struct find *f);
/* Members of an object: the answer, its limits, points and curve. */
void find_put(const struct find *f, struct json_writer *w);
/*
 * STEM.png with its script and table: the share of slow requests (or value / limit of a mean) of
 * the limit that binds over the load, with levels, curve, limit and capacity. -1: it cannot be
 * drawn, e says why.
 */
int find_draw(const struct find *f, const char *stem, struct err *e);
