/* SPDX-License-Identifier: Apache-2.0 */
/* parquet_page.c - see parquet_page.h. */
#include "table/parquet_page.h"

#include "base/limits.h"
#include "table/thrift.h"

/* ---- headers ---- */

/* What a header said; -1: nothing. Each field is where the last header of its kind put it. */
struct raw_head {
	int32_t packed, unpacked, values, rows, def_bytes, rep_bytes;
	bool has_data, has_dictionary, has_data_v2;
};

static void read_data(struct thrift *t, const struct thrift_field *outer, struct page_head *head,
		      struct raw_head *raw)
{
	struct thrift_field f = { 0 };

	raw->has_data = thrift_struct(t, outer);
	while (raw->has_data && thrift_next(t, &f))
		switch (f.id) {
		case 1: raw->values = thrift_i32(t, &f); break;
		case 2: head->encoding = thrift_i32(t, &f); break;
		case 3: head->def_encoding = thrift_i32(t, &f); break;
		case 4: head->rep_encoding = thrift_i32(t, &f); break;
		default: thrift_skip(t, &f);
		}
}

static void read_dictionary(struct thrift *t, const struct thrift_field *outer,
			    struct page_head *head, struct raw_head *raw)
{
	struct thrift_field f = { 0 };

	raw->has_dictionary = thrift_struct(t, outer);
	while (raw->has_dictionary && thrift_next(t, &f))
		switch (f.id) {
		case 1: raw->values = thrift_i32(t, &f); break;
		case 2: head->encoding = thrift_i32(t, &f); break;
		default: thrift_skip(t, &f);
		}
}

static void read_data_v2(struct thrift *t, const struct thrift_field *outer,
			 struct page_head *head, struct raw_head *raw)
{
	struct thrift_field f = { 0 };

	raw->has_data_v2 = thrift_struct(t, outer);
	while (raw->has_data_v2 && thrift_next(t, &f))
		switch (f.id) {
		case 1: raw->values = thrift_i32(t, &f); break;
		case 3: raw->rows = thrift_i32(t, &f); break;
		case 4: head->encoding = thrift_i32(t, &f); break;
		case 5: raw->def_bytes = thrift_i32(t, &f); break;
		case 6: raw->rep_bytes = thrift_i32(t, &f); break;
		case 7: head->is_packed = thrift_bool(t, &f); break;
		default: thrift_skip(t, &f);
		}
}

/* Whether the numbers can be true, and what they are without sign. */
static bool check_head(struct page_head *head, const struct raw_head *raw, uint64_t end)
{
	bool is_v2 = head->type == PAGE_DATA_V2;

	if (raw->packed < 0 || raw->unpacked < 0 || (uint64_t)raw->packed > end - head->body)
		return false;
	head->packed = (uint32_t)raw->packed;
	head->unpacked = (uint32_t)raw->unpacked;
	if (head->type != PAGE_DATA && head->type != PAGE_DICTIONARY && !is_v2)
		return true;
	if (raw->values < 0 || (head->type == PAGE_DATA && !raw->has_data) ||
	    (head->type == PAGE_DICTIONARY && !raw->has_dictionary) || (is_v2 && !raw->has_data_v2))
		return false;
	head->values = (uint32_t)raw->values;
	if (!is_v2)
		return true;
	if (raw->rows < 0 || raw->rows > raw->values || raw->def_bytes < 0 || raw->rep_bytes < 0)
		return false;
	head->rows = (uint32_t)raw->rows;
	head->def_bytes = (uint32_t)raw->def_bytes;
	head->rep_bytes = (uint32_t)raw->rep_bytes;
	return (uint64_t)head->def_bytes + head->rep_bytes <= head->packed &&
	       (uint64_t)head->def_bytes + head->rep_bytes <= head->unpacked;
}

int page_read_head(const struct parquet_column *c, uint64_t at, struct page_head *head,
		   struct err *e)
{
	const char *file = c->file->all.p;
	struct thrift t = thrift((struct str){ file + at, (size_t)(c->chunk->end - at) });
	struct raw_head raw = { -1, -1, -1, -1, -1, -1, false, false, false };
	struct thrift_field f = { 0 };

	*head = (struct page_head){ .type = -1, .encoding = -1, .def_encoding = -1,
				    .rep_encoding = -1, .is_packed = true };
	while (thrift_next(&t, &f))
		switch (f.id) {
		case 1: head->type = thrift_i32(&t, &f); break;
		case 2: raw.unpacked = thrift_i32(&t, &f); break;
		case 3: raw.packed = thrift_i32(&t, &f); break;
		case 5: read_data(&t, &f, head, &raw); break;
		case 7: read_dictionary(&t, &f, head, &raw); break;
		case 8: read_data_v2(&t, &f, head, &raw); break;
		default: thrift_skip(&t, &f);
		}
	head->body = (uint64_t)((const char *)t.p - file);
	if (t.is_bad || !check_head(head, &raw, c->chunk->end))
		return column_fail(c, e, ERR_PARSE, "the header of the page at byte %llu is damaged",
				   (unsigned long long)at);
	return 0;
}

/* ---- bodies ---- */

/* `packed` bytes at a place of the file, unpacked into out or, unpacked already, as they are. */
static int unpack(const struct parquet_column *c, struct str packed, bool is_packed, size_t size,
		  struct buf *out, struct str *data, struct err *e)
{
	*data = packed;
	if (c->chunk->codec != CODEC_NONE && is_packed) {
		*data = STR("");
		if (size == 0)
			return 0;
		if (codec_unpack(c->chunk->codec, packed, size, out, e) < 0)
			return -1;
		*data = buf_str(out);
		return 0;
	}
	if (size != packed.n)
		return err_set(e, ERR_PARSE, "%zu bytes that are not packed, yet said to be %zu",
			       packed.n, size);
	return 0;
}

