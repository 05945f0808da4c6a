/* SPDX-License-Identifier: Apache-2.0 */
/* oracle.c - see oracle.h. */
#include "client/metrics/oracle.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/json/read.h"
#include "core/stats/stats.h"

/* ---- the truth file ---- */

static int read_stamps(struct oracle_request *r, struct json_slice list)
{
	struct json_iter it = json_iter(list);
	struct json_slice v;
	struct str key;
	uint32_t cap = 0;

	while (json_each(&it, &key, &v) == 1) {
		if (r->events == cap) {
			cap = cap ? cap * 2 : 64;
			r->send_ns = mem_grow(r->send_ns, cap, sizeof(*r->send_ns));
		}
		if (!json_to_i64(v, &r->send_ns[r->events++]))
			return -1;
	}
	return 0;
}

static int read_line(struct oracle_truth *t, struct str line, struct str prefix, struct err *e)
{
	struct json_scan scan = { line, 0 };
	struct json_slice row, id, recv, send;
	uint64_t i;

	if (json_next(&scan, &row, e) < 0)
		return -1;
	if (!json_member(row, "request_id", &id) || !json_member(row, "recv_ns", &recv) ||
	    !json_member(row, "send_ns", &send))
		return err_set(e, ERR_PARSE, "request_id, recv_ns or send_ns is missing");
	if (id.kind != JSON_STRING || id.raw.n <= prefix.n || !str_starts(id.raw, prefix) ||
	    !str_to_u64((struct str){ id.raw.p + prefix.n, id.raw.n - prefix.n }, &i))
		return 0; /* not one of ours */
	if (i >= t->n || t->row[i].recv_ns)
		return err_set(e, ERR_PARSE, "request %.*s was seen twice or never sent", (int)id.raw.n,
			       id.raw.p);
	if (!json_to_i64(recv, &t->row[i].recv_ns) || read_stamps(&t->row[i], send) < 0)
		return err_set(e, ERR_PARSE, "request %.*s has a stamp that is not a number",
			       (int)id.raw.n, id.raw.p);
	return 0;
}

int oracle_read(struct oracle_truth *t, const char *path, const char *prefix, uint32_t requests,
		struct err *e)
{
	struct buf text = { 0 };
	struct str rest;
	int rc = 0;

	assert(prefix && *prefix);
	*t = (struct oracle_truth){ mem_array(requests, sizeof(*t->row)), requests };
	if (file_read(path, ORACLE_BYTES_MAX, &text, e) < 0)
		return -1;
	rest = buf_str(&text);
	while (rc == 0 && rest.n)
		rc = read_line(t, str_cut(&rest, '\n'), str_of(prefix), e);
	for (uint32_t i = 0; rc == 0 && i < requests; i++)
		if (t->row[i].recv_ns == 0)
			rc = err_set(e, ERR_PARSE, "request %s%u is not in it", prefix, i);
	buf_release(&text);
	return rc < 0 ? err_wrap(e, "truth file %s", path) : 0;
}

void oracle_release(struct oracle_truth *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		free(t->row[i].send_ns);
	free(t->row);
	*t = (struct oracle_truth){ 0 };
}

/* ---- the differences ---- */

void oracle_errors_init(struct oracle_errors *r, uint32_t requests, uint32_t events)
{
	size_t n = (size_t)requests * events;

	*r = (struct oracle_errors){ .ttft = mem_array(requests, sizeof(double)),
				     .e2el = mem_array(requests, sizeof(double)),
				     .send = mem_array(requests, sizeof(double)) };
	for (int k = 0; k < 2; k++) {
		r->itl[k] = mem_array(n, sizeof(double));
		r->stamp[k] = mem_array(n, sizeof(double));
	}
}

void oracle_errors_reset(struct oracle_errors *r)
{
	r->n_requests = r->n_itl = r->n_stamp = 0;
	r->n_shared = 0;
}

void oracle_errors_release(struct oracle_errors *r)
{
	free(r->ttft);
	free(r->e2el);
	free(r->send);
	for (int k = 0; k < 2; k++) {
		free(r->itl[k]);
		free(r->stamp[k]);
	}
	*r = (struct oracle_errors){ 0 };
}

static double us(int64_t ns)
{
	return (double)ns / 1e3;
}

static void join(struct oracle_errors *r, const struct record *record,
		 const struct request_row *row, const struct oracle_request *truth, int64_t *gap,
		 int64_t *skew)
{
	int64_t at = row->sent_ns, user_before = 0;
	size_t i = r->n_requests++;

	record_gaps(record, row, gap);
	record_skews(record, row, skew);
	r->send[i] = us(truth->recv_ns - row->sent_ns);
	r->ttft[i] = us(gap[0] - (truth->send_ns[0] - truth->recv_ns));
	for (uint32_t k = 0; k < row->n_events; k++) {
		int64_t user;

		at += gap[k];
		user = at + skew[k];
		r->stamp[0][r->n_stamp] = us(at - truth->send_ns[k]);
		r->stamp[1][r->n_stamp++] = us(user - truth->send_ns[k]);
		if (k) {
			int64_t want = truth->send_ns[k] - truth->send_ns[k - 1];
			const double itl[2] = { fabs(us(gap[k] - want)),
						fabs(us(user - user_before - want)) };

			r->itl[0][r->n_itl] = itl[0];
			r->itl[1][r->n_itl++] = itl[1];
			if (r->gap)
				r->gap(r->gap_self, at, itl);
		}
		user_before = user;
	}
	r->e2el[i] = r->send[i] + us(at - truth->send_ns[row->n_events - 1]);
}

int oracle_join(struct oracle_errors *r, const struct record *record, uint32_t first_row,
		const struct oracle_truth *t, uint32_t first_request, uint32_t n, uint32_t events,
		struct err *e)
{
	int64_t *gap = mem_array(events, sizeof(*gap)), *skew = mem_array(events, sizeof(*skew));
	int rc = 0;

	assert(events > 0);
	assert(first_request + n <= t->n && first_row + n <= record->n_rows);
	for (uint32_t i = 0; rc == 0 && i < n; i++) {
		const struct request_row *row = &record->row[first_row + i];
		const struct oracle_request *truth = &t->row[first_request + i];

		if (row->n_events != events || truth->events != events) {
			rc = err_set(e, ERR_RUN, "request %u: %u events were requested, the server "
				     "sent %u and the client counted %u", first_request + i, events,
				     truth->events, row->n_events);
			break;
		}
		r->n_shared += row->n_shared;
		join(r, record, row, truth, gap, skew);
	}
	free(gap);
	free(skew);
	return rc;
}

void oracle_errors_sort(struct oracle_errors *r)
{
	for (int k = 0; k < 2; k++) {
		stats_sort(r->itl[k], r->n_itl);
		stats_sort(r->stamp[k], r->n_stamp);
	}
}
