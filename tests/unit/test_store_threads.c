/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_store_threads.c - many at once: two stores on one database, as two processes have it,
 * threads on each that put, read, annotate and refresh; on both databases. And a PostgreSQL
 * server that cuts connections, hangs, or is slow to read.
 *
 * threads: yes
 */
#include <postgresql/libpq-fe.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "core/base/clock.h"
#include "results/store/store_internal.h"

#define STORE_RIG "test_store_threads_c"
#include "store_rig.h"

#define THREADS 6
#define ROUNDS 12
#define AT_ONCE 5
#ifdef __SANITIZE_THREAD__
#define OPENED 30
#else
#define OPENED 60
#endif
#define LARGE_BYTES (size_t)(3 << 20)
#define LARGE_ROUNDS 12

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

/* ---- another index under way ---- */

struct crowd {
	struct store *store;
	atomic_bool is_over;
	int n_put;
};

static void *ask_on(void *self)
{
	struct crowd *w = self;
	struct str run_id = STR("run_id");
	struct query q = { .facet = &run_id, .n_facets = 1, .facet_values_max = 5, .limit = 3,
			   .column = &run_id, .n_columns = 1 };
	uint64_t version = 0;

	while (!atomic_load(&w->is_over)) {
		struct index_view *v = store_view(w->store);
		struct arena a = { 0 };
		struct answer got = { 0 };

		assert_int_equal(index_query(v, &q, &a, &got, NULL), 0);
		assert_true(index_view_version(v) >= version);
		version = index_view_version(v);
		for (size_t i = 0; i < got.n_rows; i++)
			assert_true(got.row[i].value[0].text.n > 0);
		index_view_release(v);
		arena_release(&a);
	}
	return NULL;
}

static void *put_more(void *self)
{
	struct crowd *w = self;

	while (!atomic_load(&w->is_over)) {
		struct arena a = { 0 };
		struct put_result out[AT_ONCE];

		must(store_put(w->store, make_runs(&a, "more", w->n_put, AT_ONCE), AT_ONCE, STR(""), &a,
			       out, e));
		w->n_put += AT_ONCE;
		arena_release(&a);
	}
	return NULL;
}

/* Runs are removed by another process and leave the memory, while others read and write. */
static void removed_meanwhile(const char *url)
{
	struct crowd w = { .store = open_store(url, false) };
	struct store *t = open_store(url, false);
	struct filter named = { .kind = FILTER_TEXT, .column = STR("run_id"), .text = STR("s-1") };
	struct arena a = { 0 };
	struct put_result out[200];
	struct index *before = store_index(w.store);
	pthread_t thread[3];
	size_t n;

	must(store_put(w.store, make_runs(&a, "s", 0, 200), 200, STR(""), &a, out, e));
	assert_int_equal(pthread_create(&thread[0], NULL, ask_on, &w), 0);
	assert_int_equal(pthread_create(&thread[1], NULL, ask_on, &w), 0);
	assert_int_equal(pthread_create(&thread[2], NULL, put_more, &w), 0);
	must(store_refresh(t, e));
	must(store_remove(t, &named, &n, e));
	assert_int_equal(n, 111); /* s-1, s-10 to s-19, s-100 to s-199 */
	for (int i = 0; store_index(w.store) == before && i < 1000; i++) {
		must(store_maintain(w.store, e));
		nanosleep(&(struct timespec){ 0, 2000000 }, NULL);
	}
	assert_true(store_index(w.store) != before);
	nanosleep(&(struct timespec){ 0, 50000000 }, NULL);
	atomic_store(&w.is_over, true);
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(shown(w.store, 0, false), 89 + (size_t)w.n_put);
	store_close(t);
	store_close(w.store);
	arena_release(&a);
}

static void test_removed_meanwhile(void **state)
{
	(void)state;
	with_stores(removed_meanwhile);
}

