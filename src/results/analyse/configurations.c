/* SPDX-License-Identifier: Apache-2.0 */
/*
 * configurations.c - the runs of one workload as configurations at their loads.
 *
 * Numbers of different workloads are never compared, so one workload is chosen first: the one with
 * the most configurations that have a result. Of the columns in which its runs differ one becomes
 * the color; versions select the newest runs; the others are the configuration. Runs of the same
 * color, configuration and load are repeats of one point.
 *
 * Values become codes, small numbers in the order of their first run, so that 100,000 runs are
 * grouped without comparing any text twice.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/stats/stats.h"
#include "results/analyse/analyse_internal.h"

#define DIFFERS_SHARE 0.02    /* of the runs must have another value than the most common one, */
#define DIFFERS_RUNS 2        /* and at least this many runs, */
#define DIFFERS_SMALL 10      /* unless there are fewer runs than this: then one will do */
#define COLUMNS_READ_MAX 24   /* columns in which runs differ */
#define COLUMNS_FIRST_MAX 10  /* the same, for counting the configurations of all workloads */
#define CODES_SEEN 1024       /* a power of two */
#define GPUS_NAMED 8          /* GPUs without a price that are named */
#define HALF_WIDTH_95 0.98    /* of a binomial distribution of n halves, over the root of n */

static const struct str facts[SETUP_FACTS] = {
	[SETUP_LOAD] = { "load", 4 }, [SETUP_LOAD_KIND] = { "load_kind", 9 },
	[SETUP_TIME] = { "timestamp", 9 }, [SETUP_GPU] = { "gpu_model", 9 },
	[SETUP_GPUS] = { "gpus_used", 9 }, [SETUP_GPUS_FROM] = { "gpus_from", 9 },
	[SETUP_SPEED_FROM] = { "speed_from", 10 }, [SETUP_OUTPUT] = { "output_throughput", 17 },
	[SETUP_RATE] = { "benchmark.request_rate", 22 },
};

/* ---- codes ---- */

/* Values of one column that were seen, by their bits; texts of the index share their bytes. */
struct coder {
	struct { struct value value; uint32_t code; bool is_used; } seen[CODES_SEEN];
	struct map map;
	struct buf key;
	uint32_t n;
};

static size_t seen_place(struct value v)
{
	uint64_t bits = v.kind == VALUE_BOOL ? v.is_true : 0;

	if (v.kind == VALUE_TEXT)
		bits = (uint64_t)(uintptr_t)v.text.p + v.text.n;
	else if (v.kind == VALUE_NUMBER)
		memcpy(&bits, &v.number, sizeof(bits));
	bits = (bits ^ (uint64_t)v.kind << 60) * 0x9e3779b97f4a7c15u;
	return (size_t)(bits >> 54) % CODES_SEEN;
}

static uint32_t code_of(struct coder *c, struct value v, struct arena *a)
{
	size_t place;
	uint64_t code;

	if (v.kind == VALUE_NULL)
		v.kind = VALUE_ABSENT;
	place = seen_place(v);
	if (c->seen[place].is_used && c->seen[place].value.kind == v.kind &&
	    (v.kind == VALUE_TEXT ? c->seen[place].value.text.p == v.text.p &&
	     c->seen[place].value.text.n == v.text.n : value_same(c->seen[place].value, v)))
		return c->seen[place].code;
	buf_reset(&c->key);
	parts_add_key(&c->key, v);
	if (!map_get(&c->map, buf_str(&c->key), &code)) {
		code = c->n++;
		map_put(&c->map, arena_str(a, buf_str(&c->key)), code);
	}
	c->seen[place].value = v;
	c->seen[place].code = (uint32_t)code;
	c->seen[place].is_used = true;
	return (uint32_t)code;
}

uint32_t *setups_codes(struct arena *a, const struct value *v, size_t n, uint32_t *n_codes)
{
	struct coder *c = mem_alloc(sizeof(*c));
	uint32_t *out = arena_alloc(a, (n + 1) * sizeof(*out));

	for (size_t i = 0; i < n; i++)
		out[i] = code_of(c, v[i], a);
	*n_codes = c->n;
	map_release(&c->map);
	buf_release(&c->key);
	free(c);
	return out;
}

