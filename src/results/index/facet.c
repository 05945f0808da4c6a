/* SPDX-License-Identifier: Apache-2.0 */
/* facet.c - counts the chosen rows by their value in a column. */
#include <math.h>
#include <stdlib.h>

#include "core/stats/stats.h"
#include "results/index/index_internal.h"

#define LANES 4 /* separate counters for the same code, so that equal rows do not stall */

/* ---- which values are selected ---- */

size_t filter_top(const struct filter *f, struct filter *const **part)
{
	if (f && f->kind == FILTER_AND) {
		*part = f->part;
		return f->n_parts;
	}
	return f != NULL;
}

bool filter_is_about(const struct filter *f, struct str column)
{
	switch (f->kind) {
	case FILTER_AND:
	case FILTER_OR:
	case FILTER_NOT:
		for (size_t i = 0; i < f->n_parts; i++)
			if (!filter_is_about(f->part[i], column))
				return false;
		return f->n_parts > 0;
	case FILTER_TEXT:
	case FILTER_IN:
	case FILTER_RANGE:
	case FILTER_MISSING:
		break;
	}
	return str_eq(f->column, column);
}

static size_t count_wanted(const struct filter *f)
{
	size_t n = f->kind == FILTER_IN ? f->n_values : 0;

	for (size_t i = 0; (f->kind == FILTER_AND || f->kind == FILTER_OR) && i < f->n_parts; i++)
		n += count_wanted(f->part[i]);
	return n;
}

static void add_wanted(const struct filter *f, struct wanted *w)
{
	for (size_t i = 0; f->kind == FILTER_IN && i < f->n_values; i++)
		if (f->value[i].kind > VALUE_NULL)
			w->value[w->n++] = f->value[i];
	for (size_t i = 0; (f->kind == FILTER_AND || f->kind == FILTER_OR) && i < f->n_parts; i++)
		add_wanted(f->part[i], w);
}

static struct wanted find_wanted(const struct filter *f, struct str column, struct arena *a)
{
	struct filter *const own = (struct filter *)f, *const *part = &own;
	size_t n = filter_top(f, &part), values = 0, kept = 0;
	struct wanted w = { 0 };

	for (size_t i = 0; i < n; i++)
		if (filter_is_about(part[i], column))
			values += count_wanted(part[i]);
	if (!values)
		return w;
	w.value = arena_alloc(a, values * sizeof(*w.value));
	for (size_t i = 0; i < n; i++)
		if (filter_is_about(part[i], column))
			add_wanted(part[i], &w);
	qsort(w.value, w.n, sizeof(*w.value), value_order);
	for (size_t i = 0; i < w.n; i++)
		if (!kept || !value_same(w.value[kept - 1], w.value[i]))
			w.value[kept++] = w.value[i];
	w.n = kept;
	return w;
}

/* SIZE_MAX: it is not. */
static size_t place_wanted(const struct wanted *w, struct value v)
{
	const struct value *at = NULL;

	if (w->n)
		at = bsearch(&v, w->value, w->n, sizeof(v), value_order);
	return at ? (size_t)(at - w->value) : SIZE_MAX;
}

/* ---- the list ---- */

/*
 * The values with most rows: a heap whose root is removed next. Selected ones are kept separately.
 */
struct facet_list {
	struct facet *out;
	const struct wanted *wanted;
	bool *is_seen;             /* of each wanted one */
	struct facet_value *chosen;
	size_t n_chosen;
	size_t most;
	size_t rows;               /* rows of all values */
};

/* Whether a is listed after b. */
static bool is_behind(const struct facet_value *a, const struct facet_value *b)
{
	if (a->count != b->count)
		return a->count < b->count;
	return value_compare(a->value, b->value) > 0;
}

static void sink(struct facet_value *heap, size_t n, size_t at)
{
	for (size_t child; (child = at * 2 + 1) < n; at = child) {
		struct facet_value held = heap[at];

		if (child + 1 < n && is_behind(&heap[child + 1], &heap[child]))
			child++;
		if (!is_behind(&heap[child], &held))
			return;
		heap[at] = heap[child];
		heap[child] = held;
	}
}

/* Ignores infinite numbers for the ends. */
static void note_ends(struct facet *out, struct value v)
{
	if (v.kind != VALUE_NUMBER || !isfinite(v.number))
		return;
	if (!(out->min <= v.number))
		out->min = v.number;
	if (!(out->max >= v.number))
		out->max = v.number;
}

