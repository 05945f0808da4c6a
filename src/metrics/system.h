/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics/system.h - what the machine did while load ran, from the series of a record.
 *
 * A pure function of series (record/system_series.h) between record.start_ns and stop_ns:
 *
 *   level    mean over time: samples are joined by straight lines and the area is divided by
 *            the time (trapezoid rule); the ends of the window are interpolated from the
 *            samples on both sides. min and max: of the samples in the window and its ends.
 *   growth   of a counter: its interpolated value at the end less that at the start.
 *   rate     growth over time; its max is the steepest step between two samples.
 *   energy   growth of the GPU's own counter where it has one, else the area below power.
 *
 * A window's end without a sample beyond it takes the nearest sample's value. Of several
 * records in one (hosts of one run) the first one's view of the same labels is taken.
 * Nothing was sampled: n = 0, or NAN; never 0 for "not known".
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "record/record.h"
#include "record/system_series.h"

/* Of n samples, those around the window too. */
struct metrics_level { size_t n; double min, mean, max; };

struct metrics_gpu {
	int64_t index;                 /* -1: not told */
	const char *uuid, *name;       /* may be empty */
	double memory_total;           /* bytes */
	struct metrics_level memory;   /* bytes */
	struct metrics_level utilization, memory_busy; /* % of time */
	struct metrics_level sm_clock, memory_clock; /* MHz */
	struct metrics_level power;    /* W */
	struct metrics_level temperature; /* degrees Celsius */
	double energy_j;
	bool is_energy_counted;        /* by the GPU; else power was integrated */
	double power_before_w;         /* of the last sample before the load */
};

struct metrics_process {
	const char *name;
	int64_t pid;
	struct metrics_level cpus;     /* busy ones */
	double cpu_s;
	struct metrics_level rss, threads, count;
};

struct metrics_host {
	double cpus, memory_total;
	struct metrics_level cpus_busy, memory;
	struct metrics_level received, sent; /* bytes/s */
};

struct metrics_system {
	bool is_told;                  /* there is any series of the machine */
	struct metrics_gpu *gpu;
	size_t n_gpus;
	struct metrics_host host;
	struct metrics_process *process;
	size_t n_processes;
	/* Over all GPUs; NAN without them. */
	double peak_gpu_memory_gb;     /* 1e9 bytes: sum of each GPU's peak */
	double avg_gpu_utilization;    /* %: mean of their means */
	double energy_j;               /* sum; NAN when one of them does not tell */
	double power_mean_w;           /* energy_j over the time */
	double power_before_w;
	double j_per_token, j_per_token_total; /* output; input and output */
	double tokens_per_s_per_w;     /* output tokens/s over power_mean_w: tokens per joule */
	/* What watching cost. */
	size_t samples;                /* in the window */
	double missed, interval_s;     /* beats left out; mean time between samples */
	double sampler_cpu_s, sampler_share; /* of one core */
	const char *note;              /* what could not be watched; NULL: nothing */
};

struct metrics_tokens { double input, output; };

/* Lists and texts go to the arena. */
void metrics_system(struct metrics_system *out, const struct record *r,
		    const struct metrics_tokens *tokens, struct arena *a);
