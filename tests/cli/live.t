#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# --live on a terminal of our own: what its frames show, and that it gives the terminal back.
use strict;
use warnings;
use Fcntl qw(O_RDWR O_NOCTTY);
use FindBin;
use lib $FindBin::Bin;
use Cli;
use POSIX qw(_exit setsid);
use Test::More;
use Time::HiRes qw(sleep time);

# ioctl numbers of Linux: unlock a terminal's other end, ask for its number, set its size.
my ($unlock, $number, $resize) = (0x40045431, 0x80045430, 0x5414);
my ($enter, $leave) = ("\e[?1049h", "\e[?1049l");

# terminal(columns, rows, args...): the program with a terminal as stdin, stdout and stderr.
sub terminal
{
	my ($columns, $rows, @args) = @_;
	my %t = (text => '');

	sysopen($t{fd}, '/dev/ptmx', O_RDWR | O_NOCTTY) or return;
	ioctl($t{fd}, $unlock, my $zero = pack 'i', 0) or return;
	ioctl($t{fd}, $number, my $n = pack 'i', 0) or return;
	resize(\%t, $columns, $rows);
	$t{pid} = fork;
	if (!$t{pid}) {
		setsid();
		# The first terminal that a session opens is its own: Ctrl-C reaches it.
		sysopen(my $tty, '/dev/pts/' . unpack('i', $n), O_RDWR) or _exit(126);
		POSIX::dup2(fileno $tty, $_) for 0 .. 2;
		$ENV{TERM} = 'xterm';
		$ENV{LC_ALL} = 'C.UTF-8';
		exec { $program } $program, @args or _exit(127);
	}
	return \%t;
}

sub resize { ioctl($_[0]{fd}, $resize, my $size = pack 'S4', $_[2], $_[1], 0, 0) or die "size: $!" }

# Reads output for this long, or until done() is true; false when the program has ended.
sub look
{
	my ($t, $seconds, $done) = @_;
	my $end = time + $seconds;

	while (time < $end) {
		vec(my $ready = '', fileno $t->{fd}, 1) = 1;
		if (select($ready, undef, undef, 0.05) > 0) {
			sysread($t->{fd}, $t->{text}, 65536, length $t->{text}) or return 0;
		}
		return 1 if $done && $done->($t->{text});
	}
	return 1;
}

sub finish_terminal
{
	my ($t) = @_;
	my $end = time + 30;

	1 while look($t, 1) && time < $end;
	kill 'KILL', $t->{pid} if time >= $end;
	waitpid $t->{pid}, 0;
	$t->{status} = $? & 127 ? 'signal ' . ($? & 127) : $? >> 8;
	close $t->{fd};
	return $t;
}

