/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_data_source.c - names of files sorted into subsets and splits, heads of README.md, folders,
 * and a hub with given answers. The real library's results for the same names were compared
 * manually for some hundred random folders.
 *
 * threads: yes
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/base/file.h"
#include "fetch_server.h"
#include "input/data/source_internal.h"
#include "scratch.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define C1 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define C2 "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

/* ---- globs ---- */

static void test_glob(void **state)
{
	static const struct {
		const char *pattern, *name;
		bool is_match;
	} row[] = {
		{ "a.csv", "a.csv", true }, { "a.csv", "a.csv2", false }, { "a.csv2", "a.csv", false },
		{ "*.csv", "a.csv", true }, { "*.csv", "d/a.csv", false }, { "d/*", "d/a", true },
		{ "d/*", "d/e/a", false }, { "d/**", "d/e/a", true }, { "**", "d/e/a", true },
		{ "**/a", "a", true }, { "**/a", "d/e/a", true }, { "**/a", "d/ea", false },
		{ "**/d/**", "d/x", true }, { "**/d/**", "c/d/x/y", true }, { "**/d/**", "cd/x", false },
		{ "d/**/a", "d/a", true }, { "d/**/a", "d/e/f/a", true }, { "d/**/a", "d/e/f/b", false },
		{ "?.csv", "a.csv", true }, { "?.csv", "/.csv", false }, { "?", "", false },
		{ "[a-c]x", "bx", true }, { "[a-c]x", "dx", false }, { "[!a-c]x", "dx", true },
		{ "[!a-c]x", "bx", false }, { "[]]", "]", true }, { "[-._ 0-9]", "-", true },
		{ "[-._ 0-9]", "7", true }, { "[-._ 0-9]", "a", false }, { "[!a]b", "/b", false },
		{ "[!a]", "!", true }, { "[!a]", "[", true }, { "[!!]", "!", false }, { "[!]]", "]", false },
		{ "[a-]", "-", true }, { "[a-", "b", false }, { "[!a", "b", true },
		{ "*a*b", "xaxxb", true }, { "*a*b", "xaxxbc", false }, { "*a", "a/a", false },
		{ "**/x*y/z", "xay/xby/z", true }, { "data/**.csv", "data/d/a.csv", true },
		{ "[a", "a", true }, { "[", "[", false }, { "", "", true }, { "*", "", true },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++)
		if (source_glob(row[i].pattern, row[i].name) != row[i].is_match)
			fail_msg("row %zu: %s and %s", i, row[i].pattern, row[i].name);
}

/* A pattern made to be slow. */
static void test_glob_is_quick(void **state)
{
	char pattern[200] = "", name[2001];

	(void)state;
	for (int i = 0; i < 40; i++)
		strncpy(pattern + 4 * i, i % 2 ? "*a*a" : "**/a", 5);
	memset(name, 'a', 2000);
	name[2000] = 0;
	assert_false(source_glob(pattern, name));
}

/* ---- sorting ---- */

static const char *noted;

static void note(void *self, const char *text)
{
	(void)self;
	noted = strstr(text, "no subset") ? "subset" : strstr(text, "skipped") ? "skipped" :
		strstr(text, "in the cache") ? "cache" : "?";
}

/* "split: file file; split: file" of all splits, or the error. */
static void sort_all(struct source_opts o, const char *card_text, const char *const *name,
	bool is_converted, struct buf *out)
{
	struct source_names names = { (const char **)(uintptr_t)name, 0 };
	struct err e = { 0 };
	char split[64] = "";
	size_t n = 1;

	while (name[names.count])
		names.count++;
	noted = NULL;
	o.note = note;
	for (size_t i = 0; i < n; i++) {
		struct source s = { 0 };
		struct dataset_card card = { 0 };
		int rc = 0;

		if (card_text)
			rc = card_read(&s.arena, str_of(card_text), &card, &e);
		if (rc == 0)
			rc = is_converted ? source_sort_converted(&o, "d", &names, &s, &e) :
				source_sort(&o, "d", &names, &card, &s, &e);
		if (rc < 0) {
			buf_add_text(out, e.text);
		} else if (n == 1 && !o.split && s.split_count) { /* now for each split */
			n = s.split_count + 1;
			if (s.subset)
				buf_printf(out, "(%s) ", s.subset);
			buf_printf(out, "[%s]", s.split);
		} else {
			buf_printf(out, "%s%s:", out->len ? " " : "", s.split);
			for (size_t k = 0; k < s.count; k++)
				buf_printf(out, " %s", s.file[k]);
		}
		if (rc == 0 && i + 1 < n)
			snprintf(split, sizeof(split), "%s", s.splits[i]);
		o.split = split;
		source_release(&s);
	}
}

