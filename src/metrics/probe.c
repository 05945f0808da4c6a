/* SPDX-License-Identifier: Apache-2.0 */
/* probe.c - requests that were sent beside the load (serve spec 4.9). */
#include "metrics/parts.h"

#include "base/mem.h"
#include "stats/stats.h"

void metrics_probe(struct metrics *m, const struct record *r)
{
	double *latency = mem_array(r->n_rows, sizeof(*latency));
	size_t n = 0;

	for (uint32_t i = 0; i < r->n_rows; i++) {
		const struct request_row *row = &r->row[i];

		if (row->phase != PHASE_PROBE)
			continue;
		m->probe.failed += row->state == REQ_FAILED;
		if (metrics_is_success(row))
			latency[n++] = metrics_seconds(metrics_end_ns(row) - row->sent_ns);
	}
	stats_sort(latency, n);
	m->probe.completed = (uint32_t)n;
	m->probe.median_ms = stats_median(latency, n) * 1000;
	m->probe.p99_ms = stats_percentile(latency, n, 99) * 1000;
	m->probe.max_ms = n ? latency[n - 1] * 1000 : 0;
	free(latency);
}
