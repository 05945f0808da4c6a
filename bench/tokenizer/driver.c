/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.c - our tokenizer for bench.mjs: executes the command in each line of stdin and answers
 * with a line on stdout. Times are this process's own processor time in ns, so neither the pipe nor
 * other jobs of the machine are in them.
 *
 *   driver TOKENIZER                 commands:
 *     texts FILE                     reads documents, each followed by a NUL
 *                                    -> documents bytes
 *     fresh                          loads the tokenizer again: nothing is warm -> ok
 *     encode                         -> ids, hash of all ids, time of each of 6 passes
 *     decode                         document by document -> bytes, time of each pass
 *     word KIND BYTES                a, random, spaces or cjk -> the quickest of three
 *   driver --load TOKENIZER cached|uncached      -> time of one load
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/base/file.h"
#include "core/base/mem.h"
#include "input/token/tokenizer.h"

#define TEXTS_BYTES_MAX (256u << 20)
#define WORD_BYTES_MAX (16u << 20)
#define PASSES 6

struct texts {
	struct buf all;
	struct str *text;
	size_t *ids_end; /* of each document in ids */
	size_t count;
	struct ids ids;
};

static int64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

_Noreturn static void die(const char *why)
{
	fprintf(stderr, "driver: %s\n", why);
	exit(1);
}

static struct tokenizer *load(const char *path, bool is_uncached)
{
	struct tokenizer_load_opts opts = { .is_uncached = is_uncached };
	struct err e;
	struct tokenizer *t = tokenizer_load(path, &opts, &e);

	if (!t)
		die(e.text);
	return t;
}

static void texts_read(struct texts *d, const char *path)
{
	struct str rest;
	struct err e;

	buf_reset(&d->all);
	if (file_read(path, TEXTS_BYTES_MAX, &d->all, &e))
		die(e.text);
	free(d->text);
	free(d->ids_end);
	d->count = 0;
	for (size_t i = 0; i < d->all.len; i++)
		d->count += d->all.data[i] == '\0';
	d->text = mem_array(d->count, sizeof *d->text);
	d->ids_end = mem_array(d->count, sizeof *d->ids_end);
	rest = buf_str(&d->all);
	for (size_t i = 0; i < d->count; i++)
		d->text[i] = str_cut(&rest, '\0');
	printf("%zu %zu\n", d->count, d->all.len - d->count);
}

static void encode(const struct tokenizer *t, struct texts *d)
{
	int64_t spent[PASSES];
	uint32_t hash = 0x811c9dc5;

	for (int pass = 0; pass < PASSES; pass++) {
		int64_t start = cpu_ns();

		ids_reset(&d->ids);
		for (size_t i = 0; i < d->count; i++) {
			if (tokenizer_encode(t, d->text[i], false, &d->ids))
				die("a text cannot be encoded");
			d->ids_end[i] = d->ids.count;
		}
		spent[pass] = cpu_ns() - start;
	}
	for (size_t i = 0; i < d->ids.count; i++)
		hash = (hash ^ d->ids.id[i]) * 0x01000193;
	printf("%zu %u", d->ids.count, hash);
	for (int pass = 0; pass < PASSES; pass++)
		printf(" %ld", (long)spent[pass]);
	printf("\n");
}

static void decode(const struct tokenizer *t, const struct texts *d)
{
	int64_t spent[PASSES];
	struct buf out = { 0 };
	size_t bytes = 0;

	for (int pass = 0; pass < PASSES; pass++) {
		int64_t start = cpu_ns();

		bytes = 0;
		for (size_t i = 0; i < d->count; i++) {
			size_t from = i ? d->ids_end[i - 1] : 0, n = d->ids_end[i] - from;

			buf_reset(&out);
			if (tokenizer_decode(t, d->ids.id + from, n, false, &out))
				die("ids cannot be decoded");
			bytes += out.len;
		}
		spent[pass] = cpu_ns() - start;
	}
	printf("%zu", bytes);
	for (int pass = 0; pass < PASSES; pass++)
		printf(" %ld", (long)spent[pass]);
	printf("\n");
	buf_release(&out);
}

/* One word without a seam, as far as a pre-tokenizer can see. */
static void make_word(struct buf *out, const char *kind, size_t bytes)
{
	uint32_t state = 1;

	while (out->len < bytes) {
		state = state * 1664525 + 1013904223;
		if (kind[0] == 'a')
			buf_add_char(out, 'a');
		else if (kind[0] == 's')
			buf_add_char(out, ' ');
		else if (kind[0] == 'r')
			buf_add_char(out, (char)('a' + (state >> 16) % 26));
		else
			buf_printf(out, "%c%c%c", 0xe5 + (int)(state >> 16) % 4,
				0x80 + (int)(state >> 20) % 64, 0x80 + (int)(state >> 26) % 64);
	}
}

static void time_word(const struct tokenizer *t, const char *kind, size_t bytes)
{
	int64_t best = INT64_MAX;
	struct buf word = { 0 };
	struct ids ids = { 0 };

	make_word(&word, kind, bytes);
	for (int pass = 0; pass < 4; pass++) {
		int64_t start = cpu_ns(), spent;

		ids_reset(&ids);
		if (tokenizer_encode(t, buf_str(&word), false, &ids))
			die("a long word cannot be encoded");
		spent = cpu_ns() - start;
		best = pass && spent < best ? spent : best;
	}
	printf("%zu %ld\n", ids.count, (long)best);
	ids_release(&ids);
	buf_release(&word);
}

static void serve(const char *path)
{
	struct tokenizer *t = load(path, false);
	struct texts d = { 0 };
	char line[4096], what[16], argument[2048];
	size_t n = 0;

	while (fgets(line, sizeof line, stdin)) {
		if (sscanf(line, "%15s %2047s %zu", what, argument, &n) < 1)
			die("an empty command");
		if (strcmp(what, "texts") == 0) {
			texts_read(&d, argument);
		} else if (strcmp(what, "fresh") == 0) {
			tokenizer_free(t);
			t = load(path, false);
			printf("ok\n");
		} else if (strcmp(what, "encode") == 0) {
			encode(t, &d);
		} else if (strcmp(what, "decode") == 0) {
			decode(t, &d);
		} else if (strcmp(what, "word") == 0 && n <= WORD_BYTES_MAX) {
			time_word(t, argument, n);
		} else {
			die("a command that is not known");
		}
		fflush(stdout);
	}
	tokenizer_free(t);
	free(d.text);
	free(d.ids_end);
	ids_release(&d.ids);
	buf_release(&d.all);
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "--load") == 0) {
		int64_t start = cpu_ns();

		tokenizer_free(load(argv[2], strcmp(argv[3], "uncached") == 0));
		printf("%ld\n", (long)(cpu_ns() - start));
		return 0;
	}
	if (argc != 2)
		die("usage: driver [--load] TOKENIZER [cached|uncached]");
	serve(argv[1]);
	return 0;
}
