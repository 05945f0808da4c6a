/* SPDX-License-Identifier: Apache-2.0 */
/* structured.h - a result in the format of vLLM's structured-output script. */
#pragma once
#include "core/base/str.h"
#include "core/json/read.h"

struct structured_name {
	double ratio;              /* 0 with --no-structured-output, which prints as an integer */
	bool has_ratio;
	const char *backend, *model, *dataset;
	double request_rate;       /* INFINITY: all at once */
	int64_t num_prompts, output_len;
};

/* The file's name: "1.0so_vllm_infqps_LEAF_json_100_out128.txt". */
void structured_file_name(const struct structured_name *n, struct buf *out);

/*
 * result: from report_result_json with is_detailed, of dataset structured. Indented by 4, with the
 * script's keys in its order, then request_goodput and "profllm".
 */
void structured_json(const struct json_value *result, struct buf *out);
/* 'correct_rate(%) X ' as the script prints it, including the blank; without a line feed. */
void structured_rate_line(const struct json_value *result, struct buf *out);
