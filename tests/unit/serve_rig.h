/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve_rig.h - for tests of bench serve: command lines against two simulators, $S and $B, of which
 * the second one fails, and files to send. $S writes what it is asked to the file asked.
 */
#pragma once
#include "verb.h"

#define SMALL "--num-prompts 4 --random-input-len 8 --random-output-len 5 --max-concurrency 1"
#define QUICK "--ready-check-timeout-sec 0 --progress none --request-id-prefix t- --prompt-salt" \
	" none"
#define SERVE "bench serve --base-url http://127.0.0.1:$S --model sim --tokenizer sim " QUICK " "
#define BROKEN "bench serve --base-url http://127.0.0.1:$B --model sim --tokenizer sim " QUICK " "
#define M .mask = VERB_TIMES, .varies = verb_serve_varies
#define F .mask = VERB_TIMES | VERB_FLAT | VERB_NO_ERR, .varies = verb_serve_varies
#define SILENT .mask = VERB_TIMES | VERB_FLAT | VERB_NO_ERR | VERB_NO_OUT, \
	.varies = verb_serve_varies

static void spew(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int serve_setup(void **state)
{
	if (verb_setup(state) < 0)
		return -1;
	spew("talks.json", "[{\"conversations\": [{\"value\": \"abcdef\"}, {\"value\": \"yes, it"
	" is\"}]},"
	     " {\"conversations\": [{\"value\": \"ghijklm\"}, {\"value\": \"it is so\"}]},"
	     " {\"conversations\": [{\"value\": \"what is that\"}, {\"value\": \"nothing\"}]}]");
	spew("lines.jsonl", "{\"prompt\": \"one prompt\"}\n{\"prompt\": \"and another\"}\n");
	spew("conversations.json", "[{\"id\": \"a\", \"messages\": ["
	     "{\"role\": \"user\", \"content\": \"first question\"},"
	     " {\"role\": \"assistant\", \"content\": \"first answer\"},"
	     " {\"role\": \"user\", \"content\": \"second question\"},"
	     " {\"role\": \"assistant\", \"content\": \"second answer\"}]}]");
	spew("one.json", "{\"duration\": 2.5, \"completed\": 10, \"failed\": 0,"
	" \"request_throughput\": 4,"
	     " \"mean_ttft_ms\": 12.5, \"p99_ttft_ms\": 40, \"mean_tpot_ms\": 8}");
	spew("two.json", "{\"duration\": 2, \"completed\": 10, \"failed\": 1,"
	" \"request_throughput\": 5,"
	     " \"mean_ttft_ms\": 10, \"p99_ttft_ms\": 50, \"mean_e2el_ms\": 100}");
	verb_sim("S", "--ttft-ms 2 --itl-ms 0.5 --requests asked");
	verb_sim("B", "--ttft-ms 1 --itl-ms 0.1 --fault status=429:id=t-1 close@3:id=t-2");
	return 0;
}
