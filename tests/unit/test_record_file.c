/* SPDX-License-Identifier: Apache-2.0 */
/* Record files: what is written comes back, broken files are noticed, nothing else happens. */
/* threads: yes */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/record/block.h"
#include "client/record/file.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "record_same.h"
#include "scratch.h"


static char *path_of(const char *name)
{
	return file_join(dir, name);
}

static void test_round_trip(void **state)
{
	char *path = path_of("round.rec");
	struct record a = { 0 }, b = { 0 };
	struct record_info info = { 0 };
	struct err e = { 0 };

	(void)state;
	full_record(&a, 200);
	assert_int_equal(record_file_save(&a, NULL, path, &e), 0);
	assert_int_equal(record_file_load(&b, &info, path, &e), 0);
	same_record(&a, &b);
	assert_true(info.is_complete);
	assert_int_equal(info.n_missing, 0);
	assert_int_equal(info.n_hosts, 1);
	assert_int_equal(info.host[0].n_shards, 3);
	assert_true(info.host[0].name[0]);
	assert_true(info.host[0].stop_real_ns >= info.host[0].start_real_ns);
	assert_true(llabs(record_host_step_ns(&info.host[0])) < 100000000);
	assert_true(info.bytes_ignored == 0 && info.blocks_skipped == 0);
	record_release(&a);
	record_release(&b);
	record_info_release(&info);
	free(path);
}

/* What was planned and never sent is not in the file, neither saved whole nor streamed. */
static void test_unsent(void **state)
{
	char *path = path_of("unsent.rec");
	struct record a = { 0 };
	struct err e = { 0 };

	(void)state;
	full_record(&a, 50);
	for (uint32_t i = 30; i < 40; i++)
		a.row[i].state = REQ_UNSENT;
	for (int is_streamed = 0; is_streamed < 2; is_streamed++) {
		struct record_info info = { 0 };
		struct record b = { 0 };

		if (is_streamed)
			assert_int_equal(record_stream_close(record_stream_open(&a, NULL, path, &e),
							     &e), 0);
		else
			assert_int_equal(record_file_save(&a, NULL, path, &e), 0);
		assert_int_equal(record_file_load(&b, &info, path, &e), 0);
		assert_true(info.is_complete);
		assert_int_equal(b.n_rows, 40);
		assert_int_equal(info.n_missing, 10);
		same_row(&a, &a.row[29], &b, &b.row[29]);
		same_row(&a, &a.row[40], &b, &b.row[30]);
		record_release(&b);
		record_info_release(&info);
	}
	record_release(&a);
	free(path);
}

static void test_empty(void **state)
{
	char *path = path_of("empty.rec");
	struct record a = { 0 }, b = { 0 };
	struct record_info info = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(record_init(&a, 0, 1, 0, false, false, &e), 0);
	assert_int_equal(record_file_save(&a, NULL, path, &e), 0);
	assert_int_equal(record_file_load(&b, &info, path, &e), 0);
	same_record(&a, &b);
	record_release(&a);
	record_release(&b);
	record_info_release(&info);
	free(path);
}

/* Many rows: several batches. */
static void test_batches(void **state)
{
	char *path = path_of("many.rec");
	struct record a = { 0 }, b = { 0 };
	struct record_info info = { 0 };
	struct err e = { 0 };

	(void)state;
	full_record(&a, 9000);
	assert_int_equal(record_file_save(&a, NULL, path, &e), 0);
	assert_int_equal(record_file_load(&b, &info, path, &e), 0);
	same_record(&a, &b);
	record_release(&a);
	record_release(&b);
	record_info_release(&info);
	free(path);
}

/* ---- broken files ---- */

static void read_sample(struct buf *bytes, struct record *a, uint32_t n)
{
	char *path = path_of("sample.rec");
	struct err e = { 0 };

	full_record(a, n);
	assert_int_equal(record_file_save(a, NULL, path, &e), 0);
	assert_int_equal(file_read(path, 1 << 30, bytes, &e), 0);
	free(path);
}

static size_t block_bytes(struct str bytes, size_t at)
{
	return BLOCK_HEAD_BYTES + peek_u32(bytes.p + at + 8, 0);
}

