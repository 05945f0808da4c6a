/* SPDX-License-Identifier: Apache-2.0 */
/* run/count.h - fills in output token counts the server did not send. */
#pragma once
#include "record/record.h"
#include "token/tokenizer.h"

/*
 * Successful rows without a count get one; t may be NULL. Call before scoring.
 * is_all_text: also counts reasoning, tool calls and refusals; upstream counts only the answer.
 */
void count_missing(struct record *r, const struct tokenizer *t, bool is_all_text);
