/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs that report while they are measured, asked over HTTP: what is kept of a run with more
 * samples than points, what is refused, who may add to a run, and how many there may be.
 *
 * threads: yes
 */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/base/mem.h"
#include "core/json/read.h"
#include "input/fetch/fetch.h"
#include "scratch.h"
#include "web/web.h"

#define ALICE "correct-horse-battery"
#define BOB "another-horse-battery"

static struct web *web;
static struct store *store;
static char base[128];

struct got { long status; struct json_value *v; };

/* body NULL: GET. */
static struct got ask(const char *token, const char *path, const char *body, struct arena *a)
{
	struct got out = { 0 };
	struct fetch_reply reply = { 0 };
	const char *header[] = { arena_printf(a, "Authorization: Bearer %s", token), NULL };
	const struct fetch_opts o = { .header = header, .proxy = "", .timeout_ms = 60000 };
	struct str text = body ? str_of(body) : (struct str){ 0 };
	struct err e = { 0 };

	if (fetch(arena_printf(a, "%s%s", base, path), body ? &text : NULL, &o, &reply, &e) < 0)
		fail_msg("%s: %s", path, e.text);
	out.status = reply.status;
	json_parse(a, arena_str(a, buf_str(&reply.body)), &out.v, NULL);
	fetch_reply_release(&reply);
	return out;
}

static const char *begin(const char *name, struct arena *a)
{
	struct got got = ask(ALICE, "/api/live", arena_printf(a, "{\"name\": \"%s\", \"kind\": "
								    "\"bench serve\", \"total\": 3000, \"run_id\": "
								    "\"%s\"}", name, name), a);

	assert_int_equal(got.status, 201);
	return arena_text(a, json_text(json_get(got.v, "id"), STR("")));
}

static struct got look(const char *id, struct arena *a)
{
	return ask(ALICE, arena_printf(a, "/api/live/%s", id), NULL, a);
}

static struct got give(const char *id, const char *samples, struct arena *a)
{
	return ask(ALICE, arena_printf(a, "/api/live/%s/samples", id),
		   arena_printf(a, "{\"samples\": [%s]}", samples), a);
}

static void finish(const char *id, struct arena *a)
{
	assert_int_equal(ask(ALICE, arena_printf(a, "/api/live/%s/end", id), "{}", a).status, 200);
}

static const struct json_value *track(const struct json_value *run, const char *key)
{
	const struct json_value *list = json_get(json_get(run, "series"), "tracks");

	for (size_t i = 0; list && i < list->count; i++)
		if (str_is(json_text(json_get(&list->item[i], "key"), STR("")), key))
			return &list->item[i];
	return NULL;
}

static int set_up(void **state)
{
	char place[128], tokens[128], folder[128];
	struct store_opts so = { .url = place };
	struct web_opts o = { .listen = "127.0.0.1:0", .token_file = tokens, .version = "test",
			      .log_fd = -1, .folder = folder };
	static const char lines[] = "alice " ALICE " upload\nbob " BOB " upload\n"
				    "rita reading-horse-battery read\n";
	int fd;

	if (make_dir(state) < 0)
		return -1;
	snprintf(place, sizeof(place), "sqlite:%s/s.db", dir);
	snprintf(tokens, sizeof(tokens), "%s/tokens", dir);
	snprintf(folder, sizeof(folder), "%s/jobs", dir);
	fd = open(tokens, O_WRONLY | O_CREAT, 0600);
	if (write(fd, lines, sizeof(lines) - 1) != sizeof(lines) - 1)
		return -1;
	close(fd);
	if (store_open(&so, &store, NULL) < 0 || web_open(&o, &web, NULL) < 0 ||
	    web_start(web, store, NULL) < 0)
		return -1;
	snprintf(base, sizeof(base), "%s", web_url(web));
	return 0;
}

static int tear_down(void **state)
{
	bool is_stopped = web_stop(web);

	if (is_stopped) {
		web_free(web);
		store_close(store);
	}
	return is_stopped ? remove_dir(state) : -1;
}

