/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parallel.h - the same work on many items, by several threads.
 *
 * Threads take runs of neighbouring items from one counter. Each item has its own place for its
 * result, so the outcome does not depend on which thread took what. Runs begin in order, so the
 * first item that fails is always among those looked at.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* Cores this process may use, at most THREADS_MAX. */
unsigned parallel_threads(void);

/*
 * Calls one(self, item, worker) for items 0 to n - 1. worker, below threads, is the same for all
 * calls of one thread and selects its scratch memory. threads: at most THREADS_MAX; 0: one per
 * core. Returns the first item whose call returned false, n if none did. Items after a failed one
 * may be skipped.
 */
size_t parallel_for(unsigned threads, size_t n,
		    bool (*one)(void *self, size_t item, unsigned worker), void *self);
