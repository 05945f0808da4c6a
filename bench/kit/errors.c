/* SPDX-License-Identifier: Apache-2.0 */
/* errors.c - the client's stamps beside what the server did; see kit.h. */
#include <math.h>

#include "core/base/mem.h"
#include "core/stats/stats.h"
#include "kit/kit.h"

void errors_init(struct errors *r, uint32_t streams, uint32_t events)
{
	size_t n = (size_t)streams * events;

	*r = (struct errors){ .ttft = mem_array(streams, sizeof(double)) };
	for (int k = 0; k < 2; k++) {
		r->itl[k] = mem_array(n, sizeof(double));
		r->stamp[k] = mem_array(n, sizeof(double));
	}
}

void errors_release(struct errors *r)
{
	free(r->ttft);
	for (int k = 0; k < 2; k++) {
		free(r->itl[k]);
		free(r->stamp[k]);
	}
}

static void join(struct errors *r, const struct record *record, const struct request_row *row,
		 const struct truth_request *truth, int64_t *gap, int64_t *skew)
{
	int64_t at = row->sent_ns, user_before = 0;

	record_gaps(record, row, gap);
	record_skews(record, row, skew);
	r->ttft[r->n_ttft++] = fabs((double)(gap[0] - (truth->send_ns[0] - truth->recv_ns)) / 1e3);
	for (uint32_t i = 0; i < row->n_events; i++) {
		int64_t user;

		at += gap[i];
		user = at + skew[i];
		r->stamp[0][r->n_stamp] = (double)(at - truth->send_ns[i]) / 1e3;
		r->stamp[1][r->n_stamp++] = (double)(user - truth->send_ns[i]) / 1e3;
		if (i) {
			int64_t want = truth->send_ns[i] - truth->send_ns[i - 1];
			const double itl[2] = {
				fabs((double)(gap[i] - want) / 1e3),
				fabs((double)(user - user_before - want) / 1e3),
			};

			r->itl[0][r->n_itl] = itl[0];
			r->itl[1][r->n_itl++] = itl[1];
			if (r->gap)
				r->gap(r->gap_self, at, itl);
		}
		user_before = user;
	}
}

int errors_join(struct errors *r, const struct client *c, const struct truth_table *t,
		uint32_t events, struct err *e)
{
	int64_t *gap = mem_array(events, sizeof(*gap)), *skew = mem_array(events, sizeof(*skew));
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < t->n; i++) {
		const struct request_row *row = &c->record.row[i];

		if (row->n_events != events || t->row[i].events != events) {
			rc = err_set(e, ERR_RUN, "request b%u: %u events were asked for, the server "
				     "sent %u and the client counted %u", i, events,
				     t->row[i].events, row->n_events);
			break;
		}
		r->n_shared += row->n_shared;
		join(r, &c->record, row, &t->row[i], gap, skew);
	}
	for (int k = 0; k < 2; k++) {
		stats_sort(r->itl[k], r->n_itl);
		stats_sort(r->stamp[k], r->n_stamp);
	}
	free(gap);
	free(skew);
	return rc;
}
