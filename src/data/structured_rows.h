/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data/structured_rows.h - the rows of --structured-dataset xgrammar_bench: messages that ask for
 * JSON, the schema it has to keep to, and an answer. Private to data/.
 *
 * From a dataset of the hub, a folder like one or a file, in the file's order: columns "prompt" (a
 * list of messages), "schema" (a JSON Schema as text) and "completion". Left out are rows whose
 * schema has what vLLM's benchmark leaves out because xgrammar did not support it (conversations
 * spec 4.3, the newest rules).
 */
#pragma once
#include "data/common.h"
#include "json/read.h"

#define XGRAMMAR_BENCH_NAME "NousResearch/json-mode-eval" /* without --dataset-path */

struct structured_row {
	struct str messages; /* JSON list */
	struct str contents; /* their texts, a line feed after each */
	struct str schema, completion;
};

/* Zeroed is a valid empty one. */
struct structured_rows {
	struct structured_row *v;
	size_t n, cap, left_out;
	struct arena arena;
};

/* ERR_RUN: no row is left; ERR_PARSE: a row without these columns, or a schema that is not JSON. */
int structured_rows_read(const struct dataset_opts *o, const struct dataset_env *env,
			 struct workload *w, struct structured_rows *out, struct err *e);
void structured_rows_release(struct structured_rows *r);

/* Whether a schema has what makes vLLM's benchmark leave its row out. */
bool structured_is_unsupported(const struct json_value *schema);
