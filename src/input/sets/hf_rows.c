/* SPDX-License-Identifier: Apache-2.0 */
/* hf_rows.c - rows of hub datasets in their order, and their columns; see hf.h. */
#include "input/sets/hf.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/codec.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/rng/rng.h"
#include "input/fetch/hub.h"

/* ---- the order ---- */

#define BUFFER_ROWS 1000
#define DRAWN_AT_ONCE 1000 /* slots are drawn by the thousand, wanted or not */
#define GROUPS_MAX 10      /* shards that library 5.x reads side by side */
#define CHUNK_ROWS (BUFFER_ROWS / GROUPS_MAX)
#define HELD_ROWS (BUFFER_ROWS + CHUNK_ROWS)

/* Shards that are read one after the other: a part of the shuffled list of shards. */
struct hf_group {
	size_t next, end;
	uint64_t row, rows; /* the next row and their number, of the shard before `next` */
};

struct hf_order {
	enum order_kind kind;
	struct pcg64 rng;
	order_rows_fn *rows;
	void *self;
	size_t *shard; /* numbers of the shards in the order in which they are read */
	size_t shards;
	struct hf_group group[GROUPS_MAX];
	size_t groups, turn; /* turn: the group whose chunk comes next */
	/* ORDER_WHOLE: numbers of rows, and where each shard ends in them */
	size_t *place;
	uint64_t *end, total, done;
	/* streams: buffered rows, and for 5.x the ones chosen from them */
	struct order_row held[HELD_ROWS], chosen[HELD_ROWS];
	size_t held_n, chosen_n, chosen_at;
	uint16_t slot[DRAWN_AT_ONCE];
	size_t slot_at;
	bool is_at_end;
};

/* The next row of a group: 1, 0, -1. */
static int group_next(struct hf_order *o, struct hf_group *g, struct order_row *out, struct err *e)
{
	while (g->row == g->rows) {
		if (g->next == g->end)
			return 0;
		g->row = 0;
		if (o->rows(o->self, o->shard[g->next++], &g->rows, e) < 0)
			return -1;
	}
	*out = (struct order_row){ o->shard[g->next - 1], g->row++ };
	return 1;
}

/* ---- the whole split ---- */

static int open_whole(struct hf_order *o, struct err *e)
{
	o->end = mem_array(o->shards, sizeof(*o->end));
	for (size_t i = 0; i < o->shards; i++) {
		uint64_t rows = 0;

		if (o->rows(o->self, i, &rows, e) < 0)
			return -1;
		if (rows > SHUFFLED_ROWS_MAX - o->total)
			return err_set(e, ERR_LIMIT, "more than %llu rows to be shuffled "
				"(SHUFFLED_ROWS_MAX); without --no-stream they are not all known at once",
				SHUFFLED_ROWS_MAX);
		o->total += rows;
		o->end[i] = o->total;
	}
	o->place = mem_array((size_t)o->total, sizeof(*o->place));
	pcg64_permutation(&o->rng, o->place, (size_t)o->total);
	return 0;
}

static int next_whole(struct hf_order *o, struct order_row *out)
{
	size_t low = 0, high = o->shards;
	uint64_t place;

	if (o->done == o->total)
		return 0;
	place = o->place[o->done++];
	while (high - low > 1) { /* the first shard that ends after place */
		size_t mid = low + (high - low) / 2;

		if (o->end[mid - 1] > place)
			high = mid;
		else
			low = mid;
	}
	*out = (struct order_row){ low, place - (low ? o->end[low - 1] : 0) };
	return 1;
}

/* ---- streams ---- */

static void shuffle_rows(struct pcg64 *rng, struct order_row *row, size_t n,
	struct order_row *out)
{
	size_t place[HELD_ROWS];

	assert(n <= HELD_ROWS);
	pcg64_permutation(rng, place, n);
	for (size_t i = 0; i < n; i++)
		out[i] = row[place[i]];
}

/* Chooses all rows in the buffer. */
static void choose_rest(struct hf_order *o)
{
	shuffle_rows(&o->rng, o->held, o->held_n, o->chosen);
	o->chosen_n = o->held_n;
	o->held_n = 0;
	o->is_at_end = true;
}

static int next_chosen(struct hf_order *o, struct order_row *out)
{
	if (o->chosen_at == o->chosen_n)
		return 0;
	*out = o->chosen[o->chosen_at++];
	return 1;
}

static size_t draw_slot(struct hf_order *o)
{
	if (o->slot_at == DRAWN_AT_ONCE) {
		for (size_t i = 0; i < DRAWN_AT_ONCE; i++)
			o->slot[i] = (uint16_t)pcg64_bounded(&o->rng, 0, BUFFER_ROWS - 1);
		o->slot_at = 0;
	}
	return o->slot[o->slot_at++];
}

