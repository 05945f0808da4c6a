/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web/data_run.h - what is worked out about a single run: how to do it again, and what is doubtful
 * about it. Pure. Private to web/.
 */
#pragma once
#include "web/route.h"

/* Below so many requests a p99 is told by less than one of them. */
#define BADGE_REQUESTS_MIN 100
/* A run of which more failed is bad and not only doubtful; trust judges it likewise. */
#define BADGE_FAILED_BAD 0.05

/*
 * Members "level", "code" and "text" of each badge, in an array. document may be NULL: then what only
 * it tells is not judged.
 */
void run_put_badges(struct json_writer *w, const struct row *r, unsigned flags,
		    const struct json_value *document);
/*
 * Why the run judged itself as it did: "level", "code", "text" (null in documents that do not tell)
 * and "spoils" (the metrics) of each reason, in an array.
 */
void run_put_reasons(struct json_writer *w, const struct json_value *document);
/*
 * Command lines for a shell, as an array of texts: the configuration as it was given when the
 * document has it; else a server and a load made of the run's parameters, without those that are
 * what the engine does anyway. What was hidden when the run was recorded is still "***".
 */
void run_put_reproduce(struct json_writer *w, const struct row *r,
		       const struct json_value *document, struct arena *a);
/* Absent when the row has no such cell. */
struct value run_cell(const struct row *r, const char *column);
