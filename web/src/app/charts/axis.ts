// SPDX-License-Identifier: Apache-2.0
// axis.ts: what all charts with axes share: their ends, ticks, texts, tooltips.
import type { Cell } from '../api';
import { whole } from '../../lib/format';
import { measured, showValue, when } from '../show';
import { FONT, type Ink } from './ink';

export interface Extent { min: number; max: number }

/** From the smallest to the largest value, with a margin; null: there is none. */
export function extentOf(values: Iterable<number>, isLog = false): Extent | null {
	let min = Infinity, max = -Infinity;
	for (const v of values) {
		if (!Number.isFinite(v) || (isLog && v <= 0))
			continue;
		min = Math.min(min, v);
		max = Math.max(max, v);
	}
	return min <= max ? { min, max } : null;
}

/** The size of a chart, in pixels. */
export interface Size { width: number; height: number }
export const USUAL_SIZE: Size = { width: 900, height: 440 };

export type Scale = 'linear' | 'log' | 'log2';

/** A planned axis: its ends, the positions of labels and other grid lines, and the label format. */
export interface Plan {
	scale: Scale;
	min: number;
	max: number;
	ticks: number[];
	minor: number[];
	format: (v: number) => string;
}

const GAP_X_PX = 90, GAP_Y_PX = 56;
const LABEL_X_PX = 44, LABEL_Y_PX = 20;
const AIR = 0.04, LOG_AIR = 0.08;
const DECADES_LABELLED = 3.2;
const SPAN_LOG = 50, SPAN_LOG_TIME = 10;
const round = (v: number): number => Number(v.toPrecision(12));

/** The step 1, 2 or 5 times a power of ten whose distance on the screen is nearest to the wanted. */
export function stepOf(span: number, px: number, gap: number): number {
	const wanted = span * gap / Math.max(px, gap), power = 10 ** Math.floor(Math.log10(wanted));
	const far = (step: number): number => Math.abs(Math.log(step / wanted));
	return [1, 2, 5, 10].map((s) => round(s * power)).reduce((a, b) => (far(b) < far(a) ? b : a));
}

/** One number format for a whole axis: as many decimals as its step needs, at most four digits. */
export function formatOf(largest: number, step: number): (v: number) => string {
	const size = Math.abs(largest);
	const [divisor, unit] = size >= 1e10 ? [1e9, 'G'] : size >= 1e7 ? [1e6, 'M']
		: size >= 1e4 ? [1e3, 'k'] : [1, ''];
	if (size > 0 && size < 1e-3)
		return (v) => (v === 0 ? '0' : v.toExponential(0).replace('e-', 'e−'));
	const digits = Math.max(0, -Math.floor(Math.log10(step / divisor) + 1e-9));
	return (v) => {
		const text = (Math.abs(v) / divisor).toFixed(Math.min(digits, 6));
		const [head, tail] = text.split('.');
		const sign = v < 0 ? '−' : '';
		return v === 0 ? (digits && !unit ? text : '0')
			: `${sign}${whole(Number(head))}${tail ? `.${tail}` : ''}${unit}`;
	};
}

function multiples(step: number, min: number, max: number): number[] {
	const out: number[] = [];
	for (let k = Math.ceil(min / step - 1e-9); k * step <= max + step * 1e-9; k++)
		out.push(round(k * step));
	return out;
}

/** from: 'zero', 'near' the least value, or zero unless the values are close to each other. */
function linear(e: Extent, px: number, gap: number, unit: string | null, from?: PlanOptions['from'],
	stepMin = 0): Plan {
	let { min, max } = e;
	if (min >= 0 && from !== 'near' && (from === 'zero' || min < max * 0.6))
		min = 0;
	const air = (max - min) * AIR || Math.abs(max) * 0.05 || 1;
	const isShare = unit === '%' && e.max <= 100;
	max = isShare ? Math.min(100, max + air) : max + air;
	min = min === 0 && e.max > 0 ? 0 : e.min >= 0 ? Math.max(0, min - air) : min - air;
	const step = Math.max(stepMin, stepOf(max - min, px, gap));
	return { scale: 'linear', min, max, ticks: multiples(step, min, max), minor: [],
		format: formatOf(max, step) };
}

/** Powers of ten, and 2 and 5 times them. */
function decades(min: number, max: number): { value: number; lead: number }[] {
	const out = [];
	for (let k = Math.floor(Math.log10(min)); k <= Math.ceil(Math.log10(max)); k++)
		for (const lead of [1, 2, 5])
			if (lead * 10 ** k >= min * (1 - 1e-9) && lead * 10 ** k <= max * (1 + 1e-9))
				out.push({ value: round(lead * 10 ** k), lead });
	return out;
}

