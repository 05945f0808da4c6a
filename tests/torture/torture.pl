#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Torture: every command line of commands.txt, again and again, each time with one call to the system
# failing (inject.c), and once with every read and write cut short. Judged are the exit status, what is
# said, every file, the store, and what is left running; the sanitizer judges memory.
#
#   tests/torture/torture.pl [--seconds N] [--points N] [--new] [--seed N] [--only REGEX] [--part K/N]
#       [--repeat 'KEY NTH HOW']
#
# PROFLLM: the program that makes the files and servers that the lines need; TORTURED: the one that is
# judged. --seconds: begin no new line after that. --points: tries of a line, of points never tried first;
# --new: of those alone. --only: lines that match. --part: every N-th of them, from the K-th. --repeat: this
# one try. The last line is the sum.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../cli";
use Cli;
use Cwd qw(abs_path getcwd);
use Digest::MD5 qw(md5_hex);
use File::Copy qw(copy);
use File::Find qw(find);
use File::Path qw(remove_tree make_path);
use Getopt::Long;
use IO::Socket::INET;
use JSON::PP ();
use Text::ParseWords qw(shellwords);
use Time::HiRes qw(sleep time);

use constant { SECONDS_EACH => 60, SHARED_BYTES => 176 + 8192 * 56, POINT_AT => 176, POINTS_MAX => 8192,
	POINT_BYTES => 56, FIRED_AT => 17 * 8 };

my %o = (seconds => 1e9, points => 40, seed => 1, only => '.', part => '1/1');
GetOptions(\%o, 'seconds=i', 'points=i', 'seed=i', 'only=s', 'part=s', 'repeat=s', 'verbose', 'new')
	or exit 2;
