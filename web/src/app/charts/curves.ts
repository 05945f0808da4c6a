// SPDX-License-Identifier: Apache-2.0
// curves.ts: the performance chart: one workload, a colour per value of a column, in each colour the
// configurations that no other one beats on both axes, joined; the rest as small dots.
import type { EChartsCoreOption } from 'echarts/core';
import type { CurveColor, CurveLine, CurvePoint } from '../../lib/api';
import { cssColour, cssRamp, drawnColour, drawnRamp, shapeOf } from '../colour';
import {
	grid, planAxis, roomOf, tipBody, titleOf, tooltip, valueAxis, type Plan, type Size,
} from './axis';
import { FONT, type Ink } from './ink';
import type { Measure } from './scatter';

export type Lines = 'best' | 'all' | 'points';

/** A point with all that its drawing and its tip need. */
export interface Spot { point: CurvePoint; line: CurveLine; place: number; id: number; name: string }

export interface Look { place: number; css: string; drawn: () => string; shape: string }

const LINES_ALL = 8;
const MISSING = new Set(['', 'missing', 'other']);

/** At most eight configurations: all are drawn as lines; of more, the best of each colour. */
export const usualLines = (lines: CurveLine[]): Lines => (lines.length > LINES_ALL ? 'best' : 'all');

/** A colour and a shape per key in the server's order; numbers (TP1, TP2) have a ramp. */
export function looksOf(colors: readonly CurveColor[], isNumber: boolean): Map<string, Look> {
	const plain = colors.filter((c) => !MISSING.has(c.key));
	const numberOf = (key: string): number => parseFloat(/[\d.]+/.exec(key)?.[0] ?? '');
	const isRamp = isNumber && plain.length > 1
		&& plain.every((c) => Number.isFinite(numberOf(c.key)));
	const order = [...plain].sort((a, b) => numberOf(a.key) - numberOf(b.key));
	return new Map(colors.map((c, place) => {
		const i = order.indexOf(c), n = order.length;
		return [c.key, { place, shape: shapeOf(place),
			css: MISSING.has(c.key) && colors.length > 1 ? 'var(--faint)'
				: isRamp ? cssRamp(i, n) : cssColour(place),
			drawn: () => (isRamp ? drawnRamp(i, n) : drawnColour(place)) }];
	}));
}

/** The colour, the configuration and the load, each once. */
function nameOf(line: CurveLine, { label }: CurvePoint): string {
	const whole = label.startsWith(line.name) ? [label] : line.name.includes(label) ? [line.name]
		: [line.name, label];
	return [line.color, ...whole].filter((part, i, all) => part && all.indexOf(part) === i).join(' · ');
}

export function spotsOf(lines: readonly CurveLine[], looks: Map<string, Look>): Spot[] {
	return lines.flatMap((line) => line.points.map((point) => ({ point, line, id: point.ids[0],
		place: looks.get(line.color)?.place ?? 0,
		name: nameOf(line, point) })));
}

/** The points that no other of their color beats, from left to right. */
export const frontier = (spots: readonly Spot[]): Spot[] => spots
	.filter((s) => s.point.is_frontier).sort((a, b) => a.point.x - b.point.x);

interface Box { left: number; right: number; top: number; bottom: number }
export interface Label { text: string; x: number; y: number; rank: number; index: number }
export type Side = 'right' | 'top' | 'left' | 'bottom';

const CHAR_PX = 6.1, LINE_PX = 14, AWAY_PX = 7;

function boxOf(l: Label, side: Side): Box {
	const w = l.text.length * CHAR_PX, h = LINE_PX;
	const left = side === 'right' ? l.x + AWAY_PX : side === 'left' ? l.x - AWAY_PX - w : l.x - w / 2;
	const top = side === 'top' ? l.y - AWAY_PX - h : side === 'bottom' ? l.y + AWAY_PX : l.y - h / 2;
	return { left, right: left + w, top, bottom: top + h };
}

const meet = (a: Box, b: Box): boolean =>
	a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

interface Place { x: number; y: number }

