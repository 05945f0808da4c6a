/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_store.c - packed texts and rows: bytes that a damaged store gives back are refused or are a
 * row that holds together; what was read packs into a row that reads the same.
 */
#include <math.h>
#include <stdint.h>

#include "check.h"
#include "results/store/store_internal.h"

#define COLUMNS 300

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct names {
	char name[COLUMNS][8];
};

static struct str name_of(const void *self, uint64_t number)
{
	const struct names *n = self;

	return number < COLUMNS ? str_of(n->name[number]) : (struct str){ "", 0 };
}

static void same_again(const struct row *r, const struct names *names, struct arena *a)
{
	int64_t *number = arena_alloc(a, (r->n + 1) * sizeof(*number));
	struct buf packed = { 0 };
	struct row again = { 0 };

	for (size_t i = 0; i < r->n; i++) {
		CHECK(r->cell[i].value.kind != VALUE_ABSENT);
		if (r->cell[i].value.kind == VALUE_NUMBER)
			CHECK(!isnan(r->cell[i].value.number));
		for (number[i] = 0; !str_is(r->cell[i].column, names->name[number[i]]);)
			number[i]++;
	}
	pack_row(r, number, &packed);
	CHECK(unpack_row(buf_str(&packed), name_of, names, a, &again, NULL) == 0);
	CHECK(again.n == r->n);
	for (size_t i = 0; i < r->n; i++) {
		CHECK(str_eq(again.cell[i].column, r->cell[i].column));
		CHECK(value_same(again.cell[i].value, r->cell[i].value));
	}
	buf_release(&packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct names names;
	struct str bytes = { (const char *)data, size };
	struct buf text = { 0 };
	struct arena a = { 0 };
	struct row r = { 0 };
	struct err e = { 0 };

	for (int i = 0; i < COLUMNS; i++)
		snprintf(names.name[i], sizeof(names.name[i]), "c%d", i);
	if (unpack_row(bytes, name_of, &names, &a, &r, &e) == 0)
		same_again(&r, &names, &a);
	else
		CHECK(e.text[0]);
	e = (struct err){ 0 };
	if (unpack_text(bytes, &text, &e) < 0)
		CHECK(e.text[0] && text.len == 0);
	buf_release(&text);
	arena_release(&a);
	return 0;
}
