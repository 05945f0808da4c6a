/* SPDX-License-Identifier: Apache-2.0 */
/* multi_turn.c - the stages of a multi-turn run, and its result; see multi_turn.h. */
#include "bench/serve/multi_turn.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/serve/point_internal.h"
#include "client/endpoint/turns.h"
#include "core/base/clock.h"
#include "core/base/mem.h"
#include "core/json/read.h"
#include "core/json/write.h"
#include "input/token/tokenizer.h"

#define TIMEOUT_SHARE 0.2          /* seconds that each token asked for may take */
#define GENERATED_LABELLED 100     /* upstream's percentiles of generated ones: up to 99 */
#define SESSION_HEADER "X-Session-ID"

const struct endpoint *multi_turn_endpoint(const struct multi_turn *m)
{
	return m->o->no_stream ? &endpoint_whole_turns : &endpoint_turns;
}

/* ---- conversations as samples ---- */

/* Checks that depend on the number of conversations, in upstream's order. */
static int check_number(const struct multi_turn *m, size_t n, struct err *e)
{
	if (m->order.clients > n)
		return err_set(e, ERR_USAGE, "--num-clients %u is above the %zu conversations of %s",
			       m->order.clients, n, m->o->input_file);
	if (m->order.active_max > n)
		return err_set(e, ERR_USAGE, "--max-active-conversations %u is above the %zu "
			       "conversations of %s", m->order.active_max, n, m->o->input_file);
	return 0;
}

/* A limit of 0 is the length of the data's answer; -1: the member is left out. */
static int64_t limit_of(int64_t limit, int64_t data_len)
{
	if (limit < 0)
		return -1;
	return limit ? limit : data_len;
}

/* The body members that follow the messages, in upstream's order. */
static struct str write_members(const struct multi_turn *m, struct str id, int64_t data_len,
				struct arena *a)
{
	const struct multi_turn_opts *o = m->o;
	const struct { const char *key; int64_t n; } limits[] = {
		{ "min_tokens", m->compat & MULTI_TURN_BODY ? -1 :
				limit_of(o->limit_min_tokens, data_len) },
		{ "max_tokens", limit_of(o->limit_max_tokens, data_len) },
	};
	struct buf out = { 0 };
	struct json_writer w = json_writer(&out);
	struct str text;

	json_begin_object(&w);
	if (!(m->compat & MULTI_TURN_BODY)) {
		json_member_int(&w, "seed", 0);
		json_member_f64(&w, "temperature", 0);
	}
	if (o->send_conversation_id)
		json_member_str(&w, "conversation_id", id);
	if (!o->no_stream) {
		json_member_bool(&w, "stream", true);
		json_member_object(&w, "stream_options");
		json_member_bool(&w, "include_usage", !(m->compat & MULTI_TURN_USAGE));
		json_end_object(&w);
	}
	for (size_t i = 0; i < 2; i++) {
		if (limits[i].n < 0)
			continue;
		json_member_int(&w, limits[i].key, limits[i].n);
	}
	json_end_object(&w);
	text = arena_str(a, buf_str(&out));
	buf_release(&out);
	return text;
}

static void fill_samples(struct multi_turn *m, struct workload *w)
{
	const struct sessions *s = w->sessions;
	int64_t longer = 0; /* the answers before, as they are asked for, than the data's */

	m->n_turns = mem_array(s->n_sessions + 1, sizeof(*m->n_turns));
	for (size_t i = 0; i < s->n_sessions; i++)
		m->n_turns[i] = s->session[i].n;
	for (size_t i = 0; i < w->n; i++) {
		struct sample *sample = &w->v[i];
		int64_t data_len = sample->output_len;

		sample->overrides = write_members(m, s->session[s->turn[i].session].id, data_len,
						  &w->arena);
		sample->output_len = limit_of(m->o->limit_max_tokens, data_len);
		longer = s->turn[i].number ? longer : 0;
		sample->prompt_len = (uint32_t)(sample->prompt_len + longer);
		longer += sample->output_len > 0 ? sample->output_len : 0;
		longer -= data_len > 0 ? data_len : 0;
	}
}

