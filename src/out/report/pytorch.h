/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pytorch.h - the result in the form of PyTorch's benchmark database: one record per metric (serve
 * spec 6.4). Made from the result file's own text, so that both always agree.
 */
#pragma once
#include <stddef.h>

#include "core/base/err.h"
#include "core/base/str.h"

struct pytorch_opts {
	struct str args;              /* JSON object of the options, secrets redacted */
	const char *model;            /* --model; NULL: null */
	const char *output_json, *result_filename; /* NULL: not given */
	/* JSON: the options' compilation_config.mode and optimization_level; empty: missing. */
	struct str mode, level;
};

struct pytorch_metric {
	const char *name;
	struct str values;            /* a JSON list of numbers */
};

/*
 * Appends the list of records for a result (one JSON object); nothing if it has none of their
 * metrics. The records repeat the result without "profllm". ERR_PARSE, ERR_LIMIT.
 */
int pytorch_write(const struct pytorch_opts *o, struct str result, struct buf *out, struct err *e);
/*
 * The same for given metrics, each with extra (one JSON object): the offline verbs (sweep spec
 * 2.3). n is at least 1.
 */
int pytorch_write_metrics(const struct pytorch_opts *o, const struct pytorch_metric *metric,
			  size_t n, struct str extra, struct buf *out, struct err *e);
/* path with its last suffix replaced by pytorch.json. Caller frees. */
char *pytorch_path(const char *path);
