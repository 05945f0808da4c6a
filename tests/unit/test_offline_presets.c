/* SPDX-License-Identifier: Apache-2.0 */
/* Load patterns, --compat v0.11 among the options, and the options in the PyTorch file. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bench/offline/pytorch.h"
#include "bench/options/serve_opts.h"
#include "serve_line.h"

static void same_flags(const struct line *l, const char *want)
{
	struct buf flags = { 0 };

	load_pattern_flags(&l->o, &l->r, &flags);
	assert_string_equal(flags.data ? flags.data : "", want);
	buf_release(&flags);
}

/* Every row's options exist, take its values, and pass all rules. */
static void every_pattern_is_a_command_line(void **state)
{
	(void)state;
	for (const struct load_pattern *p = load_patterns; p->name; p++) {
		struct line l;

		RUN(&l, "--load-pattern", p->name);
		if (l.rc < 0)
			fail_msg("%s: %s", p->name, l.e.text);
		done(&l);
	}
}

static void what_is_given_wins(void **state)
{
	struct line l;

	(void)state;
	RUN(&l, "--load-pattern", "bursty", "--request-rate", "40");
	assert_int_equal(l.rc, 0);
	assert_true(l.o.request_rate == 40 && l.o.burstiness == 0.25);
	same_flags(&l, "--burstiness 0.25");
	done(&l);
	RUN(&l, "--load-pattern", "steady");
	assert_true(l.o.request_rate == 10 && isinf(l.o.burstiness));
	same_flags(&l, "--request-rate 10 --burstiness inf");
	done(&l);
	RUN(&l, "--load-pattern", "ramp", "--ramp-up-end-rps", "7");
	assert_int_equal(l.d.ramp_up, RAMP_LINEAR);
	assert_int_equal(l.o.ramp_up_end_rps.v, 7);
	same_flags(&l, "--ramp-up-strategy linear --ramp-up-start-rps 1");
	done(&l);
	RUN(&l, "--load-pattern", "stedy");
	assert_int_equal(l.e.code, ERR_USAGE);
	assert_string_equal(l.e.text, "--load-pattern: unknown name 'stedy'; did you mean steady?; "
			    "--load-pattern help lists the names");
	done(&l);
}

#define OLD "--compat", "v0.11", "--model", "m"

static void an_old_release_has_its_defaults(void **state)
{
	struct line l;

	(void)state;
	RUN(&l, OLD);
	assert_int_equal(l.rc, 0);
	assert_int_equal(l.d.compat, COMPAT_V011 | COMPAT_STDOUT);
	assert_int_equal(l.o.ready_check_timeout_sec, 600);
	assert_string_equal(l.o.request_id_prefix, "benchmark-serving");
	assert_string_equal(l.d.extra_body, "{\"temperature\": 0.0}");
	assert_false(l.d.is_temperature_unset);
	assert_int_equal(l.d.metrics.selected, TOKEN_BLOCKS);
	assert_int_equal(l.r.notes.len, 0);
	done(&l);
	RUN(&l, OLD, "--ready-check-timeout-sec", "0", "--temperature", "0.5",
	    "--request-id-prefix", "x", "--percentile-metrics", "e2el,client_queue_time",
	    "--max-concurrency", "2", "--num-warmups", "1");
	assert_int_equal(l.o.ready_check_timeout_sec, 0);
	assert_string_equal(l.d.extra_body, "{\"temperature\": 0.5}");
	assert_string_equal(l.o.request_id_prefix, "x");
	assert_int_equal(l.d.metrics.selected, BLOCK_BIT(BLOCK_E2EL));
	assert_string_equal(l.r.notes.data, "--num-warmups is newer than v0.11; it is accepted anyway\n");
	done(&l);
	RUN(&l, OLD, "--backend", "openai-embeddings", "--endpoint", "/v1/embeddings");
	assert_int_equal(l.rc, 0);
	assert_null(l.d.extra_body);
	assert_int_equal(l.d.metrics.selected, TOKEN_BLOCKS); /* none is defined */
	done(&l);
	RUN(&l, "--compat", "v0.11");
	assert_int_equal(l.e.code, ERR_USAGE);
	assert_string_equal(l.e.text, "the following arguments are required: --model");
	done(&l);
	RUN(&l, OLD, "--tokenizer-mode", "hf");
	assert_int_equal(l.e.code, ERR_USAGE);
	done(&l);
	/* Another entry of the list changes none of it. */
	RUN(&l, "--compat", "peak", "--model", "m");
	assert_int_equal(l.o.ready_check_timeout_sec, 0);
	assert_null(l.d.extra_body);
	done(&l);
}

static void options_are_shown_as_upstream_has_them(void **state)
{
	static const char head[] =
		"{\"subparser\": \"bench\", \"bench_type\": \"serve\", \"dispatch_function\": "
		"\"<function is not JSON serializable>\", \"trust_remote_code\": false, \"seed\": 0, "
		"\"num_prompts\": 1000, \"dataset_name\": \"random\", ";
	static const char *const parts[] = {
		"\"timed_trace_sec_multiplier\": 1, ", "\"random_range_ratio\": 0.0, ",
		"\"random_mm_limit_mm_per_prompt\": {\"image\": 255, \"video\": 1}, ",
		"\"random_mm_bucket_config\": {\"(256, 256, 1)\": 0.5, \"(720, 1280, 1)\": 0.5, "
		"\"(720, 1280, 16)\": 0.0}, ",
		"\"header\": \"***\", ", "\"self_timed\": false, ", "\"ignore_eos\": true, ",
		"\"temperature\": null, ",
		"\"request_rate\": \"inf\", ",
	};
	struct buf out = { 0 };
	struct line l;

	(void)state;
	RUN(&l, "--header", "a=b", "--request-id-prefix", "p-");
	run_pytorch_args(&l.o, &out);
	assert_true(str_starts(buf_str(&out), str_of(head)));
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (!strstr(out.data, parts[i]))
			fail_msg("no %s in %s", parts[i], out.data);
	assert_null(strstr(out.data, "warm_connections")); /* ours */
	assert_null(strstr(out.data, "endpoint_type"));    /* an old spelling */
	done(&l);
	buf_reset(&out);
	RUN(&l, "--dataset-name", "random-mm", "--random-mm-bucket-config",
	    "{(1,2,1): 1.0}", "--random-range-ratio", "{\"input\": 0.5}", "--backend",
	    "openai-chat", "--timed-trace-sec-multiplier", "2");
	run_pytorch_args(&l.o, &out);
	assert_non_null(strstr(out.data, "\"random_mm_bucket_config\": {\"(1, 2, 1)\": 1.0}, "));
	assert_non_null(strstr(out.data, "\"random_range_ratio\": {\"input\": 0.5}, "));
	assert_non_null(strstr(out.data, "\"timed_trace_sec_multiplier\": 2.0, "));
	done(&l);
	buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_pattern_is_a_command_line),
		cmocka_unit_test(what_is_given_wins),
		cmocka_unit_test(an_old_release_has_its_defaults),
		cmocka_unit_test(options_are_shown_as_upstream_has_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
