/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_rng.c - the generators against NumPy, pandas and CPython.
 *
 * Long runs are compared by hash (rng_golden.h, written by
 * tests/peer/golden_rng.py, whose functions have the names and the order of
 * draws used here); the short vectors below are for the reader.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/base/mem.h"
#include "core/rng/rng.h"
#include "rng_golden.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define TWO32 ((int64_t)1 << 32)

struct run {
	uint64_t first, hash;
	double sum; /* of the doubles among them */
	bool has_first;
};

static void add(struct run *r, uint64_t v)
{
	if (!r->has_first)
		*r = (struct run){ v, 0xcbf29ce484222325u, 0, true };
	r->hash = (r->hash ^ v) * 0x100000001b3u;
}

static void add_int(struct run *r, int64_t v)
{
	add(r, (uint64_t)v);
}

static void add_double(struct run *r, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	add(r, bits);
	r->sum += v;
}

static void add_items(struct run *r, const size_t *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		add(r, v[i]);
}

/* ---- PCG64 ---- */

static void pcg_u64(struct run *r, uint64_t seed)
{
	struct pcg64 g;

	pcg64_seed(&g, seed);
	for (int i = 0; i < 10000; i++)
		add(r, pcg64_u64(&g));
}

static void pcg_double(struct run *r, uint64_t seed)
{
	struct pcg64 g;

	pcg64_seed(&g, seed);
	for (int i = 0; i < 10000; i++)
		add_double(r, pcg64_double(&g));
}

static void pcg_bounded(struct run *r, uint64_t seed)
{
	static const int64_t range[][2] = {
		{ 0, 0 }, { 0, 1 }, { 0, 999 }, { -5, 5 }, { 0, 151642 }, { 10, TWO32 / 2 },
		{ 0, TWO32 - 2 }, { 0, TWO32 - 1 }, { 0, TWO32 }, { -3, 2 * TWO32 + 11 },
		{ 0, 3 * ((int64_t)1 << 61) }, { INT64_MIN, INT64_MAX }, { 0, TWO32 / 2 + 1 },
		{ 7, 7 }, { 0, 6 },
	};
	struct pcg64 g;

	pcg64_seed(&g, seed);
	for (size_t k = 0; k < COUNT(range); k++) {
		for (int i = 0; i < 301; i++)
			add_int(r, pcg64_bounded(&g, range[k][0], range[k][1]));
		add_double(r, pcg64_double(&g));
	}
}

static void pcg_scalar(struct run *r, uint64_t seed)
{
	struct pcg64 g;

	pcg64_seed(&g, seed);
	for (int n = 1; n < 2000; n++)
		add_int(r, pcg64_bounded(&g, 0, n - 1));
}

static void pcg_u8(struct run *r, uint64_t seed)
{
	static const size_t count[] = { 1, 2, 3, 4, 5, 7, 8, 1000, 1 };
	uint8_t bytes[1000];
	struct pcg64 g;

	pcg64_seed(&g, seed);
	for (size_t k = 0; k < COUNT(count); k++) {
		pcg64_fill_u8(&g, bytes, count[k]);
		for (size_t i = 0; i < count[k]; i++)
			add(r, bytes[i]);
	}
}

static const size_t order_count[] = { 0, 1, 2, 3, 10, 1000, 4097 };

static void pcg_permutation(struct run *r, uint64_t seed)
{
	size_t items[4097];
	struct pcg64 g;

	pcg64_seed(&g, seed);
	for (size_t k = 0; k < COUNT(order_count); k++) {
		pcg64_permutation(&g, items, order_count[k]);
		add_items(r, items, order_count[k]);
		add_double(r, pcg64_double(&g));
	}
}

