/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_web_changes.c - routes that change the store, and requests that are refused: status and
 * body of each, asked of a server on loopback one after the other.
 *
 * threads: yes
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/base/mem.h"
#include "core/json/read.h"
#include "core/json/write.h"
#include "web/web.h"
#include "answers.h"
#include "ask.h"
#include "scratch.h"

#define COUNT(x) (sizeof(x) / sizeof(*(x)))
#define RUN(i, more) "{'date': '2026010" i "-000000', 'backend': 'vllm', 'model_id': 'm" i "', " \
	"'num_prompts': 6, 'request_rate': " i ", 'duration': 2.5, 'completed': 5, 'failed': 1, " \
	"'total_input_tokens': 60, 'total_output_tokens': 20, 'request_throughput': " i ", " \
	"'output_throughput': 8, 'mean_ttft_ms': 100, 'median_ttft_ms': 9" i more "}"

/* Members that differ each time, at any depth. */
static bool is_volatile(struct str key)
{
	static const char *const name[] = {
		"query_ms", "data_version", "received", "uptime_s", "created_at", "started_s", "timings",
		"version", "at", "updated_at", "now_s", "bytes_free", "added_at", "hash", "content_hash",
		"time", "job_id", "run_id", "bytes", "made", "began_s", "seen_s", "elapsed_s",
	};

	for (size_t i = 0; i < COUNT(name); i++)
		if (str_is(key, name[i]))
			return true;
	return false;
}

static void put(struct json_writer *w, const struct json_value *v)
{
	bool is_object = v->kind == JSON_OBJECT;

	if (!is_object && v->kind != JSON_ARRAY) {
		json_put_value(w, v);
		return;
	}
	if (is_object)
		json_begin_object(w);
	else
		json_begin_array(w);
	for (size_t i = 0; i < v->count; i++) {
		if (is_object && (is_volatile(v->key[i]) ||
				  (str_is(v->key[i], "id") && v->item[i].kind == JSON_STRING)))
			continue;
		if (is_object)
			json_key_str(w, v->key[i]);
		put(w, &v->item[i]);
	}
	if (is_object)
		json_end_object(w);
	else
		json_end_array(w);
}

/* Several requests are one answer. */
static void check(const char *const *request, size_t n)
{
	struct buf out = { 0 };

	for (size_t i = 0; i < n; i++) {
		struct json_writer w = json_writer(&out);
		struct json_value *v = NULL;
		struct arena a = { 0 };
		struct buf reply = { 0 };
		struct str text, head;
		char *end;

		ask(request[i], &reply);
		if (getenv("VERBOSE"))
			print_message("%.70s: %.40s\n", request[i], reply.data);
		end = strstr(reply.data, "\r\n\r\n");
		if (!end)
			fail_msg("%s: '%s'", request[i], reply.data);
		text = str_of(end + 4);
		head = (struct str){ reply.data, (size_t)(strchr(reply.data, '\r') - reply.data) };
		buf_printf(&out, "%.*s\n%.*s\n", (int)strcspn(request[i], "{-"), request[i], (int)head.n,
			   head.p);
		if (json_parse(&a, text, &v, NULL) == 0)
			put(&w, v);
		else
			buf_add_str(&out, text);
		buf_add_text(&out, "\n");
		arena_release(&a);
		buf_release(&reply);
		if (out.len > ANSWER_HEAD_BYTES || i + 1 == n) {
			answers_release(&out);
			out = (struct buf){ 0 };
		}
	}
}

static struct web *begin(struct store **store, const char *name)
{
	static char place[160], jobs[128];
	struct store_opts so = { .url = place };
	struct web_opts o = { .listen = "127.0.0.1:0", .has_no_auth = true, .version = "test", .log_fd = -1,
			      .folder = jobs };
	struct web *w;
	struct err e = { 0 };

	snprintf(place, sizeof(place), "sqlite:%s/%s.db", dir, name);
	snprintf(jobs, sizeof(jobs), "%s/jobs", dir);
	if (store_open(&so, store, &e) < 0 || web_open(&o, &w, &e) < 0 || web_start(w, *store,
	  &e) < 0)
		fail_msg("%s", e.text);
	ask_port = (uint16_t)web_port(w);
	return w;
}

