# SPDX-License-Identifier: Apache-2.0
# Experiment.pm - schema/experiment.json as a JSON Schema, TypeScript types and a page; see gen.pl.
#
# Members of a field: key, unit, type, group, since and definition always; also values, pattern,
# min (of JSON Schema), open (true: further keys; "text": further keys that are texts), from
# (what another schema declares) and when (it is not always there).
#
# Paths become nodes: "a.b[].c" is a, in it b, in it "[]", in it c. A field that has "from" takes
# in what another schema declares: the engine's arguments, the keys of a result file. A node has
# name (a key, "[]", or with is_pattern an expression), type (undef: an object that nothing
# declares), about, child; also ref, field, is_required, may_be_nan and open ('', 'any', 'text').
package Gen::Experiment;
use strict;
use warnings;
use feature 'signatures';
no warnings 'experimental::signatures';

use Exporter qw(import);
use Gen::Schema;

our @EXPORT_OK = qw(check_experiment experiment_page experiment_schema experiment_types);

sub node_child($n, $name) {
	for my $child ($n ? @{ $n->{child} } : ()) {
		return $child if $child->{name} eq $name;
	}
	return undef;
}

# The node at a path; those on the way are made.
sub node_at($n, $path) {
	for my $name (map { /^(.+)\[\]$/ ? ($1, '[]') : $_ } split /\./, $path) {
		my $child = node_child($n, $name);

		if (!$child) {
			$child = { name => $name, about => '', open => '', child => [] };
			push @{ $n->{child} }, $child;
		}
		$n = $child;
	}
	return $n;
}

