/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sharegpt.c - first turn and reply of recorded conversations; datasets spec 5.2.
 *
 * The file is mapped and walked with the pull reader: what stays in memory per
 * entry is a slice of its conversation, and text only for accepted ones.
 */
#include <inttypes.h>

#include "base/file.h"
#include "base/mem.h"
#include "data/common.h"
#include "json/read.h"
#include "token/tokenizer.h"

/* Datasets spec 1.4. */
#define PROMPT_TOKENS_MAX 1024
#define TOTAL_TOKENS_MAX 2048
#define TOKENS_MIN 4

struct entries {
	struct json_slice *conversation;
	size_t n, cap;
};

/* Entries with at least two turns, in file order. */
static int load(const char *path, struct str text, struct entries *out, struct err *e)
{
	struct json_scan scan = { text, 0 };
	struct json_slice all, entry, turns, turn;
	struct json_iter it, turn_it;
	struct str key;

	if (json_next(&scan, &all, e) < 0)
		return err_wrap(e, "%s", path);
	if (all.kind != JSON_ARRAY)
		return err_set(e, ERR_PARSE, "%s: a ShareGPT file is one JSON array of objects with "
			       "\"conversations\"", path);
	it = json_iter(all);
	while (json_each(&it, &key, &entry) == 1) {
		int count = 0;

		if (!json_member(entry, "conversations", &turns) || turns.kind != JSON_ARRAY)
			continue;
		turn_it = json_iter(turns);
		while (count < 2 && json_each(&turn_it, &key, &turn) == 1)
			count++;
		if (count < 2)
			continue;
		if (out->n == out->cap) {
			out->cap = out->cap ? out->cap * 2 : 1024;
			out->conversation = mem_grow(out->conversation, out->cap,
						     sizeof(*out->conversation));
		}
		out->conversation[out->n++] = turns;
	}
	return 0;
}

/* The "value" texts of the first two turns. */
static int read_turns(const char *path, size_t index, struct json_slice turns,
		      struct buf text[2], struct err *e)
{
	struct json_iter it = json_iter(turns);
	struct json_slice turn, value;
	struct str key;

	for (int i = 0; i < 2; i++) {
		json_each(&it, &key, &turn);
		if (!json_member(turn, "value", &value) || value.kind != JSON_STRING)
			return err_set(e, ERR_PARSE, "%s: conversation %zu, turn %d has no text "
				       "\"value\"", path, index, i);
		buf_reset(&text[i]);
		json_unescape(&text[i], value.raw);
	}
	return 0;
}

static bool is_valid(size_t prompt, int64_t output, bool is_output_checked)
{
	return prompt >= TOKENS_MIN && (output >= TOKENS_MIN || !is_output_checked) &&
	       prompt <= PROMPT_TOKENS_MAX && (int64_t)prompt + output <= TOTAL_TOKENS_MAX;
}

static int accept(const struct dataset_opts *o, const struct entries *entries, struct workload *w,
		  struct err *e)
{
	size_t wanted = o->num_prompts > 0 ? (size_t)o->num_prompts : 0;
	bool is_fixed = o->sharegpt_output_len >= 0;
	struct buf text[2] = { 0 };
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < entries->n && w->n < wanted; i++) {
		size_t prompt_len;
		int64_t output_len = o->sharegpt_output_len;
		struct sample *s;

		if (dataset_go_on(o, e) < 0 ||
		    read_turns(o->path, i, entries->conversation[i], text, e) < 0) {
			rc = -1;
			break;
		}
		prompt_len = tokenizer_count(o->tokenizer, buf_str(&text[0]), true);
		if (!is_fixed)
			output_len = (int64_t)tokenizer_count(o->tokenizer, buf_str(&text[1]),
							      true);
		if (tokenizer_remote(o->tokenizer) &&
		    (prompt_len == SIZE_MAX || output_len == (int64_t)SIZE_MAX)) {
			rc = err_set(e, ERR_NET, "%s: the server stopped tokenizing at entry %zu",
				     o->path, i);
			break;
		}
		if (!is_valid(prompt_len, output_len, !is_fixed))
			continue;
		s = workload_add(w);
		s->prompt = arena_str(&w->arena, buf_str(&text[0]));
		s->prompt_len = (uint32_t)prompt_len;
		s->output_len = output_len;
		s->request_id = dataset_request_id(w, o, w->n - 1);
		dataset_progress(o, w->n, wanted);
	}
	buf_release(&text[0]);
	buf_release(&text[1]);
	return rc;
}

static int build(const struct dataset_opts *o, struct compat_rng *rng, struct workload *w,
		 struct err *e)
{
	struct entries entries = { 0 };
	struct str text = { 0 };
	int rc = -1;

	if (file_map(o->path, &text, e) < 0)
		return -1;
	if (load(o->path, text, &entries, e) < 0)
		goto done;
	pyrandom_seed(&rng->py, (int64_t)o->seed);
	if (!o->is_shuffle_disabled)
		pyrandom_shuffle(&rng->py, entries.conversation, entries.n,
				 sizeof(*entries.conversation));
	if (accept(o, &entries, w, e) < 0)
		goto done;
	rc = dataset_oversample(w, o, rng, e);
done:
	free(entries.conversation);
	file_unmap(text);
	return rc;
}

const struct dataset dataset_sharegpt = {
	.name = "sharegpt", .summary = "first turns of recorded conversations (ShareGPT JSON)",
	.needs_path = true, .needs_tokenizer = true, .build = build,
};
