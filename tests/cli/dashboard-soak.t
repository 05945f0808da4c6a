#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# A dashboard at a hundred times the pace of a team of 20: uploads, questions, experiments, restarts and
# kill -9. Afterwards everything that was acknowledged is there with its bytes; availability, times of
# answers, times of restarts and the growth of memory are reported. `make soak HOURS=6` makes it long
# (SOAK_SECONDS); then restarts come in the first half, and memory is judged in the second. SOAK_PACE=300
# does the same work in a third of the time. SOAK_IN=DIR keeps the store there, and goes on with it the next
# time: what is judged in the end is what all parts sent.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Dash;
use File::Path qw(make_path);
use POSIX qw(_exit);
use Test::More;
use Time::HiRes qw(sleep time);

use constant SECONDS => $ENV{SOAK_SECONDS} || 6;
# A team of 20 in a working day of eight hours; all of it happens TIMES as often.
use constant DAY => { uploads => 200, questions => 4000, experiments => 40, restarts => 1 };
use constant TIMES => $ENV{SOAK_PACE} || 100;
use constant PACE => TIMES / (8 * 3600);
use constant IS_LONG => SECONDS >= 600;
use constant { WRITERS => 2, READERS => 3 };
# A short one uploads and asks as fast as it can.
use constant PAUSE => IS_LONG ? 1 : 0;
# How much memory may grow: for each new run twice what the index needs (docs/operate.md), and what requests
# happen to need at the time.
use constant { RUN_KIB_MAX => 6, MEMORY_MIB_MAX => 32 };
use constant EVERYONE => 1 .. WRITERS + READERS + 1;

my $config = { server => { command => 'sim' }, benchmark => { model => 'sim', tokenizer => 'sim',
	num_prompts => 4, random_input_len => 16, random_output_len => 4 } };
my @questions = (
	['POST', '/api/filters/apply', { facets => 'auto', limit => 20,
		sort => [{ column => 'request_throughput' }] }],
	['POST', '/api/filters/apply', { filter => { column => 'mean_ttft_ms', range => { min => 5 } },
		facets => ['server.model'], statistics => ['request_throughput'] }],
	['POST', '/api/filters/apply', { limit => 50 }],
	['GET', '/api/data/summary'],
	['POST', '/api/analysis/overview', {}],
	['POST', '/api/analysis/distribution', { metric => 'mean_ttft_ms' }],
	['GET', '/api/filters/options'],
	['GET', '/api/jobs'],
	['GET', '/metrics'],
	['GET', '/'],
);
my ($d, $port, $end);
if (my $in = $ENV{SOAK_IN}) {
	make_path($in);
	chdir $in or die "$in: $!\n";
	unlink glob '*.port';
}

sub result {
	my ($who, $n) = @_;
	return { date => '20260101-000000', backend => 'vllm', model_id => "m$who",
		num_prompts => 10, request_rate => 'inf', duration => 1.5, completed => 10,
		total_input_tokens => 100, total_output_tokens => 100, output_throughput => 50,
		request_throughput => 0 + "$who$n", mean_ttft_ms => 3 + $n % 7,
		ttfts => [map { $n + $_ / 8 } 1 .. 10],
		generated_texts => [map { "answer $n of $_" } 1 .. 10] };
}

# One request; a line for it: when it began, seconds, status (0: no answer), what, a detail.
sub note_of {
	my ($note, $what, $detail, @ask) = @_;
	my $began = time;
	my $r = eval { ask($d, @ask) } || { status => 0, seconds => time - $began };

	printf $note "%.3f %.4f %d %s %s\n", $began, $r->{seconds}, $r->{status}, $what, $detail->($r);
	return $r;
}