uint32_t setups_refine(uint32_t *group, const uint32_t *code, size_t n)
{
	size_t cap = 64;
	uint32_t count = 0;
	struct { uint64_t pair; uint32_t group; bool is_used; } *slot;

	while (cap < 2 * n)
		cap *= 2;
	slot = mem_array(cap, sizeof(*slot));
	for (size_t i = 0; i < n; i++) {
		uint64_t pair = (uint64_t)group[i] << 32 | code[i];
		size_t at = (size_t)(pair * 0x9e3779b97f4a7c15u >> 32) & (cap - 1);

		while (slot[at].is_used && slot[at].pair != pair)
			at = (at + 1) & (cap - 1);
		if (!slot[at].is_used) {
			slot[at].is_used = true;
			slot[at].pair = pair;
			slot[at].group = count++;
		}
		group[i] = slot[at].group;
	}
	free(slot);
	return count;
}

/* ---- columns in which runs differ ---- */

static bool is_configured(enum column_role role)
{
	return role <= ROLE_ARGUMENT;
}

enum column_role setups_role(struct str column)
{
	enum column_role role = column_role(column);

	if (role != ROLE_ARGUMENT || series_role(column) == SERIES_KEY)
		return role;
	return series_role(column) == SERIES_CIRCUMSTANCE ? ROLE_VERSION : ROLE_HARNESS;
}

static size_t differs_least(size_t n)
{
	size_t share = (size_t)ceil(DIFFERS_SHARE * (double)n);

	if (n < DIFFERS_SMALL)
		return 1;
	return share > DIFFERS_RUNS ? share : DIFFERS_RUNS;
}

struct candidate { struct str column; enum column_role role; size_t rank; };

static int by_rank(const void *x, const void *y)
{
	const struct candidate *a = x, *b = y;

	if (a->role != b->role)
		return a->role < b->role ? -1 : 1;
	return a->rank != b->rank ? (a->rank < b->rank ? -1 : 1) :
				    text_compare(a->column, b->column);
}

static struct candidate *candidates_of(const struct analyse_request *r, size_t *n)
{
	size_t count;
	const struct column_info *info = index_columns(r->view, &count);
	struct candidate *out = arena_alloc(r->arena, (count + 1) * sizeof(*out));
	struct query q = { 0 };
	struct answer all;
	struct err none = { 0 };

	*n = 0;
	if (index_query(r->view, &q, r->arena, &all, &none) < 0)
		return out;
	for (size_t i = 0; i < count; i++) {
		struct str name = info[i].name;
		enum column_role role = setups_role(name);

		if (is_configured(role) && (info[i].distinct > 1 || info[i].present < all.total))
			out[(*n)++] = (struct candidate){ name, role, column_rank(name) };
	}
	if (*n)
		qsort(out, *n, sizeof(*out), by_rank);
	return out;
}

/* Columns in which the runs of the filter differ, the first ones by rank; versions if wanted. */
static int differing(const struct analyse_request *r, const struct filter *f, bool has_versions,
		     size_t most, struct str **out, size_t *n_out, struct err *e)
{
	size_t n, kept = 0;
	struct candidate *c = candidates_of(r, &n);
	const struct filter *closed = filter_closed(f, r->arena);
	struct str *name = arena_alloc(r->arena, (n + 1) * sizeof(*name));

	*out = arena_alloc(r->arena, (most + 1) * sizeof(**out));
	*n_out = 0;
	for (size_t i = 0; i < n; i++)
		if (has_versions || c[i].role != ROLE_VERSION)
			name[kept++] = c[i].column;
	n = kept;
	for (size_t from = 0; from < n && *n_out < most; from += QUERY_FACETS_MAX) {
		struct query q = { .filter = closed, .facet = name + from, .facet_values_max = 1 };
		struct answer answer;

		q.n_facets = n - from < QUERY_FACETS_MAX ? n - from : QUERY_FACETS_MAX;
		if (index_query(r->view, &q, r->arena, &answer, e) < 0)
			return -1;
		for (size_t i = 0; i < q.n_facets && *n_out < most; i++) {
			const struct facet *facet = &answer.facet[i];
			size_t common = facet->n ? facet->value[0].count : 0;

			common = facet->missing > common ? facet->missing : common;
			if (answer.total - common >= differs_least(answer.total))
				(*out)[(*n_out)++] = facet->column;
		}
	}
	return 0;
}

/* ---- workloads ---- */

static int by_configurations(const void *x, const void *y)
{
	const struct workload *a = x, *b = y;

	if (a->configurations != b->configurations)
		return a->configurations > b->configurations ? -1 : 1;
	if (a->newest_s < b->newest_s || a->newest_s > b->newest_s)
		return a->newest_s > b->newest_s ? -1 : 1;
	return text_compare(a->key, b->key);
}

