/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report/pytorch.h - the result in the form of PyTorch's benchmark database: one record per
 * metric (serve spec 6.4). Made of the result file's own text, so that both always agree.
 */
#pragma once
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

struct pytorch_opts {
	struct str args;              /* JSON object of the options, secrets redacted */
	const char *model;            /* --model; NULL: null */
	const char *output_json, *result_filename; /* NULL: not given */
};

/*
 * Appends the list of records for a result (one JSON object); nothing when no metric of theirs
 * is in it. "profllm" is left out of what each record repeats. ERR_PARSE, ERR_LIMIT.
 */
int pytorch_write(const struct pytorch_opts *o, struct str result, struct buf *out, struct err *e);
/* path with what follows its last dot replaced by pytorch.json. Caller frees. */
char *pytorch_path(const char *path);
