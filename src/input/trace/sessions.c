/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sessions.c - sessions from a file: turns with gaps, branches and joins.
 *
 * Files of aiperf (trace/sessions_aiperf.c): single_turn, multi_turn, dag_jsonl. Our own form, for
 * agents whose branches these cannot say, is JSON lines, a turn each:
 *
 *   id           the session: text or integer
 *   turn         the turn's name in its session; its number in the file's order unless given
 *   history      the turn whose history and answer it continues, null for none; the one before
 *                it in the file unless given
 *   waits        list of turns that must have ended; its history unless given
 *   gap          seconds after the last of these has ended: a number, a distribution
 *                (data/distribution.h), drawn from numpy.random seeded with --seed + 1, or a
 *                law of --think-time as text (data/lengths.h), from a fork of that seed
 *   gap_kind     "think" or "tool"; tool where a message is a tool's, else think
 *   gap_from     "end" or "start": of the turn that it waits for
 *   messages     what it adds to its history, as the chat API has them
 *   output_tokens, extra_body, headers, priority
 *   timestamp    seconds, of a turn that waits for none: when its session begins
 *
 * Turns may be in any order. --num-prompts is the number of sessions, as for conversations.
 */
#include "input/trace/sessions.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/json/write.h"
#include "core/rng/rng.h"
#include "input/data/build.h"
#include "input/data/lengths.h"
#include "input/table/table.h"
#include "input/token/tokenizer.h"

/* ---- graphs ---- */

#define PATH_TURNS_MAX UINT16_MAX /* turns are numbered in 16 bits */

/* ---- adding ---- */

uint32_t graph_session(struct graph *g, struct str id)
{
	g->session = mem_room(g->session, g->n_sessions, &g->cap_sessions, sizeof(*g->session));
	g->first = g->n;
	g->session[g->n_sessions] = arena_str(&g->arena, id);
	return (uint32_t)g->n_sessions++;
}

struct session_node *graph_node(struct graph *g, const char *where, struct str name, struct err *e)
{
	assert(g->n_sessions);
	if (g->n == REQUESTS_MAX || g->n - g->first == SESSION_TURNS_MAX) {
		err_set(e, ERR_LIMIT, "%s: a session has more than %d turns, or all have more than %u",
			where, SESSION_TURNS_MAX, REQUESTS_MAX);
		return NULL;
	}
	g->node = mem_room(g->node, g->n, &g->cap, sizeof(*g->node));
	g->node[g->n] = (struct session_node){
		.where = where, .name = name, .session = (uint32_t)(g->n_sessions - 1),
		.history = TURN_NONE, .timestamp_s = NAN,
		.output_len = -1,
	};
	return &g->node[g->n++];
}

void graph_wait(struct graph *g, uint32_t node, uint32_t other)
{
	struct session_node *n = &g->node[node];

	assert(node < g->n);
	if (!n->n_waits)
		n->wait = (uint32_t)g->n_waits;
	assert(n->wait + n->n_waits == g->n_waits);
	for (uint32_t k = 0; k < n->n_waits; k++)
		if (g->wait[n->wait + k] == other)
			return;
	g->wait = mem_room(g->wait, g->n_waits, &g->cap_waits, sizeof(*g->wait));
	g->wait[g->n_waits++] = other;
	n->n_waits++;
}

static void graph_release(struct graph *g)
{
	free(g->node);
	free(g->wait);
	free(g->session);
	buf_release(&g->json);
	buf_release(&g->text);
	arena_release(&g->arena);
	*g = (struct graph){ 0 };
}

/* ---- messages ---- */

static int add_part_texts(struct buf *text, struct json_slice list, struct err *e)
{
	struct json_iter it = json_iter(list);
	struct json_slice part, type, v;

	while (json_each(&it, NULL, &part) == 1) {
		if (!json_member(part, "type", &type) || type.kind != JSON_STRING)
			return err_set(e, ERR_RUN, "\"content\" is a list that has an element without a "
				       "\"type\"");
		if (str_is(type.raw, "text") && json_member(part, "text", &v) &&
		    v.kind == JSON_STRING)
			json_unescape(text, v.raw);
	}
	return 0;
}

