// SPDX-License-Identifier: Apache-2.0
// lines.ts: one metric over commits, time or a parameter: a line per series, its spread, and
// changes.
import type { EChartsCoreOption } from 'echarts/core';
import { arrange, drawnColour, placeOf, shapeOf } from '../colour';
import {
	amount, extentOf, grid, isDoubling, planAxis, planTime, roomOf, tipBody, titleOf, tooltip, USUAL_SIZE,
	valueAxis, type Plan, type Scale, type Size,
} from './axis';
import { FONT, type Ink } from './ink';
import type { Measure } from './scatter';
import { markOf } from './scatter';
import type { Saved } from './menu';

const MARK_PX = 8;

export interface LinePoint {
	x: number | string;
	value: number;
	low: number | null;
	high: number | null;
	/** Read out in the tip. */
	facts: [string, string][];
}

export interface LineChange {
	index: number;
	tone: 'good' | 'bad' | 'plain';
	isMarked: boolean;
}

export interface LineSeries {
	id: string;
	name: string;
	isShown: boolean;
	points: LinePoint[];
	changes: LineChange[];
	/** Noise around the level between changes: for points `from` up to before `to`. */
	levels?: { from: number; to: number; low: number; high: number }[];
	/** A dashed line without marks, in the color of another series: the ideal. */
	idealOf?: string;
	/** Large marks on the line: values read from it, with their uncertainty along X. */
	answers?: { x: number; value: number; low: number | null; high: number | null }[];
}

/** A straight line across the chart, with its name: a limit, or an event. */
export interface Rule {
	text: string;
	at: { x: number | string } | { y: number };
	/** The rule that the reader is at. */
	isNow?: boolean;
}

interface LineOptions {
	series: LineSeries[];
	y: Measure;
	x: { name: string; kind: 'category' | 'time' | 'number'; categories: string[] };
	foot: string;
	/** Values that the axis includes as well, so that noise alone does not fill it. */
	spans?: number[];
	yScale?: Scale | 'auto';
	rules?: Rule[];
}

/** "lo 1" and so on: what was clicked. */
export function hitOf(
	series: LineSeries[],
	id: string,
	index: number,
): {
	series: LineSeries;
	point: LinePoint;
	index: number;
} | null {
	const found = /^dots (\d+)$/.exec(id),
		s = found ? series[Number(found[1])] : undefined;
	const point = s?.points[index];
	return s && point ? { series: s, point, index } : null;
}

function xAxis(o: LineOptions, ink: Ink, room: Size): object {
	const shared = {
		name: o.x.name,
		nameLocation: 'middle',
		nameGap: 30,
		nameTextStyle: { color: ink.dim, fontFamily: FONT, fontSize: 12 },
		axisLine: { lineStyle: { color: ink['line-strong'] } },
		axisTick: { show: false },
	};
	const label = { color: ink.dim, fontFamily: FONT, fontSize: 11, hideOverlap: true };
	if (o.x.kind === 'category')
		return {
			...shared,
			type: 'category',
			data: o.x.categories,
			boundaryGap: true,
			axisLabel: label,
		};
	const all = o.series.filter((s) => s.isShown).flatMap((s) => s.points.map((p) => Number(p.x)));
	const answered = o.series.filter((s) => s.isShown).flatMap((s) => (s.answers ?? [])
		.flatMap((a) => [a.x, a.low ?? a.x, a.high ?? a.x]));
	if (o.x.kind === 'number')
		return valueAxis({
			name: o.x.name,
			plan: planAxis(all.concat(answered), {
				isVertical: false,
				px: room.width,
				scale: isDoubling(all) ? 'log2' : 'auto',
			}),
			ink,
			isVertical: false,
		});
	const e = extentOf(all) ?? { min: 0, max: 1 },
		air = (e.max - e.min) * 0.02 || 3600,
		min = e.min - air,
		max = e.max + air,
		{ ticks, format } = planTime(min, max, room.width);
	return {
		...shared,
		type: 'value',
		min,
		max,
		splitLine: { show: false },
		axisLabel: { ...label, customValues: ticks, formatter: format },
	};
}

function changesOf(s: LineSeries, i: number, ink: Ink): object {
	const tone = { good: ink.good, bad: ink.bad, plain: ink.warn };
	return {
		type: 'scatter',
		id: `changes ${i}`,
		silent: true,
		z: 5,
		symbol: 'circle',
		symbolSize: 17,
		data: s.changes.map((c) => ({
			value: [s.points[c.index].x, s.points[c.index].value],
			itemStyle: {
				color: 'transparent',
				borderColor: tone[c.tone],
				borderWidth: c.isMarked ? 1 : 2.5,
				opacity: c.isMarked ? 0.6 : 1,
			},
		})),
	};
}

/** Each value's spread as a thin upright line. */
function spread(s: LineSeries, i: number, color: string): object[] {
	const has = s.points.filter((p) => p.low !== null && p.high !== null && p.low < p.high);
	if (!has.length) return [];
	return [
		{
			type: 'line',
			id: `spread ${i}`,
			silent: true,
			symbol: 'none',
			z: 1,
			connectNulls: false,
			lineStyle: { color, width: 1, opacity: 0.45 },
			data: has.flatMap((p) => [
				[p.x, p.low],
				[p.x, p.high],
				[p.x, null],
			]),
		},
	];
}

