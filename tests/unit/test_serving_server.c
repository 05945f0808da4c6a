/* SPDX-License-Identifier: Apache-2.0 */
/* test_serving_server.c - the simulator as a server: paths, connections, options, TLS. */
/* threads: yes */
#include "sim_rig.h"

#include <sys/resource.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "client/net/tls.h"

static void test_paths(void **state)
{
	static const struct {
		const char *method, *path, *body;
		unsigned status;
		const char *has;
	} rows[] = {
		{ "GET", "/health", "", 200, NULL },
		{ "GET", "/ping", "", 200, NULL },
		{ "POST", "/ping", "", 200, NULL },
		{ "GET", "/version", "", 200, "{\"version\":" },
		{ "GET", "/v1/models", "", 200, "\"id\":\"big\",\"object\":\"model\"" },
		{ "GET", "/v1/models?x=1", "", 200, "\"id\":\"small\"" },
		{ "GET", "/v1/models", "", 200, "\"root\":\"base\",\"parent\":null,\"max_model_len\":100," },
		{ "POST", "/tokenize", "{\"prompt\":\"a bcd\"}", 200,
		  "{\"count\":2,\"max_model_len\":100,\"tokens\":[97,987]}" },
		{ "POST", "/tokenize", "{\"messages\":[{\"role\":\"user\",\"content\":\"\"}]}",
		  200, "{\"count\":24," },
		{ "POST", "/detokenize", "{\"tokens\":[97,256,34]}", 200,
		  "{\"prompt\":\"a aaa\\\"\"}" },
		{ "POST", "/detokenize", "{\"tokens\":[99999]}", 400, "not in the vocabulary" },
		{ "GET", "/tokenizer_info", "", 200, "17832\":{\"content\":\"<|end|>\",\"special\":true}}}" },
		{ "GET", "/metrics", "", 200,
		  "vllm:num_requests_running{engine=\"0\",model_name=\"big\"} 0.0" },
		{ "GET", "/", "", 404, "\"type\":\"NotFoundError\",\"param\":null,\"code\":404" },
		{ "GET", "/v1/completions", "", 405, "Method Not Allowed" },
		{ "POST", "/v1/completions", "{", 400, "\"type\":\"BadRequestError\"" },
		{ "POST", "/v1/completions", "{\"prompt\":\"a\",\"model\":\"x\"}", 404,
		  "{\"error\":{\"message\":\"The model `x` does not exist.\","
		  "\"type\":\"NotFoundError\","
		  "\"param\":\"model\",\"code\":404}}" },
		{ "POST", "/v1/completions", "{\"prompt\":\"\"}", 400, "the prompt is empty" },
		{ "POST", "/v1/completions", "{\"prompt\":\"a\",\"max_tokens\":99}", 200,
		  "\"completion_tokens\":99" },
		{ "POST", "/v1/completions", "{\"prompt\":\"ab\",\"max_tokens\":99}", 400,
		  "maximum context length is 100 tokens, but 101 were requested: 2 in the prompt "
		  "and 99" },
		{ "POST", "/v1/completions", "{\"prompt\":\"a\",\"model\":\"small\"}", 200,
		  "\"model\":\"big\"" },
		{ "POST", "/v1/completions", "{\"prompt\":[1,2,3],\"max_tokens\":1}", 200,
		  "\"prompt_tokens\":3" },
	};
	static const char *const names[] = { "big", "small" };
	struct rig r;
	struct truths t;
	(void)state;
	rig_init(&r);
	r.opts.model = "base";
	r.opts.served = names;
	r.opts.served_count = 2;
	r.opts.max_model_len = 100;
	rig_start(&r);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct reply reply = ask(&r, rows[i].method, rows[i].path, "", rows[i].body);

		if (reply.status != rows[i].status ||
		    (rows[i].has && !strstr(reply.body.data, rows[i].has)))
			fail_msg("%s %s %s: %u %s", rows[i].method, rows[i].path, rows[i].body,
				 reply.status, reply.body.data);
		reply_release(&reply);
	}
	rig_stop(&r);
	/* Every request is in the file, byte for byte. */
	t = truths_read(r.requests);
	assert_int_equal(t.n, COUNT(rows));
	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_true(str_is(json_text(json_get(t.row[i], "body"), STR("?")), rows[i].body));
		assert_true(str_is(json_text(json_get(t.row[i], "method"), STR("?")),
			rows[i].method));
	}
	arena_release(&t.arena);
	rig_release(&r);
}

