/* SPDX-License-Identifier: Apache-2.0 */
/* The client's record next to a truth file: every error by stamps made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/metrics/oracle.h"
#include "core/base/file.h"
#include "record_sample.h"
#include "scratch.h"

#define MS 1000000ll
#define US 1000ll
#define T0 SAMPLE_START_NS

static char *write_truth(const char *text)
{
	char *path = file_join(dir, "truth.jsonl");
	struct err e;

	assert_int_equal(file_write_atomic(path, str_of(text), &e), 0);
	return path;
}

static int read_truth(struct oracle_truth *t, const char *text, uint32_t n, struct err *e)
{
	char *path = write_truth(text);
	int rc = oracle_read(t, path, "b", n, e);

	free(path);
	return rc;
}

/* Order in the file is that of the ends; ids of others, and longer prefixes, are not ours. */
static void test_read(void **state)
{
	struct oracle_truth t;
	struct err e;

	(void)state;
	assert_int_equal(read_truth(&t,
		"{\"request_id\": \"b1\", \"recv_ns\": 20, \"send_ns\": [30, 40]}\n"
		"{\"request_id\": null, \"recv_ns\": 5, \"send_ns\": []}\n"
		"{\"request_id\": \"bench-0\", \"recv_ns\": 6, \"send_ns\": [7]}\n"
		"{\"request_id\": \"b0\", \"recv_ns\": 10, \"send_ns\": [11]}\n", 2, &e), 0);
	assert_int_equal(t.row[0].recv_ns, 10);
	assert_int_equal(t.row[0].events, 1);
	assert_int_equal(t.row[1].recv_ns, 20);
	assert_int_equal(t.row[1].events, 2);
	assert_int_equal(t.row[1].send_ns[1], 40);
	oracle_release(&t);
}

/* A truth that is incomplete must never be joined: each damage is named. */
static void test_read_refuses(void **state)
{
	static const struct { const char *text, *says; } cases[] = {
		{ "", "request b0 is not in it" },
		{ "{\"request_id\": \"b0\", \"recv_ns\": 1, \"send_ns\": [2]}\n", "request b1 is not" },
		{ "{\"request_id\": \"b0\", \"recv_ns\": 1, \"send_ns\": [2]}\n"
		  "{\"request_id\": \"b0\", \"recv_ns\": 1, \"send_ns\": [2]}\n", "b0 was seen twice" },
		{ "{\"request_id\": \"b2\", \"recv_ns\": 1, \"send_ns\": [2]}\n", "b2 was seen twice" },
		{ "{\"request_id\": \"b0\", \"recv_ns\": 1, \"send_ns\": [\"x\"]}\n", "not a number" },
		{ "{\"request_id\": \"b0\", \"recv_ns\": 1}\n", "send_ns is missing" },
		{ "{\"request_id\": \"b0\", \"recv", "truth file" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct oracle_truth t;
		struct err e = { 0 };

		assert_int_equal(read_truth(&t, cases[i].text, 2, &e), -1);
		assert_non_null(strstr(e.text, cases[i].says));
		oracle_release(&t);
	}
}

/*
 * Request 0: sent 3 us before the server has it, each event 10 us on its way, the second read
 * 500 us late. Request 1: without any error but a first event 40 us late.
 */
static void test_join(void **state)
{
	int64_t s0[] = { T0 + 50 * MS, T0 + 60 * MS, T0 + 70 * MS };
	int64_t s1[] = { T0 + 9 * MS, T0 + 10 * MS, T0 + 11 * MS };
	struct oracle_request rows[] = { { T0, s0, 3 }, { T0 + 5 * MS, s1, 3 } };
	const struct oracle_truth t = { rows, 2 };
	struct oracle_errors r;
	struct record rec = { 0 };
	struct err e;

	(void)state;
	assert_int_equal(record_init(&rec, 3, 1, 0, true, true, &e), 0);
	record_add_rows(&rec, 3); /* row 0 is another run's */
	rec.row[1].sent_ns = T0 - 3 * US;
	sample_event(&rec, &rec.row[1], 50 * MS + 13 * US, 0);
	sample_event(&rec, &rec.row[1], 10 * MS, 500 * US);
	sample_event(&rec, &rec.row[1], 10 * MS, 0);
	rec.row[2].sent_ns = T0 + 5 * MS;
	sample_event(&rec, &rec.row[2], 4 * MS + 40 * US, 0);
	sample_event(&rec, &rec.row[2], 1 * MS - 40 * US, 0);
	sample_event(&rec, &rec.row[2], 1 * MS, 0);
	rec.row[2].n_shared = 1;
	oracle_errors_init(&r, 2, 3);
	assert_int_equal(oracle_join(&r, &rec, 1, &t, 0, 2, 3, &e), 0);
	assert_float_equal(r.ttft[0], 13, 1e-9);
	assert_float_equal(r.send[0], 3, 1e-9);
	assert_float_equal(r.e2el[0], 13, 1e-9);
	assert_float_equal(r.ttft[1], 40, 1e-9);
	assert_float_equal(r.e2el[1], 0, 1e-9);
	oracle_errors_sort(&r);
	assert_int_equal(r.n_itl, 4);
	assert_int_equal(r.n_shared, 1);
	assert_float_equal(r.itl[0][3], 40, 1e-9);  /* the gap after request 1's late event */
	assert_float_equal(r.itl[0][2], 0, 1e-9);
	assert_float_equal(r.itl[1][3], 500, 1e-9); /* user space, both gaps of the late read */
	assert_float_equal(r.itl[1][2], 500, 1e-9);
	assert_float_equal(r.stamp[0][5], 40, 1e-9);
	/* An event that one side lacks: nothing is compared. */
	rows[1].events = 2;
	oracle_errors_reset(&r);
	assert_int_equal(oracle_join(&r, &rec, 1, &t, 0, 2, 3, &e), -1);
	assert_string_equal(e.text, "request 1: 3 events were requested, the server sent 2 and the "
			    "client counted 3");
	oracle_errors_release(&r);
	record_release(&rec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read), cmocka_unit_test(test_read_refuses),
		cmocka_unit_test(test_join),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
