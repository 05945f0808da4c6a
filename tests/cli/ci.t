#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# The pipelines of examples/ci: their shell steps unchanged, on the simulator. A build as good as
# the baseline passes, a slower one ends with 3, and documents are sent in both cases.
use strict;
use warnings;
use Cwd qw(abs_path getcwd);
use FindBin;
use lib $FindBin::Bin;
use Cli;
use IO::Socket::INET;
use POSIX qw(_exit);
use Test::More;

my $examples = abs_path("$FindBin::Bin/../../examples");
my $scratch = getcwd();
my $ci = "$examples/ci";

# `profllm` of the pipelines: the simulator as the server, one of the two loads, and less of it.
mkdir 'bin' or die;
spew('bin/profllm', <<"END");
#!/usr/bin/env bash
[ "\$1" = run ] && exec $program "\$@" --set server.command=sim benchmark.tokenizer=sim \\
	benchmark.num_prompts=6 benchmark.random_input_len=64 benchmark.random_output_len=16 \\
	'experiments=[{"name": "crowd", "benchmark": {"max_concurrency": 8}}]' stop_on_error=true \$SLOWER
exec $program "\$@"
END
chmod 0755, 'bin/profllm';
symlink $examples, 'examples' or die;
$ENV{PATH} = "$scratch/bin:$ENV{PATH}";
$ENV{XDG_STATE_HOME} = "$scratch/state";
delete $ENV{PROFLLM}; # the pipelines find it in PATH

# A dashboard that counts.
my $listen = IO::Socket::INET->new(Listen => 32, LocalAddr => '127.0.0.1', LocalPort => 0) or die;
my $board = fork;
if (!$board) {
	while (1) {
		my $c = $listen->accept or next;
		my ($head, $body) = ('', '');

		$head .= $_ while $head !~ /\r\n\r\n/ && defined($_ = <$c>);
		read $c, $body, $1 if $head =~ /^content-length: *(\d+)/mi;
		open my $f, '>>', "$scratch/sent";
		print $f $head =~ /^Authorization: Bearer sesame\r$/m ? "with token\n" : "without\n";
		close $f;
		print $c "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
		$c->shutdown(2);
	}
	_exit(0);
}
END { kill 'KILL', $board if $board }
my $url = 'http://127.0.0.1:' . $listen->sockport;
spew('token', "sesame\n");

sub step
{
	my ($text, %env) = @_;
	return run(command => ['bash', '-e', '-c', $text], seconds => 120, env => {
		PROFLLM_UPLOAD_URL => $url, PROFLLM_TOKEN_FILE => "$scratch/token",
		BASELINE => "$scratch/baseline.json", SLOWER => '', %env });
}
sub sent { return scalar(() = (slurp('sent') || '') =~ /^with token$/mg) }

# ---- GitHub Actions: the step that measures, then the one that keeps the baseline ----

my $github = slurp("$ci/github-actions.yml");
my ($measure) = $github =~ /run: (.*gate\.sh.*)/;
my ($keep) = $github =~ /run: (cp .*)/;
ok($measure && $keep, 'GitHub Actions: its steps are found') or die("no steps\n");
my $first = step($measure, ENGINE_COMMIT => 'c0ffee');
is($first->{status}, 3, 'GitHub Actions: nothing to compare with is no pass') or diag($first->{err},
	$first->{out});
like($first->{err}, qr/^NOT JUDGED: no baseline at .*; copy the result of a release/m,
	'and it says what to do');
like($github, qr/if: .*inputs\.new_baseline.*\n +run: cp /, 'only a person replaces the baseline');
unlike($github, qr/refs\/heads\/main/, 'a green build does not');
like(slurp("$ci/suite.yaml"), qr/^restart: always$/m, 'each run has a server of its own');
my %started = map { $_->{config}{servers}[0]{log} => 1 }
	@{json_of(slurp('results.json'))->{experiments}};
is(scalar(keys %started), 5, 'five runs on five servers');
is(sent(), 5, 'all documents are sent, with the token');
is(json_of(slurp('results.json'))->{experiments}[0]{provenance}{engine_commit}, 'c0ffee', 'of that commit');
is(step($keep)->{status}, 0, 'the baseline is kept');

# ---- Buildkite: the same build again ----

my $buildkite = slurp("$ci/buildkite.yml");
my ($block) = $buildkite =~ /command: \|\n((?:      .*\n)+)/;
$block =~ s/^ +//mg;
$block =~ s/\$\$/\$/g; # as Buildkite reads it
my $same;
for my $try (1 .. 3) {
	if ($try > 1) { # the machine was busier in one of the two: both are measured again
		diag('measured again: ', $same->{err} =~ /^(FAILED: .*)/m ? $1 : $same->{err});
		unlink 'baseline.json';
		step($measure, ENGINE_COMMIT => 'c0ffee', PROFLLM_UPLOAD_URL => '');
		step($keep);
	}
	$same = step($block, BUILDKITE_COMMIT => 'beef', BUILDKITE_BRANCH => 'main',
		BUILDKITE_BUILD_NUMBER => 7, PROFLLM_UPLOAD_URL => '');
	last if $same->{status} == 0;
}
is($same->{status}, 0, 'Buildkite: a build as good as the baseline passes')
	or diag($same->{err}, $same->{out});
like($same->{out}, qr/^output_throughput +[\d.]+ +[\d.]+ .* 5 : 5 /m,
	'it was compared, five servers against five');
like($same->{out}, qr/^Suite: 5 completed, 0 partial, 0 failed$/m,
	'it was measured, and not taken from what the build before has left in the folder');
is(sent(), 5, 'without an address nothing is sent');
is(json_of(slurp('results.json'))->{experiments}[0]{provenance}{build}, '7', 'its number is kept');

# ---- cron: a slower build at night ----

my ($line) = slurp("$ci/crontab") =~ /^0 3 \* \* \* (.*)$/m;
$line =~ s/\\%/%/g; # as cron reads it
$line =~ s,/opt/profllm,$scratch,g;
my $night = step($line, SLOWER => 'server.gpu=l4-24gb', TRIGGER => 'nightly',
	GITHUB_STEP_SUMMARY => "$scratch/summary");
is($night->{status}, 0, 'cron: the line ends well, or cron would say so twice');
like($night->{err}, qr/^profllm: exit status 3, see nights\/[\d-]+\/log$/m, 'cron: a regression is mailed')
	or diag($night->{err}, $night->{out});
my ($log) = glob('nights/*/log');
like(slurp($log), qr/^FAILED: output_throughput fell by [\d.]+ % \(limit 5 %\)/m,
	'its log names the condition');
like(slurp((glob 'nights/*/results.xml')[0]), qr/<failure message="output_throughput fell by/,
	'JUnit XML too');
like(slurp('summary'), qr/^failed: \d of 3 conditions$/m, 'GitHub would show the summary');
like(slurp($log), qr/^output_throughput .* worse by at least 3 %$/m, 'its log has the comparison');
is(sent(), 10, 'its documents are sent all the same');

# ---- what cannot be measured is neither ----

my $usage = run(command => ["$ci/gate.sh", 'suite.yaml']);
is($usage->{status}, 2, 'gate.sh without its operands');
like($usage->{err}, qr/^usage: gate\.sh SUITE BASELINE RESULT/, 'gate.sh says how it is used');

my $broken = step($measure, SLOWER => 'server.model=meta-llama/Llama-3.1-70B-Instruct server.gpu=l4-24gb');
is($broken->{status}, 1, 'a server that does not start: 1, not 3');
done_testing();