/* Cut at every byte: before the first block boundary nothing, after it what was whole. */
static void test_truncation(void **state)
{
	struct buf bytes = { 0 };
	struct record a = { 0 };
	size_t boundary = RECORD_MAGIC_BYTES, before_batch = 0, after_batch = 0;

	(void)state;
	read_sample(&bytes, &a, 12);
	while (boundary < bytes.len) {
		size_t next = boundary + block_bytes(buf_str(&bytes), boundary);

		if (peek_u32(bytes.data + boundary, 0) == BLOCK_BATCH) {
			before_batch = boundary;
			after_batch = next;
		}
		boundary = next;
	}
	assert_int_equal(boundary, bytes.len);
	assert_true(before_batch > 0);
	for (size_t n = 0; n < bytes.len; n++) {
		struct record_info info = { 0 };
		struct record b = { 0 };
		struct err e = { 0 };
		/* A copy of exactly that size, so that a read past the end is noticed. */
		char *copy = mem_copy(bytes.data, n);
		int rc = record_file_parse(&b, &info, (struct str){ copy, n }, "cut", &e);

		assert_int_equal(rc, n < RECORD_MAGIC_BYTES ? -1 : 0);
		assert_false(info.is_complete);
		if (rc == 0) {
			assert_int_equal(b.n_rows, n >= after_batch ? 12 : 0);
			if (n >= before_batch && n < after_batch)
				assert_int_equal(info.n_missing, 12);
			if (n >= after_batch)
				same_row(&a, &a.row[11], &b, &b.row[11]);
		}
		record_release(&b);
		record_info_release(&info);
		free(copy);
	}
	record_release(&a);
	buf_release(&bytes);
}

/* Every flipped bit is detected: the file is refused, or reported as incomplete. */
static void test_bit_flips(void **state)
{
	struct buf bytes = { 0 };
	struct record a = { 0 };

	(void)state;
	read_sample(&bytes, &a, 6);
	for (size_t i = 0; i < bytes.len; i++) {
		struct record_info info = { 0 };
		struct record b = { 0 };
		struct err e = { 0 };

		bytes.data[i] ^= (char)(1 << i % 8);
		if (record_file_parse(&b, &info, buf_str(&bytes), "flip", &e) == 0) {
			assert_false(info.is_complete);
			assert_true(info.bytes_ignored > 0);
		} else {
			assert_int_equal(e.code, ERR_PARSE);
		}
		record_release(&b);
		record_info_release(&info);
		bytes.data[i] ^= (char)(1 << i % 8);
	}
	record_release(&a);
	buf_release(&bytes);
}

/* A crash leaves start and stop to be found in the rows, and gaps in the numbering. */
static void test_broken_off(void **state)
{
	struct record_info info = { 0 }, here = { 0 };
	struct record a = { 0 }, b = { 0 };
	struct buf out = { 0 };
	struct batch batch;
	struct err e = { 0 };

	(void)state;
	full_record(&a, 20);
	record_info_here(&here, 4, 3);
	{
		char *path = path_of("partial.rec");
		struct record whole = { 0 };
		struct buf bytes = { 0 };
		size_t at = RECORD_MAGIC_BYTES;

		/* Everything before the first batch, then a batch of some rows. */
		assert_int_equal(record_file_save(&a, &here, path, &e), 0);
		assert_int_equal(file_read(path, 1 << 30, &bytes, &e), 0);
		while (peek_u32(bytes.data + at, 0) != BLOCK_BATCH)
			at += block_bytes(buf_str(&bytes), at);
		buf_add(&out, bytes.data, at);
		buf_release(&bytes);
		record_release(&whole);
		free(path);
	}
	batch_init(&batch);
	batch_add(&batch, &a, 17);
	batch_add(&batch, &a, 3);
	batch_add(&batch, &a, 8);
	batch_flush(&batch, &out);
	batch_add(&batch, &a, 7);
	batch_flush(&batch, &out);
	batch_release(&batch);
	assert_int_equal(record_file_parse(&b, &info, buf_str(&out), "partial", &e), 0);
	assert_false(info.is_complete);
	assert_int_equal(info.n_missing, 16);
	assert_int_equal(info.host[0].number, 4);
	assert_int_equal(b.n_rows, 4);
	assert_int_equal(b.row[0].sample, 3);
	assert_int_equal(b.row[3].sample, 17);
	assert_int_equal(b.row[2].parent, 1); /* row 8 waited for row 7 */
	assert_int_equal(b.row[1].parent, RECORD_NONE);
	assert_true(b.start_ns <= b.row[0].due_ns && b.stop_ns == b.row[3].end_ns);
	same_chains(&a, &a.row[17], &b, &b.row[3]);
	record_release(&a);
	record_release(&b);
	record_info_release(&info);
	record_info_release(&here);
	buf_release(&out);
}

