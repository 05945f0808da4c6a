/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_sets_sessions.c - files of sessions: which turn continues and waits for which, with which
 * gap; cases B1 and B2 of the specification. Trees are written as "name<history(waits)".
 *
 * threads: yes
 */
#include "data_rig.h"

#include <math.h>

#define SAYS(role, text) "{\"role\": \"" role "\", \"content\": \"" text "\"}"

static void sessions_init(struct fixture *f, const char *text)
{
	fixture_init(f, "s.jsonl", text);
	f->env.num_prompts = 0;
	f->env.backend = "openai-chat";
}

/* The one letter that the turn's last message holds. */
static char letter(const struct workload *w, uint32_t turn)
{
	struct str m = w->v[turn].messages;
	const char *mark = STR("\"content\": \"").p, *last = NULL, *at = m.p;

	while ((at = strstr(at, mark)))
		last = at += strlen(mark);
	assert_non_null(last);
	return *last;
}

/* "a b<a(a) c<b(b) d(a)": letters of turns, of their histories and of those they wait for. */
static void assert_tree(struct fixture *f, const char *want)
{
	const struct sessions *s;
	struct buf got = { 0 };

	if (build_again(f, "sessions") < 0)
		fail_msg("%s", f->e.text);
	s = f->w.sessions;
	assert_non_null(s);
	assert_int_equal(s->n_turns, f->w.n);
	for (uint32_t i = 0; i < f->w.n; i++) {
		const struct turn *t = &s->turn[i];

		buf_printf(&got, "%s%c", i ? " " : "", letter(&f->w, i));
		if (t->history != TURN_NONE) {
			assert_true(t->history < i);
			buf_printf(&got, "<%c", letter(&f->w, t->history));
		}
		for (uint32_t k = 0; k < t->n_waits; k++) {
			assert_true(s->waits[t->wait + k] < i);
			buf_printf(&got, "%s%c", k ? "" : "(", letter(&f->w, s->waits[t->wait + k]));
		}
		buf_add_text(&got, t->n_waits ? ")" : "");
	}
	assert_string_equal(got.data, want);
	buf_release(&got);
}

/* ---- aiperf's trees ---- */

static void b1_forks_continue_the_history(void **state)
{
	static const int number[] = { 0, 1, 2, 1, 2 };
	struct fixture f;

	(void)state;
	sessions_init(&f,
		"{\"session_id\": \"root\", \"turns\": [{\"messages\": [" SAYS("system", "s") ","
		SAYS("user", "r") "], \"max_tokens\": 16, \"forks\": [\"a\", \"b\"]}]}\n"
		"{\"session_id\": \"a\", \"turns\": [{\"messages\": [" SAYS("user", "1") ","
		SAYS("user", "a") "]}, {\"messages\": [" SAYS("user", "2") "," SAYS("user", "A") "]}]}\n"
		"{\"session_id\": \"b\", \"turns\": [{\"messages\": [" SAYS("user", "b") "]}, "
		"{\"messages\": [" SAYS("user", "B") "], \"model\": \"m\", \"extra\": {\"seed\": 1}, "
		"\"delay\": 1500}]}\n");
	assert_tree(&f, "r a<r(r) A<a(a) b<r(r) B<b(b)");
	assert_int_equal(f.w.sessions->n_sessions, 1);
	assert_true(str_is(f.w.sessions->session[0].id, "root"));
	assert_true(str_is(f.w.v[1].messages, "[{\"role\": \"user\", \"content\": \"1\"}, "
			   "{\"role\": \"user\", \"content\": \"a\"}]"));
	assert_int_equal(f.w.v[0].output_len, 16);
	assert_int_equal(f.w.v[1].output_len, -1);
	assert_int_equal(f.w.v[0].prompt_len, 2);
	assert_int_equal(f.w.v[1].prompt_len, 2 + 16 + 2);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(f.w.sessions->turn[i].number, number[i]);
	assert_true(f.w.sessions->turn[4].gap_s == 1.5);
	assert_int_equal(f.w.sessions->turn[4].gap_kind, TURN_THINKS);
	assert_true(str_is(f.w.v[4].overrides, "{\"seed\": 1, \"model\": \"m\"}"));
	fixture_release(&f);
}

