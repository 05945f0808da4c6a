/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oracle.h - the client's record compared with the simulator's truth file: the client's errors.
 *
 * `profllm sim --truth FILE` paces every event itself and records when it received each request and
 * sent each event (sim/serving/truth.h). Both clocks are CLOCK_REALTIME of the same machine, so a
 * difference of two stamps is the client's error, plus the way through the kernel and the server's
 * own send call of a few microseconds. Requests are joined by their ids.
 *
 * With T the first event's arrival, S the request's sending, r and s[] the server's stamps:
 *
 *   TTFT error   (T - S) - (s[0] - r)
 *   E2EL error   the same for the last event
 *   ITL error    | (arrival - arrival of the event before) - (s[i] - s[i-1]) |
 *   send         r - S: from the client's clock to the server's kernel
 *   stamp error  arrival - s[i]; TTFT error = send + stamp error of the first event
 *
 * Everything is in microseconds. Used by the error budget (budget.h) and by bench/.
 */
#pragma once
#include <stdint.h>

#include "client/record/record.h"
#include "core/base/err.h"
#include "core/base/str.h"

/* Nanoseconds since the epoch. */
struct oracle_request {
	int64_t recv_ns;
	int64_t *send_ns; /* of each event with choices */
	uint32_t events;
};
/* Row i is request PREFIX<i>. A zeroed struct is an empty one. */
struct oracle_truth {
	struct oracle_request *row;
	uint32_t n;
};

/*
 * Reads a complete truth file: the requests PREFIX0 to PREFIX<requests - 1>; lines of other
 * requests are skipped. ERR_PARSE names the request that is missing or damaged. Release in any
 * case.
 */
int oracle_read(struct oracle_truth *t, const char *path, const char *prefix, uint32_t requests,
		struct err *e);
void oracle_release(struct oracle_truth *t);

/* [0]: the run's own stamps (the kernel's unless it uses others); [1]: user space. */
struct oracle_errors {
	double *ttft, *e2el, *send;       /* of each request, signed, in the order joined */
	double *itl[2], *stamp[2];        /* of each event; itl without sign */
	size_t n_requests, n_itl, n_stamp;
	uint64_t n_shared;                /* events in the same read as an earlier one */

	/* NULL, or called with every ITL error and the time (record's clock) of the later event. */
	void (*gap)(void *self, int64_t at_ns, const double itl[2]);
	void *gap_self;
};

/* Allocates room for that many requests of at most that many events. */
void oracle_errors_init(struct oracle_errors *r, uint32_t requests, uint32_t events);
/*
 * Appends n requests: rows of the record from first_row on, and of the truth from first_request on.
 * ERR_RUN for one without exactly `events` events on both sides; events is at least 1.
 */
int oracle_join(struct oracle_errors *r, const struct record *record, uint32_t first_row,
		const struct oracle_truth *t, uint32_t first_request, uint32_t n, uint32_t events,
		struct err *e);
/* Sorts itl and stamp in ascending order, for percentiles. */
void oracle_errors_sort(struct oracle_errors *r);
/* Empties it for other requests and keeps the memory. */
void oracle_errors_reset(struct oracle_errors *r);
void oracle_errors_release(struct oracle_errors *r);
