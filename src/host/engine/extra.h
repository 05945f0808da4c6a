/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extra.h - arguments that another server's help lists, in addition to our table.
 *
 *   text of `vllm serve --help=all` ─► engine_help_read ─► engine_extra_compare ─► a file
 *   that file ─► engine_extra_parse ─► engine_extra_find: before the table is searched
 *
 * The file holds arguments that the table lacks and those that differ from it, so that an
 * experiment may use a future server. Help is incomplete: a number without a default is a text
 * here, and ranges are open.
 */
#pragma once
#include "core/json/write.h"
#include "host/engine/args.h"

struct engine_extra {
	struct engine_arg *arg;
	size_t n;
	const char *version; /* of the server that listed them; "" */
};

/* ERR_PARSE: not such a file; ERR_LIMIT. Everything lives in the arena. */
int engine_extra_parse(struct str json, struct arena *a, struct engine_extra *out,
		       struct err *e);
void engine_extra_write(const struct engine_extra *x, struct json_writer *w);
/* By name without dashes, "_" and "-" alike; x NULL: there are none. */
const struct engine_arg *engine_extra_find(const struct engine_extra *x, struct str name);

/* Reads help printed by Python's argparse. ERR_PARSE: it contains no arguments. */
int engine_help_read(struct str help, struct arena *a, struct engine_extra *out, struct err *e);

/* Differences between a server's help and the table: lists of arguments. */
struct engine_change {
	const struct engine_arg *arg; /* from the help; gone: from the table */
	const struct engine_arg *was; /* from the table; NULL: it is new */
	const char *what;             /* "choices: flash is new, triton is gone"; "" */
};
struct engine_changes {
	struct engine_change *added, *gone, *changed;
	size_t n_added, n_gone, n_changed;
};
void engine_extra_compare(const struct engine_extra *told, struct arena *a,
			  struct engine_changes *out);

/* "integer", "one of auto, half", "number above 0 to 1", ...: the accepted values. */
void engine_arg_value_text(const struct engine_arg *arg, struct buf *out);
/* "flag", "int", ... as in schema/engine_args.json. */
const char *engine_kind_name(enum engine_kind kind);
