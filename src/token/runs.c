/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runs.c - blocks, and runs of blanks and of other characters within them.
 */
#include "token/runs.h"

#include "base/str.h"
#include "token/chars.h"

/* Python's isspace: White_Space, and four separators among the controls. */
static bool is_blank(uint32_t cp)
{
	return chars_is_space(cp) || (cp >= 0x1c && cp <= 0x1f);
}

bool runs_next(struct runs *r, struct str *part)
{
	struct str text = r->rest;
	size_t at = 0, run = 0, n;
	bool was_blank = false;

	while (at < text.n && r->block < RUNS_BLOCK_CHARS) {
		bool is_now = is_blank(utf8_decode((struct str){ text.p + at, text.n - at }, &n));

		run = is_now == was_blank ? run + 1 : 1;
		was_blank = is_now;
		if (run > RUNS_CHARS_MAX)
			break;
		at += n;
		r->block++;
	}
	if (r->block == RUNS_BLOCK_CHARS)
		r->block = 0;
	*part = (struct str){ text.p, at };
	r->rest = (struct str){ text.p + at, text.n - at };
	return at > 0;
}
