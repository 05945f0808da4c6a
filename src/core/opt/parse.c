/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse.c - argv into an options struct, as argparse under vLLM's parser does it.
 *
 * Each token is classified first (value, option, dotted key, end of options) and
 * only then used: an option that needs a value takes the next token only when
 * that classifies as a value. Names are whole; in a set that takes prefixes also the
 * beginning of one of upstream's rows, or of a foreign name.
 */
#include "core/opt/foreign.h"

#include <assert.h>
#include <ctype.h>

#define NAMES_MAX 16 /* candidates an "ambiguous" message lists */

enum token_kind {
	TOKEN_VALUE, TOKEN_OPTION, TOKEN_DOTTED, TOKEN_STOP, TOKEN_FOREIGN, TOKEN_UNKNOWN,
};

struct token {
	enum token_kind kind;
	const struct opt *row;   /* OPTION, DOTTED: as spelled, so possibly an alias */
	struct str name;         /* as typed after "--"; empty for a letter */
	bool is_negated;         /* --no-NAME of a tri-state */
	bool has_value;          /* --name=value */
	struct str value;
	struct str path;         /* DOTTED: what follows the first "." of the name */
	const struct opt_foreign *by; /* FOREIGN */
	int words;               /* FOREIGN: how many, itself included */
};

struct parse {
	const struct opt_set *set;
	void *values;
	struct opt_result *result;
	struct arena *arena;
	struct err *e;
	int argc, at;
	char **argv;
	bool is_stopped;               /* "--" was seen */
	struct json_value **tree;      /* per row: its dotted keys */
	size_t next_positional;        /* row to look at for the next bare word */
};

/* ---- names ---- */

static bool negated_is(const struct opt *o, struct str name)
{
	return o->kind == OPT_TRI && name.n > 3 &&
	       opt_name_starts("no-", (struct str){ name.p, 3 }) &&
	       opt_name_is((struct str){ name.p + 3, name.n - 3 }, o->name);
}

static bool negated_starts(const struct opt *o, struct str prefix)
{
	size_t head = prefix.n < 3 ? prefix.n : 3;

	return o->kind == OPT_TRI && opt_name_starts("no-", (struct str){ prefix.p, head }) &&
	       opt_name_starts(o->name, (struct str){ prefix.p + head, prefix.n - head });
}

static bool find_exact(const struct opt_set *set, struct str name, struct token *t)
{
	for (size_t i = 0; i < set->n + OPT_BUILTINS; i++) {
		const struct opt *o = opt_row_at(set, i);

		if (o->flags & OPT_POSITIONAL)
			continue;
		t->is_negated = negated_is(o, name);
		if (t->is_negated || opt_name_is(name, o->name)) {
			t->row = o;
			return true;
		}
	}
	return false;
}

/* Among upstream's rows. 1: found; 0: no such name; -1: ambiguous. */
static int find_beginning(const struct opt_set *set, struct str name, struct token *t,
			  struct err *e)
{
	struct buf names = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < set->n + OPT_BUILTINS; i++) {
		const struct opt *o = opt_row_at(set, i);

		if (o->flags & (OPT_POSITIONAL | OPT_HIDDEN | OPT_OURS))
			continue;
		for (int negated = 0; negated < 2; negated++) {
			if (!(negated ? negated_starts(o, name) : opt_name_starts(o->name, name)))
				continue;
			t->row = o;
			t->is_negated = negated;
			if (n++ < NAMES_MAX)
				buf_printf(&names, "%s--%s%s", n > 1 ? ", " : "",
					   negated ? "no-" : "", o->name);
		}
	}
	if (n > 1)
		err_set(e, ERR_USAGE, "ambiguous option --%.*s: it could be %s%s", (int)name.n,
			name.p, names.data, n > NAMES_MAX ? "..." : "");
	buf_release(&names);
	return n > 1 ? -1 : n == 1;
}

