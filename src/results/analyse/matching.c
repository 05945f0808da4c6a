/* SPDX-License-Identifier: Apache-2.0 */
/* matching.c - see matching.h. */
#include "results/analyse/matching.h"

#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "results/analyse/series.h"

#define OBSTACLES_NAMED_MAX 5

static const struct str version = { "environment.server.version", 26 };

static bool is_one_of(struct str column, const struct str *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(column, list[i]))
			return true;
	return false;
}

/* ---- work ---- */

const struct str work_columns[WORK_COLUMNS] = {
	{ "failed", 6 }, { "completed", 9 }, { "total_input_tokens", 18 },
	{ "total_output_tokens", 19 }, { "request_goodput", 15 }, { "request_throughput", 18 },
};

struct matched_work work_at(const struct value *const value[WORK_COLUMNS], size_t row)
{
	double v[WORK_COLUMNS];

	for (size_t c = 0; c < WORK_COLUMNS; c++)
		if (!parts_is_number(value[c][row], &v[c]))
			v[c] = NAN;
	return (struct matched_work){ v[0], v[1], v[2], v[3], v[4], v[5] };
}

/* ---- columns ---- */

/* Configured columns in which runs differ, by the counts of their values as they are. */
static int find_candidates(const struct matching *m, struct str *out, size_t *n, struct err *e)
{
	size_t n_all, n_columns = 0;
	const struct column_info *all = index_columns(m->r->view, &n_all);
	struct str *column = arena_alloc(m->r->arena, (n_all + 1) * sizeof(*column));
	struct value_counts *counts;

	for (size_t i = 0; i < n_all; i++)
		if (series_role(all[i].name) == SERIES_KEY &&
		    !is_one_of(all[i].name, m->ignore, m->n_ignore))
			column[n_columns++] = all[i].name;
	counts = arena_alloc(m->r->arena, (n_columns * m->n_sides + 1) * sizeof(*counts));
	for (size_t s = 0; s < m->n_sides; s++)
		if (side_counts(m->r, &m->side[s], column, n_columns, counts + s * n_columns,
				e) < 0)
			return -1;
	*n = 0;
	for (size_t i = 0; i < n_columns; i++) {
		const struct value_counts *first = NULL;
		bool differs = false;

		for (size_t s = 0; s < m->n_sides; s++) {
			const struct value_counts *c = &counts[s * n_columns + i];

			differs |= c->distinct > 1 ||
				   (first && c->n &&
				    !value_same(first->of[0].value, c->of[0].value));
			first = !first && c->n ? c : first;
		}
		if (differs)
			out[(*n)++] = column[i];
	}
	return 0;
}

/* A column's values in all groups, as they count; kept in scratch. */
static int read_column(const struct matching *m, struct str column, const struct value *release,
		       struct arena *scratch, struct value *out, struct err *e)
{
	struct analyse_request r = *m->r;

	r.arena = scratch;
	for (size_t s = 0, at = 0; s < m->n_sides; at += m->side[s++].n) {
		struct value *v;

		if (side_column(&r, &m->side[s], column, &v, e) < 0)
			return -1;
		for (size_t i = 0; i < m->side[s].n; i++)
			out[at + i] = release ? series_value(column, v[i], release[at + i]) : v[i];
	}
	return 0;
}

enum differs { DIFFERS_NOT, DIFFERS_BETWEEN, DIFFERS_WITHIN };

/* Within: a group has several values. Between: each has one, and they are not all the same. */
static enum differs differs(const struct matching *m, const struct value *v)
{
	enum differs out = DIFFERS_NOT;
	const struct value *first = NULL;

	for (size_t s = 0, at = 0; s < m->n_sides; at += m->side[s++].n) {
		if (!m->side[s].n)
			continue;
		for (size_t i = 1; i < m->side[s].n; i++)
			if (!series_same_value(v[at], v[at + i]))
				return DIFFERS_WITHIN;
		if (first && !series_same_value(*first, v[at]))
			out = DIFFERS_BETWEEN;
		first = first ? first : &v[at];
	}
	return out;
}

static struct str last_word(struct str column)
{
	const char *dot = memrchr(column.p, '.', column.n);

	return dot ? (struct str){ dot + 1, column.n - (size_t)(dot + 1 - column.p) } : column;
}

