/* SPDX-License-Identifier: Apache-2.0 */
/* Parquet files of other writers: their rows in any order, any columns, and any damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <zlib.h>
#include <zstd.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "input/table/parquet.h"
#include "input/table/table_internal.h"

#define DATA "tests/unit/parquet/"

struct open_file {
	struct buf path;
	struct table_bytes bytes;
	void *state;
};

static struct open_file open_columns(const char *name, const char *const *columns, struct err *e)
{
	struct table_opts o = { .columns = columns };
	struct open_file f = { 0 };

	buf_printf(&f.path, DATA "%s.parquet", name);
	f.bytes.name = f.path.data;
	assert_int_equal(file_map(f.path.data, &f.bytes.all, e), 0);
	f.state = table_parquet.open(&f.bytes, &o, e);
	return f;
}

static void close_file(struct open_file *f)
{
	table_parquet.close(f->state);
	file_unmap(f->bytes.all);
	buf_release(&f->path);
}

static void check_row(void *state, size_t row, struct str expected)
{
	struct json_slice s = { 0 };
	struct err e = { 0 };

	if (table_parquet.row(state, row, &s, &e) < 0)
		fail_msg("row %zu: %s", row, e.text);
	assert_int_equal(s.kind, JSON_OBJECT);
	if (!str_eq(s.raw, expected))
		fail_msg("row %zu: %.*s\ninstead of %.*s", row, (int)s.raw.n, s.raw.p,
			 (int)expected.n, expected.p);
}

/* Every row of a file is the line of the same number: ascending, backwards and at random. */
static void check_rows(const char *name, const char *expected)
{
	struct buf path = { 0 }, text = { 0 };
	struct str rest, line[256];
	struct err e = { 0 };
	struct open_file f = open_columns(name, NULL, &e);
	size_t n = 0, at = 1;

	buf_printf(&path, DATA "%s.jsonl", expected);
	assert_int_equal(file_read(path.data, 1 << 20, &text, &e), 0);
	if (!f.state)
		fail_msg("%s", e.text);
	for (rest = buf_str(&text); rest.n && n < 256; n++)
		line[n] = str_cut(&rest, '\n');
	assert_int_equal(table_parquet.rows(f.state), n);
	for (size_t i = 0; i < n; i++)
		check_row(f.state, i, line[i]);
	for (size_t i = n; i-- > 0;)
		check_row(f.state, i, line[i]);
	for (size_t i = 0; i < 3 * n; i++, at = (at * 48271 + 11) % 2147483647)
		check_row(f.state, at % n, line[at % n]);
	close_file(&f);
	buf_release(&path);
	buf_release(&text);
}

static void test_codecs_and_pages(void **state)
{
	static const char *const codec[] = { "none", "snappy", "gzip", "zstd", "brotli", "lz4" };
	char name[20];

	(void)state;
	for (size_t i = 0; i < sizeof codec / sizeof *codec; i++)
		for (int version = 1; version <= 2; version++) {
			snprintf(name, sizeof name, "%s-v%d", codec[i], version);
			check_rows(name, "mixed");
		}
	check_rows("fallback", "mixed");
}

static void test_shapes(void **state)
{
	static const char *const same[] = {
		"types", "times", "int96", "empty", "stored-decimal", "delta", "duckdb", "bare-list", "two-levels",
		"two-levels-packed", "two-levels-tuple", "two-levels-struct", "old-map",
	};

	(void)state;
	check_rows("nested-v1", "nested");
	check_rows("nested-v2", "nested");
	for (size_t i = 0; i < sizeof same / sizeof *same; i++)
		check_rows(same[i], same[i]);
}

/* ---- columns ---- */

