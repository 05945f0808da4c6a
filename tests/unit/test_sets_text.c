/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of texts in the user's own files: which rows become requests, with which texts and
 * lengths; datasets spec 5.2, 5.4 to 5.8, 5.11 and its tests 13 to 17.
 *
 * threads: yes
 */
#include "data_rig.h"

#include <math.h>

#include "core/rng/rng.h"
#include "input/sets/datasets.h"

/* n tokens: " abc" each. */
static struct str words(size_t n)
{
	static char text[8192];

	assert_true(4 * n < sizeof(text));
	for (size_t i = 0; i < n; i++)
		memcpy(text + 4 * i, " abc", 4);
	return (struct str){ text, 4 * n };
}

static void add_entry(struct buf *out, size_t prompt, size_t answer, const char *more)
{
	buf_add_text(out, out->len ? "," : "[");
	buf_add_text(out, "{\"conversations\": [{\"value\": \"");
	buf_add_str(out, words(prompt));
	buf_add_text(out, "\"}, {\"value\": \"");
	buf_add_str(out, words(answer));
	buf_printf(out, "\"}]%s}", more);
}

/* ---- sharegpt ---- */

static void lengths_are_filtered(void **state)
{
	static const struct {
		size_t prompt, answer;
		int64_t asked;
		bool is_valid;
	} row[] = {
		{ 3, 10, 0, false }, { 4, 4, 0, true }, { 4, 3, 0, false },
		{ 1024, 1024, 0, true },
		{ 1025, 4, 0, false }, { 1024, 1025, 0, false }, { 4, 0, 0, false },
		{ 4, 0, 1, true }, { 4, 900, 1, true }, { 1024, 4, 1025, false },
		{ 3, 4, 1, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct buf text = { 0 };
		struct fixture f;

		add_entry(&text, row[i].prompt, row[i].answer, "");
		add_entry(&text, 7, 7, "");
		buf_add_text(&text, "]");
		fixture_init(&f, "f.json", text.data);
		f.opts.disable_shuffle = f.opts.no_oversample = true;
		f.opts.sharegpt_output_len = (struct opt_int){ row[i].asked > 0, row[i].asked };
		assert_int_equal(build(&f, "sharegpt"), 0);
		if (f.w.n - (f.w.v[f.w.n - 1].prompt_len == 7) != row[i].is_valid)
			fail_msg("row %zu: %zu requests", i, f.w.n);
		buf_release(&text);
		fixture_release(&f);
	}
}

/* Python shuffles what has two turns, and nothing else. */
static void turns_are_shuffled_as_upstream(void **state)
{
	static const size_t seed0_of_10[] = { 7, 8, 1, 5, 3, 4, 2, 0, 9, 6 }; /* spec 10.5 */
	struct buf text = { 0 };
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < 10; i++) {
		add_entry(&text, 10 + i, 5, "");
		buf_add_text(&text, ", {\"conversations\": [{\"value\": \"alone\"}]}, {}");
	}
	buf_add_text(&text, "]");
	fixture_init(&f, "f.json", text.data);
	f.env.num_prompts = 0; /* all */
	assert_int_equal(build(&f, "sharegpt"), 0);
	assert_int_equal(f.w.n, 10);
	for (size_t i = 0; i < 10; i++)
		assert_int_equal(f.w.v[i].prompt_len, 10 + seed0_of_10[i]);
	buf_release(&text);
	fixture_release(&f);
}

