/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_web_limits.c - which connections a dashboard closes, and when: those that send nothing, send
 * or read too slowly, or are in the way; and how many boards it keeps.
 *
 * The time is what carrier_tick is given, so nothing here waits for minutes. What a connection does
 * began between two moments that a test knows: counted from the first it is not too slow yet,
 * counted from the second it is.
 *
 * threads: yes
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sqlite3.h>
#include <sys/resource.h>

/* The rig has a function of this name, too. */
#define answers_release answers_release_all
#include "web/web_internal.h"
#undef answers_release
#include "web_rig.h"

#define S 1000000000ll
#define MIB (1u << 20)
#define BOARDS_BYTES_MAX (16u * MIB)

/* ---- asking ---- */

static int open_line(void)
{
	const int room = 65536;
	int fd = rig_connect();

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)), 0);
	return fd;
}

static void send_text(int fd, const char *text)
{
	rig_send(fd, str_of(text));
}

static void read_some(int fd, size_t n)
{
	static char part[MIB];

	while (n) {
		ssize_t got = rig_read(fd, part, n < sizeof(part) ? n : sizeof(part));

		assert_true(got > 0);
		n -= (size_t)got;
	}
}

/* Reads up to the end of a head. */
static void read_head(int fd)
{
	char last[4] = "";

	while (memcmp(last, "\r\n\r\n", 4) != 0) {
		memmove(last, last + 1, 3);
		assert_int_equal(rig_read(fd, last + 3, 1), 1);
	}
}

static bool is_before(int64_t until_ns)
{
	usleep(500);
	return clock_mono_ns() < until_ns;
}

#define AWAIT(condition) \
	for (int64_t until_ns = clock_mono_ns() + RIG_PATIENCE_NS; !(condition);) \
		assert_true(is_before(until_ns))

static uint64_t evicted(void)
{
	return atomic_load(&rig_web->evicted);
}

/* The server closes it, which leaves so many open. */
static void await_end(int fd, int left)
{
	static char part[MIB];
	ssize_t n;

	while ((n = rig_read(fd, part, sizeof(part))) > 0)
		;
	assert_true(n == 0 || errno == ECONNRESET);
	close(fd);
	AWAIT(atomic_load(&rig_web->open) == left);
}

static void start(struct web_opts o)
{
	o.has_no_auth = true;
	rig_start("limits", o);
}

/* ---- too little is sent ---- */

#define HEAD "Host: localhost\r\n"

static void sent_too_slowly(void **state)
{
	int64_t before, after;
	char *body = mem_alloc(70001);
	int fd;

	(void)state;
	start((struct web_opts){ 0 });
	/* Nothing: 10 s. */
	before = clock_mono_ns();
	fd = open_line();
	AWAIT(atomic_load(&rig_web->open) == 1);
	after = clock_mono_ns();
	carrier_tick(rig_web, before + 10 * S);
	assert_int_equal(evicted(), 0);
	carrier_tick(rig_web, after + 10 * S + 1);
	assert_int_equal(evicted(), 1);
	carrier_tick(rig_web, after + 20 * S); /* once is enough */
	assert_int_equal(evicted(), 1);
	await_end(fd, 0);
	/* Between two requests: 75 s. */
	before = clock_mono_ns();
	fd = open_line();
	send_text(fd, "GET /api/health HTTP/1.1\r\n" HEAD "\r\n");
	read_head(fd);
	AWAIT(atomic_load(&rig_web->in_flight) == 0);
	carrier_tick(rig_web, before + 75 * S);
	assert_int_equal(evicted(), 1);
	AWAIT((carrier_tick(rig_web, clock_mono_ns() + 75 * S + 1), evicted() == 2));
	await_end(fd, 0);
	/* A body: 10 s, then 1,024 bytes for each second. */
	before = clock_mono_ns();
	fd = open_line();
	send_text(fd, "POST /api/upload/raw HTTP/1.1\r\n" HEAD "Expect: 100-continue\r\n"
		  "Content-Length: 100000\r\n\r\n");
	read_head(fd);
	carrier_tick(rig_web, before + 10 * S);
	assert_int_equal(evicted(), 2);
	AWAIT((carrier_tick(rig_web, clock_mono_ns() + 10 * S + 1), evicted() == 3));
	await_end(fd, 0);
	before = clock_mono_ns();
	fd = open_line();
	send_text(fd, "POST /api/upload/raw HTTP/1.1\r\n" HEAD "Content-Length: 100000\r\n\r\n");
	memset(body, ' ', 70001);
	rig_send(fd, (struct str){ body, 70000 });
	AWAIT(atomic_load(&rig_web->spooled) == 70000);
	send_text(fd, " "); /* once this is there, the others are counted */
	AWAIT(atomic_load(&rig_web->spooled) == 70001);
	after = clock_mono_ns();
	carrier_tick(rig_web, before + 68 * S);
	assert_int_equal(evicted(), 3);
	carrier_tick(rig_web, after + 69 * S);
	assert_int_equal(evicted(), 4);
	await_end(fd, 0);
	assert_int_equal(atomic_load(&rig_web->slow), 0);
	rig_stop();
	free(body);
}

