/* SPDX-License-Identifier: Apache-2.0 */
/* index.c - adds rows, publishes versions, and frees what no version uses; see index_internal.h. */
#include <assert.h>
#include <malloc.h>
#include <math.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/base/parallel.h"
#include "results/index/index_internal.h"

#define TEXT_CHUNK_BYTES 65536
#define TRIM_BYTES (8u << 20) /* freed at once, worth returning to the system */
#define COPY_ROWS 128         /* rows copied at once to a new index */

struct text_chunk { struct text_chunk *next; size_t bytes; char text[]; };

/* ---- memory ---- */

void *index_alloc(struct index *x, size_t bytes)
{
	atomic_fetch_add_explicit(&x->bytes, (int64_t)bytes, memory_order_relaxed);
	return mem_alloc(bytes);
}

void index_drop(struct index *x, void *p, size_t bytes)
{
	const char *from = x->mapping.p;

	if (!p || (from && (char *)p >= from && (char *)p < from + x->mapping.n))
		return;
	atomic_fetch_sub_explicit(&x->bytes, (int64_t)bytes, memory_order_relaxed);
	free(p);
}

void index_retire(struct index *x, void *p, size_t bytes)
{
	if (!p)
		return;
	pthread_mutex_lock(&x->lock);
	if (x->n_retired == x->cap_retired) {
		x->cap_retired = x->cap_retired ? x->cap_retired * 2 : 64;
		x->retired = mem_grow(x->retired, x->cap_retired, sizeof(*x->retired));
	}
	x->retired[x->n_retired++] = (struct retired){ p, bytes, x->number };
	pthread_mutex_unlock(&x->lock);
}

struct str index_text(struct index *x, struct str s)
{
	char *to;

	if (!s.n)
		return STR("");
	if (s.n > x->text_left) {
		size_t bytes = s.n > TEXT_CHUNK_BYTES / 4 ? s.n : TEXT_CHUNK_BYTES;
		struct text_chunk *chunk = index_alloc(x, sizeof(*chunk) + bytes);

		chunk->bytes = sizeof(*chunk) + bytes;
		chunk->next = x->text_chunks;
		x->text_chunks = chunk;
		if (bytes == s.n) {
			memcpy(chunk->text, s.p, s.n);
			return (struct str){ chunk->text, s.n };
		}
		x->text_chunk = chunk->text;
		x->text_left = bytes;
	}
	to = x->text_chunk;
	memcpy(to, s.p, s.n);
	x->text_chunk += s.n;
	x->text_left -= s.n;
	return (struct str){ to, s.n };
}

/* With the lock held: frees what no remaining version uses. Returns how many bytes. */
static size_t collect(struct index *x)
{
	const struct index_view *oldest = x->current;
	size_t kept = 0, bytes = 0;

	while (oldest && oldest->older)
		oldest = oldest->older;
	for (size_t i = 0; i < x->n_retired; i++) {
		struct retired *r = &x->retired[i];

		if (oldest && r->last >= oldest->number) {
			x->retired[kept++] = *r;
			continue;
		}
		bytes += r->bytes;
		index_drop(x, r->p, r->bytes);
	}
	x->n_retired = kept;
	return bytes;
}

/* Returns freed memory between pieces in use, which the allocator would keep. */
static void trim(size_t freed_bytes)
{
	if (freed_bytes >= TRIM_BYTES)
		malloc_trim(0);
}

/* ---- versions ---- */

static size_t view_bytes(const struct index_view *v)
{
	return sizeof(*v) + v->n_columns * (sizeof(*v->head) + sizeof(*v->info));
}

static void unlink_view(struct index_view *v)
{
	if (v->older)
		v->older->newer = v->newer;
	if (v->newer)
		v->newer->older = v->older;
}

/* With the lock held. */
static void give_back(struct index *x, struct index_view *v)
{
	if (--v->refs)
		return;
	unlink_view(v);
	x->n_versions--;
	index_drop(x, v, view_bytes(v));
}

struct index_view *index_view(struct index *x)
{
	struct index_view *v;

