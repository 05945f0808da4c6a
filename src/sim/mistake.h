/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mistake.h - answers that break a constraint by a little: a member that is missing, a number as
 * text, a letter too many. Each is one change of an answer that was right.
 */
#pragma once
#include <stdint.h>

#include "base/buf.h"
#include "constrain/constrain.h"

/*
 * Changes answer, which keeps to c, so that it does not; the same seed makes the same mistake.
 * Returns what was done ("number as text"), NULL where nothing was found that breaks it: the
 * answer is then as it was.
 */
const char *mistake_make(const struct constraint *c, uint64_t seed, struct buf *answer);
