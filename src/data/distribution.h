/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data/distribution.h - distributions of counts as the generator file of conversations writes
 * them, drawn as upstream's script draws them. Private to data/.
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
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "json/read.h"
#include "rng/legacy.h"

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
