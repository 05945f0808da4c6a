/* SPDX-License-Identifier: Apache-2.0 */
/* data/conversation_gen.h - form (b) of conversations (data/conversation.h). Private to data/. */
#pragma once
#include "data/conversation.h"
#include "data/distribution.h"

/*
 * Makes up what object, which f holds, asks for. Tokens of messages are not counted yet. ERR_RUN
 * with file, line and key; ERR_IO: a text file.
 */
int conversations_generate(const struct json_file *f, struct json_slice object,
			   const struct conversations_opts *o, struct conversations *out,
			   struct err *e);
/* Appends a message to the last conversation. */
struct message *conversations_add_message(struct conversations *c, enum speaker role);
struct conversation *conversations_add(struct conversations *c, struct str id);
/* Sets the tokens of all messages. ERR_LIMIT. */
int conversations_count(struct conversations *c, const struct tokenizer *t, unsigned threads,
			struct err *e);
