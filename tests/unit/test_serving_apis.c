/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serving_apis.c - the simulator's other APIs: streams and whole answers, pooling, forms,
 * controls, counters, and what --requests keeps of a request.
 *
 * threads: yes
 */
#include "sim_rig.h"

#include "core/base/codec.h"

/* What an answer must have and must not have in it, in this order. */
struct api_row {
	const char *path, *body;
	const char *has[5];
};

#define CHAT_BODY "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"

static void assert_in_order(const struct api_row *row, const struct reply *reply)
{
	const char *at = reply->body.data;

	for (size_t i = 0; i < COUNT(row->has) && row->has[i]; i++) {
		const char *hit = strstr(at, row->has[i]);

		if (!hit)
			fail_msg("%s %s: no %s in %s", row->path, row->body, row->has[i],
				 reply->body.data);
		at = hit + strlen(row->has[i]);
	}
}

static void assert_rows(const struct rig *r, const struct api_row *row, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct reply reply = ask(r, "POST", row[i].path, "x-request-id: q\r\n",
					 row[i].body);

		if (reply.status != 200 || reply.is_cut)
			fail_msg("%s %s: %u %s", row[i].path, row[i].body, reply.status,
				 reply.body.data);
		assert_in_order(&row[i], &reply);
		reply_release(&reply);
	}
}

static void test_streams(void **state)
{
	static const struct api_row rows[] = {
		{ "/v1/responses", "{\"input\":\"hi\",\"max_output_tokens\":3,\"stream\":true}",
		  { "event: response.created\ndata: {\"type\":\"response.created\"",
		    "\"type\":\"response.reasoning_text.delta\"",
		    "\"type\":\"response.output_text.delta\",\"sequence_number\":9",
		    "event: response.completed\n", "\"output_tokens\":3" } },
		{ "/v1/messages", "{" CHAT_BODY ",\"max_tokens\":3,\"stream\":true}",
		  { "event: message_start\n", "\"type\":\"thinking_delta\"",
		    "{\"type\":\"content_block_stop\",\"index\":0}", "\"type\":\"text_delta\"",
		    "\"stop_reason\":\"max_tokens\",\"stop_sequence\":null},\"usage\":"
		    "{\"output_tokens\":3}}\n\nevent: message_stop\n" } },
		{ "/generate_stream",
		  "{\"inputs\":\"one two\",\"parameters\":{\"max_new_tokens\":2}}",
		  { "data:{\"index\":1,", "data:{\"index\":2,", "\"generated_text\":\" ",
		    "\"generated_tokens\":2,\"seed\":null,\"input_length\":4}" } },
		{ "/generate", "{\"text\":\"one two\",\"sampling_params\":{\"max_new_tokens\":2},"
		  "\"stream\":true}",
		  { "\"completion_tokens\":1",
		    "\"finish_reason\":{\"type\":\"length\",\"length\":2}",
		    "\"prompt_tokens\":4,\"reasoning_tokens\":0,\"completion_tokens\":2", "data: [DONE]" } },
		{ "/generate", "{\"prompt\":\"one two\",\"max_tokens\":2,\"stream\":true}",
		  { "{\"text\":[\"one two ", "\"]}\n{\"text\":[\"one two ", "\"]}\n" } },
		{ "/completion", "{\"prompt\":\"one two\",\"n_predict\":2,\"stream\":true}",
		  { "\"tokens_predicted\":1,", "\"tokens_predicted\":2,", "\"stop\":true",
		    "\"tokens_predicted\":2,\"tokens_evaluated\":4",
		    "\"stop_type\":\"limit\"" } },
		{ "/api/generate", "{\"prompt\":\"one two\",\"options\":{\"num_predict\":2}}",
		  { "\"thinking\":\" ", "\"response\":\" ", "\"done\":true",
		    "\"prompt_eval_count\":4,", "\"eval_count\":2," } },
		{ "/api/chat", "{" CHAT_BODY ",\"options\":{\"num_predict\":2}}",
		  { "\"message\":{\"role\":\"assistant\",\"content\":\"\",\"thinking\":\" ",
		    "\"content\":\" ", "\"done\":true,\"done_reason\":\"length\"",
		    "\"prompt_eval_count\":26", "\"eval_count\":2," } },
	};
	struct rig r;
	struct truths t;
	(void)state;
	rig_init(&r);
	r.opts.reasoning = 1;
	rig_start(&r);
	assert_rows(&r, rows, COUNT(rows));
	rig_stop(&r);
	t = truths_read(r.truth);
	assert_int_equal(t.n, COUNT(rows));
	/* Events that carry tokens, and nothing else, are in the truth file. */
	for (size_t i = 0; i < t.n; i++) {
		int64_t tokens = i < 2 ? 3 : 2;

		assert_int_equal(json_get(t.row[i], "send_ns")->count, tokens);
		assert_int_equal(json_int(json_get(t.row[i], "output_tokens"), -1), tokens);
		assert_string_equal(json_text(json_get(t.row[i], "finish"), STR("?")).p, "length");
	}
	arena_release(&t.arena);
	rig_release(&r);
}

