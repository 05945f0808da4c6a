#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Mutated files: results that are uploaded (as a body, in forms, as batches, by `ingest`), backups of the
# store that are checked, exported and restored, records that are scored with their sums made right.
# Each is taken or refused with a sentence; nothing crashes, hangs, leaks or grows, and the store is whole.
# UPLOADS=10000 BACKUPS=1000 RECORDS=1000 make it long (tools/attack.sh files), SEED repeats one.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Dash;
use IO::Compress::Gzip ();
use JSON::PP ();
use Test::More;
use Time::HiRes qw(time);

use constant { UPLOADS => $ENV{UPLOADS} || 250, BACKUPS => $ENV{BACKUPS} || 12,
	RECORDS => $ENV{RECORDS} || 24, SEED => $ENV{SEED} || time % 1e6 };
use constant GROWTH_KB => 128 << 10; # of the second half of all uploads
use constant { FORM_FILES => 20, FOLDER_FILES => 40 };

my $root = "$FindBin::Bin/../..";
my $json = JSON::PP->new->utf8->canonical->allow_nonref->max_depth(4096);
my @odd = ('', 'null', 'true', '-1', '0', '1e999', '-1e400', 'NaN', 'Infinity', '9' x 400, '"\ud800"',
	'"\u0000"',
	"\0", "\xff\xfe", "\xef\xbb\xbf", "\xc0\xaf", '[' x 70, '{"a":' x 70, '[' x 5000, '"', '\\', ',', '}',
		']', "\n", '{}',
	'[]', '""', '"' . 'x' x 5000 . '"', '{"__proto__":1}', '"../../etc/passwd"', '"%s%n"',
		'1.7976931348623157e308');

note 'SEED=' . SEED;
srand SEED;

sub pick { return $_[int rand @_] }

# ---- mutations ----

sub change_bytes {
	my ($bytes) = @_;

	for (1 .. 1 + int rand 4) {
		my $at = int rand length($bytes) + 1;
		my $n = int rand 40;
		my $how = int rand 6;
		if ($how == 0 && length $bytes) { vec($bytes, $at % length $bytes, 8) ^= 1 << int rand 8 }
		elsif ($how == 1) { substr $bytes, $at, $n, '' }
		elsif ($how == 2) { substr $bytes, $at, 0, substr $bytes, $at, $n * 9 }
		elsif ($how == 3) { substr $bytes, $at, 0, pick(@odd) }
		elsif ($how == 4) { substr $bytes, $at, $n, pick(@odd) }
		else { $bytes = substr $bytes, 0, $at if rand() < 0.3 }
	}
	return $bytes;
}

