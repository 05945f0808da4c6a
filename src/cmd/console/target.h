/* SPDX-License-Identifier: Apache-2.0 */
/* target.h - files that will be written after an hour of load, checked before it. */
#pragma once
#include "core/base/err.h"
#include "out/report/report.h"

/*
 * Whether path can be written; what names the option in the error. A new file is made
 * and taken away again; a device or a pipe is not opened.
 */
int target_check(const char *what, const char *path, struct err *e);

/* The path of a run's result; other files of the run are named after it. */
struct target {
	char *path;      /* NULL: not chosen yet */
	bool is_claimed; /* an empty file is there, which goes unless it is written */
};
/*
 * Chooses it, once: filename as it is given, else a generated one that no other run has (unless
 * is_shared: lines of many runs are appended to it), which is said where it is another one than
 * usual. -1 with e.
 */
int target_name(struct target *t, const struct report_facts *f, const char *dir,
		const char *filename, bool is_shared, struct err *e);
void target_release(struct target *t);
