/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.c - one answer in progress, each of its choices separately: when events are due and what
 * they hold; bytes that are sent gradually; answers that are one JSON body.
 *
 * The oracle keeps an ideal time per event that never drifts: each one is the ideal of the one
 * before plus a gap, whatever the clock did meanwhile. In burst mode an event is sent at the first
 * grid point at or after its ideal. The engine model calls stream_on_step at the end of each step
 * instead. Starting an answer is start.c; this file is the path of every token.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/mem.h"
#include "core/json/write.h"
#include "sim/serving/serving.h"

static void answer_send(struct conn *c);
static void trickle_on_time(struct timer *timer);

static void trickle_arm(struct conn *c)
{
	struct trickle *k = &c->stream.trickle;

	loop_timer_set(c->sim->loop, &k->timer,
		       k->from_ns + k->length_ns * k->piece / TRICKLE_PIECES);
}

/* The bytes up to the end of the current piece. */
static void piece_send(struct conn *c)
{
	struct trickle *k = &c->stream.trickle;
	size_t end = k->piece < TRICKLE_PIECES ? k->slow * (k->piece + 1) / (TRICKLE_PIECES + 1) :
		     k->bytes.len;

	if (end > k->sent)
		conn_write(c, (struct str){ k->bytes.data + k->sent, end - k->sent });
	k->sent = end;
}

void trickle_start(struct conn *c, struct str bytes, size_t slow, int64_t length_ns)
{
	struct trickle *k = &c->stream.trickle;

	assert(length_ns > 0 && slow >= 1 && slow <= bytes.n);
	buf_reset(&k->bytes);
	buf_add_str(&k->bytes, bytes);
	k->sent = 0;
	k->slow = slow;
	k->piece = 0;
	k->from_ns = clock_mono_ns();
	k->length_ns = length_ns;
	k->timer.on_time = trickle_on_time;
	piece_send(c);
	k->piece = 1;
	trickle_arm(c);
}

static void trickle_cancel(struct conn *c)
{
	struct trickle *k = &c->stream.trickle;

	loop_timer_cancel(c->sim->loop, &k->timer);
	k->length_ns = 0;
	buf_reset(&k->bytes);
}

/* Sends the rest now; no effect when idle. Does not notify the owner. */
static void trickle_finish(struct conn *c)
{
	struct trickle *k = &c->stream.trickle;

	if (k->length_ns == 0)
		return;
	k->piece = TRICKLE_PIECES;
	piece_send(c);
	trickle_cancel(c);
}

/* ---- pacing ---- */

static int64_t draw_ns(const struct dist *d, struct pcg64 *g)
{
	return (int64_t)llround(dist_draw(d, g) * 1e6);
}

static void stream_arm(struct sim_choice *x)
{
	struct sim *s = x->conn->sim;
	int64_t at = x->ideal_ns;

	if (s->burst_ns && at > s->origin_ns) {
		int64_t past = (at - s->origin_ns) % s->burst_ns;

		at += past ? s->burst_ns - past : 0;
	}
	loop_timer_set(s->loop, &x->timer, at);
}

/* Tokens up to which the next event may extend: it has one kind of content. */
static uint32_t share_end(const struct sim_choice *x)
{
	const struct script_part *p;
	uint32_t end;

	if (x->done < x->reasoning)
		return x->reasoning;
	if (!x->script.parts)
		return x->total;
	p = script_part_of(&x->script, x->done - x->reasoning);
	end = x->reasoning + p->token_end;
	return end < x->total ? end : x->total;
}

static bool is_call(const struct sim_choice *x)
{
	return x->done >= x->reasoning && x->script.parts &&
	       script_part_of(&x->script, x->done - x->reasoning)->kind == SCRIPT_CALL;
}

/*
 * Decides the tokens of the next event, never across the end of a part; a call's name is one
 * event. With speculative decoding that is what of a draft is accepted and one more.
 */
