/* SPDX-License-Identifier: Apache-2.0 */
/* offline_data.c - see offline_data.h. */
#include "bench/offline/offline_data.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bench/serve/build_workload.h"
#include "core/base/clock.h"
#include "core/base/codec.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/json/write.h"
#include "input/data/lengths.h"
#include "input/sets/datasets.h"

#define SHOWN_AFTER_NS 500000000

static void warn(void *self, const char *text)
{
	const struct offline_sampler *s = self;

	if (s->hooks.warn)
		s->hooks.warn(s->hooks.self, text);
}

/* Most sets are read and drawn at once; upstream shows no progress either. */
static bool is_long(struct offline_sampler *s, bool is_under_way)
{
	const int64_t now_ns = clock_mono_ns();

	if (!s->began_ns)
		s->began_ns = now_ns;
	s->is_shown |= is_under_way && now_ns - s->began_ns > SHOWN_AFTER_NS;
	return s->is_shown && s->hooks.progress;
}

static void show_bytes(void *self, const char *file, int64_t done, int64_t total)
{
	struct offline_sampler *s = self;
	const char *name = strrchr(file, '/');

	if (is_long(s, done < total || total <= 0))
		s->hooks.progress(s->hooks.self, name ? name + 1 : file, (uint64_t)done,
				  total > 0 ? (uint64_t)total : 0);
}

static void show_requests(void *self, size_t done, size_t total)
{
	struct offline_sampler *s = self;

	if (is_long(s, done < total))
		s->hooks.progress(s->hooks.self, "Drawing requests", done, total);
}

int offline_check_buckets(const struct opt *o, const void *field, struct err *e)
{
	struct err why = { 0 };

	(void)o;
	if (dataset_check_buckets(*(const char *const *)field, &why) == 0)
		return 0;
	return err_set(e, ERR_USAGE, "%s", why.text);
}

int offline_sampler_init(struct offline_sampler *s, struct err *e)
{
	const struct offline_engine *engine = s->engine;
	const struct tokenizer_load_opts opts = {
		.mode = engine->tokenizer_mode, .cancel = s->hooks.cancel,
		.progress = show_bytes, .note = warn, .self = s,
	};

	if (engine->seed < 0 || engine->seed >= UINT32_MAX)
		return err_set(e, ERR_USAGE, "--seed: expected 0 to %u, got %" PRId64, UINT32_MAX - 1,
			       engine->seed);
	if (s->lora_path && (engine->max_loras < 1 || engine->max_loras > INT32_MAX))
		return err_set(e, ERR_USAGE, "--max-loras: expected 1 to %d, got %" PRId64, INT32_MAX,
			       engine->max_loras);
	compat_rng_seed(&s->rng, (uint32_t)engine->seed);
	s->tokenizer = tokenizer_load(engine->tokenizer, &opts, e);
	if (s->tokenizer)
		return 0;
	if (!engine->is_tokenizer_given)
		err_wrap(e, "no tokenizer for model %s (name one with --tokenizer)", engine->model);
	return -1;
}

void offline_sampler_release(struct offline_sampler *s)
{
	tokenizer_free(s->tokenizer);
	s->tokenizer = NULL;
}

/* ---- chat templates ---- */

static int render_messages(void *self, struct str messages, struct str tools, struct buf *text,
			   struct err *e)
{
	struct offline_sampler *s = self;
	struct offline *engine = NULL;

	if (s->ask)
		engine = s->ask(s->ask_self, e);
	else
		err_set(e, ERR_RUN, "the chat template of %s is unknown, and a dry run starts no "
			"engine to apply it; give --chat-prefix and --chat-suffix",
			tokenizer_name(s->tokenizer));
	return engine ? offline_render(engine, messages, tools, text, e) : -1;
}

static int render_one(void *self, struct str content, struct buf *text, struct err *e)
{
	struct buf messages = { 0 };
	struct json_writer w = json_writer(&messages);
	int rc;

	json_begin_array(&w);
	json_begin_object(&w);
	json_member_text(&w, "role", "user");
	json_member_str(&w, "content", content);
	json_end_object(&w);
	json_end_array(&w);
	rc = render_messages(self, buf_str(&messages), STR(""), text, e);
	buf_release(&messages);
	return rc;
}

