#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# A model's name in place of a path: its tokenizer comes from a hub, by way of the cache.
#
# A hub of our own (Hub.pm) answers, and its log says what was asked of it.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cli;
use Digest::SHA qw(sha256_hex);
use File::Find qw(find);
use File::Path qw(remove_tree);
use Hub;
use Test::More;
use Time::HiRes qw(sleep time);

my $small = slurp("$FindBin::Bin/../unit/token/small.json");
my $other = "$small\n";
my $big = $small . ' ' x 3e6;
my $config = '{"tokenizer_class": "PreTrainedTokenizerFast"}';
my ($c1, $c2) = map { $_ x 40 } qw(a b);
my $cache = "$ENV{HF_HOME}/hub";
my $dir = "$cache/models--org--m";

delete $ENV{HF_HUB_OFFLINE};
$ENV{PROFLLM_CACHE_DIR} = '';
$ENV{HF_HUB_ETAG_TIMEOUT} = $ENV{HF_HUB_DOWNLOAD_TIMEOUT} = 5;

sub hub_of {
	my (%o) = @_;
	my %files = ('tokenizer.json' => $o{big} ? $big : $small, 'tokenizer_config.json' => $config,
		'model.safetensors' => 'weights', 'README.md' => 'text');

	return start_hub(models => { 'org/m' => { main => $o{main} || $c1, v2 => $c2, $c1 => \%files,
		$c2 => { %files, 'tokenizer.json' => $other } }, 'org/none' => { main => $c1,
		$c1 => { 'model.safetensors' => 'x', 'README.md' => 'x' } } }, %o);
}

sub load_args {
	my ($name, @more) = @_;
	return [qw(tokenizer count --tokenizer), $name, @more];
}

sub load {
	my ($hub, $name, %o) = @_;
	return run(args => load_args($name, @{$o{args} || []}), in => 'hello',
		env => { HF_ENDPOINT => $hub->{url}, %{$o{env} || {}} });
}

sub asked { return [map { /^\S+ (\S+ \S+)/ ? $1 : () } split /\n/, slurp($_[0]{log})] }
sub fresh { stop_hubs(); remove_tree($ENV{HF_HOME}) }

sub files_below {
	my ($top) = @_;
	my @files;
	find({ no_chdir => 1, wanted => sub { push @files, $_ =~ s{^\Q$top\E/}{}r unless -d && !-l } }, $top)
		if -d $top;
	return [sort @files];
}

my @good = (status => 0, err => '');
my $get = '/org/m/resolve';

# ---- plain ----

my $hub = hub_of();
check_run('a model is downloaded', load($hub, 'org/m'), { @good });
is_deeply(asked($hub), ['GET /api/models/org/m/revision/main',
	map { ("HEAD $get/$c1/$_", "GET $get/$c1/$_") } qw(tokenizer_config.json tokenizer.json)],
	'only its tokenizer is asked for');
my @absent = map { ".no_exist/$c1/$_" } qw(added_tokens.json chat_template.jinja special_tokens_map.json);
is_deeply(files_below($dir), [@absent, sort("blobs/" . git_id($small), "blobs/" . git_id($config)),
	'refs/main', map { "snapshots/$c1/$_" } qw(tokenizer.json tokenizer_config.json)],
	'the layout of the cache');
is(slurp("$dir/refs/main"), $c1, 'the ref is the commit');
is(readlink "$dir/snapshots/$c1/tokenizer.json", '../../blobs/' . git_id($small), 'a relative link');
is(slurp("$dir/snapshots/$c1/tokenizer.json"), $small, 'the very bytes');

my $before = @{asked($hub)};
check_run('again', load($hub, 'org/m'), { @good });
is(@{asked($hub)} - $before, 1, 'what is cached costs one request');
check_run('by commit', load($hub, 'org/m', args => ['--revision', $c1]), { @good });
is(@{asked($hub)} - $before, 1, 'and none by commit');
check_run('another revision', load($hub, 'org/m', args => [qw(--revision v2)]), { @good });
is(slurp("$dir/refs/v2"), $c2, 'has a ref of its own');
is(slurp("$dir/snapshots/$c2/tokenizer.json"), $other, 'and a snapshot');
is(scalar(grep { m{^GET .*tokenizer_config.json$} } @{asked($hub)}), 1, 'a blob is downloaded once');

