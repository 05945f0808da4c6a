/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experiment/suite_table.h - the end of a suite: a line for each member with the parameters that
 * differ, throughput, TTFT, TPOT and verdict; the same with more columns as a CSV file; what to do
 * next.
 */
#pragma once
#include "experiment/suite.h"

struct suite_table {
	struct buf text; /* lines for a terminal: the table, the best member, what was left out */
	struct buf csv;
	struct buf next; /* one line: what fits the outcome */
};

/*
 * From the members' documents. A parameter is a value of the configuration that is not the same in
 * all members; the terminal leaves out those that every member's name spells out already.
 */
void suite_table(const struct suite *s, const struct suite_tally *tally, struct suite_table *out);
void suite_table_release(struct suite_table *t);
/* "a/r.json": "a/r.csv". NULL: the output is no file that could have one beside it. Caller frees. */
char *suite_csv_path(const struct suite *s);
