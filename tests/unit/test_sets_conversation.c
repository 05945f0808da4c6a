/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_sets_conversation.c - conversations: both forms of files, generation draw for draw, and what
 * becomes of them as sessions. Cases G1 to G4, S10 and R1 of the specification.
 *
 * threads: yes
 */
#include "data_rig.h"

#include "input/data/lengths.h"
#include "input/sets/multi_turn.h"
#include "input/trace/conversation.h"

/* The byte tokenizer of the specification: a token is a byte, and nothing is special. */
static struct tokenizer *bytes;

static uint32_t point_of(unsigned byte)
{
	uint32_t next = 256;

	for (unsigned b = 0; b < 256; b++) {
		bool is_shown = (b > 32 && b < 127) || (b > 160 && b != 173);

		if (b == byte)
			return is_shown ? b : next;
		next += !is_shown;
	}
	return 0;
}

static int make_tokenizer(void **state)
{
	struct buf json = { 0 };
	struct err e = { 0 };
	char path[128];

	if (make_dir(state) < 0)
		return -1;
	buf_add_text(&json, "{\"version\": \"1.0\", \"added_tokens\": [], \"normalizer\": null, "
		     "\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, "
		     "\"trim_offsets\": true, \"use_regex\": false}, \"post_processor\": null, "
		     "\"decoder\": {\"type\": \"ByteLevel\"}, \"model\": {\"type\": \"BPE\", "
		     "\"merges\": [], \"vocab\": {");
	for (unsigned b = 0; b < 256; b++)
		buf_printf(&json, "%s\"\\u%04x\": %u", b ? ", " : "", point_of(b), b);
	buf_add_text(&json, "}}}");
	snprintf(path, sizeof(path), "%s/tokenizer.json", dir);
	if (file_write_atomic(path, buf_str(&json), &e) == 0)
		bytes = tokenizer_load(path, NULL, &e);
	buf_release(&json);
	if (!bytes)
		print_error("%s\n", e.text);
	return bytes ? 0 : -1;
}

static int free_tokenizer(void **state)
{
	tokenizer_free(bytes);
	return remove_dir(state);
}

/* T: the alphabet again and again. */
static void add_alphabet(struct buf *out, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		buf_add_char(out, (char)('a' + i % 26));
}

static void write_file(const char *name, struct str text, char path[128])
{
	struct err e = { 0 };

	snprintf(path, 128, "%s/%s", dir, name);
	assert_int_equal(file_write_atomic(path, text, &e), 0);
}

/* Reads text as a file; with a file of `letters` T next to it, whose path replaces "%s". */
static int read_text(const char *name, const char *text, size_t letters, struct conversations *c,
		     struct err *e)
{
	struct legacy np;
	const struct conversations_opts o = { .tokenizer = bytes, .np = &np, .threads = 1 };
	struct buf all = { 0 }, alphabet = { 0 };
	char path[128], book[128];
	int rc;

	add_alphabet(&alphabet, 0, letters);
	write_file("book.txt", buf_str(&alphabet), book);
	const char *mark = strstr(text, "%s");
	if (mark) {
		buf_add(&all, text, (size_t)(mark - text));
		buf_add_text(&all, book);
		buf_add_text(&all, mark + 2);
	} else {
		buf_add_text(&all, text);
	}
	write_file(name, buf_str(&all), path);
	legacy_seed(&np, 0);
	*c = (struct conversations){ 0 };
	rc = conversations_read(path, &o, c, e);
	buf_release(&all);
	buf_release(&alphabet);
	return rc;
}

#define INSTRUCTION "Please rewrite the following text and add more content: "
#define CONSTANT(n) "{\"distribution\": \"constant\", \"value\": " n "}"
#define UNIFORM(a, b) "{\"distribution\": \"uniform\", \"min\": " a ", \"max\": " b "}"
#define GENERATOR(n, turns, common, prefix, user, answer)                                     \
	"{\"filetype\": \"generate_conversations\", \"num_conversations\": " n ",\n"          \
	" \"text_files\": [\"%s\"],\n \"prompt_input\": {\"num_turns\": " turns               \
	",\n  \"common_prefix_num_tokens\": " common ",\n  \"prefix_num_tokens\": " prefix    \
	",\n  \"num_tokens\": " user "},\n \"prompt_output\": {\"num_tokens\": " answer "}}"

