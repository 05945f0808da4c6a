/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_web_answers.c - every route that reads, asked of a server with a handful of runs: status and
 * body, without what differs from time to time.
 *
 * threads: yes
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/base/clock.h"
#include "core/base/mem.h"
#include "core/json/read.h"
#include "core/json/write.h"
#include "input/fetch/fetch.h"
/* answers.h has a function of this name, too. */
#define answers_release answers_release_all
#include "web/web_internal.h"
#undef answers_release
#define ANSWER_HEAD_BYTES 16000
#include "answers.h"
#include "scratch.h"

static char url[128];

static long ask(const char *path, const char *body, struct fetch_reply *reply)
{
	static const char *const header[] = { "Authorization: Bearer correct-horse-battery",
					      "Content-Type: application/json", NULL };
	const struct fetch_opts o = { .header = header, .proxy = "", .timeout_ms = 60000 };
	struct str text = str_of(body ? body : "");
	char whole[512];
	struct err e = { 0 };

	snprintf(whole, sizeof(whole), "%s%s", url, path);
	if (fetch(whole, body ? &text : NULL, &o, reply, &e) < 0)
		fail_msg("%s: %s", path, e.text);
	return reply->status;
}

/* Members that differ each time, at any depth. */
static bool is_volatile(struct str key)
{
	static const char *const name[] = { "query_ms", "data_version", "received", "uptime_s",
					    "created_at", "started_s", "timings", "version", "at",
					    "updated_at", "now_s", "bytes_free", "added_at", "hash",
					    "content_hash", "time" };

	for (size_t i = 0; i < sizeof(name) / sizeof(*name); i++)
		if (str_is(key, name[i]))
			return true;
	return false;
}

static void put(struct json_writer *w, const struct json_value *v)
{
	if (v->kind != JSON_OBJECT && v->kind != JSON_ARRAY) {
		json_put_value(w, v);
		return;
	}
	if (v->kind == JSON_OBJECT)
		json_begin_object(w);
	else
		json_begin_array(w);
	for (size_t i = 0; i < v->count; i++) {
		if (v->kind == JSON_OBJECT && is_volatile(v->key[i]))
			continue;
		if (v->kind == JSON_OBJECT)
			json_key_str(w, v->key[i]);
		put(w, &v->item[i]);
	}
	if (v->kind == JSON_OBJECT)
		json_end_object(w);
	else
		json_end_array(w);
}

static void check(const char *path, const char *body)
{
	struct fetch_reply reply = { 0 };
	struct json_value *v = NULL;
	struct arena a = { 0 };
	struct buf out = { 0 };
	struct json_writer w = json_writer(&out);

	buf_printf(&out, "%s %s: %ld\n", path, body ? body : "", ask(path, body, &reply));
	if (json_parse(&a, buf_str(&reply.body), &v, NULL) == 0)
		put(&w, v);
	else
		buf_add_str(&out, buf_str(&reply.body));
	answers_release(&out);
	arena_release(&a);
	fetch_reply_release(&reply);
}

/* Runs with requests of their own, of which some failed. */
static void upload(int i)
{
	struct fetch_reply reply = { 0 };
	struct buf text = { 0 };
	long status;

	buf_printf(&text, "{\"date\": \"2026010%d-000000\", \"backend\": \"vllm\", \"model_id\": "
		   "\"m%d\", \"num_prompts\": 6, \"request_rate\": %d, \"max_concurrency\": %d, "
		   "\"duration\": 2.5, \"completed\": 5, \"failed\": 1, \"total_input_tokens\": 60, "
		   "\"total_output_tokens\": 20, \"request_throughput\": %d, \"output_throughput\": %d, "
		   "\"mean_ttft_ms\": %d, \"median_ttft_ms\": %d, \"p99_ttft_ms\": %d, "
		   "\"mean_tpot_ms\": %d", i + 1, i % 2, i, 1 << i, 2 + i, 8 + i, 100 + i, 90 + i,
		   200 + 10 * i, 10 + i);
	buf_add_text(&text, ", \"input_lens\": [10, 10, 10, 10, 10, 10], \"output_lens\": "
		     "[4, 4, 4, 4, 4, 0], \"ttfts\": [0.1, 0.2, 0.1, 0.15, 0.12, 0], \"itls\": "
		     "[[0.01, 0.02, 0.03], [0.01, 0.01, 0.01], [0.02, 0.02, 0.5], [0.01, 0.01, 0.01], "
		     "[0.03, 0.03, 0.03], []], \"errors\": [\"\", \"\", \"\", \"\", \"\", \"reset\"]");
	if (i % 2)
		buf_add_text(&text, ", \"start_times\": [100, 100.25, 100.5, 101, 101.5, 102]");
	buf_add_text(&text, "}");
	status = ask("/api/upload/raw", text.data, &reply);
	if (status != 201)
		fail_msg("%ld: %s", status, reply.body.data);
	fetch_reply_release(&reply);
	buf_release(&text);
}

