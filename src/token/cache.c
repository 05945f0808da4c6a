/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.c - stamps, sums and compiled files.
 */
#include "token/cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/mem.h"
#include "token/compiled.h"

/* Files beside the main one that a reader may look at. */
static const char *const BESIDE[] = { "tokenizer_config.json", "special_tokens_map.json",
	"merges.txt", "added_tokens.json" };
#define SOURCES (1 + sizeof BESIDE / sizeof *BESIDE)

/* ---- names ---- */

static bool cache_dir(struct buf *out)
{
	const char *dir = getenv("PROFLLM_CACHE_DIR");

	if (dir && !*dir)
		return false;
	if (dir)
		buf_printf(out, "%s/tokenizers", dir);
	else if ((dir = getenv("XDG_CACHE_HOME")) && *dir)
		buf_printf(out, "%s/profllm/tokenizers", dir);
	else if ((dir = getenv("HOME")) && *dir)
		buf_printf(out, "%s/.cache/profllm/tokenizers", dir);
	return out->len > 0;
}

static void name_in(struct buf *out, const char *dir, uint64_t sum, const char *end)
{
	buf_reset(out);
	buf_printf(out, "%s/%016" PRIx64 "%s", dir, sum, end);
}

/* A file's name may say what its contents mean. */
static uint64_t sum_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return compiled_sum(str_of(slash ? slash + 1 : path));
}

/* Source i: the path itself, then those beside it. Caller frees. */
static char *source_path(const char *path, size_t i)
{
	return i == 0 ? mem_text(path) : file_beside(path, BESIDE[i - 1]);
}

/* ---- what the sources are ---- */

