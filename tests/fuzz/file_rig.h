/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_rig.h - arbitrary bytes as a tokenizer's file, in a directory of its own.
 */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "core/base/file.h"
#include "core/base/str.h"
#include "input/token/tokenizer.h"

static char rig_dir[] = "/tmp/profllm-fuzz-XXXXXX";

static void rig_remove(void)
{
	char command[64];

	snprintf(command, sizeof command, "rm -rf %s", rig_dir);
	CHECK(system(command) == 0);
}

static void rig_write(const char *name, struct str text)
{
	char *path = file_join(rig_dir, name);
	FILE *f = fopen(path, "w");

	CHECK(f && fwrite(text.p ? text.p : "", 1, text.n, f) == text.n && fclose(f) == 0);
	free(path);
}

/* Call before the first input; config is written next to the files, NULL for none. */
static void rig_begin(const char *config)
{
	CHECK(setenv("PROFLLM_CACHE_DIR", "", 1) == 0 && mkdtemp(rig_dir));
	atexit(rig_remove);
	if (config)
		rig_write("tokenizer_config.json", str_of(config));
}

/* The file loads or gives one sentence; what loads encodes text and decodes it again. */
static void rig_check(const char *name, struct str file, struct str text)
{
	char *path = file_join(rig_dir, name);
	struct err e = { 0 };
	struct tokenizer *t;
	struct buf back = { 0 };
	struct ids ids = { 0 };

	rig_write(name, file);
	t = tokenizer_load(path, NULL, &e);
	CHECK(t || (e.code != ERR_NONE && e.text[0]));
	/* A pattern may be one that the regex library gives up on. */
	if (t && tokenizer_encode(t, text, true, &ids) == 0) {
		CHECK(tokenizer_count(t, text, true) == ids.count);
		CHECK(tokenizer_decode(t, ids.id, ids.count, true, &back) == 0);
		CHECK(back.len == 0 || utf8_is_valid(buf_str(&back)));
	}
	tokenizer_free(t);
	buf_release(&back);
	ids_release(&ids);
	free(path);
}

/* Appends one byte in base64. */
static void rig_base64(struct buf *out, unsigned byte)
{
	static const char digit[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	buf_printf(out, "%c%c==", digit[byte >> 2], digit[(byte & 3) << 4]);
}
