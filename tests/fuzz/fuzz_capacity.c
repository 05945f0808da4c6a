/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server's log and its metrics: whatever they say, sizes are numbers that can be written and
 * are at least 0, or unknown.
 */
#include <math.h>

#include "bench/server/capacity.h"
#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_one(const struct capacity *c)
{
	CHECK(c->is_known == !isnan(c->kv_tokens));
	CHECK(isnan(c->kv_tokens) || (c->kv_tokens >= 0 && isfinite(c->kv_tokens)));
	CHECK(isnan(c->max_concurrency) ||
	      (c->max_concurrency >= 0 && isfinite(c->max_concurrency)));
	CHECK(isnan(c->tokens_per_request) ||
	      (c->tokens_per_request > 0 && isfinite(c->tokens_per_request)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct str text = { (const char *)data, n };
	struct capacity c;

	capacity_of_log(text, &c);
	check_one(&c);
	capacity_of_metrics(text, &c);
	check_one(&c);
	return 0;
}
