/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pieces.h - a file of results that is too large to be read whole, in pieces that are not.
 *
 * JSON lines are cut between lines, a list of JSON objects between its members; a piece is what a
 * smaller file would be: lines, or a list. Nothing is read ahead: the text is a mapped file. What
 * the pieces contain is checked by whoever reads them.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "core/base/err.h"
#include "core/base/str.h"

#define RESULT_PIECE_BYTES (8u << 20) /* about as many a piece, unless one result has more */

struct result_pieces {
	struct str rest;       /* what is still to come */
	bool is_list;
	size_t bytes;          /* as many a piece */
	size_t first, last;    /* lines, or members of the list, of the last piece; from 1 */
};

/*
 * The text is borrowed. ERR_LIMIT: it is one object, or packed, so it cannot be cut; the sentence
 * says what to do.
 */
int result_pieces_begin(struct result_pieces *p, struct str text, size_t bytes, struct err *e);
/*
 * Puts the next piece into out: 1; 0: there is no more. -1: the list is not closed, or one
 * result is too large.
 */
int result_pieces_next(struct result_pieces *p, struct buf *out, struct err *e);
