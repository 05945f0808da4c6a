/* SPDX-License-Identifier: Apache-2.0 */
/* record_same.h - are two records the same, chains and all; and a record worth comparing. */
#pragma once
#include "core/base/mem.h"
#include "record_sample.h"

static inline void same_chains(const struct record *a, const struct request_row *x,
			const struct record *b, const struct request_row *y)
{
	const struct record_mark *m = NULL, *k = NULL;
	struct buf p = { 0 }, q = { 0 };
	int64_t *u = mem_array(x->n_events + 1, 8), *v = mem_array(x->n_events + 1, 8);

	record_gaps(a, x, u);
	record_gaps(b, y, v);
	assert_memory_equal(u, v, x->n_events * 8);
	assert_int_equal(!x->skew_head, !y->skew_head);
	record_skews(a, x, u);
	record_skews(b, y, v);
	assert_memory_equal(u, v, x->n_events * 8);
	do {
		m = record_marks(a, x, m);
		k = record_marks(b, y, k);
		assert_int_equal(!m, !k);
		if (m && k)
			assert_true(m->event == k->event && m->kind == k->kind &&
				    m->value == k->value);
	} while (m && k);
	record_text_of(a, x, &p);
	record_text_of(b, y, &q);
	assert_true(str_eq(buf_str(&p), buf_str(&q)));
	buf_reset(&p);
	buf_reset(&q);
	record_error_of(a, x, &p);
	record_error_of(b, y, &q);
	assert_true(str_eq(buf_str(&p), buf_str(&q)));
	buf_release(&p);
	buf_release(&q);
	free(u);
	free(v);
}

static inline void same_row(const struct record *a, const struct request_row *x,
			    const struct record *b, const struct request_row *y)
{
#define X(type, name, unit, meaning) assert_true(x->name == y->name);
	RECORD_COLUMNS(X)
#undef X
	same_chains(a, x, b, y);
}

static inline void same_record(const struct record *a, const struct record *b)
{
	assert_int_equal(a->n_rows, b->n_rows);
	assert_int_equal(a->n_shards, b->n_shards);
	assert_true(a->start_ns == b->start_ns && a->stop_ns == b->stop_ns);
	assert_int_equal(a->is_interrupted, b->is_interrupted);
	assert_int_equal(!a->meta, !b->meta);
	if (a->meta)
		assert_string_equal(a->meta, b->meta);
	for (uint32_t i = 0; i < a->n_rows; i++)
		same_row(a, &a->row[i], b, &b->row[i]);
	for (uint32_t i = 0; i < a->n_shards; i++) {
		assert_int_equal(a->shard[i].keeps_skew, b->shard[i].keeps_skew);
		assert_int_equal(a->shard[i].keeps_text, b->shard[i].keeps_text);
		assert_int_equal(a->shard[i].is_full, b->shard[i].is_full);
	}
	assert_int_equal(a->n_series, b->n_series);
	for (size_t i = 0; i < a->n_series; i++) {
		assert_string_equal(a->series[i]->name, b->series[i]->name);
		assert_string_equal(a->series[i]->unit, b->series[i]->unit);
		assert_string_equal(a->series[i]->labels, b->series[i]->labels);
		assert_int_equal(a->series[i]->n, b->series[i]->n);
		for (size_t k = 0; k < a->series[i]->n; k++)
			assert_memory_equal(&a->series[i]->point[k], &b->series[i]->point[k],
					    sizeof(*a->series[i]->point));
	}
	assert_int_equal(a->n_notes, b->n_notes);
	for (size_t i = 0; i < a->n_notes; i++) {
		assert_true(a->note[i].at_ns == b->note[i].at_ns);
		assert_string_equal(a->note[i].kind, b->note[i].kind);
		assert_string_equal(a->note[i].text, b->note[i].text);
	}
}

/* Everything that a record can hold, long gaps and successors too. */
static inline void full_record(struct record *r, uint32_t n)
{
	struct record_series *s;

	assert_int_equal(sample_record(r, n, 3), 0);
	r->meta = arena_text(&r->arena, STR("{\"a\": 1}"));
	r->is_interrupted = true;
	r->shard[1].is_full = true;
	for (uint32_t i = 1; i < n; i += 7)
		r->row[i].parent = i - 1;
	record_mark(&r->shard[0], &r->row[0], MARK_SHARED, 1);
	sample_event(r, &r->row[0], 5000000123, 0);
	record_mark(&r->shard[0], &r->row[0], MARK_TOKENS, 3);
	sample_event(r, &r->row[0], 17, UINT32_MAX);
	s = record_series_add(r, "gpu_power", "W", "gpu=\"0\"");
	for (int k = 0; k < 100; k++)
		record_series_point(s, SAMPLE_START_NS + k, k * 1.5);
	record_series_add(r, "empty", "", "");
	record_note_add(r, 5, "note", "with text");
	record_note_add(r, 6, "", "");
}