	pthread_mutex_lock(&x->lock);
	v = x->current;
	v->refs++;
	pthread_mutex_unlock(&x->lock);
	return v;
}

static void destroy(struct index *x);

void index_view_release(struct index_view *v)
{
	struct index *x = v ? v->index : NULL;
	bool is_over, is_last;
	size_t freed = 0;

	if (!x)
		return;
	pthread_mutex_lock(&x->lock);
	is_last = v->refs == 1;
	is_over = x->is_over;
	give_back(x, v);
	if (is_last && !is_over)
		freed = collect(x);
	is_last = is_over && !x->n_versions;
	pthread_mutex_unlock(&x->lock);
	if (is_last)
		destroy(x);
	trim(freed);
}

uint64_t index_view_version(const struct index_view *v)
{
	return v->number;
}

const struct index *index_of(const struct index_view *v)
{
	return v->index;
}

uint64_t index_version(const struct index *x)
{
	struct index *open = (struct index *)x; /* its lock is not part of its content */
	uint64_t number;

	pthread_mutex_lock(&open->lock);
	number = x->current->number;
	pthread_mutex_unlock(&open->lock);
	return number;
}

int64_t index_bytes(const struct index *x)
{
	return atomic_load_explicit(&x->bytes, memory_order_relaxed) + (int64_t)x->mapping.n;
}

/* Everything written so far becomes a version of its own, the newest. */
void index_publish(struct index *x)
{
	size_t head = x->n_columns * sizeof(struct head);
	size_t info = x->n_columns * sizeof(struct column_info);
	struct index_view *v = index_alloc(x, sizeof(*v) + head + info), *before;
	size_t freed;

	v->index = x;
	v->refs = 1;
	v->n_rows = x->n_rows;
	v->n_columns = x->n_columns;
	v->is_ascending = x->is_ascending;
	v->head = (struct head *)(v + 1);
	v->info = (struct column_info *)(v->head + x->n_columns);
	v->names = x->names;
	v->tail_ids = (struct ids){ 0, x->tail_id };
	v->flags = x->flags;
	v->n_flags = x->n_flags;
	for (size_t i = 0; i < x->n_columns; i++) {
		const struct column *c = x->column[i];

		v->head[i] = (struct head){ c, c->dict, c->dict ? c->dict->n : 1, c->is_keys,
					    c->tail };
		v->info[i] = c->info;
	}
	pthread_mutex_lock(&x->lock);
	v->number = ++x->number;
	before = x->current;
	v->older = before;
	if (before)
		before->newer = v;
	x->current = v;
	x->n_versions++;
	if (before)
		give_back(x, before);
	freed = collect(x);
	pthread_mutex_unlock(&x->lock);
	trim(freed);
}

void index_go_on_from(struct index *x, uint64_t version)
{
	pthread_mutex_lock(&x->write);
	if (version > x->number)
		x->number = version;
	index_publish(x);
	pthread_mutex_unlock(&x->write);
}

/* ---- making and freeing ---- */

struct index *index_make_with(unsigned block_shift, uint32_t dictionary_max)
{
	struct index *x = mem_alloc(sizeof(*x));

	x->block_shift = block_shift;
	x->dictionary_max = dictionary_max;
	x->listed_rows_max = FACET_LISTED_ROWS_MAX;
	x->is_ascending = true;
	x->number = (uint64_t)clock_real_ns() / 1000000; /* those of earlier processes are
							  * smaller */
	pthread_mutex_init(&x->write, NULL);
	pthread_mutex_init(&x->lock, NULL);
	x->cache = cache_new(INDEX_CACHE_BYTES);
	index_publish(x);
	return x;
}

void index_set_cache(struct index *x, size_t bytes)
{
	cache_limit(x->cache, bytes);
}

struct index *index_make(void)
{
	return index_make_with(INDEX_BLOCK_SHIFT, INDEX_DICTIONARY_MAX);
}

