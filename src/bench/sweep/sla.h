/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sla.h - service level agreements: limits on keys of a result that must all hold, and how
 * far measured runs are from them (sweep spec 7.6).
 *
 * A file of them is a list of objects {"p99_ttft_ms": "<=200", "profllm.connect_ms.p99": "<5"}.
 * A margin is upstream's: in the metric's unit, 0 or less when the limit holds; a level's margin is
 * the largest one. A gap is ours: the logarithm of how many times a value may still grow
 * (negative) or exceeds its limit (positive), so gaps of different metrics compare; its sign is
 * the margin's, except that a strict limit met exactly has gap 0 and does not hold.
 *
 * A failed request has no latency, so the more of them a server refuses the better its latencies
 * look. Therefore two rules for searches and imported suites: the share of failed requests is a
 * limit
 * like the others (sla_with_failures), and a run whose numbers are not usable says nothing about
 * its level (sla_is_measured).
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "core/base/err.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/read.h"

enum sla_op { SLA_LE, SLA_GE, SLA_LT, SLA_GT };

struct sla_limit {
	const char *key;  /* a key of the result, dotted for those inside objects */
	enum sla_op op;
	double limit;
	bool is_failures; /* the share of failed requests: no key of a result, printed in percent */
};

struct sla { const struct sla_limit *limit; size_t n; };
struct slas { const struct sla *item; size_t n; };

#define SLA_ALL_MAX (SLA_LIMITS_MAX + 1) /* with the one on failures */
#define SLA_MAX_FAILED_PERCENT 1.0       /* unless the user says otherwise */

/*
 * ERR_RUN with upstream's sentence for a wrong operator. ERR_USAGE for a file that is not a list of
 * objects, a value that is not a number, an object without limits, or, if is_checked, a key that
 * our results cannot have (schema/result.json), with the nearest known name.
 */
int sla_read(const char *path, bool is_checked, struct arena *a, struct slas *out, struct err *e);
int sla_parse(struct str text, bool is_checked, struct arena *a, struct slas *out, struct err *e);

/*
 * Whether a `bench serve` command computes the percentiles that the limits are on, by its
 * --metric-percentiles (default: 99): known before anything is measured. ERR_USAGE.
 */
int sla_check_percentiles(const struct slas *s, char *const *bench_argv, struct err *e);

struct sla_limit sla_failures(double percent_max);
/* The limits asked for and, as the last one, that on failed requests. */
struct sla sla_with_failures(const struct sla *asked, double percent_max, struct arena *a);

/*
 * Whether a run's numbers can be judged by these limits. Not if the run is INVALID for a reason
 * that concerns a key with a limit; but a run that failed more requests than the limits allow has
 * missed them, however few succeeded. why gets the reason's text, borrowed from the record. Results
 * without a verdict (of other clients) count.
 */
bool sla_is_measured(const struct json_value *record, const struct sla *sla, struct str *why);

/* "p99_ttft_ms<=200.00", joined by sep; "failed<=1.00 %". */
void sla_text(const struct sla *sla, const char *sep, struct buf *out);
/* "key = 123.45<=500.00 | PASSED" */
void sla_verdict_text(const struct sla_limit *l, double actual, struct buf *out);

double sla_margin(const struct sla_limit *l, double actual);
double sla_gap(const struct sla_limit *l, double actual);
bool sla_holds(const struct sla_limit *l, double actual);

/*
 * The limit's value in a run's record; ERR_RUN when the record has no such number. A result without
 * a number of failed requests has as many as it lacks of its num_prompts.
 */
int sla_value(const struct sla_limit *l, const struct json_value *record, double *out,
	      struct err *e);
