/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scratch.h - one folder for the files of a test program, gone at its end.
 *
 * make_dir and remove_dir are the group's set-up and tear-down; dir is its path. No
 * compiled tokenizer is kept or taken while a test does not ask for it.
 */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/file.h"
#include "core/base/mem.h"

static char dir[] = "/tmp/profllm-unit-XXXXXX";

static int make_dir(void **state)
{
	(void)state;
	return setenv("PROFLLM_CACHE_DIR", "", 1) || !mkdtemp(dir) ? -1 : 0;
}

static int remove_dir(void **state)
{
	char command[sizeof dir + 8];

	(void)state;
	snprintf(command, sizeof command, "rm -rf %s", dir);
	return system(command);
}

/* Writes dir/name, which may be in a folder of its own, and returns the path. */
static inline const char *scratch_put(struct arena *a, const char *name, const char *text)
{
	char *path = arena_printf(a, "%s/%s", dir, name);
	char *slash = strrchr(path, '/');
	struct err e = { 0 };

	*slash = '\0';
	assert_int_equal(file_mkdirs(path, &e), 0);
	*slash = '/';
	if (file_write_atomic(path, str_of(text), &e) < 0)
		fail_msg("%s", e.text);
	return path;
}