const around = ({ x, y }: Place, px: number): Box =>
	({ left: x - px, right: x + px, top: y - px, bottom: y + px });

/** Places along a line, close enough that no label fits between two of them. */
export function along(line: readonly Place[]): Place[] {
	return line.slice(1).flatMap((to, i) => {
		const from = line[i], n = Math.ceil(Math.hypot(to.x - from.x, to.y - from.y) / LINE_PX);
		return Array.from({ length: n }, (_, k) => ({ x: from.x + (to.x - from.x) * k / n,
			y: from.y + (to.y - from.y) * k / n }));
	});
}

/**
 * Where each label goes; one that fits on no side of its point is left out. Low ranks come first,
 * on a side that no line crosses if possible.
 */
export function placeLabels(labels: readonly Label[], marks: readonly Place[], room: Size,
	lines: readonly Place[] = []): Map<number, Side> {
	const taken = marks.map((m) => around(m, 4)), crossed = lines.map((m) => around(m, 2));
	const out = new Map<number, Side>();
	for (const l of [...labels].sort((a, b) => a.rank - b.rank || a.index - b.index)) {
		const sides = (['right', 'top', 'left', 'bottom'] as const).filter((s) => {
			const b = boxOf(l, s);
			return b.left >= 0 && b.right <= room.width + 20 && b.top >= -12
				&& b.bottom <= room.height && !taken.some((t) => meet(b, t));
		});
		const side = sides.find((s) => !crossed.some((t) => meet(boxOf(l, s), t))) ?? sides[0];
		if (side) {
			taken.push(boxOf(l, side));
			out.set(l.index, side);
		}
	}
	return out;
}

export interface CurveOptions {
	spots: Spot[];
	looks: Map<string, Look>;
	/** Without the hidden ones. */
	isShown: (color: string) => boolean;
	x: Measure;
	y: Measure;
	lines: Lines;
	isLogX: boolean | null;
	isLogY: boolean | null;
	at: number | null;
	/** Ids of the points that are pinned, in their order. */
	pins: number[];
	/** The colour that is pointed at in the legend: the others are dimmed. */
	pointed: string | null;
	/** The point that the keyboard is on. */
	focus: number | null;
}

/** If all values are above this share of the largest one, the axis does not begin at zero. */
const NEAR = 0.5;

/** Points whose repeats have a thin line. */
export const hasWhisker = (p: CurvePoint, lines: Lines): boolean =>
	(p.is_frontier || (lines !== 'best' && !p.is_invalid)) && (p.x_min < p.x_max || p.y_min < p.y_max);

/** Only values of 0 prevent a logarithmic axis; whether it is useful depends on the values. */
export function plansOf(o: CurveOptions, size: Size): { x: Plan; y: Plan } {
	const room = roomOf(size);
	const seen = o.spots.filter((s) => o.isShown(s.line.color)).map((s) => s.point);
	const spans = seen.filter((p) => hasWhisker(p, o.lines));
	const plan = (values: number[], isVertical: boolean, isLog: boolean | null, m: Measure): Plan =>
		planAxis(values, { isVertical, px: isVertical ? room.height : room.width, unit: m.unit,
			from: Math.min(...values) > Math.max(...values) * NEAR ? 'near' : 'zero',
			scale: isLog === null ? 'auto' : isLog ? 'log' : 'linear' });
	return { x: plan([...seen.map((p) => p.x), ...spans.flatMap((p) => [p.x_min, p.x_max])], false,
		o.isLogX, o.x),
		y: plan([...seen.map((p) => p.y), ...spans.flatMap((p) => [p.y_min, p.y_max])], true,
			o.isLogY, o.y) };
}

/** 0 to 1 along an axis. */
export function shareOf(plan: Plan, v: number): number {
	const f = plan.scale === 'linear' ? (n: number): number => n : Math.log;
	return (f(v) - f(plan.min)) / (f(plan.max) - f(plan.min));
}