static void test_whole_answers(void **state)
{
	static const struct api_row rows[] = {
		{ "/v1/responses", "{\"input\":\"hi\",\"max_output_tokens\":3}",
		  { "{\"id\":\"resp_q\",\"object\":\"response\"", "\"status\":\"incomplete\"",
		    "{\"type\":\"reasoning_text\",\"text\":\" ", "{\"type\":\"output_text\","
		    "\"text\":\" ", "\"output_tokens\":3" } },
		{ "/v1/responses", "{\"input\":\"hi\"}",
		  { "\"status\":\"completed\"", "\"output_tokens\":256" } },
		{ "/v1/messages", "{" CHAT_BODY ",\"max_tokens\":3}",
		  { "{\"id\":\"msg_q\",\"type\":\"message\"",
		    "{\"type\":\"thinking\",\"thinking\":\" ",
		    "{\"type\":\"text\",\"text\":\" ", "\"stop_reason\":\"max_tokens\"",
		    "\"cache_read_input_tokens\":16,\"output_tokens\":3" } },
		{ "/generate", "{\"inputs\":\"one two\",\"parameters\":{\"max_new_tokens\":2}}",
		  { "{\"generated_text\":\" ", "\"generated_tokens\":2" } },
		{ "/generate", "{\"input_ids\":[5,6,7],\"sampling_params\":{\"max_new_tokens\":2}}",
		  { "{\"text\":\" ", "\"prompt_tokens\":3,\"reasoning_tokens\":0,\"completion_tokens\":2" } },
		{ "/generate", "{\"prompt\":\"one \\\"two\",\"max_tokens\":2}",
		  { "{\"text\":[\"one \\\"two ", "\"]}" } },
		{ "/completion", "{\"prompt\":\"one two\",\"n_predict\":2}",
		  { "\"content\":\" ", "\"stop\":true", "\"tokens_predicted\":2" } },
		{ "/api/generate", "{\"prompt\":\"a\",\"stream\":false,\"options\":"
		  "{\"num_predict\":3}}", { "\"response\":\" ", "\"thinking\":\" ",
		  "\"done\":true", "\"eval_count\":3" } },
		{ "/api/chat", "{" CHAT_BODY ",\"stream\":false,\"options\":{\"num_predict\":3}}",
		  { "\"message\":{", "\"content\":\" ", "\"done\":true" } },
	};
	struct rig r;
	(void)state;
	rig_init(&r);
	r.opts.reasoning = 1;
	rig_start(&r);
	assert_rows(&r, rows, COUNT(rows));
	rig_stop(&r);
	rig_release(&r);
}

/* ---- pooling ---- */

