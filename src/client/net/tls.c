/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls.c - see tls.h.
 *
 * OpenSSL reads and writes through a BIO of our own that takes from the slice and appends to the
 * buffer of the call in progress: no copy in between and no memory kept per connection. OpenSSL
 * itself keeps an incomplete record, so a slice is always used up, with one exception: what follows
 * the last handshake message is kept until the first tls_read.
 */
#include "client/net/tls.h"

#include <arpa/inet.h>
#include <assert.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/mem.h"

#define RECORD_BYTES 16384 /* the most plaintext one TLS record holds */

struct tls_config {
	SSL_CTX *ctx;
	BIO_METHOD *method;
	bool is_server;
};

struct tls {
	SSL *ssl;
	char *host;       /* NULL on a server */
	struct str in;    /* of the call in progress */
	struct buf *out;  /* of the call in progress */
	struct buf early; /* came with the end of the handshake */
	bool is_server;
};

/* ---- the BIO ---- */

static int bio_read(BIO *bio, char *data, int cap)
{
	struct tls *t = BIO_get_data(bio);
	size_t n = t->in.n < (size_t)cap ? t->in.n : (size_t)cap;

	BIO_clear_retry_flags(bio);
	if (n == 0) {
		BIO_set_retry_read(bio);
		return -1;
	}
	memcpy(data, t->in.p, n);
	t->in.p += n;
	t->in.n -= n;
	return (int)n;
}

static int bio_write(BIO *bio, const char *data, int n)
{
	struct tls *t = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	buf_add(t->out, data, (size_t)n);
	return t->out->is_over ? -1 : n;
}

static long bio_ctrl(BIO *bio, int command, long number, void *pointer)
{
	(void)bio, (void)number, (void)pointer;
	return command == BIO_CTRL_FLUSH;
}

/* ---- configuration ---- */

/* OpenSSL's first error: the cause, while later entries are only its context. */
static const char *first_reason(void)
{
	unsigned long code = ERR_peek_error();
	const char *reason;

	if (code && ERR_SYSTEM_ERROR(code))
		return strerrordesc_np(ERR_GET_REASON(code));
	reason = code ? ERR_reason_error_string(code) : NULL;
	return reason ? reason : "unknown reason";
}

static int file_fail(const char *what, const char *path, struct err *e)
{
	return err_set(e, ERR_USAGE, "TLS: cannot use %s '%s': %s", what, path, first_reason());
}

/* An encrypted key is refused; OpenSSL would ask for its password on the terminal. */
static int no_password(char *data, int cap, int is_writing, void *arg)
{
	(void)data, (void)cap, (void)is_writing, (void)arg;
	return -1;
}

static int alpn_select(SSL *ssl, const unsigned char **out, unsigned char *out_n,
		       const unsigned char *in, unsigned in_n, void *arg)
{
	(void)ssl, (void)arg;
	for (unsigned at = 0; at < in_n; at += 1u + in[at])
		if (in[at] == 8 && at + 9 <= in_n && memcmp(in + at + 1, "http/1.1", 8) == 0) {
			*out = in + at + 1;
			*out_n = 8;
			return SSL_TLSEXT_ERR_OK;
		}
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/*
 * OpenSSL looks for certificates in a folder that was chosen when it was built. If that does not
 * exist and no variable names another, the bundles of the usual distributions are tried: the
 * portable program has OpenSSL inside and runs on all of them. NULL: OpenSSL's own folder is
 * there, or no bundle is.
 */
static const char *other_bundle(void)
{
	static const char *const known[] = {
		"/etc/ssl/certs/ca-certificates.crt", /* Debian, Ubuntu, Arch, Alpine */
		"/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora, RHEL */
		"/etc/ssl/ca-bundle.pem",             /* SUSE */
		"/etc/ssl/cert.pem",                  /* Alpine */
	};
	bool is_own = getenv(X509_get_default_cert_file_env()) ||
		      getenv(X509_get_default_cert_dir_env()) ||
		      access(X509_get_default_cert_file(), R_OK) == 0 ||
		      access(X509_get_default_cert_dir(), R_OK) == 0;

	for (size_t i = 0; !is_own && i < sizeof(known) / sizeof(*known); i++)
		if (access(known[i], R_OK) == 0)
			return known[i];
	return NULL;
}

static int config_trust(SSL_CTX *ctx, const struct tls_opts *opts, struct err *e)
{
	const char *bundle;

	if (opts->ca_file && SSL_CTX_load_verify_file(ctx, opts->ca_file) != 1)
		return file_fail("CA file", opts->ca_file, e);
	if (opts->is_insecure || (opts->is_server && !opts->ca_file)) {
		SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, NULL);
		return 0;
	}
	bundle = opts->ca_file ? NULL : other_bundle();
	if (bundle && SSL_CTX_load_verify_file(ctx, bundle) != 1)
		return file_fail("CA file", bundle, e);
	if (!opts->ca_file && !bundle && SSL_CTX_set_default_verify_paths(ctx) != 1)
		return err_set(e, ERR_NET, "TLS: cannot open the system's certificate store: %s",
			       first_reason());
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	return 0;
}