/* ---- hand-made files ---- */

struct made { struct buf b; size_t at; };

static void begin(struct made *m, unsigned type)
{
	m->at = block_begin(&m->b, (enum block_type)type);
}

static void end(struct made *m)
{
	block_end(&m->b, m->at);
}

static void add_column(struct made *m, unsigned type, unsigned size, const char *name)
{
	buf_add_char(&m->b, (char)type);
	buf_add_char(&m->b, (char)size);
	put_u16(&m->b, (uint16_t)strlen(name));
	put_u16(&m->b, 0);
	put_u16(&m->b, 0);
	buf_add_text(&m->b, name);
}

static void add_shape(struct made *m, uint32_t rows, uint32_t shards)
{
	begin(m, BLOCK_SHAPE);
	put_u32(&m->b, rows);
	put_u32(&m->b, shards);
	for (uint32_t i = 0; i < shards && shards <= 8; i++)
		buf_add_char(&m->b, 0);
	end(m);
}

/* Two columns, one of which no version knows; one row. */
static void make(struct made *m, unsigned state_type, uint32_t index, uint16_t shard)
{
	buf_add(&m->b, RECORD_MAGIC, RECORD_MAGIC_BYTES);
	begin(m, BLOCK_COLUMNS);
	put_u32(&m->b, 3);
	add_column(m, COLUMN_f64, 8, "from_the_future");
	add_column(m, state_type, state_type == COLUMN_u8 ? 1 : 4, "state");
	add_column(m, COLUMN_u16, 2, "shard");
	end(m);
	begin(m, 77);
	buf_add_text(&m->b, "a block of a later version");
	end(m);
	add_shape(m, 2, 2);
	begin(m, BLOCK_BATCH);
	put_u32(&m->b, 1);
	put_u32(&m->b, SECTION_INDEX);
	put_u32(&m->b, 4);
	put_u32(&m->b, index);
	put_u32(&m->b, 99);
	put_u32(&m->b, 3);
	buf_add_text(&m->b, "new");
	put_u32(&m->b, SECTION_COLUMNS);
	put_u32(&m->b, 8 + (state_type == COLUMN_u8 ? 1 : 4) + 2);
	put_i64(&m->b, 0);
	buf_add_char(&m->b, REQ_DONE);
	if (state_type != COLUMN_u8)
		buf_add(&m->b, "\0\0\0", 3);
	put_u16(&m->b, shard);
	end(m);
}

static void test_unknown_is_skipped(void **state)
{
	struct record_info info = { 0 };
	struct record r = { 0 };
	struct made m = { 0 };
	struct err e = { 0 };

	(void)state;
	make(&m, COLUMN_u8, 1, 1);
	assert_int_equal(record_file_parse(&r, &info, buf_str(&m.b), "made", &e), 0);
	assert_int_equal(info.blocks_skipped, 1);
	assert_int_equal(info.n_missing, 1);
	assert_int_equal(r.n_rows, 1);
	assert_int_equal(r.row[0].state, REQ_DONE);
	assert_int_equal(r.row[0].sent_ns, 0);
	assert_int_equal(r.row[0].parent, RECORD_NONE);
	assert_int_equal(r.row[0].shard, 1);
	record_release(&r);
	record_info_release(&info);
	buf_release(&m.b);
}

static void refuse(struct made *m, const char *what)
{
	struct record_info info = { 0 };
	struct record r = { 0 };
	struct err e = { 0 };

	assert_int_equal(record_file_parse(&r, &info, buf_str(&m->b), "made", &e), -1);
	if (!strstr(e.text, what))
		fail_msg("got '%s', expected '%s'", e.text, what);
	assert_null(r.row);
	assert_null(info.host);
	buf_release(&m->b);
	*m = (struct made){ 0 };
}