/* ---- too little is read ---- */

/* A board whose body has n bytes of JSON. */
static void put_board(size_t number, size_t n)
{
	char *text = mem_alloc(n), name[24];
	struct preset p = { .name = { name, 0 }, .body = { text, n } };
	struct err e = { 0 };

	snprintf(name, sizeof(name), "board %zu", number);
	p.name = str_of(name);
	memset(text, 'x', n);
	text[0] = text[n - 1] = '"';
	if (store_preset_put(rig_store, "board", &p, (double)NAN, &e) < 0)
		fail_msg("%s", e.text);
	free(text);
}

static int ask_for_boards(void)
{
	int fd = open_line();

	send_text(fd, "GET /api/boards HTTP/1.1\r\n" HEAD "\r\n");
	read_some(fd, 1);
	return fd;
}

/*
 * At least 1,024 bytes for each of 10 s, as long as there is anything to read: someone who reads
 * for so many seconds, then stops. Of a Unix socket it is only known whether anything moves between
 * two looks, and the server looks too: so a step is a tenth of the time.
 */
static void check_reading(int seconds)
{
	uint64_t slow = atomic_load(&rig_web->slow), closed = evicted();
	int64_t before = clock_mono_ns(), now;
	int fd = ask_for_boards();

	now = clock_mono_ns();
	carrier_tick(rig_web, before + 10 * S - 1);
	assert_int_equal(evicted(), closed);
	for (int i = 0; i < seconds; i++) {
		read_some(fd, MIB / 10);
		carrier_tick(rig_web, now += S);
		assert_int_equal(evicted(), closed);
	}
	/* What the kernel takes for the client counts until it is full. */
	AWAIT((carrier_tick(rig_web, now += 10 * S), evicted() > closed));
	assert_int_equal(evicted(), closed + 1);
	assert_int_equal(atomic_load(&rig_web->slow), slow + 1);
	await_end(fd, 0);
}

/* Someone who always leaves the socket almost full is not stuck. */
static void check_sips(void)
{
	uint64_t closed = evicted();
	int64_t now = clock_mono_ns();
	int fd = ask_for_boards();

	for (int i = 0; i < 40; i++) {
		read_some(fd, 40000);
		carrier_tick(rig_web, now += S);
		assert_int_equal(evicted(), closed);
	}
	close(fd);
	AWAIT(atomic_load(&rig_web->open) == 0);
}

/* Memory for other answers: the slowest of those that have been sent for 5 s makes room. */
static void check_dropping(void)
{
	const int64_t others = WEB_ANSWERS_BYTES_MAX / 4 * 3;
	uint64_t closed = evicted();
	int64_t before = clock_mono_ns(), after;
	int slow, fast;

	fast = ask_for_boards();
	slow = ask_for_boards();
	read_some(fast, 2 * MIB);
	after = clock_mono_ns();
	carrier_tick(rig_web, after + 5 * S); /* there is room */
	assert_int_equal(evicted(), closed);
	atomic_fetch_add(&rig_web->answers.used, others);
	if (clock_mono_ns() < before + 5 * S) {
		carrier_tick(rig_web, before + 5 * S - 1);
		assert_int_equal(atomic_load(&rig_web->dropped), 0);
	}
	/* Two answers are too much: the first goes; then, as others take its memory, the second. */
	atomic_fetch_sub(&rig_web->answers.used, 12 * MIB);
	carrier_tick(rig_web, after + 5 * S);
	assert_int_equal(atomic_load(&rig_web->dropped), 1);
	carrier_tick(rig_web, after + 5 * S);
	assert_int_equal(atomic_load(&rig_web->dropped), 1);
	assert_int_equal(evicted(), closed + 1);
	await_end(slow, 1);
	read_some(fast, MIB);
	atomic_fetch_add(&rig_web->answers.used, 12 * MIB);
	/* It may have read everything for a moment, until the server sends more. */
	AWAIT((carrier_tick(rig_web, after + 5 * S), atomic_load(&rig_web->dropped) == 2));
	atomic_fetch_sub(&rig_web->answers.used, others);
	await_end(fast, 0);
}

