/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web/auth.h - who may ask: tokens, and the names this server answers to. Pure but for reading the
 * token file.
 *
 * A token file has a token on each line, or a name and a token with a blank between them; # begins
 * a comment. Tokens are printable ASCII without blanks, quotes, commas, semicolons and backslashes,
 * so that they can be a cookie, and at least WEB_TOKEN_CHARS_MIN long. They are compared by their
 * digests in constant time.
 *
 * Against DNS rebinding a request must name this server by an address, as localhost, or by a name
 * that was given: a page of somebody else's can only lead a browser here by a name of its own.
 */
#pragma once
#include <stdbool.h>

#include "base/arena.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/str.h"

#define AUTH_TOKENS_MAX 64
#define AUTH_FILE_BYTES_MAX 65536
#define AUTH_COOKIE "profllm_token"

struct auth_token { struct str name; char digest[DIGEST_HEX]; };
struct auth {
	struct auth_token token[AUTH_TOKENS_MAX];
	size_t n;  /* 0: everybody may ask */
	struct arena arena;
};

int auth_read(struct auth *a, const char *path, struct err *e);
int auth_parse(struct auth *a, struct str text, struct err *e);
void auth_release(struct auth *a);
/* The name of whoever has this token; p NULL: nobody. */
struct str auth_who(const struct auth *a, struct str token);
/* The token a request carries: "Bearer T" of Authorization, else the cookie's; empty: none. */
struct str auth_carried(struct str authorization, struct str cookie);

/* host: a Host header. names: n further ones. */
bool auth_is_host(struct str host, const char *const *names, size_t n);
/* Whether a page of this origin may change things here: the origin is that of host. */
bool auth_is_origin(struct str origin, struct str host);
/* Host part of "HOST[:PORT]", brackets of IPv6 kept off; p NULL: malformed. */
struct str auth_host_part(struct str host);
/* 127.0.0.0/8, ::1, localhost. */
bool auth_is_loopback(struct str host);
