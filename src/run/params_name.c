/* SPDX-License-Identifier: Apache-2.0 */
/* params_name.c - see params.h: combinations as texts, and texts as names of files. */
#include <string.h>

#include "base/digest.h"
#include "base/limits.h"
#include "base/redact.h"
#include "json/python.h"
#include "run/params.h"

#define HASH_DIGITS 16

void params_text(const struct json_value *comb, const char *sep, struct buf *out)
{
	bool is_first = true;

	for (size_t i = 0; i < comb->count; i++) {
		if (str_is(comb->key[i], PARAMS_NAME_KEY))
			continue;
		buf_add_text(out, is_first ? "" : sep);
		buf_add_str(out, comb->key[i]);
		buf_add_char(out, '=');
		json_python_str(out, &comb->item[i]);
		is_first = false;
	}
}

void params_name(const struct json_value *comb, struct buf *out)
{
	const struct json_value *name = params_get(comb, PARAMS_NAME_KEY);

	if (name)
		json_python_str(out, name);
	else
		params_text(comb, "-", out);
}

/* Python's s.strip(c). */
static struct str strip(struct str s, char c)
{
	while (s.n && s.p[0] == c)
		s = (struct str){ s.p + 1, s.n - 1 };
	while (s.n && s.p[s.n - 1] == c)
		s.n--;
	return s;
}

/* What upstream makes of a name, and control characters as %XX. */
static void sanitize(struct str name, struct buf *out)
{
	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];

		if (c == '.' && i + 1 < name.n && name.p[i + 1] == '.') {
			buf_add_text(out, "__");
			i++;
		} else if ((unsigned char)c < 0x20 || c == 0x7f) {
			buf_printf(out, "%%%02X", (unsigned char)c);
		} else {
			buf_add_char(out, c == '/' ? '_' : c);
		}
	}
}

/* A name a file system takes, with the hash of the whole one at its end. */
static char *cut(struct str name, size_t bytes_max, struct arena *a)
{
	size_t n = bytes_max - HASH_DIGITS - 1;
	char hex[DIGEST_HEX];

	digest_hex(DIGEST_SHA256, name, hex);
	while (n && ((unsigned char)name.p[n] & 0xc0) == 0x80)
		n--; /* not within a character */
	return arena_printf(a, "%.*s~%.*s", (int)n, name.p, HASH_DIGITS, hex);
}

char *params_file_name_ending(struct str name, const char *ending, struct arena *a)
{
	size_t bytes_max = FILE_NAME_BYTES_MAX - strlen(ending);
	struct buf clean = { 0 }, hidden = { 0 };
	char *out, hex[DIGEST_HEX];
	struct str s, shown;

	shown = redact(name, &hidden);
	sanitize(shown, &clean);
	/* Two secrets are two files; which ones they are is nobody's business. */
	if (shown.p != name.p) {
		digest_hex(DIGEST_SHA256, name, hex);
		buf_printf(&clean, "~%.*s", HASH_DIGITS, hex);
	}
	buf_release(&hidden);
	s = strip(strip(buf_str(&clean), '\''), '"');
	out = s.n > bytes_max ? cut(s, bytes_max, a) : arena_text(a, s);
	buf_release(&clean);
	return *ending ? arena_printf(a, "%s%s", out, ending) : out;
}

char *params_file_name(struct str name, struct arena *a)
{
	return params_file_name_ending(name, "", a);
}

static void add_part(struct buf *out, const char *part)
{
	buf_add_text(out, out->len ? "-" : "");
	buf_add_text(out, part);
}

static void add_side(struct buf *out, struct params_side side)
{
	if (side.comb->count == 0)
		return;
	add_part(out, side.word);
	buf_add_char(out, '-');
	params_name(side.comb, out);
}

char *params_folder(struct params_side first, struct params_side second, const char *const *extra,
		    struct arena *a)
{
	struct buf text = { 0 };
	char *out;

	add_side(&text, first);
	add_side(&text, second);
	for (; extra && *extra; extra++)
		add_part(&text, *extra);
	out = params_file_name(buf_str(&text), a);
	buf_release(&text);
	return out;
}

char *params_folder_single_dash(const struct json_value *serve, const struct json_value *bench,
				struct arena *a)
{
	struct buf text = { 0 };
	char *out;

	buf_add_text(&text, "SERVE-");
	params_text(serve, "-", &text);
	buf_add_text(&text, "-BENCH-");
	params_text(bench, "-", &text);
	out = params_file_name(buf_str(&text), a);
	buf_release(&text);
	return out;
}
