/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start.c - from a request body to an answer in progress: checks the request and whether it fits,
 * chooses length, content and faults of the answer, and sends the response head.
 *
 * Everything random about an answer comes from the seed and the request's own id (its arrival
 * number without one), and its words from the prompt, so that a run can be repeated whatever the
 * order of arrival.
 *
 * Constraints are compiled when a request comes and kept for later ones with the same constraint;
 * each slot holds the latest of those that map to it.
 */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/mem.h"
#include "sim/model/script.h"
#include "sim/serving/serving.h"

#define NO_PARAMETERS "{\"type\": \"object\", \"maxProperties\": 0}"
/* About how long a constrained answer is, where it leaves the choice. */
#define ANSWER_BYTES 256
/* Answers that are tried where the constraint allows an empty one, which no server sends. */
#define EMPTY_TRIES 8
#define ARGUMENTS_BYTES 64

/* ---- what is said that is not words: constraints ---- */

/* The beginning of vLLM's message about an unusable constraint. */
static const char *refusal(enum constraint_kind kind)
{
	static const char *const texts[] = {
		[CONSTRAINT_JSON] = "Failed to transform json schema into a grammar:",
		[CONSTRAINT_REGEX] = "Failed to transform regex into a grammar:",
		[CONSTRAINT_CHOICE] = "Failed to transform choices into a grammar:",
		[CONSTRAINT_GRAMMAR] = "Invalid grammar specification.",
	};

	return texts[kind];
}

/* Borrowed until the next call. NULL: e is the sentence for the client. */
static struct constraint *compiled(struct sim *s, enum constraint_kind kind, struct str text,
				   struct err *e)
{
	uint64_t key = words_mix(map_hash(text) + kind);
	struct compiled *at = &s->compiled[key % COMPILED_MAX];
	struct constraint *made;
	struct err why = { 0 };

	if (at->constraint && at->key == key)
		return at->constraint;
	made = constraint_compile(kind, text, NULL, &why);
	if (!made) {
		err_set(e, ERR_USAGE, "%s %s", refusal(kind), why.text);
		return NULL;
	}
	constraint_free(at->constraint);
	*at = (struct compiled){ .key = key, .constraint = made };
	return made;
}

void compose_release(struct sim *s)
{
	for (size_t i = 0; i < COMPILED_MAX; i++)
		constraint_free(s->compiled[i].constraint);
}

static struct constraint *constraint_of(struct sim *s, struct err *e)
{
	return compiled(s, s->ask.constraint_kind, buf_str(&s->ask.constraint), e);
}

static struct constraint *parameters_of(struct sim *s, size_t tool, struct err *e)
{
	struct str text = s->ask.tool[tool].parameters;

	return compiled(s, CONSTRAINT_JSON, text.n ? text : STR(NO_PARAMETERS), e);
}

/*
 * Checks s->ask's wishes: constraints that do not compile, tools without a name. -1: e is the
 * sentence for the client and *param its member or NULL.
 */
static int compose_check(struct sim *s, const char **param, struct err *e)
{
	const struct sim_ask *a = &s->ask;

	*param = a->told_by;
	if (a->constraints && !constraint_of(s, e))
		return -1;
	*param = "tools";
	for (size_t i = 0; a->calls != ASK_CALLS_NONE && i < a->tools; i++)
		if (!parameters_of(s, i, e))
			return -1;
	*param = NULL;
	return 0;
}

/* ---- text ---- */

static bool strikes(struct sim_choice *x, double share)
{
	return share > 0 && pcg64_double(&x->rng) < share;
}

/* Writes an answer of about `bytes` bytes to out, wrong on purpose for a share `errors` of them. */
static int answer_make(struct sim_choice *x, const struct constraint *c, size_t bytes,
		       double errors, struct buf *out, const char **mistake, struct err *e)
{
	uint64_t seed = x->key ^ pcg64_u64(&x->rng);
	bool is_wrong = strikes(x, errors);
	struct err why = { 0 };

	*mistake = NULL;
	buf_reset(out);
	if (constraint_generate(c, seed, bytes, out, &why) < 0)
		return err_set(e, ERR_USAGE, "%s %s", refusal(constraint_kind(c)), why.text);
	if (is_wrong)
		*mistake = mistake_make(c, words_mix(seed), out);
	return 0;
}

