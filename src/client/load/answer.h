/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer.h - plausibility limits of an answer: which token counts from a server are accepted, and
 * how long a stream may be. The limits are in base/limits.h. Private to load/.
 */
#pragma once
#include "client/endpoint/endpoint.h"
#include "core/base/err.h"

/*
 * Replaces impossible token counts by -1, as if the server had not sent them: below zero, not a
 * whole number, or more than USAGE_ASKED_FACTOR times what was asked for (for prompts: stated) and
 * more than the other limits allow. text_bytes: the answer's text so far. Returns true if a count
 * was replaced.
 */
bool answer_counts_refuse(const struct request_row *row, uint64_t text_bytes, struct decoded *d);

/* Whether a stream has too many events or too much text and must end; e: the sentence. */
bool answer_is_too_long(const struct request_row *row, uint64_t events, uint64_t text_bytes,
			struct err *e);
