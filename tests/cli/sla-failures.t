#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# `bench sweep serve_sla` on a server that sheds load: what it refuses has no latency, so limits on
# latencies alone are kept by any load.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Test::More;

my $port = free_port();
my $client = "$program bench serve --port $port --model sim --tokenizer sim --random-input-len 8 " .
	'--random-output-len 2 --ready-check-timeout-sec 0 --progress none --num-prompts';
my @upstream = ('--sla-search', 'interpolate');
my @concurrency = ('--sla-variable', 'max_concurrency');

sub search {
	my ($name, $prompts, $server, @more) = @_;
	return run(args => ['bench', 'sweep', 'serve_sla', '--serve-cmd',
		"$^X $FindBin::Bin/shedding_server.pl --port $port $server", '--bench-cmd',
		"$client $prompts", '--after-bench-cmd', 'true', '--num-runs', 1, '--server-grace', 5,
		'--sla-params', 'sla.json', '-e', $name, @more], seconds => 120);
}

sub capacity { return json_of(slurp("results/$_[0]/capacity.json"))->[0] }
sub level { return (grep { $_->{level} == $_[1] } @{$_[0]{levels}})[0] }

spew('sla.json', '[{"p99_ttft_ms": "<=20000"}]');

# ---- four at once are answered, by every recipe ----

for my $recipe (qw(bisect interpolate)) {
	my $r = search($recipe, 40, '', @concurrency, '--sla-search', $recipe);
	check_run("$recipe: a level with failures does not pass", $r, { status => 0, out => [
		'SLA criteria: p99_ttft_ms<=20000.00, failed<=1.00 %',
		'Validating SLA: p99_ttft_ms = *<=20000.00 | PASSED',
		'Validating SLA: failed = *<=1.00 % | FAILED', 'SLA criteria are not met.*',
		'Maximum max_concurrency for SLA: 4 req/s.'],
		not_out => ['Every level meets the SLA*'] });
	my $c = capacity($recipe);
	is($c->{outcome}, 'found', "$recipe: said to be found");
	is("$c->{capacity} $c->{first_failing}", '4 5', "$recipe: and where");
	is(level($c, 4)->{failed_share}, 0, "$recipe: no request failed there");
	ok(level($c, 65536)->{failed_share} > 0.5, "$recipe: most of them did at infinite load");
	my ($ttft, $failed) = @{$c->{constraints}};
	ok(!$ttft->{binds} && $failed->{binds} && $failed->{constraint} eq 'failed<=1.00 %',
		"$recipe: it is the failures that bind");
	ok(@{$c->{levels}} < 25, "$recipe: after " . @{$c->{levels}} . ' levels');
}

my $rate = search('rate', 20, '--ms 5', '--sla-search', 'bisect');
check_run('as a rate', $rate, { status => 0, out => ['Maximum request_rate for SLA: * req/s.'] });
my $found = capacity('rate');
ok($found->{capacity} >= 1 && $found->{capacity} < 800, "is what four can carry: $found->{capacity}");
ok(level($found, $found->{capacity})->{failed_share} <= 0.01, 'with no more failures than allowed');

# ---- how many failures are allowed ----

my $none = search('none', 20, '--good 12/20 --slots 99', @concurrency, @upstream);
check_run('a server that fails two in five', $none, { status => 0, out => [
	'No max_concurrency meets the SLA: even 1 at once does not.'] });
my $most = search('most', 20, '--good 12/20 --slots 99', @concurrency, @upstream, '--sla-max-failed', 45);
check_run('40 % are allowed', $most, { status => 0, out => [
	'SLA criteria: p99_ttft_ms<=20000.00, failed<=45.00 %',
	'Every level meets the SLA, even 65536 at once: its limits do not bind with the 20 requests of a ' .
	'run.'] });

# ---- a run that cannot be quoted ----

my $bad = search('bad', 40, '', @concurrency, @upstream, '--sla-max-failed', 95);
check_run('allowed failures that make a run INVALID', $bad, { status => 1, warn => [
	'WARNING: results/bad/max_concurrency=65536/run=0.json does not count (delete it to have it ' .
	'measured again): * of the requests failed*'], out => [
	'The search for max_concurrency is undecided: *'] });
is(capacity('bad')->{outcome}, 'undecided', 'leave the search undecided');

# ---- staying there ----

my $hover = search('hover', 40, '', @concurrency, @upstream, '--hover', 2, '--hover-window', 0.2);
check_run('hovering', $hover, { status => 0, out => ['Capacity while hovering: *'] });
my @window = map { json_of($_) } split /\n/, slurp('results/hover/hover.jsonl') // '';
ok(@window > 0, 'its windows are written');
ok(!(grep { $_->{passes} != ($_->{values}{failed_share} <= 0.01) } @window),
	'a window with failures does not pass');
ok(!(grep { $_->{level} > 8 } @window), 'so it does not climb');

check_run('no share', search('no', 4, '', '--sla-max-failed', 101), { status => 2,
	err => '*--sla-max-failed*100*' });

done_testing();
