/* SPDX-License-Identifier: Apache-2.0 */
/* names.h - what the files of engine/ share about names. Not for other layers. */
#pragma once
#include "host/engine/args.h"

/* By the whole name or another spelling, with dashes: "--model", "-tp"; NULL: none. */
const struct engine_arg *engine_arg_spelled(struct str typed);
/* The only one whose name begins so (without dashes), of switches alone if asked. */
const struct engine_arg *engine_arg_beginning(struct str typed, bool is_switch, bool *is_several);
/* The name that was probably meant, or NULL. */
const char *engine_arg_nearest(struct str name);
/* What belongs to the option at `at`, of which arg and path are known, if it has no "=". */
void engine_argv_take(char *const *at, struct engine_token *t);
