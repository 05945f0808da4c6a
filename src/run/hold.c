/* SPDX-License-Identifier: Apache-2.0 */
/* hold.c - see hold.h. */
#include "run/hold.h"

#include <math.h>

#include "run/find.h"

#define WARMUP_S 2.0

static void tell_verdict(const struct holds_answer *a, double have, struct buf *out)
{
	if (a->verdict == HOLDS_PASSES)
		buf_add_text(out, "holds");
	else if (a->verdict == HOLDS_FAILS)
		buf_add_text(out, "does not hold");
	else if (isfinite(a->requests_more) && a->requests_more > 0)
		buf_printf(out, "not enough requests: about %.0f more (--num-prompts %.0f)",
			   ceil(a->requests_more), ceil(have + a->requests_more));
	else
		buf_add_text(out, "not enough requests");
	buf_add_text(out, ".\n");
}

static enum holds tell_share(const char *text, double quantile, const struct level *l, size_t j,
			     struct buf *out)
{
	struct level_count c = level_count(l, j);
	struct holds_answer a = holds_share(c.n, c.slow, level_dispersion_joined(l, j), quantile);

	buf_printf(out, "  %s: %.0f of %.0f requests are beyond it (%.2f %%, %.3g %% allowed): ", text,
		   c.slow, c.n, c.n > 0 ? 100 * c.slow / c.n : 0, 100 * (1 - quantile));
	tell_verdict(&a, (double)l->requests, out);
	return a.verdict;
}

static enum holds tell_mean(const struct slo_limit *limit, const struct level *l, size_t j,
			    struct buf *out)
{
	struct holds_answer a = holds_mean(l, j, limit->limit_s, false);

	buf_printf(out, "  %s: mean %.4g ms: ", limit->text, 1000 * level_mean(l, j).mean);
	tell_verdict(&a, (double)l->requests, out);
	return a.verdict;
}

/* The worst: one that fails, else one that is open. */
static void worsen(enum holds *all, enum holds one)
{
	if (one == HOLDS_FAILS || (one == HOLDS_OPEN && *all == HOLDS_PASSES))
		*all = one;
}

static enum holds tell_limits(const struct slo *slo, const struct serve_opts *o,
			      const struct level *l, struct buf *out)
{
	enum holds all = HOLDS_PASSES;

	for (size_t j = 0; j < slo->n; j++)
		worsen(&all, slo->limit[j].is_mean ? tell_mean(&slo->limit[j], l, j, out) :
			     tell_share(slo->limit[j].text, slo->limit[j].quantile, l, j, out));
	if (l->failed)
		worsen(&all, tell_share("failed requests", 1 - CAPACITY_FAILED_SHARE, l, slo->n, out));
	if (!isinf(o->request_rate) && !holds_carried(l)) {
		worsen(&all, HOLDS_FAILS);
		buf_add_text(out, "  The offered rate was not carried.\n");
	} else if (!isinf(o->request_rate) && all == HOLDS_PASSES && holds_ttft_grows(l)) {
		worsen(&all, HOLDS_OPEN);
		buf_add_text(out, "  TTFT still grew while the run lasted; give it more --num-prompts.\n");
	}
	return all;
}

static const struct trust_reason *spoiling(const struct slo *slo, const struct trust *t)
{
	for (size_t i = 0; i < t->n_reasons; i++)
		if (t->reason[i].level == TRUST_INVALID &&
		    t->reason[i].spoils & slo_trust_bits(slo) && !find_is_by_load(&t->reason[i]))
			return &t->reason[i];
	return NULL;
}

enum holds hold_tell(const struct slo *slo, const struct serve_opts *o, const struct point *p,
		     const struct scored *scored, struct buf *out)
{
	static const char *const words[] = {
		[HOLDS_PASSES] = "holds", [HOLDS_FAILS] = "does not hold",
		[HOLDS_OPEN] = "cannot be decided yet",
	};
	const struct trust_reason *spoilt = spoiling(slo, &scored->trust);
	struct buf limits = { 0 };
	struct level l = { .load = o->request_rate };
	bool is_closed = isinf(o->request_rate) || p->plan.n != p->plan.n_roots;
	enum holds all;

	find_level_of(slo, p, &scored->metrics, is_closed, WARMUP_S, INFINITY, &l);
	all = l.attempted ? tell_limits(slo, o, &l, &limits) : HOLDS_OPEN;
	if (spoilt) {
		buf_reset(&limits);
		buf_printf(&limits, "  %s\n", spoilt->text);
		all = HOLDS_OPEN;
	}
	if (isinf(o->request_rate))
		buf_printf(out, "This load %s within the limits, by %llu requests after the warm-up:\n",
			   words[all], (unsigned long long)l.attempted);
	else
		buf_printf(out, "%.4g requests/s %s within the limits, by %llu requests after the "
			   "warm-up:\n", o->request_rate, words[all], (unsigned long long)l.attempted);
	buf_add_str(out, buf_str(&limits));
	buf_release(&limits);
	return all;
}
