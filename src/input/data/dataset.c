/* SPDX-License-Identifier: Apache-2.0 */
/* dataset.c - what datasets share, and the way from rows to requests; see build.h. */
#include "input/data/build.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/parallel.h"
#include "core/json/write.h"
#include "input/chat/chat.h"
#include "input/data/dataset.h"
#include "input/token/tokenizer.h"

#define REPEATS_SHARE 0.1 /* of the prompts: more are reported */

/* ---- what datasets share ---- */

struct str dataset_request_id(struct workload *w, const struct dataset_env *env, size_t index)
{
	return str_of(arena_printf(&w->arena, "%s%zu", env->request_id_prefix, index));
}

/* Texts that are sent more than once; of media that differ nothing is known here. */
static void note_repeats(struct workload *w, const struct dataset_opts *o)
{
	struct map seen = { 0 };
	size_t repeats = 0;

	for (size_t i = 0; i < w->n; i++) {
		const struct sample *s = &w->v[i];
		struct str text = s->prompt.n ? s->prompt : s->messages;

		if (!text.n || s->media.n || s->file.n)
			continue;
		repeats += map_get(&seen, text, NULL);
		map_put(&seen, text, i);
	}
	map_release(&seen);
	if ((double)repeats > REPEATS_SHARE * (double)w->n)
		dataset_note(w, "%s: %zu of the %zu prompts repeat%s an earlier one, which a prefix cache "
			     "answers faster: --prompt-salt request makes all different", o->path, repeats,
			     w->n, repeats == 1 ? "s" : "");
}

int dataset_oversample(struct workload *w, const struct dataset_opts *o,
		       const struct dataset_env *env, struct compat_rng *rng, struct err *e)
{
	size_t original = w->n, wanted = env->num_prompts > 0 ? (size_t)env->num_prompts : 0;

	if (o->path)
		note_repeats(w, o);
	if (o->no_oversample || original >= wanted)
		return 0;
	if (original == 0)
		return err_set(e, ERR_DATASET_EMPTY, "%s has no request that passes the length filter; "
			       "nothing to send", o->path);
	pyrandom_seed(&rng->py, (int64_t)env->seed);
	while (w->n < wanted) {
		struct sample copy = w->v[pyrandom_choice(&rng->py, original)];

		copy.request_id = dataset_request_id(w, env, w->n);
		*workload_add(w) = copy;
	}
	dataset_note(w, "%s has %zu request%s to send, so %zu of the %zu are repeats, which a prefix "
		     "cache answers faster: --no-oversample sends each once%s", o->path ? o->path : "the dataset",
		     original, original == 1 ? "" : "s", wanted - original, wanted,
		     w->v[0].file.n ? "" : ", --prompt-salt request makes all different");
	return 0;
}

void dataset_reading_show(void *self, uint64_t done, uint64_t total)
{
	const struct dataset_reading *r = self;

	if (r->env->download)
		r->env->download(r->env->self, r->path, (int64_t)done, (int64_t)total);
}

int dataset_go_on(const struct dataset_env *env, struct err *e)
{
	if (!env->cancel || !atomic_load(env->cancel))
		return 0;
	return err_set(e, ERR_CANCELLED, "interrupted before the benchmark began");
}

void dataset_progress(const struct dataset_env *env, size_t done, size_t total)
{
	if (env->progress && (done == total || done % 64 == 0))
		env->progress(env->self, done, total);
}

int dataset_keep_own(struct workload *w, struct sample *s, struct err *e)
{
	return workload_keep(w, &s->overrides, e) < 0 || workload_keep(w, &s->headers, e) < 0 ||
	       workload_keep(w, &s->expected, e) < 0 || workload_keep(w, &s->constraint, e) < 0 ?
	       -1 : 0;
}