static int find_chat(void *self, struct arena *a, struct chat_wrap *out, struct err *e)
{
	struct offline_sampler *s = self;
	const char *path = tokenizer_path(s->tokenizer);
	const struct chat_renderer by = { s->engine->model, render_one, s };
	struct buf notes = { 0 };
	int rc = 0;

	*out = (struct chat_wrap){ 0 };
	if (s->chat_prefix || s->chat_suffix) {
		out->source = CHAT_FLAGS;
		return chat_unescape("--chat-prefix", s->chat_prefix, a, &out->prefix, e) < 0 ||
		       chat_unescape("--chat-suffix", s->chat_suffix, a, &out->suffix, e) < 0 ? -1 : 0;
	}
	if (!tokenizer_has_chat_template(s->tokenizer))
		return 0;
	if (path)
		rc = chat_from_files(path, a, out, e);
	if (rc < 0 || (rc == 0 && chat_from_renderer(&by, a, out, e) < 0))
		return -1;
	run_chat_notes(out, false, s->tokenizer, &notes);
	if (notes.len)
		warn(s, notes.data);
	buf_release(&notes);
	return 0;
}

/* ---- samples to requests ---- */

/* An upload to a server's API is a content part to an engine. */
static int file_to_media(struct workload *w, struct sample *s, struct err *e)
{
	struct buf media = { 0 }, text = { 0 };
	struct json_writer j = json_writer(&media);
	int rc;

	base64_encode(s->file, &text);
	json_begin_array(&j);
	json_begin_object(&j);
	json_member_text(&j, "type", "input_audio");
	json_member_object(&j, "input_audio");
	json_member_str(&j, "data", buf_str(&text));
	json_member_text(&j, "format", "wav");
	json_end_object(&j);
	json_end_object(&j);
	json_end_array(&j);
	s->media = buf_str(&media);
	rc = workload_keep(w, &s->media, e);
	s->file = STR("");
	buf_release(&text);
	buf_release(&media);
	return rc;
}

static int read_rank(const char *name, int64_t *out, struct err *e)
{
	const char *text = getenv(name);

	if (text && str_to_i64(str_of(text), out) && *out >= 0)
		return 0;
	return err_set(e, ERR_RUN, "--data-parallel-size above 1 needs %s in the environment, as "
		       "torchrun sets it; got %s", name, text ? text : "nothing");
}

/* This rank's share: one of every data_parallel requests. */
static int find_share(int64_t data_parallel, uint64_t *rank, struct err *e)
{
	int64_t global, world;

	*rank = 0;
	if (data_parallel <= 1)
		return 0;
	if (read_rank("RANK", &global, e) < 0 || read_rank("WORLD_SIZE", &world, e) < 0)
		return -1;
	if (world < data_parallel)
		return err_set(e, ERR_RUN, "WORLD_SIZE is %" PRId64 ", below --data-parallel-size "
			       "%" PRId64, world, data_parallel);
	*rank = (uint64_t)(global / (world / data_parallel));
	return 0;
}

/* Upstream numbers adapters before the share is taken, over all requests. */
static void assign_loras(struct offline_sampler *s, size_t n, int32_t *lora)
{
	for (size_t i = 0; i < n; i++)
		lora[i] = (int32_t)(s->is_lora_random ?
				    pyrandom_int(&s->rng.py, 1, s->engine->max_loras) :
				    (int64_t)(i % (size_t)s->engine->max_loras) + 1);
}

static int take_share(struct offline_sampler *s, struct offline_requests *out, struct err *e)
{
	struct workload *w = &out->w;
	const int64_t dp = s->engine->data_parallel;
	const uint64_t parts = dp > 1 ? (uint64_t)dp : 1;
	uint64_t rank;

	if (find_share(s->engine->data_parallel, &rank, e) < 0)
		return -1;
	out->index = mem_array(w->n, sizeof(*out->index));
	if (s->lora_path) {
		out->lora = mem_array(w->n, sizeof(*out->lora));
		assign_loras(s, w->n, out->lora);
	}
	for (size_t i = rank; rank < parts && i < w->n; i += parts) {
		const struct sample *one = &w->v[i];

		out->index[out->n] = (uint32_t)i;
		if (out->lora)
			out->lora[out->n] = out->lora[i];
		out->n++;
		out->prompt_tokens += one->prompt_len;
		out->output_tokens += (uint64_t)one->output_len;
		out->is_multimodal |= one->media.n > 0;
	}
	if (out->n)
		return 0;
	return err_set(e, ERR_RUN, "none of %zu requests is of data-parallel rank %" PRIu64, w->n,
		       rank);
}