static int check_message(struct graph *g, struct session_node *n, struct json_slice m,
			 bool is_first, struct err *e)
{
	struct json_slice role, content, calls;
	bool has_content = json_member(m, "content", &content);

	if (m.kind != JSON_OBJECT || !json_member(m, "role", &role) || role.kind != JSON_STRING)
		return err_set(e, ERR_RUN, "expected an object with a \"role\"");
	if (str_is(role.raw, "system") && (!is_first || n->history != TURN_NONE))
		return err_set(e, ERR_RUN, "a system message must be the first one of a history");
	if (str_is(role.raw, "tool"))
		n->gap_kind = TURN_CALLS_TOOLS;
	if (has_content && content.kind == JSON_STRING) {
		json_unescape(&g->text, content.raw);
		return 0;
	}
	if (has_content && content.kind == JSON_ARRAY)
		return add_part_texts(&g->text, content, e);
	if ((!has_content || content.kind == JSON_NULL) && str_is(role.raw, "assistant") &&
	    json_member(m, "tool_calls", &calls) && calls.kind == JSON_ARRAY)
		return 0;
	return err_set(e, ERR_RUN, "\"content\" must be a text or a list of parts");
}

int graph_messages(struct graph *g, struct session_node *n, struct json_slice list, struct err *e)
{
	struct json_writer w = json_writer(&g->json);
	struct json_iter it = json_iter(list);
	struct arena scratch = { 0 };
	struct json_value *tree;
	struct json_slice m;
	size_t k = 0;

	buf_reset(&g->json);
	buf_reset(&g->text);
	if (list.kind != JSON_ARRAY)
		return err_set(e, ERR_RUN, "\"messages\" must be a list");
	for (; json_each(&it, NULL, &m) == 1; k++)
		if (check_message(g, n, m, k == 0, e) < 0)
			return err_wrap(e, "messages[%zu]", k);
	if (!k)
		return err_set(e, ERR_RUN, "\"messages\" is empty");
	if (json_parse(&scratch, list.raw, &tree, e) == 0)
		json_put_value(&w, tree);
	arena_release(&scratch);
	n->messages = arena_str(&g->arena, buf_str(&g->json));
	n->text = arena_str(&g->arena, buf_str(&g->text));
	return n->messages.n ? 0 : -1;
}

void graph_message(struct graph *g, struct session_node *n, struct str role, struct str text)
{
	struct json_writer w = json_writer(&g->json);

	buf_reset(&g->json);
	json_begin_array(&w);
	json_begin_object(&w);
	json_member_str(&w, "role", role);
	json_member_str(&w, "content", text);
	json_end_object(&w);
	json_end_array(&w);
	n->messages = arena_str(&g->arena, buf_str(&g->json));
	n->text = arena_str(&g->arena, text);
}

/* ---- order ---- */

/* Nodes of one session: node[first..end), in the order in which they are sent. */
struct ordering {
	const struct graph *g;
	uint32_t first, n;
	uint32_t *order;   /* of nodes; n_done of them are known */
	uint32_t n_done;
	uint32_t *open;    /* waits that are not done, by node - first */
	uint32_t *seen;    /* marks of is_after, by node - first */
	uint32_t *stack;
};

static int refuse(const struct session_node *n, struct err *e, const char *fmt, struct str other)
{
	char text[256];

	snprintf(text, sizeof(text), fmt, (int)(other.n < 100 ? other.n : 100), other.p);
	return err_set(e, ERR_RUN, "%s: turn '%.*s' %s", n->where,
		       (int)(n->name.n < 100 ? n->name.n : 100), n->name.p, text);
}

/*
 * Every turn after those that it waits for, by rounds over what is left in the order of the
 * file: a file in order takes one round.
 */
static int sort_session(struct ordering *x, struct err *e)
{
	const struct graph *g = x->g;
	uint32_t *round = x->stack, left = 0;

	for (uint32_t i = 0; i < x->n; i++) {
		x->open[i] = 1; /* not done */
		round[left++] = x->first + i;
	}
	while (left) {
		uint32_t kept = 0;

		for (uint32_t i = 0; i < left; i++) {
			const struct session_node *n = &g->node[round[i]];
			uint32_t k = 0;

			while (k < n->n_waits && !x->open[g->wait[n->wait + k] - x->first])
				k++;
			if (k < n->n_waits) {
				round[kept++] = round[i];
				continue;
			}
			x->open[round[i] - x->first] = 0;
			x->order[x->n_done++] = round[i];
		}
		if (kept == left) {
			const struct session_node *n = &g->node[round[0]];

			for (uint32_t k = 0; k < n->n_waits; k++)
				if (x->open[g->wait[n->wait + k] - x->first])
					return refuse(n, e, "is part of a cycle: it waits for "
						      "'%.*s', which waits for it, directly or "
						      "through others",
						      g->node[g->wait[n->wait + k]].name);
		}
		left = kept;
	}
	return 0;
}

