/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.c - see compare.h: turns metrics into rows and gives rows their verdicts.
 * compare_gather.c prepares the runs and makes the estimates; compare_notes.c has the notes.
 */
#include "results/decide/compare.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/stats/significance.h"
#include "results/decide/compare_internal.h"

/* ---- the table of configurations ---- */

static struct matched_config config_of(const struct pairing *p, const struct used *u)
{
	struct matched_config c = { .index = u->config, .name = p->out->config[u->config] };

	for (unsigned k = 0; k < 2; k++) {
		c.runs[k] = u->runs[k];
		c.sessions[k] = u->n[k];
		c.session[k] = arena_alloc(p->a, (u->n[k] + 1) * sizeof(*c.session[k]));
		for (size_t j = 0; j < u->n[k]; j++) {
			const struct mean *m = &u->mean[k][j];

			c.session[k][j] = u->is_positive ? exp(m->ln) : m->sum / (double)m->runs;
		}
	}
	return c;
}

static int by_change(const void *x, const void *y, void *arg)
{
	const struct matched_config *a = x, *b = y;
	double way = *(const int *)arg < 0 ? -1 : 1;
	double u = isnan(a->is.ratio) ? 0 : way * a->is.ratio;
	double v = isnan(b->is.ratio) ? 0 : way * b->is.ratio;

	if (!a->apart != !b->apart)
		return a->apart ? 1 : -1;
	if (u < v || u > v)
		return u < v ? -1 : 1;
	return (a->index > b->index) - (a->index < b->index);
}

/* Signs of those whose own interval, adjusted for their number, excludes no change. */
static void mark_evident(struct matched_estimate *const *is, int *const *evident, size_t n,
			 double alpha)
{
	double *q = mem_array(n + 1, sizeof(*q));

	for (size_t i = 0; i < n; i++)
		q[i] = is[i]->p;
	compare_adjust(q, n);
	for (size_t i = 0; i < n; i++)
		*evident[i] = q[i] <= alpha ? (is[i]->ratio > 1) - (is[i]->ratio < 1) : 0;
	free(q);
}

static void fill_configs(const struct pairing *p, struct used *used, size_t n,
			 struct matched_row *row, struct estimator *by)
{
	struct matched_estimate **is = mem_array(n + 1, sizeof(*is));
	int **evident = mem_array(n + 1, sizeof(*evident));
	int better = row->metric->better;
	size_t tested = 0;

	row->config = arena_alloc(p->a, (n + 1) * sizeof(*row->config));
	for (size_t i = 0; i < n; i++) {
		struct matched_config *c = &row->config[row->n_configs++];
		struct used *one = &used[i];

		*c = config_of(p, one);
		c->is = matched_estimate_of(by, &one, 1, NULL);
		c->apart = one->apart;
		if (c->apart)
			continue;
		is[tested] = &c->is;
		evident[tested++] = &c->evident;
	}
	mark_evident(is, evident, tested, p->spec->alpha);
	for (size_t i = 0; i < tested; i++) {
		row->evident_up += *evident[i] > 0;
		row->evident_down += *evident[i] < 0;
	}
	free(is);
	free(evident);
	if (n)
		qsort_r(row->config, n, sizeof(*row->config), by_change, &better);
}

/* A load's configurations are estimated like all of them, and each counts its clusters. */
static void fill_loads(const struct pairing *p, struct used **good, size_t n,
		       struct matched_row *row, struct estimator *by)
{
	struct used **of = mem_array(n + 1, sizeof(*of));
	size_t *load = mem_array(n + 1, sizeof(*load));
	struct matched_estimate **is;
	int **evident;
	struct map known = { 0 };

	for (size_t i = 0; i < n; i++)
		load[i] = !good[i]->load ? SIZE_MAX :
			matched_place(&known, good[i]->load, &row->n_loads);
	map_release(&known);
	if (row->n_loads < 2)
		row->n_loads = 0;
	row->load = arena_alloc(p->a, (row->n_loads + 1) * sizeof(*row->load));
	is = mem_array(row->n_loads + 1, sizeof(*is));
	evident = mem_array(row->n_loads + 1, sizeof(*evident));
	for (size_t l = 0; l < row->n_loads; l++) {
		size_t m = 0;

		for (size_t i = 0; i < n; i++)
			if (load[i] == l)
				of[m++] = good[i];
		row->load[l].name = of[0]->load;
		row->load[l].is = matched_estimate_of(by, of, m, NULL);
		is[l] = &row->load[l].is;
		evident[l] = &row->load[l].evident;
	}
	mark_evident(is, evident, row->n_loads, p->spec->alpha);
	free(of);
	free(load);
	free(is);
	free(evident);
}

