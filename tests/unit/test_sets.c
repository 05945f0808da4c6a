/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datasets against upstream's vectors (datasets spec 10.5) and its rules; the
 * whole lists against upstream's own code are in tests/peer/.
 *
 * threads: yes
 */
#include "data_rig.h"
#include "input/sets/datasets.h"

/* The lengths of 3.2 for the spec's own seeds; the sim vocabulary has S = 0. */
static void random_lengths_are_upstreams(void **state)
{
	static const int64_t output[] = { 103, 69, 73, 66 };
	struct fixture f;

	(void)state;
	fixture_init(&f, NULL, NULL);
	f.opts.input_range_ratio = f.opts.output_range_ratio = 0.5;
	assert_int_equal(build(&f, "random"), 0);
	assert_int_equal(f.w.n, 4);
	for (size_t i = 0; i < 4; i++) {
		char id[16];

		snprintf(id, sizeof(id), "r-%zu", i);
		assert_true(str_is(f.w.v[i].request_id, id));
		assert_int_equal(f.w.v[i].output_len, output[i]);
		assert_int_equal(tokenizer_count(f.tokenizer, f.w.v[i].prompt, false),
				 f.w.v[i].prompt_len);
	}
	fixture_release(&f);
}

/* The shared prefix comes first in every prompt, and adds to its length. */
static void random_prefix_is_shared(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, NULL, NULL);
	f.opts.random_prefix_len = 40;
	f.opts.random_input_len = 20;
	assert_int_equal(build(&f, "random"), 0);
	for (size_t i = 0; i < 4; i++)
		assert_in_range(f.w.v[i].prompt_len, 58, 64);
	for (size_t i = 1; i < 4; i++) {
		size_t same = 0;

		while (same < f.w.v[0].prompt.n && same < f.w.v[i].prompt.n &&
		       f.w.v[0].prompt.p[same] == f.w.v[i].prompt.p[same])
			same++;
		assert_true(same >= 100);
	}
	fixture_release(&f);
}

static void same_seed_same_prompts(void **state)
{
	struct fixture a, b;

	(void)state;
	fixture_init(&a, NULL, NULL);
	fixture_init(&b, NULL, NULL);
	assert_int_equal(build(&a, "random"), 0);
	assert_int_equal(build(&b, "random"), 0);
	for (size_t i = 0; i < 4; i++)
		assert_true(str_eq(a.w.v[i].prompt, b.w.v[i].prompt));
	assert_false(str_eq(a.w.v[0].prompt, a.w.v[1].prompt));
	workload_release(&b.w);
	b.env.seed = 1;
	assert_int_equal(build(&b, "random"), 0);
	assert_false(str_eq(a.w.v[0].prompt, b.w.v[0].prompt));
	fixture_release(&a);
	fixture_release(&b);
}

#define TURN(text) "{\"from\": \"x\", \"value\": \"" text "\"}"
#define ENTRY(a, b) "{\"id\": 1, \"conversations\": [" TURN(a) ", " TURN(b) "]}"
#define LONG_WORDS " abc def ghi jkl mno pqr stu vwx"

static const char sharegpt[] =
	"[" ENTRY("first prompt", "first long answer") ", "
	"{\"conversations\": [" TURN("lonely") "]}, {\"no\": 1}, "
	ENTRY("hi", "too short a prompt") ", " ENTRY("short answer", "ok") ", "
	ENTRY(LONG_WORDS, LONG_WORDS) "]";

/* Too short prompts and answers are dropped; what is missing is drawn again from the rest. */
static void sharegpt_filters_and_oversamples(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, "f.json", sharegpt);
	f.opts.disable_shuffle = true;
	assert_int_equal(build(&f, "sharegpt"), 0);
	assert_int_equal(f.w.n, 4);
	assert_true(str_is(f.w.v[0].prompt, "first prompt"));
	assert_true(str_is(f.w.v[1].prompt, LONG_WORDS));
	assert_int_equal(f.w.v[1].prompt_len, 8);
	assert_int_equal(f.w.v[1].output_len, 8);
	for (size_t i = 2; i < 4; i++) {
		assert_true(str_eq(f.w.v[i].prompt, f.w.v[0].prompt) ||
			    str_eq(f.w.v[i].prompt, f.w.v[1].prompt));
		assert_int_equal(f.w.v[i].request_id.p[2], '0' + (int)i);
	}
	fixture_release(&f);
}

