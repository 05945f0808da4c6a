/* SPDX-License-Identifier: Apache-2.0 */
/* run/pytorch.h - the PyTorch benchmark file of a run (report/pytorch.h). */
#pragma once
#include "run/serve_opts.h"

/* SAVE_TO_PYTORCH_BENCHMARK_FORMAT is set: results get that file beside them. */
bool run_pytorch_is_wanted(void);
/* The options as upstream would show them in it. Also for tests. */
void run_pytorch_args(const struct serve_opts *o, struct buf *out);
/* Writes it beside the result at path, whose text is result; without such metrics, nothing. */
int run_pytorch_save(const struct serve_opts *o, const char *path, struct str result,
		     struct err *e);
