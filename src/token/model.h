/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token/model.h - everything one tokenizer.json says, ready to run.
 *
 * Filled by load.c (the file and its vocabulary), stages.c (the stages around
 * the model) and config.c (the files beside it); read-only afterwards.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "json/read.h"
#include "token/added.h"
#include "token/bpe.h"
#include "token/normalize.h"
#include "token/pretok.h"
#include "token/vocab.h"

struct model {
	struct arena arena; /* texts of stages and added tokens */
	struct vocab vocab;
	struct bpe bpe;
	struct normalizer normalizer;
	struct pretok pretok;
	struct added_token *added;
	size_t added_count;
	struct map added_index;           /* content to index */
	struct added_set raw, normalized; /* added tokens by where they are looked for */
	struct ids before, after;         /* what the post-processor puts around a sequence */
	struct ids special;               /* declared special ids, in upstream's order */
	bool has_chat_template;
};

/* Reads a tokenizer.json. Errors name the path. m is zeroed before and released by the caller. */
int model_load(struct model *m, const char *path, struct err *e);
/* Reads what lies beside it; files that do not exist are fine. */
int model_load_config(struct model *m, const char *path, struct err *e);
void model_release(struct model *m);

/* Stages; the slice is the member's value (JSON null included). Errors name the stage and type. */
int stages_normalizer(struct model *m, struct json_slice v, struct err *e);
int stages_pre_tokenizer(struct model *m, struct json_slice v, struct err *e);
int stages_post_processor(struct model *m, struct json_slice v, struct err *e);
int stages_decoder(struct model *m, struct json_slice v, struct err *e);
int stages_added_tokens(struct model *m, struct json_slice v, struct err *e);

/* The added token with this content, or NULL. */
const struct added_token *model_added(const struct model *m, struct str content);
/* An added token or vocabulary entry by content; VOCAB_NONE when there is none. */
uint32_t model_find(const struct model *m, struct str content);
