/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c - the requests of a workload file (`profllm dataset compile`), in its order.
 */
#include <inttypes.h>

#include "data/common.h"
#include "data/workload_file.h"

static bool has_true(struct json_slice object, const char *key)
{
	struct json_slice v;

	return json_member(object, key, &v) && v.kind == JSON_TRUE;
}

/* What holds for all requests of the file; nothing of it is needed to read them. */
static void take_description(struct str description, const struct dataset_env *env,
			     const char *path, struct workload *w)
{
	struct json_scan scan = { description, 0 };
	struct json_slice object, v;
	struct buf name = { 0 };

	if (json_next(&scan, &object, NULL) < 0 || object.kind != JSON_OBJECT)
		return;
	w->is_eos_ignored = has_true(object, "ignore_eos");
	w->is_self_timed = has_true(object, "self_timed");
	if (env->tokenizer_name && json_member(object, "tokenizer", &v) && v.kind == JSON_STRING) {
		json_unescape(&name, v.raw);
		if (!str_is(buf_str(&name), env->tokenizer_name))
			dataset_note(w, "%s was made with the tokenizer %.200s, and prompt lengths are "
				     "counted with it, not with %.200s", path, name.data,
				     env->tokenizer_name);
		buf_release(&name);
	}
}

/* A chat message is text or parts; a list of ids is neither. */
static bool is_ids(const struct sample *s)
{
	struct str list = s->prompt;

	while (list.n && *list.p == '[')
		list = str_trim((struct str){ list.p + 1, list.n - 1 });
	return s->kind == PROMPT_JSON && list.n && *list.p >= '0' && *list.p <= '9';
}

static int check_chat(const struct workload *w, const char *path, const char *backend,
		      struct err *e)
{
	for (size_t i = 0; i < w->n; i++)
		if (!w->v[i].messages.n && is_ids(&w->v[i]))
			return err_set(e, ERR_RUN, "%s: request %zu is a list of token ids, which --backend "
				       "%s cannot send; openai can", path, i, backend);
	return 0;
}

static int build(const struct dataset_opts *o, const struct dataset_env *env,
		 struct compat_rng *rng, struct workload *w, struct err *e)
{
	size_t most = env->num_prompts > 0 ? (size_t)env->num_prompts : SIZE_MAX;
	char hash[DIGEST_HEX];
	struct str description;
	size_t held;

	(void)rng; /* nothing is drawn: the file was made once */
	if (workload_file_read(o->path, most, env->request_id_prefix, w, &description, hash, e) < 0)
		return -1;
	held = w->sessions ? w->sessions->n_sessions : w->n;
	if (most != SIZE_MAX && held < most)
		return err_set(e, ERR_RUN, "%s holds %zu %s, and --num-prompts asks for %" PRId64,
			       o->path, held, w->sessions ? "conversations" : "requests",
			       env->num_prompts);
	w->hash = arena_text(&w->arena, str_of(hash));
	take_description(description, env, o->path, w);
	for (size_t i = 0; i < w->n; i++)
		w->v[i].timestamp_s /= dataset_speedup(o);
	dataset_note_media(w, env);
	return env->is_chat_backend ? check_chat(w, o->path, env->backend, e) : 0;
}

static const char *const options[] = { "self-timed", "speedup", NULL };

const struct dataset dataset_workload = {
	.name = "workload", .summary = "requests of a file that dataset compile made",
	.needs_path = true, .takes_all = true, .is_whole = true, .may_have_timestamps = true,
	.options = options, .build = build,
};