static void test_default_splits(void **state)
{
	static const struct {
		const char *name[8], *want, *noted;
	} row[] = {
		{ { "a.csv", "b.csv" }, "[train] train: a.csv b.csv", NULL },
		{ { "data/test-00000-of-00001.parquet", "data/train-00000-of-00002.parquet",
		    "data/train-00001-of-00002-abc.parquet", "extra.parquet" },
		  "[train] train: data/train-00000-of-00002.parquet data/train-00001-of-00002-abc.parquet"
		  " test: data/test-00000-of-00001.parquet", NULL },
		{ { "data/b-00000-of-00001.json", "data/a.x-00000-of-00001.json" },
		  "[a.x] a.x: data/a.x-00000-of-00001.json b: data/b-00000-of-00001.json", NULL },
		{ { "test.jsonl", "train.jsonl", "val.jsonl" },
		  "[train] train: train.jsonl validation: val.jsonl test: test.jsonl", NULL },
		{ { "dev/1.csv", "testing.csv", "x/my eval/2.csv" },
		  "[validation] validation: dev/1.csv test: x/my eval/2.csv", NULL },
		{ { "seed.json", "train.json", "valid.json" },
		  "[train] train: train.json validation: valid.json", NULL },
		{ { "latest.csv", "trained.csv" }, "[train] train: latest.csv trained.csv", NULL },
		{ { ".hidden/train.csv", "__x__/train.csv", "a/train.csv", "config.json" },
		  "[train] train: a/train.csv", NULL },
		{ { "a.jsonl", "b.jsonl", "m.parquet" }, "[train] train: a.jsonl b.jsonl", "skipped" },
		{ { "a.jsonl", "m.parquet", "x.mp4" }, "[train] train: m.parquet", "skipped" },
		{ { "a.jsonl.gz", "b.json", "c.png", "d.png" }, "[train] train: a.jsonl.gz b.json", NULL },
		{ { "train.csv", "train.train.csv" },
		  "[train] train: train.csv train.train.csv train.train.csv", NULL },
		{ { "a.zip" }, "[train] train: a.zip", NULL },
		{ { "a.png", "b.md" }, "d: there is no data file (.parquet, .jsonl, .json, .csv, .tsv, "
		  ".txt) in it", NULL },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct buf got = { 0 };

		sort_all((struct source_opts){ 0 }, NULL, row[i].name, false, &got);
		if (strcmp(got.data, row[i].want) != 0 || noted != row[i].noted)
			fail_msg("row %zu: %s", i, got.data);
		buf_release(&got);
	}
}

#define HEAD(text) "---\nlicense: mit\n" text "tags:\n- x\n---\n# The set\nconfigs:\n- no\n"

