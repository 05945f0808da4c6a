/* SPDX-License-Identifier: Apache-2.0 */
/* worker_run.c - see worker_internal.h: generate, chat, beam, encode. */
#include "sim/serving/worker_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/mem.h"
#include "sim/model/draw.h"

/* The frontend's work for one request. */
#define REQUEST_S 80e-6
#define TEXT_TOKEN_S 0.4e-6
#define CHAT_S 90e-6
#define BEAM_S 40e-6       /* choosing among the continuations of one beam */
/* After the last step: handing out a finished sequence, and its text. */
#define OUTPUT_S 3e-6
#define DETOKENIZE_S 5e-6
/* Length of an answer if neither the question nor --output-len gives one. */
#define NATURAL_TOKENS 256
/* Wakes this long before the end, then spins. */
#define SPIN_NS 1000000
#define PROGRESS_NS 100000000

struct how {
	int64_t n, batch_max;
	bool is_eos_ignored, is_detokenized, is_prequeued, is_profiled, is_progress_told;
	bool is_chat, is_beam, is_encode;
};

/* The progress of a batch at some time. */
struct mark {
	int64_t ns;
	size_t done;
};

/*
 * A batch is computed first and its time passes afterwards: the waiting thread wakes a few times a
 * second instead of at every step, so that a busy machine delays less.
 */
struct sim_pace {
	struct worker_talk *talk;
	struct mark *mark;
	size_t n, cap;
	size_t total;           /* items */
	bool is_beam;           /* steps are of rounds; finished items are in ended */
	size_t ended;
	size_t die_at;          /* items that are done when --die-after strikes; SIZE_MAX: never */
	int64_t dead_ns;        /* when that was; INT64_MAX */
};

static int64_t ns_of(double s)
{
	return (int64_t)llround(s * 1e9);
}

