/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_ingest.c - store/read.h: whatever bytes come, a sentence or runs that hold together.
 *
 * Each run has its names once, in the form that is promised, valid texts and no NaN; what it keeps
 * as its document and its arrays is JSON.
 */
#include <math.h>
#include <stdint.h>

#include "check.h"
#include "core/base/str.h"
#include "core/json/read.h"
#include "results/index/names.h"
#include "results/store/read.h"

#define COLUMN_BYTES 128

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_cells(const struct read_run *run)
{
	for (size_t i = 0; i < run->row.n; i++) {
		struct cell c = run->row.cell[i];

		CHECK(c.column.n > 0 && c.column.n <= COLUMN_BYTES);
		CHECK(utf8_is_valid(c.column) && !memchr(c.column.p, '\n', c.column.n));
		CHECK(c.value.kind != VALUE_ABSENT);
		if (c.value.kind == VALUE_NUMBER)
			CHECK(!isnan(c.value.number));
		if (c.value.kind == VALUE_TEXT)
			CHECK(utf8_is_valid(c.value.text) &&
			      c.value.text.n <= INGEST_TEXT_BYTES_MAX &&
			      (!c.value.text.n || !memchr(c.value.text.p, 0, c.value.text.n)));
		CHECK(column_name(c.column).unit != NULL);
		for (size_t k = 0; run->row.n < 200 && k < i; k++)
			CHECK(!str_eq(run->row.cell[k].column, c.column));
	}
}

static void check_kept(const struct read_run *run, struct arena *a)
{
	struct json_value *v;

	CHECK(json_parse(a, run->document, &v, NULL) == 0);
	if (run->arrays.n)
		CHECK(json_parse(a, run->arrays, &v, NULL) == 0 && v->kind == JSON_OBJECT &&
		      v->count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = { 0 };
	struct read_file f;
	struct err e = { 0 };
	struct str bytes = { (const char *)data, size };

	if (read_document(STR(""), bytes, &a, &f, &e) < 0) {
		CHECK(e.code != ERR_NONE && e.text[0]);
	} else {
		CHECK(f.n > 0);
		for (size_t i = 0; i < f.n; i++) {
			CHECK(f.run[i].hash.n == 64 && f.run[i].run_id.n > 0);
			check_cells(&f.run[i]);
			check_kept(&f.run[i], &a);
		}
	}
	arena_release(&a);
	return 0;
}
