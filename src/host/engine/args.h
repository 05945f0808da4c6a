/* SPDX-License-Identifier: Apache-2.0 */
/*
 * args.h - the arguments of vLLM's own server, as data, and how it reads them.
 *
 * The table is generated from schema/engine_args.json, as is the page
 * docs/reference/engine-args.md: every argument of `vllm serve` from 0.11 to 0.32, with the
 * versions that have it and its default in each of them. A server that we start is checked before
 * it is started: an unknown name is passed through unchanged with a note, because the table cannot
 * know future versions.
 *
 * Names are read as the server reads them: "_" and "-" are the same before the first dot, a value
 * may follow "=", any unambiguous prefix of a name is accepted, "--no-x" turns a flag off, "--x.a.b
 * v" sets one key of a JSON argument, options such as -tp are whole names, -O3 is "-O 3".
 *
 * Pure: no files (a file named by --config is not read), no state; returned texts belong to the
 * table, to argv or to the arena that was given.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/opt/opt.h"

struct json_value;
struct json_writer;

enum engine_kind {
	ENGINE_FLAG,   /* present or not, no value */
	ENGINE_SWITCH, /* --x and --no-x */
	ENGINE_INT,
	ENGINE_HUMAN,  /* an integer; k, m, g, t: powers of 1000, K, M, G, T: of 1024 */
	ENGINE_REAL,
	ENGINE_TEXT,
	ENGINE_LIST,   /* one or more values */
	ENGINE_JSON,
	ENGINE_KINDS,
};

#define ENGINE_KNOWN_MAX 64 /* names of engine_arg.known */

enum engine_arg_flags {
	ENGINE_AUTO = 1,       /* a number that may also be "auto" */
	ENGINE_NONE = 2,       /* may be "None" */
	ENGINE_TEXT_TOO = 4,   /* JSON, or a text that does not begin with "{" */
	ENGINE_DEPRECATED = 8, /* the newest version that has it warns about it */
	ENGINE_SECRET = 16,    /* its value is not shown */
	ENGINE_OPTIONAL = 32,  /* the value may be omitted */
	ENGINE_DASHED = 64,    /* "-" and "_", capitals and small letters are the same in choices */
	ENGINE_ABOVE = 128,    /* values are above min, not equal to it */
	ENGINE_BELOW = 256,    /* values are below max, not equal to it */
	ENGINE_DECIDED = 512,  /* unset or "auto": the server chooses a value at start */
};

/* A default that older versions had. */
struct engine_earlier {
	unsigned until;       /* the last version with it; 0 ends a list */
	const char *initial;  /* NULL: none, or decided at run time */
};

struct engine_arg {
	const char *name;     /* without dashes: "tensor-parallel-size" */
	const char *also;     /* other spellings, blank-separated, with dashes: "-tp"; or "" */
	const char *group;    /* vLLM's heading: "ParallelConfig" */
	enum engine_kind kind;
	/* In the newest version that has it, as typed; NULL: none, or decided at run time. */
	const char *initial;
	const struct engine_earlier *earlier; /* oldest first; NULL: the default never changed */
	const char *choices;  /* blank-separated; "": any */
	const char *known;    /* vLLM's own names, blank-separated, plugins add others; or NULL */
	double min, max;      /* -INFINITY, INFINITY: open */
	unsigned since, until; /* 0: before the table begins; still present */
	unsigned flags;
	const char *about;    /* one sentence */
	const char *successor; /* replacement, as a key of a configuration: "a.b", "a: 0"; "" */
};

extern const struct engine_arg engine_args[]; /* sorted by group, then in vLLM's order */
extern const size_t engine_arg_count;
/*
 * Versions are numbers that compare as releases do: (major * 1000 + minor) * 1000, plus 1 + micro
 * where a text names it: 0.11 is 11000, 0.11.2 is 11003. `until` and engine_version_newest cover
 * all of their minor version unless they name a micro one. The table covers these two and all
 * between.
 */
extern const unsigned engine_version_oldest, engine_version_newest;

