/* SPDX-License-Identifier: Apache-2.0 */
/* Laws of lengths, recorded lengths (BurstGPT), and where the texts of large workloads live. */
/* threads: yes */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/rng/rng.h"
#include "input/data/lengths.h"
#include "input/sets/datasets.h"
#include "input/token/tokenizer.h"
#include "scratch.h"

#define DRAWS 200000
#define OPTION "--random-input-len-dist"

/* Writes a file into the scratch folder; path has room for 96 bytes. */
static void put_file(char *path, const char *name, const char *content)
{
	struct err e;

	snprintf(path, 96, "%s/%s", dir, name);
	assert_int_equal(file_write_atomic(path, str_of(content), &e), 0);
}

struct moments {
	double mean, sd;
	int64_t min, max;
};

static struct moments draw_many(const char *law)
{
	struct moments m = { .min = INT64_MAX };
	struct pcg64 rng = rng_fork(1, "test");
	double sum = 0, squares = 0;
	struct lengths l;
	struct err e;

	if (lengths_parse(OPTION, law, &l, &e) < 0)
		fail_msg("%s", e.text);
	for (int i = 0; i < DRAWS; i++) {
		int64_t v = lengths_draw(&l, &rng);

		sum += (double)v;
		squares += (double)v * (double)v;
		m.min = v < m.min ? v : m.min;
		m.max = v > m.max ? v : m.max;
	}
	m.mean = sum / DRAWS;
	m.sd = sqrt(squares / DRAWS - m.mean * m.mean);
	lengths_release(&l);
	return m;
}

/* Within five standard errors of what the formulas in lengths.h say. */
static void laws_have_their_moments(void **state)
{
	/* lognormal: sd is mean sqrt(exp(sigma^2) - 1); within limits: by summation. */
	static const struct { const char *law; double mean, sd; int64_t min, max; } row[] = {
		{ "uniform:10,19", 14.5, 2.8723, 10, 19 },
		{ "normal:1000,100", 1000, 100, 1, LENGTH_TOKENS_MAX },
		{ "normal:100,10,95,105", 100, 3.101, 95, 105 },
		{ "lognormal:500,0.5", 500, 266.5, 1, LENGTH_TOKENS_MAX },
		{ "exponential:300", 300, 300, 1, LENGTH_TOKENS_MAX },
		{ "exponential:300,100,200", 147.2, 29.0, 100, 200 },
		{ "zipf:1,1", 1, 0, 1, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct moments m = draw_many(row[i].law);
		double error = row[i].sd / sqrt(DRAWS);

		if (fabs(m.mean - row[i].mean) > 5 * error + 0.51 * (row[i].mean > 100) ||
		    fabs(m.sd - row[i].sd) > 0.03 * row[i].sd || m.min < row[i].min ||
		    m.max > row[i].max)
			fail_msg("%s: mean %g, sd %g, %lld to %lld", row[i].law, m.mean, m.sd,
				 (long long)m.min, (long long)m.max);
	}
}

/* Each number comes as often as its weight says (chi-square, 1 in 10^6 by chance). */
static void zipf_has_its_weights(void **state)
{
	static const double exponent[] = { 0.5, 1, 1.2, 3 };

	(void)state;
	for (size_t k = 0; k < 4; k++) {
		enum { MAX = 30 };
		struct pcg64 rng = rng_fork(2, "test");
		double seen[MAX + 1] = { 0 }, sum = 0, chi = 0;
		struct lengths l;
		char law[32];

		snprintf(law, sizeof(law), "zipf:%g,%d", exponent[k], MAX);
		assert_int_equal(lengths_parse(OPTION, law, &l, NULL), 0);
		for (int i = 0; i < DRAWS; i++)
			seen[lengths_draw(&l, &rng)]++;
		for (int v = 1; v <= MAX; v++)
			sum += pow(v, -exponent[k]);
		for (int v = 1; v <= MAX; v++) {
			double want = DRAWS * pow(v, -exponent[k]) / sum;

			chi += (seen[v] - want) * (seen[v] - want) / want;
		}
		if (chi > 77) /* 29 degrees of freedom */
			fail_msg("%s: chi-square %g", law, chi);
		lengths_release(&l);
	}
}

static void histograms_have_their_weights(void **state)
{
	static const struct { const char *name, *content; } row[] = {
		{ "h.csv", "tokens,count\n# short ones\n10,1\n\n20, 0\n400,3\r\n" },
		{ "h.json", "{\"10\": 1, \"20\": 0, \"400\": 3}" },
		{ "l.json", " [[10, 0.25], [20, 0], [400, 0.75]]\n" },
	};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		char path[96], law[128];
		struct moments m;

		put_file(path, row[i].name, row[i].content);
		snprintf(law, sizeof(law), "histogram:%s", path);
		m = draw_many(law);
		assert_int_equal(m.min, 10);
		assert_int_equal(m.max, 400);
		assert_true(fabs(m.mean - 302.5) < 2);
	}
}