static void changes(void **state)
{
	static const char *const request[] = {
		"POST /api/upload/raw " RUN("1", ""),
		"POST /api/upload/raw " RUN("1", ""),
		"POST /api/upload/json " RUN("2", ", 'note': 'cold'"),
		"POST /api/upload/raw?name=lines.jsonl " RUN("3", "") "\n" RUN("4", "") "\n{'no': 'run'}\n",
		"POST /api/upload/raw {'no': 'run'}", "POST /api/upload/raw [", "POST /api/upload/raw ",
		"POST /api/upload/json --x\nContent-Disposition: form-data; name='file'; filename='a.json'\n\n"
		RUN("5", "") "\n--x--\n",
		"POST /api/upload/batch --x\nContent-Disposition: form-data; name='other'\n\nx\n--x--\n",
		"POST /api/upload/json --x\nno end",
		"GET /api/data/experiments?columns=server.model,tags.note,request_throughput&sort=timestamp",
		"POST /api/data/experiments/1/annotations {'text': 'Odd.', 'who': 'Ada'}",
		"POST /api/data/experiments/1/annotations {'text': ''}",
		"POST /api/data/experiments/99/annotations {'text': 'x'}",
		"PUT /api/data/experiments/3/exclusion {'reason': 'cold'}",
		"PUT /api/data/experiments/3/exclusion {}",
		"GET /api/data/experiments/1", "GET /api/data/experiments/3",
		"POST /api/filters/apply {'limit': 9, 'columns': ['server.model']}",
		"POST /api/filters/apply {'limit': 9, 'columns': ['server.model'], 'shown': 'all'}",
		"POST /api/filters/apply {'limit': 9, 'columns': ['server.model'], 'shown': 'excluded'}",
		"DELETE /api/data/experiments/3/exclusion", "DELETE /api/data/experiments/3/exclusion",
		"DELETE /api/annotations/1", "DELETE /api/annotations/1",
		"POST /api/data/bulk {'ids': [1, 3], 'action': 'tag', 'text': 'nightly'}",
		"GET /api/tags", "POST /api/data/bulk {'ids': [1, 77], 'action': 'tag', 'text': "
		  "'nightly', 'who': 'Ada'}",
		"POST /api/data/bulk {'filter': {'column': 'server.model', 'in': ['m4']}, 'action': "
		"'exclude', 'text': 'old'}",
		"POST /api/data/bulk {'ids': [4], 'action': 'exclude', 'text': 'old'}",
		"POST /api/data/bulk {'ids': [1], 'action': 'untag', 'text': 'nightly'}",
		"POST /api/data/bulk {'ids': [4], 'action': 'include'}",
		"POST /api/data/bulk {'ids': ['x'], 'action': 'include'}",
		  "POST /api/data/bulk {'ids': 3, 'action': 'tag'}",
		"POST /api/data/bulk {'ids': [1], 'filter': {}, 'action': 'delete'}",
		"POST /api/data/bulk {'ids': [1], 'action': 'tag', 'text': ''}",
		"POST /api/data/bulk {'ids': [3], 'action': 'delete'}",
		"POST /api/data/bulk {}", "GET /api/tags",
		"POST /api/filters/presets {'name': 'Mine', 'body': {'filter': {'column': 'failed', 'range': "
		"{'min': 1}}}}",
		"POST /api/filters/presets {'name': 'Mine', 'body': {}}",
		"PUT /api/filters/presets/1 {'name': 'Ours'}", "GET /api/filters/presets",
		"POST /api/boards {'name': 'B', 'body': {'panels': []}}", "PUT /api/boards/2 {'body': {'x': 1}}",
		"GET /api/boards", "DELETE /api/boards/2", "DELETE /api/filters/presets/1",
		"GET /api/filters/presets",
		"PUT /api/settings/prices/h100-80gb {'usd_per_hour': 2.5, 'power_w': 700, 'who': "
		  "'Ada'}", "PUT /api/settings/prices/h100-80gb {'usd_per_hour': null, 'power_w': "
		  "10}",
		"PUT /api/settings/prices/none {'usd_per_hour': -1}", "GET /api/settings/prices",
		"PUT /api/settings/prices/h100-80gb {'power_w': 11, 'was': 9}",
		"PUT /api/settings/prices/h100-80gb {'power_w': 11, 'was': 10}",
		"PUT /api/settings/prices/h100-80gb {'usd_per_hour': 1, 'was': 2.5}",
		"PUT /api/settings/prices/h100-80gb {'usd_per_hour': 1, 'was': null}",
		"PUT /api/settings/prices/h100-80gb {'usd_per_hour': 1, 'was': 'x'}",
		"POST /api/analysis/marks {'series': 's', 'metric': 'm', 'at': 'a', 'kind': 'seen'}",
		"POST /api/analysis/marks {'series': 's', 'metric': 'm', 'at': 'a', 'kind': 'odd'}",
		"GET /api/analysis/marks", "DELETE /api/analysis/marks/1", "DELETE /api/analysis/marks/1",
		"POST /api/live {'name': 'x', 'kind': 'serve', 'total': -4}",
		  "POST /api/live {'name': 'x', 'mode': 'serve'}",
		"POST /api/live {}", "POST /api/live/none/samples {'samples': []}",
		"POST /api/live/none/end {}", "GET /api/live/none",
		"POST /api/login {'token': 'x'}", "POST /api/logout {}",
		"POST /api/launch/check {'config': 'a: ['}", "POST /api/launch {'config': 3}",
		"GET /api/export/traces/7", "DELETE /api/traces/7",
		"POST /api/data/experiments/1/traces --x\nContent-Disposition: form-data; name='trace'; "
		"filename='t.json'\n\n{'traceEvents': []}\n--x--\n",
		"GET /api/traces", "GET /api/export/traces/1", "DELETE /api/traces/1", "GET /api/traces",
		"GET /api/upload/status/0", "DELETE /api/none", "PUT /api/tags {}", "GET /../etc/passwd",
		"GET /api/health?verbose=1", "GET /api/data/experiments/1/arrays",
	};
	struct store *store;
	struct web *w = begin(&store, "changes");

	(void)state;
	check(request, COUNT(request));
	assert_true(web_stop(w));
	web_free(w);
	store_close(store);
}

