/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole server under load from several threads: uploads, filters, figures, streams and rotated
 * logs at once, stopped while all of that goes on. Run with ThreadSanitizer it looks for races; in
 * every build it holds the server to its counts: what was acknowledged is there, once.
 *
 * threads: yes
 */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/base/mem.h"
#include "core/json/read.h"
#include "input/fetch/fetch.h"
#include "scratch.h"
#include "web/web.h"

#define WRITERS 3
#define READERS 3
#define EACH 40        /* uploads of a writer */

static const char token[] = "correct-horse-battery";

struct load {
	char url[128];
	struct web *web;
	atomic_int acknowledged, refused, wrong, answers, writing;
	atomic_bool is_over;
};

struct thread {
	struct load *load;
	pthread_t id;
	int number;
};

static int ask(const struct load *l, struct fetch_pool *pool, const char *path, struct str body,
	       struct fetch_reply *reply)
{
	const char *const header[] = { "Authorization: Bearer correct-horse-battery",
				       "Accept-Encoding: gzip", NULL };
	const struct fetch_opts o = { .header = header, .pool = pool, .proxy = "",
				      .timeout_ms = 60000 };
	char url[256];

	snprintf(url, sizeof(url), "%s%s", l->url, path);
	return fetch(url, body.p ? &body : NULL, &o, reply, NULL);
}

static void *write_runs(void *self)
{
	struct thread *t = self;
	struct fetch_pool *pool = fetch_pool_new();

	for (int i = 0; i < EACH; i++) {
		struct fetch_reply reply = { 0 };
		char text[600];
		int n = snprintf(text, sizeof(text),
				 "{\"date\": \"20260101-000000\", \"backend\": \"vllm\", "
				 "\"model_id\": \"m%d\", \"num_prompts\": 10, \"request_rate\": \"inf\", "
				 "\"duration\": 1.5, \"completed\": 10, \"total_input_tokens\": 100, "
				 "\"total_output_tokens\": 100, \"request_throughput\": %d, "
				 "\"output_throughput\": 50, \"own_%d_%d\": 1}", t->number,
				 t->number * 1000 + i, t->number, i % 5);

		if (ask(t->load, pool, "/api/upload/raw", (struct str){ text, (size_t)n }, &reply) == 0)
			atomic_fetch_add(reply.status == 201 ? &t->load->acknowledged :
					 &t->load->refused, 1);
		fetch_reply_release(&reply);
	}
	fetch_pool_free(pool);
	atomic_fetch_sub(&t->load->writing, 1);
	return NULL;
}

static void *read_runs(void *self)
{
	static const char *const question[] = {
		"{\"facets\": \"auto\", \"limit\": 20, \"sort\": [{\"column\": \"request_throughput\"}]}",
		"{\"filter\": {\"column\": \"request_throughput\", \"range\": {\"min\": 1000}}, "
		"\"statistics\": [\"request_throughput\"], \"facets\": [\"server.model\"]}",
	};
	static const char *const path[] = { "/api/health", "/metrics", "/api/filters/options", "/runs",
					    "/api/jobs", "/api/data/experiments?limit=5", "/api/none" };
	struct thread *t = self;
	struct fetch_pool *pool = fetch_pool_new();

	for (int i = t->number; !atomic_load(&t->load->is_over); i++) {
		struct fetch_reply reply = { 0 };
		bool is_post = i % 2;
		int rc = is_post ? ask(t->load, pool, "/api/filters/apply", str_of(question[i / 2 % 2]),
				       &reply) :
			 ask(t->load, pool, path[(size_t)(i / 2) % (sizeof(path) / sizeof(*path))],
			     (struct str){ 0 }, &reply);

		/* Those that come after its end are not answered. */
		if (rc == 0) {
			atomic_fetch_add(&t->load->answers, 1);
			if (reply.status != 200 && reply.status != 404 && reply.status != 503)
				atomic_fetch_add(&t->load->wrong, 1);
		}
		fetch_reply_release(&reply);
	}
	fetch_pool_free(pool);
	return NULL;
}

static struct web *start(struct load *l, struct store *store, const char *log, const char *tokens)
{
	char folder[128];
	struct web_opts o = { .listen = "127.0.0.1:0", .token_file = tokens, .version = "test",
			      .log_path = log, .log_fd = -1, .folder = folder };
	struct err e = { 0 };
	struct web *w;

	snprintf(folder, sizeof(folder), "%s/jobs", dir);
	if (web_open(&o, &w, &e) < 0 || web_start(w, store, &e) < 0)
		fail_msg("%s", e.text);
	snprintf(l->url, sizeof(l->url), "%s", web_url(w));
	l->web = w;
	return w;
}

static int64_t runs_of(const struct load *l)
{
	struct fetch_reply reply = { 0 };
	struct arena a = { 0 };
	struct json_value *v = NULL;
	int64_t n;

	assert_int_equal(ask(l, NULL, "/api/health", (struct str){ 0 }, &reply), 0);
	assert_int_equal(json_parse(&a, buf_str(&reply.body), &v, NULL), 0);
	n = json_int(json_get(v, "runs"), -1);
	arena_release(&a);
	fetch_reply_release(&reply);
	return n;
}

static void everything_at_once(void **state)
{
	char place[128], log[128], tokens[128];
	struct store_opts so = { .url = place };
	struct thread thread[WRITERS + READERS];
	struct load l = { .writing = WRITERS };
	struct store *store;
	struct err e = { 0 };
	int fd;

	(void)state;
	snprintf(place, sizeof(place), "sqlite:%s/s.db", dir);
	snprintf(log, sizeof(log), "%s/access.jsonl", dir);
	snprintf(tokens, sizeof(tokens), "%s/tokens", dir);
	fd = open(tokens, O_WRONLY | O_CREAT, 0600);
	assert_int_equal(write(fd, token, sizeof(token) - 1), sizeof(token) - 1);
	close(fd);
	if (store_open(&so, &store, &e) < 0)
		fail_msg("%s", e.text);
	start(&l, store, log, tokens);
	for (int i = 0; i < WRITERS + READERS; i++) {
		thread[i] = (struct thread){ .load = &l, .number = i };
		if (pthread_create(&thread[i].id, NULL, i < WRITERS ? write_runs : read_runs,
				   &thread[i]))
			fail_msg("a thread cannot be started");
	}
	while (atomic_load(&l.writing)) {
		web_reload(l.web);
		usleep(20000);
	}
	assert_int_equal(atomic_load(&l.refused), 0);
	assert_int_equal(atomic_load(&l.acknowledged), WRITERS * EACH);
	assert_int_equal(runs_of(&l), WRITERS * EACH);
	/* Readers go on asking while it ends. */
	assert_true(web_stop(l.web));
	atomic_store(&l.is_over, true);
	for (int i = 0; i < WRITERS + READERS; i++)
		pthread_join(thread[i].id, NULL);
	assert_int_equal(atomic_load(&l.wrong), 0);
	assert_true(atomic_load(&l.answers) > 0);
	web_free(l.web);
	store_close(store);
	/* And once more, from what is on disk. */
	if (store_open(&so, &store, &e) < 0)
		fail_msg("%s", e.text);
	start(&l, store, log, tokens);
	assert_int_equal(runs_of(&l), WRITERS * EACH);
	assert_true(web_stop(l.web));
	web_free(l.web);
	store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_at_once),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
