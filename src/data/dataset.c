/* SPDX-License-Identifier: Apache-2.0 */
/* dataset.c - the table of datasets, and what several of them share. */
#include "data/dataset.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "data/common.h"
#include "token/chat.h"

/* One row a dataset: src/data/<file>.c defines dataset_<name>. */
#define DATASETS(X) \
	X(random) \
	X(random_mm) \
	X(random_rerank) \
	X(prefix_repetition) \
	X(burstgpt) \
	X(sharegpt) \
	X(custom) \
	X(custom_image) \
	X(custom_mm) \
	X(custom_audio) \
	X(spec_bench) \
	X(speed_bench) \
	X(sonnet) \
	X(timed_trace) \
	X(prioritization) \
	X(trace) \
	X(hf) \
	X(structured) \
	X(conversations) \
	X(sessions) \
	X(mix) \
	X(workload)

#define X(name) extern const struct dataset dataset_##name;
DATASETS(X)
#undef X

#define X(name) &dataset_##name,
static const struct dataset *const table[] = { DATASETS(X) };
#undef X

const struct dataset *const *dataset_all(size_t *n)
{
	*n = sizeof(table) / sizeof(*table);
	return table;
}

static bool same_name(const char *a, const char *b)
{
	for (; *a && *b; a++, b++)
		if ((*a == '_' ? '-' : *a) != (*b == '_' ? '-' : *b))
			return false;
	return *a == *b;
}

const struct dataset *dataset_find(const char *name)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (same_name(table[i]->name, name))
			return table[i];
	return NULL;
}

struct str dataset_request_id(struct workload *w, const struct dataset_env *env, size_t index)
{
	return str_of(arena_printf(&w->arena, "%s%zu", env->request_id_prefix, index));
}

int dataset_oversample(struct workload *w, const struct dataset_opts *o,
		       const struct dataset_env *env, struct compat_rng *rng, struct err *e)
{
	size_t original = w->n, wanted = env->num_prompts > 0 ? (size_t)env->num_prompts : 0;

	if (o->no_oversample || original >= wanted)
		return 0;
	if (original == 0)
		return err_set(e, ERR_RUN, "%s has no request that passes the length filter; "
			       "nothing to send", o->path);
	pyrandom_seed(&rng->py, (int64_t)env->seed);
	while (w->n < wanted) {
		struct sample copy = w->v[pyrandom_choice(&rng->py, original)];

		copy.request_id = dataset_request_id(w, env, w->n);
		*workload_add(w) = copy;
	}
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
	w->notes = arena_str(&w->arena, buf_str(&text));
	buf_release(&text);
}

void dataset_note_long(struct workload *w, const struct dataset_opts *o, size_t dropped)
{
	if (dropped)
		dataset_note(w, "%zu requests were left out: prompt and answer together would have "
			     "more than --max-model-len %" PRId64 " tokens", dropped,
			     o->max_model_len.v);
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
	return err_set(e, ERR_RUN, "--max-model-len %" PRId64 ": none of the %zu requests fits; "
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

bool dataset_carries_media(const struct dataset_env *env, const char **backends)
{
	static const char *const offline[] = { "hf", "llama", "mii", NULL };

	*backends = env->is_offline ? "['vllm', 'vllm-chat']" : "['openai-audio', 'openai-chat']";
	if (env->is_offline)
		return !is_one_of(env->backend, offline);
	return dataset_sends_messages(env) || strcmp(env->backend, "openai-audio") == 0;
}

void dataset_note_media(struct workload *w, const struct dataset_env *env)
{
	static const char *const text_alone[] = { "vllm", "openai", "openai-responses", "tgi",
						  "llamacpp", "sglang", "ollama", NULL };
	bool has_media = false;

	if (!env->backend || env->is_offline || !is_one_of(env->backend, text_alone))
		return;
	for (size_t i = 0; i < w->n && !has_media; i++)
		has_media = w->v[i].media.n > 2 || /* more than "[]" */
			    (w->v[i].kind == PROMPT_JSON && str_starts(w->v[i].prompt, STR("[{")));
	if (has_media)
		dataset_note(w, "images, videos and sound are not sent by --backend %s; openai-chat "
			     "sends them", env->backend);
}

uint64_t dataset_fixed_seed(struct workload *w, const struct dataset_opts *o,
			    const struct dataset_env *env)
{
	if (o->fix_seed)
		return env->seed;
	if (env->seed)
		dataset_note(w, "--seed does not change this dataset, as upstream; --fix dataset-seed "
			     "lets it");
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