static void b2_a_join_waits_for_spawns(void **state)
{
	struct fixture f;

	(void)state;
	sessions_init(&f,
		"{\"session_id\": \"root\", \"turns\": [{\"messages\": [" SAYS("user", "0") "], "
		"\"spawns\": [{\"children\": [\"x\", \"y\"], \"join_at\": 2}]}, "
		"{\"messages\": [" SAYS("user", "1") "]}, {\"messages\": [" SAYS("tool", "2") "], "
		"\"delay\": 5}]}\n"
		"{\"session_id\": \"x\", \"turns\": [{\"messages\": [" SAYS("user", "x") "]}, "
		"{\"messages\": [" SAYS("user", "X") "]}]}\n"
		"{\"session_id\": \"y\", \"turns\": [{\"messages\": [" SAYS("system", "y") "]}]}\n");
	assert_tree(&f, "0 x(0) X<x(x) y(0) 1<0(0) 2<1(1Xy)");
	assert_int_equal(f.w.sessions->turn[5].gap_kind, TURN_CALLS_TOOLS);
	fixture_release(&f);
}

/* A plain name is joined by the next turn; two sessions may spawn the same one. */
static void spawns_are_templates(void **state)
{
	struct fixture f;

	(void)state;
	sessions_init(&f,
		"{\"session_id\": \"p\", \"turns\": [{\"messages\": [" SAYS("user", "p") "], "
		"\"spawns\": [\"x\"]}, {\"messages\": [" SAYS("user", "P") "]}]}\n"
		"{\"session_id\": \"q\", \"pre_session_spawns\": [\"x\"], \"turns\": [{\"messages\": ["
		SAYS("user", "q") "], \"forks\": [{\"child\": \"z\", \"background\": true}]}, "
		"{\"messages\": [" SAYS("user", "Q") "]}]}\n"
		"{\"session_id\": \"x\", \"turns\": [{\"messages\": [" SAYS("user", "x") "]}]}\n"
		"{\"session_id\": \"z\", \"turns\": [{\"messages\": [" SAYS("user", "z") "]}]}\n");
	assert_tree(&f, "p x(p) P<p(px) x q z<q(q) Q<q(q)");
	assert_int_equal(f.w.sessions->n_sessions, 2);
	f.env.num_prompts = 1;
	assert_tree(&f, "p x(p) P<p(px)");
	fixture_release(&f);
}

static void an_orchestrator_runs_rounds(void **state)
{
	struct fixture f;

	(void)state;
	sessions_init(&f,
		"{\"session_id\": \"o\", \"orchestrator\": true, \"rounds\": 2, \"think_time_ms\": 100, "
		"\"spawns\": [\"x\", \"y\"]}\n"
		"{\"session_id\": \"x\", \"turns\": [{\"messages\": [" SAYS("user", "x") "]}]}\n"
		"{\"session_id\": \"y\", \"turns\": [{\"messages\": [" SAYS("user", "y") "]}]}\n");
	assert_tree(&f, "x y x(xy) y(xy)");
	assert_true(f.w.sessions->turn[2].gap_s == .1);
	fixture_release(&f);
	/* Rounds of their own, with their own time to think. */
	sessions_init(&f,
		"{\"session_id\": \"o\", \"orchestrator\": true, \"think_time_ms\": 100, \"rounds\": "
		"[{\"spawns\": [\"x\"]}, {\"spawns\": [\"y\", \"x\"], \"think_time_ms\": 300}, "
		"{\"spawns\": [\"y\"]}]}\n"
		"{\"session_id\": \"x\", \"turns\": [{\"messages\": [" SAYS("user", "x") "]}]}\n"
		"{\"session_id\": \"y\", \"turns\": [{\"messages\": [" SAYS("user", "y") "]}]}\n");
	assert_tree(&f, "x y(x) x(x) y(yx)");
	assert_true(f.w.sessions->turn[1].gap_s == .3 && f.w.sessions->turn[2].gap_s == .3);
	assert_true(f.w.sessions->turn[3].gap_s == .1);
	fixture_release(&f);
}

