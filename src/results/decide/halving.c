/* SPDX-License-Identifier: Apache-2.0 */
/* halving.c - see halving.h. */
#include "results/decide/halving.h"

#include <assert.h>
#include <math.h>

#define Z_95 1.959963984540054

/* ---- the plan ---- */

void halving_begin(struct halving *h, const struct halving_opts *opts, struct halving_item *items,
		   size_t *order)
{
	double steps = log(opts->full / opts->first) / log(opts->eta);
	unsigned growing = 1 + (unsigned)fmax(0, ceil(steps - 0.25));

	assert(opts->n > 0 && opts->eta > 1 && opts->first > 0 && opts->first <= opts->full);
	assert(opts->repeats > 0);
	*h = (struct halving){ .opts = *opts, .item = items, .order = order };
	if (opts->n == 1)
		growing = 1;
	while (growing - 1 + opts->repeats > HALVING_ROUNDS_MAX)
		growing--;
	h->rounds = growing - 1 + opts->repeats;
	for (unsigned r = 0; r < h->rounds; r++) {
		double left = growing > 1 ? fmin(1, (double)r / (growing - 1)) : 1;
		double n = (double)opts->n / pow(opts->eta, r < growing ? r : growing - 1);

		h->length[r] = opts->first * pow(opts->full / opts->first, left);
		h->target[r] = r >= growing ? HALVING_LEAST : (size_t)ceil(n - 1e-9);
		h->target[r] = h->target[r] < HALVING_LEAST ? HALVING_LEAST : h->target[r];
		h->longer[r] = 1;
	}
	for (size_t i = 0; i < opts->n; i++)
		items[i] = (struct halving_item){ .value = NAN, .half = INFINITY };
	h->kept = opts->n;
}

static bool is_full(const struct halving *h, unsigned round)
{
	return h->length[round] >= h->opts.full * (1 - 1e-9);
}

/* ---- cost ---- */

/* Per unit of length when it is long: short rounds take longer than their share. */
static double unit_s(const struct halving *h, const struct halving_item *x)
{
	double s = x->unit_s;

	for (unsigned r = x->round + 1; r <= h->round; r++)
		s *= h->longer[r];
	return s;
}

/* Without the start. With a pace, the rest after the last request does not grow with the length. */
static double load_s(const struct halving *h, const struct halving_item *x, double length)
{
	if (!(x->unit_s > 0)) /* it ended before any load */
		return 0;
	return h->opts.pace_s > 0 ? length * h->opts.pace_s + x->rest_s : length * unit_s(h, x);
}

double halving_full_s(const struct halving *h)
{
	double sum = 0;

	for (size_t i = 0; i < h->opts.n; i++)
		sum += h->item[i].start_s + load_s(h, &h->item[i], h->opts.full);
	return h->spent_s > 0 ? sum : NAN;
}

static double full_load_s(const struct halving *h)
{
	double sum = 0;

	for (size_t i = 0; i < h->opts.n; i++)
		sum += load_s(h, &h->item[i], h->opts.full);
	return sum;
}

double halving_load_share(const struct halving *h)
{
	return h->loaded_s / full_load_s(h);
}

/* The two budgets: load, and total time including server starts. */
enum kind { LOAD, ALL, KINDS };

static double cost(const struct halving *h, size_t i, unsigned round, enum kind kind)
{
	return (kind == ALL ? h->item[i].start_s : 0) +
	       load_s(h, &h->item[i], h->length[round]);
}

static double left_s(const struct halving *h, enum kind kind)
{
	bool is_known = h->opts.pace_s > 0 || is_full(h, h->round);

	return kind == ALL ? h->opts.budget_s - h->spent_s :
			     (is_known ? HALVING_MARGIN_KNOWN : HALVING_MARGIN) * h->opts.share *
			     full_load_s(h) - h->loaded_s;
}

/* ---- what was measured ---- */

/* A server that is started again differs. */
static double joined(double half, unsigned times)
{
	return sqrt(half * half + Z_95 * Z_95 * HALVING_SCATTER * HALVING_SCATTER / times);
}

/* Counts a measurement's time, which predicts that of later ones. */
static void count(struct halving *h, size_t i, double start_s, double loaded_s)
{
	struct halving_item *x = &h->item[i];
	double length = h->length[h->round];

	x->round = h->round;
	x->start_s = start_s;
	x->unit_s = loaded_s / length;
	x->rest_s = fmax(0, loaded_s - length * h->opts.pace_s);
	h->spent_s += start_s + loaded_s;
	h->loaded_s += loaded_s;
}

void halving_tell(struct halving *h, size_t i, const struct halving_seen *seen)
{
	struct halving_item *x = &h->item[i];
	double length = h->length[h->round];

	assert(i < h->opts.n && x->fate == HALVING_IN && seen->value > 0);
	if (h->round) {
		h->seen_s += seen->load_s / length;
		h->expected_s += unit_s(h, x);
	}
	count(h, i, seen->start_s, seen->load_s);
	if (is_full(h, h->round) && !x->times++)
		x->sum = x->weight = 0;
	x->sum += length * log(seen->value);
	x->weight += length;
	x->value = exp(x->sum / x->weight);
	x->half = joined(seen->half, 1);
	if (!x->times)
		return;
	x->squares += seen->half * seen->half;
	x->half = joined(sqrt(x->squares) / x->times, x->times);
}

