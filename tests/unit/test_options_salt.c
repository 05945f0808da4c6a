/* SPDX-License-Identifier: Apache-2.0 */
/* Drawn tokens before prompts: where they go, what they cost, who shares them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bench/options/salt.h"

#define SALTED_BYTES (SALT_WORDS * 4)

struct bench { struct workload w; struct tokenizer *tokenizer; struct salt salt; struct err e; };

static struct sample *add(struct bench *b, enum prompt_kind kind, struct str prompt)
{
	struct sample *s = workload_add(&b->w);

	s->kind = kind;
	s->prompt = prompt;
	s->prompt_len = kind == PROMPT_TEXT
			? (uint32_t)tokenizer_count(b->tokenizer, prompt, false) : 3;
	return s;
}

static void bench_init(struct bench *b, enum salt_kind kind, const char *key)
{
	struct tokenizer_load_opts opts = { 0 };

	memset(b, 0, sizeof(*b));
	b->tokenizer = tokenizer_load("sim", &opts, &b->e);
	assert_non_null(b->tokenizer);
	b->w.dataset = "custom";
	salt_init(&b->salt, kind, key, b->tokenizer);
}

static void bench_release(struct bench *b)
{
	workload_release(&b->w);
	tokenizer_free(b->tokenizer);
}

static struct str head_of(const struct bench *b, size_t i)
{
	return (struct str){ b->w.v[i].prompt.p, SALTED_BYTES };
}

/* The salt is followed by the original text; lengths are what the tokenizer counts. */
static void texts_begin_with_it(void **state)
{
	static const struct str prompts[] = {
		{ "one two three", 13 }, { "", 0 }, { "x", 1 }, { " lead", 5 },
	};
	static char long_text[5000];
	struct bench b;

	(void)state;
	memset(long_text, 'a', sizeof(long_text));
	bench_init(&b, SALT_REQUEST, "1");
	for (size_t i = 0; i < 4; i++)
		add(&b, PROMPT_TEXT, prompts[i]);
	add(&b, PROMPT_TEXT, (struct str){ long_text, sizeof(long_text) });
	for (size_t i = 7; i < sizeof(long_text); i += 8)
		long_text[i] = ' ';
	b.w.v[4].prompt_len = (uint32_t)tokenizer_count(b.tokenizer, b.w.v[4].prompt, false);
	assert_int_equal(salt_workload(&b.salt, &b.w, &b.e), 0);
	for (size_t i = 0; i < b.w.n; i++) {
		const struct sample *s = &b.w.v[i];
		struct str rest = { s->prompt.p + SALTED_BYTES, s->prompt.n - SALTED_BYTES };

		assert_true(str_eq(rest, i < 4 ? prompts[i]
					      : (struct str){ long_text, sizeof(long_text) }));
		assert_int_equal(s->prompt_len, tokenizer_count(b.tokenizer, s->prompt, false));
		for (size_t k = 0; k < i; k++)
			assert_false(str_eq(head_of(&b, i), head_of(&b, k)));
	}
	bench_release(&b);
}

/* One for the run; another key has another, the same key the same. */
static void a_run_shares_one(void **state)
{
	struct bench b[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		bench_init(&b[i], SALT_RUN, i == 1 ? "b" : "a");
		for (int k = 0; k < 3; k++)
			add(&b[i], PROMPT_TEXT, STR("text"));
		assert_int_equal(salt_workload(&b[i].salt, &b[i].w, &b[i].e), 0);
		assert_true(str_eq(head_of(&b[i], 0), head_of(&b[i], 2)));
	}
	assert_false(str_eq(head_of(&b[0], 0), head_of(&b[1], 0)));
	assert_true(str_eq(head_of(&b[0], 0), head_of(&b[2], 0)));
	for (int i = 0; i < 3; i++)
		bench_release(&b[i]);
}

static void lists_of_ids_grow(void **state)
{
	struct bench b;
	unsigned id[SALT_WORDS], n = 0;
	const char *p;

	(void)state;
	bench_init(&b, SALT_REQUEST, "3");
	add(&b, PROMPT_JSON, STR("[7, 8, 9]"));
	assert_int_equal(salt_workload(&b.salt, &b.w, &b.e), 0);
	p = b.w.v[0].prompt.p + 1;
	for (; n < SALT_WORDS; n++) {
		assert_int_equal(sscanf(p, "%u, ", &id[n]), 1);
		assert_in_range(id[n], b.salt.id_low, b.salt.id_high);
		p = strstr(p, ", ") + 2;
	}
	assert_memory_equal(p, "7, 8, 9]", 8);
	assert_int_equal(b.w.v[0].prompt_len, 3 + SALT_WORDS);
	assert_true(b.salt.id_high < tokenizer_vocab_size(b.tokenizer));
	bench_release(&b);
}

