/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classes of hub datasets: what a row becomes, which rows count, and what is refused. Orders and
 * files have tests of their own; whole lists against upstream's code are in tests/peer/.
 *
 * threads: yes
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/json/read.h"
#include "hf_sample.h"
#include "input/sets/datasets.h"

/* ---- questions ---- */

static void questions_are_templated(void **state)
{
	static const struct {
		const char *id, *row, *prompt;
		int64_t output_len;
	} row[] = {
		{ "likaixin/InstructCoder", "{\"input\": \"a = 1\", \"instruction\": \"make it 2.\"}",
		  "<u>a = 1\n\nmake it 2. Just output the code, do not include any explanation.<a>",
		  200 },
		{ "philschmid/mt-bench", "{\"turns\": [\"first \\u00e9\", \"second\"]}",
		  "<u>first \303\251<a>", 256 },
		{ "openai/openai_humaneval", "{\"prompt\": \"def f():\\n\", \"test\": 0}",
		  "<u>def f():\n<a>", 256 },
		{ "openai/gsm8k", "{\"question\": \"How many?\", \"answer\": \"4\"}",
		  "<u>How many?<a>", 256 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct fixture f;

		start(&f, row[i].id, row[i].row);
		assert_true(dataset_find("hf")->is_templated_for(&f.opts));
		expect(&f, 1);
		is_text(f.w.v[0].prompt, row[i].prompt);
		is_text(f.w.v[0].request_id, "r-0");
		assert_int_equal(f.w.v[0].prompt_len, tokens(row[i].prompt));
		assert_int_equal(f.w.v[0].output_len, row[i].output_len);
		workload_release(&f.w);
		f.w = (struct workload){ 0 };
		f.opts.hf_output_len = (struct opt_int){ .v = 7, .is_set = true };
		f.chat = (struct chat_wrap){ 0 }; /* --skip-chat-template */
		expect(&f, 1);
		assert_int_equal(f.w.v[0].output_len, 7);
		assert_int_equal(f.w.v[0].prompt.n, strlen(row[i].prompt) - 6);
		finish(&f);
	}
}

static void a_class_is_known_by_its_path_too(void **state)
{
	struct dataset_opts o = { .path = "openai/gsm8k" };

	(void)state;
	assert_true(dataset_find("hf")->is_templated_for(&o));
	o.path = "mgoin/mlperf-inference-llama2-data";
	assert_true(dataset_find("hf")->is_templated_for(&o));
	o.path = "Lin-Chen/MMStar";
	assert_false(dataset_find("hf")->is_templated_for(&o));
	o.path = "some/where";
	assert_false(dataset_find("hf")->is_templated_for(&o));
}

#define PROBLEM(p, s) "{\"problem\": \"" p "\", \"solution\": \"" s "\"}\n"

static void aimo_filters_by_the_solution(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, "AI-MO/NuminaMath-CoT", PROBLEM("", "a long enough solution here")
	      PROBLEM("what is one and one and one", "") PROBLEM("what is one and one", "it is two, really"));
	expect(&f, 1);
	is_text(f.w.v[0].prompt, "what is one and one");
	is_text(f.w.v[0].request_id, "r-0");
	assert_int_equal(f.w.v[0].output_len, tokens("it is two, really"));
	workload_release(&f.w);
	f.w = (struct workload){ 0 };
	f.opts.hf_output_len = (struct opt_int){ .v = 9, .is_set = true };
	expect(&f, 3); /* a given length: no filter */
	assert_int_equal(f.w.v[2].output_len, 9);
	finish(&f);
}

/* ---- MLPerf ---- */

static int render(void *self, struct str messages, struct str tools, struct buf *text,
		  struct err *e)
{
	struct fixture *f = self;

	buf_reset(&f->rendered);
	buf_add_str(&f->rendered, messages);
	buf_add_str(&f->rendered, tools);
	if (f->render_rc < 0)
		return err_set(e, ERR_NET, "no such server");
	buf_add_text(text, "rendered: ");
	buf_add_str(text, messages);
	buf_add_str(text, tools);
	return 0;
}

#define MLPERF(question, output) \
	"{\"system_prompt\": \"be good\", \"question\": \"" question "\", \"output\": \"" output "\"}\n"

