/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/correct.h - whether answers keep to their samples' constraints, once load is over.
 */
#pragma once
#include "run/point.h"

/* Whether a sample has a constraint: then the record has to keep the answers' text. */
bool correct_is_asked(const struct workload *w);

/* The member that tells the server of constraints ("structured_outputs"); NULL: none does. */
const char *correct_told_by(const struct workload *w);

/* Fills request_row.correctness of the main rows; the texts are the record's. */
void correct_answers(struct point *p);