/* ---- a metric becomes a row ---- */

static bool does_fail(const struct pairing *p, const struct matched_metric *metric, size_t config,
		      unsigned guard)
{
	return fabs(p->doubt[config][guard].far) > matched_guard_limit(metric, guard);
}

/* Sets configurations apart by guards and by missing logarithms. Returns how many are left. */
static size_t set_apart(const struct pairing *p, struct used *used, size_t n,
			struct matched_row *row, struct used **good, size_t *not_positive)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		struct used *u = &used[i];
		bool has_no_ratio = !u->is_positive && !u->is_flat;

		for (unsigned g = 0; g < PAIR_GUARDS && !u->apart; g++)
			if (does_fail(p, row->metric, u->config, g))
				u->apart = p->doubt[u->config][g].text;
		if (has_no_ratio) {
			u->apart = "values at or below 0";
			(*not_positive)++;
		}
		row->apart += u->apart != NULL;
		if (!u->apart)
			good[kept++] = u;
	}
	return kept;
}

/* Why the metric cannot be compared, in words; NULL: it can. */
static const char *incomparable(const struct pairing *p, const struct matched_row *row, size_t n,
				size_t kept, size_t not_positive)
{
	size_t failed[PAIR_GUARDS] = { 0 };
	bool is_any = false, is_all = false;
	bool is_few = (double)(n - kept) <= MATCHED_APART_SHARE_MAX * (double)n;

	if (not_positive)
		return arena_printf(p->a, "values at or below 0, of which there is no ratio, in %zu of "
				    "%zu configuration%s", not_positive, n, n == 1 ? "" : "s");
	for (unsigned g = 0; g < PAIR_GUARDS; g++) {
		for (size_t i = 0; i < p->out->n_configs; i++)
			failed[g] += does_fail(p, row->metric, i, g);
		is_any |= failed[g] > 0;
		is_all |= failed[g] && fabs(p->doubt_mean[g]) > matched_guard_limit(row->metric, g);
	}
	if (!is_any || (kept && p->spec->is_comparable_only) || (is_few && !is_all))
		return NULL;
	for (unsigned g = 0; g < PAIR_GUARDS; g++)
		if (failed[g])
			return p->out->n_configs == 1 ? p->doubt_worst[g] :
				arena_printf(p->a, "%s, and similar values in %zu of %zu "
						   "configurations", p->doubt_worst[g], failed[g],
					     p->out->n_configs);
	return NULL;
}

static void no_answer(struct matched_row *row, enum matched_verdict verdict, enum matched_why why,
		      const char *reason)
{
	row->verdict = verdict;
	row->why = why;
	row->reason = reason;
}

static const char *without_values(const struct pairing *p, const struct matched_row *row,
				  enum matched_why *why)
{
	for (unsigned k = 0; k < 2; k++) {
		const char *side = p->spec->side[k ? p->out->side : 0];

		if (row->runs[k])
			continue;
		if (matched_has_no_success(p->spec, k ? p->out->side : 0)) {
			*why = MATCHED_WHY_GUARD;
			return arena_printf(p->a, "every request of %s failed", side);
		}
		*why = row->invalid[k] ? MATCHED_WHY_INVALID : MATCHED_WHY_MISSING;
		return row->invalid[k] ?
			arena_printf(p->a, "it is INVALID in every run of %s that has it (%zu)",
				     side, row->invalid[k]) :
			arena_printf(p->a, "%s has no value of it", side);
	}
	*why = MATCHED_WHY_UNMATCHED;
	return "no configuration has it on both sides";
}

/* No number that looks like an answer. */
static void hide(struct matched_row *row)
{
	row->is.interval = row->is.narrow = (struct interval){ NAN, NAN };
	row->is.p = row->q = row->p_sign = row->p_ranks = row->p_differ = NAN;
}

