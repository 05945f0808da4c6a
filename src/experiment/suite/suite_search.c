/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suite_search.c - see suite.h: the best experiment of a suite by a metric, in rounds that get
 * longer and have fewer experiments (decide/halving.h).
 *
 * The suite's experiments are the candidates; a member is made and run for each candidate and
 * round. Conclusions of a round come from its members' documents alone, so an interrupted search
 * resumes from its files: --resume measures what is missing and concludes the same as before.
 */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/limits.h"
#include "core/base/str.h"
#include "experiment/config/config_internal.h"
#include "experiment/suite/suite_search.h"
#include "results/read/document.h"
#include "results/read/frame.h"
#include "results/read/kind.h"
#include "results/read/read.h"

#define SHARE_ABOVE_PLAN 1.25 /* for those whose intervals reach the cut, and HALVING_MARGIN */
#define SEED_KEY "benchmark.seed"
#define ROUND_TAG "tags.search_round"

/* ---- what is searched among ---- */

/* The key of the benchmark that sets its length. */
static const char *length_key(const struct experiment *x)
{
	return x->serve.duration.is_set ? "benchmark.duration" : "benchmark.num_prompts";
}

static double length_of(const struct experiment *x)
{
	return x->serve.duration.is_set ? x->serve.duration.v : (double)x->serve.num_prompts;
}

static int check_candidates(const struct suite *s, struct config_findings *f)
{
	const struct experiment *first = &s->member[0].x;

	for (size_t i = 0; i < s->n; i++) {
		const struct experiment *x = &s->member[i].x;
		const struct json_value *bench = config_get(s->member[i].config, "benchmark");

		if (x->mode != MODE_SERVE && x->mode != MODE_STRUCTURED)
			return config_complain(s->config, f, config_get(bench, "mode"), "benchmark.mode",
					       "search.best needs mode serve or structured-output, whose "
					       "length is num_prompts or duration, got %s",
					       experiment_mode_name(x->mode));
		if (length_of(x) != length_of(first) ||
		    strcmp(length_key(x), length_key(first)) != 0)
			return config_complain(s->config, f, bench, length_key(x), "search.best "
					       "needs experiments of the same length; the length "
					       "of %s differs from that of %s",
					       s->member[i].label, s->member[0].label);
	}
	return 0;
}

static int check_first(const struct suite *s, struct config_findings *f)
{
	const struct json_value *v = config_get(config_get(s->config->tree, "search"), "first");
	const struct experiment *x = &s->member[0].x;
	const struct suite_search *q = s->search;

	if (q->halving.opts.first > q->halving.opts.full)
		return config_complain(s->config, f, v, "search.first", "expected at most %s, which is "
				       "%g, got %g", length_key(x), q->halving.opts.full,
				       q->halving.opts.first);
	for (size_t i = 0; i < q->n && !x->serve.duration.is_set; i++) {
		const struct serve_opts *o = &q->candidate[i].x.serve;

		if (q->n > 1 && o->max_concurrency.is_set &&
		    (double)o->max_concurrency.v > q->halving.opts.first) {
			config_note(s->config, f, v, "search.first", "the first round has %g prompts, "
				    "fewer than the %lld requests at once of %s, whose load it never "
				    "reaches; search.first makes it longer", q->halving.opts.first,
				    (long long)o->max_concurrency.v, q->candidate[i].label);
			break;
		}
	}
	return 0;
}

bool suite_search_is_full(const struct suite *s, const struct suite_member *m)
{
	return length_of(&m->x) >= s->search->halving.opts.full;
}

/* ---- members of a round ---- */

static double round_length(const struct suite_search *q, unsigned round)
{
	double length = q->halving.length[round];

	return q->is_seconds ? length : fmax(1, rint(length));
}

