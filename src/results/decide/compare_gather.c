/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare_gather.c - see compare_internal.h: turns the runs of two sides into configurations and
 * sessions, finds objections to comparing them, and makes estimates.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/stats/significance.h"
#include "results/decide/compare_internal.h"

#define NO_DIFFERENCE 1e-12 /* of logarithms: rounding of equal values */

/* ---- runs become configurations and sessions ---- */

static int by_place(const void *x, const void *y)
{
	const struct entry *a = x, *b = y;

	if (a->config != b->config)
		return a->config < b->config ? -1 : 1;
	if (a->side != b->side)
		return a->side < b->side ? -1 : 1;
	if (a->session != b->session)
		return a->session < b->session ? -1 : 1;
	return (a->order > b->order) - (a->order < b->order);
}

static bool is_in(const struct map *ids, const char *id)
{
	return id && map_get(ids, str_of(id), NULL);
}

size_t matched_place(struct map *m, const char *key, size_t *n)
{
	uint64_t at;

	if (map_get(m, str_of(key), &at))
		return (size_t)at;
	map_put(m, str_of(key), *n);
	return (*n)++;
}

/* The runs of both sides, without those on both. */
static void take_runs(struct pairing *p)
{
	const struct matched_spec *spec = p->spec;
	struct map ids[2] = { { 0 }, { 0 } };

	p->entry = arena_alloc(p->a, (spec->n_runs + 1) * sizeof(*p->entry));
	for (size_t i = 0; i < spec->n_runs; i++) {
		const struct matched_run *run = &spec->run[i];

		assert(run->side < spec->n_sides && run->config && run->value);
		if (run->id && (!run->side || run->side == p->out->side))
			map_put(&ids[run->side != 0], str_of(run->id), i);
	}
	for (size_t i = 0; i < spec->n_runs; i++) {
		const struct matched_run *run = &spec->run[i];
		unsigned side = run->side != 0;

		if (side && run->side != p->out->side)
			continue;
		if (is_in(&ids[!side], run->id)) {
			p->out->shared += side; /* counted once */
			continue;
		}
		p->out->runs[side]++;
		p->out->sessions_unknown[side] += !run->session;
		p->entry[p->n++] = (struct entry){ .run = run, .side = side, .order = i };
	}
	map_release(&ids[0]);
	map_release(&ids[1]);
}

/* Numbers the configurations; those on only one side go to out->alone. */
static void match(struct pairing *p)
{
	struct matched_pair *out = p->out;
	struct map known = { 0 };
	size_t n = 0, kept = 0, *runs[2], *place;
	const char **name = arena_alloc(p->a, (p->n + 1) * sizeof(*name));

	for (unsigned k = 0; k < 2; k++)
		runs[k] = mem_array(p->n + 1, sizeof(**runs));
	place = mem_array(p->n + 1, sizeof(*place));
	for (size_t i = 0; i < p->n; i++) {
		struct entry *e = &p->entry[i];

		e->config = matched_place(&known, e->run->config, &n);
		name[e->config] = e->run->config;
		runs[e->side][e->config]++;
	}
	map_release(&known);
	for (unsigned k = 0; k < 2; k++)
		out->alone[k] = arena_alloc(p->a, (n + 1) * sizeof(*out->alone[k]));
	out->config = arena_alloc(p->a, (n + 1) * sizeof(*out->config));
	for (size_t c = 0; c < n; c++) {
		unsigned only = runs[0][c] ? 0 : 1;

		place[c] = out->n_configs;
		if (runs[0][c] && runs[1][c])
			out->config[out->n_configs++] = name[c];
		else
			out->alone[only][out->n_alone[only]++] =
				(struct matched_alone){ name[c], runs[only][c] };
	}
	for (size_t i = 0; i < p->n; i++) {
		struct entry e = p->entry[i];

		if (!runs[0][e.config] || !runs[1][e.config])
			continue;
		e.config = place[e.config];
		p->entry[kept++] = e;
	}
	p->n = kept;
	free(runs[0]);
	free(runs[1]);
	free(place);
}

/* One that is not known is its configuration's and side's own. */
static void number_sessions(struct pairing *p)
{
	struct map known[2] = { { 0 }, { 0 } };
	size_t *unknown = mem_array(2 * p->out->n_configs + 1, sizeof(*unknown));

	for (size_t i = 0; i < p->n; i++) {
		struct entry *e = &p->entry[i];
		size_t *own = &unknown[2 * e->config + e->side];

		if (e->run->session) {
			e->session = matched_place(&known[e->side], e->run->session, &p->sessions);
			continue;
		}
		if (!*own)
			*own = ++p->sessions;
		e->session = *own - 1;
	}
	map_release(&known[0]);
	map_release(&known[1]);
	free(unknown);
	if (p->n)
		qsort(p->entry, p->n, sizeof(*p->entry), by_place);
}