static void free_ids(struct index *x)
{
	size_t blocks = x->n_rows >> x->block_shift;

	for (size_t i = 0; i < blocks && x->ids[grow_part(i)]; i++)
		index_drop(x, index_sealed_ids(x, i)->id, block_rows(x) * sizeof(int64_t));
	for (unsigned part = 0; part < GROW_PARTS; part++)
		index_drop(x, x->ids[part], ((size_t)GROW_FIRST << part) * sizeof(struct ids));
	index_drop(x, x->tail_id, x->tail_cap * sizeof(int64_t));
}

/* No view is left. */
static void destroy(struct index *x)
{
	size_t bytes = (size_t)atomic_load(&x->bytes);

	assert(x->is_over && !x->n_versions);
	x->current = NULL;
	collect(x);
	free_ids(x);
	for (size_t i = 0; i < x->n_columns; i++)
		column_free(x, x->column[i]);
	for (size_t i = 0; i < x->n_flags; i++)
		index_drop(x, x->flags[i], block_rows(x));
	index_drop(x, x->flags, x->n_flags * sizeof(*x->flags));
	if (x->names)
		index_drop(x, x->names,
			   sizeof(*x->names) + x->names->cap * sizeof(*x->names->slot));
	for (struct text_chunk *c = x->text_chunks, *next; c; c = next) {
		next = c->next;
		index_drop(x, c, c->bytes);
	}
	assert(atomic_load(&x->bytes) == 0);
	if (x->mapping.p)
		file_unmap(x->mapping);
	cache_free(x->cache);
	map_release(&x->column_by_name);
	free(x->column);
	free(x->guess);
	free(x->retired);
	pthread_mutex_destroy(&x->write);
	pthread_mutex_destroy(&x->lock);
	free(x);
	trim(bytes);
}

void index_free(struct index *x)
{
	bool is_last;

	if (!x)
		return;
	pthread_mutex_lock(&x->lock);
	assert(!x->is_over);
	x->is_over = true;
	give_back(x, x->current);
	is_last = !x->n_versions;
	pthread_mutex_unlock(&x->lock);
	if (is_last)
		destroy(x);
}

/* ---- columns by name ---- */

void index_make_names(struct index *x)
{
	size_t cap = 64, bytes;
	struct names *names;

	while (cap < x->n_columns * 2)
		cap *= 2;
	bytes = sizeof(*names) + cap * sizeof(*names->slot);
	names = index_alloc(x, bytes);
	names->cap = cap;
	for (size_t i = 0; i < x->n_columns; i++) {
		size_t at = map_hash(x->column[i]->info.name) & (cap - 1);

		while (names->slot[at])
			at = (at + 1) & (cap - 1);
		names->slot[at] = (uint32_t)i + 1;
	}
	if (x->names)
		index_retire(x, x->names, sizeof(*names) + x->names->cap * sizeof(*names->slot));
	x->names = names;
}

size_t index_add_column(struct index *x, struct str name)
{
	size_t number = x->n_columns, blocks = x->n_rows >> x->block_shift;
	struct column *c = index_alloc(x, sizeof(*c));

	c->info = (struct column_info){ .name = index_text(x, name), .min = NAN, .max = NAN };
	if (blocks)
		column_make_sealed(x, c, blocks - 1);
	if (x->n_columns == x->cap_columns) {
		x->cap_columns = x->cap_columns ? x->cap_columns * 2 : 64;
		x->column = mem_grow(x->column, x->cap_columns, sizeof(*x->column));
	}
	x->column[x->n_columns++] = c;
	map_put(&x->column_by_name, c->info.name, number);
	return number;
}

/* The column of a row's nth cell; rows tend to have theirs in the same order. */
static struct column *column_of(struct index *x, size_t nth, struct str name)
{
	uint64_t number;

	if (nth >= x->n_guesses) {
		x->guess = mem_grow(x->guess, nth + 1, sizeof(*x->guess));
		x->guess[nth] = SIZE_MAX;
		x->n_guesses = nth + 1;
	}
	if (x->guess[nth] < x->n_columns && str_eq(x->column[x->guess[nth]]->info.name, name))
		return x->column[x->guess[nth]];
	if (!map_get(&x->column_by_name, name, &number))
		number = index_add_column(x, name);
	x->guess[nth] = (size_t)number;
	return x->column[number];
}

