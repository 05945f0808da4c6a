/* SPDX-License-Identifier: Apache-2.0 */
/*
 * series.h - what makes runs one series: everything that was configured. Private to
 * analyse/.
 *
 * Without a list in the request the key of a run is every option of its servers and of its load,
 * model, hardware, driver, engine, the hash of a replayed workload, and the mode; not the commit,
 * the version, names, places (ports, addresses, paths of results), seeds, and what only prints. A
 * file counts by its name, wherever it lies. The simulator's own costs stand for the code that is
 * tested, and so count as its version does.
 *
 * A value that is known to be the default (of the run's own release of vLLM, of `bench serve`), a
 * flag of the load that is off, and null say no more than no value at all: a run that names a
 * default belongs to the series of those that leave it out.
 */
#pragma once
#include "results/analyse/parts.h"

enum series_role {
	SERIES_KEY,          /* a run with another value is of another series */
	SERIES_CIRCUMSTANCE, /* may explain a change: versions, machine, build, image, tags */
	SERIES_ASIDE,        /* names, places, results */
};
enum series_role series_role(struct str column);
/* The value in keys: absent when it says no more than that. version: the engine's, or missing. */
struct value series_value(struct str column, struct value v, struct value version);
/* The default that series_value knows of an option of `bench serve`; NULL: none. */
const char *series_option_default(struct str name);

struct series_key {
	struct str *column;
	size_t n;
	bool is_chosen;      /* by the request: values count as they are */
};
/*
 * The request's "series"; else the columns of keys in which the filter's runs differ, model and
 * hardware first.
 */
int series_key(const struct analyse_request *r, struct series_key *out, struct err *e);

/* Runs by their keys; the names that people see and the list's rows have values as they are. */
struct keyed {
	struct rows rows;    /* ids, and values of the key alone, as keys have them */
	struct series_list list;
};
/*
 * The key's columns are the first of rows, version is that of environment.server.version. Ids of
 * series say all of their key, also what all runs shown have in common.
 */
void series_make(const struct analyse_request *r, const struct series_key *key,
		 const struct rows *rows, size_t version, const bool *keep, struct keyed *out);
bool series_same_value(struct value a, struct value b); /* null and absent are the same */
bool series_is_same(const struct keyed *k, size_t row, size_t other);
/* A value of a key for people: "256 (default)" of a known default that is not there, "none". */
const char *series_text(struct arena *a, struct str column, struct value v, struct value version);

/* ---- what changed beside the metric ---- */

struct series_change { struct str column; struct value before, after; };
/*
 * Circumstances, and keys by their values as they are, that have one value in all runs of one side
 * and another one in all of the other. Those of the environment and the hardware come first.
 */
struct series_change *series_changes(const struct analyse_request *r, const int64_t *before,
				     size_t n_before, const int64_t *after, size_t n_after,
				     size_t *n);
