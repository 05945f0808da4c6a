/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_web_wire.c - requests byte by byte: heads that are refused, bodies of every size and form,
 * parts of files, tokens and cookies, uploads of many files, traces.
 *
 * threads: yes
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define ANSWERS_MAX 300
#include "web_rig.h"

#define RUN(id) "{'schema_version': 1, 'run_id': '" id "', 'status': 'completed', 'timestamp': " \
	"'2026-01-01T00:00:00Z', 'config': {'name': 'x', 'mode': 'serve', 'server': {'model': 'm'}}, " \
	"'results': {'completed': 6, 'request_throughput': 2}"
#define PART(field, file) "--x\nContent-Disposition: form-data; name='" field "'; filename='" file "'\n\n"

static void start(void)
{
	rig_is_whole = true;
	rig_start("wire", (struct web_opts){ .has_no_auth = true });
}

static void heads(void **state)
{
	static const struct rig_request request[] = {
		{ "GET /api/health", NULL }, { "HEAD /api/health", NULL }, { "GET /api/none", NULL },
		{ "DELETE /api/health", NULL }, { "POST /runs", "" }, { "GET nowhere", NULL },
		{ "PUT /metrics", "{}" },
		{ "GET /api/health\nHost: evil.example", NULL },
		{ "GET /api/health\nHost: localhost:9", NULL },
		{ "GET /api/health\nHost: [::1", NULL },
		{ "GET /api/health\nOrigin: http://evil.example", NULL },
		{ "POST /api/upload/raw\nOrigin: http://evil.example", "{}" },
		{ "POST /api/upload/raw\nHost: localhost\nOrigin: https://LOCALHOST", "[" },
		{ "POST /api/upload/raw\nContent-Encoding: gzip", "x" },
		{ "POST /api/upload/raw\nContent-Encoding: Identity", "x" },
		{ "POST /api/upload/batch", "{}" },
		{ "POST /api/upload/json\nContent-Type: text/plain", "x" },
		{ "POST /api/upload/json\nContent-Type: application/JSON; charset=utf-8", "[" },
		{ "POST /api/filters/apply", "--x\nContent-Disposition: form-data; name='a'\n\nx\n--x--\n" },
		{ "POST /api/filters/apply\nContent-Type: application/x-www-form-urlencoded", "a=b" },
		{ "POST /api/filters/apply\nContent-Type: text/plain", "{'limit': 0, 'columns': []}" },
		/* Of what is refused anyhow 8 MiB are read; otherwise the answer comes at once. */
		{ "POST /api/filters/apply\nContent-Length: 8388609", NULL },
		{ "POST /api/none\nContent-Length: 9000000000", NULL },
		{ "POST /api/filters/apply", "  \n" }, { "POST /api/filters/apply", "{'a': '\xff'}" },
		{ "POST /api/filters/apply", "{'a': " },
		{ "POST /api/filters/apply\nTransfer-Encoding: chunked",
		  "5\r\n{'lim\r\n7\r\nit': 0}\r\n0\r\n\r\n" },
		{ "GET /api/data/experiments?limit=%31&columns=run%5Fid+", NULL },
		{ "GET /api/data/experiments?&&limit=2&limit=x", NULL },
		{ "GET /api/data/experiments?li%zzmit=2", NULL },
		{ "POST /api/login", "{'token': 'x'}" }, { "POST /api/logout", "{}" },
		{ "GET /runs?token=abc&x=1", NULL }, { "GET /?token=abc", NULL },
		{ "GET //evil.example/?token=abc", NULL }, { "GET /\\evil.example/?token=abc", NULL },
		{ "GET /nothing.js", NULL },
	};

	(void)state;
	start();
	rig_check_all(request, COUNT(request));
	rig_stop();
}

/* A body of n bytes of JSON: an object whose first member is as long as needed. */
static char *padded(const char *rest, size_t n)
{
	struct buf b = { 0 };
	struct str left = str_of(rest);

	buf_add_text(&b, "{'padding': '");
	while (b.len + left.n + 1 < n)
		buf_add_char(&b, 'x');
	buf_printf(&b, "'%s", rest);
	return b.data;
}