static void test_pooling(void **state)
{
	static const struct api_row rows[] = {
		{ "/v1/embeddings", "{\"input\":\"one two\"}",
		  { "{\"id\":\"embd-q\",\"object\":\"list\"",
		    "\"model\":\"sim\",\"data\":[{\"index\":0,\"object\":\"embedding\","
		    "\"embedding\":[", "]}],\"usage\":{\"prompt_tokens\":4,\"total_tokens\":4,"
		    "\"completion_tokens\":0,\"prompt_tokens_details\":null}}" } },
		{ "/embeddings", "{\"input\":[\"one two\",\"abc\"],\"dimensions\":1}",
		  { "\"index\":0", "\"index\":1", "\"prompt_tokens\":7" } },
		{ "/v1/embeddings", "{\"input\":[1,2,3]}", { "\"prompt_tokens\":3" } },
		{ "/v1/embeddings", "{\"input\":[[1,2,3],[4]]}",
		  { "\"index\":1", "\"prompt_tokens\":4" } },
		{ "/v1/embeddings", "{" CHAT_BODY "}", { "\"prompt_tokens\":26" } },
		{ "/embeddings",
		  "{\"input\":\"data:image/png;base64,AAAA\",\"modality\":\"image\"}",
		  { "\"prompt_tokens\":1," } },
		{ "/pooling", "{\"input\":\"one two\"}",
		  { "\"object\":\"pooling\",\"data\":[", "\"prompt_tokens\":4" } },
		{ "/rerank", "{\"query\":\"abc\",\"documents\":[\"one two\",\"x\"]}",
		  { "{\"id\":\"rerank-q\",\"model\":\"sim\",\"usage\":{\"prompt_tokens\":11,"
		    "\"total_tokens\":11},\"results\":[{\"index\":", "\"relevance_score\":",
		    "\"index\":", "\"relevance_score\":" } },
		{ "/v2/rerank", "{\"query\":\"abc\",\"documents\":\"one two\"}",
		  { "\"prompt_tokens\":7,", "\"document\":{\"text\":\"one two\"}" } },
		{ "/score", "{\"text_1\":\"abc\",\"text_2\":[\"one two\",\"x\"]}",
		  { "\"object\":\"score\"", "\"index\":1", "\"prompt_tokens\":11" } },
		{ "/score", "{\"queries\":[\"a\",\"b\"],\"documents\":[\"c\",\"d\"]}",
		  { "\"index\":1", "\"prompt_tokens\":4" } },
	};
	static const struct { const char *path, *body, *why; } wrong[] = {
		{ "/v1/embeddings", "{", "not a JSON object" },
		{ "/v1/embeddings", "{}", "input is missing" },
		{ "/v1/embeddings", "{\"input\":\"\"}", "an input is empty" },
		{ "/v1/embeddings", "{\"input\":7}", "a text, token ids" },
		{ "/v1/embeddings", "{\"input\":\"a\",\"dimensions\":0}", "dimensions must be" },
		{ "/v1/embeddings", "{\"input\":\"a\",\"encoding_format\":\"x\"}",
		  "encoding_format must be" },
		{ "/rerank", "{\"query\":\"a\"}", "documents is missing" },
		{ "/rerank", "{\"query\":\"a\",\"documents\":[]}", "documents must not be empty" },
		{ "/score", "{\"text_1\":[\"a\",\"b\"],\"text_2\":\"c\"}", "must be as many" },
	};
	struct rig r;
	struct truths t;
	(void)state;
	rig_init(&r);
	rig_start(&r);
	assert_rows(&r, rows, COUNT(rows));
	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct reply reply = ask(&r, "POST", wrong[i].path, "", wrong[i].body);

		if (reply.status != 400 || !strstr(reply.body.data, wrong[i].why))
			fail_msg("%s: %u %s", wrong[i].body, reply.status, reply.body.data);
		reply_release(&reply);
	}
	rig_stop(&r);
	t = truths_read(r.truth);
	assert_int_equal(t.n, COUNT(rows) + COUNT(wrong));
	for (size_t i = 0; i < t.n; i++) {
		bool is_well = i < COUNT(rows);

		assert_int_equal(json_get(t.row[i], "send_ns")->count, is_well ? 1 : 0);
		assert_int_equal(json_int(json_get(t.row[i], "output_tokens"), -1), 0);
		assert_int_equal(json_int(json_get(t.row[i], "status"), -1), is_well ? 200 : 400);
	}
	arena_release(&t.arena);
	rig_release(&r);
}

