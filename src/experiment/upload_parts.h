/* SPDX-License-Identifier: Apache-2.0 */
/* experiment/upload_parts.h - what upload.c and upload_traces.c share; for no others. */
#pragma once
#include "experiment/upload.h"
#include "fetch/dashboard.h"

#define UPLOAD_PATH "/api/upload/raw"
#define UPLOAD_TRIES 4
#define UPLOAD_PAUSE_MS 500
#define UPLOAD_TIMEOUT_MS 60000

/* TAKEN; REFUSED for good; NOT_ALLOWED: the token; LATER: worth another try. */
enum answer { TAKEN, REFUSED, NOT_ALLOWED, LATER };

/* Where something goes, and as whom; url: as the user named it, for messages. */
struct upload_place { const char *url; struct dashboard *to; };

/* What a dashboard says of a document's run. */
struct upload_run {
	struct buf id;   /* its number, else its run_id */
	bool may_have;   /* it was there before: traces of it may be, too */
};

enum answer upload_judge(long status);
/* What the server said, as much as fits a sentence. */
void upload_say(const struct fetch_reply *reply, const char *url, struct err *e);
bool upload_is_cancelled(const struct upload_opts *o);
/* The pause before the next try, which doubles. */
void upload_rest(const struct upload_opts *o, unsigned *pause_ms);

/*
 * o->trace to that run, each in at most so many tries. What can never be sent is one warning.
 * *sent: how many arrived. TAKEN; LATER or NOT_ALLOWED with e: the rest is worth another try.
 */
enum answer upload_send_traces(const struct upload_opts *o, const struct upload_place *to,
			       unsigned tries, const struct upload_run *run, size_t *sent,
			       struct err *e);
