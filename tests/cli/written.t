#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Whatever is written arrives, and whatever is JSON is strict: every kind of file and answer that the
# program makes is read by a parser of RFC 8259, of runs whose options and figures are not finite; and
# every verb that prints ends with 1 when standard output takes nothing.
use strict;
use warnings;
no warnings 'qw';
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Dash;
use Sweep;
use Cwd ();
use File::Find;
use JSON::PP ();
use Test::More;

$ENV{XDG_RUNTIME_DIR} = Cwd::getcwd() . '/state';
$ENV{PROFLLM_NVML} = '';
mkdir 'state';

my $strict = JSON::PP->new->utf8->allow_nonref;
my $here = Cwd::getcwd();

# ---- the parser ----

sub why_not {
	my ($text) = @_;

	eval { $strict->decode($text); 1 } and return '';
	return $@ =~ s/ at \S+ line \d+\.?\n?\z//r;
}

# One value, or one a line.
sub is_strict {
	my ($text, $name, $is_lines) = @_;
	my @why = grep { $_ ne '' } map { why_not($_) } $is_lines ? split /\n/, $text // '' : $text // '';

	ok(defined $text && $text =~ /\S/ && !@why, "$name: strict JSON") or diag($why[0] // 'empty');
}

isnt(why_not($_), '', "the parser refuses $_") for '[NaN]', '[Infinity]', '{"a": -Infinity}', '[1,]',
	'{a: 1}';

# ---- everything that is written into files ----

my $sim = start_sim(qw(--ttft-ms 1 --itl-ms 1 --truth truth.jsonl --requests requests.jsonl));
my $bad = start_sim(qw(--ttft-ms 1 --itl-ms 1 --fault status=400));
my @load = (qw(--model sim --tokenizer sim --num-prompts 6 --random-input-len 8 --random-output-len 4
	--disable-tqdm --request-rate inf --burstiness inf --metadata note=NaN more=Infinity
	--goodput ttft:1000 tpot:1e300), '--extra-body', '{"a": NaN, "b": [Infinity, "-Infinity"]}');
my @serve = (qw(bench serve), @load, '--port', $sim->{port});

sub works {
	my ($name, @args) = @_;
	my %o = ref $args[-1] ? %{pop @args} : ();
	my $r = run(args => \@args, seconds => 120, %o);

	is($r->{status}, $o{status} // 0, "$name: exit status") or diag($r->{err});
	return $r;
}

# Verbs that need no server are of one engine that is made up.
sub engine { return (qw(--backend sim --model sim --tokenizer sim), @_) }

my %pytorch = (env => { SAVE_TO_PYTORCH_BENCHMARK_FORMAT => '1' });

mkdir $_ for qw(one other);
works('serve', @serve, qw(--save-result --save-detailed --result-filename one/a.json --record a.rec
	--dump-workload dump.jsonl --output-json output.json --num-runs 2), { %pytorch });
works('serve, other', @serve, qw(--save-result --result-filename other/a.json --max-concurrency 1));
works('serve, appended', @serve, qw(--append-result --result-filename appended.jsonl)) for 1, 2;
works('serve, refused', qw(bench serve), @load, '--port', $bad->{port},
	qw(--save-result --save-detailed --result-filename refused.json --record refused.rec), { %pytorch,
		status => 1 });
works('serve, points', @serve, qw(--sweep-request-rate 50,inf --save-result --result-dir points));
works('score', qw(bench score a.rec.1 --save-result --result-filename scored.json));
works('compare', qw(bench compare one/a.json other/a.json --ignore max_concurrency
	--format json --output compare.json));
works('markdown', qw(bench markdown --result one));
spew('serve-params.json', '[{"max_num_seqs": 8}]');
spew('bench-params.json',
	'[{"request_rate": Infinity, "burstiness": Infinity}, {"request_rate": 50, "no_such": NaN}]');
spew('limits.json', '[{"p99_ttft_ms": "<60000"}]');
my @sweep = sweep_args('swept', serve_params => 'serve-params.json', bench_params => 'bench-params.json',
	num_runs => 1, bench => [qw(--num-prompts 4)]);
run(args => [@sweep, qw(--warmup-num-prompts 1)], seconds => 120);
run(args => [sweep_args('limited', verb => 'serve_sla', bench => [qw(--num-prompts 4)]),
	qw(--sla-params limits.json --sla-variable max_concurrency --budget 9 --level-seconds 1)],
	seconds => 120);
for my $verb (qw(throughput latency startup mm-processor)) {
	my @more = $verb eq 'mm-processor' ? qw(--num-prompts 2) : $verb eq 'startup'
		? qw(--num-iters-cold 1 --num-iters-warm 1) : qw(--input-len 8 --output-len 4);

	push @more, $verb eq 'latency' ? qw(--num-iters 2 --num-iters-warmup 1) : $verb eq 'throughput'
		? qw(--num-prompts 4) : ();
	run(args => ['bench', $verb, engine(@more, '--output-json', "$verb.json")], seconds => 120, %pytorch);
}
spew('experiment.yaml', JSON::PP->new->encode({ name => 'e', server => {
	command => 'sim', model => 'sim', ttft_ms => 1,
	itl_ms => 1 }, benchmark => { tokenizer => 'sim', num_prompts => 4, random_input_len => 8,
	random_output_len => 4, request_rate => 'inf', temperature => 0 } }) =~ s/"inf"/.inf/r);
works('run', qw(run --config experiment.yaml --output document.json --progress none));
works('run, plan', qw(run --config experiment.yaml --output document.json --plan plan.json));
works('dataset compile', qw(dataset compile --tokenizer sim --num-prompts 4 --output compiled.work));
works('ingest', qw(ingest --store sqlite:runs.db one/a.json refused.json document.json));
works('export', qw(export --store sqlite:runs.db --format jsonl --output exported.jsonl));

# Of records only the meta is JSON.
sub meta_of {
	my ($all) = @_;
	my $at = index $all // '', '{"report": ';

	return $at < 0 ? undef : substr $all, $at,
		(eval { (JSON::PP->new->utf8->decode_prefix(substr $all, $at))[1] } // 40);
}
is_strict(meta_of(slurp($_)), "the meta of $_") for qw(a.rec.1 refused.rec);

my @found;
my %input = map { $_ => 1 } qw(bench-params.json);
find({ no_chdir => 1, wanted => sub {
	push @found, $_ =~ s/^\.\///r if -f && /\.jsonl?\z/ && !$input{s/.*\///r};
} }, '.');
for my $path (sort @found) {
	my $text = slurp($path);
	my $is_lines = $path =~ /l\z/ || $path =~ m{/events} || $text =~ /^\{.*\}\n\{/;

	is_strict($text, $path, $is_lines);
}
my %is_judged = map { $_ => 1 } @found;
for my $want (qw(truth.jsonl requests.jsonl one/a.json one/a.pytorch.json dump.jsonl output.json
	appended.jsonl refused.json scored.json compare.json one/benchmark_results.json
	throughput.json latency.json startup.json mm-processor.json document.json plan.json exported.jsonl)) {
	ok($is_judged{$want} && -s $want, "$want was judged");
}
for my $want (qw(summary\.json run=0\.json failure capacity\.json warmup\.json servers\.json)) {
	ok((grep { /results\/.*$want/i } @found), "a sweep's $want was judged")
		or diag(join "\n", grep { /results/ } @found);
}
my $result = json_of(slurp('one/a.json'));
is_deeply([@{$result}{qw(request_rate burstiness)}, $result->{profllm}{options}{request_rate}], [('inf') x 3],
	'settings without end are the text "inf"');

# ---- everything that is printed as JSON ----

for my $row (['bench serve', '--help=json'], ['run', '--help=json'], ['sim', '--help=json'],
	['run', '--print-schema'],
	['run', '--config', 'experiment.yaml', '--plan', '-'], ['args list', '--json'],
	['args show', '--json', 'tensor-parallel-size'], ['tokenizer show', '--tokenizer', 'sim', '--json'],
	['bench compare', 'one/a.json', 'other/a.json', qw(--ignore max_concurrency --format json)],
	['bench compare', 'one/a.json', 'refused.json', qw(--include-invalid --format json)]) {
	my ($verb, @args) = @$row;

	is_strict(run(args => [split(/ /, $verb), @args])->{out}, "$verb @args");
}
is_strict(run(args => [qw(ingest --store sqlite:runs.db --json one/a.json)])->{out}, 'ingest --json', 1);
is_strict(run(args => [qw(export --store sqlite:runs.db --format jsonl)])->{out}, 'export --format jsonl', 1);
is_strict(run(args => [qw(bench serve --model sim --tokenizer sim --num-prompts 2 --dry-run
	--dump-workload -)])->{out} =~ s/^(?!\{).*\n//mgr, 'bench serve --dump-workload -', 1);

# ---- everything that the dashboard answers ----

my $d = start_dashboard('--store', 'sqlite:runs.db');
my $api = json_of(slurp("$FindBin::Bin/../../schema/api.json"));
my $metric = 'request_throughput';
my $rate = 'benchmark.request_rate';
my %body = (apply => { columns => [$metric, $rate, 'benchmark.burstiness'] }, compare => { ids => [1] },
	trends => { metric => $metric }, regression => { metric => $metric, baseline => { last => 1 } },
	impact => { metric => $metric }, scaling => { metric => $metric, by => $rate },
	capacity => { rate => 1, slo => [{ column => $metric, min => 0 }] },
	resources => { x => $metric, y => $rate }, pareto => { x => $metric, y => $rate },
	distribution => { metric => $metric, group => [$rate] }, parallel => { columns => [$metric, $rate] });
my $n_answers = 0;
for my $route (@{$api->{routes}}) {
	my $path = $route->{path} =~ s/\{\w+\}/1/r;
	my $body = $route->{method} eq 'POST' ? $body{$path =~ s/.*\///r} : undef;
	next if $path =~ /metrics$|csv|traces\/|events$|log$/ || $route->{method} =~ /DELETE|PUT/
		|| $path eq '/api/launch';
	my $r = ask($d, $route->{method}, $path, $body);

	$n_answers++ if $r->{status} == 200;
	cmp_ok($r->{status}, '<', 500, "$route->{method} $path: no fault of the server");
	next if $r->{status} == 204;
	is_strict($r->{content}, "$route->{method} $path ($r->{status})");
}
cmp_ok($n_answers, '>=', 20, 'most routes have an answer');
is_strict(ask($d, GET => '/api/export/csv?format=jsonl')->{content}, 'GET /api/export/csv?format=jsonl', 1);
is($d->stop, 0, 'the dashboard ends');

# ---- a document without room at its place ----

{
	mkdir 'elsewhere';
	symlink('/dev/full', 'full.json') or die;
	my $r = run(args => [qw(run --config experiment.yaml --output full.json --progress none)],
		seconds => 120, env => { TMPDIR => "$here/elsewhere" });
	my ($path) = $r->{err} =~ /the document is in (\S+\.json)/;

	is($r->{status}, 1, 'no room for the document: exit status');
	ok($path && $path =~ m{^\Q$here\E/elsewhere/}, 'no room for the document: it is said where it is')
		or diag($r->{err});
	is_strict(slurp($path // '/dev/null'), 'no room for the document: it is whole');
	is(sprintf('%o', (stat($path // '/dev/null'))[2] & 07777), '600',
		'no room for the document: for its owner alone');
}

# ---- standard output that takes nothing ----

my $server = start_sim(qw(--ttft-ms 1 --itl-ms 1));
my @tiny = (qw(bench serve --model sim --tokenizer sim --num-prompts 2 --random-input-len 4
	--random-output-len 2 --port), $server->{port});
spew('text', "a text\n");
spew('ids', "1 2 3\n");
my @verbs = (['--help'], ['--version'], ['bench', '--help'], [qw(bench serve --help)],
	[qw(bench serve --help=json)],
	[qw(bench serve --show-config)], [qw(bench serve --fix help)], [qw(bench serve --load-pattern help)],
	[@tiny], [@tiny, '--dry-run'], [@tiny, qw(--dry-run --dump-workload -)],
	[@tiny, qw(--sweep-request-rate 50,60)],
	[qw(bench score a.rec.1)], [qw(bench compare one/a.json other/a.json --ignore max_concurrency)],
	[qw(bench serve --compare one/a.json other/a.json)], [qw(bench markdown --result one)],
	[sweep_args('dry'), '--dry-run'], [qw(bench sweep plot results/swept --dry-run)],
	(map { ['bench', $_, engine('--dry-run')] } qw(throughput latency startup)),
	[qw(run --config experiment.yaml --output d.json --dry-run)],
	[qw(run --config experiment.yaml --plan -)],
	[qw(run --print-schema)], [qw(export --store sqlite:runs.db)],
	[qw(store check --store sqlite:runs.db)],
	[qw(ingest --store sqlite:runs.db one/a.json)], [qw(args list)], [qw(args show tensor-parallel-size)],
	[qw(tokenizer encode --tokenizer sim text)], [qw(tokenizer decode --tokenizer sim ids)],
	[qw(tokenizer count --tokenizer sim text)], [qw(tokenizer show --tokenizer sim)],
	[qw(dataset show --tokenizer sim --num-prompts 2)], [qw(completion bash)]);
my $unwritten = qr/cannot write to standard output|the runs cannot be written/;
my %ways = (
	'a full disk' => ['sh', '-c', 'exec "$@" >/dev/full', 'sh'],
	'a closed descriptor' => ['sh', '-c', 'exec "$@" >&-', 'sh'],
	'a pipe without a reader' => [$^X, '-e', 'pipe R, W; close R; open STDOUT, ">&", W; close W; '
		. '$SIG{PIPE} = "DEFAULT"; exec { $ARGV[0] } @ARGV', '--'],
);
for my $args (@verbs) {
	my $name = join ' ', grep { !/[\/"]|^\d+$/ } @$args;
	my $good = run(args => $args, seconds => 60);

	ok($good->{status} eq '0' && $good->{out} =~ /\S/, "$name: prints")
		or diag("$good->{status}: $good->{err}");
	for my $way (sort keys %ways) {
		my $r = run(command => [@{$ways{$way}}, $program, @$args], seconds => 60);

		ok($r->{status} eq '1' && $r->{err} =~ /^profllm\b.*: $unwritten: \S.*\n\z/m,
			"$name, $way: one sentence and 1") or diag("$r->{status}: $r->{err}");
	}
}
is(run(command => [@{$ways{'a full disk'}}, $program, qw(bench markdown --nonsense)])->{status}, 2,
	'another failure stays what it is');

done_testing();
