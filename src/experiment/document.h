/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experiment/document.h - an experiment and its outcome as one standard JSON document.
 *
 * What stands where is declared once, in schema/experiment.json, from which come the JSON Schema
 * that is shipped, the TypeScript types and docs/reference/experiment-document.md. Strict JSON:
 * a rate without limit is the text "inf", any other number that is none is null.
 *
 * Pure: the document says what struct experiment and struct outcome hold and nothing else. Both
 * may be half empty: of a configuration that was refused there is a name at most, and
 * the document of such a failure is valid too.
 *
 * Secrets do not appear: values whose names say that they are (api_key, HF_TOKEN, ...), engine
 * arguments that are marked so, and the same texts wherever else they stand (a log's end, a
 * command line). Paths below the document's folder are written relative to it.
 */
#pragma once
#include "experiment/experiment.h"

#define DOCUMENT_SCHEMA_VERSION 1

/* One experiment: one JSON object, indented, with a newline at its end. */
void document_write(const struct experiment *x, const struct outcome *o, struct buf *out);

/*
 * The JSON Schema (draft 2020-12) that it is valid by, and the document of a suite (suite.h) too;
 * NUL-terminated, with a newline.
 */
struct str document_schema(void);

/*
 * Whether the name of an environment variable or of a setting says that its value is a secret:
 * one of its words is key, token, secret, password or their like ("tokenizer" is not).
 */
bool document_is_secret(struct str name);
