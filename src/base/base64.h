/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base64.h - bytes as text (RFC 4648, section 4), padded, without line breaks.
 */
#pragma once
#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"

/*
 * Appends what text stands for. False, out unchanged: a length that is no multiple
 * of four, a character outside the alphabet, or bits beyond the last byte.
 */
bool base64_decode(struct str text, struct buf *out);

/* Appends 4 characters for every 3 bytes begun. */
void base64_encode(struct str bytes, struct buf *out);
