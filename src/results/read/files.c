/* SPDX-License-Identifier: Apache-2.0 */
/* files.c - see files.h. */
#include "results/read/files.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/file.h"
#include "core/base/mem.h"

#define COUNT(table) (sizeof(table) / sizeof(*(table)))
#define NAME_BYTES_MAX 255 /* of a file in Linux */

static const char *const endings[] = { ".json", ".jsonl", ".ndjson" };

/* ---- lists ---- */

void result_files_release(struct result_files *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->path[i]);
	free(f->path);
	*f = (struct result_files){ 0 };
}

/* Takes path. */
static void add_path(struct result_files *f, char *path)
{
	f->path = mem_room(f->path, f->n, &f->cap, sizeof(*f->path));
	f->path[f->n++] = path;
}

void result_files_add(struct result_files *f, const char *path)
{
	add_path(f, mem_text(path));
}

/* ---- names ---- */

const char *result_file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The name without the ending of a packed file. */
static struct str unpacked_name(const char *name)
{
	static const char *const packed[] = { ".gz", ".zst" };
	struct str s = str_of(name);

	for (size_t i = 0; i < COUNT(packed); i++)
		if (str_ends(s, str_of(packed[i])))
			return (struct str){ s.p, s.n - strlen(packed[i]) };
	return s;
}

struct str result_file_stem(const char *name)
{
	struct str s = unpacked_name(name);

	for (size_t i = 0; i < COUNT(endings); i++)
		if (str_ends(s, str_of(endings[i])))
			return (struct str){ s.p, s.n - strlen(endings[i]) };
	return s;
}

static bool is_in_folder(const char *folder, const char *name)
{
	char *path = file_join(folder, name);
	bool is_there = file_exists(path);

	free(path);
	return is_there;
}

/* "a.pytorch.json" or "a.avg_x.pytorch.json" next to "a.json". */
static bool is_side_file(const char *folder, struct str name)
{
	struct str tail = STR(".pytorch.json"), stem = name;
	char result[NAME_BYTES_MAX + 1];

	if (!str_ends(name, tail))
		return false;
	for (stem.n -= tail.n; stem.n; stem.n--) {
		if (stem.n < name.n - tail.n && stem.p[stem.n] != '.')
			continue;
		if (stem.n + strlen(".json") > NAME_BYTES_MAX)
			continue;
		snprintf(result, sizeof(result), "%.*s.json", (int)stem.n, stem.p);
		if (is_in_folder(folder, result))
			return true;
	}
	return false;
}

/* A log of MLPerf's LoadGen; the summary only if the detailed log is missing. */
static bool is_mlperf_log(const char *folder, struct str name)
{
	return str_is(name, RESULT_MLPERF_DETAIL) ||
	       (str_is(name, RESULT_MLPERF_SUMMARY) && !is_in_folder(folder, RESULT_MLPERF_DETAIL));
}

/* Whether vLLM's performance suite left its results here, which the table only repeats. */
static bool has_commands(const char *folder)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	bool is_there = false;

	while (dir && !is_there && (entry = readdir(dir)) != NULL)
		is_there = str_ends(str_of(entry->d_name), STR(".commands"));
	if (dir)
		closedir(dir);
	return is_there;
}

bool result_file_is(const char *folder, const char *name)
{
	static const char *const other[] = { RESULT_SERVERS, "warmup.json", RESULT_CAPACITY };
	static const char *const other_ending[] = {
		"failure.json", "_sla_summary.json", ".trace.json",
	};
	struct str s = unpacked_name(name);

	if (is_mlperf_log(folder, s))
		return true;
	if (str_is(s, RESULT_NIGHTLY_TABLE) && has_commands(folder))
		return false;
	if (*name == '.' || result_file_stem(name).n == s.n || str_starts(s, STR("SLA-")))
		return false;
	for (size_t i = 0; i < COUNT(other); i++)
		if (str_is(s, other[i]))
			return false;
	for (size_t i = 0; i < COUNT(other_ending); i++)
		if (str_ends(s, str_of(other_ending[i])))
			return false;
	if (str_starts(s, STR("run=")) && is_in_folder(folder, RESULT_SUMMARY))
		return false;
	return !is_side_file(folder, s);
}

