# SPDX-License-Identifier: Apache-2.0
# Api.pm - schema/api.json as an OpenAPI document, as TypeScript types and as a page; see gen.pl.
#
# A shape is an object of members or one type; a type is written as in the file's "notation":
#
#   text number integer bool null any object    what is built in
#   Name                                        another shape
#   [X] {X} X|Y "word"                          list, object with keys that are data, either, this
#
# and what follows " - " is about it. Shapes under "answers" end with data_version and query_ms.
package Gen::Api;
use strict;
use warnings;
use feature 'signatures';
no warnings 'experimental::signatures';

use Exporter qw(import);
use Gen::Schema;

our @EXPORT_OK = qw(check_api api_page api_types openapi);

my $LINE_MAX = 106;
my @SHAPE_LISTS = qw(types answers analysis);
my %BASIC = (text => 'string', number => 'number', integer => 'integer', bool => 'boolean',
	null => 'null', object => 'object');
my %SCRIPT = (%BASIC, integer => 'number', object => 'Record<string, unknown>', any => 'unknown');
my $ONE = qr/(?<one>(?:"[^"]*"|\[(?:(?&one)|\|)*\]|\{(?:(?&one)|\|)*\}|[^|"\[\]{}])+)/;

sub alternatives($type) { my @all = $type =~ /$ONE/g; return @all }
sub inside($type) { return substr $type, 1, -1 }
sub is_media($type) { return index($type, '/') >= 0 }

