#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# run-gpus.t - experiments that share a machine, on GPUs that are not there (tests/README.md): none
# has a GPU or a port of another, as their servers' own environments and ports say; they queue;
# what those that are killed have held is free; parts of GPUs, shared ones, and the environment's limit.
use strict;
use warnings;
use Cwd qw(getcwd);
use File::Basename qw(dirname);
use FindBin;
use lib $FindBin::Bin;
use Cli;
use JSON::PP ();
use Test::More;
use Time::HiRes qw(sleep);

my $locks = getcwd() . '/locks';
my $library = dirname($program) . '/tests/libfake-nvml.so';
my $json = JSON::PP->new->canonical;

-e $library or die "$library is missing: make builds it for unit tests and for suites\n";
$ENV{XDG_RUNTIME_DIR} = getcwd() . '/state';
$ENV{PROFLLM_LOCKS} = $locks;
$ENV{PROFLLM_NVML} = $library;
$ENV{FAKE_NVML_STATE} = getcwd() . '/gpus';
delete @ENV{qw(CUDA_VISIBLE_DEVICES HIP_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES)};
mkdir 'state';

# Six requests at once, or one a second for a minute, which is ended when it has been looked at.
my %load = (tokenizer => 'sim', random_input_len => 8, random_output_len => 4, temperature => 0);
my %short = (%load, num_prompts => 6);
my %long = (%load, num_prompts => 60, request_rate => 1, burstiness => 1000);

sub start {
	my ($name, $resources, $load, %more) = @_;
	my $env = delete $more{env};
	my $config = { name => $name, server => { command => 'sim', ttft_ms => 2, itl_ms => 1,
		%{$more{server} || {}} }, benchmark => $load, resources => $resources,
		telemetry => { enabled => JSON::PP::false } };

	spew("$name.yaml", $json->encode($config));
	return begin(args => ['run', '--config', "$name.yaml", '--output', "$name.json",
		'--progress', 'none'], env => $env || {}, seconds => 120);
}

sub document { return json_of(slurp("$_[0].json")) }

