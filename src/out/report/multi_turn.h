/* SPDX-License-Identifier: Apache-2.0 */
/*
 * multi_turn.h - what the requests of `bench multi-turn` say, in the form of vLLM's script
 * (conversations spec 1.7): its statistics table and lines, its JSON, its spreadsheet.
 *
 * Pure. The definitions are upstream's, under upstream's names: tokens are counted on the texts
 * of messages, without chat template and special tokens, and `approx_cached_percent` is no
 * measurement. What the server reports itself follows them in the JSON.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "out/report/report.h"

#define TURN_UNKNOWN INT64_C(-1)

/* One answered request. Times are ms. */
struct turn_stats {
	double ttft_ms, tpot_ms, latency_ms;
	double start_time_ms;             /* of the monotonic clock */
	uint32_t input_num_turns;         /* messages that were sent */
	uint32_t input_num_tokens, output_num_tokens;
	uint32_t output_num_chunks;       /* that had text, the first one not counted */
	uint32_t output_num_first_chunk_tokens;
	double approx_cached_percent;
	struct str conversation_id;
	uint32_t client_id;
	/* As the server reports them, TURN_UNKNOWN where it does not. */
	int64_t server_prompt_tokens, server_cached_tokens, server_output_tokens;
};

/*
 * ttft_ms and tpot_ms, from the time to the first chunk with text, latency_ms and the counts of
 * output tokens: a first chunk of several tokens is taken back to its first token.
 */
void turn_stats_times(struct turn_stats *s, double first_chunk_ms);
/* approx_cached_percent: all that was sent but for the last message. */
void turn_stats_cached(struct turn_stats *s, uint32_t last_message_tokens);

struct multi_turn_report {
	struct turn_stats *v;             /* in the order in which they ended */
	size_t n;
	const double *warmup;             /* shares 0..1 left out, ascending; at least one */
	size_t n_warmup;
	double warmup_runtime_s;          /* of the warm-up step; NAN: there was none */
	const struct report_pair *params; /* what the run was told */
	size_t n_params;
	const struct report_pair *generated; /* what the conversations were made from; or none */
	size_t n_generated;
	bool is_verbose;                  /* time_between_user_turns_sec */
	bool is_in_colour;
};

/*
 * What is known before the run: counts of all conversations, and a table of theirs with the
 * percentiles that n_labelled samples have.
 */
struct multi_turn_count { const char *name; double *v; size_t n; }; /* v is sorted */
void multi_turn_describe(const struct multi_turn_count *count, size_t n, size_t n_labelled,
			 struct buf *out);

/* All blocks, from "Parameters:" to the last table. Nothing without requests. */
void multi_turn_terminal(const struct multi_turn_report *r, struct buf *out);
/* --stats-json-output: a list (indent 2), in order of ending. */
void multi_turn_json(const struct multi_turn_report *r, struct buf *out);
/* --excel-output: a spreadsheet file. ERR_LIMIT. */
int multi_turn_workbook(const struct multi_turn_report *r, struct buf *out, struct err *e);
