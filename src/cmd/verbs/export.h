/* SPDX-License-Identifier: Apache-2.0 */
/* export.h - runs of a store for other verbs: what `profllm export --format jsonl` writes. */
#pragma once
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"

/* store: as --store, NULL: the default. filter: JSON or NULL. Appends a line for each run. */
int export_jsonl(const char *store, const char *filter, struct buf *out, struct arena *a,
		 struct err *e);
