/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_table.c - rows of JSON, CSV and text files, plain, compressed and in archives.
 *
 * Archives are written by libarchive itself.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <archive.h>
#include <archive_entry.h>
#include <cmocka.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "input/table/table.h"
#include "answers.h"
#include "scratch.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const char *in_dir(const char *name)
{
	static char path[8][300];
	static int k;

	k = (k + 1) % 8;
	snprintf(path[k], sizeof(path[k]), "%s/%s", dir, name);
	return path[k];
}

static void put(const char *name, struct str bytes)
{
	FILE *f = fopen(in_dir(name), "w");

	assert_true(f && fwrite(bytes.p, 1, bytes.n, f) == bytes.n && fclose(f) == 0);
}

/* All rows with their places, or the error; the scratch folder's name is left out. */
static void read_all(const char *name, struct buf *out)
{
	struct buf text = { 0 };
	struct err e = { 0 };
	struct table *t = table_open(in_dir(name), NULL, &e);
	struct json_slice row;
	int rc = t ? 0 : -1;

	/* Backwards: rows are found in any order. */
	for (size_t i = t ? table_rows(t) : 0; rc == 0 && i-- > 0;) {
		rc = table_row(t, i, &row, &e);
		if (rc < 0)
			break;
		buf_add_text(&text, text.len ? "; " : "");
		table_where(t, i, &text);
		buf_printf(&text, " %.*s", (int)row.raw.n, row.raw.p);
	}
	if (rc < 0)
		buf_add_text(&text, e.text);
	table_close(t);
	for (const char *p = text.data; p && *p;) {
		bool is_dir = strncmp(p, dir, strlen(dir)) == 0;

		if (!is_dir)
			buf_add_char(out, *p);
		p += is_dir ? strlen(dir) + 1 : 1;
	}
	buf_release(&text);
}

struct row {
	const char *name, *text, *want;
};

static void check_rows(const struct row *row, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct buf got = { 0 };

		put(row[i].name, str_of(row[i].text));
		read_all(row[i].name, &got);
		if (strcmp(got.data ? got.data : "", row[i].want) != 0)
			fail_msg("row %zu (%s): %s", i, row[i].name, got.data);
		answers_release(&got);
	}
}

static void test_json(void **state)
{
	static const struct row row[] = {
		{ "a.json", "[{\"a\": 1}, {\"b\": [2]}]", "a.json: row 1 {\"b\": [2]}; a.json: row 0 {\"a\": 1}" },
		{ "a.json", " \n[ ] \n", "" },
		{ "a.json", "", "" },
		{ "a.json", "\xef\xbb\xbf[{}]", "a.json: row 0 {}" },
		{ "a.json", "{\"a\": 1}\n{\"b\": 2}\r\n", "a.json:2 {\"b\": 2}; a.json:1 {\"a\": 1}" },
		{ "a.json", "{\n\"a\": 1\n}\n{\n\"b\": 2}", "a.json:4 {\n\"b\": 2}; a.json:1 {\n\"a\": 1\n}" },
		{ "a.json", "{\"data\": [{\"a\": 1},\n{}]}\n", "a.json: row 1 {}; a.json: row 0 {\"a\": 1}" },
		{ "a.json", "{\"data\": []}", "" },
		{ "a.json", "{\"data\": [1]}", "a.json:1 {\"data\": [1]}" },
		{ "a.json", "{\"data\": [{}], \"n\": 1}", "a.json:1 {\"data\": [{}], \"n\": 1}" },
		{ "a.json", "{\"data\": [{}]}\n{\"data\": [{}]}",
		  "a.json:2 {\"data\": [{}]}; a.json:1 {\"data\": [{}]}" },
		{ "a.json", "[{\"a\": 1}\n {}]", "a.json: line 2, column 2: expected ',' or ']' after an element" },
		{ "a.json", "[{\"a\": 1},\n {\"b\" 2}]", "a.json: line 2, column 7: expected ':' after the key" },
		{ "a.json", "[{}", "a.json: line 1, column 4: the text ends inside the list" },
		{ "a.json", "[{}\n,]", "a.json: line 2, column 2: expected a value, found ']'" },
		{ "a.json", "[{}]\n\n{}", "a.json: line 3, column 1: more text after the list" },
		{ "a.json", "{\"data\": [{}, {\"a\"}]}", "a.json: line 1, column 19: expected ':' after the key" },
		{ "a.json", "\xff\xfe[", "a.json: written in UTF-16; expected UTF-8" },
		{ "a.json", "[7]", "a.json: row 0: expected an object, found 7" },
		{ "a.jsonl", "\n{\"a\": 1}\n  \r\n{\"b\": 2}\n\n", "a.jsonl:4 {\"b\": 2}; a.jsonl:2 {\"a\": 1}" },
		{ "a.jsonl", "{\"data\": [{}]}", "a.jsonl:1 {\"data\": [{}]}" },
		{ "a.jsonl", "[{\"a\": 1}]", "a.jsonl: row 0 {\"a\": 1}" },
		{ "a.ndjson", "{\"a\":\n1}", "a.ndjson: line 1, column 6: the text ends in the middle of a value" },
		{ "a.jsonl", "{}\n{} {}\n", "a.jsonl: line 2, column 4: more text after the object; "
		  "expected one on each line" },
		{ "a.jsonl", "{}\n{\"a\": \"x", "a.jsonl: line 2, column 9: the text ends inside a string" },
		{ "a.jsonl", "{}\n\"x\"\n", "a.jsonl:2: expected an object, found x" },
	};

	(void)state;
	check_rows(row, COUNT(row));
}

