/* SPDX-License-Identifier: Apache-2.0 */
/* traces.c - see profiling.h: the files that a profiler left. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/mem.h"
#include "experiment/profiling.h"
#include "proc/tool.h"

#define LOOK_NS 100000000
#define QUIET_NS 1000000000     /* so long unchanged: whole */
#define NONE_WAIT_NS 10000000000 /* for the first byte of the first trace */
#define STATS_TIMEOUT_S 600

/* Traces lie in the folder, or one below it. */
struct trace { char *path; uint64_t bytes; };
struct traces {
	struct trace *v;
	size_t n;
	uint64_t bytes;
};

static void traces_release(struct traces *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->v[i].path);
	free(t->v);
	*t = (struct traces){ 0 };
}

static int64_t changed_ns(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

static bool is_among(const char *path, char *const *list)
{
	for (; list && *list; list++)
		if (strcmp(path, *list) == 0)
			return true;
	return false;
}

static void traces_look(const char *dir, const struct trace_place *place, int depth,
			struct traces *out)
{
	struct dirent *entry;
	DIR *d = opendir(dir);

	while (d && out->n < TRACES_MAX && (entry = readdir(d))) {
		char *path;
		struct stat st;

		if (entry->d_name[0] == '.')
			continue;
		path = file_join(dir, entry->d_name);
		if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && depth > 0) {
			traces_look(path, place, depth - 1, out);
		} else if (lstat(path, &st) == 0 && S_ISREG(st.st_mode) &&
			   /* Files' times are those of the clock's last tick. */
			   changed_ns(&st) >= place->since_real_ns - LOOK_NS &&
			   !is_among(path, place->earlier)) {
			out->v = mem_grow(out->v, out->n + 1, sizeof(*out->v));
			out->v[out->n++] = (struct trace){ path, (uint64_t)st.st_size };
			out->bytes += (uint64_t)st.st_size;
			continue;
		}
		free(path);
	}
	if (d)
		closedir(d);
}

static void traces_find(const struct trace_place *place, struct traces *out)
{
	traces_release(out);
	traces_look(place->dir, place, 1, out);
}

char *const *profiling_earlier(const char *dir, struct arena *a)
{
	const struct trace_place all = { .dir = dir };
	struct traces t = { 0 };
	char **list;

	traces_find(&all, &t);
	list = arena_alloc(a, (t.n + 1) * sizeof(*list));
	for (size_t i = 0; i < t.n; i++)
		list[i] = arena_text(a, str_of(t.v[i].path));
	traces_release(&t);
	return list;
}

bool profiling_settle(const struct experiment *x, const struct trace_place *place,
		      const atomic_bool *cancel, struct buf *notes)
{
	int64_t begin = clock_mono_ns(), changed = begin, now = begin;
	int64_t most = (int64_t)(x->profiling.stop_timeout_s * 1e9);
	struct traces t = { 0 };
	uint64_t bytes = 0;
	bool is_quiet = false;
	size_t n = 0;

	/* Servers of ours were given the folder: where there is none, nobody writes. */
	if (!file_is_dir(place->dir))
		return false;
	while (!(cancel && atomic_load(cancel))) {
		traces_find(place, &t);
		now = clock_mono_ns();
		if (t.n != n || t.bytes != bytes)
			changed = now;
		n = t.n;
		bytes = t.bytes;
		is_quiet = bytes && now - changed >= QUIET_NS;
		if (is_quiet || now - begin > most || (!bytes && now - begin > NONE_WAIT_NS))
			break;
		nanosleep(&(struct timespec){ 0, LOOK_NS }, NULL);
	}
	if (bytes && !is_quiet)
		buf_printf(notes, "profiling: traces in %s still grew after %g s "
			   "(profiling.stop_timeout_s); they may be cut\n", place->dir,
			   x->profiling.stop_timeout_s);
	traces_release(&t);
	return is_quiet;
}