my @serve = qw(bench serve --model org/m --num-prompts 1 --random-input-len 4 --dry-run);
check_run('bench serve takes it, too', run(args => \@serve, env => { HF_ENDPOINT => $hub->{url} }),
	{ status => 0 });

# ---- without the hub ----

stop_hubs();
check_run('no hub, cached', load($hub, 'org/m'), { status => 0, err => 'WARNING: model org/m is used '
	. 'from the cache (commit aaaaaaaaaaaa), because the hub cannot be reached: '
	. "$hub->{url}/*: Failed to *" });
check_run('offline, cached', load($hub, 'org/m', env => { HF_HUB_OFFLINE => 1 }), { @good });
check_run('offline by the other name', load($hub, 'org/m', env => { TRANSFORMERS_OFFLINE => 'yes' }),
	{ @good });
check_run('offline, another model', load($hub, 'org/x', env => { HF_HUB_OFFLINE => 1 }), { status => 1,
	err => '*no tokenizer "org/x": there is no such file or directory, and org/x is not in the cache '
		. '(*/models--org--x, revision main), and the hub may not be used (offline by *' });
check_run('no hub, another model', load($hub, 'org/x'), { status => 1,
	err => "*no tokenizer \"org/x\": * $hub->{url}/api/models/org/x/revision/main: Failed to *" });

# ---- a ref that moves ----

$hub = hub_of(main => $c2);
check_run('a ref has moved', load($hub, 'org/m'), { @good });
is(slurp("$dir/refs/main"), $c2, 'it is followed');
ok(-e "$dir/snapshots/$c1/tokenizer.json", 'the old snapshot stays');

# ---- what the hub says ----

fresh();
$hub = hub_of(gated => { 'org/m' => 'hf_right' });
my $gated = "*no tokenizer \"org/m\": model org/m is gated*accept its terms at $hub->{url}/org/m*";
for (['gated', $gated . 'HF_TOKEN*'],
	['gated, wrong token', $gated . 'account of the token', { HF_TOKEN => 'hf_wrong' }],
	['gated, token not to be used', $gated, { HF_TOKEN => 'hf_right',
		HF_HUB_DISABLE_IMPLICIT_TOKEN => 1 }]) {
	my ($name, $err, $env) = @$_;
	check_run($name, load($hub, 'org/m', env => $env), { status => 1, err => $err,
		gone => ["$dir/refs/main", "$dir/snapshots"] });
}
spew('token', " hf_right\r\n");
for ({ HF_TOKEN => 'hf_right' }, { HUGGING_FACE_HUB_TOKEN => 'hf_right' }, { HF_TOKEN_PATH => 'token' }) {
	remove_tree($cache);
	check_run('token by ' . (keys %$_)[0], load($hub, 'org/m', env => $_), { @good });
}
check_run('a token that is none', load($hub, 'org/m', env => { HF_TOKEN => "a\nb" }), { status => 2,
	err => '*the hub token (HF_TOKEN or the file of HF_TOKEN_PATH) has a character at position 1 *' });
