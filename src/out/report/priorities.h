/* SPDX-License-Identifier: Apache-2.0 */
/*
 * priorities.h - priority classes (metrics.h) as rows of a report and as JSON; and the report of
 * `bench prioritization`: upstream's line and keys, then the results of each class, and its cost or
 * gain compared with the same requests without priorities.
 *
 * Pure. Upstream's token numbers are the requested ones; ours are counted.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/metrics/metrics.h"
#include "core/base/str.h"
#include "core/json/read.h"
#include "core/json/write.h"

/* A block with its heading; nothing for a run with one class. */
void report_classes(const struct metrics *m, struct buf *out);
/* Writes a list; reads such a list and returns the number of classes. */
void report_classes_json(const struct metrics_class *class, size_t n, struct json_writer *w);
size_t report_classes_read(const struct json_value *list,
			   struct metrics_class out[METRICS_CLASSES_MAX]);

/* ---- bench prioritization ---- */

struct prioritization_run {
	double elapsed_s;            /* above 0 */
	bool has_counts;             /* the engine reported tokens */
	uint64_t prompt_tokens, output_tokens;
	struct metrics_class class[METRICS_CLASSES_MAX]; /* ascending */
	size_t n_classes;
};

struct prioritization_facts {
	size_t n;                    /* requests */
	uint64_t asked_tokens;       /* of prompts and answers, one answer each */
	struct prioritization_run run, baseline;
	bool has_baseline;           /* the same requests in the same order without priorities */
	struct str ours;             /* more members for "profllm", a JSON object */
};

/* Upstream's line, then ours. */
void prioritization_terminal(const struct prioritization_facts *f, struct buf *out);
/* Upstream's file (indent 4, no line end), then "profllm". */
void prioritization_json(const struct prioritization_facts *f, struct buf *out);