void matched_gather(struct pairing *p)
{
	take_runs(p);
	match(p);
}

/* ---- guards ---- */

struct sums { double failed, tried, output, output_of, input, input_of, good, good_of; };

static bool is_all_invalid(const struct pairing *p, const struct matched_run *run)
{
	if (!run->state || p->spec->is_invalid_counted)
		return false;
	for (size_t m = 0; m < p->spec->n_metrics; m++)
		if (run->state[m] != MATCHED_INVALID)
			return false;
	return true;
}

static void add_up(double *part, double *whole, double x, double y)
{
	if (isfinite(x) && isfinite(y)) {
		*part += x;
		*whole += y;
	}
}

static void add_work(struct sums *s, const struct matched_work *w)
{
	add_up(&s->failed, &s->tried, w->failed, w->failed + w->completed);
	add_up(&s->output, &s->output_of, w->output_tokens, w->completed);
	add_up(&s->input, &s->input_of, w->input_tokens, w->completed);
	add_up(&s->good, &s->good_of, w->goodput, w->throughput);
}

/* The figures of a side that guards compare; NAN: not known. */
static void figures_of(const struct sums *s, double figure[PAIR_GUARDS])
{
	figure[0] = s->tried > 0 ? s->failed / s->tried : NAN;
	figure[1] = s->output_of > 0 ? s->output / s->output_of : NAN;
	figure[2] = s->input_of > 0 ? s->input / s->input_of : NAN;
}

/* See struct doubt. */
static double guard_distance(unsigned guard, double a, double b)
{
	if (guard == 0)
		return (b - a) / MATCHED_FAILED_SHARE;
	return a <= 0 && b <= 0 ? 0 : log(b / a) / log1p(MATCHED_WORK_CHANGE);
}

/* "median_ttft_ms" of steady_state.median_ttft_ms; what follows "percentiles." stays whole. */
static const char *figure_of(const char *metric)
{
	const char *dot = strchr(metric, '.');

	return dot && dot[1] && !strchr("0123456789", dot[1]) ? figure_of(dot + 1) : metric;
}

/* The percentile a name is about: p99.9_itl_ms, percentiles.99; 0: none. */
static double percentile_of(const char *metric)
{
	static const char nested[] = "percentiles.";
	const char *figure = figure_of(metric);
	const char *digits = strncmp(figure, nested, sizeof(nested) - 1) == 0 ?
				     figure + sizeof(nested) - 1 :
			     *figure == 'p' ? figure + 1 : "";
	double p = 0;

	return str_to_f64((struct str){ digits, strspn(digits, "0123456789.") }, &p) ? p : 0;
}

static double failed_max(const char *metric)
{
	static const char *const unbounded[] = { "mean", "std", "max" };
	double beyond = 1 - percentile_of(metric) / 100;

	for (size_t i = 0; i < sizeof(unbounded) / sizeof(*unbounded); i++)
		if (strncmp(figure_of(metric), unbounded[i], strlen(unbounded[i])) == 0)
			return MATCHED_FAILED_SHARE;
	return fmax(MATCHED_FAILED_SHARE,
		    fmin(MATCHED_FAILED_SHARE_MAX, beyond * MATCHED_FAILED_TAIL_SHARE));
}

struct matched_metric matched_metric_of(const char *name, const char *unit, int better)
{
	double d = percentile_of(name) >= 99 ? MATCHED_EFFECT_MIN_TAIL : MATCHED_EFFECT_MIN;
	unsigned guards = MATCHED_GUARD_ALL;

	/* A guard cannot void the quantity it checks. */
	if (strcmp(name, "request_goodput") == 0)
		guards &= ~(unsigned)MATCHED_GUARD_GOOD;
	if (strcmp(name, "failed") == 0)
		guards &= ~(unsigned)MATCHED_GUARD_FAILED;
	return (struct matched_metric){ .name = name, .unit = unit, .better = better,
					.effect_min = d, .guards = guards,
					.failed_max = failed_max(name) };
}

double matched_guard_limit(const struct matched_metric *metric, unsigned guard)
{
	if (!(metric->guards & 1u << guard))
		return INFINITY;
	return guard == 0 ? metric->failed_max / MATCHED_FAILED_SHARE : 1;
}

static const char *guard_text(struct arena *a, unsigned guard, const double *x, const double *y)
{
	static const char *const what[] = { "output", "input" };

	if (guard == 0)
		return arena_printf(a, "failed requests: %.2f %% against %.2f %%", x[0] * 100,
				    y[0] * 100);
	return arena_printf(a, "different work: %.1f against %.1f %s tokens per request", x[guard],
			    y[guard], what[guard - 1]);
}

