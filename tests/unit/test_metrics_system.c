/* SPDX-License-Identifier: Apache-2.0 */
/* What the machine did, from series whose energy, means and peaks are known by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "client/metrics/metrics.h"
#include "record_sample.h"

#define T0 SAMPLE_START_NS
#define SECOND 1000000000ll
#define GPU0 "gpu=\"0\",uuid=\"GPU-a\",name=\"Test GPU\""
#define GPU1 "gpu=\"1\",uuid=\"GPU-b\",name=\"Test GPU\""

struct at { double s, value; };

/* A run of 10 s; times count from its start. */
struct rig { struct record r; struct metrics_system m; struct arena a; };

static void begin(struct rig *rig)
{
	*rig = (struct rig){ 0 };
	rig->r.start_ns = T0;
	rig->r.stop_ns = T0 + 10 * SECOND;
}

static void end(struct rig *rig)
{
	record_release(&rig->r);
	arena_release(&rig->a);
}

static void add(struct rig *rig, enum system_series id, const char *labels, const struct at *at,
		size_t n)
{
	struct record_series *s = record_series_add(&rig->r, system_series_name(id),
						    system_series_unit(id), labels);

	for (size_t i = 0; i < n; i++)
		record_series_point(s, T0 + (int64_t)(at[i].s * (double)SECOND), at[i].value);
}
#define ADD(rig, id, labels, ...)                                                         \
	add(rig, SYSTEM_##id, labels, (const struct at[]){ __VA_ARGS__ },                 \
	    sizeof((const struct at[]){ __VA_ARGS__ }) / sizeof(struct at))

static const struct metrics_system *score(struct rig *rig, double input, double output)
{
	metrics_system(&rig->m, &rig->r, &(struct metrics_tokens){ input, output }, &rig->a);
	return &rig->m;
}

static void is_near(double got, double want)
{
	if (!(fabs(got - want) <= 1e-9 * fmax(1, fabs(want))))
		fail_msg("%.17g is not %.17g", got, want);
}

static void is_level(struct metrics_level got, double low, double mean, double high)
{
	assert_true(got.n > 0);
	is_near(got.min, low);
	is_near(got.mean, mean);
	is_near(got.max, high);
}

/* ---- levels: straight lines between samples, cut at the window ---- */

