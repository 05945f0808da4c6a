/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data/trace_content.h - what a row of a trace brings along itself: a text, messages, a whole body,
 * keys of the body. Private to data/.
 */
#pragma once
#include "data/trace_source.h"

bool trace_has_content(const struct trace_row *row);

/*
 * Fills prompt, messages and prompt_len of a row with content. Texts are in a. ERR_RUN: a backend
 * that cannot carry it, with file and line.
 */
int trace_content_take(const struct trace_source *s, const struct trace_row *row,
		       const struct dataset_env *env, struct arena *a, struct sample *out,
		       struct err *e);

/*
 * The keys that a row adds to its body as one JSON object: min_tokens where is_min (an answer of
 * output tokens and no less), then tools, extra and what a payload has. Nothing: out stays empty.
 */
void trace_content_overrides(const struct trace_row *row, bool is_min, int64_t output,
			     struct buf *out);
