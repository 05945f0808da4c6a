/* SPDX-License-Identifier: Apache-2.0 */
/*
 * constrain/uri.h - references of a schema to names inside it (RFC 3986, section 5).
 *
 * Nothing is fetched; a URI is a name here.
 */
#pragma once
#include "base/arena.h"
#include "base/str.h"

/* The part before the first #, and what follows it; no #: all of it and an empty one. */
struct str uri_without_fragment(struct str uri, struct str *fragment);
/* What a reference means inside a document of that URI; neither has a fragment. In the arena. */
struct str uri_resolve(struct arena *a, struct str base, struct str reference);
struct str uri_decoded(struct arena *a, struct str text); /* %41 is A */