/** Labels of a logarithmic axis differ so much in size that each is formatted by itself. */
const logFormat = (v: number): string => {
	const size = Math.abs(v);
	return size >= 1e4 || (size < 1e-3 && size > 0) ? formatOf(v, v)(v)
		: size >= 1 ? whole(v) : String(round(v));
};

function logarithmic(e: Extent, px: number, gap: number, label: number): Plan {
	const min = e.min * (1 - LOG_AIR), max = e.max * (1 + LOG_AIR);
	const span = Math.log10(max / min), all = decades(min, max);
	if (all.length < 3)
		return { ...linear(e, px, gap, null), scale: 'log', min, max,
			ticks: multiples(stepOf(max - min, px, gap), min, max).filter((v) => v > 0) };
	const isRoomy = span < DECADES_LABELLED && px / span * Math.log10(2) >= label;
	const chief = isRoomy ? all : all.filter((t) => t.lead === 1);
	const each = Math.ceil(chief.length * label / px);
	const ticks = (chief.length < 2 ? [all[0], all[all.length - 1]] : chief)
		.filter((_, i) => i % each === 0).map((t) => t.value);
	return { scale: 'log', min, max, ticks, format: logFormat,
		minor: all.map((t) => t.value).filter((v) => !ticks.includes(v)) };
}

function doubling(e: Extent, px: number, label: number): Plan {
	const from = Math.round(Math.log2(e.min)), to = Math.round(Math.log2(e.max));
	const all = Array.from({ length: to - from + 1 }, (_, i) => 2 ** (from + i));
	const each = Math.max(1, Math.ceil(all.length * label / px));
	const ticks = all.filter((_, i) => i % each === 0);
	return { scale: 'log2', min: e.min * 2 ** -0.25, max: e.max * 2 ** 0.25, ticks, format: logFormat,
		minor: all.filter((v) => !ticks.includes(v)) };
}

/** 1, 2, 4, 8...: sizes that are doubled, as tensor parallelism and concurrency are. */
export function isDoubling(values: readonly number[]): boolean {
	const kinds = new Set(values);
	return kinds.size > 2 && [...kinds].every((v) => v > 0 && Number.isInteger(Math.log2(v)));
}

/**
 * Whether the values' range is so wide that most would be at the bottom of a linear axis. Latencies
 * grow without limit when a server is overloaded.
 */
export function isWide(values: readonly number[], unit: string | null = null): boolean {
	const span = unit === 'ms' ? SPAN_LOG_TIME : SPAN_LOG;
	const sorted = values.filter((v) => Number.isFinite(v)).sort((a, b) => a - b);
	if (!sorted.length || sorted[0] <= 0)
		return false;
	const at = (share: number): number => sorted[Math.round(share * (sorted.length - 1))];
	return at(0.95) / at(0.05) > span;
}

interface PlanOptions {
	isVertical: boolean;
	/** Length of the axis. */
	px: number;
	scale?: Scale | 'auto';
	unit?: string | null;
	/** Where a linear axis of positive values begins. */
	from?: 'zero' | 'near' | undefined;
	/** Values are counts: ticks are whole numbers. */
	isWhole?: boolean;
}

/** From the shown values only. */
export function planAxis(values: readonly number[], o: PlanOptions): Plan {
	const { isVertical, px, scale = 'auto', unit = null, from, isWhole = false } = o;
	const gap = isVertical ? GAP_Y_PX : GAP_X_PX, label = isVertical ? LABEL_Y_PX : LABEL_X_PX;
	const is = scale !== 'auto' ? scale : isWide(values, unit) ? 'log' : 'linear';
	const e = extentOf(values, is !== 'linear');
	if (is === 'linear' || !e)
		return linear(e ?? { min: 0, max: 1 }, px, gap, unit, from, isWhole ? 1 : 0);
	return is === 'log2' ? doubling(e, px, label) : logarithmic(e, px, gap, label);
}

const MINUTE = 60, HOUR = 3600, DAY = 86400, TIME_LABEL_PX = 96;
const TIME_STEPS = [1, 2, 5, 10, 15, 30, ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE),
	...[1, 2, 3, 6, 12].map((n) => n * HOUR)];
const DAY_STEPS = [1, 2, 7, 14], MONTH_STEPS = [1, 3, 6, 12, 24, 60, 120, 240], MONTH = 30.4 * DAY;

export interface TimePlan { ticks: number[]; format: (s: number) => string }

/** Midnights of the reader's clock, whose days may have 23 or 25 hours; from months on, their first ones. */
function midnights(wanted: number, min: number, max: number): number[] {
	const days = DAY_STEPS.find((n) => n * DAY >= wanted), out: number[] = [];
	const months = MONTH_STEPS.find((n) => n * MONTH >= wanted) ?? MONTH_STEPS[MONTH_STEPS.length - 1];
	const at = (k: number): number =>
		(days ? new Date(1970, 0, 1 + k * days) : new Date(1970, k * months)).getTime() / 1000;
	for (let k = Math.floor(min / (days ? days * DAY : months * MONTH)) - 2; at(k) <= max; k++)
		if (at(k) >= min)
			out.push(at(k));
	return out;
}