static int finish(struct offline_sampler *s, struct offline_requests *out, struct err *e)
{
	struct workload *w = &out->w;

	for (size_t i = 0; i < w->n; i++) {
		if (w->v[i].output_len < 0)
			return err_set(e, ERR_RUN, "request %zu of --dataset-name %s asks for no number "
				       "of tokens; --output-len gives one", i, w->dataset);
		if (w->v[i].file.n && file_to_media(w, &w->v[i], e) < 0)
			return -1;
	}
	return take_share(s, out, e);
}

static int draw_all(struct offline_sampler *s, const struct dataset *set,
		    const struct dataset_opts *o, int64_t n, int64_t seed, struct workload *w,
		    struct err *e)
{
	struct run_renderer renderer = {
		.tokenizer = s->tokenizer, .by = render_messages, .by_self = s,
	};
	struct run_draw draw = {
		.env = {
			.num_prompts = n, .seed = (uint64_t)seed,
			.tokenizer = s->tokenizer, .tokenizer_name = s->engine->tokenizer,
			.request_id_prefix = "", .backend = s->backend, .is_offline = true,
			.render = run_render, .render_self = &renderer,
			.progress = show_requests, .download = show_bytes, .note = warn, .self = s,
			.cancel = s->hooks.cancel,
		},
		.find_chat = find_chat, .warn = warn, .self = s,
	};
	int rc;

	renderer.wrap = &draw.chat;
	s->began_ns = 0;
	s->is_shown = false;
	rc = run_draw(&draw, set, o, &s->rng, w, e);
	s->chat_template = draw.chat_template;
	return rc < 0 && draw.is_building ? err_in_user_file(e) : rc;
}

int offline_sample(struct offline_sampler *s, const struct offline_data *d, int64_t n,
		   int64_t seed, struct offline_requests *out, struct err *e)
{
	const struct dataset *set = d->dataset ? d->dataset : dataset_find(d->dataset_name);
	struct dataset_opts o = d->set;

	*out = (struct offline_requests){ 0 };
	if (!set)
		return err_set(e, ERR_USAGE, "--dataset-name: unknown dataset '%s'", d->dataset_name);
	if (n <= 0 && !set->takes_all)
		return err_set(e, ERR_USAGE, "--num-prompts: expected at least 1, got %" PRId64, n);
	if (n > (int64_t)REQUESTS_MAX)
		return err_set(e, ERR_USAGE, "--num-prompts: expected at most %u, got %" PRId64, REQUESTS_MAX,
			       n);
	if (run_draw_check(set, &o, false, e) < 0 ||
	    range_ratio_parse("--random-range-ratio", o.random_range_ratio, &o.input_range_ratio,
			      &o.output_range_ratio, e) < 0 ||
	    draw_all(s, set, &o, n, seed, &out->w, e) < 0 || finish(s, out, e) < 0) {
		offline_requests_release(out);
		return -1;
	}
	return 0;
}

void offline_requests_release(struct offline_requests *r)
{
	free(r->index);
	free(r->lora);
	workload_release(&r->w);
	*r = (struct offline_requests){ 0 };
}

struct offline_batch offline_requests_batch(const struct offline_requests *r, const char *lora_path)
{
	return (struct offline_batch){ .w = &r->w, .index = r->index, .n = r->n,
				       .lora = lora_path ? r->lora : NULL, .lora_path = lora_path };
}

int offline_requests_fit(const struct offline_requests *r, int64_t max_model_len, struct err *e)
{
	for (size_t i = 0; max_model_len > 0 && i < r->n; i++) {
		const struct sample *s = &r->w.v[r->index[i]];

		if (s->prompt_len + s->output_len <= max_model_len)
			continue;
		return err_set(e, ERR_RUN, "Please ensure that max_model_len is greater than the sum "
			       "of prompt_len and expected_output_len for all requests: request %zu "
			       "has %u and %" PRId64 ", the model takes %" PRId64, i, s->prompt_len,
			       s->output_len, max_model_len);
	}
	return 0;
}
