/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal report: upstream's bytes first, every conditional line, then ours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <math.h>

#include "core/base/str.h"
#include "out/report/report.h"
#include "answers.h"
#include "record_sample.h"

#define LINE "==================================================\n"

static const double p99[] = { 99 }, several[] = { 50, 99.9, 100 };

/* A run with the figures of a report that everyone knows. */
struct fixture {
	struct report_facts facts;
	struct metrics m;
	struct trust t;
	struct record r;
	struct report report;
	double percentile_ms[BLOCK_COUNT][3];
};

static void set_block(struct fixture *f, enum metric_block b, double mean, double median, double p)
{
	f->percentile_ms[b][0] = p;
	f->m.block[b] = (struct metrics_summary){ .is_reported = true, .n = 1000, .mean_ms = mean,
						  .median_ms = median, .std_ms = 1,
						  .percentile_ms = f->percentile_ms[b] };
}

static void fill(struct fixture *f)
{
	*f = (struct fixture){
		.facts = { .backend = "openai", .request_rate = 10, .burstiness = 1,
			   .max_concurrency = 64, .transport = "native", .version = "1.2.3" },
		.m = { .opts = { .percentile = p99, .n_percentiles = 1, .has_tokenizer = true,
				 .is_rate_finite = true, .n_goodput = 1, .max_concurrency = 64 },
		       .completed = 1000, .duration_s = 100.4567, .total_input = 1024000,
		       .total_output = 128000, .request_throughput = 9.95, .request_goodput = 9.1,
		       .output_throughput = 1274.1, .max_output_tokens_per_s = 1630,
		       .max_concurrent_requests = 64, .total_token_throughput = 11467 },
	};
	set_block(f, BLOCK_TTFT, 35.1, 31, 88);
	set_block(f, BLOCK_TPOT, 7.1, 7, 9.9);
	set_block(f, BLOCK_ITL, 7.1, 6.9, 15);
	f->report = (struct report){ .facts = &f->facts, .record = &f->r, .metrics = &f->m,
				     .trust = &f->t };
}

/* The whole report without its summary, which has to be in it once. */
static void show(const struct report *r, struct buf *out)
{
	struct buf whole = { 0 }, summary = { 0 };
	const char *at;

	report_terminal(r, REPORT_FULL, &whole);
	report_summary(r, &summary);
	at = summary.len ? strstr(whole.data, summary.data) : whole.data;
	assert_non_null(at);
	buf_add_str(out, (struct str){ whole.data, (size_t)(at - whole.data) });
	buf_add_text(out, at + summary.len);
	buf_release(&whole);
	buf_release(&summary);
}

static void same_text(const struct report *r, const char *want, bool is_upstream_only)
{
	struct buf out = { 0 };
	char *end;

	show(r, &out);
	assert_true(utf8_is_valid(buf_str(&out)));
	end = is_upstream_only ? strstr(out.data, "\n" LINE) : NULL;
	if (end)
		end[1 + strlen(LINE)] = 0;
	assert_string_equal(out.data, want);
	answers_release(&out);
}

static const char known[] =
	"============ Serving Benchmark Result ============\n"
	"Successful requests:                     1000      \n"
	"Failed requests:                         0         \n"
	"Maximum request concurrency:             64        \n"
	"Request rate configured (RPS):           10.00     \n"
	"Benchmark duration (s):                  100.46    \n"
	"Total input tokens:                      1024000   \n"
	"Total generated tokens:                  128000    \n"
	"Request throughput (req/s):              9.95      \n"
	"Request goodput (req/s):                 9.10      \n"
	"Output token throughput (tok/s):         1274.10   \n"
	"Peak output token throughput (tok/s):    1630.00   \n"
	"Peak concurrent requests:                64.00     \n"
	"Total token throughput (tok/s):          11467.00  \n"
	"---------------Time to First Token----------------\n"
	"Mean TTFT (ms):                          35.10     \n"
	"Median TTFT (ms):                        31.00     \n"
	"P99 TTFT (ms):                           88.00     \n"
	"-----Time per Output Token (excl. 1st token)------\n"
	"Mean TPOT (ms):                          7.10      \n"
	"Median TPOT (ms):                        7.00      \n"
	"P99 TPOT (ms):                           9.90      \n"
	"---------------Inter-token Latency----------------\n"
	"Mean ITL (ms):                           7.10      \n"
	"Median ITL (ms):                         6.90      \n"
	"P99 ITL (ms):                            15.00     \n"
	LINE;

