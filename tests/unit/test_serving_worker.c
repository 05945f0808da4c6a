/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serving_worker.c - the parts of the simulated worker that are arithmetic: batches in
 * virtual time, what media cost, prompts as they are handed over, mishaps by name, frames.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/codec.h"
#include "core/base/limits.h"
#include "input/media/image.h"
#include "sim/model/encoder.h"
#include "sim/model/fault.h"
#include "sim/serving/batch.h"
#include "sim/serving/worker_internal.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))
#define US 1000

/* A step costs 100 us with prompts, 10 us a token of them, 1000 us with decoding, 5 us each. */
static struct sim_opts opts(void)
{
	struct sim_opts o = sim_defaults();

	o.cost = (struct engine_cost){ .prefill_base_us = 100, .prefill_us_per_token = 10,
				       .decode_base_us = 1000, .decode_us_per_seq = 5 };
	o.is_prefix_cached = false;
	return o;
}

static struct batch_sum run(const struct sim_opts *o, struct batch_item *item, size_t n,
			    uint32_t sequences)
{
	struct batch_how how = { .sequences = sequences };
	struct batch_engine b;
	struct batch_sum sum = { 0 };

	batch_engine_init(&b, o);
	batch_run(&b, item, n, &how, &sum);
	batch_engine_release(&b);
	return sum;
}

static void test_one(void **state)
{
	struct sim_opts o = opts();
	struct batch_item item = { .prompt = 32, .output = 4, .ready_ns = 700 };
	struct batch_sum sum = run(&o, &item, 1, 1);

	(void)state;
	assert_int_equal(item.got, 4);
	assert_int_equal(item.first_ns, 700 + (100 + 320) * US);
	assert_int_equal(item.last_ns, item.first_ns + 3 * 1005 * US);
	assert_int_equal(sum.end_ns, item.last_ns);
	assert_int_equal(sum.steps, 4);
	assert_int_equal(sum.steps_ns, sum.end_ns - 700);
}

static void test_sequences(void **state)
{
	struct sim_opts o = opts();
	struct batch_item item[2] = { { .prompt = 8, .output = 3 }, { .prompt = 8, .output = 1 } };
	struct batch_sum sum = run(&o, item, 2, 2);

	(void)state;
	assert_int_equal(item[0].got, 6);
	assert_int_equal(item[1].got, 2);
	assert_int_equal(sum.steps, 3);
	assert_int_equal(sum.end_ns, (100 + 4 * 80) * US + 2 * 1010 * US);
	assert_int_equal(item[1].last_ns, (100 + 4 * 80) * US);
}

/* One at a time: whether the engine or the question says so. */
static void test_limits(void **state)
{
	struct sim_opts o = opts();
	struct batch_item item[3] = { { .prompt = 10, .output = 2 }, { .prompt = 10, .output = 2 },
				      { .prompt = 10, .output = 2 } };
	struct batch_how how = { .sequences = 1, .running_max = 1 };
	struct batch_engine b;
	struct batch_sum sum = { 0 };
	int64_t alone = 3 * (200 + 1005) * US;

	(void)state;
	batch_engine_init(&b, &o);
	batch_run(&b, item, 3, &how, &sum);
	assert_int_equal(sum.end_ns, alone);
	how.running_max = 0;
	sum = (struct batch_sum){ 0 };
	batch_run(&b, item, 3, &how, &sum);
	assert_int_equal(sum.end_ns, (100 + 300 + 1015) * US);
	batch_engine_release(&b);
	o.max_num_seqs = 1;
	assert_int_equal(run(&o, item, 3, 1).end_ns, alone);
}

/* Those that come later find the engine at work. */
static void test_arrivals(void **state)
{
	struct sim_opts o = opts();
	struct batch_item item[2] = { { .prompt = 10, .output = 1 },
				      { .prompt = 10, .output = 1, .ready_ns = 50 * US } };
	struct batch_sum sum = run(&o, item, 2, 1);

	(void)state;
	assert_int_equal(sum.steps, 2);
	assert_int_equal(item[0].last_ns, 200 * US);
	assert_int_equal(item[1].last_ns, 400 * US);
	item[0].ready_ns = 50 * US;
	sum = run(&o, item, 2, 1);
	assert_int_equal(sum.steps, 1);
	assert_int_equal(sum.end_ns, (50 + 300) * US);
	item[0].ready_ns = 0;
	item[1].ready_ns = 1000 * US; /* the engine slept meanwhile */
	assert_int_equal(run(&o, item, 2, 1).end_ns, 1200 * US);
}