static void share_draw(const struct sim *s, struct sim_choice *x)
{
	const struct sim_opts *o = s->opts;
	uint32_t left = share_end(x) - x->done;
	uint32_t n = (uint32_t)o->tokens_per_event;

	if (o->diffusion_block)
		n = (uint32_t)o->diffusion_block;
	for (int64_t i = 0; x->done > 0 && i < o->spec_tokens; i++, n++)
		if (pcg64_double(&x->rng) >= o->spec_acceptance)
			break;
	x->share = n < left && !is_call(x) ? n : left;
}

/* Counts the drafts or the denoising steps that produced n tokens. */
static void share_count(struct sim *s, const struct sim_choice *x, uint32_t n)
{
	struct counters *k = &s->counters;
	const struct sim_opts *o = s->opts;

	if (o->spec_tokens && x->done > 0) {
		uint32_t most = (uint32_t)o->spec_tokens;
		uint32_t accepted = n - 1 < most ? n - 1 : most;

		k->drafts++;
		k->draft_tokens += most;
		k->accepted_tokens += accepted;
		for (uint32_t i = 0; i < accepted; i++)
			k->accepted_at[i]++;
	}
	if (o->diffusion_block) {
		k->denoising_steps += (uint64_t)o->diffusion_steps;
		k->canvas_positions += (uint64_t)(o->diffusion_steps * o->diffusion_block);
		k->committed_tokens += n;
	}
}

static bool is_within(const struct sim_choice *x, uint32_t token, uint32_t n)
{
	return token > x->done && token <= x->done + n;
}

/* Adds the gap to the next event. */
static void stream_advance(struct sim_choice *x)
{
	const struct fault_plan *fault = &x->conn->stream.fault;

	x->ideal_ns += draw_ns(&x->conn->sim->itl, &x->rng);
	if (is_within(x, fault->stall_at, x->share))
		x->ideal_ns += fault->stall_ns;
	stream_arm(x);
}

static void lane_kick(struct sim_lane *l);

/* Tokens that one step adds to the sequence: those of a draft come together. */
static uint32_t choice_yield(const struct sim *s, const struct sim_choice *x)
{
	return s->opts->spec_tokens && !is_call(x) ? x->share : 1;
}

/* The engine with the fewest requests, where waiting ones count fourfold, as in vLLM. */
static struct sim_lane *lane_choose(struct sim *s)
{
	struct sim_lane *best = &s->lane[0];
	size_t best_load = SIZE_MAX;

	for (size_t i = 0; i < s->lanes; i++) {
		const struct sim_engine *g = &s->lane[i].engine;
		size_t load = 4 * g->waiting_count + g->running_count;

		if (load < best_load) {
			best = &s->lane[i];
			best_load = load;
		}
	}
	return best;
}

void stream_admit(struct conn *c)
{
	struct sim_stream *t = &c->stream;

	assert(t->is_active);
	for (uint32_t i = 0; i < t->choices; i++) {
		struct sim_choice *x = &t->choice[i];

		/* The first choice has already looked up the prompt in its engine. */
		if (i > 0)
			x->lane = c->sim->kv.is_on ? t->choice->lane : lane_choose(c->sim);
		x->seq.yield = choice_yield(c->sim, x);
		engine_add(&x->lane->engine, &x->seq);
	}
	for (uint32_t i = 0; i < t->choices; i++)
		lane_kick(t->choice[i].lane);
}

void stream_pace(struct conn *c)
{
	struct sim *s = c->sim;
	struct sim_stream *t = &c->stream;
	uint64_t tokens = 0;

	for (uint32_t i = 0; i < t->choices; i++) {
		share_draw(s, &t->choice[i]);
		tokens += t->choice[i].total;
	}
	if (t->row && t->is_streamed)
		truth_expect(t->row, tokens / (uint64_t)s->opts->tokens_per_event + t->choices);
	if (!s->is_oracle) {
		t->choice->lane = lane_choose(s);
		if (s->kv.is_on && !t->is_pooled)
			kv_begin(c);
		else
			stream_admit(c);
		return;
	}
	for (uint32_t i = 0; i < t->choices; i++) {
		struct sim_choice *x = &t->choice[i];

		x->ideal_ns = t->recv_ns - t->offset_ns + draw_ns(&s->ttft, &x->rng) +
			      t->fault.slow_ns;
		if (t->is_streamed)
			x->ideal_ns += t->fault.slow_head_ns;
		if (is_within(x, t->fault.stall_at, x->share))
			x->ideal_ns += t->fault.stall_ns;
		stream_arm(x);
	}
}