/* 3,000 samples of a ramp become at most 600 points on the same line. */
static void a_long_run_keeps_its_shape(void **state)
{
	struct arena a = { 0 };
	const char *id = begin("ramp", &a);
	const struct json_value *run, *tokens, *t, *y;
	double sum = 0;

	(void)state;
	for (int i = 0; i < 3000; i += 100) {
		struct buf text = { 0 };

		for (int k = i; k < i + 100; k++)
			buf_printf(&text, "%s{\"t_s\": %d, \"done\": %d, \"failed\": %d, "
				   "\"tokens_per_s\": %d, \"waiting\": null}", k == i ? "" : ",", k, k,
				   k >= 1500, 2 * k);
		assert_int_equal(give(id, text.data, &a).status, 200);
		buf_release(&text);
	}
	run = look(id, &a).v;
	tokens = track(run, "output_tokens_per_s");
	assert_non_null(tokens);
	assert_null(track(run, "requests_waiting"));
	t = json_get(tokens, "t_s");
	y = json_get(tokens, "y");
	assert_in_range(t->count, 300, 600);
	assert_int_equal(t->count, y->count);
	for (size_t i = 0; i < t->count; i++) {
		assert_true(fabs(json_real(&y->item[i], NAN) - 2 * json_real(&t->item[i], NAN)) <
			    1e-6);
		assert_true(i == 0 || json_real(&t->item[i], 0) > json_real(&t->item[i - 1], 0));
		sum += json_real(&y->item[i], NAN);
	}
	assert_true(fabs(sum / (double)y->count - 2999) < 20);
	assert_int_equal(json_int(json_get(run, "done"), -1), 2999);
	assert_int_equal(json_int(json_get(run, "total"), -1), 3000);
	assert_true(json_real(json_get(run, "tokens_per_s"), NAN) == 5998);
	assert_true(fabs(json_real(json_get(run, "started_s"), NAN) - (double)time(NULL)) < 600);
	assert_true(fabs(json_real(json_get(run, "seen_s"), NAN) - (double)time(NULL)) < 600);
	assert_int_equal(json_get(json_get(run, "series"), "failed_s")->count, 1);
	assert_true(json_real(&json_get(json_get(run, "series"), "failed_s")->item[0], NAN) == 1500);
	assert_true(str_is(json_text(json_get(run, "state"), STR("")), "running"));
	finish(id, &a);
	assert_true(str_is(json_text(json_get(look(id, &a).v, "state"), STR("")), "done"));
	assert_int_equal(give(id, "", &a).status, 409);
	arena_release(&a);
}

/* None of them changes anything. */
static void what_is_wrong_is_refused(void **state)
{
	static const struct { const char *samples; long status; const char *says; } row[] = {
		{ "{}", 400, "/samples/0/t_s" },
		{ "3", 400, "an object" },
		{ "{\"t_s\": -1}", 400, "/samples/0/t_s" },
		{ "{\"t_s\": 1e300}", 400, "/samples/0/t_s" },
		{ "{\"t_s\": 5, \"done\": -3}", 400, "/samples/0/done" },
		{ "{\"t_s\": 5, \"done\": 1.5}", 400, "/samples/0/done" },
		{ "{\"t_s\": 5, \"ttft_ms\": \"fast\"}", 400, "/samples/0/ttft_ms" },
		{ "{\"t_s\": 5, \"ttft_ms\": 1e999}", 400, "/samples/0/ttft_ms" },
		{ "{\"t_s\": 5, \"ttft\": 3}", 400, "ttft_ms" },
		{ "{\"t_s\": 5, \"stage\": 7}", 400, "/samples/0/stage" },
		{ "{\"t_s\": 5}, {\"t_s\": 4}", 400, "/samples/1/t_s" },
		{ "{\"t_s\": 1}", 400, "before the last" },
	};
	struct arena a = { 0 };
	const char *id = begin("hostile", &a);
	struct buf many = { 0 };

	(void)state;
	assert_int_equal(give(id, "{\"t_s\": 2, \"done\": 1}", &a).status, 200);
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct got got = give(id, row[i].samples, &a);
		struct str detail = json_text(json_get(got.v, "detail"), STR(""));

		if (got.status != row[i].status || !strstr(detail.p, row[i].says))
			fail_msg("%s: %ld %s", row[i].samples, got.status, detail.p);
	}
	for (int i = 0; i < 121; i++)
		buf_printf(&many, "%s{\"t_s\": 9}", i ? "," : "");
	assert_int_equal(give(id, many.data, &a).status, 400);
	buf_release(&many);
	assert_int_equal(json_int(json_get(look(id, &a).v, "done"), -1), 1);
	assert_int_equal(ask(ALICE, "/api/live/none/samples", "{\"samples\": []}", &a).status, 404);
	assert_int_equal(ask(ALICE, "/api/live/none/end", "{}", &a).status, 404);
	assert_int_equal(ask(ALICE, "/api/live/none", NULL, &a).status, 404);
	assert_int_equal(ask(ALICE, "/api/live", "{\"kind\": \"run\"}", &a).status, 400);
	assert_int_equal(ask(ALICE, "/api/live", "[]", &a).status, 400);
	finish(id, &a);
	arena_release(&a);
}

