/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_filter.c - arbitrary filters, over an index that holds a little of everything.
 *
 * The bytes are either refused in one sentence, or the index finds exactly the rows for which the
 * filter is true one by one, and its facets add up.
 */
#include "check.h"
#include "core/json/read.h"
#include "results/index/index_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ROWS 70
#define COLUMNS 4

static const char *const name[COLUMNS] = { "a", "b", "c", "d" };
static struct row row[ROWS];
static struct index *filled;

static struct value value_of(size_t column, size_t nth)
{
	static const char *const text[] = { "", "x", "Xy", "inf", "\xc3\xa9", "zzz" };
	struct value v = { .kind = VALUE_NUMBER, .number = (double)nth / 4 - 3 };

	if (column == 0)
		v = (struct value){ .kind = VALUE_TEXT, .text = str_of(text[nth % 6]) };
	else if (column == 1 && nth % 3 == 0)
		v = (struct value){ .kind = nth % 2 ? VALUE_NULL : VALUE_ABSENT };
	else if (column == 2)
		v = (struct value){ .kind = VALUE_BOOL, .is_true = nth % 5 == 0 };
	else if (column == 3)
		v.number = 4;
	return v;
}

static void fill(void)
{
	static struct cell cell[ROWS][COLUMNS];
	struct err e;

	filled = index_make_with(6, 12);
	index_set_cache(filled, 0);
	for (size_t i = 0; i < ROWS; i++) {
		row[i] = (struct row){ .id = (int64_t)i + 1, .cell = cell[i] };
		for (size_t k = 0; k < COLUMNS; k++) {
			struct value v = value_of(k, i);

			if (v.kind != VALUE_ABSENT)
				cell[i][row[i].n++] = (struct cell){ str_of(name[k]), v };
		}
	}
	CHECK(index_add_all(filled, row, ROWS, &e) == 0);
}

static void check_answer(const struct filter *f, struct arena *a)
{
	struct index_view *v = index_view(filled);
	struct str column[COLUMNS];
	struct query q = { .filter = f, .facet = column, .n_facets = COLUMNS, .limit = ROWS,
			   .facet_values_max = 3, .histogram_bins = 2 };
	struct answer answer;
	struct err e;
	size_t total = 0, at = 0;

	for (size_t i = 0; i < COLUMNS; i++)
		column[i] = str_of(name[i]);
	CHECK(index_query(v, &q, a, &answer, &e) == 0);
	for (size_t i = ROWS; i-- > 0;)
		if (filter_holds(f, &row[i])) {
			CHECK(at < answer.n_rows && answer.row[at].id == row[i].id);
			at++;
			total++;
		}
	CHECK(answer.total == total && answer.n_rows == total);
	for (size_t i = 0; i < COLUMNS; i++) {
		size_t rows = answer.facet[i].missing + answer.facet[i].others;

		for (size_t k = 0; k < answer.facet[i].n; k++)
			rows += answer.facet[i].value[k].count;
		CHECK(rows >= total && rows <= ROWS);
	}
	index_view_release(v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size };
	struct arena a = { 0 };
	struct json_value *json;
	struct filter *f;
	struct err e = { 0 };

	if (!filled)
		fill();
	if (json_parse(&a, text, &json, &e) == 0) {
		if (filter_read(json, "/filter", &a, &f, &e) == 0)
			check_answer(f, &a);
		else
			CHECK(e.code == ERR_USAGE && e.text[0]);
	}
	arena_release(&a);
	return 0;
}
