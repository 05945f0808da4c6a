/* SPDX-License-Identifier: Apache-2.0 */
/*
 * document.h - converts an experiment's document to the record of a result file, so that code that
 * reads results also reads documents.
 *
 * The keys of "results" become the record's own under the names of result files; the load's options
 * are in profllm.options; the arguments given to the server that served are parameters, as in a
 * sweep's records; so is the name, without what a matrix added to it (its values are parameters
 * already). An experiment tagged decode_only has no times to the first token: its prompts were
 * never computed.
 *
 * Also in profllm: run_id, the verdicts of trust, system, and server_key, a text that is equal in
 * documents measured on one server: by the logs of its start, else by commit, release, address and
 * arguments.
 */
#pragma once
#include <stdbool.h>

#include "core/base/mem.h"
#include "core/json/read.h"

/* Whether it is an object with a config, with results (null: it failed) or without. */
bool document_is(const struct json_value *v);
/* NULL: the experiment has no results. Values are borrowed from v. */
const struct json_value *document_row(const struct json_value *v, struct arena *a);
/* "failed in the stage ready: REASON", of a document without results. In the arena. */
const char *document_failure(const struct json_value *v, struct arena *a);
