/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_sessions.c - arbitrary bytes as a file of conversations or sessions.
 *
 * The first byte says of which kind; the rest is the file. Each yields a workload whose sessions
 * hold what plan/session.h promises, or one sentence.
 */
#include "file_rig.h"
#include "input/sets/datasets.h"
#include "input/trace/conversation.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum kind { CONVERSATIONS, SESSIONS, SHAREGPT, CONVERTED, KINDS };

static void check_list(struct str text)
{
	struct json_scan scan = { text, 0 };
	struct json_slice v;

	CHECK(json_next(&scan, &v, NULL) == 0 && v.kind == JSON_ARRAY && json_at_end(&scan));
}

/* Whether turn a waits for b, directly or by way of others; both are of one session. */
static bool is_after(const struct sessions *s, uint32_t a, uint32_t b)
{
	const struct turn *t = &s->turn[a];

	for (uint32_t k = 0; k < t->n_waits; k++) {
		uint32_t wait = s->waits[t->wait + k];

		if (wait == b || (wait > b && is_after(s, wait, b)))
			return true;
	}
	return false;
}

static void check_turn(const struct sessions *s, uint32_t i)
{
	const struct turn *t = &s->turn[i];
	const struct session *of = &s->session[t->session];

	CHECK(t->session < s->n_sessions && i >= of->first && i < of->first + of->n);
	CHECK(t->wait + (size_t)t->n_waits <= s->n_waits || !t->n_waits);
	CHECK(t->gap_s >= 0 && t->gap_s <= 31536000);
	for (uint32_t k = 0; k < t->n_waits; k++)
		CHECK(s->waits[t->wait + k] < i && s->waits[t->wait + k] >= of->first);
	if (t->history == TURN_NONE)
		return;
	CHECK(t->history >= of->first && t->history < i);
	CHECK(t->number == s->turn[t->history].number + 1);
	CHECK(of->n > 64 || is_after(s, i, t->history));
}

static void check_workload(const struct workload *w)
{
	const struct sessions *s = w->sessions;

	CHECK(s && s->n_turns == w->n);
	for (uint32_t i = 0; i < w->n; i++) {
		check_turn(s, i);
		check_list(w->v[i].messages);
		CHECK(w->v[i].output_len >= -1);
	}
}

static void check_set(const char *name, const struct dataset_opts *o,
		      const struct dataset_env *env)
{
	struct workload w = { 0 };
	struct compat_rng rng;
	struct err e = { 0 };

	compat_rng_seed(&rng, 7);
	if (dataset_find(name)->build(o, env, &rng, &w, &e) == 0)
		check_workload(&w);
	else
		CHECK(e.code != ERR_NONE && e.text[0]);
	workload_release(&w);
}

static void check_convert(const char *path, unsigned how)
{
	const struct sharegpt_convert_opts o = {
		.max_items = how & 1 ? 2 : 0, .max_turns = how & 2 ? 3 : 0, .any_language = how & 4,
		.min_content_len = how & 8 ? 2 : 0,
	};
	struct sharegpt_converted count;
	struct conversations c = { 0 };
	struct err e = { 0 };

	if (sharegpt_convert(path, &o, &c, &count, &e) == 0) {
		CHECK(c.n > 0 && c.n <= count.kept && count.kept <= count.joined);
		for (size_t i = 0; i < c.n; i++)
			for (size_t k = 0; k < c.v[i].n; k++)
				CHECK(c.message[c.v[i].first + k].role ==
				      (k % 2 ? SPEAKER_ASSISTANT : SPEAKER_USER));
	} else {
		CHECK(e.code != ERR_NONE && e.text[0]);
	}
	conversations_release(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct { const char *set, *file; } kinds[KINDS] = {
		[CONVERSATIONS] = { "conversations", "f.json" }, [SESSIONS] = { "sessions", "f.jsonl" },
		[SHAREGPT] = { "sharegpt", "f.json" }, [CONVERTED] = { NULL, "f.json" },
	};
	static struct tokenizer *tokenizer;
	enum kind kind = size ? data[0] % KINDS : CONVERSATIONS;
	unsigned how = size ? data[0] / KINDS : 0;
	char *path;

	if (!tokenizer) {
		rig_begin(NULL);
		tokenizer = tokenizer_load("sim", NULL, NULL);
	}
	path = file_join(rig_dir, kinds[kind].file);

	const struct dataset_opts o = {
		.path = path, .multi_turn = true, .multi_turn_num_turns = 3,
		.no_oversample = how & 1,
		.max_model_len = { how & 2, 40 }, .conversations_output_len = { how & 4, 6 },
		.multi_turn_max_turns = how & 8 ? 2 : 0,
	};
	const struct dataset_env env = {
		.num_prompts = how & 16 ? 5 : 0, .seed = 1, .tokenizer = tokenizer,
		.request_id_prefix = "r-", .threads = 1,
	};

	rig_write(kinds[kind].file,
		  (struct str){ (const char *)data + (size > 0), size - (size > 0) });
	if (kind == CONVERTED)
		check_convert(path, how);
	else
		check_set(kinds[kind].set, &o, &env);
	free(path);
	return 0;
}
