/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capacity.h - the size of a server's KV cache, as the server reports it.
 *
 * From the text of its log (vLLM's lines since 0.6, SGLang's) or, if it has none, from the text of
 * its /metrics (vllm:cache_config_info and SGLang's metrics). A server of several engines (data
 * parallel) reports it several times: tokens add up, as do the requests that fit.
 */
#pragma once
#include <stdbool.h>

#include "core/base/str.h"
#include "core/json/write.h"

/* NAN if not reported. */
struct capacity {
	bool is_known;               /* kv_tokens is a number */
	double kv_tokens;            /* of the whole cache */
	double max_concurrency;      /* requests of tokens_per_request tokens that fit at once */
	double tokens_per_request;   /* the model's length, as the server was started */
	const char *source;          /* "log", "metrics"; "" */
};

void capacity_of_log(struct str log, struct capacity *out);
void capacity_of_metrics(struct str text, struct capacity *out);
/* {"kv_tokens": ..., "max_concurrency": ..., "tokens_per_request": ..., "source": ...} */
void capacity_write(const struct capacity *c, struct json_writer *w);