static void mlperf_renders_system_and_user(void **state)
{
	const char *messages = "[{\"role\": \"system\", \"content\": \"be good\"}, "
			       "{\"role\": \"user\", \"content\": \"why?\"}]";
	struct fixture f;
	char prompt[256];

	(void)state;
	start(&f, "mgoin/mlperf-inference-llama2-data", MLPERF("why?", "no")
	      MLPERF("why?", "because it is so, all the time"));
	expect_error(&f, "chat template");
	f.env.render = render;
	f.opts.skip_chat_template = true;
	f.opts.hf_output_len = (struct opt_int){ .v = 3, .is_set = true };
	expect(&f, 0); /* the filter holds in any case */
	expect_note(&f, "--skip-chat-template has no effect");
	workload_release(&f.w);
	f.w = (struct workload){ 0 };
	f.opts.hf_output_len.is_set = false;
	expect(&f, 1);
	snprintf(prompt, sizeof(prompt), "rendered: %s", messages);
	is_text(f.w.v[0].prompt, prompt);
	assert_int_equal(f.w.v[0].output_len,
			 tokenizer_count(sim, STR("because it is so, all the time"), false));
	is_text(f.w.v[0].request_id, "r-0");
	workload_release(&f.w);
	f.w = (struct workload){ 0 };
	f.render_rc = -1;
	expect_error(&f, "train.jsonl:1: no such server");
}

/* Special tokens count in the rendered prompt, not in the answer. */
static void mlperf_counts_answers_alone(void **state)
{
	struct err e = { 0 };
	struct tokenizer *t = tokenizer_load("tests/unit/token/wordpiece.json", NULL, &e);
	struct str answer = STR("it is so, all the time");
	struct fixture f;

	(void)state;
	assert_non_null(t);
	assert_int_equal(tokenizer_count(t, answer, true), tokenizer_count(t, answer, false) + 2);
	start(&f, "mgoin/mlperf-inference-llama2-data", MLPERF("why?", "it is so, all the time"));
	f.env.render = render;
	f.env.tokenizer = t;
	expect(&f, 1);
	assert_int_equal(f.w.v[0].output_len, tokenizer_count(t, answer, false));
	assert_int_equal(f.w.v[0].prompt_len, tokenizer_count(t, f.w.v[0].prompt, true));
	finish(&f);
	tokenizer_free(t);
}

/* ---- conversations ---- */

#define TURN(text) "{\"from\": \"x\", \"value\": \"" text "\"}"
#define TALK(more, a, b) "{" more "\"conversations\": [" TURN(a) ", " TURN(b) "]}\n"

static void conversations_are_filtered(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, "Aeala/ShareGPT_Vicuna_unfiltered",
	      "{\"conversations\": [" TURN("alone") "]}\n{\"conversations\": []}\n"
	      TALK("", "a prompt that is long enough", "no")
	      TALK("", "a prompt that is long enough", "")
	      TALK("", "one more that is long enough", "an answer that is long enough"));
	expect(&f, 1);
	is_text(f.w.v[0].prompt, "one more that is long enough");
	is_text(f.w.v[0].request_id, "r-0");
	assert_int_equal(f.w.v[0].output_len, tokens("an answer that is long enough"));
	workload_release(&f.w);
	f.w = (struct workload){ 0 };
	f.opts.hf_output_len = (struct opt_int){ .v = 1, .is_set = true };
	f.opts.enable_multimodal_chat = true;
	expect(&f, 3);
	assert_int_equal(f.w.v[0].kind, PROMPT_JSON);
	assert_non_null(strstr(f.w.v[0].prompt.p, "a prompt that is long enough"));
	finish(&f);
	start(&f, "Aeala/ShareGPT_Vicuna_unfiltered", TALK("", "a b c d", "e f g h")
	      "{\"conversations\": [" TURN("x") ", {\"value\": 3}]}\n");
	expect_error(&f, "train.jsonl:2: \"conversations\": turn 1 has no text \"value\"");
}