static void wrong_laws_are_refused(void **state)
{
	static const char *const law[] = {
		"", "poisson:3", "uniform", "uniform:", "uniform:5", "uniform:5,4", "uniform:0,4",
		"uniform:1,2,3", "uniform:1.5,3", "normal:10", "normal:10,0", "normal:10,-1",
		"normal:10,1,5", "normal:nan,1", "normal:inf,1", "normal:10,1,9,8", "lognormal:0,1",
		"lognormal:1e400,1", "exponential:3,1,1e9", "zipf:0,5", "zipf:1", "zipf:1,0",
		"zipf:1e9,5", "zipf:1,5,6", "normal:1,2,3,4,5",
	};
	static const struct { const char *content, *want; } file[] = {
		{ "", "the weights add up to 0" },
		{ "5,0\n", "the weights add up to 0" },
		{ "5,1\nsix,1\n", ":2: \"six,1\"" },
		{ "0,1\n", ":1: \"0,1\"" },
		{ "5;1\n", ":1: \"5;1\"" },
		{ "5,-1\n", ":1: \"5,-1\"" },
		{ "5,inf\n", ":1: \"5,inf\"" },
		{ "1e300,1\n", ":1:" },
		{ "{\"5\": 1, \"x\": 2}", "entry 2" },
		{ "{\"5\": \"1\"}", "entry 1" },
		{ "[[5, 1], [6]]", "entry 2" },
		{ "[[5, 1, 2]]", "entry 1" },
		{ "[5]", "entry 1" },
		{ "{\"5\": 1", "line 1" },
		{ "{\"5\": 1} 2", "more than one JSON value" },
	};
	struct lengths l;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(law) / sizeof(*law); i++) {
		if (lengths_parse(OPTION, law[i], &l, &e) == 0)
			fail_msg("taken: %s", law[i]);
		assert_int_equal(e.code, ERR_USAGE);
		assert_non_null(strstr(e.text, OPTION));
	}
	for (size_t i = 0; i < sizeof(file) / sizeof(*file); i++) {
		char path[96], text[128];

		put_file(path, "bad", file[i].content);
		snprintf(text, sizeof(text), "histogram:%s", path);
		if (lengths_parse(OPTION, text, &l, &e) == 0)
			fail_msg("taken: %s", file[i].content);
		if (!strstr(e.text, file[i].want) || !strstr(e.text, path))
			fail_msg("%s: %s", file[i].content, e.text);
	}
	assert_int_equal(lengths_parse(OPTION, "histogram:/nowhere", &l, &e), -1);
	assert_int_equal(e.code, ERR_IO);
}

/* ---- times ---- */

