/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capacity.c - how many servers, and GPUs, a rate of requests needs within service levels: for each
 * configuration that was measured under several loads, ranked.
 *
 * Of a configuration that was measured with several versions only the newest that counts is used
 * (newest.c). Its runs with the same offered load (benchmark.request_rate, or max_concurrency if
 * that is unlimited) are repeats of one point, whose rate is the median of request_throughput. A
 * point holds when the median of every service level's metric is within its limit and none of its
 * runs failed more than FAILED_SHARE_MAX of its requests. A run that failed more does not hold its
 * load, whatever else it measured: its rate is then the offered one, and nothing bounds the rate of
 * a load that only has a concurrency. Other runs need every limit's metric, and must count for it
 * (counts_for).
 *
 * Of the points in order of their rate, the last one that holds before the first that does not, and
 * that one, are the bracket; rate_per_server.value is between them, where the first limit is
 * reached on the line between their medians. Its interval is the bracket itself if either end was
 * measured once; with repeats it is where that line runs between the ends of Student's intervals,
 * never wider than the bracket. When every load held the true capacity is unknown: value and low
 * are the highest rate measured and high is null.
 *
 * servers = ceil(rate / value); GPUs of a server: gpus_used of its run, else unknown; one each,
 * with a note, if no configuration says. Headroom is the capacity of these servers beyond the rate,
 * as a share of it.
 *
 * A run of search: {find: rate} has measured the answer itself: if its limits are those of the
 * request it replaces the estimate for its configuration; of several the median, and the widest
 * interval. Runs that searched with other limits answer another question: "searches" lists the
 * limits of all.
 *
 * "slo": null uses the limits that most searches had; without searches, P99 TTFT within
 * LIMIT_FACTOR times the lowest median of a configuration at one load. "rate": null uses RATE_SHARE
 * of the highest rate that a configuration reaches within the limits. Both defaults distinguish the
 * configurations.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/stats/significance.h"
#include "results/analyse/analyse_internal.h"

#define SLO_MAX ANALYSE_SLO_MAX
#define FAILED_SHARE_MAX 0.01
#define LIMIT_FACTOR 2.0
#define RATE_SHARE 0.7
#define LIMITS_EQUAL 1e-9     /* relative difference of the same number, written twice */
#define LEVEL 0.95            /* of intervals */
#define SEARCHES_SHOWN 8      /* different limits of searches */

struct slo { struct str column; double limit; bool is_most; };

/* Columns after the configuration's own. */
enum fact {
	RATE, OFFERED, CONCURRENCY, FAILED, COMPLETED, GPUS, GPU, FOUND, FOUND_LOW, FOUND_HIGH,
	FOUND_LIMITS, FOUND_AT_ONCE, FACTS
};
static const struct str facts[FACTS] = {
	[RATE] = { "request_throughput", 18 }, [OFFERED] = { "benchmark.request_rate", 22 },
	[CONCURRENCY] = { "benchmark.max_concurrency", 25 }, [FAILED] = { "failed", 6 },
	[COMPLETED] = { "completed", 9 }, [GPUS] = { "gpus_used", 9 },
	[GPU] = { "gpu_model", 9 },
	[FOUND] = { "capacity_request_rate", 21 }, [FOUND_LOW] = { "capacity_request_rate_low", 25 },
	[FOUND_HIGH] = { "capacity_request_rate_high", 26 },
	[FOUND_LIMITS] = { "capacity_limits", 15 },
	[FOUND_AT_ONCE] = { "capacity_concurrency", 20 },
};
/* Metrics for the default limit: the first that any run has. */
static const char *const limited_default[] = {
	"p99_ttft_ms", "p95_ttft_ms", "median_ttft_ms", "p99_e2el_ms", "median_e2el_ms", NULL,
};

/* One load of one configuration. */
struct load {
	double offered;            /* see struct offered */
	double rate;               /* measured; of one that fails: no less than was offered */
	double bound;              /* no more is carried when it does not hold; NAN: unknown */
	double median[SLO_MAX], low[SLO_MAX], high[SLO_MAX]; /* of the limits' metrics */
	size_t n;
	bool holds;
	bool is_failing;           /* too many failed requests */
};

/* "found": a crossing between two loads; only in the other states more loads would help. */
enum state { STATE_FOUND, STATE_NEEDS_HIGHER, STATE_NEVER, STATE_ONE_LOAD };
static const char *const states[] = { "found", "needs_higher_load", "never", "one_load" };

struct estimate { double value, low, high; const char *reason; enum state state; };

struct answer_row {
	size_t series;
	struct estimate rate;
	double gpus_each, servers, gpus, usd_per_hour; /* NAN: not known */
	size_t runs, n_loads, n_searches;
	const struct load *load;   /* in order of rate */
};

