/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer.h - what an answer can be: which token counts of a server are believed, and how long
 * a stream is read. The limits are in base/limits.h. Private to load/.
 */
#pragma once
#include "client/endpoint/endpoint.h"
#include "core/base/err.h"

/*
 * Token counts that cannot be right become -1, as if the server had not sent them: below zero, not
 * a whole number, or more than USAGE_ASKED_FACTOR times what was asked for (of prompts: stated)
 * and more than the other limits allow. text_bytes: of the answer's text so far. True when there
 * was such a count.
 */
bool answer_counts_refuse(const struct request_row *row, uint64_t text_bytes, struct decoded *d);

/* Whether a stream has so many events or so much text that it has to end; e: the sentence. */
bool answer_is_too_long(const struct request_row *row, uint64_t events, uint64_t text_bytes,
			struct err *e);
