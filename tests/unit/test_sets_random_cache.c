/* SPDX-License-Identifier: Apache-2.0 */
/* Prompts of which some share their beginning; long prompts of speed_bench that are left out. */
/* threads: yes */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/json/read.h"
#include "data_rig.h"

static size_t ids_of(struct str json, int64_t *id)
{
	struct json_scan scan = { json, 0 };
	struct json_slice all, v;
	struct json_iter it;
	struct str key;
	size_t n = 0;

	assert_int_equal(json_next(&scan, &all, NULL), 0);
	it = json_iter(all);
	while (json_each(&it, &key, &v) == 1)
		assert_true(json_to_i64(v, &id[n++]));
	return n;
}

static size_t in_common(const int64_t *a, size_t n, const int64_t *b, size_t m)
{
	size_t i = 0;

	while (i < n && i < m && a[i] == b[i])
		i++;
	return i;
}

static void some_share_their_beginning(void **state)
{
	int64_t plain[64], id[64], first[64];
	struct fixture f, without;
	size_t hits = 0, n_first = 0;

	(void)state;
	fixture_init(&f, NULL, NULL);
	fixture_init(&without, NULL, NULL);
	f.env.num_prompts = without.env.num_prompts = 40;
	f.opts.random_input_len = without.opts.random_input_len = 40;
	f.opts.input_range_ratio = without.opts.input_range_ratio = 0.5;
	f.opts.prompt_token_ids = without.opts.prompt_token_ids = true;
	f.opts.random_cache_hit_fraction = 0.3;
	f.opts.random_cache_ratio = 0.75;
	assert_int_equal(build(&without, "random"), 0);
	assert_int_equal(build(&f, "random"), 0);
	assert_int_equal(f.w.n, 40);
	for (size_t i = 0; i < f.w.n; i++) {
		size_t n = ids_of(f.w.v[i].prompt, id), was = ids_of(without.w.v[i].prompt, plain);
		size_t shared = n * 3 / 4;

		assert_int_equal(n, was);
		assert_int_equal(f.w.v[i].prompt_len, n);
		if (str_eq(f.w.v[i].prompt, without.w.v[i].prompt))
			continue;
		/* The end is its own, the beginning that of all hits. */
		assert_memory_equal(id + shared, plain + shared, (n - shared) * sizeof(*id));
		if (hits++ == 0) {
			memcpy(first, id, sizeof(first));
			n_first = shared;
		}
		assert_true(in_common(id, shared, first, n_first) ==
			    (shared < n_first ? shared : n_first));
	}
	assert_int_equal(hits, 12);
	fixture_release(&f);
	fixture_release(&without);
}

static void all_of_a_prompt_can_be_shared(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, NULL, NULL);
	f.env.num_prompts = 3;
	f.opts.random_input_len = 5;
	f.opts.prompt_token_ids = true;
	f.opts.random_cache_hit_fraction = f.opts.random_cache_ratio = 1;
	f.opts.random_batch_size = 1;
	assert_int_equal(build(&f, "random"), 0);
	for (size_t i = 0; i < 3; i++) {
		int64_t id[8];

		assert_int_equal(ids_of(f.w.v[i].prompt, id), 5);
		assert_true(str_eq(f.w.v[i].prompt, f.w.v[0].prompt));
	}
	fixture_release(&f);
}

static void what_cannot_be_shared_is_refused(void **state)
{
	static const struct {
		double fraction, ratio;
		bool is_ids;
		int64_t prefix;
		const char *want;
	} row[] = {
		{ 0.5, 0, true, 0, "--random-cache-hit-fraction and --random-cache-ratio must be given together" },
		{ 0, 0.5, true, 0, "--random-cache-hit-fraction and --random-cache-ratio must be given together" },
		{ 0.5, 0.5, false, 0, "--random-cache-ratio needs --prompt-token-ids: only ids are shared "
		  "exactly" },
		{ 0.5, 0.5, true, 4, "--random-cache-ratio cannot be combined with --random-prefix-len, which "
		  "all prompts share" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct fixture f;

		fixture_init(&f, NULL, NULL);
		f.opts.random_cache_hit_fraction = row[i].fraction;
		f.opts.random_cache_ratio = row[i].ratio;
		f.opts.prompt_token_ids = row[i].is_ids;
		f.opts.random_prefix_len = row[i].prefix;
		assert_int_equal(build(&f, "random"), -1);
		assert_int_equal(f.e.code, ERR_USAGE);
		assert_string_equal(f.e.text, row[i].want);
		fixture_release(&f);
	}
}

#define ROW(text) "{\"messages\": [{\"role\": \"user\", \"content\": \"" text "\"}]}\n"

static void long_prompts_are_left_out(void **state)
{
	struct fixture f;

	(void)state;
	for (int64_t limit = 2; limit <= 10; limit += 4) {
		fixture_init(&f, "qualitative.jsonl", ROW("aaaa") ROW("aaaaaaaa") ROW("aa aa"));
		f.opts.path = dir;
		f.opts.no_oversample = true;
		f.opts.disable_shuffle = true;
		f.opts.speed_bench_max_input_len = (struct opt_int){ .is_set = true, .v = limit };
		if (limit == 2) {
			assert_int_equal(build(&f, "speed_bench"), -1);
			assert_string_equal(f.e.text, "--speed-bench-max-input-len 2: every prompt "
					    "is longer (3); nothing to send");
		} else {
			assert_int_equal(build(&f, "speed_bench"), 0);
			assert_int_equal(f.w.n, limit == 6 ? 2 : 3);
			assert_int_equal(f.w.notes.n > 0, limit == 6);
			if (limit == 6)
				assert_non_null(strstr(f.w.notes.p, "1 prompt was skipped for having "
						       "more than --speed-bench-max-input-len 6 tokens"));
		}
		fixture_release(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(some_share_their_beginning),
		cmocka_unit_test(all_of_a_prompt_can_be_shared),
		cmocka_unit_test(what_cannot_be_shared_is_refused),
		cmocka_unit_test(long_prompts_are_left_out),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