/** The value at a share of an axis. */
export function valueAt(plan: Plan, share: number): number {
	return plan.scale === 'linear' ? plan.min + share * (plan.max - plan.min)
		: plan.min * (plan.max / plan.min) ** share;
}

/** Marks INVALID runs: only its outline is drawn. */
const CROSS = 'M1 1L9 9M9 1L1 9';
const FRONT_PX = 9, OTHER_PX = 6, FAINT_PX = 5, MANY = 4000;
const DIMMED = 0.2, FAINT = 0.3;

/** What is joined by a line, of the points of one color. */
function pathsOf(lines: Lines, seen: Spot[]): CurvePoint[][] {
	return lines === 'points' ? [] : lines === 'best' ? [frontier(seen).map((s) => s.point)]
		: [...new Set(seen.map((s) => s.line))].map((line) =>
			line.points.filter((p) => !p.is_invalid));
}

/** What the handle of the reading line covers, at the top of the plot. */
export const handleOf = (x: number): Place[] =>
	[-4, 4].flatMap((dx) => [-8, 0].map((y) => ({ x: x + dx, y })));

function labelsOf(o: CurveOptions, plans: { x: Plan; y: Plan }, size: Size): Map<number, Side> {
	const room = roomOf(size), marks: Place[] = [], labels: Label[] = [];
	const placeOf = (p: CurvePoint): Place => ({ x: shareOf(plans.x, p.x) * room.width,
		y: (1 - shareOf(plans.y, p.y)) * room.height });
	const ends = new Set(o.lines === 'best' ? [] : o.spots.filter((s) => !s.point.is_invalid
		&& (s.line.points[0] === s.point || s.line.points[s.line.points.length - 1] === s.point)));
	let before = '';
	o.spots.forEach((s, index) => {
		if (!o.isShown(s.line.color))
			return;
		const { point } = s;
		const at = placeOf(point);
		const isChief = point.is_frontier || ends.has(s);
		if (isChief)
			marks.push(at);
		if (isChief && point.label)
			labels.push({ ...at, text: point.label, index, rank: point.is_best ? 0
				: point.label === before ? 2 : 1 });
		before = point.label;
	});
	if (o.at !== null)
		marks.push(...handleOf(shareOf(plans.x, o.at) * room.width));
	const seen = o.spots.filter((s) => o.isShown(s.line.color));
	const lines = [...o.looks.keys()].flatMap((key) =>
		pathsOf(o.lines, seen.filter((s) => s.line.color === key)));
	return placeLabels(labels, marks, room, lines.flatMap((line) => along(line.map(placeOf))));
}

interface Styled { o: CurveOptions; ink: Ink; sides: Map<number, Side>; isMany: boolean }

function dotOf(s: Spot, index: number, { o, ink, sides, isMany }: Styled): object {
	const { point } = s, color = o.looks.get(s.line.color)?.drawn() ?? ink.faint;
	const isChief = !point.is_invalid && (o.lines !== 'best' || point.is_frontier);
	const side = sides.get(index);
	const pin = o.pins.indexOf(s.id), isMarked = pin >= 0 || o.focus === index;
	const isHollow = point.is_degraded || point.is_invalid;
	const dim = o.pointed !== null && o.pointed !== s.line.color ? DIMMED : 1;
	return {
		value: [point.x, point.y],
		symbol: `path://${point.is_invalid ? CROSS : o.looks.get(s.line.color)?.shape ?? shapeOf(0)}`,
		symbolSize: isMany ? 3 : isMarked ? FRONT_PX + 4 : point.is_frontier ? FRONT_PX
			: isChief || point.is_invalid ? OTHER_PX : FAINT_PX,
		itemStyle: { color: point.is_invalid ? 'none' : isHollow ? ink.card : color,
			opacity: (isChief || isMarked || point.is_invalid ? 1 : FAINT) * dim,
			borderColor: isMarked ? ink.ink : isHollow ? color : ink.card,
			borderWidth: isMany ? 0 : isMarked ? 2 : isHollow ? 1.5 : isChief ? 1 : 0 },
		label: { show: pin >= 0 || side !== undefined, position: side ?? 'top', distance: 5,
			formatter: pin >= 0 ? `${pin + 1}: ${point.label}` : point.label, color: ink.ink,
			fontFamily: FONT, fontSize: 11, opacity: dim,
			fontWeight: pin >= 0 ? 'bold' : 'normal',
			textBorderColor: ink.card, textBorderWidth: 3 },
	};
}