static int load_dictionary(struct parquet_column *c, struct err *e)
{
	struct page_head head;
	struct str packed, data;

	if (page_read_head(c, c->dictionary_at, &head, e) < 0)
		return -1;
	packed = (struct str){ c->file->all.p + head.body, head.packed };
	if (head.encoding != ENCODING_PLAIN && head.encoding != ENCODING_PLAIN_DICTIONARY)
		return column_fail(c, e, ERR_PARSE, "a dictionary page of encoding %d, expected 0",
				   head.encoding);
	if (unpack(c, packed, true, head.unpacked, &c->dictionary_bytes, &data, e) < 0 ||
	    parquet_dictionary_read(&c->dictionary, c->leaf, data, head.values, e) < 0) {
		return column_fail(c, e, ERR_NONE, "dictionary page at byte %llu",
				   (unsigned long long)c->dictionary_at);
	}
	c->has_dictionary = true;
	return 0;
}

/* Cuts n bytes from the front of data. */
static bool cut(struct str *data, uint64_t n, struct str *front)
{
	if (n > data->n)
		return false;
	*front = (struct str){ data->p, (size_t)n };
	data->p += n;
	data->n -= (size_t)n;
	return true;
}

static unsigned bits_of(unsigned max)
{
	return max ? 32 - (unsigned)__builtin_clz(max) : 0;
}

/* The levels of a V1 page: behind their length, or packed in bits without one. */
static bool cut_levels(struct str *data, int32_t encoding, unsigned max, uint64_t entries,
		       struct str *levels, bool *is_msb)
{
	struct str size = STR("");
	const uint8_t *b;

	*levels = STR("");
	*is_msb = encoding == ENCODING_BIT_PACKED;
	if (max == 0)
		return true;
	if (*is_msb)
		return cut(data, (entries * bits_of(max) + 7) / 8, levels);
	if (encoding != ENCODING_RLE || !cut(data, 4, &size))
		return false;
	b = (const uint8_t *)size.p;
	return cut(data, (uint64_t)b[3] << 24 | (uint64_t)b[2] << 16 | (uint64_t)b[1] << 8 | b[0],
		   levels);
}

static int load_v1(struct parquet_column *c, const struct page_head *head, struct err *e)
{
	struct str packed = { c->file->all.p + head->body, head->packed };
	struct parquet_page *page = &c->page;

	if (unpack(c, packed, true, head->unpacked, &c->unpacked, &page->data, e) < 0)
		return -1;
	if (!cut_levels(&page->data, head->rep_encoding, c->leaf->max_rep, head->values,
			&page->reps, &page->is_reps_msb) ||
	    !cut_levels(&page->data, head->def_encoding, c->leaf->max_def, head->values,
			&page->defs, &page->is_defs_msb))
		return err_set(e, ERR_PARSE, "its levels are damaged");
	return 0;
}

/* The levels stand in front, never packed. */
static int load_v2(struct parquet_column *c, const struct page_head *head, struct err *e)
{
	struct str body = { c->file->all.p + head->body, head->packed };
	struct parquet_page *page = &c->page;
	size_t levels = (size_t)head->rep_bytes + head->def_bytes;

	page->is_reps_msb = page->is_defs_msb = false;
	if (!cut(&body, head->rep_bytes, &page->reps) || !cut(&body, head->def_bytes, &page->defs))
		return err_set(e, ERR_PARSE, "its levels are damaged");
	return unpack(c, body, head->is_packed, head->unpacked - levels, &c->unpacked, &page->data,
		      e);
}

int page_begin(struct parquet_column *c, struct err *e)
{
	struct parquet_page *page = &c->page;
	unsigned rep_bits = bits_of(c->leaf->max_rep), def_bits = bits_of(c->leaf->max_def);
	const struct parquet_dictionary *dictionary = c->has_dictionary ? &c->dictionary : NULL;

	c->reps = page->is_reps_msb ? runs_msb(page->reps, rep_bits) : runs(page->reps, rep_bits);
	c->defs = page->is_defs_msb ? runs_msb(page->defs, def_bits) : runs(page->defs, def_bits);
	page->entries = page->all_entries;
	c->row = page->row;
	c->owed = 0;
	c->has_entry = c->is_end = false;
	if (parquet_values_begin(&c->values, c->leaf, page->encoding, page->data, dictionary,
				 e) < 0)
		return column_fail(c, e, ERR_NONE, "page at byte %llu",
				   (unsigned long long)page->at);
	return 0;
}

int page_load(struct parquet_column *c, uint64_t at, const struct page_head *head,
	      struct err *e)
{
	bool is_v2 = head->type == PAGE_DATA_V2;
	bool is_indices = head->encoding == ENCODING_PLAIN_DICTIONARY ||
			  head->encoding == ENCODING_RLE_DICTIONARY;
	struct parquet_page *page = &c->page;

	*page = (struct parquet_page){ .at = at, .row = c->row, .all_entries = head->values,
		.rows = head->rows,
		.encoding = (enum parquet_encoding)head->encoding, .is_v2 = is_v2,
		.begins_row = is_v2 || c->leaf->max_rep == 0 };
	if (head->encoding < 0 || head->encoding > ENCODING_SPLIT)
		return column_fail(c, e, ERR_PARSE, "page at byte %llu: encoding %d is unknown",
				   (unsigned long long)at, head->encoding);
	if (is_indices && !c->has_dictionary && c->dictionary_at && load_dictionary(c, e) < 0)
		return -1;
	if ((is_v2 ? load_v2 : load_v1)(c, head, e) < 0)
		return column_fail(c, e, ERR_NONE, "page at byte %llu", (unsigned long long)at);
	return page_begin(c, e);
}