/* server.model and benchmark.model: the same word, and the same value in every run. */
static bool is_known(const struct matching *m, struct str column, const struct value *v)
{
	for (size_t k = 0; k < m->n_keys; k++) {
		const struct value *old = m->value + k * m->total;
		size_t i = 0;

		while (i < m->total && series_same_value(old[i], v[i]))
			i++;
		if (i == m->total && str_eq(last_word(column), last_word(m->key[k])))
			return true;
	}
	return false;
}

/* Takes out of the key what follows from the sizes that define the groups. */
static void drop_counts(struct matching *m)
{
	bool is_sized = false;
	size_t n = 0;

	for (size_t i = 0; i < m->n_apart; i++)
		is_sized |= str_ends(m->apart[i], STR("parallel_size"));
	for (size_t k = 0; k < m->n_keys; k++) {
		if (is_sized && (str_is(m->key[k], "gpus") || str_is(m->key[k], "hardware.gpus")))
			continue;
		m->key[n] = m->key[k];
		if (n != k && m->total)
			memcpy(m->value + n * m->total, m->value + k * m->total,
			       m->total * sizeof(*m->value));
		n++;
	}
	m->n_keys = n;
}

/* Model and hardware, then servers, then the load; within these in the order of names. */
static int rank_of(struct str column)
{
	static const char *const first[] = { "mode", "server.model", "hardware.", "server." };
	int i;

	for (i = 0; i < 4; i++)
		if (str_starts(column, str_of(first[i])))
			return i;
	return str_starts(column, STR("benchmark.")) ? i + 1 : i;
}

static int by_rank(const void *x, const void *y)
{
	const struct str *a = x, *b = y;
	int order = rank_of(*a) - rank_of(*b);
	size_t n = a->n < b->n ? a->n : b->n;

	order = order ? order : memcmp(a->p, b->p, n);
	return order ? order : (a->n > b->n) - (a->n < b->n);
}

static int add_key(struct matching *m, struct str column, const struct value *v, size_t *room,
		   struct err *e)
{
	if ((m->n_keys + 1) * m->total > ANALYSE_CELLS_MAX)
		return parts_refuse(e, "/groups", "configurations of %zu runs differ in more than %zu "
				    "columns (ANALYSE_CELLS_MAX): narrow the filters", m->total,
				    m->n_keys);
	if (m->n_keys == *room) {
		struct value *more;

		*room = *room ? 2 * *room : 8;
		more = arena_alloc(m->r->arena, (*room * m->total + 1) * sizeof(*more));
		if (m->n_keys)
			memcpy(more, m->value, m->n_keys * m->total * sizeof(*more));
		m->value = more;
	}
	memcpy(m->value + m->n_keys * m->total, v, m->total * sizeof(*v));
	m->key[m->n_keys++] = column;
	return 0;
}