static void test_csv(void **state)
{
	static const struct row row[] = {
		{ "a.csv", "a,b\n1,x y\n", "a.csv:2 {\"a\": \"1\", \"b\": \"x y\"}" },
		{ "a.csv", "\xef\xbb\xbf\n\na,b\r\n1,\r\n\r\n,2", "a.csv:6 {\"a\": \"\", \"b\": \"2\"}; "
		  "a.csv:4 {\"a\": \"1\", \"b\": \"\"}" },
		{ "a.csv", "a\rx\ry", "a.csv:1 {\"a\": \"y\"}; a.csv:1 {\"a\": \"x\"}" },
		{ "a.csv", "\"a \"\"b\"\"\",\"c\nd\"\n\",\",\"\"\"\"\n\"\",\"x\ny\"\n",
		  "a.csv:4 {\"a \\\"b\\\"\": \"\", \"c\\nd\": \"x\\ny\"}; "
		  "a.csv:3 {\"a \\\"b\\\"\": \",\", \"c\\nd\": \"\\\"\"}" },
		{ "a.csv", "a,a,,a,a.1\n1,2,3,4,5\n", "a.csv:2 {\"a\": \"1\", \"a.1\": \"2\", \"Unnamed: 2\": "
		  "\"3\", \"a.2\": \"4\", \"a.1.1\": \"5\"}" },
		{ "a.csv", "a\n1\"2\n\xff\n", "a.csv:3 {\"a\": \"\xef\xbf\xbd\"}; a.csv:2 {\"a\": \"1\\\"2\"}" },
		{ "a.tsv", "a\tb,c\n1,2\t\"3\t4\"\n", "a.tsv:2 {\"a\": \"1,2\", \"b,c\": \"3\\t4\"}" },
		{ "a.csv", "a,b\n", "" },
		{ "a.csv", "a,b\n1,2\n\"x\ny\",3\n4\n", "a.csv: line 5: 1 cells, but the head names 2 columns" },
		{ "a.csv", "a\n1,2", "a.csv: line 2: 2 cells, but the head names 1 columns" },
		{ "a.csv", "a\n\"x", "a.csv: line 2: a cell in quotes begins here and does not end" },
		{ "a.csv", "a\n\"x\"y\n", "a.csv: line 2: text after the closing quote of a cell" },
		{ "a.csv", "\n", "a.csv: empty; expected a line with the names of columns" },
	};
	struct buf wide = { 0 }, got = { 0 };

	(void)state;
	check_rows(row, COUNT(row));
	for (int i = 0; i <= TABLE_COLUMNS_MAX; i++)
		buf_add_text(&wide, i ? ",a" : "a");
	put("a.csv", buf_str(&wide));
	read_all("a.csv", &got);
	assert_string_equal(got.data, "a.csv: more than 4096 columns (TABLE_COLUMNS_MAX)");
	buf_release(&wide);
	answers_release(&got);
}

static void test_text(void **state)
{
	static const struct row row[] = {
		{ "a.txt", "one\n\ntwo\r\n\rx\r\r\ny\"", "a.txt:7 {\"text\": \"y\\\"\"}; a.txt:6 {\"text\": \"\"}; "
		  "a.txt:5 {\"text\": \"x\"}; a.txt:4 {\"text\": \"\"}; a.txt:3 {\"text\": \"two\"}; "
		  "a.txt:2 {\"text\": \"\"}; a.txt:1 {\"text\": \"one\"}" },
		{ "a.txt", "", "" },
		{ "a.txt", "\n", "a.txt:1 {\"text\": \"\"}" },
		{ "a.txt", "\xef\xbb\xbfx\n\x80", "a.txt:2 {\"text\": \"\xef\xbf\xbd\"}; a.txt:1 {\"text\": \"x\"}" },
	};

	(void)state;
	check_rows(row, COUNT(row));
}