/* ---- what is said ---- */

struct str choice_text(const struct sim *s, const struct sim_choice *x, uint32_t i)
{
	const struct word *w;

	if (x->script.parts && i >= x->reasoning)
		return script_token(&x->script, i - x->reasoning);
	w = words_at(&s->words, x->key, i);
	return (struct str){ w->text, w->n };
}

static uint32_t choice_id(const struct sim *s, const struct sim_choice *x, uint32_t i)
{
	if (x->script.parts && i >= x->reasoning)
		return x->script.ids.id[i - x->reasoning];
	return words_at(&s->words, x->key, i)->id;
}

/* finish_reason */
static const char *choice_reason(const struct sim_choice *x)
{
	if (x->finish == FINISH_STOP && x->script.calls)
		return "tool_calls";
	return counters_finish_name(x->finish);
}

/* The text of n tokens, clipped where the answer is cut and escaped as JSON, in s->text. */
static struct str event_words(struct sim *s, struct sim_choice *x, uint32_t n)
{
	struct buf *out = &s->text;
	struct str said;

	buf_reset(out);
	for (uint32_t i = 0; i < n; i++)
		buf_add_str(out, choice_text(s, x, x->done + i));
	if (out->len > x->cut - x->text_at)
		out->len = x->cut - x->text_at;
	x->text_at += out->len;
	if (!x->script.parts)
		return buf_str(out);
	buf_reset(&s->quoted);
	said = buf_str(out);
	json_quote(&s->quoted, said, true);
	return (struct str){ s->quoted.data + 1, s->quoted.len - 2 };
}

/* Sets which part of the answer the next event is, and of which call. */
static void event_part(const struct sim_choice *x, struct event *v)
{
	static const enum event_part parts[] = {
		[SCRIPT_TEXT] = EVENT_TEXT, [SCRIPT_CALL] = EVENT_CALL,
		[SCRIPT_ARGUMENTS] = EVENT_ARGUMENTS,
	};
	const struct script_part *p;

	v->part = x->done < x->reasoning ? EVENT_REASONING : EVENT_TEXT;
	if (x->done < x->reasoning || !x->script.parts)
		return;
	p = script_part_of(&x->script, x->done - x->reasoning);
	if (p->kind == SCRIPT_CALL && x->reasoning + p->token_end > x->total) {
		v->text = (struct str){ 0 }; /* the limit cuts the name, so it is not sent */
		return;
	}
	v->part = parts[p->kind];
	v->call = p->call;
	v->call_id = str_of(p->call_id);
	v->name = (struct str){ x->script.text.data + p->name_at, p->name_n };
}

/* ---- events ---- */

/* Sends bytes as the faults want it; returns the stamp taken before the last send. */
static int64_t stream_send(struct conn *c, struct str bytes)
{
	int64_t at;

	if (c->stream.fault.is_split && bytes.n > 1) {
		struct str half = { bytes.p, bytes.n / 2 };

		conn_write(c, half);
		bytes = (struct str){ bytes.p + half.n, bytes.n - half.n };
	}
	at = clock_real_ns();
	conn_write(c, bytes);
	return at;
}

/* One event of x's that was given to the kernel at at. */
static void stream_sent(struct sim_choice *x, int64_t at, uint32_t tokens)
{
	struct sim_stream *t = &x->conn->stream;
	struct sim *s = x->conn->sim;

	s->events++;
	s->counters.generation_tokens += tokens;
	if (t->row)
		truth_event(t->row, at, tokens);
	if (tokens == 0)
		return;
	if (x->first_ns == 0) {
		x->first_ns = at;
		counters_observe(&s->counters, HIST_TTFT, at - t->recv_ns);
	} else {
		counters_observe(&s->counters, HIST_ITL, at - x->last_ns);
	}
	x->last_ns = at;
}

