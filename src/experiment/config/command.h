/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.h - the addresses that servers of one experiment need of each other.
 *
 * Ports are only known once they are reserved, so a configuration names them: $(NAME.url),
 * $(NAME.host), $(NAME.port) in any argument or environment line are replaced by the address of the
 * server NAME. Other texts with "$(" are unchanged.
 *
 * `profllm sim` supports roles itself: it gets --role, and a proxy the --prefill-url and
 * --decode-url (else --backend-url) of the others, a server with a cache server --kv-cache-url,
 * unless they are in its words already.
 */
#pragma once
#include "core/base/err.h"
#include "core/base/mem.h"
#include "experiment/config/experiment.h"

/* A server's address; host is where to connect: "127.0.0.1". */
struct role_at {
	const char *host;
	unsigned port;
	const char *url;       /* NULL: http://host:port */
};

/* at: one for each of x's servers. ERR_USAGE: a name that no server has. */
int role_text(const struct experiment *x, const struct role_at *at, const char *text,
	      struct arena *a, char **out, struct err *e);
/* The words that start server i, including those for its role. */
int role_words(const struct experiment *x, size_t i, const struct role_at *at, char *const *argv,
	       struct arena *a, char ***out, struct err *e);
/* "http://127.0.0.1:8000"; in the arena. */
const char *role_url(const struct role_at *at, struct arena *a);
/* Whether it runs a model, so that it can be profiled and measured. Not a proxy, not a cache. */
bool role_has_engine(enum server_role role);

/*
 * The words that start a server of an experiment, for the dry run and for the run itself.
 *
 *   vllm serve MODEL --tensor-parallel-size 2 EXTRA... --host 127.0.0.1 --port 20000
 *
 * The command's words ("sim" alone is this program's own simulator), its arguments
 * (config_server_words), host and port, and the words for its role. A command that contains its own
 * port as $(NAME.port) or $(NAME.url) sets its address itself: no --host and no --port are added.
 *
 * Pure except for the path of this program.
 */
/* The address to connect to for server i; port is ignored when it is attached. Texts in a. */
struct role_at command_at(const struct experiment_server *s, unsigned port, struct arena *a);

/* at: one for each of x's servers. Lists end with NULL, in a. ERR_USAGE: see role_text. */
int command_words(const struct experiment *x, size_t i, const struct role_at *at, struct arena *a,
		  char ***out, struct err *e);
/*
 * The path of its program; NULL in *path: this very one. -1 with e: the first word, or the runtime
 * of its container, is not a program that can be started here. Not for a server that is attached.
 */
int command_find(const struct experiment_server *s, struct arena *a, const char **path,
		 struct err *e);
int command_env(const struct experiment *x, size_t i, const struct role_at *at, struct arena *a,
		char ***out, struct err *e);

