/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyse/differ.h - which parameters of groups of runs differ, and only those. Private to
 * analyse/.
 *
 * "between": a group has a value that another has not; "within": groups have the same values, but
 * several. What every run has of its own (its id, when it ran) is no parameter.
 */
#pragma once
#include "analyse/sides.h"

/* Puts "parameters"; notes say where a group mixes runs of different loads. */
int differ_put(const struct analyse_request *r, const struct side *side, size_t n_sides,
	       struct notes *notes, struct json_writer *w, struct err *e);