/* Whether node a waits for b, directly or by way of others. There are no cycles. */
static bool is_after(struct ordering *x, uint32_t a, uint32_t b)
{
	const struct graph *g = x->g;
	const struct session_node *first = &g->node[a];
	uint32_t depth = 0;

	for (uint32_t k = 0; k < first->n_waits; k++)
		if (g->wait[first->wait + k] == b)
			return true;

	memset(x->seen, 0, x->n * sizeof(*x->seen));
	x->stack[depth++] = a;
	while (depth) {
		const struct session_node *n = &g->node[x->stack[--depth]];

		for (uint32_t k = 0; k < n->n_waits; k++) {
			uint32_t wait = g->wait[n->wait + k];

			if (wait == b)
				return true;
			if (x->seen[wait - x->first])
				continue;
			x->seen[wait - x->first] = 1;
			x->stack[depth++] = wait;
		}
	}
	return false;
}

static int check_histories(struct ordering *x, struct err *e)
{
	for (uint32_t i = 0; i < x->n; i++) {
		const struct session_node *n = &x->g->node[x->first + i];

		if (n->history != TURN_NONE && !is_after(x, x->first + i, n->history))
			return refuse(n, e, "continues '%.*s' without waiting for it",
				      x->g->node[n->history].name);
	}
	return 0;
}

/* ---- the workload ---- */

struct filling {
	struct graph *g;
	const struct dataset_env *env;
	struct workload *w;
	struct session_build build;
	uint32_t *order, *turn; /* nodes of the session in order; the turn that a node became */
	uint32_t *first;        /* nodes of session s: first[s] to first[s + 1] */
	size_t *tokens;         /* of each node's text */
};

static uint64_t prompt_tokens(const struct filling *x, const struct session_node *n)
{
	uint64_t tokens = x->tokens[n - x->g->node];

	if (n->history != TURN_NONE) {
		const struct sample *before = &x->w->v[x->turn[n->history]];

		tokens += before->prompt_len;
		tokens += before->output_len > 0 ? (uint64_t)before->output_len : 0;
	}
	return tokens < UINT32_MAX ? tokens : UINT32_MAX;
}

static int add_node(struct filling *x, uint32_t i, struct err *e)
{
	struct graph *g = x->g;
	const struct session_node *n = &g->node[i];
	uint32_t prompt_len = (uint32_t)prompt_tokens(x, n), number = 0;
	struct sample *s = workload_add(x->w);
	struct turn *t;

	if (n->history != TURN_NONE)
		number = x->build.turn[x->turn[n->history]].number + 1u;
	else if (n->n_waits)
		number = x->build.turn[x->turn[g->wait[n->wait]]].number + 1u;
	if (number > PATH_TURNS_MAX)
		return err_set(e, ERR_LIMIT, "%s: more than %d turns one after the other", n->where,
			       PATH_TURNS_MAX);
	s->prompt_len = prompt_len;
	s->output_len = n->output_len;
	s->messages = n->messages;
	s->overrides = arena_str(&x->w->arena, n->overrides);
	s->headers = arena_str(&x->w->arena, n->headers);
	s->priority = n->priority;
	s->timestamp_s = n->timestamp_s;
	s->request_id = dataset_request_id(x->w, x->env, x->w->n - 1);
	if (workload_keep(x->w, &s->messages, e) < 0)
		return -1;
	t = session_add_turn(&x->build, n->history == TURN_NONE ? TURN_NONE : x->turn[n->history]);
	t->number = (uint16_t)number;
	t->gap_s = n->gap_s;
	t->gap_kind = (uint8_t)(n->gap_s <= 0 ? TURN_NO_GAP :
				n->gap_kind == TURN_NO_GAP ? TURN_THINKS : n->gap_kind);
	t->is_gap_from_start = n->is_gap_from_start;
	for (uint32_t k = 0; k < n->n_waits; k++)
		session_wait_for(&x->build, x->turn[g->wait[n->wait + k]]);
	x->turn[i] = (uint32_t)(x->w->n - 1);
	return 0;
}