static void pcg_choose(struct run *r, uint64_t seed)
{
	static const struct { size_t n; double p[7]; } row[] = {
		{ 2, { 0.5, 0.5 } }, { 1, { 1.0 } }, { 3, { 0.1, 0.2, 0.7 } },
		{ 4, { 0.25, 0, 0.25, 0.5 } },
		{ 7, { 1. / 7, 1. / 7, 1. / 7, 1. / 7, 1. / 7, 1. / 7, 1. / 7 } },
	};
	struct pcg64 g;
	double cdf[7];

	pcg64_seed(&g, seed);
	for (size_t k = 0; k < COUNT(row); k++) {
		pcg64_cdf(row[k].p, cdf, row[k].n);
		for (int i = 0; i < 200; i++)
			add(r, pcg64_choose(&g, cdf, row[k].n));
	}
}

/* ---- NumPy's older interface ---- */

static void np_double(struct run *r, uint64_t seed)
{
	struct legacy g;

	legacy_seed(&g, (uint32_t)seed);
	for (int i = 0; i < 10000; i++)
		add_double(r, legacy_double(&g));
}

static void np_exponential(struct run *r, uint64_t seed)
{
	struct legacy g;

	legacy_seed(&g, (uint32_t)seed);
	for (int i = 0; i < 10000; i++)
		add_double(r, legacy_standard_exponential(&g));
}

static void np_gauss(struct run *r, uint64_t seed)
{
	struct legacy g;

	legacy_seed(&g, (uint32_t)seed);
	for (int i = 0; i < 9999; i++)
		add_double(r, legacy_gauss(&g));
}

static void np_gamma(struct run *r, uint64_t seed)
{
	static const double shape[] = { 0.0, 0.1, 0.25, 0.5, 0.9, 0.999, 1.0, 1.001, 1.5, 2.0, 3.7,
					10.0, 1000.0 };
	struct legacy g;

	legacy_seed(&g, (uint32_t)seed);
	for (size_t k = 0; k < COUNT(shape); k++) {
		double scale = shape[k] > 0 ? 1.0 / (7.3 * shape[k]) : 1.0;

		for (int i = 0; i < 10000; i++)
			add_double(r, legacy_gamma(&g, shape[k], scale));
	}
}

static void np_poisson(struct run *r, uint64_t seed)
{
	static const double mean[] = { 0, 0.1, 1, 3, 9.99, 10, 12.5, 100, 123456.7 };
	struct legacy g;

	legacy_seed(&g, (uint32_t)seed);
	for (size_t k = 0; k < COUNT(mean); k++)
		for (int i = 0; i < 2000; i++)
			add_int(r, legacy_poisson(&g, mean[k]));
	add_double(r, legacy_double(&g));
}

static void np_zipf(struct run *r, uint64_t seed)
{
	static const double alpha[] = { 1.05, 1.2, 2, 3.5, 20 };
	struct legacy g;

	legacy_seed(&g, (uint32_t)seed);
	for (size_t k = 0; k < COUNT(alpha); k++)
		for (int i = 0; i < 2000; i++)
			add_int(r, legacy_zipf(&g, alpha[k]));
	add_double(r, legacy_double(&g));
}

static void np_lognormal(struct run *r, uint64_t seed)
{
	struct legacy g;

	legacy_seed(&g, (uint32_t)seed);
	for (int i = 0; i < 2000; i++)
		add_double(r, legacy_lognormal(&g, 6.7, 0.57));
}

static void np_uniform(struct run *r, uint64_t seed)
{
	struct legacy g;

	legacy_seed(&g, (uint32_t)seed);
	for (int i = 0; i < 2000; i++)
		add_double(r, legacy_uniform(&g, 2.5, 7.5));
}