/* The first text of a chat, wherever it is. */
static void chats_begin_with_it(void **state)
{
	static const struct { const char *before, *after; } row[] = {
		{ "[{\"role\": \"user\", \"content\": \"", "hi\"}]" },
		{ "[{\"role\": \"system\", \"content\": \"",
		  "a \\\"b\\\"\"}, {\"role\": \"user\", \"content\": \"c\"}]" },
		{ "[{\"role\": \"user\", \"content\": [{\"type\": \"image_url\"}, "
		  "{\"type\": \"text\", \"text\": \"", "look\"}]}]" },
		/* messages without a text in between */
		{ "[{\"role\": \"assistant\", \"content\": null}, {\"role\": \"user\"}, 7, {\"content\": "
		  "{\"part\": {\"text\": \"no\"}}}, {\"content\": [\"no\", {\"text\": 3}]}, "
		  "{\"role\": \"user\", \"content\": \"", "hi\"}]" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct bench b;
		struct buf whole = { 0 };
		struct sample *s;
		size_t at = strlen(row[i].before), before;
		struct str text, after;

		bench_init(&b, SALT_REQUEST, "1");
		s = add(&b, PROMPT_TEXT, STR("hi"));
		before = s->prompt_len;
		buf_printf(&whole, "%s%s", row[i].before, row[i].after);
		s->messages = buf_str(&whole);
		assert_int_equal(salt_workload(&b.salt, &b.w, &b.e), 0);
		assert_int_equal(s->messages.n, whole.len + SALTED_BYTES);
		assert_memory_equal(s->messages.p, row[i].before, at);
		assert_memory_equal(s->messages.p + at + SALTED_BYTES, row[i].after,
				    strlen(row[i].after));
		/* What the salt added is what counting says. */
		text.p = s->messages.p + at;
		text.n = SALTED_BYTES + strcspn(row[i].after, "\\\"");
		after = (struct str){ text.p + SALTED_BYTES, text.n - SALTED_BYTES };
		assert_int_equal(s->prompt_len - before,
				 tokenizer_count(b.tokenizer, text, false) -
				 tokenizer_count(b.tokenizer, after, false));
		buf_release(&whole);
		bench_release(&b);
	}
}

static void others_are_refused(void **state)
{
	static const struct str prompts[] = { { "[\"a\", \"b\"]", 10 }, { "[[1], [2]]", 10 },
					      { "{\"query\": \"q\"}", 14 }, { "[]", 2 } };

	(void)state;
	for (size_t i = 0; i <= 5; i++) {
		struct bench b;

		bench_init(&b, SALT_RUN, "1");
		add(&b, PROMPT_TEXT, STR("fine"));
		add(&b, PROMPT_JSON, i < 4 ? prompts[i] : STR("x"));
		if (i == 4)
			b.w.v[1].file = STR("RIFF");
		if (i == 5)
			b.w.v[1].messages = STR("[{\"role\": \"user\"}]");
		assert_int_equal(salt_workload(&b.salt, &b.w, &b.e), -1);
		assert_int_equal(b.e.code, ERR_RUN);
		assert_non_null(strstr(b.e.text, "--prompt-salt cannot be used with dataset custom: "
				       "request 1"));
		bench_release(&b);
	}
}

/* A prompt of a length that was asked for keeps it, and what prompts share at their beginning. */
static void fresh_ones_keep_their_length(void **state)
{
	static const char shared[] = "the same words at the beginning of all of these prompts ";
	struct buf text[3] = { { 0 } };
	uint32_t before[3];
	struct bench b;

	(void)state;
	bench_init(&b, SALT_FRESH, "k");
	b.salt.keeps_length = true;
	for (int i = 0; i < 3; i++) {
		buf_add_text(&text[i], shared);
		for (int k = 0; k < 400 * i + 40; k++)
			buf_printf(&text[i], "w%d\xc3\xa4 ", k * (i + 7));
		before[i] = add(&b, PROMPT_TEXT, buf_str(&text[i]))->prompt_len;
	}
	add(&b, PROMPT_TEXT, STR("short"));
	add(&b, PROMPT_JSON, STR("[1, 2, 3, 4, 5, 6]"))->prompt_len = 6;
	assert_int_equal(salt_workload(&b.salt, &b.w, &b.e), 0);
	for (int i = 0; i < 3; i++) {
		struct str p = b.w.v[i].prompt;

		assert_int_equal(b.w.v[i].prompt_len, before[i]);
		assert_int_equal(tokenizer_count(b.tokenizer, p, false), before[i]);
		assert_memory_equal(p.p, b.w.v[0].prompt.p, SALT_FRESH_WORDS * 4 + strlen(shared));
	}
	/* What is shorter than a salt grows. */
	assert_int_equal(b.w.v[3].prompt_len, tokenizer_count(b.tokenizer, b.w.v[3].prompt, false));
	assert_non_null(memmem(b.w.v[3].prompt.p, b.w.v[3].prompt.n, "short", 5));
	assert_int_equal(b.w.v[4].prompt_len, 6);
	assert_true(str_ends(b.w.v[4].prompt, STR(", 1, 2]")));
	for (int i = 0; i < 3; i++)
		buf_release(&text[i]);
	bench_release(&b);
}

/* Sent again, a sample has the salt of that entry or of that round: other bytes, as many. */
static void repeats_have_their_own(void **state)
{
	struct bench b;

	(void)state;
	for (int kind = SALT_RUN; kind <= SALT_REQUEST; kind++) {
		bench_init(&b, (enum salt_kind)kind, "9");
		add(&b, PROMPT_TEXT, STR("text"));
		add(&b, PROMPT_JSON, STR("[1, 2]"));
		add(&b, PROMPT_TEXT, STR("x"))->messages =
			STR("[{\"role\": \"user\", \"content\": \"hi\"}]");
		assert_int_equal(salt_workload(&b.salt, &b.w, &b.e), 0);
		for (uint32_t i = 0; i < 3; i++) {
			const struct sample *s = &b.w.v[i];
			struct sample again = *s, third = *s;
			struct buf first = { 0 }, second = { 0 };
			struct str old = i == 2 ? s->messages : s->prompt, new;

			salt_again(&b.salt, i, 0, i + 3, &again, &first);
			salt_again(&b.salt, i, 0, i + 6, &third, &second);
			new = i == 2 ? again.messages : again.prompt;
			assert_int_equal(new.n, old.n);
			assert_int_equal(str_eq(new, old), kind == SALT_RUN);
			assert_int_equal(str_eq(new, i == 2 ? third.messages : third.prompt),
					 kind == SALT_RUN);
			buf_reset(&first);
			buf_reset(&second);
			again = third = *s;
			salt_again(&b.salt, i, 1, i, &again, &first);
			salt_again(&b.salt, i, 2, i, &third, &second);
			new = i == 2 ? again.messages : again.prompt;
			assert_int_equal(new.n, old.n);
			assert_false(str_eq(new, old));
			assert_false(str_eq(new, i == 2 ? third.messages : third.prompt));
			buf_release(&first);
			buf_release(&second);
		}
		bench_release(&b);
	}
}

static void values_are_read(void **state)
{
	static const struct { const char *text; enum salt_kind kind; const char *key; } good[] = {
		{ "none", SALT_NONE, NULL }, { "run", SALT_RUN, NULL }, { "request", SALT_REQUEST, NULL },
		{ "run:x", SALT_RUN, "x" }, { "fresh", SALT_FRESH, NULL }, { "request:a:b c", SALT_REQUEST, "a:b c" },
	};
	static const char *const bad[] = {
		"", "runs", "None", "none:x", "run:", ":x",
		"run:12345678901234567890123456789012345678901234567890123456789012345",
	};
	char a[SALT_KEY_BYTES + 1], b[SALT_KEY_BYTES + 1];
	enum salt_kind kind;
	const char *key;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_int_equal(salt_parse(good[i].text, &kind, &key, &e), 0);
		assert_int_equal(kind, good[i].kind);
		assert_int_equal(!key, !good[i].key);
		if (key)
			assert_string_equal(key, good[i].key);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(salt_parse(bad[i], &kind, &key, &e), -1);
		assert_int_equal(e.code, ERR_USAGE);
		assert_non_null(strstr(e.text, "--prompt-salt: expected none, run, request or fresh"));
	}
	salt_draw_key(a);
	salt_draw_key(b);
	assert_string_not_equal(a, b);
}

