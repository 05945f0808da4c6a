/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data/sharegpt_convert.h - ShareGPT's raw files as conversations (data/conversation.h), after
 * upstream's convert_sharegpt_to_openai.py.
 *
 * The parts of a conversation, "<id>_<number>", are joined in the order of their numbers; a part
 * whose first speaker is the one of the last message kept loses its first message. Conversations
 * are shuffled, those that do not alternate between user and assistant or that the limits leave
 * out are dropped, and of the rest max_items are drawn. Different from upstream: it joins parts in
 * the order of the shuffled file, and its language filter keeps what it is meant to drop.
 */
#pragma once
#include "data/conversation.h"

struct sharegpt_convert_opts {
	int64_t seed;                        /* of Python's random */
	int64_t max_items;                   /* 0: all */
	int64_t min_turns, max_turns;        /* messages, before and after the first is skipped; 0: any */
	int64_t min_content_len, max_content_len; /* characters of every message; 0: any */
	bool any_language;                   /* else messages with non-ASCII characters are dropped */
	const atomic_bool *cancel;           /* may be NULL */
};

struct sharegpt_converted {
	size_t items, joined;                /* of the file; conversations made of them */
	size_t too_short, not_alternating, wrong_length, wrong_language; /* dropped for that */
	size_t kept;                         /* before max_items */
};

/* ERR_IO, ERR_PARSE, ERR_RUN with item and message. *out must be released in either case. */
int sharegpt_convert(const char *path, const struct sharegpt_convert_opts *o,
		     struct conversations *out, struct sharegpt_converted *count, struct err *e);