/* Tokens of the users' messages, the assistant's and whole requests of a conversation. */
static void add_tokens(const struct conversations *c, size_t i, size_t special,
		       struct multi_turn_count *user, struct multi_turn_count *assistant,
		       struct multi_turn_count *requests)
{
	double tokens[2] = { 0 }, request = 0;
	size_t n[2] = { 0 };

	for (size_t k = c->v[i].first; k < c->v[i].first + c->v[i].n; k++) {
		const struct message *m = &c->message[k];
		bool is_answer = m->role == SPEAKER_ASSISTANT;

		request += (double)(m->tokens + special);
		if (!is_answer)
			requests->v[requests->n++] = request;
		tokens[is_answer] += (double)(m->tokens + special);
		n[is_answer]++;
	}
	user->v[user->n++] = tokens[0] / (double)n[0];
	if (n[1])
		assistant->v[assistant->n++] = tokens[1] / (double)n[1];
}

/*
 * Upstream's tables: of conversations from a file the number of messages; of generated ones, if
 * their file says print_stats, also the mean tokens of a conversation's messages, and those of its
 * requests, each text counted with the special tokens that a tokenizer adds to it.
 */
static void describe(const struct stage *s, const struct conversations *c)
{
	enum { TURNS, USER, ASSISTANT, REQUEST, N };
	bool is_generated = c->params.is_generated;
	struct multi_turn_count count[N] = {
		{ .name = is_generated ? "conversation_turns" : "num_turns" },
		{ .name = "user_tokens" }, { .name = "assistant_tokens" },
		{ .name = "request_tokens" },
	};
	const struct tokenizer *tokenizer = s->point->tokenizer;
	size_t special = tokenizer ? tokenizer_count(tokenizer, STR(""), true) : 0;
	struct buf text = { 0 };

	if (is_generated && !c->params.prints_stats)
		return;
	for (size_t i = 0; i < N; i++)
		count[i].v = mem_array(c->n + c->n_messages, sizeof(*count[i].v));
	for (size_t i = 0; i < c->n; i++) {
		count[TURNS].v[count[TURNS].n++] = (double)c->v[i].n;
		if (is_generated)
			add_tokens(c, i, special, &count[USER], &count[ASSISTANT],
				   &count[REQUEST]);
	}
	buf_add_text(&text, "Conversations:\n");
	multi_turn_describe(count, is_generated ? REQUEST : USER,
			    is_generated ? GENERATED_LABELLED : SIZE_MAX, &text);
	if (is_generated) {
		buf_add_text(&text, "Requests:\n");
		multi_turn_describe(&count[REQUEST], 1, GENERATED_LABELLED, &text);
	}
	text.data[--text.len] = '\0'; /* a line's end is added */
	stage_say(s, "%s", text.data);
	for (size_t i = 0; i < N; i++)
		free(count[i].v);
	buf_release(&text);
}

int multi_turn_requests(struct stage *s, struct err *e)
{
	struct multi_turn *m = s->opts->multi_turn;
	struct point *p = s->point;
	const struct conversations_opts how = {
		.tokenizer = p->tokenizer, .np = &s->rng.np, .cancel = s->hooks->cancel,
	};
	uint32_t messages_max = m->order.messages_max;
	struct conversation_turns turns = {
		.tail_output_len = m->o->output_len,
		.request_id_prefix = m->sends_ids ? s->opts->request_id_prefix : NULL,
	};

	/* After the warm-up the second turn is sent whatever the limit is, as upstream does. */
	if (messages_max && m->o->warmup_step && messages_max < 3)
		messages_max = 3;
	turns.messages_max = messages_max;
	if (conversations_read(m->o->input_file, &how, &m->conversations, e) < 0) {
		err_wrap(e, "--input-file");
		return err_in_user_file(e);
	}
	if (check_number(m, m->conversations.n, e) < 0 ||
	    conversations_to_workload(&m->conversations, NULL, m->conversations.n, &turns,
				      &p->workload, e) < 0)
		return -1;
	p->workload.dataset = m->conversations.params.is_generated ? "generate_conversations"
								   : "conversations";
	fill_samples(m, &p->workload);
	describe(s, &m->conversations);
	m->sessions = p->workload.sessions;
	m->serve->num_prompts = (int64_t)p->workload.n - multi_turn_rows(s);
	m->workload = &p->workload;
	stage_made(s);
	return 0;
}

