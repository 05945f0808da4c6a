/* SPDX-License-Identifier: Apache-2.0 */
/* runs.c - see runs.h. */
#include "kit/runs.h"

#include <math.h>
#include <stdio.h>

#define PI 3.14159265358979323846

static uint64_t draw(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state * 0x2545f4914f6cdd1du;
}

static size_t draw_below(uint64_t *state, size_t n)
{
	return (size_t)((draw(state) >> 11) % n);
}

static double draw_unit(uint64_t *state)
{
	return (double)((draw(state) >> 11) + 1) / 9007199254740992.0;
}

static struct value text_of(struct str s)
{
	return (struct value){ .kind = VALUE_TEXT, .text = s };
}

static struct value number_of(double v)
{
	return (struct value){ .kind = VALUE_NUMBER, .number = v };
}

/* Shares as 1, 1/2, 1/3, ... */
static void category_make(struct runs *r, size_t nth)
{
	struct runs_category *c = &r->category[nth];
	double sum = 0, at = 0;
	uint16_t k = 0;

	/* 2 to 300, evenly on a logarithmic scale; the model has 40. */
	c->n = 40;
	if (nth)
		c->n = (uint32_t)lround(2 * pow(150, (double)(nth - 1) / (RUNS_CATEGORY - 2)));
	c->text = arena_alloc(&r->arena, c->n * sizeof(*c->text));
	for (uint32_t i = 0; i < c->n; i++) {
		c->text[i] = str_of(arena_printf(&r->arena, "%s-%zu-value-%u",
						 nth ? "category" : "org/model", nth, i));
		sum += 1.0 / (i + 1);
	}
	at = 1 / sum;
	for (size_t q = 0; q < RUNS_QUANTILES; q++) {
		if ((double)q / RUNS_QUANTILES > at && k + 1u < c->n)
			at += 1 / sum / (++k + 1);
		c->quantile[q] = k;
	}
}

void runs_begin(struct runs *r)
{
	static const char *const kind[] = { "server.constant", "environment.almost",
					    "benchmark.category", "metric" };
	static const size_t n[] = { RUNS_CONSTANT, RUNS_ALMOST, RUNS_CATEGORY, RUNS_METRIC };
	size_t at = 0;

	*r = (struct runs){ .state = 20260101 };
	for (size_t k = 0; k < 4; k++)
		for (size_t i = 0; i < n[k]; i++)
			r->column[at++] = str_of(arena_printf(&r->arena, "%s_%zu", kind[k], i));
	r->column[RUNS_FIRST_CATEGORY] = STR("server.model");
	r->column[RUNS_ID] = STR("run_id");
	r->column[RUNS_TIME] = STR("timestamp");
	r->column[RUNS_COMMIT] = STR("provenance.engine_commit");
	for (size_t i = 0; i < RUNS_CONSTANT; i++)
		r->constant[i] = i % 3 == 0 ? number_of((double)i) :
				 i % 3 == 1 ? (struct value){ .kind = VALUE_BOOL } :
					      text_of(STR("the same value everywhere"));
	for (size_t i = 0; i < RUNS_CATEGORY; i++)
		category_make(r, i);
}

static double normal(uint64_t *state)
{
	return sqrt(-2 * log(draw_unit(state))) * cos(2 * PI * draw_unit(state));
}

static struct value almost(struct runs *r, size_t nth)
{
	static const char *const text[] = { "usual", "other", "another", "rare" };
	size_t kind = draw_below(&r->state, 300);

	if (kind > 3)
		kind = 0;
	if (nth % 4 == 0 && kind == 3)
		return (struct value){ .kind = VALUE_NULL };
	return nth % 2 ? text_of(str_of(text[kind])) : number_of((double)kind);
}

static void fill_row(struct runs *r, struct row *row, size_t nth)
{
	struct cell *cell = row->cell;
	size_t model = 0;

	row->id = (int64_t)nth + 1;
	for (size_t i = 0; i < RUNS_COLUMNS; i++)
		cell[i].column = r->column[i];
	for (size_t i = 0; i < RUNS_CONSTANT; i++)
		cell[i].value = r->constant[i];
	for (size_t i = 0; i < RUNS_ALMOST; i++)
		cell[RUNS_FIRST_ALMOST + i].value = almost(r, i);
	for (size_t i = 0; i < RUNS_CATEGORY; i++) {
		const struct runs_category *c = &r->category[i];
		uint16_t k = c->quantile[draw_below(&r->state, RUNS_QUANTILES)];

		cell[RUNS_FIRST_CATEGORY + i].value = text_of(c->text[k]);
		if (i == 0)
			model = k;
	}
	for (size_t i = 0; i < RUNS_METRIC; i++)
		cell[RUNS_FIRST_METRIC + i].value =
			number_of(exp(3 + 0.02 * (double)model + 0.5 * normal(&r->state)));
	cell[RUNS_ID].value = text_of(str_of(arena_printf(&r->batch, "run-%012llx",
				      (unsigned long long)(draw(&r->state) >> 16))));
	cell[RUNS_TIME].value = number_of(1.7e9 + RUNS_STEP_S * (double)nth +
					  (double)draw_below(&r->state, 30));
	cell[RUNS_COMMIT].value = text_of(str_of(arena_printf(&r->batch, "c%039zu", nth / 100)));
	row->n = RUNS_COLUMNS;
}

