/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_index_snapshot.c - an index saved and loaded is the same and goes on growing; a file that is
 * damaged anywhere, cut, foreign or from another time is refused in a sentence.
 *
 * threads: yes
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "../fuzz/snapshot_sums.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "index_rig.h"
#include "results/index/index_internal.h"
#include "scratch.h"

#define ROWS 333
#define MUTATED 1000

static char path[64];

static struct index *make(struct arena *a, struct row *row, size_t n, size_t dictionary)
{
	struct index *x = index_make_with(6, (uint32_t)dictionary);
	struct draw d = { 9 };
	struct err e = { 0 };

	for (size_t i = 0; i < ROWS * 2; i++)
		row[i] = rig_row(&d, a, i, i < 100 ? (int64_t)i + 1 : (int64_t)i * 2);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(index_add(x, &row[i], i % 9 == 0 ? INDEX_ARCHIVED : 0, &e), 0);
	return x;
}

/* Every cell of the first n rows, and nothing else. */
static void check_rows(struct index *x, const struct row *want, size_t n)
{
	struct index_view *v = index_view(x);
	struct arena a = { 0 };

	assert_int_equal(v->n_rows, n);
	for (size_t i = 0; i < n; i++) {
		struct row got;
		unsigned flags;

		assert_true(index_row(v, want[i].id, &a, &got, &flags));
		assert_int_equal(flags, i % 9 == 0 ? INDEX_ARCHIVED : 0);
		assert_int_equal(got.n, want[i].n);
		for (size_t k = 0; k < got.n; k++) {
			size_t c = 0;

			while (c < want[i].n && !str_eq(want[i].cell[c].column, got.cell[k].column))
				c++;
			assert_true(c < want[i].n);
			assert_true(value_same(want[i].cell[c].value, got.cell[k].value));
		}
	}
	index_view_release(v);
	arena_release(&a);
}

static void check_columns(struct index *x, struct index *y)
{
	struct index_view *v = index_view(x), *w = index_view(y);
	size_t n, m;
	const struct column_info *a = index_columns(v, &n), *b = index_columns(w, &m);

	assert_int_equal(n, m);
	for (size_t i = 0; i < n; i++) {
		assert_true(str_eq(a[i].name, b[i].name));
		assert_int_equal(a[i].distinct, b[i].distinct);
		assert_int_equal(a[i].present, b[i].present);
		assert_int_equal(a[i].has_null, b[i].has_null);
		assert_int_equal(a[i].has_bool, b[i].has_bool);
		assert_int_equal(a[i].has_number, b[i].has_number);
		assert_int_equal(a[i].has_text, b[i].has_text);
		assert_true(a[i].min == b[i].min || (isnan(a[i].min) && isnan(b[i].min)));
		assert_true(a[i].max == b[i].max || (isnan(a[i].max) && isnan(b[i].max)));
	}
	index_view_release(v);
	index_view_release(w);
}

static int save(struct index *x, const char *to, int64_t sequence, struct err *e)
{
	struct index_view *v = index_view(x);
	int rc = index_save(v, to, sequence, e);

	index_view_release(v);
	return rc;
}

