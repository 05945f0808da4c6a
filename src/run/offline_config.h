/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/offline_config.h - --config FILE.yaml before the command line is read, as vLLM's parser has
 * it: every key of the file becomes an option in front of those that were typed, so that what was
 * typed wins. true: the name alone; false: --no-name where there is one, else nothing; a list: its
 * elements; an object: JSON.
 *
 * Not upstream's: the file's options are put in front of the verb's own, where vLLM 0.32 puts
 * them in front of the verb's name and then fails.
 */
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "opt/opt.h"

/*
 * Replaces *argc and *argv (ended by NULL, in the arena) when --config is among them; a set that
 * has a --config of its own is left alone. ERR_USAGE: no name of a file, no .yaml or .yml, two of
 * them; ERR_IO or ERR_PARSE for the file.
 */
int offline_config(const struct opt_set *set, int *argc, char ***argv, struct arena *a,
		   struct err *e);