/* One configuration: which guards it gives reason to doubt by. */
static void guard_config(struct pairing *p, size_t config, const struct sums s[2],
			 size_t known[PAIR_GUARDS], double worst[PAIR_GUARDS])
{
	double x[PAIR_GUARDS], y[PAIR_GUARDS];

	figures_of(&s[0], x);
	figures_of(&s[1], y);
	for (unsigned g = 0; g < PAIR_GUARDS; g++) {
		struct doubt *d = &p->doubt[config][g];

		*d = (struct doubt){ .far = guard_distance(g, x[g], y[g]) };
		if (isnan(d->far))
			continue;
		p->doubt_mean[g] += d->far;
		known[g]++;
		if (fabs(d->far) <= 1)
			continue;
		d->text = guard_text(p->a, g, x, y);
		p->out->failed_differs += g == 0;
		if (fabs(d->far) > (g ? 1 : MATCHED_FAILED_SHARE_MAX / MATCHED_FAILED_SHARE) &&
		    !p->out->guard[config])
			p->out->guard[config] = d->text;
		if (fabs(d->far) > worst[g]) {
			worst[g] = fabs(d->far);
			p->doubt_worst[g] = p->out->n_configs == 1 ? d->text :
				arena_printf(p->a, "%s in %s", d->text, p->out->config[config]);
		}
	}
}

/* The shares of requests within the goodput limits, each configuration counted once. */
struct good { double share[2]; size_t n; };

static void add_good(struct good *g, const struct sums s[2])
{
	if (!(s[0].good_of > 0) || !(s[1].good_of > 0))
		return;
	for (unsigned k = 0; k < 2; k++)
		g->share[k] += s[k].good / s[k].good_of;
	g->n++;
}

/* 1: B's share is larger, -1: A's, 0: they are about equal. */
static int way_of(const struct good *g)
{
	double a = g->share[0], b = g->share[1];

	if (!g->n || !(fabs(b - a) > MATCHED_WORK_CHANGE * fmax(a, b)))
		return 0;
	return b > a ? 1 : -1;
}

static const char *good_text(struct arena *a, const struct good *g)
{
	double n = (double)g->n;

	return arena_printf(a, "requests within the goodput limits: %.1f %% against %.1f %%",
			    g->share[0] / n * 100, g->share[1] / n * 100);
}

static void check_guards(struct pairing *p)
{
	struct sums all[2] = { { .failed = 0 }, { .failed = 0 } };
	double worst[PAIR_GUARDS] = { 0 };
	size_t known[PAIR_GUARDS] = { 0 };
	struct good good = { .n = 0 };

	p->doubt = arena_alloc(p->a, (p->out->n_configs + 1) * sizeof(*p->doubt));
	p->out->guard = arena_alloc(p->a, (p->out->n_configs + 1) * sizeof(*p->out->guard));
	for (size_t i = 0, end; i < p->n; i = end) {
		struct sums s[2] = { { .failed = 0 }, { .failed = 0 } };

		for (end = i; end < p->n && p->entry[end].config == p->entry[i].config; end++) {
			const struct entry *e = &p->entry[end];

			if (is_all_invalid(p, e->run))
				continue;
			add_work(&s[e->side], &e->run->work);
			add_work(&all[e->side], &e->run->work);
		}
		guard_config(p, p->entry[i].config, s, known, worst);
		add_good(&good, s);
	}
	for (unsigned g = 0; g < PAIR_GUARDS; g++)
		p->doubt_mean[g] /= known[g] ? (double)known[g] : 1;
	for (unsigned k = 0; k < 2; k++)
		p->out->failed[k] = all[k].tried > 0 ? all[k].failed / all[k].tried : NAN;
	p->out->failed_worst = p->doubt_worst[0];
	p->out->good = way_of(&good);
	if (p->out->good)
		p->out->good_text = good_text(p->a, &good);
}

const char *matched_guard_gain(const struct matched_metric *metric, const struct matched_work *a,
			       size_t n, const struct matched_work *b, size_t m,
			       struct arena *arena)
{
	struct sums s[2] = { { .failed = 0 }, { .failed = 0 } };
	struct good good = { .n = 0 };
	double x[PAIR_GUARDS], y[PAIR_GUARDS];