/* A user's text: common prefix T[0:common] and ".", own prefix T[own..], filler. Ends below: none. */
struct user {
	unsigned j;
	size_t common, own, own_end, filler, filler_end;
};

static void assert_user(const struct message *m, const struct user *u)
{
	struct buf want = { 0 };

	if (u->common) {
		add_alphabet(&want, 0, u->common);
		buf_add_char(&want, '.');
	}
	buf_printf(&want, "%u is a nice number... ", u->j);
	if (u->own_end) {
		buf_printf(&want, "%u, ", u->j);
		add_alphabet(&want, u->own, u->own_end);
	}
	buf_add_text(&want, INSTRUCTION);
	add_alphabet(&want, u->filler, u->filler_end);
	assert_int_equal(m->role, SPEAKER_USER);
	assert_true(str_eq(m->text, buf_str(&want)));
	assert_int_equal(m->tokens, want.len);
	buf_release(&want);
}

/* The start of T. */
static void assert_answer(const struct message *m, size_t tokens)
{
	struct buf want = { 0 };

	add_alphabet(&want, 0, tokens);
	assert_int_equal(m->role, SPEAKER_ASSISTANT);
	assert_int_equal(m->tokens, tokens);
	assert_true(str_eq(m->text, buf_str(&want)));
	buf_release(&want);
}

static void g1_constants(void **state)
{
	static const struct user want[] = {
		{ 0, 0, 0, 0, 0, 22 }, { 0, 0, 0, 0, 200, 222 },
		{ 1, 0, 0, 0, 4, 26 }, { 1, 0, 0, 0, 204, 226 },
	};
	struct conversations c;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(read_text("g.json", GENERATOR("2", CONSTANT("3"), CONSTANT("0"), CONSTANT("0"),
						       CONSTANT("100"), CONSTANT("10")), 6000, &c, &e), 0);
	assert_int_equal(c.n, 2);
	assert_true(str_is(c.v[1].id, "CONV_ID_1"));
	assert_int_equal(c.n_messages, 8);
	for (size_t i = 0; i < 4; i++) {
		assert_user(&c.message[2 * i], &want[i]);
		assert_int_equal(c.message[2 * i].tokens, 100);
		assert_answer(&c.message[2 * i + 1], 10);
	}
	assert_true(c.params.is_generated && str_is(c.params.num_turns, "Constant[3]"));
	conversations_release(&c);
}

/* G2 and G2b. */
static void g2_draws(void **state)
{
	static const struct user want[] = {
		{ 0, 48, 50, 73, 73, 85 }, { 0, 0, 0, 0, 385, 463 }, { 0, 0, 0, 0, 697, 745 },
		{ 1, 48, 79, 106, 106, 136 },
		{ 2, 48, 108, 137, 137, 150 }, { 2, 0, 0, 0, 417, 464 }, { 2, 0, 0, 0, 697, 739 },
	};
	static const size_t tokens[] = { 165, 156, 126, 187, 172, 125, 120 };
	static const size_t answers[] = { 9, 6, 6, 6, 5, 8, 8 };
	static const size_t messages[] = { 6, 2, 6 };
	struct conversations c;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(read_text("g.json", GENERATOR("3", UNIFORM("2", "6"), CONSTANT("50"),
						       UNIFORM("20", "40"), UNIFORM("120", "160"),
						       UNIFORM("5", "9")), 6000, &c, &e), 0);
	for (size_t j = 0; j < 3; j++)
		assert_int_equal(c.v[j].n, messages[j]);
	for (size_t i = 0; i < 7; i++) {
		assert_int_equal(c.message[2 * i].tokens, tokens[i]);
		assert_user(&c.message[2 * i], &want[i]);
		assert_answer(&c.message[2 * i + 1], answers[i]);
	}
	assert_true(str_is(c.params.num_tokens, "UniformDistribution[120, 160]"));
	conversations_release(&c);
}