static void refused(void **state)
{
	static const char *const request[] = {
		"POST /api/upload/raw " RUN("1", ", 'tensor_parallel_size': 2, 'enable_prefix_caching': true"),
#define APPLY "POST /api/filters/apply "
		APPLY "{'fitler': {}}", APPLY "{'filter': {'column': 'a', 'in': 3}}", APPLY "[]",
		APPLY "{'filter': {'and': [{'column': 'a', 'range': {'min': 'x'}}]}}", APPLY "{'filter': ",
		APPLY "{'limit': -1}", APPLY "{'limit': 1000000}", APPLY "{'sort': [{'column': ''}]}",
		APPLY "{'shown': 'some'}", APPLY "{'cursor': 'x'}", APPLY "{'facets': 'many'}",
		APPLY "{'cursor': '0000000000000000-1', 'sort': [{'column': 'status'}]}",
		APPLY "{'filter': {'column': 'server.modle', 'in': ['x']}}",
		APPLY "{'filter': {'and': [{'not': {'or': [{'column': 'server.modle', 'in': ['x']}]}}]}}",
		APPLY "{'filter': {'column': 'max_num_seqs', 'missing': true}}", APPLY "{'facets': ['note']}",
		APPLY "{'sort': [{'column': 'run_id'}, {'column': 'zzzzzz'}]}",
		APPLY "{'columns': ['status', 'statsu']}", APPLY "{'statistics': ['median_ttft']}",
		APPLY "{'filter': {'column': 'server.tensor_parallel_size', 'in': [1, '2']}}",
		APPLY "{'filter': {'column': 'server.model', 'in': [7]}}",
		APPLY "{'filter': {'column': 'failed', 'range': {'min': 5, 'max': 3}}}",
		APPLY "{'filter': {'column': 'server.model', 'range': {'min': 5}}}",
		APPLY "{'filter': {'column': 'server.enable_prefix_caching', 'range': {'min': 0}}}",
		APPLY "{'filter': {'column': 'failed', 'text': '1'}}",
		APPLY "{'filter': {'column': 'timestamp', 'range': {'min': 'yesterday'}}}",
		APPLY "{'filter': {'column': 'timestamp', 'range': {'min': '2026-01-01', 'max': "
		"'2026-01-02T00:00:00Z'}}, 'limit': 0}",
		APPLY "{'filter': {'column': '*', 'text': 'M1'}, 'limit': 1, 'columns': []}",
		APPLY "{'filter': {'not': {'column': 'tags.note', 'missing': true}}, 'limit': 0}",
		"GET /api/data/experiments?filter=%7B", "GET /api/data/experiments?limit=many",
		"GET /api/data/experiments/999999", "GET /api/data/experiments/nobody/document",
		"GET /api/data/experiments?page=1", "GET /api/data/experiments?limt=2",
		"GET /api/data/experiments?sort=-zzzzzz", "GET /api/data/experiments?columns=status,zzzzzz",
		"GET /api/data/summary?statistics=p99_tfft_ms", "GET /api/filters/options?facet_value=5",
		"GET /api/traces?offset=5", "POST /api/export/csv {'format': 'xlsx'}",
		"POST /api/export/csv {'columns': ['zzzzzz']}",
		"POST /api/export/csv {'format': 'jsonl', 'columns': ['server.model', 'failed']}",
		"GET /api/export/csv?limit=1&columns=server.model,note",
		"DELETE /api/filters/presets/7", "PUT /api/filters/presets/7 {'name': 'x'}",
		"POST /api/filters/presets {'name': '', 'body': {}}", "POST /api/filters/presets {'name': 'x'}",
		"POST /api/filters/presets {'name': 'x', 'body': {}, 'filters': {}}",
		"POST /api/analysis/trends []", "POST /api/analysis/trends {}",
		"POST /api/analysis/trends {'metric': 'output_troughput'}",
		"POST /api/analysis/trends {'metric': 'failed', 'series': ['server.modle']}",
		"POST /api/analysis/trends {'metric': 'failed', 'fliter': {}}",
		"POST /api/analysis/trends {'metric': 'failed'}",
		"POST /api/analysis/regression {'metrics': ['failed', 'zzzzzz'], 'baseline': {'last': 1}}",
		"POST /api/analysis/regression {'baseline': {'last': 1}}",
		"POST /api/analysis/impact {'metric': 'failed', 'parameters': ['server.modle']}",
		"POST /api/analysis/scaling {'metric': 'failed', 'by': 'server.tensor_paralel_size'}",
		"POST /api/analysis/capacity {'rate': 1, 'slo': [{'column': 'zzzzzz', 'max': 1}]}",
		"POST /api/analysis/resources {'x': 'zzzzzz', 'y': 'failed'}",
		"POST /api/analysis/parallel {'columns': ['failed', 'zzzzzz']}",
		"POST /api/data/compare {'ids': [1], 'groups': []}", "POST /api/data/compare {'ids': []}",
		"POST /api/data/compare {'groups': [{'ids': [1]}, {'filter': {'column': 'zzzzzz'}}]}",
	};
	struct store *store;
	struct web *w = begin(&store, "refused");

	(void)state;
	check(request, COUNT(request));
	assert_true(web_stop(w));
	web_free(w);
	store_close(store);
}

