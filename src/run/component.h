/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/component.h - one set of a mix: a JSON object of options in place of a command line.
 */
#pragma once
#include "json/read.h"
#include "run/serve_opts.h"

/*
 * {"weight": 2, "dataset-name": "sharegpt", "dataset-path": ..., ...}: options of bench serve
 * by name, "-" and "_" alike; weight (default 1) is above 0. What belongs to the run and not
 * to a dataset is refused. Keys of data/request_keys.h hold for all requests of the set. Memory
 * in a; notes on options without effect go to notes.
 */
int run_component(struct json_slice object, struct arena *a, struct dataset_component *out,
		  struct buf *notes, struct err *e);
