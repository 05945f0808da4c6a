/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report/compare_tables.h - the tables of vLLM's dashboard script compare-json-results.py (sweep
 * spec 8.5): values of several benchmark_results.json side by side with ratios, and the highest
 * concurrency at which TTFT and TPOT stay within limits.
 *
 * Beside upstream's columns the summary has ours: the first level that fails, and the highest
 * level below it at which one row satisfies both limits (defect ledger 13).
 *
 * Operands may also be results, folders of results and sweeps; their rows are made as
 * report/markdown.h makes them.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

struct tables_opts {
	const char *xaxis;     /* a column; the level of the summary */
	const char *latency;   /* contains "median": medians, else p99 */
	double ttft_max_ms, tpot_max_ms, ttft_slack_pct, tpot_slack_pct;
	bool is_debug, is_plotted;
	const char *csv_dir;   /* "": none */
	const char *html_dir;  /* "": the current folder */
};

/*
 * One file is split by TP and PP size below html_dir/splits/ and its parts are compared; several
 * are compared as given. Writes perf_comparison.html, one page per group and the CSV files;
 * out gets upstream's lines and the tables for a terminal.
 */
int tables_compare(const struct tables_opts *o, const char *const *path, size_t n,
		   struct arena *a, struct buf *out, struct err *e);