/* Columns of the first look at all workloads: workload, time, two results, what differs. */
enum { FIRST_WORKLOAD, FIRST_TIME, FIRST_RESULT, FIRST_COLUMNS = FIRST_RESULT + 2 };

static void count_configurations(struct setups *s, const struct rows *rows, struct str result,
				 size_t n_differs, const uint32_t *workload)
{
	const struct counting of[] = { counting_of(result), counting_of(STR("output_throughput")) };
	struct arena *a = s->r->arena;
	uint32_t *group = arena_alloc(a, (rows->n + 1) * sizeof(*group)), codes, count = 0;
	bool *is_counted;

	memcpy(group, workload, rows->n * sizeof(*group));
	for (size_t c = 0; c < n_differs; c++) {
		const struct value *v = rows->value + (FIRST_COLUMNS + c) * rows->n;

		count = setups_refine(group, setups_codes(a, v, rows->n, &codes), rows->n);
	}
	is_counted = arena_alloc(a, (count > s->n_workloads ? count : s->n_workloads) + 1);
	for (size_t i = 0; i < rows->n; i++) {
		bool counts = false;

		for (size_t k = 0; k < 2; k++)
			counts |= counts_for(&of[k], &rows->verdicts, i,
					     parts_number_at(rows, FIRST_RESULT + k, i)) == COUNTS;
		if (!counts || is_counted[group[i]])
			continue;
		is_counted[group[i]] = true;
		s->workload[workload[i]].configurations++;
	}
}

static int find_workloads(struct setups *s, const struct filter *f, struct str result,
			  struct err *e)
{
	struct arena *a = s->r->arena;
	struct str *differs, column[FIRST_COLUMNS + COLUMNS_FIRST_MAX];
	struct rows rows;
	uint32_t *code, n_codes;
	size_t n;

	if (differing(s->r, f, false, COLUMNS_FIRST_MAX, &differs, &n, e) < 0)
		return -1;
	column[FIRST_WORKLOAD] = STR("workload");
	column[FIRST_TIME] = STR("timestamp");
	column[FIRST_RESULT] = result;
	column[FIRST_RESULT + 1] = STR("output_throughput");
	for (size_t i = 0; i < n; i++)
		column[FIRST_COLUMNS + i] = differs[i];
	if (parts_select_by(s->r, f, column, FIRST_COLUMNS + n, &rows, e) < 0)
		return -1;
	code = setups_codes(a, rows.value, rows.n, &n_codes);
	s->workload = arena_alloc(a, ((size_t)n_codes + 1) * sizeof(*s->workload));
	s->n_workloads = n_codes;
	s->runs = rows.n;
	for (size_t i = 0; i < rows.n; i++) {
		struct workload *w = &s->workload[code[i]];
		double at = parts_number_at(&rows, FIRST_TIME, i);

		if (!w->runs++) {
			w->newest_s = -INFINITY;
			if (rows.value[i].kind == VALUE_TEXT)
				w->key = rows.value[i].text;
		}
		w->newest_s = at > w->newest_s ? at : w->newest_s;
	}
	count_configurations(s, &rows, result, n, code);
	if (s->n_workloads)
		qsort(s->workload, s->n_workloads, sizeof(*s->workload), by_configurations);
	return 0;
}

/* Chooses the request's workload, even one without runs, else the first of the list. */
static int choose_workload(struct setups *s, struct err *e)
{
	const struct json_value *v = json_get(s->r->body, "workload");

	s->key = s->n_workloads ? s->workload[0].key : STR("");
	if (!v || v->kind == JSON_NULL)
		return 0;
	if (v->kind != JSON_STRING)
		return parts_refuse(e, "/workload", "a workload as the list of workloads names it was "
				    "expected");
	s->key = v->text;
	return 0;
}

static struct filter *of_workload(const struct setups *s, const struct filter *f)
{
	struct arena *a = s->r->arena;
	struct filter *one = arena_alloc(a, sizeof(*one));

	one->kind = FILTER_IN;
	one->column = STR("workload");
	one->value = arena_alloc(a, sizeof(*one->value));
	one->n_values = 1;
	one->value[0] = s->key.n ? (struct value){ .kind = VALUE_TEXT, .text = s->key }
				 : (struct value){ .kind = VALUE_NULL };
	return parts_both(a, one, f);
}

/* ---- which column does what ---- */