static void test_wanted_columns(void **state)
{
	const char *const some[] = { "tags", "absent", "id", NULL }, *const none[] = { "x", NULL };
	struct err e = { 0 };
	struct open_file f = open_columns("snappy-v1", some, &e);

	(void)state;
	assert_non_null(f.state);
	check_row(f.state, 4, STR("{\"id\": 4, \"tags\": [\"t1\"]}"));
	check_row(f.state, 5, STR("{\"id\": 5, \"tags\": null}"));
	close_file(&f);
	f = open_columns("snappy-v1", none, &e);
	assert_int_equal(table_parquet.rows(f.state), 60);
	check_row(f.state, 59, STR("{}"));
	close_file(&f);
}

/* Damage in a column that is not wanted is never read. */
static void test_unwanted_damage(void **state)
{
	const char *const id[] = { "id", NULL };
	struct err e = { 0 };
	struct open_file f = open_columns("none-v1", id, &e);
	char *copy = mem_copy(f.bytes.all.p, f.bytes.all.n);
	const char *text = memmem(copy, f.bytes.all.n, "row 1 ", 6);
	struct table_bytes bytes = { { copy, f.bytes.all.n }, "copy" };
	struct table_opts o = { .columns = id };
	void *q;

	(void)state;
	assert_non_null(text);
	memset((char *)(uintptr_t)text, 0xff, 60);
	q = table_parquet.open(&bytes, &o, &e);
	assert_non_null(q);
	for (size_t i = 0; i < 60; i++) {
		char line[32];

		snprintf(line, sizeof line, "{\"id\": %zu}", i);
		check_row(q, i, str_of(line));
	}
	table_parquet.close(q);
	free(copy);
	close_file(&f);
}

/* ---- damage ---- */

/* Opening or some row fails with one sentence that names file and place. */
static void check_sentence(void *state, const char *name, const char *sentence, struct err *e)
{
	struct json_slice s;
	int rc = state ? 0 : -1;

	for (size_t i = 0; state && rc == 0 && i < table_parquet.rows(state); i++)
		rc = table_parquet.row(state, i, &s, e);
	assert_int_equal(rc, -1);
	if (!strstr(e->text, sentence) || !strstr(e->text, name))
		fail_msg("\"%s\" has no \"%s\" or \"%s\"", e->text, sentence, name);
}

