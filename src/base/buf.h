/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf.h - growing bytes with a limit.
 *
 * A zeroed struct buf is a valid empty one with the default limit
 * (BUF_BYTES_MAX). Crossing the limit drops the addition and sets is_over,
 * which stays set until buf_reset: writers check it once, at the end.
 * data[len] is always NUL when data is not NULL.
 *
 * A meter is a budget of bytes that several bufs share, from any threads. A buf that has one counts
 * its capacity there, from METER_FREE_BYTES on, so that small texts can always be written. Where
 * the budget does not suffice the addition is dropped as beyond the limit, and is_short is set.
 */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

#define METER_FREE_BYTES 65536

struct meter { _Atomic int64_t used; int64_t max; };

struct buf {
	char *data;
	size_t len, cap;
	size_t limit;        /* bytes; 0 means BUF_BYTES_MAX */
	struct meter *meter; /* borrowed; NULL: none */
	bool is_over, is_short;
};

void buf_release(struct buf *b);
void buf_reset(struct buf *b);         /* empty, memory kept */
char *buf_take(struct buf *b);         /* hands the bytes out; caller frees; "" when empty */
void buf_fit(struct buf *b);           /* gives memory back that holds no bytes */
int buf_reserve(struct buf *b, size_t extra); /* -1 (and is_over) when past the limit */
void buf_add(struct buf *b, const void *src, size_t n);
void buf_add_char(struct buf *b, char c);
void buf_cut(struct buf *b, size_t n); /* drops the first n bytes */
__attribute__((format(printf, 2, 3)))
void buf_printf(struct buf *b, const char *fmt, ...);

static inline void buf_add_str(struct buf *b, struct str s) { buf_add(b, s.p, s.n); }
static inline void buf_add_text(struct buf *b, const char *t) { buf_add(b, t, strlen(t)); }
static inline struct str buf_str(const struct buf *b) { return (struct str){ b->data, b->len }; }