/* The API's events before the first token; chat has one per choice. */
static void opening_send(struct conn *c)
{
	struct sim *s = c->sim;
	struct sim_stream *t = &c->stream;
	int64_t at;

	t->is_open = true;
	buf_reset(&s->event);
	event_open(&t->form, &s->event);
	if (s->event.len == 0)
		return;
	at = stream_send(c, buf_str(&s->event));
	for (uint32_t i = 0; t->form.shape->is_opening_counted && i < t->choices; i++)
		stream_sent(&t->choice[i], at, 0);
}

/* Keeps the event if sends are combined; true when it was handled. */
static bool stream_hold(struct sim_choice *x, uint32_t n, bool is_final)
{
	struct sim_stream *t = &x->conn->stream;
	struct sim *s = x->conn->sim;
	int64_t at;

	if (t->fault.coalesce < 2)
		return false;
	buf_add_str(&t->held, buf_str(&s->event));
	t->held_events++;
	if (t->row)
		truth_event(t->row, 0, n);
	if (t->held_events < t->fault.coalesce && !is_final)
		return true;
	at = stream_send(x->conn, buf_str(&t->held));
	for (uint32_t i = 0; t->row && i < t->held_events; i++)
		t->row->sent[t->row->events - 1 - i].at_ns = at;
	s->events += t->held_events;
	t->held_events = 0;
	buf_reset(&t->held);
	if (x->first_ns == 0)
		counters_observe(&s->counters, HIST_TTFT, at - t->recv_ns);
	x->first_ns = x->first_ns ? x->first_ns : at;
	x->last_ns = at;
	return true;
}

/* One event of n tokens goes out. */
static void stream_event(struct sim_choice *x, uint32_t n)
{
	struct sim_stream *t = &x->conn->stream;
	struct sim *s = x->conn->sim;
	bool is_final = x->done + n == x->total;
	struct event v = {
		.choice = x->index, .id = choice_id(s, x, x->done + n - 1),
		.output_tokens = x->done + n,
		.finish_reason = is_final ? choice_reason(x) : NULL,
		.stop_reason = is_final ? buf_str(&x->stop_reason) : (struct str){ 0 },
		.is_malformed = is_within(x, t->fault.malformed_at, n),
	};

	v.text = event_words(s, x, n);
	event_part(x, &v);
	share_count(s, x, n);
	x->done += n;
	buf_reset(&s->event);
	event_write(&t->form, &v, &s->event);
	if (stream_hold(x, n, is_final && t->left == 1))
		s->counters.generation_tokens += n;
	else
		stream_sent(x, stream_send(x->conn, buf_str(&s->event)), n);
}

/* ---- the end ---- */

/* Adds what was generated to the cache, for clients that send it back in the next prompt. */
static void words_remember(struct sim_choice *x)
{
	struct sim_stream *t = &x->conn->stream;
	struct sim *s = x->conn->sim;
	struct prefix_cache *cache = &(x->lane ? x->lane : s->lane)->prefix;
	struct prefix_tail tail = x->tail;

	if (t->is_pooled)
		return;
	for (uint32_t i = 0; cache->cap && i < x->done; i++)
		prefix_add(cache, &x->tail, choice_id(s, x, i));
	for (uint32_t i = 0; t->kv.is_kept && i < x->done; i++)
		prefix_add(&s->kv.host, &tail, choice_id(s, x, i));
}

/* One choice is all there, or given up. */
static void choice_over(struct sim_choice *x, enum counter_finish finish)
{
	struct sim_stream *t = &x->conn->stream;
	struct sim *s = x->conn->sim;

	if (x->is_over)
		return;
	x->is_over = true;
	words_remember(x);
	loop_timer_cancel(s->loop, &x->timer);
	if (x->lane)
		engine_remove(&x->lane->engine, &x->seq);
	s->counters.finished[finish]++;
	if (x->first_ns && finish <= FINISH_LENGTH) {
		counters_observe(&s->counters, HIST_E2E, x->last_ns - t->recv_ns);
		if (x->done > 1)
			counters_observe(&s->counters, HIST_TPOT,
					 (x->last_ns - x->first_ns) / (x->done - 1));
	}
	if (t->row) {
		struct truth_choice c = { .output_tokens = x->done, .finish = finish,
					  .constraint = x->script.constraint,
					  .mistake = x->script.mistake };
		uint32_t said = x->done > x->reasoning ? x->done - x->reasoning : 0;

		c.calls = script_calls(&x->script, said, &c.malformed);
		truth_choice(t->row, x->index, &c);
	}
}

