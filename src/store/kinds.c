/* SPDX-License-Identifier: Apache-2.0 */
/* kinds.c - see kinds.h: the table. */
#include "store/kinds.h"

/* In the order they are tried: what could be taken for another comes first. */
const struct kind kinds[] = {
	{ "profllm", "a document of profllm run", false, is_document, put_document },
	{ "pytorch", "records of the PyTorch benchmark format", true, is_pytorch, put_pytorch },
	{ "mm-processor", "a result of bench mm-processor", false, is_mm_processor,
	  put_mm_processor },
	{ "serve", "a result of bench serve", false, is_serve, put_serve },
	{ "throughput", "a result of bench throughput", false, is_throughput, put_throughput },
	{ "latency", "a result of bench latency", false, is_latency, put_latency },
	{ "startup", "a result of bench startup", false, is_startup, put_startup },
	{ "nightly", "a record of benchmark_results.json", false, is_nightly, put_nightly },
};
const size_t kind_count = sizeof(kinds) / sizeof(*kinds);

const struct kind *kind_of(const struct json_value *v)
{
	for (size_t i = 0; i < kind_count; i++)
		if ((v->kind == JSON_ARRAY) == kinds[i].is_list && kinds[i].is(v))
			return &kinds[i];
	return NULL;
}
