/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token/decoder.h - ids back to text.
 *
 * What a token reads as depends at most on whether it is the first one; both
 * texts are worked out once for every id (decoder_index), and decoding copies
 * them. What depends on neighbours is done on top: runs of byte tokens that are
 * no UTF-8, and what is cut from the ends of the whole.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct model;

/* One id's text: bytes [start, start + length) of decoder.text. */
struct decoder_shown {
	uint32_t start, length;
};
struct decoder {
	int placeholder;
};
void decoder_release(struct decoder *d); /* accepts a zeroed one */

/* After vocabulary and added tokens. */
int decoder_index(struct model *m, struct err *e);
