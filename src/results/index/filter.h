/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter.h - which runs: a tree of conditions, read from JSON.
 *
 *   {"and": [F, ...]}  {"or": [F, ...]}  {"not": F}      an empty "and" is true, an empty "or" false
 *   {"column": C, "in": [V, ...]}           one of the values; null in the list: null or absent
 *   {"column": C, "range": {"min": a, "max": b}}   both ends included, either may be missing;
 *                                           "inf" is a number here; for moments (index/row.h) also
 *                                           a time such as "2026-11-22T08:00Z"; min <= max
 *   {"column": C, "text": T}                the text occurs in the value, letters of A-Z in either
 *                                           case; C "*": in any column that holds texts
 *   {"column": C, "missing": true}          null or absent; false: neither
 *
 * A column that no run has is not an error here: all its values are absent (store/known.h knows
 * which columns are possible). Limits: FILTER_DEPTH_MAX, FILTER_CONDITIONS_MAX, FILTER_VALUES_MAX.
 * Errors name the place as a JSON pointer ("/and/1/range/min") and what was expected.
 */
#pragma once
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/json/read.h"
#include "results/index/row.h"

#define FILTER_DEPTH_MAX 16
#define FILTER_CONDITIONS_MAX 256
#define FILTER_VALUES_MAX 10000 /* of all lists together */

enum filter_kind {
	FILTER_AND, FILTER_OR, FILTER_NOT, FILTER_IN, FILTER_RANGE, FILTER_TEXT, FILTER_MISSING,
};

struct filter {
	enum filter_kind kind;
	struct filter **part; /* and, or, not */
	size_t n_parts;
	struct str column;
	struct value *value;  /* in */
	size_t n_values;
	double min, max;      /* range */
	struct str text;
	bool is_missing;
};

/* json NULL or null gives an empty "and". pointer (may be NULL) is the position of json. */
int filter_read(const struct json_value *json, const char *pointer, struct arena *a,
		struct filter **out, struct err *e);
/* A filter with the same rows from which no facet removes its own column's conditions. */
struct filter *filter_closed(const struct filter *f, struct arena *a);
/* Judges a single row: the reference implementation for tests of the index. */
bool filter_holds(const struct filter *f, const struct row *r);