/* The text of a value is a row's own, which stays as long as the index: answers are kept. */
static void offer(struct facet_list *l, struct value value, size_t count)
{
	struct facet_value it = { value, count, false };
	struct facet *out = l->out;
	size_t wanted;

	if (!count)
		return;
	out->distinct++;
	l->rows += count;
	note_ends(out, value);
	wanted = place_wanted(l->wanted, value);
	if (wanted != SIZE_MAX) {
		it.is_selected = true;
		l->is_seen[wanted] = true;
		l->chosen[l->n_chosen++] = it;
	}
	if (out->n < l->most) {
		out->value[out->n++] = it;
		if (out->n == l->most)
			for (size_t i = out->n / 2; i-- > 0;)
				sink(out->value, out->n, i);
	} else if (l->most && is_behind(&out->value[0], &it)) {
		out->value[0] = it;
		sink(out->value, out->n, 0);
	}
}

static int compare_listed(const void *a, const void *b)
{
	const struct facet_value *x = a, *y = b;

	return is_behind(x, y) ? 1 : is_behind(y, x) ? -1 : 0;
}

static struct facet_list list_begin(struct facet *out, const struct wanted *w, size_t most,
			      struct arena *a)
{
	struct facet_list l = { .out = out, .wanted = w, .most = most };

	l.chosen = arena_alloc(a, w->n * sizeof(*l.chosen));
	l.is_seen = arena_alloc(a, w->n * sizeof(*l.is_seen));
	return l;
}

/* Selected ones that fell out of the list, or that no row has, come back into it. */
static void list_end(struct facet_list *l)
{
	struct facet *out = l->out;
	size_t in_list = out->n, listed = 0;

	for (size_t i = 0; i < l->n_chosen; i++) {
		bool is_there = false;

		for (size_t k = 0; k < in_list && !is_there; k++)
			is_there = out->value[k].is_selected &&
				   value_same(out->value[k].value, l->chosen[i].value);
		if (!is_there)
			out->value[out->n++] = l->chosen[i];
	}
	for (size_t i = 0; i < l->wanted->n; i++)
		if (!l->is_seen[i])
			out->value[out->n++] = (struct facet_value){ l->wanted->value[i], 0, true };
	qsort(out->value, out->n, sizeof(*out->value), compare_listed);
	for (size_t i = 0; i < out->n; i++)
		listed += out->value[i].count;
	out->others = l->rows - listed;
}

/* ---- columns of codes ---- */

static void count_narrow(const uint8_t *code, const uint16_t *place, size_t n, uint32_t *count,
			 size_t lane)
{
	size_t i = 0;

	if (place) {
		for (; i + LANES <= n; i += LANES)
#pragma GCC unroll 4
			for (size_t k = 0; k < LANES; k++)
				count[code[place[i + k]] + k * lane]++;
		for (; i < n; i++)
			count[code[place[i]]]++;
		return;
	}
	for (; i + 8 <= n; i += 8) { /* codes come eight at a time */
		uint64_t word;

		memcpy(&word, code + i, sizeof(word));
#pragma GCC unroll 8
		for (unsigned k = 0; k < 8; k++)
			count[(word >> 8 * k & 0xff) + k % LANES * lane]++;
	}
	for (; i < n; i++)
		count[code[i]]++;
}

static void count_wide(const uint16_t *code, const uint16_t *place, size_t n, uint32_t *count)
{
	for (size_t i = 0; i < n; i++)
		count[code[place ? place[i] : i]]++;
}

/* Two codes at once, where all rows count. */
static void count_halves(const struct block *b, const uint16_t *place, size_t n, uint32_t *count)
{
	uint32_t pair[256 * LANES] = { 0 };

	if (place) {
		for (size_t i = 0; i < n; i++)
			count[block_code(b, place[i])]++;
		return;
	}
	count_narrow(b->data, NULL, n / 2, pair, 256);
	for (size_t i = 0; i < 256 * LANES; i++) {
		if (!pair[i])
			continue;
		count[i & 15] += pair[i];
		count[i >> 4 & 15] += pair[i];
	}
}

static void count_block(const struct block *b, const uint16_t *place, size_t n, uint32_t *count,
			size_t lane)
{
	if (b->form == BLOCK_CODE)
		count[b->code] += (uint32_t)n;
	else if (b->form == BLOCK_CODE_4)
		count_halves(b, place, n, count);
	else if (b->form == BLOCK_CODE_8)
		count_narrow(b->data, place, n, count, lane);
	else
		count_wide(b->data, place, n, count);
}

static void count_codes(const struct index_view *v, const struct choice *c, const struct head *h,
			struct arena *a, struct facet_list *l)
{
	/* Wide dictionaries have no neighbours that wait, and would only fill the cache. */
	size_t lane = h->n_codes <= 256 ? h->n_codes : 0;
	uint32_t *count = arena_alloc(a, h->n_codes * LANES * sizeof(*count));

