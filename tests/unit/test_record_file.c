/* SPDX-License-Identifier: Apache-2.0 */
/* Record files: what is written comes back, broken files are noticed, nothing else happens. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/mem.h"
#include "record/block.h"
#include "record/file.h"
#include "record_sample.h"

static char dir[] = "/tmp/profllm-record-XXXXXX";

static char *path_of(const char *name)
{
	return file_join(dir, name);
}

static int make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	char cmd[100];

	(void)state;
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	return system(cmd);
}

/* ---- comparing ---- */

static void same_chains(const struct record *a, const struct request_row *x,
			const struct record *b, const struct request_row *y)
{
	const struct record_mark *m = NULL, *k = NULL;
	struct buf p = { 0 }, q = { 0 };
	int64_t *u = mem_array(x->n_events + 1, 8), *v = mem_array(x->n_events + 1, 8);

	record_gaps(a, x, u);
	record_gaps(b, y, v);
	assert_memory_equal(u, v, x->n_events * 8);
	assert_int_equal(!x->skew_head, !y->skew_head);
	record_skews(a, x, u);
	record_skews(b, y, v);
	assert_memory_equal(u, v, x->n_events * 8);
	do {
		m = record_marks(a, x, m);
		k = record_marks(b, y, k);
		assert_int_equal(!m, !k);
		if (m && k)
			assert_true(m->event == k->event && m->kind == k->kind && m->value == k->value);
	} while (m && k);
	record_text_of(a, x, &p);
	record_text_of(b, y, &q);
	assert_true(str_eq(buf_str(&p), buf_str(&q)));
	buf_reset(&p);
	buf_reset(&q);
	record_error_of(a, x, &p);
	record_error_of(b, y, &q);
	assert_true(str_eq(buf_str(&p), buf_str(&q)));
	buf_release(&p);
	buf_release(&q);
	free(u);
	free(v);
}

static void same_row(const struct record *a, const struct request_row *x, const struct record *b,
		     const struct request_row *y)
{
#define X(type, name, unit, meaning) assert_true(x->name == y->name);
	RECORD_COLUMNS(X)
#undef X
	same_chains(a, x, b, y);
}

static void same_record(const struct record *a, const struct record *b)
{
	assert_int_equal(a->n_rows, b->n_rows);
	assert_int_equal(a->n_shards, b->n_shards);
	assert_true(a->start_ns == b->start_ns && a->stop_ns == b->stop_ns);
	assert_int_equal(a->is_interrupted, b->is_interrupted);
	assert_int_equal(!a->meta, !b->meta);
	if (a->meta)
		assert_string_equal(a->meta, b->meta);
	for (uint32_t i = 0; i < a->n_rows; i++)
		same_row(a, &a->row[i], b, &b->row[i]);
	for (uint32_t i = 0; i < a->n_shards; i++) {
		assert_int_equal(a->shard[i].keeps_skew, b->shard[i].keeps_skew);
		assert_int_equal(a->shard[i].keeps_text, b->shard[i].keeps_text);
		assert_int_equal(a->shard[i].is_full, b->shard[i].is_full);
	}
	assert_int_equal(a->n_series, b->n_series);
	for (size_t i = 0; i < a->n_series; i++) {
		assert_string_equal(a->series[i].name, b->series[i].name);
		assert_string_equal(a->series[i].unit, b->series[i].unit);
		assert_string_equal(a->series[i].labels, b->series[i].labels);
		assert_int_equal(a->series[i].n, b->series[i].n);
		for (size_t k = 0; k < a->series[i].n; k++)
			assert_true(a->series[i].point[k].at_ns == b->series[i].point[k].at_ns &&
				    a->series[i].point[k].value == b->series[i].point[k].value);
	}
	assert_int_equal(a->n_notes, b->n_notes);
	for (size_t i = 0; i < a->n_notes; i++) {
		assert_true(a->note[i].at_ns == b->note[i].at_ns);
		assert_string_equal(a->note[i].kind, b->note[i].kind);
		assert_string_equal(a->note[i].text, b->note[i].text);
	}
}

