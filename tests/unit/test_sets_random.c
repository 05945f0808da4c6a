/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Synthetic prompts against upstream's vectors (datasets spec 10.5) and against the loop of
 * spec 3.6 written down plainly, with tokenizers whose texts grow and shrink; the whole lists
 * against upstream's own code are in tests/peer/.
 *
 * threads: yes
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/file.h"
#include "core/base/mem.h"
#include "input/sets/datasets.h"
#include "input/sets/random.h"
#include "input/token/tokenizer.h"
#include "scratch.h"

/*
 * "ab" is one token, as ids 0 and 1 are not: their text shrinks. "cd" and "abc" cannot be
 * made by merges: their texts grow. Everything else stays.
 */
static const char mixed[] =
	"{\"added_tokens\": [], \"decoder\": {\"type\": \"Fuse\"}, \"model\": {\"type\": \"BPE\", "
	"\"vocab\": {\"a\": 0, \"b\": 1, \"c\": 2, \"d\": 3, \"ab\": 4, \"cd\": 5, \"abc\": 6, "
	"\"e\": 7, \"f\": 8, \"g\": 9}, \"merges\": [[\"a\", \"b\"]]}}";
/* Runs of one letter: texts shrink again and again. */
static const char merging[] =
	"{\"added_tokens\": [], \"decoder\": {\"type\": \"Fuse\"}, \"model\": {\"type\": \"BPE\", "
	"\"vocab\": {\"a\": 0, \"aa\": 1, \"aaaa\": 2}, "
	"\"merges\": [[\"a\", \"a\"], [\"aa\", \"aa\"]]}}";
/* Five of six tokens read as nothing: most prompts are still short after all rounds. */
static const char vanishing[] =
	"{\"added_tokens\": [], \"decoder\": {\"type\": \"Replace\", \"pattern\": "
	"{\"Regex\": \"[a-e]\"}, \"content\": \"\"}, \"model\": {\"type\": \"BPE\", \"vocab\": "
	"{\"a\": 0, \"b\": 1, \"c\": 2, \"d\": 3, \"e\": 4, \"f\": 5}, \"merges\": []}}";

struct fixture {
	struct dataset_opts opts;
	struct dataset_env env;
	struct compat_rng rng;
	struct workload w;
	struct tokenizer *tokenizer;
	struct err e;
};

/* model: a tokenizer.json; NULL: the built-in one. */
static void fixture_init(struct fixture *f, const char *model)
{
	char path[64] = TOKENIZER_SIM;

	memset(f, 0, sizeof(*f));
	if (model) {
		snprintf(path, sizeof(path), "%s/tokenizer.json", dir);
		assert_int_equal(file_write_atomic(path, str_of(model), &f->e), 0);
	}
	f->tokenizer = tokenizer_load(path, NULL, &f->e);
	if (!f->tokenizer)
		fail_msg("%s", f->e.text);
	f->opts = (struct dataset_opts){
		.random_input_len = 1024, .random_output_len = 128, .random_batch_size = 1,
		.prefix_repetition_prefix_len = 20, .prefix_repetition_suffix_len = 10,
		.prefix_repetition_num_prefixes = 3, .prefix_repetition_output_len = 7,
	};
	f->env = (struct dataset_env){
		.num_prompts = 4, .tokenizer = f->tokenizer, .request_id_prefix = "r-",
	};
	compat_rng_seed(&f->rng, (uint32_t)f->env.seed);
}

static int build(struct fixture *f, const char *name)
{
	return dataset_find(name)->build(&f->opts, &f->env, &f->rng, &f->w, &f->e);
}

static void must_build(struct fixture *f, const char *name)
{
	if (build(f, name) < 0)
		fail_msg("%s: %s", name, f->e.text);
}

static void fixture_release(struct fixture *f)
{
	workload_release(&f->w);
	tokenizer_free(f->tokenizer);
}

