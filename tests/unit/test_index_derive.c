/* SPDX-License-Identifier: Apache-2.0 */
/* Columns that are computed of a run's others: each formula, each rule that takes its place. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "results/index/derive.h"
#include "results/index/index.h"
#include "results/index/names.h"

#define CELLS_MAX 24

/*
 * A run: NAME=VALUE, parted by blanks; a value that is a number is one, unless ' is before it; _ in
 * a text is a blank; true is a switch.
 */
struct run {
	struct arena a;
	struct cell cell[CELLS_MAX];
	struct row row;
};

static void make(struct run *r, const char *text)
{
	struct str rest = str_of(text);

	*r = (struct run){ .row = { .id = 1 } };
	r->row.cell = r->cell;
	while (rest.n) {
		struct str value = str_cut(&rest, ' '), name = str_cut(&value, '=');
		struct cell *c = &r->cell[r->row.n++];
		char *own = arena_text(&r->a, value);

		assert_in_range(r->row.n, 1, CELLS_MAX);
		c->column = name;
		if (str_is(value, "true")) {
			c->value = (struct value){ .kind = VALUE_BOOL, .is_true = true };
			continue;
		}
		c->value.kind = str_to_f64(value, &c->value.number) ? VALUE_NUMBER : VALUE_TEXT;
		if (c->value.kind == VALUE_NUMBER)
			continue;
		for (char *p = own; *p; p++)
			*p = *p == '_' ? ' ' : *p;
		c->value.text = str_of(own + (*own == '\''));
	}
	r->row = derive(&r->row, &r->a);
}

static void expect(const char *given, const char *column, const char *text)
{
	struct run r;
	struct value v;

	make(&r, given);
	v = row_value(&r.row, str_of(column));
	if (!text)
		assert_int_equal(v.kind, VALUE_ABSENT);
	if (text && (v.kind != VALUE_TEXT || !str_is(v.text, text)))
		fail_msg("%s: %s is \"%.*s\", expected \"%s\"", given, column,
			 v.kind == VALUE_TEXT ? (int)v.text.n : 1,
			 v.kind == VALUE_TEXT ? v.text.p : "-", text);
	arena_release(&r.a);
}

/* 0: no cell. */
static void expect_number(const char *given, const char *column, double number)
{
	struct run r;
	struct value v;

	make(&r, given);
	v = row_value(&r.row, str_of(column));
	if (v.kind != (number > 0 ? VALUE_NUMBER : VALUE_ABSENT) ||
	    (number > 0 && fabs(v.number - number) > 1e-9 * number))
		fail_msg("%s: %s is %g, expected %g", given, column,
			 v.kind == VALUE_NUMBER ? v.number : 0, number);
	arena_release(&r.a);
}

