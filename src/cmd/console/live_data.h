/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_data.h - what the live view knows of a run that goes on: percentiles so far, the
 * slowest requests, the last errors.
 *
 * Read from rows that have ended, so it follows the record and touches nothing the loops
 * write to. Percentiles come from histograms whose buckets are at most 1/64 wide; the
 * report's come from the record and are exact.
 */
#pragma once
#include "client/record/record.h"

#define LIVE_BUCKETS (64 * 40) /* up to 2^44 ns: five hours */
#define LIVE_SLOWEST 5
#define LIVE_ERRORS 4
#define LIVE_ERROR_BYTES 200

struct live_hist {
	uint64_t count[LIVE_BUCKETS];
	uint64_t n;
	double sum_ns;
	int64_t max_ns;
};
void live_hist_add(struct live_hist *h, int64_t ns);
/* 0..100, in ns; 0 when empty. */
double live_hist_percentile(const struct live_hist *h, double p);

struct live_slow { uint32_t row; int64_t e2el_ns, ttft_ns; uint32_t events; };
struct live_error { uint32_t row; enum fail_category category; char text[LIVE_ERROR_BYTES]; };

struct live_data {
	struct live_hist ttft, itl, e2el;
	uint32_t fail[FAIL_COUNT];
	struct live_slow slow[LIVE_SLOWEST];    /* slowest first */
	unsigned n_slow;
	struct live_error error[LIVE_ERRORS];   /* newest first */
	unsigned n_errors;
	/* private */
	uint8_t *is_seen; /* one per row */
	uint32_t n_rows, low; /* all rows before low are seen */
	int64_t *gaps;
	size_t gaps_cap;
};

/* Forgets what was before; n_rows of the main run. */
void live_data_begin(struct live_data *d, uint32_t n_rows);
/*
 * Takes the rows that have ended since, of the first n_begun; about events_max token
 * events at most, the others next time.
 */
void live_data_take(struct live_data *d, const struct record *r, uint32_t n_begun,
		    uint64_t events_max);
void live_data_release(struct live_data *d);