static void count_signs(struct matched_row *row, struct used **good, size_t n,
			const struct clusters *c)
{
	double mean = 0, squares = 0;

	for (size_t i = 0; i < n; i++) {
		row->up += good[i]->d > 0;
		row->down += good[i]->d < 0;
		row->equal += !(fabs(good[i]->d) > 0);
		mean += good[i]->d / (double)n;
		for (unsigned k = 0; k < 2; k++)
			row->sessions[k] += good[i]->n[k];
	}
	for (size_t i = 0; i < n; i++)
		squares += (good[i]->d - mean) * (good[i]->d - mean);
	row->spread = n > 1 ? sqrt(squares / (double)(n - 1)) : NAN;
	for (size_t i = 0; i < c->n; i++) {
		row->clusters_up += c->d[i] > 0;
		row->clusters_down += c->d[i] < 0;
	}
	row->p_sign = sign_test(row->clusters_up, row->clusters_down);
	row->p_ranks = c->n >= MATCHED_RANKS_MIN ? signed_rank_test(c->d, c->n) : NAN;
	row->p_differ = c->p_differ;
}

/* Two one-sided tests: the narrow interval is within D. */
static bool is_small(const struct matched_row *row)
{
	double d = log1p(row->metric->effect_min);

	return log(row->is.narrow.low) > -d && log(row->is.narrow.high) < d;
}

static struct matched_row row_of(const struct pairing *p, size_t metric)
{
	const struct matched_metric *m = &p->spec->metric[metric];
	struct matched_row row = { .metric = m, .is_primary = metric == p->spec->primary,
				   .is = matched_no_estimate(), .q = NAN, .p_sign = NAN,
				   .p_ranks = NAN, .spread = NAN, .p_differ = NAN };
	struct estimator by = { .nodes = p->sessions, .alpha = p->spec->alpha };
	struct clusters clusters = { .p_differ = NAN };
	size_t n, kept, not_positive = 0;
	struct used *used = matched_collect(p, metric, &row, &n), **good;
	const char *why;

	good = mem_array(n + 1, sizeof(*good));
	kept = set_apart(p, used, n, &row, good, &not_positive);
	why = incomparable(p, &row, n, kept, not_positive);
	if (!kept && why) /* shown next to the reason */
		for (size_t i = 0; i < n; i++)
			if (used[i].is_positive || used[i].is_flat)
				good[kept++] = &used[i];
	row.is = matched_estimate_of(&by, good, kept, &clusters);
	count_signs(&row, good, kept, &clusters);
	fill_configs(p, used, n, &row, &by);
	fill_loads(p, good, kept, &row, &by);
	if (!n) {
		enum matched_why missing;
		const char *reason = without_values(p, &row, &missing);

		no_answer(&row, missing == MATCHED_WHY_GUARD ? MATCHED_NOT_COMPARABLE
							     : MATCHED_NOT_ENOUGH, missing, reason);
	} else if (why) {
		no_answer(&row, MATCHED_NOT_COMPARABLE,
			  not_positive ? MATCHED_WHY_NOT_POSITIVE : MATCHED_WHY_GUARD, why);
		hide(&row);
	} else if (!is_small(&row) && !(row.is.p <= p->spec->alpha)) {
		row.need = matched_need_of(&by, good, kept, &row.is, m->effect_min);
	}
	matched_clusters_release(&clusters);
	matched_estimator_release(&by);
	free(good);
	return row;
}

/* ---- verdicts ---- */

/* Evidence of both signs, each by D or more, among configurations or among loads. */
static bool is_mixed(const struct matched_row *row)
{
	double d = log1p(row->metric->effect_min);
	bool up = false, down = false, load_up = false, load_down = false;

	for (size_t i = 0; i < row->n_configs; i++) {
		double ln = log(row->config[i].is.ratio);

		up |= row->config[i].evident > 0 && ln >= d;
		down |= row->config[i].evident < 0 && ln <= -d;
	}
	for (size_t i = 0; i < row->n_loads; i++) {
		double ln = log(row->load[i].is.ratio);

		load_up |= row->load[i].evident > 0 && ln >= d;
		load_down |= row->load[i].evident < 0 && ln <= -d;
	}
	return (up && down) || (load_up && load_down);
}