static void test_known(void **state)
{
	struct fixture f;

	(void)state;
	fill(&f);
	same_text(&f.report, known, true);
}

/* Everything that upstream prints only sometimes. */
static void test_every_block(void **state)
{
	static const char want[] =
		"tip: install termplotlib and gnuplot to plot the metrics\n"
		"============ Serving Benchmark Result ============\n"
		"Successful requests:                     1000      \n"
		"Failed requests:                         0         \n"
		"Benchmark duration (s):                  100.46    \n"
		"Total input tokens:                      1024000   \n"
		"Total generated tokens:                  128000    \n"
		"Request throughput (req/s):              9.95      \n"
		"Output token throughput (tok/s):         1274.10   \n"
		"Peak output token throughput (tok/s):    1630.00   \n"
		"Peak concurrent requests:                64.00     \n"
		"RTFx (Inverse Real-Time Factor):         2.50      \n"
		"Total token throughput (tok/s):          123456789012.00\n"
		"----------------End-to-end Latency----------------\n"
		"Mean E2EL (ms):                          1.00      \n"
		"Median E2EL (ms):                        2.00      \n"
		"P50 E2EL (ms):                           3.00      \n"
		"P99.9 E2EL (ms):                         0.00      \n"
		"P100 E2EL (ms):                          0.00      \n"
		"---------------Client-side Queueing---------------\n"
		"Mean Client Queue Time (ms):             1.00      \n"
		"Median Client Queue Time (ms):           2.00      \n"
		"P50 Client Queue Time (ms):              3.00      \n"
		"P99.9 Client Queue Time (ms):            0.00      \n"
		"P100 Client Queue Time (ms):             0.00      \n"
		"--------Queue-inclusive End-to-end Latency--------\n"
		"Mean E2EL incl. Client Queue (ms):       1.00      \n"
		"Median E2EL incl. Client Queue (ms):     2.00      \n"
		"P50 E2EL incl. Client Queue (ms):        3.00      \n"
		"P99.9 E2EL incl. Client Queue (ms):      0.00      \n"
		"P100 E2EL incl. Client Queue (ms):       0.00      \n"
		LINE;
	struct fixture f;

	(void)state;
	fill(&f);
	f.facts.has_plot_tip = true;
	f.facts.max_concurrency = 0;
	f.facts.request_rate = INFINITY;
	f.m.opts.is_rate_finite = false;
	f.m.opts.n_goodput = 0;
	f.m.opts.percentile = several;
	f.m.opts.n_percentiles = 3;
	f.m.rtfx = 2.5;
	f.m.total_token_throughput = 123456789012.0;
	for (enum metric_block b = BLOCK_TTFT; b <= BLOCK_ITL; b++)
		f.m.block[b].is_reported = false;
	for (enum metric_block b = BLOCK_E2EL; b < BLOCK_COUNT; b++)
		set_block(&f, b, 1, 2, 3);
	same_text(&f.report, want, true);
}

static void test_no_tokenizer(void **state)
{
	static const char want[] =
		"============ Serving Benchmark Result ============\n"
		"Successful requests:                     1000      \n"
		"Failed requests:                         0         \n"
		"Maximum request concurrency:             64        \n"
		"Request rate configured (RPS):           10.00     \n"
		"Benchmark duration (s):                  100.46    \n"
		"Total input tokens:                      1024000   \n"
		"Request throughput (req/s):              9.95      \n"
		"Request goodput (req/s):                 9.10      \n"
		"Peak concurrent requests:                64.00     \n"
		LINE;
	struct fixture f;

	(void)state;
	fill(&f);
	f.m.opts.has_tokenizer = false;
	for (enum metric_block b = BLOCK_TTFT; b <= BLOCK_ITL; b++)
		f.m.block[b].is_reported = false;
	same_text(&f.report, want, true);
}