static void test_refused(void **state)
{
	struct made m = { 0 };

	(void)state;
	buf_add_text(&m.b, "PLLMREC2");
	refuse(&m, "does not begin with PLLMREC1");
	make(&m, COLUMN_u32, 0, 0);
	refuse(&m, "column state has type 3, expected 1");
	make(&m, COLUMN_u8, 2, 0);
	refuse(&m, "row 2 occurs twice or is beyond the last one");
	make(&m, COLUMN_u8, 0, 2);
	refuse(&m, "rows of shard 2, but there are 2 shards");
	make(&m, COLUMN_u8, 0, 60000);
	refuse(&m, "shard 60000");
	make(&m, COLUMN_u8, 0, 0);
	begin(&m, BLOCK_COLUMNS);
	put_u32(&m.b, 1);
	add_column(&m, COLUMN_u8, 1, "state");
	end(&m);
	refuse(&m, "a second column directory");
	make(&m, COLUMN_u8, 0, 0);
	add_shape(&m, 1, 5000);
	refuse(&m, "the shape is malformed");
	make(&m, COLUMN_u8, 0, 0);
	begin(&m, BLOCK_END);
	put_i64(&m.b, -1);
	put_i64(&m.b, 0);
	put_i64(&m.b, 0);
	put_i64(&m.b, 0);
	end(&m);
	refuse(&m, "the end block is malformed");
	make(&m, COLUMN_u8, 0, 0);
	begin(&m, BLOCK_HOST);
	put_i64(&m.b, 0);
	end(&m);
	refuse(&m, "a host block is malformed");
	make(&m, COLUMN_u8, 0, 0);
	begin(&m, BLOCK_SERIES);
	put_i64(&m.b, 1);
	put_i64(&m.b, 0);
	end(&m);
	refuse(&m, "a series has a wrong length");
	make(&m, COLUMN_u8, 0, 0);
	begin(&m, BLOCK_NOTE);
	put_i64(&m.b, 1);
	end(&m);
	refuse(&m, "a note has a wrong length");
}

static void test_refused_batches(void **state)
{
	static const struct {
		uint32_t section, bytes;
		const char *what;
	} cases[] = {
		{ SECTION_INDEX, 8, "the index of a batch has a wrong length" },
		{ SECTION_COLUMNS, 1, "the columns of a batch have a wrong length" },
		{ SECTION_GAPS, 12, "section 3 of a batch has a wrong length" },
		{ SECTION_MARKS, 2, "section 5 of a batch has a wrong length" },
		{ SECTION_GAPS, 4000, "a section of a batch runs past its block" },
		{ 0, 4, "a batch without index or columns" },
	};
	struct made m = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		make(&m, COLUMN_u8, 0, 0);
		begin(&m, BLOCK_BATCH);
		put_u32(&m.b, 1);
		put_u32(&m.b, cases[i].section);
		put_u32(&m.b, cases[i].bytes);
		for (uint32_t k = 0; k < cases[i].bytes && k < 100; k++)
			buf_add_char(&m.b, 0);
		end(&m);
		refuse(&m, cases[i].what);
	}
	buf_add(&m.b, RECORD_MAGIC, RECORD_MAGIC_BYTES);
	begin(&m, BLOCK_BATCH);
	put_u32(&m.b, 1);
	end(&m);
	refuse(&m, "a batch before the column directory");
	buf_add(&m.b, RECORD_MAGIC, RECORD_MAGIC_BYTES);
	begin(&m, BLOCK_COLUMNS);
	put_u32(&m.b, 0);
	end(&m);
	refuse(&m, "the column directory has 0 columns");
	buf_add(&m.b, RECORD_MAGIC, RECORD_MAGIC_BYTES);
	begin(&m, BLOCK_COLUMNS);
	put_u32(&m.b, 1);
	add_column(&m, COLUMN_u8, 2, "state");
	end(&m);
	refuse(&m, "column 0 of the directory is malformed");
}

/* Values that later arithmetic could not bear. */
static void test_refused_values(void **state)
{
	struct record_info info = { 0 };
	struct record a = { 0 }, b = { 0 };
	struct err e = { 0 };
	char *path = path_of("values.rec");

	(void)state;
	assert_int_equal(sample_record(&a, 3, 1), 0);
	a.row[1].sent_ns = INT64_MAX;
	assert_int_equal(record_file_save(&a, NULL, path, &e), 0);
	assert_int_equal(record_file_load(&b, &info, path, &e), -1);
	assert_non_null(strstr(e.text, "column sent_ns is out of range"));
	a.row[1].sent_ns = 1;
	a.row[2].due_s = 1.0 / (a.row[0].fail - a.row[0].fail);
	assert_int_equal(record_file_save(&a, NULL, path, &e), 0);
	assert_int_equal(record_file_load(&b, &info, path, &e), -1);
	assert_non_null(strstr(e.text, "is not a number"));
	assert_int_equal(record_file_load(&b, &info, "/no/such/file", &e), -1);
	assert_int_equal(e.code, ERR_IO);
	record_release(&a);
	free(path);
}

