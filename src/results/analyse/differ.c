/* SPDX-License-Identifier: Apache-2.0 */
/*
 * differ.c - parameters in which groups of runs differ. A parameter is whatever a run has that is
 * neither an outcome nor a name of its own.
 */
#include "results/analyse/analyse_internal.h"

static bool is_parameter(struct str column)
{
	static const char *const aside[] = {
		"run_id", "repeat", "config_hash", "configuration", "warnings",
		"provenance.session", "status", "verdict", "interrupted", "error_stage",
		"error_category", "error_reason", "gpus_from", "speed_from",
	};

	for (size_t i = 0; i < sizeof(aside) / sizeof(*aside); i++)
		if (str_is(column, aside[i]))
			return false;
	return !column_name(column).is_outcome && !str_starts(column, STR("failures."));
}

enum differs { DIFFERS_NOT, DIFFERS_WITHIN, DIFFERS_BETWEEN };

static bool has_value(const struct value_counts *c, struct value v)
{
	for (size_t i = 0; i < c->n; i++)
		if (value_same(c->of[i].value, v))
			return true;
	return false;
}

/* Between: a side has a value that another has not. */
static enum differs differs(const struct value_counts *counts, size_t step, size_t n_sides,
			    const struct side *side)
{
	const struct value_counts *first = NULL;
	enum differs out = DIFFERS_NOT;

	for (size_t s = 0; s < n_sides; s++) {
		const struct value_counts *c = &counts[s * step];

		if (!side[s].n)
			continue;
		if (c->distinct > 1)
			out = DIFFERS_WITHIN;
		if (first && c->distinct != first->distinct)
			return DIFFERS_BETWEEN;
		for (size_t i = 0; first && i < c->n; i++)
			if (!has_value(first, c->of[i].value))
				return DIFFERS_BETWEEN;
		first = first ? first : c;
	}
	return out;
}

static void put_parameter(struct json_writer *w, struct str column,
			  const struct value_counts *counts, size_t step, size_t n_sides,
			  bool is_between)
{
	json_begin_object(w);
	json_member_str(w, "column", column);
	json_member_str(w, "group", column_name(column).group);
	json_member_text(w, "differs", is_between ? "between" : "within");
	json_member_array(w, "values");
	for (size_t s = 0; s < n_sides; s++) {
		json_begin_array(w);
		for (size_t i = 0; i < counts[s * step].n; i++) {
			json_begin_object(w);
			parts_put_value(w, "value", counts[s * step].of[i].value);
			parts_put_count(w, "count", counts[s * step].of[i].count);
			json_end_object(w);
		}
		json_end_array(w);
	}
	json_end_array(w);
	json_end_object(w);
}

int differ_put(const struct analyse_request *r, const struct side *side, size_t n_sides,
	       struct json_writer *w, struct err *e)
{
	size_t n_all, n = 0;
	const struct column_info *all = index_columns(r->view, &n_all);
	struct str *column = arena_alloc(r->arena, (n_all + 1) * sizeof(*column));
	struct value_counts *counts;

	for (size_t i = 0; i < n_all; i++)
		if (is_parameter(all[i].name))
			column[n++] = all[i].name;
	counts = arena_alloc(r->arena, (n * n_sides + 1) * sizeof(*counts));
	for (size_t s = 0; s < n_sides; s++)
		if (side_counts(r, &side[s], column, n, counts + s * n, e) < 0)
			return -1;
	json_member_array(w, "parameters");
	for (enum differs kind = DIFFERS_BETWEEN; kind > DIFFERS_NOT; kind--)
		for (size_t i = 0; i < n; i++) {
			if (differs(counts + i, n, n_sides, side) != kind)
				continue;
			put_parameter(w, column[i], counts + i, n, n_sides,
				      kind == DIFFERS_BETWEEN);
		}
	json_end_array(w);
	return 0;
}
