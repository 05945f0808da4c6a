/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_dataset.c - arbitrary bytes as a dataset's file.
 *
 * The first byte selects the set, and whether messages are made whole; the rest is the file. Every
 * set yields requests or one sentence. What it yields is valid in a body: valid JSON where it says
 * JSON, valid UTF-8 where it says text, and the stated lengths. No network and no other file is
 * used: images are not loaded here.
 */
#include "file_rig.h"
#include "input/chat/chat.h"
#include "input/sets/datasets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct { const char *name, *file; } set[] = {
	{ "custom", "f.jsonl" }, { "custom_image", "f.jsonl" }, { "timed_trace", "f.jsonl" },
	{ "sharegpt", "f.json" }, { "spec_bench", "f.jsonl" }, { "sonnet", "f.txt" },
	{ "speed_bench", "qualitative.jsonl" }, { "trace", "f" }, /* JSON lines or CSV by the bytes */
};

static void check_json(struct str text, enum json_kind kind)
{
	struct json_scan scan = { text, 0 };
	struct json_slice v;

	CHECK(json_next(&scan, &v, NULL) == 0 && v.kind == kind && json_at_end(&scan));
}

/* Turns of a session are neighbours, and wait for earlier ones of it. */
static void check_sessions(const struct workload *w)
{
	const struct sessions *s = w->sessions;

	if (!s)
		return;
	CHECK(s->n_turns == w->n && s->n_sessions > 0);
	for (size_t i = 0; i < w->n; i++) {
		const struct turn *t = &s->turn[i];
		const struct session *own = &s->session[t->session];

		CHECK(t->session < s->n_sessions && i >= own->first && i < own->first + own->n);
		CHECK((t->n_waits == 0) == (i == own->first) && t->n_waits <= 1);
		CHECK(!t->n_waits || (s->waits[t->wait] < i && s->waits[t->wait] >= own->first));
		CHECK(t->gap_s >= 0);
	}
}

static void check_workload(const struct workload *w, const struct dataset_env *env)
{
	for (size_t i = 0; i < w->n; i++) {
		const struct sample *s = &w->v[i];

		CHECK(s->output_len >= 0 && s->request_id.n > 2);
		if (s->kind == PROMPT_JSON)
			check_json(s->prompt, JSON_ARRAY);
		else
			CHECK(s->prompt.n == 0 || utf8_is_valid(s->prompt));
		if (s->kind == PROMPT_TEXT && s->media.n == 0)
			CHECK(s->prompt_len == tokenizer_count(env->tokenizer, s->prompt, true));
		if (s->media.n)
			check_json(s->media, JSON_ARRAY);
	}
	check_sessions(w);
}

static void check_set(const struct dataset *d, const struct dataset_opts *o,
		      const struct dataset_env *env)
{
	struct workload w = { 0 };
	struct compat_rng rng;
	struct err e = { 0 };

	compat_rng_seed(&rng, 7);
	CHECK(!d->check || d->check(o, env, &e) == 0);
	if (d->build(o, env, &rng, &w, &e) == 0)
		check_workload(&w, env);
	else
		CHECK(e.code != ERR_NONE && e.text[0]);
	workload_release(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct tokenizer *tokenizer;
	const struct chat_wrap chat = { .source = CHAT_FLAGS, .prefix = STR("<u>") };
	size_t which = size ? (data[0] & 7) % (sizeof(set) / sizeof(*set)) : 0;
	unsigned how = size ? data[0] >> 3 : 0;
	char *path;

	if (!tokenizer) {
		rig_begin(NULL);
		tokenizer = tokenizer_load("sim", NULL, NULL);
	}
	path = file_join(rig_dir, set[which].file);

	const struct dataset_opts o = {
		.path = which == 6 ? rig_dir : path, .custom_output_len = how & 1 ? -1 : 5,
		.spec_bench_output_len = 5, .speed_bench_output_len = how & 1 ? -1 : 5,
		.enable_multimodal_chat = how & 2, .disable_shuffle = how & 4,
		.spec_bench_category = how & 8 ? "a" : NULL,
		.speed_bench_dataset_subset = "qualitative",
		.sonnet_input_len = 60, .sonnet_output_len = 1, .sonnet_prefix_len = 50,
		.timed_trace_chunk_hash_size = 16, .timed_trace_sec_multiplier = 1,
		.timed_trace_label_timestamp = "t", .timed_trace_label_input_length = "i",
		.timed_trace_label_output_length = "o", .timed_trace_label_hash_ids = "h",
		.trace_output_len = 5, .sessions = how & 1, .sort_trace = how & 2,
		.trace_message_mode = how & 1 && how & 4 ? "delta" : NULL, .is_trace_short = how & 8,
		.trace_block_size = { how & 16, 3 },
		.max_model_len = { which == 7, 5000 }, /* a row may ask for 2^26 tokens */
	};
	const struct dataset_env env = {
		.num_prompts = 5, .seed = 1, .tokenizer = tokenizer, .request_id_prefix = "r-",
		.chat = how & 16 ? &chat : NULL, .threads = 1,
	};

	rig_write(set[which].file,
		  (struct str){ (const char *)data + (size > 0), size - (size > 0) });
	check_set(dataset_find(set[which].name), &o, &env);
	free(path);
	return 0;
}
