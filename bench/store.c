/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.c - what keeping runs costs: 10,000 runs of 200 cells go into an empty store, as one call
 * of 100 each, as one call each, and as files of a job; then the store is opened with the snapshot
 * of its index and without.
 *
 * Every call is on disk when it returns. SQLite always; PostgreSQL when PROFLLM_TEST_POSTGRES
 * names a server (tests/with_postgres.sh makes one that does not wait for the disk: its figures
 * say what the program costs, not the disk).
 */
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/codec.h"
#include "core/base/mem.h"
#include "kit/figures.h"
#include "results/store/store.h"

#define RUNS 10000
#define RUNS_QUICK 400
#define CELLS 200
#define AT_ONCE 100

struct bed {
	struct bench *b;
	struct arena names; /* of columns and texts */
	struct str column[CELLS];
	char folder[64];
	size_t runs;
};

static double since_s(int64_t start)
{
	return (double)(clock_mono_ns() - start) / 1e9;
}

/* A third texts of few values, a third whole numbers of few, the rest measured. */
static struct value value_of(struct arena *a, size_t run, size_t cell)
{
	uint64_t mixed = (run * 2654435761u + cell * 40503u) % 104729;
	struct value v = { .kind = VALUE_NUMBER };

	switch (cell % 3) {
	case 0:
		v.kind = VALUE_TEXT;
		v.text = str_of(arena_printf(a, "value number %u", (unsigned)(mixed % (cell + 2))));
		break;
	case 1: v.number = (double)(mixed % (cell + 2)); break;
	default: v.number = (double)mixed / 7.0; break;
	}
	return v;
}

static struct read_run make_run(struct bed *bed, struct arena *a, size_t number)
{
	struct read_run r = { .kind = STR("serve"), .timestamp_s = 1.7e9 + (double)number };
	struct cell *cell = arena_alloc(a, CELLS * sizeof(*cell));
	char *hex = arena_alloc(a, DIGEST_HEX);
	struct buf text = { 0 };

	for (size_t i = 0; i < CELLS; i++)
		cell[i] = (struct cell){ bed->column[i], value_of(a, number, i) };
	r.run_id = str_of(arena_printf(a, "run-%zu", number));
	buf_printf(&text, "{\"run\": %zu", number);
	for (size_t i = 2; i < CELLS; i += 3)
		buf_printf(&text, ", \"%s\": %.6f", bed->column[i].p, cell[i].value.number);
	buf_add_char(&text, '}');
	r.document = arena_str(a, buf_str(&text));
	buf_release(&text);
	r.hash = str_of(digest_hex(DIGEST_SHA256, r.document, hex));
	r.row = (struct row){ .cell = cell, .n = CELLS };
	return r;
}

static int put(struct bed *bed, struct store *s, size_t first, size_t n, size_t at_once,
	       double *took_s, struct err *e)
{
	*took_s = 0;
	for (size_t i = first; i < first + n; i += at_once) {
		struct arena a = { 0 };
		struct read_run *run = arena_alloc(&a, at_once * sizeof(*run));
		struct put_result *out = arena_alloc(&a, at_once * sizeof(*out));
		int64_t start;
		int rc;

		for (size_t k = 0; k < at_once; k++)
			run[k] = make_run(bed, &a, i + k);
		start = clock_mono_ns();
		rc = store_put(s, run, at_once, STR("bench"), &a, out, e);
		*took_s += since_s(start);
		arena_release(&a);
		if (rc < 0)
			return -1;
	}
	return 0;
}

static int open_s(const struct store_opts *o, const char *name, struct bed *bed, struct err *e)
{
	int64_t start = clock_mono_ns();
	struct store *s;

	if (store_open(o, &s, e) < 0)
		return -1;
	bench_add(bed->b, "s", since_s(start), "%s, opening %zu runs %s", store_kind(s), bed->runs, name);
	store_close(s);
	return 0;
}

