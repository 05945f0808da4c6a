/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse.c - argv into an options struct, as argparse under vLLM's parser does it.
 *
 * Each token is classified first (value, option, dotted key, end of options) and
 * only then used: an option that needs a value takes the next token only when
 * that classifies as a value. Names are whole; in a set that takes prefixes also the
 * beginning of one of upstream's rows, or of a foreign name.
 */
#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "core/base/redact.h"
#include "core/opt/opt_internal.h"

/* ---- What a name probably meant ---- */

/*
 * Distance: insertions, deletions, changes and swaps of neighbours, one each
 * (optimal string alignment). Names are short, so three rows on the stack do.
 */
#define NAME_MAX_BYTES 95

static char same_dash(char c)
{
	return c == '_' ? '-' : c;
}

static size_t min2(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t distance(struct str a, const char *b, size_t nb)
{
	size_t row[3][NAME_MAX_BYTES + 1];
	size_t *two_up = row[0], *up = row[1], *now = row[2], *spare;

	for (size_t j = 0; j <= nb; j++)
		up[j] = two_up[j] = j;
	for (size_t i = 1; i <= a.n; i++) {
		char ca = same_dash(a.p[i - 1]);

		now[0] = i;
		for (size_t j = 1; j <= nb; j++) {
			char cb = same_dash(b[j - 1]);
			size_t d = up[j - 1] + (ca != cb);

			d = min2(d, min2(up[j], now[j - 1]) + 1);
			if (i > 1 && j > 1 && ca == same_dash(b[j - 2]) &&
			    cb == same_dash(a.p[i - 2]))
				d = min2(d, two_up[j - 2] + 1);
			now[j] = d;
		}
		spare = two_up;
		two_up = up;
		up = now;
		now = spare;
	}
	return up[nb];
}

const char *opt_nearest(struct str name, const char *const *names, size_t n)
{
	const char *best = NULL;
	size_t best_distance = SIZE_MAX;

	if (name.n == 0 || name.n > NAME_MAX_BYTES)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(names[i]), d;
		size_t allowed = (len > name.n ? len : name.n) / 3;

		if (len > NAME_MAX_BYTES)
			continue;
		d = distance(name, names[i], len);
		if (d <= (allowed ? allowed : 1) && d < best_distance) {
			best = names[i];
			best_distance = d;
		}
	}
	return best;
}

/* Whether typed, "--rate" or "-c", is among the row's words. */
static bool opt_has_word(const struct opt *o, struct str typed)
{
	struct str words = str_of(o->words);

	if (str_starts(typed, STR("--")))
		typed = (struct str){ typed.p + 2, typed.n - 2 };
	while (words.n) {
		struct str word = str_cut(&words, ' ');
		size_t i = 0;

		while (i < typed.n && i < word.n && same_dash(typed.p[i]) == word.p[i])
			i++;
		if (i == typed.n && i == word.n)
			return true;
	}
	return false;
}

/* Shorter prefixes are too little to guess from. */
#define BEGINNING_MIN 3

const char *opt_suggest(const struct opt_set *set, struct str typed)
{
	const char *names[OPT_ROWS_MAX + OPT_BUILTINS], *near[2], *begun = NULL;
	struct str name = typed;
	size_t n = 0;

	if (typed.n > 2 && typed.p[1] != '-') /* -c8: a letter with its value */
		typed.n = 2;
	while (name.n && *name.p == '-')
		name = (struct str){ name.p + 1, name.n - 1 };
	for (size_t i = 0; i < set->n + OPT_BUILTINS; i++) {
		const struct opt *o = opt_row_at(set, i);

		if (o->flags & (OPT_POSITIONAL | OPT_HIDDEN))
			continue;
		if (opt_has_word(o, typed))
			return o->name;
		if (!begun && name.n >= BEGINNING_MIN && opt_name_starts(o->name, name))
			begun = o->name;
		names[n++] = o->name;
	}
	near[0] = opt_nearest(name, names, n);
	for (const struct opt_foreign *f = set->foreign; f; f = f->next) {
		near[1] = f->nearest ? f->nearest(f->self, name) : NULL;
		if (near[1])
			near[0] = near[0] ? opt_nearest(name, near, 2) : near[1];
	}
	return near[0] ? near[0] : begun;
}

/* ---- Foreign words ---- */

/*
 * Asks each of f in turn; argv ends with NULL. Returns how many words argv[0] takes and sets *by to
 * the one that knows it; 0: unknown; -1 with e: refused, or an ambiguous prefix.
 */
static int opt_foreign_words(const struct opt_foreign *f, char *const *argv, bool is_whole,
			     const struct opt_foreign **by, struct err *e)
{
	for (; f; f = f->next) {
		int words = f->words(f->self, argv, is_whole, e);

		*by = f;
		if (words)
			return words;
	}
	return 0;
}

/* How many words argv[0] takes, which by has accepted before; at least 1. */
static size_t opt_foreign_taken(const struct opt_foreign *by, char *const *argv)
{
	struct err ignored = { 0 };
	int words = by->words(by->self, argv, true, &ignored);

	if (words == 0)
		words = by->words(by->self, argv, false, &ignored);
	return words > 1 ? (size_t)words : 1;
}

