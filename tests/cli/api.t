#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# What the dashboard's API says of runs that are known: totals, pages, facets, statistics and exports
# of random filters against a brute-force reference, tags of answers, versions, wrong requests.
use strict;
use warnings;
use lib do { require FindBin; $FindBin::Bin };
use Cli;
use Dash;
use List::Util qw(max min shuffle sum);
use Test::More;

use constant { RUNS => 300, FILTERS => 120 };

srand(20261122);
my $d = start_dashboard();
my ($true, $false) = (JSON::PP::true, JSON::PP::false);

# ---- runs ----

# Documents as `bench serve` writes them, and the cells they are to become.
my @models = ('meta/Llama-3-8B', '=SUM(A1:A9)', "M\x{fc}nchen-7B", 'a,b "c"', '@risk', "two\nlines");
my @notes = ('Nightly RUN', 'nightly', '+1 better', '-2', "\tTab", 'plain', 'Stra\x{df}e');

sub pick { return $_[int rand @_] }

sub make_run {
	my ($i) = @_;
	my %cell = ('server.model' => pick(@models), run => $i);
	my %doc = (model_id => $cell{'server.model'}, date => sprintf('20260101-%02d%02d%02d',
		$i / 3600, $i / 60 % 60, $i % 60));

	$cell{'benchmark.request_rate'} = pick('inf', 1, 2.5, 10, 10, 1e3);
	$doc{request_rate} = $cell{'benchmark.request_rate'} eq 'inf' ? 'inf'
		: $cell{'benchmark.request_rate'} + 0;
	if (rand() < 0.8) { # null, a number, or not there
		$cell{'benchmark.max_concurrency'} = pick(undef, 1, 8, 64, 256);
		$doc{max_concurrency} = $cell{'benchmark.max_concurrency'};
	}
	if (rand() < 0.7) {
		$cell{'server.enable_prefix_caching'} = pick($true, $false);
		$doc{enable_prefix_caching} = $cell{'server.enable_prefix_caching'};
	}
	$cell{'server.tensor_parallel_size'} = $doc{tensor_parallel_size} = pick(1, 2, 4, 8);
	$cell{'tags.note'} = $doc{note} = pick(@notes) if rand() < 0.6;
	$cell{request_throughput} = $doc{request_throughput} = int(rand() * 1e6) / 1e4;
	$cell{output_throughput} = $doc{output_throughput} = int(rand() * 1e9) / 1e5 if rand() < 0.9;
	$cell{median_ttft_ms} = $doc{median_ttft_ms} = rand() < 0.1 ? undef : int(rand() * 1e9) / 1e6;
	$cell{completed} = $doc{completed} = 10 * int rand 40;
	$cell{failed} = $doc{failed} = $i % 7 ? 0 : int rand 5;
	delete $cell{run};
	return { doc => \%doc, cell => \%cell };
}

my @runs = map { make_run($_) } 1 .. RUNS;
my $half = RUNS / 2;

sub upload {
	my (@some) = @_;
	my $r = ask($d, POST => '/api/upload/raw?name=known.jsonl',
		join "\n", map { json_text($_->{doc}) } @some);

	return unless is($r->{status}, 201, 'upload') or diag($r->{content});
	is(scalar(grep { $_->{outcome} eq 'new' } @{$r->{json}{results}}), scalar @some, 'all are new');
	$some[$_]{id} = $r->{json}{results}[$_]{id} for 0 .. $#some;
	return $r->{json};
}

my $empty = ask($d, GET => '/api/filters/options');
is($empty->{status}, 200, 'options of an empty store');
is_deeply([@{$empty->{json}}{qw(total runs items next)}], [0, 0, [], undef], '... are none');
upload(@runs[0 .. $half - 1]);
my $seen = ask($d, GET => '/api/data/experiments?limit=3');
is($seen->{json}{total}, $half, 'half of them are there');
upload(@runs[$half .. RUNS - 1]);

# ---- the reference ----

my @columns = qw(server.model benchmark.request_rate benchmark.max_concurrency
	server.enable_prefix_caching server.tensor_parallel_size tags.note request_throughput
	output_throughput median_ttft_ms completed failed);

sub is_missing { return !defined $_[0] }
sub is_bool { return ref $_[0] eq 'JSON::PP::Boolean' }
sub is_number { return defined $_[0] && !ref $_[0] && ($_[0] eq 'inf' || $_[0] =~ /^-?[\d.]+(e[-+]?\d+)?$/i) }
sub num { return $_[0] eq 'inf' ? 9 ** 9 ** 9 : $_[0] + 0 }

# Absent and null, false, true, numbers, texts: the kind's place and what is compared within it.
sub order_of {
	my ($v, $column) = @_;

	return (0, 0) if is_missing($v);
	return (1, $v ? 1 : 0) if is_bool($v);
	return (2, num($v)) if is_number_of($v, $column);
	utf8::encode(my $bytes = $v);
	return (3, $bytes);
}

# Which columns hold texts is known; "-2" is a text there.
sub is_number_of { return $_[1] !~ /model|note/ && is_number($_[0]) }

# Same values have the same.
sub key_of {
	my ($kind, $v) = order_of(@_);

	return $kind == 3 ? $v : sprintf '%d %.17g', $kind, $v;
}

sub compare {
	my ($a, $b, $column) = @_;
	my ($ka, $va) = order_of($a, $column);
	my ($kb, $vb) = order_of($b, $column);

	return $ka <=> $kb if $ka != $kb;
	return $ka == 3 ? $va cmp $vb : $va <=> $vb;
}

