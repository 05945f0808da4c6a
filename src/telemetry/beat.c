/* SPDX-License-Identifier: Apache-2.0 */
/* beat.c - see beat.h. */
#include "telemetry/beat.h"

#include "base/clock.h"

static void set_next(struct beat *b)
{
	int64_t now_ns = clock_mono_ns();
	int64_t late = (now_ns > b->not_before_ns ? now_ns : b->not_before_ns) - b->next_ns;
	int64_t skipped = late > 0 ? late / b->interval_ns : 0;

	b->missed += (uint64_t)skipped;
	b->next_ns += b->interval_ns * (skipped + 1);
}

static void *beat_main(void *arg)
{
	struct beat *b = arg;

	pthread_mutex_lock(&b->lock);
	for (;;) {
		struct timespec at = { b->next_ns / 1000000000, b->next_ns % 1000000000 };

		while (!atomic_load(&b->is_over) && clock_mono_ns() < b->next_ns)
			pthread_cond_timedwait(&b->wake, &b->lock, &at);
		if (atomic_load(&b->is_over))
			break;
		pthread_mutex_unlock(&b->lock);
		b->fn(b->self);
		set_next(b);
		pthread_mutex_lock(&b->lock);
	}
	pthread_mutex_unlock(&b->lock);
	b->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

void beat_start(struct beat *b, int64_t interval_ns, void (*fn)(void *self), void *self)
{
	const struct sched_param usual = { 0 };
	pthread_condattr_t clock;
	pthread_attr_t attr;

	b->interval_ns = interval_ns;
	b->fn = fn;
	b->self = self;
	b->next_ns = clock_mono_ns() + interval_ns;
	pthread_mutex_init(&b->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&b->wake, &clock);
	pthread_condattr_destroy(&clock);
	pthread_attr_init(&attr);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_OTHER);
	pthread_attr_setschedparam(&attr, &usual);
	b->has_thread = pthread_create(&b->thread, &attr, beat_main, b) == 0;
	pthread_attr_destroy(&attr);
	if (b->has_thread)
		return;
	pthread_mutex_destroy(&b->lock);
	pthread_cond_destroy(&b->wake);
}

static bool join(struct beat *b)
{
	int64_t until_ns = clock_real_ns() + (int64_t)(b->patience_s * 1e9);
	struct timespec until = { until_ns / 1000000000, until_ns % 1000000000 };

	if (b->patience_s == 0)
		return pthread_join(b->thread, NULL) == 0;
	if (pthread_timedjoin_np(b->thread, NULL, &until) == 0)
		return true;
	pthread_detach(b->thread);
	return false;
}

bool beat_stop(struct beat *b)
{
	int64_t to_come;

	if (!b->has_thread)
		return true;
	pthread_mutex_lock(&b->lock);
	atomic_store(&b->is_over, true);
	pthread_cond_signal(&b->wake);
	pthread_mutex_unlock(&b->lock);
	if (!join(b))
		return false;
	/* Those that would only have come now were not missed. */
	to_come = (b->next_ns - clock_mono_ns()) / b->interval_ns;
	if (to_come > 0)
		b->missed -= (uint64_t)to_come;
	pthread_mutex_destroy(&b->lock);
	pthread_cond_destroy(&b->wake);
	b->has_thread = false;
	atomic_store(&b->is_over, false);
	return true;
}