/* Everything that a record can hold, long gaps and successors too. */
static void full_record(struct record *r, uint32_t n)
{
	struct record_series *s;

	assert_int_equal(sample_record(r, n, 3), 0);
	r->meta = arena_text(&r->arena, STR("{\"a\": 1}"));
	r->is_interrupted = true;
	r->shard[1].is_full = true;
	for (uint32_t i = 1; i < n; i += 7)
		r->row[i].parent = i - 1;
	record_mark(&r->shard[0], &r->row[0], MARK_SHARED, 1);
	sample_event(r, &r->row[0], 5000000123, 0);
	record_mark(&r->shard[0], &r->row[0], MARK_TOKENS, 3);
	sample_event(r, &r->row[0], 17, UINT32_MAX);
	s = record_series_add(r, "gpu_power", "W", "gpu=\"0\"");
	for (int k = 0; k < 100; k++)
		record_series_point(s, SAMPLE_START_NS + k, k * 1.5);
	record_series_add(r, "empty", "", "");
	record_note_add(r, 5, "note", "with text");
	record_note_add(r, 6, "", "");
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

/* Every flipped bit is noticed: refused, or told as a file that broke off. */
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

static void begin(struct made *m, unsigned type) { m->at = block_begin(&m->b, (enum block_type)type); }
static void end(struct made *m) { block_end(&m->b, m->at); }

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
	refuse(&m, "row 2 is there twice or beyond the last");
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

static void test_crc(void **state)
{
	(void)state;
	assert_int_equal(record_crc(0, "123456789", 9), 0xe3069283);
	assert_int_equal(record_crc(record_crc(0, "1234", 4), "56789", 5), 0xe3069283);
}

/* ---- streaming ---- */

struct runner { struct record *r; uint32_t shard; };

static void *run_shard(void *arg)
{
	struct runner *run = arg;
	struct sample_draw d = { 12345 + run->shard };

	for (uint32_t i = 0; i < run->r->n_rows; i++) {
		if (i % run->r->n_shards != run->shard || i == 4999)
			continue; /* the last one never finishes; it is written at the end */
		sample_row(run->r, i, &d);
		if (i % 500 == 0)
			usleep(40000);
	}
	return NULL;
}

static void test_stream(void **state)
{
	char *path = path_of("stream.rec");
	struct record a = { 0 }, b = { 0 };
	struct record_info info = { 0 };
	struct runner run[2] = { { &a, 0 }, { &a, 1 } };
	struct record_stream *s;
	struct err e = { 0 };
	pthread_t thread[2];

	(void)state;
	assert_int_equal(record_init(&a, 5000, 2, 0, true, true, &e), 0);
	record_add_rows(&a, 5000);
	a.meta = "{\"early\": true}";
	s = record_stream_open(&a, NULL, path, &e);
	assert_non_null(s);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, run_shard, &run[i]), 0);
	/* What is on disk can be read at any time; soon there are rows. */
	for (int tries = 0; tries < 100 && b.n_rows == 0; tries++) {
		record_release(&b);
		record_info_release(&info);
		usleep(100000);
		assert_int_equal(record_file_load(&b, &info, path, &e), 0);
	}
	assert_false(info.is_complete);
	assert_true(b.n_rows > 0 && b.n_rows + info.n_missing == 5000);
	assert_int_equal(__atomic_load_n(&a.row[0].state, __ATOMIC_ACQUIRE), b.row[0].state);
	same_row(&a, &a.row[0], &b, &b.row[0]);
	assert_string_equal(b.meta, "{\"early\": true}");
	record_release(&b);
	record_info_release(&info);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	a.meta = "{\"late\": true}";
	a.start_ns = SAMPLE_START_NS;
	a.stop_ns = SAMPLE_START_NS + 1;
	record_note_add(&a, 1, "k", "t");
	assert_int_equal(record_stream_close(s, &e), 0);
	assert_int_equal(record_file_load(&b, &info, path, &e), 0);
	assert_true(info.is_complete);
	assert_true(info.host[0].stop_mono_ns > info.host[0].start_mono_ns);
	same_record(&a, &b);
	record_release(&a);
	record_release(&b);
	record_info_release(&info);
	free(path);
	assert_int_equal(record_stream_close(NULL, &e), 0);
}

/* A file that cannot grow: told once, at the end, and the record in memory is whole. */
static void test_stream_full(void **state)
{
	struct record a = { 0 };
	struct record_stream *s;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(sample_record(&a, 100, 1), 0);
	s = record_stream_open(&a, NULL, "/dev/full", &e);
	if (s) /* the device takes the opening only when it is not flushed */
		assert_int_equal(record_stream_close(s, &e), -1);
	assert_non_null(strstr(e.text, "/dev/full"));
	assert_non_null(strstr(e.text, "No space left"));
	record_release(&a);
}

/* The limit is reached while load runs, after the opening was written. */
static void test_stream_breaks(void **state)
{
	char *path = path_of("limited.rec");
	struct record_info info = { 0 };
	struct record a = { 0 }, b = { 0 };
	struct rlimit old, low;
	struct record_stream *s;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(sample_record(&a, 3000, 1), 0);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	low = old;
	low.rlim_cur = 100000;
	setrlimit(RLIMIT_FSIZE, &low);
	s = record_stream_open(&a, NULL, path, &e);
	assert_non_null(s);
	assert_int_equal(record_stream_close(s, &e), -1);
	setrlimit(RLIMIT_FSIZE, &old);
	assert_non_null(strstr(e.text, "incomplete: File too large"));
	assert_int_equal(record_file_load(&b, &info, path, &e), 0);
	assert_false(info.is_complete);
	record_release(&a);
	record_release(&b);
	record_info_release(&info);
	free(path);
}

