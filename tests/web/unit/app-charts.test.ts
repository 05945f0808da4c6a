// SPDX-License-Identifier: Apache-2.0
import {
	extentOf,
	isDoubling,
	isWide,
	keyId,
	keyName,
	planAxis,
	planTime,
	stepOf,
	titleOf,
	valueAxis,
} from '../../../web/src/app/charts/axis';
import { groupsOf, lineOf, pointOf, SHOWN_AT_FIRST } from '../../../web/src/app/charts/scatter';
import {
	categories, chosen, isNumeric, partsOf, withoutConstant,
} from '../../../web/src/app/charts/parallel';
import { hitOf, savedLines, type LineSeries } from '../../../web/src/app/charts/lines';
import { differingOf, inOrder, tellingOf, varies } from '../../../web/src/app/common/columns';
import { factsOf } from '../../../web/src/app/pages/charts/facts';
import { withNames } from '../../../web/src/app/pages/plan/names';
import type { Parallel, ParetoGroup, ParetoPoint } from '../../../web/src/lib/api';
import type { ColumnOption } from '../../../web/src/app/query';

it('finds extents among numbers only', () => {
	expect(extentOf([3, 1, NaN, Infinity, 2])).toEqual({ min: 1, max: 3 });
	expect(extentOf([])).toBeNull();
	expect(extentOf([-1, 0, 5, 50], true)).toEqual({ min: 5, max: 50 });
});

const across = { isVertical: false, px: 900 },
	up = { isVertical: true, px: 380 };
const texts = (plan: ReturnType<typeof planAxis>): string[] => plan.ticks.map(plan.format);

it('ends axes a little after the data, at every scale, and keeps ticks inside', () => {
	for (const values of [
		[0, 7],
		[3, 1234],
		[-5, 5],
		[0.001, 0.0042],
		[99, 101],
		[7, 7],
		[0, 0],
		[],
		[90, 14243],
		[1, 1e9],
	])
		for (const scale of ['linear', 'log', 'auto'] as const) {
			const plan = planAxis(values, { ...up, scale });
			expect(plan.max).toBeGreaterThan(plan.min);
			expect(plan.ticks.length).toBeGreaterThan(0);
			for (const v of values.filter((n) => n > 0 || plan.scale === 'linear')) {
				expect(plan.min).toBeLessThanOrEqual(v);
				expect(plan.max).toBeGreaterThanOrEqual(v);
			}
			for (const tick of [...plan.ticks, ...plan.minor]) {
				expect(tick).toBeGreaterThanOrEqual(plan.min - 1e-9);
				expect(tick).toBeLessThanOrEqual(plan.max * (1 + 1e-9));
			}
			expect(new Set(texts(plan)).size).toBe(plan.ticks.length);
		}
});

it('draws the demo chart as the design does: from 0, ticks at 200 and at 500 or 1,000', () => {
	const x = planAxis([17.2, 330, 1008], { ...across, scale: 'linear' }),
		y = planAxis([50, 900, 3725], { ...up, scale: 'linear' });
	expect([x.scale, x.min]).toEqual(['linear', 0]);
	expect(x.ticks).toEqual([0, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000]);
	expect(x.format(1000)).toBe('1,000');
	const narrow = planAxis([17.2, 330, 1008], { ...across, px: 500, scale: 'linear' });
	expect(texts(narrow)).toEqual(['0', '200', '400', '600', '800', '1,000']);
	expect(texts(y)).toEqual(['0', '500', '1,000', '1,500', '2,000', '2,500', '3,000', '3,500']);
	// No tick is forced at the end: 12k is not printed over 12.5k.
	const high = planAxis([0, 12_500], { ...up, scale: 'linear' });
	expect(texts(high)).toEqual(['0', '2k', '4k', '6k', '8k', '10k', '12k']);
	expect(high.max).toBe(13_000);
	const drawn = valueAxis({ name: 'y', plan: high, isVertical: true, ink: { grid: '' } as never });
	expect(drawn).toMatchObject({ min: 0, max: 13_000, axisLabel: { customValues: high.ticks } });
});

it('steps by 1, 2 or 5, nearest to the wanted distance', () => {
	expect(stepOf(10, 900, 90)).toBe(1);
	expect(stepOf(100, 450, 90)).toBe(20);
	expect(stepOf(1.2, 300, 90)).toBe(0.5);
	expect(stepOf(7000, 300, 56)).toBe(1000);
});

