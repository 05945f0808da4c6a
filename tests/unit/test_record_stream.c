/* SPDX-License-Identifier: Apache-2.0 */
/* Records written while load runs, and records of several hosts joined. */
/* threads: yes */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>
#include <pthread.h>
#include <sys/resource.h>

#include "client/record/file.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "record_same.h"
#include "scratch.h"


static char *path_of(const char *name)
{
	return file_join(dir, name);
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

/* A file that cannot grow: reported once, at the end, and the record in memory is whole. */
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

/* The record of the rows that process k of 3 sent, by way of a file; its clock is ahead. */
static void part_of(uint32_t k, int64_t ahead_ns, struct record *r, struct record_info *info)
{
	char *path = path_of("part.rec");
	struct record a = { 0 };
	struct err e = { 0 };

	full_record(&a, 60);
	for (uint32_t i = 0; i < 60; i++) {
		struct request_row *row = &a.row[i];

		if (i % 3 != k)
			row->state = REQ_UNSENT;
		row->parent = i >= 3 && i % 3 == k ? i - 3 : RECORD_NONE;
		row->due_ns += ahead_ns;
		row->sent_ns += ahead_ns;
		row->end_ns += ahead_ns;
	}
	a.start_ns += ahead_ns;
	a.stop_ns += ahead_ns + k;
	assert_int_equal(record_file_save(&a, NULL, path, &e), 0);
	assert_int_equal(record_file_load(r, info, path, &e), 0);
	record_release(&a);
	free(path);
}

/* Three processes with one plan and three clocks: the rows are those of one process. */
static void test_rejoin(void **state)
{
	struct record a = { 0 }, into, part;
	struct record_info all = { .is_complete = true }, info;
	struct err e = { 0 };

	(void)state;
	full_record(&a, 60);
	record_empty(&into, 60, a.start_ns);
	for (uint32_t k = 0; k < 3; k++) {
		part_of(k, k * 1000000007LL, &part, &info);
		assert_int_equal(part.n_rows, 20);
		assert_int_equal(record_rejoin(&into, &all, &part, &info, &e), 0);
		assert_null(part.row);
	}
	assert_int_equal(into.n_rows, 60);
	assert_int_equal(into.n_shards, 9);
	assert_true(into.stop_ns == a.stop_ns + 2);
	assert_int_equal(all.n_hosts, 3);
	assert_int_equal(all.host[2].first_shard, 6);
	for (uint32_t i = 0; i < 60; i++) {
		assert_true(into.row[i].sent_ns == a.row[i].sent_ns);
		assert_true(into.row[i].end_ns == a.row[i].end_ns);
		assert_int_equal(into.row[i].sample, a.row[i].sample);
		assert_int_equal(into.row[i].shard, i % 3 * 3 + a.row[i].shard);
		assert_int_equal(into.row[i].parent, i >= 3 ? i - 3 : RECORD_NONE);
		same_chains(&a, &a.row[i], &into, &into.row[i]);
	}
	/* A part that is given twice. */
	part_of(1, 0, &part, &info);
	assert_int_equal(record_rejoin(&into, &all, &part, &info, &e), -1);
	assert_string_equal(e.text, "request 1 is in two parts of the record, or not in the plan of the "
			    "first part");
	record_release(&part);
	record_info_release(&info);
	record_release(&a);
	record_release(&into);
	record_info_release(&all);
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
		cmocka_unit_test(test_stream), cmocka_unit_test(test_stream_full),
		cmocka_unit_test(test_stream_breaks), cmocka_unit_test(test_merge),
		cmocka_unit_test(test_rejoin), cmocka_unit_test(test_merge_limits),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