/* The same numbers in every form that encoding_format names. */
static void test_embedding_formats(void **state)
{
	static const char *const format[] = { "float", "base64", "bytes", "bytes_only" };
	struct arena arena = { 0 };
	struct json_value *v;
	struct buf wanted = { 0 };
	struct rig r;
	(void)state;
	rig_init(&r);
	rig_start(&r);
	for (size_t i = 0; i < COUNT(format); i++) {
		struct client c = client_open(&r);
		struct reply reply;
		struct buf got = { 0 };
		char body[128], *head;

		snprintf(body, sizeof(body), "{\"input\":[\"one\",\"two\"],\"dimensions\":3,"
			 "\"encoding_format\":\"%s\"}", format[i]);
		client_ask(&c, "POST", "/v1/embeddings", "", body);
		client_wait(c.fd, POLLIN);
		reply = (struct reply){ 0 };
		assert_true(client_more(&c, &reply));
		head = strdup(c.in.data);
		reply = client_read(&c);
		assert_int_equal(reply.status, 200);
		if (i < 2)
			assert_int_equal(json_parse(&arena, buf_str(&reply.body), &v, NULL), 0);
		for (size_t k = 0; i < 2 && k < 2; k++) {
			struct json_value *e = json_get(&json_get(v, "data")->item[k], "embedding");

			if (i == 1)
				assert_true(base64_decode(json_text(e, STR("?")), &got));
			for (size_t j = 0; i == 0 && j < 3; j++) {
				float f = (float)json_real(&e->item[j], 9);

				buf_add(&got, &f, sizeof(f));
			}
		}
		if (i >= 2)
			buf_add_str(&got, buf_str(&reply.body));
		if (i == 0)
			buf_add_str(&wanted, buf_str(&got));
		assert_int_equal(got.len, 2 * 3 * sizeof(float));
		assert_memory_equal(got.data, wanted.data, wanted.len);
		assert_true((strstr(head, "\r\nmetadata: {") != NULL) == (i == 2));
		if (i == 2)
			assert_non_null(strstr(head, "\"start\":12,\"end\":24,\"shape\":[3]}],"
					       "\"usage\":{\"prompt_tokens\":6,"));
		free(head);
		buf_release(&got);
		reply_release(&reply);
		client_close(&c);
	}
	arena_release(&arena);
	buf_release(&wanted);
	rig_stop(&r);
	rig_release(&r);
}

/* ---- forms ---- */

#define PART(name, value) "--XX\r\nContent-Disposition: form-data; name=\"" name "\"\r\n\r\n" \
	value "\r\n"
#define SOUND "--XX\r\nContent-Disposition: form-data; name=\"file\"; filename=\"audio.wav\"\r\n" \
	"Content-Type: audio/wav\r\n\r\nRIFF\xff\xfe\r\n"
#define FORM "Content-Type: multipart/form-data; boundary=XX\r\nX-Odd: A b\r\n"

