/* SPDX-License-Identifier: Apache-2.0 */
/* experiment/plan_time.h - how long members may take; of plan.c alone. */
#pragma once
#include "experiment/suite.h"

struct plan_time {
	double start_s;          /* of the servers; NAN: not known; 0: none is started for it */
	double load_s;           /* NAN: as fast as the server can */
	double total_s;          /* NAN: not known */
	char basis[160];         /* what it is made of */
};

struct plan_times;
/* Reads the members' documents; one of another configuration says nothing about a member. */
struct plan_times *plan_times_new(const struct suite *s);
/* is_reusing: it goes on with the servers of the member before it. */
struct plan_time plan_times_of(const struct plan_times *t, size_t place, bool is_reusing);
void plan_times_free(struct plan_times *t);

/* Seconds that load takes by its own schedule; NAN: it has none. */
double plan_load_s(const struct experiment *x);
/* Servers that are started for it unless it reuses those of another. */
unsigned plan_starts(const struct experiment *x);
