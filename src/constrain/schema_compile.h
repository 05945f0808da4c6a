/* SPDX-License-Identifier: Apache-2.0 */
/*
 * constrain/schema_compile.h - a schema while it is compiled; private to schema_compile.c, which
 * knows names and references, and schema_keywords.c, which knows keywords.
 */
#pragma once
#include "constrain/schema.h"

struct reference {
	struct schema_node *from;
	struct str text;
	struct str where; /* pointer to the keyword, for the message */
	bool is_dynamic;
	struct reference *next;
};

struct compile {
	struct schema *schema;
	struct arena *arena;
	struct map node;     /* the bytes of a value's address: the node made of it */
	struct map resource; /* URI */
	struct map anchor;   /* URI#name */
	struct reference *open;
	struct buf where;    /* pointer to what is being read */
	size_t nodes;
	enum schema_draft draft; /* where $schema says nothing */
	bool is_shape_only;  /* whether it is a schema at all: no references, no patterns */
	struct err *e;
};

/* The node of a schema inside a resource, made if it is new; NULL with an error. */
struct schema_node *compile_node(struct compile *c, const struct json_value *v,
				 struct schema_resource *around);
/* One member of a schema object; unknown ones are ignored. */
int compile_keyword(struct compile *c, struct schema_node *n, const struct json_value *schema,
		    size_t i);
int compile_expected(struct compile *c, const char *what); /* -1: the error, with the place */
/* Steps to a member or item for messages; returns what compile_leave wants. */
size_t compile_enter(struct compile *c, struct str key);
size_t compile_enter_index(struct compile *c, size_t i);
void compile_leave(struct compile *c, size_t was);
int compile_anchor(struct compile *c, struct schema_node *n, struct str name);
