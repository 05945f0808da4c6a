/* SPDX-License-Identifier: Apache-2.0 */
/*
 * constrain/rewrite.h - a pattern of ECMA-262 or Python in PCRE2's spelling.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "constrain/pattern.h"

/* ERR_USAGE: what the dialect does not have. Mistakes of structure are left for PCRE2 to find. */
int rewrite_pattern(struct str text, enum pattern_dialect dialect, struct buf *out, struct err *e);
