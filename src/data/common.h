/* SPDX-License-Identifier: Apache-2.0 */
/* data/common.h - what datasets share. Private to data/. */
#pragma once
#include "data/dataset.h"

/* "<prefix><index>" in the workload's arena. */
struct str dataset_request_id(struct workload *w, const struct dataset_opts *o, size_t index);

/*
 * Datasets spec 1.3: when fewer than num_prompts were accepted, copies of
 * uniformly chosen ones are appended (Python's generator, re-seeded).
 */
int dataset_oversample(struct workload *w, const struct dataset_opts *o, struct compat_rng *rng,
		       struct err *e);
/* -1 with ERR_CANCELLED once the caller asked to stop; asked between prompts. */
int dataset_go_on(const struct dataset_opts *o, struct err *e);
void dataset_progress(const struct dataset_opts *o, size_t done, size_t total);
