/* SPDX-License-Identifier: Apache-2.0 */
/* ingest_find.c - see ingest_find.h. */
#include "cmd/ingest_find.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "store/read.h"

#define COUNT(table) (sizeof(table) / sizeof(*(table)))

void found_release(struct found_files *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->path[i]);
	free(f->path);
	*f = (struct found_files){ 0 };
}

/* path is handed over. */
static void add(struct found_files *f, char *path)
{
	if (f->n == f->cap) {
		f->cap = f->cap ? 2 * f->cap : 64;
		f->path = mem_grow(f->path, f->cap, sizeof(*f->path));
	}
	f->path[f->n++] = path;
}

void found_add(struct found_files *f, const char *path)
{
	add(f, mem_text(path));
}

/* The name without what a packer put behind it. */
static struct str plain(const char *name)
{
	static const char *const packed[] = { ".gz", ".zst" };
	struct str s = str_of(name);

	for (size_t i = 0; i < COUNT(packed); i++)
		if (str_ends(s, str_of(packed[i])))
			return (struct str){ s.p, s.n - strlen(packed[i]) };
	return s;
}

static bool is_beside(const char *folder, struct str name)
{
	char *copy = mem_copy(name.p, name.n), *path = file_join(folder, copy);
	bool is_there = file_exists(path);

	free(copy);
	free(path);
	return is_there;
}

/* "a.pytorch.json" or "a.avg_x.pytorch.json" beside "a.json". */
static bool is_side_file(const char *folder, struct str name)
{
	struct str tail = STR(".pytorch.json"), stem = name;
	char result[256];

	if (!str_ends(name, tail))
		return false;
	for (stem.n -= tail.n; stem.n; stem.n--) {
		if (stem.n < name.n - tail.n && stem.p[stem.n] != '.')
			continue;
		if (stem.n + 6 > sizeof(result))
			continue;
		snprintf(result, sizeof(result), "%.*s.json", (int)stem.n, stem.p);
		if (is_beside(folder, str_of(result)))
			return true;
	}
	return false;
}

bool found_is_result(const char *folder, const char *name)
{
	static const char *const ending[] = { ".json", ".jsonl", ".ndjson" };
	static const char *const other[] = {
		"servers.json", "warmup.json", "capacity.json", "failure.json", "_sla_summary.json",
		".trace.json",
	};
	struct str s = plain(name);
	bool is_json = false;

	for (size_t i = 0; i < COUNT(ending); i++)
		is_json |= str_ends(s, str_of(ending[i]));
	for (size_t i = 0; i < COUNT(other); i++)
		is_json &= !str_ends(s, str_of(other[i]));
	if (!is_json || *name == '.' || str_starts(s, STR("SLA-")))
		return false;
	if (str_starts(s, STR("run=")) && is_beside(folder, STR("summary.json")))
		return false;
	return !is_side_file(folder, s);
}

/* "X.d" beside a document "X.json" that is not too large to be taken instead. */
static bool is_companion(const char *folder, const char *name)
{
	struct str s = str_of(name);
	struct stat st;
	char document[300], *path;
	bool is_there;

	if (!str_ends(s, STR(".d")) || s.n > 255)
		return false;
	snprintf(document, sizeof(document), "%.*s.json", (int)(s.n - 2), name);
	path = file_join(folder, document);
	is_there = stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= INGEST_BYTES_MAX;
	free(path);
	return is_there;
}

struct walk {
	struct found_files *out;
	int (*folder)(void *self, const char *path, struct err *e);
	void *self;
};

static int walk(const struct walk *w, const char *path, unsigned depth, struct err *e);

/* One name of a folder. Links to folders are not followed: they may lead back. */
static int look_at(const struct walk *w, const char *folder, const char *name, unsigned depth,
		   struct err *e)
{
	char *path = file_join(folder, name);
	struct stat st, link;
	int rc = 0;

	if (*name != '.' && stat(path, &st) == 0 && lstat(path, &link) == 0) {
		if (S_ISDIR(st.st_mode) && !S_ISLNK(link.st_mode) && !is_companion(folder, name)) {
			rc = walk(w, path, depth + 1, e);
		} else if (S_ISREG(st.st_mode) && found_is_result(folder, name)) {
			add(w->out, path);
			return 0;
		}
	}
	free(path);
	return rc;
}

static int walk(const struct walk *w, const char *path, unsigned depth, struct err *e)
{
	struct dirent **entry;
	int n, rc = 0;

	if (depth > INGEST_FOLDERS_DEPTH_MAX)
		return err_set(e, ERR_LIMIT, "%s: folders are nested deeper than %d "
			       "(INGEST_FOLDERS_DEPTH_MAX)", path, INGEST_FOLDERS_DEPTH_MAX);
	if (w->folder && w->folder(w->self, path, e) < 0)
		return -1;
	n = scandir(path, &entry, NULL, alphasort);
	if (n < 0)
		return err_set(e, ERR_IO, "%s cannot be read: %s", path, strerror(errno));
	for (int i = 0; i < n; i++) {
		if (rc == 0)
			rc = look_at(w, path, entry[i]->d_name, depth, e);
		free(entry[i]);
	}
	free(entry);
	return rc;
}

int found_in(const char *path, struct found_files *out,
	     int (*folder)(void *self, const char *path, struct err *e), void *self, struct err *e)
{
	const struct walk w = { out, folder, self };

	return walk(&w, path, 0, e);
}