	for (size_t i = 0; i < n; i++)
		add_work(&s[0], &a[i]);
	for (size_t i = 0; i < m; i++)
		add_work(&s[1], &b[i]);
	figures_of(&s[0], x);
	figures_of(&s[1], y);
	for (unsigned g = 0; g < PAIR_GUARDS; g++)
		if (fabs(guard_distance(g, x[g], y[g])) > matched_guard_limit(metric, g))
			return guard_text(arena, g, x, y);
	add_good(&good, s);
	return metric->guards & MATCHED_GUARD_GOOD && way_of(&good) < 0 ? good_text(arena, &good) :
									  NULL;
}

void matched_prepare(struct pairing *p)
{
	number_sessions(p);
	check_guards(p);
}

/* ---- a metric's values ---- */

/* Whether the run counts for the metric; otherwise counts the reason. */
static bool counts(const struct pairing *p, const struct entry *e, size_t metric,
		   struct matched_row *row)
{
	unsigned state = e->run->state ? e->run->state[metric] : MATCHED_COUNTS;

	if (!isfinite(e->run->value[metric])) {
		row->missing[e->side]++;
		return false;
	}
	if (state == MATCHED_INVALID && !p->spec->is_invalid_counted) {
		row->invalid[e->side]++;
		return false;
	}
	row->degraded[e->side] += state != MATCHED_COUNTS;
	return true;
}

/* The sessions of entries [from, to), all of one configuration and side. */
static void fill_side(const struct pairing *p, size_t metric, size_t from, size_t to, unsigned k,
		      struct used *u, struct matched_row *row)
{
	u->mean[k] = arena_alloc(p->a, (to - from + 1) * sizeof(*u->mean[k]));
	for (size_t i = from; i < to; i++) {
		const struct entry *e = &p->entry[i];
		double v = e->run->value[metric];
		struct mean *last = u->n[k] ? &u->mean[k][u->n[k] - 1] : NULL;

		if (!counts(p, e, metric, row))
			continue;
		if (!last || last->node != e->session) {
			last = &u->mean[k][u->n[k]++];
			last->node = e->session;
		}
		if (!u->runs[0] && !u->runs[1])
			u->first = v;
		u->is_flat &= v <= u->first && v >= u->first;
		u->is_positive &= v > 0;
		u->runs[k]++;
		last->runs++;
		last->sum += v;
		last->ln += v > 0 ? log(v) : 0;
		last->squares += v > 0 ? log(v) * log(v) : 0;
	}
}

/* Sums become means, of logarithms where all values have one. */
static void finish(struct used *u)
{
	for (unsigned k = 0; k < 2; k++) {
		u->ln[k] = 0;
		for (size_t j = 0; j < u->n[k]; j++) {
			struct mean *m = &u->mean[k][j];
			double n = (double)m->runs;

			m->squares = fmax(0, m->squares - m->ln * m->ln / n);
			m->ln = u->is_positive ? m->ln / n : 0;
			u->ln[k] += m->ln / (double)u->n[k];
		}
	}
	u->d = u->ln[1] - u->ln[0];
	if (fabs(u->d) < NO_DIFFERENCE)
		u->d = 0;
}

struct used *matched_collect(const struct pairing *p, size_t metric, struct matched_row *row,
			     size_t *n)
{
	struct used *used = arena_alloc(p->a, (p->out->n_configs + 1) * sizeof(*used));

	*n = 0;
	for (size_t i = 0, mid, end; i < p->n; i = end) {
		struct used *u = &used[*n];

		*u = (struct used){ .config = p->entry[i].config, .is_flat = true,
				    .is_positive = true, .load = p->entry[i].run->load };
		for (mid = i; !p->entry[mid].side; mid++)
			;
		for (end = mid; end < p->n && p->entry[end].config == u->config; end++)
			;
		fill_side(p, metric, i, mid, 0, u, row);
		fill_side(p, metric, mid, end, 1, u, row);
		if (!u->runs[0] != !u->runs[1])
			row->unpaired++;
		for (unsigned k = 0; k < 2; k++)
			row->runs[k] += u->runs[k];
		if (!u->runs[0] || !u->runs[1])
			continue;
		finish(u);
		(*n)++;
	}
	return used;
}

/*
 * A ratio with its interval from the sessions of some configurations, and the need for more data.
 *
 * Under rule (i) the noise is that of sessions, e with variance s^2, and the estimate is sum(w e)
 * over the sessions of both sides, a session's weight w being the sum of 1 / (configurations of its
 * cluster * sessions of the configuration) over its configurations and over the number of clusters:
 * se^2 = s^2 sum(w^2). s^2 comes from the residuals of sessions, each the mean over its
 * configurations of (session's mean - mean of the configuration's sessions). With e alone as noise,
 * the expected sum of their squares is s^2 times the sum of the squares of the matrix that makes
 * them from e; without shared sessions that is the usual sum(n - 1).
 */

