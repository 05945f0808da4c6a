/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/store.h - the verbs that keep a store, which share their rows. Private to cmd/store*.c. */
#pragma once
#include "cmd/cli.h"
#include "store/store.h"

struct keep_opts {
	const char *file, *store, *to, *traces_dir;
	struct opt_list runs;
	struct opt_json filter;
	bool is_forced, is_undone, is_sure, is_repairing;
	struct opt_real archive_days, remove_days, trace_days, trace_gb;
};

/* For the verbs that look for files of traces, or remove them. */
#define KEEP_TRACES \
	OPT(struct keep_opts, traces_dir, "traces-dir", .arg = "DIR", \
	    .help = "where traces are kept; default: beside the SQLite file")

int keep_open(const struct keep_opts *o, bool is_read_only, bool has_index, struct store **out,
	      struct err *e);
