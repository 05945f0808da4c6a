/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template.h - a JSON text with fields in it, filled for one request.
 *
 * "{{name}}" as a whole value becomes the value with its own type; inside a longer
 * text it becomes text. Compiled once into pieces; filling copies. Private to endpoint/.
 */
#pragma once
#include "client/endpoint/endpoint.h"
#include "core/base/mem.h"

enum template_field {
	TEMPLATE_LITERAL, TEMPLATE_MODEL, TEMPLATE_PROMPT, TEMPLATE_OUTPUT_LEN, TEMPLATE_MESSAGES,
	TEMPLATE_IGNORE_EOS, TEMPLATE_REQUEST_ID,
};

struct template_piece {
	enum template_field field;
	bool is_inside;      /* part of a longer text */
	struct str literal;
};

struct template {
	struct template_piece *piece;
	size_t n;
	unsigned fields;     /* a bit for every field in use */
};

/* json: one valid value. -1: e names the field that is unknown or not allowed there. */
int template_compile(struct template *t, struct str json, struct arena *a, struct err *e);
/* Appends the value for s. -1: the sample has no such value in this form. */
int template_fill(const struct template *t, const struct encode_opts *o, const struct sample *s,
		  struct buf *out, struct err *e);
