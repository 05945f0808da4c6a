/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.c - loads a record file.
 *
 * Two walks over the same bytes. The first checks every block and counts what each shard will hold;
 * the second fills rows and chains whose memory was reserved in between. So a file can only make us
 * reserve what it contains.
 */
#include "client/record/file.h"

#include <math.h>

#include "client/record/block.h"
#include "client/record/disk.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"

#define STAMP_MAX (INT64_MAX / 4) /* differences and sums of a few stamps cannot overflow */

struct lane { const char *counts, *data; };

/* One batch, split and checked. */
struct batch_view {
	uint32_t n;
	const char *index, *columns;
	struct lane lane[SECTION_COUNT];
};

/* One column of the file: the position of its values in a batch, and our column that it fills. */
struct file_column { const struct record_column *ours; uint8_t size; };

struct shard_need { size_t gaps, texts, marks; };

struct loader {
	const char *name;
	struct str bytes;
	struct record *r;
	struct record_info *info;
	struct err *e;
	struct file_column *column;
	uint32_t n_columns;
	size_t row_bytes;          /* of all columns together */
	struct str meta;
	const char *shard_bits;
	uint32_t n_planned, n_shards;
	bool has_shape;
	uint32_t *place;           /* index of every row in the file; sorted after the first walk */
	uint32_t n_rows, rows_cap, max_shard;
	struct shard_need *need;
	size_t at;                 /* of the block being read */
};