/* The number of a full-length measurement, from 1; 0: the round is shorter. */
static unsigned repeat_of(const struct suite_search *q, unsigned round)
{
	unsigned growing = q->halving.rounds - q->halving.opts.repeats;

	return round >= growing ? round - growing + 1 : 0;
}

/*
 * The candidate's configuration in a round. Each round draws its own requests, the same for all
 * candidates, so that no candidate is favored by the same draw in every round.
 */
static const struct json_value *in_round(struct suite *s, const struct suite_member *of,
					 unsigned round, struct err *e)
{
	struct json_value length = { .kind = JSON_REAL }, tag = { .kind = JSON_STRING };
	struct json_value seed = { .kind = JSON_INT };
	const struct suite_search *q = s->search;
	const struct json_value *tree = of->config;

	seed.integer = (of->x.serve.seed + round) & UINT32_MAX;
	if (round)
		tree = config_put(s->config, tree, SEED_KEY, &seed, e);
	if (!tree || repeat_of(q, round))
		return tree;
	length.real = round_length(q, round);
	if (!q->is_seconds) {
		length.kind = JSON_INT;
		length.integer = (int64_t)length.real;
	}
	tag.text = str_of(arena_printf(&s->arena, "%u", round + 1));
	tree = config_put(s->config, tree, length_key(&of->x), &length, e);
	return tree ? config_put(s->config, tree, ROUND_TAG, &tag, e) : NULL;
}

static int make_member(struct suite *s, size_t candidate, unsigned round,
		       struct suite_member *out, struct err *e)
{
	const struct suite_search *q = s->search;
	const struct suite_member *of = &q->candidate[candidate];
	struct config_findings f = { 0 };
	unsigned repeat = repeat_of(q, round);
	int rc = 0;

	*out = *of;
	out->config = in_round(s, of, round, e);
	if (!out->config)
		return -1;
	if (out->config != of->config) {
		rc = config_experiment(s->config, out->config, s->know, &s->arena, &out->x, &f);
		if (rc < 0)
			err_set(e, ERR_USAGE, "round %u of %s: %s", round + 1, of->label, f.errors.data);
		config_findings_release(&f);
	}
	out->label = repeat ? q->halving.opts.repeats > 1 ?
		     arena_printf(&s->arena, "%s-r%u", of->label, repeat) : of->label :
		     arena_printf(&s->arena, "%s-round%u", of->label, round + 1);
	out->x.repeat = repeat ? repeat : 1;
	out->x.repeats = repeat ? q->halving.opts.repeats : 1;
	out->x.is_one_of_many = true;
	out->is_chosen = true;
	suite_place(s, out);
	return rc;
}

/* Appends the members of the next round: the candidates that are still in. */
static int add_round(struct suite *s, struct err *e)
{
	struct suite_search *q = s->search;
	const struct halving *h = &q->halving;
	size_t n = 0, was = s->n;
	struct suite_member *all;
	size_t *order;

	for (size_t i = 0; i < q->n; i++)
		n += h->item[i].fate == HALVING_IN;
	all = arena_alloc(&s->arena, (was + n) * sizeof(*all));
	order = arena_alloc(&s->arena, (was + n) * sizeof(*order));
	if (was) {
		memcpy(all, s->member, was * sizeof(*all));
		memcpy(order, s->order, was * sizeof(*order));
	}
	s->member = all;
	s->order = order;
	q->from = was;
	for (size_t i = 0; i < q->n; i++) {
		if (h->item[i].fate != HALVING_IN)
			continue;
		if (make_member(s, i, h->round, &s->member[s->n], e) < 0)
			return -1;
		q->member[i] = s->n;
		s->order[s->n] = s->n;
		s->n++;
	}
	return 0;
}

/*
 * The smallest share of full-length measurements that covers the first round and two experiments in
 * each later one.
 */
static double least_share(const struct halving *h)
{
	double sum = (double)h->opts.n * h->length[0];

	for (unsigned r = 1; r < h->rounds; r++)
		sum += HALVING_LEAST * h->length[r];
	return sum / h->opts.full / (double)h->opts.n;
}

