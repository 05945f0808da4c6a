/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_sessions.c - which rows of a trace belong together, and which waits for which.
 *
 * Rows name the one that they follow, or carry the name of their session. Whoever is connected is
 * one session, so that a name that is missing, or a circle of names, needs no rule of its own. The
 * order within a session is that of the turns' numbers, then of the file; a row that would stand
 * before the one that it follows waits for the row before it.
 */
#include "data/trace_rows.h"

#include <stdlib.h>

#include "base/mem.h"

struct named { uint64_t key; uint32_t at; };

struct grouping {
	struct trace_rows *r;
	struct named *by_key;  /* of the rows with a key */
	size_t n;
	uint32_t *parent;      /* row of the list that each follows, or TRACE_NO_PARENT */
	uint32_t *leader;      /* on the way to the first row of its session */
};

static int compare_keys(const void *a, const void *b)
{
	const struct named *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

/* The first row of that key. */
static uint32_t find_key(const struct grouping *g, uint64_t key)
{
	size_t low = 0, high = g->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (g->by_key[mid].key < key)
			low = mid + 1;
		else
			high = mid;
	}
	return low < g->n && g->by_key[low].key == key ? g->by_key[low].at : TRACE_NO_PARENT;
}

static uint32_t lead(uint32_t *leader, uint32_t i)
{
	while (leader[i] != i)
		i = leader[i] = leader[leader[i]];
	return i;
}

/* Of two sessions that are one the earlier first row leads. */
static void join(uint32_t *leader, uint32_t a, uint32_t b)
{
	uint32_t x = lead(leader, a), y = lead(leader, b);

	if (x < y)
		leader[y] = x;
	else
		leader[x] = y;
}

static void find_parents(struct grouping *g, bool is_chain)
{
	const struct trace_rows *r = g->r;

	for (uint32_t i = 0; i < r->n; i++) {
		if (r->v[i].key != TRACE_NOBODY)
			g->by_key[g->n++] = (struct named){ r->v[i].key, i };
		g->parent[i] = TRACE_NO_PARENT;
		g->leader[i] = i;
	}
	qsort(g->by_key, g->n, sizeof(*g->by_key), compare_keys);
	for (size_t k = 1; is_chain && k < g->n; k++)
		if (g->by_key[k].key == g->by_key[k - 1].key)
			g->parent[g->by_key[k].at] = g->by_key[k - 1].at;
	for (uint32_t i = 0; !is_chain && i < r->n; i++)
		if (r->v[i].parent_key != TRACE_NOBODY)
			g->parent[i] = find_key(g, r->v[i].parent_key);
	for (uint32_t i = 0; i < r->n; i++)
		if (g->parent[i] != TRACE_NO_PARENT)
			join(g->leader, i, g->parent[i]);
}

static int compare_turns(const void *a, const void *b)
{
	const struct trace_kept *x = a, *y = b;

	if (x->session != y->session)
		return x->session < y->session ? -1 : 1;
	if (x->turn != y->turn)
		return x->turn < y->turn ? -1 : 1;
	return (x->depth > y->depth) - (x->depth < y->depth);
}

/* A session is called by its first turn, so that sessions come in the order of their beginnings. */
static void name_sessions(struct grouping *g)
{
	struct trace_rows *r = g->r;
	uint32_t *first = mem_array(r->n + 1, sizeof(*first));

	for (uint32_t i = 0; i < r->n; i++)
		first[i] = i;
	for (uint32_t i = 0; i < r->n; i++) {
		uint32_t *of = &first[lead(g->leader, i)];

		if (r->v[i].turn < r->v[*of].turn)
			*of = i;
	}
	for (uint32_t i = 0; i < r->n; i++)
		r->v[i].session = first[lead(g->leader, i)];
	free(first);
}

/* What the row at i waits for; place: of the old list's rows. */
static uint32_t parent_of(const struct grouping *g, const uint32_t *place, uint32_t i)
{
	const struct trace_kept *k = &g->r->v[i];
	uint32_t parent = g->parent[k->depth];

	if (i == 0 || k[-1].session != k->session)
		return TRACE_NO_PARENT;
	if (parent == TRACE_NO_PARENT || place[parent] >= i)
		return i - 1;
	return place[parent];
}

static void order_rows(struct grouping *g)
{
	struct trace_rows *r = g->r;
	uint32_t *place = mem_array(r->n + 1, sizeof(*place));

	for (uint32_t i = 0; i < r->n; i++)
		r->v[i].depth = i; /* the old place, for now */
	qsort(r->v, r->n, sizeof(*r->v), compare_turns);
	for (uint32_t i = 0; i < r->n; i++)
		place[r->v[i].depth] = i;
	for (uint32_t i = 0; i < r->n; i++)
		r->v[i].parent = parent_of(g, place, i);
	for (uint32_t i = 0; i < r->n; i++)
		r->v[i].depth = r->v[i].parent == TRACE_NO_PARENT ? 0
			       : r->v[r->v[i].parent].depth + 1;
	free(place);
}

void trace_sessions_group(struct trace_rows *r, bool is_chain)
{
	struct grouping g = {
		.r = r, .by_key = mem_array(r->n + 1, sizeof(*g.by_key)),
		.parent = mem_array(r->n + 1, sizeof(*g.parent)),
		.leader = mem_array(r->n + 1, sizeof(*g.leader)),
	};

	find_parents(&g, is_chain);
	name_sessions(&g);
	order_rows(&g);
	r->sessions = 1; /* counted when rows are chosen */
	free(g.by_key);
	free(g.parent);
	free(g.leader);
}
