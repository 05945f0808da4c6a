/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web_internal.h - a running server, one request of it, and what its files call in each other.
 * Private to web/.
 *
 *   exchange_new ─► exchange_begin ─► exchange_body ... ─► exchange_end ─► exchange_work ─► sent
 *                   head is there     piece by piece       body is whole   by a worker
 *
 * A function that refuses a request fills in its answer and sets `is_answered`. All calls for one
 * exchange are made by one thread at a time.
 */
#pragma once
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "web/auth.h"
#include "web/route.h"
#include "web/web.h"

#define EXCHANGE_LATE_NS 1000000000   /* what a wrong token costs */

/* Why a request was refused that would have been answered under less load. */
enum refused { REFUSED_QUEUE, REFUSED_USER, REFUSED_BYTES, REFUSED_STREAMS, REFUSED_REASONS };

/* ---- answers.c ---- */

#define ANSWERS_KEPT_MAX 64
#define ANSWERS_KEPT_BYTES_MAX (16u << 20) /* with their keys */
#define ANSWER_KEPT_BYTES_MAX (4u << 20)   /* larger ones are made again each time */
#define ANSWER_KEY_BYTES_MAX (1u << 20)
#define ANSWER_MAKERS_MAX 8                /* further ones make what others may be making */

struct kept_answer { struct buf key, members; uint64_t used; }; /* key empty: none */
struct answers {
	pthread_mutex_t lock;      /* guards all */
	struct kept_answer kept[ANSWERS_KEPT_MAX];
	size_t n, bytes;
	uint64_t uses;             /* counted, for the order of use */
	uint64_t version;          /* of the data that all of them are about */
	struct answer_maker { uint64_t version; struct str key; } maker[ANSWER_MAKERS_MAX];
	size_t n_makers;
	pthread_cond_t made;
};
void answers_begin(struct answers *s);
void answers_release(struct answers *s);
/*
 * Puts the members of the answer to this key; waits for the thread that is making it. false: the
 * caller makes it, and calls answers_end with the same key, whether that worked or not.
 */
bool answers_get(struct answers *s, uint64_t version, struct str key, struct json_writer *w);
/*
 * members: as they were written, without braces. Too large ones are not kept, nor those about older
 * data; a newer version drops all of the older one.
 */
void answers_put(struct answers *s, uint64_t version, struct str key, struct str members);
void answers_end(struct answers *s, uint64_t version, struct str key);
/*
 * Computes the first page's answers before the first request, at the start and whenever the data
 * has not changed for three seconds. Called repeatedly, by one thread.
 */
struct prepared {
	uint64_t version, seen; /* of the data: asked about, and at the last call */
	int64_t seen_ns;        /* CLOCK_MONOTONIC: since when */
};
void answers_prepare(struct web *w);

struct web {
	struct web_opts o;             /* texts live in arena */
	struct arena arena;
	struct store *store;           /* borrowed */
	_Atomic(struct auth *) auth;   /* the newest; those before it may still be in use */
	struct web_log *log;
	struct web_metrics *metrics;
	struct web_work *work;
	struct web_pulse *pulse;
	struct web_carrier *carrier;   /* server.c's own */
	struct answers kept;           /* to analyses */
	struct prepared prepared;
	struct upload_worker *upload;
	struct launch *launch;
	struct live *live;
	const struct route_params *params; /* of each route */
	int listener;
	unsigned port;
	char url[128];
	char made_token[AUTH_MADE_CHARS + 1]; /* "" none */
	char *socket;                  /* path of a Unix socket that is ours to remove; in arena */
	struct file_id { dev_t dev; ino_t ino; } socket_id;
	uint64_t boot;                 /* random: tags of another process's answers are not ours */
	int64_t began_ns;              /* CLOCK_REALTIME */
	_Atomic uint64_t requests;     /* begun; numbers them */
	_Atomic int64_t in_flight;     /* exchanges there are */
	_Atomic int64_t spooled;       /* bytes of bodies in files */
	_Atomic uint64_t job_changes;  /* grows when this process has changed a job */
	_Atomic int streams;
	struct meter answers;          /* bytes of all answers that are made or sent */
	_Atomic uint64_t refused[REFUSED_REASONS];
	_Atomic uint64_t errors;       /* lines of the log that are errors */
	_Atomic int64_t error_ns;      /* CLOCK_REALTIME: of the last of them; 0: none */
	_Atomic uint64_t slow, dropped; /* answers broken off: read too slowly, to make room */
	_Atomic int64_t open;          /* connections */
	_Atomic uint64_t evicted;      /* connections closed for being idle, slow, in the way */
	atomic_bool is_stopping;
};