static void test_pooling(void **state)
{
	static const char want[] =
		"============ Serving Benchmark Result ============\n"
		"Successful requests:                     1000      \n"
		"Failed requests:                         3         \n"
		"Maximum request concurrency:             64        \n"
		"Request rate configured (RPS):           10.00     \n"
		"Benchmark duration (s):                  100.46    \n"
		"Total input tokens:                      1024000   \n"
		"Request throughput (req/s):              9.95      \n"
		"Input throughput (inputs/s):             19.90     \n"
		"Total token throughput (tok/s):          11467.00  \n"
		"----------------End-to-end Latency----------------\n"
		"Mean E2EL (ms):                          1.00      \n"
		"Median E2EL (ms):                        2.00      \n"
		"P99 E2EL (ms):                           3.00      \n"
		LINE;
	struct fixture f;

	(void)state;
	fill(&f);
	f.facts.has_plot_tip = true;
	f.m.opts.is_pooling = true;
	f.m.failed = 3;
	f.m.sequence_throughput = 19.9;
	for (enum metric_block b = BLOCK_TTFT; b <= BLOCK_ITL; b++)
		f.m.block[b].is_reported = false;
	set_block(&f, BLOCK_E2EL, 1, 2, 3);
	same_text(&f.report, want, true);
}

/* Ten failures at most, counted from 0; control characters of a server reach no terminal. */
static void test_failed_requests(void **state)
{
	static const char head[] =
		"Failed requests during benchmark run detected (capping to 10):\n"
		"Error 0: Bad ?[31mRequest\nError 1: Bad ?[31mRequest\n"; /* no bodies, as upstream */
	struct metrics_opts o = { .has_tokenizer = true };
	struct fixture f;
	struct buf out = { 0 };
	struct err e;
	char text[60];

	(void)state;
	fill(&f);
	assert_int_equal(record_init(&f.r, 13, 1, 0, false, false, &e), 0);
	record_add_rows(&f.r, 13);
	for (uint32_t i = 0; i < 12; i++) {
		f.r.row[i].state = REQ_FAILED;
		f.r.row[i].fail = FAIL_STATUS;
		snprintf(text, sizeof(text), "Bad \x1b[31mRequest\n%u", i);
		record_error(&f.r.shard[0], &f.r.row[i], str_of(text));
	}
	f.r.row[0].state = REQ_CANCELLED;
	f.r.row[12].state = REQ_DONE;
	metrics_score(&f.m, &f.r, &o);
	show(&f.report, &out);
	assert_true(str_starts(buf_str(&out), str_of(head)));
	assert_non_null(strstr(out.data, "\nError 9: Bad ?[31mRequest\n============ Serving"));
	assert_null(strstr(out.data, "\x1b"));
	assert_non_null(strstr(out.data, "\nSuccessful requests:                     1         \n"));
	metrics_release(&f.m);

	/* Where nothing succeeded there is nothing but failures. */
	f.r.row[12].state = REQ_CANCELLED;
	metrics_score(&f.m, &f.r, &o);
	f.facts.has_plot_tip = true;
	buf_reset(&out);
	show(&f.report, &out);
	assert_true(str_starts(buf_str(&out), str_of(
		"============ Serving Benchmark Result ============\n"
		"Successful requests:                     0         \n")));
	assert_null(strstr(out.data, "\x1b"));
	assert_null(strstr(out.data, "termplotlib"));
	assert_null(strstr(out.data, " 0.00 "));
	assert_null(strstr(out.data, "Client lag"));
	assert_non_null(strstr(out.data, "\nFailed requests:                         11        \n"));
	assert_non_null(strstr(out.data, "\nFailed, http_status:                     11        \n"
				       "  1 x Bad ?[31mRequest: 1\n"));
	assert_non_null(strstr(out.data, "\n  1 x other texts\n"));
	assert_non_null(strstr(out.data, "\nNever sent:                              2         \n"));
	answers_release(&out);
	metrics_release(&f.m);
	record_release(&f.r);
}

