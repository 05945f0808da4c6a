/* SPDX-License-Identifier: Apache-2.0 */
/* filter.c - see filter.h. */
#include "results/index/filter.h"

#include <math.h>

#include "results/index/when.h"

/* The places of the tree on the way to the one that is read, for pointers in errors. */
struct place {
	const struct place *up;
	struct str key;
	size_t item; /* used when key is empty */
	const char *base;
};

struct reader {
	struct arena *arena;
	struct err *err;
	size_t n_conditions, n_values;
};

static char *pointer_of(const struct place *at, struct arena *a)
{
	if (!at->up)
		return arena_printf(a, "%s", at->base);
	if (at->key.p)
		return arena_printf(a, "%s/%.*s", pointer_of(at->up, a), (int)at->key.n, at->key.p);
	return arena_printf(a, "%s/%zu", pointer_of(at->up, a), at->item);
}

static int refuse(struct reader *r, const struct place *at, const char *wanted)
{
	char *pointer = pointer_of(at, r->arena);

	return err_set(r->err, ERR_USAGE, "%s: %s", *pointer ? pointer : "filter", wanted);
}

static int read_tree(struct reader *r, const struct json_value *v, const struct place *at,
		     unsigned depth, struct filter **out);

static int read_parts(struct reader *r, const struct json_value *list, const struct place *at,
		      unsigned depth, struct filter *f)
{
	if (list->kind != JSON_ARRAY)
		return refuse(r, at, "expected a list of conditions");
	f->part = arena_alloc(r->arena, list->count * sizeof(*f->part));
	f->n_parts = list->count;
	for (size_t i = 0; i < list->count; i++)
		if (read_tree(r, &list->item[i], &(struct place){ .up = at, .item = i }, depth,
			      &f->part[i]) < 0)
			return -1;
	return 0;
}

/* "inf", "-inf" and what JSON has for numbers. */
static bool read_number(const struct json_value *v, double *out)
{
	if (v->kind == JSON_INT)
		*out = (double)v->integer;
	else if (v->kind == JSON_REAL)
		*out = v->real;
	else if (v->kind == JSON_STRING && str_is(v->text, "inf"))
		*out = INFINITY;
	else if (v->kind == JSON_STRING && str_is(v->text, "-inf"))
		*out = -INFINITY;
	else
		return false;
	return !isnan(*out);
}

static bool read_value(const struct json_value *v, struct value *out)
{
	double number;

	*out = (struct value){ 0 };
	switch (v->kind) {
	case JSON_NULL:
		out->kind = VALUE_NULL;
		return true;
	case JSON_FALSE:
	case JSON_TRUE:
		out->kind = VALUE_BOOL;
		out->is_true = v->kind == JSON_TRUE;
		return true;
	case JSON_INT:
	case JSON_REAL:
	case JSON_STRING:
		if (read_number(v, &number)) {
			out->kind = VALUE_NUMBER;
			out->number = number;
			return true;
		}
		out->kind = VALUE_TEXT;
		out->text = v->text;
		return v->kind == JSON_STRING;
	case JSON_ARRAY:
	case JSON_OBJECT:
		break;
	}
	return false;
}

static int read_in(struct reader *r, const struct json_value *list, const struct place *at,
		   struct filter *f)
{
	if (list->kind != JSON_ARRAY)
		return refuse(r, at, "expected a list of values");
	r->n_values += list->count;
	if (r->n_values > FILTER_VALUES_MAX)
		return refuse(r, at, "the lists hold too many values together (FILTER_VALUES_MAX)");
	f->kind = FILTER_IN;
	f->value = arena_alloc(r->arena, list->count * sizeof(*f->value));
	f->n_values = list->count;
	for (size_t i = 0; i < list->count; i++)
		if (!read_value(&list->item[i], &f->value[i]))
			return refuse(r, &(struct place){ .up = at, .item = i },
				      "expected null, true, false, a number or a text");
	return 0;
}

