// SPDX-License-Identifier: Apache-2.0
import {
	GROUPS_MAX, keptCodec, leftOutText, namesOf, nearColumns, ofChosen, ofKept, ofRepeats, ofRuns,
	ofValues, repeatsOf,
} from '../../../web/src/app/pages/compare/groups';
import {
	answerOf, bestBaseline, commonReason, countsText, headlineOf, noticesOf, shownComparison,
	shortReason, sidesOf, toneOf, sharedReasons } from '../../../web/src/app/pages/compare/words';
import { sizeText } from '../../../web/src/app/pages/compare/metrics';
import { intervalText, percent, roundPercent, withUnits } from '../../../web/src/app/common/interval';
import { rangeOf, ticksOf } from '../../../web/src/app/common/forest';
import {
	aloneReason, configuredOf, inShort, mainlyAt, panelColumns, panelsOf,
} from '../../../web/src/app/pages/compare/configured';
import { differsBetween, withoutTwins } from '../../../web/src/app/pages/compare/parameters';
import { EVERYTHING } from '../../../web/src/app/filter';
import type { Compare, Comparison, CompareMetric, CompareParameter } from '../../../web/src/lib/api';

it('writes differences as people read them', () => {
	expect(percent(0.0523)).toBe('+5.2 %');
	expect(percent(-0.003)).toBe('−0.3 %');
	expect(percent(12.34)).toBe('+1,234 %');
	expect([percent(0), percent(-0.45), percent(1.04)]).toEqual(['0.0 %', '−45.0 %', '+104 %']);
	expect([0.2, -0.005, 0, 10].map(roundPercent)).toEqual(['+20 %', '−0.5 %', '0 %', '+1,000 %']);
	expect([percent(0.1263), percent(-0.0385), percent(0.000018), percent(0.004862)])
		.toEqual(['+12.6 %', '−3.9 %', '0.0 %', '+0.5 %']);
	expect(intervalText([0.0721, 0.0724])).toBe('+7.21 % to +7.24 %');
	expect(percent(null)).toBe('–');
	expect(intervalText([-0.01, 0.02])).toBe('−1.0 % to +2.0 %');
	expect(intervalText(null)).toBe('');
	expect(withUnits('+7.5 % (95 % interval)')).toBe('+7.5\u00a0% (95\u00a0% interval)');
});

it('gives a forest plot one range, symmetrical, in steps of 1, 2 or 5', () => {
	const small = Array.from({ length: 20 }, () => ({ effect: 0.1, interval: [0.05, 0.15] }));
	expect(rangeOf([...small, { effect: 90, interval: null }])).toEqual({ reach: 0.2, step: 0.1 });
	expect(rangeOf([])).toEqual({ reach: 0.02, step: 0.01 });
	expect(rangeOf([...small, { effect: 0.26, interval: null }]).reach).toBeGreaterThan(0.26);
	expect(rangeOf([{ effect: 50, interval: null }]).reach).toBe(10);
	/* A model that is several times slower: no row lies beyond the axis. */
	const slow = [-0.843, 6.92, 5.27, 4.19, 5.16, 4.62, 5.54];
	expect(rangeOf(slow.map((effect) => ({ effect, interval: null }))).reach).toBeGreaterThan(6.92);
	expect(ticksOf(rangeOf([{ effect: 0.075, interval: [0.073, 0.078] }])))
		.toEqual([-0.1, -0.05, 0, 0.05, 0.1]);
	for (let size = 0.001; size < 3; size *= 1.3) {
		const range = rangeOf([{ effect: -size, interval: null }]), ticks = ticksOf(range);
		expect(range.reach).toBeGreaterThanOrEqual(Math.min(2, size));
		expect([1, 2, 5]).toContain(Number(range.step.toExponential()[0]));
		expect(ticks.length).toBeGreaterThanOrEqual(3);
		expect(ticks.length).toBeLessThanOrEqual(7);
		expect(ticks.map((t) => -t).reverse().map((t) => t + 0)).toEqual(ticks.map((t) => t + 0));
	}
});

