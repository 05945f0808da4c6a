/* SPDX-License-Identifier: Apache-2.0 */
/*
 * multi_turn.h - results of the requests of `bench multi-turn`, in the form of vLLM's script
 * (conversations spec 1.7): its statistics table and lines, its JSON, its spreadsheet.
 *
 * Pure. The definitions are upstream's, under upstream's names: tokens are counted on the texts of
 * messages, without chat template and special tokens, and `approx_cached_percent` is not measured.
 * The server's own numbers follow them in the JSON.
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
	uint32_t input_num_turns;         /* messages sent */
	uint32_t input_num_tokens, output_num_tokens;
	uint32_t output_num_chunks;       /* with text, without the first one */
	uint32_t output_num_first_chunk_tokens;
	double approx_cached_percent;
	struct str conversation_id;
	uint32_t client_id;
	/* As reported by the server, else TURN_UNKNOWN. */
	int64_t server_prompt_tokens, server_cached_tokens, server_output_tokens;
};

/*
 * Sets ttft_ms and tpot_ms from the time to the first chunk with text, latency_ms and the counts of
 * output tokens: the time of a first chunk of several tokens is extrapolated to its first token.
 */
void turn_stats_times(struct turn_stats *s, double first_chunk_ms);
/* Sets approx_cached_percent: everything sent except the last message. */
void turn_stats_cached(struct turn_stats *s, uint32_t last_message_tokens);

struct multi_turn_report {
	struct turn_stats *v;             /* in the order in which they ended */
	size_t n;
	const double *warmup;             /* shares 0..1 to leave out, ascending; at least one */
	size_t n_warmup;
	double warmup_runtime_s;          /* of the warm-up step; NAN: there was none */
	const struct report_pair *params; /* the run's parameters */
	size_t n_params;
	const struct report_pair *generated; /* parameters of generated conversations; or none */
	size_t n_generated;
	bool is_verbose;                  /* time_between_user_turns_sec */
	bool is_in_colour;
};

/*
 * Printed before the run: counts of all conversations, and a table of them with the percentiles
 * that n_labelled samples have.
 */
struct multi_turn_count { const char *name; double *v; size_t n; }; /* v is sorted */
void multi_turn_describe(const struct multi_turn_count *count, size_t n, size_t n_labelled,
			 struct buf *out);

/* All blocks, from "Parameters:" to the last table. Nothing if there are no requests. */
void multi_turn_terminal(const struct multi_turn_report *r, struct buf *out);
/* --stats-json-output: a list (indent 2), in order of ending. */
void multi_turn_json(const struct multi_turn_report *r, struct buf *out);
/* --excel-output: a spreadsheet file. ERR_LIMIT. */
int multi_turn_workbook(const struct multi_turn_report *r, struct buf *out, struct err *e);
