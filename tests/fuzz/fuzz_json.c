/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reader, tree and writer: the pull scanner and the tree give one verdict, and
 * what the writer makes of a tree reads back as the same text.
 */
// LINKS: json
#include <stdlib.h>

#include "core/json/read.h"
#include "core/json/write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads every part of a valid value through the pull interface. */
static void visit(struct json_slice v)
{
	struct json_iter it = json_iter(v);
	struct json_slice item, member;
	struct buf text = { 0 };
	struct str key;
	int64_t integer;
	double real;
	int rc;

	while ((rc = json_each(&it, &key, &item)) == 1) {
		json_unescape(&text, key);
		if (v.kind == JSON_OBJECT && !memchr(key.p, 0, key.n) && text.len < 30 && text.len)
			json_member(v, text.data, &member);
		buf_reset(&text);
		visit(item);
	}
	if (rc < 0)
		abort();
	if (v.kind == JSON_STRING)
		json_unescape(&text, v.raw);
	json_to_i64(v, &integer);
	json_to_f64(v, &real);
	json_truthy(v);
	buf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct json_scan s = { .text = { (const char *)data, size } };
	struct buf once = { 0 }, twice = { 0 };
	struct json_writer w = json_writer(&once);
	struct json_value *v, *again;
	struct json_slice slice;
	struct arena a = { 0 };
	struct err e = { 0 };
	int tree = json_parse(&a, s.text, &v, &e);
	int pull = json_next(&s, &slice, &e);

	if (tree != (pull == 0 && json_at_end(&s) ? 0 : -1))
		abort();
	if (tree == 0) {
		visit(slice);
		json_put_value(&w, v);
		if (json_parse(&a, buf_str(&once), &again, &e) < 0)
			abort();
		w = json_writer(&twice);
		json_put_value(&w, again);
		if (!str_eq(buf_str(&once), buf_str(&twice)))
			abort();
	}
	arena_release(&a);
	buf_release(&once);
	buf_release(&twice);
	return 0;
}