/** Two GPUs by three loads; the batch follows from the GPU. Load 64 is in B alone. */
const matched = ['server.gpu', 'server.max_num_batched_tokens', 'benchmark.max_concurrency'];
const grid = ['h100', 'b200'].flatMap((gpu) => [1, 8, 64].map((load) => ({
	configuration: `gpu=${gpu}, batch, max_concurrency=${load}`,
	values: [gpu, gpu === 'h100' ? 512 : 1024, load],
	ids: [load === 64 ? [] : [load], [100 + load]] })));
const answer = { configurations: grid, matched_by: matched };
const metricOf = (change: (gpu: string, load: number) => number): CompareMetric => ({
	metric: 'output_throughput', better: 1,
	configurations: grid.filter((g) => g.ids[0].length).map((g) => ({
		configuration: g.configuration, baseline: 100, not_comparable: null,
		value: 100 * (1 + change(g.values[0] as string, g.values[2] as number)) })),
}) as unknown as CompareMetric;

it('names configurations shortly, and says why one is on one side alone', () => {
	const by = configuredOf(answer);
	expect([...by.values()].map((c) => c.short))
		.toEqual(['h100 · c1', 'h100 · c8', 'h100 · c64', 'b200 · c1', 'b200 · c8', 'b200 · c64']);
	expect(aloneReason(by.get(grid[2].configuration)!, by.values(), matched, 1, 0, 'B'))
		.toBe('c64 only in B');
	expect(aloneReason(by.get(grid[1].configuration)!, by.values(), matched, 1, 0, 'B'))
		.toBe('this combination');
});

it('draws a panel per value of the first column, a line per configuration over the load', () => {
	const by = configuredOf(answer), m = metricOf((_, load) => load / 100);
	const columns = panelColumns(matched, m.configurations.map((c) => by.get(c.configuration)!));
	expect(columns).toEqual([0]);
	const panels = panelsOf(matched, by, m, 0);
	expect(panels.map((p) => [p.name, p.lines.length])).toEqual([['b200', 1], ['h100', 1]]);
	expect(panels[0].lines[0].points.map((p) => [p.load, p.a, p.b]))
		.toEqual([[1, 100, 101], [8, 100, 108]]);
});

it('gives many lines the colors of one column', () => {
	const columns = ['server.gpu', 'server.tensor_parallel_size', 'benchmark.max_concurrency',
		'benchmark.request_rate'];
	const list = ['a', 'b'].flatMap((gpu) => [1, 2, null].flatMap((tp) => [1, 2, 4].flatMap((rate) =>
		[1, 8].map((load) => ({ configuration: `${gpu} ${tp} ${rate} ${load}`,
			values: [gpu, tp, load, rate], ids: [[1], [2]] })))));
	const known = configuredOf({ configurations: list, matched_by: columns } as unknown as Compare);
	const m = { configurations: list.map(({ configuration }) =>
		({ configuration, baseline: 1, value: 2 })) };
	const [panel] = panelsOf(columns, known, m as unknown as CompareMetric, 0);
	expect(panel.lines.length).toBe(9);
	expect([...new Set(panel.lines.map((l) => l.color))].sort())
		.toEqual(['TP1', 'TP2', 'tensor_parallel_size not set']);
	const few = panelsOf(columns, known, m as unknown as CompareMetric, 1);
	expect(few.every((p) => p.lines.every((l) => l.color === l.name))).toBe(true);
});

it('calls no difference what a stray run or the names of runs make', () => {
	const p = (column: string, ...values: [unknown, number][][]): CompareParameter => ({ column,
		differs: 'between', group: '', values: values.map((of) =>
			of.map(([value, n]) => ({ value, count: n }))) } as CompareParameter);
	const groups = [{ n: 100 }, { n: 100 }] as Compare['groups'], is = (q: CompareParameter): boolean =>
		differsBetween(q, groups, [0, 1]);
	expect(is(p('dtype', [[null, 99], ['auto', 1]], [[null, 100]]))).toBe(false);
	expect(is(p('dtype', [[null, 97], ['auto', 3]], [[null, 100]]))).toBe(true);
	expect(is(p('dtype', [['fp8', 100]], [['bf16', 100]]))).toBe(true);
	expect(is(p('rate', [[1, 50], [8, 49], [10, 1]], [[8, 60], [1, 40]]))).toBe(false);
	expect(is(p('rate', [[1, 50], [10, 50]], [[1, 100]]))).toBe(true);
	const names = (at: number): [unknown, number][] =>
		Array.from({ length: 9 }, (_, i) => [`r${at + i}`, 1]);
	expect(is(p('tags.note', names(0), names(9)))).toBe(false);
	expect(is(p('name', names(0), names(9)))).toBe(true);
});