static void check_sized(const char *head, const char *rest, size_t n, const char *title)
{
	char *body = padded(rest, n);
	struct buf reply = rig_ask(head, body), out = { 0 };

	buf_printf(&out, "%s\n%s", title, reply.data);
	rig_clean(&out);
	answers_release(&out);
	buf_release(&reply);
	free(body);
}

/* Larger ones go to a file on their way; the result is the same. */
static void bodies(void **state)
{
	static const struct rig_request seen = { "GET /api/data/experiments?columns=run_id,padding&sort="
						 "run_id", NULL };
	char *text, *chunks;
	struct buf reply;

	(void)state;
	start();
	check_sized("POST /api/upload/raw", ", " "'z': 1}", 65536, "no run in 64 KiB");
	check_sized("POST /api/upload/raw", ", " "'z': 1}", 65538, "no run in 64 KiB and two bytes");
	check_sized("POST /api/filters/apply", ", 'limit': 0}", 300000, "a large question");
	check_sized("POST /api/filters/apply", "}", WEB_JSON_BYTES_MAX + 1, "a question that is too large");
	text = padded(", 'run_id': 'big', 'backend': 'vllm', 'model_id': 'm', 'date': '20260101-000000', "
		      "'num_prompts': 6, 'duration': 2, 'completed': 6, 'request_throughput': 2, "
		      "'output_throughput': 5}", 200000);
	reply = rig_ask("POST /api/upload/raw", text);
	assert_non_null(strstr(reply.data, "201 Created"));
	buf_release(&reply);
	reply = rig_ask("POST /api/upload/raw", text);
	assert_non_null(strstr(reply.data, "200 OK"));
	assert_non_null(strstr(reply.data, "\"duplicate\""));
	buf_release(&reply);
	/* Without a length known before. */
	chunks = mem_alloc(5 * 1024 * 1024);
	snprintf(chunks, 5 * 1024 * 1024, "%x\r\n%s\r\n0\r\n\r\n", 200000, text);
	reply = rig_ask("POST /api/upload/raw\nTransfer-Encoding: chunked", chunks);
	assert_non_null(strstr(reply.data, "200 OK"));
	buf_release(&reply);
	memset(chunks, ' ', 5 * 1024 * 1024);
	memcpy(chunks, "4a0000\r\n", 8);
	memcpy(chunks + 8 + 0x4a0000, "\r\n0\r\n\r\n", 8);
	reply = rig_ask("POST /api/filters/apply\nTransfer-Encoding: chunked", chunks);
	assert_non_null(strstr(reply.data, "413 "));
	assert_non_null(strstr(reply.data, "more than the 4194304 bytes"));
	buf_release(&reply);
	rig_check(&seen);
	rig_stop();
	free(chunks);
	free(text);
}

