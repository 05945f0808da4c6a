/* SPDX-License-Identifier: Apache-2.0 */
/* workload.c - see workload.h. */
#include "data/workload.h"

#include <math.h>

#include "base/mem.h"

struct sample *workload_add(struct workload *w)
{
	struct sample *s;

	if (w->n == w->cap) {
		w->cap = w->cap ? w->cap * 2 : 1024;
		w->v = mem_grow(w->v, w->cap, sizeof(*w->v));
	}
	s = &w->v[w->n++];
	*s = (struct sample){ .timestamp_s = NAN };
	return s;
}

void workload_release(struct workload *w)
{
	if (!w)
		return;
	free(w->v);
	arena_release(&w->arena);
	*w = (struct workload){ 0 };
}
