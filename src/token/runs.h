/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token/runs.h - long texts in the parts that some programs around tiktoken cut.
 *
 * Llama 3's and Kimi's encode blocks of 400,000 characters, and within a block start
 * anew after 25,000 characters that are all blanks, or all none. Nothing merges
 * across such a cut, and no special token is found there.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

#define RUNS_BLOCK_CHARS 400000
#define RUNS_CHARS_MAX 25000

struct runs {
	struct str rest;
	size_t block; /* characters of the block handed out */
};

/* The next part of valid UTF-8; false at the end. Start with { .rest = text }. */
bool runs_next(struct runs *r, struct str *part);
