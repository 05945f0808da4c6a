/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data files: the first byte picks the format, or a compressed file; every row is one valid
 * JSON object, in whatever order rows are read, and its place can be named.
 */
// LINKS: table
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "core/json/read.h"
#include "input/table/table_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_row(struct json_slice row)
{
	struct json_scan scan = { row.raw, 0 };
	struct json_slice value;

	CHECK(row.kind == JSON_OBJECT && json_next(&scan, &value, NULL) == 0 && json_at_end(&scan));
}

static void check_format(const struct table_format *format, const char *name, struct str all)
{
	static const struct table_opts every = { 0 };
	struct table_bytes bytes = { all, name };
	struct err e = { 0 };
	void *state = format->open(&bytes, &every, &e);
	struct json_slice row;
	size_t rows;

	CHECK(state || (e.code != ERR_NONE && e.text[0]));
	if (!state)
		return;
	rows = format->rows(state);
	CHECK(rows <= all.n);
	for (size_t i = 0, at = rows / 2; i < rows && i < 50; i++, at = (at + 7) % rows) {
		e = (struct err){ 0 };
		if (format->row(state, at, &row, &e) == 0)
			check_row(row);
		else
			CHECK(e.code != ERR_NONE && e.text[0]);
		CHECK(format->line(state, at) <= all.n + 1);
	}
	format->close(state);
}

/* By way of a real file: libarchive reads it twice. */
static void check_packed(struct str all)
{
	static int fd = -1;
	static char path[64];
	struct err e = { 0 };
	struct table *t;
	struct json_slice row;

	if (fd < 0) {
		fd = memfd_create("fuzz", 0);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		setenv("TMPDIR", "/dev/shm", 1);
	}
	CHECK(fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, all.p, all.n, 0) == (ssize_t)all.n);
	t = table_open(path, NULL, &e);
	CHECK(t || (e.code != ERR_NONE && e.text[0]));
	for (size_t i = 0; t && i < table_rows(t) && i < 20; i++)
		if (table_row(t, i, &row, &e) == 0)
			check_row(row);
	table_close(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct {
		const struct table_format *format;
		const char *name;
	} kind[] = {
		{ &table_json, "x.json" }, { &table_json, "x.jsonl" }, { &table_csv, "x.csv" },
		{ &table_csv, "x.tsv" }, { &table_text, "x.txt" },
	};
	const size_t kinds = sizeof(kind) / sizeof(*kind);
	char *copy;
	size_t k;

	if (size == 0)
		return 0;
	k = (data[0] - '0') % (kinds + 1);
	/* An exact copy, so that reading past its end is detected. */
	copy = malloc(size - 1 + (size == 1));
	CHECK(copy);
	memcpy(copy, data + 1, size - 1);
	if (k == kinds)
		check_packed((struct str){ copy, size - 1 });
	else
		check_format(kind[k].format, kind[k].name, (struct str){ copy, size - 1 });
	free(copy);
	return 0;
}