static void test_api_key(void **state)
{
	static const struct { const char *path, *header; unsigned status; } rows[] = {
		{ "/v1/models", "Authorization: Bearer secret\r\n", 200 },
		{ "/v1/models", "Authorization: Bearer secre\r\n", 401 },
		{ "/v1/models", "Authorization: secret\r\n", 401 },
		{ "/v1/models", "x-api-key: secret\r\n", 200 },
		{ "/v1/models", "x-api-key: secre\r\n", 401 },
		{ "/v1/models", "", 401 },
		{ "/health", "", 200 },
	};
	struct rig r;
	(void)state;
	rig_init(&r);
	r.opts.api_key = "secret";
	rig_start(&r);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct reply reply = ask(&r, "GET", rows[i].path, rows[i].header, "");

		assert_int_equal(reply.status, rows[i].status);
		reply_release(&reply);
	}
	rig_stop(&r);
	rig_release(&r);
}

static void test_connections(void **state)
{
	struct rig r;
	struct client c;
	struct reply reply;
	struct answer a;
	struct buf body = { 0 };
	(void)state;
	rig_init(&r);
	r.opts.keep_alive_ms = 100;
	r.opts.max_model_len = 1000000;
	rig_start(&r);
	/* Three at once on one connection are answered in order. */
	c = client_open(&r);
	client_ask(&c, "POST", "/v1/completions", "", ASK(3, ""));
	client_ask(&c, "GET", "/version", "", "");
	client_ask(&c, "POST", "/v1/completions", "", ASK(2, ""));
	for (int i = 0; i < 3; i++) {
		reply = client_read(&c);
		a = answer_read(&reply);
		assert_int_equal(reply.status, 200);
		assert_int_equal(a.events, i == 0 ? 3 : i == 1 ? 0 : 2);
		answer_release(&a);
		reply_release(&reply);
	}
	/* Then it is idle for too long. */
	reply = client_read(&c);
	assert_true(reply.is_cut && reply.status == 0);
	client_close(&c);
	/* A body in small pieces, and one that waits for permission. */
	buf_add_text(&body, "{\"max_tokens\":1,\"prompt\":\"");
	for (int i = 0; i < 200000; i++)
		buf_add_char(&body, 'x');
	buf_add_text(&body, "\"}");
	c = client_open(&r);
	client_send(&c, STR("POST /v1/completions HTTP/1.1\r\nHo"));
	usleep(2000);
	client_send(&c, STR("st: x\r\nExpect: 100-continue\r\nContent-Length: 200028\r\n"
			    "Connection: close\r\n\r\n"));
	assert_int_equal(body.len, 200028);
	client_send(&c, buf_str(&body));
	reply = client_read(&c);
	assert_int_equal(reply.status, 200);
	assert_non_null(strstr(reply.body.data, "\"prompt_tokens\":200000,"));
	reply_release(&reply);
	reply = client_read(&c);
	assert_true(reply.is_cut);
	client_close(&c);
	/* What is no HTTP is refused and hung up on. */
	c = client_open(&r);
	client_send(&c, STR("hello\r\n\r\n"));
	reply = client_read(&c);
	assert_int_equal(reply.status, 400);
	reply_release(&reply);
	client_close(&c);
	buf_release(&body);
	rig_stop(&r);
	rig_release(&r);
}