/* copy: how often it was there before. */
static int add_session(struct filling *x, uint32_t session, uint32_t copy, struct err *e)
{
	const struct graph *g = x->g;
	struct arena *a = &x->w->arena;
	struct str id = g->session[session];

	session_begin(&x->build, copy ? str_of(arena_printf(a, "%.*s#%u", (int)id.n, id.p, copy + 1)) :
					arena_str(a, id));
	for (uint32_t i = x->first[session]; i < x->first[session + 1]; i++)
		if (add_node(x, x->order[i], e) < 0)
			return -1;
	return 0;
}

static int order_sessions(struct filling *x, struct err *e)
{
	const struct graph *g = x->g;
	uint32_t *scratch = mem_array(3 * g->n + 1, sizeof(*scratch));
	uint32_t at = 0;
	int rc = 0;

	for (uint32_t s = 0; s < g->n_sessions; s++) {
		x->first[s] = at;
		while (at < g->n && g->node[at].session == s)
			at++;
	}
	x->first[g->n_sessions] = at;
	assert(at == g->n);
	for (uint32_t s = 0; rc == 0 && s < g->n_sessions; s++) {
		struct ordering one = {
			.g = g, .first = x->first[s], .n = x->first[s + 1] - x->first[s],
			.order = x->order + x->first[s], .open = scratch, .seen = scratch + g->n,
			.stack = scratch + 2 * g->n,
		};

		rc = sort_session(&one, e) < 0 ? -1 : check_histories(&one, e);
	}
	free(scratch);
	return rc;
}

static int count_tokens(struct filling *x, struct err *e)
{
	const struct graph *g = x->g;
	struct str *text = mem_array(g->n, sizeof(*text));
	int rc = 0;

	for (size_t i = 0; i < g->n; i++)
		text[i] = g->node[i].text;
	if (x->env->tokenizer)
		rc = tokenizer_count_batch(x->env->tokenizer, text, g->n, false, x->env->threads,
					   x->tokens, e);
	free(text);
	return rc;
}

/* Fills w with the n sessions listed in which (NULL: all, in order). ERR_RUN: e names the turn. */
static int graph_finish(struct graph *g, const size_t *which, size_t n,
			const struct dataset_env *env, struct workload *w, struct err *e)
{
	struct filling x = {
		.g = g, .env = env, .w = w,
		.order = mem_array(g->n, sizeof(*x.order)),
		.turn = mem_array(g->n, sizeof(*x.turn)),
		.first = mem_array(g->n_sessions + 1, sizeof(*x.first)),
		.tokens = mem_array(g->n, sizeof(*x.tokens)),
	};
	uint32_t *copies = mem_array(g->n_sessions, sizeof(*copies));
	int rc = order_sessions(&x, e) < 0 ? -1 : count_tokens(&x, e);

	assert(w->n == 0 && (which || n == g->n_sessions));
	assert(w->n == 0 && (which || n == g->n_sessions));
	for (size_t i = 0; rc == 0 && i < n; i++) {
		uint32_t one = (uint32_t)(which ? which[i] : i);

		if (w->n + (x.first[one + 1] - x.first[one]) > REQUESTS_MAX)
			rc = err_set(e, ERR_LIMIT, "the sessions have more than %u turns", REQUESTS_MAX);
		else
			rc = add_session(&x, one, copies[one]++, e);
	}
	w->has_priorities = g->has_priorities;
	if (rc == 0)
		session_finish(&x.build, w);
	session_build_release(&x.build);
	free(x.order);
	free(x.turn);
	free(x.first);
	free(x.tokens);
	free(copies);
	return rc;
}

/* ---- what readers share ---- */

const char *session_where(const struct session_reading *r, size_t row)
{
	struct buf text = { 0 };
	const char *where;

	table_where(r->table, row, &text);
	where = arena_text(&r->graph->arena, buf_str(&text));
	buf_release(&text);
	return where;
}

int64_t session_output_len(const struct session_reading *r)
{
	const struct opt_int *asked = &r->o->conversations_output_len;

	return asked->is_set ? asked->v : -1;
}