static int config_identity(SSL_CTX *ctx, const struct tls_opts *opts, struct err *e)
{
	const char *key_file = opts->key_file ? opts->key_file : opts->cert_file;

	if (!opts->cert_file) {
		if (!opts->is_server && !opts->key_file)
			return 0;
		return err_set(e, ERR_USAGE, "TLS: a certificate file is needed%s",
			       opts->key_file ? " in addition to the key file" : "");
	}
	SSL_CTX_set_default_passwd_cb(ctx, no_password);
	if (SSL_CTX_use_certificate_chain_file(ctx, opts->cert_file) != 1)
		return file_fail("certificate file", opts->cert_file, e);
	if (SSL_CTX_use_PrivateKey_file(ctx, key_file, SSL_FILETYPE_PEM) != 1)
		return file_fail("key file", key_file, e);
	if (SSL_CTX_check_private_key(ctx) != 1)
		return err_set(e, ERR_USAGE, "TLS: the key in '%s' does not belong to the "
			       "certificate in '%s'", key_file, opts->cert_file);
	return 0;
}

static int config_fill(struct tls_config *c, const struct tls_opts *opts, struct err *e)
{
	static const unsigned char alpn[] = "\x08http/1.1";

	c->ctx = SSL_CTX_new(opts->is_server ? TLS_server_method() : TLS_client_method());
	c->method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "slice");
	if (!c->ctx || !c->method)
		return err_set(e, ERR_NET, "TLS: cannot start OpenSSL: %s", first_reason());
	BIO_meth_set_read(c->method, bio_read);
	BIO_meth_set_write(c->method, bio_write);
	BIO_meth_set_ctrl(c->method, bio_ctrl);
	SSL_CTX_set_min_proto_version(c->ctx, TLS1_2_VERSION);
	SSL_CTX_set_options(c->ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_mode(c->ctx, SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_session_cache_mode(c->ctx, SSL_SESS_CACHE_OFF);
	if (opts->is_server) {
		/* Tickets are sent as other servers send them: clients must cope. */
		SSL_CTX_set_alpn_select_cb(c->ctx, alpn_select, NULL);
	} else {
		SSL_CTX_set_alpn_protos(c->ctx, alpn, sizeof(alpn) - 1);
	}
	if (config_trust(c->ctx, opts, e) < 0)
		return -1;
	return config_identity(c->ctx, opts, e);
}

struct tls_config *tls_config_new(const struct tls_opts *opts, struct err *e)
{
	struct tls_config *c = mem_alloc(sizeof(*c));

	ERR_clear_error();
	c->is_server = opts->is_server;
	if (config_fill(c, opts, e) < 0) {
		tls_config_free(c);
		c = NULL;
	}
	ERR_clear_error();
	return c;
}

void tls_config_free(struct tls_config *c)
{
	if (!c)
		return;
	SSL_CTX_free(c->ctx);
	BIO_meth_free(c->method);
	free(c);
}

/* ---- a server of our own ---- */

static X509 *sign_own(EVP_PKEY *key)
{
	X509 *x = X509_new();
	X509_NAME *name = x ? X509_get_subject_name(x) : NULL;

	if (!name || X509_set_version(x, 2) != 1 ||
	    ASN1_INTEGER_set(X509_get_serialNumber(x), 1) != 1 ||
	    !X509_gmtime_adj(X509_getm_notBefore(x), -60) ||
	    !X509_gmtime_adj(X509_getm_notAfter(x), 86400) ||
	    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
				       (const unsigned char *)"127.0.0.1", -1, -1, 0) != 1 ||
	    X509_set_issuer_name(x, name) != 1 || X509_set_pubkey(x, key) != 1 ||
	    X509_sign(x, key, EVP_sha256()) == 0) {
		X509_free(x);
		return NULL;
	}
	return x;
}