/* Better, with fewer requests within the goodput limits, is not a gain; the reverse not a loss. */
static bool is_contradicted(const struct matched_pair *pair, const struct matched_row *row, int way)
{
	return row->metric->guards & MATCHED_GUARD_GOOD && way * pair->good < 0;
}

static void judge(const struct matched_pair *pair, struct matched_row *row, double alpha,
		  struct arena *a)
{
	double d = log1p(row->metric->effect_min), low = log(row->is.interval.low);
	double high = log(row->is.interval.high);
	bool is_little = is_small(row);
	int way = row->metric->better * ((row->is.ratio > 1) - (row->is.ratio < 1));
	const char *unit = row->is.rule == MATCHED_BY_CLUSTERS ? "configuration" : "session";

	if (row->why != MATCHED_WHY_NONE)
		return;
	row->do_effects_differ = row->p_differ <= MATCHED_DIFFER_ALPHA ||
				 (row->evident_up && row->evident_down) || is_mixed(row);
	if (row->is.rule == MATCHED_BY_NOTHING) {
		no_answer(row, MATCHED_NOT_ENOUGH, MATCHED_WHY_DESIGN,
			  arena_printf(a, "%zu and %zu server sessions over %zu configuration%s are "
				       "too few for an interval", row->sessions[0], row->sessions[1],
				       row->is.configs, row->is.configs == 1 ? "" : "s"));
		return;
	}
	if (row->q <= alpha && is_contradicted(pair, row, way)) {
		no_answer(row, MATCHED_NOT_COMPARABLE, MATCHED_WHY_GUARD, pair->good_text);
		hide(row);
		return;
	}
	row->is_beyond_d = low > d || high < -d;
	row->do_ranks_disagree = row->is.p <= alpha && row->p_ranks > alpha;
	if (is_mixed(row))
		row->verdict = MATCHED_MIXED;
	else if (row->q <= alpha && !way)
		row->verdict = is_little ? MATCHED_CHANGED_SMALL : MATCHED_CHANGED;
	else if (row->q <= alpha && way > 0)
		row->verdict = is_little ? MATCHED_BETTER_SMALL : MATCHED_BETTER;
	else if (row->q <= alpha)
		row->verdict = is_little ? MATCHED_WORSE_SMALL : MATCHED_WORSE;
	else if (is_little)
		row->verdict = MATCHED_NO_CHANGE;
	else if (row->is.p <= alpha)
		no_answer(row, MATCHED_NOT_ENOUGH, MATCHED_WHY_CHANCE,
			  "with this many metrics such an interval occurs by chance");
	else
		no_answer(row, MATCHED_NOT_ENOUGH, MATCHED_WHY_WIDE,
			  arena_printf(a, "%ss vary too much for so few of them", unit));
}

/* Adds the rows that have a p, of primary metrics or of all others. Returns how many there are. */
static size_t add_rows(const struct matched *m, bool is_primary, struct matched_row **row, size_t n)
{
	for (size_t i = 0; i < m->n_pairs; i++)
		for (size_t k = 0; !m->pair[i].refusal && k < m->spec->n_metrics; k++) {
			struct matched_row *one = &m->pair[i].row[k];

			if (one->is_primary == is_primary && !isnan(one->is.p))
				row[n++] = one;
		}
	return n;
}

/* Benjamini and Hochberg over the primary metrics' rows, and over all others. */
static void adjust(const struct matched *m, size_t n)
{
	size_t all = 0;
	struct matched_row **row;
	double *p;

	for (size_t i = 0; i < n; i++)
		all += m[i].n_pairs * m[i].spec->n_metrics;
	p = mem_array(all + 1, sizeof(*p));
	row = mem_array(all + 1, sizeof(*row));
	for (int is_primary = 0; is_primary < 2; is_primary++) {
		size_t count = 0;

		for (size_t i = 0; i < n; i++)
			count = add_rows(&m[i], is_primary, row, count);
		for (size_t i = 0; i < count; i++)
			p[i] = row[i]->is.p;
		compare_adjust(p, count);
		for (size_t i = 0; i < count; i++)
			row[i]->q = p[i];
	}
	free(p);
	free(row);
}

/* ---- everything ---- */

