/* SPDX-License-Identifier: Apache-2.0 */
/* multipart.c - see multipart.h. */
#include "client/http/multipart.h"

#include <inttypes.h>
#include <stdio.h>

#define FNV_OFFSET 0xcbf29ce484222325u
#define FNV_PRIME 0x100000001b3u

static uint64_t mix(uint64_t hash, struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		hash = (hash ^ (unsigned char)s.p[i]) * FNV_PRIME;
	return (hash ^ s.n) * FNV_PRIME;
}

void multipart_boundary(char out[MULTIPART_BOUNDARY_BYTES], const struct str *content, size_t n)
{
	uint64_t hash = FNV_OFFSET;
	bool is_taken = true;

	for (size_t i = 0; i < n; i++)
		hash = mix(hash, content[i]);
	while (is_taken) {
		snprintf(out, MULTIPART_BOUNDARY_BYTES, "%016" PRIx64 "%016" PRIx64, hash,
			 mix(~hash, STR("boundary")));
		is_taken = false;
		for (size_t i = 0; i < n; i++)
			is_taken |= content[i].n && memmem(content[i].p, content[i].n, out,
							   MULTIPART_BOUNDARY_BYTES - 1);
		hash++;
	}
}

void multipart_type(char out[MULTIPART_TYPE_BYTES], const char *boundary)
{
	snprintf(out, MULTIPART_TYPE_BYTES, "multipart/form-data; boundary=%s", boundary);
}

/* A quoted string: quotes and backslashes are escaped, what no header can hold is encoded. */
static void add_quoted(struct buf *out, struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c < 0x20 || c == 0x7f) {
			buf_printf(out, "%%%02X", c);
			continue;
		}
		if (c == '"' || c == '\\' || c == ' ')
			buf_add_char(out, '\\');
		buf_add_char(out, (char)c);
	}
}

/* Percent-encodes file names, except the characters that RFC 3986 leaves unencoded. */
static void add_encoded(struct buf *out, struct str s)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-._~";

	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] && strchr(plain, s.p[i]))
			buf_add_char(out, s.p[i]);
		else
			buf_printf(out, "%%%02X", (unsigned char)s.p[i]);
	}
}

static void begin_part(struct buf *out, const char *boundary, const char *type, struct str name)
{
	buf_printf(out, "--%s\r\nContent-Type: %s\r\nContent-Disposition: form-data; name=\"",
		   boundary, type);
	add_quoted(out, name);
	buf_add_char(out, '"');
}

void multipart_text(struct buf *out, const char *boundary, struct str name, struct str value)
{
	begin_part(out, boundary, "text/plain; charset=utf-8", name);
	buf_add_text(out, "\r\n\r\n");
	buf_add_str(out, value);
	buf_add_text(out, "\r\n");
}

void multipart_file(struct buf *out, const char *boundary, const struct multipart_file *f)
{
	begin_part(out, boundary, f->type, f->name);
	buf_add_text(out, "; filename=\"");
	add_encoded(out, str_of(f->file));
	buf_add_text(out, "\"\r\n\r\n");
	buf_add_str(out, f->bytes);
	buf_add_text(out, "\r\n");
}

void multipart_end(struct buf *out, const char *boundary)
{
	buf_printf(out, "--%s--\r\n", boundary);
}

const char *multipart_type_of(const char *file)
{
	static const struct { const char *end, *type; } known[] = {
		{ ".wav", "audio/x-wav" }, { ".mp3", "audio/mpeg" }, { ".flac", "audio/flac" },
		{ ".ogg", "audio/ogg" }, { ".opus", "audio/ogg" }, { ".m4a", "audio/mp4" },
		{ ".mp4", "video/mp4" }, { ".webm", "video/webm" },
	};
	const char *dot = strrchr(file, '.');

	for (size_t i = 0; dot && i < sizeof(known) / sizeof(*known); i++)
		if (str_eq_nocase(str_of(dot), str_of(known[i].end)))
			return known[i].type;
	return "application/octet-stream";
}
