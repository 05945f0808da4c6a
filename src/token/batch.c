/* SPDX-License-Identifier: Apache-2.0 */
/* batch.c - many texts at once, by several threads. */
#include "base/parallel.h"
#include "token/remote.h"
#include "token/tokenizer.h"

struct batch {
	const struct tokenizer *t;
	const struct str *text;
	size_t n;
	bool has_special;
	struct ids *ids; /* or */
	size_t *count;
};

static bool encode_one(void *self, size_t i, unsigned worker)
{
	struct batch *b = self;

	(void)worker;
	if (b->ids)
		return tokenizer_encode(b->t, b->text[i], b->has_special, b->ids + i) == 0;
	b->count[i] = tokenizer_count(b->t, b->text[i], b->has_special);
	return b->count[i] != SIZE_MAX;
}

static int run(struct batch *b, unsigned threads, struct err *e)
{
	size_t first;

	if (tokenizer_remote(b->t))
		return token_remote_batch(tokenizer_remote(b->t), b->text, b->n, b->has_special,
			b->ids, b->count, e);
	first = parallel_for(threads, b->n, encode_one, b);
	if (first == b->n)
		return 0;
	tokenizer_refuse(b->t, b->text[first], e);
	return err_wrap(e, "text %zu", first);
}

int tokenizer_encode_batch(const struct tokenizer *t, const struct str *text, size_t n,
	bool add_special, unsigned threads, struct ids *out, struct err *e)
{
	struct batch b = { .t = t, .text = text, .n = n, .has_special = add_special, .ids = out };

	return run(&b, threads, e);
}

int tokenizer_count_batch(const struct tokenizer *t, const struct str *text, size_t n,
	bool add_special, unsigned threads, size_t *out, struct err *e)
{
	struct batch b = { .t = t, .text = text, .n = n, .has_special = add_special, .count = out };

	return run(&b, threads, e);
}