/* Two engines halve the work, and their steps do not wait for each other. */
static void test_lanes(void **state)
{
	struct sim_opts o = opts();
	struct batch_item item[4];
	struct batch_sum sum;

	(void)state;
	for (size_t i = 0; i < 4; i++)
		item[i] = (struct batch_item){ .prompt = 10, .output = i < 2 ? 1 : 3 };
	o.engines = 2;
	sum = run(&o, item, 4, 1);
	assert_int_equal(sum.end_ns, (100 + 200 + 2 * 1005) * US);
	assert_int_equal(sum.steps, 6);
}

static void test_known_prompts(void **state)
{
	struct sim_opts o = opts();
	struct batch_how how = { .sequences = 1 };
	struct batch_item item = { .prompt = 64, .output = 1 };
	struct batch_engine b;
	struct batch_sum sum = { 0 };
	uint32_t id[64];

	(void)state;
	for (uint32_t i = 0; i < 64; i++)
		id[i] = i;
	item.id = id;
	o.is_prefix_cached = true;
	batch_engine_init(&b, &o);
	batch_run(&b, &item, 1, &how, &sum);
	assert_int_equal(item.known, 0);
	assert_int_equal(sum.end_ns, 740 * US);
	sum = (struct batch_sum){ 0 };
	batch_run(&b, &item, 1, &how, &sum);
	assert_int_equal(item.known, 48); /* its last token is computed, and with it its last
					   * block */
	assert_int_equal(sum.end_ns, (100 + 160) * US);
	batch_engine_release(&b);
}

static void test_preemption(void **state)
{
	struct sim_opts o = opts();
	struct batch_item item[2] = { { .prompt = 64, .output = 64 },
				      { .prompt = 64, .output = 64 } };
	struct batch_sum roomy = run(&o, item, 2, 1), tight;

	(void)state;
	o.kv_cache_tokens = 160;
	tight = run(&o, item, 2, 1);
	assert_int_equal(roomy.preempted, 0);
	assert_true(tight.preempted > 0 && tight.end_ns > roomy.end_ns);
	assert_int_equal(item[0].got + item[1].got, 128);
}

/* Of three drafts all, or none, are accepted. */
static void test_drafts(void **state)
{
	struct sim_opts o = opts();
	struct batch_item item = { .prompt = 10, .output = 10 };

	(void)state;
	o.spec_tokens = 3;
	o.spec_acceptance = 1;
	assert_int_equal(run(&o, &item, 1, 1).steps, 4); /* 1 + 4 + 4 + 1 */
	assert_int_equal(item.got, 10);
	o.spec_acceptance = 0;
	assert_int_equal(run(&o, &item, 1, 1).steps, 10);
	o = opts();
	o.diffusion_block = 5;
	o.diffusion_steps = 3;
	assert_int_equal(run(&o, &item, 1, 1).steps, 6);
	assert_int_equal(item.got, 10);
}

/* The encoder's time is in the step that admits its prompt, once for all sequences. */
static void test_encoding(void **state)
{
	struct sim_opts o = opts();
	struct batch_item item[2] = { { .prompt = 10, .output = 2, .encode_ns = 7000 * US },
				      { .prompt = 10, .output = 2 } };
	struct batch_sum sum;

	(void)state;
	sum = run(&o, item, 2, 3);
	assert_int_equal(sum.encode_ns, 7000 * US);
	assert_int_equal(item[1].first_ns, (7000 + 100 + 600) * US);
	assert_int_equal(sum.end_ns, item[1].first_ns + 1030 * US);
}

static void wait_count(void *self, int64_t ns, size_t done)
{
	int64_t *seen = self;

	assert_true(ns > seen[1]);
	seen[0]++;
	seen[1] = ns;
	seen[2] = (int64_t)done;
}

static void test_hook(void **state)
{
	struct sim_opts o = opts();
	int64_t seen[3] = { 0 };
	struct batch_item item[2] = { { .prompt = 10, .output = 2 },
				      { .prompt = 10, .output = 5 } };
	struct batch_how how = { .sequences = 1, .self = seen, .wait = wait_count };
	struct batch_engine b;
	struct batch_sum sum = { 0 };

	(void)state;
	batch_engine_init(&b, &o);
	batch_run(&b, item, 2, &how, &sum);
	batch_engine_release(&b);
	assert_int_equal(seen[0], sum.steps);
	assert_int_equal(seen[1], sum.end_ns);
	assert_int_equal(seen[2], 1); /* the last one ends with this step */
}

