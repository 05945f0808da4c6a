/* SPDX-License-Identifier: Apache-2.0 */
/* measure.c - facts that must be measured: cost of the clock, late wake-ups, receive stamps. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/timex.h>
#include <time.h>

#include "client/net/sock.h"
#include "core/base/clock.h"
#include "core/base/mem.h"
#include "core/stats/stats.h"
#include "host/doctor/doctor.h"

#define WAKEUP_NS 1000000     /* from one wake-up to the next */
#define WAKEUPS_MAX 10000     /* ten seconds of them */
#define CLOCK_BATCHES 20      /* the fastest of this many counts: others were interrupted */
#define CLOCK_READS 1000

static double clock_cost_ns(void)
{
	double least = INFINITY;

	for (int i = 0; i < CLOCK_BATCHES; i++) {
		int64_t from = clock_mono_ns();

		for (int k = 0; k < CLOCK_READS; k++)
			(void)clock_real_ns();
		least = fmin(least, (double)(clock_mono_ns() - from) / CLOCK_READS);
	}
	return least;
}

static void measure_wakeups(double seconds, struct doctor_machine *m)
{
	int64_t until = clock_mono_ns() + clock_span_ns(seconds), at = clock_mono_ns();
	double *late_us = mem_array(WAKEUPS_MAX, sizeof(*late_us));
	int slack = prctl(PR_GET_TIMERSLACK);
	size_t n = 0;

	(void)prctl(PR_SET_TIMERSLACK, 1ul); /* as the driver's loops do */
	while (n < WAKEUPS_MAX && at < until) {
		struct timespec t;
		int64_t now;

		at += WAKEUP_NS;
		t = (struct timespec){ at / 1000000000, at % 1000000000 };
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
			;
		now = clock_mono_ns();
		late_us[n++] = (double)(now - at) / 1000;
		if (now > at + WAKEUP_NS)
			at = now;
	}
	if (slack > 0)
		(void)prctl(PR_SET_TIMERSLACK, (unsigned long)slack);
	if (n) {
		stats_sort(late_us, n);
		m->late_us_p50 = stats_percentile(late_us, n, 50);
		m->late_us_p99 = stats_percentile(late_us, n, 99);
		m->late_us_max = late_us[n - 1];
	}
	m->n_wakeups = (double)n;
	free(late_us);
}

/* Reads the kernel's clock state (adjtimex(2)); changes nothing. */
static void read_time_state(struct doctor_machine *m)
{
	struct timex t = { 0 };
	int state = adjtimex(&t);

	m->has_time_state = state >= 0;
	m->is_synchronized = state >= 0 && state != TIME_ERROR && !(t.status & STA_UNSYNC);
	m->time_offset_ms = (double)t.offset / (t.status & STA_NANO ? 1e6 : 1e3);
	m->time_error_ms = (double)t.maxerror / 1e3;
}

void doctor_measure(const char *root, double seconds, struct doctor_machine *m)
{
	int stamped = sock_stamps_on(NULL);
	int64_t from;

	assert(seconds > 0);
	m->is_stamped = stamped >= 0;
	sock_close(stamped);
	read_time_state(m);
	m->clock_ns = clock_cost_ns();
	doctor_count(root, &m->before);
	from = clock_mono_ns();
	measure_wakeups(seconds, m);
	m->measured_s = (double)(clock_mono_ns() - from) / 1e9;
	doctor_count(root, &m->after);
}