/* ---- rows in ---- */

struct ids *index_sealed_ids(struct index *x, size_t block)
{
	unsigned part = grow_part(block);

	return &x->ids[part][grow_place(block, part)];
}

static void make_room(struct index *x, size_t cap)
{
	int64_t *ids;

	if (cap > block_rows(x))
		cap = block_rows(x);
	ids = index_alloc(x, cap * sizeof(*ids));
	for (size_t i = 0; i < x->n_columns; i++)
		column_make_room(x, x->column[i], cap);
	if (x->tail_id) {
		memcpy(ids, x->tail_id, x->tail_cap * sizeof(*ids));
		index_retire(x, x->tail_id, x->tail_cap * sizeof(*ids));
	}
	x->tail_id = ids;
	x->tail_cap = cap;
}

static void seal_ids(struct index *x)
{
	size_t block = (x->n_rows - 1) >> x->block_shift, n = block_rows(x);
	unsigned part = grow_part(block);
	struct ids *sealed;
	size_t i = 1;

	if (!x->ids[part])
		x->ids[part] = index_alloc(x, ((size_t)GROW_FIRST << part) * sizeof(struct ids));
	sealed = index_sealed_ids(x, block);
	sealed->first = x->tail_id[0];
	while (i < n && x->tail_id[i] == sealed->first + (int64_t)i)
		i++;
	if (i < n)
		sealed->id = x->tail_id;
	else
		index_retire(x, x->tail_id, n * sizeof(*x->tail_id));
	x->tail_id = NULL;
	x->tail_cap = 0;
}

/* Makes another table, with at least `blocks` elements, so that the versions' one is unchanged. */
static void copy_flags(struct index *x, size_t blocks)
{
	size_t n = blocks > x->n_flags ? blocks : x->n_flags;
	uint8_t **flags = index_alloc(x, n * sizeof(*flags));

	if (x->n_flags)
		memcpy(flags, x->flags, x->n_flags * sizeof(*flags));
	index_retire(x, x->flags, x->n_flags * sizeof(*flags));
	x->flags = flags;
	x->n_flags = n;
}

static void flag_new_row(struct index *x, size_t row, unsigned flags)
{
	size_t block = row >> x->block_shift;

	if (!flags)
		return;
	if (block >= x->n_flags || !x->flags[block]) {
		copy_flags(x, block + 1);
		x->flags[block] = index_alloc(x, block_rows(x));
	}
	x->flags[block][row & (block_rows(x) - 1)] = (uint8_t)flags;
}

static int check_row(struct index *x, const struct row *r, struct err *e)
{
	size_t unknown = 0;

	if (r->id <= 0)
		return err_set(e, ERR_USAGE, "run %lld: numbers of runs are above 0", (long long)r->id);
	if (x->n_rows >= INDEX_ROWS_MAX)
		return err_set(e, ERR_LIMIT, "the index holds %zu runs and has no room for more "
					     "(INDEX_ROWS_MAX)",
			       x->n_rows);
	for (size_t i = 0; i < r->n; i++) {
		const struct cell *cell = &r->cell[i];

		if (cell->value.kind == VALUE_TEXT && cell->value.text.n > INDEX_TEXT_BYTES_MAX)
			return err_set(e, ERR_LIMIT, "run %lld: %.*s is a text of %zu bytes, at most %d "
				       "are kept", (long long)r->id, (int)cell->column.n,
				       cell->column.p, cell->value.text.n, INDEX_TEXT_BYTES_MAX);
		if (cell->column.n > INDEX_TEXT_BYTES_MAX)
			return err_set(e, ERR_LIMIT, "run %lld: the name of a column has %zu bytes, at "
				       "most %d are kept", (long long)r->id, cell->column.n,
				       INDEX_TEXT_BYTES_MAX);
		unknown += x->n_columns + r->n > INDEX_COLUMNS_MAX &&
			   !map_get(&x->column_by_name, cell->column, NULL);
	}
	if (x->n_columns + unknown > INDEX_COLUMNS_MAX)
		return err_set(e, ERR_LIMIT, "run %lld: with its columns there would be %zu, at most %d "
			       "are kept (INDEX_COLUMNS_MAX)", (long long)r->id,
			       x->n_columns + unknown, INDEX_COLUMNS_MAX);
	return 0;
}