static void g3_text_too_short(void **state)
{
	struct conversations c;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(read_text("g.json", GENERATOR("2", CONSTANT("3"), CONSTANT("0"), CONSTANT("0"),
						       CONSTANT("100"), CONSTANT("10")), 100, &c, &e), -1);
	assert_non_null(strstr(e.text, "prompt_input.num_tokens: conversation 0, turn 2 needs offsets "
			       "200 to 222 of the texts, which have 100 tokens"));
	conversations_release(&c);
}

static void g4_common_prefix_of_one(void **state)
{
	const struct user want = { 0, 0, 0, 0, 1, 22 };
	struct conversations c;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(read_text("g.json", GENERATOR("1", CONSTANT("2"), CONSTANT("1"), CONSTANT("0"),
						       CONSTANT("100"), CONSTANT("10")), 6000, &c, &e), 0);
	assert_int_equal(c.message[0].text.p[0], '.');
	c.message[0].text.p++;
	c.message[0].text.n--;
	c.message[0].tokens--;
	assert_user(&c.message[0], &want);
	conversations_release(&c);
}

/* Spec 0.1: average 1000, ratio 0.85, cap 5000. */
static void a_lognormal_sample_has_its_average(void **state)
{
	static const int64_t want[] = { 1282, 589, 819, 1682, 1360, 269 };
	static const char text[] = "{\"distribution\": \"lognormal\", \"average\": 1000, "
				   "\"median_ratio\": 0.85, \"max\": 5000}";
	const struct json_file file = { .path = "x", .text = STR("") };
	struct json_scan scan = { str_of(text), 0 };
	struct arena a = { 0 };
	struct json_slice object;
	struct distribution d;
	struct err e = { 0 };
	struct legacy np;
	int64_t got[6];

	(void)state;
	assert_int_equal(json_next(&scan, &object, &e), 0);
	assert_int_equal(distribution_read(&file, "x", object, &a, &d, &e), 0);
	assert_true(str_is(d.shown, "LognormalDistribution[1000, 0.85, 5000]"));
	legacy_seed(&np, 0);
	distribution_sample(&d, &np, 6, got);
	assert_memory_equal(got, want, sizeof(want));
	arena_release(&a);
}

