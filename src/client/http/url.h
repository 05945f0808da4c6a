/* SPDX-License-Identifier: Apache-2.0 */
/*
 * url.h - where a server is: URLs, proxies and the exceptions from them.
 *
 *   http://HOST[:PORT][/PATH][?QUERY]     https://... the same
 *   unix:/PATH/TO/SOCKET                  everything after the colon is the socket's
 *                                         path (unix:///PATH is the same)
 *   http+unix://%2FPATH%2FTO%2FSOCKET[/PATH][?QUERY]
 *
 * Path and query are kept as written: a base URL and an endpoint are joined by
 * plain concatenation, so a trailing slash of the base gives "//". A user name
 * or password, a fragment and other schemes are refused, each with a sentence
 * that does not repeat the password.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/str.h"

#define URL_HOST_BYTES 256   /* a DNS name has at most 253 characters */
#define URL_SOCKET_BYTES 108 /* struct sockaddr_un's path */

struct url {
	bool is_tls;
	bool is_unix;
	uint16_t port;                    /* 0 when is_unix */
	char host[URL_HOST_BYTES];        /* IPv6 without brackets; "localhost" when is_unix */
	char socket[URL_SOCKET_BYTES];    /* when is_unix */
	struct str path;                  /* borrowed from the text; path and query, may be empty */
};

int url_parse(struct str text, struct url *u, struct err *e);

/* Appends path as a request target ("/" if it lacks one); unsendable bytes as %XX. */
void url_add_target(struct buf *out, struct str path);
/* Value of the Host header: brackets around IPv6, the port only when it is not the default. */
void url_add_host(struct buf *out, const struct url *u);
/* "HOST:PORT", for CONNECT and for messages; "unix:/PATH" for a socket. */
void url_add_authority(struct buf *out, const struct url *u);

/* Percent-encodes everything but letters, digits and -._~ */
void url_add_encoded(struct buf *out, struct str s);
/* The reverse; false when a % is not followed by two hexadecimal digits. */
bool url_add_decoded(struct buf *out, struct str s);

/*
 * The value of HTTP_PROXY or HTTPS_PROXY: "http://HOST[:PORT]" or "HOST:PORT".
 * Other kinds of proxy and those with a password are refused (e names them).
 */
int url_parse_proxy(struct str text, struct url *u, struct err *e);
/*
 * True when the value of NO_PROXY exempts u. Entries are separated by commas or blanks: "*", a
 * host, ".suffix", "*.suffix" or an address, each optionally with ":PORT". A host also exempts its
 * subdomains, as in curl and Python.
 */
bool url_is_proxy_exempt(const struct url *u, struct str no_proxy);