sub notes_of { return split /\n/, slurp("client$_[0]") // '' }

# When there was no dashboard: [from, to, why]; "part": between two parts.
sub downs { return map { [split] } split /\n/, slurp('down') // '' }

sub down {
	open my $f, '>>', 'down' or die $!;
	printf $f "%.3f %.3f %s\n", @_;
	close $f or die $!;
}

# What one client does until the end, at its part of the pace.
sub client {
	my ($who) = @_;
	my $kind = $who <= WRITERS ? 'uploads' : $who <= WRITERS + READERS ? 'questions' : 'experiments';
	my $crowd = $kind eq 'uploads' ? WRITERS : $kind eq 'questions' ? READERS : 1;
	my $every = PAUSE * $crowd / (DAY->{$kind} * PACE);

	# A part that was cut off may have sent one more than it noted.
	my $first = 1000 + notes_of($who) + grep { $_->[2] eq 'part' } downs();
	open my $note, '>>', "client$who" or die $!;
	$note->autoflush(1);
	for (my $n = $first; time < $end; $n++) {
		my ($next, $r) = time + $every * (0.5 + rand);

		if ($kind eq 'uploads') {
			$r = note_of($note, 'upload', sub { $_[0]{status} == 201 ? "$who $n" : '-' },
				'POST', '/api/upload/raw', json_text(result($who, $n)));
		} elsif ($kind eq 'questions') {
			my ($method, $path, $body) = @{$questions[$n % @questions]};
			$r = note_of($note, "$method$path", sub { '-' }, $method, $path, $body);
		} else {
			$r = note_of($note, 'experiment', sub { $_[0]{json}{job_id} // '-' }, 'POST',
				'/api/launch', { config => json_text($config) });
			$next = time + 5 unless PAUSE;
		}
		sleep($r->{status} ? 0.01 : 0.05);
		sleep(0.1) while time < $next && time < $end;
	}
	_exit(0);
}

# The dashboard again, on the same address.
sub again {
	$d = start_dashboard('--store', $d->{store}, '--jobs-dir', 'jobs', '--listen', "127.0.0.1:$port");
	is(ask($d, 'GET', '/api/health')->{status}, 200, 'it is there again');
}

sub percentile {
	my ($p, @sorted) = @_;
	return @sorted ? $sorted[int($p / 100 * $#sorted + 0.5)] : 0;
}

# The slope of y over x, by least squares.
sub slope {
	my (@points) = @_;
	my ($n, $x, $y, $xx, $xy) = (scalar @points, 0, 0, 0, 0);

	for (@points) {
		$x += $_->[0]; $y += $_->[1];
		$xx += $_->[0] ** 2; $xy += $_->[0] * $_->[1];
	}
	return $n * $xx - $x ** 2 ? ($n * $xy - $x * $y) / ($n * $xx - $x ** 2) : 0;
}

$d = start_dashboard('--jobs-dir', 'jobs');
$port = $d->{port};
my $began = time;
$end = $began + SECONDS;
my ($last) = sort { $b <=> $a } map { my ($at, $seconds) = split; $at + $seconds }
	map { notes_of($_) } EVERYONE;
down($last // $began, $began, 'part');
my @children;
for my $who (EVERYONE) {
	my $pid = fork;

	client($who) unless $pid;
	push @children, $pid;
}

# Restarts: all in the first half, by turns killed and ended in order.
my $restarts = int(DAY->{restarts} * PACE * SECONDS) || 1;
my ($is_up_since, @memory);
for my $k (1 .. $restarts) {
	my $at = $began + SECONDS / 2 * $k / $restarts;

	sleep(0.1) while time < $at;
	my $from = time;
	if ($k % 2) {
		kill 'KILL', $d->{pid};
		waitpid $d->{pid}, 0;
	} else {
		is($d->stop, 0, 'it ends in order');
	}
	again();
	$is_up_since = time;
	down($from, $is_up_since, $k % 2 ? 'kill' : 'stop');
}
while (time < $end) {
	my $m = eval { ask($d, 'GET', '/metrics')->{content} } // '';
	my ($resident) = $m =~ /^process_resident_memory_bytes (\S+)/m;
	my ($runs) = $m =~ /^profllm_runs (\S+)/m;

	push @memory, [time - $began, $resident / 2 ** 20, $runs]
		if $resident && time - $is_up_since > SECONDS / 10;
	sleep(IS_LONG ? 5 : 0.2);
}
waitpid $_, 0 for @children;

my @down = downs();
my ($all, $good, $asked, $answered, @uploads, @experiments, %seconds, %odd) = (0, 0, 0, 0);
for my $line (map { notes_of($_) } EVERYONE) {
	my ($at, $seconds, $status, $what, @detail) = split ' ', $line;
	my $is_good = $status >= 200 && $status < 300;

	push @uploads, [@detail] if $what eq 'upload' && $detail[0] ne '-';
	push @experiments, $detail[0] if $what eq 'experiment' && $detail[0] ne '-';
	push @{$seconds{$what}}, $seconds if $is_good;
	$all++;
	$good += $is_good;
	# While there was none; times are rounded to a millisecond.
	next if grep { $at + $seconds >= $_->[0] - 0.002 && $at <= $_->[1] + 0.2 } @down;
	$asked++;
	# A refusal with a sentence is an answer: checks of configurations have a limit of time.
	$answered += $status >= 200 && $status < 500;
	$odd{"$what $status"}++ unless $is_good;
}
my ($seconds, $down, %took) = ($end - $down[0][1], 0);
for (@down) {
	my ($from, $to, $why) = @$_;

	if ($why eq 'part') { $seconds -= $to - $from }
	else { $down += $to - $from; push @{$took{$why}}, $to - $from }
}
note sprintf '%d s, %d restarts: %d requests, %.3f %% with success; %.4f %% of those that met a '
	. 'dashboard were answered', $seconds, scalar(map { @$_ } values %took), $all, 100 * $good / $all,
	100 * $answered / ($asked || 1);
note sprintf 'down for %.2f s of %d s: %.4f %% available', $down, $seconds, 100 * (1 - $down / $seconds);
note sprintf '%d uploads and %d experiments acknowledged', scalar @uploads, scalar @experiments;
for my $how (sort keys %took) {
	my @s = sort { $a <=> $b } @{$took{$how}};
	note sprintf 'there again after %s: median %.2f s, at most %.2f s, %d times', $how,
		percentile(50, @s), $s[-1], scalar @s;
}
for my $what (sort keys %seconds) {
	my @s = sort { $a <=> $b } @{$seconds{$what}};
	note sprintf '%-32s %6d times  p50 %6.1f ms  p99 %7.1f ms', $what, scalar @s,
		1000 * percentile(50, @s), 1000 * percentile(99, @s);
}
note "refused or not answered while it was there: $_, $odd{$_} times" for sort keys %odd;
cmp_ok($asked, '>', 20, 'it was asked');
is($asked - $answered, 0, 'whatever came while it was there was answered');
# Two seconds on an idle machine.
cmp_ok($_, '<', 60, 'it was there again soon') for map { @$_ } values %took;

if (@memory > 1) {
	my $seconds = $memory[-1][0] - $memory[0][0];
	my $growth = slope(@memory) * $seconds;
	my $runs = $memory[-1][2] - $memory[0][2];

	note sprintf 'memory: %.1f MiB, then %.1f MiB %.0f s and %d runs later: %+.1f MiB by its slope',
		$memory[0][1], $memory[-1][1], $seconds, $runs, $growth;
	cmp_ok($growth, '<', MEMORY_MIB_MAX + $runs * RUN_KIB_MAX / 1024,
		'memory grows by what new runs need') if IS_LONG;
}

my (%found, $cursor);
do {
	my $r = ask($d, 'POST', '/api/filters/apply', { limit => 10000, cursor => $cursor,
		columns => ['request_throughput'] })->{json};

	push @{$found{$_->{values}{request_throughput} // ""}}, $_->{id} for @{$r->{items}};
	$cursor = $r->{next};
} while defined $cursor;
my ($lost, $twice, $other) = (0, 0, 0);
for (@uploads) {
	my ($who, $n) = @$_;
	my $ids = $found{0 + "$who$n"};
	my $sent = result($who, $n);

	$lost++, next unless $ids;
	$twice++ if @$ids > 1;
	my $kept = { %{ask($d, 'GET', "/api/data/experiments/$ids->[0]/document")->{json}},
		%{ask($d, 'GET', "/api/data/experiments/$ids->[0]/arrays")->{json}} };
	$other++ if grep { json_text($kept->{$_}) ne json_text($sent->{$_}) } keys %$sent;
}
is($lost, 0, scalar(@uploads) . ' acknowledged runs are there');
is($twice, 0, 'each of them once');
is($other, 0, 'with every value that was sent');
my %state;
wait_for('every experiment to end', sub {
	%state = ();
	$state{ask($d, 'GET', "/api/jobs/$_")->{json}{state} // 'unknown'}++ for @experiments;
	return !grep { /^(?:waiting|running|unknown)$/ } keys %state;
}, 120);
note 'experiments: ' . join ', ', map { "$state{$_} $_" } sort keys %state;
cmp_ok($state{done} // 0, '>', 0, 'experiments that were started have ended well');
is($d->stop, 0, 'it ends well');
is(run(args => ['store', 'check', '--store', $d->{store}], seconds => 240)->{status}, 0,
	'the store is sound');

done_testing();