static void test_audio(void **state)
{
	struct rig r;
	struct reply reply;
	struct answer a;
	struct truths t;
	struct json_value *parts;
	(void)state;
	rig_init(&r);
	rig_start(&r);
	reply = ask(&r, "POST", "/v1/audio/transcriptions", FORM,
		    SOUND PART("model", "sim") PART("max_completion_tokens", "3")
		    PART("stream", "True") PART("stream_include_usage", "True")
		    PART("stream_continuous_usage_stats", "True") "--XX--\r\n");
	assert_int_equal(reply.status, 200);
	a = answer_read(&reply);
	assert_int_equal(a.events, 3);
	assert_int_equal(a.output_tokens, 3);
	assert_int_equal(a.text.len, 12);
	assert_true(a.is_done);
	assert_non_null(strstr(reply.body.data, "\"object\":\"transcription.chunk\""));
	answer_release(&a);
	reply_release(&reply);
	reply = ask(&r, "POST", "/v1/audio/translations", FORM,
		    SOUND PART("max_completion_tokens", "2") "--XX--\r\n");
	assert_int_equal(reply.status, 200);
	assert_true(str_starts(buf_str(&reply.body), STR("{\"text\":\" ")));
	reply_release(&reply);
	reply = ask(&r, "POST", "/v1/audio/transcriptions", "", "{}");
	assert_int_equal(reply.status, 400);
	reply_release(&reply);
	reply = ask(&r, "POST", "/v1/audio/transcriptions", FORM, PART("model", "sim") "--XX--");
	assert_int_equal(reply.status, 400);
	assert_non_null(strstr(reply.body.data, "file is missing"));
	reply_release(&reply);
	rig_stop(&r);
	t = truths_read(r.requests);
	parts = json_get(t.row[0], "parts");
	assert_int_equal(parts->count, 6);
	assert_int_equal(json_get(t.row[0], "body")->kind, JSON_NULL);
	assert_true(json_text(json_get(t.row[0], "body_base64"), STR("")).n > 300);
	assert_string_equal(json_text(json_get(&parts->item[0], "filename"), STR("?")).p,
			    "audio.wav");
	assert_string_equal(json_text(json_get(&parts->item[0], "content_type"), STR("?")).p,
			    "audio/wav");
	assert_string_equal(json_text(json_get(&parts->item[0], "body_base64"), STR("?")).p,
			    "UklGRv/+");
	assert_string_equal(json_text(json_get(&parts->item[1], "name"), STR("?")).p, "model");
	assert_string_equal(json_text(json_get(&parts->item[1], "body"), STR("?")).p, "sim");
	assert_string_equal(json_text(json_get(json_get(t.row[0], "headers"), "x-odd"),
				      STR("?")).p, "A b");
	assert_null(json_get(t.row[2], "parts"));
	assert_string_equal(json_text(json_get(t.row[2], "body"), STR("?")).p, "{}");
	arena_release(&t.arena);
	rig_release(&r);
}

/* ---- faults of whole answers ---- */

struct fault_row {
	const char *fault, *path, *body;
	unsigned status;
	bool is_cut, is_reset, is_json;
	const char *has;
};

static void fault_check(const struct fault_row *row)
{
	struct arena arena = { 0 };
	struct json_value *v;
	struct rig r;
	struct reply reply;
	int64_t recv, end;
	struct truths t;

	rig_init(&r);
	r.opts.faults = &row->fault;
	r.opts.fault_count = 1;
	rig_start(&r);
	reply = ask(&r, "POST", row->path, "", row->body);
	if (reply.status != row->status || reply.is_cut != row->is_cut ||
	    reply.is_reset != row->is_reset)
		fail_msg("%s %s: %u cut %d reset %d", row->fault, row->path, reply.status,
			 reply.is_cut, reply.is_reset);
	if (!row->is_cut)
		assert_int_equal(json_parse(&arena, buf_str(&reply.body), &v, NULL),
				 row->is_json ? 0 : -1);
	if (row->has)
		assert_non_null(strstr(reply.body.data, row->has));
	rig_stop(&r);
	t = truths_read(r.truth);
	assert_int_equal(t.n, 1);
	assert_string_equal(json_text(json_get(t.row[0], "finish"), STR("?")).p,
			    row->status != 200 || row->is_cut ? "error" :
			    strcmp(row->path, "/v1/embeddings") == 0 ? "stop" : "length");
	if (strncmp(row->fault, "slow", 4) == 0) {
		recv = json_int(json_get(t.row[0], "recv_ns"), 0);
		end = at(json_get(t.row[0], "send_ns"), 0);
		assert_true(end - recv >= 80 * MS);
	}
	arena_release(&t.arena);
	arena_release(&arena);
	reply_release(&reply);
	rig_release(&r);
}

