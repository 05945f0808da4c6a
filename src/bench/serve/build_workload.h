/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build_workload.h - requests from a dataset: chat templates, mixes, checks and notes around
 * data/dataset.h, for a server's load and for offline runs. Also prints a workload and its plan for
 * people (--dry-run) and programs (--dump-workload).
 */
#pragma once
#include "bench/options/serve_opts.h"
#include "bench/serve/remote.h"
#include "client/plan/plan.h"
#include "client/plan/workload.h"
#include "core/base/str.h"
#include "input/chat/chat.h"
#include "input/data/dataset.h"
#include "input/token/tokenizer.h"

struct run_draw {
	struct dataset_env env;   /* all but chat and component, which are set here */
	bool has_no_tokenizer;    /* --skip-tokenizer-init */
	/* Finds the chat template for texts; called only for sets that use one. */
	int (*find_chat)(void *self, struct arena *a, struct chat_wrap *out, struct err *e);
	void (*warn)(void *self, const char *text);
	void *self;               /* of both */

	struct chat_wrap chat;     /* what was found, from before the set is built */
	const char *chat_template; /* where it comes from, "skipped", or NULL: no text is templated */
	bool is_building;          /* the set's own check has passed */
	struct arena *arena;       /* the workload's */
};

/* Checks that the options which --dataset-name requires are given. ERR_RUN. */
int run_draw_check(const struct dataset *d, const struct dataset_opts *o, bool has_no_tokenizer,
		   struct err *e);
/* Fills w. ERR_RUN, ERR_IO, as the set says. Its notes go to warn, line by line. */
int run_draw(struct run_draw *draw, const struct dataset *d, const struct dataset_opts *o,
	     struct compat_rng *rng, struct workload *w, struct err *e);

/* ---- chat templates ---- */

/*
 * Finds the chat template: the options', else the one next to the tokenizer's file, else the
 * server's. server is NULL where none may be asked, model is the name in requests, tokenizer may be
 * NULL. A model without a template gives CHAT_NONE. ERR_RUN when there is a template and no source
 * has it: texts are never sent without theirs. Texts are in the arena.
 */
int run_chat_find(const struct serve_opts *o, const struct serve_derived *d,
		  const struct tokenizer *tokenizer, const struct remote *server,
		  const char *model, struct arena *a, struct chat_wrap *out, struct err *e);

/* Appends what the user should know before texts are sent with this template: lines, or nothing. */
void run_chat_notes(const struct chat_wrap *w, bool is_chat, const struct tokenizer *tokenizer,
		    struct buf *out);

/*
 * Turns messages into text: a user text with or without a system text by a known wrap, all else by
 * an engine (by) or by the server (token/remote.h) if it may be asked. self is a struct
 * run_renderer; used as dataset_env.render.
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

/* ---- for people and programs ---- */

/*
 * JSON lines in plan order: index, request_id, due_s (the shortest form that
 * reads back equal), prompt, prompt_len, output_len; then messages, media,
 * overrides (members of its own body, its priority among them), headers, constraint, expected
 * and lora (index) where a sample has them. id_prefix as in prepare_request_id.
 */
void dump_workload(const struct workload *w, const struct plan *plan, const char *id_prefix,
		   struct buf *out);

/* A short table: requests, tokens, lengths and arrivals. */
void dump_summary(const struct workload *w, const struct plan *plan, struct buf *out);
