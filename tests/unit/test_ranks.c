/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_ranks.c - processes that mpirun started as one run, here threads over a library that stands
 * in for Open MPI's (tests/fake/mpi.c): what they tell each other, clocks, lost ranks and files.
 *
 * threads: yes
 */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "host/ranks/ranks.h"
#include "fake_gpus.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))
#define N 3
#define MS 1000000ll

static struct {
	void (*be)(int rank, int size);
	int (*finalized)(void);
	int (*send)(const void *data, int n, void *type, int to, int tag, void *comm);
	int (*receive)(void *data, int n, void *type, int from, int tag, void *comm, void *status);
} mpi;

static int load(void **state)
{
	void *library = dlopen(fake_library("libfake-mpi.so"), RTLD_NOW | RTLD_GLOBAL);

	if (!library || make_dir(state) < 0)
		return -1;
	*(void **)&mpi.be = dlsym(library, "fake_mpi_be");
	*(void **)&mpi.finalized = dlsym(library, "fake_mpi_finalized");
	*(void **)&mpi.send = dlsym(library, "MPI_Send");
	*(void **)&mpi.receive = dlsym(library, "MPI_Recv");
	setenv("OMPI_COMM_WORLD_SIZE", "3", 1);
	return 0;
}

static void test_started(void **state)
{
	static const struct { const char *size; bool is; } row[] = {
		{ NULL, false }, { "", false }, { "1", false }, { "2", true }, { "100", true }, { "x", false },
		{ "-2", false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		if (row[i].size)
			setenv("OMPI_COMM_WORLD_SIZE", row[i].size, 1);
		else
			unsetenv("OMPI_COMM_WORLD_SIZE");
		assert_int_equal(ranks_are_started(), row[i].is);
	}
	setenv("OMPI_COMM_WORLD_SIZE", "3", 1);
}

/* Places on the machine, which the environment names; and what is refused. */
static void test_joining(void **state)
{
	static const struct {
		const char *rank, *size;
		int ranks;
		unsigned local, n_local;
		const char *want;
	} row[] = {
		{ "2", "4", 2, 2, 4, NULL },
		{ NULL, NULL, 2, 0, 1, NULL },
		{ "x", "y", 2, 0, 1, NULL },
		{ "4", "4", 2, 0, 0, "mpirun says that this is process 4 of 4 on this machine" },
		{ "0", "0", 2, 0, 0, "mpirun says that this is process 0 of 0 on this machine" },
		{ "0", "1", RANKS_MAX, 0, 1, NULL },
		{ "0", "1", RANKS_MAX + 1, 0, 0,
		  "mpirun started 1025 processes; the limit is 1024 (RANKS_MAX)" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct err e = { 0 };
		struct ranks r;
		int rc;

		if (row[i].rank) {
			setenv("OMPI_COMM_WORLD_LOCAL_RANK", row[i].rank, 1);
			setenv("OMPI_COMM_WORLD_LOCAL_SIZE", row[i].size, 1);
		} else {
			unsetenv("OMPI_COMM_WORLD_LOCAL_RANK");
			unsetenv("OMPI_COMM_WORLD_LOCAL_SIZE");
		}
		mpi.be(row[i].ranks - 1, row[i].ranks);
		rc = ranks_join(&r, &e);
		if (row[i].want) {
			assert_int_equal(rc, -1);
			assert_string_equal(e.text, row[i].want);
		} else {
			char ignored[256];

			assert_int_equal(rc, 0);
			assert_int_equal(r.rank, row[i].ranks - 1);
			assert_int_equal(r.n, row[i].ranks);
			assert_int_equal(r.local, row[i].local);
			assert_int_equal(r.n_local, row[i].n_local);
			mpi.be(0, row[i].ranks);
			mpi.receive(ignored, sizeof(ignored), NULL, row[i].ranks - 1, 1, NULL,
				    NULL);
		}
		free(r.peer);
	}
	unsetenv("OMPI_COMM_WORLD_LOCAL_RANK");
	unsetenv("OMPI_COMM_WORLD_LOCAL_SIZE");
	setenv("FAKE_MPI_FAILS", "1", 1);
	{
		struct err e = { 0 };
		struct ranks r;

		assert_int_equal(ranks_join(&r, &e), -1);
		assert_string_equal(e.text, "mpirun started this process, but MPI_Init failed");
	}
	unsetenv("FAKE_MPI_FAILS");
}

static void test_parts(void **state)
{
	static const struct { uint32_t whole; int n; uint32_t want[3];
	} row[] = {
		{ 10, 3, { 4, 3, 3 } },
		{ 9, 3, { 3, 3, 3 } },
		{ 2, 3, { 1, 1, 0 } },
		{ 0, 2, { 0, 0 } },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++)
		for (int rank = 0; rank < row[i].n; rank++) {
			struct ranks r = { .rank = rank, .n = row[i].n };

			assert_int_equal(ranks_part(&r, row[i].whole), row[i].want[rank]);
		}
}

/* ---- a whole run ---- */

struct run {
	int rank;
	char shared[16];
	int64_t begin_ns, start_ns, end_ns; /* monotonic */
	int agreed[2];
	struct err refused, delivered;
	int rc;
};

static void count_ticks(void *self)
{
	++*(int *)self;
}

static void check_peer(struct ranks *r, int i)
{
	char path[64], facts[8];
	struct buf text = { 0 };
	struct err e = { 0 };

	snprintf(facts, sizeof(facts), "facts %d", i);
	assert_true(r->peer[i].has_ended && !r->peer[i].is_lost && r->peer[i].is_same_clock);
	assert_int_equal(r->peer[i].done, 100 * i);
	assert_int_equal(r->peer[i].failed, 10 * i);
	assert_int_equal(r->peer[i].tokens, 1000 * i);
	assert_string_equal(r->peer[i].facts, facts);
	assert_int_equal(r->peer[i].offset_ns, 0);
	assert_int_equal(r->peer[i].error_ns, 0);
	assert_int_equal(r->peer[i].drift_ns, 0);
	assert_true(*r->peer[i].host);
	assert_true(r->peer[i].silence_ns < RANK_SILENT_NS);
	snprintf(path, sizeof(path), "%s/taken", dir);
	if (i == 1) {
		assert_int_equal(ranks_take(r, i, path, &e), 0);
		assert_int_equal(file_read(path, 100, &text, &e), 0);
		assert_string_equal(text.data, "the record");
		buf_release(&text);
		return;
	}
	assert_int_equal(ranks_take(r, i, path, &e), -1);
	assert_memory_equal(e.text, "rank 2 on ", 10);
	assert_non_null(strstr(e.text, " delivered no record"));
	assert_true(r->peer[i].is_lost);
}

static void *rank_main(void *self)
{
	struct run *x = self;
	struct ranks r;
	struct err e = { 0 };
	char path[64], facts[8];
	int ticks = 0;

	mpi.be(x->rank, N);
	x->rc = ranks_join(&r, &e);
	snprintf(x->shared, sizeof(x->shared), x->rank ? "mine" : "of rank 0");
	x->rc |= ranks_share(&r, x->shared, sizeof(x->shared), &e);
	x->agreed[0] = ranks_agree(&r, 0, &e);
	if (x->rank)
		err_set(&x->refused, ERR_RUN, "no %d", x->rank);
	x->agreed[1] = ranks_agree(&r, x->rank ? -1 : 0, &x->refused);
	x->begin_ns = clock_mono_ns();
	x->rc |= ranks_start(&r, &x->start_ns, &e);
	x->end_ns = clock_mono_ns();
	if (x->rank) {
		ranks_tick(&r, 1, 2, 3);
		ranks_tick(&r, (uint64_t)x->rank * 100, (uint64_t)x->rank * 10,
			   (uint64_t)x->rank * 1000);
		snprintf(facts, sizeof(facts), "facts %d", x->rank);
		ranks_ended(&r, facts, sizeof(facts));
		ranks_check_clocks(&r);
		snprintf(path, sizeof(path), "%s/%s", dir, x->rank == 1 ? "record" : "missing");
		x->rc |= ranks_deliver(&r, path, &x->delivered) != (x->rank == 1 ? 0 : -1);
	} else {
		ranks_tick(&r, 0, 0, 0);
		ranks_wait(&r, count_ticks, &ticks);
		ranks_check_clocks(&r);
		check_peer(&r, 1);
		check_peer(&r, 2);
	}
	ranks_leave(&r);
	return NULL;
}

static void test_run(void **state)
{
	struct run run[N] = { 0 };
	pthread_t thread[N];
	char path[64];
	int before = mpi.finalized();
	struct err e;

	(void)state;
	snprintf(path, sizeof(path), "%s/record", dir);
	assert_int_equal(file_write_atomic(path, STR("the record"), &e), 0);
	for (int i = 1; i < N; i++) {
		run[i].rank = i;
		assert_int_equal(pthread_create(&thread[i], NULL, rank_main, &run[i]), 0);
	}
	rank_main(&run[0]);
	for (int i = 1; i < N; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < N; i++) {
		assert_int_equal(run[i].rc, 0);
		assert_string_equal(run[i].shared, "of rank 0");
		assert_int_equal(run[i].agreed[0], 0);
		assert_int_equal(run[i].agreed[1], -1);
		assert_true(run[i].start_ns <= run[i].end_ns + 100 * MS);
	}
	assert_true(run[0].start_ns >= run[0].begin_ns + 100 * MS);
	assert_memory_equal(run[0].refused.text, "rank 1 on ", 10);
	assert_non_null(strstr(run[0].refused.text, ": no 1"));
	assert_string_equal(run[2].refused.text, "no 2");
	assert_int_equal(run[1].delivered.code, ERR_NONE);
	assert_int_equal(run[2].delivered.code, ERR_IO);
	assert_int_equal(mpi.finalized(),
			 before + 2); /* rank 0 has lost one, for which it would wait */
}

/* ---- a rank that is played here: its messages have these tags ---- */

enum {
	HELLO = 1,
	OUTCOME = 3,
	VERDICT = 4,
	CLOCK = 5,
	START = 6,
	REPORT = 7,
	GO = 9,
	BYTES = 10,
	PIECE = 11
};

struct hello { char host[RANK_HOST_BYTES], boot_id[40]; };
struct outcome { int rc; struct err err; };

/* Its clock, when it is asked at that time. */
struct played { int64_t ahead_ns; bool is_elsewhere; int64_t start_ns; };

static void *play(void *self)
{
	struct played *p = self;
	struct hello hello = { .host = "played" };
	struct outcome outcome = { 0 };
	int64_t now;

	mpi.be(1, 2);
	if (!p->is_elsewhere) {
		FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");

		if (f && fread(hello.boot_id, 1, sizeof(hello.boot_id) - 1, f) == 0)
			hello.boot_id[0] = 0;
		if (f)
			fclose(f);
	}
	mpi.send(&hello, sizeof(hello), NULL, 0, HELLO, NULL);
	mpi.send(&outcome, sizeof(outcome), NULL, 0, OUTCOME, NULL);
	mpi.receive(&outcome, sizeof(outcome), NULL, 0, VERDICT, NULL, NULL);
	for (int k = 0; k < 64; k++) {
		mpi.receive(&now, sizeof(now), NULL, 0, CLOCK, NULL, NULL);
		now += p->ahead_ns;
		mpi.send(&now, sizeof(now), NULL, 0, CLOCK, NULL);
	}
	mpi.receive(&p->start_ns, sizeof(p->start_ns), NULL, 0, START, NULL, NULL);
	return NULL;
}

/* Clocks of one machine are one unless they differ by more than half a round trip. */
static void test_clocks(void **state)
{
	static const struct { int64_t ahead_ns; bool is_elsewhere, is_zero;
	} row[] = {
		{ 0, false, true },
		{ 0, true, false },
		{ 5000 * MS, false, false },
		{ -5000 * MS, true, false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct played p = { row[i].ahead_ns, row[i].is_elsewhere, 0 };
		int64_t before_ns, start_ns, half_ns;
		pthread_t thread;
		struct err e = { 0 };
		struct ranks r;

		mpi.be(0, 2);
		assert_int_equal(pthread_create(&thread, NULL, play, &p), 0);
		assert_int_equal(ranks_join(&r, &e), 0);
		assert_string_equal(r.peer[1].host, "played");
		assert_int_equal(r.peer[1].is_same_clock, !row[i].is_elsewhere);
		before_ns = clock_real_ns();
		assert_int_equal(ranks_start(&r, &start_ns, &e), 0);
		pthread_join(thread, NULL);
		if (row[i].is_zero) {
			assert_true(r.peer[1].offset_ns == 0 && r.peer[1].error_ns == 0);
		} else {
			/* It read its clock as the question was sent: half a trip too early. */
			half_ns = row[i].ahead_ns - r.peer[1].offset_ns;
			assert_true(half_ns >= 0);
			assert_int_equal(r.peer[1].error_ns, half_ns + 1);
		}
		assert_true(p.start_ns >= before_ns + 100 * MS + r.peer[1].offset_ns);
		assert_true(p.start_ns <= clock_real_ns() + 100 * MS + r.peer[1].offset_ns);
		assert_true(r.peer[1].heard_ns > clock_mono_ns() - 1000 * MS);
		r.peer[1].is_lost = true; /* nobody answers any more */
		ranks_check_clocks(&r);
		ranks_leave(&r);
		assert_null(r.peer);
	}
}

/* Silence is lost after RANK_SILENT_NS; a report is news, the longest silence is kept. */
static void test_silence(void **state)
{
	const struct { uint64_t done, failed, tokens; } report = { 5, 1, 50 };
	struct rank_peer peer[2] = { { .heard_ns = 0 },
				     { .heard_ns = clock_mono_ns() - RANK_SILENT_NS / 2 } };
	struct ranks r = { .n = 2, .peer = peer };
	int ticks = 0;

	(void)state;
	mpi.be(0, 2);
	ranks_tick(&r, 0, 0, 0);
	assert_false(peer[1].is_lost);
	assert_int_equal(peer[1].done, 0);
	mpi.be(1, 2);
	mpi.send(&report, sizeof(report), NULL, 0, REPORT, NULL);
	mpi.be(0, 2);
	ranks_tick(&r, 0, 0, 0);
	assert_int_equal(peer[1].done, 5);
	assert_int_equal(peer[1].failed, 1);
	assert_int_equal(peer[1].tokens, 50);
	assert_in_range(peer[1].silence_ns, RANK_SILENT_NS / 2, RANK_SILENT_NS);
	assert_true(peer[1].heard_ns > clock_mono_ns() - RANK_SILENT_NS / 4);
	peer[1].heard_ns = clock_mono_ns() - RANK_SILENT_NS - MS;
	ranks_wait(&r, count_ticks, &ticks);
	assert_true(peer[1].is_lost);
	assert_int_equal(ticks, 0);
	/* A lost one is not listened to. */
	mpi.be(1, 2);
	mpi.send(&report, sizeof(report), NULL, 0, REPORT, NULL);
	mpi.be(0, 2);
	peer[1].done = 0;
	ranks_tick(&r, 0, 0, 0);
	assert_int_equal(peer[1].done, 0);
	mpi.receive((char[32]){ 0 }, 32, NULL, 1, REPORT, NULL, NULL);
}

/* A record that cannot be written is still received, so that the rank can go on. */
static void test_unwritable(void **state)
{
	struct rank_peer peer[2] = { { .heard_ns = 0 } };
	struct ranks r = { .n = 2, .peer = peer };
	const uint64_t bytes = 3;
	struct err e = { 0 };
	char go;

	(void)state;
	mpi.be(1, 2);
	mpi.send(&bytes, sizeof(bytes), NULL, 0, BYTES, NULL);
	mpi.send("abc", 3, NULL, 0, PIECE, NULL);
	mpi.be(0, 2);
	assert_int_equal(ranks_take(&r, 1, "/no/such/folder/file", &e), -1);
	assert_string_equal(e.text, "cannot write /no/such/folder/file: No such file or directory");
	assert_false(peer[1].is_lost);
	assert_int_equal(ranks_share(&r, NULL, (64 << 20) + 1, &e), -1);
	assert_string_equal(e.text, "a message of 67108865 bytes is longer than the limit of 67108864");
	mpi.be(1, 2);
	mpi.receive(&go, 1, NULL, 0, GO, NULL, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_started),    cmocka_unit_test(test_joining),
		cmocka_unit_test(test_parts),      cmocka_unit_test(test_run),
		cmocka_unit_test(test_clocks),     cmocka_unit_test(test_silence),
		cmocka_unit_test(test_unwritable),
	};

	return cmocka_run_group_tests(tests, load, remove_dir);
}