# A value like this one, but for one place.
sub change_value {
	my ($v, $depth) = @_;

	return odd_value() if $depth > 6 || !ref $v || ref $v eq 'JSON::PP::Boolean' || rand() < 0.1;
	if (ref $v eq 'ARRAY') {
		return [map { $v->[rand @$v] // 0 } 1 .. pick(0, 2, 300, 3000)] if !@$v || rand() < 0.2;
		my $at = int rand @$v;
		return [map { $_ == $at ? change_value($v->[$_], $depth + 1) : $v->[$_] } 0 .. $#$v];
	}
	my %copy = %$v;
	my $key = pick(sort keys %copy) // return odd_value();
	if (rand() < 0.15) { delete $copy{$key} }
	elsif (rand() < 0.1) { $copy{pick("$key ", '', "\x{e9}" x 70, "a.b", "a\nb",
		'x' x 600)} = $copy{$key} }
	else { $copy{$key} = change_value($copy{$key}, $depth + 1) }
	return \%copy;
}

sub odd_value {
	return pick(undef, JSON::PP::true, JSON::PP::false, 0, -1, 1, 0.5, 1e308, -1e308, 2 ** 53, 9 ** 19,
		'', 'inf',
		'NaN', "a\0b", "\x{1f4a9}", 'x' x 5000, [], {}, [[]], [1, 2, 3], { a => { b => 1 } },
			'2026-13-45',
		'20260101-000000', [map { $_ / 3 } 1 .. 200]);
}

my @seeds = map { slurp($_) } sort glob("$root/tests/unit/documents/*.json"),
	glob("$root/tests/fuzz/corpus/ingest/*");
push @seeds, json_text({ date => '20260101-000000', backend => 'vllm', model_id => 'm', num_prompts => 10,
	request_rate => 'inf', completed => 10, request_throughput => 5, mean_ttft_ms => 3, ttfts => [0.1,
		0.2],
	itls => [[0.1], []], errors => ['', 'x'] });
my @parsed = grep { ref } map { eval { $json->decode($_) } } @seeds;

sub mutated {
	my $how = rand;
	my $bytes = $how < 0.5 ? change_bytes(pick(@seeds)) : $json->encode(change_value(pick(@parsed), 0));

	$bytes = change_bytes($bytes) if $how > 0.9;
	if (rand() < 0.1) {
		IO::Compress::Gzip::gzip(\$bytes => \my $packed) or die;
		$bytes = rand() < 0.5 ? $packed : change_bytes($packed);
	}
	return $bytes;
}

# ---- uploads ----

my $d = start_dashboard('--no-launch', '--traces-dir', 'traces', '--log', 'access.jsonl');
my (@wrong, %came, $longest, @memory_kb);

sub memory_kb { return slurp("/proc/$d->{pid}/status") =~ /^VmRSS:\s+(\d+)/m ? $1 : 0 }

sub judge {
	my ($way, $bytes, $r, $good) = @_;
	my $is_refused = $r->{status} =~ /^(400|413|422)$/ && ($r->{json}{detail} // '') =~ /\w/
		&& $r->{json}{detail} !~ /\n|0x[0-9a-f]{8}/;

	$came{"$way $r->{status}"}++;
	return if $r->{status} =~ $good || $is_refused;
	push @wrong, "$way: $r->{status} $r->{content}: " . substr($bytes, 0, 300) =~ s/[^ -~]/?/gr;
}

sub upload_one {
	my ($way) = @_;
	my $bytes = mutated();
	my $began = time;
	my $r = $way eq 'raw' ? ask($d, POST => '/api/upload/raw?name=x', $bytes)
		: ask($d, POST => '/api/upload/json', form(['file', 'x.json', $bytes],
			rand() < 0.2 ? ['trace', 't', 'T'] : ()));

	judge($way, $bytes, $r, qr/^20[01]$/);
	$longest = time - $began if !defined $longest || time - $began > $longest;
	return 1;
}

sub upload_batch {
	my @files = map { mutated() } 1 .. FORM_FILES;
	my ($body, %head) = form(map { ['file', "f$_.json", $files[$_]] } 0 .. $#files);

	# The form as such is mutated, too.
	$body = change_bytes($body) if rand() < 0.2;
	my $r = ask($d, POST => '/api/upload/batch', $body, %head);
	judge('batch', $body, $r, qr/^202$/);
	my $job = $r->{json}{job_id} or return FORM_FILES;
	wait_for('a batch', sub { ask($d, GET => "/api/upload/status/$job")->{json}{state} eq 'done' });
	return FORM_FILES;
}

my $folders = 0;
sub ingest_folder {
	my $folder = 'folder' . ++$folders;

	mkdir $folder or die;
	spew("$folder/$_.json", mutated()) for 1 .. FOLDER_FILES;
	my $r = run(args => ['ingest', $folder, '--traces-dir', 'traces', '--store', $d->{store}],
		seconds => 120);
	$came{"ingest $r->{status}"}++;
	push @wrong, "ingest: $r->{status} $r->{err}" if $r->{status} !~ /^[01]$/;
	return FOLDER_FILES;
}

for (my $n = 0; $n < UPLOADS;) {
	my $way = rand;
	$n += $way < 0.9 ? upload_one('raw') : $way < 0.975 ? upload_one('form')
		: $way < 0.99 ? upload_batch() : ingest_folder();
	push @memory_kb, memory_kb();
}
is_deeply([@wrong[0 .. ($#wrong < 5 ? $#wrong : 5)]], [], UPLOADS . ' mutated uploads are taken or refused');
note join ', ', map { "$came{$_} $_" } sort keys %came;
note sprintf 'the longest took %.2f s; memory %d, %d, %d MB', $longest, map { $_ >> 10 } @memory_kb[0,
	@memory_kb / 2, -1];
cmp_ok($memory_kb[-1] - $memory_kb[@memory_kb / 2], '<', GROWTH_KB, 'memory is flat');
is(ask($d, GET => '/api/health')->{status}, 200, 'the dashboard is alive');
is(ask($d, POST => '/api/filters/apply', { facets => 'auto', shown => 'all' })->{status}, 200, 'and answers');
is($d->stop, 0, 'and ends well');
unlike(slurp($d->{err}), qr/Sanitizer|runtime error:/, 'no sanitizer has said anything');
is(scalar(grep { /"level": "error"/ } split /\n/, slurp('access.jsonl')), 0, 'nothing was its own fault');
my $r = run(args => ['store', 'check', '--traces-dir', 'traces', '--store', $d->{store}],
	seconds => 300);
check_run('store check finds nothing', $r, { status => 0 });

# ---- backups ----

$r = run(args => ['backup', 'whole.backup', '--store', $d->{store}], seconds => 300);
is($r->{status}, 0, 'a backup') or diag($r->{err});
# One of few runs, so that a changed byte is in what is read.
$d = start_dashboard('--no-launch');
ask($d, POST => '/api/upload/raw', $_) for @seeds;
ask($d, POST => '/api/filters/presets', { name => 'p', body => { a => 1 } });
$d->stop;
run(args => ['backup', 'small.backup', '--store', $d->{store}]);
my $small = slurp('small.backup');
my %statuses;
@wrong = ();

# The last line is a sentence of ours; the exit status one that is documented.
sub judge_run {
	my ($what, $run) = @_;

	$statuses{"$what $run->{status}"}++;
	push @wrong, "$what: $run->{status} $run->{err}" if $run->{status} !~ /^[0123]$/
		|| ($run->{status} =~ /^[12]$/ && $run->{out} !~ /\w/
			&& $run->{err} !~ /^profllm \w[^\n]*\n\z/m);
}

for my $n (1 .. BACKUPS) {
	my $copy = $small;

	for (1 .. 1 + int rand 3) { # the head of the file is known well enough
		my $at = rand() < 0.05 ? int rand 100 : 100 + int rand length($copy) - 100;
		my $bytes = pick("\0", "\xff\xff", "\x7f", chr int rand 256, "\x80\0\0");
		substr $copy, $at, length $bytes, $bytes;
	}
	$copy = substr $copy, 0, int rand length $copy if rand() < 0.05;
	unlink glob('restored.db* mutated.db*');
	spew('mutated.db', $copy);
	judge_run('check', run(args => ['store', 'check', '--store', 'sqlite:mutated.db']));
	judge_run('export', run(args => ['export', '--store', 'sqlite:mutated.db', '--output',
		'mutated.csv']));
	unlink glob('mutated.db*');
	spew('mutated.db', $copy);
	judge_run('restore', run(args => ['restore', 'mutated.db', '--store', 'sqlite:restored.db']));
}
is_deeply([@wrong[0 .. ($#wrong < 5 ? $#wrong : 5)]], [], BACKUPS . ' mutated backups');
note join ', ', map { "$statuses{$_} $_" } sort keys %statuses;

# ---- records ----

if (($ENV{TEST_STORE} // 'sqlite') ne 'sqlite') {
	done_testing();
	exit;
}

my @crc = map { my $c = $_; $c = $c & 1 ? $c >> 1 ^ 0x82f63b78 : $c >> 1 for 1 .. 8; $c } 0 .. 255;

sub crc32c {
	my ($bytes) = @_;
	my $c = 0xffffffff;

	$c = $crc[($c ^ $_) & 255] ^ $c >> 8 for unpack 'C*', $bytes;
	return $c ^ 0xffffffff;
}

# docs/record-format.md: a magic of 8 bytes; blocks of type, ..., length, sum, bytes.
sub mend_sums {
	my ($file) = @_;

	for (my $at = 8; $at + 16 <= length $file;) {
		my $bytes = unpack 'V', substr $file, $at + 8, 4;
		last if $bytes > length($file) - $at - 16;
		substr $file, $at + 12, 4, pack 'V', crc32c(substr($file, $at, 12) . substr $file, $at + 16,
			$bytes);
		$at += 16 + $bytes;
	}
	return $file;
}

my $sim = start_sim(qw(--ttft-ms 2 --itl-ms 1 --fault status=500:id=a-1));
run(args => [qw(bench serve --model sim --tokenizer sim --num-prompts 6 --random-input-len 8
	--random-output-len 4 --request-id-prefix a- --record a.rec --save-detailed --port), $sim->{port}]);
my $record = slurp('a.rec');
is(mend_sums($record), $record, 'sums of a record are right to begin with');
%statuses = ();
@wrong = ();
my @odd_bytes = ("\0" x 8, "\xff" x 8, pack('d', 1e300), pack('d', 9 ** 9 ** 9), pack('q', -1),
	pack('q', 2 ** 62), "\x01\0\0\0\0\0\0\0");
my @score = (qw(bench score mutated.rec --percentile-metrics), 'ttft,tpot,itl,e2el', qw(--goodput ttft:1000
	--save-result --save-detailed --result-filename mutated.json));
for my $n (1 .. RECORDS) {
	my $copy = $record;

	for (1 .. 1 + int rand 6) {
		my $at = 8 + int rand length($copy) - 8;
		my $n_bytes = pick(1, 2, 4, 8);
		substr $copy, $at, $n_bytes, substr pick(@odd_bytes), 0, $n_bytes;
	}
	spew('mutated.rec', mend_sums($copy));
	judge_run('score', run(args => [@score, $n % 5 ? () : '--plot-timeline']));
}
is_deeply([@wrong[0 .. ($#wrong < 5 ? $#wrong : 5)]], [], RECORDS . ' mutated records with right sums');
note join ', ', map { "$statuses{$_} $_" } sort keys %statuses;

done_testing();
