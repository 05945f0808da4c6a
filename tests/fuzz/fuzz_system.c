/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_system.c - arbitrary bytes as files of /proc and of control groups, as sampling reads them.
 *
 * A refused file leaves nothing in the result; an accepted one is a number that is not below 0.
 */
#include <math.h>
#include <stdint.h>

#include "check.h"
#include "host/telemetry/system.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct str text = { (const char *)data, size };
	static const struct host_nets all = { .n = 0 };
	double a = -1, b = -1, limit;
	struct process_usage usage;

	CHECK(host_parse_stat(text, 100, &a) ? a >= 0 : a == -1);
	a = -1;
	CHECK(host_parse_meminfo(text, &a, &b) ? b >= 0 && a <= b : a == -1 && b == -1);
	a = b = -1;
	CHECK(host_parse_net(text, &all, &a, &b) ? a >= 0 && b >= 0 : a == -1 && b == -1);
	limit = host_parse_cpu_max(text);
	CHECK(isnan(limit) || limit > 0);
	limit = host_parse_memory_max(text);
	CHECK(isnan(limit) || limit > 0);
	if (tree_parse_usage(text, &usage))
		CHECK(memchr(data, ')', size) != NULL);
	return 0;
}
