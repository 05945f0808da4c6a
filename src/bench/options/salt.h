/* SPDX-License-Identifier: Apache-2.0 */
/*
 * salt.h - prompts that are not in a prefix cache, and prompts that are.
 *
 * --prompt-salt: a few drawn tokens before every prompt, so that nothing an earlier run left in a
 * prefix cache helps. Texts begin with SALT_WORDS short words, lists of ids with as many ids, chats
 * with the words at the beginning of their first text. All salts of a run have the same number of
 * bytes, so that a plan that sends a sample again can replace the first one's salt.
 *
 * SALT_FRESH is for points of a sweep, repeats and members of a suite: like SALT_RUN, but texts and
 * lists of a requested length keep it (their last tokens are dropped), and a workload whose prompts
 * cannot carry a salt has none. One salt for the whole point preserves what its prompts have in
 * common, so conversations and prefix datasets hit the cache within a point as before.
 *
 * Salts are drawn from a key: the text after the colon of the option, else a random one, so that
 * the same command sends other prompts each time. The result has the key, which repeats the run.
 *
 * Options that repeat requests and warm the cache up (data/repeat.h, --warmup-pass), online and
 * offline: a warm-up pass sends each sample once, in the dataset's order, before anything is
 * measured: the same prompt ("same", so that every measured prompt is cached), or one that begins
 * with words or ids of its own ("other", so that the engine is warm but its prefix cache has no
 * hits).
 */
#pragma once
#include "client/plan/workload.h"
#include "core/base/limits.h"
#include "core/base/str.h"
#include "input/data/repeat.h"
#include "input/token/tokenizer.h"
#include "out/report/report.h"

#define SALT_WORDS 8
#define SALT_FRESH_WORDS 4    /* fewer tokens than a block of a KV cache, so that none is shared */
#define SALT_KEY_BYTES 64     /* the longest key */
#define SALT_READY UINT32_MAX /* the rounds of what is sent before the first run */
#define SALT_WARMUP (UINT32_MAX - 1)

enum salt_kind { SALT_NONE, SALT_RUN, SALT_REQUEST, SALT_FRESH };

struct salt {
	enum salt_kind kind;
	const char *key;          /* the caller's */
	uint32_t id_low, id_high; /* ids are drawn from these: all spelled with as many digits */
	const struct tokenizer *tokenizer;
	int words;                /* SALT_WORDS, or SALT_FRESH_WORDS */
	bool keeps_length;        /* as many tokens as before, where a prompt is long enough */
	const char *option;       /* named in errors; --prompt-salt after salt_init */
};

/*
 * The option's value: "none", "run", "request", "fresh", or one of the last three with ":KEY". key:
 * what follows the colon, NULL: none. ERR_USAGE names what was expected.
 */
int salt_parse(const char *text, enum salt_kind *kind, const char **key, struct err *e);
const char *salt_kind_name(enum salt_kind kind);
/* A new key: random. */
void salt_draw_key(char key[SALT_KEY_BYTES + 1]);
void salt_init(struct salt *s, enum salt_kind kind, const char *key, const struct tokenizer *t);
/* Whether every prompt of w can have one; else -1 with salt_workload's ERR_RUN. */
int salt_check(const struct salt *s, const struct workload *w, struct err *e);
/*
 * Adds the salts of a whole workload, and corrects prompt_len by counting. ERR_RUN names the
 * dataset and the request that has no text to salt; ERR_IO as workload_keep.
 */
int salt_workload(const struct salt *s, struct workload *w, struct err *e);
/*
 * sent is a copy of that salted sample: replaces its salt by that of the entry that sends it again,
 * or of the round (of --num-runs, from 0) in which it is sent. Its texts are then in text (given
 * empty), which must live as long. Thread-safe.
 */
void salt_again(const struct salt *s, uint32_t sample, uint32_t round, uint32_t entry,
		struct sample *sent, struct buf *text);

/* ---- repeated requests and the warm-up pass ---- */

extern const char *const reuse_passes[]; /* "none", "same", "other", NULL */

/* type: the verb's options; set: its struct dataset_opts; heading: the rows' group. */
#define REUSE_ROWS(type, set, heading)                                                     \
	OPT(type, set.repeat_count, "repeat-count", .group = (heading), .flags = OPT_OURS,    \
	    .arg = "N", .min = 1, .max = REQUESTS_MAX,                                        \
	    .help = "send each request of the dataset N times, unchanged"),                   \
	OPT(type, set.repeat_order, "repeat-order", .group = (heading), .flags = OPT_OURS,    \
	    .arg = "ORDER", .choices = repeat_orders,                                         \
	    .help = "order of repeated requests: random (unless given), tile (the whole "     \
		    "list again and again), interleave (all copies of one request in a "      \
		    "row), sorted (by prompt length)"),                                       \
	OPT(type, set.warmup_pass, "warmup-pass", .group = (heading), .flags = OPT_OURS,      \
	    .arg = "WHICH", .choices = reuse_passes,                                          \
	    .help = "send each request once before the measurement: same (the same prompts, " \
		    "which a prefix cache then has) or other (prompts that share nothing "    \
		    "with the measured ones)")

bool reuse_has_pass(const struct dataset_opts *o);
/* The requests of the warm-up pass; 0 without one. */
size_t reuse_pass_count(const struct workload *w, const struct dataset_opts *o);
/*
 * Makes those requests, in an empty workload whose samples share w's texts and must be released
 * before w. The same seed gives the same ones. ERR_RUN: a prompt that cannot have text before it.
 */
int reuse_pass(const struct workload *w, const struct dataset_opts *o, uint64_t seed,
	       const struct tokenizer *t, struct workload *out, struct err *e);
/* The facts about repetition for the report; texts are borrowed from o and w. */
void reuse_facts(const struct workload *w, const struct dataset_opts *o, struct report_reuse *out);