static void np_randint(struct run *r, uint64_t seed)
{
	static const int64_t range[][2] = {
		{ 0, 1 }, { 0, 2 }, { 0, 1000 }, { -5, 6 }, { 0, 151643 }, { 0, TWO32 - 1 },
		{ 0, TWO32 }, { 0, TWO32 + 1 }, { -3, TWO32 * 256 }, { INT64_MIN, INT64_MAX },
		{ 5, 6 }, { 0, 7 },
	};
	struct legacy g;

	legacy_seed(&g, (uint32_t)seed);
	for (size_t k = 0; k < COUNT(range); k++) {
		for (int i = 0; i < 301; i++)
			add_int(r, legacy_randint(&g, range[k][0], range[k][1]));
		add_double(r, legacy_double(&g));
	}
	for (int n = 1; n < 500; n++)
		add_int(r, legacy_randint(&g, 0, n));
}

static void np_permutation(struct run *r, uint64_t seed)
{
	size_t items[4097];
	struct legacy g;

	legacy_seed(&g, (uint32_t)seed);
	for (size_t k = 0; k < COUNT(order_count); k++) {
		legacy_permutation(&g, items, order_count[k]);
		add_items(r, items, order_count[k]);
		add_double(r, legacy_double(&g));
	}
	legacy_permutation(&g, items, 77);
	add_items(r, items, 77);
}

static void np_choice(struct run *r, uint64_t seed)
{
	struct legacy g;
	size_t items[300];

	legacy_seed(&g, (uint32_t)seed);
	legacy_choice(&g, 100, items, 300, true);
	add_items(r, items, 300);
	legacy_choice(&g, 100, items, 40, false);
	add_items(r, items, 40);
	legacy_choice(&g, 1, items, 5, true);
	add_items(r, items, 5);
	add_double(r, legacy_double(&g));
}

static void pandas_sample(struct run *r, uint64_t seed)
{
	size_t items[1500];

	legacy_pandas_sample((uint32_t)seed, 1000, items, 10, false);
	add_items(r, items, 10);
	legacy_pandas_sample((uint32_t)seed, 1000, items, 1000, false);
	add_items(r, items, 1000);
	legacy_pandas_sample((uint32_t)seed, 1000, items, 1500, true);
	add_items(r, items, 1500);
}

/* ---- CPython ---- */

static void py_double(struct run *r, uint64_t seed)
{
	struct pyrandom g;

	pyrandom_seed(&g, (int64_t)seed);
	for (int i = 0; i < 10000; i++)
		add_double(r, pyrandom_double(&g));
}

static void py_bits(struct run *r, uint64_t seed)
{
	struct pyrandom g;

	pyrandom_seed(&g, (int64_t)seed);
	for (int i = 0; i < 20; i++)
		for (unsigned k = 0; k <= 64; k++)
			add(r, pyrandom_bits(&g, k));
}

static void py_below(struct run *r, uint64_t seed)
{
	static const uint64_t below[] = {
		1, 2, 3, 4, 5, 100, 1u << 16, 1u << 31, UINT32_MAX, 1ull << 32, (1ull << 32) + 1,
		1ull << 40, (1ull << 63) + 3,
	};
	struct pyrandom g;

	pyrandom_seed(&g, (int64_t)seed);
	for (size_t k = 0; k < COUNT(below); k++)
		for (int i = 0; i < 100; i++)
			add(r, pyrandom_below(&g, below[k]));
}

static void py_int(struct run *r, uint64_t seed)
{
	static const int64_t range[][2] = {
		{ 1, 4 }, { -10, 10 }, { 0, 0 }, { 5, 8 * TWO32 },
		{ -((int64_t)1 << 62), (int64_t)1 << 62 },
	};
	struct pyrandom g;

	pyrandom_seed(&g, (int64_t)seed);
	for (size_t k = 0; k < COUNT(range); k++)
		for (int i = 0; i < 100; i++)
			add_int(r, pyrandom_int(&g, range[k][0], range[k][1]));
}

static void py_uniform(struct run *r, uint64_t seed)
{
	struct pyrandom g;

	pyrandom_seed(&g, (int64_t)seed);
	for (int i = 0; i < 1000; i++)
		add_double(r, pyrandom_uniform(&g, -1.5, 2.75 + i));
}