it('labels tight logarithmic axes at 1, 2 and 5, and wide ones at 1 alone', () => {
	const near = planAxis([90, 5000], { ...up, scale: 'log' });
	expect(near.min).toBeCloseTo(90 * 0.92);
	expect(near.max).toBeCloseTo(5000 * 1.08);
	expect(texts(near)).toEqual(['100', '200', '500', '1,000', '2,000', '5,000']);
	const far = planAxis([90, 142_430], { ...up, scale: 'log' });
	expect(texts(far)).toEqual(['100', '1,000', '10k', '100k']);
	expect(far.minor).toEqual([200, 500, 2000, 5000, 20_000, 50_000]);
	const short = planAxis([21, 48], { ...up, scale: 'log' });
	expect(short.ticks).toEqual([20, 25, 30, 35, 40, 45, 50]);
	expect(isWide([1, 2, 3, 40])).toBe(false);
	expect(isWide([1, 10, 60])).toBe(true);
	expect(isWide([0, 41])).toBe(false);
	expect(planAxis([8, 90, 1200], { ...across, unit: 'ms' }).scale).toBe('log');
	expect(planAxis([8, 90, 300], { ...across, unit: null }).scale).toBe('linear');
});

it('doubles where sizes are powers of two', () => {
	expect(isDoubling([1, 2, 4, 8])).toBe(true);
	expect(isDoubling([1, 2])).toBe(false);
	expect(isDoubling([1, 2, 3, 4])).toBe(false);
	const tp = planAxis([1, 2, 4, 8], { ...across, scale: 'log2' });
	expect(texts(tp)).toEqual(['1', '2', '4', '8']);
	const many = planAxis([1, 1024], { ...across, px: 300, scale: 'log2' });
	expect(many.ticks.length).toBeLessThanOrEqual(7);
});

it('writes all numbers of an axis in one way, and shares end at 100 %', () => {
	const low = planAxis([0, 1.9], { ...up, px: 260, scale: 'linear' });
	expect(texts(low)).toEqual(['0.0', '0.5', '1.0', '1.5']);
	expect(texts(planAxis([0, 42_000_000], up)).slice(-2)).toEqual(['35M', '40M']);
	expect(planAxis([2, 99], { ...up, unit: '%' }).max).toBe(100);
	expect(planAxis([2, 180], { ...up, unit: '%' }).max).toBeGreaterThan(180);
});

