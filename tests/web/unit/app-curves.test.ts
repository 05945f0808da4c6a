// SPDX-License-Identifier: Apache-2.0
// The performance chart: what is drawn of an answer, where labels go, and what can be saved.
import { readOff, usualSpeed } from '../../../web/src/app/pages/plan/calculator';
import {
	along, curvesOption, frontier, handleOf, looksOf, placeLabels, plansOf, shareOf, spotsOf, tipRows,
	usualLines, valueAt,
	type CurveOptions, type Label,
} from '../../../web/src/app/charts/curves';
import { composed, csvText, fileName, legendPlaces, wrapped } from '../../../web/src/app/charts/export';
import type { Ink } from '../../../web/src/app/charts/ink';
import {
	againstFirst, pinText, readingText, USUAL_VIEW, viewOf,
} from '../../../web/src/app/pages/charts/view';
import { SHAPES } from '../../../web/src/app/colour';
import type { CurvePoint, Curves } from '../../../web/src/lib/api';

vi.stubGlobal('getComputedStyle', () => ({ getPropertyValue: (name: string) => `#${name.slice(-1)}00000` }));
vi.stubGlobal('document', { documentElement: null });

const size = { width: 1000, height: 480 };
const ink = { card: '#fff', ink: '#111', dim: '#555', faint: '#777', grid: '#eee' } as Ink;
const point = (id: number, x: number, y: number, more: Partial<CurvePoint> = {}): CurvePoint => ({
	ids: [id], x, y, x_min: x, x_max: x, y_min: y, y_max: y, load: id, label: `TP1 c${id}`,
	is_frontier: true, is_best: false, is_degraded: false, is_invalid: false,
	tip: [{ label: 'Tokens/s/user', value: `${x} tokens/s/user` }], ...more });
const answer: Curves = {
	workload: 'w', workloads: [], color: 'gpu_model', configuration: [], load: 'load', common: [],
	notes: [], x: { column: 'x', unit: 'tokens/s', better: 'higher' },
	y: { column: 'y', unit: null, better: 'higher' },
	colors: [{ key: 'b200', points: 3 }, { key: 'a100', points: 2 }],
	lines: [
		{ name: 'TP1', color: 'b200', points: [point(1, 900, 100, { is_best: true }),
			point(2, 300, 3000), point(3, 200, 90, { is_frontier: false, is_degraded: true })] },
		{ name: 'TP1', color: 'a100', points: [point(4, 100, 500),
			point(5, 120, 4000, { is_frontier: false })] },
	],
	sentence: 'b200 leads.', at: 100,
	reading: [{ color: 'b200', y: 3000, between: null, low: 20, high: 90 },
		{ color: 'a100', y: null, between: null, low: null, high: null }],
	left_out: { invalid: 0, missing: 0, would_lead: false }, unpriced: [], total: 5, shown: 5, trust: [],
	data_version: 1, query_ms: 0,
};
const measure = (column: string): CurveOptions['x'] => ({ column, label: column, unit: null });
const options = (more: Partial<CurveOptions> = {}): CurveOptions => {
	const looks = looksOf(answer.colors, false);
	return { looks, spots: spotsOf(answer.lines, looks), isShown: () => true, x: measure('x'),
		y: measure('y'), lines: 'best', isLogX: null, isLogY: null, at: 100, pins: [], pointed: null,
		focus: null, ...more };
};
interface Drawn { id: string; data: unknown[] }
interface Dot { value: number[]; symbol: string; itemStyle: { color: string } }
const series = (o: CurveOptions): Drawn[] => curvesOption(o, ink, size).series as Drawn[];
const of = (o: CurveOptions, id: string): Drawn | undefined => series(o).find((s) => s.id === id);

it('draws INVALID runs as crosses that no line joins', () => {
	const looks = looksOf(answer.colors, false);
	const invalid = point(6, 5000, 9000, { is_frontier: false, is_invalid: true });
	const [first, ...rest] = answer.lines;
	const spots = spotsOf([{ ...first, points: [...first.points, invalid] }, ...rest], looks);
	for (const lines of ['best', 'all', 'points'] as const) {
		const all = series(options({ spots, lines }));
		expect(all.filter((s) => s.id !== 'dots').flatMap((s) => s.data))
			.not.toContainEqual([5000, 9000]);
		const dots = all.find((s) => s.id === 'dots')?.data as Dot[];
		const crosses = dots.filter((d) => !SHAPES.some((shape) => d.symbol === `path://${shape}`));
		expect(crosses.map((d) => [d.value, d.itemStyle.color])).toEqual([[[5000, 9000], 'none']]);
	}
});

