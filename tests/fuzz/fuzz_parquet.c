/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_parquet.c - arbitrary bytes as a Parquet file.
 *
 * It opens or gives one sentence; every row that can be read is JSON, in any order. The
 * input's size chooses which columns are wanted. Rows cost nothing in a file, so only the
 * first ones and some of the others are read.
 */
// LINKS: json
#include <stdlib.h>

#include "core/base/limits.h"
#include "mutate.h"

/* Nulls cost nothing in a file, and 256 MiB of them take seconds: a row's limit is lower here. */
#undef TABLE_ROW_BYTES_MAX
#define TABLE_ROW_BYTES_MAX (1ull << 20)
#define table_parquet fuzz_parquet
#define parquet_spell fuzz_parquet_spell
#include "input/table/parquet.c" /* parquet.c alone knows the limit */

#define ROWS_READ 300
#define BYTES_READ (1u << 20) /* of rows */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool is_good)
{
	if (!is_good)
		abort();
}

/* A row beyond the limit is an error after much work: once is enough. */
static bool read_row(void *state, size_t row, struct json_slice *s, size_t *bytes)
{
	struct err e = { 0 };

	if (table_parquet.row(state, row, s, &e) < 0) {
		check(e.code != ERR_NONE && e.text[0]);
		*bytes += e.code == ERR_LIMIT ? BYTES_READ : 0;
		return false;
	}
	*bytes += s->raw.n;
	return true;
}

static void check_json(struct json_slice row)
{
	struct json_scan scan = { .text = row.raw };
	struct json_slice v;
	struct err e = { 0 };

	check(json_next(&scan, &v, &e) == 0 && v.kind == JSON_OBJECT && json_at_end(&scan));
}

/* A page that is passed by what its header says may hide damage that reading it finds. */
static void check_again(void *state, size_t row, const char *before)
{
	struct json_slice s;
	size_t bytes = 0;

	if (before && read_row(state, row, &s, &bytes))
		check_json(s);
}

static void read_rows(void *state)
{
	size_t rows = table_parquet.rows(state), n = rows < ROWS_READ ? rows : ROWS_READ, bytes = 0;
	char **line = mem_array(n, sizeof *line);
	struct json_slice s;

	for (size_t i = 0; i < n && bytes < BYTES_READ; i++) {
		if (!read_row(state, i, &s, &bytes))
			continue;
		check_json(s);
		line[i] = mem_copy(s.raw.p, s.raw.n);
	}
	for (size_t i = n; i-- > 0;)
		check_again(state, i, line[i]);
	for (size_t i = 0; i < 8 && bytes < BYTES_READ; i++)
		if (rows && read_row(state, rows - 1 - rows / 8 * i, &s, &bytes))
			check_json(s);
	for (size_t i = 0; i < n; i++)
		free(line[i]);
	free(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const wanted[] = { "a", "l", "c1", NULL };
	struct table_bytes bytes = { { (const char *)data, size }, "fuzz.parquet" };
	struct table_opts o = { .columns = size % 4 == 0 ? wanted : NULL };
	struct err e = { 0 };
	void *state = table_parquet.open(&bytes, &o, &e);

	check(state || (e.code != ERR_NONE && e.text[0]));
	if (state)
		read_rows(state);
	table_parquet.close(state);
	return 0;
}

#define TAIL 8 /* the footer's length, and "PAR1" */

/* The footer or the pages before it are changed; the footer's length is made right. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	struct mutate_span pages = { 4 }, footer;
	uint32_t n = 0;

	if (size >= 4 + TAIL)
		memcpy(&n, data + size - TAIL, sizeof(n));
	if (size < 4 + TAIL || n > size - 4 - TAIL || mutate_random(&seed) % 3 == 0)
		return LLVMFuzzerMutate(data, size, max);
	footer = (struct mutate_span){ size - TAIL - n, n };
	pages.n = footer.at - pages.at;
	if (mutate_random(&seed) % 2 && pages.n)
		return mutate_span(data, size, max, pages);
	size = mutate_span(data, size, max, footer);
	n = (uint32_t)(size - TAIL - footer.at);
	memcpy(data + size - TAIL, &n, sizeof(n));
	return size;
}
