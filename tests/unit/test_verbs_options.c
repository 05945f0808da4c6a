/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_options.c - the options of every command: what each accepts, what it is without being
 * given, where help shows it, what it replaces. A change of any of them is to be seen in a diff.
 */
#include "verb.h"

static void add_row(struct buf *out, const struct opt *o, const struct json_value *initial)
{
	static const char *const flags[] = {
		"hidden", "later", "ours", "many", "secret", "no-config", "above-min", "positional",
		"literal", "whole", "dashed", "each",
	};
	struct json_writer w = json_writer(out);

	buf_printf(out, "%s%s", o->flags & OPT_POSITIONAL ? "" : "--", o->name);
	if (o->letter)
		buf_printf(out, " -%c", o->letter);
	buf_printf(out, " %s: ", o->arg ? o->arg : "");
	opt_expected(o, out);
	if (initial) {
		buf_add_text(out, " = ");
		json_put_value(&w, initial);
	}
	for (size_t i = 0; i < COUNT(flags); i++)
		if (o->flags >> i & 1)
			buf_printf(out, ", %s", flags[i]);
	if (o->alias_of)
		buf_printf(out, ", see --%s", o->alias_of);
	buf_add_char(out, '\n');
}

static void add_set(struct buf *out, const struct opt_set *set)
{
	const char *group = "";
	struct buf text = { 0 };
	struct arena a = { 0 };
	struct json_value *initial;
	struct err e;

	opt_json(set, set->defaults, &text);
	if (json_parse(&a, buf_str(&text), &initial, &e) < 0)
		fail_msg("%s", e.text);
	for (size_t i = 0; i < set->n; i++) {
		const struct opt *o = &set->row[i];
		char *key = arena_text(&a, str_of(o->name));

		for (char *p = key; *p; p++)
			*p = *p == '-' ? '_' : *p;
		if (o->group && strcmp(o->group, group) != 0)
			buf_printf(out, "[%s]\n", group = o->group);
		add_row(out, o, json_get(initial, key));
	}
	buf_release(&text);
	arena_release(&a);
}

static void options(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(commands); i++) {
		const struct command *c = &commands[i];
		const struct opt_set *set = c->options ? c->options() : c->set;
		struct buf out = { 0 };
		bool is_seen = !set;

		for (size_t k = 0; k < i && !is_seen; k++)
			is_seen = commands[k].set == set;
		if (is_seen)
			continue;
		add_set(&out, set);
		verb_answer(c->name, &out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(options) };

	return cmocka_run_group_tests(tests, verb_setup, verb_teardown);
}
