/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random.h - prompts of a chosen number of random tokens; datasets spec 3.1 to 3.6. Private to
 * data/: random, random-mm, random-rerank and prefix_repetition are made with it.
 *
 * A text of T tokens is found by decoding T ids and encoding the text, repeatedly: surplus ids are
 * cut off, missing ones are drawn (struct fitting). Its draws are upstream's, in upstream's order,
 * for any number of threads: fitting runs in parallel as long as no text is short; the rest of the
 * short ones (at most one in ten with known tokenizers) is done as if in the order of the requests.
 *
 * Order of draws from one generator: input lengths, output lengths, offsets (an array whose range
 * is one value draws nothing), the prefix, and then for each request the ids by which its text is
 * short followed by what the caller's `each` draws for it.
 *
 * Memory: the texts of RANDOM_LOT_TOKENS tokens at a time, or of one request.
 */
#pragma once
#include "core/base/str.h"
#include "core/rng/rng.h"
#include "input/data/build.h"
#include "input/data/dataset.h"
#include "input/encode/ids.h"

#define RANDOM_LOT_TOKENS (1u << 22)

/* Ids from 0 to the vocabulary's end, without... (spec 3.3) */
enum random_ids {
	RANDOM_IDS_UNDECLARED, /* the declared special ones: random, random-rerank */
	RANDOM_IDS_PLAIN,      /* added tokens marked special: random-mm */
};

struct random_gen {
	const struct dataset_env *env;
	struct pcg64 rng;    /* seeded with env->seed; the caller's draws belong in `each` */
	uint32_t *allowed;   /* ascending */
	size_t n_allowed, vocab;
	bool is_ids;         /* prompts are JSON lists of ids as drawn; nothing is fitted */
	bool is_sole;        /* `each` draws nothing: short texts are finished in parallel, too */
	int64_t mismatch;    /* tokens off the targets, summed over requests */
};

/* Checks --num-prompts of a generated set: 0 or -1. */
int random_check_count(const struct dataset_env *env, struct err *e);

/* env must outlive g; it must have a tokenizer. ERR_RUN: a vocabulary without any id. */
int random_gen_open(struct random_gen *g, const struct dataset_env *env, enum random_ids ids,
		    struct err *e);
void random_gen_release(struct random_gen *g);

/* Notes how far texts missed their lengths, summed up; 0: nothing to note. */
void random_note_mismatch(int64_t mismatch, struct workload *w);

/* Tokens of each request, and where its ids begin. */
struct random_lengths {
	size_t n;
	int64_t *input, *output, *offset;
};

/* Number of special tokens that a server adds to a prompt: none to ids. */
int64_t random_special(const struct random_gen *g);

/*
 * Spec 3.2: n of each around input_len (the special tokens a server adds taken off) and
 * output_len by o's range ratios. ERR_LIMIT: above LENGTH_TOKENS_MAX. *out is released by the
 * caller in either case.
 */
int random_lengths_draw(struct random_gen *g, const struct dataset_opts *o, int64_t input_len,
			int64_t output_len, size_t n, struct random_lengths *out, struct err *e);
void random_lengths_release(struct random_lengths *l);

/* Appends a prefix of about `length` ids (spec 3.4); 0 or less: none, nothing is drawn. */
int random_prefix_draw(struct random_gen *g, int64_t length, struct ids *prefix, struct err *e);

/* One request; the text is gone when `each` returns. */
struct random_prompt {
	size_t index;      /* into the lengths */
	struct str text;   /* PROMPT_JSON when g->is_ids */
	size_t tokens;
};

/*
 * Makes a prompt for each of the lengths: prefix, then a run of consecutive allowed ids from
 * offset + first + index on. `each` is called in their order from the calling thread, may
 * draw from g->rng, and stops everything with -1. Progress is reported, cancelling obeyed.
 */
typedef int random_each_fn(void *self, const struct random_prompt *p, struct err *e);
int random_prompts(struct random_gen *g, const struct ids *prefix, const struct random_lengths *l,
		   size_t first, random_each_fn *each, void *self, struct err *e);

/* ---- the loop of spec 3.6, for generators of any kind ---- */

struct fitting {
	struct ids ids;     /* in: what to begin with; out: what text encodes to */
	struct buf text;    /* of the ids before the last encoding, as upstream's */
	size_t target;
	int left;           /* rounds that may still change the ids */
};

enum fitting_state { FITTING_FAILED = -1, FITTING_SHORT, FITTING_DONE };

/* Begins with f->ids; keeps text's memory. */
void fitting_begin(struct fitting *f, size_t target);
/*
 * Continues until the text is done, or target - ids.count ids are missing, each from all of the
 * vocabulary: push them and call again. FAILED: fitting_refuse says why. Thread-safe.
 */
enum fitting_state fitting_run(const struct tokenizer *t, struct fitting *f);
/* Returns -1. */
int fitting_refuse(const struct tokenizer *t, const struct fitting *f, struct err *e);
void fitting_release(struct fitting *f);

/*
 * Which pictures and videos random-mm puts into a request; datasets spec
 * 4.1 to 4.3.
 */

enum mm_kind { MM_IMAGE, MM_VIDEO, MM_KINDS };

struct mm_bucket {
	int64_t height, width, frames; /* pixels; one frame is an image */
	double weight;                 /* of all buckets together 1 */
};

struct mm_plan {
	struct mm_bucket *bucket; /* those that may be drawn, in the order they are written */
	size_t n;
	int64_t limit[MM_KINDS];  /* items of one request */
	int64_t min, max;         /* items of one request in all */
	double *weight, *cdf;     /* scratch of mm_next */
	int64_t left[MM_KINDS];
	int64_t wanted;
};

/*
 * Reads the --random-mm-* options. ERR_RUN: what upstream refuses too, with the place in the
 * text; ERR_LIMIT: a bucket above MM_ITEM_BYTES_MAX. Release in either case.
 */
int mm_plan_read(const struct dataset_opts *o, struct mm_plan *p, struct err *e);
void mm_plan_release(struct mm_plan *p);

#define MM_ITEM_BYTES_MAX (1ll << 30) /* RGB of one item: 5 s of video of 1280 x 720 are 0.4 GB */

static inline enum mm_kind mm_kind(const struct mm_bucket *b)
{
	return b->frames == 1 ? MM_IMAGE : MM_VIDEO;
}

/*
 * The items of one request, by upstream's draws: mm_begin draws how many, mm_next which (NULL: no
 * more). The caller's draws for an item precede the next mm_next.
 */
void mm_begin(struct mm_plan *p, struct pcg64 *rng);
const struct mm_bucket *mm_next(struct mm_plan *p, struct pcg64 *rng);
