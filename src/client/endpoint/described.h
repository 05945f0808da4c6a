/* SPDX-License-Identifier: Apache-2.0 */
/*
 * described.h - an API described in a JSON file (--backend-file), so that a new one needs no code.
 * docs/guide/backends.md documents the file.
 *
 * Everything is checked when it is read; at run time it is an endpoint like any other.
 */
#pragma once
#include "client/endpoint/endpoint.h"
#include "core/base/mem.h"

/* The endpoint lives in the arena. NULL: ERR_USAGE, naming the file and what is wrong. */
const struct endpoint *endpoint_described(const char *path, struct arena *a, struct err *e);
/* The same from a text; errors call it name. */
const struct endpoint *endpoint_described_text(const char *name, struct str json, struct arena *a,
					       struct err *e);