/* Tokens the answer may well have: those it has by --output-len, or what leaves room to end. */
static size_t bytes_wanted(const struct sim *s, struct sim_choice *x, int64_t limit)
{
	double most = limit > 1 ? (double)limit / 2 : 1;
	double bytes = s->has_output_len ? dist_draw(&s->output_len, &x->rng) : ANSWER_BYTES;

	return (size_t)(bytes < most ? bytes : most);
}

static int text_make(struct sim *s, struct sim_choice *x, int64_t limit, struct err *e)
{
	size_t bytes = bytes_wanted(s, x, limit);
	const struct constraint *c = constraint_of(s, e);
	double errors = s->opts->constraint_errors;
	const char **mistake = &x->script.mistake;
	struct buf text = { 0 };
	int rc = c ? 0 : -1;

	for (int i = 0; rc == 0 && text.len == 0 && i < EMPTY_TRIES; i++)
		rc = answer_make(x, c, bytes, errors, &text, mistake, e);
	if (rc == 0 && text.len == 0)
		rc = err_set(e, ERR_USAGE, "%s no answer but an empty one was found",
			     refusal(constraint_kind(c)));
	if (rc == 0)
		rc = script_add(&x->script, s->tokenizer, SCRIPT_TEXT, buf_str(&text),
				(struct str){ 0 }, e);
	x->script.constraint = x->script.mistake ? "broken" : "kept";
	buf_release(&text);
	return rc;
}

/* ---- calls ---- */

static int call_make(struct sim *s, struct sim_choice *x, size_t tool, struct err *e)
{
	const struct constraint *c = parameters_of(s, tool, e);
	struct str name = ask_tool_name(&s->ask, tool);
	struct script *script = &x->script;
	struct buf head = { 0 }, arguments = { 0 };
	const char *mistake = NULL;
	size_t at = script->parts;
	int rc = -1;

	buf_add_text(&head, script->calls ? "\n" ASK_CALL_MARK : ASK_CALL_MARK);
	buf_add_str(&head, name);
	name.p = head.data + head.len - name.n;
	buf_add_char(&head, '\n');
	if (c && answer_make(x, c, ARGUMENTS_BYTES, s->opts->tool_call_errors, &arguments, &mistake,
			     e) == 0 &&
	    script_add(script, s->tokenizer, SCRIPT_CALL, buf_str(&head), name, e) == 0)
		rc = script_add(script, s->tokenizer, SCRIPT_ARGUMENTS, buf_str(&arguments),
				(struct str){ 0 }, e);
	if (rc == 0) {
		uint64_t high = pcg64_u64(&x->rng), low = pcg64_u64(&x->rng);

		snprintf(script->part[at].call_id, SCRIPT_CALL_ID_BYTES,
			 "chatcmpl-tool-%016" PRIx64 "%016" PRIx64, high, low);
		memcpy(script->part[script->parts - 1].call_id, script->part[at].call_id,
		       SCRIPT_CALL_ID_BYTES);
		script->part[at].is_malformed = mistake != NULL;
		script->mistake = mistake ? mistake : script->mistake;
	}
	buf_release(&head);
	buf_release(&arguments);
	return rc;
}

static int calls_make(struct sim *s, struct sim_choice *x, struct err *e)
{
	const struct sim_ask *a = &s->ask;
	int64_t n = a->is_call_single ? 1 : pcg64_bounded(&x->rng, 1, s->opts->tool_calls_max);

	for (int64_t i = 0; i < n; i++) {
		size_t tool = a->calls == ASK_CALLS_NAMED ? a->named :
			      (size_t)pcg64_bounded(&x->rng, 0, (int64_t)a->tools - 1);

		if (call_make(s, x, tool, e) < 0)
			return -1;
	}
	return 0;
}

/* Fills x->script if the answer is not only words; limit: maximum number of tokens. */
static int compose_choice(struct sim *s, struct sim_choice *x, int64_t limit, struct err *e)
{
	const struct sim_ask *a = &s->ask;

	if (a->calls > ASK_CALLS_AUTO ||
	    (a->calls == ASK_CALLS_AUTO && strikes(x, s->opts->tool_call_share)))
		return calls_make(s, x, e);
	return a->constraints ? text_make(s, x, limit, e) : 0;
}

/* ---- the request ---- */

/* Answers to chat requests without a limit end by themselves here. */
#define CHAT_TOKENS 256
/* Length of a completion without max_tokens, as upstream. */
#define COMPLETION_TOKENS 16