/* By full name without dashes, "_" and "-" are equal; NULL when unknown. */
const struct engine_arg *engine_arg_find(struct str name);
/* "0.11.2", "v0.12.0rc1", "0.13.0+cu129" as a version; 0: unreadable. */
unsigned engine_version(const char *text);
/*
 * As engine_version, but only for a release that the table covers: a development version is between
 * two releases, at an unknown point. 0: *why (literal) is the reason. text NULL: none was reported.
 */
unsigned engine_version_release(const char *text, const char **why);
/* "0.11", or "0.11.2" where a micro version was named. */
void engine_version_text(unsigned version, char out[static 16]);
/*
 * The default in that version, as typed; NULL: none, or decided at run time, or a version outside
 * the table. version 0: the newest that has the argument.
 */
const char *engine_arg_initial(const struct engine_arg *arg, unsigned version);
bool engine_arg_is_in(const struct engine_arg *arg, unsigned version); /* 0: any version */
/* What it accepts, for messages: "an integer of at least 1 (4096, 4k, 4K)", "one of a, b". */
void engine_arg_expected(const struct engine_arg *arg, struct buf *out);
/* ERR_USAGE: "--name: expected ..., got '...'". Flags accept no value. */
int engine_arg_check(const struct engine_arg *arg, struct str value, struct err *e);

/* ---- without the server ---- */

/*
 * Whether an engine without its HTTP server accepts it; is_async: its asynchronous interface, which
 * accepts one more.
 */
bool engine_arg_is_engines(const struct engine_arg *arg, bool is_async);
/*
 * The hooks of struct opt_foreign (opt/opt.h) for those arguments; self: NULL, or
 * ENGINE_FOREIGN_ASYNC. A full name of an argument of the HTTP server is an error that says so;
 * prefixes only match the other names.
 */
#define ENGINE_FOREIGN_ASYNC "async"
int engine_foreign_words(const void *self, char *const *argv, bool is_whole, struct err *e);
/* The word with the full name if its name is a prefix of one; else the word itself. */
const char *engine_foreign_whole(const void *self, const char *word, struct arena *a);
const char *engine_foreign_nearest(const void *self, struct str name);
bool engine_foreign_row(const void *self, size_t i, struct opt_foreign_row *out);

/* ---- a server's command line ---- */

/*
 * The server's own arguments: what follows "serve" in `vllm serve`, or the module of vLLM's API
 * server in `python -m`; NULL when the command does not start vLLM (or hides it in a script). argv
 * ends with NULL, as in all functions here.
 */
char *const *engine_argv_begin(char *const *argv);

struct engine_token {
	const struct engine_arg *arg; /* NULL: not in the table */
	struct str name;    /* as it was typed, with dashes, without "=value" */
	struct str path;    /* "--x.a.b": "a.b"; else empty */
	bool is_positional; /* value is the model */
	bool is_off;        /* --no-x */
	bool is_ambiguous;  /* a prefix of several names */
	bool is_beginning;  /* a prefix of arg's name, not the full name */
	bool has_value;
	struct str value;   /* the first one, of a list */
	char *const *values; /* of a list: all of them; NULL with "=" */
	size_t n;           /* elements of argv that it took, itself included */
};

/*
 * Reads the token at *at and moves *at past it. False at the end. A word after an unknown option
 * that does not begin with "-" is taken as its value.
 */
bool engine_argv_next(char *const **at, struct engine_token *out);

/*
 * Checks the arguments of a vLLM server: names, values, versions (0: unknown). Findings are lines
 * in notes; with is_strict the first unknown name or wrong value is an error (ERR_USAGE) instead. A
 * command that does not start vLLM is not checked.
 */
int engine_argv_check(char *const *argv, unsigned version, bool is_strict, struct buf *notes,
		      struct err *e);
/*
 * As engine_argv_check, for the arguments of an engine without a server; head begins every finding:
 * "engine arguments".
 */
int engine_args_check(char *const *args, const char *head, unsigned version, bool is_strict,
		      struct buf *notes, struct err *e);
