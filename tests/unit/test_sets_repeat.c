/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that are sent again (data/repeat.h), and the prompts of vLLM's scripts about prefix
 * caching (data/scripted.h). Orders and ids that are drawn were made with CPython's random.
 */
#include "data_rig.h"
#include "input/data/repeat.h"
#include "input/sets/datasets.h"

#include <math.h>

static int build_set(struct fixture *f, const struct dataset *d)
{
	workload_release(&f->w);
	compat_rng_seed(&f->rng, (uint32_t)f->env.seed);
	return d->check(&f->opts, &f->env, &f->e) < 0 ||
	       d->build(&f->opts, &f->env, &f->rng, &f->w, &f->e) < 0 ||
	       dataset_repeat(&f->w, &f->opts, &f->rng, &f->e) < 0 ? -1 : 0;
}

/* The documents that are sent, by their first character. */
static void assert_order(struct fixture *f, int64_t documents, int64_t count, const char *order,
			 const char *want)
{
	char got[64] = "";

	f->opts.document_length = 2;
	f->opts.repeat_count = count;
	f->opts.repeat_order = order;
	f->env.num_prompts = documents;
	assert_int_equal(build_set(f, &dataset_documents), 0);
	for (size_t i = 0; i < f->w.n; i++) {
		got[2 * i] = f->w.v[i].prompt.p[0];
		got[2 * i + 1] = i + 1 < f->w.n ? ' ' : 0;
	}
	assert_string_equal(got, want);
}

/* Cases L1 and L2 of the conversations specification. */
static void documents_are_repeated_as_upstream(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, NULL, NULL);
	assert_order(&f, 3, 2, "tile", "0 1 2 0 1 2");
	assert_prompt(&f, 1, "1hi hi");
	assert_prompt(&f, 4, "1hi hi");
	assert_order(&f, 3, 2, "interleave", "0 0 1 1 2 2");
	assert_order(&f, 4, 2, "random", "0 1 1 2 0 3 3 2");
	f.env.seed = 5;
	assert_order(&f, 3, 4, "random", "1 2 2 1 1 0 0 0 2 2 1 0");
	assert_order(&f, 3, 4, NULL, "1 2 2 1 1 0 0 0 2 2 1 0");
	assert_string_equal(f.w.repeats->order, "random");
	assert_int_equal(f.w.repeats->n, 3);
	assert_int_equal(f.w.repeats->first[0], 5);
	assert_int_equal(f.w.repeats->first[1], 0);
	assert_int_equal(f.w.repeats->first[2], 1);
	assert_order(&f, 3, 1, NULL, "0 1 2");
	assert_null(f.w.repeats);
	fixture_release(&f);
}

static struct sample *add(struct workload *w, const char *prompt, uint32_t tokens, const char *id)
{
	struct sample *s = workload_add(w);

	s->prompt = str_of(prompt);
	s->prompt_len = tokens;
	s->request_id = str_of(id);
	return s;
}

static void sorting_is_by_length_and_stable(void **state)
{
	static const char *const want[] = { "b", "d", "b", "d", "a", "c", "a", "c" };
	struct dataset_opts o = { .repeat_count = 2, .repeat_order = "sorted" };
	struct workload w = { 0 };
	struct compat_rng rng;
	struct err e = { 0 };

	(void)state;
	compat_rng_seed(&rng, 0);
	add(&w, "a", 9, "");
	add(&w, "b", 4, "");
	add(&w, "c", 9, "");
	add(&w, "d", 4, "");
	assert_int_equal(dataset_repeat(&w, &o, &rng, &e), 0);
	assert_int_equal(w.n, 8);
	for (size_t i = 0; i < 8; i++)
		assert_true(str_is(w.v[i].prompt, want[i]));
	workload_release(&w);
}