static bool is_nothing_but_invalid(const struct pairing *p)
{
	bool is_any = false;

	for (size_t m = 0; m < p->spec->n_metrics; m++) {
		const struct matched_row *row = &p->out->row[m];

		if (row->why != MATCHED_WHY_INVALID && row->why != MATCHED_WHY_MISSING)
			return false;
		is_any |= row->why == MATCHED_WHY_INVALID;
	}
	return is_any;
}

static void refuse(struct matched_pair *out, enum matched_refusal refusal, const char *reason)
{
	out->refusal = refusal;
	out->reason = reason;
}

static void compare_pair(const struct matched_spec *spec, struct arena *a, size_t side,
			 struct matched_pair *out)
{
	struct pairing p = { .spec = spec, .a = a, .out = out };
	const char *name[2] = { spec->side[0], spec->side[side] };
	unsigned empty;

	*out = (struct matched_pair){ .side = side };
	out->row = arena_alloc(a, (spec->n_metrics + 1) * sizeof(*out->row));
	matched_gather(&p);
	empty = out->runs[0] ? 1 : 0;
	if (!out->runs[empty] && out->shared) {
		refuse(out, MATCHED_REFUSED_SAME, out->runs[!empty] ?
			       arena_printf(a, "every run of %s is also a run of %s", name[empty],
					    name[!empty]) :
			       arena_printf(a, "%s and %s are the same runs", name[0], name[1]));
		return;
	}
	if (!out->runs[empty]) {
		refuse(out, MATCHED_REFUSED_EMPTY, arena_printf(a, "%s has no run", name[empty]));
		return;
	}
	if (!out->n_configs) {
		refuse(out, MATCHED_REFUSED_UNMATCHED,
		       arena_printf(a, "%s and %s have no configuration in common (%zu against %zu)",
				    name[0], name[1], out->n_alone[0], out->n_alone[1]));
		return;
	}
	matched_prepare(&p);
	for (size_t m = 0; m < spec->n_metrics; m++)
		out->row[m] = row_of(&p, m);
	if (spec->n_metrics && is_nothing_but_invalid(&p))
		refuse(out, MATCHED_REFUSED_INVALID,
		       arena_printf(a, "every run of %s that could be compared is INVALID",
				    out->row[0].runs[0] ? name[1] : name[0]));
}

static void compare_pairs(const struct matched_spec *spec, struct arena *a, struct matched *out)
{
	assert(spec->n_sides >= 2 && spec->alpha > 0 && spec->alpha < 0.5);
	for (size_t m = 0; m < spec->n_metrics; m++)
		assert(spec->metric[m].effect_min > 0);
	*out = (struct matched){ .spec = spec, .n_pairs = spec->n_sides - 1 };
	out->pair = arena_alloc(a, out->n_pairs * sizeof(*out->pair));
	for (size_t i = 0; i < out->n_pairs; i++)
		compare_pair(spec, a, i + 1, &out->pair[i]);
}

void matched_compare_all(const struct matched_spec *spec, size_t n, struct arena *a,
			 struct matched *out)
{
	for (size_t c = 0; c < n; c++)
		compare_pairs(&spec[c], a, &out[c]);
	adjust(out, n);
	for (size_t c = 0; c < n; c++)
		for (size_t i = 0; i < out[c].n_pairs; i++) {
			struct matched_pair *pair = &out[c].pair[i];

			for (size_t m = 0; !pair->refusal && m < spec[c].n_metrics; m++)
				judge(pair, &pair->row[m], spec[c].alpha, a);
		}
}

void matched_compare(const struct matched_spec *spec, struct arena *a, struct matched *out)
{
	matched_compare_all(spec, 1, a, out);
}

/* ---- a comparison in words and as JSON; see compare.h ---- */

#define DIGITS_MAX 10        /* above ten times as much, a change has no decimals */

static const struct { const char *key, *words; } verdicts[] = {
	[MATCHED_BETTER] = { "better", "better" },
	[MATCHED_WORSE] = { "worse", "worse" },
	[MATCHED_BETTER_SMALL] = { "better_small", "better, but by less than" },
	[MATCHED_WORSE_SMALL] = { "worse_small", "worse, but by less than" },
	[MATCHED_CHANGED] = { "changed", "changed" },
	[MATCHED_CHANGED_SMALL] = { "changed_small", "changed, but by less than" },
	[MATCHED_NO_CHANGE] = { "no_change", "no change above" },
	[MATCHED_MIXED] = { "mixed", "better for some configurations, worse for others" },
	[MATCHED_NOT_ENOUGH] = { "not_enough_data", "not enough data" },
	[MATCHED_NOT_COMPARABLE] = { "not_comparable", "not comparable" },
};

