/* SPDX-License-Identifier: Apache-2.0 */
/* The machine's block and object: what is not known is a null or left out, and never a 0. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "out/report/system.h"
#include "answers.h"

static const struct metrics_level none = { 0, NAN, NAN, NAN };

static struct metrics_gpu gpu(int64_t index)
{
	return (struct metrics_gpu){
		.index = index, .uuid = "", .name = "A \"B\"", .memory_total = NAN, .memory = none,
		.utilization = { 3, 10, 20, 30 }, .memory_busy = none, .sm_clock = none,
		.memory_clock = none, .power = none, .temperature = { 2, 40, 41.5, 43 },
		.energy_j = NAN, .power_before_w = NAN,
	};
}

static struct metrics_system system_of(struct metrics_gpu *gpus, size_t n)
{
	return (struct metrics_system){
		.is_reported = true, .gpu = gpus, .n_gpus = n,
		.host = { NAN, NAN, none, none, none, none },
		.peak_gpu_memory_gb = NAN, .avg_gpu_utilization = 20, .energy_j = NAN,
		.power_mean_w = NAN, .power_before_w = NAN, .j_per_token = NAN,
		.j_per_token_total = NAN, .tokens_per_s_per_w = NAN, .samples = 3, .missed = 1,
		.interval_s = NAN, .sampler_cpu_s = 0.5, .sampler_share = 0.005,
	};
}

static void object(void **state)
{
	struct metrics_gpu gpus[] = { gpu(0) };
	struct metrics_system s = system_of(gpus, 1);
	struct buf out = { 0 };
	struct json_writer w = json_writer(&out);

	(void)state;
	report_system_json(&s, &w);
	assert_string_equal(out.data,
		"{\"peak_gpu_memory_gb\": null, \"avg_gpu_utilization\": 20.0, \"energy_j\": null, "
		"\"power_mean_w\": null, \"power_before_w\": null, \"j_per_token\": null, "
		"\"j_per_token_total\": null, \"tokens_per_s_per_w\": null, \"gpus\": [{\"index\": 0, "
		"\"uuid\": \"\", \"name\": \"A \\\"B\\\"\", \"memory_total_gb\": null, \"memory_gb\": null, "
		"\"utilization\": {\"min\": 10.0, \"mean\": 20.0, \"max\": 30.0}, \"memory_busy\": null, "
		"\"sm_clock_mhz\": null, \"memory_clock_mhz\": null, \"power_w\": null, "
		"\"temperature_c\": {\"min\": 40.0, \"mean\": 41.5, \"max\": 43.0}, \"energy_j\": null, "
		"\"is_energy_counted\": false, \"power_before_w\": null}], \"host\": {\"cpus\": null, "
		"\"memory_total_gb\": null, \"cpus_busy\": null, \"memory_gb\": null, "
		"\"received_mb_per_s\": null, \"sent_mb_per_s\": null}, \"processes\": [], "
		"\"telemetry\": {\"samples\": 3, \"missed\": 1, \"interval_s\": null, \"cpu_s\": 0.5, "
		"\"share_of_a_core\": 0.005}, \"not_watched\": null}");
	answers_release(&out);
}

static void rows(void **state)
{
	struct metrics_process process = { .name = "engine", .cpus = { 2, 0, 1.5, 4 },
					   .rss = { 2, 1e9, 2e9, 3e9 }, .cpu_s = 3 };
	struct metrics_gpu gpus[] = { gpu(0), gpu(1) };
	struct metrics_system s = system_of(gpus, 2);
	struct buf out = { 0 };

	(void)state;
	gpus[1].memory = (struct metrics_level){ 2, 1e9, 60.25e9, 61e9 };
	gpus[1].power = (struct metrics_level){ 2, 100, 650, 700 };
	gpus[1].sm_clock = (struct metrics_level){ 2, 1000, 1750.6, 1980 };
	s.process = &process;
	s.n_processes = 1;
	s.energy_j = 1234.567;
	s.j_per_token = 0.01234;
	s.host.cpus_busy = (struct metrics_level){ 2, 0, 3.25, 8 };
	s.note = "gpu: a\033b";
	report_system_rows(&s, &out);
	assert_string_equal(out.data,
		"----------------------System----------------------\n"
		"Mean GPU utilization (%):                20.00     \n"
		"GPU energy (J):                          1234.57   \n"
		"GPU energy per output token (J):         0.0123    \n"
		"GPU      memory (GB)      used (%)     power (W)      SM (MHz)    temp (C)\n"
		"0                  -     20.0/30.0             -             -       42/43\n"
		"1          60.2/61.0     20.0/30.0   650.0/700.0     1751/1980       42/43\n"
		"Host CPUs busy mean/max:                 3.25 / 8.00\n"
		"Processes of engine:\n"
		"  CPUs busy mean/max:                    1.50 / 4.00\n"
		"  Resident memory mean/max (GB):         2.00 / 3.00\n"
		"Samples taken/left out:                  3 / 1     \n"
		"Sampling (% of a core):                  0.50      \n"
		"Not watched: gpu: a?b\n");
	answers_release(&out);
}

static void nothing(void **state)
{
	struct metrics_system s = { .is_reported = false };
	struct buf out = { 0 };
	struct json_writer w = json_writer(&out);

	(void)state;
	report_system_rows(&s, &out);
	assert_int_equal(out.len, 0);
	report_system_json(&s, &w);
	assert_string_equal(out.data, "null");
	answers_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(object),
		cmocka_unit_test(rows),
		cmocka_unit_test(nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
