/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experiment/command.h - the words a server of an experiment is started with, as they are; the
 * dry run shows them, the life of the experiment uses them.
 *
 *   vllm serve MODEL --host 127.0.0.1 --port 20000 --tensor-parallel-size 2 EXTRA...
 *
 * The command's words; the model behind `serve` and `sim` (else --model); host and port; the
 * arguments (engine/flags.h); extra_args. The one word "sim" is this program's own simulator.
 *
 * Anywhere in command, args, extra_args and env {port}, {host} and {url} stand for the server's own
 * address, {NAME.port}, {NAME.host} and {NAME.url} for that of the server NAME: a proxy is told
 * where to send what it gets, although ports are found at the start. Other braces stay as they
 * are. A command that has {port} or {url} in it says itself where it listens: no --host and no
 * --port are added.
 *
 * Pure but for the path of this program.
 */
#pragma once
#include "experiment/experiment.h"

/* port[i]: of server i; of one that is attached it is not looked at. Ended by NULL; in a. */
char **command_words(const struct experiment *x, size_t server, const unsigned *port,
		     struct arena *a);
char **command_env(const struct experiment *x, size_t server, const unsigned *port,
		   struct arena *a);
/* Where it is asked: "http://127.0.0.1:20000", or the URL it is attached by. */
const char *command_url(const struct experiment *x, size_t server, const unsigned *port,
			struct arena *a);
/* Whether it is this program's simulator, by its words. */
bool command_is_sim(const struct experiment_server *s);
