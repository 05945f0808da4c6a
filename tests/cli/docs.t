#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Every command of the pages works: each `sh` block of README.md, docs/guide/ and the pages in @first is
# run in an empty folder and must exit with 0. A line `<!-- not run: reason -->` before a block exempts it.
# Each row of a table of docs/how-to.md is run too, unless such a comment is in its cell: a cell with
# options continues the page's first block. DOCS=PATTERN runs the pages whose names match; unless given
# those of docs/guide/ from a to o; docs-last.t runs those from p, docs-first.t all others.
#
# The folder has sharegpt.json and prompts.jsonl; `profllm` there is a small script that replaces port
# 8000 by a running simulator's and ends a `profllm sim` that has proved able to start, unless it is a
# sweep's server. Ports from 8100 to 8199 are replaced by ones that no other test uses.
# suite: first
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Temp ();
use JSON::PP ();
use FindBin;
use lib $FindBin::Bin;
use Ports;
use Test::More;

my $root = abs_path("$FindBin::Bin/../..");
my $program = abs_path($ENV{PROFLLM} || "$root/build/profllm");
my $dir = File::Temp->newdir;
my %port_of; # by the last two digits of those of the pages

sub slurp
{
	my ($path) = @_;
	open(my $f, '<:raw', $path) or return '';
	local $/;
	return scalar <$f>;
}

sub spill
{
	my ($path, $text) = @_;
	open(my $f, '>:raw', $path) or die "$path: $!";
	print $f $text;
	close($f) or die "$path: $!";
}

delete @ENV{grep { /_proxy$/i || $_ eq 'OPENAI_API_KEY' } keys %ENV};
my $pid = fork();
if (!$pid) {
	open(STDOUT, '>', "$dir/sim.log");
	open(STDERR, '>&', \*STDOUT);
	exec($program, 'sim', '--port', '0', '--port-file', "$dir/port", '--model', 'demo',
		'--ttft-ms', '5', '--itl-ms', '1') or exit(127);
}
END { my $status = $?; kill('KILL', $pid) if $pid; $? = $status }
for (1 .. 600) {
	last if -s "$dir/port";
	select(undef, undef, undef, 0.05);
}
my $port = slurp("$dir/port");
$port =~ s/\s//g;
$port or die('no simulator: ' . slurp("$dir/sim.log"));

mkdir("$dir/bin") or die;
mkdir("$dir/home") or die;
spill("$dir/bin/profllm", <<"END");
#!/usr/bin/env bash
[ -z "\$PROFLLM_KEPT" ] || exec $program "\$@" # a sweep's own server
args=("\${\@//8000/$port}")
case "\$1 \$2" in
"sim "*) # --help and the like end by themselves; a server is told to after a second
	[[ " \$* " == *" --explain "* ]] && exec $program "\${args[\@]}"
	[[ " \$* " == *" --port "* || " \$* " == *" --uds "* ]] || args+=(--port 0)
	exec timeout --preserve-status -s TERM 1 $program "\${args[\@]}" ;;
"bench serve"|"bench structured-output")
	[[ " \$* " == *" --port"* || " \$* " == *" --base-url"* ]] || args+=(--port $port) ;;
esac
exec $program "\${args[\@]}"
END
chmod(0755, "$dir/bin/profllm");

my (@exchange, @row);
for my $i (1 .. 40) {
	push(@exchange, qq({"conversations": [{"from": "human", "value": "What is the use of number $i?"},)
		. qq( {"from": "gpt", "value": "It follows the number before and precedes the next one."}]}));
	push(@row, qq({"prompt": "Tell me something about the number $i.", "output_tokens": 8}\n));
}
spill("$dir/sharegpt.json", '[' . join(",\n", @exchange) . ']');
spill("$dir/prompts.jsonl", join('', @row));
symlink("$root/examples", "$dir/examples") or die;

$ENV{PATH} = "$dir/bin:$ENV{PATH}";
$ENV{HOME} = "$dir/home";
my @first = map { "$root/$_" } qw(README.md docs/tutorial.md docs/how-to.md docs/migrating.md
	docs/operate.md);
for my $page (@first, sort(glob("$root/docs/guide/*.md"))) {
	my ($name) = $page =~ m,^\Q$root\E/(.*),;
	next if $name !~ ($ENV{DOCS} // '^docs/guide/[a-o]');
	next if $name eq 'docs/guide/plots.md' && ($ENV{WEB} // '1') eq '0';
	my ($block, $start, $exempt, $line, $base) = (undef, 0, 0, 0);

	for (split(/\n/, slurp($page))) {
		$line++;
		if (!defined($block) && /^\s*```sh$/) {
			($block, $start) = ('', $line);
		} elsif (defined($block) && /^\s*```$/) {
			run("$name:$start", $block) unless $exempt;
			$base //= $block;
			($block, $exempt) = (undef, 0);
		} elsif (defined($block)) {
			$block .= "$_\n";
		} elsif ($name eq 'docs/how-to.md' && /^\| [^|]*\? \| (.*?) \| .*\|$/) {
			run("$name:$line", command_of_cell($1, $base)) unless $1 =~ /<!-- not run: \S.* -->/;
		} elsif (/\S/) {
			$exempt = /^<!-- not run: \S.* -->$/;
		}
	}
}
# The demo asks what the pages say; whatever is written there, it is JSON in the end.
my $asked = `cd '$root' && cat *.md docs/*.md docs/guide/*.md | awk -f tools/sharegpt.awk`;
my $list = eval { JSON::PP->new->utf8->decode($asked) };
ok($list && @$list > 100, 'the pages as conversations') or diag($@);
done_testing();

# What a cell of docs/how-to.md says: a command, or options to add to the page's first one.
sub command_of_cell
{
	my ($cell, $base) = @_;
	my ($code) = $cell =~ /^`([^`]+)`$/ or return "echo 'not one command: $cell'; false\n";

	chomp($base);
	return $code =~ /^--/ ? "$base $code\n" : "$code\n";
}

# A free port in whose digits the wrapper finds no 8000.
sub other_port
{
	my $free;

	do { $free = free_port() } while $free =~ /8000/;
	return $free;
}

sub run
{
	my ($name, $text, $tries) = (@_, 3);

	# The runs of the first pages are shortened, but for those that need their number to decide.
	$text =~ s/(--num-prompts) \d{3,}/$1 100/g if $name !~ m,docs/guide/, && $text !~ /--slo/;
	$text =~ s{--port 81(\d\d)\b}{'--port ' . ($port_of{$1} //= other_port())}ge;
	# What it leaves running goes with it; a pipe would wait for that.
	spill("$dir/block", "set -e\ncd '$dir'\ntrap 'kill \$(jobs -p) 2>/dev/null || :' EXIT\n$text");
	my $status = system("timeout 60 bash '$dir/block' >'$dir/block.out' 2>&1 </dev/null") >> 8;
	my $out = slurp("$dir/block.out");

	# On a machine that is too busy a search says that a level could not be measured.
	if ($status && $tries > 1 && $out =~ /does not count \(delete it/) {
		diag("$name: measured again, because a run was INVALID");
		$text =~ s/ -e (\S+)/ -e $1-again/;
		return run($name, $text, $tries - 1);
	}
	# A busy machine may carry less than a page asks about: that is an answer, too.
	$status = 0 if $status == 3 && $text =~ /--slo/ && $out =~ m,requests/s .* within the limits,;
	is($status, 0, $name) or diag($text, substr($out, -20000));
}
