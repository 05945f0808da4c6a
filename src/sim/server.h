/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server.h - the server's own structs, shared by the files of sim/ and by
 * nothing else.
 *
 *   sim.c      options into struct sim, listening, the loop, files, shutdown
 *   conn.c     connections: bytes in to requests, bytes out, TLS, closing
 *   route.c    which path is answered by what; everything but generation
 *   start.c    from a request body to an answer under way
 *   stream.c   one answer under way: pacing, events, faults, its end
 *   answer.c   the JSON body of an answer that is not streamed
 *
 * Invariants: a connection works on one request at a time; further ones wait in
 * its input. A write error only marks the connection: it is closed by
 * conn_settle, which every entry from the loop calls last. So nobody below
 * an entry has its connection freed under its feet.
 */
#pragma once
#include <stdatomic.h>

#include "base/buf.h"
#include "base/limits.h"
#include "http/request.h"
#include "net/loop.h"
#include "net/sock.h"
#include "net/tls.h"
#include "rng/pcg64.h"
#include "sim/ask.h"
#include "sim/counters.h"
#include "sim/dist.h"
#include "sim/engine.h"
#include "sim/event.h"
#include "sim/fault.h"
#include "sim/lag.h"
#include "sim/sim.h"
#include "sim/sink.h"
#include "sim/truth.h"
#include "sim/words.h"
#include "token/tokenizer.h"

struct conn;

/* One answer under way; embedded in its connection and reused by the next one. */
struct stream {
	bool is_active;
	bool is_streamed;          /* events; otherwise one JSON body at the end */
	bool is_role_sent;
	bool has_usage;
	uint32_t total;            /* tokens the answer has */
	uint32_t reasoning;        /* of them, the first ones that are reasoning */
	uint32_t done;             /* tokens in events so far */
	uint32_t ready;            /* tokens the engine model made, not yet in an event */
	uint32_t held_events;      /* coalesced, not yet sent */
	uint64_t key;              /* of the words */
	enum counter_finish finish;/* FINISH_LENGTH or FINISH_STOP, known from the start */
	size_t cut;                /* answer bytes to send; less than the words when stop matched */
	size_t text_at;            /* answer bytes sent so far */
	struct buf stop_reason;    /* the stop string that ends it */
	struct fault_plan fault;
	struct pcg64 rng;          /* gaps of this answer */
	int64_t recv_ns;           /* real clock */
	int64_t offset_ns;         /* real minus monotonic clock at the start */
	int64_t ideal_ns;          /* monotonic; of the next event, before the burst grid */
	int64_t first_ns, last_ns; /* real; stamps of the first and latest event */
	struct event_form form;
	struct buf id;             /* "cmpl-..." */
	int64_t created;           /* seconds */
	struct buf held;           /* bytes of coalesced events */
	struct timer timer;        /* oracle */
	struct engine_seq seq;     /* engine model */
	struct truth_row *row;     /* NULL without --truth */
};

struct conn {
	struct watch watch;
	struct sim *sim;
	struct conn *prev, *next;
	struct tls *tls;
	bool is_shaken;            /* the TLS handshake is over */
	bool is_broken;            /* close as soon as we are back at the loop */
	bool is_reset;             /* ... with a reset */
	bool is_last;              /* close once everything is written */
	bool has_head;             /* head holds the request being read */
	int64_t recv_ns;           /* stamp of the newest read */
	struct http_request request;
	struct buf in, out;        /* not yet read as requests; not yet taken by the kernel */
	struct buf head, body;     /* the request under way */
	struct timer idle;
	struct stream stream;
};

struct sim {
	const struct sim_opts *opts;
	char *url;
	uint16_t port;
	struct loop *loop;
	struct watch listener;
	struct timer accept_again; /* set while there are no descriptors for connections */
	struct tls_config *tls;
	int stamps;                /* keeps the kernel's stamping on */
	struct tokenizer *tokenizer;
	struct words words;
	struct fault_set faults;
	struct dist ttft, itl, output_len;
	bool is_oracle, has_output_len;
	int64_t burst_ns, origin_ns; /* the grid of burst mode, monotonic */
	struct engine engine;
	struct timer step;         /* the end of the engine's step */
	bool is_ending_step;       /* its tokens are being handed out */
	struct conn *conns;
	size_t conn_count;
	size_t stream_count;       /* answers under way */
	uint64_t arrivals;         /* generation requests so far */
	int64_t id_base;           /* makes ids of requests without one differ between runs */
	struct counters counters;
	struct truth truth;
	struct sink requests;
	struct timer flush;
	struct lag lag;            /* send minus due */
	uint64_t events;
	struct ask ask;            /* of the request being looked at */
	struct buf event;          /* the bytes being built for one send */
	struct buf text;           /* the words of one event */
	struct ids ids;
	char *read;                /* READ_BYTES, the one read buffer */
	struct buf plain;          /* the same for TLS */
	atomic_bool is_stopping;
};

/* ---- conn.c ---- */
void conn_accept(struct watch *listener, uint32_t events);
void conn_accept_again(struct timer *t);
/* Sends or keeps for later. False when the connection is broken; it is marked, not closed. */
bool conn_write(struct conn *c, struct str bytes);
void conn_reset(struct conn *c);   /* breaks it: the peer sees a reset */
void conn_drop(struct conn *c);    /* breaks it: the peer sees an early end */
/* The last thing an entry from the loop does with c: goes on with waiting requests, or closes. */
void conn_settle(struct conn *c);
void conn_free(struct conn *c);

/* ---- route.c ---- */
/* The complete request is in c->head and body; answers it or starts its stream. */
void route_serve(struct conn *c, struct str body);
/* type: Content-Type, or NULL. */
void route_answer(struct conn *c, unsigned status, const char *type, struct str body);
/* The error object of vLLM; param may be NULL. */
void route_error(struct conn *c, unsigned status, const char *param, const char *message);
const char *route_model(const struct sim *s); /* the first served id */

/* ---- start.c ---- */
void stream_start(struct conn *c, enum ask_api api, struct str body);
/* Prompt tokens of s->ask; SIZE_MAX when the tokenizer gave up. Ids go to s->ids when asked. */
size_t ask_tokens(struct sim *s, bool is_listed);

/* ---- stream.c ---- */
void stream_pace(struct conn *c);  /* everything is set: the first event gets its time */
void stream_abort(struct conn *c); /* the client left; no effect without a stream */
void stream_on_time(struct timer *t);
void stream_on_step(struct timer *t);
void stream_release(struct stream *t);

/* ---- answer.c ---- */
void answer_write(struct sim *s, const struct stream *t, struct buf *out);

/* ---- sim.c ---- */
void sim_flush_soon(struct sim *s);
