/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest_watch.c - see ingest.h: folders by inotify.
 *
 * A folder is watched before its files are looked at, so that none falls between. A file counts
 * when whoever wrote it has closed it or has renamed it to its name. A file that cannot be read yet
 * and was changed a moment ago is still being written: it comes again when it is closed.
 */
#include "cmd/verbs/ingest.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/console/cli.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "results/read/files.h"

#define WAIT_MS 500
#define YOUNG_S 5       /* a file changed so long ago may still be in the making */
#define EVENT_BYTES 65536

struct watch {
	struct ingest *g;
	int fd;
	char **folder;      /* by watch descriptor; NULL: gone */
	size_t cap;
	struct result_files late; /* not to be read, perhaps because they are being written */
	struct map taken;        /* files of folders by path, to their number in state */
	uint64_t *state;         /* that they were taken in */
	size_t n_states, cap_states;
	struct arena names;      /* of taken */
};

/* A file that was found and then is told by an event is taken once. */
static uint64_t state_of(const char *path)
{
	struct stat st = { 0 };

	if (stat(path, &st) < 0)
		return 0;
	return map_hash((struct str){ (const char *)&st.st_mtim, sizeof(st.st_mtim) }) ^
	       (uint64_t)st.st_size ^ (uint64_t)st.st_ino << 32;
}

static bool is_taken(const struct watch *w, const char *path)
{
	uint64_t at;

	return map_get(&w->taken, str_of(path), &at) && w->state[at] == state_of(path);
}

static int take(struct watch *w, const char *path, struct err *e)
{
	uint64_t at;

	if (!map_get(&w->taken, str_of(path), &at)) {
		at = w->n_states++;
		if (at == w->cap_states) {
			w->cap_states = w->cap_states ? 2 * w->cap_states : 64;
			w->state = mem_grow(w->state, w->cap_states, sizeof(*w->state));
		}
		map_put(&w->taken, arena_str(&w->names, str_of(path)), at);
	}
	w->state[at] = state_of(path);
	return ingest_file(w->g, path, true, e);
}

static void late_drop(struct watch *w, size_t i)
{
	free(w->late.path[i]);
	w->late.path[i] = w->late.path[--w->late.n];
}

static void late_forget(struct watch *w, const char *path)
{
	for (size_t i = w->late.n; i-- > 0;)
		if (strcmp(w->late.path[i], path) == 0)
			late_drop(w, i);
}

static int add_folder(void *self, const char *path, struct err *e)
{
	struct watch *w = self;
	const uint32_t events = IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_ONLYDIR;
	int wd = inotify_add_watch(w->fd, path, events);

	if (wd < 0 && errno == ENOENT)
		return 0; /* gone meanwhile */
	if (wd < 0)
		return err_set(e, ERR_IO, "%s cannot be watched: %s", path, errno == ENOSPC ?
			       "too many folders; see fs.inotify.max_user_watches" : strerror(errno));
	if ((size_t)wd >= w->cap) {
		size_t cap = 2 * (size_t)wd + 16;

		w->folder = mem_grow(w->folder, cap, sizeof(*w->folder));
		memset(w->folder + w->cap, 0, (cap - w->cap) * sizeof(*w->folder));
		w->cap = cap;
	}
	free(w->folder[wd]);
	w->folder[wd] = mem_text(path);
	return 0;
}

static bool is_young(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && clock_real_ns() / 1000000000 - st.st_mtime < YOUNG_S;
}

/* Whether it is whole: nobody asks the store about half a file. */
static bool is_whole(const char *path)
{
	struct buf bytes = { 0 };
	struct arena a = { 0 };
	struct read_file file;
	bool is_good = file_read(path, INGEST_BYTES_MAX, &bytes, NULL) == 0 &&
		       read_document(str_of(path), buf_str(&bytes), &a, &file, NULL) == 0;

	arena_release(&a);
	buf_release(&bytes);
	return is_good;
}

