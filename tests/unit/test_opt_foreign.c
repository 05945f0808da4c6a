/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_opt_foreign.c - options of a set and foreign names on the same command line.
 *
 * A fictional engine has a handful of names of every kind. A case is a command line and its result:
 * the words that pass, the value of one row, or the sentence that refuses it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/json/read.h"
#include "core/opt/opt.h"
#include "answers.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define ARGS_MAX 10

/* ---- the engine ---- */

enum kind { SWITCH, VALUE, LIST, SERVERS };
static const struct { const char *name, *letters, *group; enum kind kind; } names[] = {
	{ "tensor-size", "-tp", "Parallel", VALUE },
	{ "tensor-order", "", "Parallel", VALUE },
	{ "eager", "", "Model", SWITCH },
	{ "speculation", "-spec", "Model", VALUE },
	{ "sizes", "", "Model", LIST },
	{ "input-format", "", "Model", VALUE },
	{ "worker-class", "", "Parallel", VALUE },
	{ "token", "", "Model", VALUE },
	{ "listen", "", "Server", SERVERS },
};

static bool is_name(const char *name, struct str typed, bool is_whole)
{
	for (size_t i = 0; i < typed.n; i++)
		if (name[i] != (typed.p[i] == '_' ? '-' : typed.p[i]))
			return false;
	return !is_whole || strlen(name) == typed.n;
}

static int find(struct str head, bool is_whole, int *several)
{
	int found = -1;

	*several = 0;
	for (size_t i = 0; i < COUNT(names); i++) {
		struct str plain = { head.p + 2, head.n - 2 };
		bool is_it = str_eq(head, str_of(names[i].letters));

		if (!is_it && str_starts(head, STR("--"))) {
			is_it = is_name(names[i].name, plain, is_whole);
			if (!is_it && names[i].kind == SWITCH && str_starts(plain, STR("no-")))
				is_it = is_name(names[i].name,
						(struct str){ plain.p + 3, plain.n - 3 }, is_whole);
		}
		if (is_it && found >= 0)
			*several = 1;
		if (is_it)
			found = (int)i;
	}
	return found;
}

static int words(const void *self, char *const *argv, bool is_whole, struct err *e)
{
	struct str rest = str_of(argv[0]), head = str_cut(&rest, '=');
	bool has_value = head.n < strlen(argv[0]);
	struct str dots = head;
	int several, i, n = 1;

	assert_null(self);
	head = str_cut(&dots, '.');
	if (head.n < 2)
		return 0;
	i = find(head, is_whole, &several);
	if (i < 0)
		return 0;
	if (several)
		return err_set(e, ERR_USAGE, "%.*s is several", (int)head.n, head.p);
	if (names[i].kind == SERVERS)
		return err_set(e, ERR_USAGE, "%s is the server's", names[i].name);
	if (has_value || names[i].kind == SWITCH)
		return 1;
	if (names[i].kind == VALUE)
		return argv[1] ? 2 : 1;
	while (argv[n] && argv[n][0] != '-')
		n++;
	return n;
}

static const char *nearest(const void *self, struct str name)
{
	const char *list[COUNT(names)];

	(void)self;
	for (size_t i = 0; i < COUNT(names); i++)
		list[i] = names[i].name;
	return opt_nearest(name, list, COUNT(names));
}

static bool row(const void *self, size_t i, struct opt_foreign_row *out)
{
	(void)self;
	if (i >= COUNT(names))
		return false;
	*out = (struct opt_foreign_row){
		.name = names[i].name, .also = names[i].letters, .group = names[i].group,
		.help = "does something", .initial = names[i].kind == VALUE ? "7" : "",
		.choices = i == 1 ? "row column" : "",
		.kind = names[i].kind == SWITCH ? "tri" : "text", .is_switch = names[i].kind == SWITCH,
		.has_value = names[i].kind != SWITCH,
	};
	return true;
}

/* ---- another program's options, by whole names ---- */