/* The limits of some searches. */
struct searched { struct slo slo[SLO_MAX]; size_t n, runs; bool is_asked; };

struct capacity {
	const struct analyse_request *r;
	double rate;
	struct slo slo[SLO_MAX];
	size_t n_slos;
	struct str *column;        /* configuration, facts, sizes, limits, versions */
	size_t n_keys, n_last, first_fact, first_slo, first_version, n_columns;
	struct rows rows;
	struct newest newest;
	struct counting counting[SLO_MAX + 1]; /* of the limits' metrics, then of the rate */
	bool *is_found;            /* of each row: it is a search with the request's limits */
	struct searched searched[SEARCHES_SHOWN]; /* most runs first */
	size_t n_searched, n_at_once;
	struct notes notes;
};

/* ---- the request ---- */

static int read_slo(struct capacity *c, struct err *e)
{
	const struct json_value *list = json_get(c->r->body, "slo");

	if (list && list->kind == JSON_NULL)
		return 0;
	if (!list || list->kind != JSON_ARRAY || !list->count || list->count > SLO_MAX)
		return parts_refuse(e, "/slo", "expected a list of 1 to %d limits", SLO_MAX);
	for (; c->n_slos < list->count; c->n_slos++) {
		const struct json_value *one = &list->item[c->n_slos];
		const struct json_value *column = json_get(one, "column");
		const struct json_value *most = json_get(one, "max"), *least = json_get(one, "min");
		const struct json_value *limit = most ? most : least;
		const char *pointer = arena_printf(c->r->arena, "/slo/%zu", c->n_slos);
		double v = json_real(limit, NAN);

		if (!column || column->kind != JSON_STRING || !column->text.n)
			return err_set(e, ERR_USAGE, "%s/column: expected the name of a column",
				       pointer);
		if (!limit || (most && least) || !(fabs(v) <= ANALYSE_NUMBER_MAX))
			return parts_refuse(e, pointer, "expected either max or min with a number");
		c->slo[c->n_slos] = (struct slo){ column->text, v, most != NULL };
	}
	return 0;
}

static const char *const configuration_default[] = {
	"server.model", "hardware.gpu", "server.gpu", "server.tensor_parallel_size",
	"server.pipeline_parallel_size", "server.data_parallel_size", "server.quantization",
	"server.dtype", "server.kv_cache_dtype", "server.max_num_seqs",
	"server.max_num_batched_tokens", "server.gpu_memory_utilization",
	"server.enable_prefix_caching", "server.enable_chunked_prefill",
	"prefill.tensor_parallel_size", "decode.tensor_parallel_size", "benchmark.backend",
	"benchmark.dataset_name", "benchmark.random_input_len", "benchmark.random_output_len",
	"benchmark.input_len", "benchmark.output_len", NULL,
};
/* After those; each is only used where it tells some apart that the others do not. */
static const char *const configuration_last[] = { "gpu_model", "gpus_used", "workload", NULL };
#define LAST_MAX 3

/* ---- searches ---- */

/* "p99_ttft_ms<200,p99_tpot_ms<30"; 0: it cannot be read. */
static size_t read_limits(struct str text, struct slo *out)
{
	size_t n = 0;

	while (text.n && n < SLO_MAX) {
		struct str value = str_cut(&text, ','), column = str_cut(&value, '<');
		double limit;

		if (value.n && *value.p == '=')
			value = (struct str){ value.p + 1, value.n - 1 };
		if (!column.n || !str_to_f64(value, &limit) || !isfinite(limit))
			return 0;
		out[n++] = (struct slo){ column, limit, true };
	}
	return text.n ? 0 : n;
}

/* Whether the limits are the same, in any order. */
static bool is_same(const struct slo *x, size_t n_x, const struct slo *y, size_t n_y)
{
	size_t same = 0;

	for (size_t i = 0; i < n_x; i++)
		for (size_t k = 0; k < n_y; k++)
			same += x[i].is_most == y[k].is_most && str_eq(x[i].column, y[k].column) &&
				!(fabs(x[i].limit - y[k].limit) > LIMITS_EQUAL * fabs(y[k].limit));
	return n_x == n_y && same == n_x;
}

static int by_runs(const void *x, const void *y)
{
	const struct searched *a = x, *b = y;

	return (a->runs < b->runs) - (a->runs > b->runs);
}

static void add_searched(struct capacity *c, struct str text)
{
	struct searched new = { .runs = 1 };
	size_t i = 0;

	new.n = read_limits(text, new.slo);
	while (i < c->n_searched &&
	       !is_same(c->searched[i].slo, c->searched[i].n, new.slo, new.n))
		i++;
	if (i < c->n_searched)
		c->searched[i].runs++;
	else if (i < SEARCHES_SHOWN && new.n)
		c->searched[c->n_searched++] = new;
}

