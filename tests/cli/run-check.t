#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Before and after a run: `--check` says what would fail, `--upload` sends documents or keeps them until
# they can be sent. The dashboard is a server of canned answers that writes down what it gets.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use IO::Socket::INET;
use JSON::PP ();
use POSIX qw(_exit);
use Test::More;

my $scratch = do { require Cwd; Cwd::getcwd() };
$ENV{XDG_STATE_HOME} = "$scratch/state";
$ENV{TMPDIR} = "$scratch/tmp";
mkdir $ENV{TMPDIR} or die;
$ENV{PATH} = '/usr/bin:/bin'; # without a vllm

spew('quick.yaml', <<'END');
name: quick
server: {command: sim, model: meta-llama/Llama-3.1-8B-Instruct, gpu: h100-80gb, max_model_len: 4096}
benchmark: {tokenizer: sim, num_prompts: 200, random_input_len: 16, random_output_len: 4, request_rate: 2}
END

# ---- check ----

sub check { return run(args => ['run', '--config', 'quick.yaml', '--output', 'r.json', '--check', @_]) }
sub row { my ($run, $what) = @_; return $run->{out} =~ /^  (\S+) +\Q$what\E  +(\S.*)$/m ? "$1: $2" : 'none' }

my $good = check('--progress', 'none');
is($good->{status}, 0, 'a check that passes') or diag($good->{err}, $good->{out});
like($good->{out}, qr/^Check of quick$/m, 'whose it is');
like(row($good, 'memory'), qr/^pass: fits as modelled: tokens of KV cache: \d+/,
	'memory, by the model of the hardware');
like(row($good, 'tokenizer'), qr/^pass: sim$/, 'the tokenizer');
like(row($good, 'dataset'), qr/^pass: random, made here: 200 requests$/, 'the dataset, made');
like(row($good, 'port'), qr/^pass: the first free port/, 'a port');
like(row($good, 'smoke load'), qr/^pass: 8 of 8 prompts answered/, 'a short load, however long the real one');
ok(!-e 'r.json' && !-e 'r.d', 'nothing is kept');
is(join(',', glob("$ENV{TMPDIR}/*")), '', 'nor in the scratch folder');

