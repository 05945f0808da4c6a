/* SPDX-License-Identifier: Apache-2.0 */
/*
 * multi_turn.h - `bench multi-turn`: clients that go on with conversations, one request in
 * flight each, the server's own answers as history (conversations spec 1; vLLM's
 * benchmark_serving_multi_turn.py).
 *
 * A run is one of `bench serve` whose requests are turns of conversations and whose order is
 * found while it runs (serve/turn_order.h): record, verdict, result file and telemetry are that
 * verb's. What upstream's script has in addition is here: options with their rules, bodies, the
 * warm-up step, its figures per request, its files.
 *
 *	multi_turn_opts_check()     options, before anything is read
 *	multi_turn_requests()  conversations, and their turns as samples      stages of run_point
 *	multi_turn_plan()      an entry for each sample
 *	multi_turn_warm_up()   the first turns
 *	multi_turn_load()      how the main run's requests are made and picked
 *	multi_turn_score()     its result
 */
#pragma once
#include <pthread.h>
#include <stdatomic.h>

#include "bench/options/serve_opts.h"
#include "bench/serve/turn_order.h"
#include "client/load/load.h"
#include "core/opt/opt.h"
#include "input/trace/conversation.h"
#include "out/report/multi_turn.h"

struct multi_turn_opts {
	const char *input_file;
	const char *output_file;       /* NULL: none */
	int64_t seed;
	const char *model, *served_model_name, *url;
	int64_t num_clients;
	struct opt_int max_active_conversations, max_num_requests, max_turns, max_retries;
	bool warmup_step, no_early_stop;
	int64_t limit_min_tokens, limit_max_tokens; /* 0: the data's; below: none */
	double request_rate;           /* of each client; 0: no pauses */
	const char *conversation_sampling;
	bool verify_output, stop_on_mismatch;
	int64_t request_timeout_sec;
	bool no_stream, excel_output, verbose, print_content;
	const char *stats_json_output; /* NULL: none */
	const char *warmup_percentages;
	bool trust_remote_code, send_conversation_id;
	const char *api_key;
	struct opt_list header;
	/* ours */
	int64_t output_len;            /* of answers that the data lack */
	const char *compat;            /* comma list; NULL: none */
};

extern const struct opt_set multi_turn_opt_set;

enum multi_turn_compat {
	MULTI_TURN_ABANDON = 1, /* upstream's order of requests: turn_order_opts.abandons */
	MULTI_TURN_USAGE = 2,   /* no usage is asked for */
	MULTI_TURN_BODY = 4,    /* no seed, temperature and min_tokens, as 0.32 */
};

/* A run. Zeroed, then multi_turn_opts_check. */
struct multi_turn {
	const struct multi_turn_opts *o;
	struct turn_order_opts order;  /* of the main run */
	double *warmup;                /* --warmup-percentages as shares, ascending; at least one */
	size_t n_warmup;
	unsigned compat;
	bool sends_ids;                /* --request-id-prefix was given */
	struct serve_opts *serve;      /* whose num_prompts becomes the turns to send */

	/* Made by the stages. */
	struct conversations conversations;
	uint32_t *n_turns;             /* of each conversation: those that are sent */
	struct turn_order *turns;
	uint32_t *client;              /* per entry; the client that sent it */
	bool *is_wrong;                /* per entry; with =stop: its answer is not the data's */
	uint32_t *queue;               /* with --warmup-step: what it finished, in that order */
	size_t n_queue;
	double warmup_s;               /* how long it took; NAN: there was none */
	const struct sessions *sessions;
	struct record *record;
	const struct workload *workload;
	uint32_t first_row;            /* of the warm-up: its entry 0 */
	bool is_warming_up;
	pthread_mutex_t lock;          /* of turns */
	atomic_bool is_closed;         /* never set; load_opts.close */
};

/*
 * Upstream's rules in upstream's order as far as they need no file; fills m->order and the warm-up
 * shares, in the arena. ERR_USAGE: a sentence that begins with the option.
 */
int multi_turn_opts_check(const struct multi_turn_opts *o, struct arena *a, struct multi_turn *m,
		     struct err *e);
/*
 * "Key: value" or "key=value", whichever separator comes first; both trimmed. ERR_USAGE without a
 * separator or a key.
 */
int multi_turn_header(const char *text, struct arena *a, struct serve_pair *out, struct err *e);
/* Whether an option of bench serve, as typed, means the same here. */
bool multi_turn_passes(struct str typed);
/*
 * Sets the options of bench serve that describe the run of m, which is checked: the verb's own over
 * those given there. m keeps serve. ERR_USAGE: a malformed header.
 */
int multi_turn_over_serve(struct multi_turn *m, struct serve_opts *serve,
			  const struct opt_result *given, struct arena *a, struct err *e);
/*
 * All options in force as JSON: those of bench serve, and the additional ones of this verb. The
 * rate is per client and is client_request_rate. turns NULL: those of bench serve alone.
 */
struct str multi_turn_options(const struct serve_opts *serve, const struct multi_turn_opts *turns,
			      struct arena *a);
void multi_turn_release(struct multi_turn *m);

/* The API: chat completions with upstream's members in upstream's order. */
const struct endpoint *multi_turn_endpoint(const struct multi_turn *m);

/* ---- stages; serve/point_internal.h ---- */

struct stage;
struct prepare_opts;

int multi_turn_requests(struct stage *s, struct err *e);
void multi_turn_plan(struct stage *s);
int multi_turn_warm_up(struct stage *s, struct err *e);
/* Rows that the warm-up step needs. */
uint32_t multi_turn_rows(const struct stage *s);
/* Called before the main run's requests are made, and before it begins. */
void multi_turn_prepare(struct stage *s, struct prepare_opts *how);
void multi_turn_load(struct stage *s, struct load_opts *opts);

/* ---- after the main run ---- */

struct point;

struct multi_turn_outcome {
	struct multi_turn_report report; /* its samples and options */
	uint32_t fates[TURN_DROPPED + 1]; /* conversations, by enum turn_fate */
	uint32_t failed;                 /* requests */
	uint32_t wrong;                  /* answers that are not the data's; --verify-output */
	uint32_t first_wrong;            /* the entry of the first one sent; with wrong above 0 */
	struct arena arena;
};

/* p->tokenizer counts. The outcome borrows from m and p, which must outlive it. */
int multi_turn_score(const struct multi_turn *m, const struct point *p, bool is_in_colour,
		     struct multi_turn_outcome *out, struct err *e);
void multi_turn_outcome_release(struct multi_turn_outcome *o);

/*
 * --output-file: conversations in order of finishing, then those that were begun, marked
 * "finished": false; the server's answers in place of the data's. indent 4.
 */
void multi_turn_conversations(const struct multi_turn *m, const struct point *p, struct buf *out);
/* Appends what happened to conversations and answers, and whether the order is repeatable. */
void multi_turn_summary(const struct multi_turn *m, const struct multi_turn_outcome *o,
			struct buf *out);
/* --print-content: the last message sent and the answer, request by request in sending order. */
void multi_turn_contents(const struct multi_turn *m, const struct point *p, struct buf *out);
