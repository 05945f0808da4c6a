/* SPDX-License-Identifier: Apache-2.0 */
/*
 * throughput.h - `bench throughput`: sends a whole set of requests at once and reports how many
 * requests and tokens an engine processes in a second (sweep spec 3).
 *
 * Options, their rules, the requests and the printed numbers are those of vLLM's command, with one
 * exception: an option that was typed counts. vLLM lets defaults override --input-len and the name
 * of a dataset without a file; --compat restores that, with a warning that names the values in
 * force.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/offline/offline.h"
#include "bench/offline/offline_data.h"
#include "core/base/str.h"
#include "core/stats/stats.h"
#include "out/compare/gate.h"

/* What follows from the options. */
struct throughput_plan {
	const char *backend;     /* as upstream calls it: "vllm", "vllm-chat", "hf", or ours */
	bool is_async;
	bool is_random_by_default; /* upstream says so on stdout */
	/* Upstream takes the requested numbers of tokens, one sequence each. */
	bool is_as_requested;
	bool is_own_dataset;     /* a set that upstream's command does not have */
};

struct throughput_opts {
	struct offline_opts common;  /* first: offline.h */
	struct offline_data data;    /* after the check: what is drawn */
	struct opt_int custom_output_len, input_len, output_len;
	int64_t n;                   /* sequences for each prompt */
	struct opt_int hf_max_batch_size;
	bool hf_enable_torch_compile;
	bool async_engine, prequeue_requests, disable_detokenize;
	const char *lora_path;       /* NULL: none */
	const char *lora_assignment; /* "random", "round-robin" */
	int64_t prefix_len;
	bool profile;
	struct opt_int repeat_prefix_len, repeat_suffix_len, repeat_num_prefixes, repeat_output_len;
	/* ours */
	int64_t num_runs;
	const char *chat_prefix, *chat_suffix; /* as typed; NULL: not given */
	struct throughput_plan plan; /* after the check */
};
extern const struct opt_set throughput_opt_set;
extern const struct offline_verb throughput_verb;

enum throughput_fix {
	THROUGHPUT_FIX_TOKENS = 1,   /* tokens are counted wherever the engine reports them */
};
enum throughput_compat {
	THROUGHPUT_COMPAT_LENGTHS = 1, /* --input-len loses to the default of --random-input-len */
	THROUGHPUT_COMPAT_DATASET = 2, /* sets without a file become random */
};

/*
 * Results of a set of requests that was run at once: numbers, doubts, terminal and JSON of `bench
 * throughput` (sweep spec 3.4).
 *
 * Pure. Times are seconds. Upstream's numbers are of the first run: in later ones an engine may
 * find the prompts in its prefix cache.
 */

/* ---- doubts and all their thresholds ---- */

/* Time between request and answer that the engine did not count, divided by what it counted. */
#define THROUGHPUT_OUTSIDE_SHARE 0.05
/* A timed section shorter than this is mostly the beginning and the end of a batch. */
#define THROUGHPUT_SHORT_S 1.0
/* Largest relative difference of a run from the first one. */
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
	THROUGHPUT_CACHED = 512,   /* prompts of an earlier run were in the prefix cache */
};

/* What ran. Everything is borrowed. */
struct throughput_runs {
	const double *elapsed_s;     /* of n_runs runs of the same requests; at least one */
	size_t n_runs, wanted;       /* wanted: --num-runs */
	double outside_s;            /* of the first */
	uint64_t cached_tokens;      /* prompt tokens; 0: none, or not reported */
	double explained_tokens;     /* of those, what earlier prompts of this run explain */
	size_t n, finished;          /* requests; finished: SIZE_MAX when not reported */
	int64_t sequences;           /* for each prompt */
	bool is_as_requested;        /* upstream takes the requested tokens here */
	bool has_counts;             /* the engine reported token counts */
	uint64_t prompt_tokens, output_tokens;             /* counted, over all sequences */
	uint64_t requested_prompt_tokens, requested_output_tokens; /* one sequence each */
	const double *e2el_s;        /* of requests of the first run, any order; NULL: not
				      * reported */
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
	double counted_output_per_s, counted_total_per_s; /* NAN when not reported */
	double median_s;             /* over all runs */
	struct interval mean_95;     /* of their mean; with more than one */
	double outside_share;
	unsigned doubts;             /* of enum throughput_doubt */
};
void throughput_facts(const struct throughput_runs *runs, struct throughput_facts *out);

/* Appends upstream's lines, with its warning about media first. */
void throughput_terminal(const struct throughput_runs *runs, const struct throughput_facts *f,
			 struct buf *out);
/* Appends our lines, which follow upstream's. */
void throughput_terminal_ours(const struct throughput_runs *runs,
			      const struct throughput_facts *f, struct buf *out);

struct throughput_config {
	const char *model;           /* --model */
	struct str ours;             /* members for "profllm" that others know: a JSON object */
};
/* The result file (indent 4, no line end, as upstream): upstream's keys, then "profllm". */
void throughput_json(const struct throughput_runs *runs, const struct throughput_facts *f,
		     const struct throughput_config *config, struct buf *out);
/* For the PyTorch benchmark file: the additional members of each metric, a JSON object. */
void throughput_extra(const struct throughput_runs *runs, const struct throughput_facts *f,
		      struct buf *out);