static void levels(void **state)
{
	static const struct {
		struct at at[5];
		size_t n;
		double low, mean, high;
	} row[] = {
		/* constant; samples far from the window's ends */
		{ { { -3, 7 }, { 13, 7 } }, 2, 7, 7, 7 },
		{ { { 4, 7 } }, 1, 7, 7, 7 },
		/* a line from 0 at -5 s to 20 at 15 s: 5 at the start, 15 at the end */
		{ { { -5, 0 }, { 15, 20 } }, 2, 5, 10, 15 },
		/* a triangle in the window, 0 outside of it */
		{ { { -1, 0 }, { 0, 0 }, { 5, 10 }, { 10, 0 }, { 11, 0 } }, 5, 0, 5, 10 },
		/* values before and after do not count */
		{ { { -2, 900 }, { 0, 4 }, { 10, 4 }, { 12, 900 } }, 4, 4, 4, 4 },
		/* uneven samples weigh by time: 2 for 8 s, then up to 4 in 2 s */
		{ { { 0, 2 }, { 8, 2 }, { 10, 4 } }, 3, 2, 2.2, 4 },
		/* no sample beyond an end: the nearest one's value */
		{ { { 2, 1 }, { 8, 3 } }, 2, 1, 2, 3 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct rig rig;

		begin(&rig);
		add(&rig, SYSTEM_GPU_UTILIZATION, GPU0, row[i].at, row[i].n);
		score(&rig, 0, 0);
		is_level(rig.m.gpu[0].utilization, row[i].low, row[i].mean, row[i].high);
		is_near(rig.m.avg_gpu_utilization, row[i].mean);
		end(&rig);
	}
}

/* ---- energy ---- */

static void energy_by_counter(void **state)
{
	struct rig rig;
	const struct metrics_system *m;

	(void)state;
	begin(&rig);
	/* 50 W before, 300 W from -1 s to 11 s: the counter's line is cut at 0 s and 10 s. */
	ADD(&rig, GPU_ENERGY, GPU0, { -3, 1000 }, { -1, 1100 }, { 11, 4700 });
	ADD(&rig, GPU_POWER, GPU0, { -1, 50 }, { 5, 999 }, { 11, 50 });
	m = score(&rig, 500, 100);
	is_near(m->gpu[0].energy_j, 3000);
	assert_true(m->gpu[0].is_energy_counted);
	is_near(m->energy_j, 3000);
	is_near(m->power_mean_w, 300);
	is_near(m->power_before_w, 50);
	is_near(m->j_per_token, 30);
	is_near(m->j_per_token_total, 5);
	is_near(m->tokens_per_s_per_w, 1.0 / 30);
	end(&rig);
}

static void energy_by_power(void **state)
{
	struct rig rig;
	const struct metrics_system *m;

	(void)state;
	begin(&rig);
	/* 100 W to 200 W in 10 s, as a line: 1500 J. A counter that was reset does not count. */
	ADD(&rig, GPU_POWER, GPU0, { -2, 80 }, { 0, 100 }, { 10, 200 }, { 12, 80 });
	ADD(&rig, GPU_ENERGY, GPU0, { -2, 9000 }, { 12, 100 });
	/* The second tells its power alone. */
	ADD(&rig, GPU_POWER, GPU1, { 0, 40 }, { 10, 40 });
	m = score(&rig, 0, 0);
	assert_int_equal(m->n_gpus, 2);
	is_near(m->gpu[0].energy_j, 1500);
	assert_false(m->gpu[0].is_energy_counted);
	is_near(m->gpu[1].energy_j, 400);
	is_near(m->energy_j, 1900);
	is_near(m->power_before_w, 140);
	/* no token, no joules for it */
	assert_true(isnan(m->j_per_token) && isnan(m->j_per_token_total));
	end(&rig);
}

/* A sum of which one part is not known is not known. */
static void energy_not_told(void **state)
{
	struct rig rig;
	const struct metrics_system *m;

	(void)state;
	begin(&rig);
	ADD(&rig, GPU_POWER, GPU0, { 0, 100 }, { 10, 100 });
	ADD(&rig, GPU_MEMORY, GPU1, { 0, 5e9 }, { 10, 5e9 });
	m = score(&rig, 10, 10);
	is_near(m->gpu[0].energy_j, 1000);
	assert_true(isnan(m->gpu[1].energy_j) && isnan(m->energy_j) && isnan(m->j_per_token) &&
		    isnan(m->tokens_per_s_per_w) && isnan(m->peak_gpu_memory_gb));
	end(&rig);
}

/* ---- the rest ---- */

static void gpus(void **state)
{
	struct rig rig;
	const struct metrics_system *m;

	(void)state;
	begin(&rig);
	ADD(&rig, GPU_MEMORY_TOTAL, GPU0, { -1, 80e9 });
	ADD(&rig, GPU_MEMORY, GPU0, { -1, 1e9 }, { 0, 2e9 }, { 4, 70e9 }, { 10, 60e9 });
	ADD(&rig, GPU_MEMORY, GPU1, { -1, 1e9 }, { 0, 3e9 }, { 6, 50e9 }, { 10, 40e9 });
	ADD(&rig, GPU_UTILIZATION, GPU0, { 0, 80 }, { 10, 80 });
	ADD(&rig, GPU_UTILIZATION, GPU1, { 0, 60 }, { 10, 60 });
	ADD(&rig, GPU_TEMPERATURE, GPU0, { 0, 40 }, { 10, 60 });
	m = score(&rig, 0, 0);
	assert_int_equal(m->n_gpus, 2);
	assert_int_equal(m->gpu[0].index, 0);
	assert_int_equal(m->gpu[1].index, 1);
	assert_string_equal(m->gpu[1].uuid, "GPU-b");
	assert_string_equal(m->gpu[0].name, "Test GPU");
	is_near(m->gpu[0].memory_total, 80e9);
	assert_true(isnan(m->gpu[1].memory_total));
	is_near(m->gpu[0].memory.max, 70e9);
	is_near(m->peak_gpu_memory_gb, 120);
	is_near(m->avg_gpu_utilization, 70);
	is_level(m->gpu[0].temperature, 40, 50, 60);
	assert_int_equal(m->gpu[0].sm_clock.n, 0);
	end(&rig);
}

static void host_and_processes(void **state)
{
	struct rig rig;
	const struct metrics_system *m;

	(void)state;
	begin(&rig);
	/* 2 CPUs for 5 s, then 4: counters continue from their value. */
	ADD(&rig, HOST_CPU, "", { -1, 100 }, { 0, 101 }, { 5, 111 }, { 10, 131 }, { 12, 131 });
	ADD(&rig, HOST_CPUS, "", { -1, 8 });
	ADD(&rig, HOST_MEMORY, "", { 0, 4e9 }, { 10, 8e9 });
	ADD(&rig, HOST_RECEIVED, "", { 0, 1e6 }, { 10, 51e6 });
	ADD(&rig, PROCESS_CPU, "process=\"a\",pid=\"12\"", { -5, 7 }, { 0, 7 }, { 10, 17 });
	ADD(&rig, PROCESS_RSS, "process=\"a\",pid=\"12\"", { 0, 1e9 }, { 5, 3e9 }, { 10, 1e9 });
	ADD(&rig, PROCESS_RSS, "process=\"b\",pid=\"13\"", { 0, 1e9 });
	m = score(&rig, 0, 0);
	is_near(m->host.cpus, 8);
	is_level(m->host.cpus_busy, 2, 3, 4);
	is_level(m->host.memory, 4e9, 6e9, 8e9);
	is_level(m->host.received, 5e6, 5e6, 5e6);
	assert_int_equal(m->host.sent.n, 0);
	assert_int_equal(m->n_processes, 2);
	assert_string_equal(m->process[0].name, "a");
	assert_int_equal(m->process[0].pid, 12);
	is_near(m->process[0].cpu_s, 10);
	is_level(m->process[0].cpus, 1, 1, 1);
	is_level(m->process[0].rss, 1e9, 2e9, 3e9);
	assert_true(isnan(m->process[1].cpu_s));
	assert_true(isnan(m->peak_gpu_memory_gb)); /* no GPU is not 0 GB */
	end(&rig);
}

/* Samples in the window are counted; the cost is that of all. */
static void sampler(void **state)
{
	struct rig rig;
	const struct metrics_system *m;

	(void)state;
	begin(&rig);
	ADD(&rig, SAMPLER_CPU, "", { -2, 0 }, { 1, 0.01 }, { 4, 0.02 }, { 7, 0.03 }, { 18, 0.2 });
	ADD(&rig, SAMPLER_MISSED, "", { -2, 0 }, { 18, 3 });
	record_note_add(&rig.r, 0, NOTE_SYSTEM, "gpu: one");
	record_note_add(&rig.r, 0, "other", "not this");
	record_note_add(&rig.r, 0, NOTE_SYSTEM, "process: two");
	m = score(&rig, 0, 0);
	assert_true(m->is_reported);
	assert_int_equal(m->samples, 3);
	is_near(m->interval_s, 3);
	is_near(m->missed, 3);
	is_near(m->sampler_cpu_s, 0.2);
	is_near(m->sampler_share, 0.01);
	assert_string_equal(m->note, "gpu: one; process: two");
	end(&rig);
}

/* Of two hosts in one record the first one's view of the same thing is taken. */
static void several_hosts(void **state)
{
	struct rig rig;

	(void)state;
	begin(&rig);
	ADD(&rig, HOST_CPUS, "", { -1, 8 });
	ADD(&rig, HOST_CPUS, "", { -1, 16 });
	ADD(&rig, GPU_POWER, GPU0, { 0, 10 }, { 10, 10 });
	ADD(&rig, GPU_POWER, GPU0, { 0, 99 }, { 10, 99 });
	is_near(score(&rig, 0, 0)->host.cpus, 8);
	assert_int_equal(rig.m.n_gpus, 1);
	is_near(rig.m.energy_j, 100);
	end(&rig);
}

/* A run that took no time, series without a point, a clock that went back: never a crash. */
static void odd_series(void **state)
{
	struct rig rig;
	const struct metrics_system *m;

	(void)state;
	begin(&rig);
	m = score(&rig, 1, 1);
	assert_false(m->is_reported);
	assert_null(m->note);
	end(&rig);

	begin(&rig);
	rig.r.stop_ns = 0; /* interrupted before anything ended */
	add(&rig, SYSTEM_GPU_POWER, GPU0, NULL, 0);
	ADD(&rig, GPU_UTILIZATION, GPU0, { -1, 30 }, { 1, 50 });
	ADD(&rig, HOST_CPU, "", { -1, 0 }, { 1, 2 });
	m = score(&rig, 1, 1);
	is_level(m->gpu[0].utilization, 40, 40, 40);
	assert_int_equal(m->gpu[0].power.n, 0);
	assert_int_equal(m->host.cpus_busy.n, 0);
	assert_true(isnan(m->energy_j) && isnan(m->power_mean_w));
	end(&rig);

	begin(&rig);
	ADD(&rig, GPU_POWER, GPU0, { 0, 10 }, { 6, 10 }, { 5, 10 }, { 5, 10 }, { 10, 10 });
	is_near(score(&rig, 1, 1)->energy_j, 100);
	end(&rig);
}

/* Series of the machine do not belong to a server's /metrics. */
static void not_a_server(void **state)
{
	static const double p99 = 99;
	struct metrics_opts o = { .percentile = &p99, .n_percentiles = 1 };
	struct metrics m;
	struct rig rig;

	(void)state;
	begin(&rig);
	ADD(&rig, HOST_CPU, "", { -1, 0 }, { 10, 20 });
	ADD(&rig, GPU_POWER, GPU0, { 0, 10 }, { 10, 10 });
	metrics_score(&m, &rig.r, &o);
	assert_int_equal(m.n_servers, 0);
	assert_true(m.system.is_reported);
	is_near(m.system.energy_j, 100);
	metrics_release(&m);
	end(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(levels),
		cmocka_unit_test(energy_by_counter),
		cmocka_unit_test(energy_by_power),
		cmocka_unit_test(energy_not_told),
		cmocka_unit_test(gpus),
		cmocka_unit_test(host_and_processes),
		cmocka_unit_test(sampler),
		cmocka_unit_test(several_hosts),
		cmocka_unit_test(odd_series),
		cmocka_unit_test(not_a_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
