/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flags.h - arguments written as an object, back as the words of a command line.
 *
 *   {"tensor_parallel_size": 2, "enable_prefix_caching": false, "speculative_config":
 *    {"method": "ngram"}}
 *   -> --tensor-parallel-size 2 --no-enable-prefix-caching --speculative-config
 *      '{"method": "ngram"}'
 *
 * Known arguments come in the order of the table, whatever their order in the object, so that
 * equal experiments have equal commands; then the unknown ones as they stand. null: not
 * given. true: the bare flag; false: --no-NAME, or nothing for a flag that has no other side. An
 * object is its JSON text; so is a list, but of an argument that takes several words, or that
 * nobody knows. Of a dotted name ("compilation_config.mode") the part before the dot is a name.
 * Numbers are spelled as they were written.
 *
 * Pure. Nothing is judged here: engine_arg_check and engine_argv_check do that.
 */
#pragma once
#include "core/base/mem.h"
#include "core/json/read.h"

/* args: an object or NULL; skip: names with underscores to leave out, ended by NULL, or NULL. */
char **engine_flags(const struct json_value *args, const char *const *skip, struct arena *a);
