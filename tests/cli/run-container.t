#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# run-container.t - `profllm run` with servers in containers: started, stopped, ended when we were
# killed, and what is said when the runtime, its daemon or the image is not there.
#
# docker and podman are a script that behaves like them: containers are children of a process that
# is not in our tree, `run` follows one and passes TERM on to it, `stop` and `rm` end it. Its
# state is a folder; every call is written down.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Cwd ();
use JSON::PP ();
use Test::More;
use Time::HiRes qw(sleep time);

my $here = Cwd::getcwd();
my $mark = "$$-" . int(time * 1000);
$ENV{CONTAINER_TEST} = $mark;
$ENV{XDG_RUNTIME_DIR} = "$here/state";
$ENV{FAKE} = "$here/fake";
$ENV{PROGRAM} = $program;
mkdir "$here/$_" for qw(bin fake fake/box);
spew("$here/bin/engine-server", qq{#!/bin/sh\nexec "\$PROGRAM" sim "\$@"\n});
chmod 0755, "$here/bin/engine-server";
$ENV{PATH} = "$here/bin:$ENV{PATH}";

spew("$here/bin/docker", <<'END');
#!/usr/bin/env perl
use strict; use POSIX (); use Time::HiRes qw(sleep);
my $fake = $ENV{FAKE};
sub out { my ($path, $text) = @_; open my $f, '>>', $path or die "$path: $!"; print $f $text; close $f }
sub text { open my $f, '<', $_[0] or return ''; local $/; my $t = <$f>; return $t // '' }
sub boxes { my @b; for (glob "$fake/box/*.pid") { m,/([^/]+)\.pid$, and push @b, $1 } return @b }
sub refuse { my ($status, $text) = @_; print STDERR "$text\n"; exit $status }
sub alive { my $pid = text("$fake/box/$_[0].pid"); return $pid && kill 0, $pid }
sub gone { my ($name) = @_; unlink glob("$fake/box/$name.*") }
sub end_box {
	my ($name, $signal, $seconds) = @_;
	my $pid = text("$fake/box/$name.pid");
	kill $signal, -$pid if $pid;
	for (1 .. $seconds * 50) { last unless alive($name); sleep 0.02 }
	kill 'KILL', -$pid if $pid;
}
out("$fake/calls", join("\x1f", @ARGV) . "\n");
refuse(1, "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?")
	if -e "$fake/asleep";
my $verb = shift @ARGV;
if ($verb eq 'ps') {
	my ($filter) = grep { s/^name=\^(.*)\$$/$1/ } @ARGV;
	print "$_\n" for grep { !defined $filter || $_ eq $filter } boxes();
} elsif ($verb eq 'inspect') {
	my $name = $ARGV[-1];
	refuse(1, "Error: No such object: $name") unless -e "$fake/box/$name.pid";
	print "/$name ", text("$fake/box/$name.owner"), "\n";
} elsif ($verb eq 'image') {
	my $name = $ARGV[-1];
	refuse(1, "Error response from daemon: No such image: $name") unless -e "$fake/image.$name";
	print "$name\@sha256:", 'ab' x 32, "\n";
} elsif ($verb eq 'pull') {
	my $name = $ARGV[0];
	refuse(1, "Using default tag: latest\nError response from daemon: " .
		"pull access denied for $name, repository does not exist")
		if $name =~ /missing/;
	sleep 0.2;
	out("$fake/image.$name", '');
} elsif ($verb eq 'stop') {
	my ($seconds, $name) = @ARGV[1, 2];
	refuse(1, "Error response from daemon: No such container: $name") unless -e "$fake/box/$name.pid";
	end_box($name, 'TERM', $seconds);
	for (1 .. 250) { last unless -e "$fake/box/$name.pid"; sleep 0.02 }
} elsif ($verb eq 'rm') {
	my $name = $ARGV[-1];
	end_box($name, 'KILL', 1);
	gone($name);
} elsif ($verb eq 'run') {
	my ($name, $owner, $entry, @env);
	while (@ARGV && $ARGV[0] =~ /^-/) {
		my $option = shift @ARGV;
		next if $option eq '--rm';
		my $value = shift @ARGV;
		$name = $value if $option eq '--name';
		$owner = $1 if $option eq '--label' && $value =~ /^profllm\.owner=(.*)/;
		$entry = $value if $option eq '--entrypoint';
		push @env, $value =~ /=/ ? $value : "$value=" . ($ENV{$value} // '') if $option eq '-e';
	}
	my $image = shift @ARGV;
	refuse(125, "docker: Error response from daemon: Conflict. " .
		"The container name \"/$name\" is already in use.")
		if -e "$fake/box/$name.pid" || $image =~ /taken/;
	my $log = "$fake/log.$name";
	if (!fork) { # the daemon: not in the caller's tree
		POSIX::setsid();
		exit 0 if fork;
		delete $ENV{PROFLLM_KEPT};
		delete $ENV{HOME};
		open STDIN, '<', '/dev/null';
		open STDOUT, '>', $log; open STDERR, '>&', \*STDOUT;
		my $pid = fork;
		if (!$pid) {
			POSIX::setsid();
			for (@env) { my ($n, $v) = split /=/, $_, 2; $ENV{$n} = $v }
			out("$fake/env.$name", join("\n", map { "$_=$ENV{$_}" } sort keys %ENV) . "\n");
			shift @ARGV if $entry eq 'vllm'; # its serve
			exec($entry eq 'vllm' ? ($ENV{PROGRAM}, 'sim', @ARGV) : ($entry, @ARGV));
		}
		out("$fake/box/$name.owner", $owner);
		out("$fake/box/$name.pid.new", $pid);
		rename "$fake/box/$name.pid.new", "$fake/box/$name.pid";
		waitpid $pid, 0;
		out("$fake/box/$name.status", $? & 127 ? 128 + ($? & 127) : $? >> 8);
		my $status = text("$fake/box/$name.status");
		rename "$fake/box/$name.status", "$fake/ended.$name";
		gone($name);
		exit 0;
	}
	wait;
	for (1 .. 250) { last if -e "$fake/box/$name.pid" || -e "$fake/ended.$name"; sleep 0.02 }
	$SIG{TERM} = sub { my $pid = text("$fake/box/$name.pid"); kill 'TERM', $pid if $pid };
	$| = 1;
	my $at = 0;
	my $show = sub { my $t = text($log); print substr($t, $at); $at = length $t };
	until (-e "$fake/ended.$name") { $show->(); sleep 0.05 }
	$show->();
	exit text("$fake/ended.$name");
} else {
	refuse(125, "docker: '$verb' is not a docker command.");
}
END
chmod 0755, "$here/bin/docker";
symlink 'docker', "$here/bin/podman";
spew("$here/fake/image.engine", '');

sub calls { return map { [split /\x1f/] } split /\n/, slurp('fake/calls') // '' }
sub boxes { my @found = glob "$here/fake/box/*.pid"; return @found }

# Processes that carry the test's mark and run a simulator.
sub sims {
	my @found;
	for my $p (glob '/proc/[0-9]*') {
		my $env = slurp("$p/environ") // next;
		next unless $env =~ /CONTAINER_TEST=\Q$mark\E\0/;
		push @found, $p if (slurp("$p/cmdline") // '') =~ /\0sim\0/;
	}
	return @found;
}

sub config {
	my ($name, $container, %o) = @_;
	my $server = join "\n", map { "  $_" } @{$o{server} || []};

	return spew("$name.yaml", <<"END");
name: $name
server:
  container: $container
$server
benchmark: {mode: serve, dataset_name: random, random_input_len: 16, random_output_len: @{[$o{len} || 4]},
            num_prompts: 3, tokenizer: sim, model: sim}
telemetry: {enabled: false}
END
}

sub experiment {
	my ($name, $container, %o) = @_;
	unlink 'fake/calls';
	my $path = config($name, $container, %o);
	my $r = run(args => ['run', '--config', $path, '--output', "$name.json"],
		env => $o{env} || {});
	my $d = -s "$name.json" ? JSON::PP::decode_json(slurp("$name.json")) : {};
	return ($r, $d);
}

sub option {
	my ($call, $name) = @_;
	return map { $call->[$_ + 1] } grep { $call->[$_] eq $name } 0 .. $#$call - 1;
}

subtest 'one that goes well' => sub {
	my ($r, $d) = experiment('good', '{image: engine, env: {GREETING: "a b"}}',
		server => ['model: sim', 'env: {HF_TOKEN: hush}', 'served_model_name: [sim]']);

	is $r->{status}, 0 or diag $r->{err};
	is $d->{status}, 'completed';
	is $d->{results}{completed_requests}, 3;
	is_deeply $d->{config}{servers}[0]{container}, { image => 'engine',
		env => { GREETING => 'a b' }, digest => 'engine@sha256:' . 'ab' x 32 },
		'which image it was is recorded';
	my @calls = calls();
	my ($run) = grep { $_->[0] eq 'run' } @calls;
	my ($name) = option($run, '--name');
	like $name, qr/^profllm-exp_\d+_\d+_[0-9a-f]{6}-server$/, 'its name is that of the run';
	is_deeply [option($run, '--network')], ['host'];
	is_deeply [option($run, '-e')], ['HF_TOKEN', 'GREETING=a b'], 'no secret on a command line';
	like slurp("fake/env.$name"), qr/^HF_TOKEN=hush$/m, 'but in its environment';
	unlike slurp('good.json'), qr/hush/, 'nor in the document';
	my ($image) = grep { $run->[$_] eq 'engine' } 0 .. $#$run;
	is_deeply [@$run[$image - 2 .. $#$run]], ['--entrypoint', 'vllm', 'engine', 'serve', 'sim',
		'--served-model-name', 'sim', '--host', '127.0.0.1', '--port',
		(option($run, '--port'))], 'the command' or diag explain $run;
	ok +(grep { $_->[0] eq 'stop' && $_->[3] eq $name } @calls), 'it is stopped by name';
	is_deeply [boxes()], [], 'nothing of it is left';
	is_deeply [sims()], [];
	like slurp('good.d/server.log'), qr/serving model/, 'its log is kept';
};

subtest 'podman, a bridge, an image that is pulled' => sub {
	my ($r, $d) = experiment('pull',
		'{runtime: podman, image: far, network: bridge, mounts: ["/m:/m:ro"]}',
		server => ['command: [engine-server]']);

	is $r->{status}, 0 or diag $r->{err};
	my @calls = calls();
	is_deeply [map { "@$_" } grep { $_->[0] eq 'pull' } @calls], ['pull far'];
	like $r->{out} . $r->{err}, qr/Pulling image far/;
	my ($run) = grep { $_->[0] eq 'run' } @calls;
	my ($port) = option($run, '--port');
	is_deeply [option($run, '-p')], ["127.0.0.1:$port:$port"];
	is_deeply [option($run, '--host')], ['0.0.0.0'], 'inside it listens for the outside';
	is_deeply [option($run, '--entrypoint')], ['engine-server'];
	is_deeply [option($run, '-v')], ['/m:/m:ro'];
	is_deeply [boxes()], [];
};

subtest 'what does not exist' => sub {
	my ($r, $d) = experiment('noimage', '{image: missing}', server => ['model: sim']);

	is $r->{status}, 1;
	is $d->{error}{stage}, 'start';
	like $d->{error}{reason}, qr/image missing: docker pull: .*pull access denied for missing/;

	spew('fake/asleep', '');
	($r, $d) = experiment('asleep', '{image: engine}', server => ['model: sim']);
	unlink 'fake/asleep';
	is $r->{status}, 1;
	like $d->{error}{reason}, qr/Cannot connect to the Docker daemon .* Is the docker daemon running/;

	spew('fake/image.taken', '');
	($r, $d) = experiment('taken', '{image: taken}', server => ['model: sim']);
	is $r->{status}, 1;
	like $d->{error}{reason} . $d->{error}{log_tail}, qr/The container name "\S+" is already in use/;

	($r, $d) = experiment('noruntime', '{image: engine}', server => ['model: sim'],
		env => { PATH => '/nowhere' });
	isnt $r->{status}, 0;
	like $d->{error}{reason}, qr/server\.container\.runtime: docker is not in PATH/;

	($r, $d) = experiment('wrong', '{image: engine, gpus: 3}', server => ['model: sim']);
	is $r->{status}, 2, 'a wrong object is refused before anything is asked';
	like $r->{err}, qr/server\.container\.gpus/;
	is_deeply [calls()], [];
	is_deeply [boxes()], [];
};

subtest 'one that dies, one that does not want to end' => sub {
	my ($r, $d) = experiment('dies', '{image: engine}', server => ['model: sim',
		'extra_args: [--die-after, 2req]']);

	is $r->{status}, 1;
	is $d->{status}, 'failed';
	like $d->{error}{log_tail}, qr/the engine died/, 'its log is in the document';
	is_deeply [boxes()], [];

	($r, $d) = experiment('stubborn', '{image: engine}', server => ['model: sim',
		'extra_args: [--ignore-term]', 'grace_s: 0.5']);
	is $r->{status}, 0 or diag $r->{err};
	is $d->{status}, 'completed';
	is_deeply [boxes()], [];
	is_deeply [sims()], [];
};

subtest 'kill -9 of us' => sub {
	config('killed', '{image: engine}', server => ['model: sim', 'grace_s: 1',
		'extra_args: [--ignore-term, --decode-base-us, "100000"]'], len => 1000);
	my $run = begin(args => ['run', '--config', 'killed.yaml', '--output', 'killed.json']);
	wait_for('the container', sub { boxes() && (slurp('killed.d/server.log') // '') =~ /serving/ });
	kill 'KILL', $run->{pid};
	finish($run);
	wait_for('the end of its container', sub { !boxes() && !sims() });
	pass 'its keeper has removed the container, which is not in our tree';
	is_deeply [map { "@$_[0, 1]" } grep { $_->[0] eq 'rm' } calls()], ['rm -f'], 'by its name';
};

subtest 'kill -9 of us and of the keeper' => sub {
	config('killed', '{image: engine}', server => ['model: sim', 'grace_s: 1',
		'extra_args: [--ignore-term, --decode-base-us, "100000"]'], len => 1000);
	my $run = begin(args => ['run', '--config', 'killed.yaml', '--output', 'killed.json']);
	wait_for('the container', sub { boxes() && (slurp('killed.d/server.log') // '') =~ /serving/ });
	my ($keeper) = grep { (slurp("/proc/$_/cmdline") // '') =~ /^profllm-keeper\0/ &&
		(slurp("/proc/$_/stat") // '') =~ /\) \S $run->{pid} / }
		map { s,/proc/,,r } glob '/proc/[0-9]*';
	ok $keeper, 'there is one';
	kill 'KILL', $keeper // (), $run->{pid};
	finish($run);
	ok scalar boxes(), 'its container goes on: it is not in our tree';

	my ($r, $d) = experiment('next', '{image: engine}', server => ['model: sim']);
	is $r->{status}, 0 or diag $r->{err};
	like $r->{err}, qr/ended container profllm-exp_\S+-server that an earlier run left/;
	is_deeply [boxes()], [], 'the next start has ended it';
	wait_for('the end of all simulators', sub { !sims() });
	pass 'and no process is left';
};

stop_all();
done_testing();
