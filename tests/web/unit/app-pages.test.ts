// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from 'node:fs';
import { requestsOf, spanOf } from '../../../web/src/app/pages/run/arrays';
import { givenColumns, matching, settings, telemetryOf } from '../../../web/src/app/pages/run/config';
import {
	batches,
	BATCH_FILES,
	counts,
	isAuxiliary,
	isResult,
	resultOf,
	withOutcomes,
	type Entry,
} from '../../../web/src/app/pages/upload/files';
import { isTrace, namedTraces, runsOf, valuesOf } from '../../../web/src/app/pages/upload/traces';
import { linesOf, sampleOf, secondsText } from '../../../web/src/app/pages/launch/types';
import {
	changesOf, commitsOf, drawable, eventsOf, linesOf as trendLines, markPlace, namesOf, ordered,
	placesOf, relative,
	shortCommit, shownAtFirst, sidesOf, spanOf as trendSpan,
} from '../../../web/src/app/pages/trends/model';
import { asked, LIMITS_MAX, limitsCodec, USUAL } from '../../../web/src/app/pages/plan/slo';
import { bytesText } from '../../../web/src/app/common/traces';
import { at, scaleOf } from '../../../web/src/app/common/scale';
import type { JobFile, TrendChange, Trends, TrendSeries } from '../../../web/src/lib/api';

it('reads requests from arrays, in microseconds since the first one', () => {
	const r = requestsOf({
		start_times: [10.5, 10],
		ttfts: [0.1, 0.2],
		itls: [[0.01, 0.03], []],
		latencies: [0.14, 0.5],
		input_lens: [7, 8],
		output_lens: [3, 1],
		errors: ['', 'gone'],
	})!;
	expect([...r.start]).toEqual([500000, 0]);
	expect([...r.first]).toEqual([0, 2, 2]);
	expect([...r.end].map(Math.round)).toEqual([10000, 40000]);
	expect(Math.round(r.longest[0])).toBe(30000);
	expect([...r.state]).toEqual([0, 1]);
	expect([...r.whole].map(Math.round)).toEqual([140000, 500000]);
	expect(Math.round(spanOf(r))).toBe(640000);
	expect(requestsOf({ ttfts: [1] })).toBeNull();
	const late = requestsOf({ start_times: [1], requests: { due_ns: [5e6], sent_ns: [7e6] } })!;
	expect(late.lead[0]).toBe(2000);
});

it('tells what was given from what was not', () => {
	const given = givenColumns({
		config: { given: { server: { 'max-num-seqs': 4 }, tags: { a: 'b' } } },
	})!;
	const list = settings({ 'server.max_num_seqs': 4, 'server.dtype': 'auto', run_id: 'x' }, given);
	expect(list.map((s) => [s.column, s.isGiven])).toEqual([
		['server.dtype', false],
		['server.max_num_seqs', true],
	]);
	expect(matching(list, 'MAX 4', false)).toHaveLength(1);
	expect(matching(list, '', true).map((s) => s.column)).toEqual(['server.max_num_seqs']);
	expect(givenColumns({ config: {} })).toBeNull();
	expect(givenColumns(null)).toBeNull();
	expect(
		telemetryOf({
			system: {
				host: { cpus_busy: { min: 1, mean: 2, max: 3 }, n: 4,
					sent_mb_per_s: { min: 0, mean: 0.0007, max: 0.002 } },
				gpus: [{ name: 'A', memory_gb: { min: 1, mean: 1, max: 1 } }],
				processes: { server: { rss_gb: { min: 0.5, mean: 0.5, max: 0.5 } } },
			},
		}).map((t) => [t.name, t.unit, t.mean]),
	).toEqual([['Host: CPUs busy', null, 2],
		['Host: sent', 'bytes/s', 700], ['GPUs A memory', 'bytes', 1e9],
		['Processes of server: RSS', 'bytes', 5e8]]);
});

const entry = (key: number, name: string, state: Entry['state']): Entry => ({
	key,
	name,
	bytes: 1,
	state,
	id: null,
	runs: 0,
	reason: null,
});
const file = (name: string, outcome: JobFile['outcome']): JobFile => ({
	name,
	outcome,
	runs: 1,
	id: 5,
	reason: null,
});

