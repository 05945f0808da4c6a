/* SPDX-License-Identifier: Apache-2.0 */
/* pass.c - see pass.h. */
#include "table/pass.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"

#define LOOK_BYTES (1u << 20) /* between two looks at memory, progress and the wish to stop */
#define ROWS_FIRST 1024

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

void table_forget(struct str all, size_t *from, size_t to)
{
	size_t page = page_bytes(), end = to / page * page;

	assert(to <= all.n && *from % page == 0);
	if (end < *from || end - *from < TABLE_WINDOW_BYTES)
		return;
	/* What is lost when this fails is memory, not correctness. */
	(void)madvise((void *)(uintptr_t)(all.p + *from), end - *from, MADV_DONTNEED);
	*from = end;
}

/* The kernel reads far ahead of the pass, and a little around a row later. */
static void advise(const struct table_pass *p, int how)
{
	(void)madvise((void *)(uintptr_t)p->bytes->all.p, p->bytes->all.n, how);
}

void table_pass_begin(struct table_pass *p, const struct table_bytes *bytes,
	const struct table_opts *o)
{
	*p = (struct table_pass){ .bytes = bytes, .o = o, .due = LOOK_BYTES };
	advise(p, MADV_SEQUENTIAL);
}

void table_pass_release(struct table_pass *p)
{
	free(p->place);
	p->place = NULL;
}

int table_text_at(const struct table_bytes *bytes, size_t *at, struct err *e)
{
	struct str all = bytes->all;

	*at = str_starts(all, STR("\xef\xbb\xbf")) ? 3 : 0;
	if (str_starts(all, STR("\xff\xfe")) || str_starts(all, STR("\xfe\xff")))
		return err_set(e, ERR_PARSE, "%s: written in UTF-16; expected UTF-8", bytes->name);
	return 0;
}

int table_pass_row(struct table_pass *p, size_t at, struct err *e)
{
	if (p->rows == p->cap) {
		if (p->rows >= TABLE_ROWS_MAX)
			return err_set(e, ERR_LIMIT, "%s: more than %llu rows (TABLE_ROWS_MAX)",
				p->bytes->name, TABLE_ROWS_MAX);
		p->cap = p->cap ? 2 * p->cap : ROWS_FIRST;
		p->place = mem_grow(p->place, p->cap, sizeof(*p->place));
	}
	p->place[p->rows++] = at;
	return 0;
}

int table_pass_look(struct table_pass *p, size_t at, struct err *e)
{
	table_forget(p->bytes->all, &p->kept, at);
	p->due = at + LOOK_BYTES;
	if (p->o->progress)
		p->o->progress(p->o->self, at, p->bytes->all.n);
	if (p->o->cancel && atomic_load(p->o->cancel))
		return err_set(e, ERR_CANCELLED, "%s: stopped", p->bytes->name);
	return 0;
}

int table_pass_end(struct table_pass *p, struct err *e)
{
	int rc = table_pass_look(p, p->bytes->all.n, e);

	advise(p, MADV_NORMAL);
	p->touched = p->bytes->all.n - p->kept;
	if (p->rows && p->rows < p->cap)
		p->place = mem_grow(p->place, p->rows, sizeof(*p->place));
	p->cap = p->rows;
	return rc;
}

/*
 * A page that is touched brings its neighbours along: the kernel maps what it has cached, up to
 * a whole huge page at each end.
 */
#define AROUND_BYTES (2u << 20)

void table_touch(struct table_pass *p, size_t at, size_t n)
{
	bool is_near = at >= p->last && at - p->last < AROUND_BYTES;
	size_t from = 0;

	p->touched += is_near ? at - p->last + n : n + 2 * (size_t)AROUND_BYTES;
	p->last = at;
	if (p->touched < TABLE_WINDOW_BYTES)
		return;
	table_forget(p->bytes->all, &from, p->bytes->all.n);
	p->touched = 0;
	p->last = p->bytes->all.n; /* whatever comes is far from it */
}

size_t table_line_at(const struct table_bytes *bytes, size_t at)
{
	const char *p = bytes->all.p, *end = p + at;
	size_t line = 1, kept = 0;

	assert(at <= bytes->all.n);
	while (p < end && (p = memchr(p, '\n', (size_t)(end - p))) != NULL) {
		line++;
		p++;
		table_forget(bytes->all, &kept, (size_t)(p - bytes->all.p));
	}
	return line;
}

int table_check_size(const struct table_pass *p, size_t at, size_t n, struct err *e)
{
	if (n <= TABLE_ROW_BYTES_MAX)
		return 0;
	return err_set(e, ERR_LIMIT, "%s: the row at byte %zu is longer than %llu bytes "
		"(TABLE_ROW_BYTES_MAX)", p->bytes->name, at, TABLE_ROW_BYTES_MAX);
}