/* What is sent before anything is measured: the same, or the same with other words. */
static void a_pass_repeats_the_run(void **state)
{
	static const struct { const char *how; size_t n; bool is_same; } row[] = {
		{ NULL, 0, true }, { "none", 0, true }, { "same", 2, true }, { "other", 2, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct dataset_opts o = { .warmup_pass = row[i].how };
		struct workload out = { 0 };
		struct bench b;

		bench_init(&b, SALT_RUN, "key");
		add(&b, PROMPT_TEXT, STR("one"));
		add(&b, PROMPT_TEXT, STR("two"));
		assert_int_equal(reuse_pass(&b.w, &o, 7, b.tokenizer, &out, &b.e), 0);
		assert_int_equal(out.n, row[i].n);
		for (size_t k = 0; k < out.n; k++)
			assert_int_equal(str_eq(out.v[k].prompt, b.w.v[k].prompt), row[i].is_same);
		workload_release(&out);
		bench_release(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_read),
		cmocka_unit_test(texts_begin_with_it),
		cmocka_unit_test(a_run_shares_one),
		cmocka_unit_test(lists_of_ids_grow),
		cmocka_unit_test(chats_begin_with_it),
		cmocka_unit_test(others_are_refused),
		cmocka_unit_test(fresh_ones_keep_their_length),
		cmocka_unit_test(repeats_have_their_own),
		cmocka_unit_test(a_pass_repeats_the_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