/* Only what this version does not have: for a server that has reported its version. */
void engine_argv_check_version(char *const *argv, unsigned version, struct buf *notes);
void engine_args_check_version(char *const *args, const char *head, unsigned version,
			       struct buf *notes);

/*
 * The value in effect: the last one given, "true"/"false" of flags, keys of a JSON argument as
 * "name.key.key"; else the table's default; NULL if there is neither. If engine_argv_begin finds
 * nothing, reads every argument after argv[0], so that other programs with vLLM's names (`profllm
 * sim`) are also read. name "model": also the positional one.
 */
const char *engine_argv_text(char *const *argv, const char *name, struct arena *a);
/* Only what is on the command line; NULL: nothing. */
const char *engine_argv_given(char *const *argv, const char *name, struct arena *a);
/* The value in effect as an integer (1k, 1K); otherwise if it is not one. */
int64_t engine_argv_int(char *const *argv, const char *name, int64_t otherwise);
/*
 * Every argument of an engine without its HTTP server, as members of an open object: names with
 * underscores, the value in effect, null for none. argv[0] is a program's name.
 */
void engine_argv_values(char *const *argv, bool is_async, struct json_writer *w);
/* Number of accelerators of one server: tensor x pipeline x data parallel size; at least 1. */
int64_t engine_argv_gpus(char *const *argv);

/*
 * The combined effect of -O, --optimization-level and --compilation-config. Up to 0.11 the number
 * is a compilation level (0 to 3), since then an optimisation level, and the compilation mode is a
 * separate setting. -1: not given.
 */
struct engine_optimization {
	int level;             /* since 0.12; 2 unless given */
	int mode;              /* of compilation: 0 none, 1 torch.compile, 2 once, 3 vLLM's own */
	const char *level_by, *mode_by; /* the option that set it; "" if none */
};
void engine_argv_optimization(char *const *argv, unsigned version,
			      struct engine_optimization *out);

/*
 * Arguments in which two commands differ: one line "name: a -> b" each, with "(default ...)" or
 * "(not given)" for a side without it. Returns the number of lines.
 */
size_t engine_argv_diff(char *const *a, char *const *b, struct buf *out);

/*
 * Turns arguments written as an object into the words of a command line.
 *
 *   {"tensor_parallel_size": 2, "enable_prefix_caching": false, "speculative_config":
 *    {"method": "ngram"}}
 *   -> --tensor-parallel-size 2 --no-enable-prefix-caching --speculative-config
 *      '{"method": "ngram"}'
 *
 * Known arguments come in the order of the table, whatever their order in the object, so that equal
 * experiments have equal commands; unknown ones follow in their own order. null: not given. true:
 * the bare flag; false: --no-NAME, or nothing for a flag without a negative form. An object becomes
 * its JSON text; so does a list, unless the argument takes several words or is unknown. Of a dotted
 * name ("compilation_config.mode") only the part before the dot is an argument's name. Numbers keep
 * their spelling.
 *
 * Nothing is checked here: engine_arg_check and engine_argv_check do that.
 *
 * args: an object or NULL; skip: names with underscores to leave out, ended by NULL, or NULL.
 */
char **engine_flags(const struct json_value *args, const char *const *skip, struct arena *a);

/* ---- names: shared by the files of engine/ ---- */

/* By full name or another spelling, with dashes: "--model", "-tp"; NULL: none. */
const struct engine_arg *engine_arg_spelled(struct str typed);
/* The only one whose name begins with typed (no dashes); is_switch: among switches only. */
const struct engine_arg *engine_arg_beginning(struct str typed, bool is_switch, bool *is_several);
/* The name that was probably meant, or NULL. */
const char *engine_arg_nearest(struct str name);
/* Whether name was typed, "_" and "-" being equal. */
bool engine_name_is(const char *name, struct str typed);
/* Whether a blank-separated list has the word. */
bool engine_word_in(const char *list, struct str word);
/* Takes the value words of the option at `at`, whose arg and path are set, if it has no "=". */
void engine_argv_take(char *const *at, struct engine_token *t);