static void read_too_slowly(void **state)
{
	char listen[160];

	(void)state;
	start((struct web_opts){ 0 });
	for (size_t i = 0; i < 8; i++)
		put_board(i, MIB);
	check_reading(20); /* the kernel takes up to 4 MiB of the rest */
	check_dropping();
	rig_stop();
	snprintf(rig_socket, sizeof(rig_socket), "%s/socket", dir);
	snprintf(listen, sizeof(listen), "unix:%s", rig_socket);
	start((struct web_opts){ .listen = listen });
	check_reading(10);
	check_sips();
	rig_stop();
}

/* ---- too many ---- */

/* The one that has been idle longest makes room, not one that is answered. */
static void too_many(void **state)
{
	enum { N = WEB_CONNECTIONS_MAX + 1 };
	int *fd = mem_array(N, sizeof(*fd));
	struct rlimit files;

	(void)state;
	start((struct web_opts){ 0 });
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	if (files.rlim_cur < 3 * WEB_CONNECTIONS_MAX) {
		print_message("# too few files may be open (ulimit -n)\n");
		rig_stop();
		free(fd);
		skip();
	}
	fd[0] = ask_for_boards();
	for (int i = 1; i < N; i++) {
		assert_int_equal(evicted(), 0);
		fd[i] = rig_connect();
		if (i == 1 || i == N - 2)
			AWAIT(atomic_load(&rig_web->open) == i + 1);
	}
	AWAIT(evicted() == 1);
	await_end(fd[1], WEB_CONNECTIONS_MAX);
	read_some(fd[0], MIB);
	fd[1] = fd[0];
	for (int i = 1; i < N; i++)
		close(fd[i]);
	rig_stop();
	free(fd);
}

/* ---- boards ---- */

/* All of them together have 16 MiB. */
static void boards(void **state)
{
	static const struct rig_request request[] = {
		{ "POST /api/boards", "{'name': 'last', 'body': '1234567'}" },
		{ "POST /api/boards", "{'name': 'last', 'body': '123456'}" },
		{ "POST /api/boards", "{'name': 'more', 'body': 1}" },
		{ "PUT /api/boards/17", "{'body': '1234567'}" },
		{ "PUT /api/boards/17", "{'body': '12345'}" },
		{ "PUT /api/boards/17", "{'body': '123456'}" },
		{ "PUT /api/boards/17", "{'name': 'renamed'}" },
		{ "PUT /api/boards/18", "{'name': 'renamed'}" },
	};

	(void)state;
	start((struct web_opts){ 0 });
	for (size_t i = 8; i < 15; i++)
		put_board(i, MIB);
	put_board(15, MIB - 8);
	rig_check_all(request, COUNT(request));
	rig_stop();
}