static bool is_given(struct json_slice object, const char *key, struct json_slice *v)
{
	return json_member(object, key, v) && v->kind != JSON_NULL;
}

int session_count(struct json_slice object, const char *key, int64_t *out, struct err *e)
{
	struct json_slice v;

	if (!is_given(object, key, &v))
		return 0;
	if (v.kind == JSON_INT && json_to_i64(v, out) && *out > 0 && *out <= LENGTH_TOKENS_MAX)
		return 1;
	return err_set(e, ERR_RUN, "\"%s\" must be a whole number above 0", key);
}

int session_ms(struct json_slice object, const char *key, double *seconds, struct err *e)
{
	struct json_slice v;

	if (!is_given(object, key, &v))
		return 0;
	if ((v.kind == JSON_INT || v.kind == JSON_REAL) && json_to_f64(v, seconds) &&
	    *seconds >= 0 && *seconds <= 1e3 * DUE_S_MAX) {
		*seconds /= 1e3;
		return 1;
	}
	return err_set(e, ERR_RUN, "\"%s\" must be milliseconds from 0 to a year", key);
}

int session_text(struct json_slice object, const char *key, struct arena *a, struct str *out,
		 struct err *e)
{
	struct buf text = { 0 };
	struct json_slice v;

	if (!is_given(object, key, &v))
		return 0;
	if (v.kind != JSON_STRING && v.kind != JSON_INT)
		return err_set(e, ERR_RUN, "\"%s\" must be a text", key);
	if (v.kind == JSON_STRING)
		json_unescape(&text, v.raw);
	else
		buf_add_str(&text, v.raw);
	*out = arena_take(a, &text);
	for (size_t i = 0; i < out->n; i++)
		if ((unsigned char)out->p[i] < ' ' || out->p[i] == 0x7f)
			return err_set(e, ERR_RUN, "\"%s\" has a control character", key);
	return 1;
}

