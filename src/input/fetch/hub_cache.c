/* SPDX-License-Identifier: Apache-2.0 */
/* hub_cache.c - the cache on disk; see hub.h for its layout. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "input/fetch/hub_parts.h"

#define LOCK_MODE 0664             /* a group that shares a cache can wait for each other */
#define LOCK_PAUSE_NS 50000000
#define LOCK_PAUSES_BEFORE_NOTE 20

bool hub_is_safe_path(const char *path)
{
	struct str rest = str_of(path);

	if (!*path || rest.p[rest.n - 1] == '/')
		return false;
	for (const char *p = path; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f || *p == '\\')
			return false;
	while (rest.n) {
		struct str name = str_cut(&rest, '/');

		if (name.n == 0 || name.n > HUB_NAME_BYTES_MAX || str_is(name, ".") ||
			str_is(name, ".."))
			return false;
	}
	return true;
}

/* ---- refs and snapshots ---- */

static bool is_name(struct str name)
{
	return name.n && !memchr(name.p, '/', name.n) && strlen(name.p) == name.n &&
		hub_is_safe_path(name.p);
}

bool hub_cached_commit(const struct hub *h, struct buf *commit)
{
	struct buf path = { 0 }, text = { 0 };

	buf_reset(commit);
	buf_printf(&path, "%s/refs/%s", h->dir.data, h->revision);
	if (!hub_is_commit(h->revision) && file_exists(path.data) &&
		file_read(path.data, 4096, &text, NULL) == 0)
		buf_add_str(commit, str_trim(buf_str(&text)));
	/* A snapshot's name need not be 40 digits. */
	buf_reset(&path);
	buf_printf(&path, "%s/snapshots/%s", h->dir.data, h->revision);
	if (commit->len == 0 && (hub_is_commit(h->revision) || file_is_dir(path.data)))
		buf_add_text(commit, h->revision);
	if (!is_name(buf_str(commit)))
		buf_reset(commit);
	buf_release(&path);
	buf_release(&text);
	return commit->len > 0;
}

bool hub_cached_file(const struct hub *h, const char *commit, const char *file, struct buf *path)
{
	buf_reset(path);
	buf_printf(path, "%s/snapshots/%s/%s", h->dir.data, commit, file);
	return file_exists(path->data);
}

bool hub_is_absent(const struct hub *h, const char *commit, const char *file)
{
	struct buf path = { 0 };
	bool is_absent;

	buf_printf(&path, "%s/.no_exist/%s/%s", h->dir.data, commit, file);
	is_absent = file_exists(path.data);
	buf_release(&path);
	return is_absent;
}

int hub_list_add(struct hub_list *list, struct str name, struct err *e)
{
	if (list->count >= HUB_FILES_MAX)
		return err_set(e, ERR_LIMIT, "the repository has more than %u files",
			HUB_FILES_MAX);
	if ((list->count & (list->count - 1)) == 0)
		list->file = mem_grow(list->file, list->count ? 2 * list->count : 1,
			sizeof(*list->file));
	list->file[list->count++] = arena_text(&list->arena, name);
	return 0;
}

/* Adds what is below root/prefix; prefix is empty or ends with a slash, and is as it was after. */
static int add_files(struct hub_list *list, const char *root, struct buf *prefix, int depth,
	struct err *e)
{
	size_t len = prefix->len;
	struct buf path = { 0 };
	struct dirent *entry;
	int rc = 0;
	DIR *dir;