static void sleep_until(int64_t at_ns)
{
	struct timespec t = { at_ns / 1000000000, at_ns % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
		continue;
}

/* A step ends at ns. */
static void pace_step(void *self, int64_t ns, size_t done)
{
	struct sim_pace *p = self;

	if (p->is_beam)
		done = p->ended;
	if (done >= p->die_at && ns < p->dead_ns)
		p->dead_ns = ns;
	if (p->talk->is_profiling)
		profile_step(p->talk, ns);
	if (p->n && ns - p->mark[p->n - 1].ns < PROGRESS_NS)
		return;
	if (p->n == p->cap) {
		p->cap = p->cap ? p->cap * 2 : 64;
		p->mark = mem_grow(p->mark, p->cap, sizeof(*p->mark));
	}
	p->mark[p->n++] = (struct mark){ ns, done };
}

/* Lets the time of the batch pass; --die-after may end it. */
static void pace_live(struct sim_pace *p, int64_t began_ns, int64_t end_ns, bool is_reported)
{
	struct worker_talk *t = p->talk;
	int64_t end = began_ns + end_ns, dead = INT64_MAX;

	if (p->dead_ns < INT64_MAX)
		dead = began_ns + p->dead_ns;
	else if (p->die_at < SIZE_MAX)
		dead = end;
	if (t->died_ns && t->died_ns < dead)
		dead = t->died_ns;
	for (size_t i = 0; i < p->n && began_ns + p->mark[i].ns < dead; i++) {
		int64_t at = began_ns + p->mark[i].ns;

		if (!is_reported || end - at < PROGRESS_NS)
			continue;
		sleep_until(at);
		talk_progress(t, p->mark[i].done, p->total);
	}
	if (dead <= end) {
		sleep_until(dead);
		t->is_dead = true;
		return;
	}
	sleep_until(end - SPIN_NS);
	while (clock_mono_ns() < end)
		continue;
}

/* ---- what is asked ---- */

static bool told(struct json_slice frame, const char *key)
{
	struct json_slice v;

	return json_member(frame, key, &v) && v.kind == JSON_TRUE;
}

static int how_read(struct how *h, struct str question, struct json_slice frame, struct err *e)
{
	struct json_slice v;

	*h = (struct how){
		.n = 1, .is_eos_ignored = told(frame, "ignore_eos"),
		.is_detokenized = told(frame, "detokenize"),
		.is_prequeued = told(frame, "prequeue"), .is_profiled = told(frame, "profile"),
		.is_progress_told = told(frame, "is_progress"),
		.is_chat = str_is(question, "chat"), .is_beam = str_is(question, "beam"),
		.is_encode = str_is(question, "encode"),
	};
	if (json_member(frame, "n", &v) && v.kind != JSON_NULL && (!json_to_i64(v, &h->n) || h->n < 1 || h->n > 100000))
		return err_set(e, ERR_PARSE, "n: expected a number from 1 to 100000");
	if (json_member(frame, "batch_max", &v) && v.kind != JSON_NULL && !json_to_i64(v, &h->batch_max))
		return err_set(e, ERR_PARSE, "batch_max: expected a number");
	return 0;
}

/* Tokens of one answer; the context ends it early, as it does in vLLM. 0 with e. */
static uint32_t output_of(struct worker_talk *t, const struct how *h, size_t i, struct err *e)
{
	const struct request *q = &t->requests.request[i];
	int64_t limit = t->model.opts->max_model_len, n = q->output;

	if (q->tokens > limit || (q->tokens == limit && !h->is_encode)) {
		err_set(e, ERR_RUN, "prompt %zu: The decoder prompt (length %u) is longer than the "
			"maximum model length of %" PRId64 ", or leaves no room for an answer", i,
			q->tokens, limit);
		return 0;
	}
	if (h->is_encode)
		return 1;
	if (n == 0) {
		err_set(e, ERR_RUN, "prompt %zu: max_tokens must be at least 1, got 0", i);
		return 0;
	}
	if (n < 0)
		n = t->model.opts->output_len ? limit : NATURAL_TOKENS;
	if ((q->output < 0 || !h->is_eos_ignored) && t->model.opts->output_len)
		n = (int64_t)fmin((double)n, fmax(1, round(dist_draw(&t->output_len, &t->rng))));
	return (uint32_t)(q->tokens + n > limit ? limit - q->tokens : n);
}

/* Seconds until the engine has one request; its media are known from then on. */
static double prepare_s(struct worker_talk *t, const struct how *h, const struct request *q,
			uint64_t id, struct batch_item *item)
{
	double s = REQUEST_S + (h->is_chat ? CHAT_S : 0);
	struct media_times m;

	if (q->kind != REQUEST_IDS || h->is_chat)
		s += TEXT_TOKEN_S * q->text_tokens;
	if (q->media_n == 0)
		return s;
	m = encoder_run(&t->encoder, t->requests.media + q->media_at, q->media_n, q->text_tokens);
	item->encode_ns = ns_of(m.forward);
	if (t->stats == t->stats_cap) {
		t->stats_cap = t->stats_cap ? t->stats_cap * 2 : 64;
		t->stat = mem_grow(t->stat, t->stats_cap, sizeof(*t->stat));
	}
	t->stat[t->stats++] = (struct media_stat){ .id = id, .times = m };
	return s + m.total;
}

/* All that is done before the clock: items and when each is ready. */
static int items_make(struct worker_talk *t, const struct how *h, struct worker_outcome *o,
		      struct err *e)
{
	bool is_queued_first = h->is_prequeued || t->model.is_in_process;
	int64_t at = 0;

	o->n = t->requests.n;
	o->item = mem_array(o->n, sizeof(*o->item));
	o->begin_ns = mem_array(o->n, sizeof(*o->begin_ns));
	for (size_t i = 0; i < o->n; i++) {
		const struct request *q = &t->requests.request[i];
		struct batch_item *item = &o->item[i];

		item->output = output_of(t, h, i, e);
		if (item->output == 0)
			return -1;
		if (q->priority && !t->model.opts->is_by_priority)
			return err_set(e, ERR_USAGE, "prompt %zu: Got priority %" PRId64 " but Priority "
				       "scheduling is not enabled.", i, q->priority);
		item->priority = q->priority;
		item->lora = q->lora;
		item->prompt = q->tokens;
		item->id = t->requests.tokens.id + q->tokens_at;
		o->begin_ns[i] = at;
		at += ns_of(prepare_s(t, h, q, t->served + i, item));
		item->ready_ns = at;
		o->lora += q->has_lora;
		o->media += q->media_n;
		o->prompt_tokens += q->tokens;
	}
	o->frontend_s = (double)at * 1e-9;
	for (size_t i = 0; i < o->n && is_queued_first; i++)
		o->item[i].ready_ns = at;
	return 0;
}

/* ---- beams ---- */

/* The token that follows j others of a beam: beams of a prompt differ in their latest one. */
static uint32_t beam_token(size_t prompt, uint32_t j, bool is_latest, uint32_t beam)
{
	return (uint32_t)(words_mix(prompt * 0x10001u + j) >> 40) + (is_latest ? beam : 0);
}

/* One round's items into round[]; ids is where their tokens go. Their number. */
static size_t beam_round(const struct worker_outcome *o, struct batch_item *round, struct ids *ids,
			 uint32_t done, uint32_t width, int64_t at_ns)
{
	size_t n = 0, at = 0;

	ids_reset(ids);
	for (size_t i = 0; i < o->n; i++)
		for (uint32_t k = 0; k < (done ? width : 1) && done < o->item[i].output; k++) {
			ids_add(ids, o->item[i].id, o->item[i].prompt);
			for (uint32_t j = 0; j < done; j++)
				ids_push(ids, beam_token(i, j, j + 1 == done, k));
			at_ns += ns_of(REQUEST_S + BEAM_S);
			round[n++] = (struct batch_item){
				.prompt = o->item[i].prompt + done, .output = 1, .ready_ns = at_ns,
				.priority = o->item[i].priority, .lora = o->item[i].lora,
				.encode_ns = done || k ? 0 : o->item[i].encode_ns,
			};
		}
	for (size_t i = 0; i < n; at += round[i++].prompt)
		round[i].id = ids->id + at; /* only now: adding may have moved them */
	return n;
}

/* Assigns the results of a round to the prompts they belong to. */
static void beam_gather(struct worker_outcome *o, const struct batch_item *round, uint32_t done,
			uint32_t width)
{
	size_t n = 0;

	for (size_t i = 0; i < o->n; i++)
		for (uint32_t k = 0; k < (done ? width : 1) && done < o->item[i].output; k++, n++) {
			o->item[i].last_ns = round[n].last_ns;
			if (done)
				continue;
			o->item[i].first_ns = round[n].first_ns;
			o->item[i].known = round[n].known;
		}
}

/*
 * As vLLM does it: each token is a request for one more token of every beam, whose prompt is all
 * so far. The prefix cache, where there is one, makes that cheap.
 */
static void beam_run(struct worker_talk *t, const struct how *h, struct worker_outcome *o,
		     struct batch_how *how)
{
	struct sim_pace *pace = how->self;
	uint32_t width = (uint32_t)h->n, most = 0;
	struct batch_item *round = mem_array(o->n * width, sizeof(*round));
	struct ids ids = { 0 };
	int64_t at = (int64_t)llround(o->frontend_s * 1e9);

	for (size_t i = 0; i < o->n; i++)
		most = o->item[i].output > most ? o->item[i].output : most;
	how->sequences = 1;
	for (uint32_t done = 0; done < most; done++) {
		size_t n = beam_round(o, round, &ids, done, width, at);

		batch_run(&t->engine, round, n, how, &o->sum);
		beam_gather(o, round, done, width);
		at = o->sum.end_ns;
		pace->ended = 0;
		for (size_t i = 0; i < o->n; i++)
			pace->ended += o->item[i].output <= done + 1;
	}
	for (size_t i = 0; i < o->n; i++)
		o->item[i].got = (uint64_t)o->item[i].output * width;
	ids_release(&ids);
	free(round);
}

/* ---- the answer ---- */

static void numbers_write(struct buf *out, const char *key, const struct worker_outcome *o,
			  size_t n, double (*number)(const struct worker_outcome *o, size_t i))
{
	buf_printf(out, ", \"%s\": [", key);
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "%s%.10g", i ? "," : "", number(o, i));
	buf_add_char(out, ']');
}