static struct web *start(struct store **store)
{
	static char place[128], tokens[128], jobs[128];
	struct store_opts so = { .url = place };
	struct web_opts o = { .listen = "127.0.0.1:0", .token_file = tokens, .version = "test",
			      .log_fd = -1, .folder = jobs };
	struct web *w;
	struct err e = { 0 };
	int fd;

	snprintf(place, sizeof(place), "sqlite:%s/s.db", dir);
	snprintf(tokens, sizeof(tokens), "%s/tokens", dir);
	snprintf(jobs, sizeof(jobs), "%s/jobs", dir);
	fd = open(tokens, O_WRONLY | O_CREAT, 0600);
	assert_int_equal(write(fd, "correct-horse-battery", 21), 21);
	close(fd);
	if (store_open(&so, store, &e) < 0 || web_open(&o, &w, &e) < 0 ||
	    web_start(w, *store, &e) < 0)
		fail_msg("%s", e.text);
	snprintf(url, sizeof(url), "%s", web_url(w));
	return w;
}

static void routes_that_read(void **state)
{
	static const struct { const char *path, *body; } asked[] = {
		{ "/api/data/experiments/1/series", NULL }, { "/api/data/experiments/2/series", NULL },
		{ "/api/data/experiments/1/sketches", NULL },
		{ "/api/data/experiments/2/sketches", NULL },
		{ "/api/data/experiments/9/series", NULL }, { "/api/data/experiments/x", NULL },
		{ "/api/data/experiments?limit=2&sort=-request_throughput", NULL },
		{ "/api/data/experiments?columns=run_id,model_id&offset=3", NULL },
		{ "/api/data/experiments?limit=x", NULL }, { "/api/data/experiments/2", NULL },
		{ "/api/data/experiments/1/document", NULL }, { "/api/data/experiments/2/arrays", NULL },
		{ "/api/data/summary", NULL },
		{ "/api/data/summary", "{\"filter\": {\"column\": \"request_throughput\", "
		  "\"range\": {\"min\": 3}}}" },
		{ "/api/data/compare", "{\"ids\": [1, 2]}" }, { "/api/data/compare", "{\"ids\": [1]}" },
		{ "/api/export/csv", NULL },
		{ "/api/export/csv", "{\"filter\": {\"column\": \"server.model\", \"in\": [\"m1\"]}}" },
		{ "/api/filters/options", NULL },
		{ "/api/filters/apply", "{\"facets\": \"auto\", \"limit\": 2, \"statistics\": "
		  "[\"request_throughput\"], \"sort\": [{\"column\": \"request_throughput\"}]}" },
		{ "/api/filters/apply", "{\"filter\": {\"column\": 1}}" },
		{ "/api/filters/presets", NULL }, { "/api/boards", NULL }, { "/api/jobs", NULL },
		{ "/api/jobs/none", NULL }, { "/api/live", NULL }, { "/api/tags", NULL },
		{ "/api/settings/prices", NULL }, { "/api/traces", NULL },
		{ "/api/analysis/overview", "{}" }, { "/api/upload/status/none", NULL },
		{ "/api/none", NULL },
	};
	struct store *store;
	struct web *w;

	(void)state;
	w = start(&store);
	for (int i = 0; i < 5; i++)
		upload(i);
	for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++)
		check(asked[i].path, asked[i].body);
	assert_true(web_stop(w));
	web_free(w);
	store_close(store);
}

/* At the start and once whenever the data has settled, and no more often. */
static void first_answers_are_prepared(void **state)
{
	static const struct {
		bool is_start, is_changed;
		int64_t ago_s; /* since the data was seen to change */
		bool is_prepared;
	} row[] = {
		{ true, false, 0, true }, { false, false, 0, false }, { false, false, 9, false },
		{ false, true, -9, false }, { false, true, 9, true },
	};
	struct store *store;
	struct web *w = start(&store);

	(void)state;
	assert_true(web_stop(w)); /* nobody else asks */
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		uint64_t before = w->kept.uses;

		w->prepared.version -= row[i].is_changed;
		w->prepared.seen_ns = row[i].is_start ? 0 :
				      clock_mono_ns() - row[i].ago_s * 1000000000;
		answers_prepare(w);
		if ((w->kept.uses > before) != row[i].is_prepared)
			fail_msg("row %zu", i);
	}
	web_free(w);
	store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(routes_that_read),
					     cmocka_unit_test(first_answers_are_prepared) };

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
