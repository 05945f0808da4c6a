/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serving.h - the server's own structs, shared only by these files:
 *
 *   sim.c      options into struct sim, listening, the loop, files, shutdown
 *   conn.c     connections: bytes in to requests, bytes out, TLS, closing
 *   route.c    maps paths to answers; everything but generation
 *   start.c    from a request body to an answer in progress; constraints and tool calls
 *   pool.c     embeddings, pooling, rerank and score: requests and answers
 *   ask.c      request bodies, and forms with sound in them
 *   stream.c   one answer in progress: pacing, events, faults, its end
 *   log.c      --requests, and the profiler's traces
 *   remote.c   KV caches that come from elsewhere, and the proxy
 *   event.c, shapes.c  how each API spells an answer
 *
 * Invariants: a connection works on one request at a time; further ones wait in its input. A write
 * error only marks the connection: it is closed by conn_settle, which every entry from the loop
 * calls last. So a connection is never freed while a function below an entry uses it.
 */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/http/request.h"
#include "client/net/loop.h"
#include "client/net/sock.h"
#include "client/net/tls.h"
#include "core/base/err.h"
#include "core/base/limits.h"
#include "core/base/str.h"
#include "core/rng/rng.h"
#include "core/stats/stats.h"
#include "input/constrain/constrain.h"
#include "input/token/tokenizer.h"
#include "sim/model/draw.h"
#include "sim/model/engine.h"
#include "sim/model/fault.h"
#include "sim/model/prefix.h"
#include "sim/model/script.h"
#include "sim/serving/ask.h"
#include "sim/serving/event.h"
#include "sim/serving/remote.h"
#include "sim/serving/sim.h"
#include "sim/serving/truth.h"

/*
 * Bytes that are sent gradually: a slow response head, or a slow body.
 *
 * The slow part is cut into TRICKLE_PIECES, the last of which is sent at the end of its time,
 * together with all that follows. Then, or when trickle_finish is called earlier, the owner is
 * notified once.
 */

#define TRICKLE_PIECES 16

struct conn;

/* A zeroed struct is an idle one. */
struct trickle {
	int64_t length_ns, from_ns; /* length 0: idle; from: monotonic */
	struct buf bytes;
	size_t sent, slow;      /* bytes sent so far; number of slow bytes */
	uint32_t piece;
	struct timer timer;
};

/* Sends the first piece at once. slow: how many of the bytes are slow, at least 1. */
void trickle_start(struct conn *c, struct str bytes, size_t slow, int64_t length_ns);

/*
 * Simulates an engine's torch profiler: between POST /start_profile and /stop_profile steps and
 * requests are recorded, then written as a Chrome trace, the format that every viewer of torch's
 * traces reads.
 *
 * The trace may grow slowly (write_ns), like those of real engines after they have answered. A
 * profiler without a folder is not configured and records nothing.
 */

/* A zeroed struct is one without a folder. */
struct profiler {
	const char *dir;     /* borrowed; made when there is something to write */
	int64_t write_ns;    /* how long writing takes; 0: at once */
	bool is_on;
	struct buf events;   /* JSON objects, one per line */
	uint64_t dropped;    /* events beyond a trace's limit */
	unsigned windows;    /* so far */
	/* While it is written: */
	struct loop *loop;
	struct timer timer;
	int fd;
	size_t written;
	int64_t from_ns;     /* monotonic */
	struct buf text;
};

void profiler_start(struct profiler *p);
/* An interval; monotonic times. tid: a lane, or 0 for requests. */
void profiler_span(struct profiler *p, const char *name, unsigned tid, int64_t begin_ns,
		   int64_t end_ns, uint64_t tokens);
/* Starts writing; the loop does the rest. -1: the file cannot be created. */
int profiler_stop(struct profiler *p, struct loop *l, struct err *e);
/* Writes the rest at once; call it at the end. */
void profiler_release(struct profiler *p);

struct conn;

/*
 * One of an answer's sequences (n of the request).
 *
 * In this struct and the next two the members that every event needs come first: with a thousand
 * streams all of them are cold, and an event costs as much as the cache lines that it touches.
 */
