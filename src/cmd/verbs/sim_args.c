/* SPDX-License-Identifier: Apache-2.0 */
/* sim_args.c - see sim_cli.h: the argument list of vLLM's server. */
#include <inttypes.h>

#include "cmd/verbs/sim_cli.h"
#include "host/engine/args.h"

struct fit {
	const struct opt_set *set;
	struct sim_args *out;
	struct arena *arena;
	struct err *e;
};

static bool same_name(struct str typed, const char *name)
{
	size_t i = 0;

	while (i < typed.n && name[i] && (typed.p[i] == name[i] ||
					  (typed.p[i] == '_' && name[i] == '-')))
		i++;
	return i == typed.n && !name[i];
}

static const struct opt *row_find(const struct fit *f, struct str name)
{
	for (size_t i = 0; i < f->set->n; i++) {
		const struct opt *o = &f->set->row[i];

		if (!(o->flags & OPT_POSITIONAL) && same_name(name, o->name))
			return o;
	}
	return NULL;
}

/* The name as it was typed, without dashes, "no-", a value and keys of JSON. */
static struct str bare_name(const struct engine_token *t)
{
	struct str name = t->name;
	struct str bare;

	while (name.n && *name.p == '-') {
		name.p++;
		name.n--;
	}
	bare = str_cut(&name, '=');
	bare = str_cut(&bare, '.');
	return bare;
}

static bool is_own(const struct fit *f, const struct engine_token *t)
{
	struct str name = bare_name(t);

	return row_find(f, name) ||
	       (str_starts(name, STR("no-")) &&
		row_find(f, (struct str){ name.p + 3, name.n - 3 }));
}

static void add(struct fit *f, const char *text)
{
	f->out->argv[f->out->argc++] = (char *)(uintptr_t)text;
}

/* Integers with a suffix are written out; "auto" and -1 are what fits. */
static const char *value_text(struct fit *f, const struct engine_token *t, bool *is_dropped)
{
	const char *text = arena_text(f->arena, t->value);
	char *const argv[] = { (char *)(uintptr_t)"sim",
		arena_printf(f->arena, "--%s=%s", t->arg->name, text), NULL };
	int64_t number;

	/* What is no such number is our option's to refuse. */
	if (t->arg->kind != ENGINE_HUMAN || engine_arg_check(t->arg, t->value, NULL) < 0)
		return text;
	if (strcmp(t->arg->name, "max-model-len") == 0 &&
	    (str_eq(t->value, STR("auto")) || str_eq(t->value, STR("-1")))) {
		f->out->is_len_auto = *is_dropped = true;
		return text;
	}
	number = engine_argv_int(argv, t->arg->name, INT64_MIN);
	return number == INT64_MIN ? text : arena_printf(f->arena, "%" PRId64, number);
}

/* An option of vLLM's that is one of ours, in our spelling. */
static void option_add(struct fit *f, const struct engine_token *t)
{
	const char *name = t->arg->name, *no = t->is_off ? "no-" : "";
	bool is_dropped = false;
	const char *value;

	if (!t->has_value) {
		add(f, arena_printf(f->arena, "--%s%s", no, name));
	} else if (t->arg->kind == ENGINE_LIST && t->values) {
		add(f, arena_printf(f->arena, "--%s", name));
		for (size_t i = 0; i + 1 < t->n; i++)
			add(f, t->values[i]);
	} else if (t->path.n) {
		add(f, arena_printf(f->arena, "--%s.%.*s=%.*s", name, (int)t->path.n, t->path.p,
				    (int)t->value.n, t->value.p));
	} else {
		value = value_text(f, t, &is_dropped);
		if (!is_dropped)
			add(f, arena_printf(f->arena, "--%s=%s", name, value));
	}
}

static int option_drop(struct fit *f, const struct engine_token *t)
{
	struct buf *notes = &f->out->notes;
	bool is_level = strcmp(t->arg->name, "optimization-level") == 0 ||
			strcmp(t->arg->name, "compilation-config") == 0;

	if (t->has_value && t->path.n == 0 && engine_arg_check(t->arg, t->value, f->e) < 0)
		return -1;
	if (is_level && f->out->is_level_eager)
		return 0;
	if (notes->len == 0)
		buf_add_text(notes, "no effect in the simulator:");
	buf_printf(notes, " --%s", t->arg->name);
	return 0;
}

/*
 * A name that neither vLLM nor we know, and that is nearer to one of vLLM's than to one of ours:
 * the option parser knows ours alone. Beginnings of ours are none of these.
 */
static int unknown_check(const struct fit *f, const struct engine_token *t)
{
	const char **names = arena_alloc(f->arena, (engine_arg_count + f->set->n) * sizeof(*names));
	struct str name = bare_name(t);
	const char *near;
	size_t n = 0;

	for (size_t i = 0; i < f->set->n; i++) {
		struct str own = str_of(f->set->row[i].name);

		if (own.n > name.n && same_name(name, arena_text(f->arena,
					(struct str){ own.p, name.n })))
			return 0;
		names[n++] = own.p;
	}
	for (size_t i = 0; i < engine_arg_count; i++)
		names[n++] = engine_args[i].name;
	near = opt_nearest(name, names, n);
	if (!near || row_find(f, str_of(near)) || !engine_arg_find(str_of(near)))
		return 0;
	return err_set(f->e, ERR_USAGE, "unknown option --%.*s; did you mean --%s?",
		       (int)name.n, name.p, near);
}

int sim_args_fit(const struct opt_set *set, char **argv, struct sim_args *out, struct arena *a,
		 struct err *e)
{
	struct fit f = { .set = set, .out = out, .arena = a, .e = e };
	struct engine_optimization level;
	char *const *at = argv, *const *before = argv;
	struct engine_token t;
	size_t n = 0;

	while (argv[n])
		n++;
	*out = (struct sim_args){ .argv = arena_alloc(a, (n + 1) * sizeof(*out->argv)) };
	engine_argv_optimization(argv, 0, &level);
	out->is_level_eager = level.level == 0;
	for (; engine_argv_next(&at, &t); before = at) {
		bool is_human = t.arg && t.arg->kind == ENGINE_HUMAN && t.has_value;

		if (t.arg && (is_human || !is_own(&f, &t))) {
			if (row_find(&f, str_of(t.arg->name)))
				option_add(&f, &t);
			else if (option_drop(&f, &t) < 0)
				return -1;
			continue;
		}
		if (!t.arg && !t.is_positional && !t.is_ambiguous && !is_own(&f, &t) &&
		    str_starts(t.name, STR("--")) && unknown_check(&f, &t) < 0)
			return -1;
		for (; before < at; before++)
			add(&f, *before);
	}
	if (out->notes.len)
		buf_add_char(&out->notes, '\n');
	out->argv[out->argc] = NULL;
	return 0;
}
