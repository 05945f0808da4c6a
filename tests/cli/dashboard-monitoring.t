#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# What an operator watches: every metric of /metrics is described in docs/operate.md and nothing else is,
# names follow Prometheus' conventions, the board and the alert rules of examples/monitoring use metrics
# and labels that there are, and the log is rotated both ways.
use strict;
use warnings;
use Cwd qw(abs_path);
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Dash;
use Test::More;

my $root = abs_path("$FindBin::Bin/../..");
my $d = start_dashboard('--no-launch', '--jobs-dir', 'jobs', '--log', 'access.jsonl');

sub metrics { return ask($d, 'GET', '/metrics')->{content} }
sub value { my ($name) = @_; return (metrics() =~ /^\Q$name\E (\S+)$/m)[0] }

my $result = json_text({ date => '20260101-000000', backend => 'vllm', model_id => 'm', num_prompts => 10,
	request_rate => 'inf', duration => 1.5, completed => 10, total_input_tokens => 100,
	total_output_tokens => 100, request_throughput => 7, output_throughput => 50 });
is(ask($d, 'POST', '/api/upload/raw', $result)->{status}, 201, 'a run');
is(ask($d, 'POST', '/api/upload/raw', $result)->{status}, 200, 'once more');
my ($body, @type) = form(['file', 'a.json', $result], ['file', 'b.json', $result =~ s/: ?7\b/:8/r]);
is(ask($d, 'POST', '/api/upload/batch', $body, @type)->{status}, 202, 'a batch');
wait_for('the batch', sub { (value('profllm_jobs{kind="upload",state="done"}') // 0) == 1 });
wait_for('the size of the store', sub { defined value('profllm_store_bytes') });
is(value('profllm_runs_received_total{outcome="new"}'), 2, 'new runs are counted, those of batches too');
is(value('profllm_runs_received_total{outcome="duplicate"}'), 2, 'and duplicates');
cmp_ok(value('profllm_store_bytes'), '>', 10000, 'the store has a size');
is(value('profllm_last_error_timestamp_seconds'), 0, 'nothing went wrong');

# ---- names ----

my $page = metrics();
my %type = $page =~ /^# TYPE (\S+) (\S+)$/mg;
my %help = map { $_ => 1 } $page =~ /^# HELP (\S+) \S.*\.$/mg;
my (%name, %label);
for ($page =~ /^([a-z_]+(?:\{.*\})?) \S+$/mg) {
	my ($name, $labels) = /^([a-z_]+)(.*)$/;
	$name{$name} = 1;
	$label{$1} = 1 while $labels =~ /([a-z]+)="/g;
}
is_deeply([sort keys %help], [sort keys %type], 'each has a type and a sentence');
is_deeply([grep { ($type{$_} eq 'counter') != /_total$/ } sort keys %type], [], 'counters end with _total');
is_deeply([grep { !$type{s/_(?:bucket|sum|count)$//r} && !$type{$_} } sort keys %name], [],
	'nothing else is there');

my ($watch) = slurp("$root/docs/operate.md") =~ /^\| metric \| \|\n(.*?)\n\n/ms;
my %described = map { $_ => 1 } $watch =~ /`((?:profllm|process)_[a-z_]+)[`{]/g;
is_deeply([sort keys %described], [sort keys %type], 'docs/operate.md describes each, and no other');

# ---- the board and the alerts ----

sub judge_expressions {
	my ($what, @expressions) = @_;
	my (%no_metric, %no_label);

	for my $e (@expressions) {
		$no_metric{$_}++ for grep { !$name{$_} } $e =~ /\b((?:profllm|process)_[a-z_]+)/g;
		$no_label{$_}++ for grep { !$label{$_} && $_ ne 'job' } $e =~ /[{,]([a-z]+)(?:=|!=|=~|!~)"/g;
	}
	cmp_ok(scalar @expressions, '>=', 5, "$what: expressions");
	is_deeply([sort keys %no_metric], [], "$what: of metrics that there are");
	is_deeply([sort keys %no_label], [], "$what: with labels that there are");
}

my $board = json_of(slurp("$root/examples/monitoring/grafana.json"));
my @panels = @{$board->{panels}};
judge_expressions('the board', map { $_->{expr} } map { @{$_->{targets}} } @panels);
my %at = map { join('/', @{$_->{gridPos}}{qw(x y)}) => 1 } @panels;
my %id = map { $_->{id} => 1 } @panels;
is(scalar keys %id, scalar @panels, 'each panel has an id of its own');
is(scalar keys %at, scalar @panels, 'and a place');
judge_expressions('the alerts', slurp("$root/examples/monitoring/alerts.yaml") =~ /^\s+expr: (.*)$/mg);

# ---- the log ----

rename 'access.jsonl', 'access.1' or die $!;
kill 'HUP', $d->{pid};
wait_for('a new log', sub { -e 'access.jsonl' });
ask($d, 'GET', '/api/jobs?limit=1') for 1 .. 5;
wait_for('lines', sub { (() = slurp('access.jsonl') =~ m{"/api/jobs"}g) == 5 });
ok(1, 'create: lines go to the new file');
system('cp', 'access.jsonl', 'access.2');
truncate 'access.jsonl', 0 or die $!;
ask($d, 'GET', '/api/tags') for 1 .. 3;
wait_for('lines', sub { (() = slurp('access.jsonl') =~ m{"/api/tags"}g) == 3 });
like(slurp('access.jsonl'), qr/\A\{/, 'copytruncate: lines go on from the beginning of the file');
rename 'access.jsonl', 'access.3' or die $!;
mkdir 'access.jsonl' or die $!;
kill 'HUP', $d->{pid};
wait_for('an error', sub { value('profllm_errors_total') == 1 });
like(slurp('access.3'), qr/"level": "error", "text": "--log: access.jsonl cannot be opened again: /,
	'a log that cannot be opened is an error, in the old file');
cmp_ok(value('profllm_last_error_timestamp_seconds'), '>', time - 600, 'which /metrics dates');
is($d->stop, 0, 'it ends well');

done_testing;
