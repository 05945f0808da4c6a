/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opt.h - one row declares an option; everything else walks the rows:
 * command line, --help, --help=json, shell completion, --show-config, YAML and
 * JSON keys of an experiment, the copy stored with a result, web forms.
 *
 * The row's kind comes from the type of the field it fills, so row and field
 * cannot disagree. Parsing follows Python's argparse as vLLM uses it:
 *   - "_" and "-" are the same in names; --name value and --name=value;
 *   - in vLLM's own verbs (opt_set.takes_prefixes) an unambiguous prefix of an option that
 *     vLLM has, with a note; an ambiguous one is an error. Our options, and all options of
 *     our verbs, are written whole, and so is a word that other tools use for something
 *     (opt.words): --port is never read as --port-file;
 *   - repeats: the last one is used, for lists too;
 *   - list options take values until the next option (nargs * or +);
 *   - a number whose arg is "SECONDS" may have units, 500ms, 10m, 1h30m; "BYTES" 512MiB, 4GB;
 *   - dotted JSON: --extra-body.a.b 3 builds {"a":{"b":3}}; all dotted keys of an
 *     option are merged and then replace a whole JSON text given with them, as
 *     upstream does (with a note). Value as JSON, else a number with
 *     k/K/m/M/g/G/t/T, else text; key+ takes a comma list and appends to an
 *     array. Any token that starts with "-" and contains "." before a "=" is such
 *     a key, so negative fractions need the form --name=-0.5;
 *   - a value that starts with "-" is refused unless it is a negative number,
 *     holds a blank or is written with "="; "--" ends the options;
 *   - choices, ranges; unknown options are errors with the nearest name, also by the words
 *     that other tools use (opt.words).
 * A set may let foreign names pass (struct opt_foreign); argv ends with NULL then.
 * --help[=TOPIC], -h and --show-config belong to every set without a row.
 *
 * A set (struct opt_set) is const data; parsed values live in the caller's
 * struct, their memory in the caller's arena. Nothing here prints or exits.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/str.h"

struct json_value;

struct opt_int { bool is_set; int64_t v; };   /* an int that may be absent (None) */
struct opt_real { bool is_set; double v; };
enum opt_tri { OPT_TRI_UNSET, OPT_TRI_NO, OPT_TRI_YES }; /* --x / --no-x / neither */
struct opt_list { const char **v; size_t n; bool is_set; };
struct opt_json { const char *text; };        /* a JSON value as text; NULL when absent */

enum opt_kind {
	OPT_FLAG, OPT_INT, OPT_REAL, OPT_TEXT, OPT_MAYBE_INT, OPT_MAYBE_REAL, OPT_TRI, OPT_LIST,
	OPT_JSON,
};

enum opt_flags {
	OPT_HIDDEN = 1,    /* works, not shown: old spellings */
	OPT_LATER = 2,     /* refused by name: "not in this version" */
	OPT_OURS = 4,      /* not in upstream: marked in help */
	OPT_MANY = 8,      /* list needs at least one value (nargs +) */
	OPT_SECRET = 16,   /* values are redacted wherever options are shown */
	OPT_NO_CONFIG = 32,/* not a configuration key (e.g. --help) */
	OPT_MIN_EXCLUSIVE = 64, /* value must be > min */
	OPT_POSITIONAL = 128,   /* no dashes; filled in order; with OPT_MANY it must be given */
	OPT_LITERAL = 256,      /* text that the namespace line shows without quotes */
	OPT_DASHED = 1024,      /* "-" and "_" are equal in its choices */
	OPT_EACH = 2048,        /* a list that every repeat extends */
	OPT_WHOLE = 512,        /* a real whose default the namespace line shows as an integer */
};

/* A choice of another tool or older version, and what to use instead: the end of a message. */
struct opt_meant { const char *typed, *use; };