/* ---- merging ---- */

static void test_merge(void **state)
{
	struct record part[2] = { 0 }, a = { 0 }, into = { 0 };
	struct record_info info[2] = { 0 }, all = { 0 };
	struct buf warnings = { 0 };
	struct err e = { 0 };

	(void)state;
	full_record(&a, 30);
	for (int k = 0; k < 2; k++) {
		full_record(&part[k], 30);
		part[k].row[29].phase = PHASE_WARMUP;
		record_info_here(&info[k], (uint32_t)k, 3);
		snprintf(info[k].host[0].name, 20, "host%d", k);
		info[k].host[0].stop_real_ns = info[k].host[0].start_real_ns + 1000;
		info[k].host[0].stop_mono_ns = info[k].host[0].start_mono_ns + 1000;
	}
	part[1].start_ns += 3000000000;
	part[1].stop_ns += 3000000000;
	info[1].host[0].stop_real_ns += 5000000;
	info[1].is_complete = false;
	assert_int_equal(record_merge(&into, &all, part, info, 2, &warnings, &e), 0);
	assert_int_equal(into.n_rows, 60);
	assert_int_equal(into.n_shards, 6);
	assert_int_equal(into.n_series, 4);
	assert_int_equal(into.n_notes, 4);
	assert_string_equal(into.meta, "{\"a\": 1}");
	assert_true(into.is_interrupted && !all.is_complete);
	assert_true(into.start_ns == a.start_ns && into.stop_ns == a.stop_ns + 3000000000);
	assert_int_equal(into.row[58].phase, PHASE_WARMUP);
	assert_int_equal(into.row[59].phase, PHASE_WARMUP);
	assert_int_equal(into.row[8].parent, 7);
	assert_int_equal(into.row[29 + 8].parent, 29 + 7);
	assert_int_equal(into.row[59].parent, 29 + 28);
	assert_int_equal(into.row[29 + 8].shard, 3 + 8 % 3);
	same_chains(&a, &a.row[0], &into, &into.row[29]);
	same_chains(&a, &a.row[29], &into, &into.row[59]);
	assert_int_equal(all.n_hosts, 2);
	assert_string_equal(all.host[1].name, "host1");
	assert_int_equal(all.host[1].first_shard, 3);
	assert_non_null(strstr(warnings.data, "The clock of host host1 moved by 5.000 ms"));
	assert_null(strstr(warnings.data, "host0"));
	assert_non_null(strstr(warnings.data, "The hosts began 3.000 s apart"));
	assert_null(part[0].row);
	{
		/* A merged record goes to a file and comes back, hosts and all. */
		char *path = path_of("merged.rec");
		struct record back = { 0 };
		struct record_info back_info = { 0 };

		assert_int_equal(record_file_save(&into, &all, path, &e), 0);
		assert_int_equal(record_file_load(&back, &back_info, path, &e), 0);
		same_record(&into, &back);
		assert_int_equal(back_info.n_hosts, 2);
		assert_string_equal(back_info.host[1].name, "host1");
		record_release(&back);
		record_info_release(&back_info);
		free(path);
	}
	record_release(&a);
	record_release(&into);
	record_info_release(&all);
	buf_release(&warnings);
}

static void test_merge_limits(void **state)
{
	struct record part[2] = { 0 }, into = { 0 };
	struct record_info info[2] = { 0 }, all = { 0 };
	struct err e = { 0 };

	(void)state;
	part[0].n_rows = part[1].n_rows = REQUESTS_MAX;
	assert_int_equal(record_merge(&into, &all, part, info, 2, NULL, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	part[0].n_rows = part[1].n_rows = 0;
	part[0].n_shards = part[1].n_shards = RECORD_SHARDS_MAX;
	assert_int_equal(record_merge(&into, &all, part, info, 2, NULL, &e), -1);
	assert_non_null(strstr(e.text, "8192 shards"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip), cmocka_unit_test(test_empty),
		cmocka_unit_test(test_batches), cmocka_unit_test(test_truncation),
		cmocka_unit_test(test_bit_flips), cmocka_unit_test(test_broken_off),
		cmocka_unit_test(test_unknown_is_skipped), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_refused_batches), cmocka_unit_test(test_refused_values),
		cmocka_unit_test(test_save_errors), cmocka_unit_test(test_crc),
		cmocka_unit_test(test_stream), cmocka_unit_test(test_stream_full),
		cmocka_unit_test(test_stream_breaks), cmocka_unit_test(test_merge),
		cmocka_unit_test(test_merge_limits),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