static void py_choice(struct run *r, uint64_t seed)
{
	static const size_t count[] = { 1, 3, 10, 1000 };
	struct pyrandom g;

	pyrandom_seed(&g, (int64_t)seed);
	for (size_t k = 0; k < COUNT(count); k++)
		for (int i = 0; i < 200; i++)
			add(r, pyrandom_choice(&g, count[k]));
}

static void py_choices(struct run *r, uint64_t seed)
{
	static const size_t count[] = { 1, 3, 518, ((size_t)1 << 40) + 1 };
	struct pyrandom g;
	size_t items[200];

	pyrandom_seed(&g, (int64_t)seed);
	for (size_t k = 0; k < COUNT(count); k++) {
		pyrandom_choices(&g, count[k], items, 200);
		add_items(r, items, 200);
	}
}

static void py_shuffle(struct run *r, uint64_t seed)
{
	static const size_t count[] = { 0, 1, 2, 10, 1000, 5000 };
	struct pyrandom g;
	size_t items[5000];

	pyrandom_seed(&g, (int64_t)seed);
	for (size_t k = 0; k < COUNT(count); k++) {
		for (size_t i = 0; i < count[k]; i++)
			items[i] = i;
		pyrandom_shuffle(&g, items, count[k], sizeof(items[0]));
		add_items(r, items, count[k]);
		add_double(r, pyrandom_double(&g));
	}
}

static void py_sample(struct run *r, uint64_t seed)
{
	static const struct { size_t n, k; } row[] = {
		{ 0, 0 }, { 1, 0 }, { 1, 1 }, { 10, 5 }, { 21, 5 }, { 22, 5 }, { 85, 6 }, { 86, 6 },
		{ 277, 22 }, { 278, 22 }, { 1000, 999 }, { 1000, 1000 }, { 5000, 64 },
		{ 1000000, 500 }, { (size_t)1 << 40, 300 },
	};
	struct pyrandom g;
	size_t items[1000];

	pyrandom_seed(&g, (int64_t)seed);
	for (size_t k = 0; k < COUNT(row); k++) {
		pyrandom_sample(&g, row[k].n, items, row[k].k);
		add_items(r, items, row[k].k);
		add_double(r, pyrandom_double(&g));
	}
}

#define RUN(f, uses_libm) { #f, f, uses_libm }
static const struct {
	const char *name;
	void (*run)(struct run *r, uint64_t seed);
	bool uses_libm;
} runs[] = {
	RUN(pcg_u64, false), RUN(pcg_double, false), RUN(pcg_bounded, false),
	RUN(pcg_scalar, false), RUN(pcg_u8, false), RUN(pcg_permutation, false),
	RUN(pcg_choose, false), RUN(np_double, false), RUN(np_exponential, true),
	RUN(np_gauss, true), RUN(np_gamma, true), RUN(np_poisson, true), RUN(np_zipf, true),
	RUN(np_lognormal, true), RUN(np_uniform, false), RUN(np_randint, false),
	RUN(np_permutation, false), RUN(np_choice, false), RUN(pandas_sample, false),
	RUN(py_double, false), RUN(py_bits, false), RUN(py_below, false), RUN(py_int, false),
	RUN(py_uniform, false), RUN(py_choice, false), RUN(py_choices, false),
	RUN(py_shuffle, false), RUN(py_sample, false),
};

/*
 * log and pow may differ in the last bit between C libraries and processors (with or without fused
 * multiply-add). We must equal NumPy on the same machine, so golden values only apply if this
 * machine's log and pow equal those of the machine that made them.
 */
static bool is_golden_libm(void)
{
	struct run r = { 0 };

	for (int i = 1; i < 20000; i++) {
		add_double(&r, log(i / 20011.0));
		add_double(&r, pow(i / 20011.0, 1.0 / 0.37));
	}
	return r.hash == libm_golden;
}

