#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# run-roles.t - `profllm run` with several servers: the order of starts, which servers get whose
# address, where the load goes, and what is reported when one of them fails. Each server's truth
# file shows what it did.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Cwd ();
use JSON::PP ();
use Test::More;
use Time::HiRes qw(time);

my $here = Cwd::getcwd();
my $mark = "$$-" . int(time * 1000);
$ENV{ROLES_TEST} = $mark;
$ENV{XDG_RUNTIME_DIR} = "$here/state";

sub experiment {
	my ($name, $servers, $load) = @_;
	spew("$name.yaml", <<"END");
name: $name
servers:
$servers
benchmark: {mode: serve, dataset_name: random, random_input_len: 320, random_output_len: 5,
            num_prompts: 6, request_rate: 30, tokenizer: sim, model: sim@{[$load || '']}}
telemetry: {enabled: false}
END
	my $r = run(args => ['run', '--config', "$name.yaml", '--output', "$name.json"]);
	my $d = -s "$name.json" ? JSON::PP::decode_json(slurp("$name.json")) : {};
	return ($r, $d);
}

sub truth {
	return map { JSON::PP::decode_json($_) } split /\n/, slurp("$here/$_[0].truth") // '';
}

sub left {
	return grep { (slurp("$_/environ") // '') =~ /ROLES_TEST=\Q$mark\E\0/ &&
		(slurp("$_/cmdline") // '') =~ /\0sim\0|^sleep\0/ } glob '/proc/[0-9]*';
}

subtest 'disaggregated prefill' => sub {
	my ($r, $d) = experiment('split', <<"END");
  - {name: front, role: proxy, command: sim, after: [before, behind], truth: $here/front.truth}
  - {name: behind, role: decode, command: sim, after: [before], truth: $here/behind.truth}
  - {name: before, role: prefill, command: sim, truth: $here/before.truth}
END
	is $r->{status}, 0 or diag $r->{err};
	is $d->{status}, 'completed';
	is_deeply [($r->{out} . $r->{err}) =~ /^Starting (\w+) at/mg], [qw(before behind front)],
		'they start in the order of after';
	my %role = map { $_->{name} => $_->{role} } @{$d->{config}{servers}};
	is_deeply \%role, { front => 'proxy', behind => 'decode', before => 'prefill' };
	is $d->{results}{completed_requests}, 6;
	my @front = grep { defined $_->{forwarded_id} } truth('front');
	my %before = map { $_->{request_id} => $_ } truth('before');
	my %behind = map { $_->{request_id} => $_ } truth('behind');
	cmp_ok scalar @front, '>=', 6, 'load goes to the proxy';
	is scalar(grep { my $id = $_->{forwarded_id}; !$before{$id} || !$behind{$id} ||
		$before{$id}{output_tokens} != 1 || $behind{$id}{cached_tokens} < 304 }
		grep { $before{$_->{forwarded_id}}{prompt_tokens} == 320 } @front), 0,
		'each request is prefilled by one and decoded by the other';
	# The servers' own account of the first token, the last six requests: those of the load.
	my ($least, $seen) = (0, $d->{results}{mean_ttft_ms});
	for my $f (@front[-6 .. -1]) {
		my ($p, $b) = ($before{$f->{forwarded_id}}, $behind{$f->{forwarded_id}});
		$least += ($p->{send_ns}[0] - $p->{recv_ns} + $b->{send_ns}[0] - $b->{recv_ns}) / 6e6;
	}
	cmp_ok $seen, '>=', $least, 'the time to the first token holds both';
	cmp_ok $seen - $least, '<', 100, 'and little else';
	is_deeply [left()], [], 'no server is left';
};

subtest 'a store that two servers share' => sub {
	my $connector = '{kv_connector: LMCacheConnectorV1, kv_role: kv_both}';
	my $env = '{LMCACHE_REMOTE_URL: "lm://$(store.host):$(store.port)", ' .
		'LMCACHE_MAX_LOCAL_CPU_SIZE: "0"}';
	my ($r, $d) = experiment('shared', <<"END", ', num_warmups: 0');
  - {name: store, role: cache, command: sim}
  - {name: one, command: sim, after: [store], kv_transfer_config: $connector, env: $env,
     truth: $here/one.truth}
  - {name: two, command: sim, after: [store], kv_transfer_config: $connector, env: $env,
     truth: $here/two.truth}
  - {name: front, role: proxy, command: sim, after: [one, two]}
END
	is $r->{status}, 0 or diag $r->{err};
	my @first = (truth('one'), truth('two'));
	# The initial test sends the first prompt of the load before it.
	cmp_ok scalar(grep { ($_->{transferred_tokens} || 0) > 0 } @first), '>=', 1,
		'one of them brings what the other has computed';
	like slurp('shared.json'), qr{lm://127\.0\.0\.1:\d+|\$\(store\.host\)};
	is_deeply [left()], [];
};

# Each of the two waits for the other before it serves: one after another they would never be ready.
subtest 'servers that wait for nobody start at once' => sub {
	spew('meet', <<"END");
#!/bin/sh
touch "$here/\$1.here"
while [ ! -e "$here/\$2.here" ]; do sleep 0.02; done
shift 2
exec "$program" sim "\$@"
END
	chmod 0755, 'meet';
	my $kind = 'command: [./meet, %s, %s], model: sim, ready_timeout_s: 20';
	my ($r, $d) = experiment('meeting', <<"END");
  - {name: one, @{[sprintf $kind, 'one', 'two']}}
  - {name: two, @{[sprintf $kind, 'two', 'one']}}
  - {name: front, role: proxy, command: sim, after: [one, two]}
END
	is $r->{status}, 0 or diag $r->{err}, explain $d->{error};
	my @said = ($r->{out} . $r->{err}) =~ /^(Starting \w+ at|\w+ is ready)/mg;
	is_deeply [@said[0, 1, 4, 5]], ['Starting one at', 'Starting two at', 'Starting front at',
		'front is ready'], 'who waits for others starts when these are ready';
	is_deeply [sort @said[2, 3]], ['one is ready', 'two is ready'];
	is_deeply [left()], [];

	spew('never', "#!/bin/sh\nexec sleep 1000\n");
	chmod 0755, 'never';
	($r, $d) = experiment('one-fails', <<'END');
  - {name: slow, command: [./never], model: sim}
  - {name: bad, role: decode, command: sim, fail_start: oom}
END
	is $r->{status}, 1;
	like $d->{error}{reason}, qr/^bad: /, 'the one that failed is named';
	is_deeply [left()], [], 'and the other one, which was not ready yet, is ended';
};

subtest 'mistakes and failures' => sub {
	my ($r, $d) = experiment('nobody', <<'END');
  - {name: a, command: sim, extra_args: [--requests, "$(b.port)"]}
END
	is $r->{status}, 2, 'before anything is started';
	like $r->{err}, qr/\$\(b\.port\): this experiment has no server b/;

	($r, $d) = experiment('dies', <<'END');
  - {name: before, role: prefill, command: sim}
  - {name: behind, role: decode, command: sim, fail_start: oom, after: [before]}
  - {name: front, role: proxy, command: sim, after: [before, behind]}
END
	is $r->{status}, 1;
	is_deeply [@{$d->{error}}{qw(stage category)}], ['start', 'out of memory'];
	like $d->{error}{reason}, qr/^behind: /, 'the one that failed is named';
	like $d->{error}{log_tail}, qr/CUDA out of memory/;
	unlike $r->{out} . $r->{err}, qr/Starting front/, 'who waits for it is not started';
	is_deeply [left()], [], 'and the other one is ended';

	($r, $d) = experiment('half', <<'END');
  - {name: before, role: prefill, command: sim, die_after: 4req}
  - {name: behind, role: decode, command: sim}
  - {name: front, role: proxy, command: sim, after: [before, behind]}
END
	is $r->{status}, 1;
	is $d->{status}, 'failed';
	like $d->{error}{reason}, qr/\bbefore\b/, 'one that dies under load is named';
	like $d->{error}{log_tail}, qr/the engine died/;
	is_deeply [left()], [];
};

stop_all();
done_testing();