/* Which limits the searches of these runs had. */
static int find_searches(struct capacity *c, struct err *e)
{
	const struct str column[] = { facts[FOUND_LIMITS], facts[FOUND], facts[FOUND_AT_ONCE] };
	struct rows rows;

	if (parts_select(c->r, column, 3, &rows, e) < 0)
		return -1;
	for (size_t i = 0; i < rows.n; i++) {
		struct value text = rows.value[i];

		c->n_at_once += parts_number_at(&rows, 2, i) > 0;
		if (text.kind == VALUE_TEXT && parts_number_at(&rows, 1, i) > 0)
			add_searched(c, text.text);
	}
	if (c->n_searched)
		qsort(c->searched, c->n_searched, sizeof(*c->searched), by_runs);
	return 0;
}

/* Marks runs that searched with the request's limits; other searches are not used. */
static void mark_found(struct capacity *c)
{
	struct counting counting = counting_of(facts[FOUND]);

	c->is_found = arena_alloc(c->r->arena, c->rows.n + 1);
	for (size_t k = 0; k < c->n_searched; k++)
		c->searched[k].is_asked = is_same(c->searched[k].slo, c->searched[k].n, c->slo,
						  c->n_slos);
	for (size_t i = 0; i < c->rows.n; i++) {
		struct value text = c->rows.value[(c->first_fact + FOUND_LIMITS) * c->rows.n + i];
		double rate = parts_number_at(&c->rows, c->first_fact + FOUND, i);
		struct slo slo[SLO_MAX];

		c->is_found[i] = text.kind == VALUE_TEXT && rate > 0 &&
				 is_same(slo, read_limits(text.text, slo), c->slo, c->n_slos) &&
				 counts_for(&counting, &c->rows.verdicts, i, rate) == COUNTS;
	}
}

/* The limits of most searches; else a metric whose limit follows: see set_default_limit. */
static void default_limit(struct capacity *c)
{
	size_t n;
	const struct str *have = parts_present(c->r, limited_default, &n);

	if (c->n_searched) {
		c->n_slos = c->searched[0].n;
		memcpy(c->slo, c->searched[0].slo, sizeof(c->slo));
		return;
	}
	c->slo[c->n_slos++] = (struct slo){ n ? have[0] : str_of(limited_default[0]), NAN, true };
}

/* The usual columns, and other arguments of servers in which the runs differ. */
static int usual_configuration(struct capacity *c, struct str **out, size_t *n, struct err *e)
{
	const struct str *usual = parts_present(c->r, configuration_default, n);
	const struct str *last = parts_present(c->r, configuration_last, &c->n_last);
	struct series_key key;

	if (series_key(c->r, &key, e) < 0)
		return -1;
	*out = arena_alloc(c->r->arena, (*n + key.n + c->n_last + 1) * sizeof(**out));
	memcpy(*out, usual, *n * sizeof(**out));
	for (size_t i = 0; i < key.n; i++) {
		enum column_role role = setups_role(key.column[i]);
		size_t k = 0;

		while (k < *n && !str_eq((*out)[k], key.column[i]))
			k++;
		if (k == *n && (role == ROLE_PRECISION || role == ROLE_ARGUMENT))
			(*out)[(*n)++] = key.column[i];
	}
	for (size_t i = 0; i < c->n_last; i++)
		(*out)[(*n)++] = last[i];
	return 0;
}

static void drop_last(struct capacity *c)
{
	size_t n = c->rows.n;
	uint32_t *group = arena_alloc(c->r->arena, (n + 1) * sizeof(*group)), codes;
	uint32_t count[LAST_MAX + 1] = { 0 };

	for (size_t k = 0; k < c->n_keys; k++) {
		const uint32_t *code = setups_codes(c->r->arena, c->rows.value + k * n, n, &codes);
		uint32_t groups = setups_refine(group, code, n);

		if (k + 1 + c->n_last >= c->n_keys)
			count[k + 1 + c->n_last - c->n_keys] = groups;
	}
	while (c->n_last && count[c->n_last] <= (c->n_keys > 1 ? count[c->n_last - 1] : 1)) {
		c->n_keys--;
		c->n_last--;
	}
}

