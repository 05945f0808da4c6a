/* SPDX-License-Identifier: Apache-2.0 */
/* test_console_series.c - the defaults that keys of series know are those of `bench serve`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/base/str.h"
#include "core/json/read.h"
#include "core/opt/opt.h"
#include "results/analyse/analyse_internal.h"

/* options/serve_opts.h has another struct answer than the index. */
extern const struct opt_set serve_opt_set;

/* "random-input-len = 1024    # default": as a cell of the store. false: no default to know. */
static bool cell_of(struct arena *a, struct str line, struct cell *out)
{
	struct str value = line, name = str_cut(&value, '=');
	const char *end, *from;
	struct json_value *v;
	struct err e = { 0 };
	char *column;

	value = str_trim(value);
	from = arena_text(a, value);
	end = strstr(from, " # ");
	if (!end || json_parse(a, str_trim((struct str){ from, (size_t)(end - from) }), &v, &e) < 0)
		fail_msg("%.*s: %s", (int)line.n, line.p, e.text);
	column = arena_printf(a, "benchmark.%s", arena_text(a, str_trim(name)));
	for (char *p = column; *p; p++)
		*p = *p == '-' ? '_' : *p;
	out->column = str_of(column);
	if (v->kind == JSON_STRING)
		out->value = (struct value){ .kind = VALUE_TEXT, .text = v->text };
	else if (v->kind == JSON_INT || v->kind == JSON_REAL)
		out->value = (struct value){ .kind = VALUE_NUMBER, .number = json_real(v, 0) };
	else
		return false; /* null, a flag that is off, an object that becomes several columns */
	return true;
}

static void defaults(void **state)
{
	const struct value none = { .kind = VALUE_ABSENT };
	struct arena a = { 0 };
	struct buf text = { 0 };
	struct str rest;
	size_t n = 0;

	(void)state;
	opt_show_config(&serve_opt_set, serve_opt_set.defaults, NULL, &text);
	for (rest = buf_str(&text); rest.n;) {
		struct str line = str_cut(&rest, '\n');
		struct cell c;

		if (!line.n || !cell_of(&a, line, &c) || series_role(c.column) != SERIES_KEY)
			continue;
		n++;
		if (!value_is_missing(series_value(c.column, c.value, none)))
			fail_msg("%.*s: series.c does not know this default", (int)line.n, line.p);
	}
	assert_true(n > 60);
	buf_release(&text);
	arena_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(defaults) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