/* Within five standard errors of the formulas, in seconds, and within the limits. */
static void times_have_their_moments(void **state)
{
	static const struct { const char *law; double mean, sd, min, max; } row[] = {
		{ "uniform:0,2", 1, .5777, 0, 2 },
		{ "normal:3,0.5", 3, .5, 0, 6 },
		{ "lognormal:0.5,0.8", .5, .4734, 0, DUE_S_MAX },
		{ "exponential:2", 2, 2, 0, DUE_S_MAX },
		{ "exponential:2,0,0.5", .2396, .1442, 0, .5 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct pcg64 rng = rng_fork(1, "test");
		double sum = 0, v;
		struct lengths l;
		struct err e;

		if (lengths_parse_time("--think-time", row[i].law, &l, &e) < 0)
			fail_msg("%s", e.text);
		for (int k = 0; k < DRAWS; k++) {
			v = lengths_draw_s(&l, &rng);
			if (v < row[i].min || v > row[i].max)
				fail_msg("%s: %g", row[i].law, v);
			sum += v;
		}
		if (fabs(sum / DRAWS - row[i].mean) > 5 * row[i].sd / sqrt(DRAWS) + 5e-4)
			fail_msg("%s: mean %g", row[i].law, sum / DRAWS);
		lengths_release(&l);
	}
}

static void times_may_be_constant_or_recorded(void **state)
{
	struct pcg64 rng = rng_fork(1, "test"), untouched = rng;
	char path[96], text[128];
	struct lengths l;
	struct err e;

	(void)state;
	for (int k = 0; k < 2; k++) {
		assert_int_equal(lengths_parse_time("x", k ? "constant:0.1" : "0.1", &l, &e), 0);
		assert_true(lengths_draw_s(&l, &rng) == .1);
	}
	assert_memory_equal(&rng, &untouched, sizeof(rng));
	put_file(path, "gaps.csv", "seconds,count\n0,1\n2.5,3\n");
	snprintf(text, sizeof(text), "histogram:%s", path);
	assert_int_equal(lengths_parse_time("x", text, &l, &e), 0);
	for (int i = 0, n[2] = { 0 }; i <= DRAWS; i++) {
		double v = lengths_draw_s(&l, &rng);

		assert_true(v == 0 || v == 2.5);
		n[v > 0]++;
		assert_true(i < DRAWS || abs(n[1] - DRAWS / 4 * 3) < DRAWS / 100);
	}
	lengths_release(&l);
}

static void other_times_are_refused(void **state)
{
	static const char *const law[] = {
		"", "-1", "x", "1e9", "nan", "inf", "constant:", "constant:x", "zipf:1,5", "gauss:1,2",
		"exponential:0", "exponential:-1", "uniform:2,1", "uniform:1", "normal:1", "normal:1,0",
		"lognormal:1,1,2,1", "lognormal:1,1,2", "uniform:0,1e9",
	};
	struct lengths l;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(law) / sizeof(*law); i++) {
		if (lengths_parse_time("--think-time", law[i], &l, &e) == 0)
			fail_msg("taken: %s", law[i]);
		assert_int_equal(e.code, ERR_USAGE);
		assert_non_null(strstr(e.text, "--think-time"));
		assert_non_null(strstr(e.text, "seconds"));
	}
}

/* ---- datasets ---- */

struct fixture {
	struct dataset_opts opts;
	struct dataset_env env;
	struct compat_rng rng;
	struct workload w;
	struct tokenizer *tokenizer;
	struct err e;
};

static void fixture_init(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	f->tokenizer = tokenizer_load(TOKENIZER_SIM, NULL, &f->e);
	assert_non_null(f->tokenizer);
	f->opts = (struct dataset_opts){ .random_input_len = 64, .random_output_len = 16,
					 .random_batch_size = 1 };
	f->env = (struct dataset_env){ .num_prompts = 40, .tokenizer = f->tokenizer,
				       .request_id_prefix = "r-" };
	compat_rng_seed(&f->rng, 0);
}

static int build(struct fixture *f, const char *name)
{
	return dataset_find(name)->build(&f->opts, &f->env, &f->rng, &f->w, &f->e);
}

static void fixture_release(struct fixture *f)
{
	workload_release(&f->w);
	tokenizer_free(f->tokenizer);
}

/* A law for answers leaves prompts as they are; one for prompts leaves where they begin. */
static void laws_move_nothing_else(void **state)
{
	struct fixture plain, f;

	(void)state;
	fixture_init(&plain);
	fixture_init(&f);
	assert_int_equal(build(&plain, "random"), 0);
	f.opts.random_output_len_dist = "uniform:100,900";
	assert_int_equal(build(&f, "random"), 0);
	for (size_t i = 0; i < f.w.n; i++) {
		assert_true(str_eq(f.w.v[i].prompt, plain.w.v[i].prompt));
		assert_in_range(f.w.v[i].output_len, 100, 900);
	}
	assert_int_not_equal(f.w.v[0].output_len, f.w.v[1].output_len);
	workload_release(&f.w);
	f.opts.random_output_len_dist = NULL;
	f.opts.random_input_len_dist = "uniform:2,60";
	f.opts.prompt_token_ids = plain.opts.prompt_token_ids = true;
	workload_release(&plain.w);
	assert_int_equal(build(&plain, "random"), 0);
	assert_int_equal(build(&f, "random"), 0);
	for (size_t i = 0; i < f.w.n; i++) {
		struct str shorter = f.w.v[i].prompt;

		assert_in_range(f.w.v[i].prompt_len, 2, 60);
		assert_int_equal(f.w.v[i].output_len, 16);
		assert_memory_equal(shorter.p, plain.w.v[i].prompt.p, shorter.n - 1);
	}
	f.opts.random_input_len_dist = "nonsense:1";
	assert_int_equal(build(&f, "random"), -1);
	assert_non_null(strstr(f.e.text, OPTION " nonsense:1"));
	fixture_release(&plain);
	fixture_release(&f);
}