static void media_become_parts(void **state)
{
	struct buf text = { 0 };
	struct fixture f;

	(void)state;
	add_entry(&text, 5, 5, ", \"image\": \"dir/a.png\", \"video\": \"v.mp4\"");
	add_entry(&text, 6, 5, ", \"image\": \"\", \"video\": \"http://x/v.mp4\"");
	add_entry(&text, 7, 5, ", \"image\": \"data:image/png;base64,AA==\"");
	add_entry(&text, 8, 5, ", \"image\": null");
	buf_add_text(&text, "]");
	fixture_init(&f, "f.json", text.data);
	f.opts.disable_shuffle = true;
	f.env.backend = "openai";
	assert_int_equal(build(&f, "sharegpt"), 0);
	assert_true(str_is(f.w.v[0].media, "[{\"type\": \"image_url\", \"image_url\": {\"url\": "
			   "\"file://dir/a.png\"}}]"));
	assert_true(str_is(f.w.v[1].media, "[{\"type\": \"video_url\", \"video_url\": {\"url\": "
			   "\"http://x/v.mp4\"}}]"));
	assert_true(str_is(f.w.v[2].media, "[{\"type\": \"image_url\", \"image_url\": {\"url\": "
			   "\"data:image/png;base64,AA==\"}}]"));
	assert_int_equal(f.w.v[3].media.n, 0);
	assert_non_null(strstr(f.w.notes.p, "not sent by --backend openai"));
	f.opts.enable_multimodal_chat = true;
	f.env.backend = "openai-chat";
	assert_int_equal(build_again(&f, "sharegpt"), 0);
	assert_prompt(&f, 1, "[{\"role\": \"user\", \"content\": [{\"text\": \" abc abc abc abc abc abc\", "
		      "\"type\": \"text\"}, {\"type\": \"video_url\", \"video_url\": {\"url\": "
		      "\"http://x/v.mp4\"}}]}]");
	assert_prompt(&f, 3, "[{\"role\": \"user\", \"content\": [{\"text\": "
		      "\" abc abc abc abc abc abc abc abc\", \"type\": \"text\"}]}]");
	assert_int_equal(f.w.v[1].kind, PROMPT_JSON);
	assert_int_equal(f.w.notes.n, 0);
	buf_release(&text);
	fixture_release(&f);
}

/* ---- custom, spec_bench ---- */

static void copies_come_from_the_first(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, "f.jsonl", "{\"prompt\": \"one\"}\n{\"prompt\": \"two\"}\n{\"prompt\": \"six\"}\n");
	f.env.num_prompts = 8;
	f.opts.disable_shuffle = true;
	assert_int_equal(build(&f, "custom"), 0);
	assert_int_equal(f.w.n, 8);
	for (size_t i = 0; i < 8; i++) {
		char id[24];

		snprintf(id, sizeof(id), "r-%zu", i);
		assert_true(str_is(f.w.v[i].request_id, id));
		assert_true(i < 3 || str_eq(f.w.v[i].prompt, f.w.v[0].prompt) ||
			    str_eq(f.w.v[i].prompt, f.w.v[1].prompt) ||
			    str_eq(f.w.v[i].prompt, f.w.v[2].prompt));
	}
	f.opts.no_oversample = true;
	assert_int_equal(build_again(&f, "custom"), 0);
	assert_int_equal(f.w.n, 3);
	f.env.num_prompts = 0;
	f.opts.no_oversample = false;
	assert_int_equal(build_again(&f, "custom"), 0);
	assert_int_equal(f.w.n, 3);
	fixture_release(&f);
}

static void templates_wrap_and_count(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, "f.jsonl", "{\"prompt\": \"text\", \"output_tokens\": 9}\n");
	f.env.num_prompts = 1;
	f.chat = (struct chat_wrap){ .source = CHAT_FLAGS, .prefix = STR("<u>"), .suffix = STR("</u>") };
	assert_int_equal(build(&f, "custom"), 0);
	assert_prompt(&f, 0, "<u>text</u>");
	assert_int_equal(f.w.v[0].prompt_len, 11);
	assert_int_equal(f.w.v[0].output_len, 256);
	f.env.tokenizer = NULL; /* one token is counted and asked for, as upstream */
	assert_int_equal(build_again(&f, "custom"), 0);
	assert_int_equal(f.w.v[0].prompt_len, 1);
	assert_int_equal(f.w.v[0].output_len, 1);
	fixture_release(&f);
}

#define QUESTION(category, text) "{\"category\": \"" category "\", \"turns\": [\"" text "\", \"b\"]}\n"

static void spec_bench_keeps_seed_0(void **state)
{
	struct buf text = { 0 };
	struct fixture f;
	struct str first;

	(void)state;
	for (int i = 0; i < 10; i++)
		buf_printf(&text, QUESTION("qa", "%d") QUESTION("math", "m%d"), i, i);
	fixture_init(&f, "f.jsonl", text.data);
	f.env.num_prompts = 10;
	f.opts.spec_bench_category = "qa";
	assert_int_equal(build(&f, "spec_bench"), 0);
	assert_prompt(&f, 0, "7");
	assert_prompt(&f, 9, "6");
	assert_int_equal(f.w.v[9].output_len, 256);
	assert_int_equal(f.w.notes.n, 0);
	f.env.seed = 5;
	assert_int_equal(build_again(&f, "spec_bench"), 0);
	assert_prompt(&f, 0, "7");
	assert_non_null(strstr(f.w.notes.p, "--seed does not change"));
	f.opts.fix_seed = true;
	assert_int_equal(build_again(&f, "spec_bench"), 0);
	first = f.w.v[0].prompt;
	assert_true(!str_is(first, "7") || !str_is(f.w.v[9].prompt, "6"));
	f.opts.spec_bench_category = "QA";
	assert_refused(&f, "spec_bench", "no row has the category 'QA'");
	buf_release(&text);
	fixture_release(&f);
}

