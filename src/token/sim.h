/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token/sim.h - the built-in tokenizer; its rules stand in token/tokenizer.h.
 *
 * Pure arithmetic, no table and no state, so it costs nothing to start.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "token/ids.h"

#define SIM_WORD_FIRST 256u
#define SIM_WORDS (26u * 26u * 26u)
#define SIM_VOCAB (SIM_WORD_FIRST + SIM_WORDS)
#define SIM_END SIM_VOCAB
#define SIM_END_TEXT "<|end|>"

void sim_encode(struct str text, struct ids *out);
size_t sim_count(struct str text);
void sim_decode(const uint32_t *ids, size_t n, bool skip_special, struct buf *out);
