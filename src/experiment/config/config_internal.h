/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_internal.h - what the files config*.c share. Not for others.
 *
 *   config_read.c    files, includes, names, the environment, --set, references: one tree
 *   config_values.c  a server's arguments as values and as words
 *   config.c         trees, findings, the sections and what follows from all
 *   config_bench.c   objects by the rows of a set; the benchmark: rows of the mode's verb
 *   config_server.c  a server: its own keys, its engine's arguments; bounds
 *   config_search.c  what is searched for; profiles
 *   config_scheduler.c  who starts the members of a suite
 *   config_rules.c   rules between values
 *   config_schema.c  the keys as a page, and as a schema for editors
 */
#pragma once
#include "core/opt/opt.h"
#include "experiment/config/config.h"

/* Filled by the rows of a configuration's own sections. */
struct config_resources {
	struct opt_list gpus;
	double wait_s;
	bool shared;
	double memory_free;
	const char *ports;
};

/*
 * Keys of a server that are not arguments of its program. Lists and objects are read from the tree.
 */
struct config_server {
	struct opt_list command, after, extra_args;
	const char *url, *name, *role, *host;
	struct opt_json container, ready, env;
	double ready_timeout_s, grace_s;
	int64_t port;
	struct opt_int gpus;
};

extern const struct opt_set config_resources_set, config_profiling_set, config_telemetry_set,
	config_output_set, config_server_set, config_search_set, config_scheduler_set;

struct config_reader {
	const struct config *c;
	const struct config_know *know;
	struct arena *a;
	struct config_findings *f;
	struct experiment *x;
	/*
	 * The result that require is checked against; NULL: not known (a mistake, or another mode).
	 */
	const struct serve_opts *asked;       /* served modes, with what a document always has */
	const struct serve_derived *derived;
	const struct json_value *example;     /* other modes: an example result */
};

/* "a list", "the text 'x'", "true", "the number 3": a value as messages describe it. */
const char *config_got(const struct json_value *v, struct arena *a);
/* A scalar's text as it was written; NULL for lists and objects. Null is "". */
const char *config_scalar(const struct json_value *v, struct arena *a);
/* The value as JSON on one line. */
const char *config_json(const struct json_value *v, struct arena *a);
/* The tree of a JSON text that is known to be whole. */
struct json_value *config_tree_of(struct str json, struct arena *a);
/* Adds or replaces a member of an object that was built only with this function. */
void config_member(struct json_value *object, const char *key, struct json_value v,
		   struct arena *a);
/* A name as a key of a configuration, with "_" for "-"; in the arena. */
const char *config_key(struct str name, struct arena *a);
/* Eight bytes of the text's digest; what: the kind of text. */
uint64_t config_digest(const char *what, struct str text);
/* A copy with room for more members or elements; the content is shared. */
struct json_value *config_copy(const struct config *c, const struct json_value *v, size_t more);
/* Puts v, with its mark, into an element or member of such a copy. */
void config_set_item(const struct config *c, struct json_value *at, const struct json_value *v);
/* The first list or object below that many levels of them, v itself counted; NULL: none. */
const struct json_value *config_deeper(const struct json_value *v, size_t levels);
/* The member of that name or NULL; is_server: "tp" and tensor_parallel_size are one name. */
struct json_value *config_get_str(const struct json_value *object, struct str key, bool is_server);
/* The member, when it is there and not null. */
const struct json_value *config_get(const struct json_value *object, const char *key);

/* e as a finding at v: "FILE:LINE:COLUMN: PATH: TEXT". Always -1. */
__attribute__((format(printf, 5, 6)))
int config_refuse(const struct config *c, struct err *e, const struct json_value *v,
		  const char *path, const char *fmt, ...);

/* ---- config_names.c ---- */