static const char burst[] =
	"Timestamp,Log Type,Response tokens,Model,Request tokens,Total tokens,Session ID\n"
	"5,API log,10,GPT-4,3,13,1\n6,API log,20,ChatGPT,4,24,1\n7,API log,0,GPT-4,5,5,1\n"
	"8,API log,,GPT-4,5,5,1\n9,API log,30,GPT-4,0,30,1\n10,API log,67108864,GPT-4,600,640,1\n";

/* Rows 0, 4 and 5 count, whatever the order of columns; drawn as pandas does for state 0. */
static void burstgpt_draws_rows_of_its_model(void **state)
{
	static const unsigned threads[] = { 1, 2, 5 };
	static const size_t prompt[] = { 3, 0, 600 }, answer[] = { 10, 30, 1 << 26 };
	static const size_t wanted[] = { 2, 3, 2000, 3 }, asked[] = { 2, 3, 2000, 0 };
	char path[96];

	(void)state;
	put_file(path, "burst.csv", burst);
	for (size_t k = 0; k < 4; k++) {
		size_t *drawn = mem_array(wanted[k], sizeof(*drawn)), vocab;
		struct fixture f;

		fixture_init(&f);
		f.opts.path = path;
		f.env.threads = threads[k % 3];
		f.env.num_prompts = (int64_t)asked[k];
		if (build(&f, "burstgpt") < 0)
			fail_msg("%s", f.e.text);
		assert_int_equal(f.w.n, wanted[k]);
		vocab = tokenizer_vocab_size(f.tokenizer);
		legacy_pandas_sample(0, 3, drawn, wanted[k], wanted[k] > 3);
		for (size_t i = 0; i < wanted[k]; i++) {
			struct buf text = { 0 };

			for (size_t j = 0; j < prompt[drawn[i]]; j++) {
				uint32_t id = (uint32_t)((i + j) % vocab);

				/* Bytes that are no text become U+FFFD together, below. */
				if (i >= 256 || i + prompt[drawn[i]] <= 128)
					tokenizer_decode(f.tokenizer, &id, 1, false, &text);
			}
			if (text.len)
				assert_true(str_eq(f.w.v[i].prompt, buf_str(&text)));
			assert_int_equal(f.w.v[i].prompt_len, prompt[drawn[i]]);
			assert_int_equal(f.w.v[i].output_len, answer[drawn[i]]);
			buf_release(&text);
		}
		free(drawn);
		fixture_release(&f);
	}
}