__attribute__((format(printf, 2, 3)))
static int damaged(struct loader *l, const char *fmt, ...)
{
	char what[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return err_set(l->e, ERR_PARSE, "%s: byte %zu: %s", l->name, l->at, what);
}

/* ---- blocks of the first walk ---- */

static const struct record_column *find_column(struct str name)
{
	for (size_t i = 0; i < record_n_columns; i++)
		if (str_is(name, record_columns[i].name))
			return &record_columns[i];
	return NULL;
}

static int read_columns(struct loader *l, struct cursor c)
{
	static const uint8_t sizes[] = { 0, 1, 2, 4, 8, 4, 8 };
	uint32_t n = take_u32(&c);

	if (l->column)
		return damaged(l, "a second column directory");
	if (n == 0 || n > c.n / 8)
		return damaged(l, "the column directory has %u columns", n);
	l->column = mem_array(n, sizeof(*l->column));
	for (; l->n_columns < n; l->n_columns++) {
		struct file_column *column = &l->column[l->n_columns];
		uint8_t type = take_u8(&c), size = take_u8(&c);
		uint16_t name_n = take_u16(&c), unit_n = take_u16(&c);
		struct str name = { NULL, name_n };

		take_u16(&c);
		name.p = take(&c, name_n);
		take(&c, unit_n);
		if (c.is_short || type == 0 || type > COLUMN_f64 || size != sizes[type])
			return damaged(l, "column %u of the directory is malformed", l->n_columns);
		column->size = size;
		column->ours = find_column(name);
		if (column->ours && column->ours->type != type)
			return damaged(l, "column %s has type %u, expected %u", column->ours->name, type,
				       column->ours->type);
		l->row_bytes += size;
	}
	return 0;
}

static int read_shape(struct loader *l, struct cursor c)
{
	l->n_planned = take_u32(&c);
	l->n_shards = take_u32(&c);
	if (c.is_short || l->n_planned > REQUESTS_MAX || l->n_shards == 0 ||
	    l->n_shards > RECORD_SHARDS_MAX || l->n_shards > c.n)
		return damaged(l, "the shape is malformed");
	l->shard_bits = c.p;
	l->has_shape = true;
	return 0;
}

static bool is_stamp(int64_t ns)
{
	return ns >= 0 && ns <= STAMP_MAX;
}

static int read_host(struct loader *l, struct cursor c)
{
	struct record_host h = { 0 }, *to = NULL;
	uint32_t n;
	const char *name;

	h.start_real_ns = take_i64(&c);
	h.start_mono_ns = take_i64(&c);
	h.stop_real_ns = take_i64(&c);
	h.stop_mono_ns = take_i64(&c);
	h.number = take_u32(&c);
	h.first_shard = take_u32(&c);
	h.n_shards = take_u32(&c);
	n = take_u32(&c);
	name = take(&c, n);
	if (c.is_short || n >= RECORD_HOST_BYTES || h.first_shard > RECORD_SHARDS_MAX ||
	    h.n_shards > RECORD_SHARDS_MAX || !is_stamp(h.start_real_ns) ||
	    !is_stamp(h.start_mono_ns) || !is_stamp(h.stop_real_ns) || !is_stamp(h.stop_mono_ns))
		return damaged(l, "a host block is malformed");
	memcpy(h.name, name, n);
	for (uint32_t i = 0; i < l->info->n_hosts; i++)
		if (l->info->host[i].first_shard == h.first_shard)
			to = &l->info->host[i];
	if (!to) {
		l->info->host = mem_grow(l->info->host, l->info->n_hosts + 1, sizeof(*to));
		to = &l->info->host[l->info->n_hosts++];
	}
	*to = h;
	return 0;
}

static int read_end(struct loader *l, struct cursor c)
{
	l->r->start_ns = take_i64(&c);
	l->r->stop_ns = take_i64(&c);
	(void)take_u32(&c);
	l->r->is_interrupted = take_u32(&c) & END_INTERRUPTED;
	(void)take_u64(&c);
	if (c.is_short || !is_stamp(l->r->start_ns) || !is_stamp(l->r->stop_ns))
		return damaged(l, "the end block is malformed");
	l->info->is_complete = true;
	return 0;
}

/* ---- batches ---- */

static size_t item_bytes(enum batch_section s)
{
	return s == SECTION_MARKS ? MARK_BYTES : s == SECTION_TEXT || s == SECTION_ERROR ? 1 : 4;
}

static int view_section(struct loader *l, struct batch_view *v, uint32_t section, struct cursor c)
{
	uint64_t items = 0;

	if (section == SECTION_INDEX) {
		v->index = c.n == (size_t)v->n * 4 ? c.p : NULL;
		return v->index ? 0 : damaged(l, "the index of a batch has a wrong length");
	}
	if (section == SECTION_COLUMNS) {
		v->columns = c.n == v->n * l->row_bytes ? c.p : NULL;
		return v->columns ? 0 : damaged(l, "the columns of a batch have a wrong length");
	}
	if (section == 0 || section >= SECTION_COUNT)
		return 0;
	v->lane[section].counts = take(&c, (size_t)v->n * 4);
	v->lane[section].data = c.p;
	for (uint32_t i = 0; !c.is_short && i < v->n; i++)
		items += peek_u32(v->lane[section].counts, i);
	if (c.is_short || items * item_bytes(section) != c.n)
		return damaged(l, "section %u of a batch has a wrong length", section);
	return 0;
}

static int view_batch(struct loader *l, struct cursor c, struct batch_view *v)
{
	*v = (struct batch_view){ .n = take_u32(&c) };
	if (!l->column)
		return damaged(l, "a batch before the column directory");
	if (v->n == 0 || v->n > c.n / 4)
		return damaged(l, "a batch of %u rows", v->n);
	while (c.n) {
		uint32_t section = take_u32(&c), bytes = take_u32(&c);
		struct cursor body = { take(&c, bytes), bytes, false };

		if (c.is_short)
			return damaged(l, "a section of a batch runs past its block");
		if (view_section(l, v, section, body) < 0)
			return -1;
	}
	if (!v->index || !v->columns)
		return damaged(l, "a batch without index or columns");
	return 0;
}

static uint32_t count_in(const struct batch_view *v, enum batch_section s, uint32_t i)
{
	return v->lane[s].counts ? peek_u32(v->lane[s].counts, i) : 0;
}

/* Stores value i of every column into the row. */
static void read_row(const struct loader *l, const struct batch_view *v, uint32_t i,
		     struct request_row *row)
{
	const char *p = v->columns;

	*row = (struct request_row){ .parent = RECORD_NONE, .history = RECORD_NONE,
				     .session = RECORD_NONE, .lora = UINT16_MAX };
	for (uint32_t k = 0; k < l->n_columns; k++) {
		const struct file_column *column = &l->column[k];

		if (column->ours)
			memcpy((char *)row + column->ours->offset, p + (size_t)i * column->size,
			       column->size);
		p += (size_t)v->n * column->size;
	}
	row->n_events = count_in(v, SECTION_GAPS, i);
}

static int check_row(struct loader *l, const struct request_row *row)
{
	for (size_t k = 0; k < record_n_columns; k++) {
		const char *p = (const char *)row + record_columns[k].offset;
		int64_t ns;

		if (record_columns[k].type != COLUMN_i64)
			continue;
		memcpy(&ns, p, sizeof(ns));
		if (!is_stamp(ns))
			return damaged(l, "column %s is out of range: %lld", record_columns[k].name,
				       (long long)ns);
	}
	if (!isfinite(row->due_s) || !isfinite(row->audio_s))
		return damaged(l, "column due_s or audio_s is not a number");
	return 0;
}

static size_t blocks_of(size_t items, size_t per_block)
{
	return (items + per_block - 1) / per_block;
}

static int count_batch(struct loader *l, struct cursor c)
{
	struct request_row row;
	struct batch_view v;

	if (view_batch(l, c, &v) < 0)
		return -1;
	if (v.n > REQUESTS_MAX - l->n_rows)
		return damaged(l, "more than %u rows", REQUESTS_MAX);
	if (l->n_rows + v.n > l->rows_cap) {
		l->rows_cap = (l->n_rows + v.n) * 2;
		l->place = mem_grow(l->place, l->rows_cap, sizeof(*l->place));
	}
	if (!l->need)
		l->need = mem_array(RECORD_SHARDS_MAX, sizeof(*l->need));
	for (uint32_t i = 0; i < v.n; i++) {
		uint32_t events = count_in(&v, SECTION_GAPS, i);
		uint32_t skews = count_in(&v, SECTION_SKEWS, i);
		struct shard_need *need;

		read_row(l, &v, i, &row);
		if (check_row(l, &row) < 0)
			return -1;
		if (row.shard >= RECORD_SHARDS_MAX)
			return damaged(l, "shard %u", row.shard);
		if (skews && skews != events)
			return damaged(l, "a row with %u gaps and %u skews", events, skews);
		l->place[l->n_rows++] = peek_u32(v.index, i);
		if (row.shard > l->max_shard)
			l->max_shard = row.shard;
		need = &l->need[row.shard];
		need->gaps += blocks_of(events, EVENT_GAPS) + blocks_of(skews, EVENT_GAPS);
		need->texts += blocks_of(count_in(&v, SECTION_TEXT, i), TEXT_BYTES) +
			       blocks_of(count_in(&v, SECTION_ERROR, i), TEXT_BYTES);
		need->marks += count_in(&v, SECTION_MARKS, i);
	}
	return 0;
}

/* ---- filling ---- */

static void fill_gaps(struct slab *s, uint32_t *head, uint32_t *tail, const char *from, uint32_t n)
{
	for (uint32_t i = 0; i < n; i += EVENT_GAPS) {
		uint32_t take_n = n - i < EVENT_GAPS ? n - i : EVENT_GAPS;
		struct gap_block *block = slab_take(s, 1);

		memcpy(block->gap, from + (size_t)i * 4, take_n * sizeof(*block->gap));
		if (*tail)
			((struct gap_block *)slab_at(s, *tail - 1))->next = (uint32_t)s->count;
		else
			*head = (uint32_t)s->count;
		*tail = (uint32_t)s->count;
	}
}

static void fill_text(struct slab *s, uint32_t *head, uint32_t *tail, const char *from, uint32_t n)
{
	for (uint32_t i = 0; i < n; i += TEXT_BYTES) {
		struct text_block *block = slab_take(s, 1);

		memcpy(block->bytes, from + i, n - i < TEXT_BYTES ? n - i : TEXT_BYTES);
		if (*tail)
			((struct text_block *)slab_at(s, *tail - 1))->next = (uint32_t)s->count;
		else
			*head = (uint32_t)s->count;
		*tail = (uint32_t)s->count;
	}
}

static void fill_marks(struct record_shard *s, struct request_row *row, const char *from,
		       uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct record_mark *mark = slab_take(&s->marks, 1);
		uint32_t at = (uint32_t)s->marks.count;

		*mark = (struct record_mark){ 0, peek_u32(from, (size_t)i * 3),
					      peek_u32(from, (size_t)i * 3 + 1),
					      peek_u32(from, (size_t)i * 3 + 2) };
		if (row->mark_tail)
			((struct record_mark *)slab_at(&s->marks, row->mark_tail - 1))->next = at;
		else
			row->mark_head = at;
		row->mark_tail = at;
	}
}

