/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_store_threads.c - many at once: two stores on one database, as two processes have it, threads
 * on each that put, read, annotate and refresh, while one works off a job; on both databases.
 */
#include <pthread.h>
#include <stdatomic.h>

#define STORE_RIG "test_store_threads_c"
#include "store_rig.h"

#define THREADS 6
#define ROUNDS 12
#define AT_ONCE 5

struct shared {
	struct store *store[2];
	atomic_int n_new, n_duplicate, n_failed;
};

struct one {
	struct shared *shared;
	int number;
};

static void note_failure(struct shared *w, const struct err *why)
{
	if (!atomic_fetch_add(&w->n_failed, 1))
		print_error("%s\n", why->text);
}

/* Threads put the same runs as their neighbour, which has the other store open. */
static void *work(void *self)
{
	struct one *o = self;
	struct shared *w = o->shared;
	struct store *s = w->store[o->number % 2];

	for (int i = 0; i < ROUNDS; i++) {
		struct arena a = { 0 };
		struct put_result out[AT_ONCE];
		struct read_run *run = make_runs(&a, o->number / 2 ? "b" : "a", i * AT_ONCE, AT_ONCE);
		struct run_whole whole;
		struct err why = { 0 };
		int64_t id;

		if (store_put(s, run, AT_ONCE, STR("thread"), &a, out, &why) < 0 ||
		    store_annotate(s, out[0].id, STR("seen"), STR("thread"), &id, &why) < 0 ||
		    store_run(s, out[1].id, &a, &whole, &why) < 0 || store_refresh(s, &why) < 0)
			note_failure(w, &why);
		for (int k = 0; k < AT_ONCE; k++) {
			if (out[k].outcome == PUT_NEW)
				atomic_fetch_add(&w->n_new, 1);
			else if (out[k].outcome == PUT_DUPLICATE)
				atomic_fetch_add(&w->n_duplicate, 1);
		}
		arena_release(&a);
	}
	return NULL;
}

static void many_at_once(const char *url)
{
	struct shared w = { .store = { open_store(url, false), open_store(url, false) } };
	pthread_t thread[THREADS];
	struct one one[THREADS];
	struct arena a = { 0 };
	struct str *finding;
	size_t n;

	for (int i = 0; i < THREADS; i++) {
		one[i] = (struct one){ &w, i };
		assert_int_equal(pthread_create(&thread[i], NULL, work, &one[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(w.n_failed, 0);
	assert_int_equal(w.n_new, 2 * ROUNDS * AT_ONCE);
	assert_int_equal(w.n_duplicate, (THREADS - 2) * ROUNDS * AT_ONCE);
	for (int i = 0; i < 2; i++) {
		must(store_refresh(w.store[i], e));
		assert_int_equal(shown(w.store[i], 0, false), 2 * ROUNDS * AT_ONCE);
	}
	must(store_check(w.store[0], &a, &finding, &n, e));
	assert_int_equal(n, 0);
	store_close(w.store[0]);
	store_close(w.store[1]);
	arena_release(&a);
}

static void test_many_at_once(void **state)
{
	(void)state;
	with_stores(many_at_once);
}

/* Several that make the same store at the same moment. */
static void *open_and_put(void *self)
{
	struct one *o = self;
	struct store_opts opts = { .url = (const char *)o->shared, .snapshot = "" };
	struct arena a = { 0 };
	struct read_run run = make_run(&a, arena_printf(&a, "first-%d", o->number), o->number);
	struct put_result out = { 0 };
	struct store *s = NULL;
	struct err why = { 0 };

	o->number = store_open(&opts, &s, &why);
	if (o->number == 0)
		o->number = store_put(s, &run, 1, STR(""), &a, &out, &why);
	if (o->number < 0)
		print_error("%s\n", why.text);
	store_close(s);
	arena_release(&a);
	return NULL;
}

static void test_made_by_several(void **state)
{
	pthread_t thread[THREADS];
	struct one one[THREADS];
	struct arena a = { 0 };
	char *path = arena_printf(&a, "%s/together.db", dir);
	struct store *s;

	(void)state;
	for (int i = 0; i < THREADS; i++) {
		one[i] = (struct one){ (struct shared *)(void *)path, i };
		assert_int_equal(pthread_create(&thread[i], NULL, open_and_put, &one[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(one[i].number, 0);
	}
	s = open_store(path, true);
	assert_int_equal(shown(s, 0, false), THREADS);
	store_close(s);
	arena_release(&a);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_at_once),
		cmocka_unit_test(test_made_by_several),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
