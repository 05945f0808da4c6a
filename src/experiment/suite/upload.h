/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upload.h - sends a document with the traces of its run to a dashboard, or stores it in a spool
 * folder until it can be sent.
 *
 * POST of the document as JSON to URL/api/upload/raw (URL may itself name a page of another path
 * that ends in "/raw"). 2xx: taken; 409: already there, which counts as success. No answer, 408,
 * 429, 5xx: tried again after a random pause that grows, then spooled: written to the spool
 * folder, to be sent by the next upload or by upload_spool. With a refused token (401, 403) it is
 * spooled too,
 * because the document is not at fault. Any other 4xx means that the document is: an error with the
 * server's words, and nothing is spooled. Redirects are refused, so that a token goes where the
 * user sent it.
 *
 * The token is read from its file when it is needed, or is the one that a dashboard of this user
 * has stored (fetch/dashboard.h); it is in no spool file and no message. If two runs send the same
 * spool file, the dashboard recognizes it by its content.
 *
 * Traces follow their document, one request each (POST of a form to
 * URL/api/data/experiments/RUN/traces), read from disk while they are sent. If not all of them can
 * be sent now, the document is spooled with their paths: it is sent again with them, which changes
 * nothing else. A trace that is gone by then, has changed, is larger than TRACE_BYTES_MAX, or is
 * refused is a warning.
 *
 * A spool file is one JSON object: "url", "token_file" (a path or null), "document", "traces" (a
 * list of "path", "bytes", "changed_ns"; absent: none). Its name is made of all of that, so that
 * nothing is spooled twice.
 */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/str.h"

struct upload_trace {
	const char *path;        /* absolute: it is sent from another folder when it waits */
	uint64_t bytes;
	int64_t changed_ns;      /* CLOCK_REALTIME; 0: not known */
};

struct upload_opts {
	const char *url;         /* see dashboard.h; NULL: as spooled (upload_spool only) */
	bool is_moved;           /* upload_spool: all of it goes to url, wherever it was to go */
	const char *token_file;  /* its first line is the token; NULL: see dashboard.h */
	const char *spool;       /* folder, made when needed; NULL: the state folder's */
	unsigned tries;          /* 0: UPLOAD_TRIES */
	unsigned pause_ms;       /* before the second try; 0: UPLOAD_PAUSE_MS */
	const struct upload_trace *trace; /* of the document's run; upload_spool has its own */
	size_t n_traces;
	const atomic_bool *cancel;
	void *self;
	void (*line)(void *self, const char *text); /* what was sent; may be NULL */
	void (*warn)(void *self, const char *text); /* what waits; may be NULL */
};

enum upload_end { UPLOAD_SENT, UPLOAD_SPOOLED };

/* Checks, before hours of measuring, that url is valid and the token can be read. Sends nothing. */
int upload_check(const struct upload_opts *o, struct err *e);
/*
 * name is for messages. UPLOAD_SENT; UPLOAD_SPOOLED with a warning; -1 with e: refused, a token
 * file that cannot be read, or neither sent nor spooled.
 */
int upload_document(const struct upload_opts *o, struct str document, const char *name,
		    struct err *e);
/*
 * Sends o->trace to a run that o->url has, by its number or run_id; may_have: it may have some of
 * them already, which are not sent again. *sent: how many arrived. -1: not all could be sent.
 */
int upload_traces(const struct upload_opts *o, struct str run, bool may_have, size_t *sent,
		  struct err *e);
/* Sends one file, whether the run has it or not. -1: it did not arrive. */
int upload_trace(const struct upload_opts *o, struct str run, const char *path, struct err *e);
/*
 * Sends what is in the spool, one try each, to its original target; o->token_file, when given,
 * replaces the stored one if the target is o->url or o->url is NULL. With o->is_moved everything
 * goes to o->url instead, with o->token_file alone, and what cannot be sent stays for its original
 * target. What is refused is renamed to FILE.refused and reported. Returns how many were sent;
 * *left (may be NULL) how many still wait. -1: the folder cannot be read.
 */
int upload_spool(const struct upload_opts *o, size_t *left, struct err *e);
