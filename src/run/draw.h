/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/draw.h - requests from a dataset, whoever sends them: chat templates, mixes, checks and
 * notes around data/dataset.h, the same for a server's load and for offline runs.
 */
#pragma once
#include "data/dataset.h"
#include "token/chat.h"

struct run_draw {
	struct dataset_env env;   /* all but chat and component, which are set here */
	bool has_no_tokenizer;    /* --skip-tokenizer-init */
	/* Which template texts go through; asked for templated sets alone. */
	int (*find_chat)(void *self, struct arena *a, struct chat_wrap *out, struct err *e);
	void (*warn)(void *self, const char *text);
	void *self;               /* of both */

	struct chat_wrap chat;     /* what was found, from before the set is built */
	const char *chat_template; /* where it comes from, "skipped", or NULL: no text is templated */
	bool is_building;          /* the set's own check has passed */
	struct arena *arena;       /* the workload's */
};

/* What --dataset-name needs beside it. ERR_RUN. */
int run_draw_check(const struct dataset *d, const struct dataset_opts *o, bool has_no_tokenizer,
		   struct err *e);
/* Fills w. ERR_RUN, ERR_IO, as the set says. Its notes go to warn, line by line. */
int run_draw(struct run_draw *draw, const struct dataset *d, const struct dataset_opts *o,
	     struct compat_rng *rng, struct workload *w, struct err *e);