/* -5, -0.5, -.5: dashed words that argparse accepts as values. */
static bool opt_is_negative_number(struct str s)
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

/* Begins with a dash and is not a negative number. */
static bool opt_is_option_like(const char *text)
{
	struct str s = str_of(text);

	return s.n > 1 && s.p[0] == '-' && !opt_is_negative_number(s) &&
	       !memchr(s.p, ' ', s.n);
}

struct opt_foreign_rows opt_foreign_rows(const struct opt_foreign *f, struct arena *a)
{
	struct opt_foreign_rows out = { 0 };
	struct opt_foreign_row row;
	size_t n = 0;

	for (const struct opt_foreign *at = f; at; at = at->next)
		for (size_t i = 0; at->row && at->row(at->self, i, &row); i++)
			n++;
	out.row = arena_alloc(a, (n + 1) * sizeof(*out.row));
	for (const struct opt_foreign *at = f; at; at = at->next)
		for (size_t i = 0; at->row && at->row(at->self, i, &out.row[out.n]); i++)
			out.n++;
	return out;
}

void opt_foreign_show(const struct opt_rest *rest, struct buf *out)
{
	for (size_t i = 0; i < rest->n;) {
		const struct opt_foreign *by = rest->by[i];
		struct str text = str_of(rest->v[i]), name = str_cut(&text, '=');
		bool has_equals = name.n < strlen(rest->v[i]);
		size_t start = out->len, width;
		size_t words = by ? opt_foreign_taken(by, rest->v + i) : 1;
		bool is_secret;

		while (!by && i + words < rest->n && !rest->by[i + words] &&
		       !opt_is_option_like(rest->v[i + words]))
			words++;
		while (name.n && *name.p == '-')
			name = (struct str){ name.p + 1, name.n - 1 };
		is_secret = redact_is_secret(name);
		buf_printf(out, "%.*s =", (int)name.n, name.p);
		if (has_equals)
			buf_printf(out, " %s", is_secret ? REDACTED : text.p);
		for (size_t k = 1; k < words && i + k < rest->n; k++)
			buf_printf(out, " %s", is_secret ? REDACTED : rest->v[i + k]);
		if (!has_equals && words == 1)
			buf_add_text(out, " true");
		redact_tail(out, start, REDACT_SETTINGS);
		width = out->len - start;
		buf_printf(out, "%*s# given, %s\n", width < 46 ? (int)(48 - width) : 2, "",
			   by ? "an argument of the engine" : "unknown");
		i += words;
	}
}

/* ---- another set's options ---- */

static const struct opt *row_of(const struct opt_set *set, struct str name)
{
	const struct opt *o = opt_row(set, name);

	if (!o && name.n > 3 && opt_name_starts("no-", (struct str){ name.p, 3 })) {
		o = opt_row(set, (struct str){ name.p + 3, name.n - 3 });
		if (o && o->kind != OPT_TRI)
			o = NULL;
	}
	return o && !(o->flags & (OPT_POSITIONAL | OPT_LATER)) ? o : NULL;
}

int opt_foreign_set_words(const void *self, char *const *argv, bool is_whole, struct err *e)
{
	struct str rest = str_of(argv[0]), dots = str_cut(&rest, '='), name;
	bool has_value = dots.n < strlen(argv[0]), has_path;
	const struct opt *o;
	int n = 1;

	(void)e;
	if (!is_whole || !str_starts(dots, STR("--")))
		return 0;
	dots = (struct str){ dots.p + 2, dots.n - 2 };
	has_path = memchr(dots.p, '.', dots.n) != NULL;
	name = str_cut(&dots, '.');
	o = row_of(self, name);
	if (!o || (has_path && o->kind != OPT_JSON))
		return 0;
	if (has_value || o->kind == OPT_FLAG || o->kind == OPT_TRI)
		return 1;
	if (o->kind != OPT_LIST)
		return argv[1] && !opt_is_option_like(argv[1]) ? 2 : 1;
	while (argv[n] && !opt_is_option_like(argv[n]))
		n++;
	return n;
}

/* ---- tokens ---- */

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

/* As upstream, a prefix of both an upstream row and a foreign name is ambiguous. */
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

/* Words that other tools use for an option are not treated as prefixes of another one. */
static bool is_word_elsewhere(const struct opt_set *set, struct str name)
{
	for (size_t i = 0; i < set->n; i++)
		if (opt_has_word(&set->row[i], name))
			return true;
	return false;
}

/* name: the text between "--" and the first "." or "=". */
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

/* Keeps the word before p->at and the following ones that belong to it. */
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

/* Keeps it with all values that follow: no other option can take them. */
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
		return err_set(p->e, ERR_USAGE, "%.*s: --%s is not a JSON value, so it has no keys",
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
		return set->stray ? err_set(p->e, ERR_USAGE, "unexpected argument '%.120s'; did you mean "
					    "--%s %.120s?", word, set->stray, word) :
				    err_set(p->e, ERR_USAGE, "unexpected argument '%.120s'", word);
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
			buf_printf(&p->result->notes, "--%s as one JSON text is ignored, because "
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
