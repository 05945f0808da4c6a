/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.h - facts about a trace before it is replayed, for the printed line and for reports.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace_facts {
	const char *format;      /* --trace-format in force */
	bool is_format_given;    /* it was not found out */
	size_t sessions;         /* 0: rows are independent */
	double speedup;
	double ideal_hit_rate;   /* tokens that begin an earlier prompt too / all; NAN: unknown */
	double prefix_exact;     /* share of rows whose text keeps its shared tokens; NAN: ids */
	uint32_t block;          /* tokens of an id; 0: it has none */
	uint64_t skipped;        /* rows without an answer or without a prompt */
	uint64_t short_rows, own_tokens; /* whose ids are too few; their tokens after these */
	uint64_t left_ids;       /* beyond the prompts' lengths */
};