it('never lets labels collide', () => {
	for (const px of [250, 400, 900, 1500])
		for (const max of [3, 77, 1008, 14_243, 9_999_999])
			for (const scale of ['linear', 'log'] as const) {
				const values = [max / 300, max / 2, max];
				const plan = planAxis(values, { isVertical: false, px, scale });
				const place = (v: number): number =>
					(scale === 'log'
						? Math.log(v / plan.min) / Math.log(plan.max / plan.min)
						: (v - plan.min) / (plan.max - plan.min)) * px;
				plan.ticks.slice(1).forEach((v, i) => {
					const width = 7 * plan.format(v).length;
					expect(place(v) - place(plan.ticks[i])).toBeGreaterThan(width);
				});
			}
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

it('joins the frontier from left to right', () => {
	const points = [point(1, 3, 9, true), point(2, 1, 2, true), point(3, 2, 8, false)];
	expect(lineOf(points, 'frontier')).toEqual([
		[1, 2],
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
	/* An axis on which all lines meet in one point tells nothing, unless it is kept. */
	const met: Parallel = { ...answer, axes: [...answer.axes, { ...answer.axes[1], column: 'rate' }],
		lines: answer.lines.map((l) => ({ ...l, values: [...l.values, 'inf'] })) };
	expect(withoutConstant(met, []).axes.map((a) => a.column)).toEqual(['m', 'x']);
	expect(withoutConstant(met, []).lines).toEqual(answer.lines);
	expect(withoutConstant(met, ['rate']).axes.length).toBe(3);
	expect(withoutConstant({ ...met, lines: met.lines.slice(0, 1) }, []).axes.length).toBe(3);
});

it('says of a point what tells its run from the others', () => {
	const measure = (column: string) => ({ column, label: column === 'gpu_model' ? 'GPU' : 'Median TTFT',
		unit: column === 'gpu_model' ? null : 'ms' });
	expect(factsOf(7, { name: 'a', verdict: 'DEGRADED', status: 'completed', gpu_model: 'b200', p: null,
		t: 12.345 },
		['run_id', 'name', 'status', 'gpu_model', 'p', 't', 'verdict'], { measure }))
		.toEqual({ name: 'a', rows: [['GPU', 'b200'], ['Median TTFT', '12.35 ms'], ['Verdict',
			'DEGRADED']] });
	expect(factsOf(7, {}, ['name'], { measure })).toEqual({ name: 'Run 7', rows: [] });
});

it('names the columns that groups differ in, and brings numbers in order', () => {
	const keys = [{ rate: 16, gpu: 'a' }, { rate: 1, gpu: 'a' }, { rate: 4, gpu: 'a' }];
	expect(differingOf(['gpu', 'rate'], keys)).toEqual(['rate']);
	expect(inOrder(keys.map((key) => ({ key }))).map((s) => s.key.rate)).toEqual([1, 4, 16]);
	expect(inOrder([{ key: {} }, { key: { tp: 8 } }, { key: { tp: null } }, { key: { tp: 1 } }])
		.map((s) => (s.key as { tp?: number }).tp)).toEqual([1, 8, undefined, null]);
	expect(inOrder([{ key: { gpu: 'b' } }, { key: { gpu: 'a' } }]).map((s) => s.key.gpu)).toEqual(['b',
		'a']);
});

it('knows what differs where there are too many values to count', () => {
	const option = { distinct: 0, is_constant: false } as ColumnOption;
	expect([undefined, option, { ...option, is_constant: true }, { ...option, distinct: 1 },
		{ ...option, distinct: 2 }].map(varies)).toEqual([false, true, false, false, true]);
});

it('saves lines with their points', () => {
	const line: LineSeries = { id: 's', name: 'TP1', isShown: true, changes: [],
		points: [{ x: 1, value: 2, low: 1.5, high: null, facts: [] }] };
	expect(savedLines('t', [line, { ...line, isShown: false }], 'x', 'y').table?.())
		.toEqual([['series', 'x', 'y', 'low', 'high'], ['TP1', 1, 2, 1.5, null]]);
});

it('names configurations by what tells them apart, without what follows from it', () => {
	const keys = [['b200', 1, 1024], ['b200', 2, 1024], ['a100', 1, 256]].map(([gpu, tp, seqs]) =>
		({ 'server.model': 'm',
		'server.gpu': gpu, 'server.tensor_parallel_size': tp, 'server.max_num_seqs': seqs }));
	expect(tellingOf(Object.keys(keys[0]), keys)).toEqual(['server.gpu', 'server.tensor_parallel_size']);
	expect(withNames(keys.map((key) => ({ key, name: 'long' }))).map((c) => [c.name, c.full]))
		.toEqual([['b200 TP1', 'long'], ['b200 TP2', 'long'], ['a100 TP1', 'long']]);
	expect(withNames([{ key: keys[0], name: 'long' }])[0].name).toBe('long');
	expect(withNames([{ key: { a: true }, name: '' }, { key: { a: true, 'server.tp': 8 },
		name: '' }]).map((c) => c.name))
		.toEqual(['tp not set', 'tp 8']);
});

it('writes times as the reader\'s clock has them, the date where it changes', () => {
	const at = (text: string): number => new Date(text).getTime() / 1000;
	const read = (from: string, to: string): string[] => {
		const { ticks, format } = planTime(at(from), at(to), 600);
		return ticks.map(format);
	};
	expect(read('2026-11-28T09:57:30', '2026-11-28T10:02:30')).toEqual(['2026-11-28 09:58',
		'09:59', '10:00', '10:01', '10:02']);
	expect(read('2026-11-28T20:00:00', '2026-11-29T04:00:00')).toEqual(['2026-11-28 20:00',
		'22:00', '2026-11-29 00:00', '02:00', '04:00']);
	expect(read('2026-11-04T09:00:00', '2026-11-12T09:00:00')).toHaveLength(4);
	expect(read('2015-01-01T00:00:00', '2031-01-01T00:00:00')).toEqual(['2015-01-01', '2020-01-01',
		'2025-01-01', '2030-01-01']);
	expect(read('1970-01-02T00:00:00', '2031-01-01T00:00:00').length).toBeLessThan(7);
	/* A clock that is set within: each tick is the midnight of its day. */
	expect(read('2026-09-20T12:00:00', '2026-12-31T12:00:00')).toEqual(['2026-10-01', '2026-11-01',
		'2026-12-01']);
	expect(planTime(at('2026-10-20T12:00:00'), at('2026-11-01T12:00:00'), 600).ticks.map((s) =>
		new Date(s * 1000).getHours())).toEqual([0, 0, 0, 0, 0, 0]);
	expect(read('2026-11-28T10:00:00', '2026-11-28T10:00:04')).toEqual(['2026-11-28 10:00:00',
		'10:00:01', '10:00:02', '10:00:03', '10:00:04']);
});

it('puts no tick between two things that are counted', () => {
	const { ticks } = planAxis([256, 258], { isVertical: false, px: 600, isWhole: true });
	expect(ticks).toEqual([256, 257, 258]);
});
