/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report/throughput.h - what a set of requests that was run at once says: numbers, doubts, terminal
 * and JSON of `bench throughput` (sweep spec 3.4).
 *
 * Pure. Times are seconds. Upstream's numbers are of the first run: in later ones an engine may
 * find the prompts in its prefix cache.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "stats/interval.h"

/* ---- doubts; every threshold stands here ---- */

/* Time between question and answer that the engine's side did not count, over what it counted. */
#define THROUGHPUT_OUTSIDE_SHARE 0.05
/* A timed section shorter than this is mostly the beginning and the end of a batch. */
#define THROUGHPUT_SHORT_S 1.0
/* Runs this much apart from the first, as a share of it. */
#define THROUGHPUT_APART_SHARE 0.10

enum throughput_doubt {
	THROUGHPUT_UNFINISHED = 1, /* requests without an answer */
	THROUGHPUT_FEWER = 2,      /* fewer tokens came back than were asked for */
	THROUGHPUT_REQUESTED = 4,  /* upstream's token numbers are not those that were counted */
	THROUGHPUT_PROFILED = 8,   /* the profiler ran inside the clock */
	THROUGHPUT_MEDIA = 16,     /* tokens of media are not counted */
	THROUGHPUT_BRIEF = 32,
	THROUGHPUT_OUTSIDE = 64,
	THROUGHPUT_APART = 128,    /* later runs differ from the first */
	THROUGHPUT_STOPPED = 256,  /* the user ended it */
};

/* What ran. Everything is borrowed. */
struct throughput_runs {
	const double *elapsed_s;     /* of n_runs runs of the same requests; at least one */
	size_t n_runs, wanted;       /* wanted: --num-runs */
	double outside_s;            /* of the first */
	size_t n, finished;          /* requests; finished: SIZE_MAX when not told */
	int64_t sequences;           /* for each prompt */
	bool is_as_requested;        /* upstream takes the requested tokens here */
	bool has_counts;             /* the engine told tokens */
	uint64_t prompt_tokens, output_tokens;             /* counted, over all sequences */
	uint64_t requested_prompt_tokens, requested_output_tokens; /* one sequence each */
	const double *e2el_s;        /* of requests of the first run, any order; NULL: not told */
	size_t n_e2el;
	bool is_multimodal, is_profiled;
	bool is_pooling;             /* the model embeds: there are no tokens to answer with */
	const char *backend;         /* as upstream calls it, for its warning */
	size_t n_warmup;
};

struct throughput_facts {
	double elapsed_s;
	uint64_t prompt_tokens, output_tokens, total_tokens; /* upstream's */
	double requests_per_s, total_tokens_per_s, output_tokens_per_s, prompt_tokens_per_s;
	double counted_output_per_s, counted_total_per_s; /* NAN when not told */
	double median_s;             /* over all runs */
	struct interval mean_95;     /* of their mean; with more than one */
	double outside_share;
	unsigned doubts;             /* of enum throughput_doubt */
};
void throughput_facts(const struct throughput_runs *runs, struct throughput_facts *out);

/* Upstream's lines, its warning about media in front. */
void throughput_terminal(const struct throughput_runs *runs, const struct throughput_facts *f,
			 struct buf *out);
/* Ours, which follow them. */
void throughput_terminal_ours(const struct throughput_runs *runs,
			      const struct throughput_facts *f, struct buf *out);

struct throughput_config {
	const char *model;           /* --model */
	struct str ours;             /* members for "profllm" that others know: a JSON object */
};
/* The result file (indent 4, no line end, as upstream): upstream's keys, then "profllm". */
void throughput_json(const struct throughput_runs *runs, const struct throughput_facts *f,
		     const struct throughput_config *config, struct buf *out);
/* For the PyTorch benchmark file: what is said beside each metric, a JSON object. */
void throughput_extra(const struct throughput_runs *runs, const struct throughput_facts *f,
		      struct buf *out);