/* A folder that is new to us, with what is in it already. */
static int take_folder(struct watch *w, const char *path, struct err *e)
{
	struct result_files found = { 0 };
	struct err why = { 0 };
	int rc = 0;

	if (result_files_find(path, RESULT_FILES_ALL, &found, add_folder, w, &why) < 0 &&
	    why.code != ERR_IO) {
		*e = why;
		rc = -1;
	}
	for (size_t i = 0; rc == 0 && i < found.n && !*cli_is_interrupted(); i++)
		if (is_taken(w, found.path[i]))
			continue;
		else if (!is_young(found.path[i]) || is_whole(found.path[i]))
			rc = take(w, found.path[i], e);
		else
			result_files_add(&w->late, found.path[i]);
	result_files_release(&found);
	return rc;
}

/* Files that nobody has closed for a while are told as they are. */
static int take_late(struct watch *w, struct err *e)
{
	int rc = 0;

	for (size_t i = w->late.n; rc == 0 && i-- > 0;) {
		if (is_young(w->late.path[i]))
			continue;
		if (file_exists(w->late.path[i]))
			rc = take(w, w->late.path[i], e);
		late_drop(w, i);
	}
	return rc == 0 ? ingest_flush(w->g, e) : -1;
}

static int take_all(struct watch *w, struct err *e)
{
	const struct opt_list *paths = &w->g->o->paths;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < paths->n && !*cli_is_interrupted(); i++)
		rc = file_is_dir(paths->v[i]) ? take_folder(w, paths->v[i], e) :
						ingest_path(w->g, paths->v[i], e);
	return rc == 0 ? ingest_flush(w->g, e) : -1;
}

static int on_event(struct watch *w, const struct inotify_event *event, struct err *e)
{
	const char *folder;
	char *path;
	int rc = 0;

	if (event->mask & IN_Q_OVERFLOW)
		return take_all(w, e);
	if (event->wd < 0 || (size_t)event->wd >= w->cap || !(folder = w->folder[event->wd]))
		return 0;
	if (event->mask & IN_IGNORED) {
		free(w->folder[event->wd]);
		w->folder[event->wd] = NULL;
		return 0;
	}
	if (!event->len || event->name[0] == '.')
		return 0;
	path = file_join(folder, event->name);
	if (event->mask & IN_ISDIR)
		rc = take_folder(w, path, e);
	else if (!(event->mask & IN_CREATE) && result_file_is(folder, event->name) &&
		 file_exists(path) && !is_taken(w, path)) {
		late_forget(w, path);
		rc = take(w, path, e);
	}
	free(path);
	return rc;
}

static int read_events(struct watch *w, struct err *e)
{
	_Alignas(struct inotify_event) char bytes[EVENT_BYTES];
	ssize_t n = read(w->fd, bytes, sizeof(bytes));
	int rc = 0;

	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? 0 :
			err_set(e, ERR_IO, "the folders cannot be watched: %s", strerror(errno));
	for (ssize_t at = 0; rc == 0 && at < n;) {
		const struct inotify_event *event = (const void *)(bytes + at);

		rc = on_event(w, event, e);
		at += (ssize_t)(sizeof(*event) + event->len);
	}
	return rc == 0 ? ingest_flush(w->g, e) : -1;
}

int ingest_watch(struct ingest *g, struct err *e)
{
	struct watch w = { .g = g, .fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK) };
	struct pollfd poll_fd = { .fd = w.fd, .events = POLLIN };
	int rc;

	if (w.fd < 0)
		return err_set(e, ERR_IO, "folders cannot be watched: %s", strerror(errno));
	rc = take_all(&w, e);
	if (rc == 0 && !*cli_is_interrupted())
		fprintf(stderr, "Watching; Ctrl-C ends it.\n");
	while (rc == 0 && !*cli_is_interrupted())
		rc = poll(&poll_fd, 1, WAIT_MS) > 0 ? read_events(&w, e) : take_late(&w, e);
	result_files_release(&w.late);
	map_release(&w.taken);
	free(w.state);
	arena_release(&w.names);
	for (size_t i = 0; i < w.cap; i++)
		free(w.folder[i]);
	free(w.folder);
	close(w.fd);
	return rc;
}
