/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slo.h - limits on the latency of requests, such as "p99_ttft_ms<200", for questions that
 * count slow requests (decide/capacity.h): does a load hold, and what is the largest one that does.
 *
 * A limit is on TTFT, TPOT or E2EL, on a percentile or on the mean. ITL is a percentile over
 * tokens, and throughput is a total of the run: neither belongs to a request, so they are refused.
 * Times are those of the report: from sending to the first token, and so on.
 */
#pragma once
#include "bench/sweep/sla.h"
#include "client/metrics/metrics.h"
#include "results/decide/capacity.h"

struct slo_limit {
	const char *text;         /* "p99_ttft_ms<200" */
	const char *key;          /* "p99_ttft_ms" */
	enum metric_block block;  /* TTFT, TPOT or E2EL */
	bool is_mean;
	double quantile;          /* of a percentile: 0.99 */
	double limit_s;
};
struct slo { struct slo_limit limit[CAPACITY_LIMITS_MAX]; size_t n; };

/*
 * "p99_ttft_ms<200,mean_e2el_ms<=2000". option is named in errors: ERR_USAGE for a key that is no
 * limit on requests, a lower limit, one key twice, or a value that is not above 0.
 */
int slo_parse(const char *option, const char *text, struct arena *a, struct slo *out,
	      struct err *e);
/* The same from an object of --sla-params. */
int slo_of_sla(const char *option, const struct sla *sla, struct arena *a, struct slo *out,
	       struct err *e);

/* What is known of a request at a moment, or of one that has ended. Seconds. */
struct slo_request {
	double due_s, end_s;      /* since the level began; end_s INFINITY: unfinished */
	double age_s;             /* of an unfinished one: since it was sent */
	double ttft_s;            /* NAN: no token yet */
	double e2el_s;            /* of one that has ended */
	double tokens;            /* of the answer of one that has ended */
	bool is_failed;
};
/*
 * Fills out. value: room for CAPACITY_LIMITS_MAX + 1 numbers that live as long as out; may be NULL
 * when no limit is on a mean.
 */
void slo_mark(const struct slo *slo, const struct slo_request *r, double *value,
	      struct level_request *out);
bool slo_has_mean(const struct slo *slo);
/* The options of a search within these limits; everything else is the caller's. */
void slo_limits(const struct slo *slo, struct capacity_opts *out);
/* The metrics that these limits are on. */
unsigned slo_trust_bits(const struct slo *slo);
