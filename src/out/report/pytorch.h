/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pytorch.h - the result in the form of PyTorch's benchmark database: one record per
 * metric (serve spec 6.4). Made of the result file's own text, so that both always agree.
 */
#pragma once
#include <stddef.h>

#include "core/base/err.h"
#include "core/base/str.h"

struct pytorch_opts {
	struct str args;              /* JSON object of the options, secrets redacted */
	const char *model;            /* --model; NULL: null */
	const char *output_json, *result_filename; /* NULL: not given */
	/* JSON: the options' compilation_config.mode and optimization_level; empty: it has none. */
	struct str mode, level;
};

struct pytorch_metric {
	const char *name;
	struct str values;            /* a JSON list of numbers */
};

/*
 * Appends the list of records for a result (one JSON object); nothing when no metric of theirs
 * is in it. "profllm" is left out of what each record repeats. ERR_PARSE, ERR_LIMIT.
 */
int pytorch_write(const struct pytorch_opts *o, struct str result, struct buf *out, struct err *e);
/*
 * Likewise of metrics that are told, each with extra (one JSON object): the offline verbs
 * (sweep spec 2.3). n is at least 1.
 */
int pytorch_write_metrics(const struct pytorch_opts *o, const struct pytorch_metric *metric,
			  size_t n, struct str extra, struct buf *out, struct err *e);
/* path with what follows its last dot replaced by pytorch.json. Caller frees. */
char *pytorch_path(const char *path);