static void sharegpt_takes_a_fixed_answer_length(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, "f.json", sharegpt);
	f.opts.disable_shuffle = f.opts.no_oversample = true;
	f.opts.sharegpt_output_len = (struct opt_int){ true, 3 };
	assert_int_equal(build(&f, "sharegpt"), 0);
	assert_int_equal(f.w.n, 3); /* the short answer does not matter any more */
	assert_int_equal(f.w.v[0].output_len, 3);
	fixture_release(&f);
}

/* More conversations than are counted at once, every third too short, all in their order. */
static void sharegpt_keeps_the_order_of_many(void **state)
{
	const size_t wanted = 2500;
	struct buf text = { 0 };
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < 4000; i++)
		buf_printf(&text, "%s{\"conversations\": [" TURN("%zu%.*s") ", " TURN("answer %zu") "]}",
			   i ? ", " : "[", i, i % 3 ? 32 : 0, LONG_WORDS, i);
	buf_add_char(&text, ']');
	for (unsigned threads = 1; threads <= 4; threads += 3) {
		fixture_init(&f, "f.json", text.data);
		f.opts.disable_shuffle = true;
		f.env.num_prompts = (int64_t)wanted;
		f.env.threads = threads;
		assert_int_equal(build(&f, "sharegpt"), 0);
		assert_int_equal(f.w.n, wanted);
		for (size_t k = 0, i = 0; k < wanted; i++) {
			char want[64];

			snprintf(want, sizeof(want), "%zu%.*s", i, i % 3 ? 32 : 0, LONG_WORDS);
			if (strlen(want) < 4)
				continue;
			assert_true(str_is(f.w.v[k].prompt, want));
			assert_int_equal(f.w.v[k].prompt_len,
					 tokenizer_count(f.tokenizer, str_of(want), true));
			snprintf(want, sizeof(want), "answer %zu", i);
			assert_int_equal(f.w.v[k++].output_len, strlen(want));
		}
		fixture_release(&f);
	}
	buf_release(&text);
}

static void custom_reads_lines(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, "f.jsonl", "{\"prompt\": \"a\\u00e9\", \"output_tokens\": 5}\n\n"
				   "{\"output_tokens\": 7.0, \"prompt\": \"b\"}");
	f.opts.disable_shuffle = f.opts.no_oversample = true;
	f.opts.custom_output_len = -1;
	assert_int_equal(build(&f, "custom"), 0);
	assert_int_equal(f.w.n, 2);
	assert_true(str_is(f.w.v[0].prompt, "a\xc3\xa9"));
	assert_int_equal(f.w.v[0].prompt_len, 3);
	assert_int_equal(f.w.v[0].output_len, 5);
	assert_int_equal(f.w.v[1].output_len, 7);
	assert_int_equal(f.w.notes.n, 0);
	fixture_release(&f);
}

