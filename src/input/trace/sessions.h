/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sessions.h - turns of sessions in any order, as files name them, made into a workload.
 * Private to data/.
 *
 * A reader adds sessions and nodes; nodes of one session are adjacent and refer to each other by
 * number. sessions.c then checks that no turn waits for itself, that each waits for the turn it
 * continues, puts every session into an order in which a turn comes after those that it waits for
 * (otherwise as added), counts tokens and fills the workload.
 *
 * Texts are in the arena; `where` is the place in the file, for errors ("agents.jsonl:7").
 */
#pragma once
#include "client/plan/workload.h"
#include "input/data/build.h"
#include "input/data/lengths.h"

struct session_node {
	const char *where;
	struct str name;       /* as the file calls it, for errors */
	uint32_t session;
	uint32_t history;      /* a node, or TURN_NONE */
	uint32_t wait, n_waits; /* of graph.wait, nodes; it may be made later than the node */
	double gap_s;
	enum turn_gap gap_kind;
	bool is_gap_from_start;
	double timestamp_s;    /* NAN: none; of a root */
	struct str messages;   /* JSON list, checked */
	struct str text;       /* all texts of the messages, to be counted */
	struct str overrides, headers; /* JSON objects; empty: none */
	int64_t output_len;    /* -1: no limit */
	int64_t priority;
};

#define SESSION_TURNS_MAX 65536 /* of one session; agents have hundreds */

struct graph {
	struct arena arena;
	struct session_node *node;
	size_t n, cap;
	uint32_t *wait;
	size_t n_waits, cap_waits;
	struct str *session; /* ids */
	size_t n_sessions, cap_sessions;
	size_t first;          /* node of the last session */
	bool has_priorities;
	struct buf json, text; /* of graph_messages */
};

uint32_t graph_session(struct graph *g, struct str id); /* id is copied */
/* A node of the last session, its members empty; or NULL with ERR_LIMIT. */
struct session_node *graph_node(struct graph *g, const char *where, struct str name, struct err *e);
/* node waits for other. All waits of a node are added before those of another. */
void graph_wait(struct graph *g, uint32_t node, uint32_t other);

/*
 * Checks a list of chat messages (each with a role; content is a text, a list of parts or, of an
 * assistant that calls tools, missing) and writes it to n->messages and n->text; a tool's message
 * makes the gap before the turn a tool gap. Errors do not name the place.
 */
int graph_messages(struct graph *g, struct session_node *n, struct json_slice list, struct err *e);
/* The same of one text. */
void graph_message(struct graph *g, struct session_node *n, struct str role, struct str text);

/* ---- readers: aiperf's files (sessions_aiperf.c) ---- */

struct table;
struct session_reading {
	const struct dataset_opts *o;
	const struct dataset_env *env;
	struct table *table;
	struct graph *graph;
};
int sessions_read_single_turn(const struct session_reading *r, struct err *e);
int sessions_read_multi_turn(const struct session_reading *r, struct err *e);
int sessions_read_dag(const struct session_reading *r, struct err *e);
/* "file:LINE" of a row, in the arena. */
const char *session_where(const struct session_reading *r, size_t row);
/* The length of answers if the file does not have it. */
int64_t session_output_len(const struct session_reading *r);
/*
 * session_count: a whole number above 0 at key: 1, 0 when it is missing or null, -1 with a
 * sentence. session_ms: the same for milliseconds, not below 0, converted to seconds.
 */
int session_count(struct json_slice object, const char *key, int64_t *out, struct err *e);
int session_ms(struct json_slice object, const char *key, double *seconds, struct err *e);
/* A text at key, in a: 1, 0 or -1 as above. */
int session_text(struct json_slice object, const char *key, struct arena *a, struct str *out,
		 struct err *e);
/*
 * The rows of the file by session, whose name is at key, in the order of the sessions' first rows;
 * one without a name (id.p NULL) is a session of its own. The caller frees them. NULL: e says why.
 */
struct session_row {
	size_t number;
	uint32_t session;
	struct str id;
};
struct session_row *session_rows(const struct session_reading *r, const char *key, struct err *e);
/* Checks that an object has only these keys. */
int session_keys(struct json_slice object, const char *const *known, struct err *e);
