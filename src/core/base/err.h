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
	ERR_USAGE,     /* the user's mistake on the command line or in a file of theirs: exit 2 */
	ERR_RUN,       /* what upstream checks at run time: exit 1 */
	ERR_IO,        /* files, disk: exit 1 */
	ERR_NET,       /* sockets, TLS, HTTP: exit 1 */
	ERR_PARSE,     /* input that does not follow its format: exit 1 */
	ERR_LIMIT,     /* a named limit of ours was crossed: exit 1 */
	ERR_CANCELLED, /* the caller asked to stop: exit 130 */
	ERR_CODES,
#define X(name, topic, code) ERR_##name,
#define ERR_KINDS(X) \
	X(SERVER_UNREACHABLE, server_unreachable, NET) \
	X(HOST_UNKNOWN, host_unknown, NET) \
	X(PROXY_REFUSED, proxy_refused, NET) \
	X(TLS_SCHEME, tls_scheme, NET) \
	X(TLS_CERTIFICATE, tls_certificate, NET) \
	X(KEY_REFUSED, key_refused, NET) \
	X(MODEL_UNKNOWN, model_unknown, NET) \
	X(PATH_UNKNOWN, path_unknown, NET) \
	X(NO_SUCCESS, no_success, RUN) \
	X(URL_FORM, url_form, USAGE) \
	X(DISK_FULL, disk_full, IO) \
	X(PERMISSION_DENIED, permission_denied, IO) \
	X(TOKENIZER_MISSING, tokenizer_missing, IO) \
	X(TOKENIZER_UNREAD, tokenizer_unread, PARSE) \
	X(HUB_GATED, hub_gated, IO) \
	X(HUB_MISSING, hub_missing, IO) \
	X(HUB_TOKEN, hub_token, IO) \
	X(HUB_OFFLINE, hub_offline, IO) \
	X(HUB_FOREIGN, hub_foreign, NET) \
	X(DATASET_EMPTY, dataset_empty, RUN) \
	X(RECORD_FOREIGN, record_foreign, PARSE) \
	X(NO_RESULTS, no_results, RUN) \
	X(OPEN_FILES, open_files, RUN) \
	X(PORT_TAKEN, port_taken, RUN) \
	X(LOCKS_UNUSABLE, locks_unusable, IO) \
	X(NO_GPU, no_gpu, USAGE) \
	X(COMMAND_NOT_FOUND, command_not_found, USAGE) \
	X(CAPTURE_FORBIDDEN, capture_forbidden, NET) \
	X(TOKEN_FILE_NEEDED, token_file_needed, USAGE) \
	X(STORE_ADDRESS, store_address, USAGE) \
	X(STORE_BUSY, store_busy, IO) \
	X(STORE_DAMAGED, store_damaged, RUN) \
	X(STORE_FOREIGN, store_foreign, USAGE) \
	X(STORE_NEWER, store_newer, USAGE) \
	X(STORE_READ_ONLY, store_read_only, USAGE) \
	X(DATABASE_UNREACHABLE, database_unreachable, NET)
	ERR_KINDS(X)
#undef X
};

struct err {
	enum err_code code; /* always below ERR_CODES */
	enum err_code kind; /* an ERR_KINDS value with a help topic, or 0 */
	char text[1024];
};

/*
 * Fills e (may be NULL) and returns -1, so that a failing function can end in one line. code may
 * also be one of ERR_KINDS: e->kind is set to it and e->code to the code of its row. Texts that end
 * with the system's "No space left on device" or "Permission denied" get their kind from that.
 */
__attribute__((format(printf, 3, 4)))
int err_set(struct err *e, enum err_code code, const char *fmt, ...);

/* Puts "<context>: " in front of the text; returns -1. */
__attribute__((format(printf, 2, 3)))
int err_wrap(struct err *e, const char *fmt, ...);

/* Appends to the text; returns -1. */
__attribute__((format(printf, 2, 3)))
int err_add(struct err *e, const char *fmt, ...);

/*
 * e is about the content of a file that the user gave, which is theirs to correct: ERR_RUN and
 * ERR_PARSE become ERR_USAGE. Returns -1.
 */
int err_in_user_file(struct err *e);

/* The code to pass to err_set when why is reported again in other words: its kind, or its code. */
enum err_code err_again(const struct err *why);

/* The word for `profllm help WORD` that explains e; NULL: none. */
const char *err_topic(const struct err *e);

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
