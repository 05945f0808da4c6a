/* SPDX-License-Identifier: Apache-2.0 */
/* Rules between --backend and the other options: what is refused, noted, and derived. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "serve_line.h"

#define EMBED "--backend", "openai-embeddings", "--endpoint", "/v1/embeddings"
#define AUDIO "--backend", "openai-audio", "--endpoint", "/v1/audio/translations"

static void pooling_reports_latency(void **state)
{
	struct line l;

	(void)state;
	RUN(&l, EMBED, "--top-k", "3", "--temperature", "0", "--extra-body", "{\"a\": 1}");
	assert_int_equal(l.rc, 0);
	assert_true(l.d.is_pooling);
	assert_int_equal(l.d.metrics.selected, BLOCK_BIT(BLOCK_E2EL));
	assert_string_equal(l.d.extra_body, "{\"a\": 1}");
	assert_false(l.d.is_temperature_unset);
	assert_false(l.o.ignore_eos); /* random forces it on for generation alone */
	assert_string_equal(l.r.notes.data,
			    "--top-k has no effect: --backend openai-embeddings generates no text\n"
			    "--temperature has no effect: --backend openai-embeddings generates no "
			    "text\n");
	done(&l);
	RUN(&l, EMBED, "--ignore-eos", "--percentile-metrics", "ttft,e2el");
	assert_true(l.o.ignore_eos);
	assert_int_equal(l.d.metrics.selected, BLOCK_BIT(BLOCK_TTFT) | BLOCK_BIT(BLOCK_E2EL));
	assert_string_equal(l.r.notes.data,
			    "--percentile-metrics: ttft, tpot and itl are not reported for --backend "
			    "openai-embeddings, which generates no text\n");
	done(&l);
	RUN(&l, "--backend", "vllm-rerank", "--endpoint", "/rerank", "--dataset-name",
	    "random-rerank", "--extra-body", "{\"a\": 1}", "--goodput", "e2el:5");
	assert_int_equal(l.rc, 0);
	assert_string_equal(l.r.notes.data,
			    "--goodput has no effect: --backend vllm-rerank generates no text\n"
			    "--extra-body has no effect: rerank requests take no further keys, as "
			    "in vLLM\n");
	done(&l);
	/* Objectives are judged all the same, as upstream. */
	RUN(&l, EMBED, "--goodput", "x:5");
	assert_int_equal(l.rc, -1);
	assert_int_equal(l.e.code, ERR_USAGE);
	done(&l);
}

static void generation_is_as_before(void **state)
{
	struct line l;

	(void)state;
	RUN(&l, "--backend", "openai-chat", "--endpoint", "/v1/chat/completions");
	assert_int_equal(l.rc, 0);
	assert_false(l.d.is_pooling);
	assert_int_equal(l.d.metrics.selected, TOKEN_BLOCKS);
	assert_true(l.d.is_temperature_unset && l.o.ignore_eos);
	assert_int_equal(l.r.notes.len, 0);
	done(&l);
}

/* Audio is a generating backend that takes none of the sampling options. */
static void audio_takes_no_sampling(void **state)
{
	static const char *const flag[][2] = {
		{ "--top-p", "0.5" }, { "--top-k", "1" }, { "--min-p", "0.5" },
		{ "--temperature", "0" }, { "--frequency-penalty", "1" },
		{ "--presence-penalty", "1" }, { "--repetition-penalty", "1" },
	};
	struct line l;

	(void)state;
	for (size_t i = 0; i < sizeof(flag) / sizeof(*flag); i++) {
		char text[200];

		RUN(&l, AUDIO, flag[i][0], flag[i][1]);
		assert_int_equal(l.rc, -1);
		assert_int_equal(l.e.code, ERR_USAGE);
		snprintf(text, sizeof(text), "%s: sampling options are for APIs like OpenAI's, which "
			 "--backend openai-audio is not", flag[i][0]);
		assert_string_equal(l.e.text, text);
		done(&l);
	}
	RUN(&l, AUDIO, "--extra-body", "{\"temperature\": 0}");
	assert_int_equal(l.rc, 0);
	assert_true(l.d.is_temperature_unset);
	assert_false(l.o.ignore_eos);
	done(&l);
	/* Objectives come first, as upstream. */
	RUN(&l, AUDIO, "--top-k", "1", "--goodput", "x:5");
	assert_true(str_starts(str_of(l.e.text), STR("--goodput: unknown metric 'x'")));
	done(&l);
}

static void an_api_has_its_own_path(void **state)
{
	struct line l;

	(void)state;
	RUN(&l, "--backend", "vllm-pooling");
	assert_int_equal(l.rc, 0);
	assert_string_equal(l.o.endpoint, "/pooling");
	assert_string_equal(l.r.notes.data,
			    "--endpoint is /pooling, the path of --backend vllm-pooling\n");
	done(&l);
	RUN(&l, "--backend", "vllm-pooling", "--endpoint", "/x");
	assert_string_equal(l.o.endpoint, "/x"); /* what is typed counts; the run refuses it */
	done(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pooling_reports_latency),
		cmocka_unit_test(generation_is_as_before),
		cmocka_unit_test(audio_takes_no_sampling),
		cmocka_unit_test(an_api_has_its_own_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