size_t ask_tokens(struct sim *s, bool is_listed)
{
	const struct sim_ask *a = &s->ask;

	ids_reset(&s->ids);
	if (a->has_ids) {
		if (is_listed)
			ids_add(&s->ids, a->ids.id, a->ids.count);
		return a->ids.count;
	}
	if (!is_listed)
		return tokenizer_count(s->tokenizer, buf_str(&a->text), a->has_special);
	if (tokenizer_encode(s->tokenizer, buf_str(&a->text), a->has_special, &s->ids) < 0)
		return SIZE_MAX;
	return s->ids.count;
}

void start_refuse(struct conn *c, unsigned status, const char *param, const char *message,
		  const char *id)
{
	struct sim *s = c->sim;

	route_error(c, status, param, message);
	if (s->truth.sink.path) {
		struct truth_row *r = truth_row_new(*id ? id : NULL, c->recv_ns);

		r->status = status;
		r->finish = FINISH_ERROR;
		r->faults = c->stream.fault.status ? c->stream.fault.hit : 0;
		truth_end(&s->truth, r);
		sim_flush_soon(s);
	}
}

/* The number of the adapter with that name, from 1; 0: none. */
static uint32_t lora_find(const struct sim *s, struct str model)
{
	for (size_t i = 0; i < s->opts->lora_count; i++)
		if (str_is(model, s->opts->lora[i].name))
			return (uint32_t)i + 1;
	return 0;
}

bool start_serves_model(const struct sim *s, struct str model)
{
	if (model.n == 0 || str_is(model, s->opts->model))
		return true;
	for (size_t i = 0; i < s->opts->served_count; i++)
		if (str_is(model, s->opts->served[i]))
			return true;
	return lora_find(s, model) > 0;
}

/* The generator of one answer, or of its choice number i: seed, purpose and request. */
static struct pcg64 answer_rng(const struct sim *s, const char *id, uint32_t i)
{
	uint64_t own = *id ? map_hash(str_of(id)) : s->arrivals;
	uint64_t seed = s->opts->seed;
	uint32_t words[6] = { (uint32_t)seed, (uint32_t)(seed >> 32), (uint32_t)own,
			      (uint32_t)(own >> 32), *id ? 1 : 0, i };
	struct pcg64 g;

	pcg64_seed_words(&g, words, i ? 6 : 5);
	return g;
}

/* Finds the start of a stop string that ends in text's last `fresh` bytes; false: none. */
static bool stop_find(const struct sim_ask *a, struct str text, size_t fresh, size_t *at,
		      size_t *which)
{
	bool is_found = false;

	for (size_t i = 0; i < a->stops; i++) {
		struct str stop = ask_stop(a, i);
		size_t tail = stop.n + fresh - 1 < text.n ? stop.n + fresh - 1 : text.n;
		const char *hit = memmem(text.p + text.n - tail, tail, stop.p, stop.n);

		if (!hit || (is_found && (size_t)(hit - text.p) >= *at))
			continue;
		is_found = true;
		*at = (size_t)(hit - text.p);
		*which = i;
	}
	return is_found;
}

/* Shortens the answer at the first stop string in its text. */
static void stop_apply(struct sim *s, struct sim_choice *x)
{
	const struct sim_ask *a = &s->ask;
	size_t at = 0, which = 0;

	x->cut = SIZE_MAX;
	buf_reset(&s->text);
	for (uint32_t i = 0; a->stops && !x->script.calls && i < x->total; i++) {
		struct str word = choice_text(s, x, i);

		buf_add_str(&s->text, word);
		if (i + 1 <= a->min_tokens || !word.n ||
		    !stop_find(a, buf_str(&s->text), word.n, &at, &which))
			continue;
		x->total = i + 1;
		x->finish = FINISH_STOP;
		x->cut = at + (a->is_stop_kept ? ask_stop(a, which).n : 0);
		buf_add_str(&x->stop_reason, ask_stop(a, which));
		return;
	}
}

/* The answer's external limit; room: what the context leaves. */
static int64_t length_limit(const struct sim_ask *a, int64_t room)
{
	int64_t n = a->max_tokens;

	if (n < 0)
		n = a->api == ASK_COMPLETIONS || a->api == ASK_DEMO ? COMPLETION_TOKENS : room;
	return n < room ? n : room;
}