static void pictures_go_with_conversations(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, "lmms-lab/LLaVA-OneVision-Data",
	      TALK("\"image\": \"https://x/y.png\", ", "what is there to be seen", "a cat that sits")
	      TALK("\"image\": null, ", "what is there to be heard", "a dog that barks"));
	expect(&f, 2);
	is_text(f.w.v[0].prompt, "what is there to be seen");
	is_text(f.w.v[0].media,
		"[{\"type\": \"image_url\", \"image_url\": {\"url\": \"https://x/y.png\"}}]");
	assert_int_equal(f.w.v[1].media.n, 0);
	finish(&f);
	start(&f, "lmms-lab/LLaVA-OneVision-Data",
	      TALK("\"image\": 5, ", "what is there to be seen", "a cat that sits"));
	expect_error(&f, "train.jsonl:1: an image must be");
	start(&f, "lmms-lab/LLaVA-OneVision-Data", "{}");
	f.env.backend = "vllm";
	expect_error(&f, "openai-chat");
}

/* ---- edits ---- */

#define EDIT(output) \
	"{\"events\": \"E\", \"input\": null, \"output\": \"" output "\"}\n"

static void next_edits_ask_for_the_editable_part(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, "zed-industries/zeta", EDIT("kept out <|editable_region_start|>and kept in")
	      EDIT("no marker \\u00e9") EDIT(""));
	f.opts.hf_output_len = (struct opt_int){ .v = 9, .is_set = true };
	expect(&f, 3);
	is_text(f.w.v[0].prompt,
		"### Instruction:\nYou are a code completion assistant and your task is to analyze "
		"user edits and then rewrite an excerpt that the user provides, suggesting the "
		"appropriate edits within the excerpt, taking into account the cursor location.\n\n"
		"### User Edits:\n\nE\n\n### User Excerpt:\n\nNone\n\n### Response:\n\n");
	assert_int_equal(f.w.v[0].output_len, tokens("<|editable_region_start|>and kept in"));
	assert_int_equal(f.w.v[1].output_len, tokens("\303\251"));
	assert_int_equal(f.w.v[2].output_len, tokens(""));
	expect_note(&f, "--hf-output-len has no effect");
	finish(&f);
}

#define CHANGE(code, distance) \
	"{\"code\": \"" code "\", \"change_request\": \"C\", \"norm_distance\": " distance "}\n"

static void blazedit_keeps_a_window(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, "vdaita/edit_5k_char", CHANGE("a", "0.1") CHANGE("b", "0.5") CHANGE("c", "0.9")
	      CHANGE("d", "0.2"));
	f.opts.blazedit_min_distance = 0.2;
	f.opts.blazedit_max_distance = 0.5;
	expect(&f, 2);
	is_text(f.w.v[0].prompt,
		"<u>Given a code file, please apply the change requests and generate the new file."
		"\n\nOriginal file:\n```python\nb\n```\n\nChange request:\nC\n\n"
		"Please generate the new code file in the \"New file\" section below.<a>");
	assert_int_equal(f.w.v[0].output_len, 4000);
	is_text(f.w.v[0].request_id, "r-1");
	is_text(f.w.v[1].request_id, "r-3");
	workload_release(&f.w);
	f.w = (struct workload){ 0 };
	f.opts.no_oversample = false;
	f.env.num_prompts = 3; /* the copy is r-2: no collision, as upstream */
	expect(&f, 3);
	is_text(f.w.v[1].request_id, "r-3");
	is_text(f.w.v[2].request_id, "r-2");
	workload_release(&f.w);
	f.w = (struct workload){ 0 };
	f.env.num_prompts = 4; /* r-3 would be there twice */
	expect(&f, 4);
	for (size_t i = 0; i < 4; i++) {
		char id[8];

		snprintf(id, sizeof(id), "r-%zu", i);
		is_text(f.w.v[i].request_id, id);
	}
	finish(&f);
	start(&f, "vdaita/edit_5k_char", CHANGE("a", "\"x\""));
	expect_error(&f, "train.jsonl:1: \"norm_distance\" must be a number");
}

/* ---- BFCL ---- */

#define CALL(text, function) "{\"question\": [[{\"role\": \"user\", \"content\": \"" text "\"}]], " \
	"\"function\": " function "}\n"

static const char *const tool =
	"[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {\"type\": "
	"\"object\", \"properties\": {\"type\": {\"type\": \"number\"}, \"b\": {\"type\": \"array\", "
	"\"items\": {\"type\": \"string\"}, \"default\": \"float\"}}}}}]";
#define FUNCTION "{\"name\": \"f\", \"parameters\": {\"type\": \"dict\", \"properties\": " \
	"{\"type\": {\"type\": \"float\"}, \"b\": {\"type\": \"tuple\", \"items\": " \
	"{\"type\": \"any\"}, \"default\": \"float\"}}}}"

