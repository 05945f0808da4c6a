/* SPDX-License-Identifier: Apache-2.0 */
/* web/job.h - jobs as JSON: uploads of many files, and experiments. Private to web/. */
#pragma once
#include "web/route.h"

/* The job the request's path names; 404 else. */
int job_find(const struct web_request *r, struct web_answer *a, struct job *out, struct err *e);
/* Members of an open object: all but the files. */
void job_put(struct json_writer *j, const struct job *job);
/*
 * "files": all of them, or, with seen, those that are done and were not before: seen has a flag for
 * each file and is brought up to date.
 */
void job_put_files(struct json_writer *j, const struct job *job, bool *seen);
bool job_is_over(const struct job *job);
