/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experiment/document_parts.h - what the files of the document share. Not for others.
 *
 * Parts are written as they are; document_write takes the secrets out of each before the next.
 */
#pragma once
#include "experiment/experiment.h"
#include "json/write.h"

struct document {
	struct json_writer w;
	const struct experiment *x;
	const struct outcome *o;
	const struct json_value *result; /* of the mode; NULL: none, or unreadable */
	struct arena arena;
};

/* ---- document_put.c ---- */

/* How numbers that are none are written. */
enum document_numbers { DOCUMENT_NULLS, DOCUMENT_INF };

/* A value of a tree; NULL: nothing. */
void document_put(struct document *d, const struct json_value *v, enum document_numbers numbers);
/* Its members into the object that is open, but those called as in but (ends NULL; or NULL). */
void document_put_members(struct document *d, const struct json_value *object,
			  const char *const *but, enum document_numbers numbers);
void document_put_text(struct document *d, const char *text); /* NULL: null */
void document_put_str(struct document *d, struct str text);
void document_put_number(struct document *d, double v);       /* null when it is none */
void document_put_path(struct document *d, const char *path); /* relative to the document */
void document_put_words(struct document *d, const char *const *words); /* NULL: none */
void document_put_env(struct document *d, char *const *lines); /* an object; NULL: none */

/* ---- the parts ---- */

void document_put_config(struct document *d);
void document_put_results(struct document *d);
void document_put_trust(struct document *d);