static int find_foreign(const struct parse *p, int at, bool is_whole, struct token *t)
{
	t->words = opt_foreign_words(p->set->foreign, p->argv + at, is_whole, &t->by, p->e);
	if (t->words > 0)
		t->kind = TOKEN_FOREIGN;
	return t->words > 0 ? 1 : t->words;
}

/*
 * The beginning of one of upstream's rows and of a foreign name at once is ambiguous, as it is
 * there.
 */
static int find_both(const struct parse *p, int at, struct str name, struct token *t)
{
	struct err ignored = { 0 };
	struct token foreign = { .kind = TOKEN_VALUE };
	struct parse look = *p;
	int found = find_beginning(p->set, name, t, p->e);

	if (found < 0)
		return -1;
	if (found == 0)
		return find_foreign(p, at, false, t);
	look.e = &ignored;
	if (find_foreign(&look, at, false, &foreign))
		return err_set(p->e, ERR_USAGE, "ambiguous option --%.*s: it could be --%s%s, and an "
			       "argument of the engine's; write it whole", (int)name.n, name.p,
			       t->is_negated ? "no-" : "", t->row->name);
	return 1;
}

/* What users of other tools type for an option is not the beginning of another one. */
static bool is_word_elsewhere(const struct opt_set *set, struct str name)
{
	for (size_t i = 0; i < set->n; i++)
		if (opt_has_word(&set->row[i], name))
			return true;
	return false;
}

/* name: what is between "--" and the first "." or "=". */
static int find_name(const struct parse *p, int at, struct str name, struct token *t)
{
	int found;

	if (find_exact(p->set, name, t))
		return 1;
	found = find_foreign(p, at, true, t);
	if (found || !p->set->takes_prefixes || is_word_elsewhere(p->set, name))
		return found;
	return find_both(p, at, name, t);
}

/* name: as typed, with its dashes. */
static int unknown(const struct parse *p, struct str name)
{
	const char *near = opt_suggest(p->set, name);

	return err_set(p->e, ERR_USAGE, "unknown option %.*s%s%s%s", (int)name.n, name.p,
		       near ? "; did you mean --" : "", near ? near : "", near ? "?" : "");
}

/* ---- tokens ---- */

bool opt_is_negative_number(struct str s)
{
	size_t digits = 0, points = 0;

	for (size_t i = 1; i < s.n; i++) {
		if (isdigit((unsigned char)s.p[i]))
			digits++;
		else if (s.p[i] == '.' && points == 0)
			points++;
		else
			return false;
	}
	return digits > 0 && s.p[s.n - 1] != '.';
}

static bool find_letter(const struct opt_set *set, char letter, struct token *t)
{
	for (size_t i = 0; i < set->n + OPT_BUILTINS; i++) {
		if (opt_row_at(set, i)->letter == letter && letter) {
			t->row = opt_row_at(set, i);
			return true;
		}
	}
	return false;
}

/* -1: an error. */
static int classify_short(const struct parse *p, int at, struct str text, struct token *t)
{
	int found = find_foreign(p, at, true, t);

	if (found)
		return found;
	if (!find_letter(p->set, text.p[1], t)) {
		t->kind = opt_is_negative_number(text) || memchr(text.p, ' ', text.n) ?
			TOKEN_VALUE : TOKEN_UNKNOWN;
		return 0;
	}
	t->kind = TOKEN_OPTION;
	if (text.n > 2) {
		size_t skip = text.p[2] == '=' ? 3 : 2;

		t->has_value = true;
		t->value = (struct str){ text.p + skip, text.n - skip };
	}
	return 0;
}

