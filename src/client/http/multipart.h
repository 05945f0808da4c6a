/* SPDX-License-Identifier: Apache-2.0 */
/*
 * multipart.h - multipart/form-data bodies (RFC 7578), as browsers and aiohttp write them.
 *
 * Parts follow each other in the order of the calls:
 *
 *   multipart_boundary(boundary, content, n);
 *   multipart_file(out, boundary, ...); multipart_text(out, boundary, ...); ...
 *   multipart_end(out, boundary);
 */
#pragma once
#include <stddef.h>

#include "core/base/str.h"

#define MULTIPART_BOUNDARY_BYTES 33 /* 32 hexadecimal digits and a NUL */
#define MULTIPART_TYPE_BYTES 96     /* Content-Type with the boundary in it */

struct multipart_file {
	struct str name;      /* of the form's field */
	const char *file;     /* the file's own name, without folders */
	const char *type;     /* Content-Type */
	struct str bytes;
};

/*
 * Makes a boundary that occurs in none of the n contents; the same contents always give the same
 * one, so that a request can be repeated byte for byte.
 */
void multipart_boundary(char out[MULTIPART_BOUNDARY_BYTES], const struct str *content, size_t n);
/* "multipart/form-data; boundary=..." */
void multipart_type(char out[MULTIPART_TYPE_BYTES], const char *boundary);

/* Line ends in a name, which would end the header early, are sent percent-encoded. */
void multipart_text(struct buf *out, const char *boundary, struct str name, struct str value);
void multipart_file(struct buf *out, const char *boundary, const struct multipart_file *f);
void multipart_end(struct buf *out, const char *boundary);

/* Content-Type by the extension of a file's name; application/octet-stream when unknown. */
const char *multipart_type_of(const char *file);