/* ---- sonnet ---- */

static void sonnet_shares_its_first_lines(void **state)
{
	const char *lines = " aaa bbb ccc ddd\n eee fff ggg hhh\r\n iii jjj kkk lll\n mmm nnn ooo ppp\n";
	const char *start = "<u>Pick as many lines as you can from these poem lines:\n aaa bbb ccc ddd\n";
	struct fixture f;
	size_t base;

	(void)state;
	fixture_init(&f, "f.txt", lines);
	f.chat = (struct chat_wrap){ .source = CHAT_FLAGS, .prefix = STR("<u>"), .suffix = STR("</u>") };
	base = tokenizer_count(f.tokenizer, STR("<u>Pick as many lines as you can from these poem "
						"lines:\n</u>"), true);
	f.opts.sonnet_input_len = (int64_t)base + 15; /* three lines of five tokens */
	f.opts.sonnet_prefix_len = (int64_t)base + 5; /* one of them shared */
	assert_int_equal(build(&f, "sonnet"), 0);
	assert_int_equal(f.w.n, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_true(str_starts(f.w.v[i].prompt, str_of(start)));
		assert_true(str_ends(f.w.v[i].prompt, STR("\n</u>")));
		assert_int_equal(f.w.v[i].prompt_len, base + 15);
		assert_int_equal(f.w.v[i].output_len, 150);
		assert_null(memchr(f.w.v[i].prompt.p, '\r', f.w.v[i].prompt.n));
	}
	f.env.backend = "openai-chat"; /* the server puts the template around it */
	assert_int_equal(build_again(&f, "sonnet"), 0);
	assert_true(str_starts(f.w.v[0].prompt, str_of(start + 3)));
	assert_int_equal(f.w.v[0].prompt_len, base + 15);
	f.opts.sonnet_input_len = (int64_t)base;
	assert_refused(&f, "sonnet", "--sonnet-input-len");
	fixture_release(&f);
}

/* U+FFFD in place of a letter would be another prompt. */
static void other_encodings_are_refused(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, "f.jsonl", "{\"prompt\": \"caf\xc3\xa9\"}\n{\"prompt\": \"caf\xe9\"}\n");
	assert_refused(&f, "custom", "f.jsonl:2: the row has bytes that are not UTF-8. Convert the file, ");
	fixture_release(&f);
}

/* What upstream would try for ever. */
static void sonnet_gives_up(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, "f.txt", " aaa\n aaa bbb ccc ddd eee fff ggg hhh\n");
	f.chat = (struct chat_wrap){ .source = CHAT_FLAGS };
	f.opts.sonnet_input_len = 5 + (int64_t)tokenizer_count(f.tokenizer, STR(
		"Pick as many lines as you can from these poem lines:\n"), true);
	f.opts.sonnet_prefix_len = 540;
	assert_refused(&f, "sonnet", "0 of 1000 tries gave a prompt of at most ");
	f.chat.source = CHAT_NONE;
	assert_refused(&f, "sonnet", "needs a chat template");
	fixture_release(&f);
}

/* ---- timed_trace ---- */

#define TRACED(stamp, in, out, ids) \
	"{\"timestamp\": " stamp ", \"input_length\": " in ", \"output_length\": " out ", " \
	"\"hash_ids\": [" ids "]}\n"

/* The first n ids of a JSON list, as text. */
static struct str first_ids(struct str list, size_t n)
{
	struct str rest = list;

	for (size_t i = 0; i < n; i++)
		str_cut(&rest, ',');
	return (struct str){ list.p, (size_t)(rest.p - list.p) };
}

