# SPDX-License-Identifier: Apache-2.0
# Sweep.pm - sweeps of a simulator: running one, and reading the experiment it leaves in results/.
package Sweep;
use strict;
use warnings;
use Cli;
use Exporter qw(import);
use File::Find;
use IO::Socket::INET;
use JSON::PP ();

our @EXPORT = qw(sweep begin_sweep sweep_args params summary files stamps servers url server_is_up
	unmeasured);

# A port of our own; servers of a sweep follow each other on it.
my $port = free_port();

sub url { return "http://localhost:$port" }

# sweep_args(name, serve_params, bench_params, num_runs, sim => [...], bench => [...],
# serve_cmd, bench_cmd, verb, more => [...]): the simulator by default, as fast as it can.
sub sweep_args {
	my ($name, %o) = @_;
	my @sim = @{$o{sim} || [qw(--ttft-ms 1 --itl-ms 0)]};
	my @bench = (@{$o{bench} || []}, qw(--model sim --tokenizer sim --random-input-len 8
		--random-output-len 4 --ready-check-timeout-sec 0 --disable-tqdm --port), $port);

	return ('bench', 'sweep', $o{verb} || 'serve',
		'--serve-cmd', $o{serve_cmd} || "$program sim --port $port @sim",
		'--bench-cmd', $o{bench_cmd} || "$program bench serve @bench",
		(map { my $k = $_; defined $o{$k} ? ('--' . ($k =~ tr/_/-/r), $o{$k}) : () }
			qw(serve_params bench_params num_runs)),
		defined $name ? ('-e', $name) : (), @{$o{more} || []});
}

sub begin_sweep { return begin(args => [sweep_args(@_)]) }
sub sweep { return finish(begin_sweep(@_)) }

# A parameter file; of an object, order names its keys. Keys of combinations as sorted backwards,
# num_prompts before max_concurrency.
sub params {
	my ($path, $value, $order) = @_;
	my $json = JSON::PP->new->canonical->sort_by(sub { $JSON::PP::b cmp $JSON::PP::a });

	return spew($path, $json->encode($value)) unless $order;
	return spew($path, '{' . join(', ', map { "\"$_\": " . $json->encode($value->{$_}) } @$order) . '}');
}

sub read_json { return json_of(slurp($_[0])) }

# The lines of summary.csv as hashes; whole numbers without ".0", which a column with gaps has.
sub summary {
	my ($name) = @_;
	my @rows = map { [csv($_)] } split /\n/, slurp("results/$name/summary.csv");
	my @head = @{shift @rows};

	return [map { my $r = $_; +{ map { $head[$_] => $r->[$_] =~ s/^(\d+)\.0$/$1/r } 0 .. $#head } } @rows];
}

sub csv {
	my ($line) = @_;
	my @cells;

	push @cells, defined $1 ? $1 =~ s/""/"/gr : $2
		while $line =~ /\G(?:"((?:[^"]|"")*)"|([^,]*))(?:,|$)/g && $-[0] < length $line;
	push @cells, '' if $line =~ /,$/;
	return @cells;
}

sub files {
	my ($name) = @_;
	my @found;

	find({ no_chdir => 1, wanted => sub {
		push @found, $File::Find::name =~ s/^results\/\Q$name\E\///r if -f $_;
	} }, "results/$name");
	return sort @found;
}

# What tells a file that was written again.
sub stamps {
	my ($name) = @_;
	return map { my @s = stat "results/$name/$_"; $_ => "$s[1] $s[9]" } files($name);
}

sub servers { return @{read_json("results/$_[0]/servers.json")} }

sub server_is_up {
	return defined IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Timeout => 1);
}

# Of a line of summary.csv what does not depend on the measurement.
sub unmeasured {
	my ($r) = @_;
	return { map { $_ => $r->{$_} } grep { !/^(date|duration|errors|.*(throughput|latenc|queue_times|per_s|ttft|tpot|itl|e2el|concurrent).*|)$/ }
		keys %$r };
}

1;