for (['no such model', 'org/x', [], "*$hub->{url} has no model org/x; a private one needs HF_TOKEN"],
	['no such revision', 'org/m', [qw(--revision v9)], '*model org/m has no revision v9'],
	['weights only', 'org/none', [], '*model org/none (commit aaaaaaaaaaaa) has no tokenizer, only '
		. 'weights (model.safetensors); it needs one of tokenizer.json, *']) {
	my ($name, $model, $args, $err) = @$_;
	check_run($name, load($hub, $model, args => $args), { status => 1, err => $err });
}
$ENV{HF_TOKEN} = 'hf_right';
for (['HF_ENDPOINT', 'ftp://x', '*HF_ENDPOINT=ftp://x: expected http://... or https://...'],
	['HF_HUB_ETAG_TIMEOUT', 'soon', '*HF_HUB_ETAG_TIMEOUT=soon: expected whole seconds, *'],
	['HF_HUB_DOWNLOAD_TIMEOUT', '-1', '*HF_HUB_DOWNLOAD_TIMEOUT=-1: expected whole seconds, *']) {
	my ($name, $value, $err) = @$_;
	check_run("$name=$value", load($hub, 'org/m', env => { $name => $value }),
		{ status => 2, err => $err });
}
delete $ENV{HF_TOKEN};

# ---- redirects ----

fresh();
$hub = hub_of(large => qr/tokenizer\.json$/, moved => { 'old/m' => 'org/m' },
	gated => { 'org/m' => 'hf_right' });
check_run('another host keeps the file', load($hub, 'org/m', env => { HF_TOKEN => 'hf_right' }), { @good });
like(slurp($hub->{log}), qr{^cdn GET /org/m/$c1/tokenizer.json\?Signature=secret - -$}m,
	'and does not see the token');
ok(-e "$dir/blobs/" . sha256_hex($small), 'the blob has the name of the file there');
check_run('a model that moved', load($hub, 'old/m', env => { HF_TOKEN => 'hf_right' }), { @good });

# ---- faults ----

my $file = qr{^GET (?!/api).*/tokenizer\.json};
for (
	['429 once', { on => qr/^GET /, times => 1, status => [429, 'Retry-After: 0'] }],
	['503 twice', { on => qr/^GET /, times => 2, status => [503] }],
	['connection cut', { on => $file, times => 1, cut => 1e6 },
		[qr/^hub GET \S+tokenizer.json - 1000000$/m]],
	['connection reset', { on => $file, times => 1, cut => 1e6, reset => 1 }],
	['no ranges', { on => $file, times => 2, cut => 1e6, whole => 1 }],
	['429 always', { on => qr/^GET /, status => [429, 'Retry-After: 300'] },
		'*has had too many requests; it asks for a pause of 300 s'],
	['500 always', { on => qr/^GET /, status => [500, "X-Error-Message: a\e[31mb"] },
		'*answers model org/m with HTTP status 500 (a?[31mb)'],
	['access refused', { on => qr/^GET /, status => [403, 'X-Error-Message: Not for you'] },
		'*refuses access to model org/m (Not for you)'],
	['wrong size', { on => qr/HEAD .*tokenizer.json/, size => 5, etag => 'e' },
		'*tokenizer.json of org/m: * bytes arrived of the 5 that the hub announced'],
	['wrong hash', { on => qr/HEAD .*tokenizer.json/, etag => 'c' x 40 },
		'*its content does not match what the hub announced (hash c*'],
	['too large', { on => qr/HEAD .*tokenizer.json/, size => 1e12 }, '*the limit is 268435456'],
	['no hub', { on => qr/^HEAD /, plain => 1 }, '*does not answer as a hub does (no X-Repo-Commit)*'],
	['no list', { on => qr/^GET .api/, status => [200] }, '*does not answer as a hub does (no "sha"*'],
	['ETag that climbs', { on => qr/^HEAD /, etag => '../../../x' }, '*no usable ETag*'],
	['ETag that hides', { on => qr/^HEAD /, etag => '.x' }, '*no usable ETag*'],
	['redirect to FTP', { on => qr/^HEAD /, status => [302, 'Location: ftp://x/'] },
		'*ftp://x/: Protocol "ftp" *'],
	['in a circle', { on => qr/^GET .api/, status => [302, 'Location: /api/models/org/m/revision/main'] },
		'*is redirected more than 10 times'],
	['silence', { on => qr/^GET .api/, silence => 30 }, '*no data arrived for 1 s'],
	['silence once', { on => $file, times => 1, silence => 30 }],
) {
	my ($name, $fault, $expected) = @$_;

	fresh();
	$hub = hub_of(big => 1, faults => [$fault]);
	my $began = time;
	my $seconds = $name =~ /silence/ ? 1 : 5;
	my $r = load($hub, 'org/m', env => { HF_HUB_ETAG_TIMEOUT => $seconds,
		HF_HUB_DOWNLOAD_TIMEOUT => $seconds });
	if ($expected && !ref $expected) {
		check_run($name, $r, { status => 1, err => $expected, gone => ["$dir/refs/main",
			"$dir/snapshots/$c1/tokenizer.json"] });
	} else {
		check_run($name, $r, { status => 0 });
		is(slurp("$dir/snapshots/$c1/tokenizer.json"), $big, "$name: the very bytes");
		like(slurp($hub->{log}), $_, "$name: requests") for @{$expected || []};
	}
	cmp_ok(time - $began, '<', 40, "$name: it ends");
	is_deeply([grep { /snapshots/ && !-e "$dir/$_" } @{files_below($dir)}], [],
		"$name: no dangling link");
}

