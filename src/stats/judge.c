/* SPDX-License-Identifier: Apache-2.0 */
/* judge.c - see judge.h. */
#include "stats/judge.h"

#include <math.h>
#include <string.h>

#include "base/str.h"
#include "stats/compare.h"
#include "stats/stats.h"

/* The standard deviation of one value relative to its mean, from both samples. */
static double pooled_cv(const double *a, size_t na, const double *b, size_t nb)
{
	double sa = stats_std(a, na) / fabs(stats_mean(a, na));
	double sb = stats_std(b, nb) / fabs(stats_mean(b, nb));
	double n = (double)na, m = (double)nb;

	return sqrt((n * sa * sa + m * sb * sb) / (n + m - 2));
}

struct contrast contrast_test(const double *a, size_t n, double median_a, const double *b, size_t m,
			      double median_b, double level)
{
	struct contrast c = { NAN, { NAN, NAN }, NAN, NAN, NAN, NAN, false };
	struct mann_whitney ranks;
	struct ratio r;

	if (!n || !m)
		return c;
	if (fabs(median_a) > 0)
		c.delta = (median_b - median_a) / fabs(median_a);
	ranks = mann_whitney_test(a, n, b, m);
	c.p_ranks = ranks.p;
	c.superiority = ranks.superiority;
	r = ratio_test(a, n, b, m, level);
	if (!isnan(r.ratio)) {
		c.is_ratio = true;
		c.p = r.p;
		c.interval = (struct interval){ r.interval.low - 1, r.interval.high - 1 };
	} else {
		struct welch w = welch_test(a, n, b, m, level);
		double whole = fabs(stats_mean(a, n));

		c.p = w.p;
		if (whole > 0)
			c.interval = (struct interval){ w.interval.low / whole,
							w.interval.high / whole };
	}
	if (n + m > 2)
		c.cv = pooled_cv(a, n, b, m);
	return c;
}

bool judge_is_enough(size_t n, size_t m)
{
	return n >= COMPARE_REPEATS_MIN && m >= COMPARE_REPEATS_MIN;
}

enum judged judge_change(const struct contrast *c, double q, double median_a, double median_b,
			 size_t n, size_t m, int better, double effect_min, double alpha)
{
	double change = isnan(c->delta) ? median_b - median_a : c->delta;
	bool is_large = isnan(c->delta) ? fabs(change) > 0 : fabs(change) >= effect_min;

	if (!n || !m)
		return JUDGED_MISSING;
	if (!judge_is_enough(n, m))
		return JUDGED_NOT_ENOUGH;
	if (!(q <= alpha) || !is_large)
		return JUDGED_NO_EVIDENCE;
	if (!better)
		return JUDGED_CHANGED;
	return (change > 0) == (better > 0) ? JUDGED_BETTER : JUDGED_WORSE;
}

/* The percentile a name is about: p99.9_itl_ms, percentiles.99; 0: none. */
static double percentile_of(const char *metric)
{
	static const char nested[] = "percentiles.";
	const char *digits = strncmp(metric, nested, sizeof(nested) - 1) == 0 ?
				     metric + sizeof(nested) - 1 :
			     *metric == 'p' ? metric + 1 : "";
	double p = 0;

	return str_to_f64((struct str){ digits, strspn(digits, "0123456789.") }, &p) ? p : 0;
}

double judge_effect_min(const char *metric)
{
	return percentile_of(metric) >= 99 ? JUDGE_EFFECT_MIN_TAIL : JUDGE_EFFECT_MIN;
}
