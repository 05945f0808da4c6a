/* SPDX-License-Identifier: Apache-2.0 */
/*
 * differ.h - which parameters of groups of runs differ, and only those. Private to
 * analyse/.
 *
 * "between": a group has a value that another has not; "within": groups have the same values, but
 * several. What every run has of its own (its id, when it ran) is no parameter.
 */
#pragma once
#include "results/analyse/sides.h"

/* Puts "parameters". */
int differ_put(const struct analyse_request *r, const struct side *side, size_t n_sides,
	       struct json_writer *w, struct err *e);
