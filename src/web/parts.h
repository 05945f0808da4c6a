/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web/parts.h - the files of a form that was uploaded (multipart/form-data), for ROUTE_PARTS
 * routes.
 *
 * A form is read once it is whole; it lies in a nameless file, so that its size costs no memory.
 * Names of files are only texts: never a path, made valid UTF-8, without control characters, and
 * at most PARTS_NAME_BYTES_MAX long.
 */
#pragma once
#include "base/err.h"
#include "http/form.h"
#include "web/route.h"

#define PARTS_NAME_BYTES_MAX 1000

struct parts {
	const struct web_request *request;
	struct form form;
	size_t n;
};

struct part {
	struct str field;  /* "file", "trace" */
	struct str name;   /* of the file; "" when it has none; in the request's arena */
	struct str bytes;  /* borrowed from the body */
};

/* -1: the body is no form. */
int parts_open(const struct web_request *r, struct parts *p, struct err *e);
/* 1, 0 at the end, -1: malformed, or more than WEB_PARTS_MAX. */
int parts_next(struct parts *p, struct part *out, struct err *e);

/*
 * upload.c: a part as a trace of that run, 0 for none. Its bytes are a file in the folder of jobs
 * for as long as the store copies them: $TMPDIR may be memory. id: the trace's number.
 */
int upload_put_trace(const struct web_request *r, int64_t run, const struct part *p, int64_t *id,
		     struct err *e);