/* Each new row replaces a random one in the buffer, which comes out. */
static int next_stream(struct hf_order *o, struct order_row *out, struct err *e)
{
	struct order_row row;
	int rc;

	while (!o->is_at_end) {
		rc = group_next(o, &o->group[0], &row, e);
		if (rc < 0)
			return -1;
		if (rc == 0) {
			choose_rest(o);
		} else if (o->held_n < BUFFER_ROWS) {
			o->held[o->held_n++] = row;
		} else {
			size_t slot = draw_slot(o);

			*out = o->held[slot];
			o->held[slot] = row;
			return 1;
		}
	}
	return next_chosen(o, out);
}

/* Adds the next chunk of the group whose turn it is: 1; 0: all groups are at their end; -1. */
static int hold_chunk(struct hf_order *o, struct err *e)
{
	size_t wanted = o->kind == ORDER_STREAM_5 ? CHUNK_ROWS : 1;
	int rc;

	for (size_t tried = 0; tried < o->groups; tried++) {
		struct hf_group *g = &o->group[o->turn];
		size_t n = 0;

		o->turn = (o->turn + 1) % o->groups;
		while (n < wanted && (rc = group_next(o, g, &o->held[o->held_n], e)) != 0) {
			if (rc < 0)
				return -1;
			o->held_n++;
			n++;
		}
		if (n)
			return 1;
	}
	return 0;
}

/* Once the buffer is full it is shuffled, and all but half its size comes out. */
static int next_stream_5(struct hf_order *o, struct order_row *out, struct err *e)
{
	struct order_row all[HELD_ROWS];
	int rc;

	while (o->chosen_at == o->chosen_n && !o->is_at_end) {
		o->chosen_at = o->chosen_n = 0;
		rc = hold_chunk(o, e);
		if (rc < 0)
			return -1;
		if (rc == 0) {
			choose_rest(o);
		} else if (o->held_n >= BUFFER_ROWS) {
			shuffle_rows(&o->rng, o->held, o->held_n, all);
			o->chosen_n = o->held_n - BUFFER_ROWS / 2;
			o->held_n = BUFFER_ROWS / 2;
			memcpy(o->chosen, all, o->chosen_n * sizeof(*all));
			memcpy(o->held, all + o->chosen_n, o->held_n * sizeof(*all));
		}
	}
	return next_chosen(o, out);
}

/*
 * Puts shards into the order of an equally seeded generator; the buffer's generator starts again.
 */
static void open_stream(struct hf_order *o)
{
	struct pcg64 rng = o->rng;
	size_t size, more, at = 0;

	pcg64_permutation(&rng, o->shard, o->shards);
	o->slot_at = DRAWN_AT_ONCE;
	o->groups = 1;
	if (o->kind != ORDER_STREAM)
		o->groups = o->shards < GROUPS_MAX ? o->shards : GROUPS_MAX;
	if (o->groups == 0)
		return;
	size = o->shards / o->groups;
	more = o->shards % o->groups; /* the first ones have one more */
	for (size_t i = 0; i < o->groups; i++) {
		o->group[i].next = at;
		at += size + (i < more);
		o->group[i].end = at;
	}
}

struct hf_order *order_open(enum order_kind kind, uint64_t seed, size_t shards, order_rows_fn *rows,
	void *self, struct err *e)
{
	struct hf_order *o = mem_alloc(sizeof(*o));
	int rc = 0;

	*o = (struct hf_order){ .kind = kind, .rows = rows, .self = self, .shards = shards };
	pcg64_seed(&o->rng, seed);
	o->shard = mem_array(shards, sizeof(*o->shard));
	for (size_t i = 0; i < shards; i++)
		o->shard[i] = i;
	if (kind == ORDER_WHOLE)
		rc = open_whole(o, e);
	else if (kind == ORDER_NATURAL)
		o->group[0].end = shards;
	else
		open_stream(o);
	if (rc == 0)
		return o;
	order_close(o);
	return NULL;
}

void order_close(struct hf_order *o)
{
	if (!o)
		return;
	free(o->shard);
	free(o->place);
	free(o->end);
	free(o);
}

int order_next(struct hf_order *o, struct order_row *out, struct err *e)
{
	switch (o->kind) {
	case ORDER_NATURAL:
		return group_next(o, &o->group[0], out, e);
	case ORDER_WHOLE:
		return next_whole(o, out);
	case ORDER_STREAM:
		return next_stream(o, out, e);
	case ORDER_STREAM_5:
	case ORDER_STREAM_5_ROWS:
		return next_stream_5(o, out, e);
	}
	return 0;
}

/* ---- tables ---- */