/* Keys of a row that are not used are named, once per key. */
static void keys_without_use_are_named(void **state)
{
	static const char rows[] =
		"{\"prompt\": \"a\", \"urgency\": 1, \"output_tokens\": 3}\n"
		"{\"prompt\": \"b\", \"messages\": {\"prompt\": 1}, \"urgency\": 2, \"top_k\": 1}\n"
		"{\"prompt\": \"c\"}\n";
	struct fixture f;
	struct buf text = { 0 }, want = { 0 };

	(void)state;
	fixture_init(&f, "f.jsonl", rows);
	f.opts.disable_shuffle = true;
	f.env.num_prompts = 9;
	assert_int_equal(build(&f, "custom"), 0);
	buf_printf(&want, "%s has 3 requests to send, so 6 of the 9 are repeats, which a prefix cache "
		   "answers faster: --no-oversample sends each once, --prompt-salt request makes all "
		   "different\n", f.opts.path);
	buf_printf(&want, "%s: \"urgency\" of 2 rows is not used\n%s: \"output_tokens\" of 1 row is "
		   "not used, because --custom-output-len is 256; -1 uses it\n%s: \"messages\" of 1 "
		   "row is not used", f.opts.path, f.opts.path, f.opts.path);
	assert_true(str_eq(f.w.notes, buf_str(&want)));
	fixture_release(&f);

	buf_add_text(&text, "{\"prompt\": \"a\"");
	for (int i = 0; i < UNUSED_KEYS_MAX + 3; i++)
		buf_printf(&text, ", \"key%d\": 0", i);
	buf_add_text(&text, "}\n");
	fixture_init(&f, "f.jsonl", text.data);
	assert_int_equal(build(&f, "custom"), 0);
	assert_non_null(memmem(f.w.notes.p, f.w.notes.n, "\"key15\"", 7));
	assert_null(memmem(f.w.notes.p, f.w.notes.n, "\"key16\"", 7));
	assert_non_null(memmem(f.w.notes.p, f.w.notes.n, "keys beyond these occur 3 times", 31));
	fixture_release(&f);
	buf_release(&text);
	buf_release(&want);
}

/* Every refusal names the file, and the line where there is one. */
static void bad_files_are_refused(void **state)
{
	static const struct {
		const char *dataset, *name, *content;
		int64_t custom_output_len;
		const char *want;
	} row[] = {
		{ "custom", "f.json", "{}", 1, "custom datasets are .jsonl files" },
		{ "custom", "f.jsonl", "", 1, "the file has no prompts" },
		{ "custom", "f.jsonl", "{\"x\": 1}", 1, "no line has a \"prompt\" field" },
		{ "custom", "f.jsonl", "{\"prompt\": \"a\"}\n{bad", 1, ": line 2, column 2" },
		{ "custom", "f.jsonl", "{\"prompt\": \"a\"}\n[]", 1, ":2: expected an object" },
		{ "custom", "f.jsonl", "{\"prompt\": 5}", 1, ":1: \"prompt\" must be text" },
		{ "custom", "f.jsonl", "{\"prompt\": \"a\"}", -1, ":1: no \"output_tokens\" field" },
		{ "custom", "f.jsonl", "{\"prompt\": \"a\", \"output_tokens\": 1.5}", -1,
		  ":1: \"output_tokens\" must be a whole number" },
		{ "sharegpt", "f.json", "{}", 1, "is one JSON array" },
		{ "sharegpt", "f.json", "[{\"conversations\":[{},{}]}]", 1, "has no text \"value\"" },
		{ "sharegpt", "f.json", "[]", 1, "has no request that passes the length filter" },
		{ "sharegpt", "f.json", "[1,", 1, "line 1" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct fixture f;

		fixture_init(&f, row[i].name, row[i].content);
		f.opts.custom_output_len = row[i].custom_output_len;
		f.opts.disable_shuffle = true;
		assert_int_equal(build(&f, row[i].dataset), -1);
		if (!strstr(f.e.text, row[i].want) || !strstr(f.e.text, f.path))
			fail_msg("row %zu: %s", i, f.e.text);
		fixture_release(&f);
	}
}

static void names_are_forgiving(void **state)
{
	size_t n;
	const struct dataset *const *all = dataset_all(&n);

	(void)state;
	assert_null(dataset_find("randomx"));
	assert_ptr_equal(dataset_find("spec-bench"), dataset_find("spec_bench"));
	for (size_t i = 0; i < n; i++)
		assert_ptr_equal(dataset_find(all[i]->name), all[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_lengths_are_upstreams),
		cmocka_unit_test(random_prefix_is_shared),
		cmocka_unit_test(same_seed_same_prompts),
		cmocka_unit_test(sharegpt_filters_and_oversamples),
		cmocka_unit_test(sharegpt_takes_a_fixed_answer_length),
		cmocka_unit_test(sharegpt_keeps_the_order_of_many),
		cmocka_unit_test(custom_reads_lines),
		cmocka_unit_test(keys_without_use_are_named),
		cmocka_unit_test(bad_files_are_refused),
		cmocka_unit_test(names_are_forgiving),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
