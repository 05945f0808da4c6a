/* SPDX-License-Identifier: Apache-2.0 */
/*
 * differ.c - parameters in which groups of runs differ. A parameter is whatever a run has that is
 * neither an outcome nor a name of its own. And what the runs of one group differ in.
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

/* ---- mixtures ---- */

enum { MIXTURES = 3 };
static const char *const mixture[MIXTURES] = {
	"environment.server.version", "provenance.engine_commit", "environment.profllm",
};

/* The groups, and of each of their runs, one group after another, what matters here. */
struct groups {
	const struct analyse_request *r;
	const struct side *side;
	size_t n_sides;
	const struct matched_run *run;
	const bool *is_compared;
	uint32_t *group, *cell;    /* is_compared, and the code of its configuration */
};

/* The values of a column in the runs of each group that were compared, each once. */
struct mixed { struct map of[SIDES_MAX]; struct arena texts; bool is_shared; };

static int mixed_values(const struct groups *g, struct str column, struct mixed *out,
			struct err *e)
{
	for (size_t s = 0, at = 0; s < g->n_sides; at += g->side[s++].n) {
		struct value *v;

		if (side_column(g->r, &g->side[s], column, &v, e) < 0)
			return -1;
		for (size_t i = 0; i < g->side[s].n; i++) {
			struct str text;

			if (!g->is_compared[at + i])
				continue;
			text = str_of(parts_cell_text(&out->texts, v[i]));
			if (map_get(&out->of[s], text, NULL))
				continue;
			map_put(&out->of[s], text, i);
			for (size_t t = 0; t < s; t++)
				out->is_shared |= map_get(&out->of[t], text, NULL);
		}
	}
	return 0;
}

/* Codes of the configurations of all runs. */
static void fill_cells(struct groups *g)
{
	size_t total = 0;
	struct map seen = { 0 };

	for (size_t s = 0; s < g->n_sides; s++)
		total += g->side[s].n;
	g->group = arena_alloc(g->r->arena, (total + 1) * sizeof(*g->group));
	g->cell = arena_alloc(g->r->arena, (total + 1) * sizeof(*g->cell));
	for (size_t i = 0; i < total; i++) {
		struct str config = str_of(g->run[i].config);
		uint64_t code = seen.count;

		if (!map_get(&seen, config, &code))
			map_put(&seen, config, code);
		g->cell[i] = (uint32_t)code;
		g->group[i] = g->is_compared[i];
	}
	map_release(&seen);
}

/* Whether repeats of a configuration differ in a tag, in one group each; returns in how many. */
static int mixes_tag(const struct groups *g, struct str tag, bool out[static SIDES_MAX],
		     struct err *e)
{
	int n = 0;

	for (size_t s = 0, at = 0; s < g->n_sides; at += g->side[s++].n) {
		struct value *v;

		if (side_column(g->r, &g->side[s], tag, &v, e) < 0)
			return -1;
		out[s] = tag_is_mixed(g->group + at, g->cell + at, v, g->side[s].n, g->r->arena);
		n += out[s];
	}
	return n;
}

/* Values of a version that no two groups share define the groups. */
static int note_mixture(const struct groups *g, struct str column, bool is_tag, struct notes *notes,
			struct err *e)
{
	struct mixed mixed = { .is_shared = g->n_sides == 1 };
	bool is_mixed[SIDES_MAX] = { false };
	int rc = is_tag ? mixes_tag(g, column, is_mixed, e) : 1;

	if (rc <= 0)
		return rc;
	rc = mixed_values(g, column, &mixed, e);
	for (size_t s = 0; s < g->n_sides && rc == 0; s++)
		if (is_tag ? is_mixed[s] : mixed.is_shared && mixed.of[s].count > 1)
			parts_note(notes, "%s mixes runs of %zu values of %.*s", g->side[s].name,
				   mixed.of[s].count, (int)column.n, column.p);
	for (size_t s = 0; s < g->n_sides; s++)
		map_release(&mixed.of[s]);
	arena_release(&mixed.texts);
	return rc;
}

int mixtures_note(const struct analyse_request *r, const struct side *side, size_t n_sides,
		  const struct matched_run *run, const bool *is_compared, bool is_tags,
		  struct notes *notes, struct err *e)
{
	struct groups g = { r, side, n_sides, run, is_compared, NULL, NULL };
	struct str column[TAGS_MAX];
	size_t n = is_tags ? tags_of(r, column) : MIXTURES;

	_Static_assert((int)MIXTURES <= TAGS_MAX, "a place for each");
	for (size_t k = 0; k < MIXTURES && !is_tags; k++)
		column[k] = str_of(mixture[k]);
	if (is_tags && n)
		fill_cells(&g);
	for (size_t k = 0; k < n; k++)
		if (note_mixture(&g, column[k], is_tags, notes, e) < 0)
			return -1;
	return 0;
}
