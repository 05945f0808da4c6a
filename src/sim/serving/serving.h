/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serving.h - the server's own structs, shared by these files of sim/ and by no other:
 *
 *   sim.c      options into struct sim, listening, the loop, files, shutdown
 *   conn.c     connections: bytes in to requests, bytes out, TLS, closing
 *   route.c    which path is answered by what; everything but generation
 *   start.c    from a request body to an answer under way; constraints and calls of tools
 *   pool.c     embeddings, pooling, rerank and score: asked and answered
 *   ask.c      request bodies, and forms with sound in them
 *   stream.c   one answer under way: pacing, events, faults, its end
 *   log.c      --requests, and the profiler's traces
 *   remote.c   KV caches that come from elsewhere, and the proxy
 *   event.c, shapes.c  how each API spells an answer
 *
 * Invariants: a connection works on one request at a time; further ones wait in
 * its input. A write error only marks the connection: it is closed by
 * conn_settle, which every entry from the loop calls last. So no function below
 * an entry has its connection freed under its feet.
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
 * Bytes that go out little by little: a slow response head, or a
 * slow body.
 *
 * The slow part is cut into TRICKLE_PIECES, the last of which goes out when its
 * time is over, together with all that follows. Then, or when trickle_finish is
 * called before, the owner is told once.
 */

#define TRICKLE_PIECES 16

struct conn;

/* A zeroed struct is an idle one. */
struct trickle {
	int64_t length_ns, from_ns; /* length 0: idle; from: monotonic */
	struct buf bytes;
	size_t sent, slow;      /* bytes out so far; bytes that are slow */
	uint32_t piece;
	struct timer timer;
};

/* The first piece goes out at once. slow: how many of the bytes are slow, at least 1. */
void trickle_start(struct conn *c, struct str bytes, size_t slow, int64_t length_ns);

/*
 * What stands in for an engine's torch profiler: between POST /start_profile and
 * /stop_profile steps and requests are noted, and then written as a Chrome trace, the
 * format that every viewer of torch's traces reads.
 *
 * The trace may grow slowly (write_ns), as those of real engines do after they have answered.
 * A profiler without a folder notes nothing: it is one that nobody configured.
 */