/* -1 for an ambiguous name, or one that is refused. */
static int classify(const struct parse *p, int at, struct token *t)
{
	struct str text = str_of(p->argv[at]), name, rest;
	int found;

	*t = (struct token){ .kind = TOKEN_VALUE };
	if (p->is_stopped || text.n < 2 || text.p[0] != '-')
		return 0;
	if (str_is(text, "--")) {
		t->kind = TOKEN_STOP;
		return 0;
	}
	rest = text;
	name = str_cut(&rest, '=');
	t->has_value = name.n < text.n;
	t->value = rest;
	if (memchr(name.p, '.', name.n)) {
		struct str head = str_cut(&name, '.');

		t->kind = TOKEN_DOTTED;
		t->path = name;
		name = head;
	}
	if (!str_starts(name, STR("--"))) {
		if (t->kind != TOKEN_DOTTED)
			return classify_short(p, at, text, t);
		return find_foreign(p, at, true, t) < 0 ? -1 : 0;
	}
	name.p += 2;
	name.n -= 2;
	t->name = name;
	found = find_name(p, at, name, t);
	if (found < 0)
		return -1;
	if (t->kind == TOKEN_DOTTED || t->kind == TOKEN_FOREIGN)
		return 0;
	if (found)
		t->kind = TOKEN_OPTION;
	else
		t->kind = memchr(text.p, ' ', text.n) ? TOKEN_VALUE : TOKEN_UNKNOWN;
	return 0;
}

/* The next token when it is a value; NULL otherwise, and nothing is consumed. */
static const char *take_value(struct parse *p)
{
	struct err ignored = { 0 };
	struct parse look = *p;
	struct token t;

	look.e = &ignored;
	if (p->at >= p->argc || classify(&look, p->at, &t) < 0 || t.kind != TOKEN_VALUE)
		return NULL;
	return p->argv[p->at++];
}

/* ---- options ---- */

static size_t index_of(const struct opt_set *set, const struct opt *o)
{
	assert(o >= set->row && o < set->row + set->n);
	return (size_t)(o - set->row);
}

static void mark_given(struct parse *p, const struct opt *o)
{
	size_t i = index_of(p->set, o);

	if (p->result->given[i / 64] >> i % 64 & 1 && !(o->flags & (OPT_POSITIONAL | OPT_EACH)))
		buf_printf(&p->result->notes,
			   "--%s is given more than once; the last one counts\n", o->name);
	p->result->given[i / 64] |= UINT64_C(1) << i % 64;
}

static int needs_value(const struct parse *p, const struct opt *o, const char *what)
{
	const char *next = p->at < p->argc ? p->argv[p->at] : NULL;
	char label[96];

	opt_label(o, label);
	if (!next || next[0] != '-' || strncmp(next, "--", 2) == 0)
		return err_set(p->e, ERR_USAGE, "%s: expected %s", label, what);
	return err_set(p->e, ERR_USAGE,
		       "%s: expected %s; a value that starts with a dash is written %s=%s", label,
		       what, label, next);
}

static int parse_list(struct parse *p, const struct opt *o, const struct token *t)
{
	const struct opt_list *before = opt_field(o, p->values);
	const char **v = arena_alloc(p->arena, ((size_t)p->argc + 1) * sizeof(*v));
	size_t n = 0, kept = 0;

	if (o->flags & OPT_EACH && before->is_set)
		while (kept < before->n)
			v[n++] = before->v[kept++];
	if (t->has_value)
		v[n++] = arena_text(p->arena, t->value);
	else
		for (const char *one; (one = take_value(p)) != NULL;)
			v[n++] = one;
	if (n == kept && o->flags & OPT_MANY)
		return needs_value(p, o, "at least one argument");
	return opt_read_list(p->set, o, p->values, v, n, p->e);
}

/* An abbreviation is noted once, however often it is typed. */
static void note_beginning(struct parse *p, const struct token *t)
{
	struct buf *notes = &p->result->notes;
	const char *no = t->is_negated ? "no-" : "";
	char line[256];

	if (t->name.n == 0 || t->name.n == strlen(no) + strlen(t->row->name))
		return;
	snprintf(line, sizeof(line), "--%.*s is read as --%s%s\n", (int)t->name.n, t->name.p, no,
		 t->row->name);
	if (!notes->data || !strstr(notes->data, line))
		buf_add_text(notes, line);
}

