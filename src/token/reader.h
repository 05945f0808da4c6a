/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token/reader.h - one reader for each kind of tokenizer file.
 *
 * A reader fills the vocabulary, the model, the stages (stages_load) and the
 * added tokens of a zeroed struct model from a file's bytes, which stay mapped
 * only during the call. Its errors continue a sentence that starts with the path.
 */
#pragma once
#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"
#include "token/model.h"

struct reader {
	const char *name; /* for people: "tokenizer.json" */
	bool (*is_mine)(struct str path, struct str bytes);
	int (*read)(struct model *m, const char *path, struct str bytes, struct err *e);
};

/* In the order they are asked; the last one, tokenizer.json, takes everything. */
extern const struct reader reader_tiktoken, reader_tekken, reader_sentencepiece, reader_merges,
	reader_json;

/* ---- parts of reader_json, by model ---- */

/* Members of "model" in a tokenizer.json, still as text. Absent ones are null. */
struct model_sections {
	struct json_slice type, vocab, merges, unk_token, fuse_unk, ignore_merges, byte_fallback,
		dropout, prefix, suffix, unk_id, max_chars;
};
int reader_json_bpe(struct model *m, const struct model_sections *s, struct err *e);
int reader_json_unigram(struct model *m, const struct model_sections *s, struct err *e);
int reader_json_wordpiece(struct model *m, const struct model_sections *s, struct err *e);
int reader_json_wordlevel(struct model *m, const struct model_sections *s, struct err *e);
/* {"token": id, ...} into m->vocab, spelled as m->is_byte_level says, indexed. */
int reader_json_vocab(struct model *m, const struct model_sections *s, struct err *e);
/* A string's text; into scratch only when it holds escapes. */
struct str reader_json_text(struct str raw, struct buf *scratch);
