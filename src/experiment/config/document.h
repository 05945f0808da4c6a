/* SPDX-License-Identifier: Apache-2.0 */
/*
 * document.h - an experiment and its outcome as one standard JSON document.
 *
 * The layout is declared once, in schema/experiment.json, from which come the JSON Schema
 * that is shipped, the TypeScript types and docs/reference/experiment-document.md. Strict JSON:
 * a rate without limit is the text "inf", any other number that is none is null.
 *
 * Pure: the document says what struct experiment and struct outcome hold and nothing else. Both
 * may be half empty: of a configuration that was refused there is a name at most, and
 * the document of such a failure is valid too.
 *
 * Secrets do not appear (base/redact.h): neither where they are set nor where the same texts stand
 * later, such as in a log's end. Paths below the document's folder are written relative to it.
 */
#pragma once
#include "experiment/config/experiment.h"

#define DOCUMENT_SCHEMA_VERSION 1
#define DOCUMENT_PERCENTILES "50,90,95,99" /* of TTFT, TPOT, ITL and E2EL: always there */

/* One experiment: one JSON object, indented, with a newline at its end. */
void document_write(const struct experiment *x, const struct outcome *o, struct buf *out);

/*
 * The JSON Schema (draft 2020-12) that it is valid by, and the document of a suite (suite.h) too;
 * NUL-terminated, with a newline.
 */
struct str document_schema(void);