const char *matched_verdict_key(enum matched_verdict v)
{
	return verdicts[v].key;
}

const char *matched_verdict_words(const struct matched_row *row, struct arena *a)
{
	double d = row->metric->effect_min * 100;

	switch (row->verdict) {
	case MATCHED_BETTER:
	case MATCHED_WORSE:
	case MATCHED_CHANGED:
		return row->is_beyond_d ?
			arena_printf(a, "%s by at least %.3g %%", verdicts[row->verdict].words, d) :
			verdicts[row->verdict].words;
	case MATCHED_BETTER_SMALL:
	case MATCHED_WORSE_SMALL:
	case MATCHED_CHANGED_SMALL:
	case MATCHED_NO_CHANGE:
		return arena_printf(a, "%s %.3g %%", verdicts[row->verdict].words, d);
	case MATCHED_MIXED:
		return row->metric->better ? verdicts[MATCHED_MIXED].words :
			"larger for some configurations, smaller for others";
	default:
		return verdicts[row->verdict].words;
	}
}

/* ---- sentences ---- */

static void add_change(struct buf *out, double ratio)
{
	double change = (ratio - 1) * 100;

	buf_printf(out, fabs(change) < 100 * DIGITS_MAX ? "%+.1f %%" : "%+.4g %%", change);
}

static void add_interval(struct buf *out, const struct matched *m, const struct matched_row *row)
{
	if (!isfinite(row->is.interval.low) || !isfinite(row->is.interval.high))
		return;
	buf_printf(out, "%.3g %% interval ", (1 - m->spec->alpha) * 100);
	add_change(out, row->is.interval.low);
	buf_add_text(out, " to ");
	add_change(out, row->is.interval.high);
	buf_add_text(out, "; ");
}

static void add_counts(struct buf *out, const struct matched_row *row)
{
	size_t most = row->up >= row->down ? row->up : row->down;

	if (row->equal == row->is.configs)
		buf_printf(out, "equal in all of %zu configuration%s", row->is.configs,
			   row->is.configs == 1 ? "" : "s");
	else
		buf_printf(out, "%s in %zu of %zu configuration%s",
			   row->up >= row->down ? "higher" : "lower", most, row->is.configs,
			   row->is.configs == 1 ? "" : "s");
}

static void add_need(struct buf *out, const struct matched_row *row)
{
	const struct matched_need *n = &row->need;

	if (row->why != MATCHED_WHY_DESIGN && row->why != MATCHED_WHY_WIDE)
		return;
	if (!n->sessions && !n->clusters) {
		buf_add_text(out, "; at this scatter even 1,000 repeats would not be enough");
		return;
	}
	buf_add_text(out, n->from == MATCHED_FROM_RUNS ? "; at least " : "; about ");
	if (n->clusters)
		buf_printf(out, "%zu configurations, each on its own server%s", n->clusters,
			   n->sessions ? ", or " : "");
	if (n->sessions)
		buf_printf(out, "%zu server sessions a side%s", n->sessions,
			   n->clusters ? " of each of these," :
			   row->is.configs > 1 ? " of each configuration" : "");
	buf_add_text(out, " are needed");
	if (n->from == MATCHED_SUPPOSED)
		buf_printf(out, " if sessions scatter by %.3g %%", MATCHED_SCATTER_USUAL * 100);
}

static void add_cautions(struct buf *out, const struct matched_row *row)
{
	double low = INFINITY, high = 0;

	if (row->do_ranks_disagree)
		buf_printf(out, "; the rank test does not agree (p = %.2g): look for outliers",
			   row->p_ranks);
	if (!row->do_effects_differ)
		return;
	for (size_t i = 0; i < row->n_configs; i++)
		if (!row->config[i].apart) {
			low = fmin(low, row->config[i].is.ratio);
			high = fmax(high, row->config[i].is.ratio);
		}
	buf_add_text(out, "; effects differ between configurations, from ");
	add_change(out, low);
	buf_add_text(out, " to ");
	add_change(out, high);
}

