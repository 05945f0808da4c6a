/* SPDX-License-Identifier: Apache-2.0 */
/* test_verbs_tokens.c - texts and ids at the command line; what a workload is; conversions. */
/* threads: yes */
#include "verb.h"

#define SIM " --tokenizer sim --threads 1"
#define SMALL " --tokenizer small.json --threads 1"

static const char *const varies[] = {
	"Loaded in", "\"load_ms\": ", "Compiled form", "Size:", "Loads from source: ",
		"Loads compiled: ", "load ",
	"\"compiled_path\": ", "\"compiled_bytes\": ", NULL,
};

static void texts(void **state)
{
	static const struct verb_case cases[] = {
		{ "tokenizer encode" SIM, .input = " abc\n" }, { "tokenizer encode" SIM, .input = "" },
		{ "tokenizer encode - a.txt empty b.txt" SIM, .input = "x" },
		{ .line = "tokenizer encode a.txt b.txt empty --tokenizer sim --threads 3" },
		{ .line = "tokenizer encode --jsonl ok.jsonl" SIM },
		{ "tokenizer encode --jsonl ok.jsonl - --tokenizer sim --threads 2", .input = " \"x\" \n" },
		{ "tokenizer decode" SIM, .input = "284\t 10\n\n 97\n" },
		{ "tokenizer decode" SIM, .input = "97 17832 98" },
		{ "tokenizer decode --skip-special-tokens" SIM, .input = "97 17832 98" },
		{ "tokenizer decode" SIM, .input = "97 17833 98 99999" },
		{ "tokenizer decode --jsonl" SIM, .input = "[284, 10]\n{\"x\": 0, \"ids\": [195, 169]}\n[]\n" },
		{ "tokenizer count" SIM, .input = " abc\n" }, { .line = "tokenizer count a.txt" SIM },
		{ "tokenizer count a.txt - empty" SIM, .input = "xyz" },
		{ .line = "tokenizer count --jsonl ok.jsonl ok.jsonl" SIM },
		{ .line = "tokenizer count --jsonl wide.jsonl --tokenizer sim --threads 2" },
		{ .line = "tokenizer count --text hello" SIM }, { .line = "tokenizer encode --text 'a b'" SIM },
		{ "tokenizer encode" SMALL, .input = "the state<|eos|> of" },
		{ "tokenizer encode --add-special-tokens" SMALL, .input = "the state<|eos|> of" },
		{ "tokenizer count --add-special-tokens" SMALL, .input = "the state<|eos|> of" },
		{ "tokenizer decode" SMALL, .input = "656 256 257 657" },
		{ "tokenizer decode --skip-special-tokens" SMALL, .input = "656 256 257 657" },
		{ "tokenizer count a.txt --timing" SIM, .varies = varies },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

static void refused_texts(void **state)
{
	static const struct verb_case cases[] = {
		{ "tokenizer encode --jsonl bad.jsonl" SIM, .status = 1 },
		{ "tokenizer encode --jsonl ok.jsonl bad.jsonl" SIM, .status = 1 },
		{ "tokenizer count --jsonl" SIM, 1, .input = "\"a\"\n\n\"b\"\n" },
		{ "tokenizer encode --jsonl" SIM, 1, .input = "\"a\" \"b\"" },
		{ "tokenizer encode --jsonl" SIM, 1, .input = "\"a" },
		{ "tokenizer encode --jsonl" SIM, 1, .input = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, "
		  "15, 16, 17, 18, 19, 20]" },
		{ "tokenizer decode" SIM, 1, .input = "97\n98 x\n" },
		{ "tokenizer decode" SIM, 1, .input = "4294967296" },
		{ "tokenizer decode" SIM, 0, .input = "4294967295" },
		{ "tokenizer decode --jsonl" SIM, 1, .input = "[1]\n[1, \"2\"]" },
		{ "tokenizer decode --jsonl" SIM, 1, .input = "[1] [2]" },
		{ "tokenizer decode --jsonl" SIM, 1, .input = "\"a\"" },
		{ "tokenizer encode a.txt no.txt b.txt" SIM, .status = 1 },
		{ "tokenizer decode no.txt" SIM, .status = 1 },
		{ "tokenizer count --text a a.txt" SIM, .status = 2 },
		{ "tokenizer encode --jsonl --text {" SIM, .status = 1 },
		{ "tokenizer encode ." SIM, .status = 1 }, { "tokenizer encode a.txt", .status = 2 },
		{ "tokenizer encode --tokenizer none.json --offline a.txt", .status = 1 },
		{ "tokenizer compile --tokenizer sim", .status = 2 },
		{ "tokenizer compile --tokenizer small.json", .status = 1 },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

static void what_a_tokenizer_is(void **state)
{
#define CACHE "PROFLLM_CACHE_DIR=$DIR/cache"
	static const struct verb_case cases[] = {
		{ "tokenizer show --tokenizer sim", .varies = varies },
		{ "tokenizer show --tokenizer sim --json", .varies = varies },
		{ "tokenizer show --tokenizer small.json", .varies = varies },
		{ "tokenizer show --tokenizer small.json --json", .env = CACHE, .varies = varies },
		{ "tokenizer compile --tokenizer small.json", .env = CACHE, .varies = varies },
		{ "tokenizer show --tokenizer small.json", .env = CACHE, .varies = varies },
		{ "tokenizer encode --tokenizer small.json --text state", .env = CACHE },
		{ "tokenizer show --tokenizer folder", .varies = varies },
		{ "tokenizer show --tokenizer folder --json", .varies = varies },
		{ "tokenizer show --tokenizer $TOKENS/wordpiece.json", .varies = varies },
		{ "tokenizer show --tokenizer $TOKENS/unigram.json", .varies = varies },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

static void workloads(void **state)
{
#define RANDOM " --tokenizer sim --num-prompts 5 --random-input-len 8 --random-output-len 4 " \
	"--random-range-ratio 0.5"
#define SLICES "dataset slices --tokenizer sim --input text.txt --num-prompts 3 --input-len 9"
	static const struct verb_case cases[] = {
		{ .line = "dataset show" RANDOM }, { .line = "dataset show --examples 0" RANDOM },
		{ .line = "dataset show --json --examples 9 --request-id-prefix r-" RANDOM },
		{ .line = "dataset show --dataset-name custom --dataset-path chat.jsonl --tokenizer sim "
		  "--skip-chat-template --num-prompts 2 --custom-output-len -1" },
		{ .line = "dataset show --json --request-id-prefix r- --dataset-name custom "
		  "--dataset-path chat.jsonl --tokenizer sim "
		  "--skip-chat-template --num-prompts 2" },
		{ "dataset compile --output a.bin --seed 3" RANDOM, .varies = varies },
		{ .line = "dataset show --dataset-name workload --dataset-path a.bin --tokenizer sim" },
		{ "dataset show --dataset-name workload --dataset-path a.bin --tokenizer sim "
		  "--num-prompts 6", .status = 2 },
		{ SLICES " --output s.jsonl --output-len 5 --seed 1", .files = "s.jsonl" },
		{ SLICES " --output t.jsonl --range-ratio 0.5", .files = "t.jsonl" },
		{ SLICES " --output u.jsonl --range-ratio 1", 2, .files = "u.jsonl" },
		{ "dataset slices --tokenizer sim --output x", .status = 2 },
		{ "dataset slices --tokenizer sim --input text.txt", .status = 2 },
		{ "dataset slices --output x --input text.txt", .status = 2 },
		{ "dataset slices --tokenizer sim --input none.txt --output x", 1, .files = "x" },
		{ SLICES " --output none/x", .status = 1 }, { "dataset compile --tokenizer sim", .status = 2 },
		{ "dataset compile --output none/x.bin" RANDOM, .status = 1 }, { "dataset show", .status = 2 },
		{ "dataset show --tokenizer sim --examples -1", .status = 2 },
		{ .line = "dataset show --num-prompts 2 --model sim --skip-tokenizer-init --dataset-name "
		  "custom --dataset-path chat.jsonl --skip-chat-template" },
		{ "dataset convert-sharegpt share.json c.json", .files = "c.json" },
		{ "dataset convert-sharegpt share.json d.json --min-turns 3 --max-content-len 60 --any-language",
		  .files = "d.json" },
		{ "dataset convert-sharegpt share.json e.json --max-items 1 --max-turns 2 --seed 1 "
		  "--min-content-len 2", .files = "e.json" },
		{ "dataset convert-sharegpt share.json", .status = 2 },
		{ "dataset convert-sharegpt share.json f.json --min-turns 3 --max-turns 2", .status = 2 },
		{ "dataset convert-sharegpt share.json f.json --min-turns 3 --max-turns 3", .files = "f.json" },
		{ "dataset convert-sharegpt share.json f.json --min-content-len 3 --max-content-len 2", .status = 2 },
		{ "dataset convert-sharegpt none.json f.json", .status = 1 },
		{ "dataset convert-sharegpt share.json none/f.json", .status = 1 },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

/* Prompts with pictures and sound of the user's own. */
static void own_media(void **state)
{
#define MEDIA " --tokenizer sim --backend openai-chat --examples 3 --num-prompts 3 --custom-output-len 4 " \
	"--request-id-prefix r- "
	static const struct verb_case cases[] = {
		{ .line = "dataset show --json --dataset-name custom_image --dataset-path image.jsonl" MEDIA },
		{ .line = "dataset show --json --dataset-name custom_mm --dataset-path parts.jsonl" MEDIA },
		{ "dataset show --json --dataset-name custom_image --dataset-path image.jsonl "
		  "--custom-ensure-client-side-data --enable-multimodal-chat" MEDIA, .status = 2, .mask = VERB_NO_ERR },
		{ "dataset show --json --dataset-name custom_audio --dataset-path sound.jsonl" MEDIA, .status = 2 },
		{ .line = "dataset show --json --dataset-name custom_audio --dataset-path "
		  "sound.jsonl --enable-multimodal-chat"
		  MEDIA },
		{ .line = "dataset show --json --dataset-name custom_audio --dataset-path sound.jsonl --backend "
		  "openai-audio --tokenizer sim --num-prompts 2 --request-id-prefix r- --endpoint "
		  "/v1/audio/transcriptions" },
		{ .line = "dataset show --json --dataset-name custom_audio --dataset-path sound.jsonl --backend "
		  "sglang --tokenizer sim --num-prompts 4 --examples 1 --request-id-prefix r-" },
		{ "dataset show --dataset-name custom_audio --dataset-path bad7.jsonl --tokenizer sim", .status = 2 },
		{ "dataset show --dataset-name custom_image --dataset-path bad1.jsonl" MEDIA, .status = 2 },
		{ "dataset show --dataset-name custom_image --dataset-path bad2.jsonl" MEDIA, .status = 2 },
		{ "dataset show --dataset-name custom_image --dataset-path bad3.jsonl" MEDIA, .status = 2 },
		{ .line = "dataset show --dataset-name custom_image --dataset-path bad4.jsonl" MEDIA },
		{ "dataset show --dataset-name custom_image --dataset-path bad4.jsonl --custom-ensure-client-side-data"
		  MEDIA, .status = 1 },
		{ "dataset show --dataset-name custom_image --dataset-path bad6.jsonl" MEDIA, .status = 2 },
		{ "dataset show --dataset-name custom_audio --dataset-path bad4.jsonl --enable-multimodal-chat" MEDIA,
		  .status = 1 },
		{ .line = "dataset show --dataset-name custom_image --dataset-path image.jsonl --tokenizer sim" },
		{ .line = "dataset show --dataset-name custom_image --dataset-path image.jsonl --tokenizer sim "
		  "--backend openai-embeddings --num-prompts 3 --examples 0" },
		{ "dataset show --dataset-name custom --dataset-path bad5.jsonl --tokenizer sim --skip-chat-template",
		  .status = 2 },
		{ "dataset show --dataset-name custom --dataset-path empty.jsonl --tokenizer sim", .status = 2 },
		{ "dataset show --dataset-name custom --dataset-path text.txt --tokenizer sim", .status = 2 },
		{ .line = "dataset show --json --dataset-name spec_bench --dataset-path turns.jsonl --tokenizer sim "
		  "--request-id-prefix r- --num-prompts 2" },
		{ "dataset show --dataset-name spec_bench --dataset-path turns.jsonl --tokenizer sim "
		  "--spec-bench-category none", .status = 2 },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

static void put(const char *path, const char *text)
{
	struct err e;

	if (file_write_atomic(path, str_of(text), &e) < 0)
		fail_msg("%s", e.text);
}

/* The small vocabulary with a BOS around texts. */
static void put_small(const char *path)
{
	struct buf text = { 0 };
	char from[4224];
	struct err e;

	snprintf(from, sizeof(from), "%s/tests/unit/token/small.json", verb_root);
	assert_int_equal(file_read(from, SIZE_MAX, &text, &e), 0);
	buf_add_char(&text, '\0');
	text.len--;
	verb_replace(&text, "\"post_processor\":null", "\"post_processor\":{\"type\":\"TemplateProcessing\","
		     "\"single\":[{\"SpecialToken\":{\"id\":\"<|bos|>\",\"type_id\":0}},{\"Sequence\":"
		     "{\"id\":\"A\",\"type_id\":0}}],\"special_tokens\":{\"<|bos|>\":{\"id\":\"<|bos|>\","
		     "\"ids\":[656],\"tokens\":[\"<|bos|>\"]}}}");
	put(path, text.data);
	buf_release(&text);
}

#define SAID(who, text) "{\"from\": \"" who "\", \"value\": \"" text "\"}"

/* Lines that are read in several pieces, between short ones. */
static void put_wide(const char *path)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	for (int i = 1; i < 8; i++)
		fprintf(f, "\"%0*d\"\n", i % 2 ? 300000 * i : i, i);
	fclose(f);
}

static int setup(void **state)
{
	char tokens[480];

	if (verb_setup(state) < 0)
		return -1;
	snprintf(tokens, sizeof(tokens), "%.400s/tests/unit/token", verb_root);
	verb_let("TOKENS", tokens);
	verb_let("DIR", dir);
	mkdir("folder", 0755);
	put_small("small.json");
	put_small("folder/tokenizer.json");
	put("folder/tokenizer_config.json", "{\"bos_token\": {\"content\": \"<|bos|>\"}, \"eos_token\": "
	    "\"<|eos|>\", \"unk_token\": null, \"chat_template\": \"{{ messages }}\"}");
	put("folder/special_tokens_map.json", "{\"eos_token\": \"other\", \"pad_token\": \"<none>\"}");
	put("a.txt", " abc\n");
	put("b.txt", " the end<|end|>");
	put("empty", "");
	put("ok.jsonl", "\" abc\"\n{\"id\": 1, \"prompt\": \" the\"}\n{\"prompt\": \"x\", \"text\": \"\\u0000\"}\n"
	    "\"\"\n");
	put_wide("wide.jsonl");
	put("bad.jsonl", "\"a\"\n\"b\"\n[1]\n\"c\"\n");
	put("text.txt", "It was the best of times.\nIt was the worst of times.\nIt was the age of wisdom.\n");
	put("chat.jsonl", "{\"prompt\": \"one two\", \"output_tokens\": 3}\n{\"prompt\": \"A very long line that "
	    "goes on and on, so long that nobody reads it to its end, which is why only the first part of it is "
	    "shown when examples are printed to a terminal, and the rest of it is counted in bytes instead: "
	    "caf\\u00e9\", \"output_tokens\": 30}\n");
	put("picture.png", "\x89PNG\r\n\x1a\n and no more");
	put("image.jsonl", "{\"prompt\": \"what is this\", \"image_files\": [\"picture.png\"], \"output_tokens\": 7}\n"
	    "{\"prompt\": \"two\", \"image_files\": [\"http://h/a.png\", \"data:image/png;base64,AAAA\"]}\n"
	    "{\"prompt\": \"three\", \"image_files\": [\"picture.png\"]}\n");
	put("parts.jsonl", "{\"content\": [{\"type\": \"text\", \"text\": \"look\"}, {\"type\": \"image\", \"image\": "
	    "\"picture.png\"}, {\"type\": \"image_url\", \"image_url\": {\"url\": "
	  "\"http://h/b.png\", \"detail\": \"low\"}}, "
	    "{\"type\": \"text\", \"text\": \"again\"}]}\n{\"content\": [{\"type\": \"image_url\", \"image_url\": "
	    "\"http://h/c.png\"}]}\n{\"prompt\": \"p\", \"image_files\": [\"picture.png\"]}\n");
	put("sound.jsonl", "{\"prompt\": \"listen\", \"audio\": {\"array\": [0, 0.5, -0.5, 1], "
	  "\"sampling_rate\": 8000}}\n"
	    "{\"prompt\": \"again\", \"audio\": [[0, 0.25], 8000], \"output_tokens\": "
	  "5}\n{\"prompt\": \"\", \"audio\": {\"array\": [1], "
	    "\"sampling_rate\": 16000}}\n");
	put("bad1.jsonl", "{\"prompt\": \"a\"}\n");
	put("bad7.jsonl", "{\"prompt\": \"a\", \"audio\": [[[0, 1], [0, 1]], 8000]}\n");
	put("bad6.jsonl", "{\"prompt\": \"a\", \"image_files\": []}\n");
	put("bad2.jsonl", "{\"content\": [{\"type\": \"video\"}]}\n");
	put("bad3.jsonl", "{\"content\": [{\"type\": \"image\"}]}\n");
	put("bad4.jsonl", "{\"prompt\": \"a\", \"image_files\": [\"none.png\"], \"audio\": \"none.wav\"}\n");
	put("bad5.jsonl", "{\"prompt\": \"a\"}\n{\"prompt\": 7}\n");
	put("empty.jsonl", "");
	put("turns.jsonl", "{\"turns\": [\"first\", \"second\"], \"category\": \"writing\"}\n{\"turns\": [\"other\"], "
	    "\"category\": \"math\"}\n");
	put("share.json", "[{\"id\": \"a\", \"conversations\": [" SAID("human", "Hello there") ", "
	    SAID("gpt", "Hi") ", " SAID("human", "And now?") ", " SAID("gpt", "Nothing.") "]},"
	    "{\"id\": \"b\", \"conversations\": [" SAID("human", "One") ", " SAID("gpt", "Two") "]},"
	    "{\"id\": \"c\", \"conversations\": [" SAID("gpt", "First") ", " SAID("gpt", "Second") "]},"
	    "{\"id\": \"d\", \"conversations\": [" SAID("human", "x") ", " SAID("gpt", "caf\\u00e9") "]},"
	    "{\"id\": \"e\", \"conversations\": [" SAID("human", "A message that has more characters than the "
	    "others, namely more than sixty of them") ", " SAID("gpt", "Yes") ", " SAID("human", "So?") "]}]");
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts),
		cmocka_unit_test(refused_texts),
		cmocka_unit_test(what_a_tokenizer_is),
		cmocka_unit_test(workloads),
		cmocka_unit_test(own_media),
	};

	if (argc > 1)
		return profllm_main(argc, argv);
	return cmocka_run_group_tests(tests, setup, verb_teardown);
}
