/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mm_processor.h - `bench mm-processor`: how long the stages of multimodal preprocessing and the
 * encoder take within one batch of chats, and how long each request takes (sweep spec 6).
 *
 * Requests come from offline_data.h, as for throughput with --backend vllm-chat. Stage times are
 * the engine's own (vllm, sim, any worker that reports them); an engine without them is named.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/offline/offline.h"
#include "bench/offline/offline_data.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"

struct mm_processor_opts {
	struct offline_opts common;  /* first: offline.h */
	struct offline_data data;    /* dataset, numbers, lengths */
	struct opt_int output_len;   /* of each answer; unset: the dataset's */
	const char *metric_percentiles;
	bool disable_tqdm;
};
extern const struct opt_set mm_processor_opt_set;
extern const struct offline_verb mm_processor_verb;

/*
 * Times of the stages of multimodal preprocessing and of whole requests: numbers, terminal and JSON
 * of `bench mm-processor` (sweep spec 6.3 to 6.5).
 *
 * Pure. Stages have the engine's names; their times come in seconds and are shown in milliseconds.
 * What the engine does not report is left out, never shown as 0.
 */

/* --metric-percentiles: numbers as Python reads them. ERR_RUN with Python's and NumPy's words. */
struct mm_percentiles { double *v; size_t n; };
int mm_percentiles(const char *text, struct mm_percentiles *out, struct arena *a, struct err *e);

struct mm_spread {
	double mean, median, std;
	double *percentile;          /* one for each that was asked for */
};

struct mm_stage {
	const char *name;            /* "get_mm_hashes_ms", "num_encoder_calls" */
	struct mm_spread spread;
	size_t n;                    /* requests with this stage */
	double sum;                  /* in the unit of the name */
};

struct mm_stages {
	struct mm_stage *v;          /* in the order in which they first appear */
	size_t n;
	size_t requests;
	bool has_encoder;            /* num_encoder_calls was reported */
	int64_t encoder_calls;       /* over all requests */
	size_t encoder_requests;
};
/* From offline_mm_stats: {"request": {"get_mm_hashes_secs": 0.1, ...}, ...}. ERR_PARSE, ERR_LIMIT. */
int mm_stages_read(struct str json, const struct mm_percentiles *p, struct mm_stages *out,
		   struct arena *a, struct err *e);

struct mm_run {
	size_t completed, failed;
	double elapsed_s;
	double *e2el_s;              /* of those of the n completed requests for which the engine
				      * reported it */
	size_t n;
};

struct mm_facts {
	struct mm_stages stages;
	struct mm_spread e2el_ms;    /* all 0 when nothing completed, as upstream */
	bool is_average;             /* no request's own time: the whole time over the completed */
};
int mm_facts(const struct mm_run *run, struct str stages, const struct mm_percentiles *p,
	     struct mm_facts *out, struct arena *a, struct err *e);

/* Upstream's warnings, one text of several lines each; both may be due. */
extern const char mm_no_stages[], mm_no_e2el[];

/* What upstream prints between its "=" lines and the file's name; ends with a line end. */
void mm_terminal(const struct mm_facts *f, const struct mm_percentiles *p, struct buf *out);

struct mm_config {
	const char *model;
	int64_t num_prompts;
	int64_t input_len, output_len; /* --random-input-len, --random-output-len */
	const char *timestamp;       /* report_timestamp */
	struct str ours;             /* members of "profllm": a JSON object */
};
/* The result file: indent 2, no line end. */
void mm_json(const struct mm_run *run, const struct mm_facts *f, const struct mm_percentiles *p,
	     const struct mm_config *config, struct buf *out);