/* With few experiments even that is more than the usual share. */
static void settle_share(struct suite_search *q, const struct suite *s)
{
	const struct json_value *search = config_get(s->config->tree, "search");

	if (!config_get(search, "share"))
		q->halving.opts.share = fmax(q->halving.opts.share, SHARE_ABOVE_PLAN *
					     least_share(&q->halving));
}

/* Time that the load itself takes per unit of length; 0: as long as the server makes it. */
static double pace_s(const struct suite_search *q)
{
	double least = INFINITY;

	for (size_t i = 0; i < q->n; i++) {
		const struct experiment *x = &q->candidate[i].x;

		if (isnan(plan_load_s(x)))
			return 0;
		least = fmin(least, plan_load_s(x) / length_of(x));
	}
	return least;
}

int suite_search_begin(struct suite *s, unsigned repeats, struct config_findings *f)
{
	struct suite_search *q = s->search;
	struct halving_opts o = { .eta = q->asked.eta, .share = q->asked.share / 100,
				  .repeats = repeats,
				  .budget_s = INFINITY };
	struct err e = { 0 };

	if (check_candidates(s, f) < 0)
		return -1;
	if (q->asked.budget_s.is_set)
		o.budget_s = q->asked.budget_s.v;
	config_best_metric(q->asked.best, &s->arena, &q->metric, &o.is_highest, &e);
	q->candidate = arena_alloc(&s->arena, s->n * sizeof(*q->candidate));
	q->member = arena_alloc(&s->arena, s->n * sizeof(size_t));
	q->why = arena_alloc(&s->arena, s->n * sizeof(*q->why));
	for (size_t i = 0; i < s->n; i++)
		if (s->member[s->order[i]].is_chosen) {
			q->why[q->n] = NULL;
			q->candidate[q->n++] = s->member[s->order[i]];
		}
	if (!q->n)
		return 0; /* --only says so */
	o.n = q->n;
	q->is_seconds = q->candidate[0].x.serve.duration.is_set;
	o.full = length_of(&q->candidate[0].x);
	o.first = q->asked.first.is_set ? q->asked.first.v : fmax(o.full / HALVING_FIRST,
							q->is_seconds ? 0 : fmin(1, o.full));
	o.first = q->n == 1 ? o.full : o.first;
	o.pace_s = pace_s(q);
	q->halving.opts = o;
	if (check_first(s, f) < 0)
		return -1;
	halving_begin(&q->halving, &o, arena_alloc(&s->arena, q->n * sizeof(struct halving_item)),
		      arena_alloc(&s->arena, q->n * sizeof(size_t)));
	settle_share(q, s);
	s->n = 0;
	if (add_round(s, &e) < 0)
		return config_complain(s->config, f, NULL, "search", "%s", e.text);
	return 0;
}

/* ---- what a round gave ---- */

static double number_at(const struct json_value *v, const char *key)
{
	return json_real(json_get(v, key), NAN);
}

/* Half the width of an interval of the logarithm; INFINITY: there is none. */
static double half_of(double low, double value, double high)
{
	if (!(low > 0) || !(value > 0) || !isfinite(high))
		return INFINITY;
	return fmax(log(high / value), log(value / low));
}

