/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_turns.c - bench multi-turn: what is sent of conversations and in which order, and what
 * is said and written of them. $S answers; $B refuses some requests; $N refuses all.
 *
 * threads: yes
 */
#include "serve_rig.h"

#define TURNS \
	"bench multi-turn -m sim --tokenizer sim --progress none --ready-check-timeout-sec 0 -u http://127.0.0.1:"
#define ANSWERED TURNS "$S -i talks3.json "
#define FAILING  TURNS "$B -i talks3.json --request-id-prefix t- "

#define TURNED .mask = VERB_TIMES | VERB_NO_OUT | VERB_NO_ERR, .varies = verb_serve_varies
#define TOLD   .mask = VERB_TIMES, .varies = verb_serve_varies

static void conversations(void **state)
{
	static const struct verb_case cases[] = {
		{ ANSWERED "-o said.json --print-content --send-conversation-id", TOLD,
		  .files = "said.json +6:asked" },
		{ ANSWERED
		  "-k 2 -n 3 -o said.json --print-content --no-stream --limit-min-tokens=-1 --limit-max-tokens=-1",
		  TOLD, .files = "said.json +4:asked" },
		{ ANSWERED
		  "--warmup-step -o said.json --print-content --compat multi-turn --limit-min-tokens 2 "
		  "--limit-max-tokens 4 --send-conversation-id",
		  TOLD, .files = "said.json +6:asked" },
		{ ANSWERED "--warmup-step --max-turns 1 --output-len 2", TURNED,
		  .files = "+5:asked" },
		/* The second conversation is active, and nothing of it is sent. */
		{ ANSWERED "-k 2 -n 1", TOLD },
		{ ANSWERED "--verify-output", TOLD, .status = 1 },
		{ ANSWERED "--verify-output=stop --warmup-step", TOLD, .status = 1 },
		{ TURNS "$S -i own.json --verify-output -v", TOLD },
		{ FAILING "-o said.json --print-content -v", TOLD, .files = "said.json" },
		{ FAILING "--warmup-step -o said.json", TOLD, .files = "said.json" },
		{ TURNS "$N -i talks3.json --warmup-step", TOLD, .status = 1 },
		{ .line = ANSWERED "-p 4 -k 5", .status = 2 },
		{ .line = ANSWERED "-k 4", .status = 2 },
		{ .line = TURNS "$S -i none.json", .status = 1 },
		{ .line = TURNS "$S -i lines.jsonl", .status = 2 },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

/* What is said of the conversations before any is sent, number by number. */
static void described(void **state)
{
	static const char *const lines[] = { TURNS "$S -i generate.json", ANSWERED "-n 1" };

	(void)state;
	for (size_t i = 0; i < COUNT(lines); i++) {
		struct buf got = { 0 };
		char out[64], *end;
		struct err e;

		snprintf(out, sizeof(out), "%s/.out", dir);
		assert_int_equal(verb_end(verb_begin(lines[i], NULL, out, "/dev/null")), 0);
		assert_int_equal(file_read(out, SIZE_MAX, &got, &e), 0);
		buf_add_char(&got, '\0');
		end = strstr(got.data, "Starting main");
		assert_non_null(end);
		got.len = (size_t)(end - got.data);
		*end = '\0';
		verb_answer(lines[i], &got);
	}
}

#define SAID(role, text) "{\"role\": \"" role "\", \"content\": \"" text "\"}"

static int setup(void **state)
{
	if (serve_setup(state) < 0)
		return -1;
	spew("talks3.json",
	     "[{\"id\": \"a\", \"messages\": [" SAID("system", "be brief") ", "
	     SAID("user", "one") ", " SAID("assistant", "first answer") ", "
	     SAID("user", "two") ", " SAID("assistant", "second") "]},"
	     " {\"id\": \"b\", \"messages\": [" SAID("user", "three") ", "
	     SAID("assistant", "third answer") ", " SAID("user", "four") "]},"
	     " {\"id\": \"c\", \"messages\": [" SAID("user", "five") ", "
	     SAID("assistant", "five") "]}]");
	spew("own.json", "[{\"id\": \"a\", \"messages\": [" SAID("user", "one") "]}]");
	spew("text.txt",
	     "It was the best of times, it was the worst of times, it was the age of wisdom, it was the "
	     "age of foolishness, it was the epoch of belief, it was the epoch of incredulity.\n");
	spew("generate.json",
	     "{\"filetype\": \"generate_conversations\", \"num_conversations\": 2, \"text_files\": "
	     "[\"text.txt\"], \"print_stats\": true, \"prompt_input\": "
	     "{\"num_turns\": {\"distribution\": \"constant\", "
	     "\"value\": 4}, \"prefix_num_tokens\": {\"distribution\": \"constant\", \"value\": 0}, \"num_tokens\": "
	     "{\"distribution\": \"constant\", \"value\": 12}}, \"prompt_output\": {\"num_tokens\": "
	     "{\"distribution\": \"constant\", \"value\": 3}}}");
	verb_sim("N", "--fault status=500");
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(conversations),
					    cmocka_unit_test(described) };

	if (argc > 1)
		return profllm_main(argc, argv);
	return cmocka_run_group_tests(tests, setup, verb_teardown);
}
