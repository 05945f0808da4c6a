/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kind.h - the kind of a piece of JSON, by its members and never by the name of its file; and a
 * result's own verdicts on its metrics.
 */
#pragma once
#include <stdbool.h>

#include "core/base/str.h"
#include "core/json/read.h"

enum result_kind {
	RESULT_NONE,         /* unknown */
	RESULT_DOCUMENT,     /* of `profllm run`: one experiment */
	RESULT_PYTORCH,      /* a list with a record for each metric */
	RESULT_AIPERF,       /* the profile_export_aiperf.json of aiperf */
	RESULT_GENAI_PERF,   /* the profile_export_genai_perf.json of genai-perf */
	RESULT_GUIDELLM,     /* from guidellm's benchmarks.json, as cut by store/read.c */
	RESULT_MLPERF,       /* a log of MLPerf's LoadGen, as read by store/mlperf_log.c */
	RESULT_ENDPOINTS,    /* the result_summary.json of MLCommons endpoints */
	RESULT_INFERENCEX,   /* the agg_NAME.json of InferenceX */
	RESULT_MM_PROCESSOR,
	RESULT_SERVE,        /* ours and vLLM's, as the next three */
	RESULT_THROUGHPUT,
	RESULT_LATENCY,
	RESULT_STARTUP,
	RESULT_NIGHTLY,      /* a record of the benchmark_results.json of vLLM's nightlies */
	RESULT_KINDS,
};
enum result_kind result_kind(const struct json_value *v);
/* "profllm", "pytorch", "mm-processor" ...: the values of the column "source". */
const char *result_kind_name(enum result_kind kind);
/* Whether it is an object with measurements: any verb's result, no document or table row. */
bool result_is_record(const struct json_value *v);
/* The list "experiments" of a suite, which are documents. NULL: v is not a suite. */
const struct json_value *result_suite(const struct json_value *v);
/* {"results": [...]}: records inside an object that a tool added. NULL: v has none. */
const struct json_value *result_wrapped(const struct json_value *v);
bool result_is_wrapper(struct str key);

/* The values of metrics/trust.h, in their order. */
enum result_verdict { RESULT_VALID, RESULT_DEGRADED, RESULT_INVALID };

/* False: not the name of a verdict. */
bool result_verdict_read(const struct json_value *v, enum result_verdict *out);
const char *result_verdict_name(enum result_verdict v);
/* The whole run's; false: the record has none, as vLLM's. */
bool result_verdict_whole(const struct json_value *record, enum result_verdict *out);
/*
 * The verdict on the value of a key: that of the metric that the key is about ("p99_ttft_ms":
 * ttft). If the record does not judge that metric, or the key is about none: by the reasons about
 * it, else the best verdict of all metrics, else the verdict of the run. Counts of requests are
 * always VALID, as are all values of vLLM's files, which have no verdict.
 */
enum result_verdict result_verdict(const struct json_value *record, struct str key);
/*
 * Whether the key is a latency ("p99_tpot_ms") of which the run measured no value: upstream's keys
 * are 0 in this case, for example with answers of one token. That 0 is not a latency.
 */
bool result_is_unmeasured(const struct json_value *record, struct str key);
/*
 * The verdict of the whole run with the metrics that have it, "INVALID: ttft, itl"; up to three are
 * named. Appends nothing if the record has no verdict.
 */
void result_verdict_text(const struct json_value *record, struct buf *out);
/*
 * Whether an element of "reasons" makes the value of this key INVALID: it spoils the metric that
 * the key is about or, where the key is about none, every metric. A reason without the list
 * "spoils" spoils everything.
 */
bool result_reason_spoils(const struct json_value *reason, struct str key);
/* Whether it makes that value DEGRADED. */
bool result_reason_degrades(const struct json_value *reason, struct str key);
