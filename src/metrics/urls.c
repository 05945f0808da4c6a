/* SPDX-License-Identifier: Apache-2.0 */
/* urls.c - what each of several base URLs got and how it fared. */
#include "metrics/parts.h"

#include "base/mem.h"

void metrics_urls(struct metrics *m, const struct record *r)
{
	for (uint32_t i = 0; i < m->n; i++) {
		size_t endpoint = r->row[m->row[i]].endpoint;

		m->n_urls = endpoint >= m->n_urls ? endpoint + 1 : m->n_urls;
	}
	m->url = mem_array(m->n_urls, sizeof(*m->url));
	for (uint32_t i = 0; i < m->n; i++) {
		const struct request_row *row = &r->row[m->row[i]];
		struct metrics_url *u = &m->url[row->endpoint];

		if (!row->admitted_ns)
			continue;
		u->requests++;
		u->failed += row->state == REQ_FAILED;
		if (!metrics_is_success(row))
			continue;
		u->completed++;
		u->mean_ttft_ms += m->ttft[i];
	}
	for (size_t k = 0; k < m->n_urls; k++)
		if (m->url[k].completed)
			m->url[k].mean_ttft_ms *= 1000.0 / m->url[k].completed;
}
