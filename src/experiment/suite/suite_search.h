/* SPDX-License-Identifier: Apache-2.0 */
/* suite_search.h - the state of a search for the best experiment; for files of suite only. */
#pragma once
#include "experiment/suite/suite_internal.h"
#include "results/decide/halving.h"

struct suite_search_round {
	size_t measured, kept, n_overlap, n_forced;
	double cut;
};

struct suite_search {
	struct experiment_search asked;
	const char *metric;
	bool is_seconds;                 /* lengths; else prompts */
	struct suite_member *candidate;  /* at full length, that --only chose; as they are run */
	size_t n;
	size_t *member;                  /* of each candidate its latest one, of the suite */
	const char **why;                /* it is out; NULL: it is not */
	size_t from;                     /* the first member of the round that runs */
	struct halving halving;
	struct suite_search_round round[HALVING_ROUNDS_MAX];
	unsigned rounds;                 /* that are concluded */
};

/*
 * Called once the members are typed and chosen: they become candidates, and those of round 0
 * members.
 */
int suite_search_begin(struct suite *s, unsigned repeats, struct config_findings *f);
/* "Round 1 of 6: 256 experiments of 37 prompts". */
void suite_search_say_first(const struct suite *s, const struct experiment_hooks *hooks);
/*
 * Called once the round has run: concludes, and adds the members of the next one. False: it is
 * over.
 */
bool suite_search_next(struct suite *s, const struct experiment_hooks *hooks, struct err *e,
		       int *rc);
/* The suite's "search" in its document, the plan's, and the table at the end. */
void suite_search_put(const struct suite *s, struct json_writer *w);
void suite_search_plan(const struct suite *s, struct buf *out);
void suite_search_table(const struct suite *s, const struct suite_tally *tally,
			struct suite_table *out);
/* Whether a member has full length: x.repeat is its number. */
bool suite_search_is_full(const struct suite *s, const struct suite_member *m);
/* Path and folder of a member by its label. */
void suite_place(struct suite *s, struct suite_member *m);
