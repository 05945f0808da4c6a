/* SPDX-License-Identifier: Apache-2.0 */
/*
 * multi_turn.c - see multi_turn.h.
 *
 * Random texts, with history: the numbers of turns of all conversations are drawn first (no draw
 * when there is one choice), from a fork of the seed, then lengths and offsets as the random set
 * draws them, once for all first turns and once for all later ones.
 *
 * Not in upstream: numbers of turns and lengths from distributions, and think times from a
 * distribution with the generator of --seed + 1, so that they change no other draws; a system
 * message that all conversations share, and a beginning of its own for each conversation.
 *
 * With a prefix ratio there is no history: every turn is one message of [prefix of the run]
 * [global][the conversation's][its own], where global and conversation are shares of the first
 * turn's length, on every turn.
 */
#include "input/sets/multi_turn.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/rng/rng.h"
#include "input/data/build.h"
#include "input/data/lengths.h"
#include "input/sets/random.h"
#include "input/token/tokenizer.h"
#include "input/trace/conversation.h"

#define TURNS_MAX 32768 /* of one conversation: they are numbered in 16 bits */

static bool shares_prefixes(const struct dataset_opts *o)
{
	return o->multi_turn_prefix_global_ratio > 0 || o->multi_turn_prefix_conversation_ratio > 0;
}

static void turn_range(const struct dataset_opts *o, int64_t *least, int64_t *most)
{
	*least = o->multi_turn_min_turns ? o->multi_turn_min_turns : o->multi_turn_num_turns;
	*most = o->multi_turn_max_turns ? o->multi_turn_max_turns : o->multi_turn_num_turns;
}

static int check_ratios(const char *set, const struct dataset_opts *o, struct err *e)
{
	double global = o->multi_turn_prefix_global_ratio;
	double own = o->multi_turn_prefix_conversation_ratio;

	if (!shares_prefixes(o))
		return 0;
	if (strcmp(set, "random") != 0)
		return err_set(e, ERR_USAGE, "--multi-turn-prefix-%s-ratio: only --dataset-name random has "
			       "prefixes to share, not %s", global > 0 ? "global" : "conversation", set);
	if (global + own >= 1)
		return err_set(e, ERR_USAGE, "--multi-turn-prefix-global-ratio %g and "
			       "--multi-turn-prefix-conversation-ratio %g: their sum must be below 1",
			       global, own);
	return 0;
}

int multi_turn_check(const char *set, const struct dataset_opts *o, const struct dataset_env *env,
		     struct err *e)
{
	int64_t least, most;

	turn_range(o, &least, &most);
	if (env->backend && strcmp(env->backend, "openai-chat") != 0)
		return err_set(e, ERR_USAGE, "--multi-turn: only --backend openai-chat carries "
			       "conversations, not %s", env->backend);
	if (strcmp(set, "random") != 0 && o->multi_turn_max_turns == 1)
		return err_set(e, ERR_USAGE, "--multi-turn-max-turns 1: a conversation has at least 2 "
			       "turns; 0 means no limit");
	if (strcmp(set, "random") == 0 && least > most)
		return err_set(e, ERR_USAGE, "--multi-turn-min-turns %" PRId64 " is above "
			       "--multi-turn-max-turns %" PRId64, least, most);
	if (o->random_batch_size > 1 || o->prompt_token_ids)
		return err_set(e, ERR_USAGE, "--multi-turn: --%s has no meaning for conversations",
			       o->prompt_token_ids ? "prompt-token-ids" : "random-batch-size");
	return check_ratios(set, o, e);
}

