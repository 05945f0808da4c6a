/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_chat_remote.c - tokenizing by a server, against one in this file: ids are the bytes of the
 * text, 300 comes first with special tokens, ids 301..310 are missing, 400 and 401 are added
 * tokens. Faults are switched on one by one.
 *
 * threads: yes
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "core/json/read.h"
#include "core/json/write.h"
#include "input/chat/chat.h"
#include "input/token/remote.h"
#include "input/token/tokenizer.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define BOS 300
#define TOP 401

enum fault {
	FAULT_NONE, FAULT_STATUS, FAULT_NOT_JSON, FAULT_NO_MEMBER, FAULT_BAD_IDS,
	FAULT_NO_DETOKENIZE, FAULT_NO_RENDER, FAULT_REPEAT, FAULT_UPPER, FAULT_TAG,
};

static struct server {
	int fd;
	uint16_t port;
	char url[64];
	_Atomic enum fault fault;
	atomic_bool is_stripping, has_info;
	atomic_int tokenized, connections;
} server;

/* ---- the server ---- */

static void render(const struct json_value *doc, struct buf *out)
{
	const struct json_value *list = json_get(doc, "messages");
	struct str text = json_text(json_get(list->item, "content"), STR(""));
	enum fault fault = server.fault;

	buf_add_text(out, "[u]");
	for (int n = fault == FAULT_REPEAT ? 2 : 1; n; n--) {
		if (fault == FAULT_TAG && str_is(text, "/no_think"))
			buf_add_text(out, "!");
		else if (server.is_stripping)
			buf_add_str(out, str_trim(text));
		else
			buf_add_str(out, text);
	}
	if (fault == FAULT_UPPER)
		for (size_t i = 0; i < out->len; i++)
			out->data[i] = (char)(out->data[i] & 0x5f);
	buf_add_text(out, "[a]");
	if (json_get(doc, "chat_template_kwargs"))
		buf_add_str(out, json_text(json_get(json_get(doc, "chat_template_kwargs"), "x"),
			STR("")));
}

static int tokenize(const struct json_value *doc, struct buf *out)
{
	struct buf text = { 0 };
	enum fault fault = server.fault;

	server.tokenized++;
	if (json_get(doc, "messages"))
		render(doc, &text);
	else
		buf_add_str(&text, json_text(json_get(doc, "prompt"), STR("")));
	buf_printf(out, "{\"%s\": [", fault == FAULT_NO_MEMBER ? "ids" : "tokens");
	if (json_bool(json_get(doc, "add_special_tokens"), true))
		buf_printf(out, "%d%s", BOS, text.len ? ", " : "");
	for (size_t i = 0; i < text.len; i++)
		buf_printf(out, "%s%d", i ? ", " : "", (unsigned char)text.data[i]);
	buf_add_text(out, fault == FAULT_BAD_IDS ? ", -1]}" : "]}");
	buf_release(&text);
	return fault == FAULT_STATUS || (fault == FAULT_NO_RENDER && json_get(doc, "messages"))
		? 500 : 200;
}

static int detokenize(const struct json_value *doc, struct buf *out)
{
	const struct json_value *ids = json_get(doc, "tokens");
	struct buf text = { 0 };

	if (server.fault == FAULT_NO_DETOKENIZE)
		return 404;
	for (size_t i = 0; i < ids->count; i++) {
		int64_t id = json_int(ids->item + i, -1);

		if (id > TOP)
			return 400;
		if (id < 256)
			buf_add_char(&text, (char)id);
		else if (id <= BOS || id > BOS + 10)
			buf_printf(&text, "<%d>", (int)id);
	}
	buf_add_text(out, "{\"prompt\": ");
	json_quote(out, buf_str(&text), false);
	buf_add_char(out, '}');
	buf_release(&text);
	return 200;
}

static int answer(struct str path, struct str body, struct buf *out)
{
	struct arena a = { 0 };
	struct json_value *doc = NULL;
	int status = 404;

	if (body.n && json_parse(&a, body, &doc, NULL))
		status = 400; /* ours are JSON */
	else if (str_is(path, "/tokenize"))
		status = tokenize(doc, out);
	else if (str_is(path, "/detokenize"))
		status = detokenize(doc, out);
	else if (server.has_info)
		status = 200, buf_add_text(out, "{\"added_tokens_decoder\": {\"400\": {}, "
			"\"401\": {\"special\": true}, \"65\": {}, \"999999\": {}, \"x\": 1}}");
	if (server.fault == FAULT_NOT_JSON)
		buf_add_text(out, "]");
	arena_release(&a);
	return status;
}

