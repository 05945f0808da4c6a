/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experiment/shell.h - commands as a person can paste them: words quoted where a shell needs it,
 * what is secret as '***'.
 */
#pragma once
#include "base/str.h"
#include "experiment/experiment.h"

/* Words with blanks between; the value of an option whose name says that it is secret is hidden. */
void shell_words(struct buf *out, char *const *argv);
/* NAME=VALUE lines likewise. Nothing for NULL. */
void shell_env(struct buf *out, char *const *env);

/*
 * The benchmark of x as the command that would do the same by hand: `vllm bench serve` with the
 * options that were given, in the order of its help. url: of the server, put in front; NULL: left
 * out.
 */
void shell_benchmark(struct buf *out, const struct experiment *x, const char *url);