static void test_faults_of_whole_answers(void **state)
{
	static const char embed[] = "/v1/embeddings", input[] = "{\"input\":\"one two\"}";
	static const char more[] = "/completion", prompt[] = "{\"prompt\":\"a\",\"n_predict\":4}";
	const struct fault_row rows[] = {
		{ "status=503", embed, input, 503, false, false, true, "on purpose" },
		{ "reset@1", embed, input, 0, true, true, false, NULL },
		{ "close@1", embed, input, 0, true, false, false, NULL },
		{ "close@2", embed, input, 200, true, false, false, "{\"id\"" },
		{ "close@4", embed, input, 200, true, false, false, "embedding" },
		{ "close@5", embed, input, 200, false, false, true, "usage" },
		{ "malformed@1", embed, input, 200, false, false, false, NULL },
		{ "error-event@1", embed, input, 200, false, false, true, "{\"error\":{" },
		{ "slow-headers=80ms", embed, input, 200, false, false, true, "usage" },
		{ "slow-body=80ms", embed, input, 200, false, false, true, "usage" },
		{ "split", embed, input, 200, false, false, true, "usage" },
		{ "reset@3", more, prompt, 0, true, true, false, NULL },
		{ "close@3", more, prompt, 0, true, false, false, NULL },
		{ "malformed@4", more, prompt, 200, false, false, false, NULL },
		{ "malformed@5", more, prompt, 200, false, false, true, NULL },
		{ "slow-headers=80ms", more, prompt, 200, false, false, true, "timings" },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		fault_check(&rows[i]);
}

/* The head of a stream takes its time; no event overtakes it, and all are there. */
static void test_slow_heads_of_streams(void **state)
{
	static const char *const fault = "slow-headers=800ms";
	struct rig r;
	struct client c;
	struct reply reply = { 0 };
	struct answer a;
	struct truths t;
	int reads = 0;
	(void)state;
	rig_init(&r);
	r.opts.faults = &fault;
	r.opts.fault_count = 1;
	r.opts.ttft_ms = "0";
	rig_start(&r);
	c = client_open(&r);
	client_ask(&c, "POST", "/v1/completions", "", ASK(3, ""));
	while (!strstr(c.in.data ? c.in.data : "", "\r\n\r\n")) {
		assert_true(client_more(&c, &reply));
		reads++;
	}
	assert_true(reads > 1);
	reply = client_read(&c);
	a = answer_read(&reply);
	assert_int_equal(a.events, 3);
	assert_true(a.is_done);
	client_close(&c);
	/* A client that does not wait for the end of the head causes no leak. */
	c = client_open(&r);
	client_ask(&c, "POST", "/v1/completions", "", ASK(3, ""));
	client_wait(c.fd, POLLIN);
	client_close(&c);
	usleep(50000);
	rig_stop(&r);
	t = truths_read(r.truth);
	assert_int_equal(t.n, 2);
	assert_true(at(json_get(t.row[0], "send_ns"), 0) -
		    json_int(json_get(t.row[0], "recv_ns"), 0) >= 800 * MS);
	assert_string_equal(json_text(json_get(t.row[1], "finish"), STR("?")).p, "abort");
	arena_release(&t.arena);
	answer_release(&a);
	reply_release(&reply);
	rig_release(&r);
}

/* ---- counters ---- */

/* The value of the sample that begins with name; -1: there is none. */
static double metric(const struct rig *r, const char *name)
{
	struct reply reply = ask(r, "GET", "/metrics", "", "");
	struct str rest = buf_str(&reply.body), line;
	double v = -1;

	while ((line = str_cut(&rest, '\n')).p && rest.p) {
		if (str_starts(line, str_of(name)) && line.p[0] != '#') {
			while (line.n && line.p[line.n - 1] != ' ')
				line.n--;
			v = strtod(line.p + line.n, NULL);
			break;
		}
		if (rest.n == 0)
			break;
	}
	reply_release(&reply);
	return v;
}

static void test_prefix_cache_counts(void **state)
{
	static const struct { const char *path; double queries, hits; int64_t cached; } rows[] = {
		{ "/v1/completions", 33, 0, 0 }, { "/v1/completions", 66, 32, 32 },
		{ NULL, 66, 32, 0 }, { "/v1/completions", 99, 32, 0 },
	};
	struct rig r;
	struct truths t;
	size_t n = 0;
	(void)state;
	rig_init(&r);
	r.opts.is_cached_told = true;
	rig_start(&r);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct reply reply = ask(&r, "POST", rows[i].path ? rows[i].path :
					 "/reset_prefix_cache", "", rows[i].path ?
					 "{\"prompt\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,"
					 "18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33],"
					 "\"max_tokens\":2}" : "");
		char usage[64];

		assert_int_equal(reply.status, 200);
		snprintf(usage, sizeof(usage), "\"prompt_tokens_details\":{\"cached_tokens\":%d}",
			 (int)rows[i].cached);
		if (rows[i].path && !strstr(reply.body.data, usage))
			fail_msg("row %zu: no %s in %s", i, usage, reply.body.data);
		assert_true(metric(&r, "vllm:prefix_cache_queries_total") == rows[i].queries);
		assert_true(metric(&r, "vllm:prefix_cache_hits_total") == rows[i].hits);
		reply_release(&reply);
	}
	rig_stop(&r);
	t = truths_read(r.truth);
	for (size_t i = 0; i < COUNT(rows); i++)
		if (rows[i].path)
			assert_int_equal(json_int(json_get(t.row[n++], "cached_tokens"), -1),
					 rows[i].cached);
	assert_int_equal(n, t.n);
	arena_release(&t.arena);
	rig_release(&r);
}

