/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_dealt.c - a run that several ranks make together: who sends what, and what rank 0
 * makes of their records. The ranks are threads over tests/fake/mpi.c, and nothing is sent.
 *
 * threads: yes
 */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "bench/serve/point.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "fake_gpus.h"
#include "host/ranks/ranks.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))
#define N 3
#define COMMON                                                                                    \
	"--model sim --tokenizer sim --temperature 0 --random-input-len 8 --random-output-len 4 " \
	"--ready-check-timeout-sec 0 --request-id-prefix t- --prompt-salt none --timestamps user "

static void (*be)(int rank, int size);

struct run {
	int rank, n;
	struct serve_opts opts;
	struct serve_derived derived;
	struct opt_result result;
	struct arena arena;
	struct ranks ranks;
	struct run_hooks hooks;
	struct point point;
	struct buf warnings;
	const char *remove; /* a folder that goes away while load runs */
	unsigned measured;
	struct err e;
	int rc;
};

/* The last sample is taken when load is over. */
static void on_sample(void *self, const struct run_sample *now)
{
	const struct run *r = self;
	char gone[80];

	(void)now;
	if (!r->remove)
		return;
	snprintf(gone, sizeof(gone), "%s.gone", r->remove);
	(void)rename(r->remove, gone);
}

static void on_warn(void *self, const char *text)
{
	buf_printf(&((struct run *)self)->warnings, "%s\n", text);
}

static void on_measured(void *self, struct point *p)
{
	(void)p;
	((struct run *)self)->measured++;
}

static void run_init(struct run *r, int rank, int n, const char *words, const char *record)
{
	char *argv[64], *word, *rest;
	int argc = 0;

	*r = (struct run){ .rank = rank, .n = n };
	rest = arena_printf(&r->arena, COMMON "%s%s%s", words, record ? " --record " : "",
			    record ? record : "");
	while ((word = strsep(&rest, " ")))
		argv[argc++] = word;
	assert_int_equal(
		opt_parse(&serve_opt_set, argc, argv, &r->opts, &r->result, &r->arena, &r->e), 0);
	serve_opts_fill(&r->opts, &r->arena);
	if (serve_opts_check(&r->opts, &r->result, &r->arena, &r->derived, &r->e) < 0)
		fail_msg("%s", r->e.text);
	r->hooks = (struct run_hooks){ .self = r,
				       .sample = on_sample,
				       .warn = on_warn,
				       .measured = on_measured,
				       .transport = &transport_null,
				       .ranks = &r->ranks };
}

static void *run_main(void *self)
{
	struct run *r = self;

	be(r->rank, r->n);
	r->rc = ranks_join(&r->ranks, &r->e);
	if (r->rc == 0)
		r->rc = run_point(&r->opts, &r->derived, &r->hooks, &r->point, &r->e);
	ranks_leave(&r->ranks);
	return NULL;
}

static void run_all(struct run *r)
{
	pthread_t thread[N];

	for (int i = 1; i < N; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, run_main, &r[i]), 0);
	run_main(&r[0]);
	for (int i = 1; i < N; i++)
		pthread_join(thread[i], NULL);
}

static void release_all(struct run *r)
{
	for (int i = 0; i < N; i++) {
		point_release(&r[i].point);
		opt_result_release(&r[i].result);
		buf_release(&r[i].warnings);
		arena_release(&r[i].arena);
	}
}

/* The state of each row: D done, C cancelled, . not sent. */
static void assert_rows(const struct run *r, const char *want)
{
	char got[64] = "";

	for (uint32_t i = 0; i < r->point.plan.n && i < sizeof(got) - 1; i++) {
		const struct request_row *row = &r->point.record.row[i];

		got[i] = row->state == REQ_DONE ? 'D' : row->state == REQ_CANCELLED ? 'C' : '.';
		if (row->state == REQ_CANCELLED)
			assert_int_equal(row->fail, FAIL_CANCELLED);
	}
	assert_string_equal(got, want);
}

static bool has_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0;
}

