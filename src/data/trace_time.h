/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data/trace_time.h - dates with a time of day as traces write them. Private to data/.
 *
 * YYYY-MM-DD, a blank or T, HH:MM:SS, none to nine digits of a second, and Z or an offset such as
 * +00:00 where there is one; without it the clock is taken as UTC.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* Nanoseconds since 1970; false: no such time. */
bool trace_time_read(struct str text, int64_t *ns);