static double entropy_of(const struct differing *d, size_t n, struct arena *a)
{
	double bits = 0, *count = arena_alloc(a, (d->n_codes + 1) * sizeof(*count));

	for (size_t i = 0; i < n; i++)
		count[d->code[i]]++;
	for (uint32_t k = 0; k < d->n_codes; k++)
		bits -= count[k] / (double)n * log2(count[k] / (double)n);
	return bits;
}

/* Whether the runs differ in it, other than by failed runs that lack a value. */
static bool differs_among_results(const struct setups *s, const struct differing *d)
{
	struct counting counting = counting_of(STR("output_throughput"));
	uint32_t first = d->n_codes;

	for (size_t i = 0; i < s->rows.n; i++) {
		if (value_is_missing(setups_value(s, d, i)) &&
		    counts_for(&counting, &s->rows.verdicts, i, NAN) == COUNTS_FAILED)
			continue;
		if (first != d->n_codes && first != d->code[i])
			return true;
		first = d->code[i];
	}
	return false;
}

/*
 * Columns that split the runs in the same way are one: the first of them, or the one that the
 * request names.
 */
static void read_codes(struct setups *s, struct str *column, size_t n, struct str wanted)
{
	struct arena *a = s->r->arena;

	s->differs = arena_alloc(a, (n + 2) * sizeof(*s->differs));
	for (size_t c = 0; c < n; c++) {
		struct differing d = { .column = column[c], .place = s->n_metrics + SETUP_FACTS + c,
				       .role = setups_role(column[c]) };
		bool is_wanted = str_eq(column[c], wanted);
		size_t same = 0;

		d.code = setups_codes(a, s->rows.value + d.place * s->rows.n, s->rows.n,
				      &d.n_codes);
		while (same < s->n_differs && memcmp(s->differs[same].code, d.code,
						     s->rows.n * sizeof(*d.code)) != 0)
			same++;
		if (!is_wanted && (same < s->n_differs || !differs_among_results(s, &d)))
			continue;
		d.entropy = entropy_of(&d, s->rows.n, a);
		s->differs[same] = d;
		s->n_differs += same == s->n_differs;
	}
}

/* Whether it is only a color on request, because it belongs in trends. */
static bool is_no_color(struct str column)
{
	return str_ends(column, STR("commit")) || setups_role(column) != column_role(column);
}

/* Whether a is a better color than b. */
static bool is_better_color(const struct differing *a, const struct differing *b)
{
	bool is_few_a = a->n_codes <= SETUP_COLORS_MAX, is_few_b = b->n_codes <= SETUP_COLORS_MAX;

	if (is_few_a != is_few_b)
		return is_few_a;
	if (a->role != b->role)
		return a->role < b->role;
	return a->entropy > b->entropy + 1e-9;
}

/*
 * What a client did not look up is unknown, not another value: where all runs that know the machine
 * or the engine have the same, it says nothing of them.
 */
static bool is_known_of_one(const struct setups *s, const struct differing *d)
{
	uint32_t first = d->n_codes;

	for (size_t i = 0; i < s->rows.n; i++) {
		if (value_is_missing(setups_value(s, d, i)))
			continue;
		if (first != d->n_codes && first != d->code[i])
			return false;
		first = d->code[i];
	}
	return d->role == ROLE_HARDWARE || d->role == ROLE_ENGINE || d->role == ROLE_VERSION;
}

/* The request's color; null: none. Without one, the best of the columns that differ. */
static int choose_color(struct setups *s, const struct json_value *v, struct err *e)
{
	s->color = NULL;
	if (v && v->kind == JSON_NULL)
		return 0;
	if (v && (v->kind != JSON_STRING || !v->text.n))
		return parts_refuse(e, "/color", "expected the name of a column");
	for (size_t i = 0; i < s->n_differs; i++) {
		struct differing *d = &s->differs[i];

		if (v ? str_eq(d->column, v->text) :
		    is_configured(d->role) && !is_no_color(d->column) && !is_known_of_one(s, d) &&
		    (!s->color || is_better_color(d, s->color)))
			s->color = d;
	}
	return 0;
}

