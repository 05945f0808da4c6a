/* SPDX-License-Identifier: Apache-2.0 */
/* report/structured.h - a result as vLLM's structured-output script saves it. */
#pragma once
#include "base/buf.h"
#include "base/err.h"

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
 * result: as report_result_json gives it with is_detailed, of dataset structured. Indented by 4,
 * with the script's keys in its order, then request_goodput and "profllm".
 */
int structured_json(struct str result, struct buf *out, struct err *e);
/* 'correct_rate(%) X ' as the script prints it, blank included; without a line feed. */
int structured_rate_line(struct str result, struct buf *out, struct err *e);