static void calls_come_in_turn(void **state)
{
	static const char *const order[] = { "s0", "m0", "s1", "m3" };
	struct fixture f;
	char overrides[512];

	(void)state;
	start(&f, "gorilla-llm/Berkeley-Function-Calling-Leaderboard", "{}");
	write_text(f.path, "BFCL_v3_simple.json", CALL("s0", "[" FUNCTION "]") CALL("s1", FUNCTION));
	write_text(f.path, "BFCL_v3_multiple.json", CALL("m0", "[" FUNCTION "]") CALL("m1", "[]")
		   "{\"question\": [{}], \"function\": {\"a\": 1}}\n" CALL("m3", FUNCTION));
	f.opts.bfcl_categories = " simple,, multiple ";
	f.env.render = render;
	expect(&f, 4);
	is_text(f.w.v[0].messages, "[{\"role\": \"user\", \"content\": \"s0\"}]");
	snprintf(overrides, sizeof(overrides), "{\"tools\": %s, \"tool_choice\": \"auto\"}", tool);
	for (size_t i = 0; i < 4; i++) {
		is_text(f.w.v[i].prompt, order[i]);
		is_text(f.w.v[i].overrides, overrides);
	}
	is_text(f.w.v[3].request_id, "r-3");
	assert_int_equal(f.w.v[0].output_len, 512);
	snprintf(overrides, sizeof(overrides), "rendered: [{\"role\": \"user\", \"content\": \"s0\"}]%s",
		 tool);
	assert_int_equal(f.w.v[0].prompt_len, tokens(overrides));
	expect_note(&f, "2 rows were skipped");
	workload_release(&f.w);
	f.w = (struct workload){ 0 };
	f.render_rc = -1; /* once: the server is not asked again */
	expect(&f, 4);
	assert_int_equal(f.w.v[0].prompt_len, tokens("s0"));
	expect_note(&f, "no such server");
	is_text(buf_str(&f.rendered), "[{\"role\": \"user\", \"content\": \"s0\"}]");
	workload_release(&f.w);
	f.w = (struct workload){ 0 };
	f.opts.disable_shuffle = false;
	f.opts.bfcl_categories = "order"; /* Python's shuffle of ten with seed 0: spec 10.5 */
	write_text(f.path, "BFCL_v3_order.json", CALL("0", FUNCTION) CALL("1", FUNCTION)
		   CALL("2", FUNCTION) CALL("3", FUNCTION) CALL("4", FUNCTION) CALL("5", FUNCTION)
		   CALL("6", FUNCTION) CALL("7", FUNCTION) CALL("8", FUNCTION) CALL("9", FUNCTION));
	expect(&f, 10);
	for (size_t i = 0; i < 10; i++)
		assert_int_equal(f.w.v[i].prompt.p[0], "7815342096"[i]);
	finish(&f);
}

static void calls_are_refused_where_they_cannot_go(void **state)
{
	struct buf deep = { 0 };
	struct fixture f;

	(void)state;
	start(&f, "gorilla-llm/Berkeley-Function-Calling-Leaderboard", "{}");
	f.env.backend = "openai";
	expect_error(&f, "need --backend openai-chat");
	start(&f, "gorilla-llm/Berkeley-Function-Calling-Leaderboard", "{}");
	expect_error(&f, "no category \"simple\"");
	/* as deep as JSON may be */
	start(&f, "gorilla-llm/Berkeley-Function-Calling-Leaderboard", "{}");
	buf_add_text(&deep, "{\"question\": [[{\"role\": \"user\", \"content\": null}]], \"function\": ");
	for (int i = 0; i < 63; i++)
		buf_add_text(&deep, "{\"a\": ");
	buf_add_char(&deep, '1');
	for (int i = 0; i < 64; i++)
		buf_add_char(&deep, '}');
	write_text(f.path, "BFCL_v3_rest.json", deep.data);
	f.opts.bfcl_categories = "rest";
	expect(&f, 1);
	is_text(f.w.v[0].prompt, "");
	expect_note(&f, "count the messages alone");
	finish(&f);
	buf_release(&deep);
}

/* ---- any text ---- */

