/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_net_tls.c - both ends of TLS against each other, in memory and over
 * loopback, with certificates made here.
 */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "client/net/sock.h"
#include "client/net/tls.h"

static char dir[] = "/tmp/profllm-tls-XXXXXX";

static const char *path_of(const char *name)
{
	static char paths[8][64];
	static int next;
	char *path = paths[next++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

/* A self-signed certificate for the given names, valid from now for days. */
static void certificate_make(const char *name, const char *names, long days)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = X509_new();
	X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, names);
	char file[32];
	FILE *f;

	assert_non_null(key);
	assert_non_null(ext);
	X509_set_version(cert, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
	X509_gmtime_adj(X509_getm_notBefore(cert), -7200);
	X509_gmtime_adj(X509_getm_notAfter(cert), days * 86400 - 3600);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
				   (const unsigned char *)name, -1, -1, 0);
	X509_set_issuer_name(cert, X509_get_subject_name(cert));
	X509_set_pubkey(cert, key);
	X509_add_ext(cert, ext, -1);
	assert_true(X509_sign(cert, key, EVP_sha256()) > 0);
	snprintf(file, sizeof(file), "%s.crt", name);
	f = fopen(path_of(file), "w");
	assert_non_null(f);
	PEM_write_X509(f, cert);
	fclose(f);
	snprintf(file, sizeof(file), "%s.key", name);
	f = fopen(path_of(file), "w");
	assert_non_null(f);
	PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL);
	fclose(f);
	X509_EXTENSION_free(ext);
	X509_free(cert);
	EVP_PKEY_free(key);
}

static int setup(void **state)
{
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	certificate_make("here", "DNS:localhost,DNS:*.test.example,IP:127.0.0.1,IP:::1", 2);
	certificate_make("other", "DNS:other.example", 2);
	certificate_make("old", "DNS:localhost", 0);
	f = fopen(path_of("junk"), "w");
	fputs("junk\n", f);
	fclose(f);
	return 0;
}

