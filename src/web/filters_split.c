/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filters_split.c - in which columns the runs of a filter differ, which of them split the runs in
 * the same way, and what all runs have in common; see api.h.
 */
#include <math.h>
#include <stdlib.h>

#include "results/index/names.h"
#include "web/api.h"

#define SPLIT_CELLS_MAX 60000   /* values that are looked at */
#define SPLIT_ROWS_MAX 20000
#define SPLIT_WALK_MAX 20000     /* newest rows of which some are taken, at even distances */
#define FEW_ROWS 5               /* among fewer there is no stray one */
#define DIFFERS_ROWS 2
#define DIFFERS_SHARE 0.02
#define USUAL_DIFFERING_MAX 4
#define USUAL_TEXTS_MAX 60       /* a text of more values says nothing in a narrow column */
#define PRESENT_SHARE 0.1        /* of a metric's rows, to be shown */

/* ---- which rows ---- */

static struct page_row *take_rows(const struct index_view *v, const struct query *q,
				  const struct str *name, size_t columns, struct arena *a,
				  struct columns_split *out)
{
	const struct query asked = { .filter = q->filter, .shown = q->shown,
				     .only_flagged = q->only_flagged };
	size_t most = SPLIT_CELLS_MAX / (columns + 1), n_all;
	struct page_row *row;
	int64_t *id;

	most = most > SPLIT_ROWS_MAX ? SPLIT_ROWS_MAX : most;
	index_order(v, &asked, SPLIT_WALK_MAX, a, &id, &n_all);
	out->rows = n_all < most ? n_all : most;
	out->is_sample = out->rows < n_all || n_all == SPLIT_WALK_MAX;
	for (size_t i = 0; i < out->rows; i++)
		id[i] = id[i * n_all / out->rows];
	row = arena_alloc(a, (out->rows + 1) * sizeof(*row));
	out->rows = index_rows(v, id, out->rows, name, columns, a, row);
	return row;
}

/* ---- one column ---- */

/* Values by number, in the order they were first seen. */
struct numbering {
	uint32_t *slot;
	size_t slots, n;
	size_t *count, *first;
	uint32_t *number; /* of each row */
};

static uint64_t hash_of(struct value v)
{
	uint64_t bits = 0;

	if (v.kind == VALUE_TEXT)
		return map_hash(v.text);
	if (v.kind == VALUE_NUMBER)
		memcpy(&bits, &v.number, sizeof(bits));
	else
		bits = v.kind == VALUE_BOOL ? 2u + v.is_true : 1;
	bits *= 0x9e3779b97f4a7c15u;
	return bits ^ bits >> 29;
}

static bool is_same(struct value a, struct value b)
{
	return (value_is_missing(a) && value_is_missing(b)) || value_same(a, b);
}

static size_t number_of(struct numbering *m, const struct page_row *row, size_t i, size_t column)
{
	struct value v = row[i].value[column];
	size_t at = hash_of(v) & (m->slots - 1);

	while (m->slot[at] && !is_same(row[m->first[m->slot[at] - 1]].value[column], v))
		at = (at + 1) & (m->slots - 1);
	if (!m->slot[at]) {
		m->first[m->n] = i;
		m->count[m->n++] = 0;
		m->slot[at] = (uint32_t)m->n;
	}
	return m->slot[at] - 1;
}

static void judge(const struct page_row *row, size_t rows, size_t column, struct numbering *m,
		  struct arena *a, struct column_split *c)
{
	size_t most = 0, limit;