static void must_be_same(const struct workload *a, const struct workload *b)
{
	assert_int_equal(a->n, b->n);
	for (size_t i = 0; i < a->n; i++) {
		assert_true(str_eq(a->v[i].prompt, b->v[i].prompt));
		assert_true(str_eq(a->v[i].request_id, b->v[i].request_id));
		assert_int_equal(a->v[i].kind, b->v[i].kind);
		assert_int_equal(a->v[i].prompt_len, b->v[i].prompt_len);
		assert_int_equal(a->v[i].output_len, b->v[i].output_len);
		assert_int_equal(a->v[i].sequences, b->v[i].sequences);
	}
}

/* ---- lengths and offsets ---- */

static void lengths_are_upstreams(void **state)
{
	static const struct {
		uint64_t seed;
		int64_t in, out;
		double ratio;
		size_t vocab;
		int64_t input[4], output[4], offset[4];
	} row[] = {
		{ 0, 1024, 128, 0, 50257, { 1024, 1024, 1024, 1024 }, { 128, 128, 128, 128 },
		  { 42749, 32011, 25688, 13558 } },
		{ 0, 1024, 128, 0.5, 151643, { 1383, 1164, 1035, 788 }, { 103, 69, 73, 66 },
		  { 26578, 123326, 98479, 138412 } },
		{ 42, 299, 40, 0.2, 32000, { 249, 332, 318, 292 }, { 39, 46, 33, 43 },
		  { 6447, 3013, 16847, 31219 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct random_lengths l;
		struct random_gen g;
		struct fixture f;

		fixture_init(&f, NULL);
		g = (struct random_gen){ .env = &f.env, .vocab = row[i].vocab };
		pcg64_seed(&g.rng, row[i].seed);
		f.opts.input_range_ratio = f.opts.output_range_ratio = row[i].ratio;
		assert_int_equal(random_lengths_draw(&g, &f.opts, row[i].in, row[i].out, 4, &l,
						     &f.e), 0);
		assert_memory_equal(l.input, row[i].input, sizeof(row[i].input));
		assert_memory_equal(l.output, row[i].output, sizeof(row[i].output));
		assert_memory_equal(l.offset, row[i].offset, sizeof(row[i].offset));
		random_lengths_release(&l);
		fixture_release(&f);
	}
}

/* Request 1 begins with the allowed id at its offset plus 1, the declared special ones left out. */
static void ids_run_from_the_offset(void **state)
{
	struct fixture f;
	struct pcg64 rng;
	uint32_t want[6];
	char text[128];

	(void)state;
	fixture_init(&f, NULL);
	f.opts.random_input_len = 5;
	f.opts.prompt_token_ids = true;
	must_build(&f, "random");
	pcg64_seed(&rng, 0);
	for (size_t i = 0; i < 4; i++) {
		size_t m = tokenizer_vocab_size(f.tokenizer), n;
		const uint32_t *special = tokenizer_special_ids(f.tokenizer, &n);
		size_t at = (size_t)pcg64_bounded(&rng, 0, (int64_t)m - 1) + i;

		assert_int_equal(n, 1);
		m -= special[0] < m;
		for (size_t j = 0; j < 5; j++) {
			want[j] = (uint32_t)((at + j) % m);
			want[j] += want[j] >= special[0];
		}
		snprintf(text, sizeof(text), "[%u, %u, %u, %u, %u]", want[0], want[1], want[2], want[3],
			 want[4]);
		assert_true(str_is(f.w.v[i].prompt, text));
		assert_int_equal(f.w.v[i].kind, PROMPT_JSON);
		assert_int_equal(f.w.v[i].prompt_len, 5);
	}
	fixture_release(&f);
}

static void too_short_prompts_are_refused(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, NULL);
	f.opts.random_input_len = 2;
	f.opts.input_range_ratio = 0.9;
	assert_int_equal(build(&f, "random"), -1);
	assert_non_null(strstr(f.e.text, "--random-input-len 2 is too small"));
	f.opts.random_prefix_len = 1;
	must_build(&f, "random");
	f.env.num_prompts = 0;
	assert_int_equal(build(&f, "random"), -1);
	assert_string_equal(f.e.text, "No requests provided.");
	f.env.num_prompts = 1;
	f.opts.random_input_len = INT64_MAX;
	assert_int_equal(build(&f, "random"), -1);
	assert_int_equal(f.e.code, ERR_LIMIT);
	fixture_release(&f);
}

/* The longest prompt and answer that the range may draw decide. */
static void lengths_have_a_limit(void **state)
{
	static const struct {
		int64_t in, out;
		double in_range, out_range;
		const char *want;
	} row[] = {
		{ 67108864, 67108864, 0, 0, NULL },
		{ 67108865, 1, 0, 0,
		  "an input length of up to 67108865 tokens is above the limit of 67108864" },
		{ 1, 67108865, 0, 0,
		  "an output length of up to 67108865 tokens is above the limit of 67108864" },
		{ 53687091, 44739242, 0.25, 0.5, NULL },
		{ 53687092, 44739242, 0.25, 0.5,
		  "an input length of up to 67108865 tokens is above the limit of 67108864" },
		{ 53687091, 44739244, 0.25, 0.5,
		  "an output length of up to 67108866 tokens is above the limit of 67108864" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct random_lengths l;
		struct random_gen g;
		struct fixture f;

		fixture_init(&f, NULL);
		g = (struct random_gen){ .env = &f.env, .vocab = 1000 };
		pcg64_seed(&g.rng, 1);
		f.opts.input_range_ratio = row[i].in_range;
		f.opts.output_range_ratio = row[i].out_range;
		assert_int_equal(
			random_lengths_draw(&g, &f.opts, row[i].in, row[i].out, 2, &l, &f.e),
			row[i].want ? -1 : 0);
		if (row[i].want)
			assert_string_equal(f.e.text, row[i].want);
		random_lengths_release(&l);
		fixture_release(&f);
	}
}

/* ---- the loop ---- */

/* Spec 3.6, one step after the other; returns the mismatch. */
static int64_t plain_loop(const struct tokenizer *t, struct pcg64 *rng, struct ids *ids,
			  size_t target, struct buf *text)
{
	for (int left = 10;; left--) {
		buf_reset(text);
		assert_int_equal(tokenizer_decode(t, ids->id, ids->count, false, text), 0);
		ids_reset(ids);
		assert_int_equal(tokenizer_encode(t, buf_str(text), false, ids), 0);
		if (left <= 0 || ids->count == target)
			return (int64_t)ids->count - (int64_t)target;
		while (ids->count < target)
			ids_push(ids, (uint32_t)pcg64_bounded(rng, 0,
				(int64_t)tokenizer_vocab_size(t) - 1));
		ids->count = target;
	}
}

/* The set as the spec has it, drawn in its order by one thread; lengths all alike. */
static int64_t plain_random(const struct fixture *f, size_t prefix_len, size_t length,
			    struct workload *w)
{
	size_t n = (size_t)f->env.num_prompts, m = tokenizer_vocab_size(f->tokenizer);
	int64_t *offset = mem_array(n, sizeof(*offset)), mismatch = 0;
	struct ids prefix = { 0 }, ids = { 0 };
	struct buf text = { 0 };
	struct pcg64 rng;

	pcg64_seed(&rng, f->env.seed);
	for (size_t i = 0; i < n; i++)
		offset[i] = pcg64_bounded(&rng, 0, (int64_t)m - 1);
	for (size_t i = 0; i < prefix_len; i++)
		ids_push(&prefix, (uint32_t)pcg64_bounded(&rng, 0, (int64_t)m - 1));
	if (prefix_len)
		plain_loop(f->tokenizer, &rng, &prefix, prefix_len, &text);
	for (size_t i = 0; i < n; i++) {
		struct sample *s = workload_add(w);

		ids_reset(&ids);
		ids_add(&ids, prefix.id, prefix.count);
		for (size_t j = 0; j < length; j++)
			ids_push(&ids, (uint32_t)(((size_t)offset[i] + i + j) % m));
		mismatch += plain_loop(f->tokenizer, &rng, &ids, prefix.count + length, &text);
		s->prompt = arena_str(&w->arena, buf_str(&text));
		s->prompt_len = (uint32_t)ids.count;
		s->output_len = f->opts.random_output_len;
		s->request_id = str_of(arena_printf(&w->arena, "r-%zu", i));
	}
	free(offset);
	ids_release(&prefix);
	ids_release(&ids);
	buf_release(&text);
	return mismatch;
}

static void texts_are_those_of_the_plain_loop(void **state)
{
	static const struct { const char *model; size_t prefix, length; bool misses; } row[] = {
		{ mixed, 0, 30, false }, { mixed, 7, 13, false }, { mixed, 0, 1, false },
		{ merging, 3, 40, false }, { vanishing, 0, 25, true },
	};
	static const unsigned threads[] = { 1, 2, 5 };

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		for (size_t k = 0; k < 3; k++) {
			struct workload plain = { 0 };
			struct fixture f;
			int64_t mismatch;

			fixture_init(&f, row[i].model);
			f.env.num_prompts = 1500; /* more than one lot */
			f.env.threads = threads[k];
			f.env.seed = i;
			f.opts.random_prefix_len = (int64_t)row[i].prefix;
			f.opts.random_input_len = (int64_t)row[i].length;
			mismatch = plain_random(&f, row[i].prefix, row[i].length, &plain);
			must_build(&f, "random");
			must_be_same(&f.w, &plain);
			assert_int_equal(mismatch != 0, f.w.notes.n > 0);
			assert_int_equal(mismatch < 0, row[i].misses);
			workload_release(&plain);
			fixture_release(&f);
		}
	}
}

/* What was drawn from the shared generators before or after does not matter, nor are they used. */
static void random_is_on_its_own(void **state)
{
	struct fixture a, b;

	(void)state;
	fixture_init(&a, mixed);
	fixture_init(&b, mixed);
	pyrandom_double(&b.rng.py);
	legacy_double(&b.rng.np);
	must_build(&a, "random");
	must_build(&b, "random");
	must_be_same(&a.w, &b.w);
	pyrandom_double(&a.rng.py);
	legacy_double(&a.rng.np);
	assert_true(pyrandom_double(&a.rng.py) == pyrandom_double(&b.rng.py));
	assert_true(legacy_double(&a.rng.np) == legacy_double(&b.rng.np));
	fixture_release(&a);
	fixture_release(&b);
}

static void ids_keep_lengths_and_prefix(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, mixed);
	f.env.num_prompts = 50;
	f.opts.prompt_token_ids = true;
	f.opts.random_prefix_len = 8;
	f.opts.random_input_len = 23; /* goes round the vocabulary of 10 */
	must_build(&f, "random");
	for (size_t i = 0; i < 50; i++) {
		assert_int_equal(f.w.v[i].prompt_len, 31);
		assert_int_equal(f.w.v[i].prompt.n, 31 * 3);
		assert_memory_equal(f.w.v[i].prompt.p, f.w.v[0].prompt.p, 8 * 3);
		for (size_t j = 9; j < 31; j++) {
			const char *digit = f.w.v[i].prompt.p + 3 * j + 1;

			assert_int_equal((digit[0] - digit[-3] + 10) % 10, 1);
		}
	}
	assert_int_equal(f.w.notes.n, 0);
	f.env.is_chat_backend = true;
	assert_int_equal(dataset_find("random")->check(&f.opts, &f.env, &f.e), -1);
	assert_non_null(strstr(f.e.text, "--prompt-token-ids"));
	fixture_release(&f);
}

