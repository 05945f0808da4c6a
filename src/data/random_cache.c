/* SPDX-License-Identifier: Apache-2.0 */
/* random_cache.c - see random_cache.h. */
#include "data/random_cache.h"

#include <math.h>

#include "base/mem.h"
#include "rng/fork.h"

int random_cache_check(const struct dataset_opts *o, struct err *e)
{
	double fraction = o->random_cache_hit_fraction, ratio = o->random_cache_ratio;

	if (!(fraction > 0) && !(ratio > 0))
		return 0;
	if (!(fraction > 0) || !(ratio > 0))
		return err_set(e, ERR_USAGE, "--random-cache-hit-fraction and --random-cache-ratio need "
			       "each other");
	if (!o->prompt_token_ids)
		return err_set(e, ERR_USAGE, "--random-cache-ratio needs --prompt-token-ids: only ids are "
			       "shared exactly");
	if (o->random_prefix_len > 0)
		return err_set(e, ERR_USAGE, "--random-cache-ratio cannot be combined with "
			       "--random-prefix-len, which all prompts share");
	return 0;
}

static size_t shared_tokens(const struct random_cache *c, size_t tokens)
{
	return (size_t)floor(c->ratio * (double)tokens);
}

static void choose_hits(struct random_cache *c, struct pcg64 *rng, double fraction, size_t n)
{
	size_t *order = mem_array(n, sizeof(*order)), hits = (size_t)round(fraction * (double)n);

	pcg64_permutation(rng, order, n);
	c->is_hit = mem_array(n, sizeof(*c->is_hit));
	for (size_t i = 0; i < hits; i++)
		c->is_hit[order[i]] = true;
	free(order);
}

void random_cache_init(struct random_cache *c, const struct random_gen *g,
		       const struct dataset_opts *o, const struct random_lengths *l)
{
	struct pcg64 rng = rng_fork(g->env->seed, "random-cache");
	int64_t longest = 0;
	size_t n;

	if (!(o->random_cache_ratio > 0))
		return;
	c->ratio = o->random_cache_ratio;
	choose_hits(c, &rng, o->random_cache_hit_fraction, l->n);
	for (size_t i = 0; i < l->n; i++)
		longest = l->input[i] > longest ? l->input[i] : longest;
	n = shared_tokens(c, (size_t)longest);
	c->end = mem_array(n, sizeof(*c->end));
	c->ids.limit = SIZE_MAX;
	for (size_t i = 0; i < n; i++) {
		size_t at = (size_t)pcg64_bounded(&rng, 0, (int64_t)g->n_allowed - 1);

		buf_printf(&c->ids, "%s%u", i ? ", " : "", g->allowed[at]);
		c->end[i] = c->ids.len;
	}
}

/* What stands behind the first n ids of a list, its bracket included. */
static struct str behind(struct str list, size_t n)
{
	while (n-- && list.n) {
		const char *comma = memchr(list.p, ',', list.n);

		if (!comma)
			return STR("]");
		list.n -= (size_t)(comma + 1 - list.p);
		list.p = comma + 1;
	}
	return list;
}

struct str random_cache_apply(const struct random_cache *c, const struct random_prompt *p,
			      struct buf *scratch)
{
	size_t n = c->is_hit && c->is_hit[p->index] ? shared_tokens(c, p->tokens) : 0;
	struct str rest;

	if (n == 0)
		return p->text;
	rest = behind(p->text, n);
	buf_reset(scratch);
	buf_add_char(scratch, '[');
	buf_add(scratch, c->ids.data, c->end[n - 1]);
	if (rest.n > 1)
		buf_add_char(scratch, ',');
	buf_add_str(scratch, rest);
	return buf_str(scratch);
}

void random_cache_release(struct random_cache *c)
{
	free(c->is_hit);
	free(c->end);
	buf_release(&c->ids);
	*c = (struct random_cache){ 0 };
}
