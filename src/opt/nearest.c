/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nearest.c - the name that was probably meant.
 *
 * Distance: insertions, deletions, changes and swaps of neighbours, one each
 * (optimal string alignment). Names are short, so three rows on the stack do.
 */
#include "opt/row.h"

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
