/* SPDX-License-Identifier: Apache-2.0 */
/* paired.c - see paired.h. */
#include "results/decide/paired.h"

#include <assert.h>
#include <math.h>

#include "core/rng/rng.h"

#define G 1.0 /* prior scale of the mixture; 0.25 and 4 need about as many pairs */

struct paired_block paired_block(double e2el_mean_s, double requests_per_s)
{
	struct paired_block b;

	assert(e2el_mean_s >= 0 && requests_per_s >= 0);
	b.length_s = fmax(10, 10 * e2el_mean_s);
	if (requests_per_s > 0)
		b.length_s = fmax(b.length_s, 100 / requests_per_s);
	b.warmup_s = fmax(fmax(2, b.length_s / 10), 1.5 * e2el_mean_s);
	return b;
}

/* ---- one anytime-valid interval ---- */

void paired_interval_init(struct paired_interval *x)
{
	*x = (struct paired_interval){ .low = -INFINITY, .high = INFINITY };
}

double paired_interval_sd(const struct paired_interval *x)
{
	assert(x->n >= 2);
	return fmax(PAIRED_SD_MIN, sqrt(x->squares / (double)(x->n - 1)));
}

double paired_half(size_t n, double sd, double alpha)
{
	double count = (double)n, whole = 1 + count * G, k;

	assert(n >= 1 && sd > 0 && alpha > 0 && alpha < 1);
	k = exp(2 / count * (0.5 * log(whole) - log(alpha)));
	if (n < 2 || k >= whole)
		return INFINITY;
	return sd / sqrt(count) * sqrt((count - 1) * (k - 1) / (1 - k / whole));
}

void paired_interval_add(struct paired_interval *x, double d, double alpha)
{
	double off = d - x->mean, half;

	assert(isfinite(d));
	x->n++;
	x->mean += off / (double)x->n;
	x->squares += off * (d - x->mean);
	if (x->n < 2)
		return;
	half = paired_half(x->n, paired_interval_sd(x), alpha);
	x->low = fmax(x->low, x->mean - half);
	x->high = fmin(x->high, x->mean + half);
}

/* ---- one metric ---- */

static void track_init(struct paired_track *t)
{
	*t = (struct paired_track){ .check_ln_e_max = 0 };
	for (unsigned i = 0; i < PAIRED_JOINS; i++)
		paired_interval_init(&t->joined[i]);
}

static void check_add(struct paired_track *t, double d, double effect_min)
{
	double rho = PAIRED_CHECK_RHO / (effect_min * effect_min), scale, ln_e;

	t->check_sum += d;
	t->check_squares += d * d;
	scale = 1 + rho * t->check_squares;
	ln_e = 0.5 * (rho * t->check_sum * t->check_sum / scale - log(scale));
	t->check_ln_e_max = fmax(t->check_ln_e_max, ln_e);
}

/* The effective alpha after n pairs, by the option `join`. */
static double alpha_at(double alpha, unsigned join, size_t n)
{
	return !join && n < PAIRED_JOIN_FROM ? alpha / PAIRED_EARLY : alpha;
}

static void track_add(struct paired_track *t, double d, double alpha, unsigned join,
		      double effect_min)
{
	if (!t->n)
		t->first = t->last = d;
	t->products += (t->last - t->first) * (d - t->first);
	t->sum += d - t->first;
	t->last = d;
	t->n++;
	for (unsigned i = 0; i < PAIRED_JOINS; i++) {
		t->waiting[i] += d;
		if (t->n % (1u << i))
			continue;
		/* Joined ones decide nothing early, so they may keep alpha. */
		paired_interval_add(&t->joined[i], t->waiting[i] / (double)(1u << i),
				    i ? alpha : alpha_at(alpha, join, t->n));
		t->waiting[i] = 0;
	}
	check_add(t, d, effect_min);
}

/*
 * Lag-1 correlation about the common mean. All sums are of d - first, so that a large common
 * difference costs no digits; the first of these is 0.
 */
static double track_correlation(const struct paired_track *t)
{
	double n = (double)t->n, mean = t->sum / n, last = t->last - t->first;

	if (t->n < 3)
		return NAN;
	if (t->joined[0].squares <= n * PAIRED_SD_MIN * PAIRED_SD_MIN)
		return 0;
	return (t->products - mean * (2 * t->sum - last) + (n - 1) * mean * mean) /
	       t->joined[0].squares;
}