static void batches_are_lists_of_texts(void **state)
{
	struct fixture single, f;

	(void)state;
	for (int is_ids = 0; is_ids < 2; is_ids++) {
		fixture_init(&single, mixed);
		fixture_init(&f, mixed);
		single.env.num_prompts = f.env.num_prompts = 7;
		single.opts.random_input_len = f.opts.random_input_len = 6;
		single.opts.prompt_token_ids = f.opts.prompt_token_ids = is_ids;
		f.opts.random_batch_size = 3;
		must_build(&single, "random");
		must_build(&f, "random");
		assert_int_equal(f.w.n, 3);
		for (size_t k = 0; k < 3; k++) {
			struct buf want = { 0 };
			size_t first = 3 * k, n = k < 2 ? 3 : 1, tokens = 0;

			for (size_t i = first; i < first + n; i++) {
				buf_printf(&want, is_ids ? "%s%.*s" : "%s\"%.*s\"", i == first ? "[" : ", ",
					   (int)single.w.v[i].prompt.n, single.w.v[i].prompt.p);
				tokens += single.w.v[i].prompt_len;
			}
			buf_add_char(&want, ']');
			assert_true(str_eq(f.w.v[k].prompt, buf_str(&want)));
			assert_int_equal(f.w.v[k].kind, PROMPT_JSON);
			assert_int_equal(f.w.v[k].prompt_len, tokens);
			assert_int_equal(f.w.v[k].output_len, 0);
			assert_int_equal(f.w.v[k].sequences, n);
			assert_int_equal(f.w.v[k].request_id.p[2], '0' + (int)k);
			buf_release(&want);
		}
		fixture_release(&single);
		fixture_release(&f);
	}
}