static void add_row(struct index *x, const struct row *r, unsigned flags)
{
	size_t row = x->n_rows, t = row & (block_rows(x) - 1);

	if (t == x->tail_cap)
		make_room(x, x->tail_cap ? x->tail_cap * TAIL_GROWTH : TAIL_ROWS_FIRST);
	for (size_t i = 0; i < r->n; i++)
		column_add(x, column_of(x, i, r->cell[i].column), row, r->cell[i].value);
	x->tail_id[t] = r->id;
	if (r->id <= x->last_id)
		x->is_ascending = false;
	else
		x->last_id = r->id;
	flag_new_row(x, row, flags);
	x->n_rows++;
	for (size_t i = 0; i < x->n_columns; i++)
		column_pass(x, x->column[i], x->n_rows);
	if (t + 1 == block_rows(x))
		seal_ids(x);
}

int index_add_flagged(struct index *x, const struct row *r, const unsigned *flags, size_t n,
		      struct err *e)
{
	size_t columns = x->n_columns, i = 0;
	int rc = 0;

	pthread_mutex_lock(&x->write);
	columns = x->n_columns;
	for (; i < n && rc == 0; i++) {
		rc = check_row(x, &r[i], e);
		if (rc == 0)
			add_row(x, &r[i], flags ? flags[i] : 0);
	}
	if (x->n_columns != columns)
		index_make_names(x);
	if (n)
		index_publish(x);
	pthread_mutex_unlock(&x->write);
	return rc;
}

int index_add(struct index *x, const struct row *r, unsigned flags, struct err *e)
{
	return index_add_flagged(x, r, &flags, 1, e);
}

int index_add_all(struct index *x, const struct row *r, size_t n, struct err *e)
{
	return index_add_flagged(x, r, NULL, n, e);
}

/* ---- flags ---- */

int64_t index_last_id(struct index *x)
{
	int64_t id;

	pthread_mutex_lock(&x->write);
	id = x->last_id;
	pthread_mutex_unlock(&x->write);
	return id;
}

size_t index_flag_all(struct index *x, const int64_t *id, const unsigned *flags, size_t n)
{
	size_t found = 0, blocks;
	bool *is_fresh;

	pthread_mutex_lock(&x->write);
	blocks = (x->n_rows >> x->block_shift) + 1;
	is_fresh = mem_array(blocks, sizeof(*is_fresh));
	for (size_t i = 0; i < n; i++) {
		/* Only the writer replaces current, so it stays while this looks. */
		size_t row = view_row_of(x->current, id[i]), block = row >> x->block_shift;
		uint8_t *fresh;

		if (row == SIZE_MAX)
			continue;
		if (!found++)
			copy_flags(x, blocks);
		if (!is_fresh[block]) {
			fresh = index_alloc(x, block_rows(x));
			if (x->flags[block])
				memcpy(fresh, x->flags[block], block_rows(x));
			index_retire(x, x->flags[block], block_rows(x));
			x->flags[block] = fresh;
			is_fresh[block] = true;
		}
		x->flags[block][row & (block_rows(x) - 1)] = (uint8_t)flags[i];
	}
	free(is_fresh);
	if (found)
		index_publish(x);
	pthread_mutex_unlock(&x->write);
	return found;
}

bool index_flag(struct index *x, int64_t id, unsigned flags)
{
	return index_flag_all(x, &id, &flags, 1) == 1;
}

/* ---- another index ---- */