# The frames as lists of lines, without the sequences that place them.
sub frames
{
	my ($text) = @_;
	my (undef, @frames) = split /\e\[H/, $text;

	return map { [map { s/\e\[[?0-9;]*[A-Za-z]//gr } split /\r+\n/, s/\e\[J.*//sr] } @frames;
}

sub is_given_back
{
	my ($t, $name) = @_;
	my $entered = () = $t->{text} =~ /\Q$enter\E/g;
	my $left = () = $t->{text} =~ /\Q$leave\E/g;

	ok($entered >= 1, "$name: it took the screen");
	is($left, $entered, "$name: and gave it back");
	like($t->{text}, qr/\e\[\?7h\e\[\?25h\Q$leave\E(?!.*\e\[\?25l)/s,
		"$name: with wrapping and the cursor");
}

my $why = no_terminal();

plan skip_all => $why if $why;

sub args
{
	my ($sim, @more) = @_;
	return ('bench', 'serve', '--base-url', $sim->{url}, @{ $tiny{model} },
		'--random-input-len', '8', '--random-output-len', '8', '--temperature', '0',
		'--ready-check-timeout-sec', '0', '--live', @more);
}

my $sim = start_sim('--ttft-ms', '20', '--itl-ms', '5');

# A run from its beginning to its end, on a machine with GPUs that are not there.
{
	local $ENV{PROFLLM_NVML} = ($program =~ s{[^/]*$}{}r) . 'tests/libfake-nvml.so';
	local $ENV{FAKE_NVML_STATE} = 'gpus';

	spew('gpus', "count 2\ngpu * util 93\ngpu * power 350\ngpu 0 used 60e9\ngpu * total 80e9\n");
	my $t = terminal(100, 40, args($sim, '--num-prompts', '60', '--request-rate', '25',
		'--seed', '3', '--save-result', '--result-filename', 'live.json', '--metric-percentiles',
		'50,99', '--percentile-metrics', 'ttft,itl,e2el', '--plot-timeline', '--header', 'a=b',
		'--num-warmups', '2', '--system-metrics', 'gpu,host', '--system-interval', '0.2'));

	finish_terminal($t);
	is($t->{status}, 0, 'a run: exit status');
	is_given_back($t, 'a run');
	my @frames = frames($t->{text});
	my $last = join "\n", @{ $frames[-1] };
	my $result = json_of(slurp('live.json'));

	cmp_ok(scalar @frames, '>=', 6, 'a run: frame by frame');
	like($last, qr/^profllm bench serve  sim at \Q$sim->{url}\E/, 'the head');
	like($last, qr{^\[#{32}\] 60/60  00:0\d, }m, 'the bar at the end');
	like($last, qr/^in flight 0   done 60   failed 0/m, 'counters at the end');
	like($last, qr/^requests\/s +[\d.]+ +[\d.]+/m, 'requests per second');
	like($last, qr/^output tokens\/s of each second: peak [1-9]\d*$(?:\n[ \d]{8} \xe2\x94\x82.*){3,}/m,
		'a chart of tokens, with its name and scale');
	like($last, qr/^$_ \(ms\), mean of each second: peak [\d.]+\n +[\d.]+ \xe2\x94\x82/m, "a chart of $_")
		for qw(TTFT ITL);
	is(scalar @{ $frames[-1] }, 39, 'charts fill the height');
	is(scalar(() = $last =~ /^$_ /mg), 1, "one row of $_") for 'running', 'waiting', 'KV cache';
	like($last, qr/^running +\d+ requests /m, 'running requests');
	like($last, qr/^KV cache +[\d.]+ % /m, 'the KV cache as a series');
	like($last, qr/^waiting +0 requests /m, 'the queue');
	like($last, qr/^GPU use +93\.0 % .*\xe2\x96\x88/m, 'the GPUs');
	like($last, qr/^GPU memory +60\.0 of 160 GB /m, 'their memory');
	like($last, qr/^GPU power +700\.0 W /m, 'their power');
	like($last, qr/^host CPUs +[\d.]+ of [\d.]+ busy /m, 'the host');
	unlike($last, qr/^server CPUs/m, 'nothing that is not watched');
	unlike($last, qr/slowest/, 'no list of slow requests where all are alike');
	for my $metric ('ttft', 'itl', 'e2el') {
		my ($numbers) = $last =~ /^\U$metric\E +([\d. ]+)/m;
		my ($mean, $p50, $p90, $p99, $max) = split ' ', $numbers;

		cmp_ok(abs($mean / $result->{"mean_${metric}_ms"} - 1), '<', 0.002, "$metric: mean");
		cmp_ok(abs($p50 / $result->{"p50_${metric}_ms"} - 1), '<', 0.05, "$metric: p50");
		cmp_ok($p99, '<=', $max, "$metric: p99 and max");
	}
	my ($early) = map { /done (\d+)/ ? $1 : () } map { join "\n", @$_ } @frames;

	cmp_ok($early, '<', 30, 'the first frame is of the beginning');
	unlike(join("\n", map { @$_ } @frames), qr/Traffic request rate|Serving Benchmark Result/,
		'nothing else is in the frames');
	like($t->{text}, qr/\Q$leave\E.*=+ Serving Benchmark Result/s, 'the report comes after');
}

# Some requests take much longer than the others.
{
	my $t = terminal(100, 60, args($sim, '--num-prompts', '40', '--request-rate', '25',
		'--random-range-ratio', '0.8', '--random-input-len', '40', '--random-output-len', '40',
		'--seed', '5'));

	finish_terminal($t);
	my $last = join "\n", @{ (frames($t->{text}))[-1] };
	my ($p50) = $last =~ /^E2EL +[\d.]+ +([\d.]+)/m;
	my @slow = $last =~ /^  request \d+ +([\d.]+) +[\d.]+ +\d+$/mg;

	cmp_ok(scalar @slow, '>=', 1, 'slow requests are listed');
	is(scalar(grep { $_ < 1.45 * $p50 } @slow), 0, 'and only those');
}

# The size changes while it is shown.
{
	my $t = terminal(120, 40, args($sim, '--num-prompts', '80', '--request-rate', '25'));

	look($t, 20, sub { $_[0] =~ /TTFT .*TTFT /s });
	resize($t, 50, 12);
	my $from = length $t->{text};

	look($t, 10, sub { substr($_[0], $from) =~ /\e\[2J.*\e\[2J|\e\[2J.*\e\[H.*\e\[H/s });
	my ($after) = substr($t->{text}, $from) =~ /\e\[2J(.*)/s;
	my @small = frames($after);

	pop @small if @small > 1; # may be cut
	kill 'INT', $t->{pid};
	finish_terminal($t);
	is_given_back($t, 'resize and SIGINT');
	is($t->{status}, 130, 'resize and SIGINT: exit status');
	ok(@small >= 1, 'resize: the screen was made anew');
	is(scalar(grep { @$_ > 12 } @small), 0, 'resize: no frame is higher');
	is(scalar(grep { length > 50 + 2 * 49 } map { @$_ } @small), 0, 'resize: no line is wider');
	like($t->{text}, qr/Serving Benchmark Result/, 'SIGINT: the report comes all the same');
}

# However it ends.
for my $signal ('TERM TERM', 'HUP', 'QUIT', 'ABRT', 'SEGV') {
	my $slow = start_sim('--ttft-ms', '20', '--itl-ms', '3000');
	my $t = terminal(80, 24, args($slow, '--num-prompts', '4'));

	look($t, 20, sub { $_[0] =~ /in flight 4/ });
	for my $one (split / /, $signal) {
		kill $one, $t->{pid};
		sleep 0.01;
	}
	finish_terminal($t);
	is_given_back($t, $signal);
	isnt($t->{status}, 0, "$signal: it ended by it") unless $signal eq 'TERM TERM';
}

# Ctrl-Z and back.
{
	my $t = terminal(80, 24, args($sim, '--num-prompts', '60', '--request-rate', '30'));

	look($t, 20, sub { $_[0] =~ /in flight/ });
	kill 'TSTP', $t->{pid};
	look($t, 10, sub { $_[0] =~ /\Q$leave\E/ });
	like($t->{text}, qr/\Q$leave\E/, 'stopped: the screen is given back');
	kill 'CONT', $t->{pid};
	finish_terminal($t);
	is_given_back($t, 'stopped and on');
	is(scalar(() = $t->{text} =~ /\Q$enter\E/g), 2, 'stopped and on: taken again');
	is($t->{status}, 0, 'stopped and on: exit status');
}

# Errors of a server that says odd things.
{
	my $bad = start_raw("HTTP/1.1 503 \e[31mNo\x07 luck\r\nContent-Length: 0\r\n\r\n");
	my $t = terminal(100, 40, args($bad, '--num-prompts', '40', '--request-rate', '30'));

	finish_terminal($t);
	my $last = join "\n", @{ (frames($t->{text}))[-1] };

	is($t->{status}, 1, 'errors: exit status');
	like($t->{text}, qr/done 40   \e\[1;31mfailed 40\e\[0m/, 'errors: failures are red');
	like($last, qr/^errors, the last first  http_status 40$/m, 'errors: by category');
	is(scalar(() = $last =~ /^  request \d+ +http_status: /mg), 4, 'errors: the last four');
	unlike($t->{text}, qr/\e\[31m|\x07/, 'errors: nothing of it reaches the terminal');
}

# Experiments: a screen for each load, headed by which one it is; reports in between.
{
	spew('two.yaml', <<"END");
name: two
server: {url: "$sim->{url}", model: sim}
benchmark: {mode: serve, dataset_name: random, random_input_len: 8, random_output_len: 8,
            num_prompts: 40, request_rate: 25, tokenizer: sim, model: sim}
matrix: {benchmark.seed: [1, 2]}
END
	my $t = terminal(100, 40, qw(run --config two.yaml --output two.json --live --events two.events));

	finish_terminal($t);
	is($t->{status}, 0, 'a suite: exit status');
	is_given_back($t, 'a suite');
	is(scalar(() = $t->{text} =~ /\Q$enter\E/g), 2, 'a suite: a screen for each load');
	my @shown = map { join "\n", @$_ } frames($t->{text});
	for my $k (1, 2) {
		my @own = grep { m{^profllm run  \[$k/2\] seed=$k\n} } @shown;

		cmp_ok(scalar @own, '>=', 3, "member $k: frame by frame");
		like($own[-1], qr{^\[#{32}\] 40/40 }m, "member $k: the bar at the end");
	}
	unlike(join("\n", @shown), qr/Serving Benchmark Result|completed after/,
		'nothing else is in the frames');
	is(scalar(() = $t->{text} =~ /=+ Serving Benchmark Result/g), 2, 'both reports come after');
	like(slurp('two.events'), qr/"event": ?"telemetry"/, '--events has its samples, too');
	my $r = run(args => [qw(run --config two.yaml --output two.json --live --jobs 2)]);
	is($r->{status}, 2, 'members at once');
	like($r->{err}, qr/--live shows one run at a time, but this suite runs several experiments at once/);
}

# Without a terminal, or if it is not wanted.
check_run('stderr is no terminal', run(args => [args($sim, '--num-prompts', '5')]), { status => 0,
	warn => ['Benchmark: 5/5 *'] });
{
	my $t = terminal(80, 24, args($sim, '--num-prompts', '5', '--disable-tqdm'));

	finish_terminal($t);
	unlike($t->{text}, qr/\Q$enter\E/, '--disable-tqdm: no screen');
}

done_testing;