const char *matched_sentence(const struct matched *m, const struct matched_pair *pair,
			     const struct matched_row *row, struct arena *a)
{
	struct buf out = { 0 };
	const char *text;

	if (pair->refusal)
		return pair->reason;
	buf_printf(&out, "%s: %s", row->metric->name, matched_verdict_words(row, a));
	if (row->verdict != MATCHED_NOT_COMPARABLE && isfinite(row->is.ratio)) {
		buf_add_text(&out, ", ");
		add_change(&out, row->is.ratio);
		buf_add_text(&out, " (");
		add_interval(&out, m, row);
		add_counts(&out, row);
		buf_add_char(&out, ')');
	}
	if (row->reason)
		buf_printf(&out, ": %s", row->reason);
	add_need(&out, row);
	add_cautions(&out, row);
	text = arena_text(a, buf_str(&out));
	buf_release(&out);
	return text;
}

/* ---- JSON ---- */

static void put_count(struct json_writer *w, const char *key, size_t n)
{
	json_member_int(w, key, (int64_t)n);
}

/* null for 0: none, or unknown. */
static void put_need(struct json_writer *w, const char *key, size_t n)
{
	json_key(w, key);
	if (n)
		json_put_int(w, (int64_t)n);
	else
		json_put_null(w);
}

static void put_two(struct json_writer *w, const char *key, const size_t n[2])
{
	json_member_array(w, key);
	for (unsigned k = 0; k < 2; k++)
		json_put_int(w, (int64_t)n[k]);
	json_end_array(w);
}

/* As changes, [low, high]; null without one. */
static void put_interval(struct json_writer *w, const char *key, struct interval i)
{
	json_key(w, key);
	if (!isfinite(i.low) || !isfinite(i.high)) {
		json_put_null(w);
		return;
	}
	json_begin_array(w);
	json_put_f64(w, i.low - 1);
	json_put_f64(w, i.high - 1);
	json_end_array(w);
}

static void put_estimate(struct json_writer *w, const struct matched_estimate *is)
{
	static const char *const rule[] = { [MATCHED_BY_SESSIONS] = "sessions",
					    [MATCHED_BY_CLUSTERS] = "configurations",
					    [MATCHED_BY_NOTHING] = NULL };

	json_member_f64(w, "baseline", is->value[0]);
	json_member_f64(w, "value", is->value[1]);
	json_member_f64(w, "effect", is->ratio - 1);
	put_interval(w, "interval", is->interval);
	put_interval(w, "interval_narrow", is->narrow);
	json_member_f64(w, "p", is->p);
	json_member_f64(w, "df", is->df);
	json_member_text(w, "rule", rule[is->rule]);
	put_count(w, "n_configurations", is->configs);
	put_count(w, "n_clusters", is->clusters);
	json_member_f64(w, "scatter", is->scatter);
}

static void put_config(struct json_writer *w, const struct matched_config *c)
{
	json_begin_object(w);
	json_member_text(w, "configuration", c->name);
	put_estimate(w, &c->is);
	json_member_int(w, "evident", c->evident);
	json_member_text(w, "not_comparable", c->apart);
	put_two(w, "runs", c->runs);
	json_member_array(w, "sessions");
	for (unsigned k = 0; k < 2; k++) {
		json_begin_array(w);
		for (size_t i = 0; i < c->sessions[k]; i++)
			json_put_f64(w, c->session[k][i]);
		json_end_array(w);
	}
	json_end_array(w);
	json_end_object(w);
}

/* If there are too many, only the first and the last are listed: those that changed most. */
static bool is_listed(const struct matched *m, size_t i, size_t n)
{
	size_t most = m->spec->listed_max;

	return most < 2 || n <= most || i < most / 2 || i >= n - (most - most / 2);
}

static void put_lists(struct json_writer *w, const struct matched *m, const struct matched_row *row)
{
	json_member_array(w, "loads");
	for (size_t i = 0; i < row->n_loads; i++) {
		json_begin_object(w);
		json_member_text(w, "load", row->load[i].name);
		put_estimate(w, &row->load[i].is);
		json_member_int(w, "evident", row->load[i].evident);
		json_end_object(w);
	}
	json_end_array(w);
	json_member_array(w, "configurations");
	for (size_t i = 0; i < row->n_configs; i++)
		if (is_listed(m, i, row->n_configs))
			put_config(w, &row->config[i]);
	json_end_array(w);
}

