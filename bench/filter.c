/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter.c - what one look at the dashboard costs: a filter, the first page of 25 columns, 30
 * facets and 6 statistics, over 1,000, 100,000 and a million runs of 200 columns; one user and
 * eight at once; the index's memory, its snapshot; and the same questions put to databases
 * of rows. See kit/runs.h for runs and questions.
 */
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/mem.h"
#include "core/stats/stats.h"
#include "kit/figures.h"
#include "kit/runs.h"

#define QUESTIONS 60
#define WIDE_TIMES 5
#define USERS 8
#define THINK_US 1000000
#define ROWS_USUAL 100000
#define SQL_SECONDS 60.0
#define SQL_SECONDS_QUICK 2.0

struct scene {
	struct bench *bench;
	const char *name; /* of the number of runs */
	size_t n_rows;
	bool is_again; /* a later repeat: databases are asked once */
	struct runs *runs;
	struct index *index;
	struct question five[QUESTIONS], time, all;
};

static double since_ms(int64_t start_ns)
{
	return (double)(clock_mono_ns() - start_ns) / 1e6;
}

static int ask(struct index *x, const struct question *q, double *ms, size_t *total, struct err *e)
{
	int64_t start = clock_mono_ns();
	struct index_view *v = index_view(x);
	struct arena a = { 0 };
	struct answer answer;
	int rc = index_query(v, &q->query, &a, &answer, e);

	*ms = since_ms(start);
	*total = answer.total;
	arena_release(&a);
	index_view_release(v);
	return rc;
}

static double at(const double *sorted, size_t n, double p)
{
	return stats_percentile(sorted, n, p);
}

/* ---- one user ---- */

static int ask_all(struct scene *s, struct err *e)
{
	double ms[QUESTIONS], share[QUESTIONS];
	size_t total;

	for (size_t i = 0; i < QUESTIONS; i++) {
		if (ask(s->index, &s->five[i], &ms[i], &total, e) < 0)
			return -1;
		share[i] = 100 * (double)total / (double)s->n_rows;
	}
	stats_sort(ms, QUESTIONS);
	stats_sort(share, QUESTIONS);
	bench_add(s->bench, "%", at(share, QUESTIONS, 50), "%s: runs chosen, median", s->name);
	bench_add(s->bench, "%", share[QUESTIONS - 1], "%s: runs chosen, most", s->name);
	bench_add(s->bench, "ms", at(ms, QUESTIONS, 50), "%s: five conditions p50", s->name);
	figure_most(bench_add(s->bench, "ms", at(ms, QUESTIONS, 95), "%s: five conditions p95",
			      s->name), 50);
	bench_add(s->bench, "ms", ms[QUESTIONS - 1], "%s: five conditions max", s->name);
	return 0;
}

/* The median of some askings that nothing is kept of. */
static int ask_cold(struct scene *s, const struct question *q, double *median, struct err *e)
{
	double ms[WIDE_TIMES];
	size_t total;
	int rc = 0;

	index_set_cache(s->index, 0);
	for (size_t i = 0; i < WIDE_TIMES && rc == 0; i++)
		rc = ask(s->index, q, &ms[i], &total, e);
	index_set_cache(s->index, INDEX_CACHE_BYTES);
	stats_sort(ms, rc == 0 ? WIDE_TIMES : 0);
	*median = stats_median(ms, rc == 0 ? WIDE_TIMES : 0);
	return rc;
}

static int ask_wide(struct scene *s, struct err *e)
{
	double ms;
	size_t total;

	if (ask_cold(s, &s->time, &ms, e) < 0)
		return -1;
	bench_add(s->bench, "ms", ms, "%s: by time, 40 %% of runs", s->name);
	if (ask_cold(s, &s->all, &ms, e) < 0)
		return -1;
	figure_most(bench_add(s->bench, "ms", ms, "%s: no condition, cold", s->name), 100);
	if (ask(s->index, &s->all, &ms, &total, e) < 0 ||
	    ask(s->index, &s->all, &ms, &total, e) < 0)
		return -1;
	figure_most(bench_add(s->bench, "ms", ms, "%s: no condition, again", s->name), 5);
	return 0;
}

/* ---- eight at once ---- */

struct user {
	struct scene *scene;
	size_t number, n;
	useconds_t think_us;
	double seconds;
	double *ms;
	size_t cap;
	struct err err;
};

