/* SPDX-License-Identifier: Apache-2.0 */
/* sharegpt.c - first turn and reply of recorded conversations; datasets spec 5.2. */
#include "core/base/limits.h"
#include "input/data/build.h"
#include "input/data/media.h"
#include "input/data/request_keys.h"
#include "input/data/source.h"
#include "input/sets/multi_turn.h"
#include "input/token/tokenizer.h"

/* ---- sharegpt ---- */

#define PROMPT_TOKENS_MAX 1024 /* datasets spec 1.4 */
#define TOTAL_TOKENS_MAX 2048

/* The dataset used when no file is named. */
#define HUB_NAME "anon8231489123/ShareGPT_Vicuna_unfiltered"
#define HUB_FILE "ShareGPT_V3_unfiltered_cleaned_split.json"

struct sharegpt {
	struct dataset_rows rows;
	const struct dataset_opts *o;
	struct buf text;
};

/* A conversation's image or video: a JSON text, still escaped, in the lot's arena. */
struct picture {
	struct str raw;
	bool is_video;
};

/* Only entries with at least two turns are used. */
static int has_turns(void *self, struct json_slice entry, struct err *e)
{
	struct json_slice turns, second;

	(void)self;
	(void)e;
	return json_member(entry, "conversations", &turns) && rows_item(turns, 1, &second);
}

/* "image" if it is not empty, else "video". */
static int draft_media(const struct sharegpt *s, size_t i, struct json_slice entry, struct arena *a,
		       struct draft *d, struct err *e)
{
	static const char *const key[] = { "image", "video" };

	for (int k = 0; k < 2; k++) {
		struct json_slice v;
		struct picture *p;

		if (!json_member(entry, key[k], &v) || !json_truthy(v))
			continue;
		if (v.kind != JSON_STRING)
			return rows_refuse(&s->rows, i, e, "\"%s\" must be a path or URL", key[k]);
		p = arena_alloc(a, sizeof(*p));
		*p = (struct picture){ arena_str(a, v.raw), k == 1 };
		d->media = p;
		break;
	}
	return 0;
}

static int draft(void *self, size_t i, struct arena *a, struct draft *d, struct err *e)
{
	struct sharegpt *s = self;
	struct json_slice entry, turns, turn;
	struct str text[2];

	if (rows_get(&s->rows, i, &entry, e) < 0)
		return -1;
	json_member(entry, "conversations", &turns);
	for (size_t k = 0; k < 2; k++) {
		buf_reset(&s->text);
		if (!rows_item(turns, k, &turn) || !rows_text(turn, "value", &s->text))
			return rows_refuse(&s->rows, i, e, "turn %zu of the conversation has no text "
					   "\"value\"", k);
		text[k] = arena_str(a, buf_str(&s->text));
	}
	d->sample.prompt = text[0];
	if (s->o->sharegpt_output_len.is_set)
		d->sample.output_len = s->o->sharegpt_output_len.v;
	else
		d->answer = text[1];
	return draft_media(s, i, entry, a, d, e) < 0 ? -1 : 1;
}

static int make_media(void *self, const struct draft *d, struct buf *parts, struct err *e)
{
	const struct picture *p = d->media;
	struct json_writer w = json_writer(parts);
	struct buf ref = { 0 }, url = { 0 };

	(void)self;
	(void)e;
	json_unescape(&ref, p->raw);
	if (p->is_video)
		media_video_url(buf_str(&ref), &url);
	else
		media_image_url(buf_str(&ref), &url);
	json_begin_array(&w);
	media_put_url(&w, p->is_video ? "video_url" : "image_url", buf_str(&url));
	json_end_array(&w);
	buf_release(&ref);
	buf_release(&url);
	return 0;
}

/* The file to read: the one that was named, or the usual one from the hub. */
static int find_file(const struct dataset_opts *o, const struct dataset_env *env, struct buf *path,
		     struct err *e)
{
	struct source_opts opts = {
		.path = HUB_NAME, .cancel = env->cancel, .progress = env->download,
		.note = env->note, .self = env->self,
	};

	if (o->path) {
		buf_add_text(path, o->path);
		return 0;
	}
	if (source_file(&opts, HUB_FILE, path, e) == 0)
		return 0;
	return err_wrap(e, "sharegpt without --dataset-path takes %s of %s", HUB_FILE, HUB_NAME);
}

static int sample(struct sharegpt *s, const struct dataset_env *env, struct compat_rng *rng,
		  struct workload *w, struct err *e)
{
	struct take take = {
		.self = s, .rows = s->rows.n, .draft = draft, .make_media = make_media,
		.has_chat_form = true, .takes_all = true,
		.prompt_max = PROMPT_TOKENS_MAX, .total_max = TOTAL_TOKENS_MAX,
		.is_output_unchecked = s->o->sharegpt_output_len.is_set,
	};

	if (s->rows.n == 0 && s->rows.all)
		return err_set(e, ERR_PARSE, "%s: no entry has two turns; a ShareGPT file is one JSON "
			       "array of objects with \"conversations\"", s->o->path);
	if (dataset_take(&take, s->o, env, rng, w, e) < 0)
		return -1;
	dataset_note_media(w, env);
	return 0;
}

static int sharegpt_check(const struct dataset_opts *o, const struct dataset_env *env,
			  struct err *e)
{
	return o->multi_turn ? multi_turn_check("sharegpt", o, env, e) : 0;
}