static void put_row(struct json_writer *w, const struct matched *m,
		    const struct matched_pair *pair, const struct matched_row *row, struct arena *a)
{
	json_begin_object(w);
	json_member_text(w, "metric", row->metric->name);
	json_member_text(w, "unit", row->metric->unit);
	json_member_int(w, "better", row->metric->better);
	json_member_f64(w, "effect_min", row->metric->effect_min);
	json_member_bool(w, "is_primary", row->is_primary);
	json_member_text(w, "verdict", matched_verdict_key(row->verdict));
	json_member_text(w, "words", matched_verdict_words(row, a));
	json_member_text(w, "reason", row->reason);
	json_member_text(w, "sentence", matched_sentence(m, pair, row, a));
	put_estimate(w, &row->is);
	json_member_f64(w, "q", row->q);
	json_member_bool(w, "is_beyond_effect_min", row->is_beyond_d);
	put_count(w, "higher", row->up);
	put_count(w, "lower", row->down);
	put_count(w, "equal", row->equal);
	json_member_f64(w, "p_sign", row->p_sign);
	json_member_f64(w, "p_ranks", row->p_ranks);
	json_member_bool(w, "do_ranks_disagree", row->do_ranks_disagree);
	json_member_f64(w, "spread", row->spread);
	json_member_f64(w, "p_differ", row->p_differ);
	json_member_bool(w, "do_effects_differ", row->do_effects_differ);
	put_need(w, "sessions_needed", row->need.sessions);
	put_need(w, "configurations_needed", row->need.clusters);
	put_two(w, "runs", row->runs);
	put_two(w, "sessions", row->sessions);
	put_two(w, "invalid", row->invalid);
	put_two(w, "degraded", row->degraded);
	put_two(w, "missing", row->missing);
	put_count(w, "not_comparable", row->apart);
	put_count(w, "unpaired", row->unpaired);
	put_lists(w, m, row);
	json_end_object(w);
}

static void put_alone(struct json_writer *w, const struct matched *m, const char *key,
		      const struct matched_alone *alone, size_t n)
{
	json_member_array(w, key);
	for (size_t i = 0; i < n; i++) {
		if (!is_listed(m, i, n))
			continue;
		json_begin_object(w);
		json_member_text(w, "configuration", alone[i].config);
		put_count(w, "runs", alone[i].runs);
		json_end_object(w);
	}
	json_end_array(w);
}

void matched_put(struct json_writer *w, const struct matched *m, const struct matched_pair *pair,
		 struct arena *a)
{
	static const char *const refusal[] = {
		[MATCHED_ACCEPTED] = NULL, [MATCHED_REFUSED_EMPTY] = "empty",
		[MATCHED_REFUSED_SAME] = "same_runs", [MATCHED_REFUSED_UNMATCHED] = "unmatched",
		[MATCHED_REFUSED_INVALID] = "invalid",
	};
	struct str rest = str_of(matched_notes(m, pair, a));

	json_member_text(w, "baseline", m->spec->side[0]);
	json_member_text(w, "side", m->spec->side[pair->side]);
	json_member_f64(w, "level", 1 - m->spec->alpha);
	json_member_text(w, "refused", refusal[pair->refusal]);
	json_member_text(w, "reason", pair->reason);
	put_two(w, "runs", pair->runs);
	put_count(w, "runs_on_both_sides", pair->shared);
	put_two(w, "sessions_unknown", pair->sessions_unknown);
	put_count(w, "matched", pair->n_configs);
	put_two(w, "alone", pair->n_alone);
	put_alone(w, m, "only_baseline", pair->alone[0], pair->n_alone[0]);
	put_alone(w, m, "only_side", pair->alone[1], pair->n_alone[1]);
	json_member_array(w, "metrics");
	for (size_t i = 0; !pair->refusal && i < m->spec->n_metrics; i++)
		put_row(w, m, pair, &pair->row[i], a);
	json_end_array(w);
	json_member_array(w, "notes");
	while (rest.n)
		json_put_str(w, str_cut(&rest, '\n'));
	json_end_array(w);
}