	memset(m->slot, 0, m->slots * sizeof(*m->slot));
	m->n = 0;
	for (size_t i = 0; i < rows; i++) {
		size_t number = number_of(m, row, i, column);

		m->number[i] = (uint32_t)number;
		m->count[number]++;
		c->signature = (c->signature ^ (number + 1)) * 0x100000001b3u;
		c->present += !value_is_missing(row[i].value[column]);
	}
	for (size_t i = 0; i < m->n; i++)
		if (m->count[i] > m->count[most])
			most = i;
	c->distinct = m->n;
	c->bits = filters_entropy(m->count, m->n);
	if (!m->n)
		return;
	c->common = row[m->first[most]].value[column];
	limit = (size_t)ceil(DIFFERS_SHARE * (double)rows);
	if (limit < DIFFERS_ROWS)
		limit = rows < FEW_ROWS ? 1 : DIFFERS_ROWS;
	c->differs = rows - m->count[most] >= limit;
	c->is_constant = m->n == 1 && !value_is_missing(c->common);
	if (!c->differs)
		return;
	c->number = arena_alloc(a, rows * sizeof(*c->number));
	memcpy(c->number, m->number, rows * sizeof(*c->number));
}

/* ---- all of them ---- */

static int by_rank(const void *a, const void *b)
{
	const struct column_split *x = a, *y = b;

	return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Columns are by rank: the first of equal ones is kept. */
static void find_same(struct columns_split *s)
{
	struct map first = { 0 };

	for (size_t i = 0; i < s->n; i++) {
		struct column_split *c = &s->column[i];
		struct str key = { (const char *)&c->signature, sizeof(c->signature) };
		uint64_t at;

		if (c->distinct < 2)
			continue;
		if (map_get(&first, key, &at))
			c->same_as = s->column[at].name;
		else
			map_put(&first, key, i);
	}
	map_release(&first);
}

void columns_split_make(const struct index_view *v, const struct query *q, struct arena *a,
			struct columns_split *out)
{
	size_t n_all;
	const struct column_info *info = index_columns(v, &n_all);
	struct str *name = arena_alloc(a, (n_all + 1) * sizeof(*name));
	struct numbering m = { .slots = 64 };
	struct arena scratch = { 0 };
	struct page_row *row;

	*out = (struct columns_split){ .n = 0 };
	out->column = arena_alloc(a, (n_all + 1) * sizeof(*out->column));
	for (size_t i = 0; i < n_all; i++) {
		enum column_role role = column_role(info[i].name);

		if (role == ROLE_METRIC || role == ROLE_OUTCOME)
			continue;
		out->column[out->n++] = (struct column_split){
			.name = info[i].name, .role = role, .rank = column_rank(info[i].name),
			.has_text = info[i].has_text,
		};
	}
	qsort(out->column, out->n, sizeof(*out->column), by_rank);
	for (size_t i = 0; i < out->n; i++)
		name[i] = out->column[i].name;
	row = take_rows(v, q, name, out->n, &scratch, out);
	while (m.slots < 2 * out->rows)
		m.slots *= 2;
	m.slot = arena_alloc(&scratch, m.slots * sizeof(*m.slot));
	m.count = arena_alloc(&scratch, (out->rows + 1) * sizeof(*m.count));
	m.first = arena_alloc(&scratch, (out->rows + 1) * sizeof(*m.first));
	m.number = arena_alloc(&scratch, (out->rows + 1) * sizeof(*m.number));
	for (size_t i = 0; i < out->n; i++)
		judge(row, out->rows, i, &m, a, &out->column[i]);
	find_same(out);
	arena_release(&scratch);
}

const struct column_split *columns_split_find(const struct columns_split *s, struct str name)
{
	struct column_split key = { .name = name, .rank = column_rank(name) };

	for (size_t i = 0; i < s->n && s->column[i].rank <= key.rank; i++)
		if (str_eq(s->column[i].name, name))
			return &s->column[i];
	return NULL;
}

/* ---- which columns a table shows ---- */

/* Better ones first: those of a preferred role, then those that split the runs more evenly. */
static int by_use(const void *a, const void *b)
{
	const struct column_split *x = *(const struct column_split *const *)a;
	const struct column_split *y = *(const struct column_split *const *)b;
	int role = column_role_order(x->role) - column_role_order(y->role);

	if (role)
		return role;
	if (x->bits != y->bits)
		return x->bits > y->bits ? -1 : 1;
	return by_rank(x, y);
}

/* Rows by their values in the columns that are chosen, but for the load. */
struct groups { uint32_t *of; size_t n; };

/* Whether each group has only one value; with groups of one row that means nothing. */
static bool follows(const struct columns_split *s, const struct groups *g,
		    const struct column_split *c, struct arena *a)
{
	uint32_t *value = arena_alloc(a, (g->n + 1) * sizeof(*value));

	if (g->n * 2 > s->rows)
		return false;
	for (size_t i = 0; i < s->rows; i++) {
		uint32_t *there = &value[g->of[i]];

		if (*there && *there != c->number[i] + 1)
			return false;
		*there = c->number[i] + 1;
	}
	return true;
}

static void refine(const struct columns_split *s, struct groups *g, const struct column_split *c,
		   struct arena *a)
{
	uint64_t *key = arena_alloc(a, (s->rows + 1) * sizeof(*key)), at;
	struct map seen = { 0 };

	g->n = 0;
	for (size_t i = 0; i < s->rows; i++) {
		struct str bytes = { (const char *)&key[i], sizeof(*key) };

		key[i] = (uint64_t)g->of[i] << 32 | c->number[i];
		if (!map_get(&seen, bytes, &at))
			map_put(&seen, bytes, at = g->n++);
		g->of[i] = (uint32_t)at;
	}
	map_release(&seen);
}

/* Columns that add something, best first, at most USUAL_DIFFERING_MAX. */
static size_t choose(const struct columns_split *s, const struct column_split **some, size_t n,
		     struct arena *a)
{
	struct groups g = { arena_alloc(a, (s->rows + 1) * sizeof(*g.of)), 1 };
	size_t kept = 0;

	for (size_t i = 0; i < n && kept < USUAL_DIFFERING_MAX; i++) {
		if (some[i]->role != ROLE_LOAD && follows(s, &g, some[i], a))
			continue;
		if (some[i]->role != ROLE_LOAD)
			refine(s, &g, some[i], a);
		some[kept++] = some[i];
	}
	return kept;
}

/* The load without its kind, and the kind without the load: the options contain both. */
static bool is_load_alone(const struct column_split *c)
{
	return str_is(c->name, "load") || str_is(c->name, "load_kind");
}

static size_t differing(const struct columns_split *s, struct arena *a, struct str *out)
{
	const struct column_split **some = arena_alloc(a, (s->n + 1) * sizeof(*some));
	const struct column_split *load = NULL;
	bool has_load = false;
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct column_split *c = &s->column[i];

		if (!c->differs || c->same_as.n || column_role_order(c->role) >
		    column_role_order(ROLE_ARGUMENT) ||
		    (c->has_text && c->distinct > USUAL_TEXTS_MAX) || is_load_alone(c))
			continue;
		some[n++] = c;
		if (c->role == ROLE_LOAD && !load)
			load = c;
	}
	qsort(some, n, sizeof(*some), by_use);
	n = choose(s, some, n, a);
	for (size_t i = 0; i < n; i++)
		has_load |= some[i]->role == ROLE_LOAD;
	if (load && !has_load)
		some[n - 1] = load; /* a result without its load says nothing */
	for (size_t i = 0; i < n; i++)
		out[i] = some[i]->name;
	return n;
}