/* Number of words before the answer ends by itself; INT64_MAX: it does not. */
static int64_t length_natural(struct sim *s, struct sim_choice *x)
{
	const struct sim_ask *a = &s->ask;
	bool is_short = a->api == ASK_COMPLETIONS || a->api == ASK_DEMO;
	int64_t natural = INT64_MAX;

	if (s->has_output_len && !a->is_eos_ignored)
		natural = llround(fmin(dist_draw(&s->output_len, &x->rng), 1e9));
	else if (a->max_tokens < 0 && !is_short)
		natural = CHAT_TOKENS;
	if (natural < a->min_tokens)
		natural = a->min_tokens;
	return natural < 1 ? 1 : natural;
}

/* Decides how many tokens the choice has and why it ends; -1: no answer is possible. */
static int length_decide(struct sim *s, struct sim_choice *x, int64_t room,
			 const struct event_shape *shape, struct err *e)
{
	int64_t n = length_limit(&s->ask, room), natural;

	x->reasoning = shape->has_reasoning ? (uint32_t)s->opts->reasoning : 0;
	if (compose_choice(s, x, n, e) < 0)
		return -1;
	natural = x->script.parts ? (int64_t)(x->reasoning + x->script.ids.count) :
		  length_natural(s, x);
	/* Words that reach the limit were cut, a script may just fit. */
	x->finish = natural < n || (x->script.parts && natural == n) ? FINISH_STOP : FINISH_LENGTH;
	x->total = (uint32_t)(natural < n ? natural : n);
	if (x->reasoning > x->total)
		x->reasoning = x->total;
	stop_apply(s, x);
	if (x->reasoning > x->total)
		x->reasoning = x->total;
	return 0;
}

/* The context must hold the prompt and the requested answer; -1 with a sentence in e. */
static int context_check(const struct sim *s, size_t prompt, struct err *e)
{
	int64_t wanted = s->ask.max_tokens < 0 ? 1 : s->ask.max_tokens;
	int64_t limit = s->opts->max_model_len;

	if (prompt == 0)
		return err_set(e, ERR_RUN, "the prompt is empty: it has no tokens");
	if ((int64_t)prompt + wanted <= limit)
		return 0;
	return err_set(e, ERR_RUN, "This model's maximum context length is %" PRId64 " tokens, "
		       "but %" PRId64 " were requested: %zu in the prompt and %" PRId64
		       " in the answer.", limit, (int64_t)prompt + wanted, prompt, wanted);
}

static void id_write(struct sim *s, struct sim_stream *t, const char *prefix, const char *id)
{
	buf_reset(&t->id);
	buf_add_text(&t->id, prefix);
	if (*id)
		buf_add_text(&t->id, id);
	else
		buf_printf(&t->id, "%016" PRIx64 "%016" PRIx64,
			   words_mix((uint64_t)s->id_base), words_mix(s->arrivals));
}

/* Forgets the answer before, keeping its memory. */
static void stream_clear(struct sim_stream *t)
{
	struct sim_stream fresh = { .form = t->form, .id = t->id, .held = t->held, .body = t->body,
				.extra = t->extra, .trickle = t->trickle, .choice = t->choice,
				.choices_cap = t->choices_cap };

	buf_reset(&fresh.held);
	buf_reset(&fresh.body);
	buf_reset(&fresh.extra);
	*t = fresh;
}

void start_choices(struct conn *c, uint32_t n)
{
	struct sim_stream *t = &c->stream;

	assert(!t->is_active && n >= 1);
	if (n > t->choices_cap) {
		t->choice = mem_grow(t->choice, n, sizeof(*t->choice));
		memset(t->choice + t->choices_cap, 0, (n - t->choices_cap) * sizeof(*t->choice));
		t->choices_cap = n;
	}
	t->choices = t->left = n;
	for (uint32_t i = 0; i < n; i++) {
		struct sim_choice *x = &t->choice[i];

		buf_reset(&x->stop_reason);
		script_reset(&x->script);
		*x = (struct sim_choice){ .conn = c, .index = i, .stop_reason = x->stop_reason,
				      .script = x->script, .hold = x->hold, .rng = t->rng,
				      .cut = SIZE_MAX, .timer.on_time = stream_on_time };
	}
}