my $me = $$;
my $busy = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1', LocalPort => 0) or die;
spew('token', "s3cret\n");
my @vllm = ('server.command=vllm serve', 'server.gpu=null');
my @rows = (
	['memory', 'memory', qr/^FAIL: .*CUDA out of memory/,
		'server.model=meta-llama/Llama-3.1-70B-Instruct'],
	['a command', 'command', qr/^FAIL: vllm is not in PATH/, @vllm],
	['a model', 'model', qr/^FAIL: meta-llama\S+ is not available: /, @vllm],
	['a port', 'port', qr/^FAIL: \d+ is taken by process $me$/, 'server.port=' . $busy->sockport],
	['a tokenizer', 'tokenizer', qr/^FAIL: no tokenizer "\/nonexistent": /,
		'benchmark.tokenizer=/nonexistent'],
	['a dataset', 'dataset', qr/^FAIL: .*none\.json/, 'benchmark.dataset_name=sharegpt',
		"benchmark.dataset_path=$scratch/none.json"],
	['a server', 'server', qr{^FAIL: http://127\.0\.0\.1:1/health},
		'server={"url": "http://127.0.0.1:1"}'],
);
for (@rows) {
	my ($name, $what, $found, @set) = @$_;
	my $run = check('--set', @set);

	is($run->{status}, 1, "$name that will not do: exit status") or diag($run->{err});
	like(row($run, $what), $found, "$name: the row");
	like(row($run, 'smoke load'), qr/^skipped: checked when/, "$name: no load then");
}
my $wrong = check('--set', 'benchmark.num_promts=3');
is($wrong->{status}, 2, 'a wrong configuration is no check');
my $dying = check('--set', 'server.die_after=1req');
is($dying->{status}, 1, 'a server that dies under load');
like(row($dying, 'smoke load'), qr/^FAIL: failed, at stage/, 'is found by the short load');

# ---- upload ----

my $requests = 0;
# Answers the k-th request with the k-th status, the last one from then on; each body in a file.
sub dashboard
{
	my (@status) = @_;
	my $listen = IO::Socket::INET->new(Listen => 8, LocalAddr => '127.0.0.1', LocalPort => 0) or die;
	my ($port, $log) = ($listen->sockport, "$scratch/board" . ++$requests);
	my $pid = fork;

	return { url => "http://127.0.0.1:$port", pid => $pid, log => $log } if $pid;
	for (my $k = 0;; $k++) {
		my $c = $listen->accept or next;
		my ($head, $body) = ('', '');

		$head .= $_ while $head !~ /\r\n\r\n/ && defined($_ = <$c>);
		read $c, $body, $1 if $head =~ /^content-length: *(\d+)/mi;
		open my $f, '>>', "$log.heads";
		print $f $head;
		close $f;
		spew("$log.$k", $body);
		print $c "HTTP/1.1 ", $status[$k < @status ? $k : -1], " X\r\nContent-Length: 3\r\n",
			"Connection: close\r\n\r\nwhy";
		$c->shutdown(2);
	}
	_exit(0);
}

my @boards;
END { kill 'KILL', @boards if @boards }
sub board { my $b = dashboard(@_); push @boards, $b->{pid}; return $b }
sub upload
{
	my ($board, @more) = @_;
	return run(args => ['run', '--config', 'quick.yaml', '--output', 'u.json', '--progress', 'none',
		'--set', 'benchmark.num_prompts=3', 'benchmark.request_rate=inf',
		'--upload', $board->{url}, @more]);
}
sub spooled { my @waiting = glob("$scratch/state/profllm/spool/*.json"); return @waiting }

my $board = board(503, 200);
my $sent = upload($board, '--token-file', 'token');
is($sent->{status}, 0, 'uploaded at the second try') or diag($sent->{err});
like(slurp("$board->{log}.heads"), qr{^POST /api/upload/raw HTTP/1\.1\r$}m, 'where it goes');
like(slurp("$board->{log}.heads"), qr/^Authorization: Bearer s3cret\r$/mi, 'with the token');
is(slurp("$board->{log}.1"), slurp('u.json'), 'the document, byte for byte');
unlike($sent->{out} . $sent->{err} . join('', map { slurp($_) } 'u.json', glob('u.d/*')), qr/s3cret/,
	'the token is nowhere else');
is(scalar(spooled()), 0, 'nothing waits');

my $closed = { url => 'http://127.0.0.1:1' };
my $kept = upload($closed);
is($kept->{status}, 0, 'nobody answers: the run is no failure');
like($kept->{err}, qr/WARNING: quick was not uploaded .*; it waits and is sent with the next upload/, 'said');
is(scalar(spooled()), 1, 'the document waits');
my ($waiting) = spooled();
my $spool = json_of(slurp($waiting));
is($spool->{url}, $closed->{url}, 'with where it was to go');
is_deeply($spool->{document}, json_of(slurp('u.json')), 'and whole');

my $later = board(200);
$spool->{url} = $later->{url};
spew($waiting, JSON::PP->new->canonical->encode($spool));
my $again = run(args => ['run', '--upload-spool']);
is($again->{status}, 0, '--upload-spool') or diag($again->{err});
like($again->{out}, qr/^1 sent, 0 waiting$/m, 'says what it did');
is(scalar(spooled()), 0, 'nothing waits any more');
like(run(args => ['run', '--upload-spool'])->{out}, qr/^0 sent, 0 waiting$/m, 'nor is anything sent twice');

$spool->{url} = $closed->{url};
spew($waiting, JSON::PP->new->canonical->encode($spool));
my $stays = run(args => ['run', '--upload-spool']);
is($stays->{status}, 1, 'a dashboard that has moved');
like($stays->{err}, qr/ still waits .*; if that dashboard has moved, .*--upload-spool --upload URL/,
	'what to do about it');
my $moved = board(200);
my $there = run(args => ['run', '--upload-spool', '--upload', $moved->{url}]);
is($there->{status}, 0, 'its new address') or diag($there->{err});
like($there->{out}, qr/^1 sent, 0 waiting$/m, 'gets what waited for the old one');
is_deeply(json_of(slurp("$moved->{log}.0")), $spool->{document}, 'whole');

$spool->{url} = $later->{url};
spew($waiting, JSON::PP->new->canonical->encode($spool));
upload($later);
is(scalar(spooled()), 0, 'an upload that arrives takes along what waits');

my $refused = upload(board(422));
is($refused->{status}, 1, 'a document that is refused');
like($refused->{err}, qr/quick was not uploaded: \S+ answered 422: why/, 'in the words of the dashboard');
is(scalar(spooled()), 0, 'does not wait');

my $check = check('--upload', $later->{url}, '--token-file', 'none');
like(row($check, 'upload'), qr/^FAIL: token file: .*\bnone\b/, 'a check looks at the token file');

unlink 'u.json';
for my $case (['--upload', 'ftp://host'],
	['--upload', 'http://127.0.0.1:1', '--token-file', 'none']) {
	my @words = @$case;
	my $early = run(args => ['run', '--config', 'quick.yaml', '--output', 'u.json', '--progress',
		'none', @words]);
	isnt($early->{status}, 0, "@words: refused");
	ok(!-e 'u.json', 'before anything is run');
}
done_testing();