/* ---- ours ---- */

static void test_ours(void **state)
{
	static const char want[] =
		"---------------Measurement Quality----------------\n"
		"Time stamps:                             kernel    \n"
		"Client lag p50/p99/max (ms):             0.010 / 0.200 / 3.000\n"
		"Send lag p50/p99/max (ms):               0.001 / 0.002 / 0.003\n"
		"Kernel-to-user skew p50/p99/max (ms):    0.005 / 0.006 / 0.007\n"
		"New connections:                         8         \n"
		"Connect time p50/p99/max (ms):           1.000 / 2.000 / 2.500\n"
		"Mean TTFT with/without connect (ms):     36.000 / 35.100\n"
		"TTFT to content p50/p99/max (ms):        39.000 / 80.000 / 85.000\n"
		"TTFT to answer p50/p99/max (ms):         40.000 / 90.000 / 95.000\n"
		"E2EL from due p50/p99/max (ms):          900.000 / 950.000 / 990.000\n"
		"Events sharing a read (%):               0.05      \n"
		"Events of not one token (%):             1.00      \n"
		"Tokens per event:                        1.28      \n"
		"Token count unlike usage (% of req.):    2.00      \n"
		"Requests with tokens counted by us:      4         \n"
		"Requests taken as one token:             5         \n"
		"Input tokens, best known:                30000     \n"
		"Output tokens, best known:               4000      \n"
		"Output tok/s, best known:                39.82     \n"
		"TPOT, best known p50/p99/max (ms):       5.000 / 6.000 / 7.000\n"
		"Finish reasons:                          stop 1, length 98, none 2\n"
		"Retries:                                 6         \n"
		"Cancelled while they ran:                7         \n"
		"Transport:                               native    \n"
		"Version:                                 1.2.3     \n"
		"Build:                                   gcc 12    \n"
		"Verdict:                                 DEGRADED  \n"
		"  DEGRADED (ITL): Something was late.\n"
		"  Note: Something was odd.\n"
		"  What to do: profllm help late\n"
		"  VALID: TTFT, TPOT, E2EL, goodput, throughput.\n"
		LINE;
	struct fixture f;
	struct buf out = { 0 };

	(void)state;
	fill(&f);
	f.facts.build = "gcc 12";
	f.m.n = 1000;
	f.m.cancelled = 7;
	f.m.client = (struct metrics_client){
		.lag = { 1, 0, 0.01, 0.2, 3 }, .send_lag = { 1, 0, 0.001, 0.002, 0.003 },
		.skew = { 1, 0, 0.005, 0.006, 0.007 }, .connect = { 1, 0, 1, 2, 2.5 },
		.from_due = { 1, 0, 900, 950, 990 }, .ttft_answer = { 1, 0, 40, 90, 95 },
		.ttft_content = { 1, 0, 39, 80, 85 }, .best_tpot = { 1, 0, 5, 6, 7 },
		.best_input = 30000, .best_output = 4000,
		.finishes = { [FINISH_NONE] = 2, [FINISH_STOP] = 1, [FINISH_LENGTH] = 98 },
		.ttft_connect = { 1, 36, 0, 0, 0 }, .n_events = 10000, .n_events_with_text = 10000,
		.n_shared = 5, .n_not_one_token = 100, .n_events_with_usage = 10000,
		.n_tokens_with_usage = 12800, .n_usage = 100, .n_count_unlike_usage = 2,
		.n_counted = 4,
		.n_count_unknown = 5, .n_new_connections = 8, .retries = 6,
	};
	f.t = (struct trust){
		.verdict = TRUST_DEGRADED, .metric = { [TRUST_ITL] = TRUST_DEGRADED },
		.n_reasons = 2,
		.reason = { { TRUST_DEGRADED, TRUST_BIT(TRUST_ITL), "late",
			      "Something was late." },
			    { TRUST_VALID, 0, "odd", "Something was odd." } },
	};
	show(&f.report, &out);
	assert_int_equal(memcmp(out.data, known, strlen(known)), 0);
	assert_string_equal(out.data + strlen(known), want);
	answers_release(&out);
}

