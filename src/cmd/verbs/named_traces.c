/* SPDX-License-Identifier: Apache-2.0 */
/* named_traces.c - see named_traces.h. */
#include "cmd/verbs/named_traces.h"

void named_traces(struct str document, const char *place, const char *folder, struct arena *a,
		  struct upload_opts *o, struct str *note)
{
	struct trace_files files;
	struct upload_trace *trace;

	trace_files_find(document, place, folder, a, &files);
	trace = arena_alloc(a, (files.n + 1) * sizeof(*trace));
	for (size_t i = 0; i < files.n; i++)
		trace[i] = (struct upload_trace){ files.file[i].path, files.file[i].bytes,
						  files.file[i].changed_ns };
	o->trace = trace;
	o->n_traces = files.n;
	*note = files.note;
}