/* ---- plans ---- */

void multi_turn_plan(struct stage *s)
{
	const struct sessions *sessions = s->point->workload.sessions;
	struct plan *plan = &s->point->plan;

	plan_same(plan, (uint32_t)s->point->workload.n, 0);
	plan->n_roots = 0;
	for (uint32_t i = 0; i < plan->n; i++) {
		const struct turn *turn = &sessions->turn[i];

		plan->entry[i].sample = i;
		plan->entry[i].history = turn->history;
		plan->entry[i].session = turn->session;
		plan->entry[i].turn = turn->number;
	}
}

/* Entry i of it is the first turn of conversation i. */
static void plan_first_turns(const struct stage *s, struct plan *plan)
{
	const struct sessions *sessions = s->point->workload.sessions;

	plan_same(plan, (uint32_t)sessions->n_sessions, 0);
	plan->n_roots = 0;
	for (uint32_t i = 0; i < plan->n; i++) {
		plan->entry[i].sample = sessions->session[i].first;
		plan->entry[i].session = i;
	}
}

uint32_t multi_turn_rows(const struct stage *s)
{
	const struct multi_turn *m = s->opts->multi_turn;

	return m && m->o->warmup_step ? (uint32_t)m->sessions->n_sessions : 0;
}

/* ---- while it runs ---- */

/* Whether the answer equals the dataset's; true if the dataset has none. */
static bool multi_turn_is_expected(const struct multi_turn *m, uint32_t entry,
				   const struct request_row *row)
{
	struct str expected = m->workload->v[entry].expected;
	struct buf text = { 0 };
	bool is_same;

	if (expected.n == 0)
		return true;
	answer_text(m->record, row, &text);
	is_same = str_eq(buf_str(&text), expected);
	buf_release(&text);
	return is_same;
}

static enum turn_end end_of(struct multi_turn *m, uint32_t entry,
			    const struct request_row *row)
{
	if (row->fail != FAIL_NONE)
		return row->fail == FAIL_STATUS ? TURN_REFUSED : TURN_RAISED;
	if (!m->o->stop_on_mismatch || m->is_warming_up)
		return TURN_ANSWERED;
	m->is_wrong[entry] = !multi_turn_is_expected(m, entry, row);
	return m->is_wrong[entry] ? TURN_WRONG : TURN_ANSWERED;
}

static uint32_t pick(void *self, uint32_t client, uint32_t ended, const struct request_row *row,
		     double *gap_s)
{
	struct multi_turn *m = self;
	struct turn_next next;
	uint32_t entry = PLAN_NONE;

	if (row && row->fail == FAIL_CANCELLED)
		return PLAN_NONE; /* the run is over, and the conversation is not continued */
	pthread_mutex_lock(&m->lock);
	if (ended != PLAN_NONE)
		turn_order_ended(m->turns, client, end_of(m, ended, row));
	if (turn_order_next(m->turns, client, &next)) {
		entry = m->is_warming_up ? next.conversation
		      : m->sessions->session[next.conversation].first + next.turn;
		*gap_s = next.pause_s;
		if (!m->is_warming_up)
			m->client[entry] = client;
		if (!m->is_warming_up && m->o->warmup_step && next.turn == 1)
			m->record->row[entry].history = m->first_row + next.conversation;
	}
	pthread_mutex_unlock(&m->lock);
	return entry;
}

/* The warm-up sent them: nothing of them belongs to the main run. */
static void leave_out_first_turns(const struct multi_turn *m)
{
	for (size_t i = 0; i < m->sessions->n_sessions; i++)
		record_finish(&m->record->row[m->sessions->session[i].first], REQ_UNSENT);
}

/* The longest timeout of all requests applies to each: a transport has only one. */
static int64_t timeout_ns(const struct multi_turn *m)
{
	int64_t s = m->o->request_timeout_sec, most = 0;

	for (size_t i = 0; i < m->workload->n; i++)
		if (m->workload->v[i].output_len > most)
			most = m->workload->v[i].output_len;
	most = (int64_t)(TIMEOUT_SHARE * (double)most);
	return clock_span_ns((double)(most > s ? most : s));
}

