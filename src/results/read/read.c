/* SPDX-License-Identifier: Apache-2.0 */
/* read.c - see read.h. */
#include "results/read/read.h"

#include "core/base/file.h"
#include "core/json/write.h"
#include "input/table/codec.h"
#include "results/read/files.h"

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

void result_add_commands(const char *path, struct buf *bytes)
{
	struct str text = str_trim(buf_str(bytes)), whole = str_of(path), tail = STR(".json");
	struct str inside = text.n ? str_trim((struct str){ text.p + 1, text.n - 1 }) : text;
	const struct json_value *commands = NULL;
	struct buf members = { 0 };
	struct json_writer w = json_writer(&members);
	struct arena a = { 0 };
	size_t stem = whole.n - (str_ends(whole, tail) ? tail.n : 0);
	const char *side = arena_printf(&a, "%.*s.commands", (int)stem, path);

	if (str_ends(whole, tail) && str_starts(text, STR("{")) && str_starts(inside, STR("\"")) &&
	    str_ends(text, STR("}")) && file_exists(side))
		commands = result_json(side, COMMANDS_BYTES_MAX, &a, NULL);
	if (commands && commands->kind == JSON_OBJECT) {
		json_begin_object(&w);
		json_member_str(&w, "test_name", result_file_stem(result_file_name(path)));
		for (size_t i = 0; i < commands->count; i++)
			if (commands->item[i].kind == JSON_STRING) {
				json_key_str(&w, commands->key[i]);
				json_put_str(&w, commands->item[i].text);
			}
		json_end_object(&w);
		bytes->len = (size_t)(text.p + text.n - 1 - bytes->data);
		buf_add_text(bytes, ", ");
		buf_add(bytes, members.data + 1, members.len - 1);
	}
	buf_release(&members);
	arena_release(&a);
}
