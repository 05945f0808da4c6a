/* SPDX-License-Identifier: Apache-2.0 */
/* web/events.h - server-sent events: what a job does, as it does it. Private to web/. */
#pragma once
#include "web/job.h"

struct events; /* one stream */

/*
 * Appends what has happened since the last call to out, as events; false: that was the end. Called
 * a few times a second by the one thread of all streams.
 */
typedef bool events_more(void *self, struct events *s, struct err *e);

/* The answer is a stream that more fills; drop frees self at its end. */
void events_answer(const struct web_request *r, struct web_answer *a, events_more *more,
		   void (*drop)(void *self), void *self);
/* One event; data is one line of JSON. */
void events_put(struct events *s, const char *name, struct str data);
struct web *events_web(const struct events *s);
/* Whether a job may have changed since this was last asked: reading it from the store pays. */
bool events_is_due(struct events *s);

/* Progress of an upload, file by file. */
void events_upload(const struct web_request *r, const struct job *job, struct web_answer *a);