/* ---- rerank ---- */

/* With the built-in tokenizer every length is met: the formulas can be written down. */
static void rerank_lists_have_the_specs_lengths(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, NULL);
	f.env.num_prompts = 5;
	f.env.seed = 3;
	f.opts.random_input_len = 100;
	f.opts.random_batch_size = 2;
	must_build(&f, "random-rerank");
	assert_int_equal(f.w.n, 3);
	for (size_t i = 0; i < 3; i++) {
		size_t documents = i < 2 ? 2 : 1;

		/* A query of 49, documents of 100 - 49 - 1; a separator for each pair. */
		assert_int_equal(f.w.v[i].prompt_len, (49 + 1) * documents + 50 * documents);
		assert_int_equal(f.w.v[i].sequences, documents);
		assert_int_equal(f.w.v[i].output_len, 0);
	}
	workload_release(&f.w);
	f.opts.no_reranker = true;
	f.opts.random_batch_size = 3;
	must_build(&f, "random-rerank");
	assert_int_equal(f.w.n, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(f.w.v[i].prompt_len, 100 + 2 * 100);
		assert_int_equal(f.w.v[i].sequences, 3);
	}
	workload_release(&f.w);
	f.env.num_prompts = 1;
	assert_int_equal(build(&f, "random-rerank"), -1);
	assert_non_null(strstr(f.e.text, "--no-reranker"));
	f.env.num_prompts = 5;
	f.opts.random_batch_size = 1;
	assert_int_equal(build(&f, "random-rerank"), -1);
	assert_non_null(strstr(f.e.text, "--random-batch-size 1"));
	fixture_release(&f);
}

