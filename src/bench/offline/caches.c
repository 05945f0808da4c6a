/* SPDX-License-Identifier: Apache-2.0 */
/* caches.c - see caches.h. */
#include "bench/offline/caches.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "input/fetch/hub.h"

#define WALK_FILES 16            /* descriptors of a walk through folders */
#define LOOK_BYTES (64u << 20)   /* mapped at a time */

/* ---- folders ---- */

static char *make_folder(const char *prefix, struct err *e)
{
	const char *in = getenv("TMPDIR");
	struct buf path = { 0 };

	buf_printf(&path, "%s/%sXXXXXX", in && *in ? in : "/tmp", prefix);
	if (mkdtemp(path.data))
		return buf_take(&path);
	err_set(e, ERR_IO, "%s: %s", path.data, strerror(errno));
	buf_release(&path);
	return NULL;
}

static char *variable(const char *name, const char *folder, const char *below)
{
	struct buf text = { 0 };

	buf_printf(&text, "%s=%s%s", name, folder, below);
	return buf_take(&text);
}

int caches_new(struct caches *c, struct err *e)
{
	*c = (struct caches){ 0 };
	c->vllm = make_folder("vllm_startup_bench_cold_", e);
	c->inductor = c->vllm ? make_folder("profllm_inductor_", e) : NULL;
	if (!c->inductor) {
		caches_remove(c, NULL);
		return -1;
	}
	c->env[0] = variable("VLLM_CACHE_ROOT", c->vllm, "");
	c->env[1] = variable("TORCHINDUCTOR_CACHE_DIR", c->inductor, "");
	c->env[2] = variable("TRITON_CACHE_DIR", c->inductor, "/triton");
	return 0;
}

/* Removes as much as possible. A folder that could not be read may be readable in the next walk. */
static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)where;
	if (type == FTW_DNR)
		chmod(path, 0700);
	else
		remove(path);
	return 0;
}

static int remove_tree(char *path, struct err *e)
{
	int rc = 0;

	if (!path)
		return 0;
	for (int i = 0; i < 2 && access(path, F_OK) == 0; i++)
		nftw(path, remove_one, WALK_FILES, FTW_DEPTH | FTW_PHYS);
	if (access(path, F_OK) == 0)
		rc = err_set(e, ERR_IO, "%s cannot be removed", path);
	free(path);
	return rc;
}

int caches_remove(struct caches *c, struct err *e)
{
	int rc = remove_tree(c->vllm, e);

	if (remove_tree(c->inductor, rc < 0 ? NULL : e) < 0)
		rc = -1;
	for (size_t i = 0; i < sizeof(c->env) / sizeof(*c->env); i++)
		free(c->env[i]);
	*c = (struct caches){ 0 };
	return rc;
}

/* ---- the page cache ---- */

/* Bytes of a file that are in memory. */
static int64_t resident(int fd, off_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *in = mem_alloc(LOOK_BYTES / page);
	int64_t bytes = 0;

	for (off_t at = 0; at < size; at += LOOK_BYTES) {
		size_t n = size - at < (off_t)LOOK_BYTES ? (size_t)(size - at) : LOOK_BYTES;
		void *p = mmap(NULL, n, PROT_READ, MAP_SHARED, fd, at);

		if (p == MAP_FAILED)
			break;
		if (mincore(p, n, in) == 0)
			for (size_t i = 0; i < (n + page - 1) / page; i++)
				bytes += in[i] & 1 ? (int64_t)page : 0;
		munmap(p, n);
	}
	free(in);
	return bytes < size ? bytes : size;
}

static void drop_file(const char *path, struct cached_pages *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	int64_t before, after;

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		before = resident(fd, st.st_size);
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		after = resident(fd, st.st_size);
		out->files++;
		out->dropped += before > after ? before - after : 0;
		out->left += after;
	}
	close(fd);
}

static int drop_named(const char *model, struct cached_pages *out, struct err *e)
{
	const struct hub_opts hub = { .is_offline = true };
	struct hub_list list = { 0 };
	struct buf path = { 0 };
	struct err ignored;

	if (!hub_is_repo(model) || hub_list(&hub, model, &list, &ignored) < 0)
		return err_set(e, ERR_RUN, "--drop-page-cache: %s is neither a folder nor a model in the "
			       "hub's cache, so its files are not known", model);
	for (size_t i = 0; i < list.count; i++)
		if (hub_file(&hub, model, list.file[i], &path, &ignored) == 0)
			drop_file(path.data, out);
	buf_release(&path);
	hub_list_release(&list);
	return 0;
}

/* nftw has no argument for its visitor; one walk at a time on a thread. */
static _Thread_local struct cached_pages *walked;

static int drop_visited(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)where;
	if (type == FTW_F)
		drop_file(path, walked);
	return 0;
}

int pages_drop(const char *model, struct cached_pages *out, struct err *e)
{
	*out = (struct cached_pages){ 0 };
	if (file_is_dir(model)) {
		walked = out;
		nftw(model, drop_visited, WALK_FILES, 0);
		walked = NULL;
	} else if (file_exists(model)) {
		drop_file(model, out);
	} else if (drop_named(model, out, e) < 0) {
		return -1;
	}
	return out->files ? 0 : err_set(e, ERR_RUN, "--drop-page-cache: %s holds no file that can be "
					"read", model);
}