/* Without descriptors a connection waits until there are some again. */
static void test_no_descriptors(void **state)
{
	struct sock_addr addr[SOCK_ADDRS_MAX];
	struct rlimit usual, none;
	struct client first, c = { 0 };
	struct pollfd answer;
	struct reply reply;
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_start(&r);
	first = client_open(&r); /* its descriptor stays in use */
	client_ask(&first, "GET", "/version", "", "");
	reply = client_read(&first);
	reply_release(&reply);
	assert_true(sock_resolve("127.0.0.1", sim_port(r.sim), addr, NULL) > 0);
	c.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
	none = usual;
	none.rlim_cur = (rlim_t)dup(c.fd);
	close((int)none.rlim_cur);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_true(connect(c.fd, &addr->any, addr->len) == 0 || errno == EINPROGRESS);
	client_wait(c.fd, POLLOUT);
	client_ask(&c, "GET", "/version", "", "");
	answer = (struct pollfd){ .fd = c.fd, .events = POLLIN };
	assert_int_equal(poll(&answer, 1, 150), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
	reply = client_read(&c);
	assert_int_equal(reply.status, 200);
	reply_release(&reply);
	client_close(&c);
	client_close(&first);
	rig_stop(&r);
	rig_release(&r);
}

static void test_clients_that_leave_or_lag(void **state)
{
	struct rig r;
	struct client c;
	struct reply reply;
	struct answer a;
	struct truths t;
	(void)state;
	rig_init(&r);
	r.opts.itl_ms = "0";
	rig_start(&r);
	/* Does not read until far more was sent than sockets hold. */
	c = client_open(&r);
	client_ask(&c, "POST", "/v1/completions", "x-request-id: lag\r\n", ASK(60000, ""));
	usleep(300000);
	reply = client_read(&c);
	a = answer_read(&reply);
	assert_int_equal(a.events, 60000);
	assert_true(a.is_done);
	answer_release(&a);
	reply_release(&reply);
	client_close(&c);
	/* Leaves in the middle. */
	c = client_open(&r);
	client_ask(&c, "POST", "/v1/completions", "x-request-id: gone\r\n", ASK(100000, ""));
	client_more(&c, &reply);
	client_close(&c);
	usleep(50000);
	reply = ask(&r, "GET", "/metrics", "", "");
	assert_non_null(strstr(reply.body.data, "finished_reason=\"abort\"} 1.0"));
	reply_release(&reply);
	rig_stop(&r);
	t = truths_read(r.truth);
	assert_true(str_is(json_text(json_get(truth_of(&t, "gone"), "finish"), STR("?")), "abort"));
	assert_int_equal(json_get(truth_of(&t, "lag"), "send_ns")->count, 60000);
	arena_release(&t.arena);
	rig_release(&r);
}

static void test_unix_socket(void **state)
{
	struct rig r;
	struct reply reply;
	(void)state;
	rig_init(&r);
	r.opts.uds = "/tmp/profllm-sim-test.sock";
	rig_start(&r);
	assert_string_equal(sim_url(r.sim), "unix:/tmp/profllm-sim-test.sock");
	reply = ask(&r, "GET", "/version", "", "");
	assert_int_equal(reply.status, 200);
	reply_release(&reply);
	rig_stop(&r);
	assert_false(file_exists(r.opts.uds));
	rig_release(&r);
}

static void test_bad_options(void **state)
{
	static const char *const bad_fault[] = { "boom" }, *const stall[] = { "stall@1=1s" };
	struct sim_opts d = sim_defaults();
	struct rig r;
	(void)state;
	rig_init(&r);
	rig_start(&r);
	d.port = 0;
#define WITH(...) ({ struct sim_opts o_ = d; struct sim_opts *o = &o_; __VA_ARGS__; o_; })
	const struct { struct sim_opts opts; enum err_code code; const char *has; } rows[] = {
		{ WITH(o->ttft_ms = "x"), ERR_USAGE, "--ttft-ms: 'x'" },
		{ WITH(o->itl_ms = "exp:-1"), ERR_USAGE, "--itl-ms: 'exp:-1'" },
		{ WITH(o->output_len = "normal"), ERR_USAGE, "--output-len: 'normal'" },
		{ WITH(o->faults = bad_fault, o->fault_count = 1), ERR_USAGE,
		  "unknown fault 'boom'" },
		{ WITH(o->faults = stall, o->fault_count = 1), ERR_USAGE, "need --ttft-ms" },
		{ WITH(o->tokenizer = "/no/such/file"), ERR_IO, "/no/such/file" },
		{ WITH(o->cert_file = "/tmp/x"), ERR_USAGE, "--ssl-certfile and --ssl-keyfile" },
		{ WITH(o->truth_file = "/no/dir/t"), ERR_IO, "--truth: cannot write /no/dir/t" },
		{ WITH(o->requests_file = "/no/dir/t"), ERR_IO,
		  "--requests: cannot write /no/dir/t" },
		{ WITH(o->port_file = "/no/dir/p"), ERR_IO, "--port-file: cannot write /no/dir/p" },
		{ WITH(o->uds = "/no/dir/s"), ERR_NET, "/no/dir/s" },
		{ WITH(o->port = sim_port(r.sim)), ERR_NET, "Address already in use" },
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct err e = { 0 };

		assert_null(sim_new(&rows[i].opts, &e));
		if (e.code != rows[i].code || !strstr(e.text, rows[i].has))
			fail_msg("'%s' where '%s' was expected", e.text, rows[i].has);
	}
	rig_stop(&r);
	rig_release(&r);
}

/* ---- TLS ---- */

static void certificate_make(const char *cert_path, const char *key_path)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = X509_new();
	FILE *f;

	X509_set_version(cert, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
	X509_gmtime_adj(X509_getm_notBefore(cert), -3600);
	X509_gmtime_adj(X509_getm_notAfter(cert), 86400);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
				   (const unsigned char *)"here", -1, -1, 0);
	X509_set_issuer_name(cert, X509_get_subject_name(cert));
	X509_set_pubkey(cert, key);
	assert_true(X509_sign(cert, key, EVP_sha256()) > 0);
	f = fopen(cert_path, "w");
	PEM_write_X509(f, cert);
	fclose(f);
	f = fopen(key_path, "w");
	PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL);
	fclose(f);
	X509_free(cert);
	EVP_PKEY_free(key);
}

