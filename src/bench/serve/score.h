/* SPDX-License-Identifier: Apache-2.0 */
/*
 * score.h - from a measured point to a report: gathers what the report layer needs from options,
 * point and driver.
 */
#pragma once
#include "bench/serve/point.h"
#include "core/base/mem.h"
#include "out/report/report.h"

/* Everything a report borrows from; release with scored_release. */
struct scored {
	struct report_meta meta;
	struct metrics metrics;
	struct trust trust;
	struct report report;
	struct arena arena;
};

/* point must outlive out. Also sets point->meta, which a stored record carries. */
void score_point(const struct serve_opts *o, const struct serve_derived *d, struct point *point,
		 struct scored *out);
/* Sets only point->meta, from what is known before load runs: for a record file begun early. */
void score_meta(const struct serve_opts *o, const struct serve_derived *d, struct point *point);
void scored_release(struct scored *s);
