/* SPDX-License-Identifier: Apache-2.0 */
/*
 * migrate.h - the tables, as numbered steps that are taken once each. Private to store/.
 *
 * A step is never changed once it was released; what changes later is a step more. A store whose
 * number is above ours was made by a newer program and is refused, so nothing is lost by
 * guessing.
 */
#pragma once
#include "results/store/db.h"

/* where: what errors call the store. is_read_only: only looks whether it is of our number. */
int migrate(struct db *d, const char *where, bool is_read_only, struct err *e);
/* Whether it has our tables, of an earlier number. */
bool migrate_is_older(struct db *d);
/*
 * The number of the last change goes to a new random place: whoever knew the old contents notices.
 */
int migrate_new_changes(struct db *d, int64_t *base, struct err *e);
#define MIGRATE_SAME_STORE(a, b) ((a) >> 32 == (b) >> 32) /* of two numbers of changes */
/* benchmark_runs as it begins. */
extern const char migrate_wide_table[];

/*
 * The tables that a backup of another database, and a restore, copy row by row, in an order that
 * keeps references whole; benchmark_runs is made anew from the documents. columns: names, with
 * commas.
 */
struct store_table { const char *name, *columns, *order; };
extern const struct store_table store_table[];
extern const size_t store_tables;
