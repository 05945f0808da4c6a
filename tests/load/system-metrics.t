#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# The machine during the load: fake GPUs draw a known power, so energy is known; host and server
# processes; the same numbers from the record; what is missing is reported.
# suite: shared
use strict;
use warnings;
use File::Basename qw(dirname);
use FindBin;
use lib $FindBin::Bin;
use LoadTest;
use Test::More;

my $sim = sim('--ttft-ms', '10', '--itl-ms', '10');
my @load = ('--num-prompts', '20', '--max-concurrency', '4', '--random-output-len', '20');

$ENV{PROFLLM_NVML} = dirname($ENV{PROFLLM}) . '/tests/libfake-nvml.so';
$ENV{PROFLLM_SYSFS} = $sim->{dir};
$ENV{FAKE_NVML_STATE} = "$sim->{dir}/gpus";

sub gpus {
	open my $f, '>', $ENV{FAKE_NVML_STATE} or die;
	print $f "$_\n" for @_;
	close $f or die;
}

# Of the wanted one; what a sample's time adds at both ends is far below.
sub is_near {
	my ($got, $want, $name) = @_;
	ok(defined $got && abs($got - $want) <= 0.05 * $want, $name)
		or diag('got ' . ($got // 'nothing') . ", expected about $want");
}

my @two = ('count 2', 'gpu * name Test GPU', 'gpu * total 80e9', 'gpu 0 power 250', 'gpu 1 power 150',
	'gpu 0 used 60e9', 'gpu 1 used 40e9', 'gpu 0 util 80', 'gpu 1 util 60', 'gpu * temp 55',
	'gpu 0 uuid GPU-one', 'gpu 1 uuid GPU-two');

# All of it, and the same from the record.
gpus(@two);
{
	my $run = serve($sim, @load, '--system-metrics', 'all', '--system-interval', '0.05',
		'--record', "$sim->{dir}/run.rec");
	my ($system, $result) = ($run->{own}{system}, $run->{result});
	my ($server) = @{ $system->{processes} };

	is($run->{status}, 0, 'all: the run succeeds') or diag($run->{err});
	is_near($system->{energy_j}, 400 * $result->{duration}, 'all: energy is power times time');
	is_near($system->{power_mean_w}, 400, 'all: power of both');
	is($system->{power_before_w}, 400, 'all: power before the load');
	is_near($system->{j_per_token}, $system->{energy_j} / 400, 'all: joules per output token');
	is_near($system->{j_per_token_total}, $system->{energy_j} /
		(400 + $result->{total_input_tokens}), 'all: and per token');
	is_near($system->{tokens_per_s_per_w}, $result->{output_throughput} / 400,
		'all: tokens per second and watt');
	is($system->{peak_gpu_memory_gb}, 100, 'all: memory of both');
	is($system->{avg_gpu_utilization}, 70, 'all: utilization of both');
	is_deeply([map { [@$_{qw(index uuid name)}] } @{ $system->{gpus} }],
		[[0, 'GPU-one', 'Test GPU'], [1, 'GPU-two', 'Test GPU']], 'all: which GPUs');
	is_deeply($system->{gpus}[0]{memory_gb}, { min => 60, mean => 60, max => 60 },
		'all: memory of one');
	is_deeply($system->{gpus}[1]{temperature_c}, { min => 55, mean => 55, max => 55 },
		'all: temperature of one');
	ok($system->{gpus}[1]{is_energy_counted}, 'all: by the counter');
	cmp_ok($system->{host}{cpus}, '>', 0, 'all: CPUs of the host');
	cmp_ok($system->{host}{memory_gb}{max}, '>', 0, 'all: its memory');
	is($server->{name}, 'server', 'all: who listens is the server');
	is($server->{processes}{max}, 1, 'all: one process');
	cmp_ok($server->{rss_gb}{max}, '>', 0, 'all: its memory');
	cmp_ok($server->{cpu_s}, '>=', 0, 'all: its processor time');
	is($system->{not_watched}, undef, 'all: nothing to explain');
	cmp_ok($system->{telemetry}{samples}, '>=', 3, 'all: sampled while load runs');
	cmp_ok($system->{telemetry}{cpu_s}, '>', 0, 'all: what that took');
	like($run->{out}, qr/^GPU energy \(J\): +[\d.]+ *$/m, 'all: on the terminal');
	like($run->{out}, qr/^1 +40\.0\/40\.0 +60\.0\/60\.0 +150\.0\/150\.0 /m, 'all: a line per GPU');

	my ($status) = profllm('bench', 'score', "$sim->{dir}/run.rec", '--save-result', '--result-dir',
		$sim->{dir}, '--result-filename', 'again.json');
	is($status, 0, 'record: scored again');
	is_deeply(read_json("$sim->{dir}/again.json")->{profllm}{system}, $system,
		'record: the same of the machine');
}

# A driver without the counter: power is integrated.
gpus(@two, 'gpu * fail nvmlDeviceGetTotalEnergyConsumption 3');
{
	my $run = serve($sim, @load, '--system-metrics', 'gpu', '--system-interval', '0.05',
		'--system-gpus', 'GPU-two');
	my $system = $run->{own}{system};

	is(scalar @{ $system->{gpus} }, 1, 'by power: the one that was named');
	is_near($system->{energy_j}, 150 * $run->{result}{duration}, 'by power: power times time');
	ok(!$system->{gpus}[0]{is_energy_counted}, 'by power: and that is said');
	is_deeply($system->{processes}, [], 'by power: no process');
	is($system->{host}{cpus}, undef, 'by power: no host');
}

# Only before and after: counters are whole all the same.
gpus(@two);
{
	my $run = serve($sim, @load, '--system-metrics', 'gpu,process', '--system-interval', '0',
		'--system-pid', "sim=$sim->{pid}");
	my $system = $run->{own}{system};

	is($system->{telemetry}{samples}, 0, 'interval 0: none while load runs');
	is_near($system->{energy_j}, 400 * $run->{result}{duration}, 'interval 0: energy');
	is_deeply([@{ $system->{processes}[0] }{qw(name pid)}], ['sim', $sim->{pid}],
		'interval 0: the process that was named');
}

# What is not there costs nothing but a word.
{
	local $ENV{PROFLLM_NVML} = "$sim->{dir}/none.so";
	my $run = serve($sim, @load, '--system-metrics', 'gpu', '--system-gpus', '0');

	is($run->{status}, 0, 'no GPU: the run succeeds');
	is_deeply($run->{own}{system}{gpus}, [], 'no GPU: none');
	is($run->{own}{system}{energy_j}, undef, 'no GPU: not 0 J');
	like($run->{own}{system}{not_watched}, qr/^gpu: /, 'no GPU: and that is said');
}
{
	my $run = serve($sim, @load, '--system-interval', '3');

	ok(!exists $run->{own}{system}, 'off: nothing is watched');
	unlike($run->{out}, qr/-System-/, 'off: no block');
	like($run->{err}, qr/--system-interval has no effect without --system-metrics/, 'off: said');
}

done_testing();
