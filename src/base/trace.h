/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.h - debugging lines by category: --trace net,load,run,token.
 *
 * The only global of the program besides the version; written once at start.
 */
#pragma once
#include <stdio.h>

#define TRACE_CATEGORIES(X) X(net) X(load) X(run) X(token)

#define X(name) TRACE_BIT_##name,
enum trace_bit { TRACE_CATEGORIES(X) TRACE_BITS };
#undef X

extern unsigned trace_mask;

/* Comma list of categories, or "all"; -1 when a name is unknown. */
int trace_enable(const char *list);

#define TRACE(cat, ...)                                                        \
	do {                                                                   \
		if (trace_mask & 1u << TRACE_BIT_##cat)                        \
			fprintf(stderr, #cat ": " __VA_ARGS__);                \
	} while (0)