static void test_golden(void **state)
{
	bool is_exact = is_golden_libm();

	(void)state;
	if (!is_exact)
		print_message("log or pow differ here; their rows are compared to 1e-9\n");
	for (size_t i = 0; i < COUNT(rng_golden); i++) {
		const struct rng_golden *want = &rng_golden[i];
		struct run got = { 0 };
		size_t k = 0;

		while (k < COUNT(runs) && strcmp(runs[k].name, want->name) != 0)
			k++;
		assert_true(k < COUNT(runs));
		runs[k].run(&got, want->seed);
		if (runs[k].uses_libm && !is_exact) {
			assert_true(fabs(got.sum - want->sum) <= 1e-9 * (1 + fabs(want->sum)));
			continue;
		}
		if (got.first != want->first || got.hash != want->hash)
			fail_msg("%s(%llu): first 0x%llx hash 0x%llx, expected 0x%llx 0x%llx",
				 want->name, (unsigned long long)want->seed,
				 (unsigned long long)got.first, (unsigned long long)got.hash,
				 (unsigned long long)want->first, (unsigned long long)want->hash);
	}
}

/* Every function must have rows, or a renamed one would pass unseen. */
static void test_golden_is_complete(void **state)
{
	(void)state;
	for (size_t k = 0; k < COUNT(runs); k++) {
		size_t rows = 0;

		for (size_t i = 0; i < COUNT(rng_golden); i++)
			rows += strcmp(runs[k].name, rng_golden[i].name) == 0;
		assert_true(rows >= 4);
	}
}

/* ---- short vectors ---- */

static const struct vector {
	const char *what;
	uint64_t seed;
	int64_t want[12];
	size_t n;
} vectors[] = {
	{ "pcg below 1000", 0, { 850, 636, 511, 269, 307, 40, 75, 16 }, 8 },
	{ "pcg below 1000", 42, { 89, 773, 654, 438, 433, 858, 85, 697 }, 8 },
	{ "pcg permutation", 0, { 4, 6, 2, 7, 3, 5, 9, 0, 8, 1 }, 10 },
	{ "pcg bytes", 0, { 95, 130, 194, 217, 207, 235, 15, 163 }, 8 },
	{ "pcg halves", 0, { 1, 0, 0, 0, 1, 1, 1, 1 }, 8 },
	{ "py shuffle", 0, { 7, 8, 1, 5, 3, 4, 2, 0, 9, 6 }, 10 },
	{ "py choice of 10", 0, { 6, 6, 0, 4, 8, 7, 6, 4 }, 8 },
	{ "py choice of 3", 0, { 1, 1, 0, 1, 2, 1, 1, 1 }, 8 },
	{ "py choices of 518", 0, { 437, 392, 217, 134, 264, 209 }, 6 },
	{ "py 1 to 4", 0, { 4, 4, 1, 3, 4, 4, 3, 4 }, 8 },
	{ "np below 1000", 0, { 684, 559, 629, 192, 835, 763, 707, 359 }, 8 },
	{ "pandas 5 of 10", 0, { 2, 8, 4, 9, 1 }, 5 },
	{ "pandas 12 of 10", 0, { 5, 0, 3, 3, 7, 9, 3, 5, 2, 4, 7, 6 }, 12 },
	{ "lengths of spec", 0, { 1383, 1164, 1035, 788, 103, 69, 73, 66, 26578, 123326, 98479,
				  138412 }, 12 },
};

