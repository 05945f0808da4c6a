/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_earlier.c - what `profllm run` says of the same configurations' earlier runs:
 * documents of before are in a store and in a dashboard, those of now are written by each row.
 *
 * threads: yes
 */
#include "verb.h"
#include "on_stderr.h"

#include "cmd/verbs/run_verb.h"

#define MEMBERS_MAX 16

/* A document; of its hash, day, server and results. */
struct made { const char *hash, *day, *session; double value, ttft_ms; };

static void put_document(const char *path, const struct made *m, const char *more,
			 const char *status)
{
	struct buf text = { 0 };
	struct err e;

	buf_printf(&text, "{\"schema_version\": 1, \"run_id\": \"exp_%s_%s_%s\", "
		   "\"timestamp\": \"2026-01-%sT03:04:05Z\", "
		   "\"config\": {\"name\": \"night\", \"mode\": \"serve\", \"hash\": \"%s\", \"benchmark\": "
		   "{\"max_concurrency\": \"%s\"}, \"servers\": [{\"is_serving\": true, \"started_by\": \"%s%s\", "
		   "\"arguments\": {\"model\": \"m\"}}]}, \"environment\": {}, \"status\": \"%s\", \"trust\": "
		   "{\"verdict\": \"VALID\"}, \"results\": ", m->hash, m->day, m->session, m->day, m->hash, m->hash,
		   m->day, m->session, status);
	if (m->value > 0)
		buf_printf(&text, "{\"max_concurrency\": \"%s\", \"completed_requests\": 100, \"failed_requests\": 0, "
			   "\"%s\": %g, \"median_ttft_ms\": %g}}\n", m->hash, more, m->value, m->ttft_ms);
	else
		buf_add_text(&text, "null}\n");
	if (file_write_atomic(path, buf_str(&text), &e) < 0)
		fail_msg("%s", e.text);
	buf_release(&text);
}

#define FOLDER "profllm-earlier-"
#define RATE "output_throughput"

/* Of each of the first five configurations as many are taken as there are now: the newest two. */
static const struct made before[] = {
	{ "h1", "01", "x", 10, 500 }, { "h1", "02", "a", 100, 50 }, { "h1", "03", "b", 101, 50 },
	{ "h2", "02", "c", 100, 50 }, { "h2", "03", "d", 101, 50 }, { "h2", "20", "x", 10, 500 },
	{ "h3", "02", "e", 100, 50 }, { "h3", "03", "f", 100.1, 50 },
	{ "h4", "02", "g", 100, 50 }, { "l1", "02", "h", 2, 50 }, { "l1", "03", "i", 2.01, 50 },
	{ "h6", "02", "j", 100, 50 }, { "h6", "03", "k", 101, 50 },
	{ "h7", "02", "l", 100, 50 }, { "h7", "03", "m", 101, 50 }, { "h7", "12", "x", 10, 500 },
};

struct row {
	const char *title;
	struct made now[MEMBERS_MAX];
	const char *metric;         /* of the results; NULL: RATE */
	const char *where, *of_member, *upload, *dashboard, *tmp, *token;
};

#define LEFT { "left", "09", "x", 100, 50 } /* not chosen */
#define ALL { LEFT, \
	{ "h1", "10", "a", 150, 50 }, { "h1", "11", "b", 151, 50 }, { "h2", "10", "c", 70, 80 }, \
	{ "h2", "11", "d", 71, 80 }, { "h3", "10", "e", 100, 50 }, { "h3", "11", "f", 100.1, 50 }, \
	{ "h4", "11", "g", 99, 50 }, { "h5", "11", "h", 100, 50 }, { "failed", "11", "i", 0, 0 }, \
}
#define ONE { LEFT, { "h1", "10", "a", 150, 50 }, { "h1", "11", "b", 151, 50 } }