it('joins the best of each color from left to right', () => {
	expect(of(options(), 'front b200')?.data).toEqual([[300, 3000], [900, 100]]);
	expect(of(options(), 'front a100')?.data).toEqual([[100, 500]]);
	expect(frontier(options().spots).map((s) => s.id)).toEqual([4, 2, 1]);
	const every = options({ lines: 'all' });
	expect(of(every, 'line b200 0')?.data).toEqual([[900, 100], [300, 3000], [200, 90]]);
	expect(of(every, 'front b200')).toBeUndefined();
	expect(series(options({ lines: 'points' })).map((s) => s.id)).toEqual(['reading', 'dots']);
	expect(usualLines(answer.lines)).toBe('all');
	expect(usualLines(Array.from({ length: 9 }, () => answer.lines[0]))).toBe('best');
});

it('draws DEGRADED hollow, pins with a number, and the rest small', () => {
	const dots = of(options({ pins: [2] }), 'dots')?.data as {
		symbol: string; symbolSize: number; itemStyle: { color: string; opacity: number };
		label: { show: boolean; formatter: string };
	}[];
	expect(dots[2].itemStyle.color).toBe(ink.card);
	expect(dots[0].itemStyle.color).not.toBe(ink.card);
	expect(dots[2].itemStyle.opacity).toBeLessThan(0.5);
	expect(dots[3].symbol).toContain(SHAPES[1]);
	expect(dots[1].label).toMatchObject({ show: true, formatter: '1: TP1 c2' });
	expect(dots[1].symbolSize).toBeGreaterThan(dots[0].symbolSize);
});

it('spans only what is shown, and keeps colors when one is hidden', () => {
	const whole = plansOf(options(), size), part = options({ isShown: (c) => c === 'b200' });
	expect(plansOf(part, size).y.max).toBeLessThan(whole.y.max);
	expect([whole.x.min, whole.y.min]).toEqual([0, 0]);
	expect(part.looks.get('a100')?.css).toBe('var(--series-2)');
	expect(valueAt(whole.x, shareOf(whole.x, 321))).toBeCloseTo(321);
	const log = plansOf(options({ isLogX: true }), size).x;
	expect(log.scale).toBe('log');
	expect(valueAt(log, shareOf(log, 321))).toBeCloseTo(321);
});

it('leaves an axis its own range where all values are near each other, with the ends of repeats', () => {
	const near = [point(1, 90, 800, { x_min: 71, x_max: 125, y_min: 790, y_max: 815 }), point(2, 94,
		900)];
	const o = options({ spots: spotsOf([{ name: 'TP1', color: 'b200', points: near }],
		options().looks) });
	const { x, y } = plansOf(o, size);
	expect([x.min > 60, x.min < 71, x.max > 125, y.min > 700]).toEqual([true, true, true, true]);
	const line = of(o, 'whiskers') as unknown as { lineStyle: { color: string } };
	expect(line.lineStyle.color).toBe(ink.dim);
});

it('colors numbers by a ramp in their order, and what is missing in grey', () => {
	const keys = ['TP8', 'TP1', 'missing', 'TP2'].map((key) => ({ key, points: 1 }));
	const looks = looksOf(keys, true);
	expect(looks.get('TP1')?.css).toContain('--ramp-1');
	expect(looks.get('TP8')?.css).toContain('--ramp-5) 100%');
	expect(looks.get('missing')?.css).toBe('var(--faint)');
	expect(looksOf(answer.colors, false).get('b200')?.css).toBe('var(--series-1)');
});

it('puts no label over another or over a point, and the best first', () => {
	const at = (index: number, x: number, rank: number): Label =>
		({ text: 'TP1 c32', x, y: 100, rank, index });
	const room = { width: 800, height: 400 };
	expect(placeLabels([at(0, 100, 1), at(1, 300, 1)], [{ x: 100, y: 100 }, { x: 300, y: 100 }], room))
		.toEqual(new Map([[0, 'right'], [1, 'right']]));
	const crowd = Array.from({ length: 9 }, (_, i) => at(i, 100 + i * 5, i === 4 ? 0 : 1));
	const placed = placeLabels(crowd, crowd, room);
	expect(placed.get(4)).toBeDefined();
	expect(placed.size).toBeLessThan(crowd.length);
	expect(placeLabels([at(0, 795, 0)], [{ x: 795, y: 100 }], room).get(0)).not.toBe('right');
	const line = along([{ x: 100, y: 100 }, { x: 400, y: 110 }]);
	expect(placeLabels([at(0, 100, 1)], [{ x: 100, y: 100 }], room, line).get(0)).toBe('top');
	const cross = [line, along([{ x: 100, y: 40 }, { x: 100, y: 160 }]), along([{ x: 0, y: 100 },
		{ x: 100, y: 100 }])].flat();
	expect(placeLabels([at(0, 100, 1)], [{ x: 100, y: 100 }], room, cross).get(0)).toBe('right');
});

