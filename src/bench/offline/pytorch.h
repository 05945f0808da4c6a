/* SPDX-License-Identifier: Apache-2.0 */
/* pytorch.h - the PyTorch benchmark file of a run (report/pytorch.h). */
#pragma once
#include "bench/offline/offline.h"
#include "bench/options/serve_opts.h"
#include "out/report/pytorch.h"

/* SAVE_TO_PYTORCH_BENCHMARK_FORMAT is set: results get that file next to them. */
bool run_pytorch_is_wanted(void);
/* The options as upstream would write them to the file. Also for tests. */
void run_pytorch_args(const struct serve_opts *o, struct buf *out);
/*
 * Writes it next to the result at path, whose text is result; nothing if there are no such metrics.
 */
int run_pytorch_save(const struct serve_opts *o, const char *path, struct str result,
		     struct err *e);

/* An offline verb with its arguments. */
struct run_pytorch_verb {
	const struct opt_set *set;
	const void *values;
	const struct offline_engine *engine;
	const char *output_json; /* its result is there, or would be */
};
/*
 * Writes the file of some metrics, when such files are wanted and output_json is not NULL; next to
 * that file, with key before its suffix ("cold_startup"; NULL: none). extra: a JSON object.
 */
int run_pytorch_save_verb(const struct run_pytorch_verb *verb, const char *key,
			  const struct pytorch_metric *metric, size_t n, struct str extra,
			  struct err *e);