static void test_engine_skips_what_is_cached(void **state)
{
	struct rig r;
	struct truths t;
	struct buf body = { 0 };
	int64_t took[2];
	(void)state;
	rig_init(&r);
	r.opts.ttft_ms = r.opts.itl_ms = NULL;
	r.opts.cost = (struct engine_cost){ .prefill_us_per_token = 1000 };
	rig_start(&r);
	buf_add_text(&body, "{\"max_tokens\":1,\"prompt\":[1");
	for (int i = 1; i < 200; i++)
		buf_printf(&body, ",%d", i);
	buf_add_text(&body, "]}");
	for (int i = 0; i < 2; i++) {
		struct reply reply = ask(&r, "POST", "/v1/completions", "", body.data);

		assert_int_equal(reply.status, 200);
		reply_release(&reply);
	}
	rig_stop(&r);
	t = truths_read(r.truth);
	for (size_t i = 0; i < 2; i++)
		took[i] = at(json_get(t.row[i], "send_ns"), 0) -
			  json_int(json_get(t.row[i], "recv_ns"), 0);
	assert_true(took[0] >= 200 * MS && took[1] >= 8 * MS);
	assert_int_equal(json_int(json_get(t.row[1], "cached_tokens"), -1), 192);
	assert_true(took[1] < took[0]);
	arena_release(&t.arena);
	buf_release(&body);
	rig_release(&r);
}

static void test_drafts_add_up(void **state)
{
	struct rig r;
	struct reply reply;
	struct answer a;
	struct truths t;
	struct json_value *sent;
	double drafts, accepted, at_pos[3], tokens = 0;
	(void)state;
	for (int engine = 0; engine < 2; engine++) {
		rig_init(&r);
		if (engine)
			r.opts.ttft_ms = r.opts.itl_ms = NULL;
		r.opts.cost = (struct engine_cost){ .decode_base_us = 10 };
		r.opts.spec_tokens = 3;
		r.opts.spec_acceptance = 0.6;
		rig_start(&r);
		reply = ask(&r, "POST", "/v1/completions", "", ASK(200, ""));
		a = answer_read(&reply);
		assert_int_equal(a.output_tokens, 200);
		assert_int_equal(a.text.len, 800);
		drafts = metric(&r, "vllm:spec_decode_num_drafts_total");
		accepted = metric(&r, "vllm:spec_decode_num_accepted_tokens_total");
		assert_true(metric(&r, "vllm:spec_decode_num_draft_tokens_total") == 3 * drafts);
		for (int i = 0; i < 3; i++) {
			char name[120];

			snprintf(name, sizeof(name), "vllm:spec_decode_num_accepted_tokens_per_pos_"
				 "total{engine=\"0\",model_name=\"sim\",position=\"%d\"}", i);
			at_pos[i] = metric(&r, name);
		}
		/* The first token has no draft; every draft gives what is accepted and one more. */
		assert_true(a.events == 1 + drafts);
		assert_true(1 + drafts + accepted == 200);
		assert_true(at_pos[0] + at_pos[1] + at_pos[2] == accepted);
		assert_true(at_pos[0] > at_pos[1] && at_pos[1] > at_pos[2] && at_pos[2] > 0);
		assert_true(at_pos[0] > 0.4 * drafts && at_pos[0] < 0.8 * drafts);
		rig_stop(&r);
		t = truths_read(r.truth);
		sent = json_get(t.row[0], "tokens");
		tokens = 0;
		for (size_t i = 0; i < sent->count; i++)
			tokens += (double)at(sent, i);
		assert_true(tokens == 200 && at(sent, 0) == 1);
		arena_release(&t.arena);
		answer_release(&a);
		reply_release(&reply);
		rig_release(&r);
	}
}