/* ---- exchange.c ---- */

/* Values of headers; borrowed from the connection, p NULL when absent. */
struct exchange_head {
	struct str host, origin, authorization, cookie, content_type, content_encoding;
	struct str accept_encoding, if_none_match, range, if_range, length;
	size_t bytes;              /* of all of it */
	bool is_chunked;
};

struct exchange {
	struct web *web;
	struct arena arena;
	struct arena scratch;      /* the route's; gone before the answer is sent */
	uint64_t number;           /* names the request in the log and to the client */
	int64_t began_ns, ready_ns;
	const char *method;
	struct str target;         /* as sent */
	struct str raw_path, query;
	struct exchange_head head;
	char client[64];           /* address, for the log; "unix" */
	bool is_https;             /* X-Forwarded-Proto of a proxy that is believed */
	char local[64];            /* the address it was sent to; "": a Unix socket */
	uint64_t user;             /* tells apart those whose requests are counted: work.c */
	const struct web_route *route;
	size_t route_at;           /* in the web's table; SIZE_MAX: none */
	bool is_answered;          /* refused, or done by a quick route */
	bool is_discarding;        /* the rest of the body is dropped */
	bool has_begun, has_ended; /* head seen; body whole */
	bool is_gzip;              /* of body as it is now */
	bool is_large;             /* handled by the one thread for large bodies */
	uint64_t received, limit;  /* bytes of the body */
	struct buf body;           /* small ones */
	int spool_fd;              /* larger ones: an unnamed file; 0: none */
	struct str mapped;
	struct web_request request;
	struct web_answer answer;
	char etag[48];             /* "" none */
	int64_t not_before_ns;     /* CLOCK_MONOTONIC: the answer waits until then */
	uint64_t sent;             /* bytes of the answer's body */
	uint64_t file_at, file_bytes; /* answer.fd: what part of it */
	bool is_stream_counted;
	atomic_bool is_gone;       /* its client closed the connection while a worker answers */
	void *carrier;             /* server.c's connection */
	struct exchange *next;     /* in a queue */
};

struct exchange *exchange_new(struct web *w, const char *target);
void exchange_free(struct exchange *x);

/* Checks everything that the head contains. */
void exchange_begin(struct exchange *x);
/* False: close this connection. */
bool exchange_body(struct exchange *x, struct str bytes);
/* True: a worker is needed, or the answer must wait; false: the answer is there. */
bool exchange_end(struct exchange *x);
void exchange_work(struct exchange *x);

/* Answers with application/problem+json, in place of what there was. */
__attribute__((format(printf, 3, 4)))
void exchange_refuse(struct exchange *x, unsigned status, const char *fmt, ...);
/* ETag, compression and ranges, once the answer is complete. */
void exchange_finish(struct exchange *x);
void exchange_add_header(struct exchange *x, const char *name, const char *value);
bool exchange_takes_gzip(const struct exchange *x);
/* Whether one of the tags of If-None-Match is ours. */
bool exchange_has_tag(const struct exchange *x, const char *etag);
/* The next key of the query string, decoded; false at its end. rest begins as the query. */
bool request_key(const struct web_request *r, struct str *rest, struct str *key);

/* ---- routes.c ---- */

struct route_found {
	const struct web_route *route; /* NULL: no such path, or not with this method */
	size_t at;                     /* of all rows */
	struct str id[2];              /* decoded, in the arena */
	char allow[64];                /* methods of the path; "" for an unknown path */
};
void routes_find(struct str raw_path, const char *method, struct arena *a,
		 struct route_found *out);
size_t routes_count(void);
const struct web_route *routes_at(size_t i);

int params_open(struct web *w, struct err *e);
/* -1: the request has a parameter or a member that its route does not declare. Its body is read. */
int params_check(struct exchange *x, struct err *e);

/* The API's own description: an OpenAPI 3.1 document, generated from schema/api.json. */
extern const char data_api_text[];
int data_api(const struct web_request *r, struct web_answer *a, struct err *e);

void metrics_open(struct web *w);
void metrics_close(struct web *w);
void metrics_count(struct web *w, const struct exchange *x, unsigned status, int64_t took_ns);

/* Files that are part of the program (tools/app-assets.sh); gzip. A NULL name ends them. */
struct web_asset {
	const char *name;             /* below the root: "assets/index-4f2a.js" */
	const char *packed;
	uint64_t packed_bytes, bytes;
};
extern const struct web_asset web_assets[];   /* none in a build without pages */
extern const struct web_asset web_examples[]; /* configurations: examples/NAME.yaml */

/* The front end's file, or its page for a path that is one of its views. */
void static_answer(struct exchange *x);
/* Content-Type by the end of a name. */
const char *static_type(struct str name);

