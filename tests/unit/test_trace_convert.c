/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_trace_convert.c - ShareGPT's files as conversations: parts that belong together, which
 * conversations are dropped and what for, and files that are wrong.
 *
 * A conversation is written "id u:text a:text", conversations in the order of their ids, or as they
 * are where some are drawn; then what was counted: items, joined, too short, not alternating, wrong
 * length, wrong language, kept.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/base/file.h"
#include "core/base/mem.h"
#include "input/trace/conversation.h"
#include "scratch.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))
#define ITEM(id, messages) "{'id': '" id "', 'conversations': [" messages "]}"
#define SAYS(from, text) "{'from': '" from "', 'value': '" text "'}"
#define H(text) SAYS("human", text)
#define G(text) SAYS("gpt", text)

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void write_conversations(const struct conversations *c, bool is_sorted, struct buf *out)
{
	char *line[8];

	assert_true(c->n <= COUNT(line));
	for (size_t i = 0; i < c->n; i++) {
		const struct conversation *v = &c->v[i];
		struct buf text = { 0 };

		buf_printf(&text, "%.*s", (int)v->id.n, v->id.p);
		for (size_t k = v->first; k < v->first + v->n; k++)
			buf_printf(&text, " %c:%.*s", "sua"[c->message[k].role],
				   (int)c->message[k].text.n, c->message[k].text.p);
		line[i] = text.data;
	}
	if (is_sorted)
		qsort(line, c->n, sizeof(*line), by_text);
	for (size_t i = 0; i < c->n; i++) {
		buf_printf(out, "%s; ", line[i]);
		free(line[i]);
	}
}

/* Apostrophes of text are quotation marks in the file; the answer is text or an error. */
static int convert(const char *text, const struct sharegpt_convert_opts *o, struct buf *out)
{
	struct conversations c = { 0 };
	struct sharegpt_converted n;
	struct err e = { 0 };
	struct buf file = { 0 };
	char path[64];
	int rc;

	for (; *text; text++)
		buf_add_char(&file, *text == '\'' ? '"' : *text);
	snprintf(path, sizeof(path), "%s/share.json", dir);
	assert_int_equal(file_write_atomic(path, buf_str(&file), &e), 0);
	rc = sharegpt_convert(path, o, &c, &n, &e);
	if (rc == 0) {
		write_conversations(&c, !o->max_items, out);
		buf_printf(out, "%zu %zu %zu %zu %zu %zu %zu", n.items, n.joined, n.too_short,
			   n.not_alternating, n.wrong_length, n.wrong_language, n.kept);
	} else {
		buf_add_text(out, e.text + (strstr(e.text, path) == e.text ? strlen(path) : 0));
	}
	conversations_release(&c);
	buf_release(&file);
	return rc;
}

static const struct {
	const char *file;
	struct sharegpt_convert_opts o;
	const char *want;
} talks[] = {
	{ "[" ITEM("a", H("x") "," G("y")) "]", { 0 }, "a u:x a:y; 1 1 0 0 0 0 1" },
	{ "[" ITEM("a", SAYS("user", "x") "," SAYS("bing", "y")) "," ITEM("b", H("x") ","
	  SAYS("chatgpt", "y") "," H("z") "," SAYS("bard", "t")) "]", { 0 },
	  "a u:x a:y; b u:x a:y u:z a:t; 2 2 0 0 0 0 2" },
	/* Parts, in the order of their numbers; a speaker's repetition is left out. */
	{ "[" ITEM("a_10", H("5")) "," ITEM("a_2", G("2") "," H("3") "," G("4")) ","
	  ITEM("a_0", H("1") "," G("2")) "]", { 0 }, "a u:1 a:2 u:3 a:4 u:5; 3 1 0 0 0 0 1" },
	{ "[" ITEM("a_1", G("2")) "," ITEM("a_1", H("3")) "," ITEM("a_0", H("1")) "]", { 0 },
	  "a u:1 a:2 u:3; 3 1 0 0 0 0 1" },
	/* What is no part. */
	{ "[" ITEM("a_x", H("1")) "," ITEM("_1", H("2")) "," ITEM("a_", H("3")) ","
	  ITEM("a", H("4")) "]", { 0 }, "_1 u:2; a u:4; a_ u:3; a_x u:1; 4 4 0 0 0 0 4" },
	{ "[" ITEM("a", "") "," ITEM("b", H("1")) "]", { 0 }, "b u:1; 2 1 0 0 0 0 1" },
	/* A beginning that is not the user's is left out, and counts for max_turns. */
	{ "[" ITEM("a", SAYS("system", "s") "," H("1") "," G("2")) ","
	  ITEM("b", G("0") "," H("1") "," G("2")) "]", { 0 },
	  "a u:1 a:2; b u:1 a:2; 2 2 0 0 0 0 2" },
	{ "[" ITEM("a", G("0") "," H("1") "," G("2")) "]", { .max_turns = 2 },
	  "a u:1; 1 1 0 0 0 0 1" },
	{ "[" ITEM("a", G("0") "," H("1")) "," ITEM("b", H("1") "," G("2")) "]", { .max_turns = 1 },
	  "b u:1; 2 2 0 0 0 0 1" },
	{ "[" ITEM("a", G("0")) "," ITEM("b", H("1")) "]", { 0 }, "b u:1; 2 2 0 0 0 0 1" },
	{ "[" ITEM("a", H("1")) "," ITEM("b", H("1") "," G("2")) "]", { .min_turns = 2 },
	  "b u:1 a:2; 2 2 1 0 0 0 1" },
	/* Turns that do not alternate. */
	{ "[" ITEM("a", H("1") "," H("2")) "," ITEM("b", H("1") "," G("2") "," G("3")) ","
	  ITEM("c", H("1") "," SAYS("system", "s")) "," ITEM("d", H("1")) "]", { 0 },
	  "d u:1; 4 4 0 3 0 0 1" },
	/* Characters, not bytes. */
	{ "[" ITEM("a", H("12") "," G("123")) "," ITEM("b", H("123") "," G("1234")) ","
	  ITEM("c", H("1234") "," G("12345")) "]", { .min_content_len = 3, .max_content_len = 4 },
	  "b u:123 a:1234; 3 3 0 0 2 0 1" },
	{ "[" ITEM("a", H("\xc3\xa9\xe2\x82\xac")) "," ITEM("b", H("abc")) ","
	  ITEM("c", H("a")) "]",
	  { .min_content_len = 2, .max_content_len = 2, .any_language = true },
	  "a u:\xc3\xa9\xe2\x82\xac; 3 3 0 0 2 0 1" },
	/* ASCII, wherever the other character is. */
	{ "[" ITEM("a", H("\xc3\xa9z")) "," ITEM("b", H("z\xc3\xa9")) "," ITEM("c", H("\x7f")) ","
	  ITEM("d", H("\\u0080")) "," ITEM("e", H("\xff")) "]",
	  { 0 }, "c u:\x7f; 5 5 0 0 0 4 1" },
	{ "[" ITEM("a", H("1") "," G("\xc3\xa9")) "," ITEM("b", H("2")) "]",
	  { .any_language = true },
	  "a u:1 a:\xc3\xa9; b u:2; 2 2 0 0 0 0 2" },
	{ "[" ITEM("a", H("1") "," G("\xc3\xa9")) "," ITEM("b", H("\\n\\u0041")) "]", { 0 },
	  "b u:\nA; 2 2 0 0 0 1 1" },
};