static void *use(void *arg)
{
	struct user *u = arg;
	int64_t start = clock_mono_ns();
	size_t at_question = u->number * 7, total;

	if (u->think_us)
		usleep(u->think_us / USERS * (useconds_t)u->number);
	while (since_ms(start) < u->seconds * 1000 && u->n < u->cap) {
		const struct question *q = &u->scene->five[at_question++ % QUESTIONS];

		if (ask(u->scene->index, q, &u->ms[u->n++], &total, &u->err) < 0)
			break;
		if (u->think_us)
			usleep(u->think_us);
	}
	return NULL;
}

static int use_together(struct scene *s, useconds_t think_us, double seconds, double *p95,
			double *rate, struct err *e)
{
	struct user user[USERS];
	pthread_t thread[USERS];
	double *ms = NULL;
	size_t n = 0;
	int rc = 0;

	for (size_t i = 0; i < USERS; i++) {
		user[i] = (struct user){ .scene = s, .number = i, .think_us = think_us,
					 .seconds = seconds, .cap = 100000 };
		user[i].ms = mem_array(user[i].cap, sizeof(*ms));
	}
	for (size_t i = 0; i < USERS; i++)
		if (pthread_create(&thread[i], NULL, use, &user[i]) != 0)
			return err_set(e, ERR_RUN, "no thread for user %zu", i);
	for (size_t i = 0; i < USERS; i++) {
		pthread_join(thread[i], NULL);
		ms = mem_grow(ms, n + user[i].n, sizeof(*ms));
		memcpy(ms + n, user[i].ms, user[i].n * sizeof(*ms));
		n += user[i].n;
		free(user[i].ms);
		if (user[i].err.code) {
			*e = user[i].err;
			rc = -1;
		}
	}
	stats_sort(ms, n);
	*p95 = at(ms, n, 95);
	*rate = (double)n / seconds;
	free(ms);
	return rc;
}

static int ask_together(struct scene *s, struct err *e)
{
	double seconds = s->bench->is_quick ? 0.5 : 5, p95, rate;

	index_set_cache(s->index, 0);
	if (use_together(s, 0, seconds, &p95, &rate, e) < 0)
		return -1;
	figure_most(bench_add(s->bench, "ms", p95, "%s: %d users, closed loop, p95", s->name, USERS),
		    150);
	bench_add(s->bench, "1/s", rate, "%s: %d users, closed loop, answers", s->name, USERS);
	if (use_together(s, s->bench->is_quick ? THINK_US / 10 : THINK_US, seconds * 2, &p95, &rate,
			 e) < 0)
		return -1;
	figure_most(bench_add(s->bench, "ms", p95, "%s: %d users, 1 s to think, p95", s->name, USERS),
		    50);
	index_set_cache(s->index, INDEX_CACHE_BYTES);
	return 0;
}

/* ---- memory and snapshot ---- */

static int build(struct scene *s, struct err *e)
{
	int64_t rss, spent = 0;

	malloc_trim(0);
	rss = bench_rss();
	runs_begin(s->runs);
	s->index = index_make();
	while (s->runs->made < s->n_rows) {
		size_t left = s->n_rows - s->runs->made;
		size_t n = left < RUNS_BATCH ? left : RUNS_BATCH;
		int64_t start;

		runs_more(s->runs, n);
		start = clock_mono_ns();
		if (index_add_all(s->index, s->runs->row, n, e) < 0)
			return -1;
		spent += clock_mono_ns() - start;
	}
	arena_release(&s->runs->batch);
	malloc_trim(0);
	rss = bench_rss() - rss;
	bench_add(s->bench, "1/s", (double)s->n_rows / ((double)spent / 1e9), "%s: runs added", s->name);
	bench_add(s->bench, "MB", (double)index_bytes(s->index) / 1e6, "%s: index_bytes", s->name);
	if (s->n_rows >= 1000000)
		figure_most(bench_add(s->bench, "MB", (double)rss / 1e6, "%s: resident", s->name), 350);
	return 0;
}

