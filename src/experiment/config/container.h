/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container.h - a server that runs in a container of docker or podman.
 *
 * `RUNTIME run --rm` is an ordinary child of ours (server/server.h, below a keeper): its output is
 * the server's log and a TERM to it is passed on to the container. But the container itself is the
 * daemon's child and not in our tree. Three things ensure that it ends all the same: container_end
 * stops it by name; when we were killed the keeper removes it (container.remove, keeper.h); and a
 * label on it names its owner (the machine's boot, process number and start time), so that
 * container_begin ends those whose owner and keeper are dead at the next start.
 *
 * The first word of server.command (`vllm serve`) is the entry point, whatever the image's own is.
 *
 * server.container is an object:
 *   runtime     docker | podman
 *   image       (must be given)
 *   network     host (nothing is between load and server) | bridge (the port is published)
 *   gpus        absent: those allocated | all | none
 *   mounts      list of "SOURCE:TARGET[:ro]"
 *   env         object; added to server.env
 *   args        list of further words of `RUNTIME run`
 */
#pragma once
#include <stdatomic.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "experiment/config/experiment.h"

/* Whether the object is one as above; ERR_USAGE: "server.container.gpus: expected ...". */
int container_check(const struct json_value *container, struct err *e);

struct container_how {
	const char *run_id;        /* outcome.run_id: part of the name */
	unsigned port;             /* where it is to listen */
	char *const *words;        /* of run.h: command, arguments, --host, --port; ends NULL */
	char *const *env;          /* "NAME=VALUE" lines for the server; ends NULL; may be NULL */
	const char *const *gpu;    /* UUIDs or indices; ends NULL; NULL or none: no GPU */
	bool is_amd;               /* which GPUs they are */
	const char *folder;        /* of ours that it sees under the same path: traces; or NULL */
};

/* The words for server_start. All in the arena. */
struct container {
	const char *runtime, *image, *name;
	char *const *argv;         /* RUNTIME run ... --entrypoint WORD IMAGE WORDS; ends NULL */
	char *const *env;          /* for the runtime's process: values of secret variables */
	char *const *remove;       /* words that end and remove it; ends NULL */
	const char *digest;        /* "NAME@sha256:..." or "sha256:...": by container_begin; or NULL */
};

/* Only makes words: nothing is asked or started. s->container is an object that was checked. */
int container_words(const struct experiment_server *s, const struct container_how *how,
		    struct arena *a, struct container *out, struct err *e);

/*
 * Called before server_start: checks that the runtime is there and its daemon answers; ends
 * containers of dead owners, pulls a missing image, fills digest. ERR_USAGE: no such runtime;
 * ERR_RUN with the runtime's own words; ERR_CANCELLED. hooks may be NULL.
 */
int container_begin(struct container *c, struct arena *a, const struct experiment_hooks *hooks,
		    struct err *e);

/*
 * Called before server_stop: `stop -t grace`, then `rm -f`. Also 0 when it is gone already. -1: it
 * may still run; e says why.
 */
int container_end(const struct container *c, double grace_s, struct err *e);
