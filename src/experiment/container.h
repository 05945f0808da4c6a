/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experiment/container.h - a server that runs in a container of docker's or podman's.
 *
 * `RUNTIME run --rm` is an ordinary child of ours (run/server.h, below a keeper): its output is
 * the server's log and a TERM to it goes on to the container. But the container itself is the
 * daemon's child and not in our tree. Two things make sure that it ends all the same:
 * container_end stops it by name, and a label on it names its owner (machine's boot, process number and
 * start time), so that container_clean ends those whose owner is dead at the next start.
 *
 * server.container is an object:
 *   runtime     docker | podman
 *   image       (must be given)
 *   network     host (nothing stands between load and server) | bridge (the port is published)
 *   gpus        absent: those allocated | all | none
 *   mounts      list of "SOURCE:TARGET[:ro]"
 *   env         object; added to server.env
 *   entrypoint  text or list; absent: the image's own, server.command unless it is `vllm serve`
 *   args        list of further words of `RUNTIME run`
 */
#pragma once
#include <stdatomic.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "experiment/experiment.h"

/* Whether the object is one as above; ERR_USAGE: "server.container.gpus: expected ...". */
int container_check(const struct json_value *container, struct err *e);

struct container_how {
	const char *run_id;        /* outcome.run_id: part of the name */
	unsigned port;             /* where it is to listen */
	char *const *args;         /* the server's own, --host and --port not among them; ends NULL */
	char *const *env;          /* "NAME=VALUE" lines for the server; ends NULL; may be NULL */
	const char *const *gpu;    /* UUIDs or indices; ends NULL; NULL or none: no GPU */
	bool is_amd;               /* which GPUs they are */
};

/* To be started by server_start. All in the arena. */
struct container {
	const char *runtime, *image, *name;
	char *const *argv;         /* RUNTIME run ... IMAGE args --host H --port P; ends NULL */
	char *const *env;          /* for the runtime's process: values of secret variables */
	const char *digest;        /* "NAME@sha256:...", or its id; NULL: not (yet) on this machine */
};

/* Words only: nothing is asked or started. s->container must be an object that was checked. */
int container_words(const struct experiment_server *s, const struct container_how *how,
		    struct arena *a, struct container *out, struct err *e);

/*
 * Before server_start: is the runtime there and its daemon awake; containers of dead owners are
 * ended (container_clean), the image's digest is filled. ERR_RUN with the runtime's own words.
 */
int container_begin(struct container *c, struct arena *a, const struct experiment_hooks *hooks,
		    struct err *e);
/* The image's digest once it runs, if it had to be pulled. */
void container_digest(struct container *c, struct arena *a);

/*
 * Before server_stop: `stop -t grace`, then `rm -f`. 0 also when it is gone already. -1: it may
 * still run; e says why.
 */
int container_end(const struct container *c, double grace_s, struct err *e);

/* Ends this user's containers whose owner is dead; says so. How many. Never an error. */
unsigned container_clean(const char *runtime, const struct experiment_hooks *hooks);
