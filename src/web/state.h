/* SPDX-License-Identifier: Apache-2.0 */
/* web/state.h - the parts of a running server that the files of web/ share. Private to web/. */
#pragma once
#include <pthread.h>
#include <sys/types.h>
#include <sys/socket.h>

#include "web/auth.h"
#include "web/exchange.h"
#include "web/web.h"

struct web_log;
struct web_metrics;
struct web_work;
struct web_carrier; /* server.c's own */
struct web_pulse;
struct upload_worker;
struct launch;
struct params;

/* Why a request was refused that would have been answered with less to do. */
enum refused { REFUSED_QUEUE, REFUSED_USER, REFUSED_BYTES, REFUSED_STREAMS, REFUSED_REASONS };

struct web {
	struct web_opts o;             /* texts live in arena */
	struct arena arena;
	struct store *store;           /* borrowed */
	struct auth auth;
	struct web_log *log;
	struct web_metrics *metrics;
	struct web_work *work;
	struct web_pulse *pulse;
	struct web_carrier *carrier;
	struct upload_worker *upload;
	struct launch *launch;
	const struct params *params;   /* of each route */
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
	_Atomic uint64_t slow, dropped; /* answers broken off: read too slowly, to make room */
	_Atomic int64_t open;          /* connections */
	_Atomic uint64_t evicted;      /* connections closed for being idle, slow, in the way */
	atomic_bool is_stopping;
};

/* ---- routes.c ---- */

struct route_found {
	const struct web_route *route; /* NULL: no such path, or not with this method */
	size_t at;                     /* of all rows */
	struct str id[2];              /* decoded, in the arena */
	char allow[64];                /* methods of the path; "" when there is no such path */
};
void routes_find(struct str raw_path, const char *method, struct arena *a,
		 struct route_found *out);
size_t routes_count(void);
const struct web_route *routes_at(size_t i);

/* ---- params.c, request.c ---- */

int params_open(struct web *w, struct err *e);
/* -1: the request has a parameter or a member that its route does not declare. Its body is read. */
int params_check(struct exchange *x, struct err *e);
/* The next key of the query string, decoded; false at its end. rest begins as the query. */
bool request_key(const struct web_request *r, struct str *rest, struct str *key);

/* ---- static.c ---- */

/* The front end's file, or its page for a path that is one of its views. */
void static_answer(struct exchange *x);

/* ---- log.c ---- */

int log_open(struct web *w, struct err *e);
void log_close(struct web *w);
/* One line of JSON for a request that is over; status 0: it broke off. */
void log_exchange(struct web *w, const struct exchange *x, unsigned status);
/* level: "info", "warning", "error". x NULL: no request's. */
void log_say(struct web *w, const struct exchange *x, const char *level, const char *text);

/* ---- metrics.c ---- */

void metrics_open(struct web *w);
void metrics_close(struct web *w);
void metrics_count(struct web *w, const struct exchange *x, unsigned status, int64_t took_ns);

/* ---- pulse.c ---- */

/* What the store last said of itself, and when: told without asking it. */
struct pulse {
	bool is_there;                 /* it answers */
	double silent_s;               /* since it answered last */
	struct job_count jobs[STORE_JOB_COUNTS_MAX];
	size_t n_jobs;
};
void pulse_open(struct web *w);
void pulse_close(struct web *w);
/* Asks the store when it is time to; called a few times a second, may wait for long. */
void pulse_look(struct web *w);
void pulse_get(struct web *w, struct pulse *out);

/* ---- work.c ---- */

int work_open(struct web *w, struct err *e);
/* False: x is refused, too many wait already. */
bool work_submit(struct web *w, struct exchange *x);
/* One open answer of x's user more or less (+1, -1); how many there are then. */
unsigned work_count_stream(struct web *w, const struct exchange *x, int change);
struct work_figures { size_t waiting, busy; };
struct work_figures work_figures(struct web *w);
/* At once, or from not_before_ns on, hands x back to its carrier. */
void work_done(struct web *w, struct exchange *x);
/* What waits is refused; false: a worker is still busy after so many milliseconds. */
bool work_stop(struct web *w, int wait_ms);
void work_close(struct web *w);

/* ---- client.c ---- */

/* Whether requests from this address ("unix": no address) name their client themselves. */
bool client_is_proxy(const struct web *w, const char *address);
/* The address that the last proxy has put into X-Forwarded-For; false: it is none. */
bool client_forwarded(struct str header, struct sockaddr_storage *out);
/* ERR_USAGE: a proxy that is no address. */
int client_check_proxies(const struct web_opts *o, struct err *e);

/* ---- server.c ---- */

/* x is answered: its connection goes on. Any thread. */
void carrier_resume(struct web *w, struct exchange *x);
/* Connections that are too slow or idle; called a few times a second. */
void carrier_tick(struct web *w, int64_t now_ns);
/* Event streams that wait look for events, which may take long; called a few times a second. */
void carrier_look(struct web *w);

/* ---- upload_work.c, launch.c ---- */

int upload_open(struct web *w, struct err *e);
void upload_wake(struct web *w);
bool upload_stop(struct web *w, int wait_ms);
void upload_close(struct web *w);
