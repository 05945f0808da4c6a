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