/* One draw at a time, from generators that live as long as the vector. */
static int64_t draw(const char *what, size_t i, struct pcg64 *pcg, struct compat_rng *r)
{
	static const double halves[2] = { 0.5, 1.0 };

	if (strcmp(what, "pcg below 1000") == 0)
		return pcg64_bounded(pcg, 0, 999);
	if (strcmp(what, "pcg halves") == 0)
		return (int64_t)pcg64_choose(pcg, halves, 2);
	if (strcmp(what, "py choice of 10") == 0)
		return (int64_t)pyrandom_choice(&r->py, 10);
	if (strcmp(what, "py choice of 3") == 0)
		return (int64_t)pyrandom_choice(&r->py, 3);
	if (strcmp(what, "py 1 to 4") == 0)
		return pyrandom_int(&r->py, 1, 4);
	if (strcmp(what, "np below 1000") == 0)
		return legacy_randint(&r->np, 0, 1000);
	assert_string_equal(what, "lengths of spec");
	return i < 4 ? pcg64_bounded(pcg, 512, 1536) :
	       i < 8 ? pcg64_bounded(pcg, 64, 192) : pcg64_bounded(pcg, 0, 151642);
}

static bool draw_all(const struct vector *v, size_t *out, struct pcg64 *pcg, struct compat_rng *r)
{
	uint8_t bytes[12];

	for (size_t i = 0; i < 12; i++)
		out[i] = i;
	if (strcmp(v->what, "pcg permutation") == 0)
		pcg64_permutation(pcg, out, 10);
	else if (strcmp(v->what, "py shuffle") == 0)
		pyrandom_shuffle(&r->py, out, 10, sizeof(*out));
	else if (strcmp(v->what, "py choices of 518") == 0)
		pyrandom_choices(&r->py, 518, out, 6);
	else if (strcmp(v->what, "pandas 5 of 10") == 0)
		legacy_pandas_sample((uint32_t)v->seed, 10, out, 5, false);
	else if (strcmp(v->what, "pandas 12 of 10") == 0)
		legacy_pandas_sample((uint32_t)v->seed, 10, out, 12, true);
	else if (strcmp(v->what, "pcg bytes") == 0) {
		pcg64_fill_u8(pcg, bytes, v->n);
		for (size_t i = 0; i < v->n; i++)
			out[i] = bytes[i];
	} else
		return false;
	return true;
}

static void test_vectors(void **state)
{
	(void)state;
	for (size_t k = 0; k < COUNT(vectors); k++) {
		const struct vector *v = &vectors[k];
		struct compat_rng r;
		struct pcg64 pcg;
		size_t out[12];
		bool is_done;

		pcg64_seed(&pcg, v->seed);
		compat_rng_seed(&r, (uint32_t)v->seed);
		is_done = draw_all(v, out, &pcg, &r);
		for (size_t i = 0; i < v->n; i++) {
			int64_t got = is_done ? (int64_t)out[i] : draw(v->what, i, &pcg, &r);

			if (got != v->want[i])
				fail_msg("%s: draw %zu is %lld, expected %lld", v->what, i,
					 (long long)got, (long long)v->want[i]);
		}
	}
}

static void test_gamma_vectors(void **state)
{
	static const struct { double shape, scale, want[3]; } row[] = {
		{ 1, 0.1, { 0.07958745081631101, 0.12559307629658378, 0.09232231458040689 } },
		{ 0.5, 0.2, { 0.06080037795214088, 0.07565434401356312, 0.03589667780057752 } },
		{ 2, 0.05, { 0.25694147881701224, 0.11192404558962672, 0.2713566137199373 } },
	};

	(void)state;
	for (size_t k = 0; k < COUNT(row); k++) {
		struct legacy g;

		legacy_seed(&g, 0);
		for (int i = 0; i < 3; i++) {
			double got = legacy_gamma(&g, row[k].shape, row[k].scale);

			assert_true(fabs(got - row[k].want[i]) <= 1e-15 * got);
		}
	}
}

/* ---- what has no counterpart upstream ---- */

