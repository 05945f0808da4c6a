/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/chat.h - which chat template the texts of a dataset are put through.
 */
#pragma once
#include "run/remote.h"
#include "run/serve_opts.h"
#include "token/tokenizer.h"

/*
 * The first that there is of: what the options say; the template beside the tokenizer's
 * file, when it is known; the server's own. server is NULL where none may be asked, model
 * is what requests call the model, tokenizer may be NULL. A model without a template
 * gives CHAT_NONE. ERR_RUN when there is a template and no source knows it: nothing is sent
 * as if it had none. Texts are in the arena.
 */
int run_chat_find(const struct serve_opts *o, const struct serve_derived *d,
		  const struct tokenizer *tokenizer, const struct remote *server,
		  const char *model, struct arena *a, struct chat_wrap *out, struct err *e);

/* What the user should know before texts are sent that way: lines, empty when nothing. */
void run_chat_notes(const struct chat_wrap *w, bool is_chat, const struct tokenizer *tokenizer,
		    struct buf *out);

/*
 * How whole messages become text: a user text with or without a system text by a known
 * wrap, all else by an engine (by) or by the server (token/remote.h) when there is one to ask.
 * self is a struct run_renderer; it stands in dataset_env.render.
 */
struct run_renderer {
	const struct chat_wrap *wrap;
	const struct tokenizer *tokenizer;
	const struct remote *server; /* NULL: may not be asked */
	const char *model;
	struct str kwargs;
	int (*by)(void *self, struct str messages, struct str tools, struct buf *text,
		  struct err *e); /* NULL: no engine */
	void *by_self;
};
int run_render(void *self, struct str messages, struct str tools, struct buf *text, struct err *e);