static void stream_over(struct conn *c, enum counter_finish finish)
{
	struct sim *s = c->sim;
	struct sim_stream *t = &c->stream;
	uint32_t done = 0;

	for (uint32_t i = 0; i < t->choices; i++) {
		struct sim_choice *x = &t->choice[i];

		choice_over(x, finish <= FINISH_LENGTH ? x->finish : finish);
		done += x->done;
	}
	profiler_span(&s->profiler, "request", 0, t->recv_ns - t->offset_ns, clock_mono_ns(), done);
	trickle_cancel(c);
	kv_cancel(c);
	t->is_active = false;
	s->stream_count--;
	if (t->row) {
		t->row->output_tokens = done;
		t->row->finish = finish;
		truth_end(&s->truth, t->row);
		t->row = NULL;
		sim_flush_soon(s);
	}
}

/* The end of the answer with the tokens of all choices, without texts. */
static struct event_ending answer_ending(const struct sim_stream *t)
{
	const struct sim_choice *first = t->choice;
	int64_t now = clock_real_ns();
	int64_t first_ns = first->first_ns ? first->first_ns : now;
	int64_t last_ns = first->last_ns ? first->last_ns : now;
	struct event_ending end = {
		.finish_reason = choice_reason(first), .stop_reason = buf_str(&first->stop_reason),
		.prefill_ns = first_ns > t->recv_ns ? first_ns - t->recv_ns : 0,
		.decode_ns = last_ns > first_ns ? last_ns - first_ns : 0,
	};

	for (uint32_t i = 0; i < t->choices; i++) {
		end.output_tokens += t->choice[i].done;
		end.reasoning_tokens += t->choice[i].reasoning;
	}
	return end;
}

/* Sends the closing events and the end of the body at once. */
static void stream_tail(struct conn *c)
{
	struct sim *s = c->sim;
	struct sim_stream *t = &c->stream;
	struct event_ending end = answer_ending(t);
	int64_t at;

	buf_reset(&s->event);
	event_close(&t->form, &end, &s->event);
	http_write_last_chunk(&s->event);
	at = clock_real_ns();
	conn_write(c, buf_str(&s->event));
	if (t->row)
		t->row->end_ns = at;
}

/* An error event and the end of the body. */
static void stream_fail(struct conn *c)
{
	struct sim *s = c->sim;
	int64_t at;

	buf_reset(&s->event);
	event_error(&c->stream.form, "the engine failed on purpose", &s->event);
	http_write_last_chunk(&s->event);
	at = stream_send(c, buf_str(&s->event));
	if (c->stream.row)
		c->stream.row->end_ns = at;
}

/* A fault that ends the answer before the choice's next n tokens; true when one struck. */
static bool stream_struck(struct sim_choice *x, uint32_t n)
{
	struct conn *c = x->conn;
	struct sim_stream *t = &c->stream;

	if (is_within(x, t->fault.reset_at, n)) {
		conn_reset(c);
	} else if (is_within(x, t->fault.close_at, n)) {
		conn_drop(c);
	} else if (t->is_streamed && is_within(x, t->fault.error_at, n)) {
		stream_fail(c);
	} else {
		return false;
	}
	stream_over(c, FINISH_ERROR);
	return true;
}

/* The next event is due with n tokens. */
static void stream_emit(struct sim_choice *x, uint32_t n)
{
	struct conn *c = x->conn;
	struct sim_stream *t = &c->stream;

	assert(t->is_active && !x->is_over && n >= 1);
	trickle_finish(c);
	if (t->fault.hit && !t->is_pooled && stream_struck(x, n))
		return;
	if (!t->is_streamed) {
		if (!t->is_pooled)
			share_count(c->sim, x, n);
		x->done += n;
		t->left -= x->done == x->total;
		if (t->left == 0)
			answer_send(c);
		return;
	}
	if (!t->is_open)
		opening_send(c);
	stream_event(x, n);
	if (x->done < x->total)
		return;
	t->left--;
	choice_over(x, x->finish);
	if (t->left)
		return;
	stream_tail(c);
	stream_over(c, t->choice->finish);
}

