#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# The .deb: installed by apt on a bare Debian 12, used, removed; its service's unit, and its dashboard as that
# unit starts it.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../cli", $FindBin::Bin;
use Cli;
use Packages;
use Test::More;

my $deb = package_file('profllm_*.deb');
my $root = bare_root('bookworm');
system('cp', $deb, "$root/profllm.deb");
my $r = in_root($root, 'apt-get update -q && apt-get install -q -y --no-install-recommends /profllm.deb',
	seconds => 600);
is($r->{status}, 0, 'apt installs it with what it depends on') or diag($r->{out}, $r->{err});
measures('the .deb on a bare Debian 12', $root);

$r = in_root($root, <<'END');
gzip -t /usr/share/man/man1/profllm-bench-serve.1.gz
bash -c '. /usr/share/bash-completion/completions/profllm && complete -p profllm'
test -s /usr/share/profllm/experiment-config.schema.json
profllm run --config /usr/share/doc/profllm/examples/quickstart.yaml --dry-run >/dev/null
profllm bench latency --backend sim --model demo --tokenizer sim --gpu h100-80gb --model-shape llama-3.1-8b \
	--max-model-len 8192 --input-len 16 --output-len 4 --batch-size 2 --num-iters-warmup 1 --num-iters 2
END
is($r->{status}, 0, 'manual page, completion, schema, configurations in YAML and a worker are there')
	or diag($r->{out}, $r->{err});

# The service without systemd: the words of ExecStart, as the user of sysusers.d.
$r = in_root($root, <<'END');
ls -l /etc/profllm/tokens
token=$(cut -d' ' -f2 /etc/profllm/tokens)
useradd -r -d /var/lib/profllm -m profllm
install -o profllm -m 600 /etc/profllm/tokens /tmp/tokens
. /etc/default/profllm-dashboard
exec_start=$(sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/profllm-dashboard.service)
command=$(echo "$exec_start" | sed "s,%d,/tmp,; s,\${STORE},$STORE,; s,\$OPTIONS,$OPTIONS,")
su profllm -s /bin/sh -c "$command" 2>/tmp/log &
for i in $(seq 100); do profllm dashboard --health 2>/dev/null && break; sleep 0.2; done
profllm dashboard --health
(umask 077; echo "$token" >token)
profllm ingest --server http://127.0.0.1:8080 --token-file token result.json
stat -c '%U %a' /var/lib/profllm/runs.db
END
is($r->{status}, 0, 'the command of the unit serves, is healthy and takes a result') or diag($r->{out},
	$r->{err});
like($r->{out}, qr/^-rw------- .* root root .*tokens$/m, 'the tokens are root\'s alone');
like($r->{out}, qr/^profllm 600$/m, 'the store is the service\'s alone');

SKIP: {
	skip 'there is no systemd-analyze', 2 unless -x '/usr/bin/systemd-analyze';
	my $unit = 'profllm-dashboard.service';
	# With the package's own files; a bare root has no systemd, and so neither its units nor kill.
	$r = run(command => ['systemd-analyze', 'verify', '--man=no', "--root=$root", $unit]);
	my @found = grep { /profllm/ && !/sysinit\.target not found|Command \/bin\/kill/ }
		split /\n/, "$r->{out}$r->{err}";
	is("@found", '', 'systemd-analyze verify finds nothing in the unit');
	$r = run(command => ['systemd-analyze', 'security', '--offline=true', '--threshold=25',
		"--root=$root", $unit]);
	is($r->{status}, 0, 'its exposure is at most 2.5 of 10') or diag($r->{out}, $r->{err});
	note($1) if $r->{out} =~ /(Overall exposure level.*)/;
}

$r = in_root($root, 'apt-get purge -q -y profllm && ! [ -e /usr/bin/profllm ] && ' .
	'! [ -e /etc/profllm ] && ls /var/lib/profllm/runs.db');
is($r->{status}, 0, 'purge removes it, and leaves the store') or diag($r->{out}, $r->{err});
done_testing();