static void test_cards(void **state)
{
	static const char *const name[] = { "README.md", "data/b.jsonl", "data/c d.jsonl", "m/test.jsonl",
		"m/train.jsonl", "x.jsonl", NULL };
	static const struct {
		const char *card, *subset, *want;
	} row[] = {
		{ HEAD("configs:\n- config_name: one\n  data_files: x.jsonl\n"), NULL,
		  "(one) [train] train: x.jsonl" },
		{ HEAD("configs: # two\n  - config_name: 'a'\n    data_files:\n      - split: test\n"
		       "        path: data/*\n      - split: dev.x\n        path:\n        - \"m/*.jsonl\"\n"
		       "        - x.jsonl\n  - config_name: default\n    data_dir: ./m/\n"), NULL,
		  "(default) [train] train: m/train.jsonl test: m/test.jsonl" },
		{ HEAD("configs: # two\n  - config_name: 'a'\n    data_files:\n      - split: test\n"
		       "        path: data/*\n      - split: dev.x\n        path:\n        - \"m/*.jsonl\"\n"
		       "        - x.jsonl\n  - config_name: default\n    data_dir: ./m/\n"), "a",
		  "(a) [test] test: data/b.jsonl data/c d.jsonl dev.x: m/test.jsonl m/train.jsonl x.jsonl" },
		{ HEAD("configs:\n- config_name: a\n  data_files: m/*\n- config_name: b\n"
		       "  data_files: [x.jsonl, \"data/c d.jsonl\"]\n  default: true\n"), NULL,
		  "(b) [train] train: x.jsonl data/c d.jsonl" },
		{ HEAD("configs:\n- config_name: a\n  data_files: m/*\n- config_name: b\n- config_name: a\n"
		       "  data_files: x.jsonl\n  default: true\n"), "a", "(a) [train] train: x.jsonl" },
		{ HEAD("configs: [{config_name: f, data_files: [{split: s, path: [x.jsonl]}]}]\n"), NULL,
		  "(f) [s] s: x.jsonl" },
		{ HEAD("dataset_info:\n  configs: 1\n"), NULL,
		  "[train] train: m/train.jsonl test: m/test.jsonl" },
		{ HEAD("configs:\n-   config_name: long\n    description: |\n      - a: b\n"
		       "      more: text\n\n    data_files:\n    -   x.jsonl   # why\n"), NULL,
		  "(long) [train] train: x.jsonl" },
		{ "---\r\nconfigs:\r\n- config_name: crlf\r\n  data_files: x.jsonl\r\n---\r\n", NULL,
		  "(crlf) [train] train: x.jsonl" },
		{ "# no head\n---\nconfigs:\n- 1\n---\n", "default",
		  "[train] train: m/train.jsonl test: m/test.jsonl" },
		{ HEAD("configs:\n- config_name: a\n  data_files: x.jsonl\n- config_name: b\n"), "c",
		  "d: there is no subset \"c\"; it has a, b" },
		{ HEAD(""), "c", "d: there is no subset \"c\"; it has none" },
		{ HEAD("configs:\n- config_name: a\n  data_files: y.jsonl\n"), NULL,
		  "d, subset a: there is no data file (.parquet, .jsonl, .json, .csv, .tsv, .txt) in it" },
		{ HEAD("configs:\n- name: a\n"), NULL,
		  "line 4: configs: expected entries with a \"config_name\"" },
		{ HEAD("configs:\n- config_name: a\n  data_files:\n  - split: x\n"), NULL,
		  "line 6: data_files: expected \"split\" and \"path\"" },
		{ HEAD("configs:\n- config_name: a\n  nonsense\n"), NULL,
		  "7:1: could not find expected ':'" },
		{ HEAD("configs:\n- config_name: \"a\n"), NULL,
		  "6:1: found unexpected end of stream" },
		{ HEAD("configs:\n- config_name: a\n  data_files: [x\n"), NULL,
		  "7:1: did not find expected ',' or ']'" },
		{ HEAD("configs: yes\n"), NULL, "line 3: configs: expected one list" },
	};
	struct source_opts o = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct buf got = { 0 };

		o.subset = row[i].subset;
		sort_all(o, row[i].card, name, false, &got);
		if (strcmp(got.data, row[i].want) != 0)
			fail_msg("row %zu: %s", i, got.data);
		buf_release(&got);
	}
}

static void test_deep_card(void **state)
{
	struct buf card = { 0 };
	struct arena a = { 0 };
	struct dataset_card out;
	struct err e = { 0 };

	(void)state;
	for (int k = 0; k < 2; k++) {
		buf_reset(&card);
		buf_add_text(&card, "---\nconfigs:\n- config_name: x\n  data_files: ");
		for (int i = 0; i < 100000; i++)
			buf_add_text(&card, k ? "[" : "\n- - - - ");
		buf_add_text(&card, "\n---\n");
		assert_int_equal(card_read(&a, buf_str(&card), &out, &e), -1);
		assert_int_equal(e.code, k ? ERR_LIMIT : ERR_PARSE);
	}
	buf_release(&card);
	arena_release(&a);
}

static void test_converted(void **state)
{
	static const char *const name[] = { "README.md", "b/train/0000.parquet",
		"default/partial-test/0000.parquet", "default/partial-train/0000.parquet",
		"default/partial-train/0001.parquet", NULL };
	static const struct {
		const char *subset, *split, *want;
	} row[] = {
		{ NULL, NULL, "(default) [train] train: default/partial-train/0000.parquet "
		  "default/partial-train/0001.parquet test: default/partial-test/0000.parquet" },
		{ "b", NULL, "(b) [train] train: b/train/0000.parquet" },
		{ "b", "dev", "d, subset b: there is no split \"dev\"; it has train" },
		{ "c", NULL, "d: there is no subset \"c\"; it has b, default" },
	};
	struct source_opts o = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct buf got = { 0 };

		o.subset = row[i].subset;
		o.split = row[i].split;
		sort_all(o, NULL, name, true, &got);
		if (strcmp(got.data, row[i].want) != 0)
			fail_msg("row %zu: %s", i, got.data);
		buf_release(&got);
	}
}

