/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nearest.c - the name that was probably meant.
 *
 * Distance: insertions, deletions, changes and swaps of neighbours, one each
 * (optimal string alignment). Names are short, so three rows on the stack do.
 */
#include "core/opt/row.h"

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

bool opt_has_word(const struct opt *o, struct str typed)
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

/* Shorter beginnings say too little to guess from. */
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
