/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prefix.c - see prefix.h.
 *
 * In sorted order the longest common prefix of two texts is the smallest one of
 * neighbours in between. Texts leave the sorted list from the last one to the first;
 * what is then left are those before, and the nearest two are all one has to look at.
 */
#include "data/prefix.h"

#include <stdlib.h>

#include "base/mem.h"

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