static void bad_burstgpt_files_are_refused(void **state)
{
	static const struct { const char *content, *want; } row[] = {
		{ "Model,Request tokens\nGPT-4,5\n", "no column \"Response tokens\"" },
		{ "a,b\n1,2\n", "no column \"Model\"" },
		{ "Model,Request tokens,Response tokens\nChatGPT,1,1\nGPT-4,1,0\n",
		  "none of its 2 rows is of the model GPT-4" },
		{ "Model,Request tokens,Response tokens\nGPT-4,1,1\nGPT-4,x,1\n",
		  ":3: \"Request tokens\" must be a whole number" },
		{ "Model,Request tokens,Response tokens\nGPT-4,,1\n", ":2: \"Request tokens\"" },
		{ "Model,Request tokens,Response tokens\nGPT-4,-1,1\n", ":2: \"Request tokens\"" },
		{ "Model,Request tokens,Response tokens\nGPT-4,1,1e99\n", ":2: \"Response tokens\"" },
		{ "Model,Request tokens,Response tokens\nGPT-4,1,67108865\n",
		  ":2: \"Response tokens\" must be a whole number of 0 to 67108864" },
		{ "Model,Request tokens,Response tokens\nGPT-4,1.5,1\n", ":2: \"Request tokens\"" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct fixture f;
		char path[96];

		fixture_init(&f);
		put_file(path, "bad.csv", row[i].content);
		f.opts.path = path;
		assert_int_equal(build(&f, "burstgpt"), -1);
		if (!strstr(f.e.text, row[i].want) || !strstr(f.e.text, path))
			fail_msg("row %zu: %s", i, f.e.text);
		fixture_release(&f);
	}
}

/* ---- workloads ---- */

static void long_requests_are_left_out(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f);
	f.opts.random_output_len_dist = "uniform:1,100";
	f.opts.max_model_len = (struct opt_int){ true, 64 + 50 };
	assert_int_equal(build(&f, "random"), 0);
	assert_int_equal(dataset_drop_long(&f.w, &f.opts, &f.e), 0);
	assert_in_range(f.w.n, 5, 35);
	for (size_t i = 0; i < f.w.n; i++)
		assert_in_range(f.w.v[i].output_len, 1, 50);
	assert_non_null(strstr(f.w.notes.p, "--max-model-len 114"));
	f.opts.max_model_len.v = 64;
	assert_int_equal(dataset_drop_long(&f.w, &f.opts, &f.e), -1);
	assert_non_null(strstr(f.e.text, "none of the"));
	f.opts.max_model_len.is_set = false;
	assert_int_equal(dataset_drop_long(&f.w, &f.opts, &f.e), 0);
	fixture_release(&f);
}

/* The same bytes, in memory or in a file, also of texts larger than one mapping. */
static void large_workloads_live_in_a_file(void **state)
{
	const size_t large = (256u << 20) + 12345;
	struct workload w = { .memory_max = 1000 };
	char *big = mem_alloc(large);
	struct err e = { 0 };
	struct str kept[4];

	(void)state;
	setenv("TMPDIR", dir, 1);
	memset(big, 'x', large);
	big[large - 1] = 'y';
	for (size_t i = 0; i < 2000; i++) {
		struct sample *s = workload_add(&w);
		char text[32];

		s->prompt = (struct str){ text, (size_t)snprintf(text, sizeof(text), "prompt %zu", i) };
		assert_int_equal(workload_keep(&w, &s->prompt, &e), 0);
	}
	for (size_t i = 0; i < 4; i++) {
		kept[i] = i == 1 ? (struct str){ big, large } : i == 2 ? STR("") : STR("small");
		assert_int_equal(workload_keep(&w, &kept[i], &e), 0);
	}
	assert_true(w.arena.bytes < 2000);
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < w.n; i++) {
			char text[32];

			snprintf(text, sizeof(text), "prompt %zu", i);
			assert_true(str_is(w.v[i].prompt, text));
		}
		assert_int_equal(kept[1].n, large);
		assert_memory_equal(kept[1].p + large - 100, big + large - 100, 100);
		assert_int_equal(kept[2].n, 0);
		assert_true(str_is(kept[3], "small"));
		workload_forget(&w);
	}
	workload_release(&w);
	free(big);
}

static void no_room_for_the_file_is_an_error(void **state)
{
	struct workload w = { .memory_max = 1 };
	struct str text = STR("some text");
	struct err e = { 0 };

	(void)state;
	setenv("TMPDIR", "/nowhere", 1);
	assert_int_equal(workload_keep(&w, &text, &e), -1);
	assert_int_equal(e.code, ERR_IO);
	assert_non_null(strstr(e.text, "/nowhere"));
	setenv("TMPDIR", dir, 1);
	workload_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_have_their_moments),
		cmocka_unit_test(times_may_be_constant_or_recorded),
		cmocka_unit_test(other_times_are_refused),
		cmocka_unit_test(laws_have_their_moments),
		cmocka_unit_test(zipf_has_its_weights),
		cmocka_unit_test(histograms_have_their_weights),
		cmocka_unit_test(wrong_laws_are_refused),
		cmocka_unit_test(laws_move_nothing_else),
		cmocka_unit_test(burstgpt_draws_rows_of_its_model),
		cmocka_unit_test(bad_burstgpt_files_are_refused),
		cmocka_unit_test(long_requests_are_left_out),
		cmocka_unit_test(large_workloads_live_in_a_file),
		cmocka_unit_test(no_room_for_the_file_is_an_error),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
