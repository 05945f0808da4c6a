/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/profile.h - the server's profiler and its prefix cache, from outside the load:
 * /start_profile, /stop_profile (serve spec 2.7), /reset_prefix_cache. Private to run/.
 */
#pragma once
#include "run/stage.h"

struct profile;

/*
 * --profile: starts the profiler now. With --profile-batch-threshold, or a window of time
 * (profile_from_s, profile_for_s), only a watcher is made, which profile_watch sets going: a thread
 * that reads the counters of the load or the clock every few milliseconds, and starts and
 * stops the profiler. NULL without both options.
 */
struct profile *profile_begin(struct stage *s, const struct load_progress *progress);
/* The clock of the main run has started. Accepts NULL. */
void profile_watch(struct profile *p);
/* On the thread of the hooks: what the watcher has done meanwhile is said. Accepts NULL. */
void profile_tick(struct profile *p);
/* Load is over; point->is_profiled is set. Accepts NULL; frees. */
void profile_end(struct profile *p);

/* --reset-prefix-cache; warns once when a server has no such path. */
void profile_reset_cache(struct stage *s);
