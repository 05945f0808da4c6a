/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workload.c - see workload.h.
 *
 * The file is written with pwrite and only read through its mappings, so a full disk is an error
 * and not a signal. A mapping may extend past the written part, which is never read.
 */
#include "client/plan/workload.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"

#define PIECE_BYTES (256u << 20) /* of the file, mapped at once */

struct piece {
	char *p;
	size_t size;
};

struct spill {
	int fd;
	const char *folder;
	uint64_t begin;      /* offset of the last piece in the file */
	size_t used;         /* of the last piece */
	struct piece *piece;
	size_t n, cap;
};

struct sample *workload_add(struct workload *w)
{
	struct sample *s;

	w->v = mem_room(w->v, w->n, &w->cap, sizeof(*w->v));
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
	s->piece = mem_room(s->piece, s->n, &s->cap, sizeof(*s->piece));
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

/* ---- sessions, turn by turn ---- */

void session_begin(struct session_build *b, struct str id)
{
	b->session = mem_room(b->session, b->n_sessions, &b->cap_sessions, sizeof(*b->session));
	b->session[b->n_sessions++] = (struct session){ .id = id, .first = (uint32_t)b->n_turns };
}

struct turn *session_add_turn(struct session_build *b, uint32_t history)
{
	struct turn *t;

	assert(b->n_sessions && (history == TURN_NONE || history < b->n_turns));
	assert(history == TURN_NONE || b->turn[history].number < UINT16_MAX);
	b->turn = mem_room(b->turn, b->n_turns, &b->cap_turns, sizeof(*b->turn));
	t = &b->turn[b->n_turns++];
	*t = (struct turn){
		.session = (uint32_t)(b->n_sessions - 1), .history = history,
		.wait = (uint32_t)b->n_waits,
	};
	if (history != TURN_NONE)
		t->number = b->turn[history].number + 1;
	b->session[b->n_sessions - 1].n++;
	return t;
}

void session_wait_for(struct session_build *b, uint32_t turn)
{
	struct turn *t = &b->turn[b->n_turns - 1];

	assert(turn < b->n_turns - 1 && b->turn[turn].session == t->session);
	for (uint32_t k = 0; k < t->n_waits; k++)
		if (b->waits[t->wait + k] == turn)
			return;
	b->waits = mem_room(b->waits, b->n_waits, &b->cap_waits, sizeof(*b->waits));
	b->waits[b->n_waits++] = turn;
	t->n_waits++;
}

static void *keep(struct workload *w, const void *items, size_t n, size_t size)
{
	void *kept = arena_alloc(&w->arena, n * size + 1);

	if (n)
		memcpy(kept, items, n * size);
	return kept;
}

void session_finish(struct session_build *b, struct workload *w)
{
	struct sessions *s = arena_alloc(&w->arena, sizeof(*s));

	assert(b->n_turns == w->n && !w->sessions);
	*s = (struct sessions){
		.turn = keep(w, b->turn, b->n_turns, sizeof(*b->turn)),
		.waits = keep(w, b->waits, b->n_waits, sizeof(*b->waits)),
		.session = keep(w, b->session, b->n_sessions, sizeof(*b->session)),
		.n_turns = b->n_turns, .n_waits = b->n_waits, .n_sessions = b->n_sessions,
	};
	w->sessions = s;
	session_build_release(b);
}

void session_build_release(struct session_build *b)
{
	free(b->turn);
	free(b->waits);
	free(b->session);
	*b = (struct session_build){ 0 };
}
