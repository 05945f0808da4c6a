/* SPDX-License-Identifier: Apache-2.0 */
/*
 * References to media as content parts: what passes, what becomes a path, what is loaded and sent
 * by its content, and what failures say.
 *
 * threads: yes
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fetch_server.h"

#include "core/base/codec.h"
#include "core/base/file.h"
#include "input/data/media.h"
#include "input/media/image.h"
#include "scratch.h"

static uint8_t pixels[] = { 255, 0, 0, 0, 255, 0, 0, 0, 255, 9, 8, 7, 100, 200, 50, 0, 0, 0 };
static const struct image sample = { 3, 2, pixels };

static void assert_text(struct buf *got, const char *want)
{
	assert_true(got->len == strlen(want) && memcmp(got->data, want, got->len) == 0);
	buf_reset(got);
}

static void test_references(void **state)
{
	struct buf url = { 0 };

	(void)state;
	media_image_url(STR("http://a/b.png"), &url);
	assert_text(&url, "http://a/b.png");
	media_image_url(STR("https://a/b c"), &url);
	assert_text(&url, "https://a/b c");
	media_image_url(STR("file:///x"), &url);
	assert_text(&url, "file:///x");
	media_image_url(STR("data:image/png;base64,AAAA"), &url);
	assert_text(&url, "data:image/png;base64,AAAA");
	media_image_url(STR("data:text/plain,x"), &url);
	assert_text(&url, "file://data:text/plain,x");
	media_image_url(STR("/tmp/a b%.png"), &url);
	assert_text(&url, "file:///tmp/a b%.png");
	media_image_url(STR("rel/a.png"), &url);
	assert_text(&url, "file://rel/a.png");
	media_image_url(STR("HTTP://a"), &url);
	assert_text(&url, "file://HTTP://a");
	media_video_url(STR("https://a/v.mp4"), &url);
	assert_text(&url, "https://a/v.mp4");
	media_video_url(STR("data:video/mp4;base64,AAAA"), &url);
	assert_text(&url, "file://data:video/mp4;base64,AAAA");
	media_mp4_url(STR("\1\2\3\4"), &url);
	assert_text(&url, "data:video/mp4;base64,AQIDBA==");
	buf_release(&url);
}

static void test_parts(void **state)
{
	struct buf out = { 0 };
	struct json_writer w = json_writer(&out);
	float sound[] = { 0, 0.5f };
	struct audio a = { sound, 2, 1, 16000 };
	struct err e = { 0 };

	(void)state;
	json_begin_array(&w);
	media_put_url(&w, "image_url", STR("file://a\"\xc3\xa9"));
	media_put_url(&w, "video_url", STR("v"));
	media_put_text(&w, STR("t\n"));
	json_end_array(&w);
	assert_text(&out, "[{\"type\": \"image_url\", \"image_url\": {\"url\": \"file://a\\\"\\u00e9\"}},"
			  " {\"type\": \"video_url\", \"video_url\": {\"url\": \"v\"}},"
			  " {\"type\": \"text\", \"text\": \"t\\n\"}]");
	w = json_writer(&out);
	assert_int_equal(media_put_audio(&w, &a, &e), 0);
	assert_text(&out, "{\"type\": \"input_audio\", \"input_audio\": {\"data\": \"UklGRigAAABXQVZF"
			  "Zm10IBAAAAABAAEAgD4AAAB9AAACABAAZGF0YQQAAAAAAABA\", \"format\": \"wav\"}}");
	a.channels = 0;
	w = json_writer(&out);
	assert_int_equal(media_put_audio(&w, &a, &e), -1);
	assert_non_null(strstr(e.text, "WAV"));
	buf_reset(&out);
	media_chat(STR("a\"b"), STR("[{\"x\": 1}, {\"y\": 2}]"), &out);
	assert_text(&out, "[{\"role\": \"user\", \"content\": [{\"text\": \"a\\\"b\", \"type\": \"text\"},"
			  " {\"x\": 1}, {\"y\": 2}]}]");
	media_chat(STR("a"), STR("[]"), &out);
	assert_text(&out, "[{\"role\": \"user\", \"content\": [{\"text\": \"a\", \"type\": \"text\"}]}]");
	buf_release(&out);
}

/* The picture in a data URL of that kind. */
static struct image picture(const struct buf *url, const char *kind)
{
	struct str data = buf_str(url), head = str_cut(&data, ',');
	struct buf file = { 0 };
	struct err e = { 0 };
	struct image m;

	assert_true(str_is(head, kind));
	assert_true(base64_decode(data, &file));
	assert_int_equal(image_decode(buf_str(&file), false, &m, &e), 0);
	assert_int_equal(m.width, 3);
	assert_int_equal(m.height, 2);
	buf_release(&file);
	return m;
}

