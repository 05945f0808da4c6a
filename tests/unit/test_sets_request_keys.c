/* SPDX-License-Identifier: Apache-2.0 */
/* What rows and sets say of their own requests: read, merged, refused with their place; P1. */
/* threads: yes */
#include "data_rig.h"

#include "input/data/request_keys.h"

/* A set of one line of one's own. */
static int build_line(struct fixture *f, const char *name, const char *line)
{
	char rows[1024];

	snprintf(rows, sizeof(rows), "{\"prompt\": \"a\"}\n%s\n", line);
	fixture_init(f, "f.jsonl", rows);
	f->opts.disable_shuffle = f->opts.no_oversample = true;
	return build(f, name);
}

static void rows_have_keys(void **state)
{
	static const struct { const char *row, *overrides, *headers; int64_t priority, output; }
	cases[] = {
		{ "{\"prompt\": \"b\"}", "", "", 0, 256 },
		{ "{\"prompt\": \"b\", \"priority\": -3}", "{\"priority\": -3}", "", -3, 256 },
		{ "{\"prompt\": \"b\", \"priority\": 9223372036854775807, \"seed\": null}",
		  "{\"priority\": 9223372036854775807}", "", INT64_MAX, 256 },
		{ "{\"prompt\": \"b\", \"extra_body\": {\"priority\": 2, \"x\": [1, {\"y\": \"\\u00e9\"}]}}",
		  "{\"priority\": 2, \"x\": [1, {\"y\": \"\\u00e9\"}]}", "", 2, 256 },
		{ "{\"prompt\": \"b\", \"temperature\": 0.5, \"extra_body\": {\"a\": 1}, \"top_k\": 5, "
		  "\"stop\": \"x\", \"ignore_eos\": false, \"min_p\": 0.25}",
		  "{\"a\": 1, \"temperature\": 0.5, \"top_k\": 5, \"stop\": \"x\", \"ignore_eos\": false, "
		  "\"min_p\": 0.25}", "", 0, 256 },
		{ "{\"prompt\": \"b\", \"max_tokens\": 7, \"output_tokens\": 9}", "{\"max_tokens\": 7}", "",
		  0, 7 },
		{ "{\"prompt\": \"b\", \"priority\": 2.0, \"headers\": {\"X-A\": \"b c\"}}",
		  "{\"priority\": 2}", "{\"X-A\": \"b c\"}", 2, 256 },
		{ "{\"prompt\": \"b\", \"structured_outputs\": {\"choice\": [\"a\"]}}",
		  "{\"structured_outputs\": {\"choice\": [\"a\"]}}", "", 0, 256 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fixture f;
		const struct sample *s;

		if (build_line(&f, "custom", cases[i].row) < 0)
			fail_msg("%s: %s", cases[i].row, f.e.text);
		s = &f.w.v[1];
		if (!str_is(s->overrides, cases[i].overrides) ||
		    !str_is(s->headers, cases[i].headers))
			fail_msg("%s: %.*s and %.*s", cases[i].row, (int)s->overrides.n, s->overrides.p,
				 (int)s->headers.n, s->headers.p);
		assert_int_equal(s->priority, cases[i].priority);
		assert_int_equal(s->output_len, cases[i].output);
		assert_int_equal(f.w.has_priorities, strstr(cases[i].overrides, "priority") != NULL);
		assert_int_equal(f.w.v[0].overrides.n, 0);
		fixture_release(&f);
	}
}

/* One sentence with file, line and value. */
static void wrong_values_are_refused(void **state)
{
	static const struct { const char *key, *why; } cases[] = {
		{ "\"priority\": \"high\"", "\"priority\" must be a whole number of 64 bits (the lower, the "
		  "earlier), got \"high\"" },
		{ "\"priority\": 1.5", "\"priority\" must be a whole number" },
		{ "\"priority\": 9223372036854775808", "\"priority\" must be a whole number" },
		{ "\"priority\": true", "\"priority\" must be a whole number" },
		{ "\"extra_body\": {\"priority\": \"low\"}", "\"priority\" must be a whole number" },
		{ "\"extra_body\": []", "\"extra_body\" must be an object of members for the request's "
		  "body, got []" },
		{ "\"extra_body\": \"x\"", "\"extra_body\" must be an object" },
		{ "\"headers\": [\"a\"]", "\"headers\" must be an object of names and texts, got [\"a\"]" },
		{ "\"headers\": {\"X\": 1}", "\"headers\": \"X\" must be a text, got 1" },
		{ "\"headers\": {\"Content-Length\": \"3\"}", "\"headers\": \"Content-Length\" is set by "
		  "profllm itself" },
		{ "\"headers\": {\"transfer-encoding\": \"chunked\"}", "is set by profllm itself" },
		{ "\"headers\": {\"x-request-id\": \"1\"}", "is set by profllm itself" },
		{ "\"headers\": {\"X\": \"a\\r\\nY: b\"}", "\"headers\": \"X\" is not a valid header" },
		{ "\"headers\": {\"X Y\": \"a\"}", "\"headers\": \"X Y\" is not a valid header" },
		{ "\"headers\": {\"X\\nY\": \"a\"}", "is not a valid header" },
		{ "\"temperature\": \"0\"", "\"temperature\" must be a number, got \"0\"" },
		{ "\"temperature\": NaN", "\"temperature\" must be a number" },
		{ "\"top_k\": 1.5", "\"top_k\" must be a whole number, got 1.5" },
		{ "\"max_tokens\": -1", "\"max_tokens\" must be a whole number of tokens" },
		{ "\"ignore_eos\": 1", "\"ignore_eos\" must be true or false, got 1" },
		{ "\"stop\": 1", "\"stop\" must be a text or a list, got 1" },
		{ "\"structured_outputs\": [1]", "\"structured_outputs\" must be an object" },
		{ "\"seed\": 1, \"extra_body\": {\"seed\": 2}", "\"seed\" is given in the row and in its "
		  "\"extra_body\"" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char row[512], want[512];
		struct fixture f;

		snprintf(row, sizeof(row), "{\"prompt\": \"b\", %s}", cases[i].key);
		assert_int_equal(build_line(&f, "custom", row), -1);
		snprintf(want, sizeof(want), "%s:2: ", f.path);
		if (!strstr(f.e.text, want) || !strstr(f.e.text, cases[i].why))
			fail_msg("%s: %s", row, f.e.text);
		fixture_release(&f);
	}
}

/* Without an option each row says how long its answer may be, under one name or the other. */
static void a_length_is_a_length(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, "f.jsonl", "{\"prompt\": \"a\", \"max_tokens\": 3}\n"
				   "{\"prompt\": \"b\", \"output_tokens\": 4}\n");
	f.opts.disable_shuffle = f.opts.no_oversample = true;
	f.opts.custom_output_len = -1;
	assert_int_equal(build(&f, "custom"), 0);
	assert_int_equal(f.w.v[0].output_len, 3);
	assert_int_equal(f.w.v[1].output_len, 4);
	fixture_release(&f);
}

/* Other sets' rows are other people's: a column of that name is none of ours. */
static void sets_of_others_have_none(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, "f.jsonl", "{\"turns\": [\"a\"], \"category\": \"x\", \"priority\": \"high\"}\n");
	f.opts.no_oversample = true;
	assert_int_equal(build(&f, "spec_bench"), 0);
	assert_int_equal(f.w.v[0].overrides.n, 0);
	assert_false(f.w.has_priorities);
	fixture_release(&f);
}