void runs_more(struct runs *r, size_t n)
{
	arena_release(&r->batch);
	for (size_t i = 0; i < n; i++) {
		r->row[i].cell = arena_alloc(&r->batch, RUNS_COLUMNS * sizeof(struct cell));
		fill_row(r, &r->row[i], r->made++);
	}
}

void runs_release(struct runs *r)
{
	arena_release(&r->arena);
	arena_release(&r->batch);
}

/* ---- questions ---- */

static struct filter *condition(struct runs *r, size_t column, enum filter_kind kind)
{
	struct filter *f = arena_alloc(&r->arena, sizeof(*f));

	f->kind = kind;
	f->column = r->column[column];
	return f;
}

/* n texts of a category, from the most frequent ones. */
static struct filter *any_of(struct runs *r, size_t category, size_t n, uint64_t *state)
{
	const struct runs_category *c = &r->category[category];
	struct filter *f = condition(r, RUNS_FIRST_CATEGORY + category, FILTER_IN);

	f->n_values = n;
	f->value = arena_alloc(&r->arena, n * sizeof(*f->value));
	for (size_t i = 0; i < n; i++)
		f->value[i] = text_of(c->text[c->quantile[draw_below(state, RUNS_QUANTILES)]]);
	return f;
}

static struct filter *times(struct runs *r, double from, double share, size_t n_rows)
{
	struct filter *f = condition(r, RUNS_TIME, FILTER_RANGE);

	f->min = 1.7e9 + RUNS_STEP_S * (double)n_rows * from;
	f->max = f->min + RUNS_STEP_S * (double)n_rows * share;
	return f;
}

static struct filter *five(struct runs *r, size_t nth, size_t n_rows)
{
	uint64_t state = 7 + nth * 1000003;
	struct filter *f = arena_alloc(&r->arena, sizeof(*f));
	size_t category = 1 + draw_below(&state, RUNS_CATEGORY - 2);
	struct filter *metric;

	for (unsigned i = 0; i < 4; i++)
		draw(&state);
	f->kind = FILTER_AND;
	f->n_parts = 5;
	f->part = arena_alloc(&r->arena, 5 * sizeof(*f->part));
	f->part[0] = any_of(r, 0, 1 + draw_below(&state, 3), &state);
	f->part[1] = any_of(r, category, 1 + draw_below(&state, 3), &state);
	f->part[2] = any_of(r, 1 + category % (RUNS_CATEGORY - 1), 1 + draw_below(&state, 4),
			    &state);
	f->part[3] = times(r, draw_unit(&state) * 0.6, 0.2 + 0.2 * draw_unit(&state), n_rows);
	metric = condition(r, RUNS_FIRST_METRIC + draw_below(&state, RUNS_METRIC), FILTER_RANGE);
	metric->min = exp(3 - 0.6 * draw_unit(&state));
	metric->max = exp(3.2 + draw_unit(&state));
	f->part[4] = metric;
	return f;
}

void question_make(struct runs *r, enum question_kind kind, size_t nth, size_t n_rows,
		   struct question *q)
{
	*q = (struct question){ 0 };
	if (kind == QUESTION_FIVE)
		q->query.filter = five(r, nth, n_rows);
	if (kind == QUESTION_TIME)
		q->query.filter = times(r, 0.1 + 0.4 * (double)(nth % 10) / 10, 0.4, n_rows);
	for (size_t i = 0; i < QUESTION_FACETS; i++) /* every width of category */
		q->facet[i] = r->column[RUNS_FIRST_CATEGORY +
					i * (RUNS_CATEGORY - 1) / (QUESTION_FACETS - 1)];
	for (size_t i = 0; i < QUESTION_STATISTICS; i++)
		q->statistic[i] = r->column[RUNS_FIRST_METRIC + (i * 5 + nth) % RUNS_METRIC];
	for (size_t i = 0; i < QUESTION_COLUMNS; i++)
		q->column[i] = r->column[i < 3 ? RUNS_ID + i : 98 + i * 4];
	q->query.sort[0] = (struct query_sort){ r->column[RUNS_TIME], true };
	q->query.n_sorts = 1;
	q->query.limit = 50;
	q->query.column = q->column;
	q->query.n_columns = QUESTION_COLUMNS;
	q->query.facet = q->facet;
	q->query.n_facets = QUESTION_FACETS;
	q->query.facet_values_max = 20;
	q->query.histogram_bins = 24;
	q->query.statistic = q->statistic;
	q->query.n_statistics = QUESTION_STATISTICS;
}
