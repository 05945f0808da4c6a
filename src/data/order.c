/* SPDX-License-Identifier: Apache-2.0 */
/* order.c - see order.h. */
#include "data/order.h"

#include <assert.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/mem.h"
#include "rng/pcg64.h"

#define BUFFER_ROWS 1000
#define DRAWN_AT_ONCE 1000 /* slots are drawn by the thousand, wanted or not */
#define GROUPS_MAX 10      /* shards that library 5.x reads side by side */
#define CHUNK_ROWS (BUFFER_ROWS / GROUPS_MAX)
#define HELD_ROWS (BUFFER_ROWS + CHUNK_ROWS)

/* Shards that are read one after the other: a part of the shuffled list of shards. */
struct group {
	size_t next, end;
	uint64_t row, rows; /* the next row and their number, of the shard before `next` */
};

struct order {
	enum order_kind kind;
	struct pcg64 rng;
	order_rows_fn *rows;
	void *self;
	size_t *shard; /* numbers of the shards in the order in which they are read */
	size_t shards;
	struct group group[GROUPS_MAX];
	size_t groups, turn; /* turn: the group whose chunk comes next */
	/* ORDER_WHOLE: numbers of rows, and where each shard ends in them */
	size_t *place;
	uint64_t *end, total, done;
	/* streams: rows waiting, and of 5.x those that were chosen among them */
	struct order_row held[HELD_ROWS], chosen[HELD_ROWS];
	size_t held_n, chosen_n, chosen_at;
	uint16_t slot[DRAWN_AT_ONCE];
	size_t slot_at;
	bool is_at_end;
};

/* The next row of a group: 1, 0, -1. */
static int group_next(struct order *o, struct group *g, struct order_row *out, struct err *e)
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

static int open_whole(struct order *o, struct err *e)
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

static int next_whole(struct order *o, struct order_row *out)
{
	size_t low = 0, high = o->shards;
	uint64_t place;

	if (o->done == o->total)
		return 0;
	place = o->place[o->done++];
	while (high - low > 1) { /* the first shard that ends behind place */
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

/* All that is held becomes what is chosen. */
static void choose_rest(struct order *o)
{
	shuffle_rows(&o->rng, o->held, o->held_n, o->chosen);
	o->chosen_n = o->held_n;
	o->held_n = 0;
	o->is_at_end = true;
}

static int next_chosen(struct order *o, struct order_row *out)
{
	if (o->chosen_at == o->chosen_n)
		return 0;
	*out = o->chosen[o->chosen_at++];
	return 1;
}

static size_t draw_slot(struct order *o)
{
	if (o->slot_at == DRAWN_AT_ONCE) {
		for (size_t i = 0; i < DRAWN_AT_ONCE; i++)
			o->slot[i] = (uint16_t)pcg64_bounded(&o->rng, 0, BUFFER_ROWS - 1);
		o->slot_at = 0;
	}
	return o->slot[o->slot_at++];
}

/* A row that comes in pushes out a random one. */
static int next_stream(struct order *o, struct order_row *out, struct err *e)
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
static int hold_chunk(struct order *o, struct err *e)
{
	size_t wanted = o->kind == ORDER_STREAM_5 ? CHUNK_ROWS : 1;
	int rc;

	for (size_t tried = 0; tried < o->groups; tried++) {
		struct group *g = &o->group[o->turn];
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
static int next_stream_5(struct order *o, struct order_row *out, struct err *e)
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

/* Shards in the order of a generator that is seeded alike; the buffer's begins anew. */
static void open_stream(struct order *o)
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

struct order *order_open(enum order_kind kind, uint64_t seed, size_t shards, order_rows_fn *rows,
	void *self, struct err *e)
{
	struct order *o = mem_alloc(sizeof(*o));
	int rc = 0;

	*o = (struct order){ .kind = kind, .rows = rows, .self = self, .shards = shards };
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

void order_close(struct order *o)
{
	if (!o)
		return;
	free(o->shard);
	free(o->place);
	free(o->end);
	free(o);
}

int order_next(struct order *o, struct order_row *out, struct err *e)
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
