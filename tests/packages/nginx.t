#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# nginx.conf: nginx accepts it, and passes on a request, an upload and a job's events while they happen.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../cli", $FindBin::Bin;
use Cli;
use Cwd qw(getcwd);
use Dash;
use Packages;
use Test::More;
use Time::HiRes qw(time);

my ($nginx) = grep { -x } '/usr/sbin/nginx', '/usr/bin/nginx';
plan skip_all => 'there is no nginx; apt-get install nginx-light' unless $nginx;
my $here = getcwd();
chmod 0755, $here;
spew('tokens', "alice 0123456789abcdef0123456789abcdef launch\n");
my $d = start_dashboard('--auth-token-file', "$here/tokens",
	qw(--host-name bench.example --trusted-proxy 127.0.0.1));
my ($tls, $plain) = (free_port(), free_port());
system('openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 ' .
	'-subj /CN=bench.example -addext subjectAltName=DNS:bench.example 2>openssl.log') == 0 or die;
my $conf = slurp("$top/packaging/nginx.conf");
ok($conf =~ s/server 127\.0\.0\.1:8080;/server 127.0.0.1:$d->{port};/,
	'the address of the dashboard is there');
$conf =~ s,listen 443 ,listen 127.0.0.1:$tls ,;
$conf =~ s,listen 80;,listen 127.0.0.1:$plain;,;
$conf =~ s,/etc/ssl/certs/bench\.example\.pem,$here/cert.pem,;
$conf =~ s,/etc/ssl/private/bench\.example\.key,$here/key.pem,;
$conf =~ s,/var/log/nginx,$here,;
spew('site.conf', $conf);
spew('main.conf', "pid $here/pid;\nerror_log $here/error.log;\ndaemon off;\nuser root;\nevents {}\n" .
	"http {\n" . join('', map { "${_}_temp_path $here/$_;\n" } qw(client_body proxy fastcgi uwsgi scgi)) .
	"include $here/site.conf;\n}\n");
my $r = run(command => [$nginx, '-t', '-c', "$here/main.conf"]);
is($r->{status}, 0, 'nginx -t') or diag($r->{err});
unlike($r->{err}, qr/\[(warn|error|emerg)\]/, 'finds nothing to say');

my $server = begin(command => [$nginx, '-c', "$here/main.conf"], seconds => 300);
END { my $status = $?; kill 'TERM', $server->{pid} if $server && !defined $server->{status}; $? = $status }
my @curl = ('curl', '-sS', '--cacert', 'cert.pem', '--resolve', "bench.example:$tls:127.0.0.1", '--resolve',
	"bench.example:$plain:127.0.0.1");
my $url = "https://bench.example:$tls";
my @token = ('-H', 'Authorization: Bearer 0123456789abcdef0123456789abcdef');
sub curl { return run(command => [@curl, @_]) }
wait_for('nginx', sub { !curl("$url/api/health")->{status} });
like(curl("$url/api/health")->{out}, qr/"status":"ok"/, 'a request is passed on');
like(curl('-o', '/dev/null', '-w', '%{redirect_url}', "http://bench.example:$plain/runs")->{out},
	qr{^https://bench\.example/runs}, 'plain HTTP leads to TLS');
is(curl('-o', '/dev/null', '-w', '%{http_code}', @token, "$url/metrics")->{out}, 403,
	'/metrics is not for visitors');

# The first page of three people of one address: their browsers ask for all its files at once, over HTTP/2.
my ($asset) = curl("$url/")->{out} =~ m{"(/assets/[^"]+\.js)"};
my $codes = curl(qw(--http2 --parallel --parallel-max 60 --parallel-immediate -w), 'code %{http_code}\n',
	map { ("$url$asset", '-o', '/dev/null') } 1 .. 150)->{out};
my %files;
$files{$_}++ for $codes =~ /^code (\d+)$/mg;
is_deeply(\%files, { 200 => 150 }, 'none of the files of a page is refused');

# An upload of more than the 4 MiB that other requests may have.
spew('big.json', '{"x": "' . 'y' x (6 << 20) . '"}');
is(curl(@token, '-o', '/dev/null', '-w', '%{http_code}', '-F', 'file=@big.json',
	"$url/api/upload/batch")->{out} =~ /^20[02]$/
	? 1 : 0, 1, 'a form of 6 MiB reaches the dashboard');
is(curl(@token, '-o', '/dev/null', '-w', '%{http_code}', '-X', 'POST', '--data-binary', '@big.json',
	"$url/api/data/query")->{out}, 413, 'a question of 6 MiB does not');

# Traces go to their run: `profllm ingest` and `run --upload` send them there.
is(curl(@token, '-o', '/dev/null', '-w', '%{http_code}', '-F', 'trace=@big.json',
	"$url/api/data/experiments/7/traces")->{out}, 404, 'a trace of 6 MiB reaches the dashboard');

# Events of an experiment: some come before it has ended.
spew('config.json', json_text({ config => <<'END' }));
name: proxied
server: {command: sim, model: sim, extra_args: [--ttft-ms, "20", --itl-ms, "20"]}
benchmark: {mode: serve, dataset_name: random, random_input_len: 16, random_output_len: 50, num_prompts: 8,
            max_concurrency: 2, tokenizer: sim, model: sim}
END
my $job = json_of(curl(@token, '-H', 'Content-Type: application/json', '-d', '@config.json',
	"$url/api/launch")->{out});
ok($job->{job_id}, 'an experiment is started through the proxy') or diag(json_text($job));
open my $events, '-|', @curl, '-N', @token, "$url/api/jobs/$job->{job_id}/events" or die;
my ($first, $end, %seen);
while (<$events>) {
	next unless /^event: (\w+)/;
	$seen{$1}++;
	$first //= time;
	$end = time;
}
close $events;
ok($seen{end}, 'its events come to an end') or diag(join ' ', %seen);
cmp_ok(($end // 0) - ($first // 0), '>', 1,
	'and came while it ran: the first is more than a second before the last');
kill 'QUIT', $server->{pid};
is(finish($server)->{status}, 0, 'nginx ends');
done_testing();
