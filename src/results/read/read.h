/* SPDX-License-Identifier: Apache-2.0 */
/* read.h - a file of JSON as bytes or as a tree in the caller's arena. */
#pragma once
#include <stdbool.h>

#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/read.h"

#define COMMANDS_BYTES_MAX (64u << 10)

/* Whether these bytes are packed by gzip or zstd. */
bool result_is_packed(struct str bytes);
/* Replaces packed bytes by their content, in a: at most bytes_max. Other bytes are unchanged. */
int result_unpack(struct str *bytes, size_t bytes_max, struct arena *a, struct err *e);
/*
 * The JSON of a file, which may be packed. NULL with a sentence that names the file: it cannot be
 * read (ERR_IO), is larger than bytes_max (ERR_LIMIT) or is not JSON (ERR_PARSE).
 */
struct json_value *result_json(const char *path, size_t bytes_max, struct arena *a, struct err *e);
/*
 * Adds to the bytes of STEM.json the content of STEM.commands next to it, which vLLM's performance
 * suite writes (the commands, the GPU), and its name for the test, as members of the object;
 * without such a file, or if either is not an object, the bytes are unchanged.
 */
void result_add_commands(const char *path, struct buf *bytes);