it('lists two columns that divide the groups alike once', () => {
	type Known = [string | number, number][];
	const of = (column: string, ...values: Known[]): CompareParameter => ({ column, group: '',
		differs: 'between', values: values.map((list) => list.map(([value, n]) =>
			({ value, count: n }))) });
	const gpu = of('server.gpu', [['h100', 89]], [['b200', 28]]), twin = { ...gpu, column: 'gpu_model' };
	const size = of('server.tensor_parallel_size', [[1, 61], [2, 28]], [[2, 28]]);
	expect(withoutTwins([gpu, size, twin, { ...size, column: 'gpus_used' }], [0, 1]).map((p) => p.column))
		.toEqual(['server.gpu', 'server.tensor_parallel_size']);
	const other = of('suite', [['h100', 88]], [['b200', 28]]);
	expect(withoutTwins([gpu, other], [0, 1])).toEqual([gpu, other]);
});

it('says in short why a group is not compared', () => {
	expect(shortReason('h100 and b200 have no configuration in common (32 against 24); '
		+ 'no value is on both sides of server.max_num_batched_tokens'))
		.toBe('no value is on both sides of server.max_num_batched_tokens');
	expect(shortReason('one side is empty')).toBe('one side is empty');
});

it('names configurations shortly in sentences too, and a reason of several metrics once', () => {
	const list = [1, 10].map((rate) => ({ configuration: `dtype=fp8, request_rate=${rate}`,
		values: ['fp8', rate], ids: [[1], [2]] }));
	const known = configuredOf({ configurations: list,
		matched_by: ['server.dtype', 'benchmark.request_rate'] } as unknown as Compare);
	const metric = (reason: string | null): CompareMetric => ({ reason } as CompareMetric);
	const c = { notes: ['most in dtype=fp8, request_rate=10'],
		metrics: [metric('x in dtype=fp8, request_rate=1'), metric(null)] } as unknown as Comparison;
	const short = inShort(c, known);
	expect(short.notes).toEqual(['most in 10/s']);
	expect(short.metrics.map((m) => m.reason)).toEqual(['x in 1/s', null]);
	const [a, b, other] = [metric('few'), metric('few'), metric('far')];
	expect([...sharedReasons([a, b, other, metric(null)])]).toEqual([['few', [a, b]]]);
	expect(sharedReasons([a, b]).size).toBe(0);
});

it('says where a change mainly lies, if one column explains it', () => {
	const by = configuredOf(answer);
	const at = (change: (gpu: string, load: number) => number): string | null =>
		mainlyAt(matched, by, metricOf(change), -1);
	expect(at((gpu, load) => (gpu === 'b200' ? -0.2 : 0.01) + load / 1e4)).toBe('b200');
	expect(at((gpu, load) => ((gpu === 'b200') === (load === 1) ? -0.1 : 0.1))).toBeNull();
	expect(at(() => 0.1)).toBeNull();
});

