/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matched_rig.h - runs for tests of comparisons, as few words as possible each, and what came out.
 *
 * Student's t with 2 degrees of freedom has a closed form: two-sided p = 1 - t / sqrt(t^2 + 2), and
 * quantiles T975 and T95.
 */
#pragma once
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "answers.h"
#include "results/decide/compare.h"

#define RUNS_MAX 256
#define METRICS_MAX 8
#define T975 4.30265272974946
#define T95 2.91998558035373

/* Runs as a test adds them, and what came out. */
struct rig {
	struct matched_run run[RUNS_MAX];
	double value[RUNS_MAX][METRICS_MAX];
	unsigned char state[RUNS_MAX][METRICS_MAX];
	struct matched_metric metric[METRICS_MAX];
	struct matched_spec spec;
	struct matched out;
	struct arena a;
};

static const char *const names[] = { "old", "new", "newest" };

static inline struct rig *rig_new(void)
{
	struct rig *r = calloc(1, sizeof(*r));

	r->metric[0] = matched_metric_of("output_throughput", "tokens/s", 1);
	r->spec = (struct matched_spec){ .run = r->run, .metric = r->metric, .n_metrics = 1,
					 .side = names, .n_sides = 2, .primary = 0, .alpha = 0.05 };
	return r;
}

static inline struct matched_run *add(struct rig *r, size_t side, const char *config,
				      const char *session, double value)
{
	size_t i = r->spec.n_runs++;

	assert_true(i < RUNS_MAX);
	r->value[i][0] = value;
	r->run[i] = (struct matched_run){
		.side = side, .config = config, .session = session, .value = r->value[i],
		.state = r->state[i],
		.work = { NAN, NAN, NAN, NAN, NAN, NAN } };
	return &r->run[i];
}

/* What is written and said of a pair. */
static inline void check_said(struct rig *r, const struct matched_pair *pair)
{
	struct buf out = { 0 };
	struct json_writer w = json_writer(&out);

	json_begin_object(&w);
	matched_put(&w, &r->out, pair, &r->a);
	json_end_object(&w);
	for (size_t i = 0; !pair->reason && i < r->spec.n_metrics; i++)
		buf_printf(&out, "\n%s\n%s",
			   matched_sentence(&r->out, pair, &pair->row[i], &r->a),
			   matched_verdict_words(&pair->row[i], &r->a));
	answers_release(&out);
}

static inline const struct matched_row *compare(struct rig *r)
{
	matched_compare(&r->spec, &r->a, &r->out);
	check_said(r, &r->out.pair[0]);
	return &r->out.pair[0].row[0];
}

static inline void rig_free(struct rig *r)
{
	arena_release(&r->a);
	free(r);
}

static inline const char *text(struct rig *r, const char *stem, size_t i)
{
	return arena_printf(&r->a, "%s%zu", stem, i);
}

static inline void near(double got, double want, double off)
{
	if (!(fabs(got - want) <= off))
		fail_msg("%.17g, expected %.17g", got, want);
}

/* n configurations, one run a side, each with its own server; d[i] is the logarithm's change. */
static inline void add_pairs(struct rig *r, const double *d, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		double base = 100 * exp((double)i);

		add(r, 0, text(r, "config ", i), text(r, "a", i), base);
		add(r, 1, text(r, "config ", i), text(r, "b", i), base * exp(d[i]));
	}
}

/* Eight pairs whose logarithms are mean -+ sd, so that the standard error is sd / sqrt(7). */
static inline const struct matched_row *eight(struct rig *r, double mean, double sd)
{
	double d[8];

	for (size_t i = 0; i < 8; i++)
		d[i] = mean + (i % 2 ? sd : -sd);
	r->spec.n_runs = 0;
	add_pairs(r, d, 8);
	return compare(r);
}
