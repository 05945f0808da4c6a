/* SPDX-License-Identifier: Apache-2.0 */
/*
 * markdown.h - a folder of results as the tables of vLLM's dashboard script
 * convert-results-json-to-markdown.py (sweep spec 8.4): benchmark_results.md and
 * benchmark_results.json, with its column names.
 *
 * As in upstream, a file's name decides its kind (serving, latency, throughput) and it needs
 * FILE.commands next to it; our own results and sweeps need neither, and results of startup get a
 * separate table.
 */
#pragma once
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/read.h"

/*
 * Reads dir and writes both files into it; lines gets messages about files left out. ERR_RUN: there
 * is no such folder.
 */
int markdown_report(const char *dir, struct buf *lines, struct err *e);

/*
 * One record of `bench serve` under the dashboard's names ("Output Tput (tok/s)"), without missing
 * values; name: the test's. NULL: not a result of a serving benchmark.
 */
const struct json_value *markdown_serving_row(const struct json_value *record, const char *name,
					      struct arena *a);