static void test_save_errors(void **state)
{
	struct record a = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(sample_record(&a, 3, 1), 0);
	assert_int_equal(record_file_save(&a, NULL, "/no/such/dir/x.rec", &e), -1);
	assert_int_equal(e.code, ERR_IO);
	assert_non_null(strstr(e.text, "/no/such/dir/x.rec"));
	assert_null(record_stream_open(&a, NULL, "/no/such/dir/x.rec", &e));
	assert_non_null(strstr(e.text, "/no/such/dir/x.rec"));
	record_release(&a);
}

static int64_t sum_of_gaps(const struct record *r, const struct request_row *row)
{
	int64_t *gaps = mem_array(row->n_events, sizeof(*gaps)), sum = 0;

	record_gaps(r, row, gaps);
	for (uint32_t i = 0; i < row->n_events; i++)
		sum += gaps[i];
	free(gaps);
	return sum;
}

/* Gaps beyond 4.29 s are kept to the nanosecond, however many and however long they are. */
static void test_long_gaps(void **state)
{
	static const int64_t gap[] = { UINT32_MAX - 1ll, UINT32_MAX, 1ll << 32, 5000000123, 17,
				       7200000000001, (1ll << 45) + 3, 86400000000000007 / 7 };
	enum { GAPS = sizeof(gap) / sizeof(*gap) };
	struct record r;
	struct request_row *row;
	int64_t got[GAPS];
	struct err e;

	(void)state;
	assert_int_equal(record_init(&r, 1, 1, 0, false, false, &e), 0);
	record_add_rows(&r, 1);
	row = &r.row[0];
	row->sent_ns = SAMPLE_START_NS;
	for (int i = 0; i < GAPS; i++)
		sample_event(&r, row, gap[i], 0);
	record_gaps(&r, row, got);
	assert_memory_equal(got, gap, sizeof(gap));
	assert_true(sum_of_gaps(&r, row) == row->last_event_ns - row->sent_ns);
	/* As older files have it: in microseconds, a single one restored by the sum. */
	record_add_rows(&r, 1);
	row = &r.row[1];
	row->sent_ns = SAMPLE_START_NS;
	sample_event(&r, row, 5, 0);
	record_mark(&r.shard[0], row, MARK_LONG_GAP, 5000000);
	sample_event(&r, row, UINT32_MAX - 1ll, 0);
	row->last_event_ns = row->sent_ns + 5 + 5000000123;
	record_gaps(&r, row, got);
	assert_true(got[1] == 5000000123);
	record_release(&r);
}

/* Without room events are not counted; other rows go on while they have some; it is said. */
static void test_full_shard(void **state)
{
	struct record r;
	struct request_row *row;
	struct buf text = { 0 };
	struct err e;

	(void)state;
	assert_int_equal(record_init(&r, 2, 1, 0, true, true, &e), 0);
	record_add_rows(&r, 2);
	row = r.row;
	row[0].sent_ns = row[1].sent_ns = SAMPLE_START_NS;
	r.shard[0].gaps.count_max = 4; /* blocks: two for each row */
	assert_true(record_event(&r.shard[0], &row[1], 1, 0));
	for (int i = 0; i < EVENT_GAPS; i++)
		assert_true(record_event(&r.shard[0], &row[0], 2, 3));
	assert_false(r.shard[0].is_full);
	assert_false(record_event(&r.shard[0], &row[0], 2, 3));
	assert_true(r.shard[0].is_full);
	assert_int_equal(row[0].n_events, EVENT_GAPS);
	assert_true(sum_of_gaps(&r, &row[0]) == 2 * EVENT_GAPS);
	assert_true(record_event(&r.shard[0], &row[1], 1, 0)); /* its block has places left */
	assert_int_equal(row[1].n_events, 2);
	record_release(&r);

	/* Texts and marks that have no room take no events with them. */
	assert_int_equal(record_init(&r, 1, 1, 0, false, true, &e), 0);
	record_add_rows(&r, 1);
	r.shard[0].texts.count_max = 1;
	r.shard[0].marks.count_max = 0;
	for (int i = 0; i < 3; i++) {
		char part[100];

		memset(part, 'a' + i, sizeof(part));
		record_text(&r.shard[0], &r.row[0], (struct str){ part, sizeof(part) });
		record_mark(&r.shard[0], &r.row[0], MARK_SHARED, 1);
		assert_true(record_event(&r.shard[0], &r.row[0], 1, 0));
	}
	assert_true(r.shard[0].is_full);
	assert_int_equal(r.row[0].n_events, 3);
	assert_int_equal(r.row[0].text_bytes, TEXT_BYTES);
	record_text_of(&r, &r.row[0], &text);
	assert_int_equal(text.len, TEXT_BYTES);
	buf_release(&text);
	record_release(&r);

	/* Room for the gap and none for its skew: something is missing, and that is said. */
	assert_int_equal(record_init(&r, 1, 1, 0, true, false, &e), 0);
	record_add_rows(&r, 1);
	r.shard[0].gaps.count_max = 1;
	assert_true(record_event(&r.shard[0], &r.row[0], 1, 1));
	assert_true(r.shard[0].is_full);
	record_release(&r);
}

