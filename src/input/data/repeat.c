/* SPDX-License-Identifier: Apache-2.0 */
/* repeat.c - see repeat.h. */
#include "input/data/repeat.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "core/base/limits.h"
#include "core/base/mem.h"

/* ---- what prompts have in common ---- */

/*
 * In sorted order the longest common prefix of two texts is the smallest of the neighbors' in
 * between. Texts are removed from the sorted list from the last one to the first; the rest are the
 * earlier texts, of which only the two neighbors need to be examined.
 */

struct link {
	struct str text;
	size_t index;        /* of the text */
	size_t before, after; /* in sorted order, among those that are left */
	size_t common;       /* bytes in common with before */
};

struct str prefix_text(const struct sample *s)
{
	return s->messages.n ? s->messages : s->prompt;
}

static size_t common(struct str a, struct str b)
{
	size_t n = a.n < b.n ? a.n : b.n, i = 0;

	while (i + 64 <= n && memcmp(a.p + i, b.p + i, 64) == 0)
		i += 64;
	while (i < n && a.p[i] == b.p[i])
		i++;
	return i;
}

static int by_text(const void *a, const void *b)
{
	const struct link *x = a, *y = b;
	size_t n = x->text.n < y->text.n ? x->text.n : y->text.n;
	int order = n ? memcmp(x->text.p, y->text.p, n) : 0;

	if (order == 0 && x->text.n != y->text.n)
		return x->text.n < y->text.n ? -1 : 1;
	return order ? order : (x->index > y->index) - (x->index < y->index);
}

/* link[0] and link[n + 1] are the ends of the list. */
static struct link *sort(const struct str *text, size_t n)
{
	struct link *link = mem_array(n + 2, sizeof(*link));

	for (size_t i = 0; i < n; i++)
		link[i + 1] = (struct link){ .text = text[i], .index = i };
	qsort(link + 1, n, sizeof(*link), by_text);
	for (size_t k = 1; k <= n; k++) {
		link[k].before = k - 1;
		link[k].after = k + 1;
		link[k].common = k > 1 ? common(link[k - 1].text, link[k].text) : 0;
	}
	return link;
}

void prefix_shared(const struct str *text, size_t n, double *share)
{
	struct link *link = sort(text, n);
	size_t *place = mem_array(n, sizeof(*place));

	for (size_t k = 1; k <= n; k++)
		place[link[k].index] = k;
	for (size_t i = n; i-- > 0;) {
		struct link *l = &link[place[i]], *next = &link[l->after];
		size_t most = l->common > next->common ? l->common : next->common;

		share[i] = text[i].n ? (double)most / (double)text[i].n : 0;
		if (l->common < next->common)
			next->common = l->common;
		next->before = l->before;
		link[l->before].after = l->after;
	}
	free(place);
	free(link);
}

/* ---- repeats ---- */

const char *const repeat_orders[] = { "random", "tile", "interleave", "sorted", NULL };

static int by_number(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Stable: texts of equal length keep their order. */
static void sort_by_length(const struct workload *w, uint32_t *from, size_t n)
{
	uint64_t *key = mem_array(n, sizeof(*key));
	uint32_t *sorted = mem_array(n, sizeof(*sorted));

	for (size_t i = 0; i < n; i++)
		key[i] = (uint64_t)w->v[from[i]].prompt_len << 32 | i;
	qsort(key, n, sizeof(*key), by_number);
	for (size_t i = 0; i < n; i++)
		sorted[i] = from[(uint32_t)key[i]];
	memcpy(from, sorted, n * sizeof(*from));
	free(sorted);
	free(key);
}

/* from[i]: which sample is sent as the i-th. */
static void put_in_order(const struct workload *w, const char *order, size_t count,
			 struct compat_rng *rng, uint32_t *from)
{
	const size_t all = w->n * count;
	const bool is_interleaved = strcmp(order, "interleave") == 0;

	for (size_t i = 0; i < all; i++)
		from[i] = (uint32_t)(is_interleaved ? i / count : i % w->n);
	if (strcmp(order, "random") == 0)
		pyrandom_shuffle(&rng->py, from, all, sizeof(*from));
	else if (strcmp(order, "sorted") == 0)
		sort_by_length(w, from, all);
}

/* The samples in that order, in place of w's. */
static void copy_samples(struct workload *w, const uint32_t *from, struct repeats *r)
{
	const size_t all = r->n * r->count;
	struct sample *v = mem_array(all, sizeof(*v));
	uint32_t *copies = mem_array(r->n, sizeof(*copies)); /* so far */

	for (size_t i = 0; i < all; i++) {
		uint32_t s = from[i];

		v[i] = w->v[s];
		if (copies[s]++ == 0)
			r->first[s] = (uint32_t)i;
		else if (v[i].request_id.n)
			v[i].request_id = str_of(arena_printf(&w->arena, "%.*s-%u",
				(int)v[i].request_id.n, v[i].request_id.p, copies[s]));
	}
	free(copies);
	free(w->v);
	w->v = v;
	w->n = w->cap = all;
}

int dataset_repeat(struct workload *w, const struct dataset_opts *o, struct compat_rng *rng,
		   struct err *e)
{
	const size_t count = o->repeat_count > 1 ? (size_t)o->repeat_count : 1;
	struct repeats *r;
	uint32_t *from;

	assert(!w->repeats);
	if (w->n == 0 || (count == 1 && !o->repeat_order))
		return 0;
	if (w->sessions)
		return err_set(e, ERR_USAGE, "--repeat-count, --repeat-order: not for conversations, whose "
			       "turns have an order of their own; raise --num-prompts instead");
	if (count > REQUESTS_MAX / w->n)
		return err_set(e, ERR_LIMIT, "--repeat-count %" PRId64 ": %zu requests, repeated, are more "
			       "than the %u of one run", o->repeat_count, w->n, REQUESTS_MAX);
	r = arena_alloc(&w->arena, sizeof(*r));
	*r = (struct repeats){ .count = (uint32_t)count, .n = w->n,
			       .order = o->repeat_order ? o->repeat_order : repeat_orders[0],
			       .first = arena_alloc(&w->arena, w->n * sizeof(*r->first)) };
	from = mem_array(w->n * count, sizeof(*from));
	put_in_order(w, r->order, count, rng, from);
	copy_samples(w, from, r);
	free(from);
	w->repeats = r;
	return 0;
}

double dataset_ideal_reuse(const struct workload *w, bool is_warm)
{
	struct str *text = mem_array(w->n, sizeof(*text));
	double *share = mem_array(w->n, sizeof(*share)), tokens = 0, reused = 0;
	bool is_known = true;

	for (size_t i = 0; i < w->n; i++) {
		text[i] = prefix_text(&w->v[i]);
		tokens += w->v[i].prompt_len;
		is_known &= !w->v[i].media.n && !w->v[i].file.n;
	}
	if (is_known && !is_warm)
		prefix_shared(text, w->n, share);
	for (size_t i = 0; i < w->n; i++)
		reused += (is_warm ? 1 : share[i]) * w->v[i].prompt_len;
	free(share);
	free(text);
	return is_known && tokens > 0 ? reused / tokens : NAN;
}