static double prompt_number(const struct worker_outcome *o, size_t i)
{
	return o->item[i].prompt;
}

static double output_number(const struct worker_outcome *o, size_t i)
{
	return (double)o->item[i].got;
}

static double e2el_number(const struct worker_outcome *o, size_t i)
{
	return (double)(o->item[i].last_ns - o->begin_ns[i]) * 1e-9;
}

static double ttft_number(const struct worker_outcome *o, size_t i)
{
	return (double)(o->item[i].first_ns - o->begin_ns[i]) * 1e-9;
}

static double cached_number(const struct worker_outcome *o, size_t i)
{
	return o->item[i].known;
}

static double one(const struct worker_outcome *o, size_t i)
{
	(void)o;
	(void)i;
	return 1;
}

static void outcome_write(struct worker_talk *t, const struct worker_outcome *o,
			  struct str question)
{
	bool is_struck = mishap_strikes(&t->mishap, question);
	int64_t began = o->began_ns;
	size_t n = o->n;

	if (is_struck && t->mishap.kind == MISHAP_CLOCK)
		began -= 1000000000;
	if (is_struck && t->mishap.kind == MISHAP_SHORT && n)
		n--;
	buf_printf(&t->members, ", \"began_ns\": %" PRId64 ", \"ended_ns\": %" PRId64, began,
		   o->ended_ns);
	numbers_write(&t->members, "prompt_tokens", o, n, prompt_number);
	numbers_write(&t->members, "output_tokens", o, n, output_number);
	numbers_write(&t->members, "cached_tokens", o, n, cached_number);
	numbers_write(&t->members, "finished", o, o->n, one);
	numbers_write(&t->members, "e2el_s", o, o->n, e2el_number);
	numbers_write(&t->members, "ttft_s", o, o->n, ttft_number);
}

