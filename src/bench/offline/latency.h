/* SPDX-License-Identifier: Apache-2.0 */
/*
 * latency.h - `bench latency`: runs one batch repeatedly and reports how long each iteration took
 * (sweep spec 4).
 *
 * Prompts are token ids drawn uniformly below 10,000 by NumPy's generator, as upstream's; but
 * seeded with --seed, which the result records, and limited to the engine's vocabulary where that
 * is smaller. Every iteration uses the same prompts, so prefix caching is off unless asked for.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/offline/offline.h"
#include "client/plan/workload.h"
#include "core/base/str.h"
#include "core/stats/stats.h"

struct latency_opts {
	struct offline_opts common;  /* first: offline.h */
	int64_t input_len, output_len, batch_size; /* tokens, tokens, prompts */
	int64_t n;                   /* sequences for each prompt, or the beam's width */
	bool use_beam_search;
	int64_t num_iters_warmup, num_iters;
	bool profile;
	bool disable_detokenize;
};
extern const struct opt_set latency_opt_set;
extern const struct offline_verb latency_verb;

/* Draws the batch. vocabulary: the model's number of tokens; 0: unknown. ERR_LIMIT, ERR_IO. */
int latency_prompts(const struct latency_opts *o, int64_t seed, int64_t vocabulary,
		    struct workload *w, struct err *e);
/*
 * Results of the iterations of one batch: numbers, doubts, terminal and JSON of `bench latency`
 * (sweep spec 4).
 *
 * Pure. Times are seconds. Percentiles and means are NumPy's (stats/stats.h).
 */

/* ---- doubts and all their thresholds ---- */

/*
 * Drift: relative difference of the last third's mean to the first third's, outside both 95 %
 * confidence intervals.
 */
#define LATENCY_DRIFT_SHARE 0.05
/* Standard deviation divided by the mean. */
#define LATENCY_SPREAD_SHARE 0.10
/* Time between request and answer that the engine did not count, divided by what it counted. */
#define LATENCY_OUTSIDE_SHARE 0.05
/* An outlier is this many scaled median deviations, and this share, away from the median. */
#define LATENCY_OUTLIER_DEVIATIONS 5.0
#define LATENCY_OUTLIER_SHARE 0.01
/* Fewer iterations than this: the 99 % percentile lies between the two largest values. */
#define LATENCY_TAIL_MIN 101
/* With fewer iterations than this, drift and spread are not judged. */
#define LATENCY_JUDGE_MIN 6

enum latency_doubt {
	LATENCY_DRIFTS = 1,
	LATENCY_SPREADS = 2,
	LATENCY_OUTSIDE = 4,
	LATENCY_SHORT = 8,      /* fewer tokens came back than were asked for */
	LATENCY_STOPPED = 16,   /* the user ended it */
	LATENCY_FIRST_SLOW = 32,/* no warm-up, and the first iteration is an outlier */
	LATENCY_FEW = 64,       /* fewer iterations than LATENCY_JUDGE_MIN */
};

/* What ran. Everything is borrowed. */
struct latency_runs {
	const double *latency_s;     /* of n measured iterations */
	size_t n;
	const double *warmup_s;
	size_t n_warmup;
	size_t wanted;               /* --num-iters */
	double outside_s;            /* over the measured iterations */
	int64_t batch_size, input_len, output_len;
	int64_t sequences;           /* for each prompt; of beam search the width */
	bool is_beam;
	bool has_counts;             /* the engine reported token counts */
	uint64_t prompt_tokens, output_tokens; /* over the measured iterations */
};

struct latency_facts {
	double mean_s, std_s, median_s, min_s, max_s;
	double percentile_s[OFFLINE_PERCENTILES];
	struct interval mean_95;
	double first_third_s, last_third_s; /* means; 0 with fewer than LATENCY_JUDGE_MIN */
	double drift;                /* last over first, less 1 */
	size_t outliers;
	uint64_t expected_tokens;    /* of the answers, over all iterations */
	/* From mean_s and what the engine counted, else what was asked for. */
	double prompt_tokens, output_tokens;   /* of one iteration */
	double output_tokens_per_s, total_tokens_per_s;
	double s_per_token;          /* of one sequence: the mean over the tokens of an answer */
	double outside_share;
	unsigned doubts;             /* of enum latency_doubt */
};

/* With n == 0 everything is 0 but doubts. */
void latency_facts(const struct latency_runs *runs, struct latency_facts *out);

/* Appends upstream's lines. */
void latency_terminal(const struct latency_facts *f, struct buf *out);
/* Appends our lines, which follow upstream's. */
void latency_terminal_ours(const struct latency_runs *runs, const struct latency_facts *f,
			   struct buf *out);

struct latency_config {
	const char *model;           /* --model */
	struct str ours;             /* members for "profllm" that others know: a JSON object */
	int64_t seed;                /* of the prompts; -1: each iteration had new ones */
};
/* The result file (indent 4, no line end, as upstream): upstream's keys, then "profllm". */
void latency_json(const struct latency_runs *runs, const struct latency_facts *f,
		  const struct latency_config *config, struct buf *out);
