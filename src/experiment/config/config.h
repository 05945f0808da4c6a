/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - the configuration of an experiment: read, merged, typed, judged.
 *
 *   files, --set ─► config_read ─► struct config ─► config_experiment ─► struct experiment
 *                                       └─► suite.h merges members, then the same
 *
 * config_read makes one tree of the file, its includes and the --set words, with the environment
 * filled in; every value knows where it was written, through any number of merges.
 * config_experiment reads one experiment from a tree: types and ranges by the rows of the option's
 * owner (bench verbs: opt/, vLLM's server: engine/args.h), then rules between values
 * (config_internal.h). It reports all findings, not only the first.
 *
 * Findings are sentences: "FILE:LINE:COLUMN: server.tensor_paralel_size: unknown key; did you mean
 * tensor_parallel_size?". Line and column are the key's for a key, the value's for a value; "--set
 * key=value: ..." for words of the command line. Input may be any bytes: none leads to an
 * assertion.
 *
 * Nothing is started or looked up here: facts about the machine are parameters.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/marks.h"
#include "core/opt/opt.h"
#include "experiment/config/experiment.h"

struct config {
	const char *path;            /* as given; "-": stdin */
	const struct json_value *tree; /* an object: all merged, environment filled in */
	struct json_marks *marks;
	struct arena *arena;         /* where all of it lives */
	const char *const *sets;     /* as they were given; borrowed */
	size_t n_sets;
	const struct config_bounds *bounds; /* borrowed; NULL: it is the user's own */
};

/* Errors, one per line, and warnings and notes in the same form. Zeroed is empty; release both. */
struct config_findings {
	struct buf errors, notes;
	size_t n_errors, n_notes;    /* EXPERIMENT_FINDINGS_MAX are kept, the rest only counted */
};
void config_findings_release(struct config_findings *f);

#define CONFIG_AXIS "-m "
/*
 * path: a file (.json: JSON, else YAML, of which JSON is a part) or "-" for stdin. sets:
 * "dotted.key=VALUE", the last one counts; VALUE as YAML; a number is an index in a list
 * ("servers.0.port"); "server.KEY" of a configuration with `servers` sets it for each of them.
 * CONFIG_AXIS "KEY=V1,V2" adds an axis to the matrix. -1 with e: what cannot be read as a tree at
 * all (ERR_USAGE, one sentence with its place).
 */
int config_read(const char *path, const char *const *sets, size_t n_sets, struct arena *a,
		struct config *out, struct err *e);
/* config_read for a configuration from another user; bounds NULL: config_read. */
int config_read_within(const struct config_bounds *bounds, const char *path,
		       const char *const *sets, size_t n_sets, struct arena *a,
		       struct config *out, struct err *e);
/* config_read for a text; name replaces the file name, and includes are relative to its folder. */
int config_parse(struct str text, const char *name, const char *const *sets, size_t n_sets,
		 struct arena *a, struct config *out, struct err *e);

/* Registers the secrets of a tree (redact_learn); NULL: none. Called for all that is read. */
void config_learn(const struct json_value *tree);

/*
 * Merges over into base: objects merge, anything else is replaced. Neither is changed; marks stay.
 */
const struct json_value *config_merge(const struct config *c, const struct json_value *base,
				      const struct json_value *over);
/*
 * The tree with its references filled in: ${server.model} is the value at that path of the tree
 * itself. keys: members of the root in which this is done, ended by NULL; NULL: all. NULL with e: a
 * reference to nothing, or to itself.
 */
const struct json_value *config_filled(const struct config *c, const struct json_value *tree,
				       const char *const *keys, struct err *e);
/* One value, filled in with references into tree. */
const struct json_value *config_filled_value(const struct config *c, const struct json_value *tree,
					     const struct json_value *v, struct err *e);
/* A dotted path with its keys as they are stored: "server.max-num-seqs" with "_". */
const char *config_spelled_path(const struct config *c, struct str path);
/* The tree with every --set applied once more, to override members of a suite. */
const struct json_value *config_with_sets(const struct config *c, const struct json_value *tree,
					  struct err *e);
/* A tree with value at a dotted path; the mark is value's own. NULL with e: no such place. */
const struct json_value *config_put(const struct config *c, const struct json_value *tree,
				    const char *path, const struct json_value *value,
				    struct err *e);
/* Without one member of the object; the same tree when it has none. */
const struct json_value *config_without(const struct config *c, const struct json_value *tree,
					const char *key);

/* A finding at v (NULL: at the file): "FILE:LINE:COLUMN: PATH: TEXT". Always -1. */
__attribute__((format(printf, 5, 6)))
int config_complain(const struct config *c, struct config_findings *f,
		    const struct json_value *v, const char *path, const char *fmt, ...);
/* A finding at v's key; and a warning, which is not an error. */
__attribute__((format(printf, 5, 6)))
int config_complain_key(const struct config *c, struct config_findings *f,
			const struct json_value *v, const char *path, const char *fmt, ...);
__attribute__((format(printf, 5, 6)))
void config_note(const struct config *c, struct config_findings *f, const struct json_value *v,
		 const char *path, const char *fmt, ...);

/* The machine and the programs that can be started; zeroed: nothing is known. */
struct config_know {
	const struct opt_set *sim;   /* rows of `profllm sim`; NULL: not known, not judged */
	bool is_gpus_known;
	unsigned n_gpus;             /* that may be used */
	unsigned compute_capability; /* the lowest among them, 8.9 as 89; 0: not known, not CUDA */
	bool is_amd;
	const struct engine_extra *extra; /* used before the table (engine/extra.h); or NULL */
};
/* Fills in this machine's GPUs (gpu/gpu.h); the rest is unchanged. */
void config_know_gpus(struct config_know *know);

/*
 * Reads one experiment from a merged tree (an object; keys of suites are ignored). All texts of
 * *out live in a. -1: f has errors, and *out holds what could be read (mode, name and output are
 * always there), enough for a failed document.
 */
int config_experiment(const struct config *c, const struct json_value *tree,
		      const struct config_know *know, struct arena *a, struct experiment *out,
		      struct config_findings *f);

/* `search` of a suite: best and its settings; without it *out has no best. */
void config_suite_search(const struct config *c, struct arena *a, struct experiment_search *out,
			 struct config_findings *f);
/* `scheduler` of a suite, with its defaults where there is none. */
void config_suite_scheduler(const struct config *c, struct arena *a,
			    struct experiment_scheduler *out, struct config_findings *f);

struct config_host { const char *name; unsigned slots; };
/*
 * A file of hosts: lines "NAME" or "NAME slots=N", with # before a comment. At most SUITE_JOBS_MAX
 * slots. ERR_USAGE with file and line, ERR_IO, ERR_LIMIT.
 */
int config_hosts(const char *path, struct arena *a, struct config_host **out, size_t *n,
		 struct err *e);
/*
 * The metric of search.best: the key of a result, and whether larger is better. ERR_USAGE: a
 * sentence with what was expected.
 */
int config_best_metric(const char *text, struct arena *a, const char **key, bool *is_highest,
		       struct err *e);

/*
 * The arguments of a server as words, in the order of engine/flags.h, extra_args last. They follow
 * its command (s->command) and precede --host and --port, which the runner adds.
 */
char *const *config_server_words(const struct experiment_server *s, struct arena *a);
/*
 * Secrets among the arguments that the server also reads from variables: they are not passed as
 * words, which every user of the machine can read. NAME=VALUE each, ended by NULL; those of s->env
 * take precedence.
 */
char **config_server_secrets(const struct experiment_server *s, struct arena *a);
struct json_writer;

/* What an engine reported once it ran; zeroed: nothing. */
struct config_told {
	unsigned version;        /* the release whose defaults it has (engine/args.h); 0: unknown */
	const struct json_value *reported; /* by name: server/engine_report.h; or NULL */
	bool is_engine_alone;    /* driven without its HTTP server */
};
/*
 * Sets the release (in the last parameter) from the version that the engine prints; engine: its
 * name, NULL: from its command. Returns why the release is unknown, a literal of
 * schema/experiment.json's config.server_defaults.reason; NULL: it is known.
 */
const char *config_defaults_version(const struct experiment_server *s, const char *engine,
				    const char *version, struct config_told *told);
/*
 * The arguments of a server by name: what the user gave, else what the engine reported, else the
 * default of its version, which is null where the version is unknown. An attached server, or one
 * that is not vLLM, has only the first two. Secrets are "***".
 */
const struct json_value *config_server_values(const struct experiment_server *s,
					      const struct config_told *told, struct arena *a);
/*
 * A list of the arguments whose value the engine chose at its start and did not report; values:
 * config_server_values.
 */
void config_not_reported(const struct json_value *values, const struct config_told *told,
			 struct json_writer *w);
/* Whether s is one of the names: n of them, or fewer when NULL ends the list; NULL: none. */
bool config_is_any(struct str s, const char *const *names, size_t n);
/* Whether a list with sep between its items has this one; blanks around items do not count. */
bool config_has_item(struct str list, char sep, struct str item);
/* Whether its command is this program's own simulator ("sim", ".../profllm sim"). */
bool config_is_sim(char *const *command);
/* The keys of a configuration as a page of Markdown: docs/reference/experiment.md. */
void config_keys_page(struct buf *out);
/* The same as a JSON Schema for editors. sim: rows of `profllm sim`. */
void config_schema(const struct opt_set *sim, struct buf *out);

/*
 * Limits on what a configuration from another user may read and start.
 *
 * A dashboard runs configurations of its users as the user who started it. Bounds keep such a
 * configuration from that user's environment and files:
 *
 *   environment  ${NAME} works only for the variables named here
 *   files        `include` and `import` read below the folders named here, after links
 *   messages     a mistake in an included file is reported by its place alone
 *   programs     with `commands`, nothing else is started and no key names a file to write
 *
 * Without bounds (NULL in struct config) a configuration is the user's own.
 */
struct config;
struct config_reader;
struct json_value;

struct config_bounds {
	const char *const *folders;
	size_t n_folders;
	const char *const *variables;
	size_t n_variables;
	/* As typed: "vllm serve", "sim", "worker" (engines without a server). 0: any. */
	const char *const *commands;
	size_t n_commands;
};

/* The variable's value; NULL: it is not set, or not allowed. b may be NULL. */
const char *config_bounds_variable(const struct config_bounds *b, const char *name);

/*
 * Reads a file named in a configuration. A relative name is looked for in folder, or, where that is
 * NULL, in each folder of b. *real: its path without links; caller frees. ERR_USAGE does not reveal
 * whether a file outside of the folders exists; ERR_IO, ERR_LIMIT.
 */
int config_bounds_read(const struct config_bounds *b, const char *name, const char *folder,
		       size_t limit, struct buf *out, char **real, struct err *e);

/*
 * The message that may be shown for a mistake in an included file: text, which begins with
 * "LINE:COLUMN: ", or with bounds only that place. In c's arena.
 */
const char *config_bounds_fault(const struct config *c, const char *text);

/* Adds findings for whatever r->x would start or write against c's bounds. tree: its own. */
void config_bounds_check(struct config_reader *r, const struct json_value *tree);
