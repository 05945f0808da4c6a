/* SPDX-License-Identifier: Apache-2.0 */
/* sides.c - see sides.h. */
#include "results/analyse/sides.h"

#include <math.h>

#include "core/base/mem.h"

#define COLUMNS_AT_ONCE 256 /* of whole rows: 12 MB at most */
#define SHOWN_ALL (INDEX_EXCLUDED | INDEX_ARCHIVED | INDEX_SUPERSEDED)

/* ---- reading ---- */

/* The run that now goes by this run_id; 0: none. */
static int64_t id_of_run(const struct analyse_request *r, struct str run_id, struct err *e)
{
	struct value wanted = { .kind = VALUE_TEXT, .text = run_id };
	struct filter f = { .kind = FILTER_IN, .column = STR("run_id"), .value = &wanted,
			    .n_values = 1 };
	unsigned shown[] = { 0, SHOWN_ALL };
	int64_t *id;
	size_t n;

	for (size_t i = 0; i < 2; i++) {
		struct value *none;

		if (index_select(r->view, &f, shown[i], NULL, 0, r->arena, &id, &n, &none, e) < 0)
			return -1;
		if (n)
			return id[n - 1];
	}
	return 0;
}

static int by_id(const void *x, const void *y)
{
	const struct row *a = x, *b = y;

	return (a->id > b->id) - (a->id < b->id);
}

static int read_ids(const struct analyse_request *r, const struct json_value *list,
		    const char *pointer, struct side *out, struct err *e)
{
	size_t n = 0;

	if (list->kind != JSON_ARRAY || list->count > SIDE_IDS_MAX)
		return parts_refuse(e, pointer, "a list of at most %d runs was expected",
				    SIDE_IDS_MAX);
	out->row = arena_alloc(r->arena, (list->count + 1) * sizeof(*out->row));
	for (size_t i = 0; i < list->count; i++) {
		const struct json_value *one = &list->item[i];
		int64_t id = one->kind == JSON_INT ? one->integer : -1;
		char place[160];
		unsigned flags;

		snprintf(place, sizeof(place), "%s/%zu", pointer, i);
		if (one->kind == JSON_STRING)
			id = id_of_run(r, one->text, e);
		else if (one->kind != JSON_INT)
			return parts_refuse(e, place, "the number or run_id of a run was expected");
		if (id <= 0 || !index_row(r->view, id, r->arena, &out->row[i], &flags))
			return parts_refuse(e, place, "there is no such run");
	}
	if (list->count)
		qsort(out->row, list->count, sizeof(*out->row), by_id);
	out->id = arena_alloc(r->arena, (list->count + 1) * sizeof(*out->id));
	for (size_t i = 0; i < list->count; i++)
		if (!n || out->row[i].id != out->id[n - 1]) {
			out->row[n] = out->row[i];
			out->id[n++] = out->row[i].id;
		}
	out->n = n;
	return 0;
}

int side_read(const struct analyse_request *r, const struct json_value *json, const char *pointer,
	      const char *name, struct side *out, struct err *e)
{
	const struct json_value *ids = json_get(json, "ids"), *by = json_get(json, "filter");
	struct str given = json_text(json_get(json, "name"), STR(""));
	struct filter *f;
	struct value *none;
	char place[128];

	*out = (struct side){ .name = given.n ? arena_text(r->arena, given) : name };
	if (!json || json->kind != JSON_OBJECT || (!ids && !by) || (ids && by))
		return parts_refuse(e, pointer, "an object with either ids or a filter was expected");
	snprintf(place, sizeof(place), "%s/%s", pointer, ids ? "ids" : "filter");
	if (ids)
		return read_ids(r, ids, place, out, e);
	if (filter_read(by, place, r->arena, &f, e) < 0 ||
	    index_select(r->view, f, 0, NULL, 0, r->arena, &out->id, &out->n, &none, e) < 0)
		return -1;
	out->filter = f;
	return 0;
}

/* ---- columns ---- */

/* Runs of one kind mostly have a column in the same place: *place is where the last one had it. */
static struct value cell_of(const struct row *row, struct str column, size_t *place)
{
	if (*place < row->n && str_eq(row->cell[*place].column, column))
		return row->cell[*place].value;
	for (size_t i = 0; i < row->n; i++)
		if (str_eq(row->cell[i].column, column)) {
			*place = i;
			return row->cell[i].value;
		}
	return (struct value){ .kind = VALUE_ABSENT };
}

int side_column(const struct analyse_request *r, const struct side *s, struct str column,
		struct value **out, struct err *e)
{
	int64_t *id;
	size_t n, place = 0;

	if (s->filter)
		return index_select(r->view, s->filter, 0, &column, 1, r->arena, &id, &n, out, e);
	*out = arena_alloc(r->arena, (s->n + 1) * sizeof(**out));
	for (size_t i = 0; i < s->n; i++)
		(*out)[i] = cell_of(&s->row[i], column, &place);
	return 0;
}

