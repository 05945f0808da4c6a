/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_newest.h - the newest documents of a store that match a filter, for verbs that cannot
 * include the store's own headers next to those of experiments.
 */
#pragma once
#include <stddef.h>

#include "core/base/err.h"
#include "core/base/str.h"

struct store;

/* Opens it for reading. url NULL: the user's own; a missing one is an error. */
int store_newest_open(const char *url, struct store **out, struct err *e);
void store_newest_close(struct store *s); /* accepts NULL */
/*
 * Calls take for at most n runs, the newest first; it returns -1 with e to stop. filter is JSON
 * (results/index/filter.h).
 */
int store_newest(struct store *s, struct str filter, size_t n, void *self,
		 int (*take)(void *self, struct str document, struct err *e), struct err *e);
