/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token/find.h - where a tokenizer's files are.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "token/tokenizer.h"

/*
 * The path of the tokenizer.json that a name stands for: a file, a directory, or
 * a model in the local Hugging Face cache. ERR_IO lists where it looked.
 */
int find_tokenizer(const char *name, const struct tokenizer_load_opts *opts, struct buf *path,
	struct err *e);