/* The metric of the settled part that corresponds to a metric of the whole run. */
static const char *settled_name(const char *key)
{
	static const struct { const char *in, *name; } table[] = {
		{ "total_token_throughput", "request_throughput" },
		{ "cost_per_million", "output_throughput" },
		{ "output_throughput", "output_throughput" },
		{ "output_tokens_per", "output_throughput" },
		{ "request_throughput", "request_throughput" },
		{ "mean_ttft_ms", "ttft_ms" }, { "mean_tpot_ms", "tpot_ms" },
		{ "mean_itl_ms", "itl_ms" }, { "mean_e2el_ms", "e2el_ms" },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (strstr(key, table[i].in))
			return table[i].name;
	return NULL;
}

/* Half the width of the metric's interval within this run. */
static double half_in(const struct json_value *row, const char *key)
{
	const struct json_value *ours = json_get(row, "profllm"), *v = NULL;
	const struct json_value *list = json_get(ours, "percentiles");
	const char *name = settled_name(key);
	double value;

	for (size_t i = 0; list && list->kind == JSON_ARRAY && i < list->count; i++)
		if (str_is(json_text(json_get(&list->item[i], "metric"), STR("")), key)) {
			v = &list->item[i];
			if (!frame_number(frame_value(row, str_of(key)), &value))
				return INFINITY;
			return half_of(number_at(v, "low_ms"), value, number_at(v, "high_ms"));
		}
	v = name ? json_get(json_get(ours, "settled"), name) : NULL;
	return v ? half_of(number_at(v, "low"), number_at(v, "mean"), number_at(v, "high")) : INFINITY;
}

/*
 * Why a candidate is excluded by its conditions; NULL: it is not. In a short round it is excluded
 * only when the whole interval breaks a condition.
 */
static const char *broken(const struct suite_member *m, const struct json_value *row, bool is_full,
			  struct arena *a)
{
	for (size_t i = 0; i < m->x.n_require; i++) {
		const struct gate *g = &m->x.require[i];
		struct gate_log log = { .a = a };
		double value, half;

		if (!frame_number(frame_value(row, str_of(g->key)), &value))
			continue;
		half = is_full ? 0 : half_in(row, g->key);
		if (!gate_is_beyond(g, value * exp(-half)) || !gate_is_beyond(g, value * exp(half)))
			continue;
		gate_judge(g, 1, row, "", &log);
		for (size_t k = 0; k < log.n; k++)
			if (log.item[k].outcome == GATE_FAILED)
				return log.item[k].text;
	}
	return NULL;
}

static const char *failed_share(const struct json_value *row, struct arena *a)
{
	double failed = NAN, completed = NAN, share;

	frame_number(frame_value(row, STR("failed")), &failed);
	frame_number(frame_value(row, STR("completed")), &completed);
	share = 100 * failed / (failed + completed);
	return share > GATE_FAILED_PERCENT_MAX ?
	       arena_printf(a, "%.3g %% of the requests failed (limit %g %%)", share,
			    GATE_FAILED_PERCENT_MAX) : NULL;
}

/* Reads the document; false with *why: it cannot be the answer. */
static bool read_seen(const struct suite_search *q, const struct suite_member *m, bool is_full,
		      const struct json_value *v, struct arena *a, struct halving_seen *seen,
		      const char **why)
{
	const struct json_value *row = v ? document_row(v, a) : NULL;
	struct suite_document d = { .duration_s = NAN };
	double took, load = NAN;

	*why = NULL;
	if (!suite_document_of(m, &d))
		*why = "it was not run";
	else if (d.status == OUTCOME_FAILED || !row)
		*why = *d.reason ? arena_text(a, str_of(d.reason)) : "it has no result";
	else if (!frame_number(frame_value(row, str_of(q->metric)), &seen->value))
		*why = arena_printf(a, "it has no %s", q->metric);
	else if (result_verdict(row, str_of(q->metric)) == RESULT_INVALID)
		*why = arena_printf(a, "%s is INVALID", q->metric);
	else if (!(seen->value > 0))
		*why = arena_printf(a, "%s is %g", q->metric, seen->value);
	else if (!(*why = failed_share(row, a)))
		*why = broken(m, row, is_full, a);
	took = isfinite(d.duration_s) ? d.duration_s : 0;
	if (row)
		frame_number(frame_value(row, STR("duration")), &load);
	seen->load_s = isfinite(load) ? fmin(load, took) : row ? took : 0;
	seen->start_s = took - seen->load_s;
	seen->half = *why ? INFINITY : half_in(row, q->metric);
	return !*why;
}

static void conclude(struct suite *s)
{
	struct suite_search *q = s->search;
	struct halving *h = &q->halving;
	bool is_full = repeat_of(q, h->round) > 0;

	for (size_t i = 0; i < q->n; i++) {
		const struct suite_member *m = &s->member[q->member[i]];
		struct halving_seen seen = { .half = INFINITY };
		struct arena a = { 0 };
		const char *why;

		if (h->item[i].fate != HALVING_IN)
			continue;
		if (read_seen(q, m, is_full, result_json(m->path, DOCUMENT_BYTES_MAX, &a, NULL), &a,
			      &seen, &why)) {
			halving_tell(h, i, &seen);
		} else {
			q->why[i] = arena_text(&s->arena, str_of(why));
			halving_out(h, i, seen.start_s, seen.load_s);
		}
		arena_release(&a);
	}
}

/* ---- rounds ---- */

static void say_round(const struct suite *s, const struct experiment_hooks *hooks)
{
	const struct suite_search *q = s->search;
	unsigned round = q->halving.round, repeat = repeat_of(q, round);
	struct buf text = { 0 };
	size_t n = s->n - q->from;

	buf_printf(&text, "Round %u of %u: %zu experiment%s of %g %s%s", round + 1, q->halving.rounds,
		   n, n == 1 ? "" : "s", round_length(q, round), q->is_seconds ? "s" : "prompts",
		   repeat > 1 ? ", again on restarted servers" : "");
	if (hooks->line)
		hooks->line(hooks->self, text.data);
	buf_release(&text);
}

static void keep_round(struct suite_search *q, size_t measured)
{
	const struct halving *h = &q->halving;
	unsigned round = h->is_over ? h->round : h->round - 1;

	q->round[round] = (struct suite_search_round){
		.measured = measured, .kept = h->is_over ? 0 : h->kept,
		.n_overlap = h->is_over ? 0 : h->n_overlap,
		.n_forced = h->is_over ? 0 : h->n_forced,
		.cut = h->is_over ? NAN : h->cut,
	};
	q->rounds = round + 1;
}

static void say_cut(const struct suite *s, const struct experiment_hooks *hooks)
{
	const struct suite_search *q = s->search;
	const struct suite_search_round *r = &q->round[q->rounds - 1];
	struct buf text = { 0 };

	if (q->halving.is_over && !q->halving.is_cut_short)
		return;
	if (q->halving.is_cut_short)
		buf_add_text(&text, "The budget has no room for another round");
	else
		buf_printf(&text, "%zu continue", r->kept);
	if (r->n_overlap)
		buf_printf(&text, ", %zu of them because their intervals include the "
				  "cut", r->n_overlap);
	if (r->n_forced)
		buf_printf(&text, "; %zu are dropped for the budget although they may be better than "
			   "the cut", r->n_forced);
	if (hooks->line)
		hooks->line(hooks->self, text.data);
	buf_release(&text);
}

bool suite_search_next(struct suite *s, const struct experiment_hooks *hooks, struct err *e,
		       int *rc)
{
	struct suite_search *q = s->search;
	size_t measured = s->n - q->from;
	bool goes_on;

	conclude(s);
	goes_on = halving_next(&q->halving);
	keep_round(q, measured);
	say_cut(s, hooks);
	*rc = goes_on ? add_round(s, e) : 0;
	if (goes_on && *rc == 0)
		say_round(s, hooks);
	return goes_on && *rc == 0;
}

void suite_search_say_first(const struct suite *s, const struct experiment_hooks *hooks)
{
	say_round(s, hooks);
}

const struct suite_member *suite_found(const struct suite *s)
{
	const struct suite_search *q = s->search;

	if (!q->halving.is_over || !halving_order(&q->halving))
		return NULL;
	return &s->member[q->member[q->halving.order[0]]];
}
