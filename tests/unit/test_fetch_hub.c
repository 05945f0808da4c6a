/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_fetch_hub.c - the hub client from inside: the environment, names, the cache on disk,
 * and one file's way into it. tests/cli/hub.t has the failures of a hub.
 *
 * threads: yes
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "fetch_server.h"
#include "input/fetch/hub_internal.h"
#include "scratch.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define C1 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define C2 "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
/* "hello": git's id, SHA-1, SHA-256 */
#define HELLO_GIT "b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0"
#define HELLO_SHA1 "aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d"
#define HELLO_SHA256 "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"

static const char *const VARIABLES[] = { "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME",
	"XDG_CACHE_HOME", "HF_ENDPOINT", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH",
	"HF_HUB_DISABLE_IMPLICIT_TOKEN", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE",
	"HF_HUB_ETAG_TIMEOUT", "HF_HUB_DOWNLOAD_TIMEOUT" };

static int reset(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(VARIABLES); i++)
		unsetenv(VARIABLES[i]);
	setenv("HOME", "/them", 1);
	return 0;
}

static void set_all(const char *const *pair)
{
	reset(NULL);
	for (; pair[0]; pair += 2)
		setenv(pair[0], pair[1], 1);
}

/* ---- the environment ---- */

static void test_cache_dir(void **state)
{
	static const struct {
		const char *set[7], *dir;
	} row[] = {
		{ { NULL }, "/them/.cache/huggingface/hub" },
		{ { "XDG_CACHE_HOME", "/c" }, "/c/huggingface/hub" },
		{ { "HF_HOME", "/h", "XDG_CACHE_HOME", "/c" }, "/h/hub" },
		{ { "HUGGINGFACE_HUB_CACHE", "/old", "HF_HOME", "/h" }, "/old" },
		{ { "HF_HUB_CACHE", "/new", "HUGGINGFACE_HUB_CACHE", "/old" }, "/new" },
		{ { "HF_HUB_CACHE", "", "HF_HOME", "/h" }, "/h/hub" },
		{ { "HF_HUB_CACHE", "~/c" }, "/them/c" },
		{ { "HF_HOME", "~" }, "/them/hub" },
		{ { "HF_HOME", "~user/c" }, "~user/c/hub" },
		{ { "HF_HUB_CACHE", "$HF_HOME/a", "HF_HOME", "/h" }, "/h/a" },
		{ { "HF_HUB_CACHE", "${HF_HOME}b/$NOT_SET$/${HF_HOME", "HF_HOME", "/h" },
			"/hb/$NOT_SET$/${HF_HOME" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct hub_opts o = { 0 };
		struct err e = { 0 };
		struct hub h;

		set_all(row[i].set);
		assert_int_equal(hub_begin(&h, &o, "org/m", &e), 0);
		assert_string_equal(h.cache.data, row[i].dir);
		hub_end(&h);
		o.cache_dir = "~as it is";
		o.kind = HUB_DATASET;
		assert_int_equal(hub_begin(&h, &o, "org/m", &e), 0);
		assert_string_equal(h.dir.data, "~as it is/datasets--org--m");
		hub_end(&h);
	}
}

static void test_settings(void **state)
{
	static const struct {
		const char *set[7], *authorization, *endpoint, *error;
		int is_offline, etag_ms, download_ms;
	} row[] = {
		{ { NULL }, NULL, "https://huggingface.co", NULL, 0, 10000, 10000 },
		{ { "HF_TOKEN", " a\n" }, "Bearer a", "https://huggingface.co", NULL, 0, 10000, 10000 },
		{ { "HF_TOKEN", "", "HUGGING_FACE_HUB_TOKEN", "b" }, "Bearer b", NULL, NULL, 0, 0, 0 },
		{ { "HF_TOKEN", "a", "HUGGING_FACE_HUB_TOKEN", "b" }, "Bearer a", NULL, NULL, 0, 0, 0 },
		{ { "HF_TOKEN", "a", "HF_HUB_DISABLE_IMPLICIT_TOKEN", "On" }, NULL, NULL, NULL, 0, 0, 0 },
		{ { "HF_TOKEN", "a", "HF_HUB_DISABLE_IMPLICIT_TOKEN", "0" }, "Bearer a", NULL, NULL, 0, 0,
			0 },
		{ { "HF_TOKEN", "a b" }, NULL, NULL, "has a character at position 1 "
		  "that tokens cannot contain", 0, 0, 0 },
		{ { "HF_ENDPOINT", "http://x:1//" }, NULL, "http://x:1", NULL, 0, 0, 0 },
		{ { "HF_ENDPOINT", "x" }, NULL, NULL, "HF_ENDPOINT=x: expected http", 0, 0, 0 },
		{ { "HF_HUB_OFFLINE", "yes" }, NULL, NULL, NULL, 1, 0, 0 },
		{ { "HF_HUB_OFFLINE", "0", "TRANSFORMERS_OFFLINE", "1" }, NULL, NULL, NULL, 0, 0, 0 },
		{ { "HF_HUB_OFFLINE", "", "TRANSFORMERS_OFFLINE", "TRUE" }, NULL, NULL, NULL, 1, 0, 0 },
		{ { "HF_HUB_ETAG_TIMEOUT", "3", "HF_HUB_DOWNLOAD_TIMEOUT", "0" }, NULL, NULL, NULL, 0, 3000,
			10000 },
		{ { "HF_HUB_ETAG_TIMEOUT", "1.5" }, NULL, NULL, "HF_HUB_ETAG_TIMEOUT=1.5: expected", 0, 0,
			0 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct hub_opts o = { 0 };
		struct err e = { 0 };
		struct hub h;
		int rc;

		set_all(row[i].set);
		rc = hub_begin(&h, &o, "org/m", &e);
		assert_int_equal(rc, row[i].error ? -1 : 0);
		if (row[i].error && (e.code != ERR_USAGE || !strstr(e.text, row[i].error)))
			fail_msg("row %zu: %s", i, e.text);
		if (rc == 0) {
			assert_int_equal(h.authorization.len > 0, row[i].authorization != NULL);
			if (row[i].authorization)
				assert_string_equal(h.authorization.data, row[i].authorization);
			if (row[i].endpoint)
				assert_string_equal(h.endpoint.data, row[i].endpoint);
			assert_int_equal(h.is_offline, row[i].is_offline);
			if (row[i].etag_ms)
				assert_int_equal(h.etag_timeout_ms, row[i].etag_ms);
			if (row[i].download_ms)
				assert_int_equal(h.download_timeout_ms, row[i].download_ms);
		}
		hub_end(&h);
	}
}

static void test_token_files(void **state)
{
	struct buf path = { 0 };
	struct hub_opts o = { 0 };
	struct err e = { 0 };
	struct hub h;

	(void)state;
	reset(NULL);
	setenv("HF_HOME", dir, 1);
	buf_printf(&path, "%s/token", dir);
	assert_int_equal(file_write_atomic(path.data, STR("\nin_home\r\n"), &e), 0);
	assert_int_equal(hub_begin(&h, &o, "m", &e), 0);
	assert_string_equal(h.authorization.data, "Bearer in_home");
	hub_end(&h);
	buf_add_text(&path, "2");
	assert_int_equal(file_write_atomic(path.data, STR("by_path"), &e), 0);
	setenv("HF_TOKEN_PATH", "$HF_HOME/token2", 1);
	assert_int_equal(hub_begin(&h, &o, "m", &e), 0);
	assert_string_equal(h.authorization.data, "Bearer by_path");
	hub_end(&h);
	o.token = "given";
	setenv("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1", 1);
	assert_int_equal(hub_begin(&h, &o, "m", &e), 0);
	assert_string_equal(h.authorization.data, "Bearer given");
	hub_end(&h);
	unlink(path.data);
	path.data[path.len - 1] = 0;
	unlink(path.data);
	buf_release(&path);
}

/* ---- names ---- */

static void test_names(void **state)
{
	static const char *const good[] = { "gpt2", "org/m", "a/b", "Qwen/Qwen3-8B", "_a/b_",
		"o.r-g/m_1.2" };
	static const char *const bad[] = { "", "/", "a/", "/a", "a/b/c", "-a", "a-", ".a/b", "a/b.",
		"a--b", "a..b", "a/b.git", "a b", "a/b?", "\xc3\xa9", "x:y",
		"0123456789012345678901234567890123456789012345678901234567890123456789"
		"012345678901234567890123456" };
	static const char *const safe[] = { "a", "a/b", "a b", "..a", ".a", "refs/pr/1", "\xc3\xa9" };
	static const char *const unsafe[] = { "", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "a/.",
		"a\nb", "a\\b", "a\x7f" };

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++)
		assert_true(hub_is_repo(good[i]));
	for (size_t i = 0; i < COUNT(bad); i++)
		if (hub_is_repo(bad[i]))
			fail_msg("%s", bad[i]);
	for (size_t i = 0; i < COUNT(safe); i++)
		assert_true(hub_is_safe_path(safe[i]));
	for (size_t i = 0; i < COUNT(unsafe); i++)
		if (hub_is_safe_path(unsafe[i]))
			fail_msg("%s", unsafe[i]);
	assert_true(hub_is_commit(C1));
	assert_false(hub_is_commit(C1 "a"));
	assert_false(hub_is_commit(&C1[1]));
	assert_false(hub_is_commit("g" "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
}

static void test_check(void **state)
{
	static const struct {
		const char *etag;
		bool is_same;
	} row[] = {
		{ HELLO_GIT, true }, { HELLO_SHA1, true }, { HELLO_SHA256, true },
		{ C1, false }, { C1 "aaaaaaaaaaaaaaaaaaaaaaaa", false },
		{ "B6FC4C620B67D95F953A5C1C1230AAAB5DB5A1B0", true },
		{ "5d41402abc4b2a76b9719d911017c592", true }, { "abc-2", true },
	};
	char path[] = "/tmp/check-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_int_equal(write(fd, "hello", 5), 5);
	close(fd);
	for (size_t i = 0; i < COUNT(row); i++) {
		struct err e = { 0 };

		assert_int_equal(hub_check(path, row[i].etag, &e), row[i].is_same ? 0 : -1);
		if (!row[i].is_same)
			assert_non_null(strstr(e.text, "does not match what the hub announced"));
	}
	unlink(path);
}

/* So many letters "a": around the ends of blocks, with the head that git puts before them. */
static void test_git_ids(void **state)
{
	static const struct {
		size_t n;
		const char *id;
	} row[] = {
		{ 47, "5e3bf7e629b4908cce461530c17a64365cb47303" },
		{ 48, "12d42395b020f44bb7710113b31f688d0ebeda7c" },
		{ 55, "d1985ddc2983785702b9a90effd5aff2f7cfdca4" },
		{ 56, "1f973e890f52da1f22fa7e5620a628bc4ee74cb3" },
		{ 57, "d28c6cde5a5ab0b138bd53a288c23e8c011c4171" },
		{ 119, "1325c3d76ea6a66e75dce490a0b8cb8b12233ee0" },
		{ 120, "253af86ee859905852357aee8bd83b08601364ae" },
		{ 1000, "a50be72b20f0e3f078d252e8e56b11b4bec67509" },
	};
	char path[] = "/tmp/check-XXXXXX", text[1000];

	(void)state;
	close(mkstemp(path));
	memset(text, 'a', sizeof(text));
	for (size_t i = 0; i < COUNT(row); i++) {
		struct err e = { 0 };

		assert_int_equal(file_write_atomic(path, (struct str){ text, row[i].n }, &e), 0);
		if (hub_check(path, row[i].id, &e))
			fail_msg("%zu bytes: %s", row[i].n, e.text);
	}
	unlink(path);
}

/* ---- one file ---- */

#define HEAD_OF(commit, etag, bytes) "HTTP/1.1 200 OK\r\nConnection: close\r\nX-Repo-Commit: " \
	commit "\r\nETag: " etag "\r\nContent-Length: " bytes "\r\n\r\n"
#define BODY_OF(text, bytes) "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " bytes \
	"\r\n\r\n" text
#define NO_ENTRY "HTTP/1.1 404 X\r\nConnection: close\r\nX-Error-Code: EntryNotFound\r\n" \
	"X-Repo-Commit: " C2 "\r\nContent-Length: 0\r\n\r\n"
#define NO_REVISION "HTTP/1.1 404 X\r\nConnection: close\r\nX-Error-Code: RevisionNotFound\r\n" \
	"Content-Length: 0\r\n\r\n"
#define BROKEN "HTTP/1.1 500 X\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

/* One after the other, in the same cache. */
struct step {
	const char *answer[4];
	const char *revision, *file;
	bool is_offline;
	int rc;
	const char *path;   /* below the repository's directory; for rc -1 what the error has */
	const char *asked;  /* NULL: nothing at all */
	const char *ref;    /* of main afterwards */
	bool is_noted;
};

static const struct step STEPS[] = {
	{ .answer = { NULL }, .file = "a/b.txt", .is_offline = true, .rc = -1,
		.path = "is not in the cache" },
	{ .answer = { HEAD_OF(C1, "\"" HELLO_GIT "\"", "5"), BODY_OF("hello", "5") },
		.file = "a/b.txt", .path = "snapshots/" C1 "/a/b.txt", .ref = C1,
		.asked = "HEAD /datasets/org/m/resolve/main/a/b.txt " },
	{ .file = "a/b.txt", .is_offline = true, .path = "snapshots/" C1 "/a/b.txt", .ref = C1 },
	{ .file = "a/b.txt", .revision = C1, .path = "snapshots/" C1 "/a/b.txt", .ref = C1 },
	{ .answer = { HEAD_OF(C1, "W/\"" HELLO_GIT "\"", "5") }, .file = "a/b.txt",
		.path = "snapshots/" C1 "/a/b.txt", .asked = "HEAD ", .ref = C1 },
	{ .answer = { BROKEN }, .file = "a/b.txt", .path = "snapshots/" C1 "/a/b.txt",
		.asked = "HEAD ", .ref = C1, .is_noted = true },
	{ .answer = { NO_REVISION }, .file = "a/b.txt", .rc = -1, .path = "has no revision main",
		.asked = "HEAD ", .ref = C1 },
	{ .answer = { NO_ENTRY }, .file = "c d", .rc = HUB_NO_FILE, .asked = "/main/c%20d ", .ref = C2 },
	{ .file = "c d", .is_offline = true, .rc = HUB_NO_FILE, .ref = C2 },
	{ .file = "c d", .revision = C2, .rc = HUB_NO_FILE, .ref = C2 },
	/* The same bytes at another commit: a link, no download. */
	{ .answer = { HEAD_OF(C2, "\"" HELLO_GIT "\"", "5") }, .file = "a/b.txt",
		.path = "snapshots/" C2 "/a/b.txt", .asked = "HEAD ", .ref = C2 },
	{ .answer = { HEAD_OF(C2, "\"" HELLO_SHA256 "\"", "5"), BODY_OF("hellO", "5") },
		.file = "e", .rc = -1, .path = "its content does not match", .asked = "GET ", .ref = C2 },
	{ .answer = { HEAD_OF(C2, "\"" HELLO_SHA256 "\"", "5"), BODY_OF("hello", "5") },
		.file = "e", .path = "snapshots/" C2 "/e", .asked = "/resolve/" C2 "/e ", .ref = C2 },
	{ .answer = { HEAD_OF(C2, "\"" HELLO_SHA1 "\"", "5"), BODY_OF("hello", "5") },
		.file = "f", .revision = "refs/pr/1", .path = "snapshots/" C2 "/f",
		.asked = "/resolve/refs%2Fpr%2F1/f ", .ref = C2 },
	{ .file = "../x", .rc = -1, .path = "is not a path of a file in a repository", .ref = C2 },
	{ .file = "x", .revision = "../x", .rc = -1, .path = "is not a valid revision", .ref = C2 },
};

static void on_note(void *self, const char *text)
{
	*(bool *)self = strstr(text, "dataset org/m is used from the cache (commit ") != NULL;
}

static void check_step(size_t i, const char *root)
{
	const struct step *st = &STEPS[i];
	bool is_noted = false;
	struct hub_opts o = { .kind = HUB_DATASET, .revision = st->revision, .cache_dir = root,
		.is_offline = st->is_offline, .note = on_note, .self = &is_noted };
	struct buf path = { 0 }, want = { 0 }, text = { 0 };
	struct err e = { 0 };
	struct server s;
	char url[64];

	server_start(&s, st->answer);
	snprintf(url, sizeof(url), "http://127.0.0.1:%d", s.port);
	setenv("HF_ENDPOINT", url, 1);
	if (hub_file(&o, "org/m", st->file, &path, &e) != st->rc)
		fail_msg("step %zu: %s", i, e.text);
	if (st->rc == 0) {
		buf_printf(&want, "%s/datasets--org--m/%s", root, st->path);
		assert_string_equal(path.data, want.data);
		assert_int_equal(file_read(path.data, 100, &text, &e), 0);
		assert_string_equal(text.data, "hello");
	} else if (st->path && !strstr(e.text, st->path)) {
		fail_msg("step %zu: %s", i, e.text);
	}
	if (st->asked ? !s.asked.data || !strstr(s.asked.data, st->asked) : s.asked.len > 0)
		fail_msg("step %zu: asked %s", i, s.asked.data ? s.asked.data : "nothing");
	assert_int_equal(is_noted, st->is_noted);
	buf_reset(&want);
	buf_reset(&text);
	buf_printf(&want, "%s/datasets--org--m/refs/main", root);
	if (st->ref) {
		assert_int_equal(file_read(want.data, 100, &text, &e), 0);
		assert_string_equal(text.data, st->ref);
	} else {
		assert_false(file_exists(want.data));
	}
	server_stop(&s);
	buf_release(&path);
	buf_release(&want);
	buf_release(&text);
}

/* Others may read what is below the repository's directory as the umask allows. */
static void check_mode(const char *path)
{
	struct buf whole = { 0 };
	struct stat st;

	buf_printf(&whole, "%s/datasets--org--m/%s", dir, path);
	assert_int_equal(stat(whole.data, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0646);
	buf_release(&whole);
}

static void test_file(void **state)
{
	mode_t mask = umask(020);

	(void)state;
	reset(NULL);
	for (size_t i = 0; i < COUNT(STEPS); i++)
		check_step(i, dir);
	check_mode(".no_exist/" C2 "/c d");
	check_mode("blobs/" HELLO_GIT);
	check_mode("refs/main");
	umask(mask);
}

/* ---- lists, after the files of test_file ---- */

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void test_list(void **state)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"sha\": \"" C1 "\", "
		"\"siblings\": [{\"rfilename\": \"a/b.txt\"}, {\"rfilename\": \"\\u0063 d\", \"size\": 1}]}";
	struct hub_opts o = { .kind = HUB_DATASET, .cache_dir = dir, .is_offline = true };
	struct hub_list list;
	struct buf path = { 0 };
	struct err e = { 0 };
	struct server s;
	char url[64];

	(void)state;
	assert_int_equal(hub_list(&o, "org/m", &list, &e), 0);
	assert_true(list.is_cached);
	assert_string_equal(list.commit, C2);
	assert_int_equal(list.count, 3);
	qsort(list.file, list.count, sizeof(*list.file), compare_texts);
	assert_string_equal(list.file[0], "a/b.txt");
	assert_string_equal(list.file[2], "f");
	hub_list_release(&list);

	server_start(&s, (const char *[]){ answer, NULL });
	snprintf(url, sizeof(url), "http://127.0.0.1:%d", s.port);
	setenv("HF_ENDPOINT", url, 1);
	o.is_offline = false;
	assert_int_equal(hub_list(&o, "org/m", &list, &e), 0);
	assert_non_null(strstr(s.asked.data, "GET /api/datasets/org/m/revision/main "));
	assert_false(list.is_cached);
	assert_string_equal(list.commit, C1);
	assert_int_equal(list.count, 2);
	assert_string_equal(list.file[1], "c d");
	hub_remember(&o, "org/m", &list, (const char *const[]){ "g", NULL });
	hub_list_release(&list);
	server_stop(&s);

	o.is_offline = true;
	assert_int_equal(hub_file(&o, "org/m", "g", &path, &e), HUB_NO_FILE);
	assert_int_equal(hub_file(&o, "org/m", "a/b.txt", &path, &e), 0);
	assert_non_null(strstr(path.data, "/snapshots/" C1 "/"));
	assert_int_equal(hub_list(&o, "org/none", &list, &e), -1);
	assert_int_equal(e.code, ERR_IO);
	buf_release(&path);
}

static void test_bad_lists(void **state)
{
	static const char *const body[] = { "", "[]", "{\"sha\": 1, \"siblings\": []}",
		"{\"sha\": \"../x\", \"siblings\": []}", "{\"sha\": \"" C1 "\"}",
		"{\"sha\": \"" C1 "\", \"siblings\": [{\"rfilename\": 1}]}",
		"{\"sha\": \"" C1 "\", \"siblings\": [\"a\"]}",
		"{\"sha\": \"" C1 "\", \"siblings\": [{\"rfilename\": \"a\\u0000b\"}]}" };

	(void)state;
	for (size_t i = 0; i < COUNT(body); i++) {
		struct hub_opts o = { .cache_dir = dir };
		struct buf answer = { 0 };
		struct hub_list list;
		struct server s;
		struct err e = { 0 };
		char url[64];

		buf_printf(&answer, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n%s", body[i]);
		server_start(&s, (const char *[]){ answer.data, NULL });
		snprintf(url, sizeof(url), "http://127.0.0.1:%d", s.port);
		setenv("HF_ENDPOINT", url, 1);
		assert_int_equal(hub_list(&o, "org/x", &list, &e), -1);
		assert_int_equal(e.code, ERR_NET);
		if (!strstr(e.text, "does not answer as a hub does"))
			fail_msg("row %zu: %s", i, e.text);
		server_stop(&s);
		buf_release(&answer);
	}
}

/* ---- the lock ---- */

static void *cancel_soon(void *flag)
{
	usleep(150000);
	atomic_store((atomic_bool *)flag, true);
	return NULL;
}

static void test_lock(void **state)
{
	atomic_bool cancel = false;
	struct hub_opts o = { .cache_dir = dir, .cancel = &cancel };
	struct err e = { 0 };
	pthread_t thread;
	struct hub h;
	int one, two;

	(void)state;
	reset(NULL);
	assert_int_equal(hub_begin(&h, &o, "org/lock", &e), 0);
	one = hub_lock(&h, "etag", &e);
	assert_true(one >= 0);
	two = hub_lock(&h, "another", &e);
	assert_true(two >= 0);
	close(two);
	assert_int_equal(pthread_create(&thread, NULL, cancel_soon, &cancel), 0);
	assert_int_equal(hub_lock(&h, "etag", &e), -1);
	assert_int_equal(e.code, ERR_CANCELLED);
	pthread_join(thread, NULL);
	atomic_store(&cancel, false);
	close(one);
	two = hub_lock(&h, "etag", &e);
	assert_true(two >= 0);
	close(two);
	hub_end(&h);
}

static int set_up(void **state)
{
	without_proxies();
	return make_dir(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cache_dir), cmocka_unit_test(test_settings),
		cmocka_unit_test(test_token_files), cmocka_unit_test(test_names),
		cmocka_unit_test(test_check), cmocka_unit_test(test_git_ids),
		cmocka_unit_test(test_file), cmocka_unit_test(test_list),
		cmocka_unit_test(test_bad_lists), cmocka_unit_test(test_lock),
	};

	return cmocka_run_group_tests(tests, set_up, remove_dir);
}