/* A snapshot is of use also where runs come in while a store is opened with it. */
static void opened_meanwhile(const char *url)
{
	struct crowd w = { .store = open_store(url, false) };
	struct arena a = { 0 };
	struct put_result out[AT_ONCE];
	pthread_t thread;

	must(store_put(w.store, make_runs(&a, "first", 0, AT_ONCE), AT_ONCE, STR(""), &a, out, e));
	store_close(w.store); /* which writes the snapshot */
	w.store = open_store(url, false);
	assert_int_equal(pthread_create(&thread, NULL, put_more, &w), 0);
	for (int i = 0; i < OPENED; i++) {
		struct store *s = open_store(url, true);

		assert_true(s->saved > 0); /* else all runs were read from the database */
		store_close(s);
	}
	atomic_store(&w.is_over, true);
	pthread_join(thread, NULL);
	assert_true(w.n_put > 0);
	store_close(w.store);
	arena_release(&a);
}

static void test_opened_meanwhile(void **state)
{
	(void)state;
	with_stores(opened_meanwhile);
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

static void made_by_several(int round)
{
	pthread_t thread[THREADS];
	struct one one[THREADS];
	struct arena a = { 0 };
	char *path = arena_printf(&a, "%s/together%d.db", dir, round);
	struct store *s;

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

static void test_made_by_several(void **state)
{
	(void)state;
	for (int i = 0; i < ROUNDS; i++)
		made_by_several(i);
}

/* ---- a server that cuts connections ---- */

static void cut_all(PGconn *c)
{
	PGresult *r = PQexec(c, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
				" WHERE datname = current_database() AND pid <> pg_backend_pid()");

	assert_int_equal(PQresultStatus(r), PGRES_TUPLES_OK);
	PQclear(r);
}

struct cut_off {
	struct store *store;
	atomic_bool is_over;
	int n_kept, n_lost, n_tries;
};

/* Goes on whatever happens; what was lost is put again, as who uploads would. */
static void *put_on(void *self)
{
	struct cut_off *w = self;

	while (!atomic_load(&w->is_over)) {
		struct arena a = { 0 };
		struct read_run *run = make_runs(&a, "cut", 3 * w->n_kept, 3);
		struct put_result out[3];

		w->n_tries++;
		if (store_put(w->store, run, 3, STR(""), &a, out, NULL) == 0)
			w->n_kept++;
		else
			w->n_lost++;
		arena_release(&a);
	}
	return NULL;
}

static void connections_cut(const char *url)
{
	struct cut_off w = { 0 };
	struct arena a = { 0 };
	struct put_result out;
	struct str *finding;
	pthread_t thread;
	PGconn *c;
	size_t n;

	if (!str_starts(str_of(url), STR("postgres")))
		return;
	c = PQconnectdb(url);
	w.store = open_store(url, false);
	must(store_refresh(w.store, e));
	assert_int_equal(store_find(w.store, STR("none")), 0);
	cut_all(c); /* unnoticed between two questions */
	assert_int_equal(store_find(w.store, STR("none")), 0);
	must(store_put(w.store, make_runs(&a, "x", 0, 1), 1, STR(""), &a, &out, e));
	assert_int_equal(pthread_create(&thread, NULL, put_on, &w), 0);
	for (int i = 0; i < 10; i++) {
		nanosleep(&(struct timespec){ 0, 20000000 }, NULL);
		cut_all(c);
	}
	nanosleep(&(struct timespec){ 0, 50000000 }, NULL);
	atomic_store(&w.is_over, true);
	pthread_join(thread, NULL);
	assert_true(w.n_kept > 0);
	/* A commit whose answer was lost is found by the next attempt: three for each kept. */
	must(store_refresh(w.store, e));
	assert_in_range(shown(w.store, 0, false), 3 * (size_t)w.n_kept + 1,
			3 * (size_t)w.n_kept + 4);
	must(store_check(w.store, &a, &finding, &n, e));
	assert_int_equal(n, 0);
	store_close(w.store);
	PQfinish(c);
	arena_release(&a);
}

/* ---- a server that hangs ---- */

static void signal_others(PGconn *c, int signal)
{
	PGresult *r = PQexec(c, "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
				" AND pid <> pg_backend_pid() AND application_name = 'profllm'");

	assert_int_equal(PQresultStatus(r), PGRES_TUPLES_OK);
	assert_true(PQntuples(r) > 0 || signal == SIGCONT);
	for (int i = 0; i < PQntuples(r); i++)
		assert_int_equal(kill((pid_t)strtol(PQgetvalue(r, i, 0), NULL, 10), signal), 0);
	PQclear(r);
}

/* Reading and writing end with a sentence, at once where the URL says so, and go on afterwards. */
static void server_hangs(const char *url)
{
	struct arena a = { 0 };
	struct read_run run;
	struct err why = { 0 };
	struct put_result out;
	int64_t start;
	PGconn *c;
	struct store *s;

	if (!str_starts(str_of(url), STR("postgres")))
		return;
	run = make_run(&a, "x", 1);
	c = PQconnectdb(url);
	s = open_store(arena_printf(&a, "%s&tcp_user_timeout=2000", url), false);
	assert_int_equal(store_find(s, STR("none")), 0);
	signal_others(c, SIGSTOP);
	start = clock_mono_ns();
	assert_int_equal(store_put(s, &run, 1, STR(""), &a, &out, &why), -1);
	assert_string_equal(why.text, "PostgreSQL: no answer for 2 s (tcp_user_timeout): the server "
				      "hangs, is overloaded or cannot be reached");
	assert_int_equal(why.code, ERR_NET);
	assert_in_range(clock_mono_ns() - start, 2000000000, 30000000000);
	/* For a moment all queries fail at once, then connections are new. */
	assert_int_equal(store_put(s, &run, 1, STR(""), &a, &out, &why), -1);
	assert_non_null(strstr(why.text, "did not answer"));
	assert_int_equal(store_job_step(s, &why), -1);
	assert_non_null(strstr(why.text, "did not answer"));
	nanosleep(&(struct timespec){ 0, 600000000 }, NULL);
	assert_int_equal(store_job_step(s, &why), -1); /* a connection that reads */
	assert_non_null(strstr(why.text, "no answer"));
	nanosleep(&(struct timespec){ 0, 600000000 }, NULL);
	must(store_put(s, &run, 1, STR(""), &a, &out, e));
	assert_int_equal(store_find(s, STR("x")), out.id);
	signal_others(c, SIGCONT);
	store_close(s);
	PQfinish(c);
	arena_release(&a);
}

/* ---- a server that is slow to read ---- */

static void *spin(void *self)
{
	while (!atomic_load((atomic_bool *)self))
		;
	return NULL;
}

/*
 * Values much larger than the socket's buffer, on CPUs that are busy: whatever part of them is
 * sent at once, we wait for the server only where it owes us an answer.
 */
static void large_values(const char *url)
{
	struct arena a = { 0 };
	char *text;
	atomic_bool is_over = false;
	uint64_t random = 1;
	pthread_t busy[THREADS];
	struct store *s;

	if (!str_starts(str_of(url), STR("postgres")))
		return;
	text = arena_alloc(&a, LARGE_BYTES);
	for (size_t i = 0; i < LARGE_BYTES; i++)
		text[i] = (char)('0' + ((random = random * 6364136223846793005u + 1) >> 33) % 64);
	s = open_store(arena_printf(&a, "%s&tcp_user_timeout=10000", url), false);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&busy[i], NULL, spin, &is_over), 0);
	for (int i = 0; i < LARGE_ROUNDS; i++) {
		struct read_run *run = make_runs(&a, "large", 2 * i, 2);
		struct put_result out[2];
		struct buf back = { 0 };

		run[0].arrays = run[1].arrays = (struct str){ text, LARGE_BYTES - (size_t)i };
		must(store_put(s, run, 2, STR(""), &a, out, e));
		must(store_run_arrays(s, out[1].id, &back, e));
		assert_true(str_eq(buf_str(&back), run[1].arrays));
		buf_release(&back);
	}
	atomic_store(&is_over, true);
	for (int i = 0; i < THREADS; i++)
		pthread_join(busy[i], NULL);
	store_close(s);
	arena_release(&a);
}

static void test_large_values(void **state)
{
	(void)state;
	with_stores(large_values);
}

static void test_server_hangs(void **state)
{
	(void)state;
	with_stores(server_hangs);
}

static void test_connections_cut(void **state)
{
	(void)state;
	with_stores(connections_cut);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_at_once),
		cmocka_unit_test(test_made_by_several),
		cmocka_unit_test(test_removed_meanwhile),
		cmocka_unit_test(test_opened_meanwhile),
		cmocka_unit_test(test_connections_cut),
		cmocka_unit_test(test_server_hangs),
		cmocka_unit_test(test_large_values),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