it('answers in a sentence', () => {
	const c = { side: '0.13', baseline: '0.12', level: 0.95 } as Comparison;
	const say = (m: object, mainly?: string): string => answerOf(c, {
		metric: 'output_throughput', better: 1, higher: 96, lower: 0, equal: 0,
		n_configurations: 96, effect: 0.075, interval: [0.073, 0.076], effect_min: 0.03,
		verdict: 'better', reason: null, words: '', ...m } as unknown as CompareMetric, mainly);
	expect(say({})).toBe('0.13 is faster in 96 of 96 matched configurations: '
		+ '+7.5 % (95 % interval +7.3 % to +7.6 %).');
	expect(say({ metric: 'median_ttft_ms', better: -1, higher: 90, lower: 6, effect: 0.1, interval: null,
		verdict: 'worse' }, 'TP8'))
		.toBe('0.13 is slower in 90 of 96 matched configurations: +10.0 %; most at TP8.');
	expect(say({ verdict: 'better_small', effect: 0.01, interval: null }))
		.toBe('0.13 is faster in 96 of 96 matched configurations: +1.0 %, which is less than 3 %.');
	const mixed = { verdict: 'mixed', higher: 60, lower: 30, effect: 0.012, interval: [-0.004, 0.029] };
	expect(say(mixed, 'TP8'))
		.toBe('0.13 is faster in 60, slower in 30 of 96 matched configurations: +1.2 % '
			+ '(95 % interval −0.4 % to +2.9 %); mainly slower at TP8.');
	expect(say({ verdict: 'no_change', effect: 0.002, interval: null }))
		.toBe('0.13 and 0.12 differ by less than 3 % over 96 matched configurations: +0.2 %.');
	expect(say({ verdict: 'not_comparable', reason: '18.2 output tokens per request against 12' }))
		.toBe('Not comparable: 18.2 output tokens per request against 12.');
	expect(say({ verdict: 'not_enough_data', reason: 'one configuration' }))
		.toBe('Not enough data: one configuration.');
	expect(sidesOf({ better: -1, higher: 1, lower: 4, equal: 2 }))
		.toEqual({ better: 4, same: 2, worse: 1 });
	expect(sidesOf({ better: 0, higher: 1, lower: 4, equal: 2 })).toBeNull();
});

it('shows the side of a verdict and counts configurations', () => {
	expect(['better', 'better_small', 'worse', 'worse_small'].map(toneOf))
		.toEqual(['good', 'good', 'bad', 'bad']);
	expect(['not_comparable', 'changed', 'no_change'].map(toneOf)).toEqual(['plain', 'plain', 'plain']);
	const say = (higher: number, lower: number, equal = 0): string =>
		countsText({ higher, lower, equal, n_configurations: higher + lower + equal });
	expect(say(96, 0)).toBe('higher in 96 of 96 configurations');
	expect(say(1, 3)).toBe('lower in 3 of 4 configurations');
	expect(say(0, 0, 1)).toBe('equal in 1 configuration');
	expect(say(0, 0)).toBe('');
	expect([sizeText(0.0002), sizeText(0.764)]).toEqual(['p < 0.001', 'p = 0.764']);
});

it('leads with what was asked for, else with a throughput', () => {
	const metric = (name: string): CompareMetric => ({ metric: name }) as CompareMetric;
	const all = ['median_ttft_ms', 'x', 'output_throughput'].map(metric);
	expect(headlineOf(all, 'x')?.metric).toBe('x');
	expect(headlineOf(all, '')?.metric).toBe('output_throughput');
	expect(headlineOf([metric('z')], '')?.metric).toBe('z');
	expect(headlineOf([], '')).toBeUndefined();
});

it('makes groups of runs, of values, and of what was put together', () => {
	expect(ofRuns([4, 9])).toEqual([{ name: 'Run 4', ids: [4] }, { name: 'Run 9', ids: [9] }]);
	expect(ofRuns(Array.from({ length: 50 }, (_, i) => i + 1))).toHaveLength(GROUPS_MAX);
	expect(ofValues(EVERYTHING, 'm', ['a', null])).toEqual([
		{ name: 'a', filter: { column: 'm', in: ['a'] } },
		{ name: 'missing', filter: { column: 'm', in: [null] } }]);
	expect(ofValues(EVERYTHING, 'server.version', ['0.13.0', null, '0.9.2', '0.12.0']).map((g) => g.name))
		.toEqual(['0.9.2', '0.12.0', '0.13.0', 'missing']);
	expect(ofValues(EVERYTHING, 'tp', [8, 1, 4]).map((g) => g.name)).toEqual(['tp 1', 'tp 4', 'tp 8']);
	const groupNames = (column: string, values: (string | number)[]): unknown[] =>
		ofValues(EVERYTHING, column, values).map((g) => g.name);
	expect(groupNames('server.tensor_parallel_size', [4, 1])).toEqual(['TP1', 'TP4']);
	expect(groupNames('server.model', ['a/x', 'a/y'])).toEqual(['x', 'y']);
	expect(groupNames('server.model', ['a/x', 'b/x'])).toEqual(['a/x', 'b/x']);
	expect(ofValues(EVERYTHING, 'gpu', ['h100', 'b200']).map((g) => g.name)).toEqual(['h100', 'b200']);
	const within = ofValues({ and: [{ column: 'm', in: ['a', 'b'] }] }, 'm', ['a']);
	expect(within[0].filter).toEqual({ and: [{ and: [{ column: 'm', in: ['a', 'b'] }] },
		{ column: 'm', in: ['a'] }] });
	const parameter: CompareParameter = { column: 'tp', group: 'server', differs: 'between',
		values: [[{ value: 1, count: 1 }], [{ value: 2, count: 1 }], [{ value: 1, count: 1 }], []] };
	expect(ofChosen([[5], [6], [7], [8]], parameter)).toEqual([{ name: 'tp 1', ids: [5, 7] },
		{ name: 'tp 2', ids: [6] }, { name: 'missing', ids: [8] }]);
});

