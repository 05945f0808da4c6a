/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare_gather.c - see compare_internal.h: the runs of two sides become configurations and
 * sessions, with what speaks against comparing them, and the values of a metric.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "results/decide/compare_internal.h"

#define NO_DIFFERENCE 1e-12 /* of logarithms: what rounding leaves of equal values */

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

/* The runs of both sides, less those that are on both. */
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

/* Configurations get their places; those of one side only become out->alone. */
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

/* How far the sides are apart, in units of the guard's limit: beyond 1 it fails. NAN: not known. */
static double guard_distance(unsigned guard, double a, double b)
{
	if (guard == 0)
		return (b - a) / MATCHED_FAILED_SHARE;
	return a <= 0 && b <= 0 ? 0 : log(b / a) / log1p(MATCHED_WORK_CHANGE);
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

/* One configuration: which guards fail, the first of them in words. */
static void guard_config(struct pairing *p, size_t config, const struct sums s[2],
			 double total[PAIR_GUARDS], size_t known[PAIR_GUARDS],
			 double worst[PAIR_GUARDS])
{
	double x[PAIR_GUARDS], y[PAIR_GUARDS];

	figures_of(&s[0], x);
	figures_of(&s[1], y);
	for (unsigned g = 0; g < PAIR_GUARDS; g++) {
		double far = guard_distance(g, x[g], y[g]);
		const char *text;

		if (isnan(far))
			continue;
		total[g] += far;
		known[g]++;
		if (fabs(far) <= 1)
			continue;
		text = guard_text(p->a, g, x, y);
		p->guard[config] |= 1u << g;
		p->guard_count[g]++;
		if (!p->out->guard[config])
			p->out->guard[config] = text;
		if (fabs(far) > worst[g]) {
			worst[g] = fabs(far);
			p->guard_worst[g] = p->out->n_configs == 1 ? text :
				arena_printf(p->a, "%s in %s", text, p->out->config[config]);
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

/* The smaller share against the larger one, whichever side has it: 1 if that is B, -1, 0 alike. */
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
	double total[PAIR_GUARDS] = { 0 }, worst[PAIR_GUARDS] = { 0 };
	size_t known[PAIR_GUARDS] = { 0 };
	struct good good = { .n = 0 };

	p->guard = arena_alloc(p->a, (p->out->n_configs + 1) * sizeof(*p->guard));
	p->out->guard = arena_alloc(p->a, (p->out->n_configs + 1) * sizeof(*p->out->guard));
	for (size_t i = 0, end; i < p->n; i = end) {
		struct sums s[2] = { { .failed = 0 }, { .failed = 0 } };

		for (end = i; end < p->n && p->entry[end].config == p->entry[i].config; end++)
			if (!is_all_invalid(p, p->entry[end].run))
				add_work(&s[p->entry[end].side], &p->entry[end].run->work);
		guard_config(p, p->entry[i].config, s, total, known, worst);
		add_good(&good, s);
	}
	for (unsigned g = 0; g < PAIR_GUARDS; g++)
		if (known[g] && fabs(total[g] / (double)known[g]) > 1)
			p->guard_all |= 1u << g;
	p->out->good = way_of(&good);
	if (p->out->good)
		p->out->good_text = good_text(p->a, &good);
}

const char *matched_guard_gain(const struct matched_work *a, size_t n,
			       const struct matched_work *b, size_t m, struct arena *arena)
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
		if (fabs(guard_distance(g, x[g], y[g])) > 1)
			return guard_text(arena, g, x, y);
	add_good(&good, s);
	return way_of(&good) < 0 ? good_text(arena, &good) : NULL;
}

void matched_prepare(struct pairing *p)
{
	number_sessions(p);
	check_guards(p);
}

/* ---- a metric's values ---- */

/* Whether the run counts for the metric; if not, why is counted. */
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