static void conversions(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(talks); i++) {
		struct buf out = { 0 };

		assert_int_equal(convert(talks[i].file, &talks[i].o, &out), 0);
		if (strcmp(out.data, talks[i].want) != 0)
			fail_msg("row %zu: %s\ninstead of %s", i, out.data, talks[i].want);
		buf_release(&out);
	}
}

/* As many as asked for are drawn of all that pass, as Python's shuffle and sample draw them. */
static void draws(void **state)
{
	static const struct { int64_t max_items, seed; const char *want; } row[] = {
		{ 0, 1, "a u:1; b u:2; c u:3; d u:4; 4 4 0 0 0 0 4" },
		{ 4, 1, "d u:4; a u:1; c u:3; b u:2; 4 4 0 0 0 0 4" },
		{ 5, 1, "d u:4; a u:1; c u:3; b u:2; 4 4 0 0 0 0 4" },
		{ 2, 1, "c u:3; d u:4; 4 4 0 0 0 0 4" },
		{ 2, 2, "d u:4; b u:2; 4 4 0 0 0 0 4" },
		{ 3, 0, "b u:2; d u:4; a u:1; 4 4 0 0 0 0 4" },
		{ 1, 0, "b u:2; 4 4 0 0 0 0 4" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct sharegpt_convert_opts o = { .max_items = row[i].max_items,
						   .seed = row[i].seed };
		struct buf out = { 0 };

		assert_int_equal(convert("[" ITEM("a", H("1")) "," ITEM("b", H("2")) ","
					 ITEM("c", H("3")) "," ITEM("d", H("4")) "]", &o, &out), 0);
		if (strcmp(out.data, row[i].want) != 0)
			fail_msg("row %zu: %s\ninstead of %s", i, out.data, row[i].want);
		buf_release(&out);
	}
}

static void refusals(void **state)
{
	static const char *const row[][2] = {
		{ "[{'id': 7}]", ": row 0: \"id\" must be a text" },
		{ "[" ITEM("a", H("1")) ", {}]", ": row 1: \"id\" must be a text" },
		{ "[{'id': 'a'}]", ": row 0: \"conversations\" must be a list" },
		{ "[{'id': 'a', 'conversations': {}}]", ": row 0: \"conversations\" must be a list" },
		{ "[" ITEM("a", "{'from': 'human'}") "]",
		  ": row 0: a message of \"conversations\" needs the texts \"from\" and \"value\"" },
		{ "[" ITEM("a", "{'from': 1, 'value': ''}") "]",
		  ": row 0: a message of \"conversations\" needs the texts \"from\" and \"value\"" },
		{ "[" ITEM("a", "{'from': 'human', 'value': null}") "]",
		  ": row 0: a message of \"conversations\" needs the texts \"from\" and \"value\"" },
		{ "[" ITEM("a", H("1") "," SAYS("me", "2")) "]", ": row 0: \"from\": unknown speaker 'me'" },
		{ "[" ITEM("a", H("1") "," H("2")) "," ITEM("b", G("1")) "," ITEM("c", H("\xc3\xa9")) "]",
		  ": no conversation passes: 0 have too few turns, 1 do not alternate between user and assistant, "
		  "0 have a message of another length, 1 one that is not ASCII" },
		{ "[]", ": no conversation passes: 0 have too few turns, 0 do not alternate between user and "
		  "assistant, 0 have a message of another length, 0 one that is not ASCII" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct sharegpt_convert_opts o = { 0 };
		struct buf out = { 0 };

		assert_int_equal(convert(row[i][0], &o, &out), -1);
		if (!strstr(out.data, row[i][1]))
			fail_msg("row %zu: %s\ninstead of %s", i, out.data, row[i][1]);
		buf_release(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(conversions), cmocka_unit_test(draws), cmocka_unit_test(refusals),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