/* Addresses and headers that are too long, and answers that the client has or wants packed. */
static void sizes_and_tags(void **state)
{
	static const struct { const char *header; bool is_packed; } accepted[] = {
		{ "gzip", true }, { "deflate, GZIP;q=0.5", true }, { "*", true }, { "gzip;q=0", false },
		{ "gzip; q=0.000", false }, { "br", false }, { "identity, gzip ;q=1", true },
		{ "*;q=0", false }, { "", false },
	};
	static const struct { const char *format; bool has_it; } tags[] = {
		{ "%s", true }, { "\"a\", %s", true }, { "*", true }, { "\"a\"", false }, { "", false },
	};
	struct arena a = { 0 };
	char *long_path = padded("", 40000), *tag, *end;
	struct buf reply;

	(void)state;
	start();
	reply = rig_ask(arena_printf(&a, "GET /?%.39000s", strrchr(long_path, '\'') - 39000), NULL);
	assert_non_null(strstr(reply.data, " 414 "));
	buf_release(&reply);
	reply = rig_ask(arena_printf(&a, "GET /\nX-Long: %.39000s", strrchr(long_path, '\'') - 39000), NULL);
	assert_non_null(strstr(reply.data, " 431 "));
	buf_release(&reply);
	for (size_t i = 0; i < COUNT(accepted); i++) {
		reply = rig_ask(arena_printf(&a, "GET /api/filters/options\nAccept-Encoding: %s",
					     accepted[i].header), NULL);
		if (!!strstr(reply.data, "Content-Encoding: gzip") != accepted[i].is_packed ||
		    !strstr(reply.data, "Vary: Accept-Encoding"))
			fail_msg("'%s': %.400s", accepted[i].header, reply.data);
		buf_release(&reply);
	}
	reply = rig_ask("GET /api/health\nAccept-Encoding: gzip", NULL); /* too small to be packed */
	assert_null(strstr(reply.data, "gzip"));
	buf_release(&reply);
	reply = rig_ask("GET /api/data/summary", NULL);
	tag = strstr(reply.data, "ETag: ");
	assert_non_null(tag);
	end = strstr(tag, "\r\n");
	tag = arena_text(&a, (struct str){ tag + 6, (size_t)(end - tag) - 6 });
	buf_release(&reply);
	for (size_t i = 0; i < 2 * COUNT(tags); i++) {
		char value[200], head[300];

		snprintf(value, sizeof(value), tags[i / 2].format, i % 2 ? tag + 2 : tag);
		snprintf(head, sizeof(head), "GET /api/data/summary\nIf-None-Match: %s", value);
		reply = rig_ask(head, NULL);
		if (!!strstr(reply.data, " 304 ") != tags[i / 2].has_it)
			fail_msg("%s: %.100s", head, reply.data);
		buf_release(&reply);
	}
	rig_stop();
	free(long_path);
	arena_release(&a);
}

/* ---- uploads ---- */

static void await_upload(const char *id, struct arena *a)
{
	int64_t until_ns = clock_mono_ns() + RIG_PATIENCE_NS;
	const char *head = arena_printf(a, "GET /api/upload/status/%s", id);

	while (strcmp(rig_member(head, NULL, "state", a), "running") == 0 && clock_mono_ns() < until_ns)
		usleep(5000);
}

static void many_files(void **state)
{
	static const struct rig_request refused[] = {
		{ "POST /api/upload/batch", "--x--\n" },
		{ "POST /api/upload/batch", PART("other", "a") "x\n--x--\n" },
		{ "POST /api/upload/json", PART("trace", "a") "x\n--x--\n" },
		{ "POST /api/upload/json", PART("file", "a") "x\n" PART("file", "b") "x\n--x--\n" },
		{ "POST /api/upload/json", PART("file", "a") "x\n" PART("odd", "b") "x\n--x--\n" },
		{ "POST /api/upload/json", PART("file", "a") "x\n--x--\n" },
		{ "GET /api/upload/status/none", NULL },
		{ "GET /api/data/experiments?columns=run_id,source&sort=run_id", NULL },
	};
	struct arena a = { 0 };
	struct buf form = { 0 };
	const char *id;

	(void)state;
	start();
	rig_is_whole = false;
	id = rig_member("POST /api/upload/batch", PART("file", "a.json") RUN("one") "}\n"
			PART("files", "b.json") "not JSON\n" PART("file", "c.json") RUN("one") "}\n"
			PART("file", "d.json") RUN("one") ", 'note': 'other'}\n"
			PART("file", "e.json") "{'no': 'run'}\n--x--\n", "job_id", &a);
	rig_hide(id, "JOB");
	await_upload(id, &a);
	{
		const struct rig_request seen[] = {
			{ arena_printf(&a, "GET /api/upload/status/%s", id), NULL },
			{ arena_printf(&a, "GET /api/jobs/%s/events", id), NULL },
			{ arena_printf(&a, "GET /api/jobs/%s/log", id), NULL },
			{ arena_printf(&a, "POST /api/jobs/%s/cancel", id), "{}" },
		};

		rig_check_all(seen, COUNT(seen));
	}
	/* More than go into one commit. */
	for (int i = 0; i < 300; i++)
		buf_printf(&form, PART("file", "f%d") RUN("two") ", 'n': %d}\n", i, i % 3);
	buf_add_text(&form, "--x--\n");
	id = rig_member("POST /api/upload/batch", form.data, "job_id", &a);
	await_upload(id, &a);
	assert_string_equal(rig_member(arena_printf(&a, "GET /api/jobs/%s", id), NULL, "state", &a), "done");
	rig_check_all(refused, COUNT(refused));
	rig_stop();
	buf_release(&form);
	arena_release(&a);
}