/* ---- prefix_repetition ---- */

static void add_block(struct fixture *f, struct ids *ids, size_t n)
{
	const int64_t vocab = (int64_t)tokenizer_vocab_size(f->tokenizer);
	struct buf text = { 0 };

	ids_reset(ids);
	for (int left = 10;; left--) {
		while (ids->count < n)
			ids_push(ids, (uint32_t)legacy_randint(&f->rng.np, 0, vocab));
		ids->count = n;
		buf_reset(&text);
		tokenizer_decode(f->tokenizer, ids->id, ids->count, false, &text);
		ids_reset(ids);
		tokenizer_encode(f->tokenizer, buf_str(&text), false, ids);
		if (left <= 0 || ids->count == n)
			break;
	}
	buf_release(&text);
}

/* Spec 3.9 step by step, from f's generators, which are left where upstream's are. */
static void plain_prefixes(struct fixture *f, struct workload *w)
{
	const struct dataset_opts *o = &f->opts;
	size_t n = (size_t)f->env.num_prompts, p = (size_t)o->prefix_repetition_num_prefixes;
	struct ids prefix = { 0 }, suffix = { 0 };
	struct buf text = { 0 };

	compat_rng_seed(&f->rng, (uint32_t)f->env.seed);
	for (size_t i = 0; i < p; i++) {
		add_block(f, &prefix, (size_t)o->prefix_repetition_prefix_len);
		for (size_t k = 0; k < n / p + (i < n % p); k++) {
			struct sample *s = workload_add(w);
			size_t prefix_count = prefix.count;

			add_block(f, &suffix, (size_t)o->prefix_repetition_suffix_len);
			ids_add(&prefix, suffix.id, suffix.count);
			buf_reset(&text);
			tokenizer_decode(f->tokenizer, prefix.id, prefix.count, false, &text);
			s->prompt = arena_str(&w->arena, buf_str(&text));
			s->prompt_len = (uint32_t)prefix.count;
			s->output_len = o->prefix_repetition_output_len;
			prefix.count = prefix_count;
		}
	}
	if (!o->disable_shuffle)
		pyrandom_shuffle(&f->rng.py, w->v, w->n, sizeof(*w->v));
	ids_release(&prefix);
	ids_release(&suffix);
	buf_release(&text);
}