	for (size_t block = 0; block < view_blocks(v); block++)
		if (c->count[block])
			count_block(view_block(v, h, block), c->place[block], c->count[block],
				    count, lane);
	for (uint32_t code = 0; code < h->n_codes; code++) {
		struct value value = { 0 };

		for (size_t k = 1; lane && k < LANES; k++)
			count[code] += count[code + k * lane];
		if (code)
			value = dictionary_value(h->dict, code);
		if (value.kind <= VALUE_NULL)
			l->out->missing += count[code];
		else
			offer(l, value, count[code]);
	}
}

/* ---- columns of keys ---- */

static void count_sorted(struct facet_list *l, struct value *value, size_t n)
{
	size_t from = 0;

	qsort(value, n, sizeof(*value), value_order);
	for (size_t i = 1; i <= n; i++)
		if (i == n || !value_same(value[i], value[from])) {
			offer(l, value[from], i - from);
			from = i;
		}
}

static void count_numbers(struct facet_list *l, double *x, size_t n)
{
	size_t from = 0;

	stats_sort(x, n);
	for (size_t i = 1; i <= n; i++)
		if (i == n || x[i] != x[from]) {
			offer(l, (struct value){ .kind = VALUE_NUMBER, .number = x[from] },
			      i - from);
			from = i;
		}
}

/* Few rows: every value is counted. */
static void count_few(const struct index_view *v, const struct choice *c, const struct head *h,
		      struct arena *a, struct facet_list *l)
{
	struct value *other = arena_alloc(a, c->total * sizeof(*other));
	double *x = arena_alloc(a, c->total * sizeof(*x));
	size_t n = 0, n_other = 0;

	for (size_t block = 0; block < view_blocks(v); block++) {
		const struct block *b = view_block(v, h, block);

		for (size_t i = 0; i < c->count[block]; i++) {
			struct value value = head_value(h, b, choice_row(c, block, i, 0));

			if (value.kind == VALUE_NUMBER)
				x[n++] = value.number;
			else if (value.kind > VALUE_NULL)
				other[n_other++] = value;
		}
	}
	l->out->missing = c->total - n - n_other;
	count_numbers(l, x, n);
	count_sorted(l, other, n_other);
}

/*
 * The ends and the missing rows of a block of numbers: keys are ordered like them, so that values
 * need not be decoded. false: the block has another form, or infinite numbers, and nothing was
 * noted.
 */
static bool note_packed(const struct block *b, const uint16_t *place, size_t n, struct facet *out)
{
	uint64_t least = UINT64_MAX, most = 0;
	size_t missing = 0;
	double min, max;

	if (b->form != BLOCK_PACKED || b->has_text)
		return false;
	for (size_t i = 0; i < n; i++) {
		uint64_t packed = packed_at(b, place ? place[i] : i);

		missing += packed <= KEY_NULL;
		if (packed < KEY_SPECIALS)
			continue;
		least = packed < least ? packed : least;
		most = packed > most ? packed : most;
	}
	if (most) {
		min = number_of_key(key_of_packed(b, least));
		max = number_of_key(key_of_packed(b, most));
		if (!isfinite(min) || !isfinite(max))
			return false;
		note_ends(out, (struct value){ .kind = VALUE_NUMBER, .number = min });
		note_ends(out, (struct value){ .kind = VALUE_NUMBER, .number = max });
	}
	out->missing += missing;
	return true;
}

/* For many rows: only selected values, spelled as in the first row. */
static void count_wanted_rows(const struct index_view *v, const struct choice *c,
			      const struct head *h, struct arena *a, struct facet_list *l)
{
	size_t *count = arena_alloc(a, l->wanted->n * sizeof(*count));
	struct value *own = arena_alloc(a, l->wanted->n * sizeof(*own));

	for (size_t block = 0; block < view_blocks(v); block++) {
		const struct block *b = view_block(v, h, block);

		if (!l->wanted->n &&
		    note_packed(b, c->place[block], c->count[block], l->out))
			continue;
		for (size_t i = 0; i < c->count[block]; i++) {
			struct value value = head_value(h, b, choice_row(c, block, i, 0));
			size_t at = SIZE_MAX;

			l->out->missing += value.kind <= VALUE_NULL;
			note_ends(l->out, value);
			if (l->wanted->n)
				at = place_wanted(l->wanted, value);
			if (at != SIZE_MAX && !count[at]++)
				own[at] = value;
		}
	}
	l->most = 0;
	for (size_t i = 0; i < l->wanted->n; i++)
		offer(l, own[i], count[i]);
	l->rows = c->total - l->out->missing;
	l->out->distinct = 0;
	l->out->is_unlisted = true;
}

