/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_offline.c - the commands that measure an engine without a server: everything that they
 * print and write, with an engine's program whose times are known.
 */
#include "verb.h"

/*
 * The k-th call takes k ms by its own account, and the k-th load of the same $ASKED 5 k ms.
 * $ASKED gets each question. LACKS: features that it does not have. NO_TIMES: requests have none.
 */
static const char worker[] =
	"use strict; use JSON::PP; use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC sleep);\n"
	"my $j = JSON::PP->new->utf8->canonical;\n"
	"open my $s, '+<&=', $ENV{PROFLLM_WORKER_FD} or die; binmode $s;\n"
	"my $asked = $ENV{ASKED} // \"asked.$ENV{VERB_LINE}\";\n"
	"open my $log, '>>', $asked or die; $log->autoflush(1);\n"
	"my ($held, $calls, @held) = (0, 0);\n"
	"my $starts = 1; /\"load\"/ and $starts++ for do { open my $f, '<', $asked; <$f> };\n"
	"my %mean_s = (sha256 => 2e-6, xxhash => 1e-6, hash => 0.5e-6);\n"
	"sub take { my ($n, $t) = (shift, ''); while (length $t < $n) {\n"
	"  sysread($s, $t, $n - length $t, length $t) or exit 0 } $t }\n"
	"sub put { my $t = $j->encode(shift); syswrite $s, pack('N', length $t) . $t }\n"
	"sub span { my ($b, $s) = (int(clock_gettime(CLOCK_MONOTONIC) * 1e9), @_); sleep $s *"
	" 1.5;\n"
	"  (began_ns => $b, ended_ns => $b + int($s * 1e9 + 0.5)) }\n"
	"sub answer { my $q = shift; my $t = $q->{type};\n"
	"  my $name = $q->{function} // $q->{algorithm} // '';\n"
	"  return { skipped => \"No module named '$name'\" } if $name && $name eq $ENV{SKIP};\n"
	"  return { span(0.005 * $starts), compilation_s => 0.25,\n"
	"    phases => [{ name => 'weights', s => 0.5 }] } if $t eq 'load';\n"
	"  return { engine => 'told', vocab_size => 500, max_model_len => 4096, profile_to =>"
	" $ENV{PROFILER} || 'torch',\n"
	"    profile_dir => 'traces', device => 'paper' } if $t eq 'describe';\n"
	"  if ($t eq 'put') { @held = () if $q->{is_first}; push @held, @{$q->{requests}};\n"
	"    return { n => scalar @held } }\n"
	"  if ($t eq 'mm_stats') { my $i = 0; return { requests => { map { $i++ => { hash_secs"
	" => $i / 4,\n"
	"    num_encoder_calls => $i } } @held } } }\n"
	"  return { mean_s => $mean_s{$name}, std_s => 0.25e-6 } if $t eq 'hash';\n"
	"  if ($t eq 'blocks') { $held = 0 if $q->{is_first}; $held += @{$q->{ids}}; return { n"
	" => $held } }\n"
	"  return { times_s => [map { $_ / 10 } 1 .. $q->{trials}] } if $t eq 'block_hash';\n"
	"  return {} unless $t =~ /^(generate|chat|beam)$/;\n"
	"  return { span(++$calls / 1000), prompt_tokens => [map { $_->{prompt_len} } @held],\n"
	"    output_tokens => [map { $_->{output_len} * ($q->{n} || 1) } @held],\n"
	"    $ENV{NO_TIMES} ? () : (e2el_s => [map { $_ / 8 } 1 .. @held]),\n"
	"    finished => [map { 1 } @held] } }\n"
	"put({ type => 'hello', protocol => 1, engine => 'told', version => '9',\n"
	"  features => [grep { !$ENV{LACKS} || $ENV{LACKS} !~ /\\b$_\\b/ } qw(chat beam lora"
	" priority mm_stats async\n"
	"    profile)] });\n"
	"while (1) { my $q = $j->decode(take(unpack 'N', take(4)));\n"
	"  print $log $j->encode($q) . \"\\n\";\n"
	"  put({ id => $q->{id}, type => 'ok', %{answer($q)} }); last if $q->{type} eq"
	" 'shutdown' }\n";

