/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token/spm_normalize.h - how sentencepiece prepares a text for its .model files.
 *
 * From left to right, the longest of the model's own symbols at a place stays as
 * it is, else the longest key of the character map is replaced, else a character
 * is copied; then blanks become U+2581. With is_trimmed, blanks at both ends go and
 * runs of them become one; with has_prefix, a text that is not blank gets one in front.
 *
 * As a stage it is written {"type": "SentencePiece", "precompiled_charsmap": base64
 * or null, "add_dummy_prefix": bool, "remove_extra_whitespaces": bool, "symbols":
 * ["text", ...]}; no tokenizer.json has it, only our reader of .model files makes it.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"
#include "json/read.h"

struct spm_normalizer;

/* Read-only once made. NULL with ERR_PARSE. */
struct spm_normalizer *spm_normalizer_new(const struct json_value *v, struct err *e);
void spm_normalizer_free(struct spm_normalizer *s); /* accepts NULL */

/* Valid UTF-8 in and, in out (emptied first), out. */
struct str spm_normalize(const struct spm_normalizer *s, struct str text, struct buf *out);