it('sends files in batches of a size, none left out', () => {
	const list = Array.from({ length: 250 }, (_, i) => i);
	const made = batches(list, () => 1);
	expect(made.map((b) => b.length)).toEqual([BATCH_FILES, BATCH_FILES, 50]);
	expect(made.flat()).toEqual(list);
	expect(batches([60e6, 60e6, 1], (n) => n).map((b) => b.length)).toEqual([1, 2]);
	expect(batches([], () => 1)).toEqual([]);
});

it('tells outcomes to files by name, two of the same name in their order', () => {
	const now = [
		entry(1, 'a', 'sent'),
		entry(2, 'a', 'sent'),
		entry(3, 'a', 'sent'),
		entry(4, 'b', 'waiting'),
	];
	const keys = new Set([1, 2]);
	const one = withOutcomes(now, keys, [file('a', 'new'), file('b', 'new'), file('a', null)]);
	expect(one.map((e) => e.state)).toEqual(['new', 'sent', 'sent', 'waiting']);
	const two = withOutcomes(one, keys, [file('a', 'duplicate'), file('a', 'invalid')]);
	expect(two.map((e) => e.state)).toEqual(['new', 'duplicate', 'sent', 'waiting']);
	expect(counts(two)).toMatchObject({ new: 1, duplicate: 1, invalid: 0 });
	expect(['a.json', 'b.JSONL', 'c.json.gz', 'd.log'].map(isResult)).toEqual([
		true,
		true,
		true,
		false,
	]);
	expect([bytesText(999), bytesText(1234567), bytesText(0)]).toEqual(['999 B', '1.23 MB', '0 B']);
});

it('knows files that repeat the metrics of a result next to them', () => {
	const list = ['r/a.json', 'r/a.pytorch.json', 'r/a.avg_latency.pytorch.json', 'b.pytorch.json',
		'r.d/b.pytorch.json', 'r.json'];
	expect(list.map((name) => resultOf(name, new Set(list))))
		.toEqual([null, 'r/a.json', 'r/a.json', null, null, null]);
	expect(['s/servers.json', 's/p/failure.json', 's/my_servers.json', 's/summary.json'].map(isAuxiliary))
		.toEqual([true, true, false, false]);
});

it('finds the runs of dropped traces by the documents that name them', () => {
	const document = (run: string, ...traces: [string, number?][]): object => ({
		run_id: run,
		profiling: { traces: traces.map(([path, bytes]) => ({ path, bytes })) },
	});
	const files = [
		{ name: 'a/one.d/traces/x.pt.trace.json', size: 5 },
		{ name: 'a/two.d/traces/x.pt.trace.json', size: 5 },
		{ name: 'y.json', size: 7 },
		{ name: 'a/s.d/m.d/traces/z.json', size: 9 },
	];
	const named = [
		...namedTraces(document('one', ['one.d/traces/x.pt.trace.json', 5]), 'a/one.json'),
		...namedTraces(document('two', ['/old/y.json', 7], ['gone.json', 1]), 'a/two.json'),
		...namedTraces({ experiments: [document('m', ['m.d/traces/z.json', 9])] }, 'a/s.json'),
		...namedTraces(document('m', ['m.d/traces/z.json', 9]), 'a/s.d/m.json'),
	];
	expect([...runsOf(named, files)].sort()).toEqual([
		[0, ['one']],
		[2, ['two']],
		[3, ['m']],
	]);
	const unclear = namedTraces(document('one', ['elsewhere/x.pt.trace.json', 5]), 'one.json');
	expect(runsOf(unclear, files).size).toBe(0);
	const other = namedTraces(document('one', ['one.d/traces/x.pt.trace.json', 6]), 'a/one.json');
	expect(runsOf(other, files).size).toBe(0);
	expect(namedTraces({ run_id: 3, profiling: null }, 'x')).toEqual([]);
	expect(valuesOf('{"a": 1}\n{"b": 2}\n')).toEqual([{ a: 1 }, { b: 2 }]);
	expect(
		['r.pt.trace.json.gz', 'r.nsys-rep', 'r.nsys-rep.stats.txt', 'r.json', 'trace.json'].map(
			isTrace,
		),
	).toEqual([true, true, true, false, false]);
});

