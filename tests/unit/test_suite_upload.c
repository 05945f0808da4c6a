/* SPDX-License-Identifier: Apache-2.0 */
/* Documents on their way to a dashboard: sent, tried again, refused, spooled and sent later. */
/* threads: yes */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/file.h"
#include "experiment/suite/upload.h"
#include "fetch_server.h"
#include "host/proc/keeper.h"
#include "scratch.h"

#define OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
#define GONE "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
#define KNOWN "HTTP/1.1 409 Conflict\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
#define BAD "HTTP/1.1 422 No\r\nContent-Length: 14\r\nConnection: close\r\n\r\nno run_id\nhere"
#define DENIED "HTTP/1.1 401 Who\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
#define MOVED "HTTP/1.1 302 There\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n" \
	"Connection: close\r\n\r\n"
#define DOCUMENT "{\"run_id\": \"exp_1\", \"v\": 1.50}"
#define TOKEN "s3cret-token"

static struct buf heard;

static void hear(void *self, const char *text)
{
	(void)self;
	buf_printf(&heard, "%s\n", text);
}

/* A spool of its own for each case, named by a letter. */
static struct upload_opts options(const char *url, char letter)
{
	static char spool[64];

	snprintf(spool, sizeof(spool), "%s/spool-%c", dir, letter);
	buf_reset(&heard);
	return (struct upload_opts){ .url = url, .spool = spool, .pause_ms = 1,
				     .line = hear, .warn = hear };
}

static const char *url_of(const struct server *s, const char *path)
{
	static char url[64];

	snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", s->port, path);
	return url;
}