/* Rows of the filter with a finite number in each column, as a share. */
static int shares(const struct index_view *v, const struct query *q, const struct str *name,
		  size_t n, struct arena *a, struct statistic **out, size_t *total, struct err *e)
{
	const struct query count = { .filter = q->filter, .shown = q->shown,
				     .only_flagged = q->only_flagged, .statistic = name,
				     .n_statistics = n, .only_ends = true };
	struct answer answer;

	if (index_query(v, &count, a, &answer, e) < 0)
		return -1;
	*out = answer.statistic;
	*total = answer.total;
	return 0;
}

/*
 * Metrics that at least a tenth of the runs have: throughput per GPU if that is known, for runs
 * without a server the time of a batch, and failed requests if there are any.
 */
static int metrics(const struct index_view *v, const struct query *q, struct arena *a,
		   struct str *out, size_t *n, struct err *e)
{
	enum { PER_GPU, OUTPUT, TTFT, P99_TTFT, TPOT, E2EL, REQUESTS, TOKENS, LATENCY, FAILED };
	static const struct str name[] = {
		STR("tokens_per_s_per_gpu"), STR("output_throughput"), STR("median_ttft_ms"),
		STR("p99_ttft_ms"), STR("median_tpot_ms"), STR("median_e2el_ms"),
		STR("request_throughput"), STR("total_token_throughput"), STR("avg_latency"),
		STR("failed"),
	};
	bool is_shown[sizeof(name) / sizeof(*name)];
	struct statistic *s;
	size_t total;