/* On the disk rows and chains are what they are in memory, grow, and may pass to another record. */
static void test_on_disk(void **state)
{
	const uint64_t n = EVENT_GAPS * ((1ull << 18) + 5000); /* more than has space at first */
	struct record r, all;
	struct record_info info = { .is_complete = true }, part = { .is_complete = true };
	struct err e = { 0 };
	int64_t sum;

	(void)state;
	assert_int_equal(record_init(&r, 2, 1, 0, false, true, &e), 0);
	if (record_to_disk(&r, NULL, &e) < 0) { /* TMPDIR cannot have files without a name */
		record_release(&r);
		skip();
	}
	record_add_rows(&r, 2);
	r.start_ns = SAMPLE_START_NS;
	for (int i = 0; i < 2; i++)
		r.row[i].sent_ns = SAMPLE_START_NS;
	for (uint64_t k = 0; k < n;)
		if (record_event(&r.shard[0], &r.row[1], (int64_t)(k % 1000), 0))
			k++;
		else
			usleep(1000); /* more space comes ten times a second */
	record_text(&r.shard[0], &r.row[0], STR("text"));
	record_finish(&r.row[0], REQ_DONE);
	record_finish(&r.row[1], REQ_DONE);
	sum = sum_of_gaps(&r, &r.row[1]);
	assert_true(sum > (int64_t)n * 499);

	record_add_rows(&r, 100000); /* more than there is room for: rows move into memory */
	assert_int_equal(r.row[1].n_events, n);
	r.n_rows = 2;
	record_empty(&all, 2, SAMPLE_START_NS);
	assert_int_equal(record_rejoin(&all, &info, &r, &part, &e), 0);
	assert_true(sum_of_gaps(&all, &all.row[1]) == sum);
	record_release(&all);
	record_info_release(&info);
}

/* Memory for a million answers that may all end early is not taken before the first byte. */
static void test_prefault_is_bounded(void **state)
{
	const uint64_t hint = PREFAULT_EVENTS_MAX + 4000000ull;
	size_t page = 4096, last = PREFAULT_EVENTS_MAX / EVENT_GAPS * sizeof(struct gap_block);
	unsigned char in_memory[2];
	struct record r;
	struct err e;

	(void)state;
	assert_int_equal(record_init(&r, 1, 1, hint, false, false, &e), 0);
	assert_int_equal(mincore(r.shard[0].gaps.data, page, &in_memory[0]), 0);
	/* A huge page at the end may reach 2 MB further. */
	assert_int_equal(mincore(r.shard[0].gaps.data + last / page * page + (4u << 20), page,
				 &in_memory[1]), 0);
	assert_true(in_memory[0] & 1);
	assert_false(in_memory[1] & 1);
	record_release(&r);
}

static void test_crc(void **state)
{
	(void)state;
	assert_int_equal(record_crc(0, "123456789", 9), 0xe3069283);
	assert_int_equal(record_crc(record_crc(0, "1234", 4), "56789", 5), 0xe3069283);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip), cmocka_unit_test(test_empty),
		cmocka_unit_test(test_unsent),
		cmocka_unit_test(test_batches), cmocka_unit_test(test_truncation),
		cmocka_unit_test(test_bit_flips), cmocka_unit_test(test_broken_off),
		cmocka_unit_test(test_unknown_is_skipped), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_refused_batches), cmocka_unit_test(test_refused_values),
		cmocka_unit_test(test_save_errors), cmocka_unit_test(test_crc),
		cmocka_unit_test(test_long_gaps), cmocka_unit_test(test_full_shard),
		cmocka_unit_test(test_on_disk),
		cmocka_unit_test(test_prefault_is_bounded),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
