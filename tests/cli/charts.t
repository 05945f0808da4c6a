#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# --charts: gnuplot's text charts before the report, or upstream's tip.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Test::More;

my $gnuplot = (grep { -x } map { "$_/gnuplot" } split /:/, $ENV{PATH})[0];
my $tip = 'tip: install termplotlib and gnuplot to plot the metrics';
my $sim = start_sim('--ttft-ms', '2', '--itl-ms', '1');
my @args = ('bench', 'serve', '--base-url', $sim->{url}, @{ $tiny{model} }, @{ $tiny{load} },
	'--ready-check-timeout-sec', '0', '--progress', 'none', '--compat', 'stdout');
my @titles = ('*Output tokens per second*', '*Concurrent requests per second*');

check_run('never', run(args => [@args, '--charts', 'never']), { status => 0, out => [$tip],
	not_out => \@titles });
check_run('auto, and no terminal', run(args => \@args), { status => 0, out => [$tip],
	not_out => \@titles });
check_run('the tip is vLLM\'s', run(args => [@args[0 .. $#args - 2]]), { status => 0, not_out => [$tip] });
mkdir 'empty';
check_run('always, and no gnuplot', run(args => [@args, '--charts', 'always'],
	env => { PATH => 'empty' }), { status => 0, out => [$tip], not_out => \@titles,
	warn => ['WARNING: --charts always: gnuplot is not installed'] });
mkdir 'bad';
spew('bad/gnuplot', "#!/bin/sh\nexit 3\n");
chmod 0755, 'bad/gnuplot';
check_run('always, and a gnuplot that fails', run(args => [@args, '--charts', 'always'],
	env => { PATH => 'bad:/usr/bin:/bin' }), { status => 0, out => [$tip],
	warn => ['WARNING: --charts: gnuplot failed'] });

SKIP: {
	skip 'gnuplot is needed', 5 unless $gnuplot;
	my $run = run(args => [@args, '--charts', 'always', '--request-rate', '2', '--seed', '1']);

	check_run('always', $run, { status => 0, err => '*', out => \@titles, not_out => [$tip] });
	like($run->{out}, qr/Output tokens.*Concurrent requests.*\n=+ Serving Benchmark Result/s,
		'always: both stand before the report');
	unlike($run->{out}, qr/[ \f]\n.*Concurrent/, 'always: no blanks at the end of its lines');
	my $dead = run(args => ['bench', 'serve', '--base-url', 'http://127.0.0.1:9',
		@{ $tiny{model} }, @{ $tiny{load} }, '--ready-check-timeout-sec', '0', '--progress',
		'none', '--charts', 'always']);
	check_run('nothing succeeded', $dead, { status => 1, not_out => [@titles, $tip] });
	my $why = no_script();

	skip $why, 1 if $why;
	my $shown = run(command => ['script', '-qec', join(' ', map { "'$_'" } $program, @args),
		'/dev/null']);
	ok((2 == grep { has_line($shown->{out} =~ s/\r//gr, $_) } @titles), 'auto, on a terminal');
}

done_testing;