static void test_forks(void **state)
{
	struct pcg64 a = rng_fork(1, "jitter"), b = rng_fork(1, "jitter"), plain;

	(void)state;
	for (int i = 0; i < 100; i++)
		assert_true(pcg64_u64(&a) == pcg64_u64(&b));
	a = rng_fork(1, "jitter");
	b = rng_fork(1, "faults");
	assert_true(pcg64_u64(&a) != pcg64_u64(&b));
	a = rng_fork(1, "jitter");
	b = rng_fork(2, "jitter");
	assert_true(pcg64_u64(&a) != pcg64_u64(&b));
	a = rng_fork(1, "jitter");
	b = rng_fork(1 + (1ull << 32), "jitter");
	assert_true(pcg64_u64(&a) != pcg64_u64(&b));
	a = rng_fork(1, "jitter");
	pcg64_seed(&plain, 1);
	assert_true(pcg64_u64(&a) != pcg64_u64(&plain));
	/* A purpose's stream may never change: files quote only the seed. */
	a = rng_fork(42, "jitter");
	assert_true(pcg64_u64(&a) == 0x556255d41092bf7du);
}

static void test_negative_seed(void **state)
{
	struct pyrandom a, b;

	(void)state;
	pyrandom_seed(&a, -42);
	pyrandom_seed(&b, 42);
	assert_true(pyrandom_bits(&a, 32) == pyrandom_bits(&b, 32));
	pyrandom_seed(&a, INT64_MIN);
	pyrandom_seed_words(&b, (const uint32_t[]){ 0, 0x80000000u, 0 }, 3);
	assert_true(pyrandom_bits(&a, 32) == pyrandom_bits(&b, 32));
}

/* Items larger than the swap's own buffer move whole. */
static void test_shuffle_large_items(void **state)
{
	struct item { size_t id; char fill[149]; } item[50];
	size_t order[50];
	struct pyrandom g;

	(void)state;
	for (size_t i = 0; i < COUNT(item); i++) {
		item[i].id = order[i] = i;
		memset(item[i].fill, (int)i, sizeof(item[i].fill));
	}
	pyrandom_seed(&g, 5);
	pyrandom_shuffle(&g, item, COUNT(item), sizeof(item[0]));
	pyrandom_seed(&g, 5);
	pyrandom_shuffle(&g, order, COUNT(order), sizeof(order[0]));
	for (size_t i = 0; i < COUNT(item); i++) {
		assert_int_equal(item[i].id, order[i]);
		assert_int_equal(item[i].fill[0], item[i].id);
		assert_int_equal(item[i].fill[148], item[i].id);
	}
}

/* A copied generator goes on from the same place, kept half word and normal included. */
static void test_copy_is_snapshot(void **state)
{
	struct pcg64 a, b;
	struct legacy c, d;

	(void)state;
	pcg64_seed(&a, 9);
	pcg64_u32(&a);
	b = a;
	legacy_seed(&c, 9);
	legacy_gauss(&c);
	d = c;
	for (int i = 0; i < 10; i++) {
		assert_true(pcg64_u32(&a) == pcg64_u32(&b));
		assert_true(legacy_gauss(&c) == legacy_gauss(&d));
	}
}

/* Of the reference library, release 0.8.1: every length of tail, and stripes. */
static void test_xxh64(void **state)
{
#define TEN "0123456789"
	static const struct { const char *text; uint64_t seed, want; } row[] = {
		{ "", 0, 0xef46db3751d8e999 }, { "", 1, 0xd5afba1336a3be4b },
		{ "a", 0, 0xd24ec4f1a98c6e5b }, { "abc", 0, 0x44bc2cf5ad770999 },
		{ "abcdefg", 5, 0xbe36d72158e3b3d6 }, { "abcdefgh", 0, 0x3ad351775b4634b7 },
		{ "abcdefghijkl", 0, 0x4b09b7d3a233d4b3 },
		{ TEN TEN TEN "0", 0, 0x8b80da128591b789 },
		{ TEN TEN TEN "01", 0, 0xe5cc9f411ea110ba },
		{ TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN, 0x9e3779b97f4a7c15, 0x14d1d80a91b9ea55 },
	};
#undef TEN

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++)
		assert_true(xxh64(str_of(row[i].text), row[i].seed) == row[i].want);
}

