/* SPDX-License-Identifier: Apache-2.0 */
/* compare.c - see compare.h: metrics, values, tests, verdicts. */
#include "report/compare.h"

#include <math.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "json/write.h"
#include "report/frame.h"
#include "stats/judge.h"
#include "stats/stats.h"

bool compare_number(const struct json_value *record, const char *key, double *out)
{
	return frame_number(frame_value(record, str_of(key)), out) && isfinite(*out);
}

const struct compare_cell *compare_cell(const struct comparison *c, size_t point, size_t metric,
					size_t side)
{
	return &c->point[point].cell[metric * c->n_sides + side];
}

static struct compare_cell *cell_of(const struct comparison *c, size_t point, size_t metric,
				    size_t side)
{
	return &c->point[point].cell[metric * c->n_sides + side];
}

static const struct { const char *key, *name; } verdicts[] = {
	[COMPARE_MISSING] = { "missing", "not measured on both sides" },
	[COMPARE_NOT_ENOUGH] = { "not_enough_data", "not enough data" },
	[COMPARE_NO_EVIDENCE] = { "no_evidence", "no evidence of change" },
	[COMPARE_REGRESSION] = { "regression", "regression" },
	[COMPARE_IMPROVEMENT] = { "improvement", "improvement" },
	[COMPARE_CHANGED] = { "changed", "changed" },
	[COMPARE_VOID] = { "void", "better, but see notes" },
};

const char *compare_verdict_name(enum compare_verdict v)
{
	return verdicts[v].name;
}

const char *compare_verdict_key(enum compare_verdict v)
{
	return verdicts[v].key;
}

/* ---- metrics ---- */

static const char *const usual[] = {
	"request_throughput", "request_goodput", "output_throughput", "total_token_throughput",
	"rtfx", "input_sequence_throughput", "median_ttft_ms", "p99_ttft_ms", "median_tpot_ms",
	"p99_tpot_ms", "median_itl_ms", "p99_itl_ms", "median_e2el_ms", "p99_e2el_ms",
	"requests_per_second", "tokens_per_second", "avg_latency", "percentiles.50",
	"percentiles.99", "avg_cold_startup_time", "avg_warm_startup_time",
};

static bool has_metric(const struct compare_side *s, const char *key)
{
	double v;

	for (size_t i = 0; i < s->n; i++)
		if (compare_number(s->run[i].record, key, &v))
			return true;
	return false;
}

/* A number that is 0 everywhere says nothing: the audio rate of a text model. */
static bool is_ever_more(const struct comparison *c, const char *key)
{
	double v;

	for (size_t s = 0; s < c->n_sides; s++)
		for (size_t i = 0; i < c->side[s].n; i++)
			if (compare_number(c->side[s].run[i].record, key, &v) && fabs(v) > 0)
				return true;
	return false;
}

static void add_metric(struct comparison *c, const char *key, size_t *cap)
{
	const struct schema_field *f = schema_field_find(key);

	for (size_t i = 0; i < c->n_metrics; i++)
		if (strcmp(c->metric[i].key, key) == 0)
			return;
	if (c->n_metrics == *cap) {
		struct compare_metric *more;

		*cap = *cap ? 2 * *cap : 32;
		more = arena_alloc(c->a, *cap * sizeof(*more));
		if (c->n_metrics)
			memcpy(more, c->metric, c->n_metrics * sizeof(*more));
		c->metric = more;
	}
	c->metric[c->n_metrics++] = (struct compare_metric){
		.key = key, .unit = f ? f->unit : "", .better = compare_better(key),
		.min_effect = c->o->min_effect < 0 ? judge_effect_min(key) : c->o->min_effect };
}

static int named_metric(struct comparison *c, const char *option, const char *key, size_t *cap,
			struct err *e)
{
	for (size_t s = 0; s < c->n_sides; s++)
		if (has_metric(&c->side[s], key)) {
			add_metric(c, key, cap);
			return 0;
		}
	return err_set(e, ERR_USAGE, "%s: no run has a number called '%s'", option, key);
}

static int named_metrics(struct comparison *c, size_t *cap, struct err *e)
{
	struct str rest = str_of(c->o->metrics);

	while (rest.n) {
		const char *key = arena_text(c->a, str_trim(str_cut(&rest, ',')));

		if (*key && named_metric(c, "--metrics", key, cap, e) < 0)
			return -1;
	}
	for (size_t i = 0; i < c->o->n_also; i++)
		if (named_metric(c, "--fail-if", c->o->also[i], cap, e) < 0)
			return -1;
	return 0;
}

static void every_metric(struct comparison *c, size_t *cap)
{
	for (size_t s = 0; s < c->n_sides; s++)
		for (size_t i = 0; i < c->side[s].n; i++) {
			const struct json_value *r = c->side[s].run[i].record;

			for (size_t k = 0; k < r->count; k++) {
				const char *key = arena_text(c->a, r->key[k]);
				double v;

				if (compare_is_metric(key) && compare_better(key) != SCHEMA_NONE &&
				    compare_number(r, key, &v))
					add_metric(c, key, cap);
			}
		}
}