static void traces(void **state)
{
	static const char content[] = "0123456789abcdefghij";
	static const struct rig_request request[] = {
		{ "POST /api/upload/json", PART("trace", "odd name;\xc3\xbc.json") "one\n" PART("file", "t.json")
		  RUN("t1") "}\n" PART("trace", "b.json") "two\n--x--\n" },
		{ "GET /api/traces", NULL }, { "GET /api/export/traces/t1", NULL },
		{ "POST /api/upload/raw", RUN("t2") "}" },
		{ "POST /api/upload/raw", RUN("t3") "}" },
		{ "POST /api/data/experiments/t2/traces", PART("trace", "c.json") "0123456789abcdefghij\n--x--\n" },
		{ "POST /api/data/experiments/t2/traces", PART("file", "c.json") "x\n--x--\n" },
		{ "POST /api/data/experiments/t2/traces", "--x--\n" },
		{ "POST /api/data/experiments/t9/traces", PART("trace", "c.json") "x\n--x--\n" },
		{ "GET /api/export/traces/t2", NULL }, { "GET /api/export/traces/t3", NULL },
		{ "GET /api/export/traces/t9", NULL }, { "GET /api/export/traces/1", NULL },
		{ "GET /api/export/traces/0", NULL }, { "GET /api/export/traces/-1", NULL },
		{ "GET /api/export/traces/99", NULL },
		{ "GET /api/traces?limit=2", NULL }, { "GET /api/traces?limit=2&cursor=2", NULL },
		{ "GET /api/traces?cursor=1", NULL }, { "GET /api/traces?cursor=0", NULL },
		{ "GET /api/traces?cursor=x", NULL }, { "GET /api/traces?limit=3", NULL },
		{ "DELETE /api/traces/1", NULL }, { "DELETE /api/traces/1", NULL },
		{ "GET /api/export/traces/t1", NULL }, { "GET /api/traces", NULL },
	};
	/* NULL: the whole file with status 200. */
	static const struct { const char *range, *part; unsigned status; } part[] = {
		{ "bytes=0-0", "0", 206 }, { "bytes=5-8", "5678", 206 }, { "bytes=15-", "fghij", 206 },
		{ "bytes=-4", "ghij", 206 }, { "bytes=-40", content, 206 }, { "bytes=0-19", content, 206 },
		{ "bytes=10-99", "abcdefghij", 206 }, { "bytes=19-19", "j", 206 }, { "bytes=20-", "", 416 },
		{ "bytes=20-30", "", 416 }, { "bytes=-0", "", 416 }, { "bytes=8-5", content, 200 },
		{ "bytes=0-1,4-5", content, 200 }, { "lines=0-1", content, 200 }, { "bytes=", content, 200 },
		{ "bytes=-", content, 200 }, { "bytes=x-3", content, 200 }, { "bytes=3-x", content, 200 },
		{ "bytes=3", content, 200 }, { "bytes=-x", content, 200 },
	};

	(void)state;
	start();
	rig_check_all(request, COUNT(request));
	for (size_t i = 0; i < COUNT(part); i++) {
		char head[100], line[40];
		struct buf reply;
		const char *body;

		snprintf(head, sizeof(head), "GET /api/export/traces/t2\nRange: %s", part[i].range);
		snprintf(line, sizeof(line), "HTTP/1.1 %u ", part[i].status);
		reply = rig_ask(head, NULL);
		body = strstr(reply.data, "\r\n\r\n") + 4;
		if (strncmp(reply.data, line, strlen(line)) != 0 ||
		    (part[i].status != 416 && strcmp(body, part[i].part) != 0))
			fail_msg("%s: %s", part[i].range, reply.data);
		rig_check_length(head, &reply);
		if (part[i].status != 200)
			assert_non_null(strstr(reply.data, part[i].status == 416 ? "Content-Range: bytes */20" :
					       "Content-Range: bytes "));
		buf_release(&reply);
	}
	{
		static const struct rig_request one[] = {
			{ "GET /api/export/traces/t2\nRange: bytes=5-8", NULL },
			{ "GET /api/export/traces/t2\nRange: bytes=5-8\nIf-Range: \"x\"", NULL },
			{ "HEAD /api/export/traces/t2\nRange: bytes=5-8", NULL },
			{ "GET /api/export/traces/t2\nRange: bytes=99-", NULL },
		};

		rig_check_all(one, COUNT(one));
	}
	rig_stop();
}