/* A filter has at most 256 KiB, a board 1 MiB; the refusal of a larger one names the member. */
static void bodies(void **state)
{
	static const struct { const char *head; size_t bytes; const char *why; } rows[] = {
		{ "POST /api/filters/presets", 256u << 10, "at most 262144 bytes (PRESET_BODY_BYTES_MAX)\"" },
		{ "POST /api/boards", MIB, "at most 1048576 bytes (BOARD_BODY_BYTES_MAX); unfreeze a block or "
		  "begin another board\"" },
	};

	(void)state;
	rig_start("bodies", (struct web_opts){ .has_no_auth = true });
	for (size_t i = 0; i < 2 * COUNT(rows); i++) {
		size_t n = rows[i / 2].bytes + i % 2;
		struct buf body = { 0 }, reply;

		buf_printf(&body, "{'name': 'long', 'body': '");
		for (size_t k = 0; k + 2 < n; k++)
			buf_add_char(&body, 'x');
		buf_add_text(&body, "'}");
		reply = rig_ask(rows[i / 2].head, body.data);
		assert_non_null(strstr(reply.data, i % 2 ? " 413 " : " 201 "));
		assert_int_equal(strstr(reply.data, rows[i / 2].why) != NULL, i % 2);
		assert_int_equal(strstr(reply.data, "\"pointer\":\"/body\"") != NULL, i % 2);
		buf_release(&body);
		buf_release(&reply);
	}
	rig_stop();
}

/* ---- figures ---- */

static void sql(const char *name, const char *text)
{
	char path[160];
	sqlite3 *db = NULL;
	char *why = NULL;

	snprintf(path, sizeof(path), "%s/%s.db", dir, name);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_busy_timeout(db, 60000);
	if (sqlite3_exec(db, text, NULL, NULL, &why) != SQLITE_OK)
		fail_msg("%s: %s", text, why);
	sqlite3_close(db);
}

/* The value of a metric; -1: it is not there. */
static double figure(const char *name)
{
	struct buf reply = rig_ask("GET /metrics", NULL);
	char line[100];
	const char *at;
	double value;

	snprintf(line, sizeof(line), "\n%s ", name);
	at = strstr(reply.data, line);
	value = at ? strtod(at + strlen(line), NULL) : -1;
	buf_release(&reply);
	return value;
}

static void figures(void **state)
{
	static const char upload[] = "--x\nContent-Disposition: form-data; name='file'; filename='f'\n\n"
				     "x\n--x--\n";
	struct rusage used;
	struct rlimit files;
	struct arena a = { 0 };
	double bytes;

	(void)state;
	start((struct web_opts){ 0 });
	bytes = figure("process_resident_memory_bytes");
	assert_int_equal(getrusage(RUSAGE_SELF, &used), 0);
	assert_true(bytes >= MIB && bytes <= 1024.0 * (double)used.ru_maxrss);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	assert_true(figure("process_max_fds") == (double)files.rlim_cur);
	/* Standard streams, the store's, the socket, both ends of the connection. */
	assert_true(figure("process_open_fds") >= 7);
	assert_true(figure("process_cpu_seconds_total") > 0);
	assert_true(figure("profllm_store_up") == 1);
	assert_true(figure("profllm_store_bytes") > 0);
	assert_true(figure("profllm_jobs{kind=\"upload\",state=\"failed\"}") == 0);
	assert_true(figure("profllm_jobs{kind=\"upload\",state=\"done\"}") == 0);
	rig_member("POST /api/upload/batch", upload, "job_id", &a);
	rig_member("POST /api/upload/batch", upload, "job_id", &a);
	AWAIT(figure("profllm_jobs{kind=\"upload\",state=\"done\"}") == 2);
	assert_true(figure("profllm_jobs{kind=\"upload\",state=\"waiting\"}") == 0);
	assert_true(figure("profllm_jobs{kind=\"run\",state=\"done\"}") == 0);
	rig_stop();
	arena_release(&a);
}

static void begin_job(struct store *store)
{
	struct err e = { 0 };
	char id[17];

	assert_int_equal(store_job_begin(store, STR("upload"), STR("{}"), id, &e), 0);
}