/* Writes the content of a memory BIO to a file. */
static int save_pem(BIO *pem, const char *path, mode_t mode, struct err *e)
{
	char *text;
	long n = BIO_get_mem_data(pem, &text);

	return file_write_atomic_mode(path, (struct str){ text, (size_t)n }, mode, e);
}

int tls_make_certificate(const char *cert_file, const char *key_file, struct err *e)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *x = key ? sign_own(key) : NULL;
	BIO *cert = BIO_new(BIO_s_mem()), *secret = BIO_new(BIO_s_mem());
	int rc;

	if (!x || !cert || !secret || PEM_write_bio_X509(cert, x) != 1 ||
	    PEM_write_bio_PrivateKey(secret, key, NULL, NULL, 0, NULL, NULL) != 1)
		rc = err_set(e, ERR_RUN, "OpenSSL cannot make a certificate");
	else
		rc = save_pem(cert, cert_file, 0644, e) < 0 ||
		     save_pem(secret, key_file, 0600, e) < 0 ? -1 : 0;
	BIO_free(secret);
	BIO_free(cert);
	X509_free(x);
	EVP_PKEY_free(key);
	ERR_clear_error();
	return rc;
}

/* ---- connections ---- */

/* Whom to expect: addresses are compared with the certificate's, names are sent (SNI) too. */
static int expect_host(SSL *ssl, const char *host)
{
	unsigned char address[sizeof(struct in6_addr)];

	if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host);
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

struct tls *tls_new(struct tls_config *c, const char *host, struct err *e)
{
	struct tls *t = mem_alloc(sizeof(*t));
	BIO *bio = NULL;

	assert(c->is_server == !host);
	ERR_clear_error();
	t->is_server = c->is_server;
	t->host = mem_text(host);
	t->ssl = SSL_new(c->ctx);
	if (t->ssl)
		bio = BIO_new(c->method);
	if (!bio)
		goto fail;
	BIO_set_data(bio, t);
	BIO_set_init(bio, 1);
	SSL_set_bio(t->ssl, bio, bio);
	if (host && expect_host(t->ssl, host) != 1)
		goto fail;
	if (host)
		SSL_set_connect_state(t->ssl);
	else
		SSL_set_accept_state(t->ssl);
	return t;
fail:
	err_set(e, ERR_NET, "TLS: cannot prepare a connection%s%s: %s", host ? " to " : "",
		host ? host : "", first_reason());
	ERR_clear_error();
	tls_free(t);
	return NULL;
}

void tls_free(struct tls *t)
{
	if (!t)
		return;
	SSL_free(t->ssl);
	buf_release(&t->early);
	free(t->host);
	free(t);
}

static void call_begin(struct tls *t, struct str in, struct buf *out)
{
	ERR_clear_error();
	t->in = in;
	t->out = out;
}

/* Reports why the connection failed, if not because of the certificate. */
static int protocol_fail(struct tls *t, const char *doing, struct err *e)
{
	unsigned long code = ERR_peek_error();
	int reason = ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) : 0;
	const char *peer = t->is_server ? "the client" : t->host;

	if (t->out->is_over)
		return err_set(e, ERR_LIMIT, "TLS: too much data to send to %s at once", peer);
	if (t->is_server && (reason == SSL_R_HTTP_REQUEST || reason == SSL_R_WRONG_VERSION_NUMBER))
		return err_set(e, ERR_NET, "TLS: the client does not speak TLS");
	if (!t->is_server && reason == SSL_R_WRONG_VERSION_NUMBER)
		return err_set(e, ERR_TLS_SCHEME, "TLS: %s does not speak TLS on this port; "
			       "use http://", peer);
	if (reason == SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED)
		return err_set(e, ERR_NET, "TLS: %s demands a client certificate", peer);
	return err_set(e, ERR_NET, "TLS: %s %s failed: %s", doing, peer, first_reason());
}