it('compares chosen repeats of one configuration as one group', () => {
	const names: CompareParameter = { column: 'name', group: 'run', differs: 'between',
		values: ['a 1', 'a 2', 'b 1', 'c'].map((value) => [{ value, count: 1 }]) };
	const lists = repeatsOf([4, 5, 6, 7], [11, 11, 22, null]);
	expect(ofRepeats(lists, [4, 5, 6, 7], [names])).toEqual([{ name: 'a 1', ids: [4, 5] },
		{ name: 'b 1', ids: [6] }, { name: 'c', ids: [7] }]);
	expect(ofRepeats(repeatsOf([4, 5], [11, 11]), [4, 5], [names])).toEqual([{ name: 'a 1', ids: [4] },
		{ name: 'a 2', ids: [5] }]);
	expect(ofRepeats(repeatsOf([4, 5], []), [4, 5], [])).toEqual(ofRuns([4, 5]));
});

it('compares more runs than groups by their configurations', () => {
	const ids = Array.from({ length: 36 }, (_, i) => 100 + i);
	const lists = repeatsOf(ids, ids.map((_, i) => i % 4));
	const names: CompareParameter = { column: 'name', group: 'run', differs: 'between',
		values: ['a', 'b', 'c', 'd'].map((value) => [{ value, count: 1 }]) };
	const groups = ofRepeats(lists, lists.map(([id]) => id), [names]);
	expect(groups.map((g) => [g.name, g.ids!.length])).toEqual([['a', 9], ['b', 9], ['c', 9], ['d', 9]]);
	expect(groups.flatMap((g) => g.ids!).sort()).toEqual(ids);
	expect(leftOutText(ids, lists)).toBeNull();
	const values = ['x', 'y', 'x', 'y'].map((value) => [{ value, count: 1 }]);
	const byGpu = ofChosen(lists, { ...names, column: 'server.gpu', values });
	expect(byGpu.map((g) => [g.name, g.ids!.length])).toEqual([['x', 18], ['y', 18]]);
	/* Still too many, and repeats of only one. */
	expect(leftOutText(ids, repeatsOf(ids, ids.map((_, i) => i % 18))))
		.toBe('The first 12 of 18 configurations of the 36 selected runs.');
	const one = repeatsOf(ids, ids.map(() => 5));
	expect(leftOutText(ids, one)).toBe('The first 12 of 36 selected runs.');
	expect(ofRepeats(one, ids.slice(0, 12), []).map((g) => g.ids))
		.toEqual(ids.slice(0, 12).map((id) => [id]));
});

it('keeps groups in the address', () => {
	const kept = [{ name: 'a', ids: [1, 2] }, { name: 'b', filter: { and: [] } }];
	expect(keptCodec.read(keptCodec.write(kept))).toEqual(kept);
	expect(ofKept(kept)).toEqual([{ name: 'a', ids: [1, 2] }, { name: 'b', filter: null }]);
	for (const bad of ['{}', '[1]', '[null]', 'x', '[{"filter":{"column":3}}]'])
		expect(keptCodec.read(bad)).toEqual(bad === '[1]' ? [{ name: '', filter: EVERYTHING }] : []);
	expect(keptCodec.read('[{"name":"a","ids":[1,-2,"x",3.5,7]}]')).toEqual([{ name: 'a', ids: [1, 7] }]);
});