static void only_its_owner_adds_to_a_run(void **state)
{
	struct arena a = { 0 };
	const char *id = begin("owned", &a), *again;

	(void)state;
	assert_int_equal(ask(BOB, arena_printf(&a, "/api/live/%s/samples", id),
			     "{\"samples\": [{\"t_s\": 1}]}", &a).status, 403);
	assert_int_equal(ask(BOB, arena_printf(&a, "/api/live/%s/end", id), "{}", &a).status, 403);
	assert_int_equal(ask("reading-horse-battery", "/api/live",
			     "{\"name\": \"x\", \"kind\": \"run\"}", &a).status, 403);
	assert_int_equal(ask("reading-horse-battery", "/api/live", NULL, &a).status, 200);
	assert_string_equal(begin("owned", &a), id); /* a client that lost its connection */
	finish(id, &a);
	again = begin("owned", &a);
	assert_string_not_equal(again, id);
	finish(again, &a);
	arena_release(&a);
}

/* A result that is none ends the run all the same, and says why there is nothing in the store. */
static void a_result_goes_into_the_store(void **state)
{
	static const char result[] =
		"{\"result\": {\"date\": \"20260101-000000\", \"backend\": \"vllm\", \"model_id\": \"m\", "
		"\"num_prompts\": 10, \"request_rate\": \"inf\", \"duration\": 1.5, \"completed\": 10, "
		"\"total_input_tokens\": 100, \"total_output_tokens\": 100, "
		"\"request_throughput\": 6.5, \"output_throughput\": 50}}";
	struct arena a = { 0 };
	const char *id = begin("kept", &a), *bad = begin("bad", &a);
	struct got got = ask(ALICE, arena_printf(&a, "/api/live/%s/end", id), result, &a);
	int64_t run = json_int(json_get(got.v, "run"), 0);

	(void)state;
	assert_int_equal(got.status, 201);
	assert_true(run > 0);
	assert_int_equal(json_int(json_get(look(id, &a).v, "run"), 0), run);
	got = ask(ALICE, arena_printf(&a, "/api/data/experiments/%lld", (long long)run), NULL, &a);
	assert_int_equal(got.status, 200);
	assert_int_equal(ask(ALICE, arena_printf(&a, "/api/live/%s/end", id), result, &a).status, 409);
	got = ask(ALICE, arena_printf(&a, "/api/live/%s/end", bad), "{\"result\": {\"a\": 1}}", &a);
	assert_int_equal(got.status, 422);
	got = look(bad, &a);
	assert_true(str_is(json_text(json_get(got.v, "state"), STR("")), "done"));
	assert_true(json_text(json_get(got.v, "failure"), STR("")).n > 10);
	assert_int_equal(json_get(got.v, "run")->kind, JSON_NULL);
	arena_release(&a);
}

/* The 65th is refused while all others run; one that has ended makes room. */
static void there_is_a_limit(void **state)
{
	struct arena a = { 0 };
	const char *id[64];
	struct got got;

	(void)state;
	for (int i = 0; i < 64; i++)
		id[i] = begin(arena_printf(&a, "r%d", i), &a);
	got = ask(BOB, "/api/live", "{\"name\": \"one more\", \"kind\": \"run\"}", &a);
	assert_int_equal(got.status, 429);
	assert_non_null(strstr(json_text(json_get(got.v, "detail"), STR("")).p, "LIVE_RUNS_MAX"));
	finish(id[7], &a);
	assert_int_equal(ask(BOB, "/api/live", "{\"name\": \"x\", \"kind\": \"run\"}", &a).status, 201);
	assert_int_equal(look(id[7], &a).status, 404);
	assert_int_equal(look(id[8], &a).status, 200);
	assert_int_equal(json_get(ask(BOB, "/api/live", NULL, &a).v, "items")->count, 64);
	arena_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_long_run_keeps_its_shape),
		cmocka_unit_test(what_is_wrong_is_refused),
		cmocka_unit_test(only_its_owner_adds_to_a_run),
		cmocka_unit_test(a_result_goes_into_the_store),
		cmocka_unit_test(there_is_a_limit),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