struct sim_choice {
	struct timer timer;        /* oracle */
	struct conn *conn;
	uint32_t total;            /* its tokens */
	uint32_t share;            /* tokens of its next event */
	uint32_t reasoning;        /* how many of them, from the first, are reasoning */
	uint32_t done;             /* tokens in events so far */
	uint32_t index;
	uint32_t ready;            /* steps that the engine model has made for the next event */
	uint64_t key;              /* of the words */
	size_t cut;                /* text bytes to send; fewer than there are if stop matched */
	size_t text_at;            /* text bytes sent so far */
	int64_t ideal_ns;          /* monotonic; of the next event, before the burst grid */
	int64_t first_ns, last_ns; /* real; stamps of the first and latest event */
	enum counter_finish finish;/* FINISH_LENGTH or FINISH_STOP, known from the start */
	bool is_over;              /* all of it was sent, or it was aborted */
	bool is_known_told;        /* its known tokens are in the counters */
	struct script script;      /* its content instead of words */
	struct pcg64 rng;          /* for its length and its gaps */
	struct buf stop_reason;    /* the stop string that ends it */
	struct prefix_tail tail;   /* of the sequence, for the prefix cache */
	struct prefix_pins hold;   /* the prompt's blocks; engine model */
	struct engine_seq seq;     /* engine model */
	struct sim_lane *lane;     /* the lane of its sequence; NULL: none yet */
};

/* One answer in progress; embedded in its connection and reused by the next one. */
struct sim_stream {
	bool is_active;
	bool is_streamed;          /* events; otherwise one JSON body at the end */
	bool is_pooled;            /* body holds the answer; one choice, without tokens */
	bool is_open;              /* what precedes the first token has been sent */
	uint32_t choices, choices_cap;
	uint32_t left;             /* choices that are not complete yet */
	uint32_t held_events;      /* coalesced, not yet sent */
	struct sim_choice *choice; /* not moved while is_active */
	struct truth_row *row;     /* NULL without --truth */
	int64_t recv_ns;           /* real clock */
	int64_t offset_ns;         /* real minus monotonic clock at the start */
	struct fault_plan fault;
	struct trickle trickle;
	struct event_form form;
	struct pcg64 rng;          /* of the whole answer */
	uint32_t lora;             /* its adapter, from 1 on; 0: none */
	struct buf id;             /* "cmpl-..." */
	struct buf held;           /* bytes of coalesced events */
	struct kv_wait kv;         /* transfer from elsewhere; engine model */
	struct buf body;           /* of a pooled answer */
	const char *type;          /* its Content-Type */
	struct buf extra;          /* and its further header lines */
};

struct conn {
	struct watch watch;
	struct sim *sim;
	struct tls *tls;
	bool is_shaken;            /* the TLS handshake is over */
	bool is_broken;            /* close it at the return to the loop */
	bool is_reset;             /* ... with a reset */
	bool is_last;              /* close once everything is written */
	bool has_head;             /* head holds the request being received */
	struct buf out;            /* not yet accepted by the kernel */
	struct sim_stream stream;
	struct conn *prev, *next;
	int64_t recv_ns;           /* stamp of the newest read */
	struct http_request request;
	struct buf in;             /* not yet parsed as requests */
	struct buf head, body;     /* the current request */
	struct timer idle;
	struct forward *forward;   /* of a proxy; NULL: none */
};

/* One of the engines that requests are spread over (data parallel ranks, pipeline stages). */
struct sim_lane {
	struct sim *sim;
	struct sim_engine engine;
	struct prefix_cache prefix;/* the first lane's is also used by the oracle */
	struct timer step;         /* the end of the engine's step */
	bool is_ending_step;       /* its tokens are being delivered */
};

#define COMPILED_MAX 64

/* A compiled constraint, kept for later requests with the same one. */
struct compiled {
	uint64_t key;
	struct constraint *constraint; /* NULL: free slot */
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
	struct sim_words words;
	struct fault_set faults;
	struct dist ttft, itl, output_len;
	bool is_oracle, has_output_len;
	int64_t burst_ns, origin_ns; /* the grid of burst mode, monotonic */
	struct sim_lane *lane;     /* lanes of them */
	size_t lanes;
	bool is_asleep;            /* POST /sleep: the engine model is stopped */
	struct kv kv;              /* transfers from elsewhere */
	struct proxy *proxy;       /* NULL: it answers by itself */
	struct profiler profiler;  /* POST /start_profile */
	struct conn *conns;
	size_t conn_count;
	size_t stream_count;       /* answers in progress */
	uint64_t arrivals;         /* generation requests so far */
	int64_t id_base;           /* makes ids that are not given by clients differ between runs */
	struct counters counters;
	struct truth truth;
	struct truth_sink requests;
	struct timer flush;
	struct timer death;        /* --die-after */
	bool is_dead;
	struct hist lag;           /* send minus due */
	uint64_t events;
	int64_t busy_ns;           /* once sim_run is over; see struct sim_summary */
	struct sim_ask ask;        /* of the current request */
	struct compiled compiled[COMPILED_MAX]; /* constraints, by a hash of their content */
	struct buf event;          /* the bytes being built for one send */
	struct buf text;           /* the words of one event */
	struct buf quoted;         /* the same as JSON */
	struct ids ids;
	char *read;                /* READ_BYTES, the one read buffer */
	struct buf plain;          /* the same for TLS */
	atomic_bool is_stopping;
};