struct opt {
	const char *name;       /* without dashes, e.g. "num-prompts" */
	enum opt_kind kind;
	size_t offset;          /* of the field in the options struct */
	unsigned flags;
	const char *arg;        /* e.g. "URL"; NULL: the name in capitals */
	const char *help;       /* one sentence; units named */
	/*
	 * Names that other tools use for this option, with blanks between: "rate rps -q". They are
	 * not accepted, but suggested in messages and found by --help=WORD. NULL: none known.
	 */
	const char *words;
	const char *group;      /* heading; rows of one group need not be adjacent */
	const char *const *choices; /* NULL-terminated; NULL: any */
	const struct opt_meant *meant; /* what refused choices probably mean; NULL: by spelling */
	double min, max;        /* both 0: no range; an open end is INFINITY */
	const char *alias_of;   /* hidden old spelling: the row it sets, with a note on use */
	const char *note;       /* OPT_LATER: what to use instead or when; alias: the note */
	char letter;            /* short form, 0: none */
	/* Extra check after parsing: fills e and returns -1. field points at the value. */
	int (*check)(const struct opt *o, const void *field, struct err *e);
};

#define OPT(type, member, flag, ...)                                                     \
	{ .name = (flag), .offset = offsetof(type, member),                              \
	  .kind = _Generic(((type *)0)->member, bool: OPT_FLAG, int64_t: OPT_INT,        \
			   double: OPT_REAL, const char *: OPT_TEXT,                     \
			   struct opt_int: OPT_MAYBE_INT, struct opt_real: OPT_MAYBE_REAL, \
			   enum opt_tri: OPT_TRI, struct opt_list: OPT_LIST,             \
			   struct opt_json: OPT_JSON), __VA_ARGS__ }

/* An argument without a row, for help. Only `also` has dashes; "" for nothing. */
struct opt_foreign_row {
	const char *name, *also, *group, *arg, *help, *initial, *choices, *kind;
	bool is_switch;   /* has --no-NAME */
	bool has_value;
};

/*
 * Names without a row that are accepted, such as the arguments of an engine in addition to a verb's
 * own. They are counted, not read: the words are kept as typed. Looked up after the full names of
 * all rows and before abbreviated ones.
 */
struct opt_foreign {
	const struct opt_foreign *next; /* asked about names that this one does not know; or NULL */
	const void *self;
	/*
	 * argv[0] begins with a dash. Returns how many words it takes, itself included; 0: unknown;
	 * -1: an ambiguous prefix. is_whole: accept full names only, no prefixes.
	 */
	int (*words)(const void *self, char *const *argv, bool is_whole, struct err *e);
	/* The nearest name to an unknown one, without dashes; NULL: none near. */
	const char *(*nearest)(const void *self, struct str name);
	/* Row i for help, --help=json and completion; false: no more. */
	bool (*row)(const void *self, size_t i, struct opt_foreign_row *out);
	bool is_open;     /* unknown names that resemble no known one are accepted */
};

/* The options of another set, by full names: hooks whose self is that set; row is NULL. */
int opt_foreign_set_words(const void *self, char *const *argv, bool is_whole, struct err *e);

/* Foreign words as argv, ended by NULL; by[i]: who accepted word i, NULL: unknown. */
struct opt_rest {
	char **v;
	const struct opt_foreign **by;
	size_t n;
};

struct opt_set {
	const char *command;     /* "bench serve" */
	const char *summary;     /* one line */
	const char *usage;       /* after the command: "[options]" */
	const char *epilog;      /* examples; may be NULL */
	const char *const *common; /* names of the most used rows, in order; may be NULL */
	const struct opt *row;
	size_t n;
	const void *defaults;    /* an options struct */
	size_t bytes;            /* its size; forms need only n and this */
	const char *const *groups; /* order of headings in help, NULL at the end; others follow */
	const char *namespace_head; /* the namespace line begins with it: "a='b', "; or NULL */
	const struct opt_foreign *foreign; /* accepted names without a row; NULL: none */
	const char *stray;       /* name of the option that a word too many is for; or NULL */
	bool takes_prefixes;     /* a verb of vLLM's: options may be abbreviated, as there */
};

/* Members of a set: its rows, and the defaults of the struct that they describe. */
#define OPT_SET_OF(rows, values) .row = (rows), .n = sizeof(rows) / sizeof(*(rows)), \
	.defaults = &(values), .bytes = sizeof(values)

struct opt_result {
	bool is_help;            /* --help was asked; topic in help_topic ("" = groups only) */
	const char *help_topic;
	bool is_show_config;
	uint64_t given[OPT_ROWS_MAX / 64]; /* bit per row: set on the command line */
	struct opt_rest rest;    /* foreign words; n 0 without opt_set.foreign */
	struct buf notes;        /* warnings for stderr, one line each */
};

