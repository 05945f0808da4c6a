/* SPDX-License-Identifier: Apache-2.0 */
/*
 * auth.h - who may ask, and what: tokens, their roles, and the host names this server accepts. Pure
 * except for reading the token file and making a token.
 *
 * A line of a token file is TOKEN, NAME TOKEN or NAME TOKEN ROLE, with blanks between; # begins a
 * comment. Tokens are printable ASCII without blanks, quotes, commas, semicolons and backslashes,
 * so that they can be a cookie, and at least WEB_TOKEN_CHARS_MIN long. They are compared by their
 * digests in constant time.
 *
 * Each role includes those before it. Without a role a token may do everything.
 *
 * Against DNS rebinding a request must name this server by the address that it was sent to, as
 * localhost if that is a loopback address, or by a configured name: a foreign page can only lead a
 * browser here by a name of its own.
 */
#pragma once
#include <stdbool.h>

#include "core/base/codec.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"

#define AUTH_TOKENS_MAX 64
#define AUTH_FILE_BYTES_MAX 65536
#define AUTH_MADE_BYTES 24                         /* of randomness in a token that is made */
#define AUTH_MADE_CHARS (2 * AUTH_MADE_BYTES)
#define AUTH_COOKIE "profllm_token"
#define AUTH_COOKIE_CHARS_MAX (sizeof(AUTH_COOKIE) + 7) /* with a port and a NUL */

enum auth_role { AUTH_NONE, AUTH_READ, AUTH_UPLOAD, AUTH_LAUNCH };

struct auth_token { struct str name; enum auth_role role; char digest[DIGEST_HEX]; };
struct auth {
	struct auth_token token[AUTH_TOKENS_MAX];
	size_t n;           /* 0: everybody may do everything */
	bool is_read_open;  /* reading needs no token */
	struct arena arena;
	struct auth *before; /* the tokens that these have replaced: web_reload */
};

/* "none", "read", "upload", "launch". */
const char *auth_role_name(enum auth_role role);
int auth_read(struct auth *a, const char *path, struct err *e);
int auth_parse(struct auth *a, struct str text, struct err *e);
/* A new random token of role launch, with the name "local", as users have without tokens. */
int auth_make(struct auth *a, char token[static AUTH_MADE_CHARS + 1], struct err *e);
void auth_release(struct auth *a);

/* token NULL: no valid one, so role is what everyone may do. */
struct auth_visitor { struct str who; enum auth_role role; const struct auth_token *token; };
/* The visitor with this token; empty: without any. */
struct auth_visitor auth_visit(const struct auth *a, struct str token);

/* T of an Authorization header "Bearer T"; empty: not such a header. */
struct str auth_bearer(struct str authorization);
/*
 * The cookie for pages of this Host header. Its name has the port, because browsers send a cookie
 * to every port of a host: two dashboards must not overwrite each other's.
 */
void auth_cookie_name(struct str host, char out[static AUTH_COOKIE_CHARS_MAX]);
/* The value of that cookie in a Cookie header; empty: it is not there. */
struct str auth_cookie(struct str header, const char *name);

/*
 * Whether host, a Host header, names this server. local: the address that the request was sent to,
 * "" over a Unix socket. names: n further names or addresses.
 */
bool auth_is_host(struct str host, const char *local, const char *const *names, size_t n);
/* Whether a page of this origin may change things here: whether the origin is that of host. */
bool auth_is_origin(struct str origin, struct str host);
/* Host part of "HOST[:PORT]", without the brackets of IPv6; p NULL: malformed. */
struct str auth_host_part(struct str host);
/* 127.0.0.0/8, ::1, localhost. */
bool auth_is_loopback(struct str host);