/* ---- formats and names ---- */

static void test_format(void **state)
{
	static const struct row row[] = {
		{ "blob", " [{}]", "blob: row 0 {}" },
		{ "blob", "{}\n{}", "blob:2 {}; blob:1 {}" },
		{ "blob", "a,b\n", "blob: its format is not recognized by its name or content; expected "
		  ".json, .jsonl, .csv, .tsv, .txt or .parquet" },
	};
	static const char *const yes[] = { "a.json", "d.x/a.jsonl", "a.ndjson", "a.csv", "a.tsv.gz", "a.txt",
		"a.parquet", "a.zip", "a.tar.zst", "a.jsonl.xz", "a.csv.bz2", "a.txt.lz4" };
	static const char *const no[] = { "a", "a.gz", "a.jpg", "json", "a.json.bak", "README.md", "" };
	struct buf got = { 0 };

	(void)state;
	check_rows(row, COUNT(row));
	for (size_t i = 0; i < COUNT(yes); i++)
		assert_true(table_is_name(yes[i]));
	for (size_t i = 0; i < COUNT(no); i++)
		assert_false(table_is_name(no[i]));
	read_all("none.json", &got);
	assert_non_null(strstr(got.data, "none.json"));
	answers_release(&got);
}

/* ---- compressed ---- */

struct member {
	const char *name, *text;
};

/* filter and format by libarchive's names; format "raw" for one compressed file. */
static void pack(const char *name, const char *filter, const char *format, const struct member *m)
{
	struct archive *a = archive_write_new();

	assert_int_equal(archive_write_set_format_by_name(a, format), ARCHIVE_OK);
	if (filter)
		assert_int_equal(archive_write_add_filter_by_name(a, filter), ARCHIVE_OK);
	assert_int_equal(archive_write_open_filename(a, in_dir(name)), ARCHIVE_OK);
	for (; m->name; m++) {
		struct archive_entry *entry = archive_entry_new();

		archive_entry_set_pathname(entry, m->name);
		archive_entry_set_filetype(entry, m->text ? AE_IFREG : AE_IFDIR);
		archive_entry_set_perm(entry, 0644);
		archive_entry_set_size(entry, m->text ? (la_int64_t)strlen(m->text) : 0);
		assert_int_equal(archive_write_header(a, entry), ARCHIVE_OK);
		if (m->text)
			archive_write_data(a, m->text, strlen(m->text));
		archive_entry_free(entry);
	}
	assert_int_equal(archive_write_free(a), ARCHIVE_OK);
}

static size_t files_in_dir(void)
{
	char command[80];
	size_t n = 0;
	FILE *f;

	snprintf(command, sizeof(command), "ls -A %s | wc -l", dir);
	f = popen(command, "r");
	assert_int_equal(fscanf(f, "%zu", &n), 1);
	pclose(f);
	return n;
}

static void test_packed(void **state)
{
	static const char *const filter[][2] = { { "gzip", "gz" }, { "zstd", "zst" }, { "bzip2", "bz2" },
		{ "xz", "xz" }, { "lz4", "lz4" } };
	static const struct member one[] = { { "x", "{\"a\": 1}\n{}\n" }, { NULL, NULL } };
	static const struct member none[] = { { "x", "" }, { NULL, NULL } };
	struct buf got = { 0 };
	char name[32], want[120];
	size_t files;

	(void)state;
	setenv("TMPDIR", dir, 1);
	for (size_t i = 0; i < COUNT(filter); i++) {
		snprintf(name, sizeof(name), "p.jsonl.%s", filter[i][1]);
		snprintf(want, sizeof(want), "%s:2 {}; %s:1 {\"a\": 1}", name, name);
		pack(name, filter[i][0], "raw", one);
		files = files_in_dir();
		buf_reset(&got);
		read_all(name, &got);
		assert_string_equal(got.data, want);
		assert_int_equal(files_in_dir(), files);
	}
	pack("blob.bin", "gzip", "raw", one);
	buf_reset(&got);
	read_all("blob.bin", &got);
	assert_string_equal(got.data, "blob.bin:2 {}; blob.bin:1 {\"a\": 1}");
	pack("e.jsonl.gz", "gzip", "raw", none);
	buf_reset(&got);
	read_all("e.jsonl.gz", &got);
	assert_int_equal(got.len, 0);
	put("x.csv.gz", STR("a\n1\n"));
	read_all("x.csv.gz", &got);
	assert_string_equal(got.data, "x.csv.gz: neither compressed nor an archive, despite its name");
	answers_release(&got);
}

