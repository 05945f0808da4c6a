/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counters.h - what GET /metrics shows, under vLLM's names.
 *
 * Counters, gauges and histograms are plain fields that the server updates as
 * things happen; counters_write spells them in Prometheus text format. Times
 * are nanoseconds inside and seconds outside.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum counter_histogram { HIST_TTFT, HIST_ITL, HIST_TPOT, HIST_E2E, HISTS };
enum counter_finish { FINISH_STOP, FINISH_LENGTH, FINISH_ABORT, FINISH_ERROR, FINISHES };

#define COUNTER_BUCKETS_MAX 24

struct histogram {
	uint64_t bucket[COUNTER_BUCKETS_MAX]; /* not cumulative; the last used one is +Inf */
	uint64_t count;
	double sum;
};

#define COUNTER_POSITIONS_MAX 32 /* tokens of one draft */

struct counters {
	uint64_t running, waiting;
	uint64_t prompt_tokens, generation_tokens;
	uint64_t finished[FINISHES];
	uint64_t preemptions;
	uint64_t prefix_queries, prefix_hits;   /* tokens */
	uint64_t external_queries, external_hits; /* likewise, of caches elsewhere (kv.h) */
	uint64_t drafts, draft_tokens, accepted_tokens;
	uint64_t accepted_at[COUNTER_POSITIONS_MAX];
	uint64_t denoising_steps, canvas_positions, committed_tokens;
	size_t positions;       /* of a draft; 0: the counters of drafts are absent */
	bool has_external;      /* otherwise those are absent */
	bool has_diffusion;     /* otherwise its counters are absent */
	double kv_share;        /* of the KV cache in use, 0 to 1 */
	uint64_t kv_blocks, kv_block_tokens; /* of each engine's cache */
	size_t engines;         /* 0 counts as 1 */
	size_t loras_max;       /* adapters in one batch; 0: their gauge is absent */
	struct buf loras_running, loras_waiting; /* names with commas; to be released */
	struct histogram hist[HISTS];
};

void counters_observe(struct counters *c, enum counter_histogram which, int64_t ns);
void counters_write(const struct counters *c, struct str model, struct buf *out);
const char *counters_finish_name(enum counter_finish f);
