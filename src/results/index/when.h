/* SPDX-License-Identifier: Apache-2.0 */
/*
 * when.h - moments, which columns keep as seconds since 1970 in UTC, as people write them.
 */
#pragma once
#include <stdbool.h>

#include "core/base/str.h"

#define WHEN_BYTES 40

/* Whether a column's numbers are moments. */
bool when_is_column(struct str name);
/*
 * "2026-11-22", "2026-11-22T08:41", "2026-11-22 08:41:40.712+01:00": UTC where no offset is told, a
 * date alone is its first moment. False: it is none of them.
 */
bool when_read(struct str text, double *seconds);
/* "2026-11-22T08:41:40.712Z", milliseconds where there are any; false: no calendar has it. */
bool when_write(double seconds, char out[static WHEN_BYTES]);
