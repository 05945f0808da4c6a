/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_plan.c - due times against the recipe run by real NumPy (plan_golden.h, written by
 * tests/peer/golden_rng.py), and every refusal.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/plan/plan.h"
#include "core/base/limits.h"
#include "plan_golden.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define HASH_START 0xcbf29ce484222325u

static uint64_t mix(uint64_t h, uint64_t v)
{
	return (h ^ v) * 0x100000001b3u;
}

static uint64_t mix_double(uint64_t h, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return mix(h, bits);
}

/* log and pow may differ in the last bit on another machine; then so may due times. */
static bool is_golden_libm(void)
{
	uint64_t h = HASH_START;

	for (int i = 1; i < 20000; i++) {
		h = mix_double(h, log(i / 20011.0));
		h = mix_double(h, pow(i / 20011.0, 1.0 / 0.37));
	}
	return h == libm_golden;
}

static bool is_near(double a, double b)
{
	return fabs(a - b) <= 1e-12 * (1 + fabs(b));
}

static void check_shape(const struct plan *p)
{
	assert_int_equal(p->n_roots, p->n);
	for (uint32_t i = 0; i < p->n; i++) {
		const struct plan_entry *it = &p->entry[i];

		assert_int_equal(it->sample, i);
		assert_true(it->after == PLAN_NONE && it->session == PLAN_NONE);
		assert_true(it->turn == 0 && it->endpoint == 0 && it->lora == PLAN_NO_LORA);
		assert_true(it->due_s >= (i ? it[-1].due_s : 0));
	}
}

static void test_golden(void **state)
{
	bool is_exact = is_golden_libm();

	(void)state;
	for (size_t k = 0; k < COUNT(plan_golden); k++) {
		const struct plan_golden *want = &plan_golden[k];
		struct plan_opts o = {
			.request_rate = want->rate,
			.burstiness = want->burstiness,
			.ramp_up = (enum plan_ramp_up)want->ramp,
			.ramp_start_rps = want->start,
			.ramp_end_rps = want->end,
		};
		uint64_t due = HASH_START, ramp = HASH_START;
		struct compat_rng rng;
		struct plan p;

		compat_rng_seed(&rng, want->seed);
		assert_int_equal(plan_arrivals(&p, want->n, &o, &rng, NULL), 0);
		check_shape(&p);
		for (uint32_t i = 0; i < p.n; i++)
			due = mix_double(due, p.entry[i].due_s);
		for (size_t i = 0; i < p.n_ramp; i++)
			ramp = mix(mix(ramp, (uint64_t)p.ramp[i].rps), p.ramp[i].entry);
		assert_true(is_near(p.entry[0].due_s, want->first));
		assert_true(is_near(p.entry[p.n - 1].due_s, want->last));
		assert_true(legacy_double(&rng.np) == want->next);
		if (is_exact && (due != want->due_hash || p.n_ramp != want->n_ramp ||
				 ramp != want->ramp_hash))
			fail_msg("row %zu differs from NumPy: %zu ramp events, expected %zu", k,
				 p.n_ramp, want->n_ramp);
		plan_release(&p);
	}
}

static void test_without_ramp_ends_on_time(void **state)
{
	struct plan_opts o = { .request_rate = 8, .burstiness = 1 };
	struct compat_rng rng;
	struct plan p;

	(void)state;
	compat_rng_seed(&rng, 3);
	assert_int_equal(plan_arrivals(&p, 400, &o, &rng, NULL), 0);
	assert_true(is_near(p.entry[399].due_s, 50));
	assert_null(p.ramp);
	plan_release(&p);
}

static void test_trace(void **state)
{
	static const double given[] = { NAN, 0.5, 0.25, -1, 2, 2, NAN, 3.5 };
	static const double want[] = { 0, 0.5, 0.5, 0.5, 2, 2, 2, 3.5 };
	struct plan_opts o = { .request_rate = INFINITY, .burstiness = 1, .timestamps_s = given };
	struct compat_rng rng, before;
	struct plan p;

	(void)state;
	compat_rng_seed(&rng, 0);
	before = rng;
	assert_int_equal(plan_arrivals(&p, COUNT(given), &o, &rng, NULL), 0);
	check_shape(&p);
	for (uint32_t i = 0; i < p.n; i++)
		assert_true(p.entry[i].due_s == want[i]);
	assert_true(legacy_double(&rng.np) == legacy_double(&before.np));
	plan_release(&p);
}