/* The row's new index; RECORD_NONE if the file does not have it. */
static uint32_t find_row(const struct loader *l, uint32_t index)
{
	uint32_t low = 0, high = l->n_rows;

	if (index < l->n_rows && l->place[index] == index)
		return index;
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (l->place[mid] < index)
			low = mid + 1;
		else
			high = mid;
	}
	return low < l->n_rows && l->place[low] == index ? low : RECORD_NONE;
}

static void fill_batch(struct loader *l, struct cursor c)
{
	struct batch_view v;
	size_t at[SECTION_COUNT] = { 0 };

	if (view_batch(l, c, &v) < 0)
		return; /* cannot be: the first walk accepted it */
	for (uint32_t i = 0; i < v.n; i++) {
		struct request_row *row = &l->r->row[find_row(l, peek_u32(v.index, i))];
		struct record_shard *s;
		const char *from[SECTION_COUNT] = { NULL };
		uint32_t n[SECTION_COUNT];

		read_row(l, &v, i, row);
		s = &l->r->shard[row->shard];
		if (row->fail >= FAIL_COUNT)
			row->fail = FAIL_NONE;
		if (row->finish >= FINISH_COUNT)
			row->finish = FINISH_OTHER;
		if (row->parent != RECORD_NONE)
			row->parent = find_row(l, row->parent);
		if (row->history != RECORD_NONE)
			row->history = find_row(l, row->history);
		for (enum batch_section k = SECTION_GAPS; k < SECTION_COUNT; k++)
			if ((n[k] = count_in(&v, k, i)))
				from[k] = v.lane[k].data + at[k];
		fill_gaps(&s->gaps, &row->gap_head, &row->gap_tail, from[SECTION_GAPS],
			  n[SECTION_GAPS]);
		fill_gaps(&s->gaps, &row->skew_head, &row->skew_tail, from[SECTION_SKEWS],
			  n[SECTION_SKEWS]);
		fill_marks(s, row, from[SECTION_MARKS], n[SECTION_MARKS]);
		fill_text(&s->texts, &row->text_head, &row->text_tail, from[SECTION_TEXT],
			  n[SECTION_TEXT]);
		fill_text(&s->texts, &row->error_head, &row->error_tail, from[SECTION_ERROR],
			  n[SECTION_ERROR]);
		row->text_bytes = n[SECTION_TEXT];
		row->error_bytes = n[SECTION_ERROR];
		for (enum batch_section k = SECTION_GAPS; k < SECTION_COUNT; k++)
			at[k] += n[k] * item_bytes(k);
	}
}