static int choose_metrics(struct comparison *c, struct err *e)
{
	size_t cap = 0;

	if (c->o->is_all)
		every_metric(c, &cap);
	for (size_t i = 0; !c->o->metrics && i < sizeof(usual) / sizeof(*usual); i++) {
		bool is_everywhere = true;

		for (size_t s = 0; s < c->n_sides; s++)
			is_everywhere &= has_metric(&c->side[s], usual[i]);
		if (is_everywhere && is_ever_more(c, usual[i]))
			add_metric(c, usual[i], &cap);
	}
	if (named_metrics(c, &cap, e) < 0)
		return -1;
	if (!c->n_metrics)
		return err_set(e, ERR_RUN, "the sides have no metric in common");
	return 0;
}

/* ---- values ---- */

static double median_of(const double *x, size_t n)
{
	double *sorted = stats_sorted(x, n), median = stats_median(sorted, n);

	free(sorted);
	return n ? median : NAN;
}

static const struct compare_cell nothing = {
	.median = NAN, .delta = NAN, .p = NAN, .p_ranks = NAN, .q = NAN, .superiority = NAN,
	.cv = NAN, .interval = { NAN, NAN },
};

/* Runs of one session become their mean: first comes first. */
static void tested_values(struct comparison *c, struct compare_cell *cell, const unsigned *session)
{
	unsigned *seen = arena_alloc(c->a, cell->n_runs * sizeof(*seen));

	cell->value = arena_alloc(c->a, cell->n_runs * sizeof(*cell->value));
	for (size_t i = 0; i < cell->n_runs; i++) {
		double sum = 0, count = 0;
		bool is_old = false;

		for (size_t k = 0; session[i] && !c->o->is_each_run && k < cell->n; k++)
			is_old |= seen[k] == session[i];
		if (is_old)
			continue;
		for (size_t k = i; k < cell->n_runs; k++)
			if (k == i ||
			    (session[i] && !c->o->is_each_run && session[k] == session[i])) {
				sum += cell->run_value[k];
				count++;
			}
		seen[cell->n] = session[i];
		cell->value[cell->n++] = sum / count;
	}
}

static void fill_cell(struct comparison *c, size_t point, size_t metric, size_t side)
{
	struct compare_cell *cell = cell_of(c, point, metric, side);
	const struct compare_side *s = &c->side[side];
	size_t n = s->first[point + 1] - s->first[point];
	unsigned *session = arena_alloc(c->a, (n + 1) * sizeof(*session));

	*cell = nothing;
	cell->run_value = arena_alloc(c->a, (n + 1) * sizeof(*cell->run_value));
	for (size_t i = s->first[point]; i < s->first[point + 1]; i++)
		if (compare_number(s->run[i].record, c->metric[metric].key,
				   &cell->run_value[cell->n_runs]))
			session[cell->n_runs++] = s->run[i].session;
	if (!cell->n_runs)
		return;
	cell->median = median_of(cell->run_value, cell->n_runs);
	tested_values(c, cell, session);
}

/* ---- tests ---- */

static void test(const struct compare_opts *o, const struct compare_metric *metric,
		 const struct compare_cell *base, struct compare_cell *cell)
{
	struct contrast d = contrast_test(base->value, base->n, base->median, cell->value, cell->n,
					  cell->median, o->level);

	cell->delta = d.delta;
	cell->interval = d.interval;
	cell->p = d.p;
	cell->p_ranks = d.p_ranks;
	cell->superiority = d.superiority;
	cell->cv = d.cv;
	if (isfinite(cell->cv))
		cell->repeats_needed =
			compare_repeats_needed(cell->cv, metric->min_effect, o->alpha, JUDGE_POWER);
}

static void adjust(struct comparison *c)
{
	size_t all = c->n_points * c->n_metrics * c->n_sides, n = 0;
	double *p = mem_array(all + 1, sizeof(*p));
	struct compare_cell **cell = mem_array(all + 1, sizeof(struct compare_cell *));

	for (size_t i = 0; i < c->n_points; i++)
		for (size_t m = 0; m < c->n_metrics; m++)
			for (size_t s = 1; s < c->n_sides; s++) {
				struct compare_cell *one = cell_of(c, i, m, s);

				if (!judge_is_enough(cell_of(c, i, m, 0)->n, one->n))
					continue;
				p[n] = one->p;
				cell[n++] = one;
			}
	compare_adjust(p, n);
	for (size_t i = 0; i < n; i++)
		cell[i]->q = p[i];
	free(p);
	free(cell);
}

static enum compare_verdict judge(const struct compare_opts *o, const struct compare_metric *metric,
				  const struct compare_cell *base, const struct compare_cell *cell,
				  bool is_guarded)
{
	static const enum compare_verdict verdict[] = {
		[JUDGED_MISSING] = COMPARE_MISSING, [JUDGED_NOT_ENOUGH] = COMPARE_NOT_ENOUGH,
		[JUDGED_NO_EVIDENCE] = COMPARE_NO_EVIDENCE, [JUDGED_WORSE] = COMPARE_REGRESSION,
		[JUDGED_BETTER] = COMPARE_IMPROVEMENT, [JUDGED_CHANGED] = COMPARE_CHANGED,
	};
	static const int better[] = { [SCHEMA_NONE] = 0, [SCHEMA_HIGHER] = 1, [SCHEMA_LOWER] = -1 };
	const struct contrast d = { .delta = cell->delta };
	enum judged j = judge_change(&d, cell->q, base->median, cell->median, base->n, cell->n,
				     better[metric->better], metric->min_effect, o->alpha);

	return j == JUDGED_BETTER && is_guarded ? COMPARE_VOID : verdict[j];
}