/* Draws n values from a distribution, with a fork of the seed; without one out is unchanged. */
static int draw_by_law(const char *option, const char *law, uint64_t seed, const char *purpose,
		       int64_t least, int64_t most, int64_t *out, size_t n, struct err *e)
{
	struct pcg64 rng = rng_fork(seed, purpose);
	struct lengths dist;

	if (!law)
		return 0;
	if (lengths_parse(option, law, &dist, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		int64_t v = lengths_draw(&dist, &rng);

		out[i] = v < least ? least : v > most ? most : v;
	}
	lengths_release(&dist);
	return 0;
}

/* ---- sessions ---- */

static void put_parts(struct conversations *c, struct message *m, struct buf *json)
{
	struct json_writer w = json_writer(json);

	buf_reset(json);
	json_begin_array(&w);
	json_begin_object(&w);
	json_member_text(&w, "type", "text");
	json_member_str(&w, "text", m->text);
	json_end_object(&w);
	json_end_array(&w);
	m->parts = arena_str(&c->arena, buf_str(json));
}

/* Makes answers have the dataset's lengths, whatever the model would generate. */
static void ask_min_tokens(struct workload *w)
{
	for (size_t i = 0; i < w->n; i++)
		w->v[i].overrides = str_of(arena_printf(&w->arena, "{\"min_tokens\": %" PRId64 "}",
							w->v[i].output_len));
}

static int draw_delays(const struct dataset_opts *o, const struct dataset_env *env,
		       struct workload *w, struct err *e)
{
	int64_t *ms = mem_array(w->n, sizeof(*ms));
	int rc = draw_by_law("--multi-turn-delay-dist", o->multi_turn_delay_dist, env->seed + 1,
			     "multi-turn delay", 0, INT64_C(1000) * DUE_S_MAX, ms, w->n, e);

	for (size_t i = 0; rc == 0 && o->multi_turn_delay_dist && i < w->n; i++) {
		struct turn *t = &w->sessions->turn[i];

		if (!t->n_waits)
			continue;
		t->gap_s = (double)ms[i] / 1e3;
		t->gap_kind = ms[i] ? TURN_THINKS : TURN_NO_GAP;
	}
	free(ms);
	return rc;
}

int multi_turn_sessions(struct conversations *c, const struct dataset_opts *o,
			const struct dataset_env *env, struct workload *w, struct err *e)
{
	int64_t least, most, left_out;

	turn_range(o, &least, &most);

	const struct conversation_turns turns = {
		.tokens_max = o->max_model_len.is_set ? o->max_model_len.v : 0,
		/* A single turn is not a conversation, unless asked for. */
		.turns_min = least > 1 && !o->multi_turn_turns_dist ? 2 : 1,
		.gap_s = o->multi_turn_delay_ms / 1e3, .is_without_history = shares_prefixes(o),
		.is_named_by_turn = true, .request_id_prefix = env->request_id_prefix,
	};
	struct buf json = { 0 };

	for (size_t i = 0; i < c->n_messages; i++)
		if (c->message[i].role == SPEAKER_USER)
			put_parts(c, &c->message[i], &json);
	buf_release(&json);
	left_out = conversations_to_workload(c, NULL, c->n, &turns, w, e);
	if (left_out >= 0 && o->multi_turn_asks_min_tokens)
		ask_min_tokens(w);
	if (left_out > 0)
		dataset_note(w, "%" PRId64 " conversation%s skipped: fewer than %zu turns fit into "
			     "--max-model-len %" PRId64, left_out, left_out == 1 ? " was" : "s were",
			     turns.turns_min, o->max_model_len.v);
	return left_out < 0 ? -1 : draw_delays(o, env, w, e);
}

/* ---- random ---- */

struct turn_texts {
	struct arena arena;
	struct str *text;
	uint32_t *tokens;
};

static int keep_text(void *self, const struct random_prompt *p, struct err *e)
{
	struct turn_texts *t = self;

	(void)e;
	t->text[p->index] = arena_str(&t->arena, p->text);
	t->tokens[p->index] = (uint32_t)p->tokens;
	return 0;
}

/* n random texts around input_len tokens; out->text and tokens by index. */
static int make_texts(struct random_gen *g, const struct dataset_opts *o, const struct ids *prefix,
		      int64_t input_len, size_t n, size_t first, struct random_lengths *lengths,
		      struct turn_texts *out, struct err *e)
{
	int64_t special = random_special(g);

	if (random_lengths_draw(g, o, input_len, o->random_output_len, n, lengths, e) < 0 ||
	    draw_by_law("--random-input-len-dist", o->random_input_len_dist, g->env->seed,
			first ? "multi-turn later input" : "multi-turn first input", special + 1,
			LENGTH_TOKENS_MAX, lengths->input, n, e) < 0 ||
	    draw_by_law("--random-output-len-dist", o->random_output_len_dist, g->env->seed,
			first ? "multi-turn later output" : "multi-turn first output", 1,
			LENGTH_TOKENS_MAX, lengths->output, n, e) < 0)
		return -1;
	for (size_t i = 0; o->random_input_len_dist && i < n; i++)
		lengths->input[i] -= special;
	for (size_t i = 0; i < n; i++)
		if (lengths->input[i] + (int64_t)prefix->count < 1)
			return err_set(e, ERR_USAGE, "--multi-turn: a message would have no tokens; its "
				       "length must be above the %" PRId64 " special tokens", special);
	out->text = mem_array(n, sizeof(*out->text));
	out->tokens = mem_array(n, sizeof(*out->tokens));
	return random_prompts(g, prefix, lengths, first, keep_text, out, e);
}

static void texts_release(struct turn_texts *t)
{
	arena_release(&t->arena);
	free(t->text);
	free(t->tokens);
}

struct random_turns {
	const struct dataset_opts *o;
	const struct dataset_env *env;
	struct random_gen gen;
	struct ids prefix;
	int64_t *turns;  /* of each conversation */
	size_t n, later; /* conversations; turns that are not the first */
	int64_t global, own; /* tokens that are shared by all, and within a conversation */
	struct conversations made;
};

static int draw_turns(struct random_turns *x, struct err *e)
{
	struct pcg64 rng = rng_fork(x->env->seed, "multi-turn");
	int64_t least, most;

	turn_range(x->o, &least, &most);
	x->turns = mem_array(x->n, sizeof(*x->turns));
	for (size_t j = 0; j < x->n; j++)
		x->turns[j] = pcg64_bounded(&rng, least, most);
	if (draw_by_law("--multi-turn-turns-dist", x->o->multi_turn_turns_dist, x->env->seed,
			"multi-turn turns", 1, TURNS_MAX, x->turns, x->n, e) < 0)
		return -1;
	for (size_t j = 0; j < x->n; j++)
		x->later += (size_t)x->turns[j] - 1;
	if (x->n + x->later > REQUESTS_MAX)
		return err_set(e, ERR_LIMIT, "--multi-turn: %zu turns are more than the limit of %u",
			       x->n + x->later, REQUESTS_MAX);
	return 0;
}

/* Splits the length of a prefix-sharing run's turns into the common beginnings and the rest. */
static int split_lengths(struct random_turns *x, int64_t *first, int64_t *later, struct err *e)
{
	const struct dataset_opts *o = x->o;
	int64_t special = random_special(&x->gen);
	double whole = (double)(o->random_input_len - special);

	*first = o->random_input_len;
	*later = o->per_turn_input_len ? o->per_turn_input_len : o->random_input_len;
	if (!shares_prefixes(o))
		return 0;
	x->global = (int64_t)floor(o->multi_turn_prefix_global_ratio * fmax(whole, 0));
	x->own = (int64_t)floor(o->multi_turn_prefix_conversation_ratio * fmax(whole, 0));
	*first -= x->global + x->own;
	*later -= x->global + x->own;
	if (*later > special && *first > special)
		return 0;
	return err_set(e, ERR_USAGE, "--per-turn-input-len %" PRId64 ": %" PRId64 " tokens of it are "
		       "shared prefix; at least one more is needed", *later + x->global + x->own,
		       x->global + x->own);
}

static void add_message(struct conversations *c, enum speaker role, struct str text, size_t tokens)
{
	struct message *m = conversations_add_message(c, role);

	m->text = text;
	m->tokens = (uint32_t)tokens;
}

/* The common beginnings of texts; absent if empty. */
enum shared { OF_ALL, OF_CONVERSATION, OF_FIRST_TURN, SYSTEM_MESSAGE, SHARED };

static void begin_with(const struct turn_texts *shared, size_t j, struct buf *text, size_t *tokens)
{
	if (!shared->text)
		return;
	buf_add_str(text, shared->text[j]);
	*tokens += shared->tokens[j];
}

/* Turn t of conversation j, whose own text is text i of its kind. */
static void add_turn(struct random_turns *x, const struct turn_texts *t,
		     const struct random_lengths *l, size_t i, const struct turn_texts *shared,
		     size_t j, bool is_first, struct buf *text)
{
	size_t tokens = t->tokens[i];

	buf_reset(text);
	begin_with(&shared[OF_ALL], 0, text, &tokens);
	begin_with(&shared[OF_CONVERSATION], j, text, &tokens);
	if (is_first)
		begin_with(&shared[OF_FIRST_TURN], j, text, &tokens);
	buf_add_str(text, t->text[i]);
	add_message(&x->made, SPEAKER_USER, arena_str(&x->made.arena, buf_str(text)), tokens);
	add_message(&x->made, SPEAKER_ASSISTANT, STR(""), (size_t)l->output[i]);
}

static void assemble(struct random_turns *x, const struct turn_texts text[2],
		     const struct random_lengths length[2], const struct turn_texts *shared)
{
	struct buf joined = { 0 };
	size_t later = 0;

	for (size_t j = 0; j < x->n; j++) {
		conversations_add(&x->made, str_of(arena_printf(&x->made.arena, "conv-%zu", j)));
		if (shared[SYSTEM_MESSAGE].text)
			add_message(&x->made, SPEAKER_SYSTEM,
				    arena_str(&x->made.arena, shared[SYSTEM_MESSAGE].text[0]),
				    shared[SYSTEM_MESSAGE].tokens[0]);
		add_turn(x, &text[0], &length[0], j, shared, j, true, &joined);
		for (int64_t t = 1; t < x->turns[j]; t++)
			add_turn(x, &text[1], &length[1], later++, shared, j, false, &joined);
	}
	buf_release(&joined);
}

/* Makes n texts of this many tokens after a prefix; draws no output lengths. */
static int make_shared(struct random_turns *x, const struct ids *prefix, int64_t tokens, size_t n,
		       struct turn_texts *out, struct err *e)
{
	struct random_lengths l = {
		.n = n, .input = mem_array(n, sizeof(*l.input)),
		.offset = mem_array(n, sizeof(*l.offset)),
	};
	int rc;

	out->text = mem_array(n, sizeof(*out->text));
	out->tokens = mem_array(n, sizeof(*out->tokens));
	for (size_t i = 0; i < n; i++) {
		l.input[i] = tokens;
		l.offset[i] = pcg64_bounded(&x->gen.rng, 0, (int64_t)x->gen.vocab - 1);
	}
	rc = random_prompts(&x->gen, prefix, &l, 0, keep_text, out, e);
	random_lengths_release(&l);
	return rc;
}

static int make_all_shared(struct random_turns *x, struct turn_texts shared[SHARED], struct err *e)
{
	const struct dataset_opts *o = x->o;
	const struct ids none = { 0 };

	if (shares_prefixes(o) &&
	    (make_shared(x, &x->prefix, x->global, 1, &shared[OF_ALL], e) < 0 ||
	     make_shared(x, &none, x->own, x->n, &shared[OF_CONVERSATION], e) < 0))
		return -1;
	if (o->multi_turn_session_prefix_len > 0 &&
	    make_shared(x, &none, o->multi_turn_session_prefix_len, x->n, &shared[OF_FIRST_TURN],
			e) < 0)
		return -1;
	return o->multi_turn_system_len > 0 ?
	       make_shared(x, &none, o->multi_turn_system_len, 1, &shared[SYSTEM_MESSAGE], e) : 0;
}

static int fill(struct random_turns *x, struct workload *w, struct err *e)
{
	struct turn_texts text[2] = { 0 }, shared[SHARED] = { 0 };
	struct random_lengths length[2] = { 0 };
	const struct ids none = { 0 };
	int64_t first, later;
	bool is_shared = shares_prefixes(x->o);
	int rc = -1;

	if (draw_turns(x, e) == 0 && split_lengths(x, &first, &later, e) == 0 &&
	    random_prefix_draw(&x->gen, x->o->random_prefix_len, &x->prefix, e) == 0 &&
	    make_texts(&x->gen, x->o, is_shared ? &none : &x->prefix, first, x->n, 0, &length[0],
		       &text[0], e) == 0 &&
	    make_texts(&x->gen, x->o, &none, later, x->later, x->n, &length[1], &text[1], e) == 0 &&
	    make_all_shared(x, shared, e) == 0) {
		assemble(x, text, length, shared);
		rc = multi_turn_sessions(&x->made, x->o, x->env, w, e);
	}
	if (rc == 0)
		random_note_mismatch(x->gen.mismatch, w);
	for (int k = 0; k < 2; k++) {
		texts_release(&text[k]);
		random_lengths_release(&length[k]);
	}
	for (int k = 0; k < SHARED; k++)
		texts_release(&shared[k]);
	return rc;
}

int multi_turn_random(const struct dataset_opts *o, const struct dataset_env *env,
		      struct workload *w, struct err *e)
{
	struct random_turns x = { .o = o, .env = env, .n = (size_t)env->num_prompts };
	int rc;

	if (random_check_count(env, e) < 0 ||
	    random_gen_open(&x.gen, env, RANDOM_IDS_UNDECLARED, e) < 0)
		return -1;
	x.gen.is_sole = true;
	rc = fill(&x, w, e);
	random_gen_release(&x.gen);
	ids_release(&x.prefix);
	free(x.turns);
	conversations_release(&x.made);
	return rc;
}

/* ---- ShareGPT, and rows like its ---- */

#define MESSAGES_MIN 4 /* upstream looks at longer entries alone */

struct shared_talks {
	const struct dataset_opts *o;
	const struct multi_turn_talks *rows;
	struct conversations made;
	struct str *text; /* of one conversation: question, answer, question, ... */
	size_t n, cap;
	struct buf buf;
};

static bool find_list(struct json_slice entry, struct json_slice *list)
{
	static const char *const names[] = { "conversations", "conversation", "messages" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (json_member(entry, names[i], list) && list->kind == JSON_ARRAY)
			return true;
	return false;
}

static int has_messages(void *self, struct json_slice entry, struct err *e)
{
	struct json_slice turns, last;

	(void)self;
	(void)e;
	return find_list(entry, &turns) && rows_item(turns, MESSAGES_MIN - 1, &last);
}

static void push(struct shared_talks *x, struct arena *a)
{
	x->text = mem_room(x->text, x->n, &x->cap, sizeof(*x->text));
	x->text[x->n++] = arena_str(a, buf_str(&x->buf));
}

static bool is_user(struct json_slice message)
{
	struct json_slice from;

	return (json_member(message, "from", &from) || json_member(message, "role", &from)) &&
	       from.kind == JSON_STRING && (str_is(from.raw, "human") || str_is(from.raw, "user"));
}

static bool read_text(struct json_slice message, struct buf *out)
{
	buf_reset(out);
	return rows_text(message, "value", out) || rows_text(message, "content", out);
}

/* Each non-empty text of a human, with the message after it, from any speaker. */
static void find_pairs(struct shared_talks *x, struct json_slice list, size_t most,
		       struct arena *a)
{
	struct json_iter it = json_iter(list);
	struct json_slice v;

	x->n = 0;
	while (x->n < 2 * most && json_each(&it, NULL, &v) == 1) {
		if (!is_user(v) || !read_text(v, &x->buf) || !x->buf.len)
			continue;
		push(x, a);
		if (json_each(&it, NULL, &v) != 1) {
			x->n--;
			break;
		}
		read_text(v, &x->buf);
		push(x, a);
	}
}

static void take_pairs(struct shared_talks *x)
{
	struct conversations *c = &x->made;

	conversations_add(c, str_of(arena_printf(&c->arena, "conv-%zu", c->n)));
	for (size_t i = 0; i < x->n; i++)
		add_message(c, i % 2 ? SPEAKER_ASSISTANT : SPEAKER_USER,
			    arena_str(&c->arena, x->text[i]), 0);
}

static int take_rows(struct shared_talks *x, const struct dataset_env *env, struct err *e)
{
	int64_t least = x->o->multi_turn_min_turns > 2 ? x->o->multi_turn_min_turns : 2;
	size_t most = x->o->multi_turn_max_turns ? (size_t)x->o->multi_turn_max_turns : TURNS_MAX;
	size_t wanted = env->num_prompts > 0 ? (size_t)env->num_prompts : SIZE_MAX;
	struct json_slice entry, list, last;
	struct arena a = { 0 };
	int rc = 1;

	for (size_t i = 0; rc > 0 && x->made.n < wanted; i++) {
		rc = dataset_go_on(env, e) < 0 ? -1 : x->rows->next(x->rows->self, i, &entry, e);
		if (rc <= 0)
			break;
		if (!find_list(entry, &list) || !rows_item(list, MESSAGES_MIN - 1, &last))
			continue;
		find_pairs(x, list, most, &a);
		if (x->n >= 2 * (size_t)least)
			take_pairs(x);
		arena_release(&a);
	}
	return rc < 0 ? -1 : 0;
}

/* Copies of uniformly chosen conversations until there are enough. */
static void oversample(struct shared_talks *x, const struct dataset_env *env,
		       struct compat_rng *rng)
{
	struct conversations *c = &x->made;
	size_t have = c->n, wanted = env->num_prompts > 0 ? (size_t)env->num_prompts : 0;

	if (x->o->no_oversample)
		return;
	pyrandom_seed(&rng->py, (int64_t)env->seed);
	while (c->n < wanted) {
		size_t from = pyrandom_choice(&rng->py, have);
		struct conversation one = c->v[from];

		conversations_add(c, str_of(arena_printf(&c->arena, "conv-%zu", c->n)));
		for (size_t k = 0; k < one.n; k++) {
			struct message m = c->message[one.first + k];

			*conversations_add_message(c, m.role) = m;
		}
	}
}

static int set_lengths(struct conversations *c, const struct opt_int *output_len,
		       const struct dataset_env *env, struct err *e)
{
	if (conversations_count(c, env->tokenizer, env->threads, e) < 0)
		return -1;
	for (size_t i = 0; i < c->n_messages && output_len->is_set; i++)
		if (c->message[i].role == SPEAKER_ASSISTANT)
			c->message[i].tokens = (uint32_t)output_len->v;
	return 0;
}

int multi_turn_talks(const struct multi_turn_talks *rows, const struct dataset_opts *o,
		    const struct dataset_env *env, struct compat_rng *rng, struct workload *w,
		    struct err *e)
{
	struct shared_talks x = { .o = o, .rows = rows };
	int rc = take_rows(&x, env, e);

	if (rc == 0 && !x.made.n)
		rc = err_set(e, ERR_RUN, "%s: no conversation has enough turns; a row is an object with a "
			     "list \"conversations\" (or \"messages\") of %d messages or more",
			     rows->name, MESSAGES_MIN);
	if (rc == 0) {
		oversample(&x, env, rng);
		rc = set_lengths(&x.made, &rows->output_len, env, e);
	}
	if (rc == 0)
		rc = multi_turn_sessions(&x.made, o, env, w, e);
	conversations_release(&x.made);
	buf_release(&x.buf);
	free(x.text);
	return rc;
}

static int next_row(void *self, size_t i, struct json_slice *row, struct err *e)
{
	struct dataset_rows *r = self;

	if (i >= r->n)
		return 0;
	return rows_get(r, i, row, e) < 0 ? -1 : 1;
}

int multi_turn_sharegpt(const char *path, const struct dataset_opts *o,
			const struct dataset_env *env, struct compat_rng *rng, struct workload *w,
			struct err *e)
{
	static const char *const columns[] = { "conversations", NULL };
	const struct rows_opts opts = {
		.o = o, .env = env, .seed = env->seed, .columns = columns, .keep = has_messages,
	};
	struct dataset_rows rows = { 0 };
	const struct multi_turn_talks talks = {
		.name = path, .next = next_row, .self = &rows, .output_len = o->sharegpt_output_len,
	};
	int rc = rows_open(&rows, &path, 1, &opts, rng, e);

	if (rc == 0)
		rc = multi_turn_talks(&talks, o, env, rng, w, e);
	rows_release(&rows);
	return rc;
}
