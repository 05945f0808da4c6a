// SPDX-License-Identifier: Apache-2.0
import {
	extentIn,
	extentOf,
	isWide,
	keyId,
	keyName,
	niceExtent,
	niceStep,
	titleOf,
} from '../../../web/src/app/charts/axis';
import { groupsOf, lineOf, pointOf, SHOWN_AT_FIRST } from '../../../web/src/app/charts/scatter';
import { categories, chosen, isNumeric, partsOf } from '../../../web/src/app/charts/parallel';
import { hitOf, type LineSeries } from '../../../web/src/app/charts/lines';
import type { Parallel, ParetoGroup, ParetoPoint } from '../../../web/src/lib/api';

it('finds extents among numbers only', () => {
	expect(extentOf([3, 1, NaN, Infinity, 2])).toEqual({ min: 1, max: 3 });
	expect(extentOf([])).toBeNull();
	expect(extentOf([-1, 0, 5, 50], true)).toEqual({ min: 5, max: 50 });
});

it('ends axes on round numbers that hold every value', () => {
	for (const [min, max] of [
		[0, 7],
		[3, 1234],
		[-5, 5],
		[0.001, 0.0042],
		[99, 101],
		[7, 7],
		[0, 0],
	]) {
		const e = niceExtent({ min, max });
		expect(e.min).toBeLessThanOrEqual(min);
		expect(e.max).toBeGreaterThanOrEqual(max);
		expect(e.max).toBeGreaterThan(e.min);
		expect(e.max - e.min).toBeLessThan(Math.max((max - Math.min(min, 0)) * 3, 4));
	}
	expect(niceExtent({ min: 10, max: 100 }).min).toBe(0);
	expect(niceExtent({ min: 90, max: 100 }).min).toBeGreaterThan(80);
	expect(niceExtent({ min: 3, max: 4000 }, true)).toEqual({ min: 1, max: 10000 });
	expect(niceExtent(null)).toEqual({ min: 0, max: 1 });
	expect(niceStep(10)).toBe(2);
	expect(extentIn('%', { min: 2, max: 99 }).max).toBe(100);
	expect(extentIn('%', { min: 2, max: 180 }).max).toBeGreaterThanOrEqual(180);
	expect(isWide({ min: 1, max: 41 })).toBe(true);
	expect(isWide({ min: 0, max: 41 })).toBe(false);
});

it('names groups by the API, or by their values', () => {
	expect(keyName({ 'server.model': 'a', 'server.tp': 2 })).toBe('a, tp 2');
	expect(keyName({ 'server.tp': null })).toBe('tp missing');
	expect(keyName({}, '')).toBe('All runs');
	expect(keyName({ a: 1 }, 'told')).toBe('told');
	expect(keyId({ a: 'x', b: 2 })).toBe('x | 2');
	expect(keyId({})).toBe('all');
	expect(titleOf('TTFT', 'ms')).toBe('TTFT (ms)');
	expect(titleOf('Runs', null)).toBe('Runs');
});

const point = (id: number, x: number, y: number, is_frontier: boolean): ParetoPoint => ({
	id,
	x,
	y,
	is_frontier,
	is_degraded: false,
});
const group = (name: string, points: ParetoPoint[]): ParetoGroup => ({
	key: { g: name },
	name,
	n: points.length,
	points,
});

it('shows the first groups and those that were asked for', () => {
	const all = Array.from({ length: SHOWN_AT_FIRST + 2 }, (_, i) => group(`g${i}`, []));
	const shown = (flipped: string[]): string[] =>
		groupsOf(all, flipped)
			.filter((g) => g.isShown)
			.map((g) => g.id);
	expect(shown([])).toHaveLength(SHOWN_AT_FIRST);
	expect(shown(['g0', `g${SHOWN_AT_FIRST}`])).toEqual([
		...all.slice(1, SHOWN_AT_FIRST + 1).map((g) => g.name),
	]);
});

it('joins the frontier, or all points, from left to right', () => {
	const points = [point(1, 3, 9, true), point(2, 1, 2, true), point(3, 2, 8, false)];
	expect(lineOf(points, 'frontier')).toEqual([
		[1, 2],
		[3, 9],
	]);
	expect(lineOf(points, 'lines')).toEqual([
		[1, 2],
		[2, 8],
		[3, 9],
	]);
	expect(lineOf(points, 'none')).toEqual([]);
});

it('knows which point was hit, and that lines are none', () => {
	const groups = groupsOf(
		[group('a', [point(7, 1, 1, true)]), group('b', [point(8, 2, 2, false)])],
		[],
	);
	expect(pointOf(groups, { seriesId: 'dots 1', dataIndex: 0 })?.point.id).toBe(8);
	expect(pointOf(groups, { seriesId: 'line 1', dataIndex: 0 })).toBeNull();
	expect(pointOf(groups, { seriesId: 'dots 1', dataIndex: 4 })).toBeNull();
	expect(pointOf(groups, { seriesId: 'dots 9', dataIndex: 0 })).toBeNull();
	const lines: LineSeries[] = [
		{
			id: 's',
			name: 's',
			isShown: true,
			changes: [],
			points: [{ x: 1, value: 5, low: null, high: null, facts: [] }],
		},
	];
	expect(hitOf(lines, 'dots 0', 0)?.point.value).toBe(5);
	expect(hitOf(lines, 'changes 0', 0)).toBeNull();
});

it('takes what lies between two places of an axis of words', () => {
	const answer: Parallel = {
		total: 3,
		shown: 3,
		left_out: 0,
		trust: [],
		notes: [],
		data_version: 1,
		query_ms: 0,
		axes: [
			{
				column: 'm',
				unit: null,
				better: null,
				kind: 'text',
				min: null,
				max: null,
				values: ['a', 'b'],
			},
			{
				column: 'x',
				unit: null,
				better: null,
				kind: 'number',
				min: 1,
				max: 3,
				values: [],
			},
		],
		lines: [
			{ id: 1, values: ['a', 1] },
			{ id: 2, values: [null, 2] },
			{ id: 3, values: ['b', 3] },
		],
	};
	expect(answer.axes.map(isNumeric)).toEqual([false, true]);
	const values = categories(answer, 0);
	expect(values).toEqual(['a', 'b', null]);
	expect(chosen(values, -0.4, 0.4)).toEqual(['a']);
	expect(chosen(values, 2.4, 0.6)).toEqual(['b', null]);
	expect(chosen(values, 0.6, 0.9)).toEqual(['b']);
	expect(partsOf(answer, 0, { column: 'm', in: ['b', null] })).toEqual([
		[1, 1],
		[2, 2],
	]);
	expect(partsOf(answer, 1, { column: 'x', range: { min: 2 } })).toEqual([[2, 3]]);
	expect(partsOf(answer, 1, undefined)).toEqual([]);
});