static void answers(void **state)
{
	static const struct {
		char letter;
		const char *answer[6];
		int rc;
		size_t asked;
		const char *says;
	} row[] = {
		{ 'a', { OK }, UPLOAD_SENT, 1, "Uploaded one.json to http" },
		{ 'b', { KNOWN }, UPLOAD_SENT, 1, "Uploaded one.json" },
		{ 'c', { GONE, GONE, OK }, UPLOAD_SENT, 3, "Uploaded one.json" },
		{ 'd', { GONE, GONE, GONE, GONE }, UPLOAD_SPOOLED, 4, "answered 503); it waits" },
		{ 'e', { DENIED }, UPLOAD_SPOOLED, 1, "answered 401); it waits" },
		{ 'f', { BAD }, -1, 1, "one.json was not uploaded: http" },
		{ 'g', { MOVED }, -1, 1, "answered 302: it redirects to http://127.0.0.1:1; name" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct server s;
		struct upload_opts o = options(NULL, row[i].letter);
		struct err e = { 0 };

		server_start(&s, row[i].answer);
		o.url = url_of(&s, i % 2 ? "/" : "");
		assert_int_equal(upload_document(&o, STR(DOCUMENT), "one.json", &e), row[i].rc);
		assert_non_null(strstr(s.asked.data, "POST /api/upload/raw HTTP/1.1\r\n"));
		assert_non_null(strstr(s.asked.data, "\r\n\r\n" DOCUMENT));
		server_stop(&s); /* its count may come after its answer */
		assert_int_equal(atomic_load(&s.answered), row[i].asked);
		assert_non_null(strstr(row[i].rc < 0 ? e.text : heard.data, row[i].says));
		if (row[i].answer[0][9] == '4' && row[i].answer[0][10] == '2') /* 422 */
			assert_non_null(strstr(e.text, "422: no run_id here"));
		assert_int_equal(file_is_dir(o.spool), row[i].rc == UPLOAD_SPOOLED);
	}
}

static void what_waits_is_sent_once(void **state)
{
	struct upload_opts o = options("http://127.0.0.1:1/x/raw", 'w');
	struct server s;
	struct err e = { 0 };
	struct buf path = { 0 };
	char command[128];
	size_t left = 9;

	(void)state;
	buf_printf(&path, "%s/token", dir);
	assert_int_equal(file_write_atomic(path.data, STR(TOKEN "\n"), &e), 0);
	o.token_file = path.data;
	assert_int_equal(upload_spool(&o, &left, &e), 0); /* there is no such folder */
	assert_int_equal(left, 0);
	server_start(&s, (const char *const[]){ GONE, OK, NULL });
	o.url = url_of(&s, "/x/raw");
	o.tries = 1;
	assert_int_equal(upload_document(&o, STR(DOCUMENT), "w.json", &e), UPLOAD_SPOOLED);
	assert_null(strstr(heard.data, TOKEN));
	snprintf(command, sizeof(command), "! grep -rq " TOKEN " %s", o.spool);
	assert_int_equal(system(command), 0);
	buf_reset(&heard);
	assert_int_equal(upload_spool(&o, &left, &e), 1);
	assert_int_equal(left, 0);
	assert_int_equal(upload_spool(&o, &left, &e), 0);
	assert_non_null(strstr(s.asked.data, "POST /x/raw HTTP/1.1\r\n"));
	assert_non_null(strstr(strstr(s.asked.data, DOCUMENT) + 1, DOCUMENT)); /* byte for byte */
	assert_non_null(strstr(s.asked.data, "Authorization: Bearer " TOKEN "\r\n"));
	server_stop(&s);
	assert_null(strstr(heard.data, TOKEN));
	buf_release(&path);
}

/* An upload to one dashboard takes along what waits for another: not with its own token. */
static void a_token_is_for_its_dashboard(void **state)
{
	struct upload_opts o = options(NULL, 't');
	struct server s;
	struct err e = { 0 };
	struct buf own = { 0 }, other = { 0 };
	char own_url[64];
	size_t left;

	(void)state;
	buf_printf(&own, "%s/token-own", dir);
	buf_printf(&other, "%s/token-other", dir);
	assert_int_equal(file_write_atomic(own.data, STR(TOKEN "\n"), &e), 0);
	assert_int_equal(file_write_atomic(other.data, STR("of-another\n"), &e), 0);
	server_start(&s, (const char *const[]){ GONE, OK, NULL });
	snprintf(own_url, sizeof(own_url), "%s", url_of(&s, "/x/raw"));
	o.url = own_url;
	o.token_file = own.data;
	o.tries = 1;
	assert_int_equal(upload_document(&o, STR(DOCUMENT), "t.json", &e), UPLOAD_SPOOLED);
	o.url = "http://127.0.0.1:1/x/raw";
	o.token_file = other.data;
	assert_int_equal(upload_spool(&o, &left, &e), 1);
	assert_null(strstr(s.asked.data, "of-another"));
	assert_non_null(strstr(strstr(s.asked.data, TOKEN) + 1, TOKEN));
	server_stop(&s);
	buf_release(&own);
	buf_release(&other);
}

/* A dashboard that has moved gets what waits for it, but not the token of its old address. */
static void a_dashboard_moves(void **state)
{
	struct upload_opts o = options("http://127.0.0.1:1/old", 'v');
	struct server s;
	struct err e = { 0 };
	struct buf own = { 0 };
	char url[64];
	size_t left;

	(void)state;
	buf_printf(&own, "%s/token-old", dir);
	assert_int_equal(file_write_atomic(own.data, STR("of-the-old-one\n"), &e), 0);
	o.token_file = own.data;
	o.tries = 1;
	assert_int_equal(upload_document(&o, STR(DOCUMENT), "v.json", &e), UPLOAD_SPOOLED);
	buf_reset(&heard);
	o.url = o.token_file = NULL;
	assert_int_equal(upload_spool(&o, &left, &e), 0);
	assert_int_equal(left, 1);
	assert_non_null(strstr(heard.data, "--upload-spool --upload URL"));
	server_start(&s, (const char *const[]){ GONE, OK, NULL });
	snprintf(url, sizeof(url), "%s", url_of(&s, ""));
	o.url = url;
	assert_int_equal(upload_spool(&o, &left, &e), 0); /* an upload there does not redirect it */
	assert_int_equal(atomic_load(&s.answered), 0);
	o.is_moved = true;
	assert_int_equal(upload_spool(&o, &left, &e), 0);
	assert_int_equal(left, 1);
	assert_int_equal(upload_spool(&o, &left, &e), 1);
	assert_int_equal(left, 0);
	assert_non_null(strstr(strstr(s.asked.data, DOCUMENT) + 1, DOCUMENT));
	assert_null(strstr(s.asked.data, "of-the-old-one"));
	server_stop(&s);
	buf_release(&own);
}

static void what_is_refused_later_is_put_aside(void **state)
{
	struct upload_opts o = options(NULL, 'r');
	struct server s;
	struct err e = { 0 };
	size_t left = 9;
	char command[128];

	(void)state;
	server_start(&s, (const char *const[]){ GONE, DENIED, BAD, NULL });
	o.url = url_of(&s, "");
	o.tries = 1;
	assert_int_equal(upload_document(&o, STR(DOCUMENT), "r.json", &e), UPLOAD_SPOOLED);
	assert_int_equal(upload_spool(&o, &left, &e), 0);
	assert_int_equal(left, 1);
	assert_int_equal(upload_spool(&o, &left, &e), 0);
	assert_int_equal(left, 0);
	assert_non_null(strstr(heard.data, "was refused and is no longer sent"));
	snprintf(command, sizeof(command), "ls %s/*.json.refused >/dev/null", o.spool);
	assert_int_equal(system(command), 0);
	server_stop(&s);
}

#define NUMBERED "HTTP/1.1 201 Made\r\nContent-Length: 39\r\nConnection: close\r\n\r\n" \
	"{\"results\":[{\"outcome\":\"new\",\"id\":7}]}\n"
#define KNOWN_RUN "HTTP/1.1 200 OK\r\nContent-Length: 45\r\nConnection: close\r\n\r\n" \
	"{\"results\":[{\"outcome\":\"duplicate\",\"id\":7}]}\n"
/* The run with that number has the trace whose content is "trace a". */
#define HAS_A "HTTP/1.1 200 OK\r\nContent-Length: 89\r\nConnection: close\r\n\r\n{\"traces\":[{\"hash\":\"" \
	"f3c383433da72ce5f8ce8a9a6dbb62e4b2c1c36a6320cbf0546a8dd2244c788c\"}]}\n"
#define LARGE "HTTP/1.1 413 Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

/* A file of the folder of this test, as something to send. */
static struct upload_trace trace_of(const char *name, const char *text)
{
	static char path[4][96];
	static unsigned next;
	struct err e = { 0 };
	char *at = path[next++ % 4];

	snprintf(at, sizeof(path[0]), "%s/%s", dir, name);
	assert_int_equal(file_write_atomic(at, str_of(text), &e), 0);
	return (struct upload_trace){ .path = at, .bytes = strlen(text) };
}

static void traces_follow_their_document(void **state)
{
	struct upload_opts o = options(NULL, 'q');
	const struct upload_trace trace[] = { trace_of("a.json", "trace a"),
					      trace_of("b.json", "trace b") };
	struct server s;
	struct err e = { 0 };

	(void)state;
	server_start(&s, (const char *const[]){ NUMBERED, OK, GONE, OK, NULL });
	o.url = url_of(&s, "/");
	o.trace = trace;
	o.n_traces = 2;
	assert_int_equal(upload_document(&o, STR(DOCUMENT), "q", &e), UPLOAD_SENT);
	assert_non_null(strstr(heard.data, "Uploaded q with 2 traces to http"));
	assert_int_equal(occurrences(&s.asked, "POST /api/data/experiments/7/traces HTTP/1.1\r\n"), 3);
	assert_int_equal(occurrences(&s.asked, "name=\"trace\"; filename=\"b.json\""), 2);
	assert_non_null(strstr(s.asked.data, "\r\n\r\ntrace a\r\n--"));
	server_stop(&s);
	assert_false(file_is_dir(o.spool));
}

static void traces_wait_with_their_document(void **state)
{
	struct upload_opts o = options(NULL, 'u');
	struct upload_trace trace[] = { trace_of("a.json", "trace a"), trace_of("b.json", "trace b"),
					trace_of("c.json", "trace c") };
	struct server s;
	struct err e = { 0 };
	size_t left = 9;

	(void)state;
	server_start(&s, (const char *const[]){ NUMBERED, OK, GONE, KNOWN_RUN, HAS_A, LARGE,
						NULL });
	o.url = url_of(&s, "/api/upload/raw");
	o.tries = 1;
	o.trace = trace;
	o.n_traces = 3;
	assert_int_equal(upload_document(&o, STR(DOCUMENT), "u", &e), UPLOAD_SPOOLED);
	assert_non_null(strstr(heard.data, "u was uploaded, but not all of its traces were ("));
	assert_int_equal(unlink(trace[2].path), 0);
	buf_reset(&heard);
	o.n_traces = 0;
	assert_int_equal(upload_spool(&o, &left, &e), 1);
	assert_int_equal(left, 0);
	/* The first is there already, the second is refused, the third has gone: one warning. */
	assert_int_equal(occurrences(&s.asked, "filename=\"a.json\""), 1);
	assert_int_equal(occurrences(&s.asked, "filename=\"b.json\""), 2);
	assert_int_equal(occurrences(&heard, "not sent"), 1);
	assert_non_null(strstr(heard.data, "2 of 3 traces were not sent: "));
	assert_non_null(strstr(heard.data, "answered 413"));
	server_stop(&s);
}

/* What changed meanwhile is another run's, and an address for documents alone takes none. */
static void traces_that_are_not_sent(void **state)
{
	static const struct { char letter; const char *path, *text, *says; } row[] = {
		{ 'y', "/", "longer than it was", "d.json has changed since" },
		{ 'z', "/x/raw", "trace d", "accepts documents only" },
	};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct upload_opts o = options(NULL, row[i].letter);
		struct upload_trace trace = trace_of("d.json", "trace d");
		struct server s;
		struct err e = { 0 };

		trace_of("d.json", row[i].text);
		server_start(&s, (const char *const[]){ NUMBERED, OK, NULL });
		o.url = url_of(&s, row[i].path);
		o.trace = &trace;
		o.n_traces = 1;
		assert_int_equal(upload_document(&o, STR(DOCUMENT), "n", &e), UPLOAD_SENT);
		assert_non_null(strstr(heard.data, row[i].says));
		server_stop(&s);
		assert_int_equal(atomic_load(&s.answered), 1);
		assert_false(file_is_dir(o.spool));
	}
}

