/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.c - see cache.h. Texts of values that rows have stay as long as the index. Everything else
 * that an answer points to lies in memory of its question: selected values that no row has, and
 * cursors, are copied both ways; names of columns are those of the question that is answered.
 */
#include "results/index/cache.h"

#include <pthread.h>

#include "core/base/mem.h"

struct kept {
	struct str key;
	uint64_t used; /* when it was asked for last */
	struct answer answer;
	struct arena arena;
};

struct cache {
	pthread_mutex_t lock;
	uint64_t version, now;
	size_t bytes, bytes_max, n;
	struct kept *kept[CACHE_ANSWERS_MAX];
};

struct cache *cache_new(size_t bytes_max)
{
	struct cache *c = mem_alloc(sizeof(*c));

	pthread_mutex_init(&c->lock, NULL);
	c->bytes_max = bytes_max;
	return c;
}

static void drop(struct cache *c, size_t i)
{
	struct kept *k = c->kept[i];

	c->bytes -= k->arena.bytes;
	c->kept[i] = c->kept[--c->n];
	arena_release(&k->arena);
	free(k);
}

/* Until one more fits. */
static void make_room(struct cache *c)
{
	while (c->n && (c->bytes > c->bytes_max || c->n == CACHE_ANSWERS_MAX)) {
		size_t oldest = 0;

		for (size_t i = 1; i < c->n; i++)
			if (c->kept[i]->used < c->kept[oldest]->used)
				oldest = i;
		drop(c, oldest);
	}
}

void cache_limit(struct cache *c, size_t bytes_max)
{
	pthread_mutex_lock(&c->lock);
	c->bytes_max = bytes_max;
	make_room(c);
	while (c->n && !bytes_max)
		drop(c, c->n - 1);
	pthread_mutex_unlock(&c->lock);
}