/* ---- the disk ---- */

static const char *in_dir(const char *name)
{
	static char path[32][300];
	static int k;

	k = (k + 1) % 32;
	snprintf(path[k], sizeof(path[k]), "%s/%s", dir, name);
	return path[k];
}

static void put(const char *name, const char *text)
{
	struct err e;
	char *slash, path[300];

	snprintf(path, sizeof(path), "%s", in_dir(name));
	slash = strrchr(path, '/');
	*slash = 0;
	assert_int_equal(file_mkdirs(path, &e), 0);
	assert_int_equal(file_write_atomic(in_dir(name), str_of(text), &e), 0);
}

static void test_folder(void **state)
{
	struct source_opts o = { .path = in_dir("set") };
	struct source s;
	struct buf path = { 0 };
	struct err e = { 0 };

	(void)state;
	put("set/README.md", "---\nconfigs:\n- config_name: c\n  data_files: sub/*.csv\n---\n");
	put("set/sub/2.csv", "a\n2\n");
	put("set/sub/1.csv", "a\n1\n");
	put("set/.git/x.csv", "a\n1\n");
	assert_int_equal(source_open(&o, &s, &e), 0);
	assert_string_equal(s.subset, "c");
	assert_int_equal(s.count, 2);
	assert_int_equal(source_path(&o, &s, 1, &path, &e), 0);
	assert_string_equal(path.data, in_dir("set/sub/2.csv"));
	source_release(&s);
	put("set/README.md", "---\nconfigs:\n- nothing\n---\n");
	assert_int_equal(source_open(&o, &s, &e), -1);
	assert_non_null(strstr(e.text, "set/README.md: line 3: configs: expected entries"));
	assert_int_equal(source_file(&o, "sub/1.csv", &path, &e), 0);
	assert_string_equal(path.data, in_dir("set/sub/1.csv"));
	assert_int_equal(source_file(&o, "sub/3.csv", &path, &e), SOURCE_NO_FILE);
	assert_non_null(strstr(e.text, "set: there is no file \"sub/3.csv\""));
	o.path = in_dir("deep"); /* HUB_DEPTH_MAX folders in a folder, and one more */
	put("deep/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/1.csv", "a\n1\n");
	assert_int_equal(source_open(&o, &s, &e), 0);
	source_release(&s);
	put("deep/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/1.csv", "a\n1\n");
	assert_int_equal(source_open(&o, &s, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	o.path = in_dir("set");
	assert_int_equal(symlink(".", in_dir("set/loop")), 0);
	assert_int_equal(source_open(&o, &s, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	buf_release(&path);
}

static void test_file(void **state)
{
	struct source_opts o = { .path = in_dir("one/mine.jsonl"), .split = "validation" };
	struct source s;
	struct buf path = { 0 };
	struct err e = { 0 };

	(void)state;
	put("one/mine.jsonl", "{}\n");
	put("one/other.json", "[]\n");
	assert_int_equal(source_open(&o, &s, &e), 0);
	assert_string_equal(s.split, "validation");
	assert_null(s.subset);
	assert_int_equal(source_path(&o, &s, 0, &path, &e), 0);
	assert_string_equal(path.data, o.path);
	source_release(&s);
	assert_int_equal(source_file(&o, "other.json", &path, &e), 0);
	assert_string_equal(path.data, in_dir("one/other.json"));
	assert_int_equal(source_file(&o, "none.json", &path, &e), SOURCE_NO_FILE);
	o.path = in_dir("no such");
	assert_int_equal(source_open(&o, &s, &e), -1);
	assert_non_null(strstr(e.text, "no such: there is no such file or folder, and it is not the"));
	buf_release(&path);
}

/* ---- the hub ---- */

#define REPLY "HTTP/1.1 200 OK\r\nConnection: close\r\n"
#define LIST(commit, files) REPLY "\r\n{\"sha\": \"" commit "\", \"siblings\": [" files "]}"
#define FILE_NAMED(name) "{\"rfilename\": \"" name "\"}"
#define HEAD_OF(commit, size, etag) REPLY "ETag: \"" etag "\"\r\nX-Repo-Commit: " commit \
	"\r\nContent-Length: " size "\r\n\r\n"
/* git's id of "hello" */
#define HELLO "b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0"
#define HELLO_FILE(commit) HEAD_OF(commit, "5", HELLO), HEAD_OF(commit, "5", HELLO) "hello"

static void begin_hub(struct server *s, const char *const *answer)
{
	static char url[64];

	without_proxies();
	unsetenv("HF_HUB_OFFLINE");
	server_start(s, answer);
	snprintf(url, sizeof(url), "http://127.0.0.1:%d", s->port);
	setenv("HF_ENDPOINT", url, 1);
	setenv("HF_HUB_CACHE", in_dir("hub"), 1);
}

/* Only the file that is asked for is downloaded; offline the cache is the repository. */
static void test_hub(void **state)
{
	static const char list[] = LIST(C1, FILE_NAMED("data/train-00001-of-00002.jsonl") ","
		FILE_NAMED("data/train-00000-of-00002.jsonl") "," FILE_NAMED("pic.png"));
	struct source_opts o = { .path = "org/set", .note = note };
	struct source s;
	struct buf path = { 0 };
	struct server hub;
	struct err e = { 0 };

	(void)state;
	begin_hub(&hub, (const char *[]){ list, HELLO_FILE(C1), NULL });
	assert_int_equal(source_open(&o, &s, &e), 0);
	assert_int_equal(s.count, 2);
	assert_int_equal(source_path(&o, &s, 1, &path, &e), 0);
	source_release(&s);
	server_stop(&hub);
	assert_non_null(strstr(path.data, "hub/datasets--org--set/snapshots/" C1
		"/data/train-00001-of-00002.jsonl"));

	setenv("HF_HUB_OFFLINE", "1", 1);
	noted = NULL;
	assert_int_equal(source_open(&o, &s, &e), 0);
	assert_int_equal(s.count, 1);
	assert_string_equal(noted, "cache");
	assert_int_equal(source_path(&o, &s, 0, &path, &e), 0);
	assert_string_equal(s.file[0], "data/train-00001-of-00002.jsonl");
	source_release(&s);
	assert_int_equal(source_file(&o, "data/train-00001-of-00002.jsonl", &path, &e), 0);
	o.split = "test";
	assert_int_equal(source_open(&o, &s, &e), -1);
	assert_string_equal(e.text, "org/set: there is no split \"test\"; it has train");
	o.path = "org/none";
	assert_int_equal(source_open(&o, &s, &e), -1);
	assert_int_equal(e.code, ERR_IO);
	buf_release(&path);
}

/* A repository with a program in place of data: the hub's own conversion. */
static void test_hub_converted(void **state)
{
	static const char list[] = LIST(C1, FILE_NAMED("old.py") "," FILE_NAMED("meta.tsv"));
	static const char converted[] = LIST(C2, FILE_NAMED("default/train/0000.parquet"));
	struct source_opts o = { .path = "org/old" };
	struct source s;
	struct buf path = { 0 };
	struct server hub;
	struct err e = { 0 };

	(void)state;
	begin_hub(&hub, (const char *[]){ list, converted, HELLO_FILE(C2), NULL });
	assert_int_equal(source_open(&o, &s, &e), 0);
	assert_string_equal(s.subset, "default");
	assert_int_equal(source_path(&o, &s, 0, &path, &e), 0);
	assert_non_null(strstr(path.data, "/snapshots/" C2 "/default/train/0000.parquet"));
	assert_int_equal(occurrences(&hub.asked, "revision/refs%2Fconvert%2Fparquet "), 1);
	source_release(&s);
	server_stop(&hub);

	/* Asked for a revision, that revision it is. */
	o.revision = "v1";
	begin_hub(&hub, (const char *[]){ list, NULL });
	assert_int_equal(source_open(&o, &s, &e), 0);
	assert_string_equal(s.file[0], "meta.tsv");
	source_release(&s);
	server_stop(&hub);
	buf_release(&path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_glob),
		cmocka_unit_test(test_glob_is_quick),
		cmocka_unit_test(test_default_splits),
		cmocka_unit_test(test_cards),
		cmocka_unit_test(test_deep_card),
		cmocka_unit_test(test_converted),
		cmocka_unit_test(test_folder),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_hub),
		cmocka_unit_test(test_hub_converted),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