/* ---- media ---- */

static void png_part(struct buf *out, uint32_t side, uint8_t shade)
{
	struct image m = { side, side, malloc((size_t)side * side * 3) };
	struct buf png = { 0 };
	struct err e = { 0 };

	memset(m.rgb, shade, (size_t)side * side * 3);
	assert_int_equal(image_png(&m, &png, &e), 0);
	buf_add_text(out, "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64,");
	base64_encode(buf_str(&png), out);
	buf_add_text(out, "\"}}");
	buf_release(&png);
	image_release(&m);
}

static struct json_slice slice(const struct buf *b)
{
	struct json_scan s = { .text = buf_str(b) };
	struct json_slice v;

	assert_int_equal(json_next(&s, &v, NULL), 0);
	return v;
}

static void test_media(void **state)
{
	struct encoder c = { 0 };
	struct media_item item[2];
	struct media_times first, second, small;
	struct buf part = { 0 }, other = { 0 };

	(void)state;
	png_part(&part, 560, 9);
	png_part(&other, 280, 9);
	assert_true(media_read(slice(&part), &item[0]));
	assert_true(media_read(slice(&other), &item[1]));
	assert_int_equal(item[0].tokens, 400);
	assert_int_equal(item[1].tokens, 100);
	assert_true(item[0].key != item[1].key);
	first = encoder_run(&c, &item[0], 1, 20);
	second = encoder_run(&c, &item[0], 1, 20);
	small = encoder_run(&c, &item[1], 1, 20);
	assert_true(first.processor > small.processor && small.processor > 0);
	assert_true(first.forward > small.forward && small.forward > 0);
	assert_true(second.processor < 1e-12 && second.forward < 1e-12);
	assert_int_equal(first.calls, 1);
	assert_int_equal(second.calls, 0);
	assert_int_equal(second.known, 1);
	assert_true(fabs(first.hash + first.missing + first.processor + first.merge +
			 first.updates - first.total) < 1e-12);
	c.is_uncached = true;
	assert_true(encoder_run(&c, &item[0], 1, 20).processor > 0);
	assert_true(encoder_run(&c, item, 0, 20).total < 1e-12);
	encoder_release(&c);
	buf_release(&part);
	buf_release(&other);
}

static void test_parts(void **state)
{
	static const struct { const char *json; bool is_media; } rows[] = {
		{ "{\"type\":\"text\",\"text\":\"a\"}", false },
		{ "{\"type\":\"image_url\",\"image_url\":{}}", false },
		{ "{\"type\":\"image_url\",\"image_url\":7}", false },
		{ "\"image_url\"", false },
		{ "{\"type\":\"image_url\",\"image_url\":{\"url\":\"file:///a.png\"}}", true },
		{ "{\"type\":\"image_url\",\"image_url\":\"http://x/a.png\"}", true },
		{ "{\"type\":\"image_url\",\"image_url\":{\"url\":\"\"}}", true },
		{ "{\"type\":\"input_audio\",\"input_audio\":{\"data\":\"AAAA\",\"format\":\"wav\"}}", true },
		{ "{\"type\":\"video_url\",\"video_url\":{\"url\":\"data:video/mp4;base64,AAAA\"}}", true },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct buf text = { 0 };
		struct media_item item = { 0 };

		buf_add_text(&text, rows[i].json);
		assert_int_equal(media_read(slice(&text), &item), rows[i].is_media);
		if (rows[i].is_media)
			assert_true(item.tokens >= 4);
		buf_release(&text);
	}
}

/* ---- prompts ---- */

static int put(struct requests *r, const char *json, struct err *e)
{
	struct buf text = { 0 };
	int rc;

	buf_add_text(&text, json);
	rc = requests_put(r, slice(&text), e);
	buf_release(&text);
	return rc;
}

