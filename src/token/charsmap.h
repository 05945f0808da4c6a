/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token/charsmap.h - sentencepiece's precompiled character map.
 *
 * Little-endian: the byte size of a trie (u32), the trie, and a pool of
 * NUL-terminated replacements. The trie is a double array of u32 units over
 * UTF-8 bytes; the value of a key is where its replacement begins in the pool.
 * A unit's bits: 0..7 label, 8 a key ends here, 9 and 10..31 offset to the
 * children (bit 9: in steps of 256); a value has bit 31 set and 31 bits.
 *
 * Read-only once made; made only when no walk can leave the trie or the pool,
 * and when every replacement is valid UTF-8.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

#define CHARSMAP_KEY_BYTES_MAX 256 /* a trie from a file may have circles; keys have some 20 */

struct charsmap;

/* From the raw bytes, which are copied. NULL with ERR_PARSE. */
struct charsmap *charsmap_new(struct str bytes, struct err *e);
void charsmap_free(struct charsmap *c); /* accepts NULL */

/*
 * The longest, or the shortest, key at the front of text: its length in bytes
 * and in *to (borrowed from c, may be empty) what replaces it. 0: there is none.
 */
size_t charsmap_longest(const struct charsmap *c, struct str text, struct str *to);
size_t charsmap_shortest(const struct charsmap *c, struct str text, struct str *to);

/*
 * Past a run of ASCII at at, each of which begins no key that the text goes on with.
 * Stops in front of an ASCII byte followed by a byte from 0x80 on.
 */
size_t charsmap_skip(const struct charsmap *c, struct str text, size_t at);