static void mistakes(void **state)
{
	static const struct { const char *url, *token, *says; } row[] = {
		{ "ftp://x", NULL, "expected a URL that begins with http://" },
		{ "http://", NULL, "expected a URL" },
		{ "http://127.0.0.1:1", "/nonexistent/token", "token file: " },
		{ "http://127.0.0.1:1", "two", "its first line must be one word" },
		{ "http://127.0.0.1:1", "none", "its first line is empty" },
	};
	struct err e = { 0 };
	char two[64], none[64];

	(void)state;
	snprintf(two, sizeof(two), "%s/two", dir);
	snprintf(none, sizeof(none), "%s/none", dir);
	assert_int_equal(file_write_atomic(two, STR("a b\n"), &e), 0);
	assert_int_equal(file_write_atomic(none, STR("\n"), &e), 0);
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct upload_opts o = options(row[i].url, 'm');

		o.token_file = row[i].token && strcmp(row[i].token, "two") == 0 ? two :
			row[i].token && strcmp(row[i].token, "none") == 0 ? none : row[i].token;
		assert_int_equal(upload_document(&o, STR("{}"), "m", &e), -1);
		assert_non_null(strstr(e.text, row[i].says));
		assert_false(file_is_dir(o.spool));
	}
}

static void cancelled(void **state)
{
	struct upload_opts o = options("http://127.0.0.1:1", 'x');
	atomic_bool stop = true;
	struct err e = { 0 };

	(void)state;
	o.cancel = &stop;
	o.pause_ms = 100000; /* is not waited for */
	assert_int_equal(upload_document(&o, STR("{}"), "x", &e), UPLOAD_SPOOLED);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(answers),
		cmocka_unit_test(what_waits_is_sent_once),
		cmocka_unit_test(a_token_is_for_its_dashboard),
		cmocka_unit_test(a_dashboard_moves),
		cmocka_unit_test(what_is_refused_later_is_put_aside),
		cmocka_unit_test(traces_follow_their_document),
		cmocka_unit_test(traces_wait_with_their_document),
		cmocka_unit_test(traces_that_are_not_sent),
		cmocka_unit_test(mistakes),
		cmocka_unit_test(cancelled),
	};
	int rc;

	if (argc == 2 && strcmp(argv[1], KEEPER_WORD) == 0)
		return keeper_main();
	rc = cmocka_run_group_tests(test, make_dir, remove_dir);
	buf_release(&heard);
	return rc;
}