void cache_free(struct cache *c)
{
	if (!c)
		return;
	cache_limit(c, 0);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* ---- keys ---- */

static void add_number(struct buf *b, uint64_t n)
{
	buf_add(b, &n, sizeof(n));
}

static void add_text(struct buf *b, struct str s)
{
	add_number(b, s.n);
	buf_add_str(b, s);
}

static void add_texts(struct buf *b, const struct str *s, size_t n)
{
	add_number(b, n);
	for (size_t i = 0; i < n; i++)
		add_text(b, s[i]);
}

static void add_value(struct buf *b, struct value v)
{
	add_number(b, v.kind);
	if (v.kind == VALUE_BOOL)
		add_number(b, v.is_true);
	else if (v.kind == VALUE_NUMBER)
		buf_add(b, &v.number, sizeof(v.number));
	else if (v.kind == VALUE_TEXT)
		add_text(b, v.text);
}

static void add_filter(struct buf *b, const struct filter *f)
{
	add_number(b, f ? 1 : 0);
	if (!f)
		return;
	add_number(b, f->kind);
	add_text(b, f->column);
	add_number(b, f->n_parts);
	for (size_t i = 0; i < f->n_parts; i++)
		add_filter(b, f->part[i]);
	add_number(b, f->n_values);
	for (size_t i = 0; i < f->n_values; i++)
		add_value(b, f->value[i]);
	buf_add(b, &f->min, sizeof(f->min));
	buf_add(b, &f->max, sizeof(f->max));
	add_text(b, f->text);
	add_number(b, f->is_missing);
}

struct str cache_key(const struct query *q, struct arena *a)
{
	struct buf b = { 0 };
	struct str key;

	add_filter(&b, q->filter);
	add_number(&b, (uint64_t)q->shown << 1 | q->only_flagged);
	add_number(&b, q->n_sorts);
	for (size_t i = 0; i < q->n_sorts; i++) {
		add_text(&b, q->sort[i].column);
		add_number(&b, q->sort[i].is_descending);
	}
	add_number(&b, q->limit);
	add_text(&b, q->cursor);
	add_texts(&b, q->column, q->n_columns);
	add_texts(&b, q->facet, q->n_facets);
	add_number(&b, q->facet_values_max);
	add_number(&b, q->histogram_bins);
	add_texts(&b, q->statistic, q->n_statistics);
	key = arena_str(a, buf_str(&b));
	buf_release(&b);
	return key;
}

/* ---- answers ---- */

static void *copy(const void *from, size_t bytes, struct arena *a)
{
	void *to = arena_alloc(a, bytes);

	if (bytes)
		memcpy(to, from, bytes);
	return to;
}

static struct facet copy_facet(const struct facet *f, struct arena *a)
{
	struct facet to = *f;

	to.column = (struct str){ 0 };
	to.value = copy(f->value, f->n * sizeof(*f->value), a);
	to.bin = copy(f->bin, f->n_bins * sizeof(*f->bin), a);
	for (size_t i = 0; i < to.n; i++)
		if (!to.value[i].count && to.value[i].value.kind == VALUE_TEXT)
			to.value[i].value.text = arena_str(a, to.value[i].value.text);
	return to;
}

/* Without the names of its columns. */
static struct answer copy_answer(const struct answer *from, const struct query *q, struct arena *a)
{
	struct answer to = *from;

	to.row = copy(from->row, from->n_rows * sizeof(*to.row), a);
	for (size_t i = 0; i < to.n_rows; i++)
		to.row[i].value = copy(to.row[i].value, q->n_columns * sizeof(struct value), a);
	to.next = arena_str(a, from->next);
	to.facet = arena_alloc(a, to.n_facets * sizeof(*to.facet));
	for (size_t i = 0; i < to.n_facets; i++)
		to.facet[i] = copy_facet(&from->facet[i], a);
	to.statistic = copy(from->statistic, to.n_statistics * sizeof(*to.statistic), a);
	for (size_t i = 0; i < to.n_statistics; i++)
		to.statistic[i].column = (struct str){ 0 };
	return to;
}

static void put_names(struct answer *to, const struct query *q)
{
	for (size_t i = 0; i < to->n_facets; i++)
		to->facet[i].column = q->facet[i];
	for (size_t i = 0; i < to->n_statistics; i++)
		to->statistic[i].column = q->statistic[i];
}

static size_t find(const struct cache *c, struct str key)
{
	size_t i = 0;

	while (i < c->n && !str_eq(c->kept[i]->key, key))
		i++;
	return i;
}

bool cache_get(struct cache *c, uint64_t version, struct str key, const struct query *q,
	       struct arena *a, struct answer *out)
{
	size_t i = SIZE_MAX;

	pthread_mutex_lock(&c->lock);
	if (c->version == version) {
		i = find(c, key);
		if (i < c->n) {
			c->kept[i]->used = ++c->now;
			*out = copy_answer(&c->kept[i]->answer, q, a);
			put_names(out, q);
		} else {
			i = SIZE_MAX;
		}
	}
	pthread_mutex_unlock(&c->lock);
	return i != SIZE_MAX;
}

void cache_put(struct cache *c, uint64_t version, struct str key, const struct query *q,
	       const struct answer *answer)
{
	struct kept *k;

	pthread_mutex_lock(&c->lock);
	if (version > c->version) {
		while (c->n)
			drop(c, c->n - 1);
		c->version = version;
	}
	if (c->bytes_max && version == c->version && q->limit <= CACHE_ROWS_MAX &&
	    find(c, key) == c->n) {
		make_room(c);
		k = mem_alloc(sizeof(*k));
		k->key = arena_str(&k->arena, key);
		k->answer = copy_answer(answer, q, &k->arena);
		k->used = ++c->now;
		c->kept[c->n++] = k;
		c->bytes += k->arena.bytes;
		make_room(c);
	}
	pthread_mutex_unlock(&c->lock);
}
