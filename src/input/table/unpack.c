/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack.c - compressed files and archives; the only file that knows libarchive.
 */
#include "input/table/table_internal.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/library.h"
#include "core/base/limits.h"

/* The functions in use: the library is loaded when first needed. */
#define ARCHIVE_CALLS(X) X(archive_entry_filetype) X(archive_entry_pathname) \
	X(archive_entry_pathname_utf8) X(archive_error_string) X(archive_filter_bytes) \
	X(archive_filter_code) X(archive_format) X(archive_read_data_block) X(archive_read_free) \
	X(archive_read_new) X(archive_read_next_header) X(archive_read_open_memory2) \
	X(archive_read_support_filter_bzip2) X(archive_read_support_filter_gzip) \
	X(archive_read_support_filter_lz4) X(archive_read_support_filter_xz) \
	X(archive_read_support_filter_zstd) X(archive_read_support_format_empty) \
	X(archive_read_support_format_raw) X(archive_read_support_format_tar) \
	X(archive_read_support_format_zip)
LIBRARY(lib, ARCHIVE_CALLS, "libarchive.so.13", "libarchive13");

#define BLOCK_BYTES 65536
#define NAMES_SHOWN 8
#define MEMBERS_MAX (1u << 20)

struct unpack {
	const char *path;
	struct str packed;    /* what the file holds */
	const struct table_opts *o;
	struct archive *a;
	struct buf shown;     /* names of the archive's files, for the error */
	size_t files, named;  /* in the archive, and those with a known ending */
	size_t wanted;        /* number of the one file that is taken */
	int fd;
	uint64_t written;
};

static int fail(const struct unpack *u, struct err *e)
{
	const char *why = lib.archive_error_string(u->a);

	return err_set(e, ERR_PARSE, "%s: cannot be unpacked: %s", u->path, why ? why : "damaged");
}

static int open_archive(struct unpack *u, struct err *e)
{
	if (library_open(&lib_library, e) < 0)
		return -1;
	u->a = lib.archive_read_new();
	if (!u->a)
		return err_set(e, ERR_IO, "%s: libarchive cannot be used", u->path);
	lib.archive_read_support_filter_gzip(u->a);
	lib.archive_read_support_filter_bzip2(u->a);
	lib.archive_read_support_filter_xz(u->a);
	lib.archive_read_support_filter_zstd(u->a);
	lib.archive_read_support_filter_lz4(u->a);
	lib.archive_read_support_format_zip(u->a);
	lib.archive_read_support_format_tar(u->a);
	lib.archive_read_support_format_raw(u->a);
	lib.archive_read_support_format_empty(u->a);
	if (lib.archive_read_open_memory2(u->a, u->packed.p, u->packed.n, BLOCK_BYTES) !=
	    ARCHIVE_OK)
		return fail(u, e);
	return 0;
}

static void close_archive(struct unpack *u)
{
	if (u->a)
		lib.archive_read_free(u->a);
	u->a = NULL;
}

static bool is_archive(const struct unpack *u)
{
	int format = lib.archive_format(u->a) & ARCHIVE_FORMAT_BASE_MASK;

	return format == ARCHIVE_FORMAT_ZIP || format == ARCHIVE_FORMAT_TAR;
}

static int look(const struct unpack *u, struct err *e)
{
	if (u->o->cancel && atomic_load(u->o->cancel))
		return err_set(e, ERR_CANCELLED, "%s: stopped", u->path);
	if (u->o->progress) {
		la_int64_t done = lib.archive_filter_bytes(u->a, -1);

		u->o->progress(u->o->self, done < 0 ? 0 : (uint64_t)done, u->packed.n);
	}
	return 0;
}

/* 1: *entry is the next file of any kind; 0: no more; -1. */
static int next_entry(struct unpack *u, struct archive_entry **entry, struct err *e)
{
	int rc = lib.archive_read_next_header(u->a, entry);

	if (look(u, e) < 0)
		return -1;
	if (rc == ARCHIVE_EOF)
		return 0;
	return rc == ARCHIVE_OK || rc == ARCHIVE_WARN ? 1 : fail(u, e);
}

/* Appends a name with a ? for each control character: the name comes from the archive. */
static void add_name(struct buf *out, const char *name)
{
	for (; *name; name++)
		buf_add_char(out, (unsigned char)*name < ' ' || *name == 0x7f ? '?' : *name);
}

static const char *name_of(struct archive_entry *entry)
{
	const char *name = lib.archive_entry_pathname_utf8(entry);

	if (!name)
		name = lib.archive_entry_pathname(entry);
	return name ? name : "?";
}

/* Whether it is a data file: not a folder, and not an extra file of file managers and tar. */
static bool is_file(struct archive_entry *entry)
{
	const char *name = name_of(entry), *last = strrchr(name, '/');

	last = last ? last + 1 : name;
	return lib.archive_entry_filetype(entry) == AE_IFREG && *last != '.' &&
		!str_starts(str_of(name), STR("__MACOSX/"));
}

/*
 * Finds the one data file. A compressed file is the first "entry"; one that unpacks to nothing has
 * none.
 */