static const char *const clock_varies[] = {
	"\"outside_clock_s\": ", "~of the time passed between", "~of the timed section passed",
	"outside the engine's clock: ", "from its start until", "of it: interpreter",
	".spawn_s", ".ready_s", NULL,
};
static const char *const http_varies[] = {
	"Median latency: ", "Output: ", "Timed: ", "A request's time: ", "-  ", "-profllm.reasons",
	"Engine: server", NULL,
};

#define E .mask = VERB_ERR_TIMES, .varies = clock_varies
#define H .mask = VERB_TIMES | VERB_FLAT, .varies = http_varies

static void latency(void **state)
{
	static const struct verb_case cases[] = {
		{ .line = "bench latency $W --batch-size 2 --input-len 3 --output-len 4"
		  " --num-iters-warmup 1"
		  " --num-iters 6 --output-json r.json", E, .files = "r.json" },
		{ .line = "bench latency $W --batch-size 3 --input-len 2 --output-len 3"
		  " --num-iters-warmup 0 --seed 9"
		  " --num-iters 2 --n 2 --use-beam-search --disable-detokenize --fail-if"
		  " 'avg_latency>0.0001' --junit j.xml --summary s.md", .status = 3, E,
		  .files = "asked.beam j.xml s.md", .env = "ASKED=asked.beam" },
		{ .line = "bench latency $W --batch-size 2 --num-iters 1 --num-iters-warmup 1"
		  " --profile"
		  " --output-json p.json --profiler-config.profiler torch"
		  " --profiler-config.torch_profiler_dir traces", E, .files = "p.json" },
		{ "bench latency $W --batch-size 2 --num-iters 1 --num-iters-warmup 1 --profile"
		  " --output-json p.json --profiler-config.profiler cuda", E,
		  .env = "PROFILER=cuda" },
		{ "bench latency $W --num-iters 1 --num-iters-warmup 0 --profile"
		  " --profiler-config.profiler other", E, .env = "PROFILER=proton" },
		{ "bench latency $W --num-iters 1 --profile", .status = 1, .env = "LACKS=profile" },
		{ .line = "bench latency $W --num-iters 1 --use-beam-search", .status = 1,
		  .env = "LACKS=beam" },
		{ "bench latency $W --num-iters 1 --input-len 4000 --output-len 96 --batch-size 1"
		  " --num-iters-warmup 0 --progress none", E },
		{ "bench latency $W --num-iters 1 --input-len 4000 --output-len 97 --batch-size"
		  " 1", .status = 1 },
		{ .line = "bench latency $W --num-iters 3 --dry-run --output-json no.json",
		  .files = "no.json" },
		{ .line = "bench latency --backend sim --model sim --dry-run --n 2"
		  " --use-beam-search --max-model-len 99" },
		{ .line = "bench latency $W --batch-size 1 --input-len 2 --output-len 2"
		  " --num-iters-warmup 0"
		  " --num-iters 8 --output-json t.json", E, .files = "t.pytorch.json",
		  .env = "SAVE_TO_PYTORCH_BENCHMARK_FORMAT=1" },
		{ "bench latency $W --output-len 0", .status = 2 },
		{ "bench latency $W --num-iters 1 --output-json .", .status = 1 },
		{ .line = "bench latency --backend http --base-url http://127.0.0.1:$S --model"
		  " sim --batch-size 2"
		  " --input-len 4 --output-len 3 --num-iters-warmup 1 --num-iters 2"
		  " --output-json h.json",
		  H, .files = "h.json" },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

static void throughput(void **state)
{
	static const struct verb_case cases[] = {
		{ .line = "bench throughput $W --num-prompts 3 --random-input-len 6"
		  " --random-output-len 4"
		  " --num-warmups 2 --output-json r.json", E, .files = "r.json" },
		{ .line = "bench throughput $W --num-prompts 2 --random-input-len 6"
		  " --random-output-len 4 --num-runs 3"
		  " --n 2 --output-json r3.json --fail-if 'requests_per_second<1e9'",
		  .status = 3, E,
		  .files = "r3.json" },
		{ .line = "bench throughput $W --num-prompts 2 --random-input-len 3"
		  " --random-output-len 2"
		  " --output-json t.json", E, .files = "t.pytorch.json",
		  .env = "SAVE_TO_PYTORCH_BENCHMARK_FORMAT=1" },
		{ .line = "bench throughput $W --num-prompts 2 --random-input-len 3"
		  " --random-output-len 2 --enable-lora"
		  " --lora-path x --max-loras 3 --lora-assignment round-robin", E,
		  .files = "asked.lora",
		  .env = "ASKED=asked.lora" },
		{ "bench throughput $W --num-prompts 2 --random-input-len 3 --random-output-len 2"
		  " --lora-path x", E },
		{ .line = "bench throughput $W --num-prompts 5 --random-input-len 3"
		  " --random-output-len 2"
		  " --data-parallel-size 2 --distributed-executor-backend external_launcher", E,
		  .env = "RANK=1 WORLD_SIZE=2" },
		{ .line = "bench throughput $W --num-prompts 5 --random-input-len 3"
		  " --random-output-len 2"
		  " --data-parallel-size 2 --distributed-executor-backend external_launcher",
		  .status = 1,
		  .env = "RANK=3 WORLD_SIZE=2" },
		{ "bench throughput $W --num-prompts 2 --runner pooling --random-input-len 3", E },
		{ .line = "bench throughput $W --num-prompts 2 --dry-run --num-runs 2"
		  " --num-warmups 1" },
		{ "bench throughput $W --num-prompts 2 --random-input-len 4000"
		  " --random-output-len 200",
		  .status = 1 },
		{ "bench throughput $W --num-prompts 2 --async-engine --random-input-len 3"
		  " --random-output-len 2 --n 2", E },
		{ .line = "bench throughput --backend http --base-url http://127.0.0.1:$S"
		  " --model sim --tokenizer sim"
		  " --num-prompts 3 --random-input-len 4 --random-output-len 3 --output-json"
		  " h.json",
		  H, .files = "h.json" },
		{ "bench throughput $W --num-prompts 0", .status = 2 },
		{ .line = "bench throughput $W --dataset-name sharegpt --dataset-path talks.json"
		  " --num-prompts 2",
		  E, .files = "asked.talks", .env = "ASKED=asked.talks" },
		{ "bench throughput $W --dataset-name random-mm --num-prompts 1"
		  " --random-input-len 4"
		  " --random-output-len 2 --random-mm-bucket-config '{(32, 32, 1): 1.0}'", E },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

static void startup(void **state)
{
	static const struct verb_case cases[] = {
		{ .line = "bench startup $W --num-iters-cold 2 --num-iters-warmup 1"
		  " --num-iters-warm 2"
		  " --output-json r.json", .mask = VERB_ERR_TIMES | VERB_FLAT,
		  .varies = clock_varies,
		  .files = "r.json" },
		{ .line = "bench startup $W --num-iters-cold 1 --num-iters-warmup 0"
		  " --num-iters-warm 1"
		  " --output-json t.json", E, .files = "t.cold_startup.pytorch.json"
		  " t.warm_compilation.pytorch.json", .env = "SAVE_TO_PYTORCH_BENCHMARK_FORMAT=1" },
		{ "bench startup $W --num-iters-cold 0 --num-iters-warmup 0 --num-iters-warm 1"
		  " --fail-if 'avg_warm_startup_time>0.0001'", .status = 3, E },
		{ "bench startup $W --num-iters-cold 0 --num-iters-warmup 0 --num-iters-warm 0",
		  .status = 2 },
		{ .line = "bench startup $W --dry-run" },
		{ .line = "bench startup $W --dry-run --compat v0.11 --num_iters_warm 2" },
		{ "bench startup --backend http --base-url http://127.0.0.1:1 --model m",
		  .status = 2 },
		{ "bench startup $W --num-iters-cold -1", .status = 2 },
		{ "bench startup --backend worker --worker-cmd false --model m --num-iters-cold 1"
		  " --num-iters-warmup 0 --num-iters-warm 0", .status = 1 },
		{ .line = "bench startup --backend http --server-cmd '$PROFLLM sim --port $P'"
		  " --model sim"
		  " --num-iters-cold 1 --num-iters-warmup 0 --num-iters-warm 1 --output-json"
		  " h.json",
		  H, .files = "h.json" },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

static void batches(void **state)
{
	static const struct verb_case cases[] = {
		{ .line = "bench prioritization $W --scheduling-policy priority --input-len 4"
		  " --output-len 5"
		  " --num-prompts 6 --baseline --n 2 --disable-detokenize --output-json pr.json",
		  E, .files = "pr.json asked.pr", .env = "ASKED=asked.pr" },
		{ "bench prioritization $W --scheduling-policy priority --dataset talks.json"
		  " --num-prompts 100", E },
		{ "bench prioritization $W --num-prompts 2 --input-len 3 --output-len 2",
		  .status = 1,
		  .env = "LACKS=priority" },
		{ "bench prioritization $W --num-prompts 2 --input-len 3", .status = 2 },
		{ .line = "bench prioritization $W --scheduling-policy priority --dry-run"
		  " --num-prompts 5"
		  " --input-len 3 --output-len 2 --baseline" },
		{ "bench prioritization --base-url http://127.0.0.1:$S --model sim --tokenizer sim"
		  " --progress none --ready-check-timeout-sec 0 --input-len 4 --output-len 3"
		  " --num-prompts 4"
		  " --baseline", .mask = VERB_TIMES, .varies = verb_serve_varies },
		{ .line = "bench prefix-caching $W --num-prompts 3 --input-length-range 20:30"
		  " --prefix-len 8"
		  " --repeat-count 2 --output-json pc.json", E, .files = "pc.json asked.pc",
		  .env = "ASKED=asked.pc" },
		{ .line = "bench prefix-caching $W --num-prompts 3 --input-length-range 20:30"
		  " --sort --exact-tokens"
		  " --compare-caching --output-json pcc.json", E, .files = "pcc.json" },
		{ "bench prefix-caching $W --num-prompts 2 --input-length-range 4:20"
		  " --dataset-path talks.json",
		  E },
		{ "bench prefix-caching $W --num-prompts 2 --input-length-range 20", .status = 2 },
		{ "bench prefix-caching $W --input-length-range 20:30", .status = 2 },
		{ "bench prefix-caching $W --num-prompts 2 --input-length-range 20:30"
		  " --prefix-len 40",
		  .status = 2 },
		{ .line = "bench long-document-qa $W --document-length 30 --num-documents 3"
		  " --repeat-mode tile"
		  " --output-len 2 --output-json ld.json", E, .files = "ld.json" },
		{ .line = "bench long-document-qa $W --document-length 9 --num-documents 2"
		  " --repeat-mode interleave"
		  " --repeat-count 3 --exact-tokens --output-len 2", E, .files = "asked.ld",
		  .env = "ASKED=asked.ld" },
		{ "bench long-document-qa $W --document-length 9 --num-documents 2 --shuffle-seed 3"
		  " --repeat-count 3 --output-len 2 --compare-caching", E },
		{ .line = "bench long-document-qa $W --document-length 30 --dry-run" },
		{ "bench long-document-qa --base-url http://127.0.0.1:$S --model sim"
		  " --document-length 20"
		  " --num-documents 2 --output-len 2", H },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

#define MM "bench mm-processor $W --random-output-len 2 --random-input-len 5" \
	" --random-mm-bucket-config '{(16, 16, 1): 1.0}' "

static void stages(void **state)
{
	static const struct verb_case cases[] = {
		{ .line = MM "--num-prompts 3 --num-warmups 1"
		  " --metric-percentiles 50,99.9 --output-json mm.json", E,
		  .files = "mm.json" },
		{ .line = MM "--num-prompts 2 --num-warmups 0"
		  " --output-json mn.json", E, .files = "mn.json",
		  .env = "NO_TIMES=1" },
		{ .line = MM "--num-prompts 2", E, .status = 0,
		  .env = "LACKS=mm_stats" },
		{ .line = MM "--num-prompts 2", .status = 1,
		  .env = "LACKS=chat" },
		{ "bench mm-processor $W --metric-percentiles 99,x", .status = 2 },
		{ "bench mm-processor $W --metric-percentiles 101", .status = 2 },
		{ "bench mm-processor $W --dataset-name hf", .status = 2 },
		{ .line = "bench mm-processor $W --dry-run --num-prompts 3" },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

static void hashes(void **state)
{
	static const struct verb_case cases[] = {
		{ .line = "bench hash $H --output-json hash.json", .files = "hash.json asked.hash",
		  .env = "ASKED=asked.hash" },
		{ .line = "bench hash $H --seed 7 --iterations 5", .env = "SKIP=xxhash" },
		{ .line = "bench hash $H", .env = "SKIP=hash" },
		{ "bench hash $H --iterations 0", .status = 2 },
		{ .line = "bench prefix-block-hash $H --num-blocks 3 --block-size 4 --vocab-size"
		  " 10 --trials 2"
		  " --output-json blocks.json", .files = "blocks.json asked.blocks",
		  .env = "ASKED=asked.blocks" },
		{ .line = "bench prefix-block-hash $H --num-blocks 3 --algorithms sha256"
		  " xxhash", .env = "SKIP=xxhash" },
		{ .line = "bench prefix-block-hash $H --num-blocks 3 --algorithms sha256",
		  .status = 1,
		  .env = "SKIP=sha256" },
		{ "bench prefix-block-hash $H --algorithms md5", .status = 2 },
		{ "bench prefix-block-hash $H --num-blocks 60000000 --block-size 32", .status = 2 },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

static int setup(void **state)
{
	FILE *f;

	if (verb_setup(state) < 0 || !(f = fopen("worker.pl", "w")))
		return -1;
	fputs(worker, f);
	fclose(f);
	f = fopen("talks.json", "w");
	fputs("[{\"conversations\": [{\"value\": \"abcdef\"}, {\"value\": \"yes, it is\"}]},"
	      " {\"conversations\": [{\"value\": \"ghijklm\"}, {\"value\": \"it is so\"}]},"
	      " {\"conversations\": [{\"value\": \"what is that\"}, {\"value\":"
	      " \"nothing\"}]}]", f);
	fclose(f);
	f = fopen("lines.txt", "w");
	for (int i = 0; i < 30; i++)
		fprintf(f, "Line %d of a short poem\n", i);
	fclose(f);
	setenv("SKIP", "", 1);
	verb_let("W", "--backend worker --worker-cmd 'perl worker.pl' --model sim --tokenizer sim");
	verb_let("H", "--worker-cmd 'perl worker.pl'");
	verb_sim("S", "--ttft-ms 1 --itl-ms 0.1");
	verb_free_port("P");
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(latency), cmocka_unit_test(throughput), cmocka_unit_test(startup),
		cmocka_unit_test(batches), cmocka_unit_test(stages), cmocka_unit_test(hashes),
	};

	if (argc > 1)
		return profllm_main(argc, argv);
	return cmocka_run_group_tests(tests, setup, verb_teardown);
}