static int read_end(struct reader *r, const struct json_value *range, const char *name,
		    const struct place *at, struct str column, double *out)
{
	const struct json_value *v = json_get(range, name);
	bool is_moment = when_is_column(column);

	if (!v || v->kind == JSON_NULL || read_number(v, out) ||
	    (is_moment && v->kind == JSON_STRING && when_read(v->text, out)))
		return 0;
	return refuse(r, &(struct place){ .up = at, .key = str_of(name) },
		      is_moment ? "expected a time such as 2026-11-22T08:00:00Z, or seconds since 1970" :
				  "expected a number or \"inf\"");
}

static int read_range(struct reader *r, const struct json_value *range, const struct place *at,
		      struct filter *f)
{
	f->kind = FILTER_RANGE;
	f->min = -INFINITY;
	f->max = INFINITY;
	if (range->kind != JSON_OBJECT)
		return refuse(r, at, "expected an object with \"min\", \"max\" or both");
	for (size_t i = 0; i < range->count; i++)
		if (!str_is(range->key[i], "min") && !str_is(range->key[i], "max"))
			return refuse(r, &(struct place){ .up = at, .key = range->key[i] },
				      "expected \"min\" or \"max\"");
	if (read_end(r, range, "min", at, f->column, &f->min) < 0 ||
	    read_end(r, range, "max", at, f->column, &f->max) < 0)
		return -1;
	if (f->min > f->max)
		return refuse(r, at, arena_printf(r->arena, "expected min to be at most max, got %.15g and %.15g",
						  f->min, f->max));
	return 0;
}

static int read_condition(struct reader *r, struct str key, const struct json_value *v,
			  const struct place *at, struct filter *f)
{
	if (str_is(key, "in"))
		return read_in(r, v, at, f);
	if (str_is(key, "range"))
		return read_range(r, v, at, f);
	if (str_is(key, "text")) {
		if (v->kind != JSON_STRING)
			return refuse(r, at, "expected a text");
		f->kind = FILTER_TEXT;
		f->text = v->text;
		return 0;
	}
	if (str_is(key, "missing")) {
		if (v->kind != JSON_TRUE && v->kind != JSON_FALSE)
			return refuse(r, at, "expected true or false");
		f->kind = FILTER_MISSING;
		f->is_missing = v->kind == JSON_TRUE;
		return 0;
	}
	return refuse(r, at, "expected \"in\", \"range\", \"text\" or \"missing\" beside \"column\"");
}

static int read_leaf(struct reader *r, const struct json_value *v, const struct json_value *column,
		     const struct place *at, struct filter *f)
{
	if (column->kind != JSON_STRING || !column->text.n)
		return refuse(r, &(struct place){ .up = at, .key = STR("column") },
			      "expected the name of a column");
	if (v->count != 2)
		return refuse(r, at, "expected \"column\" and one of \"in\", \"range\", \"text\", "
			      "\"missing\"");
	f->column = column->text;
	for (size_t i = 0; i < 2; i++)
		if (!str_is(v->key[i], "column"))
			return read_condition(r, v->key[i], &v->item[i],
					      &(struct place){ .up = at, .key = v->key[i] }, f);
	return refuse(r, at, "expected one \"column\" and one condition");
}

