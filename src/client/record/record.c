/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.c - appending and reading facts; see record.h.
 *
 * Chains are slab indices plus one, so that a zeroed row is an empty chain.
 * When a slab's maximum is reached the shard is marked full: the chains that need
 * more of it end there, the others go on (record.h, Invariants).
 */
#include "client/record/record.h"

#include <assert.h>
#include <sys/mman.h>

#include "client/record/disk.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/redact.h"

#define GAP_HIGH_MAX 0xffffffu /* 2 years; sums with values from a broken file do not overflow */
#define GAP_NS_MAX ((int64_t)GAP_HIGH_MAX << 32 | UINT32_MAX)

_Static_assert(sizeof(struct gap_block) == 128, "a gap block is two cache lines");
_Static_assert(sizeof(struct text_block) == 128, "a text block is two cache lines");
_Static_assert(sizeof(struct record_mark) == 16, "a mark is two words");

/*
 * Address space for the maximum, or for what this process may have: under a limit
 * of address space (ulimit -v, strict overcommit) a quarter, a sixteenth...
 */
static int reserve(struct slab *s, size_t item_bytes, size_t count_max, struct err *e)
{
	while (slab_init(s, item_bytes, count_max, e) < 0) {
		if (count_max <= SLAB_ITEMS_MIN)
			return -1;
		count_max /= 4;
	}
	return 0;
}

static int shard_init(struct record_shard *s, uint64_t events, bool keeps_skew, bool keeps_text,
		      struct err *e)
{
	if (reserve(&s->gaps, sizeof(struct gap_block), EVENT_BLOCKS_MAX, e) < 0 ||
	    reserve(&s->texts, sizeof(struct text_block), TEXT_BLOCKS_MAX, e) < 0 ||
	    reserve(&s->marks, sizeof(struct record_mark), MARKS_MAX, e) < 0)
		return -1;
	s->keeps_skew = keeps_skew;
	s->keeps_text = keeps_text;
	slab_prefault(&s->gaps, (events / EVENT_GAPS) * (keeps_skew ? 2 : 1));
	return 0;
}

int record_init(struct record *r, uint32_t rows_cap, uint32_t n_shards, uint64_t events_hint,
		bool keeps_skew, bool keeps_text, struct err *e)
{
	assert(n_shards > 0);
	*r = (struct record){ 0 };
	if (events_hint > PREFAULT_EVENTS_MAX)
		events_hint = PREFAULT_EVENTS_MAX;
	if (rows_cap > REQUESTS_MAX)
		return err_set(e, ERR_LIMIT, "%u requests are more than the limit of %u", rows_cap,
			       REQUESTS_MAX);
	r->row = mem_array(rows_cap, sizeof(*r->row));
	r->rows_cap = rows_cap;
	r->shard = mem_array(n_shards, sizeof(*r->shard));
	r->n_shards = n_shards;
	for (uint32_t i = 0; i < n_shards; i++) {
		if (shard_init(&r->shard[i], events_hint / n_shards, keeps_skew, keeps_text,
			       e) < 0) {
			record_release(r);
			return -1;
		}
	}
	return 0;
}

int record_to_disk(struct record *r, const char *folder, struct err *e)
{
	size_t bytes = r->rows_cap * sizeof(*r->row);
	struct disk *d = disk_new(folder, e);
	void *rows;

	assert(r->n_rows == 0 && r->rows_cap && !r->disk);
	if (!d || disk_take(d, bytes, &rows, e) < 0) {
		disk_free(d);
		return -1;
	}
	free(r->row);
	r->row = rows;
	r->disk_rows_bytes = bytes;
	r->disk = d;
	for (uint32_t i = 0; i < r->n_shards; i++)
		if (disk_slab(d, &r->shard[i].gaps, e) < 0 ||
		    disk_slab(d, &r->shard[i].texts, e) < 0 ||
		    disk_slab(d, &r->shard[i].marks, e) < 0)
			return -1;
	return 0;
}

static void rows_release(struct record *r)
{
	if (r->disk_rows_bytes)
		munmap(r->row, r->disk_rows_bytes);
	else
		free(r->row);
}

/* There are more rows than the file has room for. */
static void rows_to_memory(struct record *r)
{
	struct request_row *row = mem_array(r->rows_cap, sizeof(*row));

	memcpy(row, r->row, r->n_rows * sizeof(*row));
	disk_unwatch(r->disk, (const char *)r->row);
	rows_release(r);
	r->row = row;
	r->disk_rows_bytes = 0;
}