static void prompts_are_found_by_their_column(void **state)
{
	static const struct {
		const char *row, *prompt, *answer; /* NULL: 128 tokens */
	} row[] = {
		{ "{\"x\": 1, \"prompt\": \"say it all again\"}", "say it all again", NULL },
		{ "{\"output\": \"the answer is\", \"text\": \"t t t t\", \"question\": \"q q q q\"}",
		  "q q q q", "the answer is" },
		{ "{\"context\": \"c c\", \"input\": \"i i i\", \"prompt\": \"p p p p\"}", "c c\n\ni i i",
		  NULL },
		{ "{\"turns\": [\"first t u r n\", \"second\"]}", "first t u r n", NULL },
		{ "{\"messages\": [{\"role\": \"system\", \"content\": \"s\"}, {\"role\": \"user\", "
		  "\"content\": \"u u u u\"}, {\"role\": \"assistant\", \"content\": \"a b\"}]}",
		  "u u u u", "a b" },
		{ "{\"conversations\": [{\"from\": \"human\", \"value\": \"h h h h\"}, {\"from\": \"gpt\", "
		  "\"value\": \"g g g\"}], \"answer\": \"no\"}", "h h h h", "g g g" },
		{ "{\"conversation\": [[{\"role\": \"user\", \"content\": [{\"type\": \"text\", "
		  "\"text\": \"p a r t\"}]}]]}", "p a r t", NULL },
		{ "{\"question\": \"q q q q\", \"answers\": {\"text\": [\"yes, it is\"]}}", "q q q q",
		  "yes, it is" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct fixture f;

		start(&f, NULL, row[i].row);
		f.env.chat = NULL;
		expect(&f, 1);
		is_text(f.w.v[0].prompt, row[i].prompt);
		assert_int_equal(f.w.v[0].output_len, row[i].answer ? tokens(row[i].answer) : 128);
		expect_note(&f, "vLLM refuses");
		finish(&f);
	}
}

static void a_column_of_prompts_can_be_named(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, "openai/gsm8k", "{\"question\": \"no\", \"mine\": \"take this one now\"}\n"
	      "{\"question\": \"no\", \"mine\": null}\n{\"question\": \"no\", \"mine\": \"hi\"}\n");
	f.opts.hf_text_column = "mine";
	assert_false(dataset_find("hf")->is_templated_for(&f.opts));
	expect(&f, 1); /* the last is too short */
	is_text(f.w.v[0].prompt, "take this one now");
	expect_note(&f, "1 row was skipped");
	finish(&f);
	start(&f, NULL, "{\"a\": \"x\", \"b\": \"y\"}\n");
	f.opts.hf_text_column = "c";
	expect_error(&f, "train.jsonl:1: no column \"c\"; there are: \"a\", \"b\"");
	start(&f, NULL, "{\"a\": \"x\", \"b\": \"y\"}\n");
	expect_error(&f, "--hf-text-column");
}

/* ---- what they share ---- */

static void rows_that_do_not_fit_are_named(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, "openai/gsm8k", "{\"question\": \"fine\"}\n{\"answer\": 1, \"b\": 2}\n");
	expect_error(&f, "train.jsonl:2: no column \"question\", which GSM8K datasets have; there are: "
		     "\"answer\", \"b\"");
	start(&f, "openai/gsm8k", "{\"question\": 5}\n");
	expect_error(&f, "train.jsonl:1: \"question\" must be text, not 5");
	start(&f, "philschmid/mt-bench", "{\"turns\": []}\n");
	expect_error(&f, "train.jsonl:1: \"turns\" must be a list of texts");
	start(&f, "openai/gsm8k", "{\"question\": \"fine\"}\n");
	f.opts.hf_split = "test";
	expect_error(&f, "train");
}

static void rows_run_out_and_are_copied(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, "openai/gsm8k", "{\"question\": \"a\"}\n{\"question\": \"b\"}\n{\"question\": \"c\"}\n");
	f.opts.no_oversample = false;
	f.env.num_prompts = 8;
	expect(&f, 8);
	for (size_t i = 0; i < 8; i++) {
		char id[8];

		snprintf(id, sizeof(id), "r-%zu", i);
		is_text(f.w.v[i].request_id, id);
	}
	workload_release(&f.w);
	f.w = (struct workload){ 0 };
	f.env.num_prompts = 2;
	expect(&f, 2);
	workload_release(&f.w);
	f.w = (struct workload){ 0 };
	f.env.num_prompts = 0;
	expect(&f, 3); /* all */
	finish(&f);
}