static void test_archives(void **state)
{
	static const struct {
		const char *filter, *format, *name;
		struct member member[12];
		const char *want;
	} row[] = {
		{ NULL, "zip", "a.zip", { { "d/", NULL }, { "d/x.csv", "a\n1\n" }, { "d/README", "x" },
		  { "__MACOSX/._x.csv", "y" }, { "d/.x.csv", "z" } }, "a.zip!d/x.csv:2 {\"a\": \"1\"}" },
		{ "gzip", "ustar", "a.tar.gz", { { "x", "{}" } }, "a.tar.gz!x:1 {}" },
		{ "zstd", "gnutar", "b", { { "LICENSE", "x" }, { "x.jsonl", "{}\n[" } },
		  "b!x.jsonl: line 2, column 2: the text ends inside an array or object" },
		{ NULL, "zip", "a.zip", { { "1.csv", "a" }, { "2.csv", "b" }, { "notes", "x" } },
		  "a.zip: expected one data file in the archive, found 2 of 3 files: 1.csv, 2.csv, notes" },
		{ NULL, "ustar", "a.tar", { { "d/", NULL } }, "a.tar: an archive without a file in it" },
		{ NULL, "zip", "a.zip", { { "a\nb", "1" }, { "c", "1" }, { "d", "1" }, { "e", "1" }, { "f", "1" },
		  { "g", "1" }, { "h", "1" }, { "i", "1" }, { "j", "1" } }, "a.zip: expected one data file in "
		  "the archive, found 0 of 9 files: a?b, c, d, e, f, g, h, i, ..." },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct buf got = { 0 };

		pack(row[i].name, row[i].filter, row[i].format, row[i].member);
		read_all(row[i].name, &got);
		if (strcmp(got.data, row[i].want) != 0)
			fail_msg("row %zu: %s", i, got.data);
		answers_release(&got);
	}
}

/* A file cut off or with a bit turned is an error or the same rows, never anything else. */
static void test_damaged(void **state)
{
	static const struct member one[] = { { "x.jsonl", "{\"a\": 1}\n{\"a\": 2}\n{\"a\": 3}\n" },
		{ NULL, NULL } };
	static const char *const format[][2] = { { "zip", NULL }, { "ustar", "xz" }, { "raw", "gzip" },
		{ "raw", "zstd" }, { "raw", "bzip2" } };
	struct buf bytes = { 0 }, got = { 0 };
	struct err e;

	(void)state;
	for (size_t k = 0; k < COUNT(format); k++) {
		pack("good", format[k][1], format[k][0], one);
		buf_reset(&bytes);
		assert_int_equal(file_read(in_dir("good"), 1 << 20, &bytes, &e), 0);
		for (size_t n = 0; n < bytes.len; n++) {
			buf_reset(&got);
			put("bad.tar.gz", (struct str){ bytes.data, n });
			read_all("bad.tar.gz", &got);
			bytes.data[n] ^= 0x10;
			put("bad.tar.gz", buf_str(&bytes));
			bytes.data[n] ^= 0x10;
			read_all("bad.tar.gz", &got);
		}
	}
	buf_release(&bytes);
	answers_release(&got);
}

static void test_disk_full(void **state)
{
	static const struct member big[] = { { "x.jsonl", "{\"a\": \"0123456789012345678901234567890\"}\n" },
		{ NULL, NULL } };
	struct rlimit old, small = { 20, 20 };
	struct buf got = { 0 };

	(void)state;
	pack("full.jsonl.gz", "gzip", "raw", big);
	setenv("TMPDIR", in_dir("no such folder"), 1);
	read_all("full.jsonl.gz", &got);
	assert_non_null(strstr(got.data, "full.jsonl.gz: cannot be unpacked into "));
	assert_non_null(strstr(got.data, "no such folder: No such file or directory (TMPDIR names"));
	setenv("TMPDIR", dir, 1);
	getrlimit(RLIMIT_FSIZE, &old);
	small.rlim_max = old.rlim_max;
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &small);
	buf_reset(&got);
	read_all("full.jsonl.gz", &got);
	setrlimit(RLIMIT_FSIZE, &old);
	assert_non_null(strstr(got.data, "File too large"));
	answers_release(&got);
}

