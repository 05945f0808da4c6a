/* SPDX-License-Identifier: Apache-2.0 */
/* named_traces.h - the traces that a document names (store/trace_files.h), ready to be sent. */
#pragma once
#include "experiment/suite/upload.h"
#include "results/store/trace_files.h"

/* Sets trace and n_traces of *o, in the arena. note: as trace_files_find gives it. */
void named_traces(struct str document, const char *place, const char *folder, struct arena *a,
		  struct upload_opts *o, struct str *note);
