/* SPDX-License-Identifier: Apache-2.0 */
/* block.c - see block.h. */
#include "client/record/block.h"

#include "core/base/limits.h"
#include "core/base/mem.h"

const struct record_column record_columns[] = {
#define X(type, name, unit, meaning)                                                      \
	{ #name, unit, COLUMN_##type, sizeof(record_##type), offsetof(struct request_row, name) },
	RECORD_COLUMNS(X)
#undef X
};
const size_t record_n_columns = sizeof(record_columns) / sizeof(*record_columns);

/* Castagnoli's polynomial, reflected; eight bits at a time. The table costs 2 us to make. */
uint32_t record_crc(uint32_t crc, const void *bytes, size_t n)
{
	const unsigned char *p = bytes;
	uint32_t table[256];

	for (uint32_t i = 0; i < 256; i++) {
		uint32_t v = i;

		for (int k = 0; k < 8; k++)
			v = v >> 1 ^ (v & 1 ? 0x82f63b78u : 0);
		table[i] = v;
	}
	crc = ~crc;
	for (size_t i = 0; i < n; i++)
		crc = crc >> 8 ^ table[(crc ^ p[i]) & 255];
	return ~crc;
}

size_t block_begin(struct buf *b, enum block_type type)
{
	size_t at = b->len;

	put_u32(b, type);
	put_u32(b, 0);
	put_u32(b, 0);
	put_u32(b, 0);
	return at;
}

void block_end(struct buf *b, size_t at)
{
	uint32_t bytes, crc;

	if (b->is_over)
		return;
	bytes = (uint32_t)(b->len - at - BLOCK_HEAD_BYTES);
	memcpy(b->data + at + 8, &bytes, sizeof(bytes));
	crc = record_crc(0, b->data + at, 12);
	crc = record_crc(crc, b->data + at + BLOCK_HEAD_BYTES, bytes);
	memcpy(b->data + at + 12, &crc, sizeof(crc));
}

/* ---- batches ---- */

void batch_init(struct batch *b)
{
	*b = (struct batch){ .column = mem_array(record_n_columns, sizeof(*b->column)) };
}

void batch_release(struct batch *b)
{
	for (size_t i = 0; b->column && i < record_n_columns; i++)
		buf_release(&b->column[i]);
	for (int s = 0; s < SECTION_COUNT; s++) {
		buf_release(&b->counts[s]);
		buf_release(&b->data[s]);
	}
	buf_release(&b->index);
	free(b->column);
	*b = (struct batch){ 0 };
}

/* The chain's n values; a chain that ends early (a full shard) is filled up with zeros. */
static void add_gaps(struct batch *b, enum batch_section section, const struct slab *slab,
		     uint32_t head, uint32_t n)
{
	static const uint32_t zeros[EVENT_GAPS];

	put_u32(&b->counts[section], n);
	for (uint32_t i = 0; i < n; i += EVENT_GAPS) {
		const struct gap_block *block = head ? slab_at(slab, head - 1) : NULL;
		size_t take_n = n - i < EVENT_GAPS ? n - i : EVENT_GAPS;

		buf_add(&b->data[section], block ? block->gap : zeros, take_n * sizeof(uint32_t));
		head = block ? block->next : 0;
	}
}

static void add_marks(struct batch *b, const struct record *r, const struct request_row *row)
{
	const struct record_mark *mark = NULL;
	uint32_t n = 0;

	for (; (mark = record_marks(r, row, mark)); n++) {
		put_u32(&b->data[SECTION_MARKS], mark->event);
		put_u32(&b->data[SECTION_MARKS], mark->kind);
		put_u32(&b->data[SECTION_MARKS], mark->value);
	}
	put_u32(&b->counts[SECTION_MARKS], n);
}

void batch_add(struct batch *b, const struct record *r, uint32_t index)
{
	const struct request_row *row = &r->row[index];
	const struct record_shard *shard = &r->shard[row->shard];
	size_t text = b->data[SECTION_TEXT].len, error = b->data[SECTION_ERROR].len;

	put_u32(&b->index, index);
	for (size_t i = 0; i < record_n_columns; i++)
		buf_add(&b->column[i], (const char *)row + record_columns[i].offset,
			record_columns[i].size);
	add_gaps(b, SECTION_GAPS, &shard->gaps, row->gap_head, row->n_events);
	add_gaps(b, SECTION_SKEWS, &shard->gaps, row->skew_head,
		 row->skew_head ? row->n_events : 0);
	add_marks(b, r, row);
	record_text_of(r, row, &b->data[SECTION_TEXT]);
	put_u32(&b->counts[SECTION_TEXT], (uint32_t)(b->data[SECTION_TEXT].len - text));
	record_error_of(r, row, &b->data[SECTION_ERROR]);
	put_u32(&b->counts[SECTION_ERROR], (uint32_t)(b->data[SECTION_ERROR].len - error));
	b->n_rows++;
	b->n_events += row->n_events;
}

size_t batch_bytes(const struct batch *b)
{
	size_t n = b->n_rows * sizeof(struct request_row);

	for (int s = 0; s < SECTION_COUNT; s++)
		n += b->data[s].len;
	return n;
}

static void put_section(struct buf *out, enum batch_section section, const struct buf *counts,
			const struct buf *data, size_t n)
{
	size_t bytes = counts ? counts->len : 0;

	for (size_t i = 0; i < n; i++)
		bytes += data[i].len;
	put_u32(out, section);
	put_u32(out, (uint32_t)bytes);
	if (counts)
		buf_add_str(out, buf_str(counts));
	for (size_t i = 0; i < n; i++)
		buf_add_str(out, buf_str(&data[i]));
}

void batch_flush(struct batch *b, struct buf *out)
{
	size_t at;

	if (b->n_rows == 0)
		return;
	at = block_begin(out, BLOCK_BATCH);
	put_u32(out, b->n_rows);
	put_section(out, SECTION_INDEX, NULL, &b->index, 1);
	put_section(out, SECTION_COLUMNS, NULL, b->column, record_n_columns);
	for (enum batch_section s = SECTION_GAPS; s < SECTION_COUNT; s++) {
		if (b->data[s].len)
			put_section(out, s, &b->counts[s], &b->data[s], 1);
		out->is_over |= b->data[s].is_over;
		buf_reset(&b->counts[s]);
		buf_reset(&b->data[s]);
	}
	block_end(out, at);
	buf_reset(&b->index);
	for (size_t i = 0; i < record_n_columns; i++)
		buf_reset(&b->column[i]);
	b->n_rows = 0;
}