static int read_request(struct capacity *c, struct err *e)
{
	const struct json_value *rate = json_get(c->r->body, "rate");
	const struct json_value *given = json_get(c->r->body, "configuration");
	struct str *key;

	c->rate = json_real(rate, NAN);
	if (!(rate && rate->kind == JSON_NULL) && !(c->rate > 0 && c->rate <= ANALYSE_NUMBER_MAX))
		return parts_refuse(e, "/rate", "expected requests per second above 0");
	if (read_slo(c, e) < 0 || parts_columns(c->r, "configuration", &key, &c->n_keys, e) < 0)
		return -1;
	if ((!given || given->kind == JSON_NULL) &&
	    usual_configuration(c, &key, &c->n_keys, e) < 0)
		return -1;
	if (find_searches(c, e) < 0)
		return -1;
	if (!c->n_slos)
		default_limit(c);
	c->column = arena_alloc(c->r->arena, (c->n_keys + FACTS + SLO_MAX + NEWEST_COLUMNS_MAX) *
						     sizeof(*c->column));
	for (size_t i = 0; i < c->n_keys; i++)
		c->column[c->n_columns++] = key[i];
	c->first_fact = c->n_columns;
	for (size_t i = 0; i < FACTS; i++)
		c->column[c->n_columns++] = facts[i];
	c->first_slo = c->n_columns;
	for (size_t i = 0; i < c->n_slos; i++)
		c->column[c->n_columns++] = c->slo[i].column;
	c->first_version = c->n_columns;
	c->n_columns += newest_columns(c->r, c->column + c->n_columns);
	if (parts_select(c->r, c->column, c->n_columns, &c->rows, e) < 0)
		return -1;
	drop_last(c);
	return 0;
}

static double number_at(const struct capacity *c, size_t column, size_t row)
{
	return parts_number_at(&c->rows, column, row);
}

/* To two digits, so that people can read and change it; up: no less than v. */
static double rounded(double v, bool up)
{
	double power = floor(log10(v)) - 1, unit = pow(10, fabs(power));
	double steps = power < 0 ? v * unit : v / unit;

	steps = up ? ceil(steps - 1e-9) : floor(steps + 1e-9);
	return power < 0 ? steps / unit : steps * unit; /* 66 / 10 is 6.6, 66 * 0.1 is not */
}

/* ---- loads ---- */

/* The offered load: requests per second, or below 0 the concurrency; NAN: unknown. */
struct offered { double load; size_t row; };

static double offered_of(const struct capacity *c, size_t row)
{
	double rate = number_at(c, c->first_fact + OFFERED, row);
	double many = number_at(c, c->first_fact + CONCURRENCY, row);

	if (isfinite(rate) && rate > 0)
		return rate;
	return isfinite(many) && many > 0 ? -many : -INFINITY;
}

static int by_offered(const void *x, const void *y)
{
	const struct offered *a = x, *b = y;
	int order = (a->load > b->load) - (a->load < b->load);

	return order ? order : (a->row > b->row) - (a->row < b->row);
}

static bool keeps(const struct slo *s, double v)
{
	return s->is_most ? v <= s->limit : v >= s->limit;
}

/* More requests failed than may; what completed is unknown in old results with none. */
static bool is_failing(const struct capacity *c, size_t row)
{
	double failed = number_at(c, c->first_fact + FAILED, row);
	double done = number_at(c, c->first_fact + COMPLETED, row);

	if (isnan(failed))
		return done <= 0;
	return failed > FAILED_SHARE_MAX * (failed + (isnan(done) ? 0 : done));
}

static bool is_usable(struct capacity *c, size_t row)
{
	enum counts worst = COUNTS;

	if (is_failing(c, row) && isfinite(offered_of(c, row)))
		return true;
	for (size_t i = 0; i <= c->n_slos; i++) {
		size_t column = i < c->n_slos ? c->first_slo + i : c->first_fact + RATE;
		enum counts counts = counting_see(&c->counting[i], &c->rows.verdicts, row,
						  number_at(c, column, row));

		worst = counts > worst ? counts : worst;
	}
	return worst == COUNTS && number_at(c, c->first_fact + RATE, row) > 0;
}

/* Judged over all requests of a load: a few failures in one of many repeats prove little. */
static bool is_load_failing(const struct capacity *c, const struct offered *run, size_t n)
{
	double failed = 0, done = 0;

	for (size_t i = 0; i < n; i++) {
		double lost = number_at(c, c->first_fact + FAILED, run[i].row);
		double completed = number_at(c, c->first_fact + COMPLETED, run[i].row);

		if (isnan(lost) && completed <= 0)
			return true;
		failed += isnan(lost) ? 0 : lost;
		done += isnan(completed) ? 0 : completed;
	}
	return failed > FAILED_SHARE_MAX * (failed + done);
}

/* A column of some runs, as far as they have numbers there. */
static size_t numbers_of(const struct capacity *c, size_t column, const struct offered *run,
			 size_t n, double *x)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		double v = number_at(c, column, run[i].row);

		if (!isnan(v))
			x[count++] = v;
	}
	return count;
}