void record_release(struct record *r)
{
	if (!r)
		return;
	disk_free(r->disk); /* first: it looks at what goes */
	for (uint32_t i = 0; i < r->n_shards; i++) {
		slab_release(&r->shard[i].gaps);
		slab_release(&r->shard[i].texts);
		slab_release(&r->shard[i].marks);
	}
	for (size_t i = 0; i < r->n_series; i++) {
		free(r->series[i]->point);
		free(r->series[i]);
	}
	free(r->series);
	free(r->note);
	free(r->shard);
	rows_release(r);
	arena_release(&r->arena);
	*r = (struct record){ 0 };
}

uint32_t record_add_rows(struct record *r, uint32_t n)
{
	uint32_t first = r->n_rows;

	if (n > r->rows_cap - r->n_rows && r->disk_rows_bytes)
		rows_to_memory(r);
	if (n > r->rows_cap - r->n_rows) {
		r->rows_cap = r->n_rows + n;
		r->row = mem_grow(r->row, r->rows_cap, sizeof(*r->row));
	}
	memset(r->row + first, 0, n * sizeof(*r->row));
	for (uint32_t i = first; i < first + n; i++) {
		r->row[i].parent = RECORD_NONE;
		r->row[i].history = RECORD_NONE;
		r->row[i].session = RECORD_NONE;
		r->row[i].lora = UINT16_MAX;
	}
	r->n_rows += n;
	return first;
}

/* ---- hot path ---- */

/* The block for slot n of a chain; NULL when the slab is used up. */
static struct gap_block *gap_block(struct slab *s, uint32_t *head, uint32_t *tail, uint32_t slot)
{
	struct gap_block *block;

	if (slot != 0)
		return *tail ? slab_at(s, *tail - 1) : NULL;
	block = slab_take(s, 1);
	if (!block)
		return NULL;
	if (*tail)
		((struct gap_block *)slab_at(s, *tail - 1))->next = (uint32_t)s->count;
	else
		*head = (uint32_t)s->count;
	*tail = (uint32_t)s->count;
	return block;
}

static uint32_t saturate(int64_t ns)
{
	if (ns < 0)
		return 0;
	return ns >= EVENT_LONG ? EVENT_LONG - 1 : (uint32_t)ns;
}

bool record_event(struct record_shard *s, struct request_row *row, int64_t gap_ns, int64_t skew_ns)
{
	uint32_t slot = row->n_events % EVENT_GAPS;
	struct gap_block *block = gap_block(&s->gaps, &row->gap_head, &row->gap_tail, slot);

	if (!block) {
		s->is_full = true;
		return false;
	}
	if (gap_ns >= EVENT_LONG) {
		gap_ns = gap_ns < GAP_NS_MAX ? gap_ns : GAP_NS_MAX;
		block->gap[slot] = EVENT_LONG;
		record_mark(s, row, MARK_GAP_HIGH, (uint32_t)(gap_ns >> 32));
		record_mark(s, row, MARK_GAP_LOW, (uint32_t)gap_ns);
	} else {
		block->gap[slot] = saturate(gap_ns);
	}
	if (s->keeps_skew) {
		block = gap_block(&s->gaps, &row->skew_head, &row->skew_tail, slot);
		if (block)
			block->gap[slot] = saturate(skew_ns);
		else
			s->is_full = true;
	}
	row->n_events++;
	return true;
}

void record_mark(struct record_shard *s, struct request_row *row, enum mark_kind kind,
		 uint32_t value)
{
	struct record_mark *mark = slab_take(&s->marks, 1);

	if (!mark) {
		s->is_full = true;
		return;
	}
	*mark = (struct record_mark){ 0, row->n_events, (uint32_t)kind, value };
	if (row->mark_tail)
		((struct record_mark *)slab_at(&s->marks, row->mark_tail - 1))->next =
			(uint32_t)s->marks.count;
	else
		row->mark_head = (uint32_t)s->marks.count;
	row->mark_tail = (uint32_t)s->marks.count;
}

/* A zeroed block for text, a returned one first; NULL when the slab is used up. */
static struct text_block *take_text_block(struct record_shard *s, uint32_t *place)
{
	struct text_block *block;