it('draws what is known in its order with units, then whatever numbers an event has', () => {
	const s = sampleOf(
		{ event: 'telemetry', t_s: 3, gpus: [{ index: 0, power_w: 200 }], host: { cpu: 1 } },
		9,
	);
	expect(s.at).toBe(3);
	expect(s.values).toMatchObject({ 'gpus #0 power_w': 200, 'host cpu': 1 });
	expect(sampleOf('x', 9)).toEqual({ at: 9, values: {} });
	const lines = linesOf([
		{ at: 0, values: { own_thing: 1, total: 9, admitted: 4, kv_cache_usage: 0.25, done: 3 } },
		{ at: 1, values: { own_thing: 1, total: 9, admitted: 9, kv_cache_usage: 0.5, done: 9 } },
	]);
	expect(lines.map((l) => [l.label, l.unit])).toEqual([['Requests done', ''], ['KV cache', '%'],
		['own thing', '']]);
	expect(lines[1].points).toEqual([
		[0, 25],
		[1, 50],
	]);
	expect([secondsText(null), secondsText(6), secondsText(600), secondsText(7200)]).toEqual([
		'unknown',
		'6 s',
		'10 min',
		'2 h',
	]);
});

const change = (index: number, effect: number, is_marked: boolean): TrendChange => ({
	index,
	at: 1,
	commit: null,
	commit_before: null,
	version: null,
	is_new: false,
	also: [],
	text: '',
	command: null,
	before_ids: [1, 2],
	after_ids: [3],
	before: 1,
	after: 2,
	effect,
	interval: null,
	also_in: 1,
	also_of: 1,
	p: 0,
	is_marked,
	guard: null,
	mark: null,
	verdict: 'worse',
});
const series = (name: string, commits: [string, number][], changes: TrendChange[]): TrendSeries => ({
	id: name,
	key: {},
	name,
	begins: null,
	levels: [],
	changes,
	points: commits.map(([commit, time]) => ({
		at: time,
		commit,
		version: null,
		ids: [1],
		n: 1,
		sessions: 1,
		value: 1,
		low: null,
		high: null,
	})),
});

it('puts commits of all series in the order of time, and open changes first', () => {
	const a = series(
		'a',
		[
			['x', 3],
			['y', 5],
		],
		[change(1, 0.1, true), change(1, -0.05, false)],
	);
	const b = series(
		'b',
		[
			['z', 4],
			['y', 2],
		],
		[change(0, 0.3, false)],
	);
	expect(commitsOf([a, b])).toEqual(['y', 'x', 'z']);
	expect(changesOf([a, b]).map((c) => c.change.effect)).toEqual([0.3, -0.05, 0.1]);
	expect(markPlace(change(0, 1, false))).toBe('1');
	expect(JSON.parse(sidesOf(change(0, 1, false)))).toEqual([
		{ name: 'before', ids: [1, 2] },
		{ name: 'after', ids: [3] },
	]);
	expect(shortCommit('0123456789abcdef')).toBe('01234567');
	expect(shortCommit('v1.2.3')).toBe('v1.2.3');
});