/** A line through these points in order; for repeats a thin line over their median's interval. */
function joined(id: string, points: CurvePoint[], color: string, opacity: number): object {
	return { type: 'line', id, silent: true, symbol: 'none', z: 2,
		lineStyle: { color, width: 2, opacity }, data: points.map((p) => [p.x, p.y]) };
}

function whiskers(seen: Spot[], o: CurveOptions, ink: Ink): object[] {
	const data = seen.filter(({ point }) => hasWhisker(point, o.lines))
		.flatMap(({ point: p }) => [
			...(p.y_min < p.y_max ? [[p.x, p.y_min], [p.x, p.y_max], [p.x, null]] : []),
			...(p.x_min < p.x_max ? [[p.x_min, p.y], [p.x_max, p.y], [null, p.y]] : [])]);
	return data.length ? [{ type: 'line', id: 'whiskers', silent: true, symbol: 'none', z: 1,
		connectNulls: false, lineStyle: { color: ink.dim, width: 1, opacity: 0.3 }, data }] : [];
}

function linesOfColor(o: CurveOptions, key: string, seen: Spot[], ink: Ink): object[] {
	const color = o.looks.get(key)?.drawn() ?? ink.faint;
	const opacity = o.pointed !== null && o.pointed !== key ? DIMMED : 1;
	return pathsOf(o.lines, seen).map((points, i) =>
		joined(o.lines === 'best' ? `front ${key}` : `line ${key} ${i}`, points, color, opacity));
}

/** Rows of a point's tip; a unit that its label has already is left out. */
export function tipRows(s: Spot): [string, string][] {
	const rows = s.point.tip.map(({ label, value }): [string, string] => {
		const at = value.indexOf(' '), unit = value.slice(at + 1).toLowerCase();
		return [label, at > 0 && label.toLowerCase().includes(unit) ? value.slice(0, at) : value];
	});
	return s.point.is_invalid ? [...rows, ['Verdict', 'INVALID: does not count']] : rows;
}

export function curvesOption(o: CurveOptions, ink: Ink, size: Size): EChartsCoreOption {
	const plans = plansOf(o, size), seen = o.spots.filter((s) => o.isShown(s.line.color));
	const style: Styled = { o, ink, sides: labelsOf(o, plans, size), isMany: seen.length > MANY };
	const index = new Map(o.spots.map((s, i) => [s, i]));
	const reading = o.at === null ? [] : [{ type: 'line', id: 'reading', silent: true, symbol: 'none',
		z: 1, lineStyle: { color: ink.dim, width: 1, type: 'dashed' },
		data: [[o.at, plans.y.min], [o.at, plans.y.max]] }];
	return {
		grid: grid(),
		tooltip: tooltip(ink, (hit) => {
			const s = seen[(hit as { dataIndex: number }).dataIndex];
			return s ? tipBody(s.name, tipRows(s), 'Click pins it, a double click opens it.')
				: '';
		}),
		xAxis: valueAxis({ name: `${titleOf(o.x.label, o.x.unit)} →`, plan: plans.x, ink,
			isVertical: false }),
		yAxis: valueAxis({ name: `${titleOf(o.y.label, o.y.unit)} →`, plan: plans.y, ink,
			isVertical: true }),
		series: [
			...reading, ...whiskers(seen, o, ink),
			...[...o.looks.keys()].flatMap((key) =>
				linesOfColor(o, key, seen.filter((s) => s.line.color === key), ink)),
			{ type: 'scatter', id: 'dots', z: 3, emphasis: { scale: 1.3 },
				data: seen.map((s) => dotOf(s, index.get(s) ?? 0, style)) },
		],
	};
}