	if (s->free_text) {
		*place = s->free_text;
		block = slab_at(&s->texts, *place - 1);
		s->free_text = block->next;
		block->next = 0;
		return block;
	}
	block = slab_take(&s->texts, 1);
	*place = (uint32_t)s->texts.count;
	return block;
}

static void add_text(struct record_shard *s, uint32_t *head, uint32_t *tail, uint32_t *bytes,
		     struct str text)
{
	while (text.n) {
		uint32_t at = *bytes % TEXT_BYTES;
		size_t n = TEXT_BYTES - at < text.n ? TEXT_BYTES - at : text.n;
		struct text_block *block = *tail ? slab_at(&s->texts, *tail - 1) : NULL;

		if (at == 0) {
			uint32_t place;
			struct text_block *fresh = take_text_block(s, &place);

			if (!fresh) {
				s->is_full = true;
				return;
			}
			if (block)
				block->next = place;
			else
				*head = place;
			*tail = place;
			block = fresh;
		}
		memcpy(block->bytes + at, text.p, n);
		*bytes += (uint32_t)n;
		text.p += n;
		text.n -= n;
	}
}

void record_text(struct record_shard *s, struct request_row *row, struct str escaped)
{
	bool is_first = row->text_bytes == 0;

	if (s->keeps_text)
		add_text(s, &row->text_head, &row->text_tail, &row->text_bytes, escaped);
	if (is_first)
		row->first_text_bytes = row->text_bytes;
}

void record_other_text(struct record_shard *s, struct request_row *row, struct str escaped)
{
	if (s->keeps_text)
		add_text(s, &row->other_head, &row->other_tail, &row->other_bytes, escaped);
}

void record_drop_other_text(struct record_shard *s, struct request_row *row)
{
	if (row->other_tail) {
		((struct text_block *)slab_at(&s->texts, row->other_tail - 1))->next = s->free_text;
		s->free_text = row->other_head;
	}
	row->other_head = row->other_tail = row->other_bytes = 0;
}

void record_error(struct record_shard *s, struct request_row *row, struct str text)
{
	struct buf room = { 0 };

	/* A server may quote the key that it refuses. */
	add_text(s, &row->error_head, &row->error_tail, &row->error_bytes, redact(text, &room));
	buf_release(&room);
}

void record_finish(struct request_row *row, enum request_state state)
{
	assert(state >= REQ_DONE && row->state < REQ_DONE); /* a row ends once */
	__atomic_store_n(&row->state, (uint8_t)state, __ATOMIC_RELEASE);
}

/* ---- reading ---- */

static void read_gaps(const struct slab *s, uint32_t head, uint32_t n, char *out)
{
	for (uint32_t i = 0; i < n && head; i += EVENT_GAPS) {
		const struct gap_block *block = slab_at(s, head - 1);
		uint32_t take = n - i < EVENT_GAPS ? n - i : EVENT_GAPS;

		memcpy(out + i * sizeof(*block->gap), block->gap, take * sizeof(*block->gap));
		head = block->next;
	}
}

/*
 * Widens packed uint32_t gaps at the front of out, in place and from the back; memcpy, because the
 * type of the memory changes.
 */
static void widen(int64_t *out, uint32_t n)
{
	for (uint32_t i = n; i-- > 0;) {
		uint32_t gap;

		memcpy(&gap, (const char *)out + i * sizeof(gap), sizeof(gap));
		memcpy(&out[i], &(int64_t){ gap }, sizeof(*out));
	}
}

/*
 * The older form of a long gap, in whole microseconds: a single one of a row is known to the
 * nanosecond from the sum of all.
 */
static void restore_long_gap(const struct request_row *row, int64_t *out, uint32_t long_at)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < row->n_events; i++)
		sum += i == long_at ? 0 : out[i];
	out[long_at] = row->last_event_ns - row->sent_ns - sum;
}

void record_gaps(const struct record *r, const struct request_row *row, int64_t *out)
{
	const struct record_shard *s = &r->shard[row->shard];
	const struct record_mark *mark = NULL;
	uint32_t n_old = 0, n_long = 0, old_at = 0;

	if (row->n_events == 0)
		return;
	memset(out, 0, row->n_events * sizeof(*out));
	read_gaps(&s->gaps, row->gap_head, row->n_events, (char *)out);
	widen(out, row->n_events);
	while ((mark = record_marks(r, row, mark))) {
		if (mark->event >= row->n_events)
			continue;
		if (mark->kind == MARK_LONG_GAP) {
			out[mark->event] = (int64_t)mark->value * 1000;
			old_at = mark->event;
			n_old++;
		} else if (mark->kind == MARK_GAP_HIGH) { /* the low half follows */
			out[mark->event] = (int64_t)(mark->value & GAP_HIGH_MAX) << 32;
			n_long++;
		} else if (mark->kind == MARK_GAP_LOW) {
			out[mark->event] = (out[mark->event] & ~(int64_t)UINT32_MAX) | mark->value;
		}
	}
	if (n_old == 1 && n_long == 0 && row->sent_ns && row->last_event_ns)
		restore_long_gap(row, out, old_at);
}