/* Ids in flight are unique; all else of a copy is the same. */
static void copies_differ_in_their_ids_alone(void **state)
{
	static const char *const want[] = { "r-0", "r-1", "r-0-2", "r-1-2", "r-0-3", "r-1-3" };
	struct dataset_opts o = { .repeat_count = 3, .repeat_order = "tile" };
	struct workload w = { 0 };
	struct compat_rng rng;
	struct err e = { 0 };

	(void)state;
	compat_rng_seed(&rng, 0);
	add(&w, "one", 3, "r-0")->output_len = 7;
	add(&w, "two", 3, "r-1")->output_len = 8;
	assert_int_equal(dataset_repeat(&w, &o, &rng, &e), 0);
	for (size_t i = 0; i < 6; i++) {
		assert_true(str_is(w.v[i].request_id, want[i]));
		assert_true(str_is(w.v[i].prompt, i % 2 ? "two" : "one"));
		assert_int_equal(w.v[i].output_len, i % 2 ? 8 : 7);
	}
	workload_release(&w);
}

static void what_cannot_be_repeated_is_refused(void **state)
{
	struct dataset_opts o = { .repeat_count = REQUESTS_MAX };
	struct sessions sessions = { 0 };
	struct workload w = { 0 };
	struct compat_rng rng;
	struct err e = { 0 };

	(void)state;
	compat_rng_seed(&rng, 0);
	add(&w, "a", 1, "");
	add(&w, "b", 1, "");
	assert_int_equal(dataset_repeat(&w, &o, &rng, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	assert_non_null(strstr(e.text, "--repeat-count 268435456: 2 requests"));
	w.sessions = &sessions;
	o.repeat_count = 2;
	assert_int_equal(dataset_repeat(&w, &o, &rng, &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
	assert_non_null(strstr(e.text, "conversations"));
	workload_release(&w);
}

/* "stem" is shared by half of the bytes, so by half of the tokens. */
static void ideal_reuse_is_what_was_seen_before(void **state)
{
	struct dataset_opts o = { .repeat_count = 2, .repeat_order = "tile" };
	struct workload w = { 0 };
	struct compat_rng rng;
	struct err e = { 0 };

	(void)state;
	compat_rng_seed(&rng, 0);
	add(&w, "stemABCD", 8, "");
	add(&w, "stemEFGH", 8, "");
	assert_true(dataset_ideal_reuse(&w, false) == 0.25);
	assert_true(dataset_ideal_reuse(&w, true) == 1);
	assert_int_equal(dataset_repeat(&w, &o, &rng, &e), 0);
	assert_true(dataset_ideal_reuse(&w, false) == 0.625);
	w.v[0].media = STR("[{}]");
	assert_true(isnan(dataset_ideal_reuse(&w, false)));
	workload_release(&w);
}

/* ---- vLLM's scripts ---- */

static void assert_ids(const struct fixture *f, size_t i, const char *want)
{
	struct ids ids = { 0 };
	struct buf text = { 0 };

	assert_int_equal(tokenizer_encode(f->tokenizer, f->w.v[i].prompt, false, &ids), 0);
	for (size_t k = 0; k < ids.count; k++)
		buf_printf(&text, "%s%u", k ? ", " : "", ids.id[k]);
	assert_string_equal(text.data, want);
	buf_release(&text);
	ids_release(&ids);
}

#define PREFIX "15057, 13515, 7499, 4617, "
#define FIRST PREFIX "8665, 16373, 14797, 17257, 6384, 15900, 3895, 2483"
#define SECOND PREFIX "13477, 11026, 4467, 16222, 17525"

/* All ids of the built-in tokenizer but its special one, in ascending order. */
static void prompts_share_a_random_prefix(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, NULL, NULL);
	f.env.num_prompts = 3;
	f.opts.range_min = 8;
	f.opts.range_max = 12;
	f.opts.range_prefix = 4;
	f.opts.custom_output_len = 10;
	f.opts.repeat_order = "tile";
	assert_int_equal(build_set(&f, &dataset_length_range), 0);
	assert_int_equal(f.w.n, 3);
	assert_ids(&f, 0, FIRST);
	assert_ids(&f, 1, SECOND);
	assert_int_equal(f.w.v[0].prompt_len, 12);
	assert_int_equal(f.w.v[1].prompt_len, 9);
	assert_int_equal(f.w.v[1].output_len, 10);
	f.opts.repeat_count = 2;
	f.opts.repeat_order = "random"; /* 0 2 2 0 1 1 */
	f.opts.exact_tokens = true;
	assert_int_equal(build_set(&f, &dataset_length_range), 0);
	assert_prompt(&f, 3, "[" FIRST "]");
	assert_prompt(&f, 4, "[" SECOND "]");
	assert_prompt(&f, 5, "[" SECOND "]");
	assert_int_equal(f.w.v[3].kind, PROMPT_JSON);
	f.opts.range_prefix = 9;
	assert_int_equal(build_set(&f, &dataset_length_range), -1);
	assert_non_null(strstr(f.e.text, "--prefix-len 9 is more than the shortest prompt of "
			       "--input-length-range 8:12"));
	fixture_release(&f);
}

#define TALK(text) "{\"conversations\": [{\"value\": \"" text "\"}, {\"value\": \"yes\"}]}"

static void conversations_are_kept_by_length(void **state)
{
	static const char *const want[] = { "DDDDDDD", "AAAAA", "EEEEEE", "AAAAA", "DDDDDDD", "EEEEEE", };
	struct fixture f;

	(void)state;
	fixture_init(&f, "talks.json", "[" TALK("AAAAA") "," TALK("BBBBBBBBB") "," TALK("CCC") ","
		     "{\"conversations\": [{\"value\": \"alone\"}]}," TALK("DDDDDDD") ","
		     TALK("EEEEEE") "," TALK("FFFFFFFFFFFF") "]");
	f.env.num_prompts = 3;
	f.env.seed = 3;
	f.opts.range_min = 5;
	f.opts.range_max = 9;
	f.opts.repeat_count = 2;
	f.opts.repeat_order = "random";
	assert_int_equal(build_set(&f, &dataset_length_range), 0);
	assert_int_equal(f.w.n, 6);
	for (size_t i = 0; i < 6; i++)
		assert_prompt(&f, i, want[i]);
	f.opts.range_min = f.opts.range_max = 40;
	assert_int_equal(build_set(&f, &dataset_length_range), -1);
	assert_non_null(strstr(f.e.text, "--input-length-range 40:40: none of the 6 conversations"));
	fixture_release(&f);
}

static void documents_can_have_exact_lengths(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, NULL, NULL);
	f.env.num_prompts = 12;
	f.opts.document_length = 100;
	f.opts.document_head = "This is warm up request ";
	f.opts.exact_tokens = true;
	assert_int_equal(build_set(&f, &dataset_documents), 0);
	for (size_t i = 0; i < 12; i++) {
		assert_int_equal(f.w.v[i].prompt_len, 100);
		assert_int_equal(tokenizer_count(f.tokenizer, f.w.v[i].prompt, true), 100);
	}
	assert_true(str_starts(f.w.v[11].prompt, STR("This is warm up request 11hi hi hi")));
	f.opts.exact_tokens = false;
	f.opts.document_length = 0;
	assert_int_equal(build_set(&f, &dataset_documents), 0);
	assert_prompt(&f, 3, "This is warm up request 3");
	fixture_release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(documents_are_repeated_as_upstream),
		cmocka_unit_test(sorting_is_by_length_and_stable),
		cmocka_unit_test(copies_differ_in_their_ids_alone),
		cmocka_unit_test(what_cannot_be_repeated_is_refused),
		cmocka_unit_test(ideal_reuse_is_what_was_seen_before),
		cmocka_unit_test(prompts_share_a_random_prefix),
		cmocka_unit_test(conversations_are_kept_by_length),
		cmocka_unit_test(documents_can_have_exact_lengths),
	};

	return cmocka_run_group_tests_name("data_repeat", tests, make_dir, remove_dir);
}