static void fill_load(const struct capacity *c, const struct offered *run, size_t n, double *x,
		      struct load *l)
{
	size_t count = numbers_of(c, c->first_fact + RATE, run, n, x);

	*l = (struct load){ .offered = run->load, .n = n, .holds = true,
			    .is_failing = is_load_failing(c, run, n) };
	l->rate = l->bound = parts_median(x, count);
	if (l->is_failing && l->offered > 0)
		l->rate = l->bound = fmax(l->rate, l->offered);
	else if (l->is_failing && isfinite(l->offered))
		l->bound = NAN;
	for (size_t k = 0; k < c->n_slos; k++) {
		struct interval around;

		count = numbers_of(c, c->first_slo + k, run, n, x);
		around = student_interval(x, count, LEVEL);
		l->median[k] = parts_median(x, count);
		l->low[k] = fmin(around.low, l->median[k]);
		l->high[k] = fmax(around.high, l->median[k]);
		l->holds &= keeps(&c->slo[k], l->median[k]);
	}
	l->holds &= !l->is_failing;
}

/* A concurrency that fails comes after the lower ones that hold, whatever rate it reached. */
static void place_failing(struct load *l, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!l[i].is_failing || l[i].offered > 0 || !isfinite(l[i].offered))
			continue;
		l[i].rate = fmax(l[i].rate, 0); /* NAN: none completed */
		for (size_t k = 0; k < n; k++)
			if (l[k].holds && l[k].offered < 0 && l[k].offered > l[i].offered)
				l[i].rate = fmax(l[i].rate, l[k].rate);
	}
}

static int by_rate(const void *x, const void *y)
{
	const struct load *a = x, *b = y;

	/* of two with the same rate the one that failed comes last */
	return a->rate > b->rate ? 1 : a->rate < b->rate ? -1 : (int)b->holds - (int)a->holds;
}

static struct load *loads_of(const struct capacity *c, const struct series *s, size_t *n)
{
	struct offered *run = arena_alloc(c->r->arena, (s->n + 1) * sizeof(*run));
	double *x = arena_alloc(c->r->arena, (s->n + 1) * sizeof(*x));
	struct load *out;
	size_t runs = 0;

	for (size_t i = 0; i < s->n; i++)
		if (!c->is_found[s->member[i]])
			run[runs++] = (struct offered){ offered_of(c, s->member[i]), s->member[i] };
	qsort(run, runs, sizeof(*run), by_offered);
	*n = 0;
	for (size_t i = 0; i < runs; i++)
		*n += !i || run[i].load > run[i - 1].load;
	out = arena_alloc(c->r->arena, (*n + 1) * sizeof(*out));
	*n = 0;
	for (size_t i = 0, to; i < runs; i = to) {
		for (to = i + 1; to < runs && !(run[to].load > run[i].load);)
			to++;
		fill_load(c, run + i, to - i, x, &out[(*n)++]);
	}
	place_failing(out, *n);
	qsort(out, *n, sizeof(*out), by_rate);
	return out;
}

/*
 * Uses the lowest median, not the lowest run: one lucky run of many would set a limit that no
 * configuration keeps. Without any run that has the metric any limit will do.
 */
static void set_default_limit(struct capacity *c, const struct series_list *l)
{
	double least = INFINITY;

	if (!isnan(c->slo[0].limit))
		return;
	for (size_t i = 0; i < l->shown; i++) {
		size_t n;
		const struct load *load = loads_of(c, &l->series[i], &n);

		for (size_t k = 0; k < n; k++)
			if (load[k].median[0] > 0 && load[k].median[0] < least &&
			    !load[k].is_failing)
				least = load[k].median[0];
	}
	c->slo[0].limit = isfinite(least) ? rounded(LIMIT_FACTOR * least, true) : 1000;
}

/* ---- the rate that one server carries ---- */

/* The load where the first limit is reached between two loads, by one of three curves. */
enum curve { CURVE_BEST, CURVE_MEDIAN, CURVE_WORST };

static double metric_of(const struct capacity *c, const struct load *l, size_t k, enum curve curve)
{
	bool is_high = c->slo[k].is_most ? curve == CURVE_WORST : curve == CURVE_BEST;

	return curve == CURVE_MEDIAN ? l->median[k] : is_high ? l->high[k] : l->low[k];
}

static double crossing(const struct capacity *c, const struct load *a, const struct load *b,
		       enum curve curve)
{
	double share = 1;

	for (size_t k = 0; k < c->n_slos; k++) {
		double from = metric_of(c, a, k, curve), to = metric_of(c, b, k, curve);
		double limit = c->slo[k].limit;

		if (!keeps(&c->slo[k], from))
			return a->rate;
		if (!keeps(&c->slo[k], to))
			share = fmin(share, (limit - from) / (to - from));
	}
	return a->rate + share * (b->rate - a->rate);
}

