/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token/normalize.h - what is done to text before it is cut into words.
 */
#pragma once
#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"

struct normalizer {
	bool is_nfc;
};
void normalizer_release(struct normalizer *n); /* accepts a zeroed one */

/* What one thread needs. */
struct normalize_work {
	struct buf text[2];
};
void normalize_work_release(struct normalize_work *w);

/* Valid UTF-8 in and out. Returns text itself when nothing changes, else a text in w. */
struct str normalize(const struct normalizer *n, struct normalize_work *w, struct str text);
