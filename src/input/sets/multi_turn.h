/* SPDX-License-Identifier: Apache-2.0 */
/*
 * multi_turn.h - --multi-turn of upstream's Rust client: conversations of random texts, or of rows
 * in ShareGPT's form. Private to data/.
 *
 * --num-prompts is the number of conversations. A session is "conv-<j>", its request ids are
 * <prefix>conv-<j>-turn<t>, and users' messages are lists of one text part. Upstream's generator is
 * not reproduced, so requests are equal in number, length and form, not in text.
 */
#pragma once
#include "input/data/build.h"
#include "input/trace/conversation.h"

/* Checks the options for this set ("random", "sharegpt" or "hf"). ERR_USAGE. */
int multi_turn_check(const char *set, const struct dataset_opts *o, const struct dataset_env *env,
		     struct err *e);
int multi_turn_random(const struct dataset_opts *o, const struct dataset_env *env,
		      struct workload *w, struct err *e);
int multi_turn_sharegpt(const char *path, const struct dataset_opts *o,
			const struct dataset_env *env, struct compat_rng *rng, struct workload *w,
			struct err *e);
/*
 * Rows in the order in which they are asked for, from 0: 1, 0 when there are no more, or -1. A row
 * has a list "conversations", "conversation" or "messages", of {"from", "value"} or {"role",
 * "content"}; others are left out. Answers have output_len tokens, or as many as the row's.
 */
struct multi_turn_talks {
	const char *name; /* for messages */
	int (*next)(void *self, size_t i, struct json_slice *row, struct err *e);
	void *self;
	struct opt_int output_len;
};
int multi_turn_talks(const struct multi_turn_talks *rows, const struct dataset_opts *o,
		    const struct dataset_env *env, struct compat_rng *rng, struct workload *w,
		    struct err *e);

/*
 * Makes c's sessions by o's options; c's users' messages become lists of one text part. Notes how
 * many --max-model-len left out.
 */
int multi_turn_sessions(struct conversations *c, const struct dataset_opts *o,
			const struct dataset_env *env, struct workload *w, struct err *e);