/*
 * Fills *values (after copying the defaults) from argv (without the command
 * words) and overwrites *result. ERR_USAGE with one sentence: option, value, what
 * is expected. Stops at --help. Values may point into argv.
 */
int opt_parse(const struct opt_set *set, int argc, char **argv, void *values,
	      struct opt_result *result, struct arena *a, struct err *e);
bool opt_given(const struct opt_set *set, const struct opt_result *r, const char *name);

/*
 * Sets one option from text, as a YAML scalar, --set key=value or a form would. The name is written
 * in full, "_" and "-" are equal; a dotted name changes one key of a JSON option and keeps the
 * others. Flags take true/false, yes/no, on/off, 1/0; "", "null" and "none" unset an optional
 * value; a list is a JSON array of texts or one element.
 */
int opt_assign(const struct opt_set *set, void *values, const char *name, struct str value,
	       struct arena *a, struct err *e);
/* As opt_assign; the option then counts as given on the command line. */
int opt_give(const struct opt_set *set, void *values, struct opt_result *result,
	     const char *name, struct str value, struct arena *a, struct err *e);

/*
 * topic: "" groups only; "all"; OPT_HELP_OWN: all but foreign names; a group's or option's name
 * or part of one; "json". A topic that matches nothing is answered by a sentence, as upstream does.
 */
#define OPT_HELP_OWN "own"
void opt_help(const struct opt_set *set, const char *topic, unsigned columns, struct buf *out);
void opt_show_config(const struct opt_set *set, const void *values, const struct opt_result *r,
		     struct buf *out); /* "name = value   # default|given", secrets redacted */
/*
 * Python's Namespace(name=value, ...) line, in row order, without ours and old
 * spellings, secrets as '***'; without the newline.
 */
void opt_namespace(const struct opt_set *set, const void *values, struct buf *out);
/*
 * Appends {NAME: VALUE} objects, one after the other, for the values that opt_json hides in part:
 * for digests that must change with them. Nothing when there are none.
 */
void opt_json_hidden(const struct opt_set *set, const void *values, struct buf *out);
/* A JSON object of names (with underscores) and values, secrets redacted; stored with results. */
void opt_json(const struct opt_set *set, const void *values, struct buf *out);

/* What the row accepts, for messages: "an integer from 1 to 64", "one of a, b". */
void opt_expected(const struct opt *o, struct buf *out);
/* Numbers as Python's int() and float() read them: blanks around, "_" between digits, inf, nan. */
bool opt_python_int(struct str s, int64_t *out);
bool opt_python_float(struct str s, double *out);

/*
 * The row that an unknown "--name" or "-n" probably meant, found by opt.words, by spelling or as a
 * prefix. Its name without dashes, or NULL.
 */
const char *opt_suggest(const struct opt_set *set, struct str typed);
/* The nearest of n names within a third of the length, or NULL. */
const char *opt_nearest(struct str name, const char *const *names, size_t n);

/* Shell completion scripts for several commands ("bench serve", "sim"...). shell: "bash", "zsh". */
int opt_completion(const struct opt_set *const *sets, size_t n, const char *program,
		   const char *shell, struct buf *out, struct err *e);

static inline void opt_result_release(struct opt_result *r) { buf_release(&r->notes); }

/* ---- Values below a JSON option: --extra-body.a.b 3 ---- */

/*
 * Puts value at path ("a.b", "list+") below *root (NULL: a new object). name is
 * the option's, for messages. A key that held another value gives a note.
 */
int opt_dotted_put(struct json_value **root, const char *name, struct str path, struct str value,
		   struct buf *notes, struct arena *a, struct err *e);
/* The tree as Python's json.dumps would spell it. */
const char *opt_dotted_text(const struct json_value *root, struct arena *a);
/* As opt_human_int, also 4GiB and 4GB (10^9). For options whose arg is "BYTES". */
bool opt_bytes(struct str s, int64_t *out);
/*
 * 25.6k is 25600, 1K is 1024, 3 is 3; suffixes k, m, g, t, fractions only before lower-case ones.
 * Also whatever int() takes.
 */
bool opt_human_int(struct str s, int64_t *out);
