/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lines.h - an incremental reader for bodies with one document per line (NDJSON).
 *
 * Lines end with LF or CRLF; blank ones are skipped. A line that is complete in one slice is
 * returned in place; only a partial one is kept, in carry. The last line may lack its end:
 * lines_finish.
 */
#pragma once
#include <stdbool.h>

#include "core/base/str.h"

struct lines {
	struct buf carry; /* the line begun but not ended; memory kept between lines */
	bool is_lent;     /* carry holds the line handed out by the last call */
};

/*
 * 1: a line without its end, borrowed until the next call; 0: *in is used up; -1: a line is longer
 * than SSE_EVENT_BYTES_MAX. Consumes from *in.
 */
int lines_next(struct lines *l, struct str *in, struct str *line);
/* 1: an unterminated last line; 0: none. */
int lines_finish(struct lines *l, struct str *line);
/* For the next response; memory is kept up to STREAM_KEPT_BYTES_MAX. */
void lines_reset(struct lines *l);
void lines_release(struct lines *l);
