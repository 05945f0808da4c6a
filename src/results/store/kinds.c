/* SPDX-License-Identifier: Apache-2.0 */
/* kinds.c - see kinds.h: the table. */
#include "results/store/kinds.h"

#include <assert.h>

static int (*const kinds[RESULT_KINDS])(struct reading *r, const struct json_value *v,
					struct err *e) = {
	[RESULT_DOCUMENT] = put_document, [RESULT_PYTORCH] = put_pytorch,
	[RESULT_MM_PROCESSOR] = put_mm_processor, [RESULT_SERVE] = put_serve,
	[RESULT_THROUGHPUT] = put_throughput, [RESULT_LATENCY] = put_latency,
	[RESULT_STARTUP] = put_startup, [RESULT_NIGHTLY] = put_nightly,
};

int put_kind(struct reading *r, enum result_kind kind, const struct json_value *v, struct err *e)
{
	assert(kind > RESULT_NONE && kind < RESULT_KINDS);
	return kinds[kind](r, v, e);
}
