/* SPDX-License-Identifier: Apache-2.0 */
/* answer.c - see answer.h. */
#include "client/load/answer.h"

#include "core/base/limits.h"

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static bool refuse(int64_t *n, uint64_t most)
{
	if (*n == -1 || (*n >= 0 && (uint64_t)*n <= most))
		return false;
	*n = -1;
	return true;
}

bool answer_counts_refuse(const struct request_row *row, uint64_t text_bytes, struct decoded *d)
{
	uint64_t asked = row->asked_tokens ? (uint64_t)row->asked_tokens * USAGE_ASKED_FACTOR
					   : LENGTH_TOKENS_MAX;
	uint64_t stated = (uint64_t)row->sample_prompt_tokens * USAGE_ASKED_FACTOR;
	uint64_t output = larger(larger(asked, USAGE_OUTPUT_MIN), text_bytes);
	uint64_t prompt = larger(larger(stated, USAGE_PROMPT_MIN), row->request_bytes);
	bool is_refused = refuse(&d->output_tokens, output);

	is_refused |= refuse(&d->reasoning_tokens, output);
	is_refused |= refuse(&d->prompt_tokens, prompt);
	is_refused |= refuse(&d->cached_tokens, prompt);
	return is_refused;
}

bool answer_is_too_long(const struct request_row *row, uint64_t events, uint64_t text_bytes,
			struct err *e)
{
	uint64_t asked = (uint64_t)row->asked_tokens * USAGE_ASKED_FACTOR;
	uint64_t events_max = row->asked_tokens ? larger(asked, ANSWER_EVENTS_MIN)
						: ANSWER_EVENTS_UNASKED_MAX;
	uint64_t bytes_max = events_max * ANSWER_EVENT_BYTES + row->request_bytes; /* the echo */

	if (events > events_max)
		err_set(e, ERR_LIMIT, "the answer exceeds the limit of %llu events",
			(unsigned long long)events_max);
	else if (text_bytes > bytes_max)
		err_set(e, ERR_LIMIT, "the answer exceeds the limit of %llu bytes of text",
			(unsigned long long)bytes_max);
	else
		return false;
	return true;
}
