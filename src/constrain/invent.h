/* SPDX-License-Identifier: Apache-2.0 */
/*
 * constrain/invent.h - values that keep to a JSON Schema.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "constrain/schema.h"
#include "constrain/syntax.h"

/*
 * Appends the JSON text of one value, of about so many bytes where the schema leaves the choice.
 * It follows all keywords that say what a value has, and tries again for those that say what it
 * must not have; what it appends has been checked. ERR_RUN: none was found in INVENT_TRIES_MAX.
 */
#define INVENT_TRIES_MAX 64
int schema_invent(const struct schema *s, struct dice *d, size_t bytes, struct buf *out,
		  struct err *e);