/**
 * Round local times between two, in seconds since 1970. If they are less than a day apart, the
 * first of each day has its date and the others have only the time.
 */
export function planTime(min: number, max: number, px: number): TimePlan {
	const wanted = (max - min) / Math.max(1, px / TIME_LABEL_PX);
	const step = TIME_STEPS.find((s) => s >= wanted) ?? DAY;
	const zone = -60 * new Date(min * 1000).getTimezoneOffset();
	const ticks = step === DAY ? midnights(wanted, min, max)
		: multiples(step, min + zone, max + zone).map((s) => s - zone);
	const day = (s: number): string => when(s).slice(0, 10);
	const format = (s: number): string => {
		const [date, time] = when(s, step < MINUTE).split(' '), at = ticks.indexOf(s);
		return step >= DAY ? date : at > 0 && day(ticks[at - 1]) === date ? time : `${date} ${time}`;
	};
	return { ticks, format };
}

export function titleOf(label: string, unit: string | null | undefined): string {
	return unit && !label.toLowerCase().includes(unit.toLowerCase()) ? `${label} (${unit})` : label;
}

interface AxisOptions { name: string; plan: Plan; ink: Ink; isVertical: boolean }

/** Ends, labels and grid lines are all ours, so that none is forced in at an end. */
export function valueAxis({ name, plan, ink, isVertical }: AxisOptions): object {
	const { scale, min, max, ticks, minor } = plan;
	return {
		type: scale === 'linear' ? 'value' : 'log', ...(scale === 'log2' && { logBase: 2 }),
		name, min, max, nameLocation: 'middle', nameGap: isVertical ? 52 : 30,
		nameTextStyle: { color: ink.dim, fontFamily: FONT, fontSize: 12 },
		axisLabel: { color: ink.dim, fontFamily: FONT, fontSize: 11, customValues: ticks,
			formatter: plan.format, showMinLabel: true, showMaxLabel: true },
		axisLine: { show: !isVertical, lineStyle: { color: ink['line-strong'] } },
		axisTick: { show: false, customValues: [...ticks, ...minor].sort((a, b) => a - b) },
		splitLine: { lineStyle: { color: ink.grid } },
	};
}

export const GRID = { left: 70, right: 24, top: 16, bottom: 48 };

export const grid = (): object => ({ ...GRID });

/** How long the axes of a picture are. */
export const roomOf = (size: Size): Size => ({
	width: Math.max(120, size.width - GRID.left - GRID.right),
	height: Math.max(120, size.height - GRID.top - GRID.bottom) });

/** Rows of words and numbers; elements, because a policy without inline styles forbids markup. */
export function tipBody(title: string, rows: [string, string][], foot?: string): HTMLElement {
	const box = document.createElement('div');
	box.className = 'tip';
	const head = document.createElement('strong');
	head.textContent = title;
	box.append(head);
	for (const [name, value] of rows) {
		const line = document.createElement('div'), left = document.createElement('span');
		const right = document.createElement('b');
		left.textContent = name;
		right.textContent = value;
		line.append(left, right);
		box.append(line);
	}
	if (foot) {
		const end = document.createElement('em');
		end.textContent = foot;
		box.append(end);
	}
	return box;
}

export function tooltip(ink: Ink, formatter: (hit: unknown) => HTMLElement | string): object {
	return {
		trigger: 'item', confine: true, transitionDuration: 0, formatter,
		backgroundColor: ink.card, borderColor: ink['line-strong'], borderWidth: 1, padding: 10,
		textStyle: { color: ink.ink, fontFamily: FONT, fontSize: 12 },
	};
}

/** The API's name of a group, or its values: "A100, tensor_parallel_size 2". */
export function keyName(key: Record<string, Cell>, name?: string): string {
	if (name)
		return name;
	const parts = Object.entries(key).map(([column, v]) => (typeof v === 'string' && v !== '' ? v
		: `${column.slice(column.indexOf('.') + 1)} ${showValue(column, v)}`));
	return parts.length ? parts.join(', ') : 'All runs';
}

/** Stays the same whatever other groups there are: for colours and for the address. */
export function keyId(key: Record<string, Cell>): string {
	return Object.entries(key).map(([column, v]) => showValue(column, v)).join(' | ') || 'all';
}

export const amount = (v: number | null | undefined, unit?: string | null): string =>
	(v === null || v === undefined ? '–' : `${measured(v)}${unit ? ` ${unit}` : ''}`);