/* ---- conn.c ---- */
void conn_accept(struct watch *listener, uint32_t events);
void conn_accept_again(struct timer *t);
/* Sends or queues bytes. False when the connection is broken; it is marked, not closed. */
bool conn_write(struct conn *c, struct str bytes);
void conn_reset(struct conn *c);   /* breaks it: the peer sees a reset */
void conn_drop(struct conn *c);    /* breaks it: the peer sees an early end */
/* Must be an entry's last call with c: continues with waiting requests, or closes. */
void conn_settle(struct conn *c);
void conn_free(struct conn *c);
/* Aborts the answer in progress; no effect without one. */
void conn_abort(struct conn *c);

/* ---- route.c ---- */
/* Serves the complete request in c->head and body: answers it or starts its stream. */
void route_serve(struct conn *c, struct str body);
/* The connection's own header lines for an answer, or NULL. */
const char *route_extra(const struct conn *c);
/* The error object of vLLM; param may be NULL. */
void route_error(struct conn *c, unsigned status, const char *param, const char *message);
const char *route_model(const struct sim *s); /* the first served id */
/* type: Content-Type, or NULL. */
void route_answer(struct conn *c, unsigned status, const char *type, struct str body);

/* ---- log.c ---- */
void log_request(struct conn *c, struct str path, struct str body);

/* ---- start.c ---- */
#define REQUEST_ID_MAX 256 /* bytes; longer ones are ignored */

void stream_start(struct conn *c, enum ask_api api, struct str body);
/* Prompt tokens of s->ask; SIZE_MAX when the tokenizer failed. is_listed: ids go to s->ids. */
size_t ask_tokens(struct sim *s, bool is_listed);
/* Sets up id, generator and faults of a new request. False: a fault refused it. */
bool start_arrive(struct conn *c, char id[REQUEST_ID_MAX + 1]);
/* Answers with an error; such a request also has a line in the truth file. */
void start_refuse(struct conn *c, unsigned status, const char *param, const char *message,
		  const char *id);
bool start_serves_model(const struct sim *s, struct str model);
/* False: refused with 404. Else sets the stream's adapter. */
bool start_has_model(struct conn *c, struct str model, const char *id);
/* Makes n zeroed choices that keep the memory of earlier ones. */
void start_choices(struct conn *c, uint32_t n);
/* Everything but its form is set in c->stream; prompt tokens are in s->ids when is_listed. */
void start_begin(struct conn *c, const char *id, size_t prompt, bool is_listed);

/* ---- pool.c ---- */
void pool_embed(struct conn *c, struct str body);
void pool_pool(struct conn *c, struct str body);
void pool_rerank(struct conn *c, struct str body);
void pool_score(struct conn *c, struct str body);

/* ---- ask.c ---- */
/* Fills s->ask from the form; otherwise as ask_read. */
int audio_read(struct conn *c, struct str body, const char **param, struct err *e);

/* ---- start.c ---- */
void compose_release(struct sim *s);

/* ---- stream.c ---- */
/* The text of token i of a choice, and its id. Borrowed. */
struct str choice_text(const struct sim *s, const struct sim_choice *x, uint32_t i);
void stream_pace(struct conn *c);  /* everything is set: schedules the first event */
void stream_admit(struct conn *c); /* nothing to wait for: passes it to the engine model */
void stream_wake(struct sim *s);   /* the engine model may continue */
void stream_abort(struct conn *c); /* the client left; no effect without a stream */
void stream_on_time(struct timer *t);
void stream_on_step(struct timer *t);
void stream_release(struct sim_stream *t);

/* ---- sim.c ---- */
void sim_die(struct sim *s); /* sim_run ends as if the engine had failed */
void sim_flush_soon(struct sim *s);