unsigned paired_join(size_t n, double r)
{
	double unbiased = r + (1 + 4 * r) / (double)n;

	if (n < PAIRED_JOIN_FROM || unbiased <= PAIRED_JOIN_2)
		return 1;
	return unbiased > PAIRED_JOIN_4 ? 4 : 2;
}

static unsigned track_join(const struct paired *p, const struct paired_track *t)
{
	return p->opts.join ? p->opts.join : paired_join(t->n, track_correlation(t));
}

static const struct paired_interval *track_interval(const struct paired_track *t, unsigned join)
{
	return &t->joined[join == 4 ? 2 : join - 1];
}

/* ---- the run ---- */

static size_t judged(const struct paired_opts *o)
{
	size_t n = 0;

	for (size_t i = 0; i < o->n_metrics; i++)
		n += o->metric[i].is_judged;
	return n;
}

static double metric_alpha(const struct paired_opts *o, size_t metric)
{
	return o->metric[metric].is_judged ? o->alpha / (double)judged(o) : o->alpha;
}

void paired_init(struct paired *p, const struct paired_opts *opts)
{
	assert(opts->alpha > 0 && opts->alpha < 1);
	assert(opts->n_metrics >= 1 && opts->n_metrics <= PAIRED_METRICS_MAX);
	assert(opts->pairs_max >= 1 && opts->pairs_max <= PAIRED_PAIRS_MAX);
	assert(opts->seconds_max > 0);
	assert(opts->join <= 2 || opts->join == 4);
	assert(judged(opts) > 0);
	*p = (struct paired){ .opts = *opts, .coin = rng_fork(opts->seed, "order of a pair") };
	for (size_t i = 0; i < opts->n_metrics; i++) {
		assert(opts->metric[i].effect_min > 0);
		assert(opts->metric[i].better >= -1 && opts->metric[i].better <= 1);
		track_init(&p->track[i]);
	}
}

enum paired_side paired_toss(struct paired *p)
{
	assert(!p->is_tossed);
	p->is_tossed = true;
	return pcg64_u64(&p->coin) >> 63 ? PAIRED_B : PAIRED_A;
}

static enum paired_verdict settled(const struct paired *p, size_t metric,
				   const struct paired_interval *x)
{
	double least = log1p(p->opts.metric[metric].effect_min);
	int sign = x->low > 0 ? 1 : x->high < 0 ? -1 : 0;

	if (x->low > x->high)
		return PAIRED_MOVED;
	if (!sign)
		return x->low > -least && x->high < least ? PAIRED_NO_CHANGE : PAIRED_UNDECIDED;
	if (!p->opts.metric[metric].better)
		return PAIRED_DIFFERENT;
	return sign == p->opts.metric[metric].better ? PAIRED_BETTER : PAIRED_WORSE;
}

static enum paired_next stop_on_trouble(const struct paired *p)
{
	for (unsigned side = 0; side < 2; side++)
		if (p->failed[side] >= PAIRED_FAILED_MIN &&
		    (double)p->failed[side] > PAIRED_FAILED_STOP * (double)p->requests[side])
			return PAIRED_STOP_FAILING;
	for (size_t i = 0; i < p->opts.n_metrics; i++)
		if (p->opts.metric[i].is_judged && !p->track[i].n &&
		    p->track[i].missing >= PAIRED_MISSING_STOP)
			return PAIRED_STOP_MISSING;
	return PAIRED_GO_ON;
}

static bool is_settled(const struct paired *p)
{
	for (size_t i = 0; i < p->opts.n_metrics; i++) {
		const struct paired_track *t = &p->track[i];

		if (p->opts.metric[i].is_judged &&
		    settled(p, i, track_interval(t, track_join(p, t))) == PAIRED_UNDECIDED)
			return false;
	}
	return true;
}

static enum paired_next next(const struct paired *p)
{
	enum paired_next trouble = stop_on_trouble(p);
	double pair_s = p->pairs ? p->seconds / p->pairs : p->seconds_warm;

	if (trouble != PAIRED_GO_ON)
		return trouble;
	if (p->pairs && is_settled(p))
		return PAIRED_STOP_SETTLED;
	if (p->pairs >= p->opts.pairs_max)
		return PAIRED_STOP_PAIRS;
	if (p->seconds_warm + p->seconds + pair_s > p->opts.seconds_max)
		return PAIRED_STOP_TIME;
	return PAIRED_GO_ON;
}

