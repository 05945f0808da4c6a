/* SPDX-License-Identifier: Apache-2.0 */
/* test_console_live.c - what the live view keeps: rows in any order, the worst. */
/* threads: yes */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include <cmocka.h>

#include "cmd/console/live.h"
#include "core/base/clock.h"
#define ANSWER_HEAD_BYTES 9000
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

/* ---- the screen ---- */

static int terminal = -1, terminal_slave, before; /* stderr, and what it was */

static void take_terminal(void)
{
	struct termios how;
	char name[64];

	terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
	assert_int_equal(ptsname_r(terminal, name, sizeof(name)), 0);
	terminal_slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(terminal_slave >= 0 && tcgetattr(terminal_slave, &how) == 0);
	how.c_oflag &= ~(tcflag_t)OPOST;
	assert_int_equal(tcsetattr(terminal_slave, TCSANOW, &how), 0);
	before = dup(STDERR_FILENO);
	assert_true(dup2(terminal_slave, STDERR_FILENO) >= 0);
}

static void give_terminal_back(void)
{
	assert_true(dup2(before, STDERR_FILENO) >= 0);
	close(before);
	close(terminal_slave);
	close(terminal);
}

#define LAST '\004' /* what is read until here is a screen */

/* What comes until LAST, readable: a terminal that nobody reads takes only some KB. */
static void *read_terminal(void *out)
{
	char part[4096];
	ssize_t n;

	while ((n = read(terminal, part, sizeof(part))) > 0)
		for (ssize_t i = 0; i < n; i++)
			if (part[i] == LAST)
				return NULL;
			else if (part[i] == '\033' || part[i] == '\r')
				buf_add_text(out, part[i] == '\r' ? "" : "^");
			else
				buf_add_char(out, part[i]);
	return NULL;
}

/* Of a run that began so long ago; what is shown of its time is the same half a second later. */
static void add_rows(struct record *r, uint32_t n, int64_t ago_s, bool has_slow)
{
	record_add_rows(r, n);
	r->start_ns = clock_real_ns() - ago_s * 1000 * MS - 50 * MS;
	for (uint32_t i = 0; i + 4 < n; i++)
		end_row(r, i, (has_slow && i == 5 ? 500 : 20 + i % 7) * (int64_t)MS, 5 * MS);
	if (has_slow) {
		fail_row(r, n - 4, "connection \033[2J reset by peer");
		r->row[n - 4].fail = FAIL_RESET;
		fail_row(r, n - 3, "no answer at all, and a text that is longer than the screen is wide, so that "
			 "its end is cut off where the screen ends, which is somewhere here or there");
	}
}

struct screen {
	unsigned short columns, rows;
	bool has_slow, has_series;
	const char *lang, *color; /* of NO_COLOR */
	uint32_t done, n_rows;
	uint64_t tokens;
	int64_t ago_s;
};

/* false: that took too long. */
static bool draws_screen(const struct screen *row, unsigned number)
{
	struct winsize size = { .ws_row = row->rows, .ws_col = row->columns };
	struct run_sample now = { .n_rows = row->n_rows, .n_begun = 40,
				  .load = { row->tokens, 40, row->done,
				  row->has_slow ? 2 : 0 },
				  .server = { NAN, NAN, NAN } };
	struct buf out = { 0 };
	struct record r;
	pthread_t reader;
	bool is_late;
	struct live *l;
	struct err e;

	setenv("LANG", row->lang, 1);
	if (row->color)
		setenv("NO_COLOR", row->color, 1);
	else
		unsetenv("NO_COLOR");
	assert_int_equal(ioctl(terminal, TIOCSWINSZ, &size), 0);
	assert_int_equal(record_init(&r, 40, 1, 1000, true, true, &e), 0);
	add_rows(&r, 40, row->ago_s, row->has_slow);
	system_now(NULL, &now.system);
	if (row->has_series) {
		now.server = (struct telemetry_now){ 12, 3, 0.5 };
		now.system.gpu_memory = 60e9;
		now.system.gpu_memory_total = 80e9;
	}
	now.record = &r;
	assert_int_equal(pthread_create(&reader, NULL, read_terminal, &out), 0);
	l = live_new("bench serve: m at http://h");
	assert_non_null(l);
	assert_false(live_is_on(l));
	live_set_head(l, "bench serve: a head that is set later");
	live_show(l, &now);
	assert_true(live_is_on(l));
	live_print(l, true, "of two lines\nthe second");
	live_leave(l);
	assert_false(live_is_on(l));
	live_leave(l); /* once */
	live_free(l);
	assert_int_equal(write(STDERR_FILENO, &(char){ LAST }, 1), 1);
	pthread_join(reader, NULL);
	buf_printf(&out, "\n== %u", number);
	/* Once more where the machine was so busy that half a second has passed. */
	is_late = clock_real_ns() - r.start_ns - row->ago_s * 1000 * MS > 500 * MS;
	if (is_late)
		buf_release(&out);
	else
		answers_release(&out);
	record_release(&r);
	return !is_late;
}

static void test_screen(void **state)
{
	static const struct screen row[] = {
		{ 100, 50, true, true, "C.UTF-8", NULL, 38, 40, 204, 100 },
		{ 100, 24, true, true, "C", "1", 38, 40, 204, 100 },
		{ 40, 30, false, false, "C.UTF-8", NULL, 36, 54, 204, 100 },
		{ 100, 10, true, false, "C", NULL, 38, 38, 204, 100 },
		{ 0, 0, false, true, "en_US.utf8", "1", 0, 40, 0, 0 },
		{ 300, 30, false, false, "C", "1", 30, 45, 14688, 7200 },
	};

	(void)state;
	setenv("TERM", "xterm", 1);
	unsetenv("LC_ALL");
	unsetenv("LC_CTYPE");
	take_terminal();
	for (unsigned i = 0; i < sizeof(row) / sizeof(*row);)
		i += draws_screen(&row[i], i);
	setenv("TERM", "dumb", 1);
	assert_null(live_new("no terminal that can show it"));
	give_terminal_back();
	assert_false(live_is_on(NULL));
	live_leave(NULL);
	live_set_head(NULL, "");
	live_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_ring),
		cmocka_unit_test(test_chart),
		cmocka_unit_test(test_series),
		cmocka_unit_test(test_screen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