bool facet_is_constant(const struct facet *f)
{
	if (f->is_unlisted)
		return !f->missing && f->min >= f->max; /* NAN for texts: they differ */
	return f->distinct + (f->missing > 0) <= 1;
}

/* ---- histograms ---- */

static void fill_bins(struct facet *out, const double *x, size_t n, size_t bins)
{
	double half = out->max / 2 - out->min / 2; /* halves: the whole width may be infinite */

	if (!n)
		return;
	out->n_bins = bins;
	for (size_t i = 0; i < n; i++) {
		double part = half > 0 ? (x[i] / 2 - out->min / 2) / half * (double)bins : 0;
		size_t bin = (size_t)part;

		out->bin[bin < bins ? bin : bins - 1]++;
	}
}

void facet_begin(const struct query *q, struct str column, struct arena *a, struct facet *out,
		 struct wanted *wanted)
{
	*wanted = find_wanted(q->filter, column, a);
	*out = (struct facet){ .column = column, .min = NAN, .max = NAN };
	out->value = arena_alloc(a, (q->facet_values_max + wanted->n) * sizeof(*out->value));
	out->bin = arena_alloc(a, q->histogram_bins * sizeof(*out->bin));
}

void facet_count(const struct index_view *v, const struct choice *c, const struct query *q,
		 const struct wanted *wanted, struct scratch *s, struct facet *out)
{
	size_t number = view_column(v, out->column);
	struct facet_list l = list_begin(out, wanted, q->facet_values_max, &s->arena);
	const struct column_info *info;
	const struct head *h;

	if (number == SIZE_MAX) {
		out->missing = c->total;
		list_end(&l);
		return;
	}
	h = &v->head[number];
	info = &v->info[number];
	if (!h->is_keys)
		count_codes(v, c, h, &s->arena, &l);
	else if (c->total <= v->index->listed_rows_max)
		count_few(v, c, h, &s->arena, &l);
	else
		count_wanted_rows(v, c, h, &s->arena, &l);
	list_end(&l);
	if (q->histogram_bins && info->has_number && !info->has_text && !info->has_bool &&
	    (out->is_unlisted || out->distinct > q->facet_values_max)) {
		double *x = scratch_numbers(s, c->total);

		out->is_range = true;
		fill_bins(out, x, choice_numbers(v, c, h, &s->arena, x), q->histogram_bins);
	}
}

/*
 * Exact figures over the chosen rows of a column.
 *
 * Percentiles need a handful of order statistics, not a sorted array: values are counted in buckets
 * that are narrow in the order of their bits, and only the buckets that contain a wanted rank are
 * sorted.
 */

#define SORTED_MAX 4096   /* up to this many are sorted completely */
#define BUCKET_BITS 12   /* counters that stay in the nearest cache */
#define PERCENTILES 4
#define RANKS (PERCENTILES * 2)

struct numbered { int64_t id; double number; };

static int compare_ids(const void *a, const void *b)
{
	int64_t x = ((const struct numbered *)a)->id, y = ((const struct numbered *)b)->id;

	return (x > y) - (x < y);
}

/* Rows that did not come in the order of their ids. */
static size_t numbers_by_id(const struct index_view *v, const struct choice *c,
			    const struct head *h, struct arena *a, double *out)
{
	struct numbered *all = arena_alloc(a, c->total * sizeof(*all));
	size_t n = 0;

	for (size_t block = 0; block < view_blocks(v); block++)
		for (size_t i = 0; i < c->count[block]; i++) {
			size_t row = choice_row(c, block, i, block << v->index->block_shift);
			struct value value = view_value(v, h, row);

			if (value.kind == VALUE_NUMBER && isfinite(value.number))
				all[n++] = (struct numbered){ view_id(v, row), value.number };
		}
	qsort(all, n, sizeof(*all), compare_ids);
	for (size_t i = 0; i < n; i++)
		out[i] = all[i].number;
	return n;
}

/* ---- order statistics ---- */

struct ranks {
	size_t rank[RANKS]; /* ascending */
	double value[RANKS];
};

/* Values of the buckets that hold a wanted rank, and how many smaller ones are left out. */
struct picked {
	uint32_t *count;     /* of each bucket; later whether its values are collected */
	size_t skipped[RANKS];
	size_t n;
};