/* A zeroed struct is one without a folder. */
struct profiler {
	const char *dir;     /* borrowed; made when there is something to write */
	int64_t write_ns;    /* how long writing takes; 0: at once */
	bool is_on;
	struct buf events;   /* JSON objects, a line each */
	uint64_t dropped;    /* beyond what a trace may have */
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
/* Something that lasted; monotonic times. tid: a lane, or 0 for requests. */
void profiler_span(struct profiler *p, const char *name, unsigned tid, int64_t begin_ns,
		   int64_t end_ns, uint64_t tokens);
/* Begins to write; the loop does the rest. -1: the file cannot be made. */
int profiler_stop(struct profiler *p, struct loop *l, struct err *e);
/* Writes what is left at once; to be released at the end. */
void profiler_release(struct profiler *p);

/*
 * The server's own structs, shared by the files of sim/ and by
 * nothing else.
 *
 *   sim.c      options into struct sim, listening, the loop, files, shutdown
 *   conn.c     connections: bytes in to requests, bytes out, TLS, closing
 *   route.c    which path is answered by what; everything but generation
 *   start.c    from a request body to an answer under way
 *   pool.c     embeddings, pooling, rerank and score: asked and answered
 *   audio.c    a form with sound in it, read into what start.c needs
 *   compose.c  what an answer says that keeps to a constraint or calls tools
 *   stream.c   one answer under way: pacing, events, faults, its end
 *   answer.c   answers that are not streamed
 *   log.c      --requests: each request as it came
 *   kv.c       KV caches that come from elsewhere
 *   proxy.c    requests that other servers answer (call.c)
 *   profiler.c what /start_profile and /stop_profile leave
 *   event.c, shape_*.c  how each API spells an answer
 *
 * Invariants: a connection works on one request at a time; further ones wait in
 * its input. A write error only marks the connection: it is closed by
 * conn_settle, which every entry from the loop calls last. So nobody below
 * an entry has its connection freed under its feet.
 */

struct conn;

/*
 * One of the sequences that an answer has (n of the request).
 *
 * Here and in the two structs after it what every event needs comes first: with a thousand streams
 * all of it is cold, and an event costs as much as the lines of memory that it touches.
 */
struct sim_choice {
	struct timer timer;        /* oracle */
	struct conn *conn;
	uint32_t total;            /* tokens it has */
	uint32_t share;            /* tokens of its next event */
	uint32_t reasoning;        /* of them, the first ones that are reasoning */
	uint32_t done;             /* tokens in events so far */
	uint32_t index;
	uint32_t ready;            /* steps the engine model made for the next event */
	uint64_t key;              /* of the words */
	size_t cut;                /* text bytes to send; less than there are when stop matched */
	size_t text_at;            /* text bytes sent so far */
	int64_t ideal_ns;          /* monotonic; of the next event, before the burst grid */
	int64_t first_ns, last_ns; /* real; stamps of the first and latest event */
	enum counter_finish finish;/* FINISH_LENGTH or FINISH_STOP, known from the start */
	bool is_over;              /* all of it went out, or was given up */
	bool is_known_told;        /* what of them was known is in the counters */
	struct script script;      /* what it says instead of words */
	struct pcg64 rng;          /* its length and its gaps */
	struct buf stop_reason;    /* the stop string that ends it */
	struct prefix_tail tail;   /* of the sequence, for the prefix cache */
	struct prefix_pins hold;   /* the prompt's blocks; engine model */
	struct engine_seq seq;     /* engine model */
	struct sim_lane *lane;     /* whose sequence it is; NULL: of none yet */
};

/* One answer under way; embedded in its connection and reused by the next one. */
struct sim_stream {
	bool is_active;
	bool is_streamed;          /* events; otherwise one JSON body at the end */
	bool is_pooled;            /* body holds the answer; its one choice has one, no token */
	bool is_open;              /* what comes before the first token is sent */
	uint32_t choices, choices_cap;
	uint32_t left;             /* choices that are not all there yet */
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
	struct kv_wait kv;         /* what comes from elsewhere; engine model */
	struct buf body;           /* of a pooled answer */
	const char *type;          /* its Content-Type */
	struct buf extra;          /* and its further header lines */
};

struct conn {
	struct watch watch;
	struct sim *sim;
	struct tls *tls;
	bool is_shaken;            /* the TLS handshake is over */
	bool is_broken;            /* close as soon as we are back at the loop */
	bool is_reset;             /* ... with a reset */
	bool is_last;              /* close once everything is written */
	bool has_head;             /* head holds the request being read */
	struct buf out;            /* not yet taken by the kernel */
	struct sim_stream stream;
	struct conn *prev, *next;
	int64_t recv_ns;           /* stamp of the newest read */
	struct http_request request;
	struct buf in;             /* not yet read as requests */
	struct buf head, body;     /* the request under way */
	struct timer idle;
	struct forward *forward;   /* of a proxy; NULL: none */
};

/* One of the engines that requests are spread over (data parallel ranks, pipeline stages). */
struct sim_lane {
	struct sim *sim;
	struct sim_engine engine;
	struct prefix_cache prefix;/* of the first one, if it is the oracle */
	struct timer step;         /* the end of the engine's step */
	bool is_ending_step;       /* its tokens are being handed out */
};

#define COMPILED_MAX 64

/* A constraint that was asked for, kept for who asks again. */
struct compiled {
	uint64_t key;
	struct constraint *constraint; /* NULL: the place is free */
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
	bool is_asleep;            /* POST /sleep: the engine model makes no steps */
	struct kv kv;              /* what it brings from elsewhere */
	struct proxy *proxy;       /* NULL: it answers itself */
	struct profiler profiler;  /* POST /start_profile */
	struct conn *conns;
	size_t conn_count;
	size_t stream_count;       /* answers under way */
	uint64_t arrivals;         /* generation requests so far */
	int64_t id_base;           /* makes ids of requests without one differ between runs */
	struct counters counters;
	struct truth truth;
	struct truth_sink requests;
	struct timer flush;
	struct timer death;        /* --die-after */
	bool is_dead;
	struct hist lag;           /* send minus due */
	uint64_t events;
	int64_t busy_ns;           /* once sim_run is over; see struct sim_summary */
	struct sim_ask ask;        /* of the request being looked at */
	struct compiled compiled[COMPILED_MAX]; /* constraints, by what they say */
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
/* Sends or keeps for later. False when the connection is broken; it is marked, not closed. */
bool conn_write(struct conn *c, struct str bytes);
void conn_reset(struct conn *c);   /* breaks it: the peer sees a reset */
void conn_drop(struct conn *c);    /* breaks it: the peer sees an early end */
/* The last thing an entry from the loop does with c: goes on with waiting requests, or closes. */
void conn_settle(struct conn *c);
void conn_free(struct conn *c);
/* Gives up what is under way; no effect without. */
void conn_abort(struct conn *c);

/* ---- route.c ---- */
/* The complete request is in c->head and body; answers it or starts its stream. */
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
#define REQUEST_ID_MAX 256 /* bytes; longer ones count as none */

void stream_start(struct conn *c, enum ask_api api, struct str body);
/* Prompt tokens of s->ask; SIZE_MAX when the tokenizer gave up. Ids go to s->ids when asked. */
size_t ask_tokens(struct sim *s, bool is_listed);
/* A new request for an answer: its id, generator and faults. False: a fault refused it. */
bool start_arrive(struct conn *c, char id[REQUEST_ID_MAX + 1]);
/* Answers with an error; such a request has its line in the truth file, too. */
void start_refuse(struct conn *c, unsigned status, const char *param, const char *message,
		  const char *id);
bool start_serves_model(const struct sim *s, struct str model);
/* False: refused with 404. The adapter that it names is the stream's from now on. */
bool start_has_model(struct conn *c, struct str model, const char *id);
/* So many zeroed choices, with the memory of those before. */
void start_choices(struct conn *c, uint32_t n);
/* Everything but its form is set in c->stream; prompt tokens are in s->ids when is_listed. */
void start_begin(struct conn *c, const char *id, size_t prompt, bool is_listed);

/* ---- pool.c ---- */
void pool_embed(struct conn *c, struct str body);
void pool_pool(struct conn *c, struct str body);
void pool_rerank(struct conn *c, struct str body);
void pool_score(struct conn *c, struct str body);

/* ---- audio.c ---- */
/* Fills s->ask from the form; otherwise as ask_read. */
int audio_read(struct conn *c, struct str body, const char **param, struct err *e);

/* ---- compose.c ---- */
void compose_release(struct sim *s);

/* ---- stream.c ---- */
/* What token i of a choice says, and its id. Borrowed. */
struct str choice_text(const struct sim *s, const struct sim_choice *x, uint32_t i);
void stream_pace(struct conn *c);  /* everything is set: the first event gets its time */
void stream_admit(struct conn *c); /* nothing is waited for: the engine model has it */
void stream_wake(struct sim *s);   /* the engine model may go on */
void stream_abort(struct conn *c); /* the client left; no effect without a stream */
void stream_on_time(struct timer *t);
void stream_on_step(struct timer *t);
void stream_release(struct sim_stream *t);

/* ---- answer.c ---- */
/* The answer is due as a whole: sends it, slowly or in part when a fault says so. */
void answer_send(struct conn *c);

/* ---- sim.c ---- */
void sim_die(struct sim *s); /* sim_run ends as if the engine had failed */
void sim_flush_soon(struct sim *s);