static void keys_are_laid_over(void **state)
{
	struct arena a = { 0 };
	struct sample s = { .overrides = STR("{\"b\": 2, \"c\": 3}"), .headers = STR("{\"x-a\": \"1\"}") };
	const struct sample under = {
		.overrides = STR("{\"a\": 1, \"b\": 0, \"priority\": 4}"), .priority = 4,
		.headers = STR("{\"X-A\": \"0\", \"X-B\": \"0\"}"),
	};

	(void)state;
	request_keys_lay(&s, &under, &a);
	assert_true(str_is(s.overrides, "{\"a\": 1, \"b\": 2, \"priority\": 4, \"c\": 3}"));
	assert_true(str_is(s.headers, "{\"X-A\": \"1\", \"X-B\": \"0\"}"));
	assert_int_equal(s.priority, 4);
	request_keys_put(&s, "priority", STR("5"), &a);
	assert_true(request_keys_has(&s, "priority"));
	assert_true(str_is(s.overrides, "{\"a\": 1, \"b\": 2, \"priority\": 5, \"c\": 3}"));
	arena_release(&a);
}

static void sampling_is_picked_out(void **state)
{
	const struct sample s = { .overrides = STR("{\"priority\": 1, \"top_k\": 3, \"x\": 1, "
						   "\"ignore_eos\": true, \"max_tokens\": 4, "
						   "\"temperature\": 0.5}") };
	const struct sample none = { .overrides = STR("{\"priority\": 1}") };
	struct buf out = { 0 };

	(void)state;
	request_keys_sampling(&s, &out);
	assert_string_equal(out.data, "{\"top_k\": 3, \"temperature\": 0.5}");
	buf_reset(&out);
	request_keys_sampling(&none, &out);
	assert_int_equal(out.len, 0);
	buf_release(&out);
}

