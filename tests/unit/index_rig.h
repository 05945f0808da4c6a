/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index_rig.h - random rows of all kinds of columns and values, and random filters over them, for
 * the tests of the index. The same seed gives the same.
 */
#pragma once
#include <math.h>
#include <stdio.h>

#include "core/base/mem.h"
#include "results/index/filter.h"
#include "results/index/row.h"

struct draw { uint64_t state; };

static inline uint64_t draw_bits(struct draw *d)
{
	d->state ^= d->state << 13;
	d->state ^= d->state >> 7;
	d->state ^= d->state << 17;
	return d->state * 0x2545f4914f6cdd1du >> 11;
}

static inline size_t draw_below(struct draw *d, size_t n)
{
	return (size_t)(draw_bits(d) % n);
}

static inline double draw_unit(struct draw *d)
{
	return (double)draw_bits(d) / 9007199254740992.0;
}

static inline struct value number_value(double v)
{
	return (struct value){ .kind = VALUE_NUMBER, .number = v };
}

static inline struct value text_value(struct arena *a, const char *form, size_t n)
{
	char text[64];

	snprintf(text, sizeof(text), form, n);
	return (struct value){ .kind = VALUE_TEXT, .text = arena_str(a, str_of(text)) };
}

#define RIG_COLUMNS 14
static const char *const rig_column[RIG_COLUMNS] = {
	"suite", "server.model", "server.eager", "benchmark.rate", "tags.note", "commit", "run_id",
	"request_throughput", "median_ttft_ms", "count", "mixed", "late", "timestamp", "rare",
};

/* The value of a column in the nth row. */
static inline struct value rig_value(struct draw *d, struct arena *a, size_t column, size_t nth)
{
	static const struct value null = { .kind = VALUE_NULL };
	size_t kind = draw_below(d, 100);

	switch (column) {
	case 0:
		return text_value(a, "same for all", 0);
	case 1:
		return text_value(a, kind < 60 ? "Meta/Llama-%zu" : "qwen/%zu",
				  draw_below(d, 3 + nth / 100));
	case 2:
		return kind < 10 ? (struct value){ 0 } : kind < 20 ? null :
		       (struct value){ .kind = VALUE_BOOL, .is_true = kind < 50 };
	case 3:
		return number_value(kind < 20 ? INFINITY : (double)draw_below(d, 9) / 2);
	case 4:
		return kind < 60 ? (struct value){ 0 } : text_value(a, "Note \xc3\xa9 %zu", nth % 7);
	case 5:
		return text_value(a, "c0ffee%05zu", nth / 6);
	case 6:
		return text_value(a, "run-%06zu", nth * 7919 % 100003);
	case 7:
		return kind < 3 ? null : number_value(exp(draw_unit(d) * 6 - 1));
	case 8:
		return kind < 5 ? (struct value){ 0 } : number_value(draw_unit(d) * 200 - 40);
	case 9:
		return number_value((double)draw_below(d, 60) - 5);
	case 10:
		return kind < 20 ? null :
		       kind < 30 ? (struct value){ .kind = VALUE_BOOL, .is_true = kind < 25 } :
		       kind < 40 ? number_value(-INFINITY) :
		       kind < 60 ? number_value((double)draw_below(d, 90) / 4) :
		       kind < 65 ? (struct value){ 0 } :
				   text_value(a, "%zu", draw_below(d, 80));
	case 11:
		return nth < 150 ? (struct value){ 0 } : number_value((double)(nth % 3));
	case 12:
		return number_value(1.7e9 + (double)nth * 60);
	default:
		return kind ? (struct value){ 0 } : text_value(a, "here%zu", draw_below(d, 2));
	}
}

static inline struct row rig_row(struct draw *d, struct arena *a, size_t nth, int64_t id)
{
	struct row r = { .id = id, .cell = arena_alloc(a, RIG_COLUMNS * sizeof(struct cell)) };
	/* The order differs at times. */
	size_t from = draw_below(d, 4) ? 0 : draw_below(d, RIG_COLUMNS);

	for (size_t i = 0; i < RIG_COLUMNS; i++) {
		size_t column = (i + from) % RIG_COLUMNS;
		struct value v = rig_value(d, a, column, nth);

		if (v.kind != VALUE_ABSENT)
			r.cell[r.n++] = (struct cell){ str_of(rig_column[column]), v };
	}
	return r;
}

static inline struct filter *rig_in(struct draw *d, struct arena *a, struct filter *f,
				    size_t column, size_t rows)
{
	f->kind = FILTER_IN;
	f->n_values = draw_below(d, 5);
	f->value = arena_alloc(a, f->n_values * sizeof(*f->value));
	for (size_t i = 0; i < f->n_values; i++) {
		f->value[i] = rig_value(d, a, column, draw_below(d, rows));
		if (f->value[i].kind == VALUE_ABSENT)
			f->value[i].kind = VALUE_NULL;
	}
	return f;
}

static inline struct filter *rig_condition(struct draw *d, struct arena *a, size_t rows)
{
	static const char *const part[] = { "", "LLAMA-1", "0", "note \xc3\xa9 3", "c0FF", "zz", "1" };
	struct filter *f = arena_alloc(a, sizeof(*f));
	size_t column = draw_below(d, RIG_COLUMNS + 1);
	double middle;

	f->column = column < RIG_COLUMNS ? str_of(rig_column[column]) : STR("nowhere");
	switch (draw_below(d, 4)) {
	case 0:
		return rig_in(d, a, f, column < RIG_COLUMNS ? column : 0, rows);
	case 1:
		middle = draw_unit(d) * 40;
		if (column == 12)
			middle = 1.7e9 + (double)draw_below(d, rows) * 60;
		f->kind = FILTER_RANGE;
		f->min = middle - draw_unit(d) * (column == 12 ? 9000 : 20);
		if (draw_below(d, 3) == 0)
			f->min = -INFINITY;
		f->max = draw_below(d, 3) ? floor(middle) + (double)draw_below(d, 20) : INFINITY;
		if (draw_below(d, 4) == 0)
			f->min = -0.0;
		return f;
	case 2:
		f->kind = FILTER_TEXT;
		f->text = str_of(part[draw_below(d, 7)]);
		if (draw_below(d, 3) == 0)
			f->column = STR("*");
		return f;
	default:
		f->kind = FILTER_MISSING;
		f->is_missing = draw_below(d, 2);
		return f;
	}
}

static inline struct filter *rig_filter(struct draw *d, struct arena *a, size_t rows,
					unsigned depth)
{
	struct filter *f;
	size_t kind = draw_below(d, 10);

	if (depth == 0 || (depth < 5 && kind < 4))
		return rig_condition(d, a, rows);
	f = arena_alloc(a, sizeof(*f));
	f->kind = kind < 7 ? FILTER_AND : kind < 9 ? FILTER_OR : FILTER_NOT;
	f->n_parts = f->kind == FILTER_NOT ? 1 : draw_below(d, 4);
	f->part = arena_alloc(a, (f->n_parts + 1) * sizeof(*f->part));
	for (size_t i = 0; i < f->n_parts; i++)
		f->part[i] = rig_filter(d, a, rows, depth - 1);
	return f;
}