static struct estimate estimate(const struct capacity *c, const struct load *l, size_t n)
{
	struct estimate out = { NAN, NAN, NAN, NULL, n > 1 ? STATE_FOUND : STATE_ONE_LOAD };
	size_t first = 0;

	if (!n)
		return out;
	while (first < n && l[first].holds)
		first++;
	if (first == n) {
		out.value = out.low = l[n - 1].rate;
		out.reason = "the limits held at every load measured, so it may sustain more";
		out.state = n > 1 ? STATE_NEEDS_HIGHER : STATE_ONE_LOAD;
	} else if (!first) {
		out.low = 0;
		out.high = l[0].bound;
		out.state = STATE_NEVER;
		out.reason = l[0].is_failing ? "requests failed at the lowest load measured" :
					       "the limits are exceeded at the lowest load "
					       "measured";
		for (size_t i = 1; i < n; i++)
			if (l[i].holds)
				out.reason = "the limits are exceeded at the lowest load measured, "
					     "but not at a higher one: look at the runs";
	} else {
		const struct load *a = &l[first - 1], *b = &l[first];
		bool is_repeated = a->n > 1 && b->n > 1 && !b->is_failing;

		/* where requests fail the curve beyond is unknown */
		out.value = b->is_failing ? a->rate : crossing(c, a, b, CURVE_MEDIAN);
		out.low = is_repeated ? crossing(c, a, b, CURVE_WORST) : a->rate;
		out.high = is_repeated ? crossing(c, a, b, CURVE_BEST) : b->bound;
		if (isnan(out.high))
			out.reason = "requests failed at the next concurrency, so the rate is "
				     "unknown";
		for (size_t i = first + 1; i < n && !out.reason; i++)
			if (l[i].holds)
				out.reason = "the limits held again at a higher load: look at the runs";
	}
	return out;
}

/* Replaces the estimate from loads by the results of searches. */
static void take_found(const struct capacity *c, const struct series *s, struct answer_row *out)
{
	double *x = arena_alloc(c->r->arena, (s->n + 1) * sizeof(*x));
	struct estimate found = { NAN, INFINITY, -INFINITY, NULL, STATE_FOUND };

	for (size_t i = 0; i < s->n; i++) {
		size_t row = s->member[i];

		if (!c->is_found[row])
			continue;
		x[out->n_searches++] = number_at(c, c->first_fact + FOUND, row);
		found.low = fmin(found.low, number_at(c, c->first_fact + FOUND_LOW, row));
		found.high = fmax(found.high, number_at(c, c->first_fact + FOUND_HIGH, row));
	}
	if (!out->n_searches)
		return;
	found.value = parts_median(x, out->n_searches);
	out->rate = found;
}

/* Results of a single GPU say nothing of it. Next to others one that says nothing is not known. */
static void suppose_gpus(struct answer_row *a, size_t n, struct notes *notes)
{
	bool is_any = false;

	for (size_t i = 0; i < n; i++)
		is_any |= !isnan(a[i].gpus_each);
	if (is_any || !n)
		return;
	for (size_t i = 0; i < n; i++)
		a[i].gpus_each = 1;
	parts_note(notes, "no run says how many GPUs its server has, so one each is assumed; "
		   "--metadata num_gpus=N of a benchmark says it");
}

/* Dollars per hour of one of its GPUs; NAN: no price. */
static double price_of(const struct capacity *c, size_t row)
{
	struct value gpu = c->rows.value[(c->first_fact + GPU) * c->rows.n + row];
	const struct json_value *prices = c->r->prices;

	for (size_t i = 0; gpu.kind == VALUE_TEXT && prices && i < prices->count; i++)
		if (str_eq(prices->key[i], gpu.text))
			return json_real(&prices->item[i], NAN);
	return NAN;
}

/* The limit that most configurations pass first. */
static size_t binding(const struct capacity *c, const struct answer_row *a, size_t n)
{
	size_t passed[SLO_MAX] = { 0 }, most = 0;

	for (size_t i = 0; i < n; i++) {
		size_t at = 0;

		while (at < a[i].n_loads && a[i].load[at].holds)
			at++;
		for (size_t k = 0; at < a[i].n_loads && k < c->n_slos; k++)
			passed[k] += !isnan(a[i].load[at].median[k]) &&
				     !keeps(&c->slo[k], a[i].load[at].median[k]);
	}
	for (size_t k = 1; k < c->n_slos; k++)
		if (passed[k] > passed[most])
			most = k;
	return most;
}

/* ---- out ---- */

