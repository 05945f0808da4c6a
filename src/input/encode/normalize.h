/* SPDX-License-Identifier: Apache-2.0 */
/*
 * normalize.h - changes to a text before it is cut into words.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/base/err.h"
#include "core/base/limits.h"
#include "core/base/str.h"
#include "input/encode/regex.h"

/* ---- Character maps ---- */

/*
 * Sentencepiece's precompiled character map.
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

#define CHARSMAP_KEY_BYTES_MAX 256 /* a trie from a file may have circles; keys have some 20 */

struct charsmap;

/* From the raw bytes, which are copied. NULL with ERR_PARSE. */
struct charsmap *charsmap_new(struct str bytes, struct err *e);
void charsmap_free(struct charsmap *c); /* accepts NULL */

/*
 * The longest, or the shortest, key at the front of text: its length in bytes and its replacement
 * in *to (borrowed from c, may be empty). 0: there is none.
 */
size_t charsmap_longest(const struct charsmap *c, struct str text, struct str *to);
size_t charsmap_shortest(const struct charsmap *c, struct str text, struct str *to);

/*
 * Skips a run of ASCII from `at` on in which no character begins a key of the text. Stops before an
 * ASCII byte followed by a byte from 0x80 on.
 */
size_t charsmap_skip(const struct charsmap *c, struct str text, size_t at);

/* ---- What sentencepiece does ---- */

/*
 * How sentencepiece prepares a text for its .model files.
 *
 * From left to right, the longest of the model's own symbols at a place is copied, else the longest
 * key of the character map is replaced, else a character is copied; then blanks become U+2581. With
 * is_trimmed, blanks at both ends are removed and runs of them become one; with has_prefix, a text
 * that is not blank gets one in front.
 *
 * As a stage it is written {"type": "SentencePiece", "precompiled_charsmap": base64 or null,
 * "add_dummy_prefix": bool, "remove_extra_whitespaces": bool, "symbols": ["text", ...]}; no
 * tokenizer.json has it, only our reader of .model files makes it.
 */

struct json_value;
struct spm_normalizer;

/* Read-only once made. NULL with ERR_PARSE. */
struct spm_normalizer *spm_normalizer_new(const struct json_value *v, struct err *e);
void spm_normalizer_free(struct spm_normalizer *s); /* accepts NULL */

/* Valid UTF-8 in and, in out (emptied first), out. */
struct str spm_normalize(const struct spm_normalizer *s, struct str text, struct buf *out);

/* ---- Normalizers ---- */

/*
 * Changes to a text before it is cut into words.
 *
 * A list of steps, each over the whole text. A step returns an unchanged text itself; else it
 * writes into one of two buffers in turn.
 */

enum normalize_kind {
	NORMALIZE_NFC,
	NORMALIZE_NFD,
	NORMALIZE_NFKC,
	NORMALIZE_NFKD,
	NORMALIZE_PREPEND,       /* content before text that is not empty */
	NORMALIZE_REPLACE,       /* content for each literal */
	NORMALIZE_REPLACE_REGEX, /* content for each match of regex */
	NORMALIZE_STRIP,         /* white space at the ends, where from_left, from_right */
	NORMALIZE_LOWER_ASCII,   /* both together: each character by itself */
	NORMALIZE_LOWER_OTHERS,
	NORMALIZE_STRIP_MARKS,      /* of category M */
	NORMALIZE_STRIP_NONSPACING, /* of category Mn */
	NORMALIZE_CLEAN,         /* hidden characters dropped, white space is U+0020 */
	NORMALIZE_SPACE_HAN,     /* U+0020 around each ideograph */
	NORMALIZE_NMT,           /* controls dropped, some characters are U+0020 */
	NORMALIZE_SPELL_BYTES,   /* each byte as encode/chars.h spells it */
	NORMALIZE_MAP,           /* clusters and characters by a character map */
	NORMALIZE_SENTENCEPIECE, /* all that a .model file asks for */
};

/*
 * The size limit of what a tokenizer's stages may make of a text of this many bytes:
 * TOKEN_GROWTH_MAX times as much, but at most TOKEN_GROWN_BYTES_MAX or four times as much, plus
 * TOKEN_GROWTH_FREE_BYTES.
 */
size_t normalize_growth(size_t text_bytes);

/* What normalize() could not do. */
enum normalize_failure {
	NORMALIZE_DONE,
	NORMALIZE_GREW,    /* a step would have made too much of the text */
	NORMALIZE_NO_LIBRARY, /* a normal form needs utf8proc, which cannot be loaded */
	NORMALIZE_GAVE_UP, /* a regular expression needed too much time or memory */
};

struct form_cache;

struct normalize_step {
	enum normalize_kind kind;
	bool from_left, from_right;
	struct str literal, content; /* borrowed from the model's arena; literal is not empty */
	struct regex *regex;
	struct charsmap *map;
	struct spm_normalizer *spm;
};

/* Read-only once filled. */
struct normalizer {
	struct normalize_step step[TOKEN_STAGES_MAX];
	size_t count;
};
void normalizer_release(struct normalizer *n); /* accepts a zeroed one */

/* What one thread needs. A zeroed one is ready. */
struct normalize_work {
	size_t bytes_max;  /* of any text on the way; 0: by normalize_growth of each */
	size_t bytes_left; /* that all steps may still write, with bytes_max */
	size_t text_bytes; /* of the whole text */
	struct buf text[2];
	struct buf stand_in;
	struct regex_work *regex;
	int32_t *code; /* code points on their way to a normal form */
	size_t code_cap;
	struct form_cache *cache;
	enum normalize_failure failure;
	size_t failed_step; /* index, where there is a failure */
};
void normalize_work_release(struct normalize_work *w);

/*
 * The following texts are pieces of one of this many bytes: its limits hold for all together.
 * Without this call, normalize() takes its text for the whole.
 */
void normalize_begin(struct normalize_work *w, size_t text_bytes);

/*
 * Valid UTF-8 in and out. Returns text itself, or a part of it, when nothing else changes, else a
 * text in w. After a failure (w->failure) an empty text.
 */
struct str normalize(const struct normalizer *n, struct normalize_work *w, struct str text);

/* Says which step failed and why; returns -1. Only after a failure. */
int normalize_explain(const struct normalizer *n, const struct normalize_work *w, struct err *e);

/*
 * A single step with a character map. Returns text, or a part of it, when nothing changes; else
 * out, which is reset first. Past out's limit, out->is_over is set and the result is worthless.
 */
struct str normalize_map(const struct charsmap *map, struct str text, struct buf *out);