/* ---- after the servers ---- */

static void save_stats(const char *report, struct buf *notes)
{
	const char *const argv[] = { "nsys", "stats", "--format", "table", "--force-export=true",
				     report, NULL };
	struct buf table = { 0 }, errors = { 0 }, path = { 0 };
	struct err e = { 0 };
	int rc = tool_run(argv, (struct str){ 0 }, STATS_TIMEOUT_S, &table, &errors, &e);

	buf_printf(&path, "%s.stats.txt", report);
	if (rc > 0)
		err_set(&e, ERR_RUN, "exit status %d", rc);
	if (rc == 0)
		rc = file_write_atomic(path.data, buf_str(&table), &e);
	if (rc)
		buf_printf(notes, "profiling: no table of %s by nsys stats: %s\n", report, e.text);
	buf_release(&table);
	buf_release(&errors);
	buf_release(&path);
}

static int copy_file(const char *from, const char *to)
{
	int in = open(from, O_RDONLY | O_CLOEXEC), out = -1, rc = -1;
	struct stat st;

	if (in >= 0 && fstat(in, &st) == 0)
		out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (out >= 0) {
		off_t left = st.st_size;
		ssize_t n = 1;

		while (left > 0 && (n = sendfile(out, in, NULL, (size_t)left)) > 0)
			left -= n;
		rc = left == 0 && n >= 0 ? 0 : -1;
	}
	if (in >= 0)
		close(in);
	if (out >= 0 && close(out) < 0)
		rc = -1;
	return rc;
}

/* The name in the experiment's own folder, or path where it cannot be brought there. */
static const char *bring(const char *path, const struct trace_place *place, const char *folder,
			 struct arena *a, struct buf *notes)
{
	size_t n = strlen(place->dir);
	char *flat = arena_printf(a, "%s", strncmp(path, place->dir, n) == 0 ? path + n + 1 : path);
	const char *to;

	for (char *c = flat; *c; c++)
		if (*c == '/')
			*c = '-';
	to = arena_printf(a, "%s/%s", folder, flat);
	if (place->is_others && rename(path, to) == 0)
		return to;
	unlink(to);
	if (link(path, to) == 0 || copy_file(path, to) == 0) {
		if (place->is_others)
			unlink(path);
		return to;
	}
	buf_printf(notes, "profiling: cannot copy %s to %s: %s\n", path, folder, strerror(errno));
	return path;
}

static int by_size(const void *a, const void *b)
{
	const struct outcome_trace *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return strcmp(x->path, y->path);
}

/* Whether both are the same folder; what is not there is not. */
static bool is_same_folder(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

void profiling_collect(const struct experiment *x, const struct trace_place *place,
		       struct outcome *out, struct buf *notes)
{
	struct arena *a = &out->arena;
	const char *folder = profiling_own_folder(x, a);
	struct traces t = { 0 };
	bool is_beside;

	traces_find(place, &t);
	for (size_t i = 0; i < t.n; i++)
		if (str_ends(str_of(t.v[i].path), STR(".nsys-rep")))
			save_stats(t.v[i].path, notes);
	traces_find(place, &t);
	if (t.n == 0)
		buf_printf(notes, "profiling: the profiler left no file in %s\n", place->dir);
	is_beside = is_same_folder(place->dir, folder) || t.n == 0 || file_mkdirs(folder, NULL) < 0;
	out->trace = arena_alloc(a, (t.n + 1) * sizeof(*out->trace));
	out->n_traces = t.n;
	for (size_t i = 0; i < t.n; i++) {
		const char *path = is_beside ? arena_printf(a, "%s", t.v[i].path) :
					       bring(t.v[i].path, place, folder, a, notes);

		out->trace[i] = (struct outcome_trace){ path, t.v[i].bytes };
	}
	if (t.n)
		qsort(out->trace, t.n, sizeof(*out->trace), by_size);
	traces_release(&t);
}