static int measure(struct bed *bed, const char *url, bool is_file, struct err *e)
{
	struct buf snapshot = { 0 };
	struct store_opts o = { .url = url }, bare = { .url = url, .snapshot = "" };
	struct store *s = NULL;
	struct figure *f;
	struct stat file;
	double took_s;
	int rc = -1;

	buf_printf(&snapshot, "%s/index", bed->folder);
	o.snapshot = snapshot.data;
	unlink(o.snapshot);
	if (store_open(&o, &s, e) < 0 || put(bed, s, 0, bed->runs, AT_ONCE, &took_s, e) < 0)
		goto done;
	f = bench_add(bed->b, "runs/s", (double)bed->runs / took_s, "%s, %d runs a call",
		      store_kind(s), AT_ONCE);
	if (is_file)
		figure_least(f, 1000);
	if (put(bed, s, bed->runs, bed->runs / 10, 1, &took_s, e) < 0)
		goto done;
	bench_add(bed->b, "runs/s", (double)bed->runs / 10 / took_s, "%s, a run a call", store_kind(s));
	store_close(s);
	s = NULL;
	if (is_file && stat(url, &file) == 0)
		bench_add(bed->b, "bytes", (double)file.st_size / ((double)bed->runs * 1.1),
			  "sqlite, a run of %d cells on disk", CELLS);
	rc = open_s(&bare, "without a snapshot", bed, e);
	if (!rc)
		rc = open_s(&o, "with its snapshot", bed, e);
done:
	store_close(s);
	buf_release(&snapshot);
	return rc;
}

/* A PostgreSQL store is emptied by restoring an empty one. */
static int clear(struct bed *bed, const char *url, struct err *e)
{
	struct buf empty = { 0 }, backup = { 0 };
	struct store_opts o = { 0 };
	struct store *s;
	int rc;

	buf_printf(&empty, "%s/empty.db", bed->folder);
	buf_printf(&backup, "%s/empty.backup", bed->folder);
	o.url = empty.data;
	rc = store_open(&o, &s, e);
	if (!rc) {
		rc = store_backup(s, backup.data, e);
		store_close(s);
	}
	if (!rc)
		rc = store_restore(url, backup.data, true, NULL, e);
	buf_release(&empty);
	buf_release(&backup);
	return rc;
}

static int repeat(struct bed *bed, unsigned number, struct err *e)
{
	const char *server = getenv("PROFLLM_TEST_POSTGRES"), *at = server ? strchr(server, '@') : NULL;
	struct buf url = { 0 };
	int rc;

	buf_printf(&url, "%s/store%u.db", bed->folder, number);
	rc = measure(bed, url.data, true, e);
	if (!rc && server) {
		buf_reset(&url);
		buf_printf(&url, "%.*s%s%s", at ? (int)(at - server) : (int)strlen(server), server,
			   at ? "store_c" : "", at ? at + 1 : "");
		rc = clear(bed, url.data, e);
		if (!rc)
			rc = measure(bed, url.data, false, e);
	}
	buf_release(&url);
	return rc;
}

int main(int argc, char **argv)
{
	struct err e = { 0 };
	struct bench b;
	struct bed bed = { .b = &b };
	struct buf command = { 0 };

	if (bench_begin(&b, "store", argc, argv, &e) < 0)
		return bench_end(&b, &e);
	bed.runs = b.is_quick ? RUNS_QUICK : RUNS;
	for (size_t i = 0; i < CELLS; i++)
		bed.column[i] = str_of(arena_printf(&bed.names, "benchmark.column_%zu", i));
	snprintf(bed.folder, sizeof(bed.folder), "/tmp/profllm-bench-XXXXXX");
	if (!mkdtemp(bed.folder))
		err_set(&e, ERR_IO, "%s cannot be made", bed.folder);
	for (unsigned i = 0; i < b.repeats && !e.code; i++)
		repeat(&bed, i, &e);
	buf_printf(&command, "rm -rf %s", bed.folder);
	if (system(command.data) < 0)
		err_set(&e, ERR_IO, "%s stays behind", bed.folder);
	buf_release(&command);
	arena_release(&bed.names);
	return bench_end(&b, &e);
}