/* A column that follows from the color and those before it splits no line, and is left out. */
static void choose_configuration(struct setups *s)
{
	uint32_t *group = arena_alloc(s->r->arena, (s->rows.n + 1) * sizeof(*group));
	uint32_t count = s->color ? setups_refine(group, s->color->code, s->rows.n) : 1;

	for (size_t i = 0; i < s->n_differs; i++) {
		struct differing *d = &s->differs[i];
		uint32_t finer;

		if (d == s->color)
			continue;
		if (d->role == ROLE_VERSION)
			s->version[s->n_versions++] = d;
		if (d->role == ROLE_VERSION || !is_configured(d->role))
			continue;
		finer = setups_refine(group, d->code, s->rows.n);
		if (finer > count)
			s->configuration[s->n_configuration++] = d;
		count = finer;
	}
}

/* The number of groups after also splitting them by a fact. */
static uint32_t split(const struct setups *s, uint32_t *group, enum setup_fact fact)
{
	const struct value *v = s->rows.value + (s->n_metrics + fact) * s->rows.n;
	uint32_t codes;

	return setups_refine(group, setups_codes(s->r->arena, v, s->rows.n, &codes), s->rows.n);
}

/*
 * A concurrency is the load of a run that has one, but may only be the cap of a sweep over request
 * rates: runs at different rates are not repeats, so the rate becomes part of their configuration.
 */
static void add_rate(struct setups *s)
{
	size_t n = s->rows.n, place = s->n_metrics + SETUP_RATE;
	struct value *rate = s->rows.value + place * n;
	uint32_t *group = arena_alloc(s->r->arena, (n + 1) * sizeof(*group)), count;
	struct differing *d;

	for (size_t i = 0; i < n; i++)
		if (rate[i].kind != VALUE_NUMBER || !isfinite(rate[i].number))
			rate[i].kind = VALUE_ABSENT; /* as fast as the server answers */
	if (s->color)
		setups_refine(group, s->color->code, n);
	for (size_t i = 0; i < s->n_configuration; i++)
		setups_refine(group, s->configuration[i]->code, n);
	count = split(s, group, SETUP_LOAD);
	if (split(s, group, SETUP_RATE) == count)
		return;
	d = arena_alloc(s->r->arena, sizeof(*d));
	*d = (struct differing){ .column = facts[SETUP_RATE], .place = place, .role = ROLE_LOAD };
	d->code = setups_codes(s->r->arena, rate, n, &d->n_codes);
	s->configuration[s->n_configuration++] = d;
}

int setups_read(const struct analyse_request *r, const struct str *metric, size_t n_metrics,
		struct str result, const char *color, struct setups *out, struct err *e)
{
	const struct json_value *by = color ? json_get(r->body, color) : NULL;
	struct str *differs, *column;
	struct str wanted = json_text(by, STR(""));
	struct filter *f;
	size_t n = 0, n_columns = 0;

	assert(n_metrics > 0 && n_metrics <= SETUP_METRICS_MAX);
	*out = (struct setups){ .r = r, .n_metrics = n_metrics };
	if (filter_read(json_get(r->body, "filter"), "/filter", r->arena, &f, e) < 0 ||
	    parts_newest(r, f, SETUPS_RUNS_MAX, &out->newest, &out->matching, e) < 0)
		return -1;
	if (out->newest)
		f = parts_both(r->arena, f, out->newest);
	if (find_workloads(out, f, result, e) < 0 || choose_workload(out, e) < 0)
		return -1;
	out->unfiltered = of_workload(out, out->newest);
	out->filter = f = of_workload(out, f);
	if (differing(r, f, true, COLUMNS_READ_MAX, &differs, &n, e) < 0)
		return -1;
	column = arena_alloc(r->arena, (n_metrics + SETUP_FACTS + n + 1) * sizeof(*column));
	for (size_t i = 0; i < n_metrics; i++)
		column[n_columns++] = out->metric[i] = metric[i];
	for (size_t i = 0; i < SETUP_FACTS; i++)
		column[n_columns++] = facts[i];
	for (size_t i = 0; i < n; i++)
		column[n_columns++] = differs[i];
	if (wanted.n)
		column[n_columns++] = wanted;
	out->column = column;
	out->n_columns = n_columns;
	if (parts_select_by(r, f, column, n_columns, &out->rows, e) < 0)
		return -1;
	read_codes(out, column + n_metrics + SETUP_FACTS, n_columns - n_metrics - SETUP_FACTS,
		   wanted);
	if (choose_color(out, by, e) < 0)
		return -1;
	choose_configuration(out);
	add_rate(out);
	for (size_t i = 0; i < n_metrics; i++)
		out->counting[i] = counting_of(metric[i]);
	return 0;
}