static void bad_trees_are_one_sentence(void **state)
{
#define ONE(id, members) "{\"session_id\": \"" id "\", \"turns\": [{\"messages\": ["            \
	SAYS("user", "x") "]" members "}]}\n"
	static const struct { const char *text, *want; } row[] = {
		{ ONE("a", ", \"forks\": [\"b\"]"), "s.jsonl:1: turns[0]: \"forks\" names session b, which "
						    "the file does not have" },
		{ ONE("a", "") ONE("a", ""), "s.jsonl:2: session_id 'a' is also that of an earlier line" },
		{ ONE("a", ", \"spawns\": [\"b\"]") ONE("b", ", \"spawns\": [\"a\"]"),
		  "s.jsonl:1: session 'a' is part of a cycle" },
		{ ONE("r", ", \"spawns\": [\"a\"]") ONE("a", ", \"spawns\": [\"a\"]"),
		  "session 'a' is part of a cycle" },
		{ ONE("a", ", \"forks\": [\"c\"]") ONE("b", ", \"forks\": [\"c\"]") ONE("c", ""),
		  "s.jsonl:2: turns[0]: session 'c' is forked by two turns" },
		{ ONE("a", ", \"spawns\": [{\"children\": [\"b\"], \"join_at\": 1}]") ONE("b", ""),
		  "\"join_at\" 1 must name a later turn, below 1" },
		{ "{\"session_id\": \"o\", \"orchestrator\": true, \"rounds\": [{}]}\n",
		  "s.jsonl:1: \"rounds\" has an element without \"spawns\"" },
		{ ONE("a", ", \"max_token\": 1"), "s.jsonl:1: turns[0]: unknown key \"max_token\"" },
		{ ONE("a", ", \"max_tokens\": 0"), "\"max_tokens\" must be a whole number above 0" },
		{ ONE("a", ", \"delay\": -1"), "\"delay\" must be milliseconds" },
		{ "{\"session_id\": \"a\", \"turns\": [{\"messages\": [" SAYS("user", "x") "]}, "
		  "{\"messages\": [" SAYS("system", "x") "]}]}\n",
		  "turns[1]: messages[0]: a system message must be the first one of a history" },
		{ "{\"session_id\": \"a\", \"turns\": [{\"messages\": []}]}\n", "\"messages\" is empty" },
		{ "{\"session_id\": \"a\", \"turns\": [{\"messages\": [{\"role\": \"user\"}]}]}\n",
		  "messages[0]: \"content\" must be a text or a list of parts" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct fixture f;

		sessions_init(&f, row[i].text);
		assert_refused(&f, "sessions", row[i].want);
		fixture_release(&f);
	}
}

/* ---- aiperf's lists of turns ---- */

static void multi_turn_has_delays_and_times(void **state)
{
	struct fixture f;

	(void)state;
	sessions_init(&f,
		"{\"session_id\": \"s\", \"turns\": [{\"text\": \"a\", \"timestamp\": 2000, "
		"\"output_length\": 5}, {\"text\": \"b\", \"timestamp\": 3500}]}\n"
		"{\"turns\": [{\"text\": \"c\", \"timestamp\": 1000}, {\"text\": \"d\", \"delay\": 250}]}\n");
	assert_tree(&f, "a b<a(a) c d<c(c)");
	assert_true(f.w.is_self_timed);
	assert_true(f.w.v[0].timestamp_s == 1 && f.w.v[2].timestamp_s == 0);
	assert_true(isnan(f.w.v[1].timestamp_s));
	assert_true(f.w.sessions->turn[1].gap_s == 1.5 && f.w.sessions->turn[1].is_gap_from_start);
	assert_true(f.w.sessions->turn[3].gap_s == .25 && !f.w.sessions->turn[3].is_gap_from_start);
	assert_int_equal(f.w.v[0].output_len, 5);
	fixture_release(&f);
	sessions_init(&f, "{\"turns\": [{\"text\": \"a\", \"timestamp\": 2000}, {\"text\": \"b\", "
			  "\"timestamp\": 1000}]}\n");
	assert_refused(&f, "sessions", "s.jsonl:1: turns[1]: \"timestamp\" 1000 is before that of the turn "
		       "before it, 2000");
	fixture_release(&f);
}

/* Rows of one session follow each other; each has only its own message. */
static void single_turn_has_order_and_no_history(void **state)
{
	struct fixture f;

	(void)state;
	sessions_init(&f,
		"{\"text\": \"a\", \"session_id\": \"s\"}\n{\"text\": \"b\"}\n"
		"{\"text\": \"c\", \"session_id\": \"s\", \"delay\": 10}\n");
	assert_tree(&f, "a c(a) b");
	assert_false(f.w.is_self_timed);
	fixture_release(&f);
	sessions_init(&f, "{\"texts\": [\"x\"], \"image\": \"a.png\", \"role\": \"user\"}\n");
	assert_int_equal(build(&f, "sessions"), 0);
	assert_true(str_is(f.w.v[0].messages, "[{\"role\": \"user\", \"content\": [{\"type\": \"text\", "
			   "\"text\": \"x\"}, {\"type\": \"image_url\", \"image_url\": {\"url\": "
			   "\"file://a.png\"}}]}]"));
	fixture_release(&f);
	sessions_init(&f, "{\"text\": \"x\", \"audio\": \"a.wav\"}\n");
	assert_refused(&f, "sessions", "s.jsonl:1: unknown key \"audio\"");
	fixture_release(&f);
}

/* ---- our own form ---- */

#define TURN(members, text) "{\"id\": \"s\", " members "\"messages\": [" SAYS("user", text) "]}\n"

static void turns_name_what_they_wait_for(void **state)
{
	struct fixture f;

	(void)state;
	sessions_init(&f,
		TURN("\"turn\": \"join\", \"history\": \"a\", \"waits\": [\"a\", \"b\"], \"gap\": 2, "
		     "\"gap_kind\": \"tool\", \"priority\": -3, ", "j")
		TURN("\"turn\": \"root\", \"history\": null, \"timestamp\": 4, ", "r")
		TURN("\"turn\": \"a\", \"output_tokens\": 7, \"headers\": {\"X\": \"1\"}, ", "a")
		TURN("\"turn\": \"b\", \"history\": \"root\", \"gap_from\": \"start\", \"gap\": 1, ", "b")
		"{\"id\": 2, \"timestamp\": 3, \"extra_body\": {\"n\":2}, \"messages\": ["
		SAYS("user", "z") "]}\n");
	assert_tree(&f, "r a<r(r) b<r(r) j<a(ab) z");
	assert_true(f.w.is_self_timed && f.w.has_priorities);
	assert_true(f.w.v[0].timestamp_s == 1 && f.w.v[4].timestamp_s == 0);
	assert_int_equal(f.w.v[3].priority, -3);
	assert_int_equal(f.w.v[1].output_len, 7);
	assert_true(str_is(f.w.v[1].headers, "{\"X\": \"1\"}"));
	assert_true(str_is(f.w.v[4].overrides, "{\"n\": 2}"));
	assert_int_equal(f.w.sessions->turn[3].gap_kind, TURN_CALLS_TOOLS);
	assert_true(f.w.sessions->turn[2].is_gap_from_start);
	fixture_release(&f);
}

/* Gaps come from a generator of their own: lengths and order do not depend on them. */
static void gaps_are_drawn_from_the_next_seed(void **state)
{
	struct legacy np;
	struct fixture f;

	(void)state;
	sessions_init(&f, TURN("", "a")
		      TURN("\"gap\": {\"distribution\": \"uniform\", \"min\": 0.5, \"max\": 1.5}, ", "b")
		      TURN("\"gap\": {\"distribution\": \"lognormal\", \"mean\": 1, \"sigma\": 0.5, "
			   "\"max\": 2}, ", "c"));
	f.env.seed = 41;
	assert_tree(&f, "a b<a(a) c<b(b)");
	legacy_seed(&np, 42);
	assert_true(f.w.sessions->turn[1].gap_s == legacy_uniform(&np, .5, 1.5));
	assert_true(f.w.sessions->turn[2].gap_s == fmin(2, legacy_lognormal(&np, 1, .5)));
	fixture_release(&f);
}

/* A law as --think-time has it. */
static void gaps_may_be_laws(void **state)
{
	double first[2] = { 0 };

	(void)state;
	for (int k = 0; k < 3; k++) {
		struct fixture f;
		const struct turn *t;

		sessions_init(&f, TURN("", "a") TURN("\"gap\": \"uniform:0.5,1.5\", ", "b")
			      TURN("\"gap\": \"0.25\", ", "c") TURN("\"gap\": \"uniform:0.5,1.5\", ", "d"));
		f.env.seed = k == 2 ? 8 : 7;
		assert_tree(&f, "a b<a(a) c<b(b) d<c(c)");
		t = f.w.sessions->turn;
		assert_true(t[1].gap_s >= .5 && t[1].gap_s <= 1.5 && t[1].gap_s != t[3].gap_s);
		assert_true(t[2].gap_s == .25);
		assert_true(k == 0 ||
			    (t[1].gap_s == first[0] && t[3].gap_s == first[1]) == (k == 1));
		first[0] = t[1].gap_s;
		first[1] = t[3].gap_s;
		fixture_release(&f);
	}
}

static void bad_turns_are_one_sentence(void **state)
{
	static const struct { const char *text, *want; } row[] = {
		{ TURN("\"waits\": [\"x\"], ", "a"), "s.jsonl:1: \"waits\" names turn 'x', which the session "
						     "does not have" },
		{ TURN("\"turn\": \"a\", \"history\": \"b\", ", "a")
		  TURN("\"turn\": \"b\", \"history\": \"a\", ", "b"),
		  "s.jsonl:1: turn 'a' is part of a cycle: it waits for 'b'" },
		{ TURN("\"turn\": \"a\", \"waits\": [\"a\"], ", "a"), "is part of a cycle" },
		{ TURN("\"turn\": \"a\", ", "a") TURN("\"history\": [\"a\", \"a\"], ", "b"),
		  "s.jsonl:2: \"history\" names several turns" },
		{ TURN("\"turn\": \"a\", ", "a") TURN("\"turn\": \"a\", ", "b"),
		  "s.jsonl:2: session 's' has two turns with the id 'a'" },
		{ TURN("\"turn\": \"a\", ", "a") TURN("\"waits\": [], ", "b"),
		  "s.jsonl:2: turn '1' continues 'a' without waiting for it" },
		{ TURN("\"gap\": -1, ", "a"), "s.jsonl:1: \"gap\" is -1 s" },
		{ TURN("\"gap\": \"gauss:1\", ", "a"),
		  "s.jsonl:1: \"gap\" gauss:1: expected seconds" },
		{ TURN("\"gap\": {\"distribution\": \"x\"}, ", "a"), "s.jsonl:1: gap: unknown distribution" },
		{ TURN("\"gap_kind\": \"nap\", ", "a"), "\"gap_kind\" must be \"think\" or \"tool\"" },
		{ TURN("\"priority\": 1.5, ", "a"), "\"priority\" must be a whole number" },
		{ TURN("\"turn\": \"a\", ", "a") TURN("\"timestamp\": 1, ", "b"),
		  "\"timestamp\" is for a turn that waits for none" },
		{ TURN("\"prompt\": 1, ", "a"), "s.jsonl:1: unknown key \"prompt\"" },
		{ "{\"id\": \"s\", \"turn\": \"a\", \"messages\": [" SAYS("user", "x") "]}\n{\"messages\": []}\n",
		  "s.jsonl:2: \"id\" of the session is missing" },
		{ "{\"prompt\": 1}\n", "s.jsonl:1: expected \"id\" and \"messages\"" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct fixture f;

		sessions_init(&f, row[i].text);
		assert_refused(&f, "sessions", row[i].want);
		fixture_release(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(b1_forks_continue_the_history),
		cmocka_unit_test(b2_a_join_waits_for_spawns),
		cmocka_unit_test(spawns_are_templates),
		cmocka_unit_test(an_orchestrator_runs_rounds),
		cmocka_unit_test(bad_trees_are_one_sentence),
		cmocka_unit_test(multi_turn_has_delays_and_times),
		cmocka_unit_test(single_turn_has_order_and_no_history),
		cmocka_unit_test(turns_name_what_they_wait_for),
		cmocka_unit_test(gaps_are_drawn_from_the_next_seed),
		cmocka_unit_test(gaps_may_be_laws),
		cmocka_unit_test(bad_turns_are_one_sentence),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
