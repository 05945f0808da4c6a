#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# A dashboard over many runs while other processes change all of them: how much memory it takes, how
# long a writer waits meanwhile, what a slow download gets, what is left of a removed run, and
# whether answers hold only what belongs to them.
#
# CROWD_RUNS=100000 is the size at which columns of names are no longer listed (65,536 runs), which
# takes some minutes; CROWD_KEEP=DIR keeps the store there for the next time.
use strict;
use warnings;
use lib do { require FindBin; $FindBin::Bin };
use Cli;
use Dash;
use File::Copy qw(copy);
use IO::Socket::INET;
use POSIX qw(_exit WNOHANG);
use Test::More;
use Time::HiRes qw(sleep time);

use constant RUNS => $ENV{CROWD_RUNS} || 5000;
use constant { FILE_RUNS => 500, NOTES => 40, LISTED => 65_536 };
# A suite shares the machine with others, and a sanitizer keeps what was freed.
use constant MEMORY_TIMES => $ENV{CROWD_RUNS} ? 1.5 : 2.5;
use constant POST_SECONDS => $ENV{CROWD_RUNS} ? 1 : 20;

# ---- the store ----

sub result {
	my ($n) = @_;

	return json_text({ date => '20260101-000000', backend => 'vllm', model_id => 'm' . $n % 7,
		num_prompts => 10, request_rate => 1 + $n % 9, duration => 1.5, completed => 10,
		total_input_tokens => 100, total_output_tokens => 100, output_throughput => $n / 7,
		request_throughput => $n, mean_ttft_ms => 3 + $n % 7,
		map { ("note_$_" => "text " . ($n * $_) % 999) } 1 .. NOTES });
}

my $store = store_url('crowd');
my ($file) = $store =~ /^sqlite:(.*)/;
my $kept = $ENV{CROWD_KEEP} && $file ? "$ENV{CROWD_KEEP}/crowd-" . RUNS . '.db' : undef;

if ($kept && -e $kept) {
	copy("$kept$_", "$file$_") for '', '.index';
} else {
	mkdir 'results';
	for (my $at = 0; $at < RUNS; $at += FILE_RUNS) {
		my $list = join ',', map { result($_) } $at .. $at + FILE_RUNS - 1;

		spew("results/$at.json", "[$list]");
	}
	my $r = run(args => ['ingest', 'results', '--store', $store], seconds => 3600);

	is($r->{status}, 0, RUNS . ' runs') or diag $r->{err};
	if ($kept) {
		copy("$file$_", "$kept$_") for '', '.index';
	}
}

my $d = start_dashboard('--no-launch', '--store', $store);

sub memory_mb {
	my ($kb) = slurp("/proc/$d->{pid}/status") =~ /^VmRSS:\s+(\d+)/m;
	return $kb / 1024;
}

sub total {
	return ask($d, POST => '/api/filters/apply', { limit => 0, @_ })->{json}{total};
}

sub ids_of {
	my $r = ask($d, POST => '/api/filters/apply', { columns => ['run_id'], @_ });
	return map { $_->{values}{run_id} } @{$r->{json}{items}};
}

is(total(), RUNS, 'all of them are shown');
ask($d, POST => '/api/filters/apply', { facets => 'auto', limit => 50 });
my ($first, $gone) = ids_of(limit => 2);

# ---- answers that are given again ----

# A column of a name each is counted row by row, and the answer kept; then others ask.
my $named = { filter => { column => 'run_id', in => [$first] }, facets => ['run_id'], limit => 1,
	columns => ['run_id'] };
my $wrong = 0;

sub named {
	my $values = ask($d, POST => '/api/filters/apply', $named)->{json}{facets}[0]{values};
	my @selected = grep { $_->{selected} } @$values;

	return @selected == 1 ? $selected[0]{value} : 'none';
}

is(named(), $first, 'the run that was asked for');
for my $round (1 .. 3) {
	for my $user (1 .. 12) {
		total(filter => { column => 'server.model',
			in => [map { "broken-of-another-user-$user-$_" . 'x' x 40 } 1 .. 300] });
	}
	$wrong += named() ne $first for 1 .. 25;
}
is($wrong, 0, 'and no other text, whatever others asked in between');
note 'the store is too small for a column that is not listed' if RUNS <= LISTED;