static int by_session(const void *a, const void *b)
{
	const struct session_row *x = a, *y = b;

	if (x->session != y->session)
		return x->session < y->session ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

struct session_row *session_rows(const struct session_reading *r, const char *key, struct err *e)
{
	struct arena *a = &r->graph->arena;
	size_t n = table_rows(r->table);
	struct session_row *row = mem_array(n, sizeof(*row));
	uint32_t sessions = 0;
	struct map ids = { 0 };
	int rc = 0;

	for (size_t i = 0; rc >= 0 && i < n; i++) {
		struct json_slice object;
		uint64_t session = sessions;

		row[i].number = i;
		rc = table_row(r->table, i, &object, e);
		if (rc < 0)
			break;
		rc = session_text(object, key, a, &row[i].id, e);
		if (rc < 0)
			err_wrap(e, "%s", session_where(r, i));
		if (rc > 0 && !map_get(&ids, row[i].id, &session))
			map_put(&ids, row[i].id, session);
		sessions += session == sessions;
		row[i].session = (uint32_t)session;
	}
	map_release(&ids);
	if (rc >= 0) {
		qsort(row, n, sizeof(*row), by_session);
		return row;
	}
	free(row);
	return NULL;
}

/* ---- our own form ---- */

struct own_sessions {
	const struct session_reading *r;
	struct legacy np;
	struct pcg64 rng; /* of laws */
	struct session_row *row;
	size_t n;
	struct map turns; /* "<session>/<turn>" to a node */
};

static struct str turn_key(struct arena *a, uint32_t session, struct str turn)
{
	return str_of(arena_printf(a, "%u/%.*s", session, (int)turn.n, turn.p));
}

/* A turn that another one names. */
static int find_turn(struct own_sessions *x, const struct session_node *n, const char *key,
		     struct json_slice v, uint32_t *out, struct err *e)
{
	struct buf name = { 0 };
	struct arena a = { 0 };
	uint64_t node = 0;
	bool is_known;

	if (v.kind == JSON_STRING)
		json_unescape(&name, v.raw);
	else
		buf_add_str(&name, v.raw);
	is_known = (v.kind == JSON_STRING || v.kind == JSON_INT) &&
		   map_get(&x->turns, turn_key(&a, n->session, buf_str(&name)), &node);
	*out = (uint32_t)node;
	if (!is_known)
		err_set(e, ERR_RUN, "\"%s\" names turn '%.*s', which the session does not have", key,
			(int)(name.len < 100 ? name.len : 100), name.len ? name.data : "");
	arena_release(&a);
	buf_release(&name);
	return is_known ? 0 : -1;
}

static int read_waits(struct own_sessions *x, struct session_node *n, struct json_slice object,
		      struct err *e)
{
	uint32_t at = (uint32_t)(n - x->r->graph->node), wait;
	struct json_slice v, one;
	struct json_iter it;

	if (json_member(object, "history", &v)) {
		if (v.kind == JSON_ARRAY)
			return err_set(e, ERR_RUN, "\"history\" names several turns; a turn continues one "
				       "history, \"waits\" may name more");
		if (v.kind != JSON_NULL && find_turn(x, n, "history", v, &n->history, e) < 0)
			return -1;
	} else if (at && x->r->graph->node[at - 1].session == n->session) {
		n->history = at - 1;
	}
	if (!json_member(object, "waits", &v)) {
		if (n->history != TURN_NONE)
			graph_wait(x->r->graph, at, n->history);
		return 0;
	}
	if (v.kind != JSON_ARRAY)
		return err_set(e, ERR_RUN, "\"waits\" must be a list of turns");
	it = json_iter(v);
	while (json_each(&it, NULL, &one) == 1) {
		if (find_turn(x, n, "waits", one, &wait, e) < 0)
			return -1;
		graph_wait(x->r->graph, at, wait);
	}
	return 0;
}

static bool is_choice(struct json_slice v, const char *a, const char *b, bool *is_b)
{
	*is_b = v.kind == JSON_STRING && str_is(v.raw, b);
	return *is_b || (v.kind == JSON_STRING && str_is(v.raw, a));
}

/* "lognormal:2,0.5" */
static int draw_law(struct own_sessions *x, struct session_node *n, struct str raw, struct err *e)
{
	struct buf text = { 0 };
	struct lengths law;
	struct err why;
	int rc;

	json_unescape(&text, raw);
	rc = lengths_parse_time("\"gap\"", text.data ? text.data : "", &law, &why);
	if (rc < 0)
		err_set(e, err_again(&why), "%s: %s", n->where, why.text);
	else
		n->gap_s = lengths_draw_s(&law, &x->rng);
	lengths_release(&law);
	buf_release(&text);
	return rc;
}

static int read_gap(struct own_sessions *x, struct session_node *n, struct json_slice object,
		    struct err *e)
{
	const struct json_file place = { .where = n->where };
	struct distribution d;
	struct json_slice v;
	bool is_second;

	if (is_given(object, "gap", &v) && v.kind == JSON_OBJECT) {
		if (distribution_read(&place, "gap", v, &x->r->graph->arena, &d, e) < 0)
			return -1;
		n->gap_s = distribution_draw(&d, &x->np);
	} else if (is_given(object, "gap", &v) && v.kind == JSON_STRING) {
		if (draw_law(x, n, v.raw, e) < 0)
			return -1;
	} else if (is_given(object, "gap", &v) &&
		   ((v.kind != JSON_INT && v.kind != JSON_REAL) || !json_to_f64(v, &n->gap_s))) {
		return err_set(e, ERR_RUN, "%s: \"gap\" must be seconds, a law or a distribution", n->where);
	}
	if (!(n->gap_s >= 0 && n->gap_s <= DUE_S_MAX))
		return err_set(e, ERR_RUN, "%s: \"gap\" is %g s; expected 0 to a year", n->where, n->gap_s);
	if (is_given(object, "gap_kind", &v)) {
		if (!is_choice(v, "think", "tool", &is_second))
			return err_set(e, ERR_RUN, "%s: \"gap_kind\" must be \"think\" or \"tool\"", n->where);
		n->gap_kind = is_second ? TURN_CALLS_TOOLS : TURN_THINKS;
	}
	if (is_given(object, "gap_from", &v) &&
	    !is_choice(v, "end", "start", &n->is_gap_from_start))
		return err_set(e, ERR_RUN, "%s: \"gap_from\" must be \"end\" or \"start\"", n->where);
	return 0;
}

static int read_object(struct json_slice object, const char *key, struct arena *a,
		       struct str *out, struct err *e)
{
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);
	struct arena scratch = { 0 };
	struct json_value *tree;
	struct json_slice v;

	if (!is_given(object, key, &v))
		return 0;
	if (v.kind != JSON_OBJECT)
		return err_set(e, ERR_RUN, "\"%s\" must be an object", key);
	if (json_parse(&scratch, v.raw, &tree, e) == 0) {
		json_put_value(&w, tree);
		*out = arena_str(a, buf_str(&text));
	}
	arena_release(&scratch);
	buf_release(&text);
	return out->n ? 0 : -1;
}

