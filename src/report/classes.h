/* SPDX-License-Identifier: Apache-2.0 */
/* report/classes.h - priority classes (metrics.h) as rows of a report and as JSON. */
#pragma once
#include "json/read.h"
#include "json/write.h"
#include "metrics/metrics.h"

/* Rows alone, for a report of n classes. */
void report_class_rows(const struct metrics_class *class, size_t n, struct buf *out);
/* A block with its heading; nothing for a run of one class. */
void report_classes(const struct metrics *m, struct buf *out);
/* A list, and such a list read again: how many there are. */
void report_classes_json(const struct metrics_class *class, size_t n, struct json_writer *w);
size_t report_classes_read(const struct json_value *list,
			   struct metrics_class out[METRICS_CLASSES_MAX]);