void dataset_note(struct workload *w, const char *fmt, ...)
{
	struct buf text = { 0 };
	char line[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	buf_add_str(&text, w->notes);
	buf_add_text(&text, w->notes.n ? "\n" : "");
	buf_add_text(&text, line);
	w->notes = arena_take(&w->arena, &text);
}

void dataset_note_long(struct workload *w, const struct dataset_opts *o, size_t dropped)
{
	if (dropped)
		dataset_note(w, "%zu request%s skipped: prompt and answer together would have "
			     "more than --max-model-len %" PRId64 " tokens", dropped,
			     dropped == 1 ? " was" : "s were", o->max_model_len.v);
}

int dataset_drop_long(struct workload *w, const struct dataset_opts *o, struct err *e)
{
	size_t kept = 0, all = w->n;

	if (!o->max_model_len.is_set || w->sessions) /* sessions are cut when they are built */
		return 0;
	for (size_t i = 0; i < all; i++) {
		int64_t output = w->v[i].output_len < 0 ? 0 : w->v[i].output_len;

		if (w->v[i].prompt_len + output <= o->max_model_len.v)
			w->v[kept++] = w->v[i];
	}
	w->n = kept;
	dataset_note_long(w, o, all - kept);
	if (kept || !all)
		return 0;
	return err_set(e, ERR_RUN, "--max-model-len %" PRId64 ": none of the requests fits (%zu); "
		       "nothing to send", o->max_model_len.v, all);
}

static bool is_one_of(const char *backend, const char *const *names)
{
	while (*names && strcmp(backend, *names) != 0)
		names++;
	return *names != NULL;
}

bool dataset_sends_messages(const struct dataset_env *env)
{
	static const char *const names[] = { "openai-chat", "anthropic", "ollama-chat", NULL };

	return env->backend && is_one_of(env->backend, names);
}

int dataset_check_chat(const struct dataset_env *env, const char *what, struct err *e)
{
	if (!env->backend || dataset_sends_messages(env))
		return 0;
	return err_set(e, ERR_USAGE, "--backend %s: %s are sent as chat messages; use openai-chat",
		       env->backend, what);
}

size_t *dataset_choose(const struct dataset_opts *o, const struct dataset_env *env,
		       struct compat_rng *rng, size_t all, size_t *n)
{
	size_t *which;

	*n = env->num_prompts > 0 ? (size_t)env->num_prompts : all;
	if (*n > all && o->no_oversample)
		*n = all;
	which = mem_array(*n, sizeof(*which));
	if (*n > all)
		pyrandom_seed(&rng->py, (int64_t)env->seed);
	for (size_t i = 0; i < *n; i++)
		which[i] = i < all ? i : pyrandom_choice(&rng->py, all);
	return which;
}

bool dataset_carries_media(const struct dataset_env *env, const char **backends)
{
	static const char *const offline[] = { "hf", "llama", "mii", NULL };

	*backends = env->is_offline ? "['vllm', 'vllm-chat']" : "['openai-audio', 'openai-chat']";
	if (env->is_offline)
		return !is_one_of(env->backend, offline);
	return dataset_sends_messages(env) || strcmp(env->backend, "openai-audio") == 0;
}

static bool is_media_unsent(const struct sample *s, const char *backend)
{
	static const char *const text_alone[] = { "vllm", "openai", "openai-responses", "tgi",
						  "llamacpp", "sglang", "ollama", "openai-embeddings",
						  "vllm-pooling", NULL };

	if (s->file.n)
		return strcmp(backend, "openai-audio") != 0;
	return is_one_of(backend, text_alone) &&
	       (s->media.n > 2 || /* more than "[]" */
		(s->kind == PROMPT_JSON && str_starts(s->prompt, STR("[{"))));
}

void dataset_note_media(struct workload *w, const struct dataset_env *env)
{
	const struct sample *unsent = NULL;

	for (size_t i = 0; env->backend && !env->is_offline && i < w->n; i++) {
		if (!is_media_unsent(&w->v[i], env->backend))
			continue;
		w->v[i].audio_s = 0;
		unsent = &w->v[i];
	}
	if (unsent && unsent->file.n)
		dataset_note(w, "recordings are not sent by --backend %s; openai-audio uploads them, "
			     "openai-chat sends them with --enable-multimodal-chat", env->backend);
	else if (unsent)
		dataset_note(w, "images, videos and sound are not sent by --backend %s; openai-chat "
			     "sends them", env->backend);
}

uint64_t dataset_fixed_seed(struct workload *w, const struct dataset_opts *o,
			    const struct dataset_env *env)
{
	if (o->fix_seed)
		return env->seed;
	if (env->seed)
		dataset_note(w, "--seed does not change this dataset, as in vLLM; with --fix "
			     "dataset-seed it does");
	return 0;
}

double dataset_speedup(const struct dataset_opts *o)
{
	return o->speedup > 0 ? o->speedup : 1;
}

bool dataset_has_chat(const struct dataset_env *env)
{
	return env->chat && env->chat->source != CHAT_NONE;
}

/* ---- from rows to requests ---- */

/*
 * From rows to requests, lot by lot.
 *
 * A lot is as many rows as may still be wanted, within AT_ONCE and AT_ONCE_BYTES: its
 * texts are counted by all threads at once, then rows are accepted in order.
 */

#define AT_ONCE 1024
#define AT_ONCE_BYTES (16u << 20)

struct draft_lot {
	const struct take *take;
	struct arena arena;
	size_t n, too_long;    /* too_long: beyond --max-model-len, over all lots */
	size_t past_input;     /* beyond take->input_max, over all lots */
	struct draft draft[AT_ONCE];
	size_t index[AT_ONCE];  /* in the set's order */
	size_t prompt_tokens[AT_ONCE], answer_tokens[AT_ONCE];
	struct str text[AT_ONCE];  /* what is counted in one go */
	size_t place[AT_ONCE];     /* whose text it is */
	size_t tokens[AT_ONCE];
	struct buf parts[AT_ONCE]; /* media made for the accepted */
	struct err failure[AT_ONCE];
};

static int read_lot(struct draft_lot *lot, size_t *next, size_t wanted,
		    const struct dataset_env *env, struct err *e)
{
	const struct take *t = lot->take;

	lot->n = 0;
	arena_release(&lot->arena);
	while (*next < t->rows && lot->n < wanted && lot->n < AT_ONCE &&
	       lot->arena.bytes < AT_ONCE_BYTES) {
		struct draft *d = &lot->draft[lot->n];
		int rc;

		if (dataset_go_on(env, e) < 0)
			return -1;
		*d = (struct draft){ .sample.timestamp_s = NAN };
		rc = t->draft(t->self, *next, &lot->arena, d, e);
		if (rc < 0)
			return -1;
		lot->index[lot->n] = (*next)++;
		lot->n += (size_t)rc;
	}
	return 0;
}

enum what { PROMPTS, ANSWERS, PLAIN_ANSWERS };

/* Counts one kind of text of the whole lot. */
static int count(struct draft_lot *lot, enum what what, const struct dataset_env *env,
		 struct err *e)
{
	size_t *out = what == PROMPTS ? lot->prompt_tokens : lot->answer_tokens, n = 0;

	for (size_t i = 0; i < lot->n; i++) {
		const struct draft *d = &lot->draft[i];

		if (what != PROMPTS &&
		    (!d->answer.p || d->is_answer_plain != (what == PLAIN_ANSWERS)))
			continue;
		lot->text[n] = what != PROMPTS ? d->answer : d->counted.p ? d->counted :
			       d->sample.prompt;
		lot->place[n++] = i;
	}
	if (tokenizer_count_batch(env->tokenizer, lot->text, n, what != PLAIN_ANSWERS,
				  env->threads, lot->tokens, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		out[lot->place[i]] = lot->tokens[i];
	return 0;
}

static int count_all(struct draft_lot *lot, const struct dataset_env *env, struct err *e)
{
	if (env->tokenizer)
		return count(lot, PROMPTS, env, e) < 0 || count(lot, ANSWERS, env, e) < 0 ||
		       count(lot, PLAIN_ANSWERS, env, e) < 0 ? -1 : 0;
	for (size_t i = 0; i < lot->n; i++)
		lot->prompt_tokens[i] = lot->answer_tokens[i] = 1;
	return 0;
}

/* Drops rows of lengths that are not valid; what stays moves up. */
static void filter(struct draft_lot *lot, const struct opt_int *max_model_len)
{
	const struct take *t = lot->take;
	size_t kept = 0;

	for (size_t i = 0; i < lot->n; i++) {
		struct sample *s = &lot->draft[i].sample;
		size_t prompt = lot->prompt_tokens[i];

		s->prompt_len = (uint32_t)prompt;
		if (lot->draft[i].answer.p)
			s->output_len = (int64_t)lot->answer_tokens[i];
		if (t->prompt_max &&
		    (prompt < VALID_TOKENS_MIN || prompt > t->prompt_max ||
		     (s->output_len < VALID_TOKENS_MIN && !t->is_output_unchecked) ||
		     (int64_t)prompt + s->output_len > (int64_t)t->total_max))
			continue;
		if (t->input_max && prompt > t->input_max) {
			lot->past_input++;
			continue;
		}
		if (max_model_len->is_set && (int64_t)prompt + s->output_len > max_model_len->v) {
			lot->too_long++;
			continue;
		}
		lot->draft[kept] = lot->draft[i];
		lot->index[kept++] = lot->index[i];
	}
	lot->n = kept;
}

static bool make_one(void *self, size_t i, unsigned worker)
{
	struct draft_lot *lot = self;

	(void)worker;
	buf_reset(&lot->parts[i]);
	return !lot->draft[i].media ||
	       lot->take->make_media(lot->take->self, &lot->draft[i], &lot->parts[i],
				     &lot->failure[i]) == 0;
}

static int make_media(struct draft_lot *lot, const struct dataset_env *env, struct err *e)
{
	size_t failed;

	if (!lot->take->make_media)
		return 0;
	failed = parallel_for(env->threads, lot->n, make_one, lot);
	if (failed == lot->n)
		return 0;
	*e = lot->failure[failed];
	return -1;
}

/* [{"role": "user", "content": [text, parts...]}] as the prompt. */
static int make_message(struct sample *s, struct str parts, struct workload *w, struct err *e)
{
	struct buf out = { 0 };
	int rc;

	buf_add_text(&out, "[{\"role\": \"user\", \"content\": [");
	if (s->kind == PROMPT_TEXT) {
		buf_add_text(&out, "{\"text\": "); /* upstream's order of keys */
		json_quote(&out, s->prompt, false);
		buf_add_text(&out, ", \"type\": \"text\"}");
		if (parts.n > 2)
			buf_add_text(&out, ", ");
	}
	if (parts.n > 2) /* more than "[]" */
		buf_add(&out, parts.p + 1, parts.n - 2);
	buf_add_text(&out, "]}]");
	s->prompt = buf_str(&out);
	s->kind = PROMPT_JSON;
	s->media = STR("");
	rc = workload_keep(w, &s->prompt, e);
	buf_release(&out);
	return rc;
}

static int accept_one(const struct draft_lot *lot, size_t i, const struct dataset_opts *o,
		      const struct dataset_env *env, struct workload *w, struct err *e)
{
	const struct draft *d = &lot->draft[i];
	bool is_chat = lot->take->has_chat_form && o->enable_multimodal_chat;
	struct str made = buf_str(&lot->parts[i]);
	struct str parts = d->is_media_file ? STR("") : made;
	struct sample *s = workload_add(w);

	*s = d->sample;
	s->request_id = dataset_request_id(w, env, lot->take->is_row_index ? lot->index[i] :
									     w->n - 1);
	if (d->is_media_prompt) {
		s->kind = PROMPT_JSON;
		s->prompt = is_chat ? s->prompt : parts;
	} else if (lot->take->make_media) {
		s->media = parts;
	}
	if (is_chat ? make_message(s, parts, w, e) < 0 :
		      workload_keep(w, &s->prompt, e) < 0 || workload_keep(w, &s->media, e) < 0)
		return -1;
	if (d->is_media_file)
		s->file = made;
	if (s->file_name)
		s->file_name = arena_text(&w->arena, str_of(s->file_name));
	w->has_priorities |= d->has_priority;
	return workload_keep(w, &s->messages, e) < 0 || workload_keep(w, &s->file, e) < 0 ?
	       -1 : dataset_keep_own(w, s, e);
}

int dataset_take(const struct take *t, const struct dataset_opts *o,
		 const struct dataset_env *env, struct compat_rng *rng, struct workload *w,
		 struct err *e)
{
	size_t all = t->takes_all ? SIZE_MAX : 0;
	size_t wanted = env->num_prompts > 0 ? (size_t)env->num_prompts : all;
	struct draft_lot *lot = mem_alloc(sizeof(*lot));
	size_t next = 0;
	int rc = 0;

	lot->take = t;
	while (rc == 0 && next < t->rows && w->n < wanted) {
		rc = read_lot(lot, &next, wanted - w->n, env, e);
		if (rc == 0)
			rc = count_all(lot, env, e);
		if (rc < 0)
			break;
		filter(lot, &o->max_model_len);
		rc = make_media(lot, env, e);
		for (size_t i = 0; rc == 0 && i < lot->n; i++)
			rc = accept_one(lot, i, o, env, w, e);
		if (env->progress)
			env->progress(env->self, w->n, wanted == SIZE_MAX ? t->rows : wanted);
	}
	if (rc == 0 && w->n == 0 && lot->too_long)
		rc = err_set(e, ERR_USAGE, "--max-model-len %" PRId64 ": none of the requests fits (%zu); "
			     "nothing to send", o->max_model_len.v, lot->too_long);
	else if (rc == 0 && w->n == 0 && lot->past_input)
		rc = err_set(e, ERR_USAGE, "--%s %zu: every prompt is longer (%zu); nothing to send",
			     t->input_option, t->input_max, lot->past_input);
	dataset_note_long(w, o, lot->too_long);
	if (lot->past_input)
		dataset_note(w, "%zu prompt%s skipped for having more than --%s %zu tokens",
			     lot->past_input, lot->past_input == 1 ? " was" : "s were", t->input_option, t->input_max);
	for (size_t i = 0; i < AT_ONCE; i++)
		buf_release(&lot->parts[i]);
	arena_release(&lot->arena);
	free(lot);
	return rc < 0 ? -1 : dataset_oversample(w, o, env, rng, e);
}