static void traces_have_stable_chunks(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, "f.jsonl", TRACED("1500", "40", "7", "46, \"x\", 48")
		     TRACED("0", "20", "8", "46, \"x\"") TRACED("\"2.5\"", "100", "9", "1")
		     "{\"timestamp\": 1, \"input_length\": 5, \"output_length\": 1}");
	f.opts.timed_trace_sec_multiplier = 0.001;
	f.env.backend = "openai";
	f.env.num_prompts = 9;
	assert_int_equal(build(&f, "timed_trace"), 0);
	assert_int_equal(f.w.n, 4);
	assert_int_equal(f.w.v[0].prompt_len, 40);
	assert_int_equal(f.w.v[1].prompt_len, 20);
	assert_int_equal(f.w.v[2].prompt_len, 16); /* too few chunks for its length */
	assert_int_equal(f.w.v[3].prompt_len, 0);
	assert_prompt(&f, 3, "[]");
	assert_int_equal(f.w.v[2].output_len, 9);
	assert_true(f.w.v[0].timestamp_s == 1.5 && f.w.v[2].timestamp_s == 0.0025);
	/* Equal ids, equal chunks; the cut one is the leading part of the whole. */
	assert_true(str_eq(first_ids(f.w.v[0].prompt, 19), first_ids(f.w.v[1].prompt, 19)));
	assert_true(str_is(f.w.v[1].request_id, "r-1"));
	/* random.Random(hash("46:16") & 0xffffffff).choices(...) with PYTHONHASHSEED=0 */
	assert_true(pyhash_str(STR("46:16")) == 7361730407891328872);
	assert_true(str_starts(f.w.v[0].prompt, STR("[5873, 6034, 8959, 9242, 7593, 2397, ")));
	fixture_release(&f);
}

static void bad_traces_are_refused(void **state)
{
	static const struct { const char *content, *want; } row[] = {
		{ "{\"a\": 1, \"b\": 2}", ":1: no \"timestamp\" field; the row has: a, b. "
		  "--timed-trace-label-timestamp names" },
		{ "{\"timestamp\": 1, \"input_length\": 2}", "--timed-trace-label-output-length names" },
		{ "{\"timestamp\": 1, \"output_length\": 2}", "--timed-trace-label-input-length names" },
		{ TRACED("\"x\"", "1", "1", ""), "\"timestamp\" must be a number" },
		{ TRACED("NaN", "1", "1", ""), "\"timestamp\" must be a number" },
		{ TRACED("1", "1.5", "1", ""), "\"input_length\" must be a whole number" },
		{ TRACED("1", "1", "-1", ""), "\"output_length\" must be a whole number" },
		{ TRACED("1", "99999999999", "1", ""), "\"input_length\" must be a whole number" },
		{ TRACED("1", "1", "1", "[1]"), "\"hash_ids\" must be a list of numbers or texts" },
		{ TRACED("1", "1", "1", "\"a\\u0000\""), "\"hash_ids\" must be a list of numbers or texts" },
	};
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		fixture_init(&f, "f.jsonl", row[i].content);
		assert_refused(&f, "timed_trace", row[i].want);
		fixture_release(&f);
	}
	fixture_init(&f, "f.jsonl", TRACED("1", "1", "1", "1"));
	f.env.backend = "openai-chat";
	assert_refused(&f, "timed_trace", "sends token ids, which --backend openai-chat does not take");
	f.env.backend = "vllm";
	f.opts.timed_trace_chunk_hash_size = 0;
	assert_refused(&f, "timed_trace", "--timed-trace-chunk-hash-size");
	fixture_release(&f);
}

/* Upstream seeds both generators with 0; arrival times come from what is left. */
static void traces_leave_the_generators_of_seed_0(void **state)
{
	struct compat_rng want;
	struct fixture f;

	(void)state;
	fixture_init(&f, "f.jsonl", TRACED("1", "1", "1", "1"));
	f.env.seed = 7;
	compat_rng_seed(&want, 0);
	assert_int_equal(build(&f, "timed_trace"), 0);
	assert_true(legacy_double(&f.rng.np) == legacy_double(&want.np));
	assert_true(pyrandom_double(&f.rng.py) == pyrandom_double(&want.py));
	fixture_release(&f);
}

/* ---- slices ---- */

static int put_line(void *self, struct str line, struct err *e)
{
	(void)e;
	buf_add_str(self, line);
	return 0;
}

