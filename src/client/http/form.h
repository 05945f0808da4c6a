/* SPDX-License-Identifier: Apache-2.0 */
/*
 * form.h - reads a multipart/form-data body (RFC 7578) that is wholly in
 * memory. Parts are borrowed slices; nothing is allocated. The writer is
 * http/multipart.h.
 */
#pragma once
#include <stdbool.h>

#include "core/base/err.h"
#include "core/base/str.h"

#define FORM_BOUNDARY_MAX 70 /* RFC 2046 */

struct form {
	struct str rest;
	char line[FORM_BOUNDARY_MAX + 5]; /* CRLF, two dashes and the boundary */
	size_t line_bytes;
};

struct form_part {
	struct str name;
	struct str filename, type; /* p NULL when there is none */
	struct str body;
};

/* False: type is no multipart/form-data with a boundary, or the body does not begin with it. */
bool form_open(struct form *f, struct str type, struct str body);
/* The next part: 1, 0 at the end of the form, -1 when it is malformed (e). */
int form_next(struct form *f, struct form_part *part, struct err *e);