# The simulators of this test: each with its arguments and address on which the server listens.
sub servers {
	my @found;

	for my $path (glob '/proc/[0-9]*') {
		my @words = split /\0/, slurp("$path/cmdline") // '';
		my %env = map { /^(\w+)=(.*)/s ? ($1, $2) : () } split /\0/,
			slurp("$path/environ") // '';
		my ($pid) = $path =~ /(\d+)$/;

		next unless @words > 1 && $words[0] eq $program && $words[1] eq 'sim' &&
			($env{PROFLLM_LOCKS} // '') eq $locks;
		my ($i) = grep { $words[$_] eq '--port' } 0 .. $#words;
		push @found, { pid => $pid, gpus => $env{CUDA_VISIBLE_DEVICES}, port => $words[$i + 1] };
	}
	return @found;
}

# Whether the lock of a file is held: F_OFD_GETLK of a lock for writing.
sub is_locked {
	my ($path) = @_;
	my $lock = pack 's s x4 q q l x4', 1, 0, 0, 0, 0;

	open my $f, '+<', $path or return 0;
	fcntl $f, 36, $lock or die "F_OFD_GETLK: $!\n";
	return unpack('s', $lock) != 2;
}

sub held { return grep { is_locked($_) } map { glob "$locks/$_-*" } @_ }
sub distinct { my %seen = map { $_ => 1 } @_; return scalar keys %seen }

# Its reports are long: only what went wrong.
sub is_status {
	my ($run, $status, $what) = @_;

	return is($run->{status}, $status, $what) || diag("$run->{err}\n$run->{out}");
}

# ---- eight at once, half of them killed ----

{
	spew('gpus', "count 8\n");
	my @runs = map { start("long$_", { gpus => 1 }, \%long) } 1 .. 8;
	my (@all, @left, $run, %of);

	wait_for('eight servers', sub { (@all = servers()) == 8 });
	is(distinct(map { $_->{gpus} } @all), 8, 'eight experiments at once: eight GPUs');
	is(join(',', sort map { $_->{gpus} } @all), '0,1,2,3,4,5,6,7', 'all that there are');
	is(distinct(map { $_->{port} } @all), 8, 'and eight ports');
	is(scalar(held('gpu', 'port')), 16, 'a lock for each');

	$run = finish(start('ninth', { gpus => 1 }, \%short));
	is_status($run, 1, 'a ninth finds no GPU');
	like($run->{err}, qr/1 GPU is needed, but 0 of 8 are free: GPU 0 is held by exp_\w+ \(process \d+, /,
		'it is told who holds them');
	like($run->{err}, qr/\): profllm run[;,.\n]/, 'and what that does');
	unlike($run->{err}, qr/--config/, 'without its arguments, which all users could read');
	is_deeply([@{document('ninth')->{error}}{qw(stage category)}], ['allocate', 'gpus busy'],
		'its document says so');

	# Whose server each is, from the lock of its GPU.
	for (held('gpu')) {
		my ($pid) = slurp($_) =~ /^process (\d+) /m;
		$of{$pid}++;
	}
	is_deeply([sort keys %of], [sort map { $_->{pid} } @runs], 'each lock names its holder');
	kill 'KILL', map { $_->{pid} } @runs[0 .. 3];
	waitpid $_->{pid}, 0 for @runs[0 .. 3];
	is(scalar(held('gpu')), 4, 'half of them killed: their GPUs are free at once');
	is(scalar(held('port')), 4, 'their ports too');
	wait_for('the end of their servers', sub { (@left = servers()) == 4 });
	my %left = map { $_->{gpus} => 1 } @left;
	my $free = join ',', grep { !$left{$_} } 0 .. 7;

	$run = finish(start('after', { gpus => 4 }, \%short));
	is_status($run, 0, 'what they had can be used');
	is(join(',', map { $_->{index} } @{document('after')->{config}{servers}[0]{gpus}}), $free,
		'it is what is taken');
	is(scalar(grep { !is_locked($_) } glob "$locks/gpu-* $locks/port-*"), 0,
		'files of the dead are gone');

	kill 'INT', map { $_->{pid} } @runs[4 .. 7];
	my @ended = map { finish($_) } @runs[4 .. 7];
	is(join(',', map { $_->{status} } @ended), '130,130,130,130', 'the others are stopped');
	my @used = map { document("long$_")->{config}{servers}[0] } 5 .. 8;
	is(join(',', sort map { $_->{index} } map { @{$_->{gpus}} } @used), join(',', sort keys %left),
		'their documents say which GPUs they had');
	is(scalar(my @rest = glob "$locks/*-*"), 0, 'no lock is left');
	is(scalar(servers()), 0, 'and no server');
}

# ---- more than there is room for ----

{
	# Around the simulator: it leaves a folder for each GPU while it runs. Two cannot.
	spew('around.pl', <<'PL');
my @gpus = split /,/, $ENV{CUDA_VISIBLE_DEVICES};
for (@gpus) { mkdir "in-use-$_" or do { open my $f, '>', "clash-$_-$$"; exit 3 } }
my $pid = fork // die;
exec @ARGV if !$pid;
$SIG{TERM} = sub { kill 'TERM', $pid };
1 while waitpid($pid, 0) != $pid;
rmdir "in-use-$_" for @gpus;
PL
	spew('gpus', "count 6\n");
	my @runs = map { start("queued$_", { gpus => 2 + $_ % 2, wait_s => 110 }, \%short,
		server => { command => ['perl', getcwd() . '/around.pl', $program, 'sim'] }) } 1 .. 8;
	my @ended = map { finish($_) } @runs;

	is(join(',', map { $_->{status} } @ended), '0,0,0,0,0,0,0,0', 'eight of two or three GPUs queue')
		|| diag(map { $_->{err} } @ended);
	is(scalar(my @clash = glob 'clash-*'), 0, 'no GPU was ever of two');
	ok(scalar(grep { "$_->{out}$_->{err}" =~ /^Waiting for GPUs: [23] GPUs are needed, /m } @ended),
		'who waits is told');
	ok(!(grep { "$_->{out}$_->{err}" =~ /^Waiting for GPUs: .*: profllm run/m } @ended),
		'but not with what every holder does');
	is(join(',', map { scalar @{document("queued$_")->{config}{servers}[0]{gpus}} } 1 .. 8),
		'3,2,3,2,3,2,3,2', 'each had what it wanted');
	is(scalar(my @rest = glob "$locks/*-* $locks/queue/*"), 0, 'no lock and no ticket is left');
}

# ---- a port that a server names ----

{
	my $port = free_port();
	my %at = (server => { port => $port });

	spew('gpus', "count 2\n");
	my $first = start('first', { gpus => 'none' }, \%long, %at);
	wait_for('its server', sub { servers() == 1 });
	my $run = finish(start('second', { gpus => 1 }, \%short, %at));
	is_status($run, 1, 'a port that another experiment has');
	like($run->{err}, qr/server: port $port is reserved by exp_\w+ \(process $first->{pid}, /,
		'it is told');
	$run = finish(start('second', { gpus => 1, wait_s => 0.5 }, \%short, %at));
	like($run->{err}, qr/port $port is reserved by .* \(waited 0\.5 s\)$/m, 'wait_s: after that time');
	is_deeply([@{document('second')->{error}}{qw(stage category)}], ['allocate', 'port taken'],
		'its document says so');

	my $next = start('second', { gpus => 1, wait_s => 100 }, \%short, %at);
	wait_for('word of it', sub {
		(slurp($next->{out_path}) // '') =~ /^Waiting for a port: server: port $port is reserved/m });
	is(scalar(held('gpu')), 0, 'who waits for a port holds no GPU');
	kill 'INT', $first->{pid};
	finish($first);
	is_status(finish($next), 0, 'once it is free the other one goes on');
	is(document('second')->{config}{servers}[0]{url}, "http://127.0.0.1:$port", 'there');
	is(scalar(my @rest = glob "$locks/*-* $locks/queue/*"), 0, 'no lock and no ticket is left');
}

# ---- GPUs of other kinds ----

{
	my ($run, $server);

	spew('gpus', "count 8\n");
	$run = finish(start('limited', { gpus => 2 }, \%short, env => { CUDA_VISIBLE_DEVICES => '2,3' }));
	is_status($run, 0, 'CUDA_VISIBLE_DEVICES=2,3');
	$server = document('limited')->{config}{servers}[0];
	is(join(',', map { $_->{index} } @{$server->{gpus}}), '2,3', 'no others are taken');
	$run = finish(start('over', { gpus => 3 }, \%short, env => { CUDA_VISIBLE_DEVICES => '2,3' }));
	is_status($run, 2, 'three of them');
	like($run->{err},
		qr/over\.yaml:1:\d+: resources\.gpus: 3 GPUs are needed, but only 2 may be used here/,
		'are too many, which is seen before anything is started');

	spew('gpus', "count 2\ngpu 0 mig 1g.10gb 3\ngpu 0 part 0 9000000000\n");
	my $long = start('part', { gpus => ['0:1'] }, \%long);
	wait_for('a server on a part', sub { servers() == 1 });
	is((servers())[0]{gpus}, 'MIG-a0000000-fa4e-4e5e-8000-000000000000-1', 'a part by its UUID');
	spew('split.json', '{"status": "completed"}');
	for ([['0'], qr/GPU 0 is split \(MIG\)/, 'what is split'],
		[['7'], qr/this machine has no GPU 7/,
		'what does not exist']) {
		my ($gpus, $says, $what) = @$_;

		$run = finish(start('split', { gpus => $gpus }, \%short));
		is_status($run, 2, "$what is not taken");
		like($run->{err}, qr/split\.yaml:1:\d+: resources\.gpus: $says/, "$what: where and why");
		is(slurp('split.json'), '{"status": "completed"}', "$what: no earlier result is moved");
	}
	$run = finish(start('taken', { gpus => ['0:1'] }, \%short));
	like($run->{err}, qr/GPU 0:1 \(MIG 1g\.10gb\) is held by exp_/, 'a part is held like a GPU');
	kill 'INT', $long->{pid};
	finish($long);
	is(document('part')->{config}{servers}[0]{gpus}[0]{uuid},
		'MIG-a0000000-fa4e-4e5e-8000-000000000000-1', 'the document has its name');
}

{
	spew('gpus', "count 1\ngpu 0 process $$ 30000000000\n");
	my %shared = (gpus => 1, shared => JSON::PP::true);
	my $long = start('shared1', \%shared, \%long);
	my $run;

	wait_for('a server on a shared GPU', sub { servers() == 1 });
	is_status(finish(start('shared2', \%shared, \%short)), 0, 'a GPU in use can be shared');
	$run = finish(start('shared3', { %shared, memory_free => 0.8 }, \%short));
	like($run->{err}, qr/GPU 0 has \d+\.\d of 80\.0 GiB free, less than 80 %/,
		'as long as enough memory is left');
	spew('gpus', "count 1\n");
	$run = finish(start('alone', { gpus => 1 }, \%short));
	like($run->{err}, qr/GPU 0 is held by exp_/, 'but not by one who wants it alone');
	kill 'INT', $long->{pid};
	finish($long);
	is(scalar(my @rest = glob "$locks/*-*"), 0, 'no lock is left');
}

done_testing();