/* Every third request, or conversation; rank 0 has them all, in the order of the plan. */
static void all_have_a_share(void **state)
{
#define TALK \
	"--backend openai-chat --endpoint /v1/chat/completions --multi-turn --multi-turn-num-turns 2"
	static const struct {
		const char *words, *rows[N];
		unsigned runs;
		bool has_record;
	} row[] = {
		{ "--num-prompts 7", { "DDDDDDD", ".D..D..", "..D..D." }, 1, true },
		{ "--num-prompts 4 --request-rate 300 --num-runs 2",
		  { "DDDD", ".D..", "..D." },
		  2,
		  false },
		{ "--num-prompts 4 " TALK, { "DDDDDDDD", ".D...D..", "..D...D." }, 1, true },
		{ "--num-prompts 5", { "DDDDD", ".D..D", "..D.." }, 1, false },
		/* more ranks than requests */
		{ "--num-prompts 2", { "DD", ".D", ".." }, 1, true },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct record_info info;
		struct record record;
		struct run r[N];
		char path[N][80], from[N][96];
		struct err e;

		for (int k = 0; k < N; k++) {
			if (k)
				snprintf(path[k], sizeof(path[k]), "%s/record.part%d", dir, k);
			else
				snprintf(path[k], sizeof(path[k]), "%s/record", dir);
			snprintf(from[k], sizeof(from[k]), "%s/record.from%d", dir, k);
			run_init(&r[k], k, N, row[i].words,
				 k || row[i].has_record ? path[k] : NULL);
		}
		run_all(r);
		for (int k = 0; k < N; k++) {
			if (r[k].rc < 0)
				fail_msg("row %zu, rank %d: %s", i, k, r[k].e.text);
			assert_rows(&r[k], row[i].rows[k]);
			assert_int_equal(r[k].point.processes, N);
			assert_int_equal(r[k].measured, row[i].runs);
			assert_int_equal(has_file(path[k]), k == 0 && row[i].has_record);
			assert_false(has_file(from[k]));
		}
		assert_int_equal(r[0].point.n_lost, 0);
		assert_int_equal(r[0].point.load.threads, N);
		assert_false(r[0].point.is_interrupted);
		assert_int_equal(r[0].point.clock_error_ns, 0);
		if (row[i].has_record) {
			assert_int_equal(record_file_load(&record, &info, path[0], &e), 0);
			assert_int_equal(record.n_rows, r[0].point.record.n_rows);
			record_release(&record);
			record_info_release(&info);
			unlink(path[0]);
		}
		release_all(r);
	}
}

/* A rank whose record does not arrive: its requests are missing, and that is said. */
static void one_is_lost(void **state)
{
	struct run r[N];
	char path[N][80], folder[64];
	struct err e;

	(void)state;
	snprintf(folder, sizeof(folder), "%s/folder", dir);
	assert_int_equal(file_mkdirs(folder, &e), 0);
	for (int k = 0; k < N; k++) {
		snprintf(path[k], sizeof(path[k]), "%s/%s%d", k == 2 ? folder : dir, "lost.part",
			 k);
		run_init(&r[k], k, N, "--num-prompts 7", path[k]);
	}
	r[2].remove = folder;
	run_all(r);
	assert_int_equal(r[0].rc, 0);
	assert_int_equal(r[1].rc, 0);
	assert_int_equal(r[2].rc, -1);
	assert_int_equal(r[2].e.code, ERR_IO);
	assert_rows(&r[0], "DDCDDCD");
	assert_int_equal(r[0].point.n_lost, 2);
	assert_int_equal(r[2].measured, 0);
	buf_add_char(&r[0].warnings, '\0');
	assert_memory_equal(r[0].warnings.data, "rank 2 on ", 10);
	assert_non_null(strstr(r[0].warnings.data, " was lost: rank 2 on "));
	assert_non_null(strstr(r[0].warnings.data, " delivered no record"));
	assert_non_null(strstr(r[0].warnings.data, "; its requests are missing from the result\n"));
	release_all(r);
}

static void on_line(void *self, const char *text)
{
	if (strncmp(text, "Starting main", 13) == 0)
		on_sample(self, NULL);
}

/* One that cannot begin once all were ready: the others do not wait for it. */
static void one_fails_at_the_start(void **state)
{
	struct run r[N];
	char path[80], folder[64];
	struct err e;

	(void)state;
	snprintf(folder, sizeof(folder), "%s/early", dir);
	assert_int_equal(file_mkdirs(folder, &e), 0);
	snprintf(path, sizeof(path), "%s/record", folder);
	for (int k = 0; k < N; k++)
		run_init(&r[k], k, N, "--num-prompts 7", k == 2 ? path : NULL);
	r[2].remove = folder;
	r[2].hooks.line = on_line;
	run_all(r);
	for (int k = 0; k < N; k++)
		assert_int_equal(r[k].rc, -1);
	assert_memory_equal(r[0].e.text, "rank 2 on ", 10);
	assert_non_null(strstr(r[0].e.text, path));
	assert_string_equal(r[1].e.text, "another rank could not start");
	assert_rows(&r[1], ".C..C..");
	release_all(r);
}

/* One that cannot begin: nothing is sent, and rank 0 says why. */
static void one_cannot_begin(void **state)
{
	struct run r[N];

	(void)state;
	for (int k = 0; k < N; k++)
		run_init(&r[k], k, N, "--num-prompts 7", k == 1 ? "/proc/none/record" : NULL);
	run_all(r);
	for (int k = 0; k < N; k++) {
		assert_int_equal(r[k].rc, -1);
		assert_int_equal(r[k].measured, 0);
	}
	assert_memory_equal(r[0].e.text, "rank 1 on ", 10);
	assert_non_null(strstr(r[0].e.text, "/proc/none/record"));
	release_all(r);
}

static int set_up(void **state)
{
	void *library = dlopen(fake_library("libfake-mpi.so"), RTLD_NOW | RTLD_GLOBAL);

	if (!library || make_dir(state) < 0)
		return -1;
	*(void **)&be = dlsym(library, "fake_mpi_be");
	setenv("OMPI_COMM_WORLD_SIZE", "3", 1);
	setenv("TMPDIR", dir, 1);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_have_a_share),
		cmocka_unit_test(one_is_lost),
		cmocka_unit_test(one_fails_at_the_start),
		cmocka_unit_test(one_cannot_begin),
	};

	return cmocka_run_group_tests(tests, set_up, remove_dir);
}
