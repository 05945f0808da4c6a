/* SPDX-License-Identifier: Apache-2.0 */
/* visible.c - what CUDA_VISIBLE_DEVICES and its kin leave of a machine's GPUs. See parts.h. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/str.h"
#include "gpu/parts.h"

/* Places of whole GPUs of one maker, in the order in which a variable counts them. */
struct counted {
	size_t *place;
	size_t n;
};

static void count_in(struct counted *c, size_t place)
{
	c->place = mem_grow(c->place, c->n + 1, sizeof(*c->place));
	c->place[c->n++] = place;
}

static bool begins(const struct gpu *g, struct str word)
{
	return word.n > 4 && strlen(g->uuid) >= word.n &&
	       strncasecmp(g->uuid, word.p, word.n) == 0;
}

/* Which GPU or part the word names; -1: none, or more than one. */
static long named_by(const struct gpu_set *s, const struct counted *c, enum gpu_maker maker,
		     struct str word)
{
	uint64_t index;
	long found = -1;

	if (str_to_u64(word, &index))
		return index < c->n ? (long)c->place[index] : -1;
	for (size_t i = 0; i < s->n; i++) {
		if (s->gpu[i].maker != maker || !begins(&s->gpu[i], word))
			continue;
		if (strlen(s->gpu[i].uuid) == word.n)
			return (long)i;
		if (found >= 0)
			return -1;
		found = (long)i;
	}
	return found;
}

static bool is_chosen(const struct counted *c, size_t place)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->place[i] == place)
			return true;
	return false;
}

/* The words of the list, each looked for among those counted; in their order. */
static struct counted choose(const struct gpu_set *s, const struct counted *c,
			     enum gpu_maker maker, const char *text)
{
	struct str rest = str_of(text);
	struct counted chosen = { 0 };

	while (rest.n) {
		long place = named_by(s, c, maker, str_trim(str_cut(&rest, ',')));

		if (place < 0 || is_chosen(&chosen, (size_t)place))
			break;
		/* A UUID may name one that an earlier variable has left out. */
		if (s->gpu[place].part < 0 && !is_chosen(c, (size_t)place))
			break;
		count_in(&chosen, (size_t)place);
	}
	return chosen;
}

/* Parts are meant by their own names, and by their GPU's. */
static bool is_left(const struct gpu_set *s, const struct counted *chosen, size_t place)
{
	const struct gpu *g = &s->gpu[place];

	if (is_chosen(chosen, place))
		return true;
	for (size_t i = 0; g->part >= 0 && i < chosen->n; i++)
		if (strcmp(s->gpu[chosen->place[i]].uuid, g->parent) == 0)
			return true;
	return false;
}

static void narrow(struct gpu_set *s, enum gpu_maker maker, const char *first, const char *second)
{
	struct counted all = { 0 };

	for (size_t i = 0; i < s->n; i++)
		if (s->gpu[i].maker == maker && s->gpu[i].part < 0)
			count_in(&all, i);
	for (int i = 0; i < 2; i++) {
		const char *text = i == 0 ? first : second;
		struct counted chosen;

		if (!text)
			continue;
		chosen = choose(s, &all, maker, text);
		for (size_t k = 0; k < s->n; k++)
			if (s->gpu[k].maker == maker)
				s->gpu[k].is_allowed &= is_left(s, &chosen, k);
		free(all.place);
		all = chosen;
	}
	free(all.place);
}

void gpu_visible(struct gpu_set *s, const char *cuda, const char *hip, const char *rocr)
{
	narrow(s, GPU_NVIDIA, cuda, NULL);
	narrow(s, GPU_AMD, rocr, hip ? hip : cuda);
}