void stream_abort(struct conn *c)
{
	if (c->stream.is_active)
		stream_over(c, FINISH_ABORT);
}

/* ---- entries from the loop ---- */

void stream_on_time(struct timer *timer)
{
	struct sim_choice *x =
		(struct sim_choice *)((char *)timer - offsetof(struct sim_choice, timer));
	struct conn *c = x->conn;
	struct sim *s = c->sim;
	int64_t due = x->timer.at_ns + c->stream.offset_ns;
	uint64_t before = s->events;

	stream_emit(x, x->share);
	if (s->events > before && x->last_ns)
		hist_add(&s->lag, x->last_ns - due);
	if (c->stream.is_active && !c->is_broken && x->done < x->total) {
		share_draw(s, x);
		stream_advance(x);
	} else {
		conn_settle(c);
	}
}

/* Counts what the engine found in its prefix cache, before the first token is sent. */
static void known_tell(struct sim_choice *x)
{
	struct sim_stream *t = &x->conn->stream;
	struct sim *s = x->conn->sim;

	if (x->is_known_told)
		return;
	x->is_known_told = true;
	/* Transferred tokens are counted separately. */
	s->counters.prefix_hits += t->kv.brought > t->kv.local ? t->kv.local : x->seq.known;
	if (x->index)
		return;
	t->form.cached_tokens = x->seq.known;
	if (t->row)
		t->row->cached_tokens = x->seq.known;
}

/* Steps of the engine that the next event takes. */
static uint32_t event_steps(const struct sim *s, const struct sim_choice *x)
{
	if (s->opts->diffusion_block)
		return (uint32_t)s->opts->diffusion_steps;
	return s->opts->spec_tokens && !is_call(x) ? 1 : x->share;
}

static void on_token(struct engine_seq *seq, void *ctx)
{
	struct sim_choice *x =
		(struct sim_choice *)((char *)seq - offsetof(struct sim_choice, seq));
	struct conn *c = x->conn;
	struct sim *s = ctx;

	known_tell(x);
	kv_keep(c);
	x->ready++;
	if (x->ready < event_steps(s, x))
		return;
	x->ready = 0;
	stream_emit(x, x->share);
	if (!c->stream.is_active || c->is_broken) {
		conn_settle(c);
	} else if (x->done < x->total) {
		share_draw(s, x);
		x->seq.yield = choice_yield(s, x);
	} else {
		engine_remove(&x->lane->engine, &x->seq); /* all there, but others are not */
	}
}

/* How much the model may lag the clock before it skips the lost time. */
#define STEP_LATE_MAX_NS 100000000

/* Plans the step that starts at at and sets the timer for its end. */
static void step_next(struct sim_lane *l, int64_t at)
{
	int64_t length = engine_step_begin(&l->engine);

	if (length < 0)
		return;
	loop_timer_set(l->sim->loop, &l->step, at + length);
	profiler_span(&l->sim->profiler, "step", 1 + (unsigned)(l - l->sim->lane), at, at + length,
		      l->engine.step_tokens);
}

static void lane_kick(struct sim_lane *l)
{
	if (!l->engine.is_in_step && !l->is_ending_step && !l->sim->is_asleep)
		step_next(l, clock_mono_ns());
}

void stream_wake(struct sim *s)
{
	for (size_t i = 0; i < s->lanes; i++)
		lane_kick(&s->lane[i]);
}

void stream_on_step(struct timer *timer)
{
	struct sim_lane *l = (struct sim_lane *)((char *)timer - offsetof(struct sim_lane, step));
	int64_t end = timer->at_ns;
	int64_t now = clock_mono_ns();

	l->is_ending_step = true;
	engine_step_end(&l->engine, on_token, l->sim);
	l->is_ending_step = false;
	if (l->sim->is_asleep)
		return;
	step_next(l, now - end > STEP_LATE_MAX_NS ? now : end);
}

/* Answers that are not streamed: one JSON body after the last token, and the effects of faults. */