/* The store is asked again at once when a job has changed here, otherwise after a while. */
static void pulses(void **state)
{
	char place[160], jobs[128];
	struct store_opts so = { .url = place };
	struct web_opts o = { .listen = "127.0.0.1:0", .has_no_auth = true, .version = "test", .log_fd = -1,
			      .folder = jobs };
	struct pulse before, after;
	struct store *store;
	struct web *w;
	struct err e = { 0 };
	int64_t began_ns;

	(void)state;
	snprintf(place, sizeof(place), "sqlite:%s/pulses.db", dir);
	snprintf(jobs, sizeof(jobs), "%s/jobs-pulses", dir);
	assert_int_equal(store_open(&so, &store, &e), 0);
	assert_int_equal(web_open(&o, &w, &e), 0);
	w->store = store;
	pulse_look(w);
	pulse_get(w, &before);
	assert_true(before.is_there && before.store_bytes > 0);
	assert_int_equal(before.n_jobs, 0);
	do {
		began_ns = clock_mono_ns();
		begin_job(store);
		atomic_fetch_add(&w->job_changes, 1);
		pulse_look(w);
		pulse_get(w, &before);
		begin_job(store);
		pulse_look(w);
		pulse_get(w, &after);
	} while (clock_mono_ns() - began_ns >= 2 * S); /* the machine was too busy to tell */
	assert_int_equal(before.n_jobs, 1);
	assert_string_equal(before.jobs[0].kind, "upload");
	assert_string_equal(before.jobs[0].state, "waiting");
	assert_int_equal(after.n_jobs, 1);
	assert_int_equal(after.jobs[0].n, before.jobs[0].n);
	atomic_fetch_add(&w->job_changes, 1);
	pulse_look(w);
	pulse_get(w, &after);
	assert_int_equal(after.jobs[0].n, before.jobs[0].n + 1);
	/* It no longer answers: what was known stays. */
	sql("pulses", "DROP TABLE jobs");
	atomic_fetch_add(&w->job_changes, 1);
	pulse_look(w);
	pulse_get(w, &before);
	assert_false(before.is_there);
	assert_int_equal(before.jobs[0].n, after.jobs[0].n);
	web_free(w);
	store_close(store);
}

/* ---- remarks ---- */

#define RUN "{'run_id': 'r', 'backend': 'vllm', 'model_id': 'm', 'date': '20260101-000000', 'num_prompts': " \
	"6, 'duration': 2, 'completed': 6, 'request_throughput': 2, 'output_throughput': 5}"
#define MARK "{'series': 's', 'metric': 'm', 'at': 'a', 'kind': 'expected', 'who': 'me'}"

/* 1,000 of a run, 10,000 marks of all trends; and 1,000 filters: all but the last are there. */
static void remarks(void **state)
{
	static const struct rig_request request[] = {
		{ "POST /api/data/experiments/1/annotations", "{'text': 'the last', 'who': 'me'}" },
		{ "POST /api/data/experiments/1/annotations", "{'text': 'too many', 'who': 'me'}" },
		{ "POST /api/analysis/marks", MARK }, { "POST /api/analysis/marks", MARK },
		{ "DELETE /api/analysis/marks/2000", NULL }, { "POST /api/analysis/marks", MARK },
		{ "POST /api/filters/presets", "{'name': 'last', 'filters': {}}" },
		{ "POST /api/filters/presets", "{'name': 'more', 'filters': {}}" },
	};
	struct buf reply;

	(void)state;
	start((struct web_opts){ 0 });
	reply = rig_ask("POST /api/upload/raw", RUN);
	assert_non_null(strstr(reply.data, "201 Created"));
	buf_release(&reply);
	sql("limits", "WITH RECURSIVE n(i) AS (SELECT 1001 UNION ALL SELECT i + 1 FROM n WHERE i < 1999) INSERT INTO "
	    "annotations (id, run, text, who, at) SELECT i, (SELECT id FROM documents), 't', 'w', i FROM n");
	sql("limits", "WITH RECURSIVE n(i) AS (SELECT 1001 UNION ALL SELECT i + 1 FROM n WHERE i < 10999) INSERT INTO "
	    "marks (id, series, metric, place, kind, text, who, at) SELECT i, 's', 'm', 'p' || i, 'expected', "
	    "'', 'w', i FROM n");
	sql("limits", "WITH RECURSIVE n(i) AS (SELECT 1001 UNION ALL SELECT i + 1 FROM n WHERE i < 1999) INSERT INTO "
	    "presets (id, kind, name, body, at) SELECT i, 'preset', 'p' || i, '{}', i FROM n");
	rig_check_all(request, COUNT(request));
	rig_stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sent_too_slowly), cmocka_unit_test(read_too_slowly),
		cmocka_unit_test(too_many), cmocka_unit_test(boards),
		cmocka_unit_test(bodies), cmocka_unit_test(remarks), cmocka_unit_test(figures),
		cmocka_unit_test(pulses),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
