/* SPDX-License-Identifier: Apache-2.0 */
/* experiment/allocate_parts.h - what allocate.c and allocate_env.c share. */
#pragma once
#include "experiment/allocate.h"

/* Fills out's servers and what allocate_settle wants; place: as many as the shares add up to. */
void allocation_tell(struct allocation *out, const struct experiment *x, const struct gpu_set *gpus,
		     const unsigned *share, const size_t *place);
