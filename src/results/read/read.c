/* SPDX-License-Identifier: Apache-2.0 */
/* read.c - see read.h. */
#include "results/read/read.h"

#include "core/base/file.h"
#include "input/table/codec.h"

static enum codec codec_of(struct str bytes)
{
	if (str_starts(bytes, STR("\x1f\x8b\x08")))
		return CODEC_GZIP;
	return str_starts(bytes, STR("\x28\xb5\x2f\xfd")) ? CODEC_ZSTD : CODEC_NONE;
}

bool result_is_packed(struct str bytes)
{
	return codec_of(bytes) != CODEC_NONE;
}

int result_unpack(struct str *bytes, size_t bytes_max, struct arena *a, struct err *e)
{
	struct buf plain = { 0 };
	enum codec codec = codec_of(*bytes);
	int rc;

	if (codec == CODEC_NONE)
		return 0;
	rc = codec_unpack_file(codec, *bytes, bytes_max, &plain, e);
	if (rc == 0)
		*bytes = arena_str(a, buf_str(&plain));
	buf_release(&plain);
	return rc;
}

struct json_value *result_json(const char *path, size_t bytes_max, struct arena *a, struct err *e)
{
	struct buf text = { .limit = bytes_max };
	struct json_value *v = NULL;
	struct str bytes;

	if (file_read(path, bytes_max, &text, e) == 0) {
		bytes = buf_str(&text);
		if (result_unpack(&bytes, bytes_max, a, e) < 0 || json_parse(a, bytes, &v, e) < 0) {
			err_wrap(e, "%s", path);
			v = NULL;
		}
	}
	buf_release(&text);
	return v;
}
