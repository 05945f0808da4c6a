/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lengths.h - distributions of token counts, as --random-input-len-dist and
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

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/json/read.h"
#include "core/rng/rng.h"

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

/*
 * Distributions of counts as the generator file of conversations writes
 * them, drawn as upstream's script draws them.
 *
 *   constant   value                          draws nothing
 *   uniform    min, max                       whole numbers, both ends included, when both are
 *                                             JSON integers; else real
 *   lognormal  average[, median_ratio][, max] mu = ln(average median_ratio), sigma =
 *                                             sqrt(2 ln(1 / median_ratio)); the whole sample is
 *                                             multiplied by average / its mean
 *              mean, sigma[, max]             of the underlying normal distribution
 *   zipf       alpha[, max]
 *   poisson    alpha[, max]
 *
 * max, where it is given and not 0, replaces larger values. What is not whole is rounded to the
 * nearest number, halves to the even one (upstream ends in an exception for the first two).
 */

enum distribution_kind {
	DISTRIBUTION_CONSTANT, DISTRIBUTION_UNIFORM, DISTRIBUTION_LOGNORMAL, DISTRIBUTION_ZIPF,
	DISTRIBUTION_POISSON,
};

/* Zeroed: constantly 0. */
struct distribution {
	enum distribution_kind kind;
	double a, b;      /* value; min and max; mu and sigma; alpha */
	double average;   /* lognormal: what the sample's mean becomes; 0: it stays */
	double max;       /* 0: none */
	bool is_whole;    /* uniform */
	const char *key;  /* where it is in the file: "prompt_input.num_turns" */
	struct str shown; /* as upstream prints it: "UniformDistribution[2, 6]" */
};

/* A JSON text that is read by slices, for errors. */
struct json_file {
	const char *path;
	struct str text;
	const char *where; /* the place of all of it ("agents.jsonl:7"), NULL: path and line */
};
/* "gen.json:7: <key>: <sentence>", ERR_RUN; at points into the text. Returns -1. */
__attribute__((format(printf, 5, 6)))
int json_file_refuse(const struct json_file *f, const char *at, const char *key, struct err *e,
		     const char *fmt, ...);

/* Reads object, which is found in f at key (kept). shown is in a. */
int distribution_read(const struct json_file *f, const char *key, struct json_slice object,
		      struct arena *a, struct distribution *out, struct err *e);
/* numpy.random's n draws. Values are rounded, and at most DISTRIBUTION_VALUE_MAX. */
#define DISTRIBUTION_VALUE_MAX ((int64_t)1 << 53)
void distribution_sample(const struct distribution *d, struct legacy *np, size_t n, int64_t *out);
/* One draw, not rounded; lognormal's average is that of the distribution, not of the sample. */
double distribution_draw(const struct distribution *d, struct legacy *np);

/*
 * How far lengths may be off the length asked for; datasets spec 3.1.
 */

/*
 * A number r for both, or {"input": r, "output": r}; 0 <= r < 1. option names it in errors
 * ("--random-range-ratio"). ERR_USAGE.
 */
int range_ratio_parse(const char *option, const char *text, double *input, double *output,
		      struct err *e);
