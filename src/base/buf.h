/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf.h - growing bytes with a limit.
 *
 * A zeroed struct buf is a valid empty one with the default limit
 * (BUF_BYTES_MAX). Crossing the limit drops the addition and sets is_over,
 * which stays set until buf_reset: writers check it once, at the end.
 * data[len] is always NUL when data is not NULL.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct buf {
	char *data;
	size_t len, cap;
	size_t limit; /* bytes; 0 means BUF_BYTES_MAX */
	bool is_over;
};

void buf_release(struct buf *b);
void buf_reset(struct buf *b);         /* empty, memory kept */
char *buf_take(struct buf *b);         /* hands the bytes out; caller frees; "" when empty */
int buf_reserve(struct buf *b, size_t extra); /* -1 (and is_over) when past the limit */
void buf_add(struct buf *b, const void *src, size_t n);
void buf_add_char(struct buf *b, char c);
void buf_cut(struct buf *b, size_t n); /* drops the first n bytes */
__attribute__((format(printf, 2, 3)))
void buf_printf(struct buf *b, const char *fmt, ...);

static inline void buf_add_str(struct buf *b, struct str s) { buf_add(b, s.p, s.n); }
static inline void buf_add_text(struct buf *b, const char *t) { buf_add(b, t, strlen(t)); }
static inline struct str buf_str(const struct buf *b) { return (struct str){ b->data, b->len }; }