static void a_bad_generator_is_one_sentence(void **state)
{
#define GEN(n, turns, user) GENERATOR(n, turns, CONSTANT("0"), CONSTANT("0"), user, CONSTANT("5"))
	static const struct { const char *text, *want; } row[] = {
		{ "{\"messages2\": 1}", "an object without \"filetype\"" },
		{ "{\n\"filetype\": \"other\"}", "bad.json:2: filetype: expected "
						 "\"generate_conversations\", got other" },
		{ GEN("0", CONSTANT("2"), CONSTANT("100")), "bad.json:1: num_conversations" },
		{ GEN("1", "{\"distribution\": \"gauss\"}", CONSTANT("100")),
		  "bad.json:3: prompt_input.num_turns: unknown distribution 'gauss'; there are" },
		{ GEN("1", "7", CONSTANT("100")), "prompt_input.num_turns: expected an object" },
		{ GEN("1", UNIFORM("0", "4"), CONSTANT("100")), "\"min\" must be above 0" },
		{ GEN("1", UNIFORM("5", "4"), CONSTANT("100")), "\"max\" must not be below" },
		{ GEN("1", CONSTANT("2"), "{\"distribution\": \"zipf\", \"alpha\": 1}"),
		  "bad.json:6: prompt_input.num_tokens: \"alpha\" of zipf must be above 1" },
		{ GEN("1", CONSTANT("2"), "{\"distribution\": \"poisson\"}"), "\"alpha\" is missing" },
		{ GEN("1", CONSTANT("2"), "{\"distribution\": \"lognormal\", \"average\": 10, "
		      "\"sigma\": 1}"), "\"average\" cannot be used together with" },
		{ GEN("1", CONSTANT("1e9"), CONSTANT("100")), "\"max\" limits the values" },
		{ "{\"filetype\": \"generate_conversations\", \"num_conversations\": 1, "
		  "\"text_files\": []}", "prompt_input: expected an object of distributions" },
		{ "{\"filetype\": \"generate_conversations\", \"num_conversations\": 1, "
		  "\"print_stats\": \"yes\"}", "print_stats: expected true or false" },
		{ "{\"filetype\": \"generate_conversations\", \"num_conversations\": 1, "
		  "\"print_stats\": null}", "print_stats: expected true or false" },
		{ "{\"filetype\": \"generate_conversations\", \"num_conversations\": 1, "
		  "\"print_stats\": true}", "prompt_input: expected an object of distributions" },
		{ "{\"filetype\": \"generate_conversations\", \"num_conversations\": 1, "
		  "\"print_stats\": false}", "prompt_input: expected an object of distributions" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct conversations c;
		struct err e = { 0 };

		if (read_text("bad.json", row[i].text, 6000, &c, &e) == 0 ||
		    !strstr(e.text, row[i].want))
			fail_msg("row %zu: \"%s\", not \"%s\"", i, e.text, row[i].want);
		conversations_release(&c);
	}
}

/* ---- form (a) ---- */

#define TALK(messages) "[{\"id\": \"a\", \"messages\": [" messages "]}]"
#define LONG "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define SAYS(role, text) "{\"role\": \"" role "\", \"content\": " text "}"

static void conversations_are_checked_when_they_are_read(void **state)
{
	static const struct { const char *text, *want; } row[] = {
		{ "[{\"messages\": []}]", "bad.json: row 0: \"id\" must be a text" },
		{ "[{\"id\": true, \"messages\": []}]", "\"id\" must be a text or an integer" },
		{ "[{\"id\": \"a\\n\", \"messages\": []}]", "control character" },
		{ "[{\"id\": \"a\"}]", "\"messages\" must be a list" },
		{ TALK(""), "row 0: conversation 'a' has no messages" },
		{ "[{\"id\": \"" LONG "1\", \"messages\": []}]", "conversation '" LONG "' has no messages" },
		{ "[{\"id\": \"" LONG "1\", \"messages\": [" SAYS("assistant", "\"x\"") "]}]",
		  "conversation '" LONG "': messages[0]: the assistant" },
		{ "[{\"id\": \"" LONG "1\", \"messages\": [" SAYS("system", "\"x\"") "]}]",
		  "conversation '" LONG "' has no message of the user" },
		{ TALK(SAYS("user", "\"x\"") "," SAYS("user", "\"y\"")),
		  "row 0: conversation 'a': messages[1]: two messages of the user in a row" },
		{ TALK(SAYS("assistant", "\"x\"")), "messages[0]: the assistant cannot speak before" },
		{ TALK(SAYS("system", "\"s\"") "," SAYS("assistant", "\"x\"")),
		  "messages[1]: the assistant cannot speak before" },
		{ TALK(SAYS("user", "\"x\"") "," SAYS("system", "\"s\"")),
		  "messages[1]: a system message must be the first one" },
		{ TALK(SAYS("system", "\"s\"")), "has no message of the user" },
		{ TALK(SAYS("tool", "\"s\"")), "messages[0]: unknown role tool" },
		{ TALK(SAYS("user", "null")), "messages[0]: \"content\" must be a text or a list of parts, "
					      "got null" },
		{ TALK(SAYS("user", "[]")), "\"content\" is an empty list" },
		{ TALK(SAYS("user", "[{}]")), "an element without a \"type\"" },
		{ TALK("{\"role\": \"user\"}"), "expected an object with \"role\" and \"content\"" },
		{ TALK("{\"role\": \"user\", \"content\": \"\", \"name\": \"x\"}"),
		  "unknown key \"name\"" },
		{ "[{\"id\": 1, \"messages\": [" SAYS("user", "\"x\"") "]}, {\"id\": 1, \"messages\": ["
		  SAYS("user", "\"x\"") "]}]", "row 1: \"id\": '1' is also the id of an earlier" },
		{ "[{\"id\": \"x_0\", \"conversations\": []}]", "dataset convert-sharegpt" },
		{ "[]", "the file has no conversations" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct conversations c;
		struct err e = { 0 };

		if (read_text("bad.json", row[i].text, 0, &c, &e) == 0 || !strstr(e.text, row[i].want))
			fail_msg("row %zu: \"%s\", not \"%s\"", i, e.text, row[i].want);
		conversations_release(&c);
	}
}

static void lines_are_named_by_number(void **state)
{
	struct conversations c;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(read_text("bad.jsonl", "{\"id\": 1, \"messages\": [" SAYS("user", "\"x\"") "]}\n"
				   "\n{\"id\": 2, \"messages\": []}\n", 0, &c, &e), -1);
	assert_non_null(strstr(e.text, "bad.jsonl:3: conversation '2' has no messages"));
	conversations_release(&c);
}

/* ---- as sessions ---- */

static const char talks[] =
	"[{\"id\": \"x\", \"extra\": 1, \"messages\": [" SAYS("system", "\"sys\"") ","
	SAYS("user", "\"hello\"") "," SAYS("assistant", "\"ok\"") "," SAYS("user", "\"more\"") "]},\n"
	"{\"id\": 7, \"messages\": ["
	SAYS("user", "[{\"type\": \"text\", \"text\": \"part\"}]") "," SAYS("assistant", "\"\"") "]}]";

static void assert_turn(const struct workload *w, size_t i, const char *messages,
			const char *expected, uint32_t prompt_len, int64_t output_len)
{
	const struct sample *s = &w->v[i];

	if (!str_is(s->messages, messages))
		fail_msg("turn %zu: %.*s, not %s", i, (int)s->messages.n, s->messages.p, messages);
	assert_true(str_is(s->expected, expected));
	assert_int_equal(s->prompt_len, prompt_len);
	assert_int_equal(s->output_len, output_len);
}

/* S10's input: the last message of the first one is a user's. */
static void conversations_become_sessions(void **state)
{
	struct fixture f;
	const struct sessions *s;

	(void)state;
	fixture_init(&f, "c.json", talks);
	f.env.tokenizer = bytes;
	f.env.num_prompts = 0;
	f.env.backend = "openai-chat";
	if (build(&f, "conversations") < 0)
		fail_msg("%s", f.e.text);
	s = f.w.sessions;
	assert_non_null(s);
	assert_int_equal(f.w.n, 3);
	assert_int_equal(s->n_sessions, 2);
	assert_true(str_is(s->session[0].id, "x") && str_is(s->session[1].id, "7"));
	assert_turn(&f.w, 0, "[{\"role\": \"system\", \"content\": \"sys\"}, {\"role\": \"user\", "
		    "\"content\": \"hello\"}]", "ok", 8, 2);
	assert_turn(&f.w, 1, "[{\"role\": \"user\", \"content\": \"more\"}]", "", 14, -1);
	assert_turn(&f.w, 2, "[{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": "
		    "\"part\"}]}]", "", 4, 1);
	assert_true(str_is(f.w.v[1].request_id, "r-1"));
	assert_int_equal(s->turn[0].history, TURN_NONE);
	assert_int_equal(s->turn[0].n_waits, 0);
	assert_int_equal(s->turn[1].history, 0);
	assert_int_equal(s->turn[1].number, 1);
	assert_int_equal(s->turn[1].n_waits, 1);
	assert_int_equal(s->waits[s->turn[1].wait], 0);
	assert_int_equal(s->turn[2].history, TURN_NONE);
	assert_int_equal(s->session[1].first, 2);
	fixture_release(&f);
}

static void more_conversations_than_the_file_has_are_copies(void **state)
{
	struct fixture f;
	size_t copies = 0;

	(void)state;
	fixture_init(&f, "c.json", talks);
	f.env.tokenizer = bytes;
	f.env.num_prompts = 5;
	f.opts.conversations_output_len = (struct opt_int){ true, 9 };
	assert_int_equal(build(&f, "conversations"), 0);
	assert_int_equal(f.w.sessions->n_sessions, 5);
	for (size_t i = 0; i < 5; i++)
		copies += strchr(f.w.sessions->session[i].id.p, '#') != NULL;
	assert_int_equal(copies, 3);
	assert_turn(&f.w, 1, "[{\"role\": \"user\", \"content\": \"more\"}]", "", 8 + 9 + 4, 9);
	f.opts.no_oversample = true;
	assert_int_equal(build_again(&f, "conversations"), 0);
	assert_int_equal(f.w.sessions->n_sessions, 2);
	f.env.num_prompts = 1;
	assert_int_equal(build_again(&f, "conversations"), 0);
	assert_int_equal(f.w.sessions->n_sessions, 1);
	f.env.backend = "openai";
	assert_refused(&f, "conversations", "conversations are sent as chat messages");
	fixture_release(&f);
}

/* What --max-turns of upstream's script sends: fewer than so many messages come before. */
static void messages_are_limited_as_upstream(void **state)
{
	static const struct { size_t max, turns; } row[] = { { 0, 4 }, { 1, 1 }, { 2, 1 }, { 3, 2 },
							      { 4, 2 }, { 5, 3 }, { 8, 4 } };
	struct conversations c = { 0 };
	struct err e = { 0 };
	struct workload w = { 0 };

	(void)state;
	assert_int_equal(read_text("g.json", GENERATOR("1", CONSTANT("8"), CONSTANT("0"), CONSTANT("0"),
						       CONSTANT("100"), CONSTANT("10")), 6000, &c, &e), 0);
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		const struct conversation_turns t = { .messages_max = row[i].max };

		assert_int_equal(conversations_to_workload(&c, NULL, 1, &t, &w, &e), 0);
		assert_int_equal(w.n, row[i].turns);
		workload_release(&w);
	}
	conversations_release(&c);
}

/* R1: (40, 10), (45, 10). */
static void r1_long_conversations_are_cut(void **state)
{
	static const struct { int64_t max; size_t n; } row[] = {
		{ 105, 2 }, { 104, 0 }, { 200, 2 },
	};
	struct buf text = { 0 };

	(void)state;
	buf_printf(&text, "[{\"id\": 1, \"messages\": [" SAYS("user", "\"%040d\"") ","
		   SAYS("assistant", "\"%010d\"") "," SAYS("user", "\"%045d\"") ","
		   SAYS("assistant", "\"%010d\"") "]}]", 0, 0, 0, 0);
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct fixture f;
		struct conversations c;

		fixture_init(&f, NULL, NULL);
		assert_int_equal(read_text("r.json", text.data, 0, &c, &f.e), 0);
		f.opts.multi_turn = true;
		f.opts.multi_turn_num_turns = 3;
		f.opts.max_model_len = (struct opt_int){ true, row[i].max };
		assert_int_equal(multi_turn_sessions(&c, &f.opts, &f.env, &f.w, &f.e), 0);
		assert_int_equal(f.w.n, row[i].n);
		assert_int_equal(f.w.notes.n > 0, row[i].n == 0);
		conversations_release(&c);
		fixture_release(&f);
	}
	buf_release(&text);
}