static int handshake_fail(struct tls *t, struct err *e)
{
	long verdict = SSL_get_verify_result(t->ssl);
	const char *why = X509_verify_cert_error_string(verdict);

	if (verdict == X509_V_OK || SSL_get_verify_mode(t->ssl) == SSL_VERIFY_NONE)
		return protocol_fail(t, "handshake with", e);
	if (t->is_server)
		return err_set(e, ERR_NET, "TLS: the client's certificate is not trusted: %s",
			       why);
	if (verdict == X509_V_ERR_HOSTNAME_MISMATCH || verdict == X509_V_ERR_IP_ADDRESS_MISMATCH)
		return err_set(e, ERR_TLS_CERTIFICATE, "TLS: the server at %s has a certificate for another "
			       "name: %s; use --insecure to connect all the same", t->host, why);
	return err_set(e, ERR_TLS_CERTIFICATE, "TLS: certificate of %s is not trusted: %s; use --cacert FILE "
		       "or --insecure", t->host, why);
}

int tls_handshake(struct tls *t, struct str in, struct buf *out, struct err *e)
{
	const unsigned char *alpn;
	unsigned alpn_n;
	int rc;

	call_begin(t, in, out);
	rc = SSL_do_handshake(t->ssl);
	if (rc != 1 && SSL_get_error(t->ssl, rc) == SSL_ERROR_WANT_READ)
		return 0;
	if (rc != 1)
		return handshake_fail(t, e);
	buf_add_str(&t->early, t->in);
	SSL_get0_alpn_selected(t->ssl, &alpn, &alpn_n);
	if (alpn_n && (alpn_n != 8 || memcmp(alpn, "http/1.1", 8) != 0))
		return err_set(e, ERR_NET, "TLS: %s chose protocol '%.*s', expected http/1.1",
			       t->host, (int)alpn_n, (const char *)alpn);
	return 1;
}

/* Decrypts the input of the call in progress. */
static int read_all(struct tls *t, struct buf *plain, struct err *e)
{
	for (;;) {
		size_t n = 0;
		int rc;

		if (buf_reserve(plain, RECORD_BYTES) < 0)
			return err_set(e, ERR_LIMIT, "TLS: more than %zu bytes received at once",
				       plain->len);
		rc = SSL_read_ex(t->ssl, plain->data + plain->len, RECORD_BYTES, &n);
		if (rc == 1) {
			plain->len += n;
			plain->data[plain->len] = 0;
			continue;
		}
		switch (SSL_get_error(t->ssl, rc)) {
		case SSL_ERROR_WANT_READ:
			return 1;
		case SSL_ERROR_ZERO_RETURN:
			return 0;
		default:
			return protocol_fail(t, "reading from", e);
		}
	}
}

int tls_read(struct tls *t, struct str in, struct buf *plain, struct buf *out, struct err *e)
{
	int rc = 1;

	if (t->early.len) {
		call_begin(t, buf_str(&t->early), out);
		rc = read_all(t, plain, e);
		buf_release(&t->early);
	}
	if (rc != 1 || in.n == 0)
		return rc;
	call_begin(t, in, out);
	return read_all(t, plain, e);
}

int tls_write(struct tls *t, struct str plain, struct buf *out, struct err *e)
{
	size_t n = 0;

	if (plain.n == 0)
		return 0;
	call_begin(t, (struct str){ NULL, 0 }, out);
	if (SSL_write_ex(t->ssl, plain.p, plain.n, &n) != 1)
		return protocol_fail(t, "writing to", e);
	assert(n == plain.n);
	return 0;
}

void tls_close(struct tls *t, struct buf *out)
{
	call_begin(t, (struct str){ NULL, 0 }, out);
	if (SSL_is_init_finished(t->ssl))
		SSL_shutdown(t->ssl);
	ERR_clear_error();
}

const char *tls_version(const struct tls *t)
{
	return SSL_get_version(t->ssl);
}