/* Of two that need equally many the one with more headroom comes first. */
static int by_gpus(const void *x, const void *y)
{
	const struct answer_row *a = x, *b = y;

	if (isnan(a->gpus) || isnan(b->gpus))
		return isnan(a->gpus) != isnan(b->gpus) ? (isnan(a->gpus) ? 1 : -1) :
		       (a->series > b->series) - (a->series < b->series);
	if (a->gpus > b->gpus || a->gpus < b->gpus)
		return a->gpus > b->gpus ? 1 : -1;
	if (fabs(a->rate.value / a->gpus_each - b->rate.value / b->gpus_each) > 0)
		return a->rate.value / a->gpus_each < b->rate.value / b->gpus_each ? 1 : -1;
	return (a->series > b->series) - (a->series < b->series);
}

static void put_range(struct json_writer *w, const char *key, double value, double low, double high)
{
	if (key)
		json_member_object(w, key);
	else
		json_begin_object(w);
	parts_put_number(w, "value", value);
	parts_put_number(w, "low", low);
	parts_put_number(w, "high", high);
	json_end_object(w);
}

static double needed(const struct capacity *c, double rate, double each)
{
	return rate > 0 ? ceil(c->rate / rate - 1e-9) * each : NAN;
}

static void put_loads(const struct capacity *c, struct json_writer *w, const struct answer_row *a)
{
	json_member_array(w, "loads");
	for (size_t i = 0; i < a->n_loads; i++) {
		const struct load *l = &a->load[i];

		json_begin_object(w);
		parts_put_number(w, "rate", l->rate);
		json_member_bool(w, "holds", l->holds);
		json_member_bool(w, "is_failing", l->is_failing);
		parts_put_count(w, "runs", l->n);
		json_member_array(w, "values");
		for (size_t k = 0; k < c->n_slos; k++)
			put_range(w, NULL, l->median[k], l->low[k], l->high[k]);
		json_end_array(w);
		json_end_object(w);
	}
	json_end_array(w);
}

static void put_slo(const struct slo *slo, size_t n, struct json_writer *w)
{
	json_member_array(w, "slo");
	for (size_t k = 0; k < n; k++) {
		json_begin_object(w);
		json_member_str(w, "column", slo[k].column);
		parts_put_number(w, slo[k].is_most ? "max" : "min", slo[k].limit);
		json_end_object(w);
	}
	json_end_array(w);
}

static void put_searches(const struct capacity *c, struct json_writer *w)
{
	json_member_array(w, "searches");
	for (size_t i = 0; i < c->n_searched; i++) {
		json_begin_object(w);
		put_slo(c->searched[i].slo, c->searched[i].n, w);
		parts_put_count(w, "runs", c->searched[i].runs);
		json_member_bool(w, "is_asked", c->searched[i].is_asked);
		json_end_object(w);
	}
	json_end_array(w);
}

static void put_row(const struct capacity *c, struct json_writer *w, const struct series_list *l,
		    const struct answer_row *a)
{
	json_begin_object(w);
	parts_put_series(w, l, a->series);
	json_member_text(w, "version", newest_text(&c->newest, l->series[a->series].row));
	parts_put_number(w, "gpus_per_server", a->gpus_each);
	put_range(w, "rate_per_server", a->rate.value, a->rate.low, a->rate.high);
	parts_put_number(w, "servers", a->servers);
	put_range(w, "gpus", a->gpus, needed(c, a->rate.high, a->gpus_each),
		  needed(c, a->rate.low, a->gpus_each));
	parts_put_number(w, "headroom", a->servers * a->rate.value / c->rate - 1);
	parts_put_number(w, "usd_per_hour", a->usd_per_hour);
	parts_put_count(w, "runs", a->runs);
	parts_put_count(w, "searches", a->n_searches);
	json_member_text(w, "state", states[a->rate.state]);
	json_member_text(w, "reason", a->rate.reason);
	put_loads(c, w, a);
	json_end_object(w);
}

/* Chooses the rows that help to answer. Returns how many of them are not searches. */
static size_t choose_rows(struct capacity *c, bool *keep)
{
	size_t left_out = 0;

	for (size_t i = 0; i <= c->n_slos; i++)
		c->counting[i] = counting_of(i < c->n_slos ? c->slo[i].column : facts[RATE]);
	mark_found(c);
	for (size_t i = 0; i < c->rows.n; i++) {
		struct value limits = c->rows.value[(c->first_fact + FOUND_LIMITS) * c->rows.n + i];
		bool is_search = limits.kind == VALUE_TEXT ||
				 number_at(c, c->first_fact + FOUND, i) > 0 ||
				 number_at(c, c->first_fact + FOUND_AT_ONCE, i) > 0;

		keep[i] = is_search ? c->is_found[i] : is_usable(c, i);
		left_out += !keep[i] && !is_search;
	}
	return left_out;
}