#define SE_LEAST 1e-12 /* of a logarithm: rounding, not scatter */
#define POWER 0.8      /* of the number of sessions needed */

void matched_estimator_release(struct estimator *by)
{
	free(by->place);
	by->place = NULL;
}

void matched_clusters_release(struct clusters *c)
{
	free(c->d);
	*c = (struct clusters){ .p_differ = NAN };
}

struct matched_estimate matched_no_estimate(void)
{
	return (struct matched_estimate){
		.rule = MATCHED_BY_NOTHING, .value = { NAN, NAN }, .ratio = NAN,
		.interval = { NAN, NAN }, .narrow = { NAN, NAN }, .p = NAN, .df = NAN,
		.scatter = NAN };
}

/* ---- which configurations hang together ---- */

struct design {
	struct used *const *u;
	size_t n;
	size_t nodes;         /* sessions in use, numbered from 0 */
	size_t parts;         /* groups of sessions that configurations link, each side by itself */
	size_t clusters;
	size_t *cluster;      /* of each configuration */
	size_t *size;         /* configurations of each cluster */
	double *d;            /* of each cluster */
	bool has_repeats;     /* every configuration has two sessions on both sides */
};

static size_t root_of(size_t *parent, size_t x)
{
	while (parent[x] != x) {
		parent[x] = parent[parent[x]];
		x = parent[x];
	}
	return x;
}

static size_t count_roots(const size_t *parent, size_t n)
{
	size_t roots = 0;

	for (size_t i = 0; i < n; i++)
		roots += parent[i] == i;
	return roots;
}

/* Gives the sessions in use their places. */
static void place_nodes(struct estimator *by, struct design *g)
{
	if (!by->place)
		by->place = mem_array(by->nodes + 1, sizeof(*by->place));
	for (size_t i = 0; i < g->n; i++)
		for (unsigned k = 0; k < 2; k++)
			for (size_t j = 0; j < g->u[i]->n[k]; j++) {
				struct mean *m = &g->u[i]->mean[k][j];

				assert(m->node < by->nodes);
				if (!by->place[m->node])
					by->place[m->node] = ++g->nodes;
				m->at = by->place[m->node] - 1;
			}
	for (size_t i = 0; i < g->n; i++)
		for (unsigned k = 0; k < 2; k++)
			for (size_t j = 0; j < g->u[i]->n[k]; j++)
				by->place[g->u[i]->mean[k][j].node] = 0;
}

static void find_clusters(struct estimator *by, struct design *g)
{
	size_t *all, *own, *number;

	place_nodes(by, g);
	all = mem_array(g->nodes + 1, sizeof(*all));
	own = mem_array(g->nodes + 1, sizeof(*own));
	number = mem_array(g->nodes + 1, sizeof(*number));
	g->cluster = mem_array(g->n + 1, sizeof(*g->cluster));
	g->size = mem_array(g->n + 1, sizeof(*g->size));
	g->d = mem_array(g->n + 1, sizeof(*g->d));
	for (size_t i = 0; i < g->nodes; i++)
		all[i] = own[i] = i;
	for (size_t i = 0; i < g->n; i++)
		for (unsigned k = 0; k < 2; k++)
			for (size_t j = 0; j < g->u[i]->n[k]; j++) {
				const struct used *u = g->u[i];
				size_t at = u->mean[k][j].at;

				all[root_of(all, at)] = root_of(all, u->mean[0][0].at);
				own[root_of(own, at)] = root_of(own, u->mean[k][0].at);
			}
	g->parts = count_roots(own, g->nodes);
	for (size_t i = 0; i < g->n; i++) {
		size_t *no = &number[root_of(all, g->u[i]->mean[0][0].at)];

		if (!*no)
			*no = ++g->clusters;
		g->cluster[i] = *no - 1;
		g->size[*no - 1]++;
	}
	for (size_t i = 0; i < g->n; i++)
		g->d[g->cluster[i]] += g->u[i]->d / (double)g->size[g->cluster[i]];
	free(all);
	free(own);
	free(number);
}

static void design_release(struct design *g)
{
	free(g->cluster);
	free(g->size);
	free(g->d);
}

/* ---- intervals ---- */

/* p and both intervals of a mean of logarithms. */
static void infer(struct estimator *by, struct matched_estimate *e, double mean, double se,
		  double df)
{
	double wide, narrow;

	e->df = df;
	if (se <= SE_LEAST) {
		e->p = fabs(mean) <= SE_LEAST ? 1 : 0;
		e->interval = e->narrow = (struct interval){ exp(mean), exp(mean) };
		return;
	}
	e->p = fmin(1, 2 * student_cdf(-fabs(mean / se), df));
	if (!(fabs(by->df - df) <= 0)) { /* configurations mostly have the same */
		by->df = df;
		by->wide = student_quantile(1 - by->alpha / 2, df);
		by->narrow = student_quantile(1 - by->alpha, df);
	}
	wide = by->wide * se;
	narrow = by->narrow * se;
	e->interval = (struct interval){ exp(mean - wide), exp(mean + wide) };
	e->narrow = (struct interval){ exp(mean - narrow), exp(mean + narrow) };
}

