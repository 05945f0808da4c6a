// SPDX-License-Identifier: Apache-2.0
import {
	GROUPS_MAX, keptCodec, namesOf, nearColumns, ofChosen, ofKept, ofRuns, ofValues,
} from '../../../web/src/app/pages/compare/groups';
import { countsText, headlineOf, noticesOf, toneOf } from '../../../web/src/app/pages/compare/words';
import { sizeText } from '../../../web/src/app/pages/compare/metrics';
import { intervalText, percent, reachOf } from '../../../web/src/app/common/interval';
import { EVERYTHING } from '../../../web/src/app/filter';
import type { Comparison, CompareMetric, CompareParameter } from '../../../web/src/lib/api';

it('writes differences as people read them', () => {
	expect(percent(0.0523)).toBe('+5.2 %');
	expect(percent(-0.003)).toBe('−0.3 %');
	expect(percent(12.34)).toBe('+1234 %');
	expect(percent(0)).toBe('0 %');
	expect(percent(null)).toBe('–');
	expect(intervalText([-0.01, 0.02])).toBe('−1 % to +2 %');
	expect(intervalText(null)).toBe('');
});

it('gives all bars of a list one reach, whatever one of them does', () => {
	const small = Array.from({ length: 20 }, () => ({ effect: 0.1, interval: [0.05, 0.15] }));
	expect(reachOf([...small, { effect: 90, interval: null }])).toBeLessThan(0.3);
	expect(reachOf([])).toBe(0.05);
	expect(reachOf([{ effect: 50, interval: null }])).toBe(2);
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
	const within = ofValues({ and: [{ column: 'm', in: ['a', 'b'] }] }, 'm', ['a']);
	expect(within[0].filter).toEqual({ and: [{ and: [{ column: 'm', in: ['a', 'b'] }] },
		{ column: 'm', in: ['a'] }] });
	const parameter: CompareParameter = { column: 'tp', group: 'server', differs: 'between',
		values: [[{ value: 1, count: 1 }], [{ value: 2, count: 1 }], [{ value: 1, count: 1 }], []] };
	expect(ofChosen([5, 6, 7, 8], parameter)).toEqual([{ name: '1', ids: [5, 7] },
		{ name: '2', ids: [6] }, { name: 'missing', ids: [8] }]);
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
	expect(ofRuns([4, 9], ['a', 'b']).map((g) => g.name)).toEqual(['a', 'b']);
});

it('offers columns that were probably meant', () => {
	expect(nearColumns('gpu', ['tags.gpu', 'server.gpu_memory', 'server.model']))
		.toEqual(['tags.gpu', 'server.gpu_memory']);
	expect(nearColumns('server.gpu', ['server.gpu', 'tags.gpu'])).toEqual(['tags.gpu']);
	expect(nearColumns('', ['a'])).toEqual([]);
});

it('gathers notices once, with the side they are about', () => {
	const one = { side: 'b', notes: ['x', 'y'] } as Comparison;
	const two = { side: 'c', notes: ['c mixes'] } as Comparison;
	expect(noticesOf({ notes: ['x'], comparisons: [one] })).toEqual(['x', 'y']);
	expect(noticesOf({ notes: ['x'], comparisons: [one, two] }))
		.toEqual(['x', 'b: x', 'b: y', 'c mixes']);
});