struct other_opts { int64_t ttft; bool fast; struct opt_list fault; struct opt_json plan; };
static const struct opt other_rows[] = {
	OPT(struct other_opts, ttft, "ttft", .help = "time"),
	OPT(struct other_opts, fast, "fast", .help = "fast"),
	OPT(struct other_opts, fault, "fault", .help = "faults"),
	OPT(struct other_opts, plan, "plan", .help = "plan"),
};
static const struct other_opts other_defaults;
static const struct opt_set other = {
	.command = "other", .row = other_rows, .n = COUNT(other_rows),
	.defaults = &other_defaults, .bytes = sizeof(other_defaults),
};

static const struct opt_foreign foreign_other = {
	.self = &other, .words = opt_foreign_set_words,
};
static const struct opt_foreign foreign = {
	.next = &foreign_other, .words = words, .nearest = nearest, .row = row,
	.is_open = true,
};

/* ---- the set ---- */

struct sample_opts {
	int64_t input_len, worker_time;
	bool profile;
	struct opt_list items;
	struct opt_json extra;
	const char *eagerly;
};

static const struct opt rows[] = {
	OPT(struct sample_opts, input_len, "input-len", .help = "tokens", .group = "Load"),
	OPT(struct sample_opts, profile, "profile", .help = "profile", .group = "Load"),
	OPT(struct sample_opts, items, "items", .help = "items", .group = "Load"),
	OPT(struct sample_opts, extra, "extra", .help = "extra", .group = "Load"),
	OPT(struct sample_opts, worker_time, "worker-time", .help = "s", .flags = OPT_OURS),
	OPT(struct sample_opts, eagerly, "eager", .help = "ours", .flags = OPT_OURS),
};
static const struct sample_opts defaults = { .input_len = 32 };
static struct opt_set set = {
	.command = "bench sample", .summary = "a made-up command", .row = rows, .n = COUNT(rows) - 1,
	.defaults = &defaults, .bytes = sizeof(defaults), .foreign = &foreign,
	.takes_prefixes = true,
};

struct line {
	const char *arg[ARGS_MAX];
	const char *rest;        /* the words that pass, joined by blanks */
	const char *json;        /* a part of the values as JSON; NULL: any */
	const char *error;
};

#define PASSES(r, ...) { .arg = { __VA_ARGS__ }, .rest = (r) }
#define GIVES(r, j, ...) { .arg = { __VA_ARGS__ }, .rest = (r), .json = (j) }
#define REFUSED(sentence, ...) { .arg = { __VA_ARGS__ }, .error = (sentence) }

static int parse(const struct line *l, struct sample_opts *o, struct opt_result *r, struct arena *a,
		 struct err *e)
{
	char **argv = arena_alloc(a, (ARGS_MAX + 1) * sizeof(*argv));
	int argc = 0;

	for (; argc < ARGS_MAX && l->arg[argc]; argc++)
		argv[argc] = arena_text(a, str_of(l->arg[argc]));
	argv[argc] = NULL;
	return opt_parse(&set, argc, argv, o, r, a, e);
}

static void check(const struct line *l)
{
	struct arena a = { 0 };
	struct opt_result r;
	struct sample_opts o;
	struct err e = { 0 };
	struct buf rest = { 0 }, json = { 0 };
	int rc = parse(l, &o, &r, &a, &e);

	if (l->error) {
		assert_int_equal(rc, -1);
		assert_int_equal(e.code, ERR_USAGE);
		assert_string_equal(e.text, l->error);
	} else {
		if (rc < 0)
			print_error("%s\n", e.text);
		assert_int_equal(rc, 0);
		buf_add_text(&rest, "");
		for (size_t i = 0; i < r.rest.n; i++)
			buf_printf(&rest, "%s%s", i ? " " : "", r.rest.v[i]);
		assert_string_equal(rest.len ? rest.data : "", l->rest);
		opt_json(&set, &o, &json);
		if (l->json && !strstr(json.data, l->json))
			print_error("%s: not in %s\n", l->json, json.data);
		assert_true(!l->json || strstr(json.data, l->json));
	}
	buf_release(&rest);
	buf_release(&json);
	opt_result_release(&r);
	arena_release(&a);
}

