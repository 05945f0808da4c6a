// SPDX-License-Identifier: Apache-2.0
// What the page of a run draws: strips over time, distributions, and how it compares with its repeats.
import { expect, test } from 'vitest';
import type { Row, SeriesTrack } from '../../../web/src/lib/api';
import {
	nearest, pathOf, readingOf, rowsOf, stripsOf, timeText, topOf, valueOf, viewWithin, zoomed,
} from '../../../web/src/app/common/series';
import { differenceOf, othersOf } from '../../../web/src/app/pages/run/repeats';
import { binsOf, marksOf, quantileOf } from '../../../web/src/app/pages/run/sketches';
import { intervalText } from '../../../web/src/app/common/interval';
import { planAxis } from '../../../web/src/app/charts/axis';

const track = (key: string, y: (number | null)[], more: Partial<SeriesTrack> = {}): SeriesTrack =>
	({ key, label: key, unit: null, t_s: y.map((_, i) => i), y, min: null, max: null, ...more });
const series = (...tracks: SeriesTrack[]) => ({ duration_s: 3, tracks, failed_s: [], missing: [] });

test('what belongs together is one strip; an empty queue and a track without values are none', () => {
	const running = track('requests_running', [1, 2, 3]), waiting = track('requests_waiting', [0, 4, 0]);
	const both = stripsOf(series(running, waiting, track('gpu_power_w', [null, null, null])));
	expect(both.map((s) => [s.key, s.lines.map((l) => l.label)])).toEqual(
		[['requests_running', ['running', 'waiting']]]);
	const empty = stripsOf(series(running, track('requests_waiting', [0, 0, 0])));
	expect(empty[0].lines.map((l) => l.label)).toEqual(['running']);
	expect(rowsOf(both)).toEqual([[0, 1, 0], [1, 2, 4], [2, 3, 0]]);
	expect(readingOf(both[0], 1.2)).toBe('Requests: running 2, waiting 4');
});

test('a spike between points is on the scale', () => {
	const [strip] = stripsOf(series(track('gpu_power_w', [100, 200, 300], { max: [100, 690, 300] })));
	expect(topOf(strip, [0, 3])).toBeGreaterThanOrEqual(690);
	expect(topOf(strip, [2, 3])).toBeGreaterThanOrEqual(690); // the line comes from the point before
});

test('the cursor reads the nearest point, and without it the last value', () => {
	const t = track('x', [5, null, 7, null]);
	expect([0.4, 1.6, 9].map((s) => nearest(t.t_s, s))).toEqual([0, 2, 3]);
	expect(nearest([], 1)).toBe(-1);
	expect([valueOf(t, 0.2), valueOf(t, 1), valueOf(t, null)]).toEqual([5, null, 7]);
	expect(timeText(75, 1)).toBe('75 s');
	expect(timeText(200, 10)).toBe('3:20 min');
});

test('a missing value breaks a line, and one alone is a ring', () => {
	const f = { view: [0, 4] as [number, number], width: 40, height: 10, top: 10 };
	expect(pathOf(track('x', [10, 5, null, 0, null]), f))
		.toBe('M0,0L10,5M30,10m-2,0a2,2 0 1,0 4,0a2,2 0 1,0 -4,0');
});

test('zooming stays within the run', () => {
	expect(zoomed([0, 10], [0, 10], 0.5, 4)).toEqual([2, 7]);
	expect(zoomed([2, 7], [0, 10], 4, 4)).toEqual([0, 10]);
	expect(viewWithin([3, 3], [0, 10])).toEqual([0, 10]);
});

test('a histogram of equal shares is flat, and quantiles lie between those that are known', () => {
	const points = Array.from({ length: 11 }, (_, i): [number, number] => [10 + i, i / 10]);
	const bins = binsOf(points, false);
	expect(bins.reduce((sum, b) => sum + b.share, 0)).toBeCloseTo(1);
	for (const b of bins)
		expect(b.share).toBeCloseTo(1 / bins.length);
	expect(quantileOf(points, 0.55)).toBeCloseTo(15.5);
	expect(quantileOf(points.slice(2), 0.05)).toBeNull();
	expect(binsOf([[7, 0], [7, 1]], false)).toHaveLength(1);
});

test('of marks that lie on one another P95 has no name', () => {
	const wide = [[0, 0], [50, 0.5], [95, 0.95], [99, 0.99], [100, 1]] as [number, number][];
	const x = planAxis([0, 100], { isVertical: false, px: 300, scale: 'linear' });
	expect(marksOf(wide, x, 300).map((m) => [m.value, m.name, m.isNamed])).toEqual(
		[[50, 'P50', true], [95, 'P95', false], [99, 'P99', true]]);
});

test('an interval has the digits in which its ends differ', () => {
	expect(intervalText([0.072, 0.078])).toBe('+7.2 % to +7.8 %');
	expect(intervalText([-0.12, -0.1162])).toBe('−12.0 % to −11.6 %');
	expect(intervalText([0.05, 0.05])).toBe('+5.0 % to +5.0 %');
});

test('a run is held against its repeats, of which INVALID ones do not count', () => {
	const row = (id: number, v: number, more = {}): Row =>
		({ id, flags: [], values: { suite: 's', output_throughput: v, ...more } }) as unknown as Row;
	const run = row(1, 110), rows = [run, row(2, 100), row(3, 102), row(4, 98),
		row(5, 900, { verdict: 'INVALID', 'trust.invalid': null })];
	const others = othersOf(run, rows)!;
	expect(others.words).toBe('4 repeats');
	expect(differenceOf(run, others, 'output_throughput')).toEqual(
		{ effect: expect.closeTo(0.1), median: 100, n: 3, isOutside: true });
	const of = (id: number, version: string): Row =>
		row(id, 1, { 'environment.server.version': version });
	expect(othersOf(of(1, '0.2'), [of(2, '0.2'), of(3, '0.2'), of(4, '0.1')])?.words).toBe('2 repeats');
	expect(othersOf(of(1, '0.2'), [of(2, '0.2'), of(3, '0.1'), of(4, '0.1')])?.words)
		.toBe('the last 3 other runs of this configuration');
	expect(othersOf(run, [run])).toBeNull();
});