/* The number that an object by gpu_model has for a row; NAN: none. */
static double rate_of(const struct setups *s, const struct json_value *by_gpu, size_t row)
{
	struct value gpu = setups_fact(s, SETUP_GPU, row);
	double out = NAN;

	for (size_t i = 0; gpu.kind == VALUE_TEXT && by_gpu && i < by_gpu->count; i++)
		if (str_eq(by_gpu->key[i], gpu.text))
			out = json_real(&by_gpu->item[i], NAN);
	return out;
}

static int read_prices(const struct analyse_request *r, const struct json_value **out,
		       struct err *e)
{
	const struct json_value *prices = json_get(r->body, "prices");

	*out = prices && prices->kind != JSON_NULL ? prices : r->prices;
	if (prices && prices->kind != JSON_OBJECT && prices->kind != JSON_NULL)
		return parts_refuse(e, "/prices", "expected an object of dollars per GPU hour");
	for (size_t i = 0; prices && prices->kind == JSON_OBJECT && i < prices->count; i++) {
		double v = json_real(&prices->item[i], NAN);

		if (!(v >= 0 && v <= ANALYSE_NUMBER_MAX))
			return err_set(e, ERR_USAGE, "/prices/%.*s: a price per GPU hour of at least 0 was "
				       "expected", (int)prices->key[i].n, prices->key[i].p);
	}
	return 0;
}

int setups_price(struct setups *s, size_t metric, struct err *e)
{
	const struct json_value *prices;
	size_t n = s->rows.n;

	if (read_prices(s->r, &prices, e) < 0)
		return -1;
	for (size_t row = 0; row < n; row++) {
		struct value *out = &s->rows.value[metric * n + row];
		double gpus, output, price = rate_of(s, prices, row);

		*out = (struct value){ .kind = VALUE_ABSENT };
		if (isnan(price) || !parts_is_number(setups_fact(s, SETUP_GPUS, row), &gpus) ||
		    !parts_is_number(setups_fact(s, SETUP_OUTPUT, row), &output) || output <= 0)
			continue;
		*out = (struct value){ .kind = VALUE_NUMBER,
				       .number = price * gpus * 1e6 / (3600 * output) };
	}
	return 0;
}

static double of_power(struct str metric, double watts, double output)
{
	return str_is(metric, "power_w") ? watts : str_is(metric, "tokens_per_s_per_kw") ?
		1000 * output / watts : watts / output;
}

void setups_power(struct setups *s, size_t metric)
{
	static const char *const metrics[] = {
		"power_w", "tokens_per_s_per_kw", "j_per_output_token",
	};
	size_t n = s->rows.n, k = 0;

	while (k < 3 && !str_is(s->metric[metric], metrics[k]))
		k++;
	if (k == 3)
		return;
	for (size_t row = 0; row < n; row++) {
		struct value *out = &s->rows.value[metric * n + row];
		double gpus, output, watts = rate_of(s, s->r->watts, row);

		if (!value_is_missing(*out) || isnan(watts) ||
		    !parts_is_number(setups_fact(s, SETUP_GPUS, row), &gpus) ||
		    !parts_is_number(setups_fact(s, SETUP_OUTPUT, row), &output) || output <= 0)
			continue;
		*out = (struct value){ .kind = VALUE_NUMBER,
				       .number = of_power(s->metric[metric], watts * gpus,
							  output) };
		s->is_assumed = s->is_assumed ? s->is_assumed : arena_alloc(s->r->arena, n + 1);
		s->is_assumed[row] = true;
	}
}

void setups_put_unpriced(struct json_writer *w, const struct setups *s)
{
	const struct json_value *prices;
	struct str seen[GPUS_NAMED] = { { 0 } };
	struct err none = { 0 };
	size_t n = 0;

	json_member_array(w, "unpriced");
	for (size_t row = 0; row < s->rows.n && n < GPUS_NAMED; row++) {
		struct value gpu = setups_fact(s, SETUP_GPU, row);
		size_t k = 0;

		while (k < n && !str_eq(seen[k], gpu.text))
			k++;
		if (k < n || gpu.kind != VALUE_TEXT || read_prices(s->r, &prices, &none) < 0 ||
		    !isnan(rate_of(s, prices, row)))
			continue;
		seen[n++] = gpu.text;
		json_put_str(w, gpu.text);
	}
	json_end_array(w);
}

double setups_metric(const struct setups *s, size_t metric, size_t row)
{
	return parts_number_at(&s->rows, metric, row);
}

