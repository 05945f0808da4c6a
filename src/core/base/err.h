/* SPDX-License-Identifier: Apache-2.0 */
/*
 * err.h - one sentence about what went wrong, filled where it happened.
 *
 * A function that can fail returns -1 (or NULL) and fills a struct err given by
 * the caller; on success the err is untouched. Callers may add context in front
 * with err_wrap(). Bugs are assertions, never errors. Secrets are hidden (redact.h).
 * Also debugging lines (TRACE).
 */
#pragma once
#include <stdio.h>

enum err_code {
	ERR_NONE,
	ERR_USAGE,     /* the user's mistake on the command line or in a config: exit 2 */
	ERR_RUN,       /* what upstream checks at run time: exit 1 */
	ERR_IO,        /* files, disk: exit 1 */
	ERR_NET,       /* sockets, TLS, HTTP: exit 1 */
	ERR_PARSE,     /* input that does not follow its format: exit 1 */
	ERR_LIMIT,     /* a named limit of ours was crossed: exit 1 */
	ERR_CANCELLED, /* the caller asked to stop: exit 130 */
};

struct err {
	enum err_code code;
	char text[1024];
};

/* Fills e (may be NULL) and returns -1, so a failing function can end in one line. */
__attribute__((format(printf, 3, 4)))
int err_set(struct err *e, enum err_code code, const char *fmt, ...);

/* Puts "<context>: " in front of the text; returns -1. */
__attribute__((format(printf, 2, 3)))
int err_wrap(struct err *e, const char *fmt, ...);

/* Appends to the text; returns -1. */
__attribute__((format(printf, 2, 3)))
int err_add(struct err *e, const char *fmt, ...);

/* The exit status for bench verbs (run-time errors 1, usage 2, cancelled 130). */
int err_exit_status(const struct err *e);

/* ---- Debugging lines ---- */

/*
 * Debugging lines by category: --trace net,load,run,token.
 *
 * The only global of the program besides the version; written once at start.
 */

#define TRACE_CATEGORIES(X) X(net) X(load) X(run) X(token)

#define X(name) TRACE_BIT_##name,
enum trace_bit { TRACE_CATEGORIES(X) TRACE_BITS };
#undef X

extern unsigned trace_mask;

/* Comma list of categories, or "all"; -1 when a name is unknown. */
int trace_enable(const char *list);

#define TRACE(cat, ...)                                                        \
	do {                                                                   \
		if (trace_mask & 1u << TRACE_BIT_##cat)                        \
			fprintf(stderr, #cat ": " __VA_ARGS__);                \
	} while (0)