static int choose(struct unpack *u, struct err *e)
{
	struct archive_entry *entry;
	size_t first_named = 0, i;
	int rc;

	for (i = 0; (rc = next_entry(u, &entry, e)) == 1; i++) {
		if (!is_archive(u)) {
			u->files = 1;
			return 0;
		}
		if (i == MEMBERS_MAX)
			return err_set(e, ERR_LIMIT, "%s: more than %u files in the archive", u->path,
				MEMBERS_MAX);
		if (!is_file(entry))
			continue;
		if (u->files++ < NAMES_SHOWN) {
			buf_add_text(&u->shown, u->files > 1 ? ", " : "");
			add_name(&u->shown, name_of(entry));
		}
		if (u->files == 1)
			u->wanted = i;
		if (table_is_name(name_of(entry)) && !table_is_packed(name_of(entry), STR("")) &&
		    u->named++ == 0)
			first_named = i;
	}
	if (rc < 0)
		return -1;
	if (u->files == 0 && is_archive(u))
		return err_set(e, ERR_PARSE, "%s: an archive without a file in it", u->path);
	if (u->named == 1)
		u->wanted = first_named;
	else if (u->files > 1)
		return err_set(e, ERR_PARSE, "%s: expected one data file in the archive, found %zu of "
			"%zu files: %s%s", u->path, u->named, u->files, u->shown.data,
			u->files > NAMES_SHOWN ? ", ..." : "");
	return 0;
}

static int fail_write(const struct unpack *u, struct err *e)
{
	const char *dir = getenv("TMPDIR");

	return err_set(e, ERR_IO, "%s: cannot be unpacked into %s: %s (TMPDIR names the folder)",
		u->path, dir && *dir ? dir : "/tmp", strerror(errno));
}

/* An unnamed file: it is deleted when it is closed. */
static int open_nameless(struct unpack *u, struct err *e)
{
	u->fd = file_unnamed(NULL);
	return u->fd < 0 ? fail_write(u, e) : 0;
}

static int write_at(const struct unpack *u, const char *p, size_t n, uint64_t at, struct err *e)
{
	while (n) {
		ssize_t done = pwrite(u->fd, p, n, (off_t)at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0) {
			errno = done == 0 ? ENOSPC : errno;
			return fail_write(u, e);
		}
		p += done;
		n -= (size_t)done;
		at += (uint64_t)done;
	}
	return 0;
}

/* Writes the bytes of the entry whose header was read last. */
static int write_entry(struct unpack *u, struct err *e)
{
	const void *block;
	la_int64_t at;
	size_t n;
	int rc;

	while ((rc = lib.archive_read_data_block(u->a, &block, &n, &at)) == ARCHIVE_OK ||
	       rc == ARCHIVE_WARN) {
		if (look(u, e) < 0)
			return -1;
		if (at < 0 || (uint64_t)at > TABLE_UNPACKED_BYTES_MAX ||
		    n > TABLE_UNPACKED_BYTES_MAX - (uint64_t)at)
			return err_set(e, ERR_LIMIT, "%s: unpacks to more than %llu bytes "
				"(TABLE_UNPACKED_BYTES_MAX)", u->path, TABLE_UNPACKED_BYTES_MAX);
		if (write_at(u, block, n, (uint64_t)at, e) < 0)
			return -1;
		if (n && (uint64_t)at + n > u->written)
			u->written = (uint64_t)at + n;
	}
	return rc == ARCHIVE_EOF ? 0 : fail(u, e);
}

/* Reads the file once more and unpacks what was chosen. */
static int extract(struct unpack *u, struct buf *name, struct err *e)
{
	struct archive_entry *entry;
	int rc;

	for (size_t i = 0;; i++) {
		rc = next_entry(u, &entry, e);
		if (rc <= 0)
			return rc < 0 ? -1 : err_set(e, ERR_IO, "%s: changed while it was read", u->path);
		if (i == u->wanted)
			break;
	}
	if (is_archive(u)) {
		buf_add_char(name, '!');
		add_name(name, name_of(entry));
	} else if (lib.archive_filter_code(u->a, 0) == ARCHIVE_FILTER_NONE) {
		return err_set(e, ERR_PARSE, "%s: neither compressed nor an archive, despite its "
			"name", u->path);
	}
	return write_entry(u, e);
}

static int map_written(struct unpack *u, struct str *all, struct err *e)
{
	void *p;

	*all = (struct str){ "", 0 };
	if (u->written == 0)
		return 0;
	p = mmap(NULL, u->written, PROT_READ, MAP_PRIVATE, u->fd, 0);
	if (p == MAP_FAILED)
		return fail_write(u, e);
	*all = (struct str){ p, u->written };
	return 0;
}

int table_unpack(const char *path, struct str packed, const struct table_opts *o, struct str *all,
	struct buf *name, struct err *e)
{
	struct unpack u = { .path = path, .packed = packed, .o = o, .fd = -1 };
	int rc;

	*all = (struct str){ "", 0 };
	rc = open_archive(&u, e);
	if (rc == 0)
		rc = choose(&u, e);
	close_archive(&u);
	if (rc == 0 && u.files > 0) {
		rc = open_archive(&u, e);
		if (rc == 0)
			rc = open_nameless(&u, e);
		if (rc == 0)
			rc = extract(&u, name, e);
		if (rc == 0)
			rc = map_written(&u, all, e);
		close_archive(&u);
	}
	if (u.fd >= 0)
		close(u.fd);
	buf_release(&u.shown);
	return rc;
}
