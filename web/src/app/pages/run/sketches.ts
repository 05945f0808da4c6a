// SPDX-License-Identifier: Apache-2.0
// sketches.ts: charts of a run's latency distributions: cumulative or as a histogram, with marks at
// P50, P95 and P99; TTFT over prompt tokens and over turns. Pure.
import type { EChartsCoreOption } from 'echarts/core';
import type { RunSketches, Sketch } from '../../../lib/api';
import {
	amount, GRID, planAxis, tipBody, tooltip, valueAxis, type Plan, type Size,
} from '../../charts/axis';
import { FONT, type Ink } from '../../charts/ink';

export type Look = 'cdf' | 'histogram';

export const MARKS: [p: number, name: string][] = [[0.5, 'P50'], [0.95, 'P95'], [0.99, 'P99']];
const BINS = 40;

type Points = [value: number, p: number][];

export function pointsOf(s: Sketch): Points {
	return s.p.flatMap((p, i): Points => {
		const v = s.value[i];
		return v === null ? [] : [[v, p]];
	});
}

/** The value at a share of all values, between the quantiles that are known. */
export function quantileOf(points: Points, p: number): number | null {
	if (!points.length || p < points[0][1] || p > points[points.length - 1][1])
		return null;
	const i = points.findIndex(([, q]) => q >= p), [v, q] = points[i];
	if (q === p || i === 0)
		return v;
	const [w, r] = points[i - 1];
	return w + (v - w) * (p - r) / (q - r);
}

/** The share of values up to v. */
function shareUpTo(points: Points, v: number): number {
	if (!points.length || v < points[0][0])
		return 0;
	let i = points.length - 1;
	while (i > 0 && points[i][0] > v)
		i--;
	if (i === points.length - 1)
		return points[i][1];
	const [a, p] = points[i], [b, q] = points[i + 1];
	return b > a ? p + (q - p) * (v - a) / (b - a) : p;
}

export interface Bin { from: number; to: number; share: number }

/** Equal parts from the least to the greatest value, of the logarithm on such an axis. */
export function binsOf(points: Points, isLog: boolean): Bin[] {
	if (!points.length)
		return [];
	const least = points[0][0], most = points[points.length - 1][0];
	if (!(most > least))
		return [{ from: least - Math.abs(least) * 0.01, to: least + Math.abs(least) * 0.01,
			share: 1 }];
	const on = isLog ? Math.log : (v: number): number => v, off = isLog ? Math.exp : on;
	const edge = (i: number): number => (i === 0 ? least : i === BINS ? most
		: off(on(least) + (on(most) - on(least)) * i / BINS));
	return Array.from({ length: BINS }, (_, i) => ({ from: edge(i), to: edge(i + 1),
		share: shareUpTo(points, edge(i + 1)) - (i === 0 ? 0 : shareUpTo(points, edge(i))) }));
}

/** Smaller margins than those of the large charts. */
const SMALL = { ...GRID, left: 54, right: 18, top: 22, bottom: 42 };
const SPOILED_OPACITY = 0.55;

const roomOf = (size: Size): Size => ({ width: Math.max(120, size.width - SMALL.left - SMALL.right),
	height: Math.max(80, size.height - SMALL.top - SMALL.bottom) });

const shareText = (p: number): string => `${Number((p * 100).toPrecision(4))} %`;

const NAME_PX = 30;

/** Lines at the marks; overlapping names are left out, P95 first. */
interface Named { value: number; name: string; isNamed: boolean }

export function marksOf(points: Points, x: Plan, px: number): Named[] {
	const on = x.scale === 'linear' ? (v: number): number => v : Math.log;
	const place = (v: number): number => (on(v) - on(x.min)) / (on(x.max) - on(x.min)) * px;
	const all = MARKS.flatMap(([p, name]): { value: number; name: string }[] => {
		const value = quantileOf(points, p);
		return value === null ? [] : [{ value, name }];
	});
	const named: number[] = [];
	for (const i of [0, 2, 1])
		if (all[i] && named.every((k) =>
			Math.abs(place(all[k].value) - place(all[i].value)) >= NAME_PX))
			named.push(i);
	return all.map((m, i) => ({ ...m, isNamed: named.includes(i) }));
}

/** What ECharts gives to a function that draws an item. */
interface Drawn {
	value: (i: number) => number;
	coord: (p: number[]) => number[];
	style: () => object;
}

