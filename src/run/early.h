/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/early.h - a point before there is a server. What is wrong with its endpoint, tokenizer,
 * dataset, plan and record is known before a model has been loaded for minutes.
 *
 * The stages are those of run_point, up to the plan; nothing is sent and no file is written. What
 * only the server can give has a stand-in: its model, the tokenizer of a model whose files are
 * not here, a chat template that is not known. `waits` says so, and mistakes that may come of
 * the stand-in are none.
 *
 * Where nothing waits, the requests are the run's own: run_hooks.early hands them over together
 * with the generator as they left it, so the run sends the bytes it would have made itself.
 */
#pragma once
#include "run/point.h"

/* What a mistake is about. */
enum point_part { PART_OPTIONS, PART_TOKENIZER, PART_DATASET, PART_RECORD };

struct point_early {
	enum point_part part;      /* after a failure: what failed */
	struct err waits;          /* what the server is needed for; ERR_NONE: nothing */
	bool has_tokenizer;        /* it was loaded, and is no stand-in */
	size_t n_requests;
	const char *request_id_prefix; /* which the requests were made with */
	/* For run_point alone. */
	bool is_whole;             /* the requests are the run's */
	struct point point;
	struct compat_rng rng;     /* after the dataset has drawn from it */
	struct buf notes;          /* warnings about tokenizer and dataset, a line each */
	struct arena arena;        /* for the caller: options that the point borrows */
};

/*
 * *out is zeroed but for its arena. Of hooks progress, bytes and cancel count; warnings are kept
 * for the run. 0, or -1 with e: ERR_NET is the world's failure, ERR_CANCELLED the caller's wish,
 * anything else a mistake.
 */
int run_point_early(const struct serve_opts *opts, const struct serve_derived *derived,
		    const struct run_hooks *hooks, struct point_early *out, struct err *e);
void point_early_release(struct point_early *p);