static void a_whole_split_is_shuffled_as_upstream(void **state)
{
	static const char wanted[] = "4627359081"; /* spec 10.5 */
	struct buf rows = { 0 };
	struct fixture f;

	(void)state;
	for (int i = 0; i < 10; i++)
		buf_printf(&rows, "{\"question\": \"%d\"}\n", i);
	start(&f, "openai/gsm8k", rows.data);
	f.opts.disable_shuffle = false;
	f.opts.no_stream = true;
	f.env.chat = NULL;
	expect(&f, 10);
	for (size_t i = 0; i < 10; i++)
		assert_int_equal(f.w.v[i].prompt.p[0], wanted[i]);
	finish(&f);
	buf_release(&rows);
}

/* The same rows from Parquet and from JSON lines are the same requests. */
static void parquet_gives_what_json_gives(void **state)
{
	static const struct {
		const char *parquet, *json, *id, *column;
	} row[] = {
		{ "snappy-v1.parquet", "mixed.jsonl", NULL, "text" },
		{ "zstd-v2.parquet", "mixed.jsonl", NULL, "text" },
		{ "nested-v2.parquet", "nested.jsonl", "Aeala/ShareGPT_Vicuna_unfiltered", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct fixture f[2];

		for (int j = 0; j < 2; j++) {
			char path[128];

			snprintf(path, sizeof(path), "tests/unit/parquet/%s",
				 j ? row[i].json : row[i].parquet);
			start(&f[j], row[i].id, "{}");
			f[j].opts.path = path;
			f[j].opts.hf_text_column = row[i].column;
			f[j].opts.disable_shuffle = false;
			f[j].opts.hf_output_len = (struct opt_int){ .v = 5, .is_set = true };
			if (build(&f[j]) < 0)
				fail_msg("%s", f[j].e.text);
		}
		assert_true(f[0].w.n > 3);
		assert_int_equal(f[0].w.n, f[1].w.n);
		for (size_t k = 0; k < f[0].w.n; k++) {
			assert_true(str_eq(f[0].w.v[k].prompt, f[1].w.v[k].prompt));
			assert_int_equal(f[0].w.v[k].prompt_len, f[1].w.v[k].prompt_len);
		}
		finish(&f[0]);
		finish(&f[1]);
	}
}

/* A cache of the hub, as its own library leaves it; no request is made. */
static void the_hubs_cache_is_read(void **state)
{
	const char *commit = "0123456789012345678901234567890123456789";
	struct fixture f;
	char name[200];

	(void)state;
	start(&f, NULL, "{}");
	write_text(f.path, "datasets--openai--gsm8k/refs/main", commit);
	snprintf(name, sizeof(name), "datasets--openai--gsm8k/snapshots/%s/README.md", commit);
	write_text(f.path, name, "---\nconfigs:\n- config_name: main\n  data_files:\n"
		   "  - split: train\n    path: main/train-*\n  - split: test\n    path: main/test-*\n---\n");
	snprintf(name, sizeof(name), "datasets--openai--gsm8k/snapshots/%s/main/test-0.jsonl", commit);
	write_text(f.path, name, "{\"question\": \"from the cache\", \"answer\": \"\"}\n");
	assert_int_equal(setenv("HF_HUB_CACHE", f.path, 1), 0);
	assert_int_equal(setenv("HF_HUB_OFFLINE", "1", 1), 0);
	f.opts.path = "openai/gsm8k";
	f.opts.hf_split = NULL;
	expect(&f, 1);
	is_text(f.w.v[0].prompt, "<u>from the cache<a>");
	workload_release(&f.w);
	f.w = (struct workload){ 0 };
	f.opts.hf_subset = "socratic";
	expect_error(&f, "main");
	unsetenv("HF_HUB_CACHE");
	unsetenv("HF_HUB_OFFLINE");
}

/* Every class is given every odd value in all of its columns: a request or a sentence. */
static void odd_rows_end_in_a_sentence(void **state)
{
	static const char *const id[] = {
		NULL, "lmarena-ai/VisionArena-Chat", "yale-nlp/MMVU", "likaixin/InstructCoder",
		"philschmid/mt-bench", "openai/openai_humaneval", "openai/gsm8k",
		"lmms-lab/LLaVA-OneVision-Data", "Aeala/ShareGPT_Vicuna_unfiltered",
		"AI-MO/NuminaMath-1.5", "zed-industries/zeta", "facebook/voxpopuli",
		"vdaita/edit_5k_char", "mgoin/mlperf-inference-llama2-data", "Lin-Chen/MMStar",
		"gorilla-llm/Berkeley-Function-Calling-Leaderboard",
	};
	static const char *const value[] = {
		"null", "true", "-1e999", "\"\"", "\"\\u0000x\"", "\"data:;base64,!\"",
		"\"data:;base64,\"", "[]", "{}", "[[]]", "[[[]]]", "[{}]", "[null, null]", "[\"\", \"\"]",
		"[[{\"content\": 1}]]", "[{\"value\": null}, {\"value\": 1}]", "{\"bytes\": 1}",
		"{\"bytes\": \"data:;base64,AAAA\"}", "{\"bytes\": null, \"path\": \"\"}",
		"{\"path\": \"\\u0000\"}", "{\"array\": [], \"sampling_rate\": 1}",
		"{\"array\": [1], \"sampling_rate\": 0}", "{\"array\": [[1]], \"sampling_rate\": 8}",
		"[{\"role\": \"user\", \"content\": []}]", "[{\"role\": \"user\", \"content\": [{}, 1]}]",
	};
	static const char *const column[] = {
		"images", "conversation", "turns", "question", "choices", "video", "instruction", "input",
		"prompt", "conversations", "image", "problem", "solution", "events", "output", "audio",
		"url", "code", "change_request", "norm_distance", "system_prompt", "function", "context",
	};
	const size_t columns = sizeof(column) / sizeof(*column);

	(void)state;
	assert_int_equal(setenv("HF_HUB_OFFLINE", "1", 1), 0);
	for (size_t v = 0; v < sizeof(value) / sizeof(*value); v++) {
		struct buf row = { 0 };

		for (size_t c = 0; c < columns; c++)
			buf_printf(&row, "%s\"%s\": %s", c ? ", " : "{", column[c], value[v]);
		buf_add_text(&row, "}\n");
		for (size_t i = 0; i < sizeof(id) / sizeof(*id); i++) {
			struct fixture f;

			start(&f, id[i], row.data);
			write_text(f.path, "BFCL_v3_rest.json", row.data);
			f.opts.bfcl_categories = "rest";
			f.env.render = render;
			if (build(&f) < 0)
				assert_int_not_equal(f.e.text[0], 0);
			finish(&f);
		}
		buf_release(&row);
	}
	unsetenv("HF_HUB_OFFLINE");
}

static void being_stopped_ends_it(void **state)
{
	static atomic_bool stop = true;
	struct fixture f;

	(void)state;
	start(&f, "openai/gsm8k", "{\"question\": \"a\"}\n");
	f.env.cancel = &stop;
	assert_int_equal(build(&f), -1);
	assert_int_equal(f.e.code, ERR_CANCELLED);
	finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(questions_are_templated),
		cmocka_unit_test(a_class_is_known_by_its_path_too),
		cmocka_unit_test(aimo_filters_by_the_solution),
		cmocka_unit_test(mlperf_renders_system_and_user),
		cmocka_unit_test(mlperf_counts_answers_alone),
		cmocka_unit_test(conversations_are_filtered),
		cmocka_unit_test(pictures_go_with_conversations),
		cmocka_unit_test(next_edits_ask_for_the_editable_part),
		cmocka_unit_test(blazedit_keeps_a_window),
		cmocka_unit_test(calls_come_in_turn),
		cmocka_unit_test(calls_are_refused_where_they_cannot_go),
		cmocka_unit_test(prompts_are_found_by_their_column),
		cmocka_unit_test(a_column_of_prompts_can_be_named),
		cmocka_unit_test(rows_that_do_not_fit_are_named),
		cmocka_unit_test(rows_run_out_and_are_copied),
		cmocka_unit_test(a_whole_split_is_shuffled_as_upstream),
		cmocka_unit_test(parquet_gives_what_json_gives),
		cmocka_unit_test(the_hubs_cache_is_read),
		cmocka_unit_test(odd_rows_end_in_a_sentence),
		cmocka_unit_test(being_stopped_ends_it),
	};

	return cmocka_run_group_tests(tests, load_tokenizer, free_tokenizer);
}