static int teardown(void **state)
{
	static const char *const names[] = { "here.crt", "here.key", "other.crt", "other.key",
					     "old.crt", "old.key", "junk" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		unlink(path_of(names[i]));
	return rmdir(dir);
}

struct side { struct tls_config *config; struct tls *tls; struct buf out; struct err e; int rc; };

/*
 * Takes what lies ready for one side (at most step bytes a time; 0: all) through
 * its handshake. Its output is sent to the peer's waiting line.
 */
static void side_step(struct side *s, struct buf *waiting, size_t step)
{
	size_t n = step && waiting->len > step ? step : waiting->len;

	if (s->rc == 0)
		s->rc = tls_handshake(s->tls, (struct str){ waiting->data, n }, &s->out, &s->e);
	else if (s->rc == 1) /* finished before the peer: the rest must not get lost */
		return;
	buf_cut(waiting, n);
}

static void sides_open(struct side *client, struct side *server, const struct tls_opts *c,
		       const struct tls_opts *s, const char *host)
{
	*client = *server = (struct side){ 0 };
	client->config = tls_config_new(c, &client->e);
	server->config = tls_config_new(s, &server->e);
	assert_non_null(client->config);
	assert_non_null(server->config);
	client->tls = tls_new(client->config, host, &client->e);
	server->tls = tls_new(server->config, NULL, &server->e);
	assert_non_null(client->tls);
	assert_non_null(server->tls);
}

/* Until both are done, one has failed, or nothing moves. to_*: bytes on their way. */
static void sides_shake(struct side *client, struct side *server, struct buf *to_client,
			struct buf *to_server, size_t step)
{
	for (int i = 0; i < 20000 && (client->rc == 0 || server->rc == 0); i++) {
		side_step(client, to_client, step);
		buf_add_str(to_server, buf_str(&client->out));
		buf_reset(&client->out);
		side_step(server, to_server, step);
		buf_add_str(to_client, buf_str(&server->out));
		buf_reset(&server->out);
		if ((client->rc != 0 && to_server->len == 0) ||
		    (server->rc != 0 && to_client->len == 0))
			if (client->rc < 0 || server->rc < 0)
				break;
	}
}

static void sides_close(struct side *client, struct side *server)
{
	tls_free(client->tls);
	tls_free(server->tls);
	tls_config_free(client->config);
	tls_config_free(server->config);
	buf_release(&client->out);
	buf_release(&server->out);
}

static void test_verification(void **state)
{
	static const struct {
		const char *host, *cert, *ca;
		bool is_insecure;
		const char *error; /* NULL: works */
	} rows[] = {
		{ "localhost", "here", "here.crt", false, NULL },
		{ "127.0.0.1", "here", "here.crt", false, NULL },
		{ "::1", "here", "here.crt", false, NULL },
		{ "a.test.example", "here", "here.crt", false, NULL },
		{ "localhost", "here", NULL, false,
		  "certificate of localhost is not trusted: self-signed certificate; "
		  "use --cacert FILE or --insecure" },
		{ "localhost", "here", "other.crt", false, "is not trusted: self-signed" },
		{ "localhost", "other", "other.crt", false,
		  "the server at localhost has a certificate for another name: hostname mismatch" },
		{ "127.0.0.2", "here", "here.crt", false, "another name: IP address mismatch" },
		{ "b.a.test.example", "here", "here.crt", false, "hostname mismatch" },
		{ "localhost", "old", "old.crt", false, "certificate has expired" },
		{ "anything", "other", NULL, true, NULL },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char cert[32], key[32];
		struct side client, server;
		struct buf to_client = { 0 }, to_server = { 0 };
		struct tls_opts c = { .is_insecure = rows[i].is_insecure };
		struct tls_opts s = { .is_server = true };

		snprintf(cert, sizeof(cert), "%s.crt", rows[i].cert);
		snprintf(key, sizeof(key), "%s.key", rows[i].cert);
		s.cert_file = path_of(cert);
		s.key_file = path_of(key);
		c.ca_file = rows[i].ca ? path_of(rows[i].ca) : NULL;
		sides_open(&client, &server, &c, &s, rows[i].host);
		sides_shake(&client, &server, &to_client, &to_server, i % 2 ? 7 : 0);
		if (rows[i].error) {
			assert_int_equal(client.rc, -1);
			if (!strstr(client.e.text, rows[i].error))
				fail_msg("'%s' lacks '%s'", client.e.text, rows[i].error);
			assert_int_equal(server.rc, -1); /* the alert got through */
			assert_non_null(strstr(server.e.text, "TLS: "));
		} else {
			if (client.rc != 1)
				fail_msg("%s: %s", rows[i].host, client.e.text);
			assert_int_equal(server.rc, 1);
			assert_string_equal(tls_version(client.tls), "TLSv1.3");
		}
		buf_release(&to_client);
		buf_release(&to_server);
		sides_close(&client, &server);
	}
}

/* Both directions, small and large, cut into steps; then a clean close. */
static void test_exchange(void **state)
{
	static const size_t sizes[] = { 1, 268, 16384, 16385, 300000 };
	struct tls_opts c = { .ca_file = path_of("here.crt") };
	struct tls_opts s = { .is_server = true, .cert_file = path_of("here.crt"),
			      .key_file = path_of("here.key") };
	struct side client, server;
	struct buf to_client = { 0 }, to_server = { 0 }, text = { 0 }, plain = { 0 };

	(void)state;
	sides_open(&client, &server, &c, &s, "localhost");
	sides_shake(&client, &server, &to_client, &to_server, 0);
	assert_int_equal(client.rc, 1);
	assert_int_equal(server.rc, 1);
	for (size_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
		buf_reset(&text);
		buf_reset(&plain);
		for (size_t i = 0; i < sizes[k]; i++)
			buf_add_char(&text, (char)(i * 31 >> 3));
		assert_int_equal(tls_write(server.tls, buf_str(&text), &to_client, &server.e), 0);
		while (to_client.len) {
			size_t n = to_client.len < 100 + k * 977 ? to_client.len : 100 + k * 977;
			struct str in = { to_client.data, n };

			assert_int_equal(tls_read(client.tls, in, &plain, &client.out,
						  &client.e), 1);
			buf_cut(&to_client, n);
		}
		assert_true(str_eq(buf_str(&plain), buf_str(&text)));
		assert_int_equal(client.out.len, 0);
	}
	tls_close(server.tls, &to_client);
	assert_int_equal(tls_read(client.tls, buf_str(&to_client), &plain, &client.out,
				  &client.e), 0);
	/* Damaged bytes break the connection with a sentence. */
	buf_reset(&to_server);
	assert_int_equal(tls_write(client.tls, STR("hello"), &to_server, &client.e), 0);
	to_server.data[to_server.len - 1] ^= 1;
	assert_int_equal(tls_read(server.tls, buf_str(&to_server), &plain, &server.out,
				  &server.e), -1);
	assert_non_null(strstr(server.e.text, "reading from the client failed"));
	buf_release(&to_client);
	buf_release(&to_server);
	buf_release(&text);
	buf_release(&plain);
	sides_close(&client, &server);
}

/* The request comes in one read with the client's last handshake message. */
static void test_early_data(void **state)
{
	struct tls_opts c = { .ca_file = path_of("here.crt") };
	struct tls_opts s = { .is_server = true, .cert_file = path_of("here.crt"),
			      .key_file = path_of("here.key") };
	struct side client, server;
	struct buf flight = { 0 }, plain = { 0 };

	(void)state;
	sides_open(&client, &server, &c, &s, "localhost");
	assert_int_equal(tls_handshake(client.tls, STR(""), &client.out, &client.e), 0);
	assert_int_equal(tls_handshake(server.tls, buf_str(&client.out), &server.out,
				       &server.e), 0);
	buf_reset(&client.out);
	assert_int_equal(tls_handshake(client.tls, buf_str(&server.out), &flight, &client.e), 1);
	assert_int_equal(tls_write(client.tls, STR("GET / HTTP/1.1\r\n\r\n"), &flight,
				   &client.e), 0);
	buf_reset(&server.out);
	assert_int_equal(tls_handshake(server.tls, buf_str(&flight), &server.out, &server.e), 1);
	assert_int_equal(tls_read(server.tls, STR(""), &plain, &server.out, &server.e), 1);
	assert_true(str_is(buf_str(&plain), "GET / HTTP/1.1\r\n\r\n"));
	buf_release(&flight);
	buf_release(&plain);
	sides_close(&client, &server);
}

static void test_wrong_peer(void **state)
{
	struct tls_opts c = { .is_insecure = true };
	struct tls_opts s = { .is_server = true, .cert_file = path_of("here.crt"),
			      .key_file = path_of("here.key") };
	struct side client, server;

	(void)state;
	sides_open(&client, &server, &c, &s, "localhost");
	assert_int_equal(tls_handshake(client.tls, STR(""), &client.out, &client.e), 0);
	assert_int_equal(tls_handshake(client.tls, STR("HTTP/1.1 400 Bad Request\r\n\r\n"),
				       &client.out, &client.e), -1);
	assert_string_equal(client.e.text,
			    "TLS: localhost does not speak TLS on this port; use http://");
	assert_int_equal(tls_handshake(server.tls, STR("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
				       &server.out, &server.e), -1);
	assert_string_equal(server.e.text, "TLS: the client does not speak TLS");
	sides_close(&client, &server);
}

static void test_client_certificate(void **state)
{
	(void)state;
	for (int has = 0; has < 2; has++) {
		struct tls_opts c = { .ca_file = path_of("here.crt") };
		struct tls_opts s = { .is_server = true, .cert_file = path_of("here.crt"),
				      .key_file = path_of("here.key"),
				      .ca_file = path_of("other.crt") };
		struct side client, server;
		struct buf to_client = { 0 }, to_server = { 0 }, plain = { 0 };

		if (has) {
			c.cert_file = path_of("other.crt");
			c.key_file = path_of("other.key");
		}
		sides_open(&client, &server, &c, &s, "localhost");
		sides_shake(&client, &server, &to_client, &to_server, 0);
		assert_int_equal(client.rc, 1);
		assert_int_equal(server.rc, has ? 1 : -1);
		if (!has) {
			assert_int_equal(tls_read(client.tls, buf_str(&to_client), &plain,
						  &client.out, &client.e), -1);
			assert_string_equal(client.e.text,
					    "TLS: localhost demands a client certificate");
		}
		buf_release(&to_client);
		buf_release(&to_server);
		buf_release(&plain);
		sides_close(&client, &server);
	}
}

static void test_bad_files(void **state)
{
	const struct { struct tls_opts opts; const char *error; } rows[] = {
		{ { .ca_file = "/no/such" }, "CA file '/no/such': No such file or directory" },
		{ { .ca_file = path_of("junk") }, "junk': no certificate or crl found" },
		{ { .cert_file = "/no/such" }, "certificate file '/no/such': No such file" },
		{ { .cert_file = path_of("junk") }, "junk': no start line" },
		{ { .cert_file = path_of("here.crt"), .key_file = "/no/such" },
		  "key file '/no/such': No such file" },
		{ { .cert_file = path_of("here.crt"), .key_file = path_of("other.key") },
		  "values mismatch" },
		{ { .key_file = path_of("here.key") }, "needed in addition to the key file" },
		{ { .is_server = true }, "a certificate file is needed" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct err e = { 0 };

		assert_null(tls_config_new(&rows[i].opts, &e));
		assert_int_equal(e.code, ERR_USAGE);
		if (!strstr(e.text, rows[i].error))
			fail_msg("'%s' lacks '%s'", e.text, rows[i].error);
	}
}

/* One socket's handshake; the peer's bytes are waited for. */
static void socket_shake(struct side *s, int fd)
{
	char data[4096];
	int64_t stamp;

	while (s->rc == 0) {
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		ssize_t n = poll(&wait, 1, 0) == 1 ? sock_recv(fd, data, sizeof(data), &stamp) : 0;

		assert_true(n >= 0);
		s->rc = tls_handshake(s->tls, (struct str){ data, (size_t)n }, &s->out, &s->e);
		if (s->out.len)
			assert_int_equal(sock_send(fd, buf_str(&s->out)), s->out.len);
		buf_reset(&s->out);
		if (n == 0)
			return;
	}
}

/* Over loopback TCP: the read that brings a record carries the kernel's stamp. */
static void test_stamps(void **state)
{
	struct tls_opts c = { .ca_file = path_of("here.crt") };
	struct tls_opts s = { .is_server = true, .cert_file = path_of("here.crt"),
			      .key_file = path_of("here.key") };
	struct sock_addr addr[SOCK_ADDRS_MAX];
	struct side client, server;
	struct buf plain = { 0 };
	struct err e;
	struct pollfd wait = { .events = POLLIN };
	char data[4096];
	int64_t stamp = 0;
	int keep, listener, a, b;
	ssize_t n;

	(void)state;
	keep = sock_stamps_on(&e);
	assert_int_equal(sock_resolve("127.0.0.1", 0, addr, &e), 1);
	listener = sock_listen(&addr[0], 1, &e);
	a = sock_connect(&addr[0], true, &e);
	wait.fd = listener;
	assert_int_equal(poll(&wait, 1, 1000), 1);
	b = sock_accept(listener, true);
	assert_true(sock_is_connected(a));
	assert_false(sock_is_connected(listener));
	sides_open(&client, &server, &c, &s, "127.0.0.1");
	for (int i = 0; i < 2000 && (client.rc == 0 || server.rc == 0); i++) {
		socket_shake(&client, a);
		socket_shake(&server, b);
		usleep(100);
	}
	assert_int_equal(client.rc, 1);
	assert_int_equal(server.rc, 1);
	assert_int_equal(tls_write(server.tls, STR("data: x\n\n"), &server.out, &e), 0);
	assert_int_equal(sock_send(b, buf_str(&server.out)), server.out.len);
	wait.fd = a;
	assert_int_equal(poll(&wait, 1, 1000), 1);
	n = sock_recv(a, data, sizeof(data), &stamp);
	assert_true(n > 0);
	assert_true(keep < 0 || stamp > 0);
	assert_int_equal(tls_read(client.tls, (struct str){ data, (size_t)n }, &plain,
				  &client.out, &e), 1);
	assert_true(str_is(buf_str(&plain), "data: x\n\n"));
	buf_release(&plain);
	sides_close(&client, &server);
	sock_close(a);
	sock_close(b);
	sock_close(listener);
	sock_close(keep);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_verification),
		cmocka_unit_test(test_exchange),
		cmocka_unit_test(test_early_data),
		cmocka_unit_test(test_wrong_peer),
		cmocka_unit_test(test_client_certificate),
		cmocka_unit_test(test_bad_files),
		cmocka_unit_test(test_stamps),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
