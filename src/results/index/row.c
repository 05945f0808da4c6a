/* SPDX-License-Identifier: Apache-2.0 */
/* row.c - see row.h. */
#include "results/index/row.h"

static int compare_text(struct str a, struct str b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int c = n ? memcmp(a.p, b.p, n) : 0;

	return c ? c : (a.n > b.n) - (a.n < b.n);
}

int value_compare(struct value a, struct value b)
{
	if (a.kind != b.kind)
		return a.kind < b.kind ? -1 : 1;
	switch (a.kind) {
	case VALUE_BOOL:
		return (int)a.is_true - (int)b.is_true;
	case VALUE_NUMBER:
		return (a.number > b.number) - (a.number < b.number);
	case VALUE_TEXT:
		return compare_text(a.text, b.text);
	case VALUE_ABSENT:
	case VALUE_NULL:
		break;
	}
	return 0;
}

bool value_same(struct value a, struct value b)
{
	if (a.kind != b.kind)
		return false;
	if (a.kind == VALUE_TEXT)
		return str_eq(a.text, b.text);
	return value_compare(a, b) == 0;
}
