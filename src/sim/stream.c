/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.c - one answer under way: when its events are due and what they hold.
 *
 * The oracle keeps an ideal time per event that never drifts: each one is the
 * ideal of the one before plus a gap, whatever the clock did meanwhile. In
 * burst mode an event goes out at the first grid point at or after its ideal.
 * The engine model calls stream_on_step at the end of each step instead.
 * Starting an answer is start.c; this file is the path of every token.
 */
#include "sim/server.h"

#include <assert.h>
#include <math.h>

#include "base/clock.h"

/* ---- pacing ---- */

static int64_t draw_ns(const struct dist *d, struct pcg64 *g)
{
	return (int64_t)llround(dist_draw(d, g) * 1e6);
}

static void stream_arm(struct conn *c)
{
	struct sim *s = c->sim;
	int64_t at = c->stream.ideal_ns;

	if (s->burst_ns && at > s->origin_ns) {
		int64_t past = (at - s->origin_ns) % s->burst_ns;

		at += past ? s->burst_ns - past : 0;
	}
	loop_timer_set(s->loop, &c->stream.timer, at);
}

/*
 * Decides the tokens of the next event, never across the end of the reasoning. With
 * speculative decoding that is what of a draft is accepted and one more.
 */
static void share_draw(const struct sim *s, struct stream *t)
{
	const struct sim_opts *o = s->opts;
	uint32_t left = t->total - t->done;
	uint32_t n = (uint32_t)o->tokens_per_event;

	if (t->done < t->reasoning)
		left = t->reasoning - t->done;
	if (o->diffusion_block)
		n = (uint32_t)o->diffusion_block;
	for (int64_t i = 0; t->done > 0 && i < o->spec_tokens; i++, n++)
		if (pcg64_double(&t->rng) >= o->spec_acceptance)
			break;
	t->share = n < left ? n : left;
}

/* Counts the drafts or the denoising that n tokens stand for. */
static void share_count(struct sim *s, const struct stream *t, uint32_t n)
{
	struct counters *k = &s->counters;
	const struct sim_opts *o = s->opts;

	if (o->spec_tokens && t->done > 0) {
		k->drafts++;
		k->draft_tokens += (uint64_t)o->spec_tokens;
		k->accepted_tokens += n - 1;
		for (uint32_t i = 0; i + 1 < n; i++)
			k->accepted_at[i]++;
	}
	if (o->diffusion_block) {
		k->denoising_steps += (uint64_t)o->diffusion_steps;
		k->canvas_positions += (uint64_t)(o->diffusion_steps * o->diffusion_block);
		k->committed_tokens += n;
	}
}

static bool is_within(const struct stream *t, uint32_t token, uint32_t n)
{
	return token > t->done && token <= t->done + n;
}

/* Adds the gap to the next event. */
static void stream_advance(struct conn *c)
{
	struct sim *s = c->sim;
	struct stream *t = &c->stream;

	t->ideal_ns += draw_ns(&s->itl, &t->rng);
	if (is_within(t, t->fault.stall_at, t->share))
		t->ideal_ns += t->fault.stall_ns;
	stream_arm(c);
}

static void lane_kick(struct lane *l);

/* Tokens that one step adds to the sequence: those of a draft come together. */
static uint32_t stream_yield(const struct sim *s, const struct stream *t)
{
	return s->opts->spec_tokens ? t->share : 1;
}

/* The engine with the fewest requests, those that wait counting fourfold as in vLLM. */
static struct lane *lane_choose(struct sim *s)
{
	struct lane *best = &s->lane[0];
	size_t best_load = SIZE_MAX;

