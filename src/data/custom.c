/* SPDX-License-Identifier: Apache-2.0 */
/*
 * custom.c - the user's own prompts, one JSON object per line; datasets spec 5.5.
 *
 * A prompt is one user message: what the chat template makes of it is sent and
 * counted, special tokens included, so a BOS that both the template and the tokenizer
 * add is counted twice, as upstream does.
 */
#include <inttypes.h>

#include "base/file.h"
#include "base/mem.h"
#include "data/common.h"
#include "json/read.h"
#include "token/chat.h"
#include "token/tokenizer.h"

struct row {
	struct json_slice object;
	size_t line;
};

struct rows {
	struct row *v;
	size_t n, cap;
};

static int load(const char *path, struct str text, struct rows *out, struct err *e)
{
	bool has_prompt = false;

	for (size_t line = 1; text.n; line++) {
		struct str one = str_trim(str_cut(&text, '\n'));
		struct json_scan scan = { one, 0 };
		struct json_slice object, prompt;

		if (one.n == 0)
			continue;
		if (json_next(&scan, &object, e) < 0)
			return err_wrap(e, "%s:%zu: not one JSON object", path, line);
		if (!json_at_end(&scan))
			return err_set(e, ERR_PARSE, "%s:%zu: not one JSON object", path, line);
		if (object.kind != JSON_OBJECT)
			return err_set(e, ERR_PARSE, "%s:%zu: a line must be a JSON object with "
				       "\"prompt\"", path, line);
		has_prompt |= json_member(object, "prompt", &prompt);
		if (out->n == out->cap) {
			out->cap = out->cap ? out->cap * 2 : 1024;
			out->v = mem_grow(out->v, out->cap, sizeof(*out->v));
		}
		out->v[out->n++] = (struct row){ object, line };
	}
	if (out->n == 0)
		return err_set(e, ERR_RUN, "%s: the file has no prompts", path);
	if (!has_prompt)
		return err_set(e, ERR_RUN, "%s: no line has a \"prompt\" field", path);
	return 0;
}

/* The tokens asked for: the flag, or the row's own output_tokens. */
static int output_len(const struct dataset_opts *o, const struct row *row, int64_t *out,
		      struct err *e)
{
	struct json_slice v;

	*out = o->custom_output_len;
	if (o->custom_output_len != -1)
		return 0;
	if (!json_member(row->object, "output_tokens", &v))
		return err_set(e, ERR_RUN, "%s:%zu: no \"output_tokens\" field, which "
			       "--custom-output-len -1 needs", o->path, row->line);
	if (!json_to_i64(v, out) || *out < 0)
		return err_set(e, ERR_RUN, "%s:%zu: \"output_tokens\" must be a whole number of "
			       "tokens", o->path, row->line);
	return 0;
}

static int add(const struct dataset_opts *o, const struct dataset_env *env, const struct row *row, size_t index,
	       struct workload *w, struct buf *text, struct err *e)
{
	struct json_slice prompt;
	struct buf templated = { 0 };
	struct sample *s;
	int64_t asked;

	if (!json_member(row->object, "prompt", &prompt) || prompt.kind != JSON_STRING)
		return err_set(e, ERR_RUN, "%s:%zu: \"prompt\" must be text", o->path, row->line);
	if (output_len(o, row, &asked, e) < 0)
		return -1;
	buf_reset(text);
	json_unescape(text, prompt.raw);
	if (env->chat)
		chat_apply(env->chat, buf_str(text), &templated);
	s = workload_add(w);
	s->prompt = arena_str(&w->arena, buf_str(env->chat ? &templated : text));
	s->prompt_len = 1;
	/* Without a tokenizer upstream asks for one token, whatever the flag says. */
	s->output_len = env->tokenizer ? asked : 1;
	s->request_id = dataset_request_id(w, env, index);
	buf_release(&templated);
	return 0;
}

static int count(const struct dataset_opts *o, const struct dataset_env *env, struct workload *w, struct err *e)
{
	struct str *text = mem_array(w->n, sizeof(*text));
	size_t *tokens = mem_array(w->n, sizeof(*tokens));
	int rc;

	for (size_t i = 0; i < w->n; i++)
		text[i] = w->v[i].prompt;
	rc = tokenizer_count_batch(env->tokenizer, text, w->n, true, env->threads, tokens, e);
	for (size_t i = 0; rc == 0 && i < w->n; i++)
		w->v[i].prompt_len = (uint32_t)tokens[i];
	free(text);
	free(tokens);
	return rc < 0 ? err_wrap(e, "%s", o->path) : 0;
}

static int build(const struct dataset_opts *o, const struct dataset_env *env, struct compat_rng *rng, struct workload *w,
		 struct err *e)
{
	struct rows rows = { 0 };
	struct str text = { 0 };
	struct buf scratch = { 0 };
	size_t wanted;
	int rc = -1;

	if (!str_ends(str_of(o->path), STR(".jsonl")))
		return err_set(e, ERR_RUN, "--dataset-path %s: custom datasets are .jsonl files, one "
			       "JSON object with \"prompt\" per line", o->path);
	if (file_map(o->path, &text, e) < 0)
		return -1;
	if (load(o->path, text, &rows, e) < 0)
		goto done;
	pyrandom_seed(&rng->py, (int64_t)env->seed);
	if (!o->disable_shuffle)
		pyrandom_shuffle(&rng->py, rows.v, rows.n, sizeof(*rows.v));
	wanted = env->num_prompts > 0 ? (size_t)env->num_prompts : rows.n;
	for (size_t i = 0; i < rows.n && i < wanted; i++) {
		if (dataset_go_on(env, e) < 0 || add(o, env, &rows.v[i], i, w, &scratch, e) < 0)
			goto done;
		dataset_progress(env, i + 1, wanted);
	}
	if (env->tokenizer && count(o, env, w, e) < 0)
		goto done;
	rc = dataset_oversample(w, o, env, rng, e);
done:
	buf_release(&scratch);
	free(rows.v);
	file_unmap(text);
	return rc;
}

static const char *const options[] = {
	"custom-output-len", "disable-shuffle", "no-oversample", "skip-chat-template",
	"chat-template-kwargs", "chat-prefix", "chat-suffix", NULL,
};

const struct dataset dataset_custom = {
	.options = options,
	.name = "custom", .summary = "your own prompts from a .jsonl file",
	.needs_path = true, .is_templated = true, .takes_all = true, .build = build,
};