static void test_prompts(void **state)
{
	struct tokenizer *t = tokenizer_load(TOKENIZER_SIM, NULL, NULL);
	struct requests r = { 0 };
	struct err e = { 0 };
	uint32_t text, ids, chat;

	(void)state;
	assert_int_equal(put(&r, "{\"is_first\":true,\"requests\":["
		"{\"prompt\":\" aaa bbb\",\"output_len\":7},"
		"{\"prompt\":[5,6,7],\"output_len\":1,\"lora\":{\"id\":1}}]}", &e), 0);
	assert_int_equal(put(&r, "{\"requests\":[{\"messages\":[{\"role\":\"user\","
		"\"content\":\" aaa bbb\"}],\"output_len\":null}]}", &e), 0);
	assert_int_equal(r.request[2].output, -1);
	assert_int_equal(r.n, 3);
	assert_int_equal(requests_count(&r, t, false, &e), 0);
	text = r.request[0].tokens;
	ids = r.request[1].tokens;
	chat = r.request[2].tokens;
	assert_int_equal(text, 2);
	assert_int_equal(ids, 3);
	assert_int_equal(r.tokens.id[r.request[1].tokens_at + 2], 7);
	assert_true(r.request[1].has_lora && !r.request[0].has_lora);
	assert_int_equal(r.request[0].output, 7);
	assert_int_equal(requests_count(&r, t, true, &e), 0);
	assert_int_equal(r.request[2].tokens, chat);
	assert_int_equal(r.request[0].tokens, chat); /* the same text as a message */
	assert_int_equal(r.request[1].tokens - ids, chat - text);
	assert_int_equal(put(&r, "{\"is_first\":true,\"requests\":[]}", &e), 0);
	assert_int_equal(r.n, 0);
	requests_release(&r);
	tokenizer_free(t);
}

static void test_media_prompts(void **state)
{
	struct tokenizer *t = tokenizer_load(TOKENIZER_SIM, NULL, NULL);
	struct requests r = { 0 };
	struct buf frame = { 0 };
	struct err e = { 0 };

	(void)state;
	buf_add_text(&frame, "{\"requests\":[{\"prompt\":\" aaa\",\"output_len\":1,\"media\":[");
	png_part(&frame, 280, 1);
	buf_add_text(&frame, "]},{\"messages\":[{\"role\":\"user\",\"content\":["
		     "{\"type\":\"text\",\"text\":\" aaa\"},");
	png_part(&frame, 280, 2);
	buf_add_text(&frame, "]}],\"output_len\":1}]}");
	assert_int_equal(requests_put(&r, slice(&frame), &e), 0);
	assert_int_equal(r.media_n, 2);
	assert_int_equal(requests_count(&r, t, false, &e), 0);
	assert_int_equal(r.request[0].tokens, 101);
	assert_int_equal(r.request[0].text_tokens, 1);
	assert_int_equal(r.request[1].tokens, 100 + r.request[1].text_tokens);
	assert_int_equal(r.request[1].media_n, 1);
	requests_release(&r);
	buf_release(&frame);
	tokenizer_free(t);
}

static void test_bad_prompts(void **state)
{
	static const struct { const char *json, *says; } rows[] = {
		{ "{}", "requests: expected a list" },
		{ "{\"requests\":[7]}", "requests[0]: expected an object" },
		{ "{\"requests\":[{\"output_len\":1}]}", "requests[0]: neither prompt nor messages" },
		{ "{\"requests\":[{\"prompt\":7,\"output_len\":1}]}", "expected a text or token ids" },
		{ "{\"requests\":[{\"prompt\":[1,-2],\"output_len\":1}]}", "token ids from 0 on" },
		{ "{\"requests\":[{\"prompt\":\"a\",\"output_len\":\"4\"}]}", "output_len: expected" },
		{ "{\"requests\":[{\"prompt\":\"a\",\"output_len\":-1}]}", "output_len: expected" },
		{ "{\"requests\":[{\"prompt\":\"a\",\"output_len\":1},{\"messages\":[1],"
		  "\"output_len\":1}]}", "object with a role" },
	};
	struct tokenizer *t = tokenizer_load(TOKENIZER_SIM, NULL, NULL);
	struct requests r = { 0 };
	struct err e;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		e = (struct err){ 0 };
		r.n = 0;
		assert_int_equal(put(&r, rows[i].json, &e), -1);
		assert_non_null(strstr(e.text, rows[i].says));
	}
	assert_int_equal(put(&r, "{\"is_first\":true,\"requests\":[{\"prompt\":\"\",\"output_len\":1}]}",
			     &e), 0);
	assert_int_equal(requests_count(&r, t, false, &e), -1);
	assert_non_null(strstr(e.text, "cannot be empty"));
	requests_release(&r);
	tokenizer_free(t);
}