it('shows first what changed, names only what differs, and draws noise as noise', () => {
	const at: [string, number][] = [['x', 1], ['y', 2]];
	const of = (name: string, gpu: string, tp: number, changes: TrendChange[]): TrendSeries =>
		({ ...series(name, at, changes), key: { model: 'm', gpu, memory: gpu.charCodeAt(0), tp } });
	const long = { ...of('long', 'A', 2, []), points: series('', [...at, ['z', 3]], []).points };
	const all = ordered([of('flat', 'A', 1, []), long, of('known', 'B', 1, [change(1, -0.5, true)]),
		of('small', 'B', 2, [change(1, 0.1, false)]), of('large', 'C', 1, [change(1, -0.2, false)])]);
	expect(all.map((s) => s.name)).toEqual(['large', 'small', 'known', 'long', 'flat']);
	expect(shownAtFirst(all)).toBe(2);
	expect(shownAtFirst(all.slice(2))).toBe(4);
	const names = namesOf(all, (c) => c.toUpperCase());
	expect(names.common).toEqual(['m']);
	expect(names.of.get('large')).toBe('C · tp 1');
	expect(namesOf([all[0]], (c) => c).of.get('large')).toBe('All runs');
	expect(drawable([all[0], series('single', [['x', 1]], [])])).toEqual([all[0]]);
	expect(drawable([series('single', [['x', 1]], [])])).toHaveLength(1);
	const lines = trendLines({ axis: 'commit', series: all } as Trends, ['flat', 'small'], names);
	expect(lines.map((l) => l.isShown)).toEqual([true, false, false, false, true]);
	lines[0].points[0].value = 200;
	expect(relative(lines)[0].points.map((p) => p.value)).toEqual([100, 0.5]);
	lines[0].points[0].value = 0;
	expect(relative(lines)[0].points).toEqual([]);
	expect(trendSpan(lines)).toEqual([0.9, 1.1]);
	expect(trendSpan([])).toEqual([]);
});

it('asks for limits that have a number', () => {
	const limits = limitsCodec.read(
		'[{"column":"a","side":"min","value":2},{"column":"b","value":null}]',
	);
	expect(asked(limits)).toEqual([{ column: 'a', min: 2 }]);
	expect(limitsCodec.read('nonsense')).toEqual(USUAL);
	expect(limitsCodec.read('[{"side":"max"}]')).toEqual(USUAL);
});

it('takes as many limits as the server does', () => {
	const path = '../../../src/results/analyse/analyse_internal.h';
	const header = readFileSync(new URL(path, import.meta.url), 'utf8');
	expect(LIMITS_MAX).toBe(Number(/#define ANALYSE_SLO_MAX (\d+)/.exec(header)?.[1]));
	const many = Array.from({ length: 20 }, () => ({ column: 'a', side: 'max', value: 1 }));
	expect(asked(limitsCodec.read(JSON.stringify(many)))).toHaveLength(LIMITS_MAX);
});

it('places values on a scale, in logarithms where they span much', () => {
	const wide = scaleOf([1, 10, 1000]);
	expect(wide.isLog).toBe(true);
	expect(at(wide, 1)).toBe(0);
	expect(at(wide, 1000)).toBeCloseTo(1);
	expect(at(wide, 5000)).toBe(1);
	const one = scaleOf([5, 5, null]);
	expect(at(one, 5)).toBeCloseTo(0.5);
	expect(scaleOf([])).toEqual({ min: 0, max: 1, isLog: false });
});

it('puts what happened on the axis that all series share', () => {
	const points = (commits: string[]): unknown[] => commits.map((commit) => ({
		commit, at: Number(commit.slice(1)), value: 1,
		version: Number(commit.slice(1)) < 3 ? '0.12' : '0.13' }));
	const answer = { axis: 'commit', series: [
		{ points: points(['c1', 'c2', 'c3', 'c5']), changes: [{ index: 2, effect: -0.1 }] },
		{ points: points(['c3', 'c5']), changes: [{ index: 0, effect: 0.02 }] },
	] } as unknown as Trends;
	const place = placesOf(answer);
	expect(answer.series[0].points.map(place)).toEqual([0, 1 / 3, 2 / 3, 1]);
	expect(answer.series[1].points.map(place)).toEqual([2 / 3, 1]);
	const percent = (v: number): string => `${v * 100} %`;
	expect(eventsOf(answer, percent)).toEqual([
		{ place: 2 / 3, x: 'c3', kind: 'change', text: '-10 %' },
		{ place: 2 / 3, x: 'c3', kind: 'version', text: '0.13' },
	]);
	const days = { ...answer, axis: 'day' };
	expect(days.series[0].points.map(placesOf(days))).toEqual([0, 0.25, 0.5, 1]);
	expect(eventsOf({ ...answer, axis: 'version' }, percent).map((e) => e.kind)).toEqual(['change']);
});
