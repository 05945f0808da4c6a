/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data/multi_turn.h - --multi-turn of upstream's Rust client: conversations of random texts, or of
 * ShareGPT's. Private to data/.
 *
 * --num-prompts is the number of conversations. A session is "conv-<j>", its request ids are
 * <prefix>conv-<j>-turn<t>, and users' messages are lists of one text part. Upstream's generator is
 * not ours, so requests are alike in number, length and shape, not in text.
 */
#pragma once
#include "data/common.h"
#include "data/conversation.h"

/* What is wrong with the options for this set ("random" or "sharegpt"). ERR_USAGE. */
int multi_turn_check(const char *set, const struct dataset_opts *o, const struct dataset_env *env,
		     struct err *e);
int multi_turn_random(const struct dataset_opts *o, const struct dataset_env *env,
		      struct workload *w, struct err *e);
int multi_turn_sharegpt(const char *path, const struct dataset_opts *o,
			const struct dataset_env *env, struct compat_rng *rng, struct workload *w,
			struct err *e);

/*
 * The sessions of c by o's options; c's users' messages become lists of one text part. Notes
 * how many --max-model-len left out.
 */
int multi_turn_sessions(struct conversations *c, const struct dataset_opts *o,
			const struct dataset_env *env, struct workload *w, struct err *e);
