/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/contact.h - the first contact with a server, and why it refused every request.
 *
 * Before a tokenizer or a dataset is loaded, GET /v1/models tells whether the server can be
 * reached and takes the key. No prompt is sent. Only what is certain to fail is refused: a
 * server without that path, or with models it does not list, may well answer the requests.
 * What this cannot know, load/load.h's REFUSED_FIRST finds out.
 */
#pragma once
#include "record/record.h"
#include "run/remote.h"

struct contact {
	struct remote remote;  /* one of the base URLs */
	const char *path;      /* of the requests: --endpoint */
	const char *model;     /* what the requests name; NULL: not checked */
	const char *key_variable; /* where the key is looked for; NULL: OPENAI_API_KEY */
};

/* 0: nothing speaks against sending requests. -1: e is one sentence with the remedy. */
int contact_check(const struct contact *c, struct err *e);

/*
 * Why a request failed, on one line, the server's own words first: its status, the message in
 * the body, and for a key or a path that is wrong the remedy. error: as the record keeps it.
 */
void contact_add_failure(const struct contact *c, const struct request_row *row,
			 struct str error, struct buf *out);
