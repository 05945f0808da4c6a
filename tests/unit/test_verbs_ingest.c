/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_ingest.c - `profllm ingest` of folders that are watched, of files that are too large
 * to be read at once, and to a dashboard that wants a token.
 *
 * threads: yes
 */
#include "verb.h"

#define DOCUMENT(id, value) "{" BODY(id, value)
#define BODY(id, value) "\"schema_version\": 1, \"run_id\": \"exp_" id "\", \"timestamp\": " \
	"\"2026-01-02T03:04:05Z\", \"config\": {\"name\": \"c\"}, \"results\": {\"request_throughput\": " \
	value "}, \"environment\": {}, \"status\": \"completed\"}"
#define RECORD(name) "\"benchmark\": {\"name\": \"vLLM benchmark\", \"extra_info\": {}}, \"model\": " \
	"{\"name\": \"m\"}, \"metric\": {\"name\": \"" name "\", \"benchmark_values\": [1]}}"
#define HALF "{\"schema_version\": 1, \"run_id\": "
#define LONG_AGO_S 1000000000
#define LATER_S 4000000000
static void put(const char *path, const char *text)
{
	const char *slash = strrchr(path, '/');
	struct err e;
	char folder[64];

	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
	assert_int_equal(file_mkdirs(folder, &e), 0);
	if (file_write_atomic(path, str_of(text), &e) < 0)
		fail_msg("%s", e.text);
}

static void set_changed(const char *path, time_t at_s)
{
	const struct timespec at[2] = { { .tv_sec = at_s }, { .tv_sec = at_s } };

	assert_int_equal(utimensat(AT_FDCWD, path, at, 0), 0);
}

static void wait_for_text(const char *path, const char *text, pid_t pid)
{
	int64_t until_ns = clock_mono_ns() + VERB_PATIENCE_NS;
	struct buf got = { 0 };

	for (;;) {
		buf_reset(&got);
		if (file_read(path, SIZE_MAX, &got, NULL) == 0) {
			buf_add_char(&got, '\0');
			if (strstr(got.data, text))
				break;
		}
		if (clock_mono_ns() > until_ns || waitpid(pid, NULL, WNOHANG) == pid)
			fail_msg("%s does not get '%s', but has:\n%s", path, text, got.data);
		usleep(2000);
	}
	buf_release(&got);
}

static void answer(const char *title, int status)
{
	struct buf got = { 0 };

	buf_printf(&got, "status %d\n", status);
	verb_add_file(&got, "stdout", "out", 0, NULL);
	verb_add_file(&got, "stderr", "err", 0, NULL);
	verb_answer(title, &got);
}

/*
 * What is in the folders, with more folders and files than there is room for at first; then each
 * step, and the line that it leads to. A step without one leads to nothing: the next line follows
 * the last one.
 */
static void watched(void **state)
{
	static const struct {
		enum { WRITTEN, AGED, GONE } how;
		const char *path, *text, *line;
	} step[] = {
		{ .path = "w/b.json", .text = DOCUMENT("2", "2"), .line = "new        w/b.json" },
		{ .path = "w/.hidden.json", .text = DOCUMENT("3", "3") },
		{ .path = "w/notes.txt", .text = "nothing" },
		{ .path = "w/known.json", .text = DOCUMENT("1", "11"), .line = "conflict   w/known.json" },
		{ .path = "w/new/deep/c.json", .text = DOCUMENT("4", "4"), .line = "new        w/new/deep/c.json" },
		{ .path = "w/new/deep/c.json", .how = GONE }, { .path = "w/new/deep", .how = GONE },
		{ .path = "w/new/deep/d.json", .text = DOCUMENT("5", "5"), .line = "new        w/new/deep/d.json" },
		{ .path = "w/late2.json", .text = DOCUMENT("6", "6"), .line = "new        w/late2.json" },
		{ .path = "w/late2.json", .how = AGED }, { .path = "w/late3.json", .how = GONE },
		{ .path = "w/late1.json", .how = AGED, .line = "invalid    w/late1.json" },
		{ .path = "w/bad.json", .text = "[", .line = "invalid    w/bad.json" },
		{ .path = "w/other.json", .text = "{}", .line = "skipped    w/other.json" },
	};
	pid_t pid;

	(void)state;
	for (int i = 0; i < 66; i++) {
		char path[32];

		snprintf(path, sizeof(path), "w/%02d/%02d.json", i / 3, i);
		put(path, "{}");
		set_changed(path, LONG_AGO_S);
	}
	put("w/known.json", DOCUMENT("1", "1"));
	put("w/broken.json", HALF);
	set_changed("w/broken.json", LONG_AGO_S);
	for (int i = 1; i <= 3; i++) {
		char path[32];

		snprintf(path, sizeof(path), "w/late%d.json", i);
		put(path, HALF);
		set_changed(path, LATER_S); /* always as if it was just being written */
	}
	put("one.json", DOCUMENT("7", "7"));
	pid = verb_begin("ingest w one.json --watch --store sqlite:w.db", NULL, "out", "err");
	wait_for_text("out", "one.json", pid);
	for (size_t i = 0; i < COUNT(step); i++) {
		if (step[i].how == AGED)
			set_changed(step[i].path, LONG_AGO_S);
		else if (step[i].how == GONE)
			assert_int_equal(remove(step[i].path), 0);
		else
			put(step[i].path, step[i].text);
		if (step[i].line)
			wait_for_text("out", step[i].line, pid);
	}
	/* Opened and closed without a change: it is not read again. */
	close(open("w/b.json", O_WRONLY | O_CLOEXEC));
	put("w/21/last.json", DOCUMENT("8", "8"));
	wait_for_text("out", "w/21/last.json", pid);
	kill(pid, SIGTERM);
	answer("watched", verb_end(pid));
}