void record_skews(const struct record *r, const struct request_row *row, int64_t *out)
{
	if (row->n_events == 0)
		return;
	memset(out, 0, row->n_events * sizeof(*out));
	read_gaps(&r->shard[row->shard].gaps, row->skew_head, row->n_events, (char *)out);
	widen(out, row->n_events);
}

static void read_text(const struct slab *s, uint32_t head, uint32_t bytes, struct buf *out)
{
	while (bytes && head) {
		const struct text_block *block = slab_at(s, head - 1);
		uint32_t n = bytes < TEXT_BYTES ? bytes : TEXT_BYTES;

		buf_add(out, block->bytes, n);
		bytes -= n;
		head = block->next;
	}
}

void record_text_of(const struct record *r, const struct request_row *row, struct buf *out)
{
	read_text(&r->shard[row->shard].texts, row->text_head, row->text_bytes, out);
}

void record_other_text_of(const struct record *r, const struct request_row *row,
			  struct buf *out)
{
	read_text(&r->shard[row->shard].texts, row->other_head, row->other_bytes, out);
}

void record_error_of(const struct record *r, const struct request_row *row, struct buf *out)
{
	read_text(&r->shard[row->shard].texts, row->error_head, row->error_bytes, out);
}

const struct record_mark *record_marks(const struct record *r, const struct request_row *row,
				       const struct record_mark *after)
{
	uint32_t at = after ? after->next : row->mark_head;

	return at ? slab_at(&r->shard[row->shard].marks, at - 1) : NULL;
}

/* ---- telemetry ---- */

struct record_series *record_series_add(struct record *r, const char *name, const char *unit,
					const char *labels)
{
	struct record_series *s;

	r->series = mem_grow(r->series, r->n_series + 1, sizeof(*r->series));
	s = r->series[r->n_series++] = mem_alloc(sizeof(*s));
	*s = (struct record_series){
		.name = arena_text(&r->arena, str_of(name)),
		.unit = arena_text(&r->arena, str_of(unit)),
		.labels = arena_text(&r->arena, str_of(labels)),
	};
	return s;
}

void record_series_point(struct record_series *s, int64_t at_ns, double value)
{
	if (s->n == s->cap) {
		s->cap = s->cap ? s->cap * 2 : 64;
		s->point = mem_grow(s->point, s->cap, sizeof(*s->point));
	}
	s->point[s->n].at_ns = at_ns;
	s->point[s->n++].value = value;
}

bool record_series_is_repeated(const struct record *r, size_t i)
{
	assert(i < r->n_series);
	for (size_t k = 0; k < i; k++)
		if (strcmp(r->series[k]->name, r->series[i]->name) == 0 &&
		    strcmp(r->series[k]->labels, r->series[i]->labels) == 0)
			return true;
	return false;
}

void record_note_add(struct record *r, int64_t at_ns, const char *kind, const char *text)
{
	r->note = mem_grow(r->note, r->n_notes + 1, sizeof(*r->note));
	r->note[r->n_notes++] = (struct record_note){
		at_ns, arena_text(&r->arena, str_of(kind)), arena_text(&r->arena, str_of(text)),
	};
}

const char *fail_name(enum fail_category c)
{
#define X(name, text) text,
	static const char *const names[] = { FAIL_CATEGORIES(X) };
#undef X

	assert((unsigned)c < FAIL_COUNT);
	return names[c];
}

const char *finish_name(enum finish_reason r)
{
#define X(name, text) text,
	static const char *const names[] = { FINISH_REASONS(X) };
#undef X

	assert((unsigned)r < FINISH_COUNT);
	return names[r];
}

const char *wrong_name(enum row_wrong w)
{
#define X(name, text) text,
	static const char *const names[] = { ROW_WRONGS(X) };
#undef X

	assert((unsigned)w < WRONG_COUNT);
	return names[w];
}