static int fill_series(struct loader *l, struct cursor c)
{
	uint32_t n = take_u32(&c), name_n = take_u32(&c), unit_n = take_u32(&c);
	uint32_t labels_n = take_u32(&c);
	const char *name = take(&c, name_n), *unit = take(&c, unit_n), *labels = take(&c, labels_n);
	struct record_series *s;

	if (c.is_short || c.n != (size_t)n * 16)
		return damaged(l, "a series has a wrong length");
	s = record_series_add(l->r, "", "", "");
	s->name = arena_text(&l->r->arena, (struct str){ name, name_n });
	s->unit = arena_text(&l->r->arena, (struct str){ unit, unit_n });
	s->labels = arena_text(&l->r->arena, (struct str){ labels, labels_n });
	for (uint32_t i = 0; i < n; i++) {
		int64_t at;
		double value;

		memcpy(&at, c.p + (size_t)i * 8, sizeof(at));
		memcpy(&value, c.p + ((size_t)n + i) * 8, sizeof(value));
		record_series_point(s, at, value);
	}
	return 0;
}

static int fill_note(struct loader *l, struct cursor c)
{
	int64_t at = take_i64(&c);
	uint32_t kind_n = take_u32(&c), text_n = take_u32(&c);
	const char *kind = take(&c, kind_n), *text = take(&c, text_n);
	struct arena *a = &l->r->arena;

	if (c.is_short)
		return damaged(l, "a note has a wrong length");
	record_note_add(l->r, at, arena_text(a, (struct str){ kind, kind_n }),
			arena_text(a, (struct str){ text, text_n }));
	return 0;
}