/* turns: what is picked from. */
static void drive(struct multi_turn *m, struct turn_order *turns, struct load_opts *opts)
{
	m->turns = turns;
	opts->net.request_timeout_ns = timeout_ns(m);
	opts->max_concurrency = 0; /* each client has one request in flight */
	opts->max_sessions = 0;
	opts->retries = 0;
	opts->n_clients = m->order.clients;
	opts->pick = pick;
	opts->pick_self = m;
	opts->close = &m->is_closed;
}

void multi_turn_prepare(struct stage *s, struct prepare_opts *how)
{
	struct multi_turn *m = s->opts->multi_turn;
	struct point *p = s->point;

	assert(how->history);
	m->record = &p->record;
	how->is_without_ids = !m->sends_ids;
	how->session_header = m->o->send_conversation_id ? SESSION_HEADER : NULL;
	for (size_t i = 0; i < m->n_queue; i++) {
		struct buf answer = { 0 };

		record_text_of(&p->record, &p->record.row[m->first_row + m->queue[i]], &answer);
		history_set_answer(how->history, m->sessions->session[m->queue[i]].first,
				   buf_str(&answer));
		buf_release(&answer);
	}
}

void multi_turn_load(struct stage *s, struct load_opts *opts)
{
	struct multi_turn *m = s->opts->multi_turn;

	m->client = mem_array(s->point->plan.n, sizeof(*m->client));
	m->is_wrong = mem_array(s->point->plan.n, sizeof(*m->is_wrong));
	if (m->o->warmup_step)
		leave_out_first_turns(m);
	drive(m, turn_order_new(&m->order, m->n_turns, m->sessions->n_sessions,
				m->o->warmup_step ? m->queue : NULL, m->n_queue), opts);
}

/* ---- the warm-up step ---- */

static const struct request_row *row_of(const struct point *p, uint32_t entry)
{
	return &p->record.row[entry];
}

static struct turn_order *first_turns(const struct multi_turn *m)
{
	struct turn_order_opts order = m->order;

	order.active_max = order.clients;
	order.messages_max = 1;
	order.skips_first = false;
	order.stops_early = false;
	return turn_order_new(&order, m->n_turns, m->sessions->n_sessions, NULL, 0);
}

static int send_first_turns(struct stage *s, const struct plan *plan, struct err *e)
{
	struct multi_turn *m = s->opts->multi_turn;
	struct load_opts opts = stage_load_opts(s, PHASE_WARMUP);
	struct prepare_opts how = stage_prepare_opts(s, true);
	const uint32_t *finished;
	int rc;

	how.session_header = m->o->send_conversation_id ? SESSION_HEADER : NULL;
	m->is_warming_up = true;
	drive(m, first_turns(m), &opts);
	rc = stage_load(s, STAGE_WARMUP, &opts, &how, plan, m->first_row, e);
	m->is_warming_up = false;
	m->warmup_s = s->load_s;
	finished = turn_order_finished(m->turns, &m->n_queue);
	m->queue = mem_array(m->n_queue + 1, sizeof(*m->queue));
	memcpy(m->queue, finished, m->n_queue * sizeof(*m->queue));
	turn_order_free(m->turns);
	m->turns = NULL;
	return rc;
}

int multi_turn_warm_up(struct stage *s, struct err *e)
{
	struct multi_turn *m = s->opts->multi_turn;
	struct plan plan;
	int rc;

	if (!m->o->warmup_step)
		return 0;
	plan_first_turns(s, &plan);
	stage_say(s, "Warming up with the first turn of each conversation...");
	m->record = &s->point->record;
	m->first_row = record_add_rows(&s->point->record, plan.n);
	for (uint32_t i = 0; i < plan.n; i++) {
		const struct request_row *of = row_of(s->point, plan.entry[i].sample);
		struct request_row *row = &s->point->record.row[m->first_row + i];

		row->prompt_tokens = row->sample_prompt_tokens = of->sample_prompt_tokens;
		row->asked_tokens = of->asked_tokens;
	}
	rc = send_first_turns(s, &plan, e);
	plan_release(&plan);
	if (rc == 0 && m->n_queue == 0 && !stage_is_cancelled(s))
		rc = err_set(e, ERR_RUN, "--warmup-step: no first turn was answered");
	return rc;
}

