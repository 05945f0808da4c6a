/* SPDX-License-Identifier: Apache-2.0 */
/* parquet_column.c - one leaf of a Parquet file: its pages and entries; see parquet.h. */
#include "input/table/parquet.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/limits.h"
#include "core/base/mem.h"

enum { PAGE_DATA, PAGE_INDEX, PAGE_DICTIONARY, PAGE_DATA_V2 };

struct page_head {
	int32_t type, encoding;
	int32_t def_encoding, rep_encoding;   /* V1 */
	uint32_t packed, unpacked;            /* bytes */
	uint64_t body;                        /* where it begins in the file */
	uint64_t values;                      /* entries, or values of a dictionary */
	uint64_t rows;                        /* V2 */
	uint32_t def_bytes, rep_bytes;        /* V2 */
	bool is_packed;                       /* V2: the values are; V1: true */
};

/* ---- headers ---- */

/* The fields of a header; -1: absent. */
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

/* Checks that the numbers are plausible, and stores them as unsigned. */
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

/* The header at an offset of the column's chunk; its body is within the chunk. */
static int page_read_head(const struct parquet_column *c, uint64_t at, struct page_head *head,
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

/* The levels of a V1 page: preceded by their length, or packed in bits without one. */
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

/* The levels come first, never compressed. */
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

/* Begins c's page again at its first entry. */
static int page_begin(struct parquet_column *c, struct err *e)
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

/* Unpacks a data page (and the dictionary, if it needs it) into c, before its first entry. */
static int page_load(struct parquet_column *c, uint64_t at, const struct page_head *head,
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

/* ---- columns ---- */

#define FORGET_UNIT (1u << 20) /* a multiple of every size of memory pages */

void column_init(struct parquet_column *c, const struct parquet_file *f, uint32_t leaf,
		 const atomic_bool *cancel, size_t *places_left)
{
	assert(leaf < f->leaf_count);
	*c = (struct parquet_column){ .file = f, .leaf = &f->leaf[leaf], .index = leaf,
				      .cancel = cancel, .places_left = places_left };
	c->places = mem_array(f->group_count, sizeof *c->places);
}

void column_release(struct parquet_column *c)
{
	for (uint32_t i = 0; i < c->file->group_count; i++)
		free(c->places[i].place);
	free(c->places);
	buf_release(&c->unpacked);
	buf_release(&c->dictionary_bytes);
	parquet_dictionary_release(&c->dictionary);
	parquet_values_release(&c->values);
}

void column_lose(struct parquet_column *c)
{
	c->is_placed = false;
}

/* ERR_NONE: e is set already and only gets the place. */
int column_fail(const struct parquet_column *c, struct err *e, enum err_code code,
		const char *fmt, ...)
{
	struct err what = { .code = code };
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what.text, sizeof what.text, fmt, ap);
	va_end(ap);
	if (code != ERR_NONE)
		err_set(e, code, "%s", what.text);
	else
		err_wrap(e, "%s", what.text);
	return err_wrap(e, "%s: column \"%s\", row group %u", c->file->name, c->leaf->path.p,
			c->group);
}

/* ---- places ---- */

/* Remembers the page about to be skipped or loaded, at a row's beginning. */
static void remember(struct parquet_column *c, uint64_t at, uint64_t values_left)
{
	struct parquet_places *known = &c->places[c->group];

	if ((known->count && known->place[known->count - 1].at >= at) || *c->places_left == 0)
		return;
	known->place = mem_room(known->place, known->count, &known->room, sizeof(*known->place));
	known->place[known->count++] = (struct parquet_place){ at, c->row, values_left };
	--*c->places_left;
}

/* The last known page that begins at row or before; NULL: the chunk's beginning. */
static const struct parquet_place *known_place(const struct parquet_column *c, uint64_t row)
{
	const struct parquet_places *known = &c->places[c->group];
	uint32_t low = 0, high = known->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (known->place[middle].row <= row)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &known->place[low - 1] : NULL;
}

/* ---- from page to page ---- */

static int check_cancel(const struct parquet_column *c, struct err *e)
{
	if (c->cancel && atomic_load_explicit(c->cancel, memory_order_relaxed))
		return err_set(e, ERR_CANCELLED, "%s: reading was stopped", c->file->name);
	return 0;
}

/* Notes a dictionary; skips any other page without rows. */
static int pass_other(struct parquet_column *c, const struct page_head *head, struct err *e)
{
	if (head->type == PAGE_DICTIONARY) {
		if (c->dictionary_at && c->dictionary_at != c->next_page)
			return column_fail(c, e, ERR_PARSE, "a second dictionary at byte %llu",
					   (unsigned long long)c->next_page);
		c->dictionary_at = c->places[c->group].dictionary_at = c->next_page;
	}
	c->next_page = head->body + head->packed;
	return 0;
}

/* A nested V1 page shows only when unpacked whether it begins a row. */
static int look_at_first(struct parquet_column *c, uint64_t values_left, struct err *e)
{
	struct runs reps = c->reps;
	bool begins_row;

	if (c->page.entries == 0)
		return 0;
	begins_row = !reps.left && !runs_fill(&reps) ? false : runs_take(&reps) == 0;
	if (!begins_row && (c->page.begins_row || c->row == 0))
		return column_fail(c, e, ERR_PARSE, "page at byte %llu: it should begin a row",
				   (unsigned long long)c->page.at);
	c->page.begins_row = begins_row;
	if (begins_row)
		remember(c, c->page.at, values_left);
	return 0;
}

/* Whether a page's header has its number of rows; such a page also begins a row. */
static bool is_counted(const struct parquet_column *c, const struct page_head *head)
{
	return head->type == PAGE_DATA_V2 || c->leaf->max_rep == 0;
}

/* Pages are skipped by the numbers in their headers, so those must be right. */
static int check_rows(const struct parquet_column *c, struct err *e)
{
	const struct parquet_page *page = &c->page;

	if (!page->all_entries || !page->is_v2 || c->row - page->row == page->rows)
		return 0;
	return column_fail(c, e, ERR_PARSE, "page at byte %llu: %llu rows, its header says %llu",
			   (unsigned long long)page->at, (unsigned long long)(c->row - page->row),
			   (unsigned long long)page->rows);
}

/* Releases the unpacked page; an uncompressed page is read in place. */
static void forget(struct parquet_column *c)
{
	uint64_t to = c->chunk->codec == CODEC_NONE ? c->page.at : c->next_page;

	table_forget(c->file->all, &c->forgotten, (size_t)to);
}

/*
 * Loads the next page that has entries, or sets is_end. Pages that are known to end at or before
 * the first entry of row `target` are skipped by their headers.
 */
static int next_page(struct parquet_column *c, uint64_t target, struct err *e)
{
	if (check_rows(c, e) < 0)
		return -1;
	c->owed = 0;
	while (c->values_left) {
		uint64_t at = c->next_page, left = c->values_left, rows;
		struct page_head head;

		if (check_cancel(c, e) < 0)
			return -1;
		if (at >= c->chunk->end)
			return column_fail(c, e, ERR_PARSE, "%llu of its %llu values are missing",
					   (unsigned long long)left,
					   (unsigned long long)c->chunk->values);
		if (page_read_head(c, at, &head, e) < 0)
			return -1;
		if (head.type != PAGE_DATA && head.type != PAGE_DATA_V2) {
			if (pass_other(c, &head, e) < 0)
				return -1;
			continue;
		}
		if (head.values > left)
			return column_fail(c, e, ERR_PARSE, "page at byte %llu: %llu values, where "
					   "%llu are left", (unsigned long long)at,
					   (unsigned long long)head.values,
					   (unsigned long long)left);
		c->values_left -= head.values;
		c->next_page = head.body + head.packed;
		rows = head.type == PAGE_DATA_V2 ? head.rows : head.values;
		if (head.values == 0)
			continue;
		if (is_counted(c, &head) && c->row + rows <= target) {
			remember(c, at, left);
			c->row += rows;
			continue;
		}
		if (page_load(c, at, &head, e) < 0)
			return -1;
		forget(c);
		return look_at_first(c, left, e);
	}
	c->is_end = true;
	return 0;
}

/* ---- entries ---- */

static int bad_levels(const struct parquet_column *c, struct err *e)
{
	return column_fail(c, e, ERR_PARSE, "page at byte %llu: its levels are damaged",
			   (unsigned long long)c->page.at);
}

/* Makes both levels' runs have an entry; the page has one. */
static bool fill(struct parquet_column *c)
{
	return (c->reps.left || runs_fill(&c->reps)) && (c->defs.left || runs_fill(&c->defs));
}

static int peek(struct parquet_column *c, uint64_t target, struct err *e)
{
	uint32_t rep, def;

	if (c->page.entries == 0 && !c->is_end && next_page(c, target, e) < 0)
		return -1;
	if (c->is_end) {
		c->rep = c->def = 0;
		return 0;
	}
	if (!fill(c))
		return bad_levels(c, e);
	rep = runs_take(&c->reps);
	def = runs_take(&c->defs);
	if (rep > c->leaf->max_rep || def > c->leaf->max_def)
		return bad_levels(c, e);
	c->page.entries--;
	c->rep = (uint8_t)rep;
	c->def = (uint8_t)def;
	c->has_entry = true;
	return 0;
}

int column_peek(struct parquet_column *c, struct err *e)
{
	return c->has_entry ? 0 : peek(c, c->row, e);
}

void column_drop(struct parquet_column *c)
{
	assert(c->has_entry);
	c->has_entry = false;
	c->row += c->rep == 0;
	c->owed += c->def == c->leaf->max_def;
}

int column_value(struct parquet_column *c, struct str *value, struct err *e)
{
	assert(c->has_entry && c->def == c->leaf->max_def);
	if ((c->owed && !parquet_values_skip(&c->values, c->owed)) ||
	    !parquet_values_next(&c->values, value))
		return column_fail(c, e, ERR_PARSE, "page at byte %llu: its values are damaged or "
				   "too few", (unsigned long long)c->page.at);
	c->owed = 0;
	c->has_entry = false;
	c->row += c->rep == 0;
	return 0;
}

/* ---- rows ---- */

static void to_place(struct parquet_column *c, uint64_t at, uint64_t row, uint64_t values_left)
{
	c->next_page = at;
	c->row = row;
	c->values_left = values_left;
	c->has_entry = c->is_end = false;
	c->page.entries = c->page.all_entries = 0;
	c->owed = 0;
	if (at < c->forgotten)
		c->forgotten = (size_t)(at / FORGET_UNIT * FORGET_UNIT);
}

static void begin_chunk(struct parquet_column *c, uint32_t group)
{
	c->group = group;
	c->chunk = parquet_chunk_of(c->file, group, c->index);
	c->page = (struct parquet_page){ 0 };
	c->has_dictionary = false;
	c->dictionary_at = c->places[group].dictionary_at;
	to_place(c, c->chunk->begin, 0, c->chunk->values);
	c->is_placed = true;
}

/* Chooses the start that leads to the row in the fewest pages. */
static int choose_start(struct parquet_column *c, uint64_t row, struct err *e)
{
	const struct parquet_place *known = known_place(c, row);
	const struct parquet_page *page = &c->page;

	if (c->row > row && page->all_entries && page->begins_row && page->row <= row)
		return page_begin(c, e);
	if (c->row > row && !known)
		to_place(c, c->chunk->begin, 0, c->chunk->values);
	else if (known && (c->row > row || known->at > c->next_page))
		to_place(c, known->at, known->row, known->values_left);
	return 0;
}

/* Skips the peeked entry and equal ones after it, but not into row target. */
static void pass(struct parquet_column *c, uint64_t target)
{
	uint64_t n;

	column_drop(c);
	n = c->page.entries;
	n = runs_equal(&c->reps) < n ? runs_equal(&c->reps) : n;
	n = runs_equal(&c->defs) < n ? runs_equal(&c->defs) : n;
	if (n < 2 || c->reps.packed || c->defs.packed || c->reps.value > c->leaf->max_rep ||
	    c->defs.value > c->leaf->max_def)
		return;
	if (c->reps.value == 0) {
		n = n < target - c->row ? n : target - c->row;
		c->row += n;
	}
	c->reps.left -= n;
	c->defs.left -= n;
	c->page.entries -= n;
	if (c->defs.value == c->leaf->max_def)
		c->owed += n;
}

int column_seek(struct parquet_column *c, uint32_t group, uint64_t row, struct err *e)
{
	assert(group < c->file->group_count);
	if (!c->is_placed || c->group != group)
		begin_chunk(c, group);
	if (c->row != row && choose_start(c, row, e) < 0)
		return -1;
	for (;;) {
		if (!c->has_entry && peek(c, row, e) < 0)
			return -1;
		if (c->is_end)
			return column_fail(c, e, ERR_PARSE, "its values end at row %llu",
					   (unsigned long long)c->row);
		if (c->rep == 0 && c->row == row)
			return 0;
		pass(c, row);
	}
}