# "type - about"
sub note_of($v) { return (split(/ - /, $v // '', 2), '', '')[0, 1] }

# Calls with list, name and shape for every shape of the file.
sub each_shape($api, $call) {
	for my $list (@SHAPE_LISTS) {
		$call->($list, $_, $api->{$list}{$_}) for keys_of($api->{$list});
	}
}

# The values of a member of routes: in their first order, each once.
sub distinct($api, $member) {
	my %seen;

	return grep { !$seen{$_}++ } map { $_->{$member} } @{ $api->{routes} };
}

sub check_type($api, $where, $type) {
	join('|', alternatives($type)) eq $type && $type ne '' or die "$where: ill-formed type \"$type\"\n";
	for my $one (alternatives($type)) {
		if ($one =~ /^[\[{]/) {
			check_type($api, $where, inside($one));
		} elsif ($one !~ /^"/ && !$SCRIPT{$one} && !grep { $api->{$_}{$one} } @SHAPE_LISTS) {
			die "$where: no type is called \"$one\"\n";
		}
	}
}

sub check_members($api, $where, $v) {
	return if !defined $v;
	if (ref $v) {
		check_members($api, $where, $v->{$_}) for keys_of($v);
	} elsif (!is_media($v)) {
		check_type($api, $where, (note_of($v))[0]);
	}
}

sub check_api($api) {
	is_list($api->{routes}) or die "expected a list \"routes\"\n";
	is_object($api->{$_}) or die "expected an object \"$_\"\n" for @SHAPE_LISTS;
	each_shape($api, sub { check_members($api, @_[1, 2]) });
	for my $r (@{ $api->{routes} }) {
		my $path = member($r, 'path');

		for my $name (qw(method path group summary)) {
			member($r, $name) ne '' or die "route \"$path\": no text \"$name\"\n";
		}
		$r->{answer} && defined $r->{flags} or die "$path: no \"answer\" or no \"flags\"\n";
		check_members($api, $path, $r->{$_}) for qw(query request answer);
	}
	check_unique(map { "$_->{method} $_->{path}" } @{ $api->{routes} });
}

# ---- OpenAPI: each function returns members ----

sub api_one($one) {
	return (type => $BASIC{$one}) if $BASIC{$one};
	return (type => 'array', items => object(api_type(inside($one)))) if $one =~ /^\[/;
	return (type => 'object', additionalProperties => object(api_type(inside($one)))) if $one =~ /^\{/;
	return (const => inside($one)) if $one =~ /^"/;
	return $one eq 'any' ? () : ('$ref' => "#/components/schemas/$one");
}

sub api_type($type) {
	my @types = alternatives($type);

	return api_one($type) if @types < 2;
	return (enum => [map { inside($_) } @types]) if !grep { !/^"/ } @types;
	return (type => [@BASIC{@types}]) if !grep { !$BASIC{$_} } @types;
	return (anyOf => [map { object(api_type($_)) } @types]);
}

sub api_noted {
	my ($type, $about) = note_of(@_);

	return object(api_type($type), $about ne '' ? (description => $about) : ());
}

sub api_shape($list, $name, $shape) {
	my @required = map { /\?$/ ? () : $_ } ref $shape ? keys_of($shape) : ();
	my @more = $list eq 'answers' ? (data_version => 'integer', query_ms => 'number') : ();

	return ($name => api_noted($shape)) if !ref $shape;
	return ($name => object(type => 'object', properties => object(
			(map { s/\?$//r => api_noted($shape->{$_}) } keys_of($shape)),
			map { ref $_ || !$BASIC{$_} ? $_ : object(type => $_) } @more),
		required => [@required, @more ? qw(data_version query_ms) : ()],
		additionalProperties => \'false'));
}

# The content of a shape or of media types.
sub api_content($type, $media) {
	return (content => object(map { $_ => object(schema => object()) } alternatives($type)))
		if is_media($type);
	return (content => object($media => object(schema => object(api_type($type)))));
}

sub api_parameter($name, $in, $type, $about) {
	return object(name => $name, in => $in, required => $in eq 'path' ? \'true' : \'false',
		$about ne '' ? (description => $about) : (), schema => object(api_type($type)));
}

sub api_route($r) {
	my $answer = $r->{answer};
	my @flags = split / /, $r->{flags};
	# "GET", "/api/data/experiments/{id}" as get_data_experiments_id.
	my $path = $r->{path} =~ s/^\/api//r =~ tr/\/./__/r =~ tr/{}//dr;
	my @request = defined $r->{request} ? (requestBody => object(required => \'true',
		api_content((note_of($r->{request}))[0], 'application/json'))) : ();

	return (lc $r->{method} => object(operationId => lc($r->{method}) . $path,
		summary => $r->{summary}, tags => [$r->{group}],
		parameters => [(map { api_parameter($_, 'path', 'text', '') } $r->{path} =~ /\{([^}]*)/g),
			map { api_parameter($_, 'query', note_of($r->{query}{$_})) }
			$r->{query} ? keys_of($r->{query}) : ()],
		@request,
		responses => object(
			(map { $_ => object(description => $r->{summary},
				api_content((note_of($answer->{$_}))[0], 'application/json')) }
			keys_of($answer)),
			default => object(description => 'What is wrong',
				api_content('Problem', 'application/problem+json'))),
		security => [$r->{flags} =~ /open/ ? () : (\'{"token": []}', \'{}')], 'x-flags' => \@flags));
}

sub openapi($api) {
	my @schemas;

	each_shape($api, sub { push @schemas, api_shape(@_) });
	return object(openapi => '3.1.0',
		info => object(title => 'ProfLLM dashboard', version => '1', description => $api->{about}),
		paths => object(map { my $path = $_;
			$path => object(map { $_->{path} eq $path ? api_route($_) : () } @{ $api->{routes} })
			} distinct($api, 'path')),
		components => object(schemas => object(@schemas),
			securitySchemes => \'{"token": {"type": "http", "scheme": "bearer"}}'));
}

# ---- the API as TypeScript ----

sub api_script($type) {
	my @out;

	for my $one (alternatives($type)) {
		my $inner = $one =~ /^[\[{"]/ ? inside($one) : '';

		push @out, $one =~ /^\{/ ? 'Record<string, ' . api_script($inner) . '>' :
			$one =~ /^"/ ? "'$inner'" : $one !~ /^\[/ ? $SCRIPT{$one} // $one :
			alternatives($inner) > 1 ? '(' . api_script($inner) . ')[]' :
			api_script($inner) . '[]';
	}
	return join ' | ', @out;
}

sub api_script_member($key, $type) { return "$key: " . api_script($type) }

# Members without a comment share lines; a comment follows its member, or precedes it.
sub api_script_members($shape) {
	my ($out, $column) = ("{\n", 0);    # of the line that is open; 0: none is

	for my $key (keys_of($shape)) {
		my ($type, $about) = note_of($shape->{$key});
		my $member = api_script_member($key, $type);
		my $comment = $about ne '' ? length($about) + 4 : 0;

		if ($column && ($comment || $column + length($member) + 2 > $LINE_MAX)) {
			$out .= "\n";
			$column = 0;
		}
		if ($comment && length($member) + $comment + 10 > $LINE_MAX) {
			$out .= "\t/** $about */\n";
			$comment = 0;
		}
		$out .= ($column ? ' ' : "\t") . "$member;";
		$column += length($member) + ($column ? 2 : 9);
		next if $about eq '';
		$out .= ($comment ? " // $about" : '') . "\n";
		$column = 0;
	}
	return $out . ($column ? "\n}" : '}');
}

sub api_script_shape($list, $name, $shape) {
	my ($is_answer, $about) = ($list eq 'answers', '');
	my ($short, $type);

	if (!ref $shape) {
		($type, $about) = note_of($shape);
		$about = "/** $about */\n" if $about ne '';
		return "${about}export type $name = " . api_script($type) . ";\n";
	}
	my @notes = map { [$_, note_of($shape->{$_})] } keys_of($shape);
	return "export type $name = Answer;\n" if $is_answer && !@notes;
	$short = '{ ' . join('; ', map { api_script_member(@$_[0, 1]) } @notes) . ' }';
	$short = api_script_members($shape) if (grep { $_->[2] ne '' } @notes) ||
		length($short) > $LINE_MAX - length($name) - ($is_answer ? 32 : 18);
	return "export interface $name " . ($is_answer ? 'extends Answer ' : '') . "$short\n";
}

# What a route takes or gives; bytes of another kind are text here.
sub api_side($v) {
	my ($type) = note_of($v);

	return !defined $v ? 'undefined' : $type eq 'multipart/form-data' ? 'FormData' :
		$type eq 'application/json' ? 'unknown' : is_media($type) ? 'string' : api_script($type);
}

sub api_script_route($r) {
	my @query = map { "$_?: " . api_script((note_of($r->{query}{$_}))[0]) }
		$r->{query} ? keys_of($r->{query}) : ();
	my $sides = 'request: ' . api_side($r->{request}) . '; answer: ' .
		api_side($r->{answer}{ (keys_of($r->{answer}))[0] });
	my $out = "\t'$r->{method} $r->{path}': {";

	return $out . "\n\t\tquery: { " . join(";\n\t\t\t", @query) . " };\n\t\t$sides;\n\t};\n" if @query;
	$sides = "query: undefined; $sides";
	return $out . (length($sides) + length($r->{path}) + 20 <= $LINE_MAX ? " $sides };\n" :
		"\n\t\t$sides;\n\t};\n");
}

sub api_types($api) {
	my $was_line = 0;
	my $out = <<'END';
// SPDX-License-Identifier: Apache-2.0
// Generated from schema/api.json by `make reference`.

/** What every answer that is an object has. */
export interface Answer {
	data_version: number;
	query_ms: number;
}
END

	each_shape($api, sub {
		my $shape = api_script_shape(@_);
		my $is_line = $shape =~ tr/\n// == 1;

		$out .= "\n" if !$is_line || !$was_line;    # shapes of one line each are grouped
		$was_line = $is_line;
		$out .= $shape;
	});
	return $out . "\n/** What each route takes and gives. */\nexport interface Routes {\n" .
		join('', map { api_script_route($_) } @{ $api->{routes} }) . "}\n";
}

# ---- the API as a page ----

sub api_rows($members) {
	my $out = '';

	for my $key (keys_of($members)) {
		my ($type, $about) = note_of($members->{$key});

		$out .= "| `$key` | `" . $type =~ s/\|/ \\| /gr . '` | ' . cell($about) . " |\n";
	}
	return $out;
}

sub api_page_route($r) {
	my $answer = $r->{answer};

	return "\n### `$r->{method} $r->{path}`\n\n$r->{summary}." .
		(defined $r->{request} ? " Takes `$r->{request}`." : '') .
		' Answers' . join(',', map { " $_ `$answer->{$_}`" } keys_of($answer)) . '.' .
		($r->{flags} =~ /open/ ? ' Needs no token.' : '') .
		($r->{flags} =~ /changes/ ? ' Refused with `--read-only`.' : '') . "\n" .
		($r->{query} ? "\n| Parameter | Type | |\n|---|---|---|\n" . api_rows($r->{query}) : '');
}

sub api_page($api) {
	my $out = "<!-- Generated from schema/api.json by `make reference`. -->\n" .
		"# The API of the dashboard\n\n$api->{about}\n\n$api->{notation}\n";

	for my $group (distinct($api, 'group')) {
		$out .= "\n## $group\n" .
			join('', map { $_->{group} eq $group ? api_page_route($_) : () } @{ $api->{routes} });
	}
	$out .= "\n## Shapes\n";
	each_shape($api, sub {
		my ($list, $name, $shape) = @_;

		$out .= "\n### $name\n\n";
		$out .= "`$shape`\n" if !ref $shape;
		$out .= "With `data_version` and `query_ms`.\n\n" if ref $shape && $list eq 'answers';
		$out .= "| Member | Type | |\n|---|---|---|\n" . api_rows($shape)
			if ref $shape && keys_of($shape);
	});
	return $out;
}

1;
