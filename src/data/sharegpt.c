/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sharegpt.c - first turn and reply of recorded conversations; datasets spec 5.2.
 *
 * The file is mapped and walked with the pull reader: what stays in memory per
 * entry is a slice of its conversation, and text only for accepted ones.
 */
#include <inttypes.h>

#include "base/file.h"
#include "base/limits.h"
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

/* Conversations whose tokens are counted together. */
#define AT_ONCE 1024
#define AT_ONCE_BYTES (16u << 20) /* and no more when they have as many bytes */

struct lot {
	struct buf bytes;
	struct str text[AT_ONCE][2]; /* prompt and answer, in bytes */
	size_t tokens[AT_ONCE][2];
	size_t n;
};

/* Adds the "value" texts of the first two turns; where they lie is known by their lengths. */
static int read_turns(const char *path, size_t index, struct json_slice turns, struct lot *lot,
		      struct err *e)
{
	struct json_iter it = json_iter(turns);
	struct json_slice turn, value;
	struct str key;

	for (int i = 0; i < 2; i++) {
		size_t before = lot->bytes.len;

		json_each(&it, &key, &turn);
		if (!json_member(turn, "value", &value) || value.kind != JSON_STRING)
			return err_set(e, ERR_PARSE, "%s: conversation %zu, turn %d has no text "
				       "\"value\"", path, index, i);
		json_unescape(&lot->bytes, value.raw);
		lot->text[lot->n][i].n = lot->bytes.len - before;
	}
	if (lot->bytes.is_over)
		return err_set(e, ERR_LIMIT, "%s: conversation %zu is longer than %llu bytes", path,
			       index, BUF_BYTES_MAX);
	lot->n++;
	return 0;
}

/* Up to n conversations from the given one on, read and counted. */
static int take_lot(const struct dataset_opts *o, const struct dataset_env *env, const struct entries *entries, size_t from,
		    size_t n, struct lot *lot, struct err *e)
{
	const char *p;

	lot->n = 0;
	buf_reset(&lot->bytes);
	while (lot->n < n && lot->n < AT_ONCE && lot->bytes.len < AT_ONCE_BYTES) {
		size_t i = from + lot->n;

		if (dataset_go_on(env, e) < 0 ||
		    read_turns(o->path, i, entries->conversation[i], lot, e) < 0)
			return -1;
	}
	p = lot->bytes.data;
	for (size_t i = 0; i < 2 * lot->n; i++) {
		struct str *text = &lot->text[i / 2][i % 2];

		text->p = p;
		p = text->n ? p + text->n : p;
		if (i % 2 && o->sharegpt_output_len.is_set) /* the answer's length is given */
			*text = STR("");
	}
	if (tokenizer_count_batch(env->tokenizer, lot->text[0], 2 * lot->n, true, env->threads,
				  lot->tokens[0], e) < 0)
		return err_wrap(e, "%s: conversations from %zu on", o->path, from);
	return 0;
}

static bool is_valid(size_t prompt, int64_t output, bool is_output_checked)
{
	return prompt >= TOKENS_MIN && (output >= TOKENS_MIN || !is_output_checked) &&
	       prompt <= PROMPT_TOKENS_MAX && (int64_t)prompt + output <= TOTAL_TOKENS_MAX;
}

static void accept_lot(const struct dataset_opts *o, const struct dataset_env *env, const struct lot *lot, struct workload *w)
{
	bool is_fixed = o->sharegpt_output_len.is_set;

	for (size_t i = 0; i < lot->n; i++) {
		int64_t output_len = is_fixed ? o->sharegpt_output_len.v : (int64_t)lot->tokens[i][1];
		struct sample *s;

		if (!is_valid(lot->tokens[i][0], output_len, !is_fixed))
			continue;
		s = workload_add(w);
		s->prompt = arena_str(&w->arena, lot->text[i][0]);
		s->prompt_len = (uint32_t)lot->tokens[i][0];
		s->output_len = output_len;
		s->request_id = dataset_request_id(w, env, w->n - 1);
	}
}

static int accept(const struct dataset_opts *o, const struct dataset_env *env, const struct entries *entries, struct workload *w,
		  struct err *e)
{
	size_t wanted = env->num_prompts > 0 ? (size_t)env->num_prompts : 0;
	struct lot *lot = mem_alloc(sizeof(*lot));
	int rc = 0;

	for (size_t i = 0; i < entries->n && w->n < wanted; i += lot->n) {
		size_t left = entries->n - i, missing = wanted - w->n;

		/* Each gives one at most, so none is counted in vain. */
		rc = take_lot(o, env, entries, i, left < missing ? left : missing, lot, e);
		if (rc < 0)
			break;
		accept_lot(o, env, lot, w);
		dataset_progress(env, w->n, wanted);
	}
	buf_release(&lot->bytes);
	free(lot);
	return rc;
}

static int build(const struct dataset_opts *o, const struct dataset_env *env, struct compat_rng *rng, struct workload *w,
		 struct err *e)
{
	struct entries entries = { 0 };
	struct str text = { 0 };
	int rc = -1;

	if (file_map(o->path, &text, e) < 0)
		return -1;
	if (load(o->path, text, &entries, e) < 0)
		goto done;
	pyrandom_seed(&rng->py, (int64_t)env->seed);
	if (!o->disable_shuffle)
		pyrandom_shuffle(&rng->py, entries.conversation, entries.n,
				 sizeof(*entries.conversation));
	if (accept(o, env, &entries, w, e) < 0)
		goto done;
	rc = dataset_oversample(w, o, env, rng, e);
done:
	free(entries.conversation);
	file_unmap(text);
	return rc;
}

static const char *const options[] = {
	"sharegpt-output-len", "disable-shuffle", "no-oversample", NULL,
};

const struct dataset dataset_sharegpt = {
	.options = options,
	.name = "sharegpt", .summary = "first turns of recorded conversations (ShareGPT JSON)",
	.needs_path = true, .needs_tokenizer = true, .build = build,
};