struct index *index_without_removed(const struct index_view *v, void (*between)(void *self),
				    void *self)
{
	struct index *x = index_make_with(v->index->block_shift, v->index->dictionary_max);
	struct row *row = mem_array(COPY_ROWS, sizeof(*row));
	unsigned *flags = mem_array(COPY_ROWS, sizeof(*flags));
	struct arena a = { 0 };
	size_t n = 0;
	int rc;

	x->number = v->number > x->number ? v->number : x->number;
	for (size_t i = 0; i < v->n_rows; i++) {
		unsigned own = view_flags(v, i);

		if (!(own & INDEX_REMOVED)) {
			row[n] = view_cells(v, i, &a);
			flags[n++] = own;
		}
		if (n < COPY_ROWS && i + 1 < v->n_rows)
			continue;
		rc = index_add_flagged(x, row, flags, n, NULL);
		assert(rc == 0); /* the other index already held it */
		if (between)
			between(self);
		n = 0;
		arena_release(&a);
	}
	free(row);
	free(flags);
	return x;
}

/* ---- one question to a version, from its filter to its answer ---- */

/* Rows for a facet whose own conditions are left out. */
struct without { struct str column; struct choice choice; };

/* The bits of conditions about one column at the filter's top, all together. */
struct own { struct str column; uint64_t *word; };

/* The conditions at the filter's top: the facets' own, and all others. */
struct split {
	uint64_t *common;
	struct own *own;
	size_t n_own;
	struct choice all;
	struct choice *without; /* for each own condition, the rows without it */
};

static const struct str *own_column(const struct query *q, const struct filter *part)
{
	for (size_t i = 0; i < q->n_facets; i++)
		if (filter_is_about(part, q->facet[i]))
			return &q->facet[i];
	return NULL;
}

static uint64_t *own_words(const struct index_view *v, struct split *s, struct str column,
			   struct arena *a)
{
	for (size_t i = 0; i < s->n_own; i++)
		if (str_eq(s->own[i].column, column))
			return s->own[i].word;
	s->own[s->n_own] = (struct own){ column, select_none(v, a) };
	select_all(v, s->own[s->n_own].word);
	return s->own[s->n_own++].word;
}

static uint64_t *copy_words(const struct index_view *v, const uint64_t *word, struct arena *a)
{
	uint64_t *copy = select_none(v, a);

	memcpy(copy, word, select_words(v) * sizeof(*copy));
	return copy;
}

static void split_make(const struct index_view *v, const struct query *q, struct arena *a,
		       struct split *s)
{
	struct filter *const whole = (struct filter *)q->filter, *const *part = &whole;
	size_t n = filter_top(q->filter, &part);
	uint64_t *one = select_none(v, a), *all;

	*s = (struct split){ .common = select_none(v, a) };
	s->own = arena_alloc(a, n * sizeof(*s->own));
	select_shown(v, q->shown, q->only_flagged, s->common);
	for (size_t i = 0; i < n; i++) {
		const struct str *column = own_column(q, part[i]);

		select_filter(v, part[i], a, one);
		select_and(v, one, column ? own_words(v, s, *column, a) : s->common);
	}
	all = copy_words(v, s->common, a);
	for (size_t i = 0; i < s->n_own; i++)
		select_and(v, s->own[i].word, all);
	choice_make(v, all, a, &s->all);
	s->without = arena_alloc(a, s->n_own * sizeof(*s->without));
	for (size_t i = 0; i < s->n_own; i++) {
		uint64_t *rest = copy_words(v, s->common, a);

		for (size_t k = 0; k < s->n_own; k++)
			if (k != i)
				select_and(v, s->own[k].word, rest);
		choice_make(v, rest, a, &s->without[i]);
	}
}

static const struct choice *facet_rows(const struct split *s, struct str column)
{
	for (size_t i = 0; i < s->n_own; i++)
		if (str_eq(s->own[i].column, column))
			return &s->without[i];
	return &s->all;
}

/* ---- facets and statistics, by several threads when that pays ---- */

#define PARALLEL_ROWS 3000000 /* rows to look at; with fewer a thread costs more than it helps */
#define PARALLEL_THREADS 2    /* other queries run at the same time */

double *scratch_numbers(struct scratch *s, size_t n)
{
	if (n >= s->n_numbers) {
		free(s->number);
		s->number = mem_grow(NULL, n + 1, sizeof(*s->number));
		s->n_numbers = n + 1;
	}
	return s->number;
}

