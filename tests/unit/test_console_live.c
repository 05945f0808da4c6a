/* SPDX-License-Identifier: Apache-2.0 */
/* test_console_live.c - what the live view keeps: rows in any order, the worst. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <cmocka.h>

#include "cmd/console/live.h"
#include "answers.h"

#define MS 1000000
#define T0 (INT64_C(1700000000) * 1000000000)

/* A request that sent at T0, with its first token after ttft and two gaps. */
static void end_row(struct record *r, uint32_t i, int64_t ttft_ns, int64_t gap_ns)
{
	struct request_row *row = &r->row[i];

	row->sent_ns = T0;
	row->first_event_ns = T0 + ttft_ns;
	row->last_event_ns = T0 + ttft_ns + 2 * gap_ns;
	record_event(&r->shard[0], row, ttft_ns, 0);
	record_event(&r->shard[0], row, gap_ns, 0);
	record_event(&r->shard[0], row, gap_ns, 0);
	record_finish(row, REQ_DONE);
}

static void fail_row(struct record *r, uint32_t i, const char *text)
{
	r->row[i].fail = FAIL_RESET;
	record_error(&r->shard[0], &r->row[i], str_of(text));
	record_finish(&r->row[i], REQ_FAILED);
}

static void test_rows(void **state)
{
	struct live_data d = { 0 };
	struct record r;
	struct err e;

	(void)state;
	assert_int_equal(record_init(&r, 20, 1, 100, true, true, &e), 0);
	record_add_rows(&r, 20);
	live_data_begin(&d, 20);
	live_data_take(&d, &r, 0, 1000);
	assert_int_equal(d.ttft.count, 0);
	end_row(&r, 3, 10 * MS, 5 * MS);
	end_row(&r, 0, 20 * MS, 5 * MS);
	end_row(&r, 12, 99 * MS, MS); /* of those that have not begun: not looked at */
	live_data_take(&d, &r, 10, 1000);
	assert_int_equal(d.ttft.count, 2);
	assert_int_equal(d.itl.count, 4);
	assert_true(d.e2el.max_ns == 30 * MS);
	assert_true(fabs(d.ttft_sum_ms - 30) < 1e-9 && fabs(d.itl_sum_ms - 20) < 1e-9);
	assert_int_equal(d.n_slow, 2);
	assert_int_equal(d.slow[0].row, 0);
	assert_true(d.slow[0].ttft_ns == 20 * MS && d.slow[0].e2el_ns == 30 * MS);
	assert_int_equal(d.slow[1].row, 3);
	assert_int_equal(d.low, 1);
	live_data_take(&d, &r, 10, 1000); /* nothing is taken twice */
	assert_int_equal(d.ttft.count, 2);

	for (uint32_t i = 1; i < 10; i++)
		if (i != 3)
			end_row(&r, i, (int64_t)i * MS, MS);
	live_data_take(&d, &r, 10, 4); /* two requests with three events each */
	assert_int_equal(d.ttft.count, 4);
	live_data_take(&d, &r, 10, 1000);
	assert_int_equal(d.ttft.count, 10);
	assert_int_equal(d.low, 10);
	assert_int_equal(d.n_slow, LIVE_SLOWEST);
	assert_int_equal(d.slow[0].row, 0);
	assert_int_equal(d.slow[2].row, 9);
	assert_int_equal(d.slow[4].row, 7);

	for (uint32_t i = 13; i < 19; i++)
		fail_row(&r, i, i == 18 ? "last\033[2J \xc3\xa9\nsecond line" : "earlier");
	record_finish(&r.row[19], REQ_CANCELLED);
	live_data_take(&d, &r, UINT32_MAX, 1000);
	assert_int_equal(d.ttft.count, 11);
	assert_int_equal(d.slow[0].row, 12);
	assert_int_equal(d.fail[FAIL_RESET], 6);
	assert_int_equal(d.n_errors, LIVE_ERRORS);
	assert_int_equal(d.error[0].row, 18);
	assert_string_equal(d.error[0].text, "last?[2J ??");
	assert_int_equal(d.error[3].row, 15);
	live_data_release(&d);
	record_release(&r);
}

/* ---- series ---- */

static void draws(const struct live_ring *r, size_t room, double full, const char *want)
{
	struct buf out = { 0 };

	live_ring_draw(r, room, full, false, &out);
	assert_string_equal(out.len ? out.data : "", want);
	answers_release(&out);
}

static void test_ring(void **state)
{
	struct live_ring r = { 0 };

	(void)state;
	draws(&r, 10, 0, "");
	live_ring_add(&r, 0);
	live_ring_add(&r, 1);
	live_ring_add(&r, NAN);
	live_ring_add(&r, 4);
	live_ring_add(&r, 8);
	draws(&r, 10, 0, " . =@");
	draws(&r, 2, 0, "=@");
	draws(&r, 10, 16, " . :=");
	draws(&r, 10, 4, " : @@"); /* more than full is full */
	for (int i = 0; i < LIVE_SECONDS; i++)
		live_ring_add(&r, -1);
	draws(&r, 3, 0, "   ");
	live_ring_add(&r, 5);
	draws(&r, 2, 0, " @");
}

static void test_chart(void **state)
{
	static const char *const rows[] = { "   ===", "   @@@", "+++@@@" };
	struct live_ring r = { 0 };
	struct buf out = { 0 };

	(void)state;
	live_ring_add(&r, 5);
	live_ring_add(&r, 20);
	assert_true(live_ring_most(&r) == 20);
	for (unsigned row = 0; row < 3; row++) { /* two values fill six columns */
		buf_reset(&out);
		live_ring_chart(&r, row, 3, 6, 24, false, &out);
		assert_string_equal(out.data, rows[row]);
	}
	live_ring_add(&r, NAN);
	live_ring_add(&r, 24);
	buf_reset(&out);
	live_ring_chart(&r, 0, 1, 3, 24, false, &out); /* the last ones, where there is less room */
	assert_string_equal(out.data, "# @");
	answers_release(&out);
}

static void test_series(void **state)
{
	struct run_sample now = { .server = { NAN, 3, NAN } };
	struct live_series s = { 0 };
	struct buf out = { 0 };

	(void)state;
	system_now(NULL, &now.system);
	now.system.gpu_memory = 60e9;
	now.system.gpu_memory_total = 80e9;
	live_series_take(&s, &now);
	live_series_second(&s);
	assert_false(live_series_line(&s, LIVE_KV, 60, false, &out));
	assert_false(live_series_line(&s, LIVE_HOST_CPU, 60, false, &out));
	assert_true(live_series_line(&s, LIVE_WAITING, 60, false, &out));
	assert_string_equal(out.data, "waiting             3 requests     @");
	buf_reset(&out);
	assert_true(live_series_line(&s, LIVE_GPU_MEMORY, 60, false, &out));
	assert_string_equal(out.data, "GPU memory       60.0 of 80 GB     *");
	/* A value that is no longer reported, but was. */
	buf_reset(&out);
	now.server.waiting = NAN;
	live_series_take(&s, &now);
	live_series_second(&s);
	assert_true(live_series_line(&s, LIVE_WAITING, 60, false, &out));
	assert_string_equal(out.data, "waiting             - requests     @ ");
	answers_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_ring),
		cmocka_unit_test(test_chart),
		cmocka_unit_test(test_series),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