/* One line that changes whenever a source is written. */
static void add_stamp(struct buf *out, const char *path)
{
	for (size_t i = 0; i < SOURCES; i++) {
		char *source = source_path(path, i);
		struct stat st;

		if (stat(source, &st) == 0)
			buf_printf(out, "%jd %jd.%09ld %ju ", (intmax_t)st.st_size,
				(intmax_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
				(uintmax_t)st.st_ino);
		else
			buf_add_text(out, "- ");
		free(source);
	}
}

static bool sum_contents(const char *path, uint64_t *sum)
{
	bool is_good = true;

	*sum = sum_name(path);
	for (size_t i = 0; i < SOURCES && is_good; i++) {
		char *source = source_path(path, i);
		struct str bytes;

		if (i == 0 || file_exists(source)) {
			is_good = file_map(source, &bytes, NULL) == 0;
			if (is_good) {
				*sum = *sum * 31 + compiled_sum(bytes);
				file_unmap(bytes);
			}
		}
		free(source);
	}
	return is_good;
}

/* ---- stamps ---- */

struct place {
	struct buf dir, stamp_path, stamp; /* stamp: what it should say before the sum */
	uint64_t sum;                      /* of the contents */
};

static void place_release(struct place *p)
{
	buf_release(&p->dir);
	buf_release(&p->stamp_path);
	buf_release(&p->stamp);
}

static bool place_init(struct place *p, const char *path)
{
	char *real = realpath(path, NULL);

	if (!real || !cache_dir(&p->dir)) {
		free(real);
		return false;
	}
	name_in(&p->stamp_path, p->dir.data, compiled_sum(str_of(real)) * 31 + sum_name(path),
		".stamp");
	add_stamp(&p->stamp, path);
	free(real);
	return true;
}

static bool read_stamp(struct place *p)
{
	char sum[17] = "";
	struct str text;
	bool is_good;

	if (file_load_own(p->stamp_path.data, &text))
		return false;
	is_good = str_starts(text, buf_str(&p->stamp)) && text.n >= p->stamp.len + 16;
	if (is_good)
		memcpy(sum, text.p + p->stamp.len, 16);
	file_unmap(text);
	return is_good && sscanf(sum, "%16" SCNx64, &p->sum) == 1;
}

/* Written under another name and renamed; no fsync, for a checksum tells what is whole. */
static bool write_file(const char *path, struct str bytes)
{
	struct buf temp = { 0 };
	size_t done = 0;
	bool is_good;
	int fd;

	buf_printf(&temp, "%s.XXXXXX", path);
	fd = mkostemp(temp.data, O_CLOEXEC);
	while (fd >= 0 && done < bytes.n) {
		ssize_t n = write(fd, bytes.p + done, bytes.n - done);

		if (n <= 0)
			break;
		done += (size_t)n;
	}
	is_good = fd >= 0 && done == bytes.n;
	if (fd >= 0)
		close(fd);
	if (is_good)
		is_good = rename(temp.data, path) == 0;
	if (!is_good && fd >= 0)
		unlink(temp.data);
	buf_release(&temp);
	return is_good;
}

static void write_stamp(struct place *p)
{
	struct buf line = { 0 };

	buf_printf(&line, "%s%016" PRIx64 "\n", p->stamp.data, p->sum);
	write_file(p->stamp_path.data, buf_str(&line));
	buf_release(&line);
}

/* ---- compiled files ---- */

static bool read_compiled(struct model *m, const struct place *p)
{
	struct buf name = { 0 };
	struct str bytes;
	struct err e = { 0 };
	bool is_good = false;

	name_in(&name, p->dir.data, p->sum, ".tok");
	if (file_load_own(name.data, &bytes))
		goto done;
	is_good = compiled_read(m, bytes, &e) == 0;
	m->mapping = bytes;
	if (!is_good) {
		TRACE(token, "%s %s\n", name.data, e.text);
		model_release(m);
	}
done:
	buf_release(&name);
	return is_good;
}

bool cache_load(struct model *m, const char *path, struct buf *stamp)
{
	struct place p = { 0 };
	bool is_good = false;

	if (place_init(&p, path)) {
		buf_add_str(stamp, buf_str(&p.stamp));
		is_good = read_stamp(&p) && read_compiled(m, &p);
		if (!is_good && sum_contents(path, &p.sum) && read_compiled(m, &p)) {
			write_stamp(&p);
			is_good = true;
		}
	}
	place_release(&p);
	return is_good;
}

/* Removes the file that was written longest ago while there are too many. */
static void prune(const char *dir)
{
	for (size_t round = 0; round < TOKEN_CACHE_FILES_MAX; round++) {
		struct dirent *entry;
		struct buf name = { 0 }, oldest = { 0 };
		struct timespec least = { 0 };
		size_t count = 0;
		DIR *d = opendir(dir);

		while (d && (entry = readdir(d))) {
			struct stat st;

			if (!str_ends(str_of(entry->d_name), STR(".tok")))
				continue;
			buf_reset(&name);
			buf_printf(&name, "%s/%s", dir, entry->d_name);
			if (stat(name.data, &st) < 0)
				continue;
			if (count++ == 0 || st.st_mtim.tv_sec < least.tv_sec) {
				least = st.st_mtim;
				buf_reset(&oldest);
				buf_add_str(&oldest, buf_str(&name));
			}
		}
		if (d)
			closedir(d);
		if (count > TOKEN_CACHE_FILES_MAX)
			unlink(oldest.data);
		buf_release(&name);
		buf_release(&oldest);
		if (count <= TOKEN_CACHE_FILES_MAX)
			return;
	}
}

static bool is_worth_it(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && st.st_size >= TOKEN_CACHE_BYTES_MIN;
}

static bool is_unchanged(const char *path, const struct buf *stamp)
{
	struct buf now = { 0 };
	bool is_same;

	add_stamp(&now, path);
	is_same = str_eq(buf_str(&now), buf_str(stamp));
	buf_release(&now);
	return is_same;
}

bool cache_store(const struct model *m, const char *path, const struct buf *stamp, bool is_forced)
{
	struct place p = { 0 };
	struct buf name = { 0 }, bytes = { 0 };
	bool is_good = false;

	if ((!is_forced && !is_worth_it(path)) || !place_init(&p, path) ||
		!sum_contents(path, &p.sum) || !is_unchanged(path, stamp) ||
		file_mkdirs_mode(p.dir.data, 0700, NULL))
		goto done;
	compiled_write(m, &bytes);
	name_in(&name, p.dir.data, p.sum, ".tok");
	if (bytes.is_over || !write_file(name.data, buf_str(&bytes)))
		goto done;
	write_stamp(&p);
	prune(p.dir.data);
	is_good = true;
done:
	place_release(&p);
	buf_release(&name);
	buf_release(&bytes);
	return is_good;
}

bool cache_path(const char *path, struct buf *out)
{
	struct place p = { 0 };
	bool is_good = place_init(&p, path) && (read_stamp(&p) || sum_contents(path, &p.sum));

	if (is_good)
		name_in(out, p.dir.data, p.sum, ".tok");
	place_release(&p);
	return is_good;
}
