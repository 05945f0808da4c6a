#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Texts that SQL, shells, paths, formats or encodings would take for something else, put everywhere
# where text from outside goes: cells, names of columns, run_ids, files, filters, sorts, searches,
# remarks, exclusions, presets, marks, traces, people, exports, verbs of the store and its URL. Each
# comes back byte for byte, or is refused with a sentence; afterwards nothing is missing, a copy of
# the store by way of the other database's format is the same, and `store check` finds nothing.
# suite: first
use strict;
use warnings;
use utf8;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Dash;
use Encode qw(decode_utf8 encode_utf8);
use Test::More;

my @hostile = (
	# quotes and statements
	q{'}, q{''}, q{"}, q{""}, q{`}, q{';}, q{'; DROP TABLE documents; --}, q{"; DROP TABLE documents; --},
	q{x"); DROP TABLE documents; --}, q{'); DELETE FROM documents; --}, q{' OR '1'='1}, q{' OR 1=1 --},
	q{" OR ""="}, q{1; DELETE FROM presets}, q{' UNION SELECT sql FROM sqlite_master --},
	q{'||(SELECT version())||'}, q{\\'; DROP TABLE marks; --}, q{$$; DROP TABLE documents; $$},
	q{/* x}, q{*/ x}, q{-- x}, q{# x}, q{;}, q{'; SELECT pg_sleep(30); --},
	q{'; COPY documents TO '/tmp/profllm-attack'; --},
	q{'; ATTACH DATABASE '/tmp/profllm-attack' AS x; --}, q{x' || load_extension('x') || '}, q{E'\\x00'},
	q{U&'\\0000'},
	# placeholders, patterns and names that databases know
	q{$1}, q{$0}, q{:id}, q{@id}, q{?}, q{?1}, q{%}, q{_}, q{%%' LIKE '%}, q{[a-z]*}, q{.*}, q{rowid},
	q{ROWID}, q{_rowid_}, q{oid}, q{ctid}, q{xmin}, q{tableoid}, q{id}, q{ID}, q{rest}, q{documents},
	q{benchmark_runs}, q{select}, q{null},
	q{run_id"}, q{"run_id"}, q{public.documents}, q{pg_catalog}, q{sqlite_master},
	# what others read as code, a path, a format or a formula
	q{%s%s%n}, q{%00}, q{\\}, q{\\\\}, q{\\0}, q{\\u0000}, q{../../../etc/passwd}, q{/etc/passwd},
	q{$(touch profllm-pwned)}, q{`touch profllm-pwned`}, q{| touch profllm-pwned},
	q{<script>alert(1)</script>}, q{=1+1}, q{@SUM(A1)}, q{{"$ref":"#"}},
	q{__proto__}, q{constructor}, q{true }, q{ nulls}, q{-}, q{--help},
	# encodings
	"\x{e9}" x 40, "\x{1f4a9}" x 20, "\x{202e}txt.exe", "a\x{300}\x{301}", "\x{feff}bom", "\x{2028}line",
	"\x{fffd}", "\x{10ffff}", "\x{85}next", "a\tb", "a\nb", "a\r\nb", "\x{1}\x{1b}[31m", "\x{7f}",
	'x' x 127, 'long ' x 700,
);
my $d = start_dashboard('--no-launch', '--traces-dir', 'traces');
my (%planted, @runs);

sub hex_of { return join ' ', map { sprintf '%02x', ord } split //, encode_utf8(substr $_[0], 0, 24) }

sub escape { return encode_utf8($_[0]) =~ s/([^A-Za-z0-9_.~-])/sprintf '%%%02X', ord $1/ger }

# A sentence, and none of the database's own.
sub is_refusal {
	my ($r) = @_;
	my $why = $r->{json}{detail} // '';

	return $r->{status} =~ /^4\d\d$/ && $why =~ /\w/ && $why !~ /\n|SQLSTATE|syntax error|no such column/;
}

# ---- what is planted, and read back ----

# One run per text: the text is a value, a name of a column, the model and the name of the file.
sub plant_run {
	my ($text, $i) = @_;
	my $r = ask($d, POST => '/api/upload/raw?name=' . escape($text), {
		date => '20260101-000000', backend => 'vllm', model_id => "m$text", num_prompts => 10,
		request_rate => 'inf', completed => 10, request_throughput => 1000 + $i, mean_ttft_ms => 3,
		note => "n$text", "k$text" => "v$i" });

	return ["upload: $r->{status} $r->{content}"] if $r->{status} != 201;
	my $id = $runs[$i] = $r->{json}{results}[0]{id};
	my $run = ask($d, GET => "/api/data/experiments/$id")->{json};
	my @why;
	my $column = "tags.k$text";
	my $is_name = $text !~ /[\x00-\x1f\x7f]/ && length encode_utf8($column) <= 128;

	push @why, 'model: ' . hex_of($run->{values}{'server.model'} // '')
		if ($run->{values}{'server.model'} // '') ne "m$text";
	push @why, 'value: ' . hex_of($run->{values}{'tags.note'} // '')
		if ($run->{values}{'tags.note'} // '') ne "n$text";
	push @why, 'document' if $run->{document}{note} ne "n$text" || $run->{document}{"k$text"} ne "v$i";
	push @why, 'column' if $is_name && ($run->{values}{$column} // '') ne "v$i";
	push @why, 'no note of what is left out' if !$is_name && !exists $run->{values}{$column}
		&& !@{$r->{json}{notes}};
	return \@why;
}

# What people wrote: [what, where it is listed, number, member, text]; read back by read_back().
my @told;

# Notes that a text is to be found there; '' or why it was neither taken nor refused.
sub told {
	my ($what, $list, $key, $text, $r) = @_;

	return () if is_refusal($r);
	return "$what: $r->{status} $r->{content}" if $r->{status} !~ /^20\d$/;
	$planted{$what}++;
	push @told, [$what, $list, $r->{json}{id}, $key, $text];
	return ();
}

sub plant_words {
	my ($text, $i) = @_;
	my $run = "/api/data/experiments/$runs[$i]";
	my @why;

	for my $key (qw(text who)) {
		push @why, told("remark's $key", "$run annotations", $key, $text, ask($d,
			POST => "$run/annotations", { text => 'x', who => 'y', $key => $text }));
	}
	for my $key (qw(name body)) {
		push @why, told("preset's $key", '/api/filters/presets items', $key, $text, ask($d,
			POST => '/api/filters/presets', { name => "p$i$key", body => 1, $key => $text }));
	}
	for my $key (qw(series metric at text who)) {
		push @why, told("mark's $key", '/api/analysis/marks items', $key, $text, ask($d,
			POST => '/api/analysis/marks', { series => "s$i$key", metric => 'm', at => 'a',
				kind => 'seen', text => 't', who => 'w', $key => $text }));
	}
	my $r = ask($d, PUT => "$run/exclusion", { reason => $text, who => $text });
	return \@why if is_refusal($r);
	ask($d, PUT => "$run/exclusion", { reason => 'newer' });
	my ($newer, $older) = @{ask($d, GET => $run)->{json}{exclusions}};
	push @why, 'exclusion' if $older->{reason} ne $text || $older->{who} ne $text;
	push @why, 'order of exclusions' if $newer->{reason} ne 'newer';
	ask($d, DELETE => "$run/exclusion");
	return \@why;
}

sub read_back {
	my (%list, @why);

	for (@told) {
		my ($what, $list, $id, $key, $text) = @$_;
		my ($path, $member) = split / /, $list;

		$list{$list} //= { map { ($_->{id} => $_) } @{ask($d, GET => $path)->{json}{$member}} };
		my $got = $list{$list}{$id}{$key};
		push @why, "$what: " . hex_of($text) unless defined $got && $got eq $text;
	}
	return \@why;
}

# ---- questions ----

# Every way to ask for a value finds the run that has it, and no other.
sub ask_for {
	my ($text, $i) = @_;
	my %by = (in => { column => 'tags.note', in => ["n$text"] }, model => { column => 'server.model',
			in => ["m$text"] }, both => { and => [{ column => 'tags.note', text => "n$text" },
			{ column => 'request_throughput', range => { min => 1000 + $i,
				max => 1000 + $i } }] });
	my @why;

	for my $how (sort keys %by) {
		my $r = ask($d, POST => '/api/filters/apply', { filter => $by{$how}, shown => 'all',
			columns => ['tags.note'], facets => ['tags.note'] });
		my @ids = map { $_->{id} } @{$r->{json}{items} // []};
		push @why, "$how: $r->{status} (@ids)" if "@ids" ne $runs[$i];
	}
	my $get = ask($d, GET => '/api/data/experiments?shown=all&filter='
		. escape(decode_utf8(json_text($by{in}))));
	push @why, "GET: $get->{status}" if ($get->{json}{total} // -1) != 1;

	# As a name of a column: one that there is, and one that there is not.
	my ($has, $name) = ("tags.k$text", $text);
	for my $q ({ columns => [$has] }, { sort => [{ column => $has }] }, { facets => [$has] },
		{ statistics => [$has] }, { filter => { column => $has, text => $text } },
		{ filter => { column => $has, missing => \1 } }, { columns => [$name] },
		{ sort => [{ column => $name }] }, { facets => [$name] }, { statistics => [$name] },
		{ filter => { column => $name, in => [$text] } }, { cursor => $text }) {
		my $r = ask($d, POST => '/api/filters/apply', { %$q, limit => 1 });
		push @why, json_text($q) . ": $r->{status}" unless $r->{status} == 200 || is_refusal($r);
	}
	for my $q (['trends', { metric => $has }], ['trends', { metric => $name }],
		['scaling', { metric => 'mean_ttft_ms', by => $has }],
		['distribution', { metric => 'mean_ttft_ms', group => [$has] }],
		['regression', { metric => 'mean_ttft_ms', baseline => { commit => $text } }]) {
		my $r = ask($d, POST => "/api/analysis/$q->[0]", $q->[1]);
		push @why, "$q->[0]: $r->{status}" unless $r->{status} == 200 || is_refusal($r);
	}
	for my $q ('sort=' . escape($has), 'columns=' . escape($name), 'filter=' . escape($text), 'cursor='
		. escape($text), 'shown=' . escape($text), 'limit=' . escape($text), escape($text) . '=1') {
		my $r = ask($d, GET => "/api/data/experiments?$q");
		push @why, "$q: $r->{status}" unless $r->{status} == 200 || is_refusal($r);
	}
	# As the name of something in an address: none of them is there.
	for my $form (qw(data/experiments/{} data/experiments/{}/document jobs/{} upload/status/{}
		export/traces/{})) {
		my $r = ask($d, GET => '/api/' . ($form =~ s/\{\}/escape($text)/er));
		push @why, "$form: $r->{status}" unless is_refusal($r);
	}
	for my $form (qw(annotations/{} filters/presets/{} analysis/marks/{} traces/{})) {
		my $r = ask($d, DELETE => '/api/' . ($form =~ s/\{\}/escape($text)/er));
		push @why, "DELETE $form: $r->{status}" unless is_refusal($r);
	}
	return \@why;
}

# How many there are of everything that a table holds.
sub counts {
	my %n = (presets => scalar @{ask($d, GET => '/api/filters/presets')->{json}{items}},
		marks => scalar @{ask($d, GET => '/api/analysis/marks')->{json}{items}},
		traces => ask($d, GET => '/api/traces')->{json}{total},
		jobs => ask($d, GET => '/api/jobs?limit=1')->{json}{total},
		runs => ask($d, POST => '/api/filters/apply', { shown => 'all', limit => 1 })->{json}{total});

	for my $id (@runs) {
		my $run = ask($d, GET => "/api/data/experiments/$id")->{json};
		$n{$_} += @{$run->{$_}} for qw(annotations exclusions versions);
	}
	return \%n;
}

# ---- the table ----

cmp_ok(scalar @hostile, '>=', 40, scalar(@hostile) . ' texts');
for my $i (0 .. $#hostile) {
	is_deeply(plant_run($hostile[$i], $i), [], 'a run with ' . hex_of($hostile[$i]));
	is_deeply(plant_words($hostile[$i], $i), [], 'words with it');
}
is_deeply(read_back(), [], scalar(@told) . ' words come back as they were');
my $before = counts();
is($before->{runs}, scalar @hostile, 'every run is there');
is($before->{presets}, $planted{"preset's name"} + $planted{"preset's body"}, 'every preset');
is($before->{annotations}, $planted{"remark's text"} + $planted{"remark's who"}, 'every remark');
my $marks = 0;
$marks += $planted{$_} for grep { /^mark/ } keys %planted;
is($before->{marks}, $marks, 'every mark');
is_deeply(ask_for($hostile[$_], $_), [], 'questions with ' . hex_of($hostile[$_])) for 0 .. $#hostile;

# Names of files, of traces and of parts of a form.
my $batch = ask($d, POST => '/api/upload/batch', form(map { ['file', encode_utf8($_),
	'{}'] } grep { !/["\r\n\\]/ }
	@hostile));
wait_for('the batch', sub { ask($d,
	GET => "/api/upload/status/$batch->{json}{job_id}")->{json}{state} eq 'done' });
my @names = map { $_->{name} } @{ask($d, GET => "/api/upload/status/$batch->{json}{job_id}")->{json}{files}};
my %is_hostile = map { ($_ => 1) } @hostile;
cmp_ok(scalar(grep { $is_hostile{$_} } @names), '>=', scalar(grep { !/["\\\x00-\x1f\x7f]/
	&& length encode_utf8($_) < 500 } @hostile), 'names of files come back as they were');
my $traced = ask($d, POST => "/api/data/experiments/$runs[0]/traces", form(map { ['trace', encode_utf8($_),
	"T$_"
	=~ s/[^ -~]/_/gr] } grep { !/["\r\n\\\/]/ } @hostile[0 .. 30]));
is($traced->{status}, 201, 'traces with such names') or diag($traced->{content});

# ---- the verbs ----

is($d->stop, 0, 'the dashboard ends well');
my @refused;
for my $i (grep { $_ % 3 == 0 } 0 .. $#hostile) { # each is a start of the program
	my $text = $hostile[$i];
	my $r = run(args => ['export', '--store', $d->{store}, '--format', 'jsonl', '--shown', 'all',
		'--columns', 'tags.note,server.model', '--filter',
		json_text({ column => 'tags.note', in => ["n$text"] })]);
	my $row = eval { json_of($r->{out}) } // {};

	push @refused, "export $i: $r->{status} $r->{err}" if $r->{status} ne '0'
		|| ($row->{'tags.note'} // '') ne "n$text" || ($row->{'server.model'} // '') ne "m$text";
}
for my $text (grep { !/[\x00-\x1f]/ } map { $hostile[4 * $_] } 0 .. $#hostile / 4) {
	my $word = encode_utf8($text);

	for my $args (['export', "--sort=$word"], ['export', "--columns=$word"],
		['export', "--filter=$word"], ['store', 'archive', "--filter=$word"]) {
		my $r = run(args => [@$args, '--store', $d->{store}]);
		push @refused, "@$args: $r->{status} $r->{err}" unless $r->{status} =~ /^[012]$/
			&& ($r->{status} eq '0' || $r->{err} =~ /^profllm \w[^\n]*\n\z/);
	}
}
is_deeply(\@refused, [], 'export and archive');
for my $i (1 .. 3) { # a run goes by its text, and no other
	my $filter = json_text({ column => 'tags.note', in => ["n$hostile[$i]"] });
	my $r = run(args => ['store', 'remove', '--store', $d->{store}, '--yes', '--filter', $filter]);
	is($r->{status}, 0, 'store remove by ' . hex_of($hostile[$i])) or diag($r->{err});
}

# URLs of stores: what is no database is a sentence, and what is a path is that file.
for my $text (grep { !/[\x00\/\n]/ } @hostile[map { 2 * $_ } 0 .. 20]) {
	my $word = encode_utf8($text);
	my $r = run(args => ['export', '--store', "postgresql:///$word?host=."], seconds => 20);
	like("$r->{status} $r->{err}", qr/^[12] profllm export: [^\n]+\n\z/,
		'a database called ' . hex_of($text));
	next if length $word > 60;
	$r = run(args => ['store', 'check', '--store', "sqlite:no-such-$word.db"]);
	like("$r->{status} $r->{err}", qr/^[12] profllm store[^\n]+\n\z/, 'a file that is not there');
}
my $copy = q{copy of '; DROP TABLE x; --.db};
my $r = run(args => ['store', 'convert', '--store', $d->{store}, '--to', "sqlite:$copy"]);
is($r->{status}, 0, 'a copy under a name that is a trick') or diag($r->{err});
ok(-s $copy, 'is that file');
my @export = map { run(args => ['export', '--store', $_, '--format', 'jsonl', '--shown', 'all',
	'--sort=request_throughput'])->{out} } $d->{store}, "sqlite:$copy";
is($export[1], $export[0], 'and holds the same');
is(scalar(split /\n/, $export[0]), @hostile - 3, 'all runs but those that were removed');
for my $store ($d->{store}, "sqlite:$copy") {
	$r = run(args => ['store', 'check', '--traces-dir', 'traces', '--store', $store]);
	check_run('store check finds nothing', $r, { status => 0, out => ['*nothing is wrong*'] });
}
ok(!-e 'profllm-pwned' && !-e '/tmp/profllm-attack', 'nothing was run and no file was made');

# ---- people ----

# Names of users are words: these are the ones without blanks.
my @people = grep { !/[\s#]/ && length encode_utf8($_) < 100 && !/^[\x00-\x20]/ } @hostile;
spew('tokens', join '', map { encode_utf8($people[$_]) . sprintf(" token-of-person-%04d\n",
	$_) } 0 .. $#people);
chmod 0600, 'tokens';
my $store = $d->{store};
$d = start_dashboard('--no-launch', '--traces-dir', 'traces', '--store', $store,
	'--auth-token-file', 'tokens');
my @wrong;
for my $i (0 .. $#people) {
	my %as = (Authorization => sprintf 'Bearer token-of-person-%04d', $i);
	my $made = ask($d, POST => "/api/data/experiments/$runs[0]/annotations", { text => "by $i" }, %as);
	my $notes = ask($d, GET => "/api/data/experiments/$runs[0]", undef, %as)->{json}{annotations};
	my ($note) = grep { $_->{id} == ($made->{json}{id} // 0) } @$notes;
	push @wrong, "$made->{status}: " . hex_of($people[$i]) if ($note->{who} // '') ne $people[$i];
}
is_deeply(\@wrong, [], scalar(@people) . ' people with such names are named as they are');
my %as = (Authorization => 'Bearer token-of-person-0000');
my $now = ask($d, POST => '/api/filters/apply', { shown => 'all', limit => 1 }, %as)->{json}{total};
is($now, @hostile - 3, 'the runs are all there');
is(scalar @{ask($d, GET => '/api/filters/presets', undef, %as)->{json}{items}}, $before->{presets},
	'presets too');
is(scalar @{ask($d, GET => '/api/analysis/marks', undef, %as)->{json}{items}}, $before->{marks}, 'and marks');
is($d->stop, 0, 'it ends well');
$r = run(args => ['store', 'check', '--traces-dir', 'traces', '--store', $store]);
check_run('store check still finds nothing', $r, { status => 0, out => ['*nothing is wrong*'] });

done_testing();
