/* SPDX-License-Identifier: Apache-2.0 */
/*
 * priorities.h - priority classes (metrics.h) as rows of a report and as JSON; and what
 * `bench prioritization` reports: upstream's line and keys, then how each class fared, and what it
 * paid or gained against the same requests without priorities.
 *
 * Pure. Upstream's token numbers are those that were asked for; ours are counted.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/metrics/metrics.h"
#include "core/base/str.h"
#include "core/json/read.h"
#include "core/json/write.h"

/* Rows alone, for a report of n classes. */
void report_class_rows(const struct metrics_class *class, size_t n, struct buf *out);
/* A block with its heading; nothing for a run of one class. */
void report_classes(const struct metrics *m, struct buf *out);
/* A list, and such a list read again: how many there are. */
void report_classes_json(const struct metrics_class *class, size_t n, struct json_writer *w);
size_t report_classes_read(const struct json_value *list,
			   struct metrics_class out[METRICS_CLASSES_MAX]);

/* ---- bench prioritization ---- */

struct prioritization_run {
	double elapsed_s;            /* above 0 */
	bool has_counts;             /* the engine told tokens */
	uint64_t prompt_tokens, output_tokens;
	struct metrics_class class[METRICS_CLASSES_MAX]; /* ascending */
	size_t n_classes;
};

struct prioritization_facts {
	size_t n;                    /* requests */
	uint64_t asked_tokens;       /* of prompts and answers, one answer each */
	struct prioritization_run run, baseline;
	bool has_baseline;           /* the same requests in the same order without priorities */
	struct str ours;             /* members for "profllm" that others know: a JSON object */
};

/* Upstream's line, then ours. */
void prioritization_terminal(const struct prioritization_facts *f, struct buf *out);
/* Upstream's file (indent 4, no line end), then "profllm". */
void prioritization_json(const struct prioritization_facts *f, struct buf *out);
