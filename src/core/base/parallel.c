/* SPDX-License-Identifier: Apache-2.0 */
/* parallel.c - see parallel.h. */
#include "core/base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "core/base/limits.h"

#define RUNS_PER_THREAD 16 /* small enough that all threads end at about the same time */
#define RUN_ITEMS_MAX 256

struct parallel_job {
	bool (*one)(void *self, size_t item, unsigned worker);
	void *self;
	size_t n, run;
	_Atomic size_t next, failed; /* failed: the first item that is; n: none */
	_Atomic unsigned workers;
};

unsigned parallel_threads(void)
{
	cpu_set_t set;
	int n = 1;

	if (sched_getaffinity(0, sizeof set, &set) == 0)
		n = CPU_COUNT(&set);
	return n < THREADS_MAX ? (unsigned)n : THREADS_MAX;
}

static void note_failure(struct parallel_job *j, size_t item)
{
	size_t first = atomic_load(&j->failed);

	while (item < first && !atomic_compare_exchange_weak(&j->failed, &first, item))
		;
}

static void *take_runs(void *arg)
{
	struct parallel_job *j = arg;
	unsigned worker = atomic_fetch_add(&j->workers, 1);
	size_t from, to;

	while ((from = atomic_fetch_add(&j->next, j->run)) < atomic_load(&j->failed)) {
		to = j->n - from < j->run ? j->n : from + j->run;
		for (size_t i = from; i < to; i++) {
			if (!j->one(j->self, i, worker)) {
				note_failure(j, i);
				break;
			}
		}
	}
	return NULL;
}

size_t parallel_for(unsigned threads, size_t n,
		    bool (*one)(void *self, size_t item, unsigned worker), void *self)
{
	struct parallel_job j = { .one = one, .self = self, .n = n, .failed = n };
	pthread_t thread[THREADS_MAX];
	unsigned started = 0;

	if (threads == 0)
		threads = parallel_threads();
	if (threads > THREADS_MAX)
		threads = THREADS_MAX;
	if (threads > n)
		threads = (unsigned)n;
	j.run = threads ? n / threads / RUNS_PER_THREAD : 0;
	j.run = j.run < 1 ? 1 : j.run > RUN_ITEMS_MAX ? RUN_ITEMS_MAX : j.run;
	/* One that cannot be started is not missed: the others do its share. */
	while (started + 1 < threads &&
	       pthread_create(thread + started, NULL, take_runs, &j) == 0)
		started++;
	take_runs(&j);
	while (started)
		pthread_join(thread[--started], NULL);
	return j.failed;
}
