/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capacity.c - whether the capacity search (decide/capacity.h) is right: on modelled engines whose
 * capacity is known, how often its 95 % interval covers it and how far off its answer is, next to
 * a plain bisection and to upstream's recipe.
 *
 * The model is continuous batching in steps: one token for every running request, the rest of the
 * token budget for chunked prefill, at most max_seqs admitted; a step takes t0 + a * prefilled
 * tokens + b * sequences + c * tokens in the cache, with 2 % noise. Engines are drawn at random
 * from a seed, so every figure is the same on every machine. True capacity: TRUTH_LEVELS long
 * levels around it and a quadratic through the logits of their slow shares; of a closed loop the
 * largest number of requests at once that holds. Steep: the slow odds grow by a power of 8 or
 * more with the load.
 *
 *   --engines N   steep and flat ones together (200)     --budget SECONDS  of modelled time (3600)
 *   --seed N      other engines (1)                      --threads N       1 or 2 (2)
 *   --others N    engines of each other kind (24): 503 beyond a limit, limits on means, closed loop
 *   --quick       24 engines and 6 of each other kind    --list            a line per engine
 *   --from N      without the first N of each kind (0)
 *
 * Exits with 1 when fewer than 93 % of the steep, or of the flat ones, are covered, or fewer than
 * 95 % of those whose interval reached +-3 % are within 3 %.
 */
#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/base/parallel.h"
#include "core/stats/stats.h"
#include "kit/batcher.h"
#include "results/decide/capacity.h"

#define QUANTILE 0.99
#define TRUTH_LEVELS 9
#define TRUTH_WIDTH 0.15  /* ln load on either side at most: a quadratic has to follow the curve */
#define TRUTH_WIDTH_MEANS 0.06
#define TRUTH_REQUESTS 100000
#define TRUTH_SEEK 10000  /* requests of a level while it is looked for */
#define CAPACITY_LEAST 0.5 /* requests/s; slower engines take hours of modelled time */
#define STEEP 8.0
#define LIMITS 2          /* TTFT, TPOT */
#define COVER_LEAST 0.93
#define WITHIN 0.03
#define WITHIN_LEAST 0.95

enum kind { OPEN_LOOP, REFUSING, MEANS, CLOSED_LOOP, KINDS };
static const char *const kind_names[] = { "p99 limits", "503 beyond a limit", "limits on means",
					  "closed loop" };

/* An engine with its limits, and the truth about it. */
struct subject {
	enum kind kind;
	struct engine e;
	double limit[LIMITS]; /* s */
	double true_capacity, true_slope;
};

/* ---- a level, as a client sees it ---- */

struct view { struct level_request *r; double (*value)[LIMITS + 1]; size_t room; };

/* The state at `now` of what was sent until `sent`. */
static void look_at(const struct subject *e, const struct batcher *s, struct view *v,
		    double warmup_s, double sent, double now, struct level *out)
{
	size_t n = 0;

	if (v->room < s->n) {
		v->room = s->room;
		v->r = mem_grow(v->r, v->room, sizeof(*v->r));
		v->value = mem_grow(v->value, v->room, sizeof(*v->value));
	}
	for (; n < s->n && s->job[n].due <= sent; n++) {
		const struct job *j = &s->job[n];
		struct level_request *r = &v->r[n];
		bool has_first = j->first <= now, has_end = j->end <= now;

		*r = (struct level_request){ .due_s = j->due, .end_s = has_end ? j->end : INFINITY,
					     .ttft_s = has_first ? j->first - j->due : NAN,
					     .is_failed = j->is_failed };
		r->slow = (has_first ? j->first : now) - j->due > e->limit[0];
		r->open = !has_first && !r->slow;
		if (!has_end)
			r->open |= 2;
		else if (!j->is_failed)
			r->slow |= (uint32_t)(batcher_tpot(j) > e->limit[1]) << 1;
		v->value[n][0] = r->ttft_s;
		v->value[n][1] = has_end && !j->is_failed ? batcher_tpot(j) : NAN;
		v->value[n][2] = 0;
		r->value = v->value[n];
	}
	if (warmup_s > 0)
		warmup_s = level_warmup_s(v->r, n, warmup_s, sent);
	level_take(out, v->r, n, LIMITS + 1, warmup_s, sent);
}