# ---- all runs are archived ----

# A client that reads the beginning of its download, and the rest later.
my $slow = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $d->{port}) or die;
print $slow "GET /api/export/csv HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
sysread $slow, my $got, 2000;

# A client that saves filters all the time; its last line is the longest wait.
my $poster = fork;
if (!$poster) {
	my ($longest, $failed, $is_over) = (0, 0, 0);

	$SIG{TERM} = sub { $is_over = 1 };
	for (my $n = 0; !$is_over; $n++) {
		my $began = time;
		my $r = eval { ask($d, POST => '/api/filters/presets', { name => "preset $n", body => {} }) };

		$failed++ unless $r && $r->{status} == 201;
		$longest = time - $began if time - $began > $longest;
		sleep 0.02;
	}
	spew('poster', "$failed $longest");
	_exit(0);
}

my $before = memory_mb();
my $most = $before;
my $began = time;
my $archive = begin(args => ['store', 'archive', '--filter', '{"and": []}', '--store', $store],
	seconds => 600);

sub watch {
	my ($condition) = @_;
	my $until = time + 300;

	until ($condition->()) {
		die "nothing happens\n" if time > $until;
		my $now = memory_mb();
		$most = $now if $now > $most;
		sleep 0.02;
	}
}

watch(sub { waitpid($archive->{pid}, WNOHANG) > 0 });
is(slurp($archive->{out_path}), RUNS . " runs archived\n", 'another process archives all of them');
my $took = time - $began;
watch(sub { total() == 0 });
my $end = time + 3;
watch(sub { time > $end }); # in which the snapshot is written
kill 'TERM', $poster;
waitpid $poster, 0;
my ($failed, $longest) = split ' ', slurp('poster');
note sprintf '%d runs: archived in %.1f s, the longest POST took %.2f s, memory %.0f MB before, %.0f MB '
	. 'at most, %.0f MB at the end', RUNS, $took, $longest, $before, $most, memory_mb();
is($failed, 0, 'every request that writes meanwhile succeeds');
cmp_ok($longest, '<', POST_SECONDS, 'and waits for less than ' . POST_SECONDS . ' s');
cmp_ok($most, '<', MEMORY_TIMES * $before, 'memory stays below ' . MEMORY_TIMES . ' times of before');

# The download began when all of them were shown.
{
	local $/;
	$got .= <$slow>;
}
ok($got =~ /\r\n0\r\n\r\n\z/, 'the slow download ends as it should');
my $csv = '';
$got =~ s/^.*?\r\n\r\n//s;
while ($got =~ s/^([0-9a-f]+)\r\n//i && hex $1) {
	$csv .= substr $got, 0, hex $1;
	$got = substr $got, 2 + hex $1;
}
is(scalar(() = $csv =~ /\bsha256:[0-9a-f]{16}/g), RUNS, 'and has every run');

# ---- one is removed ----

sub compared {
	my ($id) = @_;
	return ask($d, POST => '/api/data/compare', { groups => [{ ids => [$first] }, { ids => [$id] }] });
}

is(compared($gone)->{status}, 200, 'an archived run is compared');
is(run(args => ['store', 'remove', $gone, '--yes', '--store', $store, $file ? () :
	('--traces-dir', 'traces')])->{out}, "1 run removed\n", 'and removed');
watch(sub { total(shown => 'all') == RUNS - 1 });
is(ask($d, GET => "/api/data/experiments/$gone")->{status}, 404, 'it does not exist any more');
my $refused = compared($gone);
is($refused->{status}, 400, 'and not compared');
is($refused->{json}{pointer}, '/groups/1/ids/0', 'which is told');
if ($file) {
	my ($hash) = $gone =~ /([0-9a-f]{16})/;

	watch(sub { index(slurp("$file.index"), $hash) < 0 });
	pass('nothing of it is in the snapshot');
}
is($d->stop, 0, 'it ends well');
is(index(slurp("$file.index"), $gone), -1, 'nor in the one that is left') if $file;

done_testing();