struct work {
	const struct index_view *view;
	const struct query *query;
	const struct split *split;
	struct answer *out;
	struct wanted *wanted;
	struct scratch scratch[PARALLEL_THREADS];
};

/* Statistics first: they take longest. */
static bool work_on(void *self, size_t item, unsigned worker)
{
	struct work *w = self;
	struct scratch *s = &w->scratch[worker];
	size_t facet = item - w->out->n_statistics;

	if (item < w->out->n_statistics)
		statistic_make(w->view, &w->split->all, w->query->statistic[item],
			       w->query->only_ends, s, &w->out->statistic[item]);
	else
		facet_count(w->view, facet_rows(w->split, w->out->facet[facet].column), w->query,
			    &w->wanted[facet], s, &w->out->facet[facet]);
	arena_release(&s->arena);
	return true;
}

static void count_all(const struct index_view *v, const struct query *q, const struct split *s,
		      struct arena *a, struct arena *scratch, struct answer *out)
{
	struct work w = { .view = v, .query = q, .split = s, .out = out };
	size_t n = q->n_facets + q->n_statistics;
	bool pays = s->all.total * n > PARALLEL_ROWS;

	out->n_facets = q->n_facets;
	out->facet = arena_alloc(a, q->n_facets * sizeof(*out->facet));
	out->n_statistics = q->n_statistics;
	out->statistic = arena_alloc(a, q->n_statistics * sizeof(*out->statistic));
	w.wanted = arena_alloc(scratch, q->n_facets * sizeof(*w.wanted));
	for (size_t i = 0; i < q->n_facets; i++)
		facet_begin(q, q->facet[i], a, &out->facet[i], &w.wanted[i]);
	parallel_for(pays ? PARALLEL_THREADS : 1, n, work_on, &w);
	for (size_t i = 0; i < PARALLEL_THREADS; i++)
		free(w.scratch[i].number);
}

static int check(const struct query *q, struct err *e)
{
	static const char text[] = "%s: %zu asked for, at most %d are given";

	if (q->limit > QUERY_LIMIT_MAX)
		return err_set(e, ERR_USAGE, text, "limit", q->limit, QUERY_LIMIT_MAX);
	if (q->n_facets > QUERY_FACETS_MAX)
		return err_set(e, ERR_USAGE, text, "facets", q->n_facets, QUERY_FACETS_MAX);
	if (q->n_statistics > QUERY_STATISTICS_MAX)
		return err_set(e, ERR_USAGE, text, "statistics", q->n_statistics,
			       QUERY_STATISTICS_MAX);
	if (q->n_sorts > QUERY_SORTS_MAX)
		return err_set(e, ERR_USAGE, text, "sort", q->n_sorts, QUERY_SORTS_MAX);
	if (q->facet_values_max > QUERY_LIMIT_MAX)
		return err_set(e, ERR_USAGE, text, "facet_values", q->facet_values_max,
			       QUERY_LIMIT_MAX);
	if (q->histogram_bins > QUERY_LIMIT_MAX)
		return err_set(e, ERR_USAGE, text, "bins", q->histogram_bins, QUERY_LIMIT_MAX);
	return 0;
}

int index_query(const struct index_view *v, const struct query *q, struct arena *a,
		struct answer *out, struct err *e)
{
	struct arena scratch = { 0 };
	struct split s;
	struct str key;
	int rc;

	*out = (struct answer){ 0 };
	if (check(q, e) < 0)
		return -1;
	key = cache_key(q, &scratch);
	if (cache_get(v->index->cache, v->number, key, q, a, out)) {
		arena_release(&scratch);
		return 0;
	}
	split_make(v, q, &scratch, &s);
	out->total = s.all.total;
	rc = page_make(v, &s.all, q, a, out, e);
	if (rc == 0)
		count_all(v, q, &s, a, &scratch, out);
	if (rc == 0)
		cache_put(v->index->cache, v->number, key, q, out);
	arena_release(&scratch);
	return rc;
}

/* ---- rows one after the other ---- */

