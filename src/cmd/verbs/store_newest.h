/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_newest.h - the newest documents of a store that a filter takes, for verbs that cannot
 * include the store's own headers next to those of experiments.
 */
#pragma once
#include <stddef.h>

#include "core/base/err.h"
#include "core/base/str.h"

struct store;

/* To be read only. url NULL: the user's own; one that is not there is an error. */
int store_newest_open(const char *url, struct store **out, struct err *e);
void store_newest_close(struct store *s); /* accepts NULL */
/*
 * Calls take for n runs at most, the newest first; it returns -1 with e to end that. filter is JSON
 * (results/index/filter.h).
 */
int store_newest(struct store *s, struct str filter, size_t n, void *self,
		 int (*take)(void *self, struct str document, struct err *e), struct err *e);