void multi_turn_release(struct multi_turn *m)
{
	turn_order_free(m->turns);
	free(m->n_turns);
	free(m->client);
	free(m->is_wrong);
	free(m->queue);
	conversations_release(&m->conversations);
}

/* ---- results ---- */

static bool is_answered(const struct multi_turn *m, const struct point *p, uint32_t entry)
{
	return row_of(p, entry)->state == REQ_DONE && !m->is_wrong[entry];
}

/* The warm-up's row of a conversation that it finished; NULL: the main run began with turn 0. */
static const struct request_row *warm_row(const struct multi_turn *m, const struct point *p,
					  uint32_t conversation)
{
	const struct request_row *row = &p->record.row[m->first_row + conversation];

	return m->o->warmup_step && row->state == REQ_DONE ? row : NULL;
}

/* The row that holds the server's answer to an entry; NULL: there is none. */
static const struct request_row *answer_row(const struct multi_turn *m, const struct point *p,
					    uint32_t entry)
{
	const struct turn *turn = &m->sessions->turn[entry];

	if (turn->number == 0 && m->o->warmup_step)
		return warm_row(m, p, turn->session);
	return is_answered(m, p, entry) ? row_of(p, entry) : NULL;
}

/* Messages of a conversation: an optional system message, then user and assistant in turn. */
static size_t system_messages(const struct multi_turn *m, const struct conversation *c)
{
	return c->n && m->conversations.message[c->first].role == SPEAKER_SYSTEM;
}

static const struct message *user_message(const struct multi_turn *m, uint32_t conversation,
					  uint32_t turn)
{
	const struct conversation *c = &m->conversations.v[conversation];
	size_t at = system_messages(m, c) + 2 * (size_t)turn;

	assert(at < c->n && m->conversations.message[c->first + at].role == SPEAKER_USER);
	return &m->conversations.message[c->first + at];
}

/* ---- tokens ---- */

/* Per entry, of the server's answer: all of it, and what its first chunk had. */
struct counts { size_t *all, *first; };

/* Texts to count, in an arena, and where their counts go. */
struct to_count {
	struct str *text;
	size_t **to, n, cap;
	struct arena arena;
};

static void add_text(struct to_count *t, struct str text, size_t *to)
{
	if (t->n == t->cap) {
		t->cap = t->cap ? 2 * t->cap : 256;
		t->text = mem_grow(t->text, t->cap, sizeof(*t->text));
		t->to = mem_grow(t->to, t->cap, sizeof(*t->to));
	}
	t->text[t->n] = arena_str(&t->arena, text);
	t->to[t->n++] = to;
}

static void add_answer(struct to_count *t, const struct point *p, const struct request_row *row,
		       size_t *all, size_t *first)
{
	struct buf escaped = { 0 }, text = { 0 };
	struct str head;

	record_text_of(&p->record, row, &escaped);
	json_unescape(&text, buf_str(&escaped));
	add_text(t, buf_str(&text), all);
	head = buf_str(&escaped);
	head.n = row->first_text_bytes < head.n ? row->first_text_bytes : head.n;
	buf_reset(&text);
	json_unescape(&text, head);
	add_text(t, buf_str(&text), first);
	buf_release(&escaped);
	buf_release(&text);
}

/* Upstream's definition: the texts alone, without special tokens. */
static int count_tokens(const struct multi_turn *m, const struct point *p, struct counts *out,
			struct err *e)
{
	struct to_count t = { 0 };
	size_t *n;
	int rc;

	for (uint32_t i = 0; i < p->plan.n; i++) {
		const struct request_row *row = answer_row(m, p, i);

		if (row)
			add_answer(&t, p, row, &out->all[i], &out->first[i]);
	}
	n = mem_array(t.n + 1, sizeof(*n));
	rc = t.n ? tokenizer_count_batch(p->tokenizer, t.text, t.n, false, 0, n, e) : 0;
	for (size_t i = 0; rc == 0 && i < t.n; i++)
		*t.to[i] = n[i];
	free(n);
	free(t.text);
	free(t.to);
	arena_release(&t.arena);
	return rc;
}

/* ---- samples ---- */