void compare_values(const struct compare_opts *o, const struct compare_metric *metric, double *a,
		    size_t n, double *b, size_t m, struct compare_cell *out)
{
	struct compare_cell base = nothing;

	*out = nothing;
	base.n = base.n_runs = n;
	base.value = base.run_value = a;
	base.median = median_of(a, n);
	out->n = out->n_runs = m;
	out->value = out->run_value = b;
	out->median = median_of(b, m);
	test(o, metric, &base, out);
	if (judge_is_enough(n, m))
		out->q = out->p;
	out->verdict = judge(o, metric, &base, out, false);
}

/* ---- everything ---- */

static void write_runs(const struct compare_side *s, struct buf *out)
{
	struct json_writer w = json_writer(out);

	json_begin_array(&w);
	for (size_t i = 0; i < s->n; i++)
		json_put_value(&w, s->run[i].record);
	json_end_array(&w);
}

/* Copies of a file are the same runs too. */
static void find_same(struct comparison *c)
{
	struct buf base = { 0 }, one = { 0 };

	write_runs(&c->side[0], &base);
	for (size_t s = 1; s < c->n_sides; s++) {
		buf_reset(&one);
		if (c->side[s].n != c->side[0].n)
			continue;
		write_runs(&c->side[s], &one);
		c->side[s].is_baseline_again = !base.is_over && !one.is_over &&
					       str_eq(buf_str(&base), buf_str(&one));
	}
	buf_release(&base);
	buf_release(&one);
}

static int check_models(const struct comparison *c, struct err *e)
{
	struct str first = { 0 };
	const char *path = NULL;

	for (size_t s = 0; s < c->n_sides && !c->o->is_any_model; s++)
		for (size_t i = 0; i < c->side[s].n; i++) {
			const struct compare_run *run = &c->side[s].run[i];
			struct str model = json_text(json_get(run->record, "model_id"), STR(""));

			if (model.n && first.n && !str_eq(model, first))
				return err_set(e, ERR_RUN, "%s is of model '%.*s', %s of '%.*s'; "
					       "--across-models compares them all the same",
					       path, (int)first.n, first.p, run->path,
					       (int)model.n, model.p);
			if (model.n && !first.n) {
				first = model;
				path = run->path;
			}
		}
	return 0;
}

static void fill_points(struct comparison *c)
{
	for (size_t p = 0; p < c->n_points; p++) {
		struct compare_point *point = &c->point[p];

		point->cell = arena_alloc(c->a, c->n_metrics * c->n_sides * sizeof(*point->cell));
		point->guard = arena_alloc(c->a, c->n_sides * sizeof(*point->guard));
		point->failures = arena_alloc(c->a, c->n_sides * sizeof(*point->failures));
		for (size_t s = 1; s < c->n_sides; s++)
			compare_guard(c, p, s);
		for (size_t m = 0; m < c->n_metrics; m++)
			for (size_t s = 0; s < c->n_sides; s++) {
				struct compare_cell *cell = cell_of(c, p, m, s);

				fill_cell(c, p, m, s);
				if (s)
					test(c->o, &c->metric[m], cell_of(c, p, m, 0), cell);
			}
	}
}

int compare_build(struct comparison *c, const struct compare_opts *o, const char *const *path,
		  size_t n, struct arena *a, struct err *e)
{
	*c = (struct comparison){ .o = o, .a = a };
	if (n > COMPARE_SIDES_MAX)
		return err_set(e, ERR_LIMIT, "%zu sides are more than the limit of %d", n,
			       COMPARE_SIDES_MAX);
	c->side = arena_alloc(a, n * sizeof(*c->side));
	for (size_t i = 0; i < n; i++)
		if (compare_read(c, path[i], e) < 0)
			return -1;
	if (o->by && compare_split(c, e) < 0)
		return -1;
	if (check_models(c, e) < 0 || choose_metrics(c, e) < 0)
		return -1;
	find_same(c);
	compare_pair(c);
	fill_points(c);
	adjust(c);
	for (size_t p = 0; p < c->n_points; p++)
		for (size_t m = 0; m < c->n_metrics; m++)
			for (size_t s = 1; s < c->n_sides; s++) {
				struct compare_cell *cell = cell_of(c, p, m, s);
				const struct compare_point *point = &c->point[p];

				cell->verdict = judge(c->o, &c->metric[m], cell_of(c, p, m, 0),
						      cell, point->failures[s] || point->guard[s]);
			}
	compare_notes(c);
	return 0;
}

void compare_release(struct comparison *c)
{
	buf_release(&c->notes);
}
