/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token/stages.h - the stages around the model, from their JSON.
 *
 * Every stage is null or an object with a "type"; "Sequence" nests. A type that
 * is not read is an error, for a stage left out would give other ids. Readers
 * of other file formats write the same JSON, so that there is one way in.
 */
#pragma once
#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"
#include "json/read.h"

struct model;

/* The four stages as JSON text; an empty one is null. */
struct stage_texts {
	struct str normalizer, pre_tokenizer, post_processor, decoder;
};

/*
 * Parses the four into m and keeps copies of the texts in m->stage_text. Before the
 * vocabulary: what is wrong with a stage is said before a large model is read.
 */
int stages_load(struct model *m, const struct stage_texts *text, struct err *e);

/* One file each; root is the parsed stage, never NULL. Errors name the stage and its type. */
int stages_normalizer(struct model *m, const struct json_value *root, struct err *e);
int stages_pre_tokenizer(struct model *m, const struct json_value *root, struct err *e);
int stages_post_processor(struct model *m, const struct json_value *root, struct err *e);
int stages_decoder(struct model *m, const struct json_value *root, struct err *e);

/* What they share. */
bool stage_is(const struct json_value *v, const char *type);
/* -1: this type of stage ("normalizer") is not read. */
int stage_refuse(const struct json_value *v, const char *stage, struct err *e);
/* The list of a Sequence under its key ("normalizers"). */
int stage_members(const struct json_value *v, const char *key, const char *stage,
	const struct json_value **list, struct err *e);
