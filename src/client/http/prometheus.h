/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prometheus.h - the Prometheus text format, reading and writing.
 *
 * Reading walks the samples of a text in memory and borrows from it. Comment lines (HELP, TYPE,
 * EOF) and what OpenMetrics puts after a value (time stamp, exemplar) are skipped.
 */
#pragma once
#include <stdbool.h>

#include "core/base/err.h"
#include "core/base/str.h"

struct prometheus_sample {
	struct str name;
	struct str labels; /* between the braces, values still escaped; empty when none */
	double value;
};

/*
 * Cuts lines from *rest up to the next sample. 1: a sample; 0: the end; -1: a malformed line (e
 * quotes it), after which the walk may continue.
 */
int prometheus_next(struct str *rest, struct prometheus_sample *out, struct err *e);

/* The value of a label, still escaped; false when there is none of that name. */
bool prometheus_label(struct str labels, const char *name, struct str *value);
/* Appends a label value with its escapes resolved. */
void prometheus_unescape(struct buf *out, struct str value);

/* "# HELP" and "# TYPE" lines; type: counter, gauge, histogram, summary, untyped. */
void prometheus_add_family(struct buf *out, const char *name, const char *type,
			   const char *help);
/* Appends name="value", escaped, after a comma when labels is not empty. */
void prometheus_add_label(struct buf *labels, const char *name, struct str value);
/* One sample line; labels as made by prometheus_add_label. */
void prometheus_add_sample(struct buf *out, const char *name, struct str labels, double value);