/* ---- mishaps and frames ---- */

static void test_mishaps(void **state)
{
	static const struct {
		const char *text;
		enum mishap_kind kind;
		const char *at, *not_at;
	} rows[] = {
		{ "hang", MISHAP_HANG, "generate", "load" }, { "hang@load", MISHAP_HANG, "load", "chat" },
		{ "exit=3@put", MISHAP_CRASH, "put", "generate" },
		{ "memory", MISHAP_ANSWER, "beam", "put" }, { "clock", MISHAP_CLOCK, "encode", "hello" },
		{ "garbage@hello", MISHAP_GARBAGE, "hello", "generate" },
	};
	static const char *const wrong[] = { "", "x", "hang@", "hang@x", "exit=", "exit=256", "exit" };
	struct mishap m;
	struct err e;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_int_equal(mishap_read(&m, rows[i].text, &e), 0);
		assert_int_equal(m.kind, rows[i].kind);
		assert_true(mishap_strikes(&m, str_of(rows[i].at)));
		assert_false(mishap_strikes(&m, str_of(rows[i].not_at)));
	}
	assert_int_equal(mishap_read(&m, NULL, &e), 0);
	assert_false(mishap_strikes(&m, STR("generate")));
	for (size_t i = 0; i < COUNT(wrong); i++) {
		if (strcmp(wrong[i], "hang@") == 0)
			continue; /* nothing follows it: as without */
		e = (struct err){ 0 };
		assert_int_equal(mishap_read(&m, wrong[i], &e), -1);
		assert_int_equal(e.code, ERR_USAGE);
		assert_non_null(strstr(e.text, "--worker-fault"));
	}
}

static void test_frames(void **state)
{
	static const struct { const char *bytes, *want; } head[] = {
		{ "\xff\xff\xff\xff", "a frame of 4294967295 bytes; WORKER_FRAME_BYTES_MAX is 268435456" },
		{ "\x10\0\0\1", "a frame of 268435457 bytes; WORKER_FRAME_BYTES_MAX is 268435456" },
		{ "\x10\0\0\0", "the socket ended inside a frame" },
		{ "\0\1\0\0", "the socket ended inside a frame" },
		{ "\0\0\1\0", "the socket ended inside a frame" },
	};
	struct buf body = { 0 };
	struct err e = { 0 };
	int fd[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	assert_int_equal(wire_write(fd[0], STR("{\"a\": 1}"), &e), 0);
	assert_int_equal(wire_write(fd[0], STR(""), &e), 0);
	assert_int_equal(write(fd[0], "\0\0\0\5ab", 6), 6);
	close(fd[0]);
	assert_int_equal(wire_read(fd[1], &body, &e), 1);
	assert_string_equal(body.data, "{\"a\": 1}");
	assert_int_equal(wire_read(fd[1], &body, &e), 1);
	assert_int_equal(body.len, 0);
	assert_int_equal(wire_read(fd[1], &body, &e), -1);
	assert_non_null(strstr(e.text, "inside a frame"));
	assert_int_equal(wire_read(fd[1], &body, &e), 0);
	assert_int_equal(wire_write(fd[1], STR("x"), &e), -1);
	close(fd[1]);
	for (size_t i = 0; i < COUNT(head); i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
		assert_int_equal(write(fd[0], head[i].bytes, 4), 4);
		close(fd[0]);
		assert_int_equal(wire_read(fd[1], &body, &e), -1);
		assert_string_equal(e.text, head[i].want);
		close(fd[1]);
	}
	buf_release(&body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one),
		cmocka_unit_test(test_sequences),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_arrivals),
		cmocka_unit_test(test_lanes),
		cmocka_unit_test(test_known_prompts),
		cmocka_unit_test(test_preemption),
		cmocka_unit_test(test_drafts),
		cmocka_unit_test(test_encoding),
		cmocka_unit_test(test_hook),
		cmocka_unit_test(test_media),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_prompts),
		cmocka_unit_test(test_media_prompts),
		cmocka_unit_test(test_bad_prompts),
		cmocka_unit_test(test_mishaps),
		cmocka_unit_test(test_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