struct value setups_fact(const struct setups *s, enum setup_fact fact, size_t row)
{
	return s->rows.value[(s->n_metrics + fact) * s->rows.n + row];
}

struct value setups_value(const struct setups *s, const struct differing *d, size_t row)
{
	return s->rows.value[d->place * s->rows.n + row];
}

/* ---- points ---- */

static int by_line(const void *x, const void *y)
{
	const struct setup_point *a = x, *b = y;

	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	if (isnan(a->load) != isnan(b->load))
		return isnan(a->load) ? 1 : -1;
	if (a->load < b->load || a->load > b->load)
		return a->load < b->load ? -1 : 1;
	return (a->member[0] > b->member[0]) - (a->member[0] < b->member[0]);
}

struct setup_point *setups_points(const struct setups *s, const bool *counts, size_t *n)
{
	struct arena *a = s->r->arena;
	const struct rows *rows = &s->rows;
	uint32_t *line = arena_alloc(a, (rows->n + 1) * sizeof(*line)), codes;
	uint32_t *point = arena_alloc(a, (rows->n + 1) * sizeof(*point));
	uint32_t *version = arena_alloc(a, (rows->n + 1) * sizeof(*version));
	const struct value *kind = rows->value + (s->n_metrics + SETUP_LOAD_KIND) * rows->n;
	const struct value *load = rows->value + (s->n_metrics + SETUP_LOAD) * rows->n;
	size_t *member = arena_alloc(a, (rows->n + 1) * sizeof(*member)), at = 0;
	struct newest newest = { .at = rows->value + (s->n_metrics + SETUP_TIME) * rows->n,
				 .version = version, .counts = counts };
	struct setup_point *out;

	if (s->color)
		setups_refine(line, s->color->code, rows->n);
	for (size_t i = 0; i < s->n_configuration; i++)
		setups_refine(line, s->configuration[i]->code, rows->n);
	setups_refine(line, setups_codes(a, kind, rows->n, &codes), rows->n);
	memcpy(point, line, rows->n * sizeof(*point));
	*n = setups_refine(point, setups_codes(a, load, rows->n, &codes), rows->n);
	for (size_t i = 0; i < s->n_versions; i++)
		setups_refine(version, s->version[i]->code, rows->n);
	out = arena_alloc(a, (*n + 1) * sizeof(*out));
	for (size_t i = 0; i < rows->n; i++)
		out[point[i]].n++;
	for (size_t i = 0; i < *n; i++) {
		out[i].member = member + at;
		at += out[i].n;
		out[i].n = 0;
	}
	for (size_t i = 0; i < rows->n; i++) {
		struct setup_point *p = &out[point[i]];

		p->line = line[i];
		p->load = load[i].kind == VALUE_NUMBER ? load[i].number : NAN;
		p->member[p->n++] = i;
	}
	for (size_t i = 0; s->n_versions && i < *n; i++) {
		size_t all = out[i].n;

		out[i].n = newest_keep(&newest, out[i].member, all, true);
		out[i].n_older = all - out[i].n;
	}
	if (*n)
		qsort(out, *n, sizeof(*out), by_line);
	return out;
}

/* ---- runs of a median that are no repeats ---- */

#define TAG_VALUES_MAX 24  /* more are dates and numbers of runs */

size_t tags_of(const struct analyse_request *r, struct str out[static TAGS_MAX])
{
	size_t count, n = 0;
	const struct column_info *info = index_columns(r->view, &count);

	for (size_t i = 0; i < count && n < TAGS_MAX; i++)
		if (str_starts(info[i].name, STR("tags.")) && info[i].distinct > 1 &&
		    info[i].distinct <= TAG_VALUES_MAX && series_role(info[i].name) != SERIES_KEY)
			out[n++] = info[i].name;
	return n;
}

/* Of the rows that one number joins: their values of a tag, and whether two have the same one. */
struct joined { uint32_t values; bool is_repeated; };

_Static_assert(TAG_VALUES_MAX + 1 < 32, "a bit for each value, and one for none");

bool tag_is_mixed(const uint32_t *group, const uint32_t *cell, const struct value *tag, size_t n,
		  struct arena *a)
{
	struct coder *c = mem_alloc(sizeof(*c));
	size_t most = 0;
	struct joined *of;
	bool out = false;

	for (size_t i = 0; i < n; i++)
		most = cell[i] > most ? cell[i] : most;
	of = mem_array(most + 1, sizeof(*of));