sub alternatives_of($n) { return split / or /, $n->{type} // 'object' }

# path once for every value of its first placeholder, in the order of the names.
sub spread_places($result, $path) {
	for my $place (keys_of($result->{names})) {
		next if index($path, "<$place>") < 0;
		return map { spread_places($result, $path =~ s/<\Q$place\E>/$_->{name}/r) }
			@{ $result->{names}{$place} };
	}
	return $path;
}

sub add_result_field($result, $root, $path, $f, $is_required) {
	for my $one (spread_places($result, $path)) {
		my $n = node_at($root, $one);

		next if $n->{type};    # declared by the document itself
		$n->{is_pattern} = $n->{name} =~ s/^(.*?)<p>(.*)$/^$1\[0-9.]+$2\$/s;
		@$n{qw(type about field may_be_nan)} = ($f->{type}, $f->{definition}, $f, 1);
		$n->{is_required} = $is_required && member($f, 'when') eq '';
	}
}

# Where the document has a key of a result's "profllm"; absent: in its results.
my %MOVED = (system => 'system',
	(map { $_ => 'budget' } qw(client_lag_ms send_lag_ms skew_ms connect_ms stamp_source
		requests_user_stamped shared_read_share not_one_token_share usage_differs_share)),
	(map { $_ => 'dropped' } qw(verdict reasons options provenance tags profiled)));

# The keys of a result that belong to one part of a document: result, budget or system.
sub add_result($result, $root, $from) {
	my @spreads = map { $_->{name} } @{ $result->{names}{spread} };

	for my $f (@{ $result->{fields} }) {
		my @paths = $f->{key};

		@paths = map { $f->{key} =~ s/<spread>/$_/r } @spreads if $f->{key} =~ /<spread>/;
		for my $path (@paths) {
			my $ours = $path =~ /^profllm\.(.*)/ ? $1 : undef;
			my $moved = defined $ours && $ours =~ /^([^.\[]*)/ ? $MOVED{$1} // '' : '';

			if ($from eq 'result' && !$moved && $path ne 'completed' && $path ne 'failed') {
				add_result_field($result, $root, $path, $f, 0);
			} elsif ($from eq $moved && $from eq 'budget') {
				add_result_field($result, $root, $ours, $f, 1);
			} elsif ($from eq $moved && $ours =~ /^system.(.*)/) {
				add_result_field($result, $root, $1, $f, 0);
			}
		}
	}
}

my %ARGUMENT_TYPE = (flag => 'bool or null', switch => 'bool or null', int => 'int or null',
	human => 'int or null', float => 'float or null', text => 'text or null',
	list => 'list of any or text or null');

sub add_arguments($schema, $root) {
	for my $v (@{ $schema->{arguments} }) {
		my $n = node_at($root, $v->{name} =~ tr/-/_/r);

		$n->{type} = $v->{kind} =~ /^(int|human)$/ && takes_words($v) ? 'int or text or null' :
			$ARGUMENT_TYPE{ $v->{kind} } // 'any';
		$n->{about} = $v->{about};
	}
}

sub tree($all, $list, $has_arguments) {
	my $root = { name => '', about => '', open => '', child => [] };
	my $fields = $all->{experiment}{$list};

	for my $f (@$fields) {
		my $n = node_at($root, $f->{key});

		@$n{qw(field type about)} = ($f, $f->{type}, $f->{definition});
		$n->{is_required} = member($f, 'when') eq '';
		$n->{open} = ref $f->{open} ? 'any' : 'text' if $f->{open};
	}
	for my $f (grep { $_->{from} } @$fields) {
		my ($n, $from) = (node_at($root, $f->{key}), $f->{from});

		if ($from eq 'engine_args') {
			$n->{open} = 'any';
			add_arguments($all->{engine_args}, $n) if $has_arguments;
		} elsif ($from eq 'experiment') {
			$n->{ref} = $from;
		} else {
			add_result($all->{result}, $n, $from);
			$n->{open} = 'text' if $from eq 'result';    # --metadata
		}
	}
	return $root;
}

sub check_experiment($all) {
	my $schema = $all->{experiment};
	my @always = qw(key type group since definition);

	for my $list (qw(fields suite)) {
		is_list($schema->{$list}) or die "expected a list \"$list\"\n";
		for my $f (@{ $schema->{$list} }) {
			my $key = member($f, 'key');

			member($f, $_) ne '' or die "$key: no \"$_\"\n" for @always;
			check_known($f, $key, @always, qw(unit values pattern min open from when));
			$f->{definition} =~ /\.$/ or die "$key: the definition is not a sentence\n";
			check_group($schema, $f, $key);
		}
		check_unique(map { $_->{key} } @{ $schema->{$list} });
	}
}

# ---- the tree as a JSON Schema: each function returns members ----

my %JSON_TYPE = (text => 'string', int => 'integer', float => 'number', bool => 'boolean',
	object => 'object', null => 'null');

# The alternatives of a type, less what lists hold: "list of text or null" is a list or null.
sub schema_type($type, $may_be_null = 0) {
	my @types;

	if ($type =~ /^list of /) {
		@types = ('array', $type =~ / or null/ ? 'null' : ());
		push @types, 'string' if $type =~ / or text or null/;    # a list, or its one element
		return (type => \@types);
	}
	for my $one (split / or /, $type) {
		push @types, $one =~ /^list of/ ? 'array' : $JSON_TYPE{$one} // ();
		last if $one =~ /^list of/;
	}
	push @types, 'null' if $may_be_null && !has(\@types, 'null');
	return (type => \@types);
}

sub schema_values($n) {
	my $f = $n->{field} // {};
	my @members;

	push @members, enum => [@{ $f->{values} }, has([alternatives_of($n)], 'null') ? \'null' : ()]
		if $f->{values};
	push @members, pattern => $f->{pattern} if member($f, 'pattern') ne '';
	push @members, minimum => $f->{min} if $f->{min};
	push @members, maximum => $f->{max} if $f->{max};
	return @members;
}

sub schema_members($n) {
	my @children = grep { $_->{name} ne '[]' } @{ $n->{child} };
	my @members;

	for my $is_pattern (0, 1) {
		my @some = grep { !!$_->{is_pattern} == $is_pattern } @children;

		push @members, ($is_pattern ? 'patternProperties' : 'properties') =>
			object(map { $_->{name} => object(schema_node($_)) } @some) if @some;
	}
	push @members, required => [map { $_->{is_required} ? $_->{name} : () } @children];
	push @members, additionalProperties => $n->{open} eq 'text' ? object(schema_type('text or null')) :
		$n->{open} ? \'true' : \'false';
	return @members;
}

sub schema_items($n, $element) {
	my $item = node_child($n, '[]');

	return (items => object('$ref' => '#/$defs/experiment')) if $n->{ref};
	return (items => object(schema_type($element), schema_members($item)))
		if $element =~ /^object/ && $item && @{ $item->{child} };
	return (items => object()) if $element =~ /^any/;
	return (items => object(schema_type($element, $n->{may_be_nan}),
		$element =~ /^list of (.*)/ ? schema_items($n, $1) : ()));
}

sub schema_node($n) {
	my $type = $n->{type} // 'object';
	my @members = $n->{about} ne '' ? (description => $n->{about}) : ();

	return @members if $type eq 'any';
	push @members, schema_type($type, $n->{may_be_nan} && $type =~ /float/), schema_values($n);
	push @members, schema_items($n, $1) if $type =~ /list of (.*)/;
	# An object whose keys nothing declares may hold any.
	push @members, schema_members($n)
		if has([alternatives_of($n)], 'object') && (@{ $n->{child} } || $n->{open});
	return @members;
}

# What belongs together: a status and its error, a mode and its result.
sub schema_conditions {
	my $text = '{"if": {"properties": {"status": {"const": "failed"}}},
		"then": {"properties": {"error": {"type": "object"}}}},
		{"if": {"properties": {"status": {"const": "completed"}}},
		"then": {"properties": {"error": {"type": "null"}, "results": {"type": "object"},
		"trust": {"type": "object"}, "environment": {"type": "object"}}}}';

	for my $mode (qw(throughput latency startup)) {
		$text .= ', {"if": {"properties": {"config": {"type": "object",
			"properties": {"mode": {"const": "' . $mode . '"}}}, "results": {"type": "object"}}},
			"then": {"properties": {"results": {"type": "object",
			"required": ["' . $mode . '"]}}}}';
	}
	return parse(\"[$text]");
}