static void slices_wrap_around(void **state)
{
	struct buf out = { 0 };
	struct fixture f;

	(void)state;
	fixture_init(&f, "f.txt", " abc def\xc3\xa9"); /* four tokens */
	f.opts.random_input_len = 6;
	f.opts.random_output_len = 3;
	f.env.num_prompts = 3;
	f.env.seed = 0;
	/* random.Random(0).randint(0, 3), three times: 3, 3, 0 */
	assert_int_equal(slices_make(f.path, &f.opts, &f.env, put_line, &out, &f.e), 0);
	assert_string_equal(out.data,
		"{\"prompt\": \"\xef\xbf\xbd abc def\xc3\xa9 abc\", \"output_tokens\": 3}\n"
		"{\"prompt\": \"\xef\xbf\xbd abc def\xc3\xa9 abc\", \"output_tokens\": 3}\n"
		"{\"prompt\": \" abc def\xc3\xa9 abc def\", \"output_tokens\": 3}\n");
	buf_release(&out);
	assert_int_equal(file_write_atomic(f.path, STR(""), &f.e), 0);
	assert_int_equal(slices_make(f.path, &f.opts, &f.env, put_line, &out, &f.e), -1);
	assert_non_null(strstr(f.e.text, "the text has no tokens"));
	fixture_release(&f);
}

/* ---- mix ---- */

/* {"weight": w, "name": "custom", "path": "..."} */
static int component(void *self, struct json_slice object, struct arena *a,
		     struct dataset_component *out, struct err *e)
{
	const struct fixture *f = self;
	struct json_slice v;
	double weight;

	if (!json_member(object, "weight", &v) || !json_to_f64(v, &weight))
		return err_set(e, ERR_USAGE, "no weight");
	json_member(object, "name", &v);
	*out = (struct dataset_component){ .opts = f->opts, .weight = weight };
	out->dataset = dataset_find(arena_text(a, v.raw));
	if (json_member(object, "path", &v))
		out->opts.path = arena_text(a, v.raw);
	return 0;
}

static void mixes_draw_by_weight(void **state)
{
	struct buf mix = { 0 };
	struct fixture f;
	size_t custom = 0;

	(void)state;
	fixture_init(&f, "f.jsonl", "{\"prompt\": \"mine\"}\n");
	buf_printf(&mix, "[{\"weight\": 3, \"name\": \"custom\", \"path\": \"%s\"}, "
		   "{\"weight\": 1, \"name\": \"random\"}, {\"weight\": 1, \"name\": \"random\"}]", f.path);
	f.opts.mix.text = mix.data;
	f.opts.random_input_len = 8;
	f.env.component = component;
	f.env.component_self = &f;
	f.env.num_prompts = 1000;
	f.env.backend = "openai";
	assert_int_equal(build(&f, "mix"), 0);
	assert_int_equal(f.w.n, 1000);
	for (size_t i = 0; i < f.w.n; i++) {
		bool is_mine = str_is(f.w.v[i].prompt, "mine");
		char id[24];

		snprintf(id, sizeof(id), "r-%zu", i);
		assert_true(str_is(f.w.v[i].request_id, id));
		assert_true(isnan(f.w.v[i].timestamp_s));
		custom += is_mine;
		/* Both random sets, which have different prompts. */
		for (size_t k = 0; k < i && i < 60 && !is_mine; k++)
			assert_false(str_eq(f.w.v[i].prompt, f.w.v[k].prompt));
	}
	assert_in_range(custom, 560, 640);
	f.opts.no_oversample = true;
	assert_refused(&f, "mix", "set 1 of the mix (custom) has 1 of the ");
	f.opts.mix.text = "[]";
	assert_refused(&f, "mix", "the list is empty");
	f.opts.mix.text = "{}";
	assert_refused(&f, "mix", "expected a list");
	f.opts.mix.text = "[{}]";
	assert_refused(&f, "mix", "set 1 of the mix: no weight");
	f.opts.mix.text = NULL;
	assert_refused(&f, "mix", "needs --mix");
	buf_release(&mix);
	fixture_release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lengths_are_filtered),
		cmocka_unit_test(turns_are_shuffled_as_upstream),
		cmocka_unit_test(media_become_parts),
		cmocka_unit_test(copies_come_from_the_first),
		cmocka_unit_test(templates_wrap_and_count),
		cmocka_unit_test(spec_bench_keeps_seed_0),
		cmocka_unit_test(sonnet_shares_its_first_lines),
		cmocka_unit_test(other_encodings_are_refused),
		cmocka_unit_test(sonnet_gives_up),
		cmocka_unit_test(traces_have_stable_chunks),
		cmocka_unit_test(bad_traces_are_refused),
		cmocka_unit_test(traces_leave_the_generators_of_seed_0),
		cmocka_unit_test(slices_wrap_around),
		cmocka_unit_test(mixes_draw_by_weight),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
