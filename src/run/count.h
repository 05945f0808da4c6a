/* SPDX-License-Identifier: Apache-2.0 */
/* run/count.h - fills in output token counts the server did not send. */
#pragma once
#include "record/record.h"
#include "token/tokenizer.h"

/*
 * Successful rows without a count get one; t may be NULL. Call before scoring.
 * is_all_text: reasoning, tool calls and refusals count, too; upstream counts the answer alone.
 */
void count_missing(struct record *r, const struct tokenizer *t, bool is_all_text);
