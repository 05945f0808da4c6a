/* SPDX-License-Identifier: Apache-2.0 */
/* Form bodies byte for byte; boundaries that occur in no content; names that could break out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/http/multipart.h"

static void a_form_is_spelled_out(void **state)
{
	const struct multipart_file file = {
		STR("file"), "a b\xc3\xbc.flac", multipart_type_of("a b.flac"), STR("RIFF\r\n\0x"),
	};
	static const char want[] =
		"--B\r\nContent-Type: audio/flac\r\nContent-Disposition: form-data; name=\"file\"; "
		"filename=\"a%20b%C3%BC.flac\"\r\n\r\nRIFF\r\n\0x\r\n"
		"--B\r\nContent-Type: text/plain; charset=utf-8\r\n"
		"Content-Disposition: form-data; name=\"model\"\r\n\r\nm\xc3\xa9\r\n--B--\r\n";
	char type[MULTIPART_TYPE_BYTES];
	struct buf out = { 0 };

	(void)state;
	multipart_file(&out, "B", &file);
	multipart_text(&out, "B", STR("model"), STR("m\xc3\xa9"));
	multipart_end(&out, "B");
	assert_int_equal(out.len, sizeof(want) - 1);
	assert_memory_equal(out.data, want, out.len);
	multipart_type(type, "0123456789abcdef0123456789abcdef");
	assert_string_equal(type, "multipart/form-data; boundary=0123456789abcdef0123456789abcdef");
	buf_release(&out);
}

/* A name cannot end its header, whatever is in it. */
static void names_stay_in_their_line(void **state)
{
	const struct multipart_file file = { STR("f"), "x\"\r\n..", "t/t", STR("") };
	struct buf out = { 0 };

	(void)state;
	multipart_text(&out, "B", STR("a\"b\\c\r\nX: y"), STR("v"));
	assert_string_equal(out.data, "--B\r\nContent-Type: text/plain; charset=utf-8\r\n"
			    "Content-Disposition: form-data; "
			    "name=\"a\\\"b\\\\c%0D%0AX:\\ y\"\r\n\r\nv\r\n");
	buf_reset(&out);
	multipart_file(&out, "B", &file);
	assert_non_null(strstr(out.data, "filename=\"x%22%0D%0A..\"\r\n\r\n\r\n"));
	buf_release(&out);
}

static void boundaries_are_in_no_content(void **state)
{
	char first[MULTIPART_BOUNDARY_BYTES], again[MULTIPART_BOUNDARY_BYTES];
	char other[MULTIPART_BOUNDARY_BYTES];
	struct str content[2] = { STR("RIFF"), { NULL, 0 } };

	(void)state;
	multipart_boundary(first, content, 2);
	multipart_boundary(again, content, 2);
	assert_string_equal(first, again);
	assert_int_equal(strlen(first), MULTIPART_BOUNDARY_BYTES - 1);
	content[1] = STR("x");
	multipart_boundary(other, content, 2);
	assert_string_not_equal(first, other);
}

static void types_follow_names(void **state)
{
	(void)state;
	assert_string_equal(multipart_type_of("A.WAV"), "audio/x-wav");
	assert_string_equal(multipart_type_of("talk.mp3"), "audio/mpeg");
	assert_string_equal(multipart_type_of("none"), "application/octet-stream");
	assert_string_equal(multipart_type_of("x.y"), "application/octet-stream");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_form_is_spelled_out),
		cmocka_unit_test(names_stay_in_their_line),
		cmocka_unit_test(boundaries_are_in_no_content),
		cmocka_unit_test(types_follow_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