static int find_keys(struct matching *m, const struct str *column, size_t n, struct err *e)
{
	size_t room = 0;

	m->release = arena_alloc(m->r->arena, (m->total + 1) * sizeof(*m->release));
	if (read_column(m, version, NULL, m->r->arena, m->release, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		struct arena own = { 0 };
		struct value *v = arena_alloc(&own, (m->total + 1) * sizeof(*v));
		int rc = read_column(m, column[i], m->release, &own, v, e);
		enum differs how = rc < 0 ? DIFFERS_NOT : differs(m, v);

		if (how == DIFFERS_BETWEEN)
			m->apart[m->n_apart++] = column[i];
		if (how == DIFFERS_WITHIN && !is_known(m, column[i], v))
			rc = add_key(m, column[i], v, &room, e);
		arena_release(&own);
		if (rc < 0)
			return -1;
	}
	return 0;
}

int matching_find(struct matching *m, struct err *e)
{
	size_t n_all, n;
	struct str *column;

	index_columns(m->r->view, &n_all);
	column = arena_alloc(m->r->arena, (n_all + 1) * sizeof(*column));
	m->key = arena_alloc(m->r->arena, (n_all + 1) * sizeof(*m->key));
	m->apart = arena_alloc(m->r->arena, (n_all + 1) * sizeof(*m->apart));
	if (find_candidates(m, column, &n, e) < 0)
		return -1;
	if (n)
		qsort(column, n, sizeof(*column), by_rank);
	if (find_keys(m, column, n, e) < 0)
		return -1;
	drop_counts(m);
	return 0;
}

/* ---- names ---- */

/* "max_num_seqs", or the whole name where another column of the key ends with the same word. */
static struct str short_name(const struct matching *m, size_t k)
{
	struct str word = last_word(m->key[k]);

	for (size_t i = 0; i < m->n_keys; i++)
		if (i != k && str_eq(last_word(m->key[i]), word))
			return m->key[k];
	return word;
}

/* The names of one kind, each made of the first run that has those values. */
struct names {
	const struct matching *m;
	const struct str *word;
	bool is_load;
	struct map texts;
	struct buf key, name;
};

/* NULL: no column of the key belongs to it. */
static const char *name_of(struct names *n, size_t run)
{
	const struct matching *m = n->m;
	struct arena scratch = { 0 };
	size_t parts = 0;
	uint64_t at;

	buf_reset(&n->key);
	buf_reset(&n->name);
	for (size_t k = 0; k < m->n_keys; k++) {
		struct value v = m->value[k * m->total + run];

		if (n->is_load && !str_starts(m->key[k], STR("benchmark.")))
			continue;
		buf_printf(&n->key, "%d %s\n", v.kind, parts_cell_text(&scratch, v));
		buf_add_text(&n->name, parts++ ? ", " : "");
		buf_add_str(&n->name, n->word[k]);
		buf_printf(&n->name, "=%s", series_text(&scratch, m->key[k], v, m->release[run]));
	}
	arena_release(&scratch);
	if (!parts)
		return n->is_load ? NULL : "all runs";
	if (!map_get(&n->texts, buf_str(&n->key), &at)) {
		at = (uint64_t)(uintptr_t)arena_text(m->r->arena, buf_str(&n->name));
		map_put(&n->texts, arena_str(m->r->arena, buf_str(&n->key)), at);
	}
	return (const char *)(uintptr_t)at;
}

static void release_names(struct names *n)
{
	map_release(&n->texts);
	buf_release(&n->key);
	buf_release(&n->name);
}

void matching_name(const struct matching *m, struct matched_run *run)
{
	struct str *word = arena_alloc(m->r->arena, (m->n_keys + 1) * sizeof(*word));
	struct names config = { .m = m, .word = word };
	struct names load = { .m = m, .word = word, .is_load = true };

	for (size_t k = 0; k < m->n_keys; k++)
		word[k] = short_name(m, k);
	for (size_t i = 0; i < m->total; i++) {
		run[i].config = name_of(&config, i);
		run[i].load = name_of(&load, i);
	}
	release_names(&config);
	release_names(&load);
}

/* ---- what stands in the way ---- */

/* Whether two groups have a value of key k in common; first: where each begins. */
static bool have_common(const struct matching *m, size_t k, const size_t *first, size_t a, size_t b)
{
	const struct value *v = m->value + k * m->total;
	size_t from_a = first[a], n_a = m->side[a].n, from_b = first[b], n_b = m->side[b].n;
	struct arena scratch = { 0 };
	struct map seen = { 0 };
	bool is_common = false;

	for (size_t i = 0; i < n_a; i++)
		map_put(&seen, str_of(arena_printf(&scratch, "%d %s", v[from_a + i].kind,
						   parts_cell_text(&scratch, v[from_a + i]))), 0);
	for (size_t i = 0; i < n_b && !is_common; i++)
		is_common = map_get(&seen, str_of(arena_printf(&scratch, "%d %s", v[from_b + i].kind,
				    parts_cell_text(&scratch, v[from_b + i]))), NULL);
	map_release(&seen);
	arena_release(&scratch);
	return is_common;
}

const char *matching_obstacles(const struct matching *m, size_t a, size_t b)
{
	size_t first[SIDES_MAX + 1] = { 0 }, n = 0;
	struct buf out = { 0 };
	const char *text;

	for (size_t s = 0; s < m->n_sides; s++)
		first[s + 1] = first[s] + m->side[s].n;
	for (size_t k = 0; k < m->n_keys; k++) {
		if (have_common(m, k, first, a, b))
			continue;
		if (n < OBSTACLES_NAMED_MAX) {
			buf_add_text(&out, n ? ", " : ": ");
			buf_add_str(&out, m->key[k]);
		}
		n++;
	}
	if (n > OBSTACLES_NAMED_MAX)
		buf_add_text(&out, ", ...");
	text = n ? arena_text(m->r->arena, buf_str(&out)) : NULL;
	buf_release(&out);
	return text;
}