/* P1: seed 0, ten requests, no dataset. */
static void priorities_are_pythons(void **state)
{
	static const int64_t want[] = { 1, 1, 0, 0, 1, 0, 1, 0, 0, 1 };
	struct fixture f;

	(void)state;
	fixture_init(&f, NULL, NULL);
	f.env.num_prompts = 10;
	f.opts.random_input_len = 4;
	f.opts.random_output_len = 5;
	assert_int_equal(build(&f, "prioritization"), 0);
	assert_int_equal(f.w.n, 10);
	assert_true(f.w.has_priorities);
	for (size_t i = 0; i < 10; i++) {
		assert_prompt(&f, i, "hihihi");
		assert_int_equal(f.w.v[i].priority, want[i]);
		assert_true(str_is(f.w.v[i].overrides, want[i] ? "{\"priority\": 1}" :
								 "{\"priority\": 0}"));
		assert_int_equal(f.w.v[i].output_len, 5);
		/* Counted, not what was asked for: the rig's tokens are bytes here. */
		assert_int_equal(f.w.v[i].prompt_len, 6);
	}
	assert_non_null(strstr(f.w.notes.p, "prompts have 6 tokens, not the 4"));
	fixture_release(&f);
}

/* With a file: shuffled, then one draw for each row that is kept; fewer rows are fewer requests. */
static void conversations_have_priorities(void **state)
{
	struct buf text = { 0 };
	struct fixture f;
	struct pyrandom g;
	size_t order[7];

	(void)state;
	buf_add_text(&text, "[");
	for (int i = 0; i < 6; i++)
		buf_printf(&text, "{\"conversations\": [{\"value\": \"%s %d\"}, {\"value\": \"long answer\"}]"
			   "}, ", i == 2 ? "" : "a question number", i);
	buf_add_text(&text, "{\"conversations\": [{\"value\": \"alone\"}]}]");
	fixture_init(&f, "s.json", text.data);
	f.env.num_prompts = 50;
	assert_int_equal(build(&f, "prioritization"), 0);
	assert_int_equal(f.w.n, 5); /* one is too short, one has one turn */
	pyrandom_seed(&g, 0);
	for (size_t i = 0; i < 6; i++)
		order[i] = i;
	pyrandom_shuffle(&g, order, 6, sizeof(*order));
	for (size_t i = 0, k = 0; i < 6; i++) {
		char want[64];

		if (order[i] == 2)
			continue;
		snprintf(want, sizeof(want), "a question number %zu", order[i]);
		assert_prompt(&f, k, want);
		assert_int_equal(f.w.v[k].priority, pyrandom_double(&g) < 0.5 ? 0 : 1);
		k++;
	}
	fixture_release(&f);

	fixture_init(&f, "s.json", text.data);
	f.opts.sharegpt_output_len = (struct opt_int){ .is_set = true, .v = 3 };
	assert_refused(&f, "prioritization", "--output-len: expected at least 4 tokens");
	fixture_release(&f);
	buf_release(&text);
}

static void classes_are_parsed(void **state)
{
	static const char *const wrong[] = {
		"", "0", "0:", "a:1", "0:0", "0:-1", "0:1,", "0:1,0:1", "0:inf", "1.5:1", "0:1;1:1",
	};
	struct priority_classes c;
	struct workload w = { 0 };
	struct pyrandom g;
	size_t of[3] = { 0 };
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_int_equal(priority_classes_parse("x", wrong[i], &c, &e), -1);
		assert_int_equal(e.code, ERR_USAGE);
	}
	assert_int_equal(priority_classes_parse("x", "-1:2, 0:1 ,7:1", &c, &e), 0);
	assert_int_equal(c.n, 3);
	for (int i = 0; i < 4000; i++)
		workload_add(&w);
	pyrandom_seed(&g, 1);
	assert_int_equal(priority_deal("x", &c, &g, &w, &e), 0);
	for (size_t i = 0; i < w.n; i++)
		of[w.v[i].priority == -1 ? 0 : w.v[i].priority == 0 ? 1 : 2]++;
	assert_in_range(of[0], 1800, 2200);
	assert_in_range(of[1], 850, 1150);
	assert_in_range(of[2], 850, 1150);
	assert_int_equal(priority_deal("x", &c, &g, &w, &e), -1);
	assert_non_null(strstr(e.text, "have priorities already"));
	workload_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_have_keys),
		cmocka_unit_test(wrong_values_are_refused),
		cmocka_unit_test(a_length_is_a_length),
		cmocka_unit_test(sets_of_others_have_none),
		cmocka_unit_test(keys_are_laid_over),
		cmocka_unit_test(sampling_is_picked_out),
		cmocka_unit_test(priorities_are_pythons),
		cmocka_unit_test(conversations_have_priorities),
		cmocka_unit_test(classes_are_parsed),
	};

	return cmocka_run_group_tests_name("data_request_keys", tests, make_dir, remove_dir);
}
