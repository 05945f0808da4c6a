/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls.h - TLS through memory: ciphertext in and out as bytes, so that the program reads the sockets
 * itself and keeps the kernel's stamps. The only file that includes OpenSSL is net/tls.c.
 *
 * One struct tls_config per run (thread-safe; outlives its connections), one struct tls per
 * connection. TLS 1.2 and newer, ALPN http/1.1, no session resumption: every connection makes a
 * full handshake, like a first visitor.
 *
 * A server with a ca_file demands a client certificate. What is appended to out must be sent even
 * when a call fails: it is the alert that tells the peer why.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "core/base/err.h"
#include "core/base/str.h"

struct tls_config;
struct tls;

struct tls_opts {
	bool is_insecure;      /* no verification */
	const char *ca_file;   /* NULL: the system's store */
	const char *cert_file; /* client certificate, or the server's own */
	const char *key_file;
	bool is_server;
};
struct tls_config *tls_config_new(const struct tls_opts *opts, struct err *e);
void tls_config_free(struct tls_config *c);

/*
 * Writes a new key and a self-signed certificate for 127.0.0.1, valid for a day, as PEM; only the
 * user can read the key. For a server of our own whose certificate no client verifies.
 */
int tls_make_certificate(const char *cert_file, const char *key_file, struct err *e);

/* host: SNI and the name to verify (NULL on a server). */
struct tls *tls_new(struct tls_config *c, const char *host, struct err *e);
void tls_free(struct tls *t);

/*
 * Drives the handshake. in: ciphertext received (may be empty at the start);
 * ciphertext to send is appended to out. 1 done, 0 needs more, -1 failed (e is
 * one sentence: verification result, protocol error). After 1, call tls_read
 * once with nothing: data may have come together with the end of the handshake.
 */
int tls_handshake(struct tls *t, struct str in, struct buf *out, struct err *e);
/*
 * Ciphertext in; plaintext is appended to plain (which grows by one record, 16
 * KiB, at least: share it between connections). 1 open, 0 the peer closed cleanly,
 * -1 broken.
 */
int tls_read(struct tls *t, struct str in, struct buf *plain, struct buf *out, struct err *e);
/* Plaintext in; ciphertext appended to out. */
int tls_write(struct tls *t, struct str plain, struct buf *out, struct err *e);
/* Appends the closing message that should precede the end of a connection. */
void tls_close(struct tls *t, struct buf *out);
const char *tls_version(const struct tls *t);
