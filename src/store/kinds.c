/* SPDX-License-Identifier: Apache-2.0 */
/* kinds.c - see kinds.h: the table. */
#include "store/kinds.h"

/* In the order they are tried: what could be taken for another comes first. */
static const struct kind kinds[] = {
	{ "profllm", false, is_document, put_document },
	{ "pytorch", true, is_pytorch, put_pytorch },
	{ "mm-processor", false, is_mm_processor, put_mm_processor },
	{ "serve", false, is_serve, put_serve },
	{ "throughput", false, is_throughput, put_throughput },
	{ "latency", false, is_latency, put_latency },
	{ "startup", false, is_startup, put_startup },
	{ "nightly", false, is_nightly, put_nightly },
};

const struct kind *kind_of(const struct json_value *v)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if ((v->kind == JSON_ARRAY) == kinds[i].is_list && kinds[i].is(v))
			return &kinds[i];
	return NULL;
}