static void test_diffusion_adds_up(void **state)
{
	struct rig r;
	struct reply reply;
	struct answer a;
	(void)state;
	rig_init(&r);
	r.opts.diffusion_block = 8;
	r.opts.diffusion_steps = 5;
	rig_start(&r);
	assert_true(metric(&r, "vllm:spec_decode") == -1);
	reply = ask(&r, "POST", "/v1/completions", "", ASK(20, ""));
	a = answer_read(&reply);
	assert_int_equal(a.events, 3);
	assert_int_equal(a.output_tokens, 20);
	assert_true(metric(&r, "vllm:diffusion_num_denoising_steps_total") == 15);
	assert_true(metric(&r, "vllm:diffusion_num_canvas_positions_total") == 120);
	assert_true(metric(&r, "vllm:diffusion_num_committed_tokens_total") == 20);
	answer_release(&a);
	reply_release(&reply);
	rig_stop(&r);
	rig_release(&r);
}

/* ---- controls ---- */

static void test_controls(void **state)
{
	static const struct { const char *method, *path; unsigned status; const char *body; }
	rows[] = {
		{ "POST", "/stop_profile", 500, "no profile" },
		{ "POST", "/start_profile", 200, NULL }, { "POST", "/stop_profile", 200, NULL },
		{ "GET", "/load", 200, "{\"server_load\":0}" },
		{ "GET", "/is_sleeping", 200, "{\"is_sleeping\":false}" },
		{ "POST", "/sleep?level=1", 200, NULL },
		{ "GET", "/is_sleeping", 200, "{\"is_sleeping\":true}" },
	};
	struct rig r;
	struct client c;
	struct reply reply;
	struct pollfd quiet;
	(void)state;
	rig_init(&r);
	r.opts.ttft_ms = r.opts.itl_ms = NULL;
	r.opts.cost = (struct engine_cost){ .decode_base_us = 10 };
	rig_start(&r);
	for (size_t i = 0; i < COUNT(rows); i++) {
		reply = ask(&r, rows[i].method, rows[i].path, "", "");
		assert_int_equal(reply.status, rows[i].status);
		if (rows[i].body)
			assert_non_null(strstr(reply.body.data, rows[i].body));
		reply_release(&reply);
	}
	/* Asleep, the engine does not answer; awake, it does. */
	c = client_open(&r);
	client_ask(&c, "POST", "/completion", "", "{\"prompt\":\"a\",\"n_predict\":2}");
	quiet = (struct pollfd){ .fd = c.fd, .events = POLLIN };
	assert_int_equal(poll(&quiet, 1, 50), 0);
	reply = ask(&r, "GET", "/load", "", "");
	assert_string_equal(reply.body.data, "{\"server_load\":1}");
	reply_release(&reply);
	reply = ask(&r, "POST", "/wake_up", "", "");
	reply_release(&reply);
	reply = client_read(&c);
	assert_int_equal(reply.status, 200);
	reply_release(&reply);
	client_close(&c);
	rig_stop(&r);
	rig_release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_streams),
		cmocka_unit_test(test_whole_answers),
		cmocka_unit_test(test_pooling),
		cmocka_unit_test(test_embedding_formats),
		cmocka_unit_test(test_audio),
		cmocka_unit_test(test_faults_of_whole_answers),
		cmocka_unit_test(test_slow_heads_of_streams),
		cmocka_unit_test(test_prefix_cache_counts),
		cmocka_unit_test(test_engine_skips_what_is_cached),
		cmocka_unit_test(test_drafts_add_up),
		cmocka_unit_test(test_diffusion_adds_up),
		cmocka_unit_test(test_controls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