sub lower { (my $t = $_[0]) =~ tr/A-Z/a-z/; return $t }

sub holds {
	my ($f, $run) = @_;

	if ($f->{and}) { for (@{$f->{and}}) { return 0 unless holds($_, $run) } return 1 }
	if ($f->{or}) { for (@{$f->{or}}) { return 1 if holds($_, $run) } return 0 }
	return !holds($f->{not}, $run) if $f->{not};
	my $v = $run->{cell}{$f->{column}};
	if ($f->{in}) {
		for my $w (@{$f->{in}}) {
			return 1 if is_missing($w) ? is_missing($v)
				: !is_missing($v) && compare($v, $w, $f->{column}) == 0;
		}
		return 0;
	}
	if ($f->{range}) {
		return 0 unless is_number_of($v, $f->{column});
		return (!defined $f->{range}{min} || num($v) >= num($f->{range}{min}))
			&& (!defined $f->{range}{max} || num($v) <= num($f->{range}{max}));
	}
	if (defined $f->{text}) {
		my @texts = $f->{column} eq '*' ? map { $run->{cell}{$_} } qw(server.model tags.note) : $v;
		for (@texts) {
			next if !defined || is_bool($_);
			next if $f->{column} ne '*' && is_number_of($_, $f->{column});
			return 1 if index(lower($_), lower($f->{text})) >= 0;
		}
		return 0;
	}
	return is_missing($v) == ($f->{missing} ? 1 : 0);
}

sub is_about {
	my ($f, $column) = @_;
	my $parts = $f->{and} // $f->{or} // ($f->{not} ? [$f->{not}] : undef);

	return $f->{column} eq $column unless $parts;
	return @$parts && !grep { !is_about($_, $column) } @$parts;
}

sub without {
	my ($f, $column) = @_;

	return { and => [grep { !is_about($_, $column) } $f->{and} ? @{$f->{and}} : ($f)] };
}

sub random_filter {
	my ($depth) = @_;
	my $kind = $depth ? int rand 8 : 3 + int rand 5;
	my $column = pick(@columns);

	return { and => [map { random_filter($depth - 1) } 1 .. int rand 4] } if $kind == 0;
	return { or => [map { random_filter($depth - 1) } 1 .. int rand 4] } if $kind == 1;
	return { not => random_filter($depth - 1) } if $kind == 2;
	if ($kind <= 4) {
		my @values = map { $_->{cell}{$column} } map { pick(@runs) } 1 .. 1 + int rand 3;
		push @values, undef if rand() < 0.2;
		return { column => $column, in => \@values };
	}
	if ($kind == 5) {
		$column = pick(grep { !/model|note|caching/ } @columns); # only numbers have a range
		my @ends = sort { $a <=> $b } map { pick(0, 1, 2.5, 8, 10, 64, 300, 1000, rand 1000) } 1, 2;
		my %range = (min => $ends[0], max => $ends[1]);
		delete $range{pick('min', 'max')} if rand() < 0.4;
		$range{max} = 'inf' if rand() < 0.1;
		return { column => $column, range => \%range };
	}
	return { column => '*', text => pick('NIGHT', "\x{fc}", 'zzz', '=sum', '+') }
		if $kind == 6 && rand() < 0.3;
	return { column => pick('server.model', 'tags.note'),
		text => pick('a', 'NIGHT', '7b', '+', "\x{fc}", 'zzz', '=sum', ' ') } if $kind == 6;
	# The schemas know the second one, no run has it.
	return { column => pick($column, 'server.quantization'), missing => pick($true, $false) };
}

# ---- comparing ----

my @wrong;
sub check { my ($is, $what) = @_; push @wrong, $what unless $is; return $is }

sub same_value { my ($a, $b, $column) = @_; return compare($a, $b, $column) == 0 }

sub sorted {
	my ($matching, @sort) = @_;

	return sort {
		my $c = 0;
		for my $s (@sort) {
			my ($x, $y) = map { $_->{cell}{$s->{column}} } $a, $b;
			$c = is_missing($x) <=> is_missing($y) || (is_missing($x) ? 0
				: compare($x, $y, $s->{column}) * ($s->{descending} ? -1 : 1));
			last if $c;
		}
		$c || $b->{id} <=> $a->{id};
	} @$matching;
}

# Member by member; the cells that are there are those of the document.
sub check_row {
	my ($got, $run, $columns) = @_;

	check($got->{id} == $run->{id}, "row $got->{id} where $run->{id} was expected") or return;
	for my $c (@$columns) {
		check(exists $got->{values}{$c} == exists $run->{cell}{$c}
			&& same_value($got->{values}{$c}, $run->{cell}{$c}, $c), "run $run->{id}: $c");
	}
}