/* ---- memory, progress, stopping ---- */

struct watch {
	uint64_t done, total;
	size_t calls;
	atomic_bool *cancel;
};

static void progress(void *self, uint64_t done, uint64_t total)
{
	struct watch *w = self;

	assert_true(done >= w->done && done <= total);
	*w = (struct watch){ done, total, w->calls + 1, w->cancel };
	if (w->cancel)
		atomic_store(w->cancel, true);
}

/* Kilobytes of a file's pages that this process has in memory. */
static size_t resident_kb(const char *name)
{
	char line[512];
	size_t kb = 0, n;
	bool is_in = false;
	FILE *f = fopen("/proc/self/smaps", "r");

	while (fgets(line, sizeof(line), f)) {
		if (strchr("0123456789abcdef", line[0]) && strchr(line, '-'))
			is_in = strstr(line, name) != NULL;
		if (is_in && sscanf(line, "Rss: %zu kB", &n) == 1)
			kb += n;
	}
	fclose(f);
	return kb;
}

#define BIG_ROWS 30000

static void write_big(const char *name, const char *head, const char *row, const char *between,
	const char *tail)
{
	FILE *f = fopen(in_dir(name), "w");

	fputs(head, f);
	for (int i = 0; i < BIG_ROWS; i++) {
		fputs(i ? between : "", f);
		fprintf(f, row, i);
	}
	fputs(tail, f);
	fclose(f);
}

/* 33 MB and more each: what stays in memory is the window and what one row brings along. */
static void test_memory(void **state)
{
	static const char *const name[] = { "big.json", "big.jsonl", "big.csv", "big.txt" };
	const size_t resident_max_kb = (TABLE_WINDOW_BYTES >> 10) + 2048;
	char filler[1100], row[1200];
	struct err e = { 0 };

	(void)state;
	memset(filler, 'x', sizeof(filler) - 1);
	filler[sizeof(filler) - 1] = 0;
	snprintf(row, sizeof(row), "{\"i\": %%d, \"text\": \"%s\"}", filler);
	write_big(name[0], "[", row, ",\n", "]");
	write_big(name[1], "", row, "\n", "\n");
	snprintf(row, sizeof(row), "%%d,\"%s\"", filler);
	write_big(name[2], "i,text\n", row, "\n", "\n");
	write_big(name[3], "", row, "\n", "\n");
	for (size_t k = 0; k < COUNT(name); k++) {
		struct watch w = { 0 };
		struct table_opts o = { .progress = progress, .self = &w };
		struct table *t = table_open(in_dir(name[k]), &o, &e);
		struct json_slice slice;

		assert_non_null(t);
		assert_int_equal(table_rows(t), BIG_ROWS);
		assert_true(w.done == w.total && w.total > 30 << 20 && w.calls > 25);
		assert_true(resident_kb(name[k]) <= resident_max_kb);
		for (size_t i = 0; i < 3000; i++) {
			size_t at = i * 7919 % BIG_ROWS;
			char want[32];

			assert_int_equal(table_row(t, at, &slice, &e), 0);
			snprintf(want, sizeof(want), k == 0 || k == 1 ? "{\"i\": %zu," : k == 2 ?
				"{\"i\": \"%zu\"," : "{\"text\": \"%zu,", at);
			assert_memory_equal(slice.raw.p, want, strlen(want));
			if (i % 100 == 0)
				assert_true(resident_kb(name[k]) <= resident_max_kb);
		}
		table_close(t);
	}
}

static void test_cancel(void **state)
{
	static const char *const name[] = { "big.json", "big.jsonl", "big.csv", "big.txt", "c.jsonl.gz" };
	static const struct member one[] = { { "x.jsonl", "{\"a\": 1}\n" }, { NULL, NULL } };

	(void)state;
	pack("c.jsonl.gz", "gzip", "raw", one);
	for (size_t k = 0; k < COUNT(name); k++) {
		atomic_bool cancel = false;
		struct watch w = { .cancel = &cancel };
		struct table_opts o = { .progress = progress, .self = &w, .cancel = &cancel };
		struct err e = { 0 };

		assert_null(table_open(in_dir(name[k]), &o, &e));
		assert_int_equal(e.code, ERR_CANCELLED);
		assert_true(w.calls <= 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_csv),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_format),
		cmocka_unit_test(test_packed),
		cmocka_unit_test(test_archives),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_disk_full),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_cancel),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
