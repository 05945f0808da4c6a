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

/* Valid UTF-8 in and out. Returns text itself when nothing changes, else a text in *scratch. */
struct str normalize(const struct normalizer *n, struct str text, struct buf *scratch);
