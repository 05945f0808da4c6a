/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_tree.h - the fields of schema/experiment.json as the tree that a document is.
 *
 * Paths become nodes: "a.b[].c" is a, in it b, in it "[]", in it c. A field that says "from"
 * takes in what another schema declares: the engine's arguments, the keys of a result file.
 */
#pragma once
#include "gen.h"

enum node_open { NODE_CLOSED, NODE_OPEN, NODE_OPEN_TEXT };

struct node {
	const char *name;               /* a key, "[]", or with is_pattern an expression */
	const char *type;               /* "text or null"; NULL: an object that nothing declares */
	const char *about, *ref;        /* ref: "experiment", in place of everything else */
	const struct json_value *field; /* values, pattern, min, max; or NULL */
	bool is_pattern, is_required, may_be_nan;
	enum node_open open;
	struct node **child;
	size_t n, cap;
};

/* all: an object with "experiment", "result" and "engine_args". list: "fields" or "suite". */
struct node *node_tree(const struct json_value *all, const char *list, bool has_arguments,
		       struct arena *a);
/* Whether one of the alternatives of its type is this ("null", "object", "list of text"). */
bool node_may_be(const struct node *n, const char *alternative);
/* What its list's elements are; NULL: it is no list. */
const char *node_element(const struct node *n);
struct node *node_child(const struct node *n, const char *name);
