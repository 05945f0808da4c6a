/* SPDX-License-Identifier: Apache-2.0 */
/*
 * constrain/invent_scalar.h - texts and numbers that keep to several schemas at once; for invent.c.
 */
#pragma once
#include "base/buf.h"
#include "constrain/schema.h"
#include "constrain/syntax.h"
#include "json/write.h"

struct ask {
	const struct schema_node *node[64]; /* all apply to the same value */
	size_t count;
};

/* Each appends; false: none was found. */
bool scalar_text(struct dice *d, const struct ask *a, size_t bytes, struct buf *out);
bool scalar_number(struct dice *d, const struct ask *a, bool is_integer, struct buf *out);
bool scalar_pattern(struct dice *d, struct str pattern, size_t bytes, struct buf *out);
const char *scalar_word(struct dice *d);