static const double endless[] = { 0, INFINITY };
static const double epoch_s[] = { 1.7e9, 1.7e9 + 1 }, epoch_ms[] = { 0, 1.7e12 };
static const double epoch_least_s[] = { 1e9 }, epoch_most_s[] = { 1e10 };
static const double year_ms[] = { DUE_S_MAX, DUE_S_MAX + 1.0 };
static const struct {
	struct plan_opts o;
	uint32_t n;
	enum err_code code;
	const char *text;
} refused[] = {
	{ { .request_rate = 1, .burstiness = 1 }, 0, ERR_RUN, "No requests provided." },
	{ { .request_rate = 0, .burstiness = 1 }, 5, ERR_RUN,
	  "Obtained non-positive request rate 0.0." },
	{ { .request_rate = -2.5, .burstiness = 1 }, 5, ERR_RUN,
	  "Obtained non-positive request rate -2.5." },
	{ { .request_rate = NAN, .burstiness = 1 }, 5, ERR_RUN,
	  "Obtained non-positive request rate nan." },
	{ { .request_rate = 1, .burstiness = 0 }, 5, ERR_RUN,
	  "A positive burstiness factor is expected, but given 0.0." },
	{ { .request_rate = 1, .burstiness = -1 }, 0, ERR_RUN,
	  "A positive burstiness factor is expected, but given -1.0." },
	{ { .request_rate = 1, .burstiness = NAN }, 5, ERR_RUN,
	  "A positive burstiness factor is expected, but given nan." },
	{ { .request_rate = INFINITY, .burstiness = 1, .ramp_up = RAMP_LINEAR, .ramp_end_rps = 9 },
	  5, ERR_RUN, "Obtained non-positive request rate 0.0." },
	{ { .request_rate = INFINITY, .burstiness = 1, .ramp_up = RAMP_LINEAR,
	    .ramp_start_rps = 1, .ramp_end_rps = 1e9 }, 5, ERR_LIMIT,
	  "the ramp-up passes more than 1048576 whole rates; "
	  "choose an end rate nearer to the start" },
	{ { .request_rate = INFINITY, .burstiness = 1, .ramp_up = RAMP_EXPONENTIAL,
	    .ramp_start_rps = 1, .ramp_end_rps = 1e300 }, 2, ERR_LIMIT,
	  "the ramp-up passes more than 1048576 whole rates; "
	  "choose an end rate nearer to the start" },
	{ { .request_rate = 1e-309, .burstiness = 1 }, 2, ERR_USAGE,
	  "--request-rate 1e-309 (--burstiness 1.0): request 0 is due inf s after the start, "
	  "expected at most a year (31536000 s); use a higher rate" },
	{ { .request_rate = 1e-11, .burstiness = INFINITY }, 3, ERR_USAGE,
	  "--request-rate 1e-11 (--burstiness inf): request 0 is due 100000000000.0 s after the "
	  "start, expected at most a year (31536000 s); use a higher rate" },
	{ { .request_rate = INFINITY, .burstiness = INFINITY, .ramp_up = RAMP_LINEAR,
	    .ramp_start_rps = 0x1p-30, .ramp_end_rps = 0x1p-30 }, 2, ERR_USAGE,
	  "--ramp-up-start-rps 9.313225746154785e-10 (--burstiness inf): request 0 is due 1073741824.0 s after the "
	  "start, expected at most a year (31536000 s); use a higher rate" },
	{ { .request_rate = INFINITY, .burstiness = 1, .timestamps_s = endless }, 2, ERR_USAGE,
	  "timestamps: request 1 is due inf s after the start, expected at most a year (31536000 s); "
	  "they look like milliseconds or less: use --timed-trace-sec-multiplier 0.001" },
	{ { .request_rate = INFINITY, .burstiness = 1, .timestamps_s = epoch_s }, 2, ERR_USAGE,
	  "timestamps: request 0 is due 1700000000.0 s after the start, expected at most a year "
	  "(31536000 s); they look like seconds since 1970: subtract the first one from all" },
	{ { .request_rate = INFINITY, .burstiness = 1, .timestamps_s = epoch_least_s },
	  1, ERR_USAGE,
	  "timestamps: request 0 is due 1000000000.0 s after the start, expected at most a year "
	  "(31536000 s); they look like seconds since 1970: subtract the first one from all" },
	{ { .request_rate = INFINITY, .burstiness = 1, .timestamps_s = epoch_most_s }, 1, ERR_USAGE,
	  "timestamps: request 0 is due 10000000000.0 s after the start, expected at most a year "
	  "(31536000 s); they look like milliseconds or less: use --timed-trace-sec-multiplier "
	  "0.001" },
	{ { .request_rate = INFINITY, .burstiness = 1, .timestamps_s = epoch_ms }, 2, ERR_USAGE,
	  "timestamps: request 1 is due 1700000000000.0 s after the start, expected at most a year "
	  "(31536000 s); they look like milliseconds since 1970: subtract the first one from all "
	  "and use --timed-trace-sec-multiplier 0.001" },
	{ { .request_rate = INFINITY, .burstiness = 1, .timestamps_s = year_ms }, 2, ERR_USAGE,
	  "timestamps: request 1 is due 31536001.0 s after the start, expected at most a year "
	  "(31536000 s); they look like milliseconds or less: use --timed-trace-sec-multiplier "
	  "0.001" },
	{ { .request_rate = 1, .burstiness = 1 }, REQUESTS_MAX + 1, ERR_LIMIT,
	  "268435457 requests are more than the limit of 268435456 for one run" },
};

