/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.h - finding and reading a tokenizer's files.
 *
 * In a directory, and in a repository on the hub, the first existing one of:
 *
 *   tokenizer.json
 *   tekken.json
 *   tiktoken.model, or the only *.tiktoken
 *   tokenizer.model, or the only *.model
 *   vocab.json, with merges.txt next to it
 *
 * With mode "mistral" these come before all of them: tekken.json, and else the tokenizer.model.v*
 * of the highest version.
 *
 * From the hub only that file is downloaded, with the files that readers look for next to it
 * (tokenizer_config.json, special_tokens_map.json, added_tokens.json, chat_template.jinja); never
 * weights. Cached files cost one request, or none at a commit.
 */
#pragma once
#include "core/base/err.h"
#include "core/base/str.h"
#include "core/json/read.h"
#include "input/encode/model.h"
#include "input/token/tokenizer.h"

/*
 * Finds the file of a tokenizer by its name: a file, a directory, or a model on the hub, through
 * its cache. The error lists where it looked. opts is not NULL.
 */
int find_tokenizer(const char *name, const struct tokenizer_load_opts *opts, struct buf *path,
	struct err *e);

/* Reads a tokenizer's file. Errors name the path. m is zeroed before and released by the caller. */
int model_load(struct model *m, const char *path, struct err *e);
/* Reads the files next to it; missing ones are fine. */
int model_load_config(struct model *m, const char *path, struct err *e);
/*
 * A JSON object in the directory of path, parsed into a; *out is NULL when there is no such file.
 * emptied: a member to read as an empty object, as it may be a megabyte; or NULL.
 */
int model_read_beside(struct arena *a, const char *path, const char *name, const char *emptied,
	struct json_value **out, struct err *e);