int side_verdicts(const struct analyse_request *r, const struct side *s, struct verdicts *out,
		struct err *e)
{
	*out = (struct verdicts){ 0 };
	if (verdicts_read(r->body, &out->is_everything, e) < 0)
		return -1;
	for (size_t c = 0; c < COUNTED_COLUMNS; c++) {
		struct value *v;

		if (side_column(r, s, counted_columns[c], &v, e) < 0)
			return -1;
		out->value[c] = v;
	}
	return 0;
}

/* ---- counts ---- */

static int by_value(const void *x, const void *y)
{
	return value_compare(*(const struct value *)x, *(const struct value *)y);
}

static int by_count(const void *x, const void *y)
{
	const struct value_count *a = x, *b = y;

	return a->count != b->count ? (a->count > b->count ? -1 : 1)
				    : value_compare(a->value, b->value);
}

static void count_values(struct arena *a, struct value *v, size_t n, struct value_counts *out)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].kind == VALUE_NULL)
			v[i].kind = VALUE_ABSENT;
	if (n)
		qsort(v, n, sizeof(*v), by_value);
	out->of = arena_alloc(a, (n + 1) * sizeof(*out->of));
	for (size_t i = 0; i < n; i++) {
		if (!i || !value_same(v[i - 1], v[i]))
			out->of[out->distinct++].value = v[i];
		out->of[out->distinct - 1].count++;
	}
	if (out->distinct)
		qsort(out->of, out->distinct, sizeof(*out->of), by_count);
	out->n = out->distinct < SIDE_VALUES_MAX ? out->distinct : SIDE_VALUES_MAX;
}

static void counts_of_rows(const struct analyse_request *r, const struct side *s,
			   const struct str *column, size_t n, struct value_counts *out)
{
	struct value *value = mem_array(s->n * n + 1, sizeof(*value));
	struct map place = { 0 };

	map_reserve(&place, n);
	for (size_t c = 0; c < n; c++)
		map_put(&place, column[c], c);
	for (size_t i = 0; i < s->n; i++)
		for (size_t k = 0; k < s->row[i].n; k++) {
			uint64_t c;

			if (map_get(&place, s->row[i].cell[k].column, &c))
				value[c * s->n + i] = s->row[i].cell[k].value;
		}
	for (size_t c = 0; c < n; c++)
		count_values(r->arena, value + c * s->n, s->n, &out[c]);
	map_release(&place);
	free(value);
}

static void from_facet(struct arena *a, const struct facet *f, struct value_counts *out)
{
	size_t missing = f->missing;

	out->of = arena_alloc(a, (f->n + 2) * sizeof(*out->of));
	for (size_t i = 0; i < f->n; i++)
		if (!parts_is_missing(f->value[i].value) && f->value[i].count)
			out->of[out->n++] = (struct value_count){ f->value[i].value,
								  f->value[i].count };
	if (missing)
		out->of[out->n++] = (struct value_count){ { .kind = VALUE_ABSENT }, missing };
	out->distinct = out->n + (f->others ? f->distinct > f->n ? f->distinct - f->n : 1 : 0);
	if (out->n)
		qsort(out->of, out->n, sizeof(*out->of), by_count);
	out->n = out->n < SIDE_VALUES_MAX ? out->n : SIDE_VALUES_MAX;
}

static int counts_of_filter(const struct analyse_request *r, const struct side *s,
			    const struct str *column, size_t n, struct value_counts *out,
			    struct err *e)
{
	const struct filter *closed = parts_closed(r->arena, s->filter);

	for (size_t from = 0; from < n; from += QUERY_FACETS_MAX) {
		struct query q = { .filter = closed, .facet = column + from,
				   .facet_values_max = SIDE_VALUES_MAX };
		struct answer answer;

		q.n_facets = n - from < QUERY_FACETS_MAX ? n - from : QUERY_FACETS_MAX;
		if (index_query(r->view, &q, r->arena, &answer, e) < 0)
			return -1;
		for (size_t i = 0; i < q.n_facets; i++)
			from_facet(r->arena, &answer.facet[i], &out[from + i]);
	}
	return 0;
}

int side_counts(const struct analyse_request *r, const struct side *s, const struct str *column,
		size_t n, struct value_counts *out, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		out[i] = (struct value_counts){ 0 };
	if (s->filter)
		return counts_of_filter(r, s, column, n, out, e);
	for (size_t from = 0; from < n; from += COLUMNS_AT_ONCE)
		counts_of_rows(r, s, column + from,
			       n - from < COLUMNS_AT_ONCE ? n - from : COLUMNS_AT_ONCE, out + from);
	return 0;
}
