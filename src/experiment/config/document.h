/* SPDX-License-Identifier: Apache-2.0 */
/*
 * document.h - an experiment and its outcome as one standard JSON document.
 *
 * The layout is declared once, in schema/experiment.json, from which the shipped JSON Schema, the
 * TypeScript types and docs/reference/experiment-document.md are generated. Strict JSON: a rate
 * without limit is the text "inf", NaN is null.
 *
 * Pure: the document contains struct experiment and struct outcome and nothing else. Both may be
 * half empty: a refused configuration has at most a name, and the document of such a failure is
 * valid too.
 *
 * Secrets do not appear (base/redact.h), neither in settings nor where the same texts occur later,
 * such as in the end of a log. Paths below the document's folder are written relative to it.
 */
#pragma once
#include "experiment/config/experiment.h"

#define DOCUMENT_SCHEMA_VERSION 1
#define DOCUMENT_PERCENTILES "50,90,95,99" /* of TTFT, TPOT, ITL and E2EL: always there */

/* One experiment: one JSON object, indented, with a newline at its end. */
void document_write(const struct experiment *x, const struct outcome *o, struct buf *out);

/*
 * The JSON Schema (draft 2020-12) of this document and of a suite's (suite.h); NUL-terminated, with
 * a newline.
 */
struct str document_schema(void);
