#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Prompts against the server's own tokenizer (serve spec 2.9): random prompts that the server
# finds too long are cut to their length, each to a part of itself; other datasets are compared.
# suite: shared
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use File::Temp ();
use IO::Socket::INET ();
use JSON::PP ();
use LoadTest;
use POSIX ();
use Test::More;

my $dir = File::Temp->newdir;
my $json = JSON::PP->new->utf8;

# A tokenizer of the 256 bytes and of words like " a" and " aa", spelled as byte-level
# vocabularies spell them: most words of the sim vocabulary are three tokens here.
sub letter_tokenizer
{
	my (%vocab, @merge, $extra);
	for my $byte (0 .. 255) {
		my $plain = ($byte >= 33 && $byte <= 126) || ($byte >= 161 && $byte <= 172) || $byte >= 174;
		$vocab{chr($plain ? $byte : 256 + $extra++)} = $byte;
	}
	for my $letter ('a' .. 'z') {
		for my $pair ("\x{120} $letter", "\x{120}$letter $letter") {
			push @merge, $pair;
			$vocab{$pair =~ s/ //r} = 255 + @merge;
		}
	}
	my %level = (type => 'ByteLevel', add_prefix_space => JSON::PP::false,
		trim_offsets => JSON::PP::true, use_regex => JSON::PP::true);
	my $path = "$dir/tokenizer.json";
	open(my $f, '>:raw', $path) or die "$path: $!";
	print $f $json->encode({ version => '1.0', added_tokens => [], normalizer => undef,
		pre_tokenizer => {%level}, post_processor => undef, decoder => {%level},
		model => { type => 'BPE', vocab => \%vocab, merges => \@merge } });
	close($f) or die "$path: $!";
	return $path;
}

my $tokenizer = letter_tokenizer();
my @length = ('--random-input-len', '40', '--random-output-len', '2', '--num-prompts', '100');

{
	my $sim = sim('--ttft-ms', '1', '--tokenizer', $tokenizer);
	my $run = serve($sim, @length, '--dump-workload', "$dir/sent");
	my @sent = read_lines("$dir/sent");
	my %body = map { ($_->{request_id} // '') => $_ } grep { $_->{path} =~ /completions/ }
		read_lines($sim->{requests});
	my (%seen, $parts);

	is($run->{status}, 0, 'another tokenizer: exit status') or diag($run->{err});
	like($run->{out},
		qr/^WARNING: tokenizer mismatch \(server=\d+, expected=\d+\), re-aligning prompts\.$/m,
		'another tokenizer: it is said');
	is(scalar(@sent), 100, 'every prompt is in the dump');
	for my $one (@sent) {
		my $got = $body{$one->{request_id}}{body};
		$got = $json->decode($got) unless ref $got;
		$seen{$got->{prompt}}++;
		$parts++ if $got->{prompt} eq $one->{prompt};
	}
	is($parts, 100, 'what is dumped is what is sent');
	# Prompts of broken bytes can be alike; texts that were mixed up would be alike by dozens.
	cmp_ok(scalar(keys %seen), '>=', 95, 'no prompt got the text of another');
	# A text cut between bytes of a character may count a few tokens more; uncut, about 110.
	is_deeply([grep { $_ > 46 } @{ $run->{result}{input_lens} }], [],
		'prompts have the asked length for the server');
}

# The same tokenizer on both sides: nothing to do, nothing said.
{
	my $sim = sim('--ttft-ms', '1');
	my $run = serve($sim, @length);

	is($run->{status}, 0, 'same tokenizer: exit status') or diag($run->{err});
	unlike($run->{out}, qr/WARNING: (tokenizer mismatch|.tokenize)/, 'same tokenizer: silence');
}

# Other datasets are not touched; the disagreement is a warning.
{
	open(my $f, '>:raw', "$dir/own.jsonl") or die $!;
	print $f qq({"prompt": "line $_ of my own prompts"}\n) for 1 .. 20;
	close($f) or die $!;
	my $sim = sim('--ttft-ms', '1', '--tokenizer', $tokenizer);
	my $run = serve($sim, '--dataset-name', 'custom', '--dataset-path', "$dir/own.jsonl",
		'--custom-output-len', '2', '--num-prompts', '20',
		'--max-error-rate', '1');

	is($run->{status}, 0, 'custom: exit status') or diag($run->{err});
	like($run->{err}, qr/the server's tokenizer gives another length than ours for 16 of 16 prompts/,
		'custom: the disagreement is said');
	is($run->{result}{completed}, 20, 'custom: everything is sent');
}

# llama.cpp's server has a /tokenize too, which takes another name of the prompt and finds no
# tokens in ours: that says nothing about the tokenizer.
{
	my $listen = IO::Socket::INET->new(Listen => 64, LocalAddr => '127.0.0.1') or die $!;
	my $pid = fork // die $!;

	if (!$pid) {
		while (my $c = $listen->accept) {
			my ($line, $length) = (scalar(<$c>) // '', 0);
			while (defined(my $field = <$c>)) {
				last if $field !~ /\S/;
				$length = $1 if $field =~ /^content-length: *(\d+)/i;
			}
			read($c, my $body, $length);
			my $is_asked = $line =~ m{/tokenize};
			my $text = $is_asked ? '{"tokens":[]}' : '{}';
			printf $c "HTTP/1.1 %s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
				$is_asked ? '200 OK' : '404 Not Found', length($text), $text;
			close($c);
		}
		POSIX::_exit(0);
	}
	my $run = serve('http://127.0.0.1:' . $listen->sockport, '--dataset-name', 'custom',
		'--dataset-path', "$dir/own.jsonl", '--custom-output-len', '2', '--num-prompts', '20',
		'--max-error-rate', '1');

	kill 'KILL', $pid;
	waitpid $pid, 0;
	is($run->{result}{failed}, 20, 'a /tokenize of another kind: the load was tried');
	unlike($run->{err}, qr/another length/, 'a /tokenize of another kind: nothing is said');
}
done_testing();
