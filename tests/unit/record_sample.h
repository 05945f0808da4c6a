/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_sample.h - a record with a bit of everything, the same in every run.
 *
 * tests/peer/golden_metrics.py builds the same numbers in Python; the order of
 * the draws is part of that contract.
 */
#pragma once
#include <stdint.h>
#include <stdio.h>

#include "client/record/record.h"

#define SAMPLE_START_NS 1700000000000000000
#define SAMPLE_MS 1000000

struct sample_draw { uint64_t state; };

static inline uint32_t sample_draw(struct sample_draw *d, uint32_t below)
{
	d->state ^= d->state << 13;
	d->state ^= d->state >> 7;
	d->state ^= d->state << 17;
	return (uint32_t)(d->state % below);
}

/* One token event gap_ns after the last. */
static inline void sample_event(struct record *r, struct request_row *row, int64_t gap_ns,
				int64_t skew_ns)
{
	int64_t at = (row->last_event_ns ? row->last_event_ns : row->sent_ns) + gap_ns;

	if (!row->first_event_ns) {
		row->first_event_ns = at;
		row->user_first_event_ns = at + skew_ns;
	}
	record_event(&r->shard[row->shard], row, gap_ns, skew_ns);
	row->last_event_ns = at;
	row->user_last_event_ns = at + skew_ns;
}

/* What the draws do not decide: connections, texts, errors, marks. */
static inline void sample_decorate(struct record *r, uint32_t i, bool is_failed)
{
	struct request_row *row = &r->row[i];
	struct record_shard *s = &r->shard[row->shard];
	char text[200];

	row->phase = PHASE_MAIN;
	row->sample = i;
	row->status = 200;
	row->attempts = i % 50 == 7 ? 2 : 1;
	row->end_ns = row->last_event_ns + 1000;
	row->admitted_ns = row->due_ns;
	row->first_answer_ns = row->first_event_ns;
	row->n_answer = row->n_events;
	row->flags = ROW_HAS_USAGE | ROW_SAW_DONE;
	if (i % 10 == 0) {
		row->connect_ns = row->sent_ns - 500000;
		row->connected_ns = row->sent_ns - 100000;
		row->flags |= ROW_NEW_CONNECTION;
	}
	snprintf(text, sizeof(text), "answer %u with \\u00e9 and \\\"quotes\\\"\\n%*s", i, (int)(i % 130), "");
	record_text(s, row, str_of(text));
	if (is_failed) {
		row->fail = i % 2 ? FAIL_RESET : FAIL_TIMEOUT;
		snprintf(text, sizeof(text), "error %u", i % 3);
		record_error(s, row, str_of(text));
	}
}

static inline void sample_row(struct record *r, uint32_t i, struct sample_draw *d)
{
	struct request_row *row = &r->row[i];
	bool is_failed;
	uint32_t n;

	row->shard = (uint16_t)(i % r->n_shards);
	row->due_s = i * 0.01;
	row->due_ns = SAMPLE_START_NS + (int64_t)i * 10 * SAMPLE_MS + sample_draw(d, 5 * SAMPLE_MS);
	row->sent_ns = row->due_ns + sample_draw(d, 3 * SAMPLE_MS);
	is_failed = sample_draw(d, 20) == 0;
	n = 1 + sample_draw(d, 40);
	row->prompt_tokens = row->sample_prompt_tokens = 1 + sample_draw(d, 1000);
	row->output_tokens = sample_draw(d, 10) == 0 ? 0 : n;
	for (uint32_t k = 0; k < n; k++)
		sample_event(r, row, k == 0 ? 20 * SAMPLE_MS + sample_draw(d, 30 * SAMPLE_MS)
			     : sample_draw(d, 20 * SAMPLE_MS), 2000 + k);
	sample_decorate(r, i, is_failed);
	record_finish(row, is_failed ? REQ_FAILED : REQ_DONE);
}

static inline int sample_record(struct record *r, uint32_t n, uint32_t n_shards)
{
	struct sample_draw d = { 88172645463325252u };
	struct err e;

	if (record_init(r, n, n_shards, 0, true, true, &e) < 0)
		return -1;
	record_add_rows(r, n);
	r->start_ns = SAMPLE_START_NS;
	for (uint32_t i = 0; i < n; i++) {
		sample_row(r, i, &d);
		if (r->row[i].end_ns > r->stop_ns)
			r->stop_ns = r->row[i].end_ns;
	}
	return 0;
}