	for (size_t i = 0; i < n && !out && c->n < 32; i++) {
		struct joined *j = &of[cell[i]];
		uint32_t code = group[i] ? code_of(c, tag[i], a) : 32;

		if (code >= 32)
			continue;
		j->is_repeated |= j->values >> code & 1;
		j->values |= 1u << code;
		out = j->is_repeated && (j->values & (j->values - 1));
	}
	map_release(&c->map);
	buf_release(&c->key);
	free(of);
	free(c);
	return out;
}

struct str tags_mixed(const struct analyse_request *r, const struct filter *given,
		      const uint32_t *group, const uint32_t *place, size_t n)
{
	size_t n_tags, n_joined = 0;
	const uint32_t *cell = group;
	struct str tag[TAGS_MAX], found = STR("");
	struct filter *f = (struct filter *)given;
	struct err none = { 0 };

	for (size_t i = 0; i < n; i++)
		n_joined += group[i] != 0;
	n_tags = n_joined > 1 ? tags_of(r, tag) : 0;
	if (!n_tags || (!f && filter_read(json_get(r->body, "filter"), "/filter", r->arena, &f,
					  &none) < 0))
		return found;
	if (place) {
		uint32_t *both = arena_alloc(r->arena, (n + 1) * sizeof(*both));

		memcpy(both, group, n * sizeof(*both));
		setups_refine(both, place, n);
		cell = both;
	}
	for (size_t c = 0; c < n_tags && !found.n; c++) {
		struct arena scratch = { 0 }; /* the texts of values are the view's */
		struct value *v;
		int64_t *id;
		size_t rows;

		if (index_select(r->view, f, 0, &tag[c], 1, &scratch, &id, &rows, &v, &none) == 0 &&
		    rows == n && tag_is_mixed(group, cell, v, n, &scratch))
			found = tag[c];
		arena_release(&scratch);
	}
	return found;
}

struct str series_mixed(const struct analyse_request *r, const struct series_list *l,
			const uint32_t *place)
{
	uint32_t *group = arena_alloc(r->arena, (l->rows->n + 1) * sizeof(*group));

	for (size_t i = 0; i < l->shown; i++)
		for (size_t k = 0; k < l->series[i].n; k++)
			group[l->series[i].member[k]] = (uint32_t)i + 1;
	return tags_mixed(r, NULL, group, place, l->rows->n);
}

struct str setups_mixed(const struct setups *s, const struct setup_point *p, size_t n_points,
			const bool *counts)
{
	uint32_t *group = arena_alloc(s->r->arena, (s->rows.n + 1) * sizeof(*group));

	for (size_t i = 0; i < n_points; i++)
		for (size_t k = 0; k < p[i].n; k++)
			if (counts[p[i].member[k]])
				group[p[i].member[k]] = (uint32_t)i + 1;
	return tags_mixed(s->r, s->filter, group, NULL, s->rows.n);
}

/*
 * The median of n is with 95 % between two of their order statistics: those half a width of the
 * binomial distribution from the middle. For up to six values, all of them.
 */
static void set_sure(struct folded *f, const double *sorted)
{
	double middle = ((double)f->n - 1) / 2, away = HALF_WIDTH_95 * sqrt((double)f->n);

	f->sure_low = sorted[(size_t)fmax(0, floor(middle - away))];
	f->sure_high = sorted[(size_t)fmin((double)f->n - 1, ceil(middle + away))];
}

struct folded setups_fold(const struct setups *s, const struct setup_point *p, size_t metric,
			  const bool *keep)
{
	struct folded out = { NAN, NAN, NAN, 0 };
	double few[8], *x = p->n <= 8 ? few : mem_array(p->n, sizeof(*x));

	for (size_t i = 0; i < p->n; i++) {
		if (keep[p->member[i]])
			x[out.n++] = setups_metric(s, metric, p->member[i]);
	}
	if (out.n) {
		out.value = parts_median(x, out.n);
		set_sure(&out, x);
	}
	if (x != few)
		free(x);
	return out;
}

size_t setups_typical(const struct setups *s, const struct setup_point *p, size_t metric,
		      const bool *keep)
{
	double median = setups_fold(s, p, metric, keep).value, nearest = INFINITY;
	size_t out = p->n;

	for (size_t i = 0; i < p->n; i++) {
		double away = fabs(setups_metric(s, metric, p->member[i]) - median);

		if (keep[p->member[i]] && (out == p->n || away < nearest)) {
			nearest = away;
			out = i;
		}
	}
	return out;
}