static double mean_of(const double *x, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += x[i];
	return sum / (double)n;
}

/* Divided by n - 1. */
static double deviation(const double *x, size_t n)
{
	double mean = mean_of(x, n), squares = 0;

	for (size_t i = 0; i < n; i++)
		squares += (x[i] - mean) * (x[i] - mean);
	return sqrt(squares / (double)(n - 1));
}

/* Per session of the estimate: how many configurations it has, its weight, its residual. */
struct node { double configs, weight, residual; };

/* A session's means of one configuration and side. */
struct member { const struct mean *mean; size_t n; };

static void fill_nodes(const struct design *g, struct node *node)
{
	for (size_t i = 0; i < g->n; i++)
		for (unsigned k = 0; k < 2; k++)
			for (size_t j = 0; j < g->u[i]->n[k]; j++) {
				struct node *at = &node[g->u[i]->mean[k][j].at];

				at->configs++;
				at->weight += 1 / ((double)g->size[g->cluster[i]] *
						   (double)g->u[i]->n[k]);
			}
	for (size_t i = 0; i < g->n; i++)
		for (unsigned k = 0; k < 2; k++)
			for (size_t j = 0; j < g->u[i]->n[k]; j++) {
				const struct mean *m = &g->u[i]->mean[k][j];

				node[m->at].residual +=
					(m->ln - g->u[i]->ln[k]) / node[m->at].configs;
			}
}

/*
 * The squares of the matrix that makes residuals from the noise of sessions: row s is 1 at s, less
 * 1 / (configurations of s * sessions of the configuration) at each session of each of them.
 */
static double sum_of_squares(const struct design *g, const struct node *node)
{
	size_t *first = mem_array(g->nodes + 2, sizeof(*first)), total = 0;
	double *row = mem_array(g->nodes + 1, sizeof(*row)), sum = 0;
	struct member *member;

	for (size_t s = 0; s < g->nodes; s++) {
		first[s + 1] = first[s] + (size_t)node[s].configs;
		total = first[s + 1];
	}
	member = mem_array(total + 1, sizeof(*member));
	for (size_t i = 0; i < g->n; i++)
		for (unsigned k = 0; k < 2; k++)
			for (size_t j = 0; j < g->u[i]->n[k]; j++)
				member[first[g->u[i]->mean[k][j].at]++] =
					(struct member){ g->u[i]->mean[k], g->u[i]->n[k] };
	for (size_t s = 0; s < g->nodes; s++) { /* first[s] is now where the next one begins */
		size_t from = s ? first[s - 1] : 0;

		row[s] += 1;
		for (size_t m = from; m < first[s]; m++)
			for (size_t j = 0; j < member[m].n; j++)
				row[member[m].mean[j].at] -=
					1 / (node[s].configs * (double)member[m].n);
		for (size_t m = from; m < first[s]; m++)
			for (size_t j = 0; j < member[m].n; j++) {
				double *x = &row[member[m].mean[j].at];

				sum += *x * *x;
				*x = 0;
			}
	}
	free(first);
	free(row);
	free(member);
	return sum;
}

/* Cochran's Q over the clusters, whose variances are s^2 times the sums of squared weights. */
static double cochran(const struct design *g, const struct node *node, double s2, double df)
{
	double *v = mem_array(g->clusters + 1, sizeof(*v)), sum = 0, all = 0, q = 0;
	bool *is_seen = mem_array(g->nodes + 1, sizeof(*is_seen));

	for (size_t i = 0; i < g->n; i++)
		for (unsigned k = 0; k < 2; k++)
			for (size_t j = 0; j < g->u[i]->n[k]; j++) {
				size_t at = g->u[i]->mean[k][j].at;

				if (!is_seen[at])
					v[g->cluster[i]] += node[at].weight * node[at].weight * s2;
				is_seen[at] = true;
			}
	for (size_t c = 0; c < g->clusters; c++) {
		sum += g->d[c] / v[c];
		all += 1 / v[c];
	}
	for (size_t c = 0; c < g->clusters; c++)
		q += (g->d[c] - sum / all) * (g->d[c] - sum / all) / v[c];
	free(v);
	free(is_seen);
	return f_tail(q / (double)(g->clusters - 1), (double)(g->clusters - 1), df);
}

