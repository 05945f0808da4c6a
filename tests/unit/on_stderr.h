/* SPDX-License-Identifier: Apache-2.0 */
/*
 * on_stderr.h - what is written to stderr between begin_stderr and end_stderr. One at a time, and
 * the text is valid until the next one.
 */
#pragma once
#include <stdio.h>
#include <unistd.h>

static FILE *stderr_file;
static int stderr_kept;

static void begin_stderr(void)
{
	stderr_kept = dup(2);
	stderr_file = tmpfile();
	assert_non_null(stderr_file);
	fflush(stderr);
	assert_true(dup2(fileno(stderr_file), 2) >= 0);
}

static char *end_stderr(void)
{
	static char text[512];
	size_t n;

	fflush(stderr);
	assert_true(dup2(stderr_kept, 2) >= 0);
	close(stderr_kept);
	rewind(stderr_file);
	n = fread(text, 1, sizeof(text) - 1, stderr_file);
	text[n] = '\0';
	fclose(stderr_file);
	return text;
}
