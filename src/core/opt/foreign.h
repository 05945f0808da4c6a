/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign.h - names that are no rows (struct opt_foreign), for the files of opt/. Not for
 * other layers.
 */
#pragma once
#include "core/opt/row.h"

/*
 * Asks one after the other; argv ends with NULL. How many words argv[0] takes, and who knows it;
 * 0: nobody. -1 with e: it is refused, or the beginning of several names.
 */
int opt_foreign_words(const struct opt_foreign *f, char *const *argv, bool is_whole,
		      const struct opt_foreign **by, struct err *e);
/* -5, -0.5, -.5: what argparse lets through as a value. */
bool opt_is_negative_number(struct str s);
/* Begins with a dash and is no such value. */
bool opt_is_option_like(const char *text);

/* All shown rows of f and those after it, in the arena; f may be NULL. */
struct opt_foreign_rows { struct opt_foreign_row *row; size_t n; };
struct opt_foreign_rows opt_foreign_rows(const struct opt_foreign *f, struct arena *a);
/* --show-config: "name = value  # given", a line each. */
void opt_foreign_show(const struct opt_rest *rest, struct buf *out);