static void count_requests(struct paired *p, const struct paired_pair *pair)
{
	for (unsigned side = 0; side < 2; side++) {
		assert(pair->failed[side] <= pair->requests[side]);
		p->requests[side] += pair->requests[side];
		p->failed[side] += pair->failed[side];
		p->output_tokens[side] += pair->output_tokens[side];
	}
}

enum paired_next paired_add(struct paired *p, const struct paired_pair *pair)
{
	assert(p->is_tossed && pair->seconds >= 0);
	p->is_tossed = false;
	if (!p->is_warm) {
		p->is_warm = true;
		p->seconds_warm = pair->seconds;
		return next(p);
	}
	p->pairs++;
	p->seconds += pair->seconds;
	count_requests(p, pair);
	for (size_t i = 0; i < p->opts.n_metrics; i++) {
		double d = log(pair->value[PAIRED_B][i]) - log(pair->value[PAIRED_A][i]);

		if (isfinite(d))
			track_add(&p->track[i], d, metric_alpha(&p->opts, i), p->opts.join,
				  p->opts.metric[i].effect_min);
		else
			p->track[i].missing++;
	}
	return next(p);
}

/* ---- what is said ---- */

static bool has_failed(const struct paired *p)
{
	for (unsigned side = 0; side < 2; side++)
		if (p->failed[side] >= PAIRED_FAILED_MIN &&
		    (double)p->failed[side] > PAIRED_FAILED_SHARE * (double)p->requests[side])
			return true;
	return false;
}

static bool did_other_work(const struct paired *p)
{
	double per[2];

	for (unsigned side = 0; side < 2; side++)
		per[side] = (double)p->output_tokens[side] /
			    fmax(1, (double)(p->requests[side] - p->failed[side]));
	return fabs(per[PAIRED_B] - per[PAIRED_A]) >
	       PAIRED_TOKENS_CHANGE * fmin(per[PAIRED_A], per[PAIRED_B]);
}

/* The least number of pairs whose half width settles the current mean. */
static size_t needed(const struct paired *p, size_t metric, const struct paired_interval *x,
		     unsigned joined)
{
	double alpha = metric_alpha(&p->opts, metric), sd, half;
	double least = log1p(p->opts.metric[metric].effect_min), off = fabs(x->mean);
	size_t low = 1, high = PAIRED_PAIRS_MAX / joined;

	if (x->n < 2)
		return 0;
	sd = paired_interval_sd(x);
	half = off < least ? fmax(off, least - off) : off;
	if (paired_half(high, sd, alpha) >= half)
		return 0;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (paired_half(middle, sd, alpha_at(alpha, p->opts.join, middle * joined)) < half)
			high = middle;
		else
			low = middle;
	}
	return high * joined;
}

void paired_result(const struct paired *p, size_t metric, struct paired_result *out)
{
	const struct paired_track *t = &p->track[metric];
	double alpha = metric_alpha(&p->opts, metric);
	double effect_min = p->opts.metric[metric].effect_min;
	const struct paired_interval *x;

	assert(metric < p->opts.n_metrics);
	*out = (struct paired_result){ .verdict = t->missing ? PAIRED_NO_VALUES : PAIRED_UNDECIDED,
				       .change = NAN, .low = -INFINITY,
				       .high = INFINITY, .level = 1 - alpha, .sd = NAN,
				       .pairs = t->n, .missing = t->missing, .joined = 1,
				       .correlation = track_correlation(t), .check_e = 1 };
	if (!t->n && has_failed(p))
		out->verdict = PAIRED_FAILED;
	if (!t->n)
		return;
	out->joined = track_join(p, t);
	x = track_interval(t, out->joined);
	out->verdict = has_failed(p) ? PAIRED_FAILED :
		       did_other_work(p) ? PAIRED_OTHER_WORK : settled(p, metric, x);
	out->change = expm1(t->first + t->sum / (double)t->n);
	if (isfinite(x->low)) {
		out->low = expm1(x->low);
		out->high = expm1(x->high);
		out->is_below = x->low > -log1p(effect_min) && x->high < log1p(effect_min);
		/* The interval is that of all looks so far, which this mean may have left. */
		if (x->low <= x->high)
			out->change = fmin(fmax(out->change, out->low), out->high);
	}
	if (t->n >= 2)
		out->sd = paired_interval_sd(&t->joined[0]);
	out->check_e = exp(t->check_ln_e_max);
	out->is_confirmed = out->check_e >= 1 / alpha;
	out->pairs_needed = needed(p, metric, x, out->joined);
}