sub experiment_schema($all) {
	return object('$schema' => 'https://json-schema.org/draft/2020-12/schema',
		'$id' => 'urn:profllm:experiment:1', title => 'ProfLLM: an experiment, or a suite of them',
		oneOf => \'[{"$ref": "#/$defs/experiment"}, {"$ref": "#/$defs/suite"}]',
		'$defs' => object(
			experiment => object(title => 'An experiment', type => 'object',
				schema_members(tree($all, 'fields', 1)), allOf => schema_conditions()),
			suite => object(title => 'A suite', type => 'object',
				schema_members(tree($all, 'suite', 1)))));
}

# ---- the tree as TypeScript ----

my $VALUES_PER_LINE = 6;
my %SCRIPT_TYPE = (text => 'string', bool => 'boolean', null => 'null');

sub script_object($n, $depth) {
	return 'Record<string, Json>' if !$n || (!@{ $n->{child} } && !$n->{open});
	return "{\n" . script_members($n, $depth + 1) . "\t" x $depth . '}';
}

sub script_list($n, $element, $depth) {
	return 'ExperimentDocument[]' if $n->{ref};
	return script_object(node_child($n, '[]'), $depth) . '[]' if $element eq 'object';
	return script_list($n, $1, $depth) . '[]' if $element =~ /^list of (.*)/;
	my $type = $element eq 'text' ? 'string' : 'number';
	return $n->{may_be_nan} ? "($type | null)[]" : "$type\[]";
}

sub script_type($n, $depth) {
	my @types = alternatives_of($n);
	my $values = $n->{field} && $n->{field}{values};
	my @out;

	for my $type (@types) {
		if ($type eq 'object') {
			push @out, script_object($n, $depth);
		} elsif ($type =~ /^list of (.*)/) {
			push @out, script_list($n, $1, $depth);
		} elsif ($values && $type ne 'null') {
			my @rest = map { ref $_ ? $$_ : "'$_'" } @$values;
			my @lines;

			push @lines, join ' | ', splice @rest, 0, $VALUES_PER_LINE while @rest;
			push @out, join " |\n" . "\t" x ($depth + 1), @lines;
		} else {
			push @out, $SCRIPT_TYPE{$type} // 'number';
		}
	}
	push @out, 'null' if $n->{may_be_nan} && has(\@types, 'float') && !has(\@types, 'null');
	return join ' | ', @out;
}

sub script_members($n, $depth) {
	my $out = '';

	for my $child (grep { $_->{name} ne '[]' } @{ $n->{child} }) {
		my $quote = $child->{name} =~ /-/ ? "'" : '';

		$out .= "\t" x $depth;
		# "^p[0-9.]+_ttft_ms$" as `p${number}_ttft_ms`.
		$out .= $child->{is_pattern} && $child->{name} =~ /^\^(.*?)\[.*?\+(.*)\$$/ ?
			"[key: `$1\${number}$2`]: " :
			"$quote$child->{name}$quote" . ($child->{is_required} ? ': ' : '?: ');
		$out .= script_type($child, $depth) . ";\n";
	}
	return $out . ($n->{open} ? "\t" x $depth . "[key: string]: unknown;\n" : '');
}

sub experiment_types($all) {
	return <<'END' .
// SPDX-License-Identifier: Apache-2.0
// Generated from schema/experiment.json by `make reference`.

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** What `profllm run` writes of one experiment. */
export interface ExperimentDocument {
END
		script_members(tree($all, 'fields', 0), 1) . <<'END' .
}

/** What `profllm run` writes of several. */
export interface SuiteDocument {
END
		script_members(tree($all, 'suite', 0), 1) . "}\n";
}

sub experiment_page($all) {
	my $schema = $all->{experiment};
	my $out = <<'END';
<!-- Generated from schema/experiment.json by `make reference`. -->
# The document of an experiment

What `profllm run --output` writes: one JSON object per experiment, whatever came of
it, and one with all of them for a suite. It is strict JSON: no `NaN` and no
`Infinity`; a number that is not known is null. `profllm run --print-schema` prints the
JSON Schema (draft 2020-12) that holds it, with every engine argument of
[the server](engine-args.md); `make install` puts it into `share/profllm`. A dot leads
into an object, `[]` into the elements of a list. Every key is always there unless its
line says when.
END

	for my $group (@{ $schema->{groups} }) {
		$out .= "\n## $group->{title}\n\n$group->{about}\n\n" .
			"| Key | Unit | Type | Definition |\n|---|---|---|---|\n";
		for my $f (@{ $schema->{fields} }, @{ $schema->{suite} }) {
			next if $f->{group} ne $group->{name};
			my @values = map { '`' . (ref $_ ? '' : $_) . '`' } @{ $f->{values} // [] };
			my $choice = @values > 1 ? ' One of ' . join(', ', @values) . '.' : '';

			$out .= "| `$f->{key}` | " . member($f, 'unit') . " | $f->{type} | " .
				cell($f->{definition}) . $choice . present($f) . " |\n";
		}
	}
	return $out;
}

1;