/* ---- auth.c ---- */

/* Fills who and role of the request. False: the user may not do this, which is answered. */
bool login_check(struct exchange *x);
/*
 * The address of a page with a token in its query string, as the dashboard prints it: answered with
 * the cookie and the same address without the token, so that it is in no history and no Referer.
 * False: there is no token.
 */
bool login_by_address(struct exchange *x);

/* ---- web.c ---- */

/* One line of JSON for a finished request; status 0: the connection broke. */
void log_exchange(struct web *w, const struct exchange *x, unsigned status);
/*
 * level: "info", "warning", "notice", "error"; without a log, the last two are written to stderr.
 * x NULL: the line does not concern a single request.
 */
void log_say(struct web *w, const struct exchange *x, const char *level, const char *text);

/* The store's latest report, and when it came; reading it does not ask the store. */
struct pulse {
	bool is_there;                 /* it answers, with the contents that the dashboard knows */
	bool is_replaced;              /* store_is_replaced */
	double silent_s;               /* since it answered last */
	double store_bytes;            /* NAN: not known yet */
	double free_bytes;             /* on the disk that fills up; NAN: not known */
	struct job_count jobs[STORE_JOB_COUNTS_MAX];
	size_t n_jobs;
};
/* Asks the store when it is time to; called a few times a second, may take long. */
void pulse_look(struct web *w);
void pulse_get(struct web *w, struct pulse *out);

/* Whether requests from this address ("unix": no address) name their client themselves. */
bool client_is_proxy(const struct web *w, const char *address);
/* The address that the last proxy has put into X-Forwarded-For; false: not an address. */
bool client_forwarded(struct str header, struct sockaddr_storage *out);
/* ERR_USAGE: a proxy that is not an address, a host name with a scheme or a port. */
int client_check_names(const struct web_opts *o, struct err *e);
/*
 * "127.0.0.1", "::1": an address without its port. IPv4 in IPv6 is written as IPv4; "" for anything
 * else.
 */
void server_address_text(const struct sockaddr_storage *address, char out[static 46]);
/*
 * Whether two connections count as one client: they have the same IPv4 address, also where it came
 * as IPv6, or the same /64 of IPv6, which is one household's.
 */
bool server_is_same_client(const struct sockaddr_storage *a, const struct sockaddr_storage *b);
/* A number that is equal for the same client. */
uint64_t server_client_key(const struct sockaddr_storage *address);

/* ---- work.c ---- */

int work_open(struct web *w, struct err *e);
/* False: x is refused, too many wait already. */
bool work_submit(struct web *w, struct exchange *x);
/* Changes the count of open answers of x's user (+1, -1); returns it. */
unsigned work_count_stream(struct web *w, const struct exchange *x, int change);
struct work_figures { size_t waiting, busy; };
struct work_figures work_figures(struct web *w);
/* Hands x back to its carrier, at once or from not_before_ns on. */
void work_done(struct web *w, struct exchange *x);
/* Refuses what waits; false: a worker is still busy after that many milliseconds. */
bool work_stop(struct web *w, int wait_ms);
void work_close(struct web *w);

/* ---- server.c ---- */

/* Makes what carrier_tick needs; call before there are threads. */
void carrier_make(struct web *w);
/* Serves the socket w->listener. */
int carrier_open(struct web *w, struct err *e);
/* Accepts no more connections. */
void carrier_quiesce(struct web *w);
/* Ends; only event streams may still be suspended. */
void carrier_close(struct web *w);
/* x is answered: its connection continues. Any thread. */
void carrier_resume(struct web *w, struct exchange *x);
/* Closes connections that are too slow or idle; called a few times a second. */
void carrier_tick(struct web *w, int64_t now_ns);
/* Waiting event streams look for events, which may take long; called a few times a second. */
void carrier_look(struct web *w);

/* ---- live.c ---- */

void live_open(struct web *w);
void live_close(struct web *w); /* also of a server that never started */

/* ---- tags.c ---- */

/* "tags" of a run. */
int tags_put(const struct web_request *r, struct json_writer *w, int64_t run, struct err *e);
/* Conditions on the column "tag", anywhere in what is asked, become conditions on run_id. */
int tags_resolve(const struct web_request *r, struct json_value *v, struct err *e);

/* ---- upload.c ---- */

/* Hint for a file that is too large for one request. */
#define WEB_LARGER_FILES ". `profllm ingest FILE --server URL` sends a larger file of JSON lines, or with a " \
	"list of results, in pieces"

int upload_open(struct web *w, struct err *e);
bool upload_stop(struct web *w, int wait_ms);
void upload_close(struct web *w);
