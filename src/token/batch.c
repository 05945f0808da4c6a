/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch.c - many texts at once, by several threads.
 *
 * Threads take runs of neighbouring texts from one counter, and each text has its
 * own place for its ids, so the result does not depend on who took what. Runs
 * begin in order, so the first text that fails is always among those looked at.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/limits.h"
#include "base/mem.h"
#include "token/remote.h"
#include "token/tokenizer.h"

#define RUNS_PER_THREAD 16 /* small enough that nobody waits long for the last one */
#define RUN_TEXTS_MAX 256

struct batch {
	const struct tokenizer *t;
	const struct str *text;
	size_t n, run;
	bool has_special;
	struct ids *ids; /* or */
	size_t *count;
	_Atomic size_t next, failed; /* failed: the first text that is; n: none */
};

unsigned tokenizer_threads(void)
{
	cpu_set_t set;
	int n = 1;

	if (sched_getaffinity(0, sizeof set, &set) == 0)
		n = CPU_COUNT(&set);
	return n < THREADS_MAX ? (unsigned)n : THREADS_MAX;
}

int tokenizer_refuse(struct str text, struct err *e)
{
	if (text.n > TOKEN_TEXT_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "the text has %zu bytes; at most %u are encoded at once",
			text.n, TOKEN_TEXT_BYTES_MAX);
	return err_set(e, ERR_LIMIT, "the tokenizer's regular expression gave up on the text, "
		"which has %zu bytes", text.n);
}

static bool encode_one(struct batch *b, size_t i)
{
	if (b->ids)
		return tokenizer_encode(b->t, b->text[i], b->has_special, b->ids + i) == 0;
	b->count[i] = tokenizer_count(b->t, b->text[i], b->has_special);
	return b->count[i] != SIZE_MAX;
}

static void note_failure(struct batch *b, size_t i)
{
	size_t first = atomic_load(&b->failed);

	while (i < first && !atomic_compare_exchange_weak(&b->failed, &first, i))
		;
}

static void *take_runs(void *arg)
{
	struct batch *b = arg;
	size_t from, to;

	while ((from = atomic_fetch_add(&b->next, b->run)) < atomic_load(&b->failed)) {
		to = b->n - from < b->run ? b->n : from + b->run;
		for (size_t i = from; i < to; i++) {
			if (!encode_one(b, i)) {
				note_failure(b, i);
				break;
			}
		}
	}
	return NULL;
}

static int run(struct batch *b, unsigned threads, struct err *e)
{
	pthread_t thread[THREADS_MAX];
	unsigned started = 0;
	size_t first;

	if (tokenizer_remote(b->t))
		return token_remote_batch(tokenizer_remote(b->t), b->text, b->n, b->has_special,
			b->ids, b->count, e);
	if (threads == 0)
		threads = tokenizer_threads();
	if (threads > THREADS_MAX)
		threads = THREADS_MAX;
	if (threads > b->n)
		threads = (unsigned)b->n;
	b->run = threads ? b->n / threads / RUNS_PER_THREAD : 0;
	b->run = b->run < 1 ? 1 : b->run > RUN_TEXTS_MAX ? RUN_TEXTS_MAX : b->run;
	b->failed = b->n;
	/* One that cannot be started is not missed: the others do its share. */
	while (started + 1 < threads &&
		pthread_create(thread + started, NULL, take_runs, b) == 0)
		started++;
	take_runs(b);
	while (started)
		pthread_join(thread[--started], NULL);
	first = b->failed;
	if (first == b->n)
		return 0;
	tokenizer_refuse(b->text[first], e);
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
