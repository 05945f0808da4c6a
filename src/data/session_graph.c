/* SPDX-License-Identifier: Apache-2.0 */
/* session_graph.c - see session_graph.h. */
#include "data/session_graph.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/mem.h"
#include "json/write.h"
#include "token/tokenizer.h"

#define PATH_TURNS_MAX UINT16_MAX /* turns are numbered in 16 bits */

/* ---- adding ---- */

uint32_t graph_session(struct graph *g, struct str id)
{
	if (g->n_sessions == g->cap_sessions) {
		g->cap_sessions = g->cap_sessions ? 2 * g->cap_sessions : 64;
		g->session = mem_grow(g->session, g->cap_sessions, sizeof(*g->session));
	}
	g->first = g->n;
	g->session[g->n_sessions] = arena_str(&g->arena, id);
	return (uint32_t)g->n_sessions++;
}

struct node *graph_node(struct graph *g, const char *where, struct str name, struct err *e)
{
	assert(g->n_sessions);
	if (g->n == REQUESTS_MAX || g->n - g->first == SESSION_TURNS_MAX) {
		err_set(e, ERR_LIMIT, "%s: a session has more than %d turns, or all have more than %u",
			where, SESSION_TURNS_MAX, REQUESTS_MAX);
		return NULL;
	}
	if (g->n == g->cap) {
		g->cap = g->cap ? 2 * g->cap : 256;
		g->node = mem_grow(g->node, g->cap, sizeof(*g->node));
	}
	g->node[g->n] = (struct node){
		.where = where, .name = name, .session = (uint32_t)(g->n_sessions - 1),
		.history = TURN_NONE, .timestamp_s = NAN,
		.output_len = -1,
	};
	return &g->node[g->n++];
}

void graph_wait(struct graph *g, uint32_t node, uint32_t other)
{
	struct node *n = &g->node[node];

	if (!n->n_waits)
		n->wait = (uint32_t)g->n_waits;
	assert(n->wait + n->n_waits == g->n_waits);
	for (uint32_t k = 0; k < n->n_waits; k++)
		if (g->wait[n->wait + k] == other)
			return;
	if (g->n_waits == g->cap_waits) {
		g->cap_waits = g->cap_waits ? 2 * g->cap_waits : 256;
		g->wait = mem_grow(g->wait, g->cap_waits, sizeof(*g->wait));
	}
	g->wait[g->n_waits++] = other;
	n->n_waits++;
}

void graph_release(struct graph *g)
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
	struct str key;

	while (json_each(&it, &key, &part) == 1) {
		if (!json_member(part, "type", &type) || type.kind != JSON_STRING)
			return err_set(e, ERR_RUN, "\"content\" is a list that has an element without a "
				       "\"type\"");
		if (str_is(type.raw, "text") && json_member(part, "text", &v) &&
		    v.kind == JSON_STRING)
			json_unescape(text, v.raw);
	}
	return 0;
}

static int check_message(struct graph *g, struct node *n, struct json_slice m, bool is_first,
			 struct err *e)
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

int graph_messages(struct graph *g, struct node *n, struct json_slice list, struct err *e)
{
	struct json_writer w = json_writer(&g->json);
	struct json_iter it = json_iter(list);
	struct arena scratch = { 0 };
	struct json_value *tree;
	struct json_slice m;
	struct str key;
	size_t k = 0;

	buf_reset(&g->json);
	buf_reset(&g->text);
	if (list.kind != JSON_ARRAY)
		return err_set(e, ERR_RUN, "\"messages\" must be a list");
	for (; json_each(&it, &key, &m) == 1; k++)
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

void graph_message(struct graph *g, struct node *n, struct str role, struct str text)
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

static int refuse(const struct node *n, struct err *e, const char *fmt, struct str other)
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
			const struct node *n = &g->node[round[i]];
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
			const struct node *n = &g->node[round[0]];

			for (uint32_t k = 0; k < n->n_waits; k++)
				if (x->open[g->wait[n->wait + k] - x->first])
					return refuse(n, e, "is part of a cycle: it waits for '%.*s', which "
						      "waits for it, directly or by way of others",
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
	const struct node *first = &g->node[a];
	uint32_t depth = 0;

	for (uint32_t k = 0; k < first->n_waits; k++)
		if (g->wait[first->wait + k] == b)
			return true;

	memset(x->seen, 0, x->n * sizeof(*x->seen));
	x->stack[depth++] = a;
	while (depth) {
		const struct node *n = &g->node[x->stack[--depth]];

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
		const struct node *n = &x->g->node[x->first + i];

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

static uint64_t prompt_tokens(const struct filling *x, const struct node *n)
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
	const struct node *n = &g->node[i];
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

int graph_finish(struct graph *g, const uint32_t *which, size_t n, const struct dataset_env *env,
		 struct workload *w, struct err *e)
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
	for (size_t i = 0; rc == 0 && i < n; i++) {
		uint32_t one = which ? which[i] : (uint32_t)i;

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
