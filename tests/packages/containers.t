#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Images, built and run by podman without a network: the client measures the simulator, the dashboard keeps
# its
# store; then compose.yaml by podman-compose with a real PostgreSQL, whose image is made here from Debian's
# package. Sizes have limits.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../cli", $FindBin::Bin;
use Cli;
use Containers;
use Cwd qw(getcwd);
use Packages;
use Test::More;

my %mb_max = (client => 32, sim => 20, dashboard => 40);
my $here = getcwd();
my $mark = "t$$";
$ENV{XDG_RUNTIME_DIR} = "$here/state";
mkdir "$here/state", 0700;
mild_podman($here, qq{[network]\nnetwork_backend = "netavark"\n});
plan skip_all => 'there is no podman in PATH' unless is_there('podman');

END {
	my $status = $?;
	if ($here) {
		chdir $here;
		system("podman rm -f -t 1 sim-$mark dash-$mark >/dev/null 2>&1");
		system('cd compose 2>/dev/null && podman-compose down -v >/dev/null 2>&1');
		system("podman rmi -f $_ >/dev/null 2>&1") for map { "localhost/$_-$mark" } keys %mb_max,
			'postgres';
	}
	$? = $status;
}

sub image { return "localhost/$_[0]-$mark" }

for my $kind (sort keys %mb_max) {
	# No interface but loopback: nothing can be downloaded.
	my $r = run(command => ['unshare', '--net', "$top/packaging/container/build-image.sh", $kind,
		'podman',
		image($kind), $program], seconds => 200, env => { SBOM => "$kind.spdx.json" });
	is($r->{status}, 0, "the image of the $kind is built without a network") or diag($r->{err});
	my $bytes = podman('image', 'inspect', '-f', '{{.Size}}', image($kind))->{out};
	cmp_ok($bytes / 1e6, '<', $mb_max{$kind}, sprintf "it has %.1f MB, at most %d", $bytes / 1e6,
		$mb_max{$kind});
	cmp_ok(scalar @{json_of(slurp("$kind.spdx.json"))->{packages}}, '>', 4, 'and a bill of materials');
}
is(run(command => ["$top/packaging/container/build-image.sh", 'other'])->{status}, 2,
	'an unknown kind is refused');

my $r = podman('run', '-d', '--name', "sim-$mark", '--network', 'none', image('sim'), '--port', '8000',
	'--ttft-ms', 20,
	'--itl-ms', 5);
is($r->{status}, 0, 'the simulator starts') or diag($r->{err});
wait_for('the simulator', sub { podman('logs', "sim-$mark")->{err} =~ /serving/ ||
	podman('logs', "sim-$mark")->{out} =~ /serving/ });
mkdir 'results';
chmod 0777, 'results';
$r = podman('run', '--rm', '--network', "container:sim-$mark", '-v', "$here/results:/work", image('client'),
	qw(bench serve --port 8000 --model sim --tokenizer sim --num-prompts 50 --max-concurrency 5
	--random-input-len 64 --random-output-len 16 --output-json result.json));
is($r->{status}, 0, 'the client\'s image measures it') or diag($r->{err});
like($r->{out}, qr/^Successful requests: +50 *$/m, 'all of its requests');
ok(-s 'results/result.json', 'and the result is in the folder that was mounted');

# The dashboard alone, read-only but for its volume.
spew('tokens', 'admin 0123456789abcdef0123456789abcdef upload');
chmod 0644, 'tokens';
$r = podman('run', '-d', '--name', "dash-$mark", '--read-only', '--tmpfs', '/tmp', '--cap-drop', 'ALL',
	'--network', 'none',
	'-v', "$here/tokens:/run/secrets/tokens:ro", image('dashboard'));
is($r->{status}, 0, 'the dashboard starts') or diag($r->{err});
wait_for('its health check', sub { !podman('healthcheck', 'run', "dash-$mark")->{status} });
pass('and its health check passes');
$r = podman('run', '--rm', '--network', "container:dash-$mark", '-v', "$here/results:/work", '-v',
	"$here/tokens:/tokens:ro",
	image('client'), qw(dashboard --health));
is($r->{status}, 0, 'from another container too') or diag($r->{err});

compose();
stop_all();
done_testing();

# An image of Debian's PostgreSQL that takes the variables of the official one.
sub make_postgres {
	my $root = bare_root('bookworm');
	my $r = in_root($root,
		'apt-get update -q && apt-get install -q -y --no-install-recommends postgresql && ' .
		'apt-get clean',
		seconds => 600);

	is($r->{status}, 0, 'PostgreSQL is installed') or diag($r->{out}, $r->{err});
	spew("$root/entry", <<'END');
#!/bin/bash
set -e
bin=$(echo /usr/lib/postgresql/*/bin) data=/var/lib/postgresql/data/pgdata
mkdir -p $data /var/run/postgresql && chown -R postgres: /var/lib/postgresql/data /var/run/postgresql
if [ ! -e $data/PG_VERSION ]; then
	echo "$POSTGRES_PASSWORD" >/tmp/password && chown postgres /tmp/password
	runuser -u postgres -- $bin/initdb -A scram-sha-256 -U "$POSTGRES_USER" \
		--pwfile=/tmp/password -D $data >/dev/null
	echo 'host all all all scram-sha-256' >>$data/pg_hba.conf
	runuser -u postgres -- $bin/pg_ctl -w -D $data -o "-c listen_addresses=''" start >/dev/null
	export PGPASSWORD=$POSTGRES_PASSWORD
	$bin/createdb -h /var/run/postgresql -U "$POSTGRES_USER" "$POSTGRES_DB" || true
	runuser -u postgres -- $bin/pg_ctl -w -D $data stop >/dev/null
fi
exec runuser -u postgres -- $bin/postgres -D $data -c listen_addresses='*'
END
	chmod 0755, "$root/entry";
	return system("tar -C '$root' -c . | podman import -c 'ENTRYPOINT [\"/entry\"]' - "
		. image('postgres') . ' >/dev/null 2>&1');
}

sub compose {
	SKIP: {
		skip 'there is no podman-compose in PATH', 1
			unless is_there("podman-compose");
		is(make_postgres(), 0, 'an image of PostgreSQL');
		mkdir 'compose';
		system('cp', "$top/packaging/compose.yaml", 'tokens', 'compose') == 0 or die;
		spew('compose/.env', "POSTGRES_PASSWORD=a-password-of-the-test\n");
		my $port = free_port();
		my %env = (IMAGE => image('dashboard'), POSTGRES_IMAGE => image('postgres'), PORT => $port);
		$ENV{$_} = $env{$_} for keys %env;
		$r = run(command => ['sh', '-c', 'cd compose && exec podman-compose up -d'], seconds => 200);
		is($r->{status}, 0, 'podman-compose starts the services') or diag($r->{out}, $r->{err});
		wait_for('the dashboard', sub {
			!run(args => ['dashboard', '--health', '--port', $port])->{status}
		});
		pass('the dashboard is ready');
		$r = run(args => ['ingest', '--server', "http://localhost:$port", '--token-file', 'token',
			'results/result.json'])
			if spew('token', "0123456789abcdef0123456789abcdef\n");
		is($r->{status}, 0, 'it takes a result into PostgreSQL') or diag($r->{err});
		like(podman('logs', 'compose_dashboard_1')->{err}, qr/\(postgresql, 0 runs\)/,
			'which is its store');
	}
}
