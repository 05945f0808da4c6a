/* SPDX-License-Identifier: Apache-2.0 */
/*
 * params.h - combinations of parameters: read from files, named, put on command lines
 * (sweep spec 7.1, 7.2).
 *
 * A combination is a JSON object whose keys keep their order everywhere: in names, on the
 * command line, in the columns of a table. The key _benchmark_name names it and is no parameter.
 * Combinations are never changed: what adds a key makes a new object in the arena, which shares
 * values with the old one.
 *
 * Keys may be spelled with "-" or "_"; of a dotted key ("speculative-config.method") that is so
 * only before the first dot, because the rest is a key of a JSON value.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/read.h"

#define PARAMS_NAME_KEY "_benchmark_name"

struct params {
	const struct json_value *item; /* objects */
	size_t n;
	const char *twice; /* by params_read: where an object has one key twice; NULL: nowhere */
};

/*
 * Appends the JSON text that an option's value gives: the value itself when it is JSON ("[...]", "{...}")
 * and no file has that name, else the content of that file.
 */
int params_load(const char *value, struct buf *out, struct err *e);
/*
 * A file or text: a list of objects, or an object of objects whose keys become _benchmark_name;
 * both may be empty. path: as params_load; NULL: one empty combination. Mistakes are ERR_RUN, in
 * upstream's words.
 */
int params_read(const char *path, struct arena *a, struct params *out, struct err *e);
int params_parse(struct str text, struct arena *a, struct params *out, struct err *e);

/* "k=v" of all keys but the name, values as Python's str(), with sep between. */
void params_text(const struct json_value *comb, const char *sep, struct buf *out);
/* _benchmark_name, else the text with "-" between. Nothing for an empty combination. */
void params_name(const struct json_value *comb, struct buf *out);

/* Whether the key is there in one of its spellings; json_get: exactly as spelled. */
bool params_has(const struct json_value *comb, const char *key);

/* Python's comb | other: other's values replace comb's in place; new keys come last. */
const struct json_value *params_or(const struct json_value *comb, const struct json_value *other,
				   struct arena *a);
/* Only the keys that keeps says yes to. */
const struct json_value *params_filter(const struct json_value *comb,
				       bool (*keeps)(const void *self, struct str key),
				       const void *self, struct arena *a);
const struct json_value *params_with_int(const struct json_value *comb, const char *key,
					 int64_t value, struct arena *a);
const struct json_value *params_with_text(const struct json_value *comb, const char *key,
					  const char *value, struct arena *a);

/*
 * The command with the combination applied; ended by NULL, in the arena. Options already present
 * are replaced in place ("--key value" and "--key=value"), the rest is added at the end. true and
 * false become --key and --no-key (dotted: --a.b=true), an object its JSON text, anything else
 * Python's str(). A bare flag gets its value inserted; the option after it is not overwritten.
 */
char **params_apply(const struct json_value *comb, char *const *argv, struct arena *a);

/* Python's ==: 1 equals 1.0 and True; objects by keys, whatever their order. */
bool params_equal(const struct json_value *x, const struct json_value *y);

/*
 * The folder of a pair of combinations below the experiment's: "SERVE--NAME-BENCH--NAME", without
 * the part of an empty combination, then the extra parts (NULL: none; else ended by NULL), joined
 * by "-" and made a file name: "/" becomes "_", ".." becomes "__", quotes at the ends are removed
 * (all as upstream); control characters become %XX; names over 255 bytes are cut and end with "~"
 * and 16 hexadecimal digits of their SHA-256. "" when nothing is left. first and second are the
 * words: "SERVE-" and "BENCH-", or "STARTUP-".
 */
struct params_side { const char *word; const struct json_value *comb; };
char *params_folder(struct params_side first, struct params_side second, const char *const *extra,
		    struct arena *a);
/* serve_multi's former spelling: SERVE-NAME-BENCH-NAME, both words always there. */
char *params_folder_single_dash(const struct json_value *serve, const struct json_value *bench,
				struct arena *a);
/* One name as a file name as above: for files like "SERVE-NAME-failure.json". */
char *params_file_name(struct str name, struct arena *a);
/* The same with an ending that stays when the name is cut: ".log". */
char *params_file_name_ending(struct str name, const char *ending, struct arena *a);