/* How a body's member is changed. */
enum change { LEFT_OUT, OTHER_KIND, BEYOND, CHANGES };

static void put_changed(struct json_writer *w, const struct json_value *v, enum change how,
			struct arena *a)
{
	bool is_text = v->kind == JSON_STRING;

	if (how == OTHER_KIND && is_text)
		json_put_int(w, 7);
	else if (how == OTHER_KIND)
		json_put_text(w, "x");
	else if (is_text)
		json_put_text(w, arena_printf(a, "%05000d", 0));
	else if (v->kind == JSON_INT || v->kind == JSON_REAL)
		json_put_f64(w, 1e18);
	else if (v->kind == JSON_ARRAY)
		put(w, &(struct json_value){ .kind = JSON_ARRAY });
	else
		put(w, &(struct json_value){ .kind = JSON_OBJECT });
}

/* NULL: the body has no such member. */
static const char *changed(struct arena *a, const char *request, size_t member, enum change how)
{
	size_t head = strcspn(request, "{");
	struct buf text = { 0 }, out = { 0 };
	struct json_writer w = json_writer(&out);
	struct json_value *v;

	buf_add_text(&text, request + head);
	answers_mask(&text, "'", "\"");
	if (json_parse(a, buf_str(&text), &v, NULL) < 0)
		fail_msg("%s", request);
	buf_release(&text);
	if (member >= v->count)
		return NULL;
	buf_add(&out, request, head);
	json_begin_object(&w);
	for (size_t i = 0; i < v->count; i++) {
		if (i == member && how == LEFT_OUT)
			continue;
		json_key_str(&w, v->key[i]);
		if (i == member)
			put_changed(&w, &v->item[i], how, a);
		else
			json_put_value(&w, &v->item[i]);
	}
	json_end_object(&w);
	return arena_take(a, &out).p;
}

