#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# What the person who runs a dashboard does to it, and what then happens: tokens changed while it runs, a
# store's file removed or replaced under it, a port that is taken, a folder that is not there, a full disk.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Cwd qw(abs_path);
use Dash;
use POSIX ();
use Test::More;

my $n = 0;
sub result {
	return json_text({ date => '20260101-000000', backend => 'vllm', model_id => 'm', num_prompts => 10,
		request_rate => 'inf', duration => 1.5, completed => 10, total_input_tokens => 100,
		total_output_tokens => 100, request_throughput => 5 + ++$n, output_throughput => 50 });
}

# ---- tokens ----

my ($kept, $leaked, $new) = map { $_ x 24 } qw(k l n);
spew('tokens', "alice $kept read\nbob $leaked launch\n");
my $d = start_dashboard('--no-launch', '--auth-token-file', 'tokens', '--log', 'access.jsonl');
is(ask($d, 'GET', '/api/jobs', undef, Authorization => "Bearer $_")->{status}, 200, 'a token of the file')
	for $kept, $leaked;
spew('tokens', "alice $kept read\ncarol $new upload\n");
kill 'HUP', $d->{pid};
wait_for('the tokens', sub { slurp('access.jsonl') =~ /tokens was read again: 2 tokens/ });
sub status { return ask($d, 'GET', '/api/jobs', undef, Authorization => "Bearer $_[0]")->{status} }
is_deeply([map { status($_) } $kept, $leaked, $new], [200, 401, 200],
	'HUP: a line that is gone is no token any more, a new one is, without a restart');
spew('tokens', "alice short\n");
kill 'HUP', $d->{pid};
wait_for('the error', sub { slurp('access.jsonl') =~ /the tokens of before stay valid/ });
is_deeply([map { status($_) } $kept, $new], [200, 200], 'a file that cannot be read changes nothing');
rename 'access.jsonl', 'old.jsonl';
mkdir 'access.jsonl';
kill 'HUP', $d->{pid};
wait_for('the error', sub {
	slurp($d->{err}) =~ /--log: access.jsonl cannot be opened again: Is a directory/
});
ok(1, 'a log that cannot be opened again is reported on stderr as well');
is($d->stop, 0, 'it ends');

# ---- the place of a store ----

for my $store ("sqlite:not/there/runs.db", 'not/there/runs.db') {
	my $r = run(args => ['dashboard', '--no-auth', '--listen', '127.0.0.1:0', '--store', $store]);
	check_run("$store: no folder is made", $r, { status => 2, err => 'profllm dashboard: --store '
		. "$store: the folder not/there does not exist: make it, or mount its disk" });
}
ok(!-e 'not', 'none');
my $r = run(args => ['store', 'retain', '--store', 'typo.db', '--archive-days', '1']);
check_run('a store that is not there is not made to be cleaned up', $r, { status => 2,
	err => 'profllm store retain: typo.db cannot be opened: No such file or directory' });
ok(!-e 'typo.db', 'no file');

$d = start_dashboard('--no-launch', '--store', 'runs.db');
like(slurp($d->{err}), qr/\(sqlite, 0 runs\)/, 'the first line says how many runs there are');
is(ask($d, 'POST', '/api/upload/raw', result())->{status}, 201, 'a run');
like(ask($d, 'GET', '/metrics')->{content}, qr/^profllm_disk_free_bytes [1-9]/m, 'the disk has room');
$r = run(args => ['dashboard', '--no-auth', '--store', 'other.db', '--listen', "127.0.0.1:$d->{port}"]);
check_run('a port that is taken', $r, { status => 1,
	err => "profllm dashboard: --listen 127.0.0.1:$d->{port}: " . 'another program listens there '
	. '(`ss -ltnp` names it); end it first, or choose another port '
	. '(profllm help port_taken)' });

# Who deleted runs, in the log of errors where there is no other.
is(ask($d, 'POST', '/api/upload/raw', result())->{status}, 201, 'a run');
is(ask($d, 'POST', '/api/data/bulk', { action => 'delete', ids => [2] })->{json}{changed}, 1, 'is deleted');
like(slurp($d->{err}), qr/"level": "notice", .*"text": "local deleted 1 run"/, 'which is logged');

