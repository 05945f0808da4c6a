#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# container-real.t - `profllm run` with a real podman and a real docker: the simulator's image is
# built without a network, started, found healthy, measured and stopped; profllm is interrupted and
# killed. Afterwards the runtime knows no container and no process of the server is left. A runtime
# that is not there, or cannot start a container on this machine, is skipped with its own words.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Containers;
use Cwd ();
use JSON::PP ();
use Test::More;
use Time::HiRes qw(sleep time);

my $here = Cwd::getcwd();
my $mark = "mark-$$-" . int(time * 1000);
my $image = "localhost/profllm-sim:$mark";
my $runtime;
$ENV{XDG_RUNTIME_DIR} = "$here/state";
mkdir "$here/state", 0700;

sub runtime { return run(command => [$runtime, @_], seconds => 120) }

# Containers of this test, in whatever state.
sub containers {
	my $r = runtime('ps', '-aq', '--filter', "ancestor=$image");
	return $r->{status} eq '0' ? split /\n/, $r->{out} : ("$runtime ps: $r->{err}");
}

# Processes that carry the mark in their words: the server in its container, what started it and
# what watches over it, but nothing that builds or lists.
sub processes {
	return grep { (slurp("$_/cmdline") // '') =~ /\0served-\Q$mark\E(\0|$)/ } glob '/proc/[0-9]*';
}

sub is_nothing_left {
	my ($when) = @_;
	wait_for("the end of all processes $when", sub { !processes() });
	wait_for("the end of all containers $when", sub { !containers() });
	return pass "nothing is left $when";
}

sub config {
	my ($name, %o) = @_;
	my $container = join ', ', "runtime: $runtime", "image: \"$image\"", $o{container} || ();
	return spew("$name.yaml", <<"END");
name: $name
server:
  command: [profllm, sim]
  model: sim
  served_model_name: [served-$mark]
  grace_s: 2
  ready_timeout_s: 60
  container: {$container}
  extra_args: [@{[$o{words} || '']}]
benchmark: {mode: serve, dataset_name: random, random_input_len: 16,
            random_output_len: @{[$o{len} || 4]}, num_prompts: 3, tokenizer: sim,
            model: served-$mark}
END
}

sub experiment {
	my ($name, %o) = @_;
	config($name, %o);
	my $r = run(args => ['run', '--config', "$name.yaml", '--output', "$name.json"],
		seconds => 120);
	return ($r, -s "$name.json" ? JSON::PP::decode_json(slurp("$name.json")) : {});
}

my @begun; # ended with the test, whatever becomes of it
END { kill 'KILL', $_->{pid} for grep { !defined $_->{status} } @begun }

# One that is under load until it is ended.
sub long_one {
	my ($name) = @_;
	config($name, len => 1000, words => '--ignore-term, --decode-base-us, "100000"');
	my $run = begin(args => ['run', '--config', "$name.yaml", '--output', "$name.json"],
		seconds => 120);
	push @begun, $run;
	wait_for('its load', sub { (slurp("$name.d/server.log") // '') =~ /serving/ &&
		(slurp($run->{out_path}) // '') =~ /is ready after/ });
	return $run;
}

# The keeper between us and the runtime's command.
sub keeper_of {
	my ($run) = @_;
	for my $p (glob '/proc/[0-9]*') {
		my ($parent) = (slurp("$p/stat") // '') =~ /\) \S (\d+) / or next;
		return $p =~ s,/proc/,,r if $parent == $run->{pid} &&
			(slurp("$p/cmdline") // '') =~ /^profllm-keeper\0/;
	}
	return undef;
}

sub whole_life {
	for my $network (qw(host bridge)) {
		my ($r, $d) = experiment($network, container => "network: $network");
		if ($network eq 'bridge' && $r->{status}) {
			note "no bridge here: $d->{error}{reason} $d->{error}{log_tail}";
			is_nothing_left('of a bridge that this machine does not have');
			next;
		}
		is $r->{status}, 0, "network $network" or diag $r->{err};
		is $d->{status}, 'completed';
		is $d->{results}{completed_requests}, 3, 'it is measured';
		is $d->{config}{servers}[0]{version}, 'profllm-sim', 'by its own server';
		like $d->{config}{servers}[0]{container}{digest}, qr/sha256:[0-9a-f]{64}$/,
			'the image that it was is recorded';
		like slurp("$network.d/server.log"), qr/3 requests|4 requests/, 'its log is kept';
		is_nothing_left("after a run with network $network");
	}
	my ($r, $d) = experiment('dies', words => '--die-after, 2req');
	is $d->{status}, 'failed', 'a server that dies in its container';
	like $d->{error}{log_tail}, qr/the engine died/, 'is told by its log';
	is_nothing_left('of it');
}

sub ended_early {
	my $run = long_one('interrupted');
	kill 'INT', $run->{pid};
	is finish($run)->{status}, 130, 'Ctrl-C';
	is_nothing_left('after Ctrl-C, of a server that ignores TERM');

	$run = long_one('killed');
	ok scalar(containers()), 'a container runs';
	kill 'KILL', $run->{pid};
	finish($run);
	is_nothing_left('after kill -9 of profllm');

	$run = long_one('both');
	my $keeper = keeper_of($run);
	ok $keeper, 'a keeper is there';
	kill 'KILL', $run->{pid}, $keeper // ();
	finish($run);
	ok scalar(containers()), 'kill -9 of profllm and its keeper leaves a container';
	my ($r, $d) = experiment('next');
	is $r->{status}, 0 or diag $r->{err};
	like $r->{err}, qr/ended container profllm-exp_\S+-server that an earlier run left/,
		'which the next start ends, and says so';
	is_nothing_left('then');
}

sub why_not {
	my $asked = runtime('info');
	return "$runtime info: $asked->{err}" if $asked->{status};
	my $built = run(command => ["$FindBin::Bin/../../packaging/container/build-image.sh", "sim", $runtime,
		$image, $program], seconds => 120, env => { DOCKER_BUILDKIT => 0 });
	return "the image cannot be built: $built->{err}" if $built->{status};
	my @try = ('run', '--rm', '--network', 'host', $image, '--help');
	my $started = runtime(@try);
	if ($started->{status} && $runtime eq 'podman') {
		mild_podman($here);
		$started = runtime(@try);
	}
	return $started->{status} ? "it starts no container here: $started->{err}" : undef;
}

for my $name (qw(podman docker)) {
	$runtime = $name;
	subtest $name => sub {
		plan skip_all => "$name is not in PATH"
			unless grep { -x "$_/$name" } split /:/, $ENV{PATH};
		my $why = why_not();
		if ($why) {
			runtime('rmi', '-f', $image);
			plan skip_all => $why =~ s/\n+/ /gr;
		}
		whole_life();
		ended_early();
		runtime('rmi', '-f', $image);
	};
}

stop_all();
done_testing();
