#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# `doctor`: its messages about the machine that the test runs on, about the same one with lowered
# limits, and about servers that work, refuse, require a key or are missing.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Test::More;

# The rows of a run with --json, by name; those about a server by its URL and name.
sub rows_of {
	my (%o) = @_;
	my $r = run(%o, args => ['doctor', '--json', @{$o{args} || []}]);
	my $v = json_of($r->{out});

	is($r->{status}, 0, 'status 0 with whatever was found: ' . join(' ', @{$o{args} || []}));
	is($r->{err}, '', 'and no word on stderr');
	return { map { (($_->{about} // '') =~ m{://} ? "$_->{about} $_->{name}" : $_->{name}, $_) }
		@{$v->{rows}} };
}

# ---- the table ----

my $table = run(args => ['doctor']);
my @rows = grep { /^  \S/ } split /\n/, $table->{out};
check_run('this machine', $table, { status => 0, err => '',
	out => ['This machine as a load generator', '*problem*, * note*'] });
cmp_ok(scalar @rows, '>=', 16, 'a row for each thing that was looked at');
is(scalar(grep { !/^  (ok|note|problem) +\S/ || length !~ /./ } @rows), 0, 'each with a verdict');
is(scalar(grep { substr($_, 10, 2) !~ /^ \S/ || substr($_, 30, 2) !~ /^ \S/ } @rows), 0, 'aligned');
is(scalar(grep { length > 110 } grep { !/^ +\$ / } split /\n/, $table->{out}), 0,
	'and no text is wider than a page');

# ---- as JSON, and with limits that were lowered ----

my $here = rows_of();
for my $r (values %$here) {
	next if $r->{verdict} eq 'ok' ? !$r->{why} && !$r->{command} : $r->{why};
	fail("$r->{name}: why and command go with a verdict that is not ok");
}
is($here->{receive_stamps}{verdict}, 'ok', 'the kernel stamps what arrives, as runs say themselves');
cmp_ok($here->{wakeups}{numbers}{late_us_p99}, '>=', $here->{wakeups}{numbers}{late_us_p50},
	'wake-ups were measured');

my $few = rows_of(limits => 'ulimit -n 256');
is($few->{open_files}{verdict}, 'problem', 'ulimit -n 256: too few files');
is($few->{open_files}{numbers}{hard}, 256, 'which is the limit in force');
is($few->{open_files}{numbers}{streams}, 192, 'with its number of streams');
like($few->{open_files}{command}, qr/^sudo prlimit --pid \$\$ --nofile=/, 'and the command');
my $soft = rows_of(limits => 'ulimit -Sn 64');
is($soft->{open_files}{numbers}{soft}, 64, 'a soft limit alone is seen');
is($soft->{open_files}{verdict}, $here->{open_files}{verdict}, 'and does not count: a run raises it');
is(run(args => [qw(doctor --strict)], limits => 'ulimit -n 256')->{status}, 3, '--strict: 3');

SKIP: {
	skip 'taskset does not exist', 1 if system 'taskset -c 0 true 2>/dev/null';
	my $r = run(command => ['taskset', '-c', '0', $ENV{PROFLLM}, 'doctor', '--json']);
	my ($cpus) = grep { $_->{name} eq 'cpus' } @{json_of($r->{out})->{rows}};
	is($cpus->{numbers}{allowed}, 1, 'one CPU, by its affinity');
}
SKIP: {
	my @drop = qw(setpriv --bounding-set -net_raw);
	skip 'capabilities cannot be dropped here', 2 if $> != 0 || system "@drop true 2>/dev/null";
	my $r = run(command => [@drop, $ENV{PROFLLM}, 'doctor', '--json']);
	my ($capture) = grep { $_->{name} eq 'packet_capture' } @{json_of($r->{out})->{rows}};
	is($capture->{value}, 'not allowed', 'a process without CAP_NET_RAW may not capture');
	like($capture->{command}, qr/^sudo setcap cap_net_raw\+ep \S*profllm$/, 'and how it may');
}

# ---- servers ----

my $sim = start_sim();
my $locked = start_sim(qw(--api-key sesame));
my $well = rows_of(args => [$sim->{url}], env => { OPENAI_API_KEY => '' });
is(join(' ', map { "$_=" . ($well->{"$sim->{url} $_"}{verdict} // 'none') }
	qw(name route connect models metrics)),
	'name=ok route=ok connect=ok models=ok metrics=ok', 'a server that is well');
like($well->{"$sim->{url} models"}{value}, qr/^200 in .* ms: sim$/, 'with the name of its model');
is($well->{"$sim->{url} route"}{value}, 'by lo', 'and the interface that leads there');
cmp_ok($well->{"$sim->{url} metrics"}{numbers}{series}, '>', 10, 'and its metrics');

my $shut = rows_of(args => [$locked->{url}], env => { OPENAI_API_KEY => '' });
is($shut->{"$locked->{url} models"}{verdict}, 'problem', 'one that wants a key');
is($shut->{"$locked->{url} models"}{command}, 'export OPENAI_API_KEY=...', 'is told apart');
my $open = rows_of(args => [$locked->{url}], env => { OPENAI_API_KEY => 'sesame' });
is($open->{"$locked->{url} models"}{verdict}, 'ok', 'and let in with it');

my $gone = 'http://127.0.0.1:1';
my $closed = rows_of(args => [$gone, $sim->{url}]);
is($closed->{"$gone connect"}{verdict}, 'problem', 'a port where nobody listens');
like($closed->{"$gone connect"}{why}, qr/^Connection refused\./, 'in words');
ok(!$closed->{"$gone models"}, 'what was not tried is not said to be well');
is($closed->{"$sim->{url} models"}{verdict}, 'ok', 'and the next server is looked at all the same');
is(run(args => ['doctor', '--strict', $gone])->{status}, 3, '--strict: 3');

my $tls = $sim->{url} =~ s/^http/https/r;
my $plain = rows_of(args => [$tls]);
is($plain->{"$tls tls"}{verdict}, 'problem', 'a server that does not speak TLS');
my $raw = start_raw("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
my $other = rows_of(args => [$raw->{url}]);
is($other->{"$raw->{url} models"}{verdict}, 'note', 'one that lists no models');
is($other->{"$raw->{url} metrics"}{verdict}, 'note', 'and has no metrics');
my $no_name = rows_of(args => ['http://no-such-host.invalid']);
is($no_name->{'http://no-such-host.invalid name'}{verdict}, 'problem', 'a name that leads nowhere');

check_run('a URL without a scheme', run(args => [qw(doctor localhost:8000)]), { status => 2, out => [],
	err => "profllm doctor: 'localhost:8000' has no scheme; expected *" });

done_testing();
