/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_price.h - the number of GPUs, and the price of one per hour.
 *
 * A table of prices is a text file with a line for each kind of GPU, "NAME = PRICE"; blank lines
 * and text after # are skipped. A NAME applies to every GPU whose name contains it, ignoring case;
 * of several the longest. Any currency may be used: examples/gpu-prices.txt.
 */
#pragma once
#include <stdint.h>

#include "core/base/err.h"

#define GPU_COUNT_MAX 1000000

/*
 * gpus: "4", "4xH100", "H100" (one); NULL or "": unknown. price: a number, or the path of a table,
 * which needs the GPU's name; NULL: unknown. *count and *price_per_hour (of one GPU) are 0 where
 * they are unknown. ERR_USAGE names option, value and what was expected; ERR_IO the table.
 */
int gpu_price_read(const char *gpus, const char *price, uint32_t *count, double *price_per_hour,
		   struct err *e);

/* Rows of a struct with texts gpus and gpu_price. */
#define GPU_PRICE_ROWS(type, heading, f)                                                        \
	OPT(type, gpus, "gpus", .group = (heading), .flags = (f), .arg = "[Nx]NAME",            \
	    .help = "the GPUs that serve, 4 or 4xH100, for throughput per GPU and cost"),       \
	OPT(type, gpu_price, "gpu-price", .group = (heading), .flags = (f), .arg = "PRICE|FILE", \
	    .words = "cost price", .help = "what a GPU costs an hour, or a file with lines NAME = PRICE")