/* Spec of conversations, 0.1: what the generator of conversations draws, from seed 0. */
static void test_distribution_vectors(void **state)
{
	static const int64_t poisson10[] = { 10, 11, 9, 9, 18, 13, 4, 10 };
	static const int64_t poisson3[] = { 5, 6, 2, 0, 7, 3, 3, 1 };
	static const int64_t zipf12[] = { 101, 15, 15784845, 2551, 1, 1, 1, 40 };
	static const int64_t zipf2[] = { 2, 2, 1, 1, 27, 4, 1, 1 };
	static const int64_t randint[] = { 16, 17, 12, 15, 15, 15, 13, 15 };
	static const double uniform[] = { 5.24406752, 6.07594683 };
	static const double exponential[] = { 0.39793725, 0.62796538, 0.46161157, 0.39360058 };
	static const double gamma[] = { 0.60800378, 0.75654344, 0.35896678 };
	static const struct { size_t n, k, want[5]; } sample[] = {
		{ 10, 5, { 6, 9, 0, 2, 4 } }, { 1000, 3, { 864, 394, 776 } },
	};
	static const size_t choice[] = { 0, 2, 0, 1, 0, 1, 1, 1 };
	struct legacy g[8];
	struct pyrandom py;
	size_t got[5];

	(void)state;
	for (size_t i = 0; i < COUNT(g); i++)
		legacy_seed(&g[i], 0);
	for (size_t i = 0; i < COUNT(poisson10); i++) {
		assert_int_equal(legacy_poisson(&g[0], 10), poisson10[i]);
		assert_int_equal(legacy_poisson(&g[1], 3), poisson3[i]);
		assert_int_equal(legacy_zipf(&g[2], 1.2), zipf12[i]);
		assert_int_equal(legacy_zipf(&g[3], 2), zipf2[i]);
		assert_int_equal(legacy_randint(&g[4], 12, 19), randint[i]);
	}
	for (size_t i = 0; i < COUNT(uniform); i++)
		assert_true(fabs(legacy_uniform(&g[5], 2.5, 7.5) - uniform[i]) < 5e-9);
	for (size_t i = 0; i < COUNT(exponential); i++)
		assert_true(fabs(.5 * legacy_standard_exponential(&g[6]) - exponential[i]) < 5e-9);
	for (size_t i = 0; i < COUNT(gamma); i++)
		assert_true(fabs(legacy_gamma(&g[7], .5, 2) - gamma[i]) < 5e-9);
	for (size_t i = 0; i < COUNT(sample); i++) {
		pyrandom_seed(&py, 0);
		pyrandom_sample(&py, sample[i].n, got, sample[i].k);
		assert_memory_equal(got, sample[i].want, sample[i].k * sizeof(*got));
	}
	pyrandom_seed(&py, 1);
	for (size_t i = 0; i < COUNT(choice); i++)
		assert_int_equal(pyrandom_choice(&py, 3), choice[i]);
}

/* hash() of CPython 3.11 with PYTHONHASHSEED=0: around the words of eight bytes. */
static void test_pyhash(void **state)
{
	static const struct { const char *text; int64_t want; } row[] = {
		{ "", 0 }, { "a", 4644417185603328019 }, { "abcdefg", 7904145750247929094 },
		{ "abcdefgh", 4574395652268504554 }, { "abcdefghi", -532774252720507163 },
		{ "0123456789abcdef", 2108444454683020324 },
		{ "The quick brown fox jumps over", 9110476974041099782 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++)
		assert_true(pyhash_str(str_of(row[i].text)) == row[i].want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pyhash),
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_golden_is_complete),
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_gamma_vectors),
		cmocka_unit_test(test_distribution_vectors),
		cmocka_unit_test(test_forks),
		cmocka_unit_test(test_negative_seed),
		cmocka_unit_test(test_shuffle_large_items),
		cmocka_unit_test(test_copy_is_snapshot),
		cmocka_unit_test(test_xxh64),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