/* A version is used if it was measured at two loads or searched; failed runs make none newer. */
static void keep_newest(struct capacity *c, struct series_list *l)
{
	size_t n = c->rows.n;
	struct value *load = arena_alloc(c->r->arena, (n + 1) * sizeof(*load));
	bool *counts = arena_alloc(c->r->arena, n + 1);
	uint32_t *place, n_places;

	for (size_t i = 0; i < n; i++) {
		load[i] = (struct value){ .kind = VALUE_NUMBER, .number = offered_of(c, i) };
		counts[i] = !is_failing(c, i);
	}
	place = setups_codes(c->r->arena, load, n, &n_places);
	for (size_t i = 0; i < n; i++)
		if (c->is_found[i])
			place[i] = NEWEST_EVERYWHERE;
	newest_read(c->r->arena, &c->rows, c->first_version, c->n_columns - c->first_version,
		    &c->newest);
	c->newest.place = place;
	c->newest.counts = counts;
	newest_narrow(&c->newest, l, "configurations", "load", &c->notes);
}

static void note_searches(struct capacity *c)
{
	size_t others = 0;

	for (size_t i = 0; i < c->n_searched; i++)
		others += c->searched[i].is_asked ? 0 : c->searched[i].runs;
	if (others)
		parts_note(&c->notes, "%s run%s searched for the largest rate within other limits: "
			   "choose those limits to see what %s found",
			   arena_count(c->r->arena, others), others == 1 ? "" : "s",
			   others == 1 ? "it" : "they");
	if (c->n_at_once)
		parts_note(&c->notes, "%s run%s searched for the largest number of requests at once, "
			   "which is not a request rate; Runs has it as capacity_concurrency",
			   arena_count(c->r->arena, c->n_at_once), c->n_at_once == 1 ? "" : "s");
}

int analyse_capacity(const struct analyse_request *r, struct json_writer *w, struct err *e)
{
	struct capacity c = { .r = r, .notes.arena = r->arena };
	struct series_list l;
	struct answer_row *a;
	struct str mixed;
	double carried = 0;
	size_t left_out;
	bool *keep;

	if (read_request(&c, e) < 0)
		return -1;
	keep = arena_alloc(r->arena, c.rows.n + 1);
	left_out = choose_rows(&c, keep);
	parts_series(r->arena, &c.rows, c.column, c.n_keys, keep, &l);
	keep_newest(&c, &l);
	set_default_limit(&c, &l);
	a = arena_alloc(r->arena, (l.shown + 1) * sizeof(*a));
	for (size_t i = 0; i < l.shown; i++) {
		size_t n;
		struct load *load = loads_of(&c, &l.series[i], &n);

		a[i] = (struct answer_row){ .series = i, .rate = estimate(&c, load, n),
					    .gpus_each = number_at(&c, c.first_fact + GPUS,
								   l.series[i].row),
					    .runs = l.series[i].n };
		a[i].load = load;
		a[i].n_loads = n;
		take_found(&c, &l.series[i], &a[i]);
		carried = fmax(carried, a[i].rate.value);
	}
	suppose_gpus(a, l.shown, &c.notes);
	if (isnan(c.rate) && carried > 0)
		c.rate = rounded(RATE_SHARE * carried, false);
	for (size_t i = 0; i < l.shown; i++) {
		a[i].servers = needed(&c, a[i].rate.value, 1);
		a[i].gpus = needed(&c, a[i].rate.value, a[i].gpus_each);
		a[i].usd_per_hour = a[i].gpus * price_of(&c, l.series[i].row);
	}
	if (l.shown)
		qsort(a, l.shown, sizeof(*a), by_gpus);
	parts_put_number(w, "rate", c.rate);
	put_slo(c.slo, c.n_slos, w);
	put_searches(&c, w);
	parts_put_count(w, "binding", binding(&c, a, l.shown));
	json_member_array(w, "configurations");
	for (size_t i = 0; i < l.shown; i++)
		put_row(&c, w, &l, &a[i]);
	json_end_array(w);
	parts_put_count(w, "left_out", left_out);
	parts_put_count(w, "configurations_left_out", l.n - l.shown);
	counting_put(w, c.counting, c.n_slos + 1);
	counting_notes(c.counting, c.n_slos + 1, &c.notes);
	note_searches(&c);
	mixed = series_mixed(r, &l, c.newest.place);
	if (mixed.n)
		parts_note(&c.notes, "loads are medians over runs that differ in %.*s: add it to the "
			   "configuration columns, or filter by one value", (int)mixed.n, mixed.p);
	parts_put_notes(w, &c.notes);
	return 0;
}