/* Saved, loaded, grown on both sides, saved again: always the same. */
static void test_round_trip(void **state)
{
	static const struct { size_t rows, dictionary; } cases[] = {
		{ 0, 40 }, { 1, 40 }, { 64, 40 }, { 128, 65535 }, { 200, 40 }, { ROWS, 40 },
		{ ROWS, 3 }, { 256, 10 }, { 192 + 16, 40 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct arena a = { 0 };
		struct row row[ROWS * 2];
		struct index *x = make(&a, row, cases[i].rows, cases[i].dictionary), *y = NULL, *z;
		struct err e = { 0 };
		int64_t sequence = 0;
		size_t n = cases[i].rows;

		assert_int_equal(save(x, path, 1234567 + (int64_t)i, &e), 0);
		if (index_load(path, &y, &sequence, &e) != 1)
			fail_msg("case %zu: %s", i, e.text);
		assert_int_equal(sequence, 1234567 + i);
		assert_true(index_version(y) > index_version(x));
		check_rows(y, row, n);
		check_columns(x, y);
		for (; n < cases[i].rows + 150; n++) {
			index_add(x, &row[n], n % 9 == 0 ? INDEX_ARCHIVED : 0, &e);
			index_add(y, &row[n], n % 9 == 0 ? INDEX_ARCHIVED : 0, &e);
		}
		check_rows(y, row, n);
		check_columns(x, y);
		assert_int_equal(save(y, path, 1, &e), 0);
		assert_int_equal(index_load(path, &z, &sequence, &e), 1);
		check_rows(z, row, n);
		check_columns(x, z);
		index_free(x);
		index_free(y);
		index_free(z);
		arena_release(&a);
	}
}

/* Nothing of a removed row is in the file: neither its values nor the column that it alone had. */
static void test_removed(void **state)
{
	static const char secret[] = "somebody's secret model";
	struct arena a = { 0 };
	struct row row[ROWS * 2];
	struct index *x = make(&a, row, 150, 40), *y;
	struct cell cell[] = {
		{ STR("suite"), { .kind = VALUE_TEXT, .text = STR("same for all 0") } },
		{ STR("tags.of-a-secret"), number_value(1) },
		{ STR("run_id"), { .kind = VALUE_TEXT, .text = str_of(secret) } },
	};
	struct row hidden = { 1000000, cell, 3 };
	struct buf file = { 0 };
	struct err e = { 0 };
	int64_t sequence;

	(void)state;
	assert_int_equal(index_add(x, &hidden, 0, &e), 0);
	assert_true(index_flag(x, hidden.id, INDEX_REMOVED));
	assert_int_equal(save(x, path, 7, &e), 0);
	assert_int_equal(file_read(path, FILE_BYTES_MAX, &file, &e), 0);
	assert_null(memmem(file.data, file.len, secret, strlen(secret)));
	assert_null(memmem(file.data, file.len, "of-a-secret", 11));
	assert_int_equal(index_load(path, &y, &sequence, &e), 1);
	assert_true(index_version(y) > index_version(x));
	check_rows(y, row, 150);
	index_free(x);
	index_free(y);
	buf_release(&file);
	arena_release(&a);
}

/* Without waiting for the disk, because there are many. */
static void write_sample(struct str bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_int_equal(file_write_all(fd, bytes), 0);
	close(fd);
}

static void check_refused(struct str bytes, const char *what, size_t at)
{
	struct index *x = NULL;
	struct err e = { 0 };
	int64_t sequence;

	write_sample(bytes);
	if (index_load(path, &x, &sequence, &e) != 0)
		fail_msg("%s at %zu is taken", what, at);
	if (e.code == ERR_NONE || !strstr(e.text, path))
		fail_msg("%s at %zu: \"%s\"", what, at, e.text);
}

static size_t mapped_pages(void)
{
	size_t pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%zu", &pages), 1);
	fclose(f);
	return pages;
}

/* What was read of a file that is refused is given back. */
static void test_given_back(void **state)
{
	enum { BYTES = 4 << 20, TIMES = 16 };
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct index *x = NULL;
	struct err e = { 0 };
	int64_t sequence;
	size_t before;

	(void)state;
	assert_int_equal(ftruncate(fd, BYTES), 0);
	close(fd);
	before = mapped_pages();
	for (int i = 0; i < TIMES; i++)
		assert_int_equal(index_load(path, &x, &sequence, &e), 0);
	assert_true(mapped_pages() < before + TIMES / 2 * (BYTES / (size_t)sysconf(_SC_PAGESIZE)));
}

static void read_sample(struct buf *file)
{
	struct arena a = { 0 };
	struct row row[ROWS * 2];
	struct index *x = make(&a, row, 140, 40);
	struct err e = { 0 };

	assert_int_equal(save(x, path, 5, &e), 0);
	assert_int_equal(file_read(path, FILE_BYTES_MAX, file, &e), 0);
	index_free(x);
	arena_release(&a);
}

/* Bytes that fill up to the next piece belong to nothing and are the only ones that may change. */
static bool is_padding(const struct buf *file, size_t at)
{
	struct snapshot_head head;

	memcpy(&head, file->data, sizeof(head));
	return at >= sizeof(head) + head.table_bytes && file->data[at] == 0;
}

static void test_damaged(void **state)
{
	struct buf file = { 0 };
	struct draw d = { 3 };
	size_t step;

	(void)state;
	read_sample(&file);
	step = 1 + file.len / 400;
	for (size_t at = 0; at < file.len; at += 1 + draw_below(&d, step)) {
		char bit = (char)(1 << draw_below(&d, 8));

		if (is_padding(&file, at))
			continue;
		file.data[at] ^= bit;
		check_refused(buf_str(&file), "a turned bit", at);
		file.data[at] ^= bit;
	}
	for (size_t n = 0; n < file.len; n += 1 + draw_below(&d, step * 4))
		check_refused((struct str){ file.data, n }, "an end", n);
	buf_add_char(&file, 0);
	check_refused(buf_str(&file), "a byte too many", file.len);
	buf_release(&file);
}

/* Sums that are right do not make a file that is: numbers of the table are turned into others. */
static void test_crafted(void **state)
{
	static const uint64_t number[] = { 0, 1, 2, 5, 63, 64, 255, 65536, UINT32_MAX, 1ull << 40,
					   UINT64_MAX, UINT64_MAX / 2 };
	struct snapshot_head head;
	struct buf file = { 0 };
	size_t taken = 0;

	(void)state;
	read_sample(&file);
	memcpy(&head, file.data, sizeof(head));
	for (size_t at = 0; at + 8 <= head.table_bytes; at += 8) {
		char *place = file.data + sizeof(head) + at;
		uint64_t was, is = number[at / 8 % 12];
		struct index *x;
		struct err e = { 0 };
		int64_t sequence;

		memcpy(&was, place, 8);
		memcpy(place, &is, 8);
		head.table_sum = snapshot_sum((struct str){ file.data + sizeof(head),
							    head.table_bytes });
		head.head_sum = snapshot_sum((struct str){
			(const char *)&head, offsetof(struct snapshot_head, head_sum) });
		memcpy(file.data, &head, sizeof(head));
		write_sample(buf_str(&file));
		if (index_load(path, &x, &sequence, &e)) {
			struct index_view *v = index_view(x);
			struct arena a = { 0 };
			struct row row;

			for (size_t i = 0; i < v->n_rows; i++)
				index_row(v, view_id(v, i), &a, &row, NULL);
			taken++;
			index_view_release(v);
			index_free(x);
			arena_release(&a);
		}
		memcpy(place, &was, 8);
	}
	assert_true(taken < head.table_bytes / 8 / 2);
	buf_release(&file);
}

/* What the index says of each of its rows and of all of them, whatever that is. */
static void look_through(struct index *x)
{
	struct index_view *v = index_view(x);
	struct arena a = { 0 };
	struct row row;
	size_t n;
	const struct column_info *c = index_columns(v, &n);

	for (size_t i = 0; i < v->n_rows; i++)
		index_row(v, view_id(v, i), &a, &row, NULL);
	for (size_t i = 0; i < n; i++) {
		struct str name = c[i].name;
		struct filter *all;
		struct query q = { .limit = 50, .facet = &name, .n_facets = 1, .statistic = &name,
				   .n_statistics = 1, .facet_values_max = 9, .histogram_bins = 9,
				   .sort = { { name, false } }, .n_sorts = 1 };
		struct answer answer;

		assert_int_equal(filter_read(NULL, NULL, &a, &all, NULL), 0);
		q.filter = all;
		assert_int_equal(index_query(v, &q, &a, &answer, NULL), 0);
	}
	index_view_release(v);
	arena_release(&a);
}

/* Bytes anywhere are changed and all sums are right: what it says is refused, or it works. */
static void test_mutated(void **state)
{
	struct buf file = { 0 };
	struct draw d = { 11 };
	size_t taken = 0, judged = 0, by_sum = 0;

	(void)state;
	read_sample(&file);
	for (int n = 0; n < MUTATED; n++) {
		char *copy = memcpy(malloc(file.len), file.data, file.len);
		struct index *x = NULL;
		struct err e = { 0 };
		int64_t sequence;

		for (size_t k = 1 + draw_below(&d, 4); k > 0; k--)
			copy[draw_below(&d, n % 2 ? file.len : 4096)] = (char)draw_below(&d, 256);
		snapshot_mend(copy, file.len);
		write_sample((struct str){ copy, file.len });
		if (index_load(path, &x, &sequence, &e)) {
			look_through(x);
			index_free(x);
			taken++;
		} else if (strstr(e.text, "damaged")) {
			by_sum++;
		} else {
			assert_non_null(strstr(e.text, path));
			judged++;
		}
		free(copy);
	}
	printf("# %d snapshots: %zu taken, %zu judged, %zu damaged\n", MUTATED, taken, judged, by_sum);
	assert_true(taken > MUTATED / 20 && judged > MUTATED / 20 && by_sum < MUTATED / 4);
	buf_release(&file);
}

static void test_foreign(void **state)
{
	static const char *const text[] = { "", "{}", "SQLite format 3",
		"profllmX and then something else, long enough to be a head, but it is none, surely" };
	struct snapshot_head head = { .magic = SNAPSHOT_MAGIC, .form = SNAPSHOT_FORM + 1,
				      .order = SNAPSHOT_ORDER };
	struct index *x;
	struct err e = { 0 };
	int64_t sequence;

	(void)state;
	for (size_t i = 0; i < 4; i++)
		check_refused(str_of(text[i]), "foreign text", i);
	check_refused((struct str){ (const char *)&head, sizeof(head) }, "a later form", 0);
	unlink(path);
	assert_int_equal(index_load(path, &x, &sequence, &e), 0);
	assert_non_null(strstr(e.text, path));
	x = index_make();
	assert_int_equal(save(x, "/nowhere/at/all", 1, &e), -1);
	assert_non_null(strstr(e.text, "/nowhere/at/all"));
	index_free(x);
}

static int begin(void **state)
{
	int rc = make_dir(state);

	snprintf(path, sizeof(path), "%s/index", dir);
	return rc;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_removed),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_given_back),
		cmocka_unit_test(test_crafted),
		cmocka_unit_test(test_mutated),
		cmocka_unit_test(test_foreign),
	};

	return cmocka_run_group_tests(tests, begin, remove_dir);
}