/* One request; false at the end of the connection. */
static bool serve_one(int fd, struct buf *in)
{
	struct buf out = { 0 }, head = { 0 };
	char *end = NULL, *length;
	size_t body = 0;
	int status;
	bool is_sent;
	struct str target;

	buf_reset(in);
	while (!end || in->len < (size_t)(end + 4 - in->data) + body) {
		char bytes[4096];
		ssize_t n = read(fd, bytes, sizeof(bytes));

		if (n <= 0)
			return false;
		buf_add(in, bytes, (size_t)n);
		end = strstr(in->data, "\r\n\r\n");
		length = strstr(in->data, "Content-Length: ");
		body = end && length ? (size_t)strtoul(length + 16, NULL, 10) : 0;
	}
	target = str_of(in->data);
	str_cut(&target, ' ');
	status = answer(str_cut(&target, ' '), (struct str){ end + 4, body }, &out);
	buf_printf(&head, "HTTP/1.1 %d X\r\nContent-Length: %zu\r\n\r\n", status, out.len);
	buf_add_str(&head, buf_str(&out));
	is_sent = send(fd, head.data, head.len, MSG_NOSIGNAL) == (ssize_t)head.len;
	buf_release(&out);
	buf_release(&head);
	return is_sent;
}

static void *serve_connection(void *arg)
{
	int fd = (int)(intptr_t)arg;
	struct buf in = { 0 };

	while (serve_one(fd, &in))
		;
	buf_release(&in);
	close(fd);
	return NULL;
}

static void *serve(void *arg)
{
	int fd;

	(void)arg;
	while ((fd = accept(server.fd, NULL, NULL)) >= 0) {
		pthread_t thread;

		server.connections++;
		if (pthread_create(&thread, NULL, serve_connection, (void *)(intptr_t)fd) == 0)
			pthread_detach(thread);
	}
	return NULL;
}

static int start(void **state)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(a);
	pthread_t thread;

	(void)state;
	server.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(server.fd, (struct sockaddr *)&a, sizeof(a)) || listen(server.fd, 128) ||
		getsockname(server.fd, (struct sockaddr *)&a, &n))
		return -1;
	server.port = ntohs(a.sin_port);
	snprintf(server.url, sizeof(server.url), "http://127.0.0.1:%u", server.port);
	return pthread_create(&thread, NULL, serve, NULL);
}

/* ---- the client ---- */

static struct token_server client(void)
{
	return (struct token_server){ .base_url = server.url, .model = "m" };
}

static struct tokenizer *load(void)
{
	struct token_server s = client();
	struct err e;
	struct tokenizer *t;

	server.fault = FAULT_NONE;
	t = tokenizer_of_server("org/m", &s, &e);
	if (!t)
		fail_msg("%s", e.text);
	return t;
}

static void test_facts(void **state)
{
	static const struct {
		bool has_info;
		size_t vocab;
	} row[] = { { false, TOP + 1 }, { true, 400 } };

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct tokenizer *t;
		uint32_t id;
		size_t n;

		server.has_info = row[i].has_info;
		t = load();
		assert_string_equal(tokenizer_name(t), "org/m");
		assert_null(tokenizer_path(t));
		assert_null(tokenizer_model(t));
		assert_int_equal(tokenizer_vocab_size(t), row[i].vocab);
		assert_int_equal(tokenizer_id_limit(t), TOP + 1);
		assert_int_equal(tokenizer_special_per_sequence(t), 1);
		tokenizer_special_ids(t, &n);
		assert_int_equal(n, 0);
		assert_false(tokenizer_is_special(t, BOS));
		assert_false(tokenizer_has_chat_template(t));
		assert_true(tokenizer_find_id(t, STR("A"), &id));
		assert_int_equal(id, 'A');
		assert_false(tokenizer_find_id(t, STR("AB"), &id));
		tokenizer_free(t);
	}
}

static void test_texts(void **state)
{
	struct tokenizer *t = load();
	struct ids ids = { 0 };
	struct buf text = { 0 };
	int before;

	(void)state;
	assert_int_equal(tokenizer_encode(t, (struct str){ "a\0\"\xc3\xa9", 5 }, true, &ids), 0);
	assert_int_equal(ids.count, 6);
	assert_int_equal(ids.id[0], BOS);
	assert_int_equal(ids.id[2], 0);
	assert_int_equal(ids.id[5], 0xa9);
	assert_int_equal(tokenizer_decode(t, ids.id, ids.count, false, &text), 0);
	assert_memory_equal(text.data, "<300>a\0\"\xc3\xa9", 10);
	/* An answer is kept, and one with special tokens is another. */
	before = server.tokenized;
	assert_int_equal(tokenizer_count(t, STR("twice"), false), 5);
	assert_int_equal(tokenizer_count(t, STR("twice"), false), 5);
	assert_int_equal(server.tokenized, before + 1);
	assert_int_equal(tokenizer_count(t, STR("twice"), true), 6);
	assert_int_equal(server.tokenized, before + 2);
	server.fault = FAULT_STATUS;
	assert_int_equal(tokenizer_count(t, STR("new"), true), SIZE_MAX);
	assert_int_equal(tokenizer_encode(t, STR("new"), true, &ids), -1);
	assert_int_equal(ids.count, 6);
	ids_release(&ids);
	buf_release(&text);
	tokenizer_free(t);
}

static void test_connections_stay_open(void **state)
{
	struct tokenizer *t = load();
	int before = server.connections;
	char text[32];

	(void)state;
	for (int i = 0; i < 20; i++) {
		snprintf(text, sizeof(text), "text %d", i);
		assert_int_equal(tokenizer_count(t, str_of(text), false), strlen(text));
	}
	assert_true(server.connections - before <= 1);
	tokenizer_free(t);
}