it('names single runs by the parameters in which they differ', () => {
	const p = (column: string, differs: 'between' | 'within', ...values: (string | number)[]):
		CompareParameter => ({ column, group: column.split('.')[0], differs,
		values: values.map((value) => [{ value, count: 1 }]) });
	const list = [p('benchmark.max_concurrency', 'between', 8, 64, 64),
		p('server.gpu', 'between', 'h100', 'b200', 'b200'),
		p('provenance.engine_commit', 'between', 'a', 'b', 'c')];
	expect(namesOf([1, 2, 3], list)).toEqual(['h100 c8', 'b200 c64 (run 2)', 'b200 c64 (run 3)']);
	const many = [p('server.max_num_seqs', 'between', 1, 2), p('server.gpu', 'between', 'h100', 'b200'),
		p('hardware.gpu', 'between', 'h100', 'b200')];
	expect(namesOf([1, 2], many)).toEqual(['h100', 'b200']);
	expect(namesOf([1, 2], [])).toEqual(['Run 1', 'Run 2']);
	const named = (...names: string[]): string[] =>
		namesOf([1, 2], [p('name', 'between', ...names), ...many]);
	expect(named('commit-01', 'commit-02')).toEqual(['commit-01', 'commit-02']);
	expect(named('same', 'same')).toEqual(['h100', 'b200']);
	expect(namesOf([1, 2, 3], [p('name', 'between', 'a', 'b', 'a')]))
		.toEqual(['a (run 1)', 'b', 'a (run 3)']);
	expect(named('gpu=h100-tp=1', 'gpu=b200-tp=1')).toEqual(['h100', 'b200']);
	expect(ofRuns([4, 9], ['a', 'b']).map((g) => g.name)).toEqual(['a', 'b']);
});

it('offers columns that were probably meant', () => {
	expect(nearColumns('gpu', ['tags.gpu', 'server.gpu_memory', 'server.model']))
		.toEqual(['tags.gpu', 'server.gpu_memory']);
	expect(nearColumns('server.gpu', ['server.gpu', 'tags.gpu'])).toEqual(['tags.gpu']);
	expect(nearColumns('', ['a'])).toEqual([]);
});

it('says each note once, none of other groups, and of a long list its number', () => {
	const groups = ['a', 'b', 'c'].map((name) => ({ name, n: 1, ids: [1], configurations: [null] }));
	const c = { side: 'b', baseline: 'a', notes: ['x',
		'3 configurations of a without a counterpart in b: p=1; q=2; ...'] };
	const notes = ['x', 'a mixes runs of 2 values of v', 'c mixes runs of 9 values of v'];
	expect(noticesOf({ groups, notes }, c as Comparison)).toEqual(['x', 'a mixes runs of 2 values of v',
		'3 configurations of a without a counterpart in b']);
});

it('says a reason that all metrics share once', () => {
	const of = (...reasons: (string | null)[]): CompareMetric[] =>
		reasons.map((reason) => ({ reason }) as CompareMetric);
	expect(commonReason(of('few', 'few'))).toBe('few');
	expect(commonReason(of('few', null))).toBeNull();
	expect(commonReason(of('few'))).toBeNull();
});

it('compares first what can be compared', () => {
	const groups = ['a', 'b', 'c'].map((name) => ({ name, n: 1, ids: [], configurations: [] }));
	const of = (...ids: number[][]): Compare['configurations'][number] =>
		({ configuration: '', values: [], ids });
	const three = [of([1], [], []), of([], [2], [3]), of([], [4], [5])];
	expect(bestBaseline({ groups, configurations: three })).toBe(1);
	expect(bestBaseline({ groups, configurations: [of([1], [2], []), of([], [], [3])] })).toBe(0);
	expect(bestBaseline({ groups, configurations: [of([1], [], []), of([], [2], [])] })).toBe(-1);
	const one = { group: 0, refused: 'unmatched' } as Comparison;
	const figures = (value: number | null): CompareMetric[] => [{ value } as CompareMetric];
	const two = { group: 2, refused: null, metrics: figures(7) } as Comparison;
	const failed = { group: 1, refused: null, metrics: figures(null) } as Comparison;
	expect(shownComparison([failed, two], -1)).toBe(two); // a run without a value says nothing
	expect([-1, 0, 2].map((group) => shownComparison([one, two], group)))
		.toEqual([two, one, two]);
	expect(shownComparison([one], -1)).toBe(one);
	expect(shownComparison([], -1)).toBeUndefined();
});
