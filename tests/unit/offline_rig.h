/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offline_rig.h - for tests of the commands that measure an engine without a server: an engine's
 * program whose times are known ($W are the options that start it), and a simulator ($S).
 */
#pragma once
#include "verb.h"

/*
 * The k-th call takes k ms by its own account, and the k-th load of the same $ASKED 5 k ms.
 * $ASKED gets each question. LACKS: features that it does not have. NO_TIMES: requests have none.
 * TELLS: of calls of that type it reports progress.
 */
static const char worker[] =
	"use strict; use JSON::PP; use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC sleep);\n"
	"my $j = JSON::PP->new->utf8->canonical;\n"
	"open my $s, '+<&=', $ENV{PROFLLM_WORKER_FD} or die; binmode $s;\n"
	"my $asked = $ENV{ASKED} // \"asked.$ENV{VERB_LINE}\";\n"
	"open my $log, '>>', $asked or die; $log->autoflush(1);\n"
	"my ($held, $calls, @held) = (0, 0);\n"
	"my $starts = 1; /\"load\"/ and $starts++ for do { open my $f, '<', $asked; <$f> };\n"
	"my %mean_s = (sha256 => 2e-6, xxhash => 1e-6, hash => 0.5e-6);\n"
	"sub take { my ($n, $t) = (shift, ''); while (length $t < $n) {\n"
	"  sysread($s, $t, $n - length $t, length $t) or exit 0 } $t }\n"
	"sub put { my $t = $j->encode(shift); syswrite $s, pack('N', length $t) . $t }\n"
	"sub span { my ($b, $s) = (int(clock_gettime(CLOCK_MONOTONIC) * 1e9), @_); sleep $s *"
	" 1.5;\n"
	"  (began_ns => $b, ended_ns => $b + int($s * 1e9 + 0.5)) }\n"
	"sub answer { my $q = shift; my $t = $q->{type};\n"
	"  my $name = $q->{function} // $q->{algorithm} // '';\n"
	"  return { skipped => \"No module named '$name'\" } if $name && $name eq $ENV{SKIP};\n"
	"  return { span(0.005 * $starts), compilation_s => 0.25,\n"
	"    phases => [{ name => 'weights', s => 0.5 }] } if $t eq 'load';\n"
	"  return { engine => 'told', vocab_size => 500, max_model_len => 4096, profile_to =>"
	" $ENV{PROFILER} || 'torch',\n"
	"    profile_dir => 'traces', device => 'paper' } if $t eq 'describe';\n"
	"  if ($t eq 'put') { @held = () if $q->{is_first}; push @held, @{$q->{requests}};\n"
	"    return { n => scalar @held } }\n"
	"  if ($t eq 'mm_stats') { my $i = 0; return { requests => { map { $i++ => { hash_secs"
	" => $i / 4,\n"
	"    num_encoder_calls => $i } } @held } } }\n"
	"  return { mean_s => $mean_s{$name}, std_s => 0.25e-6 } if $t eq 'hash';\n"
	"  if ($t eq 'blocks') { $held = 0 if $q->{is_first}; $held += @{$q->{ids}}; return { n"
	" => $held } }\n"
	"  return { times_s => [map { $_ / 10 } 1 .. $q->{trials}] } if $t eq 'block_hash';\n"
	"  return {} unless $t =~ /^(generate|chat|beam)$/;\n"
	"  return { span(++$calls / 1000), prompt_tokens => [map { $_->{prompt_len} } @held],\n"
	"    output_tokens => [map { $_->{output_len} * ($q->{n} || 1) } @held],\n"
	"    $ENV{NO_TIMES} ? () : (e2el_s => [map { $_ / 8 } 1 .. @held]),\n"
	"    finished => [map { 1 } @held] } }\n"
	"put({ type => 'hello', protocol => 1, engine => 'told', version => '9',\n"
	"  features => [grep { !$ENV{LACKS} || $ENV{LACKS} !~ /\\b$_\\b/ } qw(chat beam lora"
	" priority mm_stats async\n"
	"    profile)] });\n"
	"while (1) { my $q = $j->decode(take(unpack 'N', take(4)));\n"
	"  print $log $j->encode($q) . \"\\n\";\n"
	"  put({ id => $q->{id}, type => 'progress', done => $_, total => 3 }) for"
	" ($ENV{TELLS} || '') eq $q->{type} ? (1, 3) : ();\n"
	"  put({ id => $q->{id}, type => 'ok', %{answer($q)} }); last if $q->{type} eq"
	" 'shutdown' }\n";

static const char *const clock_varies[] = {
	"\"outside_clock_s\": ", "~of the time passed between", "~of the timed section passed",
	"outside the engine's clock: ", "from its start until", "of it: interpreter",
	".spawn_s", ".ready_s", NULL,
};
static const char *const http_varies[] = {
	"Median latency: ", "Output: ", "Timed: ", "A request's time: ", "-  ", "-profllm.reasons",
	"Engine: server", NULL,
};

#define E .mask = VERB_ERR_TIMES, .varies = clock_varies
#define H .mask = VERB_TIMES | VERB_FLAT, .varies = http_varies

static int offline_setup(void **state)
{
	FILE *f;

	if (verb_setup(state) < 0 || !(f = fopen("worker.pl", "w")))
		return -1;
	fputs(worker, f);
	fclose(f);
	f = fopen("talks.json", "w");
	fputs("[{\"conversations\": [{\"value\": \"abcdef\"}, {\"value\": \"yes, it is\"}]},"
	      " {\"conversations\": [{\"value\": \"ghijklm\"}, {\"value\": \"it is so\"}]},"
	      " {\"conversations\": [{\"value\": \"what is that\"}, {\"value\":"
	      " \"nothing\"}]}]", f);
	fclose(f);
	f = fopen("lines.txt", "w");
	for (int i = 0; i < 30; i++)
		fprintf(f, "Line %d of a short poem\n", i);
	fclose(f);
	setenv("SKIP", "", 1);
	verb_let("W", "--backend worker --worker-cmd 'perl worker.pl' --model sim --tokenizer sim");
	verb_let("H", "--worker-cmd 'perl worker.pl'");
	verb_sim("S", "--ttft-ms 1 --itl-ms 0.1 --requests asked.http");
	verb_free_port("P");
	return 0;
}