static int parse_option(struct parse *p, const struct token *t)
{
	const struct opt *o = opt_target(p->set, t->row);
	struct str text = t->value;
	const char *next;

	note_beginning(p, t);

	if (t->row != o)
		buf_printf(&p->result->notes, "--%s is an old spelling of --%s%s%s\n",
			   t->row->name, o->name, t->row->note ? "; " : "",
			   t->row->note ? t->row->note : "");
	mark_given(p, o);
	if (o->kind == OPT_LIST)
		return parse_list(p, o, t);
	if (o->kind == OPT_FLAG || o->kind == OPT_TRI) {
		if (t->has_value)
			return err_set(p->e, ERR_USAGE, "--%s%s: takes no value, got '%.*s'",
				       t->is_negated ? "no-" : "", o->name, (int)text.n, text.p);
		return opt_read_bool(p->set, o, p->values, !t->is_negated, p->e);
	}
	if (!t->has_value) {
		next = take_value(p);
		if (!next)
			return needs_value(p, o, "one argument");
		text = str_of(next);
	}
	return opt_read(p->set, o, p->values, text, p->arena, p->e);
}

/* ---- words that are kept as they are ---- */

/* The word before p->at and those after it that belong to it. */
static void keep(struct parse *p, int words, const struct opt_foreign *by)
{
	struct opt_rest *rest = &p->result->rest;

	p->at--;
	for (int i = 0; i < words && p->at < p->argc; i++) {
		rest->by[rest->n] = by;
		rest->v[rest->n++] = p->argv[p->at++];
	}
}

static bool is_kept_unknown(const struct parse *p, struct str name)
{
	const struct opt_foreign *f = p->set->foreign;

	while (f && !f->is_open)
		f = f->next;
	return f && !opt_suggest(p->set, name);
}

/* With all values that follow it: nobody else can want them. */
static int keep_unknown(struct parse *p)
{
	int words = 1;

	while (!strchr(p->argv[p->at - 1], '=') && p->at - 1 + words < p->argc &&
	       !opt_is_option_like(p->argv[p->at - 1 + words]))
		words++;
	keep(p, words, NULL);
	return 0;
}

static int parse_dotted(struct parse *p, const char *arg, const struct token *t)
{
	const struct opt *o = t->row ? opt_target(p->set, t->row) : NULL;
	struct str text = t->value, full = str_of(arg);
	struct str name = str_cut(&full, '=');

	if (!o)
		return is_kept_unknown(p, name) ? keep_unknown(p) : unknown(p, name);
	note_beginning(p, t);
	if (o->kind != OPT_JSON)
		return err_set(p->e, ERR_USAGE, "%.*s: --%s holds no JSON, so it has no keys",
			       (int)name.n, name.p, o->name);
	if (!t->has_value) {
		/* Upstream takes whatever token follows. */
		if (p->at >= p->argc)
			return err_set(p->e, ERR_USAGE, "%.*s: expected one argument",
				       (int)name.n, name.p);
		text = str_of(p->argv[p->at++]);
	}
	return opt_dotted_put(&p->tree[index_of(p->set, o)], o->name, t->path, text,
			      &p->result->notes, p->arena, p->e);
}

static int parse_bare(struct parse *p, const char *word)
{
	const struct opt_set *set = p->set;
	size_t i = p->next_positional;
	struct opt_list *list;
	const char **v;

	while (i < set->n && !(set->row[i].flags & OPT_POSITIONAL))
		i++;
	p->next_positional = i;
	if (i == set->n)
		return err_set(p->e, ERR_USAGE, "unexpected argument '%.120s'", word);
	mark_given(p, &set->row[i]);
	if (set->row[i].kind != OPT_LIST) {
		p->next_positional++;
		return opt_read(set, &set->row[i], p->values, str_of(word), p->arena, p->e);
	}
	list = opt_field(&set->row[i], p->values);
	v = arena_alloc(p->arena, (list->n + 1) * sizeof(*v));
	if (list->n)
		memcpy(v, list->v, list->n * sizeof(*v));
	v[list->n] = word;
	return opt_read_list(set, &set->row[i], p->values, v, list->n + 1, p->e);
}

