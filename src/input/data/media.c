/* SPDX-License-Identifier: Apache-2.0 */
/* media.c - see media.h. */
#include "input/data/media.h"

#include <assert.h>

#include "core/base/codec.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "input/fetch/fetch.h"
#include "input/media/image.h"

static bool starts(struct str s, const char *text)
{
	return str_starts(s, str_of(text));
}

static bool is_web(struct str ref)
{
	return starts(ref, "http://") || starts(ref, "https://");
}

/* Adds "data:<type>;base64,<bytes>" and gives bytes back. */
static int take_url(const char *type, struct buf *bytes, int result, struct buf *url, struct err *e)
{
	if (result == 0) {
		buf_printf(url, "data:%s;base64,", type);
		base64_encode(buf_str(bytes), url);
		if (url->is_over)
			result = err_set(e, ERR_LIMIT, "%zu bytes of %s are too many", bytes->len,
					 type);
	}
	buf_release(bytes);
	return result;
}

int media_jpeg_url(struct str bytes, struct buf *url, struct err *e)
{
	struct buf jpeg = { 0 };
	struct image m;
	int result;

	if (image_decode(bytes, true, &m, e) < 0)
		return -1;
	result = image_jpeg(&m, &jpeg, e);
	image_release(&m);
	return take_url("image/jpeg", &jpeg, result, url, e);
}

void media_image_url(struct str ref, struct buf *url)
{
	if (!is_web(ref) && !starts(ref, "file://") && !starts(ref, "data:image/"))
		buf_add_text(url, "file://");
	buf_add_str(url, ref);
}

void media_video_url(struct str ref, struct buf *url)
{
	if (!is_web(ref) && !starts(ref, "file://"))
		buf_add_text(url, "file://");
	buf_add_str(url, ref);
}

void media_mp4_url(struct str bytes, struct buf *url)
{
	buf_add_text(url, "data:video/mp4;base64,");
	base64_encode(bytes, url);
}

/* The path of a file:// URL: what is escaped there is not in a path. */
static void add_unescaped(struct buf *path, struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		int high = s.p[i] == '%' && s.n - i > 2 ? str_hex(s.p[i + 1]) : -1;
		int low = high < 0 ? -1 : str_hex(s.p[i + 2]);

		if (low < 0) {
			buf_add_char(path, s.p[i]);
			continue;
		}
		buf_add_char(path, (char)(high << 4 | low));
		i += 2;
	}
}

static int load(struct str ref, const atomic_bool *cancel, struct buf *out, struct err *e)
{
	struct buf name = { 0 };
	int result;

	if (memchr(ref.p, '\0', ref.n))
		return err_set(e, ERR_RUN, "a name with a NUL byte in it");
	if (starts(ref, "file://"))
		add_unescaped(&name, (struct str){ ref.p + 7, ref.n - 7 });
	else
		buf_add_str(&name, ref);
	buf_add_char(&name, '\0');
	result = is_web(ref) ? fetch_url(name.data, cancel, out, e) :
		 file_read(name.data, FETCH_BODY_BYTES_MAX, out, e);
	buf_release(&name);
	return result;
}

int media_inline_url(struct str ref, const atomic_bool *cancel, struct buf *url, struct err *e)
{
	struct buf bytes = { 0 }, png = { 0 };
	struct image m = { 0 };
	int result;

	if (starts(ref, "data:image/")) {
		buf_add_str(url, ref);
		return 0;
	}
	result = load(ref, cancel, &bytes, e);
	if (result == 0)
		result = image_decode(buf_str(&bytes), true, &m, e);
	buf_release(&bytes);
	if (result == 0)
		result = image_png(&m, &png, e);
	image_release(&m);
	if (take_url("image/png", &png, result, url, e) == 0)
		return 0;
	return err_wrap(e, "the image '%.*s' cannot be sent by its content",
			ref.n < 300 ? (int)ref.n : 300, ref.p);
}

void media_put_url(struct json_writer *w, const char *kind, struct str url)
{
	assert(strcmp(kind, "image_url") == 0 || strcmp(kind, "video_url") == 0);
	json_begin_object(w);
	json_member_text(w, "type", kind);
	json_member_object(w, kind);
	json_member_str(w, "url", url);
	json_end_object(w);
	json_end_object(w);
}

void media_put_text(struct json_writer *w, struct str text)
{
	json_begin_object(w);
	json_member_text(w, "type", "text");
	json_member_str(w, "text", text);
	json_end_object(w);
}

int media_put_audio(struct json_writer *w, const struct audio *a, struct err *e)
{
	struct buf wav = { 0 }, data = { 0 };

	if (audio_wav(a, &wav, e) < 0) {
		buf_release(&wav);
		return -1;
	}
	base64_encode(buf_str(&wav), &data);
	buf_release(&wav);
	json_begin_object(w);
	json_member_text(w, "type", "input_audio");
	json_member_object(w, "input_audio");
	json_member_str(w, "data", buf_str(&data));
	json_member_text(w, "format", "wav");
	json_end_object(w);
	json_end_object(w);
	buf_release(&data);
	return w->out->is_over ? err_set(e, ERR_LIMIT, "the audio is too long for a request") : 0;
}

void media_chat(struct str text, struct str parts, struct buf *messages)
{
	struct json_writer w = json_writer(messages);

	json_begin_array(&w);
	json_begin_object(&w);
	json_member_text(&w, "role", "user");
	json_member_array(&w, "content");
	json_begin_object(&w); /* upstream's order of keys, which is another elsewhere */
	json_member_str(&w, "text", text);
	json_member_text(&w, "type", "text");
	json_end_object(&w);
	if (parts.n > 2) /* more than "[]" */
		json_put_raw(&w, (struct str){ parts.p + 1, parts.n - 2 });
	json_end_array(&w);
	json_end_object(&w);
	json_end_array(&w);
}
