/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pieces.h - splits a file of results that is too large to be read at once.
 *
 * JSON lines are cut between lines, a list of JSON objects between its members; a piece is like a
 * smaller file: lines, or a list. Nothing is read ahead: the text is a mapped file. The caller
 * checks the content of the pieces.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "core/base/err.h"
#include "core/base/str.h"

#define RESULT_PIECE_BYTES (8u << 20) /* approximate size of a piece, unless one result is larger */

struct result_pieces {
	struct str rest;       /* not returned yet */
	bool is_list;
	size_t bytes;          /* approximate size of a piece */
	size_t first, last;    /* lines, or members of the list, of the last piece; from 1 */
};

/*
 * The text is borrowed. ERR_LIMIT: it is one object, or packed, so it cannot be cut; the message
 * says what to do.
 */
int result_pieces_begin(struct result_pieces *p, struct str text, size_t bytes, struct err *e);
/*
 * Replaces out by the next piece: 1; 0: there is no more. -1: the list is not closed, or one result
 * is too large.
 */
int result_pieces_next(struct result_pieces *p, struct buf *out, struct err *e);
