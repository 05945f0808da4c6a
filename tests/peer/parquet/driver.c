/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.c - prints the rows of Parquet files as JSON lines, read in ascending order, after
 * reading them again backwards and at random.
 *
 *	driver FILE [COLUMN...] >LINES
 *	driver time FILE [COLUMN...]   only what reading takes
 *	driver order FILE [COLUMN...]  the same for 2,000 rows at random
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/base/file.h"
#include "core/base/mem.h"
#include "input/table/table_internal.h"

struct all {
	void *state;
	size_t rows;
	char **line;
};

static int fail(const struct err *e)
{
	fprintf(stderr, "%s\n", e->text);
	return 1;
}

static int check(const struct all *a, size_t row, const char *how)
{
	struct json_slice s;
	struct err e = { 0 };

	if (table_parquet.row(a->state, row, &s, &e) < 0)
		return fail(&e);
	if (str_is(s.raw, a->line[row]))
		return 0;
	fprintf(stderr, "row %zu read %s: %.*s\ninstead of %s\n", row, how, (int)s.raw.n, s.raw.p,
		a->line[row]);
	return 1;
}

static int check_orders(const struct all *a)
{
	uint64_t random = 88172645463325252u;

	for (size_t i = a->rows; i-- > 0;)
		if (check(a, i, "backwards"))
			return 1;
	for (size_t i = 0; i < 2 * a->rows; i++) {
		random ^= random << 13, random ^= random >> 7, random ^= random << 17;
		if (check(a, random % a->rows, "at random"))
			return 1;
		if (random % 3 == 0 && random % a->rows + 1 < a->rows &&
		    check(a, random % a->rows + 1, "after the one before"))
			return 1;
	}
	return 0;
}

static int read_lines(struct all *a)
{
	struct json_slice s;
	struct err e = { 0 };

	for (size_t i = 0; i < a->rows; i++) {
		if (table_parquet.row(a->state, i, &s, &e) < 0)
			return fail(&e);
		a->line[i] = mem_copy(s.raw.p, s.raw.n);
	}
	return check_orders(a);
}

static int time_reading(const struct all *a, size_t file_bytes, bool is_ordered)
{
	size_t n = is_ordered ? a->rows : 2000;
	uint64_t random = 88172645463325252u;
	struct timespec from, to;
	struct json_slice s;
	struct err e = { 0 };
	double bytes = 0, seconds;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	for (size_t i = 0; i < n; i++) {
		random ^= random << 13, random ^= random >> 7, random ^= random << 17;
		if (table_parquet.row(a->state, is_ordered ? i : random % a->rows, &s, &e) < 0)
			return fail(&e);
		bytes += (double)s.raw.n;
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
	seconds = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
	printf("%zu rows, %.1f MB in the file, %.1f MB of JSON, %.3f s of CPU, %.0f MB/s of JSON, "
	       "%.0f rows/s\n", n, (double)file_bytes / 1e6, bytes / 1e6, seconds,
	       bytes / 1e6 / seconds, (double)n / seconds);
	return 0;
}

int main(int argc, char **argv)
{
	bool is_ordered = argc < 3 || strcmp(argv[1], "order") != 0;
	bool is_timed = argc > 2 && (!is_ordered || strcmp(argv[1], "time") == 0);
	char **arg = argv + 1 + is_timed;
	struct table_opts o = { .columns = NULL };
	struct table_bytes bytes = { .name = arg[0] };
	struct all a = { 0 };
	struct err e = { 0 };
	int rc;

	if (argc < 2)
		return 2;
	if (arg[1])
		o.columns = (const char *const *)(arg + 1);
	if (file_map(arg[0], &bytes.all, &e) < 0)
		return fail(&e);
	a.state = table_parquet.open(&bytes, &o, &e);
	if (!a.state)
		return fail(&e);
	a.rows = table_parquet.rows(a.state);
	a.line = mem_array(a.rows, sizeof *a.line);
	rc = is_timed ? time_reading(&a, bytes.all.n, is_ordered) : read_lines(&a);
	for (size_t i = 0; i < a.rows && !is_timed; i++) {
		if (rc == 0)
			puts(a.line[i]);
		free(a.line[i]);
	}
	free(a.line);
	table_parquet.close(a.state);
	file_unmap(bytes.all);
	return rc;
}