my $tortured = abs_path($ENV{TORTURED} // die "TORTURED must name the program that is judged\n");
my $root = abs_path("$FindBin::Bin/../..");
my $home = getcwd();
my ($stock, $work, $shared) = ("$home/stock", "$home/work", "$home/shared");
my $strict = JSON::PP->new->utf8->allow_nonref;
my $began = time;
my (@kinds, @errors, %tried, %reached, %found, %sum, %of_kind);

$ENV{PROFLLM_NVML} = $ENV{PROFLLM_DCGM} = '';
$ENV{PROFLLM_LOCKS} = "$home/locks";
$ENV{ASAN_OPTIONS} = 'detect_stack_use_after_return=1:abort_on_error=0:exitcode=99';
$ENV{LSAN_OPTIONS} = 'exitcode=99';
$ENV{UBSAN_OPTIONS} = 'print_stacktrace=1';
$ENV{HOME} = $home;
$ENV{TMPDIR} = "$home/tmp";
mkdir $_ for $stock, "$home/locks", $ENV{TMPDIR};
srand $o{seed};

# ---- What the lines need ----

sub make {
	my ($what, @args) = @_;
	my $r = run(command => [$program, @args], seconds => 120);

	$r->{status} =~ /^[03]$/ or die "cannot make $what: $r->{status} $r->{err}\n";
	return $r->{out};
}

my $sim = start_sim(qw(--model demo --ttft-ms 1 --itl-ms 0.1));
my $port = $sim->{port};

sub prepare {
	my @load = (qw(--model demo --tokenizer sim --random-input-len 8 --random-output-len 4),
		'--port', $port);

	my $p = free_port();

	chdir $stock or die;
	mkdir $_ for qw(before after own own/results);
	spew('prompts.jsonl', join '',
		map { qq({"prompt": "Say number $_.", "output_tokens": 4}\n) } 1 .. 8);
	spew('sharegpt.json', '[' . join(',', map { qq({"conversations": [{"from": "human", "value":)
		. qq( "What is the use of number $_, and why?"}, {"from": "gpt", "value":)
		. ' "It follows another."}]}' } 1 .. 8) . ']');
	spew('chats.json', '[{"id": "a", "messages": [{"role": "user", "content": "Hello there"}, {"role":'
		. ' "assistant", "content": "Hello"}, {"role": "user", "content": "And again"}, {"role":'
		. ' "assistant", "content": "Yes"}]}]');
	spew('trace.jsonl', join '', map { sprintf '{"timestamp": %d, "input_length": 20,'
		. qq( "output_length": 4, "hash_ids": [%d, 0]}\n), $_ * 10, $_ } 1 .. 6);
	spew('text.txt', 'Where is the station, and when does the next train leave? ' x 40);
	spew('question.txt', "Where is the station?\n");
	spew('ids.txt', "1 2 3\n");
	spew('own/lines.jsonl', "{}\n");
	spew('empty.json', '');
	spew('broken.json', '{"a": [1, 2');
	spew('tokens', "secret-token-of-a-person read,write someone\n");
	spew('serve.json', '[{"max_num_seqs": 4}, {"max_num_seqs": 8}]');
	spew('bench.json', '[{"max_concurrency": 2, "num_prompts": 4}]');
	spew('api.json', slurp("$root/examples/backends/" . (map { s,.*/,,r }
		glob "$root/examples/backends/*.json")[0]));
	copy($_, '.') or die "$_: $!" for glob("$root/tests/unit/token/*.json"),
		glob("$root/tests/unit/token/*.model"),
		glob("$root/tests/cli/foreign/*.json");
	for ([run => 'run.rec', 6], [again => 'again.rec', 6], [few => 'few.rec', 3]) {
		make($_->[0], qw(bench serve), @load, '--num-prompts', $_->[2], '--save-result',
			'--save-detailed', '--result-filename', "$_->[0].json", '--record', $_->[1]);
	}
	copy('run.json', $_) or die
		for qw(before/a.json own/results/a.json own/old.json own/results/c.json);
	copy('again.json', $_) or die for qw(after/a.json own/results/b.json);
	copy('run.rec', 'own/run.rec') or die;
	make('points', qw(bench serve), @load, qw(--num-prompts 4 --sweep-max-concurrency), '1,2',
		qw(--save-result --result-dir points));
	make('a workload', qw(dataset compile --tokenizer sim --num-prompts 4 --random-input-len 8
		--output workload.bin));
	spew('run.yaml', "name: run\nserver: {url: 'http://127.0.0.1:$port', model: demo}\nbenchmark: "
		. "{tokenizer: sim, num_prompts: 4, random_input_len: 8, random_output_len: 4}\n");
	spew('server.yaml', "name: run\nserver: {command: '$program sim --ttft-ms 1', model: demo}\n"
		. (split /^/, slurp('run.yaml'))[2]);
	spew('suite.yaml', slurp('run.yaml') =~ s/^name: run/suite: two/r
		. "experiments: [{name: a}, {name: b, benchmark: {num_prompts: 2}}]\n");
	make('a document', qw(run --config run.yaml --output document.json));
	make('a store', qw(ingest run.json again.json document.json --store sqlite:own/runs.db));
	make('a backup', qw(backup runs.backup --store sqlite:own/runs.db));
	make('a sweep', qw(bench sweep serve -o swept -e first --num-runs 1 --after-bench-cmd true
		--serve-params serve.json
		--bench-params bench.json --serve-cmd), "$program sim --model demo --port " . $p,
		'--bench-cmd', "vllm bench serve --model demo --tokenizer sim --port $p --random-input-len 8 "
		. '--random-output-len 4 --num-prompts 4');
	chdir $home;
}

# The lines, with <a|b> in all its forms; @ begins a server, which gets requests and a signal.
sub lines {
	my @lines = grep { /\S/ && !/^#/ } split /\n/, slurp("$FindBin::Bin/commands.txt") =~ s/\\\n//gr;
	my (@all, %seen);

	while (defined(my $line = shift @lines)) {
		if ($line =~ /^(.*?)<([^<>]*)>(.*)$/) {
			unshift @lines, map { "$1$_$3" } split /\|/, $2, -1;
		} elsif (!$seen{$line}++) {
			push @all, $line;
		}
	}
	return @all;
}

# ---- Running ----

sub fresh {
	my ($line) = @_;

	remove_tree($work);
	mkdir $work or die "$work: $!\n";
	for my $path (glob "$stock/*") {
		(my $name = $path) =~ s,.*/,,;
		if (!-d $path) { symlink $path, "$work/$name" }
		elsif ($line =~ /\b\Q$name\E\b/) { system 'cp', '-a', $path, "$work/$name" }
	}
	remove_tree("$home/data", "$home/cache", "$home/config", "$home/.local");
	chdir $work or die;
}

# The text of every file of the working folder, and what they are called when numbers do not count.
sub files_now {
	my %file;

	find({ no_chdir => 1, wanted => sub {
		return if -l $_ || !-f $_;
		(my $name = $_) =~ s,^\./,,;
		$file{$name} = slurp($_) // '';
	} }, '.');
	return \%file;
}

sub talk {
	my ($at, $text) = @_;
	my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $at, Timeout => 2) or return;
	my $sel = '';

	print $s $text;
	$s->flush;
	vec($sel, fileno $s, 1) = 1;
	while (select(my $ready = $sel, undef, undef, 5)) { sysread($s, my $bytes, 65536) or last }
}

sub requests {
	my ($line, $at) = @_;
	my $body = $line =~ /dashboard/ ? slurp("$stock/few.json")
		: '{"model": "demo", "prompt": "Hi there", "max_tokens": 4, "stream": true}';
	my $head = "Host: 127.0.0.1:$at\r\nConnection: close\r\n";

	talk($at, "GET $_ HTTP/1.1\r\n$head\r\n") for $line =~ /dashboard/
		? qw(/ /api/v1/health /api/v1/runs /api/v1/runs/1 /api/v1/export?format=csv)
		: qw(/health /v1/models /metrics);
	talk($at, 'POST ' . ($line =~ /dashboard/ ? '/api/v1/results' : '/v1/completions')
		. " HTTP/1.1\r\n${head}Content-Type: application/json\r\nContent-Length: "
		. length($body) . "\r\n\r\n$body");
}

sub execute {
	my ($line, %env) = @_;
	my $is_server = $line =~ s/^~?@//;

	$line =~ s/^~//;
	my $other = $line =~ /OTHER/ ? free_port() : 0;
	my @words = shellwords($line =~ s/PORT/$port/gr =~ s/OTHER/$other/gr =~ s/PROGRAM/$tortured/gr);
	my $run;

	fresh($line);
	open my $f, '>', $shared or die; # all zeros
	truncate $f, SHARED_BYTES;
	close $f;
	$run = begin(command => [$tortured, @words], seconds => SECONDS_EACH,
		env => { INJECT => $shared, %env });
	if ($is_server) {
		my $deadline = time + 30;
		sleep 0.005 until -s 'port' || has_exited($run->{pid}) || time > $deadline;
		requests($line, slurp('port') =~ s/\s//gr) if -s 'port';
		kill 'TERM', $run->{pid};
	}
	$run = finish($run);
	$run->{left} = left_running();
	$run->{files} = files_now();
	$run->{shared} = slurp($shared);
	chdir $home;
	return $run;
}

# Processes of the run, gnuplot's included, that do not end; they are killed.
sub left_running {
	my $deadline = time + 15;
	my @left;

	while (1) {
		@left = grep { !has_exited($_)
			&& (slurp("/proc/$_/environ") // '') =~ /INJECT=\Q$shared\E\0/ }
			map { m,/proc/(\d+), } glob '/proc/[0-9]*';
		return 0 if !@left;
		last if time > $deadline;
		sleep 0.02;
	}
	kill 'KILL', @left;
	return scalar @left;
}

sub points_of {
	my ($bytes) = @_;
	my @points;

	for (my $i = 0; $i < POINTS_MAX; $i++) {
		my ($key, $kind, $count, @at) =
			unpack 'Q7', substr $bytes, POINT_AT + $i * POINT_BYTES, POINT_BYTES;
		push @points, { key => sprintf('%x', $key), kind => $kind, count => $count, at => \@at }
			if $key;
	}
	return sort { $a->{key} cmp $b->{key} } @points;
}

# ---- Judging ----

my %ends = (svg => qr,</svg>\s*\z,, html => qr,</html>\s*\z,i, png => qr/IEND.{4}\z/s, csv => qr/\n\z/,
	md => qr/\n\z/, yaml => qr/\n\z/);

# Why a file is not whole; undef: it is, as far as its kind can say.
sub not_whole {
	my ($name, $text, $status) = @_;

	return 'is half of JSON' if $name =~ /\.json$/ && !eval { $strict->decode($text); 1 };
	if ($name =~ /\.jsonl$/) {
		for (grep { /\S/ } split /\n/, $text) {
			return 'has a line that is not JSON' if !eval { $strict->decode($_); 1 };
		}
	}
	if ($name =~ /\.(\w+)$/ && $ends{$1}) { return 'is cut off' if $text !~ $ends{$1} }
	if ($name =~ /\.db$/ && ($text ne '' || $status eq '0')) {
		my $r = run(command => [$program, qw(store check --store), "sqlite:$work/$name"]);
		# Of a store that was being made there is an empty file, which the next one who writes fills.
		return "is not whole: $r->{status} $r->{out}$r->{err}" if $r->{status} ne '0'
			&& ($status eq '0' || $r->{err} !~ /no such table: migrations/);
	}
	if ($name =~ /\.rec$/) {
		my $r = run(command => [$program, qw(bench score), "$work/$name"]);
		# A record that was being written breaks off, which is said when it is read.
		return "is not whole: $r->{err}" if $r->{out} !~ /Benchmark Result/
			|| ($status eq '0' && $r->{err} =~ /breaks off/);
	}
	return undef;
}

# What the program says of something that it can do without.
sub is_warned { return $_[0] =~ /^(?:WARNING: .*|note: )(?:cannot|[Ff]ailed)/m }

# Not compared: files that say what happened, or when, or that are made from the store when missing.
sub is_log
{
	return $_[0] =~ /\.(?:index|log|err|out|pid|lock|stderr|stdout|part\d*)$|-(?:wal|shm|journal)$/
		|| $_[0] eq 'port';
}

sub masked { return $_[0] =~ s/\d+/#/gr }
# Without times, and whether something was in the cache.
sub untimed { return $_[0] =~ s/[\d.]+ (?:s|ms|us)\b/#/gr =~ s/^.*\bcache.*\n//gmr }

# Why what the run did is wrong.
sub complaints {
	my ($line, $run, $clean) = @_;
	my ($status, $is_known) = ($run->{status}, $clean->{is_same} && $line !~ /^~/);
	my (@why, %is_there);

	return ('sanitizer') if $status eq 'sanitizer' || $status eq '99';
	return ("ended by $status") if $status =~ /signal|timeout/ && $status ne $clean->{status};
	return ('assertion') if $run->{err} =~ /Assertion/;
	push @why, "exit status $status" if $status !~ /^[0-3]$/ && $status ne $clean->{status};
	push @why, "$run->{left} left running" if $run->{left};
	push @why, 'says nothing' if $status ne '0' && $status ne $clean->{status}
		&& $run->{err} !~ /^(?:profllm|ERROR|WARNING)\b[^\n]*: ?\S[^\n]*\n/m
		&& ($run->{out} eq '' || $run->{out} eq $clean->{out});
	for my $name (sort keys %{$run->{files}}) {
		my $text = $run->{files}{$name};
		my $was = $clean->{before}{$name};

		$is_there{masked($name)} = 1;
		push @why, "leaves $name" if $name =~ m,(?:^|/)\.profllm-|\.tmp$,;
		next if is_log($name) || (defined $was && $was eq $text);
		next if defined $clean->{files}{$name} && $clean->{files}{$name} eq $text;
		my $why = not_whole($name, $text, $status);
		push @why, "$name $why" if $why;
		push @why, "$name differs" if !$why && $is_known && defined $clean->{files}{$name}
			&& $name !~ /\.db$/;
	}
	# One that was put aside under another name is there.
	my %texts = map { $_ => 1 } values %{$run->{files}};
	for (sort keys %{$clean->{before}}) {
		push @why, "$_ is gone" if !defined $run->{files}{$_} && defined $clean->{files}{$_}
			&& !is_log($_) && !$texts{$clean->{before}{$_}};
	}
	return @why if $status ne '0' || $clean->{status} ne '0';
	for (sort keys %{$clean->{files}}) {
		push @why, "succeeds without $_" if !$is_there{masked($_)} && !is_log($_)
			&& !is_warned($run->{err});
	}
	push @why, 'succeeds with another output'
		if $is_known && untimed($run->{out}) ne untimed($clean->{out})
		&& !is_warned("$run->{err}\n$run->{out}");
	push @why, 'succeeds without output' if $clean->{out} ne '' && $run->{out} eq '';
	return @why;
}

# What two runs of these have in common is chance.
my $measures = qr/^(?:~?@|run .*--output|bench (?!serve .*--dry-run|score|compare|plot|markdown|sweep p))/;

# Two runs in which nothing fails: what is the same in both must be the same in all.
sub look {
	my ($line) = @_;
	my ($first, $second) = (execute($line), execute($line));

	fresh($line);
	$first->{before} = files_now();
	chdir $home;
	$first->{is_same} = $line !~ $measures && untimed($first->{out}) eq untimed($second->{out})
		&& keys %{$first->{files}} == keys %{$second->{files}}
		&& !grep { ($second->{files}{$_} // '') ne $first->{files}{$_} && !/\.db/ }
			keys %{$first->{files}};
	return $first;
}

sub place {
	my ($point) = @_;
	my @at = map { sprintf '%x', $_ - 1 } grep { $_ && !($_ >> 63) } @{$point->{at}};
	return 'a library' unless @at;
	my @lines = `addr2line -s -f -p -e '$tortured' @at`;

	chomp @lines;
	return join ' < ', map { s/ at / /r } @lines;
}

sub report {
	my ($line, $run, $point, $how, $nth, @why) = @_;
	my $error = $point ? $errors[$point->{kind}] : '';
	my $where = $point ? place($point) : 'short reads and writes';
	my $what = join '; ', @why;

	$sum{findings}++;
	return if $found{"$what $where"}++;
	printf "FOUND %s\n  %s\n  %s: %s\n", $what, $line, $point ? $kinds[$point->{kind}] : 'all', $where;
	printf "  again: --only '%s' --repeat '%s %d %d'\n", quotemeta $line, $point->{key}, $nth, $how
		if $point;
	my $err = $run->{err};
	print map { "    $_\n" } grep { defined }
		(split /\n/, $err)[0 .. ($err =~ /Sanitizer|runtime/ ? 12 : 3)];
	return;
}

sub attempt {
	my ($line, $clean, $point, $nth, $how) = @_;
	my $run = execute($line, INJECT_POINT => $point->{key}, INJECT_NTH => $nth, INJECT_HOW => $how);
	my ($fired) = unpack 'Q', substr $run->{shared}, FIRED_AT, 8;
	my @why = complaints($line, $run, $clean);

	if (@why) {
		my $place = place($point);
		# What the machine does not say of itself is no row of the table.
		@why = grep { !/benchmark_results\.md differs$/ } @why
			if $place =~ /^count_numbered |< cpu_brand /;
	}
	$sum{tries}++;
	$sum{fired}++ if $fired;
	$of_kind{$kinds[$point->{kind}]}[1]++ if $fired;
	report($line, $run, $point, $how, $nth, @why) if @why;
	printf "  %s %s\n%s%s", $run->{status}, "@why", $run->{err}, $run->{out} if $o{repeat};
}

sub torture {
	my ($line) = @_;
	my $clean = look($line);
	my @points = points_of($clean->{shared});
	my @tries;

	if ($clean->{status} !~ /^[0-3]$/ || $clean->{left}) {
		print "FOUND without any failure: $line: $clean->{status}\n$clean->{err}";
		$sum{findings}++;
		return;
	}
	printf "%s -> %s, %d points%s\n", $line, $clean->{status}, scalar @points,
		$clean->{is_same} ? '' : ', varies' if $o{verbose};
	for my $p (@points) {
		$reached{$p->{key}} = 1;
		$sum{calls} += $p->{count};
		$of_kind{$kinds[$p->{kind}]}[0] += $p->{count};
		push @tries, map { [$p, $_] } 0 .. $errors[$p->{kind}] - 1;
	}
	$sum{points} += @points;
	if ($o{repeat}) {
		my ($key, $nth, $how) = split ' ', $o{repeat};
		my ($p) = grep { $_->{key} eq $key } @points;
		$p //= { key => $key, kind => 0, at => [], count => 1 };
		return attempt($line, $clean, $p, $nth, $how);
	}
	my $run = execute($line, INJECT_SHORT => $o{seed});
	my @why = complaints($line, $run, $clean);
	# Short reads cost time, of which a verdict speaks.
	push @why, "exit status $run->{status}, not $clean->{status}"
		if $run->{status} ne $clean->{status} && !($run->{status} eq '3' && $line =~ /--strict/);
	$sum{cut} += unpack 'Q', substr $run->{shared}, POINT_AT - 8, 8;
	report($line, $run, undef, 0, 0, @why) if @why;
	@tries = grep { !$tried{"$_->[0]{key} $_->[1]"} } @tries if $o{new};
	# New ones first, then any.
	@tries = map { $_->[1] } sort { $a->[0] <=> $b->[0] }
		map { [rand() + ($tried{"$_->[0]{key} $_->[1]"} // 0), $_] } @tries;
	for (grep { defined } @tries[0 .. $o{points} - 1]) {
		my ($p, $how) = @$_;
		attempt($line, $clean, $p, rand() < 0.5 ? 1 : 1 + int rand $p->{count}, $how);
		$tried{"$p->{key} $how"}++;
	}
}

for (split /\n/, `INJECT_LIST=1 '$tortured'`) {
	my ($name, $n) = split ' ';
	push @kinds, $name;
	push @errors, $n;
}
prepare();
my @lines = grep { /$o{only}/ } lines();
my ($part, $parts) = $o{part} =~ m,^(\d+)/(\d+)$,;
@lines = map { $lines[$_] } grep { $_ % $parts == $part - 1 } 0 .. $#lines;
$| = 1;
for my $line (@lines) {
	last if time - $began > $o{seconds};
	$sum{lines}++;
	torture($line);
}
my %points_tried = map { (split ' ')[0] => 1 } keys %tried;
printf "%-8s %10s calls %6s failed\n", $_, $of_kind{$_}[0] // 0, $of_kind{$_}[1] // 0 for @kinds;
printf "%d of %d command lines, %d calls at %d points (%d different, %d of them tried), %d tries, "
	. "%d calls failed, %d reads and writes cut short, %d findings (%d different), %d s\n",
	$sum{lines} // 0, scalar @lines, $sum{calls} // 0, $sum{points} // 0, scalar keys %reached,
	scalar keys %points_tried, $sum{tries} // 0, $sum{fired} // 0, $sum{cut} // 0, $sum{findings} // 0,
	scalar keys %found, time - $began;
exit(($sum{findings} // 0) > 0);