/* Good requests with each member of the body left out, of another kind, and too large or empty. */
static void members(void **state)
{
	static const char *const good[] = {
		"POST /api/data/experiments/1/annotations {'text': 'Odd.', 'who': 'Ada'}",
		"PUT /api/data/experiments/1/exclusion {'reason': 'cold', 'who': 'Ada'}",
		"DELETE /api/data/experiments/1/exclusion {'who': 'Ada'}",
		"POST /api/data/bulk {'ids': [1], 'action': 'tag', 'text': 'nightly', 'who': 'Ada'}",
		"POST /api/filters/presets {'name': 'Mine', 'body': {}}", "POST /api/boards {'name': 'B', 'body': {}}",
		"PUT /api/settings/prices/gpu {'usd_per_hour': 2.5, 'power_w': 700, 'who': 'Ada'}",
		"POST /api/analysis/marks {'series': 's', 'metric': 'm', 'at': 'a', 'kind': 'seen', 'text': 't', "
		"'who': 'Ada'}",
		"POST /api/live {'run_id': 'r', 'name': 'x', 'kind': 'serve', 'total': 4}",
		APPLY "{'filter': {}, 'shown': 'all', 'limit': 1, 'columns': [], 'sort': [], 'statistics': []}",
		"POST /api/export/csv {'format': 'csv', 'filter': {}, 'columns': ['failed'], 'limit': 1}",
		"POST /api/data/compare {'ids': [1], 'baseline': 0, 'level': 0.9, 'comparable_only': true, 'ignore': "
		"[], 'metrics': ['failed'], 'primary': 'failed'}",
		"POST /api/analysis/trends {'metric': 'failed', 'series': ['failed'], 'level': 0.01, 'effect': 0.1, "
		"'window': 100, 'news': 1}",
		"POST /api/analysis/regression {'metrics': ['failed'], 'baseline': {'last': 1}, 'policy': {'p': 0.01}}",
		"POST /api/analysis/impact {'metric': 'failed', 'parameters': ['benchmark.request_rate']}",
		"POST /api/analysis/scaling {'metric': 'failed', 'by': 'completed', 'series': []}",
		"POST /api/analysis/capacity {'rate': 1, 'slo': [{'column': 'failed', 'max': 1}], 'configuration': []}",
		"POST /api/analysis/resources {'x': 'completed', 'y': 'failed', 'color': []}",
		"POST /api/analysis/pareto {'x': 'completed', 'y': 'failed', 'group': []}",
		"POST /api/analysis/distribution {'metric': 'failed', 'group': []}",
		"POST /api/analysis/parallel {'columns': ['failed', 'completed'], 'limit': 1}",
		"POST /api/analysis/curves {'at': 1, 'include_invalid': true}",
		"POST /api/analysis/overview {'rank': 'ttft', 'need': {'p99_ttft_ms': 1}}",
	};
	struct arena a = { 0 };
	struct store *store;
	struct web *w = begin(&store, "members");
	const char *request[512] = { "POST /api/upload/raw " RUN("1", "") };
	size_t n = 1;

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++)
		for (size_t k = 0; changed(&a, good[i], k, LEFT_OUT); k++)
			for (enum change how = LEFT_OUT; how < CHANGES; how++)
				request[n++] = changed(&a, good[i], k, how);
	assert_true(n < COUNT(request));
	check(request, n);
	assert_true(web_stop(w));
	web_free(w);
	store_close(store);
	arena_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(changes),
		cmocka_unit_test(refused), cmocka_unit_test(members) };

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