/* ---- running ---- */

static void batch_make(struct worker_talk *t, const struct how *h, struct worker_outcome *o,
		       struct sim_pace *pace)
{
	struct batch_how how = { .sequences = (uint32_t)h->n, .running_max = h->batch_max,
				 .self = pace, .wait = pace_step };
	double output_s = OUTPUT_S + (h->is_detokenized && !h->is_encode ? DETOKENIZE_S : 0);
	int64_t last = 0;

	if (h->is_beam)
		beam_run(t, h, o, &how);
	else
		batch_run(&t->engine, o->item, o->n, &how, &o->sum);
	for (size_t i = 0; i < o->n; i++)
		last += o->item[i].last_ns == o->sum.end_ns;
	o->modelled_ns = o->sum.end_ns + ns_of((double)(last * h->n) * output_s);
}

static int run_timed(struct worker_talk *t, const struct how *h, struct worker_outcome *o,
		     struct err *e)
{
	struct sim_pace pace = { .talk = t, .total = o->n, .is_beam = h->is_beam,
			     .die_at = SIZE_MAX, .dead_ns = INT64_MAX };
	uint64_t limit = (uint64_t)t->model.opts->die_after_requests;
	int rc = 0;

	if (limit && t->served + o->n > limit)
		pace.die_at = (size_t)(limit > t->served ? limit - t->served : 0);
	if (h->is_profiled) {
		t->is_profiling = true;
		t->steps = 0;
	}
	o->began_ns = clock_mono_ns();
	t->profile_base_ns = o->began_ns;
	batch_make(t, h, o, &pace);
	pace_live(&pace, o->began_ns, o->modelled_ns, h->is_progress_told);
	if (h->is_profiled) {
		t->is_profiling = false;
		rc = profile_write(t, e);
	}
	o->ended_ns = clock_mono_ns();
	free(pace.mark);
	return rc;
}

int run_question(struct worker_talk *t, struct str question, struct json_slice frame, struct err *e)
{
	struct worker_outcome o = { 0 };
	struct how h;
	int rc = -1;

	if (how_read(&h, question, frame, e) < 0)
		return -1;
	if (h.is_profiled && !*t->model.profile_to)
		return err_set(e, ERR_RUN, "Profiling is not enabled. Please set --profiler-config.");
	if (h.is_encode != t->model.is_pooling) {
		t->category = "unsupported";
		return err_set(e, ERR_RUN, h.is_encode ? "a model that generates does not embed "
			       "(--runner pooling)" : "a pooling model generates nothing");
	}
	if (requests_count(&t->requests, t->tokenizer, h.is_chat, e) < 0)
		return -1;
	if (items_make(t, &h, &o, e) < 0 || run_timed(t, &h, &o, e) < 0)
		goto done;
	for (size_t i = 0; i < o.n; i++) {
		if (h.is_encode)
			o.item[i].got = 0;
		o.output_tokens += o.item[i].got;
		o.known_tokens += o.item[i].known;
	}
	t->served += o.n;
	o.question = h.is_encode ? "encode" : h.is_beam ? "beam" : h.is_chat ? "chat" : "generate";
	outcome_write(t, &o, question);
	if (!t->is_dead)
		account_run(t, &o);
	rc = 0;
done:
	free(o.item);
	free(o.begin_ns);
	return rc;
}
