/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.h - a few members of one JSON text, found in one pass without a tree.
 *
 * For the receive path: each streamed event is scanned once for the handful of
 * members that matter. Paths such as "usage.prompt_tokens" or
 * "choices[0].delta.content" are compiled once; a run fills one slice per path.
 *
 * - A key matches only at its own place: "text" inside a nested object the
 *   paths do not name is never taken.
 * - The whole text is read and checked by the reader's own rules: a run fails
 *   exactly where json_parse fails. There is no early exit, since usage may
 *   follow choices and the last duplicate of a key is used, as in the tree.
 * - Keys spelled with escapes are understood.
 *
 * No allocation. A compiled struct json_paths is read-only: threads may share it.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "core/base/str.h"
#include "core/json/read.h"

#define JSON_PATHS_MAX 16
#define JSON_PATH_STEPS_MAX 8  /* members and indices in one path */
#define JSON_PATH_NODES_MAX 64 /* distinct places on the way to all paths */

/* One place: a member name or an array index below its parent. Node 0 is the whole text. */
struct json_path_node {
	struct str name;      /* p NULL: an array index */
	uint64_t head;        /* the name's first 8 bytes, zero-filled; see scan.c */
	uint32_t index;
	uint32_t lengths;     /* one bit per length of a child's name; bit 31: 31 and more */
	uint32_t wanted;      /* one bit per path that ends here or below */
	int8_t path;          /* the path that ends here, or -1 */
	uint8_t child, next;  /* first child, next sibling; 0 = none */
};

struct json_paths {
	size_t count; /* paths */
	size_t nodes;
	struct json_path_node node[JSON_PATH_NODES_MAX];
};

/*
 * Compiles n paths: names of plain ASCII without '.', '[' and '"', separated by
 * '.', each followed by any number of [index]. The texts are borrowed and must
 * outlive *paths. A malformed, repeated or too long path is a bug and asserts.
 */
void json_scan_paths_init(struct json_paths *paths, const char *const *path, size_t n);

/*
 * Fills out[0..count): absent members get raw.p NULL (and JSON_NULL). 0, or -1
 * when the text is not one JSON value; out is then unspecified.
 */
int json_scan_run(const struct json_paths *paths, struct str text, struct json_slice *out);
