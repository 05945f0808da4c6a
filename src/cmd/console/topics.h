/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topics.h - what `profllm help WORD` explains besides commands: the kinds of errors (ERR_KINDS),
 * the categories of failed experiments and the reasons of a verdict. docs/errors.md is printed
 * from the same table.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "core/base/str.h"

/* Appends the page about word to out; '-', ' ' and '_' are the same. False: unknown word. */
bool topic_show(struct str word, struct buf *out);
/* The topic whose name is nearest to word; NULL: none is near. */
const char *topic_nearest(struct str word);
/* Appends all names, each with what it means in short. */
void topic_list(struct buf *out);
/* Appends docs/errors.md. */
void topic_markdown(struct buf *out);