struct scoring {
	const struct multi_turn *m;
	const struct point *p;
	struct counts counts;
	int64_t offset_ns;
	bool tells_cached;
};

/* Sets the start in CLOCK_REALTIME, from the monotonic clock, and the server's token counts. */
static void add_times(const struct scoring *k, const struct request_row *row, struct turn_stats *s)
{
	bool has_usage = (row->flags & ROW_HAS_USAGE) && !(row->flags & ROW_COUNTED);
	int64_t first_ns = row->first_answer_ns && !k->m->o->no_stream ? row->first_answer_ns
								       : row->end_ns;

	s->start_time_ms = (double)(row->sent_ns - k->offset_ns) / 1e6;
	s->latency_ms = (double)(row->end_ns - row->sent_ns) / 1e6;
	turn_stats_times(s, (double)(first_ns - row->sent_ns) / 1e6);
	s->server_prompt_tokens = has_usage ? row->prompt_tokens : TURN_UNKNOWN;
	s->server_output_tokens = has_usage ? row->output_tokens : TURN_UNKNOWN;
	s->server_cached_tokens = has_usage && k->tells_cached ? row->cached_tokens : TURN_UNKNOWN;
}

/* The turns of one conversation that were answered in the main run. */
static void score_conversation(const struct scoring *k, uint32_t conversation,
			       struct multi_turn_report *r)
{
	const struct multi_turn *m = k->m;
	const struct session *session = &m->sessions->session[conversation];
	const struct conversation *c = &m->conversations.v[conversation];
	size_t system = system_messages(m, c), input = 0;

	if (system)
		input = m->conversations.message[c->first].tokens;
	for (uint32_t turn = 0; turn < session->n; turn++) {
		uint32_t entry = session->first + turn;
		const struct request_row *row = row_of(k->p, entry);
		const struct message *question = user_message(m, conversation, turn);
		struct turn_stats *s;

		input += question->tokens;
		if (is_answered(m, k->p, entry)) {
			s = &r->v[r->n++];
			*s = (struct turn_stats){
				.input_num_turns = (uint32_t)(system + 2 * turn + 1),
				.input_num_tokens = (uint32_t)input,
				.output_num_tokens = (uint32_t)k->counts.all[entry],
				.output_num_chunks = row->n_answer ? row->n_answer - 1 : 0,
				.output_num_first_chunk_tokens =
					m->o->no_stream ? 0 : (uint32_t)k->counts.first[entry],
				.conversation_id = session->id, .client_id = m->client[entry],
			};
			add_times(k, row, s);
			turn_stats_cached(s, question->tokens);
		}
		input += k->counts.all[entry];
	}
}

static int by_end(const void *a, const void *b)
{
	const struct turn_stats *x = a, *y = b;
	double p = x->start_time_ms + x->latency_ms, q = y->start_time_ms + y->latency_ms;

	return (p > q) - (p < q);
}

static void add_param(struct arena *a, struct report_pair *pair, size_t *n, const char *key,
		      int64_t v)
{
	pair[(*n)++] = (struct report_pair){ key, arena_printf(a, "%lld", (long long)v) };
}

#define PARAMS_MAX 8

/* The options of the run, with the values in force. */
static void add_params(const struct multi_turn *m, struct multi_turn_outcome *out)
{
	struct report_pair *pair = arena_alloc(&out->arena, PARAMS_MAX * sizeof(*pair));
	struct arena *a = &out->arena;
	size_t n = 0;

	pair[n++] = (struct report_pair){ "model", m->o->model };
	add_param(a, pair, &n, "num_clients", m->order.clients);
	add_param(a, pair, &n, "num_conversations", (int64_t)m->conversations.n);
	add_param(a, pair, &n, "active_conversations", m->order.active_max);
	add_param(a, pair, &n, "seed", m->o->seed);
	if (m->o->limit_min_tokens > 0)
		add_param(a, pair, &n, "min_tokens", m->o->limit_min_tokens);
	if (m->o->limit_max_tokens > 0)
		add_param(a, pair, &n, "max_tokens", m->o->limit_max_tokens);
	assert(n <= PARAMS_MAX);
	out->report.params = pair;
	out->report.n_params = n;
}

