/* SPDX-License-Identifier: Apache-2.0 */
/* Made by tests/peer/offline/golden_throughput.py: what vLLM 0.32.0's `bench throughput` printed and saved. */
#pragma once
#include <stddef.h>

static const struct {
	double elapsed_s;
	const char *backend;
	int n;
	bool has_media, is_counted;
	size_t requests;
	uint64_t asked[2], counted[2];
	const char *out, *json;
} throughput_golden[] = {
	{ 2.0, "vllm", 1, false, true, 2, { 22, 12 }, { 22, 12 },
		"Throughput: 1.00 requests/s, 17.00 total tokens/s, 6.00 output tokens/s\n"
		"Total num prompt tokens:  22\n"
		"Total num output tokens:  12\n",
		"{\n"
		"    \"model_id\": \"a/model\",\n"
		"    \"elapsed_time\": 2.0,\n"
		"    \"num_requests\": 2,\n"
		"    \"total_num_tokens\": 34,\n"
		"    \"requests_per_second\": 1.0,\n"
		"    \"tokens_per_second\": 17.0\n"
		"}" },
	{ 0.333, "vllm", 3, false, true, 2, { 22, 12 }, { 24, 28 },
		"Throughput: 6.01 requests/s, 156.16 total tokens/s, 84.08 output tokens/s\n"
		"Total num prompt tokens:  24\n"
		"Total num output tokens:  28\n",
		"{\n"
		"    \"model_id\": \"a/model\",\n"
		"    \"elapsed_time\": 0.333,\n"
		"    \"num_requests\": 2,\n"
		"    \"total_num_tokens\": 52,\n"
		"    \"requests_per_second\": 6.006006006006006,\n"
		"    \"tokens_per_second\": 156.15615615615616\n"
		"}" },
	{ 17.25, "vllm-chat", 1, true, true, 1, { 10, 5 }, { 300, 5 },
		"Throughput: 0.06 requests/s, 17.68 total tokens/s, 0.29 output tokens/s\n"
		"Total num prompt tokens:  300\n"
		"Total num output tokens:  5\n",
		"{\n"
		"    \"model_id\": \"a/model\",\n"
		"    \"elapsed_time\": 17.25,\n"
		"    \"num_requests\": 1,\n"
		"    \"total_num_tokens\": 305,\n"
		"    \"requests_per_second\": 0.057971014492753624,\n"
		"    \"tokens_per_second\": 17.681159420289855\n"
		"}" },
	{ 17.25, "vllm", 1, true, true, 1, { 10, 5 }, { 300, 5 },
		"\033[91mWARNING\033[0m: Multi-modal request with vllm backend detected. The following metr"
		"ics are not accurate because image tokens are not counted. See vllm-project/vllm/iss"
		"ues/9778 for details.\n"
		"Throughput: 0.06 requests/s, 17.68 total tokens/s, 0.29 output tokens/s\n"
		"Total num prompt tokens:  300\n"
		"Total num output tokens:  5\n",
		"{\n"
		"    \"model_id\": \"a/model\",\n"
		"    \"elapsed_time\": 17.25,\n"
		"    \"num_requests\": 1,\n"
		"    \"total_num_tokens\": 305,\n"
		"    \"requests_per_second\": 0.057971014492753624,\n"
		"    \"tokens_per_second\": 17.681159420289855\n"
		"}" },
	{ 3.1, "hf", 2, false, false, 2, { 2024, 228 }, { 0, 0 },
		"Throughput: 0.65 requests/s, 726.45 total tokens/s, 73.55 output tokens/s\n"
		"Total num prompt tokens:  2024\n"
		"Total num output tokens:  228\n",
		"{\n"
		"    \"model_id\": \"a/model\",\n"
		"    \"elapsed_time\": 3.1,\n"
		"    \"num_requests\": 2,\n"
		"    \"total_num_tokens\": 2252,\n"
		"    \"requests_per_second\": 0.6451612903225806,\n"
		"    \"tokens_per_second\": 726.4516129032257\n"
		"}" },
};