/* ---- who may ---- */

#define READER "reader-of-16-characters"
#define UPLOADER "upload-of-16-characters"
#define LAUNCHER "launch-of-16-characters"
#define BY(token) "\nAuthorization: Bearer " token

static void start_with_tokens(bool is_read_open)
{
	static const char text[] = "bob " READER " read\nci " UPLOADER " upload\ncarol " LAUNCHER " launch\n";
	static char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/tokens", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	close(fd);
	rig_is_whole = false;
	rig_start("tokens", (struct web_opts){ .token_file = path, .is_read_open = is_read_open });
}

static void tokens(void **state)
{
	static const struct rig_request request[] = {
		{ "GET /api/health", NULL }, { "GET /api/tags", NULL }, { "GET /api/tags" BY(READER), NULL },
		{ "GET /api/tags\nHost: localhost\nCookie: x=1; profllm_token=" READER, NULL },
		{ "GET /api/tags" BY(UPLOADER), NULL },
		{ "POST /api/upload/raw" BY(READER), "[" }, { "POST /api/upload/raw" BY(UPLOADER), "[" },
		{ "POST /api/launch" BY(UPLOADER), "{'config': 'x'}" },
		{ "POST /api/launch" BY(LAUNCHER), "{'config': 'x'}" },
		{ "POST /api/upload/raw", "[" }, { "GET /metrics", NULL },
		{ "POST /api/login", "{'token': '" READER "'}" }, { "POST /api/login", "{}" },
		{ "POST /api/login", "" }, { "POST /api/logout", "{}" },
		{ "GET /runs?a=1&token=" READER "&b=2", NULL }, { "GET /?token=" READER, NULL },
		{ "GET /nothing.js?token=", NULL },
		{ "POST /api/upload/raw" BY(UPLOADER), RUN("u1") "}" },
		{ "POST /api/data/experiments/u1/annotations" BY(UPLOADER), "{'text': 'x', 'who': 'eve'}" },
		{ "GET /api/data/experiments/u1?x=1" BY(READER), NULL },
	};
	/* Each is answered after a while, so all at once. */
	static const struct rig_request late[] = {
		{ "GET /api/tags" BY("not-a-token-of-this-one"), NULL },
		{ "GET /api/health" BY("not-a-token-of-this-one"), NULL },
		{ "GET /api/tags\nHost: localhost\nCookie: profllm_token=not-a-token-of-this-one", NULL },
		{ "POST /api/login\nHost: localhost\nCookie: profllm_token=not-a-token-of-this-one",
		  "{'token': '" READER "'}" },
		{ "POST /api/login", "{'token': 'not-a-token-of-this-one'}" },
		{ "GET /runs?token=not-a-token-of-this-one", NULL },
	};
	int64_t began_ns;
	int fd[COUNT(late)];

	(void)state;
	start_with_tokens(false);
	rig_check_all(request, COUNT(request));
	began_ns = clock_mono_ns();
	for (size_t i = 0; i < COUNT(late); i++) {
		struct buf bytes = rig_bytes(&late[i]);

		fd[i] = rig_connect();
		rig_send(fd[i], buf_str(&bytes));
		buf_release(&bytes);
	}
	for (size_t i = 0; i < COUNT(late); i++) {
		struct buf reply = { 0 }, out = { 0 };

		rig_rest(fd[i], &reply);
		if (clock_mono_ns() - began_ns < 900000000)
			fail_msg("%s: a wrong token costs nothing", late[i].head);
		buf_printf(&out, "%s\n%s", late[i].head, reply.data);
		rig_clean(&out);
		answers_release(&out);
		buf_release(&reply);
	}
	rig_stop();
}

