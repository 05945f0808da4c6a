/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/salt.h - --prompt-salt: a few drawn tokens before every prompt, so that nothing an earlier
 * run left in a prefix cache helps.
 *
 * Texts begin with SALT_WORDS short words, lists of ids with as many ids, chats with the words
 * at the beginning of their first text. All salts of a run have the same number of bytes, so
 * that a plan that sends a sample again can put another salt in the first one's place.
 */
#pragma once
#include "base/buf.h"
#include "data/workload.h"
#include "token/tokenizer.h"

#define SALT_WORDS 8

enum salt_kind { SALT_NONE, SALT_RUN, SALT_REQUEST };

struct salt {
	enum salt_kind kind;
	uint64_t seed;
	uint32_t id_low, id_high; /* ids are drawn from these: all spelled with as many digits */
	const struct tokenizer *tokenizer;
};

void salt_init(struct salt *s, enum salt_kind kind, uint64_t seed, const struct tokenizer *t);
/*
 * Puts the salts of a whole workload in, and corrects prompt_len by counting. ERR_RUN names
 * the dataset and the request that has no text to salt; ERR_IO as workload_keep.
 */
int salt_workload(const struct salt *s, struct workload *w, struct err *e);
/*
 * sent is a copy of that salted sample: gets the salt of the entry that sends it again. Its
 * texts are then in text (given empty), which must live as long. Thread-safe.
 */
void salt_again(const struct salt *s, uint32_t sample, uint32_t entry, struct sample *sent,
		struct buf *text);
