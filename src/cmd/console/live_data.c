/* SPDX-License-Identifier: Apache-2.0 */
/* live_data.c - see live_data.h. */
#include "cmd/console/live_data.h"

#include <math.h>

#include "core/base/mem.h"

#define SUB 64u      /* buckets of each power of two */
#define SUB_BITS 6

/* Below 64 ns each has a bucket; then 64 to each power of two. */
static unsigned bucket_of(int64_t ns)
{
	uint64_t v = ns < 0 ? 0 : (uint64_t)ns;
	unsigned top, at;

	if (v < SUB)
		return (unsigned)v;
	top = 63u - (unsigned)__builtin_clzll(v);
	at = (top - SUB_BITS + 1) * SUB + (unsigned)((v >> (top - SUB_BITS)) & (SUB - 1));
	return at < LIVE_BUCKETS ? at : LIVE_BUCKETS - 1;
}

static double middle_of(unsigned bucket)
{
	unsigned power = bucket / SUB;

	if (power == 0)
		return bucket;
	return ldexp((double)(SUB + bucket % SUB) + 0.5, (int)power - 1);
}

void live_hist_add(struct live_hist *h, int64_t ns)
{
	h->count[bucket_of(ns)]++;
	h->n++;
	h->sum_ns += (double)ns;
	if (ns > h->max_ns)
		h->max_ns = ns;
}

double live_hist_percentile(const struct live_hist *h, double p)
{
	uint64_t rank = (uint64_t)(p / 100 * (double)h->n), below = 0;

	if (h->n == 0)
		return 0;
	if (rank >= h->n)
		return (double)h->max_ns;
	for (unsigned i = 0; i < LIVE_BUCKETS; i++) {
		below += h->count[i];
		if (below > rank)
			return fmin(middle_of(i), (double)h->max_ns);
	}
	return (double)h->max_ns;
}

void live_data_begin(struct live_data *d, uint32_t n_rows)
{
	live_data_release(d);
	d->n_rows = n_rows;
	d->is_seen = mem_array(n_rows ? n_rows : 1, sizeof(*d->is_seen));
}

static void add_slow(struct live_data *d, struct live_slow one)
{
	unsigned at = d->n_slow;

	while (at > 0 && d->slow[at - 1].e2el_ns < one.e2el_ns)
		at--;
	if (at == LIVE_SLOWEST)
		return;
	d->n_slow += d->n_slow < LIVE_SLOWEST;
	memmove(&d->slow[at + 1], &d->slow[at], (d->n_slow - at - 1) * sizeof(*d->slow));
	d->slow[at] = one;
}

/* The first line of the error, without what a terminal would obey. */
static void add_error(struct live_data *d, const struct record *r, uint32_t i)
{
	const struct request_row *row = &r->row[i];
	struct buf text = { 0 };
	struct live_error *to = d->error;
	size_t n = 0;

	d->n_errors += d->n_errors < LIVE_ERRORS;
	memmove(to + 1, to, (d->n_errors - 1) * sizeof(*to));
	to->row = i;
	to->category = row->fail < FAIL_COUNT ? (enum fail_category)row->fail : FAIL_NONE;
	record_error_of(r, row, &text);
	while (n + 1 < sizeof(to->text) && n < text.len && text.data[n] != '\n') {
		unsigned char c = (unsigned char)text.data[n];

		to->text[n++] = c < 0x20 || c >= 0x7f ? '?' : (char)c;
	}
	to->text[n] = 0;
	buf_release(&text);
}

static void add_times(struct live_data *d, const struct record *r, uint32_t i)
{
	const struct request_row *row = &r->row[i];
	struct live_slow slow = { .row = i, .events = row->n_events };

	if (row->n_events > d->gaps_cap) {
		d->gaps_cap = row->n_events;
		d->gaps = mem_grow(d->gaps, d->gaps_cap, sizeof(*d->gaps));
	}
	record_gaps(r, row, d->gaps);
	for (uint32_t k = 1; k < row->n_events; k++)
		live_hist_add(&d->itl, d->gaps[k]);
	slow.ttft_ns = row->first_event_ns - row->sent_ns;
	slow.e2el_ns = row->last_event_ns - row->sent_ns;
	live_hist_add(&d->ttft, slow.ttft_ns);
	live_hist_add(&d->e2el, slow.e2el_ns);
	add_slow(d, slow);
}

void live_data_take(struct live_data *d, const struct record *r, uint32_t n_begun,
		    uint64_t events_max)
{
	uint64_t events = 0;

	if (n_begun > d->n_rows)
		n_begun = d->n_rows;
	for (uint32_t i = d->low; i < n_begun && events < events_max; i++) {
		const struct request_row *row = &r->row[i];

		if (d->is_seen[i] || !record_is_published(row))
			continue;
		d->is_seen[i] = 1;
		events += row->n_events;
		if (row->fail < FAIL_COUNT && row->state != REQ_DONE)
			d->fail[row->fail]++;
		if (row->state == REQ_DONE && row->n_events)
			add_times(d, r, i);
		else if (row->state == REQ_FAILED)
			add_error(d, r, i);
	}
	while (d->low < n_begun && d->is_seen[d->low])
		d->low++;
}

void live_data_release(struct live_data *d)
{
	free(d->is_seen);
	free(d->gaps);
	*d = (struct live_data){ 0 };
}
