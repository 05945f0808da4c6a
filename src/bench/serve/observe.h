/* SPDX-License-Identifier: Apache-2.0 */
/*
 * observe.h - a record of requests that another client sends, from packets between it and its
 * servers.
 *
 *   packets ─► net/streams.h ─► http/request.h, response.h ─► load/watch.h ─► record
 *
 * A request to a path of a generation API becomes a row; the API decides how the answer is read,
 * and the answer's Content-Type whether it is a stream. Other requests are counted. Stamps are
 * those of packets where they were captured. A request whose packets are missing in the capture is
 * cancelled and counted, because its answer is unknown; so is one that was cut off by the end of
 * the capture or by its client. A request that the server did not answer completely has failed.
 */
#pragma once
#include "client/metrics/trust.h"
#include "client/net/streams.h"
#include "client/record/file.h"
#include "client/record/record.h"
#include "core/base/err.h"
#include "out/report/report.h"

struct tokenizer;

struct observe_opts {
	struct stream_filter filter;
	const struct endpoint *backend; /* of all requests; NULL: by their paths */
	bool keeps_text;                /* the answers', for observer_score to count */
	uint32_t requests_max;          /* 1 to OBSERVED_REQUESTS_MAX; more are not seen */
};

struct observer;

struct observer *observer_new(const struct observe_opts *o, struct err *e);
void observer_free(struct observer *o); /* accepts NULL */
void observer_packet(struct observer *o, struct str packet, size_t wire_bytes, int64_t stamp_ns);

/* Rows so far, for progress. */
uint32_t observer_requests(const struct observer *o);

/*
 * The capture is over. Completes the rows, counts tokens where no usage was sent (t NULL: one for
 * each event), and fills the record's meta for a report. source names the capture in the report.
 * Texts are the observer's.
 */
void observer_score(struct observer *o, const struct tokenizer *t, const char *source,
		    uint64_t dropped, struct report_meta *meta);
/* ERR_RUN with the reason when no request was seen. After observer_score. */
int observer_check(const struct observer *o, struct err *e);
struct record *observer_record(struct observer *o);
struct record_info *observer_info(struct observer *o);