static void add_generated(const struct multi_turn *m, struct multi_turn_outcome *out)
{
	const struct conversation_params *p = &m->conversations.params;
	const struct { const char *key; struct str value; } all[] = {
		{ "text_files", p->text_files }, { "input_num_turns", p->num_turns },
		{ "input_common_prefix_num_tokens", p->common_prefix_num_tokens },
		{ "input_prefix_num_tokens", p->prefix_num_tokens },
		{ "input_num_tokens", p->num_tokens }, { "output_num_tokens", p->output_num_tokens },
	};
	const size_t n = sizeof(all) / sizeof(*all);
	struct report_pair *pair;

	if (!p->is_generated)
		return;
	pair = arena_alloc(&out->arena, n * sizeof(*pair));
	for (size_t i = 0; i < n; i++)
		pair[i] = (struct report_pair){ all[i].key, arena_text(&out->arena, all[i].value) };
	out->report.generated = pair;
	out->report.n_generated = n;
}

/* --verify-output: the first one is the first that was sent. */
static void count_wrong(const struct multi_turn *m, const struct point *p,
			struct multi_turn_outcome *out)
{
	for (uint32_t i = 0; i < p->plan.n; i++) {
		const struct request_row *row = row_of(p, i);

		out->failed += row->state == REQ_FAILED;
		if (!m->o->verify_output || row->state != REQ_DONE ||
		    multi_turn_is_expected(m, i, row))
			continue;
		if (out->wrong++ == 0 || row->sent_ns < row_of(p, out->first_wrong)->sent_ns)
			out->first_wrong = i;
	}
}

int multi_turn_score(const struct multi_turn *m, const struct point *p, bool is_in_colour,
		     struct multi_turn_outcome *out, struct err *e)
{
	struct scoring k = { .m = m, .p = p, .offset_ns = clock_real_ns() - clock_mono_ns() };
	int rc;

	*out = (struct multi_turn_outcome){ .report = {
		.warmup = m->warmup, .n_warmup = m->n_warmup, .warmup_runtime_s = m->warmup_s,
		.is_verbose = m->o->verbose, .is_in_colour = is_in_colour,
	} };
	k.counts.all = mem_array(p->plan.n + 1, sizeof(*k.counts.all));
	k.counts.first = mem_array(p->plan.n + 1, sizeof(*k.counts.first));
	rc = count_tokens(m, p, &k.counts, e);
	for (uint32_t i = 0; i < p->plan.n; i++)
		k.tells_cached |= p->record.row[i].cached_tokens > 0;
	out->report.v = arena_alloc(&out->arena, (p->plan.n + 1) * sizeof(*out->report.v));
	for (uint32_t i = 0; rc == 0 && i < m->sessions->n_sessions; i++) {
		uint32_t first = m->sessions->session[i].first + m->order.skips_first;
		enum turn_fate fate = turn_order_fate(m->turns, i);

		score_conversation(&k, i, &out->report);
		if (fate == TURN_ACTIVE && !row_of(p, first)->sent_ns)
			fate = TURN_QUEUED; /* a client had it, and sent nothing of it */
		out->fates[fate]++;
	}
	qsort(out->report.v, out->report.n, sizeof(*out->report.v), by_end);
	count_wrong(m, p, out);
	add_params(m, out);
	add_generated(m, out);
	free(k.counts.all);
	free(k.counts.first);
	return rc;
}

void multi_turn_outcome_release(struct multi_turn_outcome *o)
{
	arena_release(&o->arena);
	*o = (struct multi_turn_outcome){ 0 };
}

/* ---- files and lines ---- */

/* Writes the dataset's messages with the server's answers in place of the dataset's. */
static void put_conversation(const struct multi_turn *m, const struct point *p,
			     uint32_t conversation, bool is_finished, struct json_writer *w)
{
	const struct conversation *c = &m->conversations.v[conversation];
	const struct session *session = &m->sessions->session[conversation];
	size_t system = system_messages(m, c);

	json_begin_object(w);
	json_member_str(w, "id", c->id);
	json_member_array(w, "messages");
	for (size_t i = 0; i < c->n || (i - system) / 2 < session->n; i++) {
		size_t turn = i < system ? session->n : (i - system) / 2;
		const struct request_row *row = NULL;
		struct message said = { .role = SPEAKER_ASSISTANT };
		struct buf text = { 0 };

		if (turn < session->n && (i - system) % 2)
			row = answer_row(m, p, session->first + (uint32_t)turn);
		if (row) {
			answer_text(&p->record, row, &text);
			said.text = buf_str(&text);
			conversation_put_message(w, &said);
		} else if (i < c->n) {
			conversation_put_message(w, &m->conversations.message[c->first + i]);
		}
		buf_release(&text);
	}
	json_end_array(w);
	if (!is_finished)
		json_member_bool(w, "finished", false);
	json_end_object(w);
}

