#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Texts that need no server: help, version, mistakes in commands, the configuration, workloads made
# but not sent, completion scripts. Whole texts are in golden/.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Test::More;

my @serve = qw(bench serve --tokenizer sim --model sim --request-id-prefix t-);
my @words = ("Where is the station", "What time does the train to the north leave today",
	"Two coffees please", "Is there a table for four people near the window");

spew('custom.jsonl', join '', map { qq({"prompt": "$words[$_]", "output_tokens": ) . (3 + $_) . "}\n" }
	0 .. 3);
spew('sharegpt.json', '[' . join(', ', map { qq({"conversations": [{"from": "human", "value": "$_"}, )
	. qq({"from": "gpt", "value": "$_, I believe."}]}) } @words) . ']');

# Exit status, golden file, arguments; stdout and stderr together, as a person sees them.
my @rows = (
	[0, 'help.txt', '--help'],
	[0, 'help.txt', '-h'],
	[2, 'help.txt'],
	[0, 'version.txt', '--version'],
	[0, 'help-bench.txt', qw(bench --help)],
	[2, 'help-bench.txt', 'bench'],
	[2, 'unknown-command.txt', 'brench'],
	[2, 'unknown-bench.txt', qw(bench sevre)],
	[0, 'help-serve.txt', qw(bench serve --help)],
	[0, 'help-serve-traffic.txt', qw(bench serve --help=traffic)],
	[0, 'help-serve-profllm.txt', qw(bench serve --help=profllm)],
	[0, 'help-serve-word.txt', qw(bench serve --help=percentile)],
	[0, 'help-serve-none.txt', qw(bench serve --help=nothing-like-it)],
	[0, 'help-score.txt', qw(bench score --help)],
	[0, 'help-doctor.txt', qw(doctor --help)],
	[0, 'help-plot.txt', qw(bench sweep plot --help)],
	[0, 'help-pareto.txt', qw(bench sweep plot_pareto --help)],
	[0, 'help-sla.txt', qw(bench sweep serve_sla --help=sla)],
	[0, 'help-workload.txt', qw(bench sweep serve_workload --help=workload)],
	[0, 'help-sim.txt', qw(sim --help)],
	[0, 'help-tokenizer.txt', qw(tokenizer --help)],
	[2, 'help-tokenizer.txt', 'tokenizer'],
	[0, 'help-encode.txt', qw(tokenizer encode --help)],
	[0, 'help-decode.txt', qw(tokenizer decode --help)],
	[0, 'help-count.txt', qw(tokenizer count --help)],
	[0, 'help-show.txt', qw(tokenizer show --help)],
	[0, 'help-compile.txt', qw(tokenizer compile --help)],
	[0, 'help-completion.txt', qw(completion --help)],
	[0, 'help-init.txt', qw(init --help)],
	[0, 'help-run.txt', qw(run --help)],
	[0, 'help-dashboard.txt', qw(dashboard --help)],
	[0, 'help-ingest.txt', qw(ingest --help)],
	[0, 'help-export.txt', qw(export --help)],
	[0, 'help-store.txt', qw(store --help)],
	[2, 'unknown-option.txt', qw(bench serve --num-promts 3)],
	[2, 'no-file.txt', qw(bench score)],
	[0, 'fix-help.txt', qw(bench serve --fix help)],
	[0, 'compat-help.txt', qw(bench serve --compat help)],
	[0, 'show-config.txt', @serve, qw(--show-config --num_prompts 7 --random-i 12 --header a=b
		--extra-body.min_tokens 4 --no-self-timed)],
	[0, 'dry-run-random.txt', @serve, qw(--dry-run --num-prompts 20 --random-input-len 30
		--random-output-len 9 --random-range-ratio 0.5 --request-rate 4 --seed 3)],
	[0, 'dry-run-sharegpt.txt', @serve, qw(--dry-run --num-prompts 5 --dataset-name sharegpt
		--dataset-path sharegpt.json)],
	[0, 'dry-run-custom.txt', @serve, qw(--dry-run --num-prompts 3 --dataset-name custom
		--dataset-path custom.jsonl --custom-output-len -1 --save-result)],
	[0, 'dump-random.txt', @serve, qw(--dry-run --num-prompts 3 --random-input-len 6
		--random-output-len 4 --request-rate 2 --burstiness 0.5 --dump-workload -)],
	[0, 'dump-sharegpt.txt', @serve, qw(--dry-run --num-prompts 6 --dataset-name sharegpt
		--dataset-path sharegpt.json --sharegpt-output-len 3 --seed 9 --dump-workload -)],
	[0, 'dump-custom.txt', @serve, qw(--dry-run --num-prompts 0 --dataset-name custom
		--dataset-path custom.jsonl --custom-output-len 5 --disable-shuffle --dump-workload -)],
	[0, 'dump-ramp.txt', @serve, qw(--dry-run --num-prompts 4 --random-input-len 4
		--ramp-up-strategy linear --ramp-up-start-rps 1 --ramp-up-end-rps 4 --lora-modules a b
		--lora-assignment round-robin --dump-workload -)],
);

sub mask_text {
	my ($text) = @_;

	$text = mask_run($text);
	$text =~ s/^profllm \S+$/profllm VERSION/m;
	return $text;
}

for my $row (@rows) {
	my ($status, $golden, @args) = @$row;
	my $r = run(args => \@args);

	is($r->{status}, $status, "profllm @args: exit status");
	is_golden(mask_text($r->{out}) . ($r->{err} ne '' ? "--- stderr\n" . mask_text($r->{err}) : ''),
		$golden) if $golden !~ /^help(-bench|-tokenizer)?\.txt$/ || $status == 0;
	is($r->{out}, '', "profllm @args: usage of a wrong command goes to stderr") if $status;
}

# ---- the same, said differently ----

my $plain = run(args => [@serve, qw(--show-config --num-prompts 7 --request-rate 2 --save-result)]);
for my $line ('--num_prompts 7 --request_rate 2 --save_result',
	'--num-prompts=7 --request-rate=2.0 --save-result', '--num-p 7 --request-ra 2 --save-r',
	'--num_prompts=5 --num-prompts 7 --request-rate 2 --save-result') {
	is(run(args => [@serve, '--show-config', split / /, $line])->{out}, $plain->{out}, "same: $line");
}
my $old = run(args => [@serve, qw(--show-config --endpoint-type openai-chat --custom-skip-chat-template)]);
like($old->{out}, qr/^skip-chat-template = true .*^backend = "openai-chat" /ms, 'old spellings work');
is($old->{err}, "WARNING: --endpoint-type is an old spelling of --backend\n"
	. "WARNING: --custom-skip-chat-template is an old spelling of --skip-chat-template\n",
	'and are told');
my @old = qw(benchmark_serving.py --tokenizer sim --model sim --dry-run --num-prompts 2);
check_run('--dataset of benchmark_serving.py', run(args => [@old, qw(--dataset sharegpt.json)]), {
	status => 0,
	warn => ['WARNING: --dataset is an old spelling of --dataset-name sharegpt --dataset-path'],
	out => ['Workload: 2 requests from dataset sharegpt; *'] });
unlike(run(args => [@serve, qw(--show-config --header Authorization=secret)])->{out}, qr/secret/,
	'secrets are not shown');

# ---- the workload in a file is the one on stdout ----

my @dump = (@serve, qw(--dry-run --num-prompts 3 --random-input-len 6 --random-output-len 4 --dump-workload));
my $shown = run(args => [@dump, '-'])->{out};
run(args => [@dump, 'dump.jsonl']);
my $dumped = slurp('dump.jsonl');
ok(length $dumped && index($shown, $dumped) >= 0, 'a dumped workload is what - shows');
is(scalar(grep { json_of($_)->{request_id} =~ /^t-\d$/ } split /\n/, $dumped), 3,
	'and one JSON object per line');

# ---- completion ----

for my $shell (qw(bash zsh)) {
	my $r = run(args => ['completion', $shell]);

	is($r->{status}, 0, "completion $shell: exit status");
	spew("script.$shell", $r->{out});
	SKIP: {
		skip "no $shell", 1 if system("command -v $shell >/dev/null 2>&1");
		is(system("$shell -n script.$shell"), 0, "completion $shell: the shell can read it");
	}
}
SKIP: {
	skip 'no bash', 3 if system('command -v bash >/dev/null 2>&1');
	spew('complete.bash', <<'END');
source ./script.bash
f=$(complete -p profllm | sed 's/.*-F \([^ ]*\).*/\1/')
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
$f
printf '%s\n' "${COMPREPLY[@]}"
END
	my $ask = sub {
		my $words = join ' ', map { "'$_'" } @_;
		return `bash complete.bash $words`;
	};

	like($ask->('profllm', ''), qr/^bench\s*$/m, 'bash completes commands');
	like($ask->(qw(profllm bench serve --num-p)), qr/^--num-prompts\s*$/m, 'and options');
	like($ask->(qw(profllm bench serve --backend openai-c)), qr/^openai-chat\s*$/m, 'and choices');
}

done_testing();
