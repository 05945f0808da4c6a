/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token/model.h - everything one tokenizer's files say, ready to run.
 *
 * Filled by a reader (token/reader.h), the stages around the model
 * (token/stages.h) and config.c (the files beside it); read-only afterwards.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "json/read.h"
#include "token/added.h"
#include "token/bpe.h"
#include "token/decoder.h"
#include "token/normalize.h"
#include "token/pretok.h"
#include "token/stages.h"
#include "token/unigram.h"
#include "token/vocab.h"
#include "token/wordpiece.h"

enum model_kind {
	MODEL_BPE,
	MODEL_UNIGRAM,
	MODEL_WORDPIECE,
	MODEL_WORDLEVEL, /* a word is a token or the unknown one; uses wordpiece's unk */
};

#define MODEL_FORMAT_BYTES 24

struct model {
	char format[MODEL_FORMAT_BYTES]; /* the reader's name: "tokenizer.json" */
	struct str mapping; /* the bytes of a compiled file that tables point into; empty: none */
	struct arena arena; /* texts of stages and added tokens */
	enum model_kind kind;
	bool has_runs;      /* long texts are cut by token/runs.h first */
	bool is_byte_level; /* words are bytes, and the file spells tokens in the byte alphabet */
	struct vocab vocab;
	struct bpe bpe;
	struct unigram unigram;
	struct wordpiece wordpiece;
	struct stage_texts stage_text;
	struct normalizer normalizer;
	struct pretok pretok;
	struct decoder decoder;
	struct added_token *added;
	size_t added_count, added_cap;
	struct map added_index;           /* content to index */
	struct added_set raw, normalized; /* added tokens by where they are looked for */
	struct ids before, after;         /* what the post-processor puts around a sequence */
	struct ids special;               /* declared special ids, in upstream's order */
	bool has_chat_template;
};

/* Reads a tokenizer's file. Errors name the path. m is zeroed before and released by the caller. */
int model_load(struct model *m, const char *path, struct err *e);
/* Reads what lies beside it; files that do not exist are fine. */
int model_load_config(struct model *m, const char *path, struct err *e);
/*
 * A JSON object in the directory of path, parsed into a; *out is NULL when there is no such file.
 * emptied: a member that need not be read, for it may be a megabyte: an empty object; or NULL.
 */
int model_read_beside(struct arena *a, const char *path, const char *name, const char *emptied,
	struct json_value **out, struct err *e);
void model_release(struct model *m);

/*
 * Added tokens, after the vocabulary. model_add_list reads the "added_tokens" of a
 * tokenizer.json, whose ids follow from the order; model_add takes the id as it
 * stands (token.content is copied). An old token of the same content is replaced.
 * model_index_added, once, after the last.
 */
int model_add_list(struct model *m, struct json_slice list, struct err *e);
int model_add(struct model *m, struct added_token token, struct err *e);
int model_index_added(struct model *m, struct err *e);

/* The added token with this content, or NULL. */
const struct added_token *model_added(const struct model *m, struct str content);
/* An added token or vocabulary entry by content; VOCAB_NONE when there is none. */
uint32_t model_find(const struct model *m, struct str content);