static void test_refused(void **state)
{
	(void)state;
	for (size_t k = 0; k < COUNT(refused); k++) {
		struct compat_rng rng;
		struct err e = { 0 };
		struct plan p;

		compat_rng_seed(&rng, 0);
		assert_int_equal(plan_arrivals(&p, refused[k].n, &refused[k].o, &rng, &e), -1);
		assert_string_equal(e.text, refused[k].text);
		assert_int_equal(e.code, refused[k].code);
		assert_null(p.entry);
		assert_null(p.ramp);
		plan_release(&p);
	}
}

static void test_lora(void **state)
{
	struct plan p;

	(void)state;
	for (size_t k = 0; k < COUNT(lora_golden); k++) {
		uint64_t h = HASH_START;
		struct compat_rng rng;

		compat_rng_seed(&rng, lora_golden[k].seed);
		plan_same(&p, 500, 0);
		plan_assign_lora(&p, lora_golden[k].n_modules, LORA_RANDOM, &rng);
		for (uint32_t i = 0; i < p.n; i++)
			h = mix(h, p.entry[i].lora);
		assert_true(h == lora_golden[k].hash);
		plan_assign_lora(&p, lora_golden[k].n_modules, LORA_ROUND_ROBIN, &rng);
		for (uint32_t i = 0; i < p.n; i++)
			assert_int_equal(p.entry[i].lora, i % lora_golden[k].n_modules);
		plan_release(&p);
	}
}

static void test_same(void **state)
{
	struct plan p;

	(void)state;
	plan_same(&p, 5, 7);
	assert_int_equal(p.n, 5);
	assert_int_equal(p.n_roots, 5);
	for (uint32_t i = 0; i < p.n; i++) {
		assert_int_equal(p.entry[i].sample, 7);
		assert_true(p.entry[i].due_s == 0);
		assert_true(p.entry[i].after == PLAN_NONE);
	}
	plan_assign_lora(&p, 0, LORA_RANDOM, NULL);
	assert_int_equal(p.entry[4].lora, PLAN_NO_LORA);
	plan_release(&p);
	plan_release(&p);
	plan_release(NULL);
	plan_same(&p, 0, 0);
	assert_int_equal(p.n, 0);
	plan_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_without_ramp_ends_on_time),
		cmocka_unit_test(test_trace),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_lora),
		cmocka_unit_test(test_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
