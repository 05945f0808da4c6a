/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report/release.h - the report and result of an older release, where they differ from today's
 * (--compat v0.11; serve spec section 9). Private to report/.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

/* Keys that the release's result has not; NULL-terminated. */
const char *const *release_missing_keys(bool is_pooling);
/* Takes out of the report from byte at on what the release did not print, and renames. */
void release_terminal(struct buf *out, size_t at);
