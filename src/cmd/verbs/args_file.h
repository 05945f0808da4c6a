/* SPDX-License-Identifier: Apache-2.0 */
/*
 * args_file.h - the user's file of arguments that the table of engine/args.h lacks.
 *
 * `profllm args import` writes it; `profllm run`, `args list` and `args show` read it.
 */
#pragma once
#include "host/engine/extra.h"

/* $XDG_CONFIG_HOME/profllm/engine_args.json, else ~/.config/...; NULL: no home. Caller frees. */
char *args_file_default(void);
/*
 * path NULL: the default one, and none is no fault: *out is empty then. ERR_USAGE: a path that was
 * given cannot be read, or a file is none of these.
 */
int args_file_load(const char *path, struct arena *a, struct engine_extra *out, struct err *e);