void multi_turn_conversations(const struct multi_turn *m, const struct point *p, struct buf *out)
{
	struct json_writer w = json_writer(out);
	const uint32_t *finished;
	size_t n;

	w.indent = 4;
	finished = turn_order_finished(m->turns, &n);
	json_begin_array(&w);
	for (size_t i = 0; i < n; i++)
		put_conversation(m, p, finished[i], true, &w);
	for (uint32_t i = 0; i < m->sessions->n_sessions; i++) {
		enum turn_fate fate = turn_order_fate(m->turns, i);

		if (fate == TURN_ACTIVE || fate == TURN_DROPPED)
			put_conversation(m, p, i, false, &w);
	}
	json_end_array(&w);
}

void multi_turn_summary(const struct multi_turn *m, const struct multi_turn_outcome *o,
			struct buf *out)
{
	static const char *const words[] = {
		[TURN_QUEUED] = "not begun", [TURN_SKIPPED] = "only in the warm-up",
		[TURN_ACTIVE] = "unfinished", [TURN_FINISHED] = "finished",
		[TURN_DROPPED] = "dropped after a failed request",
	};
	static const enum turn_fate order[] = { TURN_FINISHED, TURN_ACTIVE, TURN_DROPPED,
						TURN_SKIPPED, TURN_QUEUED };

	buf_printf(out, "Conversations: %zu", m->conversations.n);
	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++)
		if (o->fates[order[i]])
			buf_printf(out, ", %u %s", o->fates[order[i]], words[order[i]]);
	buf_printf(out, "\nOrder of requests: %s\n", m->order.clients == 1 ? "deterministic"
		   : "by completion, which client takes which conversation depends on speed");
	if (m->o->verify_output && o->wrong == 0)
		buf_add_text(out, "Answers: all are those of the input file\n");
	if (o->wrong) {
		const struct turn *first = &m->sessions->turn[o->first_wrong];
		struct str id = m->sessions->session[first->session].id;

		buf_printf(out, "Answers: %u are not those of the input file, the first one in turn %u "
			   "of conversation %.*s\n", o->wrong, first->number + 1u, (int)id.n, id.p);
	}
}

struct sent { int64_t at_ns; uint32_t entry; };

static int by_sending(const void *a, const void *b)
{
	const struct sent *x = a, *y = b;

	return (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
}

void multi_turn_contents(const struct multi_turn *m, const struct point *p, struct buf *out)
{
	struct sent *sent = mem_array(p->plan.n + 1, sizeof(*sent));
	size_t n = 0;

	for (uint32_t i = 0; i < p->plan.n; i++)
		if (row_of(p, i)->sent_ns)
			sent[n++] = (struct sent){ row_of(p, i)->sent_ns, i };
	qsort(sent, n, sizeof(*sent), by_sending);
	for (size_t i = 0; i < n; i++) {
		const struct turn *turn = &m->sessions->turn[sent[i].entry];
		const struct request_row *row = row_of(p, sent[i].entry);

		buf_printf(out, "Conversation %.*s, turn %u, user:\n",
			   (int)m->sessions->session[turn->session].id.n,
			   m->sessions->session[turn->session].id.p, turn->number + 1u);
		buf_add_str(out, user_message(m, turn->session, turn->number)->text);
		if (row->state == REQ_DONE) {
			buf_add_text(out, "\nassistant:\n");
			answer_text(&p->record, row, out);
		} else {
			buf_printf(out, "\nno answer: %s", fail_name((enum fail_category)row->fail));
		}
		buf_add_text(out, "\n\n");
	}
	free(sent);
}