/** The noise around each level, as a pale area. */
function bands(s: LineSeries, i: number, color: string): object[] {
	return (s.levels ?? []).filter((l) => l.low < l.high).flatMap((l, k) => {
		const xs = s.points.slice(l.from, l.to).map((p) => p.x);
		const shared = { type: 'line', stack: `band ${i} ${k}`, stackStrategy: 'all', silent: true,
			symbol: 'none', z: 0, lineStyle: { opacity: 0 } };
		return [
			{ ...shared, id: `low ${i} ${k}`, data: xs.map((x) => [x, l.low]) },
			{ ...shared, id: `band ${i} ${k}`, data: xs.map((x) => [x, l.high - l.low]),
				areaStyle: { color, opacity: 0.12 } },
		];
	});
}

function answers(s: LineSeries, i: number, color: string, ink: Ink): object[] {
	return (s.answers ?? []).flatMap((a, k) => [
		...(a.low !== null && a.high !== null ? [{
			type: 'line', id: `sure ${i} ${k}`, silent: true, symbol: 'none', z: 4,
			lineStyle: { color, width: 6, opacity: 0.35 },
			data: [[a.low, a.value], [a.high, a.value]],
		}] : []),
		{
			type: 'scatter', id: `answer ${i} ${k}`, silent: true, z: 6, symbol: 'circle',
			symbolSize: 15, data: [[a.x, a.value]],
			itemStyle: { color: ink.card, borderColor: color, borderWidth: 3 },
		},
	]);
}

/** On a series of their own, as marks belong to a series. */
function rules(list: Rule[], ink: Ink, y: Plan): object[] {
	/* A level in the upper half would cross a label at the top. */
	const middle = y.scale === 'log' ? Math.sqrt(y.min * y.max) : (y.min + y.max) / 2;
	const hasHigh = list.some(({ at }) => 'y' in at && at.y > middle);
	const upright = hasHigh ? 'insideStartTop' : 'insideEndTop';
	return list.length ? [{
		type: 'line', id: 'rules', silent: true, data: [],
		markLine: {
			silent: true, symbol: 'none', animation: false,
			lineStyle: { color: ink.dim, width: 1, type: 'dashed', opacity: 0.8 },
			data: list.map(({ text, at, isNow }) => ({
				...('x' in at ? { xAxis: at.x } : { yAxis: at.y }),
				...(isNow && { lineStyle: { color: ink.accent, width: 2, type: 'solid' } }),
				label: { formatter: text, color: ink.dim, fontFamily: FONT, fontSize: 11,
					position: 'x' in at ? upright : 'insideEndTop' } })),
		},
	}] : [];
}

/** Additional elements of a saved picture of lines, and its points. */
export function savedLines(title: string, series: LineSeries[], x: string, y: string): Saved {
	const shown = series.filter((s) => s.isShown);
	return { title,
		legend: () => (shown.length < 2 ? [] : shown.map((s) => ({ name: s.name,
			colour: drawnColour(s.id),
			shape: shapeOf(placeOf(s.id)) }))),
		table: () => [['series', x, y, 'low', 'high'], ...shown.flatMap((s) => s.points.map((p) =>
			[s.name, p.x, p.value, p.low, p.high]))] };
}

export function linesOption(o: LineOptions, ink: Ink, size = USUAL_SIZE): EChartsCoreOption {
	const room = roomOf(size);
	const shown = o.series.filter((s) => s.isShown);
	const y = planAxis(
		shown
			.flatMap((s) => s.points)
			.flatMap((p) => [p.value, p.low ?? p.value, p.high ?? p.value])
			.concat(o.spans ?? []),
		{ isVertical: true, px: room.height, unit: o.y.unit, scale: o.yScale ?? 'linear' },
	);
	arrange(o.series.filter((s) => s.idealOf === undefined).map((s) => s.id));
	const drawn = o.series.flatMap((s, i) => {
		if (!s.isShown) return [];
		const color = drawnColour(s.idealOf ?? s.id);
		if (s.idealOf !== undefined)
			return [{ type: 'line', id: `ideal ${i}`, silent: true, symbol: 'none', z: 1,
				lineStyle: { color, width: 1, type: 'dashed', opacity: 0.8 },
				data: s.points.map((p) => [p.x, p.value]) }];
		return [
			...bands(s, i, color),
			...spread(s, i, color),
			{
				type: 'line',
				id: `line ${i}`,
				silent: true,
				symbol: 'none',
				z: 2,
				lineStyle: { color, width: 1.6 },
				data: s.points.map((p) => [p.x, p.value]),
			},
			{
				type: 'scatter',
				id: `dots ${i}`,
				symbol: markOf(placeOf(s.id)),
				z: 3,
				symbolSize: s.points.length * MARK_PX > room.width ? MARK_PX / 2 : MARK_PX,
				itemStyle: { color, borderColor: ink.card, borderWidth: 1 },
				emphasis: { scale: 1.5 },
				data: s.points.map((p) => [p.x, p.value]),
			},
			changesOf(s, i, ink),
			...answers(s, i, color, ink),
		];
	});
	return {
		grid: grid(),
		xAxis: xAxis(o, ink, room),
		series: [...drawn, ...rules(o.rules ?? [], ink, y)],
		yAxis: valueAxis({ name: titleOf(o.y.label, o.y.unit), plan: y, ink, isVertical: true }),
		tooltip: tooltip(ink, (hit) => {
			const { seriesId = '', dataIndex } = hit as {
				seriesId?: string;
				dataIndex: number;
			};
			const found = hitOf(o.series, seriesId, dataIndex);
			return found
				? tipBody(
						found.series.name,
						[
							[o.y.label, amount(found.point.value, o.y.unit)],
							...found.point.facts,
						],
						o.foot,
					)
				: '';
		}),
	};
}
