/* SPDX-License-Identifier: Apache-2.0 */
/* foreign.c - see opt.h and foreign.h: names that are no rows of a set and still pass. */
#include "core/opt/foreign.h"

#include <string.h>

#include "core/base/redact.h"

int opt_foreign_words(const struct opt_foreign *f, char *const *argv, bool is_whole,
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

size_t opt_foreign_taken(const struct opt_foreign *by, char *const *argv)
{
	struct err ignored = { 0 };
	int words = by->words(by->self, argv, true, &ignored);

	if (words == 0)
		words = by->words(by->self, argv, false, &ignored);
	return words > 1 ? (size_t)words : 1;
}

bool opt_is_option_like(const char *text)
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
			   by ? "the engine's" : "unknown");
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
