/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_snapshot.c - index/: a snapshot that says anything at all, with every checksum right.
 *
 * The first byte chooses one of the snapshots that are made at the start, or, from 128 on, that the
 * rest is the file. What follows are patches: a position (three bytes) and a byte. What loads
 * answers questions and takes further rows.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "snapshot_sums.h"

#define BASES 4
#define PATCH_BYTES 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[] = "/tmp/profllm-fuzz-XXXXXX", *path;
static struct buf base[BASES];

static void remove_dir(void)
{
	unlink(path);
	rmdir(dir);
	free(path);
}

static void add(struct index *x, size_t i, size_t variety)
{
	static const char *const names[] = { "model", "rate", "exact", "small", "flag", "mixed", "far" };
	struct value v[] = {
		{ .kind = VALUE_TEXT },
		{ .kind = VALUE_NUMBER, .number = i % 13 ? (double)(i % variety) : INFINITY },
		{ .kind = VALUE_NUMBER, .number = (double)i / 7 - 20 },
		{ .kind = VALUE_NUMBER, .number = (double)(i * 64) },
		{ .kind = VALUE_BOOL, .is_true = i % 3 == 0 },
		{ .kind = i % 2 ? VALUE_NULL : VALUE_NUMBER, .number = (double)i * 1e200 },
		{ .kind = VALUE_TEXT, .text = STR("the same") },
	};
	struct cell cell[sizeof(v) / sizeof(*v)];
	struct row row = { (int64_t)(i + 1 + i / 100), cell, 0 };
	char text[32];

	snprintf(text, sizeof(text), "text %zu", i % variety);
	v[0].text = str_of(text);
	for (size_t k = 0; k < sizeof(v) / sizeof(*v); k++)
		if ((i + k) % 5)
			cell[row.n++] = (struct cell){ str_of(names[k]), v[k] };
	index_add(x, &row, i % 11 ? 0 : INDEX_ARCHIVED, NULL);
}

static void save(struct index *x)
{
	struct index_view *v = index_view(x);

	CHECK(index_save(v, path, 1, NULL) == 0);
	index_view_release(v);
}

static void begin(void)
{
	static const struct { size_t rows, variety; uint32_t dictionary; } made[BASES] = {
		{ 40, 5, 20 }, { 200, 150, 20 }, { 200, 150, 65535 }, { 128, 128, 4 },
	};

	CHECK(mkdtemp(dir));
	path = file_join(dir, "index");
	atexit(remove_dir);
	for (size_t i = 0; i < BASES; i++) {
		struct index *x = index_make_with(6, made[i].dictionary);

		for (size_t k = 0; k < made[i].rows; k++)
			add(x, k, made[i].variety);
		save(x);
		CHECK(file_read(path, FILE_BYTES_MAX, &base[i], NULL) == 0);
		index_free(x);
	}
}

/* Every way in which the dashboard looks at an index. */
static void ask(const struct index_view *v)
{
	struct arena a = { 0 };
	size_t n;
	const struct column_info *c = index_columns(v, &n);
	struct str *name = arena_alloc(&a, (n + 1) * sizeof(*name));
	struct query q = { .limit = 100, .column = name, .facet = name, .statistic = name,
			   .facet_values_max = 10, .histogram_bins = 8,
			   .shown = INDEX_EXCLUDED | INDEX_ARCHIVED | INDEX_SUPERSEDED };
	struct answer answer;
	struct filter *all;
	struct err e = { 0 };

	for (size_t i = 0; i < n; i++)
		name[i] = c[i].name;
	q.n_columns = n;
	q.n_facets = n < QUERY_FACETS_MAX ? n : QUERY_FACETS_MAX;
	q.n_statistics = n < QUERY_STATISTICS_MAX ? n : QUERY_STATISTICS_MAX;
	CHECK(filter_read(NULL, NULL, &a, &all, NULL) == 0);
	q.filter = all;
	for (size_t i = 0; i < n && i < QUERY_SORTS_MAX; i++)
		q.sort[q.n_sorts++] = (struct query_sort){ name[i], i % 2 };
	if (index_query(v, &q, &a, &answer, &e) < 0)
		CHECK(e.text[0]);
	arena_release(&a);
}

static void check(const char *bytes, size_t n)
{
	struct index *x = NULL;
	struct index_view *v;
	struct err e = { 0 };
	int64_t sequence;
	FILE *f = fopen(path, "w"); /* nothing waits for the disk */

	CHECK(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
	if (index_load(path, &x, &sequence, &e) != 1) {
		CHECK(e.code != ERR_NONE && e.text[0]);
		return;
	}
	v = index_view(x);
	ask(v);
	index_view_release(v);
	for (size_t i = 0; i < 70; i++)
		add(x, 1000 + i, 50);
	v = index_view(x);
	ask(v);
	index_view_release(v);
	index_free(x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct buf *from;
	char *copy;

	if (!path)
		begin();
	if (!size)
		return 0;
	from = &base[*data % BASES];
	copy = *data < 128 ? mem_copy(from->data, from->len) :
			     mem_copy((const char *)data + 1, size - 1);
	size--;
	for (size_t i = 1; *data < 128 && i + PATCH_BYTES <= size + 1; i += PATCH_BYTES)
		copy[((size_t)data[i] << 16 | (size_t)data[i + 1] << 8 | data[i + 2]) % from->len] =
			(char)data[i + 3];
	if (*data < 128)
		size = from->len;
	snapshot_mend(copy, size);
	check(copy, size);
	free(copy);
	return 0;
}