static void pick_buckets(struct picked *p, const struct ranks *r)
{
	size_t before = 0, skipped = 0, wanted = 0;

	for (size_t b = 0; b < (size_t)1 << BUCKET_BITS; b++) {
		size_t here = p->count[b], first = wanted;

		while (wanted < RANKS && r->rank[wanted] < before + here)
			p->skipped[wanted++] = skipped;
		p->count[b] = wanted > first;
		before += here;
		if (wanted > first)
			p->n += here;
		else
			skipped += here;
	}
}

/* Does not change x. */
static void find_ranks(const double *x, size_t n, double min, double max, struct ranks *r,
		       struct arena *a)
{
	uint64_t least = key_of_number(min), width = key_of_number(max) - least;
	unsigned bits = 64u - (unsigned)__builtin_clzll(width | 1);
	unsigned shift = bits > BUCKET_BITS ? bits - BUCKET_BITS : 0;
	struct picked p = { .count = arena_alloc(a, sizeof(*p.count) << BUCKET_BITS) };
	double *some;
	size_t got = 0;

	for (size_t i = 0; i < n; i++)
		p.count[(key_of_number(x[i]) - least) >> shift]++;
	pick_buckets(&p, r);
	some = arena_alloc(a, (p.n + 1) * sizeof(*some));
	for (size_t i = 0; i < n; i++) {
		some[got] = x[i];
		got += p.count[(key_of_number(x[i]) - least) >> shift];
	}
	stats_sort(some, p.n);
	for (size_t k = 0; k < RANKS; k++)
		r->value[k] = some[r->rank[k] - p.skipped[k]];
}

static void find_percentiles(double *x, size_t n, struct statistic *out, struct arena *a)
{
	static const double percent[PERCENTILES] = { 50, 90, 95, 99 };
	double *to[PERCENTILES] = { &out->p50, &out->p90, &out->p95, &out->p99 };
	double part[PERCENTILES];
	struct ranks r;

	if (n <= SORTED_MAX) {
		stats_sort(x, n);
		for (size_t k = 0; k < PERCENTILES; k++)
			*to[k] = stats_percentile(x, n, percent[k]);
		return;
	}
	for (size_t k = 0; k < PERCENTILES; k++) {
		r.rank[k * 2] = stats_rank(n, percent[k], &part[k]);
		r.rank[k * 2 + 1] = r.rank[k * 2] + 1 < n ? r.rank[k * 2] + 1 : n - 1;
	}
	find_ranks(x, n, out->min, out->max, &r, a);
	for (size_t k = 0; k < PERCENTILES; k++)
		*to[k] = stats_between(r.value[k * 2], r.value[k * 2 + 1], part[k]);
}

#define END_LANES 8 /* so that comparisons need not wait for each other */

static void find_ends(const double *x, size_t n, double *min, double *max)
{
	double least[END_LANES], most[END_LANES];
	size_t i = 0;

	for (size_t k = 0; k < END_LANES; k++)
		least[k] = most[k] = x[0];
	for (; i + END_LANES <= n; i += END_LANES)
#pragma GCC unroll 8
		for (size_t k = 0; k < END_LANES; k++) {
			least[k] = x[i + k] < least[k] ? x[i + k] : least[k];
			most[k] = x[i + k] > most[k] ? x[i + k] : most[k];
		}
	for (; i < n; i++) {
		least[0] = x[i] < least[0] ? x[i] : least[0];
		most[0] = x[i] > most[0] ? x[i] : most[0];
	}
	*min = least[0];
	*max = most[0];
	for (size_t k = 1; k < END_LANES; k++) {
		*min = least[k] < *min ? least[k] : *min;
		*max = most[k] > *max ? most[k] : *max;
	}
}

void statistic_make(const struct index_view *v, const struct choice *c, struct str column,
		    bool only_ends, struct scratch *s, struct statistic *out)
{
	size_t number = view_column(v, column);
	double *x;

	*out = (struct statistic){ .column = column, .missing = c->total, .min = NAN, .max = NAN,
				   .mean = NAN, .std = NAN, .p50 = NAN, .p90 = NAN, .p95 = NAN,
				   .p99 = NAN };
	if (number == SIZE_MAX || !c->total)
		return;
	x = scratch_numbers(s, c->total);
	if (v->is_ascending || only_ends)
		out->count = choice_numbers(v, c, &v->head[number], &s->arena, x);
	else
		out->count = numbers_by_id(v, c, &v->head[number], &s->arena, x);
	out->missing = c->total - out->count;
	if (!out->count)
		return;
	find_ends(x, out->count, &out->min, &out->max);
	if (only_ends)
		return;
	out->mean = stats_mean(x, out->count);
	out->std = stats_std_around(x, out->count, out->mean);
	find_percentiles(x, out->count, out, &s->arena);
}