static void prefixes_are_those_of_the_plain_loop(void **state)
{
	static const unsigned threads[] = { 1, 2, 5 };
	static const char *const model[] = { mixed, vanishing, NULL };

	(void)state;
	for (size_t k = 0; k < 9; k++) {
		struct workload plain = { 0 };
		struct fixture f, g;

		fixture_init(&f, model[k / 3]);
		f.env.num_prompts = 703;
		f.env.threads = threads[k % 3];
		f.env.seed = k / 3;
		f.opts.disable_shuffle = k % 2;
		g = f;
		plain_prefixes(&g, &plain);
		must_build(&f, "prefix_repetition");
		must_be_same(&f.w, &plain);
		/* The arrival process goes on from here. */
		assert_true(legacy_double(&f.rng.np) == legacy_double(&g.rng.np));
		assert_true(pyrandom_double(&f.rng.py) == pyrandom_double(&g.rng.py));
		workload_release(&plain);
		fixture_release(&f);
	}
}

static void prefixes_have_their_shares(void **state)
{
	size_t group = 0, size[3] = { 0 };
	struct fixture f;

	(void)state;
	fixture_init(&f, NULL);
	f.env.num_prompts = 10;
	f.opts.disable_shuffle = true;
	must_build(&f, "prefix_repetition");
	assert_int_equal(f.w.n, 10);
	for (size_t i = 0; i < 10; i++) {
		if (i && memcmp(f.w.v[i].prompt.p, f.w.v[i - 1].prompt.p, 40) != 0)
			group++;
		size[group]++;
		assert_int_equal(f.w.v[i].prompt_len, 30);
		assert_int_equal(f.w.v[i].output_len, 7);
	}
	assert_int_equal(size[0], 4);
	assert_int_equal(size[1], 3);
	assert_int_equal(size[2], 3);
	f.env.num_prompts = 2;
	assert_int_equal(build(&f, "prefix_repetition"), -1);
	assert_non_null(strstr(f.e.text, "must be at least --prefix-repetition-num-prefixes 3"));
	f.opts.prefix_repetition_num_prefixes = 0;
	assert_int_equal(build(&f, "prefix_repetition"), -1);
	fixture_release(&f);
}

/* ---- stopping ---- */

static void stop_at_once(void *self, size_t done, size_t total)
{
	(void)done;
	(void)total;
	atomic_store((atomic_bool *)self, true);
}

static void a_build_can_be_stopped(void **state)
{
	static const char *const name[] = { "random", "random-rerank", "prefix_repetition" };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		atomic_bool cancel = false;
		struct fixture f;

		fixture_init(&f, NULL);
		f.env.num_prompts = 5000;
		f.env.cancel = &cancel;
		f.env.progress = stop_at_once;
		f.env.self = &cancel;
		f.opts.random_input_len = 40;
		assert_int_equal(build(&f, name[i]), -1);
		assert_int_equal(f.e.code, ERR_CANCELLED);
		fixture_release(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lengths_are_upstreams),
		cmocka_unit_test(ids_run_from_the_offset),
		cmocka_unit_test(too_short_prompts_are_refused),
		cmocka_unit_test(lengths_have_a_limit),
		cmocka_unit_test(texts_are_those_of_the_plain_loop),
		cmocka_unit_test(random_is_on_its_own),
		cmocka_unit_test(ids_keep_lengths_and_prefix),
		cmocka_unit_test(batches_are_lists_of_texts),
		cmocka_unit_test(rerank_lists_have_the_specs_lengths),
		cmocka_unit_test(prefixes_are_those_of_the_plain_loop),
		cmocka_unit_test(prefixes_have_their_shares),
		cmocka_unit_test(a_build_can_be_stopped),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
