/* SPDX-License-Identifier: Apache-2.0 */
/* Slices, buffers, numbers, maps, slabs, UTF-8 and files. */
/* threads: yes */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <locale.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/base/str.h"

static void numbers_are_read_whole(void **state)
{
	static const struct { const char *text; bool is_int; int64_t want; bool is_real; } row[] = {
		{ "0", true, 0, true }, { "-7", true, -7, true }, { "+7", true, 7, true },
		{ "9223372036854775807", true, INT64_MAX, true },
		{ "-9223372036854775808", true, INT64_MIN, true },
		{ "9223372036854775808", false, 0, true }, { "1.5", false, 0, true },
		{ "1e3", false, 0, true }, { "inf", false, 0, true }, { "0x10", false, 0, false },
		{ "", false, 0, false }, { " 1", false, 0, false }, { "1 ", false, 0, false },
		{ "--1", false, 0, false }, { "nan(1)", false, 0, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		int64_t got = 0;
		double real;

		assert_int_equal(str_to_i64(str_of(row[i].text), &got), row[i].is_int);
		assert_int_equal(got, row[i].want);
		assert_int_equal(str_to_f64(str_of(row[i].text), &real), row[i].is_real);
	}
}

/*
 * A locale with a decimal comma, which not every machine has: the file that
 * localedef makes of LC_NUMERIC is written here (magic, fields, their offsets, the fields:
 * decimal_point, thousands_sep, grouping, both as characters, codeset).
 */
static void write_comma_locale(const char *dir, char path[100])
{
	static const struct {
		uint32_t magic, n, at[6];
		char point[2], thousands[1], grouping[1];
		uint32_t point_wc, thousands_wc;
		char codeset[8];
	} file = { 0x20031115 ^ LC_NUMERIC, 6, { 32, 34, 35, 36, 40, 44 }, ",", "", "\x7f", ',', 0,
		   "UTF-8" };
	struct err e;

	snprintf(path, 100, "%s/comma", dir);
	assert_int_equal(file_mkdirs(path, &e), 0);
	snprintf(path, 100, "%s/comma/LC_NUMERIC", dir);
	assert_int_equal(file_write_atomic(path, (struct str){ (const char *)&file, sizeof(file) },
					   &e), 0);
}

/* The library lives in programs of any locale; its numbers have a point. */
static void numbers_have_a_point_in_any_locale(void **state)
{
	static const double reals[] = { 1.5, 0.1, -2.25e-9, 1.7976931348623157e308, 5e-324,
					0x1p-44, 123456.789 };
	enum { REALS = sizeof(reals) / sizeof(*reals) };
	char dir[] = "/tmp/profllm-locale-XXXXXX", path[100], out[FMT_F64_BYTES], host[16];
	char want[REALS][FMT_F64_BYTES];
	struct buf text = { 0 };
	struct err e;
	double v;

	(void)state;
	assert_non_null(mkdtemp(dir));
	write_comma_locale(dir, path);
	assert_int_equal(setenv("LOCPATH", dir, 1), 0);
	for (size_t i = 0; i < REALS; i++)
		fmt_f64(want[i], reals[i]);
	assert_non_null(setlocale(LC_NUMERIC, "comma"));
	snprintf(host, sizeof(host), "%.1f", 1.5);
	assert_string_equal(host, "1,5"); /* the host program's own numbers are its own */
	for (size_t i = 0; i < REALS; i++) {
		assert_string_equal(fmt_f64(out, reals[i]), want[i]);
		assert_true(str_to_f64(str_of(out), &v) && v == reals[i]);
	}
	assert_false(str_to_f64(STR("1,5"), &v));
	buf_printf(&text, "%.1f %g", 1.5, 0.25);
	assert_string_equal(text.data, "1.5 0.25");
	err_set(&e, ERR_RUN, "%.2f", 0.75);
	err_wrap(&e, "%.1f", 2.5);
	assert_string_equal(e.text, "2.5: 0.75");
	assert_string_equal(fmt_duration(out, 1500000), "1.5 ms");
	assert_string_equal(fmt_rough_time(out, 1.5), "1.5 s");
	setlocale(LC_NUMERIC, "C");
	unsetenv("LOCPATH");
	buf_release(&text);
	unlink(path);
	*strrchr(path, '/') = 0;
	rmdir(path);
	rmdir(dir);
}

static void reals_are_spelled_as_python_spells_them(void **state)
{
	static const struct { double v; const char *want; } row[] = {
		{ 0, "0.0" }, { -0.0, "-0.0" }, { 10, "10.0" }, { 0.1, "0.1" }, { 1e16, "1e+16" },
		{ 1e15, "1000000000000000.0" }, { 0.0001, "0.0001" }, { 0.00001, "1e-05" },
		{ 5e-324, "5e-324" }, { 0x1p-44, "5.684341886080802e-14" },
		{ 1.7976931348623157e308, "1.7976931348623157e+308" }, { 1.0 / 3, "0.3333333333333333" },
		{ 123456.789, "123456.789" }, { 1e22, "1e+22" },
	};
	char out[FMT_F64_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++)
		assert_string_equal(fmt_f64(out, row[i].v), row[i].want);
	assert_string_equal(fmt_f64(out, 1.0 / 0.0), "inf");
	assert_string_equal(fmt_f64(out, -1.0 / 0.0), "-inf");
}

static void buffers_stop_at_their_limit(void **state)
{
	struct buf b = { .limit = 10 };

	(void)state;
	buf_add_text(&b, "0123456789");
	assert_false(b.is_over);
	buf_add_char(&b, 'x');
	assert_true(b.is_over);
	assert_int_equal(b.len, 10);
	buf_reset(&b);
	buf_printf(&b, "%d-%s", 42, "ab");
	assert_string_equal(b.data, "42-ab");
	buf_cut(&b, 3);
	assert_string_equal(b.data, "ab");
	buf_release(&b);
}

/* Two buffers of one budget: what one gives back the other may have; short texts always fit. */
static void buffers_share_a_meter(void **state)
{
	static const char kilobyte[1024];
	struct meter m = { .max = 1200000 };
	struct buf a = { .meter = &m }, b = { .meter = &m };

	(void)state;
	buf_add(&b, kilobyte, 1000);
	assert_int_equal(m.used, 0);
	for (int i = 0; i < 600; i++)
		buf_add(&a, kilobyte, sizeof(kilobyte));
	assert_false(a.is_over);
	assert_int_equal(m.used, a.cap);
	for (int i = 0; i < 600 && !b.is_over; i++)
		buf_add(&b, kilobyte, sizeof(kilobyte));
	assert_true(b.is_over && b.is_short);
	assert_true(m.used <= m.max);
	buf_fit(&a);
	assert_int_equal(a.cap, a.len + 1);
	assert_int_equal(m.used, a.cap + (b.cap > METER_FREE_BYTES ? b.cap : 0));
	buf_release(&b);
	assert_int_equal(m.used, a.cap);
	buf_add(&b, kilobyte, 1000);
	assert_false(b.is_over);
	free(buf_take(&a));
	assert_int_equal(m.used, 0);
	for (int i = 0; i < 900; i++)
		buf_add(&b, kilobyte, sizeof(kilobyte));
	assert_false(b.is_over);
	buf_release(&b);
	assert_int_equal(m.used, 0);
	b = (struct buf){ .limit = 10 };
	buf_add_text(&b, "01234567890");
	assert_true(b.is_over && !b.is_short);
	buf_release(&b);
}

static void slices_are_cut(void **state)
{
	struct str rest = STR("a,,bc");

	(void)state;
	assert_true(str_is(str_cut(&rest, ','), "a"));
	assert_true(str_is(str_cut(&rest, ','), ""));
	assert_true(str_is(str_cut(&rest, ','), "bc"));
	assert_int_equal(rest.n, 0);
	assert_true(str_is(str_trim(STR(" \tx y\r\n")), "x y"));
	assert_true(str_eq_nocase(STR("Content-Type"), STR("content-type")));
	assert_true(str_ends(STR("abc"), STR("bc")) && !str_starts(STR("a"), STR("ab")));
	assert_true(str_starts((struct str){ 0 }, STR("")) && str_ends((struct str){ 0 }, STR("")));
	assert_true(str_find(STR("abcbc"), STR("bc")) && !str_find(STR("abc"), STR("cb")));
	assert_null(str_find((struct str){ 0 }, STR("a")));
	assert_int_equal(str_hex('f'), 15);
	assert_int_equal(str_hex('g'), -1);
}

static void maps_hold_many(void **state)
{
	struct arena a = { 0 };
	struct map m = { 0 };
	uint64_t v;

	(void)state;
	assert_false(map_get(&m, STR("x"), &v));
	for (uint64_t i = 0; i < 5000; i++)
		map_put(&m, str_of(arena_printf(&a, "key %llu", (unsigned long long)i)), i);
	map_put(&m, STR("key 7"), 77);
	assert_int_equal(m.count, 5000);
	for (uint64_t i = 0; i < 5000; i++) {
		assert_true(map_get(&m, str_of(arena_printf(&a, "key %llu", (unsigned long long)i)),
				    &v));
		assert_int_equal(v, i == 7 ? 77 : i);
	}
	assert_false(map_get(&m, STR("key 5000"), NULL));
	map_release(&m);
	arena_release(&a);
}

static void slabs_grow_in_place(void **state)
{
	struct err e = { 0 };
	struct slab s;
	char *first;

	(void)state;
	assert_int_equal(slab_init(&s, 64, 1000, &e), 0);
	first = slab_take(&s, 1);
	memset(first, 1, 64);
	for (int i = 1; i < 1000; i++)
		assert_ptr_equal(slab_take(&s, 1), first + (size_t)i * 64);
	assert_null(slab_take(&s, 1));
	assert_int_equal(((char *)slab_at(&s, 999))[63], 0);
	slab_release(&s);
	assert_int_equal(slab_init(&s, SIZE_MAX / 4, 2, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
}

/* One U+FFFD for each maximal ill-formed part, as Python's errors="replace". */
/* Every sequence of up to four interesting bytes, at every distance from a word's end. */
static void valid_utf8_is_what_decodes(void **state)
{
	static const unsigned char byte[] = { 'a', 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc1,
		0xc2, 0xdf, 0xe0, 0xe3, 0xec, 0xed, 0xef, 0xf0, 0xf4, 0xf5 };
	const size_t count = sizeof byte;
	char text[64];

	(void)state;
	for (size_t i = 0; i < count * count * count * count; i++) {
		size_t at = i % 19, n = at + 4 + i % 37;
		bool is_good = true;
		struct str rest = { text, n };

		memset(text, 'x', sizeof text);
		for (size_t k = 0; i % 2 && at + 4 + 3 * k + 3 <= n; k++)
			memcpy(text + at + 4 + 3 * k, "\xe4\xb8\xad", 3);
		for (size_t k = 1; i % 2 && 3 * k <= at; k++)
			memcpy(text + at - 3 * k, "\xe4\xb8\xad", 3);
		for (size_t k = 0, v = i; k < 4; k++, v /= count)
			text[at + k] = (char)byte[v % count];
		for (size_t step; rest.n > 0; rest.p += step, rest.n -= step)
			is_good &= utf8_decode(rest, &step) != UTF8_BAD;
		assert_int_equal(utf8_is_valid((struct str){ text, n }), is_good);
	}
}

static void broken_utf8_is_replaced(void **state)
{
#define BAD "\xef\xbf\xbd"
	static const struct { const char *in, *want; } row[] = {
		{ "abc", "abc" }, { "\xc3\xa9", "\xc3\xa9" }, { "\xff", BAD },
		{ "\xc3(", BAD "(" }, { "\xe2\x82", BAD }, { "\xe2\x82(", BAD "(" },
		{ "\xed\xa0\x80", BAD BAD BAD }, { "\xf0\x9f\x98", BAD }, { "\xc0\x80", BAD BAD },
		{ "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80" }, { "\xf5\x80", BAD BAD },
	};
#undef BAD

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct buf out = { 0 };

		utf8_add_lossy(&out, str_of(row[i].in));
		assert_string_equal(out.data, row[i].want);
		assert_true(utf8_is_valid(buf_str(&out)));
		buf_release(&out);
	}
}

/* Names may have the maximum length, and no unfinished file is left next to the file. */
static void a_name_of_any_length(void **state)
{
	char dir[] = "/tmp/profllm-base-XXXXXX", path[512];
	struct file_swap swap;
	struct err e = { 0 };
	DIR *opened;
	int n = 0;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/%0255d", dir, 0);
	assert_int_equal(file_write_atomic(path, STR("one"), &e), 0);
	assert_int_equal(file_swap_begin(&swap, path), 0);
	assert_int_equal(file_write_all(swap.fd, STR("two")), 0);
	assert_int_equal(file_swap_end(&swap, false), -1);
	assert_non_null(opened = opendir(dir));
	while (readdir(opened))
		n++;
	closedir(opened);
	assert_int_equal(n, 3); /* with "." and ".." */
	unlink(path);
	rmdir(dir);
}

/* A file may turn out larger than it said: those of /proc say 0. */
static void a_file_that_grows_past_its_limit_is_refused(void **state)
{
	static const size_t limits[] = { 10, 100000 };
	enum { MAPS = 600 };
	char *maps = mmap(NULL, MAPS * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(maps, MAP_FAILED);
	for (int i = 0; i < MAPS; i += 2) /* each change of protection is another line */
		assert_int_equal(mprotect(maps + i * 4096, 4096, PROT_NONE), 0);
	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		struct buf text = { 0 };
		struct err e = { 0 };
		char want[100];

		assert_int_equal(file_read("/proc/self/smaps", limits[i], &text, &e), -1);
		snprintf(want, sizeof(want), "/proc/self/smaps has more than %zu bytes, the limit",
			 limits[i]);
		assert_string_equal(e.text, want);
		assert_int_equal(e.code, ERR_LIMIT);
		assert_null(text.data);

		buf_add_text(&text, "before");
		assert_int_equal(file_read("/proc/self/smaps", limits[i], &text, NULL), -1);
		assert_string_equal(text.data, "before");
		buf_release(&text);
	}
	munmap(maps, MAPS * 4096);
}

/* NULL, or the path that could not be written. */
static void *write_often(void *path)
{
	struct err e;

	for (int i = 0; i < 3000; i++)
		if (file_write_atomic(path, STR("x"), &e) < 0)
			return path;
	return NULL;
}

/* The umask belongs to all threads: writing a file uses it and never changes it. */
static void files_follow_the_umask(void **state)
{
	static const mode_t masks[] = { 022, 077, 027, 0 };
	const char *root = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	char dir[64], path[2][80];
	void *failed[2];
	pthread_t thread[2];
	mode_t before = umask(022);
	struct err e = { 0 };
	struct stat st;

	(void)state;
	snprintf(dir, sizeof(dir), "%s/profllm-base-XXXXXX", root);
	assert_non_null(mkdtemp(dir));
	for (int i = 0; i < 2; i++) {
		snprintf(path[i], sizeof(path[i]), "%s/%d", dir, i);
		assert_int_equal(pthread_create(&thread[i], NULL, write_often, path[i]), 0);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], &failed[i]);
	for (int i = 0; i < 2; i++)
		assert_null(failed[i]);
	assert_int_equal(umask(022), 022);
	for (size_t i = 0; i < sizeof(masks) / sizeof(*masks); i++) {
		umask(masks[i]);
		assert_int_equal(file_write_atomic(path[0], STR("y"), &e), 0);
		assert_int_equal(stat(path[0], &st), 0);
		assert_int_equal(st.st_mode & 0777, 0666 & ~masks[i]);
	}
	umask(before);
	unlink(path[0]);
	unlink(path[1]);
	assert_int_equal(rmdir(dir), 0);
}

/* A file is replaced whole, also when the path is a link. */
static void files_are_replaced_whole(void **state)
{
	char dir[] = "/tmp/profllm-base-XXXXXX", path[64], link_path[64];
	struct buf text = { 0 };
	struct err e = { 0 };
	struct stat st;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/a", dir);
	snprintf(link_path, sizeof(link_path), "%s/b", dir);
	assert_int_equal(symlink(path, link_path), 0);
	assert_int_equal(file_write_atomic(path, STR("one"), &e), 0);
	assert_int_equal(file_write_atomic(link_path, STR("two"), &e), 0);
	assert_int_equal(lstat(link_path, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(file_read(path, 100, &text, &e), 0);
	assert_string_equal(text.data, "two");
	/* A link whose file is not there stays one: /dev/stdout of a removed file. */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(file_write_atomic(link_path, STR("three"), &e), 0);
	assert_int_equal(lstat(link_path, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	buf_reset(&text);
	assert_int_equal(file_read(path, 100, &text, &e), 0);
	assert_string_equal(text.data, "three");
	/* Without a limit. */
	assert_int_equal(file_read(path, SIZE_MAX, &text, &e), 0);
	assert_string_equal(text.data, "threethree");
	buf_reset(&text);
	assert_int_equal(file_read(path, 2, &text, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	assert_int_equal(file_write_atomic("/dev/full", STR("x"), &e), -1);
	assert_int_equal(stat("/dev/full", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(file_read(dir, 2, &text, &e), -1);
	buf_release(&text);
	unlink(link_path);
	unlink(path);
	rmdir(dir);
}

/* What comes from a pipe is read like a file, and again by the same path. */
static void pipes_are_files(void **state)
{
	struct buf text = { 0 };
	struct str bytes;
	struct err e = { 0 };
	char path[32];
	int fd[2];

	(void)state;
	assert_int_equal(pipe(fd), 0);
	snprintf(path, sizeof(path), "/dev/fd/%d", fd[0]);
	assert_int_equal(write(fd[1], "one line\n", 9), 9);
	close(fd[1]);
	assert_true(file_is_stream(path));
	assert_int_equal(file_read(path, 100, &text, &e), 0);
	assert_string_equal(text.data, "one line\n");
	assert_int_equal(file_map(path, &bytes, &e), 0);
	assert_true(str_is(bytes, "one line\n"));
	file_unmap(bytes);
	assert_true(file_is_stream(path));
	assert_false(file_is_stream("/etc/passwd"));
	close(fd[0]);

	assert_int_equal(pipe(fd), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd[0]);
	assert_int_equal(write(fd[1], "one line\n", 9), 9);
	close(fd[1]);
	buf_reset(&text);
	assert_int_equal(file_read(path, 8, &text, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	assert_non_null(strstr(e.text, "more than 8 bytes, which is the limit"));
	close(fd[0]);
	buf_release(&text);
}

static void counts_for_people(void **state)
{
	static const struct { size_t n; const char *want; } rows[] = {
		{ 0, "0" }, { 999, "999" }, { 1000, "1,000" }, { 33366, "33,366" },
		{ 1000000, "1,000,000" }, { 12034056, "12,034,056" },
	};
	struct arena a = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_string_equal(arena_count(&a, rows[i].n), rows[i].want);
	arena_release(&a);
}

static void errors_gain_context(void **state)
{
	struct err e = { 0 };

	(void)state;
	assert_int_equal(err_set(&e, ERR_IO, "no %s", "room"), -1);
	assert_int_equal(err_wrap(&e, "--record"), -1);
	assert_string_equal(e.text, "--record: no room");
	assert_int_equal(err_exit_status(&e), 1);
	err_set(&e, ERR_USAGE, "x");
	assert_int_equal(err_exit_status(&e), 2);
	err_set(&e, ERR_CANCELLED, "x");
	assert_int_equal(err_exit_status(&e), 130);
	assert_int_equal(err_set(NULL, ERR_IO, "nobody listens"), -1);
	/* A kind keeps the class that decides the exit status, and its topic through contexts. */
	err_set(&e, ERR_URL_FORM, "x has no scheme");
	assert_int_equal(e.code, ERR_USAGE);
	err_wrap(&e, "--base-url");
	assert_string_equal(err_topic(&e), "url_form");
	assert_int_equal(err_again(&e), ERR_URL_FORM);
	err_set(&e, ERR_IO, "cannot write a: %s", strerror(ENOSPC));
	assert_string_equal(err_topic(&e), "disk_full");
	err_set(&e, ERR_IO, "cannot write a: %s", strerror(ENOENT));
	assert_null(err_topic(&e));
	assert_int_equal(err_again(&e), ERR_IO);
}

/* Whole pages of a part are forgotten (here: zeroed), those at its ends are kept. */
static void whole_pages_are_forgotten(void **state)
{
	enum { PAGES = 5 };
	static const struct { long from, to; const char *want; } row[] = { /* in halves of pages */
		{ 0, 10, "....." }, { 2, 4, "x.xxx" }, { 1, 8, "x...x" }, { 3, 7, "xx.xx" }, { 3, 5, "xxxxx" },
		{ 4, 4, "xxxxx" }, { 2, 9, "x...x" }, { 5, 10, "xxx.." }, { 0, 1, "xxxxx" }, { 0, 2, ".xxxx" },
	};
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		char *p = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		char got[PAGES + 1] = "";

		assert_true(p != MAP_FAILED);
		memset(p, 'x', PAGES * page);
		file_forget((struct str){ p + (size_t)row[i].from * page / 2,
					  (size_t)(row[i].to - row[i].from) * page / 2 });
		for (size_t k = 0; k < PAGES; k++) {
			got[k] = p[k * page] ? p[k * page] : '.';
			assert_int_equal(p[(k + 1) * page - 1], p[k * page]);
		}
		assert_string_equal(got, row[i].want);
		munmap(p, PAGES * page);
	}
}

static void a_clock_that_cannot_be_read_ends_the_program(void **state)
{
	static const char want[] = "profllm: the clock cannot be read: clock_gettime failed\n";
	char got[sizeof(want)] = "";
	int to[2], status;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(to), 0);
	pid = fork();
	if (pid == 0) {
		dup2(to[1], STDERR_FILENO);
		clock_ns(99); /* there is no such clock */
		_exit(0);
	}
	close(to[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1);
	assert_int_equal(read(to[0], got, sizeof(got)), sizeof(want) - 1);
	assert_string_equal(got, want);
	close(to[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_read_whole),
		cmocka_unit_test(numbers_have_a_point_in_any_locale),
		cmocka_unit_test(reals_are_spelled_as_python_spells_them),
		cmocka_unit_test(buffers_stop_at_their_limit),
		cmocka_unit_test(buffers_share_a_meter),
		cmocka_unit_test(slices_are_cut),
		cmocka_unit_test(maps_hold_many),
		cmocka_unit_test(slabs_grow_in_place),
		cmocka_unit_test(valid_utf8_is_what_decodes),
		cmocka_unit_test(broken_utf8_is_replaced),
		cmocka_unit_test(a_name_of_any_length),
		cmocka_unit_test(a_file_that_grows_past_its_limit_is_refused),
		cmocka_unit_test(files_follow_the_umask),
		cmocka_unit_test(files_are_replaced_whole),
		cmocka_unit_test(whole_pages_are_forgotten),
		cmocka_unit_test(pipes_are_files),
		cmocka_unit_test(counts_for_people),
		cmocka_unit_test(errors_gain_context),
		cmocka_unit_test(a_clock_that_cannot_be_read_ends_the_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