static void by_sessions(struct estimator *by, const struct design *g, double mean,
			struct matched_estimate *e, struct clusters *clusters)
{
	struct node *node = mem_array(g->nodes + 1, sizeof(*node));
	double squares = 0, weights = 0, df = (double)(g->nodes - g->parts), s2;

	fill_nodes(g, node);
	for (size_t s = 0; s < g->nodes; s++) {
		squares += node[s].residual * node[s].residual;
		weights += node[s].weight * node[s].weight;
	}
	s2 = squares / sum_of_squares(g, node);
	e->scatter = sqrt(s2);
	infer(by, e, mean, sqrt(s2 * weights) / (double)g->clusters, df);
	if (clusters && g->clusters > 1 && e->scatter > SE_LEAST)
		clusters->p_differ = cochran(g, node, s2, df);
	free(node);
}

/* ---- the estimate ---- */

static void fill_values(const struct design *g, double mean, struct matched_estimate *e)
{
	double ln[2] = { 0 };
	bool is_flat = false, is_same = true;

	for (size_t i = 0; i < g->n; i++) {
		double share = 1 / ((double)g->size[g->cluster[i]] * (double)g->clusters);

		ln[0] += g->u[i]->ln[0] * share;
		ln[1] += g->u[i]->ln[1] * share;
		is_flat |= !g->u[i]->is_positive;
		is_same &= !(fabs(g->u[i]->first - g->u[0]->first) > 0);
	}
	e->ratio = exp(mean);
	e->value[0] = is_flat ? (is_same ? g->u[0]->first : NAN) : exp(ln[0]);
	e->value[1] = is_flat ? e->value[0] : e->value[0] * e->ratio;
}

/* Arithmetic means over sessions, of a configuration that has no ratio. */
static struct matched_estimate without_ratio(const struct used *u)
{
	struct matched_estimate e = matched_no_estimate();

	e.configs = e.clusters = 1;
	for (unsigned k = 0; k < 2; k++) {
		double sum = 0;

		for (size_t j = 0; j < u->n[k]; j++)
			sum += u->mean[k][j].sum / (double)u->mean[k][j].runs;
		e.value[k] = sum / (double)u->n[k];
	}
	return e;
}

struct matched_estimate matched_estimate_of(struct estimator *by, struct used *const *u, size_t n,
					    struct clusters *clusters)
{
	struct matched_estimate e = matched_no_estimate();
	struct design g = { .u = u, .n = n, .has_repeats = true };
	double mean;

	if (!n)
		return e;
	if (n == 1 && !u[0]->is_positive && !u[0]->is_flat)
		return without_ratio(u[0]);
	for (size_t i = 0; i < n; i++)
		g.has_repeats &= u[i]->n[0] >= MATCHED_SESSIONS_MIN &&
				 u[i]->n[1] >= MATCHED_SESSIONS_MIN;
	find_clusters(by, &g);
	mean = mean_of(g.d, g.clusters);
	e.configs = n;
	e.clusters = g.clusters;
	fill_values(&g, mean, &e);
	e.rule = g.has_repeats ? MATCHED_BY_SESSIONS :
		 g.clusters >= MATCHED_CLUSTERS_MIN ? MATCHED_BY_CLUSTERS : MATCHED_BY_NOTHING;
	if (e.rule == MATCHED_BY_SESSIONS) {
		by_sessions(by, &g, mean, &e, clusters);
	} else if (e.rule == MATCHED_BY_CLUSTERS) {
		e.scatter = deviation(g.d, g.clusters);
		infer(by, &e, mean, e.scatter / sqrt((double)g.clusters), (double)(g.clusters - 1));
	}
	if (clusters) {
		clusters->n = g.clusters;
		clusters->d = g.d;
		g.d = NULL;
	}
	design_release(&g);
	return e;
}

/* ---- how many would do ---- */

/* The standard error is sd * sqrt(per / r), with each * r - lost degrees of freedom. */
struct question {
	double sd, per, each, lost, alpha;
	double effect, now;   /* ln(1 + D), the size of the present estimate's logarithm */
};

static bool would_show(const struct question *q, size_t r)
{
	double se = q->sd * sqrt(q->per / (double)r), df = q->each * (double)r - q->lost;

	return (student_quantile(1 - q->alpha / 2, df) + student_quantile(POWER, df)) * se <=
	       q->effect;
}

/* The current interval would exclude 0, or its narrow one would be within D. */
static bool would_settle(const struct question *q, size_t r)
{
	double se = q->sd * sqrt(q->per / (double)r), df = q->each * (double)r - q->lost;

	return student_cdf(-q->now / se, df) < q->alpha / 2 ||
	       (q->now < q->effect && student_cdf((q->now - q->effect) / se, df) < q->alpha);
}

