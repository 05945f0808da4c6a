/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opt_internal.h - what the files of opt/ share. Not for other layers.
 */
#pragma once
#include "core/json/read.h"
#include "core/json/write.h"
#include "core/opt/opt.h"

/* --help and --show-config, which every set has; they fill no field. */
enum { OPT_BUILTIN_HELP, OPT_BUILTIN_SHOW, OPT_BUILTINS };
extern const struct opt opt_builtin[OPT_BUILTINS];

static inline void *opt_field(const struct opt *o, void *values)
{
	return (char *)values + o->offset;
}

static inline const void *opt_field_const(const struct opt *o, const void *values)
{
	return (const char *)values + o->offset;
}

/* The rows and then the built-in ones: i below set->n + OPT_BUILTINS. */
static inline const struct opt *opt_row_at(const struct opt_set *set, size_t i)
{
	return i < set->n ? &set->row[i] : &opt_builtin[i - set->n];
}

/* The row with that name ("_" equals "-"), also of aliases and positionals; NULL: none. */
const struct opt *opt_row(const struct opt_set *set, struct str name);
/* The row that an alias sets; any other row itself. */
const struct opt *opt_target(const struct opt_set *set, const struct opt *o);
bool opt_name_is(struct str spelled, const char *name); /* "_" and "-" alike */
bool opt_name_starts(const char *name, struct str prefix);

/* What --help and errors call a row: "--name", or "FILE" for a positional. */
const char *opt_label(const struct opt *o, char out[static 96]);
/* The name of the value in help: "URL". */
const char *opt_arg(const struct opt *o, char out[static 96]);

/* The range alone: "from 1 to 64", "at least 1", "above 0"; nothing without one. */
void opt_range(const struct opt *o, struct buf *out);
bool opt_has_range(const struct opt *o);

/*
 * Reads one text into the row's field, checks choices, range, the row's own check
 * and OPT_LATER. Not for flags and tri-states. A list gets this one element.
 */
int opt_read(const struct opt_set *set, const struct opt *o, void *values, struct str text,
	     struct arena *a, struct err *e);
int opt_read_list(const struct opt_set *set, const struct opt *o, void *values, const char **v,
		  size_t n, struct err *e);
/* For flags and tri-states. */
int opt_read_bool(const struct opt_set *set, const struct opt *o, void *values, bool is_on,
		  struct err *e);
bool opt_is_default(const struct opt_set *set, const struct opt *o, const void *values);

/* The value in plain text (not redacted: for defaults); false when absent. */
bool opt_value_text(const struct opt *o, const void *values, struct buf *out);
/* The value as JSON, secrets redacted. */
void opt_value_json(const struct opt *o, const void *values, struct json_writer *w);

/* ---- Foreign words ---- */

/* All shown rows of f and those after it, in the arena; f may be NULL. */
struct opt_foreign_rows { struct opt_foreign_row *row; size_t n; };
struct opt_foreign_rows opt_foreign_rows(const struct opt_foreign *f, struct arena *a);
/* --show-config: one line "name = value # given" each. */
void opt_foreign_show(const struct opt_rest *rest, struct buf *out);
