/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token/ranks.h - models that are a list of byte strings with ranks (tiktoken, tekken).
 *
 * Such a file has no merges: of two neighbours those are joined whose joint bytes are
 * the token of the lowest rank, the leftmost of equals, and a word that is a token is
 * that token at once.
 */
#pragma once
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "token/model.h"

/* Adds a token by its base64; what: the line or entry it stands in, for errors. */
int ranks_add(struct model *m, struct str base64, int64_t id, const char *what, size_t number,
	struct err *e);
/* After the last token: indexes the vocabulary, whose id first has rank 0, and makes the BPE. */
int ranks_index(struct model *m, uint32_t first, struct err *e);