bool start_arrive(struct conn *c, char id[REQUEST_ID_MAX + 1])
{
	struct sim *s = c->sim;
	struct sim_stream *t = &c->stream;
	struct str header = http_head_value(buf_str(&c->head), "x-request-id");

	assert(!t->is_active);
	if (header.n > REQUEST_ID_MAX)
		header.n = 0;
	if (header.n)
		memcpy(id, header.p, header.n);
	id[header.n] = '\0';
	s->arrivals++;
	if (s->opts->die_after_requests && s->arrivals > (uint64_t)s->opts->die_after_requests)
		sim_die(s);
	stream_clear(t);
	t->rng = answer_rng(s, id, 0);
	t->fault = fault_plan(&s->faults, id, &t->rng);
	if (!t->fault.status)
		return true;
	start_refuse(c, (unsigned)t->fault.status, NULL, "this server fails on purpose", id);
	return false;
}

bool start_has_model(struct conn *c, struct str model, const char *id)
{
	struct err e;

	c->stream.lora = lora_find(c->sim, model);
	if (start_serves_model(c->sim, model))
		return true;
	err_set(&e, ERR_RUN, "The model `%.*s` does not exist.", (int)model.n, model.p);
	start_refuse(c, 404, "model", e.text, id);
	return false;
}

/*
 * Tokens of the prompt that the cache has need no computing. The engine model looks them up when it
 * admits the request, the oracle now.
 */
static void prefix_apply(struct sim *s, struct sim_choice *x, size_t prompt)
{
	struct sim_stream *t = &x->conn->stream;
	struct prefix_cache *cache = &s->lane[0].prefix;
	uint32_t known;

	if (!s->is_oracle) {
		prefix_name(&x->hold, t->lora, s->ids.id, s->ids.count, &x->tail);
		x->seq.hold = cache->cap ? &x->hold : NULL;
	}
	if (cache->cap == 0)
		return;
	s->counters.prefix_queries += prompt;
	if (!s->is_oracle)
		return;
	known = prefix_take(cache, t->lora, s->ids.id, s->ids.count, &x->tail);
	s->counters.prefix_hits += known;
	if (x->index == 0)
		t->form.cached_tokens = known;
}

void start_begin(struct conn *c, const char *id, size_t prompt, bool is_listed)
{
	struct sim *s = c->sim;
	struct sim_stream *t = &c->stream;

	assert(!t->is_active);
	t->is_active = true;
	t->recv_ns = c->recv_ns;
	t->offset_ns = clock_real_ns() - clock_mono_ns();
	t->form.prompt_tokens = (uint32_t)prompt;
	t->form.cached_tokens = 0;
	for (uint32_t i = 0; i < t->choices; i++) {
		struct sim_choice *x = &t->choice[i];

		x->seq.prompt_left = (uint32_t)prompt;
		x->seq.priority = t->is_pooled ? 0 : s->ask.priority;
		x->seq.lora = t->lora;
		if (is_listed)
			prefix_apply(s, x, prompt);
		s->counters.prompt_tokens += prompt;
	}
	s->stream_count++;
	if (s->truth.sink.path) {
		t->row = truth_row_new(*id ? id : NULL, t->recv_ns);
		t->row->prompt_tokens = (uint32_t)prompt;
		t->row->cached_tokens = t->form.cached_tokens;
		t->row->faults = t->fault.hit;
	}
}

static void form_prepare(struct conn *c, const struct event_shape *shape, const char *id)
{
	struct sim *s = c->sim;
	struct sim_stream *t = &c->stream;
	const struct sim_ask *a = &s->ask;
	const char *model = t->lora ? s->opts->lora[t->lora - 1].name : route_model(s);

	t->is_streamed = a->is_stream;
	id_write(s, t, shape->id_prefix, id);
	event_prepare(&t->form, shape, buf_str(&t->id), str_of(model),
		      c->recv_ns / 1000000000, buf_str(&a->text));
	t->form.choices = t->choices;
	t->form.has_cached = s->opts->is_cached_told;
	t->form.has_usage_always = a->has_usage && a->has_usage_always;
	t->form.is_crlf = t->fault.is_crlf;
	t->form.is_commented = t->fault.is_commented;
	t->form.is_without_done = t->fault.is_without_done;
	t->form.is_without_usage = t->fault.is_without_usage || (a->is_stream && !a->has_usage);
}

/* As upstream, the head goes out at once and not with the first token. */
static void head_send(struct conn *c)
{
	struct buf *out = &c->sim->event;

	buf_reset(out);
	http_write_head(out, 200, c->stream.form.shape->type, HTTP_LENGTH_CHUNKED,
			route_extra(c));
	if (c->stream.fault.slow_head_ns)
		trickle_start(c, buf_str(out), out->len, c->stream.fault.slow_head_ns);
	else
		conn_write(c, buf_str(out));
}

