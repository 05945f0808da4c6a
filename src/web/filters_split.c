/* SPDX-License-Identifier: Apache-2.0 */
/* filters_split.c - see filters.h. */
#include <math.h>

#include "index/names.h"
#include "web/filters.h"

#define MEASURED_WEIGHT 0.01
#define NAMES_MIN 20     /* fewer texts are no names, however different they are */
#define FACET_VALUES 20  /* that are told apart when facets are chosen */

double filters_entropy(const size_t *count, size_t n)
{
	double total = 0, bits = 0;

	for (size_t i = 0; i < n; i++)
		total += (double)count[i];
	for (size_t i = 0; i < n; i++)
		if (count[i])
			bits -= (double)count[i] / total * log2((double)count[i] / total);
	return bits;
}

/* ---- from facets ---- */

static double weight_of(const struct column_info *c, size_t distinct, size_t rows)
{
	bool is_named = c->has_text && distinct > NAMES_MIN && distinct * 2 > rows;

	return is_named || column_name(c->name).is_outcome ? MEASURED_WEIGHT : 1;
}

static double score_of(const struct column_info *c, const struct facet *f, struct arena *a)
{
	size_t *count = arena_alloc(a, (f->n + f->n_bins + 2) * sizeof(*count));
	size_t n = 0, rows = f->missing + f->others;

	for (size_t i = 0; i < f->n; i++)
		rows += f->value[i].count;
	count[n++] = f->missing;
	if (f->is_range) {
		for (size_t i = 0; i < f->n_bins; i++)
			count[n++] = f->bin[i];
	} else {
		for (size_t i = 0; i < f->n; i++)
			count[n++] = f->value[i].count;
		count[n++] = f->others;
	}
	return filters_entropy(count, n) * weight_of(c, f->distinct, rows);
}

static int by_score(const void *a, const void *b)
{
	const struct filters_item *x = a, *y = b;

	if (x->score != y->score)
		return x->score > y->score ? -1 : 1;
	/* Infos lie in one array, in the order columns were first seen. */
	return x->column < y->column ? -1 : x->column > y->column;
}

int filters_split(const struct index_view *v, const struct query *q, struct arena *a,
		  struct filters_split *out, struct err *e)
{
	size_t n;
	const struct column_info *info = index_columns(v, &n);
	struct str *name = arena_alloc(a, (n + 1) * sizeof(*name));
	struct query count = *q;
	struct answer answer;

	*out = (struct filters_split){ .n = n };
	out->item = arena_alloc(a, (n + 1) * sizeof(*out->item));
	for (size_t i = 0; i < n; i++)
		name[i] = info[i].name;
	count.limit = count.n_columns = count.n_sorts = count.n_statistics = 0;
	count.cursor = STR("");
	for (size_t at = 0; at < n || at == 0; at += QUERY_FACETS_MAX) {
		count.facet = name + at;
		count.n_facets = n - at < QUERY_FACETS_MAX ? n - at : QUERY_FACETS_MAX;
		if (index_query(v, &count, a, &answer, e) < 0)
			return -1;
		out->total = answer.total;
		for (size_t i = 0; i < answer.n_facets; i++)
			out->item[at + i] = (struct filters_item){
				&info[at + i], &answer.facet[i],
				score_of(&info[at + i], &answer.facet[i], a),
			};
	}
	qsort(out->item, n, sizeof(*out->item), by_score);
	return 0;
}

/* ---- from a sample ---- */

/* Counts of the different values in column c of the sample's rows; returns how many. */
static size_t count_values(const struct answer *rows, size_t c, size_t *count)
{
	size_t n = 0, at[FILTERS_SAMPLE_ROWS];

	for (size_t i = 0; i < rows->n_rows; i++) {
		struct value v = rows->row[i].value[c];
		size_t k = 0;

		while (k < n && !value_same(rows->row[at[k]].value[c], v))
			k++;
		if (k == n) {
			count[n] = 0;
			at[n++] = i;
		}
		count[k]++;
	}
	return n;
}

static int sample(const struct index_view *v, const struct query *q, const struct str *name,
		  const struct column_info *const *info, size_t n, struct arena *a,
		  struct filters_item *item, struct err *e)
{
	struct query few = { .filter = q->filter, .shown = q->shown,
			     .only_flagged = q->only_flagged, .limit = FILTERS_SAMPLE_ROWS,
			     .column = name, .n_columns = n };
	size_t count[FILTERS_SAMPLE_ROWS];
	struct answer rows;