struct bed { struct batcher sim; struct view view; };

static void run_level(struct bed *w, const struct subject *e, struct capacity_search *c,
		      const struct capacity_step *ask)
{
	double at = ask->look_s, next, sent = ask->hold_s;
	enum capacity_look said = CAPACITY_GO_ON;
	struct level l = { 0 };

	batcher_begin(&w->sim, &e->e, ask->load, e->kind == CLOSED_LOOP ? (uint32_t)ask->load : 0);
	while (at < ask->hold_s && said == CAPACITY_GO_ON) {
		batcher_live(&w->sim, at);
		look_at(e, &w->sim, &w->view, ask->warmup_s, at, at, &l);
		said = capacity_look(c, &l, at, &next);
		sent = said == CAPACITY_GO_ON ? ask->hold_s : at;
		at = next;
	}
	batcher_live(&w->sim, sent);
	w->sim.is_closed = true;
	if (said != CAPACITY_STOP_CANCEL) {
		batcher_live(&w->sim, INFINITY);
		look_at(e, &w->sim, &w->view, ask->warmup_s, sent, INFINITY, &l);
	}
	l.spent_s = said == CAPACITY_STOP_CANCEL ? sent : fmax(sent, w->sim.now);
	capacity_tell_level(c, &l);
}

/* Requests one at a time. */
static void run_unloaded(struct bed *w, const struct subject *e, size_t n, struct level *l)
{
	batcher_begin(&w->sim, &e->e, 1, 1);
	while (w->sim.n <= n)
		batcher_live(&w->sim, w->sim.now + 1e-3);
	w->sim.is_closed = true;
	batcher_live(&w->sim, INFINITY);
	w->sim.n = n;
	look_at(e, &w->sim, &w->view, 0, w->sim.job[n - 1].due, INFINITY, l);
	l->spent_s = w->sim.job[n - 1].end;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* All prompts at once. */
static struct capacity_saturation run_saturation(struct bed *w, const struct subject *e,
						 uint64_t least)
{
	struct capacity_saturation m = { .at_once = e->e.max_seqs };

	m.requests = 5 * (uint64_t)e->e.max_seqs > least ? 5 * (uint64_t)e->e.max_seqs : least;
	m.per_s = batcher_saturation(&w->sim, &e->e, (uint32_t)m.requests);
	m.spent_s = w->sim.now;
	return m;
}

static const struct capacity_opts *opts_of(const struct subject *e, double budget_s,
					   struct capacity_opts *o)
{
	*o = (struct capacity_opts){ .load = e->kind == CLOSED_LOOP ? CAPACITY_CONCURRENCY :
								      CAPACITY_RATE,
				     .limits = LIMITS, .precision = WITHIN, .budget_s = budget_s,
				     .has_saturation = true };
	for (size_t j = 0; j < LIMITS; j++) {
		o->limit[j].is_mean = e->kind == MEANS;
		o->limit[j].quantile = QUANTILE;
		o->limit[j].value = e->limit[j];
	}
	return o;
}

static struct capacity_answer run_search(struct bed *w, const struct subject *e, double budget_s)
{
	struct capacity_opts o;
	struct capacity_search *c = capacity_new(opts_of(e, budget_s, &o));
	struct capacity_step ask;
	struct capacity_answer a;

	while ((ask = capacity_next(c)).ask != CAPACITY_DONE)
		switch (ask.ask) {
		case CAPACITY_PROBE:
			capacity_tell_probe(c, true, 1);
			break;
		case CAPACITY_UNLOADED_REQUESTS: {
			struct level l = { 0 };

			run_unloaded(w, e, ask.requests, &l);
			capacity_tell_unloaded(c, &l);
			break;
		}
		case CAPACITY_SATURATE: {
			struct capacity_saturation m = run_saturation(w, e, ask.requests);

			capacity_tell_saturation(c, &m);
			break;
		}
		default:
			run_level(w, e, c, &ask);
		}
	a = capacity_answer(c);
	capacity_free(c);
	return a;
}

/* ---- the truth ---- */

struct truth { double x, y[LIMITS], weight[LIMITS]; };

/* A long level: logits of slow shares, or ln(mean / limit); above 0 when the limit is broken. */
static void truth_level(struct bed *w, const struct subject *e, double load, size_t n,
			struct truth *t)
{
	double slow[LIMITS] = { 0 }, sum[LIMITS] = { 0 }, count = 0, ends = 0;
	struct batcher *s = &w->sim;

	if (e->kind == CLOSED_LOOP)
		load = fmax(1, round(load));
	batcher_begin(s, &e->e, load, e->kind == CLOSED_LOOP ? (uint32_t)load : 0);
	if (!s->slots)
		batcher_live(s, (double)n / load);
	while (s->n < n)
		batcher_live(s, s->now + 1);
	s->is_closed = true;
	batcher_live(s, INFINITY);
	for (size_t i = s->n / 20; i < s->n; i++) {
		const struct job *j = &s->job[i];

		slow[0] += j->is_failed || j->first - j->due > e->limit[0];
		slow[1] += j->is_failed || batcher_tpot(j) > e->limit[1];
		count++;
		if (j->is_failed)
			continue;
		ends++;
		sum[0] += j->first - j->due;
		sum[1] += batcher_tpot(j);
	}
	t->x = log(load);
	for (size_t j = 0; j < LIMITS; j++) {
		double p = (slow[j] + 0.5) / (count + 1);

		t->y[j] = log(p / (1 - p)) - log((1 - QUANTILE) / QUANTILE);
		t->weight[j] = slow[j] * (1 - p) + 0.01;
		if (e->kind == MEANS) {
			t->y[j] = log(sum[j] / ends / e->limit[j]);
			t->weight[j] = 1;
		}
	}
}

/* The weighted polynomial of degree `terms` - 1 in x - middle, by normal equations. */
static void polynomial(const struct truth *t, size_t n, size_t j, double middle, size_t terms,
		       double *out)
{
	double m[3][4] = { { 0 } };

	for (size_t i = 0; i < n; i++) {
		double x = t[i].x - middle, p[3] = { 1, x, x * x };

		for (size_t a = 0; a < terms; a++) {
			for (size_t b = 0; b < terms; b++)
				m[a][b] += t[i].weight[j] * p[a] * p[b];
			m[a][3] += t[i].weight[j] * p[a] * t[i].y[j];
		}
	}
	for (size_t a = 0; a < terms; a++)
		for (size_t b = 0; b < terms; b++) {
			double f = m[b][a] / m[a][a];

			if (b == a)
				continue;
			for (size_t c = 0; c < 4; c++)
				m[b][c] -= f * m[a][c];
		}
	for (size_t a = 0; a < 3; a++)
		out[a] = a < terms ? m[a][3] / m[a][a] : 0;
}

/* Where the first limit crosses, relative to middle; its slope there. NAN: nowhere near. */
static double crossing(const struct truth *t, size_t n, double middle, size_t terms, double *slope)
{
	double first = NAN;

	for (size_t j = 0; j < LIMITS; j++) {
		double p[3], x = 0;

		polynomial(t, n, j, middle, terms, p);
		if (!(p[1] > 0))
			continue;
		for (int i = 0; i < 50; i++)
			x -= fmax(-0.05, fmin(0.05, (p[0] + x * (p[1] + x * p[2])) /
						    fmax(0.1, p[1] + 2 * x * p[2])));
		if (fabs(p[0] + x * (p[1] + x * p[2])) < 1e-6 && (isnan(first) || x < first)) {
			first = x;
			*slope = p[1] + 2 * x * p[2];
		}
	}
	return first;
}

static size_t spread(struct bed *w, const struct subject *e, double middle, double width,
		     size_t requests, struct truth *t)
{
	bool is_whole = e->kind == CLOSED_LOOP;
	double step = width / (TRUTH_LEVELS / 2);

	if (is_whole) /* neighbours, at the least */
		step = fmax(step, exp(-middle));
	for (int i = 0; i < TRUTH_LEVELS; i++)
		truth_level(w, e, exp(middle + step * (i - TRUTH_LEVELS / 2)), requests, &t[i]);
	return TRUTH_LEVELS;
}

static bool holds(struct bed *w, const struct subject *e, double load)
{
	struct truth t;

	truth_level(w, e, load, TRUTH_REQUESTS, &t);
	return t.y[0] <= 0 && t.y[1] <= 0;
}

/* The largest number of requests at once that holds; only whole numbers count. */
static double whole_truth(struct bed *w, const struct subject *e)
{
	double load = fmax(1, round(e->true_capacity));

	while (load < 4.0 * e->e.max_seqs && holds(w, e, load))
		load++;
	while (load > 0 && !holds(w, e, load))
		load--;
	return load;
}

/* False: it has none that a search could find, so that it is no engine for this purpose. */
static bool find_truth(struct bed *w, struct subject *e)
{
	struct capacity_saturation m = run_saturation(w, e, 200);
	double top = e->kind == CLOSED_LOOP ? 4.0 * e->e.max_seqs : m.per_s;
	double low = log(top / 40), high = log(top), middle, off, slope = STEEP;
	double widest = e->kind == MEANS ? TRUTH_WIDTH_MEANS : TRUTH_WIDTH;
	struct truth t[TRUTH_LEVELS];

	for (int i = 0; i < 9; i++) {
		middle = (low + high) / 2;
		truth_level(w, e, exp(middle), i < 5 ? TRUTH_SEEK / 2 : TRUTH_SEEK, t);
		if (t->y[0] > 0 || t->y[1] > 0)
			high = middle;
		else
			low = middle;
	}
	middle = (low + high) / 2;
	for (int i = 0; i < 2; i++) {
		spread(w, e, middle, i ? fmin(widest, 1 / slope) : 0.15,
		       i ? TRUTH_REQUESTS : TRUTH_SEEK, t);
		off = crossing(t, TRUTH_LEVELS, middle, i ? 3 : 2, &slope);
		if (isnan(off) || fabs(off) > 0.5)
			return false;
		middle += off;
		slope = fmax(2, fmin(50, slope));
	}
	crossing(t, TRUTH_LEVELS, middle, 3, &e->true_slope);
	e->true_capacity = exp(middle);
	if (e->kind == CLOSED_LOOP)
		e->true_capacity = whole_truth(w, e);
	for (int i = 4; i < 8; i += 2) { /* limits that are broken below hold again: no capacity */
		truth_level(w, e, e->true_capacity * i / 8, TRUTH_SEEK, t);
		if (t->y[0] > 0 || t->y[1] > 0)
			return false;
	}
	return e->true_capacity < top && e->true_capacity > fmax(top / 40, CAPACITY_LEAST);
}

static bool draw(struct bed *w, struct pcg64 *g, enum kind kind, struct subject *e)
{
	struct level l = { 0 };
	double ttft[400], tpot[400];
	size_t n = 400, first = 0;

	*e = (struct subject){ .kind = kind };
	batcher_draw(g, &e->e);
	if (kind == CLOSED_LOOP) /* equal requests in a closed loop march in step for ever */
		e->e.is_output_fixed &= e->e.prompt_sd > 0;
	if (kind == REFUSING)
		e->e.refuse_at = (uint32_t)fmax(4, e->e.max_seqs * batcher_uniform(g, 0.3, 1.0));
	e->limit[0] = e->limit[1] = INFINITY;
	run_unloaded(w, e, n, &l);
	for (size_t i = first; i < n; i++) {
		ttft[i] = w->sim.job[i].first - w->sim.job[i].due;
		tpot[i] = batcher_tpot(&w->sim.job[i]);
	}
	qsort(ttft, n, sizeof(*ttft), by_value);
	qsort(tpot, n, sizeof(*tpot), by_value);
	e->limit[0] = batcher_log_uniform(g, 1.8, 15) * stats_percentile(ttft, n, 99);
	e->limit[1] = batcher_log_uniform(g, 1.2, 4) * stats_percentile(tpot, n, 99);
	if (kind == MEANS) {
		e->limit[0] = batcher_log_uniform(g, 1.5, 8) * stats_mean(ttft, n);
		e->limit[1] = batcher_log_uniform(g, 1.2, 3) * stats_mean(tpot, n);
	}
	return find_truth(w, e);
}

/* ---- what others do ---- */

struct result {
	double answer, low, high, spent_s;
	uint64_t requests;
	bool has_interval, is_precise;
};

/* One level judged by its point percentile; the time and requests it costs are added. */
static bool passes(struct bed *w, const struct subject *e, double rate, size_t requests,
		   double hold_s, struct result *r)
{
	struct level l = { 0 };
	double sent = requests ? INFINITY : hold_s;
	struct batcher *s = &w->sim;

	batcher_begin(s, &e->e, rate, 0);
	while (requests && s->n < requests)
		batcher_live(s, s->next_due);
	if (!requests)
		batcher_live(s, hold_s);
	s->is_closed = true;
	batcher_live(s, INFINITY);
	if (requests)
		sent = s->job[s->n - 1].due;
	look_at(e, s, &w->view, requests ? 0 : 2, sent, INFINITY, &l);
	r->spent_s += fmax(s->now, requests ? 0 : hold_s);
	r->requests += s->n;
	for (size_t j = 0; j < LIMITS; j++) {
		struct level_count c = level_count(&l, j);

		if (c.slow > (1 - QUANTILE) * c.n)
			return false;
	}
	return true;
}

/* Bisection to 1 %, levels of 60 s. */
static struct result bisection(struct bed *w, const struct subject *e)
{
	struct capacity_saturation m = run_saturation(w, e, 200);
	struct result r = { .spent_s = m.spent_s, .requests = m.requests, .has_interval = true };

	r.high = 1.1 * m.per_s;
	r.low = r.high / 50;
	while (r.high > 1.01 * r.low) {
		double middle = sqrt(r.low * r.high);

		if (passes(w, e, middle, 0, 60, &r))
			r.low = middle;
		else
			r.high = middle;
	}
	r.answer = r.low;
	return r;
}

/* Upstream's recipe: 200 prompts a level, from the throughput at unlimited load on, whole rates. */
static struct result upstream(struct bed *w, const struct subject *e)
{
	struct capacity_saturation m = run_saturation(w, e, 200);
	struct result r = { .spent_s = m.spent_s, .requests = m.requests, .has_interval = true };
	double rate = fmax(1, floor((double)m.requests / m.spent_s)), low = 0, high = INFINITY;

	for (int i = 0; i < 64 && !(high - low <= 1); i++) {
		if (passes(w, e, rate, 200, 0, &r))
			low = rate;
		else
			high = rate;
		if (isinf(high))
			rate = 2 * low;
		else
			rate = fmax(1, floor((low + high) / 2));
	}
	r.answer = r.low = low;
	r.high = high;
	return r;
}

static struct result ours(struct bed *w, const struct subject *e, double budget_s)
{
	struct capacity_answer a = run_search(w, e, budget_s);
	struct result r = { a.load, a.low, a.high, a.spent_s, a.requests, a.has_interval,
			    a.end == CAPACITY_PRECISE };

	return r;
}

/* ---- figures ---- */

enum way { OURS, BISECTION, UPSTREAM, WAYS };
static const char *const way_names[] = { "D: this search", "B: bisection, 60 s a level",
					 "A: upstream's recipe" };

struct trial { struct subject e; struct result by[WAYS]; bool is_drawn; };

struct study {
	struct trial *trial;
	struct bed *bed;
	uint64_t seed;
	double budget_s;
	enum kind kind;
	bool is_list;
	size_t from;
};

static bool is_covered(const struct trial *t, const struct result *r)
{
	double truth = t->e.true_capacity;

	return r->has_interval && truth >= r->low && truth <= r->high;
}

static void list(const struct trial *t, size_t i)
{
	const struct result *r = &t->by[OURS];

	printf("%s %zu: slope %.1f, capacity %.3f; %.3f [%.3f, %.3f] in %.0f s%s%s\n",
	       kind_names[t->e.kind], i, t->e.true_slope, t->e.true_capacity, r->answer, r->low,
	       r->high, r->spent_s, r->is_precise ? ", precise" : "",
	       is_covered(t, r) ? "" : ", MISSED");
	fflush(stdout);
}

static bool one(void *self, size_t i, unsigned worker)
{
	struct study *s = self;
	struct trial *t = &s->trial[i];
	struct bed *w = &s->bed[worker];
	struct pcg64 g;

	if (i < s->from)
		return true;
	pcg64_seed(&g, s->seed * 1000003 + i * 16 + (uint64_t)s->kind);
	pcg64_seed(&w->sim.rng, ~(s->seed * 1000003 + i * 16 + (uint64_t)s->kind));
	for (int tries = 0; tries < 50 && !t->is_drawn; tries++)
		t->is_drawn = draw(w, &g, s->kind, &t->e);
	if (!t->is_drawn)
		return true;
	t->by[OURS] = ours(w, &t->e, s->budget_s);
	if (s->is_list)
		list(t, i);
	if (s->kind != OPEN_LOOP)
		return true;
	t->by[BISECTION] = bisection(w, &t->e);
	t->by[UPSTREAM] = upstream(w, &t->e);
	return true;
}

static double error_of(const struct trial *t, const struct result *r)
{
	return r->has_interval ? fabs(r->answer / t->e.true_capacity - 1) : 1;
}

enum group { ALL, STEEP_ONES, FLAT_ONES };

struct tally { size_t n, covered, within, precise, precise_within; };

/* Prints a row of the table. */
static struct tally row(const struct study *s, size_t n, enum way way, enum group group,
			const char *name)
{
	double *error = mem_array(n, sizeof(*error)), *width = mem_array(n, sizeof(*width));
	double *spent = mem_array(n, sizeof(*spent)), *requests = mem_array(n, sizeof(*requests));
	struct tally y = { 0 };

	for (size_t i = 0; i < n; i++) {
		const struct trial *t = &s->trial[i];
		const struct result *r = &t->by[way];
		bool is_steep = t->e.true_slope >= STEEP;

		if (!t->is_drawn || (group == STEEP_ONES && !is_steep) ||
		    (group == FLAT_ONES && is_steep))
			continue;
		error[y.n] = 100 * error_of(t, r);
		width[y.n] = r->has_interval ? 100 * (r->high - r->low) / 2 / r->answer : INFINITY;
		spent[y.n] = r->spent_s;
		requests[y.n++] = (double)r->requests;
		y.covered += is_covered(t, r);
		y.within += error_of(t, r) <= WITHIN;
		y.precise += r->is_precise;
		y.precise_within += r->is_precise && error_of(t, r) <= WITHIN;
	}
	if (!y.n)
		goto done;
	qsort(error, y.n, sizeof(*error), by_value);
	qsort(width, y.n, sizeof(*width), by_value);
	qsort(spent, y.n, sizeof(*spent), by_value);
	qsort(requests, y.n, sizeof(*requests), by_value);
	printf("%-28s %-20s %4zu %6.1f %6.1f %6.1f %7.1f %7.1f %6.0f %6.0f %8.0f\n", way_names[way],
	       name, y.n, error[y.n / 2], error[y.n * 9 / 10],
	       100.0 * (double)y.within / (double)y.n,
	       100.0 * (double)y.covered / (double)y.n, width[y.n / 2], spent[y.n / 2],
	       spent[y.n * 9 / 10], requests[y.n / 2]);
done:
	free(error);
	free(width);
	free(spent);
	free(requests);
	return y;
}

static bool judge(const char *what, size_t got, size_t of, double least)
{
	bool is_met = !of || (double)got >= least * (double)of;

	if (of)
		printf("%s: %s %zu of %zu (%.1f %%; at least %.0f %%)\n", is_met ? "passed" : "FAILED",
		       what, got, of, 100.0 * (double)got / (double)of, 100 * least);
	return is_met;
}

struct args {
	size_t engines, others, from;
	unsigned threads;
	uint64_t seed;
	double budget_s;
	bool is_list;
};

static bool parse(int argc, char **argv, struct args *a)
{
	*a = (struct args){ 200, 24, 0, 2, 1, 3600, false };
	for (int i = 1; i < argc; i++) {
		double value = i + 1 < argc ? strtod(argv[i + 1], NULL) : NAN;
		bool has_value = true;

		if (!strcmp(argv[i], "--engines") && value >= 0)
			a->engines = (size_t)value;
		else if (!strcmp(argv[i], "--others") && value >= 0)
			a->others = (size_t)value;
		else if (!strcmp(argv[i], "--from") && value >= 0)
			a->from = (size_t)value;
		else if (!strcmp(argv[i], "--threads") && value >= 1 && value <= 2)
			a->threads = (unsigned)value;
		else if (!strcmp(argv[i], "--seed") && value >= 0)
			a->seed = (uint64_t)value;
		else if (!strcmp(argv[i], "--budget") && value > 0)
			a->budget_s = value;
		else
			has_value = false;
		if (!strcmp(argv[i], "--quick"))
			a->engines = 24, a->others = 6;
		else if (!strcmp(argv[i], "--list"))
			a->is_list = true;
		else if (!has_value)
			return false;
		i += has_value;
	}
	return true;
}

static struct tally study_of(struct study *s, const struct args *a, enum kind kind, size_t n,
			     struct tally *steep, struct tally *flat)
{
	struct tally all;

	s->kind = kind;
	s->trial = mem_array(n ? n : 1, sizeof(*s->trial));
	parallel_for(a->threads, n, one, s);
	if (kind == OPEN_LOOP) {
		for (enum way way = UPSTREAM; way > OURS; way--) {
			row(s, n, way, STEEP_ONES, "steep");
			row(s, n, way, FLAT_ONES, "flat");
		}
		*steep = row(s, n, OURS, STEEP_ONES, "steep");
		*flat = row(s, n, OURS, FLAT_ONES, "flat");
	}
	all = row(s, n, OURS, ALL, kind_names[kind]);
	fflush(stdout);
	free(s->trial);
	return all;
}

int main(int argc, char **argv)
{
	struct tally all, steep, flat;
	bool is_met = true;
	struct study s;
	struct args a;

	if (!parse(argc, argv, &a)) {
		fprintf(stderr, "capacity: options are --engines N, --others N, --from N, --budget S, "
				"--seed N, --threads 1|2, --list, --quick\n");
		return 2;
	}
	s = (struct study){ .seed = a.seed, .budget_s = a.budget_s,
				.is_list = a.is_list, .from = a.from };
	s.bed = mem_array(a.threads, sizeof(*s.bed));
	printf("%-28s %-20s %4s %6s %6s %6s %7s %7s %6s %6s %8s\n", "", "", "n", "error%", "90%",
	       "in 3%", "covers%", "+-%", "time s", "90%", "requests");
	all = study_of(&s, &a, OPEN_LOOP, a.engines, &steep, &flat);
	for (enum kind k = REFUSING; k < KINDS; k++)
		study_of(&s, &a, k, a.others, NULL, NULL);
	is_met &= judge("steep: the 95 % interval covers", steep.covered, steep.n, COVER_LEAST);
	is_met &= judge("flat: the 95 % interval covers", flat.covered, flat.n, COVER_LEAST);
	is_met &= judge("within 3 % where the interval reached +-3 %", all.precise_within,
			all.precise, WITHIN_LEAST);
	for (unsigned i = 0; i < a.threads; i++) {
		batcher_release(&s.bed[i].sim);
		free(s.bed[i].view.r);
		free(s.bed[i].view.value);
	}
	free(s.bed);
	return is_met ? 0 : 1;
}