static int snapshot(struct scene *s, struct err *e)
{
	char path[] = "/tmp/profllm-filter-XXXXXX";
	int fd = mkstemp(path);
	struct index *loaded = NULL;
	struct index_view *v;
	int64_t start = clock_mono_ns(), sequence;
	int rc;

	if (fd < 0)
		return err_set(e, ERR_IO, "no file in /tmp for the snapshot");
	close(fd);
	v = index_view(s->index);
	rc = index_save(v, path, 1, e);
	index_view_release(v);
	if (rc == 0) {
		bench_add(s->bench, "ms", since_ms(start), "%s: snapshot saved", s->name);
		start = clock_mono_ns();
		rc = index_load(path, &loaded, &sequence, e) == 1 ? 0 : -1;
	}
	if (rc == 0)
		figure_most(bench_add(s->bench, "ms", since_ms(start), "%s: snapshot loaded", s->name),
			    2000);
	unlink(path);
	/* What follows is asked of the mapped one. */
	if (rc == 0) {
		index_free(s->index);
		s->index = loaded;
	}
	return rc;
}

/* ---- databases of rows, for comparison ---- */

static int ask_rows(struct scene *s, const char *what, const char *url, struct err *e)
{
	double seconds = s->bench->is_quick ? SQL_SECONDS_QUICK : SQL_SECONDS;
	struct rows_result r;
	int rc = rows_measure(url, s->n_rows, QUESTIONS, seconds, &r, e);

	if (rc == 0) {
		stats_sort(r.ms, r.n);
		bench_add(s->bench, "1/s", (double)s->n_rows / r.load_s, "%s, %s: runs added", s->name,
			  what);
		bench_add(s->bench, "s", r.index_s, "%s, %s: 12 indexes", s->name, what);
		bench_add(s->bench, "", (double)r.n, "%s, %s: answers of %d in %g s", s->name, what,
			  QUESTIONS, seconds);
		bench_add(s->bench, "ms", at(r.ms, r.n, 50), "%s, %s: five conditions p50", s->name,
			  what);
		bench_add(s->bench, "ms", at(r.ms, r.n, 95), "%s, %s: five conditions p95", s->name,
			  what);
		if (!isnan(r.time_ms))
			bench_add(s->bench, "ms", r.time_ms, "%s, %s: by time, 40 %% of runs", s->name,
				  what);
		if (!isnan(r.all_ms))
			bench_add(s->bench, "ms", r.all_ms, "%s, %s: no condition", s->name, what);
	}
	free(r.ms);
	return rc;
}

static void make_questions(struct scene *s)
{
	for (size_t i = 0; i < QUESTIONS; i++)
		question_make(s->runs, QUESTION_FIVE, i, s->n_rows, &s->five[i]);
	question_make(s->runs, QUESTION_TIME, 3, s->n_rows, &s->time);
	question_make(s->runs, QUESTION_ALL, 0, s->n_rows, &s->all);
}

static int measure(struct scene *s, struct err *e)
{
	int rc = build(s, e);

	if (rc == 0) {
		make_questions(s);
		rc = ask_all(s, e);
	}
	if (rc == 0)
		rc = ask_wide(s, e);
	if (rc == 0)
		rc = ask_together(s, e);
	if (rc == 0)
		rc = snapshot(s, e);
	index_free(s->index);
	runs_release(s->runs);
	/* A million rows take a database minutes. */
	if (rc == 0 && !s->is_again && (s->n_rows <= ROWS_USUAL || s->bench->is_long)) {
		const char *url = getenv("PROFLLM_TEST_POSTGRES");

		rc = ask_rows(s, "SQLite", NULL, e);
		if (rc == 0 && url && *url)
			rc = ask_rows(s, "PostgreSQL", url, e);
	}
	return rc;
}

int main(int argc, char **argv)
{
	static const struct { const char *name; size_t n; } size[] = {
		{ "1 k", 1000 }, { "100 k", 100000 }, { "1 M", 1000000 },
	};
	struct bench b;
	struct scene *s = mem_alloc(sizeof(*s));
	struct runs *runs = mem_alloc(sizeof(*runs));
	struct err e = { 0 };
	cpu_set_t all;
	bool is_known = sched_getaffinity(0, sizeof(all), &all) == 0;
	int rc = bench_begin(&b, "filter", argc, argv, &e);

	/* Not one client on one core: a server that has all of them. */
	if (is_known)
		(void)sched_setaffinity(0, sizeof(all), &all);
	(void)bench_set_realtime(false);
	b.is_realtime = false;
	for (unsigned i = 0; rc == 0 && i < b.repeats; i++)
		for (size_t k = 0; rc == 0 && k < (b.is_quick ? 1 : 3); k++) {
			*s = (struct scene){ .bench = &b, .name = size[k].name, .n_rows = size[k].n,
					     .is_again = i > 0, .runs = runs };
			rc = measure(s, &e);
		}
	free(runs);
	free(s);
	return bench_end(&b, &e);
}