static void test_passing(void **state)
{
	static const struct line lines[] = {
		PASSES("", "--profile"),
		PASSES("--tensor-size 2", "--tensor-size", "2"),
		PASSES("--tensor_size=2", "--tensor_size=2"),
		PASSES("-tp 2", "-tp", "2"),
		PASSES("-tp -1", "-tp", "-1"),
		PASSES("--no-eager", "--no-eager"),
		PASSES("--speculation.depth 3", "--speculation.depth", "3"),
		PASSES("-spec.depth 3 --speculation.a.b=x", "-spec.depth", "3", "--speculation.a.b=x"),
		PASSES("--sizes 1 2 3", "--sizes", "1", "2", "3", "--profile"),
		GIVES("-tp 2 --eager", "\"input_len\": 8", "-tp", "2", "--input-len", "8", "--eager"),
		/* A list of ours ends where a foreign name begins. */
		GIVES("--tensor-size 2", "\"items\": [\"a\", \"b\"]", "--items", "a", "b",
		      "--tensor-size", "2"),
		GIVES("--speculation.depth 3", "\"extra\": {\"k\": 1}", "--extra.k", "1",
		      "--speculation.depth", "3"),
	};

	(void)state;
	for (size_t i = 0; i < COUNT(lines); i++)
		check(&lines[i]);
}

static void test_precedence(void **state)
{
	static const struct line lines[] = {
		/* The whole name of a row, though a foreign one begins so. */
		GIVES("", "\"input_len\": 4", "--input-len", "4"),
		/* A foreign whole name before the beginning of one of ours. */
		PASSES("--token x", "--token", "x"),
		/* Beginnings of upstream's rows and of foreign names, but none of ours. */
		GIVES("", "\"input_len\": 4", "--input-l", "4"),
		PASSES("--input-f x", "--input-f", "x"),
		REFUSED("ambiguous option --input: it could be --input-len, and an argument of the "
			"engine's; write it whole", "--input", "4"),
		REFUSED("ambiguous option --i: it could be --input-len, --items", "--i", "4"),
		PASSES("--worker-c x", "--worker-c", "x"),
		PASSES("--work x", "--work", "x"),
		REFUSED("unknown option --worker-t; did you mean --worker-time?", "--worker-t", "4"),
		PASSES("--spec x", "--spec", "x"),
		REFUSED("--tensor is several", "--tensor", "2"),
		REFUSED("listen is the server's", "--listen", "80"),
	};

	(void)state;
	for (size_t i = 0; i < COUNT(lines); i++)
		check(&lines[i]);
	/* A row of ours with a foreign name takes precedence. */
	set.n++;
	check(&(struct line)GIVES("--no-eager", "\"eager\": \"x\"", "--eager", "x", "--no-eager"));
	set.n--;
}

static void test_unknown(void **state)
{
	static const struct line lines[] = {
		REFUSED("unknown option --tensor-sise; did you mean --tensor-size?",
			"--tensor-sise", "2"),
		REFUSED("unknown option --profle; did you mean --profile?", "--profle"),
		PASSES("--brand-new-flag", "--brand-new-flag", "--profile"),
		PASSES("--brand-new-flag a b", "--brand-new-flag", "a", "b"),
		PASSES("--brand-new-flag=a", "--brand-new-flag=a"),
		PASSES("--brand-new.key 3", "--brand-new.key", "3"),
		PASSES("-qq x -tp 2", "-qq", "x", "-tp", "2"),
		REFUSED("unexpected argument 'alone'", "alone"),
		REFUSED("unexpected argument '--tensor-size'", "--", "--tensor-size", "2"),
		REFUSED("--input-len: expected one argument", "--input-len", "--eager"),
	};
	static struct opt_foreign closed;
	struct opt_foreign first = foreign;

	(void)state;
	for (size_t i = 0; i < COUNT(lines); i++)
		check(&lines[i]);
	first.is_open = false;
	closed = first;
	set.foreign = &closed;
	check(&(struct line)REFUSED("unknown option --brand-new-flag", "--brand-new-flag"));
	set.foreign = &foreign;
}

