/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_token_golden.c - ids and texts of small vocabularies under many pipelines,
 * equal to what the reference library gave (tests/peer/tokenizer/golden.mjs
 * wrote the data).
 *
 * threads: yes
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/json/read.h"
#include "input/token/tokenizer.h"
#include "scratch.h"

#define DATA "tests/unit/token/"


static struct json_slice parse(struct str text)
{
	struct json_scan scan = { .text = text };
	struct json_slice out;
	struct err e;

	if (json_next(&scan, &out, &e))
		fail_msg("%s", e.text);
	return out;
}

/* A raw value as it stood in the file, quotes of strings included. */
static void add_raw(struct buf *out, struct json_slice v)
{
	buf_add_text(out, v.kind == JSON_STRING ? "\"" : "");
	buf_add_str(out, v.raw);
	buf_add_text(out, v.kind == JSON_STRING ? "\"" : "");
}

/* The members of base with the values of over; the same within "model". */
static void add_object(struct buf *out, struct json_slice base, struct json_slice over)
{
	struct json_iter it = json_iter(base);
	struct json_slice value, other;
	const char *comma = "";
	struct str key;

	buf_add_char(out, '{');
	while (json_each(&it, &key, &value) > 0) {
		char *name = mem_copy(key.p, key.n);

		buf_printf(out, "%s\"%s\":", comma, name);
		comma = ",";
		if (!json_member(over, name, &other))
			add_raw(out, value);
		else if (strcmp(name, "model") == 0)
			add_object(out, value, other);
		else
			add_raw(out, other);
		free(name);
	}
	buf_add_char(out, '}');
}

static struct tokenizer *load_variant(struct json_slice variant)
{
	char *path = file_join(dir, "tokenizer.json");
	struct buf text = { 0 }, base = { 0 };
	struct json_slice name;
	struct tokenizer *t;
	struct err e;
	char file[64];

	assert_true(json_member(variant, "base", &name));
	snprintf(file, sizeof file, DATA "%.*s.json", (int)name.raw.n, name.raw.p);
	assert_int_equal(file_read(file, 1 << 20, &base, &e), 0);
	add_object(&text, parse(buf_str(&base)), variant);
	assert_int_equal(file_write_atomic(path, buf_str(&text), &e), 0);
	t = tokenizer_load(path, NULL, &e);
	if (!t)
		fail_msg("%s", e.text);
	buf_release(&base);
	buf_release(&text);
	free(path);
	return t;
}

static void check_ids(const struct tokenizer *t, const char *name, struct str text, bool special,
	const struct json_value *want)
{
	struct ids ids = { 0 };

	assert_int_equal(tokenizer_encode(t, text, special, &ids), 0);
	for (size_t i = 0; i < ids.count && i < want->count; i++)
		if (ids.id[i] != (uint32_t)json_int(want->item + i, -1))
			fail_msg("%s: id %zu of \"%.*s\" is %u, reference %ld", name, i, (int)text.n,
				text.p, ids.id[i], (long)json_int(want->item + i, -1));
	if (ids.count != want->count)
		fail_msg("%s: \"%.*s\" has %zu ids, reference %zu", name, (int)text.n, text.p,
			ids.count, want->count);
	assert_int_equal(tokenizer_count(t, text, special), want->count);
	ids_release(&ids);
}

static void check_text(const struct tokenizer *t, const char *name, const struct json_value *list,
	bool skip, struct str want)
{
	struct buf text = { 0 };
	struct ids ids = { 0 };

	for (size_t i = 0; i < list->count; i++)
		ids_push(&ids, (uint32_t)json_int(list->item + i, -1));
	assert_int_equal(tokenizer_decode(t, ids.id, ids.count, skip, &text), 0);
	if (!str_eq(buf_str(&text), want))
		fail_msg("%s: decoded \"%.*s\", reference \"%.*s\"", name, (int)text.len,
			text.data, (int)want.n, want.p);
	ids_release(&ids);
	buf_release(&text);
}

static void check_variant(const struct json_value *texts, struct str line, struct arena *a)
{
	struct tokenizer *t = load_variant(parse(line));
	struct json_value *root, *cases;
	struct err e;
	const char *name;

	assert_int_equal(json_parse(a, line, &root, &e), 0);
	name = json_text(json_get(root, "name"), STR("")).p;
	cases = json_get(root, "cases");
	assert_true(cases->count >= 10);
	for (size_t i = 0; i < cases->count; i++) {
		const struct json_value *row = cases->item + i;
		struct str text = texts->item[json_int(row->item, -1)].text;

		check_ids(t, name, text, false, row->item + 1);
		if (row->count < 5)
			continue;
		check_ids(t, name, text, true, row->item + 2);
		check_text(t, name, row->item + 2, false, row->item[3].text);
		check_text(t, name, row->item + 2, true, row->item[4].text);
	}
	tokenizer_free(t);
}

static void test_equals_reference(void **state)
{
	struct arena arena = { 0 };
	struct buf golden = { 0 };
	struct json_value *head;
	struct str rest;
	struct err e;
	size_t variants = 0;

	(void)state;
	assert_int_equal(file_read(DATA "golden.jsonl", 4 << 20, &golden, &e), 0);
	rest = str_trim(buf_str(&golden));
	assert_int_equal(json_parse(&arena, str_cut(&rest, '\n'), &head, &e), 0);
	for (; rest.n > 0; variants++)
		check_variant(json_get(head, "texts"), str_cut(&rest, '\n'), &arena);
	assert_int_equal(variants, 74);
	buf_release(&golden);
	arena_release(&arena);
}

/* ---- threads share one tokenizer ---- */

struct share {
	const struct tokenizer *t;
	struct str text;
	size_t count;
};

static void *encode_often(void *ctx)
{
	struct share *s = ctx;

	for (int i = 0; i < 50; i++)
		s->count += tokenizer_count(s->t, s->text, true);
	return NULL;
}

static void test_threads(void **state)
{
	struct buf text = { 0 };
	struct share share[4];
	pthread_t thread[4];
	struct err e;
	struct tokenizer *t = tokenizer_load(DATA "small.json", NULL, &e);

	(void)state;
	assert_non_null(t);
	assert_int_equal(file_read(DATA "small.json", 1 << 20, &text, &e), 0);
	for (int i = 0; i < 4; i++) {
		share[i] = (struct share){ t, { text.data, 4000 }, 0 };
		pthread_create(&thread[i], NULL, encode_often, &share[i]);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < 4; i++)
		assert_int_equal(share[i].count, 50 * tokenizer_count(t, share[0].text, true));
	tokenizer_free(t);
	buf_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equals_reference),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
