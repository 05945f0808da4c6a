/* SPDX-License-Identifier: Apache-2.0 */
/* trace.c - see trace.h. */
#include "base/trace.h"

#include "base/str.h"

unsigned trace_mask;

int trace_enable(const char *list)
{
#define X(name) #name,
	static const char *const names[] = { TRACE_CATEGORIES(X) };
#undef X
	struct str rest = str_of(list);

	while (rest.n) {
		struct str item = str_cut(&rest, ',');
		unsigned bit = 0;

		if (str_is(item, "all")) {
			trace_mask = ~0u;
			continue;
		}
		while (bit < TRACE_BITS && !str_is(item, names[bit]))
			bit++;
		if (bit == TRACE_BITS)
			return -1;
		trace_mask |= 1u << bit;
	}
	return 0;
}