sub check_facet {
	my ($got, $filter) = @_;
	my $column = $got->{column};
	my $others = without($filter, $column);
	my @rows = grep { holds($others, $_) } @runs;
	my (%count, $missing);

	for my $run (@rows) {
		my $v = $run->{cell}{$column};
		if (is_missing($v)) { $missing++ } else { $count{key_of($v, $column)}++ }
	}
	check($got->{missing} == ($missing // 0), "$column: missing");
	check($got->{distinct} == keys %count, "$column: distinct");
	for my $l (@{$got->{values}}) {
		my $n = delete $count{key_of($l->{value}, $column)} // 0;
		check($l->{count} == $n, "$column: $l->{count} and not $n runs of a value");
	}
	check($got->{others} == (sum(values %count) // 0), "$column: others");
	check(!%count || min(map { $_->{count} } grep { !$_->{selected} } @{$got->{values}})
		>= max(values %count), "$column: the most frequent ones are listed");
	return unless $got->{histogram};
	my @numbers = grep { is_number_of($_, $column) && $_ ne 'inf' } map { $_->{cell}{$column} } @rows;
	check(sum(map { $_->{count} } @{$got->{histogram}}) == @numbers, "$column: rows of the histogram");
	check($got->{min} == min(@numbers) && $got->{max} == max(@numbers), "$column: ends");
}

sub percentile {
	my ($p, @x) = @_;
	my $at = $p / 100 * $#x;
	my $low = int $at;

	return $low == $#x ? $x[-1] : $x[$low] + ($x[$low + 1] - $x[$low]) * ($at - $low);
}

sub near { my ($a, $b) = @_; return abs($a - $b) <= 1e-9 * max(1, abs $a, abs $b) }

sub check_statistic {
	my ($got, $matching) = @_;
	my @x = sort { $a <=> $b } grep { is_number_of($_, $got->{column}) && $_ ne 'inf' }
		map { $_->{cell}{$got->{column}} } @$matching;

	check($got->{count} == @x && $got->{missing} == @$matching - @x, "$got->{column}: count");
	if (!@x) {
		check(!defined $got->{$_}, "$got->{column}: $_ of nothing") for qw(min mean std p99);
		return;
	}
	my $mean = sum(@x) / @x;
	my %want = (min => $x[0], max => $x[-1], mean => $mean,
		std => sqrt(sum(map { ($_ - $mean) ** 2 } @x) / @x),
		map { ("p$_" => percentile($_, @x)) } 50, 90, 95, 99);
	check(near($got->{$_}, $want{$_}), "$got->{column}: $_ $got->{$_} and not $want{$_}")
		for sort keys %want;
}

sub one_filter {
	my ($n) = @_;
	my $filter = random_filter(3);
	my @matching = grep { holds($filter, $_) } @runs;
	my @sort = map { { column => pick(@columns), descending => pick($true, $false) } } 1 .. int rand 3;
	my $limit = 1 + int rand 40;
	my @facets = (shuffle @columns)[0 .. 4];
	my $r = ask($d, POST => '/api/filters/apply', { filter => $filter, sort => \@sort,
		limit => $limit, columns => \@columns, facets => \@facets, facet_values => pick(3, 50),
		statistics => [qw(median_ttft_ms output_throughput benchmark.request_rate)] });

	@wrong = ();
	if (check($r->{status} == 200, "status $r->{status}")) {
		check($r->{json}{total} == @matching, 'total ' . $r->{json}{total} . ' and not ' . @matching);
		my @page = splice @{[sorted(\@matching, @sort)]}, 0, $limit;
		check(@{$r->{json}{items}} == @page, 'rows of the page');
		check_row($r->{json}{items}[$_], $page[$_], \@columns) for 0 .. min($#page,
			$#{$r->{json}{items}});
		check(defined $r->{json}{next} == (@matching > $limit), 'whether there is another page');
		check_facet($_, $filter) for @{$r->{json}{facets}};
		check_statistic($_, \@matching) for @{$r->{json}{statistics}};
		check(join(',', map { $_->{column} } @{$r->{json}{facets}}) eq join(',', @facets), 'facets');
	}
	return 1 unless @wrong;
	diag("filter $n: " . json_text($filter), ' sort ' . json_text(\@sort), "\n", join "\n", @wrong);
	return 0;
}

my $right = 0;
$right += one_filter($_) for 1 .. FILTERS;
is($right, FILTERS, 'random filters: total, page, facets and statistics are those of the reference');

# ---- pages ----

sub walk {
	my (%o) = @_;
	my ($cursor, @ids);

	do {
		my $r = ask($d, POST => '/api/filters/apply', { limit => 7, columns => [], %o,
			cursor => $cursor });
		return ("status $r->{status}: $r->{content}") if $r->{status} != 200;
		push @ids, map { $_->{id} } @{$r->{json}{items}};
		$cursor = $r->{json}{next};
	} while (defined $cursor && @ids <= 2 * RUNS);
	return @ids;
}

for my $sort ([], [{ column => 'benchmark.max_concurrency', descending => $true }],
	[{ column => 'tags.note' }, { column => 'median_ttft_ms', descending => $true }]) {
	is(join(',', walk(sort => $sort)), join(',', map { $_->{id} } sorted(\@runs, @$sort)),
		'pages one after the other: ' . json_text($sort));
}
my $list = ask($d, GET => '/api/data/experiments?limit=10000&sort=-request_throughput,tags.note'
	. '&columns=tags.note,request_throughput&filter=%7B%22column%22:%22failed%22,%22in%22:%5B0%5D%7D');
my @zero = sorted([grep { $_->{cell}{failed} == 0 } @runs], { column => 'request_throughput',
	descending => $true }, { column => 'tags.note' });
is_deeply([map { $_->{id} } @{$list->{json}{items}}], [map { $_->{id} } @zero],
	'a list by GET is the same');
is_deeply($list->{json}{columns}, [qw(tags.note request_throughput)], '... with those columns');

# ---- summary, options ----

my $failing = { column => 'failed', range => { min => 1 } };
my @failing = grep { holds($failing, $_) } @runs;
my $summary = ask($d, POST => '/api/data/summary', { filter => $failing, statistics => ['completed'] });
is($summary->{json}{total}, scalar @failing, 'summary: total');
@wrong = ();
check_statistic($summary->{json}{statistics}[0], \@failing);
is("@wrong", '', 'summary: statistics');
my $options = ask($d, GET => '/api/filters/options?facet_values=1000');
my %option = map { $_->{column} => $_ } @{$options->{json}{items}};
is($options->{json}{runs}, RUNS, 'options: runs');
is($options->{json}{total}, scalar @{$options->{json}{items}}, 'options: columns');
@wrong = ();
for my $column (@columns) {
	my $o = $option{$column} or do { check(0, "no option $column"); next };
	check_facet({ others => 0, values => [], %$o }, { and => [] }) if $o->{values};
}
is("@wrong", '', 'options: counts of every value');
is_deeply([map { $option{$_}{kind} } qw(server.model benchmark.request_rate
	server.enable_prefix_caching)], [qw(text number bool)], 'options: kinds');
is_deeply([map { $option{$_}{is_constant} ? 1 : 0 } qw(mode source server.model failed)], [1, 1, 0, 0],
	'options: constants');
is_deeply([@{$option{median_ttft_ms}}{qw(group unit better label)}],
	['metric', 'ms', 'lower', 'Median TTFT'], 'options: names');
my $auto = ask($d, POST => '/api/filters/apply', { facets => 'auto', limit => 0 });
my %auto = map { $_->{column} => 1 } @{$auto->{json}{facets}};
ok($auto{'server.model'} && $auto{'benchmark.request_rate'} && !$auto{mode} && keys %auto <= 30,
	'facets chosen by themselves split, and are none that are constant');

# ---- export ----

sub csv_of {
	my ($text) = @_;
	my @lines;

	while (length $text) {
		my @cells;
		while (1) {
			$text =~ s/\A(?:"((?:[^"]|"")*)"|([^,\r\n"]*))(,|\r\n)// or return ['bad CSV'];
			my ($quoted, $plain, $end) = ($1, $2, $3);
			$quoted =~ s/""/"/g if defined $quoted;
			push @cells, $quoted // $plain;
			last if $end ne ',';
		}
		push @lines, \@cells;
	}
	return @lines;
}