	if (shares(v, q, name, sizeof(name) / sizeof(*name), a, &s, &total, e) < 0)
		return -1;
	for (size_t i = 0; i < sizeof(name) / sizeof(*name); i++)
		is_shown[i] = s[i].count && (double)s[i].count >= PRESENT_SHARE * (double)total;
	is_shown[OUTPUT] &= !is_shown[PER_GPU];
	is_shown[REQUESTS] &= !is_shown[TTFT];
	is_shown[TOKENS] &= !is_shown[TTFT];
	is_shown[LATENCY] &= s[TTFT].count * 2 < total;
	is_shown[FAILED] &= s[FAILED].max > 0;
	for (size_t i = 0; i < sizeof(name) / sizeof(*name); i++)
		if (is_shown[i])
			out[(*n)++] = name[i];
	return 0;
}

int filters_usual_columns(const struct index_view *v, const struct columns_split *s,
			  struct arena *a, struct query *q, struct err *e)
{
	static const struct str first[] = { STR("run_id"), STR("name"), STR("status") };
	static const struct str last[] = { STR("verdict"), STR("timestamp") };
	struct str *name = arena_alloc(a, 32 * sizeof(*name)), *out;
	size_t n = 0;

	for (size_t i = 0; i < sizeof(first) / sizeof(*first); i++)
		name[n++] = first[i];
	n += differing(s, a, name + n);
	if (metrics(v, q, a, name, &n, e) < 0)
		return -1;
	for (size_t i = 0; i < sizeof(last) / sizeof(*last); i++)
		name[n++] = last[i];
	out = arena_alloc(a, n * sizeof(*out));
	q->n_columns = 0;
	for (size_t i = 0; i < n; i++)
		if (index_column(v, name[i]))
			out[q->n_columns++] = name[i];
	q->column = out;
	return 0;
}

/* ---- what all runs have in common ---- */

/* An engine's defaults; of the sizes only TP is informative when it is 1. */
static bool is_default(const struct column_split *c)
{
	struct value v = c->common;

	if (c->role == ROLE_PARALLEL && v.kind == VALUE_NUMBER && v.number <= 1)
		return !str_is(c->name, "server.tensor_parallel_size");
	return value_is_text(v, "auto") || (v.kind == VALUE_BOOL && !v.is_true);
}

