/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_prompts.c - what the prompts of bench serve are made of: the parts of a mix, and the
 * chat template, which the tokenizer's files, the user or the server give.
 *
 * threads: yes
 */
#include "serve_rig.h"

#define DRY \
	"bench serve --model sim --tokenizer sim --dry-run --dump-workload w.jsonl --seed 3" \
	" --request-id-prefix t- --dataset-name mix --num-prompts 9 "
#define PART(members) DRY "--mix '[{" members "}]'"

static void mixes(void **state)
{
	static const struct verb_case cases[] = {
		{ DRY
		  "--mix '[{\"weight\": 2, \"dataset_name\": \"random\", \"random-input_len\": 4, "
		  "\"random_output_len\": 3, \"temperature\": 0.5}, {\"dataset-name\": \"custom\", "
		  "\"dataset-path\": \"lines.jsonl\", \"custom-output-len\": \"5\", \"skip-chat-template\": true, "
		  "\"max-tokens\": 9, \"priority\": 2, \"headers\": {\"X-A\": \"b c\"}, \"extra-body\": {\"k\": [1]}, "
		  "\"stop\": \"\\u00e9nd\", \"weight\": 1}]'",
		  .files = "w.jsonl" },
		{ PART("\"input-len\": 6, \"output-len\": 2, \"custom-output-len\": 7"),
		  .files = "w.jsonl" },
		{ DRY
		  "--mix '[{\"random-input-len\": 5, \"random-output-len\": 2}]' --repeat-count 2"
		  "",
		  .files = "w.jsonl" },
		{ .line = PART("\"weight\": 0"), .status = 2 },
		{ .line = PART("\"weight\": -1"), .status = 2 },
		{ .line = PART("\"weight\": 1e999"), .status = 2 },
		{ .line = PART("\"weight\": \"1\""), .status = 2 },
		{ .line = PART(
			  "\"weight\": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]"),
		  .status = 2 },
		{ .line = DRY "--mix '[7]'", .status = 2 },
		{ .line = DRY
		  "--mix '[\"a text that is longer than the sixty bytes of which a message shows it\"]'",
		  .status = 2 },
		{ .line = DRY "--mix '[]'", .status = 2 },
		{ .line = DRY "--mix {", .status = 2 },
		{ .line = PART("\"wieght\": 1"), .status = 2 },
		{ .line = PART("\"\": 1"), .status = 2 },
		{ .line = PART("\"request-rate\": 1"), .status = 2 },
		{ .line = PART("\"seed-\": 1"), .status = 2 },
		{ .line = PART("\"random-input-len\": \"x\""), .status = 2 },
		{ .line = PART("\"temperature\": \"hot\""), .status = 2 },
		{ .line = PART("\"dataset-name\": \"mix\""), .status = 2 },
		{ .line = PART("\"repeat-count\": 2"), .status = 2 },
		{ .line = PART("\"repeat-order\": \"tile\""), .status = 2 },
		{ .line = PART("\"warmup-pass\": \"same\""), .status = 2 },
		{ .line = PART("\"dataset-name\": \"custom\""), .status = 2 },
		{ .line = PART("\"random-range-ratio\": 2"), .status = 2 },
		{ .line = PART("\"dataset-name\": \"none\""), .status = 2 },
		{ .line = PART("\"dataset-name\": \"sharegpt\", \"dataset-path\": \"none.json\""),
		  .status = 1 },
		{ .line = DRY "--skip-tokenizer-init --mix '[{\"dataset-name\": \"random\"}]'",
		  .status = 2 },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

/* The server's own template is <|ROLE|>, a line end, the content, a line end. */
#define ASK \
	"bench serve --base-url http://127.0.0.1:$T --model org/m " QUICK " --dataset-name custom" \
	" --dataset-path lines.jsonl --num-prompts 2 --custom-output-len 2 --disable-shuffle --dump-workload w.jsonl" \
	" --max-concurrency 1 --temperature 0 "
#define ASKED \
	"bench serve --base-url http://127.0.0.1:$T --model org/m " QUICK \
	" --dataset-name structured" \
	" --structured-dataset xgrammar_bench --dataset-path messages.jsonl --num-prompts 3 --structured-output-len 4" \
	" --dump-workload w.jsonl --max-concurrency 1 --temperature 0 "
#define DUMPED .mask = VERB_NO_OUT, .files = "w.jsonl"
#define CHAT   " --backend openai-chat --endpoint /v1/chat/completions"

static void templates(void **state)
{
	static const struct verb_case cases[] = {
		{ ASK "--tokenizer plain", DUMPED },
		{ ASK "--tokenizer known", DUMPED },
		{ ASK "--tokenizer twice", DUMPED },
		{ ASK "--tokenizer other", DUMPED },
		{ ASK "--tokenizer other --chat-prefix <u> --chat-suffix </u>", DUMPED },
		{ ASK "--tokenizer known --skip-chat-template", DUMPED },
		{ ASK "--tokenizer known --chat-template-kwargs.thinking true", DUMPED },
		{ ASK "--tokenizer known" CHAT, DUMPED },
		{ ASK "--tokenizer plain" CHAT, DUMPED },
		{ ASK, DUMPED, .env = "HF_HUB_OFFLINE=1" }, /* the server's tokenizer */
		{ .line = ASK "--tokenizer other --dry-run", .status = 1 },
		{ .line = ASK "--tokenizer known --dry-run --chat-template-kwargs.x 1",
		  .status = 1 },
		{ .line = ASK "--tokenizer other --dry-run" CHAT, .status = 1 },
		{ .line = ASK "--tokenizer broken --dry-run", .status = 1 },
		{ .line = "bench serve --base-url http://127.0.0.1:9 --model org/m --tokenizer other " QUICK
			  " --dataset-name custom --dataset-path lines.jsonl --num-prompts 1",
		  .status = 1 },
		/* whole messages: what is known around them, and what only the server can render */
		{ ASKED "--tokenizer known", DUMPED },
		{ ASKED "--tokenizer other", DUMPED },
		{ .line = ASKED "--tokenizer known --dry-run", .status = 2 },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

/* A model's folder with the small vocabulary. */
static void put_model(const char *name, const char *config)
{
	struct buf text = { 0 };
	char path[4224];
	struct err e;

	assert_int_equal(mkdir(name, 0755), 0);
	snprintf(path, sizeof(path), "%s/tests/unit/token/small.json", verb_root);
	assert_int_equal(file_read(path, SIZE_MAX, &text, &e), 0);
	snprintf(path, sizeof(path), "%s/tokenizer.json", name);
	assert_int_equal(file_write_atomic(path, buf_str(&text), &e), 0);
	buf_release(&text);
	snprintf(path, sizeof(path), "%s/tokenizer_config.json", name);
	spew(path, config);
}

/* The plain format that many models share, with a BOS in front: a template that is known. */
#define CHATML \
	"\"chat_template\": \"{{ bos_token }}{% for message in messages %}{{'<|im_start|>' + message['role']" \
	" + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}" \
	"{{ '<|im_start|>assistant\\n' }}{% endif %}\""
#define BOS "\"bos_token\": \"<|bos|>\""

#define SAID(role, text) "{\"role\": \"" role "\", \"content\": \"" text "\"}"
#define ROW(messages) \
	"{\"prompt\": [" messages \
	"], \"schema\": \"{\\\"type\\\": \\\"object\\\"}\", \"completion\": \"{}\"}\n"

static int setup(void **state)
{
	if (serve_setup(state) < 0)
		return -1;
	put_model("plain", "{}");
	put_model("known", "{" BOS ", " CHATML "}");
	put_model("twice",
		  "{" BOS
		  ", \"tokenizer_class\": \"LlamaTokenizer\", \"add_bos_token\": true, " CHATML
		  "}");
	put_model("other", "{" BOS ", \"chat_template\": \"{{ made_up }}\"}");
	put_model("broken", "{\"chat_template\": ");
	spew("messages.jsonl",
	     ROW(SAID("user", "one")) ROW(SAID("system", "be") ", " SAID("user", "two")) ROW(
		     SAID("user", "one") ", " SAID("assistant", "yes") ", " SAID("user", "three")));
	verb_sim("T", "--model org/m --tokenizer other");
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(mixes), cmocka_unit_test(templates) };

	if (argc > 1)
		return profllm_main(argc, argv);
	return cmocka_run_group_tests(tests, setup, verb_teardown);
}