sub csv_cell {
	my ($v, $column, $is_there) = @_;

	return $is_there ? 'null' : '' if is_missing($v);
	return $v ? 'true' : 'false' if is_bool($v);
	return $v if is_number_of($v, $column);
	utf8::encode(my $bytes = $v);
	return $bytes =~ /^[=+\-@\t\r]/ ? "'$bytes" : $bytes;
}

my $csv = ask($d, POST => '/api/export/csv', { columns => \@columns, sort => [{ column => 'completed' }] });
is($csv->{status}, 200, 'export');
like($csv->{headers}{'content-type'}, qr{^text/csv}, 'as CSV');
like($csv->{headers}{'content-disposition'}, qr/^attachment; filename="?runs\.csv/, 'as a file');
my @lines = csv_of($csv->{content});
is_deeply(shift @lines, \@columns, 'its first line has the names');
my @order = sorted(\@runs, { column => 'completed' });
is(scalar @lines, RUNS, 'a line for each run');
my @bad = grep {
	my $i = $_;
	grep { my $want = csv_cell($order[$i]{cell}{$columns[$_]}, $columns[$_],
		exists $order[$i]{cell}{$columns[$_]});
		is_number($want) && $columns[$_] !~ /model|note/ ? num($lines[$i][$_]) != num($want)
			: $lines[$i][$_] ne $want } 0 .. $#columns;
} 0 .. $#order;
is("@bad", '', 'every cell is the run\'s, and no text is a formula');
ok($csv->{content} =~ /,'\+1 better,|"'=SUM/ || $csv->{content} =~ /'=SUM/, 'formulas are guarded');
my $jsonl = ask($d, GET => '/api/export/csv?format=jsonl&columns=%5B%22server.model%22,%22failed%22%5D'
	. '&limit=13&sort=-failed');
my @json = map { json_of($_) } split /\n/, $jsonl->{content};
@order = splice @{[sorted(\@runs, { column => 'failed', descending => $true })]}, 0, 13;
is_deeply([map { [@$_{qw(id failed server.model)}] } @json], [map { [$_->{id}, $_->{cell}{failed},
	$_->{cell}{'server.model'}] } @order], 'JSON lines, as many as were requested');
my $all = ask($d, GET => '/api/export/csv');
my @names = @{(csv_of($all->{content}))[0]};
is(scalar @names, $options->{json}{total}, 'without columns: all');

sub total { return ask($d, POST => '/api/filters/apply', { limit => 0, @_ })->{json}{total} }

# ---- tags and versions ----

my $question = { filter => $failing, limit => 5 };
my $first = ask($d, POST => '/api/filters/apply', $question);
my $tag = $first->{headers}{etag};
ok($tag, 'an answer has a tag');
is(ask($d, POST => '/api/filters/apply', $question, 'If-None-Match' => $tag)->{status}, 304,
	'the same question again: not modified');
is(ask($d, POST => '/api/filters/apply', { %$question, limit => 6 }, 'If-None-Match' => $tag)->{status},
	200, 'another question has another tag');
my $late = make_run(RUNS + 1);
@{$late->{cell}}{qw(failed)} = @{$late->{doc}}{qw(failed)} = (3);
upload($late);
push @runs, $late;
my $again = ask($d, POST => '/api/filters/apply', $question, 'If-None-Match' => $tag);
is($again->{status}, 200, 'after an upload: answered anew');
cmp_ok($again->{json}{data_version}, '>', $first->{json}{data_version}, 'the data version has grown');
is($again->{json}{total}, $first->{json}{total} + 1, 'and the run counts');

# ---- walking while runs come in ----

my $from = max map { $_->{id} } @runs;
my $child = fork;
if (!$child) {
	for my $i (1 .. 40) {
		ask($d, POST => '/api/upload/raw', json_text(make_run(10_000 + $i)->{doc}));
	}
	POSIX::_exit(0);
}
my $doubles = 0;
for my $round (1 .. 8) {
	my (%seen, $lost);
	$seen{$_}++ for walk(sort => [{ column => pick(@columns), descending => pick($true, $false) }]);
	$doubles += grep { $_ > 1 } values %seen;
	$doubles += grep { !$seen{$_->{id}} } @runs;
}
waitpid $child, 0;
is($doubles, 0, 'cursors see no run twice and miss none that was there, while others come in');

# ---- wrong requests ----

for (
	['POST', '/api/filters/apply', { fitler => {} }, 400, '/fitler', 'no such member'],
	['POST', '/api/filters/apply', { filter => { column => 'a', in => 3 } }, 400, '/filter/in',
		'expected a list'],
	['POST', '/api/filters/apply', { filter => { and => [{ column => 'a', range => { min => 'x' } }] } },
		400, '/filter/and/0/range/min', 'expected a number'],
	['POST', '/api/filters/apply', { limit => -1 }, 400, '/limit', 'expected a whole number'],
	['POST', '/api/filters/apply', { limit => 1e6 }, 422, '/limit', 'QUERY_LIMIT_MAX'],
	['POST', '/api/filters/apply', { limit => 10000, columns => [('status') x 1000] }, 422, '/limit',
		'at most 500 runs with 1000 columns, or 50 columns with 10000 runs'],
	['POST', '/api/filters/apply', { sort => [{ column => '' }] }, 400, '/sort/0/column', 'name'],
	['POST', '/api/filters/apply', { shown => 'some' }, 400, '/shown', 'usual, excluded'],
	['POST', '/api/filters/apply', { cursor => 'x' }, 400, '/cursor', 'next'],
	['POST', '/api/filters/apply', { cursor => '0' x 16 . '-1', sort => [{ column => 'status' }] }, 400,
		'/cursor', 'sorted in another way'],
	['POST', '/api/filters/apply', { facets => 'many' }, 400, '/facets', 'auto'],
	['POST', '/api/filters/apply', [], 400, '', 'object'],
	['POST', '/api/filters/apply', '{"filter": ', 400, undef, 'JSON'],
	['POST', '/api/filters/apply', { filter => { column => 'a', in => [(1) x 10001] } }, 422,
		'/filter/in', 'FILTER_VALUES_MAX'],
	['GET', '/api/data/experiments?filter=%7B', undef, 400, '/filter', 'JSON'],
	['GET', '/api/data/experiments?limit=many', undef, 400, '/limit', 'whole number'],
	['GET', '/api/data/experiments/999999', undef, 404, undef, 'no run "999999"'],
	['GET', '/api/data/experiments/nobody', undef, 404, undef, 'no run "nobody"'],
	['GET', '/api/data/experiments/nobody/document', undef, 404, undef, 'no run'],
	['GET', '/api/data/experiments/1/arrays', undef, 404, undef, 'no per-request arrays'],
	['GET', '/api/export/traces/7', undef, 404, undef, 'trace'],
	['DELETE', '/api/traces/7', undef, 404, undef, 'trace'],
	['DELETE', '/api/annotations/7', undef, 404, undef, ''],
	['DELETE', '/api/filters/presets/7', undef, 404, undef, ''],
	['PUT', '/api/filters/presets/7', { name => 'x' }, 404, undef, 'no preset 7'],
	['POST', '/api/filters/presets', { name => '', body => {} }, 400, '/name', 'a text of 1'],
	['POST', '/api/filters/presets', { name => 'x' }, 400, '/body', 'expected'],
	['POST', '/api/filters/presets', { name => 'x', body => 'y' x 300_000 }, 413, '/body',
		'PRESET_BODY_BYTES_MAX'],
	['POST', '/api/data/experiments/1/annotations', { text => '' }, 400, '/text', 'a text of 1'],
	['PUT', '/api/data/experiments/1/exclusion', {}, 400, '/reason', 'a text of 1'],
	['POST', '/api/export/csv', { format => 'xlsx' }, 400, '/format', 'csv or jsonl'],
	['POST', '/api/analysis/marks', { series => 's', metric => 'm', at => 'a', kind => 'odd' }, 400,
		'/kind', 'seen'],
	['POST', '/api/analysis/trends', [], 400, '', 'object'],

	# Columns that neither a run nor a schema has.
	['POST', '/api/filters/apply', { filter => { column => 'server.modle', in => ['x'] } }, 400,
		'/filter/column', 'there is no column "server.modle"; did you mean "server.model"?'],
	['POST', '/api/filters/apply', { filter => { and => [{ not => { or => [{ column => 'server.modle',
		in => ['x'] }] } }] } }, 400, '/filter/and/0/not/or/0/column',
		'did you mean "server.model"?'],
	['POST', '/api/filters/apply', { filter => { column => 'max_num_seqs', missing => $true } }, 400,
		'/filter/column', 'did you mean "server.max_num_seqs"?'],
	['POST', '/api/filters/apply', { facets => ['note'] }, 400, '/facets/0',
		'there is no column "note"; did you mean "tags.note"?'],
	['POST', '/api/filters/apply', { filter => { column => 'tags.unheard_of', missing => $true } }, 400,
		'/filter/column', 'there is no column "tags.unheard_of"'],
	['POST', '/api/filters/apply', { sort => [{ column => 'run_id' }, { column => 'zzzzzz' }] }, 400,
		'/sort/1/column', 'there is no column "zzzzzz"'],
	['POST', '/api/filters/apply', { columns => ['status', 'statsu'] }, 400, '/columns/1',
		'did you mean "status"?'],
	['POST', '/api/filters/apply', { facets => ['server.dtypes'] }, 400, '/facets/0',
		'did you mean "server.dtype"?'],
	['POST', '/api/filters/apply', { statistics => ['median_ttft'] }, 400, '/statistics/0',
		'did you mean "median_ttft_ms"?'],
	['GET', '/api/data/experiments?sort=-zzzzzz', undef, 400, '/sort/0/column', 'no column "zzzzzz"'],
	['GET', '/api/data/experiments?columns=status,zzzzzz', undef, 400, '/columns/1', 'no column'],
	['GET', '/api/data/summary?statistics=p99_tfft_ms', undef, 400, '/statistics/0',
		'did you mean "p99_ttft_ms"?'],
	['POST', '/api/export/csv', { columns => ['zzzzzz'] }, 400, '/columns/0', 'no column'],
	['POST', '/api/analysis/trends', { metric => 'output_troughput' }, 400, '/metric',
		'did you mean "output_throughput"?'],
	['POST', '/api/analysis/trends', { metric => 'failed', series => ['server.modle'] }, 400,
		'/series/0', 'did you mean "server.model"?'],
	['POST', '/api/analysis/trends', { metric => 'failed', filter => { column => 'server.modle',
		missing => $true } }, 400, '/filter/column', 'did you mean "server.model"?'],
	['POST', '/api/analysis/regression', { metrics => ['failed', 'zzzzzz'], baseline => { last => 1 } },
		400, '/metrics/1', 'no column'],
	['POST', '/api/analysis/regression', { metric => 'failed', baseline => { filter => {
		column => 'zzzzzz', missing => $true } } }, 400, '/baseline/filter/column', 'no column'],
	['POST', '/api/analysis/impact', { metric => 'failed', parameters => ['server.modle'] }, 400,
		'/parameters/0', 'did you mean "server.model"?'],
	['POST', '/api/analysis/scaling', { metric => 'failed', by => 'server.tensor_paralel_size' }, 400,
		'/by', 'did you mean "server.tensor_parallel_size"?'],
	['POST', '/api/analysis/capacity', { rate => 1, slo => [{ column => 'zzzzzz', max => 1 }] }, 400,
		'/slo/0/column', 'no column'],
	['POST', '/api/analysis/resources', { x => 'zzzzzz', y => 'failed' }, 400, '/x', 'no column'],
	['POST', '/api/analysis/parallel', { columns => ['failed', 'zzzzzz'] }, 400, '/columns/1',
		'no column'],
	['POST', '/api/data/compare', { groups => [{ ids => [1] }, { filter => { column => 'zzzzzz',
		missing => $true } }] }, 400, '/groups/1/filter/column', 'no column'],

	# Values that a column's kind cannot have.
	['POST', '/api/filters/apply', { filter => { column => 'server.tensor_parallel_size',
		in => [1, "2"] } }, 400, '/filter/in/1',
		'"server.tensor_parallel_size" holds numbers, and this is a text: "2"'],
	['POST', '/api/filters/apply', { filter => { column => 'server.model', in => [7] } }, 400,
		'/filter/in/0', '"server.model" holds texts, and this is a number'],
	['POST', '/api/filters/apply', { filter => { column => 'failed', range => { min => 5, max => 3 } } },
		400, '/filter/range', 'expected min to be at most max, got 5 and 3'],
	['POST', '/api/filters/apply', { filter => { column => 'server.model', range => { min => 5 } } }, 400,
		'/filter/range', '"server.model" holds texts, which have no range; expected "in" or "text"'],
	['POST', '/api/filters/apply', { filter => { column => 'server.enable_prefix_caching',
		range => { min => 0 } } }, 400, '/filter/range', 'holds true and false, which have no range'],
	['POST', '/api/filters/apply', { filter => { column => 'failed', text => '1' } }, 400,
		'/filter/text', '"failed" holds numbers, and no texts; expected "in" or "range"'],
	['POST', '/api/filters/apply', { filter => { column => 'timestamp', range => {
		min => 'yesterday' } } }, 400, '/filter/range/min',
		'expected a time such as 2026-11-22T08:00:00Z'],
	['POST', '/api/filters/apply', { filter => { column => 'timestamp', range => {
		min => '2026-02-30' } } }, 400, '/filter/range/min', 'expected a time such as'],

	# Parameters and members that a route does not have.
	['GET', '/api/data/experiments?page=1&page_size=10', undef, 400, '/page', 'no such parameter; '
		. 'expected one of: filter shown sort limit cursor columns'],
	['GET', '/api/data/experiments?limt=2', undef, 400, '/limt', 'did you mean limit?'],
	['GET', '/api/data/experiments?server.model=xyz', undef, 400, '/server.model', 'no such parameter'],
	['GET', '/api/filters/options?facet_value=5', undef, 400, '/facet_value',
		'did you mean facet_values?'],
	['GET', '/api/traces?offset=5', undef, 400, '/offset', 'no such parameter'],
	['GET', '/api/health?verbose=1', undef, 400, '/verbose', 'no such parameter; expected none'],
	['POST', '/api/filters/apply?limit=2', {}, 400, '/limit', 'no such parameter; expected none'],
	['POST', '/api/analysis/trends', { metric => 'failed', fliter => {} }, 400, '/fliter',
		'did you mean filter?'],

	# What is lacking, or there twice.
	['POST', '/api/analysis/trends', {}, 400, '/metric', 'such as request_throughput, output_throughput'],
	['POST', '/api/analysis/regression', { baseline => { last => 1 } }, 400, '/metric',
		'such as request'],
	['POST', '/api/data/compare', { ids => [1], groups => [] }, 400, '/ids', 'either groups or ids'],
	['POST', '/api/data/compare', { ids => [1, 2], ignore => ['server.modle'] }, 400, '/ignore/0',
		'did you mean "server.model"?'],
	['POST', '/api/data/compare', { ids => [] }, 400, '/ids', 'a list of runs'],
	['POST', '/api/filters/presets', { name => 'x', body => {}, filters => {} }, 400, '/filters',
		'either body or filters'],
) {
	my ($method, $path, $body, $status, $pointer, $word) = @$_;
	my $r = ask($d, $method, $path, $body);
	my $got = $r->{json};

	ok($r->{status} == $status && $r->{headers}{'content-type'} =~ m{^application/problem\+json}
		&& $got->{status} == $status && index($got->{detail} // '', $word) >= 0
		&& (defined $pointer ? ($got->{pointer} // 'none') eq $pointer : !defined $got->{pointer}),
		"$method $path: $status") or diag($r->{status}, ' ', $r->{content});
}

# ---- what is taken ----

# A column that the schemas know is one, also when no run has it.
my $known = ask($d, POST => '/api/filters/apply', { limit => 1, columns => ['server.quantization'],
	filter => { column => 'server.quantization', missing => $true },
	sort => [{ column => 'prefill.max_num_seqs' }], facets => ['benchmark.lora_assignment'],
	statistics => ['p42_ttft_ms', 'failures.timeout'] });
is($known->{status}, 200, 'columns that no run has yet are known') or diag($known->{content});
is($known->{json}{total}, total(), '... and all runs lack them');
is_deeply([map { $_->{count} } @{$known->{json}{statistics}}], [0, 0], '... as do statistics');

# Moments as people write them: the first of these runs was at one second past midnight.
for (['2026-01-01', undef, 0], [undef, '2026-01-01T00:00:10', 10], ['2026-01-01T00:00:02Z',
		'2026-01-01 01:00:03.500+01:00', 2], ['2026-01-01T00:00', '2026-01-01T00:00:00.9Z', 0]) {
	my ($min, $max, $runs) = @$_;
	my $r = ask($d, POST => '/api/filters/apply', { limit => 0, filter => { column => 'timestamp',
		range => { $min ? (min => $min) : (), $max ? (max => $max) : () } } });

	is($r->{json}{total}, $runs || ($max ? 0 : total()), 'runs from ' . ($min // 'the first') . ' to '
		. ($max // 'the last')) or diag($r->{content});
}

my $apart = ask($d, POST => '/api/data/compare', { ids => [$runs[0]{id}, $runs[1]{id}],
	metrics => ['completed'] });
is_deeply([map { $_->{ids} } @{$apart->{json}{groups}}], [[$runs[0]{id}], [$runs[1]{id}]],
	'ids by themselves: each run is a group') or diag($apart->{content});
my $short = ask($d, POST => '/api/filters/presets', { name => 'Short', filters => $failing });
is_deeply([map { $_->{body} } @{ask($d, GET => '/api/filters/presets')->{json}{items}}],
	[{ filter => $failing }], 'filters of a preset are a body with a filter');
is(ask($d, DELETE => "/api/filters/presets/$short->{json}{id}")->{status}, 200, '... and it goes again');
my $usual_before = total();
my $plain = ask($d, POST => '/api/upload/json', make_run(50_001)->{doc});
is($plain->{status}, 201, 'a document as JSON where a form is usual') or diag($plain->{content});
my ($form, %type) = form(['files', 'a.json', json_text(make_run(50_002)->{doc})],
	['file', 'b.json', json_text(make_run(50_003)->{doc})]);
my $batch = ask($d, POST => '/api/upload/batch', $form, %type);
is($batch->{status}, 202, 'a batch of parts called files') or diag($batch->{content});
wait_for('the batch', sub { return total() == $usual_before + 3 });

# ---- a CSV of everything ----

my $whole = ask($d, GET => '/api/export/csv?limit=1&sort=timestamp');
my ($head, $line) = csv_of($whole->{content});
is_deeply([@$head[0 .. 6]], [qw(run_id timestamp status verdict server.model server.tensor_parallel_size
	benchmark.request_rate)], 'what a run is comes first') or diag("@$head");
is($line->[1], '2026-01-01T00:00:01Z', 'and when it was is a time');

# ---- values that cannot be ----

my $odd = { schema_version => 1, run_id => 'exp_odd', status => 'completed', environment => {},
	config => { name => 'odd', server => { model => 'm', tensor_parallel_size => '4',
		max_num_seqs => 'plenty', revision => 7 }, benchmark => { request_rate => 'inf' } },
	results => { request_throughput => -5, completed_requests => 'many', failed_requests => 0,
		median_ttft_ms => 12.5, output_throughput => 100 },
	trust => { verdict => 'INVALID', verdicts => { ttft => 'INVALID' }, reasons => [
		{ level => 'INVALID', code => 'skew', spoils => ['ttft', 'itl'],
			text => 'The clock stepped.' },
		{ level => 'DEGRADED', code => 'few', text => 'Only 9 requests.' }] } };
my $text = json_text($odd);
$text =~ s/"output_throughput":100/"output_throughput":NaN/ or die;
my $taken = ask($d, POST => '/api/upload/raw?name=odd.json', $text);
is($taken->{status}, 201, 'a document with values that cannot be is taken') or diag($taken->{content});
my @told = ('max_num_seqs: "plenty" (expected a number)', 'request_throughput: -5 (expected a number of at '
	. 'least 0)', 'completed: "many" (expected a number of at least 0)',
	'output_throughput: NaN (expected a number of at least 0)');
for my $one (@told) {
	ok((grep { index($_, $one) >= 0 } @{$taken->{json}{notes}}), "its upload says $one");
}
my $there = ask($d, GET => '/api/data/experiments/exp_odd')->{json};
my ($badge) = grep { $_->{code} eq 'left_out' } @{$there->{badges}};
is($badge->{level}, 'bad', 'and so does a badge');
is_deeply([grep { index($badge->{text}, $_) < 0 } @told], [], '... with keys and values');
is_deeply([grep { exists $there->{values}{$_} } qw(request_throughput completed output_throughput
	server.max_num_seqs)], [], 'they are no cells');
is_deeply([@{$there->{values}}{qw(server.tensor_parallel_size server.revision median_ttft_ms)}],
	[4, '7', 12.5], 'a setting is what its text spells');
is($there->{document}{results}{completed_requests}, 'many', 'the document keeps them');
my %kind = map { $_->{column} => $_->{kind} } @{ask($d, GET => '/api/filters/options')->{json}{items}};
is_deeply([@kind{qw(completed request_throughput server.tensor_parallel_size)}], [('number') x 3],
	'and no kind is mixed because of one document');

# ---- why a run judged itself as it did ----

is_deeply($there->{reasons}, [
	{ level => 'INVALID', code => 'skew', text => 'The clock stepped.', spoils => ['ttft', 'itl'] },
	{ level => 'DEGRADED', code => 'few', text => 'Only 9 requests.', spoils => [] }],
	'reasons with their sentences and the metrics they are about');
is_deeply([map { $_->{text} } grep { $_->{code} eq 'verdict' } @{$there->{badges}}],
	['INVALID.'], 'the verdict is a badge');
delete $_->{text} for @{$odd->{trust}{reasons}};
$odd->{run_id} = 'exp_codes';
ask($d, POST => '/api/upload/raw', json_text($odd));
$there = ask($d, GET => '/api/data/experiments/exp_codes')->{json};
is_deeply([map { $_->{text} } grep { $_->{code} eq 'verdict' } @{$there->{badges}}],
	['INVALID: skew,few.'], 'an older document has codes alone');
is($there->{reasons}[1]{text}, undef, '... and no sentence');

# ---- people's words ----

my $one = $runs[3]{id};
my $made = ask($d, POST => '/api/filters/presets', { name => 'Mine', body => { filter => $failing } });
is($made->{status}, 201, 'a preset is saved');
is(ask($d, POST => '/api/filters/presets', { name => 'Mine', body => {} })->{status}, 409,
	'its name is taken');
my $preset = $made->{json}{id};
is(ask($d, PUT => "/api/filters/presets/$preset", { name => 'Ours' })->{status}, 200, 'renamed');
my $presets = ask($d, GET => '/api/filters/presets')->{json}{items};
is_deeply([map { [@$_{qw(id name body)}] } @$presets], [[$preset, 'Ours', { filter => $failing }]],
	'listed with what it holds');
is(ask($d, DELETE => "/api/filters/presets/$preset")->{status}, 200, 'dropped');
is(ask($d, POST => "/api/data/experiments/$one/annotations", { text => 'Odd.', who => 'Ada' })->{status},
	201, 'a remark');
is(ask($d, PUT => "/api/data/experiments/$one/exclusion", { reason => 'cold' })->{status}, 200,
	'an exclusion');
my $run = ask($d, GET => "/api/data/experiments/$one")->{json};
is_deeply($run->{flags}, ['excluded'], 'the run is flagged');
is_deeply([map { [@$_{qw(text who)}] } @{$run->{annotations}}], [['Odd.', 'Ada']], 'and has the remark');
is_deeply([map { [@$_{qw(reason who is_over)}] } @{$run->{exclusions}}], [['cold', 'local', $false]],
	'and the reason');
ok((grep { $_->{code} eq 'excluded' } @{$run->{badges}}), 'and a badge');
is_deeply($run->{document}{model_id}, $runs[3]{doc}{model_id}, 'and its document');
is_deeply(ask($d, GET => "/api/data/experiments/$run->{run_id}")->{json}{id}, $one,
	'it is found by its run_id, too');
my $usual = total();
is(total(shown => 'all'), $usual + 1, 'an excluded run is not usually counted');
is(total(shown => 'excluded'), 1, 'but by itself');
is(ask($d, DELETE => "/api/data/experiments/$one/exclusion")->{status}, 200, 'taken back');
is(total(), $usual + 1, 'it counts again');

# Two people change the price and the power of one GPU at once: neither undoes what the other saved.
sub lost {
	my ($key) = @_;
	my ($price, $n) = ('/api/settings/prices/at-once', 0);

	for my $value (1 .. 40) {
		$n++ if ask($d, PUT => $price, { $key => $value })->{status} != 200;
		$n++ if ask($d, GET => '/api/settings/prices')->{json}{items}[-1]{$key} != $value;
	}
	return $n;
}
ask($d, PUT => '/api/settings/prices/at-once', { usd_per_hour => 9, power_w => 9 });
my $second = fork;
POSIX::_exit(lost('power_w')) unless $second;
is(lost('usd_per_hour'), 0, 'prices at once: nothing of the first is lost');
waitpid $second, 0;
is($? >> 8, 0, '... nor of the second');
is($d->stop, 0, 'the dashboard ends with 0');
done_testing();