/* ---- large files ---- */

#define LARGE (65 << 20)
#define BREAK 60 /* MiB before the new line: less than may be read at once */

/* "head", blanks, a new line, "{", blanks, "tail". */
static void put_large(const char *path, const char *head, const char *tail)
{
	static char blanks[1 << 20];
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	size_t n = strlen(tail);

	assert_true(fd >= 0);
	if (lseek(fd, 0, SEEK_END) == 0) {
		memset(blanks, ' ', sizeof(blanks));
		for (int i = 0; i < LARGE >> 20; i++) {
			blanks[0] = i == BREAK ? '\n' : ' ';
			blanks[1] = i == BREAK ? '{' : ' ';
			assert_int_equal(file_write_all(fd, (struct str){ blanks, sizeof(blanks) }),
					 0);
		}
	}
	memset(blanks, ' ', 1024);
	blanks[0] = ' ';
	assert_int_equal(pwrite(fd, blanks, 1024, LARGE - 1024), 1024);
	memcpy(blanks, head, strlen(head));
	assert_int_equal(pwrite(fd, blanks, 1024, 0), 1024);
	assert_int_equal(pwrite(fd, tail, n, LARGE - (off_t)n), n);
	close(fd);
}

static void large(void **state)
{
	static const struct {
		const char *head, *tail;
		struct verb_case c[3];
	} row[] = {
		{ DOCUMENT("1", "1") "\n", BODY("2", "2") "\n", {
			{ .line = "ingest large.json --store sqlite:l.db" },
			{ .line = "ingest small.json large.json --store sqlite:l.db --json" },
		} },
		{ "[" DOCUMENT("1", "1") ", " DOCUMENT("2", "3") ",", BODY("4", "2") "]", {
			{ .line = "ingest small.json large.json --store sqlite:m.db" },
			{ .line = "ingest large.json --server http://127.0.0.1:$WEB --token-file token" },
		} },
		{ DOCUMENT("1", "1") "\n", "\"no\": 1}\n", {
			{ "ingest large.json --store sqlite:n.db", .status = 1 },
			{ .line = "export --store sqlite:n.db" },
		} },
		{ "[{" RECORD("mean_ttft_ms") ",", RECORD("p99_ttft_ms") "]", {
			{ "ingest large.json --store sqlite:n.db ", .status = 1 },
		} },
		{ "[" DOCUMENT("1", "1") ",", BODY("2", "2"), {
			{ "ingest large.json small.json --store sqlite:n.db", .status = 1 },
		} },
		{ "{\"a\":", "}}", { { "ingest large.json --store sqlite:n.db  ", .status = 1 } } },
	};

	(void)state;
	put("small.json", DOCUMENT("1", "11"));
	for (size_t i = 0; i < COUNT(row); i++) {
		put_large("large.json", row[i].head, row[i].tail);
		for (size_t k = 0; k < COUNT(row[i].c) && row[i].c[k].line; k++)
			verb_check(&row[i].c[k]);
	}
}

/* ---- to a dashboard ---- */

static void sent(void **state)
{
#define TO " --server http://127.0.0.1:$WEB"
#define TOKEN TO " --token-file token"
	static const struct verb_case cases[] = {
		{ "ingest folder/traces.json" TO, .status = 1 },
		{ "ingest folder/traces.json" TO " --token-file wrong", .status = 1 },
		{ "ingest folder" TOKEN, .status = 1 },
		{ "ingest folder --json --no-traces" TOKEN, .status = 1 },
		{ .line = "ingest folder/traces.json --json" TOKEN },
		{ .line = "ingest several.jsonl" TOKEN },
		{ .line = "ingest folder/other.json" TOKEN, .status = 1 },
		{ .line = "ingest folder/traces.json --trace t.json" TOKEN },
		{ .line = "ingest folder/other.json --trace t.json" TOKEN, .status = 2 },
	};

	(void)state;
	put("token", "0123456789abcdef0123456789abcdef\n");
	put("wrong", "0123456789abcdef0123456789abcdee\n");
	put("t.json", "{\"traceEvents\": []}\n");
	put("folder/traces.json", "{\"profiling\": {\"traces\": [{\"path\": \"sub/t.json\"}, "
	    "{\"path\": \"gone.json\"}]}, "
	    BODY("t", "1"));
	put("folder/sub/t.json", "{\"traceEvents\": []}\n");
	put("folder/notes.txt", "nothing");
	put("folder/other.json", "{}");
	put("folder/bad.json", "[");
	put("several.jsonl", "{\"profiling\": {\"traces\": [{\"path\": \"gone.json\"}]}, " BODY("u", "1") "\n"
	    DOCUMENT("v", "2") "\n");
	verb_check_all(cases, COUNT(cases));
}

static int setup(void **state)
{
	char line[256], port[16] = "";
	FILE *f;

	if (verb_setup(state) < 0)
		return -1;
	put("tokens", "bot 0123456789abcdef0123456789abcdef\n");
	snprintf(line, sizeof(line), "dashboard --auth-token-file tokens --listen 127.0.0.1:0 --port-file %s/port "
		 "--store sqlite:d.db --no-launch", dir);
	verb_server[0] = verb_begin(line, NULL, "web.out", "web.err");
	verb_wait_for("port", verb_server[0]);
	f = fopen("port", "r");
	assert_true(f && fscanf(f, "%15s", port) == 1);
	fclose(f);
	verb_let("WEB", port);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sent), cmocka_unit_test(watched), cmocka_unit_test(large),
	};

	if (argc > 1)
		return profllm_main(argc, argv);
	return cmocka_run_group_tests(tests, setup, verb_teardown);
}
