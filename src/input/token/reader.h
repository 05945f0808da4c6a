/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader.h - one reader for each kind of tokenizer file.
 *
 * A reader fills the vocabulary, the model, the stages (stages_load) and the
 * added tokens of a zeroed struct model from a file's bytes, which stay mapped
 * only during the call. Its errors continue a sentence that starts with the path.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/read.h"
#include "input/encode/model.h"

struct model_reader {
	const char *name; /* for people: "tokenizer.json" */
	bool (*is_mine)(struct str path, struct str bytes);
	int (*read)(struct model *m, const char *path, struct str bytes, struct err *e);
};

/* In the order they are asked; the last one, tokenizer.json, takes everything. */
extern const struct model_reader reader_tiktoken, reader_tekken, reader_sentencepiece,
	reader_merges, reader_json;

/* A string's text; into scratch only when it holds escapes. */
struct str reader_json_text(struct str raw, struct buf *scratch);

/* The BPE model of a vocabulary and merges that are written as in a tokenizer.json. */
int reader_json_bpe(struct model *m, struct json_slice vocab, struct json_slice merges,
	struct err *e);

/*
 * The stages around the model, from their JSON.
 *
 * Every stage is null or an object with a "type"; "Sequence" nests. An unsupported type is an
 * error, as ignoring a stage would give other ids. Readers of other file formats write the same
 * JSON, so that there is only one parser.
 *
 * Parses the four into m and keeps copies of the texts in m->stage_text. Called before the
 * vocabulary, so that errors in a stage are reported before a large model is read.
 */
int stages_load(struct model *m, const struct stage_texts *text, struct err *e);

/* The stages of a byte-level model whose files do not hold them. */
struct byte_stages {
	struct str pattern;  /* cuts words, as a regular expression; empty: ByteLevel's own */
	bool is_nfc;
	bool has_prefix_space; /* ByteLevel's add_prefix_space */
	struct str bos, eos; /* tokens around a sequence; empty: none */
	uint32_t bos_id, eos_id;
};

/* Writes them in the form of a tokenizer.json and loads them. */
int byte_stages_load(struct model *m, const struct byte_stages *s, struct err *e);
