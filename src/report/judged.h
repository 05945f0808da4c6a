/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report/judged.h - what a record (a result, or a document as report/document_row.h makes one) says
 * of its own metrics. Only numbers that are not INVALID answer a question.
 */
#pragma once
#include "json/read.h"
#include "metrics/trust.h"

/*
 * Of a metric by its key: the verdict of the metric behind it ("p99_ttft_ms": ttft), else that of
 * the whole run. VALID where the record has no verdict: vLLM's files have none.
 */
enum trust_verdict judged_metric(const struct json_value *record, struct str key);
/*
 * The verdict of the whole run with the metrics that have it, "INVALID: ttft, itl"; up to three are
 * named. Appends nothing where the record has no verdict.
 */
void judged_text(const struct json_value *record, struct buf *out);
