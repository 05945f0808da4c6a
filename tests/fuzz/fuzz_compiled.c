/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_compiled.c - compiled tokenizers that are not what was written.
 *
 * The first byte chooses. 'P': the rest are patches of a real compiled file, each a
 * position (three bytes) and a byte; unless nothing changes the file is refused.
 * Anything else: the input is the file.
 */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "input/token/cache.h"
#include "input/token/load.h"

#define SMALL "tests/unit/token/small.json"
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *aligned_copy(const void *p, size_t n)
{
	char *copy = aligned_alloc(COMPILED_ALIGN, (n / COMPILED_ALIGN + 1) * COMPILED_ALIGN);

	CHECK(copy);
	memcpy(copy, p, n);
	return copy;
}

static int try_to_read(const char *bytes, size_t n)
{
	struct model m = { 0 };
	struct err e = { 0 };
	int rc = compiled_read(&m, (struct str){ bytes, n }, &e);

	CHECK(rc == 0 || e.text[0]);
	model_release(&m);
	return rc;
}

static void check_patches(const uint8_t *data, size_t size)
{
	static struct buf file;
	char *copy;
	bool is_same;

	if (file.len == 0) {
		struct model m = { 0 };

		CHECK(model_load(&m, SMALL, NULL) == 0);
		compiled_write(&m, &file);
		model_release(&m);
	}
	copy = aligned_copy(file.data, file.len);
	for (size_t i = 0; i + 4 <= size; i += 4)
		copy[((size_t)data[i] << 16 | (size_t)data[i + 1] << 8 | data[i + 2]) % file.len] =
			(char)data[i + 3];
	is_same = memcmp(copy, file.data, file.len) == 0;
	CHECK((try_to_read(copy, file.len) == 0) == is_same);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy;

	if (size > 0 && *data == 'P') {
		check_patches(data + 1, size - 1);
		return 0;
	}
	copy = aligned_copy(data, size);
	CHECK(try_to_read(copy, size) == -1);
	free(copy);
	return 0;
}
