/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extra.h - what another server's help says about its arguments, in addition to our table.
 *
 *   text of `vllm serve --help=all` ─► engine_help_read ─► engine_extra_compare ─► a file
 *   that file ─► engine_extra_parse ─► engine_extra_find: before the table is asked
 *
 * The file holds arguments that the table lacks and those that differ from it, so that an
 * experiment may use tomorrow's server. Help does not tell everything: a number without a default
 * is a text here, and ranges are open.
 */
#pragma once
#include "core/json/write.h"
#include "host/engine/args.h"

struct engine_extra {
	struct engine_arg *arg;
	size_t n;
	const char *version; /* of the server that listed them; "" */
};

/* ERR_PARSE: it is not such a file; ERR_LIMIT. Everything lives in the arena. */
int engine_extra_parse(struct str json, struct arena *a, struct engine_extra *out,
		       struct err *e);
void engine_extra_write(const struct engine_extra *x, struct json_writer *w);
/* By name without dashes, "_" and "-" alike; x NULL: there are none. */
const struct engine_arg *engine_extra_find(const struct engine_extra *x, struct str name);

/* Python's argparse, as it prints help. ERR_PARSE: no argument is found in it. */
int engine_help_read(struct str help, struct arena *a, struct engine_extra *out, struct err *e);

/* What told says against the table: lists of arguments, of told or (gone) of the table. */
struct engine_change {
	const struct engine_arg *arg; /* of told; gone: of the table */
	const struct engine_arg *was; /* of the table; NULL: it is new */
	const char *what;             /* "choices: flash is new, triton is gone"; "" */
};
struct engine_changes {
	struct engine_change *added, *gone, *changed;
	size_t n_added, n_gone, n_changed;
};
void engine_extra_compare(const struct engine_extra *told, struct arena *a,
			  struct engine_changes *out);

/* "integer", "one of auto, half", "number above 0 to 1", ...: what its value may be. */
void engine_arg_value_text(const struct engine_arg *arg, struct buf *out);
/* "flag", "int", ... as in schema/engine_args.json. */
const char *engine_kind_name(enum engine_kind kind);
