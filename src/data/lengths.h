/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data/lengths.h - distributions of token counts, as --random-input-len-dist and
 * --random-output-len-dist write them, and of times, as --think-time does. Numbers are tokens, or
 * seconds.
 *
 *   histogram:FILE                  values with weights, from a CSV or JSON file
 *   uniform:LO,HI                   every whole number from LO to HI alike
 *   normal:MEAN,SD[,MIN,MAX]        mean and standard deviation
 *   lognormal:MEAN,SIGMA[,MIN,MAX]  the lengths' mean; SIGMA: standard deviation of their logarithm
 *   exponential:MEAN[,MIN,MAX]
 *   zipf:EXPONENT,MAX               1 to MAX; k comes with a weight of k^-EXPONENT, EXPONENT > 0
 *
 * Formulas, with u and v uniform in (0, 1]:
 *   normal       MEAN + SD z, z = sqrt(-2 ln u) cos(2 pi v)           (Box and Muller 1958)
 *   lognormal    exp(ln MEAN - SIGMA^2 / 2 + SIGMA z): the mean before rounding and limits is MEAN
 *   exponential  -MEAN ln u                                            (inversion)
 *   zipf         rejection-inversion (Hormann and Derflinger 1996, "Rejection-inversion to
 *                generate variates from monotone discrete distributions"): no table, whatever MAX
 *   histogram    the first value whose cumulative weight is above u    (inversion)
 * What is not whole is rounded to the nearest number (halves to the even one). MIN, MAX: 1 and
 * LENGTH_TOKENS_MAX unless given; a value outside is drawn again, so the distribution is the
 * truncated one; after LENGTHS_TRIES tries the nearer limit is taken.
 *
 * A histogram's file is CSV: a line "value,weight" each, blank lines, a head line and lines
 * that begin with # left out; or JSON: {"128": 3, ...} or [[128, 3], ...]. Weights are
 * non-negative numbers of any sum above 0, values 1 to LENGTH_TOKENS_MAX.
 *
 * Times have the same laws but zipf, in seconds (SIGMA has no unit), from 0 to DUE_S_MAX, and are
 * drawn in whole milliseconds. A number alone, or constant:SECONDS, is that number exactly.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "rng/pcg64.h"

#define LENGTHS_TRIES 1000

enum lengths_kind {
	LENGTHS_HISTOGRAM, LENGTHS_UNIFORM, LENGTHS_NORMAL, LENGTHS_LOGNORMAL, LENGTHS_EXPONENTIAL,
	LENGTHS_ZIPF, LENGTHS_CONSTANT,
};

/* Zeroed is a valid empty one for lengths_release. */
struct lengths {
	enum lengths_kind kind;
	double a, b;             /* MEAN and SD, SIGMA; EXPONENT; of a constant its seconds */
	int64_t min, max;
	bool is_time;            /* a, b, min, max and values are milliseconds */
	/* histogram */
	size_t n;
	int64_t *value;
	double *cdf;
};

/*
 * option: "--random-input-len-dist", for messages. ERR_USAGE: not one of the forms above, with what
 * was expected; ERR_IO, ERR_PARSE: the histogram's file, with line or byte. *out is released
 * on failure.
 */
int lengths_parse(const char *option, const char *text, struct lengths *out, struct err *e);
int64_t lengths_draw(const struct lengths *l, struct pcg64 *rng); /* min to max */
/* The same for a law of times in seconds. Drawing from a constant does not use the generator. */
int lengths_parse_time(const char *option, const char *text, struct lengths *out, struct err *e);
double lengths_draw_s(const struct lengths *l, struct pcg64 *rng);
void lengths_release(struct lengths *l);