it('keeps labels off the handle of the reading line', () => {
	const at = { x: 120, y: 4, text: 'TP1 c64', index: 0, rank: 0 }, room = { width: 500, height: 300 };
	expect(placeLabels([at], [], room).get(0)).toBe('right');
	expect(placeLabels([at], handleOf(135), room).get(0)).not.toBe('right');
});

it('names a point by what differs, each once', () => {
	expect(options().spots[0].name).toBe('b200 · TP1 c1');
	const points = [point(1, 1, 1, { label: 'c4' })];
	const loose = spotsOf([{ name: 'fp8', color: 'b200', points }], new Map());
	expect(loose[0].name).toBe('b200 · fp8 · c4');
});

it('reads the line in words, and pins against the first', () => {
	const perGpu = { label: 'Output tokens/s/GPU', unit: 'tokens/s/GPU' };
	expect(readingText(answer, { label: 'Tokens/s/user', unit: 'tokens/s/user' }, perGpu))
		.toBe('Output tokens/s/GPU at 100 tokens/s/user or more: b200 3,000.');
	const low: Curves = { ...answer, x: { ...answer.x, better: 'lower' } };
	expect(readingText(low, { label: 'P99 TTFT', unit: 'ms' }, { label: 'Median E2EL', unit: 'ms' }))
		.toContain('Median E2EL (ms) at 100 ms or less');
	expect(readingText({ ...answer, at: null }, { label: '', unit: null }, perGpu)).toBe('');
	expect([againstFirst(112, 100), againstFirst(50, 100), againstFirst(1, 0)])
		.toEqual(['+12.0\u00a0%', '−50.0\u00a0%', '']);
	const [spot] = options().spots;
	expect(pinText({ name: spot.name, ids: spot.point.ids, rows: tipRows(spot) }))
		.toBe('b200 · TP1 c1\nTokens/s/user\t900\nRuns\t1');
});

it('opens old addresses in the view that they were made in', () => {
	expect(viewOf('')).toBe(USUAL_VIEW);
	expect(viewOf('?view=performance&x=p99_ttft_ms&w=a')).toBe('performance');
	expect(viewOf('?view=any')).toBe('any');
	expect(viewOf('?g=server.model&x=output_throughput')).toBe('any');
});

it('saves a picture with its title, legend and notes, and a table that no spreadsheet runs', () => {
	const legend = [{ name: '<b200>', colour: '#123456', shape: SHAPES[0] }];
	const p = { title: 'A & B', notes: ['one'], legend, size, ink };
	const { svg, size: all } = composed(p, '<svg></svg>');
	expect(svg).toContain('A &amp; B');
	expect(svg).toContain('&lt;b200&gt;');
	expect(svg).toContain('#123456');
	expect(all.width).toBeGreaterThan(size.width);
	expect(csvText([['run', 'a,b'], [1, '=1+1'], [2, null]])).toBe('run,"a,b"\r\n1,\'=1+1\r\n2,\r\n');
	expect(fileName('Tokens/s/GPU against TTFT', 'png')).toBe('tokens-s-gpu-against-ttft.png');
	expect(wrapped('aaa bbb ccc', 1)).toEqual(['aaa bbb ccc']);
	const places = legendPlaces(['x'.repeat(40), 'y'.repeat(40)], 400);
	expect(places[1]).toEqual({ x: 0, y: 20 });
});

it('has the values of a slowest configuration that is faster than asked', () => {
	const color = (name: string, y: number | null, between: number | null, low: number, high: number) =>
		({ color: name, y, between, low, high });
	const output = { reading: [color('h100', 1300, 1384, 180, 500), color('b200', 2986, null, 354, 938),
		color('a100', null, null, 20, 100)] };
	const cost = { reading: [color('b200', 0.5, null, 354, 938), color('h100', 0.9, 0.8, 180, 500)] };
	expect(readOff(output, cost, 240).map((r) => [r.color, r.tokens, r.usd, r.isMeasured]))
		.toEqual([['b200', 2986, 0.5, true], ['h100', 1384, 0.8, false],
			['a100', null, null, false]]);
});

it('asks the calculator for a speed at which most colors were measured', () => {
	const reach = (...list: [number | null, number | null][]) =>
		usualSpeed(list.map(([low, high]) => ({ low, high })));
	expect(reach([20, 90], [60, 200])).toBe(75);
	expect(reach([90.8, 93.4], [91, 92])).toBe(92);
	expect(reach([100, 100], [100, 100])).toBe(100);
	expect(reach([10, 20], [30, 40], [32, 60])).toBe(36);
	expect(reach([null, null])).toBeNull();
});