static void test_damaged_files(void **state)
{
	static const char *const file[][2] = {
		{ "bad-columns", "row group 0 has 1 columns, the schema 2" },
		{ "bad-deep", "columns nest deeper than 64" },
		{ "bad-fewer-children", "the schema has 3 elements, its tree 2" },
		{ "bad-huge-children", "2147483647 children" },
		{ "bad-level", "column \"c\", row group 0: page at byte 67: its levels are damaged" },
		{ "bad-more-children", "the schema ends before all its columns" },
		{ "bad-more-rows", "its values end at row 5" },
		{ "bad-no-row", "page at byte 4: it should begin a row" },
		{ "bad-no-type", "neither a type nor children" },
		{ "bad-other-type", "its type is not the schema's" },
		{ "bad-page-rows", "page at byte 4: 3 rows, its header says 2" },
		{ "bad-siblings", "column \"c.b\", row group 0: row 1 of the group: its levels" },
		{ "bad-siblings-null", "its levels contradict" },
		{ "bad-type", "column \"c\" is of type 77, expected 0 to 7" },
		{ "bad-values", "its values are damaged or too few" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof file / sizeof *file; i++) {
		struct err e = { 0 };
		struct open_file f = open_columns(file[i][0], NULL, &e);

		check_sentence(f.state, file[i][0], file[i][1], &e);
		close_file(&f);
	}
}

/* A good file with some bytes replaced. */
static void check_patch(const char *name, long at, struct str with, size_t keep,
			const char *sentence)
{
	struct err e = { 0 };
	struct open_file f = open_columns(name, NULL, &e);
	size_t n = keep ? keep : f.bytes.all.n;
	char *copy = mem_copy(f.bytes.all.p, n);
	struct table_bytes bytes = { { copy, n }, "patched" };
	struct table_opts o = { 0 };
	void *q;

	memcpy(copy + (at < 0 ? (long)n + at : at), with.p, with.n);
	q = table_parquet.open(&bytes, &o, &e);
	check_sentence(q, "patched", sentence, &e);
	table_parquet.close(q);
	free(copy);
	close_file(&f);
}

static void test_damaged_ends(void **state)
{
	(void)state;
	check_patch("none-v1", 0, STR(""), 11, "11 bytes are too few");
	check_patch("none-v1", 0, STR("PAR2"), 0, "byte 0: not a Parquet file");
	check_patch("none-v1", 0, STR(""), 3000, "byte 2996: the file does not end with PAR1");
	check_patch("none-v1", -4, STR("PARE"), 0, "encrypted");
	check_patch("none-v1", -8, STR("\xff\xff\xff\x0f"), 0, "a footer of 268435455 bytes in a file");
	check_patch("none-v1", -8, STR("\x08\0\0\0"), 0, "the footer");
	check_patch("bare-list", 4, STR("\xff\xff"), 0, "header of the page at byte 4 is damaged");
}

/* A file named "made" of so many zeros and this footer, which it needs while it is open. */
static void *open_footer(struct str footer, size_t pad, struct buf *file, struct err *e)
{
	struct table_bytes bytes;
	struct table_opts o = { 0 };
	uint32_t size = (uint32_t)footer.n;

	buf_add(file, "PAR1", 4);
	while (pad--)
		buf_add_char(file, 0);
	buf_add_str(file, footer);
	buf_add(file, &size, 4);
	buf_add(file, "PAR1", 4);
	bytes = (struct table_bytes){ buf_str(file), "made" };
	return table_parquet.open(&bytes, &o, e);
}

#define S(text) { text, sizeof(text) - 1 }
#define ROOT "\x1c\x48\x01r\x15\x00\x00"                     /* a schema that is only a root */
#define COLUMN(type) "\x2c\x48\x01r\x15\x02\x00" type "\x08\x08\x01" "c" "\x00" /* a root with a column */
#define GROUP(rows) "\x1c\x19\x0c\x16\x00\x16" rows "\x00" /* a row group without columns */

/* Footers whose parts are missing, twice there, in another order or contradict each other. */
static void test_footers(void **state)
{
	/* Fields are numbered: 0x19 is a list one after the last field, 0x39 three, 0x09 any. */
	static const struct { struct str footer; const char *sentence; } row[] = {
		{ S("\x15\x02\x19" ROOT "\x16\x02\x19" GROUP("\x02") "\x00"), NULL },
		{ S("\x15\x02\x39" GROUP("\x02") "\x09\x04" ROOT "\x16\x02\x00"),
		  "row groups before the schema" },
		{ S("\x15\x02\x19" ROOT "\x16\x04\x19" GROUP("\x02") "\x09\x08" GROUP("\x02") "\x00"),
		  "row groups twice" },
		{ S("\x15\x02\x19" ROOT "\x09\x04" ROOT "\x00"), "two schemas" },
		{ S("\x15\x02\x26\x00\x00"), "the footer has no schema" },
		{ S("\x15\x02\x19" ROOT "\x16\x04\x19" GROUP("\x02") "\x00"),
		  "the footer counts 2 rows, its row groups 1" },
		{ S("\x15\x02\x19" ROOT "\x16\x00\x19" GROUP("\x02") "\x00"),
		  "the footer counts 0 rows, its row groups 1" },
		{ S("\x15\x02\x19" COLUMN("\x15\x10") "\x00"), "column \"c\" is of type 8, expected 0 to 7" },
		{ S("\x15\x02\x19" COLUMN("\x15\x01") "\x00"), "column \"c\" is of type -1, expected 0 to 7" },
		{ S("\x15\x02\x19" COLUMN("\x15\x0e\x15\x00") "\x00"), "column \"c\" has values of 0 bytes" },
		{ S("\x15\x02\x19" COLUMN("\x15\x0e") "\x00"), "column \"c\" has values of " },
		{ S("\x15\x02\x19" COLUMN("\x15\x00") "\x16\x02\x19" GROUP("\x02") "\x00"),
		  "row group 0 has 0 columns, the schema 1" },
		{ S("\x15\x02\x19" COLUMN("\x15\x00") "\x16\x02\x19\x1c\x36\x02\x00\x00"),
		  "row group 0 has no columns" },
		{ S("\x15\x02\x19" ROOT "\x00"), "the footer counts -1 rows, its row groups 0" },
		{ S("\x15\x02\x19" ROOT "\x16\x02\x19" GROUP("\x02")), "the footer is damaged" },
		{ S("\x15\x02\x19" ROOT "\x16\x01\x19" GROUP("\x01") "\x00"), "row group 0 has -1 rows" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct buf file = { 0 };
		struct err e = { 0 };
		void *q = open_footer(row[i].footer, 0, &file, &e);

		if (row[i].sentence)
			check_sentence(q, "made", row[i].sentence, &e);
		else
			check_row(q, 0, STR("{}"));
		table_parquet.close(q);
		buf_release(&file);
	}
}

/* The only row group of a file says that it has n rows; the number is in two varints. */
static void test_more_rows_than_bytes(void **state)
{
	static const struct { uint64_t rows; const char *sentence; } rows[] = {
		{ 100000000, "100000000 rows cannot be in " }, { 1000000, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct buf file = { 0 }, footer = { 0 }, number = { 0 };
		struct err e = { 0 };
		void *q;

		for (uint64_t v = rows[i].rows * 2; v; v >>= 7)
			buf_add_char(&number, (char)((v & 0x7f) | (v > 0x7f ? 0x80 : 0)));
		/* version, a schema that is only a root, rows, one group without columns */
		buf_add(&footer, "\x15\x02\x19\x1c\x48\x01r\x15\x00\x00\x16", 11);
		buf_add_str(&footer, buf_str(&number));
		buf_add(&footer, "\x19\x1c\x19\x0c\x16\x00\x16", 7);
		buf_add_str(&footer, buf_str(&number));
		buf_add(&footer, "\x00\x00", 2);
		q = open_footer(buf_str(&footer), 400, &file, &e);
		if (rows[i].sentence)
			check_sentence(q, "made", rows[i].sentence, &e);
		else if (!q)
			fail_msg("%s", e.text);
		else
			assert_int_equal(table_parquet.rows(q), rows[i].rows);
		table_parquet.close(q);
		buf_release(&file);
		buf_release(&footer);
		buf_release(&number);
	}
}

/* ---- orders and lost columns ---- */

/* A page that cannot be read costs its own rows only. */
static void test_rows_beside_damage(void **state)
{
	struct err e = { 0 };
	struct open_file f = open_columns("bad-level", NULL, &e);
	struct json_slice s;

	(void)state;
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < 10; i++)
			check_row(f.state, i, STR("{\"c\": 7}"));
		assert_int_equal(table_parquet.row(f.state, 12, &s, &e), -1);
		check_row(f.state, 3, STR("{\"c\": 7}"));
	}
	close_file(&f);
}

static void test_cancel(void **state)
{
	atomic_bool cancel = false;
	struct table_opts o = { .cancel = &cancel };
	struct err e = { 0 };
	struct open_file f = open_columns("nested-v1", NULL, &e);
	void *q = table_parquet.open(&f.bytes, &o, &e);
	struct json_slice s;

	(void)state;
	assert_int_equal(table_parquet.row(q, 0, &s, &e), 0);
	atomic_store(&cancel, true);
	assert_int_equal(table_parquet.row(q, 39, &s, &e), -1);
	assert_int_equal(e.code, ERR_CANCELLED);
	table_parquet.close(q);
	close_file(&f);
	table_parquet.close(NULL);
}

/* ---- codecs ---- */

static void check_unpack(enum codec codec, struct str packed, size_t size, const char *expected)
{
	struct buf out = { 0 };
	struct err e = { 0 };
	int rc = codec_unpack(codec, packed, size, &out, &e);

	if (rc == 0)
		assert_true(str_is(buf_str(&out), expected));
	else if (!strstr(e.text, expected))
		fail_msg("\"%s\" has no \"%s\"", e.text, expected);
	buf_release(&out);
}

static void test_unpack(void **state)
{
	const struct str snappy = STR("\x05\x10hello"), lz4 = STR("\x50hello");
	const struct str framed = STR("\0\0\0\x05\0\0\0\x06\x50hello\0\0\0\x01\0\0\0\x02\x10!");

	(void)state;
	check_unpack(CODEC_SNAPPY, snappy, 5, "hello");
	check_unpack(CODEC_SNAPPY, snappy, 6, "unpack to 5 bytes, not to 6");
	check_unpack(CODEC_SNAPPY, snappy, 4, "unpack to more than 4 bytes");
	check_unpack(CODEC_SNAPPY, STR("\x05\x10hel"), 5, "that are not SNAPPY");
	check_unpack(CODEC_SNAPPY, STR("\xff\xff\xff\xff\x03\x00"), 1073741823, "cannot unpack");
	check_unpack(CODEC_LZ4_RAW, lz4, 5, "hello");
	check_unpack(CODEC_LZ4, lz4, 5, "hello");
	check_unpack(CODEC_LZ4, framed, 6, "hello!");
	check_unpack(CODEC_LZ4, framed, 7, "not LZ4");
	check_unpack(CODEC_GZIP, STR("junk"), 5, "not GZIP");
	check_unpack(CODEC_ZSTD, STR("junk"), 5, "not ZSTD");
	check_unpack(CODEC_BROTLI, STR("junk"), 5, "BROTLI");
	check_unpack(CODEC_BROTLI, STR(""), 1 << 30, "not BROTLI");
	check_unpack(CODEC_LZO, STR("x"), 5, "codec 3 (LZO)");
	check_unpack(CODEC_ZSTD, STR("junk"), PARQUET_PAGE_BYTES_MAX + 1, "the limit is");
}

/* Far more than is likely comes out: the room grows with it, up to what was declared. */
static void test_unpack_much(void **state)
{
	enum { MUCH = 3000000 };
	char *plain = mem_alloc(MUCH), *packed = mem_alloc(MUCH);
	struct buf out = { 0 };
	struct err e = { 0 };
	uLongf n = MUCH;

	(void)state;
	memset(plain, 'x', MUCH);
	assert_int_equal(compress((Bytef *)packed, &n, (Bytef *)plain, MUCH), Z_OK);
	assert_int_equal(codec_unpack(CODEC_GZIP, (struct str){ packed, n }, MUCH, &out, &e), 0);
	assert_true(str_eq(buf_str(&out), (struct str){ plain, MUCH }));
	assert_int_equal(codec_unpack(CODEC_GZIP, (struct str){ packed, n }, 1000, &out, &e), -1);
	n = ZSTD_compress(packed, MUCH, plain, MUCH, 3);
	assert_int_equal(codec_unpack(CODEC_ZSTD, (struct str){ packed, n }, MUCH, &out, &e), 0);
	assert_true(str_eq(buf_str(&out), (struct str){ plain, MUCH }));
	assert_int_equal(codec_unpack(CODEC_ZSTD, (struct str){ packed, n }, MUCH + 1, &out, &e),
			 -1);
	assert_non_null(strstr(e.text, "unpack to 3000000 bytes, not to 3000001"));
	buf_release(&out);
	free(plain);
	free(packed);
}

/* ---- bits, deltas, Thrift ---- */

static void test_runs(void **state)
{
	/* Three times 5; eight numbers of 3 bits, 0 to 7; then an end in the middle. */
	struct runs r = runs(STR("\x06\x05\x03\x88\xc6\xfa\x02"), 3);
	struct runs zeros = runs(STR(""), 0), high = runs_msb(STR("\x05\x39\x77"), 3);

	(void)state;
	for (uint32_t i = 0; i < 11; i++) {
		assert_true(r.left || runs_fill(&r));
		assert_int_equal(runs_take(&r), i < 3 ? 5 : i - 3);
	}
	assert_false(runs_fill(&r));
	assert_true(runs_fill(&zeros));
	assert_int_equal(runs_take(&zeros), 0);
	for (uint32_t i = 0; i < 8; i++) {
		assert_true(high.left || runs_fill(&high));
		assert_int_equal(runs_take(&high), i);
	}
	assert_false(high.left || runs_fill(&high));
}

static void test_deltas(void **state)
{
	/* Blocks of 8 in one miniblock; 3 numbers: 7, then two steps of 1 to 3 bits above -2. */
	const struct str three = STR("\x08\x01\x03\x0e\x03\x02\x0d\0");
	const uint8_t wide[9] = { 0x80, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f };
	struct deltas d;
	int64_t v;

	(void)state;
	assert_true(deltas_begin(&d, three));
	assert_ptr_equal(deltas_end(d), three.p + three.n);
	assert_true(deltas_next(&d, &v) && v == 7);
	assert_true(deltas_next(&d, &v) && v == 6);
	assert_true(deltas_next(&d, &v) && v == 7);
	assert_false(deltas_next(&d, &v));
	assert_false(deltas_begin(&d, STR("\x08\x01\x03")));
	assert_false(deltas_begin(&d, STR("\x08\x00\x03\x0e")));
	assert_false(deltas_begin(&d, STR("\x09\x01\x03\x0e")));
	assert_true(deltas_begin(&d, STR("\x08\x01\xff\xff\xff\xff\x0f\x0e\x03\x41")));
	assert_null(deltas_end(d));
	assert_true(deltas_next(&d, &v));
	assert_false(deltas_next(&d, &v));
	assert_true(bits_at(wide, wide + 9, 7, 64) == UINT64_MAX);
	assert_true(bits_at(wide, wide + 9, 9, 64) == UINT64_MAX >> 2);
	assert_true(bits_at(wide, wide + 9, 71, 64) == 0);
}

static void test_thrift(void **state)
{
	const struct str fields = STR("\x15\x0d\x18\x02hi\x11\x1c\x15\x02\x00\x00");
	struct thrift t = thrift(fields);
	struct thrift_field f = { 0 }, inner = { 0 }, item;
	char deep[64];

	(void)state;
	assert_true(thrift_next(&t, &f) && f.id == 1 && thrift_i32(&t, &f) == -7);
	assert_true(thrift_next(&t, &f) && f.id == 2);
	assert_true(str_is(thrift_bytes(&t, &f), "hi"));
	assert_true(thrift_next(&t, &f) && f.id == 3 && thrift_bool(&t, &f));
	assert_true(thrift_next(&t, &f) && f.id == 4);
	thrift_skip(&t, &f);
	assert_false(thrift_next(&t, &f) || t.is_bad);
	assert_false(thrift_next(&t, &f));
	assert_true(t.is_bad);
	t = thrift(STR("\xf9\x05\x01"));
	f = (struct thrift_field){ 0 };
	assert_true(thrift_next(&t, &f));
	assert_int_equal(thrift_list(&t, &f, &item), 0);
	memset(deep, 0x1c, sizeof deep);
	t = thrift((struct str){ deep, sizeof deep });
	assert_true(thrift_next(&t, &inner));
	thrift_skip(&t, &inner);
	assert_true(t.is_bad);
}

/* ---- spelling ---- */

static void check_spelling(struct parquet_leaf leaf, struct str value, const char *expected)
{
	struct buf out = { 0 };
	struct err e = { 0 };
	int rc = parquet_spell(&leaf, value, &out, &e);

	assert_string_equal(rc == 0 ? out.data : e.text, expected);
	buf_release(&out);
}

static void test_spelling(void **state)
{
	struct parquet_leaf day = { .type = PARQUET_INT32, .width = 4, .meaning = MEANS_DATE };
	struct parquet_leaf nanos = { .type = PARQUET_INT96, .width = 12 };
	struct parquet_leaf decimal = { .type = PARQUET_BYTES, .meaning = MEANS_DECIMAL,
					.scale = 3 };
	struct parquet_leaf half = { .type = PARQUET_FIXED, .width = 2, .meaning = MEANS_HALF };
	struct parquet_leaf text = { .type = PARQUET_BYTES, .meaning = MEANS_TEXT };
	struct parquet_leaf time = { .type = PARQUET_INT32, .width = 4, .meaning = MEANS_TIME,
				     .digits = 3 };

	(void)state;
	check_spelling(day, STR("\xff\xff\xff\xff"), "\"1969-12-31\"");
	check_spelling(day, STR("\x00\x00\x00\x80"), "\"-5877641-06-23\"");
	check_spelling(day, STR("\xff\xff\xff\x7f"), "\"+5881580-07-11\"");
	check_spelling(nanos, STR("\0\0\0\0\0\0\0\x80\0\0\0\x80"), "\"-5884615-02-03T00:12:43.145224192\"");
	check_spelling(nanos, STR("\1\0\0\0\0\0\0\0\x8c\x3d\x25\0"), "\"1970-01-01T00:00:00.000000001\"");
	check_spelling(decimal, STR(""), "\"0.000\"");
	check_spelling(decimal, STR("\xff"), "\"-0.001\"");
	check_spelling(decimal, STR("\x80\x00"), "\"-32.768\"");
	check_spelling(decimal, STR("123456789012345678901234567890123"),
		       "a decimal of 33 bytes; the widest have 32");
	check_spelling(half, STR("\x01\x80"), "-5.960464477539063e-08");
	check_spelling(half, STR("\x00\x7c"), "Infinity");
	check_spelling(half, STR("\x01\x7c"), "NaN");
	check_spelling(text, STR("a\xff\"\n"), "\"a\xef\xbf\xbd\\\"\\n\"");
	check_spelling(time, STR("\xff\xff\xff\xff"), "-1");
}

/* Fewer than four bytes are left for a length. */
static void test_cut_lengths(void **state)
{
	const struct parquet_leaf text = { .type = PARQUET_BYTES };
	const struct parquet_leaf truth = { .type = PARQUET_BOOLEAN };
	const struct str two_empty = { "\0\0\0\0\0\0\0\0", 8 };
	struct parquet_dictionary d = { 0 };
	struct parquet_values v = { 0 };
	struct err e;

	(void)state;
	for (size_t n = 8; n < 12; n++) {
		char *bytes = mem_copy("\4\0\0\0abcd\0\0\0", n);

		assert_int_equal(parquet_dictionary_read(&d, &text, (struct str){ bytes, n }, 2,
							 &e), -1);
		free(bytes);
	}
	assert_int_equal(parquet_dictionary_read(&d, &text, two_empty, 2, &e), 0);
	parquet_dictionary_release(&d);
	for (size_t n = 1; n < 5; n++) {
		char *bytes = mem_copy("\1\0\0\0", n);

		assert_int_equal(parquet_values_begin(&v, &truth, ENCODING_RLE,
						      (struct str){ bytes, n }, NULL, &e), -1);
		free(bytes);
	}
	parquet_values_release(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_codecs_and_pages),
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_wanted_columns),
		cmocka_unit_test(test_unwanted_damage),
		cmocka_unit_test(test_damaged_files),
		cmocka_unit_test(test_damaged_ends),
		cmocka_unit_test(test_footers),
		cmocka_unit_test(test_more_rows_than_bytes),
		cmocka_unit_test(test_rows_beside_damage),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_unpack),
		cmocka_unit_test(test_unpack_much),
		cmocka_unit_test(test_runs),
		cmocka_unit_test(test_deltas),
		cmocka_unit_test(test_thrift),
		cmocka_unit_test(test_spelling),
		cmocka_unit_test(test_cut_lengths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