static void multi_turn_init(struct fixture *f, int64_t conversations)
{
	fixture_init(f, NULL, NULL);
	f->env.num_prompts = conversations;
	f->env.backend = "openai-chat";
	f->opts.multi_turn = true;
	f->opts.multi_turn_num_turns = 3;
	f->opts.random_input_len = 40;
	f->opts.random_output_len = 10;
}

static void random_conversations_have_the_shape_asked_for(void **state)
{
	struct fixture f;
	const struct sessions *s;

	(void)state;
	multi_turn_init(&f, 2);
	f.opts.per_turn_input_len = 20;
	f.opts.multi_turn_delay_ms = 250;
	f.opts.multi_turn_asks_min_tokens = true;
	if (build(&f, "random") < 0)
		fail_msg("%s", f.e.text);
	s = f.w.sessions;
	assert_int_equal(f.w.n, 6);
	assert_int_equal(s->n_sessions, 2);
	assert_true(str_is(s->session[1].id, "conv-1"));
	assert_true(str_is(f.w.v[4].request_id, "r-conv-1-turn1"));
	assert_int_equal(f.w.v[0].prompt_len, 40);
	assert_int_equal(f.w.v[1].prompt_len, 70);
	assert_int_equal(f.w.v[2].prompt_len, 100);
	assert_int_equal(f.w.v[2].output_len, 10);
	assert_true(str_is(f.w.v[2].overrides, "{\"min_tokens\": 10}"));
	assert_true(str_starts(f.w.v[0].messages,
			       STR("[{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"")));
	assert_true(s->turn[1].gap_s == .25 && s->turn[1].gap_kind == TURN_THINKS);
	assert_true(s->turn[0].gap_s == 0 && s->turn[1].history == 0);
	f.opts.multi_turn_min_turns = 2;
	f.opts.multi_turn_max_turns = 5;
	f.env.num_prompts = 40;
	assert_int_equal(build_again(&f, "random"), 0);
	for (size_t i = 0; i < 40; i++)
		assert_in_range(f.w.sessions->session[i].n, 2, 5);
	fixture_release(&f);
}

/* The text of a turn's message; in the caller's buffer. */
static struct str text_of(const struct workload *w, size_t i, struct buf *out)
{
	const char *at = strstr(w->v[i].messages.p, "\"text\": \"");

	assert_non_null(at);
	buf_reset(out);
	at += strlen("\"text\": \"");
	buf_add(out, at, (size_t)(strchr(at, '"') - at));
	return buf_str(out);
}

static void shared_prefixes_replace_the_history(void **state)
{
	struct buf text[3] = { 0 };
	struct fixture f;

	(void)state;
	multi_turn_init(&f, 2);
	f.opts.multi_turn_prefix_global_ratio = .25;
	f.opts.multi_turn_prefix_conversation_ratio = .5;
	if (build(&f, "random") < 0)
		fail_msg("%s", f.e.text);
	assert_int_equal(f.w.n, 6);
	for (size_t i = 0; i < 6; i++) {
		assert_int_equal(f.w.v[i].prompt_len, 40);
		assert_int_equal(f.w.sessions->turn[i].history, TURN_NONE);
		assert_int_equal(f.w.sessions->turn[i].number, i % 3);
		assert_int_equal(f.w.sessions->turn[i].n_waits, i % 3 > 0);
	}
	for (size_t k = 0; k < 3; k++)
		text_of(&f.w, k < 2 ? k : 3, &text[k]);
	assert_memory_equal(text[0].data, text[1].data, 30); /* a token is at least a byte */
	assert_memory_equal(text[0].data, text[2].data, 10);
	assert_true(strncmp(text[0].data, text[2].data, 100) != 0);
	assert_string_not_equal(text[0].data, text[1].data);
	f.opts.per_turn_input_len = 30;
	assert_refused(&f, "random", "30 tokens of it are shared prefix");
	f.opts.multi_turn_prefix_global_ratio = .5;
	assert_refused(&f, "random", "their sum must be below 1");
	for (size_t k = 0; k < 3; k++)
		buf_release(&text[k]);
	fixture_release(&f);
}

/* Think times come from a generator of their own: they change no text. */
static void laws_rule_turns_lengths_and_gaps(void **state)
{
	struct fixture f;
	struct str before;
	double sum = 0;
	size_t n;

	(void)state;
	multi_turn_init(&f, 50);
	f.opts.multi_turn_turns_dist = "uniform:2,4";
	f.opts.random_input_len_dist = "uniform:10,12";
	f.opts.random_output_len_dist = "uniform:3,5";
	f.opts.multi_turn_system_len = 7;
	f.opts.multi_turn_session_prefix_len = 5;
	if (build(&f, "random") < 0)
		fail_msg("%s", f.e.text);
	n = f.w.n;
	before = str_of(strdup(f.w.v[n - 1].messages.p));
	for (size_t j = 0; j < 50; j++) {
		const struct session *one = &f.w.sessions->session[j];

		assert_in_range(one->n, 2, 4);
		assert_in_range(f.w.v[one->first].prompt_len, 7 + 5 + 10, 7 + 5 + 12);
		assert_in_range(f.w.v[one->first].output_len, 3, 5);
		assert_true(str_starts(f.w.v[one->first].messages, STR("[{\"role\": \"system\"")));
		assert_false(str_starts(f.w.v[one->first + 1].messages, STR("[{\"role\": \"system\"")));
	}
	f.opts.multi_turn_delay_dist = "uniform:100,300";
	assert_int_equal(build_again(&f, "random"), 0);
	assert_int_equal(f.w.n, n);
	assert_true(str_eq(f.w.v[n - 1].messages, before));
	for (size_t i = 0; i < n; i++) {
		const struct turn *t = &f.w.sessions->turn[i];

		assert_true(t->n_waits ? t->gap_s >= .1 && t->gap_s <= .3 : t->gap_s == 0);
		sum += t->gap_s;
	}
	assert_true(sum / (double)(n - 50) > .18 && sum / (double)(n - 50) < .22);
	f.opts.multi_turn_delay_dist = "gauss:1";
	assert_refused(&f, "random", "--multi-turn-delay-dist");
	free((char *)before.p);
	fixture_release(&f);
}

static void sharegpt_gives_whole_conversations(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, "s.json", "[{\"id\": \"a\", \"conversations\": ["
		     "{\"from\": \"gpt\", \"value\": \"hi\"}, {\"from\": \"human\", \"value\": \"one\"},"
		     "{\"from\": \"gpt\", \"value\": \"ONE\"}, {\"from\": \"human\", \"value\": \"\"},"
		     "{\"from\": \"human\", \"value\": \"two\"}, {\"from\": \"gpt\", \"value\": \"TWOO\"}]},"
		     "{\"id\": \"b\", \"conversations\": [{\"from\": \"human\", \"value\": \"x\"},"
		     "{\"from\": \"gpt\", \"value\": \"y\"}, {\"from\": \"human\", \"value\": \"z\"}]}]");
	f.env.num_prompts = 2;
	f.env.backend = "openai-chat";
	f.opts.multi_turn = true;
	f.opts.multi_turn_num_turns = 3;
	if (build(&f, "sharegpt") < 0)
		fail_msg("%s", f.e.text);
	assert_int_equal(f.w.sessions->n_sessions, 2);
	assert_int_equal(f.w.n, 4);
	assert_turn(&f.w, 0, "[{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"one\"}]}]",
		    "ONE", 3, 3);
	assert_turn(&f.w, 1, "[{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"two\"}]}]",
		    "TWOO", 9, 4);
	assert_true(str_is(f.w.sessions->session[1].id, "conv-1"));
	f.opts.multi_turn_max_turns = 1;
	assert_refused(&f, "sharegpt", "--multi-turn-max-turns 1");
	f.opts.multi_turn_max_turns = 0;
	f.opts.multi_turn_prefix_global_ratio = .5;
	assert_refused(&f, "sharegpt", "only --dataset-name random has prefixes to share");
	f.env.backend = "openai";
	assert_refused(&f, "sharegpt", "only --backend openai-chat carries conversations");
	fixture_release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(g1_constants),
		cmocka_unit_test(g2_draws),
		cmocka_unit_test(g3_text_too_short),
		cmocka_unit_test(g4_common_prefix_of_one),
		cmocka_unit_test(a_lognormal_sample_has_its_average),
		cmocka_unit_test(a_bad_generator_is_one_sentence),
		cmocka_unit_test(conversations_are_checked_when_they_are_read),
		cmocka_unit_test(lines_are_named_by_number),
		cmocka_unit_test(conversations_become_sessions),
		cmocka_unit_test(more_conversations_than_the_file_has_are_copies),
		cmocka_unit_test(messages_are_limited_as_upstream),
		cmocka_unit_test(r1_long_conversations_are_cut),
		cmocka_unit_test(random_conversations_have_the_shape_asked_for),
		cmocka_unit_test(shared_prefixes_replace_the_history),
		cmocka_unit_test(laws_rule_turns_lengths_and_gaps),
		cmocka_unit_test(sharegpt_gives_whole_conversations),
	};

	return cmocka_run_group_tests(tests, make_tokenizer, free_tokenizer);
}