static void test_whose(void **state)
{
	const struct line line = PASSES("", "--eager", "--ttft", "20", "--fast", "--fault", "a", "b",
					"--strange", "--plan.a=1");
	static const struct opt_foreign *const want[] = {
		&foreign, &foreign_other, &foreign_other, &foreign_other, &foreign_other,
		&foreign_other, &foreign_other, NULL, &foreign_other,
	};
	struct arena a = { 0 };
	struct opt_result r;
	struct sample_opts o;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(parse(&line, &o, &r, &a, &e), 0);
	assert_int_equal(r.rest.n, COUNT(want));
	for (size_t i = 0; i < COUNT(want); i++)
		assert_ptr_equal(r.rest.by[i], want[i]);
	assert_null(r.rest.v[COUNT(want)]);
	opt_result_release(&r);
	arena_release(&a);
	/* Beginnings of another program's options do not count. */
	check(&(struct line)PASSES("--ttf 20", "--ttf", "20"));
}

static void assert_has(const struct buf *text, const char *part)
{
	if (!strstr(text->data, part))
		print_error("'%s' is not in:\n%s\n", part, text->data);
	assert_non_null(strstr(text->data, part));
}

static void assert_lacks(const struct buf *text, const char *part)
{
	assert_null(strstr(text->data, part));
}

static void test_help(void **state)
{
	struct buf out = { 0 };
	struct arena a = { 0 };
	struct json_value *v;

	(void)state;
	opt_help(&set, "", 80, &out);
	assert_has(&out, "  Parallel                  3 arguments\n");
	assert_lacks(&out, "--tensor-size");
	buf_reset(&out);
	opt_help(&set, OPT_HELP_OWN, 80, &out);
	assert_has(&out, "--input-len INPUT_LEN");
	assert_has(&out, "  Model                     5 arguments\n");
	assert_lacks(&out, "--tensor-size");
	buf_reset(&out);
	opt_help(&set, "all", 80, &out);
	assert_has(&out, "-tp, --tensor-size TENSOR_SIZE");
	assert_has(&out, "--eager, --no-eager");
	buf_reset(&out);
	opt_help(&set, "parallel", 80, &out);
	assert_has(&out, "\nParallel, an argument group of the engine:\n");
	assert_has(&out, "does something (choices: row, column; default: 7)");
	assert_lacks(&out, "--eager");
	buf_reset(&out);
	opt_help(&set, "--tensor_size", 80, &out);
	assert_has(&out, "Arguments of the engine that match 'tensor_size'");
	assert_lacks(&out, "--tensor-order");
	buf_reset(&out);
	opt_help(&set, "json", 80, &out);
	assert_int_equal(json_parse(&a, buf_str(&out), &v, NULL), 0);
	assert_int_equal(json_get(v, "options")->count, set.n + 2 + COUNT(names));
	arena_release(&a);
	answers_release(&out);
}

static void test_shown(void **state)
{
	const struct line line = PASSES("", "--token", "hush", "--token=hush", "--eager", "--sizes",
					"1", "2", "--odd", "x");
	struct buf out = { 0 };
	struct arena a = { 0 };
	struct opt_result r;
	struct sample_opts o;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(parse(&line, &o, &r, &a, &e), 0);
	opt_show_config(&set, &o, &r, &out);
	assert_lacks(&out, "hush");
	assert_has(&out, "\ntoken = *** ");
	assert_has(&out, "\neager = true ");
	assert_has(&out, "\nsizes = 1 2 ");
	assert_has(&out, "\nodd = x ");
	assert_has(&out, "# given, unknown\n");
	opt_result_release(&r);
	arena_release(&a);
	answers_release(&out);
}

static void test_completion(void **state)
{
	static const struct opt_set *const sets[] = { &set };
	struct buf out = { 0 };

	(void)state;
	assert_int_equal(opt_completion(sets, 1, "profllm", "bash", &out, NULL), 0);
	assert_has(&out, " --tensor-size ");
	assert_has(&out, " --no-eager ");
	assert_has(&out, "--tensor-order) words='row column' ;;");
	buf_reset(&out);
	assert_int_equal(opt_completion(sets, 1, "profllm", "zsh", &out, NULL), 0);
	assert_has(&out, "'--tensor-order=[does something]:value:(row column)'");
	assert_has(&out, "'--no-eager[does something]'");
	answers_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_passing), cmocka_unit_test(test_precedence),
		cmocka_unit_test(test_unknown), cmocka_unit_test(test_whose),
		cmocka_unit_test(test_help), cmocka_unit_test(test_shown),
		cmocka_unit_test(test_completion),
	};

	return cmocka_run_group_tests_name("opt_foreign", tests, NULL, NULL);
}