void index_order(const struct index_view *v, const struct query *q, size_t most, struct arena *a,
		 int64_t **id, size_t *n)
{
	const struct query rows = { .filter = q->filter, .shown = q->shown,
				    .only_flagged = q->only_flagged };
	struct arena scratch = { 0 };
	struct split s;

	split_make(v, &rows, &scratch, &s);
	most = most < s.all.total ? most : s.all.total;
	*id = arena_alloc(a, most * sizeof(**id));
	*n = page_order(v, &s.all, q, most, &scratch, *id);
	arena_release(&scratch);
}

/* ---- columns for analysis ---- */

struct row_id { int64_t id; size_t row; };

static int compare_ids(const void *a, const void *b)
{
	int64_t x = ((const struct row_id *)a)->id, y = ((const struct row_id *)b)->id;

	return (x > y) - (x < y);
}

static struct row_id *rows_by_id(const struct index_view *v, const struct choice *c,
				 struct arena *a)
{
	struct row_id *all = arena_alloc(a, c->total * sizeof(*all));
	size_t n = 0;

	for (size_t block = 0; block < view_blocks(v); block++)
		for (size_t i = 0; i < c->count[block]; i++) {
			size_t row = choice_row(c, block, i, block << v->index->block_shift);

			all[n++] = (struct row_id){ view_id(v, row), row };
		}
	if (!v->is_ascending)
		qsort(all, n, sizeof(*all), compare_ids);
	return all;
}

void view_formula_make(const struct index_view *v, struct str text, struct view_formula *out)
{
	if (formula_read(text, &out->formula, NULL) < 0)
		out->formula.n_columns = 0;
	for (size_t i = 0; i < out->formula.n_columns; i++)
		out->number[i] = view_column(v, out->formula.column[i]);
}

struct value view_formula_value(const struct index_view *v, const struct view_formula *f,
				size_t row)
{
	double operand[FORMULA_COLUMNS_MAX], y;

	for (size_t i = 0; i < f->formula.n_columns; i++) {
		struct value x = { .kind = VALUE_ABSENT };

		if (f->number[i] != SIZE_MAX)
			x = view_value(v, &v->head[f->number[i]], row);
		operand[i] = x.kind == VALUE_NUMBER ? x.number : NAN;
	}
	y = f->formula.n_columns ? formula_value(&f->formula, operand) : NAN;
	if (isnan(y))
		return (struct value){ .kind = VALUE_ABSENT };
	return (struct value){ .kind = VALUE_NUMBER, .number = y };
}

int index_select(const struct index_view *v, const struct filter *f, unsigned shown,
		 const struct str *column, size_t n_columns, struct arena *a, int64_t **id,
		 size_t *n, struct value **values, struct err *e)
{
	const struct query q = { .filter = f, .shown = shown };
	struct arena scratch = { 0 };
	struct row_id *row;
	struct split s;

	split_make(v, &q, &scratch, &s);
	*n = s.all.total;
	if (n_columns && *n > INDEX_CELLS_MAX / n_columns) {
		arena_release(&scratch);
		return err_set(e, ERR_LIMIT, "%zu runs with %zu columns each are too many at once: at "
			       "most %zu values are given (INDEX_CELLS_MAX); choose fewer runs", *n,
			       n_columns, (size_t)INDEX_CELLS_MAX);
	}
	row = rows_by_id(v, &s.all, &scratch);
	*id = arena_alloc(a, *n * sizeof(**id));
	*values = arena_alloc(a, *n * n_columns * sizeof(**values));
	for (size_t i = 0; i < *n; i++)
		(*id)[i] = row[i].id;
	for (size_t c = 0; c < n_columns; c++) {
		size_t number = view_column(v, column[c]);
		struct view_formula made;

		if (formula_is(column[c]) && number == SIZE_MAX) {
			view_formula_make(v, column[c], &made);
			for (size_t i = 0; i < *n; i++)
				(*values)[c * *n + i] = view_formula_value(v, &made, row[i].row);
			continue;
		}
		for (size_t i = 0; i < *n && number != SIZE_MAX; i++)
			(*values)[c * *n + i] = view_value(v, &v->head[number], row[i].row);
	}
	arena_release(&scratch);
	return 0;
}