/** One metric. A spoiled one is grey. */
export function sketchOption(s: Sketch, look: Look, ink: Ink, colour: string, size: Size): EChartsCoreOption {
	const points = pointsOf(s), room = roomOf(size);
	const x = planAxis(points.map(([v]) => v), { isVertical: false, px: room.width, unit: s.unit });
	const color = s.is_spoiled ? ink.faint : colour, opacity = s.is_spoiled ? SPOILED_OPACITY : 1;
	const bins = look === 'histogram' ? binsOf(points, x.scale === 'log') : [];
	const top = Math.max(...bins.map((b) => b.share), 1e-6) * 100;
	const y = planAxis(look === 'cdf' ? [0, 100] : [0, top],
		{ isVertical: true, px: room.height, unit: '%', from: 'zero' });
	const markLine = { symbol: 'none', silent: true, animation: false,
		data: marksOf(points, x, room.width).map((m) => ({ xAxis: m.value, name: m.name,
			label: { show: m.isNamed, formatter: m.name, position: 'end', distance: 3,
				color: ink.dim, fontFamily: FONT, fontSize: 11 } })),
		lineStyle: { color: ink['line-strong'], type: 'dashed', width: 1 } };
	const series = look === 'cdf' ? { type: 'line', id: s.key, symbol: 'none',
		lineStyle: { color, width: 2, opacity }, itemStyle: { color }, markLine,
		data: points.map(([v, p]) => [v, p * 100]) } : {
		type: 'custom', id: s.key, itemStyle: { color, opacity }, markLine,
		data: bins.map((b) => [b.from, b.to, b.share * 100]), encode: { x: [0, 1], y: 2 },
		renderItem: (_: unknown, api: Drawn) => {
			const [left, head] = api.coord([api.value(0), api.value(2)]);
			const [right, foot] = api.coord([api.value(1), 0]);
			return { type: 'rect', style: api.style(), shape: { x: left, y: head,
				width: Math.max(1, right - left - 0.5), height: foot - head } };
		} };
	const tell = (hit: unknown): HTMLElement | string => {
		const at = (Array.isArray(hit) ? hit[0] : hit) as { data?: number[] } | undefined;
		if (!at?.data)
			return '';
		const [a, b, c] = at.data;
		return look === 'cdf'
			? tipBody(`${shareText(b / 100)} of ${s.label}`, [['at most', amount(a, s.unit)]])
			: tipBody(`${amount(a)} to ${amount(b, s.unit)}`, [['of all', shareText(c / 100)]]);
	};
	return {
		grid: { ...SMALL }, series: [series],
		tooltip: { ...tooltip(ink, tell), trigger: look === 'cdf' ? 'axis' : 'item' },
		xAxis: valueAxis({ name: `${s.label} (${s.unit})`, plan: x, ink, isVertical: false }),
		yAxis: { ...valueAxis({ name: '', plan: y, ink, isVertical: true }),
			axisLabel: { color: ink.dim, fontFamily: FONT, fontSize: 11, customValues: y.ticks,
				formatter: (v: number) => `${y.format(v)} %` } },
	};
}

/** TTFT of each request over the tokens of its prompt. */
export function promptOption(by: NonNullable<RunSketches['by_prompt']>, isSpoiled: boolean, ink: Ink,
	colour: string, size: Size): EChartsCoreOption {
	const room = roomOf(size);
	const data = by.prompt_tokens.flatMap((x, i): [number, number][] => {
		const y = by.ttft_ms[i];
		return y === null ? [] : [[x, y]];
	});
	const x = planAxis(data.map(([v]) => v), { isVertical: false, px: room.width, isWhole: true });
	const y = planAxis(data.map(([, v]) => v), { isVertical: true, px: room.height, unit: 'ms' });
	return {
		grid: { ...SMALL }, tooltip: tooltip(ink, (hit) => {
			const [tokens, ms] = (hit as { data: [number, number] }).data;
			return tipBody(amount(ms, 'ms'), [['Prompt tokens', amount(tokens)]]);
		}),
		series: [{ type: 'scatter', id: 'requests', symbolSize: data.length > 500 ? 4 : 6, data,
			itemStyle: { color: isSpoiled ? ink.faint : colour,
				opacity: data.length > 500 ? 0.35 : 0.6 } }],
		xAxis: valueAxis({ name: 'Prompt tokens', plan: x, ink, isVertical: false }),
		yAxis: valueAxis({ name: 'TTFT (ms)', plan: y, ink, isVertical: true }),
	};
}

/** The median TTFT of each turn of conversations. */
export function turnOption(by: NonNullable<RunSketches['by_turn']>, isSpoiled: boolean, ink: Ink,
	colour: string, size: Size): EChartsCoreOption {
	const room = roomOf(size), color = isSpoiled ? ink.faint : colour;
	const data = by.turn.map((t, i) => [t, by.ttft_ms_median[i], by.n[i]]);
	const x = planAxis(by.turn, { isVertical: false, px: room.width, scale: 'linear',
		isWhole: true });
	const y = planAxis(by.ttft_ms_median.filter((v): v is number => v !== null),
		{ isVertical: true, px: room.height, unit: 'ms', from: 'zero' });
	return {
		grid: { ...SMALL }, tooltip: tooltip(ink, (hit) => {
			const [turn, ms, n] = (hit as { data: [number, number, number] }).data;
			return tipBody(`Turn ${turn}`,
				[['Median TTFT', amount(ms, 'ms')], ['Requests', amount(n)]]);
		}),
		series: [{ type: 'line', id: 'turns', symbol: 'circle', symbolSize: 7, data,
			lineStyle: { color, width: 2 }, itemStyle: { color }, connectNulls: false }],
		xAxis: valueAxis({ name: 'Turn', plan: x, ink, isVertical: false }),
		yAxis: valueAxis({ name: 'Median TTFT (ms)', plan: y, ink, isVertical: true }),
	};
}
