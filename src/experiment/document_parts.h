/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experiment/document_parts.h - what the files of the document share. Not for others.
 *
 * Everything is written through one writer that knows the secrets of this experiment: they are
 * collected first, from wherever a name says that a value is one, and no text that
 * holds one is written whole.
 */
#pragma once
#include "experiment/experiment.h"
#include "json/write.h"

#define DOCUMENT_SECRETS_MAX 256 /* texts kept out of a document; further ones only by name */

struct document {
	struct json_writer w;
	const struct experiment *x;
	const struct outcome *o;
	struct str secret[DOCUMENT_SECRETS_MAX];
	size_t n_secrets;
	const struct json_value *result; /* of the mode; NULL: none, or unreadable */
	struct arena arena;
};

/* ---- document_put.c ---- */

void document_find_secrets(struct document *d);

/* How numbers that are none are written. */
enum document_numbers { DOCUMENT_NULLS, DOCUMENT_INF };

/* A value of a tree; key: what it is called, which may make it a secret; NULL: nothing. */
void document_put(struct document *d, const struct json_value *v, const char *key,
		  enum document_numbers numbers);
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