static int sharegpt_build(const struct dataset_opts *o, const struct dataset_env *env,
			  struct compat_rng *rng, struct workload *w, struct err *e)
{
	static const char *const columns[] = { "conversations", "image", "video", NULL };
	struct dataset_opts found = *o;
	struct sharegpt s = { .o = &found };
	const struct rows_opts opts = {
		.o = o, .env = env, .seed = env->seed, .columns = columns, .keep = has_turns,
	};
	struct buf path = { 0 };
	int rc = find_file(o, env, &path, e);

	found.path = path.data;
	if (rc == 0 && o->multi_turn) {
		rc = multi_turn_sharegpt(found.path, o, env, rng, w, e);
	} else if (rc == 0) {
		rc = rows_open(&s.rows, &found.path, 1, &opts, rng, e);
		if (rc == 0)
			rc = sample(&s, env, rng, w, e);
	}
	rows_release(&s.rows);
	buf_release(&s.text);
	buf_release(&path);
	return rc < 0 ? -1 : 0;
}

static const char *const sharegpt_options[] = {
	"sharegpt-output-len", "disable-shuffle", "no-oversample",
	"enable-multimodal-chat",
	"multi-turn", "multi-turn-num-turns", "multi-turn-min-turns", "multi-turn-max-turns",
	"multi-turn-concurrency", "multi-turn-delay-ms", "multi-turn-delay-dist", NULL,
};

const struct dataset dataset_sharegpt = {
	.name = "sharegpt", .summary = "first turns of recorded conversations (ShareGPT JSON)",
	.options = sharegpt_options, .needs_tokenizer = true, .takes_all = true,
	.check = sharegpt_check, .build = sharegpt_build,
};

/* ---- prioritization ---- */

/*
 * The requests of vLLM's prioritization benchmark: first turns of ShareGPT
 * conversations, or without a file one text for all, each with priority 0 or 1 by one random()
 * after all other draws.
 *
 * Without a file upstream takes "hi" repeated, once less than the tokens that were requested, for a
 * prompt of that many tokens; how many it has is counted here.
 */


static const struct priority_classes halves = { { { 0, 0.5 }, { 1, 0.5 } }, 2 };

static int prioritization_check(const struct dataset_opts *o, const struct dataset_env *env,
				struct err *e)
{
	if (o->path && o->sharegpt_output_len.is_set && o->sharegpt_output_len.v < VALID_TOKENS_MIN)
		return err_set(e, ERR_USAGE, "--output-len: expected at least %d tokens with a dataset, "
			       "got %lld", VALID_TOKENS_MIN, (long long)o->sharegpt_output_len.v);
	if (o->path)
		return 0;
	if (o->random_input_len < 2 || o->random_input_len > LENGTH_TOKENS_MAX)
		return err_set(e, ERR_USAGE, "--input-len: expected 2 to %u tokens, got %lld",
			       LENGTH_TOKENS_MAX, (long long)o->random_input_len);
	if (o->random_output_len < 1)
		return err_set(e, ERR_USAGE, "--output-len: expected at least 1 token, got %lld",
			       (long long)o->random_output_len);
	if (env->num_prompts < 1 || env->num_prompts > REQUESTS_MAX)
		return err_set(e, ERR_USAGE, "--num-prompts: expected 1 to %u, got %lld", REQUESTS_MAX,
			       (long long)env->num_prompts);
	return 0;
}

static int repeat(const struct dataset_opts *o, const struct dataset_env *env, struct workload *w,
		  struct err *e)
{
	struct buf text = { 0 };
	struct str prompt;
	size_t tokens;

	for (int64_t i = 1; i < o->random_input_len; i++)
		buf_add_text(&text, "hi");
	prompt = arena_take(&w->arena, &text);
	tokens = tokenizer_count(env->tokenizer, prompt, true);
	if (tokens == SIZE_MAX)
		return tokenizer_refuse(env->tokenizer, prompt, e);
	for (int64_t i = 0; i < env->num_prompts; i++) {
		struct sample *s = workload_add(w);

		s->prompt = prompt;
		s->prompt_len = (uint32_t)tokens;
		s->output_len = o->random_output_len;
		s->request_id = dataset_request_id(w, env, (size_t)i);
	}
	if ((int64_t)tokens != o->random_input_len)
		dataset_note(w, "prompts have %zu tokens, not the %lld that were requested: vLLM's "
			     "benchmark repeats \"hi\" once less and counts that as tokens", tokens,
			     (long long)o->random_input_len);
	return 0;
}

static int converse(const struct dataset_opts *o, const struct dataset_env *env,
		    struct compat_rng *rng, struct workload *w, struct err *e)
{
	struct dataset_opts own = *o;

	own.no_oversample = true; /* fewer rows are fewer requests */
	own.enable_multimodal_chat = false;
	if (dataset_sharegpt.build(&own, env, rng, w, e) < 0)
		return -1;
	for (size_t i = 0; i < w->n; i++)
		w->v[i].media = STR(""); /* texts alone */
	return 0;
}

static int prioritization_build(const struct dataset_opts *o, const struct dataset_env *env,
				struct compat_rng *rng, struct workload *w, struct err *e)
{
	if ((o->path ? converse(o, env, rng, w, e) : repeat(o, env, w, e)) < 0)
		return -1;
	return priority_deal("priority-classes", &halves, &rng->py, w, e);
}

static const char *const prioritization_options[] = {
	"input-len", "random-input-len", "random-output-len", "sharegpt-output-len",
	"disable-shuffle", NULL,
};

const struct dataset dataset_prioritization = {
	.name = "prioritization",
	.summary = "ShareGPT conversations, or one text repeated, with priorities 0 and 1",
	.options = prioritization_options, .needs_tokenizer = true, .ignores_eos = true,
	.check = prioritization_check, .build = prioritization_build,
};
