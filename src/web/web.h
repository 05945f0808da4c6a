/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web.h - the dashboard as one HTTP server over one store.
 *
 *   polling threads (libmicrohttpd) ──► exchange ──► workers ──► routes ──► store, index, analysis
 *         heads, bodies, answers        exchange.h   work.c      route.h
 *
 * Polling threads never wait for a query: workers ask the store or the index while the connection
 * is suspended. When there are too many connections, idle ones are closed, the oldest first, so
 * that no client can keep others out by holding them open.
 */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "results/store/store.h"

#define WEB_CONNECTIONS_MAX 1024          /* at once; the oldest idle one makes room */
#define WEB_ADDRESS_CONNECTIONS_MAX 256   /* the same for one address that is not this machine's */
#define WEB_JSON_BYTES_MAX (4u << 20)     /* the body of a question */
#define WEB_FORM_BYTES_MAX (2ull << 30)   /* an upload of many files, or of traces */
#define WEB_SPOOL_BYTES_MAX (8ull << 30)  /* bodies on their way in, of all connections */
#define WEB_PARTS_MAX 10000               /* files of one upload */
#define WEB_HEAD_BYTES_MAX 32768          /* of a request: line and headers */
#define WEB_STREAMS_MAX 128               /* event streams and exports at once */
#define WEB_USER_STREAMS_MAX 32           /* of one user */
#define WEB_USER_WAITING_MAX 64           /* questions of one user that wait for a worker */
#define WEB_ANSWERS_BYTES_MAX (512ll << 20) /* of all answers that are made or sent */
#define WEB_ANSWER_BYTES_MAX (256u << 20) /* of one */
#define WEB_READ_BYTES_PER_S 1024         /* slower clients are disconnected */
#define WEB_READ_SECONDS 10               /* measured over this time */
#define WEB_STOP_SECONDS 10               /* for what is in flight when the server is stopped */
#define WEB_LAUNCHES_MAX 64
#define WEB_TOKEN_CHARS_MIN 16

struct web_names { const char *const *v; size_t n; };

struct web_opts {
	const char *listen;               /* "HOST:PORT", "[::1]:0", "unix:PATH" */
	/* NULL: a token is made, which needs a loopback address or a Unix socket. */
	const char *token_file;
	bool has_no_auth;                 /* no token either: as above, and no token_file */
	bool is_read_open;                /* reading needs no token */
	const char *const *host_name;     /* further names it is called by */
	size_t n_host_names;
	const char *const *proxy;         /* addresses whose X-Forwarded-For is believed */
	size_t n_proxies;
	const char *version;
	const char *log_path;             /* NULL: only errors are logged, on log_fd */
	int log_fd;
	const char *folder;               /* of jobs; made when needed */
	unsigned launches;                /* experiments at once; 0: none can be started */
	struct web_names launch_env;      /* variables that experiments have and may name, too */
	struct web_names include_dir;     /* folders whose files their configurations may include */
	struct web_names launch_command;  /* what they may start; none: anything */
	bool is_read_only;
	double live_lost_s;               /* after so much silence a live run is lost; 0: 60 s */
};

struct web;

/* Binds and checks, serves nothing yet. ERR_USAGE for wrong options. */
int web_open(const struct web_opts *o, struct web **out, struct err *e);
/* "http://127.0.0.1:8080", or "unix:PATH". */
const char *web_url(const struct web *w);
/* 0: a Unix socket. */
unsigned web_port(const struct web *w);
/* The token that was made; NULL: there is a token file, or none is needed. */
const char *web_token(const struct web *w);
/* Starts threads that serve this store, which must outlive the server. */
int web_start(struct web *w, struct store *store, struct err *e);
/*
 * Opens the log file again, for log rotation, and reads the file of tokens again. What cannot be
 * read is said in the log, and what was there before stays.
 */
void web_reload(struct web *w);
/*
 * Takes no more connections, finishes requests in progress, ends experiments that it started.
 * False: something was not over after WEB_STOP_SECONDS; the process has to end then, and nothing is
 * freed.
 */
bool web_stop(struct web *w);
/* After web_stop returned true, or without web_start. */
void web_free(struct web *w);
