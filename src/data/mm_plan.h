/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data/mm_plan.h - which pictures and videos random-mm puts into a request; datasets spec
 * 4.1 to 4.3. Private to data/.
 */
#pragma once
#include "data/dataset.h"
#include "rng/pcg64.h"

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
 * The items of one request, in upstream's draws: mm_begin draws how many, mm_next which (NULL:
 * no more). What the caller draws for an item comes before the next mm_next.
 */
void mm_begin(struct mm_plan *p, struct pcg64 *rng);
const struct mm_bucket *mm_next(struct mm_plan *p, struct pcg64 *rng);