/* 1: stop reading (help was asked). */
static int parse_builtin(struct parse *p, const struct token *t)
{
	if (t->row == &opt_builtin[OPT_BUILTIN_SHOW]) {
		if (t->has_value)
			return err_set(p->e, ERR_USAGE, "--show-config: takes no value, got '%.*s'",
				       (int)t->value.n, t->value.p);
		p->result->is_show_config = true;
		return 0;
	}
	p->result->is_help = true;
	p->result->help_topic = t->has_value ? arena_text(p->arena, t->value) : "";
	return 1;
}

static int parse_token(struct parse *p)
{
	const char *arg = p->argv[p->at];
	struct str text = str_of(arg), name;
	struct token t;

	if (classify(p, p->at++, &t) < 0)
		return -1;
	switch (t.kind) {
	case TOKEN_STOP:
		p->is_stopped = true;
		return 0;
	case TOKEN_VALUE:
		return parse_bare(p, arg);
	case TOKEN_DOTTED:
		return parse_dotted(p, arg, &t);
	case TOKEN_OPTION:
		if (t.row >= opt_builtin && t.row < opt_builtin + OPT_BUILTINS)
			return parse_builtin(p, &t);
		return parse_option(p, &t);
	case TOKEN_FOREIGN:
		keep(p, t.words, t.by);
		return 0;
	case TOKEN_UNKNOWN:
		break;
	}
	name = str_cut(&text, '=');
	return is_kept_unknown(p, name) ? keep_unknown(p) : unknown(p, name);
}

/* Dotted keys come last, in place of a whole JSON text, as upstream appends them. */
static int apply_trees(struct parse *p)
{
	for (size_t i = 0; i < p->set->n; i++) {
		const struct opt *o = &p->set->row[i];
		bool is_whole_given = p->result->given[i / 64] >> i % 64 & 1;

		if (!p->tree[i])
			continue;
		if (is_whole_given)
			buf_printf(&p->result->notes, "--%s as one JSON text is dropped: its "
				   "--%s.KEY options replace it\n", o->name, o->name);
		p->result->given[i / 64] |= UINT64_C(1) << i % 64;
		if (opt_read(p->set, o, p->values, str_of(opt_dotted_text(p->tree[i], p->arena)),
			     p->arena, p->e) < 0)
			return -1;
	}
	return 0;
}

static int check_positionals(const struct parse *p)
{
	unsigned needed = OPT_POSITIONAL | OPT_MANY;
	char label[96];

	for (size_t i = 0; i < p->set->n; i++) {
		const struct opt *o = &p->set->row[i];

		if ((o->flags & needed) == needed && !(p->result->given[i / 64] >> i % 64 & 1))
			return err_set(p->e, ERR_USAGE, "%s is missing: %s", opt_label(o, label),
				       o->help);
	}
	return 0;
}

int opt_parse(const struct opt_set *set, int argc, char **argv, void *values,
	      struct opt_result *result, struct arena *a, struct err *e)
{
	struct parse p = { .set = set, .values = values, .result = result, .arena = a, .e = e,
			   .argc = argc, .argv = argv };

	assert(set->n <= OPT_ROWS_MAX);
	*result = (struct opt_result){ 0 };
	memcpy(values, set->defaults, set->bytes);
	p.tree = arena_alloc(a, (set->n + 1) * sizeof(struct json_value *));
	result->rest.v = arena_alloc(a, ((size_t)argc + 1) * sizeof(*result->rest.v));
	result->rest.by = arena_alloc(a, ((size_t)argc + 1) * sizeof(*result->rest.by));
	while (p.at < argc) {
		int rc = parse_token(&p);

		if (rc != 0)
			return rc < 0 ? -1 : 0;
	}
	return apply_trees(&p) < 0 || check_positionals(&p) < 0 ? -1 : 0;
}

bool opt_given(const struct opt_set *set, const struct opt_result *r, const char *name)
{
	const struct opt *o = opt_row(set, str_of(name));
	size_t i;

	assert(o);
	i = index_of(set, opt_target(set, o));
	return r->given[i / 64] >> i % 64 & 1;
}
