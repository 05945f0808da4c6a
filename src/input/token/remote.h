/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote.h - tokenizing by a server that serves the model (vLLM's /tokenize and /detokenize), for
 * models without local tokenizer files.
 *
 * Two uses. token_server_render returns the chat template's rendering of a message. A struct
 * token_remote serves tokenizer.h's calls: every text is a request, a bounded number of answers is
 * kept by content, batches keep many requests in flight. Thread-safe.
 *
 * Information that a server does not give is missing: no id counts as special, and unless
 * /tokenizer_info lists the added tokens they count as vocabulary.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/str.h"
#include "input/encode/ids.h"
#include "input/fetch/fetch.h"

/* How to reach the server; borrowed. */
struct token_server {
	const char *base_url;    /* as libcurl takes it; "/tokenize" is appended */
	const char *model;       /* named in every request */
	struct fetch_opts fetch;
};

/*
 * The ids of one user message through the chat template, generation prompt included
 * and no other special tokens. kwargs: a JSON object of template variables; empty: none.
 * ERR_NET that names the URL and what it answered.
 */
int token_server_render(const struct token_server *s, struct str content, struct str kwargs,
	struct ids *out, struct err *e);
/* The same for whole messages, a JSON list. tools: a JSON list; empty: none. */
int token_server_render_messages(const struct token_server *s, struct str messages,
	struct str tools, struct str kwargs, struct ids *out, struct err *e);

struct token_remote;

/*
 * Asks the server a few dozen small questions: that it tokenizes and detokenizes, how
 * many ids there are. s is copied, except what fetch.cancel points to. NULL with
 * ERR_NET.
 */
struct token_remote *token_remote_new(const struct token_server *s, struct err *e);
void token_remote_free(struct token_remote *r);

/* See tokenizer.h; -1 with e if the server does not answer. */
int token_remote_encode(struct token_remote *r, struct str text, bool add_special,
	struct ids *out, struct err *e);
int token_remote_decode(struct token_remote *r, const uint32_t *ids, size_t n, struct buf *out,
	struct err *e);
/* Ids of n texts into ids (appended) or their numbers into count; one of them is NULL. */
int token_remote_batch(struct token_remote *r, const struct str *text, size_t n,
	bool add_special, struct ids *ids, size_t *count, struct err *e);

size_t token_remote_vocab_size(const struct token_remote *r);
size_t token_remote_id_limit(const struct token_remote *r);
size_t token_remote_special_per_sequence(const struct token_remote *r);
