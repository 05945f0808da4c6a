/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web/pulse.c - whether the store answers, and what /metrics tells of it.
 *
 * One thread asks, every other second and when this process has changed a job. A store that hangs
 * keeps that thread alone: who wants to know is told what is known, and for how long nothing more
 * was heard.
 */
#include "base/clock.h"
#include "base/mem.h"
#include "web/state.h"

#define LOOK_NS 2000000000
#define SILENT_NS 5000000000 /* then it does not answer */

struct web_pulse {
	pthread_mutex_t lock;
	struct job_count jobs[STORE_JOB_COUNTS_MAX];
	size_t n_jobs;
	int64_t answered_ns;         /* CLOCK_MONOTONIC */
	bool has_failed;
	/* The asking thread's own. */
	int64_t looked_ns;
	uint64_t changes;
};

void pulse_open(struct web *w)
{
	w->pulse = mem_alloc(sizeof(*w->pulse));
	pthread_mutex_init(&w->pulse->lock, NULL);
	w->pulse->answered_ns = clock_mono_ns();
}

void pulse_close(struct web *w)
{
	if (!w->pulse)
		return;
	pthread_mutex_destroy(&w->pulse->lock);
	free(w->pulse);
	w->pulse = NULL;
}

void pulse_look(struct web *w)
{
	struct web_pulse *p = w->pulse;
	struct job_count jobs[STORE_JOB_COUNTS_MAX];
	uint64_t changes = atomic_load(&w->job_changes);
	int64_t now = clock_mono_ns();
	size_t n = 0;
	int rc;

	if (p->looked_ns && changes == p->changes && now - p->looked_ns < LOOK_NS)
		return;
	p->looked_ns = now;
	p->changes = changes;
	rc = store_job_counts(w->store, jobs, &n, NULL);
	pthread_mutex_lock(&p->lock);
	p->has_failed = rc < 0;
	if (rc == 0) {
		p->answered_ns = clock_mono_ns();
		p->n_jobs = n;
		memcpy(p->jobs, jobs, sizeof(jobs));
	}
	pthread_mutex_unlock(&p->lock);
}

void pulse_get(struct web *w, struct pulse *out)
{
	struct web_pulse *p = w->pulse;
	int64_t silent;

	pthread_mutex_lock(&p->lock);
	silent = clock_mono_ns() - p->answered_ns;
	out->is_there = !p->has_failed && silent < SILENT_NS;
	out->silent_s = (double)silent / 1e9;
	out->n_jobs = p->n_jobs;
	memcpy(out->jobs, p->jobs, sizeof(p->jobs));
	pthread_mutex_unlock(&p->lock);
}