static int read_tree(struct reader *r, const struct json_value *v, const struct place *at,
		     unsigned depth, struct filter **out)
{
	static const char *const word[] = { "and", "or", "not" };
	static const enum filter_kind kind[] = { FILTER_AND, FILTER_OR, FILTER_NOT };
	struct filter *f = *out = arena_alloc(r->arena, sizeof(*f));
	const struct json_value *column;

	if (depth > FILTER_DEPTH_MAX)
		return refuse(r, at, "conditions stand too deep in each other (FILTER_DEPTH_MAX)");
	if (++r->n_conditions > FILTER_CONDITIONS_MAX)
		return refuse(r, at, "too many conditions (FILTER_CONDITIONS_MAX)");
	if (v->kind != JSON_OBJECT)
		return refuse(r, at, "expected an object");
	column = json_get(v, "column");
	if (column)
		return read_leaf(r, v, column, at, f);
	for (size_t i = 0; i < 3; i++) {
		const struct json_value *inner = json_get(v, word[i]);
		struct place here = { .up = at, .key = str_of(word[i]) };

		if (!inner)
			continue;
		if (v->count != 1)
			return refuse(r, at, "expected no other member beside it");
		f->kind = kind[i];
		if (f->kind != FILTER_NOT)
			return read_parts(r, inner, &here, depth + 1, f);
		f->part = arena_alloc(r->arena, sizeof(*f->part));
		f->n_parts = 1;
		return read_tree(r, inner, &here, depth + 1, f->part);
	}
	return refuse(r, at, "expected \"and\", \"or\", \"not\" or \"column\"");
}

int filter_read(const struct json_value *json, const char *pointer, struct arena *a,
		struct filter **out, struct err *e)
{
	struct reader r = { .arena = a, .err = e };
	struct place top = { .base = pointer ? pointer : "" };

	if (json && json->kind != JSON_NULL)
		return read_tree(&r, json, &top, 1, out);
	*out = arena_alloc(a, sizeof(**out));
	(*out)->kind = FILTER_AND;
	return 0;
}

/* ---- judging one row ---- */

static struct value cell_of(const struct row *r, struct str column)
{
	for (size_t i = 0; i < r->n; i++)
		if (str_eq(r->cell[i].column, column))
			return r->cell[i].value;
	return (struct value){ 0 };
}

static bool is_missing(struct value v)
{
	return v.kind == VALUE_ABSENT || v.kind == VALUE_NULL;
}

static bool is_in(const struct filter *f, struct value v)
{
	for (size_t i = 0; i < f->n_values; i++)
		if (is_missing(f->value[i]) ? is_missing(v) : value_same(f->value[i], v))
			return true;
	return false;
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Whether the text occurs in the value, whatever the case of A-Z; only texts hold texts. */
static bool holds_text(struct str part, struct value v)
{
	if (v.kind != VALUE_TEXT)
		return false;
	for (size_t i = 0; part.n <= v.text.n && i <= v.text.n - part.n; i++) {
		size_t k = 0;

		while (k < part.n && lower(v.text.p[i + k]) == lower(part.p[k]))
			k++;
		if (k == part.n)
			return true;
	}
	return false;
}

static bool has_text(const struct filter *f, const struct row *r)
{
	if (!str_is(f->column, "*"))
		return holds_text(f->text, cell_of(r, f->column));
	for (size_t i = 0; i < r->n; i++)
		if (holds_text(f->text, r->cell[i].value))
			return true;
	return false;
}

bool filter_takes(const struct filter *f, struct value v)
{
	switch (f->kind) {
	case FILTER_IN:
		return is_in(f, v);
	case FILTER_RANGE:
		return v.kind == VALUE_NUMBER && v.number >= f->min && v.number <= f->max;
	case FILTER_TEXT:
		return holds_text(f->text, v);
	case FILTER_MISSING:
		return is_missing(v) == f->is_missing;
	case FILTER_AND:
	case FILTER_OR:
	case FILTER_NOT:
		break;
	}
	return false;
}

bool filter_holds(const struct filter *f, const struct row *r)
{
	switch (f->kind) {
	case FILTER_AND:
		for (size_t i = 0; i < f->n_parts; i++)
			if (!filter_holds(f->part[i], r))
				return false;
		return true;
	case FILTER_OR:
		for (size_t i = 0; i < f->n_parts; i++)
			if (filter_holds(f->part[i], r))
				return true;
		return false;
	case FILTER_NOT:
		return !filter_holds(f->part[0], r);
	case FILTER_TEXT:
		return has_text(f, r);
	case FILTER_IN:
	case FILTER_RANGE:
	case FILTER_MISSING:
		return filter_takes(f, cell_of(r, f->column));
	}
	return false;
}
