#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Experiments that are started from the dashboard: checked, followed, cancelled, and what is left of them
# when the dashboard is killed.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Dash;
use Fcntl qw(:flock);
use Test::More;
use Time::HiRes qw(sleep time);

$ENV{XDG_RUNTIME_DIR} = $ENV{XDG_STATE_HOME} = "$ENV{HF_HOME}-state"; # rosters of this test alone
mkdir $ENV{XDG_RUNTIME_DIR};

# A run of this many requests, one after another, a tenth of a second each.
sub config {
	my ($name, $n) = @_;
	return <<"END";
name: $name
server:
  command: sim
  ttft_ms: 50
  itl_ms: 10
benchmark:
  tokenizer: sim
  model: sim
  num_prompts: $n
  max_concurrency: 1
  random_input_len: 8
  random_output_len: 6
  ignore_eos: true
telemetry:
  interval_s: 0.5
END
}

sub state_of { my ($d, $id) = @_; return ask($d, 'GET', "/api/jobs/$id")->{json}{state} }

# Processes that have this text in their command line.
sub processes {
	my ($text) = @_;
	return grep { (slurp("/proc/$_/cmdline") // '') =~ /\Q$text\E/ }
		map { m{/proc/(\d+)$} ? $1 : () } glob '/proc/[0-9]*';
}

my $d = start_dashboard('--jobs-dir', 'jobs');
my $r = ask($d, 'GET', '/api/launch/schema')->{json};
my ($server) = grep { $_->{name} eq 'server' } @{$r->{sections}};
ok((grep { $_->{key} eq 'ready_timeout_s' && $_->{help} =~ /\w/ } @{$server->{keys}}),
	'keys with their help');
ok((grep { $_->{key} eq 'tensor_parallel_size' } @{$r->{arguments}}), 'and arguments of the server');
my @examples = @{ask($d, 'GET', '/api/launch/examples')->{json}{items}};
my ($quick) = grep { $_->{name} eq 'quickstart.yaml' } @examples;
like($quick->{config}, qr/^name: quickstart$/m, 'examples');
is_deeply([grep { $_->{config} !~ /^(?:server|servers|include|benchmark|matrix):/m } @examples], [],
	'each is an experiment');
ok(ask($d, 'POST', '/api/launch/check', { config => $quick->{config} })->{json}{ok}, 'which are good');

$r = ask($d, 'POST', '/api/launch/check', { config => config('x', 5) })->{json};
is($r->{plan}{experiments}[0]{name}, 'x', 'what would be run');
(my $wrong = config('x', 5)) =~ s/num_prompts/num_promts/;
$r = ask($d, 'POST', '/api/launch/check', { config => $wrong })->{json};
ok(!$r->{ok} && !defined $r->{plan}, 'a mistake');
is_deeply([@{$r->{findings}[0]}{qw(level line column)}], ['error', 9, 3], 'has a place');
like($r->{findings}[0]{text}, qr/num_promts: unknown key; did you mean num_prompts/, 'and a sentence');
$r = ask($d, 'POST', '/api/launch', { config => $wrong });
is($r->{status}, 422, 'it is not started');
is(ask($d, 'POST', '/api/launch', { config => [1] })->{status}, 400, 'nor is a list');
is(scalar @{ask($d, 'GET', '/api/jobs')->{json}{items}}, 0, 'there is no job');

# ---- one to its end, one that waits for it ----

$r = ask($d, 'POST', '/api/launch', { config => config('first', 15) });
is($r->{status}, 202, 'an experiment is started');
my $first = $r->{json}{job_id};
my $second = ask($d, 'POST', '/api/launch', { config => config('second', 1000) })->{json}{job_id};
wait_for('the first to run', sub { state_of($d, $first) eq 'running' });
is(state_of($d, $second), 'waiting', 'another waits for it');
my $events = ask($d, 'GET', "/api/jobs/$first/events")->{content};
my %seen;
$seen{$1}++ while $events =~ /^event: (\w+)$/mg;
ok($seen{$_}, "its $_") for qw(log progress telemetry job end);
like($events, qr/"what": "Benchmark", "done": 15, "total": 15/, 'progress to the end');
like($events, qr/Successful requests: +15/, 'and its report');
$r = ask($d, 'GET', "/api/jobs/$first")->{json};
is_deeply([$r->{state}, $r->{detail}{status}, $r->{detail}{exit}], ['done', 'completed', 0], 'it is done');
is_deeply([@{$r}{qw(total done)}, $r->{counts}],
	[1, 1, { new => 1, duplicate => 0, conflict => 0, invalid => 0 }], 'and the run that it left counts');
my ($run) = @{$r->{run_ids}};
$r = ask($d, 'GET', "/api/data/experiments/$run");
is($r->{status}, 200, 'its document is in the store');
my $log = ask($d, 'GET', "/api/jobs/$first/log");
like($log->{content}, qr/^Status: completed$/m, 'its log');
is(length $log->{content}, $log->{headers}{'x-next-offset'}, 'to its end');
is(ask($d, 'GET', "/api/jobs/$first/log?offset=$log->{headers}{'x-next-offset'}")->{content}, '',
	'behind which is nothing');

wait_for('the second to run', sub { state_of($d, $second) eq 'running' });
wait_for('its server', sub { ask($d, 'GET', "/api/jobs/$second/log")->{content} =~ /server is ready/ });
my $third = ask($d, 'POST', '/api/launch', { config => config('third', 5) })->{json}{job_id};
is(ask($d, 'POST', "/api/jobs/$third/cancel")->{status}, 200, 'one that waits is cancelled');
is(state_of($d, $third), 'cancelled', 'at once');
is(ask($d, 'POST', "/api/jobs/$second/cancel")->{status}, 200, 'one that runs, too');
wait_for('the end of the second', sub { state_of($d, $second) ne 'running' });
is(state_of($d, $second), 'cancelled', 'as soon as it has ended');
is_deeply([processes("jobs/$second")], [], 'nothing of it is left');
is(ask($d, 'POST', "/api/jobs/$second/cancel")->{status}, 409, 'once is enough');

# ---- killed ----

my $fourth = ask($d, 'POST', '/api/launch', { config => config('fourth', 1000) })->{json}{job_id};
my $fifth = ask($d, 'POST', '/api/launch', { config => config('fifth', 3) })->{json}{job_id};
wait_for('its server', sub { ask($d, 'GET', "/api/jobs/$fourth/log")->{content} =~ /server is ready/ });
wait_for('its requests', sub { (slurp("jobs/$fourth/events.jsonl") // '') =~ /"Benchmark", "done": [2-9]/ });
my ($sim) = slurp("jobs/$fourth/log.txt") =~ m{Starting server at http://127.0.0.1:(\d+)};
ok(scalar processes("jobs/$fourth"), 'one that runs');
kill 'KILL', $d->{pid};
waitpid $d->{pid}, 0;
wait_for('the end of its processes', sub { !processes("jobs/$fourth") && !processes("--port $sim") });
pass('of which nothing is left');
# As long as a process of the run holds its log, the run has not ended.
open my $held, '>>', "jobs/$fourth/log.txt" or die "log.txt: $!\n";
wait_for('its log', sub { flock($held, LOCK_EX | LOCK_NB) });
my $began = time;
my $again = start_dashboard('--store', $d->{store}, '--jobs-dir', 'jobs');
is(ask($again, 'GET', '/api/health')->{status}, 200, 'another dashboard answers');
cmp_ok(time - $began, '<', 10, 'soon'); # two seconds on an idle machine
is(state_of($again, $fourth), 'running', 'and waits for the end of the run');
$began = time;
is($again->stop, 0, 'until it is stopped itself');
cmp_ok(time - $began, '<', 20, 'soon, too');
$again = start_dashboard('--store', $d->{store}, '--jobs-dir', 'jobs');
is(state_of($again, $fourth), 'running', 'the next one waits');
close $held;
wait_for('the end of the run', sub { state_of($again, $fourth) ne 'running' });
$r = ask($again, 'GET', "/api/jobs/$fourth")->{json};
is_deeply([$r->{state}, $r->{detail}{status}, $r->{detail}{reason}], ['failed', 'partial',
	'the dashboard ended while it ran'], 'it tells what became of the run');
sub is_stored
{
	my ($dashboard, $job, $what) = @_;
	my ($run) = @{ask($dashboard, 'GET', "/api/jobs/$job")->{json}{run_ids}};
	is(ask($dashboard, 'GET', '/api/data/experiments/' . ($run // 'none'))->{status}, 200, $what);
}
is_stored($again, $fourth, 'what it had measured is in the store');
wait_for('the one that waited', sub { state_of($again, $fifth) eq 'done' });
pass('goes on');

# ---- killed, and cancelled before the next one has come to it ----

is($again->stop, 0, 'it ends');
$again = start_dashboard('--store', $d->{store}, '--jobs-dir', 'jobs', '--launch', 2);
my @two;
for my $name (qw(left1 left2)) {
	push @two, ask($again, 'POST', '/api/launch', { config => config($name, 1000) })->{json}{job_id};
}
sub has_answers
{
	my ($id) = @_;
	return (slurp("jobs/$id/events.jsonl") // '') =~ /"Benchmark", "done": [2-9]/;
}
wait_for('requests of both', sub { !grep { !has_answers($_) } @two });
kill 'KILL', $again->{pid};
waitpid $again->{pid}, 0;
wait_for('the end of both', sub { !grep { processes("jobs/$_") } @two });
open $held, '>>', "jobs/$two[0]/log.txt" or die "log.txt: $!\n";
wait_for('the log of the first', sub { flock($held, LOCK_EX | LOCK_NB) });
$again = start_dashboard('--store', $d->{store}, '--jobs-dir', 'jobs');
is(ask($again, 'POST', "/api/jobs/$_/cancel")->{status}, 200, 'cancelled') for @two;
close $held;
for my $id (@two) {
	wait_for('its end', sub { state_of($again, $id) ne 'running' });
	$r = ask($again, 'GET', "/api/jobs/$id")->{json};
	is_deeply([$r->{state}, @{$r->{detail}}{qw(status reason)}], [qw(cancelled partial cancelled)],
		'it is cancelled');
	is_stored($again, $id, 'and stored');
}

# ---- stopped ----

my $sixth = ask($again, 'POST', '/api/launch', { config => config('sixth', 1000) })->{json}{job_id};
wait_for('its server', sub { ask($again, 'GET', "/api/jobs/$sixth/log")->{content} =~ /server is ready/ });
is($again->stop, 0, 'a dashboard ends while one runs');
is_deeply([processes("jobs/$sixth")], [], 'and the run with it');
my $last = start_dashboard('--store', $d->{store}, '--jobs-dir', 'jobs', '--no-launch');
is(ask($last, 'GET', "/api/jobs/$sixth")->{json}{state}, 'failed', 'which is told');
is(ask($last, 'POST', '/api/launch', { config => config('x', 1) })->{status}, 403, '--no-launch');
is(ask($last, 'GET', '/api/health')->{json}{can_launch}, JSON::PP::false(), 'says so');

# ---- another program is installed while a dashboard runs ----

{
	my $installed = "$ENV{HF_HOME}-profllm";
	my $copied = sub { system('cp', $ENV{PROFLLM}, $installed) == 0 or die "no copy\n" };
	$program = $installed;

	$copied->();
	my $old = start_dashboard('--jobs-dir', 'jobs');
	unlink $installed;
	$copied->();
	my $id = ask($old, 'POST', '/api/launch', { config => config('replaced', 1) })->{json}{job_id};
	wait_for('its end', sub { state_of($old, $id) =~ /done|failed/ });
	is(state_of($old, $id), 'done', 'it starts experiments with the program of that name')
		or diag ask($old, 'GET', "/api/jobs/$id/log")->{content};
}

# ---- the disk of --jobs-dir fills up ----

SKIP: {
	mkdir 'small';
	skip 'a small file system needs root', 3
		if $> || system('mount -t tmpfs -o size=1m tmpfs small 2>/dev/null');
	my $full = start_dashboard(qw(--jobs-dir small/jobs));
	my $id = ask($full, 'POST', '/api/launch', { config => config('cut', 12) })->{json}{job_id};
	wait_for('a server', sub { ask($full, 'GET', "/api/jobs/$id/log")->{content} =~ /is ready/ });
	system('cat /dev/zero >small/rest 2>/dev/null');
	wait_for('its end', sub { state_of($full, $id) eq 'failed' });
	like(ask($full, 'GET', "/api/jobs/$id")->{json}{detail}{reason},
		qr/^the disk of --jobs-dir is full, /, 'why a run has no result');
	$r = ask($full, 'POST', '/api/launch', { config => config('none', 1) });
	is($r->{status}, 507, 'another one is refused');
	like(ask($full, 'GET', '/api/jobs')->{json}{items}[0]{detail}{reason}, qr/No space left on device/,
		'and the list says why');
	$full->stop;
	system('umount', 'small');
}

done_testing();
