/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experiment/config_bounds.h - what a configuration that somebody else sent may read and start.
 *
 * A dashboard runs configurations that its users send, as the user who started it. Bounds keep such
 * a configuration from that user's environment and files:
 *
 *   environment  ${NAME} stands for the variables that are named here and no others
 *   files        `include` and `import` read below the folders named here, after links
 *   messages     a mistake in an included file is reported by its place alone
 *   programs     with `commands`, nothing else is started and no key names a file to write
 *
 * Without bounds (NULL in struct config) a configuration is the user's own.
 */
#pragma once
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

struct config;
struct config_reader;
struct json_value;

struct config_bounds {
	const char *const *folders;
	size_t n_folders;
	const char *const *variables;
	size_t n_variables;
	/* As they would be typed: "vllm serve", "sim", "worker" (engines without a server). 0: any. */
	const char *const *commands;
	size_t n_commands;
};

/* The variable's value; NULL: it is not set, or not for this configuration. b may be NULL. */
const char *config_bounds_variable(const struct config_bounds *b, const char *name);

/*
 * Reads the file that a configuration calls name. A relative one is looked for in folder, or, where
 * that is NULL, in each folder of b. *real: its path without links; caller frees. ERR_USAGE without
 * a word on whether a file outside of the folders exists; ERR_IO, ERR_LIMIT.
 */
int config_bounds_read(const struct config_bounds *b, const char *name, const char *folder,
		       size_t limit, struct buf *out, char **real, struct err *e);

/*
 * What may be said of a mistake in another file than the configuration itself: text, which begins
 * with "LINE:COLUMN: ", or in bounds only that place. In c's arena.
 */
const char *config_bounds_fault(const struct config *c, const char *text);

/* Findings for whatever r->x would start or write and c's bounds do not allow. tree: its own. */
void config_bounds_check(struct config_reader *r, const struct json_value *tree);