int hf_open_table(struct hf *h, size_t shard, const char *path, struct err *e)
{
	struct dataset_reading reading = { h->env, path };
	const struct table_opts opts = {
		.columns = h->class->columns, .cancel = h->env->cancel,
		.progress = dataset_reading_show, .self = &reading,
	};

	assert(shard < h->shards);
	h->table[shard] = table_open(path, &opts, e);
	return h->table[shard] ? 0 : -1;
}

/* The table of a shard, opened when it is due; NULL with e set. */
static struct table *table_of(struct hf *h, size_t shard, struct err *e)
{
	struct buf path = { 0 };

	assert(shard < h->shards);
	if (!h->table[shard] && source_path(&h->where, &h->source, shard, &path, e) == 0)
		hf_open_table(h, shard, path.data, e);
	buf_release(&path);
	return h->table[shard];
}

static int count_rows(void *self, size_t shard, uint64_t *rows, struct err *e)
{
	struct table *t = table_of(self, shard, e);

	if (!t)
		return -1;
	*rows = table_rows(t);
	return 0;
}

/* ---- the order ---- */

/*
 * Library 5.x streams rows one by one if it does not know the types of their columns before reading
 * them: arrays of JSON and CSV. The first of several files decides.
 */
static int stream_kind(struct hf *h, enum order_kind *out, struct err *e)
{
	const struct str name = str_of(h->source.file[0]);
	struct table *t;

	*out = ORDER_STREAM_5;
	if (memmem(name.p, name.n, ".csv", 4) || memmem(name.p, name.n, ".tsv", 4)) {
		*out = ORDER_STREAM_5_ROWS;
	} else if (memmem(name.p, name.n, ".json", 5) && !memmem(name.p, name.n, ".jsonl", 6)) {
		t = table_of(h, 0, e);
		if (!t)
			return -1;
		*out = table_is_array(t) ? ORDER_STREAM_5_ROWS : ORDER_STREAM_5;
	}
	return 0;
}

/* Opens the files of the subset; the class's own subset is not required in a copy without any. */
static int open_source(struct hf *h, struct err *e)
{
	struct source_opts plain = h->where;
	struct err why = { 0 };

	if (source_open(&h->where, &h->source, &why) == 0)
		return 0;
	plain.subset = NULL;
	if (why.code != ERR_RUN || !h->where.subset || h->opts->hf_subset) {
		*e = why;
		return -1;
	}
	source_release(&h->source);
	if (source_open(&plain, &h->source, e) < 0)
		return -1;
	if (h->source.subset) {
		*e = why;
		return -1;
	}
	h->where = plain;
	return 0;
}

int hf_open_split(struct hf *h, struct err *e)
{
	enum order_kind kind = h->opts->disable_shuffle ? ORDER_NATURAL : ORDER_WHOLE;

	assert(!h->table);
	if (open_source(h, e) < 0)
		return -1;
	h->shards = h->source.count;
	h->table = mem_array(h->shards, sizeof(*h->table));
	if (!h->where.split && h->source.split_count > 1)
		dataset_note(h->w, "%s has %zu splits; %s is used (--hf-split chooses "
			     "another)", h->opts->path, h->source.split_count, h->source.split);
	if (!h->opts->disable_shuffle && !h->opts->no_stream && !h->is_whole &&
	    stream_kind(h, &kind, e) < 0)
		return -1;
	h->order = order_open(kind, h->env->seed, h->shards, count_rows, h, e);
	return h->order ? 0 : -1;
}

int hf_next_row(struct hf *h, size_t i, struct hf_row *out, struct err *e)
{
	struct order_row at;
	struct table *t;

	if (!h->order) {
		if (i >= h->listed)
			return 0;
		at = h->list[i];
	} else {
		int rc = order_next(h->order, &at, e);

		if (rc <= 0)
			return rc;
	}
	t = table_of(h, at.shard, e);
	*out = (struct hf_row){ .hf = h, .shard = at.shard, .row = at.row };
	return t && table_row(t, at.row, &out->object, e) == 0 ? 1 : -1;
}

void hf_close_rows(struct hf *h)
{
	for (size_t i = 0; i < h->shards; i++)
		table_close(h->table[i]);
	free(h->table);
	free(h->list);
	order_close(h->order);
	source_release(&h->source);
}

/* ---- columns ---- */

const char *hf_where(const struct hf_row *r, struct arena *a)
{
	struct buf where = { 0 };
	const char *text;

	assert(r->shard < r->hf->shards);
	table_where(r->hf->table[r->shard], r->row, &where);
	text = arena_text(a, buf_str(&where));
	buf_release(&where);
	return text;
}