/* ---- walks ---- */

static int first_walk(struct loader *l, uint32_t type, struct cursor c)
{
	switch (type) {
	case BLOCK_COLUMNS: return read_columns(l, c);
	case BLOCK_META: l->meta = (struct str){ c.p, c.n }; return 0;
	case BLOCK_HOST: return read_host(l, c);
	case BLOCK_SHAPE: return read_shape(l, c);
	case BLOCK_BATCH: return count_batch(l, c);
	case BLOCK_END: return read_end(l, c);
	case BLOCK_SERIES:
	case BLOCK_NOTE: return 0;
	default: l->info->blocks_skipped++; return 0;
	}
}

static int second_walk(struct loader *l, uint32_t type, struct cursor c)
{
	switch (type) {
	case BLOCK_BATCH: fill_batch(l, c); return 0;
	case BLOCK_SERIES: return fill_series(l, c);
	case BLOCK_NOTE: return fill_note(l, c);
	default: return 0;
	}
}

/* Calls step for every whole block up to END; checks sums when is_first. */
static int walk(struct loader *l, bool is_first)
{
	struct str all = l->bytes;

	l->at = RECORD_MAGIC_BYTES;
	while (l->at < all.n) {
		struct cursor c = { all.p + l->at, all.n - l->at, false };
		uint32_t type = take_u32(&c), bytes, crc;

		(void)take_u32(&c);
		bytes = take_u32(&c);
		crc = take_u32(&c);
		if (c.is_short || bytes > c.n)
			break;
		if (is_first && crc != record_crc(record_crc(0, all.p + l->at, 12), c.p, bytes)) {
			if (bytes == c.n)
				break;
			return damaged(l, "the block's checksum is wrong: the file is damaged");
		}
		c.n = bytes;
		if ((is_first ? first_walk : second_walk)(l, type, c) < 0)
			return -1;
		l->at += BLOCK_HEAD_BYTES + bytes;
		if (type == BLOCK_END)
			break;
	}
	if (is_first) {
		l->info->bytes_ignored = all.n - l->at;
		l->bytes.n = l->at; /* the second walk sees whole blocks only */
	}
	return 0;
}

static int by_index(const void *a, const void *b)
{
	uint32_t x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return (x > y) - (x < y);
}

static int reserve_slab(struct disk *d, struct slab *s, size_t item, size_t n, struct err *e)
{
	struct err ignored;
	void *p;

	if (n && d && disk_take(d, n * item, &p, &ignored) == 0) {
		*s = (struct slab){ .data = p, .item_bytes = item, .count_max = n,
				    .mapped_bytes = n * item };
		return 0;
	}
	return n ? slab_init(s, item, n, e) : 0;
}

static void reserve_rows(struct record *r, uint32_t n)
{
	struct err ignored;
	void *p;

	if (n && r->disk && disk_take(r->disk, n * sizeof(*r->row), &p, &ignored) == 0) {
		r->row = p;
		r->disk_rows_bytes = n * sizeof(*r->row);
	} else {
		r->row = mem_array(n, sizeof(*r->row));
	}
	r->n_rows = r->rows_cap = n;
}