static void test_bytes(void **state)
{
	struct buf png = { 0 }, url = { 0 };
	struct err e = { 0 };
	struct image m;

	(void)state;
	assert_int_equal(image_png(&sample, &png, &e), 0);
	assert_int_equal(media_jpeg_url(buf_str(&png), &url, &e), 0);
	m = picture(&url, "data:image/jpeg;base64");
	image_release(&m);
	assert_int_equal(media_jpeg_url(STR("no picture at all"), &url, &e), -1);
	assert_int_equal(e.code, ERR_PARSE);
	buf_release(&png);
	buf_release(&url);
}

static void assert_inline(const char *ref)
{
	struct buf url = { 0 };
	struct err e = { 0 };
	struct image m;

	if (media_inline_url(str_of(ref), NULL, &url, &e) < 0)
		fail_msg("%s: %s", ref, e.text);
	m = picture(&url, "data:image/png;base64");
	assert_memory_equal(m.rgb, pixels, sizeof pixels);
	image_release(&m);
	buf_release(&url);
}

static void assert_not_inline(struct str ref, const char *name, const char *reason)
{
	struct buf url = { 0 };
	struct err e = { 0 };

	assert_int_equal(media_inline_url(ref, NULL, &url, &e), -1);
	if (!strstr(e.text, name) || !strstr(e.text, reason))
		fail_msg("\"%s\" without %s or %s", e.text, name, reason);
	assert_int_equal(url.len, 0);
	buf_release(&url);
}

static void test_local_files(void **state)
{
	struct buf png = { 0 }, ref = { 0 };
	struct err e = { 0 };
	char *path = file_join(dir, "a b%.png"), *bad = file_join(dir, "bad.png");

	(void)state;
	assert_int_equal(image_png(&sample, &png, &e), 0);
	assert_int_equal(file_write_atomic(path, buf_str(&png), &e), 0);
	assert_int_equal(file_write_atomic(bad, STR("\x89PNG\r\n\x1a\nand more"), &e), 0);
	assert_inline(path);
	buf_printf(&ref, "file://%s/a%%20b%%25.png", dir);
	assert_inline(ref.data);
	buf_reset(&ref);
	buf_printf(&ref, "file://%s/a b%%.png", dir); /* not escaped at all */
	assert_inline(ref.data);
	assert_not_inline(str_of(bad), bad, "damaged PNG");
	assert_not_inline(STR("/nowhere/x.png"), "'/nowhere/x.png'", "No such file");
	assert_not_inline(STR("a\0b"), "'a", "NUL");
	buf_reset(&ref);
	assert_int_equal(media_inline_url(STR("data:image/gif;base64,@@"), NULL, &ref, &e), 0);
	assert_text(&ref, "data:image/gif;base64,@@");
	free(path);
	free(bad);
	buf_release(&png);
	buf_release(&ref);
}

/* One answer of any bytes. */
static void *serve_bytes(void *self)
{
	struct server *s = self;
	char head[4096];
	int c = accept(s->listener, NULL, NULL);

	if (c >= 0 && read(c, head, sizeof head) > 0)
		send(c, s->asked.data, s->asked.len, MSG_NOSIGNAL);
	if (c >= 0)
		close(c);
	return NULL;
}

static void test_web(void **state)
{
	static const char *const answers[] = {
		"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone",
		"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n<html></html>", NULL,
	};
	struct server s = { 0 }, binary = { 0 };
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof a;
	struct buf png = { 0 };
	struct err e = { 0 };
	char url[64];

	(void)state;
	without_proxies();
	server_start(&s, answers);
	snprintf(url, sizeof url, "http://127.0.0.1:%d/x.png", s.port);
	assert_not_inline(str_of(url), url, "404");
	assert_not_inline(str_of(url), url, "not a JPEG, PNG, WebP or GIF");
	server_stop(&s);
	assert_int_equal(image_png(&sample, &png, &e), 0);
	buf_printf(&binary.asked, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", png.len);
	buf_add_str(&binary.asked, buf_str(&png));
	binary.listener = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(binary.listener, (struct sockaddr *)&a, sizeof a), 0);
	assert_int_equal(listen(binary.listener, 1), 0);
	assert_int_equal(getsockname(binary.listener, (struct sockaddr *)&a, &n), 0);
	assert_int_equal(pthread_create(&binary.thread, NULL, serve_bytes, &binary), 0);
	snprintf(url, sizeof url, "http://127.0.0.1:%d/y.png", ntohs(a.sin_port));
	assert_inline(url);
	pthread_join(binary.thread, NULL);
	close(binary.listener);
	buf_release(&binary.asked);
	buf_release(&png);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_references),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_local_files),
		cmocka_unit_test(test_web),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