/* The workload first, then the engine, and of hardware only the GPU. */
static bool is_fact(const struct columns_split *s, const struct column_split *c, bool has_workload)
{
	if (!c->is_constant || is_default(c) ||
	    column_role_order(c->role) > column_role_order(ROLE_ARGUMENT))
		return false;
	if (c->role == ROLE_WORKLOAD)
		return has_workload ? str_is(c->name, "workload") :
				      str_is(c->name, "server.model") ||
					      str_is(c->name, "benchmark.dataset_name");
	if (c->role == ROLE_HARDWARE)
		return str_is(c->name, "gpu_model");
	if (c->role == ROLE_LOAD)
		return c->common.kind == VALUE_NUMBER && isfinite(c->common.number) &&
			(str_is(c->name, "benchmark.max_concurrency") ||
			 str_is(c->name, "benchmark.request_rate") ||
			 str_is(c->name, "benchmark.batch_size"));
	/* GPUs follow from the parallel sizes. */
	return c->role != ROLE_ARGUMENT && !(str_is(c->name, "gpus_used") &&
		columns_split_find(s, STR("server.tensor_parallel_size")));
}

/*
 * Whether a fact in the line already contains this one, as "vLLM 0.13" contains "vLLM"; the longer
 * text of the two is kept.
 */
static bool is_said(const struct column_split **fact, size_t n, const struct column_split *c)
{
	struct value v = c->common;

	for (size_t i = 0; i < n && v.kind == VALUE_TEXT && v.text.n; i++) {
		struct value other = fact[i]->common;

		if (other.kind != VALUE_TEXT || !other.text.n)
			continue;
		if (str_find(other.text, v.text))
			return true;
		if (str_find(v.text, other.text)) {
			fact[i] = c;
			return true;
		}
	}
	return false;
}

static bool is_constant(const struct columns_split *s, const char *name)
{
	const struct column_split *c = columns_split_find(s, str_of(name));

	return c && c->is_constant;
}

/* Checks all rows, if only a sample was examined. */
static int confirm(const struct index_view *v, const struct query *q, bool is_sample,
		   struct arena *a, const struct column_split **c, size_t *n, struct err *e)
{
	struct query count = { .filter = q->filter ? filter_closed(q->filter, a) : NULL,
			       .shown = q->shown, .only_flagged = q->only_flagged,
			       .facet_values_max = 1, .n_facets = *n };
	struct str *name = arena_alloc(a, (*n + 1) * sizeof(*name));
	struct answer answer;
	size_t kept = 0;

	if (!is_sample)
		return 0;
	for (size_t i = 0; i < *n; i++)
		name[i] = c[i]->name;
	count.facet = name;
	if (index_query(v, &count, a, &answer, e) < 0)
		return -1;
	for (size_t i = 0; i < *n; i++)
		if (answer.facet[i].distinct == 1 && !answer.facet[i].missing)
			c[kept++] = c[i];
	*n = kept;
	return 0;
}

int filters_put_constants(struct json_writer *w, const struct index_view *v, const struct query *q,
			  const struct columns_split *s, struct arena *a, struct err *e)
{
	const struct column_split *fact[CONSTANTS_MAX];
	bool has_workload = is_constant(s, "workload");
	size_t n = 0, all = 0;

	for (size_t i = 0; i < s->n; i++)
		all += s->column[i].is_constant;
	for (int turn = 0; turn < 2; turn++)
		for (size_t i = 0; i < s->n && n < CONSTANTS_MAX; i++) {
			const struct column_split *c = &s->column[i];

			if ((c->role == ROLE_WORKLOAD) != (turn == 1) &&
			    is_fact(s, c, has_workload) && !is_said(fact, n, c))
				fact[n++] = c;
		}
	if (confirm(v, q, s->is_sample, a, fact, &n, e) < 0)
		return -1;
	json_member_array(w, "constants");
	for (size_t i = 0; i < n; i++) {
		struct buf label = { 0 };

		column_label(fact[i]->name, &label);
		json_begin_object(w);
		json_member_str(w, "column", fact[i]->name);
		json_member_str(w, "label", buf_str(&label));
		json_key(w, "value");
		value_put(w, fact[i]->common);
		json_end_object(w);
		buf_release(&label);
	}
	json_end_array(w);
	json_member_int(w, "constants_total", (int64_t)all);
	return 0;
}
