/* SPDX-License-Identifier: Apache-2.0 */
/* files.c - names and writing of result files; dates as upstream spells them. */
#include "out/report/report.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"

char *report_date(char out[REPORT_DATE_BYTES], int64_t real_ns)
{
	time_t s = (time_t)(real_ns / 1000000000);
	struct tm t;

	localtime_r(&s, &t);
	strftime(out, REPORT_DATE_BYTES, "%Y%m%d-%H%M%S", &t);
	return out;
}

char *report_timestamp(char out[REPORT_DATE_BYTES], int64_t real_ns)
{
	time_t s = (time_t)(real_ns / 1000000000);
	int us = (int)(real_ns % 1000000000 / 1000);
	struct tm t;
	size_t n;

	localtime_r(&s, &t);
	n = strftime(out, REPORT_DATE_BYTES, "%Y-%m-%dT%H:%M:%S", &t);
	if (us > 0)
		snprintf(out + n, REPORT_DATE_BYTES - n, ".%06d", us);
	return out;
}

static void add_name(struct buf *name, const struct report_facts *f)
{
	const char *model = f->model_id ? f->model_id : "", *slash = strrchr(model, '/');
	char rate[FMT_F64_BYTES];

	buf_add_text(name, f->label ? f->label : f->backend);
	if (f->ramp_strategy)
		buf_printf(name, "-ramp-up-%s-%lldqps-%lldqps", f->ramp_strategy,
			   (long long)f->ramp_start_rps, (long long)f->ramp_end_rps);
	else
		buf_printf(name, "-%sqps", fmt_f64(rate, f->request_rate));
	if (f->max_concurrency)
		buf_printf(name, "-concurrency%lld", (long long)f->max_concurrency);
	buf_printf(name, "-%s-%s.json", slash ? slash + 1 : model, f->date);
}

char *report_path(const struct report_facts *f, const char *dir, const char *filename)
{
	struct buf name = { 0 };
	char *path;

	if (filename)
		buf_add_text(&name, filename);
	else
		add_name(&name, f);
	path = file_join(dir, name.data);
	buf_release(&name);
	return path;
}

static int make_dir_of(const char *path, struct err *e)
{
	char *copy = mem_text(path);
	const char *dir = dirname(copy);
	int rc = file_is_dir(dir) ? 0 : file_mkdirs(dir, e);

	free(copy);
	return rc;
}

/* Whether there are files in the folder named after a result other than itself. */
static bool has_followers(const char *folder, const char *path, size_t stem_n)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t n = (size_t)(path + stem_n - name);
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	bool has = false;

	while (dir && !has && (entry = readdir(dir)) != NULL)
		has = strncmp(entry->d_name, name, n) == 0 && entry->d_name[n] == '.' &&
		      strcmp(entry->d_name, name) != 0;
	if (dir)
		closedir(dir);
	return has;
}

char *report_claim(const struct report_facts *f, const char *dir, struct err *e)
{
	static const char ending[] = ".json";
	char *first = report_path(f, dir, NULL);
	char *copy = mem_text(first), *folder = dirname(copy);
	size_t stem_n = strlen(first) - strlen(ending);
	struct buf path = { 0 };

	if (make_dir_of(first, e) < 0)
		goto failed;
	for (unsigned k = 1; k <= RESULT_NAMES_MAX; k++) {
		int fd;

		buf_reset(&path);
		buf_add(&path, first, stem_n);
		if (k > 1)
			buf_printf(&path, "-%u", k);
		buf_add_text(&path, ending);
		fd = open(path.data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd < 0 && errno != EEXIST) {
			err_set(e, ERR_IO, "cannot write %s: %s", path.data, strerror(errno));
			goto failed;
		}
		if (fd < 0)
			continue;
		close(fd);
		/* Allocate nothing from here on: a failure would orphan the reserved file. */
		if (!has_followers(folder, path.data, path.len - strlen(ending)))
			goto done;
		unlink(path.data);
	}
	err_set(e, ERR_LIMIT, "%s and %u names like it are taken", first, RESULT_NAMES_MAX);
failed:
	buf_release(&path);
done:
	free(first);
	free(copy);
	return path.data;
}

/* One write at the end of the file; a partial write on a full disk is cut off again. */
static int append(const char *path, struct str json, struct err *e)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666), saved = 0;
	struct buf line = { 0 };
	struct stat st;
	ssize_t n = 0;

	if (fd < 0 || fstat(fd, &st) < 0) {
		saved = errno;
		goto done;
	}
	line.limit = json.n + 2;
	if (st.st_size > 0)
		buf_add_char(&line, '\n');
	buf_add_str(&line, json);
	for (size_t at = 0; saved == 0 && at < line.len; at += n > 0 ? (size_t)n : 0) {
		n = write(fd, line.data + at, line.len - at);
		if (n < 0 && errno != EINTR)
			saved = errno;
	}
	if (saved == 0 && fsync(fd) < 0 && errno != EINVAL)
		saved = errno;
	if (saved && S_ISREG(st.st_mode) && ftruncate(fd, st.st_size) < 0)
		err_set(e, ERR_IO, "cannot append to %s: %s; the end of the file may be broken",
			path, strerror(saved));
	else if (saved)
		err_set(e, ERR_IO, "cannot append to %s: %s", path, strerror(saved));
	buf_release(&line);
	close(fd);
	return saved ? -1 : 0;
done:
	if (fd >= 0)
		close(fd);
	return err_set(e, ERR_IO, "cannot append to %s: %s", path, strerror(saved));
}

int report_save(const char *path, struct str json, bool is_append, struct err *e)
{
	if (make_dir_of(path, e) < 0)
		return -1;
	return is_append ? append(path, json, e) : file_write_atomic(path, json, e);
}
