/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.h - what servers of one experiment must know of each other.
 *
 * Ports are only known once they are reserved, so a configuration names them: $(NAME.url),
 * $(NAME.host), $(NAME.port) in any argument or environment line mean where the server NAME
 * listens. Other texts with "$(" are left as they are.
 *
 * `profllm sim` knows roles itself: it is given --role, and a proxy the --prefill-url and
 * --decode-url (else --backend-url) of the others, a server with a cache server
 * --kv-cache-url, each unless its words say it already.
 */
#pragma once
#include "core/base/err.h"
#include "core/base/mem.h"
#include "experiment/config/experiment.h"

/* Where a server listens; host is what is asked: "127.0.0.1". */
struct role_at {
	const char *host;
	unsigned port;
	const char *url;       /* NULL: http://host:port */
};

/* at: one for each of x's servers. ERR_USAGE: a name that no server has. */
int role_text(const struct experiment *x, const struct role_at *at, const char *text,
	      struct arena *a, char **out, struct err *e);
/* The words that start server i, what its role needs included. */
int role_words(const struct experiment *x, size_t i, const struct role_at *at, char *const *argv,
	       struct arena *a, char ***out, struct err *e);
/* "http://127.0.0.1:8000"; in the arena. */
const char *role_url(const struct role_at *at, struct arena *a);
/* That it is profiled, measured: it runs a model. Not a proxy, not a cache. */
bool role_has_engine(enum server_role role);

/*
 * The words a server of an experiment is started with, as they are; the
 * dry run shows them, the life of the experiment uses them.
 *
 *   vllm serve MODEL --tensor-parallel-size 2 EXTRA... --host 127.0.0.1 --port 20000
 *
 * The command's words ("sim" alone is this program's own simulator), its arguments
 * (config_server_words), host and port, and what its role needs. A command that
 * names its own port as $(NAME.port) or $(NAME.url) says itself where it listens: no --host and no
 * --port are added.
 *
 * Pure but for the path of this program.
 */
/* Where server i is asked; port is not looked at when it is attached. Texts in a. */
struct role_at command_at(const struct experiment_server *s, unsigned port, struct arena *a);

/* at: one for each of x's servers. Lists end with NULL, in a. ERR_USAGE as role_text has it. */
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