static const struct event_shape *const shapes[ASK_APIS] = {
	[ASK_COMPLETIONS] = &shape_completions, [ASK_CHAT] = &shape_chat,
	[ASK_RESPONSES] = &shape_responses, [ASK_AUDIO] = &shape_audio,
	[ASK_ANTHROPIC] = &shape_anthropic, [ASK_TGI] = &shape_tgi,
	[ASK_TGI_STREAM] = &shape_tgi,
	[ASK_LLAMACPP] = &shape_llamacpp, [ASK_SGLANG] = &shape_sglang,
	[ASK_DEMO] = &shape_demo, [ASK_OLLAMA] = &shape_ollama,
	[ASK_OLLAMA_CHAT] = &shape_ollama_chat,
};

static int body_read(struct conn *c, enum ask_api api, struct str body, const char **param,
		     struct err *e)
{
	if (api == ASK_AUDIO)
		return audio_read(c, body, param, e);
	return ask_read(&c->sim->ask, api, body, param, e);
}

/* Checks that only concern this server. -1: e, and *param or NULL. */
static int wishes_check(struct sim *s, const char **param, struct err *e)
{
	*param = NULL;
	if (s->ask.priority && !s->opts->is_by_priority)
		return err_set(e, ERR_USAGE, "Got priority %" PRId64 " but Priority scheduling is not "
			       "enabled.", s->ask.priority);
	return compose_check(s, param, e);
}

/* Every choice gets a different text, the first one the same as without n. */
static int choices_make(struct conn *c, const struct event_shape *shape, const char *id,
			int64_t room, uint64_t key, struct err *e)
{
	struct sim *s = c->sim;

	start_choices(c, (uint32_t)s->ask.n);
	for (uint32_t i = 0; i < c->stream.choices; i++) {
		struct sim_choice *x = &c->stream.choice[i];

		x->key = i ? words_mix(key + i) : key;
		if (i)
			x->rng = answer_rng(s, id, i);
		if (length_decide(s, x, room, shape, e) < 0)
			return -1;
	}
	return 0;
}

void stream_start(struct conn *c, enum ask_api api, struct str body)
{
	struct sim *s = c->sim;
	bool is_listed = s->lane[0].prefix.cap > 0 || (!s->is_oracle && kv_wants_names(&s->kv));
	char id[REQUEST_ID_MAX + 1];
	const char *param = NULL;
	struct err e = { 0 };
	uint64_t key;
	size_t prompt;

	assert(shapes[api]);
	if (!start_arrive(c, id))
		return;
	if (body_read(c, api, body, &param, &e) < 0) {
		start_refuse(c, 400, param, e.text, id);
		return;
	}
	if (!start_has_model(c, buf_str(&s->ask.model), id))
		return;
	if (wishes_check(s, &param, &e) < 0) {
		start_refuse(c, 400, param, e.text, id);
		return;
	}
	prompt = ask_tokens(s, is_listed);
	if (prompt == SIZE_MAX || context_check(s, prompt, &e) < 0) {
		start_refuse(c, 400, NULL, e.code ? e.text : "the prompt cannot be tokenized", id);
		return;
	}
	key = words_mix(s->opts->seed ^ s->ask.salt ^ map_hash(s->ask.has_ids ?
		(struct str){ (const char *)s->ask.ids.id, prompt * sizeof(uint32_t) } :
		buf_str(&s->ask.text)));
	if (choices_make(c, shapes[api], id, s->opts->max_model_len - (int64_t)prompt, key,
			 &e) < 0) {
		start_refuse(c, 400, NULL, e.text, id);
		return;
	}
	form_prepare(c, shapes[api], id);
	start_begin(c, id, prompt, is_listed);
	if (c->stream.is_streamed)
		head_send(c);
	stream_pace(c);
}

void stream_release(struct sim_stream *t)
{
	for (uint32_t i = 0; i < t->choices_cap; i++) {
		buf_release(&t->choice[i].stop_reason);
		script_release(&t->choice[i].script);
		prefix_pins_release(&t->choice[i].hold);
	}
	free(t->choice);
	event_form_release(&t->form);
	buf_release(&t->id);
	buf_release(&t->held);
	buf_release(&t->body);
	buf_release(&t->extra);
	buf_release(&t->trickle.bytes);
	truth_row_free(t->row);
	*t = (struct sim_stream){ 0 };
}
