/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.c - see table.h: detecting a file's format, and what is the same for all formats.
 */
#include "input/table/table_internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"

/* ---- packed files ---- */

static const char *const endings[] = { ".gz", ".zst", ".bz2", ".xz", ".lz4" };
static const char *const archives[] = { ".zip", ".tar", ".tgz" };

static const struct {
	struct str bytes;
	size_t at;
} marks[] = {
	{ { "\x1f\x8b\x08", 3 }, 0 }, { { "\x28\xb5\x2f\xfd", 4 }, 0 },
	{ { "\xfd" "7zXZ\0", 6 }, 0 }, { { "\x04\x22\x4d\x18", 4 }, 0 },
	{ { "1AY&SY", 6 }, 4 }, { { "PK\3\4", 4 }, 0 }, { { "PK\5\6", 4 }, 0 },
	{ { "ustar", 5 }, 257 },
};

struct str table_plain(const char *name)
{
	struct str s = str_of(name);

	for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++)
		if (str_ends(s, str_of(endings[i])))
			return (struct str){ s.p, s.n - strlen(endings[i]) };
	return s;
}

bool table_is_packed(const char *name, struct str head)
{
	struct str s = str_of(name);

	if (table_plain(name).n < s.n)
		return true;
	for (size_t i = 0; i < sizeof(archives) / sizeof(*archives); i++)
		if (str_ends(s, str_of(archives[i])))
			return true;
	for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++) {
		size_t end = marks[i].at + marks[i].bytes.n;

		if (head.n >= end && memcmp(head.p + marks[i].at, marks[i].bytes.p,
			marks[i].bytes.n) == 0)
			return true;
	}
	return false;
}

/* ---- formats ---- */

struct table {
	const struct table_format *format;
	void *state;
	struct table_bytes bytes;
	struct buf name;
};

static const struct {
	const char *ending;
	const struct table_format *format;
} formats[] = {
	{ ".json", &table_json }, { ".jsonl", &table_json }, { ".ndjson", &table_json },
	{ ".csv", &table_csv }, { ".tsv", &table_csv }, { ".txt", &table_text },
	{ ".parquet", &table_parquet },
};

static const struct table_format *format_of_name(struct str name)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
		if (str_ends(name, str_of(formats[i].ending)))
			return formats[i].format;
	return NULL;
}

static const struct table_format *format_of_bytes(struct str all)
{
	size_t at = str_starts(all, STR("\xef\xbb\xbf")) ? 3 : 0;

	if (str_starts(all, STR("PAR1")))
		return &table_parquet;
	while (at < all.n && memchr(" \t\r\n", all.p[at], 4))
		at++;
	return at < all.n && (all.p[at] == '{' || all.p[at] == '[') ? &table_json : NULL;
}

bool table_is_name(const char *path)
{
	struct str name = table_plain(path);

	return format_of_name(name) || str_ends(name, STR(".tar")) || str_ends(name, STR(".tgz")) ||
		str_ends(name, STR(".zip"));
}

/* Reads the file: its bytes, unpacked if needed, and their name. */
static int read_bytes(struct table *t, const char *path, const struct table_opts *o,
	struct err *e)
{
	struct str packed, all;
	int rc = 0;

	if (file_map(path, &packed, e) < 0)
		return -1;
	all = packed;
	buf_add_text(&t->name, path);
	if (table_is_packed(path, packed) && !format_of_name(str_of(path))) {
		rc = table_unpack(path, packed, o, &all, &t->name, e);
		file_unmap(packed);
	}
	t->bytes = (struct table_bytes){ all, t->name.data };
	return rc;
}

struct table *table_open(const char *path, const struct table_opts *o, struct err *e)
{
	static const struct table_opts every = { 0 };
	struct table *t = mem_alloc(sizeof(*t));

	if (read_bytes(t, path, o ? o : &every, e) < 0)
		goto fail;
	t->format = format_of_name(table_plain(t->bytes.name));
	if (!t->format)
		t->format = format_of_bytes(t->bytes.all);
	if (!t->format && o && o->ending)
		t->format = format_of_name(str_of(o->ending));
	if (!t->format) {
		err_set(e, ERR_PARSE, "%s: its format is not recognized by its name or content; "
			"expected .json, .jsonl, .csv, .tsv, .txt or .parquet", t->bytes.name);
		goto fail;
	}
	t->state = t->format->open(&t->bytes, o ? o : &every, e);
	if (t->state)
		return t;
fail:
	table_close(t);
	return NULL;
}

void table_close(struct table *t)
{
	if (!t)
		return;
	if (t->state)
		t->format->close(t->state);
	file_unmap(t->bytes.all);
	buf_release(&t->name);
	free(t);
}

size_t table_rows(const struct table *t)
{
	return t->format->rows(t->state);
}

int table_row(struct table *t, size_t row, struct json_slice *out, struct err *e)
{
	struct buf where = { 0 };

	assert(row < table_rows(t));
	if (t->format->row(t->state, row, out, e) == 0)
		return 0;
	table_where(t, row, &where);
	if (e && !str_starts(str_of(e->text), str_of(t->bytes.name))) /* some errors name it
								       * already */
		err_wrap(e, "%s", where.data);
	buf_release(&where);
	return -1;
}

bool table_is_array(const struct table *t)
{
	return t->format == &table_json && table_rows(t) > 0 && !t->format->line(t->state, 0);
}

void table_where(const struct table *t, size_t row, struct buf *out)
{
	size_t line = t->format->line ? t->format->line(t->state, row) : 0;

	if (line)
		buf_printf(out, "%s:%zu", t->bytes.name, line);
	else
		buf_printf(out, "%s: row %zu", t->bytes.name, row);
}