# With the same name: what SQLite wrote would be in no file, or would damage the new one.
sub is_refused {
	my ($how) = @_;
	my $answer = ask($d, 'POST', '/api/upload/raw', result());

	cmp_ok($answer->{status}, '>=', 500, "$how: an upload is not acknowledged");
	like($answer->{content}, qr/removed/, "$how: and the answer says why");
	wait_for('the health', sub { ask($d, 'GET', '/api/health/ready')->{status} == 503 });
	like(ask($d, 'GET', '/api/data/summary')->{content}, qr/replaced or removed: restart/,
		"$how: nothing is answered from the old contents");
	is($d->stop, 0, "$how: it ends");
}
run(args => ['backup', 'saved.backup', '--store', 'runs.db']);
rename 'runs.db', 'away.db';
is_refused('removed');
$r = run(args => ['store', 'check', '--store', 'away.db']);
check_run('what was acknowledged is in the file that was moved', $r,
	{ status => 0, out => ['1 run in this store', 'nothing is wrong'] });
unlink glob 'runs.db*';
run(args => ['restore', 'saved.backup', '--store', 'runs.db']);
run(args => ['restore', 'saved.backup', '--store', 'new.db']);
$d = start_dashboard('--no-launch', '--store', 'runs.db');
ask($d, 'POST', '/api/upload/raw', result()) for 1 .. 3;
rename 'new.db', 'runs.db';
is_refused('replaced');
$r = run(args => ['store', 'check', '--store', 'runs.db']);
check_run('the new file is whole', $r, { status => 0, out => ['1 run in this store', 'nothing is wrong'] });

# ---- disk and folder ----

SKIP: {
	mkdir 'small';
	skip 'a small file system needs root', 12
		if $> || system('mount -t tmpfs -o size=4m tmpfs small 2>/dev/null');
	run(args => ['restore', 'saved.backup', '--store', 'small/runs.db']);
	unlink 'small/runs.db-wal', 'small/runs.db-shm';
	system('cat /dev/zero >small/rest 2>/dev/null');
	$r = run(args => ['store', 'archive', '--undo', '--store', 'small/runs.db',
		'--filter', '{"and": []}']);
	check_run('a full disk', $r, { status => 1,
		err => 'profllm store archive: small/runs.db: its disk is full: '
		. 'make room there, then do this again; what was stored before is safe '
		. '(profllm help disk_full)' });

	unlink 'small/rest';
	$d = start_dashboard(qw(--no-launch --store small/runs.db --jobs-dir small/jobs --log full.jsonl));
	is(ask($d, 'POST', '/api/upload/raw', result())->{status}, 201, 'a run while there is room');
	system('cat /dev/zero >small/rest 2>/dev/null');
	for (["$d->{store}: its disk is full: make room there, then do this again; what was stored before is "
			. 'safe'],
		['the body cannot be kept: the disk of --jobs-dir is full: make room there, then do this '
			. 'again', generated_texts => ['x' x 100_000]]) {
		my ($why, @more) = @$_;
		my $answer = { status => 201 };

		# The log of SQLite may have room for some.
		for (my $k = 0; $answer->{status} == 201 && $k < 100; $k++) {
			$answer = ask($d, 'POST', '/api/upload/raw',
				json_text({ %{json_of(result())}, @more }));
		}
		is("$answer->{status} $answer->{reason}", '507 Insufficient Storage', 'without room');
		is($answer->{json}{detail}, $why, 'and why');
	}
	like(slurp('full.jsonl'), qr/"level": "error", .*"status": 507/, 'which is an error in the log');
	unlink 'small/rest';
	is(ask($d, 'POST', '/api/upload/raw', result())->{status}, 201, 'with room again');
	is($d->stop, 0, 'it ends');
	unlink 'small/rest', 'small/runs.db-wal', 'small/runs.db-shm';
	system('mount -o remount,ro small') == 0 or die;
	$r = run(args => ['export', '--store', 'small/runs.db']);
	check_run('a disk that cannot be written', $r, { status => 2,
		err => 'profllm export: small/runs.db cannot be opened by this user: *have its owner*' });
	system('umount', 'small');
}
done_testing();
