/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dotted.h - values below a JSON option: --extra-body.a.b 3.
 *
 * A value is JSON, else a number with a suffix, else text; see opt.h.
 */
#pragma once
#include "core/json/read.h"

/*
 * Puts value at path ("a.b", "list+") below *root (NULL: a new object). name is
 * the option's, for messages. A key that held another value gives a note.
 */
int opt_dotted_put(struct json_value **root, const char *name, struct str path, struct str value,
		   struct buf *notes, struct arena *a, struct err *e);
/* The tree as Python's json.dumps would spell it. */
const char *opt_dotted_text(const struct json_value *root, struct arena *a);
/*
 * 25.6k is 25600, 1K is 1024, 3 is 3; suffixes k, m, g, t. No fractions before capital ones.
 * What int() takes, too.
 */
bool opt_human_int(struct str s, int64_t *out);