static int read_members(struct own_sessions *x, struct session_node *n, struct json_slice object,
			struct err *e)
{
	static const char *const known[] = {
		"id", "turn", "history", "waits", "gap", "gap_kind", "gap_from", "messages",
		"output_tokens", "extra_body", "headers", "priority", "timestamp", NULL,
	};
	struct json_slice v;

	if (session_keys(object, known, e) < 0)
		return -1;
	if (!json_member(object, "messages", &v))
		return err_set(e, ERR_RUN, "\"messages\" is missing");
	if (graph_messages(x->r->graph, n, v, e) < 0 ||
	    session_count(object, "output_tokens", &n->output_len, e) < 0 ||
	    read_object(object, "extra_body", &x->r->graph->arena, &n->overrides, e) < 0 ||
	    read_object(object, "headers", &x->r->graph->arena, &n->headers, e) < 0)
		return -1;
	if (is_given(object, "priority", &v)) {
		if (v.kind != JSON_INT || !json_to_i64(v, &n->priority))
			return err_set(e, ERR_RUN, "\"priority\" must be a whole number");
		x->r->graph->has_priorities = true;
	}
	if (!is_given(object, "timestamp", &v))
		return 0;
	if (n->n_waits)
		return err_set(e, ERR_RUN, "\"timestamp\" is for a turn that waits for none");
	if ((v.kind == JSON_INT || v.kind == JSON_REAL) && json_to_f64(v, &n->timestamp_s) &&
	    n->timestamp_s >= 0 && n->timestamp_s <= DUE_S_MAX)
		return 0;
	return err_set(e, ERR_RUN, "\"timestamp\" must be seconds from 0 to a year");
}

/* A node for each row, so that every turn has its number before one is named. */
static int add_nodes(struct own_sessions *x, struct err *e)
{
	struct graph *g = x->r->graph;
	size_t in_session = 0;

	for (size_t i = 0; i < x->n; i++) {
		struct session_row *row = &x->row[i];
		const char *where = session_where(x->r, row->number);
		struct json_slice object;
		struct str turn = { 0 }, key;
		struct session_node *n;

		if (!row->id.p)
			return err_set(e, ERR_RUN, "%s: \"id\" of the session is missing", where);
		if (table_row(x->r->table, row->number, &object, e) < 0)
			return -1;
		if (session_text(object, "turn", &g->arena, &turn, e) < 0)
			return err_wrap(e, "%s", where);
		if (i == 0 || row->session != x->row[i - 1].session) {
			graph_session(g, row->id);
			in_session = 0;
		}
		if (!turn.p)
			turn = str_of(arena_printf(&g->arena, "%zu", in_session));
		in_session++;
		n = graph_node(g, where, turn, e);
		if (!n)
			return -1;
		n->output_len = session_output_len(x->r);
		key = turn_key(&g->arena, n->session, turn);
		if (map_get(&x->turns, key, NULL))
			return err_set(e, ERR_RUN, "%s: session '%.*s' has two turns with the id "
						   "'%.*s'", where,
				       (int)(row->id.n < 100 ? row->id.n : 100), row->id.p,
				       (int)(turn.n < 100 ? turn.n : 100), turn.p);
		map_put(&x->turns, key, g->n - 1);
	}
	return 0;
}