/* The texts of one choice; to be released. */
struct said_texts {
	struct buf plain, reasoning, text, calls;
};

static void said_release(struct said_texts *v)
{
	buf_release(&v->plain);
	buf_release(&v->reasoning);
	buf_release(&v->text);
	buf_release(&v->calls);
}

/* The text of tokens from..to, clipped at the choice's cut, as JSON. at: bytes before. */
static size_t words_write(const struct sim *s, const struct sim_choice *x, uint32_t from,
			  uint32_t to, size_t at, struct said_texts *v, struct buf *out)
{
	buf_reset(&v->plain);
	for (uint32_t i = from; i < to && at < x->cut; i++) {
		struct str word = choice_text(s, x, i);

		if (word.n > x->cut - at)
			word.n = x->cut - at;
		buf_add_str(&v->plain, word);
		at += word.n;
	}
	if (v->plain.len == 0)
		return at;
	if (!x->script.parts)
		buf_add_str(out, buf_str(&v->plain));
	else
		json_quote(out, buf_str(&v->plain), true);
	return at;
}

/* A call in the form of OpenAI's list; its arguments as far as they were generated. */
static void call_write(const struct sim *s, const struct sim_choice *x, const struct script_part *p,
		       struct said_texts *v)
{
	uint32_t from = x->reasoning + p->token_end, to = from;
	struct str name = { x->script.text.data + p->name_at, p->name_n };
	bool has_arguments = p + 1 < x->script.part + x->script.parts &&
			     p[1].kind == SCRIPT_ARGUMENTS;

	if (has_arguments)
		to = x->reasoning + p[1].token_end;
	buf_printf(&v->calls, "%s{\"id\":\"%s\",\"type\":\"function\",\"function\":{\"name\":",
		   v->calls.len ? "," : "", p->call_id);
	json_quote(&v->calls, name, true);
	buf_add_text(&v->calls, ",\"arguments\":");
	if (from < x->total && from < to)
		words_write(s, x, from, to < x->total ? to : x->total, 0, v, &v->calls);
	else
		buf_add_text(&v->calls, "\"\"");
	buf_add_text(&v->calls, "}}");
}

/* Without the quotes that json_quote puts around it. */
static struct str bare(const struct buf *b)
{
	bool is_quoted = b->len >= 2 && b->data[0] == '"';

	return is_quoted ? (struct str){ b->data + 1, b->len - 2 } : buf_str(b);
}

/* Fills the texts of one choice's ending; they live as long as v. */
static void choice_say(const struct sim *s, const struct sim_choice *x, struct said_texts *v,
		       struct event_ending *end)
{
	size_t at;

	if (x->reasoning)
		at = words_write(s, x, 0, x->reasoning, 0, v, &v->reasoning);
	else
		at = 0;
	for (uint32_t i = 0, from = x->reasoning; i < x->script.parts && from < x->total; i++) {
		const struct script_part *p = &x->script.part[i];

		if (p->kind == SCRIPT_CALL && x->reasoning + p->token_end <= x->total)
			call_write(s, x, p, v);
		from = x->reasoning + p->token_end;
	}
	if (x->script.calls == 0)
		words_write(s, x, x->reasoning, x->total, at, v, &v->text);
	end->reasoning = bare(&v->reasoning);
	end->text = bare(&v->text);
	end->calls = buf_str(&v->calls);
}

/* The JSON of the answer, borrowed from its form. */
static struct str generated(struct sim *s, struct sim_stream *t)
{
	struct event_ending *end = mem_array(t->choices, sizeof(*end));
	struct said_texts *said = mem_array(t->choices, sizeof(*said));
	struct str json;

	end[0] = answer_ending(t);
	for (uint32_t i = 0; i < t->choices; i++) {
		const struct sim_choice *x = &t->choice[i];

		end[i].finish_reason = choice_reason(x);
		end[i].stop_reason = buf_str(&x->stop_reason);
		choice_say(s, x, &said[i], &end[i]);
		if (i)
			end[i - 1].next = &end[i];
	}
	json = event_whole(&t->form, end);
	for (uint32_t i = 0; i < t->choices; i++)
		said_release(&said[i]);
	free(said);
	free(end);
	return json;
}