static void gpus(void **state)
{
	static const struct { const char *run; double n; const char *from; } rows[] = {
		{ "gpus=4 server.servers=1 server.tensor_parallel_size=2", 4, GPUS_FROM_GIVEN },
		{ "gpus=0 derived.gpu_count=3", 3, GPUS_FROM_GIVEN },
		/* Zero means that they are unknown. */
		{ "gpus=0 hardware.gpus=0 server.servers=1 server.tensor_parallel_size=2", 2,
		  GPUS_FROM_SERVERS },
		{ "gpus=0 hardware.gpus=0", 0, NULL },
		{ "server.servers=2 server.tensor_parallel_size=4 server.pipeline_parallel_size=2 "
		  "server.data_parallel_size=3", 48, GPUS_FROM_SERVERS },
		/* Two pools, and a proxy that has no GPU; prefill's own size is not recorded. */
		{ "prefill.servers=2 decode.servers=1 decode.tensor_parallel_size=8 proxy.servers=1",
		  10, GPUS_FROM_SERVERS },
		/* Arguments of a role that no server was started with. */
		{ "server.tensor_parallel_size=4 prefill.servers=1 prefill.tensor_parallel_size=2 "
		  "decode.servers=1 decode.tensor_parallel_size=2", 4, GPUS_FROM_SERVERS },
		{ "server.servers=1 hardware.gpus=8", 8, GPUS_FROM_MACHINE },
		{ "tags.num_gpus=16 server.tensor_parallel_size=8 hardware.gpus=32", 16,
		  GPUS_FROM_METADATA },
		{ "tags.gpu_count=2 hardware.gpus=8", 2, GPUS_FROM_METADATA },
		{ "server.tensor_parallel_size=4 server.pipeline_parallel_size=2 hardware.gpus=64", 8,
		  GPUS_FROM_PARALLEL },
		{ "server.data_parallel_size=8", 8, GPUS_FROM_PARALLEL },
		{ "tags.tp=4 tags.pp=2", 8, GPUS_FROM_PARALLEL },
		/* As --metadata keeps them. */
		{ "tags.num_gpus='16 hardware.gpus=32", 16, GPUS_FROM_METADATA },
		{ "tags.tp='4 tags.pp='2", 8, GPUS_FROM_PARALLEL },
		{ "tags.num_gpus=many tags.tp='4", 4, GPUS_FROM_PARALLEL },
		{ "server.tensor_parallel_size=auto", 0, NULL },
		{ "server.tensor_parallel_size=inf hardware.gpus=1", 1, GPUS_FROM_MACHINE },
		{ "benchmark.servers=3 tags.servers=4", 0, NULL },
		{ "", 0, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		expect_number(rows[i].run, "gpus_used", rows[i].n);
		expect(rows[i].run, "gpus_from", rows[i].from);
	}
	expect_number("gpus=4 output_throughput=1000 total_token_throughput=9000",
		      "tokens_per_s_per_gpu", 250);
	expect_number("gpus=4 output_throughput=1000 total_token_throughput=9000",
		      "total_tokens_per_s_per_gpu", 2250);
	expect_number("output_throughput=1000", "tokens_per_s_per_gpu", 0);
	expect_number("gpus=4 output_throughput=0", "tokens_per_s_per_gpu", 0);
}

/* A result without a verdict is judged by its failed requests. */
static void verdicts(void **state)
{
	static const struct { const char *run, *verdict; } rows[] = {
		{ "completed=100 failed=0", NULL },
		{ "completed=99 failed=1", NULL },
		{ "completed=98 failed=2", "DEGRADED" },
		{ "completed=50 failed=50 status=partial", "DEGRADED" },
		{ "completed=49 failed=51", "INVALID" },
		{ "completed=0 failed=100 status=completed", "INVALID" },
		{ "completed=49 failed=51 status=failed", NULL },
		{ "completed=49 failed=51 verdict=VALID", "VALID" },
		{ "completed=49", NULL }, { "failed=51", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		expect(rows[i].run, "verdict", rows[i].verdict);
	expect("completed=49 failed=51", "trust.reasons", "failures");
	expect("completed=49 failed=51 verdict=VALID", "trust.reasons", NULL);
}

static void models(void **state)
{
	(void)state;
	expect("hardware.gpu=NVIDIA_H100_80GB_HBM3", "gpu_model", "h100-80gb-hbm3");
	expect("hardware.gpu=AMD_Instinct_MI300X_OAM gpu_type=b", "gpu_model", "mi300x-oam");
	/* A simulated GPU comes before that of the machine the simulation ran on. */
	expect("hardware.gpu=NVIDIA_L4 server.gpu=b200-192gb", "gpu_model", "b200-192gb");
	expect("gpu_type=H200 tags.gpu=l40s", "gpu_model", "h200");
	expect("tags.gpu=L40S tags.gpu_model=x", "gpu_model", "l40s");
	expect("tags.gpu_model=A100-SXM4-80GB", "gpu_model", "a100-sxm4-80gb");
	expect("hardware.gpu=NVIDIA tags.gpu_type=t4", "gpu_model", "t4");
	expect("hardware.gpus=8", "gpu_model", NULL);
}

static void speeds(void **state)
{
	static const char tokens[] = "total_output_tokens=1200 completed=100 "; /* 12 a request */
	char run[300];

	(void)state;
	expect_number("median_tpot_ms=20 output_throughput=900 benchmark.max_concurrency=3",
		      "tokens_per_s_per_user", 50);
	expect("median_tpot_ms=20", "speed_from", SPEED_FROM_TPOT);
	expect_number("p99_tpot_ms=40", "p99_tokens_per_s_per_user", 25);
	snprintf(run, sizeof(run), "%smedian_tpot_ms=0 median_e2el_ms=260 median_ttft_ms=40", tokens);
	expect_number(run, "tokens_per_s_per_user", 50); /* 11 tokens in 220 ms */
	expect(run, "speed_from", SPEED_FROM_E2EL);
	expect_number(run, "request_tokens_per_s", 12 / 0.26);
	/* One token of output has no time per token. */
	expect_number("total_output_tokens=100 completed=100 median_e2el_ms=260 median_ttft_ms=40",
		      "tokens_per_s_per_user", 0);
	snprintf(run, sizeof(run), "%smedian_e2el_ms=40 median_ttft_ms=40 output_throughput=900 "
		 "benchmark.max_concurrency=3", tokens);
	expect_number(run, "tokens_per_s_per_user", 300);
	expect(run, "speed_from", SPEED_FROM_THROUGHPUT);
	expect_number(run, "output_tokens_per_s_per_slot", 300);
	expect_number("output_throughput=900", "tokens_per_s_per_user", 0);
	expect("output_throughput=900", "speed_from", NULL);
}

static void power(void **state)
{
	static const char run[] = "output_throughput=3500 system.power_mean_w=700";

	(void)state;
	expect_number(run, "power_w", 700);
	expect_number(run, "tokens_per_s_per_kw", 5000);
	expect_number(run, "j_per_output_token", 0.2);
	expect_number("output_throughput=3500", "tokens_per_s_per_kw", 0);
	expect_number("output_throughput=3500 system.power_mean_w=0", "j_per_output_token", 0);
}

static void loads(void **state)
{
	static const struct { const char *run; double load; const char *kind; } rows[] = {
		{ "benchmark.max_concurrency=32 benchmark.request_rate=5", 32, LOAD_CONCURRENCY },
		{ "benchmark.request_rate=2.5", 2.5, LOAD_RATE },
		{ "benchmark.request_rate=inf benchmark.batch_size=8", 8, LOAD_BATCH },
		{ "benchmark.request_rate=inf", 0, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		expect_number(rows[i].run, "load", rows[i].load);
		expect(rows[i].run, "load_kind", rows[i].kind);
	}
}

#define DOT " \u00b7 "
static void workloads(void **state)
{
	static const struct { const char *run, *is; } rows[] = {
		{ "server.model=meta-llama/Llama-3.1-8B benchmark.dataset-name=x", "Llama-3.1-8B" },
		{ "server.model=/models/Llama-3.1-8B/", "Llama-3.1-8B" },
		{ "server.model=/hub/models--meta-llama--Llama-3.1-8B/snapshots/0e9e", "Llama-3.1-8B" },
		{ "benchmark.model=a/b", "b" },
		{ "server.model=m benchmark.dataset_name=random benchmark.random_input_len=256 "
		  "benchmark.random_output_len=12 benchmark.sonnet_input_len=550",
		  "m" DOT "random 256 in, 12 out" },
		{ "server.model=m benchmark.dataset_name=random benchmark.input_len=512 "
		  "benchmark.random_input_len=256 benchmark.random_prefix_len=64 "
		  "benchmark.random_range_ratio=0.2", "m" DOT "random 512 in, prefix 64, range 0.2" },
		/* What else makes other requests of the same lengths. */
		{ "benchmark.dataset_name=random benchmark.random_input_len=32 benchmark.random_output_len=8 "
		  "benchmark.random_input_len_dist=lognormal:200,0.5", "random lognormal:200,0.5 in, 8 out" },
		{ "benchmark.dataset_name=random benchmark.random_input_len=32 benchmark.multi_turn=true "
		  "benchmark.multi_turn_num_turns=3", "random 32 in, 3 turns" },
		{ "benchmark.dataset_name=random benchmark.multi_turn=true benchmark.multi_turn_num_turns=3 "
		  "benchmark.multi_turn_turns_dist=uniform:2,9", "random, uniform:2,9 turns" },
		{ "benchmark.dataset_name=random benchmark.multi_turn=true", "random, several turns" },
		{ "benchmark.dataset_name=random benchmark.random_cache_ratio=0.5 "
		  "benchmark.random_cache_hit_fraction=0.25 benchmark.multi_turn_num_turns=3 "
		  "benchmark.speedup=2", "random, cache ratio 0.5, cache hits 0.25" },
		{ "benchmark.dataset_name=trace benchmark.dataset_path=/a/t.jsonl benchmark.speedup=1",
		  "trace t.jsonl" },
		{ "benchmark.dataset_name=trace benchmark.dataset_path=/a/t.jsonl benchmark.speedup=2",
		  "trace t.jsonl, speedup 2" },
		{ "benchmark.dataset_name=random-mm benchmark.random_input_len=128",
		  "random-mm 128 in" },
		{ "benchmark.dataset_name=sonnet benchmark.sonnet_input_len=550 "
		  "benchmark.random_input_len=1024 benchmark.sonnet_output_len=150",
		  "sonnet 550 in, 150 out" },
		{ "server.model=m benchmark.dataset_name=sharegpt benchmark.dataset_path=/d/s.json "
		  "benchmark.random_input_len=1024 total_input_tokens=9 completed=1",
		  "m" DOT "sharegpt s.json" },
		{ "server.model=m tags.isl=1000 tags.osl=100", "m" DOT "1000 in, 100 out" },
		{ "server.model=m benchmark.input_len=32 benchmark.output_len=128 mode=latency",
		  "m" DOT "32 in, 128 out" DOT "latency" },
		/* Nothing says what was asked for: by what was measured, within a factor of two. */
		{ "server.model=m total_input_tokens=102500 total_output_tokens=12700 completed=100",
		  "m" DOT "about 1024 in, 128 out" },
		{ "server.model=m total_input_tokens=102300 total_output_tokens=12900 completed=100",
		  "m" DOT "about 1024 in, 128 out" },
		{ "server.model=m total_input_tokens=0 total_output_tokens=12900 completed=100",
		  "m" DOT "about 128 out" },
		{ "server.model=m total_input_tokens=102300 total_output_tokens=0 completed=100",
		  "m" DOT "about 1024 in" },
		{ "server.model=m total_input_tokens=0 total_output_tokens=0 completed=100", "m" },
		{ "server.model=m total_input_tokens=9 total_output_tokens=9 completed=0", "m" },
		{ "completed=0", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		expect(rows[i].run, "workload", rows[i].is);
	expect("total_input_tokens=102300 total_output_tokens=12900 completed=100", "measured_lengths",
	       "about 1024 in, 128 out");
	expect("benchmark.dataset_name=random total_input_tokens=102300 completed=100",
	       "measured_lengths", NULL);
	expect("tags.isl='1000 total_input_tokens=102300 completed=100", "measured_lengths", NULL);
}

/* Those that are computed are columns like others, and a second time changes nothing. */
static void in_the_index(void **state)
{
	struct index *x = index_make();
	struct run r;
	struct index_view *v;
	struct row again, out;
	struct err e;

	(void)state;
	make(&r, "median_tpot_ms=20 gpus=2 output_throughput=10 benchmark.max_concurrency=1");
	again = derive(&r.row, &r.a);
	assert_int_equal(index_add(x, &again, 0, &e), 0);
	v = index_view(x);
	assert_true(index_row(v, 1, &r.a, &out, NULL));
	assert_int_equal(out.n, r.row.n);
	assert_true(row_value(&out, STR("tokens_per_s_per_user")).number == 50);
	index_view_release(v);
	index_free(x);
	arena_release(&r.a);
}

static void names(void **state)
{
	static const struct { const char *name, *label; } labels[] = {
		{ "tokens_per_s_per_gpu", "Output tokens/s/GPU" },
		{ "median_ttft_ms", "Median TTFT" }, { "p99.9_itl_ms", "P99.9 ITL" },
		{ "steady_state.median_ttft_ms", "Steady state: median TTFT" },
		{ "steady_state.p99_tpot_ms", "Steady state: P99 TPOT" },
		{ "steady_state.window.end_s", "window.end_s" },
		{ "max_output_tokens_per_s", "Peak output events" },
		{ "server.max_num_seqs", "max_num_seqs" },
	};
	struct buf label = { 0 };
	struct column_name c = column_name(STR("tokens_per_s_per_gpu"));

	(void)state;
	assert_true(c.is_metric && c.better == 1 && str_is(c.group, "metric"));
	assert_string_equal(c.unit, "tokens/s/GPU");
	for (size_t i = 0; i < sizeof(labels) / sizeof(*labels); i++) {
		column_label(str_of(labels[i].name), &label);
		assert_true(str_is(buf_str(&label), labels[i].label));
		buf_release(&label);
	}
	assert_int_equal(column_better(STR("j_per_output_token")), -1);
	for (size_t i = 0; i < derived_column_count; i++) {
		c = column_name(str_of(derived_columns[i].name));
		assert_true(c.is_metric == (derived_columns[i].better != 0));
	}
	assert_null(derived_column(STR("tokens_per_s")));
}

static double configuration_of(const char *given)
{
	struct run r;
	struct value v;

	make(&r, given);
	v = row_value(&r.row, STR("configuration"));
	arena_release(&r.a);
	return v.kind == VALUE_NUMBER ? v.number : 0;
}

/* Repeats share a number; another commit, version or machine, and what went wrong, do not. */
static void configurations(void **state)
{
	static const char base[] = "config_hash=abc provenance.engine_commit=c1 verdict=VALID "
				   "status=completed hardware.cpu.model=x";
	static const char *const same[] = {
		"config_hash=abc provenance.engine_commit=c1 verdict=DEGRADED status=completed "
		"hardware.cpu.model=x repeat=2 name=other suite=s median_ttft_ms=4 timestamp=9",
		"name=a hardware.cpu.model=x provenance.engine_commit=c1 config_hash=abc",
	};
	static const char *const other[] = {
		"config_hash=abd provenance.engine_commit=c1 hardware.cpu.model=x",
		"config_hash=abc provenance.engine_commit=c2 hardware.cpu.model=x",
		"config_hash=abc tags.commit=c1 hardware.cpu.model=x",
		"config_hash=abc provenance.engine_commit=c1 hardware.cpu.model=y",
		"config_hash=abc provenance.engine_commit=c1 hardware.cpu.model=x hardware.gpus=2",
		"config_hash=abc provenance.engine_commit=c1 hardware.cpu.model=x status=failed",
		"config_hash=abc provenance.engine_commit=c1 hardware.cpu.model=x verdict=INVALID",
		"config_hash=abc provenance.engine_commit=c1 hardware.cpu.model=x "
		"environment.server.version=0.13",
	};

	(void)state;
	assert_true(configuration_of(base) > 0 && configuration_of(base) <= 0x1p52);
	for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++)
		assert_true(configuration_of(same[i]) == configuration_of(base));
	for (size_t i = 0; i < sizeof(other) / sizeof(*other); i++) {
		assert_true(configuration_of(other[i]) != configuration_of(base));
		for (size_t k = 0; k < i; k++)
			assert_true(configuration_of(other[i]) != configuration_of(other[k]));
	}
	assert_true(configuration_of("name=a provenance.engine_commit=c1") == 0);
}

static void roles(void **state)
{
	static const struct { const char *name; enum column_role role; } rows[] = {
		{ "gpu_model", ROLE_HARDWARE }, { "server.gpu", ROLE_HARDWARE },
		{ "hardware.gpu", ROLE_HARDWARE }, { "tags.gpu", ROLE_HARDWARE },
		{ "environment.server.kind", ROLE_ENGINE },
		{ "environment.server.version", ROLE_VERSION },
		{ "provenance.engine_commit", ROLE_VERSION },
		{ "server.quantization", ROLE_PRECISION }, { "server.lora_dtype", ROLE_PRECISION },
		{ "server.tensor_parallel_size", ROLE_PARALLEL },
		{ "prefill.tensor_parallel_size", ROLE_PARALLEL }, { "gpus_used", ROLE_PARALLEL },
		{ "server.max_num_seqs", ROLE_ARGUMENT }, { "decode.max_num_seqs", ROLE_ARGUMENT },
		{ "server.model", ROLE_WORKLOAD }, { "benchmark.dataset_name", ROLE_WORKLOAD },
		{ "benchmark.random_output_len", ROLE_WORKLOAD }, { "workload", ROLE_WORKLOAD },
		{ "benchmark.max_concurrency", ROLE_LOAD }, { "load", ROLE_LOAD },
		{ "benchmark.seed", ROLE_HARNESS }, { "benchmark.num_prompts", ROLE_HARNESS },
		{ "server.port", ROLE_HARNESS }, { "config_hash", ROLE_HARNESS },
		{ "gpus_from", ROLE_HARNESS },
		{ "tags.team", ROLE_PROVENANCE }, { "hardware.os.kernel", ROLE_PROVENANCE },
		{ "suite", ROLE_PROVENANCE },
		{ "verdict", ROLE_OUTCOME }, { "timestamp", ROLE_OUTCOME },
		{ "trust.reasons", ROLE_OUTCOME }, { "failures.timeout", ROLE_OUTCOME },
		{ "median_ttft_ms", ROLE_METRIC }, { "tokens_per_s_per_gpu", ROLE_METRIC },
		{ "system.power_mean_w", ROLE_METRIC }, { "", ROLE_METRIC },
	};
	/* Each is preferred to the next one. */
	static const char *const order[] = {
		"gpu_model", "server.gpu", "hardware.gpu", "environment.server.kind",
		"provenance.engine_commit", "server.quantization", "server.tensor_parallel_size",
		"gpus_used", "benchmark.max_concurrency", "load", "server.model", "workload",
		"server.max_num_seqs", "tags.team", "benchmark.seed", "verdict",
		"median_ttft_ms",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		enum column_role is = column_role(str_of(rows[i].name));

		if (is != rows[i].role)
			fail_msg("%s: %s, expected %s", rows[i].name, column_role_name(is),
				 column_role_name(rows[i].role));
	}
	for (size_t i = 1; i < sizeof(order) / sizeof(*order); i++)
		if (column_rank(str_of(order[i - 1])) >= column_rank(str_of(order[i])))
			fail_msg("%s comes before %s", order[i], order[i - 1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gpus), cmocka_unit_test(verdicts), cmocka_unit_test(models),
		cmocka_unit_test(speeds), cmocka_unit_test(power), cmocka_unit_test(loads),
		cmocka_unit_test(workloads), cmocka_unit_test(in_the_index),
		cmocka_unit_test(names),
		cmocka_unit_test(configurations), cmocka_unit_test(roles),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("index_derive", tests, NULL, NULL);
}