int hf_refuse(const struct hf_row *r, struct err *e, const char *fmt, ...)
{
	struct arena a = { 0 };
	char what[900];
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	err_set(e, ERR_PARSE, "%s: %s", hf_where(r, &a), what);
	arena_release(&a);
	return -1;
}

int hf_column(const struct hf_row *r, const char *column, struct json_slice *out, struct err *e)
{
	struct json_iter it = json_iter(r->object);
	const char *name = r->hf->class->ids ? r->hf->class->name : NULL;
	struct buf names = { .limit = 512 };
	struct json_slice value;
	struct str key;

	if (json_member(r->object, column, out))
		return 0;
	while (json_each(&it, &key, &value) == 1 && !names.is_over)
		buf_printf(&names, "%s\"%.*s\"", names.len ? ", " : "", (int)key.n, key.p);
	hf_refuse(r, e, "no column \"%s\"%s%s%s; there are: %s%s", column, name ? ", which " : "",
		  name ? name : "", name ? " datasets have" : "", names.len ? names.data : "none",
		  names.is_over ? ", ..." : "");
	buf_release(&names);
	return -1;
}

int hf_text(const struct hf_row *r, const char *column, struct arena *a, struct str *out,
	    struct err *e)
{
	struct json_slice v;

	if (hf_column(r, column, &v, e) < 0)
		return -1;
	if (v.kind != JSON_STRING)
		return hf_refuse(r, e, "\"%s\" must be text, not %.*s", column,
				 v.raw.n > 40 ? 40 : (int)v.raw.n, v.raw.p);
	*out = rows_string(v, a);
	return 0;
}

void hf_format(struct buf *out, struct json_slice v)
{
	switch (v.kind) {
	case JSON_STRING: json_unescape(out, v.raw); break;
	case JSON_NULL: buf_add_text(out, "None"); break;
	case JSON_TRUE: buf_add_text(out, "True"); break;
	case JSON_FALSE: buf_add_text(out, "False"); break;
	default: buf_add_str(out, v.raw);
	}
}

int hf_add_column(const struct hf_row *r, const char *column, struct buf *out, struct err *e)
{
	struct json_slice v;

	if (hf_column(r, column, &v, e) < 0)
		return -1;
	hf_format(out, v);
	return 0;
}

struct str hf_built(const struct hf_row *r, struct arena *a)
{
	struct str text = arena_str(a, buf_str(&r->hf->text));

	buf_reset(&r->hf->text);
	return text;
}

int hf_bytes(const struct hf_row *r, struct json_slice v, struct arena *a, struct str *out,
	     struct err *e)
{
	const struct str prefix = STR("data:;base64,");
	struct buf bytes = { 0 };
	bool is_good;

	if (v.kind != JSON_STRING || !str_starts(v.raw, prefix))
		return 0;
	is_good = base64_decode((struct str){ v.raw.p + prefix.n, v.raw.n - prefix.n }, &bytes);
	if (is_good)
		*out = arena_str(a, buf_str(&bytes));
	buf_release(&bytes);
	return is_good ? 1 : hf_refuse(r, e, "a binary value is not base64");
}

/*
 * Looks in the data, then in the repository of which it is a copy, where the hub's library looks
 * first. An unavailable repository has no file.
 */
static int find_file(struct hf *h, const char *name, struct buf *path, struct err *e)
{
	const struct hub_opts hub = {
		.kind = HUB_DATASET, .cancel = h->env->cancel, .progress = h->env->download,
		.note = h->env->note, .self = h->env->self, .is_offline = h->is_hub_gone,
	};
	int rc = source_file(&h->where, name, path, e);

	if (rc != SOURCE_NO_FILE || !h->id)
		return rc;
	rc = hub_file(&hub, h->id, name, path, e);
	h->is_hub_gone = h->is_hub_gone || (rc < 0 && e->code == ERR_NET);
	return rc == 0 ? 0 : rc < 0 && e->code == ERR_CANCELLED ? -1 : SOURCE_NO_FILE;
}

int hf_file(const struct hf_row *r, struct str name, struct arena *a, struct str *out,
	    struct err *e)
{
	char *plain = arena_text(a, name);
	struct buf path = { 0 };
	struct err why = { 0 };
	int rc;

	*out = (struct str){ 0 };
	if (memchr(name.p, 0, name.n))
		return hf_refuse(r, e, "a file name with a zero byte");
	if (file_exists(plain)) {
		*out = str_of(plain);
		return 0;
	}
	if (!name.n || *plain == '/')
		return 0;
	rc = find_file(r->hf, plain, &path, &why);
	if (rc == 0)
		*out = arena_str(a, buf_str(&path));
	else if (rc < 0)
		*e = why;
	buf_release(&path);
	return rc < 0 ? -1 : 0;
}