	buf_printf(&path, "%s/%s", root, prefix->data);
	dir = opendir(path.data);
	while (rc == 0 && dir && (entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		buf_add_text(prefix, entry->d_name);
		buf_reset(&path);
		buf_printf(&path, "%s/%s", root, prefix->data);
		if (!file_is_dir(path.data)) {
			/* A link whose blob was deleted is no file. */
			if (file_exists(path.data))
				rc = hub_list_add(list, buf_str(prefix), e);
		} else if (depth < HUB_DEPTH_MAX) {
			buf_add_char(prefix, '/');
			rc = add_files(list, root, prefix, depth + 1, e);
		}
		prefix->data[prefix->len = len] = 0;
	}
	if (dir)
		closedir(dir);
	buf_release(&path);
	return rc;
}

int hub_cached_list(const struct hub *h, const char *commit, struct hub_list *list, struct err *e)
{
	struct buf root = { 0 }, prefix = { 0 };
	int rc;

	*list = (struct hub_list){ .is_cached = true };
	list->commit = arena_text(&list->arena, str_of(commit));
	buf_printf(&root, "%s/snapshots/%s", h->dir.data, commit);
	buf_add_text(&prefix, "");
	rc = add_files(list, root.data, &prefix, 0, e);
	buf_release(&root);
	buf_release(&prefix);
	return rc;
}

/* ---- what is written ---- */

static int make_dir_of(const char *path, struct err *e)
{
	char *copy = mem_text(path);
	int rc;

	*strrchr(copy, '/') = 0;
	rc = file_is_dir(copy) ? 0 : file_mkdirs(copy, e);
	free(copy);
	return rc;
}

void hub_put_ref(const struct hub *h, const char *commit)
{
	struct buf known = { 0 }, path = { 0 };
	struct err ignored;

	if (!(hub_cached_commit(h, &known) && strcmp(known.data, commit) == 0)) {
		buf_printf(&path, "%s/refs/%s", h->dir.data, h->revision);
		if (make_dir_of(path.data, &ignored) == 0)
			file_write_atomic(path.data, str_of(commit), &ignored);
	}
	buf_release(&known);
	buf_release(&path);
}

void hub_put_absent(const struct hub *h, const char *commit, const char *file)
{
	struct buf path = { 0 };
	struct err ignored;
	int fd;

	buf_printf(&path, "%s/.no_exist/%s/%s", h->dir.data, commit, file);
	if (make_dir_of(path.data, &ignored) == 0 &&
		(fd = open(path.data, O_WRONLY | O_CREAT | O_CLOEXEC, 0666)) >= 0)
		close(fd);
	buf_release(&path);
}

void hub_blob_path(const struct hub *h, const char *etag, const char *suffix, struct buf *path)
{
	buf_reset(path);
	buf_printf(path, "%s/blobs/%s%s", h->dir.data, etag, suffix);
}

/* 0: held; 1: somebody else holds it; -1. */
static int try_lock(int fd)
{
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	return errno == EWOULDBLOCK || errno == EINTR ? 1 : -1;
}

int hub_lock(const struct hub *h, const char *etag, struct err *e)
{
	struct buf path = { 0 }, note = { 0 };
	int fd = -1, rc = -1;

	buf_printf(&path, "%s/.locks%s/%s.lock", h->cache.data, h->dir.data + h->cache.len, etag);
	if (make_dir_of(path.data, e))
		goto done;
	fd = open(path.data, O_RDWR | O_CREAT | O_CLOEXEC, LOCK_MODE);
	for (int pauses = 0; fd >= 0 && (rc = try_lock(fd)) == 1; pauses++) {
		struct timespec pause = { 0, LOCK_PAUSE_NS };

		if (h->o->cancel && atomic_load(h->o->cancel)) {
			err_set(e, ERR_CANCELLED, "interrupted while waiting for %s", path.data);
			goto done;
		}
		if (pauses == LOCK_PAUSES_BEFORE_NOTE && h->o->note) {
			buf_printf(&note, "waiting for another process that downloads the same "
				"file (%s)", path.data);
			h->o->note(h->o->self, note.data);
		}
		nanosleep(&pause, NULL);
	}
	if (rc)
		err_set(e, ERR_IO, "cannot lock %s: %s", path.data, strerror(errno));
done:
	if (rc && fd >= 0)
		close(fd);
	buf_release(&path);
	buf_release(&note);
	return rc ? -1 : fd;
}

int hub_link(const struct hub *h, const char *commit, const char *file, const char *etag,
	struct buf *path, struct err *e)
{
	struct buf target = { 0 }, temp = { 0 };
	int rc = 0;

	if (hub_cached_file(h, commit, file, path))
		return 0;
	buf_add_text(&target, "../../");
	for (const char *p = file; *p; p++)
		if (*p == '/')
			buf_add_text(&target, "../");
	buf_printf(&target, "blobs/%s", etag);
	/* Under another name first: a dangling link is replaced, and never by nothing. */
	buf_printf(&temp, "%s.%ld", path->data, (long)getpid());
	if (make_dir_of(path->data, e))
		rc = -1;
	else if ((unlink(temp.data) && errno != ENOENT) || symlink(target.data, temp.data) ||
		rename(temp.data, path->data))
		rc = err_set(e, ERR_IO, "cannot link %s to %s: %s", path->data, target.data,
			strerror(errno));
	buf_release(&target);
	buf_release(&temp);
	return rc;
}