void halving_out(struct halving *h, size_t i, double start_s, double loaded_s)
{
	struct halving_item *x = &h->item[i];

	assert(i < h->opts.n && x->fate == HALVING_IN);
	if (h->round) {
		x->unit_s = unit_s(h, x); /* it might have taken as long as the others */
		x->round = h->round;
		h->spent_s += start_s + loaded_s;
		h->loaded_s += loaded_s;
	} else {
		count(h, i, start_s, loaded_s); /* at full length it would fail as early */
	}
	x->fate = HALVING_OUT;
}

/* ---- the order ---- */

/* Whether a ranks before b: measured longer, then better, then earlier. */
static bool is_before(const struct halving *h, size_t a, size_t b)
{
	const struct halving_item *x = &h->item[a], *y = &h->item[b];

	if (x->round != y->round)
		return x->round > y->round;
	if (x->value != y->value)
		return (x->value > y->value) == h->opts.is_highest;
	return a < b;
}

/* The last one of the first n to the top of a heap. */
static void sift(const struct halving *h, size_t from, size_t n)
{
	size_t *at = h->order;

	for (size_t child; (child = 2 * from + 1) < n; from = child) {
		size_t held = at[from];

		if (child + 1 < n && is_before(h, at[child], at[child + 1]))
			child++;
		if (!is_before(h, held, at[child]))
			return;
		at[from] = at[child];
		at[child] = held;
	}
}

size_t halving_order(const struct halving *h)
{
	size_t *at = h->order, n = 0;

	for (size_t i = 0; i < h->opts.n; i++)
		if (h->item[i].fate != HALVING_OUT && !isnan(h->item[i].value))
			at[n++] = i;
	for (size_t i = n / 2; i-- > 0;)
		sift(h, i, n);
	for (size_t end = n; end-- > 1;) {
		size_t first = at[0];

		at[0] = at[end];
		at[end] = first;
		sift(h, 0, end);
	}
	return n;
}

/* ---- the cut ---- */

/* Budget of the next round: a part of the rest, which keeps enough for two in later rounds. */
static double allowed_s(const struct halving *h, size_t n, enum kind kind)
{
	double left = left_s(h, kind), later = 0;
	unsigned to = h->round + 1;

	for (unsigned r = to + 1; r < h->rounds; r++)
		for (size_t k = 0; k < n && k < HALVING_LEAST; k++)
			later += cost(h, h->order[k], r, kind);
	return to + 1 == h->rounds ? left : fmin(left * HALVING_NEXT, left - later);
}

static bool reaches(const struct halving *h, size_t i, double value)
{
	double above = log(h->item[i].value / value);

	return (h->opts.is_highest ? above : -above) +
	       fmin(h->item[i].half, HALVING_UNKNOWN) >= 0;
}

/* Subtracts the candidate's cost in the next round from the room, if it fits. */
static bool takes(const struct halving *h, size_t i, double *room)
{
	bool fits = true;

	for (enum kind k = LOAD; k < KINDS; k++)
		fits = fits && cost(h, i, h->round + 1, k) <= room[k];
	for (enum kind k = LOAD; fits && k < KINDS; k++)
		room[k] -= cost(h, i, h->round + 1, k);
	return fits;
}

/* Cuts the first n of the order, which are in. False: the next round exceeds the budget. */
static bool cut(struct halving *h, size_t n)
{
	size_t target = h->target[h->round + 1], last = target < n ? target : n;
	double room[KINDS] = { allowed_s(h, n, LOAD), allowed_s(h, n, ALL) };
	double left[KINDS] = { left_s(h, LOAD), left_s(h, ALL) };
	bool is_full_up = false;

	/* The last rounds may have all that is left. */
	for (size_t k = 0; k < n && k < HALVING_LEAST; k++)
		if (!takes(h, h->order[k], left))
			return false;
	for (enum kind k = LOAD; k < KINDS; k++)
		if (isfinite(room[k]))
			room[k] = fmax(room[k], left_s(h, k) - left[k]);
	h->cut = h->item[h->order[last - 1]].value;
	h->kept = h->n_overlap = h->n_forced = 0;
	for (size_t k = 0; k < n; k++) {
		size_t i = h->order[k];

		if (k >= target && !reaches(h, i, h->cut)) {
			h->item[i].fate = HALVING_BELOW;
		} else if (is_full_up || !takes(h, i, room)) {
			is_full_up = true; /* a cheaper one after it does not replace it */
			h->item[i].fate = HALVING_FORCED;
			h->n_forced++;
		} else {
			h->kept++;
			h->n_overlap += k >= target;
		}
	}
	return true;
}

bool halving_next(struct halving *h)
{
	size_t n = 0, in = 0;

	assert(!h->is_over);
	if (h->seen_s > 0 && h->expected_s > 0 && !is_full(h, h->round - 1))
		h->longer[h->round] = h->seen_s / h->expected_s;
	h->seen_s = h->expected_s = 0;
	n = halving_order(h);
	while (in < n && h->item[h->order[in]].fate == HALVING_IN)
		in++;
	h->is_over = in == 0 || h->round + 1 == h->rounds;
	if (!h->is_over && !cut(h, in))
		h->is_over = h->is_cut_short = true;
	if (!h->is_over)
		h->round++;
	return !h->is_over;
}
