/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experiment/roles.h - what servers of one experiment must know of each other.
 *
 * Ports are only known once they are reserved, so a configuration names them: $(NAME.url),
 * $(NAME.host), $(NAME.port) in any argument or environment line stand for where the server NAME
 * listens. Other texts with "$(" are left as they are.
 *
 * `profllm sim` knows roles itself: it is given --role, and a proxy the --prefill-url and
 * --decode-url (else --backend-url) of the others, a server with a cache server beside it
 * --kv-cache-url, each unless its words say it already.
 */
#pragma once
#include "base/err.h"
#include "base/mem.h"
#include "experiment/experiment.h"

/* Where a server listens; host is what is asked: "127.0.0.1". */
struct role_at {
	const char *host;
	unsigned port;
	const char *url;       /* NULL: http://host:port */
};

/* at: one for each of x's servers. ERR_USAGE: a name that no server has. */
int role_text(const struct experiment *x, const struct role_at *at, const char *text,
	      struct arena *a, char **out, struct err *e);
/* A list of such texts, ended by NULL (NULL: an empty one): environment lines. */
int role_list(const struct experiment *x, const struct role_at *at, char *const *list,
	      struct arena *a, char ***out, struct err *e);
/* The words that start server i, what its role needs included. */
int role_words(const struct experiment *x, size_t i, const struct role_at *at, char *const *argv,
	       struct arena *a, char ***out, struct err *e);
/* "http://127.0.0.1:8000"; in the arena. */
const char *role_url(const struct role_at *at, struct arena *a);
/* That it is profiled, measured: it runs a model. Not a proxy, not a cache. */
bool role_has_engine(enum server_role role);