/* Reading needs no token; a store that is only read; a socket of this machine; the log. */
static void other_doors(void **state)
{
	static const struct rig_request open_read[] = {
		{ "GET /api/tags", NULL }, { "POST /api/upload/raw", "[" },
		{ "POST /api/upload/raw" BY(READER), "[" },
	};
	static const struct rig_request read_only[] = {
		{ "GET /api/tags", NULL }, { "POST /api/upload/raw", "[" },
		{ "POST /api/filters/apply", "{'limit': 0, 'columns': []}" },
		{ "DELETE /api/traces/1", NULL }, { "POST /api/live", "{}" },
	};
	static const struct rig_request by_socket[] = {
		{ "GET /api/tags\nHost: localhost", NULL }, { "GET /api/tags\nHost: evil", NULL },
		{ "GET /api/tags\nHost: lab.example", NULL }, { "GET /api/none\nHost: localhost", NULL },
		{ "POST /api/upload/raw\nHost: localhost", RUN("s1") "}" },
	};
	static const char *const name[] = { "lab.example" };
	char listen[160], log[128];
	struct buf text = { 0 };
	struct err e = { 0 };
	struct web *second;

	(void)state;
	start_with_tokens(true);
	rig_check_all(open_read, COUNT(open_read));
	rig_stop();
	rig_start("wire", (struct web_opts){ .has_no_auth = true, .is_read_only = true });
	rig_check_all(read_only, COUNT(read_only));
	rig_stop();
	snprintf(rig_socket, sizeof(rig_socket), "%s/socket", dir);
	snprintf(listen, sizeof(listen), "unix:%s", rig_socket);
	snprintf(log, sizeof(log), "%s/log", dir);
	rig_start("socket", (struct web_opts){ .has_no_auth = true, .listen = listen, .log_path = log,
		  .host_name = name, .n_host_names = 1 });
	assert_string_equal(web_url(rig_web), listen);
	assert_int_equal(web_port(rig_web), 0);
	rig_check_all(by_socket, COUNT(by_socket));
	/* It is in use. */
	assert_int_equal(web_open(&(struct web_opts){ .has_no_auth = true, .listen = listen, .version = "",
				  .log_fd = -1, .folder = rig_jobs }, &second, &e), -1);
	answers_check(e.text, strlen(e.text));
	snprintf(listen, sizeof(listen), "%s.1", log);
	assert_int_equal(rename(log, listen), 0);
	web_reload(rig_web);
	rig_check(&by_socket[0]);
	rig_stop();
	assert_int_equal(access(rig_socket, F_OK), -1);
	assert_int_equal(file_read(listen, 1 << 20, &text, &e), 0);
	buf_add_text(&text, "after rotation:\n");
	assert_int_equal(file_read(log, 1 << 20, &text, &e), 0);
	rig_mask(&text, "\"ms\":", ",}");
	rig_mask(&text, "\"sent_bytes\":", ",}");
	rig_mask(&text, "\"at\":", ",}");
	answers_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heads), cmocka_unit_test(bodies), cmocka_unit_test(sizes_and_tags),
		cmocka_unit_test(many_files), cmocka_unit_test(traces), cmocka_unit_test(tokens),
		cmocka_unit_test(other_doors),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