/* Reserves memory for exactly what the first walk counted. */
static int reserve(struct loader *l)
{
	struct record *r = l->r;

	if (l->n_rows && !l->has_shape)
		return damaged(l, "the file has rows but no shape");
	if (l->n_rows)
		qsort(l->place, l->n_rows, sizeof(*l->place), by_index);
	for (uint32_t i = 0; i < l->n_rows; i++)
		if (l->place[i] >= l->n_planned || (i && l->place[i] == l->place[i - 1]))
			return damaged(l, "row %u occurs twice or is beyond the last "
					  "one", l->place[i]);
	l->info->n_missing = l->n_planned - l->n_rows;
	reserve_rows(r, l->n_rows);
	r->n_shards = l->has_shape ? l->n_shards : 1;
	r->shard = mem_array(r->n_shards, sizeof(*r->shard));
	if (l->max_shard >= r->n_shards)
		return damaged(l, "rows of shard %u, but there are %u shards", l->max_shard,
			       r->n_shards);
	for (uint32_t i = 0; l->need && i < r->n_shards; i++) {
		const struct shard_need *need = &l->need[i];
		struct record_shard *s = &r->shard[i];
		struct disk *d = r->disk;

		if (reserve_slab(d, &s->gaps, sizeof(struct gap_block), need->gaps, l->e) < 0 ||
		    reserve_slab(d, &s->texts, sizeof(struct text_block), need->texts, l->e) < 0 ||
		    reserve_slab(d, &s->marks, sizeof(struct record_mark), need->marks, l->e) < 0)
			return -1;
	}
	for (uint32_t i = 0; l->has_shape && i < r->n_shards; i++) {
		r->shard[i].keeps_skew = l->shard_bits[i] & SHARD_SKEW;
		r->shard[i].keeps_text = l->shard_bits[i] & SHARD_TEXT;
		r->shard[i].is_full = l->shard_bits[i] & SHARD_FULL;
	}
	return 0;
}

/* Takes the bounds from the rows, for a file that lacks the END block. */
static void guess_bounds(struct record *r)
{
	for (uint32_t i = 0; i < r->n_rows; i++) {
		const struct request_row *row = &r->row[i];
		int64_t start = row->due_ns;

		if (row->phase != PHASE_MAIN)
			continue;
		if (row->parent == RECORD_NONE && row->due_s > 0 && row->due_s < 1e9)
			start -= (int64_t)(row->due_s * 1e9);
		if (row->due_ns && (!r->start_ns || start < r->start_ns))
			r->start_ns = start;
		if (row->end_ns > r->stop_ns)
			r->stop_ns = row->end_ns;
	}
	if (r->stop_ns < r->start_ns || r->start_ns < 0)
		r->start_ns = r->stop_ns;
}

int record_file_parse(struct record *r, struct record_info *info, struct str bytes,
		      const char *name, struct err *e)
{
	struct loader l = { .name = name, .bytes = bytes, .r = r, .info = info, .e = e };
	int rc = -1;

	*r = (struct record){ 0 };
	*info = (struct record_info){ 0 };
	if (!str_starts(bytes, STR(RECORD_MAGIC))) {
		err_set(e, ERR_RECORD_FOREIGN, "%s is not a record (made by --record): it does not begin with "
			RECORD_MAGIC "%s", name, str_starts(str_trim(bytes), STR("{")) ?
			"; result files are compared with bench compare" : "");
		goto done;
	}
	if (bytes.n >= RECORD_DISK_BYTES)
		r->disk = disk_new(NULL, e); /* without it the record is in memory */
	if (r->disk)
		disk_watch(r->disk, bytes);
	if (walk(&l, true) < 0 || reserve(&l) < 0 || walk(&l, false) < 0)
		goto done;
	if (l.meta.p)
		r->meta = arena_text(&r->arena, l.meta);
	if (!info->is_complete)
		guess_bounds(r);
	if (info->n_missing) {
		info->row_index = l.place;
		l.place = NULL;
	}
	rc = 0;
done:
	if (r->disk)
		disk_unwatch(r->disk, bytes.p);
	free(l.column);
	free(l.place);
	free(l.need);
	if (rc < 0) {
		record_release(r);
		record_info_release(info);
	}
	return rc;
}

int record_file_load(struct record *r, struct record_info *info, const char *path, struct err *e)
{
	struct str bytes;
	int rc;

	if (file_map(path, &bytes, e) < 0)
		return -1;
	rc = record_file_parse(r, info, bytes, path, e);
	file_unmap(bytes);
	return rc;
}
