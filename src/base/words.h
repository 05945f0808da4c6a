/* SPDX-License-Identifier: Apache-2.0 */
/*
 * words.h - a command line in one text cut into words as a POSIX shell would, and no more: no
 * variables, no patterns, no comments.
 *
 * Equal to Python's shlex.split: '...' is literal; in "..." a backslash only escapes another
 * one and the quote; outside quotes it escapes anything; blanks are space, tab, CR, LF.
 */
#pragma once
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

/*
 * argv is ended by NULL and lives in the arena with its words; n may be NULL. ERR_USAGE with
 * Python's reason ("No closing quotation", "No escaped character") or for a zero byte.
 */
int words_split(struct str text, struct arena *a, char ***argv, size_t *n, struct err *e);

struct buf;
/* A word as a POSIX shell reads it back, in quotes where it needs them; zero bytes are left out. */
void words_quote(struct buf *out, struct str word);

/* Of a list that ends with NULL; NULL: none. */
static inline size_t words_count(char *const *list)
{
	size_t n = 0;

	while (list && list[n])
		n++;
	return n;
}

/* A list in the making. v ends with NULL, and is NULL while it is empty. */
struct words {
	struct arena *arena;
	char **v;
	size_t n, room;
};
void words_add(struct words *w, char *word); /* the word is borrowed */