static void compared(void **state)
{
	static const struct row row[] = {
		{ "a store", ALL, .where = "sqlite:s.db" },
		{ "a member's choice", ALL, .of_member = "http://127.0.0.1:$WEB/" },
		{ "the dashboard that it is sent to", ONE, .where = "previous", .upload = "http://127.0.0.1:$WEB" },
		{ "the dashboard that it is shown on", ONE, .where = "previous",
		  .dashboard = "http://127.0.0.1:$WEB/?token=x" },
		{ "the user's own store", ONE, .where = "previous" },
		{ "more slow first tokens", { { "h6", "10", "a", 100, 90 }, { "h6", "11", "b", 101, 91 } },
		  .where = "sqlite:s.db" },
		{ "fewer slow first tokens", { { "h6", "10", "a", 100, 20 }, { "h6", "11", "b", 101, 21 } },
		  .where = "sqlite:s.db" },
		{ "a latency", { { "l1", "10", "a", 1, 50 }, { "l1", "11", "b", 1.01, 50 } }, "avg_latency",
		  .where = "sqlite:s.db" },
		{ "no metric in common", { { "h6", "10", "a", 1, 50 } }, "request_throughput", .where = "sqlite:s.db" },
		{ "nothing earlier", { { "h9", "10", "a", 1, 50 } }, .where = "sqlite:s.db" },
		{ "nothing measured", { { "h1", "10", "a", 0, 0 } }, .where = "sqlite:none.db" },
		{ "nothing asked", ONE, .where = NULL },
		{ "no store", ONE, .where = "sqlite:none.db" },
		{ "no dashboard", ONE, .where = "http://127.0.0.1:$WEB/nothing" },
		{ "no such answer", ONE, .where = "http://127.0.0.1:$WEB/api/nothing" },
		{ "no token", ONE, .where = "previous", .upload = "http://127.0.0.1:$WEB", .token = "none" },
		{ "the second began first", { { "h7", "13", "a", 150, 50 }, { "h7", "11", "b", 151, 50 } },
		  .where = "sqlite:s.db" },
		{ "no folder", ONE, .where = "sqlite:s.db", .tmp = "none" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		const struct row *r = &row[i];
		struct command_run c = { 0 };
		struct suite_against out;
		struct suite_member member[MEMBERS_MAX] = { 0 };
		char path[MEMBERS_MAX][32];
		struct buf got = { 0 };
		char *at;

		c.suite.member = member;
		c.o.compare_with = r->where ? verb_filled(r->where) : NULL;
		c.o.token_file = r->token;
		c.o.upload = r->upload ? verb_filled(r->upload) : NULL;
		for (; r->now[c.suite.n].hash; c.suite.n++) {
			struct suite_member *m = &member[c.suite.n];

			snprintf(path[c.suite.n], sizeof(*path), "now%zu.json", c.suite.n);
			put_document(path[c.suite.n], &r->now[c.suite.n],
				     r->metric ? r->metric : RATE,
				     r->now[c.suite.n].value > 0 ? "completed" : "failed");
			*m = (struct suite_member){ .path = path[c.suite.n],
				.is_chosen = strcmp(r->now[c.suite.n].hash, "left") != 0, .label = "m" };
			m->x.output.dashboard = !m->is_chosen ? "http://127.0.0.1:1" :
				r->dashboard ? verb_filled(r->dashboard) : NULL;
			m->x.output.compare_with = !m->is_chosen ? (r->where ? "sqlite:none.db" : NULL) :
				r->of_member ? verb_filled(r->of_member) : NULL;
		}
		setenv("TMPDIR", r->tmp ? r->tmp : "tmp", 1);
		begin_stderr();
		run_earlier(&c, &out);
		buf_printf(&got, "-- said\n%s%.*s", end_stderr(), (int)out.text.n, out.text.n ? out.text.p : "");
		if (out.title)
			buf_printf(&got, "| %s\n", out.title);
		for (size_t k = 0; out.cell && k < c.suite.n; k++)
			buf_printf(&got, "| %s: %s\n", r->now[k].hash, out.cell[k] ? out.cell[k] : "-");
		buf_add_char(&got, '\0');
		at = strstr(got.data, FOLDER);
		if (at)
			memset(at + strlen(FOLDER), 'X', 6);
		verb_answer(r->title, &got);
		assert_int_equal(rmdir("tmp"), 0);
		assert_int_equal(mkdir("tmp", 0755), 0);
		arena_release(&c.arena);
	}
}

static void must_run(const char *line)
{
	assert_int_equal(verb_end(verb_begin(line, NULL, "out", "err")), 0);
}

static int setup(void **state)
{
	char line[256], port[16] = "", path[64];
	FILE *f;

	if (verb_setup(state) < 0 || mkdir("before", 0755) < 0 || mkdir("tmp", 0755) < 0)
		return -1;
	setenv("XDG_DATA_HOME", dir, 1);
	for (size_t i = 0; i < COUNT(before); i++) {
		snprintf(path, sizeof(path), "before/%zu.json", i);
		put_document(path, &before[i], strcmp(before[i].hash, "l1") == 0 ? "avg_latency" : RATE, "completed");
	}
	put_document("before/partial.json", &(struct made){ "h1", "04", "x", 10, 500 }, RATE, "partial");
	snprintf(line, sizeof(line), "dashboard --no-auth --listen 127.0.0.1:0 --port-file %s/port "
		 "--store sqlite:d.db --no-launch", dir);
	must_run("ingest before --store sqlite:d.db");
	must_run("ingest before --store sqlite:s.db");
	must_run("ingest before");
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
	const struct CMUnitTest tests[] = { cmocka_unit_test(compared) };

	if (argc > 1)
		return profllm_main(argc, argv);
	return cmocka_run_group_tests(tests, setup, verb_teardown);
}
