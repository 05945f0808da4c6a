/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workload.c - see workload.h.
 *
 * The file is written with pwrite and only ever read through its mappings, so a full disk is
 * an error and no signal. A mapping may reach behind what is written: nobody looks there.
 */
#include "plan/workload.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/mem.h"

#define PIECE_BYTES (256u << 20) /* of the file, mapped at once */

struct piece {
	char *p;
	size_t size;
};

struct spill {
	int fd;
	const char *folder;
	uint64_t begin;      /* of the last piece in the file */
	size_t used;         /* of the last piece */
	struct piece *piece;
	size_t n, cap;
};

struct sample *workload_add(struct workload *w)
{
	struct sample *s;

	if (w->n == w->cap) {
		w->cap = w->cap ? w->cap * 2 : 1024;
		w->v = mem_grow(w->v, w->cap, sizeof(*w->v));
	}
	s = &w->v[w->n++];
	*s = (struct sample){ .timestamp_s = NAN };
	return s;
}

/* ---- texts in a file ---- */

static int fail(const struct spill *s, const char *what, struct err *e)
{
	return err_set(e, ERR_IO, "the prompts need a file in %s (TMPDIR), which cannot be %s: %s",
		       s->folder, what, strerror(errno));
}

static int spill_open(struct workload *w, struct err *e)
{
	struct spill *s = mem_alloc(sizeof(*s));

	w->spill = s;
	s->fd = file_unnamed(&s->folder);
	return s->fd < 0 ? fail(s, "made", e) : 0;
}

static void spill_release(struct spill *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++)
		munmap(s->piece[i].p, s->piece[i].size);
	if (s->fd >= 0)
		close(s->fd);
	free(s->piece);
	free(s);
}

/* A further piece with room for n bytes. */
static int spill_grow(struct spill *s, size_t n, struct err *e)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct piece next = { .size = n <= PIECE_BYTES ? PIECE_BYTES :
							 (n + page - 1) & ~(page - 1) };

	if (s->n)
		s->begin += s->piece[s->n - 1].size;
	next.p = mmap(NULL, next.size, PROT_READ, MAP_SHARED, s->fd, (off_t)s->begin);
	if (next.p == MAP_FAILED)
		return fail(s, "mapped", e);
	if (s->n == s->cap) {
		s->cap = s->cap ? s->cap * 2 : 16;
		s->piece = mem_grow(s->piece, s->cap, sizeof(*s->piece));
	}
	s->piece[s->n++] = next;
	s->used = 0;
	return 0;
}

static int spill_add(struct spill *s, struct str *text, struct err *e)
{
	if ((!s->n || s->piece[s->n - 1].size - s->used < text->n) && spill_grow(s, text->n, e) < 0)
		return -1;
	for (size_t done = 0; done < text->n;) {
		ssize_t n = pwrite(s->fd, text->p + done, text->n - done,
				   (off_t)(s->begin + s->used + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return fail(s, "written", e);
		done += (size_t)n;
	}
	text->p = s->piece[s->n - 1].p + s->used;
	s->used += text->n;
	return 0;
}

int workload_keep(struct workload *w, struct str *text, struct err *e)
{
	size_t most = w->memory_max ? w->memory_max : WORKLOAD_MEMORY_BYTES_MAX;

	if (text->n == 0) {
		*text = STR("");
		return 0;
	}
	if (w->arena.bytes <= most && text->n <= most - w->arena.bytes) {
		*text = arena_str(&w->arena, *text);
		return 0;
	}
	if (!w->spill && spill_open(w, e) < 0)
		return -1;
	return spill_add(w->spill, text, e);
}

void workload_adopt(struct workload *w, struct str mapped)
{
	assert(!w->mapped.n);
	w->mapped = mapped;
}

void workload_forget(const struct workload *w)
{
	file_forget(w->mapped);
	if (!w->spill)
		return;
	for (size_t i = 0; i < w->spill->n; i++)
		madvise(w->spill->piece[i].p, w->spill->piece[i].size, MADV_DONTNEED);
}

void workload_release(struct workload *w)
{
	if (!w)
		return;
	free(w->v);
	spill_release(w->spill);
	file_unmap(w->mapped);
	arena_release(&w->arena);
	*w = (struct workload){ 0 };
}
