/* SPDX-License-Identifier: Apache-2.0 */
/* test_config_schema.c - the keys of a configuration as a page and as a JSON Schema for editors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/base/file.h"
#include "core/json/read.h"
#include "core/json/write.h"
#include "experiment/config/config.h"
#include "answers.h"

/* `make reference` writes the page. */
static void page_is_the_reference(void **state)
{
	struct buf page = { 0 };
	struct str want = { 0 };
	struct err e = { 0 };

	(void)state;
	config_keys_page(&page);
	assert_int_equal(file_map("docs/reference/experiment.md", &want, &e), 0);
	assert_int_equal(page.len, want.n);
	assert_memory_equal(page.data, want.p, want.n);
	file_unmap(want);
	buf_release(&page);
}

/* The nth of so many parts of a text that are alike in size. */
static void check_part(struct str text, size_t nth, size_t parts)
{
	size_t from = text.n / parts * nth;

	answers_check(text.p + from, nth + 1 == parts ? text.n - from : text.n / parts);
}

static void schema_of_every_section(void **state)
{
	static const int64_t port = 8000;
	static const struct opt row[] = { { .name = "port", .kind = OPT_INT, .help = "its port" } };
	static const struct opt_set sim = { .command = "sim", .row = row, .n = 1,
					    .defaults = &port, .bytes = sizeof(port) };
	struct json_value *v = NULL;
	const struct json_value *all;
	struct arena a = { 0 };
	struct buf text = { 0 }, one = { 0 };
	struct err e = { 0 };

	(void)state;
	config_schema(&sim, &text);
	if (json_parse(&a, buf_str(&text), &v, &e) < 0)
		fail_msg("%s", e.text);
	all = json_get(v, "definitions");
	assert_non_null(all);
	for (size_t i = 0; i < all->count; i++) {
		struct json_writer w = json_writer(&one);

		buf_reset(&one);
		json_put_value(&w, &all->item[i]);
		answers_check(all->key[i].p, all->key[i].n);
		check_part(buf_str(&one), 0, 1);
	}
	for (size_t i = 0; i < 8; i++)
		check_part(buf_str(&text), i, 8);
	buf_release(&one);
	buf_release(&text);
	arena_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(page_is_the_reference), cmocka_unit_test(schema_of_every_section),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
