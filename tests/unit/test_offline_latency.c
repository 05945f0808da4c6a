/* SPDX-License-Identifier: Apache-2.0 */
/* The batch of bench latency against NumPy's draws; what is refused before anything runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bench/offline/latency.h"
#include "bench/offline/mm_processor.h"
#include "latency_golden.h"

static struct latency_opts usual(void)
{
	return *(const struct latency_opts *)latency_opt_set.defaults;
}

static void same_prompts(const struct latency_opts *o, int64_t seed, int64_t vocabulary,
			 const char *const *want)
{
	struct workload w = { 0 };
	struct err e = { 0 };

	assert_int_equal(latency_prompts(o, seed, vocabulary, &w, &e), 0);
	assert_int_equal(w.n, o->batch_size);
	for (size_t i = 0; i < w.n; i++) {
		assert_int_equal(w.v[i].kind, PROMPT_JSON);
		assert_int_equal(w.v[i].prompt_len, o->input_len);
		assert_int_equal(w.v[i].output_len, o->output_len);
		assert_int_equal(w.v[i].prompt.n, strlen(want[i]));
		assert_memory_equal(w.v[i].prompt.p, want[i], w.v[i].prompt.n);
	}
	workload_release(&w);
}

static void prompts_are_numpys(void **state)
{
	struct latency_opts o = usual();

	(void)state;
	o.batch_size = 3;
	o.input_len = 11;
	same_prompts(&o, 7, 0, latency_ids_7);
	same_prompts(&o, 7, 152064, latency_ids_7); /* a large vocabulary changes nothing */
	o.batch_size = 2;
	o.input_len = 9;
	same_prompts(&o, UINT32_MAX, 500, latency_ids_few);
}

static void what_cannot_run_is_refused(void **state)
{
	static const struct {
		int64_t input, output, batch, n, iters;
		bool profile;
		enum err_code code;
		const char *text;
	} row[] = {
		{ 32, 128, 8, 1, 30, false, ERR_NONE, "" },
		{ 32, 128, 8, 1, 0, true, ERR_NONE, "" },
		{ 0, 128, 8, 1, 30, false, ERR_USAGE, "--input-len: expected at least 1, got 0" },
		{ -1, 128, 8, 1, 30, false, ERR_USAGE, "--input-len: expected at least 1, got -1" },
		{ 32, 128, -8, 1, 30, false, ERR_USAGE, "--batch-size: expected at least 1, got -8" },
		{ 32, 128, 0, 1, 30, false, ERR_USAGE, "--batch-size: expected at least 1, got 0" },
		{ 32, 0, 8, 1, 30, false, ERR_USAGE, "--output-len: expected at least 1, got 0" },
		{ 32, 128, 8, 0, 30, false, ERR_USAGE, "--n: expected at least 1, got 0" },
		{ 32, 128, 8, 1, 0, false, ERR_USAGE, "--num-iters: expected at least 1, got 0" },
		{ 32, 128, 8, 1, -3, false, ERR_USAGE, "--num-iters: expected at least 1, got -3" },
		{ 1 << 20, 128, 1 << 20, 1, 30, false, ERR_USAGE, "LATENCY_TOKENS_MAX" },
		{ 32, 128, 8, 1, INT64_MAX, false, ERR_USAGE, "LATENCY_ITERATIONS_MAX" },
		{ INT64_MAX, 128, INT64_MAX, 1, 3, false, ERR_USAGE, "LATENCY_TOKENS_MAX" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		const struct offline_engine engine = { .worker = "hf" };
		struct latency_opts o = usual();
		struct buf notes = { 0 };
		struct offline_job job = { .opts = &o.common, .engine = &engine, .notes = &notes };
		struct err e = { 0 };

		o.input_len = row[i].input;
		o.output_len = row[i].output;
		o.batch_size = row[i].batch;
		o.n = row[i].n;
		o.num_iters = row[i].iters;
		o.profile = row[i].profile;
		assert_int_equal(latency_verb.check(&job, &e), row[i].code ? -1 : 0);
		assert_int_equal(e.code, row[i].code);
		if (row[i].code)
			assert_non_null(strstr(e.text, row[i].text));
		buf_release(&notes);
	}
}

static void hub_sets_are_the_two_families(void **state)
{
	static const struct { const char *set, *path, *name, *text; } row[] = {
		{ "random-mm", NULL, NULL, NULL },
		{ "hf", "lmarena-ai/VisionArena-Chat", NULL, NULL },
		{ "hf", "lmms-lab/LLaVA-OneVision-Data", NULL, NULL },
		{ "hf", "a/folder", "lmarena-ai/vision-arena-bench-v0.1", NULL },
		{ "hf", NULL, NULL, "--dataset-name hf needs --dataset-path, such as" },
		{ "hf", "", NULL, "--dataset-name hf needs --dataset-path, such as" },
		{ "hf", "a/b", NULL, "--dataset-path a/b: not a supported multimodal dataset; there are "
		  "['lmarena-ai/VisionArena-Chat', " },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		const struct offline_engine engine = { 0 };
		struct mm_processor_opts o =
			*(const struct mm_processor_opts *)mm_processor_opt_set.defaults;
		struct buf notes = { 0 };
		struct offline_job job = { .opts = &o.common, .engine = &engine, .notes = &notes };
		struct err e = { 0 };

		o.data.dataset_name = row[i].set;
		o.data.set.path = row[i].path;
		o.data.set.hf_name = row[i].name;
		o.output_len = (struct opt_int){ true, 9 };
		assert_int_equal(mm_processor_verb.check(&job, &e), row[i].text ? -1 : 0);
		if (row[i].text) {
			assert_int_equal(e.code, ERR_USAGE);
			assert_non_null(strstr(e.text, row[i].text));
		} else {
			assert_true(o.data.set.enable_multimodal_chat);
			assert_int_equal(o.data.set.hf_output_len.v, 9);
			assert_int_equal(!strstr(notes.data, "--output-len has no effect"), i > 0);
		}
		buf_release(&notes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prompts_are_numpys),
		cmocka_unit_test(what_cannot_run_is_refused),
		cmocka_unit_test(hub_sets_are_the_two_families),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