	if (index_query(v, &few, a, &rows, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		size_t distinct = count_values(&rows, i, count);

		item[i] = (struct filters_item){ .column = info[i] };
		item[i].score = filters_entropy(count, distinct) *
			weight_of(info[i], distinct, rows.n_rows);
		/* What older runs differ in comes behind, and before what never differs. */
		if (item[i].score == 0)
			item[i].score = 1e-6 / (double)(info[i]->distinct + 1);
	}
	return 0;
}

static void take_facets(struct query *q, const struct filters_item *item, size_t n, struct arena *a)
{
	struct str *facet = arena_alloc(a, FILTERS_AUTO_FACETS * sizeof(*facet));

	q->facet = facet;
	q->n_facets = 0;
	for (size_t i = 0; i < n && q->n_facets < FILTERS_AUTO_FACETS; i++)
		if (item[i].score > 0)
			facet[q->n_facets++] = item[i].column->name;
}

/* Texts that are nearly all different. */
static bool is_name(const struct column_info *c)
{
	return c->has_text && c->distinct > NAMES_MIN && c->distinct * 2 > c->present;
}

/* Counted one by one, in all rows that match. */
static int count_all(const struct index_view *v, const struct query *q, const struct str *name,
		     const struct column_info *const *info, size_t n, struct arena *a,
		     struct filters_item *item, struct err *e)
{
	struct query count = { .filter = q->filter, .shown = q->shown,
			       .only_flagged = q->only_flagged, .facet = name, .n_facets = n,
			       .facet_values_max = FACET_VALUES, .histogram_bins = FACET_VALUES };
	struct answer answer;

	if (index_query(v, &count, a, &answer, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		item[i] = (struct filters_item){ info[i], &answer.facet[i],
						 score_of(info[i], &answer.facet[i], a) };
	return 0;
}

/* Measured ones fill up what parameters leave, in the order they were first seen. */
static void add_measured(const struct index_view *v, struct query *q, struct arena *a)
{
	size_t n, shown = q->n_facets;
	const struct column_info *info = index_columns(v, &n);
	struct str *facet = arena_alloc(a, FILTERS_AUTO_FACETS * sizeof(*facet));

	if (shown)
		memcpy(facet, q->facet, shown * sizeof(*facet));
	for (size_t i = 0; i < n && shown < FILTERS_AUTO_FACETS; i++)
		if (info[i].distinct > 1 && column_name(info[i].name).is_metric)
			facet[shown++] = info[i].name;
	q->facet = facet;
	q->n_facets = shown;
}

int filters_auto_facets(const struct index_view *v, struct query *q, struct arena *a,
			struct err *e)
{
	struct query none = { .filter = q->filter, .shown = q->shown,
			      .only_flagged = q->only_flagged };
	size_t n_all, n = 0;
	const struct column_info *info = index_columns(v, &n_all);
	const struct column_info **some = arena_alloc(a, (n_all + 1) * sizeof(*some));
	struct filters_item *item = arena_alloc(a, (n_all + 1) * sizeof(*item));
	struct str *name = arena_alloc(a, (n_all + 1) * sizeof(*name));
	struct answer answer;
	bool is_small;

	if (index_query(v, &none, a, &answer, e) < 0)
		return -1;
	for (size_t i = 0; i < n_all; i++)
		if ((info[i].distinct > 1 || info[i].present < answer.total) &&
		    !is_name(&info[i]) && !column_name(info[i].name).is_outcome) {
			name[n] = info[i].name;
			some[n++] = &info[i];
		}
	is_small = answer.total * n <= FILTERS_EXACT_CELLS_MAX && n <= QUERY_FACETS_MAX;
	if ((is_small ? count_all : sample)(v, q, name, some, n, a, item, e) < 0)
		return -1;
	qsort(item, n, sizeof(*item), by_score);
	take_facets(q, item, n, a);
	add_measured(v, q, a);
	return 0;
}

/* ---- usual choices ---- */

static const char *const usual_columns[] = {
	"run_id", "timestamp", "name", "suite", "status", "verdict", "server.model",
	"server.tensor_parallel_size", "hardware.gpu", "benchmark.dataset_name",
	"benchmark.request_rate", "benchmark.max_concurrency", "request_throughput",
	"output_throughput", "median_ttft_ms", "p95_ttft_ms", "p99_ttft_ms", "median_tpot_ms",
	"p99_tpot_ms", "median_e2el_ms", "completed", "failed",
};
static const char *const usual_statistics[] = {
	"request_throughput", "output_throughput", "total_token_throughput", "median_ttft_ms",
	"p95_ttft_ms", "p99_ttft_ms", "median_tpot_ms", "p99_tpot_ms", "median_e2el_ms",
};

static struct str *those_of_view(const struct index_view *v, struct arena *a,
				 const char *const *names, size_t n, size_t *out_n)
{
	struct str *out = arena_alloc(a, (n + 1) * sizeof(*out));

	*out_n = 0;
	for (size_t i = 0; i < n; i++)
		if (index_column(v, str_of(names[i])))
			out[(*out_n)++] = str_of(names[i]);
	return out;
}

void filters_usual_columns(const struct index_view *v, struct arena *a, struct query *q)
{
	q->column = those_of_view(v, a, usual_columns,
				  sizeof(usual_columns) / sizeof(*usual_columns), &q->n_columns);
}

void filters_usual_statistics(const struct index_view *v, struct arena *a, struct query *q)
{
	q->statistic = those_of_view(v, a, usual_statistics,
				     sizeof(usual_statistics) / sizeof(*usual_statistics),
				     &q->n_statistics);
}