static void *count_texts(void *arg)
{
	const struct tokenizer *t = arg;
	char text[32];

	for (int i = 0; i < 100; i++) {
		snprintf(text, sizeof(text), "thread %d", i % 50);
		if (tokenizer_count(t, str_of(text), false) != strlen(text))
			return arg;
	}
	return NULL;
}

static void test_threads(void **state)
{
	struct tokenizer *t = load();
	pthread_t thread[4];
	void *failed;

	(void)state;
	for (size_t i = 0; i < COUNT(thread); i++)
		assert_int_equal(pthread_create(&thread[i], NULL, count_texts, t), 0);
	for (size_t i = 0; i < COUNT(thread); i++) {
		pthread_join(thread[i], &failed);
		assert_null(failed);
	}
	tokenizer_free(t);
}

static void test_batches(void **state)
{
	struct tokenizer *t = load();
	struct str text[500];
	size_t count[500];
	struct ids ids[500] = { 0 };
	char *all = mem_alloc(501);
	struct err e;

	(void)state;
	memset(all, 'x', 500);
	for (size_t i = 0; i < 500; i++)
		text[i] = (struct str){ all, i + 1 };
	assert_int_equal(tokenizer_count_batch(t, text, 500, true, 0, count, &e), 0);
	assert_int_equal(tokenizer_encode_batch(t, text, 500, false, 0, ids, &e), 0);
	for (size_t i = 0; i < 500; i++) {
		assert_int_equal(count[i], i + 2);
		assert_int_equal(ids[i].count, i + 1);
		ids_release(&ids[i]);
	}
	server.fault = FAULT_BAD_IDS;
	memset(all, 'y', 500);
	assert_int_equal(tokenizer_count_batch(t, text, 500, true, 0, count, &e), -1);
	assert_non_null(strstr(e.text, "text 0: http://127.0.0.1:"));
	assert_non_null(strstr(e.text, "/tokenize: the answer's \"tokens\" are not token ids"));
	free(all);
	tokenizer_free(t);
}

static void test_faults(void **state)
{
	static const struct {
		enum fault fault;
		const char *want;
	} row[] = {
		{ FAULT_STATUS, "/tokenize: HTTP status 500" },
		{ FAULT_NOT_JSON, "/tokenize: the answer is not JSON" },
		{ FAULT_NO_MEMBER, "/tokenize: the answer has no \"tokens\"" },
		{ FAULT_BAD_IDS, "/tokenize: the answer's \"tokens\" are not token ids" },
		{ FAULT_NO_DETOKENIZE, "/detokenize returns no text for the ids 0 to 15" },
	};
	struct token_server s = client();
	struct err e;

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		server.fault = row[i].fault;
		assert_null(tokenizer_of_server("m", &s, &e));
		assert_non_null(strstr(e.text, server.url));
		assert_non_null(strstr(e.text, row[i].want));
	}
	s.base_url = "http://127.0.0.1:1";
	assert_null(tokenizer_of_server("m", &s, &e));
	assert_int_equal(e.code, ERR_NET);
}

/* ---- templates ---- */

static void test_template(void **state)
{
	static const struct {
		enum fault fault;
		bool is_stripping;
		const char *kwargs, *suffix, *error;
	} row[] = {
		{ FAULT_NONE, false, "", "[a]", NULL },
		{ FAULT_NONE, true, "", "[a]", NULL },
		{ FAULT_NONE, false, "{\"x\": \"yes\"}", "[a]yes", NULL },
		{ FAULT_NO_RENDER, false, "", NULL, "/tokenize: HTTP status 500" },
		{ FAULT_BAD_IDS, false, "", NULL, "are not token ids" },
		{ FAULT_NO_DETOKENIZE, false, "", NULL, "are other ids" },
		{ FAULT_REPEAT, false, "", NULL, "does not contain the message exactly once" },
		{ FAULT_UPPER, false, "", NULL, "does not contain the message exactly once" },
		{ FAULT_TAG, false, "", NULL, "does not only add text before and after a message" },
	};
	struct tokenizer *t = load();
	struct token_server s = client();

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct arena a = { 0 };
		struct chat_wrap w;
		struct err e = { 0 };
		int rc;

		server.fault = row[i].fault;
		server.is_stripping = row[i].is_stripping;
		rc = chat_from_server(&s, t, str_of(row[i].kwargs), &a, &w, &e);
		assert_int_equal(rc, row[i].error ? -1 : 0);
		assert_int_equal(w.source, row[i].error ? CHAT_NONE : CHAT_SERVER);
		if (row[i].error) {
			assert_non_null(strstr(e.text, row[i].error));
		} else {
			assert_true(str_is(w.prefix, "[u]"));
			assert_true(str_is(w.suffix, row[i].suffix));
			assert_int_equal(w.is_stripping, row[i].is_stripping);
		}
		arena_release(&a);
	}
	server.fault = FAULT_NONE;
	server.is_stripping = false;
	tokenizer_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_facts),
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_connections_stay_open),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_batches),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_template),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