# ---- a download that is broken off ----

for (['INT', \@serve, 130], ['KILL', load_args('org/m'), 'signal 9']) {
	my ($signal, $args, $status) = @$_;
	fresh();
	$hub = hub_of(big => 1, faults => [{ on => $file, times => 1, slow => 0.05 }]);
	my $r = begin(args => $args, env => { HF_ENDPOINT => $hub->{url} });
	my $part = "$dir/blobs/" . git_id($big) . '.incomplete';

	wait_for('half a file', sub { (-s $part || 0) > 5e5 });
	kill $signal, $r->{pid};
	finish($r);
	is($r->{status}, $status, "SIG$signal in a download ends it");
	ok(!-e "$dir/refs/main" && !-e "$dir/snapshots/$c1/tokenizer.json" && !-e $part =~ s/\.inc.*//r,
		"SIG$signal leaves nothing that looks whole");
	check_run("after SIG$signal", load($hub, 'org/m'), { status => 0 });
	like(slurp($hub->{log}), qr{^hub GET \S+tokenizer.json - (?:[5-9]\d{5}|\d{7})$}m,
		"after SIG$signal: it goes on where it was");
	is(slurp("$dir/snapshots/$c1/tokenizer.json"), $big, "after SIG$signal: the very bytes");
}
fresh();
$hub = hub_of(big => 1);
mkdir $_ for $ENV{HF_HOME}, $cache, $dir, "$dir/blobs";
spew("$dir/blobs/" . git_id($big) . '.incomplete', 'something else');
check_run('half a file of something else', load($hub, 'org/m'), { status => 0 });
is(slurp("$dir/snapshots/$c1/tokenizer.json"), $big, 'it is found out');

# ---- two at once ----

fresh();
$hub = hub_of(big => 1, faults => [{ on => $file, slow => 0.03 }]);
my @two = map { begin(args => load_args('org/m'), env => { HF_ENDPOINT => $hub->{url} }) } 1 .. 3;
is_deeply([map { finish($_)->{status} } @two], [0, 0, 0], 'three processes at once');
is(scalar(grep { $_ =~ $file } @{asked($hub)}), 1, 'one of them downloads');
is(slurp("$dir/snapshots/$c1/tokenizer.json"), $big, 'the very bytes');

# ---- a cache that cannot be written ----

SKIP: {
	skip 'root may write anywhere', 1 if $> == 0;
	fresh();
	mkdir $ENV{HF_HOME}, 0500;
	$hub = hub_of();
	check_run('read-only cache', load($hub, 'org/m'), { status => 1,
		err => '*cannot create directory *' });
}
fresh();
spew($ENV{HF_HOME}, '');
$hub = hub_of();
check_run('a file in place of the cache', load($hub, 'org/m'), { status => 1,
	err => '*cannot create directory *' });
unlink $ENV{HF_HOME};
stop_hubs();
done_testing();