/* "X.d" next to a document "X.json" that is small enough to be read instead. */
static bool is_companion(const char *folder, const char *name)
{
	struct str s = str_of(name);
	struct stat st;
	char document[NAME_BYTES_MAX + sizeof(".json")], *path;
	bool is_there;

	if (!str_ends(s, STR(".d")) || s.n > NAME_BYTES_MAX)
		return false;
	snprintf(document, sizeof(document), "%.*s.json", (int)(s.n - strlen(".d")), name);
	path = file_join(folder, document);
	is_there = stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= INGEST_BYTES_MAX;
	free(path);
	return is_there;
}

/* ---- the walk ---- */

struct result_walk {
	struct result_files *out;
	enum result_choice choice;
	int (*entered)(void *self, const char *folder, struct err *e);
	void *self;
};

static int walk(const struct result_walk *w, const char *path, unsigned depth, struct err *e);

static bool is_wanted(enum result_choice choice, const char *folder, const char *name)
{
	if (choice == RESULT_FILES_SUMMARIES)
		return strcmp(name, RESULT_SUMMARY) == 0;
	return result_file_is(folder, name) ||
	       (choice == RESULT_FILES_OWN_JSON && str_ends(str_of(name), STR(".json")));
}

static int visit(const struct result_walk *w, const char *folder, const char *name,
		 unsigned depth, struct err *e)
{
	char *path = file_join(folder, name);
	struct stat st, link;
	int rc = 0;

	if (*name != '.' && (lstat(path, &link) < 0 || stat(path, &st) < 0)) {
		/* It was removed meanwhile, or is a broken link. */
		if (errno != ENOENT && errno != ELOOP)
			rc = err_set(e, ERR_IO, "%s cannot be read: %s", path, strerror(errno));
	} else if (*name != '.') {
		if (S_ISDIR(st.st_mode) && !S_ISLNK(link.st_mode) &&
		    w->choice < RESULT_FILES_OWN && !is_companion(folder, name)) {
			rc = walk(w, path, depth + 1, e);
		} else if (S_ISREG(st.st_mode) && is_wanted(w->choice, folder, name)) {
			add_path(w->out, path);
			return 0;
		}
	}
	free(path);
	return rc;
}

static int walk(const struct result_walk *w, const char *path, unsigned depth, struct err *e)
{
	struct dirent **entry;
	int n, rc = 0;

	if (depth > RESULT_FOLDERS_DEPTH_MAX)
		return err_set(e, ERR_LIMIT, "%s: folders are nested deeper than %d "
			       "(RESULT_FOLDERS_DEPTH_MAX)", path, RESULT_FOLDERS_DEPTH_MAX);
	if (w->entered && w->entered(w->self, path, e) < 0)
		return -1;
	n = scandir(path, &entry, NULL, NULL);
	if (n < 0)
		return err_set(e, ERR_IO, "%s cannot be read: %s", path, strerror(errno));
	for (int i = 0; i < n; i++) {
		if (rc == 0)
			rc = visit(w, path, entry[i]->d_name, depth, e);
		free(entry[i]);
	}
	free(entry);
	return rc;
}

static int by_path(const void *x, const void *y)
{
	return strcmp(*(char *const *)x, *(char *const *)y);
}

int result_files_find(const char *folder, enum result_choice choice, struct result_files *out,
		      int (*entered)(void *self, const char *folder, struct err *e), void *self,
		      struct err *e)
{
	const struct result_walk w = { out, choice, entered, self };
	size_t before = out->n;
	int rc = walk(&w, folder, 0, e);

	assert(choice <= RESULT_FILES_OWN_JSON && out->n >= before);
	if (out->n > before)
		qsort(out->path + before, out->n - before, sizeof(*out->path), by_path);
	return rc;
}

int result_files_of(const char *folder, struct result_files *out, bool *is_sweep, struct err *e)
{
	assert(out->n == 0);
	*is_sweep = false;
	if (result_files_find(folder, RESULT_FILES_SUMMARIES, out, NULL, NULL, e) < 0)
		return -1;
	*is_sweep = out->n > 0;
	return *is_sweep ? 0 : result_files_find(folder, RESULT_FILES_OWN, out, NULL, NULL, e);
}
