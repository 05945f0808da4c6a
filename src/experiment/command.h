/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experiment/command.h - the words a server of an experiment is started with, as they are; the
 * dry run shows them, the life of the experiment uses them.
 *
 *   vllm serve MODEL --tensor-parallel-size 2 EXTRA... --host 127.0.0.1 --port 20000
 *
 * The command's words ("sim" alone is this program's own simulator), its arguments
 * (config_server_words), host and port, and what its role needs (roles.h). A command that
 * names its own port as $(NAME.port) or $(NAME.url) says itself where it listens: no --host and no
 * --port are added.
 *
 * Pure but for the path of this program.
 */
#pragma once
#include "experiment/experiment.h"
#include "experiment/roles.h"

/* Where server i is asked; port is not looked at when it is attached. Texts in a. */
struct role_at command_at(const struct experiment_server *s, unsigned port, struct arena *a);
/* "http://127.0.0.1:20000" */
const char *command_url(const struct role_at *at, struct arena *a);

/* at: one for each of x's servers. Lists end with NULL, in a. ERR_USAGE as roles.h has it. */
int command_words(const struct experiment *x, size_t i, const struct role_at *at, struct arena *a,
		  char ***out, struct err *e);
/*
 * Where its program is; NULL in *path: this very one. -1 with e: the first word, or the runtime of
 * its container, is no program that can be started here. Not for a server that is attached.
 */
int command_find(const struct experiment_server *s, struct arena *a, const char **path,
		 struct err *e);
int command_env(const struct experiment *x, size_t i, const struct role_at *at, struct arena *a,
		char ***out, struct err *e);