/* The sections that have keys of the command line; ended by NULL. */
extern const char *const config_section_names[];
/*
 * Spells the keys of a file as they are stored: "_" for "-", and env.NAME as a member of env.
 * section: whose keys the file has; NULL: it is a whole configuration. -1 with e: two that are one.
 */
int config_settle_names(const struct config *c, struct json_value *tree, const char *section,
			struct err *e);

/* ---- config_section.c ---- */

/* The key of the file itself that was probably meant, or NULL. */
const char *config_root_nearest(struct str key);
/* "section.key", in the arena. */
const char *config_path(const struct config_reader *r, const char *section, struct str key);
const struct opt *config_row(const struct opt_set *set, struct str key);
/*
 * Reads the keys of object into values, which has the set's defaults; given may be NULL. section:
 * its path in messages. others: keys that are read elsewhere; ended by NULL, may be NULL.
 */
void config_section(struct config_reader *r, const struct json_value *object,
		    const char *section, const struct opt_set *set, void *values,
		    struct opt_result *given, const char *const *others);
/* One value of a row; -1: a finding was made. */
int config_value(struct config_reader *r, const struct opt_set *set, const struct opt *row,
		 const struct json_value *v, struct str key, const char *path, void *values,
		 struct opt_result *given);
#define CONFIG_SECTIONS_MAX 6
/* The names of the sections that have the key, of which "server" may be vLLM or have sim's rows. */
size_t config_sections_of(struct str key, enum experiment_mode mode, const struct opt_set *sim,
			  const char *out[static CONFIG_SECTIONS_MAX]);
/* Reports an unknown key: where it belongs, or the nearest of names. */
void config_unknown(struct config_reader *r, const struct json_value *v, struct str key,
		    const char *section, const char *const *names, size_t n);
/* Returns an object, or NULL; a finding if it is another kind. */
const struct json_value *config_object(struct config_reader *r, const struct json_value *tree,
				       const char *key);
/* Whether v is an object of at most EXPERIMENT_KEYS_MAX keys; else a finding. */
bool config_is_object(struct config_reader *r, const struct json_value *v, const char *path);
/* A list of texts ended by NULL, from a list or one text. */
char **config_list(struct config_reader *r, const struct json_value *v, const char *path);

/* ---- config_search.c ---- */

/* Call after the benchmark was read. */
void config_search(struct config_reader *r, const struct json_value *tree);
/* The tree merged over its `profile`. */
const struct json_value *config_profiled(struct config_reader *r, const struct json_value *tree);

/* ---- config_server.c, config_values.c, config_bench.c, rules.c ---- */

void config_servers(struct config_reader *r, const struct json_value *tree);
/* The argument of vLLM's server for a key, by its name or as "tp" for -tp; NULL: none. */
const struct engine_arg *config_arg_of(struct str key);
/* The simulator's values that vLLM also has, or that were given. sim: the rows' values. */
const struct json_value *config_sim_values(struct config_reader *r, const struct json_value *args,
					   const void *sim);
void config_bench(struct config_reader *r, const struct json_value *tree);
/*
 * Where a sentence about an option of the benchmark belongs: at the value of the first given option
 * that it names, else at the key otherwise (NULL: none), else at the benchmark.
 */
struct config_place {
	const struct json_value *v; /* NULL: the file */
	const char *path, *text;    /* text: without what path says */
};
struct config_place config_place_of(const struct json_value *bench, const char *text,
				    const char *otherwise, struct arena *a);
const struct opt_set *config_bench_set(enum experiment_mode mode);
/* Names of all modes, with ", " between. */
const char *config_modes(struct arena *a);
/*
 * What to write in place of an option that is set elsewhere in an experiment; NULL: not such an
 * option.
 */
const char *config_elsewhere(enum experiment_mode mode, const char *name);
/* Whether an option of a verb is set elsewhere in an experiment, or has no effect in one. */
bool config_is_elsewhere(enum experiment_mode mode, const char *name);
void config_rules(struct config_reader *r, const struct json_value *tree);