static int read_own(const struct session_reading *r, struct err *e)
{
	struct own_sessions x = { .r = r, .rng = rng_fork(r->env->seed + 1, "session gaps") };
	int rc;

	x.n = table_rows(r->table);
	x.row = session_rows(r, "id", e);
	rc = x.row ? add_nodes(&x, e) : -1;
	legacy_seed(&x.np, (uint32_t)(r->env->seed + 1));
	for (size_t i = 0; rc == 0 && i < x.n; i++) {
		struct session_node *n = &r->graph->node[i];
		struct json_slice object;

		rc = table_row(r->table, x.row[i].number, &object, e);
		if (rc == 0 &&
		    (read_waits(&x, n, object, e) < 0 || read_members(&x, n, object, e) < 0))
			rc = err_wrap(e, "%s", n->where);
		if (rc == 0)
			rc = read_gap(&x, n, object, e);
	}
	map_release(&x.turns);
	free(x.row);
	return rc;
}

/* ---- which form ---- */

static bool has(struct json_slice row, const char *key)
{
	struct json_slice v;

	return json_member(row, key, &v);
}

static int read_file(const struct session_reading *r, const char *path, struct err *e)
{
	static const char *const media[] = {
		"text", "texts", "image", "images", "audio", "audios", "video", "videos",
	};
	struct json_slice row, turns, first;

	if (table_rows(r->table) == 0)
		return err_set(e, ERR_RUN, "%s: the file has no sessions", path);
	if (table_row(r->table, 0, &row, e) < 0)
		return -1;
	if (has(row, "orchestrator") || has(row, "pre_session_spawns"))
		return sessions_read_dag(r, e);
	if (json_member(row, "turns", &turns))
		return rows_item(turns, 0, &first) && has(first, "messages") ?
		       sessions_read_dag(r, e) : sessions_read_multi_turn(r, e);
	for (size_t i = 0; i < sizeof(media) / sizeof(*media); i++)
		if (has(row, media[i]))
			return sessions_read_single_turn(r, e);
	if (has(row, "id") && has(row, "messages"))
		return read_own(r, e);
	return err_set(e, ERR_RUN, "%s: expected \"id\" and \"messages\", or a file of aiperf "
		       "(single_turn, multi_turn, dag_jsonl)", session_where(r, 0));
}

/* ---- the set ---- */

static int check(const struct dataset_opts *o, const struct dataset_env *env, struct err *e)
{
	(void)o;
	return dataset_check_chat(env, "sessions", e);
}

/* Times from the first one on; all roots have one, or none is used. */
static void set_times(struct graph *g, struct workload *w)
{
	double first = INFINITY;
	size_t roots = 0, timed = 0;

	for (size_t i = 0; i < g->n; i++) {
		roots += g->node[i].n_waits == 0;
		timed += g->node[i].n_waits == 0 && !isnan(g->node[i].timestamp_s);
		if (g->node[i].timestamp_s < first)
			first = g->node[i].timestamp_s;
	}
	w->is_self_timed = timed && timed == roots;
	if (timed && timed < roots)
		dataset_note(w, "%zu of %zu sessions have no timestamp; none is used", roots - timed,
			     roots);
	for (size_t i = 0; i < g->n; i++)
		g->node[i].timestamp_s = w->is_self_timed ? g->node[i].timestamp_s - first : NAN;
}

static int build(const struct dataset_opts *o, const struct dataset_env *env,
		 struct compat_rng *rng, struct workload *w, struct err *e)
{
	const struct table_opts opts = {
		.cancel = env->cancel, .ending = file_is_stream(o->path) ? ".jsonl" : NULL,
	};
	struct graph g = { 0 };
	struct session_reading r = { .o = o, .env = env, .graph = &g };
	size_t *which = NULL, n;
	int rc = -1;

	if (env->num_prompts > REQUESTS_MAX)
		return err_set(e, ERR_USAGE, "--num-prompts %" PRId64 " is more than the limit of %u",
			       env->num_prompts, REQUESTS_MAX);
	r.table = table_open(o->path, &opts, e);
	if (r.table && read_file(&r, o->path, e) == 0) {
		set_times(&g, w);
		which = dataset_choose(o, env, rng, g.n_sessions, &n);
		rc = graph_finish(&g, which, n, env, w, e);
	}
	table_close(r.table);
	graph_release(&g);
	free(which);
	return rc;
}

static const char *const options[] = { "conversations-output-len", "no-oversample", NULL };

const struct dataset dataset_sessions = {
	.name = "sessions", .options = options,
	.summary = "sessions with gaps, branches and joins (aiperf's files, or one turn per line)",
	.needs_path = true, .takes_all = true, .is_whole = true, .may_have_timestamps = true,
	.check = check, .build = build,
};