static void test_ours_conditions(void **state)
{
	struct fixture f;
	struct buf out = { 0 };

	(void)state;
	fill(&f);
	f.m.n = 10;
	f.m.client.connect = (struct metrics_spread){ 1, 0, 1, 1, 1 }; /* not above 1 ms */
	f.m.client.n_user_stamped = 3;
	f.m.client.skew = (struct metrics_spread){ 9, 0, 24.5, 4294.967294, 4294.967294 };
	show(&f.report, &out);
	assert_non_null(strstr(out.data, "Kernel-to-user skew p50/p99/max (ms):    24.500 / >4294.967 / "
			       ">4294.967\n"));
	assert_null(strstr(out.data, "with/without connect"));
	assert_null(strstr(out.data, "Client lag"));
	assert_null(strstr(out.data, "Cancelled"));
	assert_null(strstr(out.data, "Build:"));
	assert_non_null(strstr(out.data, "Time stamps:                             mixed     \n"));
	assert_non_null(strstr(out.data, "Events sharing a read (%):               -         \n"));
	assert_non_null(strstr(out.data, "Verdict:                                 VALID     \n" LINE));
	buf_reset(&out);
	f.m.client.n_user_stamped = 10;
	show(&f.report, &out);
	assert_non_null(strstr(out.data, "Time stamps:                             user      \n"));
	buf_reset(&out);
	f.m.client.n_user_stamped = 0;
	f.m.opts.is_user_stamps = true;
	show(&f.report, &out);
	assert_non_null(strstr(out.data, "Time stamps:                             user      \n"));
	answers_release(&out);
}

static void test_summary(void **state)
{
	struct fixture f;
	struct buf out = { 0 };

	(void)state;
	fill(&f);
	f.m.completed = 0;
	report_summary(&f.report, &out);
	assert_int_equal(out.len, 0);
	f.m.completed = 1000;
	f.t = (struct trust){ .verdict = TRUST_INVALID, .n_reasons = 3,
		.reason = { { TRUST_INVALID, 0, "early", "Early." }, { TRUST_VALID, 0, "odd", "Odd." },
			    { TRUST_DEGRADED, 0, "late", "Late." } } };
	f.m.failed = 2;
	report_terminal(&f.report, REPORT_SHORT, &out);
	assert_non_null(strstr(out.data, "TPOT median 7.00 ms"));
	assert_non_null(strstr(out.data, "The measurement is INVALID: early, late.\n====="));
	assert_non_null(strstr(out.data, "\n  INVALID: Early.\n"));
	assert_non_null(strstr(out.data, "\n  Note: Odd.\n"));
	assert_non_null(strstr(out.data, "--report full\n"));
	assert_null(strstr(out.data, "Time stamps:"));
	answers_release(&out);
	f.m.block[BLOCK_TPOT].n = 0; /* answers of one token each */
	report_summary(&f.report, &out);
	assert_null(strstr(out.data, "TPOT"));
	answers_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known), cmocka_unit_test(test_every_block),
		cmocka_unit_test(test_no_tokenizer), cmocka_unit_test(test_pooling),
		cmocka_unit_test(test_failed_requests), cmocka_unit_test(test_ours),
		cmocka_unit_test(test_ours_conditions), cmocka_unit_test(test_summary),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
