/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h - everything in one tokenizer's files, ready to run.
 *
 * Filled by a reader (token/reader.h), the stages around the model and the files next to it
 * (token/load.h); read-only afterwards.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/json/read.h"
#include "input/encode/bpe.h"
#include "input/encode/decoder.h"
#include "input/encode/normalize.h"
#include "input/encode/pretok.h"
#include "input/encode/unigram.h"
#include "input/encode/vocab.h"

/* ---- added tokens ---- */

/*
 * Added tokens are found in the text before anything else. Two sets: those matched in the text as
 * given, and those ("normalized") matched in each piece between them after normalizing. Within a
 * set the leftmost match counts, of several the longest; single_word, lstrip and rstrip are applied
 * to it.
 */
struct added_token {
	struct str content; /* owned by the loader (its arena) */
	uint32_t id;
	bool is_single_word, is_lstrip, is_rstrip, is_normalized, is_special;
	bool is_silent; /* has its id and content, but no text becomes it */
};

struct added_node { /* of a trie over bytes */
	uint32_t child, sibling; /* 0: none */
	uint32_t token;          /* ADDED_NONE: none ends here */
	uint8_t byte;
};
#define ADDED_NONE UINT32_MAX
struct added_set {
	struct added_node *node;
	size_t count, cap;
	uint32_t root[256]; /* node for a first byte, 0 for none */
	int only_first;     /* the one first byte of all tokens, or -1 */
	const struct added_token *token;
	bool is_borrowed;   /* node belongs to another owner */
};

/* A walk over one text; start with { .text = ... }. */
struct added_walk {
	struct str text;
	size_t from; /* where the search continues */
	size_t done; /* what was handed out */
};

/*
 * The next token in the text: true, *before the text between the one before and
 * this one (may be empty), *id the token. false at the end: *before is the rest.
 */
bool added_next(const struct added_set *s, struct added_walk *w, struct str *before, uint32_t *id);

/* ---- the model ---- */

/* The four stages as JSON text; an empty one is null. */
struct stage_texts {
	struct str normalizer, pre_tokenizer, post_processor, decoder;
};

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
	bool has_runs;      /* long texts are cut into parts first (tokenizer.c) */
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

void model_release(struct model *m);

/*
 * Added tokens, after the vocabulary. model_add_list reads the "added_tokens" of a tokenizer.json,
 * whose ids follow from the order; model_add uses the given id (token.content is copied). An old
 * token of the same content is replaced. model_index_added, once, after the last.
 */
int model_add_list(struct model *m, struct json_slice list, struct err *e);
int model_add(struct model *m, struct added_token token, struct err *e);
int model_index_added(struct model *m, struct err *e);

/* The added token with this content, or NULL. */
const struct added_token *model_added(const struct model *m, struct str content);
/* An added token or vocabulary entry by content; VOCAB_NONE when there is none. */
uint32_t model_find(const struct model *m, struct str content);