/* ---- sending ---- */

static struct str body_of(struct sim *s, struct sim_stream *t)
{
	struct str body = t->is_pooled ? buf_str(&t->body) : generated(s, t);

	if (t->is_pooled && t->fault.error_at)
		body = STR("{\"error\":{\"message\":\"the engine failed on purpose\","
			   "\"type\":\"InternalServerError\",\"param\":null,\"code\":500}}");
	if (t->fault.malformed_at &&
	    (t->is_pooled || t->fault.malformed_at <= t->choice->total))
		body.n /= 2;
	return body;
}

static void whole_write(const struct conn *c, struct str body, struct buf *out, size_t *head)
{
	const struct sim_stream *t = &c->stream;
	const char *extra = route_extra(c);
	struct buf lines = { 0 };

	buf_add_text(&lines, extra ? extra : "");
	buf_add_str(&lines, buf_str(&t->extra));
	http_write_head(out, 200, t->is_pooled ? t->type : "application/json", (int64_t)body.n,
			lines.len ? lines.data : NULL);
	*head = out->len;
	buf_add_str(out, body);
	buf_release(&lines);
}

static void whole_over(struct conn *c, int64_t at)
{
	struct sim_stream *t = &c->stream;

	for (uint32_t i = 0; i < t->choices; i++)
		stream_sent(&t->choice[i], at, t->is_pooled ? 0 : t->choice[i].total);
	if (t->is_pooled)
		t->choice->done = 0;
	stream_over(c, t->choice->finish);
}

/* Bytes of the answer that go out before a fault strikes; SIZE_MAX: none does. */
static size_t cut_at(const struct fault_plan *f, size_t head, size_t body)
{
	uint32_t part = f->reset_at ? f->reset_at : f->close_at;

	if (part == 0 || part > FAULT_PARTS)
		return SIZE_MAX;
	return part == 1 ? 0 : head + body * (part - 1) / FAULT_PARTS;
}

static void slow_send(struct conn *c, const struct buf *all, size_t head)
{
	const struct fault_plan *f = &c->stream.fault;
	struct str bytes = buf_str(all);

	if (!f->slow_head_ns && bytes.n > head) {
		conn_write(c, (struct str){ bytes.p, head });
		bytes = (struct str){ bytes.p + head, bytes.n - head };
	}
	trickle_start(c, bytes, f->slow_body_ns ? bytes.n : head,
		      f->slow_head_ns + f->slow_body_ns);
}

/* The whole answer is due: sends it, slowly or in part when a fault says so. */
static void answer_send(struct conn *c)
{
	struct sim_stream *t = &c->stream;
	struct buf all = { 0 };
	size_t head, cut;
	int64_t at;

	assert(t->left == 0);
	whole_write(c, body_of(c->sim, t), &all, &head);
	cut = t->is_pooled ? cut_at(&t->fault, head, all.len - head) : SIZE_MAX;
	if (cut != SIZE_MAX) {
		if (cut)
			conn_write(c, (struct str){ all.data, cut });
		if (t->fault.reset_at)
			conn_reset(c);
		else
			conn_drop(c);
		t->choice->done = 0;
		stream_over(c, FINISH_ERROR);
	} else if (t->fault.slow_head_ns || t->fault.slow_body_ns) {
		slow_send(c, &all, head);
	} else {
		size_t half = t->fault.is_split ? all.len / 2 : 0;

		if (half)
			conn_write(c, (struct str){ all.data, half });
		at = clock_real_ns();
		conn_write(c, (struct str){ all.data + half, all.len - half });
		whole_over(c, at);
	}
	buf_release(&all);
}

static void trickle_on_time(struct timer *timer)
{
	struct conn *c = (struct conn *)((char *)timer -
					 offsetof(struct conn, stream.trickle.timer));
	struct trickle *k = &c->stream.trickle;
	int64_t at = clock_real_ns();

	if (k->piece < TRICKLE_PIECES) {
		piece_send(c);
		k->piece++;
		if (!c->is_broken)
			trickle_arm(c);
	} else {
		trickle_finish(c);
		if (!c->stream.is_streamed)
			whole_over(c, at);
	}
	conn_settle(c);
}