/* More never do less: by doubling steps, then halving. 0: more than MATCHED_SESSIONS_MAX. */
static size_t smallest(const struct question *q, bool (*would)(const struct question *, size_t),
		       size_t from)
{
	size_t least = from, most = from, step = 1;

	while (most <= MATCHED_SESSIONS_MAX && !would(q, most)) {
		least = most + 1;
		most += step;
		step *= 2;
	}
	while (least < most) {
		size_t r = least + (most - least) / 2;

		if (r > MATCHED_SESSIONS_MAX || would(q, r))
			most = r;
		else
			least = r + 1;
	}
	return least > MATCHED_SESSIONS_MAX ? 0 : least;
}

/* Enough sessions to show D; if there are that many already, enough to settle the estimate. */
static size_t answer(const struct question *q, size_t least, size_t present)
{
	/* Ignoring degrees of freedom, which only lowers the number. */
	double z = (interval_z(1 - q->alpha) + interval_z(2 * POWER - 1)) * q->sd / q->effect;
	double begin = fmin(floor(z * z * q->per), MATCHED_SESSIONS_MAX + 1);
	size_t r = smallest(q, would_show, begin > (double)least ? (size_t)begin : least);

	return !r || r > present ? r : smallest(q, would_settle, present + 1);
}

/* Standard deviation of sessions' means in a configuration and side, or of runs in a session. */
static double within(struct used *const *u, size_t n, bool is_of_runs)
{
	double squares = 0, df = 0;

	for (size_t i = 0; i < n; i++)
		for (unsigned k = 0; k < 2; k++) {
			df += is_of_runs ? 0 : (double)u[i]->n[k] - 1;
			for (size_t j = 0; j < u[i]->n[k]; j++) {
				const struct mean *m = &u[i]->mean[k][j];
				double off = m->ln - u[i]->ln[k];

				squares += is_of_runs ? m->squares : off * off;
				df += is_of_runs ? (double)m->runs - 1 : 0;
			}
		}
	return df > 0 ? sqrt(squares / df) : NAN;
}

/* The best guess at the scatter of one session's mean. */
static double scatter_of(struct used *const *u, size_t n, const struct matched_estimate *is,
			 struct matched_need *need)
{
	double sd = within(u, n, false);

	if (is->rule == MATCHED_BY_SESSIONS)
		sd = is->scatter;
	need->from = MATCHED_FROM_SESSIONS;
	if (isfinite(sd))
		return sd;
	need->from = MATCHED_FROM_CLUSTERS; /* of d: two sessions, and the spread of effects */
	if (is->rule == MATCHED_BY_CLUSTERS)
		return is->scatter / sqrt(2);
	need->from = MATCHED_FROM_RUNS;
	sd = within(u, n, true);
	if (isfinite(sd) && sd > SE_LEAST)
		return sd;
	need->from = MATCHED_SUPPOSED;
	return MATCHED_SCATTER_USUAL;
}

struct matched_need matched_need_of(const struct estimator *by, struct used *const *u, size_t n,
				    const struct matched_estimate *is, double effect_min)
{
	struct matched_need need = { 0 };
	double c = (double)is->clusters;
	size_t sessions = SIZE_MAX;
	struct question q = { .alpha = by->alpha, .effect = log1p(effect_min),
			      .now = fabs(log(is->ratio)) };

	if (!n)
		return need;
	for (size_t i = 0; i < n; i++)
		for (unsigned k = 0; k < 2; k++)
			sessions = u[i]->n[k] < sessions ? u[i]->n[k] : sessions;
	q.sd = scatter_of(u, n, is, &need);
	q.per = 2 / c;
	q.each = 2 * c;
	q.lost = 2 * c;
	need.sessions = answer(&q, MATCHED_SESSIONS_MIN,
			       is->rule == MATCHED_BY_SESSIONS ? sessions : 1);
	if (is->rule != MATCHED_BY_CLUSTERS)
		return need;
	q.sd = is->scatter;
	q.per = 1;
	q.each = 1;
	q.lost = 1;
	need.clusters = answer(&q, MATCHED_CLUSTERS_MIN, is->clusters);
	return need;
}

bool matched_has_no_success(const struct matched_spec *spec, size_t side)
{
	size_t n = 0;

	for (size_t i = 0; i < spec->n_runs; i++) {
		const struct matched_work *work = &spec->run[i].work;

		if (spec->run[i].side != side)
			continue;
		if (!(work->failed > 0 && work->completed <= 0))
			return false;
		n++;
	}
	return n > 0;
}
