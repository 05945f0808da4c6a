/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experiment/check.h - whether an experiment would work, before hours are spent on it.
 *
 * One row per thing that experiments fail of: the command, GPUs, memory for weights and KV cache,
 * ports, disk, model, tokenizer, dataset, where the document is to go, and at last a smoke load of
 * CHECK_SMOKE_PROMPTS requests against the server as configured. A row is a fact about
 * this machine now; the configuration itself has been judged when struct experiment exists.
 *
 * Nothing is kept: the smoke load writes into a scratch folder that is removed.
 */
#pragma once
#include "experiment/experiment.h"

enum check_verdict { CHECK_PASS, CHECK_NOTE, CHECK_FAIL, CHECK_SKIP };

struct check_row {
	const char *what;        /* "GPU memory" */
	enum check_verdict verdict;
	const char *found;       /* one sentence with the figures */
};

#define CHECK_ROWS_MAX 64
#define CHECK_SMOKE_PROMPTS 8

struct check {
	struct check_row row[CHECK_ROWS_MAX];
	size_t n;
	struct arena arena;
};

struct check_opts {
	const struct experiment_hooks *hooks; /* of the smoke load; may be NULL */
	const char *upload_url, *token_file;  /* NULL: not asked for */
	bool is_smoke;
};

/* Fills out, whatever is found. No row is missing because one before it failed. */
void check_experiment(const struct experiment *x, const struct check_opts *o, struct check *out);
void check_release(struct check *c);
bool check_passed(const struct check *c); /* no CHECK_FAIL */
/* A table with the name of the experiment above, one row a line. */
void check_table(const struct experiment *x, const struct check *c, struct buf *out);