/* Sends request through a TLS connection and collects the plain answer until it holds end. */
static void tls_exchange(struct client *c, const char *request, const char *end, struct buf *plain)
{
	struct tls_opts opts = { .is_insecure = true };
	struct tls_config *config = tls_config_new(&opts, NULL);
	struct tls *t = tls_new(config, "localhost", NULL);
	struct buf out = { 0 };
	struct reply unused = { 0 };
	int state = tls_handshake(t, (struct str){ 0 }, &out, NULL);

	while (state == 0) {
		client_send(c, buf_str(&out));
		buf_reset(&out);
		assert_true(client_more(c, &unused));
		state = tls_handshake(t, buf_str(&c->in), &out, NULL);
		buf_reset(&c->in);
	}
	assert_int_equal(state, 1);
	assert_int_equal(tls_write(t, str_of(request), &out, NULL), 0);
	client_send(c, buf_str(&out));
	while (!plain->data || !strstr(plain->data, end)) {
		assert_true(client_more(c, &unused));
		assert_true(tls_read(t, buf_str(&c->in), plain, &out, NULL) >= 0);
		buf_reset(&c->in);
	}
	buf_release(&out);
	tls_free(t);
	tls_config_free(config);
}

static void test_tls(void **state)
{
	static const char body[] = ASK(4, "");
	const char *cert = "/tmp/profllm-sim-test.crt", *key = "/tmp/profllm-sim-test.key";
	struct rig r;
	struct client c;
	struct buf plain = { 0 };
	char request[600];
	(void)state;
	certificate_make(cert, key);
	rig_init(&r);
	r.opts.cert_file = cert;
	r.opts.key_file = key;
	rig_start(&r);
	assert_true(str_starts(str_of(sim_url(r.sim)), STR("https://127.0.0.1:")));
	c = client_open(&r);
	snprintf(request, sizeof(request), "POST /v1/completions HTTP/1.1\r\nHost: x\r\n"
		 "Content-Length: %zu\r\n\r\n%s", strlen(body), body);
	tls_exchange(&c, request, "data: [DONE]", &plain);
	assert_non_null(strstr(plain.data, "\"completion_tokens\":4}"));
	client_close(&c);
	/* A client that does not use TLS is disconnected. */
	c = client_open(&r);
	client_send(&c, STR("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
	while (client_more(&c, &(struct reply){ 0 }))
		;
	client_close(&c);
	rig_stop(&r);
	buf_release(&plain);
	unlink(cert);
	unlink(key);
	rig_release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_api_key),
		cmocka_unit_test(test_connections), cmocka_unit_test(test_no_descriptors),
		cmocka_unit_test(test_clients_that_leave_or_lag),
		cmocka_unit_test(test_unix_socket),
		cmocka_unit_test(test_bad_options),
		cmocka_unit_test(test_tls),
	};
	return cmocka_run_group_tests_name("sim server", tests, NULL, NULL);
}
