/* SPDX-License-Identifier: Apache-2.0 */
/*
 * telemetry/telemetry.h - what servers say of themselves while load runs.
 *
 * Reads /metrics of every server once before the load, every interval while it
 * runs, and once after, and makes series of what names.h knows:
 *
 *   telemetry_begin   on the caller's thread: the reading before; then a thread
 *   telemetry_end     ends that thread; the reading after; moves all to the record
 *
 * The thread touches nothing of the record and nothing of the loops, so a record
 * may be written or merged at any time; what was read stands in it from
 * telemetry_end on (a record file gets series when it is closed).
 *
 * A point's time is the middle of its transfer, on the record's clock. A server
 * that does not answer before the load, or whose answer holds nothing that is
 * known, is not asked again: the record gets a note of kind NOTE_SERVER_METRICS with
 * the reason instead of series. Nothing here is ever an error of the run.
 *
 * A series that reaches TELEMETRY_POINTS_MAX points loses every second one, and the
 * interval doubles, so that it covers the run however long that is.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "fetch/fetch.h"
#include "record/record.h"
#include "telemetry/names.h"

#define TELEMETRY_TIMEOUT_MS 5000  /* of one reading */

/* One server; everything is borrowed until telemetry_end. */
struct telemetry_source {
	const char *url;
	const char *labels;        /* of its series, as Prometheus spells them: url="..." */
	struct fetch_opts opts;    /* header, TLS, socket; timeout and cancel are set here */
};

struct telemetry;

/* interval_ns 0: only before and after. Never NULL, and never fails. */
struct telemetry *telemetry_begin(const struct telemetry_source *source, size_t n,
				  int64_t interval_ns);
/* What the servers said last, over all of them; NAN: nothing. From any thread. */
struct telemetry_now { double running, waiting, kv_usage; };
void telemetry_now(const struct telemetry *t, struct telemetry_now *out);
/* Frees t; accepts NULL. */
void telemetry_end(struct telemetry *t, struct record *into);
