/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answers.h - what a unit test's subject answers, compared whole with what it answered before.
 *
 * A test asserts what matters and why; this notices everything else that changes. Each answer is
 * compared with the next one of tests/unit/answers/TEST.txt, numbers within 1e-9. UPDATE_GOLDEN=1
 * writes the file: read the diff. Of a long answer the first and the last part are kept, of many
 * answers the first ones.
 */
#pragma once
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/str.h"

#ifndef ANSWER_HEAD_BYTES
#define ANSWER_HEAD_BYTES 4000
#endif
#define ANSWER_TAIL_BYTES 800
#ifndef ANSWERS_MAX
#define ANSWERS_MAX       60 /* of a test; what comes after that is not compared */
#endif
#define ANSWER_END "\n%%\n"

/* Where two texts differ; SIZE_MAX: nowhere. Numbers may differ in their last digits. */
static inline size_t answers_differ_at(const char *got, const char *want)
{
	const char *begin = got;

	while (*got || *want) {
		bool is_number = isdigit((unsigned char)*got) && isdigit((unsigned char)*want) &&
				 (got == begin || !isalnum((unsigned char)got[-1]));
		char *got_end, *want_end;
		double a, b;

		if (!is_number && *got != *want)
			return (size_t)(got - begin);
		if (!is_number) {
			got++, want++;
			continue;
		}
		a = strtod(got, &got_end);
		b = strtod(want, &want_end);
		if (!(fabs(a - b) <= 1e-9 * fmax(1, fabs(b))) &&
		    (got_end - got != want_end - want || /* "4e160681ef" is infinite */
		     memcmp(got, want, (size_t)(got_end - got)) != 0))
			return (size_t)(got - begin);
		got = got_end;
		want = want_end;
	}
	return SIZE_MAX;
}

/* The stored answers of a test, each ended by ANSWER_END; the place of the next one. */
static inline char **answers_stored(const char *path)
{
	static char *all, *next;

	if (!all) {
		FILE *f = fopen(path, "r");
		size_t n = 0, room = 0;

		if (!f)
			fail_msg("%s: cannot be read; UPDATE_GOLDEN=1 writes it", path);
		if (getdelim(&all, &room, 0, f) < 0)
			fail_msg("%s: is empty", path);
		n = strlen(all);
		assert_true(n > 0);
		fclose(f);
		next = all;
	}
	return &next;
}

/* Replaces every occurrence of what. */
static inline void answers_mask(struct buf *b, const char *what, const char *with)
{
	struct buf out = { 0 };
	const char *from = b->data, *at;

	for (; *what && (at = strstr(from, what)); from = at + strlen(what)) {
		buf_add(&out, from, (size_t)(at - from));
		buf_add_text(&out, with);
	}
	buf_add_text(&out, from);
	buf_release(b);
	*b = out;
}

/* A copy: of a long answer both ends, without the names of the scratch folder and the program. */
static inline char *answers_kept(const char *p, size_t n)
{
	static const char scratch[] = "/tmp/profllm-unit-";
	struct buf kept = { 0 };
	char self[4096] = "";
	char *at;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		fail_msg("/proc/self/exe cannot be read");
	/* Where a test has cut a text, the rest is not its answer. */
	buf_add(&kept, p ? p : "", p ? strnlen(p, n) : 0);
	buf_add_text(&kept, "");
	for (at = kept.data; (at = strstr(at, scratch)); at++)
		if (strlen(at) >= sizeof(scratch) + 5)
			memcpy(at + sizeof(scratch) - 1, "XXXXXX", 6);
	answers_mask(&kept, self, "SELF");
	if (kept.len > ANSWER_HEAD_BYTES + ANSWER_TAIL_BYTES) {
		struct buf ends = { 0 };

		buf_printf(&ends, "%.*s\n...\n%s", ANSWER_HEAD_BYTES, kept.data,
			   kept.data + kept.len - ANSWER_TAIL_BYTES);
		buf_release(&kept);
		kept = ends;
	}
	return kept.data;
}

/* The next answer of this test. */
static inline void answers_check(const char *p, size_t n)
{
	static FILE *written;
	static int number;
	char path[128], *got, **next, *end;
	size_t at;

	if (++number > ANSWERS_MAX)
		return;
	snprintf(path, sizeof(path), "tests/unit/answers/%s.txt", program_invocation_short_name);
	got = answers_kept(p, n);
	if (getenv("UPDATE_GOLDEN")) {
		written = written ? written : fopen(path, "w");
		assert_non_null(written);
		fprintf(written, "%s%s", got, ANSWER_END);
		fflush(written);
		free(got);
		return;
	}
	next = answers_stored(path);
	end = strstr(*next, ANSWER_END);
	if (!end)
		fail_msg("%s: has fewer answers than are given; UPDATE_GOLDEN=1 writes it", path);
	*end = '\0';
	at = answers_differ_at(got, *next);
	if (at != SIZE_MAX)
		fail_msg("%s: answer %d is another from byte %zu on (UPDATE_GOLDEN=1 writes it):\n"
			 "%.200s\nexpected:\n%.200s", path, number, at,
			 got + (at < 60 ? 0 : at - 60), *next + (at < 60 ? 0 : at - 60));
	*next = end + strlen(ANSWER_END);
	free(got);
}

/* The same of a buffer, which is released. */
static inline void answers_release(struct buf *b)
{
	answers_check(b->data, b->len);
	buf_release(b);
}