	for (size_t i = 0; i < s->lanes; i++) {
		const struct engine *g = &s->lane[i].engine;
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
	struct stream *t = &c->stream;

	t->seq.yield = stream_yield(c->sim, t);
	engine_add(&t->lane->engine, &t->seq);
	lane_kick(t->lane);
}

void stream_pace(struct conn *c)
{
	struct sim *s = c->sim;
	struct stream *t = &c->stream;

	share_draw(s, t);
	if (!s->is_oracle) {
		t->lane = lane_choose(s);
		if (s->kv.is_on && !t->is_pooled)
			kv_begin(c);
		else
			stream_admit(c);
		return;
	}
	t->ideal_ns = t->recv_ns - t->offset_ns + draw_ns(&s->ttft, &t->rng) + t->fault.slow_ns;
	if (t->is_streamed)
		t->ideal_ns += t->fault.slow_head_ns;
	if (is_within(t, t->fault.stall_at, t->share))
		t->ideal_ns += t->fault.stall_ns;
	stream_arm(c);
}

/* ---- events ---- */

/* The words of n tokens, clipped where the answer is cut, into s->text. */
static struct str stream_words(struct sim *s, struct stream *t, uint32_t n)
{
	buf_reset(&s->text);
	for (uint32_t i = 0; i < n; i++) {
		const struct word *w = words_at(&s->words, t->key, t->done + i);

		buf_add(&s->text, w->text, w->n);
	}
	if (s->text.len > t->cut - t->text_at)
		s->text.len = t->cut - t->text_at;
	t->text_at += s->text.len;
	return buf_str(&s->text);
}

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

void stream_sent(struct conn *c, int64_t at, uint32_t tokens)
{
	struct sim *s = c->sim;
	struct stream *t = &c->stream;

	s->events++;
	s->counters.generation_tokens += tokens;
	if (t->row)
		truth_event(t->row, at, tokens);
	if (tokens == 0)
		return;
	if (t->first_ns == 0) {
		t->first_ns = at;
		counters_observe(&s->counters, HIST_TTFT, at - t->recv_ns);
	} else {
		counters_observe(&s->counters, HIST_ITL, at - t->last_ns);
	}
	t->last_ns = at;
}

/* What the API says before the first token. */
static void opening_send(struct conn *c)
{
	struct sim *s = c->sim;
	struct event_form *f = &c->stream.form;
	int64_t at;

	c->stream.is_open = true;
	buf_reset(&s->event);
	event_open(f, &s->event);
	if (s->event.len == 0)
		return;
	at = stream_send(c, buf_str(&s->event));
	if (f->shape->is_opening_counted)
		stream_sent(c, at, 0);
}

/* Keeps the event when sends are to be shared; true when it was dealt with. */
static bool stream_hold(struct conn *c, uint32_t n, bool is_final)
{
	struct sim *s = c->sim;
	struct stream *t = &c->stream;
	int64_t at;

	if (t->fault.coalesce < 2)
		return false;
	buf_add_str(&t->held, buf_str(&s->event));
	t->held_events++;
	if (t->row)
		truth_event(t->row, 0, n);
	if (t->held_events < t->fault.coalesce && !is_final)
		return true;
	at = stream_send(c, buf_str(&t->held));
	for (uint32_t i = 0; t->row && i < t->held_events; i++)
		t->row->send_ns[t->row->events - 1 - i] = at;
	s->events += t->held_events;
	t->held_events = 0;
	buf_reset(&t->held);
	if (t->first_ns == 0)
		counters_observe(&s->counters, HIST_TTFT, at - t->recv_ns);
	t->first_ns = t->first_ns ? t->first_ns : at;
	t->last_ns = at;
	return true;
}

/* One event of n tokens goes out. */
static void stream_event(struct conn *c, uint32_t n)
{
	struct sim *s = c->sim;
	struct stream *t = &c->stream;
	bool is_final = t->done + n == t->total;
	struct event v = {
		.part = t->done < t->reasoning ? EVENT_REASONING : EVENT_TEXT,
		.text = stream_words(s, t, n),
		.id = words_at(&s->words, t->key, t->done + n - 1)->id,
		.output_tokens = t->done + n,
		.finish_reason = is_final ? counters_finish_name(t->finish) : NULL,
		.stop_reason = is_final ? buf_str(&t->stop_reason) : (struct str){ 0 },
		.is_malformed = is_within(t, t->fault.malformed_at, n),
	};

	share_count(s, t, n);
	t->done += n;
	buf_reset(&s->event);
	event_write(&t->form, &v, &s->event);
	if (stream_hold(c, n, is_final))
		s->counters.generation_tokens += n;
	else
		stream_sent(c, stream_send(c, buf_str(&s->event)), n);
}

/* ---- the end ---- */

/* What was generated is in the cache as well, for whoever sends it back. */
static void words_remember(struct sim *s, struct stream *t)
{
	struct prefix_cache *cache = &(t->lane ? t->lane : s->lane)->prefix;
	struct prefix_tail tail = t->tail;

	if (t->is_pooled)
		return;
	for (uint32_t i = 0; cache->cap && i < t->done; i++)
		prefix_add(cache, &t->tail, words_at(&s->words, t->key, i)->id);
	for (uint32_t i = 0; t->kv.is_kept && i < t->done; i++)
		prefix_add(&s->kv.host, &tail, words_at(&s->words, t->key, i)->id);
}

void stream_over(struct conn *c, enum counter_finish finish)
{
	struct sim *s = c->sim;
	struct stream *t = &c->stream;

	words_remember(s, t);
	profiler_span(&s->profiler, "request", 0, t->recv_ns - t->offset_ns, clock_mono_ns(),
		      t->done);
	trickle_cancel(c);
	kv_cancel(c);
	loop_timer_cancel(s->loop, &t->timer);
	if (t->lane)
		engine_remove(&t->lane->engine, &t->seq);
	t->is_active = false;
	s->stream_count--;
	s->counters.finished[finish]++;
	if (t->first_ns && finish <= FINISH_LENGTH) {
		counters_observe(&s->counters, HIST_E2E, t->last_ns - t->recv_ns);
		if (t->done > 1)
			counters_observe(&s->counters, HIST_TPOT,
					 (t->last_ns - t->first_ns) / (t->done - 1));
	}
	if (t->row) {
		t->row->output_tokens = t->done;
		t->row->finish = finish;
		truth_end(&s->truth, t->row);
		t->row = NULL;
		sim_flush_soon(s);
	}
}

/* What closes the stream, and the end of the body, in one send. */
static void stream_tail(struct conn *c)
{
	struct sim *s = c->sim;
	struct stream *t = &c->stream;
	struct ending end = answer_ending(t);
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

/* A fault that ends the answer before its next n tokens; true when one struck. */
static bool stream_struck(struct conn *c, uint32_t n)
{
	struct stream *t = &c->stream;

	if (is_within(t, t->fault.reset_at, n)) {
		conn_reset(c);
	} else if (is_within(t, t->fault.close_at, n)) {
		conn_drop(c);
	} else if (t->is_streamed && is_within(t, t->fault.error_at, n)) {
		stream_fail(c);
	} else {
		return false;
	}
	stream_over(c, FINISH_ERROR);
	return true;
}

/* The next event is due, n tokens are there for it. */
static void stream_emit(struct conn *c, uint32_t n)
{
	struct stream *t = &c->stream;

	assert(t->is_active && n >= 1);
	trickle_finish(c);
	if (t->fault.hit && !t->is_pooled && stream_struck(c, n))
		return;
	if (!t->is_streamed) {
		if (!t->is_pooled)
			share_count(c->sim, t, n);
		t->done += n;
		if (t->done == t->total)
			answer_send(c);
		return;
	}
	if (!t->is_open)
		opening_send(c);
	stream_event(c, n);
	if (t->done < t->total)
		return;
	stream_tail(c);
	stream_over(c, t->finish);
}

void stream_abort(struct conn *c)
{
	if (c->stream.is_active)
		stream_over(c, FINISH_ABORT);
}

/* ---- entries from the loop ---- */

void stream_on_time(struct timer *timer)
{
	struct conn *c = (struct conn *)((char *)timer - offsetof(struct conn, stream.timer));
	struct stream *t = &c->stream;
	struct sim *s = c->sim;
	int64_t due = t->timer.at_ns + t->offset_ns;
	uint64_t before = s->events;

	stream_emit(c, t->share);
	if (s->events > before && t->last_ns)
		lag_add(&s->lag, t->last_ns - due);
	if (t->is_active && !c->is_broken && t->done < t->total) {
		share_draw(s, t);
		stream_advance(c);
	} else {
		conn_settle(c);
	}
}

/* What the engine found in its prefix cache, before the first token goes out. */
static void known_tell(struct sim *s, struct stream *t)
{
	if (t->is_known_told)
		return;
	t->is_known_told = true;
	t->form.cached_tokens = t->seq.known;
	/* What was brought counts by itself. */
	s->counters.prefix_hits += t->kv.brought > t->kv.local ? t->kv.local : t->seq.known;
	if (t->row)
		t->row->cached_tokens = t->seq.known;
}

static void on_token(struct engine_seq *seq, void *ctx)
{
	struct conn *c = (struct conn *)((char *)seq - offsetof(struct conn, stream.seq));
	struct stream *t = &c->stream;
	struct sim *s = ctx;
	uint32_t steps = s->opts->spec_tokens ? 1 : s->opts->diffusion_block ?
			 (uint32_t)s->opts->diffusion_steps : t->share;

	known_tell(s, t);
	kv_keep(c);
	t->ready++;
	if (t->ready < steps)
		return;
	t->ready = 0;
	stream_emit(c, t->share);
	if (!t->is_active || c->is_broken) {
		conn_settle(c);
	} else if (t->done < t->total) {
		share_draw(s, t);
		t->seq.yield = stream_yield(s, t);
	} else {
		engine_remove(&t->lane->engine, &t->seq); /* all there, but it goes out slowly */
	}
}

/* How far the model may fall behind the clock before it gives up catching up. */
#define STEP_LATE_MAX_NS 100000000

/* Plans the step that starts at at and sets the timer for its end. */
static void step_next(struct lane *l, int64_t at)
{
	int64_t length = engine_step_begin(&l->engine);

	if (length < 0)
		return;
	loop_timer_set(l->sim->loop, &l->step, at + length);
	profiler_span(&l->sim->profiler, "step", 1 + (unsigned)(l - l->sim->lane), at, at + length,
		      l->engine.step_tokens);
}

static void lane_kick(struct lane *l)
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
	struct lane *l = (struct lane *)((char *)timer - offsetof(struct lane, step));
	int64_t end = timer->at_ns;
	int64_t now = clock_mono_ns();

	l->is_ending_step = true;
	engine_step_end(&l->engine, on_token, l->sim);
	l->is_ending_step = false;
	if (l->sim->is_asleep)
		return;
	step_next(l, now - end > STEP_LATE_MAX_NS ? now : end);
}
