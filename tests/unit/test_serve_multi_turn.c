/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_multi_turn.c -
 * rules between the options of `bench multi-turn`, in upstream's order; H1.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "bench/serve/multi_turn.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define WORDS_MAX 16

/* Parses and checks a line; the texts that *m borrows are in the arena. */
static int check(const char *line, struct multi_turn_opts *o, struct multi_turn *m,
		 struct arena *a, struct err *e)
{
	struct opt_result result;
	struct str rest = str_of(line);
	char *words[WORDS_MAX];
	int n = 0, rc;

	while (rest.n && n < WORDS_MAX)
		words[n++] = arena_text(a, str_cut(&rest, ' '));
	*m = (struct multi_turn){ 0 };
	rc = opt_parse(&multi_turn_opt_set, n, words, o, &result, a, e);
	opt_result_release(&result);
	return rc < 0 ? -1 : multi_turn_opts_check(o, a, m, e);
}

/* want: how the sentence begins; NULL: nothing is wrong. */
static const struct { const char *line, *want; } rules[] = {
	{ "-m x", "--input-file is missing" },
	{ "-i x", "--model is missing" },
	{ "-i x -m x -p 0", "--num-clients: expected an integer from 1" },
	{ "-i x -m x -p 3 -n 2", "--max-num-requests 2 is below --num-clients 3" },
	{ "-i x -m x -p 3 -k 2", "--max-active-conversations 2 is below --num-clients 3" },
	{ "-i x -m x -p 3 -k 2 -n 2", "--max-num-requests 2 is below" },
	{ "-i x -m x --limit-min-tokens 5", "--limit-max-tokens 0: expected at least 1" },
	{ "-i x -m x --limit-max-tokens 5", "--limit-min-tokens 0: expected at least 1" },
	{ "-i x -m x --limit-max-tokens=-1 --limit-min-tokens 4",
	  "--limit-max-tokens -1: expected at least 1" },
	{ "-i x -m x --limit-min-tokens 5 --limit-max-tokens 4",
	  "--limit-min-tokens 5 is above --limit-max-tokens 4" },
	{ "-i x -m x --limit-min-tokens=-1 --limit-max-tokens 0", NULL },
	{ "-i x -m x --limit-min-tokens 4 --limit-max-tokens 4", NULL },
	{ "-i x -m x --request-timeout-sec 0", "--request-timeout-sec: expected an integer from 1" },
	{ "-i x -m x --warmup-percentages 100%", "--warmup-percentages: expected percentages from 0%" },
	{ "-i x -m x --warmup-percentages 10%,x", "--warmup-percentages: expected percentages" },
	{ "-i x -m x --warmup-percentages 10%,,5%", "--warmup-percentages: expected percentages" },
	{ "-i x -m x --warmup-percentages=-1%", "--warmup-percentages: expected percentages" },
	{ "-i x -m x --warmup-percentages nan", "--warmup-percentages: expected percentages" },
	{ "-i x -m x --warmup-step --warmup-percentages x", NULL },
	{ "-i x -m x --compat abandon,nothing", "--compat: expected names from abandon, usage, body" },
	{ "-i x -m x --url ftp://h", "--url: " },
	{ "-i x -m x --conversation-sampling fair", "--conversation-sampling: expected one of" },
};

static void test_rules(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(rules); i++) {
		struct multi_turn_opts o;
		struct multi_turn m;
		struct arena a = { 0 };
		struct err e = { 0 };
		int rc = check(rules[i].line, &o, &m, &a, &e);

		if (rules[i].want ? rc == 0 || strncmp(e.text, rules[i].want,
						       strlen(rules[i].want)) != 0 : rc < 0)
			fail_msg("%s: '%s', not '%s'", rules[i].line, e.text,
				 rules[i].want ? rules[i].want : "");
		arena_release(&a);
	}
}

/* Values in force: shares in order, what is divided among clients, the variable for retries. */
static void test_values(void **state)
{
	struct multi_turn_opts o;
	struct multi_turn m;
	struct arena a = { 0 };
	struct err e = { 0 };

	(void)state;
	setenv("MULTITURN_BENCH_MAX_RETRIES", "4", 1);
	assert_int_equal(check("-i x -m x -p 3 --warmup-percentages 50%,0,12.5% --max-turns 6 "
			       "--conversation-sampling random --seed 7", &o, &m, &a, &e), 0);
	assert_int_equal(m.n_warmup, 3);
	assert_true(m.warmup[0] == 0 && m.warmup[1] == 0.125 && m.warmup[2] == 0.5);
	assert_int_equal(m.order.active_max, 3);
	assert_int_equal(m.order.requests_max, 0);
	assert_int_equal(m.order.messages_max, 6);
	assert_int_equal(m.order.retries_max, 4);
	assert_int_equal(m.order.seed, 7);
	assert_int_equal(m.order.sampling, TURN_RANDOM);
	assert_true(m.order.stops_early);
	assert_false(m.order.skips_first || m.order.abandons);
	assert_true(m.order.request_rate == 0); /* without a limit */
	assert_int_equal(check("-i x -m x -k 5 -n 9 --max-retries 1 --no-early-stop --warmup-step "
			       "--request-rate 2.5 --compat multi-turn", &o, &m, &a, &e), 0);
	assert_int_equal(m.order.active_max, 5);
	assert_true(m.order.request_rate == 2.5);
	assert_int_equal(m.order.requests_max, 9);
	assert_int_equal(m.order.retries_max, 1);
	assert_true(m.order.skips_first && m.order.abandons && !m.order.stops_early);
	assert_int_equal(m.compat, MULTI_TURN_ABANDON | MULTI_TURN_USAGE | MULTI_TURN_BODY);
	assert_int_equal(check("-i x -m x --request-rate inf", &o, &m, &a, &e), 0);
	assert_true(m.order.request_rate == 0);
	setenv("MULTITURN_BENCH_MAX_RETRIES", "many", 1);
	assert_int_equal(check("-i x -m x", &o, &m, &a, &e), -1);
	assert_non_null(strstr(e.text, "$MULTITURN_BENCH_MAX_RETRIES: expected an integer"));
	unsetenv("MULTITURN_BENCH_MAX_RETRIES");
	arena_release(&a);
}

/* H1. key NULL: refused, and the value is not repeated. */
static void test_headers(void **state)
{
	static const struct { const char *text, *key, *value; } rows[] = {
		{ "A: b", "A", "b" }, { "A=b", "A", "b" }, { "=b", NULL, NULL },
		{ "X=http://h", "X", "http://h" }, { " A : b=c ", "A", "b=c" },
		{ ": b", NULL, NULL }, { "", NULL, NULL }, { "secret", NULL, NULL }, { "A=", "A", "" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct serve_pair pair;
		struct arena a = { 0 };
		struct err e = { 0 };
		int rc = multi_turn_header(rows[i].text, &a, &pair, &e);

		if (!rows[i].key) {
			assert_int_equal(rc, -1);
			assert_int_equal(e.code, ERR_USAGE);
		} else {
			assert_int_equal(rc, 0);
			assert_string_equal(pair.key, rows[i].key);
			assert_string_equal(pair.value, rows[i].value);
		}
		arena_release(&a);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
