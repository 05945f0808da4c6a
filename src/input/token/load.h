/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.h - where a tokenizer's files are, and what they say.
 *
 * In a directory, and in a repository on the hub, the first of these that is there:
 *
 *   tokenizer.json
 *   tekken.json
 *   tiktoken.model, or the only *.tiktoken
 *   tokenizer.model, or the only *.model
 *   vocab.json, with merges.txt next to it
 *
 * With mode "mistral" these come before all of them: tekken.json, and else the
 * tokenizer.model.v* of the highest version.
 *
 * From the hub only that file is downloaded and what readers look for next to it
 * (tokenizer_config.json, special_tokens_map.json, added_tokens.json, chat_template.jinja);
 * never weights. What is in the cache already costs one request, or none at a commit.
 */
#pragma once
#include "core/base/err.h"
#include "core/base/str.h"
#include "core/json/read.h"
#include "input/encode/model.h"
#include "input/token/tokenizer.h"

/*
 * The path of the file that a name stands for: a file, a directory, or a model on the
 * hub, by way of its cache. The error says where it looked. opts is not NULL.
 */
int find_tokenizer(const char *name, const struct tokenizer_load_opts *opts, struct buf *path,
	struct err *e);

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
